"""What every test set is to the rest of the engine: blocks of tests, from the beginning as often as wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = NDArray[Any] | dict[str, "NDArray[Any]"] | tuple["NDArray[Any]", ...]
    """One array, or one for each input (output) of the model, by name or in order. Text is of dtype ``U``."""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive tests; the first axis of every array is the test."""

    inputs: Arrays
    labels: Arrays
    """Class numbers where the test set held names (see `TestSet.classes`)."""

    def __len__(self) -> int:
        """The number of tests."""
        return len(first_array(self.labels))


class TestSet(Protocol):
    """Tests, in an order that is always the same."""

    @property
    def description(self) -> str:
        """What was read, for people: file, names of arrays, shapes and types; the sample, where it is one."""

    @property
    def notices(self) -> tuple[tuple[str, str], ...]:
        """What the reader of a result has to know of the tests: (code, message)."""

    @property
    def total(self) -> int | None:
        """How many tests `blocks` gives; ``None``: known only at the end."""

    @property
    def available(self) -> int | None:
        """How many tests there are, where only a sample of them is given."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes by their number, where the labels were names; else empty."""

    def blocks(self, rows: int) -> Iterator[Block]:
        """All tests from the first, in blocks of ``rows`` and a shorter last one.

        Raises:
            EngineFailure: what is read on the way cannot be used.
        """


def first_array(arrays: Arrays) -> NDArray[Any]:
    """The array, or the first of several."""
    if isinstance(arrays, dict):
        return next(iter(arrays.values()))
    return arrays[0] if isinstance(arrays, tuple) else arrays


def map_arrays(function: Any, arrays: Arrays) -> Arrays:
    """The same structure with ``function`` of each array."""
    if isinstance(arrays, dict):
        return {name: function(array) for name, array in arrays.items()}
    if isinstance(arrays, tuple):
        return tuple(function(array) for array in arrays)
    return function(arrays)  # type: ignore[no-any-return]


def named_arrays(arrays: Arrays) -> list[tuple[str, NDArray[Any]]]:
    """Every array with its name: empty where there is one, its number where there are several without names."""
    if isinstance(arrays, dict):
        return list(arrays.items())
    if isinstance(arrays, tuple):
        return [(str(number), array) for number, array in enumerate(arrays)]
    return [("", arrays)]
