"""Which line of the program constructed which layer of the model.

The shape of the algorithm:

1. Every construction of the program (`SourceMap.outlines`) is aligned with the model's layers
   (`guider_ls.mapping.level`): a dynamic program over classes, names, literal arguments and order
   (`guider_ls.mapping.sequences`), never over raw indices. The construction that explains the model best is
   the model's; constructions of another kind (``Sequential``, functional, a class) are asked only if none of
   the model's own kind exists.
2. A pair is kept only if every best alignment, of every construction that is equally good, agrees on the line.
   Otherwise the layer is reported as ambiguous, with its candidates.
3. What lies inside a layer (a nested model, a composite layer of the program) is aligned in the same way with
   the constructions that its own site makes, or with those of its class.
4. Pairs that contradict each other are given up: a line that says ``relu`` for all its layers while they differ,
   a line of a loop that would have run more often than the rest of the loop.
5. Where the program was watched while it ran, the origins of the layers decide (`guider_ls.mapping.captured`), and
   only what they leave open is aligned.
6. Arguments that differ in a pair are its differences: the model is older than that line. What is left over on
   either side is explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from guider_engine.wire import LayerPath, ModelLayer, ModelSummary
from guider_ls.mapping import reasons
from guider_ls.mapping.captured import Origins, Run, Settled, doubt
from guider_ls.mapping.comparison import Comparisons, compare, contradicted, fits, has_automatic_name
from guider_ls.mapping.level import LevelResult, align_level
from guider_ls.mapping.makings import called, told_apart
from guider_ls.mapping.mapping import Difference, Mapping, Match, UnmatchedLayer, UnmatchedSite
from guider_ls.source.catalog import is_application
from guider_ls.source.sites import LayerSite, Location, Outline, SourceMap


def align(source: SourceMap, model: ModelSummary, run: Run | None = None) -> Mapping:
    """Pair the layer sites of a program with the layers of a model; explain whatever cannot be paired.

    Args:
        source: the program as it is now.
        model: its layers.
        run: the run of the program that the model comes from, where it was watched.
    """
    if run is None or not any(layer.origin for layer in model.all_layers()):
        alignment = _Alignment(source, model)
        alignment.run()
        return alignment.mapping()
    origins = Origins(source, run)
    settled = origins.settle(model)
    alignment = _Alignment(replace(source, sites=tuple(settled.sites)), model, origins)
    if any(layer.path not in settled.found | settled.failed for layer in model.all_layers()):
        alignment.run()
    alignment.accept(settled)
    return alignment.mapping()


def _outlines_for(outlines: Sequence[Outline], class_name: str) -> list[Outline]:
    """Constructions that may make a model of a class; all of them if none is of its kind."""
    if class_name == "Sequential":
        fitting = [one for one in outlines if one.kind == "sequential"]
    elif class_name in {"Functional", "Model"}:
        fitting = [one for one in outlines if one.kind == "functional"]
    else:
        fitting = [one for one in outlines if one.kind == "class" and one.label == class_name]
    return fitting or [one for one in outlines if one.kind != "class"] or list(outlines)


@dataclass(slots=True)
class _Alignment:
    source: SourceMap
    model: ModelSummary
    origins: Origins | None = None
    found: dict[LayerPath, tuple[ModelLayer, int, str]] = field(default_factory=dict)
    """For each paired layer its site and the reason."""
    failed: dict[LayerPath, UnmatchedLayer] = field(default_factory=dict)
    callers: dict[LayerPath, tuple[Location, ...]] = field(default_factory=dict)
    """Calls around the construction of a layer, as far as they are known."""
    compare: Comparisons = field(default_factory=Comparisons)
    chosen: list[Outline] = field(default_factory=list)
    """Constructions that the model, or a part of it, came from."""

    def run(self) -> None:
        """Align the whole model."""
        outlines = _outlines_for(self.source.outlines, self.model.class_name)
        self.level(self.model.layers, outlines, self.model.class_name == "Sequential", self.model.name)
        self.drop_contradictions()
        self.drop_rivalled()

    def accept(self, settled: Settled) -> None:
        """Take over what the origins of the layers say."""
        self.callers |= settled.callers
        for layer in self.model.all_layers():
            path = layer.path
            if path in settled.found:
                self.found[path] = settled.found[path]
                self.failed.pop(path, None)
            elif path in settled.failed:
                self.failed[path] = settled.failed[path]
                self.found.pop(path, None)
            elif path in settled.doubtful:
                candidates = settled.doubtful[path]
                if path not in self.found or self.found[path][1] not in candidates:
                    self.failed[path] = doubt(layer, [self.source.sites[index] for index in candidates])
                    self.found.pop(path, None)

    def level(
        self, layers: Sequence[ModelLayer], outlines: Sequence[Outline], ordered: bool, name: str
    ) -> None:
        """Align the layers of one level, those of the model or layer of that name, then those inside them."""
        best = told_apart(self._best(layers, called(outlines, name), ordered), layers, name)
        self.chosen += [outline for outline, _ in best]
        for index, layer in enumerate(layers):
            self._settle(index, layer, layers, best)
        if best:
            self._drop_broken_rounds(layers, *best[0])
        for layer in layers:
            if layer.inner:
                self._inside(layer)

    def _best(
        self, layers: Sequence[ModelLayer], outlines: Sequence[Outline], ordered: bool
    ) -> list[tuple[Outline, LevelResult]]:
        """The constructions that explain the layers best, with their alignments."""
        results = [(one, self._align(one, layers, ordered)) for one in outlines]
        results = [(one, result) for one, result in results if any(result.steps.values())]
        top = max((result.score for _, result in results), default=0)
        best = [(one, result) for one, result in results if result.score == top]
        return [
            pair
            for number, pair in enumerate(best)
            if not any(
                _refines(other, pair, len(layers))
                and not (_refines(pair, other, len(layers)) and number < index)
                for index, other in enumerate(best)
                if index != number
            )
        ]

    def _align(self, outline: Outline, layers: Sequence[ModelLayer], ordered: bool) -> LevelResult:
        in_order = ordered and outline.kind == "sequential"
        return align_level(self.source.sites, outline, layers, self.compare, ordered=in_order)

    def _settle(
        self,
        index: int,
        layer: ModelLayer,
        layers: Sequence[ModelLayer],
        best: Sequence[tuple[Outline, LevelResult]],
    ) -> None:
        certain = {result.certain(index, outline) for outline, result in best}
        if len(certain) == 1 and (site := next(iter(certain))) is not None:
            outline, result = best[0]
            steps = result.steps[index]
            self.found[layer.path] = (layer, site, self._reason(outline, steps, layer, layers))
            callers = {outline.steps[step].caller for outline, result in best for step in result.steps[index]}
            if len(callers) == 1 and (caller := next(iter(callers))) is not None:
                self.callers[layer.path] = (Location("", caller),)
            return
        possible = sorted({site for outline, result in best for site in result.sites(index, outline)})
        candidates = tuple(self.source.sites[site] for site in possible)
        reason = reasons.of_layer(layer, candidates, self.source.sites)
        self.failed[layer.path] = UnmatchedLayer(layer.path, reason, candidates)

    def _reason(
        self, outline: Outline, steps: frozenset[int], layer: ModelLayer, layers: Sequence[ModelLayer]
    ) -> str:
        step = outline.steps[min(steps)]
        site = self.source.sites[step.site]
        if step.spread:
            return f"made inside {site.class_name}(…)"
        peers = [
            peer for peer in layers if (peer.class_name, peer.builtin) == (layer.class_name, layer.builtin)
        ]
        rivals = {
            other.site
            for other in outline.steps
            if self.source.sites[other.site].class_name == site.class_name
        }
        return reasons.of_match(site, step, layer, peers, self.compare, rivals=len(rivals))

    def _inside(self, layer: ModelLayer) -> None:
        """Align what lies inside a layer."""
        pair = self.found.get(layer.path)
        site = pair[1] if pair is not None else None
        if site is not None and is_application(self.source.sites[site].qualified_name):
            name = self.source.sites[site].class_name
            line = reasons.lines([self.source.sites[site]])
            self._unexplained(layer.inner, f"made inside {name}(…), {line}")
            return
        outlines = [one for one in self.source.outlines if site is not None and site in one.makers]
        if not outlines and not layer.builtin:
            outlines = [
                one for one in self.source.outlines if one.kind == "class" and one.label == layer.class_name
            ]
        if not outlines:
            where = (
                "a layer that no line is known for"
                if site is None
                else reasons.lines([self.source.sites[site]])
            )
            self._unexplained(layer.inner, f"inside {layer.name}, which is made by {where}")
            return
        self.level(layer.inner, outlines, layer.class_name == "Sequential", layer.name)

    def _drop_broken_rounds(
        self, layers: Sequence[ModelLayer], outline: Outline, result: LevelResult
    ) -> None:
        """Give up pairs with a step of a loop that would have run in more rounds than its other steps."""
        rounds: dict[int, list[ModelLayer]] = {}
        for index, layer in enumerate(layers):
            if layer.path in self.found and len(result.steps[index]) == 1:
                rounds.setdefault(next(iter(result.steps[index])), []).append(layer)
        for start, end in outline.loops:
            counts = {
                step: len(rounds[step])
                for step in range(start, end)
                if step in rounds
                and not outline.steps[step].optional
                and not _is_inner(step, (start, end), outline)
            }
            for step, count in counts.items():
                if count > min(counts.values()):
                    for layer in rounds[step]:
                        self._give_up(layer, self.source.sites[outline.steps[step].site])

    def _give_up(self, layer: ModelLayer, site: LayerSite) -> None:
        self.found.pop(layer.path, None)
        reason = reasons.of_layer(layer, (site,), self.source.sites)
        self.failed[layer.path] = UnmatchedLayer(layer.path, reason, (site,))

    def drop_contradictions(self) -> None:
        """Give up pairs whose site says one value for all its layers where the layers differ.

        Those that agree with the text stay; if none does, none stays.
        """
        for index, site in enumerate(self.source.sites):
            layers = [layer for layer, of, _ in self.found.values() if of == index]
            for argument in contradicted(site, layers):
                for layer in layers:
                    if argument in {difference.argument for difference in compare(site, layer).differences}:
                        self._give_up(layer, site)

    def drop_rivalled(self) -> None:
        """Give up pairs that differ where a left-over layer or line would agree: either may be meant."""
        used = {site for _, site, _ in self.found.values()}
        free = {step.site for outline in self.chosen for step in outline.steps} - used
        left = [layer for layer in self.model.all_layers() if layer.path in self.failed]
        for layer, index, _ in list(self.found.values()):
            site = self.source.sites[index]
            if not compare(site, layer).differences or site.name_pattern is not None:
                continue
            peers = [other for other in left if other.path[:-1] == layer.path[:-1]]
            lines = [self.source.sites[other] for other in sorted(free)]
            if any(_agree(site, other) for other in peers) or any(_agree(other, layer) for other in lines):
                self._give_up(layer, site)

    def _unexplained(self, layers: Sequence[ModelLayer], reason: str) -> None:
        for layer in layers:
            self.failed[layer.path] = UnmatchedLayer(layer.path, reason)
            self._unexplained(layer.inner, reason)

    def mapping(self) -> Mapping:
        """All pairs and leftovers, in model order and in source order."""
        matches = [self._match(*pair) for _, pair in sorted(self.found.items())]
        used = {site for _, site, _ in self.found.values()}
        doubtful = [layer for _, layer in sorted(self.failed.items())]
        explain = reasons.SiteReasons(
            self.source, self.model, self.source.outlines, tuple(self.chosen), tuple(doubtful), self.compare
        )
        unmatched = [
            UnmatchedSite(site, *self._leftover(index, explain))
            for index, site in enumerate(self.source.sites)
            if index not in used
        ]
        return Mapping(tuple(matches), tuple(unmatched), tuple(doubtful))

    def _match(self, layer: ModelLayer, index: int, reason: str) -> Match:
        site = self.source.sites[index]
        # A program that is as it ran differs nowhere, whatever its text seems to say.
        compared = fits(site, layer) and (self.origins is None or self.origins.changed)
        differences = _differences(site, layer) if compared else ()
        return Match(site, layer.path, reason, differences, self.callers.get(layer.path, ()))

    def _leftover(self, index: int, explain: reasons.SiteReasons) -> tuple[str, bool]:
        """Why a site has no layer, and whether nothing uses what it constructs."""
        if (doubt := explain.doubt(index)) is not None:
            return doubt, False
        seen = self.origins.unmatched(index) if self.origins is not None else None
        return seen or (explain(index), self.source.sites[index].fate in {"in-call", "replaced"})


def _refines(one: tuple[Outline, LevelResult], other: tuple[Outline, LevelResult], layers: int) -> bool:
    """Whether one construction says the same as another, only more exactly."""
    for layer in range(layers):
        ours, theirs = one[1].sites(layer, one[0]), other[1].sites(layer, other[0])
        if not ours <= theirs or (theirs and not ours):
            return False
    return True


def _agree(site: LayerSite, layer: ModelLayer) -> bool:
    """Whether a layer is just what a site says."""
    if not fits(site, layer):
        return False
    comparison = compare(site, layer)
    return comparison.agreeing > 0 and not comparison.differences


def _is_inner(step: int, loop: tuple[int, int], outline: Outline) -> bool:
    """Whether a step is in another loop inside this one."""
    return any(other != loop and loop[0] <= other[0] <= step < other[1] <= loop[1] for other in outline.loops)


def _differences(site: LayerSite, layer: ModelLayer) -> tuple[Difference, ...]:
    """What the program now says otherwise than the trained layer."""
    if is_application(site.qualified_name):
        return ()
    differences = list(compare(site, layer).differences)
    if site.qualified_name.startswith("keras.layers."):
        given = site.arguments.get("name")
        if isinstance(given, str) and given != layer.name:
            differences.append(Difference("name", given, layer.name))
        elif (
            site.complete and given is None and "name" not in site.arguments and not has_automatic_name(layer)
        ):
            differences.append(Difference("name", "not given", layer.name))
    return tuple(differences)
