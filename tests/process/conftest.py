from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest

from guider_ls.analysis.engine import Engine

CODE_ENGINE = Path(__file__).with_name("code_engine.py")
DEADLINE = 30.0
"""Seconds after which an event that was waited for counts as missing."""


class EngineFactory(Protocol):
    def __call__(self, command: tuple[str, ...] = ..., **options: Any) -> Engine: ...


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project folder with a space and letters beyond ASCII."""
    folder = tmp_path / "mein Prüfling"
    folder.mkdir()
    return folder


@pytest.fixture
async def new_engine(root: Path) -> AsyncIterator[EngineFactory]:
    """Makes engines that run code (see ``code_engine.py``), and ends them."""
    engines: list[Engine] = []

    def make(command: tuple[str, ...] = (sys.executable,), **options: Any) -> Engine:
        defaults: dict[str, Any] = {"root": root, "entry": CODE_ENGINE, "backoff": 0.05}
        engine = Engine(command, **(defaults | options))
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        await engine.close()


@pytest.fixture
def engine(new_engine: EngineFactory) -> Engine:
    return new_engine()


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """The interpreter of a virtual environment with no package in it."""
    folder = tmp_path / "bare environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


@pytest.fixture
def sitecustomize(bare_python: Path) -> Callable[[str], tuple[str, ...]]:
    """Makes an interpreter that runs some code before everything else."""

    def make(code: str) -> tuple[str, ...]:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        packages = "Lib/site-packages" if sys.platform == "win32" else f"lib/{version}/site-packages"
        (bare_python.parents[1] / packages / "sitecustomize.py").write_text(code)
        return (str(bare_python),)

    return make


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not reaped does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Waits for the end of a process of that id."""

    def wait(pid: int) -> bool:
        deadline = time.monotonic() + DEADLINE
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        return not alive(pid)

    return wait
