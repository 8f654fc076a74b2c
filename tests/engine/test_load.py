"""Files that cannot be used: each has a code, and a message that says what was found and what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.conftest import quiet

from guider_engine.errors import EngineFailure
from guider_engine.load.model import load_model
from guider_engine.load.names import inputs_and_labels
from guider_engine.load.tests import load_tests
from guider_engine.session import Session
from guider_engine.wire import Failure, Inputs

X, Y = np.zeros((6, 3), dtype="float32"), np.arange(6) % 3


def failure(action: Callable[[], Any]) -> Failure:
    with pytest.raises(EngineFailure) as caught:
        action()
    return caught.value.failure


def read(spec: list[str], root: str) -> Any:
    return load_tests(Inputs("", tuple(spec), root))


def write(folder: Path, **arrays: Any) -> list[str]:
    np.savez(folder / "t.npz", **arrays)
    return [str(folder / "t.npz")]


def small() -> Any:
    return keras.Sequential([layers.Input((3,)), layers.Dense(3, activation="softmax")])


@pytest.mark.parametrize(
    "keys",
    [
        ("x_test", "y_test"),
        ("X_test", "Y_test"),
        ("test_x", "test_y"),
        ("Xtest", "ytest"),
        ("X_te", "y_te"),
        ("Xte", "yte"),
        ("x_val", "y_val"),
        ("X", "y"),
        ("inputs", "labels"),
        ("test_images", "test_labels"),
        ("testImages", "testLabels"),
        ("test_data", "test_targets"),
        ("features", "target"),
        ("arr_0", "arr_1"),
        ("x_train", "y_train"),
    ],
)
def test_usual_names_in_an_npz(tmp_path: Path, keys: tuple[str, str]) -> None:
    tests = read(write(tmp_path, **{keys[0]: X, keys[1]: Y}), str(tmp_path))
    assert tests.total == 6
    assert tests.inputs.shape == (6, 3)
    assert f"({keys[0]}, {keys[1]})" in tests.description


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        ("x_train y_train x_test y_test", "x_test y_test"),
        ("x_train y_train x_val y_val", "x_val y_val"),
        ("x_train y_train x y", "x y"),
        ("train_images train_labels test_images test_labels", "test_images test_labels"),
        ("y_test x_test x_test_raw ids", "x_test y_test"),
        ("images data labels", "images labels"),
        ("x_train y_train x_fold y_fold", ""),
        ("x_test y_train", ""),
        ("x y_pred", ""),
        ("arr_0", ""),
    ],
)
def test_names_say_which_of_several_arrays_are_the_tests(names: str, meant: str) -> None:
    assert inputs_and_labels(names.split()) == (tuple(meant.split()) or None)


def test_npy_pair_is_memory_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    tests = read([str(tmp_path / "x.npy"), str(tmp_path / "y.npy")], str(tmp_path))
    assert isinstance(tests.inputs, np.memmap)
    assert tests.labels.tolist() == Y.tolist()


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ({"a": X, "b": Y}, "test-data-keys"),
        ({}, "test-data-keys"),
        ({"x": X, "y": Y[:5]}, "test-data-shape"),
        ({"x": X[:0], "y": Y[:0]}, "test-data-empty"),
        ({"x": np.float32(1), "y": np.float32(1)}, "test-data-shape"),
        ({"x": X, "y": np.array([1j] * 6)}, "test-data-type"),
        ({"x": np.array([[1], [2, 3]] * 3, dtype=object), "y": Y}, "test-data-pickled"),
    ],
)
def test_arrays_that_are_no_test_set(tmp_path: Path, arrays: dict[str, Any], code: str) -> None:
    spec = write(tmp_path, **arrays)
    found = failure(lambda: read(spec, str(tmp_path)))
    assert (found.kind, found.code) == ("input", code)
    assert "t.npz" in found.message


@pytest.mark.parametrize("keep", [0, 10, 300, -20])
def test_truncated_test_data(tmp_path: Path, keep: int) -> None:
    write(tmp_path, x=X, y=Y)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    for name in ("t.npz", "x.npy"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[:keep] if len(whole) > abs(keep) else whole[: len(whole) // 2])
    for spec in (["t.npz"], ["x.npy", "y.npy"]):
        found = failure(lambda spec=spec: read([str(tmp_path / n) for n in spec], str(tmp_path)))  # type: ignore[misc]
        assert found.code == "test-data-damaged"


def test_pickled_npy_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}] * 6), allow_pickle=True)
    np.save(tmp_path / "y.npy", Y)
    spec = [str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    assert failure(lambda: read(spec, str(tmp_path))).code == "test-data-pickled"


@pytest.mark.parametrize("spec", [[], ["a.txt"], ["a.npy"], ["a.npz", "b.npz"], ["x.npy", "y.npy", "z.npy"]])
def test_unknown_kinds_of_test_data(tmp_path: Path, spec: list[str]) -> None:
    assert failure(lambda: read(spec, str(tmp_path))).code == "test-data-format"


def test_function_like_load_data_gives_its_test_pair(tmp_path: Path) -> None:
    pairs = "(np.ones((9, 3)), np.ones(9)), (np.zeros((6, 3)), np.zeros(6))"
    body = f"import numpy as np\ndef load():\n    return {pairs}\n"
    (tmp_path / "like_load_data.py").write_text(body)
    tests = read(["like_load_data:load"], str(tmp_path))
    assert (tests.inputs.shape, tests.labels.shape) == ((6, 3), (6,))
    assert not tests.inputs.any()


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ("def other(): pass", "input", "function-missing"),
        ("load = 3", "input", "function-missing"),
        ("def load(path): return [1], [2]", "input", "function-missing"),
        ("def load(): return 1", "input", "test-data-type"),
        ("def load(): return [1], [2], [3], [4]", "input", "test-data-type"),
        ("def load(): raise KeyError('training_set')", "engine", "user-code"),
        ("import a_module_that_is_not_there\ndef load(): pass", "engine", "user-code"),
        ("def load(:", "engine", "user-code"),
        ("def load(): return [{1: 2}, {3: 4}], [0, 1]", "input", "test-data-type"),
    ],
)
def test_functions_that_give_no_tests(tmp_path: Path, body: str, kind: str, code: str) -> None:
    (tmp_path / "data_of_this_case.py").write_text(body)
    found = failure(lambda: read(["data_of_this_case:load"], str(tmp_path)))
    assert (found.kind, found.code) == (kind, code)
    assert "data_of_this_case:load" in found.message


def test_functions_that_cannot_be_called_without_arguments_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "models_of_this_case.py").write_text(
        "import keras\n"
        "def build(units, rate=0.1): ...\n"
        "model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])\n"
    )

    def said(name: str) -> str:
        spec = f"models_of_this_case:{name}"
        found = failure(lambda: load_model(Inputs(spec, (), str(tmp_path))))
        assert (found.kind, found.code) == ("input", "function-missing")
        return found.message

    assert "'units'" in said("build")
    assert "is a Sequential, not a function" in said("model")
    assert "has no function nothing" in said("nothing")
    assert "has no function model.nothing" in said("model.nothing")


def test_code_that_sets_the_path_itself(tmp_path: Path) -> None:
    (tmp_path / "path_of_this_case.py").write_text(
        "import os, sys\nsys.path.remove(os.path.dirname(__file__))\ndef load(): return [[1.0], [2.0]], [0, 1]\n"
    )
    before = list(sys.path)
    assert read(["path_of_this_case:load"], str(tmp_path)).total == 2
    assert sys.path == before


def test_method_of_a_class(tmp_path: Path) -> None:
    (tmp_path / "class_of_this_case.py").write_text(
        "class Data:\n    @staticmethod\n    def load(): return [[1.0], [2.0]], [0, 1]\n"
    )
    assert read(["class_of_this_case:Data.load"], str(tmp_path)).total == 2


@pytest.mark.parametrize(
    ("body", "first"),
    [("def load():\n    return 1 / 0", "line 2, in load"), ("1 / 0", "line 1, in <module>")],
)
def test_trace_of_user_code_starts_in_it(tmp_path: Path, body: str, first: str) -> None:
    (tmp_path / "raises_in_this_case.py").write_text(body)
    found = failure(lambda: read(["raises_in_this_case:load"], str(tmp_path)))
    assert found.code == "user-code"
    lines = (found.detail or "").splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[1].endswith(f'raises_in_this_case.py", {first}')


def test_module_that_is_not_there(tmp_path: Path) -> None:
    found = failure(lambda: read(["nowhere_at_all:load"], str(tmp_path)))
    assert found.code == "function-missing"
    assert str(tmp_path) in found.message


@pytest.mark.parametrize("shape", [(6, 4), (6,), (6, 2, 2)])
def test_inputs_that_do_not_fit_the_model(tmp_path: Path, shape: tuple[int, ...]) -> None:
    small().save(tmp_path / "m.keras")
    spec = write(tmp_path, x=np.zeros(shape, dtype="float32"), y=Y)
    inputs = Inputs(str(tmp_path / "m.keras"), tuple(spec), str(tmp_path))
    found = failure(lambda: Session().localize(inputs, quiet, quiet))
    assert found.code == "input-shape"
    assert str(shape[1:]) in found.message
    assert "(3,)" in found.message
