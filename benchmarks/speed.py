"""How long a localization takes, against running the model at all: ``make bench-speed``.

Everything of one model runs in one process, in alternation, several rounds; a figure is the median. One unit is
``model.predict`` with the same batch size on the same tests. Processor time comes first: on a machine that does other
work, too, wall time says little. Models are not trained but for one epoch; that costs and proves nothing here.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import numpy as np
import tensorflow as tf
from benchmarks.figures import Figures
from keras import layers
from sklearn.datasets import load_digits

from guider_engine.counting import Counted, Plan, count, prepare
from guider_engine.load.describe import summarize
from guider_engine.load.loss import loss_of
from guider_engine.load.model import LoadedModel
from guider_engine.load.tests.testset import Block
from guider_engine.localization import localization
from guider_engine.request import Timer
from guider_engine.session import Session
from guider_engine.versions import versions
from guider_engine.wire import FORMULAS, Inputs

ROOT = Path(__file__).parents[1]
INPUTS = Inputs(model="", test_data=(), root=str(ROOT), task="classification")
WAYS = {
    "channels": replace(INPUTS, neuron="channel", neurons_per_layer=None),
    "units, 200 a layer": INPUTS,
    "every unit": replace(INPUTS, neurons_per_layer=None),
}
"""The ways of localizing that are measured."""
PARTS = ("lenet5", "mlp", "vgg", "lstm", "resnet50", "warm", "memory", "released")


@dataclass(frozen=True)
class Case:
    """A model with tests."""

    build: Callable[[], Any]
    tests: int
    batch: int
    goals: tuple[float, float, float]
    """Of channels and of every unit, in units; MB above the loaded model, every unit."""


def lenet5() -> Any:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(6, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(84, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


def mlp() -> Any:
    hidden = [
        layer for _ in range(2) for layer in (layers.Dense(512, activation="relu"), layers.Dropout(0.2))
    ]
    return keras.Sequential(
        [keras.Input((28, 28, 1)), layers.Flatten(), *hidden, layers.Dense(10, activation="softmax")]
    )


def vgg() -> Any:
    blocks = [
        layer
        for channels in (64, 128, 256)
        for layer in (
            layers.Conv2D(channels, 3, padding="same", activation="relu"),
            layers.Conv2D(channels, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
        )
    ]
    top = [layers.Flatten(), layers.Dense(256, activation="relu"), layers.Dense(10, activation="softmax")]
    return keras.Sequential([keras.Input((32, 32, 1)), *blocks, *top])


def lstm() -> Any:
    return keras.Sequential(
        [
            keras.Input((28, 28)),
            layers.LSTM(128, return_sequences=True),
            layers.LSTM(64),
            layers.Dense(10, activation="softmax"),
        ]
    )


def resnet50() -> Any:
    return keras.applications.ResNet50(weights=None, classes=10, input_shape=(224, 224, 3))


CASES = {
    "lenet5": Case(lenet5, 10_000, 512, (0.8, 1.0, 50)),
    "mlp": Case(mlp, 10_000, 512, (0.8, 1.0, 50)),
    "vgg": Case(vgg, 1_000, 64, (0.8, 1.0, 50)),
    "lstm": Case(lstm, 5_000, 512, (0.8, 1.0, 50)),
    "resnet50": Case(resnet50, 64, 8, (1.2, 1.8, 400)),
}


@dataclass(frozen=True)
class Arrays:
    """Tests in memory."""

    inputs: Any
    labels: Any
    description = ""
    notices: tuple[tuple[str, str], ...] = ()
    available = None
    classes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return len(self.labels)

    def blocks(self, rows: int) -> Iterator[Block]:
        for start in range(0, self.total, rows):
            yield Block(self.inputs[start : start + rows], self.labels[start : start + rows])


def digits(shape: tuple[int, ...], tests: int) -> Arrays:
    """scikit-learn's 1,797 digits of 8 × 8, enlarged to the shape and repeated as often as needed."""
    x, y = load_digits(return_X_y=True)
    height, width = shape[:2]
    factor = math.ceil(max(height, width) / 8)
    rows = np.arange(tests) % len(x)
    images = np.kron(x.reshape(-1, 8, 8)[rows[: len(x)]] / 16, np.ones((1, factor, factor)))
    images = images[:, :height, :width].astype(np.float32)
    if len(shape) == 3:
        images = np.repeat(images[..., None], shape[2], axis=3)
    return Arrays(images[rows % len(images)], y[rows])


