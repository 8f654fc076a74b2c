"""Real Keras on real TensorFlow; one warm session for each test that asks."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import pytest

from guider_engine.session import Session
from guider_engine.wire import Inputs, Localization

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
