"""What a warm session keeps, and what makes it start afresh."""

from __future__ import annotations

import dataclasses
import gc
import os
import sys
import tracemalloc
import warnings
import weakref
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.conftest import quiet

from guider_engine.errors import CancelRequested, EngineFailure
from guider_engine.session import Session
from guider_engine.wire import FORMULAS, Inputs, Localization, Localized, encode


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    write_model(tmp_path, seed=0)
    write_tests(tmp_path, 40)
    return Inputs(str(tmp_path / "m.keras"), (str(tmp_path / "t.npz"),), str(tmp_path))


def write_model(folder: Path, seed: int, units: int = 6) -> None:
    keras.utils.set_random_seed(seed)
    keras.Sequential(
        [
            layers.Input((3,), name="input"),
            layers.Dense(units, activation="relu", name="hidden"),
            layers.Dense(3, "softmax", name="output"),
        ],
        name="model",
    ).save(folder / "m.keras")


def write_tests(folder: Path, tests: int, dtype: str = "float32") -> None:
    x = np.random.default_rng(tests).normal(size=(tests, 3)).astype(dtype)
    np.savez(folder / "t.npz", x=x, y=np.arange(tests) % 3)


def stages(session: Session, inputs: Inputs) -> set[str]:
    return set(session.localize(inputs, quiet, quiet).timings)


def result(found: Localization) -> bytes:
    """All of a result but the time that it took."""
    return encode(Localized(1, dataclasses.replace(found, timings={})))


def traces(session: Session) -> int:
    assert session._plan is not None
    stream: Any = session._plan.stream
    return int(stream.traces)


def with_(inputs: Inputs, **changes: Any) -> Inputs:
    return dataclasses.replace(inputs, **changes)


def test_another_formula_or_aggregation_runs_nothing(session: Session, inputs: Inputs) -> None:
    assert {"model", "spectrum"} <= stages(session, inputs)
    changes: list[dict[str, Any]] = [{"formula": formula} for formula in FORMULAS]
    for change in (*changes, {"aggregation": "mean"}, {"weighted": False}):
        warm = session.localize(with_(inputs, **change), quiet, quiet)
        cold = Session().localize(with_(inputs, **change), quiet, quiet)
        assert set(warm.timings) == {"content", "rank"}
        assert result(warm) == result(cold)


def test_options_of_the_spectrum_count_again_without_loading_the_model(
    session: Session, inputs: Inputs
) -> None:
    stages(session, inputs)
    for change in ({"threshold": 0.2}, {"neurons_per_layer": 3}, {"seed": 1}, {"task": "regression"}):
        found = stages(session, with_(inputs, **change))
        assert "spectrum" in found
        assert "model" not in found


def test_new_weights_are_put_into_the_model_that_is_there(
    session: Session, inputs: Inputs, tmp_path: Path
) -> None:
    before = session.localize(inputs, quiet, quiet)
    assert session._warm is not None
    model, traced = session._warm.loaded.model, traces(session)
    for seed in (1, 2):
        write_model(tmp_path, seed)
        after = session.localize(inputs, quiet, quiet)
        assert {"weights", "spectrum"} <= set(after.timings)
        assert not {"model", "tests"} & set(after.timings)
        assert session._warm.loaded.model is model
        assert traces(session) == traced
        assert after.layers != before.layers
        assert result(after) == result(Session().localize(inputs, quiet, quiet))
    write_model(tmp_path, 0)
    assert result(session.localize(inputs, quiet, quiet)) == result(before)


