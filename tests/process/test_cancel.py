"""Cancelling and closing: whatever the engine is doing, the caller is soon free and the engine usable."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guider_ls.analysis.engine import Engine
from guider_ls.errors import Cancelled, GuiderError

from .conftest import DEADLINE, EngineFactory

CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
STUCK = {
    "sleeps": "import time; time.sleep(1000)",
    "loops": "while True: pass",
    "holds the interpreter lock": "import ctypes; ctypes.PyDLL(None).sleep(1000)",
    "ignores SIGTERM": "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass",
    "catches everything": (
        "import time\nwhile True:\n try: check(); time.sleep(.01)\n except BaseException: pass"
    ),
}


async def begun(engine: Engine, code: str) -> asyncio.Task[object]:
    """The task of a request that has reached its code."""
    reached = asyncio.Event()
    task: asyncio.Task[object] = asyncio.create_task(
        engine.inspect(f"report('tests', 'begun')\n{code}", on_progress=lambda _: reached.set())
    )
    await asyncio.wait_for(reached.wait(), DEADLINE)
    return task


async def cancelled(task: asyncio.Task[object]) -> None:
    task.cancel()
    await asyncio.wait([task], timeout=DEADLINE)
    assert task.cancelled()


async def test_a_request_that_listens_stops_and_the_process_stays(engine: Engine) -> None:
    hello = await engine.start()
    await cancelled(await begun(engine, "import time\nwhile True: check(); time.sleep(.01)"))

    assert (await engine.inspect("result = 'next'")).name == "next"
    assert engine.hello is hello


@pytest.mark.parametrize("code", STUCK.values(), ids=STUCK.keys())
async def test_a_request_that_is_stuck_is_ended(
    new_engine: EngineFactory, gone: Callable[[int], bool], code: str
) -> None:
    engine = new_engine(grace=0.2)
    hello = await engine.start()
    await cancelled(await begun(engine, code))

    assert gone(hello.pid)
    assert (await engine.inspect("result = 'next'")).name == "next"
    assert engine.hello != hello


async def test_cancelling_twice_does_not_wait_for_the_grace_period(
    new_engine: EngineFactory, gone: Callable[[int], bool]
) -> None:
    engine = new_engine(grace=1000)
    hello = await engine.start()
    task = await begun(engine, STUCK["ignores SIGTERM"])
    task.cancel()
    await asyncio.sleep(0.1)
    await cancelled(task)

    assert await asyncio.to_thread(gone, hello.pid)
    assert (await engine.inspect("result = 'next'")).name == "next"


async def test_a_request_that_waits_for_its_turn_is_cancelled_alone(engine: Engine) -> None:
    first = await begun(engine, "import time\nwhile True: check(); time.sleep(.01)")
    second = asyncio.create_task(engine.inspect("result = 'second'"))
    third = asyncio.create_task(engine.inspect("result = 'third'"))
    await asyncio.sleep(0)
    second.cancel()
    await cancelled(first)

    assert (await third).name == "third"
    assert second.cancelled()


async def test_cancelling_a_start(new_engine: EngineFactory, root: Path) -> None:
    entry = root / "slow.py"
    entry.write_text("import time; time.sleep(1000)")
    task: asyncio.Task[object] = asyncio.create_task(new_engine(entry=entry).start())
    await asyncio.sleep(0.2)
    await cancelled(task)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_children_are_ended_too(new_engine: EngineFactory, gone: Callable[[int], bool]) -> None:
    engine = new_engine(grace=0.1)
    start_child = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {CHILD!r}], stdout=subprocess.DEVNULL)\n"
        "open('child', 'w').write(str(child.pid)); report('trace', 'child')\n"
        "time.sleep(1000)"
    )
    task = await begun(engine, start_child)
    while not (engine.root / "child").exists() or not (engine.root / "child").read_text():
        await asyncio.sleep(0.01)
    await cancelled(task)
    assert await asyncio.to_thread(gone, int((engine.root / "child").read_text()))


@pytest.mark.parametrize("code", STUCK.values(), ids=STUCK.keys())
async def test_close_of_a_busy_engine(engine: Engine, gone: Callable[[int], bool], code: str) -> None:
    hello = await engine.start()
    running = await begun(engine, code)
    waiting = asyncio.create_task(engine.inspect(""))
    await asyncio.sleep(0)
    await asyncio.wait_for(engine.close(), DEADLINE)

    for task in (running, waiting):
        with pytest.raises(Cancelled) as caught:
            await task
        assert caught.value.code == "engine-closed"
    assert gone(hello.pid)
    assert (await engine.inspect("result = 'new'")).name == "new"


async def test_close_of_an_idle_engine_and_again(engine: Engine, gone: Callable[[int], bool]) -> None:
    await engine.close()
    hello = await engine.start()
    await engine.close()
    await engine.close()
    assert gone(hello.pid)


async def test_close_during_the_start(new_engine: EngineFactory, root: Path) -> None:
    entry = root / "slow.py"
    entry.write_text("import time; time.sleep(1000)")
    engine = new_engine(entry=entry)
    task = asyncio.create_task(engine.start())
    await asyncio.sleep(0.2)
    await engine.close()
    with pytest.raises(GuiderError) as caught:
        await asyncio.wait_for(task, DEADLINE)
    assert caught.value.code == "engine-closed"
