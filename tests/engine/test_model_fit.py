"""Tests are fed to a model as it takes them, or a word says why they cannot be."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from guider_engine.backend import backend_of
from guider_engine.errors import EngineFailure
from guider_engine.fit import Fit, fit
from guider_engine.load.describe import summarize
from guider_engine.load.inputs import ModelInput, inputs_of
from guider_engine.load.loss import loss_of
from guider_engine.load.model import reset_states
from guider_engine.load.tests.testset import Block

RNG = np.random.default_rng(0)


def fitted(model: Any, inputs: Any) -> Fit:
    first = (
        next(iter(inputs.values()))
        if isinstance(inputs, dict)
        else inputs[0]
        if isinstance(inputs, tuple)
        else inputs
    )
    return fit(model, summarize(model, loss_of(model)), Block(inputs, np.zeros(len(first))))


def run(model: Any, inputs: Any) -> Any:
    """As the engine does, within a graph; op by op it is the same."""
    how = fitted(model, inputs)
    backend = backend_of(model)
    reset_states(model)
    eager = backend.call_model(model, how.cast(backend.ops, how.adapt(inputs)))
    reset_states(model)
    step = tf.function(
        lambda fed: model(how.cast(backend_of(model).ops, fed), training=False), autograph=False
    )
    found = np.asarray(step(how.adapt(inputs)))
    assert (
        eager.tolist() == found.tolist() if found.dtype.kind == "O" else np.allclose(eager, found, atol=1e-3)
    )
    return found


def refused(model: Any, inputs: Any, code: str) -> str:
    with pytest.raises(EngineFailure) as caught:
        fitted(model, inputs)
    assert (caught.value.failure.kind, caught.value.failure.code) == ("input", code)
    return caught.value.failure.message


def images(*shape: int) -> Any:
    return keras.Sequential([layers.Input(shape), layers.Flatten()])


@pytest.mark.parametrize("given", [(28, 28, 1), (28, 28), (784,), (1, 28, 28), (28, 1, 28)])
def test_inputs_of_the_right_size_are_reshaped(given: tuple[int, ...]) -> None:
    x = RNG.integers(0, 255, (3, *given), dtype=np.uint8)
    model = images(28, 28, 1)
    adapted = fitted(model, x).adapt(x)
    assert np.shares_memory(adapted, x)
    assert (adapted.dtype, adapted.shape) == (np.uint8, (3, 28, 28, 1))
    assert (run(model, x) == x.reshape(3, 784)).all()
    assert run(model, x).dtype == np.float32


@pytest.mark.parametrize(
    ("shape", "given"),
    [((None, None, 1), (5, 4)), ((None, 4), (5, 4)), ((None, 4), (5, 4, 1)), ((1,), ()), ((), (1,))],
)
def test_axes_of_one_are_added_and_removed(shape: tuple[int | None, ...], given: tuple[int, ...]) -> None:
    x = RNG.normal(size=(3, *given)).astype("float32")
    tensor = keras.Input(shape)
    model = keras.Model(tensor, layers.Activation("linear")(tensor))
    assert run(model, x).reshape(3, -1).tolist() == x.reshape(3, -1).tolist()
    assert len(run(model, x).shape) == 1 + len(shape)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((4,), ["(4,)", "(3, 32, 16)"]),
        ((3, 32), ["(3, 32)"]),
        ((32, 16, 3), ["(32, 16, 3)", "(3, 32, 16)", "transpose"]),
        ((), ["()"]),
    ],
)
def test_inputs_of_another_shape(given: tuple[int, ...], words: list[str]) -> None:
    message = refused(images(3, 32, 16), np.zeros((2, *given)), "input-shape")
    assert [word for word in words if word not in message] == []


def difference(structure: str) -> Any:
    """2·a − b of two inputs, called with a list or a dictionary of them."""
    a, b = keras.Input((2,), name="a"), keras.Input((2, 1), name="b")
    out = keras.ops.subtract(keras.ops.multiply(a, 2.0), layers.Flatten()(b))
    return keras.Model([a, b] if structure == "list" else {"b": b, "a": a}, out)


A, B = np.array([[1, 2], [3, 4]], "float32"), np.array([[5, 5], [6, 6]], "float32")
ANSWERS = [[-3, -1], [0, 2]]


@pytest.mark.parametrize("structure", ["list", "dict"])
def test_several_inputs_by_name_whatever_their_order(structure: str) -> None:
    model = difference(structure)
    assert {wanted.name: wanted.shape for wanted in inputs_of(model)} == {"a": (2,), "b": (2, 1)}
    assert run(model, {"b": B, "a": A, "ids": np.arange(2)}).tolist() == ANSWERS


def test_several_inputs_in_order() -> None:
    assert run(difference("list"), (A, B)).tolist() == ANSWERS


@pytest.mark.parametrize("structure", ["list", "dict"])
def test_several_inputs_that_do_not_fit(structure: str) -> None:
    model = difference(structure)
    message = refused(model, {"a": A, "c": B}, "input-names")
    assert "no b, only a, c" in message
    assert "the test data have 1" in refused(model, A, "input-count")
    assert "the test data have 3" in refused(model, (A, B, B), "input-count")
    assert "of input b" in refused(model, {"a": A, "b": np.zeros((2, 3))}, "input-shape")


def test_one_input_by_any_name() -> None:
    assert run(images(2), {"whatever": A}).tolist() == A.tolist()
    refused(images(2), (A, B), "input-count")


def test_keras_2_takes_several_inputs() -> None:
    tf_keras = pytest.importorskip("tf_keras")
    a, b = tf_keras.Input((2,), name="a"), tf_keras.Input((2, 1), name="b")
    out = tf_keras.layers.Subtract()([a, tf_keras.layers.Flatten()(b)])
    for inputs in ([a, b], {"a": a, "b": b}):
        model = tf_keras.Model(inputs, out)
        assert inputs_of(model) == (ModelInput("a", (2,), "float32"), ModelInput("b", (2, 1), "float32"))
        assert run(model, {"b": B, "a": A}).tolist() == (A - B).tolist()


@pytest.mark.parametrize("shape", [(), (1,)])
def test_text_is_fed_to_the_vectorization_inside_the_model(shape: tuple[int, ...]) -> None:
    """Vocabulary: 0 padding, 1 unknown, 2 good, 3 bad."""
    model = keras.Sequential(
        [
            layers.Input(shape, dtype="string"),
            layers.TextVectorization(vocabulary=["good", "bad"], output_sequence_length=3),
        ]
    )
    for x in (np.array(["good bad", "so good"]), np.array([["good bad"], ["so good"]])):
        assert run(model, x).tolist() == [[2, 3, 0], [1, 2, 0]]
    assert "takes text" in refused(model, np.zeros((2, 1)), "input-type")
    assert "are text" in refused(images(1), np.array([["a"]]), "input-type")


def test_preprocessing_inside_the_model() -> None:
    """Colours are looked up (red is 1), numbers are normalized by mean 2 and variance 4; both are concatenated."""
    colour, number = keras.Input((1,), dtype="string", name="colour"), keras.Input((1,), name="number")
    found = layers.StringLookup(vocabulary=["red", "blue"], output_mode="int")(colour)
    normalized = layers.Normalization(mean=2.0, variance=4.0)(layers.Rescaling(2.0)(number))
    model = keras.Model(
        [colour, number], layers.Concatenate()([keras.ops.cast(found, "float32"), normalized])
    )
    x = {"number": np.array([[1], [3]]), "colour": np.array(["red", "green"])}
    assert run(model, x).tolist() == [[1, 0], [0, 2]]


def test_ragged_input_of_keras_3_without_the_padding() -> None:
    """Mean of the tokens before the padding: 2, and (1 + 0 + 3) / 3."""
    tokens = keras.Input((None,), dtype="int32", ragged=True)
    embedded = layers.Embedding(5, 1, embeddings_initializer=lambda shape, dtype: np.arange(5)[:, None])(
        tokens
    )
    model = keras.Model(tokens, layers.GlobalAveragePooling1D()(embedded))
    x = np.array([[2, 2, 0, 0], [1, 0, 3, 0]])
    assert run(model, x).ravel() == pytest.approx([2, 4 / 3])
    assert [code for code, _ in fitted(model, x).notices] == ["ragged-input"]


def test_ragged_input_of_keras_2() -> None:
    tf_keras = pytest.importorskip("tf_keras")
    tokens = tf_keras.Input((None,), dtype="int32", ragged=True)
    embedded = tf_keras.layers.Embedding(5, 1, embeddings_initializer="ones")(tokens)
    model = tf_keras.Model(tokens, tf_keras.layers.Lambda(lambda x: tf.reduce_sum(x, axis=1))(embedded))
    assert run(model, np.array([[2, 2, 0], [1, 0, 3]])).ravel().tolist() == [2, 3]


def test_sparse_input_is_made_from_dense_tests() -> None:
    tensor = keras.Input((3,), sparse=True)
    dense = layers.Dense(1, kernel_initializer="ones")(tensor)
    assert run(keras.Model(tensor, dense), np.array([[1, 0, 2], [0, 0, 5]])).ravel().tolist() == [3, 5]


def test_masks_reach_the_layers() -> None:
    """The last step before the padding decides: an LSTM of zeros would answer alike for all."""
    model = keras.Sequential([layers.Input((4,)), layers.Embedding(5, 2, mask_zero=True), layers.LSTM(3)])
    x = np.array([[1, 2, 0, 0], [1, 2, 3, 4]])
    padded = run(model, x)
    short = keras.Sequential([layers.Input((2,)), *model.layers])
    assert padded[0] == pytest.approx(np.asarray(short(x[:1, :2]))[0], abs=1e-6)


def test_mixed_precision() -> None:
    with _policy("mixed_float16"):
        model = keras.Sequential([layers.Input((2,)), layers.Dense(1, kernel_initializer="ones")])
    out = run(model, A.astype("float64"))
    assert (out.dtype, out.ravel().tolist()) == (np.float16, [3, 7])


def test_fixed_batch_size() -> None:
    reshaped = keras.Sequential(
        [layers.Input(batch_shape=(2, 3)), layers.Lambda(lambda x: keras.ops.reshape(x, (2, 3)))]
    )
    assert fitted(reshaped, np.zeros((5, 3))).batch == 2


def test_size_of_the_first_call_is_no_fixed_batch_size() -> None:
    model = keras.Sequential([layers.Dense(1)])
    model(np.zeros((7, 3)))
    assert inputs_of(model)[0].batch == 7
    assert fitted(model, np.zeros((5, 3))).batch is None


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
def test_stateful_layers_begin_anew(library: str) -> None:
    keras_ = pytest.importorskip(library)
    lstm = keras_.layers.LSTM(3, stateful=True, name="memory")
    model = keras_.Sequential([keras_.layers.Input(batch_shape=(2, 4, 1)), lstm])
    x = RNG.normal(size=(2, 4, 1)).astype("float32")
    first = run(model, x)
    assert np.asarray(model(x)) != pytest.approx(first)
    assert run(model, x) == pytest.approx(first)
    how = fitted(model, x)
    assert how.batch == 2
    assert [(code, "memory" in message) for code, message in how.notices] == [("stateful-layers", True)]


def test_stateful_layer_within_another() -> None:
    wrapped = layers.Bidirectional(layers.GRU(2, stateful=True), name="both")
    model = keras.Sequential([layers.Input(batch_shape=(2, 3, 1)), wrapped])
    x = RNG.normal(size=(2, 3, 1)).astype("float32")
    assert run(model, x) == pytest.approx(run(model, x))
    assert [(code, "both keeps" in message) for code, message in fitted(model, x).notices] == [
        ("stateful-layers", True)
    ]


def test_inputs_without_a_name_are_called_like_their_layer() -> None:
    model = keras.Sequential([layers.Input((2,)), layers.Dense(1)])
    tensor = keras.Input((2,))
    assert inputs_of(keras.Model(tensor, layers.Dense(1)(tensor)))[0].name.startswith("input_layer")
    assert inputs_of(model)[0].name.startswith("input_layer")


class Sum(keras.Model):  # type: ignore[misc]
    """Declares no inputs."""

    def call(self, x: Any) -> Any:
        if isinstance(x, dict):
            return x["a"] + x["b"]
        return x[0] + x[1] if isinstance(x, (list, tuple)) else x


def test_subclassed_model_takes_what_it_takes() -> None:
    assert inputs_of(Sum()) == ()
    both = (A + B).tolist()
    assert run(Sum(), {"a": A, "b": B}).tolist() == both
    assert run(Sum(), (A.astype("float64"), B)).tolist() == both
    assert run(Sum(), np.array([[1, 2]])).dtype == np.int64
    assert run(Sum(), np.array(["text"])).tolist() == [b"text"]


def _policy(name: str) -> Any:
    import contextlib

    @contextlib.contextmanager
    def within() -> Any:
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(name)
        try:
            yield
        finally:
            keras.config.set_dtype_policy(before)

    return within()
