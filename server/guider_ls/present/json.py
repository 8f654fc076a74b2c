"""The JSON of ``guider-ls localize`` and ``guider-ls map``: a contract, versioned by its ``schema``.

Lines and columns are 1-based, columns count code points, ``end_column`` is the one after the last character. A place
in a notebook has the number of its ``cell``, 1-based among all cells of the notebook; its lines are those of the cell.
Numbers that are not finite are ``null``. ``tests.available`` is how many tests there are where only some were run, else
``null``; a layer's ``ranks`` are the best and the worst rank that other tests would give with 95 % confidence, its
``neuron`` is what one of its neurons is, for people, ``measured`` how many of the ``sampled`` ones the counts ``dead``,
``saturated`` and ``non_finite`` are of. Fields may be added to a schema, never changed or taken away.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from guider_engine.wire import LayerPath, LayerScore, ModelLayer, ModelSummary
from guider_ls.errors import GuiderError
from guider_ls.mapping.mapping import Mapping as SiteMapping
from guider_ls.mapping.mapping import Match
from guider_ls.present.report import Report
from guider_ls.source.sites import Artifact, LayerSite, SourceMap, Unknown

SCHEMA = 1


def to_json(report: Report) -> dict[str, Any]:
    """The whole report; layers in the order of ``model.layers``."""
    localization = report.localization
    inputs = localization.inputs
    layers = zip(localization.model.layers, localization.layers, strict=True)
    return {
        "schema": SCHEMA,
        "method": localization.method,
        "formula": inputs.formula,
        "aggregation": inputs.aggregation,
        "outcome": localization.outcome,
        "task": localization.task,
        "task_reason": localization.task_reason,
        "tests": plain(localization.tests),
        "tests_read": localization.tests_read,
        "program": report.program,
        "capture": captured(report),
        "model": {
            "name": localization.model.name,
            "class_name": localization.model.class_name,
            "loss": localization.model.loss,
            "from_logits": localization.model.from_logits,
        },
        "layers": [_layer(report, layer, score) for layer, score in layers],
        "examples": plain(localization.examples),
        "warnings": plain(localization.notices),
        "unmatched_sites": [
            {**_place(report.program, u.site), "class_name": u.site.class_name, "reason": u.reason}
            for u in report.mapping.unmatched_sites
        ],
        "finished": plain(report.finished),
        "timings": plain(localization.timings),
        "versions": plain(localization.versions),
        "inputs": plain(inputs),
    }


def map_to_json(
    program: str, source: SourceMap, model: ModelSummary | None = None, mapping: SiteMapping | None = None
) -> dict[str, Any]:
    """A program's layer constructions, with the layers of a model where one is given."""
    layers = {layer.path: layer for layer in model.all_layers()} if model is not None else {}
    return {
        "schema": SCHEMA,
        "program": program,
        "model": None if model is None else {"name": model.name, "class_name": model.class_name},
        "sites": [_site(program, site, mapping, layers) for site in source.sites],
        "unmatched_layers": [
            {
                **_identity(layers[unmatched.layer]),
                "reason": unmatched.reason,
                "candidates": [_place(program, site) for site in unmatched.candidates],
            }
            for unmatched in (mapping.unmatched_layers if mapping is not None else ())
        ],
        "artifacts": [
            {**_place(program, a), "kind": a.kind, "path": a.path, "known": a.known} for a in source.artifacts
        ],
    }


def captured(report: Report) -> dict[str, Any] | None:
    """The run of the program that the model was captured from, if it was; ``model`` is the one that was localized."""
    record, model, tests = report.capture, report.captured, report.captured_tests
    if record is None:
        return None
    return {
        "program": plain(record.program),
        "ending": record.ending,
        "failure": None
        if record.failure is None
        else {"code": record.failure.code, "message": record.failure.message},
        "started": plain(record.started),
        "seconds": plain(record.seconds),
        "model": model.name if model is not None else None,
        "data_kind": tests.data_kind if tests is not None else None,
        "data": tests.data if tests is not None else None,
        "models": [
            {
                "name": one.name,
                "trained": one.trained,
                "epochs": one.epochs,
                "optimizer": one.optimizer,
                "data_kind": one.data_kind,
                "data": one.data,
            }
            for one in record.models
        ],
    }


def error_to_json(error: GuiderError) -> dict[str, Any]:
    """What stands in place of a result when there is none."""
    return {"schema": SCHEMA, "error": {"code": error.code, "message": error.message}}


def _place(program: str | None, place: LayerSite | Artifact) -> dict[str, Any]:
    """Where something stands, as people count lines and columns; in a notebook, those of its cell."""
    span, cell = place.span, place.cell
    first = cell.line if cell is not None else 0
    return {
        "file": (place.file if isinstance(place, LayerSite) else "") or program,
        **({"cell": cell.number} if cell is not None else {}),
        "line": span.line - first + 1,
        "column": span.column + 1,
        "end_line": span.end_line - first + 1,
        "end_column": span.end_column + 1,
    }


def plain(value: Any) -> Any:
    """Any immutable value of this project as JSON data."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Unknown):
        return {"code": value.code}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, bool)) else repr(value)


def _layer(report: Report, layer: ModelLayer, score: LayerScore) -> dict[str, Any]:
    match = report.mapping.of_layer(layer.path)
    unmatched = next((u.reason for u in report.mapping.unmatched_layers if u.layer == layer.path), None)
    sites = [] if match is None else [{**_place(report.program, match.site), "reason": match.reason}]
    return {
        **_identity(layer),
        "score": plain(score.suspiciousness),
        "rank": score.rank,
        "ranks": plain(score.ranks),
        "tied": score.tied,
        "neuron": score.neuron,
        "neurons": score.neurons,
        "sampled": score.sampled,
        "measured": score.measured,
        "suspicious": score.suspicious,
        "dead": score.dead,
        "saturated": score.saturated,
        "non_finite": score.non_finite,
        "parameters": layer.parameters,
        "sites": sites,
        "unmatched": unmatched if match is None else None,
        "differences": plain(match.differences) if match is not None else [],
        "top_neurons": plain(score.top),
        "inner": [_layer(report, *pair) for pair in zip(layer.inner, score.inner, strict=True)],
    }


def _identity(layer: ModelLayer) -> dict[str, Any]:
    return {
        "index": layer.path[0],
        "path": list(layer.path),
        "name": layer.name,
        "class_name": layer.class_name,
    }


def _site(
    program: str, site: LayerSite, mapping: SiteMapping | None, layers: Mapping[LayerPath, ModelLayer]
) -> dict[str, Any]:
    unmatched = mapping.unmatched_sites if mapping is not None else ()
    return {
        **_place(program, site),
        "class_name": site.class_name,
        "qualified_name": site.qualified_name,
        "arguments": plain(site.arguments),
        "name_pattern": site.name_pattern,
        "scope": site.scope,
        "repeats": site.repeats,
        "conditional": site.conditional,
        "ignored": site.ignored,
        "layers": [_match(match, layers) for match in (mapping.of_site(site) if mapping else ())],
        "unmatched": next((u.reason for u in unmatched if u.site == site), None),
    }


def _match(match: Match, layers: Mapping[LayerPath, ModelLayer]) -> dict[str, Any]:
    return {
        **_identity(layers[match.layer]),
        "reason": match.reason,
        "differences": plain(match.differences),
    }
