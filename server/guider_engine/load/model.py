"""Load a trained Keras model: from a file, or from a function of the project."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from guider_engine.errors import EngineFailure, first_line, unusable
from guider_engine.memory import available_memory, spelled
from guider_engine.wire import CapturedModel, CaptureRecord, Inputs, ModelSummary

from .captured import captured, gone, with_origins
from .custom import custom_objects, registrations_kept
from .describe import inner_layers as inner_layers
from .describe import summarize
from .files import (
    ModelFile,
    architecture,
    quantized,
    read_file,
    refuse_code,
    refuse_quantized,
    unsafe,
    weights_of,
)
from .functions import call, is_function
from .keras_import import import_keras, is_keras_3, legacy_keras
from .loss import loss_of, loss_of_config

_MISSING = re.compile(r"(?:Could not locate (?:class|function)|Unknown [a-z ]+):? '([^']+)'")
"""How Keras 3 and Keras 2 say that a class or function is not registered."""

_ARCHITECTURES: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Of the models in memory: what a file has to describe so that its weights fit (see `load_weights`)."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory."""

    model: Any
    summary: ModelSummary
    given: Any = None
    """What ``load`` returned beside the model: (inputs, labels), or one test set."""
    notices: tuple[tuple[str, str], ...] = ()
    """What the reader of a result has to know: (code, message)."""


def load_model(inputs: Inputs) -> LoadedModel:
    """The model that ``inputs`` name: a file, a function that returns it, or a function and a file of weights for it.

    It is not compiled: an old optimizer or a custom loss must not stop a localization.

    Raises:
        EngineFailure: the file is missing, empty, damaged, of another kind, or needs code that is not there; or the
            function returns something else.
    """
    import_keras()
    with registrations_kept():
        if inputs.load:
            return _from_function(inputs, inputs.load, inputs.model)
        if is_function(inputs.model) and not Path(inputs.model).exists():
            return _from_function(inputs, inputs.model, "")
        found = captured(inputs.model)
        if found is not None:
            return _from_capture(inputs, *found)
        return _from_file(inputs, read_file(inputs.model))


def load_weights(model: Any, spec: str) -> bool:
    """Put the weights of a file into a model that was loaded from a file of the same architecture.

    Args:
        model: as `load_model` returned it; what was compiled with it stays valid.
        spec: the file.

    Returns:
        Whether it was done. Otherwise the model must be loaded anew: the architecture, the loss or the Keras that wrote
        the file differ, or the model holds more than weights (vocabularies, statistics that its layers keep aside).

    Raises:
        EngineFailure: the file is missing, damaged or of another kind.
    """
    known = _ARCHITECTURES.get(model)
    if known is None or captured(spec) is not None:
        return False
    file = read_file(spec)
    if _architecture(file) != known or any(_keeps_state_aside(layer) for layer in _layers(model)):
        return False
    try:
        _put_weights(model, file)
    except EngineFailure:
        return False
    return True


def reset_states(model: Any) -> None:
    """Have every stateful layer begin anew."""
    for layer in _layers(model):
        if getattr(layer, "stateful", False) is True:
            reset = getattr(layer, "reset_state", None) or getattr(layer, "reset_states", None)
            if callable(reset):
                reset()


def described(loaded: LoadedModel) -> LoadedModel:
    """The same with a new description: a subclassed model that was never called knows its layers after it was."""
    known = loaded.summary
    if all(layer.output_shape is not None or layer.parameters for layer in known.layers) and known.layers:
        return loaded
    fresh = summarize(loaded.model, loss_of(loaded.model))
    fresh = replace(
        fresh, loss=known.loss, from_logits=known.from_logits, outputs=known.outputs or fresh.outputs
    )
    return replace(loaded, summary=with_origins(fresh, known))


