"""JAX and PyTorch give what TensorFlow gives: the same files, localized by a process of each."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine import backend_program

from guider_engine.spectrum.hits import HUGE, MEASURED
from guider_engine.wire import Inputs

PROGRAM = Path(backend_program.__file__)
TESTS = 60


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, or where it comes from, with tests, as arrays of an .npz, and options."""

    model: Any
    arrays: dict[str, Any]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(3).normal(size=(TESTS, *shape)).astype(np.float32)


def words(steps: int) -> Any:
    """Word numbers, padded with zeros."""
    random = np.random.default_rng(4)
    found = random.integers(1, 9, (TESTS, steps))
    return np.where(np.arange(steps) < random.integers(1, steps + 1, (TESTS, 1)), found, 0)


def classes(number: int) -> Any:
    return np.arange(TESTS) % number


def certain(units: int) -> Any:
    """Classes of different probabilities, so that the range of confidences is not of the size of rounding errors."""
    return layers.Dense(units, "softmax", kernel_initializer=keras.initializers.RandomNormal(stddev=4))


def mlp() -> Case:
    model = keras.Sequential(
        [keras.Input((5,)), layers.Dense(7, "relu"), layers.Dense(6, "tanh"), layers.Dense(3, "softmax")]
    )
    return Case(model, {"x": numbers(5), "y": classes(3)})


def regression() -> Case:
    model = keras.Sequential([keras.Input((5,)), layers.Dense(7, "relu"), layers.Dense(2)])
    model.compile(loss="mse")
    return Case(
        model, {"x": numbers(5), "y": numbers(2)}, {"tolerance": "0.5 iqr", "neurons_per_layer": None}
    )


def cnn() -> Case:
    model = keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            layers.Conv2D(6, 3, activation="relu"),
            layers.BatchNormalization(moving_mean_initializer="random_normal"),
            layers.MaxPooling2D(),
            layers.Dropout(0.5),
            layers.Flatten(),
            layers.Dense(3, "softmax"),
        ]
    )
    return Case(model, {"x": numbers(8, 8, 2), "y": classes(3)})


def cnn_channels() -> Case:
    return dataclasses.replace(cnn(), options={"neuron": "channel"})


def large_layers() -> Case:
    """Of which only some neurons are measured; of the largest, in single precision."""
    model = keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(MEASURED + 1),
            layers.Dense(2),
            layers.Dense(HUGE + 1, "relu"),
            layers.Reshape((HUGE + 1, 1)),
            layers.GlobalMaxPooling1D(),
            certain(3),
        ]
    )
    return Case(model, {"x": numbers(3), "y": classes(3)}, {"neurons_per_layer": None})


def lstm() -> Case:
    model = keras.Sequential(
        [
            keras.Input((6, 3)),
            layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
            layers.RNN(layers.StackedRNNCells([layers.GRUCell(5), layers.SimpleRNNCell(3)])),
            layers.Dense(3, "softmax"),
        ]
    )
    return Case(model, {"x": numbers(6, 3), "y": classes(3)})


def masked() -> Case:
    model = keras.Sequential(
        [
            keras.Input((7,), dtype="int32"),
            layers.Embedding(9, 4, mask_zero=True),
            layers.LSTM(5, return_sequences=True),
            layers.GRU(4),
            layers.Dense(1, "sigmoid"),
        ]
    )
    return Case(model, {"x": words(7), "y": classes(2)})


def masked_channels() -> Case:
    return dataclasses.replace(masked(), options={"neuron": "channel", "recurrent": "max"})


def tagged() -> Case:
    """A class for each word that is not padding."""
    inputs = keras.Input((7,), dtype="int32")
    x = layers.Embedding(9, 4, mask_zero=True)(inputs)
    outputs = certain(2)(layers.LSTM(5, return_sequences=True)(x))
    return Case(keras.Model(inputs, outputs), {"x": words(7), "y": words(7) % 2}, {"accuracy": 0.5})


def attention() -> Case:
    inputs = keras.Input((5, 4))
    x = layers.MultiHeadAttention(3, 2)(inputs, inputs)
    x = layers.TimeDistributed(layers.Dense(4, "relu"))(layers.LayerNormalization()(x))
    outputs = layers.Dense(3, "softmax")(layers.GlobalAveragePooling1D()(x))
    return Case(keras.Model(inputs, outputs), {"x": numbers(5, 4), "y": classes(3)}, {"neuron": "channel"})


def two_inputs() -> Case:
    a, b = keras.Input((3,), name="a"), keras.Input((4, 2), name="b")
    x = layers.Concatenate()([layers.Dense(4, "relu")(a), layers.Flatten()(b)])
    model = keras.Model({"a": a, "b": b}, layers.Dense(2, "softmax")(x))
    return Case(model, {"a": numbers(3), "b": numbers(4, 2), "y": classes(2)})


def two_outputs() -> Case:
    inputs = keras.Input((3,))
    x = layers.Dense(6, "relu")(inputs)
    kind = layers.Dense(3, "softmax", name="kind")(x)
    size = layers.Dense(1, name="size")(x)
    model = keras.Model(inputs, {"kind": kind, "size": size})
    model.compile(loss={"kind": "sparse_categorical_crossentropy", "size": "mse"})
    return Case(
        model, {"x": numbers(3), "y_kind": classes(3), "y_size": numbers(1)[::-1]}, {"tolerance": "1 iqr"}
    )


def stateful() -> Case:
    """States go from batch to batch."""
    model = keras.Sequential(
        [keras.Input(batch_shape=(8, 2, 3)), layers.LSTM(4, stateful=True), layers.Dense(3, "softmax")]
    )
    return Case(model, {"x": numbers(2, 3), "y": classes(3)})


