"""Failures that the engine can explain."""

from __future__ import annotations

from .wire import Failure, FailureKind


class EngineFailure(Exception):
    """A request cannot be answered, and the message says what was found, what was expected, what to do."""

    def __init__(self, kind: FailureKind, code: str, message: str, *, detail: str = "") -> None:
        super().__init__(message)
        self.failure = Failure(kind, code, message, detail)


class CancelRequested(Exception):
    """Raised by a request's ``check`` once the request was cancelled."""


def unusable(code: str, message: str, *, detail: str = "") -> EngineFailure:
    """A model or a test set cannot be used."""
    return EngineFailure("input", code, message, detail=detail)


def first_line(error: BaseException) -> str:
    """What an exception says in one line, for a sentence of our own.

    Keras wraps errors of layers in "Exception encountered when calling …"; what follows is the cause.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("Exception encountered when calling")]
    return (telling or lines or [type(error).__name__])[0]
