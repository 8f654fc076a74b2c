"""Released code of GUIDER and DeepFault beside ours: the same model, the same tests, the same counts.

Usage: ``python -m benchmarks.released guider|deepfault FOLDER``; the last line is their seconds, ours, and the largest
difference. Their files are run from a copy, on ``tf_keras``, with old spellings made to work.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.speed import INPUTS, Arrays, digits, localize, plan_of

from guider_engine.load.describe import summarize
from guider_engine.load.loss import loss_of
from guider_engine.load.model import LoadedModel
from guider_engine.localization import localization
from guider_engine.wire import Formula

TESTS = 1_000
FORMULAS: dict[str, Formula] = {
    "tarantula": "tarantula",
    "ochiai": "ochiai",
    "D_star": "dstar",
    "Op2": "op2",
    "Barinel": "barinel",
}
"""GUIDER's names, and ours."""


def main() -> None:
    """Run one of them."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    keras = _old_keras()
    model, tests = _lenet5(keras)
    run = {"guider": guider, "deepfault": deepfault}[name]
    theirs, ours, difference = run(model, tests, folder)
    print(theirs, ours, difference)


def guider(model: Any, tests: Arrays, folder: Path) -> tuple[float, float, float]:
    """Five formulas at once, 200 units of a layer; layer scores are compared."""
    import pandas

    if not hasattr(pandas.DataFrame, "applymap"):
        pandas.DataFrame.applymap = pandas.DataFrame.map
    sys.path.insert(0, str(folder / "Code"))
    import main as code  # type: ignore[import-not-found]

    found: dict[str, Any] = {}
    theirs = _seconds(lambda: code.main(tests.inputs, tests.labels, model, True, 0.1, found, 200, 7))
    loaded = LoadedModel(model, summarize(model, loss_of(model)))
    plan = plan_of(loaded, tests, INPUTS, 512)
    localize(plan, tests, INPUTS)

    def all_formulas() -> Any:
        counted = localize(plan, tests, INPUTS)
        return [
            localization(replace(INPUTS, formula=ours), loaded.summary, counted, {})
            for ours in FORMULAS.values()
        ]

    ours = min(_seconds(all_formulas) for _ in range(5))
    worst = 0.0
    for name, result in zip(FORMULAS, all_formulas(), strict=True):
        scores = np.array([layer.suspiciousness for layer in result.layers], float)
        expected = np.array(found[f"layer_{name}_score"], float)
        worst = max(worst, float(np.max(np.abs(scores - expected) / np.maximum(1, np.abs(expected)))))
    return theirs, ours, worst


def deepfault(model: Any, tests: Arrays, folder: Path) -> tuple[float, float, float]:
    """One neuron a channel, active above 0, of the layers with weights; counts are compared."""
    sys.path.insert(0, str(folder))
    import utils as code  # type: ignore[import-not-found]

    trainable = [i for i, layer in enumerate(model.layers) if layer.get_weights()][:-1]
    predicted = np.argmax(model.predict(tests.inputs, verbose=0), axis=1)
    right = set(np.flatnonzero(predicted == tests.labels).tolist())
    wrong = set(range(tests.total)) - right
    found: list[Any] = []

    def run() -> None:
        outputs = code.get_layer_outs(model, tests.inputs)
        found[:] = code.construct_spectrum_matrices(model, trainable, right, wrong, outputs)

    theirs = _seconds(run)
    inputs = replace(INPUTS, neuron="channel", neurons_per_layer=None, threshold=0.0, weighted=False)
    loaded = LoadedModel(model, summarize(model, loss_of(model)))
    plan = plan_of(loaded, tests, inputs, 512)
    counted = localize(plan, tests, inputs)
    ours = min(_seconds(lambda: localize(plan, tests, inputs)) for _ in range(5))
    _, failed, _, passed, _ = found
    worst = 0.0
    for place, layer in enumerate(trainable):
        counts = counted.hits.layers[layer,].counts
        worst = max(
            worst,
            float(np.abs(counts[0] - failed[place]).max()),
            float(np.abs(counts[1] - passed[place]).max()),
        )
    return theirs, ours, worst


def _lenet5(keras: Any) -> tuple[Any, Arrays]:
    layers = keras.layers
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            layers.Conv2D(6, 5, padding="same", activation="relu", input_shape=(28, 28, 1)),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(84, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    tests = digits((28, 28, 1), TESTS)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(tests.inputs, tests.labels, epochs=3, verbose=0)
    return model, tests


def _old_keras() -> Any:
    """``tf_keras`` by the name of ``keras`` and of the modules that old code imports from it."""
    import tf_keras

    old = types.ModuleType("keras.utils")
    old.__dict__.update(vars(tf_keras.utils), np_utils=tf_keras.utils)
    for name, module in list(sys.modules.items()):
        if name == "tf_keras" or name.startswith("tf_keras."):
            sys.modules[name.removeprefix("tf_")] = module
    sys.modules["keras.utils"] = old
    return tf_keras


def _seconds(run: Callable[[], object]) -> float:
    """Processor time; what is printed meanwhile is not."""
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
