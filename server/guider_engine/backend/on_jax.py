"""JAX, under Keras 3: one compiled function a batch; totals on the host.

JAX compiles functions without side effects. So the model's variables are arguments of the step, and those that it
changes (states of recurrent layers, seeds) are results of it. Variables that the model does not list, as Keras does not
list states, are found while the step is traced, which is then traced once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import Combine, Pass, Step
from .host_totals import HostTotals

if TYPE_CHECKING:
    from numpy.typing import NDArray


class JaxBackend:
    """See `guider_engine.backend.Backend`."""

    name: Literal["tensorflow", "jax", "torch"] = "jax"

    @property
    def ops(self) -> Any:
        """Those of Keras."""
        import keras

        return keras.ops

    @property
    def double(self) -> str:
        """As JAX is set."""
        import jax

        return "float64" if jax.config.jax_enable_x64 else "float32"

    def stream(self, step: Step, model: Any) -> Pass:
        """Compile a step on its first batch."""
        return JaxPass(step, model)

    def call_model(self, model: Any, inputs: Any) -> Any:
        """Run op by op."""
        import jax

        try:
            return jax.tree.map(np.asarray, model(_on_device(inputs), training=False))
        except Exception as error:
            if _is_exhausted(error):
                raise MemoryError(str(error)) from error
            raise

    def host(self, function: Callable[..., tuple[NDArray[Any], ...]], outputs: int, *tensors: Any) -> Any:
        """Through `jax.pure_callback`; directly where nothing is compiled."""
        import jax

        if not any(isinstance(tensor, jax.core.Tracer) for tensor in tensors):
            return tuple(map(jax.numpy.asarray, function(*map(np.asarray, tensors))))
        found = jax.ShapeDtypeStruct(tensors[0].shape[:1], np.float32)
        return jax.pure_callback(function, (found,) * outputs, *tensors)


class JaxPass:
    """A step as a compiled function, and where it cannot be traced (it needs values of tensors), op by op."""

    def __init__(self, step: Step, model: Any) -> None:
        """Nothing is traced before the first batch."""
        import jax

        self._step = step
        self._variables = list(model.variables)
        self._unlisted: dict[int, Any] = {}
        self._compiled: Callable[..., Any] | None = jax.jit(self._pure)
        self._keys: list[tuple[Any, Combine]] = []
        self._totals = HostTotals()
        self._ready = False
        self.traces = 0

    @property
    def eager(self) -> bool:
        """Whether the step runs op by op."""
        return self._compiled is None

    def __call__(self, *arguments: Any) -> Any:
        """Run one batch."""
        import jax

        try:
            contributions, wanted = self._run(arguments)
            for (key, combine), tensor in zip(self._keys, contributions, strict=True):
                self._totals.add(key, combine, np.asarray(tensor))
            return jax.tree.map(np.asarray, wanted)
        except Exception as error:
            if _is_exhausted(error):
                raise MemoryError(str(error)) from error
            raise

    def totals(self) -> dict[Any, NDArray[Any]]:
        """The totals by key."""
        return self._totals.read()

    def reset(self) -> None:
        """Begin anew."""
        self._totals.reset()

    def _run(self, arguments: Any) -> tuple[list[Any], Any]:
        while self._compiled is not None:
            try:
                values = [variable.value for variable in self._variables]
                contributions, wanted, changed = self._compiled(values, arguments)
            except Exception as error:
                if self._ready or _is_exhausted(error):
                    raise
                self._compiled = None
                continue
            if self._unlisted:
                self._variables += self._unlisted.values()
                self._unlisted.clear()
                continue
            self._ready = True
            for place, value in changed.items():
                self._variables[place].assign(value)
            return contributions, wanted
        return self._add(_on_device(arguments))

    def _pure(self, values: list[Any], arguments: Any) -> tuple[list[Any], Any, dict[int, Any]]:
        """Contributions, what is wanted, and the values of the variables that changed, by their place."""
        import keras

        listed = {id(variable) for variable in self._variables}
        scope = keras.StatelessScope(list(zip(self._variables, values, strict=True)))
        current = scope.get_current_value

        def value_of(variable: Any) -> Any:
            if id(variable) not in listed:
                self._unlisted[id(variable)] = variable
            return current(variable)

        before = [current(variable) for variable in self._variables]
        scope.get_current_value = value_of
        with scope:
            contributions, wanted = self._add(arguments)
        after = [current(variable) for variable in self._variables]
        pairs = enumerate(zip(before, after, strict=True))
        return contributions, wanted, {place: new for place, (old, new) in pairs if new is not old}

    def _add(self, arguments: Any) -> tuple[list[Any], Any]:
        self.traces += 1
        contributions, wanted = self._step(*arguments)
        self._keys = [(key, combine) for key, (combine, _) in contributions.items()]
        return [tensor() if callable(tensor) else tensor for _, tensor in contributions.values()], wanted


def _on_device(arrays: Any) -> Any:
    import jax

    return jax.tree.map(jax.numpy.asarray, arrays)


def _is_exhausted(error: Exception) -> bool:
    return "RESOURCE_EXHAUSTED" in str(error) or "out of memory" in str(error).lower()
