"""The dynamic program against the enumeration of every alignment."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from guider_ls.mapping.sequences import SKIPPED_LAYER, SKIPPED_STEP, Automaton, align_sequences

Pairs = tuple[int | None, ...]


def walks(automaton: Automaton, layers: int, worth: list[list[int | None]]) -> Iterator[tuple[int, Pairs]]:
    """Every walk through the automaton with its score and the step of each layer (no idle round of a loop)."""

    def go(
        position: int, layer: int, score: int, pairs: Pairs, jumped: frozenset[int]
    ) -> Iterator[tuple[int, Pairs]]:
        if position == automaton.count and layer == layers:
            yield score, pairs
        if layer < layers:
            yield from go(position, layer + 1, score - SKIPPED_LAYER, (*pairs, None), frozenset())
        if position < automaton.count:
            free = automaton.optional[position] or automaton.spread[position]
            yield from go(position + 1, layer, score - (0 if free else SKIPPED_STEP), pairs, jumped)
            if layer < layers and (gain := worth[layer][position]) is not None:
                target = position if automaton.spread[position] else position + 1
                yield from go(target, layer + 1, score + gain, (*pairs, position), frozenset())
        for number, (start, end) in enumerate(automaton.loops):
            if number not in jumped:
                if position == end:
                    yield from go(start, layer, score, pairs, jumped | {number})
                if position == start:
                    yield from go(end, layer, score, pairs, jumped | {number})

    return go(0, 0, 0, (), frozenset())


@st.composite
def problems(draw: st.DrawFn) -> tuple[Automaton, int, list[list[int | None]]]:
    count, layers = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    flags = st.lists(st.booleans(), min_size=count, max_size=count)
    spread = [False] * count
    if count and draw(st.integers(0, 3)) == 0:
        spread[draw(st.integers(0, count - 1))] = True
    loops = []
    if count and draw(st.booleans()):
        start = draw(st.integers(0, count - 1))
        loops.append((start, draw(st.integers(start + 1, count))))
    gains = st.lists(st.sampled_from([None, 10, 100, 128, 256]), min_size=count, max_size=count)
    return Automaton(count, draw(flags), spread, loops), layers, [draw(gains) for _ in range(layers)]


@settings(max_examples=300, deadline=None)
@given(problems())
def test_all_best_alignments_are_found_and_no_other(
    problem: tuple[Automaton, int, list[list[int | None]]],
) -> None:
    automaton, layers, worth = problem
    found = align_sequences(automaton, layers, lambda step, layer: worth[layer][step])
    every = list(walks(automaton, layers, worth))
    best = max(score for score, _ in every)
    optimal = [pairs for score, pairs in every if score == best]
    assert found.score == best
    for layer in range(layers):
        assert found.steps[layer] == {pairs[layer] for pairs in optimal} - {None}
        assert found.skipped[layer] == any(pairs[layer] is None for pairs in optimal)


def test_a_loop_may_run_any_number_of_times() -> None:
    automaton = Automaton(3, [False] * 3, [False] * 3, [(0, 2)])
    kinds = "abababc"
    found = align_sequences(automaton, 7, lambda step, layer: 100 if "abc"[step] == kinds[layer] else None)
    assert [set(steps) for steps in found.steps] == [{0}, {1}, {0}, {1}, {0}, {1}, {2}]
    assert not any(found.skipped)