def several_kinds() -> keras.Model:
    """Layers of which each has its own way to hold weights or state."""
    image = layers.Input((6, 6, 1), name="image")
    x = layers.Conv2D(3, 3, name="conv")(image)
    x = layers.BatchNormalization(name="norm")(x)
    x = layers.Dropout(0.5, name="dropout")(x)
    x = layers.Reshape((16, 3), name="steps")(x)
    x = layers.Bidirectional(layers.LSTM(2, name="lstm"), name="both")(x)
    nested = keras.Sequential(
        [layers.Input((4,), name="i"), layers.Dense(4, "relu", name="d")], name="nested"
    )
    return keras.Model(image, layers.Dense(3, name="logits")(nested(x)), name="model")


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_new_weights_of_layers_of_every_kind(session: Session, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    x = np.random.default_rng(0).normal(size=(30, 6, 6, 1)).astype("float32")
    np.savez(tmp_path / "t.npz", x=x, y=np.arange(30) % 3)
    inputs = Inputs(str(path), (str(tmp_path / "t.npz"),), str(tmp_path))
    random = np.random.default_rng(1)
    results, traced = set(), set()
    for _ in range(2):
        model = several_kinds()
        model.set_weights([random.uniform(0.1, 1, w.shape) for w in model.get_weights()])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.save(path)
        found = session.localize(inputs, quiet, quiet)
        assert result(found) == result(Session().localize(inputs, quiet, quiet))
        results.add(result(found))
        traced.add(traces(session))
    assert "weights" in found.timings
    assert "model" not in found.timings
    assert (len(results), len(traced)) == (2, 1)


def test_code_of_the_project_is_part_of_what_is_kept(
    session: Session, inputs: Inputs, tmp_path: Path
) -> None:
    code = tmp_path / "layers_of_this_project.py"
    text = """
import keras

class Scale(keras.layers.Layer):
    def call(self, x):
        return FACTOR * x
"""
    code.write_text(text.replace("FACTOR", "1.0"))
    spec = "layers_of_this_project:Scale"

    class Scale(layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x

    keras.Sequential([layers.Input((3,)), Scale(), layers.Dense(3, "softmax")]).save(tmp_path / "m.keras")
    own, cache = with_(inputs, custom_objects=spec), str(tmp_path / "cache")
    before = session.localize(own, quiet, quiet, cache)
    assert set(session.localize(own, quiet, quiet, cache).timings) == {"content", "rank"}
    code.write_text(text.replace("FACTOR", "-1.0"))
    after = session.localize(own, quiet, quiet, cache)
    assert "model" in after.timings
    assert after.layers != before.layers
    assert result(after) == result(Session().localize(own, quiet, quiet))
    code.write_text(text.replace("FACTOR", "1.0"))
    assert result(session.localize(own, quiet, quiet, cache)) == result(before)


def test_kept_counts_are_not_touched_by_the_next_pass(session: Session, tmp_path: Path) -> None:
    write_model(tmp_path, 0, units=700)  # more than are measured: their totals are arrays of their own
    write_tests(tmp_path, 40)
    inputs = Inputs(
        str(tmp_path / "m.keras"), (str(tmp_path / "t.npz"),), str(tmp_path), neurons_per_layer=None
    )
    session.localize(inputs, quiet, quiet)
    assert session._entry is not None
    hits = session._entry[1].counted.hits.layers
    before = {path: layer.counts.copy() for path, layer in hits.items()}
    write_model(tmp_path, 1, units=700)
    session.localize(inputs, quiet, quiet)
    assert all(np.array_equal(layer.counts, before[path]) for path, layer in hits.items())


@pytest.mark.parametrize(
    "options",
    [{"task": "autoencoder"}, {"task": "regression", "tolerance": "0.5 iqr"}],
    ids=lambda o: str(o["task"]),
)
def test_limits_of_the_oracle_follow_tests_and_weights(
    session: Session, inputs: Inputs, tmp_path: Path, options: dict[str, Any]
) -> None:
    """They are constants of the compiled pass."""
    judged = with_(inputs, **options)
    results = []
    for seed, scale in ((0, 1), (1, 1), (1, 2)):
        write_model(tmp_path, seed)
        x = np.random.default_rng(0).uniform(0, scale, size=(40, 3)).astype("float32")
        np.savez(tmp_path / "t.npz", x=x, y=x)
        results.append(session.localize(judged, quiet, quiet))
        assert result(results[-1]) == result(Session().localize(judged, quiet, quiet))
    assert len({found.task_reason for found in results}) >= 2


def test_another_architecture_is_loaded(session: Session, inputs: Inputs, tmp_path: Path) -> None:
    session.localize(inputs, quiet, quiet)
    write_model(tmp_path, 1, units=7)
    after = session.localize(inputs, quiet, quiet)
    assert "model" in after.timings
    assert result(after) == result(Session().localize(inputs, quiet, quiet))


def test_statistics_that_a_layer_keeps_beside_its_weights_are_new_ones(
    session: Session, inputs: Inputs, tmp_path: Path
) -> None:
    """A compiled pass may hold them as constants."""
    for mean in (0.0, 3.0):
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [
                layers.Input((3,), name="in"),
                layers.Normalization(name="normal"),
                layers.Dense(3, "softmax", name="out"),
            ],
            name="model",
        )
        model.layers[0].adapt(np.random.default_rng(0).normal(mean, 1, size=(50, 3)))
        model.save(tmp_path / "m.keras")
        warm = session.localize(inputs, quiet, quiet)
        assert result(warm) == result(Session().localize(inputs, quiet, quiet))


def test_damaged_file_leaves_no_half_of_its_weights(session: Session, inputs: Inputs, tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    before, whole = session.localize(inputs, quiet, quiet), path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EngineFailure) as caught:
        session.localize(inputs, quiet, quiet)
    assert caught.value.failure.code == "model-damaged"
    path.write_bytes(whole)
    after = session.localize(with_(inputs, threshold=0.0), quiet, quiet)
    assert result(after) == result(Session().localize(with_(inputs, threshold=0.0), quiet, quiet))
    assert result(session.localize(inputs, quiet, quiet)) == result(before)


def test_changed_tests_are_read_again_by_the_same_model(
    session: Session, inputs: Inputs, tmp_path: Path
) -> None:
    session.localize(inputs, quiet, quiet)
    assert session._warm is not None
    model, traced = session._warm.loaded.model, traces(session)
    np.savez(tmp_path / "t.npz", x=np.ones((40, 3), dtype="float32"), y=np.arange(40) % 3)
    after = session.localize(inputs, quiet, quiet)
    assert "tests" in after.timings
    assert not {"model", "weights"} & set(after.timings)
    assert session._warm.loaded.model is model
    assert traces(session) == traced
    assert result(after) == result(Session().localize(inputs, quiet, quiet))
    write_tests(tmp_path, 10)  # a smaller batch: the pass is compiled again, the model stays
    assert session.localize(inputs, quiet, quiet).tests.total == 10
    assert session._warm.loaded.model is model


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let a file be written that is open")
def test_tests_stay_open_while_only_the_model_changes(
    session: Session, inputs: Inputs, tmp_path: Path
) -> None:
    session.localize(inputs, quiet, quiet)
    assert session._tests is not None
    opened = session._tests[1]
    for seed, units in ((1, 6), (1, 7)):
        write_model(tmp_path, seed, units)
        assert "tests" not in stages(session, inputs)
        assert session._tests[1] is opened


def test_same_model_saved_again_counts_nothing(session: Session, inputs: Inputs, tmp_path: Path) -> None:
    session.localize(inputs, quiet, quiet)
    before = (tmp_path / "m.keras").read_bytes()
    while (tmp_path / "m.keras").read_bytes() == before:  # it says in which second it was saved
        write_model(tmp_path, seed=0)
    write_tests(tmp_path, 40)
    assert stages(session, inputs) == {"content", "rank"}


def test_model_that_changed_while_it_was_loaded_is_not_taken_for_the_old_one(
    session: Session, inputs: Inputs, tmp_path: Path
) -> None:
    def write_meanwhile(stage: str, _message: str, _fraction: float | None) -> None:
        write_model(tmp_path, seed=1 if stage == "model" else 0)

    session.localize(inputs, write_meanwhile, quiet)  # counts seed 1; the file has seed 0 before and after
    found = session.localize(inputs, quiet, quiet)
    assert result(found) == result(Session().localize(inputs, quiet, quiet))


def test_result_is_not_kept_if_a_file_changed_meanwhile(
    session: Session, inputs: Inputs, tmp_path: Path
) -> None:
    def write_meanwhile(stage: str, _message: str, _fraction: float | None) -> None:
        if stage == "spectrum":
            write_model(tmp_path, seed=1)
            write_tests(tmp_path, 30)

    cache = str(tmp_path / "cache")
    old = Session().localize(inputs, quiet, quiet)
    assert result(session.localize(inputs, write_meanwhile, quiet, cache)) == result(old)
    new = session.localize(inputs, quiet, quiet, cache)
    assert new.tests.total == 30
    assert result(new) == result(Session().localize(inputs, quiet, quiet))
    write_model(tmp_path, seed=0)
    write_tests(tmp_path, 40)
    again = session.localize(inputs, quiet, quiet, cache)
    assert "spectrum" in again.timings
    assert result(again) == result(old)


def test_another_session_finds_what_was_counted(inputs: Inputs, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    first = Session().localize(inputs, quiet, quiet, cache)
    other = Session()
    assert set(other.localize(inputs, quiet, quiet, cache).timings) == {"content", "rank"}
    for change in ({}, {"formula": "dstar"}, {"aggregation": "mean"}, {"weighted": False}):
        found = other.localize(with_(inputs, **change), quiet, quiet, cache)
        assert result(found) == result(Session().localize(with_(inputs, **change), quiet, quiet))
    assert result(other.localize(inputs, quiet, quiet, cache)) == result(first)
    (damaged,) = (tmp_path / "cache").iterdir()
    damaged.write_bytes(damaged.read_bytes()[:-50])
    afresh = Session().localize(inputs, quiet, quiet, cache)
    assert "spectrum" in afresh.timings
    assert result(afresh) == result(first)
    assert set(Session().localize(inputs, quiet, quiet, cache).timings) == {"content", "rank"}


def test_memory_is_kept_of_one_result_and_one_model(session: Session, inputs: Inputs, tmp_path: Path) -> None:
    seen = []
    for seed, threshold in ((0, 0.1), (1, 0.2), (2, 0.3)):
        write_model(tmp_path, seed, units=6 + seed)
        session.localize(with_(inputs, threshold=threshold), quiet, quiet)
        assert session._warm is not None
        assert session._entry is not None
        seen += [weakref.ref(session._warm.loaded.model), weakref.ref(session._entry[1].counted.hits.groups)]
    gc.collect()
    assert [reference() is None for reference in seen] == [True] * 4 + [False] * 2


def test_function_of_the_project_is_called_every_time(
    session: Session, inputs: Inputs, tmp_path: Path
) -> None:
    code = tmp_path / "tests_of_this_project.py"
    code.write_text("import numpy as np\ndef load():\n    return np.ones((7, 3)), np.zeros(7)\n")
    call = with_(inputs, test_data=("tests_of_this_project:load",))
    assert session.localize(call, quiet, quiet).tests.total == 7
    code.write_text("import numpy as np\ndef load():\n    return np.ones((12, 3)), np.zeros(12)\n# edited\n")
    assert session.localize(call, quiet, quiet).tests.total == 12


def test_cancel_stops_at_every_stage_and_the_session_goes_on(session: Session, inputs: Inputs) -> None:
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    for path in (inputs.model, *inputs.test_data):
        os.utime(path, (0, 0))  # one that has just been written is read more than once
    Session().localize(inputs, quiet, count)
    assert calls >= 5
    for last in range(calls):
        seen = 0

        def stop(last: int = last) -> None:
            nonlocal seen
            seen += 1
            if seen > last:
                raise CancelRequested

        with pytest.raises(CancelRequested):
            Session().localize(inputs, quiet, stop)
    assert session.localize(inputs, quiet, quiet).outcome == "ranking"


def test_pass_that_was_cancelled_leaves_nothing_behind(session: Session, inputs: Inputs) -> None:
    def stop(stage: str, _message: str, _fraction: float | None) -> None:
        if stage == "spectrum":
            raise CancelRequested

    with pytest.raises(CancelRequested):
        session.localize(inputs, stop, quiet)
    traced = traces(session)
    found = session.localize(inputs, quiet, quiet)
    assert traces(session) == traced
    assert result(found) == result(Session().localize(inputs, quiet, quiet))


def test_progress_names_the_stages_in_order(session: Session, inputs: Inputs) -> None:
    reports: list[tuple[str, float | None]] = []
    session.localize(inputs, lambda stage, _, fraction: reports.append((stage, fraction)), quiet)
    order = ["import", "model", "tests", "trace", "spectrum"]
    assert [stage for stage in order if stage in {s for s, _ in reports}] == order
    assert ("spectrum", 1.0) in reports


def test_fit_loads_the_tests_and_runs_one(session: Session, inputs: Inputs) -> None:
    assert session.probe(inputs, quiet, quiet) == session.inspect(inputs, quiet, quiet)
    with pytest.raises(EngineFailure) as caught:
        session.probe(with_(inputs, test_data=("nowhere.npz",)), quiet, quiet)
    assert caught.value.failure.code == "test-data-missing"


def test_inspect_loads_no_tests(session: Session, inputs: Inputs) -> None:
    summary = session.inspect(inputs, quiet, quiet)
    assert [(layer.path, layer.class_name) for layer in summary.layers] == [((0,), "Dense"), ((1,), "Dense")]
    assert "model" not in stages(session, inputs)


def test_importing_the_session_imports_no_numpy() -> None:
    import subprocess

    code = "import sys, guider_engine.session; sys.exit('numpy' in sys.modules or 'keras' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0


def test_memory_does_not_grow_with_the_tests(tmp_path: Path) -> None:
    def peak(tests: int) -> int:
        """Bytes that a second localization of so many memory-mapped tests allocates at most."""
        x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (tests, 3))
        y = np.lib.format.open_memmap(tmp_path / "y.npy", "w+", np.int64, (tests,))
        x[:] = np.random.default_rng(0).normal(size=x.shape)
        y[:] = np.arange(tests) % 3
        data = (str(tmp_path / "x.npy"), str(tmp_path / "y.npy"))
        inputs = Inputs(str(tmp_path / "m.keras"), data, str(tmp_path))
        session = Session()
        session.localize(inputs, quiet, quiet)
        tracemalloc.start()
        found = session.localize(with_(inputs, threshold=0.2), quiet, quiet)
        allocated = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.tests.total == tests
        return allocated

    write_model(tmp_path, seed=0)
    few, many = peak(10_000), peak(200_000)
    assert many < few + 500_000  # one number a test would be 1.6 MB
