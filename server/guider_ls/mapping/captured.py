"""What a run of the program says of its lines: where each layer was constructed, and what became of the others.

The text may have changed since, so places of the run are moved over the difference between the text that ran and
the text as it is now. A call that was edited is still the same call; one that was deleted has no place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from guider_engine.wire import LayerPath, ModelLayer, ModelSummary, Origin, Stray
from guider_ls.mapping.comparison import automatic_number, fits
from guider_ls.mapping.mapping import UnmatchedLayer
from guider_ls.mapping.reasons import line, lines
from guider_ls.source.catalog import is_application
from guider_ls.source.comments import is_ignored
from guider_ls.source.lines import Lines
from guider_ls.source.moves import moves
from guider_ls.source.sites import LayerSite, Location, SourceMap, Span

_CALLEE = re.compile(r"(\w+)\s*\(")

Move = Callable[[Span], Span | None]


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the program that made the model, and the texts of its files."""

    program: str
    """Absolute path of the program, which is ``""`` in `LayerSite.file`."""
    texts: Mapping[str, tuple[str, str]]
    """By absolute path: the text that ran, and the text now."""
    strays: tuple[Stray, ...] = ()
    others: tuple[tuple[str, ModelSummary], ...] = ()
    """The other models that it trained or used, by name."""


@dataclass(slots=True)
class Settled:
    """What the origins of a model's layers say of them."""

    sites: list[LayerSite]
    """Those of the text, then those of calls of which only the run says that they construct layers."""
    found: dict[LayerPath, tuple[ModelLayer, int, str]] = field(default_factory=dict)
    """For each paired layer its site, by index, and the reason."""
    failed: dict[LayerPath, UnmatchedLayer] = field(default_factory=dict)
    """Layers whose line is gone, and those that Keras inserted."""
    doubtful: dict[LayerPath, tuple[int, ...]] = field(default_factory=dict)
    """Layers of which the run knows the line, but not which of several calls in it."""
    callers: dict[LayerPath, tuple[Location, ...]] = field(default_factory=dict)


