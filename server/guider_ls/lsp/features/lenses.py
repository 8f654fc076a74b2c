"""Code lenses on every layer construction, from what is known at the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.present.lenses import ranked_lenses, static_lenses

if TYPE_CHECKING:
    from guider_ls.lsp.documents import Document, State
    from guider_ls.lsp.server import GuiderServer

OFFERS: dict[State, str] = {
    "running": "GUIDER: localizing …",
    "no-target": "GUIDER: no model or test set found",
    "error": "GUIDER: localization failed",
    "untrusted": "GUIDER: the folder is not trusted",
}
"""What stands above the first construction of a program without a ranking, by the status of its document."""


def register(server: GuiderServer) -> None:
    """Register the feature."""

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        document = server.document(uri)
        if document is None:
            return []
        await document.read_once.wait()
        document.lenses[uri] = lenses_of(server, document).get(uri, [])
        return document.lenses[uri]


def lenses_of(server: GuiderServer, document: Document) -> dict[str, list[types.CodeLens]]:
    """The lenses of a document as of now, for each of its parts that has any."""
    settings = server.settings_of(document)
    if document.source is None or not (settings.enable and settings.code_lens):
        return {}
    texts = document.derived("lenses", ranked_lenses)
    if texts is None:
        texts = static_lenses(document.source, OFFERS.get(document.status.state, "GUIDER: localize"))
    found: dict[str, list[types.CodeLens]] = {}
    for lens in texts:
        place = document.place(lens.span)
        if place is not None:
            command = types.Command(lens.text, lens.action, arguments=[document.uri])
            location = document.location(place, server.client.encoding)
            found.setdefault(location.uri, []).append(types.CodeLens(location.range, command))
    return found


def refresh(server: GuiderServer, document: Document) -> None:
    """Make the client ask again, if it would get another answer."""
    if not document.lenses or not server.client.refreshes_lenses:
        return
    found = lenses_of(server, document)
    now = {uri: found.get(uri, []) for uri in document.lenses}
    if now != document.lenses:
        document.lenses = now
        server.spawn(_ask(server))


async def _ask(server: GuiderServer) -> None:
    await server.client.suggest(types.WORKSPACE_CODE_LENS_REFRESH, None)
