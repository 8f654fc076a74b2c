"""What a neuron of each kind of layer is, with values worked out by hand."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.counting import hits_of

from guider_engine.spectrum.hits import LayerHits


def view(model: Any, x: Any, layer: int, **options: Any) -> tuple[LayerHits, Any]:
    """The layer's hits, and the means of its neurons over all tests, which all fail."""
    found = hits_of(model, x, np.ones(len(x), bool), **options)
    return found.hits.layers[layer,], found.statistics[layer,].mean[0]


IMAGE = np.array([[[[1.0, -1], [-3, 1]], [[4, -1], [2, -1]]]], np.float32)
"""One image, 2 × 2, two channels whose means are 1 and −0.5."""


def test_units_of_an_image_are_its_scalars() -> None:
    model = keras.Sequential([keras.Input((2, 2, 2)), layers.Activation("linear")])
    hits, mean = view(model, IMAGE, 0)
    assert (hits.shape, hits.neuron) == ((2, 2, 2), "unit")
    assert mean.tolist() == IMAGE.ravel().tolist()
    assert hits.counts[0].tolist() == (IMAGE.ravel() > 0.1).tolist()


def test_a_channel_is_the_mean_over_its_places() -> None:
    model = keras.Sequential([keras.Input((2, 2, 2)), layers.Activation("linear")])
    hits, mean = view(model, IMAGE, 0, neuron="channel")
    assert (hits.shape, hits.neuron) == ((2,), "mean of a channel over 2×2")
    assert mean.tolist() == [1.0, -0.5]
    assert hits.counts[0].tolist() == [1, 0]


def test_the_channels_of_a_layer_may_come_first() -> None:
    model = keras.Sequential([keras.Input((2, 2, 2)), layers.BatchNormalization(axis=1, epsilon=1e-12)])
    hits, mean = view(model, IMAGE.transpose(0, 3, 1, 2), 0, neuron="channel")
    assert hits.shape == (2,)
    np.testing.assert_allclose(mean, [1.0, -0.5], rtol=1e-6)


def recurrent(**options: Any) -> Any:
    """A layer whose state is tanh of its input: it forgets."""
    layer = layers.SimpleRNN(2, use_bias=False, return_sequences=True, **options)
    layer.build((None, None, 2))
    layer.set_weights([np.eye(2), np.zeros((2, 2))])
    return layer


SEQUENCE = np.array([[[0.5, -0.5], [2, 0.1], [-1, 0.3]]], np.float32)


@pytest.mark.parametrize(
    ("option", "neuron", "expected"),
    [
        ("all", "unit", np.tanh(SEQUENCE).ravel()),
        ("last", "unit", np.tanh([-1, 0.3])),
        ("max", "unit", np.tanh([2, 0.3])),
        ("all", "channel", np.tanh(SEQUENCE).mean(axis=1).ravel()),
        ("last", "channel", np.tanh([-1, 0.3])),
    ],
)
def test_time_steps_of_recurrent_layers(option: str, neuron: str, expected: Any) -> None:
    model = keras.Sequential([keras.Input((3, 2)), recurrent()])
    hits, mean = view(model, SEQUENCE, 0, recurrent=option, neuron=neuron)
    np.testing.assert_allclose(mean, expected, rtol=1e-6)
    assert hits.shape == ((3, 2) if (option, neuron) == ("all", "unit") else (2,))


def test_the_last_state_of_a_backward_pass_is_at_the_first_step() -> None:
    both = layers.Bidirectional(layers.SimpleRNN(1, use_bias=False, return_sequences=True))
    model = keras.Sequential([keras.Input((3, 1)), both])
    both.set_weights([np.ones((1, 1)), np.zeros((1, 1))] * 2)
    _, mean = view(model, SEQUENCE[:, :, :1], 0, recurrent="last")
    np.testing.assert_allclose(mean, np.tanh([-1, 0.5]), rtol=1e-6)


