"""How tests are fed to a model, said before any is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .backend import backend_of
from .errors import unusable
from .load.inputs import ModelInput, inputs_of, structure_of
from .load.tests.testset import Block, map_arrays
from .wire import ModelSummary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .load.tests.testset import Arrays

Fitted = Callable[["NDArray[Any]"], "NDArray[Any]"]


@dataclass(frozen=True, slots=True)
class Fit:
    """How the inputs of a test set become what a model is called with."""

    adapt: Callable[[Arrays], Any]
    """Inputs of a block → NumPy arrays in the structure and the shapes that the model takes: views, except of text."""
    cast: Callable[[Any, Any], Any]
    """(ops, that structure of tensors, inside a step) → of the dtypes and layouts that the model takes."""
    batch: int | None
    """The size that every batch must have, where the model fixes it."""
    notices: tuple[tuple[str, str], ...] = ()


def fit(model: Any, summary: ModelSummary, sample: Block) -> Fit:
    """See how tests are fed to a model.

    Inputs of the right size are reshaped, as in GUIDER's released code: (N, 28, 28) and (N, 784) fit (None, 28, 28, 1).
    Several inputs are told apart by their names, without names by their order. Numbers are cast inside the step, so
    images of bytes stay bytes until then.

    Args:
        model: the model; one that declares no inputs (a subclass) is called with the tests as they are.
        summary: of it.
        sample: some tests.

    Raises:
        EngineFailure: the number, names, shapes or kinds of the inputs are others than the model takes.
    """
    declared = inputs_of(model)
    if not declared:
        return Fit(_undeclared, _cast_undeclared, None)
    if backend_of(model).name != "tensorflow" and any(wanted.dtype == "string" for wanted in declared):
        raise unusable(
            "input-type",
            "The model takes text, which Keras computes with on TensorFlow alone. Set KERAS_BACKEND=tensorflow for the "
            "project, or save the part of the model after the vectorization, and tests that were vectorized.",
        )
    chosen = _select(declared, sample.inputs)
    first = [np.asarray(array) for array in chosen(sample.inputs)]
    fits = [_fitted(wanted, array, len(declared) > 1) for wanted, array in zip(declared, first, strict=True)]
    structure = structure_of(model)
    places = {id(tensor): i for i, tensor in enumerate(model.inputs)}

    def adapt(inputs: Arrays) -> Any:
        arrays = [fitted(array) for fitted, array in zip(fits, chosen(inputs), strict=True)]
        return _packed(structure, lambda tensor: arrays[places[id(tensor)]])

    def cast(ops: Any, inputs: Any) -> Any:
        return _zipped(structure, inputs, lambda tensor, one: _cast(ops, declared[places[id(tensor)]], one))

    batch = next((wanted.batch for wanted in declared if wanted.batch), None)
    stateful = [layer.name for layer in summary.all_layers() if _is_stateful(layer.config)]
    if batch is not None and not stateful and _takes_any_batch(model, batch, adapt, cast, sample):
        batch = None
    return Fit(adapt, cast, batch, _notices(stateful, declared, batch))


def _takes_any_batch(model: Any, batch: int, adapt: Any, cast: Any, sample: Block) -> bool:
    """Whether a declared size is only what the model was first called with, as of a Sequential without `Input`."""
    backend = backend_of(model)
    rows = 1 if batch != 1 else 2
    few = map_arrays(lambda array: np.resize(array, (rows, *array.shape[1:])), sample.inputs)
    try:
        outputs = backend.call_model(model, cast(backend.ops, adapt(few)))
    except Exception:
        return False
    return all(array.ndim > 0 and len(array) == rows for array in _leaves(outputs))


def _select(declared: tuple[ModelInput, ...], inputs: Arrays) -> Callable[[Arrays], list[NDArray[Any]]]:
    """Which array is fed to which input."""
    names = [wanted.name for wanted in declared]
    if isinstance(inputs, dict):
        if len(inputs) == len(declared) == 1:
            return lambda arrays: list(arrays.values())  # type: ignore[union-attr]
        missing = [name for name in names if name not in inputs]
        if missing:
            raise unusable(
                "input-names",
                f"The model takes {_listed(names)}; among the test inputs there is no {_listed(missing)}, only "
                f"{_listed(list(inputs))}. Name the arrays like the model's inputs.",
            )
        return lambda arrays: [arrays[name] for name in names]  # type: ignore[call-overload]
    given = len(inputs) if isinstance(inputs, tuple) else 1
    if given != len(declared):
        raise unusable(
            "input-count",
            f"The model takes {len(declared)} inputs ({_listed(names)}), the test data have {given}. Save one "
            "array for each input, named like it: np.savez('test.npz', "
            + ", ".join(f"{name}=…" for name in names)
            + ", y=labels).",
        )
    if isinstance(inputs, tuple):
        return lambda arrays: list(arrays)
    return lambda arrays: [arrays]  # type: ignore[list-item]


def _fitted(wanted: ModelInput, array: NDArray[Any], several: bool) -> Fitted:
    """How an array becomes what the model takes."""
    of = f" of input {wanted.name}" if several else ""
    text = array.dtype.kind in "USO"
    if text != (wanted.dtype == "string"):
        raise unusable(
            "input-type",
            f"The model takes numbers ({wanted.dtype}){of}, the test inputs are text. Save them as they are passed to "
            "model.predict, after vectorization."
            if text
            else f"The model takes text{of}, the test inputs are numbers ({array.dtype}). Save the text "
            "itself: the model vectorizes it.",
        )
    shape = _target(wanted, tuple(array.shape[1:]), of)
    if text:
        return lambda one: _reshaped(one, shape).astype(object)
    return lambda one: _reshaped(one, shape)


def _reshaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    return array if array.shape[1:] == shape else array.reshape(len(array), *shape)


def _target(wanted: ModelInput, actual: tuple[int, ...], of: str) -> tuple[int, ...]:
    """The shape in which one test is fed."""
    shape = wanted.shape
    if shape is None or _matches(shape, actual):
        return actual
    if None not in shape and math.prod(shape) == math.prod(actual) and not _permuted(shape, actual):  # type: ignore[arg-type]
        return shape  # type: ignore[return-value]
    for more in ((*actual, 1), actual[:-1] if actual[-1:] == (1,) else None):
        if more is not None and _matches(shape, more):
            return more
    said = f"One test{of} has shape {actual}, the model takes {_spelled(shape)}."
    if None not in shape and _permuted(shape, actual):  # type: ignore[arg-type]
        said += " The axes seem to be in another order: transpose the inputs."
    raise unusable(
        "input-shape",
        f"{said} Save the test inputs as they are passed to model.predict, after scaling and reshaping.",
    )


def _matches(wanted: tuple[int | None, ...], actual: tuple[int, ...]) -> bool:
    return len(wanted) == len(actual) and all(
        want in (None, have) for want, have in zip(wanted, actual, strict=True)
    )


def _permuted(wanted: tuple[int, ...], actual: tuple[int, ...]) -> bool:
    """Whether the axes (longer than 1) are the same in another order, so that reshaping would scramble the test."""
    a, b = ([size for size in shape if size != 1] for shape in (wanted, actual))
    return a != b and sorted(a) == sorted(b)


def _spelled(shape: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if size is None else str(size) for size in shape)}{',' if len(shape) == 1 else ''})"


def _cast(ops: Any, wanted: ModelInput, tensor: Any) -> Any:
    if wanted.dtype == "string":
        return ops.convert_to_tensor(tensor)
    tensor = ops.cast(tensor, wanted.dtype)
    if wanted.layout == "dense":
        return tensor
    import tensorflow as tf

    if wanted.layout == "sparse":
        return tf.sparse.from_dense(tensor)
    return tf.RaggedTensor.from_tensor(tensor, lengths=_lengths(tensor))


def _lengths(tensor: Any) -> Any:
    """How many steps of each test come before its padding with zeros; at least one."""
    import tensorflow as tf

    used = tensor != 0
    while len(used.shape) > 2:
        used = tf.reduce_any(used, axis=-1)
    steps = tf.range(1, tf.shape(used)[1] + 1)
    return tf.maximum(tf.reduce_max(tf.where(used, steps, 0), axis=1), 1)


def _undeclared(inputs: Arrays) -> Any:
    """As they are; text as Python objects, floats in single precision as `model.predict` makes them."""
    if isinstance(inputs, dict):
        return {name: _plain(array) for name, array in inputs.items()}
    return tuple(map(_plain, inputs)) if isinstance(inputs, tuple) else _plain(inputs)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(object) if array.dtype.kind in "US" else array


def _cast_undeclared(ops: Any, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return {name: _cast_undeclared(ops, one) for name, one in inputs.items()}
    if isinstance(inputs, (list, tuple)):
        return type(inputs)([_cast_undeclared(ops, one) for one in inputs])
    name = str(getattr(inputs.dtype, "name", inputs.dtype)).removeprefix("torch.")
    if name in ("object", "string"):
        return ops.convert_to_tensor(inputs)
    return ops.cast(inputs, "float32" if name.startswith("float") else name)


def _is_stateful(config: Any) -> bool:
    """Whether a layer, or one that it wraps, keeps its state."""
    if isinstance(config, Mapping):
        return config.get("stateful") is True or any(map(_is_stateful, config.values()))
    return isinstance(config, list) and any(map(_is_stateful, config))


def _notices(
    stateful: list[str], declared: tuple[ModelInput, ...], batch: int | None
) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    if stateful:
        found.append(
            (
                "stateful-layers",
                f"{_listed(stateful)} {'keeps its' if len(stateful) == 1 else 'keep their'} state from batch to batch: "
                f"the tests are run in their order{f', {batch} at a time' if batch else ''}, from a state of zeros.",
            )
        )
    ragged = [wanted.name for wanted in declared if wanted.layout == "ragged"]
    if ragged:
        found.append(
            (
                "ragged-input",
                f"The model takes sequences of unequal length ({_listed(ragged)}): the zeros at the end of each test "
                "count as padding and are cut off.",
            )
        )
    return tuple(found)


def _leaves(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [leaf for one in structure.values() for leaf in _leaves(one)]
    if isinstance(structure, (list, tuple)):
        return [leaf for one in structure for leaf in _leaves(one)]
    return [structure]


def _packed(structure: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(structure, Mapping):
        return {key: _packed(one, leaf) for key, one in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [_packed(one, leaf) for one in structure]
    return leaf(structure)


def _zipped(structure: Any, values: Any, leaf: Callable[[Any, Any], Any]) -> Any:
    if isinstance(structure, Mapping):
        return {key: _zipped(one, values[key], leaf) for key, one in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [_zipped(one, value, leaf) for one, value in zip(structure, values, strict=True)]
    return leaf(structure, values)


def _listed(names: list[str]) -> str:
    return ", ".join(names)
