"""Initializers, regularizers and constraints: Keras' classes, their parameters and defaults, and their short names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from guider_ls.source.sites import Part

_PACKAGES = frozenset({"keras.initializers", "keras.regularizers", "keras.constraints"})

_CLASSES: dict[str, dict[str, Any]] = {
    "Zeros": {},
    "Ones": {},
    "Constant": {"value": 0.0},
    "RandomNormal": {"mean": 0.0, "stddev": 0.05, "seed": None},
    "TruncatedNormal": {"mean": 0.0, "stddev": 0.05, "seed": None},
    "RandomUniform": {"minval": -0.05, "maxval": 0.05, "seed": None},
    "VarianceScaling": {"scale": 1.0, "mode": "fan_in", "distribution": "truncated_normal", "seed": None},
    "Orthogonal": {"gain": 1.0, "seed": None},
    "Identity": {"gain": 1.0},
    "GlorotUniform": {"seed": None},
    "GlorotNormal": {"seed": None},
    "HeUniform": {"seed": None},
    "HeNormal": {"seed": None},
    "LecunUniform": {"seed": None},
    "LecunNormal": {"seed": None},
    "L1": {"l1": 0.01},
    "L2": {"l2": 0.01},
    "L1L2": {"l1": 0.0, "l2": 0.0},
    "MaxNorm": {"max_value": 2, "axis": 0},
    "NonNeg": {},
    "UnitNorm": {"axis": 0},
    "MinMaxNorm": {"min_value": 0.0, "max_value": 1.0, "rate": 1.0, "axis": 0},
}
_SHORT = {"zero": "Zeros", "one": "Ones", "normal": "RandomNormal", "uniform": "RandomUniform"}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_BY_NAME = {**{_plain(name): name for name in _CLASSES}, **_SHORT}


def is_part_package(package: str) -> bool:
    """Whether a package of Keras holds initializers, regularizers or constraints."""
    return package in _PACKAGES


def make(name: str, spelled: Callable[[tuple[str, ...]], Mapping[str, Any]]) -> Part | None:
    """The part that calling ``name`` (``RandomNormal``, ``l2`` …) makes; ``None`` for a class that is not known.

    Args:
        name: last part of the callee's name.
        spelled: gives the call's arguments by name, from the names of the parameters in order.
    """
    class_name = _BY_NAME.get(_plain(name))
    if class_name is None:
        return None
    defaults = _CLASSES[class_name]
    return Part(class_name, {**defaults, **spelled(tuple(defaults))})


def named(name: str) -> Part | None:
    """The part that Keras takes for a string such as ``"he_normal"``."""
    return make(name, lambda _: {})
