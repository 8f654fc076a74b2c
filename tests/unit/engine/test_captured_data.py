"""Batches are noted as they are taken, and none is taken ahead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from guider_engine.capture.data import MOST_TESTS, Batches, Fed, flowing, is_same_array, read


def never() -> None:
    """Is never cancelled."""


def test_a_noted_generator_is_taken_from_only_when_it_is_asked() -> None:
    taken: list[int] = []

    def source() -> Iterator[tuple[Any, Any]]:
        for index in range(5):
            taken.append(index)
            yield np.full((2, 3), index), np.full(2, index)

    batches = Batches()
    flow = flowing(source(), batches)
    assert taken == []
    next(flow)
    assert taken == [0]
    next(flow)
    assert (taken, batches.rows) == ([0, 1], 4)
    tests = read(Fed("test", "", "", 0, batches), never)
    assert tests.y.tolist() == [0, 0, 1, 1]


def test_no_more_batches_are_kept_than_tests_are_wanted() -> None:
    batches = Batches()
    for _ in range(100):
        batches.add(np.zeros((1_000, 2)), np.zeros(1_000))
    assert batches.rows == MOST_TESTS
    tests = read(Fed("test", "", "", 0, batches), never)
    assert len(tests.y) == MOST_TESTS
    assert [code for code, _ in tests.notices] == ["tests-sampled"]


def test_same_memory_is_the_same_data() -> None:
    x = np.arange(12.0).reshape(6, 2)
    assert is_same_array(x, x[:])
    assert is_same_array((x,), [x])
    assert not is_same_array(x, x[:3])
    assert not is_same_array(x, x.copy())
    assert not is_same_array(x, "x")
