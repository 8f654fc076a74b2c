"""Whether a test passes, and how confident the model was: one pass over a batch, in the graph.

Classification compares the predicted with the expected class, regression asks every component to be within
0.001 of its target (GUIDER, released code). An output with a NaN fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from guider_engine.wire import ModelSummary, Task, TaskChoice

TOLERANCE = 1e-3
"""Largest absolute difference of a regression's component from its target that passes (GUIDER)."""

Link = Literal["identity", "sigmoid", "softmax"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Tensors of shape (batch,): did the test fail, the confidence r, what was predicted; NaN in the output."""

    failed: Any
    confidence: Any
    predicted: Any
    not_finite: Any


Oracle = Callable[[Any, Any], Verdict]
"""(labels (batch, …), outputs (batch, …)) → verdict."""


def choose_task(choice: TaskChoice, model: ModelSummary, labels: Any) -> tuple[Task, str]:
    """The task, and for people the reason why it was chosen.

    Order: the setting, the loss the model was compiled with, the last activation, the labels. A squared or
    absolute error says regression unless a softmax or sigmoid is trained on labels that are classes. A binary
    crossentropy or a sigmoid says classification unless the labels are no classes, such as an autoencoder's images.

    Args:
        choice: the setting.
        model: for its loss and last layer.
        labels: array of shape (tests, …).
    """
    if choice != "auto":
        return choice, "as set"
    loss = (model.loss or "").lower()
    last = model.layers[-1].activation if model.layers else None
    bounded = last in ("softmax", "sigmoid")
    if any(word in loss for word in ("crossentropy", "hinge", "nll", "focal", "kullback", "kl_divergence")):
        if "binary" in loss and not _are_classes(labels):
            return "regression", f"labels are not class numbers, in spite of loss {model.loss}"
        return "classification", f"loss {model.loss}"
    if any(word in loss for word in ("squared", "absolute", "mse", "mae", "mape", "msle", "huber", "cosh")):
        if bounded and _are_classes(labels):
            return "classification", f"{last} output and class labels, in spite of loss {model.loss}"
        return "regression", f"loss {model.loss}"
    if last == "softmax" or (last == "sigmoid" and _are_classes(labels)):
        return "classification", f"{last} output"
    if _are_classes(labels):
        return "classification", f"labels are class numbers ({labels.dtype})"
    return "regression", f"labels are not class numbers ({labels.dtype})"


def _are_classes(labels: Any) -> bool:
    head = labels[:10_000]
    return bool(head.dtype.kind in "biu" or (head.dtype.kind == "f" and (head == head.round()).all()))


def choose_link(task: Task, model: ModelSummary, units: int) -> Link:
    """What turns outputs into probabilities: nothing, unless the loss was compiled with ``from_logits=True``."""
    if not model.from_logits:
        return "identity"
    return "sigmoid" if units == 1 or task == "regression" else "softmax"


def classification(link: Link = "identity") -> Oracle:
    """Predicted class against expected class.

    One output unit: the rounded output (half to even) is the class. Several: the largest. Labels are class
    numbers, or as many columns as there are output units, whose largest is the class; any other number of columns
    fails every test. Confidence is the largest output (a single unit's own value, not its distance from 0.5).
    """
    import tensorflow as tf

    def judge(labels: Any, outputs: Any) -> Verdict:
        y, o = _flat(labels), _linked(link, _flat(outputs))
        nan = tf.reduce_any(tf.math.is_nan(o), axis=1)
        units, columns = o.shape[1], y.shape[1]
        predicted = tf.round(o[:, 0]) if units == 1 else tf.cast(tf.argmax(o, axis=1), o.dtype)
        expected = y[:, 0] if columns == 1 else tf.cast(tf.argmax(y, axis=1), y.dtype)
        comparable = columns == 1 or units in (1, columns)
        passed = tf.equal(expected, predicted) if comparable else tf.zeros_like(nan)
        return Verdict(
            failed=tf.logical_or(tf.logical_not(passed), nan),
            confidence=_finite_or_zero(tf.reduce_max(o, axis=1), nan),
            predicted=predicted,
            not_finite=nan,
        )

    return judge


def regression(link: Link = "identity") -> Oracle:
    """Every component within `TOLERANCE` of its target; a shape that differs fails every test.

    Confidence is the Euclidean norm of the error (its weight falls as it grows, see ``confidence.py``).
    """
    import tensorflow as tf

    def judge(labels: Any, outputs: Any) -> Verdict:
        y, o = _flat(labels), _linked(link, _flat(outputs))
        nan = tf.reduce_any(tf.math.is_nan(o), axis=1)
        if y.shape[1] != o.shape[1]:
            return Verdict(tf.ones_like(nan), tf.zeros_like(o[:, 0]), o[:, 0], nan)
        error = tf.abs(y - o)
        return Verdict(
            failed=tf.logical_not(tf.reduce_all(error <= TOLERANCE, axis=1)),
            confidence=_finite_or_zero(tf.norm(error, axis=1), nan),
            predicted=o[:, 0],
            not_finite=nan,
        )

    return judge


def _flat(tensor: Any) -> Any:
    """(batch, columns), float64: both sides are compared as the published code does, in double precision."""
    import tensorflow as tf

    tensor = tf.convert_to_tensor(tensor)
    return tf.cast(tf.reshape(tensor, (-1, math.prod(tensor.shape[1:]))), tf.float64)


def _linked(link: Link, outputs: Any) -> Any:
    import tensorflow as tf

    if link == "identity":
        return outputs
    return tf.sigmoid(outputs) if link == "sigmoid" else tf.nn.softmax(outputs)


def _finite_or_zero(values: Any, nan: Any) -> Any:
    import tensorflow as tf

    usable = tf.logical_and(tf.math.is_finite(values), tf.logical_not(nan))
    return tf.where(usable, values, tf.zeros_like(values))
