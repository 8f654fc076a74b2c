"""A program under watch runs as ``python PROGRAM.py`` would run it, and ends for its own reasons."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import keras  # noqa: F401 (so that no failing program is the first to import it)
import numpy as np
import pytest
import tensorflow as tf
from tests.engine.conftest import WatchProgram

from guider_engine.errors import CancelRequested, EngineFailure

TINY = """
import keras
import numpy as np
x, y = np.ones((64, 2), "float32"), np.arange(64) % 2
model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, "softmax")])
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
"""
FIT = "model.fit(x, y, batch_size=8, verbose=0)\n"


def test_surroundings_are_those_of_a_script(watch: WatchProgram, project: Path, capsys: Any) -> None:
    (project / "modulefinder.py").write_text("OWN = True\n")
    (project / "work").mkdir()
    before = (sys.argv, list(sys.path), Path.cwd(), sys.stdout, os._exit)
    import modulefinder  # of the standard library: the program's own is another

    watch(
        "# größe\n"
        + TINY
        + FIT
        + """
import os, pickle, sys
from pathlib import Path
import modulefinder
class Kept:
    pass
assert type(pickle.loads(pickle.dumps(Kept()))) is Kept
assert __name__ == "__main__" and sys.modules["__main__"].Kept is Kept
assert "größe" in Path(__file__).read_text(encoding="utf-8").splitlines()[0]
assert sys.argv == [__file__, "--epochs", "3"], sys.argv
assert sys.path[0] == os.path.dirname(__file__), sys.path
assert os.path.basename(os.getcwd()) == "work"
assert modulefinder.OWN
assert sys.stdin.read() == ""
np.seterr(all="raise")
import tensorflow as tf
tf.config.run_functions_eagerly(True)
assert globals()["__spec__"] is None and __doc__ is None and __builtins__
print("reached")
sys.argv, sys.path[:], sys.stdout = [], [], None
os.chdir("/")
""",
        arguments=("--epochs", "3"),
        folder=str(project / "work"),
    )
    assert "reached" in capsys.readouterr().out
    assert (sys.argv, list(sys.path), Path.cwd(), sys.stdout, os._exit) == before
    assert sys.modules["modulefinder"] is modulefinder
    assert np.geterr()["over"] == "warn"
    assert not tf.config.functions_run_eagerly()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys\nsys.exit(0)", ""),
        ("raise SystemExit", ""),
        ("import os\nos._exit(0)", ""),
        ("try:\n    pass\nfinally:\n    exit()", ""),
        ("import sys\nsys.exit('no data')", "train.py, line 9 failed: it asked to exit with 'no data'"),
        ("import os\nos._exit(3)", "train.py, line 9 failed: it asked to exit with 3"),
        (
            "def f():\n    return 1 / 0\nf()",
            "train.py, line 9 (f) failed: ZeroDivisionError: division by zero",
        ),
        ("raise KeyboardInterrupt", "train.py, line 8 failed: it was interrupted"),
        ("\nname = input('? ')", "train.py, line 9 failed: it waits for input"),
        (
            "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
            "train.py, line 10 failed: E",
        ),
    ],
)
def test_endings(watch: WatchProgram, code: str, said: str) -> None:
    record = watch(TINY + FIT + code, ending="failed" if said else "finished").record
    assert [model.name for model in record.models] == ["model"]
    if said:
        assert record.failure is not None
        assert record.failure.code == "program-failed"
        assert said in record.failure.message
        assert "guider_engine/" not in record.failure.detail
        assert 'train.py", line' in record.failure.detail


def test_a_program_without_a_model(watch: WatchProgram) -> None:
    with pytest.raises(EngineFailure) as caught:
        watch("print(1)")
    assert caught.value.failure.code == "program-no-model"
    assert (
        "used no model" in caught.value.failure.message or "imported no Keras" in caught.value.failure.message
    )
    with pytest.raises(EngineFailure) as caught:
        watch("x = 1\nx.nothing")
    assert caught.value.failure.code == "program-failed"
    assert "train.py, line 2" in caught.value.failure.message
    with pytest.raises(EngineFailure) as caught:
        watch("x = (1\n")
    assert "train.py, line 1" in caught.value.failure.message


def test_a_training_that_never_began_gives_no_model(watch: WatchProgram) -> None:
    with pytest.raises(EngineFailure) as caught:
        watch(TINY + "model.fit(np.ones((3, 9)), np.ones(3), verbose=0)")
    assert caught.value.failure.code == "program-failed"
    assert "train.py, line 7 failed: ValueError: Input 0" in caught.value.failure.message


def test_failing_in_training_keeps_what_was_trained(watch: WatchProgram) -> None:
    record = watch(
        TINY
        + """
