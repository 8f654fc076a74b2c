"""Keys of what a result depends on: the content of files, options, code, versions.

A file is not read again while its size, its time of change and its inode stay what they were. Some file systems note
that time coarsely, so one that has just changed is not trusted to be the same, however alike it looks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from .load.captured import RECORD
from .load.functions import is_function
from .request import Check
from .sources import sources_of
from .versions import installed, keras_settings
from .wire import PROTOCOL, Inputs

LARGE = 256 << 20
"""Bytes of a file, or of a folder together, from which on it is known by names, sizes, times, inodes and some of its
content: reading all of it would take longer than many a localization."""
FRESH = 2.0
"""Seconds since a change within which another one may not show in the time of change."""
MOST = 256
"""Items that are remembered."""
_CHUNK = 1 << 17
_SAMPLES = 64
"""Places that are read of large files together, if they are no more …"""
_SAMPLE = 1 << 16
"""… so many bytes each."""

RANKING = frozenset({"formula", "aggregation", "weighted"})
"""Fields of `Inputs` that matter only after the tests were counted."""
_PLACES = frozenset({"model", "test_data", "root"})
_NOT_OF_TESTS = frozenset(
    {
        *("load", "custom_objects", "safe_mode", "threshold", "neurons_per_layer", "neuron", "recurrent"),
        *("tolerance", "accuracy", "quantile", "oracle"),
    }
)

State = tuple[tuple[str, int, int, int], ...]
"""Name, size, time of change (ns) and inode of every file."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What was asked for, by content. ``None``: cannot be known, as of what a function of the user returns."""

    code: str | None
    """How the model is made from its file: the user's classes, the versions, safe mode."""
    weights: str | None
    """The model's file, and the record of its capture where it was captured."""
    tests: str | None
    counted: str | None
    """The hit spectrum: model, tests, and the options that counting depends on."""


