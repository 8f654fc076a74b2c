"""Many answers for each test (a set of labels, a class for each pixel or time step): a share of them must be right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from guider_engine.backend import Backend, mask_of
from guider_engine.errors import unusable

from .classes import class_name
from .heads import Head
from .links import finite_or_zero, flat, link_of, linked
from .verdict import Oracle, Verdict

PLACES = 0.9
"""Share of the places that must be right, unless it is set."""
VOID = 255
"""Label of a pixel that belongs to no class, by a convention of segmentation data sets with fewer classes."""
_SLACK = 1e-6
"""Shares are fractions of small numbers: what is equal on paper may differ by this."""


def multi_label(
    head: Head, backend: Backend, accuracy: float | None, names: tuple[str, ...], reason: str
) -> Oracle:
    """Each output says whether one label applies: yes above 0.5.

    A test passes when at least ``accuracy`` of its labels are right (unless set: all). Confidence is the mean over
    the labels of max(p, 1 − p), between 0.5 and 1.

    Raises:
        EngineFailure: labels and outputs of a test are not equally many.
    """
    if head.columns != head.units:
        raise _mismatch(head, "multi-label", "one label (0 or 1) for each output")
    ops, double, units = backend.ops, backend.double, head.units
    share = 1.0 if accuracy is None else accuracy
    link, said = link_of(head, units, rounded=True)

    def judge(_inputs: Any, labels: Any, outputs: Any) -> Verdict:
        y = flat(ops, labels, units, double)
        p = linked(ops, link, flat(ops, outputs, units, double))
        nan = ops.any(ops.isnan(p), axis=1)
        right = ops.mean(ops.cast(ops.equal(y > 0.5, p > 0.5), double), axis=1)
        return Verdict(
            failed=ops.logical_or(right < share - _SLACK, nan),
            confidence=finite_or_zero(ops, ops.mean(ops.maximum(p, 1.0 - p), axis=1), nan),
            predicted=right,
            not_finite=nan,
        )

    wanted = "all" if share == 1 else f"{share:.0%}"
    return Oracle(
        task="multi-label",
        reason="; ".join(
            part for part in (reason, said, f"threshold 0.5, {wanted} of {units} labels right") if part
        ),
        judge=judge,
        confidence="certainty",
        describe=lambda label: _set(np.flatnonzero(np.asarray(label).reshape(-1) > 0.5), names),
        answer=lambda right: f"{_count(right * units)} of {units} labels right",
        rule=("multi-label", link, units, share),
        notices=_marks(head),
    )


def segmentation(
    head: Head, backend: Backend, accuracy: float | None, names: tuple[str, ...], reason: str
) -> Oracle:
    """One class for each place: the largest output, or yes above 0.5 where a place has a single one.

    Outputs are (batch, places …, classes), labels (batch, places …) or (batch, places …, 1) of class numbers, or
    (batch, places …, classes). Where rows of the latter mark several classes, or none, each is judged on its own.
    Places with a label below 0, with 255 where there are fewer classes, or that Keras masks, are not judged.

    A test passes when at least ``accuracy`` of the judged places are right (unless set: `PLACES`); one without such
    places passes. Confidence is the mean over them of the largest probability. Computed in single precision: maps of
    classes are large, and no published scores depend on them.

    Raises:
        EngineFailure: the labels are not one for each place.
    """
    *grid, classes = head.shape if head.columns != head.units or len(head.shape) > 2 else (*head.shape, 1)
    if not grid or not is_per_place(head):
        raise _mismatch(head, "segmentation", "a class number, or one column a class, for each place")
    ops = backend.ops
    separate = classes > 1 and head.columns == head.units and not _one_hot(head.labels, classes)
    kinds = 1 if separate else classes
    places = math.prod(grid) * (classes if separate else 1)
    per_place = head.columns // places
    share = PLACES if accuracy is None else accuracy
    link, said = link_of(head, kinds, rounded=kinds == 1)

    def judge(_inputs: Any, labels: Any, outputs: Any) -> Verdict:
        y = ops.cast(ops.reshape(labels, (-1, places, per_place)), "float32")
        p = linked(ops, link, ops.cast(ops.reshape(outputs, (-1, places, kinds)), "float32"))
        nan = ops.any(ops.isnan(ops.reshape(p, (-1, places * kinds))), axis=1)
        expected = y[:, :, 0] if per_place == 1 else ops.cast(ops.argmax(y, axis=2), "float32")
        if kinds == 1:
            predicted = ops.cast(p[:, :, 0] > 0.5, "float32")
            sure = ops.maximum(p[:, :, 0], 1.0 - p[:, :, 0])
        else:
            predicted, sure = ops.cast(ops.argmax(p, axis=2), "float32"), ops.max(p, axis=2)
        counts = ops.ones_like(expected)
        if per_place == 1:
            counts = ops.cast(expected >= 0, "float32")
            if max(classes, 2) <= VOID:
                counts = counts * ops.cast(
                    ops.not_equal(expected, ops.zeros_like(expected) + VOID), "float32"
                )
        mask = mask_of(outputs)
        steps = math.prod(mask.shape[1:]) if mask is not None and None not in mask.shape[1:] else 0
        if steps and places % steps == 0:
            seen = ops.cast(ops.reshape(mask, (-1, steps, 1)), "float32")
            counts = ops.reshape(ops.reshape(counts, (-1, steps, places // steps)) * seen, (-1, places))
        judged = ops.sum(counts, axis=1)
        some = ops.maximum(judged, ops.ones_like(judged))
        right = ops.sum(ops.cast(ops.equal(expected, predicted), "float32") * counts, axis=1) / some
        right = ops.where(judged > 0, right, ops.ones_like(right))
        return Verdict(
            failed=ops.logical_or(right < share - _SLACK, nan),
            confidence=finite_or_zero(ops, ops.sum(sure * counts, axis=1) / some, nan),
            predicted=right,
            not_finite=nan,
        )

    rule = "threshold 0.5" if kinds == 1 else "largest output"
    return Oracle(
        task="segmentation",
        reason="; ".join(p for p in (reason, said, f"{rule}, {share:.0%} of {places:,} places right") if p),
        judge=judge,
        confidence="certainty",
        describe=lambda label: _classes_in(np.asarray(label), per_place, separate, classes, names),
        answer=lambda right: f"{right:.1%} of the places right",
        rule=("segmentation", link, places, kinds, per_place, share),
        notices=_labels_of_places(head, classes, per_place, separate),
    )


def is_per_place(head: Head) -> bool:
    """Whether labels are one for each place of an output (places …, classes)."""
    shape, labels = head.shape, head.labels.shape[1:]
    if labels == shape or (shape and labels == (*shape, 1)):
        return True
    return len(shape) > 1 and labels in (shape[:-1], (*shape[:-1], 1))


def _one_hot(labels: Any, classes: int) -> bool:
    rows = labels.reshape(-1, classes).astype(np.float64)
    return bool((np.abs(rows.sum(axis=1) - 1) < 1e-3).all())


def _set(marked: Any, names: tuple[str, ...]) -> str:
    shown = ", ".join(class_name(float(k), names) for k in marked[:4])
    return (shown + (", …" if len(marked) > 4 else "")) or "none"


def _count(number: float) -> str:
    return f"{round(number)}" if math.isfinite(number) else "none"


def _classes_in(label: Any, per_place: int, separate: bool, classes: int, names: tuple[str, ...]) -> str:
    if separate:
        return _set(np.flatnonzero((label.reshape(-1, classes) > 0.5).any(axis=0)), names)
    found = np.unique(label.reshape(-1) if per_place == 1 else label.reshape(-1, per_place).argmax(axis=1))
    return _set(found[found >= 0], names)


def _marks(head: Head) -> tuple[tuple[str, str], ...]:
    known = head.labels[np.isfinite(head.labels)]
    if np.isin(known, (0, 1)).all():
        return ()
    return (
        (
            "label-mismatch",
            "Labels are others than 0 and 1; whatever is above 0.5 counts as a label that applies.",
        ),
    )


def _labels_of_places(
    head: Head, classes: int, per_place: int, separate: bool
) -> tuple[tuple[str, str], ...]:
    if separate or per_place > 1:
        return ()
    known = head.labels[np.isfinite(head.labels)]
    most = max(classes, 2) - 1
    known = known[(known >= 0) & ((known != VOID) | (most >= VOID))]
    if not known.size or known.max() <= most:
        return ()
    return (
        (
            "label-mismatch",
            f"Labels of places go up to {float(known.max()):g}, the model can only answer 0 to {most}: such places are "
            "always wrong. If they belong to no class, label them -1.",
        ),
    )


def _mismatch(head: Head, task: str, wanted: str) -> Exception:
    return unusable(
        "task-shape",
        f"The task is {task}, but the output {head.name} of one test has the shape {head.shape} and its labels have "
        f"the shape {head.labels.shape[1:]}; expected {wanted}. Set another task, or save labels that fit.",
    )
