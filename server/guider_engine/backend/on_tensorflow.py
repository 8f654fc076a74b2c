"""TensorFlow, under Keras 3 or Keras 2: one graph a batch, whose totals stay in variables.

Only what is wanted of every batch leaves the graph. XLA stays off: on CPUs it compiles for seconds, and its
convolutions are slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import Combine, Pass, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGE = 1 << 18
"""Elements from which on a total is kept in float32: its sums are then right to about 1e-6 of their size."""

_NEUTRAL: dict[Combine, float] = {"sum": 0.0, "minimum": math.inf, "maximum": -math.inf}


class TensorFlowBackend:
    """See `guider_engine.backend.Backend`."""

    name: Literal["tensorflow", "jax", "torch"] = "tensorflow"
    double = "float64"

    @property
    def ops(self) -> Any:
        """See ``tensorflow_ops.py``."""
        from . import tensorflow_ops

        return tensorflow_ops

    def stream(self, step: Step, model: Any) -> Pass:  # noqa: ARG002
        """Compile a step on its first batch."""
        return TensorFlowPass(step)

    def call_model(self, model: Any, inputs: Any) -> Any:
        """Run op by op."""
        import tensorflow as tf

        with _memory_errors():
            return tf.nest.map_structure(np.asarray, model(inputs, training=False))

    def host(self, function: Callable[..., tuple[NDArray[Any], ...]], outputs: int, *tensors: Any) -> Any:
        """Through `tf.numpy_function`."""
        import tensorflow as tf

        found = tf.numpy_function(function, tensors, [tf.float32] * outputs)
        for tensor in found:
            tensor.set_shape(tensors[0].shape[:1])
        return found


class TensorFlowPass:
    """A step as a graph, and where it cannot be traced, op by op.

    Some models run only eagerly: their ``call`` reads values (``.numpy()``). Some branch on tensors, which AutoGraph
    makes part of the graph; for all others it would only make tracing slow.
    """

    def __init__(self, step: Step) -> None:
        """Nothing is traced before the first batch."""
        import tensorflow as tf

        self._step = step
        self._functions = [tf.function(self._add, autograph=convert) for convert in (False, True)]
        self._totals: dict[Any, tuple[Combine, Any]] = {}
        self._ready = False
        self.traces = 0

    @property
    def eager(self) -> bool:
        """Whether the step runs op by op."""
        return not self._functions

    def __call__(self, *arguments: Any) -> Any:
        """Run one batch."""
        import tensorflow as tf

        with _memory_errors():
            wanted = self._run(*arguments)
        return tf.nest.map_structure(np.asarray, wanted)

    def totals(self) -> dict[Any, NDArray[Any]]:
        """The totals; they share memory with the variables until the next batch."""
        return {key: np.asarray(variable.read_value()) for key, (_, variable) in self._totals.items()}

    def reset(self) -> None:
        """Set every total to what adds nothing."""
        import tensorflow as tf

        for combine, variable in self._totals.values():
            variable.assign(tf.fill(variable.shape, tf.cast(_NEUTRAL[combine], variable.dtype)))

    def _run(self, *arguments: Any) -> Any:
        import tensorflow as tf

        while self._functions:
            try:
                wanted = self._functions[0](*arguments)
            except tf.errors.ResourceExhaustedError:
                raise
            except Exception:
                if self._ready:
                    raise
                del self._functions[0]
                self._totals.clear()
            else:
                self._ready = True
                return wanted
        return self._add(*arguments)

    def _add(self, *arguments: Any) -> Any:
        import tensorflow as tf

        self.traces += 1
        contributions, wanted = self._step(*arguments)
        done: list[Any] = []
        for key, (combine, tensor) in contributions.items():
            if callable(tensor):
                with tf.control_dependencies(done):
                    done = [self._combine(key, combine, tensor())]
            else:
                self._combine(key, combine, tensor)
        return wanted

    def _combine(self, key: Any, combine: Combine, tensor: Any) -> Any:
        """The total's update, on which others can wait."""
        import tensorflow as tf

        if key not in self._totals:
            single = tensor.dtype != tf.float64 or math.prod(tensor.shape) >= LARGE
            neutral = np.full(tuple(tensor.shape), _NEUTRAL[combine], np.float32 if single else np.float64)
            self._totals[key] = combine, _variable(neutral)
        _, total = self._totals[key]
        tensor = tf.cast(tensor, total.dtype)
        if combine == "sum":
            return total.assign_add(tensor)
        return total.assign(tf.minimum(total, tensor) if combine == "minimum" else tf.maximum(total, tensor))


@contextmanager
def _memory_errors() -> Iterator[None]:
    """TensorFlow's word for too little memory as Python's."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        raise MemoryError(str(error)) from error


def _variable(value: NDArray[Any]) -> Any:
    """A variable; in a thread that traces nothing, or TensorFlow would trace the function that it is made in twice."""
    import tensorflow as tf

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(tf.Variable, value, trainable=False).result()
