"""Files that a program writes and reads back by name: paths, and the calls that save models and arrays."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Literal

from guider_ls.source.constants import compute
from guider_ls.source.values import UNKNOWN, Arguments, Known, Model, Name, Value, source_of

MODEL_SUFFIXES = (".keras", ".h5", ".hdf5")

_ARRAYS = {"numpy.savez": ".npz", "numpy.savez_compressed": ".npz", "numpy.save": ".npy"}
_TABLES = {"to_csv": "path_or_buf", "to_parquet": "path"}
"""Methods of a table, and their argument of the path."""
_TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
_HDF5_SUFFIXES = (".h5", ".hdf5")
_TESTS = frozenset({"test", "tests", "testing", "val", "valid", "validation", "eval", "evaluation"})
_NO_TESTS = frozenset(
    {
        *(
            "x",
            "y",
            "xs",
            "ys",
            "input",
            "inputs",
            "feature",
            "features",
            "label",
            "labels",
            "target",
            "targets",
        ),
        *("pred", "preds", "prediction", "predictions", "predicted", "output", "outputs", "prob", "probs"),
        *(
            "result",
            "results",
            "submission",
            "log",
            "logs",
            "history",
            "report",
            "summary",
            "metric",
            "metrics",
        ),
        *(
            "score",
            "scores",
            "loss",
            "losses",
            "acc",
            "accuracy",
            "error",
            "errors",
            "time",
            "times",
            "confusion",
        ),
        *("model", "net", "weights", "checkpoint", "train", "training"),
    }
)
"""What a file may be called besides, when it is half of a test set, or what a model made of one."""
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


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a call writes; its ``path``, or the code for it where that is not known."""

    kind: Literal["model", "tests"]
    path: str
    known: bool


def written_file(callee: Value, owner: Value, method: str, arguments: Arguments) -> Written | None:
    """The model or the arrays that a call writes; ``method`` is its name when it is one of ``owner``."""
    name = callee.name if isinstance(callee, Name) else ""
    if name in _ARRAYS:
        return _arrays(_ARRAYS[name], arguments)
    if name == "numpy.savetxt":
        return _tests_by_name(arguments.get(0, "fname"), _TABLE_SUFFIXES)
    if method in _TABLES:
        return _tests_by_name(arguments.get(0, _TABLES[method]), _TABLE_SUFFIXES)
    if name == "h5py.File" and _begins(arguments.get(1, "mode"), ("w", "x")):
        return _tests_by_name(arguments.get(0, "name"), _HDF5_SUFFIXES)
    if name in _SAVE_MODEL:
        return _model(arguments, 1, sure=True)
    if name in {"keras.callbacks.ModelCheckpoint", "keras.callbacks.callbacks.ModelCheckpoint"}:
        weights_only = arguments.get(4, "save_weights_only")
        return (
            None
            if isinstance(weights_only, Known) and weights_only.value
            else _model(arguments, 0, sure=True)
        )
    if method != "save":
        return None
    sure = isinstance(owner, Model)
    return _model(arguments, 0, sure=sure) or (
        None if sure else _tests_by_name(arguments.get(0, "path"), ("",))
    )


def _tests_by_name(path: Value | None, suffixes: tuple[str, ...]) -> Written | None:
    """A test set that may be anything else but for its name: ``test.csv``, ``data/valid.parquet``."""
    text = _path(path)
    if text is None:
        return None
    stem, suffix = posixpath.splitext(posixpath.basename(text))
    words = set(re.findall(r"[a-z]+", stem.lower()))
    if suffix.lower() not in suffixes or not words & _TESTS or words & _NO_TESTS:
        return None
    return Written("tests", text, known=True)


def _begins(value: Value | None, starts: tuple[str, ...]) -> bool:
    return isinstance(value, Known) and isinstance(value.value, str) and value.value.startswith(starts)


def _path(value: Value | None) -> str | None:
    return value.value if isinstance(value, Known) and isinstance(value.value, str) and value.value else None


def _code(arguments: Arguments, position: int, keyword: str) -> str:
    node = arguments.code.get(keyword, arguments.code.get(position))
    return source_of(node) if node is not None else ""


def _arrays(suffix: str, arguments: Arguments) -> Written | None:
    path = _path(arguments.get(0, "file"))
    if path is not None:
        return Written("tests", path if path.endswith(suffix) else path + suffix, known=True)
    code = _code(arguments, 0, "file")
    return Written("tests", code, known=False) if code else None


def _model(arguments: Arguments, position: int, *, sure: bool) -> Written | None:
    """A model; where it is not ``sure`` that one is saved, the path or its code must look like one's."""
    path = _path(arguments.get(position, "filepath"))
    code = _code(arguments, position, "filepath")
    if path is not None and "{" not in path:
        folder = sure and not posixpath.splitext(path)[1]  # Keras 2 saves a SavedModel there
        return Written("model", path, known=True) if folder or path.endswith(MODEL_SUFFIXES) else None
    if code and (sure or any(suffix in code for suffix in MODEL_SUFFIXES)):
        return Written("model", code, known=False)
    return None
