"""Runs a program for real and notes, for every layer of its model, the call that constructed it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from guider_engine.load.model import Loss, inner_layers, summarize
from guider_engine.wire import LayerPath, ModelSummary
from guider_ls.source.sites import Span


@dataclass(frozen=True)
class Truth:
    """A model that a program built, and where its layers were constructed."""

    text: str
    model: ModelSummary
    calls: dict[LayerPath, Span]
    """The innermost call of the program on the stack while the layer was made."""


def run(path: Path) -> Truth:
    """Run a program that leaves its model in the variable ``model``."""
    text = path.read_text(encoding="utf-8")
    spans: dict[int, Span] = {}
    kept: list[Any] = []  # keeps every layer alive, so that no identity is used twice
    with _recorded(str(path), text, spans, kept):
        namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
        exec(compile(text, str(path), "exec"), namespace)
    model = namespace["model"]
    calls: dict[LayerPath, Span] = {}

    def walk(layers: list[Any], path: LayerPath) -> None:
        for index, layer in enumerate(layers):
            here = (*path, index)
            if id(layer) in spans:
                calls[here] = spans[id(layer)]
            walk(inner_layers(layer), here)

    walk(model.layers, ())
    return Truth(text, summarize(model, Loss()), calls)


@contextmanager
def _recorded(file: str, text: str, spans: dict[int, Span], kept: list[Any]) -> Iterator[None]:
    import keras

    original = keras.layers.Layer.__new__
    lines = text.splitlines()

    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        layer = original(cls, *args, **kwargs)
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != file:
            frame = frame.f_back
        if frame is not None and id(layer) not in spans:
            spans[id(layer)] = _span(frame, lines)
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
