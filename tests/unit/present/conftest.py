"""One report to show in every form: a composite layer, a tie, a layer without a line, an old line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from guider_engine.wire import (
    ActivationStatistics,
    Counts,
    FailingTest,
    Inputs,
    LayerPath,
    LayerScore,
    Localization,
    ModelLayer,
    ModelSummary,
    NeuronScore,
    Notice,
)
from guider_ls.mapping.mapping import Difference, Mapping, Match, UnmatchedLayer, UnmatchedSite
from guider_ls.present.report import Report
from guider_ls.source.sites import LayerSite, SourceMap, Span, Unknown

PROGRAM = """\
# 😀 modèle
model = keras.Sequential()
model.add(layers.Dense(8, activation="relu"))
e = "😀"; model.add(layers.Dense(4, activation="relu"))
model.add(Block(WIDTH))
model.add(layers.Dense(1))
"""


def site(line: int, column: int, end: int, name: str, **arguments: Any) -> LayerSite:
    own = "." if name == "Block" else "keras.layers."
    return LayerSite(Span(line, column, line, end), name, own + name, arguments, None, "", False, False)


FIRST = site(2, 10, 44, "Dense", units=8, activation="relu")
SECOND = site(3, 19, 53, "Dense", units=4, activation="relu")
BLOCK = site(4, 10, 22, "Block", width=Unknown("WIDTH"))
LAST = site(5, 10, 25, "Dense", units=1)


def neuron(position: int, score: float) -> NeuronScore:
    failing, passing = ActivationStatistics(3, 1.25, 0.5), ActivationStatistics(7, None, None)
    return NeuronScore((position,), score, 3, 1, 0, 6, 4.5, 1.5, passing, failing, 0.0, 2.0)


def layer(path: LayerPath, name: str, class_name: str, *inner: ModelLayer) -> ModelLayer:
    builtin = class_name != "Block"
    return ModelLayer(path, name, class_name, builtin, {"units": 8}, 10, (None, 8), "relu", inner)


def score(
    path: LayerPath, value: float | None, rank: int | None, *inner: LayerScore, tied: bool = False
) -> LayerScore:
    top = (neuron(7, 0.75), neuron(2, 0.5)) if rank == 1 else ()
    return LayerScore(path, value, rank, tied, 64, 8, 5, 1, 0, 0, top, inner)


@attrs.frozen
class Reports:
    """Makes the report, whole or changed."""

    root: Path

    def ranking(self, **changes: Any) -> Report:
        layers = (
            layer((0,), "dense", "Dense"),
            layer((1,), "dense_1", "Dense"),
            layer((2,), "block", "Block", layer((2, 0), "inner", "Dense")),
            layer((3,), "out<3>", "Dense"),
        )
        scores = (
            score((0,), 0.25, 3),
            score((1,), 0.625, 1, tied=True),
            score((2,), 0.125, 4, score((2, 0), 0.5, 1)),
            score((3,), 0.625, 1, tied=True),
        )
        parts: dict[str, Any] = {
            "method": "guider",
            "inputs": Inputs(str(self.root / "out" / "m.keras"), (str(self.root / "t.npz"),), str(self.root)),
            "outcome": "ranking",
            "task": "classification",
            "task_reason": "labels are whole numbers",
            "tests": Counts(10, 7, 3),
            "tests_read": "t.npz (x, y): 10×8 float32 and 10 int64",
            "model": ModelSummary("sequential", "Sequential", layers, "mse", False),
            "layers": scores,
            "examples": (FailingTest(4, "2", "0", 0.875), FailingTest(1, "1", "0", None)),
            "notices": (Notice("few-failing-tests", "Only 3 tests fail."),),
            "timings": {"model": 0.5},
            "versions": {"keras": "3.0"},
        }
        mapping = Mapping(
            (
                Match(FIRST, (0,), "first Dense", (Difference("units", "8", "16"),)),
                Match(SECOND, (1,), "second Dense"),
                Match(LAST, (3,), "last Dense"),
            ),
            (UnmatchedSite(BLOCK, "the model has no Block"),),
            (UnmatchedLayer((2,), "built elsewhere", (BLOCK,)), UnmatchedLayer((2, 0), "built elsewhere")),
        )
        source = SourceMap((FIRST, SECOND, BLOCK, LAST), ())
        program = str(self.root / "mon programme.py")
        return Report(program, source, Localization(**{**parts, **changes}), mapping, 1.5)

    def silent(self) -> Report:
        """No test fails."""
        ranked = self.ranking().localization.layers
        scores = tuple(
            score(s.path, None, None, *(score(i.path, None, None) for i in s.inner)) for s in ranked
        )
        return self.ranking(
            outcome="no-failure-signal",
            tests=Counts(10, 10, 0),
            layers=scores,
            examples=(),
            notices=(Notice("no-failing-test", "Every test passes."),),
        )


@pytest.fixture
def reports(tmp_path: Path) -> Reports:
    return Reports(tmp_path)


@pytest.fixture
def ranking(reports: Reports) -> Report:
    return reports.ranking()


@pytest.fixture
def silent(reports: Reports) -> Report:
    return reports.silent()


@pytest.fixture
def changed(reports: Reports) -> Callable[..., Report]:
    """The report with other parts of its localization."""
    return reports.ranking


@pytest.fixture
def program_text() -> str:
    return PROGRAM
