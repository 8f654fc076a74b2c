"""The user's Keras, whichever it is."""

from __future__ import annotations

import sys
from typing import Any

from guider_engine.errors import EngineFailure


def import_keras(version: str = "") -> Any:
    """Keras on the TensorFlow backend; ``tf_keras`` where a ``version`` 2 is wanted and another is installed.

    Raises:
        EngineFailure: Keras or TensorFlow is not installed in this interpreter, is broken, or Keras is set to
            another backend; the message names the interpreter and the install line.
    """
    install = f"Install it with: {sys.executable} -m pip install tensorflow"
    try:
        import tensorflow as tf
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise _broken("tensorflow", error) from error
        raise EngineFailure(
            "environment",
            "tensorflow-missing",
            f"TensorFlow is not installed for {sys.executable}, the interpreter of this project. {install} — or "
            "choose the interpreter that has it (setting guider.interpreter, option --python).",
        ) from error
    except ImportError as error:
        raise _broken("tensorflow", error) from error
    try:
        import keras
    except ModuleNotFoundError as error:
        if error.name != "keras":
            raise _broken("keras", error) from error
        return tf.keras
    except ImportError as error:
        raise _broken("keras", error) from error
    if version.startswith("2.") and not str(keras.__version__).startswith("2."):
        try:
            import tf_keras
        except ImportError as error:
            raise _broken("tf_keras", error) from error
        return tf_keras
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise EngineFailure(
            "environment",
            "backend-unsupported",
            f"Keras runs on its {backend} backend here; localization needs the TensorFlow backend so far. "
            "Set KERAS_BACKEND=tensorflow for the project.",
        )
    return keras


def _broken(package: str, error: ImportError) -> EngineFailure:
    return EngineFailure(
        "environment",
        "tensorflow-broken",
        f"{package} is installed for {sys.executable} but cannot be imported: {error}. Try "
        f"'{sys.executable} -c \"import {package}\"' and repair the installation.",
    )
