"""Whether a test passes, and how confident the model was: chosen before the tests are run, judged inside the step.

One module a task; ``choose.py`` says which task, ``heads.py`` which labels belong to which output, ``links.py`` what
makes probabilities of outputs. Judges use the functions of `Backend.ops` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.backend import Backend
from guider_engine.load.tests.testset import Block, TestSet
from guider_engine.wire import Inputs, ModelSummary

from .choose import choose_task
from .classes import classification
from .function import custom
from .heads import Head, at, heads_of
from .reconstruction import autoencoder
from .regression import regression
from .shares import multi_label, segmentation
from .tolerance import limits
from .verdict import Judge, Oracle, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Judge", "Oracle", "Verdict", "choose_oracle"]

PerTest = Callable[[Callable[[Any, Any, Any], Any]], "NDArray[np.float64]"]


def choose_oracle(
    options: Inputs,
    model: ModelSummary,
    backend: Backend,
    tests: TestSet,
    sample: Block,
    outputs: Any,
    per_test: PerTest,
) -> Oracle:
    """How the tests are judged.

    Of several outputs each is judged on its own, and a test passes when it passes at all of them. Its confidence is
    the smallest one of the outputs that are classified; where there are none, the largest error.

    Args:
        options: ``oracle``, ``task``, ``tolerance``, ``accuracy``, ``quantile``.
        model: for the losses and activations of its outputs.
        backend: whose functions judge.
        tests: all of them, to see the scale of targets where the tolerance needs it.
        sample: the first of them; inputs as the model takes them.
        outputs: what the model puts out for the sample: an array, or a structure of arrays.
        per_test: runs all tests through the model and returns one float64 a test, measured by a function of
            (inputs, labels, outputs) of a batch that returns a tensor (batch,).

    Raises:
        EngineFailure: labels and outputs do not fit each other or the task, or an option cannot be understood.
    """
    if options.oracle:
        return custom(options, backend, sample, outputs)
    heads, unjudged = heads_of(model, tests, sample, outputs)
    oracles = [_of_head(head, options, backend, tests, per_test, len(heads) > 1) for head in heads]
    notices = _not_a_number(heads)
    if unjudged:
        names = ", ".join(unjudged)
        notices += (
            (
                "output-not-judged",
                f"There are no labels for these outputs, so they are not judged: {names}.",
            ),
        )
    joined = _joined(heads, oracles, backend, notices)
    told = {code for code, _ in tests.notices}
    return replace(joined, notices=tuple(notice for notice in joined.notices if notice[0] not in told))


def _of_head(
    head: Head, options: Inputs, backend: Backend, tests: TestSet, per_test: PerTest, several: bool
) -> Oracle:
    task, reason = choose_task(options.task, head)
    if task == "classification":
        return classification(head, backend, tests.classes, reason)
    if task == "multi-label":
        return multi_label(head, backend, options.accuracy, tests.classes, reason)
    if task == "segmentation":
        return segmentation(head, backend, options.accuracy, tests.classes, reason)
    if task == "autoencoder":
        pick = at(head.label), at(head.path)
        return autoencoder(head, backend, options.quantile, per_test, pick, reason)
    name = head.name if several else ""
    allowed = limits(options.tolerance, head.labels, tests, at(head.label), name)
    return regression(head, backend, allowed, reason)


def _joined(
    heads: tuple[Head, ...], oracles: list[Oracle], backend: Backend, notices: tuple[tuple[str, str], ...]
) -> Oracle:
    """One oracle of those of all outputs."""
    ops = backend.ops
    picks = [(at(head.label), at(head.path)) for head in heads]
    certain = [oracle.confidence == "certainty" for oracle in oracles]
    names = [head.name for head in heads]

    def judge(inputs: Any, labels: Any, outputs: Any) -> Verdict:
        verdicts = [
            oracle.judge(inputs, label(labels), output(outputs))
            for oracle, (label, output) in zip(oracles, picks, strict=True)
        ]
        if len(verdicts) == 1:
            return verdicts[0]
        rated = [
            ops.cast(v.confidence, backend.double)
            for v, sure in zip(verdicts, certain, strict=True)
            if sure or not any(certain)
        ]
        bits = [ops.cast(v.failed, backend.double) * 2.0**i for i, v in enumerate(verdicts)]
        return Verdict(
            failed=reduce(ops.logical_or, [v.failed for v in verdicts]),
            confidence=reduce(ops.minimum if any(certain) else ops.maximum, rated),
            predicted=reduce(lambda a, b: a + b, bits),
            not_finite=reduce(ops.logical_or, [v.not_finite for v in verdicts]),
        )

    if len(oracles) == 1:
        only = oracles[0]
        return Oracle(
            task=only.task,
            reason=only.reason,
            judge=judge,
            confidence=only.confidence,
            describe=lambda labels: only.describe(picks[0][0](labels)),
            answer=only.answer,
            rule=(only.rule, heads[0].label, heads[0].path),
            notices=(*only.notices, *notices),
        )

    def describe(labels: Any) -> str:
        parts = zip(names, oracles, picks, strict=True)
        return "; ".join(f"{name}: {oracle.describe(pick[0](labels))}" for name, oracle, pick in parts)

    return Oracle(
        task=oracles[0].task,
        reason=". ".join(
            f"{name}: {oracle.task}, {oracle.reason}" for name, oracle in zip(names, oracles, strict=True)
        ),
        judge=judge,
        confidence="certainty" if any(certain) else "error",
        describe=describe,
        answer=lambda wrong: (
            "wrong: " + ", ".join(name for i, name in enumerate(names) if int(wrong) >> i & 1)
        ),
        rule=tuple((oracle.rule, head.label, head.path) for oracle, head in zip(oracles, heads, strict=True)),
        notices=(
            *(
                (code, f"{name}: {text}")
                for name, o in zip(names, oracles, strict=True)
                for code, text in o.notices
            ),
            *notices,
        ),
    )


def _not_a_number(heads: tuple[Head, ...]) -> tuple[tuple[str, str], ...]:
    """Labels that are NaN or infinite."""
    found: tuple[tuple[str, str], ...] = ()
    for head in heads:
        if head.labels.dtype.kind != "f":
            continue
        rows = int((~np.isfinite(head.labels)).reshape(len(head.labels), -1).any(axis=1).sum())
        if rows:
            found += (
                (
                    "nan-labels",
                    f"Of the first {len(head.labels):,} tests, {rows:,} have a label that is NaN or infinite; they can "
                    "never pass.",
                ),
            )
    return found
