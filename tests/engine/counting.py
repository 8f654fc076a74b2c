"""Counts hits of a model directly, without files: a batch is judged by what a test says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from guider_engine.backend import Pass, backend_of
from guider_engine.fit import Fit
from guider_engine.load.tests.testset import Block
from guider_engine.oracle.verdict import Oracle, Verdict
from guider_engine.spectrum.batches import batches
from guider_engine.spectrum.hits import Failing, Hits, count_hits, make_step
from guider_engine.spectrum.statistics import LayerStatistics
from guider_engine.spectrum.taps import taps_of
from guider_engine.wire import Inputs, LayerPath


@dataclass(frozen=True)
class Tests:
    """Arrays as a test set."""

    __test__ = False

    inputs: Any
    labels: Any
    description = ""
    notices: tuple[tuple[str, str], ...] = ()
    available = None
    classes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return len(self.labels)

    def blocks(self, rows: int) -> Iterator[Block]:
        for start in range(0, self.total, rows):
            part = slice(start, start + rows)
            inputs = (
                {k: v[part] for k, v in self.inputs.items()}
                if isinstance(self.inputs, dict)
                else self.inputs[part]
            )
            yield Block(inputs, self.labels[part])


@dataclass(frozen=True)
class Found:
    """What was counted, and the pass that did."""

    hits: Hits
    statistics: dict[LayerPath, LayerStatistics]
    worst: tuple[Failing, ...]
    again: Callable[[], Hits]
    stream: Pass


def hits_of(
    model: Any,
    inputs: Any,
    failed: Any,
    confidence: Any = None,
    *,
    size: int | None = None,
    activations: dict[LayerPath, str | None] | None = None,
    **options: Any,
) -> Found:
    """Count the hits of tests of which is given whether they fail, and how confident the model was."""
    failed = np.asarray(failed, bool)
    confidence = np.ones(len(failed)) if confidence is None else np.asarray(confidence, np.float64)
    backend = backend_of(model)
    ops = backend.ops

    def judge(_inputs: Any, labels: Any, _outputs: Any) -> Verdict:
        fails = labels[:, 0] > 0
        return Verdict(fails, labels[:, 1], ops.cast(fails, "float32"), ops.zeros_like(fails))

    labels = np.stack([failed.astype(np.float64), confidence], axis=1)
    oracle = Oracle("custom", "", judge, "certainty", str, str)
    fit = Fit(lambda arrays: arrays, lambda _ops, tensors: tensors, None, ())
    stream, layout = make_step(
        backend, model, taps_of(model), activations or {}, fit, oracle, Inputs("", (), "", **options)
    )

    def run() -> tuple[Hits, dict[LayerPath, LayerStatistics], tuple[Failing, ...]]:
        tests = Tests(inputs, labels)
        return count_hits(stream, layout, batches(tests, fit, size or len(failed)), lambda _done: None)

    hits, statistics, worst = run()
    return Found(hits, statistics, worst, lambda: run()[0], stream)
