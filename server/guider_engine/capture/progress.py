"""How far a training is, and its end between two batches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from guider_engine.request import Report

from .limits import Limits
from .models import Models, Seen


def new_callback(
    keras: Any, seen: Seen, models: Models, limits: Limits, report: Report, first: int, last: int
) -> Any:
    """A Keras callback for one training, from epoch ``first`` to before ``last``."""
    process = os.getpid()

    class Watching(keras.callbacks.Callback):  # type: ignore[misc]
        # Only the beginnings of batches: hooks on their ends would have Keras wait for each step's numbers.
        _supports_tf_logs = True

        def __init__(self) -> None:
            super().__init__()
            self.epoch = first
            self.said = ""

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.epoch = epoch
            self.say(0)

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            limits.check()
            if batch > 0:  # one is done
                seen.used = True
                seen.trained = seen.trained or models.moment()
            self.say(batch)

        def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            limits.check()

        def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            seen.epochs += 1
            seen.used = True
            seen.trained = models.moment()
            self.said = describe(logs or {})
            self.epoch = epoch + 1
            if epoch + 1 == last:
                self.epoch = epoch
                self.say(None)

        def say(self, batch: int | None) -> None:
            if os.getpid() != process:
                return
            steps = (self.params or {}).get("steps")
            part = 1.0 if batch is None else batch / steps if steps else 0.0
            done = (self.epoch - first + min(part, 1.0)) / max(1, last - first)
            parts = (f"epoch {self.epoch + 1} of {last}", self.said)
            report("program", " · ".join(part for part in parts if part), min(done, 1.0))

    return Watching()


def describe(logs: Mapping[str, Any]) -> str:
    """The loss and the one other metric that tells most: ``loss 0.31 · val_accuracy 0.9``."""
    others = [name for name in logs if not name.endswith("loss") and name not in ("lr", "learning_rate")]
    validation = [name for name in others if name.startswith("val_")]
    told = [name for name in ("loss",) if name in logs]
    told += (validation or others or [name for name in ("val_loss",) if name in logs])[:1]
    return " · ".join(f"{name} {value}" for name in told if (value := _number(logs[name])))


def _number(value: Any) -> str:
    try:
        return f"{float(value):.3g}"
    except (TypeError, ValueError):
        return ""
