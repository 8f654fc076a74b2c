"""Files that change on disk: models, test sets, settings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.lsp.documents import path_of
from guider_ls.lsp.features import configuration

if TYPE_CHECKING:
    from guider_ls.lsp.server import GuiderServer

PATTERNS = (
    "**/*.{keras,h5,hdf5,index,npz,npy,csv,tsv,parquet}",
    "**/*.{pb,metadata,snapshot,png,jpg,jpeg,bmp,gif}",
    "**/pyproject.toml",
)
_OF_FOLDERS = frozenset({".pb", ".metadata", ".snapshot", ".png", ".jpg", ".jpeg", ".bmp", ".gif"})
"""Suffixes of files that matter only in a folder that is read: a picture elsewhere may be a plot."""


def register(server: GuiderServer) -> None:
    """Register the feature."""

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        registrations = []
        if server.client.watches_files:
            watchers = [types.FileSystemWatcher(pattern) for pattern in PATTERNS]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            registrations.append(
                types.Registration("guider-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            )
        if server.client.registers_configuration:
            section = types.DidChangeConfigurationRegistrationOptions(section="guider")
            registrations.append(
                types.Registration("guider-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section)
            )
        if registrations:
            await server.client.suggest(
                types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(registrations)
            )

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change(params: types.DidChangeWatchedFilesParams) -> None:
        paths = [path for change in params.changes if (path := path_of(change.uri)) is not None]
        if any(path.name == "pyproject.toml" for path in paths):
            server.forget_roots()
        for root, project in list(server.projects.items()):
            below = [path for path in paths if path.is_relative_to(root)]
            if root / "pyproject.toml" in below:
                await configuration.changed(server, project)
                continue
            below = [path for path in below if path.suffix.lower() not in _OF_FOLDERS]
            for document in server.documents_of(project):
                if below or touches(paths, server.runs.reads(document)):
                    await server.runs.request(document, project, "files")


def touches(changed: Iterable[Path], read: Iterable[Path]) -> bool:
    """Whether one of the changed files is read, or is in a folder that is."""
    known = set(read)
    return any(path in known or not known.isdisjoint(path.parents) for path in changed)