class Origins:
    """Finds the calls of a run in the program as it is now."""

    def __init__(self, source: SourceMap, run: Run) -> None:
        """Index the sites of ``source``."""
        self._run = run
        self.changed = any(then != now for then, now in run.texts.values())
        """Whether a text is another than the one that ran."""
        self._sites = list(source.sites)
        self._texts = {self._file(path): texts for path, texts in run.texts.items()}
        self._lines: dict[str, tuple[Lines, Lines]] = {}
        self._moves: dict[str, Move] = {}
        self._by_end: dict[tuple[str, tuple[int, int]], int] = {}
        self._by_line: dict[tuple[str, int], list[int]] = {}
        for index, site in enumerate(self._sites):
            self._index(index, site)
        self._strays: dict[int, list[Stray]] | None = None
        self._elsewhere: dict[int, str] | None = None

    def _index(self, index: int, site: LayerSite) -> None:
        span = site.span
        self._by_end[site.file, _end(span)] = index
        for number in range(span.line, span.end_line + 1):
            self._by_line.setdefault((site.file, number), []).append(index)

    def settle(self, model: ModelSummary) -> Settled:
        """Pair the layers of a model with the sites at their origins."""
        settled = Settled(self._sites)
        shared: dict[tuple[Origin, str], list[ModelLayer]] = {}
        for layer in sorted(model.all_layers(), key=_is_input):  # inputs last: Keras inserts some
            if (origin := layer.origin) is None:
                continue
            settled.callers[layer.path] = tuple(
                location for call in layer.callers if (location := self.location(call)) is not None
            )
            location = self.location(origin)
            if location is None:
                settled.failed[layer.path] = UnmatchedLayer(layer.path, self._gone(origin))
            elif origin.column is None:
                shared.setdefault((origin, layer.class_name), []).append(layer)
            else:
                self._pair(settled, layer, location, self._at_end(location))
        for (origin, _), layers in shared.items():
            self._settle_line(settled, origin, layers)
        for path, (layer, index, _) in settled.found.items():
            settled.found[path] = layer, index, self._reason(layer, self._sites[index], settled.callers[path])
        return settled

    def _pair(self, settled: Settled, layer: ModelLayer, location: Location, index: int | None) -> None:
        """Pair a layer with the site at a place, or with a new one."""
        site = self._sites[index] if index is not None else None
        fitting = site is not None and (fits(site, layer) or _makes_others(site))
        if _is_input(layer) and not fitting and self._callee(location) not in {"Input", "InputLayer"}:
            settled.failed[layer.path] = UnmatchedLayer(layer.path, "inserted by Keras")
            return
        if site is not None and not fitting and layer.origin and self._edited(layer.origin, location):
            reason = f"made by {self._where(location)}, which constructs something else now"
            settled.failed[layer.path] = UnmatchedLayer(layer.path, reason)
            return
        if index is None:
            index = self._new_site(layer, location)
        elif not self._sites[index].qualified_name and self._sites[index].class_name != layer.class_name:
            self._sites[index] = self._made_site(location, self._callee(location))
        settled.found[layer.path] = layer, index, ""

    def _settle_line(self, settled: Settled, origin: Origin, layers: list[ModelLayer]) -> None:
        """Pair layers of one class of which the run knows the line only."""
        location = self.location(origin)
        assert location is not None  # or they are not here
        at = [self._sites[index] for index in self._by_line.get((location.file, location.span.line), ())]
        own = [site for site in at if site.span.line == location.span.line] or at
        candidates = [site for site in own if fits(site, layers[0])] or [
            site for site in own if _makes_others(site)
        ]
        # Calls end in the order in which they are evaluated.
        candidates.sort(key=lambda site: _end(site.span))
        indices = [self._by_end[site.file, _end(site.span)] for site in candidates]
        if len(indices) < 2:
            for layer in layers:
                self._pair(settled, layer, location, indices[0] if indices else None)
        elif order := self._in_order(origin, layers, len(indices)):
            for layer, index in zip(order, indices, strict=True):
                self._pair(settled, layer, location, index)
        else:
            settled.doubtful.update((layer.path, tuple(indices)) for layer in layers)

    def _in_order(self, origin: Origin, layers: list[ModelLayer], calls: int) -> list[ModelLayer]:
        """The layers in the order of their construction, if each of that many calls in their line made one of them."""
        numbers = [automatic_number(layer) for layer in layers]
        strays = any((s.origin, s.class_name) == (origin, layers[0].class_name) for s in self._run.strays)
        once = len({layer.callers for layer in layers}) == 1
        if len(layers) != calls or strays or not once or None in numbers or len(set(numbers)) < calls:
            return []
        return sorted(layers, key=lambda layer: automatic_number(layer) or 0)

    def _reason(self, layer: ModelLayer, site: LayerSite, callers: Sequence[Location]) -> str:
        others = _makes_others(site) and site.class_name != layer.class_name
        made = f"made by {site.class_name}(…)" if others else "constructed here"
        called = f", called from {self._where(callers[0], site.file)}" if callers else ""
        return f"{made} when the program ran{called}"

    def _at_end(self, location: Location) -> int | None:
        """The site that ends where a call ends; where a call starts, interpreters see differently."""
        return self._by_end.get((location.file, _end(location.span)))

    # Sites that only the run knows

    def _new_site(self, layer: ModelLayer, location: Location) -> int:
        index = len(self._sites)
        self._sites.append(self._made_site(location, layer.class_name))
        self._index(index, self._sites[index])
        return index

    def _made_site(self, location: Location, class_name: str) -> LayerSite:
        lines = self._now(location.file)
        numbers = range(location.span.line, location.span.end_line + 1)
        comments = {number: lines.line(number) for number in numbers}
        return LayerSite(
            span=location.span,
            class_name=class_name,
            qualified_name="",
            arguments={},
            name_pattern=None,
            scope="",
            repeats=False,
            conditional=False,
            ignored=is_ignored(location.span, comments),
            complete=False,
            file=location.file,
        )

    def _callee(self, location: Location) -> str:
        """Last part of the name of what is called at a place."""
        found = _CALLEE.search(_text(self._now(location.file), location.span))
        return found[1] if found else ""

    # Sites without a layer

    def unmatched(self, index: int) -> tuple[str, bool] | None:
        """Why a site has no layer in the model, and whether nothing uses what it constructs; ``None``: no idea."""
        site = self._sites[index]
        if strays := self._strays_at(index):
            times = _times(sum(stray.count for stray in strays))
            if any(stray.in_call for stray in strays):
                return (
                    f"constructed {times} inside a call when the program ran: nothing trains its weights",
                    True,
                )
            return f"constructed {times} when the program ran, never part of a model", True
        if (other := self._of_others(index)) is not None:
            return f'part of another model, "{other}"', False
        texts = self._texts.get(site.file)
        if texts is None or site.class_name == "InputLayer":
            return None
        if texts[0] != texts[1]:
            then, now = self._both(site.file)
            before = moves(now, then)(site.span)
            if before is None or _text(then, before) != _text(now, site.span):
                return "newer than the model", False
        return "no layer of the model was constructed here when the program ran", False

    def _strays_at(self, index: int) -> list[Stray]:
        if self._strays is None:
            self._strays = {}
            for stray in self._run.strays:
                at = self._only_site(stray.origin, stray.class_name)
                if at is not None:
                    self._strays.setdefault(at, []).append(stray)
        return self._strays.get(index, [])

    def _of_others(self, index: int) -> str | None:
        """The name of another model of the run that has a layer of a site."""
        if self._elsewhere is None:
            self._elsewhere = {}
            for name, model in self._run.others:
                for layer in model.all_layers():
                    at = self._only_site(layer.origin, layer.class_name) if layer.origin is not None else None
                    if at is not None:
                        self._elsewhere.setdefault(at, name)
        return self._elsewhere.get(index)

    def _only_site(self, origin: Origin, class_name: str) -> int | None:
        """The site at an origin, if there is just one."""
        location = self.location(origin)
        if location is None:
            return None
        span = location.span
        if origin.column is not None:
            return self._at_end(location)
        at = [
            index
            for index in self._by_line.get((location.file, span.line), ())
            if self._sites[index].class_name == class_name and self._sites[index].span.line == span.line
        ]
        return at[0] if len(at) == 1 else None

    # Places

    def location(self, origin: Origin) -> Location | None:
        """Where a call of the run stands now; without columns: the line. ``None``: it is gone."""
        file = self._file(origin.file)
        if file not in self._texts:
            return None
        span = self._span(origin)
        if self._texts[file][0] != self._texts[file][1]:
            if file not in self._moves:
                self._moves[file] = moves(*self._both(file))
            moved = self._moves[file](span)
            then, now = self._both(file)
            if moved is None or _text(now, moved) != _text(then, span):
                moved = self._same_elsewhere(file, span) or moved
            if moved is None:
                return None
            span = moved
        return Location(file, span)

    def _same_elsewhere(self, file: str, span: Span) -> Span | None:
        """A call that was cut and pasted, if no other reads the same."""
        then, now = self._both(file)
        text = _text(then, span)
        if text and then.text.count(text) == now.text.count(text) == 1:
            start = now.text.index(text)
            return Span(*now.place(start), *now.place(start + len(text)))
        return None

    def _span(self, origin: Origin) -> Span:
        """The call of an origin in the text that ran; its line, without the white space around, where that is all."""
        column, end_line, end_column = origin.column, origin.end_line, origin.end_column
        if column is not None and end_line is not None and end_column is not None:
            return Span(origin.line, column, end_line, end_column)
        text = self._both(self._file(origin.file))[0].line(origin.line)
        return Span(origin.line, len(text) - len(text.lstrip()), origin.line, len(text.rstrip()))

    def _edited(self, origin: Origin, location: Location) -> bool:
        then, now = self._both(location.file)
        return _text(then, self._span(origin)) != _text(now, location.span)

    def _file(self, path: str) -> str:
        return "" if path == self._run.program else path

    def _both(self, file: str) -> tuple[Lines, Lines]:
        if file not in self._lines:
            then, now = self._texts[file]
            self._lines[file] = Lines(then), Lines(now)
        return self._lines[file]

    def _now(self, file: str) -> Lines:
        return self._both(file)[1]

    def _gone(self, origin: Origin) -> str:
        where = line(self._file(origin.file), origin.line)
        return f"made by {where} when the program ran, which is gone"

    def _where(self, location: Location, seen_from: str = "") -> str:
        """A line, with its file where that is another."""
        file = "" if location.file == seen_from else location.file or self._run.program
        return line(file, location.span.line)


def doubt(layer: ModelLayer, candidates: Sequence[LayerSite]) -> UnmatchedLayer:
    """A layer that came from one of several calls, and nothing says from which."""
    found = lines(candidates)
    together = len({(site.file, site.span.line) for site in candidates}) == 1
    reason = f"could be each of {len(candidates)} calls in {found}" if together else f"could be {found}"
    return UnmatchedLayer(layer.path, reason, tuple(candidates))


def _makes_others(site: LayerSite) -> bool:
    """Whether a call may make layers of other classes than its own name says."""
    return is_application(site.qualified_name) or not site.qualified_name.startswith(
        (".", "keras.layers.", "keras.Seq")
    )


def _is_input(layer: ModelLayer) -> bool:
    return layer.class_name == "InputLayer" and layer.builtin


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column


def _text(text: Lines, span: Span) -> str:
    return text.text[text.offset(span.line, span.column) : text.offset(span.end_line, span.end_column)]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
