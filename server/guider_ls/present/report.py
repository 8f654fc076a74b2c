"""The whole answer for one program: what was localized, and where its layers stand in the source."""

from __future__ import annotations

from dataclasses import dataclass

from guider_engine.wire import CapturedModel, CaptureRecord, LayerPath, LayerScore, Localization, ModelLayer
from guider_ls.mapping.mapping import Mapping
from guider_ls.source.sites import SourceMap


@dataclass(frozen=True, slots=True)
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
        for layer, score in self.layers():
            if layer.path == path:
                return layer, score
        raise KeyError(path)
