"""Which of many tests are run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 100
"""Different numbers up to which labels are classes; of more, each quantile is drawn from alike."""


def draw(labels: Any, limit: int, seed: int) -> tuple[NDArray[np.int64], str]:
    """Numbers of ``limit`` tests, ascending, each class with its share of all, and how they were drawn, for people.

    Args:
        labels: of all tests, class numbers, one-hot rows, or targets; the first column of several counts.
        limit: how many.
        seed: of the draw.
    """
    strata, how = _strata(np.asarray(labels))
    random = np.random.default_rng(seed)
    order = random.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]  # class by class, each in random order
    # Every k-th of that: each class has its share, rounded up or down.
    start = random.random()
    chosen = order[np.floor((np.arange(limit) + start) * len(order) / limit).astype(np.int64)]
    return np.sort(chosen), f"drawn {how}, seed {seed}"


def _strata(labels: NDArray[Any]) -> tuple[NDArray[Any], str]:
    flat = labels.reshape(len(labels), -1)
    if flat.shape[1] > 1 and bool((flat.sum(axis=1) == 1).all()) and bool(np.isin(flat, (0, 1)).all()):
        return flat.argmax(axis=1), "by class"
    first = flat[:, 0]
    values, number = np.unique(first, return_inverse=True)
    if len(values) <= FEW:
        return number, "by class"
    return (
        np.argsort(np.argsort(first, kind="stable"), kind="stable") * 10 // len(first)
    ), "by tenths of the target"
