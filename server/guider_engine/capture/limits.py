"""What ends a run before its program does: its time, a cancellation, ``os._exit``."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from guider_engine.errors import CancelRequested
from guider_engine.request import Check

ENGINE = str(Path(__file__).resolve().parents[1])
LOOK_INTERVAL = 0.1
"""Seconds between two looks at the time and at the request."""
INSIST_INTERVAL = 0.5
"""Seconds after which a program that caught the exception gets it again."""
PATIENCE = 3
"""Times that a program may catch the exception, to clean up; afterwards it gets it wherever it goes on."""
IMPATIENT_INTERVAL = 0.05

Reason = Literal["time", "cancelled", "exit", "backend"]


class Ended(BaseException):
    """Ends the program from inside: no ``except Exception`` of it catches that."""


class Limits:
    """Raises `Ended` in the main thread, whatever code it runs, once there is a reason."""

    def __init__(self, seconds: float | None, check: Check) -> None:
        """``seconds`` from entering on; ``check`` raises once the request is cancelled."""
        self.reason: Reason | None = None
        self._seconds = seconds
        self._check = check
        self._main = threading.main_thread()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._over = False
        self._previous: Any = None
        self._raised = False
        self._times = 0
        self._watcher = threading.Thread(target=self._watch, name="limits", daemon=True)

    def __enter__(self) -> Limits:
        """The program is about to run."""
        if hasattr(signal, "SIGUSR2"):  # a signal also ends a call that sleeps or waits
            self._previous = signal.signal(signal.SIGUSR2, self._raise)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        """The program is over: nothing is raised any more."""
        self._over = True
        with self._lock:
            self._done.set()
        if self._raised:  # and only then: it leaves the interpreter looking for what is not there
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._main.ident or 0), None)
        if hasattr(signal, "SIGUSR2"):
            signal.signal(signal.SIGUSR2, self._previous)

    def check(self) -> None:
        """Raise `Ended` if there is a reason to; for code that the program calls, in any thread."""
        if self.reason is not None and not self._over:
            raise Ended(self.reason)

    def end(self, reason: Reason) -> None:
        """End the program."""
        self.reason = self.reason or reason

    def _watch(self) -> None:
        start = time.monotonic()
        while not self._done.wait(self._interval()):
            try:
                self._check()
            except CancelRequested:
                self.reason = "cancelled"
            if self._seconds is not None and time.monotonic() - start > self._seconds:
                self.end("time")
            if self.reason is not None:
                self._interrupt()

    def _interval(self) -> float:
        if self.reason is None:
            return LOOK_INTERVAL
        return INSIST_INTERVAL if self._times < PATIENCE else IMPATIENT_INTERVAL

    def _interrupt(self) -> None:
        main = self._main.ident or 0
        with self._lock:
            if self._done.is_set():
                return
            self._times += 1
            # Bound methods are made anew each time they are asked for, so they are compared, not identified.
            if hasattr(signal, "SIGUSR2") and signal.getsignal(signal.SIGUSR2) == self._raise:
                signal.pthread_kill(main, signal.SIGUSR2)
            else:
                self._raised = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(Ended))

    def _raise(self, _: int, frame: FrameType | None) -> None:
        if frame is None or _is_own(frame):
            return  # the engine's code looks by itself
        if self._times > PATIENCE:
            sys.settrace(self._trace)
            while frame is not None and not _is_own(frame):
                frame.f_trace = self._trace
                frame = frame.f_back
        self.check()

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        """Raises again at the line that goes on, which is in the clause that caught it and not in what it guards."""
        if _is_own(frame):
            return None
        if event == "line":
            self.check()
        return self._trace


def _is_own(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(ENGINE)
