"""Which Keras is imported, on which backend; each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[2] / "server"


def imported(backend: str, missing: str = "") -> tuple[str, str]:
    """What importing Keras says (its backend, or a code), and whether TensorFlow was imported."""
    code = f"""
import sys
if {missing!r}: sys.modules[{missing!r}] = None
from guider_engine.errors import EngineFailure
from guider_engine.load.keras_import import import_keras
try:
    said = import_keras().backend.backend()
except EngineFailure as error:
    said = error.failure.code + ": " + error.failure.message
print("tensorflow" if sys.modules.get("tensorflow") else "")
print(said)
"""
    environment = {**os.environ, "PYTHONPATH": str(SERVER), "KERAS_BACKEND": backend}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    first, said = done.stdout.split("\n", 1)
    return said.strip(), first


def test_tensorflow() -> None:
    assert imported("tensorflow") == ("tensorflow", "tensorflow")


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_backend_that_is_not_installed(backend: str) -> None:
    said, loaded = imported(backend, missing=backend)
    assert said.startswith("tensorflow-missing" if backend == "tensorflow" else "backend-missing")
    assert sys.executable in said
    assert f"pip install {backend}" in said
    assert loaded == ""


def test_backend_that_runs_no_models() -> None:
    said, _ = imported("openvino", missing="openvino")
    assert said.startswith("backend-unsupported")
    assert "openvino" in said


def test_tensorflow_without_keras() -> None:
    """TensorFlow finds no Keras either."""
    said, _ = imported("tensorflow", missing="keras")
    assert said.startswith("tensorflow-broken: keras")
