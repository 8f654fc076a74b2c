"""A step that runs as a TensorFlow graph, or op by op where the model cannot be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Traced:
    """Calls ``step`` through `tf.function`; from the first failure to trace on, directly.

    Some models run only eagerly: their ``call`` reads values (``.numpy()``) or branches on them.
    """

    def __init__(self, step: Callable[..., Any]) -> None:
        import tensorflow as tf

        self._step = step
        self._function = tf.function(step)
        self._ready = False
        self.eager = False

    def __call__(self, *arguments: Any) -> Any:
        """One step.

        Raises:
            Exception: whatever the model raises when it runs op by op, too.
        """
        if self.eager:
            return self._step(*arguments)
        try:
            result = self._function(*arguments)
        except Exception:
            if self._ready:
                raise
            self.eager = True
            return self._step(*arguments)
        self._ready = True
        return result
