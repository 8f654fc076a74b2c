"""Test sets of every format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from guider_engine.errors import EngineFailure, unusable
from guider_engine.load.functions import call, is_function
from guider_engine.load.inputs import ModelInput
from guider_engine.request import Check
from guider_engine.wire import Inputs

from .checks import damaged
from .hdf5 import of_hdf5
from .images import is_image_folder, of_folder
from .numpy_files import of_npy, of_npz
from .returned import tests_of
from .table import of_csv, of_parquet
from .testset import TestSet

Read = Callable[[Path, Inputs, tuple[ModelInput, ...], Check], TestSet]

FILES: dict[str, Read] = {
    ".npz": lambda path, options, wanted, _: of_npz(path, options, wanted),
    ".csv": of_csv,
    ".tsv": of_csv,
    ".parquet": of_parquet,
    ".h5": lambda path, options, wanted, _: of_hdf5(path, options, wanted),
    ".hdf5": lambda path, options, wanted, _: of_hdf5(path, options, wanted),
}
"""Readers of one file, by its suffix."""


def load_tests(
    inputs: Inputs,
    wanted: tuple[ModelInput, ...] = (),
    given: Any = None,
    check: Check = lambda: None,
) -> TestSet:
    """The test set that the inputs name (see `wire.Inputs.test_data`).

    Args:
        inputs: the files, and the options that say what is in them.
        wanted: what the model takes.
        given: what the function ``load`` returned beside the model.
        check: called while much is read; may raise to stop.

    Raises:
        EngineFailure: missing, empty or damaged files, arrays that do not fit each other, pickled objects.
    """
    spec = inputs.test_data
    if not spec and given is not None:
        return tests_of(given, inputs.load, None, inputs, wanted, check)
    if len(spec) == 1 and is_function(spec[0]) and not Path(spec[0]).exists():
        function = spec[0]
        value = call(function, inputs.root)
        return tests_of(value, function, lambda: call(function, inputs.root), inputs, wanted, check)
    paths = [Path(name) for name in spec]
    if len(paths) == 2 and all(path.suffix.lower() == ".npy" for path in paths):
        return of_npy(paths[0], paths[1], inputs)
    if len(paths) == 1 and paths[0].is_dir():
        return _folder(paths[0], inputs, wanted, check)
    if len(paths) == 1 and (read := FILES.get(paths[0].suffix.lower())) is not None:
        return read(paths[0], inputs, wanted, check)
    raise _no_format(spec)


def _folder(path: Path, inputs: Inputs, wanted: tuple[ModelInput, ...], check: Check) -> TestSet:
    if (path / "dataset_spec.pb").is_file() or (path / "snapshot.metadata").is_file():
        import tensorflow as tf

        try:
            dataset = tf.data.Dataset.load(str(path))
        except Exception as error:
            raise damaged(path, str(error).splitlines()[0] if str(error) else type(error).__name__) from error
        return tests_of(dataset, path.name, None, inputs, wanted, check)
    if is_image_folder(path):
        return of_folder(path, inputs, wanted)
    raise unusable(
        "test-data-format",
        f"{path.name} is a folder without a saved tf.data dataset and without sub-folders of images.\n{path}",
    )


def _no_format(spec: tuple[str, ...]) -> EngineFailure:
    return unusable(
        "test-data-format",
        f"Test data is {' '.join(spec) or 'not given'}; expected one {', '.join(FILES)} file, two .npy files "
        "(inputs and labels), a folder of images by class or of a saved tf.data dataset, or module:function returning "
        "tests.",
    )
