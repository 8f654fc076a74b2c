"""A file of a model becomes a model, by the Keras that can read it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from guider_engine.errors import EngineFailure, first_line, unusable
from guider_engine.wire import Inputs

from .files import ModelFile, unsafe
from .keras_import import import_keras, is_keras_3, legacy_keras

_MISSING = re.compile(r"(?:Could not locate (?:class|function)|Unknown [a-z ]+):? '([^']+)'")
"""How Keras 3 and Keras 2 say that a class or function is not registered."""


def read_by_some_keras(
    file: ModelFile, inputs: Inputs, custom: dict[str, Any]
) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """Read by the installed Keras, or by Keras 2 (tf_keras) what only that can.

    Returns:
        The model, and what is to be said of it: (code, message).

    Raises:
        EngineFailure: none can.
    """
    keras = import_keras()
    if not is_keras_3(keras):
        if file.version.startswith("3."):
            raise unusable(
                "model-version",
                f"{file.path.name} was written by Keras {file.version}; installed is Keras {keras.__version__}, which "
                f"cannot read it. Install Keras 3 ({sys.executable} -m pip install -U keras), or save the model by the "
                "Keras that is installed.",
            )
        return read(keras, file, inputs, custom), ()
    legacy = legacy_keras() if file.version.startswith("2.") else None
    if file.kind == "saved-model" and legacy is None:
        raise unusable(
            "model-version",
            f"{file.path.name} is a SavedModel of Keras 2, which Keras {keras.__version__} cannot read. Install "
            f"tf_keras in the version of your TensorFlow ({_install_legacy()}), or load it by Keras 2 and save it as "
            "one file: model.save('model.keras').",
        )
    first: EngineFailure | None = None
    for library in _libraries(file, keras, legacy):
        try:
            model = read(library, file, inputs, custom)
        except EngineFailure as error:
            first = first or error
            continue
        if library is keras:
            return model, ()
        version = library.__version__
        return model, (
            ("keras-2-model", f"{file.path.name} was written by Keras 2 and is read by tf_keras {version}."),
        )
    assert first is not None
    raise first


def _libraries(file: ModelFile, keras: Any, legacy: Any) -> Iterator[Any]:
    """What may read a file, the likeliest first: Keras 3 knows the HDF5 files of Keras 2, but not its other formats."""
    if legacy is None:
        yield keras
    elif file.kind == "hdf5":
        yield from (keras, legacy)
    elif file.kind == "keras":
        yield from (legacy, keras)
    else:
        yield legacy


def _install_legacy() -> str:
    from importlib import metadata

    try:
        version = metadata.version("tensorflow")
    except metadata.PackageNotFoundError:
        try:
            version = metadata.version("tensorflow-cpu")
        except metadata.PackageNotFoundError:
            return "pip install tf_keras"
    return f'{sys.executable} -m pip install "tf_keras=={".".join(version.split(".")[:2])}.*"'


def read(keras: Any, file: ModelFile, inputs: Inputs, custom: dict[str, Any]) -> Any:
    """Read by one Keras.

    Args:
        keras: the library.
        file: what it is to read.
        inputs: for ``safe_mode``, and for what messages say.
        custom: objects of the user, by name.

    Raises:
        EngineFailure: it cannot.
    """
    options: dict[str, Any] = {"compile": False}
    if custom:
        options["custom_objects"] = custom
    if file.kind == "keras" or is_keras_3(keras):
        options["safe_mode"] = inputs.safe_mode
    try:
        model = keras.models.load_model(str(file.path), **options)
    except Exception as error:
        if isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError":
            raise EngineFailure(
                "environment",
                "out-of-memory",
                f"There is not enough memory to load {file.path.name}. Close other programs.",
                detail=str(error),
            ) from error
        raise _explain(keras, file, inputs, error) from error
    if not hasattr(model, "layers"):
        raise unusable(
            "model-type",
            f"{file.path.name} holds a {type(model).__name__}, which is no Keras model with layers.",
        )
    return model


def _explain(keras: Any, file: ModelFile, inputs: Inputs, error: Exception) -> EngineFailure:
    text, name = str(error), file.path.name
    missing = _MISSING.search(text)
    if missing:
        return _custom_object_missing(file, inputs, missing[1], text)
    low = text.lower()
    if "safe_mode" in low or "unsafe" in low or "lambda" in low:
        return unsafe(name, text)
    if isinstance(error, (OSError, EOFError)) or "unable to" in low:
        return unusable(
            "model-damaged",
            f"{name} cannot be read: {first_line(error)} It may be truncated or still being written; save it again.\n"
            f"{file.path}",
            detail=text,
        )
    said = f"Keras {keras.__version__} cannot load {name}"
    if file.version and file.version != "2." and file.version != keras.__version__:
        said += f", which Keras {file.version} wrote"
        if file.version.startswith("2.") and legacy_keras() is None:
            said += f" (tf_keras may: {_install_legacy()})"
    return unusable("model-unreadable", f"{said}: {first_line(error)}", detail=text)


def _custom_object_missing(file: ModelFile, inputs: Inputs, missing: str, text: str) -> EngineFailure:
    names = sorted({missing.rpartition(">")[2], *_own_objects(file.config)})
    needed = (
        f"{file.path.name} needs {', '.join(names)}, which your program defines and the file does not carry. "
    )
    if inputs.custom_objects:
        advice = (
            f"{inputs.custom_objects} (custom_objects) does not have {missing.rpartition('>')[2]}: name a "
            "module that does, or a dictionary that names it."
        )
    else:
        advice = (
            'Name the module that defines it (custom_objects = "module" in [tool.guider], setting '
            "guider.customObjects, "
            'option --custom-objects), or a dictionary, class or function in it ("module:name").'
        )
    return unusable("custom-object-missing", needed + advice, detail=text)


def _own_objects(config: Any) -> Iterator[str]:
    """Names of what is not Keras' own in a configuration that Keras 3 wrote."""
    if isinstance(config, dict):
        name, module = config.get("class_name"), str(config.get("module"))
        if name == "function" and isinstance(config.get("config"), str):
            yield config["config"]
        elif name and config.get("registered_name") and not module.startswith(("keras", "builtins")):
            yield str(name)
        for item in config.values():
            yield from _own_objects(item)
    elif isinstance(config, list):
        for item in config:
            yield from _own_objects(item)


def compiled_of_saved_model(model: Any) -> dict[str, Any]:
    """What a model was compiled with, as `tf_keras` keeps it of a SavedModel."""
    attributes = getattr(model, "_serialized_attributes", None)
    metadata = attributes.get("metadata") if isinstance(attributes, dict) else None
    return dict((metadata or {}).get("training_config") or {})
