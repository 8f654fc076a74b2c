"""One class for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.backend import Backend
from guider_engine.errors import unusable

from .heads import Head
from .links import CROSSENTROPIES, finite_or_zero, flat, link_of, linked
from .verdict import Oracle, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray


def classification(head: Head, backend: Backend, names: tuple[str, ...], reason: str) -> Oracle:
    """Predicted class against expected class, as in GUIDER's released code where outputs are probabilities.

    One output unit: its probability, rounded half to even, is the class. Several: the largest. Labels are class
    numbers, or as many columns as there are output units, whose largest is the class; any other number of columns
    fails every test. Confidence is the largest probability (a single unit's own value, not its distance from 0.5).
    An output with a NaN fails.

    A single unit that is trained by a hinge loss, or that answers labels of −1 and 1, is split at 0 instead; its
    confidence is the distance from 0.

    Raises:
        EngineFailure: the output holds an answer for each of several places.
    """
    _refuse_places(head)
    ops, double = backend.ops, backend.double
    units, columns = head.units, head.columns
    if units == 1 and _is_signed(head):
        return _signs(head, backend, names, reason)
    link, said = link_of(head, units, rounded=units == 1)
    if link == "clip" and _answers_more_than_two(head):
        link, said = "identity", ""

    def judge(_inputs: Any, labels: Any, outputs: Any) -> Verdict:
        y = flat(ops, labels, columns, double)
        o = linked(ops, link, flat(ops, outputs, units, double))
        nan = ops.any(ops.isnan(o), axis=1)
        predicted = ops.round(o[:, 0]) if units == 1 else ops.cast(ops.argmax(o, axis=1), double)
        expected = y[:, 0] if columns == 1 else ops.cast(ops.argmax(y, axis=1), double)
        comparable = columns == 1 or units in (1, columns)
        passed = ops.equal(expected, predicted) if comparable else ops.zeros_like(nan)
        return Verdict(
            failed=ops.logical_or(ops.logical_not(passed), nan),
            confidence=finite_or_zero(ops, ops.max(o, axis=1), nan),
            predicted=predicted,
            not_finite=nan,
        )

    rule = (
        "threshold 0.5"
        if units == 1 and link != "identity"
        else "rounded"
        if units == 1
        else "largest output"
    )
    if units == 1 and link == "identity" and head.bounded:
        rule = "threshold 0.5"
    return Oracle(
        task="classification",
        reason="; ".join(part for part in (reason, said, rule) if part),
        judge=judge,
        confidence="certainty",
        describe=lambda label: class_name(_class_of(label), names),
        answer=lambda predicted: class_name(predicted, names),
        rule=("classification", link, units, columns),
        notices=_notices(head, link),
    )


def class_name(number: float, names: tuple[str, ...]) -> str:
    """Of a class, by its number."""
    if 0 <= number < len(names) and number == int(number):
        return names[int(number)]
    return f"{number:g}"


def are_classes(labels: NDArray[Any]) -> bool:
    """Whether labels can be class numbers or marks: whole numbers."""
    if labels.dtype.kind in "biu":
        return True
    return bool((labels == np.round(labels))[~np.isnan(labels)].all())


def _class_of(label: Any) -> float:
    values = np.asarray(label).reshape(-1)
    return float(values.argmax() if values.size > 1 else values[0])


def _is_signed(head: Head) -> bool:
    if head.columns != 1 or head.outputs.dtype.kind in "biu":
        return False
    if "hinge" in head.loss:
        return True
    known = np.unique(head.labels[np.isfinite(head.labels)])
    return not head.bounded and -1 in known and set(known.tolist()) <= {-1, 1}


def _signs(head: Head, backend: Backend, names: tuple[str, ...], reason: str) -> Oracle:
    ops, double = backend.ops, backend.double
    lowest = -1.0 if (head.labels < 0).any() else 0.0

    def judge(_inputs: Any, labels: Any, outputs: Any) -> Verdict:
        y, o = flat(ops, labels, 1, double)[:, 0], flat(ops, outputs, 1, double)[:, 0]
        nan = ops.isnan(o)
        up = o > 0
        predicted = ops.where(up, ops.ones_like(o), ops.zeros_like(o) + lowest)
        return Verdict(
            failed=ops.logical_or(ops.not_equal(y, predicted), nan),
            confidence=finite_or_zero(ops, ops.abs(o), nan),
            predicted=predicted,
            not_finite=nan,
        )

    return Oracle(
        task="classification",
        reason=f"{reason}; threshold 0",
        judge=judge,
        confidence="certainty",
        describe=lambda label: class_name(_class_of(label), names),
        answer=lambda predicted: class_name(predicted, names),
        rule=("signs", lowest),
        notices=_range_notice(head, lowest, 1.0) or one_class(head),
    )


def _refuse_places(head: Head) -> None:
    if int(np.prod(head.shape[:-1])) > 1 and head.shape != head.labels.shape[1:]:
        raise unusable(
            "output-rank",
            f"The model puts out one prediction for each of several places (shape {head.shape} for one test), the "
            f"labels of one test have the shape {head.labels.shape[1:]}. If it should answer for the whole test, this "
            "may be the fault: the last recurrent layer should only return its last step (no "
            "return_sequences=True), or a Flatten or a global pooling is missing. If it should answer for each "
            'place, set the task to "segmentation" and give labels for each place.',
        )


def _answers_more_than_two(head: Head) -> bool:
    """Whether a single unit answers with the number of one of several classes (and no crossentropy says otherwise)."""
    if head.columns != 1 or any(word in head.loss for word in CROSSENTROPIES):
        return False
    known = head.labels[np.isfinite(head.labels)]
    return bool(known.size and known.max() > 1)


def _notices(head: Head, link: str) -> tuple[tuple[str, str], ...]:
    units, columns = head.units, head.columns
    if columns > 1 and units not in (1, columns):
        return (
            (
                "label-mismatch",
                f"Labels have {columns} columns, the model puts out {units}: no test can pass. The last layer should "
                "have one unit for each class.",
            ),
        )
    if columns > 1:
        rows = head.labels.reshape(len(head.labels), -1).astype(np.float64)
        if bool((np.abs(rows.sum(axis=1) - 1) > 1e-3).any()):
            return (
                (
                    "multi-label",
                    "Labels are not one-hot (some rows have none or several classes); only the largest of each row is "
                    "compared.",
                ),
            )
        return one_class(head)
    integers = head.outputs.dtype.kind in "biu"
    if integers or (units == 1 and link == "identity" and not head.bounded):
        return one_class(head)
    return _range_notice(head, 0.0, 1.0 if units == 1 else units - 1.0) or one_class(head)


def _range_notice(head: Head, least: float, most: float) -> tuple[tuple[str, str], ...]:
    known = head.labels[np.isfinite(head.labels)]
    if not known.size or (known.min() >= least and known.max() <= most):
        return ()
    return (
        (
            "label-mismatch",
            f"Labels go from {float(known.min()):g} to {float(known.max()):g}, the model can only answer {least:g} to "
            f"{most:g}: tests with other labels can never pass.",
        ),
    )


def one_class(head: Head) -> tuple[tuple[str, str], ...]:
    """Whether all labels are the same."""
    if len(head.labels) < 2 or not bool((head.labels == head.labels[:1]).all()):
        return ()
    return (
        (
            "one-class",
            f"The labels of the first {len(head.labels):,} tests are all the same: such tests do not show whether the "
            "model can tell anything apart.",
        ),
    )
