"""Whether model, inputs and labels fit each other, said before anything is counted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .errors import first_line, unusable
from .wire import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray


def only_input(model: Any) -> Any:
    """The declared input of the model; ``None``: it declares none, a subclassed model takes what it takes.

    Raises:
        EngineFailure: the model takes several inputs, or text.
    """
    declared = getattr(model, "inputs", None)
    if not declared:
        return None
    if len(declared) > 1:
        raise unusable(
            "several-inputs",
            f"The model takes {len(declared)} inputs; test data with one input array cannot be fed to it. Models "
            "with several inputs are not supported yet.",
        )
    if _name(declared[0].dtype) == "string":
        raise unusable("input-type", "The model takes text; test data must be numbers so far.")
    return declared[0]


def fit_inputs(model: Any, inputs: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """The inputs in the shape that the model takes, and the dtype to feed them in.

    As in GUIDER's released code, inputs of the right size are reshaped, so (N, 28, 28) fits (None, 28, 28, 1).

    Raises:
        EngineFailure: the model takes several inputs, or another number of values a test.
    """
    declared = only_input(model)
    if declared is None:
        return inputs, "float32" if inputs.dtype.kind == "f" else inputs.dtype.name
    shape, dtype = tuple(declared.shape)[1:], _name(declared.dtype)
    actual = inputs.shape[1:]
    if len(shape) == len(actual) and all(
        want in (None, have) for want, have in zip(shape, actual, strict=True)
    ):
        return inputs, dtype
    if None not in shape and math.prod(shape) == math.prod(actual):
        return inputs.reshape(len(inputs), *shape), dtype
    raise unusable(
        "input-shape",
        f"One test has shape {actual}, the model takes {shape}. Save the test inputs as they are passed to "
        "model.predict.",
    )


def output_units(model: Any, inputs: NDArray[Any], dtype: str, task: Task) -> int:
    """How many scalars the model puts out for one test, found by running one.

    Raises:
        EngineFailure: the model fails on the test, has several outputs, or one class prediction a time step.
    """
    import tensorflow as tf

    declared = getattr(model, "inputs", None)
    fixed = declared[0].shape[0] if declared else None
    first = tf.cast(inputs[: fixed or 1], dtype)
    if fixed and len(first) < fixed:
        first = tf.repeat(first[:1], fixed, axis=0)
    try:
        output = model(first, training=False)
    except Exception as error:
        raise unusable(
            "model-call",
            f"The model fails on the first test (shape {tuple(first.shape)}, {dtype}): {first_line(error)}",
            detail=str(error),
        ) from error
    if isinstance(output, (list, tuple, dict)):
        raise unusable(
            "several-outputs",
            f"The model has {len(output)} outputs; models with several outputs are not supported yet. Save a model "
            "with the output that is wrong: keras.Model(model.inputs, model.outputs[0]).",
        )
    if task == "classification" and len(output.shape) > 2 and math.prod(output.shape[1:-1]) > 1:
        raise unusable(
            "output-rank",
            f"The model puts out one prediction for each of several places (shape {tuple(output.shape)}); "
            "segmentation and sequence tagging are not supported yet. If the last recurrent layer should only "
            "return its last step, remove return_sequences=True; if a Flatten is missing, add it.",
        )
    return math.prod(output.shape[1:])


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


def _name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype))
