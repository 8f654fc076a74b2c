"""How figures of benchmarks are held against their goals, and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import figures
from benchmarks.figures import Figures


def test_a_goal_is_met_at_its_limit_and_a_figure_without_one_is_neither() -> None:
    found = Figures()
    found.add("most", 0.8, 0.8)
    found.add("too much", 0.81, 0.8)
    found.add("least", 100, least=100)
    found.add("too little", 99, least=100)
    found.add("told", 5)
    assert [found.met(name) for name in found.figures] == [True, False, True, False, None]
    assert list(found.missed()) == ["too much: 0.81, not <= 0.8", "too little: 99, not >= 100"]


def test_a_small_difference_is_not_rounded_to_none() -> None:
    found = Figures()
    found.add("difference", 2.34567e-6, 1e-6)
    assert found.figures["difference"] == 2.346e-6
    assert found.met("difference") is False


def test_figures_are_written_with_goals_machine_and_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "BUILD", tmp_path / "bench")
    found = Figures()
    found.add("ratio", 0.5, 0.8)
    body = json.loads(found.write("some", ("numpy",)).read_text())
    assert (tmp_path / "bench" / "some.json").exists()
    assert (body["figures"], body["goals"]) == ({"ratio": 0.5}, {"ratio": ["<=", 0.8]})
    assert body["machine"]["cores"] >= 1
    assert {"python", "numpy"} <= body["versions"].keys()
