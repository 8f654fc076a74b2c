"""A program of a project, read with the modules of the project that it imports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from guider_ls.project.modules import ProjectModules
from guider_ls.source.read import read_program
from guider_ls.source.sites import SourceMap

_NOTHING: Mapping[str, str] = {}


def read(
    text: str, path: Path | None, root: Path | None, overlays: Mapping[str, str] = _NOTHING
) -> SourceMap:
    """Read a program.

    Args:
        text: of the program.
        path: where it is, absolute; ``None``: nowhere, so it has no modules beside it.
        root: folder of its project.
        overlays: texts of open documents, by absolute path; they count before the files.

    Raises:
        InputError: code ``program-syntax``.
    """
    if path is None or root is None:
        return read_program(text)
    return read_program(text, ProjectModules(path, root, overlays))
