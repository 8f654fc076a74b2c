"""In a folder that is not trusted nothing of it runs; nothing outlives the editor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.e2e.code_server import ROOT, CodeServer
from tests.e2e.conftest import Project
from tests.e2e.workbench import Workbench

ENGINE = "guider_engine"


@pytest.fixture
def wary() -> Iterator[CodeServer]:
    """An editor in which folders open untrusted."""
    with CodeServer(ROOT / "build/e2e/wary", trust=True) as server:
        yield server


def test_engine_runs_only_once_the_folder_is_trusted(
    workbench: Workbench, wary: CodeServer, digits: Project
) -> None:
    workbench.open_folder(wary.url(digits.folder))
    workbench.open_file("train.py")
    workbench.until(lambda: bool(workbench.lenses()), "static lenses")
    workbench.run_command("GUIDER: Localize Faults")
    expect(workbench.messages()).to_have_count(1)
    expect(workbench.messages()).to_contain_text("trust")
    workbench.screenshot("trust-1-untrusted")
    assert not wary.processes(ENGINE)

    workbench.run_command("Workspaces: Manage Workspace Trust")
    workbench.page.get_by_role("button", name="Trust", exact=True).click()
    workbench.page.keyboard.press("Escape")
    workbench.until(lambda: bool(wary.processes(ENGINE)), "the engine runs")
    workbench.until(lambda: workbench.squiggles() == [digits.fault.faulty], "the faulty call is underlined")
    workbench.screenshot("trust-2-trusted")

    assert wary.stop() == []
