"""Suspiciousness of a layer from that of its neurons (GUIDER, "balanced aggregation")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .wire import Aggregation

if TYPE_CHECKING:
    from numpy.typing import NDArray


def aggregate(aggregation: Aggregation, suspiciousness: NDArray[np.float64]) -> NDArray[np.float64]:
    """One number for a layer, shape (…).

    ``mean-gini`` is mean(s) · (1 − Gini(s)): high where many neurons are suspicious rather than a few. With
    Gini(s) = Σ_{a<b} |s_a − s_b| / (m² · mean(s)) it equals (1/m²) Σ_{k=1..m} (2(m − k) + 1) · s_(k), s ascending,
    which needs no division by the mean: all zero gives 0, and Op2's negative values are defined.

    Args:
        aggregation: ``mean-gini`` or ``mean``.
        suspiciousness: of the layer's neurons, shape (…, m), m ≥ 1.
    """
    m = suspiciousness.shape[-1]
    if aggregation == "mean":
        return np.asarray(np.mean(suspiciousness, axis=-1))
    ascending = np.sort(suspiciousness, axis=-1)
    return np.asarray(ascending @ (2.0 * (m - np.arange(1, m + 1)) + 1) / m**2)
