"""Runs of programs that were captured: where their artefacts are, and whether the program is still the one that ran.

Every run has a folder of its own in the cache, so two editors that run the same program never write to the same
place. ``capture.json`` is written last, so a folder with one is whole; the latest counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from guider_engine.wire import (
    PROTOCOL,
    CapturedModel,
    CaptureRecord,
    FileState,
    Notice,
    Program,
    structure,
)
from guider_ls.errors import EnvironmentProblem, InputError, UsageError
from guider_ls.project.artifacts import absolute, exists
from guider_ls.project.output import in_use
from guider_ls.project.settings import Settings

RECORD = "capture.json"
MOST = 24
"""Captures that are kept."""
MOST_BYTES = 4 << 30
"""Bytes that they may take together."""
_OF_A_KIND = 2
"""Captures of the same run that are kept: the latest, and the one that another editor may still show."""

_FRESH = 3_600.0
"""Seconds after which a folder that nobody works in and that is not finished never will be."""


@attrs.frozen(slots=True)
class Capture:
    """A run that was captured, compared with the files as they are now."""

    folder: Path
    record: CaptureRecord
    changed: tuple[str, ...] = ()
    """Files that the program read and that are not what they were: then the capture does not hold."""

    @property
    def holds(self) -> bool:
        """Whether the program would run as it did."""
        return not self.changed

    @property
    def source(self) -> str:
        """How its models came about, for people."""
        return f"captured by running {command_line(self.record.program)} at {when(self.record.started)}"

    def model(self, name: str = "") -> CapturedModel:
        """The model of that name; without one, the one to localize first.

        Raises:
            InputError: "captured-model-unknown".
        """
        models = self.record.models
        found = next((model for model in models if name in ("", model.name)), None)
        if found is None:
            program = Path(self.record.program.path).name
            raise InputError(
                "captured-model-unknown",
                f'{program} trained no model that is called "{name}". There is '
                f"{', '.join(model.name for model in models)}. Choose one of these "
                "(--model NAME; in the editor: GUIDER: Choose Captured Model, or the setting guider.capture.model).",
            )
        return found


class Captures:
    """The captures of this user. Reads and writes files: not for an event loop."""

    def __init__(self, folder: Path, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        """Keep them in ``folder``, which is made when something is captured."""
        self._folder = folder
        self._most = most
        self._most_bytes = most_bytes

    def newest(self, program: Path, arguments: Sequence[str]) -> Capture | None:
        """The latest capture of a program with these arguments, however it was run.

        Where no arguments are named and it never ran without, the latest with any.
        """
        path = absolute(program)
        found = self._newest(f"{_what(path, arguments)}-")
        return found if found is not None or arguments else self._newest(f"{_program(path)}-")

    def reusable(self, program: Program, interpreter: Sequence[str]) -> Capture | None:
        """The latest capture of the same run, if running it again would do the same."""
        found = self._newest(f"{_key(program, interpreter)}-")
        return found if found is not None and found.holds else None

    def new_folder(self, program: Program, interpreter: Sequence[str]) -> Path:
        """An empty folder for the artefacts of a run.

        Raises:
            EnvironmentProblem: "cache-unwritable".
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix=f"{_key(program, interpreter)}-", dir=self._folder))
        except OSError as error:
            raise unwritable(self._folder, error) from error

    def discard(self, folder: Path) -> None:
        """Remove what a run left that gave nothing."""
        shutil.rmtree(folder, ignore_errors=True)

    def prune(self, keep: Sequence[Path] = ()) -> None:
        """Remove the captures that were not used for the longest time, as far as there are too many of them.

        Never one of ``keep``, nor one whose process lives.
        """
        kinds: dict[str, int] = {}
        number = size = 0
        for folder in sorted(self._folders(""), key=_last_used, reverse=True):
            kind, own = folder.name.rpartition("-")[0], _size(folder)
            many = kinds.get(kind, 0) == _OF_A_KIND or number == self._most or size + own > self._most_bytes
            unfinished = not (folder / RECORD).is_file() and _last_used(folder) < time.time() - _FRESH
            if (many or unfinished) and folder not in keep and not in_use(folder):
                self.discard(folder)
            else:
                kinds[kind] = kinds.get(kind, 0) + 1
                number, size = number + 1, size + own

    def _newest(self, prefix: str) -> Capture | None:
        found = [
            (record.started, folder, record)
            for folder in self._folders(prefix)
            if (record := read_record(folder)) is not None
        ]
        if not found:
            return None
        _, folder, record = max(found, key=lambda item: item[:2])
        with contextlib.suppress(OSError):
            os.utime(folder)  # in use
        return Capture(folder, record, changes(record))

    def _folders(self, prefix: str) -> list[Path]:
        with contextlib.suppress(OSError):
            return [path for path in self._folder.iterdir() if path.name.startswith(prefix) and path.is_dir()]
        return []


def to_program(path: Path, root: Path, settings: Settings, folder: Path | None = None) -> Program:
    """What to run for a program, and how.

    Args:
        path: of the program.
        root: folder of the project.
        settings: that say how.
        folder: in which to run it where the settings name none; else the root.

    Raises:
        UsageError: "capture-folder-missing".
    """
    named = absolute(settings.capture_folder, root) if settings.capture_folder else None
    if named is not None and not named.is_dir():
        raise UsageError(
            "capture-folder-missing",
            f"There is no folder {named}, in which the program is to be run. Correct or empty the setting "
            "guider.capture.folder (capture_folder in pyproject.toml); a relative path starts at the project's folder.",
        )
    return Program(
        path=str(absolute(path)),
        arguments=settings.capture_arguments,
        folder=str(named or folder or root),
        root=str(root),
        epochs=settings.capture_epochs,
        seconds=None if settings.capture_minutes is None else 60 * settings.capture_minutes,
        legacy_keras=settings.capture_legacy_keras,
    )


