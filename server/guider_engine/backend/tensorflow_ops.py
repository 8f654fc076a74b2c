"""The functions of ``keras.ops`` that the engine uses, on TensorFlow: Keras 2 has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

Axis = int | Sequence[int] | None


def convert_to_tensor(x: Any) -> Any:
    """A dense tensor."""
    return tf.convert_to_tensor(x)


def cast(x: Any, dtype: str) -> Any:
    """With another dtype; text stays text."""
    x = tf.convert_to_tensor(x)
    return x if x.dtype == tf.string else tf.cast(x, dtype)


def shape(x: Any) -> tuple[Any, ...]:
    """Known sizes as numbers, others as tensors."""
    dynamic = tf.shape(x)
    return tuple(dynamic[i] if size is None else size for i, size in enumerate(x.shape))


def reshape(x: Any, newshape: Any) -> Any:
    """In row-major order."""
    return tf.reshape(x, newshape)


def concatenate(xs: Sequence[Any], axis: int = -1) -> Any:
    """Along an axis."""
    return tf.concat(xs, axis)


def stack(xs: Sequence[Any], axis: int = 0) -> Any:
    """Along a new axis."""
    return tf.stack(xs, axis)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """With permuted axes."""
    return tf.transpose(x, axes)


def expand_dims(x: Any, axis: int) -> Any:
    """With an axis of size 1."""
    return tf.expand_dims(x, axis)


def squeeze(x: Any, axis: int) -> Any:
    """Without an axis of size 1."""
    return tf.squeeze(x, axis)


def take(x: Any, indices: Any, axis: int) -> Any:
    """Slices of the indices."""
    return tf.gather(x, indices, axis=axis)


def arange(stop: int, *, dtype: str) -> Any:
    """From 0 on."""
    return tf.cast(tf.range(stop), dtype)


def zeros(size: Any, dtype: str) -> Any:
    """Full of 0."""
    return tf.zeros(size, dtype)


def ones(size: Any, dtype: str) -> Any:
    """Full of 1."""
    return tf.ones(size, dtype)


def zeros_like(x: Any) -> Any:
    """Full of 0."""
    return tf.zeros_like(x)


def ones_like(x: Any) -> Any:
    """Full of 1."""
    return tf.ones_like(x)


def full(size: Any, value: float, dtype: str) -> Any:
    """Full of a value."""
    return tf.fill(size, tf.cast(value, dtype))


def matmul(a: Any, b: Any) -> Any:
    """The matrix product."""
    return tf.matmul(a, b)


def sum(x: Any, axis: Axis = None) -> Any:  # noqa: A001
    """Over axes."""
    return tf.reduce_sum(x, axis)


def mean(x: Any, axis: Axis = None) -> Any:
    """Over axes."""
    return tf.reduce_mean(x, axis)


def max(x: Any, axis: Axis = None) -> Any:  # noqa: A001
    """Over axes."""
    return tf.reduce_max(x, axis)


def min(x: Any, axis: Axis = None) -> Any:  # noqa: A001
    """Over axes."""
    return tf.reduce_min(x, axis)


def any(x: Any, axis: Axis = None) -> Any:  # noqa: A001
    """Over axes."""
    return tf.reduce_any(x, axis)


def all(x: Any, axis: Axis = None) -> Any:  # noqa: A001
    """Over axes."""
    return tf.reduce_all(x, axis)


def cumsum(x: Any, axis: int) -> Any:
    """Along an axis."""
    return tf.cumsum(x, axis)


def argmax(x: Any, axis: int) -> Any:
    """Index of the largest; the first of equal ones, and of a NaN."""
    return tf.argmax(x, axis)


def abs(x: Any) -> Any:  # noqa: A001
    """Absolute values."""
    return tf.abs(x)


def square(x: Any) -> Any:
    """Squares."""
    return tf.square(x)


def sqrt(x: Any) -> Any:
    """Square roots."""
    return tf.sqrt(x)


def round(x: Any) -> Any:  # noqa: A001
    """Half to even."""
    return tf.round(x)


def mod(x: Any, y: Any) -> Any:
    """Remainders."""
    return tf.math.floormod(x, y)


def minimum(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.minimum(x, y)


def maximum(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.maximum(x, y)


def clip(x: Any, low: float, high: float) -> Any:
    """Within limits."""
    return tf.clip_by_value(x, low, high)


def sigmoid(x: Any) -> Any:
    """The logistic function."""
    return tf.sigmoid(x)


def softmax(x: Any, axis: int = -1) -> Any:
    """Exponentials that sum to 1."""
    return tf.nn.softmax(x, axis)


def equal(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.equal(x, y)


def not_equal(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.not_equal(x, y)


def greater(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.greater(x, y)


def greater_equal(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.greater_equal(x, y)


def less(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.less(x, y)


def less_equal(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.less_equal(x, y)


def logical_and(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.logical_and(x, y)


def logical_or(x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.logical_or(x, y)


def logical_not(x: Any) -> Any:
    """Element by element."""
    return tf.logical_not(x)


def isnan(x: Any) -> Any:
    """Element by element."""
    return tf.math.is_nan(x)


def isfinite(x: Any) -> Any:
    """Element by element."""
    return tf.math.is_finite(x)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Element by element."""
    return tf.where(condition, x, y)


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """One of two branches of equal structure."""
    return tf.cond(pred, true_fn, false_fn)
