"""HDF5 files, read from the disk slice by slice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guider_engine.errors import EngineFailure
from guider_engine.load.inputs import ModelInput
from guider_engine.wire import Inputs

from .arrays import ArrayTests, array_tests
from .checks import damaged, package_missing, pickled, present
from .select import select


def of_hdf5(path: Path, options: Inputs, wanted: tuple[ModelInput, ...]) -> ArrayTests:
    """The tests of a file; which datasets they are is told by their names, without those of their groups.

    Raises:
        EngineFailure: it is missing or damaged, ``h5py`` is, or no dataset has a telling name.
    """
    present(path)
    try:
        import h5py
    except ImportError as error:
        raise package_missing("h5py", path.name, "save the arrays with np.savez") from error
    try:
        # A file that is locked nobody could write while it is held open; h5py knows of that since 3.5.
        unlocked = {"locking": False} if h5py.version.version_tuple >= (3, 5) else {}
        file = h5py.File(path, "r", **unlocked)
        found: dict[str, Any] = {}
        file.visititems(
            lambda name, item: found.__setitem__(name, item) if isinstance(item, h5py.Dataset) else None
        )
        names = {name: _last(name, found) for name in found}
        by_name = {short: found[name] for name, short in names.items()}
        chosen = select(path.name, tuple(by_name), options, wanted)
        for name in chosen.names:
            by_name[name] = _readable(path, h5py, by_name[name])
    except EngineFailure:
        raise
    except Exception as error:
        raise damaged(path, str(error) or type(error).__name__) from error
    inputs, labels = chosen.pick(by_name)
    return array_tests(inputs, labels, f"{path.name} ({chosen.described})", options)


def _last(name: str, names: dict[str, Any]) -> str:
    """The name without its groups, where it is the only one of that name."""
    short = name.rsplit("/", 1)[-1]
    return short if sum(other.rsplit("/", 1)[-1] == short for other in names) == 1 else name


def _readable(path: Path, h5py: Any, dataset: Any) -> Any:
    """The dataset, or the text in it."""
    if dataset.dtype.kind != "O":
        return dataset
    if h5py.check_string_dtype(dataset.dtype) is None:
        raise pickled(path)
    return dataset.asstr()[...].astype(str)
