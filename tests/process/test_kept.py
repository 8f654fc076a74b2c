"""What one process has counted, another one knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TRAIN = """
import keras
import numpy as np

x = np.random.default_rng(7).normal(size=(400, 4)).astype("float32")
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6, "relu"), keras.layers.Dense(2, "softmax")])
model.save("model.keras")
np.savez("tests.npz", x=x, y=(x[:, 0] * x[:, 1] > 0).astype("int64"))
"""

LOCALIZE = """
import dataclasses
import sys

from guider_engine.session import Session
from guider_engine.wire import Inputs, Localized, encode

inputs = Inputs("model.keras", ("tests.npz",), ".", formula=sys.argv[2])
found = Session().localize(inputs, lambda *_: None, lambda: None, sys.argv[1])
print(encode(Localized(1, dataclasses.replace(found, timings={}))).decode())
print(sorted(found.timings), sorted({"tensorflow", "keras"} & set(sys.modules)))
"""


def start(folder: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True
    )


def printed(process: subprocess.Popen[str]) -> list[str]:
    lines = process.communicate()[0].splitlines()
    assert process.returncode == 0
    return lines


def answer(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The result, and the stages with the libraries that it took."""
    *_, result, how = printed(process)
    return result, how


def test_new_process_answers_alike_without_keras(root: Path) -> None:
    printed(start(root, TRAIN))
    first, how = answer(start(root, LOCALIZE, "spectra", "ochiai"))
    assert "'spectrum'" in how
    assert "'tensorflow'" in how
    assert answer(start(root, LOCALIZE, "spectra", "ochiai")) == (first, "['content', 'rank'] []")
    other, how = answer(start(root, LOCALIZE, "spectra", "dstar"))
    assert how == "['content', 'rank'] []"
    assert other == answer(start(root, LOCALIZE, "", "dstar"))[0]


def test_two_processes_count_at_once(root: Path) -> None:
    printed(start(root, TRAIN))
    both = [start(root, LOCALIZE, "spectra", "ochiai") for _ in range(2)]
    first, second = [answer(process) for process in both]
    assert first[0] == second[0]
    assert [path.suffix for path in (root / "spectra").iterdir()] == [".npz"]
