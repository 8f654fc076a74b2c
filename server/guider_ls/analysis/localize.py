"""One localization from target to report: what the command line and the language server both run."""

from __future__ import annotations

import time
from collections.abc import Callable

from guider_engine.wire import ModelLayer, ModelSummary, Progress
from guider_ls.analysis.engine import Engine
from guider_ls.mapping.align import align
from guider_ls.mapping.mapping import Mapping, UnmatchedLayer
from guider_ls.present.report import Report
from guider_ls.project.settings import Settings
from guider_ls.project.targets import Target, to_inputs
from guider_ls.source.sites import SourceMap


async def localize(
    engine: Engine,
    target: Target,
    settings: Settings,
    source: SourceMap,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Report:
    """Have the engine localize, and join its answer with the program's text.

    Args:
        engine: of the project's interpreter; started if it does not run.
        target: model and test set.
        settings: formula and the like.
        source: the program as it was read; empty where the target has none.
        on_progress: called on the event loop.

    Raises:
        GuiderError: as the engine does.
    """
    localization = await engine.localize(to_inputs(target, settings), on_progress)
    program = None if target.program is None else str(target.program)
    mapping = align(source, localization.model) if program is not None else _unmapped(localization.model)
    return Report(program, source, localization, mapping, finished=time.time())


def _unmapped(model: ModelSummary) -> Mapping:
    def every(layers: tuple[ModelLayer, ...]) -> list[ModelLayer]:
        return [found for layer in layers for found in (layer, *every(layer.inner))]

    reason = "no program was given"
    return Mapping((), (), tuple(UnmatchedLayer(layer.path, reason) for layer in every(model.layers)))
