"""The array library that a model runs on: TensorFlow, or JAX or PyTorch under Keras 3."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from numpy.typing import NDArray

Combine = Literal["sum", "minimum", "maximum"]
Contributions = Mapping[Any, tuple[Combine, Any]]
"""What one batch adds to each total, by key: how it is combined, and a tensor whose shape does not change. A function
that returns the tensor is called when all others are done, so that large ones come and go one after the other."""

Step = Callable[..., tuple[Contributions, Any]]
"""(structures of tensors) → contributions, and a structure of tensors that is wanted of every batch."""


class Pass(Protocol):
    """A compiled step and its totals over the batches since `reset`. Compiled once, whatever the weights become."""

    @property
    def eager(self) -> bool:
        """Whether the model could not be compiled and runs op by op, which is slower."""

    @property
    def traces(self) -> int:
        """How often the step was compiled (op by op: run)."""

    def __call__(self, *arguments: Any) -> Any:
        """Run one batch.

        Args:
            arguments: structures of NumPy arrays, each time of the same shapes and dtypes.

        Returns:
            The step's second result, in NumPy arrays.

        Raises:
            MemoryError: there is not enough memory for the batch.
            Exception: whatever the model raises.
        """

    def totals(self) -> dict[Any, NDArray[Any]]:
        """The totals by key; sums in float64 where memory allows."""

    def reset(self) -> None:
        """Begin anew."""


class Backend(Protocol):
    """What the engine needs of an array library. Step functions use `ops` alone."""

    @property
    def name(self) -> Literal["tensorflow", "jax", "torch"]:
        """As Keras calls it."""

    @property
    def ops(self) -> Any:
        """Functions that are called, and behave, as those of ``keras.ops``; on TensorFlow without Keras 3, too."""

    @property
    def double(self) -> str:
        """The widest float dtype: ``float64``; ``float32`` where there is none (JAX as it is usually set)."""

    def stream(self, step: Step, model: Any) -> Pass:
        """Compile a step that calls ``model``; its variables may be assigned other values between batches."""

    def call_model(self, model: Any, inputs: Any) -> Any:
        """The model's outputs on NumPy inputs in inference mode, as a structure of NumPy arrays; runs op by op."""

    def host(self, function: Callable[..., tuple[NDArray[Any], ...]], outputs: int, *tensors: Any) -> Any:
        """Call a NumPy function from within a step.

        Args:
            function: takes as many arrays, returns ``outputs`` float32 arrays of shape (batch,).
            outputs: how many.
            tensors: of the step.
        """


def backend_of(model: Any) -> Backend:
    """The backend that a model runs on."""
    module = next(
        (c.__module__ for c in type(model).__mro__ if c.__module__.startswith(("keras.", "tf_keras"))), ""
    )
    if module.startswith("keras.src"):
        import keras

        name = (
            keras.backend.backend() if hasattr(keras, "backend") and hasattr(keras, "ops") else "tensorflow"
        )
        if name == "jax":
            from .on_jax import JaxBackend

            return JaxBackend()
        if name == "torch":
            from .on_torch import TorchBackend

            return TorchBackend()
    from .on_tensorflow import TensorFlowBackend

    return TensorFlowBackend()


def mask_of(tensor: Any) -> Any:
    """The mask that Keras carries along with a tensor; ``None``: there is none.

    It is an attribute of the tensor, but tensors of JAX take none: of those, Keras keeps a table.
    """
    mask = getattr(tensor, "_keras_mask", None)
    if mask is None and "jax" in sys.modules:
        try:
            from keras.src.backend import get_keras_mask
        except ImportError:  # Keras 2, or an early Keras 3, which lost masks on JAX
            return None
        mask = get_keras_mask(tensor)
    return mask
