"""Ranks with ties said to be ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TIE = 1e-9
"""Relative difference below which two layers are tied: sums of the same numbers in another order."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Place in the ranking: 1 is the most suspicious; tied items share the best place of their group."""

    place: int
    tied: bool


def rank(scores: Sequence[float]) -> tuple[Rank, ...]:
    """Rank by descending score, as in competitions (1, 2, 2, 4).

    The published code breaks ties in favour of the deeper layer; here nothing is broken, the caller sees ``tied``.
    """
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    places = [Rank(0, False)] * len(scores)
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and _tie(scores[order[end - 1]], scores[order[end]]):
            end += 1
        for i in order[start:end]:
            places[i] = Rank(start + 1, end - start > 1)
        start = end
    return tuple(places)


def _tie(a: float, b: float) -> bool:
    return abs(a - b) <= TIE * max(abs(a), abs(b), 1e-12)
