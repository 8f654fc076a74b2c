"""Every kind of model is observed the same way, and says the same as its layers' own outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.conftest import Localize, quiet
from tests.engine.reference import layer_scores

from guider_engine.errors import EngineFailure
from guider_engine.load.describe import summarize
from guider_engine.load.loss import Loss
from guider_engine.session import Session
from guider_engine.spectrum.taps import observe, taps_of
from guider_engine.wire import Inputs


@keras.saving.register_keras_serializable("tests")
class Block(layers.Layer):  # type: ignore[misc]
    """A composite layer of the user's own."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.wide = layers.Dense(units, activation="relu")
        self.narrow = layers.Dense(3)

    def build(self, shape: Any) -> None:
        self.wide.build(shape)
        self.narrow.build((*shape[:-1], self.units))

    def call(self, x: Any) -> Any:
        return self.narrow(self.wide(x))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable("tests")
class Subclassed(keras.Model):  # type: ignore[misc]
    """A model whose graph only its call knows."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden = [layers.Dense(5, activation="relu") for _ in range(2)]
        self.out = layers.Dense(3, activation="softmax")

    def call(self, x: Any) -> Any:
        for layer in self.hidden:
            x = layer(x)
        return self.out(x)


@keras.saving.register_keras_serializable("tests")
class Eager(layers.Layer):  # type: ignore[misc]
    """Reads a value, which no graph can."""

    def call(self, x: Any) -> Any:
        return x * float(keras.ops.convert_to_numpy(x).max() > -9e9)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


@pytest.fixture(autouse=True)
def _seed() -> None:
    keras.utils.set_random_seed(5)


KERAS_2 = Path(__file__).parents[1] / "fixtures" / "models" / "keras2.h5"
X = np.random.default_rng(1).normal(size=(50, 4)).astype("float32")
Y = np.arange(50) % 3


def test_functional_model_with_branches_counts_the_input_layer_too(localize: Localize) -> None:
    x = keras.Input((4,))
    a, b = layers.Dense(6, activation="relu")(x), layers.Dense(6, activation="tanh")(x)
    y = layers.Dense(3, activation="softmax")(layers.Concatenate()([a, b]))
    model = keras.Model(x, y)
    outputs = keras.Model(x, [layer.output for layer in model.layers]).predict(X, verbose=0)
    found = localize(model, X, Y)
    assert found.model.layers[0].class_name == "InputLayer"
    assert [layer.suspiciousness for layer in found.layers] == pytest.approx(
        layer_scores(outputs, Y, formula="ochiai"), rel=1e-6
    )


def test_nested_model_is_one_entry_with_its_layers_inside(localize: Localize) -> None:
    base = keras.Sequential(
        [layers.Input((4,)), layers.Dense(8, activation="relu"), layers.Dense(5)], name="base"
    )
    model = keras.Sequential([layers.Input((4,)), base, layers.Dense(3, activation="softmax")])
    found = localize(model, X, Y)
    assert [layer.name for layer in found.model.layers] == ["base", model.layers[1].name]
    assert [inner.path for inner in found.layers[0].inner] == [(0, 0), (0, 1)]
    assert [inner.rank for inner in found.layers[0].inner] in ([1, 2], [2, 1])
    last_inside, whole = found.layers[0].inner[1], found.layers[0]
    assert last_inside.suspiciousness == pytest.approx(whole.suspiciousness)
    hidden = keras.Model(base.inputs, base.layers[0].output).predict(X, verbose=0)
    predicted = model.predict(X, verbose=0)
    inner_score, _ = layer_scores([hidden, predicted], Y, formula="ochiai")
    assert found.layers[0].inner[0].suspiciousness == pytest.approx(inner_score, rel=1e-6)


def test_composite_layer_of_the_program_shows_what_is_inside(localize: Localize) -> None:
    model = keras.Sequential([layers.Input((4,)), Block(7), layers.Softmax()])
    found = localize(model, X, Y)
    block = found.model.layers[0]
    assert (block.class_name, block.builtin) == ("Block", False)
    assert [inner.config["units"] for inner in block.inner] == [7, 3]
    assert all(inner.suspiciousness is not None for inner in found.layers[0].inner)
    assert found.model.layers[1].builtin


def test_subclassed_model_is_observed_through_its_call(localize: Localize) -> None:
    model = Subclassed()
    model(X[:1])
    hidden = model.hidden[0](X).numpy(), model.hidden[1](model.hidden[0](X)).numpy()
    expected = layer_scores([*hidden, model(X).numpy()], Y, formula="ochiai")
    found = localize(model, X, Y, task="classification")
    assert [layer.suspiciousness for layer in found.layers] == pytest.approx(expected, rel=1e-6)


def test_shared_layer_has_the_neurons_of_each_of_its_calls(localize: Localize) -> None:
    x = keras.Input((4,))
    shared = layers.Dense(4, activation="relu", name="shared")
    model = keras.Model(x, layers.Dense(3, activation="softmax")(shared(shared(x))))
    found = localize(model, X, Y)
    score = next(
        s for layer, s in zip(found.model.layers, found.layers, strict=True) if layer.name == "shared"
    )
    assert (score.neurons, score.sampled) == (8, 8)


@pytest.mark.parametrize("sequences", [True, False])
def test_recurrent_layers_have_a_neuron_for_each_step_and_unit(localize: Localize, sequences: bool) -> None:
    model = keras.Sequential(
        [
            layers.Input((6,), dtype="int32"),
            layers.Embedding(20, 3),
            layers.Bidirectional(layers.LSTM(4, return_sequences=sequences)),
            *([layers.GlobalMaxPooling1D()] if sequences else []),
            layers.Dense(3, activation="softmax"),
        ]
    )
    x = np.random.default_rng(2).integers(0, 20, size=(50, 6))
    found = localize(model, x, Y, neurons_per_layer=None)
    assert [layer.neurons for layer in found.layers][:2] == [18, 48 if sequences else 8]
    outputs = keras.Model(model.inputs, [layer.output for layer in model.layers]).predict(x, verbose=0)
    assert [layer.suspiciousness for layer in found.layers] == pytest.approx(
        layer_scores(outputs, Y, formula="ochiai", neurons_per_layer=None), rel=1e-6
    )


def test_fixed_batch_size(localize: Localize) -> None:
    model = keras.Sequential([layers.Input(batch_shape=(8, 4)), layers.Dense(3, activation="softmax")])
    found = localize(model, X, Y)
    free = keras.Sequential([layers.Input((4,)), layers.Dense(3, activation="softmax")])
    free.set_weights(model.get_weights())
    assert found.tests.total == 50
    scores = [layer.suspiciousness for layer in localize(free, X, Y).layers]
    assert [layer.suspiciousness for layer in found.layers] == pytest.approx(scores, rel=1e-6)


def test_batch_size_does_not_change_the_result(localize: Localize, monkeypatch: pytest.MonkeyPatch) -> None:
    model = keras.Sequential([layers.Input((4,)), layers.Dense(9, activation="relu"), layers.Dense(3)])
    whole = localize(model, X, Y, task="classification")
    monkeypatch.setattr("guider_engine.spectrum.batches.BYTES", 12 * 4 * 7)
    in_sevens = localize(model, X, Y, task="classification", threshold=0.1000001)
    assert in_sevens.tests == whole.tests
    for a, b in zip(whole.layers, in_sevens.layers, strict=True):
        assert a.suspiciousness == pytest.approx(b.suspiciousness, rel=1e-9)
        assert [n.position for n in a.top] == [n.position for n in b.top]


def test_what_is_inside_layers_counts_for_the_size_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = keras.Sequential([layers.Input((4,)), layers.Dense(97), layers.Dense(3)])
    keras.Sequential([layers.Input((4,)), nested]).save(tmp_path / "m.keras")
    np.savez(tmp_path / "t.npz", x=X, y=Y)
    monkeypatch.setattr("guider_engine.spectrum.batches.BYTES", 4 * (97 + 3 + 3) * 10)
    inputs = Inputs(str(tmp_path / "m.keras"), (str(tmp_path / "t.npz"),), str(tmp_path))
    said: list[str] = []
    Session().localize(inputs, lambda _stage, message, _fraction: said.append(message), lambda: None)
    assert "8 of 50 tests" in said


def test_inputs_are_reshaped_when_only_the_channel_axis_is_missing(localize: Localize) -> None:
    model = keras.Sequential(
        [layers.Input((2, 2, 1)), layers.Flatten(), layers.Dense(3, activation="softmax")]
    )
    assert localize(model, X.reshape(50, 2, 2), Y).tests.total == 50


def test_integer_images_are_fed_as_the_model_takes_them(localize: Localize) -> None:
    model = keras.Sequential([layers.Input((4,)), layers.Dense(3, activation="softmax")])
    x = np.random.default_rng(0).integers(0, 255, size=(50, 4), dtype=np.uint8)
    same = localize(model, x.astype("float32"), Y)
    assert localize(model, x, Y).layers == same.layers


def test_logits_are_judged_as_probabilities(localize: Localize) -> None:
    """A logit of 0.6 is class 1 (p = 0.65), one of −3 class 0; rounding the raw logits would fail −3."""
    model = keras.Sequential([layers.Input((1,)), layers.Dense(1, use_bias=False)])
    model.layers[0].set_weights([np.ones((1, 1))])
    model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=True))
    found = localize(model, [[0.6], [-3.0], [4.0], [0.2]], [1, 0, 1, 0])
    assert found.model.from_logits
    assert (found.tests.passed, found.tests.failed) == (3, 1)


def test_model_that_cannot_be_traced_runs_op_by_op(localize: Localize) -> None:
    plain = keras.Sequential([layers.Input((4,)), layers.Dense(3, activation="softmax")])
    x = keras.Input((4,))
    eager = keras.Model(x, Eager()(layers.Dense(3, activation="softmax", name="d")(x)))
    eager.get_layer("d").set_weights(plain.layers[0].get_weights())
    found = localize(eager, X, Y)
    assert "eager" in {notice.code for notice in found.notices}
    scores = [layer.suspiciousness for layer in localize(plain, X, Y).layers]
    assert [layer.suspiciousness for layer in found.layers][1:] == pytest.approx(scores * 2, rel=1e-6)


def test_failure_in_the_middle_of_the_tests_is_explained(localize: Localize) -> None:
    model = keras.Sequential(
        [
            layers.Input((4,), dtype="int32"),
            layers.Embedding(9, 2),
            layers.Flatten(),
            layers.Dense(3, "softmax"),
        ]
    )
    x = np.zeros((50, 4), dtype=int)
    x[40, 2] = 99
    with pytest.raises(EngineFailure) as caught:
        localize(model, x, Y)
    assert caught.value.failure.code == "model-call"
    assert "99" in caught.value.failure.message


def test_recording_leaves_keras_as_it_was() -> None:
    model = keras.Sequential([layers.Input((4,)), layers.Dense(3)])
    before = layers.Layer.__call__
    observe(model, keras.ops.convert_to_tensor(X[:2]), taps_of(model))
    assert layers.Layer.__call__ is before
    with pytest.raises(Exception, match="shape"):
        observe(model, keras.ops.convert_to_tensor(X[:2, :2]), taps_of(model))
    assert layers.Layer.__call__ is before


def test_summary_is_plain_data() -> None:
    model = keras.Sequential(
        [
            layers.Input((6, 4)),
            layers.TimeDistributed(layers.Dense(3, kernel_initializer=keras.initializers.RandomNormal(1.0))),
            layers.ReLU(),
        ]
    )
    wrapper, relu = summarize(model, Loss("mse")).layers
    assert wrapper.config["layer"]["class_name"] == "Dense"
    initializer = wrapper.config["layer"]["config"]["kernel_initializer"]
    assert initializer == {
        "class_name": "RandomNormal",
        "config": {"mean": 1.0, "stddev": 0.05, "seed": None},
    }
    assert wrapper.output_shape == (None, 6, 3)
    assert wrapper.parameters == 15
    assert relu.activation == "relu"


def test_model_from_a_function_of_the_project(session: Session, tmp_path: Path) -> None:
    model = keras.Sequential([layers.Input((4,)), layers.Dense(3, activation="softmax")])
    model.save(tmp_path / "m.keras")
    np.savez(tmp_path / "t.npz", x=X, y=Y)
    (tmp_path / "mine_of_this_test.py").write_text(
        "import keras\nimport numpy as np\n"
        "def model():\n    return keras.models.load_model('" + str(tmp_path / "m.keras") + "')\n"
        "def tests():\n    t = np.load('" + str(tmp_path / "t.npz") + "')\n    return t['x'], t['y']\n"
    )
    from_function = Inputs("mine_of_this_test:model", ("mine_of_this_test:tests",), str(tmp_path))
    from_files = Inputs(str(tmp_path / "m.keras"), (str(tmp_path / "t.npz"),), str(tmp_path))
    assert (
        session.localize(from_function, quiet, quiet).layers
        == session.localize(from_files, quiet, quiet).layers
    )


@pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`:UserWarning")
def test_file_of_keras_2(tmp_path: Path) -> None:
    """Written by Keras 2.15 with an optimizer that Keras 3 does not know; weights as in `same` below."""
    same = keras.Sequential(
        [
            layers.Input((2,)),
            layers.Dense(3, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(2, activation="softmax"),
        ]
    )
    same.layers[0].set_weights([np.array([[1, 0, -1], [0, 1, 1]]), np.array([0, 0, 0.5])])
    same.layers[2].set_weights([np.array([[2, 0], [0, 2], [0, 0]]), np.zeros(2)])
    same.save(tmp_path / "same.keras")
    np.savez(tmp_path / "t.npz", x=np.random.default_rng(0).normal(size=(30, 2)), y=np.arange(30) % 2)
    tests = (str(tmp_path / "t.npz"),)
    old, new = (
        Session().localize(Inputs(str(model), tests, str(tmp_path)), quiet, quiet)
        for model in (KERAS_2, tmp_path / "same.keras")
    )
    assert [layer.name for layer in old.model.layers] == ["hidden", "dropout", "answer"]
    assert old.model.loss == "sparse_categorical_crossentropy"
    assert 0 < old.tests.failed < 30
    assert old.layers == new.layers


def test_model_that_was_never_built_is_described_by_its_first_call(session: Session, tmp_path: Path) -> None:
    (tmp_path / "unbuilt_of_this_test.py").write_text(
        "import keras, numpy as np\n"
        "def load():\n"
        "    l = keras.layers\n"
        "    model = keras.Sequential([l.Dense(5, activation='relu'), l.Dense(3, activation='softmax')])\n"
        "    return model, np.arange(200.0).reshape(50, 4) / 200, np.arange(50) % 3\n"
    )
    found = session.localize(Inputs("", (), str(tmp_path), load="unbuilt_of_this_test:load"), quiet, quiet)
    assert [layer.parameters for layer in found.model.layers] == [25, 18]
    assert [output.activation for output in found.model.outputs] == ["softmax"]
    assert found.tests.total == 50
