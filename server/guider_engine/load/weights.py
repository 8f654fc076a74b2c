"""Weights are put into a model that is there."""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

from guider_engine.errors import EngineFailure, first_line, unusable

from .captured import captured
from .describe import layers_within
from .files import ModelFile, architecture, read_file, weights_of

_ARCHITECTURES: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Of the models in memory: what a file has to describe so that its weights fit (see `load_weights`)."""

_SHAPES = re.compile(
    r"object <\w+ name=([^,>]+).*?variable\.shape=(\([^)]*\)), Received: value\.shape=(\([^)]*\))", re.DOTALL
)
"""What Keras 3 says of the first layer that a weights file does not fit."""


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
    if _architecture(file) != known or any(_keeps_state_aside(layer) for layer in layers_within(model)):
        return False
    try:
        put_weights(model, file)
    except EngineFailure:
        return False
    return True


def put_weights(model: Any, file: ModelFile) -> None:
    """Read weights into a model of the same architecture.

    Raises:
        EngineFailure: the weights are of another architecture, or the model has none yet.
    """
    if not getattr(model, "built", True):
        raise unusable(
            "weights-mismatch",
            f"The model for the weights in {file.path.name} has none yet: it was never built. Call it once on an "
            "input (or model.build(input_shape)) in the function that makes it.",
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
            f"{_misfit(error)} Make it as it was when they were saved.",
            detail=str(error),
        ) from error


def _misfit(error: Exception) -> str:
    """The layer whose shapes differ, where Keras names one; else the first line of what it says."""
    found = _SHAPES.search(str(error))
    if found is None:
        return first_line(error)
    layer, made, saved = found.groups()
    return f"{layer} has a weight of shape {made}, and the file one of shape {saved}."


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


def remember(model: Any, file: ModelFile) -> None:
    """Note from what kind of file a model has its weights, for `load_weights`."""
    known = _architecture(file)
    if known:
        _ARCHITECTURES[model] = known


def _architecture(file: ModelFile) -> str:
    """As `files.architecture`; of weights alone their kind, since their model stays as its function made it."""
    return file.kind if file.kind in ("weights", "checkpoint") else architecture(file)


def _keeps_state_aside(layer: Any) -> bool:
    """Whether it computes with values that are no weights (normalization, lookup tables), or reads them itself."""
    if hasattr(layer, "finalize_state") or hasattr(layer, "adapt"):
        return True
    package = type(layer).__module__.split(".")[0]
    reads = any(
        "load_own_variables" in vars(base) for base in type(layer).__mro__ if base.__name__ != "Layer"
    )
    return reads and package not in ("keras", "tf_keras")
