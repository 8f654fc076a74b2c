"""What a model says of its outputs: names, shapes, activations, losses."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from guider_engine.load.describe import summarize
from guider_engine.load.loss import loss_of
from guider_engine.load.model import LoadedModel, described, load_model
from guider_engine.wire import Inputs, ModelOutput

CROSS = "sparse_categorical_crossentropy"


def outputs(model: Any) -> tuple[ModelOutput, ...]:
    return summarize(model, loss_of(model)).outputs


def of_file(model: Any, path: Path) -> tuple[ModelOutput, ...]:
    model.save(path)
    return load_model(Inputs(str(path), (), str(path.parent))).summary.outputs


def softmax_inside() -> Any:
    return keras.Sequential([layers.Input((4,)), layers.Dense(3), layers.Softmax()])


@pytest.mark.parametrize(
    ("put_out", "activation"),
    [
        (lambda x: layers.Dense(3)(x), "linear"),
        (lambda x: layers.Dense(3, activation="sigmoid")(x), "sigmoid"),
        (lambda x: layers.Activation("tanh")(layers.Dense(3)(x)), "tanh"),
        (lambda x: layers.Softmax()(layers.Dense(3)(x)), "softmax"),
        (lambda x: layers.Dense(3, activation=layers.LeakyReLU())(x), "leaky_relu"),
        (lambda x: keras.ops.sigmoid(layers.Dense(3)(x)), "sigmoid"),
        (lambda x: keras.ops.softmax(layers.Dense(3)(x)), "softmax"),
        (
            lambda x: layers.Reshape((3, 1))(layers.Dropout(0.5)(layers.Dense(3, activation="softmax")(x))),
            "softmax",
        ),
        (lambda x: softmax_inside()(x), "softmax"),
        (
            lambda x: layers.TimeDistributed(layers.Dense(1, activation="relu"))(layers.Reshape((4, 1))(x)),
            "relu",
        ),
        (lambda x: layers.Add()([x, x]), None),
    ],
)
def test_activation_of_the_layer_that_puts_out(put_out: Callable[[Any], Any], activation: str | None) -> None:
    x = keras.Input((4,))
    (output,) = outputs(keras.Model(x, put_out(x)))
    assert output.activation == activation


def test_outputs_in_the_order_and_by_the_names_of_what_the_model_returns(tmp_path: Path) -> None:
    x = keras.Input((4,))
    one, two = layers.Dense(3, activation="softmax", name="one")(x), layers.Dense(1, name="two")(x)
    listed = keras.Model(x, [two, one])
    listed.compile(loss=["mse", CROSS])
    named = keras.Model(x, {"kind": one, "age": two})
    named.compile(loss={"age": "mae", "kind": CROSS})
    expected_of_list = (
        ModelOutput("two", (None, 1), "linear", "mse", False),
        ModelOutput("one", (None, 3), "softmax", CROSS, False),
    )
    expected_of_names = (
        ModelOutput("kind", (None, 3), "softmax", CROSS, False),
        ModelOutput("age", (None, 1), "linear", "mae", False),
    )
    assert outputs(listed) == of_file(listed, tmp_path / "list.keras") == expected_of_list
    assert outputs(named) == of_file(named, tmp_path / "names.keras") == expected_of_names
    assert list(named(np.zeros((1, 4)))) == ["kind", "age"]


def test_one_loss_for_all_outputs_and_an_output_without(tmp_path: Path) -> None:
    x = keras.Input((4,))
    model = keras.Model(x, [layers.Dense(2, name="a")(x), layers.Dense(2, name="b")(x)])
    model.compile(loss="mse")
    assert [output.loss for output in of_file(model, tmp_path / "m.keras")] == ["mse", "mse"]
    model.compile(loss={"a": "mse"})
    assert [output.loss for output in of_file(model, tmp_path / "m.keras")] == ["mse", None]
    model.compile(loss=["mse", None])
    assert [output.loss for output in outputs(model)] == ["mse", None]


def mine(y: Any, p: Any) -> Any:
    return keras.ops.mean(y - p)


@keras.saving.register_keras_serializable("tests")
class Mine(keras.losses.Loss):  # type: ignore[misc]
    def call(self, y: Any, p: Any) -> Any:
        return keras.ops.mean(y - p)


@pytest.mark.parametrize(
    ("loss", "name", "from_logits"),
    [
        ("binary_crossentropy", "binary_crossentropy", False),
        (keras.losses.BinaryCrossentropy(), "BinaryCrossentropy", False),
        (keras.losses.CategoricalCrossentropy(from_logits=True), "CategoricalCrossentropy", True),
        (keras.losses.MeanSquaredError(), "MeanSquaredError", False),
        (keras.losses.binary_crossentropy, "binary_crossentropy", False),
        (mine, "mine", None),
        (Mine(), "Mine", None),
        (None, None, False),
    ],
)
def test_from_logits_is_what_the_loss_was_made_with(
    tmp_path: Path, loss: Any, name: str, from_logits: Any
) -> None:
    model = keras.Sequential([layers.Input((4,)), layers.Dense(1)])
    if loss is not None:
        model.compile(loss=loss)
    (written,), (held,) = of_file(model, tmp_path / "m.keras"), outputs(model)
    assert (written.loss, written.from_logits) == (name, from_logits)
    assert held.from_logits == from_logits


def test_partial_function_with_from_logits() -> None:
    model = keras.Sequential([layers.Input((4,)), layers.Dense(1)])
    model.compile(loss=functools.partial(keras.losses.binary_crossentropy, from_logits=True))
    (output,) = outputs(model)
    assert (output.loss, output.from_logits) == ("binary_crossentropy", True)


def test_subclassed_model_knows_its_outputs_by_its_loss_alone() -> None:
    class Two(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = layers.Dense(1), layers.Dense(2)

        def call(self, x: Any) -> Any:
            return {"a": self.a(x), "b": self.b(x)}

    model = Two()
    assert outputs(model) == ()
    model.compile(loss={"a": "mse", "b": "mae"})
    assert outputs(model) == (
        ModelOutput("a", None, None, "mse", False),
        ModelOutput("b", None, None, "mae", False),
    )


def test_model_that_was_never_called_is_described_once_it_was() -> None:
    model = keras.Sequential([layers.Dense(3, activation="softmax")])
    model.compile(loss=CROSS)
    loaded = LoadedModel(model, summarize(model, loss_of(model)))
    assert (loaded.summary.layers[0].parameters, loaded.summary.outputs) == (0, ())
    model(np.zeros((1, 4)))
    known = described(loaded)
    assert known.summary.layers[0].parameters == 15
    (output,) = known.summary.outputs
    assert (output.activation, output.loss) == ("softmax", CROSS)
    assert described(known) is known


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_outputs_of_keras_2() -> None:
    tf_keras = pytest.importorskip("tf_keras")
    x = tf_keras.Input((4,))
    inside = tf_keras.Sequential(
        [tf_keras.layers.Input((4,)), tf_keras.layers.Dense(2, activation="relu")], name="in"
    )
    model = tf_keras.Model(
        x, {"a": tf_keras.layers.Flatten()(inside(x)), "b": tf_keras.layers.Dense(1, name="two")(x)}
    )
    model.compile(
        loss={"a": tf_keras.losses.MeanSquaredError(), "b": tf_keras.losses.BinaryCrossentropy(True)}
    )
    assert outputs(model) == (
        ModelOutput("a", (None, 2), "relu", "mean_squared_error", False),
        ModelOutput("b", (None, 1), "linear", "binary_crossentropy", True),
    )
