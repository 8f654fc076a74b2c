"""Suspiciousness of a neuron from its hit spectrum (GUIDER, TOSEM 2025; DeepFault, FASE 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .wire import Formula

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPSILON = 1e-4
"""Added to both totals (GUIDER's released code), so that every denominator is positive."""


def suspiciousness(
    formula: Formula,
    a_ef: NDArray[np.float64],
    a_ep: NDArray[np.float64],
    failing: float | NDArray[np.float64],
    passing: float | NDArray[np.float64],
) -> NDArray[np.float64]:
    """Suspiciousness of each neuron.

    With f = ``a_ef``, p = ``a_ep``, F = ``failing`` + ε, P = ``passing`` + ε:

    - Tarantula  (f/F) / (f/F + p/P)
    - Ochiai     f / √(F·(f + p))
    - D*         f² / (F − f + p), star = 2
    - Op2        f − p / (P + 1)
    - Barinel    1 − p / (p + f)

    A neuron that no test activates (f = p = 0) has suspiciousness 0 by every formula.

    Args:
        formula: which of the five.
        a_ef: (weighted) number of failing tests that activate the neuron, shape (…, neurons).
        a_ep: the same for passing tests, shape (…, neurons).
        failing: (weighted) number of failing tests; broadcast.
        passing: (weighted) number of passing tests; broadcast.

    Returns:
        Shape (…, neurons), float64, finite.
    """
    f, p = a_ef, a_ep
    F, P = EPSILON + failing, EPSILON + passing
    with np.errstate(divide="ignore", invalid="ignore"):
        if formula == "tarantula":
            score = (f / F) / (f / F + p / P)
        elif formula == "ochiai":
            score = f / np.sqrt(F * (f + p))
        elif formula == "dstar":
            score = f**2 / (F - f + p)
        elif formula == "op2":
            score = f - p / (P + 1)
        else:
            score = 1 - p / (p + f)
    return np.where(f + p > 0, score, 0.0)
