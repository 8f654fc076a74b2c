"""Load a trained Keras model: from a file, or from a function of the project."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from guider_engine.errors import EngineFailure, unusable
from guider_engine.memory import available_memory, spelled
from guider_engine.wire import CapturedModel, CaptureRecord, Inputs, ModelSummary

from .captured import captured, gone, with_origins
from .custom import custom_objects, registrations_kept
from .describe import layers_within, summarize
from .files import (
    ModelFile,
    quantized,
    read_file,
    refuse_code,
    refuse_quantized,
)
from .functions import call, is_function
from .keras_import import import_keras
from .loss import Loss, loss_of, loss_of_config
from .reading import compiled_of_saved_model, read, read_by_some_keras
from .weights import load_weights as load_weights
from .weights import put_weights, remember

_EXPECTED = "Expected is the model, or (model, tests), or (model, inputs, labels)."


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


def reset_states(model: Any) -> None:
    """Have every stateful layer begin anew."""
    for layer in layers_within(model):
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
            f"{spec} returned {_kind(made)}, not a Keras model. {_EXPECTED}",
        )
    if len(given) > 2:
        raise unusable(
            "model-type",
            f"{spec} returned {len(made)} values. {_EXPECTED}",
        )
    loss = loss_of(model)
    if weights:
        file = read_file(weights)
        put_weights(model, file)
        remember(model, file)
        loss = loss_of_config(file.compiled) if loss == Loss() else loss
    tests = None if not given else given[0] if len(given) == 1 else tuple(given)
    return _loaded(model, summarize(model, loss), spec, tests)


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
        loaded = read(keras, file, inputs, {})
    except EngineFailure as error:
        raise gone(model.name, record.program.path, error.failure.message) from error
    return LoadedModel(loaded, with_origins(summarize(loaded, loss_of_config(file.compiled)), model.model))


def _from_file(inputs: Inputs, file: ModelFile) -> LoadedModel:
    if file.kind in ("weights", "checkpoint"):
        raise unusable(
            "model-weights-only",
            f"{file.path.name} holds weights alone: it does not say which layers there are. Name a function that "
            'makes the model (load = "train:make_model" in [tool.guider], setting guider.load, option --load):\n'
            "def make_model():\n    return build()  # the model as it was when its weights were saved, not trained\n"
            "Or save the whole model: model.save('model.keras').",
        )
    if inputs.safe_mode:
        refuse_code(file)
    refuse_quantized(file)
    with custom_objects(inputs.custom_objects, inputs.root) as custom:
        model, notices = read_by_some_keras(file, inputs, custom)
    loss = loss_of_config(file.compiled or compiled_of_saved_model(model))
    remember(model, file)
    return _loaded(model, summarize(model, loss), file.path.name, notices=notices)


def _loaded(
    model: Any, summary: ModelSummary, name: str, given: Any = None, notices: tuple[tuple[str, str], ...] = ()
) -> LoadedModel:
    if any(_is_quantized(layer) for layer in layers_within(model)):
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


def _is_quantized(layer: Any) -> bool:
    return bool(getattr(layer, "quantization_mode", None)) or type(layer).__name__.startswith("Quantize")
