"""One streaming pass of the tests through the model, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .backend import Backend, Pass, backend_of
from .errors import CancelRequested, EngineFailure, first_line, unusable
from .fit import Fit, fit
from .load.model import LoadedModel, described, reset_states
from .load.tests.testset import Block, TestSet, map_arrays
from .oracle import choose_oracle
from .oracle.verdict import Oracle
from .request import Check, Report, Timer
from .spectrum.batches import LARGEST, Batch, batch_size, batches
from .spectrum.cost import bytes_of_test
from .spectrum.hits import Failing, Hits, Layout, count_hits, make_step
from .spectrum.statistics import LayerStatistics
from .spectrum.taps import taps_of
from .wire import Inputs, LayerPath, Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE = 64
"""First tests, from which is seen how inputs are fed and tests are judged."""


@dataclass(frozen=True, slots=True)
class Example:
    """A failing test, for people."""

    index: int
    expected: str
    actual: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Counted:
    """A hit spectrum and what it was counted from. Plain data: arrays, numbers, text."""

    task: Task
    reason: str
    confidence: Literal["certainty", "error"]
    tests_read: str
    available: int | None
    hits: Hits
    statistics: dict[LayerPath, LayerStatistics]
    examples: tuple[Example, ...]
    notices: tuple[tuple[str, str], ...]
    broken: tuple[str, ...]
    """Names of the layers with a weight that is NaN or infinite."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How tests are run through a model. Its pass, once compiled, serves other weights and other tests."""

    loaded: LoadedModel
    fit: Fit
    oracle: Oracle
    size: int
    """Tests of a batch."""
    stream: Pass
    layout: Layout
    key: Hashable | None
    """What the pass was compiled for, beside the model; ``None``: it serves nothing else."""


def prepare(
    loaded: LoadedModel,
    tests: TestSet,
    inputs: Inputs,
    previous: Plan | None = None,
    most: int = LARGEST,
) -> Plan:
    """See how inputs are fed and tests are judged; the pass of a previous plan is used again where it fits.

    Args:
        loaded: the model.
        tests: the tests.
        inputs: the options.
        previous: an earlier plan, of whatever model.
        most: tests of a batch at most.

    Raises:
        EngineFailure: model and tests do not fit each other.
        MemoryError: there is not enough memory.
    """
    backend = backend_of(loaded.model)
    sample, fitted, outputs = _look(backend, loaded, tests, min(SAMPLE, most))
    loaded = described(loaded)
    oracle = choose_oracle(
        inputs,
        loaded.summary,
        backend,
        tests,
        Block(fitted.adapt(sample.inputs), sample.labels),
        outputs,
        lambda measure: _per_test(backend, loaded.model, fitted, tests, most, measure),
    )
    size = min(most, batch_size(fitted.batch, bytes_of_test(loaded.summary, inputs), tests.total))
    size = fitted.batch or size
    key = _key(inputs, oracle, sample, size)
    if (
        previous is not None
        and key is not None
        and previous.loaded.model is loaded.model
        and previous.key == key
    ):
        return Plan(loaded, fitted, oracle, size, previous.stream, previous.layout, key)
    activations = {layer.path: layer.activation for layer in loaded.summary.all_layers()}
    stream, layout = make_step(
        backend, loaded.model, taps_of(loaded.model), activations, fitted, oracle, inputs
    )
    return Plan(loaded, fitted, oracle, size, stream, layout, key)


