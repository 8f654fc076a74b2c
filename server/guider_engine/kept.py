"""Hit spectra on disk, so that a new process need not count again what another one has counted.

One ``.npz`` an entry: arrays, and a header in JSON that holds all else; nothing is pickled. A file appears whole or not
at all (``os.replace``), and whoever finds one that cannot be read removes it. So any number of processes may read,
write and tidy at once. All that fails silently: an entry that is not there is counted again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .counting import Counted, Example
from .request import Check
from .spectrum.hits import Hits, LayerHits
from .spectrum.statistics import LayerStatistics
from .wire import ModelSummary, structure

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_BYTES = 512 << 20
"""That all entries may take together."""
MOST = 32
"""Entries."""
LARGEST = 128 << 20
"""Bytes of an entry that is worth keeping."""
_ABANDONED = 600.0
"""Seconds after which a file that is still not whole never will be."""
_NAME = re.compile(r"[0-9a-f]{64}\.npz")
_HEADER = "header"
_CLASSES = {kind.__name__: kind for kind in (Counted, Hits, LayerHits, LayerStatistics, Example)}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a ranking is made from, with nothing run."""

    summary: ModelSummary
    counted: Counted
    versions: Mapping[str, str]
    """Of what counted it."""

    @property
    def bytes(self) -> int:
        """Of its arrays."""
        arrays: list[NDArray[Any]] = []
        _plain(self.counted, arrays)
        return sum(array.nbytes for array in arrays)


class Kept:
    """The entries in one folder, by key: the SHA-256 of all that they depend on, in hexadecimal digits."""

    def __init__(
        self, folder: Path, most: int = MOST, most_bytes: int = MOST_BYTES, largest: int = LARGEST
    ) -> None:
        """Use ``folder``, which is made when something is kept."""
        self._folder = folder
        self._most = most
        self._most_bytes = most_bytes
        self._largest = largest

    def read(self, key: str) -> Entry | None:
        """The entry of that key; ``None``: there is none. A file that cannot be used is removed."""
        path = self._path(key)
        try:
            if path.stat().st_size > 2 * self._largest:
                raise ValueError("too large")
            entry = _read(path, key)
        except FileNotFoundError:
            return None
        except Exception:  # damaged files make zipfile, NumPy and JSON raise whatever they may
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the least recently used go first
        return entry

    def write(self, key: str, entry: Entry, check: Check) -> None:
        """Keep an entry, unless it is too large or the folder cannot be written.

        Raises:
            CancelRequested: through ``check``; then nothing is left of it.
        """
        if entry.bytes > self._largest:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    _write(file, key, entry, check)
                Path(name).replace(self._path(key))
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
            self._prune()

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.npz"

    def _prune(self) -> None:
        """Remove what was not used for the longest time, as far as there is too much, and what was never finished."""
        files: list[tuple[int, int, Path]] = []
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):  # another process may have removed it
                stat = path.stat()
                if _NAME.fullmatch(path.name):
                    files.append((stat.st_mtime_ns, stat.st_size, path))
                elif path.suffix == ".part" and stat.st_mtime < time.time() - _ABANDONED:
                    path.unlink()
        total = 0
        for number, (_, size, path) in enumerate(sorted(files, reverse=True)):
            total += size
            if number >= self._most or total > self._most_bytes:
                with contextlib.suppress(OSError):
                    path.unlink()


def _write(file: Any, key: str, entry: Entry, check: Check) -> None:
    arrays: list[NDArray[Any]] = []
    header = {
        "key": key,
        "counted": _plain(entry.counted, arrays),
        "summary": dataclasses.asdict(entry.summary),
        "versions": dict(entry.versions),
    }
    text = np.frombuffer(json.dumps(header, separators=(",", ":")).encode(), np.uint8)
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in ((_HEADER, text), *((str(i), array) for i, array in enumerate(arrays))):
            check()
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def _read(path: Path, key: str) -> Entry:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        header = json.loads(archive[_HEADER].tobytes())
        if header["key"] != key:
            raise ValueError("of another key")
        arrays = [archive[str(i)] for i in range(len(archive.files) - 1)]
    counted = _rebuilt(header["counted"], arrays)
    if not isinstance(counted, Counted):
        raise TypeError("no hit spectrum")
    return Entry(structure(header["summary"], ModelSummary), counted, header["versions"])


def _plain(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """JSON data that says of each value what it is; arrays are put aside."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, np.generic):
        return value.item()
    if dataclasses.is_dataclass(value):
        fields = {f.name: _plain(getattr(value, f.name), arrays) for f in dataclasses.fields(value)}
        return {"class": type(value).__name__, "fields": fields}
    if isinstance(value, dict):
        return {"items": [[_plain(k, arrays), _plain(v, arrays)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_plain(item, arrays) for item in value]}
    return value


def _rebuilt(plain: Any, arrays: list[NDArray[Any]]) -> Any:
    """What `_plain` took apart."""
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return arrays[plain["array"]]
    if "class" in plain:
        fields = {name: _rebuilt(value, arrays) for name, value in plain["fields"].items()}
        return _CLASSES[plain["class"]](**fields)
    if "items" in plain:
        return {_rebuilt(k, arrays): _rebuilt(v, arrays) for k, v in plain["items"]}
    return tuple(_rebuilt(item, arrays) for item in plain["tuple"])
