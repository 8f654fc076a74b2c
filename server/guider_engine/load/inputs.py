"""What a model wants to be fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Layout = Literal["dense", "ragged", "sparse"]


@dataclass(frozen=True, slots=True)
class ModelInput:
    """One declared input of a model."""

    name: str
    """Of its key, where the model takes a dictionary, else of its layer."""
    shape: tuple[int | None, ...] | None
    """Without the batch axis; ``None``: any."""
    dtype: str
    """As NumPy names it, or ``string``."""
    batch: int | None = None
    """The size that every batch must have, where the model fixes it."""
    layout: Layout = "dense"
    """Test sets are dense: what the model takes otherwise is converted inside a step."""


def inputs_of(model: Any) -> tuple[ModelInput, ...]:
    """The inputs that a model declares, in order; empty: it declares none, as subclassed models do."""
    declared = getattr(model, "inputs", None) or ()
    keys = {id(tensor): name for name, tensor in _named(structure_of(model))}
    return tuple(_input(tensor, keys.get(id(tensor), "")) for tensor in declared)


def structure_of(model: Any) -> Any:
    """The declared inputs as the model is called with them: one, or a list or dictionary of them.

    ``None``: it declares none.
    """
    declared = getattr(model, "inputs", None)
    if not declared:
        return None
    structure = getattr(model, "input", None)
    known = {id(tensor) for tensor in declared}
    if {id(tensor) for tensor in _leaves(structure)} == known:
        return structure
    return declared[0] if len(declared) == 1 else list(declared)


def _leaves(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [leaf for one in structure.values() for leaf in _leaves(one)]
    if isinstance(structure, (list, tuple)):
        return [leaf for one in structure for leaf in _leaves(one)]
    return [structure]


def _named(structure: Any) -> list[tuple[str, Any]]:
    if isinstance(structure, Mapping):
        return [
            (str(key), value)
            for key, value in structure.items()
            if not isinstance(value, (Mapping, Sequence))
        ]
    return []


def _input(tensor: Any, key: str) -> ModelInput:
    shape = _shape(tensor)
    dtype = str(getattr(tensor.dtype, "name", tensor.dtype))
    history = getattr(tensor, "_keras_history", None)
    name = key or str((history[0] if history else tensor).name).partition(":")[0]
    if shape is None:
        return ModelInput(name, None, dtype, layout=_layout(tensor))
    return ModelInput(name, shape[1:], dtype, shape[0] if shape else None, _layout(tensor))


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    try:
        return tuple(tensor.shape)
    except ValueError:  # the rank is not known
        return None


def _layout(tensor: Any) -> Layout:
    kind = type(getattr(tensor, "type_spec", None)).__name__  # of Keras 2
    if getattr(tensor, "ragged", False) or kind == "RaggedTensorSpec":
        return "ragged"
    if getattr(tensor, "sparse", False) or kind == "SparseTensorSpec":
        return "sparse"
    return "dense"
