"""When work runs: one piece at a time, the newest of each kind waits, older ones are dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

Work = Callable[[int], Coroutine[Any, Any, None]]
"""What to run; it is given its generation."""


class Scheduler:
    """The runs of one project. Use it from one event loop.

    Work has a key (the program it is for). At most one piece of work runs; for each key at most one waits, the
    newest. Generations count all submissions, so that a result can tell whether it is still the newest.
    """

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        """Start with nothing to do; ``on_error`` is told of what work raises, except of its cancellation."""
        self._on_error = on_error
        self._waiting: dict[str, tuple[int, Work]] = {}
        self._newest: dict[str, int] = {}
        self._generation = 0
        self._task: asyncio.Task[None] | None = None
        self._running: str | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @property
    def running(self) -> str | None:
        """The key of the work that runs."""
        return self._running

    def submit(self, key: str, work: Work) -> int:
        """Run ``work`` as soon as nothing else runs, and return its generation."""
        self._generation += 1
        if not self._closed:
            self._newest[key] = self._generation
            self._waiting.pop(key, None)
            self._waiting[key] = (self._generation, work)
            self._idle.clear()
            self._next()
        return self._generation

    def is_newest(self, key: str, generation: int) -> bool:
        """Whether nothing was submitted under this key since then."""
        return self._newest.get(key) == generation

    def cancel(self, key: str | None = None) -> bool:
        """Cancel what runs and waits (of one key); return whether there was anything."""
        keys = [k for k in self._waiting if key in (None, k)]
        for k in keys:
            del self._waiting[k]
        stopped = self._task is not None and key in (None, self._running)
        if self._task is not None and stopped:
            self._task.cancel()
        return stopped or bool(keys)

    async def idle(self) -> None:
        """Wait until nothing runs and nothing waits."""
        await self._idle.wait()

    async def close(self) -> None:
        """Cancel everything, wait for it to end, and take no more work."""
        self._closed = True
        self.cancel()
        await self.idle()

    def _next(self) -> None:
        if self._task is not None:
            return
        if not self._waiting:
            self._idle.set()
            return
        key = next(iter(self._waiting))
        generation, work = self._waiting.pop(key)
        self._running = key
        self._task = asyncio.ensure_future(work(generation))
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = self._running = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)
        self._next()
