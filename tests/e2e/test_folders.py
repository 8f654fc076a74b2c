"""Several folders in one window: one server, and each folder has its settings and its engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.e2e.code_server import ROOT, CodeServer
from tests.e2e.conftest import Project
from tests.e2e.workbench import Workbench


def test_each_folder_has_its_settings_and_its_engine(
    workbench: Workbench, trained: Project, tmp_path: Path
) -> None:
    for name, program, settings in (
        ("first", "one.py", {"guider.diagnostics.severity": "warning"}),
        ("second", "two.py", {"guider.codeLens": False}),
    ):
        folder = tmp_path / name
        shutil.copytree(trained.folder, folder)
        (folder / "train.py").rename(folder / program)
        (folder / ".vscode").mkdir()
        (folder / ".vscode/settings.json").write_text(json.dumps(settings))
    both = tmp_path / "both.code-workspace"
    both.write_text(json.dumps({"folders": [{"path": "first"}, {"path": "second"}]}))

    faulty = trained.fault.faulty
    with CodeServer(ROOT / "build/e2e/folders") as code_server:
        workbench.open_folder(code_server.url(both))
        workbench.open_file("one.py")
        workbench.until(lambda: workbench.squiggles("warning") == [faulty], "the first folder has warnings")
        workbench.until(lambda: workbench.lens_above(faulty).startswith("#1 "), "and lenses")

        workbench.open_file("two.py")
        workbench.until(lambda: workbench.squiggles("info") == [faulty], "the second one has information")
        assert not workbench.lenses()

        assert len(code_server.processes("guider-ls serve")) == 1
        engines = code_server.processes("guider_engine")
        assert {process.cwd() for process in engines} == {str(tmp_path / "first"), str(tmp_path / "second")}
