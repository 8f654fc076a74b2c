"""By which task an output is judged: the setting, its loss, its activation, its shape, its labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from guider_engine.wire import Task, TaskChoice

from .classes import are_classes
from .heads import Head
from .links import CROSSENTROPIES
from .reconstruction import leaves_of
from .shares import is_per_place

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CLASSES = (*CROSSENTROPIES, "hinge", "dice", "tversky")
_NUMBERS = ("squared", "absolute", "mse", "mae", "mape", "msle", "huber", "cosh", "poisson")

SIMILAR = 0.5
"""Correlation of labels with inputs from which on the labels are the inputs, cleaned."""
LEAST = 32
"""Numbers in a row from which on outputs as many as inputs are no accident."""


def choose_task(choice: TaskChoice, head: Head) -> tuple[Task, str]:
    """The task, and for people the reason why it was chosen.

    A squared or absolute error says regression unless a softmax or sigmoid is trained on labels that are classes. A
    binary crossentropy or a sigmoid says classification unless the labels are no classes. Labels that are the inputs
    say autoencoder. What is a classification has one class for each place where outputs and labels have places, and a
    set of labels where the columns of the labels are marked none or several times.
    """
    if choice != "auto":
        return choice, "as set"
    task, reason = _family(head)
    same = _reconstruction(head, task)
    if same:
        return "autoencoder", same
    if task == "regression":
        return "regression", reason
    if _has_places(head):
        return "segmentation", f"{reason}, a label for each place"
    if _marks_several(head):
        return "multi-label", f"{reason}, labels mark none or several of {head.units}"
    return "classification", reason


def _family(head: Head) -> tuple[Task, str]:
    """Classification of whatever kind, or regression."""
    loss, last, name = head.loss, head.output.activation, head.output.loss
    classes = are_classes(head.labels)
    bounded = last in ("softmax", "sigmoid")
    if any(word in loss for word in _CLASSES):
        if not classes and head.columns == head.units and ("binary" in loss or head.units == 1):
            return "regression", f"labels are not class numbers, in spite of loss {name}"
        return "classification", f"loss {name}"
    if any(word in loss for word in _NUMBERS):
        if classes and bounded:
            return "classification", f"{last} output and class labels, in spite of loss {name}"
        return "regression", f"loss {name}"
    if last == "softmax" or (last == "sigmoid" and classes):
        return "classification", f"{last} output"
    if classes:
        return "classification", f"labels are class numbers ({head.labels.dtype})"
    return "regression", f"labels are not class numbers ({head.labels.dtype})"


def _has_places(head: Head) -> bool:
    return len(head.shape) > 1 and math.prod(head.shape[:-1]) > 1 and is_per_place(head)


def _marks_several(head: Head) -> bool:
    """Whether labels are zeros and ones, in rows that have not exactly one of them, for outputs on their own."""
    alone = head.output.activation in ("sigmoid", "hard_sigmoid") or (
        not head.bounded and ("binary" in head.loss or not head.loss)
    )
    if head.units == 1 or head.columns != head.units or not alone:
        return False
    rows = head.labels.reshape(len(head.labels), -1)
    return bool(np.isin(rows, (0, 1)).all() and (rows.sum(axis=1) != 1).any())


def _reconstruction(head: Head, task: Task) -> str:
    """Why the output is a reconstruction of the input; empty: it is none."""
    if head.units == 1 or "sparse" in head.loss or "categorical" in head.loss:
        return ""
    given = [array for array in leaves_of(head.inputs) if math.prod(array.shape[1:]) == head.units]
    if len(given) != 1 or given[0].dtype.kind not in "biuf":
        return ""
    inputs = given[0].reshape(len(given[0]), -1).astype(np.float64)
    if head.columns == head.units:
        labels = head.labels[: len(inputs)].reshape(len(inputs), -1).astype(np.float64)
        if np.array_equal(inputs, labels):
            return "labels are the inputs"
        bounded = head.output.activation == "sigmoid" or "binary" in head.loss
        within = bool(((labels >= 0) & (labels <= 1)).all())
        if task == "regression" and bounded and within and _correlation(inputs, labels) >= SIMILAR:
            return "labels from 0 to 1 that resemble the inputs"
        return ""
    alone = head.columns == 1 and are_classes(head.labels) and head.output.activation != "softmax"
    if alone and (len(head.shape) > 1 or head.units >= LEAST):
        return "outputs have the shape of the inputs, labels have not"
    return ""


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float((a * a).sum()) * float((b * b).sum()))
    return float((a * b).sum()) / size if size > 0 else 0.0
