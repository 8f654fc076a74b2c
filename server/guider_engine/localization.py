"""From the kept hit spectrum to the ranking and its explanation; no model is run here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from .aggregation import aggregate
from .confidence import UNWEIGHTED, Weighting, weighting
from .formulas import suspiciousness
from .ranking import rank
from .uncertainty import rank_intervals
from .wire import (
    ActivationStatistics,
    Counts,
    FailingTest,
    Inputs,
    LayerPath,
    LayerScore,
    Localization,
    ModelLayer,
    ModelSummary,
    NeuronScore,
    Notice,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .counting import Counted
    from .spectrum.hits import LayerHits
    from .spectrum.statistics import LayerStatistics

TOP = 10
"""Most suspicious neurons that are told for each layer."""
FEW = 10
"""Fewer failing (or passing) tests than this: the ranking rests on little, and that is said."""


def localization(
    inputs: Inputs,
    model: ModelSummary,
    counted: Counted,
    versions: Mapping[str, str],
) -> Localization:
    """Rank the layers; ``timings`` are left to the caller."""
    hits = counted.hits
    failed, passed = hits.counts
    weights = weighting(counted.confidence, *hits.confidence_range) if inputs.weighted else UNWEIGHTED
    ranked = failed > 0
    scored = _Scorer(inputs, counted, weights, ranked)
    return Localization(
        method="guider",
        inputs=inputs,
        outcome="ranking" if ranked else "no-failure-signal",
        task=counted.task,
        task_reason=counted.reason,
        tests=Counts(failed + passed, passed, failed, counted.available),
        tests_read=counted.tests_read,
        model=model,
        layers=scored.layers(model.layers),
        examples=tuple(
            FailingTest(test.index, test.expected, test.actual, _number(test.confidence))
            for test in counted.examples
        ),
        notices=tuple(Notice(code, message) for code, message in _notices(model, counted, weights)),
        timings={},
        versions=versions,
    )


class _Scorer:
    def __init__(self, inputs: Inputs, counted: Counted, weights: Weighting, ranked: bool) -> None:
        self._inputs = inputs
        self._hits = counted.hits
        self._statistics = counted.statistics
        self._weights = weights
        self._ranked = ranked
        self._failing, self._passing = (
            weights.total(count, r)
            for count, r in zip(map(float, counted.hits.counts), counted.hits.confidence, strict=True)
        )
        rest = counted.hits.groups.sum(axis=1, keepdims=True) - counted.hits.groups  # (4, groups)
        self._rest_failing, self._rest_passing = (
            weights.total(rest[outcome], rest[2 + outcome])[:, None] for outcome in (0, 1)
        )

    def layers(self, layers: Sequence[ModelLayer]) -> tuple[LayerScore, ...]:
        neurons = {
            layer.path: self._suspiciousness(self._hits.layers[layer.path])
            for layer in layers
            if layer.path in self._hits.layers
        }
        scores = {path: float(aggregate(self._inputs.aggregation, s)) for path, s in neurons.items()}
        places = dict(zip(scores, rank(list(scores.values())), strict=True)) if self._ranked else {}
        ranks = self._rank_intervals(scores) if places else {}
        found = []
        for layer in layers:
            path = layer.path
            place, hits, stats = places.get(path), self._hits.layers.get(path), self._statistics.get(path)
            found.append(
                LayerScore(
                    path=path,
                    suspiciousness=scores[path] if place else None,
                    rank=place.place if place else None,
                    tied=bool(place and place.tied),
                    neurons=math.prod(hits.shape) if hits else 0,
                    sampled=hits.counts.shape[1] if hits else 0,
                    suspicious=int((2 * hits.counts[0] > self._hits.counts[0]).sum()) if hits else 0,
                    dead=int(stats.dead.sum()) if stats else 0,
                    saturated=int(stats.saturated.sum()) if stats else 0,
                    non_finite=int(stats.not_finite.sum()) if stats else 0,
                    top=self._top(hits, neurons[path], stats) if place and hits and stats else (),
                    inner=self.layers(layer.inner),
                    measured=len(stats.minimum) if stats else 0,
                    ranks=ranks.get(path),
                    neuron=hits.neuron if hits else "",
                )
            )
        return tuple(found)

    def _suspiciousness(self, hits: LayerHits) -> NDArray[np.float64]:
        a_ef, a_ep = self._weighted(hits.counts, hits.confidence)
        return suspiciousness(self._inputs.formula, a_ef, a_ep, self._failing, self._passing)

    def _rank_intervals(self, scores: Mapping[LayerPath, float]) -> dict[LayerPath, tuple[int, int]]:
        without = np.stack([self._without_each_group(self._hits.layers[path]) for path in scores], axis=1)
        return dict(zip(scores, rank_intervals(np.array(list(scores.values())), without), strict=True))

    def _without_each_group(self, hits: LayerHits) -> NDArray[np.float64]:
        """The layer's score (that of its measured neurons) with one group of tests left out, shape (groups,)."""
        rest = hits.groups.sum(axis=1, keepdims=True) - hits.groups
        a_ef, a_ep = self._weighted(rest[:2], rest[2:])
        s = suspiciousness(self._inputs.formula, a_ef, a_ep, self._rest_failing, self._rest_passing)
        return aggregate(self._inputs.aggregation, s)

    def _weighted(self, counts: NDArray[Any], confidence: NDArray[Any]) -> NDArray[np.float64]:
        counts, confidence = counts.astype(np.float64), confidence.astype(np.float64)
        # Rounding must not make a neuron that no test activates look a little activated, or negative.
        return np.maximum(self._weights.total(counts, confidence), 0.0) * (counts > 0)

    def _top(
        self, hits: LayerHits, scores: NDArray[np.float64], stats: LayerStatistics
    ) -> tuple[NeuronScore, ...]:
        best = _best(scores, hits.indices)
        counts, confidence = hits.counts[:, best], hits.confidence[:, best]
        failed, passed = self._hits.counts
        # Whole rows to numbers of Python: one by one, NumPy's take longer than all the rest.
        rows = zip(
            _positions(hits, best),
            scores[best].tolist(),
            *counts.tolist(),
            *self._weighted(counts, confidence).tolist(),
            _measured(hits, stats, best),
            strict=True,
        )
        return tuple(
            NeuronScore(
                position=position,
                suspiciousness=score,
                a_ef=int(a_ef),
                a_ep=int(a_ep),
                a_nf=failed - int(a_ef),
                a_np=passed - int(a_ep),
                weighted_ef=weighted_ef,
                weighted_ep=weighted_ep,
                **measured,
            )
            for position, score, a_ef, a_ep, weighted_ef, weighted_ep, measured in rows
        )


