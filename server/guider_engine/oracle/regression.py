"""Numbers that must come close enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from guider_engine.backend import Backend

from .heads import Head
from .links import finite_or_zero, flat, linked
from .tolerance import Limits
from .verdict import Oracle, Verdict


def regression(head: Head, backend: Backend, limits: Limits, reason: str) -> Oracle:
    """Every component within its tolerance of its target; a size that differs fails every test.

    Confidence is the Euclidean norm of the error (its weight falls as it grows, see ``confidence.py``). Outputs of a
    loss with ``from_logits=True`` pass through a sigmoid first.
    """
    ops, double, units = backend.ops, backend.double, head.units
    fits = head.columns == units
    logits = bool(head.output.from_logits) and not head.bounded
    absolute = np.array(limits.absolute)

    def judge(_inputs: Any, labels: Any, outputs: Any) -> Verdict:
        o = linked(ops, "sigmoid" if logits else "identity", flat(ops, outputs, units, double))
        nan = ops.any(ops.isnan(o), axis=1)
        if not fits:
            return Verdict(ops.ones_like(nan), ops.zeros_like(o[:, 0]), o[:, 0], nan)
        y = flat(ops, labels, units, double)
        error = ops.abs(y - o)
        allowed = ops.cast(ops.convert_to_tensor(absolute), double)
        allowed = ops.maximum(limits.relative * ops.abs(y), allowed) if limits.relative else allowed
        return Verdict(
            failed=ops.logical_not(ops.all(error <= allowed, axis=1)),
            confidence=finite_or_zero(ops, ops.sqrt(ops.sum(ops.square(error), axis=1)), nan),
            predicted=o[:, 0],
            not_finite=nan,
        )

    more = ", …" if units > 1 else ""
    said = "from_logits=True: sigmoid of the outputs" if logits else ""
    return Oracle(
        task="regression",
        reason="; ".join(part for part in (reason, said, limits.words) if part),
        judge=judge,
        confidence="error",
        describe=numbers,
        answer=lambda predicted: f"{predicted:g}{more}",
        rule=("regression", logits, units, head.columns, limits.relative, limits.absolute),
        notices=(*_notices(head), *limits.notices),
    )


def numbers(label: Any) -> str:
    """Targets for people: the first four."""
    values = np.asarray(label).reshape(-1)
    return ", ".join(f"{value:g}" for value in values[:4]) + (", …" if values.size > 4 else "")


def _notices(head: Head) -> tuple[tuple[str, str], ...]:
    if head.columns != head.units:
        return (
            (
                "label-mismatch",
                f"Labels have {head.columns} columns, the model puts out {head.units}: no test can pass. The last "
                "layer should have one unit for each target.",
            ),
        )
    if len(head.labels) > 1 and bool((head.labels == head.labels[:1]).all()):
        return (
            (
                "one-class",
                f"The targets of the first {len(head.labels):,} tests are all the same: such tests do not show "
                "whether the model can tell anything apart.",
            ),
        )
    return ()
