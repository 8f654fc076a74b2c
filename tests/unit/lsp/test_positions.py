from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from guider_ls.lsp.positions import (
    Encoding,
    encoding_of,
    from_position,
    from_units,
    to_range,
    to_units,
)
from guider_ls.source.lines import Lines
from guider_ls.source.sites import Span

TEXT = st.text(alphabet=st.sampled_from("ab é\t\x0c\x0b\x85\u2028😀𝒳ß\ud83d\r\n"), max_size=60)
ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@given(TEXT)
def test_lines_are_those_of_lsp(text: str) -> None:
    lines = Lines(text)
    assert [lines.line(n) for n in range(len(lines))] == text.replace("\r\n", "\n").replace("\r", "\n").split(
        "\n"
    )


@given(TEXT, st.data())
def test_a_place_names_its_offset(text: str, data: st.DataObject) -> None:
    lines = Lines(text)
    offset = data.draw(st.integers(0, len(text)))
    line, column = lines.place(offset)
    # The second half of \r\n has no place of its own.
    expected = offset - 1 if text[max(offset - 1, 0) : offset + 1] == "\r\n" else offset
    assert lines.offset(line, column) == expected


@given(TEXT, st.sampled_from(ENCODINGS))
def test_columns_survive_the_way_there_and_back(text: str, encoding: Encoding) -> None:
    codec, width = CODECS[encoding]
    line = Lines(text).line(0)
    for column in range(len(line) + 1):
        units = to_units(line, column, encoding)
        assert units == len(line[:column].encode(codec, "surrogatepass")) // width
        assert from_units(line, units, encoding) == column


@given(TEXT, st.integers(0, 500), st.sampled_from(ENCODINGS))
def test_any_column_of_the_client_is_somewhere_in_the_line(text: str, units: int, encoding: Encoding) -> None:
    line = Lines(text).line(0)
    column = from_units(line, units, encoding)
    assert 0 <= column <= len(line)
    assert to_units(line, column, encoding) <= units


@pytest.mark.parametrize(("encoding", "start"), [("utf-8", 12), ("utf-16", 10), ("utf-32", 9)])
def test_an_emoji_before_the_call(encoding: Encoding, start: int) -> None:
    text = 'x = "😀"; m.add(Dense(3))'
    lines = Lines("\n" + text)
    column = text.index("m.add")
    found = to_range(lines, Span(1, column, 1, len(text)), encoding)
    assert (found.start.line, found.start.character) == (1, start)
    assert from_position(lines, found.start, encoding) == (1, column)


def test_the_encoding_defaults_to_utf_16() -> None:
    assert encoding_of(None) == "utf-16"
    assert encoding_of(types.PositionEncodingKind.Utf8) == "utf-8"
    assert encoding_of("utf-32") == "utf-32"


def test_places_beyond_the_text_are_clipped() -> None:
    lines = Lines("ab\ncd")
    assert lines.offset(0, 99) == 2
    assert lines.offset(9, 0) == 5
    assert lines.line(9) == ""
    assert not lines.fits(Span(0, 0, 2, 0))
    assert not lines.fits(Span(0, 0, 0, 3))
    assert lines.fits(Span(0, 2, 1, 2))
