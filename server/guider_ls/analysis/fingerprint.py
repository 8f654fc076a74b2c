"""Whether the inputs of a localization changed: settings that matter, and the content of the files."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from guider_engine.wire import Inputs

_CHUNK = 1 << 20
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
    """The inputs of a localization with the content of their files."""

    inputs: Inputs
    stamps: tuple[Stamp, ...]

    def same(self, other: Fingerprint) -> bool:
        """Whether a localization of either gives the same result; times of change do not matter."""
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
    """The files (and model folders) that a localization reads; for ``module:function`` the module's."""
    found = []
    for item in (inputs.model, *inputs.test_data):
        path = Path(item)
        if not path.exists() and ":" in item:
            module = Path(inputs.root, *item.partition(":")[0].split("."))
            path = next((p for p in (module.with_suffix(".py"), module / "__init__.py") if p.is_file()), path)
        found.append(path)
    return tuple(found)


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
    for file in _files(path):
        try:
            stat = file.stat()
        except OSError:
            continue
        size, modified = max(size, 0) + stat.st_size, max(modified, stat.st_mtime_ns)
    return size, modified


def _digest(path: Path) -> str:
    digest, empty = hashlib.sha256(), True
    for file in _files(path):
        try:
            with file.open("rb") as stream:
                digest.update(str(file.relative_to(path)).encode("utf-8", "surrogateescape"))
                while block := stream.read(_CHUNK):
                    digest.update(block)
        except OSError:
            continue
        empty = False
    return "" if empty else digest.hexdigest()


def _files(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
