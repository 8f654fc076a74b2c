"""The client of the engine: one process of one interpreter and folder, asked one thing at a time."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from guider_engine import wire
from guider_engine.wire import CaptureRecord, Hello, Inputs, Localization, ModelSummary, Program, Progress
from guider_ls.analysis.log import Log
from guider_ls.analysis.process import ProcessTree, exit_reason
from guider_ls.errors import Cancelled, EngineError, EnvironmentProblem, GuiderError, from_failure
from guider_ls.project.interpreter import engine_environment
from guider_ls.project.output import OUTPUT, Output

ENTRY = Path(wire.__file__).with_name("__main__.py")
CRASH_LIMIT = 3
"""Crashes in a row after which no engine is started any more."""
SHOWN_LINES = 12
"""Lines of the log that a message for people carries."""

KEPT_LINES = 200
"""Lines of the log that an error's detail carries."""
SHOWN_BYTES = 8_000
"""Bytes of a foreign line on the channel that are logged."""


_Answer = wire.Localized | wire.Inspected | wire.Captured


@attrs.define
class _Request:
    number: int
    answer: asyncio.Future[_Answer | wire.Failed]
    on_progress: Callable[[Progress], None]
    log_mark: int


@attrs.define
class _Run:
    """One process of the engine, from its start to its end."""

    process: ProcessTree
    hello: asyncio.Future[Hello]
    log_mark: int
    printed: str | None = None
    """The end of its log, once it has ended."""
    output: Output | None = None
    """What is printed, if it runs a program: then it is good for nothing but the models of that."""