def _from_function(inputs: Inputs, spec: str, weights: str) -> LoadedModel:
    with custom_objects(inputs.custom_objects, inputs.root):
        made = call(spec, inputs.root)
    model, *given = made if isinstance(made, (tuple, list)) and made else (made,)
    if not hasattr(model, "layers") or not callable(model) or isinstance(model, type):
        raise unusable(
            "model-type",
            f"{spec} returned {_kind(made)}, not a Keras model. Expected is the model, or (model, tests), or "
            "(model, inputs, "
            "labels).",
        )
    if len(given) > 2:
        raise unusable(
            "model-type",
            f"{spec} returned {len(made)} values; expected is the model, (model, tests), or (model, inputs, labels).",
        )
    if weights:
        file = read_file(weights)
        _put_weights(model, file)
        _remember(model, file)
    tests = None if not given else given[0] if len(given) == 1 else tuple(given)
    return _loaded(model, summarize(model, loss_of(model)), spec, tests)


def _kind(made: Any) -> str:
    kind = type(made).__name__
    if not isinstance(made, (tuple, list)):
        return kind
    return f"a {kind} that begins with {type(made[0]).__name__}" if made else f"an empty {kind}"


def _from_capture(inputs: Inputs, record: CaptureRecord, model: CapturedModel) -> LoadedModel:
    path = Path(inputs.model)
    if not path.exists():
        raise gone(model.name, record.program.path)
    try:
        keras = import_keras(record.versions.get("keras", ""))
        file = read_file(inputs.model)
        loaded = _read(keras, file, inputs, {})
    except EngineFailure as error:
        raise gone(model.name, record.program.path, error.failure.message) from error
    return LoadedModel(loaded, with_origins(summarize(loaded, loss_of_config(file.compiled)), model.model))


def _from_file(inputs: Inputs, file: ModelFile) -> LoadedModel:
    if file.kind in ("weights", "checkpoint"):
        raise unusable(
            "model-weights-only",
            f"{file.path.name} holds weights alone: it does not say which layers there are. Name a function "
            "that makes the "
            'model (load = "train:make_model" in [tool.guider], setting guider.load, option --load):\n'
            "def make_model():\n    return build()  # the model as it was when its weights were saved, not trained\n"
            "Or save the whole model: model.save('model.keras').",
        )
    if inputs.safe_mode:
        refuse_code(file)
    refuse_quantized(file)
    with custom_objects(inputs.custom_objects, inputs.root) as custom:
        model, notices = _read_by_some_keras(file, inputs, custom)
    loss = loss_of_config(file.compiled or _compiled_of_saved_model(model))
    _remember(model, file)
    return _loaded(model, summarize(model, loss), file.path.name, notices=notices)


def _loaded(
    model: Any, summary: ModelSummary, name: str, given: Any = None, notices: tuple[tuple[str, str], ...] = ()
) -> LoadedModel:
    if any(_is_quantized(layer) for layer in _layers(model)):
        raise quantized(name)
    _check_outputs(summary, name)
    return LoadedModel(model, summary, given, notices)


def _check_outputs(summary: ModelSummary, name: str) -> None:
    """Refuse a model with a layer whose output for one test would not fit into the memory."""
    memory = available_memory()
    for layer in summary.all_layers():
        size = 4 * math.prod(size or 1 for size in layer.output_shape or ())
        if memory is not None and size > memory:
            raise unusable(
                "model-too-large",
                f"The layer {layer.name} of {name} puts out {spelled(size)} for each test, more than the "
                f"{spelled(memory)} of memory that are free.",
            )


