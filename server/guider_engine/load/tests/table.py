"""CSV and Parquet: one test a row, one column the label."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.errors import EngineFailure, unusable
from guider_engine.load.inputs import ModelInput
from guider_engine.request import Check
from guider_engine.wire import Inputs

from .arrays import array_tests
from .checks import damaged, package_missing, present
from .labels import as_text, is_text
from .streams import joined, stream_tests
from .testset import Block, TestSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE = 256 << 20
"""Bytes of a file up to which it is read whole, so that a sample can be drawn by class; larger ones are streamed."""
ROWS = 4096
"""Rows that are read at a time."""
LABELS = ("label", "labels", "target", "targets", "class", "classes", "y", "outcome", "species", "category")
"""Usual names of the column that holds the labels, in the order in which they are looked for."""
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
_SUFFIXES = {".csv": ",;\t", ".tsv": "\t"}

Columns = dict[str, "NDArray[Any]"]


@dataclass(frozen=True, slots=True)
class Table:
    """A file of columns."""

    path: Path
    columns: tuple[str, ...]
    header: bool
    """Whether the file names them."""
    chunks: Callable[[], Iterator[Columns]]
    """Columns of some rows, from the first on each time; numbers, or text."""


def of_csv(path: Path, options: Inputs, wanted: tuple[ModelInput, ...], check: Check) -> TestSet:
    """The tests of a text file with separated values; commas, semicolons or tabs; with or without names.

    Raises:
        EngineFailure: it is missing or damaged, values are missing, or columns are no numbers.
    """
    present(path)
    return _tests(_csv(path), options, wanted, check)


def of_parquet(path: Path, options: Inputs, wanted: tuple[ModelInput, ...], check: Check) -> TestSet:
    """The tests of a Parquet file, by ``pyarrow``, which reads it piece by piece, or ``pandas``.

    Raises:
        EngineFailure: it is missing or damaged, both packages are, values are missing, or columns are no numbers.
    """
    present(path)
    with path.open("rb") as file:
        begin = file.read(4)
        file.seek(max(0, path.stat().st_size - 4))
        end = file.read(4)
    if b"PAR1" not in begin or b"PAR1" not in end:
        raise damaged(path, "not a whole Parquet file")
    try:
        table = _parquet(path)
    except EngineFailure:
        raise
    except Exception as error:
        raise damaged(path, str(error).splitlines()[0] if str(error) else type(error).__name__) from error
    return _tests(table, options, wanted, check)


def _tests(table: Table, options: Inputs, wanted: tuple[ModelInput, ...], check: Check) -> TestSet:
    label, how = _label(table, options)
    features = tuple(name for name in table.columns if name != label)
    if not features:
        raise unusable("test-data-shape", f"{table.path.name} has no column beside the label {label}.")
    named = {one.name: one for one in wanted}
    by_name = bool(named) and set(named) <= set(features) and (len(named) > 1 or len(features) == 1)

    def blocks(kind: str = "") -> Iterator[Block]:
        first = 0
        for columns in table.chunks():
            check()
            labels = as_text(columns[label]) if not kind else _labels(table, columns, label, first, kind)
            if by_name:
                inputs: Any = {
                    name: _values(table, columns, name, first, text=one.dtype == "string")[:, None]
                    for name, one in named.items()
                }
            else:
                values = [_values(table, columns, name, first, text=False) for name in features]
                inputs = np.stack(values, axis=1).astype(np.float32)
            first += len(labels)
            yield Block(inputs, labels)

    count = len(named) if by_name else len(features)
    columns = f"{count} column{'s' if count > 1 else ''}"
    origin = f"{table.path.name} ({columns}{' by name' if by_name else ''}, labels in {label}{how})"
    if table.path.stat().st_size > WHOLE:
        kind = _kind(table, label, check)
        return stream_tests(lambda: blocks(kind), origin, options, check)
    parts = list(blocks())
    if not parts:
        raise unusable("test-data-empty", f"{table.path.name}: there are no tests.")
    whole = joined(parts)
    labels = _values(table, {label: np.asarray(whole.labels)}, label, 0, text=True)
    return array_tests(whole.inputs, labels, origin, options)


def _kind(table: Table, label: str, check: Check) -> str:
    """What the labels of all rows are: text (``U``), where some are, else ``f``, else as they come (``-``)."""
    kinds, first = set(), 0
    for columns in table.chunks():
        check()
        values = _values(table, columns, label, first, text=True)
        kinds.add(values.dtype.kind)
        first += len(values)
    return next((kind for kind in "Uf" if kind in kinds), "-")


def _labels(table: Table, columns: Columns, label: str, first: int, kind: str) -> NDArray[Any]:
    values = _values(table, columns, label, first, text=True)
    if kind == "f":
        return values.astype(np.float64)
    return as_text(columns[label]).astype(str) if kind == "U" else values


def _label(table: Table, options: Inputs) -> tuple[str, str]:
    """The label's column, and for people how it was found."""
    if options.label:
        if options.label not in table.columns:
            raise unusable(
                "test-data-keys",
                f"{table.path.name} has no column {options.label}, which the setting label names; it has "
                f"{', '.join(table.columns[:12])}{', …' if len(table.columns) > 12 else ''}.",
            )
        return options.label, ""
    if table.header:
        lower = {name.strip().lower(): name for name in reversed(table.columns)}
        found = next((lower[name] for name in LABELS if name in lower), None)
        if found is not None:
            return found, ""
    return table.columns[-1], ", the last column"


