"""Where a span of the old text stands in the new one, from what both texts have in common."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from guider_ls.source.lines import Lines
from guider_ls.source.sites import Span

_BLOCK = 4096
_COMPARED = 1000
"""Lines in which single edits are still told apart; comparing takes time that grows with their square."""

_TELLING = 4
"""Characters from which on a line tells where it is: an empty one or a parenthesis may be any."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """Offsets of a stretch of the old text, and of what stands there in the new one."""

    old: int
    old_end: int
    new: int
    new_end: int


def moves(old: Lines, new: Lines) -> Callable[[Span], Span | None]:
    """How to move a span over a change of the text; ``None`` where nothing is left of it.

    A place outside of the edited stretches keeps its character. A span that loses one end to an edit is cut
    there; one that lies wholly inside keeps its line and column, as far as the new stretch reaches.
    """
    edits = list(_edits(old, new))

    def move(span: Span) -> Span | None:
        old_start, old_end = old.offset(span.line, span.column), old.offset(span.end_line, span.end_column)
        start, end = old_start, old_end
        # What is typed at an edge of the span stays outside of it.
        for edit in edits:
            if edit.old < old_start and old_end < edit.old_end:
                return _kept(span, edit, old, new)
            if old_start >= edit.old_end:
                start = old_start + edit.new_end - edit.old_end
            elif old_start > edit.old:
                start = edit.new_end
            if old_end > edit.old:
                end = old_end + edit.new_end - edit.old_end if old_end >= edit.old_end else edit.new
        return Span(*new.place(start), *new.place(end)) if start < end else None

    return move


def _kept(span: Span, edit: _Edit, old: Lines, new: Lines) -> Span | None:
    shift = new.place(edit.new)[0] - old.place(edit.old)[0]
    kept = Span(span.line + shift, span.column, span.end_line + shift, span.end_column)
    start, end = new.offset(kept.line, kept.column), new.offset(kept.end_line, kept.end_column)
    return kept if edit.new <= start < end <= edit.new_end and new.fits(kept) else None


def _edits(old: Lines, new: Lines) -> Iterator[_Edit]:
    """The stretches in which the texts differ, in order, as small as they are cheap to find."""
    whole = _trimmed(old.text, new.text, _Edit(0, len(old.text), 0, len(new.text)))
    first, last = old.place(whole.old)[0], old.place(whole.old_end)[0]
    new_first, new_last = new.place(whole.new)[0], new.place(whole.new_end)[0]
    if first == last or (last - first) + (new_last - new_first) > _COMPARED:
        yield whole
        return
    matcher = difflib.SequenceMatcher(
        lambda line: len(line.strip()) < _TELLING,
        [_with_break(old, n) for n in range(first, last + 1)],
        [_with_break(new, n) for n in range(new_first, new_last + 1)],
        autojunk=False,
    )
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            lines = _Edit(
                old.offset(first + a, 0),
                old.offset(first + b, 0),
                new.offset(new_first + c, 0),
                new.offset(new_first + d, 0),
            )
            yield _trimmed(old.text, new.text, lines)


def _with_break(lines: Lines, number: int) -> str:
    return lines.text[lines.offset(number, 0) : lines.offset(number + 1, 0)]


def _trimmed(old: str, new: str, edit: _Edit) -> _Edit:
    """The edit without what both stretches have in common at their ends."""
    one, other = old[edit.old : edit.old_end], new[edit.new : edit.new_end]
    head = _common_head(one, other)
    if head and one[head - 1] == "\r" and "\n" in (one[head : head + 1], other[head : head + 1]):
        head -= 1  # both characters of a line break, or none
    tail = _common_tail(one, other, min(len(one), len(other)) - head)
    if tail and one[-tail] == "\n" and "\r" in (one[-tail - 1 : -tail], other[-tail - 1 : -tail]):
        tail -= 1
    return _Edit(edit.old + head, edit.old_end - tail, edit.new + head, edit.new_end - tail)


def _common_head(one: str, other: str) -> int:
    """Length of the longest common beginning; by blocks, since most edits leave most of a text alone."""
    length = 0
    while (block := one[length : length + _BLOCK]) and block == other[length : length + _BLOCK]:
        length += len(block)
    return length + _common(block, other[length : length + _BLOCK])


def _common_tail(one: str, other: str, limit: int) -> int:
    """Length of the longest common end, at most ``limit``."""
    length = 0
    while length < limit:
        size = min(_BLOCK, limit - length)
        a, b = _from_end(one, length, size), _from_end(other, length, size)
        if a != b:
            return length + _common(a[::-1], b[::-1])
        length += size
    return length


def _common(one: str, other: str) -> int:
    differ = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


def _from_end(text: str, skip: int, size: int) -> str:
    end = len(text) - skip
    return text[end - size : end]
