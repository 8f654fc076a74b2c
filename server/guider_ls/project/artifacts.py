"""The files that a program says it writes, as far as they exist: the models and test sets to choose from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from guider_ls.source.sites import Artifact

_LABELS = frozenset({"y", "label", "labels", "target", "targets"})
_INPUTS = frozenset({"x", "data", "feature", "features", "image", "images", "input", "inputs"})


@attrs.frozen(slots=True)
class Candidate:
    """One model, or one test set (which may be two files, inputs before labels)."""

    paths: tuple[Path, ...]
    artifact: Artifact
    """What in the program says so."""


def absolute(path: str | Path, folder: Path = Path()) -> Path:
    """The path from the file system's root, symbolic links left as the user knows them.

    A relative one starts at ``folder``; ``~`` is the home of the user, where there is one.
    """
    # pathlib would follow the links, and fail on a file whose name merely begins with "~".
    return Path(os.path.abspath(folder / os.path.expanduser(path)))  # noqa: PTH100, PTH111


def exists(path: Path) -> bool:
    """Whether the path leads to something; what may not be looked at is not there."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists() raises for it


def models(artifacts: Iterable[Artifact], folders: Sequence[Path]) -> tuple[Candidate, ...]:
    """The models that exist in one of the folders, relative to which the program may have written them.

    A SavedModel is taken only where there is no other.
    """
    found = [(path, a) for a in artifacts if a.kind == "model" for path in _places(a, folders)]
    files = [Candidate((path,), artifact) for path, artifact in found if path.is_file()]
    saved = (Candidate((path,), artifact) for path, artifact in found if exists(path / "saved_model.pb"))
    return _distinct(files or saved)


def test_sets(artifacts: Iterable[Artifact], folders: Sequence[Path]) -> tuple[Candidate, ...]:
    """The ``.npz`` files, and the ``.npy`` files that make a pair by their names (``x_test``, ``y_test``).

    Where there are none: the tables, HDF5 files and saved datasets that are called tests.
    """
    files = [(path, a) for a in artifacts if a.kind == "tests" for path in _places(a, folders)]
    labels = {_subject(path): path for path, _ in files if _is_array(path) and _words(path) & _LABELS}
    found, named = [], []
    for path, artifact in files:
        if path.suffix == ".npz":
            found.append(Candidate((path,), artifact))
        elif not _is_array(path):
            if path.is_file() or exists(path / "dataset_spec.pb"):
                named.append(Candidate((path,), artifact))
        elif not _words(path) & _LABELS and _subject(path) in labels:
            found.append(Candidate((path, labels[_subject(path)]), artifact))
    return _distinct(found or named)


def _distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    return tuple({candidate.paths: candidate for candidate in candidates}.values())


def _places(artifact: Artifact, folders: Sequence[Path]) -> list[Path]:
    if not artifact.known:
        return []
    paths = dict.fromkeys(absolute(artifact.path, folder) for folder in folders)
    return [path for path in paths if exists(path)]


def _is_array(path: Path) -> bool:
    return path.suffix == ".npy"


def _words(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"^[xy](?=(?:test|te|val)$)|[a-z]+|\d+", path.stem.lower()))


def _subject(path: Path) -> tuple[Path, frozenset[str]]:
    """What both arrays of a test set share: folder and name, without the word for their part in it."""
    return path.parent, _words(path) - _LABELS - _INPUTS