def _best(scores: NDArray[np.float64], indices: NDArray[np.int64] | None) -> NDArray[np.intp]:
    """The most suspicious neurons, each once: sampling may have drawn one more often."""
    if indices is None:
        candidates = np.arange(len(scores))
        if len(scores) > 100 * TOP:  # sorting all of millions would take longer than counting them
            least = np.partition(scores, -TOP)[-TOP]
            candidates = np.flatnonzero(scores >= least)
    else:
        _, candidates = np.unique(indices, return_index=True)
    return np.asarray(candidates[np.argsort(-scores[candidates], kind="stable")][:TOP])


def _positions(hits: LayerHits, neurons: NDArray[np.intp]) -> list[tuple[int, ...]]:
    flat = neurons if hits.indices is None else hits.indices[neurons]
    return list(zip(*(axis.tolist() for axis in np.unravel_index(flat, hits.shape or (1,))), strict=True))


class _Measured(TypedDict):
    passing: ActivationStatistics
    failing: ActivationStatistics
    minimum: float | None
    maximum: float | None
    condition: Literal["", "dead", "saturated", "constant"]


_UNKNOWN = _Measured(
    passing=ActivationStatistics(0, None, None),
    failing=ActivationStatistics(0, None, None),
    minimum=None,
    maximum=None,
    condition="",
)


