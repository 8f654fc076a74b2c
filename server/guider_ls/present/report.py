"""The whole answer for one program: what was localized, and where its layers stand in the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from guider_engine.wire import CapturedModel, CaptureRecord, LayerPath, LayerScore, Localization, ModelLayer
from guider_ls.mapping.mapping import Mapping, Match
from guider_ls.source.sites import LayerSite, Location, SourceMap


@dataclass(frozen=True)
class Report:
    """A localization joined with the program's text as it is now."""

    program: str | None
    """Absolute path of the program; ``None`` when only a model was given."""
    source: SourceMap
    localization: Localization
    mapping: Mapping
    finished: float
    """When the localization ended, seconds since the epoch."""
    capture: CaptureRecord | None = None
    """The run of the program that the model was captured from, where it was."""
    made: str = ""
    """When the model was made, for people; empty where that is not known."""

    @property
    def captured(self) -> CapturedModel | None:
        """The model, where it was captured."""
        models = self.capture.models if self.capture is not None else ()
        return next((m for m in models if m.path == self.localization.inputs.model), None)

    @property
    def captured_tests(self) -> CapturedModel | None:
        """The model, where its tests were captured with it."""
        found = self.captured
        return found if found is not None and self.localization.inputs.test_data == (found.tests,) else None

    def layers(self) -> tuple[tuple[ModelLayer, LayerScore], ...]:
        """Every layer with its score, outer before inner, in model order."""
        found: list[tuple[ModelLayer, LayerScore]] = []

        def walk(layers: tuple[ModelLayer, ...], scores: tuple[LayerScore, ...]) -> None:
            for layer, score in zip(layers, scores, strict=True):
                found.append((layer, score))
                walk(layer.inner, score.inner)

        walk(self.localization.model.layers, self.localization.layers)
        return tuple(found)

    def layer(self, path: LayerPath) -> tuple[ModelLayer, LayerScore]:
        """One layer with its score.

        Raises:
            KeyError: the model has no such layer.
        """
        return self._by_path[path]

    def layers_of(self, matches: Sequence[Match]) -> list[tuple[ModelLayer, LayerScore]]:
        """The layers of some matches, outer before inner, the most suspicious first; the unranked last."""
        found = [self._by_path[match.layer] for match in matches if match.layer in self._by_path]

        def place(pair: tuple[ModelLayer, LayerScore]) -> tuple[bool, int, int, LayerPath]:
            layer, score = pair
            return score.rank is None, len(layer.path), score.rank or 0, layer.path

        return sorted(found, key=place)

    def peers(self, path: LayerPath) -> tuple[LayerScore, ...]:
        """The ranked layers among which this one is ranked: those of the same model or composite layer."""
        return self._peers.get(path[:-1], ())

    # Where the layers stand

    @cached_property
    def sites(self) -> tuple[LayerSite, ...]:
        """The constructions of the program, in source order, then those of other files."""
        known = {site.location: site for site in self.source.sites}
        known.update((match.site.location, match.site) for match in self.mapping.matches)
        return tuple(site for _, site in sorted(known.items()))

    @cached_property
    def calls(self) -> dict[Location, tuple[Match, ...]]:
        """The calls that make layers in another file than they stand in themselves, with these layers.

        Of the calls around a construction only the innermost of each file counts. Where no call is known, it is the
        first that trains the model.
        """
        trains = tuple(Location("", span) for span in self.source.training[:1])
        found: dict[Location, list[Match]] = {}
        for match in self.mapping.matches:
            seen = {match.site.file}
            for caller in match.callers or trains:
                if caller.file not in seen:
                    seen.add(caller.file)
                    found.setdefault(caller, []).append(match)
        return {location: tuple(matches) for location, matches in sorted(found.items())}

    @cached_property
    def files(self) -> frozenset[str]:
        """The files of which there is something to show."""
        return frozenset({site.file for site in self.sites} | {call.file for call in self.calls})

    @cached_property
    def _by_path(self) -> dict[LayerPath, tuple[ModelLayer, LayerScore]]:
        return {layer.path: (layer, score) for layer, score in self.layers()}

    @cached_property
    def _peers(self) -> dict[LayerPath, tuple[LayerScore, ...]]:
        found: dict[LayerPath, list[LayerScore]] = {}
        for path, (_, score) in self._by_path.items():
            if score.rank is not None:
                found.setdefault(path[:-1], []).append(score)
        return {path: tuple(scores) for path, scores in found.items()}
