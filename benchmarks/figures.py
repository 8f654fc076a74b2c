"""Figures of a benchmark, the goals of some, and where they are written."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

BUILD = Path(__file__).parents[1] / "build" / "bench"


class Figures:
    """Numbers by name, with the goals of some."""

    def __init__(self) -> None:
        """None yet."""
        self.figures: dict[str, float] = {}
        self.goals: dict[str, tuple[str, float]] = {}
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0

    def add(self, name: str, value: float, most: float | None = None, *, least: float | None = None) -> None:
        """Note a figure; ``most`` or ``least`` is its goal."""
        self.figures[name] = float(f"{value:.4g}")
        if most is not None:
            self.goals[name] = ("<=", most)
        elif least is not None:
            self.goals[name] = (">=", least)

    def met(self, name: str) -> bool | None:
        """Whether a figure meets its goal; ``None``: it has none."""
        if name not in self.goals:
            return None
        sign, goal = self.goals[name]
        return self.figures[name] <= goal if sign == "<=" else self.figures[name] >= goal

    def missed(self) -> Iterator[str]:
        """Figures that miss their goals, for people."""
        for name, (sign, goal) in self.goals.items():
            if not self.met(name):
                yield f"{name}: {self.figures[name]:g}, not {sign} {goal:g}"

    def conclude(self) -> None:
        """Print which goals are not met, and whether other work made wall times too long."""
        missed = list(self.missed())
        print("\nGoals not met:" if missed else "\nAll goals are met.", *missed, sep="\n  ")
        if self._load > 1:
            print(f"Other work kept the machine busy (load {self._load:.1f}); wall times are too long.")

    def write(self, name: str, packages: Sequence[str]) -> Path:
        """Write ``build/bench/NAME.json``."""
        body = {
            "figures": self.figures,
            "goals": self.goals,
            "machine": {
                "system": platform.platform(),
                "processor": platform.machine(),
                "cores": os.cpu_count(),
                "load": round(self._load, 2),
            },
            "versions": {"python": platform.python_version()} | {one: version(one) for one in packages},
        }
        BUILD.mkdir(parents=True, exist_ok=True)
        path = BUILD / f"{name}.json"
        path.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
        return path
