"""The whole story with a real model: open, localize, edit, train again, reopen."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.protocol.conftest import PROGRAM
from tests.protocol.editor import VS_CODE, Editor, Message, editor

STATUS = {"status": True}
CONSTRUCTIONS = [10, 11, 12, 13, 14]
RANK = re.compile(r"#[1-4]=?( \([1-4]–[1-4]\))? of 4 · \d\.\d+ · (\d+ of \d+ neurons|units: 13 here)")


def replace(path: Path, by: Path) -> None:
    """Write a file as a training script does."""
    shutil.copyfile(by, path)


async def layer_lenses(client: Editor, uri: str) -> list[tuple[int, str]]:
    """Line and text of the lenses on constructions, without the one on the training."""
    return [(line, text) for line, text in await client.lenses(uri) if text != "GUIDER: train and localize"]


async def titles(client: Editor, uri: str) -> list[str]:
    return [text for _, text in await layer_lenses(client, uri)]


async def test_from_opening_to_reopening(client: Editor, project: Path, cache: Path) -> None:
    await client.initialize(project, options=STATUS)
    program = project / "train.py"
    uri = client.open(program)
    assert [line for line, _ in await layer_lenses(client, uri)] == CONSTRUCTIONS

    # Ranked in the background, with progress that ends.
    await client.status(uri, "ranked")
    shown = await titles(client, uri)
    assert "input" in shown[0]
    assert all(RANK.match(text) for text in shown[1:])
    steps = [p["value"] for p in client.of("$/progress")]
    assert steps[0]["kind"] == "begin"
    assert steps[0]["cancellable"]
    assert "train.py" in steps[0]["title"]
    assert [s["kind"] for s in steps].count("end") == 1
    assert steps[-1]["kind"] == "end"

    published = client.of("textDocument/publishDiagnostics")[-1]
    assert (published["uri"], published["version"]) == (uri, 1)
    (first, *others) = published["diagnostics"]
    line = first["range"]["start"]["line"]
    assert shown[CONSTRUCTIONS.index(line)].startswith("#1 " if not others else "#1= ")
    source = program.read_text().splitlines()[line]
    assert source[first["range"]["start"]["character"] : first["range"]["end"]["character"]] == source.strip(
        " ,"
    )
    assert (first["severity"], first["source"], first["code"]) == (3, "guider", "suspicious-layer")
    assert first["codeDescription"]["href"].endswith("#suspicious-layer")
    assert set(first["data"]) == {"layer", "generation"}
    assert "Suspicion, not proof." in first["message"]

    text = str(await client.hover(uri, 11, 12))
    for said in ("hidden", "Ochiai", "a\\_ef", "Failing tests", 'name "hidden"', "tests\\.npz"):
        assert said in text

    # Nothing changed: nothing runs, and the command says so.
    since = client.now
    client.save(uri)
    client.changed_on_disk(project / "model.keras")
    await client.command("guider.localize", uri)
    assert "nothing changed" in (await client.wait_for("window/showMessage", since=since))["message"]
    assert client.of("$/progress", since=since) == []
    assert not [s for s in client.of("guider/status", since=since) if s["state"] == "running"]

    # Another formula is another ranking.
    since = client.now
    client.settings["formula"] = "tarantula"
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.status(uri, "running", since=since)
    await client.wait_until(lambda: hover_says(client, uri, "Tarantula"))
    del client.settings["formula"]
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.wait_until(lambda: hover_says(client, uri, "Ochiai"))

    # So is another kind of neuron, and what is no kind of neuron is said and changes nothing.
    since = client.now
    client.settings["neuron"] = "channel"
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.status(uri, "running", since=since)
    await client.status(uri, "ranked", since=since)
    since = client.now
    client.settings["neuron"] = "filter"
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    warning = await client.wait_for("window/showMessage", since=since)
    assert 'setting guider.neuron: found "filter", expected one of unit, channel' in warning["message"]
    await client.status(uri, "ranked", since=since)
    del client.settings["neuron"]
    client.notify("workspace/didChangeConfiguration", {"settings": None})

    # Edits move the ranking; a line that the model does not have yet is said to be newer.
    since = client.now
    text = PROGRAM.replace("Dense(12,", "Dense(13,")
    client.change(uri, "# 😀\n" + text, 2)
    assert [line for line, _ in await layer_lenses(client, uri)] == [n + 1 for n in CONSTRUCTIONS]
    moved = await client.wait_for("textDocument/publishDiagnostics", since=since, version=2)
    assert moved["diagnostics"][0]["range"]["start"]["line"] == line + 1

    async def stale() -> list[str]:
        return [
            t
            for t in await titles(client, uri)
            if re.search(r"units: 13 here, 12 in the model of \d\d:\d\d", t)
        ]

    assert len(await client.wait_until(stale)) == 1
    assert "units: 13 here, 12 in the model of" in str(await client.hover(uri, 12, 12))
    client.change(uri, "x = (\n" + text, 3)
    shown_while_broken = await layer_lenses(client, uri)
    assert [line for line, _ in shown_while_broken] == [n + 1 for n in CONSTRUCTIONS]
    assert RANK.match(shown_while_broken[1][1])
    client.change(uri, PROGRAM, 4)

    # Trained again: the ranking follows, and what was there stays until then.
    await client.wait_until(lambda: back_to(client, uri, shown))
    since = client.now
    replace(project / "model.keras", project / "variants" / "other.keras")
    client.changed_on_disk(project / "model.keras")
    await client.status(uri, "running", since=since)
    assert await titles(client, uri) == shown
    await client.status(uri, "ranked", since=since)
    assert await titles(client, uri) != shown

    # A model that cannot be loaded is told once; what was known stays.
    since = client.now
    known = await titles(client, uri)
    whole = (project / "model.keras").read_bytes()
    (project / "model.keras").write_bytes(whole[: len(whole) // 2])
    client.changed_on_disk(project / "model.keras")
    await client.status(uri, "error", since=since)
    client.save(uri)
    client.changed_on_disk(project / "model.keras")
    assert await titles(client, uri) == known
    replace(project / "model.keras", project / "variants" / "other.keras")
    client.changed_on_disk(project / "model.keras")
    await client.status(uri, "ranked", since=since)
    (message,) = client.messages(since=since)
    assert "model.keras" in message
    assert "Traceback" not in message

    # Every test passes: no ranking is made up.
    since = client.now
    replace(project / "model.keras", project.parent / "first.keras")
    replace(project / "tests.npz", project / "variants" / "right.npz")
    client.changed_on_disk(project / "tests.npz")
    await client.status(uri, "no-signal", since=since)
    assert all("no failure signal" in text for text in (await titles(client, uri))[1:])
    assert client.of("textDocument/publishDiagnostics", since=since)[-1]["diagnostics"] == []

    # Report and log are shown by the editor.
    for command, said in (("guider.showReport", "no failure signal"), ("guider.showLog", "")):
        since = client.now
        await client.command(command, uri)
        opened = await client.wait_for("window/showDocument", since=since)
        path = next(p for p in (cache / "shown").iterdir() if p.as_uri() == opened["uri"])
        assert said in path.read_text(encoding="utf-8").lower()

    # Gone with its editor; and the next editor shows the result at once, without an engine.
    (engine, *_) = client.engines()
    assert await client.stop() == 0
    assert not engine.is_running()
    async with editor(cache) as second:
        second.settings = {"run": "manual"}
        await second.initialize(project, options=STATUS)
        uri = second.open(program)
        await second.status(uri, "no-signal")
        assert second.engines() == []


@pytest.fixture(autouse=True)
def first_model(project: Path) -> None:
    shutil.copyfile(project / "model.keras", project.parent / "first.keras")


async def hover_says(client: Editor, uri: str, said: str) -> bool:
    return said in str(await client.hover(uri, 11, 12))


async def back_to(client: Editor, uri: str, shown: list[str]) -> bool:
    return await titles(client, uri) == shown


async def test_cancel_and_what_follows(client: Editor, project: Path) -> None:
    client.settings["run"] = "manual"
    await client.initialize(project, options=STATUS)
    uri = client.open(project / "train.py")
    await layer_lenses(client, uri)
    assert client.engines() == []

    async def localize_and(cancel: Callable[[Message], None]) -> None:
        since = client.now
        await client.command("guider.localize", uri)
        await client.status(uri, "running", since=since)
        begin = await client.wait(
            lambda m: m["method"] == "$/progress" and m["params"]["value"]["kind"] == "begin", since=since
        )
        assert (await titles(client, uri))[0] == "GUIDER: localizing …"
        cancel(begin["params"])
        await client.status(uri, "idle", since=since)
        assert client.of("$/progress", since=since)[-1]["value"]["kind"] == "end"
        assert len(await layer_lenses(client, uri)) == 5
        assert client.messages() == []

    await localize_and(lambda p: client.notify("window/workDoneProgress/cancel", {"token": p["token"]}))
    await localize_and(
        lambda _: client.send(
            {"id": 9000, "method": "workspace/executeCommand", "params": {"command": "guider.cancel"}}
        )
    )

    # What was cancelled is not started again by a save, but by the user, and it does not hold up the goodbye.
    client.settings["run"] = "onSave"
    since = client.now
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.save(uri)
    await client.command("guider.localize", uri)
    await client.status(uri, "running", since=since)
    await client.wait_until(lambda: engines(client))
    (engine, *_) = client.engines()
    assert await client.stop() == 0
    assert not engine.is_running()


async def test_what_changes_during_a_run_that_was_asked_for(client: Editor, project: Path) -> None:
    client.settings["run"] = "manual"
    await client.initialize(project, options=STATUS)
    uri = client.open(project / "train.py")
    await client.command("guider.localize", uri)
    await client.status(uri, "running")
    replace(project / "tests.npz", project / "variants" / "right.npz")
    # Nothing else would start a run, so the command has to hold until its answer does.
    await client.status(uri, "no-signal")


async def test_an_editor_that_refuses_everything(client: Editor, project: Path) -> None:
    client.refused = {
        "workspace/configuration",
        "client/registerCapability",
        "workspace/codeLens/refresh",
        "window/workDoneProgress/create",
        "window/showDocument",
    }
    (project / "pyproject.toml").write_text(f"[tool.guider]\ninterpreter = ['{sys.executable}']\n")
    await client.initialize(project, options=STATUS)
    uri = client.open(project / "train.py")
    await layer_lenses(client, uri)
    await client.status(uri, "ranked")
    await client.command("guider.showReport", uri)
    message = await client.wait_for("window/showMessage")
    assert "report-train-" in message["message"]
    assert client.of("$/progress") == []
    assert client.stderr == b""


@pytest.mark.parametrize("politely", [False, True])
async def test_no_engine_outlives_its_editor(client: Editor, project: Path, politely: bool) -> None:
    await client.initialize(project, options=STATUS)
    uri = client.open(project / "train.py")
    await client.status(uri, "running")
    (engine, *_) = await client.wait_until(lambda: engines(client))
    assert client.process.stdin is not None
    if politely:
        client.notify("exit")
    else:
        client.process.stdin.close()
    await client.process.wait()
    assert not engine.is_running()
    assert len(client.stderr) < 10_000


async def test_a_python_without_tensorflow(client: Editor, project: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    client.settings["interpreter"] = [str(python)]
    await client.initialize(project, options=STATUS)
    uri = client.open(project / "train.py")
    status = await client.status(uri, "error")
    for said in (str(python), "pip install"):
        assert said in status["detail"]
    assert (await layer_lenses(client, uri))[0][1] == "GUIDER: localization failed"
    assert str(python) in str(await client.hover(uri, 11, 12)).replace("\\", "")
    client.save(uri)
    client.changed_on_disk(project / "model.keras")
    client.settings["interpreter"] = ["/no/such/python"]
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.wait(lambda m: "/no/such/python" in str(m.get("params")))
    assert len([m for m in client.messages() if "pip install" in m]) == 1


async def test_a_failure_offers_the_log(client: Editor, project: Path, tmp_path: Path, cache: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    client.settings["interpreter"] = [str(tmp_path / "bare" / "bin" / "python")]
    await client.initialize(project, options={**STATUS, "buttons": True})
    client.open(project / "train.py")
    asked = await client.wait_for("window/showMessageRequest")
    assert "pip install" in asked["message"]
    assert [action["title"] for action in asked["actions"]] == ["Show Log"]
    opened = await client.wait_for("window/showDocument")
    assert opened["uri"] == (cache / "shown" / "engine.log").as_uri()
    assert client.messages() == []
    assert any("Starting the engine" in line["message"] for line in client.of("window/logMessage"))


async def engines(client: Editor) -> list[psutil.Process]:
    return client.engines()


async def test_an_editor_without_anything(client: Editor, project: Path) -> None:
    (project / "pyproject.toml").write_text(f"[tool.guider]\ninterpreter = ['{sys.executable}']\n")
    await client.initialize(project, capabilities={"general": VS_CODE["general"]})
    uri = client.open(project / "train.py")
    published = await client.wait_for("textDocument/publishDiagnostics")
    assert published["diagnostics"]
    assert all("relatedInformation" not in d for d in published["diagnostics"])
    assert client.of("$/progress") == []
    assert [m["method"] for m in client.received if "id" in m] == []
    since = client.now
    await client.command("guider.showReport", uri)
    assert "report-train-" in (await client.wait_for("window/showMessage", since=since))["message"]

    # It does not watch files: a save is when to look.
    replace(project / "tests.npz", project / "variants" / "right.npz")
    client.save(uri)
    assert (await client.wait_for("textDocument/publishDiagnostics", since=since))["diagnostics"] == []


async def test_an_interpreter_that_is_not_there(client: Editor, project: Path) -> None:
    client.settings["interpreter"] = ["/no/such/python"]
    await client.initialize(project, options=STATUS)
    uri = client.open(project / "train.py")
    status = await client.status(uri, "error")
    assert "/no/such/python" in status["detail"]
    client.save(uri)
    client.changed_on_disk(project / "model.keras")
    await client.command("guider.cancel", uri)
    await client.wait(
        lambda m: "nothing is running" in str(m.get("params")) or "python" in str(m.get("params"))
    )
    assert len([m for m in client.messages() if "/no/such/python" in m]) == 1


async def test_closing_switching_off_and_deleting_clear(client: Editor, project: Path, cache: Path) -> None:
    await client.initialize(project, options=STATUS)
    uri = client.open(project / "train.py")
    await client.status(uri, "ranked")

    async def cleared(act: Callable[[], None]) -> None:
        since = client.now
        act()
        await client.wait_for("textDocument/publishDiagnostics", since=since, diagnostics=[])

    def switch(on: bool) -> None:
        client.settings["enable"] = on
        client.notify("workspace/didChangeConfiguration", {"settings": None})

    async def shown(act: Callable[[], object]) -> None:
        since = client.now
        act()
        await client.wait(lambda m: bool((m.get("params") or {}).get("diagnostics")), since=since)

    # The quick fix silences a construction.
    (published,) = client.of("textDocument/publishDiagnostics")
    (diagnostic,) = published["diagnostics"]
    (action,) = await client.request(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": uri},
            "range": diagnostic["range"],
            "context": {"diagnostics": [diagnostic, {**diagnostic, "source": "another"}]},
        },
    )
    assert action["kind"] == "quickfix"
    (edit,) = action["edit"]["changes"][uri]
    program = PROGRAM.split("\n")
    line, column = edit["range"]["start"]["line"], edit["range"]["start"]["character"]
    assert edit["range"]["end"] == edit["range"]["start"]
    program[line] = program[line][:column] + edit["newText"] + program[line][column:]
    await cleared(lambda: client.change(uri, "\n".join(program), 2))
    assert line not in [number for number, _ in await layer_lenses(client, uri)]
    await shown(lambda: client.change(uri, PROGRAM, 3))

    client.settings["diagnostics"] = {"severity": "error", "top": 9}
    await shown(lambda: switch(True))
    (*_, published) = client.of("textDocument/publishDiagnostics")
    assert {d["severity"] for d in published["diagnostics"]} == {1}
    assert len(published["diagnostics"]) > 1
    await cleared(lambda: switch(False))
    assert await layer_lenses(client, uri) == []
    await client.wait_until(lambda: no_engine(client))
    await shown(lambda: switch(True))
    await cleared(lambda: client.close(uri))
    await shown(lambda: client.open(project / "train.py"))
    gone = {"uri": project.as_uri(), "name": project.name}
    event = {"event": {"added": [], "removed": [gone]}}
    await cleared(lambda: client.notify("workspace/didChangeWorkspaceFolders", event))
    client.close(uri)
    await shown(lambda: client.open(project / "train.py"))
    await cleared(lambda: client.notify("workspace/didDeleteFiles", {"files": [{"uri": project.as_uri()}]}))
    # Shown from the store every time: the engine that was switched off did not come back.
    assert client.engines() == []


async def no_engine(client: Editor) -> bool:
    return client.engines() == []
