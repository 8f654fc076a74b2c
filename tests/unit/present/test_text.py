import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from guider_ls.present.report import Report
from guider_ls.present.terminal import Terminal
from guider_ls.present.text import to_text
from guider_ls.source.sites import Location, Part, Span, Unknown


def words(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def test_the_header_says_what_was_done(ranking: Report) -> None:
    text = words(to_text(ranking))
    assert "out/m.keras (Sequential, 4 layers)" in text.replace("\\", "/")
    assert "tests 10: 7 passed, 3 failed; t.npz (x, y): 10×8 float32" in text
    assert "classification (labels are whole numbers)" in text
    assert "Ochiai, mean × (1 − Gini), weighted by confidence; active above 0.1; up to 200 neurons" in text


def test_the_most_suspicious_come_first_and_ties_are_ties(ranking: Report, program_text: str) -> None:
    rows = re.findall(r"^ +(\d+=?) +([\d.]+) +(\S+) \((\w+)\)", to_text(ranking), re.MULTILINE)
    assert rows == [
        ("1=", "0.62", "dense_1", "Dense"),
        ("1=", "0.62", "out<3>", "Dense"),
        ("3", "0.25", "dense", "Dense"),
        ("4", "0.12", "block", "Block"),
    ]


def test_a_row_leads_to_its_line(ranking: Report, program_text: str) -> None:
    folder = ranking.localization.inputs.root
    text = to_text(ranking, terminal=Terminal(folder=folder, program_text=program_text))
    row, quoted = text[text.index("  1=") :].splitlines()[:2]
    assert row.endswith("5 of 8 sampled        mon programme.py:4:20")
    assert quoted.strip() == 'e = "😀"; model.add(layers.Dense(4, activation="relu"))'


def test_without_the_text_a_call_is_written_anew(ranking: Report) -> None:
    assert "Dense(units=4, activation='relu')" in to_text(ranking)


def test_what_is_written_anew_is_code(ranking: Report) -> None:
    arguments = {
        "shape": (8, Unknown("width")),
        "pair": [Unknown("…"), None],
        "one": (1,),
        "kernel_initializer": Part("RandomNormal", {"mean": 1.0, "seed": Unknown("SEED")}),
    }
    site = replace(ranking.source.sites[0], class_name="Layer", arguments=arguments)
    assert Terminal().quoted(site) == (
        "Layer(shape=(8, width), pair=[…, None], one=(1,), kernel_initializer=RandomNormal(mean=1.0, seed=SEED))"
    )


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_are_counted_as_the_parser_does(ranking: Report, program_text: str, end: str) -> None:
    text = program_text.replace("# 😀", "# \f\u2028 😀").replace("\n", end)
    assert 'e = "😀"; model.add(' in to_text(ranking, terminal=Terminal(program_text=text))


def test_old_lines_inner_layers_and_dead_neurons_are_told(ranking: Report) -> None:
    text = words(to_text(ranking))
    assert "units: 8 here, 16 in the model." in text
    assert "inside: #1 of 1 inner (Dense) 0.50" in text
    assert "neurons: 1 dead" in text


def test_neurons_come_with_their_spectrum(ranking: Report) -> None:
    text = to_text(ranking)
    assert "Most suspicious neurons of dense_1 (Dense)" in text
    row = next(line for line in text.splitlines() if line.split()[:1] == ["7"])
    assert row.split() == ["7", "0.75", "3", "1", "0", "6", "1.25", "–"]


def test_tests_notices_and_lost_layers_are_told(ranking: Report) -> None:
    text = words(to_text(ranking))
    assert "4 expected 2, got 0 (confidence 0.88)" in text
    assert "note: Only 3 tests fail. [few-failing-tests]" in text
    assert "block (Block): built elsewhere; it may be mon programme.py:5:11" in text


def test_no_signal_prints_no_ranking(silent: Report) -> None:
    text = words(to_text(silent))
    assert "No failure signal, so no layer is ranked" in text
    assert "note: Every test passes. [no-failing-test]" in text
    assert "rank" not in text.replace("ranked", "").replace("ranking", "")
    assert "Most suspicious" not in text


def test_a_first_rank_of_the_output_layer_is_put_in_proportion(
    ranking: Report, changed: Callable[..., Report]
) -> None:
    said = "The output layer comes first for most models"
    assert said not in words(to_text(ranking))
    scores = tuple(replace(s, rank=4 - s.path[0], tied=False) for s in ranking.localization.layers)
    assert said in words(to_text(changed(layers=scores)))


def test_neurons_that_are_active_on_every_test_are_called_so(
    ranking: Report, changed: Callable[..., Report]
) -> None:
    said = "neurons of dense_1 (Dense) and out<3> (Dense) are active on no larger share of the failing"
    assert said not in words(to_text(ranking))
    always = replace(ranking.localization.layers[1].top[0], a_ef=3, a_nf=0, a_ep=7, a_np=0)
    scores = tuple(replace(s, top=(always,)) if s.rank == 1 else s for s in ranking.localization.layers)
    assert said in words(to_text(changed(layers=scores)))


def test_a_tie_of_all_layers_is_told_once(ranking: Report, changed: Callable[..., Report]) -> None:
    said = "All layers have the same score"
    assert said not in words(to_text(ranking))
    always = replace(ranking.localization.layers[1].top[0], a_ef=3, a_nf=0, a_ep=7, a_np=0)
    scores = tuple(replace(s, rank=1, tied=True, top=(always,)) for s in ranking.localization.layers)
    text = words(to_text(changed(layers=scores)))
    assert said in text
    assert "neurons of dense (Dense), dense_1 (Dense), block (Block) and 1 other layer are active on" in text


def test_a_regression_is_off_rather_than_confident(ranking: Report, changed: Callable[..., Report]) -> None:
    text = words(to_text(changed(task="regression")))
    assert "4 expected 2, got 0 (off by 0.88)" in text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_it_fits_the_terminal(ranking: Report, program_text: str, width: int) -> None:
    folder = ranking.localization.inputs.root
    text = to_text(ranking, terminal=Terminal(width=width, folder=folder, program_text=program_text))
    assert max(map(len, text.splitlines())) <= width


def test_color_only_adds_escapes(ranking: Report) -> None:
    colored = to_text(ranking, Terminal(color=True, folder=ranking.localization.inputs.root))
    assert "\x1b[" in colored
    assert "\x1b" not in to_text(ranking)
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == to_text(ranking)


def test_without_a_program(ranking: Report) -> None:
    text = to_text(replace(ranking, program=None, mapping=replace(ranking.mapping, matches=())))
    assert "program" not in text.splitlines()[1]
    assert "dense_1 (Dense)" in text


def test_lines_of_other_files_their_calls_and_layers_that_nothing_uses(ranking: Report) -> None:
    first, *others = ranking.mapping.matches
    helper = replace(first.site, file=str(Path(ranking.program or "").parent / "models.py"))
    moved = replace(first, site=helper, callers=(Location("", Span(7, 0, 7, 9)),))
    (left,) = ranking.mapping.unmatched_sites
    mapping = replace(
        ranking.mapping,
        matches=(moved, *others),
        unmatched_sites=(replace(left, reason="constructed once, never part of a model", unused=True),),
    )
    text = words(to_text(replace(ranking, mapping=mapping)))
    assert "models.py:3:11" in text
    assert "called from mon programme.py:8" in text
    assert "mon programme.py:5:11 Block: constructed once, never part of a model [layer-never-used]" in text
