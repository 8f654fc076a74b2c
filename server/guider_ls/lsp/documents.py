"""An open document: its text, what was last read of it, and the result that belongs to it."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from lsprotocol import types
from pygls.uris import to_fs_path

from guider_engine.wire import CaptureRecord, Localization
from guider_ls.analysis.fingerprint import Fingerprint
from guider_ls.lsp.positions import Encoding, from_position, to_range
from guider_ls.mapping.mapping import Mapping
from guider_ls.present.report import Report
from guider_ls.source.lines import Lines
from guider_ls.source.moves import moves
from guider_ls.source.notebook import Combined
from guider_ls.source.sites import LayerSite, SourceMap, Span

T = TypeVar("T")
State = Literal["idle", "running", "ranked", "no-signal", "no-target", "error", "untrusted"]


def path_of(uri: str) -> Path | None:
    """The file of a URI; ``None`` for other documents."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return Path(path) if path else None


@dataclass(frozen=True, slots=True)
class Result:
    """A localization with what it was computed for."""

    localization: Localization
    finished: float
    """Seconds since the epoch."""
    fingerprint: Fingerprint
    generation: int
    origin: str = ""
    """How model, test set and interpreter were found, for people."""
    capture: CaptureRecord | None = None
    """The run of the program that the model was captured from, where it was."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says, aligned with the model of the result that was there at the time."""

    source: SourceMap
    mapping: Mapping | None
    result: Result | None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a document, for the client's status item."""

    state: State = "idle"
    text: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A text that the client knows by a URI: a file's, or that of one code cell of a notebook."""

    uri: str
    version: int | None
    lines: Lines
    first: int = 0
    """The line of the document on which it begins."""
    number: int = 0
    """Of a cell: among all cells of the notebook, counted from 1."""


class Document:
    """One open program. Its places are those of the last good reading, moved with every edit since.

    Inside, a place is a line and column of the whole program. The client means a part and a place in it.
    """

    def __init__(self, uri: str, path: Path | None, parts: tuple[Part, ...]) -> None:
        """Open a document; ``path`` is ``None`` where it is not a file."""
        self.uri = uri
        self.path = path
        self.parts = parts
        self.problem = ""
        """Why the text as it is cannot be read, where it cannot."""
        self.status = Status()
        self.read_once = asyncio.Event()
        """Set when the first reading has ended, well or not."""
        self.reading: Reading | None = None
        self.lenses: dict[str, list[types.CodeLens]] = {}
        """What the client was given last for the parts that it asked for."""
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        """The diagnostics that the client shows, for the parts that have any."""
        self.report: Report | None = None
        """The result joined with the text, where there is a result."""
        self._derived: dict[Hashable, Any] = {}
        self._places: dict[Span, Span | None] = {}

    @property
    def key(self) -> str:
        """What its runs and its stored result are known by."""
        return str(self.path or self.uri)

    @property
    def text(self) -> str:
        """The text as it is."""
        return "\n".join(part.lines.text for part in self.parts)

    def program(self) -> Callable[[], Combined]:
        """How to make Python of the text as it is now; that takes time.

        The function raises `InputError` ("program-syntax") where the last reading tells more.
        """
        return partial(Combined, self.text, (), ())

    def change(self, parts: tuple[Part, ...]) -> None:
        """Take over new texts, and move what is known with them. Parts may come, go and change their order."""
        now = {part.uri: part for part in parts}

        @cache
        def inside(part: Part) -> Callable[[Span], Span | None]:
            return moves(part.lines, now[part.uri].lines)

        def move(place: Span) -> Span | None:
            old = self._part_at(place.line)
            new = now.get(old.uri)
            if new is None:
                return None
            moved: Span | None = _shifted(place, -old.first)
            if moved is not None and new.lines is not old.lines:
                moved = inside(old)(moved)
            return moved and _shifted(moved, new.first)

        self._places = {span: place and move(place) for span, place in self._places.items()}
        self.parts = parts

    # Places as the client knows them

    def part(self, uri: str) -> Part | None:
        """The part of that URI."""
        return next((part for part in self.parts if part.uri == uri), None)

    def location(self, place: Span, encoding: Encoding) -> types.Location:
        """A place in the client's terms."""
        part = self._part_at(place.line)
        return types.Location(part.uri, to_range(part.lines, _shifted(place, -part.first), encoding))

    def position(self, uri: str, position: types.Position, encoding: Encoding) -> tuple[int, int] | None:
        """Line and column of a place that the client means; ``None``: there is no such part."""
        part = self.part(uri)
        if part is None:
            return None
        line, column = from_position(part.lines, position, encoding)
        return (part.first + line, column) if line < len(part.lines) else None

    def _part_at(self, line: int) -> Part:
        return self.parts[bisect_right(self.parts, line, key=lambda part: part.first) - 1]

    def take(self, reading: Reading) -> None:
        """Take over a reading of the text as it is now."""
        self._set(reading)
        self.problem = ""
        self._places = {site.span: site.span for site in reading.source.sites if not site.file}

    def realign(self, mapping: Mapping | None, result: Result | None) -> None:
        """Take over another result, and its alignment with the last reading."""
        if self.reading is not None:
            self._set(Reading(self.reading.source, mapping, result))

    def _set(self, reading: Reading) -> None:
        self.reading, self.report = reading, None
        self._derived.clear()
        if (result := reading.result) is not None and reading.mapping is not None:
            self.report = Report(
                self.key,
                reading.source,
                result.localization,
                reading.mapping,
                result.finished,
                result.capture,
            )

    def derived(self, key: Hashable, make: Callable[[Report], T]) -> T | None:
        """What is made of the report, made once; edits only move it. ``None`` where there is no report."""
        if self.report is None:
            return None
        if key not in self._derived:
            self._derived[key] = make(self.report)
        made: T = self._derived[key]
        return made

    @property
    def result(self) -> Result | None:
        """The result that is shown."""
        return self.reading.result if self.reading is not None else None

    @property
    def source(self) -> SourceMap | None:
        """What the last good reading found."""
        return self.reading.source if self.reading is not None else None

    def place(self, span: Span) -> Span | None:
        """Where a span of the last reading stands now; ``None`` if it is gone."""
        return self._places.get(span)

    def site_at(self, line: int, column: int) -> LayerSite | None:
        """The innermost construction around a place."""
        found: tuple[Span, LayerSite] | None = None
        for site in self.reading.source.sites if self.reading is not None else ():
            place = self.place(site.span)
            if (
                site.file
                or place is None
                or not ((place.line, place.column) <= (line, column) <= (place.end_line, place.end_column))
            ):
                continue
            if found is None or (place.line, place.column) >= (found[0].line, found[0].column):
                found = place, site
        return found[1] if found else None


def _shifted(span: Span, lines: int) -> Span:
    return Span(span.line + lines, span.column, span.end_line + lines, span.end_column)
