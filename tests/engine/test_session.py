"""What a warm session keeps, and what makes it start afresh."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.conftest import quiet

from guider_engine.errors import CancelRequested, EngineFailure
from guider_engine.session import Session
from guider_engine.wire import FORMULAS, Inputs


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    write_model(tmp_path, seed=0)
    x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    np.savez(tmp_path / "t.npz", x=x, y=np.arange(40) % 3)
    return Inputs(str(tmp_path / "m.keras"), (str(tmp_path / "t.npz"),), str(tmp_path))


def write_model(folder: Path, seed: int) -> None:
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [layers.Input((3,)), layers.Dense(6, activation="relu"), layers.Dense(3, "softmax")]
    )
    model.save(folder / "m.keras")


def stages(session: Session, inputs: Inputs) -> set[str]:
    return set(session.localize(inputs, quiet, quiet).timings)


def with_(inputs: Inputs, **changes: Any) -> Inputs:
    import dataclasses

    return dataclasses.replace(inputs, **changes)


def test_another_formula_or_aggregation_runs_nothing(session: Session, inputs: Inputs) -> None:
    assert {"model", "spectrum"} <= stages(session, inputs)
    for formula in FORMULAS:
        for change in ({}, {"aggregation": "mean"}, {"weighted": False}):
            warm = session.localize(with_(inputs, formula=formula, **change), quiet, quiet)
            cold = Session().localize(with_(inputs, formula=formula, **change), quiet, quiet)
            assert set(warm.timings) == {"rank"}
            assert warm.layers == cold.layers


def test_options_of_the_spectrum_count_again_without_loading_the_model(
    session: Session, inputs: Inputs
) -> None:
    stages(session, inputs)
    for change in ({"threshold": 0.2}, {"neurons_per_layer": 3}, {"seed": 1}, {"task": "regression"}):
        found = stages(session, with_(inputs, **change))
        assert "spectrum" in found
        assert "model" not in found


def test_changed_model_file_is_loaded_again(session: Session, inputs: Inputs, tmp_path: Path) -> None:
    before = session.localize(inputs, quiet, quiet)
    write_model(tmp_path, seed=1)
    after = session.localize(inputs, quiet, quiet)
    assert "model" in after.timings
    assert after.layers != before.layers
    assert after.layers == Session().localize(inputs, quiet, quiet).layers


def test_changed_tests_are_read_again(session: Session, inputs: Inputs, tmp_path: Path) -> None:
    session.localize(inputs, quiet, quiet)
    np.savez(tmp_path / "t.npz", x=np.ones((10, 3), dtype="float32"), y=np.arange(10) % 3)
    after = session.localize(inputs, quiet, quiet)
    assert after.tests.total == 10
    assert "model" not in after.timings


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


def test_progress_names_the_stages_in_order(session: Session, inputs: Inputs) -> None:
    reports: list[tuple[str, float | None]] = []
    session.localize(inputs, lambda stage, _, fraction: reports.append((stage, fraction)), quiet)
    order = ["import", "model", "tests", "trace", "spectrum", "statistics"]
    assert [stage for stage in order if stage in {s for s, _ in reports}] == order
    assert ("spectrum", 1.0) in reports


def test_fit_loads_the_tests_and_runs_one(session: Session, inputs: Inputs) -> None:
    assert session.probe(inputs, quiet, quiet) == session.inspect(
        inputs.model, inputs.root, True, quiet, quiet
    )
    with pytest.raises(EngineFailure) as caught:
        session.probe(with_(inputs, test_data=("nowhere.npz",)), quiet, quiet)
    assert caught.value.failure.code == "test-data-missing"


def test_several_inputs_are_said_before_the_tests_are_asked_for(session: Session, tmp_path: Path) -> None:
    two = [keras.Input((2,)), keras.Input((2,))]
    model = keras.Model(two, keras.layers.Dense(2)(keras.layers.Concatenate()(two)))
    model.save(tmp_path / "two.keras")
    with pytest.raises(EngineFailure) as caught:
        session.probe(Inputs(str(tmp_path / "two.keras"), ("nowhere.npz",), str(tmp_path)), quiet, quiet)
    assert caught.value.failure.code == "several-inputs"


def test_inspect_loads_no_tests(session: Session, inputs: Inputs) -> None:
    summary = session.inspect(inputs.model, inputs.root, True, quiet, quiet)
    assert [(layer.path, layer.class_name) for layer in summary.layers] == [((0,), "Dense"), ((1,), "Dense")]
    assert "model" not in stages(session, inputs)


def test_importing_the_session_imports_no_numpy() -> None:
    import subprocess
    import sys

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
