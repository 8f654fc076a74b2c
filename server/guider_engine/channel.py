"""The engine's end of the channel: says hello, answers requests one at a time, stops when asked.

Requests run on the main thread, where TensorFlow and user code expect to be. A daemon thread reads the
channel meanwhile, so that a cancellation and the end of the server are noticed at once.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import platform
import queue
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, Protocol

from guider_engine import wire
from guider_engine.request import Check, Report
from guider_engine.versions import installed

PROGRESS_INTERVAL = 0.05
"""Seconds between two messages of the same stage."""
WATCH_INTERVAL = 2.0
"""Seconds between two looks at whether the parent process lives."""
LONGEST_TEXT = 400
"""Characters of an exception's text that a message carries."""
NICENESS = 10


class Worker(Protocol):
    """What does the work; `guider_engine.session.Session` in the product."""

    def localize(
        self, inputs: wire.Inputs, report: Report, check: Check, cache: str = ""
    ) -> wire.Localization:
        """Answer `wire.Localize`."""

    def inspect(self, inputs: wire.Inputs, report: Report, check: Check) -> wire.ModelSummary:
        """Answer `wire.Inspect`."""

    def probe(self, inputs: wire.Inputs, report: Report, check: Check) -> wire.ModelSummary:
        """Answer `wire.Probe`."""

    def capture(self, program: wire.Program, output: str, report: Report, check: Check) -> wire.CaptureRecord:
        """Answer `wire.Capture`."""


def new_session() -> Worker:
    """The session of the product; imported when the first request needs it."""
    from guider_engine.session import Session

    return Session()


def serve(incoming: int, outgoing: int, session_factory: Callable[[], Worker] = new_session) -> NoReturn:
    """Answer the requests that come in over one descriptor through the other, until the first one closes."""
    faulthandler.enable(2, all_threads=False)  # a segmentation fault says in which line of Python it was
    if sys.platform != "win32":
        watch = functools.partial(_watch_parent, os.getppid())
        threading.Thread(target=watch, name="watchdog", daemon=True).start()
        os.nice(NICENESS)
    channel = Channel(outgoing)
    channel.send(hello())
    inbox = Inbox(incoming)
    threading.Thread(target=inbox.read, name="channel", daemon=True).start()
    session: Worker | None = None
    while True:
        request = inbox.requests.get()
        progress = ProgressSender(channel, request.request)
        check = functools.partial(inbox.check, request.request)
        try:
            check()
            session = session or session_factory()
            answer = _answer(session, request, progress, check)
            progress.flush()
            channel.send(answer)
        except BaseException as error:
            failure = explain(error, root=_root(request))
            if failure.code in ("engine-internal", "user-code"):
                session = None  # what it had half done is not trusted
            channel.send(wire.Failed(request.request, failure))
        inbox.forget(request.request)


def hello() -> wire.Hello:
    """Who this engine is; looks at the metadata of packages without importing them."""
    return wire.Hello(wire.PROTOCOL, os.getpid(), platform.python_version(), sys.executable, installed())


class Channel:
    """Sends messages; any thread may."""

    def __init__(self, descriptor: int) -> None:
        """Own the descriptor, which is open for writing."""
        self._stream = os.fdopen(descriptor, "wb")
        self._lock = threading.Lock()

    def send(self, message: wire.Message) -> None:
        """Send one message whole; the process ends if there is nobody to read it.

        Raises:
            ValueError, TypeError: the message cannot be written as JSON.
        """
        line = wire.encode(message) + b"\n"
        with self._lock:
            try:
                self._stream.write(line)
                self._stream.flush()
            except OSError:
                die()


class Inbox:
    """Reads the channel: requests in order, cancellations as they come."""

    def __init__(self, descriptor: int) -> None:
        """Own the descriptor, which is open for reading."""
        self.requests: queue.SimpleQueue[wire.Request] = queue.SimpleQueue()
        self._stream = os.fdopen(descriptor, "rb")
        self._cancelled: set[int] = set()

    def read(self) -> None:
        """Read until the server is gone, then end the process."""
        try:
            for line in self._stream:
                message = wire.decode(line)
                if isinstance(message, wire.Cancel):
                    self._cancelled.add(message.request)
                elif isinstance(message, wire.Request):
                    self.requests.put(message)
        except (OSError, ValueError) as error:
            print(f"The channel to the server broke: {error}", file=sys.stderr)
        finally:
            die()

    def check(self, request: int) -> None:
        """Raise `CancelRequested` if that request was cancelled."""
        if request in self._cancelled:
            from guider_engine.errors import CancelRequested

            raise CancelRequested

    def forget(self, request: int) -> None:
        """The request was answered; a late cancellation of it means nothing any more."""
        self._cancelled.discard(request)


