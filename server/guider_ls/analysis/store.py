"""Results on disk, so that reopening an editor shows them at once."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from guider_engine.wire import PROTOCOL, CaptureRecord, Localization, structure
from guider_ls.analysis.fingerprint import Fingerprint
from guider_ls.project.artifacts import absolute

SCHEMA = f"1.{PROTOCOL}"
"""Another one when what is stored changes its form or meaning; files of other schemas are removed."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The last result of one program."""

    program: str
    """Absolute path."""
    fingerprint: Fingerprint
    finished: float
    """Seconds since the epoch."""
    localization: Localization
    capture: CaptureRecord | None = None
    """The run of the program that the model was captured from, where it was."""


class Store:
    """One JSON file for each program; the least recently written ones go when there are too many."""

    def __init__(self, folder: Path, limit: int = 64) -> None:
        """Use ``folder``, which is made when something is stored."""
        self._folder = folder
        self._limit = limit

    def load(self, program: Path) -> Stored | None:
        """The result of a program; a file that cannot be used is removed."""
        path = self._path(str(program))
        try:
            body = json.loads(path.read_bytes())
            if body["schema"] != SCHEMA:
                raise ValueError(f"schema {body['schema']}")
            stored = structure(body["result"], Stored)
            if stored.program != str(program):
                raise ValueError(f"of {stored.program}")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.forget(program)
            return None
        return stored

    def save(self, stored: Stored) -> None:
        """Keep a result in place of the program's last one; readers see the old or the new file, never half of one.

        Raises:
            OSError: the folder cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        body: dict[str, Any] = {"schema": SCHEMA, "result": dataclasses.asdict(stored)}
        descriptor, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(body, file, allow_nan=False, separators=(",", ":"))
            Path(name).replace(self._path(stored.program))
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        self._shrink()

    def forget(self, program: Path) -> None:
        """Remove the result of a program."""
        with contextlib.suppress(OSError):
            self._path(str(program)).unlink(missing_ok=True)

    def _path(self, program: str) -> Path:
        key = hashlib.sha256(os.path.normcase(program).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._folder / f"{key}.json"

    def _shrink(self) -> None:
        files: list[tuple[int, Path]] = []
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError):
                files.append((path.stat().st_mtime_ns, path))
        for _, path in sorted(files, reverse=True)[self._limit :]:
            with contextlib.suppress(OSError):
                path.unlink()


def spectra_folder() -> Path:
    """Where engines keep this user's hit spectra."""
    return cache_folder() / "spectra"


def cache_folder() -> Path:
    """Where all that is kept for this user is, absolute; ``GUIDER_CACHE`` names another folder."""
    named = os.environ.get("GUIDER_CACHE")
    return absolute(named) if named else Path(platformdirs.user_cache_dir("guider-ls", appauthor=False))