def _read_by_some_keras(
    file: ModelFile, inputs: Inputs, custom: dict[str, Any]
) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """Read by the installed Keras, or by Keras 2 (tf_keras) what only that can."""
    keras = import_keras()
    if not is_keras_3(keras):
        if file.version.startswith("3."):
            raise unusable(
                "model-version",
                f"{file.path.name} was written by Keras {file.version}; installed is Keras {keras.__version__}, which "
                f"cannot read it. Install Keras 3 ({sys.executable} -m pip install -U keras), or save the model by the "
                "Keras that is installed.",
            )
        return _read(keras, file, inputs, custom), ()
    legacy = legacy_keras() if file.version.startswith("2.") else None
    if file.kind == "saved-model" and legacy is None:
        raise unusable(
            "model-version",
            f"{file.path.name} is a SavedModel of Keras 2, which Keras {keras.__version__} cannot read. "
            "Install tf_keras in "
            f"the version of your TensorFlow ({_install_legacy()}), or load it by Keras 2 and save it as one file: "
            "model.save('model.keras').",
        )
    first: EngineFailure | None = None
    for library in _libraries(file, keras, legacy):
        try:
            model = _read(library, file, inputs, custom)
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


def _read(keras: Any, file: ModelFile, inputs: Inputs, custom: dict[str, Any]) -> Any:
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
            "module that does, "
            "or a dictionary that names it."
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


def _compiled_of_saved_model(model: Any) -> dict[str, Any]:
    attributes = getattr(model, "_serialized_attributes", None)
    metadata = attributes.get("metadata") if isinstance(attributes, dict) else None
    return dict((metadata or {}).get("training_config") or {})


def _put_weights(model: Any, file: ModelFile) -> None:
    """Read weights into a model of the same architecture.

    Raises:
        EngineFailure: the weights are of another architecture, or the model has none yet.
    """
    if not getattr(model, "built", True):
        raise unusable(
            "weights-mismatch",
            f"The model for the weights in {file.path.name} has none yet: it was never built. Call it once on "
            "an input (or "
            "model.build(input_shape)) in the function that makes it.",
        )
    try:
        if file.kind == "checkpoint":
            _restore(model, str(file.path))
        else:
            with weights_of(file) as path:
                model.load_weights(str(path))
    except MemoryError:
        raise
    except Exception as error:
        raise unusable(
            "weights-mismatch",
            f"The weights in {file.path.name} do not fit the model that the function makes: "
            f"{first_line(error)} Make it as "
            "it was when they were saved.",
            detail=str(error),
        ) from error


def _restore(model: Any, prefix: str) -> None:
    """Read a checkpoint of TensorFlow: of the model itself, or of an object that has it as ``model``."""
    import tensorflow as tf

    failed: AssertionError | None = None
    for checkpoint in (tf.train.Checkpoint(model), tf.train.Checkpoint(model=model)):
        status = checkpoint.read(prefix).expect_partial()
        try:
            status.assert_existing_objects_matched()
        except AssertionError as error:
            failed = failed or error
        else:
            return
    raise failed or AssertionError


def _remember(model: Any, file: ModelFile) -> None:
    known = _architecture(file)
    if known:
        _ARCHITECTURES[model] = known


def _architecture(file: ModelFile) -> str:
    """As `files.architecture`; of weights alone their kind, since their model stays as its function made it."""
    return file.kind if file.kind in ("weights", "checkpoint") else architecture(file)


def _layers(model: Any) -> list[Any]:
    """All layers, at any depth."""
    flatten = getattr(model, "_flatten_layers", None)
    return list(model.layers) if flatten is None else list(flatten(include_self=False))


def _keeps_state_aside(layer: Any) -> bool:
    """Whether it computes with values that are no weights (normalization, lookup tables), or reads its "
    "weights itself."""
    if hasattr(layer, "finalize_state") or hasattr(layer, "adapt"):
        return True
    package = type(layer).__module__.split(".")[0]
    reads = any(
        "load_own_variables" in vars(base) for base in type(layer).__mro__ if base.__name__ != "Layer"
    )
    return reads and package not in ("keras", "tf_keras")


def _is_quantized(layer: Any) -> bool:
    return bool(getattr(layer, "quantization_mode", None)) or type(layer).__name__.startswith("Quantize")
