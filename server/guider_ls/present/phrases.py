"""Words that every surface says alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from guider_engine.wire import Counts, FailingTest, LayerScore, Localization, ModelLayer
from guider_ls.mapping.mapping import Difference, Mapping, Match
from guider_ls.present.report import Report
from guider_ls.source.sites import LayerSite

FORMULA_NAMES = {
    "tarantula": "Tarantula",
    "ochiai": "Ochiai",
    "dstar": "D*",
    "op2": "Op2",
    "barinel": "Barinel",
}
OUTPUT_FIRST = (
    "The output layer comes first for most models, wherever their fault is: look at the next ranks, too."
)
ACTIVE_ANYWAY = (
    "are active on no larger share of the failing than of the passing tests: the rank comes from neurons that are "
    "active on most tests, whether they pass or fail."
)
"""Said of the most suspicious neurons of a layer that do not tell failing from passing tests."""
AGGREGATION_NAMES = {"mean-gini": "mean × (1 − Gini)", "mean": "mean"}

RANGE = (
    "what follows a rank in brackets are the ranks that as many other tests would give, with 95 % confidence"
)
"""Says what ``#1 (1–3)`` means."""

_RANKS = 5
"""Ranks named of a line that makes many layers."""
_FILES = 3
"""Files from which on they are only counted."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&$])")


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def number(value: float | None) -> str:
    """A score or an activation with two decimals, small ones with two digits; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value == 0 or abs(value) >= 0.01 else f"{value:.1g}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """``1 test``, ``2 tests``."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def rank(score: LayerScore) -> str:
    """``#1``; ``#1=`` where other layers have the same score."""
    return f"#{score.rank}{'=' if score.tied else ''}"


def rank_range(score: LayerScore) -> str:
    """`` (1–3)``: where other tests would put the layer; empty where they would not move it, or it is not known."""
    if score.ranks is None or score.ranks == (score.rank, score.rank):
        return ""
    return f" ({score.ranks[0]}–{score.ranks[1]})"


def number_of_tests(tests: Counts) -> str:
    """``10 tests``; ``2,000 of 60,000 tests`` where only some were run."""
    if tests.available is None or tests.available == tests.total:
        return counted(tests.total, "test")
    return f"{tests.total:,} of {tests.available:,} tests"


def failures(tests: Counts) -> str:
    """``3 of 10 tests failed``; ``3 of 2,000 tests failed, drawn from 60,000``."""
    drawn = "" if tests.available in (None, tests.total) else f", drawn from {tests.available:,}"
    return f"{tests.failed} of {counted(tests.total, 'test')} failed{drawn}"


def layer_name(layer: ModelLayer) -> str:
    """``Dense "fc1"``."""
    return f'{layer.class_name} "{layer.name}"'


def neurons(score: LayerScore) -> str:
    """``41 of 64 neurons``: those active on more than half of the failing tests."""
    return (
        f"{score.suspicious} of {score.sampled}{' sampled' if score.sampled != score.neurons else ''} neurons"
    )


def neuron_kind(score: LayerScore) -> str:
    """What a neuron of the layer is; empty where it is what a reader expects, one number of those that it puts out."""
    return score.neuron if score.neuron != "unit" else ""


def tells_apart(localization: Localization, score: LayerScore) -> bool:
    """Whether one of the top neurons is active on a larger share of the failing than of the passing tests."""
    tests = localization.tests
    if not score.top or tests.passed == 0:
        return True
    return any(neuron.a_ef * tests.passed > neuron.a_ep * tests.failed for neuron in score.top)


def certainty(localization: Localization, test: FailingTest) -> str:
    """`` (confidence 0.97)``, or how far the output is from its target; empty where it is not known."""
    if test.confidence is None:
        return ""
    # Where outputs are numbers, it is the size of their error (see the engine's oracles): the larger, the less sure.
    word = "off by" if localization.task in ("regression", "autoencoder") else "confidence"
    return f" ({word} {number(test.confidence)})"


def conditions(score: LayerScore) -> tuple[tuple[str, int], ...]:
    """``("64 saturated", 64)`` and the like, for the conditions that neurons of the layer are in."""
    counts = {"dead": score.dead, "saturated": score.saturated, "not finite": score.non_finite}
    return tuple((f"{count} {condition}", count) for condition, count in counts.items() if count)


def older(differences: Sequence[Difference], made: str) -> str:
    """What the line says and what the model has, where they differ; empty where they do not.

    Args:
        differences: of one pair.
        made: when the model was made, see `Report.made`.
    """
    model = f"the model of {made}" if made else "the model"
    said = [f"{d.argument}: {d.source} here, {d.model}" for d in differences]
    return f"{', '.join(said)} in {model}" if said else ""


def stale(report: Report, matches: Sequence[Match]) -> str:
    """What a line says otherwise than the model of its layers; of several layers that differ the first."""
    return next((older(match.differences, report.made) for match in matches if match.differences), "")


def unmatched(mapping: Mapping, site: LayerSite) -> str:
    """Why no layer of the model came from a line."""
    found = mapping.unmatched(site)
    return found.reason if found is not None else "not in this model"


def whole(matches: Sequence[Match]) -> list[Match]:
    """The matches without those of layers that are inside the layer of another one."""
    made = {match.layer for match in matches}
    return [m for m in matches if not any(m.layer[:depth] in made for depth in range(1, len(m.layer)))]


def ranks(scores: Sequence[LayerScore]) -> str:
    """``#1, #4, #9``: the ranks of some layers, in order; of many the first ones and the last."""
    said = [rank(score) for score in scores]
    return ", ".join(said) if len(said) <= _RANKS else f"{', '.join(said[: _RANKS - 2])} … {said[-1]}"


def file_name(path: str) -> str:
    """Last part of a path, of whichever system."""
    return re.split(r"[\\/]", path)[-1]


def made_in(sites: Iterable[LayerSite], program: str | None) -> str:
    """``models.py``, ``blocks.py and models.py``: the files of some constructions."""
    names = sorted({file_name(site.file or program or "") for site in sites})
    return " and ".join(names) if len(names) < _FILES else f"{len(names)} files"
