"""A child process with all that it starts: drained by threads of its own, ended as a whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

CHUNK = 1 << 16
PIPE = 1 << 20
"""Bytes that a pipe holds at most."""
PAUSE = 0.1
"""Seconds without output after which a pipe counts as empty where it cannot be looked into."""


class ProcessTree:
    """A running command in a process group of its own.

    Threads read both of its streams, so a flood, a line of many megabytes or a busy event loop never block
    it. ``exited`` becomes the exit status once the process is gone and what it left in the pipes was read. It
    does not wait for the pipes to close: a descendant that was forked may hold them open.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        on_line: Callable[[bytes], None],
        on_output: Callable[[bytes], None],
    ) -> None:
        """Start it; needs a running event loop.

        Args:
            command: the program and its arguments.
            cwd: its working directory.
            environment: all of its environment.
            on_line: gets every line of standard output, in a thread.
            on_output: gets standard error as it comes, in another thread.

        Raises:
            OSError: it cannot be started.
        """
        windows = sys.platform == "win32"
        self._popen = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=not windows,
            creationflags=_windows_flags() if windows else 0,
        )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self._input = self._popen.stdin
        self._output = self._popen.stderr
        self._reading = threading.Lock()
        self._passed_on = 0
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        readers = [
            threading.Thread(target=_read_lines, args=(self._popen.stdout, on_line), daemon=True),
            threading.Thread(target=self._read_output, args=(self._popen.stderr, on_output), daemon=True),
        ]
        for reader in readers:
            reader.start()
        threading.Thread(target=self._wait, args=(readers,), daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id, which is also that of its group on POSIX."""
        return self._popen.pid

    @property
    def running(self) -> bool:
        """Whether its end has not been noticed yet; once it was, ``exited`` follows soon."""
        return self._popen.returncode is None

    def write(self, line: bytes) -> None:
        """Write a line to its standard input; without effect if it is gone."""
        with contextlib.suppress(OSError, ValueError):
            self._input.write(line + b"\n")
            self._input.flush()

    def close_input(self) -> None:
        """Close its standard input."""
        with contextlib.suppress(OSError):
            self._input.close()

    def terminate(self) -> None:
        """Ask it and its descendants to end (on Windows there is no asking: end them)."""
        if sys.platform == "win32":
            self.kill()
        elif self._popen.returncode is None:
            self._signal_group(signal.SIGTERM)

    def kill(self) -> None:
        """End it and its descendants; without effect if it has ended."""
        if self._popen.returncode is not None:
            return
        if sys.platform == "win32":
            subprocess.Popen(
                ["taskkill", "/T", "/F", "/PID", str(self.pid)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                creationflags=subprocess.CREATE_NO_WINDOW,
            )
        else:
            self._signal_group(signal.SIGKILL)

    async def end(self, *, patience: float = 0.5) -> None:
        """End it with all its descendants: ask, then kill after ``patience`` seconds.

        Returns after a few seconds at most, even if it could not be ended.
        """
        try:
            self.close_input()
            self.terminate()
            await asyncio.wait([self.exited], timeout=patience)
        finally:
            self.kill()
        await asyncio.wait([self.exited], timeout=2.0)

    async def drained(self) -> None:
        """Wait until what it has printed so far was passed on to ``on_output``."""
        enough = self._passed_on + PIPE  # it may go on printing for ever
        if sys.platform == "win32":
            # There the thread that waits for output holds the pipe, and nobody else can look into it.
            before = -1
            while before != self._passed_on < enough:
                before = self._passed_on
                await asyncio.sleep(PAUSE)
            return
        while self._passed_on < enough and not self._is_drained():
            await asyncio.sleep(0.01)

    def _is_drained(self) -> bool:
        if not self._reading.acquire(blocking=False):
            return False
        try:
            return not _waiting(self._output, 0)
        except ValueError:  # it is closed
            return True
        finally:
            self._reading.release()

    def _read_output(self, stream: IO[bytes], on_output: Callable[[bytes], None]) -> None:
        with stream:
            data = b"-"
            while data:
                _waiting(stream, None)
                with self._reading:
                    if data := os.read(stream.fileno(), CHUNK):
                        on_output(data)
                        self._passed_on += len(data)

    def _signal_group(self, number: int) -> None:
        if sys.platform != "win32":
            # A group lives as long as any member does; where it is gone there is nobody to signal.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _wait(self, readers: list[threading.Thread]) -> None:
        status = self._popen.wait()
        if sys.platform != "win32":
            self._signal_group(signal.SIGKILL)  # what it started ends with it
        for reader in readers:
            reader.join(timeout=1.0)
        self.close_input()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._set_exited, status)

    def _set_exited(self, status: int) -> None:
        if not self.exited.done():
            self.exited.set_result(status)


def exit_reason(status: int) -> str:
    """How a process ended, for people, e.g. ``was ended by signal SIGSEGV``."""
    if status >= 0xC000_0000:  # Windows documents its own in this form
        return f"ended with exit status {status:#x}"
    number = -status if status < 0 else status - 128  # a launcher passes a signal on as a status above 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"ended with exit status {status}"
    hint = "; the memory may have run out" if name == "SIGKILL" else ""
    return f"was ended by signal {name}{hint}"


def _read_lines(stream: IO[bytes], on_line: Callable[[bytes], None]) -> None:
    with stream:
        for line in stream:
            on_line(line)


def _waiting(stream: IO[bytes], milliseconds: int | None) -> bool:
    """Whether there is something to read, or its end; waits so long for it. Windows cannot tell."""
    if sys.platform == "win32":
        return False
    poll = select.poll()  # unlike select(), for any descriptor
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(milliseconds))


def _windows_flags() -> int:
    if sys.platform == "win32":
        return (
            subprocess.CREATE_NEW_PROCESS_GROUP
            | subprocess.CREATE_NO_WINDOW
            | subprocess.BELOW_NORMAL_PRIORITY_CLASS
        )
    return 0
