"""Requests: answers of every size, progress, output of user code, exceptions of every kind."""

from __future__ import annotations

import asyncio
import re

import pytest

from guider_engine.wire import Progress
from guider_ls.analysis.engine import Engine
from guider_ls.errors import EngineError, EnvironmentProblem, InputError

from .conftest import EngineFactory


async def test_requests_queue_and_share_one_process(engine: Engine) -> None:
    code = "import os; kept['n'] = kept.get('n', 0) + 1; result = f\"{os.getpid()} {kept['n']}\""
    answers = await asyncio.gather(*(engine.inspect(code) for _ in range(5)))

    assert engine.hello is not None
    assert [answer.name for answer in answers] == [f"{engine.hello.pid} {n}" for n in range(1, 6)]


async def test_an_answer_of_many_megabytes(engine: Engine) -> None:
    answer = await engine.inspect("result = 'é€😀' * 3_000_000 + 'end'")

    assert answer.name == "é€😀" * 3_000_000 + "end"


async def test_progress_is_thinned_but_keeps_the_first_and_the_last_of_a_stage(engine: Engine) -> None:
    seen: list[Progress] = []
    code = "\n".join(
        [
            "for n in range(2000): report('tests', str(n), n / 2000)",
            "report('trace', 'once')",
            "for n in range(2000): report('spectrum', str(n), n / 2000)",
        ]
    )
    await engine.inspect(code, on_progress=seen.append)

    for stage in ("tests", "spectrum"):
        messages = [progress.message for progress in seen if progress.stage == stage]
        assert (messages[0], messages[-1]) == ("0", "1999")
        assert len(messages) < 100
    assert [progress.message for progress in seen if progress.stage == "trace"] == ["once"]


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.stderr.write('noise\\n' * 200_000)",
        "import sys; sys.stdout.write('noise\\n' * 200_000)",
        "import os; os.write(1, b'noise' * 200_000)",
        "for n in range(100_000): print(f'\\r{n}/100000 [====>   ]', end='', flush=True)",
        "import sys; [print('\\x08' * 20 + f'{n}/9', end='') for n in range(100_000)]",
        "import ctypes; c = ctypes.CDLL(None); [c.puts(b'from C') for _ in range(100_000)]; c.fflush(None)",
        "import subprocess; subprocess.run(['echo', 'from a child'])",
        "import os; os.write(2, b'\\xff\\xfe\\xc3')",
        "from multiprocessing import get_context as c; p = c('fork').Process(target=print); p.start(); p.join()",
    ],
    ids=["stderr", "stdout", "no newline", "bar", "backspaces", "C", "child", "bytes", "fork"],
)
async def test_output_neither_corrupts_nor_blocks(engine: Engine, code: str) -> None:
    assert (await engine.inspect(f"{code}\nresult = 'done'")).name == "done"
    assert (await engine.inspect("result = 'again'")).name == "again"


async def test_output_goes_to_the_log(new_engine: EngineFactory) -> None:
    lines: list[str] = []
    engine = new_engine(log=lines.append)
    await engine.inspect(
        "print('from Python'); import ctypes; c = ctypes.CDLL(None); c.puts(b'from C'); c.fflush(None)"
    )
    await engine.close()

    assert {"from Python", "from C"} <= set(lines)
    assert "from Python\nfrom C" in engine.log_tail()
    assert engine.log_tail(1) == lines[-1]


async def test_standard_input_is_empty(engine: Engine) -> None:
    assert (await engine.inspect("import sys; result = repr(sys.stdin.read())")).name == "''"


async def test_user_code_is_named_with_its_line(engine: Engine) -> None:
    (engine.root / "data.py").write_text("def load():\n    return int('seven')\n")
    with pytest.raises(
        EngineError, match=r"^data\.py, line 2 \(load\) failed: ValueError: .*'seven'$"
    ) as caught:
        await engine.inspect("import sys; sys.path.insert(0, root); import data; data.load()")

    assert caught.value.code == "user-code"
    assert "Traceback" in caught.value.detail
    assert "Traceback" in engine.log_tail()


async def test_a_syntax_error_in_user_code(engine: Engine) -> None:
    (engine.root / "data.py").write_text("x = 1\nimport = 2\n")
    with pytest.raises(EngineError, match=r"^data\.py, line 2 failed: SyntaxError") as caught:
        await engine.inspect("import sys; sys.path.insert(0, root); import data")
    assert caught.value.code == "user-code"


@pytest.mark.parametrize(
    ("code", "expected", "said"),
    [
        ("raise ValueError('first line\\nsecond')", "engine-internal", r"ValueError: first line\.$"),
        ("raise MemoryError", "engine-internal", "out of memory"),
        ("bytearray(1 << 60)", "engine-internal", "out of memory"),
        ("def f(): f()\nf()", "engine-internal", "RecursionError"),
        ("raise SystemExit(3)", "user-code", "asked to exit with 3"),
        ("raise KeyboardInterrupt", "user-code", "KeyboardInterrupt"),
        ("raise GeneratorExit", "engine-internal", "GeneratorExit"),
        ("class E(Exception):\n def __str__(self): return 1\nraise E", "engine-internal", "E"),
        ("import nothing_of_that_name", "engine-internal", "nothing_of_that_name"),
        ("report('tests', 'x', float('nan'))", "engine-internal", "ValueError"),
    ],
)
async def test_any_exception_is_an_answer(engine: Engine, code: str, expected: str, said: str) -> None:
    before = await engine.start()
    with pytest.raises(EngineError, match=said) as caught:
        await engine.inspect(code)

    assert caught.value.code == expected
    assert "\n" not in caught.value.message
    await engine.inspect("")
    assert await engine.start() is before


async def test_an_explained_failure_keeps_its_kind(engine: Engine) -> None:
    raising = "from guider_engine.errors import EngineFailure; raise EngineFailure({!r}, 'some-code', 'What to do.')"
    for kind, error in (("input", InputError), ("environment", EnvironmentProblem), ("engine", EngineError)):
        with pytest.raises(error, match=re.escape("What to do.")) as caught:
            await engine.inspect(raising.format(kind))
        assert caught.value.code == "some-code"
