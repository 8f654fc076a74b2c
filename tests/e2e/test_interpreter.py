"""Whose Python runs the engine: the setting's, the Python extension's, the folder's."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.code_server import OURS, ROOT, CodeServer
from tests.e2e.conftest import Project
from tests.e2e.workbench import Workbench

ENGINE = "guider_engine"


def make_environment(folder: Path) -> Path:
    """A virtual environment with the packages of this one; the answer is its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin/python"


@dataclass(frozen=True)
class StandIn:
    """An editor with something that answers like the Python extension."""

    server: CodeServer
    file: Path

    def choose(self, python: Path) -> None:
        self.file.write_text(str(python))

    def engines(self) -> set[str]:
        """The interpreters that run engines."""
        return {process.cmdline()[0] for process in self.server.processes(ENGINE)}


def _content(file: Path) -> object:
    """What a JSON file holds; ``None`` while it is not (wholly) written."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    vsix = tmp_path / "python.vsix"
    vsce = ROOT / "node_modules/.bin/vsce"
    options = ["--no-dependencies", "--skip-license", "--allow-missing-repository", "--out", str(vsix)]
    subprocess.run(
        [str(vsce), "package", *options],
        cwd=ROOT / "tests/e2e/python_extension",
        check=True,
        capture_output=True,
    )
    file = tmp_path / "environment"
    machine = {key: value for key, value in OURS.items() if key != "guider.interpreter"}
    with CodeServer(
        ROOT / "build/e2e/interpreter",
        machine=machine,
        extensions=[vsix],
        environment={"STAND_IN_ENVIRONMENT": str(file)},
    ) as server:
        yield StandIn(server, file)


def test_interpreter_follows_the_python_extension_and_then_the_setting(
    workbench: Workbench, stand_in: StandIn, digits: Project, tmp_path: Path
) -> None:
    first = make_environment(tmp_path / "first")
    second = make_environment(tmp_path / "second")
    own = make_environment(digits.folder / ".venv")

    stand_in.choose(first)
    workbench.open_folder(stand_in.server.url(digits.folder))
    workbench.open_file("train.py")
    workbench.until(lambda: workbench.squiggles() == [digits.fault.faulty], "the faulty call is underlined")
    assert stand_in.engines() == {str(first)}

    # Another environment: the old engine ends, the next run is the new one's.
    stand_in.choose(second)
    workbench.run_command("Stand-in: Environment Changed")
    workbench.until(
        lambda: str(first) not in stand_in.engines(), "the engine of the old environment has ended"
    )
    (digits.folder / "pyproject.toml").write_text("[tool.guider]\nseed = 8\n")
    workbench.until(lambda: stand_in.engines() == {str(second)}, "an engine of the new environment")

    # The setting comes first; the folder's own environment is offered.
    workbench.choose("GUIDER: Select Interpreter", ".venv")
    settings = digits.folder / ".vscode/settings.json"
    workbench.until(lambda: _content(settings) == {"guider.interpreter": str(own)}, "the choice is written")
    (digits.folder / "pyproject.toml").write_text("[tool.guider]\nseed = 9\n")
    workbench.until(lambda: stand_in.engines() == {str(own)}, "an engine of the folder's environment")
    workbench.until(lambda: workbench.squiggles() == [digits.fault.faulty], "the faulty call is underlined")
