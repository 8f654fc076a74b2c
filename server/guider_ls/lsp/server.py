"""The language server: its state, and the wiring of its features."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
import traceback
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException, JsonRpcInternalError, PyglsError
from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async
from pygls.lsp.server import LanguageServer

from guider_ls import __version__
from guider_ls.analysis import reading
from guider_ls.analysis.fingerprint import Fingerprints
from guider_ls.analysis.reader import Reader
from guider_ls.analysis.store import Store, cache_folder
from guider_ls.errors import InputError
from guider_ls.lsp.client import Client
from guider_ls.lsp.documents import Document, Reading, Result, Status, text_of
from guider_ls.lsp.features import (
    actions,
    commands,
    configuration,
    diagnostics,
    hover,
    lenses,
    lifecycle,
    notebooks,
    synchronization,
    watching,
)
from guider_ls.lsp.projects import Project, editor_settings
from guider_ls.lsp.protocol import Protocol
from guider_ls.lsp.runs import Runs
from guider_ls.present.phrases import failures
from guider_ls.project.settings import Settings, from_mapping
from guider_ls.project.targets import project_root

if TYPE_CHECKING:
    from pygls.io_ import AsyncReader, AsyncWriter, Writer

logger = logging.getLogger(__name__)
T = TypeVar("T")


class GuiderServer(LanguageServer):
    """All state between requests. Everything happens on the event loop but reading programs and files."""

    def __init__(self, cache: Path | None = None) -> None:
        """Make a server that keeps results in ``cache``."""
        super().__init__(
            "guider-ls",
            __version__,
            types.TextDocumentSyncKind.Full,
            notebooks.SYNCHRONIZED,
            protocol_cls=Protocol,
        )
        self.cache = cache or cache_folder()
        self.client = Client(self)
        self.documents: dict[str, Document] = {}
        self.projects: dict[Path, Project] = {}
        self._roots: dict[Path, Path] = {}
        self._loose = Settings()
        self.store = Store(self.cache / "results")
        self.fingerprints = Fingerprints()
        self.runs = Runs(self)
        self.reader = Reader()
        self._readings: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._reported: set[str] = set()
        for feature in (
            lifecycle,
            configuration,
            synchronization,
            notebooks,
            watching,
            lenses,
            hover,
            actions,
            commands,
        ):
            feature.register(self)

    # Documents and projects

    def document(self, uri: str | None) -> Document | None:
        """An open document, by its URI or that of one of its cells; without a URI the only one there is."""
        if uri is None:
            return next(iter(self.documents.values())) if len(self.documents) == 1 else None
        found = self.documents.get(uri)
        return found or next((d for d in self.documents.values() if d.part(uri) is not None), None)

    def is_open(self, document: Document) -> bool:
        """Whether this is the document that its URI stands for now; work may outlive it."""
        return self.documents.get(document.uri) is document

    def project_of(self, document: Document) -> Project | None:
        """The project of a document; ``None`` where it is not a file."""
        if document.path is None:
            return None
        root = self._roots.get(document.path)
        if root is None:
            root = self._roots[document.path] = project_root(document.path)
        if root not in self.projects:
            self.projects[root] = Project(
                root, self.client, self.report_background_error, self.cache / "spectra"
            )
        return self.projects[root]

    def forget_roots(self) -> None:
        """Folders may have become the root of a project, or ceased to be."""
        self._roots.clear()

    def documents_of(self, project: Project) -> list[Document]:
        """The open documents of a project."""
        return [d for d in self.documents.values() if self.project_of(d) is project]

    def settings_of(self, document: Document) -> Settings:
        """The settings that count for a document, as far as they are known."""
        project = self.project_of(document)
        return project.settings if project is not None else self._loose

    async def configure_loose(self) -> None:
        """Read the settings of documents that are no files."""
        self._loose, _ = from_mapping(await editor_settings(self.client, None))
        for document in self.documents.values():
            if document.path is None:
                self.refresh(document)

    def forget(self, document: Document) -> None:
        """The document is gone."""
        self.documents.pop(document.uri, None)
        if (reading := self._readings.pop(document.uri, None)) is not None:
            reading.cancel()
        document.read_once.set()
        diagnostics.clear(self, document)
        self.seat_guests()

    # Reading

    def read(self, document: Document, delay: float = 0.0) -> None:
        """Read the document after ``delay`` seconds at most, instead of what was still to be read of it."""
        if (before := self._readings.pop(document.uri, None)) is not None:
            before.cancel()
        task = self._readings[document.uri] = self.spawn(self._read(document, delay))
        task.add_done_callback(lambda done: self._forget_reading(document.uri, done))

    def read_importers(self, document: Document, delay: float = 0.0) -> None:
        """Read the open documents again that have this one as a module."""
        for other in self.documents.values():
            if other is not document and document.key in other.files:
                self.read(other, delay)

    def seat_guests(self) -> None:
        """Show on every module that is open what the results of programs say of it, unless it has its own result."""
        for guest in self.documents.values():
            hosts = (host for host in self.documents.values() if host is not guest and _shows(host, guest))
            if guest.visit(next(hosts, None) if guest.report is None else None):
                self.refresh(guest)
                if guest.status.state != "running":
                    self.show_status(guest, self.status_of(guest))

    def _forget_reading(self, uri: str, task: asyncio.Task[None]) -> None:
        if self._readings.get(uri) is task:
            del self._readings[uri]

    async def until_read(self, document: Document) -> None:
        """Wait until the document is read as it is now."""
        await document.read_once.wait()
        while (reading := self._readings.get(document.uri)) is not None:
            await asyncio.wait([reading])

    async def _read(self, document: Document, delay: float) -> None:
        # What is read in no time need not wait for a pause in typing.
        await asyncio.sleep(min(delay, document.took))
        started = time.monotonic()
        try:
            while not await self._read_now(document):
                pass
        except InputError as error:
            document.problem = error.message
        except Exception as error:
            self.report_background_error(error)
        document.took = time.monotonic() - started
        document.read_once.set()
        self.refresh(document)

    async def _read_now(self, document: Document) -> bool:
        """Read the document; return whether text and result are still those that were read."""
        parts, result = document.parts, document.result
        project = self.project_of(document)
        others = {d.key: d.parts for d in self.documents.values() if d.path and d is not document}
        source, mapping = await self.reader.run(
            reading.read,
            document.program(),
            document.path,
            project.root if project else None,
            {path: text_of(text) for path, text in others.items()},
            result.localization.model if result else None,
            result.capture if result else None,
        )
        if document.parts is not parts or document.result is not result:
            return False
        modules = (d for d in self.documents.values() if d is not document and d.key in source.modules)
        if any(others.get(module.key) is not module.parts for module in modules):
            return False  # one was opened or edited meanwhile
        document.take(Reading(source, mapping, result, parts, others))
        self.seat_guests()
        return True

    async def show(self, document: Document, result: Result) -> None:
        """Show another result on a document."""
        while (known := document.reading) is not None:
            texts = {path: text_of(text) for path, text in known.others.items()}
            mapping = await self.reader.run(
                reading.align,
                known.source,
                result.localization.model,
                result.capture,
                {**texts, document.key: text_of(known.parts)},
            )
            if document.reading is known:
                document.realign(mapping, result)
                break
        self.refresh(document)
        self.show_status(document, self.status_of(document))
        self.seat_guests()
        if (known := document.reading) is not None and self.is_open(document):
            unread = document.files - known.others.keys()
            if any(d is not document and d.key in unread for d in self.documents.values()):
                self.read(document)  # only the run knows of that module

    # What the client sees

    def show_status(self, document: Document, status: Status) -> None:
        """Give a document another status and tell the client, unless the document was closed meanwhile."""
        if status.state == "no-target" and document.guest is not None:
            status = self.status_of(document)  # a module needs no model of its own
        if self.is_open(document) and document.status != status:
            document.status = status
            self.client.show_status(document.uri, status)

    def refresh(self, document: Document) -> None:
        """Bring lenses and diagnostics of a document up to date, unless it was closed meanwhile."""
        if self.is_open(document):
            diagnostics.publish(self, document)
            lenses.refresh(self, document)

    def status_of(self, document: Document) -> Status:
        """The status of a document while nothing runs for it."""
        view = document.view
        result = view.host.result if view is not None else None
        if view is None or result is None:
            return Status()
        tests = result.localization.tests
        said = (notice.message for notice in result.localization.notices)
        detail = "\n".join([failures(tests), result.origin, *said])
        if view.host is not document:
            detail = f"The result of {Path(view.host.key).name}: {detail}"
        if result.localization.outcome == "no-failure-signal":
            return Status("no-signal", "GUIDER: no failure signal", detail)
        return Status("ranked", "GUIDER: ranked", detail)

    # Background work

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something in the background; what it raises is reported."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned)
        return task

    def _spawned(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.report_background_error(error)

    def report_background_error(self, error: BaseException) -> None:
        """Log a bug, and tell it once."""
        trace = traceback.format_exception(type(error), error, error.__traceback__)
        self._report(f"{type(error).__name__}: {error}", "".join(trace))

    def _report(self, summary: str, trace: str) -> None:
        self.client.log(trace, types.MessageType.Error)
        if summary not in self._reported:
            self._reported.add(summary)
            told = f"GUIDER had an internal error ({summary}). It goes on; the log has the details."
            self.client.tell(told, types.MessageType.Error)

    def report_server_error(
        self, error: Exception, source: type[PyglsError] | type[JsonRpcException]
    ) -> None:
        """Show what goes wrong in handlers of notifications.

        The rest is only logged: a request's error is its answer, nonsense is the client's own, and that nothing
        can be sent cannot be sent.
        """
        if source in (FeatureRequestError, JsonRpcException, JsonRpcInternalError):
            logger.warning("%s", error)
        elif isinstance(error, JsonRpcInternalError) and isinstance(error.data, dict):
            # What pygls makes of an exception in a handler.
            trace = "".join(error.data.get("traceback", ()))
            self._report(error.message, f"Traceback (most recent call last):\n{trace}{error.message}")
        else:
            self.report_background_error(error)

    async def close(self) -> None:
        """End all work and all engines."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*(project.close() for project in self.projects.values()), return_exceptions=True)
        self.projects.clear()
        await self.reader.close()


