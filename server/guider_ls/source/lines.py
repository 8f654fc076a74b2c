"""A text by lines and columns.

Lines end at ``\\r\\n``, ``\\n`` and ``\\r`` only, as in LSP and Python; ``str.splitlines`` also
splits at form feeds and the like.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from guider_ls.source.sites import Span

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
