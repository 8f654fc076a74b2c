"""Hover on a layer construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.present.hover import call_hover, ranked_hover, static_hover
from guider_ls.present.phrases import escaped
from guider_ls.source.sites import Location

if TYPE_CHECKING:
    from guider_ls.lsp.server import GuiderServer


def register(server: GuiderServer) -> None:
    """Register the feature."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        settings = server.settings_of(document)
        if not (settings.enable and settings.hover):
            return None
        encoding = server.client.encoding
        position = document.position(params.text_document.uri, params.position, encoding)
        if position is None:
            return None
        view, notes = document.view, _notes(document.status.detail)
        found = view.at(*position) if view is not None else None
        if view is not None and found is not None:
            text = (
                call_hover(view.report, found)
                if isinstance(found, Location)
                else ranked_hover(view.report, found)
            )
            if document.status.state == "error":
                text += f"\n\n⚠ {' '.join(notes)}"
            place = view.places.of(found.span)
        elif (site := document.site_at(*position)) is not None:
            text, place = static_hover(site, notes=notes), document.places.of(site.span)
        else:
            return None
        if place is None:
            return None
        return types.Hover(
            types.MarkupContent(types.MarkupKind.Markdown, text), document.location(place, encoding).range
        )


def _notes(detail: str) -> tuple[str, ...]:
    return tuple(escaped(paragraph) for paragraph in detail.split("\n\n") if paragraph.strip())
