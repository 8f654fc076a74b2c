"""Labels that a program's variables have for inputs without any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from guider_engine.load.names import inputs_and_labels
from guider_engine.wire import DataKind

from .data import Fed, is_same_array


def labels_by_name(fed: Fed, variables: Mapping[str, Any]) -> Fed | None:
    """The same inputs with their labels: ``x_test``, if that is what was fed, has those of ``y_test``."""
    arrays = {
        name: value for name, value in variables.items() if hasattr(value, "shape") or isinstance(value, list)
    }
    for name, value in arrays.items():
        if not is_same_array(value, fed.x):
            continue
        labels = next((other for other in arrays if inputs_and_labels((name, other)) == (name, other)), None)
        if labels is not None and len(arrays[labels]) == len(fed.x):
            kind: DataKind = "training" if "train" in name.lower() else "test"
            return replace(fed, kind=kind, y=arrays[labels], what=f"{fed.what}, labels: {labels} by its name")
    return None
