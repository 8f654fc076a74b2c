"""Where the modules come from that a program imports from its own project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<dots>\.*)[ \t]*(?P<package>[\w.]*)[ \t]+import\b[ \t(]*(?P<inner>\w*)"
    r"|import[ \t]+(?P<names>[^#\n]+))",
    re.MULTILINE,
)


class Modules(Protocol):
    """Finds modules of the project, and only those."""

    def find(self, name: str, level: int, importer: str) -> tuple[str, str] | None:
        """A module's absolute path and its text; ``None``: it is not of the project, or too large.

        Args:
            name: dotted name; empty for the package that ``level`` leads to.
            level: number of leading dots; 0 for an absolute import.
            importer: absolute path of the module that imports it; empty for the program.
        """


def imported(text: str) -> Iterator[tuple[str, int]]:
    """Names of the modules that a text seems to import, with the number of leading dots; it is not parsed."""
    for match in _IMPORT.finditer(text):
        if match["names"] is None:
            yield match["package"], len(match["dots"])
            yield f"{match['package']}.{match['inner']}".strip("."), len(match["dots"])
            continue
        for name in match["names"].split(","):
            if words := name.split():
                yield words[0], 0
