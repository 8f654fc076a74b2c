"""One level of a model (its own layers, or those inside one of them) against one construction.

Where the order of the layers is the order of construction (``Sequential``), all are aligned at once. Elsewhere
``model.layers`` is in topological order, which says little of construction; then only layers of one class are
aligned with each other, those with automatic names in the order of their numbers. Layers that the program named
are paired by that name first, and never by order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from guider_engine.wire import ModelLayer
from guider_ls.mapping.comparison import Comparisons, automatic_number, fits, may_hide_in
from guider_ls.mapping.sequences import SKIPPED_LAYER, SKIPPED_STEP, Automaton, align_sequences
from guider_ls.source.sites import LayerSite, Outline, Step

_CLASS = 128
_ARGUMENTS = 128
_NAME = 256
_RENAMED = 96
_SPREAD = 100


@dataclass(slots=True)
class LevelResult:
    """Pairs found at one level, by position of the layer."""

    score: int = 0
    steps: dict[int, frozenset[int]] = field(default_factory=dict)
    """Steps that a layer may come from; one site among them: the pair is certain."""
    uncertain: set[int] = field(default_factory=set)
    """Layers that some best alignment leaves out."""

    def sites(self, layer: int, outline: Outline) -> frozenset[int]:
        """Indices of the sites that a layer may come from."""
        return frozenset(outline.steps[step].site for step in self.steps.get(layer, ()))

    def certain(self, layer: int, outline: Outline) -> int | None:
        """Index of the one site that a layer surely comes from."""
        sites = self.sites(layer, outline)
        return next(iter(sites)) if len(sites) == 1 and layer not in self.uncertain else None


def align_level(
    sites: Sequence[LayerSite],
    outline: Outline,
    layers: Sequence[ModelLayer],
    compare: Comparisons,
    *,
    ordered: bool,
) -> LevelResult:
    """Align the layers of one level with one construction; ``ordered``: they are in construction order."""
    level = _Level(sites, outline, layers, compare)
    if ordered:
        level.align(range(len(layers)), range(len(outline.steps)))
    else:
        level.align_by_class()
    return level.result


class _Level:
    def __init__(
        self,
        sites: Sequence[LayerSite],
        outline: Outline,
        layers: Sequence[ModelLayer],
        compare: Comparisons,
    ) -> None:
        self.sites, self.outline, self.layers, self.compare = sites, outline, layers, compare
        self.numbers = [automatic_number(layer) for layer in layers]
        """See `automatic_number`."""
        self.result = LevelResult()
        self._worth: dict[tuple[int, str | None, bool, int], int | None] = {}

    def worth(self, step: Step, layer: int) -> int | None:
        """Worth of pairing a step with a layer; ``None`` when the layer cannot come from it."""
        key = (step.site, step.name_pattern, step.spread, layer)
        if key not in self._worth:
            self._worth[key] = self._compute_worth(step, layer)
        return self._worth[key]

    def _compute_worth(self, step: Step, index: int) -> int | None:
        site, layer = self.sites[step.site], self.layers[index]
        if step.spread:
            return _SPREAD if may_hide_in(site, layer) else None
        if not fits(site, layer):
            return None
        worth = _CLASS
        pattern = step.name_pattern
        automatic = self.numbers[index] is not None
        if pattern is None:
            worth -= 0 if automatic else _RENAMED
        elif pattern != ".*":
            if re.fullmatch(pattern, layer.name):
                worth += 0 if automatic else _NAME  # Keras may have chosen it for a layer of another line
            elif not automatic:
                return None
            else:
                worth -= _RENAMED
        comparison = self.compare(site, layer)
        compared = comparison.agreeing + len(comparison.differences)
        # Arguments that the text does not say count as agreeing: they may.
        worth += _ARGUMENTS * comparison.agreeing // compared if compared else _ARGUMENTS
        return worth

    def align(self, layers: Sequence[int], steps: Sequence[int]) -> None:
        """Align some layers with some steps, both in order."""
        chosen = [self.outline.steps[step] for step in steps]
        automaton = Automaton(
            len(chosen),
            [step.optional or self.sites[step.site].class_name == "InputLayer" for step in chosen],
            [step.spread for step in chosen],
            _project(self.outline.loops, steps),
        )
        alignment = align_sequences(
            automaton, len(layers), lambda step, layer: self.worth(chosen[step], layers[layer])
        )
        self.result.score += alignment.score
        for position, layer in enumerate(layers):
            self.result.steps[layer] = frozenset(steps[step] for step in alignment.steps[position])
            if alignment.skipped[position]:
                self.result.uncertain.add(layer)

    def align_by_class(self) -> None:
        """Align class by class: by given names first, then by automatic number."""
        taken = self._by_exact_name()
        kinds: dict[tuple[str, bool], list[int]] = {}
        for index, layer in enumerate(self.layers):
            if index not in self.result.steps:
                kinds.setdefault((layer.class_name, layer.builtin), []).append(index)
        rest = [index for index in range(len(self.outline.steps)) if index not in taken]
        used: set[int] = set()
        for members in kinds.values():
            given = [index for index in members if self.numbers[index] is None]
            numbered = [index for index in members if index not in given]
            numbered.sort(key=lambda index: self.numbers[index] or 0)
            steps = [
                index
                for index in rest
                if self.outline.steps[index].spread
                or fits(self.sites[self.outline.steps[index].site], self.layers[members[0]])
            ]
            used.update(steps)
            named = [index for index in steps if self._is_named(index)]
            matched = self._by_name_pattern(given, steps)
            self.align(numbered, [index for index in steps if index not in named or index not in matched])
        absent = [index for index in rest if index not in used and not self.outline.steps[index].optional]
        self.result.score -= SKIPPED_STEP * len(absent)

    def _is_named(self, index: int) -> bool:
        return self.outline.steps[index].name_pattern not in {None, ".*"}

    def _by_exact_name(self) -> set[int]:
        """Pair layers with the steps that give just their name; the steps taken."""
        taken: set[int] = set()
        for index, layer in enumerate(self.layers):
            exact = re.escape(layer.name)
            steps = [
                number
                for number, step in enumerate(self.outline.steps)
                if step.name_pattern == exact and self.worth(step, index) is not None
            ]
            if len({self.outline.steps[step].site for step in steps}) == 1:
                self.result.steps[index] = frozenset(steps)
                self.result.score += self.worth(self.outline.steps[steps[0]], index) or 0
                taken.update(steps)
        return taken

    def _by_name_pattern(self, layers: Sequence[int], steps: Sequence[int]) -> set[int]:
        """Pair layers that the program named, whatever their order; the steps that may have made them."""
        matched: set[int] = set()
        for layer in layers:
            possible = [step for step in steps if self._may_name(step, layer)]
            strength = {step: self._strength(step, layer) for step in possible}
            best = max(strength.values(), default=(0, 0))
            chosen = frozenset(step for step in possible if strength[step] == best)
            worth = max((self.worth(self.outline.steps[step], layer) or 0 for step in chosen), default=0)
            self.result.score += worth if chosen else -SKIPPED_LAYER
            self.result.steps[layer] = chosen
            matched |= {step for step in chosen if not self.outline.steps[step].spread}
        return matched

    def _may_name(self, index: int, layer: int) -> bool:
        """Whether a step may have named a layer: the name has to speak for it, or every argument."""
        step = self.outline.steps[index]
        if step.name_pattern is None or self.worth(step, layer) is None:
            return False
        supported = step.name_pattern != ".*" or step.spread
        return supported or not self.compare(self.sites[step.site], self.layers[layer]).differences

    def _strength(self, index: int, layer: int) -> tuple[int, int]:
        """How well a step explains a layer that the program named: by its name, then by differing arguments."""
        step = self.outline.steps[index]
        if step.spread:
            return 0, -1000
        differences = self.compare(self.sites[step.site], self.layers[layer]).differences
        return int(step.name_pattern != ".*"), -len(differences)


def _project(loops: Sequence[tuple[int, int]], steps: Sequence[int]) -> list[tuple[int, int]]:
    """Loops in terms of positions in ``steps``, a sorted choice of all steps."""
    projected = []
    for start, end in loops:
        inside = [position for position, step in enumerate(steps) if start <= step < end]
        if inside:
            projected.append((inside[0], inside[-1] + 1))
    return sorted(set(projected))
