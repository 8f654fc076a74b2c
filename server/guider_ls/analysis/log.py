"""The bounded log of a process: what it prints becomes whole lines, whatever it prints."""

from __future__ import annotations

import codecs
import re
import threading
from collections import deque
from collections.abc import Callable

KEPT = 2_000
"""Lines that are kept."""
WIDTH = 2_000
"""Characters after which a line is broken, so that one without end is never held whole."""

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Log:
    """Lines of text from bytes: what cannot be decoded replaced, colours dropped, a progress bar folded.

    Thread-safe. ``wake`` is called, from the thread that fed it, when there is something to take and nobody
    was told yet. Who takes too slowly misses lines and is told how many; the writer never waits.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        """Start empty."""
        self.wake = wake
        self._lock = threading.Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = ""
        self._kept: deque[str] = deque(maxlen=KEPT)
        self._count = 0
        self._taken = 0
        self._woken = False

    def feed(self, data: bytes) -> None:
        """Take what was printed; it may end anywhere, also within a character."""
        with self._lock:
            text = self._open + self._decoder.decode(data).replace("\r\n", "\n")
            *lines, self._open = text.split("\n")
            for line in lines:
                self._add(line)
            held_return = "\r" if self._open.endswith("\r") else ""  # the "\n" after it may be still to come
            self._open = _fold(self._open.removesuffix("\r")) + held_return
            while len(self._open) > WIDTH:
                self._add(self._open[:WIDTH])
                self._open = self._open[WIDTH:]
        self._notify()

    def add(self, line: str) -> None:
        """Add text of one's own, after the unfinished line."""
        with self._lock:
            self._finish()
            for part in line.split("\n"):
                self._add(part)
        self._notify()

    def finish(self) -> None:
        """End the unfinished line; nothing more comes from where it came."""
        with self._lock:
            self._open += self._decoder.decode(b"", final=True)
            self._decoder.reset()
            self._finish()
        self._notify()

    @property
    def count(self) -> int:
        """How many lines there were; a mark for `tail`."""
        with self._lock:
            return self._count

    def tail(self, lines: int, since: int = 0) -> str:
        """The last lines, not more than those after mark ``since``; the unfinished line is among them."""
        with self._lock:
            new = list(self._kept)[max(0, len(self._kept) - (self._count - since)) :]
            if unfinished := _clean(self._open):
                new.append(unfinished)
        return "\n".join(new[-lines:] if lines > 0 else [])

    def take(self) -> list[str]:
        """The finished lines nobody took yet."""
        with self._lock:
            self._woken = False
            missing = max(0, self._count - self._taken - len(self._kept))
            new = list(self._kept)[len(self._kept) - (self._count - self._taken - missing) :]
            self._taken = self._count
        return [f"… {missing} lines left out …", *new] if missing else new

    def _add(self, line: str) -> None:
        line = _clean(line)
        while True:
            self._kept.append(line[:WIDTH])
            self._count += 1
            line = line[WIDTH:]
            if not line:
                return

    def _finish(self) -> None:
        if self._open:
            self._add(self._open)
            self._open = ""

    def _notify(self) -> None:
        with self._lock:
            if self._woken or self._taken == self._count:
                return
            self._woken = True
        self.wake()


def _fold(line: str) -> str:
    """What a terminal shows of a line after its carriage returns."""
    states = [state for state in line.split("\r") if _CONTROL.sub("", state).strip()]
    return states[-1] if states else line.replace("\r", "")


def _clean(line: str) -> str:
    return _CONTROL.sub("", _fold(line)).rstrip()
