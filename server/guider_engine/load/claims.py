"""What a file of a model claims, held against the bytes and the memory that are there, before anything is allocated."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from guider_engine.errors import EngineFailure, unusable
from guider_engine.memory import available_memory, spelled

HDF5 = b"\x89HDF\r\n\x1a\n"


def damaged(path: Path, said: str, detail: str = "") -> EngineFailure:
    """A file is not what its name says; ``said`` follows its name."""
    return unusable("model-damaged", f"{path.name} {said}\n{path}", detail=detail)


def too_large(path: Path, said: str) -> EngineFailure:
    """A file claims more than there is."""
    return unusable("model-too-large", f"{path.name} {said} It was not loaded.\n{path}")


def check_size(path: Path, size: int) -> None:
    """Refuse what needs more bytes than there is memory."""
    memory = available_memory()
    if memory is not None and size > memory:
        raise too_large(
            path, f"claims to hold {spelled(size)}, more than the {spelled(memory)} of memory that are free."
        )


def check_entry(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """See that an entry is an HDF5 file whose arrays can be read; their size in bytes.

    It is read whole, for its checksum: the HDF5 library crashes on some damaged files.
    """
    with archive.open(entry) as weights:
        if weights.read(len(HDF5)) != HDF5:
            raise damaged(path, "has weights that are no HDF5 file.")
        while weights.read(1 << 20):
            pass
    if entry.compress_type != zipfile.ZIP_STORED:
        return entry.file_size  # seeking in it would unpack it again and again; Keras stores it
    import h5py

    with path.open("rb") as raw, h5py.File(_Part(raw, _offset(raw, entry), entry.file_size), "r") as file:
        return _check_arrays(path, file)


def check_hdf5(path: Path) -> int:
    """See that a file is an HDF5 file whose arrays can be read; their size in bytes."""
    with path.open("rb") as file:
        if file.read(len(HDF5)) != HDF5:
            raise damaged(path, f"is not an HDF5 file ({path.stat().st_size} bytes). Save the model again.")
    import h5py

    with h5py.File(os.fspath(path), "r") as file:
        return _check_arrays(path, file)


def _check_arrays(path: Path, file: Any) -> int:
    """Refuse shapes that claim more than there is memory, and data that lie in other files.

    Returns:
        Bytes of all arrays, without those of the optimizer, which are not read.
    """
    import h5py

    claimed = 0

    def visit(name: str, found: Any) -> None:
        nonlocal claimed
        if isinstance(found, h5py.Dataset):
            if found.is_virtual or found.external:
                raise damaged(path, f"takes its weights {name} from other files, which are not read.")
            if not name.startswith("optimizer"):
                claimed += math.prod(map(int, found.shape or ())) * found.dtype.itemsize

    file.visititems(visit)
    check_size(path, claimed)
    return claimed


def check_config(path: Path, config: Mapping[str, Any], held: int) -> None:
    """Refuse a configuration whose layers have more weights than there are bytes of weights.

    All together may have four times as many, since a layer that is shared may be described several times.
    """
    total = 0
    for class_name, options, shape in _layers(config):
        claimed = _weights(class_name, options, shape)
        total += claimed
        if claimed > held or total > 4 * held:
            raise too_large(
                path,
                f"describes a layer {options.get('name', class_name)} ({class_name}) of at least {claimed:,} "
                f"weights, and holds {spelled(held)} of them: the file is damaged, or made to exhaust the memory.",
            )


def _layers(value: Any) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """Class, configuration and input shape of every layer of Keras within a configuration."""
    if isinstance(value, Mapping):
        options = value.get("config")
        if isinstance(options, Mapping) and ">" not in str(value.get("registered_name")):
            yield str(value.get("class_name")), options, (value.get("build_config") or {}).get("input_shape")
        for item in value.values():
            yield from _layers(item)
    elif isinstance(value, list):
        for item in value:
            yield from _layers(item)


def _weights(class_name: str, options: Mapping[str, Any], shape: Any) -> int:
    """How many weights a layer has at least."""
    last = shape[-1] if isinstance(shape, list) and shape and isinstance(shape[-1], int) else 1
    try:
        if class_name == "Dense":
            return int(options["units"]) * last
        if class_name in ("LSTM", "GRU", "SimpleRNN"):
            return int(options["units"]) ** 2
        if class_name == "Embedding":
            return int(options["input_dim"]) * int(options["output_dim"])
        if class_name in ("Conv1D", "Conv2D", "Conv3D"):
            return int(options["filters"]) * math.prod(map(int, options["kernel_size"]))
    except (KeyError, TypeError, ValueError):
        pass
    return 0


def _offset(raw: Any, entry: zipfile.ZipInfo) -> int:
    """Where an entry's bytes begin: after its local header and two fields of variable length."""
    raw.seek(entry.header_offset + 26)
    name, extra = (int.from_bytes(raw.read(2), "little") for _ in range(2))
    return int(entry.header_offset) + 30 + name + extra


class _Part(io.RawIOBase):
    """Part of a file as a file."""

    def __init__(self, raw: Any, start: int, size: int) -> None:
        super().__init__()
        self._raw, self._start, self._size, self._at = raw, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._raw.seek(self._start + self._at)
        read: int = self._raw.readinto(memoryview(buffer)[: max(0, self._size - self._at)])
        self._at += read
        return read