def ready(name: str) -> tuple[LoadedModel, Arrays]:
    case = CASES[name]
    keras.utils.set_random_seed(7)
    model = case.build()
    tests = digits(tuple(model.input_shape[1:]), case.tests)
    model.compile("adam", "sparse_categorical_crossentropy")
    if name != "resnet50":
        model.fit(tests.inputs[:1_000], tests.labels[:1_000], verbose=0)
    return LoadedModel(model, summarize(model, loss_of(model))), tests


def quiet(*_: object) -> None:
    """Neither reports nor stops."""


def plan_of(loaded: LoadedModel, tests: Arrays, inputs: Inputs, batch: int) -> Plan:
    return prepare(loaded, tests, inputs, most=batch)


def localize(plan: Plan, tests: Arrays, inputs: Inputs) -> Counted:
    """One localization with a plan that is ready: pass, verdicts, formula, aggregation."""
    counted, used = count(plan, tests, inputs, quiet, quiet, Timer())
    assert used is plan, "there was not enough memory for the batch"
    localization(inputs, plan.loaded.summary, counted, {})
    return counted


# Against running the model


def per_layer(model: Any, tests: Arrays, batch: int) -> Callable[[], None]:
    """One model for each layer, as DeepFault and GUIDER's package read activations."""
    parts = [keras.Model(model.inputs, layer.output) for layer in model.layers]

    def run() -> None:
        for part in parts:
            for start in range(0, tests.total, 8 * batch):
                part.predict(tests.inputs[start : start + 8 * batch], batch_size=batch, verbose=0)

    return run


def all_outputs(model: Any, tests: Arrays, batch: int) -> Callable[[], None]:
    """All outputs of all tests as arrays, then counted."""
    whole = keras.Model(model.inputs, [layer.output for layer in model.layers])

    def run() -> None:
        outputs = whole.predict(tests.inputs, batch_size=batch, verbose=0)
        failed = np.argmax(outputs[-1], axis=1) != tests.labels
        for output in outputs:
            active = output.reshape(len(output), -1) > INPUTS.threshold
            active[failed].sum(axis=0), active[~failed].sum(axis=0)

    return run


def forward(model: Any, tests: Arrays, batch: int) -> Callable[[], None]:
    """The model as a graph: the floor."""
    function = tf.function(lambda x: model(x, training=False))

    def run() -> None:
        for start in range(0, tests.total, batch):
            part = tests.inputs[start : start + batch]
            function(np.concatenate([part, np.repeat(part[-1:], batch - len(part), axis=0)]))

    return run


