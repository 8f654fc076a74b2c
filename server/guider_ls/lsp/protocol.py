"""The protocol of pygls, but every request gets an answer."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol


class Protocol(LanguageServerProtocol):
    """Answers requests that cannot be understood with the error that pygls only logs."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Turn the JSON of one message into its type."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), (int, str)):
                self._send_response(data["id"], error=error.to_response_error())
            raise
