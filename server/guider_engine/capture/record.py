"""Write what was captured: models, tests, sources, and the record of them all."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from guider_engine.errors import CancelRequested, first_line
from guider_engine.load.captured import RECORD
from guider_engine.load.describe import CallsOf, summarize
from guider_engine.load.loss import loss_of
from guider_engine.request import Check, Report
from guider_engine.wire import CapturedModel, CaptureRecord, DataKind, Notice

from .data import Fed, NoTests, Tests, read
from .models import Seen
from .variables import data_of, with_labels


def empty_folder(path: str) -> Path:
    """The folder, made if missing; what an earlier capture left in it is removed."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).unlink(missing_ok=True)  # first: without it, nothing else counts
    for left in (*folder.glob("model-*"), *folder.glob("tests-*.npz")):
        left.unlink()
    shutil.rmtree(folder / "sources", ignore_errors=True)
    return folder


def write_model(
    seen: Seen,
    name: str,
    number: int,
    folder: Path,
    calls: CallsOf,
    variables: Mapping[str, Any],
    report: Report,
    check: Check,
) -> CapturedModel:
    """Write one model and its tests."""
    report("record", f"Keeping {name} and its tests", None)
    check()
    notices: list[Notice] = []
    path = folder / f"model-{number}.keras"
    saved = _save(seen.model, path, notices)
    check()
    kind, data, tests = _tests(seen, variables, notices, check)
    npz = folder / f"tests-{number}.npz"
    if tests is not None:
        import numpy as np

        np.savez(npz, x=tests.x, y=tests.y)
    return CapturedModel(
        name=name,
        path=str(path),
        saved=saved,
        model=summarize(seen.model, loss_of(seen.model), calls),
        tests=str(npz) if tests is not None else "",
        data_kind=kind,
        data=data,
        trained=bool(seen.trained),
        epochs=seen.epochs,
        optimizer=_optimizer(seen.model),
        notices=tuple(notices),
    )


def write_record(record: CaptureRecord, contents: tuple[bytes, ...], folder: Path) -> None:
    """Write the sources that ran and, last and at once, the record."""
    (folder / "sources").mkdir(exist_ok=True)
    for index, content in enumerate(contents):
        (folder / "sources" / f"{index}.py").write_bytes(content)
    written = folder / (RECORD + ".new")
    written.write_text(json.dumps(dataclasses.asdict(record), allow_nan=False), encoding="utf-8")
    written.replace(folder / RECORD)


def _save(model: Any, path: Path, notices: list[Notice]) -> bool:
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            model.save(str(path))
    except Exception as error:
        path.unlink(missing_ok=True)
        said = " ".join(str(error).split())[:200]
        notices.append(
            Notice(
                "model-unsaved", f"The model cannot be saved, and is kept only while the engine runs: {said}"
            )
        )
        return False
    return True


def _tests(
    seen: Seen, variables: Mapping[str, Any], notices: list[Notice], check: Check
) -> tuple[DataKind, str, Tests | None]:
    """The best tests that there are, their kind, and what they are or why there are none."""
    refused = ""
    for fed in _candidates(seen, variables):
        said = ", ".join(part for part in (fed.what, fed.place) if part)
        try:
            tests = read(fed, check)
        except NoTests as error:
            refused = refused or f"{said}: {error}"
            continue
        except CancelRequested:
            raise
        except Exception as error:  # the program's own code, for a Sequence or a dataset
            refused = refused or f"{said}: they cannot be read ({first_line(error)})"
            continue
        notices += [Notice(*notice) for notice in tests.notices]
        if refused:
            notices.append(Notice("tests-refused", f"Better tests cannot be used: {refused}."))
        return fed.kind, said, tests
    return "", refused or "the program fed it no data that are known with their labels", None


def _candidates(seen: Seen, variables: Mapping[str, Any]) -> Iterator[Fed]:
    """Data that it may be tested on, the best first."""
    known = [fed if fed.kind else with_labels(fed, seen.training, variables) for fed in seen.candidates()]
    fed_with_labels = [fed for fed in known if fed is not None]
    kinds: tuple[DataKind, ...] = ("test", "validation", "training")
    yield from sorted(
        fed_with_labels, key=lambda fed: kinds.index(fed.kind)
    )  # stable: the latest of a kind first
    if seen.trained and not fed_with_labels:
        by_name = data_of(seen.model, variables)
        if by_name is not None:
            yield by_name


def _optimizer(model: Any) -> str:
    optimizer = getattr(model, "optimizer", None)
    return "" if optimizer is None else type(optimizer).__name__
