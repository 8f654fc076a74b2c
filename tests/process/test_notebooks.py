"""Notebooks on the command line, with a real model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.process.test_cli import DEADLINE, PYTHON, error_of, guider

CELLS = (
    ("markdown", "# A net\n`layers.Dense(99)`"),
    (
        "code",
        "%matplotlib inline\nimport keras\nimport numpy as np\nfrom keras import layers\n"
        "!echo layers.Dense(98)\nkeras.utils.set_random_seed(3)",
    ),
    (
        "code",
        "%%time\nmodel = keras.Sequential([\n    keras.Input((4,)),\n"
        "    layers.Dense(8, activation='relu', name='hidden'),\n])\nmark = '😀'; model.add(layers.Dense(3))",
    ),
    ("code", "model.add(layers.Dense(97"),
    (
        "code",
        "model.compile(loss='sparse_categorical_crossentropy')\n"
        "x = np.random.default_rng(1).normal(size=(60, 4)).astype('float32')\n"
        "y = model.predict(x, verbose=0).argmax(axis=1)\ny[:20] = (y[:20] + 1) % 3\n"
        "model.save('model.keras')\nnp.savez('test.npz', x=x, y=y)",
    ),
)


def notebook(*, in_lines: bool = False) -> dict[str, Any]:
    cells: list[dict[str, Any]] = [
        {
            "cell_type": kind,
            "metadata": {},
            "source": source.splitlines(keepends=True) if in_lines else source,
            **({"outputs": [], "execution_count": None} if kind == "code" else {}),
        }
        for kind, source in CELLS
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose notebook was run, by hand: the cells as a program without what is IPython's."""
    root = tmp_path_factory.mktemp("notebooks") / "carnet de notes"
    root.mkdir()
    (root / "net.ipynb").write_text(json.dumps(notebook()), encoding="utf-8")
    (root / "lines.ipynb").write_text(json.dumps(notebook(in_lines=True)), encoding="utf-8")
    code = "\n".join(
        line
        for kind, source in CELLS
        if kind == "code" and "97" not in source
        for line in source.split("\n")
        if not line.startswith(("%", "!"))
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, check=True, timeout=DEADLINE)
    return root


def test_lines_are_those_of_the_cells(project: Path) -> None:
    result = guider("map", "net.ipynb", "--format", "json", cwd=project)
    assert result.returncode == 0, result.stderr
    assert result.stderr == "warning: net.ipynb, cell 4 is left out: it is not Python.\n"
    body = json.loads(result.stdout)
    places = [
        [site[key] for key in ("class_name", "cell", "line", "column", "end_line", "end_column")]
        for site in body["sites"]
    ]
    assert places == [
        ["InputLayer", 3, 3, 5, 3, 22],
        ["Dense", 3, 4, 5, 4, 54],
        ["Dense", 3, 6, 23, 6, 38],
    ]
    assert {site["file"] for site in body["sites"]} == {str(project / "net.ipynb")}
    assert [(a["path"], a["cell"], a["line"]) for a in body["artifacts"]] == [
        ("model.keras", 5, 5),
        ("test.npz", 5, 6),
    ]
    in_lines = json.loads(guider("map", "lines.ipynb", "--format", "json", cwd=project).stdout)
    assert [{**site, "file": ""} for site in in_lines["sites"]] == [
        {**site, "file": ""} for site in body["sites"]
    ]


def test_text_names_the_cell(project: Path) -> None:
    result = guider("map", "net.ipynb", cwd=project)
    assert "net.ipynb:cell 3:6:23  mark = '😀'; model.add(layers.Dense(3))" in result.stdout
    assert "model.keras (model, cell 5, line 5)" in result.stdout


def test_a_notebook_is_localized_with_the_files_that_its_cells_write(project: Path) -> None:
    result = guider("localize", "net.ipynb", *PYTHON, "--format", "json", cwd=project)
    assert result.returncode == 0, result.stderr
    body = json.loads(result.stdout)
    assert body["outcome"] == "ranking"
    assert [[(site["cell"], site["line"]) for site in layer["sites"]] for layer in body["layers"]] == [
        [(3, 4)],
        [(3, 6)],
    ]
    assert "net.ipynb, cell 5, line 5" in guider("doctor", "net.ipynb", *PYTHON, cwd=project).stdout

    text = guider(
        "localize", *PYTHON, "--test-data", "test.npz", "--model", "model.keras", "net.ipynb", cwd=project
    )
    assert "net.ipynb:cell 3:4:5" in text.stdout
    assert "layers.Dense(8, activation='relu', name='hidden')" in text.stdout

    sarif = json.loads(guider("localize", "net.ipynb", *PYTHON, "--format", "sarif", cwd=project).stdout)
    locations = [result["locations"][0] for result in sarif["runs"][0]["results"]]
    assert {location["logicalLocations"][0]["fullyQualifiedName"] for location in locations} == {
        "cell 3, line 4, column 5",
        "cell 3, line 6, column 23",
    }
    assert all("region" not in location["physicalLocation"] for location in locations)
    assert {location["physicalLocation"]["artifactLocation"]["uri"] for location in locations} == {
        "net.ipynb"
    }


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("{", "notebook-format", "not JSON"),
        (json.dumps({**notebook(), "nbformat": 3}), "notebook-format", "format 3"),
        (
            json.dumps({**notebook(), "metadata": {"kernelspec": {"language": "R"}}}),
            "notebook-language",
            "is one of R",
        ),
    ],
)
def test_what_is_no_notebook_of_python_is_said(tmp_path: Path, body: str, code: str, said: str) -> None:
    (tmp_path / "net.ipynb").write_text(body)
    for command in ("map", "localize"):
        result = guider(command, "net.ipynb", "--format", "json", cwd=tmp_path)
        assert (result.returncode, error_of(result)) == (3, code)
        assert said in result.stderr


def test_a_notebook_that_is_not_there(project: Path, tmp_path: Path) -> None:
    shutil.copyfile(project / "net.ipynb", tmp_path / "net.ipynb")
    result = guider("map", "nte.ipynb", "--format", "json", cwd=tmp_path)
    assert error_of(result) == "program-missing"
    assert "net.ipynb" in result.stderr


def test_notebooks_are_not_run(project: Path, tmp_path: Path) -> None:
    shutil.copyfile(project / "net.ipynb", tmp_path / "net.ipynb")
    result = guider("localize", "--run", "net.ipynb", "--format", "json", cwd=tmp_path)
    assert (result.returncode, error_of(result)) == (2, "usage")
    assert "guider-ls localize net.ipynb --model M --test-data D" in result.stderr
    # Nor is it offered where nothing was saved yet.
    result = guider("localize", "net.ipynb", "--format", "json", cwd=tmp_path)
    assert error_of(result) == "target-missing"
    assert "--run" not in result.stderr
    assert "cell 5, line 5" in result.stderr
