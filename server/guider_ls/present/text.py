"""The report as text, for a person at a terminal of 80 to 120 columns."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from guider_engine.wire import LayerScore, ModelLayer, NeuronScore
from guider_ls.mapping.mapping import Match
from guider_ls.present.phrases import (
    ACTIVE_ANYWAY,
    AGGREGATION_NAMES,
    FORMULA_NAMES,
    OUTPUT_FIRST,
    RANGE,
    certainty,
    conditions,
    counted,
    number,
    number_of_tests,
    older,
    rank,
    rank_range,
    tells_apart,
)
from guider_ls.present.report import Report
from guider_ls.present.terminal import Terminal

_NEURONS = 5
_TESTS = 5
_INNER = 3
_TIED = 3


def to_text(report: Report, terminal: Terminal | None = None) -> str:
    """The whole report, ending with a newline.

    Args:
        report: what to tell.
        terminal: how to lay it out; without one, plainly and with file names from the project's folder.
    """
    page = _Page(report, terminal or Terminal(folder=report.localization.inputs.root))
    parts = [page.header()]
    if report.localization.outcome == "ranking":
        parts += [page.ranking(), page.neurons()]
    parts += [page.tests(), page.notices(), page.unmatched(), page.unused(), page.closing()]
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part))) + "\n"


class _Page:
    def __init__(self, report: Report, terminal: Terminal) -> None:
        self.report = report
        self.localization = report.localization
        self.terminal = terminal

    def header(self) -> Iterator[str]:
        found, inputs, tests = self.localization, self.localization.inputs, self.localization.tests
        weighting = "weighted by confidence" if inputs.weighted else "unweighted"
        sampled = "every" if inputs.neurons_per_layer is None else f"up to {inputs.neurons_per_layer}"
        seed = "" if inputs.neurons_per_layer is None else f" (seed {inputs.seed})"
        kind = "channels" if inputs.neuron == "channel" else "neurons"
        model = f"{found.model.class_name}, {counted(len(found.model.layers), 'layer')}"
        captured, run = self.report.captured, self.report.capture
        name = captured.name if captured is not None else self.terminal.file(inputs.model or inputs.load)
        trained = f", {counted(captured.epochs, 'epoch')}" if captured is not None and captured.epochs else ""
        yield from self.terminal.field("model", f"{name} ({model}{trained})")
        if self.report.program is not None:
            program = self.terminal.file(self.report.program)
            if run is not None:
                started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started))
                program = f"{shlex.join([program, *run.program.arguments])}, run at {started}"
            yield from self.terminal.field("program", program)
        counts = f"{number_of_tests(tests).rpartition(' ')[0]}: {tests.passed} passed, {tests.failed} failed"
        data, read = self.report.captured_tests, found.tests_read
        read = read if data is None else f"{data.data}: {read.partition(': ')[2] or read}"
        yield from self.terminal.field("tests", f"{counts}; {read}")
        yield from self.terminal.field("task", f"{found.task} ({found.task_reason})")
        yield from self.terminal.field(
            "method",
            f"{FORMULA_NAMES[inputs.formula]}, {AGGREGATION_NAMES[inputs.aggregation]}, {weighting}; "
            f"active above {inputs.threshold:g}; {sampled} {kind} a layer{seed}",
        )

    def ranking(self) -> Iterator[str]:
        ranked = self.ranked()
        names = [_name(layer) for layer, _ in ranked]
        room = min(max(map(len, names), default=0), 40)
        places = [f"{score.rank}{'=' if score.tied else ''}{rank_range(score)}" for _, score in ranked]
        wide = max(5, *map(len, places)) if places else 5
        yield self.terminal.style(
            "bold", f"{'rank':>{wide}}  {'score':>6}  {'layer':<{room}}  {'active when failing':<20}  line"
        )
        for (layer, score), name, place in zip(ranked, names, places, strict=True):
            row = (
                f"{place:>{wide}}  {number(score.suspiciousness):>6}  {self.terminal.cut(name, room):<{room}}"
            )
            match = self.report.mapping.of_layer(layer.path)
            where = self.place(match) if match is not None else "–"
            row = self.terminal.style("red", row) if score.rank == 1 else row
            yield f"{row}  {self.amount(score):<20}  {where}"
            yield from self.below(layer, score, match)
        if any(map(rank_range, (score for _, score in ranked))):
            yield from self.terminal.wrapped(f"In the column of ranks, {RANGE}.", "  ", "dim")

    def below(self, layer: ModelLayer, score: LayerScore, match: Match | None) -> Iterator[str]:
        """What there is to add to a row of the ranking."""
        if match is not None:
            quoted = self.terminal.cut(self.terminal.quoted(match.site), self.terminal.width - 15)
            yield self.terminal.style("dim", f"{'':15}{quoted}")
            if match.callers:
                file = self.terminal.file(match.callers[0].file or self.report.program or "")
                yield self.terminal.style(
                    "dim", f"{'':15}called from {file}:{match.callers[0].span.line + 1}"
                )
            if match.differences:
                said = older(match.differences, self.report.made)
                yield from self.terminal.wrapped(f"{said}.", " " * 15, "yellow")
        said = ", ".join(text for text, _ in conditions(score))
        if said:
            yield f"{'':15}neurons: {said}"
        for inner, inner_score in _by_rank(layer.inner, score.inner)[:_INNER]:
            found = self.report.mapping.of_layer(inner.path)
            where = f", {self.place(found)}" if found is not None else ""
            yield (
                f"{'':15}inside: {rank(inner_score)}{rank_range(inner_score)} of {len(self.report.peers(inner.path))} "
                f"{_name(inner)} {number(inner_score.suspiciousness)}{where}"
            )

    def neurons(self) -> Iterator[str]:
        """The most suspicious neurons of the first layer, with the spectrum behind the scores."""
        top = next(((layer, score) for layer, score in self.ranked() if score.top), None)
        if top is None:
            return
        layer, score = top
        yield self.terminal.style("bold", f"Most suspicious neurons of {_name(layer)}")
        yield (
            f"  {'neuron':>12}  {'score':>6}  {'a_ef':>6} {'a_ep':>6} {'a_nf':>6} {'a_np':>6}"
            f"  {'mean failing':>12}  {'mean passing':>12}"
        )
        yield from map(_neuron, score.top[:_NEURONS])
        yield from self.terminal.wrapped(
            "a_ef, a_ep: failing and passing tests on which the neuron is active; a_nf, a_np: on which it is not.",
            "  ",
            "dim",
        )

    def tests(self) -> Iterator[str]:
        examples = self.localization.examples[:_TESTS]
        if not examples:
            return
        yield self.terminal.style("bold", "Failing tests to look at")
        for test in examples:
            sure = certainty(self.localization, test)
            yield self.terminal.cut(f"  {test.index:>6}  expected {test.expected}, got {test.actual}{sure}")

    def notices(self) -> Iterator[str]:
        for notice in self.localization.notices:
            yield from self.terminal.wrapped(f"note: {notice.message} [{notice.code}]", "", "yellow")

    def unmatched(self) -> Iterator[str]:
        """The layers without a line; a layer inside one that has a line is told with it."""
        if self.report.program is None:
            return
        lost = [
            (self.report.layer(u.layer)[0], u)
            for u in self.report.mapping.unmatched_layers
            if not any(self.report.mapping.of_layer(u.layer[:depth]) for depth in range(1, len(u.layer)))
        ]
        if lost:
            yield self.terminal.style("bold", "Layers without a line in the program")
        for layer, unmatched in lost:
            places = ", ".join(
                self.terminal.place(self.report.program, site) for site in unmatched.candidates[:3]
            )
            more = f"; it may be {places}" if places else ""
            yield from self.terminal.wrapped(f"{_name(layer)}: {unmatched.reason}{more}", "  ")

    def unused(self) -> Iterator[str]:
        """The lines that construct layers which nothing uses."""
        left = [u for u in self.report.mapping.unmatched_sites if u.unused and not u.site.ignored]
        if left and self.report.program is not None:
            yield self.terminal.style("bold", "Layers that nothing uses")
            for unmatched in left:
                place = self.terminal.place(self.report.program, unmatched.site)
                said = f"{place} {unmatched.site.class_name}: {unmatched.reason} [layer-never-used]"
                yield from self.terminal.wrapped(said, "  ")

    def closing(self) -> Iterator[str]:
        """What the result does and does not mean; what is weak in its tests, the notices have said."""
        if self.localization.outcome != "ranking":
            yield from self.terminal.wrapped(
                "No failure signal, so no layer is ranked: a ranking compares failing with passing tests. It does "
                "not follow that the model has no fault, only that these tests do not show one."
            )
            return
        yield from self.terminal.wrapped(
            "A rank says in which layer neurons are active when tests fail, so where to look first. It does not "
            "prove that layer wrong: data, loss or training may be at fault."
        )
        first = [(layer, score) for layer, score in self.ranked() if score.rank == 1]
        if len(first) > 1 and len(first) == len(self.ranked()):
            yield from self.terminal.wrapped("All layers have the same score: it singles none out.")
        anyway = [_name(layer) for layer, score in first if not tells_apart(self.localization, score)]
        if anyway:
            rest = [counted(len(anyway) - _TIED, "other layer")] if len(anyway) > _TIED else []
            *named, last = anyway[:_TIED] + rest
            names = f"{', '.join(named)} and {last}" if named else last
            yield from self.terminal.wrapped(f"The most suspicious neurons of {names} {ACTIVE_ANYWAY}")
        if [layer for layer, _ in first] == [self.localization.model.layers[-1]]:
            yield from self.terminal.wrapped(OUTPUT_FIRST)

    def ranked(self) -> list[tuple[ModelLayer, LayerScore]]:
        """The layers of the model itself, the most suspicious first, tied ones in model order."""
        return _by_rank(self.localization.model.layers, self.localization.layers)

    def amount(self, score: LayerScore) -> str:
        return f"{score.suspicious} of {score.sampled}{' sampled' if score.sampled != score.neurons else ''}"

    def place(self, match: Match) -> str:
        return self.terminal.place(self.report.program or "", match.site)


def _by_rank(
    layers: tuple[ModelLayer, ...], scores: tuple[LayerScore, ...]
) -> list[tuple[ModelLayer, LayerScore]]:
    ranked = [pair for pair in zip(layers, scores, strict=True) if pair[1].rank is not None]
    return sorted(ranked, key=lambda pair: pair[1].rank or 0)


def _name(layer: ModelLayer) -> str:
    return f"{layer.name} ({layer.class_name})"


def _neuron(neuron: NeuronScore) -> str:
    position = ",".join(map(str, neuron.position))
    return (
        f"  {position:>12}  {number(neuron.suspiciousness):>6}"
        f"  {neuron.a_ef:>6} {neuron.a_ep:>6} {neuron.a_nf:>6} {neuron.a_np:>6}"
        f"  {number(neuron.failing.mean):>12}  {number(neuron.passing.mean):>12}"
        f"{f'  {neuron.condition}' if neuron.condition else ''}"
    )
