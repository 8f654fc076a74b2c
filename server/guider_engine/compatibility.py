"""Whether labels fit the outputs of a model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .wire import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray


def label_notices(task: Task, units: int, labels: NDArray[Any]) -> tuple[tuple[str, str], ...]:
    """What is odd about the labels: (code, message) pairs. The tests are judged all the same, as published."""
    columns = math.prod(labels.shape[1:])
    if task == "regression":
        if columns != units:
            return (
                (
                    "label-mismatch",
                    f"Labels have {columns} columns, the model puts out {units}: no test can pass. The last layer "
                    "should have one unit for each target.",
                ),
            )
        return ()
    if columns > 1 and units not in (1, columns):
        return (
            (
                "label-mismatch",
                f"Labels have {columns} columns, the model puts out {units}: no test can pass. The last layer "
                "should have one unit for each class.",
            ),
        )
    if columns > 1 and bool((labels.reshape(len(labels), -1)[:10_000].sum(axis=1) != 1).any()):
        return (
            (
                "multi-label",
                "Labels are not one-hot (some rows have none or several classes); only the largest of each row is "
                "compared.",
            ),
        )
    if columns == 1:
        low, high = float(labels.min()), float(labels.max())
        most = 1 if units == 1 else units - 1
        if low < 0 or high > most:
            return (
                (
                    "label-mismatch",
                    f"Labels go from {low:g} to {high:g}, the model can only answer 0 to {most}: tests with other "
                    "labels can never pass.",
                ),
            )
    return ()


def describe_label(task: Task, label: Any) -> str:
    """One test's label for people: its class, or its target(s)."""
    flat = label.reshape(-1)
    if task == "classification":
        return f"{flat.argmax() if flat.size > 1 else flat[0]:g}"
    return ", ".join(f"{value:g}" for value in flat[:4]) + (", …" if flat.size > 4 else "")
