"""What a neuron of a layer is: every scalar that the layer puts out, or one for each channel.

| layer's output for one test | unit | channel |
| --- | --- | --- |
| (units,) | units | units |
| (height, width, channels) of a convolution, pooling, … | each scalar | channels; mean over height and width |
| (time, units) of a recurrent layer | each scalar; units with ``last`` or ``max`` | units; mean over time, or so |
| (time, size) of an embedding | each scalar | size; mean over time |
| attention, whatever its shape | each scalar | heads; mean over time and size of a head's own output |

Steps that are masked do not count: they are 0 among units, and no part of a mean, a maximum, or the last step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from guider_engine.wire import Inputs

from .taps import Seen

_RECURRENT = frozenset({"RNN", "LSTM", "GRU", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"})
_LOWEST = -3.0e38
"""Below every float32 that is a number."""


@dataclass(frozen=True, slots=True)
class View:
    """The neurons of a layer in one batch."""

    values: Any
    """Shape (batch, neurons), float32."""
    shape: tuple[int, ...]
    """Of the neurons of one test."""
    neuron: str
    """What one is, for people."""


def view(ops: Any, layer: Any, seen: list[Seen], options: Inputs) -> View:
    """The neurons of a layer; those of all outputs and calls, in one row, where it has several.

    Args:
        ops: of the backend.
        layer: the layer.
        seen: what it returned, at least one tensor.
        options: for ``neuron`` and ``recurrent``.
    """
    views = [_view(ops, layer, one, options) for one in seen]
    if len(views) == 1:
        return views[0]
    values = ops.concatenate([one.values for one in views], axis=1)
    return View(values, (int(values.shape[1]),), f"{views[0].neuron}, of {len(views)} outputs")


def _view(ops: Any, layer: Any, seen: Seen, options: Inputs) -> View:
    by_channel = options.neuron == "channel"
    if by_channel and seen.heads is not None:
        return _of_heads(ops, ops.cast(seen.heads, "float32"))
    tensor = ops.cast(seen.tensor, "float32")
    if _is_recurrent(layer) and len(tensor.shape) > 2 and options.recurrent != "all" and _is_sequence(layer):
        steps = int(tensor.shape[1])
        if options.recurrent == "last":
            tensor, what = _last(ops, layer, tensor), f"last of {steps} steps"
        else:
            tensor, what = _maximum(ops, tensor, seen.mask), f"maximum over {steps} steps"
        rest = _channels(ops, layer, tensor, None, by_channel)
        return View(rest.values, rest.shape, f"{rest.neuron}, {what}")
    return _channels(ops, layer, tensor, seen.mask, by_channel)


def _channels(ops: Any, layer: Any, tensor: Any, mask: Any, by_channel: bool) -> View:
    shape = tuple(int(size) for size in tensor.shape[1:])
    weights = None if mask is None or len(shape) < 2 else _weights(ops, tensor, mask)
    if not by_channel or len(shape) < 2:
        values = tensor if weights is None else ops.where(weights > 0, tensor, ops.zeros_like(tensor))
        size = math.prod(shape)
        return View(ops.reshape(values, (-1, size)), shape, "unit")
    axis = _channel_axis(layer, len(tensor.shape))
    others = [i for i in range(1, len(tensor.shape)) if i != axis]
    over = "×".join(str(shape[i - 1]) for i in others)
    if weights is None:
        mean = _sum(ops, tensor, others) / math.prod(shape[i - 1] for i in others)
    else:
        total = _sum(ops, ops.where(weights > 0, tensor, ops.zeros_like(tensor)), others)
        steps = _sum(ops, weights + ops.zeros_like(tensor), others)
        mean = total / ops.maximum(steps, ops.ones_like(steps))
    return View(mean, (shape[axis - 1],), f"mean of a channel over {over}")


def _sum(ops: Any, tensor: Any, axes: list[int]) -> Any:
    """Axis by axis, from the outermost: with channels last, all but the last sum whole rows, which is twice as fast."""
    for done, axis in enumerate(axes):
        tensor = ops.sum(tensor, axis=axis - done)
    return tensor


def _of_heads(ops: Any, heads: Any) -> View:
    rank = len(heads.shape)
    others = [i for i in range(1, rank) if i != rank - 2]
    over = "×".join(str(int(heads.shape[i])) for i in others)
    mean = _sum(ops, heads, others) / math.prod(int(heads.shape[i]) for i in others)
    return View(mean, (int(heads.shape[rank - 2]),), f"mean of a head over {over}")


def _last(ops: Any, layer: Any, tensor: Any) -> Any:
    """The last state. Keras repeats it in the masked steps after it; a backward pass ends at the first step."""
    last = tensor[:, -1]
    if hasattr(layer, "backward_layer") and getattr(layer, "merge_mode", None) == "concat":
        half = int(tensor.shape[-1]) // 2
        return ops.concatenate([last[..., :half], tensor[:, 0][..., half:]], axis=-1)
    return last


def _maximum(ops: Any, tensor: Any, mask: Any) -> Any:
    if mask is None:
        return ops.max(tensor, axis=1)
    weights = _weights(ops, tensor, mask)
    highest = ops.max(ops.where(weights > 0, tensor, _LOWEST * ops.ones_like(tensor)), axis=1)
    return ops.where(highest > _LOWEST, highest, ops.zeros_like(highest))


def _weights(ops: Any, tensor: Any, mask: Any) -> Any:
    """The mask in the shape of the tensor's first two axes, others 1."""
    ones = [1] * (len(tensor.shape) - 2)
    return ops.reshape(ops.cast(mask, "float32"), (-1, tensor.shape[1], *ones))


def _is_recurrent(layer: Any) -> bool:
    inner = getattr(layer, "forward_layer", None)  # Bidirectional
    return any(base.__name__ in _RECURRENT for base in type(inner if inner is not None else layer).__mro__)


def _is_sequence(layer: Any) -> bool:
    inner = getattr(layer, "forward_layer", layer)
    return bool(getattr(inner, "return_sequences", False))


def _channel_axis(layer: Any, rank: int) -> int:
    if getattr(layer, "data_format", None) == "channels_first":
        return 1
    axis = getattr(layer, "axis", -1)
    axis = axis[0] if isinstance(axis, (list, tuple)) and len(axis) == 1 else axis
    found = (
        axis % rank if type(layer).__name__ == "BatchNormalization" and isinstance(axis, int) else rank - 1
    )
    return found or rank - 1
