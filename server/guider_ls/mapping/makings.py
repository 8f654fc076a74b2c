"""Which of several constructions that explain a model equally well made it: names tell alike models apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from guider_engine.wire import ModelLayer
from guider_ls.mapping.comparison import automatic_number
from guider_ls.mapping.level import LevelResult
from guider_ls.source.sites import Making, Outline

_AUTOMATIC = re.compile(r"(?:functional|model|sequential)(?:_(\d+))?")

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
    left = [one for one in best if any(_may_be_called(making, name) for making in one[0].makings)] or list(
        best
    )
    for decides in (_layers_are_counted, _model_is_counted):
        if len(left) > 1:
            found = [
                one for one in left if any(decides(one, making, layers, name) for making in one[0].makings)
            ]
            left = found if len(found) == 1 else left
    return left


def _gives(making: Making, name: str) -> bool:
    return making.name_pattern == re.escape(name)


def _may_be_called(making: Making, name: str) -> bool:
    if making.name_pattern is None:
        return _AUTOMATIC.fullmatch(name) is not None
    return re.fullmatch(making.name_pattern, name) is not None


def _layers_are_counted(
    explanation: Explanation, making: Making, layers: Sequence[ModelLayer], name: str
) -> bool:
    """Whether just these names of layers come of it, had the program run from its start."""
    del name
    answers = list(_answers(explanation, making, layers))
    return bool(answers) and all(answers)


def _model_is_counted(
    explanation: Explanation, making: Making, layers: Sequence[ModelLayer], name: str
) -> bool:
    """Whether just this name of the model does, and no layer's name says otherwise."""
    found = _AUTOMATIC.fullmatch(name)
    if found is None or making.number != int(found[1] or 0):
        return False
    return False not in _answers(explanation, making, layers)


def _answers(explanation: Explanation, making: Making, layers: Sequence[ModelLayer]) -> Iterator[bool | None]:
    """For each layer with a number whether it would have that; ``None`` where the text does not say."""
    outline, result = explanation
    for index, layer in enumerate(layers):
        number = automatic_number(layer)
        if number is None or layer.class_name == "InputLayer":
            continue
        steps = result.steps.get(index, frozenset())
        if steps and all(outline.steps[step].name_pattern == re.escape(layer.name) for step in steps):
            yield True
            continue
        numbers = {making.numbers[step] for step in steps}
        yield None if None in numbers or not numbers else numbers == {number}
