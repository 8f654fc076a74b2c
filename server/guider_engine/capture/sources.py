"""The project's own source files, as they were when they ran."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import sysconfig
import tokenize
from pathlib import Path

from guider_engine.wire import FileState, Program

ENGINE = str(Path(__file__).resolve().parents[1])


class Sources:
    """Which files are the project's own code, and their text at the time that they ran.

    A text is read when its code is first seen on the stack, at the latest when a training begins: people edit while a
    program trains.
    """

    def __init__(self, program: Program, content: bytes) -> None:
        """``content`` is what runs of the program itself."""
        self.program = program.path
        self._folder = program.folder
        self._root = os.path.realpath(program.root)
        self._libraries = tuple(
            os.path.realpath(folder)
            for folder in (ENGINE, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
        )
        self._own: dict[str, str] = {}
        self._contents: dict[str, bytes] = {program.path: content}
        self._lines: dict[str, list[str]] = {}

    def own(self, filename: str) -> str:
        """The absolute path of a code object's file, if it is the project's own code; else nothing."""
        known = self._own.get(filename)
        if known is None:
            known = self._own[filename] = self._path(filename)
            if known:
                self._read(known)
        return known

    def read_modules(self) -> None:
        """Read the text of every module of the project that is imported by now."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.endswith(".py"):
                self.own(file)

    def text(self, path: str) -> str:
        """The text of an own file, with line feeds only; empty where it could not be read."""
        return decode(self._contents.get(path, b""))

    def line(self, path: str, number: int) -> str:
        """A line of an own file, from 0; empty where there is none."""
        lines = self._lines.get(path)
        if lines is None:
            lines = self._lines[path] = self.text(path).split("\n")
        return lines[number] if 0 <= number < len(lines) else ""

    def states(self) -> tuple[FileState, ...]:
        """Every file that was read; the program itself comes first."""
        return tuple(
            FileState(path, hashlib.sha256(text).hexdigest()) for path, text in self._contents.items()
        )

    def contents(self) -> tuple[bytes, ...]:
        """The text of each file of `states`."""
        return tuple(self._contents.values())

    def _path(self, filename: str) -> str:
        if filename == self.program:
            return filename
        if filename.startswith("<"):
            return ""
        path = os.path.normpath(Path(self._folder) / filename)
        real = os.path.realpath(path)
        parts = Path(real).parts
        if "site-packages" in parts or "dist-packages" in parts or not _inside(real, self._root):
            return ""
        if any(_inside(real, library) for library in self._libraries) or not Path(real).is_file():
            return ""
        return self.program if real == os.path.realpath(self.program) else path

    def _read(self, path: str) -> None:
        if path not in self._contents:
            try:
                self._contents[path] = Path(path).read_bytes()
            except OSError:
                self._contents[path] = b""


def decode(content: bytes) -> str:
    """The text of Python source, in the encoding that it declares, with line feeds only."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return io.TextIOWrapper(io.BytesIO(content), encoding, errors="replace").read()
    except (SyntaxError, LookupError):
        return content.decode("utf-8", "replace")


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)
