from __future__ import annotations

from pathlib import Path

import pytest

from guider_ls.lsp.documents import Document, Part, Reading, path_of
from guider_ls.source.lines import Lines
from guider_ls.source.read import read_program

PROGRAM = """\
from keras.layers import Bidirectional, Dense, LSTM
x = Bidirectional(LSTM(3))
y = Dense(
    4,
)
"""


@pytest.fixture
def document() -> Document:
    parts = text(PROGRAM)
    made = Document("file:///p/train.py", Path("/p/train.py"), parts)
    made.take(Reading(read_program(PROGRAM), None, None, parts, {}))
    return made


def text(content: str) -> tuple[Part, ...]:
    return (Part("file:///p/train.py", 1, Lines(content)),)


def name_at(document: Document, line: int, column: int) -> str | None:
    site = document.site_at(line, column)
    return site.class_name if site else None


def test_the_innermost_construction_around_a_place(document: Document) -> None:
    assert name_at(document, 1, 4) == "Bidirectional"
    assert name_at(document, 1, 19) == "LSTM"
    assert name_at(document, 1, 26) == "Bidirectional"
    assert name_at(document, 3, 0) == "Dense"
    assert name_at(document, 0, 40) is None
    assert name_at(document, 1, 2) is None


def test_places_move_with_every_edit_until_the_next_reading(document: Document) -> None:
    document.change(text("\n" + PROGRAM))
    document.change(text("\n\n(" + PROGRAM))
    assert name_at(document, 3, 4) == "Bidirectional"
    document.change(text(PROGRAM.replace("y = Dense(\n    4,\n)\n", "")))
    assert name_at(document, 1, 4) == "Bidirectional"
    assert [
        s.class_name for s in (document.source.sites if document.source else ()) if document.places.of(s.span)
    ] == [
        "Bidirectional",
        "LSTM",
    ]


def test_what_is_known_before_the_first_reading() -> None:
    document = Document("untitled:1", None, text(PROGRAM))
    assert (document.source, document.result, document.report) == (None, None, None)
    assert document.site_at(1, 4) is None
    assert document.key == "untitled:1"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/%C3%9F.py", Path("/a b/ß.py")),
        ("untitled:Untitled-1", None),
        ("vscode-notebook-cell:/a.ipynb#1", None),
        ("git:/a/b.py?x", None),
    ],
)
def test_only_files_have_a_path(uri: str, path: Path | None) -> None:
    assert path_of(uri) == path
