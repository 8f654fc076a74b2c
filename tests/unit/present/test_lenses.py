from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.unit.analysis.results import layer, localization, score
from tests.unit.present.reports import layers, ranked, report, scores, site

from guider_engine.wire import ModelLayer
from guider_ls.mapping.mapping import Difference, Match, UnmatchedSite
from guider_ls.present.lenses import ranked_lenses, static_lenses, training_lens
from guider_ls.present.report import Report
from guider_ls.source.sites import Artifact, Location, SourceMap, Span


def texts(shown: Report) -> list[str]:
    return [lens.text for lens in ranked_lenses(shown)]


def test_before_a_run_the_first_lens_offers_it() -> None:
    found = static_lenses(SourceMap((site(1), site(2, ignored=True), site(3)), ()))
    assert [(lens.span.line, lens.text, lens.action) for lens in found] == [
        (1, "GUIDER: localize", "guider.localize"),
        (3, "Dense · not ranked yet", "guider.localize"),
    ]


def test_ranks_scores_and_neurons() -> None:
    assert texts(ranked(0.25, 0.82)) == [
        "#2 of 2 · 0.25 · 41 of 64 neurons",
        "#1 of 2 · 0.82 · 41 of 64 neurons",
    ]
    assert {lens.action for lens in ranked_lenses(ranked(0.5, 0.6))} == {"guider.showReport"}


def test_ties_are_said() -> None:
    assert [text.partition(" · ")[0] for text in texts(ranked(0.5, 0.5, 0.25))] == [
        "#1= of 3",
        "#1= of 3",
        "#3 of 3",
    ]


def test_small_scores_do_not_look_like_none() -> None:
    assert texts(ranked(0.00123, 0.0))[0].split(" · ")[1] == "0.001"
    assert texts(ranked(0.00123, 0.0))[1].split(" · ")[1] == "0.00"


def test_a_site_with_several_layers_names_their_ranks() -> None:
    found = localization(layers(4), scores(0.5, 0.9, 0.1, 0.4))
    loop = site(1, repeats=True)
    matches = tuple(Match(loop, (i,), "loop") for i in (0, 1, 2))
    assert texts(report(found, (*matches, Match(site(9), (3,), "last")))) == [
        "#1, #2, #4 of 4",
        "#3 of 4 · 0.40 · 41 of 64 neurons",
    ]


def test_a_long_loop_is_cut() -> None:
    values = [n / 10 for n in range(8)]
    found = localization(layers(8), scores(*values))
    matches = tuple(Match(site(1), (i,), "loop") for i in range(8))
    assert texts(report(found, matches)) == ["#1, #2, #3 … #8 of 8"]


def test_a_ready_made_network_is_one_block() -> None:
    base = site(1, class_name="ResNet50", qualified_name="keras.applications.resnet.ResNet50")
    found = localization(layers(178), scores(*(n / 178 for n in range(178))))
    matches = (
        *(Match(base, (n,), "") for n in range(175)),
        *(Match(site(9), (n,), "") for n in range(175, 178)),
    )
    assert texts(report(found, matches)) == ["ResNet50 · 175 layers · worst #4 of 178", "#1, #2, #3 of 178"]


def test_a_network_inside_the_model_is_one_layer() -> None:
    inner = tuple(score((0, n), 0.5, n + 1) for n in range(3))
    outer = layer((0,), "resnet50", tuple(layer((0, n), f"conv{n}") for n in range(3)))
    found = localization((outer, layers(2)[1]), (score((0,), 0.5, 1, inner=inner), score((1,), 0.1, 2)))
    base = site(1, class_name="ResNet50", qualified_name="keras.applications.resnet.ResNet50")
    shown = report(found, (Match(base, (0,), ""), *(Match(base, (0, n), "") for n in range(3))))
    assert texts(shown) == ["#1 of 2 · 0.50 · 41 of 64 neurons · 3 layers inside"]


def test_layers_inside_several_layers_are_not_compared() -> None:
    blocks = tuple(layer((n,), f"block_{n}", (layer((n, 0), "a"), layer((n, 1), "b"))) for n in range(2))
    ranks = tuple(
        score((n,), 0.5, n + 1, inner=(score((n, 0), 0.5, 2 - n), score((n, 1), 0.5, n + 1)))
        for n in range(2)
    )
    shown = report(localization(blocks, ranks), (Match(site(1), (0, 0), ""), Match(site(1), (1, 0), "")))
    assert texts(shown) == ["2 layers · worst #1 of 2 in block_1"]


