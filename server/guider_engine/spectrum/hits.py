"""The hit spectrum: how often each neuron is active on failing and on passing tests.

One pass. Each step calls the model once on a batch, judges it in place, and reduces every layer to four numbers a
neuron, W·H with H = [output > t] of shape (batch, neurons) and W of shape (4, batch) holding for each test: fails,
passes, fails·r, passes·r (r the confidence). The weights are affine in r (see ``confidence.py``), so their range need
not be known beforehand. Memory does not grow with the number of tests.

r becomes two whole numbers, r = m·(high·2⁻¹⁴ + low·2⁻²⁸) with m the largest |r| of the batch, whose sums over a batch
are exact in single precision, which is twice as fast as double and all that some backends have. So sums over the same
tests are equal to the last bit, as D* asks, which divides by their difference.

Of all neurons of most layers (`MEASURED`, `SPARSE`) the counts are kept by `GROUPS` groups of tests, for the
uncertainty (``uncertainty.py``), and the activations of some tests are summed up (``statistics.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.backend import Backend, Pass
from guider_engine.oracle.verdict import Oracle
from guider_engine.wire import Inputs, LayerPath

from .sampling import Sampler
from .statistics import Bounds, LayerStatistics, contributions, finish
from .taps import Tap, observe
from .views import View, view

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from guider_engine.fit import Fit

    from .batches import Batch

EXAMPLES = 5
"""The most confidently failing tests, which are told."""
MEASURED = 512
"""Neurons of a layer up to which all are measured, too, rather than only counted."""
SPARSE = 256
"""Of a layer with more, every k-th is measured, so that no more are than these."""
GROUPS = 8
"""Groups of tests, each with about as many failing and as many passing ones."""
STEP = 2.0**14
"""Whole numbers up to here have exact sums in single precision, over up to 2⁹ tests."""
HUGE = 1 << 16
"""Neurons of a layer from which on memory counts more than the last digits: single precision does."""
KEPT = 512
"""Failing and passing tests, each, whose activations are measured at least, if there are so many …"""
MOST_MEASURED = 2048
"""… within as many tests."""


@dataclass(frozen=True, slots=True)
class LayerHits:
    """Hit spectrum of one layer's (sampled) neurons."""

    shape: tuple[int, ...]
    """Shape of the layer's neurons."""
    neuron: str
    """What one is, for people."""
    indices: NDArray[np.int64] | None
    """Flat indices of the sampled neurons, ascending, with repetitions; ``None``: all of them."""
    counts: NDArray[Any]
    """Shape (2, neurons): number of failing, of passing tests that activate the neuron."""
    confidence: NDArray[Any]
    """Shape (2, neurons): sum of r over those tests."""
    measured: NDArray[np.int64] | None
    """Which of the (sampled) neurons were measured, ascending; ``None``: all."""
    groups: NDArray[np.float64]
    """Of the measured neurons, by group: both rows of ``counts``, then of ``confidence``; (4, groups, measured)."""


@dataclass(frozen=True, slots=True)
class Failing:
    """A failing test: its number, its labels, what was answered, the confidence."""

    index: int
    labels: Any
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
    groups: NDArray[np.float64]
    """By group: number of failing, of passing tests, and the sums of r over them; shape (4, groups)."""
    not_finite: int
    """Tests whose output had a NaN."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A layer as it was met while compiling."""

    shape: tuple[int, ...]
    neuron: str
    indices: NDArray[np.int64] | None
    neurons: int
    """That are kept."""
    measured: NDArray[np.int64] | None
    start: int
    """Where its measured neurons begin in the row of all layers' measured neurons."""

    @property
    def columns(self) -> slice:
        """Its measured neurons."""
        return slice(self.start, self.start + (self.neurons if self.measured is None else len(self.measured)))


@dataclass(slots=True)
class Layout:
    """What a step observes; filled while it is compiled."""

    layers: dict[LayerPath, Observed] = field(default_factory=dict)


