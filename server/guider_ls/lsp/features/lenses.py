"""Code lenses on every layer construction, from what is known at the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.lsp.trainings import TRAINING
from guider_ls.present.lenses import LensText, ranked_lenses, static_lenses, training_lens
from guider_ls.project.targets import PROGRAMS

if TYPE_CHECKING:
    from guider_ls.lsp.documents import Document, Places, State
    from guider_ls.lsp.server import GuiderServer
    from guider_ls.source.sites import SourceMap

OFFERS: dict[State, str] = {
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
    source, view, status = document.source, document.view, document.status
    if not (settings.enable and settings.code_lens):
        return {}
    lenses: list[tuple[LensText, Places, Document]] = []
    running = f"{status.text.partition(',')[0]} …" if status.state == "running" else ""
    if source is not None and (training := _training(server, document, source, running)) is not None:
        lenses.append((training, document.places, document))
    if view is not None:
        texts = document.derived("lenses", lambda view: ranked_lenses(view.report, view.file)) or ()
        lenses += [(lens, view.places, view.host) for lens in texts]
    elif source is not None:
        offer = running or OFFERS.get(status.state, "GUIDER: localize")
        lenses += [(lens, document.places, document) for lens in static_lenses(source, offer)]
    found: dict[str, list[types.CodeLens]] = {}
    for lens, places, of in lenses:
        place = places.of(lens.span)
        if place is not None and not document.is_ignored(place):
            command = types.Command(lens.text, lens.action, arguments=[of.uri])
            location = document.location(place, server.client.encoding)
            found.setdefault(location.uri, []).append(types.CodeLens(location.range, command))
    return found


def _training(server: GuiderServer, document: Document, source: SourceMap, running: str) -> LensText | None:
    """The lens that offers to run the program, for what may be one and may be run."""
    if (
        document.path is None
        or document.path.suffix not in PROGRAMS
        or not server.client.trusted
        or document.status.state == "untrusted"
    ):
        return None
    if not source.training and document.guest is not None:
        return None  # a module of a program
    if running.startswith(TRAINING):
        return training_lens(source, f"{running} (cancel)", "guider.cancel")
    return training_lens(source, "GUIDER: train and localize")


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
