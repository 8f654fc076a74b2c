"""Every kind of model is fed and observed, with hits that are counted by hand: how many failing, how many passing tests
make a neuron put out more than 0.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from guider_engine.backend import backend_of
from guider_engine.fit import Fit, fit
from guider_engine.load.describe import summarize
from guider_engine.load.loss import loss_of
from guider_engine.load.model import reset_states
from guider_engine.load.tests.testset import Block, map_arrays
from guider_engine.oracle.verdict import Oracle, Verdict
from guider_engine.spectrum.batches import batches
from guider_engine.spectrum.hits import count_hits, make_step
from guider_engine.spectrum.taps import taps_of
from guider_engine.wire import Inputs

FAILED = [1, 0, 0, 1, 0]
"""Of five tests the first and the fourth."""


@dataclass(frozen=True)
class Tests:
    """Five tests."""

    __test__ = False

    inputs: Any
    total = 5
    description = ""
    notices: tuple[tuple[str, str], ...] = ()
    available = None
    classes: tuple[str, ...] = ()

    def blocks(self, rows: int) -> Iterator[Block]:
        labels = np.array(FAILED, np.float32)
        for start in range(0, self.total, rows):
            part = slice(start, start + rows)
            yield Block(map_arrays(lambda array, part=part: array[part], self.inputs), labels[part])


@dataclass(frozen=True)
class Counted:
    """Hits of (failing, passing) tests by the name of the layer, one pair a neuron."""

    hits: dict[str, list[tuple[int, int]]]
    eager: bool
    how: Fit


def count(model: Any, inputs: Any, size: int = 2, times: int = 1) -> Counted:
    """In batches of two, the last of which is filled up."""
    tests, backend = Tests(inputs), backend_of(model)
    how = fit(model, summarize(model, loss_of(model)), next(tests.blocks(5)))
    if not getattr(model, "built", True):
        backend.call_model(model, how.cast(backend.ops, how.adapt(inputs)))

    def judge(_inputs: Any, labels: Any, _outputs: Any) -> Verdict:
        ones = backend.ops.ones_like(labels)
        return Verdict(labels > 0, ones, labels, labels < 0)

    oracle = Oracle("custom", "", judge, "certainty", str, str)
    taps = taps_of(model)
    stream, layout = make_step(
        backend, model, taps, {}, how, oracle, Inputs("", (), "", neurons_per_layer=None)
    )
    for _ in range(times):
        reset_states(model)
        hits, _, _ = count_hits(stream, layout, batches(tests, how, how.batch or size), lambda _done: None)
    assert hits.counts == (2, 3)
    names = {tap.path: tap.layer.name for tap in taps}
    found = {
        names[path]: [tuple(map(int, pair)) for pair in one.counts.T] for path, one in hits.layers.items()
    }
    return Counted(found, stream.eager, how)  # type: ignore[arg-type]


def by_hand(values: Any) -> list[tuple[int, int]]:
    """The same of a layer's output on the five tests."""
    active = np.asarray(values, np.float32).reshape(5, -1) > 0.1
    failed = np.array(FAILED, bool)
    return [(int(a), int(b)) for a, b in zip(active[failed].sum(0), active[~failed].sum(0), strict=True)]


A = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]], "float32")
B = np.array([[0], [1], [0], [1], [1]], "float32")
OF_A = [(1, 2), (0, 2)]
OF_B = [(1, 2)]


