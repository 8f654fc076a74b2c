"""What a function of the user returned, as tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.errors import CancelRequested, EngineFailure, unusable
from guider_engine.load.functions import forget, importable, user_code
from guider_engine.load.inputs import ModelInput
from guider_engine.request import Check
from guider_engine.wire import Inputs

from .arrays import array_tests
from .labels import as_text
from .select import select
from .streams import ENDLESS, joined, stream_tests
from .testset import Block, TestSet, first_array, map_arrays

if TYPE_CHECKING:
    from .testset import Arrays

WEIGHTS = (
    "sample-weights",
    "The test set has sample weights, which are not used: every test weighs what the model's confidence says.",
)


def tests_of(
    value: Any,
    spec: str,
    again: Callable[[], Any] | None,
    options: Inputs,
    wanted: tuple[ModelInput, ...],
    check: Check,
) -> TestSet:
    """Tests of a pair of arrays, a dictionary of arrays, a dataset, a ``Sequence``, a generator or another iterable.

    Args:
        value: what was returned.
        spec: the function, for people.
        again: calls it again, for what can be read only once; ``None``: it cannot be.
        options: of the localization.
        wanted: what the model takes.
        check: called while a stream is looked through; may raise to stop.

    Raises:
        EngineFailure: it is nothing of these, or holds no tests.
    """
    if _is_dataset(value):
        return _of_dataset(value, spec, options, wanted, check)
    if isinstance(value, Mapping):
        return _of_mapping(value, spec, options, wanted)
    if isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
        return _of_batches(lambda: iter(value), spec, options, check, wanted, endless=False)
    if isinstance(value, (tuple, list)):
        return _of_pair(value, spec, options, wanted)
    if hasattr(value, "shape"):
        return _of_pair((value,), spec, options, wanted)
    if hasattr(value, "__getitem__") and hasattr(value, "__len__"):
        batches = len(value)

        def items() -> Iterator[Any]:
            return (value[i] for i in range(batches))

        return _of_batches(items, spec, options, check, wanted, endless=False)
    if callable(value) and not hasattr(value, "__iter__"):
        return tests_of(value(), spec, value, options, wanted, check)
    if not hasattr(value, "__iter__"):
        raise unusable(
            "test-data-type",
            f"{spec} returned {type(value).__name__}; expected a pair (inputs, labels) of arrays, a dataset, a "
            "generator or a Sequence.",
        )
    if not hasattr(value, "__next__"):  # such as a DataLoader: from the first on each time
        return _of_batches(lambda: iter(value), spec, options, check, wanted, endless=False)
    if again is None:
        return _read_whole(value, spec, options, wanted)
    opened = [value]

    def anew() -> Iterator[Any]:
        return iter(opened.pop() if opened else again())

    return _of_batches(anew, spec, options, check, wanted, endless=None)


def _of_pair(value: Any, spec: str, options: Inputs, wanted: tuple[ModelInput, ...]) -> TestSet:
    """Inputs and labels; of ``(training pair, test pair)``, as Keras' ``load_data`` returns them, the second."""
    pairs = len(value) == 2 and all(isinstance(part, tuple) and len(part) == 2 for part in value)
    # Of two inputs and two outputs there are two pairs as well.
    if pairs and (len(wanted) < 2 or all(isinstance(part[0], (tuple, Mapping)) for part in value)):
        value = value[1]
    if len(value) == 1 and options.task == "autoencoder":
        value = (value[0], value[0])
    if len(value) not in (2, 3) or (len(value) == 3 and not _are_weights(value[2], value[1])):
        raise unusable(
            "test-data-type",
            f"{spec} returned {len(value)} values; expected a pair (inputs, labels) of arrays.",
        )
    notices = (WEIGHTS,) if len(value) == 3 else ()
    inputs, labels = _pair(value[0], value[1], spec)
    return array_tests(inputs, labels, spec, options, notices)


def _of_mapping(
    value: Mapping[Any, Any], spec: str, options: Inputs, wanted: tuple[ModelInput, ...]
) -> TestSet:
    arrays = {str(name): _arrays(one, spec, str(name)) for name, one in value.items()}
    chosen = select(spec, tuple(arrays), options, wanted)
    inputs, labels = chosen.pick(arrays)
    return array_tests(inputs, labels, f"{spec} ({chosen.described})", options)


