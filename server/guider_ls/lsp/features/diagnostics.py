"""Diagnostics, pushed: the most suspicious constructions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.errors import InputError
from guider_ls.lsp.positions import to_range
from guider_ls.present.diagnostics import Finding, findings
from guider_ls.source.decode import decode
from guider_ls.source.lines import Lines

if TYPE_CHECKING:
    from guider_ls.lsp.documents import Document, View
    from guider_ls.lsp.server import GuiderServer
    from guider_ls.source.sites import Location

SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


def publish(server: GuiderServer, document: Document) -> None:
    """Send the diagnostics of a document as of now, if they are others than before."""
    settings = server.settings_of(document)
    view = document.view
    found = document.derived(("findings", settings), lambda view: findings(view.report, settings, view.file))
    now = {part.uri: types.PublishDiagnosticsParams(part.uri, [], part.version) for part in document.parts}
    for finding in (found or ()) if settings.enable else ():
        place = view.places.of(finding.span) if view is not None else None
        if view is not None and place is not None and not document.is_ignored(place):
            location = document.location(place, server.client.encoding)
            diagnostic = _diagnostic(server, view, finding, location.range)
            now[location.uri].diagnostics = [*now[location.uri].diagnostics, diagnostic]
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


def _diagnostic(server: GuiderServer, view: View, finding: Finding, where: types.Range) -> types.Diagnostic:
    related = [
        types.DiagnosticRelatedInformation(place, item.message)
        for item in (finding.related if server.client.relates_diagnostics else ())
        if (place := _located(server, view, item.location)) is not None
    ]
    result = view.host.result
    return types.Diagnostic(
        where,
        finding.message,
        SEVERITIES[finding.severity],
        code=finding.code,
        code_description=types.CodeDescription(finding.link),
        source="guider",
        related_information=related or None,
        data={"layer": list(finding.layer), "generation": result.generation if result is not None else 0},
    )


def _located(server: GuiderServer, view: View, location: Location) -> types.Location | None:
    """A place of a report, in whichever file, in the client's terms."""
    encoding = server.client.encoding
    open_one = next((d for d in server.documents.values() if d.key == location.file), None)
    document = open_one if location.file else view.host
    if document is not None:
        shown = document.view
        known = shown is not None and shown.report is view.report
        place = shown.places.of(location.span) if shown is not None and known else location.span
        return document.location(place, encoding) if place is not None else None
    path = Path(location.file)
    # Of the host: it is kept as long as its report, since every edit asks again.
    lines = view.host.derived(("lines", path), lambda _: _on_disk(path))
    if lines is None or not lines.fits(location.span):
        return None
    return types.Location(path.as_uri(), to_range(lines, location.span, encoding))


def _on_disk(path: Path) -> Lines | None:
    try:
        return Lines(decode(path.read_bytes()))
    except (OSError, InputError):
        return None
