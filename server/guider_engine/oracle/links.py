"""What makes probabilities of what a model puts out."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from .heads import Head

Link = Literal["identity", "sigmoid", "softmax", "clip"]

CROSSENTROPIES = ("crossentropy", "nll", "focal", "kullback", "kl_divergence", "kldivergence")
"""Parts of the names of losses that compare probabilities."""


def link_of(head: Head, classes: int, rounded: bool) -> tuple[Link, str]:
    """The link, and what is said of it (empty: nothing).

    Outputs of a sigmoid or a softmax are probabilities, whatever the loss was told. A loss with ``from_logits=True``
    takes outputs as logits. A crossentropy without it takes them as probabilities and clips them; so are they clipped
    here, before they are rounded. Where the loss is not known, outputs beyond [0, 1] are logits.

    Args:
        head: the output.
        classes: how many outputs compete for one answer; 1: a single one says yes or no.
        rounded: whether each output is rounded to 0 or 1 (else the largest counts, which needs no clipping).
    """
    logit: Link = "sigmoid" if classes == 1 or rounded else "softmax"
    if head.outputs.dtype.kind in "biu":
        return "identity", ""
    if head.bounded:
        if head.output.from_logits:
            return (
                "identity",
                f"from_logits=True, but {head.output.activation} outputs are probabilities already",
            )
        return "identity", ""
    if head.output.from_logits:
        return logit, f"from_logits=True: {logit} of the outputs"
    guess = not head.loss or (
        head.output.from_logits is None and any(word in head.loss for word in CROSSENTROPIES)
    )
    finite = head.outputs[np.isfinite(head.outputs)]
    if guess and finite.size and (finite.min() < 0 or finite.max() > 1):
        low, high = float(finite.min()), float(finite.max())
        return logit, f"outputs from {low:.3g} to {high:.3g} are logits: {logit} of them"
    if rounded:
        clipped = bool(finite.size and (finite.min() < 0 or finite.max() > 1))
        return "clip", "outputs clipped to [0, 1], as the loss does" if clipped and head.loss else ""
    return "identity", ""


def linked(ops: Any, link: Link, outputs: Any) -> Any:
    """Probabilities; softmax is over the last axis."""
    if link == "sigmoid":
        return ops.sigmoid(outputs)
    if link == "softmax":
        return ops.softmax(outputs, axis=-1)
    if link == "clip":
        return ops.clip(outputs, 0.0, 1.0)
    return outputs


def flat(ops: Any, tensor: Any, size: int, dtype: str) -> Any:
    """(batch, size): both sides are compared as the published code does, in double precision."""
    return ops.cast(ops.reshape(tensor, (-1, size)), dtype)


def finite_or_zero(ops: Any, values: Any, nan: Any) -> Any:
    """A confidence that can be summed up."""
    usable = ops.logical_and(ops.isfinite(values), ops.logical_not(nan))
    return ops.where(usable, values, ops.zeros_like(values))
