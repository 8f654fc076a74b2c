"""Tests that a function of the project returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from guider_engine.errors import EngineFailure, unusable
from guider_engine.load.functions import call
from guider_engine.load.inputs import ModelInput
from guider_engine.wire import Inputs

from .arrays import array_tests
from .select import select
from .testset import TestSet

WEIGHTS = ("sample-weights", "The tests come with sample weights, which are ignored: every test counts once.")


def of_function(spec: str, options: Inputs, wanted: tuple[ModelInput, ...]) -> TestSet:
    """The tests that ``module:function`` returns.

    Raises:
        EngineFailure: it raised, or what it returned is no test set.
    """
    return of_value(spec, call(spec, options.root), options, wanted)


def of_value(spec: str, value: Any, options: Inputs, wanted: tuple[ModelInput, ...]) -> TestSet:
    """Tests from ``(inputs, labels)``, ``(inputs, labels, sample weights)``, or a dictionary of named arrays.

    Of ``(training pair, test pair)``, as Keras' ``load_data`` returns them, the second pair is taken.

    Raises:
        EngineFailure: it is something else, or arrays do not fit each other.
    """
    if isinstance(value, Mapping):
        arrays = {str(name): array_of(spec, array) for name, array in value.items()}
        chosen = select(spec, tuple(arrays), options, wanted)
        inputs, labels = chosen.pick(arrays)
        return array_tests(inputs, labels, f"{spec} ({chosen.described})", options)
    if (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(p, tuple) and len(p) == 2 for p in value)
    ):
        value = value[1]
    if not isinstance(value, (tuple, list)) or len(value) not in (2, 3):
        shape = f"{len(value)} values" if isinstance(value, (tuple, list)) else type(value).__name__
        raise unusable(
            "test-data-type", f"{spec} returned {shape}; expected a pair (inputs, labels) of arrays."
        )
    notices = (WEIGHTS,) if len(value) == 3 else ()
    return array_tests(arrays_of(spec, value[0]), arrays_of(spec, value[1]), spec, options, notices)


def arrays_of(spec: str, value: Any) -> Any:
    """One array, or several: a dictionary, a tuple, or a list of things that are arrays already."""
    if isinstance(value, Mapping):
        return {str(name): array_of(spec, one) for name, one in value.items()}
    several = isinstance(value, (tuple, list)) and value and all(getattr(one, "ndim", 0) for one in value)
    if several and len({len(one) for one in value}) == 1 and len(value) != len(value[0]):
        return tuple(array_of(spec, one) for one in value)
    return array_of(spec, value)


def array_of(spec: str, value: Any) -> np.ndarray[Any, Any]:
    """An array of what is like one.

    Raises:
        EngineFailure: it is ragged, or nothing like an array.
    """
    try:
        return np.asarray(value)
    except ValueError as error:
        raise not_an_array(spec, error) from error


def not_an_array(spec: str, error: object) -> EngineFailure:
    """Something that should be an array is none."""
    return unusable("test-data-type", f"{spec}: inputs and labels must be arrays: {error}")
