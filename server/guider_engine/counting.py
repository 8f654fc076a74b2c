"""One streaming pass of the tests through the model, and what is kept of it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .compatibility import describe_label, fit_inputs, label_notices, output_units
from .errors import CancelRequested, EngineFailure, first_line, unusable
from .load.tests import TestSet
from .oracle import choose_link, choose_task, classification, regression
from .request import Check, Report, Timer
from .spectrum.batches import Feed, batch_size
from .spectrum.hits import Hits, count_hits, make_step
from .spectrum.statistics import LayerStatistics, measure
from .spectrum.taps import taps_of
from .wire import Inputs, LayerPath, ModelSummary, Task, TaskChoice

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Counted:
    """A hit spectrum and what it was counted from."""

    key: Hashable
    task: Task
    task_reason: str
    tests_read: str
    hits: Hits
    statistics: dict[LayerPath, LayerStatistics]
    expected: tuple[str, ...]
    """Labels of ``hits.worst``, for people."""
    notices: tuple[tuple[str, str], ...]
    units: int
    """Scalars that the model puts out for one test."""
    broken: tuple[str, ...]
    """Names of the layers with a weight that is NaN or infinite."""


def prepare(
    model: Any, summary: ModelSummary, choice: TaskChoice, tests: TestSet
) -> tuple[NDArray[Any], str, Task, str, int]:
    """What the model is fed, its dtype, the task with its reason, and how many scalars are put out for one test.

    Raises:
        EngineFailure: model and tests do not fit each other.
    """
    array, dtype = fit_inputs(model, tests.inputs)
    task, reason = choose_task(choice, summary, tests.labels)
    return array, dtype, task, reason, output_units(model, array, dtype, task)


def count(
    key: Hashable,
    model: Any,
    summary: ModelSummary,
    inputs: Inputs,
    tests: TestSet,
    report: Report,
    check: Check,
    timer: Timer,
) -> Counted:
    """Stream the tests through the model."""
    array, dtype, task, reason, units = prepare(model, summary, inputs.task, tests)
    oracle = (classification if task == "classification" else regression)(choose_link(task, summary, units))
    taps = taps_of(model)
    feed = Feed(array, tests.labels, dtype, batch_size(model, _scalars(summary), len(tests)))
    step = make_step(model, taps, oracle, dtype, inputs)
    total = len(tests)

    def progress(done: int) -> None:
        check()
        report("spectrum", f"{done:,} of {total:,} tests", done / total)

    report("trace", "Tracing the model", None)
    with timer("spectrum"):
        try:
            hits = count_hits(step, feed, progress)
        except (EngineFailure, CancelRequested):
            raise
        except Exception as error:
            raise unusable(
                "model-call", f"The model fails on the tests: {first_line(error)}", detail=str(error)
            ) from error
    if not hits.layers:
        raise unusable("nothing-observed", "No layer of the model puts out numbers that can be observed.")
    report("statistics", "Reading activations", None)
    with timer("statistics"):
        activations = {layer.path: layer.activation for layer in summary.all_layers()}
        statistics = measure(model, taps, hits, oracle, activations, feed, check)
    expected = tuple(describe_label(task, tests.labels[test.index]) for test in hits.worst)
    notices = label_notices(task, units, tests.labels)
    if step.run.eager:
        notices += (("eager", "The model cannot be traced as a graph and ran op by op, which is slower."),)
    return Counted(
        key, task, reason, tests.description, hits, statistics, expected, notices, units, _broken(model)
    )


def _broken(model: Any) -> tuple[str, ...]:
    return tuple(
        str(layer.name)
        for layer in model.layers
        if not all(np.isfinite(np.asarray(weight, np.float64)).all() for weight in layer.get_weights())
    )


def _scalars(summary: ModelSummary) -> int:
    """Scalars that all layers put out for one test, also inside others; 0 when the model's own are not known."""
    total = 0
    for layer in summary.all_layers():
        shape = layer.output_shape
        if shape is not None and None not in shape[1:]:
            total += math.prod(axis or 1 for axis in shape[1:])
        elif len(layer.path) == 1:
            return 0
    return total
