"""Diagnostics, pushed: the most suspicious constructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

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
    now = {part.uri: types.PublishDiagnosticsParams(part.uri, [], part.version) for part in document.parts}
    for finding in (suspicious or ()) if settings.enable else ():
        if (place := document.place(finding.span)) is not None:
            location = document.location(place, server.client.encoding)
            found = _diagnostic(server, document, finding, location.range)
            now[location.uri].diagnostics = [*now[location.uri].diagnostics, found]
    _send(server, document, now)


def clear(server: GuiderServer, document: Document) -> None:
    """Remove the diagnostics of a document that is gone."""
    _send(server, document, {})


def _send(server: GuiderServer, document: Document, now: dict[str, types.PublishDiagnosticsParams]) -> None:
    """Send what differs from what the client shows; parts that are gone have none."""
    before = document.published
    document.published = {uri: params for uri, params in now.items() if params.diagnostics}
    for uri in dict.fromkeys([*before, *document.published]):
        if before.get(uri) != document.published.get(uri):
            server.text_document_publish_diagnostics(now.get(uri) or types.PublishDiagnosticsParams(uri, []))


def _diagnostic(
    server: GuiderServer, document: Document, finding: Finding, where: types.Range
) -> types.Diagnostic:
    encoding = server.client.encoding
    related = [
        types.DiagnosticRelatedInformation(document.location(place, encoding), item.message)
        for item in finding.related
        if (place := document.place(item.span)) is not None
    ]
    result = document.result
    return types.Diagnostic(
        where,
        finding.message,
        SEVERITIES[finding.severity],
        code=CODE,
        code_description=types.CodeDescription(CODE_LINK),
        source="guider",
        related_information=related if related and server.client.relates_diagnostics else None,
        data={"layer": list(finding.layer), "generation": result.generation if result is not None else 0},
    )
