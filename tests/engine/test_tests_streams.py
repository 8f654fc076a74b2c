"""Tests that come one after another, by what a function of the project returns."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from guider_engine.errors import EngineFailure
from guider_engine.load.inputs import ModelInput
from guider_engine.load.tests import load_tests, streams
from guider_engine.wire import Inputs

WANTED = (ModelInput("x", (3,), "float32"),)
SEQUENCE = """
import keras
class Data(keras.utils.PyDataset):
    def __len__(self): return 3
    def __getitem__(self, i): return X[4 * i:4 * i + 4], Y[4 * i:4 * i + 4]
def load(): return Data()
"""
KERAS_2 = SEQUENCE.replace("import keras\n", "import tf_keras as keras\n").replace("PyDataset", "Sequence")
TORCH = """
class Tensor:
    def __init__(self, array): self.array, self.shape, self.home = array, array.shape, False
    def detach(self): return self
    def cpu(self):
        here = Tensor(self.array)
        here.home = True
        return here
    def __array__(self, dtype=None, copy=None):
        if not self.home: raise TypeError("can't convert a tensor on a device to numpy")
        return np.asarray(self.array, dtype)
class Loader:
    def __iter__(self): return ([Tensor(X[i:i + 4]), Tensor(Y[i:i + 4])] for i in range(0, 10, 4))
def load(): return Loader()
"""
TFRECORD = """
import tensorflow as tf
def load():
    path = __file__ + ".tfrecord"
    with tf.io.TFRecordWriter(path) as writer:
        for x, y in zip(X, Y):
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
                "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[y]))})).SerializeToString())
    def parse(one):
        read = tf.io.parse_single_example(one, {"x": tf.io.FixedLenFeature([3], tf.float32),
                                                "y": tf.io.FixedLenFeature([], tf.int64)})
        return read["x"], read["y"]
    return tf.data.TFRecordDataset(path).map(parse)
