"""An open document: its text, what was last read of it, and the result that belongs to it."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from lsprotocol import types
from pygls.uris import to_fs_path

from guider_engine.wire import CaptureRecord, Localization
from guider_ls.analysis.fingerprint import Fingerprint
from guider_ls.lsp.positions import Encoding, from_position, to_range
from guider_ls.mapping.mapping import Mapping as Alignment
from guider_ls.present.report import Report
from guider_ls.project.ran import made
from guider_ls.source.comments import is_ignored
from guider_ls.source.lines import Lines
from guider_ls.source.moves import moves
from guider_ls.source.notebook import Combined
from guider_ls.source.sites import LayerSite, Location, SourceMap, Span

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

    @property
    def made(self) -> str:
        """When the model was made, for people; empty where that is not known."""
        model = next((s for s in self.fingerprint.stamps if s.path == self.localization.inputs.model), None)
        return made(self.capture, model.modified / 1e9 if model is not None else None)


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


Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says, aligned with the model of the result that was there at the time."""

    source: SourceMap
    mapping: Alignment | None
    result: Result | None
    parts: Parts
    """The text that was read."""
    others: Mapping[str, Parts]
    """The texts of the other open documents at that time, by path."""


class Places:
    """Where stretches of a text that was read stand in the text as it is now."""

    def __init__(self) -> None:
        """None is known."""
        self._now: dict[Span, Span | None] = {}

    def add(self, spans: Iterable[Span], move: Callable[[Span], Span | None]) -> None:
        """Follow more of them, each from where ``move`` says that it is now."""
        self._now.update({span: move(span) for span in spans if span not in self._now})

    def move(self, move: Callable[[Span], Span | None]) -> None:
        """Move all of them with an edit."""
        self._now = {span: place and move(place) for span, place in self._now.items()}

    def of(self, span: Span) -> Span | None:
        """Where it is; ``None`` if it is gone."""
        return self._now.get(span)


@dataclass(frozen=True, slots=True)
class View:
    """What a document shows of a report: the constructions and calls that stand in its file."""

    report: Report
    host: Document
    """Whose result it is: the document itself, or a program that has it as a module."""
    file: str
    """The document's, as in `LayerSite.file`."""
    places: Places

    def at(self, line: int, column: int) -> LayerSite | Location | None:
        """The innermost construction around a place, or call that makes layers in other files."""
        known: list[tuple[Span, LayerSite | Location]] = [
            *((call.span, call) for call in self.report.calls if call.file == self.file),
            *((site.span, site) for site in self.report.sites if site.file == self.file),
        ]
        return _innermost(known, self.places, line, column)


