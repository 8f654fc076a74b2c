"""Labels that are names become class numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_text(array: NDArray[Any]) -> NDArray[Any]:
    """Text of dtype ``U``, if the array holds text in any form; otherwise the array as it is."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind != "O":
        return array
    values = array.ravel().tolist()
    if not values or not all(isinstance(value, (str, bytes)) for value in values):
        return array
    texts = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values]
    return np.array(texts, dtype=str).reshape(array.shape)


def is_text(array: Any) -> bool:
    """Whether it holds text."""
    return bool(array.dtype.kind == "U")


def numbered(labels: NDArray[Any], classes: tuple[str, ...] = ()) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Class numbers for names, in the order of the names; numbers stay as they are.

    Args:
        labels: of any dtype.
        classes: the names, where they are known beforehand.
    """
    labels = as_text(labels)
    if not is_text(labels):
        return labels, ()
    names = np.array(classes) if classes else np.unique(labels)
    return np.searchsorted(names, labels), tuple(names.tolist())
