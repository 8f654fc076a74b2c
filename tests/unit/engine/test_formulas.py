from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guider_engine.aggregation import aggregate
from guider_engine.confidence import weighting
from guider_engine.formulas import suspiciousness
from guider_engine.ranking import Rank, rank
from guider_engine.wire import FORMULAS, Formula


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        # 3 of 4 failing and 2 of 10 passing tests activate the neuron; the ε of the totals is 1e-4
        ("tarantula", (3 / 4.0001) / (3 / 4.0001 + 2 / 10.0001)),
        ("ochiai", 3 / math.sqrt(4.0001 * 5)),
        ("dstar", 9 / (4.0001 - 3 + 2)),
        ("op2", 3 - 2 / 11.0001),
        ("barinel", 1 - 2 / 5),
    ],
)
def test_formula_by_hand(formula: Formula, expected: float) -> None:
    (score,) = suspiciousness(formula, np.array([3.0]), np.array([2.0]), 4.0, 10.0)
    assert score == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("formula", FORMULAS)
def test_neuron_that_no_test_activates_is_not_suspicious(formula: Formula) -> None:
    assert suspiciousness(formula, np.zeros(2), np.zeros(2), 4.0, 10.0).tolist() == [0.0, 0.0]


def test_all_failing() -> None:
    f, p = np.array([5.0, 2.0]), np.zeros(2)
    assert suspiciousness("tarantula", f, p, 5.0, 0.0).tolist() == [1.0, 1.0]
    assert suspiciousness("barinel", f, p, 5.0, 0.0).tolist() == [1.0, 1.0]
    np.testing.assert_allclose(suspiciousness("ochiai", f, p, 5.0, 0.0), np.sqrt(f / 5.0001))
    assert suspiciousness("dstar", f, p, 5.0, 0.0)[0] == pytest.approx(25 / 1e-4)


def test_no_failing() -> None:
    f, p = np.zeros(1), np.array([3.0])
    for formula in FORMULAS:
        if formula != "op2":
            assert suspiciousness(formula, f, p, 0.0, 4.0).tolist() == [0.0]
    assert suspiciousness("op2", f, p, 0.0, 4.0)[0] == pytest.approx(-3 / 5.0001)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30))
def test_closed_form_is_mean_times_one_minus_gini(values: list[float]) -> None:
    s = np.array(values)
    gini = np.abs(s[:, None] - s[None, :]).sum() / 2 / (len(s) ** 2 * s.mean())
    assert aggregate("mean-gini", s) == pytest.approx(s.mean() * (1 - gini), rel=1e-9, abs=1e-9)
    assert aggregate("mean", s) == pytest.approx(s.mean())


def test_balanced_aggregation_by_hand() -> None:
    # mean 0.5; one pair differs by 1: Gini = 1 / (4 · 0.5) = 0.5
    assert aggregate("mean-gini", np.array([0.0, 1.0])) == pytest.approx(0.25)
    assert aggregate("mean-gini", np.array([0.5, 0.5])) == pytest.approx(0.5)


def test_dead_layer_scores_zero_and_negative_scores_are_defined() -> None:
    assert aggregate("mean-gini", np.zeros(5)) == 0.0
    assert aggregate("mean-gini", np.array([-1.0, -0.5])) == pytest.approx(-0.75 - 0.5 / 4)


def test_ties_share_the_best_place_and_say_so() -> None:
    assert rank([0.2, 0.9, 0.9, 0.1]) == (Rank(3, False), Rank(1, True), Rank(1, True), Rank(4, False))


def test_float_noise_is_a_tie_and_a_real_difference_is_not() -> None:
    assert [r.tied for r in rank([0.3, 0.1 + 0.2])] == [True, True]
    assert [r.place for r in rank([0.3, 0.3 + 1e-6])] == [2, 1]
    assert [r.tied for r in rank([0.0, 0.0])] == [True, True]


def test_empty_ranking() -> None:
    assert rank([]) == ()


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_weights_from_sums_are_the_sum_of_the_weights(confidences: list[float]) -> None:
    r = np.array(confidences)
    low, high = float(r.min()), float(r.max())
    spread = high - low
    q = (r - low) / spread if spread > 1e-6 else np.zeros_like(r)
    for kind, w in (("certainty", 1 + q), ("error", 1 + (1 - q))):
        found = weighting(kind, low, high).total(float(len(r)), float(r.sum()))  # type: ignore[arg-type]
        assert found == pytest.approx(w.sum(), rel=1e-6)


def test_constant_confidence_weighs_all_tests_the_same() -> None:
    noise = weighting("certainty", 1.0 - 1e-7, 1.0)
    assert noise.constant
    assert noise.total(10.0, 9.9999999) == 10.0
    assert weighting("error", 3.0, 3.0).total(10.0, 30.0) == 20.0