class Contents:
    """Takes keys; remembers what it has read. Not safe for several threads."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: dict[str, tuple[State, str]] = {}

    def keys(self, inputs: Inputs, check: Check) -> Keys:
        """The keys as of now.

        Raises:
            CancelRequested: through ``check``.
        """
        options = dataclasses.asdict(inputs)
        counting = {name: options[name] for name in sorted(options.keys() - RANKING - _PLACES)}
        of_tests = {name: counting[name] for name in sorted(counting.keys() - _NOT_OF_TESTS)}
        classes = self._function(inputs.custom_objects, inputs.root, check)
        oracle = self._function(inputs.oracle, inputs.root, check)
        code = _key(classes, inputs.safe_mode, inputs.custom_objects, _engine(), *keras_settings())
        weights = self.weights(inputs, check)
        if inputs.test_data:
            items = [_key(Path(spec).name, self.item(spec, check)) for spec in inputs.test_data]
            tests = _key(_engine(), of_tests, *items)
        else:
            tests = None
        return Keys(code, weights, tests, _key(code, weights, tests, oracle, counting))

    def weights(self, inputs: Inputs, check: Check) -> str | None:
        """See `Keys.weights`.

        Raises:
            CancelRequested: through ``check``.
        """
        if inputs.load or not inputs.model:
            return None
        path = Path(inputs.model)
        record = path.with_name(RECORD)
        of_capture = self.item(str(record), check) if record.is_file() else ""
        content = self.item(inputs.model, check)
        if content is None and of_capture and not path.exists() and not is_function(inputs.model):
            content = ""  # it could not be saved: only the process that captured it has it
        return _key(path.name, of_capture, content)

    def item(self, spec: str, check: Check) -> str | None:
        """A digest of the content of a file or folder; ``None`` where there is none, or while it is being written.

        Raises:
            CancelRequested: through ``check``.
        """
        now = time.time()
        state = _state(Path(spec), check) if spec else ()
        if not state:
            return None
        known = self._known.get(spec)
        if known is not None and known[0] == state:
            return known[1]
        self._known.pop(spec, None)
        settled = max(changed for _, _, changed, _ in state) / 1e9 < now - FRESH
        digest = _content(Path(spec), state, check)
        if digest is None or _state(Path(spec), check) != state:
            return None
        if settled:
            self._known[spec] = state, digest
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]
        return digest

    def _function(self, spec: str, root: str, check: Check) -> str | None:
        """The code that ``module`` or ``module:name`` stands for."""
        if not spec:
            return ""
        files = sources_of(spec.partition(":")[0], Path(root))
        return (
            None
            if files is None
            else _key(spec, *(_key(file.name, self.item(str(file), check)) for file in files))
        )


def _state(path: Path, check: Check) -> State:
    """Of a file, or of all files in a folder in the order of their names; empty where there is none."""
    try:
        stat = path.stat()
        if not path.is_dir():
            return ((".", stat.st_size, stat.st_mtime_ns, stat.st_ino),)
        return tuple(sorted(_walk(str(path), "", {os.path.realpath(path)}, check)))
    except OSError:
        return ()


def _walk(folder: str, prefix: str, above: set[str], check: Check) -> Iterator[tuple[str, int, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            check()
            name = f"{prefix}{entry.name}"
            if entry.is_dir():
                inner = os.path.realpath(entry.path)
                if inner not in above:  # a link may lead back
                    yield from _walk(entry.path, f"{name}/", above | {inner}, check)
            elif entry.is_file():
                stat = entry.stat()
                yield name, stat.st_size, stat.st_mtime_ns, stat.st_ino


def _content(path: Path, state: State, check: Check) -> str | None:
    digest, read = hashlib.sha256(), _saved if path.suffix == ".keras" else _whole
    large = sum(size for _, size, _, _ in state) > LARGE
    for name, size, changed, inode in state:
        digest.update(f"{name}\0{size}\0".encode("utf-8", "surrogateescape"))
        if large:
            digest.update(f"{changed}\0{inode}\0".encode())
            if len(state) > _SAMPLES:
                continue
        try:
            with path.joinpath(name).open("rb") as file:
                for block in _sampled(file, size, _SAMPLES // len(state)) if large else read(file, size):
                    check()
                    digest.update(block)
        except OSError:
            return None
    return digest.hexdigest()


def _whole(file: IO[bytes], size: int) -> Iterator[bytes]:
    """As much as there was: one that is being written may grow as fast as it is read."""
    while size > 0 and (block := file.read(min(_CHUNK, size))):
        size -= len(block)
        yield block


def _saved(file: BinaryIO, size: int) -> Iterator[bytes]:
    """What an archive of Keras holds, but not when it was saved; every byte of one that is damaged or odd."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if any(one.compress_type != zipfile.ZIP_STORED or one.file_size > size for one in members):
                raise zipfile.BadZipFile  # Keras does not compress
            for one in members:
                yield f"{one.filename}\0{one.file_size}\0".encode()
                with archive.open(one) as member:
                    if one.filename == "metadata.json":
                        yield json.dumps(json.load(member) | {"date_saved": ""}).encode()
                    else:
                        yield from _whole(member, one.file_size)
    except (OSError, zipfile.BadZipFile, EOFError, ValueError, TypeError, RuntimeError):
        file.seek(0)
        yield from _whole(file, size)


def _sampled(file: BinaryIO, size: int, places: int) -> Iterator[bytes]:
    """Blocks, evenly spread, with the first and the last."""
    for i in range(places):
        file.seek(max(size - _SAMPLE, 0) * i // max(places - 1, 1))
        yield file.read(_SAMPLE)


@functools.cache
def _engine() -> str:
    """This engine's own code, protocol and packages: another version may count otherwise."""
    sources = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        with contextlib.suppress(OSError):  # an update may be replacing it
            sources.update(file.read_bytes())
    key = _key(PROTOCOL, sources.hexdigest(), dict(installed()))
    assert key is not None
    return key


def _key(*parts: Any) -> str | None:
    """One digest of several; ``None`` where a part is."""
    if None in parts:
        return None
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
