"""What is wrong, or odd, about the arrays of a test set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.errors import EngineFailure, unusable
from guider_engine.memory import available_memory, spelled

from .testset import named_arrays

if TYPE_CHECKING:
    from .testset import Arrays

LOOKED_AT = 10_000
"""First tests that are searched for NaN."""


def check_arrays(inputs: Arrays, labels: Arrays, origin: str) -> None:
    """Refuse arrays that are no tests.

    Raises:
        EngineFailure: their types, shapes or lengths are not those of tests, or there are none.
    """
    arrays = [("inputs", *item) for item in named_arrays(inputs)]
    arrays += [("labels", *item) for item in named_arrays(labels)]
    for part, name, array in arrays:
        what = f"{part} {name}" if name else part
        kinds = "biufUS" if part == "inputs" else "biuf"
        if array.dtype.kind not in kinds:
            raise unusable(
                "test-data-type", f"{origin}: {what} have type {array.dtype}; expected numbers or booleans."
            )
        if len(array.shape) == 0:
            raise unusable("test-data-shape", f"{origin}: {what} are one number, not an array of tests.")
    (_, _, first), (_, _, label) = arrays[0], next(item for item in arrays if item[0] == "labels")
    for part, name, array in arrays:
        if array.shape[0] != first.shape[0]:
            one, other = ("inputs", "labels") if part == "labels" else (arrays[0][1], name)
            raise unusable(
                "test-data-shape",
                f"{origin}: {first.shape[0]} {one} (shape {first.shape}) but {array.shape[0]} {other} (shape "
                f"{array.shape}); there must be one label for each input.",
            )
    if any(0 in array.shape for _, _, array in arrays):
        raise unusable(
            "test-data-empty", f"{origin}: there are no tests (shapes {first.shape}, {label.shape})."
        )


def notices_of(inputs: Arrays) -> tuple[tuple[str, str], ...]:
    """NaN and infinity among the first inputs."""
    found = []
    for name, array in named_arrays(inputs):
        if array.dtype.kind != "f":
            continue
        head = np.asarray(array[:LOOKED_AT])
        bad = int((~np.isfinite(head)).reshape(len(head), -1).any(axis=1).sum())
        if bad:
            of = f" {name}" if name else ""
            found.append(
                (
                    "nan-inputs",
                    f"Inputs{of} of {bad:,} of {'the first ' if len(array) > len(head) else ''}{len(head):,} tests "
                    "hold NaN or infinity, on which a model puts out NaN or a meaningless number. Clean the test data.",
                )
            )
    return tuple(found)


def check_memory(path: Path, size: int) -> None:
    """Refuse what does not fit, before it is read.

    Raises:
        EngineFailure: there is less memory.
    """
    free = available_memory()
    if free is not None and size > free:
        raise unusable(
            "test-data-too-large",
            f"{path.name} says that it holds {spelled(size)}, and {spelled(free)} of memory are free. Save the arrays "
            f"as two .npy files or uncompressed (np.savez), which are read piece by piece.\n{path}",
        )


def present(path: Path) -> None:
    """Refuse a file that is not there or empty.

    Raises:
        EngineFailure: it is.
    """
    if not path.is_file():
        raise unusable("test-data-missing", f"There is no test data {path.name} in {path.parent}.")
    if path.stat().st_size == 0:
        raise unusable(
            "test-data-damaged", f"{path.name} is empty (0 bytes). Write the test data again.\n{path}"
        )


def damaged(path: Path, why: object) -> EngineFailure:
    """The file cannot be read."""
    return unusable(
        "test-data-damaged", f"{path.name} cannot be read: {why}. Write the test data again.\n{path}"
    )


def pickled(path: Path) -> EngineFailure:
    """The file holds Python objects."""
    return unusable(
        "test-data-pickled",
        f"{path.name} holds pickled Python objects, which are never loaded because they can run code. Save plain "
        f"arrays (dtype=object often comes from ragged lists).\n{path}",
    )


def package_missing(package: str, purpose: str, instead: str) -> EngineFailure:
    """A package of the project's environment is needed for a format."""
    import sys

    return EngineFailure(
        "environment",
        "package-missing",
        f"{purpose} needs {package}, which is not installed for {sys.executable}. Install it "
        f"({sys.executable} -m pip install {package.partition(' ')[0]}), or {instead}.",
    )


def shapes_of(arrays: Any) -> str:
    """Shapes and types for people."""
    return ", ".join(
        f"{name + ' ' if name else ''}{'×'.join(map(str, array.shape))} {_type(array)}"
        for name, array in named_arrays(arrays)
    )


def _type(array: Any) -> str:
    return "text" if array.dtype.kind in "US" else str(array.dtype)
