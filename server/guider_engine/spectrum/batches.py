"""Batches of one fixed shape, so that a step is compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.load.tests.testset import TestSet, map_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from guider_engine.fit import Fit
    from guider_engine.load.tests.testset import Arrays

BYTES = 48 << 20
"""Budget for what one batch takes."""
LARGEST = 512
"""Tests of a batch at most."""
LEAST = 8
"""Tests of a batch, even if the budget does not hold them: a model takes as long for fewer."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some tests, padded with repetitions of the last one to the fixed size."""

    inputs: Any
    """As the model takes them."""
    labels: Arrays
    valid: NDArray[np.float32]
    """1 for a test, 0 for padding; shape (size,)."""
    first: int
    """Number of its first test."""
    tests: int
    """How many there are, without padding."""


def batches(tests: TestSet, fit: Fit, size: int) -> Iterator[Batch]:
    """All tests in batches of exactly ``size``."""
    first = 0
    for block in tests.blocks(size):
        n = len(block)
        valid = np.zeros(size, np.float32)
        valid[:n] = 1
        inputs, labels = _padded(block.inputs, size - n), _padded(block.labels, size - n)
        yield Batch(fit.adapt(inputs), labels, valid, first, n)
        first += n


def batch_size(fixed: int | None, bytes_of_test: float, tests: int | None) -> int:
    """As many tests as the byte budget holds, or what the model fixes.

    Args:
        fixed: by the model.
        bytes_of_test: that one test takes while it is in the model; 0: not known.
        tests: how many there are, where known.
    """
    if fixed is not None:
        return fixed
    fitting = BYTES / bytes_of_test if bytes_of_test else 128
    return int(min(max(LEAST, min(LARGEST, fitting)), LARGEST if tests is None else tests))


def _padded(arrays: Arrays, missing: int) -> Arrays:
    if not missing:
        return arrays
    return map_arrays(lambda array: np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]), arrays)
