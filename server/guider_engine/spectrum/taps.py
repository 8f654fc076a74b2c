"""Outputs of every layer during one call of a model, inside the step being compiled.

One mechanism for every kind of model (Sequential, functional, nested, subclassed, custom training code) and every
backend: while the model is called, ``Layer.__call__`` is replaced by a version that notes what each layer returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from guider_engine.backend import mask_of
from guider_engine.load.describe import inner_layers
from guider_engine.wire import LayerPath

_HEADS = frozenset({"MultiHeadAttention", "GroupedQueryAttention"})


@dataclass(frozen=True, slots=True)
class Tap:
    """A layer to observe."""

    path: LayerPath
    layer: Any


@dataclass(frozen=True, slots=True)
class Seen:
    """One tensor that a layer returned."""

    tensor: Any
    """Shape (batch, …)."""
    mask: Any = None
    """bool, (batch, time): the steps that are data rather than padding; ``None``: all are."""
    heads: Any = None
    """Of an attention layer: what its heads put out, (batch, …, heads, size), before they are mixed."""


def taps_of(model: Any) -> tuple[Tap, ...]:
    """Every layer of ``model.layers`` and what is shown inside them, outer before inner."""
    found: list[Tap] = []

    def walk(layers: list[Any], path: LayerPath) -> None:
        for i, layer in enumerate(layers):
            found.append(Tap((*path, i), layer))
            walk(inner_layers(layer), (*path, i))

    walk(list(model.layers), ())
    return tuple(found)


def observe(model: Any, inputs: Any, taps: tuple[Tap, ...]) -> tuple[Any, dict[LayerPath, list[Seen]]]:
    """Call the model in inference mode.

    Returns:
        The model's output, and for each path what its layer returned, one for each output of each call of a shared
        layer. A layer that was not called, or only inside a loop of the graph (a recurrent cell), has none.
    """
    calls: dict[int, list[Seen]] = {}
    mixers = {
        id(getattr(tap.layer, "_output_dense", None)): id(tap.layer)
        for tap in taps
        if type(tap.layer).__name__ in _HEADS
    }
    heads: dict[int, Any] = {}
    with _recording(type(model), calls, mixers, heads):
        output = model(inputs, training=False)
    first = _tensors(output)[0]
    seen: dict[LayerPath, list[Seen]] = {}
    for tap in taps:
        found = calls.get(id(tap.layer))
        if found is None and type(tap.layer).__name__ == "InputLayer" and len(tap.path) == 1:
            found = [Seen(tensor) for tensor in _fed(model, inputs, tap.layer)]
        seen[tap.path] = [one for one in found or () if _is_observable(one.tensor, first)]
    return output, seen


@contextmanager
def _recording(
    model_class: type[Any], calls: dict[int, list[Seen]], mixers: dict[int, int], heads: dict[int, Any]
) -> Iterator[None]:
    base: Any = next(c for c in model_class.__mro__ if c.__name__ == "Layer")
    original = base.__call__

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        if id(self) in mixers and args:
            heads[mixers[id(self)]] = args[0]
        returned = original(self, *args, **kwargs)
        found = [Seen(tensor, _mask(tensor), heads.pop(id(self), None)) for tensor in _tensors(returned)]
        calls.setdefault(id(self), []).extend(found)
        return returned

    base.__call__ = __call__
    try:
        yield
    finally:
        base.__call__ = original


def _mask(tensor: Any) -> Any:
    mask = mask_of(tensor)
    return mask if mask is not None and len(mask.shape) == 2 else None


def _fed(model: Any, inputs: Any, layer: Any) -> list[Any]:
    """What an input layer stands for; Keras does not call it."""
    if isinstance(inputs, dict):
        return [inputs[layer.name]] if layer.name in inputs else []
    tensors = _tensors(inputs)
    if len(tensors) == 1:
        return tensors
    of_layers = [one for one in model.layers if type(one).__name__ == "InputLayer"]
    place = next(
        (i for i, declared in enumerate(model.inputs) if declared is getattr(layer, "output", None)),
        of_layers.index(layer),
    )
    return tensors[place : place + 1]


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _tensors(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return [value] if hasattr(value, "shape") and hasattr(value, "dtype") else []


def _is_observable(tensor: Any, output: Any) -> bool:
    """A dense numeric tensor of the same computation, with a batch axis and otherwise known shape."""
    try:
        shape, batch = tuple(tensor.shape), next(iter(output.shape))
    except (ValueError, StopIteration):  # the rank is not known, or 0
        return False
    if not shape or shape[0] != batch or None in shape[1:] or 0 in shape:
        return False
    return _is_numeric(tensor) and _scope(tensor) is _scope(output)


def _is_numeric(tensor: Any) -> bool:
    name = str(getattr(tensor.dtype, "name", tensor.dtype)).removeprefix("torch.")
    return name.startswith(("float", "bfloat", "int", "uint", "bool")) and not _is_composite(tensor)


def _is_composite(tensor: Any) -> bool:
    """Whether it is ragged or sparse."""
    return hasattr(tensor, "row_splits") or hasattr(tensor, "dense_shape")


def _scope(tensor: Any) -> Any:
    """The graph that a symbolic tensor belongs to (a loop has its own); the trace of a JAX tracer."""
    if hasattr(tensor, "_trace"):
        return tensor._trace
    return None if hasattr(tensor, "numpy") else getattr(tensor, "graph", None)
