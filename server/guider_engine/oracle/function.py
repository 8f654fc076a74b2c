"""A function of the user that judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.backend import Backend
from guider_engine.errors import EngineFailure, unusable
from guider_engine.load.functions import importable, importing, is_function, user_code
from guider_engine.load.tests.testset import Block, first_array
from guider_engine.wire import Inputs

from .regression import numbers
from .verdict import Oracle, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray


def custom(options: Inputs, backend: Backend, sample: Block, outputs: Any) -> Oracle:
    """Judge by ``module:function``.

    It is called with (inputs, labels, outputs) of a batch, arrays or structures of them as the test set and the model
    have them, whose first axis is the test; the last batch may repeat its last test. It returns which tests pass,
    bool of shape (batch,), or that and the model's confidence, numbers of shape (batch,). It is called on some tests
    here, so that a mistake is said at once.

    Raises:
        EngineFailure: there is no such function, it raised, or it returned something else.
    """
    spec = options.oracle
    function = _resolve(spec, options.root)
    with importable(options.root):
        _judged(spec, function, sample.inputs, sample.labels, outputs, len(sample))
    problem: list[EngineFailure] = []
    ops = backend.ops

    def judge(inputs: Any, labels: Any, outputs: Any) -> Verdict:
        tensors: list[Any] = []
        structure = _numbered((inputs, labels, outputs), tensors)

        def on_host(*arrays: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            try:
                x, y, found = _filled(structure, [np.asarray(array) for array in arrays])
                with importable(options.root):
                    return _judged(spec, function, x, y, found, len(arrays[0]))
            except EngineFailure as failure:
                problem[:] = [failure]
                raise

        passed, confidence = backend.host(on_host, 2, *tensors)
        failed = ops.logical_not(passed > 0.5)
        return Verdict(failed, confidence, ops.cast(failed, "float32"), ops.zeros_like(failed))

    return Oracle(
        task="custom",
        reason=f"judged by {spec}",
        judge=judge,
        confidence="certainty",
        describe=_describe,
        answer=lambda failed: "judged wrong" if failed else "judged right",
        problem=lambda: problem[0] if problem else None,
    )


def _resolve(spec: str, root: str) -> Callable[..., Any]:
    if not is_function(spec):
        raise unusable("function-missing", f"The oracle {spec!r} is not of the form module:function.")
    module_name, _, name = spec.rpartition(":")
    with importing(spec, module_name, root) as module:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
    if not callable(found):
        raise unusable("function-missing", f"{spec}: the module {module_name} has no function {name}.")
    return found  # type: ignore[no-any-return]


def _judged(
    spec: str, function: Callable[..., Any], inputs: Any, labels: Any, outputs: Any, rows: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(passed, confidence) as float32 of shape (rows,)."""
    try:
        found = function(inputs, labels, outputs)
    except Exception as error:
        raise user_code(spec, error) from error
    pair = isinstance(found, tuple)
    if pair and len(found) != 2:
        raise _wrong(spec, f"{len(found)} values", rows)
    passed, confidence = _array(found[0] if pair else found), _array(found[1]) if pair else np.ones(rows)
    if passed.dtype.kind in "iu" and np.isin(passed, (0, 1)).all():
        passed = passed.astype(bool)
    if passed.shape != (rows,) or passed.dtype.kind != "b":
        raise _wrong(spec, f"an array of shape {passed.shape} and type {passed.dtype}", rows)
    if confidence.shape != (rows,) or confidence.dtype.kind not in "biuf":
        kind = f"a confidence of shape {confidence.shape} and type {confidence.dtype}"
        raise _wrong(spec, kind, rows)
    finite = np.nan_to_num(confidence.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    return passed.astype(np.float32), finite


def _array(value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:  # of unequal lengths
        return np.asarray(None)


def _wrong(spec: str, found: str, rows: int) -> EngineFailure:
    return EngineFailure(
        "engine",
        "oracle-result",
        f"{spec} returned {found} for {rows} tests; expected which tests pass as a bool array of shape ({rows},), or a "
        "tuple of that and of the confidence, numbers of the same shape.",
    )


def _numbered(structure: Any, tensors: list[Any]) -> Any:
    """The structure with the number of each tensor in its place; the tensors are appended to the list."""
    if isinstance(structure, dict):
        return {key: _numbered(value, tensors) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        return tuple(_numbered(value, tensors) for value in structure)
    tensors.append(structure)
    return len(tensors) - 1


def _filled(structure: Any, arrays: list[Any]) -> Any:
    if isinstance(structure, dict):
        return {key: _filled(value, arrays) for key, value in structure.items()}
    if isinstance(structure, tuple):
        return tuple(_filled(value, arrays) for value in structure)
    return arrays[structure]


def _describe(labels: Any) -> str:
    if isinstance(labels, dict):
        return ", ".join(f"{name}: {numbers(label)}" for name, label in labels.items())
    if isinstance(labels, tuple):
        return "; ".join(numbers(label) for label in labels)
    return numbers(first_array(labels))
