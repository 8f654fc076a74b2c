"""Models that were captured while a program ran: what their record says beside their files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from guider_engine.errors import EngineFailure, unusable
from guider_engine.wire import CapturedModel, CaptureRecord, LayerPath, ModelLayer, ModelSummary, structure

RECORD = "capture.json"


def captured(spec: str) -> tuple[CaptureRecord, CapturedModel] | None:
    """The record that lies beside a model's file and speaks of it; ``None``: there is none."""
    path = Path(spec)
    try:
        record = structure(json.loads((path.parent / RECORD).read_text(encoding="utf-8")), CaptureRecord)
        return next(((record, model) for model in record.models if Path(model.path).name == path.name), None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def with_origins(summary: ModelSummary, known: ModelSummary) -> ModelSummary:
    """The summary with what the captured one knows of its layers' origins, and of its loss."""
    layers = {layer.path: layer for layer in known.all_layers()}
    merged = tuple(_merged(layer, layers) for layer in summary.layers)
    return replace(
        summary,
        layers=merged,
        loss=known.loss,
        from_logits=known.from_logits,
        outputs=known.outputs or summary.outputs,
    )


def gone(name: str, program: str, detail: str = "") -> EngineFailure:
    """A captured model cannot be had any more."""
    return unusable(
        "capture-gone",
        f"The captured model {name} is only in the memory of the engine that ran {Path(program).name}, and that has "
        "ended. Run it again: “Train and localize”, or guider-ls localize --run.",
        detail=detail,
    )


def _merged(layer: ModelLayer, known: dict[LayerPath, ModelLayer]) -> ModelLayer:
    inner = tuple(_merged(one, known) for one in layer.inner)
    found = known.get(layer.path)
    if found is None or (found.class_name, found.name) != (layer.class_name, layer.name):
        return replace(layer, inner=inner)
    return replace(layer, inner=inner, origin=found.origin, callers=found.callers)
