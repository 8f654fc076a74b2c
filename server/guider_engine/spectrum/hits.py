"""The hit spectrum: how often each neuron is active on failing and on passing tests.

One pass. Each traced step calls the model once on a batch, judges it in the graph, and reduces every layer to four
numbers a neuron, W·H with H = [output > t] of shape (batch, neurons) and W of shape (4, batch) holding for each
test: fails, passes, fails·r, passes·r (r the confidence). The weights are affine in r (see ``confidence.py``), so
their range need not be known beforehand. Memory does not grow with the number of tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.oracle import Oracle
from guider_engine.wire import Inputs, LayerPath

from .batches import Feed
from .sampling import Sampler
from .taps import Tap, flatten, observe, shape_of
from .traced import Traced

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXAMPLES = 5
"""The most confidently failing tests, which are told."""
KEPT = 512
"""Failing and passing tests whose numbers are kept, each, for the activation statistics."""


@dataclass(frozen=True, slots=True)
class LayerHits:
    """Hit spectrum of one layer's (sampled) neurons."""

    shape: tuple[int, ...]
    """Shape of the layer's output without the batch axis."""
    indices: NDArray[np.int64] | None
    """Flat indices of the sampled neurons, ascending, with repetitions; ``None``: all of them."""
    counts: NDArray[np.float64]
    """Shape (2, neurons): number of failing, of passing tests that activate the neuron."""
    confidence: NDArray[np.float64]
    """Shape (2, neurons): sum of r over those tests."""


@dataclass(frozen=True, slots=True)
class Failing:
    """A failing test: its number, the model's prediction, its confidence."""

    index: int
    predicted: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Hits:
    """Hit spectrum of a whole model."""

    layers: dict[LayerPath, LayerHits]
    """Without the layers that could not be observed."""
    counts: tuple[int, int]
    """Number of failing, of passing tests."""
    confidence: tuple[float, float]
    """Sum of r over them."""
    confidence_range: tuple[float, float]
    """Smallest and largest r of all tests."""
    not_finite: int
    """Tests whose output had a NaN."""
    worst: tuple[Failing, ...]
    """The most confidently failing tests."""
    kept: NDArray[np.int64]
    """Numbers of some failing and passing tests, ascending."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A layer as it was met in the trace."""

    shape: tuple[int, ...]
    indices: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class Step:
    """A traced step: one batch in, four numbers a neuron out."""

    run: Traced
    observed: dict[LayerPath, Observed]
    """Filled while tracing."""


def make_step(
    model: Any,
    taps: tuple[Tap, ...],
    oracle: Oracle,
    dtype: str,
    options: Inputs,
) -> Step:
    """Prepare the step; it is traced on its first run.

    Args:
        model: the model.
        taps: its layers.
        oracle: judges a batch.
        dtype: that the inputs are fed in.
        options: for ``threshold``, above which a neuron is active, ``neurons_per_layer`` and ``seed``.
    """
    import tensorflow as tf

    observed: dict[LayerPath, Observed] = {}

    def step(inputs: Any, labels: Any, valid: Any) -> Any:
        output, seen = observe(model, tf.cast(inputs, dtype), taps)
        verdict = oracle(labels, output)
        failed = valid * tf.cast(verdict.failed, tf.float64)
        passed = valid - failed
        weights = tf.stack([failed, passed, failed * verdict.confidence, passed * verdict.confidence])
        # Inside a nested layer the stream is another one, so that the published scores do not depend on it.
        outer, inner = (Sampler(options.neurons_per_layer, options.seed) for _ in range(2))
        sums = {}
        for path, tensors in seen.items():
            if not tensors:
                continue
            flat = flatten(tensors)
            indices = (outer if len(path) == 1 else inner).draw(flat.shape[1])
            observed[path] = Observed(shape_of(tensors), indices)
            if indices is not None:
                flat = tf.gather(flat, indices, axis=1)
            sums[path] = tf.matmul(weights, tf.cast(flat > options.threshold, tf.float64))
        return sums, verdict.failed, verdict.confidence, verdict.predicted, verdict.not_finite

    return Step(Traced(step), observed)


def count_hits(step: Step, feed: Feed, progress: Callable[[int], None]) -> Hits:
    """Stream all tests through the step.

    Args:
        step: from `make_step`.
        feed: the tests.
        progress: told how many tests are done, after each batch; may raise to stop.
    """
    sums: dict[LayerPath, NDArray[np.float64]] = {}
    counts, confidence = np.zeros(2), np.zeros(2)
    low, high, not_finite, done = np.inf, -np.inf, 0, 0
    worst: list[Failing] = []
    kept: dict[bool, list[NDArray[np.int64]]] = {True: [], False: []}
    for batch in feed.batches():
        found, *per_test = step.run(batch.inputs, batch.labels, batch.valid)
        n = len(batch.indices)
        failed, r, predicted, nan = (np.asarray(tensor)[:n] for tensor in per_test)
        for path, tensor in found.items():
            sums[path] = sums[path] + tensor.numpy() if path in sums else tensor.numpy()
        counts += (failed.sum(), n - failed.sum())
        confidence += (r[failed].sum(), r[~failed].sum())
        low, high = min(low, float(r.min())), max(high, float(r.max()))
        not_finite += int(nan.sum())
        worst += [
            Failing(int(batch.indices[i]), float(predicted[i]), float(r[i])) for i in np.flatnonzero(failed)
        ]
        worst = sorted(worst, key=lambda test: -test.confidence)[:EXAMPLES]
        for outcome, parts in kept.items():
            if room := KEPT - sum(map(len, parts)):
                parts.append(batch.indices[failed == outcome][:room])
        done += n
        progress(done)
    return Hits(
        layers={
            path: LayerHits(o.shape, o.indices, sums[path][:2], sums[path][2:])
            for path, o in step.observed.items()
        },
        counts=(int(counts[0]), int(counts[1])),
        confidence=(float(confidence[0]), float(confidence[1])),
        confidence_range=(low, high),
        not_finite=not_finite,
        worst=tuple(worst),
        kept=np.sort(np.concatenate([*kept[True], *kept[False]])),
    )
