"""Running a program on Keras 2: ``import keras`` gives ``tf_keras``, with the spellings that Keras 2 once had."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_MOVED = {
    **dict.fromkeys(
        [
            "engine",
            "engine.topology",
            "layers.advanced_activations",
            "layers.convolutional",
            "layers.convolutional_recurrent",
            "layers.core",
            "layers.embeddings",
            "layers.local",
            "layers.merge",
            "layers.noise",
            "layers.normalization",
            "layers.pooling",
            "layers.recurrent",
            "layers.recurrent_v2",
            "layers.wrappers",
        ],
        "layers",
    ),
    "callbacks.callbacks": "callbacks",
    "objectives": "losses",
}
"""Modules of earlier versions, and where what they had is now."""
_ATTRIBUTES = (
    "objectives",
    *(f"utils.{name}_utils" for name in ("conv", "data", "generic", "layer", "np", "vis")),
)
"""Modules that were there without being imported."""


class LegacyKeras:
    """``import keras`` gives ``tf_keras``, and so does ``tensorflow.keras``."""

    def __init__(self) -> None:
        """Nothing is changed yet."""
        self._finders = (_Keras(), _Earlier())

    def __enter__(self) -> LegacyKeras:
        """From now on."""
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        keras, earlier = self._finders
        sys.meta_path.insert(0, keras)
        sys.meta_path.append(earlier)
        return self

    def __exit__(self, *_: object) -> None:
        """What was imported stays."""
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder not in self._finders]


def installation() -> str:
    """The command that installs ``tf_keras`` beside this interpreter's TensorFlow."""
    for name in ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-macos"):
        try:
            major, minor = importlib.metadata.version(name).split(".")[:2]
        except importlib.metadata.PackageNotFoundError:
            continue
        return f'{sys.executable} -m pip install "tf_keras=={major}.{minor}.*"'
    return f"{sys.executable} -m pip install tf_keras"


def complete(keras: ModuleType) -> None:
    """Give ``tf_keras``, just imported, what earlier versions had: modules as attributes, arguments of optimizers."""
    for name in _ATTRIBUTES:
        importlib.import_module(f"{keras.__name__}.{name}")
    for name in ("Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "RMSprop", "SGD"):
        _take_old_arguments(getattr(keras.optimizers, name), getattr(keras.optimizers.legacy, name))


def _take_old_arguments(kind: Any, legacy: Any) -> None:
    """Make an optimizer's class give the one of before where its arguments are of before.

    It would ignore ``lr``, and train with its own learning rate.
    """
    original = kind.__new__

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        old = kwargs.keys() & {"lr", "decay", "schedule_decay"} or kwargs.get("epsilon", 0) is None
        if cls is kind and old:
            return legacy(*args, **kwargs)
        return original(cls) if original is object.__new__ else original(cls, *args, **kwargs)

    kind.__new__ = __new__


class _Keras(MetaPathFinder):
    """Finds ``keras.…`` in ``tf_keras.…``."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """A spec whose module is the other one."""
        package, dot, rest = name.partition(".")
        if package != "keras":
            return None
        legacy = f"tf_keras{dot}{rest}"
        if importlib.util.find_spec(legacy) is None:
            return None
        return ModuleSpec(name, _Alias(legacy), is_package=True)


class _Earlier(MetaPathFinder):
    """Finds modules of earlier versions, which no other finder finds."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """A spec whose module is the one that has it now."""
        package, dot, rest = name.partition(".")
        if package != "tf_keras" or not dot or rest.startswith("src"):
            return None
        if rest in _MOVED:
            return ModuleSpec(name, _Alias(f"tf_keras.{_MOVED[rest]}"), is_package=True)
        internal = f"tf_keras.src.{rest}"
        try:
            found = importlib.util.find_spec(internal)
        except ModuleNotFoundError:
            return None
        return ModuleSpec(name, _Alias(internal), is_package=True) if found is not None else None


class _Alias(Loader):
    """Gives a module that has another name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, _: ModuleSpec) -> ModuleType | None:
        """What Python makes."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the other one in its place."""
        sys.modules[module.__name__] = importlib.import_module(self._name)
