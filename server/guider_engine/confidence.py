"""Weights of the tests from the model's confidence (GUIDER, "weighted suspiciousness")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number = TypeVar("Number", float, "NDArray[np.float64]")

CONSTANT = 1e-6
"""Spread of the confidence (relative to its size, at least absolute) that is float noise, not information.

The released code compares for equality only; a constant confidence of 1.0 ± 1e-7 then becomes a weight of 1 or 2
at random.
"""


@dataclass(frozen=True, slots=True)
class Weighting:
    """The affine map from a test's confidence r to its weight w = ``base`` + ``slope`` · r, in [1, 2].

    q = (r − min r) / (max r − min r) over all tests, passing and failing; where r is an error, 1 − q is taken;
    w = 1 + q.
    Being affine, it can be applied to sums over tests after the fact, so one pass over the tests is enough.
    """

    base: float
    slope: float
    constant: bool
    """Whether the confidence does not vary, so that all tests weigh the same."""

    def total(self, count: Number, confidence: Number) -> Number:
        """Σw over some tests, from how many there are and from Σr over them."""
        return self.base * count + self.slope * confidence


UNWEIGHTED = Weighting(1.0, 0.0, constant=False)


def weighting(confidence: Literal["certainty", "error"], minimum: float, maximum: float) -> Weighting:
    """The weighting for tests whose confidence lies between ``minimum`` and ``maximum``."""
    spread = maximum - minimum
    if spread <= CONSTANT * max(1.0, abs(maximum)):
        return Weighting(1.0 if confidence == "certainty" else 2.0, 0.0, constant=True)
    if confidence == "certainty":
        return Weighting(1 - minimum / spread, 1 / spread, constant=False)
    return Weighting(1 + maximum / spread, -1 / spread, constant=False)
