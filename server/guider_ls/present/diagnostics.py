"""Which constructions are underlined, and what Problems says of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from guider_engine.wire import LayerPath, LayerScore, ModelLayer
from guider_ls.errors import HELP
from guider_ls.mapping.mapping import Match
from guider_ls.mapping.reasons import line
from guider_ls.present.phrases import (
    FORMULA_NAMES,
    counted,
    failures,
    layer_name,
    number,
    rank_range,
    stale,
    tells_apart,
    whole,
)
from guider_ls.present.report import Report
from guider_ls.project.settings import Settings, Severity
from guider_ls.source.sites import Location, Span

SUSPICIOUS = "suspicious-layer"
UNUSED = "layer-never-used"


@dataclass(frozen=True, slots=True)
class Related:
    """Another construction that belongs to a finding, and why."""

    location: Location
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One underlined construction, or a call that makes layers in another file."""

    span: Span
    message: str
    severity: Severity
    layer: LayerPath
    """The most suspicious layer that it constructed; empty where it is about none."""
    related: tuple[Related, ...] = ()
    code: str = SUSPICIOUS

    @property
    def link(self) -> str:
        """What explains the code."""
        return f"{HELP}#{self.code}"


def findings(report: Report, settings: Settings, file: str = "") -> tuple[Finding, ...]:
    """What is underlined in a file: the highest ranks, the most suspicious first, then layers that nothing uses.

    A layer of a high rank that is made in another file is found on the call of this one that makes it. No rank is
    found where nothing was ranked, where the ranking singles nothing out (every layer has the same score), or on
    constructions that the program marks as ignored.

    Args:
        report: of the program.
        settings: of its project.
        file: the file, as in `LayerSite.file`.
    """
    return (*_suspects(report, settings, file), *_unused(report, settings, file))


def _suspects(report: Report, settings: Settings, file: str) -> Iterator[Finding]:
    if report.localization.outcome != "ranking":
        return
    chosen = {layer.path for layer, _ in _suspicious(report, settings)}
    found: dict[Span, list[Match]] = {}
    for match in report.mapping.matches:
        if match.site.file == file:
            found.setdefault(match.site.span, []).append(match)
    found.update((call.span, list(matches)) for call, matches in report.calls.items() if call.file == file)
    order: list[tuple[int, int, Span, LayerPath]] = []
    for span, matches in found.items():
        told = [match for match in matches if match.layer in chosen and not match.site.ignored]
        if told:
            layer, score = report.layers_of(told)[0]
            order.append((len(layer.path), score.rank or 0, span, layer.path))
    for *_, span, path in sorted(order):
        yield _finding(report, settings, file, span, found[span], path)


def _unused(report: Report, settings: Settings, file: str) -> Iterator[Finding]:
    for unmatched in report.mapping.unmatched_sites:
        site = unmatched.site
        if unmatched.unused and site.file == file and not site.ignored:
            message = f"{site.class_name}: {unmatched.reason}."
            yield Finding(site.span, message, settings.diagnostics_severity, (), code=UNUSED)


def _suspicious(report: Report, settings: Settings) -> Iterator[tuple[ModelLayer, LayerScore]]:
    """Layers of a high rank; one inside a composite layer counts if the composite has a high rank too."""
    high: set[LayerPath] = {()}
    for layer, score in report.layers():
        if layer.path[:-1] not in high or score.rank is None or score.rank > settings.diagnostics_top:
            continue
        peers = report.peers(layer.path)
        if score.tied and len(peers) > 1 and all(peer.rank == score.rank for peer in peers):
            continue
        suspiciousness = score.suspiciousness or 0.0
        if suspiciousness > 0 and suspiciousness >= settings.diagnostics_minimum:
            high.add(layer.path)
            yield layer, score


def _finding(
    report: Report,
    settings: Settings,
    file: str,
    span: Span,
    matches: Sequence[Match],
    path: LayerPath,
) -> Finding:
    layer, score = report.layer(path)
    localization = report.localization
    tests = localization.tests
    match = next(match for match in matches if match.layer == layer.path)
    elsewhere = match.site.file != file
    made = (
        f", made in {line(match.site.file or report.program or '', match.site.span.line, match.site.cell)},"
        if elsewhere
        else ""
    )
    peers = report.peers(layer.path)
    place = f"ranks {score.rank}{rank_range(score)} of {len(peers)}"
    tied = sum(peer.rank == score.rank for peer in peers) - 1
    if tied > 0:
        place += f", tied with {counted(tied, 'other')}"
    if len(layer.path) > 1:
        place += f' inside "{report.layer(layer.path[:-1])[0].name}"'
    basis = f"{FORMULA_NAMES[localization.inputs.formula]}, {failures(tests)}"
    sentences = [
        f"{layer_name(layer)}{made} {place} in suspiciousness: {number(score.suspiciousness)} ({basis})"
    ]
    if not tells_apart(localization, score):
        sentences.append("Its neurons are as active on passing as on failing tests")
    sentences += _others(report, matches)
    if not elsewhere and (older := stale(report, matches)):
        sentences.append(older[0].upper() + older[1:])
    sentences.append("Suspicion, not proof")
    related = _related(report, match, layer, elsewhere=elsewhere)
    return Finding(span, ". ".join(sentences) + ".", settings.diagnostics_severity, layer.path, related)


def _others(report: Report, matches: Sequence[Match]) -> Iterator[str]:
    """That a line makes several layers, and how far apart they rank."""
    outer = whole(matches)
    if len(outer) < 2:
        return
    ranks = sorted(score.rank for _, score in report.layers_of(outer) if score.rank is not None)
    alike = len({match.layer[:-1] for match in outer}) == 1
    spread = f", on ranks {ranks[0]} to {ranks[-1]}" if alike and len(ranks) > 1 else ""
    yield f"This line makes {len(outer)} layers of the model{spread}"


def _related(report: Report, match: Match, layer: ModelLayer, *, elsewhere: bool) -> tuple[Related, ...]:
    """Where the layer is made, the composite layer around it, and the constructions with the same score."""
    found: list[Related] = []
    if elsewhere:
        found.append(Related(match.site.location, f"made here: {layer_name(layer)}"))
    if (outer := report.mapping.of_layer(layer.path[:-1])) is not None:
        found.append(Related(outer.site.location, f"inside {layer_name(report.layer(outer.layer)[0])}"))
    own = report.layer(layer.path)[1]
    for peer in report.peers(layer.path):
        other = report.mapping.of_layer(peer.path)
        if peer.rank == own.rank and other is not None and other.site.location != match.site.location:
            tied = report.layer(peer.path)[0]
            found.append(Related(other.site.location, f"the same suspiciousness: {layer_name(tied)}"))
    return tuple(found)
