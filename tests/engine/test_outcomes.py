"""No failing test, all failing, NaN, labels that do not fit, constant confidence: defined and explained."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.conftest import Localize

from guider_engine.wire import Localization


def network(*units: int, activation: str = "softmax") -> Any:
    keras.utils.set_random_seed(4)
    hidden = [layers.Dense(n, activation="relu") for n in units[:-1]]
    return keras.Sequential([layers.Input((3,)), *hidden, layers.Dense(units[-1], activation=activation)])


def codes(found: Localization) -> set[str]:
    return {notice.code for notice in found.notices}


X = np.random.default_rng(0).normal(size=(60, 3)).astype("float32")


def test_no_failing_test_gives_no_ranking(localize: Localize) -> None:
    model = network(5, 3)
    found = localize(model, X, model.predict(X, verbose=0).argmax(1))
    assert found.outcome == "no-failure-signal"
    assert found.tests.failed == 0
    assert all(
        layer.suspiciousness is None and layer.rank is None and not layer.top for layer in found.layers
    )
    assert codes(found) == {"no-failing-test"}


def test_all_failing_is_ranked_and_called_weak(localize: Localize) -> None:
    model = network(5, 3)
    found = localize(model, X, (model.predict(X, verbose=0).argmax(1) + 1) % 3)
    assert found.outcome == "ranking"
    assert found.tests.passed == 0
    assert "all-tests-fail" in codes(found)
    assert {layer.rank for layer in found.layers} == {1, 2}
    for layer in found.layers:
        assert all(neuron.a_ep == 0 and neuron.a_np == 0 for neuron in layer.top)
        assert all(neuron.passing.mean is None for neuron in layer.top)


def test_few_failing_tests_are_said(localize: Localize) -> None:
    model = network(5, 3)
    y = model.predict(X, verbose=0).argmax(1)
    y[:2] = (y[:2] + 1) % 3
    found = localize(model, X, y)
    assert codes(found) == {"few-tests"}
    assert "Only 2 failing tests:" in found.notices[0].message
    y[1] = (y[1] - 1) % 3
    assert "Only 1 failing test:" in localize(model, X, y).notices[0].message


def test_nan_output_fails_and_its_first_layer_is_named(localize: Localize) -> None:
    model = network(5, 4, 3)
    model.layers[1].activation = keras.activations.linear
    kernel, bias = model.layers[1].get_weights()
    model.layers[1].set_weights([kernel + 3e38, bias + 3e38])  # finite, its sums are not
    found = localize(model, 100 * np.abs(X), np.zeros(60, dtype=int))
    assert found.tests.failed == 60
    notice = next(n for n in found.notices if n.code == "nan-output")
    assert model.layers[1].name in notice.message
    assert "60 of 60" in notice.message
    first, second, last = (layer.non_finite for layer in found.layers)
    assert (first, second) == (0, 4)
    assert last > 0


def test_diverged_weights_are_named_rather_than_the_first_layer_that_shows_it(localize: Localize) -> None:
    model = network(5, 4, 3)
    model.set_weights([weight * np.nan for weight in model.get_weights()])
    found = localize(model, X, np.arange(60) % 3)
    assert codes(found) == {"all-tests-fail", "nan-weights", "nan-output"}
    notices = {notice.code: notice.message for notice in found.notices}
    assert all(layer.name in notices["nan-weights"] for layer in model.layers)
    assert "first layer" not in notices["nan-output"]


def test_nan_on_one_test_only_fails_that_test(localize: Localize) -> None:
    model = network(5, 3)
    y = model.predict(X, verbose=0).argmax(1)
    x = X.copy()
    x[7] = np.nan
    found = localize(model, x, y)
    assert found.tests.failed == 1
    assert [example.index for example in found.examples] == [7]


@pytest.mark.parametrize(
    ("labels", "units"),
    [
        (np.eye(4)[np.arange(60) % 4], 3),  # four columns, three units
        (np.arange(60) % 4, 3),  # class 3 of 0..2
        (np.arange(60) % 3, 1),  # three classes on one unit
        (np.arange(60) % 2 - 1, 3),  # class −1
    ],
)
def test_labels_that_do_not_fit_are_judged_as_published_and_said(
    localize: Localize, labels: Any, units: int
) -> None:
    model = network(5, units, activation="softmax" if units > 1 else "sigmoid")
    found = localize(model, X, labels, task="classification")
    assert "label-mismatch" in codes(found)
    assert found.outcome == "ranking"


def test_regression_with_too_few_units_fails_every_test(localize: Localize) -> None:
    found = localize(network(5, 1, activation="linear"), X, np.zeros((60, 2)), task="regression")
    assert found.tests.passed == 0
    assert {"label-mismatch", "all-tests-fail"} <= codes(found)


@pytest.mark.filterwarnings("ignore:You are using a softmax:UserWarning")
def test_constant_confidence_is_said_and_weighs_all_the_same(localize: Localize) -> None:
    model = network(5, 1)
    y = np.arange(60) % 2
    weighted = localize(model, X, y)
    unweighted = localize(model, X, y, weighted=False)
    assert "constant-confidence" in codes(weighted)
    assert [a.suspiciousness for a in weighted.layers] == [b.suspiciousness for b in unweighted.layers]


def test_labels_with_several_classes_are_said(localize: Localize) -> None:
    y = np.array([[1, 1, 0]] * 60)
    assert "multi-label" in codes(localize(network(5, 3), X, y))
    assert localize(network(5, 3, activation="sigmoid"), X, y).task == "multi-label"


def test_dead_saturated_and_constant_neurons_are_named(localize: Localize) -> None:
    model = keras.Sequential(
        [layers.Input((3,)), layers.Dense(3, activation="relu"), layers.Dense(3, activation="sigmoid")]
    )
    model.layers[0].set_weights([np.eye(3), np.array([0.0, -100.0, 0.0])])  # the middle one is dead
    model.layers[1].set_weights(
        [np.eye(3) * [1, 0, 1], np.array([50.0, 0.3, 0.0])]
    )  # saturated, constant, neither
    found = localize(model, X, np.arange(60) % 3, task="classification")
    relu, sigmoid = found.layers
    assert (relu.dead, relu.saturated) == (1, 0)
    assert (sigmoid.dead, sigmoid.saturated) == (0, 1)
    assert {n.position: n.condition for n in relu.top} == {(0,): "", (1,): "dead", (2,): ""}
    assert {n.position: n.condition for n in sigmoid.top} == {(0,): "saturated", (1,): "constant", (2,): ""}


def test_activation_statistics_by_hand(localize: Localize) -> None:
    model = keras.Sequential([layers.Input((2,)), layers.Dense(2, use_bias=False)])
    model.layers[0].set_weights([np.eye(2)])
    x = [[1.0, 0.0], [3.0, 0.0], [0.0, 2.0], [0.0, 5.0]]
    found = localize(model, x, [0, 1, 1, 1], task="classification")  # test 1 fails
    first = next(n for n in found.layers[0].top if n.position == (0,))
    assert (first.failing.tests, first.failing.mean, first.failing.std) == (1, 3.0, 0.0)
    assert first.passing.tests == 3
    assert first.passing.mean == pytest.approx(1 / 3)
    assert first.passing.std == pytest.approx(np.std([1, 0, 0]))
    assert (first.minimum, first.maximum) == (0.0, 3.0)


def test_examples_are_the_most_confident_failures(localize: Localize) -> None:
    model = network(5, 3)
    probability = model.predict(X, verbose=0)
    y = (probability.argmax(1) + (np.arange(60) % 2)) % 3
    found = localize(model, X, y)
    failing = np.flatnonzero(probability.argmax(1) != y)
    worst = failing[np.argsort(-probability.max(1)[failing], kind="stable")][:5]
    assert [example.index for example in found.examples] == worst.tolist()
    first = found.examples[0]
    assert first.expected == str(y[first.index])
    assert first.actual == str(probability.argmax(1)[first.index])


@pytest.mark.parametrize("logits", [False, True])
def test_autoencoder_trained_by_crossentropy_is_a_regression(localize: Localize, logits: bool) -> None:
    model = network(5, 3, activation="linear" if logits else "sigmoid")
    model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=logits))
    output = model.predict(X, verbose=0)
    images = 1 / (1 + np.exp(-output)) if logits else output.copy()
    images[:30] += 0.1
    found = localize(model, X, images)
    assert (found.task, found.tests.failed) == ("regression", 30)
    assert found.examples[0].actual.endswith(", …")
    assert ", " in found.examples[0].expected


@pytest.mark.parametrize(
    ("loss", "activation", "labels", "task"),
    [
        ("sparse_categorical_crossentropy", "softmax", np.arange(60) % 3, "classification"),
        ("mse", "linear", np.linspace(0, 1, 60), "regression"),
        ("mse", "softmax", np.arange(60) % 3, "classification"),
        ("mae", "sigmoid", np.linspace(0, 1, 60), "regression"),
        (None, "softmax", np.arange(60) % 3, "classification"),
        (None, "linear", np.arange(60) % 3, "classification"),
        (None, "linear", np.linspace(0, 1, 60), "regression"),
        ("binary_crossentropy", "sigmoid", np.arange(60) % 2, "classification"),
        ("binary_crossentropy", "sigmoid", np.linspace(0, 1, 60), "regression"),
        (None, "sigmoid", np.linspace(0, 1, 60), "regression"),
        ("categorical_crossentropy", "softmax", np.full((60, 3), 1 / 3), "classification"),
    ],
)
def test_task_is_chosen_with_a_reason(
    localize: Localize, loss: str | None, activation: str, labels: Any, task: str
) -> None:
    model = network(5, 3 if task == "classification" else 1, activation=activation)
    if loss:
        model.compile(loss=loss)
    found = localize(model, X, labels)
    assert found.task == task
    assert found.task_reason
    assert localize(model, X, labels, task="regression").task_reason.startswith("as set; ")
