"""Documents as the client opens, edits, saves, closes, renames and deletes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.lsp.documents import Document, Part, path_of
from guider_ls.lsp.trainings import uses
from guider_ls.source.lines import Lines

if TYPE_CHECKING:
    from guider_ls.lsp.server import GuiderServer

DEBOUNCE = 0.15
"""Seconds without an edit before a text is read again; fewer if reading it takes fewer."""


def register(server: GuiderServer) -> None:
    """Register the feature."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        path = path_of(item.uri)
        if item.language_id != "python" and not (path and path.suffix in {".py", ".pyw"}):
            return
        document = Document(item.uri, path, (Part(item.uri, item.version, Lines(item.text)),))
        server.documents[item.uri] = document
        server.read(document)
        server.read_importers(document)
        server.spawn(opened(server, document))

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        # A notebook is no text, though some clients open its file as one, too.
        if document is None or document.part(uri) is None or not params.content_changes:
            return
        lines = Lines(params.content_changes[-1].text)
        document.change((Part(document.uri, params.text_document.version, lines),))
        server.refresh(document)
        server.read(document, DEBOUNCE)
        server.read_importers(document, DEBOUNCE)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: types.DidSaveTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None:
            await saved(server, document)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is not None and document.part(uri) is not None:
            forget(uri)

    def forget(uri: str) -> None:
        for document in list(server.documents.values()):
            if document.uri == uri or document.uri.startswith(f"{uri}/"):
                server.forget(document)
                server.read_importers(document)

    # A renamed or deleted file is closed by most clients, but not by all.
    any_file = types.FileOperationRegistrationOptions(
        [types.FileOperationFilter(types.FileOperationPattern("**/*"), scheme="file")]
    )

    @server.feature(types.WORKSPACE_DID_RENAME_FILES, any_file)
    def did_rename(params: types.RenameFilesParams) -> None:
        for file in params.files:
            forget(file.old_uri)

    @server.feature(types.WORKSPACE_DID_DELETE_FILES, any_file)
    def did_delete(params: types.DeleteFilesParams) -> None:
        for file in params.files:
            forget(file.uri)


async def saved(server: GuiderServer, document: Document) -> None:
    """Localize what the saved file may have changed."""
    project = server.project_of(document)
    if project is None:
        return
    server.read(document)
    if not server.client.watches_files:
        server.forget_roots()
        project.reconfigure()
    await server.runs.request(document, project, "save")
    # A module may be where another program has its test set from, or a part of that program.
    for other in server.documents_of(project):
        if other is not document and document.path in server.runs.reads(other):
            await server.runs.request(other, project, "files")
        elif other is not document and document.path is not None and uses(other, document.path):
            await server.runs.request(other, project, "save")


async def opened(server: GuiderServer, document: Document) -> None:
    """Show what is known of a document already, then find out more."""
    project = server.project_of(document)
    if project is None:
        await server.configure_loose()
        return
    await project.configured()
    await document.read_once.wait()
    await server.runs.restore(document, project)
    server.refresh(document)
    await server.runs.request(document, project, "open")
