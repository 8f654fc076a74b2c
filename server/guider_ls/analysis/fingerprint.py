"""Whether the inputs of a localization changed: settings that matter, and the content of the files."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from guider_engine.wire import Inputs

_CHUNK = 1 << 20
_MOST_FILES = 256
_MOST_BYTES = 256 << 20
_FRESH = 2.0
"""Seconds since its last change after which a file counts as written."""
_POLL = 0.3


@dataclass(frozen=True, slots=True)
class Stamp:
    """One file (or folder) as it was; ``digest`` is empty where there was none."""

    path: str
    size: int
    modified: int
    """Nanoseconds since the epoch."""
    digest: str


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The inputs of a localization with the content of their files.

    Of a large folder (more than 256 files or 256 MB: images by class, a saved dataset) names, sizes and times of change
    stand for the content: reading it whole at each save would take longer than the localization.
    """

    inputs: Inputs
    stamps: tuple[Stamp, ...]

    def same(self, other: Fingerprint) -> bool:
        """Whether a localization of either gives the same result; of what was read, times of change do not matter."""
        return self.inputs == other.inputs and [(s.path, s.digest) for s in self.stamps] == [
            (s.path, s.digest) for s in other.stamps
        ]


class Fingerprints:
    """Takes fingerprints; reads a file only when its size or its time of change is another than before."""

    def __init__(self) -> None:
        """Start without knowing any file."""
        self._stamps: dict[str, Stamp] = {}

    def remember(self, fingerprint: Fingerprint) -> None:
        """Take over what an older fingerprint knew of its files."""
        for stamp in fingerprint.stamps:
            self._stamps.setdefault(stamp.path, stamp)

    def take(self, inputs: Inputs) -> Fingerprint:
        """The fingerprint as of now. Reads files: not for an event loop."""
        return Fingerprint(inputs, tuple(self._stamp(path) for path in files_of(inputs)))

    def _stamp(self, path: Path) -> Stamp:
        size, modified = _state(path)
        known = self._stamps.get(str(path))
        if known is None or (known.size, known.modified) != (size, modified):
            known = self._stamps[str(path)] = Stamp(str(path), size, modified, _digest(path))
        return known


def files_of(inputs: Inputs) -> tuple[Path, ...]:
    """The files and folders that a localization reads; for ``module:function`` the module's."""
    found = []
    for item in filter(None, (inputs.model, *inputs.test_data)):
        path = Path(item)
        if ":" in item and not path.exists():
            path = _module(item, inputs.root) or path
        found.append(path)
    modules = (
        _module(item, inputs.root) for item in (inputs.load, inputs.custom_objects, inputs.oracle) if item
    )
    return tuple(dict.fromkeys((*found, *filter(None, modules))))


def _module(item: str, root: str) -> Path | None:
    """The file of the module of ``module:function``, where it is one of the project."""
    module = Path(root, *item.partition(":")[0].split("."))
    return next((p for p in (module.with_suffix(".py"), module / "__init__.py") if p.is_file()), None)


async def settled(files: Iterable[Path]) -> None:
    """Wait until no file is being written: a training script may be at it."""
    paths = tuple(files)
    before = await asyncio.to_thread(_states, paths)
    while any(time.time() - _FRESH < modified / 1e9 <= time.time() for _, modified in before):
        await asyncio.sleep(_POLL)
        now = await asyncio.to_thread(_states, paths)
        if now == before:
            return
        before = now


def is_fresh(path: Path, seconds: float) -> bool:
    """Whether the file changed less than so many seconds ago."""
    return time.time() - _state(path)[1] / 1e9 < seconds


def _states(paths: tuple[Path, ...]) -> list[tuple[int, int]]:
    return [_state(path) for path in paths]


def _state(path: Path) -> tuple[int, int]:
    """Size and time of change (ns); of a folder the sum and the latest; ``(-1, 0)`` where there is nothing."""
    size, modified = -1, 0
    for entry in _entries(path):
        size, modified = max(size, 0) + entry.size, max(modified, entry.modified)
    return size, modified


def _digest(path: Path) -> str:
    digest, empty = hashlib.sha256(), True
    files = [entry for entry in _entries(path) if not entry.folder]
    large = len(files) > _MOST_FILES or (path.is_dir() and sum(file.size for file in files) > _MOST_BYTES)
    for file in files:
        name = str(file.path.relative_to(path)).encode("utf-8", "surrogateescape")
        if large:
            digest.update(b"%s\0%d %d\0" % (name, file.size, file.modified))
            empty = False
            continue
        try:
            with file.path.open("rb") as stream:
                digest.update(name)
                while block := stream.read(_CHUNK):
                    digest.update(block)
        except OSError:
            continue
        empty = False
    return "" if empty else digest.hexdigest()


@dataclass(frozen=True, slots=True, order=True)
class _Entry:
    path: Path
    folder: bool
    size: int
    """0 of a folder."""
    modified: int


def _entries(path: Path) -> list[_Entry]:
    """The file, or the folder with all that is in it, in the order of paths; what cannot be looked at is left out."""
    found: list[_Entry] = []
    pending = [path]
    for here in pending:
        folder = False
        try:
            stat = here.stat()
            folder = here.is_dir()
            if folder and not (here != path and here.is_symlink()):  # a link may lead back
                pending += (Path(entry) for entry in os.scandir(here))
        except OSError:
            continue
        found.append(_Entry(here, folder, 0 if folder else stat.st_size, stat.st_mtime_ns))
    return sorted(found)
