"""The terminal: results, errors, warnings, progress."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from guider_engine.wire import Progress
from guider_ls.errors import EngineError, GuiderError, UsageError
from guider_ls.present.terminal import Terminal

_DETAIL_LINES = 30


def prepare_streams() -> None:
    """Print what a stream's encoding lacks as escapes rather than fail on it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def silence_stdout() -> None:
    """Let the interpreter's last flush succeed though nobody reads any more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_error(error: GuiderError, wanted: str) -> None:
    """Say why there is no result, also in the format that was ``wanted``; what the user's code did is quoted."""
    lines = error.message.splitlines() or [""]
    said = "\n".join([f"error: {lines[0]} [{error.code}]", *lines[1:]])
    sys.stderr.write(f"{said}\n")
    quoted = [line for line in error.detail.splitlines() if line.strip()]
    if isinstance(error, EngineError) and not all(line.strip() in error.message for line in quoted):
        sys.stderr.write("".join(f"  {line}\n" for line in quoted[-_DETAIL_LINES:]))
    if wanted == "json":
        from guider_ls.present.json import error_to_json

        sys.stdout.write(dumped(error_to_json(error)))
    elif wanted == "sarif":
        from guider_ls.present.sarif import error_to_sarif

        sys.stdout.write(dumped(error_to_sarif(error)))
    sys.stdout.flush()


def print_note(message: str) -> None:
    """Say what was done that nobody might expect."""
    sys.stderr.write(f"note: {message}\n")
    sys.stderr.flush()


def print_warnings(messages: Iterable[str]) -> None:
    """Say what was passed over."""
    for message in messages:
        sys.stderr.write(f"warning: {message}\n")


def dumped(body: dict[str, Any]) -> str:
    """JSON for people and programs; characters outside ASCII are escaped, since encodings of pipes differ."""
    return json.dumps(body, allow_nan=False, indent=2) + "\n"


def terminal(options: argparse.Namespace, program_text: str | None = None) -> Terminal:
    """How to lay out a text for standard output, or for the file that the options name."""
    try:
        folder = str(Path.cwd())
    except OSError:  # it was removed
        folder = ""
    return Terminal(_wants_color(options.color, options.output), _width(), folder, program_text)


def _wants_color(choice: str, output: str | None) -> bool:
    """As asked; else at a terminal that can show it, unless NO_COLOR is set."""
    if choice != "auto":
        return choice == "always"
    return (
        output is None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def _width() -> int:
    return min(max(shutil.get_terminal_size((100, 24)).columns, 80), 120)


def check_output(output: str | None) -> None:
    """Fail early if the result could not be written.

    Raises:
        UsageError: "output-unwritable".
    """
    if output is None:
        return
    path = Path(output)
    if path.is_dir():
        raise _unwritable(path, "it is a folder")
    if not path.parent.is_dir():
        raise _unwritable(path, f"there is no folder {path.parent}")
    if not os.access(path if path.exists() and not path.is_file() else path.resolve().parent, os.W_OK):
        raise _unwritable(path, f"the folder {path.parent} is not writable")


def write_result(text: str, output: str | None) -> None:
    """Write to standard output, or to a file that others see whole or not at all.

    Raises:
        UsageError: "output-unwritable".
    """
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(output).resolve()
    try:
        if path.exists() and not path.is_file():  # a device or a named pipe
            path.write_text(text, encoding="utf-8")
            return
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            part.write_text(text, encoding="utf-8", newline="\n")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _unwritable(path: Path, reason: str) -> UsageError:
    return UsageError(
        "output-unwritable",
        f"The result cannot be written to {path}: {reason}. Name another file in --output.",
    )


class ProgressLine:
    """One line at the terminal that says how far it is; silent where standard error is none.

    What a program prints meanwhile goes by it as it is, also in pieces of lines: the progress is shown only while the
    cursor is at the beginning of a line.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write to ``stream``."""
        self._all = stream
        self._stream = stream if stream.isatty() else None
        self._shown = 0
        self._within_line = False
        self._lock = threading.Lock()

    def __call__(self, progress: Progress) -> None:
        """Redraw."""
        share = "" if progress.fraction is None else f" {progress.fraction:.0%}"
        self.say(f"{progress.message}{share}")

    def say(self, text: str) -> None:
        """Put a text in place of the last one."""
        with self._lock:
            if self._stream is not None and not self._within_line:
                text = text[: _width() - 1]
                self._stream.write(f"\r{text:<{self._shown}}")
                self._stream.flush()
                self._shown = len(text)

    def pass_on(self, data: bytes) -> None:
        """Print what a program printed; from any thread."""
        with self._lock:
            self._clear()
            self._within_line = not data.endswith(b"\n")
            # Nobody reads any more: the program runs on all the same.
            with contextlib.suppress(OSError, ValueError):
                self._all.flush()
                while data:
                    data = data[os.write(self._all.fileno(), data) :]

    def clear(self) -> None:
        """Leave the line empty."""
        with self._lock:
            self._clear()
            if self._within_line:
                self._all.write("\n")
                self._within_line = False

    def _clear(self) -> None:
        if self._stream is not None and self._shown:
            self._stream.write(f"\r{'':<{self._shown}}\r")
            self._stream.flush()
            self._shown = 0


@contextlib.contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """A progress line that is gone at the end."""
    line = ProgressLine(sys.stderr)
    try:
        yield line
    finally:
        line.clear()
