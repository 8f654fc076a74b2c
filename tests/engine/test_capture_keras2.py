"""Programs that use Keras 2 by its name today, ``tf_keras``."""

from __future__ import annotations

import importlib.util
import sys

import pytest
from tests.engine.conftest import WatchProgram, quiet

from guider_engine.errors import EngineFailure
from guider_engine.session import Session
from guider_engine.wire import Inputs

pytestmark = pytest.mark.filterwarnings("ignore")

START = """
import numpy as np
import tensorflow as tf
import tf_keras as keras
from tf_keras.layers import LSTM, Bidirectional, Dense, Reshape
x, y = np.random.rand(80, 4).astype("float32"), np.arange(80) % 3
"""


def test_a_program(watch: WatchProgram, project: object) -> None:
    found = watch(
        START
        + """
model = keras.Sequential()
model.add(Dense(5, input_dim=4,
    activation="relu", name="ü"[:0] + "first"))
for units in (3, 4):
    model.add(Dense(units))
model.add(Dense(3, activation="softmax"))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=3, validation_split=0.2, verbose=0)
def batches():
    while True:
        yield x[:8], y[:8]
model.fit(batches(), steps_per_epoch=3, verbose=0)
copy = keras.models.clone_model(model)
copy.predict(x, verbose=0)
"""
    )
    model, copy = found.record.models
    assert (model.name, model.data_kind, model.trained, model.epochs) == ("model", "validation", True, 4)
    assert (copy.name, copy.data_kind, copy.trained) == ("copy", "test", False)
    for entry in (model, copy):
        origins = [layer.origin for layer in entry.model.layers if layer.class_name != "InputLayer"]
        assert [origin and origin.line + 1 for origin in origins] == [9, 12, 12, 13]
    assert found.record.strays == ()
    assert found.record.versions["keras"].startswith("2.")
    assert sys.modules["tf_keras"].Model.fit.__module__.startswith("tf_keras")

    inputs = Inputs(model.path, (model.tests,), root=".")
    result = Session().localize(inputs, quiet, quiet)
    assert result.model == model.model
    assert result.tests.total == 16


def test_a_program_with_both(watch: WatchProgram) -> None:
    record = watch(
        START
        + """
import keras as keras3
del keras
model = keras3.Sequential([keras3.Input((4,)), keras3.layers.Dense(3, activation="softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(x, y, epochs=2, verbose=0)
"""
    ).record
    assert record.versions["keras"].startswith("3.")
    assert record.models[0].epochs == 2


def test_loops_and_wrappers(watch: WatchProgram) -> None:
    found = watch(
        START
        + """
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.shape = Reshape((1, 4))
        self.both = Bidirectional(LSTM(2))
        self.out = Dense(3, activation="softmax")
    def call(self, x):
        return self.out(self.both(self.shape(x)))
net = Net()
optimizer = keras.optimizers.SGD(0.1)
loss = keras.losses.SparseCategoricalCrossentropy()
@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        value = loss(y, net(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(value, net.trainable_variables), net.trainable_variables))
for i in range(3):
    step(x[:8], y[:8])
x_test, y_test = x[:10], y[:10]
"""
    )
    (net,) = found.record.models
    assert (net.name, net.trained, net.data_kind) == ("net", True, "test")
    assert [layer.origin and layer.origin.line + 1 for layer in net.model.layers] == [11, 12, 13]
    assert found.record.strays == ()


def test_keras_2_that_is_not_there_is_named(watch: WatchProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(EngineFailure, match=r"tf_keras is not installed .* -m pip install ") as caught:
        watch("print(1)", legacy_keras=True)
    assert caught.value.failure.code == "legacy-keras-missing"
