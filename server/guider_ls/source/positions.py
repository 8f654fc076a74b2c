"""Where calls stand in the text, at the cost of generating the text once.

libcst's metadata providers work out a position for every node, which takes longer than all the rest of reading
a program. Here a code generation state notes only *how many tokens* were written when a call began and ended;
offsets, lines and columns come afterwards from the lengths of the tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from guider_ls.source.sites import Span

NEWLINE = re.compile(r"\r\n?|\n")
_NOWHERE: AbstractContextManager[None] = nullcontext()


class _TokenCount(CodegenState):
    """A code generation state that notes the token counts around the calls."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.found: list[tuple[cst.Call, int, int]] = []

    def record_syntactic_position(self, node: cst.CSTNode, **_: Any) -> AbstractContextManager[None]:  # type: ignore[override]
        return _Around(self, node) if isinstance(node, cst.Call) else _NOWHERE


class _Around(AbstractContextManager[None]):
    def __init__(self, state: _TokenCount, call: cst.Call) -> None:
        self.state = state
        self.call = call

    def __enter__(self) -> None:
        self.start = len(self.state.tokens)

    def __exit__(self, *_: object) -> None:
        self.state.found.append((self.call, self.start, len(self.state.tokens)))


@dataclass(frozen=True, slots=True)
class Layout:
    """Spans of calls, and every comment with the 0-based line it stands on."""

    spans: dict[cst.Call, Span]
    comments: dict[int, str]


def lay_out(module: cst.Module) -> Layout:
    """Find all calls (without their own outer parentheses) and all comments of a module."""
    state = _TokenCount(module)
    module._codegen(state)
    tokens = state.tokens
    offsets = [0, *accumulate(map(len, tokens))]
    starts = [0, *(match.end() for match in NEWLINE.finditer("".join(tokens)))]

    def place(offset: int) -> tuple[int, int]:
        line = bisect_right(starts, offset) - 1
        return line, offset - starts[line]

    spans = {call: Span(*place(offsets[start]), *place(offsets[end])) for call, start, end in state.found}
    comments = {
        place(offset)[0]: token
        for offset, token in zip(offsets, tokens, strict=False)
        if token.startswith("#")
    }
    return Layout(spans, comments)
