"""Settings that change while the server runs, and folders that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.lsp.documents import path_of

if TYPE_CHECKING:
    from guider_ls.lsp.projects import Project
    from guider_ls.lsp.server import GuiderServer


def register(server: GuiderServer) -> None:
    """Register the feature."""

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change(params: types.DidChangeConfigurationParams) -> None:
        section = params.settings.get("guider") if isinstance(params.settings, dict) else None
        if isinstance(section, dict):
            server.client.pushed_configuration = section
        for project in list(server.projects.values()):
            await changed(server, project)
        await server.configure_loose()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            path = path_of(folder.uri)
            for root, project in list(server.projects.items()):
                if path is not None and root.is_relative_to(path):
                    for document in server.documents_of(project):
                        document.realign(None, None)
                        server.refresh(document)
                        server.show_status(document, server.status_of(document))
                    server.seat_guests()
                    server.runs.drop(project)
                    server.projects.pop(root, None)
                    await project.close()


async def changed(server: GuiderServer, project: Project) -> None:
    """Apply the settings of a project anew."""
    project.reconfigure()
    settings = await project.configured()
    if settings.enable:
        await project.close_other_engine()
    else:
        server.runs.drop(project)
        await project.close_engine()
    for document in server.documents_of(project):
        server.refresh(document)
        if settings.enable:
            await server.runs.request(document, project, "files")
