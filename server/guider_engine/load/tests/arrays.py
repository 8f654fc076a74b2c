"""Tests in arrays: in memory, mapped, or slices of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.wire import Inputs

from .checks import check_arrays, notices_of, shapes_of
from .labels import as_text, numbered
from .sampling import draw
from .testset import Block, first_array, map_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .testset import Arrays


@dataclass(frozen=True, slots=True)
class ArrayTests:
    """Tests in arrays of which any part can be had; see `TestSet`."""

    inputs: Arrays
    labels: Arrays
    description: str
    notices: tuple[tuple[str, str], ...] = ()
    available: int | None = None
    classes: tuple[str, ...] = ()
    chosen: NDArray[np.int64] | None = None
    """Numbers of the tests that are given, ascending; ``None``: all."""

    @property
    def total(self) -> int:
        """How many are given."""
        return len(first_array(self.labels)) if self.chosen is None else len(self.chosen)

    def blocks(self, rows: int) -> Iterator[Block]:
        """Views, unless only some tests are given."""
        for start in range(0, self.total, rows):
            part = slice(start, start + rows) if self.chosen is None else self.chosen[start : start + rows]
            yield Block(_part(self.inputs, part), _part(self.labels, part))


def array_tests(
    inputs: Arrays,
    labels: Arrays,
    origin: str,
    options: Inputs,
    notices: tuple[tuple[str, str], ...] = (),
) -> ArrayTests:
    """Tests in arrays, checked; a sample of them, where the options say so.

    Args:
        inputs: one array, or several.
        labels: the same; names of classes become numbers.
        origin: what was read, for people.
        options: for ``max_tests`` and ``seed``.
        notices: what is known of them already.

    Raises:
        EngineFailure: they are no tests.
    """
    inputs = map_arrays(_texts, inputs)
    classes: tuple[str, ...] = ()

    def number(array: NDArray[Any]) -> NDArray[Any]:
        nonlocal classes
        found, names = numbered(array) if array.dtype.kind in "OSU" else (array, ())
        classes = names or classes
        return found

    labels = map_arrays(number, labels)
    check_arrays(inputs, labels, origin)
    described = f"{origin}: {shapes_of(inputs)} and {shapes_of(labels)}"
    if classes:
        described += f" ({len(classes)} classes: {', '.join(classes[:5])}{', …' if len(classes) > 5 else ''})"
    total, limit = len(first_array(labels)), options.max_tests
    chosen, available = None, None
    if limit is not None and limit < total:
        chosen, how = draw(first_array(labels), limit, options.seed)
        available = total
        described += f"; {limit:,} of {total:,} tests, {how}"
    return ArrayTests(inputs, labels, described, (*notices, *notices_of(inputs)), available, classes, chosen)


def _part(arrays: Arrays, part: Any) -> Arrays:
    return map_arrays(lambda array: array[part], arrays)


def _texts(array: NDArray[Any]) -> NDArray[Any]:
    return as_text(array) if array.dtype.kind in "OS" else array
