"""The protocol of pygls, but every request gets an answer."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol


class Protocol(LanguageServerProtocol):
    """Answers requests that cannot be understood with the error that pygls only logs."""

    # The text of a document is kept once, by our own handlers. What pygls would keep of notebooks goes wrong with
    # edits of a part of a cell, and fails on changes that do not fit.
    lsp_notebook_document__did_open = None  # type: ignore[assignment]
    lsp_notebook_document__did_change = None  # type: ignore[assignment]
    lsp_notebook_document__did_close = None  # type: ignore[assignment]

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Turn the JSON of one message into its type."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), (int, str)):
                self._send_response(data["id"], error=error.to_response_error())
            raise
