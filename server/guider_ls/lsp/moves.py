"""Where a span of the old text stands in the new one, from what both texts share at their ends."""

from __future__ import annotations

from collections.abc import Callable

from guider_ls.lsp.positions import Lines
from guider_ls.source.sites import Span

_BLOCK = 4096


def moves(old: Lines, new: Lines) -> Callable[[Span], Span | None]:
    """How to move a span over one edit; ``None`` where nothing is left of it.

    A place before or after the edited stretch keeps its character. A span that loses one end to the edit is
    cut there; one that lies wholly inside stays where it is, as far as the new stretch reaches.
    """
    head = _common_head(old.text, new.text)
    tail = _common_tail(old.text, new.text, min(len(old.text), len(new.text)) - head)
    old_end, new_end = len(old.text) - tail, len(new.text) - tail

    def move(span: Span) -> Span | None:
        start, end = old.offset(span.line, span.column), old.offset(span.end_line, span.end_column)
        if head < start and end < old_end:
            start, end = new.offset(span.line, span.column), new.offset(span.end_line, span.end_column)
            inside = head <= start < end <= new_end and new.fits(span)
            return span if inside else None
        # What is typed at an edge of the span stays outside of it.
        if start >= old_end:
            start += new_end - old_end
        elif start > head:
            start = new_end
        if end >= old_end and end > head:
            end += new_end - old_end
        elif end > head:
            end = head
        return Span(*new.place(start), *new.place(end)) if start < end else None

    return move


def _common_head(old: str, new: str) -> int:
    """Length of the longest common beginning; by blocks, since most edits leave most of a text alone."""
    length = 0
    while (block := old[length : length + _BLOCK]) and block == new[length : length + _BLOCK]:
        length += len(block)
    return length + _common(block, new[length : length + _BLOCK])


def _common_tail(old: str, new: str, limit: int) -> int:
    """Length of the longest common end, at most ``limit``."""
    length = 0
    while length < limit:
        size = min(_BLOCK, limit - length)
        one, other = _from_end(old, length, size), _from_end(new, length, size)
        if one != other:
            return length + _common(one[::-1], other[::-1])
        length += size
    return length


def _common(one: str, other: str) -> int:
    differ = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


def _from_end(text: str, skip: int, size: int) -> str:
    end = len(text) - skip
    return text[end - size : end]
