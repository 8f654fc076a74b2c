"""The line of text above each layer construction."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from guider_ls.mapping.mapping import Match
from guider_ls.present.phrases import by_path, conditions, layers_of, neurons, number, older, rank, unmatched
from guider_ls.present.report import Report
from guider_ls.source.sites import LayerSite, SourceMap, Span

Action = Literal["guider.localize", "guider.showReport"]

_LONGEST = 90
"""Characters of a lens."""
_SHOWN = 5
"""Ranks named on a line that built many layers."""


@dataclass(frozen=True, slots=True)
class LensText:
    """What stands above one construction, and the command behind it."""

    span: Span
    text: str
    action: Action


def static_lenses(source: SourceMap, first: str = "GUIDER: localize") -> tuple[LensText, ...]:
    """Lenses of a program that was not localized yet; the ``first`` one offers to do so, or says why not."""
    sites = [site for site in source.sites if not site.ignored and not site.file]
    return tuple(
        LensText(site.span, f"{site.class_name} · not ranked yet" if index else first, "guider.localize")
        for index, site in enumerate(sites)
    )


def ranked_lenses(report: Report) -> tuple[LensText, ...]:
    """Lenses of a program that was localized, one on each construction."""
    text = _Texts(report)
    return tuple(
        LensText(site.span, text.of(site), "guider.showReport")
        for site in report.source.sites
        if not site.ignored and not site.file
    )


class _Texts:
    """Looks everything up by site: a program may have hundreds of them, and lenses are asked for often."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.layers = by_path(report)
        self.totals = Counter(path[:-1] for path, (_, score) in self.layers.items() if score.rank is not None)
        self.matches: dict[Span, list[Match]] = {}
        for match in report.mapping.matches:
            if not match.site.file:
                self.matches.setdefault(match.site.span, []).append(match)

    def of(self, site: LayerSite) -> str:
        matches = self.matches.get(site.span)
        if matches is None and site.class_name == "InputLayer":
            return "input, not ranked"
        if matches is None:
            return _cut(f"{site.class_name} · {unmatched(self.report.mapping, site)}")
        stale = next((older(match.differences) for match in matches if match.differences), "")
        if self.report.localization.outcome == "no-failure-signal":
            return stale or f"{site.class_name} · no failure signal"
        place, details = self.parts(matches)
        return " · ".join([*place, stale] if stale else [*place, *details])

    def parts(self, matches: list[Match]) -> tuple[list[str], list[str]]:
        """Where the layers of a line rank, and what else is known of its only one."""
        layers = layers_of(self.layers, matches)
        ranked = [(layer, score) for layer, score in layers if score.rank is not None]
        if not ranked:
            weightless = all(layer.parameters == 0 for layer, _ in layers)
            return ["in model, weightless, not ranked" if weightless else "in model, not ranked"], []
        layer, score = ranked[0]
        total = self.totals[layer.path[:-1]]
        if len(ranked) > 1:
            more = ", …" if len(ranked) > _SHOWN else ""
            return [f"{', '.join(rank(s) for _, s in ranked[:_SHOWN])}{more} of {total}"], []
        most = [said for said, count in conditions(score) if 2 * count > score.sampled]
        weightless_too = ["weightless"] if layer.parameters == 0 else []
        place = [f"{rank(score)} of {total}", number(score.suspiciousness)]
        return place, [neurons(score), *most, *weightless_too]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
