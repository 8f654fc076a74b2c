"""Outputs of every layer during one call of a model, inside the graph being traced.

One mechanism for every kind of model (Sequential, functional, nested, subclassed, custom training code): while the
model is called, ``Layer.__call__`` is replaced by a version that notes what each layer returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from guider_engine.load.model import inner_layers
from guider_engine.wire import LayerPath


@dataclass(frozen=True, slots=True)
class Tap:
    """A layer to observe."""

    path: LayerPath
    layer: Any


def taps_of(model: Any) -> tuple[Tap, ...]:
    """Every layer of ``model.layers`` and what is shown inside them, outer before inner."""
    found: list[Tap] = []

    def walk(layers: list[Any], path: LayerPath) -> None:
        for i, layer in enumerate(layers):
            found.append(Tap((*path, i), layer))
            walk(inner_layers(layer), (*path, i))

    walk(list(model.layers), ())
    return tuple(found)


def observe(model: Any, inputs: Any, taps: tuple[Tap, ...]) -> tuple[Any, dict[LayerPath, list[Any]]]:
    """Call the model in inference mode.

    Returns:
        The model's output, and for each path the tensors (batch, …) that its layer returned, one for each output of
        each call of a shared layer. A layer that was not called, or only inside a loop of the graph (a recurrent
        cell), has none.
    """
    calls: dict[int, list[Any]] = {}
    with _recording(type(model), calls):
        output = model(inputs, training=False)
    seen: dict[LayerPath, list[Any]] = {}
    for tap in taps:
        tensors = calls.get(id(tap.layer))
        if tensors is None and type(tap.layer).__name__ == "InputLayer" and len(tap.path) == 1:
            tensors = [inputs]
        seen[tap.path] = [t for t in tensors or () if _is_observable(t, output)]
    return output, seen


@contextmanager
def _recording(model_class: type[Any], calls: dict[int, list[Any]]) -> Iterator[None]:
    base: Any = next(c for c in model_class.__mro__ if c.__name__ == "Layer")
    original = base.__call__

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        returned = original(self, *args, **kwargs)
        tensors = _tensors(returned)
        calls.setdefault(id(self), []).extend(tensors)
        return returned

    base.__call__ = __call__
    try:
        yield
    finally:
        base.__call__ = original


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _tensors(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return [value] if hasattr(value, "shape") and hasattr(value, "dtype") else []


def _is_observable(tensor: Any, output: Any) -> bool:
    """A dense numeric tensor of the same graph, with a batch axis and otherwise known shape."""
    try:
        shape = tensor.shape.as_list()
    except (AttributeError, ValueError):
        return False
    numeric = tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_bool
    graph = getattr(tensor, "graph", None) if not hasattr(tensor, "numpy") else None
    first = _tensors(output)[0]
    output_graph = getattr(first, "graph", None) if not hasattr(first, "numpy") else None
    same_batch = bool(shape) and shape[0] == first.shape[0]
    return numeric and graph is output_graph and same_batch and None not in shape[1:] and 0 not in shape


def shape_of(tensors: list[Any]) -> tuple[int, ...]:
    """Shape of a layer's neurons: that of its one output, flat where it has several; without the batch axis."""
    if len(tensors) == 1:
        return tuple(int(size) for size in tensors[0].shape[1:])
    return (sum(int(np.prod(t.shape[1:])) for t in tensors),)


def flatten(tensors: list[Any]) -> Any:
    """All neurons of a layer as one float32 tensor (batch, neurons)."""
    import tensorflow as tf

    flat = [tf.reshape(tf.cast(t, tf.float32), (t.shape[0], -1)) for t in tensors]
    return flat[0] if len(flat) == 1 else tf.concat(flat, axis=1)
