from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guider_ls.errors import InputError
from guider_ls.source.lines import Lines
from guider_ls.source.notebook import Code, code_cells, combine, first_lines, in_cells
from guider_ls.source.read import read_program
from guider_ls.source.sites import Artifact, LayerSite, SourceMap

CELLS = (
    "%matplotlib inline\nimport keras\nfrom keras import layers",
    "!pip install keras\n",
    "%%time\nmodel = keras.Sequential()\nmodel.add(layers.Dense(4, name='α😀'))",
    "%%html\n<b>layers.Dense(5)</b>",
    "for units in (8, 16):\n    %time model.add(layers.Dense(units))\n"
    "model.add(\n    layers.Dropout(0.1)  # guider: ignore\n)",
    "await model.save('net.keras')",
)


def codes(*texts: str) -> list[Code]:
    """Code cells with a cell of text before each."""
    return [Code(2 * index, text) for index, text in enumerate(texts, start=1)]


def cut(texts: tuple[str, ...], place: LayerSite | Artifact) -> str:
    """What stands in its cell where a site or an artifact is said to be."""
    assert place.cell is not None
    lines = Lines(texts[place.cell.number // 2 - 1])
    span, first = place.span, place.cell.line
    return lines.text[
        lines.offset(span.line - first, span.column) : lines.offset(span.end_line - first, span.end_column)
    ]


def read(cells: list[Code]) -> SourceMap:
    combined = combine(cells)
    return in_cells(read_program(combined.text), combined.cells)


def test_layers_are_read_over_all_cells_and_stand_in_their_own() -> None:
    cells = codes(*CELLS)
    source = read(cells)
    assert [cut(CELLS, site) for site in source.sites] == [
        "layers.Dense(4, name='α😀')",
        "layers.Dense(units)",
        "layers.Dropout(0.1)",
    ]
    assert [site.ignored for site in source.sites] == [False, False, True]
    assert [site.repeats for site in source.sites] == [False, True, False]
    (outline,) = source.outlines
    assert [step.site for step in outline.steps] == [0, 1, 1, 2]
    assert [(a.path, cut(CELLS, a)) for a in source.artifacts] == [("net.keras", "model.save('net.keras')")]


def test_a_cell_that_is_not_python_is_left_out_and_named() -> None:
    cells = codes(
        "from keras import layers\nx = layers.Dense(1)",
        "ok = 1\ny = layers.Dense(2",
        "z = layers.Dense(3)\n)",
    )
    combined = combine(cells)
    assert combined.left_out == tuple(cells[1:])
    assert combine(cells, {2}) == combined
    with pytest.raises(InputError) as caught:
        combine(cells, {2, 6})
    assert (caught.value.code, caught.value.message) == (
        "program-syntax",
        "Cell 6 is not Python as it stands.",
    )
    assert len(read_program(combined.text).sites) == 1
    assert len(Lines(combined.text)) == 6


@pytest.mark.parametrize(
    "broken",
    [
        "x = '''",
        "f(",
        "x = 1 \\",
        "if x:",
        "@decorated",
        "    x = 1",
        "\ufeffx = 1",
        "\ud800",
        "x = \0",
        "try:\n  x",
        "(" * 3000,
    ],
)
def test_no_cell_changes_what_another_one_says(broken: str) -> None:
    after = "from keras import layers\nx = layers.Dense(3)"
    for cells in (codes(broken, after), codes("a = 1", broken, after)):
        combined = combine(cells)
        assert combined.left_out == (cells[-2],)
        (site,) = read(cells).sites
        assert site.cell is not None
        assert (site.cell.number, site.span.line - site.cell.line) == (2 * len(cells), 1)
        assert (site.span.column, site.span.end_column) == (4, 19)


def test_an_else_of_its_own_belongs_to_no_cell_before() -> None:
    combined = combine(codes("if x:\n    y = 1", "else:\n    y = 2"))
    assert [out.number for out in combined.left_out] == [4]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_line_break_is_one(newline: str) -> None:
    texts = (f"import keras{newline}", f"a = 1{newline}{newline}x = keras.layers.Dense(2){newline}")
    combined = combine(codes(*texts))
    assert [cell.line for cell in combined.cells] == [0, 2]
    (site,) = read(codes(*texts)).sites
    assert cut(texts, site) == "keras.layers.Dense(2)"


def test_no_cells_are_an_empty_program() -> None:
    assert combine(()).text == ""
    assert combine(()).cells == ()
    assert first_lines([]) == []


PIECES = st.sampled_from(
    [
        "layers.Dense(3)",
        "x = layers.Dense(\n  'ä😀' and 4,\n)",
        "%time layers.Flatten()",
        "!ls",
        "f(",
        "'''",
        "\r\n",
        "\r",
        "\n",
        "\x0c",
        "\u2028",
        "# c",
        "",
        " ",
    ]
)


@given(st.lists(st.lists(PIECES, max_size=5).map("\n".join), max_size=5))
def test_every_span_of_the_program_is_that_of_its_cell(texts: list[str]) -> None:
    given_texts = ("from keras import layers", *texts)
    cells = codes(*given_texts)
    combined = combine(cells)
    assert len(Lines(combined.text)) == sum(len(Lines(text)) for text in given_texts)
    program = Lines(combined.text)
    for site in read(cells).sites:
        span = site.span
        here = program.text[
            program.offset(span.line, span.column) : program.offset(span.end_line, span.end_column)
        ]
        found = cut(tuple(given_texts), site)
        assert found.replace("\r\n", "\n").replace("\r", "\n") == here
        assert found.startswith("layers.")
        assert found.endswith(")")


# The file


def notebook(*cells: dict[str, Any], **fields: Any) -> bytes:
    body = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **fields}
    return json.dumps(body).encode()


def cell(source: Any, kind: str = "code", **metadata: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": source, "metadata": metadata}


def test_the_code_cells_of_a_file_keep_their_number() -> None:
    data = notebook(
        cell("# title", "markdown"),
        cell(["a = 1\n", "b = 2"]),
        cell("select 1", vscode={"languageId": "sql"}),
        cell("raw", "raw"),
        cell("c = 3", vscode={"languageId": "python"}),
        {"cell_type": "code"},
    )
    assert code_cells(data) == (Code(2, "a = 1\nb = 2"), Code(5, "c = 3"), Code(6, ""))
    assert code_cells(b"\xef\xbb\xbf" + data) == code_cells(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "nbformat is missing"),
        (b'{"nbformat": "4"}', "nbformat is missing"),
        (b'{"nbformat": 3, "worksheets": []}', "format 3, and 4 is needed"),
        (b'{"nbformat": 4}', "no list of cells"),
        (notebook(cells={}), "no list of cells"),
        (notebook(cells=[1]), "cell 1 is not an object"),
        (notebook(cell("x"), cell(["x", 1])), "source of cell 2"),
        (notebook(cell(None)), "source of cell 1"),
    ],
)
def test_what_is_no_notebook_is_refused_with_the_reason(data: bytes, said: str) -> None:
    with pytest.raises(InputError) as caught:
        code_cells(data)
    assert caught.value.code == "notebook-format"
    assert said in caught.value.message


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"language": "R"}},
        {"language_info": {"name": "julia"}},
        {"kernelspec": {"language": "scala"}, "language_info": {"name": "python"}},
    ],
)
def test_other_languages_are_refused(metadata: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        code_cells(notebook(cell("x <- 1"), metadata=metadata))
    assert caught.value.code == "notebook-language"


@pytest.mark.parametrize(
    "metadata",
    [None, [], {"kernelspec": None}, {"kernelspec": {"language": 3}}, {"kernelspec": {"language": "Python"}}],
)
def test_what_is_not_said_is_python(metadata: Any) -> None:
    assert code_cells(notebook(cell("x"), metadata=metadata)) == (Code(1, "x"),)
