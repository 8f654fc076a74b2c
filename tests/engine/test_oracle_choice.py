"""By which task an output is judged, and why."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.oracles import choose

from guider_engine.errors import EngineFailure

X = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
IMAGES = np.random.default_rng(1).random(size=(20, 4, 4, 1)).astype("float32")


def dense(units: int, activation: str = "linear", loss: Any = None) -> Any:
    keras.utils.set_random_seed(4)
    model = keras.Sequential([layers.Input((3,)), layers.Dense(units, activation=activation)])
    if loss is not None:
        model.compile(loss=loss)
    return model


N = np.arange(20)
MULTI_HOT = np.stack([N % 2, N % 3 == 0, N % 5 == 0], axis=1).astype(int)


@pytest.mark.parametrize(
    ("loss", "activation", "units", "labels", "task"),
    [
        ("sparse_categorical_crossentropy", "softmax", 3, N % 3, "classification"),
        ("categorical_crossentropy", "softmax", 3, np.eye(3)[N % 3], "classification"),
        ("categorical_crossentropy", "softmax", 3, np.full((20, 3), 1 / 3), "classification"),
        ("binary_crossentropy", "sigmoid", 1, N % 2, "classification"),
        ("binary_crossentropy", "sigmoid", 1, (N % 2 == 0)[:, None], "classification"),
        ("binary_crossentropy", "sigmoid", 1, N / 20, "regression"),
        ("binary_crossentropy", "sigmoid", 3, MULTI_HOT, "multi-label"),
        ("binary_crossentropy", "sigmoid", 3, np.eye(3)[N % 3], "classification"),
        (keras.losses.BinaryCrossentropy(from_logits=True), "linear", 3, MULTI_HOT, "multi-label"),
        ("categorical_crossentropy", "softmax", 3, MULTI_HOT, "classification"),
        ("hinge", "tanh", 1, N % 2 * 2 - 1, "classification"),
        ("kl_divergence", "softmax", 3, np.full((20, 3), 1 / 3), "classification"),
        ("mse", "linear", 1, N / 20, "regression"),
        ("mse", "linear", 1, N % 2, "regression"),
        ("mse", "softmax", 3, N % 3, "classification"),
        ("mse", "sigmoid", 3, MULTI_HOT, "multi-label"),
        ("mae", "sigmoid", 1, N / 20, "regression"),
        ("poisson", "linear", 1, N, "regression"),
        (None, "softmax", 3, N % 3, "classification"),
        (None, "linear", 3, N % 3, "classification"),
        (None, "linear", 1, N / 20, "regression"),
        (None, "sigmoid", 1, N / 20, "regression"),
        ("mse", "linear", 3, X, "autoencoder"),
        ("binary_crossentropy", "sigmoid", 3, 1 / (1 + np.exp(-X)), "autoencoder"),
        ("mse", "linear", 3, X * 2, "regression"),
    ],
)
def test_task_is_chosen(loss: Any, activation: str, units: int, labels: Any, task: str) -> None:
    assert choose(dense(units, activation, loss), X, labels).task == task


@pytest.mark.parametrize(
    ("labels", "classes", "activation", "task"),
    [
        ((IMAGES[..., 0] * 3).astype(int), 3, "softmax", "segmentation"),
        ((IMAGES * 3).astype(int), 3, "softmax", "segmentation"),
        (np.eye(3)[(IMAGES[..., 0] * 3).astype(int)], 3, "softmax", "segmentation"),
        (IMAGES > 0.5, 1, "sigmoid", "segmentation"),
        (IMAGES, 1, "sigmoid", "autoencoder"),
        (N % 3, 1, "sigmoid", "autoencoder"),
    ],
)
def test_outputs_with_places(labels: Any, classes: int, activation: str, task: str) -> None:
    model = keras.Sequential([layers.Input((4, 4, 1)), layers.Conv2D(classes, 1, activation=activation)])
    assert choose(model, IMAGES, labels).task == task


def test_places_without_labels_of_their_own_are_refused_with_the_likely_fault() -> None:
    model = keras.Sequential([layers.Input((4, 3)), layers.LSTM(2, return_sequences=True), layers.Softmax()])
    with pytest.raises(EngineFailure, match="return_sequences") as caught:
        choose(model, np.zeros((20, 4, 3), np.float32), N % 2)
    assert caught.value.failure.code == "output-rank"


@pytest.mark.parametrize(
    ("task", "labels", "units"),
    [("multi-label", N % 3, 3), ("segmentation", N % 3, 3), ("autoencoder", N % 2, 2)],
)
def test_a_task_that_does_not_fit_is_refused(task: str, labels: Any, units: int) -> None:
    with pytest.raises(EngineFailure) as caught:
        choose(dense(units), X, labels, task=task)
    assert caught.value.failure.code == "task-shape"
    assert f"has the shape ({units},)" in str(caught.value)


def test_an_output_without_a_batch_axis_is_refused() -> None:
    model = keras.Sequential([layers.Input((3,)), layers.Lambda(lambda x: keras.ops.sum(x))])
    with pytest.raises(EngineFailure, match="first axis is not the test") as caught:
        choose(model, X, N % 2)
    assert caught.value.failure.code == "output-shape"


@pytest.mark.parametrize(
    ("labels", "model", "code"),
    [
        (np.eye(4)[N % 4], dense(3, "softmax"), "label-mismatch"),
        (N % 4, dense(3, "softmax"), "label-mismatch"),
        (N % 3, dense(1, "sigmoid"), "label-mismatch"),
        (N % 2 - 1, dense(3, "softmax"), "label-mismatch"),
        (np.zeros((20, 2)) + N[:, None] / 20, dense(1, "linear", "mse"), "label-mismatch"),
        (MULTI_HOT, dense(3, "softmax"), "multi-label"),
        (N * 0 + 1, dense(3, "softmax"), "one-class"),
        (N * 0 + 0.5, dense(1, "linear", "mse"), "one-class"),
        (np.where(N == 3, np.nan, N / 20), dense(1, "linear", "mse"), "nan-labels"),
    ],
)
def test_odd_labels_are_said(labels: Any, model: Any, code: str) -> None:
    assert [found for found, _ in choose(model, X, labels).notices] == [code]


def test_labels_that_fit_are_not_remarked_on() -> None:
    assert choose(dense(3, "softmax"), X, N % 3).notices == ()


def test_text_as_labels_is_refused() -> None:
    with pytest.raises(EngineFailure) as caught:
        choose(dense(1), X, np.array(["a"] * 20))
    assert caught.value.failure.code == "label-type"


def test_labels_beyond_the_sample_are_looked_at_where_that_is_cheap() -> None:
    y = np.zeros(300)
    y[250] = 0.5  # no class number
    x = np.zeros((300, 3), np.float32)
    assert choose(dense(1, "sigmoid"), x, y).task == "regression"
