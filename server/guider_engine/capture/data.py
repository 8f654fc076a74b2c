"""Data that a program fed to a model, and the tests that they make."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from guider_engine.request import Check
from guider_engine.wire import DataKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_TESTS = 10_000
MOST_BYTES = 512 * 2**20
LONGEST_READING = 60.0
"""Seconds that a data set is read for."""


@dataclass(slots=True, eq=False)
class Fed:
    """References to data as the program passed them; nothing is read or copied while it runs."""

    kind: DataKind
    what: str
    """For people: ``validation data of fit``."""
    place: str
    """``train.py line 40``."""
    moment: int
    x: Any
    y: Any = None
    steps: int | None = None
    """Batches that are read, of data that come in batches."""
    split: float = 0.0
    """Of arrays: the fraction at the end that is held out by ``validation_split``."""
    held_out: bool = False
    """Whether that fraction is meant, and not the rest."""
    weighted: bool = False
    """Whether sample weights came with it."""


@dataclass(frozen=True, slots=True)
class Tests:
    """Inputs (N, …) and labels (N, …), and what was done to get them."""

    __test__ = False  # not a test case

    x: NDArray[Any]
    y: NDArray[Any]
    notices: tuple[tuple[str, str], ...] = ()


class NoTests(Exception):
    """The data make no test set; the text says why, as the end of a sentence."""


@dataclass(slots=True, eq=False)
class Batches:
    """Batches noted as they flow by: of a generator, or of the program's own loop over batches."""

    items: list[tuple[Any, Any]] = field(default_factory=list)
    rows: int = 0
    complete: bool = True

    def add(self, x: Any, y: Any) -> None:
        """Note one batch, unless there are enough."""
        rows = _length(x)
        if self.rows >= MOST_TESTS or self.rows * _row_bytes(x) >= MOST_BYTES:
            self.complete = False
            return
        self.items.append((x, y))
        self.rows += rows


def is_same(one: Fed, other: Fed) -> bool:
    """Whether both are the very same data, by identity or by memory."""
    return (
        (one.split, one.held_out) == (other.split, other.held_out)
        and is_same_array(one.x, other.x)
        and (one.y is other.y or is_same_array(one.y, other.y))
    )


def read(fed: Fed, check: Check) -> Tests:
    """Read the data, at most `MOST_TESTS` tests and `MOST_BYTES`.

    Raises:
        NoTests: they are no pair of arrays of numbers.
        CancelRequested: through ``check``.
    """
    notices: list[tuple[str, str]] = []
    if fed.weighted:
        notices.append(("weights-ignored", "Sample weights are ignored: every test counts the same."))
    if fed.y is None and _is_stream(fed.x):
        x, y, said = _of_stream(fed, check)
        notices += said
    else:
        x, y, total = _of_arrays(fed)
        if len(y) < total:
            notices.append(
                ("tests-sampled", f"Of {total:,} tests, {len(y):,} are used, evenly spread over the data.")
            )
    return Tests(_numbers(x, "inputs"), _numbers(y, "labels"), tuple(notices))


