"""The published scores of GUIDER's five shipped models, and small golden cases of our own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.engine.conftest import Localize, quiet
from tests.engine.reference import layer_scores

from guider_engine.session import Session
from guider_engine.wire import FORMULAS, Formula, Inputs, Localization

CHECKOUT = Path(__file__).parents[2]


def _package() -> Path | None:
    """The data of GUIDER's replication package: ``$GUIDER_PACKAGE``, or a folder of that name beside the checkout."""
    named = os.environ.get("GUIDER_PACKAGE")
    places = [Path(named)] if named else sorted(CHECKOUT.parent.glob("*/guider-package"))
    return next((place for place in places if (place / "models").is_dir()), None)


PACKAGE = _package()
MODELS = {
    "31627380": "classification",
    "31880720": "classification",
    "33969059": "regression",
    "34311586": "classification",
    "34673164": "classification",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "weighted_gini": {},
    "weighted_mean": {"aggregation": "mean"},
    "unweighted_gini": {"weighted": False},
}
PUBLISHED = dict(zip(FORMULAS, ("tarantula", "ochiai", "D_star", "Op2", "Barinel"), strict=True))
NOISY = "31627380"
"""Dense(1, softmax) answers 1.0 give or take float noise, which the released code stretches to weights 1 and 2."""


@pytest.fixture(scope="module")
def warm() -> Session:
    return Session()


@pytest.mark.skipif(PACKAGE is None, reason="GUIDER's replication data are not here (set GUIDER_PACKAGE)")
@pytest.mark.filterwarnings("ignore:You are using a softmax:UserWarning")
@pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`:UserWarning")
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("bug", MODELS)
def test_published_scores(warm: Session, bug: str, setting: str, formula: Formula) -> None:
    assert PACKAGE is not None
    folder = PACKAGE / "models" / bug
    published = json.loads((folder / f"published_{setting}.json").read_text())
    # A dead layer is NaN in the published files, and 0 in the published ranking.
    expected = np.nan_to_num(np.array(published[f"layer_{PUBLISHED[formula]}_score"], dtype=np.float64))
    data = (str(folder / "x_test.npy"), str(folder / "y_test.npy"))
    options: dict[str, Any] = {"formula": formula, "task": MODELS[bug], **SETTINGS[setting]}
    found = warm.localize(Inputs(str(folder / "model.h5"), data, str(folder), **options), quiet, quiet)
    scores = _scores(found)
    if bug == NOISY and setting.startswith("weighted"):
        assert "constant-confidence" in {notice.code for notice in found.notices}
        np.testing.assert_allclose(scores, expected, rtol=5e-3)
        assert np.abs(scores / expected - 1).max() > 1e-6
    else:
        np.testing.assert_allclose(scores, expected, rtol=1e-6)


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, Any]:
    """An untrained network with several hundred neurons in a layer, and 300 digits."""
    import keras
    from keras import layers
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(12, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(20, activation="tanh"),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax"),
        ]
    )
    return model, (x[:300] / 16).reshape(-1, 8, 8, 1).astype("float32"), y[:300]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"aggregation": "mean"},
        {"weighted": False},
        {"neurons_per_layer": 50, "seed": 9, "threshold": 0.3},
        {"neurons_per_layer": None},
    ],
    ids=str,
)
def test_streaming_agrees_with_the_formulas_taken_literally(
    localize: Localize, digits: tuple[Any, Any, Any], formula: Formula, options: dict[str, Any]
) -> None:
    import keras

    model, x, y = digits
    outputs = keras.Model(model.inputs, [layer.output for layer in model.layers]).predict(x, verbose=0)
    found = localize(model, x, y, formula=formula, task="classification", **options)
    expected = np.array(layer_scores(outputs, y, formula=formula, **options))
    assert 0 < found.tests.failed < 300
    np.testing.assert_allclose(_scores(found), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("formula", FORMULAS)
def test_regression_agrees_with_the_formulas_taken_literally(localize: Localize, formula: Formula) -> None:
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Input((3,)), layers.Dense(9, activation="relu"), layers.Dense(2)])
    x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    outputs = keras.Model(model.inputs, [layer.output for layer in model.layers]).predict(x, verbose=0)
    y = outputs[-1] + np.where(np.arange(40) % 3 == 0, 0.0, np.linspace(0.1, 2, 40))[:, None]
    found = localize(model, x, y, formula=formula, task="regression")
    assert (found.tests.passed, found.tests.failed) == (14, 26)
    expected = np.array(layer_scores(outputs, y, formula=formula, task="regression"))
    np.testing.assert_allclose(_scores(found), expected, rtol=1e-5)


def test_scores_by_hand(localize: Localize) -> None:
    """Two identity neurons, four tests; every number below can be checked with a pencil."""
    import keras
    from keras import layers

    model = keras.Sequential(
        [layers.Input((2,)), layers.Dense(2, activation="relu", use_bias=False, name="identity")]
    )
    model.layers[0].set_weights([np.eye(2)])
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.4], [0.9, 0.5]])
    y = [0, 0, 1, 0]  # tests 1 and 2 fail
    found = localize(model, x, y, weighted=False, task="classification")
    (layer,) = found.layers
    assert found.tests.failed == 2
    by_position = {neuron.position: neuron for neuron in layer.top}
    left, right = by_position[(0,)], by_position[(1,)]
    assert (left.a_ef, left.a_ep, left.a_nf, left.a_np) == (1, 2, 1, 0)
    assert (right.a_ef, right.a_ep, right.a_nf, right.a_np) == (2, 1, 0, 1)
    ochiai_left, ochiai_right = 1 / (2.0001 * 3) ** 0.5, 2 / (2.0001 * 3) ** 0.5
    assert left.suspiciousness == pytest.approx(ochiai_left)
    assert right.suspiciousness == pytest.approx(ochiai_right)
    mean, gini_numerator = (ochiai_left + ochiai_right) / 2, (ochiai_right - ochiai_left) / 4
    assert layer.suspiciousness == pytest.approx(mean - gini_numerator)
    assert layer.suspicious == 1  # the left one is active on half of them, not more
    # weighted: r = (1, 1, .6, .9) so q = (1, 1, 0, .75) and w = (2, 2, 1, 1.75)
    (layer,) = localize(model, x, y, task="classification").layers
    by_position = {neuron.position: neuron for neuron in layer.top}
    assert by_position[(0,)].weighted_ef == pytest.approx(1)
    assert by_position[(0,)].weighted_ep == pytest.approx(3.75)
    assert by_position[(1,)].weighted_ef == pytest.approx(3)
    assert by_position[(1,)].suspiciousness == pytest.approx(3 / (3.0001 * 4.75) ** 0.5)


def _scores(found: Localization) -> NDArray[np.float64]:
    return np.array([layer.suspiciousness for layer in found.layers], dtype=np.float64)