"""


def read(folder: Path, body: str, limit: int | None = None, wanted: tuple[ModelInput, ...] = WANTED) -> Any:
    (folder / "stream_of_this_case.py").write_text(
        "import numpy as np\nX = np.arange(30, dtype='float32').reshape(10, 3)\nY = np.arange(10) % 2\n"
        + body
    )
    return load_tests(Inputs("", ("stream_of_this_case:load",), str(folder), max_tests=limit), wanted)


@pytest.mark.parametrize(
    "body",
    [
        "def load():\n for i in range(0, 10, 4): yield X[i:i + 4], Y[i:i + 4]",
        "def load():\n for x, y in zip(X, Y): yield x, y",
        "import tensorflow as tf\ndef load(): return tf.data.Dataset.from_tensor_slices((X, Y))",
        "import tensorflow as tf\ndef load(): return tf.data.Dataset.from_tensor_slices((X, Y)).batch(3)",
        SEQUENCE,
        pytest.param(KERAS_2, marks=pytest.mark.skipif(find_spec("tf_keras") is None, reason="no tf_keras")),
        TORCH,
        TFRECORD,
    ],
    ids=["batches", "single", "dataset", "batched", "sequence", "keras2", "torch", "tfrecord"],
)
def test_every_pass_gives_the_same_tests(tmp_path: Path, body: str) -> None:
    tests = read(tmp_path, body)
    for _ in range(2):
        blocks = list(tests.blocks(4))
        assert [len(block) for block in blocks] == [4, 4, 2]
        assert np.concatenate([b.inputs for b in blocks]).tolist() == np.arange(30.0).reshape(10, 3).tolist()
        assert np.concatenate([b.labels for b in blocks]).tolist() == [0, 1] * 5


def test_an_endless_generator_is_cut_and_weights_are_ignored(tmp_path: Path) -> None:
    body = "def load():\n while True: yield X, Y, np.ones(10)"
    tests = read(tmp_path, body, limit=25)
    assert [len(block) for block in tests.blocks(10)] == [10, 10, 5]
    assert "sample-weights" in dict(tests.notices)
    assert "the first 25" in tests.description
    unlimited = read(tmp_path, body)
    assert sum(len(block) for block in unlimited.blocks(4_096)) == 100_000
    assert "the first 100,000" in unlimited.description


@pytest.mark.parametrize("batch", ["", ".batch(4)"])
def test_a_dataset_that_repeats_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: str) -> None:
    monkeypatch.setattr(streams, "ENDLESS", 25)
    tests = read(
        tmp_path,
        "import tensorflow as tf\n"
        f"def load(): return tf.data.Dataset.from_tensor_slices((X, Y)).repeat(){batch}",
    )
    assert [len(block) for block in tests.blocks(10)] == [10, 10, 5]
    assert "the first 25" in tests.description
    assert "its first 25 tests are run" in dict(tests.notices)["endless-tests"]


DATASET = "import tensorflow as tf\ndef load(): return tf.data.Dataset."
RAGGED = "tf.ragged.constant([[1, 2], [3], [4, 5, 6], []])"


@pytest.mark.parametrize(
    "body",
    [
        "def load(): return [[1, 2], [3], [4, 5, 6], []], [0, 1, 0, 1]",
        "def load(): return [np.array([1, 2]), np.array([3]), np.array([4, 5, 6]), np.array([])], np.arange(4) % 2",
        "def load(): return np.array([[1, 2], [3], [4, 5, 6], []], object), np.arange(4) % 2",
        f"import tensorflow as tf\ndef load(): return {RAGGED}, np.arange(4) % 2",
        f"{DATASET}from_tensor_slices(({RAGGED}, [0, 1, 0, 1]))",
        f"{DATASET}from_tensor_slices(({RAGGED}, [0, 1, 0, 1])).batch(2)",
        DATASET + "from_generator(lambda: zip([[1, 2], [3], [4, 5, 6], []], [0, 1, 0, 1]), output_signature=("
        "tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)))",
        DATASET + "from_generator(lambda: zip([[1, 2], [3], [4, 5, 6], []], [0, 1, 0, 1]), output_signature=("
        "tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32))).padded_batch(2)",
    ],
    ids=["lists", "arrays", "objects", "ragged", "dataset", "batches", "varying", "padded"],
)
def test_sequences_of_unequal_length_are_padded_with_zeros(tmp_path: Path, body: str) -> None:
    tests = read(tmp_path, body, wanted=(ModelInput("x", (None,), "int32"),))
    assert tests.total == 4
    for _ in range(2):
        (block,) = tests.blocks(8)
        assert block.inputs.tolist() == [[1, 2, 0], [3, 0, 0], [4, 5, 6], [0, 0, 0]]
        assert block.inputs.dtype.kind == "i"
        assert block.labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("batch", ["", ".batch(2)"])
def test_a_dataset_of_dictionaries_feeds_each_input(tmp_path: Path, batch: str) -> None:
    # The first input of the model has another rank than the first of the dataset.
    wanted = (ModelInput("number", (2,), "float32"), ModelInput("image", (2, 2), "float32"))
    inputs = "{'image': np.arange(12.).reshape(3, 2, 2), 'number': np.arange(6.).reshape(3, 2)}"
    body = f"{inputs}, {{'a': [1, 0, 1], 'b': X[:3]}}"
    tests = read(tmp_path, f"{DATASET}from_tensor_slices(({body})){batch}", wanted=wanted)
    (block,) = tests.blocks(8)
    assert block.inputs["number"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert block.inputs["image"][2].tolist() == [[8, 9], [10, 11]]
    assert block.labels["a"].tolist() == [1, 0, 1]
    assert block.labels["b"].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


@pytest.mark.parametrize("batch", ["", ".batch(1)"])
def test_only_the_input_that_varies_is_padded(tmp_path: Path, batch: str) -> None:
    wanted = (ModelInput("words", (None,), "int32"), ModelInput("number", (2,), "float32"))
    body = f"{{'words': {RAGGED}, 'number': X[:4, :2]}}, [0, 1, 0, 1]"
    tests = read(tmp_path, f"{DATASET}from_tensor_slices(({body})){batch}", wanted=wanted)
    (block,) = tests.blocks(8)
    assert block.inputs["words"].tolist() == [[1, 2, 0], [3, 0, 0], [4, 5, 6], [0, 0, 0]]
    assert block.inputs["number"].tolist() == [[0, 1], [3, 4], [6, 7], [9, 10]]


@pytest.mark.parametrize(
    "body",
    [
        "def load(): return [X, X + 1], Y",
        "def load(): return (X, X + 1), Y.tolist()",
        "def load():\n yield [X[:4], X[:4] + 1], Y[:4]\n yield [X[4:], X[4:] + 1], Y[4:]",
        "def load(): return X, [Y, 1 - Y]",
    ],
    ids=["list", "tuple", "generator", "labels"],
)
def test_a_list_of_arrays_of_one_shape_is_several_inputs_or_labels(tmp_path: Path, body: str) -> None:
    (block,) = read(tmp_path, body, wanted=()).blocks(16)
    if isinstance(block.labels, tuple):
        assert [one.tolist() for one in block.labels] == [[0, 1] * 5, [1, 0] * 5]
    else:
        assert [one[9].tolist() for one in block.inputs] == [[27, 28, 29], [28, 29, 30]]
        assert block.labels.tolist() == [0, 1] * 5


def test_a_list_of_tests_is_one_array(tmp_path: Path) -> None:
    (block,) = read(tmp_path, "def load(): return list(X), list(Y)").blocks(16)
    assert block.inputs.tolist() == np.arange(30).reshape(10, 3).tolist()


def test_brain_floats_are_numbers(tmp_path: Path) -> None:
    body = "import tensorflow as tf\ndef load(): return tf.cast(X, tf.bfloat16), Y"
    (block,) = read(tmp_path, body).blocks(16)
    assert block.inputs.dtype == np.float32
    assert block.inputs[9].tolist() == [27, 28, 29]


def test_names_of_classes_are_numbered_over_the_whole_stream(tmp_path: Path) -> None:
    tests = read(tmp_path, "def load():\n for x, y in zip(X[:4], ('dog', 'cat', 'ant', 'dog')): yield x, y")
    assert tests.classes == ("ant", "cat", "dog")
    assert [b.labels.tolist() for b in tests.blocks(4)] == [[2, 1, 0, 2]]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("def load():\n return iter(())", "test-data-empty"),
        ("def load():\n yield 3", "test-data-type"),
        ("def load(): return np.zeros(10, [('a', 'f4')]), Y", "test-data-type"),
        ("def load(): return X, np.zeros(10, [('a', 'f4')])", "test-data-type"),
        ("def load(): return X + 1j, Y", "test-data-type"),
        ("def load(): return X, Y + 1j", "test-data-type"),
        ("def load(): return np.array([object()] * 10), Y", "test-data-type"),
        ("def load(): return X, np.array([None] * 10)", "test-data-type"),
        ("def load(): return {'x': X, 'y': np.array([{}] * 10)}", "test-data-type"),
        ("def load():\n yield X + 1j, Y", "test-data-type"),
        ("def load():\n yield X, np.array([object()] * 10)", "test-data-type"),
        ("def load(): return [[[1], [2, 3]]] * 10, Y", "test-data-type"),
        ("def load():\n yield X, Y[:5]", "test-data-shape"),
        ("def load():\n yield X[0], 1\n yield X[0, :2], 1", "test-data-shape"),
        ("def load():\n yield X, Y\n 1 / 0", "user-code"),
    ],
)
def test_streams_that_are_no_tests(tmp_path: Path, body: str, code: str) -> None:
    with pytest.raises(EngineFailure) as caught:
        list(read(tmp_path, body).blocks(64))
    assert caught.value.failure.code == code


def test_classes_have_their_numbers_by_all_tests_of_a_stream(tmp_path: Path) -> None:
    body = "def load():\n for i in range(5): yield X[2 * i:2 * i + 2], np.array(['a', 'c'] if i < 4 else ['b', 'b'])"
    tests = read(tmp_path, body, limit=3)
    assert (tests.classes, tests.total, tests.available) == (("a", "b", "c"), 3, 10)
    (block,) = tests.blocks(8)
    assert block.labels.tolist() == [0, 2, 0]


@pytest.mark.parametrize("second", ["X[:2], np.ones((2, 3))", "(X[:2], X[:2]), np.ones((2, 2))"])
def test_batches_of_other_arrays_are_refused(tmp_path: Path, second: str) -> None:
    tests = read(tmp_path, f"def load():\n yield X[:2], np.ones((2, 2))\n yield {second}")
    with pytest.raises(EngineFailure) as caught:
        list(tests.blocks(8))
    assert caught.value.failure.code == "test-data-shape"


def test_a_generator_may_import_modules_of_the_project_when_it_runs(tmp_path: Path) -> None:
    (tmp_path / "numbers_of_this_case.py").write_text("VALUE = 7.0\n")
    (tmp_path / "late_of_this_case.py").write_text(
        "import numpy as np\n"
        "def load():\n"
        "    import sys\n"
        "    from numbers_of_this_case import VALUE\n"
        "    for _ in range(3): yield np.full((2, 1), VALUE), np.zeros(2)\n"
    )
    tests = load_tests(Inputs("", ("late_of_this_case:load",), str(tmp_path)))
    assert [float(block.inputs[0, 0]) for block in tests.blocks(4)] == [7.0, 7.0]  # type: ignore[index, call-overload]
    assert str(tmp_path) not in sys.path
    assert "numbers_of_this_case" not in sys.modules


def test_single_tests_with_one_hot_labels_are_told_by_the_shape_of_the_model_input(tmp_path: Path) -> None:
    (tmp_path / "single_of_this_case.py").write_text(
        "import numpy as np\n"
        "def load():\n"
        "    for i in range(5): yield np.full(4, float(i)), np.eye(4)[i % 4]\n"
    )
    wanted = (ModelInput("x", (4,), "float32"),)
    tests = load_tests(Inputs("", ("single_of_this_case:load",), str(tmp_path)), wanted)
    (block,) = tests.blocks(8)
    assert np.asarray(block.inputs)[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert np.asarray(block.labels).argmax(axis=1).tolist() == [0, 1, 2, 3, 0]


def test_two_inputs_and_two_outputs_are_no_training_pair(tmp_path: Path) -> None:
    (tmp_path / "four_of_this_case.py").write_text(
        "import numpy as np\n"
        "def load(): return (np.zeros((3, 2)), np.ones((3, 1))), (np.zeros(3), np.ones(3))\n"
    )
    spec = Inputs("", ("four_of_this_case:load",), str(tmp_path))
    two = (ModelInput("a", (2,), "float32"), ModelInput("b", (1,), "float32"))
    (block,) = load_tests(spec, two).blocks(8)
    assert [array.shape for array in block.inputs] == [(3, 2), (3, 1)]  # type: ignore[union-attr]
    assert isinstance(block.labels, tuple)
    (block,) = load_tests(spec, two[:1]).blocks(8)  # (training pair, test pair): zeros and ones
    assert np.asarray(block.inputs).tolist() == [0, 0, 0]


def test_batches_that_are_reshaped_for_the_model_are_batches(tmp_path: Path) -> None:
    data = tf.data.Dataset.from_tensor_slices((np.arange(24.0).reshape(6, 4), np.zeros(6))).batch(3)
    data.save(str(tmp_path / "data"))
    tests = load_tests(
        Inputs("", (str(tmp_path / "data"),), str(tmp_path)), (ModelInput("x", (4, 1), "float32"),)
    )
    (block,) = tests.blocks(8)
    assert np.asarray(block.inputs).shape == (6, 4)