def _of_arrays(fed: Fed) -> tuple[Any, Any, int]:
    import numpy as np

    x, y = _single(fed.x, "input"), _single(fed.y, "output")
    total = _length(x)
    if total != _length(y):
        raise NoTests(f"there are {total:,} inputs, but {_length(y):,} labels")
    first, last = 0, total
    if fed.split:  # as Keras splits: by position, before shuffling
        at = math.floor(total * (1.0 - fed.split))
        first, last = (at, total) if fed.held_out else (0, at)
    if last <= first:
        raise NoTests("they are empty")
    wanted = max(1, min(last - first, MOST_TESTS, MOST_BYTES // max(1, _row_bytes(x) + _row_bytes(y))))
    if wanted == total:
        return _rows(x, None), _rows(y, None), total
    rows = first + np.arange(wanted) * (last - first) // wanted
    return _rows(x, rows), _rows(y, rows), last - first


def _of_stream(fed: Fed, check: Check) -> tuple[Any, Any, list[tuple[str, str]]]:
    import numpy as np

    xs: list[Any] = []
    ys: list[Any] = []
    rows, size, ended = 0, 0, False
    start = time.monotonic()
    batches = _batches(fed.x)
    for batch in batches if fed.steps is None else itertools.islice(batches, fed.steps):
        check()
        x, y = _pair(batch)
        x, y = _rows(_single(x, "input"), None), _rows(_single(y, "output"), None)
        if _length(x) != _length(y):
            raise NoTests(f"a batch has {_length(x):,} inputs, but {_length(y):,} labels")
        xs.append(x)
        ys.append(y)
        rows += len(x)
        size += x.nbytes + y.nbytes
        if rows >= MOST_TESTS or size >= MOST_BYTES or time.monotonic() - start > LONGEST_READING:
            ended = True
            break
    if not rows:
        raise NoTests("they are empty")
    try:
        inputs, labels = np.concatenate(xs)[:MOST_TESTS], np.concatenate(ys)[:MOST_TESTS]
    except ValueError as error:
        raise NoTests("their batches have different shapes") from error
    if ended or not getattr(fed.x, "complete", True):
        said = f"Of the data, the first {len(labels):,} tests are used."
        return inputs, labels, [("tests-sampled", said)]
    return inputs, labels, []


def _batches(data: Any) -> Iterable[Any]:
    if isinstance(data, Batches):
        return data.items
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):  # Sequence, PyDataset
        return (data[index] for index in range(len(data)))
    return data  # type: ignore[no-any-return]


def _is_stream(data: Any) -> bool:
    """Whether it gives batches of inputs and labels, and is not an array."""
    if isinstance(data, Batches):
        return True
    names = {base.__name__ for base in type(data).__mro__}
    return bool(names & {"DatasetV2", "DistributedDataset", "PyDataset", "Sequence", "DataLoader"})


def is_generator(data: Any) -> bool:
    """Whether it can be read only once, and Keras takes any other of its kind for it."""
    return isinstance(data, GeneratorType)


def flowing(data: Any, batches: Batches) -> Iterator[Any]:
    """The same batches, each noted as it is taken."""
    for batch in data:
        if isinstance(batch, (tuple, list)) and len(batch) >= 2:
            batches.add(batch[0], batch[1])
        yield batch


def _pair(batch: Any) -> tuple[Any, Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) < 2 or batch[1] is None:
        raise NoTests("they have no labels")
    return batch[0], batch[1]


def _single(value: Any, what: str) -> Any:
    """The one array that it is."""
    if value is None:
        raise NoTests("they have no labels" if what == "output" else "there are none")
    if isinstance(value, dict):
        if len(value) != 1:
            raise NoTests(f"they have {len(value)} {what}s ({', '.join(map(str, value))})")
        return next(iter(value.values()))
    if not isinstance(value, (list, tuple)):
        return value
    if not value or not all(getattr(part, "shape", ()) for part in value):
        return _rows(value, None)
    if len(value) != 1:
        raise NoTests(f"they have {len(value)} {what}s")
    return value[0]


def _rows(value: Any, rows: Any) -> NDArray[Any]:
    """Some rows, or all, as an array; reads no others."""
    import numpy as np

    if type(value).__name__ in ("RaggedTensor", "SparseTensor", "RaggedTensorValue", "SparseTensorValue"):
        raise NoTests(f"they are a {type(value).__name__}; tests must be arrays of numbers")
    if hasattr(value, "toarray") and hasattr(value, "tocsr"):  # a sparse matrix of SciPy
        return np.asarray((value if rows is None else value.tocsr()[rows]).toarray())
    if hasattr(value, "iloc"):
        value = value if rows is None else value.iloc[rows]
        array = value.to_numpy()
        if array.dtype.kind == "O":
            try:
                array = array.astype("float32")
            except (ValueError, TypeError):
                return np.asarray(array)
        return np.asarray(array)
    try:
        if isinstance(value, np.ndarray):
            return value if rows is None else value[rows]
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
        raise NoTests("they are ragged; tests must be arrays of numbers") from error
    return array if rows is None else array[rows]


def _numbers(array: Any, what: str) -> NDArray[Any]:
    import numpy as np

    if array.dtype.kind in "biuf" and array.ndim:
        return np.ascontiguousarray(array)
    if "float" in array.dtype.name:  # bfloat16
        return np.asarray(array, np.float32)
    kind = "text" if array.dtype.kind in "SU" else "objects" if array.dtype.kind == "O" else array.dtype.name
    raise NoTests(f"their {what} are {kind}; tests must be arrays of numbers")


def _length(value: Any) -> int:
    shape = getattr(value, "shape", None)
    try:
        return int(shape[0]) if shape is not None and len(shape) else len(value)
    except (TypeError, ValueError):
        return 0


def _row_bytes(value: Any) -> int:
    """Bytes of one row, where its type says so."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    size = getattr(dtype, "itemsize", None) or getattr(dtype, "size", None) or 8
    try:
        return int(math.prod(int(axis) for axis in shape[1:]) * int(size)) if shape is not None else 8
    except (TypeError, ValueError):
        return 8


def is_same_array(one: Any, other: Any) -> bool:
    """Whether both are the very same values in memory."""
    if one is other:
        return True
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)) and len(one) == len(other):
        return 0 < len(one) < 10 and all(map(is_same_array, one, other))
    first, second = getattr(one, "__array_interface__", None), getattr(other, "__array_interface__", None)
    if not isinstance(first, dict) or not isinstance(second, dict):
        return False
    return all(first.get(key) == second.get(key) for key in ("data", "shape", "strides", "typestr"))
