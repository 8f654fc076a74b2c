"""Keras programs of any length, as people write them: data code, helpers, several models, loops, training."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

HEAD = '''\
"""Compare architectures on tabular and image data."""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from tensorflow.keras.layers import BatchNormalization, Conv2D, Dense, Dropout, Flatten, MaxPooling2D

SEED = 7
BATCH = 64
CLASSES = 10
WIDTHS = [128, 64, 32]
RESULTS = Path("results")

'''

DATA = '''
def load_{n}(path, limit=None):
    """Read one table, clean it, and split off a test set."""
    frame = pd.read_csv(path, nrows=limit)
    frame = frame.dropna(subset=["label", "age"]).reset_index(drop=True)
    frame["age"] = frame["age"].clip(lower=0, upper=120) / 120.0
    for column in ["income", "balance", "duration_{n}"]:
        low, high = frame[column].min(), frame[column].max()
        frame[column] = (frame[column] - low) / (high - low + 1e-9)
    codes = {{"no": 0, "yes": 1, "unknown": 0}}
    frame["default"] = frame["default"].map(codes).fillna(0).astype("int8")
    x = frame.drop(columns=["label"]).to_numpy(dtype="float32")
    y = frame["label"].to_numpy()
    order = np.random.default_rng(SEED + {n}).permutation(len(x))
    cut = int(0.8 * len(order))
    train, test = order[:cut], order[cut:]
    print(f"table {n}: {{len(train)}} to train, {{len(test)}} to test, {{x.shape[1]}} columns")
    return (x[train], y[train]), (x[test], y[test])

'''

SEQUENTIAL = '''
def build_dense_{n}(inputs, dropout=0.3):
    """A plain stack, its widths from a table."""
    model = keras.Sequential(name="dense_{n}")
    model.add(keras.Input(shape=(inputs,)))
    for width in WIDTHS:
        model.add(layers.Dense(width, activation="relu", kernel_initializer="he_normal"))
        model.add(layers.BatchNormalization())
        if dropout:
            model.add(layers.Dropout(dropout))
    model.add(layers.Dense({n} % 7 + 8, activation="tanh", name="neck_{n}"))
    model.add(layers.Dense(CLASSES, activation="softmax"))
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate=1e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model

'''

FUNCTIONAL = '''
def conv_block_{n}(x, filters, stride=1):
    """Two convolutions with a way around them."""
    shortcut = x
    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    if stride != 1:
        shortcut = layers.Conv2D(filters, 1, strides=stride)(shortcut)
    return layers.Activation("relu")(layers.Add()([x, shortcut]))


def build_residual_{n}(shape=(32, 32, 3)):
    """A small residual network."""
    inputs = keras.Input(shape=shape, name="pixels_{n}")
    x = layers.Rescaling(1.0 / 255)(inputs)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    for filters, stride in [(16, 1), (32, 2), (64, 2)]:
        x = conv_block_{n}(x, filters, stride)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dropout(0.25)(x)
    outputs = layers.Dense(CLASSES, activation="softmax", name="head_{n}")(x)
    return keras.Model(inputs, outputs, name="residual_{n}")

'''

SUBCLASS = '''
class Encoder{n}(layers.Layer):
    """One block of attention."""

    def __init__(self, width, heads, rate=0.1, **kwargs):
        super().__init__(**kwargs)
        self.attention = layers.MultiHeadAttention(num_heads=heads, key_dim=width)
        self.feed = keras.Sequential([layers.Dense(4 * width, activation="gelu"), layers.Dense(width)])
        self.first_norm = layers.LayerNormalization(epsilon=1e-6)
        self.second_norm = layers.LayerNormalization(epsilon=1e-6)
        self.dropout = layers.Dropout(rate)

    def call(self, inputs, training=False):
        attended = self.dropout(self.attention(inputs, inputs), training=training)
        normed = self.first_norm(inputs + attended)
        return self.second_norm(normed + self.feed(normed))


def build_text_{n}(vocabulary=20_000, length=200):
    """A classifier of texts."""
    tokens = keras.Input(shape=(length,), dtype="int64")
    x = layers.Embedding(vocabulary, 32, name="tokens_{n}")(tokens)
    x = Encoder{n}(32, heads=2)(x)
    x = layers.GlobalMaxPooling1D()(x)
    return keras.Model(tokens, layers.Dense(1, activation="sigmoid")(x))

'''

STACK = """
cnn_{n} = keras.Sequential([
    Conv2D(32, (3, 3), activation="relu", input_shape=(28, 28, 1)),
    MaxPooling2D((2, 2)),
    Conv2D(64, (3, 3), activation="relu"),
    MaxPooling2D((2, 2)),
    Flatten(),
    Dense(128, activation="relu"),
    BatchNormalization(),
    Dropout(0.5),
    Dense(CLASSES, activation="softmax"),
])
cnn_{n}.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])

"""

TRAIN = '''
def evaluate_{n}(model, x, y, folds=5):
    """Accuracy by class, and what it is confused with."""
    labels = np.argmax(model.predict(x, batch_size=BATCH, verbose=0), axis=1)
    confusion = np.zeros((CLASSES, CLASSES), dtype="int64")
    for truth, label in zip(y, labels):
        confusion[int(truth), int(label)] += 1
    per_class = confusion.diagonal() / np.maximum(confusion.sum(axis=1), 1)
    worst = sorted(range(CLASSES), key=lambda index: per_class[index])[:3]
    report = {{"accuracy": float((labels == y).mean()), "worst": [int(index) for index in worst]}}
    if report["accuracy"] < 0.5:
        print("below chance?", json.dumps(report, indent=2))
    elif folds > 1:
        parts = np.array_split(labels == y, folds)
        report["spread"] = float(np.std([part.mean() for part in parts if len(part)]))
    return report


def train_{n}(model, train, test, epochs=20):
    """Train, keep the best, and write what came out."""
    RESULTS.mkdir(exist_ok=True)
    callbacks = [
        keras.callbacks.EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau(factor=0.5, patience=2),
    ]
    history = model.fit(*train, validation_data=test, epochs=epochs, batch_size=BATCH, callbacks=callbacks)
    best = min(range(len(history.history["val_loss"])), key=history.history["val_loss"].__getitem__)
    summary = {{key: values[best] for key, values in history.history.items()}}
    (RESULTS / "run_{n}.json").write_text(json.dumps(summary | evaluate_{n}(model, *test)))
    return summary

'''

PARTS = (DATA, SEQUENTIAL, TRAIN, FUNCTIONAL, STACK, DATA, SUBCLASS)


def program(lines: int) -> str:
    """A program of so many lines, 30 or more; the same one every time."""
    return "\n".join(_lines(lines)) + "\n"


def _lines(lines: int) -> Iterator[str]:
    made = HEAD.splitlines()
    for number in count():
        left = lines - len(made)
        parts = [part.format(n=number).splitlines() for part in (PARTS[number % len(PARTS)], STACK)]
        part = next((part for part in parts if len(part) <= left), None)
        if part is None:
            break
        made += part
    yield from made
    yield from (f"print('note', {index})" for index in range(lines - len(made)))