class ProgressSender:
    """Sends the first and the last progress of every stage, and of the others no more than one can read."""

    def __init__(self, channel: Channel, request: int) -> None:
        """Report about the request of that number."""
        self._channel = channel
        self._request = request
        self._stage: wire.Stage | None = None
        self._sent_at = 0.0
        self._held: wire.Progress | None = None

    def __call__(self, stage: wire.Stage, message: str, fraction: float | None = None) -> None:
        """Report how far a stage is; ``fraction`` from 0 to 1, or ``None`` where the length is unknown."""
        progress = wire.Progress(self._request, stage, message, fraction)
        if stage != self._stage:
            self.flush()
        elif time.monotonic() - self._sent_at < PROGRESS_INTERVAL:
            self._held = progress
            return
        self._stage = stage
        self._send(progress)

    def flush(self) -> None:
        """Send what was held back."""
        if self._held is not None:
            self._send(self._held)

    def _send(self, progress: wire.Progress) -> None:
        self._held = None
        self._sent_at = time.monotonic()
        self._channel.send(progress)


def explain(error: BaseException, root: str) -> wire.Failure:
    """The failure that an exception means; ``root`` tells the project's own files from libraries."""
    from guider_engine.errors import CancelRequested, EngineFailure

    if isinstance(error, EngineFailure):
        return error.failure
    if isinstance(error, CancelRequested):
        return wire.Failure("cancelled", "cancelled", "The request was cancelled.")
    detail = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    what = _one_line(error)
    place = _place_in_project(error, root)
    if place or isinstance(error, (SystemExit, KeyboardInterrupt)):
        where = place or "The program"
        return wire.Failure("engine", "user-code", f"{where} failed: {what}", detail)
    if isinstance(error, MemoryError):
        what = f"it ran out of memory ({what}). Fewer tests, or fewer neurons per layer, need less"
    return wire.Failure("engine", "engine-internal", f"The engine failed: {what}.", detail)


def die() -> NoReturn:
    """End this process at once, with all that it started; nobody is left to hear a reason."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/T", "/F", "/PID", str(os.getpid())], capture_output=True, check=False)
    elif os.getsid(0) == os.getpgrp():
        # The server starts the engine in a session of its own, so this group is the engine's (and that of a
        # launcher such as `uv run`), never somebody's shell.
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _watch_parent(parent: int) -> None:
    while sys.platform != "win32" and os.getppid() == parent:
        time.sleep(WATCH_INTERVAL)
    die()


def _answer(session: Worker, request: wire.Request, report: Report, check: Check) -> wire.Message:
    if isinstance(request, wire.Localize):
        return wire.Localized(request.request, session.localize(request.inputs, report, check, request.cache))
    if isinstance(request, wire.Probe):
        return wire.Inspected(request.request, session.probe(request.inputs, report, check))
    if isinstance(request, wire.Capture):
        return wire.Captured(request.request, session.capture(request.program, request.output, report, check))
    inputs = wire.Inputs(
        request.model,
        (),
        request.root,
        safe_mode=request.safe_mode,
        load=request.load,
        custom_objects=request.custom_objects,
    )
    return wire.Inspected(request.request, session.inspect(inputs, report, check))


def _root(request: wire.Request) -> str:
    if isinstance(request, wire.Capture):
        return request.program.root
    return request.root if isinstance(request, wire.Inspect) else request.inputs.root


def _one_line(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it asked to exit with {error.code!r}"
    try:
        text = next(iter(str(error).strip().splitlines()), "")
    except Exception:  # an exception's own text may fail
        text = ""
    return f"{type(error).__name__}: {text[:LONGEST_TEXT]}" if text else type(error).__name__


def _place_in_project(error: BaseException, root: str) -> str:
    """The innermost line of the project's own code that it passed, e.g. ``data.py, line 3 (load)``."""
    if isinstance(error, SyntaxError) and error.filename and _is_project_file(error.filename, root):
        return f"{Path(error.filename).name}, line {error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_project_file(frame.filename, root):
            return f"{Path(frame.filename).name}, line {frame.lineno} ({frame.name})"
    return ""


def _is_project_file(filename: str, root: str) -> bool:
    if filename.startswith("<"):
        return False
    file = Path(filename).resolve()
    if "site-packages" in file.parts or "dist-packages" in file.parts:
        return False
    libraries = (Path(sysconfig.get_path("stdlib")), Path(__file__).parent)
    return file.is_relative_to(Path(root).resolve()) and not any(
        file.is_relative_to(library.resolve()) for library in libraries
    )