def test_by_hand() -> None:
    assert by_hand(A) == OF_A
    assert by_hand(B) == OF_B


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
@pytest.mark.parametrize("structure", ["list", "dict"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_several_inputs_and_outputs(library: str, structure: str) -> None:
    keras_ = pytest.importorskip(library)
    a, b = keras_.Input((2,), name="a"), keras_.Input((1,), name="b")
    joined = keras_.layers.Concatenate(name="joined")([b, a])
    one = keras_.layers.Dense(1, kernel_initializer="ones", name="one")(joined)
    two = keras_.layers.ReLU(name="two")(keras_.layers.Rescaling(-1.0, 1.0, name="less")(b))
    if structure == "list":
        model = keras_.Model([a, b], [one, two])
    else:
        model = keras_.Model({"b": b, "a": a}, {"one": one, "two": two})
    found = count(model, {"b": B, "a": A})
    assert found.hits["a"] == OF_A
    assert found.hits["b"] == OF_B
    assert found.hits["joined"] == OF_B + OF_A
    assert found.hits["one"] == [(2, 3)]
    assert found.hits["two"] == [(1, 1)]
    assert not found.eager


@pytest.mark.parametrize(("library", "shape"), [("keras", ()), ("keras", (1,)), ("tf_keras", (1,))])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_text(library: str, shape: tuple[int, ...]) -> None:
    """Tokens: 0 padding, 1 unknown, 2 good, 3 bad; the embedding puts out 0 for bad and for padding."""
    keras_ = pytest.importorskip(library)
    vectorize = keras_.layers.TextVectorization(
        vocabulary=["good", "bad"], output_sequence_length=2, name="tokens"
    )
    embed = keras_.layers.Embedding(4, 1, name="embedding")
    model = keras_.Sequential(
        [
            keras_.Input(shape, dtype="string"),
            vectorize,
            embed,
            keras_.layers.Flatten(),
            keras_.layers.Dense(1),
        ]
    )
    embed.set_weights([np.array([[0], [1], [1], [0]])])
    found = count(model, np.array(["good bad", "bad", "so bad", "bad bad", "good good"]))
    assert found.hits["tokens"] == [(2, 3), (2, 2)]
    assert found.hits["embedding"] == [(1, 2), (0, 1)]
    assert not found.eager


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ragged_sequences(library: str) -> None:
    """The mean of the tokens before the padding, less 1.5: 2, 1, 1.5, 1, 3 give 0.5, −0.5, 0, −0.5, 1.5."""
    keras_ = pytest.importorskip(library)
    tokens = keras_.Input((None,), dtype="int32", ragged=True)
    embed = keras_.layers.Embedding(5, 1, name="embedding")
    mean = keras_.layers.GlobalAveragePooling1D(name="mean")(embed(tokens))
    model = keras_.Model(tokens, keras_.layers.Rescaling(1.0, -1.5, name="less")(mean))
    embed.set_weights([np.arange(5.0)[:, None]])
    found = count(model, np.array([[2, 2, 0], [1, 0, 0], [1, 2, 0], [1, 1, 1], [4, 1, 4]]))
    assert found.hits["mean"] == [(2, 3)]
    assert found.hits["less"] == [(1, 1)]
    assert "embedding" not in found.hits
    assert found.how.notices[0][0] == "ragged-input"


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_states_go_from_batch_to_batch_and_begin_anew(library: str) -> None:
    """The state is the sum so far: .05, .08, .12, .13, .03 (−.1)."""
    keras_ = pytest.importorskip(library)
    cell = {"kernel_initializer": "ones", "recurrent_initializer": "ones", "activation": "linear"}
    total = keras_.layers.SimpleRNN(1, stateful=True, name="total", **cell)
    model = keras_.Sequential([keras_.Input(batch_shape=(1, 1, 1)), total])
    x = np.array([0.05, 0.03, 0.04, 0.01, -0.1], "float32").reshape(5, 1, 1)
    for times in (1, 2):
        assert count(model, x, times=times).hits == {"total": [(1, 1)]}


def test_fixed_batch_size_with_a_last_batch_that_is_filled_up() -> None:
    model = keras.Sequential(
        [
            layers.Input(batch_shape=(3, 2)),
            layers.Lambda(lambda x: keras.ops.reshape(x, (3, 2)), name="same"),
            layers.Activation("relu", name="relu"),
        ]
    )
    found = count(model, A)
    assert found.how.batch == 3
    assert found.hits == {"same": OF_A, "relu": OF_A}


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision(policy: str) -> None:
    dense = layers.Dense(2, kernel_initializer="identity", dtype=policy, name="dense")
    model = keras.Sequential(
        [layers.Input((2,)), dense, layers.Activation("relu", dtype=policy, name="relu")]
    )
    assert count(model, A).hits == {"dense": OF_A, "relu": OF_A}


def test_masked_steps() -> None:
    """The sum over the steps that are not masked: padding of 0 is, and would otherwise count with the bias of 1."""
    cell = {"kernel_initializer": "ones", "recurrent_initializer": "ones", "activation": "linear"}
    model = keras.Sequential(
        [
            layers.Input((2, 1)),
            layers.Masking(name="masking"),
            layers.SimpleRNN(1, bias_initializer="ones", name="total", **cell),
            layers.Rescaling(1.0, -2.0, name="less"),
        ]
    )
    x = np.array([[1, 0], [2, 0], [0.5, 0], [0.5, 0.5], [1, -2]], "float32")[..., None]
    # 1 + 1, 2 + 1, 0.5 + 1, 0.5 + 1 + 0.5 + 1, 1 + 1 − 2 + 1; less 2: 0, 1, −0.5, 1, −1
    assert count(model, x).hits["less"] == [(1, 1)]


def test_sparse_input() -> None:
    tensor = keras.Input((2,), sparse=True)
    model = keras.Model(tensor, layers.Dense(2, kernel_initializer="identity", name="dense")(tensor))
    assert count(model, A).hits == {"dense": OF_A}


def test_preprocessing() -> None:
    """Bytes are rescaled and normalized: 51, 102, 153, 204, 255 give 1 to 5, less 3."""
    model = keras.Sequential(
        [
            layers.Input((1,)),
            layers.Rescaling(1 / 51, name="rescaled"),
            layers.Normalization(mean=3.0, variance=1.0, name="normalized"),
        ]
    )
    found = count(model, np.array([[51], [102], [153], [204], [255]], np.uint8))
    assert found.hits == {"rescaled": [(2, 3)], "normalized": [(1, 1)]}


def subclassed(library: Any) -> Any:
    class Unbuilt(library.Model):  # type: ignore[misc]
        """Its first layer is there from the beginning, its second from the first call on."""

        def __init__(self) -> None:
            super().__init__()
            self.first = library.layers.Dense(2, kernel_initializer="identity", name="first")
            self.second: Any = None

        def call(self, x: Any) -> Any:
            if self.second is None:
                self.second = library.layers.Rescaling(-1.0, 1.0, name="second")
            return {"out": self.second(self.first(x["a"]))}

    return Unbuilt()


@pytest.mark.parametrize("library", ["keras", "tf_keras"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_subclassed_model_that_was_never_called(library: str) -> None:
    found = count(subclassed(pytest.importorskip(library)), {"a": A})
    assert found.hits == {"first": OF_A, "second": [(1, 1), (2, 1)]}
    assert found.how.batch is None


def test_nested_and_shared_layers() -> None:
    x = keras.Input((2,), name="x")
    inner = keras.Sequential([layers.Input((2,)), layers.Rescaling(-1.0, 1.0, name="less")], name="inner")
    model = keras.Model(x, inner(inner(x)))  # 1 − x, and x again
    found = count(model, A)
    less = by_hand(1 - A)
    assert found.hits == {"x": OF_A, "inner": less + OF_A, "less": less + OF_A}
