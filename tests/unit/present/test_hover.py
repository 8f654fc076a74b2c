from __future__ import annotations

import dataclasses

from tests.unit.analysis.results import layer, localization, neuron, score
from tests.unit.present.reports import layers, ranked, report, scores, site

from guider_engine.wire import FailingTest, Inputs, NeuronScore, Notice
from guider_ls.mapping.mapping import Difference, Match, UnmatchedSite
from guider_ls.present.hover import call_hover, ranked_hover, static_hover
from guider_ls.present.phrases import escaped
from guider_ls.source.sites import Location, Span


def test_before_a_run() -> None:
    text = static_hover(site(1, scope="build.inner", repeats=True))
    assert "constructs a **Dense** layer in build\\.inner, possibly several times" in text
    assert "guider.localize" in text
    assert "an **Embedding**" in static_hover(site(1, class_name="Embedding"))


def test_before_a_run_that_cannot_be() -> None:
    text = static_hover(site(1), notes=("No model.",))
    assert text.endswith("\n\nNo model.")
    assert "guider.localize" not in text


def test_everything_that_is_known() -> None:
    top = tuple(dataclasses.replace(neuron(n, 0.9), condition="dead" if n == 0 else "") for n in range(12))
    found = localization(
        layers(2),
        (score((0,), 0.82, 1, top=top), scores(0.9, 0.1)[1]),
        notices=(Notice("few-failing-tests", "Only 23 tests fail."),),
    )
    text = ranked_hover(report(found, (Match(site(0), (0,), 'name "fc_1"'),)), site(0))
    for said in (
        "Dense **layer\\_0**: \\#1 of 2, suspiciousness 0.82",
        "Ochiai, mean × \\(1 − Gini\\), weighted by confidence · 100 tests: 77 passed, 23 failed",
        "41 of 64 neurons are active on more than half of the failing tests.",
        "Of its neurons: 3 dead.",
        "| 0 | 0.90 | 20 | 7 | 3 | 70 | 0.25 ± 0.10 | 0.75 ± – | 0.00 … 1.00 | dead |",
        "12 expected 3, got 5 (confidence 0.98)",
        'Mapped to this line by: name "fc\\_1"',
        "on model\\.keras, tests\\.npz, in 1.5 s",
        "**few\\-failing\\-tests**: Only 23 tests fail\\.",
    ):
        assert said in text
    assert text.count("\n| ") == 11, "a head and ten rows"


def test_a_first_rank_is_put_in_proportion() -> None:
    always = dataclasses.replace(neuron(0), a_ef=23, a_ep=77, a_nf=0, a_np=0)
    telling, said = neuron(1), ("no larger share", "output layer")

    def text(rank: int, *top: NeuronScore) -> list[bool]:
        found = localization(layers(1), (score((0,), 0.5, rank, top=top),))
        shown = ranked_hover(report(found, (Match(site(0), (0,), ""),)), site(0))
        return [part in shown for part in said]

    assert text(1, always) == [True, True]
    assert text(1, always, telling) == [False, True]
    assert text(2, always) == [False, False]


def test_a_line_newer_than_the_model() -> None:
    older = Match(site(0), (0,), "", (Difference("units", "64", "32"),))
    shown = report(localization(layers(1), scores(0.5)), (older,))
    assert "⚠ units: 64 here, 32 in the model: train it again" in ranked_hover(shown, site(0))
    shown = dataclasses.replace(shown, made="14:02")
    assert "⚠ units: 64 here, 32 in the model of 14:02: train it again" in ranked_hover(shown, site(0))


def test_a_line_that_constructs_several_layers() -> None:
    loop = site(1)
    found = localization(layers(2), scores(0.1, 0.5))
    text = ranked_hover(report(found, (Match(loop, (0,), ""), Match(loop, (1,), ""))), loop)
    assert "Dense **layer\\_1**: \\#1 of 2" in text
    assert "This line constructs 2 layers of the model:\n\n- Dense **layer\\_1**: \\#1 of 2" in text
    assert "\n- Dense **layer\\_0**: \\#2 of 2, suspiciousness 0.10\n\n" in text


def test_of_many_layers_the_worst_are_listed_with_their_calls() -> None:
    loop = site(1)
    found = localization(layers(24), scores(*(n / 24 for n in range(24))))
    calls = [Location("", Span(30 + n, 0, 30 + n, 9)) for n in range(24)]
    text = ranked_hover(
        report(found, tuple(Match(loop, (n,), "", callers=(calls[n],)) for n in range(24))), loop
    )
    assert "This line constructs 24 layers of the model:" in text
    assert "\\#1 of 24, suspiciousness 0.96 · called from [line 54](file:///project/train.py#L54)" in text
    assert text.count("called from") == 10
    assert "\n- and 14 more\n" in text


def test_a_call_that_makes_layers_in_another_file() -> None:
    made, call = site(7, file="/project/my models.py"), Location("", Span(1, 0, 1, 9))
    found = localization(layers(3), scores(0.5, 0.9, 0.1))
    shown = report(found, tuple(Match(made, (n,), "", callers=(call,)) for n in range(3)))
    text = call_hover(shown, call)
    assert text.startswith(
        "**GUIDER** · makes 3 layers of the model elsewhere:\n\n- Dense **layer\\_1**: \\#1 of 3"
    )
    assert "[line 8 of my models\\.py](file:///project/my%20models.py#L8)" in text
    assert "77 passed, 23 failed" in text


def test_layers_that_nothing_uses_have_a_page_of_their_own() -> None:
    left = UnmatchedSite(site(1), "constructed once inside a call: nothing trains its weights", unused=True)
    text = ranked_hover(report(localization(layers(1), scores(0.5)), (), (left,)), site(1))
    assert "nothing trains its weights" in text
    assert "#layer-never-used)" in text


def test_a_line_that_is_not_in_the_model() -> None:
    shown = report(localization(layers(1), scores(0.5)), (), (UnmatchedSite(site(1), "no Dense is left"),))
    assert "Not mapped to a layer of this model: no Dense is left." in ranked_hover(shown, site(1))


def test_no_failing_test() -> None:
    found = localization(layers(1), scores(None), signal=False)
    text = ranked_hover(report(found, (Match(site(0), (0,), ""),)), site(0))
    assert "no failure signal" in text
    assert "No failure signal, so nothing is ranked." in text
    assert "| neuron |" not in text


def test_names_and_values_cannot_write_markdown() -> None:
    evil = "<img src=x>`[a](command:b)|\n# *x*"
    found = localization(
        (layer((0,), evil),),
        scores(0.5),
        inputs=Inputs(f"/p/{evil}", ("/p/t.npz",), "/p"),
        notices=(Notice("code", evil),),
    )
    found = dataclasses.replace(found, examples=(FailingTest(1, evil, evil, None),))
    text = ranked_hover(report(found, (Match(site(0), (0,), evil),)), site(0))
    assert "<img" not in text.replace("\\<img", "")
    assert "](command" not in text.replace("\\]\\(command", "")
    assert "\n#" not in text
    assert escaped("a_b\nc") == "a\\_b c"


def test_every_layer_of_a_model_has_a_hover() -> None:
    shown = ranked(0.5, None, 0.5)
    for place in shown.source.sites:
        assert "**GUIDER**" in ranked_hover(shown, place)
