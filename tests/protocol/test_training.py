"""Programs that are run to localize in what they train: by a command, and on save."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import psutil
import pytest
from tests.protocol.editor import VS_CODE, Editor, editor
from tests.unit.project.records import model, record, write
from tests.unit.project.records import program as to_run

from guider_ls.lsp.documents import Document
from guider_ls.lsp.server import GuiderServer
from guider_ls.project.captures import Captures

STATUS = {"status": True}
NET = """\
from keras import layers


def hidden(units):
    return layers.Dense(units, activation="relu")
"""
PROGRAM = """\
import keras
import numpy as np
from keras import layers
from net import hidden

keras.utils.set_random_seed(3)
x = np.random.default_rng(3).normal(size=(60, 2)).astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("int64")
print("the program's own words")

def make(units):
    model = keras.Sequential([keras.Input((2,)), hidden(units), layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model

small = make(3)
small.fit(x, y, epochs=1, verbose=0)
model = make(4)
model.fit(x, y, epochs=2, verbose=0)
model.evaluate(x[30:], y[30:], verbose=0)
"""
SOFTMAX = 11
"""Line of the construction in the program itself."""
STUBBORN = """\
import keras.layers
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("stuck", flush=True)
while True:
    try:
        time.sleep(1)
    except BaseException:
        pass
layers = [keras.layers.Dense(3)]
"""


KERAS_2 = """\
import numpy as np
from keras.layers.core import Dense
from keras.models import Sequential

x = np.random.default_rng(0).random((64, 3))
y = (x.sum(axis=1) > 1.5).astype(int)
model = Sequential()
model.add(Dense(4, input_dim=3, activation="relu"))
model.add(Dense(1, activation="sigmoid"))
model.compile("sgd", "binary_crossentropy")
model.fit(x, y, epochs=1, verbose=0)
"""


@pytest.fixture
def program(folder: Path) -> Path:
    """A program with a module, which saves neither model nor tests."""
    (folder / "net.py").write_text(NET)
    (folder / "train.py").write_text(PROGRAM)
    return folder / "train.py"


def edit(client: Editor, path: Path, text: str, version: int) -> None:
    """Change a file in the editor and save it."""
    client.change(path.as_uri(), text, version)
    path.write_text(text)
    client.save(path.as_uri())


async def trained(client: Editor, uri: str, *more: str) -> int:
    """Run the program until its ranking is shown; the mark before."""
    since = client.now
    await client.command("guider.trainAndLocalize", uri, *more)
    await client.status(uri, "running", since=since)
    await client.status(uri, "ranked", since=since)
    return since


def runs(client: Editor, since: int) -> list[str]:
    """The titles of the progress that was shown."""
    begun = [p["value"] for p in client.of("$/progress", since=since) if p["value"]["kind"] == "begin"]
    return [value["title"] for value in begun]


async def quiet(client: Editor, uri: str, since: int) -> None:
    """Whatever a message set off has ended without a run."""
    await client.lenses(uri)
    await asyncio.sleep(0.5)
    assert [s["text"] for s in client.of("guider/status", since=since) if s["state"] == "running"] == []


async def test_from_nothing_to_a_ranking_and_back(client: Editor, program: Path, cache: Path) -> None:
    await client.initialize(program.parent, options=STATUS)
    uri = client.open(program)
    offer = await client.status(uri, "no-target")
    assert "neither a model nor a test set" in offer["detail"]
    assert "Train and Localize" in offer["detail"]

    since = await trained(client, uri)
    said = [s["text"] for s in client.of("guider/status", since=since)]
    assert any(text.startswith("GUIDER: training, epoch ") for text in said)
    assert runs(client, since)[0] == "GUIDER: training train.py"
    steps = [p["value"] for p in client.of("$/progress", since=since)]
    assert steps[0]["cancellable"]
    assert any("epoch" in step.get("message", "") for step in steps)
    assert [s["kind"] for s in steps].count("begin") == [s["kind"] for s in steps].count("end")
    log = [line["message"] for line in client.of("window/logMessage", since=since)]
    assert "the program's own words" in log
    shown = client.of("guider/status", since=since)[-1]["detail"]
    assert "model: model, captured by running train.py at " in shown
    assert "test set: data of evaluate, train.py line 20" in shown

    # Two models were trained: the one that is evaluated was taken, and the other can be.
    assert "trained 2 models; localized is model" in client.messages(since=since)[0]
    since = client.now
    await client.command("guider.chooseCapturedModel", uri)
    asked = await client.wait_for("window/showMessageRequest", since=since)
    assert [a["title"].partition(" ")[0] for a in asked["actions"]] == ["model", "small"]
    since = client.now
    await client.command("guider.chooseCapturedModel", uri, "small")
    await client.status(uri, "running", since=since)
    assert "model: small, captured" in (await client.status(uri, "ranked", since=since))["detail"]
    since = client.now
    await client.command("guider.chooseCapturedModel", uri, "large")
    assert "There is model, small" in (await client.wait_for("window/showMessage", since=since))["message"]

    # Nothing else runs the program, changed or not, and the result stays.
    since = client.now
    client.save(uri)
    edit(client, program, PROGRAM + "\n", 2)
    client.changed_on_disk(program.parent / "other.npz")
    await quiet(client, uri, since)
    edit(client, program, PROGRAM, 3)

    # The next editor shows it at once, without running anything.
    assert await client.stop() == 0
    async with editor(cache) as second:
        second.settings = {"run": "manual"}
        await second.initialize(program.parent, options=STATUS)
        second.open(program)
        await second.status(uri, "ranked")
        assert second.engines() == []


async def test_training_on_save(client: Editor, program: Path) -> None:
    client.settings |= {"trainOnSave": True, "capture": {"epochs": 1}}
    await client.initialize(program.parent, options=STATUS)
    net = program.with_name("net.py")
    uri = client.open(program)
    client.open(net)
    await client.status(uri, "no-target")

    since = client.now
    client.save(uri)
    await client.status(uri, "ranked", since=since)

    # Neither an unchanged save nor that of a file that is none of its modules runs anything.
    since = client.now
    client.save(uri)
    client.save(net.as_uri())
    (program.parent / "notes.py").write_text(NET)
    client.open(program.parent / "notes.py")
    client.save((program.parent / "notes.py").as_uri())
    await quiet(client, uri, since)

    # A newer save ends the run of an older one; that of a module counts as the program's.
    async def started(path: Path, text: str, version: int) -> psutil.Process:
        since = client.now
        edit(client, path, text, version)
        await client.wait(
            lambda m: m["method"] == "window/logMessage" and m["params"]["message"] == "sleeps", since=since
        )
        (engine,) = client.engines()
        return engine

    sleeps = "import time\nprint('sleeps', flush=True)\ntime.sleep(1000)\n"
    first = await started(program, sleeps + PROGRAM, 2)
    client.save(uri)  # unchanged: the run goes on
    await client.lenses(uri)
    assert first.is_running()
    second = await started(net, NET + "# changed\n", 2)
    assert not first.is_running()

    # What was there before is there again: nothing has to run.
    since = client.now
    net.write_text(NET)
    edit(client, program, PROGRAM, 3)
    await client.status(uri, "ranked", since=since)
    assert not second.is_running()
    assert client.engines() == []


async def test_cancelling_a_program_that_listens_to_nothing(client: Editor, folder: Path) -> None:
    program = folder / "train.py"
    program.write_text(STUBBORN)
    client.settings["trainOnSave"] = True
    await client.initialize(folder, options=STATUS)
    uri = client.open(program)
    await client.lenses(uri)
    await client.command("guider.trainAndLocalize", uri)
    await client.wait(lambda m: m["method"] == "window/logMessage" and m["params"]["message"] == "stuck")
    (engine, *_) = client.engines()
    begun = await client.wait(
        lambda m: m["method"] == "$/progress" and m["params"]["value"]["kind"] == "begin"
    )
    since = client.now
    client.notify("window/workDoneProgress/cancel", {"token": begun["params"]["token"]})
    await client.status(uri, "idle", since=since)
    assert not engine.is_running()
    assert client.messages() == []

    # It is not started again before anything of it changes.
    since = client.now
    client.save(uri)
    await quiet(client, uri, since)
    edit(client, program, STUBBORN + "\n", 2)
    await client.status(uri, "running", since=since)
    await client.wait(
        lambda m: m["method"] == "window/logMessage" and "stuck" in str(m["params"]), since=since
    )
    (engine, *_) = client.engines()
    assert await client.stop() == 0
    assert not engine.is_running()


async def test_a_program_that_fails(client: Editor, program: Path) -> None:
    await client.initialize(program.parent, options={**STATUS, "buttons": True})
    program.write_text(
        "import keras\n\nmodel = keras.Sequential([keras.layers.Dense(3)])\nraise ValueError('no data')\n"
    )
    uri = client.open(program)
    await client.command("guider.trainAndLocalize", uri)
    status = await client.status(uri, "error")
    assert "train.py, line 4 failed: ValueError: no data" in status["detail"]
    asked = await client.wait_for("window/showMessageRequest")
    assert "train.py, line 4 failed" in asked["message"]
    assert [a["title"] for a in asked["actions"]] == ["Show Log"]

    # What it trained before it failed is used, which is said.
    since = client.now
    text = PROGRAM + "open('no such file')\n"
    client.change(uri, text, 2)
    program.write_text(text)
    await trained(client, uri)
    asked = await client.wait_for("window/showMessageRequest", since=since)
    assert "train.py, line 21 failed: FileNotFoundError" in asked["message"]
    assert "What it trained until then is localized" in asked["message"]
    await client.command("guider.showReport", uri)
    opened = await client.wait(
        lambda m: m["method"] == "window/showDocument" and "report-" in m["params"]["uri"], since=since
    )
    report = Path(opened["params"]["uri"].removeprefix("file://")).read_text(encoding="utf-8")
    assert "[program-failed]" in report
    assert "run at " in report


async def test_a_mistake_that_is_taken_back_is_a_failure_no_more(client: Editor, program: Path) -> None:
    client.settings |= {"trainOnSave": True, "capture": {"epochs": 1}}
    await client.initialize(program.parent, options=STATUS)
    uri = client.open(program)
    await trained(client, uri)
    edit(client, program, PROGRAM.replace("model.compile", "model.compyle"), 2)
    await client.status(uri, "error")

    since = client.now
    edit(client, program, PROGRAM, 3)
    await client.status(uri, "ranked", since=since)
    assert runs(client, since) == []


async def test_a_program_for_keras_2_is_run_on_it(client: Editor, folder: Path) -> None:
    """The button is pressed as soon as it is shown."""
    (folder / "train.py").write_text(KERAS_2)
    await client.initialize(folder, options={**STATUS, "buttons": True})
    uri = client.open(folder / "train.py")
    await client.command("guider.trainAndLocalize", uri)
    asked = await client.wait_for("window/showMessageRequest")
    assert "train.py, line 2" in asked["message"]
    assert [action["title"] for action in asked["actions"]] == ["Run on tf_keras"]
    await client.status(uri, "ranked")


async def test_what_is_not_run(client: Editor, program: Path) -> None:
    await client.initialize(program.parent, options=STATUS)
    uri = client.open(program)
    await client.status(uri, "no-target")

    async def refused(said: str, *arguments: str) -> None:
        since = client.now
        await client.command("guider.trainAndLocalize", *arguments)
        assert said in (await client.wait_for("window/showMessage", since=since))["message"]
        assert runs(client, since) == []

    client.change(uri, PROGRAM + "# changed", 2)
    await refused("save train.py first", uri)
    client.change(uri, PROGRAM, 3)
    module = client.open(program.with_name("net.py"))
    client.change(module, NET + "# changed", 2)
    await refused("save net.py first", uri)
    await refused("save the program to a file first", client.open("untitled:Untitled-1", PROGRAM))
    await refused("is not an open Python file", (program.parent / "no.py").as_uri())
    since = client.now
    await client.command("guider.chooseCapturedModel", uri)
    assert "was not run" in (await client.wait_for("window/showMessage", since=since))["message"]
    client.settings["enable"] = False
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await refused("switched off", uri)
    assert client.engines() == []


async def test_a_wish_that_waits_ends_with_its_document_and_with_guider(client: Editor, folder: Path) -> None:
    slow, other = folder / "slow.py", folder / "other.py"
    slow.write_text("import time\nprint('stuck', flush=True)\ntime.sleep(600)\n")
    other.write_text("import keras\nmodel = keras.Sequential([keras.layers.Dense(3)])\n")
    await client.initialize(folder, options=STATUS)
    running = client.open(slow)

    async def wait_behind(uri: str) -> None:
        since = client.now
        await client.command("guider.trainAndLocalize", running)
        await client.wait(
            lambda m: m["method"] == "window/logMessage" and m["params"]["message"] == "stuck", since=since
        )
        await client.command("guider.trainAndLocalize", uri)

    def switch(on: bool) -> None:
        client.settings["enable"] = on
        client.notify("workspace/didChangeConfiguration", {"settings": None})

    waiting = client.open(other)
    await client.status(waiting, "no-target")
    await wait_behind(waiting)
    since = client.now
    client.close(waiting)
    await client.command("guider.cancel", running)
    await client.status(running, "idle", since=since)
    waiting = client.open(other)
    await client.status(waiting, "no-target", since=since)

    await wait_behind(waiting)
    since = client.now
    switch(False)
    await client.status(running, "idle", since=since)
    switch(True)
    await client.command("guider.localize", waiting)
    assert "neither a model nor" in (await client.wait_for("window/showMessage", since=since))["message"]
    said = [(s["uri"], s["state"]) for s in client.of("guider/status")]
    assert (running, "running") in said
    assert (waiting, "running") not in said


async def test_a_run_that_is_about_to_begin_is_current(tmp_path: Path) -> None:
    server = GuiderServer(tmp_path)
    path = tmp_path / "train.py"
    assert await server.runs.trainings.is_current(Document(path.as_uri(), path, ()))


async def test_a_captured_model_is_not_loaded_in_a_folder_that_is_not_trusted(
    client: Editor, program: Path, cache: Path
) -> None:
    of = to_run(program)
    captured = Captures(cache / "captures").new_folder(of, (sys.executable,))
    write(captured, record(of, (model(captured, 0, "model"), model(captured, 1, "small"))))
    await client.initialize(program.parent, options={**STATUS, "trusted": False})
    uri = client.open(program)
    await client.command("guider.chooseCapturedModel", uri, "small")
    assert "not trusted" in (await client.wait_for("window/showMessage"))["message"]
    await quiet(client, uri, 0)
    assert client.engines() == []


async def test_a_folder_that_is_not_trusted_runs_nothing(client: Editor, program: Path) -> None:
    client.settings["trainOnSave"] = True
    await client.initialize(program.parent, options={**STATUS, "trusted": False})
    uri = client.open(program)
    await client.status(uri, "untrusted")
    await client.command("guider.trainAndLocalize", uri)
    assert "not trusted" in (await client.wait_for("window/showMessage"))["message"]
    edit(client, program, PROGRAM + "\n", 2)
    await quiet(client, uri, client.now)
    assert client.engines() == []


async def test_an_editor_without_progress_or_status(client: Editor, program: Path) -> None:
    (program.parent / "pyproject.toml").write_text(f"[tool.guider]\ninterpreter = ['{sys.executable}']\n")
    await client.initialize(program.parent, capabilities={"general": VS_CODE["general"]})
    uri = client.open(program)
    await client.command("guider.trainAndLocalize", uri, "small")
    published = await client.wait_for("textDocument/publishDiagnostics")
    assert published["diagnostics"]
    assert client.messages() == []
    assert client.stderr == b""
