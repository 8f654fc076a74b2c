"""GUIDER once more, as slowly and literally as its formulas read: test by test, neuron by neuron.

What the streaming engine is compared with. Shares no code with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

EPSILON = 1e-4


def layer_scores(
    outputs: Sequence[Any],
    labels: Any,
    *,
    formula: str,
    aggregation: str = "mean-gini",
    weighted: bool = True,
    task: str = "classification",
    threshold: float = 0.1,
    neurons_per_layer: int | None = 200,
    seed: int = 7,
) -> list[float]:
    """Suspiciousness of each layer from the outputs (tests, …) of all layers, the last being the model's."""
    flat = [np.asarray(o).reshape(len(o), -1) for o in outputs]
    sampled, random = [], np.random.RandomState(seed)
    for layer in flat:
        if neurons_per_layer is not None and layer.shape[1] > neurons_per_layer:
            layer = layer[:, np.sort(random.randint(0, layer.shape[1], neurons_per_layer))]
        sampled.append(layer)
    passes = [_passes(np.ravel(y), np.ravel(o), task) for y, o in zip(labels, flat[-1], strict=True)]
    weights = _weights(labels, flat[-1], task) if weighted else [1.0] * len(passes)
    failing = EPSILON + sum(w for w, ok in zip(weights, passes, strict=True) if not ok)
    passing = EPSILON + sum(w for w, ok in zip(weights, passes, strict=True) if ok)
    scores = []
    for layer in sampled:
        neurons = []
        for k in range(layer.shape[1]):
            f = sum(w for w, ok, o in zip(weights, passes, layer, strict=True) if not ok and o[k] > threshold)
            p = sum(w for w, ok, o in zip(weights, passes, layer, strict=True) if ok and o[k] > threshold)
            neurons.append(_formula(formula, f, p, failing, passing) if f or p else 0.0)
        scores.append(_aggregate(neurons, aggregation))
    return scores


def _passes(y: Any, o: Any, task: str) -> bool:
    if task == "regression":
        return len(y) == len(o) and all(abs(a - b) <= 0.001 for a, b in zip(y, o, strict=True))
    if len(o) == 1:
        return bool((y[0] if len(y) == 1 else np.argmax(y)) == round(float(o[0])))
    if len(y) == 1:
        return bool(y[0] == np.argmax(o))
    return len(y) == len(o) and bool(np.argmax(y) == np.argmax(o))


def _weights(labels: Any, outputs: Any, task: str) -> list[float]:
    if task == "regression":
        r = [math.dist(np.ravel(y), o) for y, o in zip(labels, outputs, strict=True)]
    else:
        r = [float(max(o)) for o in outputs]
    spread = max(r) - min(r)
    q = [(value - min(r)) / spread if spread > 1e-6 else 0.0 for value in r]
    return [1 + (1 - value if task == "regression" else value) for value in q]


def _formula(name: str, f: float, p: float, F: float, P: float) -> float:
    return {
        "tarantula": lambda: (f / F) / (f / F + p / P),
        "ochiai": lambda: f / math.sqrt(F * (f + p)),
        "dstar": lambda: f * f / (F - f + p),
        "op2": lambda: f - p / (P + 1),
        "barinel": lambda: 1 - p / (p + f),
    }[name]()


def _aggregate(neurons: list[float], aggregation: str) -> float:
    mean = sum(neurons) / len(neurons)
    if aggregation == "mean" or mean == 0:
        return mean
    differences = sum(abs(a - b) for i, a in enumerate(neurons) for b in neurons[i + 1 :])
    return mean * (1 - differences / (len(neurons) ** 2 * mean))