def embedding() -> Any:
    """Of three words, of which the first stands for padding."""
    layer = layers.Embedding(3, 2, mask_zero=True)
    layer.build((None, 4))
    layer.set_weights([np.array([[9.0, 9], [1, -1], [3, -2]])])
    return keras.Sequential([keras.Input((4,), dtype="int32"), layer])


WORDS = np.array([[1, 2, 0, 0]], np.int32)


def test_units_of_an_embedding_are_those_of_each_word_and_padding_is_silent() -> None:
    hits, mean = view(embedding(), WORDS, 0)
    assert hits.shape == (4, 2)
    assert mean.tolist() == [1, -1, 3, -2, 0, 0, 0, 0]
    assert hits.counts[0].tolist() == [1, 0, 1, 0, 0, 0, 0, 0]


def test_a_channel_of_an_embedding_is_the_mean_over_the_words_without_padding() -> None:
    hits, mean = view(embedding(), WORDS, 0, neuron="channel")
    assert hits.shape == (2,)
    assert mean.tolist() == [2, -1.5]


def test_the_maximum_over_time_leaves_padding_out() -> None:
    model = keras.Sequential([keras.Input((3, 2)), layers.Masking(9.0), recurrent()])
    x = np.array([[[9.0, 9], [-1, -0.5], [9, 9]]], np.float32)
    _, mean = view(model, x, 1, recurrent="max")
    np.testing.assert_allclose(mean, np.tanh([-1, -0.5]), rtol=1e-6)


def test_a_channel_of_attention_is_a_head() -> None:
    given = keras.Input((3, 4))
    attention = layers.MultiHeadAttention(2, key_dim=2, use_bias=False)
    model = keras.Model(given, attention(given, given))
    value = np.zeros((4, 2, 2))
    value[0, 0] = value[1, 1] = 1.0  # head 0 sees the first number of a step, head 1 the second
    query, key, _, output = attention.get_weights()
    attention.set_weights([0 * query, 0 * key, value, output])  # all steps attend to all alike
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    hits, mean = view(model, x, 1, neuron="channel")
    assert (hits.shape, hits.neuron) == ((2,), "mean of a head over 3×2")
    np.testing.assert_allclose(mean, [4.0, 5.0], rtol=1e-6)
    units, _ = view(model, x, 1)
    assert units.shape == (3, 4)


def test_a_shared_layer_has_the_neurons_of_all_its_calls() -> None:
    given = keras.Input((2,))
    shared = layers.Activation("linear")
    model = keras.Model(given, shared(layers.Rescaling(2.0)(shared(given))))
    place = [layer.name for layer in model.layers].index(shared.name)
    hits, mean = view(model, np.array([[1.0, -1]], np.float32), place)
    assert hits.shape == (4,)
    assert hits.neuron == "unit, of 2 outputs"
    assert mean.tolist() == [1, -1, 2, -2]


def test_half_precision_and_whole_numbers_count_as_they_are() -> None:
    given = keras.Input((2,), dtype="int32")
    half = layers.Rescaling(0.5, dtype="float16")
    model = keras.Model(given, half(given))
    x = np.array([[1, -4]], np.int32)
    assert view(model, x, 0)[1].tolist() == [1, -4]
    assert view(model, x, 1)[1].tolist() == [0.5, -2]


def test_each_input_layer_has_its_own_input() -> None:
    one, two = keras.Input((2,), name="one"), keras.Input((3,), name="two")
    model = keras.Model({"two": two, "one": one}, layers.Concatenate()([one, two]))
    x = {"one": np.array([[1.0, 2]], np.float32), "two": np.array([[3.0, 4, 5]], np.float32)}
    found = hits_of(model, x, [True])
    means = {model.layers[p[0]].name: s.mean[0].tolist() for p, s in found.statistics.items()}
    assert means["one"] == [1, 2]
    assert means["two"] == [3, 4, 5]