class Document:
    """One open program. Its places are those of the last good reading, moved with every edit since.

    Inside, a place is a line and column of the whole program. The client means a part and a place in it.
    """

    def __init__(self, uri: str, path: Path | None, parts: Parts) -> None:
        """Open a document; ``path`` is ``None`` where it is not a file."""
        self.uri = uri
        self.path = path
        self.parts = parts
        self.problem = ""
        """Why the text as it is cannot be read, where it cannot."""
        self.status = Status()
        self.read_once = asyncio.Event()
        """Set when the first reading has ended, well or not."""
        self.took = 0.0
        """Seconds that the last reading took."""
        self.reading: Reading | None = None
        self.lenses: dict[str, list[types.CodeLens]] = {}
        """What the client was given last for the parts that it asked for."""
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        """The diagnostics that the client shows, for the parts that have any."""
        self.report: Report | None = None
        """The result joined with the text, where there is a result."""
        self.guest: View | None = None
        """What the result of another document says of this file."""
        self.places = Places()
        """Of what the last good reading found."""
        self._derived: dict[Hashable, Any] = {}

    @property
    def key(self) -> str:
        """What its runs and its stored result are known by."""
        return str(self.path or self.uri)

    @property
    def text(self) -> str:
        """The text as it is."""
        return text_of(self.parts)

    def program(self) -> Callable[[], Combined]:
        """How to make Python of the text as it is now; that takes time.

        The function raises `InputError` ("program-syntax") where the last reading tells more.
        """
        return partial(Combined, self.text, (), ())

    def change(self, parts: Parts) -> None:
        """Take over new texts, and move what is known with them. Parts may come, go and change their order."""
        move = _moves(self.parts, parts)
        self.places.move(move)
        if self.guest is not None:
            self.guest.places.move(move)
        self.parts = parts

    # Places as the client knows them

    def part(self, uri: str) -> Part | None:
        """The part of that URI."""
        return next((part for part in self.parts if part.uri == uri), None)

    def location(self, place: Span, encoding: Encoding) -> types.Location:
        """A place in the client's terms."""
        part = _part_at(self.parts, place.line)
        return types.Location(part.uri, to_range(part.lines, _shifted(place, -part.first), encoding))

    def position(self, uri: str, position: types.Position, encoding: Encoding) -> tuple[int, int] | None:
        """Line and column of a place that the client means; ``None``: there is no such part."""
        part = self.part(uri)
        if part is None:
            return None
        line, column = from_position(part.lines, position, encoding)
        return (part.first + line, column) if line < len(part.lines) else None

    # What is known

    def take(self, reading: Reading) -> None:
        """Take over a reading of the text as it is now."""
        self.problem = ""
        self.places = Places()
        self._set(reading)

    def realign(self, mapping: Alignment | None, result: Result | None) -> None:
        """Take over another result, and its alignment with the last reading."""
        if self.reading is not None:
            self._set(replace(self.reading, mapping=mapping, result=result))

    def _set(self, reading: Reading) -> None:
        self.reading, self.report = reading, None
        self._derived.clear()
        spans = [*(site.span for site in reading.source.sites if not site.file), *reading.source.training]
        if (result := reading.result) is not None and reading.mapping is not None:
            self.report = Report(
                self.key,
                reading.source,
                result.localization,
                reading.mapping,
                result.finished,
                result.capture,
                result.made,
            )
            spans += _spans(self.report, "")
        self.places.add(spans, _moves(reading.parts, self.parts))

    def visit(self, host: Document | None) -> bool:
        """Show what the result of another document says of this file; return whether that is something else now."""
        before, reading = self.guest, host.reading if host is not None else None
        parts = reading.others.get(self.key) if reading is not None else None
        if host is None or host.report is None or parts is None:
            self.guest = None
        elif before is None or before.report is not host.report:
            places = Places()
            places.add(_spans(host.report, self.key), _moves(parts, self.parts))
            self.guest = View(host.report, host, self.key, places)
        if self.guest is before:
            return False
        self._derived.clear()
        return True

    @property
    def view(self) -> View | None:
        """What is shown: the document's own result, else what another one says of this file."""
        return self.guest if self.report is None else View(self.report, self, "", self.places)

    @property
    def files(self) -> frozenset[str]:
        """The other files that what is known of this one depends on."""
        modules = frozenset(self.source.modules if self.source is not None else ())
        return modules | (self.report.files if self.report is not None else modules) - {""}

    def derived(self, key: Hashable, make: Callable[[View], T]) -> T | None:
        """What is made of the view, made once; edits only move it. ``None`` where there is none."""
        view = self.view
        if view is None:
            return None
        if key not in self._derived:
            self._derived[key] = make(view)
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

    def is_ignored(self, place: Span) -> bool:
        """Whether a line of a stretch carries ``# guider: ignore``, as the text is now."""
        part = _part_at(self.parts, place.line)
        lines = {n: part.lines.line(n - part.first) for n in range(place.line, place.end_line + 1)}
        return is_ignored(place, lines)

    def site_at(self, line: int, column: int) -> LayerSite | None:
        """The innermost construction around a place."""
        sites = [site for site in (self.source.sites if self.source is not None else ()) if not site.file]
        return _innermost([(site.span, site) for site in sites], self.places, line, column)


def text_of(parts: Parts) -> str:
    """The text of some parts together."""
    return "\n".join(part.lines.text for part in parts)


def _spans(report: Report, file: str) -> list[Span]:
    """All that a report shows in a file."""
    sites = [site.span for site in report.sites if site.file == file]
    return sites + [call.span for call in report.calls if call.file == file]


def _innermost(known: Iterable[tuple[Span, T]], places: Places, line: int, column: int) -> T | None:
    """Of things at stretches of the text, the innermost one around a place."""
    found: tuple[Span, T] | None = None
    for span, thing in known:
        place = places.of(span)
        if place is None or not (
            (place.line, place.column) <= (line, column) <= (place.end_line, place.end_column)
        ):
            continue
        if found is None or (place.line, place.column) >= (found[0].line, found[0].column):
            found = place, thing
    return found[1] if found else None


def _part_at(parts: Parts, line: int) -> Part:
    if len(parts) == 1:
        return parts[0]
    return parts[bisect_right(parts, line, key=lambda part: part.first) - 1]


def _moves(before: Parts, after: Parts) -> Callable[[Span], Span | None]:
    """How to move a place from one text to the next. Parts may come, go and change their order."""
    if before is after:
        return lambda place: place
    now = {part.uri: part for part in after}

    @cache
    def inside(part: Part) -> Callable[[Span], Span | None]:
        return moves(part.lines, now[part.uri].lines)

    def move(place: Span) -> Span | None:
        old = _part_at(before, place.line)
        new = now.get(old.uri)
        if new is None:
            return None
        moved: Span | None = _shifted(place, -old.first)
        if moved is not None and new.lines is not old.lines:
            moved = inside(old)(moved)
        return moved and _shifted(moved, new.first)

    return move


def _shifted(span: Span, lines: int) -> Span:
    if lines == 0:
        return span
    return Span(span.line + lines, span.column, span.end_line + lines, span.end_column)