def command_line(program: Program) -> str:
    """The program's name and its arguments, for people."""
    return shlex.join([Path(program.path).name, *program.arguments])


def when(seconds: float) -> str:
    """A time of day, with the date where it is not today's, for people."""
    at = time.localtime(seconds)
    today = at[:3] == time.localtime()[:3]
    return time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", at)


def read_record(folder: Path) -> CaptureRecord | None:
    """The record of a capture; ``None`` where there is none, or one that this version cannot use."""
    try:
        record = structure(json.loads((folder / RECORD).read_bytes()), CaptureRecord)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    files = [model.path for model in record.models if model.saved] + [
        model.tests for model in record.models if model.tests
    ]
    whole = bool(record.models) and folder_of(record) == folder and all(map(exists, map(Path, files)))
    return record if whole else None


def folder_of(record: CaptureRecord) -> Path:
    """Where the artefacts of a capture are."""
    return Path(record.models[0].path).parent


def source_copies(record: CaptureRecord) -> dict[str, Path]:
    """Where there is the text of each source file, by its absolute path, as it was when the program ran."""
    folder = folder_of(record) / "sources"
    return {state.path: folder / f"{index}.py" for index, state in enumerate(record.sources)}


def changes(record: CaptureRecord) -> tuple[str, ...]:
    """The files that the program read, source or data, and that are not what they were."""
    sources = (state.path for state in record.sources if _source_digest(state.path) != state.digest)
    data = (state.path for state in record.data if _data_digest(state.path) != state.digest)
    return (*sources, *data)


def source_states(paths: Sequence[str]) -> tuple[FileState, ...]:
    """Source files as they are now; what cannot be read has no digest."""
    return tuple(FileState(path, _source_digest(path)) for path in paths)


def notices(capture: Capture, chosen: CapturedModel, test_data: tuple[str, ...]) -> tuple[Notice, ...]:
    """What the reader of a localization of a captured model on these tests has to know of its run."""
    # Which of several models is localized is known here alone.
    of_run = (notice for notice in capture.record.notices if notice.code != "several-models")
    return (*_notices(capture, chosen, test_data), *of_run, *chosen.notices)


def _notices(capture: Capture, chosen: CapturedModel, test_data: tuple[str, ...]) -> Iterator[Notice]:
    record = capture.record
    name = Path(record.program.path).name
    if record.ending == "failed":
        why = record.failure.message if record.failure is not None else f"{name} failed."
        yield Notice("program-failed", localized_all_the_same(why))
    elif record.ending == "stopped":
        minutes = (record.program.seconds or 0.0) / 60
        yield Notice(
            "program-stopped",
            f"{name} was stopped after {minutes:g} minutes, as asked. What it trained until then is localized.",
        )
    if chosen.data_kind == "training" and test_data == (chosen.tests,):
        yield Notice(
            "training-data",
            f"The tests are what the model was trained on ({chosen.data}), since {name} evaluates it on nothing else: "
            "tests that fail are those that it could not learn. Evaluate the model on data of its own, "
            "or name a test set.",
        )
    others = [model.name for model in record.models if model is not chosen]
    if others:
        yield Notice(
            "several-models",
            f"{name} trained {len(others) + 1} models. This is {chosen.name}; {_listed(others)} "
            f"{'is' if len(others) == 1 else 'are'} captured, too. Choose another by --model NAME, in the editor by "
            "GUIDER: Choose Captured Model or the setting guider.capture.model.",
        )
    if not capture.holds:
        changed = _listed([Path(path).name for path in capture.changed])
        yield Notice(
            "older-capture",
            f"The model is older than the program: it was {capture.source}, and {changed} changed since. "
            "Run it again (--run, in the editor GUIDER: Train and Localize).",
        )


def localized_all_the_same(why: str) -> str:
    """That a program failed, and what is made of it."""
    return f"{why}{'' if why.endswith(('.', '!', '?')) else '.'} What it trained until then is localized."


def unwritable(folder: Path, error: OSError) -> EnvironmentProblem:
    """The cache cannot be written."""
    return EnvironmentProblem(
        "cache-unwritable",
        f"What a run of the program gives cannot be kept in {folder}: {error.strerror or error}. Make room or give "
        "yourself the right to write there, or name another folder in the environment variable GUIDER_CACHE.",
    )


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:3], *([f"{len(names) - 3} more"] if len(names) > 3 else [])]
    *first, last = shown
    return f"{', '.join(first)} and {last}" if first else last


def _key(program: Program, interpreter: Sequence[str]) -> str:
    """Of a run: first what is run, then all that says how."""
    how = json.dumps([program.folder, program.root, program.epochs, program.seconds, program.legacy_keras])
    return f"{_what(Path(program.path), program.arguments)}-{_digest(how, *interpreter)}"


def _what(program: Path, arguments: Sequence[str]) -> str:
    return f"{_program(program)}-{_digest(*arguments)}"


def _program(path: Path) -> str:
    # Other protocols have other records, which nobody finds by this name.
    return _digest(str(PROTOCOL), os.path.normcase(path))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _source_digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _data_digest(path: str) -> str:
    try:
        stat = Path(path).stat()
    except OSError:
        return ""
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _size(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):  # others may remove it meanwhile
        for path in folder.rglob("*"):
            total += path.stat().st_size
    return total
