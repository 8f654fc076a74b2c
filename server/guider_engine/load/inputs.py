"""What a model wants to be fed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelInput:
    """One declared input of a model."""

    name: str
    shape: tuple[int | None, ...]
    """Without the batch axis."""
    dtype: str
    """As NumPy names it, or ``string``."""
    batch: int | None = None
    """The size that every batch must have, where the model fixes it."""


def inputs_of(model: Any) -> tuple[ModelInput, ...]:
    """The inputs that a model declares, in order; empty: it declares none, as subclassed models do."""
    return tuple(_input(tensor) for tensor in getattr(model, "inputs", None) or ())


def _input(tensor: Any) -> ModelInput:
    batch, *shape = tuple(tensor.shape)
    dtype = str(getattr(tensor.dtype, "name", tensor.dtype))
    return ModelInput(str(tensor.name).partition(":")[0], tuple(shape), dtype, batch)
