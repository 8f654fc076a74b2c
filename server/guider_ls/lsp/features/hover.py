"""Hover on a layer construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.present.hover import ranked_hover, static_hover
from guider_ls.present.phrases import escaped

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
        site = document.site_at(*position) if position is not None else None
        if site is None or (place := document.place(site.span)) is None:
            return None
        report = document.report
        if report is not None:
            text = ranked_hover(report, site)
            if document.status.state == "error":
                text += f"\n\n⚠ {' '.join(_notes(document.status.detail))}"
        else:
            text = static_hover(site, notes=_notes(document.status.detail))
        return types.Hover(
            types.MarkupContent(types.MarkupKind.Markdown, text),
            document.location(place, encoding).range,
        )


def _notes(detail: str) -> tuple[str, ...]:
    return tuple(escaped(paragraph) for paragraph in detail.split("\n\n") if paragraph.strip())
