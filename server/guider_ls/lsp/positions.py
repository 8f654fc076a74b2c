"""Places in a document: our code points against the client's code units."""

from __future__ import annotations

from typing import Literal

from lsprotocol import types

from guider_ls.source.lines import Lines
from guider_ls.source.sites import Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]


def encoding_of(negotiated: types.PositionEncodingKind | str | None) -> Encoding:
    """The encoding that client and server agreed on; UTF-16 where nothing was said."""
    value = negotiated.value if isinstance(negotiated, types.PositionEncodingKind) else negotiated
    if value == "utf-8":
        return "utf-8"
    return "utf-32" if value == "utf-32" else "utf-16"


def to_units(line: str, column: int, encoding: Encoding) -> int:
    """Code units before ``column`` (in code points) of ``line``."""
    before = line[:column]
    if encoding == "utf-32" or before.isascii():
        return len(before)
    if encoding == "utf-16":
        return len(before) + sum(character > "\uffff" for character in before)
    return len(before.encode("utf-8", "surrogatepass"))


def from_units(line: str, units: int, encoding: Encoding) -> int:
    """Code points before ``units`` code units: inside a character its start, beyond the line its end."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    count = 0
    for column, character in enumerate(line):
        count += to_units(character, 1, encoding)
        if count > units:
            return column
    return len(line)


def to_range(lines: Lines, span: Span, encoding: Encoding) -> types.Range:
    """A span in the client's terms."""
    return types.Range(
        types.Position(span.line, to_units(lines.line(span.line), span.column, encoding)),
        types.Position(span.end_line, to_units(lines.line(span.end_line), span.end_column, encoding)),
    )


def from_position(lines: Lines, position: types.Position, encoding: Encoding) -> tuple[int, int]:
    """Line and column in code points of the client's position."""
    return position.line, from_units(lines.line(position.line), position.character, encoding)
