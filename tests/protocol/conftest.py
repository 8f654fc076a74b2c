from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.protocol.editor import Editor, editor

PROGRAM = """\
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
x = rng.normal(size=(400, 6)).astype("float32")
y = (x[:, :3].sum(axis=1) > 0).astype("int64") + (x[:, 3] > 1.0)

model = keras.Sequential([
    keras.Input((6,)),
    layers.Dense(12, activation="sigmoid", name="hidden"),
    layers.Dense(8, activation="relu"),
    layers.Dropout(0.5),
    layers.Dense(3, activation="softmax"),
])
model.compile(loss="sparse_categorical_crossentropy")
model.fit(x[:300], y[:300], epochs=3, verbose=0)
model.save("model.keras")
np.savez("tests.npz", x=x[300:], y=y[300:])
"""

VARIANTS = """
labels = model.predict(x[300:], verbose=0).argmax(axis=1)
np.savez("variants/right.npz", x=x[300:], y=labels)
model.layers[0].kernel.assign(model.layers[0].kernel[::-1])
model.save("variants/other.keras")
"""


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the program was run: it has a model and a test set.

    Its folder ``variants`` has another model, and a test set that the first model passes.
    """
    root = tmp_path_factory.mktemp("trained")
    (root / "train.py").write_text(PROGRAM)
    (root / "pyproject.toml").write_text("")
    (root / "variants").mkdir()
    subprocess.run([sys.executable, "-c", PROGRAM + VARIANTS], cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project folder with a space and letters that are not ASCII in its name."""
    root = tmp_path / "mon projet ß"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    return root


@pytest.fixture
def project(trained: Path, folder: Path) -> Path:
    """The same with a program, its model and its test set."""
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture
async def client(cache: Path) -> AsyncIterator[Editor]:
    async with editor(cache) as found:
        found.settings = {"interpreter": [sys.executable]}
        yield found
