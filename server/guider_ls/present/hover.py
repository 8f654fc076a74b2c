"""Everything known of one construction, in Markdown without HTML."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from guider_engine.wire import (
    ActivationStatistics,
    FailingTest,
    LayerScore,
    Localization,
    ModelLayer,
    NeuronScore,
)
from guider_ls.errors import HELP
from guider_ls.mapping.mapping import Match
from guider_ls.mapping.reasons import line
from guider_ls.present.phrases import (
    ACTIVE_ANYWAY,
    AGGREGATION_NAMES,
    FORMULA_NAMES,
    OUTPUT_FIRST,
    RANGE,
    certainty,
    conditions,
    counted,
    escaped,
    neuron_kind,
    neurons,
    number,
    number_of_tests,
    rank,
    rank_range,
    stale,
    tells_apart,
    unmatched,
    whole,
)
from guider_ls.present.report import Report
from guider_ls.source.sites import LayerSite, Location

_NEURONS = 10
_TESTS = 5
_LAYERS = 10


def static_hover(site: LayerSite, *, notes: tuple[str, ...] = ()) -> str:
    """What a line constructs, before any run; ``notes`` say why there is no ranking (escaped already)."""
    where = f" in {escaped(site.scope)}" if site.scope else ""
    parts = [
        f"**GUIDER** · constructs {_article(site.class_name)} **{escaped(site.class_name)}** layer{where}"
        f"{', possibly several times' if site.repeats else ''}",
        *notes,
    ]
    if not notes:
        parts.append(
            "Not ranked yet. Run the command *GUIDER: Localize Faults* (`guider.localize`), or name the "
            "trained model and its test set in `[tool.guider]` of pyproject.toml."
        )
    return "\n\n".join(parts)


def ranked_hover(report: Report, site: LayerSite) -> str:
    """What was found of the layers that a line constructed."""
    matches = report.mapping.of_site(site)
    if matches:
        return _joined(report, _matched(report, matches))
    left = report.mapping.unmatched(site)
    code = "layer-never-used" if left is not None and left.unused else "suspicious-layer"
    note = f"Not mapped to a layer of this model: {escaped(unmatched(report.mapping, site))}."
    return _joined(report, [static_hover(site, notes=(note,))], code)


def call_hover(report: Report, call: Location) -> str:
    """What was found of the layers that a call makes in other files."""
    matches = report.calls[call]
    layers = _layers(report, matches, lambda match: _link(report, match.site.location, call.file))
    made = counted(len(whole(matches)), "layer")
    return _joined(
        report,
        [f"**GUIDER** · makes {made} of the model elsewhere:\n\n{layers}", _tests(report.localization)],
    )


def _joined(report: Report, parts: Iterable[str], code: str = "suspicious-layer") -> str:
    notices = (f"**{escaped(n.code)}**: {escaped(n.message)}" for n in report.localization.notices)
    return "\n\n".join([*parts, _inputs(report), *notices, f"[What this means]({HELP}#{code})"])


def _matched(report: Report, matches: Sequence[Match]) -> Iterator[str]:
    localization = report.localization
    outer = whole(matches)
    layer, score = report.layers_of(outer)[0]
    yield f"**GUIDER** · {_headline(report, layer, score)}"
    yield _tests(localization)
    if score.rank is not None:
        active = f"{neurons(score)} are active on more than half of the failing tests."
        kind = f"A neuron of it: {escaped(neuron_kind(score))}." if neuron_kind(score) else ""
        yield " ".join(filter(None, (active, kind, _conditions(score))))
        if rank_range(score):
            yield f"{RANGE[0].upper()}{RANGE[1:]}."
        if score.top:
            yield _table(score.top[:_NEURONS])
            yield "Activations: mean ± standard deviation on passing and on failing tests, smallest … largest."
        if score.rank == 1:
            yield from _caveats(localization, layer, score)
    elif _conditions(score):
        yield _conditions(score)
    if len(matches) > 1:
        inside = (
            f", and {counted(len(matches) - len(outer), 'layer')} inside" if len(matches) > len(outer) else ""
        )
        said = f"This line constructs {counted(len(outer), 'layer')} of the model{inside}:"
        yield f"{said}\n\n{_layers(report, matches, lambda match: _called(report, match))}"
    if localization.examples:
        examples = "; ".join(_example(localization, test) for test in localization.examples[:_TESTS])
        yield f"Failing tests, for example: {examples}"
    match = next(match for match in matches if match.layer == layer.path)
    yield f"Mapped to this line by: {escaped(match.reason)}"
    if older := stale(report, matches):
        yield f"⚠ {escaped(older)}: train it again to rank the program as it is now."


def _layers(report: Report, matches: Sequence[Match], where: Callable[[Match], str]) -> str:
    """Some layers as a list, the most suspicious first; ``where`` says of each what else there is to say."""
    by_layer = {match.layer: match for match in matches}
    layers = report.layers_of(matches)
    rows = []
    for layer, score in layers[:_LAYERS]:
        said = where(by_layer[layer.path])
        rows.append(f"- {_headline(report, layer, score)}{f' · {said}' if said else ''}")
    if len(layers) > _LAYERS:
        rows.append(f"- and {len(layers) - _LAYERS} more")
    return "\n".join(rows)


def _called(report: Report, match: Match) -> str:
    """Where the call is that had the layer constructed."""
    return f"called from {_link(report, match.callers[0], match.site.file)}" if match.callers else ""


def _link(report: Report, location: Location, seen_from: str) -> str:
    """A line as a link, named with its file where that is another."""
    file = location.file or report.program or ""
    cell = report.source.cell_at(location.span.line) if not location.file else None
    text = escaped(line("" if location.file == seen_from else file, location.span.line, cell))
    if cell is not None or not Path(file).is_absolute():
        return text  # a cell has no link that all editors follow
    return f"[{text}]({Path(file).as_uri()}#L{location.span.line + 1})"


def _caveats(localization: Localization, layer: ModelLayer, score: LayerScore) -> Iterator[str]:
    """What puts a first rank in proportion."""
    if not tells_apart(localization, score):
        yield f"These neurons {ACTIVE_ANYWAY}"
    if layer.path == localization.model.layers[-1].path and not score.tied:
        yield OUTPUT_FIRST


def _headline(report: Report, layer: ModelLayer, score: LayerScore) -> str:
    name = f"{escaped(layer.class_name)} **{escaped(layer.name)}**"
    if score.rank is None:
        reason = "no failure signal" if report.localization.outcome == "no-failure-signal" else "not ranked"
        return f"{name}: {reason}{', has no weights' if layer.parameters == 0 else ''}"
    total = len(report.peers(layer.path))
    inside = f" inside {escaped(report.layer(layer.path[:-1])[0].name)}" if len(layer.path) > 1 else ""
    place = escaped(rank(score) + rank_range(score))
    return f"{name}: {place} of {total}{inside}, suspiciousness {number(score.suspiciousness)}"


def _tests(localization: Localization) -> str:
    inputs, tests = localization.inputs, localization.tests
    method = f"{FORMULA_NAMES[inputs.formula]}, {AGGREGATION_NAMES[inputs.aggregation]}"
    weighting = ", weighted by confidence" if inputs.weighted else ""
    counts = f"{number_of_tests(tests)}: {tests.passed} passed, {tests.failed} failed"
    signal = "" if localization.outcome == "ranking" else " No failure signal, so nothing is ranked."
    return f"{escaped(method)}{weighting} · {counts} ({escaped(_task(localization))}).{signal}"


def _task(localization: Localization) -> str:
    return (
        f"{localization.task}: {localization.task_reason}" if localization.task_reason else localization.task
    )


def _conditions(score: LayerScore) -> str:
    named = ", ".join(said for said, _ in conditions(score))
    of = "its neurons" if score.measured in (0, score.sampled) else f"the {score.measured} that were measured"
    return f"Of {of}: {named}." if named else ""


def _table(top: tuple[NeuronScore, ...]) -> str:
    head = "| neuron | suspiciousness | a_ef | a_ep | a_nf | a_np | if passing | if failing | range | |"
    rows = [
        f"| {', '.join(map(str, n.position))} | {number(n.suspiciousness)} | {n.a_ef} | {n.a_ep} | {n.a_nf} "
        f"| {n.a_np} | {_spread(n.passing)} | {_spread(n.failing)} | {number(n.minimum)} … {number(n.maximum)} "
        f"| {n.condition} |"
        for n in top
    ]
    return "\n".join([head.replace("_", "\\_"), "|---|---:|---:|---:|---:|---:|---:|---:|---:|---|", *rows])


def _spread(activation: ActivationStatistics) -> str:
    return "–" if activation.mean is None else f"{number(activation.mean)} ± {number(activation.std)}"


def _example(localization: Localization, test: FailingTest) -> str:
    said = f"{test.index} expected {escaped(test.expected)}, got {escaped(test.actual)}"
    return said + certainty(localization, test)


def _inputs(report: Report) -> str:
    inputs = report.localization.inputs
    files = filter(None, [inputs.model or inputs.load, *inputs.test_data])
    named = ", ".join(escaped(os.path.basename(file)) for file in files)  # noqa: PTH119 (may be a module:function)
    when = datetime.fromtimestamp(report.finished, tz=timezone.utc).astimezone()
    seconds = sum(report.localization.timings.values())
    took = f", in {seconds:.1f} s" if seconds else ""
    return f"Localized {when:%Y-%m-%d %H:%M} on {named}{took}"


def _article(word: str) -> str:
    return "an" if word[:1] in "AEIOU" else "a"
