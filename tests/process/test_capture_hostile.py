"""Programs that are hard on the process that runs them: the answer comes all the same, and nothing is left behind."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from guider_engine.wire import CaptureRecord, Inputs, Program
from guider_ls.analysis.engine import ENTRY, Engine
from guider_ls.errors import Cancelled, GuiderError

from .conftest import EngineFactory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and forks")

PATIENCE = 300.0
"""Seconds after which an answer counts as missing."""
MODEL = """
import keras
import numpy as np
from keras import layers
x, y = np.linspace(-1, 1, 48, dtype="float32").reshape(16, 3), np.arange(16) % 2
model = keras.Sequential([keras.Input((3,)), layers.Dense(2, "relu"), layers.Dense(2, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
"""
FIT = """
model.fit(x, y, validation_data=(x, y), epochs=2, verbose=0)
"""
RunProgram = Callable[..., Awaitable[CaptureRecord]]


@pytest.fixture
def engine(new_engine: EngineFactory) -> Engine:
    """An engine as in the product."""
    return new_engine(entry=ENTRY)


@pytest.fixture
def run(engine: Engine, root: Path, tmp_path: Path) -> RunProgram:
    """Run code, or the bytes of a program, under watch: ``await run("print(1)")``."""

    async def capture(code: str | bytes, *arguments: str) -> CaptureRecord:
        text = textwrap.dedent(code).encode() if isinstance(code, str) else code
        (root / "train.py").write_bytes(text)
        return await start(engine, Program(str(root / "train.py"), arguments, str(root), str(root)), tmp_path)

    return capture


async def start(engine: Engine, program: Program, folder: Path) -> CaptureRecord:
    (folder / "captured").mkdir(exist_ok=True)
    return await asyncio.wait_for(engine.capture(program, folder / "captured"), PATIENCE)


async def localized(engine: Engine, record: CaptureRecord) -> tuple[int | None, ...]:
    """The lines of the layers of the first model, once it was localized in the process that captured it."""
    first = record.models[0]
    result = await asyncio.wait_for(
        engine.localize(Inputs(first.path, (first.tests,), record.program.root)), PATIENCE
    )
    assert result.tests.total == 16
    return tuple(layer.origin.line if layer.origin else None for layer in result.model.layers)


NO_MODEL = {
    "nothing": ("", "program-no-model", "train.py ran to its end and imported no Keras"),
    "an exit": ("import sys; sys.exit(0)", "program-no-model", "ran to its end"),
    "an exit with a reason": (
        "import sys; sys.exit('usage: train.py DATA')",
        "program-failed",
        "usage: train.py DATA",
    ),
    "os._exit": (
        "\nimport os; os._exit(3)",
        "program-failed",
        "train.py, line 2 failed: it asked to exit with 3",
    ),
    "an interrupt": ("raise KeyboardInterrupt", "program-failed", "interrupted"),
    "a signal to itself": (
        "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(20)",
        "program-failed",
        "interrupted",
    ),
    "an endless recursion": ("def f(): f()\nf()", "program-failed", "line 1 (f) failed: RecursionError"),
    "an exception without text": (
        "class Odd(BaseException):\n    def __str__(self): return 3\nraise Odd",
        "program-failed",
        "train.py, line 3 failed: Odd",
    ),
    "no Python": ("x = 1\ndef f(:", "program-failed", "train.py, line 2 failed: SyntaxError: "),
    "another encoding": (b"x = '\xff'", "program-failed", "line 1 failed: SyntaxError: (unicode error)"),
    "a zero byte": (b"x = 1\0", "program-failed", "null bytes"),
    "a question": ("name = input('model? ')", "program-failed", "line 1 failed: it waits for input"),
    "an exception after a new hook": (
        "import sys\nsys.excepthook = None\nsys.stdout.close()\nsys.stderr = None\n1 / 0",
        "program-failed",
        "line 5 failed: ZeroDivisionError: division by zero",
    ),
    "its own trace": (
        "import sys\nsys.settrace(print)\nsys.setprofile(lambda *_: None)",
        "program-no-model",
        "its end",
    ),
    "no standard streams": (
        "import os\nfor number in range(3): os.close(number)",
        "program-no-model",
        "its end",
    ),
    "no path and no finders": (
        "import sys\nsys.path.clear()\nsys.meta_path.clear()",
        "program-no-model",
        "its end",
    ),
    "no module of its own": ("import sys\ndel sys.modules['__main__']", "program-no-model", "its end"),
    "a fork that ends as it does": ("import os\nif os.fork(): os.wait()", "program-no-model", "its end"),
    "a daemon": (
        "import os\nif os.fork(): os._exit(0)\nos.setsid()\nprint(1)",
        "program-no-model",
        "its end",
    ),
    "a crash": (
        "print('last words')\nimport ctypes; ctypes.string_at(0)",
        "engine-crashed",
        "last words\n  Fatal Python error: Segmentation fault",
    ),
    "its own end": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "engine-crashed", "SIGKILL"),
    "another program": (
        "import os, sys; os.execv(sys.executable, ['python', '-c', 'print(1)'])",
        "engine-crashed",
        "exit status 0",
    ),
}


@pytest.mark.parametrize(("code", "expected", "said"), NO_MODEL.values(), ids=NO_MODEL.keys())
async def test_what_ends_without_a_model_says_why(
    run: RunProgram, engine: Engine, code: str | bytes, expected: str, said: str
) -> None:
    with pytest.raises(GuiderError) as caught:
        await run(code)
    assert caught.value.code == expected
    assert said in caught.value.message
    with pytest.raises(GuiderError, match="imported no Keras"):  # and the next program is run as ever
        await run("print('next')")


async def test_a_program_that_is_no_file(engine: Engine, root: Path, tmp_path: Path) -> None:
    (root / "folder.py").mkdir()
    for name, code in [("missing.py", "program-missing"), ("folder.py", "program-unreadable")]:
        with pytest.raises(GuiderError) as caught:
            await start(engine, Program(str(root / name), (), str(root), str(root)), tmp_path)
        assert caught.value.code == code
        assert name in caught.value.message


async def test_an_error_in_a_module_names_its_file(run: RunProgram, root: Path) -> None:
    (root / "helper.py").write_text("values = (\n")
    with pytest.raises(GuiderError, match=r"helper\.py, line 1 failed: SyntaxError: '\(' was never closed"):
        await run("import helper")


async def test_what_a_program_does_to_its_process_ends_with_it(
    run: RunProgram, engine: Engine, root: Path, tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    """Many at once, as one start of TensorFlow takes seconds; each is what some real program does."""
    for name in ("wire", "session", "channel", "capture", "errors", "request", "ranking"):
        (root / f"{name}.py").write_text("OWN = True\n")
    (root / "load").mkdir()
    (root / "load" / "__init__.py").write_text("")
    (root / "load" / "model.py").write_text("OWN = True\n")
    program = """\
    # -*- coding: latin-1 -*-
    import atexit, faulthandler, gc, os, signal, subprocess, sys, tempfile, threading, time, warnings
    import wire, session, channel, capture, errors, request, ranking, load.model
    assert all(m.OWN for m in (wire, session, channel, capture, errors, request, ranking, load.model))
    text = "\xe4\xf6\xfc"
    assert text == chr(228) + chr(246) + chr(252) and len(sys.argv) == 2
    assert sys.stdin.read() == "" and os.read(0, 1) == b""
    atexit.register(lambda: 1 / 0)
    faulthandler.disable()
    gc.disable()
    sys.setrecursionlimit(100_000)
    sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *_: 1 / 0
    sys.displayhook = None
    for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    late = []
    threading.Thread(target=lambda: (time.sleep(1), late.append(1), open("late", "w").close())).start()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    open("child", "w").write(str(child.pid))
    threading.Thread(target=lambda: os.write(1, b"y" * 5_000_000)).start()
    print("x" * 1_000_000, end="")
    os.write(1, b"straight to the descriptor\\n")
    open_file = open
    """
    program += MODEL.replace("\n", "\n    ")
    program += """
    warnings.simplefilter("error")
    os.chdir(tempfile.gettempdir())
    os.environ.clear()
    os.remove(__file__)
    open = print = len = None
    """
    program += FIT.replace("\n", "\n    ")
    program += """
    sys.stdout.close()
    sys.stderr = None
    sys.argv.clear()
    sys.path.clear()
    __file__ = __name__ = x = None
    """
    line = textwrap.dedent(program).split("\n").index(MODEL.split("\n")[5])
    record = await run(textwrap.dedent(program).encode("latin-1"), "an argument")

    assert (record.ending, record.failure) == ("finished", None)
    assert (root / "late").exists(), "threads that are no daemons were waited for"
    assert [(one.name, one.trained, one.epochs, one.data_kind, one.saved) for one in record.models] == [
        ("model", True, 2, "validation", True)
    ]
    assert await localized(engine, record) == (line, line)
    names = {Path(state.path).relative_to(root).as_posix() for state in record.sources}
    assert {"train.py", "wire.py", "load/model.py"} <= names
    printed = (tmp_path / "captured/output.txt").read_text(encoding="utf-8")
    assert "straight to the descriptor" in printed
    assert printed.count("y") >= 5_000_000
    assert printed.count("x") >= 1_000_000
    child = int((root / "child").read_text())
    await engine.close()
    assert await asyncio.to_thread(gone, child)


async def test_a_program_that_shows_pictures_and_forks(run: RunProgram, engine: Engine, root: Path) -> None:
    pytest.importorskip("matplotlib")
    record = await run(
        """
        import multiprocessing, os

        def square(number):
            return number * number

        if __name__ == "__main__":
            import matplotlib
            matplotlib.use("TkAgg")
            import matplotlib.pyplot as plt
            plt.switch_backend("QtAgg")
            plt.ion(); plt.plot([1, 2]); plt.show(block=True); plt.pause(1000)
            plt.savefig("plot.png")
            for method in ("spawn", "fork", "forkserver"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    assert pool.map(square, [3]) == [9], method
        """
        + (MODEL + FIT).replace("\n", "\n            ")
        + """
            if os.fork() == 0:
                model.predict_on_batch
                raise SystemExit(0)
            os.wait()
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.map(square, [3]) == [9]
        """
    )
    assert (record.ending, record.failure) == ("finished", None)
    assert (root / "plot.png").stat().st_size > 1000
    assert len(record.models) == 1
    assert len(await localized(engine, record)) == 2


async def test_what_is_described_is_not_loaded(run: RunProgram, engine: Engine, root: Path) -> None:
    """Data of 10 GB in a sparse file, an endless generator, an endless data set: memory stays what it was."""
    gigabytes = 10
    with (root / "data.bin").open("wb") as file:
        file.truncate(gigabytes << 30)
    record = await run(
        MODEL
        + f"""
import resource, tensorflow as tf
rows = {gigabytes << 30} // 12
x_test = np.memmap("data.bin", "float32", "r", shape=(rows, 3))
y_test = np.broadcast_to(np.arange(1) % 2, (rows,))
def endless():
    while True:
        yield x, y
endless_data = tf.data.Dataset.range(10**12).map(lambda i: (tf.zeros((16, 3)), tf.zeros((16,), "int64")))
model.fit(x, y, epochs=1, verbose=0)
open("before", "w").write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
model.fit(endless(), steps_per_epoch=2, validation_data=endless_data, validation_steps=2, verbose=0)
model.evaluate(endless(), steps=2, verbose=0)
def batches():
    for start in range(0, rows, 16):
        yield x_test[start : start + 16], y_test[start : start + 16]
model.evaluate(batches(), steps=3, verbose=0)
model.predict_on_batch(x_test[:16])
open("after", "w").write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""
    )
    assert (record.ending, record.failure) == ("finished", None)
    assert record.models[0].data_kind == "test"
    assert record.models[0].tests
    before, hello = int((root / "before").read_text()), engine.hello
    assert hello is not None
    peak = next(
        int(line.split()[1])
        for line in Path(f"/proc/{hello.pid}/status").read_text().splitlines()
        if "VmHWM" in line
    )
    assert peak - before < 1_000_000, "kilobytes more than after a training on sixteen rows"


@pytest.mark.parametrize(
    "code",
    [
        "while True:\n    try:\n        time.sleep(0.01)\n    except BaseException:\n        pass",
        "while True:\n    try:\n        while True: pass\n    except:\n        pass",
        "def step():\n    try:\n        time.sleep(0.05)\n    except: print('again')\nwhile True: step()",
        "threading.Thread(target=time.sleep, args=(1000,)).start()",
        "lock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "subprocess.run(['sleep', '1000'])",
    ],
)
async def test_a_program_that_goes_on_and_on_ends_when_its_time_is_up(
    engine: Engine, root: Path, tmp_path: Path, code: str
) -> None:
    (root / "train.py").write_text(f"import subprocess, threading, time\n{code}\n")
    program = Program(str(root / "train.py"), (), str(root), str(root), seconds=0.5)
    with pytest.raises(GuiderError, match="was stopped when its time was up"):
        await start(engine, program, tmp_path)


@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "lambda *_: None"])
async def test_an_endless_program_that_catches_everything_is_cancelled(
    new_engine: EngineFactory, root: Path, tmp_path: Path, gone: Callable[[int], bool], handler: str
) -> None:
    engine = new_engine(entry=ENTRY, grace=1.0)
    (root / "train.py").write_text(
        f"""
import signal, time
for name in ("SIGINT", "SIGTERM", "SIGUSR2"):
    signal.signal(getattr(signal, name), {handler})
open("begun", "w").close()
while True:
    try:
        while True: pass
    except BaseException:
        pass
"""
    )
    program = Program(str(root / "train.py"), (), str(root), str(root))
    task = asyncio.create_task(start(engine, program, tmp_path))
    while not (root / "begun").exists():
        assert not task.done()
        await asyncio.sleep(0.05)
    assert engine.hello is not None
    pid = engine.hello.pid
    task.cancel()
    with pytest.raises((asyncio.CancelledError, Cancelled)):
        await asyncio.wait_for(task, PATIENCE)
    assert await asyncio.to_thread(gone, pid)


async def test_a_model_is_there_after_all_was_deleted(run: RunProgram, engine: Engine) -> None:
    record = await run(
        MODEL
        + FIT
        + """
import gc, os, threading
del model, x, y
keras.backend.clear_session()
gc.collect()
threading.Thread(target=os._exit, args=(3,)).start()
while True:
    pass
"""
    )
    assert record.ending == "failed"
    assert record.failure is not None
    assert "exit" in record.failure.message
    assert len(await localized(engine, record)) == 2
