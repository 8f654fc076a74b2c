"""What each oracle says of tests whose outputs are known: every number can be checked with a pencil."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.conftest import quiet
from tests.engine.oracles import Tests, choose, judge, plan_of

from guider_engine.counting import count
from guider_engine.errors import EngineFailure
from guider_engine.request import Timer
from guider_engine.wire import Inputs


def echo(*shape: int, loss: Any = None, activation: str = "linear") -> Any:
    """A model that puts out what is put in, through an activation."""
    model = keras.Sequential([layers.Input(shape), layers.Activation(activation)])
    if loss is not None:
        model.compile(loss=loss)
    return model


def column(*values: float) -> Any:
    return np.array(values, np.float32)[:, None]


def test_rounding_probabilities_is_half_to_even_and_confidence_is_the_output() -> None:
    model = echo(1, loss="binary_crossentropy", activation="sigmoid")
    found = judge(model, column(0, 2, -2, np.nan), np.array([0, 1, 1, 0]))
    assert found.passed == [True, True, False, False]
    assert found.confidence == pytest.approx([0.5, 1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2)), 0])
    assert found.nan == [False, False, False, True]
    assert found.answers == ["0", "1", "0", "nan"]
    assert found.oracle.reason == "loss binary_crossentropy; threshold 0.5"


def test_logits_of_a_single_unit_pass_through_the_sigmoid() -> None:
    model = echo(1, loss=keras.losses.BinaryCrossentropy(from_logits=True))
    found = judge(model, column(3.2, 0.4, -0.4, 0.7), np.array([1, 1, 0, 0]))
    assert found.passed == [True, True, True, False]
    assert found.confidence[0] == pytest.approx(1 / (1 + np.exp(-3.2)))
    assert "sigmoid" in found.oracle.reason
    assert "threshold 0.5" in found.oracle.reason


def test_a_crossentropy_that_clips_probabilities_is_followed() -> None:
    model = echo(1, loss="binary_crossentropy")
    found = judge(model, column(3.2, 0.4, -7, 0.7), np.array([1, 1, 0, 1]))
    assert found.passed == [True, False, True, True]
    assert found.confidence == pytest.approx([1, 0.4, 0, 0.7])
    assert "clipped" in found.oracle.reason


def test_without_a_loss_outputs_beyond_probabilities_are_logits() -> None:
    found = judge(echo(1), column(3.2, 0.4, -7, 0.7), np.array([1, 1, 0, 1]))
    assert found.passed == [True] * 4
    assert "logits" in found.oracle.reason
    assert "-7 to 3.2" in found.oracle.reason


def test_probabilities_are_not_taken_for_logits_whatever_the_loss_was_told() -> None:
    model = echo(1, loss=keras.losses.BinaryCrossentropy(from_logits=True), activation="sigmoid")
    found = judge(model, column(-3, 3), np.array([0, 1]))
    assert found.passed == [True, True]
    assert "probabilities already" in found.oracle.reason


def test_several_logits_are_compared_and_their_softmax_is_the_confidence() -> None:
    model = echo(3, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = np.array([[0, np.log(3), 0], [5, 5, 9]], np.float32)
    found = judge(model, x, np.array([1, 0]), classes=("ant", "bee", "cat"))
    assert found.passed == [True, False]
    assert found.confidence[0] == pytest.approx(0.6)
    assert found.expected == ["bee", "ant"]
    assert found.answers == ["bee", "cat"]


@pytest.mark.parametrize(("labels", "low"), [([1, -1, -1, 1], "-1"), ([1, 0, 0, 1], "0")])
def test_hinge_is_split_at_zero(labels: list[int], low: str) -> None:
    found = judge(echo(1, loss="hinge"), column(0.3, -2, 0.5, 0), np.array(labels))
    assert found.passed == [True, True, False, False]
    assert found.confidence == pytest.approx([0.3, 2, 0.5, 0])
    assert found.answers == ["1", low, "1", low]


def test_categorical_hinge_compares_the_largest() -> None:
    found = judge(
        echo(2, loss="categorical_hinge"), np.array([[2, -3], [-1, 4]], np.float32), np.eye(2)[[0, 0]]
    )
    assert found.passed == [True, False]


def test_a_regression_on_class_numbers_is_rounded_where_it_is_set_to_classify() -> None:
    found = judge(echo(1, loss="mse"), column(3.2, 1.6), np.array([3, 1]), task="classification")
    assert found.passed == [True, False]
    assert found.oracle.notices == ()


def test_multi_label_by_hand() -> None:
    y = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 0]])
    x = np.array([[2, -2, 2], [2, -2, -2], [-2, -2, -2]], np.float32)
    model = echo(3, loss=keras.losses.BinaryCrossentropy(from_logits=True))
    found = judge(model, x, y, classes=("a", "b", "c"))
    assert found.passed == [True, False, True]
    assert found.confidence == pytest.approx([1 / (1 + np.exp(-2))] * 3)
    assert found.expected == ["a, c", "a, b", "none"]
    assert found.answers == ["3 of 3 labels right", "2 of 3 labels right", "3 of 3 labels right"]
    assert "all of 3 labels right" in found.oracle.reason
    assert judge(model, x, y, accuracy=0.66).passed == [True, True, True]


def test_segmentation_by_hand() -> None:
    """Two tests of 2×5 pixels; the first has one wrong of ten, the second two wrong of nine and one to be ignored."""
    rng = np.random.default_rng(0)
    predicted = rng.integers(0, 3, size=(2, 2, 5))
    x = (np.eye(3)[predicted] * 0.5 + 0.2).astype(np.float32)
    y = predicted.copy()
    y[0, 0, 0] = (y[0, 0, 0] + 1) % 3
    y[1, 0, :2] = (y[1, 0, :2] + 1) % 3
    y[1, 1, 4] = -1
    model = echo(2, 5, 3, loss="sparse_categorical_crossentropy")
    found = judge(model, x, y)
    assert found.oracle.task == "segmentation"
    assert found.passed == [True, False]
    assert found.confidence == pytest.approx([0.7, 0.7])
    assert found.answers == ["90.0% of the places right", "77.8% of the places right"]
    assert judge(model, x, y, accuracy=0.95).passed == [False, False]
    assert judge(model, x, np.where(y == -1, 255, y)).passed == [True, False]
    assert judge(model, x, y[..., None], accuracy=0.77).passed == [True, True]
    assert judge(model, x, np.eye(3)[predicted]).passed == [True, True]


def test_a_mask_of_single_outputs_by_hand() -> None:
    model = echo(4, 1, loss=keras.losses.BinaryCrossentropy(from_logits=True))
    x = np.array([[[3], [3], [-3], [-3]], [[3], [3], [3], [-3]]], np.float32)
    found = judge(model, x, np.array([[1, 1, 0, 0]] * 2))
    assert found.passed == [True, False]
    assert found.confidence == pytest.approx([1 / (1 + np.exp(-3))] * 2)
    assert found.answers[1] == "75.0% of the places right"


def test_several_masks_for_each_place_are_judged_on_their_own() -> None:
    x = np.array([[[3, 3], [-3, 3]], [[3, -3], [-3, -3]]], np.float32)
    y = np.array([[[1, 1], [0, 1]], [[1, 1], [0, 0]]])
    found = judge(echo(2, 2, loss=keras.losses.BinaryCrossentropy(from_logits=True)), x, y)
    assert found.oracle.task == "segmentation"
    assert found.passed == [True, False]
    assert found.answers[1] == "75.0% of the places right"


def test_steps_that_keras_masks_are_not_judged() -> None:
    """Time steps of zeros are masked; whatever their label is, it is not looked at."""
    model = keras.Sequential(
        [layers.Input((3, 2)), layers.Masking(), layers.TimeDistributed(layers.Softmax())]
    )
    x = np.array([[[1, 5], [5, 1], [0, 0]]] * 2, np.float32)
    found = judge(model, x, np.array([[1, 0, 1], [1, 1, 1]]))
    assert found.passed == [True, False]
    assert found.answers == ["100.0% of the places right", "50.0% of the places right"]


X = column(1.0, 2.0, 4.0, np.nan)
Y = np.array([1.0005, 2.09, 4.3, 1.0])


@pytest.mark.parametrize(
    ("tolerance", "passed", "words"),
    [
        ("0.001", [True, False, False, False], "within 0.001 of each target"),
        ("0.1", [True, True, False, False], "within 0.1"),
        ("5%", [True, True, False, False], "within 5% of each target"),
        ("10 %", [True, True, True, False], "within 10%"),
        (
            "0.1 iqr",
            [True, True, False, False],
            "within 0.164 of each target (0.1 of the interquartile range)",
        ),
    ],
)
def test_regression_by_hand(tolerance: str, passed: list[bool], words: str) -> None:
    """The quartiles of the targets are 1.000375 and 2.6425: a tenth of what is between them is 0.164."""
    found = judge(echo(1, loss="mse"), X, Y, tolerance=tolerance)
    assert found.passed == passed
    assert words in found.oracle.reason
    assert found.confidence == pytest.approx([0.0005, 0.09, 0.3, 0], rel=1e-3)
    assert found.oracle.confidence == "error"


def test_a_relative_tolerance_leaves_some_room_at_zero() -> None:
    found = judge(echo(1, loss="mse"), column(0.01, 0.02, 10), np.array([0.0, 0.0, 10.0]), tolerance="50%")
    assert found.passed == [True, False, True]  # at least 0.5 · 0.01 · 10/3 = 0.0167


def test_a_tolerance_is_scaled_for_each_component() -> None:
    y = np.stack([np.arange(5.0), 100 * np.arange(5.0), [7.0] * 5, [0, 0, 0, 0, 1.0]], axis=1)
    x = (y + np.array([0.15, 15, 0.0005, 0.03])).astype(np.float32)
    found = judge(echo(4, loss="mse"), x, y, tolerance="0.1 iqr")  # 0.2, 20, 0.001, 0.04
    assert found.passed == [True] * 5
    x[0, 1] += 6
    x[1, 2] += 0.001
    x[2, 3] += 0.02
    found = judge(echo(4, loss="mse"), x, y, tolerance="0.1 iqr")
    assert found.passed == [False, False, False, True, True]
    assert [code for code, _ in found.oracle.notices] == ["tolerance-scale", "tolerance-scale"]


@pytest.mark.parametrize("text", ["", "abc", "-1", "0", "5 %%", "nan", "inf", "1e999", "0.1 iqrs", "iqr"])
def test_a_tolerance_that_cannot_be_understood_is_said(text: str) -> None:
    with pytest.raises(EngineFailure, match="interquartile range") as caught:
        choose(echo(1, loss="mse"), X, Y, tolerance=text)
    assert caught.value.failure.code == "tolerance-syntax"


def test_labels_of_another_size_fail_every_test() -> None:
    found = judge(echo(1, loss="mse"), X, np.stack([Y, Y], axis=1))
    assert found.passed == [False] * 4


def test_regression_of_logits_is_that_of_probabilities() -> None:
    model = echo(1, loss=keras.losses.BinaryCrossentropy(from_logits=True))
    found = judge(model, column(0, 1), np.array([0.5, 0.5]))
    assert found.oracle.task == "regression"
    assert found.passed == [True, False]


def test_reconstructions_are_compared_with_most_others() -> None:
    """The model doubles: the error is the mean square of the input, whose ninth of ten is the limit."""
    model = keras.Sequential([layers.Input((2,)), layers.Rescaling(2.0)])
    x = np.arange(1, 11, dtype=np.float32)[:, None] * np.ones((1, 2), np.float32)
    found = judge(model, x, x)
    assert found.oracle.task == "autoencoder"
    assert found.passed == [True] * 9 + [False]
    assert found.confidence == pytest.approx([float(k * k) for k in range(1, 11)])
    assert found.oracle.confidence == "error"
    assert "at most 90.5, the 0.9 quantile" in found.oracle.reason
    assert judge(model, x, x, quantile=0.5).passed == [True] * 5 + [False] * 5
    assert judge(model, x, x, quantile=1.0).passed == [True] * 10
    x[0] = np.nan
    assert judge(model, x, x, quantile=1.0).passed == [False] + [True] * 9


def test_reconstructions_of_a_stateful_model_begin_with_no_state() -> None:
    """The model adds up all that it was given before: errors are 0, 1, 4, 9."""
    running = layers.SimpleRNN(
        1, None, kernel_initializer="ones", recurrent_initializer="ones", stateful=True
    )
    model = keras.Sequential([layers.Input(batch_shape=(1, 1, 1)), running])
    x = np.ones((4, 1, 1), np.float32)
    found = choose(model, x, x[:, 0], task="autoencoder", quantile=0.5)
    assert "at most 2.5, the 0.5 quantile" in found.reason


def test_reconstructions_are_compared_with_the_inputs_where_labels_are_others() -> None:
    model = keras.Sequential([layers.Input((2,)), layers.Rescaling(2.0)])
    x = np.array([[1, 1], [3, 3], [2, 2]], np.float32)
    found = judge(model, x, np.array([5, 6, 7]), task="autoencoder", quantile=0.6)
    assert found.passed == [True, False, True]
    assert "from the inputs" in found.oracle.reason


def two_outputs(**losses: Any) -> Any:
    given = layers.Input((3,))
    one = layers.Activation("linear", name="one")(given[:, :2])
    other = layers.Activation("linear", name="other")(given[:, 2:])
    model = keras.Model(given, {"one": one, "other": other})
    model.compile(loss=losses)
    return model


BOTH = np.array([[0.7, 0.3, 1.0], [0.2, 0.8, 1.0], [0.6, 0.4, 2.0]], np.float32)


def test_several_outputs_must_all_be_right() -> None:
    model = two_outputs(one="sparse_categorical_crossentropy", other="mse")
    y = {"one": np.array([0, 0, 0]), "other": np.array([1.0, 1.0, 1.5])}
    found = judge(model, BOTH, y)
    assert found.passed == [True, False, False]
    assert found.confidence == pytest.approx([0.7, 0.8, 0.6])
    assert found.answers[1:] == ["wrong: one", "wrong: other"]
    assert found.expected[2] == "one: 0; other: 1.5"
    assert found.oracle.reason.startswith("one: classification, loss sparse_categorical_crossentropy; ")
    assert found.oracle.confidence == "certainty"


def test_an_output_without_labels_is_not_judged_and_it_is_said() -> None:
    model = two_outputs(one="sparse_categorical_crossentropy", other="mse")
    found = judge(model, BOTH, {"one": np.array([0, 0, 0])})
    assert found.passed == [True, False, True]
    assert [code for code, _ in found.oracle.notices] == ["one-class", "output-not-judged"]
    assert "other" in found.oracle.notices[-1][1]


def test_one_array_of_labels_belongs_to_the_only_output_that_was_trained() -> None:
    found = judge(two_outputs(one="sparse_categorical_crossentropy"), BOTH, np.array([0, 0, 1]))
    assert found.passed == [True, False, False]


@pytest.mark.parametrize(
    "labels",
    [np.zeros(3), {"third": np.zeros(3)}, (np.zeros(3), np.zeros(3), np.zeros(3))],
    ids=["one", "name", "3"],
)
def test_labels_of_unknown_outputs_are_refused_by_name(labels: Any) -> None:
    with pytest.raises(EngineFailure, match="one and other") as caught:
        choose(two_outputs(one="mse", other="mse"), BOTH, labels)
    assert caught.value.failure.code == "several-outputs"


def test_outputs_and_labels_in_order() -> None:
    given = layers.Input((3,))
    model = keras.Model(given, [given[:, :2], given[:, 2:]])
    model.compile(loss=["mse", "mse"])
    found = judge(model, BOTH, (BOTH[:, :2], np.array([1.0, 2.0, 2.0])))
    assert found.passed == [True, False, True]
    assert found.oracle.confidence == "error"
    assert found.confidence == pytest.approx([0, 1, 0])


def test_outputs_of_different_tasks_are_judged_by_their_own() -> None:
    """A class, a class for each of two places, and a number."""
    given = layers.Input((3,))
    one = layers.Activation("softmax", name="one")(given[:, :2])
    places = layers.Reshape((2, 1), name="places")(layers.Activation("sigmoid")(given[:, :2]))
    model = keras.Model(given, [one, places, layers.Activation("linear", name="number")(given[:, 2:])])
    x = np.array([[2, -2, 1], [2, -2, 1], [2, -2, 1]], np.float32)
    y = (np.array([0, 1, 0]), np.array([[1, 0]] * 2 + [[1, 1]]), np.array([1.0, 1.0, 1.0]))
    found = judge(model, x, y, tolerance="0.5")
    assert found.passed == [True, False, False]
    assert found.answers[1:] == ["wrong: one", "wrong: places"]
    assert found.confidence == pytest.approx([1 / (1 + np.exp(-2))] * 3)


def function(folder: Path, code: str) -> dict[str, Any]:
    (folder / "judging.py").write_text("import numpy as np\ndef passes(x, y, out):\n    " + code + "\n")
    return {"oracle": "judging:passes", "root": str(folder)}


def test_a_function_of_the_user_judges(tmp_path: Path) -> None:
    options = function(tmp_path, "return abs(out[:, 0] - y) < 0.5, x[:, 0]")
    found = judge(echo(1), column(1, 2, 3), np.array([1.4, 2.6, 3.0]), **options)
    assert found.oracle.task == "custom"
    assert found.passed == [True, False, True]
    assert found.confidence == [1, 2, 3]
    assert found.oracle.reason == "judged by judging:passes"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("return [True]", "oracle-result"),
        ("return out", "oracle-result"),
        ("return None", "oracle-result"),
        ("return [[True], [True, False]]", "oracle-result"),
        ("return y > 0, y > 0, y > 0", "oracle-result"),
        ("return y > 0, ['a'] * len(y)", "oracle-result"),
        ("raise KeyError('lost')", "user-code"),
    ],
)
def test_a_function_that_does_not_judge_is_refused(tmp_path: Path, code: str, error: str) -> None:
    with pytest.raises(EngineFailure, match="judging:passes") as caught:
        choose(echo(1), column(1, 2, 3), np.array([1.0, 2, 3]), **function(tmp_path, code))
    assert caught.value.failure.code == error


@pytest.mark.parametrize("oracle", ["judging:nothing", "nowhere:passes", "judging"])
def test_a_function_that_is_missing_is_named(tmp_path: Path, oracle: str) -> None:
    options = function(tmp_path, "return y > 0") | {"oracle": oracle}
    with pytest.raises(EngineFailure, match=oracle) as caught:
        choose(echo(1), column(1, 2, 3), np.array([1.0, 2, 3]), **options)
    assert caught.value.failure.code == "function-missing"


def test_equal_rules_mean_equal_judges() -> None:
    model = echo(1, loss="mse")
    rules = [choose(model, X, Y, tolerance=text).rule for text in ("0.1", "0.10", "0.2")]
    assert rules[0] == rules[1] != rules[2]


def test_a_function_that_fails_later_is_told_by_its_own_error(tmp_path: Path) -> None:
    code = "return y >= 0 if (y < 599).all() else y.lost"
    options = function(tmp_path, code)
    x, y = np.zeros((600, 1), np.float32), np.arange(600.0)
    plan = plan_of(echo(1), x, y, **options)
    assert plan.size < 600
    with pytest.raises(EngineFailure, match="judging:passes raised AttributeError") as caught:
        count(plan, Tests(x, y), Inputs("", (), **options), quiet, quiet, Timer())
    assert caught.value.failure.code == "user-code"
    files = [line for line in caught.value.failure.detail.splitlines() if line.startswith("  File")]
    assert len(files) == 1  # no line of GUIDER
    assert "judging.py" in files[0]


def test_a_function_sees_inputs_as_the_model_does(tmp_path: Path) -> None:
    options = function(tmp_path, "assert x.shape[1:] == (2, 2, 1); return y > 0")
    found = judge(echo(2, 2, 1), np.zeros((3, 4), np.float32), np.array([0, 1, 1]), **options)
    assert found.passed == [False, True, True]


def test_the_rest_of_a_mask_is_judged_by_hand_on_channels() -> None:
    """Masked time steps of several channels: the labels of both channels of a step are left out with it."""
    model = keras.Sequential([layers.Input((2, 2)), layers.Masking(), layers.Activation("sigmoid")])
    x = np.array([[[3, -3], [0, 0]]], np.float32)
    found = judge(model, x, np.array([[[1, 0], [1, 1]]]), task="segmentation")
    assert found.passed == [True]


def test_noisy_reconstructions_are_compared_with_what_is_clean() -> None:
    clean = np.random.default_rng(0).random((20, 8)).astype(np.float32)
    noisy = clean + np.random.default_rng(1).normal(scale=0.1, size=clean.shape).astype(np.float32)
    found = judge(echo(8, loss="mse", activation="sigmoid"), noisy, clean)
    assert found.oracle.task == "autoencoder"
    error = ((1 / (1 + np.exp(-noisy)) - clean) ** 2).mean(axis=1)
    assert found.confidence == pytest.approx(error.tolist(), rel=1e-5)
    assert found.passed == (error <= np.sort(error)[17]).tolist()
