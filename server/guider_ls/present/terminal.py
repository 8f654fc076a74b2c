"""How text is laid out for a terminal: width, color, names of files, quoted lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from guider_ls.source.sites import LayerSite, Part, Unknown

Style = Literal["", "bold", "dim", "red", "green", "yellow"]
_CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "1;31", "green": "32", "yellow": "33"}
_FIELD = 9
"""Columns of the names before the values in a list of facts."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where a text will be shown."""

    color: bool = False
    """With ANSI escapes."""
    width: int = 100
    """In columns."""
    folder: str = ""
    """From which names of files are written; empty: they are absolute."""
    program_text: str | None = None
    """The program as it was read, to quote its lines; without it, calls are written anew."""

    def style(self, style: Style, text: str) -> str:
        """The text in a style, plain where there is no color."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.color and style else text

    def field(self, name: str, text: str) -> Iterator[str]:
        """A fact with its name before it."""
        lines = _wrap(text, self.width - _FIELD) or [""]
        yield f"{self.style('bold', f'{name:<{_FIELD - 1}}')} {lines[0]}"
        yield from (f"{'':{_FIELD}}{line}" for line in lines[1:])

    def wrapped(self, text: str, indent: str = "", style: Style = "") -> Iterator[str]:
        """A paragraph; its own line breaks are kept."""
        for line in text.splitlines():
            parts = _wrap(line, self.width - len(indent)) or [""]
            yield from (self.style(style, f"{indent}{part}") for part in parts)

    def cut(self, text: str, width: int | None = None) -> str:
        """The beginning that fits."""
        room = self.width if width is None else width
        return text if len(text) <= room else f"{text[: room - 1]}…"

    def file(self, name: str) -> str:
        """A file's name from the folder, the absolute one if it is elsewhere."""
        path = Path(name)
        inside = self.folder and path.is_relative_to(self.folder)
        return str(path.relative_to(self.folder)) if inside else name

    def place(self, program: str, site: LayerSite) -> str:
        """``file:line:column``, counted from 1, which terminals make a link; ``file:cell 2:line:column``."""
        cell = f"cell {site.cell.number}:" if site.cell is not None else ""
        line = site.span.line - (site.cell.line if site.cell is not None else 0)
        return f"{self.file(site.file or program)}:{cell}{line + 1}:{site.span.column + 1}"

    def quoted(self, site: LayerSite) -> str:
        """The line on which a construction starts."""
        if self.program_text is not None and not site.file:
            # Lines as Python counts them: a form feed or a Unicode line separator ends none.
            lines = self.program_text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            if site.span.line < len(lines):
                return lines[site.span.line].strip()
        return f"{site.class_name}({_spelled(site.arguments)})"


def _spelled(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_code(value)}" for name, value in arguments.items())


def _code(value: Any) -> str:
    """A value as a program writes it."""
    if isinstance(value, Unknown):
        return value.code
    if isinstance(value, Part):
        return f"{value.class_name}({_spelled(value.arguments)})"
    if isinstance(value, list):
        return f"[{', '.join(map(_code, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_code, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
