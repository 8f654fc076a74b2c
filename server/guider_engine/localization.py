"""From the kept hit spectrum to the ranking and its explanation; no model is run here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .aggregation import aggregate
from .confidence import UNWEIGHTED, Weighting, weighting
from .formulas import suspiciousness
from .ranking import rank
from .wire import (
    ActivationStatistics,
    Counts,
    FailingTest,
    Inputs,
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
    weights = weighting(counted.task, *hits.confidence_range) if inputs.weighted else UNWEIGHTED
    ranked = failed > 0
    scored = _Scorer(inputs, counted, weights, ranked)
    return Localization(
        method="guider",
        inputs=inputs,
        outcome="ranking" if ranked else "no-failure-signal",
        task=counted.task,
        task_reason=counted.task_reason,
        tests=Counts(failed + passed, passed, failed),
        tests_read=counted.tests_read,
        model=model,
        layers=scored.layers(model.layers),
        examples=_examples(counted),
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

    def layers(self, layers: Sequence[ModelLayer]) -> tuple[LayerScore, ...]:
        neurons = [
            self._suspiciousness(self._hits.layers[layer.path]) if layer.path in self._hits.layers else None
            for layer in layers
        ]
        scores = [None if s is None else aggregate(self._inputs.aggregation, s) for s in neurons]
        places = iter(rank([s for s in scores if s is not None]))
        found = []
        for layer, s, score in zip(layers, neurons, scores, strict=True):
            place = next(places) if score is not None else None
            known = self._ranked and place is not None
            hits = self._hits.layers.get(layer.path)
            stats = self._statistics.get(layer.path)
            found.append(
                LayerScore(
                    path=layer.path,
                    suspiciousness=score if known else None,
                    rank=place.place if known and place else None,
                    tied=bool(known and place and place.tied),
                    neurons=math.prod(hits.shape) if hits else 0,
                    sampled=hits.counts.shape[1] if hits else 0,
                    suspicious=int((2 * hits.counts[0] > self._hits.counts[0]).sum()) if hits else 0,
                    dead=int(stats.dead.sum()) if stats else 0,
                    saturated=int(stats.saturated.sum()) if stats else 0,
                    non_finite=int(stats.not_finite.sum()) if stats else 0,
                    top=self._top(hits, s, stats)
                    if self._ranked and hits and stats and s is not None
                    else (),
                    inner=self.layers(layer.inner),
                )
            )
        return tuple(found)

    def _suspiciousness(self, hits: LayerHits) -> NDArray[np.float64]:
        a_ef, a_ep = self._weighted(hits)
        return suspiciousness(self._inputs.formula, a_ef, a_ep, self._failing, self._passing)

    def _weighted(self, hits: LayerHits) -> NDArray[np.float64]:
        # Rounding must not make a neuron that no test activates look a little activated, or negative.
        return np.maximum(self._weights.total(hits.counts, hits.confidence), 0.0) * (hits.counts > 0)

    def _top(
        self, hits: LayerHits, scores: NDArray[np.float64], stats: LayerStatistics
    ) -> tuple[NeuronScore, ...]:
        indices = np.arange(len(scores)) if hits.indices is None else hits.indices
        _, first = np.unique(indices, return_index=True)  # a neuron may have been drawn more than once
        order = first[np.argsort(-scores[first], kind="stable")][:TOP]
        weighted = self._weighted(hits)
        failed, passed = self._hits.counts
        return tuple(
            NeuronScore(
                position=tuple(int(axis) for axis in np.unravel_index(indices[k], hits.shape or (1,))),
                suspiciousness=float(scores[k]),
                a_ef=int(hits.counts[0, k]),
                a_ep=int(hits.counts[1, k]),
                a_nf=int(failed - hits.counts[0, k]),
                a_np=int(passed - hits.counts[1, k]),
                weighted_ef=float(weighted[0, k]),
                weighted_ep=float(weighted[1, k]),
                failing=_activation(stats, 0, k),
                passing=_activation(stats, 1, k),
                minimum=_number(stats.minimum[k]),
                maximum=_number(stats.maximum[k]),
                condition="dead"
                if stats.dead[k]
                else "saturated"
                if stats.saturated[k]
                else "constant"
                if stats.constant[k]
                else "",
            )
            for k in order
        )


def _activation(stats: LayerStatistics, outcome: int, k: int) -> ActivationStatistics:
    return ActivationStatistics(
        stats.tests[outcome], _number(stats.mean[outcome, k]), _number(stats.std[outcome, k])
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _examples(counted: Counted) -> tuple[FailingTest, ...]:
    more = ", …" if counted.task == "regression" and counted.units > 1 else ""
    return tuple(
        FailingTest(
            index=test.index,
            expected=expected,
            actual=f"{test.predicted:g}{more}",
            confidence=_number(test.confidence),
        )
        for test, expected in zip(counted.hits.worst, counted.expected, strict=True)
    )


def _notices(model: ModelSummary, counted: Counted, weights: Weighting) -> list[tuple[str, str]]:
    hits = counted.hits
    failed, passed = hits.counts
    notices = list(counted.notices)
    if failed == 0:
        notices.append(
            (
                "no-failing-test",
                f"All {passed:,} tests pass, so the hit spectrum has nothing to tell: there is no ranking. If the "
                "model is wrong, add tests that show it.",
            )
        )
    elif passed == 0:
        reason = (
            "a regression passes only within 0.001 of its target"
            if counted.task == "regression"
            else "check the labels and the task first"
        )
        notices.append(
            (
                "all-tests-fail",
                f"All {failed:,} tests fail ({reason}): suspiciousness then only says how often neurons are active. "
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