def autoencoder() -> Case:
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3, "relu"), layers.Dense(6)])
    model.compile(loss="mse")
    return Case(model, {"x": numbers(6), "y": numbers(6)})


def judged() -> Case:
    """By a function of the user, which the compiled step calls."""
    return dataclasses.replace(mlp(), options={"oracle": "project:judge"})


def untraceable() -> Case:
    return Case("project:untraceable", {"x": numbers(3), "y": classes(3)})


CASES: dict[str, Callable[[], Case]] = {
    make.__name__: make
    for make in (
        mlp, regression, cnn, cnn_channels, large_layers, lstm, masked, masked_channels, tagged, attention,
        two_inputs, two_outputs, stateful, autoencoder, judged, untraceable,
    )
}  # fmt: skip
PROJECT = """
import keras
import numpy as np

def judge(inputs, labels, outputs):
    return outputs.argmax(axis=1) == labels, outputs.max(axis=1)

class Branching(keras.layers.Layer):
    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)

    def call(self, x):
        return x if float(keras.ops.max(x)) < 100 else -x

def untraceable():
    outputs = keras.layers.Dense(3, "softmax")
    model = keras.Sequential([keras.Input((3,)), Branching(), outputs])
    outputs.set_weights([np.diag([1, 2, 3]), np.zeros(3)])
    return model
"""

TRAIN = """
import keras
import numpy as np

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, "softmax", kernel_initializer="identity")])
model.compile(keras.optimizers.SGD(0.0), "sparse_categorical_crossentropy")
x, y = np.eye(3)[[0, 1, 2, 0]], np.array([0, 1, 2, 1])
model.fit(x, y, epochs=2, validation_data=(x, y), verbose=0)
"""


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What is asked of each backend: files that TensorFlow wrote; each model twice, with other weights."""
    folder = tmp_path_factory.mktemp("backends")
    (folder / "project.py").write_text(PROJECT, encoding="utf-8")
    found = {}
    for name, make in CASES.items():
        keras.utils.set_random_seed(5)
        case = make()
        np.savez(folder / f"{name}.npz", **case.arrays)
        inputs = Inputs(case.model, (str(folder / f"{name}.npz"),), str(folder), **case.options)
        if isinstance(case.model, str):
            found[name] = [dataclasses.asdict(inputs)]
            continue
        files = [str(folder / f"{name}{number}.keras") for number in (1, 2)[: 2 if name in RETRAINED else 1]]
        for file in files:
            case.model.save(file)
            case.model.set_weights([weight * -0.7 for weight in case.model.get_weights()])
        found[name] = [dataclasses.asdict(dataclasses.replace(inputs, model=file)) for file in files]
    return found


RETRAINED = ("mlp", "lstm", "stateful")
"""Localized once more with other weights."""


@pytest.fixture(scope="module")
def on_tensorflow(requests: dict[str, list[Any]]) -> dict[str, Any]:
    found = {name: backend_program.answers(asked) for name, asked in requests.items()}
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


@pytest.fixture(scope="module", params=["jax", "torch"])
def backend(request: pytest.FixtureRequest) -> str:
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@pytest.fixture(scope="module")
def on_both(
    backend: str,
    requests: dict[str, list[Any]],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answers of TensorFlow, and those of one process on another backend, which works at the same time."""
    folder = tmp_path_factory.mktemp(backend)
    (folder / "requests.json").write_text(json.dumps(requests), encoding="utf-8")
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    command = [sys.executable, str(PROGRAM), str(folder / "requests.json"), str(folder / "results.json")]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        on_tensorflow = request.getfixturevalue("on_tensorflow")
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert found["backend"] == backend
    return on_tensorflow, found


@pytest.mark.parametrize("name", CASES)
def test_scores_and_counts_are_those_of_tensorflow(
    name: str, on_both: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    for expected, found in zip(*(answers[name] for answers in on_both), strict=True):
        wanted, result = expected["localization"], found["localization"]
        assert result["tests"] == wanted["tests"]
        assert 0 < wanted["tests"]["failed"] < TESTS
        assert result["task_reason"] == wanted["task_reason"]
        assert [shown(layer) for layer in result["layers"]] == [shown(layer) for layer in wanted["layers"]]
        np.testing.assert_allclose(scores(result), scores(wanted), rtol=0, atol=1e-6)


def shown(layer: Any) -> Any:
    return layer["path"], layer["neuron"], layer["neurons"], layer["suspicious"], layer["dead"]


def scores(localization: Any) -> list[float]:
    return [layer["suspiciousness"] for layer in localization["layers"]]


def test_other_weights_need_no_other_trace(
    backend: str, on_both: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    first, second = on_both[1]["mlp"]
    assert scores(first["localization"]) != scores(second["localization"])
    assert second["traces"] == {"jax": 1, "torch": 2}[backend]  # on PyTorch, it runs op by op


def test_a_model_that_cannot_be_traced_runs_op_by_op(
    backend: str, on_both: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    of_jax = backend == "jax"
    eager = {name: answers[0]["eager"] for name, answers in on_both[1].items() if name in CASES}
    assert eager == {name: of_jax and name == "untraceable" for name in CASES}
    notices = on_both[1]["untraceable"][0]["localization"]["notices"]
    assert ("eager" in [notice["code"] for notice in notices]) == of_jax


def test_a_program_is_watched(on_both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    record, found = (on_both[1]["captured"][key] for key in ("record", "localization"))
    (model,) = record["models"]
    assert (model["trained"], model["epochs"], model["data_kind"]) == (True, 2, "validation")
    assert model["model"]["layers"][0]["origin"]["line"] == 4
    assert not record["notices"]
    assert (found["tests"]["passed"], found["tests"]["failed"]) == (3, 1)