def _of_dataset(
    dataset: Any, spec: str, options: Inputs, wanted: tuple[ModelInput, ...], check: Check
) -> TestSet:
    import tensorflow as tf

    shape = dataset.element_spec
    batched = _is_batched(shape, wanted)
    count = int(dataset.cardinality().numpy())
    if not batched:
        dataset = dataset.ragged_batch(64) if _varies(shape, 0) else dataset.batch(64)
    return _of_batches(
        lambda: iter(dataset),
        spec,
        options,
        check,
        wanted,
        endless=count == int(tf.data.INFINITE_CARDINALITY),
        total=count if not batched and count >= 0 else None,
        varying=_varies(shape, 1 if batched else 0),
        notices=(
            (
                "dataset-batched",
                f"{spec}: a dataset of {'batches' if batched else 'single tests'}, by its shapes.",
            ),
        )
        if not wanted
        else (),
    )


def _is_batched(shape: Any, wanted: tuple[ModelInput, ...]) -> bool:
    """By the rank of the first input, else by that of the labels."""
    inputs = shape[0] if isinstance(shape, tuple) else shape
    named = wanted and isinstance(inputs, Mapping) and wanted[0].name in inputs
    first = inputs[wanted[0].name] if named else _leaves(inputs)[0]
    labels = _leaves(shape[1])[0] if isinstance(shape, tuple) and len(shape) > 1 else first
    if wanted and wanted[0].shape is not None and first.shape.rank is not None:
        if first.shape.rank == len(wanted[0].shape) and None not in wanted[0].shape[:1]:
            # Batches that the model's own shape is made of: (None, 28, 28) for (28, 28, 1).
            return all(leaf.shape.rank and leaf.shape[0] is None for leaf in (first, labels))
        return bool(first.shape.rank > len(wanted[0].shape))
    return bool(labels.shape.rank != 0)


def _varies(shape: Any, first: int) -> bool:
    leaves = _leaves(shape[0] if isinstance(shape, tuple) else shape)
    return any(leaf.shape.rank is None or None in tuple(leaf.shape)[first:] for leaf in leaves)


def _of_batches(
    items: Callable[[], Iterator[Any]],
    spec: str,
    options: Inputs,
    check: Check,
    wanted: tuple[ModelInput, ...],
    *,
    endless: bool | None,
    total: int | None = None,
    varying: bool = False,
    notices: tuple[tuple[str, str], ...] = (),
) -> TestSet:
    weighted: list[bool] = []

    def blocks() -> Iterator[Block]:
        for item in _guarded(items, spec, options.root):
            if isinstance(item, (tuple, list)) and len(item) == 3 and not weighted:
                weighted.append(True)
            yield _block(item, spec, options, wanted)

    tests = stream_tests(
        blocks, spec, options, check, total=total, endless=endless, varying=varying, notices=notices
    )
    return replace(tests, notices=(*tests.notices, WEIGHTS)) if weighted else tests


def _guarded(items: Callable[[], Iterator[Any]], spec: str, root: str) -> Iterator[Any]:
    """The items; what the user's code raises while it gives them is told as theirs."""
    try:
        with importable(root):
            yield from items()
    except (EngineFailure, CancelRequested):
        raise
    except Exception as error:
        raise user_code(spec, error) from error
    finally:
        forget(root)


def _block(item: Any, spec: str, options: Inputs, wanted: tuple[ModelInput, ...]) -> Block:
    if not isinstance(item, (tuple, list)) and options.task == "autoencoder":
        item = (item, item)
    if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
        shape = f"{len(item)} values" if isinstance(item, (tuple, list)) else type(item).__name__
        raise unusable(
            "test-data-type", f"{spec} gives {shape} at a time; expected batches (inputs, labels) of arrays."
        )
    inputs, labels = _pair(item[0], item[1], spec)
    if first_array(labels).ndim == 0 or _is_one(first_array(inputs), wanted):
        inputs, labels = (map_arrays(lambda array: array[None], part) for part in (inputs, labels))
    return Block(inputs, labels)


def _is_one(array: Any, wanted: tuple[ModelInput, ...]) -> bool:
    """Whether an array is one test rather than a batch: it has the very shape of the model's input."""
    shape = wanted[0].shape if len(wanted) == 1 else None
    return (
        shape is not None
        and len(shape) == array.ndim
        and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    )


