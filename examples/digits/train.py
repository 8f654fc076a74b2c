"""Recognise handwritten digits with a small convolutional network."""

from pathlib import Path

import keras
import numpy as np
from keras import initializers, layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).parent

keras.utils.set_random_seed(0)

images, digits = load_digits(return_X_y=True)
images = (images / 16).reshape(-1, 8, 8, 1).astype("float32")
x_train, x_test, y_train, y_test = train_test_split(
    images, digits, test_size=0.25, stratify=digits, random_state=0
)

model = keras.Sequential(
    [
        layers.Input((8, 8, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(64, activation="tanh", kernel_initializer=initializers.RandomNormal(1.0)),
        layers.Dense(32, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, epochs=20, batch_size=32, validation_split=0.1, verbose=2)

loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
print(f"test accuracy {accuracy:.3f}")

model.save(HERE / "model.keras")
np.savez(HERE / "test_data.npz", x_test=x_test, y_test=y_test)
