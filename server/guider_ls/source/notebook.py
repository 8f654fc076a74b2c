"""A notebook as one program: its code cells below each other, as if they had been run once from top to bottom.

In which order they were run is not known from their text; that of the notebook is taken.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from guider_ls.errors import InputError
from guider_ls.source.lines import Lines
from guider_ls.source.magics import as_python
from guider_ls.source.sites import Cell, SourceMap

SUFFIX = ".ipynb"


@dataclass(frozen=True, slots=True)
class Code:
    """One code cell."""

    number: int
    """Among all cells of the notebook, counted from 1, as editors show it."""
    text: str


@dataclass(frozen=True, slots=True)
class Combined:
    """The program that the code cells are together. Every column is that of the cell."""

    text: str
    cells: tuple[Cell, ...]
    """Where each code cell begins."""
    left_out: tuple[Code, ...]
    """Cells whose lines are empty in the text, since they are not Python."""


def combine(codes: Sequence[Code], needed: Collection[int] = ()) -> Combined:
    """Put code cells together. Of a cell that is not Python only the lines are kept, empty: the rest can be read.

    Args:
        codes: the cells, in the order of the notebook.
        needed: numbers of the cells that are not to be left out.

    Raises:
        InputError: "program-syntax": a cell that is needed is not Python.
    """
    read = [_python(code.text) for code in codes]
    for code, (_, fine) in zip(codes, read, strict=True):
        if not fine and code.number in needed:
            raise InputError("program-syntax", f"Cell {code.number} is not Python as it stands.")
    starts = first_lines(Lines(code.text) for code in codes)
    return Combined(
        "\n".join(text for text, _ in read),
        tuple(Cell(code.number, start) for code, start in zip(codes, starts, strict=True)),
        tuple(code for code, (_, fine) in zip(codes, read, strict=True) if not fine),
    )


def first_lines(texts: Iterable[Lines]) -> list[int]:
    """The line of the program on which each cell begins."""
    return list(accumulate(map(len, texts), initial=0))[:-1]


def in_cells(source: SourceMap, cells: Sequence[Cell]) -> SourceMap:
    """What was read of a notebook's program, each place with its cell."""
    source = replace(source, cells=tuple(cells))
    return replace(
        source,
        sites=tuple(
            site if site.file else replace(site, cell=source.cell_at(site.span.line)) for site in source.sites
        ),
        artifacts=tuple(
            replace(written, cell=source.cell_at(written.span.line)) for written in source.artifacts
        ),
    )


def code_cells(data: bytes) -> tuple[Code, ...]:
    """The Python cells of a notebook file.

    Raises:
        InputError: "notebook-format": it is no notebook, or an old one; "notebook-language": not one of Python.
    """
    try:
        body = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _unusable(f"it is not JSON ({error})") from error
    if not isinstance(body, dict) or not isinstance(body.get("nbformat"), int):
        raise _unusable("its JSON is not that of a notebook: the field nbformat is missing")
    if body["nbformat"] < 4:
        raise _unusable(
            f"it has format {body['nbformat']}, and 4 is needed; save it again in Jupyter or VS Code"
        )
    language = _language(body)
    if language.lower() != "python":
        raise InputError(
            "notebook-language", f"The notebook is one of {language}. Only notebooks of Python can be mapped."
        )
    return tuple(_codes(body.get("cells")))


def _codes(cells: Any) -> Iterator[Code]:
    if not isinstance(cells, list):
        raise _unusable("it has no list of cells")
    for number, cell in enumerate(cells, start=1):
        if not isinstance(cell, dict):
            raise _unusable(f"cell {number} is not an object")
        source = cell.get("source", "")
        if isinstance(source, list) and all(isinstance(part, str) for part in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise _unusable(f"the source of cell {number} is neither a text nor a list of texts")
        if cell.get("cell_type") == "code" and _inner(cell, "metadata", "vscode").get("languageId") in (
            None,
            "python",
        ):
            yield Code(number, source)


def _language(body: Mapping[str, Any]) -> str:
    named = (
        _inner(body, "metadata", "kernelspec").get("language"),
        _inner(body, "metadata", "language_info").get("name"),
    )
    return next((name for name in named if isinstance(name, str) and name), "python")


def _inner(body: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        found = body.get(name)
        body = found if isinstance(found, dict) else {}
    return body


def _unusable(reason: str) -> InputError:
    return InputError("notebook-format", f"The notebook cannot be read: {reason}.")


@functools.lru_cache(1000)
def _python(cell: str) -> tuple[str, bool]:
    """A cell as Python, or its empty lines where it is not; and whether it is.

    Kept, since most cells stay as they are while one is edited.
    """
    # Here, not above: libcst takes longer to import than all the rest.
    from guider_ls.source.parse import parse

    text = as_python(re.sub(r"\r\n?", "\n", cell))
    try:
        parse(f"\n{text}")  # below another cell, where no byte order mark can stand
    except (InputError, RecursionError):
        return "\n" * text.count("\n"), False
    return text, True
