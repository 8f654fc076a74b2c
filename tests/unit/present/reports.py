"""Reports of a program with one layer on each line, as the language server shows them."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.unit.analysis.results import layer, localization, score

from guider_engine.wire import LayerScore, Localization, ModelLayer
from guider_ls.mapping.mapping import Mapping, Match, UnmatchedSite
from guider_ls.present.report import Report
from guider_ls.source.sites import LayerSite, SourceMap, Span


def site(line: int, **changes: Any) -> LayerSite:
    made = LayerSite(
        Span(line, 4, line, 13), "Dense", "keras.layers.Dense", {"units": 64}, None, "", False, False
    )
    return dataclasses.replace(made, **changes)


def scores(*values: float | None) -> tuple[LayerScore, ...]:
    """Scores of the layers of a flat model, ranked as the engine ranks."""
    known = sorted((v for v in values if v is not None), reverse=True)
    return tuple(
        score(
            (i,),
            v,
            None if v is None else known.index(v) + 1,
            tied=known.count(v) > 1 if v is not None else False,
        )
        for i, v in enumerate(values)
    )


def layers(count: int) -> tuple[ModelLayer, ...]:
    return tuple(layer((i,), f"layer_{i}") for i in range(count))


def report(
    found: Localization, matches: tuple[Match, ...], unmatched: tuple[UnmatchedSite, ...] = ()
) -> Report:
    items: tuple[Match | UnmatchedSite, ...] = (*matches, *unmatched)
    sites: list[LayerSite] = []
    for item in items:
        if item.site not in sites:
            sites.append(item.site)
    source = SourceMap(tuple(sorted(sites, key=lambda s: s.span)), ())
    return Report("/project/train.py", source, found, Mapping(matches, unmatched, ()), 1_700_000_000.0)


def ranked(*values: float | None, **site_changes: Any) -> Report:
    """A report of layers with these suspiciousnesses, layer ``n`` on line ``n``."""
    found = localization(layers(len(values)), scores(*values))
    return report(
        found, tuple(Match(site(i, **site_changes), (i,), f"number {i}") for i in range(len(values)))
    )