def make_step(
    backend: Backend,
    model: Any,
    taps: tuple[Tap, ...],
    activations: dict[LayerPath, str | None],
    fit: Fit,
    oracle: Oracle,
    options: Inputs,
) -> tuple[Pass, Layout]:
    """Prepare the pass; it is compiled on its first batch.

    Args:
        backend: that the model runs on.
        model: the model.
        taps: its layers.
        activations: name of each layer's activation function, where it has one.
        fit: how inputs are fed.
        oracle: judges a batch.
        options: for ``threshold``, above which a neuron is active, ``neurons_per_layer``, ``seed``,
            ``neuron`` and ``recurrent``.
    """
    ops, layout = backend.ops, Layout()

    def step(inputs: Any, labels: Any, valid: Any, before: Any, measure: Any) -> Any:
        fed = fit.cast(ops, inputs)
        output, seen = observe(model, fed, taps)
        verdict = oracle.judge(fed, labels, output)
        failed = valid * ops.cast(verdict.failed, "float32")
        passed = valid - failed
        weights, scale = _weights(ops, failed, passed, verdict.confidence, backend.double)
        found: dict[Any, Any] = {}
        rows, bounds = [], []
        start = 0
        samplers = {True: Sampler(options.neurons_per_layer, options.seed)}
        # Inside a nested layer the stream is another one, so that the published scores do not depend on it.
        samplers[False] = Sampler(options.neurons_per_layer, options.seed)
        layout.layers.clear()
        for tap in taps:
            if not seen[tap.path]:
                continue
            drawn, values = _draw(
                ops, view(ops, tap.layer, seen[tap.path], options), samplers[len(tap.path) == 1]
            )
            neurons = int(values.shape[1])
            measured = None
            if neurons > MEASURED:
                found[tap.path] = _large(ops, weights, scale, values > options.threshold, backend.double)
                stride = -(-neurons // SPARSE)
                measured = np.arange(0, neurons, stride)
                values = values[:, ::stride]
            observed = Observed(drawn.shape, drawn.neuron, drawn.indices, neurons, measured, start)
            layout.layers[tap.path] = observed
            rows.append(values)
            bounds.append(Bounds.of(activations.get(tap.path), int(values.shape[1])))
            start = observed.columns.stop
        if rows:
            row = ops.concatenate(rows, axis=1) if len(rows) > 1 else rows[0]
            grouped = _by_group(ops, weights, failed, passed, before)  # (6 * groups, batch)
            hits = ops.cast(row > options.threshold, "float32")
            sums = ops.reshape(ops.matmul(grouped, hits), (6, GROUPS, start))
            found["row"] = "sum", _whole(ops, ops.sum(sums, axis=1), scale, backend.double)
            found["groups"] = "sum", _whole(ops, sums, scale, backend.double)
            found["tests"] = "sum", _whole(ops, ops.sum(weights, axis=1), scale, backend.double)
            of_groups = ops.reshape(ops.sum(grouped, axis=1), (6, GROUPS))
            found["tests by group"] = "sum", _whole(ops, of_groups, scale, backend.double)
            found |= contributions(ops, row, failed, passed, Bounds.join(bounds), measure, backend.double)
        return found, (verdict.failed, verdict.confidence, verdict.predicted, verdict.not_finite)

    return backend.stream(step, model), layout


@dataclass(frozen=True, slots=True)
class _Drawn:
    shape: tuple[int, ...]
    neuron: str
    indices: NDArray[np.int64] | None


def _draw(ops: Any, of_layer: View, sampler: Sampler) -> tuple[_Drawn, Any]:
    indices = sampler.draw(int(of_layer.values.shape[1]))
    values = of_layer.values if indices is None else ops.take(of_layer.values, indices, axis=1)
    return _Drawn(of_layer.shape, of_layer.neuron, indices), values


def _weights(ops: Any, failed: Any, passed: Any, confidence: Any, double: str) -> tuple[Any, Any]:
    """W with r as its two whole numbers, shape (6, batch), and m."""
    r = ops.cast(confidence, double)
    largest = ops.max(ops.abs(r))
    scale = ops.where(largest > 0, largest, ops.ones_like(largest))
    scaled = r / scale * STEP
    high = ops.round(scaled)
    low = ops.cast(ops.round((scaled - high) * STEP), "float32")
    high = ops.cast(high, "float32")
    return ops.stack(
        [failed, passed, failed * high, passed * high, failed * low, passed * low], axis=0
    ), scale


def _whole(ops: Any, sums: Any, scale: Any, dtype: str) -> Any:
    """Sums of W's rows (6, …) as counts and sums of r, (4, …)."""
    sums, scale = ops.cast(sums, dtype), ops.cast(scale, dtype)
    return ops.concatenate([sums[:2], scale * (sums[2:4] / STEP + sums[4:] / STEP**2)], axis=0)


def _by_group(ops: Any, weights: Any, failed: Any, passed: Any, before: Any) -> Any:
    """The weights with zeros outside each group: failing and passing tests go round the groups in turn."""
    turn = ops.where(
        failed > 0, before[0] + ops.cumsum(failed, axis=0) - 1.0, before[1] + ops.cumsum(passed, axis=0) - 1.0
    )
    group = ops.mod(turn, float(GROUPS))
    members = ops.cast(
        ops.equal(ops.expand_dims(ops.arange(GROUPS, dtype="float32"), 1), ops.expand_dims(group, 0)),
        "float32",
    )
    batch = int(weights.shape[1])
    return ops.reshape(ops.expand_dims(weights, 1) * ops.expand_dims(members, 0), (6 * GROUPS, batch))


def _large(ops: Any, weights: Any, scale: Any, hits: Any, double: str) -> tuple[str, Callable[[], Any]]:
    """What a layer with many neurons adds, (4, neurons), when it is its turn; until then a neuron takes one byte."""

    def sums() -> Any:
        return _whole(ops, ops.matmul(weights, ops.cast(hits, "float32")), scale, double)

    def single() -> Any:
        return ops.matmul(_whole(ops, weights, scale, "float32"), ops.cast(hits, "float32"))

    return "sum", sums if int(hits.shape[1]) < HUGE else single


def count_hits(
    stream: Pass, layout: Layout, batches: Iterable[Batch], progress: Callable[[int], None]
) -> tuple[Hits, dict[LayerPath, LayerStatistics], tuple[Failing, ...]]:
    """Stream all tests through the step.

    Args:
        stream: from `make_step`.
        layout: from there, too.
        batches: of the tests.
        progress: told how many tests are done, after each batch; may raise to stop.

    Returns:
        The hit spectrum, the statistics of the layers, and the most confidently failing tests.
    """
    stream.reset()
    tally = _Tally()
    for batch in batches:
        before = np.array([tally.counts[0] % GROUPS, tally.counts[1] % GROUPS], np.float32)
        measure = tally.wants_measuring
        per_test = stream(batch.inputs, batch.labels, batch.valid, before, np.array(measure))
        tally.add(batch, per_test, measure)
        progress(tally.done)
    totals = stream.totals()
    return tally.hits(totals, layout), finish(totals, layout.layers), tuple(tally.worst)


class _Tally:
    """What is known of the tests so far."""

    def __init__(self) -> None:
        self.done = 0
        self.counts = [0, 0]
        self.worst: list[Failing] = []
        self._range = (math.inf, -math.inf)
        self._not_finite = 0
        self._measured = [0, 0]

    @property
    def wants_measuring(self) -> bool:
        return min(self._measured) < KEPT and sum(self._measured) < MOST_MEASURED

    def add(self, batch: Batch, per_test: Sequence[NDArray[Any]], measured: bool) -> None:
        failed, r, predicted, nan = (tensor[: batch.tests] for tensor in per_test)
        r = r.astype(np.float64)
        for outcome, those in enumerate((failed, ~failed)):
            self.counts[outcome] += int(those.sum())
            self._measured[outcome] += int(those.sum()) if measured else 0
        self._range = (min(self._range[0], float(r.min())), max(self._range[1], float(r.max())))
        self._not_finite += int(nan.sum())
        self._add_worst(batch, failed, r, predicted)
        self.done += batch.tests

    def _add_worst(self, batch: Batch, failed: Any, r: Any, predicted: Any) -> None:
        from guider_engine.load.tests.testset import map_arrays

        failing = np.flatnonzero(failed)
        for i in failing[np.argsort(-r[failing], kind="stable")][:EXAMPLES]:
            labels = map_arrays(lambda array, i=i: np.array(array[i]), batch.labels)
            self.worst.append(Failing(batch.first + int(i), labels, float(predicted[i]), float(r[i])))
        self.worst = sorted(self.worst, key=lambda test: -test.confidence)[:EXAMPLES]

    def hits(self, totals: dict[Any, NDArray[Any]], layout: Layout) -> Hits:
        failing, passing = totals["tests"][2:] if layout.layers else (0.0, 0.0)
        return Hits(
            layers={path: _layer_hits(path, layer, totals) for path, layer in layout.layers.items()},
            counts=(self.counts[0], self.counts[1]),
            confidence=(float(failing), float(passing)),
            confidence_range=self._range,
            groups=np.array(totals["tests by group"]) if layout.layers else np.zeros((4, GROUPS)),
            not_finite=self._not_finite,
        )


def _layer_hits(path: LayerPath, layer: Observed, totals: dict[Any, NDArray[Any]]) -> LayerHits:
    groups = np.array(totals["groups"][:, :, layer.columns])
    sums = np.array(totals["row"][:, layer.columns]) if layer.measured is None else totals[path]
    return LayerHits(layer.shape, layer.neuron, layer.indices, sums[:2], sums[2:], layer.measured, groups)
