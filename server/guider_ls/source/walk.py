"""The syntactic children of a node, without whitespace; much cheaper than a visitor."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import libcst as cst

_LAYOUT = (
    "whitespace",
    "leading_lines",
    "lines_after",
    "lpar",
    "rpar",
    "header",
    "footer",
    "comma",
    "semicolon",
)


@functools.cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = [field.name for field in dataclasses.fields(kind)]
    return tuple(name for name in names if not name.startswith(_LAYOUT))


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes right below a node, in the order of the text as far as libcst's fields keep it."""
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from value
