"""The quick fix of a diagnostic: mark the construction as ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.lsp.positions import to_units
from guider_ls.present.diagnostics import SUSPICIOUS, UNUSED

if TYPE_CHECKING:
    from guider_ls.lsp.documents import Part
    from guider_ls.lsp.server import GuiderServer

COMMENT = "  # guider: ignore"


def register(server: GuiderServer) -> None:
    """Register the feature."""

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.document(params.text_document.uri)
        part = document.part(params.text_document.uri) if document is not None else None
        if part is None:
            return []
        ours = (
            d for d in params.context.diagnostics if d.source == "guider" and d.code in (SUSPICIOUS, UNUSED)
        )
        return [action for d in ours if (action := _ignore(server, part, d)) is not None]


def _ignore(server: GuiderServer, part: Part, diagnostic: types.Diagnostic) -> types.CodeAction | None:
    number = diagnostic.range.end.line
    line = part.lines.line(number)
    # No comment can follow a continued line, nor the beginning of a string of several lines.
    if line.endswith("\\") or '"""' in line or "'''" in line:
        return None
    end = types.Position(number, to_units(line, len(line), server.client.encoding))
    edit = types.WorkspaceEdit(changes={part.uri: [types.TextEdit(types.Range(end, end), COMMENT)]})
    return types.CodeAction(
        "Ignore this construction (# guider: ignore)", types.CodeActionKind.QuickFix, [diagnostic], edit=edit
    )
