"""From text to libcst's tree."""

from __future__ import annotations

import re

import libcst as cst

from guider_ls.errors import InputError

_BRACKET = re.compile(r"[(\[{]|[)\]}]")
_PLACE = re.compile(r"^(parser error: )?error at \d+:\d+: ")
_DEEPEST = 200
"""Brackets inside of each other, which is what Python takes; libcst's parser overflows the stack at some thousands."""


def parse(text: str) -> cst.Module:
    """The tree of a program.

    Raises:
        InputError: code ``program-syntax``; the text is not Python. The message names the line.
    """
    try:
        return tree_of(text)
    except cst.ParserSyntaxError as error:
        raise syntax_problem(error) from error


def tree_of(text: str) -> cst.Module:
    """The tree of a text.

    Raises:
        cst.ParserSyntaxError: the text is not Python.
        InputError: code ``program-syntax``; the same, without a place.
    """
    if _is_too_deep(text):
        raise InputError("program-syntax", f"More than {_DEEPEST} brackets stand inside of each other.")
    try:
        return cst.parse_module(text)
    except (ValueError, cst.CSTValidationError) as error:  # null bytes, text and bytes side by side
        raise InputError("program-syntax", f"The text is not Python: {error}") from error


def syntax_problem(error: cst.ParserSyntaxError, line: int = 0) -> InputError:
    """What to say of an error in a text that begins at a line, counted from 0."""
    said = _PLACE.sub("", " ".join(error.message.split()))
    return InputError(
        "program-syntax",
        f"Line {line + error.raw_line} is not Python: {said}. Fix it there (column {error.raw_column + 1}) "
        "to have the program mapped again.",
    )


def _is_too_deep(text: str) -> bool:
    """Whether brackets nest too deeply, those in strings included."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket.group() in "([{" else max(depth - 1, 0)
        if depth > _DEEPEST:
            return True
    return False
