"""The pairing of a program's layer sites with a model's layers."""

from __future__ import annotations

from dataclasses import dataclass

from guider_engine.wire import LayerPath
from guider_ls.source.sites import LayerSite


@dataclass(frozen=True, slots=True)
class Difference:
    """An argument that the program now gives another value than the trained model has."""

    argument: str
    source: str
    model: str


@dataclass(frozen=True, slots=True)
class Match:
    """One layer and the site that constructed it."""

    site: LayerSite
    layer: LayerPath
    reason: str
    """For people: ``name "fc1"``, ``only Dense with units=64``, ``third Dense in order`` …"""
    differences: tuple[Difference, ...] = ()
    """Not empty: the model is older than this line."""


@dataclass(frozen=True, slots=True)
class UnmatchedSite:
    """A site that no layer of the model came from, and why."""

    site: LayerSite
    reason: str


@dataclass(frozen=True, slots=True)
class UnmatchedLayer:
    """A layer that no site of the program constructed, or more than one could have, and why."""

    layer: LayerPath
    reason: str
    candidates: tuple[LayerSite, ...] = ()
    """The sites it may have come from, when it is ambiguous."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """Sites and layers, paired or explained. A site may have several layers; a layer has at most one site."""

    matches: tuple[Match, ...]
    unmatched_sites: tuple[UnmatchedSite, ...]
    unmatched_layers: tuple[UnmatchedLayer, ...]

    def of_site(self, site: LayerSite) -> tuple[Match, ...]:
        """The matches of one site, in model order."""
        return tuple(m for m in self.matches if m.site == site)

    def of_layer(self, layer: LayerPath) -> Match | None:
        """The match of one layer."""
        return next((m for m in self.matches if m.layer == layer), None)
