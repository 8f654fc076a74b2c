"""Every error a person may see, each with a stable code.

::

    GuiderError
     ├─ UsageError         the command or a setting is wrong                     exit status 2
     ├─ InputError         a program, model or test set cannot be used           exit status 3
     ├─ EnvironmentProblem the interpreter or a package in it is not usable      exit status 4
     ├─ EngineError        the engine or the user's code in it failed            exit status 4
     └─ Cancelled          someone asked to stop                                 exit status 4

A message says what was found, what was expected and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from guider_engine.wire import Failure, FailureKind

HELP = Path(__file__).with_suffix(".md").as_uri()
"""The page that explains every code; it comes with the server, so it is at hand offline and fits its version."""


class GuiderError(Exception):
    """Base of all errors with a message for people; ``code`` is stable, ``detail`` is for the log."""

    exit_status: ClassVar[int] = 4

    def __init__(self, code: str, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail

    def __reduce__(self) -> tuple[Callable[..., GuiderError], tuple[str, str]]:
        """It can be pickled."""
        return partial(type(self), detail=self.detail), (self.code, self.message)


class UsageError(GuiderError):
    """The command line or a setting is wrong."""

    exit_status = 2


class InputError(GuiderError):
    """A program, a model or a test set cannot be used."""

    exit_status = 3


class EnvironmentProblem(GuiderError):
    """The interpreter, or a package in it, is not usable."""


class EngineError(GuiderError):
    """The engine, or the user's code inside it, failed."""


class Cancelled(GuiderError):
    """The request was cancelled."""


_BY_KIND: dict[FailureKind, type[GuiderError]] = {
    "input": InputError,
    "environment": EnvironmentProblem,
    "engine": EngineError,
    "cancelled": Cancelled,
}


def from_failure(failure: Failure) -> GuiderError:
    """The error for a failure that the engine reported."""
    return _BY_KIND[failure.kind](failure.code, failure.message, detail=failure.detail)
