"""Which two arrays of several are a test set: by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

_INPUTS = ("x", "inputs", "input", "images", "image", "features", "feature", "data")
_LABELS = ("y", "labels", "label", "targets", "target", "classes", "class")
_PARTS = tuple(map(frozenset, (["test"], ["te"], ["val"], ["valid"], ["validation"], ["dev"], [])))
"""Which pair is meant, where there are several: what their names say besides ``x`` and ``y``."""
_WORD = re.compile(r"^[xy](?=(?:test|te|train|tr|val|valid)$)|[a-z]+|[0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def inputs_and_labels(names: Sequence[str]) -> tuple[str, str] | None:
    """The names of the inputs and of the labels; ``None`` where they do not say it.

    ``x_test`` and ``y_test``, ``Xval`` and ``yval``, ``testImages`` and ``testLabels``: one word tells inputs from
    labels, the other words are the same. Arrays that were saved without names are inputs and labels in that order.
    """
    inputs, labels = _by_part(names, _INPUTS), _by_part(names, _LABELS)
    pairs = {part: (inputs[part], labels[part]) for part in inputs if part in labels}
    if len(pairs) == 1:
        return next(iter(pairs.values()))
    unnamed = ("arr_0", "arr_1") if {"arr_0", "arr_1"} <= set(names) else None
    return next((pairs[part] for part in _PARTS if part in pairs), unnamed)


def _by_part(names: Sequence[str], kind: Sequence[str]) -> dict[frozenset[str], str]:
    """The names that have a word of the kind, by their other words; the kind's first word wins."""
    found: dict[frozenset[str], str] = {}
    for word in kind:
        for name in names:
            words = frozenset(_WORD.findall(_HUMP.sub("_", name).lower()))
            if word in words:
                found.setdefault(words - {word}, name)
    return found
