"""What one test takes while it is in the model."""

from __future__ import annotations

import math

from guider_engine.wire import Inputs, ModelSummary

_LIVE = 3
"""Tensors of the largest layer's size that are alive at the same time: its input, its output, and what it works on."""


def bytes_of_test(summary: ModelSummary, options: Inputs) -> float:
    """Bytes; 0 where the model's outputs are not known before it runs.

    Of most layers only the neurons that are kept stay until the test is judged: four bytes each, one where there are
    many (their hits). Their whole outputs come and go.
    """
    from .hits import MEASURED

    largest = kept = 0
    for layer in summary.all_layers():
        shape = layer.output_shape
        if shape is None or None in shape[1:]:
            if len(layer.path) == 1:
                return 0.0
            continue
        size = math.prod(axis or 1 for axis in shape[1:])
        largest = max(largest, size)
        neurons = size if options.neuron == "unit" else int(shape[-1] or 1)
        if options.neurons_per_layer is not None:
            neurons = min(neurons, options.neurons_per_layer)
        kept += 4 * min(neurons, MEASURED) + (neurons if neurons > MEASURED else 0)
    return 4.0 * _LIVE * largest + kept
