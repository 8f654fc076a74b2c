"""What a request carries through the engine: its progress, its cancellation, its timings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .wire import Stage

Report = Callable[[Stage, str, float | None], None]
"""Told what is being done: stage, message for people, fraction done where known."""
Check = Callable[[], None]
"""Raises `CancelRequested` when the request was cancelled."""


class Timer:
    """Seconds spent in each stage."""

    def __init__(self) -> None:
        """No stage yet."""
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add the time of the block to ``stage``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
