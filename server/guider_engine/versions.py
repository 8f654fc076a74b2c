"""Versions that a result depends on, found without importing anything slow."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path

PACKAGES = ("keras", "tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-keras", "numpy", "jax", "torch")


@functools.cache
def installed() -> Mapping[str, str]:
    """The installed ones of `PACKAGES`, by distribution name, from their metadata."""
    found = {}
    for name in PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except Exception:  # broken metadata is not worth an engine that does not start
            continue
        if version:
            found[name] = str(version)
    return found


def versions() -> dict[str, str]:
    """Python's and those of the packages that run the model, for people."""
    known = installed()
    names = {name: name.removesuffix("-cpu").removesuffix("-intel") for name in PACKAGES}
    used = {"keras", "numpy", "tensorflow", backend()} | ({"tf-keras"} if legacy() else set())
    shown = {name: known[package] for package, name in reversed(names.items()) if package in known}
    return {"python": platform.python_version()} | {name: shown[name] for name in shown if name in used}


def backend() -> str:
    """What Keras is told to run on: by its environment variable, else by its file of settings, else TensorFlow."""
    try:
        named = json.loads(_written()).get("backend")
    except (ValueError, AttributeError):
        named = None
    return os.environ.get("KERAS_BACKEND") or str(named or "tensorflow")


def legacy() -> bool:
    """Whether TensorFlow is told to take Keras 2."""
    return os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")


def keras_settings() -> tuple[str, ...]:
    """All that Keras is told by environment variables and by its file of settings."""
    return (backend(), str(legacy()), os.environ.get("KERAS_FLOATX", ""), _written())


def _written() -> str:
    folder = os.environ.get("KERAS_HOME") or str(Path("~/.keras").expanduser())
    try:
        return Path(folder, "keras.json").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