def _shows(host: Document, guest: Document) -> bool:
    """Whether the result of a document says something of the file of another one."""
    return host.report is not None and guest.key in host.report.files


def run_stdio() -> None:
    """Serve one client on standard input and output, until it says exit or goes away."""
    output = sys.stdout.buffer
    # Whatever prints must not end up between the messages.
    sys.stdout = sys.stderr
    reader = StdinAsyncReader(sys.stdin.buffer, ThreadPoolExecutor(1, "stdin"))
    _run(_serve(reader, StdoutWriter(output)))


def run_tcp(host: str, port: int) -> None:
    """Serve one client that connects to ``host``:``port``, until it says exit or goes away."""
    _run(_serve_tcp(host, port))


def _run(serving: Coroutine[Any, Any, None]) -> None:
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    # At INFO, pygls writes whole messages, programs and all.
    logging.getLogger("pygls").setLevel(logging.WARNING)
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(serving)


async def _serve(reader: AsyncReader, writer: AsyncWriter | Writer) -> None:
    server = GuiderServer()
    server.protocol.set_writer(writer)
    try:
        await run_async(Event(), reader, server.protocol, logger, server.report_server_error)
    finally:
        # Also on the SystemExit of the exit notification: no engine may be left behind.
        await server.close()


async def _serve_tcp(host: str, port: int) -> None:
    done = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listening.close()
        done.set_result((reader, writer))

    listening = await asyncio.start_server(connected, host, port)
    print(f"listening on {listening.sockets[0].getsockname()[1]}", file=sys.stderr, flush=True)
    reader, writer = await done
    await _serve(reader, _StreamWriter(writer))


class _StreamWriter:
    """What pygls expects of a writer, on a stream."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        self._stream.write(data)

    def close(self) -> None:
        self._stream.close()
