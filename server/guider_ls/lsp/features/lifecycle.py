"""Hello and goodbye."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from guider_ls.lsp.server import GuiderServer


def register(server: GuiderServer) -> None:
    """Register the feature."""

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.client.introduce(params)

    @server.feature(types.SHUTDOWN)
    async def shutdown(_params: None) -> None:
        await server.close()
