"""How sure a rank is, how many tests there were, what a neuron is: said alike on every surface."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from guider_engine.wire import Counts, FailingTest, Task
from guider_ls.present.diagnostics import findings
from guider_ls.present.hover import ranked_hover
from guider_ls.present.json import to_json
from guider_ls.present.lenses import ranked_lenses
from guider_ls.present.phrases import certainty, failures, number_of_tests, rank_range
from guider_ls.present.report import Report
from guider_ls.present.sarif import to_sarif
from guider_ls.present.text import to_text
from guider_ls.project.settings import Settings

RANGE = "ranks that as many other tests would give, with 95 % confidence"


@pytest.fixture
def sampled(ranking: Report, changed: Callable[..., Report]) -> Report:
    """The second layer may rank 1 to 3; 2,000 of 60,000 tests were run; its neurons are channels."""
    layers = ranking.localization.layers
    second = dataclasses.replace(layers[1], ranks=(1, 3), neuron="mean of a channel over 26×26", measured=4)
    return changed(layers=(layers[0], second, *layers[2:]), tests=Counts(2000, 1900, 100, 60_000))


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_rank_has_its_range_everywhere(sampled: Report) -> None:
    site = sampled.mapping.matches[1].site
    assert ranked_lenses(sampled)[1].text.startswith("#1= (1–3) of 4 · 0.62")
    hover = ranked_hover(sampled, site).replace("\\", "")
    assert "Dense **dense_1**: #1= (1–3) of 4" in hover
    assert RANGE in hover
    text = words(to_text(sampled))
    assert "1= (1–3) 0.62 dense_1 (Dense)" in text
    assert RANGE in text
    assert to_json(sampled)["layers"][1]["ranks"] == [1, 3]
    found = {result["properties"]["layer"]: result["properties"]["ranks"] for result in _results(sampled)}
    assert (found["dense_1"], found["dense"]) == ([1, 3], None)
    assert "ranks 1 (1–3) of 4" in findings(sampled, Settings())[0].message


def test_a_rank_that_no_test_moves_stands_alone(ranking: Report) -> None:
    first = ranking.localization.layers[1]
    assert rank_range(first) == ""
    assert rank_range(dataclasses.replace(first, ranks=(1, 1))) == ""
    assert RANGE not in words(to_text(ranking))


def test_how_many_of_the_tests_were_run(sampled: Report) -> None:
    assert number_of_tests(Counts(1, 1, 0)) == number_of_tests(Counts(1, 1, 0, 1)) == "1 test"
    assert failures(Counts(10, 7, 3)) == "3 of 10 tests failed"
    assert "tests 2,000 of 60,000: 1900 passed, 100 failed" in words(to_text(sampled))
    hover = ranked_hover(sampled, sampled.mapping.matches[1].site)
    assert "2,000 of 60,000 tests: 1900 passed, 100 failed" in hover
    assert to_json(sampled)["tests"] == {"total": 2000, "passed": 1900, "failed": 100, "available": 60_000}
    assert "100 of 2000 tests failed, drawn from 60,000" in _results(sampled)[0]["message"]["text"]


def test_what_a_neuron_is(sampled: Report) -> None:
    first, second = sampled.mapping.matches[0].site, sampled.mapping.matches[1].site
    assert "A neuron of it: mean of a channel over 26×26." in ranked_hover(sampled, second)
    assert "Of the 4 that were measured: 1 dead." in ranked_hover(sampled, second)
    assert "A neuron of it" not in ranked_hover(sampled, first)
    layer = to_json(sampled)["layers"][1]
    assert (layer["neuron"], layer["measured"]) == ("mean of a channel over 26×26", 4)


@pytest.mark.parametrize(
    ("task", "word"), [("regression", "off by"), ("autoencoder", "off by"), ("segmentation", "confidence")]
)
def test_an_error_is_no_confidence(changed: Callable[..., Report], task: Task, word: str) -> None:
    found = changed(task=task, task_reason="the loss is so").localization
    assert certainty(found, FailingTest(0, "1", "2", 0.5)) == f" ({word} 0.50)"


def test_the_reason_of_the_task_is_told(changed: Callable[..., Report]) -> None:
    shown = changed(task="segmentation", task_reason="each pixel has a class")
    assert "(segmentation: each pixel has a class)" in ranked_hover(
        shown, shown.mapping.matches[0].site
    ).replace("\\", "")
    assert "task segmentation (each pixel has a class)" in words(to_text(shown))


def _results(report: Report) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = to_sarif(report)["runs"][0]["results"]
    return results
