"""Captures to keep, as the engine writes them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

from guider_engine.wire import CapturedModel, CaptureRecord, DataKind, FileState, ModelSummary, Program
from guider_ls.project.captures import RECORD


def program(path: Path, *arguments: str, **changes: Any) -> Program:
    return dataclasses.replace(Program(str(path), arguments, str(path.parent), str(path.parent)), **changes)


def model(folder: Path, number: int, name: str, kind: DataKind = "test", **changes: Any) -> CapturedModel:
    """A model in a folder, with its files."""
    path, tests = folder / f"model-{number}.keras", folder / f"tests-{number}.npz"
    path.touch()
    tests.touch()
    summary = ModelSummary(name, "Sequential", (), None, False)
    made = CapturedModel(
        name,
        str(path),
        True,
        summary,
        str(tests),
        kind,
        f"{kind} data of fit, train.py line 9",
        True,
        3,
        "Adam",
    )
    return dataclasses.replace(made, **changes)


def state(path: Path) -> FileState:
    """A source file as it is."""
    return FileState(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def data_state(path: Path) -> FileState:
    """A data file as it is."""
    stat = path.stat()
    return FileState(str(path), f"{stat.st_size} {stat.st_mtime_ns}")


def record(of: Program, models: tuple[CapturedModel, ...], **changes: Any) -> CaptureRecord:
    made = CaptureRecord(
        of,
        "finished",
        None,
        models,
        (),
        (state(Path(of.path)),),
        (),
        (),
        1_700_000_000.0,
        2.5,
        {"keras": "3"},
    )
    return dataclasses.replace(made, **changes)


def write(folder: Path, of: CaptureRecord) -> Path:
    """Finish a capture."""
    (folder / RECORD).write_text(json.dumps(dataclasses.asdict(of)), encoding="utf-8")
    return folder
