"""Places in a document: our code points against the client's code units, and offsets.

Lines end at ``\\r\\n``, ``\\n`` and ``\\r`` only, as in LSP and Python; ``str.splitlines`` also
splits at form feeds and the like.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Literal

from lsprotocol import types

from guider_ls.source.sites import Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_BREAK = re.compile(r"\r\n|\n|\r")


class Lines:
    """A text with its line table. A text always has at least one line, after its last line break too."""

    __slots__ = ("_breaks", "_starts", "text")

    def __init__(self, text: str) -> None:
        """Find the lines of ``text``."""
        self.text = text
        breaks = [match.span() for match in _BREAK.finditer(text)]
        self._starts = [0, *(end for _, end in breaks)]
        self._breaks = [*(start for start, _ in breaks), len(text)]

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._starts)

    def line(self, number: int) -> str:
        """One line without its line break; empty beyond the end."""
        if not 0 <= number < len(self._starts):
            return ""
        return self.text[self._starts[number] : self._breaks[number]]

    def offset(self, line: int, column: int) -> int:
        """Index into the text of a place, clipped to its line and to the text."""
        if line >= len(self._starts):
            return len(self.text)
        return min(self._starts[line] + max(column, 0), self._breaks[line])

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an index into the text."""
        line = bisect_right(self._starts, offset) - 1
        return line, min(offset, self._breaks[line]) - self._starts[line]

    def fits(self, span: Span) -> bool:
        """Whether the text has a place for the span."""
        return (
            0 <= span.line <= span.end_line < len(self)
            and span.column <= len(self.line(span.line))
            and span.end_column <= len(self.line(span.end_line))
            and (span.line, span.column) <= (span.end_line, span.end_column)
        )


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
