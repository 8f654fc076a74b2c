"""Where chosen nodes stand in the text, at the cost of generating the text once.

libcst's metadata providers work out a position for every node, which takes longer than all the rest of reading
a program. Here a code generation state notes only *how many tokens* were written when a wanted node began and
ended; offsets, lines and columns come afterwards from the lengths of the tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from guider_ls.source.sites import Span

NEWLINE = re.compile(r"\r\n?|\n")
_NOWHERE: AbstractContextManager[None] = nullcontext()


class _TokenCount(CodegenState):
    """A code generation state that notes the token counts around the wanted nodes."""

    def __init__(self, module: cst.Module, wanted: Collection[cst.CSTNode]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.wanted = frozenset(map(id, wanted))
        self.found: list[tuple[cst.CSTNode, int, int]] = []

    def record_syntactic_position(self, node: cst.CSTNode, **_: Any) -> AbstractContextManager[None]:  # type: ignore[override]
        return self._around(node) if id(node) in self.wanted else _NOWHERE

    @contextmanager
    def _around(self, node: cst.CSTNode) -> Iterator[None]:
        start = len(self.tokens)
        yield
        self.found.append((node, start, len(self.tokens)))


@dataclass(frozen=True, slots=True)
class Layout:
    """Spans of the wanted nodes, and every comment with the 0-based line it stands on."""

    spans: dict[cst.CSTNode, Span]
    comments: dict[int, str]


def lay_out(module: cst.Module, wanted: Collection[cst.CSTNode]) -> Layout:
    """Find the wanted expressions (without their own outer parentheses) and all comments of a module."""
    state = _TokenCount(module, wanted)
    module._codegen(state)
    offsets = [0, *accumulate(map(len, state.tokens))]
    text = "".join(state.tokens)
    starts = [0, *(match.end() for match in NEWLINE.finditer(text))]

    def place(offset: int) -> tuple[int, int]:
        line = bisect_right(starts, offset) - 1
        return line, offset - starts[line]

    spans = {node: Span(*place(offsets[start]), *place(offsets[end])) for node, start, end in state.found}
    comments = {
        place(offsets[index])[0]: token for index, token in enumerate(state.tokens) if token.startswith("#")
    }
    return Layout(spans, comments)
