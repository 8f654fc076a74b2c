"""Which calls of the project's own code are on the stack, and where exactly they stand."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

from guider_engine.wire import Origin

from .sources import Sources

LONGEST = 20
"""Calls of the project's own code that are kept of one stack."""
DEEPEST = 500
"""Frames that are looked at."""
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_COPYING = (
    "from_config",
    "clone_model",
    "_clone_layer",
    "deserialize_keras_object",
    "load_model",
    "model_from_json",
)
_BUILDING = ("build", "build_wrapper", "_maybe_build", "_build_wrapper")
_GENERATED = "__autograph_generated_file"
_KERAS = tuple(f"{os.sep}{package}{os.sep}" for package in ("keras", "tf_keras"))


@dataclass(frozen=True, slots=True)
class Stack:
    """What a stack says of a construction on top of it."""

    calls: tuple[Origin, ...]
    """Calls of the project's own code, innermost first."""
    direct: bool
    """Whether the project's own code calls the class, and not Keras for it."""
    copied: bool
    """Whether Keras makes the layer from a configuration: a clone, or a part of a loaded model."""
    in_call: bool
    """Whether a layer or model is being called (and not built)."""


class StackReader:
    """Reads stacks; remembers what instructions stand where."""

    def __init__(self, sources: Sources) -> None:
        """``sources`` knows which code is the project's own."""
        self._sources = sources
        self._origins: dict[tuple[int, int], tuple[CodeType, Origin]] = {}

    def read(self, frame: FrameType | None) -> Stack:
        """What the frame and those below it say."""
        calls: list[Origin] = []
        direct, copied = True, False
        in_call: bool | None = None
        inner = ""
        for current in itertools.islice(_frames(frame), DEEPEST):
            code = current.f_code
            name = code.co_name
            path = self._sources.own(code.co_filename)
            if path:
                if (
                    inner not in _COMPREHENSIONS
                ):  # the frame below one stands at the comprehension, which is no call
                    calls.append(self._origin(current, path))
                inner = name
                if len(calls) == LONGEST or (name == "<module>" and path == self._sources.program):
                    break  # below is what runs the program
            elif not calls:
                direct = False
                copied = copied or (name in _COPYING and _is_keras(code))
            if in_call is None and name in _BUILDING:
                in_call = False
            elif in_call is None and name == "__call__" and _is_keras(code):
                in_call = True
        return Stack(tuple(calls), direct, copied, bool(in_call))

    def place(self, frame: FrameType | None) -> str:
        """The innermost line of the project's own code for people, ``train.py line 40``."""
        for current in itertools.islice(_frames(frame), DEEPEST):
            path = self._sources.own(current.f_code.co_filename)
            if path:
                return f"{Path(path).name} line {current.f_lineno}"
        return ""

    def is_called_by_own(self, frame: FrameType | None) -> bool:
        """Whether the project's own code calls, perhaps as TensorFlow translated it for a graph."""
        for current in itertools.islice(_frames(frame), DEEPEST):
            filename = current.f_code.co_filename
            if _GENERATED in filename or self._sources.own(filename):
                return True
            if not str(current.f_globals.get("__name__", "")).startswith("tensorflow."):
                return False
        return False

    def _origin(self, frame: FrameType, path: str) -> Origin:
        code, last = frame.f_code, frame.f_lasti
        key = (id(code), last)
        if key not in self._origins:  # the code is kept with it, so that its id stays its own
            self._origins[key] = (code, self._locate(code, last, frame.f_lineno - 1, path))
        return self._origins[key][1]

    def _locate(self, code: CodeType, last: int, line: int, path: str) -> Origin:
        if sys.version_info < (3, 11):
            return Origin(path, line)
        found = next(itertools.islice(code.co_positions(), last // 2, None), (None,) * 4)
        first, end, column, end_column = found
        if first is None or end is None or column is None or end_column is None:
            return Origin(path, line)
        return Origin(
            path,
            first - 1,
            self._points(path, first - 1, column),
            end - 1,
            self._points(path, end - 1, end_column),
        )

    def _points(self, path: str, line: int, column: int) -> int:
        """A column in code points, from one in bytes of UTF-8."""
        return len(
            self._sources.line(path, line).encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore")
        )


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_keras(code: CodeType) -> bool:
    return any(folder in code.co_filename for folder in _KERAS)
