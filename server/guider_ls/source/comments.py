"""``# guider: ignore``: the comment that silences a construction."""

from __future__ import annotations

import re
from collections.abc import Mapping

from guider_ls.source.sites import Span

_IGNORE = re.compile(r"#\s*guider\s*:\s*ignore\b")


def is_ignored(span: Span, comments: Mapping[int, str]) -> bool:
    """Whether a line of the call carries the comment, alone or after another comment."""
    said = (comments.get(line, "") for line in range(span.line, span.end_line + 1))
    return any("guider" in text and _IGNORE.search(text) is not None for text in said)