def in_turn(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Median processor and wall seconds of each, after one run that does not count."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for round_ in range(rounds + 1):
        for name, run in work.items():
            processor, wall = time.process_time(), time.perf_counter()
            run()
            if round_:
                found[name].append((time.process_time() - processor, time.perf_counter() - wall))
    return {name: (median(p for p, _ in times), median(w for _, w in times)) for name, times in found.items()}


def against_predict(name: str, figures: Figures, rounds: int) -> None:
    case = CASES[name]
    loaded, tests = ready(name)
    model, batch = loaded.model, case.batch
    work: dict[str, Callable[[], object]] = {
        "model.predict": lambda: model.predict(tests.inputs, batch_size=batch, verbose=0),
        "forward pass alone": forward(model, tests, batch),
    }
    plans = {way: plan_of(loaded, tests, inputs, batch) for way, inputs in WAYS.items()}
    for way, plan in plans.items():
        work[way] = partial(localize, plan, tests, WAYS[way])
    if name != "resnet50":  # where they would take minutes, and 10 GB
        work["all outputs as arrays"] = all_outputs(model, tests, batch)
        work["a model for each layer"] = per_layer(model, tests, batch)
    times = in_turn(work, rounds)
    unit = times["model.predict"]
    print(
        f"\n{name}: {tests.total:,} tests, {batch} a batch; unit {unit[0]:.2f} s processor, {unit[1]:.2f} s wall"
    )
    row("", "processor", "wall", "goal", "")
    for way, (processor, wall) in times.items():
        key = f"{name}: {way}"
        goal = {"channels": case.goals[0], "every unit": case.goals[1]}.get(way)
        figures.add(key, processor / unit[0], goal)
        figures.add(f"{key}, wall", wall / unit[1])
        said = {True: "met", False: "MISSED", None: ""}[figures.met(key)]
        row(f"  {way}", processor / unit[0], wall / unit[1], "" if goal is None else f"≤ {goal:g}", said)
    floor = times["forward pass alone"][0] / unit[0]
    if any(figures.met(f"{name}: {way}") is False for way in WAYS):
        print(f"  In the way: the forward pass alone is {floor:.2f} of the unit; beyond it, by operation:")
        for way in [way for way in WAYS if figures.met(f"{name}: {way}") is False]:
            print(f"    {way}: {profile(partial(localize, plans[way], tests, WAYS[way]), model)}")
    if name == "lenet5":
        other_formulas(loaded, tests, plans["units, 200 a layer"], figures)


def profile(run: Callable[[], object], model: Any) -> str:
    """The operations beside the model's own that take most processor time, with their share of all."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder, tf.profiler.experimental.ProfilerOptions(host_tracer_level=2))
        run()
        tf.profiler.experimental.stop()
        space = xplane_pb2.XSpace()
        space.ParseFromString(next(Path(folder).rglob("*.xplane.pb")).read_bytes())
    spent: dict[str, float] = {}
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                if ":" in name and "::" not in name and " " not in name:  # an operation: name:kind
                    owner, kind = name.rsplit(":", 1)
                    key = "the model" if owner.startswith(model.name) or "/" in owner else kind
                    spent[key] = spent.get(key, 0.0) + event.duration_ps
    total = sum(spent.values()) or 1.0
    most = sorted(spent.items(), key=lambda item: -item[1])[:6]
    return ", ".join(f"{key.lstrip('_')} {share / total:.0%}" for key, share in most)


def other_formulas(loaded: LoadedModel, tests: Arrays, plan: Plan, figures: Figures) -> None:
    """What another formula costs once the tests were counted."""
    counted = localize(plan, tests, INPUTS)
    times = []
    for _ in range(5):
        for formula in FORMULAS:
            inputs = replace(INPUTS, formula=formula)
            start = time.process_time()
            localization(inputs, loaded.summary, counted, {})
            times.append(1000 * (time.process_time() - start))
    figures.add("another formula on a kept spectrum, ms", median(times), 2)
    print(f"  another formula on a kept spectrum: {median(times):.2f} ms (goal ≤ 2)")


# Warm


def warm(figures: Figures, rounds: int) -> None:
    """New weights, other tests, the same again, in one session."""
    loaded, tests = ready("lenet5")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model_path, tests_path = folder / "model.keras", folder / "tests.npz"
        inputs = replace(INPUTS, model=str(model_path), test_data=(str(tests_path),), root=name)
        session = Session()
        taken: dict[str, list[float]] = {"other tests": [], "pass": [], "new weights": [], "nothing": []}
        for round_ in range(rounds + 1):
            for what in taken:
                if what == "other tests":
                    np.savez(tests_path, x_test=tests.inputs + np.float32(round_ / 1e4), y_test=tests.labels)
                if what == "new weights":
                    for variable in loaded.model.trainable_variables:
                        variable.assign(variable * 0.999)
                if what == "new weights" or not model_path.exists():
                    loaded.model.save(model_path)
                traced = _traces(session)
                start = time.process_time()
                if what == "pass":
                    assert session._plan is not None
                    count(session._plan, tests, inputs, quiet, quiet, Timer())
                    timings = {}
                else:
                    timings = dict(session.localize(inputs, quiet, quiet).timings)
                spent = time.process_time() - start
                if not round_:
                    continue
                assert _traces(session) == traced, "the pass was traced again"
                assert "model" not in timings, "the model was loaded again"
                assert what != "nothing" or "spectrum" not in timings, "the tests were run again"
                taken[what].append(spent)
        unit = median(taken["pass"])
        figures.add("new weights / one pass", median(taken["new weights"]) / unit, 1.1)
        figures.add("other tests / one pass", median(taken["other tests"]) / unit)
        figures.add("nothing changed / one pass", median(taken["nothing"]) / unit)
    print("\nWarm, LeNet-5, from request to result, in passes of the tests through the model")
    for key in ("new weights", "other tests", "nothing changed"):
        row(f"  {key}", figures.figures[f"{key} / one pass"])


def _traces(session: Session) -> int:
    """How often the session's pass was traced."""
    stream: Any = session._plan.stream if session._plan else None
    return int(stream.traces) if stream else 0


# Memory


def memory(figures: Figures) -> None:
    print("\nMemory above the loaded model, MB")
    row("", "N", "4 N", "goal", "")
    for name, case in CASES.items():
        for way in WAYS:
            once, more = (_peak(name, way, times) for times in (1, 4))
            key = f"{name}: {way}, MB"
            figures.add(key, once, case.goals[2] if way == "every unit" else None)
            figures.add(f"{key}, four times the tests", more)
            said = {True: "met", False: "MISSED", None: ""}[figures.met(key)]
            goal = f"≤ {case.goals[2]:g}" if way == "every unit" else ""
            row(f"  {name}: {way}", once, more, goal, said)


def _peak(name: str, way: str, times: int) -> float:
    command = [sys.executable, "-m", "benchmarks.speed", "--peak", name, way, str(times)]
    return float(
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()[-1]
    )


def peak(name: str, way: str, times: int) -> float:
    """MB by which the process grows at most beyond what it took with the model loaded and the tests in memory."""
    loaded, tests = ready(name)
    case = CASES[name]
    few = 64 if name == "resnet50" else 1_000
    tests = Arrays(
        np.tile(tests.inputs[:few], (times, *[1] * (tests.inputs.ndim - 1))),
        np.tile(tests.labels[:few], times),
    )
    loaded.model.predict(tests.inputs[: case.batch], batch_size=case.batch, verbose=0)
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    localize(plan_of(loaded, tests, WAYS[way], case.batch), tests, WAYS[way])
    return _status("VmHWM") - before


def _status(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024


# Released code


def released(figures: Figures, copies: dict[str, str]) -> None:
    for name, path in copies.items():
        if not path:
            print(f"\n{name}'s released code: not run, no copy was named ({name.upper()}=…)")
            continue
        module = ["benchmarks.mutants"] if name == "deepmufl" else ["benchmarks.released", name]
        command = [sys.executable, "-m", *module, str(Path(path).absolute())]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if found.returncode:
            print(f"\n{name}'s released code does not run here: {found.stderr.strip().splitlines()[-1]}")
            continue
        theirs, ours, *others = map(float, found.stdout.splitlines()[-1].split())
        goal = 20_000 if name == "deepmufl" else 100
        key = f"{name}'s released code / ours, 1,000 tests, LeNet-5"
        figures.add(key, theirs / ours, least=goal)
        print(
            f"\n{name}'s released code, LeNet-5, 1,000 tests: {theirs:.2f} s, ours {ours:.4f} s: {theirs / ours:,.0f} "
            f"times as long (goal ≥ {goal:,}, {'met' if figures.met(key) else 'MISSED'})"
        )
        if name == "deepmufl":
            made, ran, failed = others
            print(f"  reckoned from {ran:.0f} of its {made:,.0f} mutants, {failed:.0f} of which did not run")
        else:
            figures.add(f"{name}: largest difference of a score or count", others[0], 1e-6)
            print(f"  largest difference of a {'score' if name == 'guider' else 'count'}: {others[0]:.1e}")


def row(*cells: object) -> None:
    first, *others = (f"{cell:,.2f}" if isinstance(cell, float) else str(cell) for cell in cells)
    print(f"{first:46}" + "".join(f"{cell:>12}" for cell in others), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--guider", default="", help="a copy of GUIDER's replication package")
    parser.add_argument("--deepfault", default="", help="a copy of DeepFault")
    parser.add_argument("--deepmufl", default="", help="a copy of deepmufl")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*", default=PARTS, help=f"some of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    if arguments.peak:
        name, way, times = arguments.peak
        print(peak(name, way, int(times)))
        return
    figures = Figures()
    for part in arguments.parts:
        if part in CASES:
            against_predict(part, figures, arguments.rounds if part != "resnet50" else 3)
        elif part == "warm":
            warm(figures, arguments.rounds)
        elif part == "memory":
            memory(figures)
        else:
            released(
                figures, {name: getattr(arguments, name) for name in ("guider", "deepfault", "deepmufl")}
            )
    figures.conclude()
    path = figures.write("speed", ("keras", "tensorflow-cpu", "numpy"))
    print(f"{path.relative_to(ROOT)}; {', '.join(f'{name} {number}' for name, number in versions().items())}")


if __name__ == "__main__":
    main()
