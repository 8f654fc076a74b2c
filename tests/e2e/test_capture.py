"""Train and localize: a program without a saved model, whose layers are made in another module."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.e2e.code_server import CodeServer
from tests.e2e.workbench import MILLISECONDS, Workbench

MODELS = """\
from tensorflow import keras
from tensorflow.keras import layers


def block(x, units):
    x = layers.Dense(units)(x)
    return layers.Activation("sigmoid")(x)


def build(classes):
    inputs = keras.Input((64,))
    x = inputs
    for units in (32, 16, 16):
        x = block(x, units)
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(x))
"""
TRAIN = """\
from sklearn.datasets import load_digits

from models import build

x, y = load_digits(return_X_y=True)
model = build(10)
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x[:1000], y[:1000], epochs=2)
model.evaluate(x[1000:], y[1000:])
"""


@pytest.fixture
def project(folder: Path) -> Path:
    """A program and the module that builds its model; nothing is trained yet."""
    (folder / "models.py").write_text(MODELS, encoding="utf-8")
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    return folder


def test_program_is_trained_and_its_layers_are_ranked_where_they_are_made(
    workbench: Workbench, code_server: CodeServer, project: Path
) -> None:
    workbench.open_folder(code_server.url(project))
    workbench.open_file("train.py")
    workbench.until(
        lambda: "train and localize" in workbench.lens_above("model.fit("), "the lens that trains"
    )
    workbench.screenshot("capture-1-offered")
    workbench.click_lens("train and localize")
    expect(workbench.progress("train.py")).to_be_visible(timeout=MILLISECONDS)
    workbench.screenshot("capture-2-training")

    # The program makes no layer itself: the line that calls the builder says what came of it.
    workbench.until(lambda: "#1" in workbench.lens_above("model = build(10)"), "the call shows the ranks")
    workbench.screenshot("capture-3-program")

    workbench.open_file("models.py")
    workbench.until(lambda: "#" in workbench.lens_above("layers.Dense(units)(x)"), "ranks in the module")
    # One line, three layers: the worst, and how they spread.
    assert workbench.lens_above("layers.Dense(units)(x)").count("#") == 3
    workbench.screenshot("capture-4-module")
    workbench.leave()
    hover = workbench.hover_on("layers.Dense(units)")
    expect(hover).to_contain_text("suspiciousness")
    expect(hover).to_contain_text("dense_1")
    workbench.screenshot("capture-5-hover")
    workbench.leave()

    # A line that the model does not follow any more says how they differ.
    workbench.replace('Activation("sigmoid")', 'Activation("relu")')
    workbench.until(
        lambda: "relu here, sigmoid in the model of" in workbench.lens_above('Activation("relu")'),
        "the line says how it differs from the model",
    )
    workbench.screenshot("capture-6-differs")
    expect(workbench.messages()).to_have_count(0)


def test_program_that_fails_says_where_and_what_it_trained_is_used(
    workbench: Workbench, code_server: CodeServer, project: Path
) -> None:
    program = TRAIN.replace("model.evaluate", 'raise ValueError("no such file")\nmodel.evaluate')
    (project / "train.py").write_text(program, encoding="utf-8")
    workbench.open_folder(code_server.url(project))
    workbench.open_file("train.py")
    workbench.until(lambda: "train and localize" in workbench.lens_above("model.fit("), "the lens")
    workbench.run_command("GUIDER: Train and Localize")
    workbench.until(lambda: "#1" in workbench.lens_above("model = build(10)"), "the call shows the ranks")
    workbench.leave()
    hover = workbench.hover_on("build(10)")
    expect(hover).to_contain_text("line 9")
    expect(hover).to_contain_text("no such file")
    workbench.screenshot("capture-7-failed")
