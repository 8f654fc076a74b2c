"""From texts to libcst's trees, piece by piece: what a text has in common with the last ones is not parsed again.

libcst's parser is what takes long in reading a program, and an edit changes one function of many. So a text is cut
where code in the first column follows an empty line, outside strings. Pieces that are Python one by one are the
same statements when they stand below each other, for no statement goes on in the next piece: those that begin with
``else`` and the like are not cut off. A piece that is not Python by itself is tried together with those after it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import libcst as cst

from guider_ls.source.parse import syntax_problem, tree_of
from guider_ls.source.positions import NEWLINE, Layout, lay_out
from guider_ls.source.sites import Span

KEPT = 100_000
"""Characters of pieces that are kept, if the last reading needed no more; trees are some hundred times as large."""

_TOKEN = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r"|#[^\n]*"
    r"|(?P<cut>(?<=\n)\r?\n(?=[^\s#)\]}])(?!(?:else|elif|except|finally)\b))",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Piece:
    body: Sequence[cst.SimpleStatementLine | cst.BaseCompoundStatement]
    layout: Layout
    lines: int
    """Line breaks in it."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole text, parsed."""

    pieces: tuple[_Piece, ...]

    @property
    def body(self) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
        """Its statements."""
        return list(chain.from_iterable(piece.body for piece in self.pieces))

    def lay_out(self, wanted: Iterable[cst.Call]) -> Layout:
        """Find the wanted calls (without their own outer parentheses) and all comments."""
        calls = set(wanted)
        spans: dict[cst.Call, Span] = {}
        comments: dict[int, str] = {}
        line = 0
        for piece in self.pieces:
            for call in calls & piece.layout.spans.keys():
                span = piece.layout.spans[call]
                spans[call] = Span(line + span.line, span.column, line + span.end_line, span.end_column)
            for number, comment in piece.layout.comments.items():
                comments[line + number] = comment
            line += piece.lines
        return Layout(spans, comments)


_kept: dict[tuple[str, int], _Piece] = {}
"""By text, and which of the pieces of the same text it is: each has nodes of its own. Those used last stand last."""


class Trees:
    """Makes the trees of one reading; `close` it afterwards."""

    def __init__(self) -> None:
        """Start a reading."""
        self._counts: Counter[str] = Counter()
        self._used: set[tuple[str, int]] = set()

    def tree(self, text: str) -> Tree:
        """The tree of a text.

        Raises:
            InputError: code ``program-syntax``; the text is not Python. The message names the line.
        """
        texts = list(_cut(text))
        keys = [self._key(piece) for piece in texts]
        for key in filter(_kept.__contains__, keys):
            self._keep(key, _kept.pop(key))
        pieces: list[_Piece] = []
        line = index = 0
        while index < len(texts):
            piece, count = self._piece(texts[index:], keys[index], line)
            pieces.append(piece)
            line, index = line + piece.lines, index + count
        return Tree(tuple(pieces))

    def _piece(self, texts: Sequence[str], key: tuple[str, int], line: int) -> tuple[_Piece, int]:
        """The piece that the texts begin with, the first of which is ``key``'s; and how many of them it is made of."""
        count, failed = 1, None
        while key not in _kept:
            try:
                module = tree_of(key[0])
            except cst.ParserSyntaxError as error:
                place = error.raw_line, error.raw_column
                # One that stays where it is though more text follows is one of the whole text.
                if count == len(texts) or place == failed:
                    raise syntax_problem(error, line) from error
                failed = None if error.message.startswith("tokenizer") else place
                count = min(2 * count, len(texts)) if failed else len(texts)
                key = self._key("".join(texts[:count]))
            else:
                self._keep(key, _Piece(module.body, lay_out(module), len(NEWLINE.findall(key[0]))))
        return _kept[key], count

    def _key(self, text: str) -> tuple[str, int]:
        self._counts[text] += 1
        return text, self._counts[text]

    def _keep(self, key: tuple[str, int], piece: _Piece) -> None:
        _kept[key] = piece
        self._used.add(key)

    def close(self) -> None:
        """Forget what has not been of use for long."""
        size = sum(len(text) for text, _ in _kept)
        for key in list(_kept):
            if size <= KEPT or key in self._used:
                break
            del _kept[key]
            size -= len(key[0])


def _cut(text: str) -> Iterator[str]:
    start = 0
    for token in _TOKEN.finditer(text):
        if token["cut"] is not None:
            yield text[start : token.end()]
            start = token.end()
    yield text[start:]
