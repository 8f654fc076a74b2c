"""Tests that come one after another, by what a function of the project returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guider_engine.errors import EngineFailure
from guider_engine.load.inputs import ModelInput
from guider_engine.load.tests import load_tests
from guider_engine.wire import Inputs

WANTED = (ModelInput("x", (3,), "float32"),)
SEQUENCE = """
import keras
class Data(keras.utils.PyDataset):
    def __len__(self): return 3
    def __getitem__(self, i): return X[4 * i:4 * i + 4], Y[4 * i:4 * i + 4]
def load(): return Data()
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


def read(folder: Path, body: str, limit: int | None = None) -> Any:
    (folder / "stream_of_this_case.py").write_text(
        "import numpy as np\nX = np.arange(30, dtype='float32').reshape(10, 3)\nY = np.arange(10) % 2\n"
        + body
    )
    return load_tests(Inputs("", ("stream_of_this_case:load",), str(folder), max_tests=limit), WANTED)


@pytest.mark.parametrize(
    "body",
    [
        "def load():\n for i in range(0, 10, 4): yield X[i:i + 4], Y[i:i + 4]",
        "def load():\n for x, y in zip(X, Y): yield x, y",
        "import tensorflow as tf\ndef load(): return tf.data.Dataset.from_tensor_slices((X, Y))",
        "import tensorflow as tf\ndef load(): return tf.data.Dataset.from_tensor_slices((X, Y)).batch(3)",
        SEQUENCE,
        TFRECORD,
    ],
    ids=["batches", "single", "dataset", "batched", "sequence", "tfrecord"],
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


def test_names_of_classes_are_numbered_over_the_whole_stream(tmp_path: Path) -> None:
    tests = read(tmp_path, "def load():\n for x, y in zip(X[:4], ('dog', 'cat', 'ant', 'dog')): yield x, y")
    assert tests.classes == ("ant", "cat", "dog")
    assert [b.labels.tolist() for b in tests.blocks(4)] == [[2, 1, 0, 2]]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("def load():\n return iter(())", "test-data-empty"),
        ("def load():\n yield 3", "test-data-type"),
        ("def load():\n yield X, Y[:5]", "test-data-shape"),
        ("def load():\n yield X[0], 1\n yield X[0, :2], 1", "test-data-shape"),
        ("def load():\n yield X, Y\n 1 / 0", "user-code"),
    ],
)
def test_streams_that_are_no_tests(tmp_path: Path, body: str, code: str) -> None:
    with pytest.raises(EngineFailure) as caught:
        list(read(tmp_path, body).blocks(64))
    assert caught.value.failure.code == code