def _read_whole(value: Iterator[Any], spec: str, options: Inputs, wanted: tuple[ModelInput, ...]) -> TestSet:
    """Of what can be read only once, at most `ENDLESS` tests, in memory."""
    limit, found = options.max_tests or ENDLESS, []
    notices: list[tuple[str, str]] = []
    count = 0
    for item in _guarded(lambda: value, spec, options.root):
        if isinstance(item, (tuple, list)) and len(item) == 3 and not notices:
            notices.append(WEIGHTS)
        found.append(_block(item, spec, options, wanted))
        count += len(found[-1])
        if count >= limit:
            break
    if not found:
        raise unusable("test-data-empty", f"{spec}: there are no tests.")
    whole = joined(found)
    return array_tests(whole.inputs, whole.labels, spec, options, tuple(notices))


def _pair(inputs: Any, labels: Any, spec: str) -> tuple[Arrays, Arrays]:
    return (
        _arrays(_several(inputs, labels), spec, "inputs"),
        _arrays(_several(labels, inputs), spec, "labels"),
    )


def _several(value: Any, other: Any) -> Any:
    """A tuple of a list whose arrays have a row for each test, as Keras takes several inputs; a list of tests stays."""
    if not isinstance(value, list) or not all(getattr(one, "shape", ()) for one in value):
        return value
    tests = _count(other)
    return tuple(value) if len(value) != tests and {int(one.shape[0]) for one in value} == {tests} else value


def _count(value: Any) -> int | None:
    """How many tests there are; ``None``: it does not say."""
    if isinstance(value, Mapping):
        return _count(next(iter(value.values()), None))
    if isinstance(value, tuple) and value:
        return _count(value[0])
    if isinstance(value, list):
        return None if any(hasattr(one, "shape") and one.shape for one in value) else len(value)
    shape = getattr(value, "shape", ())
    return int(shape[0]) if shape else None


def _arrays(value: Any, spec: str, part: str) -> Arrays:
    """NumPy arrays of whatever arrays are; a list of arrays of several inputs is a tuple."""
    if isinstance(value, Mapping):
        return {str(name): _array(one, spec, str(name)) for name, one in value.items()}
    if (
        isinstance(value, (tuple, list))
        and value
        and all(hasattr(one, "shape") and one.shape for one in value)
    ):
        shapes = {tuple(one.shape) for one in value}
        as_many = len({shape[0] for shape in shapes}) == 1  # else they are tests of unequal length
        if isinstance(value, tuple) or (as_many and len(shapes) > 1):
            return tuple(_array(one, spec, part) for one in value)
    whole: Arrays = _array(value, spec, part)
    return whole


def _array(value: Any, spec: str, part: str) -> Any:
    if hasattr(value, "to_tensor"):  # ragged
        value = value.to_tensor()
    if hasattr(value, "detach"):  # of PyTorch, maybe on another device
        value = value.detach().cpu()
    try:
        found = as_text(np.asarray(value))
    except (ValueError, TypeError) as error:
        padded = _padded(value) if isinstance(value, (list, tuple)) else None
        if padded is None:
            raise unusable("test-data-type", f"{spec}: inputs and labels must be arrays: {error}") from error
        return padded
    if found.dtype.kind == "O":
        padded = _padded(found.tolist()) if found.ndim == 1 else None  # as Keras' own sequences of words come
        if padded is None:
            raise _objects(spec, part)
        return padded
    return found.astype(np.float32) if found.dtype.name == "bfloat16" else found


def _padded(value: Any) -> Any:
    """Lists of unequal length, as sequences of words are, with zeros to the longest; ``None``: they are not."""
    if not value or not all(isinstance(one, (list, tuple, np.ndarray)) for one in value):
        return None
    try:
        rows = [np.asarray(one) for one in value]
    except ValueError:  # lists of unequal length in lists
        return None
    if any(row.ndim != 1 or row.dtype.kind not in "biuf" for row in rows):
        return None
    whole = np.zeros(
        (len(rows), max(map(len, rows))), np.result_type(*[row for row in rows if len(row)] or rows)
    )
    for row, numbers in zip(whole, rows, strict=True):
        row[: len(numbers)] = numbers
    return whole


def _objects(spec: str, part: str) -> EngineFailure:
    return unusable(
        "test-data-type", f"{spec}: {part} are Python objects; expected numbers, booleans or text in arrays."
    )


def _are_weights(weights: Any, labels: Any) -> bool:
    """Whether a third value is one number a test."""
    shape, of_labels = (tuple(getattr(one, "shape", ())) for one in (weights, labels))
    return bool(shape and of_labels and shape[0] == of_labels[0] and len(shape) <= 2)


def _is_dataset(value: Any) -> bool:
    return hasattr(value, "element_spec") and hasattr(value, "cardinality")


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value]
