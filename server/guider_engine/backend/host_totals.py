"""Totals of a pass on the host, for backends whose steps cannot keep any."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import Combine

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INTO: dict[Combine, Callable[..., Any]] = {"sum": np.add, "minimum": np.minimum, "maximum": np.maximum}


class HostTotals:
    """What was added since `reset`, in float64 whatever the batches were computed in."""

    def __init__(self) -> None:
        """Nothing so far."""
        self._totals: dict[Any, NDArray[np.float64]] = {}

    def add(self, key: Any, combine: Combine, array: NDArray[Any]) -> None:
        """One batch's contribution; its shape is that of all batches."""
        total = self._totals.get(key)
        if total is None:
            self._totals[key] = np.array(array, np.float64)
        else:
            _INTO[combine](total, array, out=total)

    def read(self) -> dict[Any, NDArray[np.float64]]:
        """The totals by key."""
        return dict(self._totals)

    def reset(self) -> None:
        """Begin anew."""
        self._totals.clear()