class Engine:
    """One engine of one interpreter and root folder; starts when needed, and again after a crash.

    All methods belong to one event loop. Requests queue; cancelling the task that awaits one cancels it within
    a few seconds, whatever it is doing: by asking, then by ending the process and all that it started.

    `start`, `localize`, `inspect`, `probe` and `capture` raise what the engine reports (any kind of `GuiderError`),
    and:

    - EnvironmentProblem ``interpreter-broken`` and ``engine-version``,
    - EngineError ``engine-crashed`` and ``engine-crash-loop``,
    - Cancelled ``engine-closed``: `close` was called meanwhile.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        root: Path,
        log: Callable[[str], None] = lambda _line: None,
        entry: Path = ENTRY,
        environ: Mapping[str, str] | None = None,
        grace: float = 2.0,
        start_timeout: float = 60.0,
        backoff: float = 1.0,
        spectra: Path | None = None,
    ) -> None:
        """Prepare an engine; nothing is started.

        Args:
            command: what runs Python, e.g. ``("/venv/bin/python",)`` or ``("uv", "run", "python")``.
            root: folder of the project; the engine's working directory.
            log: gets every line that the engine prints, on the event loop.
            entry: the script that is the engine.
            environ: the environment to start from; the server's own where it is ``None``.
            grace: seconds that a cancelled request has to stop by itself.
            start_timeout: seconds that the interpreter has to say hello.
            backoff: seconds before the start after the second crash in a row; doubled from crash to crash.
            spectra: folder in which the engine keeps hit spectra from one process to the next; ``None``: none.
        """
        self.command = tuple(command)
        self.root = root
        self.hello: Hello | None = None
        self._sink = log
        self._entry = entry
        self._environ = environ
        self._grace = grace
        self._start_timeout = start_timeout
        self._backoff = backoff
        self._cache = str(spectra) if spectra is not None else ""
        self._lock = asyncio.Lock()
        self._log = Log()
        self._run: _Run | None = None
        self._request: _Request | None = None
        self._requests = 0
        self._crashes = 0
        self._closings = 0

    async def start(self) -> Hello:
        """Start the process unless it runs; returns what it said of itself."""
        if self._run is not None and self._run.process.running and self.hello is not None:
            return self.hello
        closings = self._closings
        async with self._lock:
            await self._started(closings)
        assert self.hello is not None
        return self.hello

    async def localize(
        self, inputs: Inputs, on_progress: Callable[[Progress], None] = lambda _progress: None
    ) -> Localization:
        """Localize; ``on_progress`` is called on the event loop."""
        model = Path(inputs.model)
        answer = await self._ask(
            lambda number: wire.Localize(number, inputs, self._cache), on_progress, model=model
        )
        assert isinstance(answer, wire.Localized)
        return answer.localization

    async def inspect(
        self,
        model: str,
        *,
        safe_mode: bool = True,
        load: str = "",
        custom_objects: str = "",
        on_progress: Callable[[Progress], None] = lambda _progress: None,
    ) -> ModelSummary:
        """Load a model and return its layers; the arguments are as in `Inputs`."""
        root = str(self.root)
        answer = await self._ask(
            lambda number: wire.Inspect(number, model, root, safe_mode, load, custom_objects),
            on_progress,
            model=Path(model),
        )
        assert isinstance(answer, wire.Inspected)
        return answer.model

    async def probe(
        self, inputs: Inputs, on_progress: Callable[[Progress], None] = lambda _progress: None
    ) -> ModelSummary:
        """Load model and tests, run one test, and return the layers of the model."""
        model = Path(inputs.model)
        answer = await self._ask(lambda number: wire.Probe(number, inputs), on_progress, model=model)
        assert isinstance(answer, wire.Inspected)
        return answer.model

    async def capture(
        self,
        program: Program,
        folder: Path,
        on_progress: Callable[[Progress], None] = lambda _progress: None,
        on_output: Callable[[bytes], None] = lambda _data: None,
    ) -> CaptureRecord:
        """Run a program in a fresh process and keep what it trains; that process stays for its localizations.

        Args:
            program: what to run, and how.
            folder: gets the artefacts and, in ``output.txt``, all that the process prints as long as it lives.
            on_progress: called on the event loop.
            on_output: gets what is printed as it comes, in a thread, until the program has ended.

        Raises:
            OSError: ``output.txt`` cannot be made.
        """
        output = Output(folder / OUTPUT, on_output)
        try:
            answer = await self._ask(
                lambda number: wire.Capture(number, program, str(folder)), on_progress, output=output
            )
        except BaseException:
            output.close()
            if self._run is not None and self._run.output is output:
                await self._end(self._run)
            raise
        output.only_to_file()
        assert isinstance(answer, wire.Captured)
        return answer.record

    async def close(self) -> None:
        """End the process, busy or not; requests that wait end as cancelled.

        A later request starts a new process, also after too many crashes.
        """
        self._closings += 1
        self._crashes = 0
        run, self._run = self._run, None
        if run is not None:
            self._abandon(Cancelled("engine-closed", "The engine was stopped while the request was running."))
            await run.process.end()

    def log_tail(self, lines: int = 200) -> str:
        """The last lines that this engine and those before it printed."""
        return self._log.tail(lines)

    # One request

    async def _ask(
        self,
        message: Callable[[int], wire.Request],
        on_progress: Callable[[Progress], None],
        *,
        model: Path = Path(),
        output: Output | None = None,
    ) -> _Answer:
        """The answer to a request about a model, or to run the program whose ``output`` it is."""
        closings = self._closings
        async with self._lock:
            run = self._run
            if run is not None and (output or (run.output and not run.output.of(model.parent))):
                await self._end(run)
            run = await self._started(closings, output)
            self._requests += 1
            answered = asyncio.get_running_loop().create_future()
            request = _Request(self._requests, answered, on_progress, self._log.count)
            self._request = request
            try:
                run.process.write(wire.encode(message(request.number)))
                await asyncio.wait([request.answer])
                if output is not None:
                    await run.process.drained()
            except asyncio.CancelledError:
                await self._cancel(run, request)
                raise
            finally:
                self._request = None
            answer = request.answer.result()
        if isinstance(answer, wire.Failed):
            raise from_failure(answer.failure)
        return answer

    async def _cancel(self, run: _Run, request: _Request) -> None:
        """Have the request answered or the process ended."""
        try:
            run.process.write(wire.encode(wire.Cancel(request.number)))
            await asyncio.wait([request.answer], timeout=self._grace)
        except asyncio.CancelledError:  # again: no more patience
            if not request.answer.done():
                self._forget(run)
                run.process.kill()
            raise
        if request.answer.done():
            request.answer.exception()  # looked at: it is no longer of interest
        else:
            self._log.add("The request did not stop when asked; the engine is ended.")
            await self._end(run)

    # One process

    async def _started(self, closings: int, output: Output | None = None) -> _Run:
        """The running process, started if there is none; ``closings`` is how many there were at the request."""
        if self._run is not None and not self._run.process.running:
            await asyncio.wait([self._run.process.exited])
        if self._run is None and closings == self._closings and self._crashes > 1:
            await self._pause()
        if closings != self._closings:
            raise Cancelled("engine-closed", "The engine was stopped before it came to the request.")
        if self._run is not None:
            return self._run
        self.hello = None
        run = self._spawn(output)
        self._run = run
        try:
            events: list[asyncio.Future[Any]] = [run.hello, run.process.exited]
            await asyncio.wait(events, timeout=self._start_timeout, return_when=asyncio.FIRST_COMPLETED)
            if closings != self._closings:
                raise Cancelled("engine-closed", "The engine was stopped while it started.")
            self.hello = self._accepted(run)
            if run.process.exited.done():  # it died of what follows its hello
                raise self._crashed(run, run.process.exited.result(), since=run.log_mark)
        except BaseException:
            await self._end(run)
            raise
        return run

    async def _end(self, run: _Run) -> None:
        self._forget(run)
        await run.process.end()

    async def _pause(self) -> None:
        if self._crashes >= CRASH_LIMIT:
            raise EngineError(
                "engine-crash-loop",
                f"The engine crashed {self._crashes} times in a row and is not started again by itself. "
                "Look at its log, then restart it.",
                detail=self.log_tail(),
            )
        await asyncio.sleep(self._backoff * 2 ** (self._crashes - 2))

    def _spawn(self, output: Output | None) -> _Run:
        loop = asyncio.get_running_loop()

        def post(callback: Callable[..., None], *arguments: object) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(callback, *arguments)

        log = self._log

        def printed(data: bytes) -> None:
            log.feed(data)
            if output is not None:
                output.feed(data)

        log.wake = lambda: post(self._flush_log)
        hello: asyncio.Future[Hello] = loop.create_future()

        def read(line: bytes) -> None:
            message = _read(line)
            if message is None:
                log.add(line[:SHOWN_BYTES].decode("utf-8", "replace").rstrip())
            else:
                post(receive, message)

        def receive(message: wire.Message) -> None:  # on the loop, so after `run` was made
            self._receive(run, message)

        command = [*self.command, "-X", "utf8", "-u", str(self._entry)]
        log.add(f"Starting the engine: {shlex.join(command)}")
        mark = log.count
        environ = os.environ if self._environ is None else self._environ
        try:
            process = ProcessTree(
                command,
                cwd=self.root,
                environment=engine_environment(self.command, environ),
                on_line=read,
                on_output=printed,
            )
        except OSError as error:
            raise self._broken(f"cannot be started: {error}") from error
        run = _Run(process, hello, mark, output=output)
        process.exited.add_done_callback(lambda exited: self._ended(run, exited.result()))
        return run

    def _accepted(self, run: _Run) -> Hello:
        if run.hello.done():
            hello = run.hello.result()
            if hello.protocol != wire.PROTOCOL:
                raise EnvironmentProblem(
                    "engine-version",
                    f"The engine at {self._entry} speaks protocol {hello.protocol}, this server speaks "
                    f"protocol {wire.PROTOCOL}. They are parts of one installation: reload the editor, and if "
                    "this stays, install guider-ls again.",
                )
            return hello
        if not run.process.exited.done():
            raise self._broken(f"did not start the engine within {self._start_timeout:g} seconds", run)
        raise self._broken(f"did not start the engine: it {exit_reason(run.process.exited.result())}", run)

    def _broken(self, what: str, run: _Run | None = None) -> GuiderError:
        printed = "" if run is None else run.printed or self._log.tail(KEPT_LINES, since=run.log_mark)
        said = f"\nIt printed:\n{last_words(printed)}" if printed else ""
        return EnvironmentProblem(
            "interpreter-broken",
            f"The interpreter `{shlex.join(self.command)}` {what}.{said}\n"
            "Needed is a Python 3.10 or newer that has the project's Keras; the setting guider.interpreter "
            "names it.",
            detail=printed,
        )

    def _receive(self, run: _Run, message: wire.Message) -> None:
        request = self._request
        if isinstance(message, Hello):
            if not run.hello.done():
                run.hello.set_result(message)
        elif run is not self._run or request is None:
            return
        elif isinstance(message, Progress):
            if message.request == request.number:
                request.on_progress(message)
        elif (
            isinstance(message, (wire.Localized, wire.Inspected, wire.Captured, wire.Failed))
            and message.request == request.number
            and not request.answer.done()
        ):
            self._crashes = 0
            request.answer.set_result(message)
            if isinstance(message, wire.Failed) and message.failure.detail:
                self._log.add(message.failure.detail)

    def _ended(self, run: _Run, status: int) -> None:
        self._log.finish()
        if run.output is not None:
            run.output.close()
        run.printed = self._log.tail(KEPT_LINES, since=run.log_mark)
        if run is not self._run:
            self._log.add("The engine was stopped.")
            return
        self._run = None
        if self._request is not None:
            self._abandon(self._crashed(run, status, since=self._request.log_mark))
        self._log.add(f"The engine {exit_reason(status)}.")

    def _crashed(self, run: _Run, status: int, since: int) -> EngineError:
        self._crashes += 1
        printed = self._log.tail(KEPT_LINES, since=since)
        said = f" Its last lines:\n{last_words(printed)}" if printed else " It printed nothing."
        return EngineError(
            "engine-crashed",
            f"The engine {exit_reason(status)} during the request.{said}",
            detail=run.printed or "",
        )

    def _abandon(self, error: GuiderError) -> None:
        if self._request is not None and not self._request.answer.done():
            self._request.answer.set_exception(error)

    def _forget(self, run: _Run) -> None:
        if self._run is run:
            self._run = None

    def _flush_log(self) -> None:
        for line in self._log.take():
            self._sink(line)


def _read(line: bytes) -> wire.Message | None:
    """The message of a line; ``None`` where something else printed it."""
    try:
        return wire.decode(line)
    except ValueError as error:
        reason = str(error)
    try:
        body = json.loads(line)
    except ValueError:
        return None
    match body:
        case {"type": "Hello", "protocol": int(protocol)}:
            # The hello of another version may have another form; its number is what matters.
            return Hello(protocol, 0, "", "", {})
        case {"type": "Localized" | "Inspected" | "Captured" | "Failed", "request": int(request)}:
            text = f"The engine's answer cannot be understood: {reason}"
            return wire.Failed(request, wire.Failure("engine", "engine-internal", text))
    return None


def last_words(printed: str) -> str:
    """The lines of a log that are worth a place in a message; of a fatal error its beginning, not its stack's end."""
    lines = [line for line in printed.splitlines() if line.strip()]
    fatal = [index for index, line in enumerate(lines) if line.startswith("Fatal Python error")]
    if fatal:
        lines = lines[: fatal[-1] + SHOWN_LINES // 2]
    return "\n".join(f"  {line}" for line in lines[-SHOWN_LINES:])
