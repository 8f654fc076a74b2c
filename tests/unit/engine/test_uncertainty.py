"""Intervals of ranks: narrow where groups of tests agree, wide where they do not."""

from __future__ import annotations

import numpy as np

from guider_engine.uncertainty import rank_intervals


def test_groups_that_agree_leave_no_doubt() -> None:
    scores = np.array([0.2, 0.9, 0.5])
    assert rank_intervals(scores, np.tile(scores, (8, 1))) == ((3, 3), (1, 1), (2, 2))


def test_ties_share_their_ranks() -> None:
    scores = np.array([0.5, 0.5, 0.1])
    assert rank_intervals(scores, np.tile(scores, (8, 1))) == ((1, 2), (1, 2), (3, 3))


def test_a_difference_within_its_error_is_none() -> None:
    """The error of a difference by hand: √(7/8 · Σ(d − mean d)²) = √(7/8 · 8 · 0.01²) = 0.0265, times 2.3646."""
    turn = np.array([0.01, -0.01] * 4)
    for difference, certain in ((0.062, False), (0.063, True)):
        scores = np.array([0.5 + difference, 0.5])
        without = np.stack([scores[0] + turn, np.full(8, 0.5)], axis=1)
        assert rank_intervals(scores, without) == (((1, 1), (2, 2)) if certain else ((1, 2), (1, 2)))


def test_layers_that_move_together_stay_in_order() -> None:
    scores = np.array([0.51, 0.5])
    without = scores + np.linspace(-0.3, 0.3, 8)[:, None]
    assert rank_intervals(scores, without) == ((1, 1), (2, 2))


def test_intervals_hold_the_rank_that_all_tests_would_give() -> None:
    """Of layers whose score is a mean over tests, known for 100,000; samples of 400 in 8 groups, 200 times."""
    random = np.random.default_rng(5)
    truth = np.array([0.50, 0.52, 0.55, 0.60])
    held = []
    for _ in range(200):
        tests = random.random((400, 4)) < truth
        groups = np.arange(400) % 8
        without = np.stack([tests[groups != g].mean(0) for g in range(8)])
        found = rank_intervals(tests.mean(0), without)
        held += [low <= rank <= high for (low, high), rank in zip(found, (4, 3, 2, 1), strict=True)]
    assert np.mean(held) > 0.93
