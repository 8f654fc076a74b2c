"""What is said of a run of the program, in every format."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tests.unit.present.reports import ranked
from tests.unit.project.records import model, program, record

from guider_engine.wire import DataKind, Failure
from guider_ls.present.json import to_json
from guider_ls.present.report import Report
from guider_ls.present.sarif import to_sarif
from guider_ls.present.text import to_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    return tmp_path / "train.py"


def captured(path: Path, kind: DataKind = "validation") -> Report:
    """A report of the second of two captured models."""
    first, second = model(path.parent, 0, "first"), model(path.parent, 1, "second", kind)
    failure = Failure("engine", "program-failed", "train.py, line 9 failed: KeyError", "Traceback")
    run = record(program(path, "--lr", "0.1"), (first, second), ending="failed", failure=failure)
    report = ranked(0.5, 0.25)
    inputs = dataclasses.replace(report.localization.inputs, model=second.path, test_data=(second.tests,))
    localization = dataclasses.replace(report.localization, inputs=inputs)
    return dataclasses.replace(report, localization=localization, capture=run)


def test_json_has_the_run(path: Path) -> None:
    body = json.loads(json.dumps(to_json(captured(path))))["capture"]
    assert (body["model"], body["data_kind"], body["data"]) == (
        "second",
        "validation",
        "validation data of fit, train.py line 9",
    )
    assert [m["name"] for m in body["models"]] == ["first", "second"]
    assert body["program"]["arguments"] == ["--lr", "0.1"]
    assert body["ending"] == "failed"
    assert body["failure"] == {"code": "program-failed", "message": "train.py, line 9 failed: KeyError"}
    assert to_json(ranked(0.5))["capture"] is None


def test_json_does_not_say_captured_of_tests_that_are_not(path: Path) -> None:
    report = captured(path)
    inputs = dataclasses.replace(report.localization.inputs, test_data=("/project/mine.npz",))
    report = dataclasses.replace(report, localization=dataclasses.replace(report.localization, inputs=inputs))
    body = to_json(report)["capture"]
    assert body is not None
    assert (body["model"], body["data_kind"], body["data"]) == ("second", None, None)
    assert "validation data" not in to_text(report)
    assert "tests.npz: x" in to_text(report)


def test_sarif_has_the_run(path: Path) -> None:
    report = captured(path)
    assert to_sarif(report)["runs"][0]["properties"]["capture"] == to_json(report)["capture"]


def test_text_names_the_model_the_run_and_the_tests(path: Path) -> None:
    text = to_text(captured(path))
    assert "second (Sequential, 2 layers, 3 epochs)" in text
    assert "train.py --lr 0.1, run at 2023-11-1" in text
    assert "validation data of fit, train.py line 9: x (100, 4) float32" in text
    assert "model-1.keras" not in text
