"""What GUIDER's published scores are worth beside "always the last layer" and guessing.

Reads `dataset.csv` and `published_scores_headline.json` of GUIDER's replication data and prints a table:
``make bench-published DATA=FOLDER``. A bug is found if the first layer is one of its faulty ones; the nine
published runs of a bug are averaged. Nothing is run.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FORMULAS = {
    "tarantula": "Tarantula",
    "ochiai": "Ochiai",
    "D_star": "D*",
    "Op2": "Op2",
    "Barinel": "Barinel",
}


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug: which layers are faulty, and the published layer scores of its runs by formula."""

    faulty: frozenset[int]
    layers: int
    runs: tuple[dict[str, Sequence[float | None]], ...]

    @property
    def hard(self) -> bool:
        """Whether the last layer is not among the faulty ones."""
        return self.layers - 1 not in self.faulty


def read(folder: Path) -> list[Bug]:
    """All bugs of the replication data."""
    scores = json.loads((folder / "published_scores_headline.json").read_text(encoding="utf-8"))
    with (folder / "dataset.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Bug(
            frozenset(int(index) for index in row["groundtruth"].split(",")),
            len(next(iter(scores[row["id"]].values()))["neurons"]),
            tuple(scores[row["id"]].values()),
        )
        for row in rows
    ]


def best(scores: Sequence[float | None]) -> list[int]:
    """The layers that share the highest score; none if all are zero or not a number."""
    numbers = [0.0 if score is None or score != score else score for score in scores]
    if not any(numbers):
        return []
    highest = max(numbers)
    return [i for i, score in enumerate(numbers) if score == highest]


def found(bug: Bug, formula: str, *, split: bool) -> float:
    """Share of the runs that find the bug; ties split evenly, or given to the deepest layer as published."""
    total = 0.0
    for run in bug.runs:
        first = best(run[formula])
        if split and first:
            total += len(bug.faulty.intersection(first)) / len(first)
        elif first:
            total += first[-1] in bug.faulty
    return total / len(bug.runs)


def answers_last(bug: Bug, formula: str) -> float:
    """Share of the runs that put the last layer first, right or wrong."""
    firsts = [best(run[formula]) for run in bug.runs]
    return sum(bool(first) and first[-1] == bug.layers - 1 for first in firsts) / len(firsts)


def rows(bugs: list[Bug]) -> Iterator[tuple[str, float, float]]:
    """Name, bugs found of all, bugs found of the hard ones."""

    def both(name: str, one: list[float]) -> tuple[str, float, float]:
        return name, sum(one), sum(x for x, bug in zip(one, bugs, strict=True) if bug.hard)

    yield both("always the last layer", [float(not bug.hard) for bug in bugs])
    yield both("a layer at random", [len(bug.faulty) / bug.layers for bug in bugs])
    for formula, name in FORMULAS.items():
        yield both(f"GUIDER, {name}", [found(bug, formula, split=False) for bug in bugs])
        yield both(f"GUIDER, {name}, ties split", [found(bug, formula, split=True) for bug in bugs])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with dataset.csv and published_scores_headline.json")
    parser.add_argument("--output", type=Path, default=Path("build/bench/published.json"))
    options = parser.parse_args()
    if not (options.folder / "dataset.csv").is_file():
        parser.error(
            f"there is no dataset.csv in {options.folder.absolute()}; name the folder of the replication data"
        )
    bugs = read(options.folder)
    hard = sum(bug.hard for bug in bugs)
    print(f"{'found first':32} {f'of {len(bugs)}':>8} {'':>7} {f'of {hard} hard':>12}")
    figures = {}
    for name, every, difficult in rows(bugs):
        print(f"{name:32} {every:8.1f} {every / len(bugs):7.1%} {difficult:12.1f}")
        figures[name] = every
        figures[f"{name}, hard"] = difficult
    print("hard: the last layer is not among the faulty ones")
    last = [answers_last(bug, "ochiai") for bug in bugs]
    on_hard = sum(share for share, bug in zip(last, bugs, strict=True) if bug.hard)
    print(
        f"GUIDER with Ochiai answers the last layer for {sum(last):.1f} of {len(bugs)}, {on_hard:.1f} of the hard"
    )
    figures["answers the last layer"], figures["answers the last layer, hard"] = sum(last), on_hard
    options.output.parent.mkdir(parents=True, exist_ok=True)
    result = {"figures": figures, "goals": {}, "machine": "", "versions": {}}
    options.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
