"""The commands that lenses, editors and people call."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.errors import InputError
from guider_ls.lsp.trainings import Wish, described

if TYPE_CHECKING:
    from guider_ls.lsp.documents import Document
    from guider_ls.lsp.projects import Project
    from guider_ls.lsp.server import GuiderServer


def register(server: GuiderServer) -> None:
    """Register the commands."""

    @server.command("guider.localize")
    async def localize(*arguments: str) -> None:
        found = _program(server, arguments)
        if found is not None:
            # The run goes on in the background: some clients wait for a command with a short deadline.
            await server.runs.request(*found, "command")

    @server.command("guider.trainAndLocalize")
    async def train_and_localize(*arguments: str) -> None:
        found = _program(server, arguments)
        if found is not None:
            await server.runs.train(*found, Wish(_model(arguments), asked=True))

    @server.command("guider.chooseCapturedModel")
    async def choose(*arguments: str) -> None:
        found = _program(server, arguments)
        if found is not None:
            # In the background: the user takes their time to answer.
            server.spawn(choose_captured_model(server, *found, _model(arguments)))

    @server.command("guider.cancel")
    def cancel(*arguments: str) -> None:
        uri = _uri(arguments)
        document = server.document(uri) if uri else None
        # The editor names the active file, whichever it is that runs.
        if not (server.runs.cancel(document) or server.runs.cancel()):
            server.client.tell("GUIDER: nothing is running.")

    @server.command("guider.showReport")
    async def show_report(*arguments: str) -> None:
        document = _document(server, arguments)
        if document is None:
            return
        report = document.report
        if report is None:
            reason = (
                document.status.detail or "the program was not localized yet; run GUIDER: Localize Faults"
            )
            server.client.tell(f"GUIDER has no report: {reason}")
            return
        from guider_ls.present.text import to_text

        await _show(server, f"report-{_short(document.key)}.txt", to_text(report))

    @server.command("guider.showLog")
    async def show_engine_log(*arguments: str) -> None:
        uri = _uri(arguments)
        document = server.document(uri) if uri else None
        own = server.project_of(document) if document is not None else None
        await show_log(server, [own] if own is not None else list(server.projects.values()))


async def choose_captured_model(
    server: GuiderServer, document: Document, project: Project, name: str = ""
) -> None:
    """Have the user choose among the models of the latest capture, unless one is named, and localize in it."""
    settings = await project.configured()
    capture = await server.runs.trainings.latest(document, settings)
    program = Path(document.key).name
    if capture is None:
        server.client.tell(
            f"GUIDER: {program} was not run under watch yet. Run GUIDER: Train and Localize first."
        )
        return
    models = capture.record.models
    if not name and len(models) == 1:
        server.client.tell(f"GUIDER: {program} trained one model, {models[0].name}, and that is localized.")
        return
    if not name:
        titles = {described(model): model.name for model in models}
        params = types.ShowMessageRequestParams(
            types.MessageType.Info,
            f"GUIDER: which of the models of {program} is to be localized?",
            [types.MessageActionItem(title) for title in titles],
        )
        pressed = await server.client.suggest(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
        name = titles.get(pressed.title, "") if pressed is not None else ""
        if not name:
            return
    try:
        capture.model(name)
    except InputError as error:
        server.client.tell(f"GUIDER: {error.message}", types.MessageType.Error)
        return
    await server.runs.localize_captured(document, project, capture, name)


async def show_log(server: GuiderServer, projects: Sequence[Project]) -> None:
    """Show what the engines of some projects printed last."""
    logs = [f"{p.root}\n\n{text}" for p in projects if (text := p.engine_log())]
    if not logs:
        server.client.tell("GUIDER: no engine has been started yet, so there is no log.")
        return
    await _show(server, "engine.log", "\n\n".join(logs) + "\n")


def _uri(arguments: tuple[str, ...]) -> str | None:
    return arguments[0] if arguments and isinstance(arguments[0], str) else None


def _model(arguments: tuple[str, ...]) -> str:
    """The model that a command names; empty: none."""
    return arguments[1] if len(arguments) > 1 and isinstance(arguments[1], str) else ""


def _program(server: GuiderServer, arguments: tuple[str, ...]) -> tuple[Document, Project] | None:
    """The document that a command is about, and its project; the user is told if there is none."""
    document = _document(server, arguments)
    if document is None:
        return None
    project = server.project_of(document)
    if project is None:
        server.client.tell("GUIDER: save the program to a file first, then localize.")
        return None
    return document, project


def _document(server: GuiderServer, arguments: tuple[str, ...]) -> Document | None:
    """The document that a command is about; the user is told if there is none."""
    uri = _uri(arguments)
    document = server.document(uri)
    if document is None:
        which = f"{uri} is not an open Python file or notebook" if uri else "no Python file was named"
        server.client.tell(f"GUIDER: {which}. Open the program that builds the model, and try again.")
    return document


async def _show(server: GuiderServer, name: str, text: str) -> None:
    """Open a text in the editor, or say where it is."""
    path = server.cache / "shown" / name
    try:
        await asyncio.to_thread(_write, path, text)
    except OSError as error:
        server.client.tell(f"GUIDER: {path} cannot be written: {error}", types.MessageType.Error)
        return
    if server.client.shows_documents:
        shown = await server.client.suggest(
            types.WINDOW_SHOW_DOCUMENT, types.ShowDocumentParams(path.as_uri(), take_focus=True)
        )
        if shown is not None and shown.success:
            return
    server.client.tell(f"GUIDER: see {path}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _short(key: str) -> str:
    return f"{Path(key).stem}-{hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
