"""PyTorch, under Keras 3: op by op without gradients; totals on the host.

PyTorch compiles no Keras model of every kind, and on CPUs gains little where it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from . import Pass, Step
from .host_totals import HostTotals

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TorchBackend:
    """See `guider_engine.backend.Backend`."""

    name: Literal["tensorflow", "jax", "torch"] = "torch"

    @property
    def ops(self) -> Any:
        """Those of Keras."""
        import keras

        return keras.ops

    @property
    def double(self) -> str:
        """Where Keras puts its tensors; Apple's devices have no float64."""
        import keras

        return "float32" if str(keras.ops.zeros(()).device).startswith("mps") else "float64"

    def stream(self, step: Step, model: Any) -> Pass:  # noqa: ARG002
        """Nothing is compiled."""
        return TorchPass(step)

    def call_model(self, model: Any, inputs: Any) -> Any:
        """Run without gradients."""
        import torch

        with torch.no_grad():
            try:
                return _mapped(_numpy, model(_mapped(_tensor, inputs), training=False))
            except RuntimeError as error:
                if _is_exhausted(error):
                    raise MemoryError(str(error)) from error
                raise

    def host(self, function: Callable[..., tuple[NDArray[Any], ...]], outputs: int, *tensors: Any) -> Any:  # noqa: ARG002
        """Directly."""
        return tuple(map(_tensor, function(*map(_numpy, tensors))))


class TorchPass:
    """A step that runs op by op, as every model does on PyTorch."""

    eager = False

    def __init__(self, step: Step) -> None:
        """Nothing runs before the first batch."""
        self._step = step
        self._totals = HostTotals()
        self.traces = 0

    def __call__(self, *arguments: Any) -> Any:
        """Run one batch."""
        import torch

        self.traces += 1
        with torch.no_grad():
            try:
                contributions, wanted = self._step(*_mapped(_tensor, arguments))
                for key, (combine, tensor) in contributions.items():
                    self._totals.add(key, combine, _numpy(tensor() if callable(tensor) else tensor))
                return _mapped(_numpy, wanted)
            except RuntimeError as error:
                if _is_exhausted(error):
                    raise MemoryError(str(error)) from error
                raise

    def totals(self) -> dict[Any, NDArray[Any]]:
        """The totals by key."""
        return self._totals.read()

    def reset(self) -> None:
        """Begin anew."""
        self._totals.reset()


def _tensor(array: Any) -> Any:
    import keras

    return keras.ops.convert_to_tensor(array)


def _numpy(tensor: Any) -> Any:
    import keras

    return keras.ops.convert_to_numpy(tensor)


def _mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: _mapped(function, one) for key, one in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [_mapped(function, one) for one in structure]
    return function(structure)


def _is_exhausted(error: RuntimeError) -> bool:
    said = str(error).lower()
    return "allocate memory" in said or "out of memory" in said