def test_a_call_that_makes_layers_in_another_file() -> None:
    made, call = site(7, file="/project/models.py"), Location("", Span(1, 0, 1, 9))
    found = localization(layers(4), scores(0.5, 0.9, 0.1, 0.4))
    matches = tuple(Match(made, (n,), "", callers=(call,)) for n in range(3))
    shown = report(found, (*matches, Match(site(4), (3,), "")))
    assert [(lens.span.line, lens.text) for lens in ranked_lenses(shown)] == [
        (1, "3 layers from models.py · #1, #2, #4 of 4"),
        (4, "#3 of 4 · 0.40 · 41 of 64 neurons"),
    ]
    assert [(lens.span.line, lens.text) for lens in ranked_lenses(shown, "/project/models.py")] == [
        (7, "#1, #2, #4 of 4")
    ]
    one = report(localization(layers(1), scores(0.5)), (Match(made, (0,), "", callers=(call,)),))
    assert texts(one) == ["1 layer from models.py · #1 of 1 · 0.50"]


def test_where_to_train() -> None:
    def line(**said: Any) -> int | None:
        lens = training_lens(SourceMap((site(3), site(8)), **{"artifacts": (), **said}), "GUIDER: train")
        assert lens is None or (lens.text, lens.action) == ("GUIDER: train", "guider.trainAndLocalize")
        return lens.span.line if lens is not None else None

    assert line() is None
    assert line(training=(Span(12, 0, 12, 9), Span(20, 0, 20, 9))) == 12
    assert line(artifacts=(Artifact(Span(9, 0, 9, 5), "model", "m.keras"),)) == 3
    assert line(modules=("/project/models.py",)) == 3


def test_a_layer_that_is_not_ranked() -> None:
    def weightless(made: ModelLayer) -> ModelLayer:
        return dataclasses.replace(made, parameters=0)

    found = localization((weightless(layers(1)[0]), layers(2)[1]), scores(None, 0.5))
    matches = (Match(site(0), (0,), ""), Match(site(1), (1,), ""))
    assert texts(report(found, matches))[0] == "in model, weightless, not ranked"


def test_a_ranked_layer_without_weights() -> None:
    found = localization((dataclasses.replace(layers(1)[0], parameters=0),), scores(0.5))
    assert texts(report(found, (Match(site(0), (0,), ""),))) == [
        "#1 of 1 · 0.50 · 41 of 64 neurons · weightless"
    ]


@pytest.mark.parametrize(("dead", "ending"), [(32, ""), (33, " · 33 dead")])
def test_what_most_neurons_suffer_from_is_said(dead: int, ending: str) -> None:
    suffering = dataclasses.replace(scores(0.5)[0], sampled=64, dead=dead, saturated=1)
    found = localization(layers(1), (suffering,))
    assert texts(report(found, (Match(site(0), (0,), ""),))) == [f"#1 of 1 · 0.50 · 41 of 64 neurons{ending}"]


def test_sampled_neurons_are_said_to_be() -> None:
    sampled = dataclasses.replace(scores(0.5)[0], neurons=9000, sampled=200)
    found = localization(layers(1), (sampled,))
    assert texts(report(found, (Match(site(0), (0,), ""),))) == ["#1 of 1 · 0.50 · 41 of 200 sampled neurons"]


def test_a_line_that_is_not_in_the_model() -> None:
    found = localization(layers(1), scores(0.5))
    shown = report(found, (Match(site(0), (0,), ""),), (UnmatchedSite(site(1), "no Dense is left"),))
    assert texts(shown)[1] == "Dense · no Dense is left"


def test_the_input_of_the_model() -> None:
    found = localization(layers(1), scores(0.5))
    entry = UnmatchedSite(site(1, class_name="InputLayer"), "Keras does not list it")
    assert texts(report(found, (Match(site(0), (0,), ""),), (entry,)))[1] == "input, not ranked"


def test_a_line_newer_than_the_model() -> None:
    found = localization(layers(1), scores(0.5))
    older = Match(site(0), (0,), "", (Difference("units", "64", "32"),))
    assert texts(report(found, (older,))) == ["#1 of 1 · 0.50 · units: 64 here, 32 in the model"]
    dated = dataclasses.replace(report(found, (older,)), made="2026-03-01 14:02")
    assert texts(dated)[0].endswith("units: 64 here, 32 in the model of 2026-03-01 14:02")


def test_no_failing_test() -> None:
    found = localization(layers(1), scores(None), signal=False)
    assert texts(report(found, (Match(site(0), (0,), ""),))) == ["Dense · no failure signal"]


def test_inner_layers_are_ranked_among_themselves() -> None:
    inner = (score((0, 0), 0.9, 1), score((0, 1), 0.2, 2))
    outer = layer((0,), "block", (layer((0, 0), "a"), layer((0, 1), "b")))
    found = localization((outer, *layers(2)[1:]), (score((0,), 0.5, 1, inner=inner), score((1,), 0.1, 2)))
    assert texts(report(found, (Match(site(0), (0, 1), ""),)))[0].startswith("#2 of 2")


def test_ignored_lines_have_no_lens() -> None:
    assert texts(ranked(0.5, ignored=True)) == []
