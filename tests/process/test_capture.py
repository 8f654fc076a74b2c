"""Running a program under watch, seen from the client: a fresh process, all that it prints, its end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guider_engine.wire import Program, Progress
from guider_ls.analysis.capturing import capture
from guider_ls.analysis.engine import ENTRY, Engine
from guider_ls.errors import GuiderError
from guider_ls.project.captures import Captures
from guider_ls.project.output import OUTPUT

from .conftest import DEADLINE, EngineFactory

TRAIN = """
import sys
import keras
import numpy as np

for part in range(3):
    sys.stdout.write("x" * 1_000_000)
sys.stdout.flush()
x = np.random.default_rng(7).normal(size=(60, 2)).astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("int64")
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, "relu"), keras.layers.Dense(2, "softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(x, y, epochs=2, validation_data=(x, y), verbose=0)
sys.stdout.write("the end, without a line's")
"""


@pytest.fixture
def engine(new_engine: EngineFactory) -> Engine:
    return new_engine(entry=ENTRY)


@pytest.fixture
def captures(tmp_path: Path) -> Captures:
    return Captures(tmp_path / "captures")


@pytest.fixture
def write(root: Path) -> Callable[[str], Program]:
    """Writes a program."""

    def make(text: str) -> Program:
        path = root / "train.py"
        path.write_text(text)
        return Program(str(path), (), str(root), str(root))

    return make


def folders(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "captures").iterdir())


async def test_a_program_and_its_localization(
    engine: Engine, captures: Captures, write: Callable[[str], Program]
) -> None:
    from guider_engine.wire import Inputs

    before = await engine.start()
    seen: list[Progress] = []
    told: list[bytes] = []
    program = write(TRAIN)
    found = await capture(engine, captures, program, seen.append, told.append)
    assert engine.hello is not None
    assert engine.hello.pid != before.pid

    # All that was printed is kept, and was told before the answer.
    printed = (found.folder / OUTPUT).read_bytes()
    assert printed.count(b"x" * 3_000_000) == 1
    assert printed.endswith(b"the end, without a line's")
    assert b"".join(told) == printed
    assert "the end, without a line's" in engine.log_tail()
    assert next(p.message for p in seen if p.fraction is not None) == "epoch 1 of 2"

    # The process stays for its models, and is replaced for others.
    assert captures.reusable(program, engine.command) == found
    model = found.model()
    inputs = Inputs(model.path, (model.tests,), program.root)
    warm = engine.hello
    localization = await engine.localize(inputs)
    assert engine.hello is warm
    assert [layer.name for layer in localization.model.layers] == [layer.name for layer in model.model.layers]
    assert all(layer.origin is not None for layer in localization.model.layers)
    with pytest.raises(GuiderError):
        await engine.inspect(str(engine.root / "another.keras"))
    assert engine.hello is not warm


@pytest.mark.parametrize(
    ("end", "said"),
    [("os.abort()", "SIGABRT"), ("os.kill(os.getpid(), 9)", "SIGKILL; the memory may have run out")],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_an_engine_that_dies_leaves_its_last_words_and_nothing_else(
    engine: Engine, captures: Captures, write: Callable[[str], Program], tmp_path: Path, end: str, said: str
) -> None:
    program = write(f"import os\nprint('the last words', flush=True)\n{end}\n")
    with pytest.raises(GuiderError, match=said) as caught:
        await capture(engine, captures, program, lambda _: None)
    assert caught.value.code == "engine-crashed"
    assert "the last words" in caught.value.message
    assert folders(tmp_path) == []


async def test_a_program_that_fails_ends_its_process(
    engine: Engine,
    captures: Captures,
    write: Callable[[str], Program],
    tmp_path: Path,
    gone: Callable[[int], bool],
) -> None:
    with pytest.raises(GuiderError, match="line 2 failed: ZeroDivisionError"):
        await capture(engine, captures, write("x = 0\n1 / x\n"), lambda _: None)
    assert engine.hello is not None
    assert await asyncio.to_thread(gone, engine.hello.pid)
    assert folders(tmp_path) == []


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.sleep(1000)",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "while True:\n try: pass\n except BaseException: pass",
        "import ctypes; ctypes.PyDLL(None).sleep(1000)",
        "while True: print('flood' * 1000)",
    ],
    ids=["sleeps", "catches all", "holds the interpreter lock", "floods"],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_cancelling_ends_it_with_all_that_it_started(
    new_engine: EngineFactory,
    captures: Captures,
    write: Callable[[str], Program],
    tmp_path: Path,
    gone: Callable[[int], bool],
    code: str,
) -> None:
    engine = new_engine(entry=ENTRY, grace=0.3)
    child = "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'])"
    program = write(
        f"{child}\nopen('child', 'w').write(str(child.pid))\nprint('begun', flush=True)\n{code}\n"
    )
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_output(_data: bytes) -> None:
        loop.call_soon_threadsafe(begun.set)

    task = asyncio.create_task(capture(engine, captures, program, lambda _: None, on_output))
    await asyncio.wait_for(begun.wait(), DEADLINE)
    assert engine.hello is not None
    pids = [engine.hello.pid, int((engine.root / "child").read_text())]
    task.cancel()
    await asyncio.wait([task], timeout=DEADLINE)
    assert task.cancelled()
    for pid in pids:
        assert await asyncio.to_thread(gone, pid)
    assert folders(tmp_path) == []


async def test_a_folder_that_cannot_be_written(
    engine: Engine, write: Callable[[str], Program], tmp_path: Path
) -> None:
    (tmp_path / "captures").write_text("a file")
    with pytest.raises(GuiderError, match="GUIDER_CACHE") as caught:
        await capture(engine, Captures(tmp_path / "captures"), write(""), lambda _: None)
    assert caught.value.code == "cache-unwritable"


async def test_captures_of_one_run_at_once(
    new_engine: EngineFactory, captures: Captures, write: Callable[[str], Program]
) -> None:
    """As two editors that run the same program: each has a folder of its own, and the last one counts."""
    program = write(TRAIN)
    engines = [new_engine(entry=ENTRY) for _ in range(2)]
    found = await asyncio.gather(*(capture(engine, captures, program, lambda _: None) for engine in engines))
    assert found[0].folder != found[1].folder
    latest = captures.reusable(program, engines[0].command)
    assert latest == max(found, key=lambda one: one.record.started)
