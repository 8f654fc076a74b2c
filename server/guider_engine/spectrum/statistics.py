"""How the neurons behave on some failing and passing tests: activation, dead, saturated, not finite.

A second, bounded pass over at most a thousand tests, for explanation only; no score depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.oracle import Oracle
from guider_engine.wire import LayerPath

from .batches import Feed
from .hits import Hits
from .taps import Tap, flatten, observe
from .traced import Traced

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BOUNDS: dict[str, tuple[float, float]] = {
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
    """Statistics of one layer's (sampled) neurons over the tests that were read.

    ``mean`` and ``std`` have shape (2, neurons), failing and passing; the other arrays (neurons,). NaN and infinity
    count as 0 in them.
    """

    tests: tuple[int, int]
    """Failing and passing tests that were read."""
    mean: Floats
    std: Floats
    minimum: Floats
    maximum: Floats
    not_finite: NDArray[np.bool_]
    dead: NDArray[np.bool_]
    """0 on every test that was read, and active on none of all tests."""
    saturated: NDArray[np.bool_]
    constant: NDArray[np.bool_]
    """The same value, not 0, on every test that was read."""


def measure(
    model: Any,
    taps: tuple[Tap, ...],
    hits: Hits,
    oracle: Oracle,
    activations: dict[LayerPath, str | None],
    feed: Feed,
    check: Callable[[], None],
) -> dict[LayerPath, LayerStatistics]:
    """Run the tests of ``hits.kept`` and summarise each observed layer.

    Args:
        model: the model.
        taps: its layers.
        hits: says which neurons and which tests.
        oracle: judges a batch.
        activations: name of each layer's activation function, where it has one.
        feed: the tests.
        check: called after each batch; may raise to stop.
    """
    import tensorflow as tf

    def step(x: Any, y: Any, valid: Any) -> Any:
        output, seen = observe(model, tf.cast(x, feed.dtype), taps)
        fails = valid * tf.cast(oracle(y, output).failed, tf.float64)
        outcome = tf.stack([fails, valid - fails])
        return {p: reduce(p, seen[p], outcome, valid) for p in hits.layers}, tf.reduce_sum(outcome, axis=1)

    def reduce(path: LayerPath, tensors: list[Any], outcome: Any, valid: Any) -> Any:
        flat = flatten(tensors)
        indices = hits.layers[path].indices
        a = tf.cast(flat if indices is None else tf.gather(flat, indices, axis=1), tf.float64)
        finite = tf.math.is_finite(a)
        a = tf.where(finite, a, tf.zeros_like(a))
        real = tf.cast(valid > 0, tf.bool)[:, None]
        low, high = BOUNDS.get(activations.get(path) or "", (-np.inf, np.inf))
        margin = AT_BOUND * (high - low) if np.isfinite(high) else 0.0
        at_bound = tf.cast((a <= low + margin) | (a >= high - margin), tf.float64)
        return {
            "sum": tf.matmul(outcome, a),
            "squares": tf.matmul(outcome, a * a),
            "min": tf.reduce_min(tf.where(real, a, np.inf), axis=0),
            "max": tf.reduce_max(tf.where(real, a, -np.inf), axis=0),
            "bad": tf.reduce_any(tf.logical_not(finite) & real, axis=0),
            "bound": tf.linalg.matvec(at_bound, valid, transpose_a=True),
        }

    run = Traced(step)
    totals: dict[LayerPath, dict[str, Any]] = {}
    tests = np.zeros(2)
    for batch in feed.batches(hits.kept):
        found, outcome = run(batch.inputs, batch.labels, batch.valid)
        tests += outcome.numpy()
        for path, part in found.items():
            new = {name: tensor.numpy() for name, tensor in part.items()}
            totals[path] = _merge(totals[path], new) if path in totals else new
        check()
    return {path: _finish(total, tests, hits.layers[path].counts.sum(0)) for path, total in totals.items()}


def _merge(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    combine = {"min": np.minimum, "max": np.maximum, "bad": np.logical_or}
    return {name: combine.get(name, np.add)(old[name], new[name]) for name in old}


def _finish(total: dict[str, Any], tests: Floats, hits: Floats) -> LayerStatistics:
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total["sum"] / tests[:, None]
        std = np.sqrt(np.maximum(total["squares"] / tests[:, None] - mean**2, 0.0))
    low, high = total["min"], total["max"]
    still = high - low <= 1e-6 * np.maximum(1.0, np.maximum(abs(low), abs(high)))
    dead = (low == 0) & (high == 0) & (hits == 0) & ~total["bad"]
    saturated = total["bound"] >= SATURATED * tests.sum()
    return LayerStatistics(
        tests=(int(tests[0]), int(tests[1])),
        mean=mean,
        std=std,
        minimum=low,
        maximum=high,
        not_finite=total["bad"],
        dead=dead,
        saturated=saturated & ~dead,
        constant=still & ~dead & ~saturated,
    )
