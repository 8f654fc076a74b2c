"""Real Keras on real TensorFlow; one warm session for each test that asks."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import pytest

from guider_engine.capture.capture import Watched, capture
from guider_engine.request import Check, Report
from guider_engine.session import Session
from guider_engine.wire import Inputs, Localization, Program

Localize = Callable[..., Localization]


def quiet(*_: object) -> None:
    """Neither reports progress nor stops."""


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def localize(session: Session, tmp_path: Path) -> Localize:
    """Save model and tests, localize them: ``localize(model, x, y, formula=…)``."""

    def run(model: Any, x: Any, y: Any, **options: Any) -> Localization:
        model.save(tmp_path / "model.keras")
        np.savez(tmp_path / "tests.npz", x_test=np.asarray(x), y_test=np.asarray(y))
        inputs = Inputs(
            str(tmp_path / "model.keras"), (str(tmp_path / "tests.npz"),), root=str(tmp_path), **options
        )
        return session.localize(inputs, quiet, quiet)

    return run


class WatchProgram(Protocol):
    def __call__(
        self, code: str, *, check: Check = ..., report: Report = ..., ending: str = ..., **options: Any
    ) -> Watched: ...


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder for programs, with a space and letters beyond ASCII."""
    folder = tmp_path / "mein Prüfling"
    folder.mkdir()
    return folder


@pytest.fixture
def watch(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WatchProgram:
    """Run a program of the project under watch: ``watch("import keras…", epochs=1)``."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # put back at the end
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def run(
        code: str, *, check: Check = quiet, report: Report = quiet, ending: str = "finished", **options: Any
    ) -> Watched:
        (project / "train.py").write_text(textwrap.dedent(code), encoding="utf-8")
        defaults: dict[str, Any] = {"arguments": (), "folder": str(project), "root": str(project)}
        program = Program(str(project / "train.py"), **(defaults | options))
        watched = capture(program, str(tmp_path / "captured"), report, check)
        assert watched.record.ending == ending, watched.record.failure
        assert [notice for notice in watched.record.notices if notice.code == "watch-failed"] == []
        return watched

    return run
