"""Load a test set: ``.npz``, a pair of ``.npy``, or ``module:function`` returning ``(inputs, labels)``."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.errors import EngineFailure, unusable
from guider_engine.load.functions import call, is_function
from guider_engine.load.inputs import ModelInput
from guider_engine.load.names import inputs_and_labels
from guider_engine.request import Check
from guider_engine.wire import Inputs

from .testset import Block, TestSet, first_array, map_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .testset import Arrays


@dataclass(frozen=True, slots=True)
class ArrayTests:
    """Tests in arrays, in memory or mapped."""

    inputs: Arrays
    labels: Arrays
    description: str
    notices: tuple[tuple[str, str], ...] = ()
    available: int | None = None
    classes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """How many there are."""
        return len(first_array(self.labels))

    def blocks(self, rows: int) -> Iterator[Block]:
        """Views."""
        for start in range(0, self.total, rows):
            part = slice(start, start + rows)
            inputs = map_arrays(lambda array, part=part: array[part], self.inputs)
            yield Block(inputs, map_arrays(lambda array, part=part: array[part], self.labels))


def load_tests(
    inputs: Inputs,
    wanted: tuple[ModelInput, ...] = (),  # noqa: ARG001
    given: Any = None,
    check: Check = lambda: None,  # noqa: ARG001
) -> TestSet:
    """The test set that ``inputs`` name (see `wire.Inputs.test_data`).

    Raises:
        EngineFailure: missing, empty or damaged files, arrays that do not fit each other, pickled objects.
    """
    spec, root = inputs.test_data, inputs.root
    x: Any
    y: Any
    if not spec and given is not None:
        x, y = _pair(inputs.load, given)
        origin = inputs.load
    elif len(spec) == 1 and is_function(spec[0]) and not Path(spec[0]).exists():
        x, y = _pair(spec[0], call(spec[0], root))
        origin = spec[0]
    elif len(spec) == 1 and spec[0].endswith(".npz"):
        x, y, keys = _npz(Path(spec[0]))
        origin = f"{Path(spec[0]).name} ({keys[0]}, {keys[1]})"
    elif len(spec) == 2 and all(name.endswith(".npy") for name in spec):
        x, y = _npy(Path(spec[0])), _npy(Path(spec[1]))
        origin = f"{Path(spec[0]).name}, {Path(spec[1]).name}"
    else:
        raise unusable(
            "test-data-format",
            f"Test data is {' '.join(spec) or 'not given'}; expected one .npz, two .npy (inputs and labels), or "
            "module:function returning (inputs, labels).",
        )
    _check(x, y, origin)
    shapes = " and ".join(f"{'×'.join(map(str, a.shape))} {a.dtype}" for a in (x, y))
    return ArrayTests(x, y, f"{origin}: {shapes}")


def _check(inputs: NDArray[Any], labels: NDArray[Any], origin: str) -> None:
    for what, array in (("inputs", inputs), ("labels", labels)):
        if array.dtype.kind not in "biuf":
            raise unusable(
                "test-data-type", f"{origin}: {what} have type {array.dtype}; expected numbers or booleans."
            )
        if array.ndim == 0:
            raise unusable("test-data-shape", f"{origin}: {what} are one number, not an array of tests.")
    if len(inputs) != len(labels):
        raise unusable(
            "test-data-shape",
            f"{origin}: {len(inputs)} inputs (shape {inputs.shape}) but {len(labels)} labels (shape "
            f"{labels.shape}); there must be one label for each input.",
        )
    if len(labels) == 0 or inputs.size == 0 or labels.size == 0:
        raise unusable(
            "test-data-empty", f"{origin}: there are no tests (shapes {inputs.shape}, {labels.shape})."
        )


def _present(path: Path) -> None:
    if not path.is_file():
        raise unusable("test-data-missing", f"There is no test data {path.name} in {path.parent}.")
    if path.stat().st_size == 0:
        raise unusable(
            "test-data-damaged", f"{path.name} is empty (0 bytes). Write the test data again.\n{path}"
        )


def _npz(path: Path) -> tuple[NDArray[Any], NDArray[Any], tuple[str, str]]:
    _present(path)
    if not zipfile.is_zipfile(path):
        raise _damaged(path, zipfile.BadZipFile())
    try:
        # NumPy does not close a file that it opened itself and found damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = list(archive.files)
            keys = inputs_and_labels(names)
            if keys is None:
                raise unusable(
                    "test-data-keys",
                    f"{path.name} holds {', '.join(names) or 'nothing'}; expected inputs and labels named such as "
                    "x_test and y_test, X and y, test_images and test_labels: "
                    f"np.savez('{path.name}', x_test=…, y_test=…).",
                )
            return archive[keys[0]], archive[keys[1]], keys
    except EngineFailure:
        raise
    except Exception as error:
        raise _damaged(path, error) from error


def _npy(path: Path) -> NDArray[Any]:
    _present(path)
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        raise _damaged(path, error) from error
    return array


def _damaged(path: Path, error: Exception) -> EngineFailure:
    if any(sign in str(error) for sign in ("allow_pickle", "Object arrays", "Python objects")):
        return unusable(
            "test-data-pickled",
            f"{path.name} holds pickled Python objects, which are never loaded because they can run code. Save plain "
            f"arrays (dtype=object often comes from ragged lists).\n{path}",
        )
    kind = (
        "not a whole archive" if isinstance(error, zipfile.BadZipFile) else str(error) or type(error).__name__
    )
    return unusable(
        "test-data-damaged", f"{path.name} cannot be read: {kind}. Write the test data again.\n{path}"
    )


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _pair(spec: str, value: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Inputs and labels; of ``(training pair, test pair)``, as Keras' ``load_data`` returns them, the second."""
    if isinstance(value, tuple) and len(value) == 2 and all(_is_pair(part) for part in value):
        value = value[1]
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        shape = f"{len(value)} values" if isinstance(value, (tuple, list)) else type(value).__name__
        raise unusable(
            "test-data-type", f"{spec} returned {shape}; expected a pair (inputs, labels) of arrays."
        )
    try:
        return np.asarray(value[0]), np.asarray(value[1])
    except ValueError as error:
        raise unusable("test-data-type", f"{spec}: inputs and labels must be arrays: {error}") from error
