"""The extension starts its server, and says what is wrong where it cannot."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.sync_api import expect
from tests.e2e.code_server import NODE, OURS, ROOT, CodeServer
from tests.e2e.workbench import Workbench

PROGRAM = """\
import keras
from keras import layers

inputs = keras.Input((4,))
hidden = layers.Dense(8, activation="relu")(inputs)
outputs = layers.Dense(3, activation="softmax")(hidden)
model = keras.Model(inputs, outputs)
"""


@pytest.fixture
def program(folder: Path) -> Path:
    file = folder / "net.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def bare() -> Iterator[CodeServer]:
    """An editor on a machine without guider-ls."""
    environment = {"PATH": f"{NODE}:/usr/bin:/bin"}
    with CodeServer(ROOT / "build/e2e/bare", machine={}, environment=environment) as server:
        yield server


def test_every_layer_has_a_lens_before_anything_was_trained(
    workbench: Workbench, code_server: CodeServer, program: Path
) -> None:
    workbench.open_folder(code_server.url(program.parent))
    workbench.open_file(program.name)
    workbench.until(lambda: len(workbench.lenses()) >= 2, "a lens on each layer")
    under = [line for _, line in workbench.lenses()]
    assert any(line.startswith("hidden =") for line in under)
    assert any(line.startswith("outputs =") for line in under)
    assert not workbench.squiggles()
    assert not workbench.squiggles("error")
    workbench.screenshot("start-static-lenses")


def test_a_missing_server_is_one_message_that_helps(
    workbench: Workbench, bare: CodeServer, program: Path
) -> None:
    bare.set_machine({})
    workbench.open_folder(bare.url(program.parent))
    workbench.open_file(program.name)
    message = workbench.messages().filter(has_text="found no language server")
    expect(message).to_have_count(1)
    workbench.screenshot("start-no-server")
    assert not workbench.palette_offers("GUIDER: Localize Faults")
    message.get_by_role("button", name="Copy install command").click()
    workbench.until(
        lambda: workbench.page.evaluate("navigator.clipboard.readText()").startswith("pipx install"),
        "the command is in the clipboard",
    )
    wheel = shlex.split(workbench.page.evaluate("navigator.clipboard.readText()"))[-1]
    assert "guider_ls/cli/__init__.py" in ZipFile(wheel).namelist()
    expect(workbench.messages()).to_have_count(0)

    # The command is set: no reload is needed.
    bare.set_machine(OURS)
    workbench.until(lambda: len(workbench.lenses()) >= 2, "a lens on each layer")
    assert workbench.palette_offers("GUIDER: Localize Faults")


def test_a_server_that_dies_at_once_is_named_and_not_tried_for_ever(
    workbench: Workbench, bare: CodeServer, program: Path
) -> None:
    bare.set_machine({"guider.server.command": ["/bin/sh", "-c", "echo no module named so >&2; exit 1"]})
    workbench.open_folder(bare.url(program.parent))
    workbench.open_file(program.name)
    expect(workbench.messages().filter(has_text="does not run")).to_have_count(1)
    expect(workbench.messages()).to_contain_text(["status 1. Its last line: no module named so"])
    workbench.screenshot("start-server-dies")
    workbench.until(lambda: "no module named so" in bare.log(), "the server's last words are in the output")
    assert bare.log().count("Starting /bin/sh") == 1
