"""The line of text above each layer construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from guider_ls.mapping.mapping import Match
from guider_ls.present.phrases import (
    conditions,
    counted,
    made_in,
    neurons,
    number,
    rank,
    rank_range,
    ranks,
    stale,
    unmatched,
    whole,
)
from guider_ls.present.report import Report
from guider_ls.source.sites import LayerSite, SourceMap, Span

Action = Literal["guider.localize", "guider.showReport", "guider.trainAndLocalize", "guider.cancel"]

_LONGEST = 90
"""Characters of a lens."""


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


def training_lens(
    source: SourceMap, text: str, action: Action = "guider.trainAndLocalize"
) -> LensText | None:
    """The lens of running the program, on the first call that trains.

    Where the text shows none, but a model that is saved or modules that may train it, it is on the first construction.
    """
    own = [site.span for site in source.sites if not site.file]
    trains = source.training or (own if source.artifacts or source.modules else ())
    return LensText(trains[0], text, action) if trains else None


def ranked_lenses(report: Report, file: str = "") -> tuple[LensText, ...]:
    """Lenses of a program that was localized.

    Args:
        report: of the program.
        file: the file that they are for, as in `LayerSite.file`: on each of its constructions, and on its calls
            that make layers in other files.
    """
    sites = (
        (site.span, _text(report, site)) for site in report.sites if site.file == file and not site.ignored
    )
    calls = ((call.span, _of_call(report, made)) for call, made in report.calls.items() if call.file == file)
    return tuple(LensText(span, text, "guider.showReport") for span, text in sorted((*sites, *calls)))


def _text(report: Report, site: LayerSite) -> str:
    matches = report.mapping.of_site(site)
    if not matches and site.class_name == "InputLayer":
        return "input, not ranked"
    if not matches:
        return _cut(f"{site.class_name} · {unmatched(report.mapping, site)}")
    older = stale(report, matches)
    if report.localization.outcome == "no-failure-signal":
        return older or f"{site.class_name} · no failure signal"
    place, details = _standing(report, matches, site.class_name)
    return " · ".join([*place, older] if older else [*place, *details])


def _of_call(report: Report, matches: Sequence[Match]) -> str:
    """What a call makes in other files."""
    outer = whole(matches)
    makes = f"{counted(len(outer), 'layer')} from {made_in((m.site for m in matches), report.program)}"
    if report.localization.outcome == "no-failure-signal":
        return f"{makes} · no failure signal"
    place, _ = _standing(report, matches, "")
    return " · ".join([makes, *(place if len(outer) == 1 else place[-1:])])


def _standing(report: Report, matches: Sequence[Match], class_name: str) -> tuple[list[str], list[str]]:
    """Where the layers of a line rank, and what else is known of its only one."""
    outer = whole(matches)
    layers = report.layers_of(outer)
    ranked = [(layer, score) for layer, score in layers if score.rank is not None]
    if not ranked:
        weightless = all(layer.parameters == 0 for layer, _ in layers)
        return ["in model, weightless, not ranked" if weightless else "in model, not ranked"], []
    layer, score = ranked[0]
    of = f"of {len(report.peers(layer.path))}"
    if len(ranked) > 1:
        block = bool(class_name) and any(layer.class_name != class_name for layer, _ in layers)
        if block or len({layer.path[:-1] for layer, _ in ranked}) > 1:
            inside = f" in {report.layer(layer.path[:-1])[0].name}" if len(layer.path) > 1 else ""
            name = [class_name] if block else []
            return [*name, counted(len(outer), "layer"), f"worst {rank(score)} {of}{inside}"], []
        return [f"{ranks([score for _, score in ranked])} {of}"], []
    most = [said for said, count in conditions(score) if 2 * count > (score.measured or score.sampled)]
    more = ["weightless"] if layer.parameters == 0 else []
    if len(matches) > len(outer):
        more.append(f"{counted(len(matches) - len(outer), 'layer')} inside")
    return [f"{rank(score)}{rank_range(score)} {of}", number(score.suspiciousness)], [
        neurons(score),
        *most,
        *more,
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
