"""Words that every surface says alike, and the layers that they say them of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guider_engine.wire import FailingTest, LayerPath, LayerScore, Localization, ModelLayer
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


def siblings(report: Report, path: LayerPath) -> tuple[LayerScore, ...]:
    """The ranked layers among which this one is ranked: those of the same model or composite layer."""
    scores: Sequence[LayerScore] = report.localization.layers
    for depth in range(1, len(path)):
        scores = next((s.inner for s in scores if s.path == path[:depth]), ())
    return tuple(s for s in scores if s.rank is not None)


def layer_name(layer: ModelLayer) -> str:
    """``Dense "fc1"``."""
    return f'{layer.class_name} "{layer.name}"'


def neurons(score: LayerScore) -> str:
    """``41 of 64 neurons``: those active on more than half of the failing tests."""
    return (
        f"{score.suspicious} of {score.sampled}{' sampled' if score.sampled != score.neurons else ''} neurons"
    )


def tells_apart(localization: Localization, score: LayerScore) -> bool:
    """Whether one of the top neurons is active on a larger share of the failing than of the passing tests."""
    tests = localization.tests
    if not score.top or tests.passed == 0:
        return True
    return any(neuron.a_ef * tests.passed > neuron.a_ep * tests.failed for neuron in score.top)


def certainty(localization: Localization, test: FailingTest) -> str:
    """`` (confidence 0.97)``, or how far a regression is from its target; empty where it is not known."""
    if test.confidence is None:
        return ""
    # A regression's confidence is the norm of its error (see the engine's oracle): the larger, the less confident.
    word = "off by" if localization.task == "regression" else "confidence"
    return f" ({word} {number(test.confidence)})"


def conditions(score: LayerScore) -> tuple[tuple[str, int], ...]:
    """``("64 saturated", 64)`` and the like, for the conditions that neurons of the layer are in."""
    counts = {"dead": score.dead, "saturated": score.saturated, "not finite": score.non_finite}
    return tuple((f"{count} {condition}", count) for condition, count in counts.items() if count)


def older(differences: Sequence[Difference]) -> str:
    """What the line says and what the model has, where they differ."""
    said = ", ".join(f"{d.argument}: {d.source} here, {d.model} in the model" for d in differences)
    return f"model is older than this line ({said})"


def unmatched(mapping: Mapping, site: LayerSite) -> str:
    """Why no layer of the model came from a line."""
    return next((u.reason for u in mapping.unmatched_sites if u.site == site), "not in this model")


Layers = dict[LayerPath, tuple[ModelLayer, LayerScore]]


def by_path(report: Report) -> Layers:
    """Every layer with its score, by its path."""
    return {layer.path: (layer, score) for layer, score in report.layers()}


def layers_of(known: Layers, matches: Sequence[Match]) -> list[tuple[ModelLayer, LayerScore]]:
    """The layers of some matches, the most suspicious first, the unranked last."""
    found = [known[m.layer] for m in matches if m.layer in known]
    return sorted(found, key=lambda pair: (pair[1].rank is None, pair[1].rank or 0, pair[0].path))
