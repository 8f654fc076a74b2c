"""Which constructions are underlined, and what Problems says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from guider_engine.wire import LayerPath, LayerScore, ModelLayer
from guider_ls.errors import HELP
from guider_ls.present.phrases import (
    FORMULA_NAMES,
    counted,
    layer_name,
    number,
    older,
    siblings,
    tells_apart,
)
from guider_ls.present.report import Report
from guider_ls.project.settings import Settings, Severity
from guider_ls.source.sites import LayerSite, Span

CODE = "suspicious-layer"
CODE_LINK = f"{HELP}#{CODE}"


@dataclass(frozen=True, slots=True)
class Related:
    """Another construction that belongs to a finding, and why."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One underlined construction."""

    span: Span
    message: str
    severity: Severity
    layer: LayerPath
    """The most suspicious layer that it constructed."""
    related: tuple[Related, ...] = ()


def findings(report: Report, settings: Settings) -> tuple[Finding, ...]:
    """The constructions of the highest ranks, the most suspicious first.

    Nothing is found where nothing was ranked, where the ranking singles nothing out (every layer has the same
    score), or on constructions that the program marks as ignored.
    """
    if report.localization.outcome != "ranking":
        return ()
    chosen = {layer.path: (layer, score) for layer, score in _suspicious(report, settings)}
    by_site: dict[Span, tuple[LayerSite, list[LayerPath]]] = {}
    for match in report.mapping.matches:
        if match.layer in chosen and not match.site.ignored and not match.site.file:
            by_site.setdefault(match.site.span, (match.site, []))[1].append(match.layer)
    found = [
        _finding(report, site, [chosen[path] for path in paths], settings) for site, paths in by_site.values()
    ]
    return tuple(finding for _, finding in sorted(found, key=lambda pair: (pair[0], pair[1].span)))


def _suspicious(report: Report, settings: Settings) -> Iterator[tuple[ModelLayer, LayerScore]]:
    """Layers of a high rank; one inside a composite layer counts if the composite has a high rank too."""
    high: set[LayerPath] = {()}
    for layer, score in report.layers():
        if layer.path[:-1] not in high or score.rank is None or score.rank > settings.diagnostics_top:
            continue
        peers = siblings(report, layer.path)
        if score.tied and len(peers) > 1 and all(peer.rank == score.rank for peer in peers):
            continue
        suspiciousness = score.suspiciousness or 0.0
        if suspiciousness > 0 and suspiciousness >= settings.diagnostics_minimum:
            high.add(layer.path)
            yield layer, score


def _finding(
    report: Report, site: LayerSite, layers: list[tuple[ModelLayer, LayerScore]], settings: Settings
) -> tuple[tuple[int, int], Finding]:
    layer, score = min(layers, key=lambda pair: (len(pair[0].path), pair[1].rank or 0, pair[0].path))
    peers = siblings(report, layer.path)
    localization = report.localization
    tests = localization.tests
    place = f"ranks {score.rank} of {len(peers)}"
    tied = sum(peer.rank == score.rank for peer in peers) - 1
    if tied > 0:
        place += f", tied with {counted(tied, 'other')}"
    if len(layer.path) > 1:
        place += f' inside "{report.layer(layer.path[:-1])[0].name}"'
    basis = f"{FORMULA_NAMES[localization.inputs.formula]}, {tests.failed} of {counted(tests.total, 'test')} failed"
    sentences = [f"{layer_name(layer)} {place} in suspiciousness: {number(score.suspiciousness)} ({basis})"]
    if not tells_apart(localization, score):
        sentences.append("Its neurons are as active on passing as on failing tests")
    built = report.mapping.of_site(site)
    if len(built) > 1:
        sentences.append(f"This line constructs {len(built)} layers of the model")
    stale = next((older(match.differences) for match in built if match.differences), "")
    if stale:
        sentences.append(stale[0].upper() + stale[1:])
    sentences.append("Suspicion, not proof")
    message = ". ".join(sentences) + "."
    order = (len(layer.path), score.rank or 0)
    return order, Finding(
        site.span, message, settings.diagnostics_severity, layer.path, _related(report, site, layer)
    )


def _related(report: Report, site: LayerSite, layer: ModelLayer) -> tuple[Related, ...]:
    """The composite layer around it, and the constructions with the same score."""
    found: list[Related] = []
    outer = report.mapping.of_layer(layer.path[:-1])
    if outer is not None and not outer.site.file:
        found.append(Related(outer.site.span, f"inside {layer_name(report.layer(outer.layer)[0])}"))
    own = report.layer(layer.path)[1]
    for peer in siblings(report, layer.path):
        match = report.mapping.of_layer(peer.path)
        if peer.rank == own.rank and match is not None and match.site != site and not match.site.file:
            tied = report.layer(peer.path)[0]
            found.append(Related(match.site.span, f"the same suspiciousness: {layer_name(tied)}"))
    return tuple(found)
