"""An editor for the tests: speaks the protocol over pipes, answers the server's requests, keeps what it is told."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

DEADLINE = 90.0
"""Seconds after which a test gives up waiting for something that has to happen."""

Message = dict[str, Any]

VS_CODE: Message = {
    "workspace": {
        "configuration": True,
        "codeLens": {"refreshSupport": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "workspaceFolders": True,
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True, "versionSupport": True},
        "synchronization": {"didSave": True},
    },
    "general": {"positionEncodings": ["utf-16"]},
}


class ErrorAnswer(Exception):
    """The server answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]


class Editor:
    """The client's side of one server process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.settings: Message = {}
        self.received: list[Message] = []
        """Every notification and request of the server, in order."""
        self.silent: set[str] = set()
        """Requests of the server that are not answered."""
        self.refused: set[str] = set()
        """Requests of the server that are answered with an error."""
        self.capabilities: Message = {}
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._news = asyncio.Condition()
        self._reader = asyncio.ensure_future(self._read())
        self._errors = asyncio.ensure_future(self._drain())
        self.stderr = b""

    def engines(self) -> list[psutil.Process]:
        """The engines of the server, and what they started; a process that is ending is none."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if any("guider_engine" in part for part in child.cmdline()):
                    found.append(child)
            except psutil.NoSuchProcess:  # a zombie is one, too
                continue
        return found

    # Sending

    def send(self, message: Message) -> None:
        self.send_raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_raw(self, body: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"method": method, "params": params})

    def start(self, method: str, params: Any = None) -> tuple[int, asyncio.Future[Any]]:
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        self.send({"id": self._number, "method": method, "params": params})
        return self._number, answer

    async def request(self, method: str, params: Any = None) -> Any:
        return await asyncio.wait_for(self.start(method, params)[1], DEADLINE)

    # What an editor does

    async def initialize(
        self, root: Path | None, capabilities: Message = VS_CODE, options: Message | None = None
    ) -> Message:
        folders = [{"uri": root.as_uri(), "name": root.name}] if root is not None else None
        answer: Message = await self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": root.as_uri() if root is not None else None,
                "workspaceFolders": folders,
                "capabilities": capabilities,
                "initializationOptions": options,
            },
        )
        self.capabilities = answer["capabilities"]
        self.notify("initialized", {})
        return answer

    def open(self, path: Path | str, text: str | None = None, version: int = 1) -> str:
        uri = path if isinstance(path, str) else path.as_uri()
        if text is None:
            text = Path(path).read_bytes().decode()
        document = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def change(self, uri: str, text: str, version: int) -> None:
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
        )

    def save(self, uri: str) -> None:
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def changed_on_disk(self, *paths: Path) -> None:
        changes = [{"uri": path.as_uri(), "type": 2} for path in paths]
        self.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    async def lenses(self, uri: str) -> list[tuple[int, str]]:
        """Line and text of every lens."""
        found = await self.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        return [(lens["range"]["start"]["line"], lens["command"]["title"]) for lens in found]

    async def hover(self, uri: str, line: int, character: int) -> str | None:
        position = {"line": line, "character": character}
        found = await self.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": position})
        return None if found is None else str(found["contents"]["value"])

    async def command(self, name: str, *arguments: Any) -> Any:
        return await self.request("workspace/executeCommand", {"command": name, "arguments": list(arguments)})

    # What an editor is told

    async def wait(
        self, found: Callable[[Message], bool], what: str = "message", *, since: int = 0
    ) -> Message:
        """The first message of the server that fits, past or to come, from the ``since``-th on."""

        async def search() -> Message:
            position = since
            while True:
                while position < len(self.received):
                    message = self.received[position]
                    position += 1
                    if found(message):
                        return message
                async with self._news:
                    if position == len(self.received):
                        await self._news.wait()

        try:
            return await asyncio.wait_for(search(), DEADLINE)
        except asyncio.TimeoutError:
            recent = "\n".join(json.dumps(m)[:300] for m in self.received[-20:])
            raise AssertionError(
                f"no {what}; the last messages were\n{recent}\n{self.stderr.decode()}"
            ) from None

    async def wait_for(self, method: str, *, since: int = 0, **params: Any) -> Message:
        """Wait for a message of that method with those parameters."""
        message = await self.wait(
            lambda m: m["method"] == method and params.items() <= (m.get("params") or {}).items(),
            f"{method} {params}",
            since=since,
        )
        return dict(message.get("params") or {})

    async def wait_until(self, holds: Callable[[], Any]) -> Any:
        """Ask again and again until the answer is true; the answer."""

        async def ask() -> Any:
            while not (answer := await holds()):
                await asyncio.sleep(0.05)
            return answer

        return await asyncio.wait_for(ask(), DEADLINE)

    async def status(self, uri: str, state: str, *, since: int = 0) -> Message:
        """Wait for a state of a document."""
        return await self.wait_for("guider/status", uri=uri, state=state, since=since)

    def of(self, method: str, *, since: int = 0) -> list[Message]:
        """The parameters of all messages of that method."""
        return [m.get("params") or {} for m in self.received[since:] if m["method"] == method]

    def messages(self, *, since: int = 0) -> list[str]:
        """The texts that the user was shown."""
        return [p["message"] for p in self.of("window/showMessage", since=since)]

    @property
    def now(self) -> int:
        """A mark for ``since``."""
        return len(self.received)

    # The other side

    async def _read(self) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        while header := await stream.readline():
            name, _, value = header.decode().partition(":")
            assert name in {"Content-Length", "Content-Type"}, f"not a header: {header!r}"
            length = int(value) if name == "Content-Length" else 0
            while (header := await stream.readline()).strip():
                name, _, value = header.decode().partition(":")
                length = int(value) if name == "Content-Length" else length
            await self._receive(json.loads(await stream.readexactly(length)))
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionError(f"the server is gone: {self.stderr.decode()}"))

    async def _receive(self, message: Message) -> None:
        if "method" not in message:
            answer = self._answers.pop(message["id"], None)
            if answer is not None and not answer.done():
                if "error" in message:
                    answer.set_exception(ErrorAnswer(message["error"]))
                else:
                    answer.set_result(message["result"])
            return
        if message["method"] in self.refused:
            self.send({"id": message["id"], "error": {"code": -32601, "message": "not here"}})
        elif "id" in message and message["method"] not in self.silent:
            self.send({"id": message["id"], "result": self._answer(message)})
        async with self._news:
            self.received.append(message)
            self._news.notify_all()

    def _answer(self, message: Message) -> Any:
        if message["method"] == "workspace/configuration":
            return [self.settings for _ in message["params"]["items"]]
        if message["method"] == "window/showDocument":
            return {"success": True}
        if message["method"] == "window/showMessageRequest":
            return message["params"]["actions"][0]
        return None

    async def _drain(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(4096):
            self.stderr += data

    async def stop(self) -> int:
        """Say goodbye as an editor does; the exit status."""
        await self.request("shutdown")
        self.notify("exit")
        return await asyncio.wait_for(self.process.wait(), DEADLINE)

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await asyncio.gather(self._reader, self._errors, return_exceptions=True)
        for answer in self._answers.values():
            if answer.done() and not answer.cancelled():
                answer.exception()


@asynccontextmanager
async def editor(cache: Path, before: str = "") -> AsyncIterator[Editor]:
    """A server process, in which some code runs ``before`` it serves, with an editor in front of it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        f"{before}\nfrom guider_ls.lsp.server import run_stdio; run_stdio()",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "GUIDER_CACHE": str(cache)},
    )
    client = Editor(process)
    try:
        yield client
    finally:
        await client.end()
