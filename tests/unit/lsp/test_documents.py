from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.analysis.results import localization
from tests.unit.present.reports import layers, report, scores, site

from guider_ls.analysis.fingerprint import Fingerprint
from guider_ls.lsp.documents import Document, Part, Reading, Result, path_of
from guider_ls.mapping.mapping import Match
from guider_ls.source.lines import Lines
from guider_ls.source.read import read_program
from guider_ls.source.sites import Span

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


def parts_of(path: str, content: str) -> tuple[Part, ...]:
    return (Part(f"file://{path}", 1, Lines(content)),)


def test_a_module_shows_what_the_result_of_a_program_says_of_it() -> None:
    """Places start from the text that the program was read with, and move with the module's own edits."""
    read, module = (
        parts_of("/p/models.py", "\n\n\n\n\n\n\n    Dense(64)\n"),
        parts_of("/p/train.py", "build()\n"),
    )
    shown = report(localization(layers(1), scores(0.5)), (Match(site(7, file="/p/models.py"), (0,), ""),))
    host = Document("file:///p/train.py", Path("/p/train.py"), module)
    result = Result(shown.localization, 0.0, Fingerprint(shown.localization.inputs, ()), 1)
    host.take(Reading(shown.source, shown.mapping, result, module, {"/p/models.py": read}))
    guest = Document(
        "file:///p/models.py", Path("/p/models.py"), parts_of("/p/models.py", "# new\n" + read[0].lines.text)
    )
    assert guest.view is None
    assert guest.visit(host)
    assert not guest.visit(host)
    assert (view := guest.view) is not None
    assert (view.host, view.file) == (host, "/p/models.py")
    assert view.places.of(site(7).span) == site(8).span
    guest.change(parts_of("/p/models.py", "# new\n# newer\n" + read[0].lines.text))
    assert (found := view.at(9, 6)) is not None
    assert found.span == site(7).span
    assert view.at(8, 6) is None
    assert host.files == {"/p/models.py"}
    assert guest.visit(None)
    assert guest.view is None


def test_a_module_that_the_program_was_not_read_with_waits() -> None:
    shown = report(localization(layers(1), scores(0.5)), (Match(site(7, file="/p/models.py"), (0,), ""),))
    host = Document("file:///p/train.py", Path("/p/train.py"), parts := parts_of("/p/train.py", "build()\n"))
    result = Result(shown.localization, 0.0, Fingerprint(shown.localization.inputs, ()), 1)
    host.take(Reading(shown.source, shown.mapping, result, parts, {}))
    assert not Document("file:///p/models.py", Path("/p/models.py"), parts_of("/p/models.py", "")).visit(host)


def test_an_ignored_line_is_seen_as_it_is_now(document: Document) -> None:
    assert not document.is_ignored(Span(2, 4, 4, 1))
    document.change(text(PROGRAM.replace("    4,", "    4,  # guider: ignore")))
    assert document.is_ignored(Span(2, 4, 4, 1))
    assert not document.is_ignored(Span(1, 4, 1, 20))
