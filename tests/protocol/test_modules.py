"""A program whose layers are made in modules of its project: each file shows what stands in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.protocol.editor import Editor, Message

STATUS = {"status": True}
MODELS = """\
import keras
from keras import layers


def block(units):
    return layers.Dense(units, activation="sigmoid")


def build():
    model = keras.Sequential([keras.Input((6,))])
    for units in (12, 11, 10, 9, 8, 7):
        model.add(block(units))
    model.add(layers.Dense(3, activation="softmax", name="last"))
    return model
"""
TRAIN = """\
import keras
import numpy as np
from keras import layers
from models import build

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
x = rng.normal(size=(300, 6)).astype("float32")
y = (x[:, :3].sum(axis=1) > 0).astype("int64") + (x[:, 3] > 1.0)
model = build()
spare = layers.Dense(7)
model.compile(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x[:200], y[:200], epochs=2, verbose=0)
model.evaluate(x[200:], y[200:], verbose=0)
"""
SAVE = """
model.save("model.keras")
np.savez("tests.npz", x=x[200:], y=y[200:])
"""
CALL, FIT = 9, 12
"""Lines of the program."""
BLOCK, INPUT, LAST = 5, 9, 12
"""Lines of its module."""
TRAIN_LENS = "GUIDER: train and localize"


@pytest.fixture(scope="session")
def trained_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("modules")
    (root / "models.py").write_text(MODELS)
    subprocess.run([sys.executable, "-c", TRAIN + SAVE], cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture
def project(folder: Path) -> Path:
    (folder / "models.py").write_text(MODELS)
    (folder / "train.py").write_text(TRAIN)
    return folder


async def lenses(client: Editor, uri: str) -> dict[int, str]:
    return {line: text for line, text in await client.lenses(uri) if text != TRAIN_LENS}


def diagnostics(client: Editor, uri: str, *, since: int = 0) -> list[Message]:
    published = [p for p in client.of("textDocument/publishDiagnostics", since=since) if p["uri"] == uri]
    return list(published[-1]["diagnostics"]) if published else []


async def test_a_model_that_a_module_builds(client: Editor, project: Path, trained_modules: Path) -> None:
    """From the text alone: the model and its tests are files."""
    for file in ("model.keras", "tests.npz"):
        (project / file).write_bytes((trained_modules / file).read_bytes())
    settings = '[tool.guider]\nprogram = "train.py"\nmodel = "model.keras"\ntest_data = "tests.npz"\n'
    (project / "pyproject.toml").write_text(settings)
    client.settings["diagnostics"] = {"top": 9}
    await client.initialize(project, options=STATUS)
    train = client.open(project / "train.py")
    await client.status(train, "ranked")
    text = (await lenses(client, train))[CALL]
    assert text.startswith("7 layers from models.py · #1")
    assert text.endswith(" of 7")
    (found,) = [d for d in diagnostics(client, train) if d["code"] == "suspicious-layer"]
    assert found["range"]["start"]["line"] == CALL
    assert "of models.py, ranks 1 " in found["message"]
    (place, *_) = found["relatedInformation"]
    assert place["location"]["uri"] == (project / "models.py").as_uri()
    assert place["location"]["range"]["start"]["line"] in (BLOCK, LAST)
    hover = str(await client.hover(train, CALL, 10))
    assert "makes 7 layers of the model elsewhere" in hover
    assert f"({(project / 'models.py').as_uri()}#L{BLOCK + 1})" in hover

    # An edit moves what is shown, and looks into no file for it.
    (project / "models.py").unlink()
    since = client.now
    client.change(train, f"\n{(project / 'train.py').read_text()}", 2)
    published = await client.wait_for("textDocument/publishDiagnostics", since=since)
    (moved,) = [d for d in published["diagnostics"] if d["code"] == "suspicious-layer"]
    assert moved["range"]["start"]["line"] == CALL + 1
    assert moved["relatedInformation"] == found["relatedInformation"]


async def test_a_module_that_is_open_shows_its_own_lines(
    client: Editor, project: Path, trained_modules: Path
) -> None:
    for file in ("model.keras", "tests.npz"):
        (project / file).write_bytes((trained_modules / file).read_bytes())
    settings = '[tool.guider]\nprogram = "train.py"\nmodel = "model.keras"\ntest_data = "tests.npz"\n'
    (project / "pyproject.toml").write_text(settings)
    client.settings["diagnostics"] = {"top": 9}
    await client.initialize(project, options=STATUS)
    train = client.open(project / "train.py")
    await client.status(train, "ranked")

    # Opened later than its program was localized.
    module = client.open(project / "models.py")
    status = await client.status(module, "ranked")
    assert "The result of train.py" in status["detail"]
    shown = await lenses(client, module)
    assert sorted(shown) == [BLOCK, INPUT, LAST]
    assert shown[BLOCK].count("#") == 4
    assert " … #" in shown[BLOCK]
    assert shown[LAST].startswith("#")
    assert "This line constructs 6 layers of the model" in str(await client.hover(module, BLOCK, 20))
    lines = [d["range"]["start"]["line"] for d in diagnostics(client, module)]
    assert sorted(lines) == [BLOCK, LAST]
    assert any(
        "This line makes 6 layers of the model, on ranks" in d["message"] for d in diagnostics(client, module)
    )

    # Its lines move with its edits, and those of the program with the program's.
    client.change(module, "# 😀\n" + MODELS, 2)
    assert sorted(await lenses(client, module)) == [BLOCK + 1, INPUT + 1, LAST + 1]
    assert list(await lenses(client, train)) == [CALL, CALL + 1]
    client.change(train, "# one\n# two\n" + TRAIN, 2)
    assert sorted(await lenses(client, module)) == [BLOCK + 1, INPUT + 1, LAST + 1]
    assert list(await lenses(client, train)) == [CALL + 2, CALL + 3]

    # A line that the model does not have any more says so, in the file where it is.
    client.change(module, "# 😀\n" + MODELS.replace("Dense(3,", "Dense(4,"), 3)

    async def stale() -> bool:
        return "units: 4 here, 3 in the model of" in (await lenses(client, module)).get(LAST + 1, "")

    await client.wait_until(stale)

    # An ignored line is not underlined, nor is the call of it.
    client.change(train, TRAIN.replace("model = build()", "model = build()  # guider: ignore"), 3)

    async def ignored() -> bool:
        return CALL not in await lenses(client, train)

    await client.wait_until(ignored)
    assert [d for d in diagnostics(client, train) if d["code"] == "suspicious-layer"] == []

    # Closed, the program takes along what it said of its module.
    since = client.now
    client.close(train)
    await client.wait_for("textDocument/publishDiagnostics", since=since, uri=module, diagnostics=[])
    assert set((await lenses(client, module)).values()).isdisjoint(shown.values())


async def test_a_program_that_is_run(client: Editor, project: Path) -> None:
    """Captured: every layer has its line, whatever the text says, and lines that nothing uses are found."""
    client.settings["run"] = "manual"
    await client.initialize(project, options=STATUS)
    train, module = client.open(project / "train.py"), client.open(project / "models.py")
    assert (FIT, TRAIN_LENS) in await client.lenses(train)
    assert TRAIN_LENS not in (await lenses(client, module)).values()
    await client.command("guider.trainAndLocalize", train)
    running = await client.status(train, "running")
    assert running["text"].startswith("GUIDER: training")
    assert (FIT, "GUIDER: training … (cancel)") in await client.lenses(train)
    await client.status(train, "ranked")
    assert (FIT, TRAIN_LENS) in await client.lenses(train)

    shown = await lenses(client, train)
    assert shown[CALL].startswith("7 layers from models.py · #1")
    assert shown[CALL + 1] == "Dense · constructed once when the program ran, never part of a model"
    (unused,) = [d for d in diagnostics(client, train) if d["code"] == "layer-never-used"]
    assert unused["range"]["start"]["line"] == CALL + 1
    assert unused["codeDescription"]["href"].endswith("#layer-never-used")

    await client.status(module, "ranked")
    hover = str(await client.hover(module, BLOCK, 20))
    assert f"called from [line 12]({(project / 'models.py').as_uri()}#L12)" in hover
    assert "constructed here when the program ran" in hover

    # What is edited afterwards is held against what ran.
    client.change(
        module, MODELS.replace("\n\ndef block", "\n\n\n\ndef block").replace('"sigmoid"', '"relu"'), 2
    )

    async def stale() -> str:
        text = (await lenses(client, module)).get(BLOCK + 2, "")
        return text if "activation: relu here, sigmoid in the model of" in text else ""

    assert (await client.wait_until(stale)).startswith("#")
