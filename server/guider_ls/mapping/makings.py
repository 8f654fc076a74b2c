"""Which of several constructions that explain a model equally well made it: names tell alike models apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guider_engine.wire import ModelLayer
from guider_ls.mapping.comparison import automatic_number
from guider_ls.mapping.level import LevelResult
from guider_ls.source.sites import Making, Outline

_AUTOMATIC = re.compile(r"(?:functional|model|sequential)(?:_\d+)?")

Explanation = tuple[Outline, LevelResult]


def called(outlines: Sequence[Outline], name: str) -> list[Outline]:
    """The constructions that give their model just that name; all of them where none does."""
    named = [one for one in outlines if any(_gives(making, name) for making in one.makings)]
    return named or list(outlines)


def told_apart(best: Sequence[Explanation], layers: Sequence[ModelLayer], name: str) -> list[Explanation]:
    """Those of the explanations that the names speak for; all of them where the names do not decide.

    Args:
        best: constructions with their alignments, all equally good.
        layers: what they were aligned with.
        name: of the model that has these layers.
    """
    left = list(best)
    if len(left) > 1:
        left = [one for one in left if any(_may_be_called(making, name) for making in one[0].makings)] or left
    if len(left) > 1:
        counted = [
            one for one in left if any(_is_counted(making, one[1], layers) for making in one[0].makings)
        ]
        left = counted if len(counted) == 1 else left
    return left


def _gives(making: Making, name: str) -> bool:
    return making.name_pattern == re.escape(name)


def _may_be_called(making: Making, name: str) -> bool:
    if making.name_pattern is None:
        return _AUTOMATIC.fullmatch(name) is not None
    return re.fullmatch(making.name_pattern, name) is not None


def _is_counted(making: Making, result: LevelResult, layers: Sequence[ModelLayer]) -> bool:
    """Whether Keras would have given just these names, had the program run from its start."""
    compared = 0
    for index, layer in enumerate(layers):
        number = automatic_number(layer)
        if number is None or layer.class_name == "InputLayer":
            continue
        compared += 1
        if {making.numbers[step] for step in result.steps.get(index, ())} != {number}:
            return False
    return compared > 0
