"""SARIF 2.1.0, for code scanning services and the SARIF viewers of editors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from guider_engine.wire import LayerScore, ModelLayer
from guider_ls import __version__
from guider_ls.errors import GuiderError
from guider_ls.mapping.mapping import Match
from guider_ls.present.json import captured, plain
from guider_ls.present.phrases import FORMULA_NAMES, failures, layer_name, neurons, number
from guider_ls.present.report import Report
from guider_ls.source.sites import LayerSite, Span, line_name

RULE = "guider/suspicious-layer"
_ROOT = "PROJECTROOT"


def to_sarif(report: Report) -> dict[str, Any]:
    """One run with a result for each layer that is ranked and whose line is known."""
    localization = report.localization
    notes = [_notification(notice.code, notice.message, "note") for notice in localization.notices]
    return _log(
        {
            "originalUriBaseIds": {_ROOT: {"uri": _folder_uri(localization.inputs.root)}},
            "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
            "results": list(_results(report)),
            "properties": {
                "method": localization.method,
                "outcome": localization.outcome,
                "task": localization.task,
                "task_reason": localization.task_reason,
                "tests": plain(localization.tests),
                "inputs": plain(localization.inputs),
                "capture": captured(report),
            },
        }
    )


def error_to_sarif(error: GuiderError) -> dict[str, Any]:
    """A run that failed: it has no results, which says something else than that it found none."""
    said = _notification(error.code, error.message, "error")
    return _log({"invocations": [{"executionSuccessful": False, "toolExecutionNotifications": [said]}]})


def _log(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": _driver()}, "columnKind": "unicodeCodePoints", **run}],
    }


def _notification(code: str, message: str, level: str) -> dict[str, Any]:
    return {"descriptor": {"id": f"guider/{code}"}, "level": level, "message": {"text": message}}


def _driver() -> dict[str, Any]:
    return {
        "name": "GUIDER",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [
            {
                "id": RULE,
                "name": "SuspiciousLayer",
                "shortDescription": {"text": "The layer's activation goes along with failing tests."},
                "fullDescription": {
                    "text": "Spectrum-based fault localization ranks the layers of a trained model by how "
                    "strongly the activity of their neurons goes along with failing tests. A high rank says "
                    "where to look first; it does not prove a fault."
                },
                "defaultConfiguration": {"level": "note"},
            }
        ],
    }


def _results(report: Report) -> Iterator[dict[str, Any]]:
    if report.program is None:
        return
    for layer, score in report.layers():
        match = report.mapping.of_layer(layer.path)
        if match is None or score.rank is None:
            continue
        ranked = len(report.peers(layer.path))
        where = _artifact(match.site.file or report.program, report.localization.inputs.root)
        yield {
            "ruleId": RULE,
            "ruleIndex": 0,
            "level": "note",
            "message": {"text": _message(report, layer, score, ranked)},
            "locations": [_location(where, match.site)],
            # SARIF's rank is a priority from 0 to 100, the most important at 100.
            "rank": round(100.0 * (ranked - score.rank + 1) / ranked, 1),
            "partialFingerprints": {"guiderLayer/v1": _fingerprint(report, layer, match, where["uri"])},
            "properties": {
                "layer": layer.name,
                "path": list(layer.path),
                "rank": score.rank,
                "ranks": plain(score.ranks),
                "tied": score.tied,
                "suspiciousness": plain(score.suspiciousness),
            },
        }


def _message(report: Report, layer: ModelLayer, score: LayerScore, ranked: int) -> str:
    tests = report.localization.tests
    formula = FORMULA_NAMES[report.localization.inputs.formula]
    tied = " (tied)" if score.tied else ""
    return (
        f"{layer_name(layer)} is number {score.rank} of {ranked}{tied} by suspiciousness: "
        f"{formula} {number(score.suspiciousness)}; {neurons(score)} are active on more than half of the "
        f"failing tests ({failures(tests)})."
    )


def _location(file: dict[str, str], site: LayerSite) -> dict[str, Any]:
    """Where a construction stands. The file of a notebook has other lines than its cells, so these have a name."""
    if site.cell is not None:
        cell, line = f"cell {site.cell.number}", line_name(site.span.line, site.cell)
        return {
            "physicalLocation": {"artifactLocation": file},
            "logicalLocations": [
                {"name": cell, "fullyQualifiedName": f"{line}, column {site.span.column + 1}"}
            ],
        }
    return {"physicalLocation": {"artifactLocation": file, "region": _region(site.span)}}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line + 1,
        "startColumn": span.column + 1,
        "endLine": span.end_line + 1,
        "endColumn": span.end_column + 1,
    }


def _artifact(file: str, root: str) -> dict[str, str]:
    """A source file relative to the project, as services expect it; absolute where it is outside."""
    path = Path(file)
    if path.is_relative_to(root):
        return {"uri": quote(path.relative_to(root).as_posix()), "uriBaseId": _ROOT}
    return {"uri": path.as_uri()}


def _folder_uri(root: str) -> str:
    return Path(root).as_uri().rstrip("/") + "/"


def _fingerprint(report: Report, layer: ModelLayer, match: Match, uri: str) -> str:
    """The same for the same construction after other lines of the program moved it."""
    kin = [
        s
        for s in report.sites
        if (s.file, s.scope, s.class_name) == (match.site.file, match.site.scope, match.site.class_name)
    ]
    place = kin.index(match.site) if match.site in kin else 0
    made = [m.layer for m in report.mapping.of_site(match.site)]
    text = f"{uri}|{match.site.scope}|{match.site.class_name}|{place}|{made.index(layer.path)}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
