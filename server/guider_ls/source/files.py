"""Files that a program writes and reads back by name: paths, and the calls that save models and arrays."""

from __future__ import annotations

import posixpath
from typing import Literal

from guider_ls.source.constants import compute
from guider_ls.source.values import UNKNOWN, Arguments, Known, Name, Value

MODEL_SUFFIXES = (".keras", ".h5", ".hdf5")

_ARRAYS = {"numpy.savez": ".npz", "numpy.savez_compressed": ".npz", "numpy.save": ".npy"}
_SAVE_MODEL = {"keras.models.save_model", "keras.saving.save_model"}
_SAME_PATH = {"os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath", "os.path.expanduser"}


def path_function(name: str, arguments: Arguments) -> Value | None:
    """A path by a function of ``os`` or ``pathlib``; ``None`` when ``name`` is no such function."""
    if name in {
        "os.path.join",
        "pathlib.Path",
        "pathlib.PurePath",
        "pathlib.PosixPath",
        "pathlib.WindowsPath",
    }:
        return compute(arguments.positional, lambda *parts: posixpath.join("", *map(str, parts)))
    if name in {"os.getcwd", "pathlib.Path.cwd"}:
        return Known("")
    if name in _SAME_PATH:
        return arguments.get(0) or UNKNOWN
    if name == "os.path.dirname":
        return parent(arguments.get(0) or UNKNOWN)
    return None


def parent(path: Value) -> Value:
    """The folder of a path; unknown above the working directory."""
    return compute([path], posixpath.dirname) if isinstance(path, Known) and path.value else UNKNOWN


def join(left: Value, right: Value) -> Value:
    """``left / right`` of paths."""
    return compute([left, right], lambda one, other: posixpath.join(_text(one), _text(other)))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def written_file(
    callee: Value, method: str, arguments: Arguments
) -> tuple[Literal["model", "tests"], str] | None:
    """Kind and path of the file that a call writes; ``method`` is its name when it is a model's method."""
    name = callee.name if isinstance(callee, Name) else ""
    if name in _ARRAYS:
        path = _path(arguments.get(0, "file"))
        if path is None:
            return None
        return "tests", path if path.endswith(_ARRAYS[name]) else path + _ARRAYS[name]
    if name in _SAVE_MODEL:
        return _model(arguments.get(1, "filepath"))
    if name in {"keras.callbacks.ModelCheckpoint", "keras.callbacks.callbacks.ModelCheckpoint"}:
        weights_only = arguments.get(4, "save_weights_only")
        if isinstance(weights_only, Known) and weights_only.value:
            return None
        return _model(arguments.get(0, "filepath"))
    return _model(arguments.get(0, "filepath")) if method == "save" else None


def _path(value: Value | None) -> str | None:
    return value.value if isinstance(value, Known) and isinstance(value.value, str) and value.value else None


def _model(value: Value | None) -> tuple[Literal["model", "tests"], str] | None:
    path = _path(value)
    if path is None or not path.endswith(MODEL_SUFFIXES) or "{" in path:
        return None
    return "model", path
