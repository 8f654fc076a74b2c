"""Judges tests by the oracle that is chosen for them, without counting anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from guider_engine.backend import backend_of
from guider_engine.counting import Plan, prepare
from guider_engine.load.describe import summarize
from guider_engine.load.loss import loss_of
from guider_engine.load.model import LoadedModel
from guider_engine.load.tests.testset import Block, first_array, map_arrays
from guider_engine.oracle import Oracle
from guider_engine.wire import Inputs


@dataclass(frozen=True)
class Tests:
    """Arrays as a test set."""

    __test__ = False

    inputs: Any
    labels: Any
    classes: tuple[str, ...] = ()
    description = ""
    notices: tuple[tuple[str, str], ...] = ()
    available = None

    @property
    def total(self) -> int:
        return len(first_array(self.labels))

    def blocks(self, rows: int) -> Iterator[Block]:
        for start in range(0, self.total, rows):

            def part(array: Any, start: int = start) -> Any:
                return array[start : start + rows]

            yield Block(map_arrays(part, self.inputs), map_arrays(part, self.labels))


@dataclass(frozen=True)
class Judged:
    """Verdicts on all tests, in NumPy."""

    oracle: Oracle
    passed: list[bool]
    confidence: list[float]
    answers: list[str]
    expected: list[str]
    nan: list[bool]


def plan_of(
    model: Any, x: Any, y: Any, classes: tuple[str, ...] = (), root: str = "", **options: Any
) -> Plan:
    loaded = LoadedModel(model, summarize(model, loss_of(model)))
    return prepare(loaded, Tests(x, y, classes), Inputs("", (), root, **options))


def choose(model: Any, x: Any, y: Any, **options: Any) -> Oracle:
    """The oracle for these tests."""
    return plan_of(model, x, y, **options).oracle


def judge(model: Any, x: Any, y: Any, **options: Any) -> Judged:
    """What it says of each test, as part of a compiled step."""
    plan = plan_of(model, x, y, **options)
    backend, oracle = backend_of(model), plan.oracle

    def step(inputs: Any, labels: Any) -> Any:
        fed = plan.fit.cast(backend.ops, inputs)
        v = oracle.judge(fed, labels, model(fed, training=False))
        return {}, (v.failed, v.confidence, v.predicted, v.not_finite)

    failed, confidence, predicted, nan = backend.stream(step, model)(plan.fit.adapt(x), y)
    rows = range(len(failed))
    return Judged(
        oracle,
        [not one for one in failed.tolist()],
        [float(one) for one in confidence],
        [oracle.answer(float(one)) for one in predicted],
        [oracle.describe(map_arrays(lambda array, i=i: np.asarray(array[i]), y)) for i in rows],
        nan.tolist(),
    )