def _values(table: Table, columns: Columns, name: str, first: int, *, text: bool) -> NDArray[Any]:
    """One column of a chunk as numbers; as text where it is and may be."""
    values = as_text(columns[name])
    if values.dtype.kind in "biuf":
        if values.dtype.kind == "f" and np.isnan(values).any():  # of pandas, which has no other word for it
            raise _missing(table, name, first + int(np.flatnonzero(np.isnan(values))[0]))
        return values
    if not is_text(values):
        raise unusable(
            "test-data-type",
            f"{table.path.name}: column {name} holds {values.dtype}; expected numbers, or text for labels.",
        )
    lower = np.char.lower(np.char.strip(values))
    missing = np.flatnonzero(np.isin(lower, tuple(MISSING)))
    if len(missing):
        raise _missing(table, name, first + int(missing[0]))
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        if text:
            return values
        wrong = next(i for i, value in enumerate(values.tolist()) if not _is_number(value))
        raise unusable(
            "test-data-type",
            f"{table.path.name}: column {name} holds “{values[wrong]}” (test {first + wrong + 1}), not a number. Leave "
            "the column out, write it in numbers, or name the label's column with the setting label (--label).",
        ) from None
    whole = text and bool((numbers == np.round(numbers)).all())
    return numbers.astype(np.int64) if whole else numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _missing(table: Table, name: str, row: int) -> EngineFailure:
    return unusable(
        "test-data-missing-value",
        f"{table.path.name}: test {row + 1} has no value in column {name}. Fill it as the training does, or leave the "
        "test out.",
    )


def _csv(path: Path) -> Table:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            sample = list(islice((line for line in file if line.strip()), 3))
    except UnicodeDecodeError as error:
        raise damaged(path, f"it is not text in UTF-8 ({error.reason} at byte {error.start})") from error
    if not sample:
        raise unusable("test-data-empty", f"{path.name}: there are no tests.")
    delimiter = max(_SUFFIXES.get(path.suffix.lower(), ",;\t"), key=sample[0].count)
    first, second = (next(csv.reader([line], delimiter=delimiter), []) for line in [*sample, ""][:2])
    header = any(not _is_number(cell) for cell in first) and (
        (all(not _is_number(cell) for cell in first) and len(set(first)) == len(first))
        or any(not _is_number(a) and _is_number(b) for a, b in zip(first, second, strict=False))
    )
    columns = (
        tuple(cell.strip() for cell in first)
        if header
        else tuple(f"column {i + 1}" for i in range(len(first)))
    )
    if len(set(columns)) < len(columns):
        raise damaged(path, "two columns have the same name")

    def chunks() -> Iterator[Columns]:
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                rows = csv.reader(file, delimiter=delimiter)
                filled = (row for row in rows if row)
                if header:
                    next(filled)
                while part := list(islice(filled, ROWS)):
                    yield _columns(path, columns, part, rows.line_num)
        except UnicodeDecodeError as error:
            raise damaged(path, f"it is not text in UTF-8 ({error.reason})") from error
        except csv.Error as error:
            raise damaged(path, error) from error

    return Table(path, columns, header, chunks)


def _columns(path: Path, names: Sequence[str], rows: list[list[str]], line: int) -> Columns:
    for at, row in enumerate(rows):
        if len(row) != len(names):
            raise damaged(path, f"line {line - len(rows) + at + 1} has {len(row)} values, not {len(names)}")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        return _parquet_by_pandas(path)
    names = tuple(parquet.ParquetFile(path).schema_arrow.names)

    def chunks() -> Iterator[Columns]:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS):
                yield {
                    name: _of_arrow(path, name, column)
                    for name, column in zip(batch.schema.names, batch.columns, strict=True)
                }

    return Table(path, names, True, chunks)


def _of_arrow(path: Path, name: str, column: Any) -> NDArray[Any]:
    if column.null_count:
        raise _missing_values(path, name, column.null_count)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _missing_values(path: Path, name: str, count: int) -> EngineFailure:
    return unusable(
        "test-data-missing-value",
        f"{path.name}: column {name} has {count} missing values. Fill them as the training does, or "
        "leave the tests out.",
    )


def _parquet_by_pandas(path: Path) -> Table:
    try:
        import pandas
    except ImportError as error:
        raise package_missing("pyarrow", path.name, "save the table as CSV") from error
    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:  # pandas is there, but none of what it reads them by
        raise package_missing("pyarrow", path.name, "save the table as CSV") from error
    names = tuple(map(str, frame.columns))

    def chunks() -> Iterator[Columns]:
        for start in range(0, len(frame), ROWS):
            part = frame.iloc[start : start + ROWS]
            for name, column in zip(names, frame.columns, strict=True):
                if missing := int(part[column].isna().sum()):
                    raise _missing_values(path, name, missing)
            yield {name: part[column].to_numpy() for name, column in zip(names, frame.columns, strict=True)}

    return Table(path, names, True, chunks)