def _measured(hits: LayerHits, stats: LayerStatistics, neurons: NDArray[np.intp]) -> list[_Measured]:
    """Activation of each neuron, if it was measured."""
    at, known = neurons, np.ones(len(neurons), bool)
    if hits.measured is not None:
        at = np.minimum(np.searchsorted(hits.measured, neurons), len(hits.measured) - 1)
        known = hits.measured[at] == neurons
    saturated = np.where(stats.saturated[at], "saturated", np.where(stats.constant[at], "constant", ""))
    condition = np.where(stats.dead[at], "dead", saturated)
    (failing, passing), tests = (
        zip(stats.mean[:, at].tolist(), stats.std[:, at].tolist(), strict=True),
        stats.tests,
    )
    rows = zip(
        known.tolist(),
        zip(*failing, strict=True),
        zip(*passing, strict=True),
        stats.minimum[at].tolist(),
        stats.maximum[at].tolist(),
        condition.tolist(),
        strict=True,
    )
    return [
        _Measured(
            failing=ActivationStatistics(tests[0], *map(_number, of_failing)),
            passing=ActivationStatistics(tests[1], *map(_number, of_passing)),
            minimum=_number(low),
            maximum=_number(high),
            condition=condition,
        )
        if is_known
        else _UNKNOWN
        for is_known, of_failing, of_passing, low, high, condition in rows
    ]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _notices(model: ModelSummary, counted: Counted, weights: Weighting) -> list[tuple[str, str]]:
    hits = counted.hits
    failed, passed = hits.counts
    notices = list(counted.notices)
    if failed == 0:
        notices.append(
            (
                "no-failing-test",
                f"{_all(passed)}, so the hit spectrum has nothing to tell: there is no ranking. If the "
                "model is wrong, add tests that show it.",
            )
        )
    elif passed == 0:
        reason = f"judged by: {counted.reason}"
        notices.append(
            (
                "all-tests-fail",
                f"{_all(failed, 'fail')} ({reason}): suspiciousness then only says how often neurons are active. "
                "Take the ranking as weak.",
            )
        )
    elif min(failed, passed) < FEW:
        which = "failing" if failed < passed else "passing"
        notices.append(
            (
                "few-tests",
                f"Only {min(failed, passed)} {which} test{'s' if min(failed, passed) > 1 else ''}: a few more or fewer "
                "could change the ranking.",
            )
        )
    if counted.broken:
        notices.append(("nan-weights", _broken_message(model, counted)))
    if hits.not_finite:
        notices.append(("nan-output", _nan_message(model, counted)))
    if failed and weights.constant and hits.not_finite < failed + passed:
        notices.append(
            (
                "constant-confidence",
                "The model is equally confident on every test, so all tests weigh the same.",
            )
        )
    unseen = [layer.name for layer in model.layers if layer.path not in hits.layers]
    if unseen:
        notices.append(
            (
                "not-observed",
                f"Not ranked, because their output could not be observed as one dense array: {', '.join(unseen)}.",
            )
        )
    return notices


def _all(tests: int, do: str = "pass") -> str:
    return f"All {tests:,} tests {do}" if tests != 1 else f"The only test {do}{'es' if do == 'pass' else 's'}"


def _nan_message(model: ModelSummary, counted: Counted) -> str:
    total = sum(counted.hits.counts)
    # Where weights are not finite, the first layer to show it is another: ReLU may turn NaN into 0.
    observed = () if counted.broken else model.layers
    first = next(
        (
            layer.name
            for layer in observed
            if layer.path in counted.statistics and counted.statistics[layer.path].not_finite.any()
        ),
        None,
    )
    origin = f" The first layer to put out NaN or infinity is {first}." if first else ""
    return (
        f"The output is NaN on {counted.hits.not_finite:,} of {total:,} tests; they count as failed.{origin}"
    )


def _broken_message(model: ModelSummary, counted: Counted) -> str:
    names = ", ".join(counted.broken[:3]) + (", …" if len(counted.broken) > 3 else "")
    return (
        f"Weights of {len(counted.broken)} of {len(model.layers)} layers are NaN or infinite ({names}): the training "
        "diverged, so the ranking says little. Lower the learning rate, and look for NaN or huge numbers in the data."
    )
