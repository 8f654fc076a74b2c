"""What the client can do, and talking to it: requests, messages, the status item and progress."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from guider_engine.wire import Progress
from guider_ls.lsp.documents import Status
from guider_ls.lsp.positions import Encoding, encoding_of

if TYPE_CHECKING:
    from guider_ls.lsp.server import GuiderServer

PROGRESS_DELAY = 0.5
"""Seconds that a run may take without showing progress."""


@dataclass(frozen=True, slots=True)
class Button:
    """What a message offers to do."""

    title: str
    action: Callable[[], Awaitable[None]]


class Client:
    """The editor at the other end. All methods belong to the event loop."""

    def __init__(self, server: GuiderServer) -> None:
        """Talk through ``server``, of whose client nothing is known yet."""
        self._server = server
        self._capabilities = types.ClientCapabilities()
        self._said: dict[str, set[str]] = {}
        self.trusted = True
        self.pushed_configuration: Mapping[str, Any] = {}
        """Settings from clients that send them instead of being asked."""
        self.encoding: Encoding = "utf-16"
        self.wants_status = False
        self._wants_buttons = False

    def introduce(self, params: types.InitializeParams) -> None:
        """Take over what the client says of itself."""
        self._capabilities = params.capabilities
        self.encoding = encoding_of(self._server.workspace.position_encoding)
        options = params.initialization_options
        if isinstance(options, dict):
            self.wants_status = options.get("status") is True
            self._wants_buttons = options.get("buttons") is True
            self.trusted = options.get("trusted") is not False

    # What it can do

    @property
    def gives_configuration(self) -> bool:
        """Whether it answers ``workspace/configuration``."""
        workspace = self._capabilities.workspace
        return bool(workspace and workspace.configuration)

    @property
    def refreshes_lenses(self) -> bool:
        """Whether it asks again for lenses when told to."""
        workspace = self._capabilities.workspace
        return bool(workspace and workspace.code_lens and workspace.code_lens.refresh_support)

    @property
    def watches_files(self) -> bool:
        """Whether the server may ask it to watch files."""
        workspace = self._capabilities.workspace
        watched = workspace and workspace.did_change_watched_files
        return bool(watched and watched.dynamic_registration)

    @property
    def registers_configuration(self) -> bool:
        """Whether the server has to ask for notifications of changed settings."""
        workspace = self._capabilities.workspace
        configuration = workspace and workspace.did_change_configuration
        return bool(configuration and configuration.dynamic_registration)

    @property
    def shows_progress(self) -> bool:
        """Whether the server may start a progress of its own."""
        return bool(self._capabilities.window and self._capabilities.window.work_done_progress)

    @property
    def shows_documents(self) -> bool:
        """Whether it opens a document when told to."""
        window = self._capabilities.window
        return bool(window and window.show_document and window.show_document.support)

    @property
    def relates_diagnostics(self) -> bool:
        """Whether it shows the places related to a diagnostic."""
        document = self._capabilities.text_document
        return bool(
            document and document.publish_diagnostics and document.publish_diagnostics.related_information
        )

    # Requests

    async def ask(self, method: str, params: Any) -> Any:
        """Send a request and wait for the answer. Cancelling the wait leaves the request alone.

        Raises:
            pygls.exceptions.JsonRpcException: the client answered with an error.
        """
        answer = self._server.protocol.send_request_async(method, params)
        # pygls answers a cancelled future all the same, which raises; and an error nobody waits for is no news.
        answer.add_done_callback(lambda future: future.cancelled() or future.exception())
        return await asyncio.shield(answer)

    async def suggest(self, method: str, params: Any) -> Any:
        """Send a request that the client may refuse: then the answer is ``None``, and the log says so."""
        try:
            return await self.ask(method, params)
        except JsonRpcException as error:
            self.log(f"the editor refuses {method}: {error}")
            return None

    # Messages

    def log(self, text: str, level: types.MessageType = types.MessageType.Info) -> None:
        """A line in the client's log."""
        self._server.window_log_message(types.LogMessageParams(level, text))

    def tell(self, text: str, level: types.MessageType = types.MessageType.Info) -> None:
        """A message that the user sees."""
        self._server.window_show_message(types.ShowMessageParams(level, text))

    def tell_once(
        self,
        subject: str,
        text: str,
        level: types.MessageType = types.MessageType.Error,
        button: Button | None = None,
    ) -> None:
        """A message that is shown once, until something about its subject changes.

        The button is for clients that want them: some stop the user's work for a message with one.
        """
        said = self._said.setdefault(subject, set())
        if text in said:
            return
        said.add(text)
        if button is not None and self._wants_buttons:
            self._server.spawn(self._offer(text, level, button))
        else:
            self.tell(text, level)

    async def _offer(self, text: str, level: types.MessageType, button: Button) -> None:
        params = types.ShowMessageRequestParams(level, text, [types.MessageActionItem(button.title)])
        pressed = await self.suggest(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
        if pressed is not None and pressed.title == button.title:
            await button.action()

    def forget(self, subject: str) -> None:
        """Something changed: what was said once may be said again."""
        self._said.pop(subject, None)

    def show_status(self, uri: str, status: Status) -> None:
        """Tell the status item, where the client has one, the status of a document."""
        if self.wants_status:
            body = {"state": status.state, "text": status.text, "detail": status.detail, "uri": uri}
            self._server.protocol.notify("guider/status", body)

    @asynccontextmanager
    async def progress(
        self, title: str, cancel: Callable[[], object]
    ) -> AsyncIterator[Callable[[Progress], None]]:
        """Show how far something is, if it takes long, until the end of the block; ``cancel`` is the user's wish."""
        bar = _Bar(self._server, self, title, cancel)
        showing = asyncio.ensure_future(bar.show()) if self.shows_progress else None
        try:
            yield bar.report
        finally:
            if showing is not None:
                showing.cancel()
            bar.end()


class _Bar:
    """One work-done progress: created late, ended once."""

    def __init__(
        self, server: GuiderServer, client: Client, title: str, cancel: Callable[[], object]
    ) -> None:
        self._progress = server.work_done_progress
        self._client = client
        self._title = title
        self._cancel = cancel
        self._token = str(uuid.uuid4())
        self._last: tuple[str, int | None] = ("", None)
        self._begun = False

    async def show(self) -> None:
        await asyncio.sleep(PROGRESS_DELAY)
        params = types.WorkDoneProgressCreateParams(self._token)
        try:
            await self._client.ask(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params)
        except JsonRpcException as error:
            self._client.log(f"the editor refuses a progress: {error}")
            return
        message, percentage = self._last
        begin = types.WorkDoneProgressBegin(
            self._title, cancellable=True, message=message or None, percentage=percentage or 0
        )
        self._progress.begin(self._token, begin)
        self._progress.tokens[self._token].add_done_callback(
            lambda future: self._cancel() if future.cancelled() else None
        )
        self._begun = True

    def report(self, progress: Progress) -> None:
        percentage = None if progress.fraction is None else round(100 * min(max(progress.fraction, 0), 1))
        if (now := (progress.message, percentage)) != self._last:
            self._last = now
            if self._begun:
                self._progress.report(
                    self._token, types.WorkDoneProgressReport(message=now[0], percentage=percentage)
                )

    def end(self) -> None:
        if self._begun:
            self._begun = False
            self._progress.end(self._token, types.WorkDoneProgressEnd())
            # pygls keeps the tokens of all progress that ever was.
            self._progress.tokens.pop(self._token, None)
