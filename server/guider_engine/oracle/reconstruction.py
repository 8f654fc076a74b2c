"""Autoencoders: a test passes when its reconstruction is as good as that of most tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.backend import Backend
from guider_engine.errors import unusable

from .heads import Head
from .links import finite_or_zero, flat, linked
from .regression import numbers
from .verdict import Oracle, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    PerTest = Callable[[Callable[[Any, Any, Any], Any]], NDArray[np.float64]]


def autoencoder(
    head: Head,
    backend: Backend,
    quantile: float,
    per_test: PerTest,
    pick: tuple[Callable[[Any], Any], Callable[[Any], Any]],
    reason: str,
) -> Oracle:
    """Mean squared difference from the target, at most the ``quantile`` quantile over all tests.

    The target is the label where it has the size of the output, else the input. Confidence is the error itself: its
    weight falls as it grows.

    Args:
        head: the output.
        backend: that judges.
        quantile: share of the tests that pass.
        per_test: runs all tests, see `guider_engine.oracle.choose_oracle`.
        pick: take labels and output of this head out of their structures.
        reason: why it is judged so.

    Raises:
        EngineFailure: neither labels nor inputs have the size of the output.
    """
    ops, double, units = backend.ops, backend.double, head.units
    from_labels = head.columns == units
    if not from_labels and not any(math.prod(leaf.shape[1:]) == units for leaf in leaves_of(head.inputs)):
        raise unusable(
            "task-shape",
            f"The task is autoencoder, but the output {head.name} of one test has the shape {head.shape}, and neither "
            "the labels nor the inputs have as many numbers. Set another task.",
        )
    logits = bool(head.output.from_logits) and not head.bounded

    def measure(inputs: Any, labels: Any, outputs: Any) -> Any:
        target = labels if from_labels else _of_size(inputs, units)
        o = linked(ops, "sigmoid" if logits else "identity", flat(ops, outputs, units, double))
        return ops.mean(ops.square(o - flat(ops, target, units, double)), axis=1)

    errors = per_test(lambda inputs, labels, outputs: measure(inputs, pick[0](labels), pick[1](outputs)))
    limit = limit_of(errors, quantile)

    def judge(inputs: Any, labels: Any, outputs: Any) -> Verdict:
        error = measure(inputs, labels, outputs)
        nan = ops.isnan(error)
        return Verdict(
            failed=ops.logical_not(error <= limit),
            confidence=finite_or_zero(ops, error, nan),
            predicted=error,
            not_finite=nan,
        )

    what = "the labels" if from_labels else "the inputs"
    said = "from_logits=True: sigmoid of the outputs" if logits else ""
    rule = f"mean squared difference from {what} at most {limit:.3g}, the {quantile:g} quantile"
    return Oracle(
        task="autoencoder",
        reason="; ".join(part for part in (reason, said, rule) if part),
        judge=judge,
        confidence="error",
        describe=lambda label: numbers(label) if from_labels else f"its input (label {numbers(label)})",
        answer=lambda error: f"mean squared difference {error:.3g}",
        rule=("autoencoder", logits, units, from_labels, limit),
    )


def limit_of(errors: NDArray[np.float64], quantile: float) -> float:
    """Between the largest error that passes and the next: another batch size changes errors in the last digits.

    Args:
        errors: of all tests, shape (tests,); those that are not finite fail.
        quantile: share of the tests that pass.
    """
    known = np.sort(errors[np.isfinite(errors)])
    if not known.size:
        return 0.0
    passing = max(1, min(len(known), math.ceil(quantile * len(known) - 1e-9)))
    last = float(known[passing - 1])
    later = known[known > last * (1 + 1e-5) + 1e-12]
    return (last + float(later[0])) / 2 if later.size else last * (1 + 1e-4) + 1e-12


def leaves_of(structure: Any) -> Iterator[Any]:
    """Every array or tensor of a structure."""
    if isinstance(structure, (list, tuple, dict)):
        for part in structure.values() if isinstance(structure, dict) else structure:
            yield from leaves_of(part)
    else:
        yield structure


def _of_size(inputs: Any, units: int) -> Any:
    return next(
        leaf
        for leaf in leaves_of(inputs)
        if None not in leaf.shape[1:] and math.prod(leaf.shape[1:]) == units
    )
