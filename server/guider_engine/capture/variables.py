"""Test data that a program's variables hold, by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from guider_engine.load.names import inputs_and_labels
from guider_engine.wire import DataKind

from .data import Fed, is_same_array

_TEST = re.compile(r"(?:^|_|[xy])(?:test|te)(?:_|$|[A-Z])", re.IGNORECASE)
_VALIDATION = re.compile(r"(?:^|_|[xy])(?:val|valid|validation|dev)(?:_|$|[A-Z])", re.IGNORECASE)


def with_labels(fed: Fed, training: Fed | None, variables: Mapping[str, Any]) -> Fed | None:
    """The same inputs with their labels: ``x_test``, if that is what was fed, has those of ``y_test``.

    ``training`` is what the model was trained on.
    """
    arrays = _arrays(variables)
    for name, value in arrays.items():
        if not is_same_array(value, fed.x):
            continue
        labels = next((other for other in arrays if inputs_and_labels((name, other)) == (name, other)), None)
        if labels is not None and len(arrays[labels]) == len(fed.x):
            trained_on = training is not None and is_same_array(training.x, fed.x)
            kind: DataKind = "training" if trained_on or "train" in name.lower() else "test"
            return replace(fed, kind=kind, y=arrays[labels], what=f"{fed.what}, labels: {labels} by its name")
    return None


def data_of(model: Any, variables: Mapping[str, Any]) -> Fed | None:
    """What a model is probably tested on that the program trains in a loop of its own."""
    arrays = {
        name: value for name, value in _arrays(variables).items() if _kind(name) != "training" or _bare(name)
    }
    pair = _pair(model, arrays)
    if pair is not None and pair.kind != "training":
        return pair
    datasets = [name for name, value in variables.items() if _is_dataset_of_pairs(value)]
    for kind in ("test", "validation"):
        for name in datasets:
            if _kind(name) == kind:
                return Fed(_kind(name), f"{name} by its name", "", 0, variables[name])
    return pair


def _pair(model: Any, arrays: Mapping[str, Any]) -> Fed | None:
    names = inputs_and_labels(list(arrays))
    if names is None:
        return None
    inputs, labels = arrays[names[0]], arrays[names[1]]
    if not _fits(model, inputs) or len(inputs) != len(labels):
        return None
    return Fed(_kind(names[0]), f"{names[0]} and {names[1]} by their names", "", 0, inputs, labels)


def _arrays(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Those that hold arrays or lists."""
    return {
        name: value
        for name, value in variables.items()
        if (isinstance(value, list) or getattr(value, "shape", None)) and not name.startswith("_")
    }


def _kind(name: str) -> DataKind:
    return "test" if _TEST.search(name) else "validation" if _VALIDATION.search(name) else "training"


def _bare(name: str) -> bool:
    return "train" not in name.lower()


def _fits(model: Any, inputs: Any) -> bool:
    """Whether inputs have the shape that the model takes, where it says one."""
    declared = getattr(model, "inputs", None)
    if not declared:
        return True
    wanted, found = tuple(declared[0].shape)[1:], tuple(getattr(inputs, "shape", ()))[1:]
    return (
        len(declared) == 1
        and len(wanted) == len(found)
        and all(want in (None, have) for want, have in zip(wanted, found, strict=True))
    )


def _is_dataset_of_pairs(value: Any) -> bool:
    return len(spec) in (2, 3) if isinstance(spec := getattr(value, "element_spec", None), tuple) else False
