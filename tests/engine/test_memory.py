"""Too little memory: smaller batches, then a word."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from tests.engine.conftest import quiet
from tests.engine.counting import Tests

from guider_engine import memory
from guider_engine.counting import count, prepare
from guider_engine.errors import EngineFailure
from guider_engine.load.describe import summarize
from guider_engine.load.loss import Loss
from guider_engine.load.model import LoadedModel
from guider_engine.request import Timer
from guider_engine.wire import Inputs

INPUTS = Inputs("", (), "", task="classification")


class Hungry(layers.Layer):  # type: ignore[misc]
    """Takes more memory than there is for more than so many tests."""

    def __init__(self, most: int, asked: Callable[[int], None]) -> None:
        super().__init__()
        self.most, self.asked = most, asked

    def call(self, x: Any) -> Any:
        if x.shape[0] is not None:
            self.asked(x.shape[0])
            if x.shape[0] > self.most:
                raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
        return x


def loaded(most: int, asked: Callable[[int], None]) -> LoadedModel:
    model = keras.Sequential([keras.Input((2,)), Hungry(most, asked), layers.Activation("linear")])
    return LoadedModel(model, summarize(model, Loss("sparse_categorical_crossentropy")))


def test_batches_are_halved_until_they_fit() -> None:
    x = np.tile(np.eye(2, dtype=np.float32), (16, 1))
    tests, sizes = Tests(x, np.arange(32) % 4 // 2), list[int]()
    plan = prepare(loaded(5, sizes.append), tests, INPUTS)
    counted, used = count(plan, tests, INPUTS, quiet, quiet, Timer())
    assert used.size == 4
    assert {32, 16, 8, 4} <= set(sizes)
    assert counted.hits.counts == (16, 16)
    assert counted.hits.layers[0,].counts.tolist() == [[8, 8], [8, 8]]


def test_a_single_test_that_does_not_fit_is_said() -> None:
    tests = Tests(np.eye(2, dtype=np.float32), np.arange(2))
    with pytest.raises(EngineFailure) as caught:
        prepare(loaded(0, quiet), tests, INPUTS)
    assert caught.value.failure.code == "out-of-memory"
    assert "on 1 test at a time" in caught.value.failure.message


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are of Linux")
def test_files_that_are_cached_do_not_take_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (
        ("max", "1000\n"),
        ("current", "900\n"),
        ("stat", "anon 200\ninactive_file 400\nactive_file 300\n"),
    ):
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.available_memory() == 800
