"""An engine that dies: one clear message, a new process for the next request, an end to crash loops."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guider_engine.wire import PROTOCOL, Hello, encode
from guider_ls.analysis.engine import CRASH_LIMIT, Engine
from guider_ls.errors import EngineError

from .conftest import DEADLINE, EngineFactory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os; os._exit(7)", "exit status 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL; the memory may have run out"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
    ],
)
async def test_a_crash_is_explained_and_survived(engine: Engine, code: str, said: str) -> None:
    with pytest.raises(EngineError, match=said) as caught:
        await engine.inspect(f"print('the last words'); {code}")

    assert caught.value.code == "engine-crashed"
    assert "the last words" in caught.value.message
    assert (await engine.inspect("result = 'alive'")).name == "alive"


async def test_death_right_after_hello_is_a_crash(new_engine: EngineFactory, root: Path) -> None:
    entry = root / "brief.py"
    hello = encode(Hello(PROTOCOL, 0, "", "", {})).decode()
    entry.write_text(f"import sys; print({hello!r}); sys.exit('the reason')")
    engine = new_engine(entry=entry)
    codes = []
    for _ in range(CRASH_LIMIT + 1):
        with pytest.raises(EngineError) as caught:
            await asyncio.wait_for(engine.inspect(""), DEADLINE)
        codes.append(caught.value.code)
    assert codes == ["engine-crashed"] * CRASH_LIMIT + ["engine-crash-loop"]


async def test_an_answer_that_cannot_be_understood_ends_the_request(
    new_engine: EngineFactory, root: Path
) -> None:
    entry = root / "foreign.py"
    hello = encode(Hello(PROTOCOL, 0, "", "", {})).decode()
    entry.write_text(
        f'print({hello!r}); input(); print(\'{{"type": "Inspected", "request": 1, "model": 7}}\'); input()'
    )
    with pytest.raises(EngineError, match="cannot be understood"):
        await asyncio.wait_for(new_engine(entry=entry).inspect(""), DEADLINE)


async def test_a_launcher_passes_the_signal_on(new_engine: EngineFactory, root: Path) -> None:
    launcher = root / "launch"
    launcher.write_text('#!/bin/sh\n"$@"\nexit $?\n')
    launcher.chmod(0o755)
    with pytest.raises(EngineError, match="SIGKILL; the memory may have run out"):
        await new_engine((str(launcher), sys.executable)).inspect("import os; os.kill(os.getpid(), 9)")


async def test_a_segmentation_fault_shows_where(engine: Engine) -> None:
    with pytest.raises(EngineError) as caught:
        await engine.inspect("import ctypes; ctypes.string_at(0)")
    assert "string_at" in caught.value.detail


async def test_a_crash_shows_the_lines_of_its_own_process(engine: Engine) -> None:
    await engine.inspect("print('of the first process')")
    with pytest.raises(EngineError):
        await engine.inspect("import os; os._exit(1)")
    await engine.inspect("print('of an earlier request')")
    with pytest.raises(EngineError) as caught:
        await engine.inspect("import os; os._exit(1)")

    assert "of an earlier request" in caught.value.detail
    assert "of the first process" not in caught.value.detail
    assert "It printed nothing" in caught.value.message
    assert "of the first process" in engine.log_tail()


async def test_a_crash_loop_ends_until_it_is_closed(engine: Engine) -> None:
    for _ in range(CRASH_LIMIT):
        with pytest.raises(EngineError, match="exit status 7"):
            await engine.inspect("import os; os._exit(7)")
    for _ in range(2):
        with pytest.raises(EngineError, match=f"{CRASH_LIMIT} times in a row") as caught:
            await engine.inspect("")
        assert caught.value.code == "engine-crash-loop"

    await engine.close()
    assert (await engine.inspect("result = 'alive'")).name == "alive"


async def test_a_success_ends_the_row(engine: Engine) -> None:
    for _ in range(CRASH_LIMIT + 1):
        with pytest.raises(EngineError, match="exit status 7"):
            await engine.inspect("import os; os._exit(7)")
        await engine.inspect("")


async def test_only_repeated_crashes_wait(new_engine: EngineFactory) -> None:
    engine = new_engine(backoff=1000)
    with pytest.raises(EngineError):
        await engine.inspect("import os; os._exit(7)")
    with pytest.raises(EngineError, match="exit status 7"):
        await engine.inspect("import os; os._exit(7)")

    waiting = asyncio.create_task(engine.inspect(""))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_death_between_requests_is_no_error(engine: Engine) -> None:
    for _ in range(CRASH_LIMIT + 1):
        hello = await engine.start()
        os.kill(hello.pid, signal.SIGKILL)
        while await engine.start() is hello:
            await asyncio.sleep(0.01)
    assert (await engine.inspect("result = 'alive'")).name == "alive"


async def test_children_of_a_crashed_engine_end_with_it(engine: Engine, gone: Callable[[int], bool]) -> None:
    code = "\n".join(
        [
            "import os, subprocess, sys",
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])",
            "open('child', 'w').write(str(child.pid))",
            "os._exit(7)",
        ]
    )
    with pytest.raises(EngineError, match="exit status 7"):
        await engine.inspect(code)
    assert await asyncio.to_thread(gone, int((engine.root / "child").read_text()))


async def test_a_forked_child_that_holds_the_channel_does_not_hide_a_crash(engine: Engine) -> None:
    code = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(20); os._exit(0)\nos._exit(7)"
    start = time.monotonic()
    with pytest.raises(EngineError, match="exit status 7"):
        await engine.inspect(code)
    assert time.monotonic() - start < 15