def _look(backend: Backend, loaded: LoadedModel, tests: TestSet, rows: int) -> tuple[Block, Fit, Any]:
    """The first tests, how they are fed, and what the model puts out for them; fewer where memory does not suffice."""
    sample = next(tests.blocks(rows))
    fitted = fit(loaded.model, loaded.summary, sample)
    try:
        return sample, fitted, run_sample(backend, loaded.model, fitted, sample)
    except MemoryError as error:
        if rows == 1 or fitted.batch is not None:
            raise _out_of_memory(fitted.batch or rows) from error
    return _look(backend, loaded, tests, rows // 2)


def count(
    plan: Plan, tests: TestSet, inputs: Inputs, report: Report, check: Check, timer: Timer
) -> tuple[Counted, Plan]:
    """Stream the tests through the model; in smaller batches where memory does not suffice.

    Returns:
        What was counted, and the plan that did.

    Raises:
        EngineFailure: the model fails on the tests, nothing can be observed, or there is not enough memory.
        CancelRequested: through ``check``.
    """
    while True:
        try:
            return _count(plan, tests, report, check, timer), plan
        except MemoryError as error:
            if plan.fit.batch is not None or plan.size == 1:
                raise _out_of_memory(plan.size) from error
            plan = prepare(plan.loaded, tests, inputs, most=plan.size // 2)


def run_sample(backend: Backend, model: Any, fitted: Fit, sample: Any) -> Any:
    """What the model puts out for the sample: a structure of arrays.

    Raises:
        EngineFailure: it fails.
    """
    rows = len(sample)
    size = fitted.batch or rows

    def run(first: int) -> Any:
        part = map_arrays(
            lambda a: np.resize(a[first : first + size], (size, *a.shape[1:])) if size != rows else a,
            sample.inputs,
        )
        return backend.call_model(model, fitted.cast(backend.ops, fitted.adapt(part)))

    try:
        reset_states(model)
        outputs = _joined([run(first) for first in range(0, rows, size)])
    except (EngineFailure, MemoryError):
        raise
    except Exception as error:
        shapes = ", ".join(f"{array.shape[1:]} {array.dtype}" for array in _arrays(sample.inputs))
        raise unusable(
            "model-call",
            f"The model fails on the first tests (each of shape {shapes}): {first_line(error)}",
            detail=str(error),
        ) from error
    return _map(lambda array: array[:rows] if array.ndim else array, outputs)


def _count(plan: Plan, tests: TestSet, report: Report, check: Check, timer: Timer) -> Counted:
    total = tests.total

    def progress(done: int) -> None:
        check()
        known = f" of {total:,}" if total is not None else ""
        report("spectrum", f"{done:,}{known} tests", done / total if total else None)

    report("trace", "Tracing the model", None)
    reset_states(plan.loaded.model)
    with timer("spectrum"):
        hits, statistics, worst = _run(plan, batches(tests, plan.fit, plan.size), progress)
    if not hits.layers:
        raise unusable("nothing-observed", "No layer of the model puts out numbers that can be observed.")
    notices = (*plan.loaded.notices, *tests.notices, *plan.fit.notices, *plan.oracle.notices)
    if plan.stream.eager:
        notices += (("eager", "The model cannot be traced as a graph and ran op by op, which is slower."),)
    return Counted(
        task=plan.oracle.task,
        reason=plan.oracle.reason,
        confidence=plan.oracle.confidence,
        tests_read=tests.description,
        available=tests.available,
        hits=hits,
        statistics=statistics,
        examples=tuple(_example(test, plan.oracle) for test in worst),
        notices=notices,
        broken=_broken(plan.loaded.model),
    )


def _run(
    plan: Plan, stream: Any, progress: Callable[[int], None]
) -> tuple[Hits, dict[LayerPath, LayerStatistics], tuple[Failing, ...]]:
    try:
        return count_hits(plan.stream, plan.layout, stream, progress)
    except (EngineFailure, CancelRequested, MemoryError):
        raise
    except Exception as error:
        problem = plan.oracle.problem()
        if problem is not None:
            raise problem from error
        raise unusable(
            "model-call", f"The model fails on the tests: {first_line(error)}", detail=str(error)
        ) from error


def _per_test(
    backend: Backend,
    model: Any,
    fitted: Fit,
    tests: TestSet,
    most: int,
    measure: Callable[[Any, Any, Any], Any],
) -> NDArray[np.float64]:
    def step(inputs: Any, labels: Any) -> Any:
        fed = fitted.cast(backend.ops, inputs)
        return {}, measure(fed, labels, model(fed, training=False))

    stream = backend.stream(step, model)
    reset_states(model)
    found = [_values(stream, batch) for batch in batches(tests, fitted, fitted.batch or min(most, 128))]
    return np.concatenate(found)


def _values(stream: Pass, batch: Batch) -> NDArray[np.float64]:
    return np.asarray(stream(batch.inputs, batch.labels), np.float64)[: batch.tests]


def _key(inputs: Inputs, oracle: Oracle, sample: Any, size: int) -> Hashable | None:
    if oracle.rule is None:
        return None
    shapes = tuple(
        (array.shape[1:], str(array.dtype))
        for part in (sample.inputs, sample.labels)
        for array in _arrays(part)
    )
    options = (inputs.threshold, inputs.neurons_per_layer, inputs.seed, inputs.neuron, inputs.recurrent)
    return (oracle.rule, shapes, size, options)


def _example(test: Failing, oracle: Oracle) -> Example:
    return Example(test.index, oracle.describe(test.labels), oracle.answer(test.predicted), test.confidence)


def _arrays(arrays: Any) -> list[Any]:
    if isinstance(arrays, dict):
        return list(arrays.values())
    return list(arrays) if isinstance(arrays, tuple) else [arrays]


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _map(function, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_map(function, item) for item in value)
    return function(value)


def _joined(parts: list[Any]) -> Any:
    """One after the other along the first axis."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: _joined([part[key] for part in parts]) for key in first}
    if isinstance(first, (list, tuple)):
        return tuple(_joined(list(items)) for items in zip(*parts, strict=True))
    return np.concatenate(parts) if len(parts) > 1 and first.ndim else first


def _out_of_memory(size: int) -> EngineFailure:
    return EngineFailure(
        "environment",
        "out-of-memory",
        f"There is not enough memory to run the model on {size} test{'s' if size > 1 else ''} at a time. Close other "
        'programs, or keep fewer neurons (neurons_per_layer = 200, neuron = "channel").',
    )


def _broken(model: Any) -> tuple[str, ...]:
    return tuple(
        str(layer.name)
        for layer in model.layers
        if not all(np.isfinite(np.asarray(weight, np.float64)).all() for weight in layer.get_weights())
    )
