"""Fixtures of the tests in VS Code; run them with ``make e2e``."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.e2e.code_server import ROOT, CodeServer
from tests.e2e.workbench import Workbench

CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
BROWSERS = (os.environ.get("CHROMIUM", "chromium"), "chromium-browser", "google-chrome")
HERE = Path(__file__).parent


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave these tests out of a run that is not theirs (see pytest.ini)."""
    return None if config.inipath == HERE / "pytest.ini" else True


@dataclass(frozen=True)
class Fault:
    """The fault of an example and its repair, as source text."""

    faulty: str
    fixed: str


@dataclass(frozen=True)
class Project:
    """A copy of an example, trained."""

    folder: Path
    fault: Fault

    @property
    def program(self) -> Path:
        """The program that builds and trains the model."""
        return self.folder / "train.py"

    def train(self) -> None:
        """Run the program as its author would."""
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
        subprocess.run(
            [sys.executable, self.program.name],
            cwd=self.folder,
            env=environment,
            check=True,
            capture_output=True,
            timeout=600,
        )


@pytest.fixture(scope="session")
def code_server() -> Iterator[CodeServer]:
    """The editor that most tests share; each opens its own folder in it."""
    with CodeServer(ROOT / "build/e2e/shared") as server:
        yield server
        assert server.stop() == [], "processes outlived the editor"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, as the system has it."""
    executable = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert executable is not None, "no Chromium was found; make setup-vscode installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def workbench(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Workbench]:
    """An empty window, high enough for a whole program."""
    context = browser.new_context(viewport={"width": 1500, "height": 1200})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    bench = Workbench(context.new_page())
    yield bench
    if request.node.stash.get(_FAILED, False):
        bench.screenshot("failed-" + re.sub(r"\W+", "-", request.node.name))
    context.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for a project; its name is as awkward as users' are."""
    made = tmp_path / "mes réseaux"
    made.mkdir()
    return made


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The example, trained once."""
    folder = tmp_path_factory.mktemp("trained") / "digits"
    shutil.copytree(ROOT / "examples/digits", folder, ignore=shutil.ignore_patterns("__pycache__"))
    fault = json.loads((folder / "fault.json").read_text(encoding="utf-8"))
    project = Project(folder, Fault(fault["faulty"], fault["fixed"]))
    project.train()
    return project


@pytest.fixture
def digits(trained: Project, folder: Path) -> Project:
    """A copy of the trained example of one's own."""
    shutil.copytree(trained.folder, folder, dirs_exist_ok=True)
    return Project(folder, trained.fault)


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember failures, so that a picture of them is kept."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report
