"""Diagnostics, pushed: the most suspicious constructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.lsp.positions import to_range
from guider_ls.present.diagnostics import CODE, CODE_LINK, Finding, findings

if TYPE_CHECKING:
    from guider_ls.lsp.documents import Document
    from guider_ls.lsp.server import GuiderServer

SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


def publish(server: GuiderServer, document: Document) -> None:
    """Send the diagnostics of a document as of now, if they are others than before."""
    settings = server.settings_of(document)
    suspicious = document.derived(("findings", settings), lambda report: findings(report, settings))
    found = [
        diagnostic
        for finding in ((suspicious or ()) if settings.enable else ())
        if (diagnostic := _diagnostic(server, document, finding)) is not None
    ]
    _send(server, document, types.PublishDiagnosticsParams(document.uri, found, document.version))


def clear(server: GuiderServer, document: Document) -> None:
    """Remove the diagnostics of a document that is gone."""
    _send(server, document, types.PublishDiagnosticsParams(document.uri, []))


def _send(server: GuiderServer, document: Document, params: types.PublishDiagnosticsParams) -> None:
    shown = params if params.diagnostics else None
    if document.published != shown:
        document.published = shown
        server.text_document_publish_diagnostics(params)


def _diagnostic(server: GuiderServer, document: Document, finding: Finding) -> types.Diagnostic | None:
    place = document.place(finding.span)
    if place is None:
        return None
    encoding = server.client.encoding
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(document.uri, to_range(document.lines, where, encoding)), item.message
        )
        for item in finding.related
        if (where := document.place(item.span)) is not None
    ]
    result = document.result
    return types.Diagnostic(
        to_range(document.lines, place, encoding),
        finding.message,
        SEVERITIES[finding.severity],
        code=CODE,
        code_description=types.CodeDescription(CODE_LINK),
        source="guider",
        related_information=related if related and server.client.relates_diagnostics else None,
        data={"layer": list(finding.layer), "generation": result.generation if result is not None else 0},
    )
