"""All that a program prints while it is captured, kept in a file."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

OUTPUT = "output.txt"
"""Its name in the folder of a capture."""


class Output:
    """The file that what is printed goes to, and who else is told. Feeding it never fails, even on a full disk.

    The file is locked while it is open, which says that the process of the capture lives (see `in_use`).
    """

    def __init__(self, path: Path, on_output: Callable[[bytes], None]) -> None:
        """Begin the file anew.

        Raises:
            OSError: it cannot be made.
        """
        self.path = path
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = path.open("wb", buffering=0)
        self._on_output: Callable[[bytes], None] | None = on_output
        _take(self._file)

    def feed(self, data: bytes) -> None:
        """Take what was printed."""
        tell = self._on_output
        with self._lock:
            if self._file is not None:
                try:
                    _write(self._file, data)
                except OSError as error:  # the disk is full, say: the program runs on all the same
                    self._close()
                    if tell is not None:
                        tell(f"The output is not kept any further in {self.path}: {error}\n".encode())
        if tell is not None:
            tell(data)

    def of(self, folder: Path) -> bool:
        """Whether it is the output of the capture in that folder."""
        return self.path.parent == folder

    def only_to_file(self) -> None:
        """Tell nobody else any more."""
        self._on_output = None

    def close(self) -> None:
        """Close the file; what comes later is dropped."""
        self.only_to_file()
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def in_use(folder: Path) -> bool:
    """Whether the process that made, or makes, this capture lives, whoever started it."""
    output = folder / OUTPUT
    try:
        if sys.platform == "win32":
            output.rename(output)  # fails while it is open
            return False
        with output.open("rb+") as file:
            return not _take(file)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _write(file: IO[bytes], data: bytes) -> None:
    while data:
        data = data[file.write(data) :]


def _take(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed; whether nobody else had."""
    if sys.platform == "win32":
        return True  # there it is enough that it is open
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
