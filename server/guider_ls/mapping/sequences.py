"""Best alignments of a construction with a sequence of layers: all of them, not one of them.

A construction is a sequence of steps in which optional steps may be left out and loops may run any number of
times, so it is an automaton whose states are the positions between its steps. Aligning is a walk through that
automaton which may skip steps and layers at a price. The forward table holds the best score of reaching a
position after a number of layers, the backward table the best score from there to the end; a pairing belongs to
some best alignment exactly when forward + pair + backward is the best score of all. What a pairing is worth is
the caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

SKIPPED_STEP = 48
SKIPPED_LAYER = 32
_NEVER = -(10**9)

Worth = Callable[[int, int], int | None]
"""Worth of pairing a step with a layer; ``None`` forbids it."""


@dataclass(frozen=True, slots=True)
class Automaton:
    """The steps of a construction. Stretches are ``[start, end)``."""

    count: int
    optional: Sequence[bool]
    spread: Sequence[bool]
    """Steps that take any number of layers."""
    loops: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Alignment:
    """All best alignments together."""

    score: int
    steps: tuple[frozenset[int], ...]
    """For each layer the steps that a best alignment pairs it with."""
    skipped: tuple[bool, ...]
    """For each layer whether a best alignment leaves it out."""


def align_sequences(automaton: Automaton, layers: int, worth: Worth) -> Alignment:
    """Align a construction with ``layers`` layers."""
    count = automaton.count
    price = [
        0 if optional or spread else SKIPPED_STEP
        for optional, spread in zip(automaton.optional, automaton.spread, strict=True)
    ]
    table = [[worth(step, layer) for step in range(count)] for layer in range(layers)]

    def settle(row: list[int], *, backward: bool) -> None:
        """Let scores flow along the moves that consume no layer, until none improves."""
        order = range(count - 1, -1, -1) if backward else range(count)
        for _ in range(len(automaton.loops) + 2):
            changed = False
            for step in order:
                changed |= _improve(row, step, step + 1, price[step], backward)
            for start, end in automaton.loops:
                changed |= _improve(row, start, end, 0, backward)
                changed |= _improve(row, end, start, 0, backward)
            if not changed:
                return

    forward = [[_NEVER] * (count + 1) for _ in range(layers + 1)]
    forward[0][0] = 0
    settle(forward[0], backward=False)
    for layer in range(layers):
        row, following = forward[layer], forward[layer + 1]
        for position in range(count + 1):
            following[position] = row[position] - SKIPPED_LAYER
        for step in range(count):
            gain = table[layer][step]
            if gain is not None:
                target = step if automaton.spread[step] else step + 1
                following[target] = max(following[target], row[step] + gain)
        settle(following, backward=False)

    backward = [[_NEVER] * (count + 1) for _ in range(layers + 1)]
    backward[layers][count] = 0
    settle(backward[layers], backward=True)
    for layer in reversed(range(layers)):
        row, following = backward[layer], backward[layer + 1]
        for position in range(count + 1):
            row[position] = following[position] - SKIPPED_LAYER
        for step in range(count):
            gain = table[layer][step]
            if gain is not None:
                target = step if automaton.spread[step] else step + 1
                row[step] = max(row[step], following[target] + gain)
        settle(row, backward=True)

    best = forward[layers][count]
    steps: list[frozenset[int]] = []
    skipped: list[bool] = []
    for layer in range(layers):
        row, following = forward[layer], backward[layer + 1]
        chosen = set()
        for step in range(count):
            gain = table[layer][step]
            target = step if automaton.spread[step] else step + 1
            if gain is not None and row[step] + gain + following[target] == best:
                chosen.add(step)
        steps.append(frozenset(chosen))
        skipped.append(any(row[p] - SKIPPED_LAYER + following[p] == best for p in range(count + 1)))
    return Alignment(best, tuple(steps), tuple(skipped))


def _improve(row: list[int], source: int, target: int, price: int, backward: bool) -> bool:
    if backward:
        source, target = target, source
    if row[source] - price > row[target]:
        row[target] = row[source] - price
        return True
    return False
