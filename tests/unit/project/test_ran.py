"""The run of a capture, with the texts of its files then and now."""

from __future__ import annotations

import time
from pathlib import Path

from guider_engine.wire import CapturedModel, CaptureRecord, FileState, ModelSummary, Program
from guider_ls.project.ran import made, ran


def record(folder: Path, project: Path, *files: str) -> CaptureRecord:
    models = tuple(
        CapturedModel(
            name,
            str(folder / f"{name}.keras"),
            saved=True,
            model=ModelSummary(name, "Sequential", (), None, False),
            tests="",
            data_kind="",
            data="",
            trained=True,
            epochs=1,
            optimizer="adam",
        )
        for name in ("one", "other")
    )
    return CaptureRecord(
        Program(str(project / "train.py"), (), str(project), str(project)),
        "finished",
        None,
        models,
        (),
        tuple(FileState(str(project / file), "") for file in files),
        (),
        (),
        1_000_000.0,
        60.0,
        {},
    )


def test_texts_then_and_now(tmp_path: Path) -> None:
    capture, project = tmp_path / "capture", tmp_path / "project"
    (capture / "sources").mkdir(parents=True)
    project.mkdir()
    for index, text in enumerate(("then = 1", "é = 1", "gone = 1", "open = 1")):
        coding = b"# -*- coding: latin-1 -*-\n" if index == 1 else b""
        (capture / "sources" / f"{index}.py").write_bytes(coding + text.encode("latin-1"))
    (project / "train.py").write_text("now = 1")
    (project / "models.py").write_bytes(b"# -*- coding: latin-1 -*-\n\xe9 = 2")
    found = record(capture, project, "train.py", "models.py", "gone.py", "open.py", "lost.py")
    run = ran(found, found.models[0].model, {str(project / "open.py"): "typed = 1"})
    assert run.program == str(project / "train.py")
    assert run.texts == {
        str(project / "train.py"): ("then = 1", "now = 1"),
        str(project / "models.py"): ("# -*- coding: latin-1 -*-\né = 1", "# -*- coding: latin-1 -*-\né = 2"),
        str(project / "open.py"): ("open = 1", "typed = 1"),
    }
    assert [name for name, _ in run.others] == ["other"]


def test_when_a_model_was_made(tmp_path: Path) -> None:
    assert made(record(tmp_path, tmp_path), None) == time.strftime(
        "%Y-%m-%d %H:%M", time.localtime(1_000_060)
    )
    assert made(None, 1_000_000.0) == time.strftime("%Y-%m-%d %H:%M", time.localtime(1_000_000))
    assert made(None, None) == ""