class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch == 2:
            raise RuntimeError("enough")
model.fit(x, y, epochs=5, verbose=0, callbacks=Stop())
""",
        ending="failed",
    ).record
    assert record.failure is not None
    assert "train.py, line 11 (on_epoch_end) failed: RuntimeError: enough" in record.failure.message
    assert (record.models[0].trained, record.models[0].epochs) == (True, 2)
    assert record.models[0].tests


@pytest.mark.parametrize(("first", "epochs", "trained"), [(0, 9, 2), (3, 9, 2), (3, 4, 1)])
def test_epochs_are_capped(watch: WatchProgram, first: int, epochs: int, trained: int) -> None:
    code = (
        TINY
        + f"history = model.fit(x, y, 8, {epochs}, 0, initial_epoch={first})\nassert len(history.epoch) == {trained}"
    )
    assert watch(code, epochs=2).record.models[0].epochs == trained


@pytest.mark.parametrize(
    "code",
    [
        "model.fit(x, y, epochs=10**6, verbose=0)",
        FIT + "while True:\n    model(x)",
        FIT + "while True:\n    try:\n        sum(range(1000))\n    except Exception:\n        pass",
        FIT + "import time\ntime.sleep(600)",
        FIT
        + "import signal, time\nsignal.signal(signal.SIGUSR2, signal.SIG_IGN)\nwhile True:\n    time.sleep(0.01)",
        "import threading\nthreading.Thread(target=lambda: model.fit(x, y, epochs=10**6, verbose=0)).start()",
    ],
)
def test_time_is_limited(watch: WatchProgram, code: str) -> None:
    start = time.monotonic()
    watch(TINY + FIT)
    enough = 3 + 3 * (time.monotonic() - start)  # for a few batches, however busy the machine
    record = watch(TINY + code, seconds=enough, ending="stopped").record
    assert record.failure is None
    assert record.models[0].trained
    assert record.models[0].tests
    for thread in threading.enumerate():  # one that trains ends at its next batch
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(30)
            assert not thread.is_alive()


@pytest.mark.parametrize("code", ["model.fit(x, y, epochs=10**6, verbose=0)", "import time\ntime.sleep(600)"])
def test_cancelling_ends_it_at_once(watch: WatchProgram, code: str) -> None:
    running = threading.Event()

    def report(stage: str, message: str, fraction: float | None) -> None:
        running.set()

    def check() -> None:
        if running.is_set():
            raise CancelRequested

    start = time.monotonic()
    with pytest.raises(CancelRequested):
        watch(TINY + code, check=check, report=report)
    assert time.monotonic() - start < 300
    assert signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL


def test_progress_tells_epochs_and_metrics(watch: WatchProgram) -> None:
    seen: list[tuple[str, str, float | None]] = []
    watch(
        TINY
        + "model.fit(x, y, batch_size=32, epochs=3, validation_data=(x, y), verbose=0)\nmodel.evaluate(x, y)",
        report=lambda *progress: seen.append(progress),
    )
    messages = [message for stage, message, _ in seen if stage == "program"]
    assert messages[0] == "running train.py"
    assert "epoch 1 of 3" in messages
    assert any(m.startswith("epoch 3 of 3 · loss 0.") and " · val_accuracy 0.5" in m for m in messages)
    assert messages[-1] == "evaluating"
    fractions = [fraction for _, _, fraction in seen if fraction is not None]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0.0
    assert fractions[-1] == 1.0
    assert {round(fraction, 2) for fraction in fractions} >= {0.0, 0.17, 0.33, 0.5, 0.67, 0.83, 1.0}
    assert seen[-1][0] == "record"


def test_windows_are_not_opened(watch: WatchProgram) -> None:
    watch(
        TINY
        + FIT
        + """
import warnings
warnings.simplefilter("error")
import matplotlib
matplotlib.use("TkAgg")
import matplotlib.pyplot as plt
plt.switch_backend("QtAgg")
plt.plot([1, 2])
plt.show()
assert matplotlib.get_backend().lower() == "agg"
plt.close("all")
"""
    )


def test_a_program_can_be_interrupted_though_its_server_was_started_not_to_be(
    watch: WatchProgram,
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        record = watch(
            TINY + FIT + "import os, signal\nos.kill(os.getpid(), signal.SIGINT)", ending="failed"
        ).record
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert record.failure is not None
    assert "interrupted" in record.failure.message
