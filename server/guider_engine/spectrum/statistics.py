"""How the neurons behave on some failing and passing tests: activation, dead, saturated, not finite.

Taken in the same pass as the hit spectrum, from the first batches only; for explanation, no score depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.wire import LayerPath

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .hits import Observed

    Floats = NDArray[np.float64]

LIMITS: dict[str, tuple[float, float]] = {
    "sigmoid": (0.0, 1.0),
    "hard_sigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "softsign": (-1.0, 1.0),
}
"""Limits that an activation approaches and where its gradient vanishes."""

AT_BOUND = 0.01
"""Share of the range that counts as being at a bound."""

SATURATED = 0.95
"""Share of the tests at a bound from which a neuron counts as saturated."""


@dataclass(frozen=True, slots=True)
class LayerStatistics:
    """Statistics of one layer's measured neurons over the tests that were measured.

    ``mean`` and ``std`` have shape (2, neurons), failing and passing; the other arrays (neurons,). NaN and infinity
    count as 0 in them.
    """

    tests: tuple[int, int]
    """Failing and passing tests that were measured."""
    mean: Floats
    std: Floats
    minimum: Floats
    maximum: Floats
    not_finite: NDArray[np.bool_]
    dead: NDArray[np.bool_]
    """0 on every test that was measured, and active on none of all tests."""
    saturated: NDArray[np.bool_]
    constant: NDArray[np.bool_]
    """The same value, not 0, on every test that was measured."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """From where on neurons count as being at a bound; shape (neurons,)."""

    low: Floats
    high: Floats

    @classmethod
    def of(cls, activation: str | None, neurons: int) -> Bounds:
        """Those of a layer's activation; infinite where it has none."""
        low, high = LIMITS.get(activation or "", (-math.inf, math.inf))
        margin = AT_BOUND * (high - low) if math.isfinite(high) else 0.0
        return cls(np.full(neurons, low + margin), np.full(neurons, high - margin))

    @classmethod
    def join(cls, parts: Sequence[Bounds]) -> Bounds:
        """One after the other."""
        return cls(
            np.concatenate([part.low for part in parts]), np.concatenate([part.high for part in parts])
        )


def contributions(
    ops: Any, row: Any, failed: Any, passed: Any, bounds: Bounds, measure: Any, double: str
) -> Mapping[Any, Any]:
    """What a batch adds to the statistics; nothing where ``measure``, a boolean, is false.

    Args:
        ops: of the backend.
        row: outputs of neurons, (batch, neurons), float32.
        failed: 1 for each failing test, (batch,).
        passed: 1 for each passing test; neither for padding.
        bounds: of the neurons.
        measure: whether to.
        double: the widest float dtype.
    """
    neurons = int(row.shape[1])

    def measured() -> tuple[Any, ...]:
        outcome = ops.cast(ops.stack([failed, passed], axis=0), double)
        finite = ops.isfinite(row)
        a = ops.cast(ops.where(finite, row, ops.zeros_like(row)), double)
        real = ops.expand_dims(failed + passed, 1) > 0
        infinite = ops.full((), math.inf, double) * ops.ones_like(a)
        at_bound = ops.logical_or(a <= ops.cast(bounds.low, double), a >= ops.cast(bounds.high, double))
        return (
            ops.sum(outcome, axis=1),
            ops.matmul(outcome, a),
            ops.matmul(outcome, ops.square(a)),
            ops.min(ops.where(real, a, infinite), axis=0),
            ops.max(ops.where(real, a, -infinite), axis=0),
            ops.max(ops.cast(ops.logical_and(real, ops.logical_not(finite)), double), axis=0),
            ops.sum(ops.cast(ops.logical_and(real, at_bound), double), axis=0),
        )

    def nothing() -> tuple[Any, ...]:
        pair, one = ops.zeros((2, neurons), double), ops.zeros((neurons,), double)
        infinite = ops.full((neurons,), math.inf, double)
        return ops.zeros((2,), double), pair, pair, infinite, -infinite, one, one

    tests, sums, squares, low, high, bad, bound = ops.cond(measure, measured, nothing)
    return {
        "measured tests": ("sum", tests),
        "sum": ("sum", sums),
        "squares": ("sum", squares),
        "minimum": ("minimum", low),
        "maximum": ("maximum", high),
        "not finite": ("maximum", bad),
        "at bound": ("sum", bound),
    }


def finish(
    totals: Mapping[Any, NDArray[Any]], layers: Mapping[LayerPath, Observed]
) -> dict[LayerPath, LayerStatistics]:
    """The statistics of each layer from the totals of `contributions` (and ``groups``, the hit spectrum)."""
    return {path: _of_layer(totals, layer.columns) for path, layer in layers.items()}


def _of_layer(totals: Mapping[Any, NDArray[Any]], columns: slice) -> LayerStatistics:
    tests = totals["measured tests"]
    low, high = (np.array(totals[name][columns], np.float64) for name in ("minimum", "maximum"))
    bad = np.array(totals["not finite"][columns] > 0)
    active = totals["groups"][:2, :, columns].sum(axis=(0, 1)) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = totals["sum"][:, columns] / tests[:, None]
        std = np.sqrt(np.maximum(totals["squares"][:, columns] / tests[:, None] - mean**2, 0.0))
    still = high - low <= 1e-6 * np.maximum(1.0, np.maximum(abs(low), abs(high)))
    dead = (low == 0) & (high == 0) & ~active & ~bad
    saturated = totals["at bound"][columns] >= SATURATED * tests.sum()
    return LayerStatistics(
        tests=(int(tests[0]), int(tests[1])),
        mean=mean,
        std=std,
        minimum=low,
        maximum=high,
        not_finite=bad,
        dead=dead,
        saturated=saturated & ~dead,
        constant=still & ~dead & ~saturated,
    )
