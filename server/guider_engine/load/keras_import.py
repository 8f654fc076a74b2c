"""The user's Keras, whichever it is."""

from __future__ import annotations

import os
import sys
from typing import Any

from guider_engine.errors import EngineFailure

BACKENDS = ("tensorflow", "jax", "torch")


def import_keras(version: str = "") -> Any:
    """Keras on the backend that the project chose; ``tf_keras`` where a ``version`` 2 is wanted and another is there.

    Raises:
        EngineFailure: Keras or its backend is not installed in this interpreter, is broken, or the backend is one that
            runs no models; the message names the interpreter and the install line.
    """
    try:
        import keras
    except ModuleNotFoundError as error:
        if error.name != "keras":
            raise _missing(error) from error
        return _of_tensorflow()
    except ImportError as error:
        raise _broken(error.name or "keras", error) from error
    if version.startswith("2.") and is_keras_3(keras):
        return _keras_2()
    backend = str(keras.backend.backend())
    if backend not in BACKENDS:
        raise _unsupported(backend)
    return keras


def is_keras_3(keras: Any) -> bool:
    """Whether it is Keras 3 (or newer)."""
    return int(str(keras.__version__).partition(".")[0]) >= 3


def legacy_keras() -> Any:
    """The installed Keras 2 (``tf_keras``, or Keras itself); ``None``: there is none, or it is broken."""
    keras = import_keras()
    if not is_keras_3(keras):
        return keras
    try:
        return _keras_2()
    except EngineFailure:
        return None


def _keras_2() -> Any:
    try:
        import tf_keras
    except ImportError as error:
        raise _broken("tf_keras", error) from error
    return tf_keras


def _of_tensorflow() -> Any:
    try:
        import tensorflow as tf
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    except ImportError as error:
        raise _broken("tensorflow", error) from error
    try:
        tf.keras.__version__  # noqa: B018  imported when it is first asked for anything
    except (ImportError, AttributeError) as error:
        raise _broken("keras", error) from error
    return tf.keras


def _unsupported(backend: str) -> EngineFailure:
    return EngineFailure(
        "environment",
        "backend-unsupported",
        f"Keras runs on its {backend} backend here; localization needs TensorFlow, JAX or PyTorch. "
        "Set KERAS_BACKEND=tensorflow (or jax, torch) for the project.",
    )


def _missing(error: ModuleNotFoundError) -> EngineFailure:
    chosen, name = os.environ.get("KERAS_BACKEND", ""), (error.name or "").partition(".")[0]
    if chosen and chosen not in BACKENDS:
        return _unsupported(chosen)
    if name not in BACKENDS:
        return _broken("keras", error)
    choose = "or choose the interpreter that has it (setting guider.interpreter, option --python)."
    if name == "tensorflow":
        return EngineFailure(
            "environment",
            "tensorflow-missing",
            f"TensorFlow is not installed for {sys.executable}, the interpreter of this project. Install it with: "
            f"{sys.executable} -m pip install tensorflow — {choose}",
        )
    return EngineFailure(
        "environment",
        "backend-missing",
        f"Keras is set to a backend (KERAS_BACKEND, or keras.json) that needs {name}, which is not installed for "
        f"{sys.executable}. Install it with: {sys.executable} -m pip install {name} — or set KERAS_BACKEND=tensorflow, "
        f"{choose}",
    )


def _broken(package: str, error: Exception) -> EngineFailure:
    return EngineFailure(
        "environment",
        "tensorflow-broken",
        f"{package} is installed for {sys.executable} but cannot be imported: {error}. Try "
        f"'{sys.executable} -c \"import {package}\"' and repair the installation.",
    )
