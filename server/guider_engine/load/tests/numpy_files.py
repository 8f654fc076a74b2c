"""``.npz`` and ``.npy``: mapped from the disk where they are not compressed."""

from __future__ import annotations

import math
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.errors import EngineFailure, unusable
from guider_engine.load.inputs import ModelInput
from guider_engine.wire import Inputs

from .arrays import ArrayTests, array_tests
from .checks import check_memory, damaged, pickled, present
from .select import select

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LOCAL = 30
"""Bytes of a zip entry's local header before its name."""


def of_npz(path: Path, options: Inputs, wanted: tuple[ModelInput, ...]) -> ArrayTests:
    """The tests of an archive; which arrays they are is told by their names.

    Raises:
        EngineFailure: it is missing, damaged, too large for memory, holds objects, or no array has a telling name.
    """
    present(path)
    if not zipfile.is_zipfile(path):
        raise damaged(path, "not a whole archive")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {e.filename.removesuffix(".npy"): e for e in archive.infolist() if not e.is_dir()}
            chosen = select(path.name, tuple(entries), options, wanted)
            for name in chosen.names:
                if entries[name].flag_bits & 1:
                    raise damaged(path, "it is encrypted")
            arrays = {name: _entry(path, archive, entries[name]) for name in chosen.names}
    except EngineFailure:
        raise
    except Exception as error:
        raise damaged(path, str(error) or type(error).__name__) from error
    inputs, labels = chosen.pick(arrays)
    return array_tests(inputs, labels, f"{path.name} ({chosen.described})", options)


def of_npy(inputs: Path, labels: Path, options: Inputs) -> ArrayTests:
    """The tests of two files, inputs and labels.

    Raises:
        EngineFailure: one is missing, damaged or holds objects.
    """
    return array_tests(_npy(inputs), _npy(labels), f"{inputs.name}, {labels.name}", options)


def _npy(path: Path) -> NDArray[Any]:
    present(path)
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        if "allow_pickle" in str(error) or "Python objects" in str(error) or "Object arrays" in str(error):
            raise pickled(path) from error
        raise damaged(path, str(error) or type(error).__name__) from error
    return array


def _entry(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """One array; its header is held against the entry's size before anything is allocated."""
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(stream)
        begin = stream.tell()
    if dtype.hasobject:
        raise pickled(path)
    size = math.prod(shape) * dtype.itemsize
    if begin + size != entry.file_size or not dtype.itemsize or min(shape, default=0) < 0:
        raise unusable(
            "test-data-damaged",
            f"{path.name} cannot be read: {entry.filename} says that it holds {'×'.join(map(str, shape))} {dtype}, "
            f"{size:,} bytes, but {entry.file_size - begin:,} are there. Write the test data again.\n{path}",
        )
    if entry.compress_type == zipfile.ZIP_STORED and size:
        offset = _data_offset(path, entry) + begin
        if offset + size <= path.stat().st_size:
            return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")
    check_memory(path, size)
    with archive.open(entry) as stream:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _data_offset(path: Path, entry: zipfile.ZipInfo) -> int:
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        name, extra = struct.unpack("<26x2H", file.read(_LOCAL))
    return entry.header_offset + _LOCAL + int(name) + int(extra)
