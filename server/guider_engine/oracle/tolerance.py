"""How far a regression may be off."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from guider_engine.errors import unusable
from guider_engine.load.tests.testset import TestSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

PUBLISHED = 1e-3
"""Largest absolute difference of a component from its target that passes (GUIDER, released code)."""
MOST_TESTS = 100_000
"""Whose targets are read to know their scale …"""
MOST_VALUES = 8_000_000
"""… if they are not more numbers than this."""
FLOOR = 0.01
"""Of the mean size of the targets: a relative tolerance is never less than it allows for a target of this size."""

_SYNTAX = re.compile(r"\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)\s*(|%|iqr)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """As it was set."""

    amount: float
    """A fraction where it is relative."""
    kind: Literal["absolute", "relative", "iqr"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Every component passes within ``relative`` · |target|, and within ``absolute`` of it."""

    relative: float
    absolute: tuple[float, ...]
    """One, or one for each component."""
    words: str
    notices: tuple[tuple[str, str], ...] = ()


def parse_tolerance(text: str) -> Tolerance:
    """``0.001``, ``5%``, ``0.1 iqr``.

    Raises:
        EngineFailure: it is none of them.
    """
    match = _SYNTAX.fullmatch(text)
    amount = float(match[1]) if match else math.nan
    if match is None or not 0 < amount < math.inf:
        raise unusable(
            "tolerance-syntax",
            f"The tolerance {text!r} is not understood. Expected a positive number (0.001), a percentage of each "
            "target (5%), or a part of the targets' interquartile range (0.1 iqr).",
        )
    unit = match[2].lower()
    if unit == "%":
        return Tolerance(amount / 100, "relative")
    return Tolerance(amount, "iqr" if unit == "iqr" else "absolute")


def limits(
    text: str, labels: NDArray[Any], tests: TestSet, pick: Callable[[Any], Any], name: str = ""
) -> Limits:
    """What a tolerance allows on these targets.

    Args:
        text: the setting.
        labels: some targets, (tests, …).
        tests: to read all targets for their interquartile range.
        pick: takes the targets out of a block's labels.
        name: of the output, where there are several.

    Raises:
        EngineFailure: the setting is not understood.
    """
    tolerance = parse_tolerance(text)
    if tolerance.kind == "absolute":
        return Limits(0.0, (tolerance.amount,), f"within {tolerance.amount:g} of each target")
    if tolerance.kind == "relative":
        sizes = np.abs(labels.astype(np.float64))
        sizes = sizes[np.isfinite(sizes)]
        floor = float(tolerance.amount * FLOOR * sizes.mean()) if sizes.size else 0.0
        floor = floor or PUBLISHED
        percent = f"{tolerance.amount * 100:g}%"
        return Limits(tolerance.amount, (floor,), f"within {percent} of each target (at least {floor:.3g})")
    return _scaled(tolerance.amount, _targets(labels, tests, pick), f" of {name}" if name else "")


def _scaled(amount: float, targets: NDArray[np.float64], of: str) -> Limits:
    scale = np.ones(targets.shape[1])
    fallbacks = {"std": 0, "constant": 0}
    absolute = []
    for k in range(targets.shape[1]):
        values = targets[:, k]
        values = values[np.isfinite(values)]
        scale[k] = float(np.subtract(*np.percentile(values, [75, 25]))) if values.size else 0.0
        if scale[k] <= 0 and values.size and np.ptp(values) > 0:
            scale[k] = float(values.std())
            fallbacks["std"] += 1
        if scale[k] <= 0:
            fallbacks["constant"] += 1
        absolute.append(amount * float(scale[k]) if scale[k] > 0 else PUBLISHED)
    low, high = min(absolute), max(absolute)
    known = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    words = f"within {known} of each target ({amount:g} of the interquartile range)"
    notices: list[tuple[str, str]] = []
    total = len(absolute)
    if fallbacks["std"]:
        notices.append(
            (
                "tolerance-scale",
                f"Half of the targets{of} or more are equal in {fallbacks['std']} of {total} components, so that "
                "the interquartile range is 0: their standard deviation is taken instead.",
            )
        )
    if fallbacks["constant"]:
        notices.append(
            (
                "tolerance-scale",
                f"The targets{of} do not vary in {fallbacks['constant']} of {total} components: there, answers must be "
                f"within {PUBLISHED:g}.",
            )
        )
    return Limits(0.0, tuple(absolute), words, tuple(notices))


def _targets(labels: NDArray[Any], tests: TestSet, pick: Callable[[Any], Any]) -> NDArray[np.float64]:
    """Targets of all tests, of every k-th where there are very many; (tests, components)."""
    columns = math.prod(labels.shape[1:])
    most = max(1000, min(MOST_TESTS, MOST_VALUES // max(1, columns)))
    every = math.ceil(tests.total / most) if tests.total else 1
    found: list[NDArray[np.float64]] = []
    first = rows = 0
    for block in tests.blocks(1024):
        targets = np.asarray(pick(block.labels))[-first % every :: every]
        found.append(targets.reshape(len(targets), columns).astype(np.float64))
        first += len(block)
        rows += len(targets)
        if rows >= most:
            break
    return np.concatenate(found)[:most]
