"""The client of the reading process, in which programs are parsed and aligned.

libcst's parser holds the interpreter lock, for seconds if a text is long, and some texts overflow its stack. In a
process of its own, of the server's interpreter, neither stops the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from guider_ls.analysis.process import exit_reason
from guider_ls.analysis.reading import HEADER
from guider_ls.errors import InputError

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds that work goes on for though nobody waits for its result: the trees it makes serve what comes next."""
LONGEST = 120.0
"""Seconds that work may take."""
IDLE = 300.0
"""Seconds without work after which the process is ended, for its memory."""


@dataclass(slots=True, eq=False)
class _Run:
    """One process, from its start to its end."""

    process: Process
    answer: asyncio.Future[bytes | None] | None = None
    """To what it was asked last; ``None``: it died of it."""
    proven: bool = False
    """Whether it has answered at all."""
    timer: asyncio.TimerHandle | None = None
    """When it will be ended unless something happens."""


class Reader:
    """One process that does one thing at a time; it starts when needed, and again after it died.

    All methods belong to one event loop.
    """

    def __init__(self, *, patience: float = PATIENCE, longest: float = LONGEST, idle: float = IDLE) -> None:
        """Prepare it; nothing is started."""
        self._patience = patience
        self._longest = longest
        self._idle = idle
        self._lock = asyncio.Lock()
        self._run: _Run | None = None

    @property
    def pid(self) -> int | None:
        """The process that was started last."""
        return self._run.process.pid if self._run is not None else None

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Call a function of a module in the process; arguments and result are copies.

        Raises:
            GuiderError: as the function does.
            InputError: code ``program-unreadable``; the process died of it, or it took too long.
            Defect: anything else that the function raised.
        """
        request = await asyncio.to_thread(pickle.dumps, (work, arguments), pickle.HIGHEST_PROTOCOL)
        async with self._lock:
            answer = await self._ask(request)
        result, error = await asyncio.to_thread(pickle.loads, answer)
        if error is not None:
            raise error
        value: T = result
        return value

    async def close(self) -> None:
        """End the process, busy or not."""
        run, self._run = self._run, None
        if run is not None:
            await _end(run)

    async def _ask(self, request: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        while True:
            run = await self._ready()
            answer = run.answer = asyncio.ensure_future(_exchange(run.process, request))
            try:
                await asyncio.wait([answer], timeout=self._longest)
            except asyncio.CancelledError:
                run.timer = loop.call_later(self._patience, _kill_unless, answer, run.process)
                raise
            if not answer.done():
                await _end(run)
                raise _unreadable(f"That took longer than {self._longest:g} seconds.")
            if (found := answer.result()) is not None:
                run.timer = loop.call_later(self._idle, _kill, run.process)
                run.proven = True
                return found
            # It is about to end; to signal it now would be to take its exit status from asyncio.
            await asyncio.wait([asyncio.ensure_future(run.process.wait())], timeout=2.0)
            status = await _end(run)
            if not run.proven:  # else it may have died of what it did before
                raise _unreadable(f"The process that reads programs {exit_reason(status)}.")

    async def _ready(self) -> _Run:
        """A process that has nothing to do."""
        run = self._run
        if run is not None:
            known = run.answer is None or (
                await asyncio.wait([run.answer]) and run.answer.result() is not None
            )
            if run.timer is not None:
                run.timer.cancel()
            if known and run.process.returncode is None:
                return run
            await _end(run)
        self._run = _Run(await _start())
        return self._run


async def _start() -> Process:
    # The same path as here, however it came about; -I keeps the folder of the project and what it may hold out of it.
    code = f"import sys; sys.path[:] = {sys.path!r}; from guider_ls.analysis.reading import main; main()"
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-c",
        code,
        stdin=PIPE,
        stdout=PIPE,
        limit=1 << 20,
        start_new_session=sys.platform != "win32",  # a terminal's Ctrl-C is the server's
        creationflags=_no_window(),
    )


def _no_window() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NO_WINDOW
    return 0


async def _exchange(process: Process, request: bytes) -> bytes | None:
    """The answer; ``None`` if the process died."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(len(request).to_bytes(HEADER, "big") + request)
        await process.stdin.drain()
        header = await process.stdout.readexactly(HEADER)
        return await process.stdout.readexactly(int.from_bytes(header, "big"))
    except (asyncio.IncompleteReadError, OSError):
        return None


async def _end(run: _Run) -> int:
    """End a process; its exit status."""
    if run.timer is not None:
        run.timer.cancel()
    if run.process.returncode is None:
        _kill(run.process)
    if run.answer is not None:
        await asyncio.wait([run.answer])
    return await run.process.wait()


def _kill(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def _kill_unless(done: asyncio.Future[Any], process: Process) -> None:
    if not done.done():
        _kill(process)


def _unreadable(what: str) -> InputError:
    return InputError(
        "program-unreadable",
        f"The program cannot be read. {what} Undo what was changed last, or make what is nested deeply simpler; "
        "it is read again with the next change.",
    )
