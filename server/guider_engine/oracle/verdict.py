"""What an oracle says of a batch, and what it knows of itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal

from guider_engine.errors import EngineFailure
from guider_engine.wire import Task


@dataclass(frozen=True, slots=True)
class Verdict:
    """Tensors of shape (batch,)."""

    failed: Any
    """bool"""
    confidence: Any
    """float, finite: r of the weighting (see ``confidence.py``)."""
    predicted: Any
    """float: what was answered, as far as one number says it (class, first value, share of places right)."""
    not_finite: Any
    """bool: NaN in the output."""


Judge = Callable[[Any, Any, Any], Verdict]
"""(inputs, labels, outputs) of a batch, structures of tensors (batch, …) → verdict; uses the backend's ops alone."""


@dataclass(frozen=True, slots=True)
class Oracle:
    """How tests are judged."""

    task: Task
    reason: str
    """Why so, and by what rule, for people: ``loss binary_crossentropy; sigmoid of the logits, threshold 0.5``."""
    judge: Judge
    confidence: Literal["certainty", "error"]
    """Whether a large r means that the model was sure, or that it was far off; errors weigh 1 − q."""
    describe: Callable[[Any], str]
    """One test's labels for people: its class (by name where known), its target(s)."""
    answer: Callable[[float], str]
    """`Verdict.predicted` for people."""
    rule: Hashable | None = None
    """What `judge` depends on (kind, link, thresholds, shapes): two oracles of equal rules judge alike, so a step that
    was compiled with one serves the other. ``None``: unlike any other."""
    notices: tuple[tuple[str, str], ...] = ()
    """What is odd about labels and outputs: (code, message)."""
    problem: Callable[[], EngineFailure | None] = lambda: None
    """Why the user's function failed within the step, which the backend reports in words of its own."""
