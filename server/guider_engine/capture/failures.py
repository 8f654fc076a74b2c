"""Why a program failed, for people."""

from __future__ import annotations

import importlib.util
import os
import re
import traceback
from dataclasses import replace
from pathlib import Path

from guider_engine.errors import first_line
from guider_engine.wire import Failure, Program

from .run import Exited
from .sources import ENGINE, Sources
from .spellings import explain

DEEPEST = 200
"""Innermost frames that a traceback shows."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def failure_of(error: BaseException, program: Program, sources: Sources, keras_version: str) -> Failure:
    """What the exception says, with the innermost line of the project's own code that it passed.

    ``keras_version`` is that of the Keras that the program imported; empty: it came not so far.
    """
    legacy = importlib.util.find_spec("tf_keras") is not None
    known = explain(error, sources, keras_version, legacy=legacy)
    if known is not None:
        return replace(known, detail=_trace(error))
    place = _place(error, sources) or Path(program.path).name
    return Failure("engine", "program-failed", f"{place} failed: {_said(error)}", _trace(error))


def _said(error: BaseException) -> str:
    if isinstance(error, (SystemExit, Exited)):
        return f"it asked to exit with {error.code!r}"
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    if isinstance(error, EOFError) and "reading a line" in str(error):
        return (
            "it waits for input, and nobody can answer while it is watched. Give it the value by an argument, or "
            "by a default when standard input is empty"
        )
    kind = type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{kind}: {error.msg}"
    text = first_line(error) if _has_text(error) else kind
    text = _COLOURS.sub("", text)[:400]
    return kind if text == kind else f"{kind}: {text}"


def _has_text(error: BaseException) -> bool:
    try:
        return bool(str(error).strip())
    except Exception:  # an exception's own text may fail
        return False


def _place(error: BaseException, sources: Sources) -> str:
    """E.g. ``data.py, line 3 (load)``."""
    if isinstance(error, SyntaxError) and error.filename and sources.own(error.filename):
        return f"{Path(error.filename).name}, line {error.lineno}"
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if sources.own(code.co_filename):
            name = "" if code.co_name == "<module>" else f" ({code.co_name})"
            place = f"{Path(code.co_filename).name}, line {line}{name}"
    return place


def _trace(error: BaseException) -> str:
    """The traceback as the program would print it: without the frames of the watch."""
    try:
        told = traceback.TracebackException(type(error), error, error.__traceback__, limit=-DEEPEST)
        one: traceback.TracebackException | None = told
        while one is not None:
            one.stack[:] = [frame for frame in one.stack if not frame.filename.startswith(ENGINE + os.sep)]
            one = one.__cause__ or one.__context__
        return "".join(told.format())
    except Exception:
        return type(error).__name__
