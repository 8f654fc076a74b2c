"""A notebook: its cells are marked like the lines of a program."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import expect
from tests.e2e.code_server import CodeServer
from tests.e2e.conftest import Project
from tests.e2e.workbench import MILLISECONDS, Workbench


def write_notebook(file: Path, *cells: tuple[str, str]) -> None:
    """Write a notebook as Jupyter does, from pairs of kind and source."""
    body = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "cells": [
            {
                "id": f"cell-{number}",
                "cell_type": kind,
                "metadata": {},
                "source": source.splitlines(keepends=True),
                **({"outputs": [], "execution_count": None} if kind == "code" else {}),
            }
            for number, (kind, source) in enumerate(cells)
        ],
    }
    file.write_text(json.dumps(body, indent=1), encoding="utf-8")


def test_the_fault_is_found_in_its_cell(
    workbench: Workbench, code_server: CodeServer, digits: Project
) -> None:
    faulty, fixed = digits.fault.faulty, digits.fault.fixed
    # In a notebook there is no __file__.
    text = digits.program.read_text(encoding="utf-8").replace("Path(__file__).parent", 'Path(".")')
    model, training = text.index("model = "), text.index("model.compile")
    write_notebook(
        digits.folder / "digits.ipynb",
        ("markdown", "# Digits"),
        ("code", f"%matplotlib inline\n{text[:model].strip()}"),
        ("code", f"%%time\n{text[model:training].strip()}"),
        ("code", text[training:].strip()),
    )
    constructions = [line.strip() for line in text.splitlines() if line.strip().startswith("layers.")]

    workbench.open_folder(code_server.url(digits.folder))
    workbench.open_notebook("digits.ipynb", cell="Sequential")

    # Localized with the files that the last cell says it writes.
    workbench.until(lambda: workbench.squiggles() == [faulty], "the faulty call is underlined")
    workbench.until(lambda: workbench.lens_above(faulty).startswith("#1 "), "its lens says #1")
    assert [line for _, line in workbench.lenses()] == constructions
    workbench.screenshot("notebook-1-ranked")

    hover = workbench.hover_on(faulty)
    expect(hover).to_contain_text("suspiciousness")
    workbench.screenshot("notebook-2-hover")
    workbench.leave()

    rows = workbench.problems()
    expect(rows.filter(has_text="guider")).to_have_count(1)
    workbench.screenshot("notebook-3-problems")
    workbench.page.keyboard.press("Control+J")

    # Written in the cell, the line is newer than the model; it is saved with the notebook.
    workbench.replace(faulty, fixed)
    workbench.until(lambda: "in the model of" in workbench.lens_above(fixed), "the model has something else")
    workbench.save(digits.folder / "digits.ipynb", fixed.replace('"', '\\"'))
    workbench.screenshot("notebook-4-edited")

    # The command means the notebook, whichever cell is active.
    workbench.run_command("GUIDER: Show Report")
    report = workbench.page.locator('.monaco-editor[data-uri$=".txt"]')
    expect(report).to_contain_text("digits.ipynb:cell 3:", timeout=MILLISECONDS)
    workbench.screenshot("notebook-5-report")
    expect(workbench.messages()).to_have_count(0)
