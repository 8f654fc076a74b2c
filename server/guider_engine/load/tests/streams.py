"""Tests that come one batch after the other: datasets, generators, ``Sequence``, files that are read piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.errors import unusable
from guider_engine.request import Check
from guider_engine.wire import Inputs

from .checks import check_arrays, notices_of, shapes_of
from .labels import as_text, is_text, numbered
from .testset import Block, map_arrays, named_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .testset import Arrays

ENDLESS = 100_000
"""Tests that are taken of a source that may never end."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of a stream only at its end."""

    total: int | None
    """``None``: it goes on."""
    classes: tuple[str, ...]
    shapes: dict[str, tuple[int, ...]]
    """Of the longest test, for the inputs in which shapes differ."""


@dataclass(frozen=True, slots=True)
class StreamTests:
    """Tests that are read from the beginning each time; see `TestSet`."""

    open: Callable[[], Iterator[Block]]
    """Blocks of any size, anew each time."""
    origin: str
    description: str
    total: int | None
    limit: int | None
    """Tests that are taken, from the first."""
    notices: tuple[tuple[str, str], ...] = ()
    available: int | None = None
    classes: tuple[str, ...] = ()
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """That inputs (see `named_arrays`) are padded to with zeros; those that are not in it have one shape."""

    def blocks(self, rows: int) -> Iterator[Block]:
        """Blocks of that size, made of what comes."""
        waiting: list[Block] = []
        count = given = 0
        for block in self.prepared(self.open()):
            waiting.append(block)
            count += len(block)
            if count < rows:
                continue
            whole = joined(waiting)
            end = count - count % rows
            for start in range(0, end, rows):
                given += rows
                yield _slice(whole, start, start + rows)
            waiting, count = ([_slice(whole, end, count)] if end < count else []), count - end
        if waiting:
            given += count
            yield joined(waiting)
        if not given:
            raise unusable("test-data-empty", f"{self.origin}: there are no tests.")

    def prepared(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """The blocks with class numbers for names, all of one shape, no more than the limit."""
        left = self.limit
        first: Block | None = None
        for block in blocks:
            if not len(block):
                continue
            if left is not None:
                block = _slice(block, 0, left)
                left -= len(block)
            inputs = _padded(block.inputs, self.shapes)
            labels = map_arrays(lambda array: numbered(array, self.classes)[0], block.labels)
            block = Block(inputs, labels)
            check_arrays(inputs, labels, self.origin)
            first = first or block
            self._check_same(first, block)
            yield block
            if left == 0:
                return

    def _check_same(self, first: Block, block: Block) -> None:
        for part, other_part in ((first.inputs, block.inputs), (first.labels, block.labels)):
            shapes, others = ({n: a.shape[1:] for n, a in named_arrays(p)} for p in (part, other_part))
            if shapes.keys() != others.keys():
                raise unusable(
                    "test-data-shape",
                    f"{self.origin}: tests are made of {len(shapes)} arrays ({shapes_of(part)}), and of {len(others)} "
                    f"({shapes_of(other_part)}). Give the same ones for every test.",
                )
            for one, other in ((shapes[name], others[name]) for name in shapes):
                if one == other:
                    continue
                raise unusable(
                    "test-data-shape",
                    f"{self.origin}: tests have different shapes, {one} and {other}. Pad them to "
                    "one length (keras.utils.pad_sequences).",
                )


def stream_tests(
    open_: Callable[[], Iterator[Block]],
    origin: str,
    options: Inputs,
    check: Check,
    *,
    total: int | None = None,
    endless: bool | None = False,
    varying: bool = False,
    notices: tuple[tuple[str, str], ...] = (),
) -> StreamTests:
    """Tests of a stream.

    Args:
        open_: gives blocks of any size, from the first test on each time.
        origin: what is read, for people.
        options: for ``max_tests``.
        check: called while it is looked through; may raise to stop.
        total: how many tests there are, where known.
        endless: whether it never ends; ``None``: it may.
        varying: whether tests may have different shapes, and are padded.
        notices: what is known of it already.

    Raises:
        EngineFailure: there are no tests, or what comes are none.
    """
    limit = options.max_tests
    if endless is not False and limit is None:
        limit = ENDLESS
    if endless and options.max_tests is None:
        notices += (
            (
                "endless-tests",
                f"{origin} never ends: its first {ENDLESS:,} tests are run. Set max_tests for "
                "another number.",
            ),
        )
    tests = StreamTests(open_, origin, origin, total, limit, notices)
    first = next((block for block in open_() if len(block)), None)
    if first is None:
        raise unusable("test-data-empty", f"{origin}: there are no tests.")
    names = any(is_text(as_text(array)) for _, array in named_arrays(first.labels))
    if names or varying:
        # A class has its number by all names, also those of tests that are not run.
        most = limit if not names else None if endless is False else max(ENDLESS, limit or 0)
        found = _survey(open_, most, check)
        tests = replace(tests, classes=found.classes, shapes=found.shapes, total=found.total or total)
    if limit is not None and (tests.total is None or limit < tests.total):
        tests = replace(tests, available=tests.total, total=None if tests.total is None else limit)
    head = next(tests.prepared([first]))
    count = f"{tests.total:,} tests" if tests.total is not None else "tests"
    each = Block(_one(head.inputs), _one(head.labels))
    described = f"{origin}: {count}, each {shapes_of(each.inputs)} and {shapes_of(each.labels) or 'a number'}"
    if tests.classes:
        described += f" ({len(tests.classes)} classes: {', '.join(tests.classes[:5])})"
    if limit is not None and (tests.total is None or tests.available is not None):
        of = f" of {tests.available:,}" if tests.available is not None else ", if there are so many"
        described += f"; the first {limit:,}{of}"
    return replace(tests, description=described, notices=(*notices, *notices_of(head.inputs)))


def _survey(open_: Callable[[], Iterator[Block]], limit: int | None, check: Check) -> Survey:
    names: set[str] = set()
    shapes: dict[str, set[tuple[int, ...]]] = {}
    total, ended = 0, True
    for block in open_():
        check()
        total += len(block)
        for name, array in named_arrays(block.inputs):
            shapes.setdefault(name, set()).add(array.shape[1:])
        for _, array in named_arrays(block.labels):
            text = as_text(array)
            names |= set(text.ravel().tolist()) if is_text(text) else set()
        if limit is not None and total >= limit:
            ended = False
            break
    longest = {
        name: tuple(max(axis) for axis in zip(*found, strict=True))
        for name, found in shapes.items()
        if len(found) > 1 and len({len(shape) for shape in found}) == 1
    }
    return Survey(total if ended else None, tuple(sorted(names)), longest)


def _one(arrays: Arrays) -> Arrays:
    return map_arrays(lambda array: array[0] if array.ndim > 1 else array[:1], arrays)


def _slice(block: Block, start: int, end: int) -> Block:
    return Block(*(map_arrays(lambda array: array[start:end], part) for part in (block.inputs, block.labels)))


def joined(blocks: list[Block]) -> Block:
    """One block of several, at least one."""
    if len(blocks) == 1:
        return blocks[0]
    return Block(_concatenated([b.inputs for b in blocks]), _concatenated([b.labels for b in blocks]))


def _concatenated(parts: list[Arrays]) -> Arrays:
    first = parts[0]
    if isinstance(first, dict):
        return {name: np.concatenate([part[name] for part in parts]) for name in first}  # type: ignore[call-overload]
    if isinstance(first, tuple):
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))
    return np.concatenate(parts)  # type: ignore[arg-type]


def _padded(inputs: Arrays, shapes: dict[str, tuple[int, ...]]) -> Arrays:
    def pad(name: str, array: NDArray[Any]) -> NDArray[Any]:
        shape = shapes.get(name, array.shape[1:])
        missing = [(0, want - have) for want, have in zip(shape, array.shape[1:], strict=True)]
        return np.pad(array, [(0, 0), *missing]) if any(after for _, after in missing) else array

    padded = [pad(name, array) for name, array in named_arrays(inputs)]
    if isinstance(inputs, dict):
        return dict(zip(inputs, padded, strict=True))
    return tuple(padded) if isinstance(inputs, tuple) else padded[0]
