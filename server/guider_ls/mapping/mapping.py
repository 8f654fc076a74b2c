"""The pairing of a program's layer sites with a model's layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from guider_engine.wire import LayerPath
from guider_ls.source.sites import LayerSite, Location


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
    callers: tuple[Location, ...] = ()
    """Calls of the project's own code around the construction, innermost first, as far as they are known."""


@dataclass(frozen=True, slots=True)
class UnmatchedSite:
    """A site that no layer of the model came from, and why."""

    site: LayerSite
    reason: str
    unused: bool = False
    """Whether it is known to construct layers that nothing trains or uses: a fault of the program."""


@dataclass(frozen=True, slots=True)
class UnmatchedLayer:
    """A layer that no site of the program constructed, or more than one could have, and why."""

    layer: LayerPath
    reason: str
    candidates: tuple[LayerSite, ...] = ()
    """The sites it may have come from, when it is ambiguous."""


@dataclass(frozen=True)
class Mapping:
    """Sites and layers, paired or explained. A site may have several layers; a layer has at most one site."""

    matches: tuple[Match, ...]
    unmatched_sites: tuple[UnmatchedSite, ...]
    unmatched_layers: tuple[UnmatchedLayer, ...]

    def of_site(self, site: LayerSite) -> tuple[Match, ...]:
        """The matches of one site, in model order."""
        return self._by_location.get(site.location, ())

    def of_layer(self, layer: LayerPath) -> Match | None:
        """The match of one layer."""
        return self._by_layer.get(layer)

    def unmatched(self, site: LayerSite) -> UnmatchedSite | None:
        """Why no layer came from a site."""
        return self._left.get(site.location)

    @cached_property
    def _by_location(self) -> dict[Location, tuple[Match, ...]]:
        found: dict[Location, list[Match]] = {}
        for match in self.matches:
            found.setdefault(match.site.location, []).append(match)
        return {location: tuple(matches) for location, matches in found.items()}

    @cached_property
    def _by_layer(self) -> dict[LayerPath, Match]:
        return {match.layer: match for match in self.matches}

    @cached_property
    def _left(self) -> dict[Location, UnmatchedSite]:
        return {unmatched.site.location: unmatched for unmatched in self.unmatched_sites}
