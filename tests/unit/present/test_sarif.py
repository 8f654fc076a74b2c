"""The parts of SARIF 2.1.0 that services read, checked against what the standard requires of them."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from guider_ls.present.report import Report
from guider_ls.present.sarif import to_sarif
from guider_ls.source.sites import SourceMap, Span


def run_of(report: Report) -> dict[str, Any]:
    log = json.loads(json.dumps(to_sarif(report), allow_nan=False))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    return dict(run)


def test_required_properties(ranking: Report) -> None:
    run = run_of(ranking)
    driver = run["tool"]["driver"]
    assert driver["name"] == "GUIDER"
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    for invocation in run["invocations"]:
        assert isinstance(invocation["executionSuccessful"], bool)
        for notification in invocation["toolExecutionNotifications"]:
            assert notification["message"]["text"]
            assert notification["level"] in ("none", "note", "warning", "error")
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] == "note"
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "guider/suspicious-layer"
        assert result["level"] == "note"
        assert result["message"]["text"]
        assert 0.0 <= result["rank"] <= 100.0
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())


def test_results_are_the_ranked_layers_with_a_line(ranking: Report) -> None:
    results = run_of(ranking)["results"]
    assert [r["properties"]["layer"] for r in results] == ["dense", "dense_1", "out<3>"]
    assert [r["rank"] for r in results] == [50.0, 100.0, 100.0]
    assert [r["properties"]["tied"] for r in results] == [False, True, True]


def test_regions_count_from_one(ranking: Report) -> None:
    place = run_of(ranking)["results"][1]["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 4, "startColumn": 20, "endLine": 4, "endColumn": 54}


def test_the_program_is_relative_to_the_project(ranking: Report) -> None:
    run = run_of(ranking)
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert unquote(place["uri"]) == "mon programme.py"
    assert " " not in place["uri"]
    base = run["originalUriBaseIds"][place["uriBaseId"]]["uri"]
    assert urlsplit(base).scheme == "file"
    assert base.endswith("/")


def test_a_program_outside_the_project_is_absolute(ranking: Report) -> None:
    outside = replace(ranking, program="/else where/train.py")
    place = run_of(outside)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "file:///else%20where/train.py"}


def fingerprints(report: Report) -> list[str]:
    return [r["partialFingerprints"]["guiderLayer/v1"] for r in run_of(report)["results"]]


def test_fingerprints_tell_layers_apart_and_outlive_moves(ranking: Report) -> None:
    assert len(set(fingerprints(ranking))) == 3

    def moved(span: Span) -> Span:
        return Span(span.line + 9, span.column + 4, span.end_line + 9, span.end_column + 4)

    mapping = replace(
        ranking.mapping,
        matches=tuple(
            replace(m, site=replace(m.site, span=moved(m.site.span))) for m in ranking.mapping.matches
        ),
    )
    sites = tuple(replace(site, span=moved(site.span)) for site in ranking.source.sites)
    assert fingerprints(replace(ranking, mapping=mapping, source=SourceMap(sites, ()))) == fingerprints(
        ranking
    )


def test_no_signal_is_a_note_without_results(silent: Report) -> None:
    run = run_of(silent)
    assert run["results"] == []
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["descriptor"]["id"] == "guider/no-failing-test"


def test_without_a_program_there_are_no_results(ranking: Report) -> None:
    assert run_of(replace(ranking, program=None))["results"] == []
