"""Runs a program for real and notes, for every layer of its model, the call that constructed it.

A layer that Keras makes from the configuration of another one was constructed where that one was.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from guider_engine.load.describe import inner_layers, summarize
from guider_engine.load.loss import Loss
from guider_engine.wire import LayerPath, ModelSummary
from guider_ls.source.sites import Span


@dataclass(frozen=True)
class Truth:
    """A model that a program built, and where its layers were constructed."""

    text: str
    model: ModelSummary
    calls: dict[LayerPath, Span]
    """The innermost call of the program on the stack while the layer was made."""
    files: dict[LayerPath, str]
    """The modules that those calls stand in; ``""``: the program."""


_COPYING = {"from_config", "clone_model", "_clone_layer", "deserialize_keras_object"}


def run(path: Path) -> Truth:
    """Run a program that leaves its model in the variable ``model``; other modules may stand in its folder."""
    text = path.read_text(encoding="utf-8")
    made: dict[int, tuple[Span, str, bool]] = {}
    kept: list[Any] = []  # keeps every layer alive, so that no identity is used twice
    modules = set(sys.modules)
    sys.path.insert(0, str(path.parent))
    try:
        with _recorded(path.parent, made, kept):
            namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
            exec(compile(text, str(path), "exec"), namespace)
    finally:
        sys.path.remove(str(path.parent))
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(path.parent)):
                del sys.modules[name]
    model = namespace["model"]
    named: dict[tuple[type, str], tuple[Span, str, bool]] = {}
    for layer in kept:
        key = type(layer), str(getattr(layer, "name", ""))
        if made[id(layer)][2]:
            made[id(layer)] = named.get(key, made[id(layer)])
        else:
            named[key] = made[id(layer)]
    calls: dict[LayerPath, Span] = {}
    files: dict[LayerPath, str] = {}

    def walk(layers: list[Any], around: LayerPath) -> None:
        for index, layer in enumerate(layers):
            here = (*around, index)
            if id(layer) in made:
                calls[here], file, _ = made[id(layer)]
                files[here] = "" if file == str(path) else file
            walk(inner_layers(layer), here)

    walk(model.layers, ())
    return Truth(text, summarize(model, Loss()), calls, files)


@contextmanager
def _recorded(folder: Path, made: dict[int, tuple[Span, str, bool]], kept: list[Any]) -> Iterator[None]:
    import keras

    original = keras.layers.Layer.__new__
    inside = f"{folder}{os.sep}"

    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        layer = original(cls, *args, **kwargs)
        frame: FrameType | None = sys._getframe(1)
        copied = False
        while frame is not None and not frame.f_code.co_filename.startswith(inside):
            copied |= frame.f_code.co_name in _COPYING
            frame = frame.f_back
        if frame is not None and id(layer) not in made:
            file = frame.f_code.co_filename
            made[id(layer)] = _span(frame, linecache.getlines(file)), file, copied
            kept.append(layer)
        return layer

    keras.layers.Layer.__new__ = make
    try:
        yield
    finally:
        keras.layers.Layer.__new__ = original


def _span(frame: FrameType, lines: list[str]) -> Span:
    if sys.version_info < (3, 11):
        return Span(frame.f_lineno - 1, -1, frame.f_lineno - 1, -1)
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, end_line, column, end_column = (value or 0 for value in positions)

    def code_points(line: int, column: int) -> int:
        return len(lines[line - 1].encode()[:column].decode())

    return Span(line - 1, code_points(line, column), end_line - 1, code_points(end_line, end_column))


def agrees(site: Span, call: Span) -> bool:
    """Whether a site is the call that was seen (before Python 3.11: whether it covers its line)."""
    return site == call if call.column >= 0 else site.line <= call.line <= site.end_line
