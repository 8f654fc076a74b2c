from __future__ import annotations

import dataclasses

import pytest
from tests.unit.analysis.results import layer, localization, neuron, score
from tests.unit.present.reports import layers, ranked, report, scores, site

from guider_ls.mapping.mapping import Difference, Match, UnmatchedSite
from guider_ls.present.diagnostics import findings
from guider_ls.present.report import Report
from guider_ls.project.settings import Settings
from guider_ls.source.sites import Location, Span


def lines(shown: Report, **settings: object) -> list[int]:
    return [f.span.line for f in findings(shown, Settings(**settings))]  # type: ignore[arg-type]


@pytest.mark.parametrize(("top", "expected"), [(0, []), (1, [1]), (2, [1, 2]), (9, [1, 2, 0])])
def test_the_highest_ranks_the_most_suspicious_first(top: int, expected: list[int]) -> None:
    assert lines(ranked(0.2, 0.9, 0.5), diagnostics_top=top) == expected


def test_the_lowest_score_that_counts() -> None:
    assert lines(ranked(0.2, 0.9, 0.5), diagnostics_top=3, diagnostics_minimum=0.5) == [1, 2]


def test_no_suspicion_is_not_underlined() -> None:
    assert lines(ranked(0.0, 0.0, 0.4), diagnostics_top=3) == [2]


def test_ties_are_all_underlined_and_said() -> None:
    found = findings(ranked(0.9, 0.9, 0.1), Settings())
    assert [f.span.line for f in found] == [0, 1]
    assert "ranks 1 of 3, tied with 1 other" in found[0].message
    assert [(r.location.span.line, r.message) for r in found[0].related] == [
        (1, 'the same suspiciousness: Dense "layer_1"')
    ]


def test_a_ranking_that_singles_nothing_out_underlines_nothing() -> None:
    assert lines(ranked(0.9, 0.9, 0.9)) == []
    assert lines(ranked(0.9)) == [0]


def test_ignored_lines_and_no_signal_have_none() -> None:
    assert lines(ranked(0.9, 0.1, ignored=True)) == []
    found = localization(layers(1), scores(None), signal=False)
    assert lines(report(found, (Match(site(0), (0,), ""),))) == []


def test_what_it_says() -> None:
    (found,) = findings(ranked(0.2, 0.9), Settings(diagnostics_severity="warning"))
    assert found.message == (
        'Dense "layer_1" ranks 1 of 2 in suspiciousness: 0.90 (Ochiai, 23 of 100 tests failed). '
        "Suspicion, not proof."
    )
    assert (found.severity, found.layer, found.related) == ("warning", (1,), ())


def test_neurons_that_are_always_active_are_said_to_be() -> None:
    always = dataclasses.replace(neuron(0), a_ef=23, a_ep=77, a_nf=0, a_np=0)
    found = localization(layers(1), (score((0,), 0.5, 1, top=(always,)),))
    (finding,) = findings(report(found, (Match(site(0), (0,), ""),)), Settings())
    assert "as active on passing as on failing tests" in finding.message


def test_a_model_older_than_the_line() -> None:
    older = Match(site(0), (0,), "", (Difference("units", "64", "32"),))
    (found,) = findings(report(localization(layers(1), scores(0.5)), (older,)), Settings())
    assert "Units: 64 here, 32 in the model." in found.message


def test_a_line_that_constructs_several_layers_has_one() -> None:
    loop = site(1, repeats=True)
    found = localization(layers(3), scores(0.5, 0.9, 0.1))
    shown = report(found, tuple(Match(loop, (i,), "loop") for i in range(3)))
    (finding,) = findings(shown, Settings(diagnostics_top=2))
    assert finding.layer == (1,)
    assert "This line makes 3 layers of the model, on ranks 1 to 3." in finding.message


def elsewhere(file: str = "/project/models.py") -> Report:
    """Three layers that a line of another file makes for two calls of the program, and one of the program."""
    made, call, again = site(7, file=file), Location("", Span(1, 0, 1, 9)), Location("", Span(2, 0, 2, 9))
    found = localization(layers(4), scores(0.5, 0.9, 0.1, 0.4))
    matches = [Match(made, (n,), "", callers=(call if n < 2 else again,)) for n in range(3)]
    return report(found, (*matches, Match(site(4), (3,), "")))


def test_a_layer_made_in_another_file_is_found_on_the_call_that_makes_it() -> None:
    (found,) = findings(elsewhere(), Settings())
    assert (found.span.line, found.layer) == (1, (1,))
    assert found.message == (
        'Dense "layer_1", made in line 8 of models.py, ranks 1 of 4 in suspiciousness: 0.90 (Ochiai, 23 of 100 tests '
        "failed). This line makes 2 layers of the model, on ranks 1 to 2. Suspicion, not proof."
    )
    assert [(r.location.file, r.location.span.line, r.message) for r in found.related] == [
        ("/project/models.py", 7, 'made here: Dense "layer_1"')
    ]


def test_in_that_file_it_is_found_on_its_construction() -> None:
    (found,) = findings(elsewhere(), Settings(), "/project/models.py")
    assert (found.span.line, found.layer) == (7, (1,))
    assert "This line makes 3 layers of the model, on ranks 1 to 4." in found.message


def test_where_no_call_is_known_it_is_found_where_the_model_is_trained() -> None:
    trained = report(
        localization(layers(1), scores(0.9)), (Match(site(7, file="/project/models.py"), (0,), ""),)
    )
    assert lines(trained) == []
    source = dataclasses.replace(trained.source, training=(Span(9, 0, 9, 5), Span(11, 0, 11, 5)))
    assert lines(dataclasses.replace(trained, source=source)) == [9]


def test_layers_that_nothing_uses() -> None:
    seen = "constructed 3 times when the program ran, never part of a model"
    left = (UnmatchedSite(site(3), seen, unused=True), UnmatchedSite(site(5), "the model has no Dense"))
    found = localization(layers(1), scores(None), signal=False)
    shown = report(found, (Match(site(0), (0,), ""),), left)
    (finding,) = findings(shown, Settings(diagnostics_severity="hint"))
    assert (finding.span.line, finding.code, finding.severity, finding.layer) == (
        3,
        "layer-never-used",
        "hint",
        (),
    )
    assert finding.message == f"Dense: {seen}."
    assert finding.link.endswith("errors.md#layer-never-used")
    ignored = (dataclasses.replace(left[0], site=site(3, ignored=True)),)
    assert findings(report(found, (Match(site(0), (0,), ""),), ignored), Settings()) == ()


def test_inside_a_suspicious_layer() -> None:
    inner = (score((0, 0), 0.9, 1), score((0, 1), 0.2, 2))
    outer = layer((0,), "block", (layer((0, 0), "a"), layer((0, 1), "b")))
    matches = (
        Match(site(5), (0,), ""),
        Match(site(1), (0, 0), ""),
        Match(site(2), (0, 1), ""),
        Match(site(6), (1,), ""),
    )

    def shown(first: int, second: int) -> Report:
        found = localization(
            (outer, layers(2)[1]), (score((0,), 0.5, first, inner=inner), score((1,), 0.5, second))
        )
        return report(found, matches)

    found = findings(shown(1, 2), Settings())
    assert [f.span.line for f in found] == [5, 1]
    assert 'ranks 1 of 2 inside "block"' in found[1].message
    assert [(r.location.span.line, r.message) for r in found[1].related] == [(5, 'inside Dense "block"')]
    assert lines(shown(2, 1)) == [6]
