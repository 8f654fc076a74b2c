"""Which files of the project a program reads: what its training depends on besides its code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from guider_engine.wire import FileState, Program

MOST = 2_000
"""Files that are noted."""
_CODE = (".py", ".pyc", ".pyi", ".ipynb")


class ReadFiles:
    """Notes, by an audit hook, what is opened while it is active."""

    def __init__(self, program: Program) -> None:
        """Not active yet."""
        self._root = os.path.realpath(program.root) + os.sep
        self._read: dict[str, FileState] = {}
        self._written: set[str] = set()
        self._active = False
        self._process = os.getpid()

    def __enter__(self) -> ReadFiles:
        """Note from now on."""
        self._active = True
        sys.addaudithook(self._audit)  # it can never be removed
        return self

    def __exit__(self, *_: object) -> None:
        """Note nothing more."""
        self._active = False

    def states(self) -> tuple[FileState, ...]:
        """The files that were read and never written, as they were at the first reading."""
        return tuple(state for path, state in self._read.items() if path not in self._written)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not self._active or os.getpid() != self._process:
            return
        try:
            self._note(*arguments)
        except (OSError, ValueError, TypeError):  # a hook that raises would make the program's open fail
            return

    def _note(self, file: Any, _mode: Any, flags: Any) -> None:
        if isinstance(file, int) or file is None:
            return
        path = os.path.realpath(os.fsdecode(file))
        if not path.startswith(self._root) or path.endswith(_CODE) or "site-packages" in path:
            return
        if flags & (os.O_WRONLY | os.O_RDWR):
            self._written.add(path)
        elif (
            path not in self._read
            and path not in self._written
            and len(self._read) < MOST
            and Path(path).is_file()
        ):
            status = Path(path).stat()
            self._read[path] = FileState(path, f"{status.st_size} {status.st_mtime_ns}")
