"""Batches of one fixed shape, so that a model is traced once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BYTES = 64 << 20
"""Budget for the activations of one batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some tests, padded with repetitions of the last one to the fixed size."""

    inputs: NDArray[Any]
    labels: NDArray[Any]
    valid: NDArray[np.float64]
    """1 for a test, 0 for padding; shape (size,)."""
    indices: NDArray[np.int64]
    """The tests' numbers, without padding."""


def batch_size(model: Any, output_sizes: int, tests: int) -> int:
    """As many tests as the byte budget holds, at most 512, at least 1, or what the model's input fixes.

    Args:
        model: whose first input may fix the batch size.
        output_sizes: scalars that all layers together put out for one test; 0 if not known.
        tests: how many there are.
    """
    inputs = getattr(model, "inputs", None)
    if inputs and inputs[0].shape[0] is not None:
        return int(inputs[0].shape[0])
    fitting = BYTES // (4 * output_sizes) if output_sizes else 128
    return int(max(1, min(512, fitting, tests)))


@dataclass(frozen=True, slots=True)
class Feed:
    """The tests as a model takes them."""

    inputs: NDArray[Any]
    """Shape (N, …)."""
    labels: NDArray[Any]
    """Shape (N, …)."""
    dtype: str
    """That the inputs are cast to."""
    size: int
    """Tests a batch."""

    def batches(self, indices: NDArray[np.int64] | None = None) -> Iterator[Batch]:
        """All tests, or those of ``indices``, in batches of exactly ``size``."""
        total = len(self.labels) if indices is None else len(indices)
        for start in range(0, total, self.size):
            end = min(start + self.size, total)
            part = np.arange(start, end) if indices is None else indices[start:end]
            padded = np.concatenate([part, np.repeat(part[-1:], self.size - len(part))])
            valid = np.zeros(self.size)
            valid[: len(part)] = 1
            yield Batch(self.inputs[padded], self.labels[padded], valid, part)
