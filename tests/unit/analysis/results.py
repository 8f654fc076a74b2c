"""Results to store and to show, as the engine makes them."""

from __future__ import annotations

from guider_engine.wire import (
    ActivationStatistics,
    Counts,
    FailingTest,
    Inputs,
    LayerScore,
    Localization,
    ModelLayer,
    ModelSummary,
    NeuronScore,
    Notice,
)


def neuron(position: int, suspiciousness: float = 0.5) -> NeuronScore:
    return NeuronScore(
        (position,),
        suspiciousness,
        a_ef=20,
        a_ep=7,
        a_nf=3,
        a_np=70,
        weighted_ef=19.5,
        weighted_ep=6.5,
        passing=ActivationStatistics(77, 0.25, 0.1),
        failing=ActivationStatistics(23, 0.75, None),
        minimum=0.0,
        maximum=1.0,
    )


def score(
    path: tuple[int, ...],
    suspiciousness: float | None,
    rank: int | None,
    *,
    tied: bool = False,
    inner: tuple[LayerScore, ...] = (),
    top: tuple[NeuronScore, ...] = (),
) -> LayerScore:
    return LayerScore(
        path,
        suspiciousness,
        rank,
        tied,
        neurons=64,
        sampled=64,
        suspicious=41,
        dead=3,
        saturated=0,
        non_finite=0,
        top=top,
        inner=inner,
    )


def layer(
    path: tuple[int, ...], name: str, inner: tuple[ModelLayer, ...] = (), parameters: int = 130
) -> ModelLayer:
    return ModelLayer(
        path, name, "Dense", True, {"units": 64, "axis": [1, 2]}, parameters, (None, 64), inner=inner
    )


def localization(
    layers: tuple[ModelLayer, ...],
    scores: tuple[LayerScore, ...],
    *,
    inputs: Inputs | None = None,
    notices: tuple[Notice, ...] = (),
    signal: bool = True,
) -> Localization:
    return Localization(
        method="guider",
        inputs=inputs or Inputs("/project/model.keras", ("/project/tests.npz",), "/project"),
        outcome="ranking" if signal else "no-failure-signal",
        task="classification",
        task_reason="softmax output",
        tests=Counts(100, 77, 23) if signal else Counts(100, 100, 0),
        tests_read="tests.npz: x (100, 4) float32, y (100,) int64",
        model=ModelSummary("model", "Sequential", layers, "categorical_crossentropy", False),
        layers=scores,
        examples=(FailingTest(12, "3", "5", 0.98),) if signal else (),
        notices=notices,
        timings={"model": 0.5, "spectrum": 1.0},
        versions={"keras": "3.0"},
    )
