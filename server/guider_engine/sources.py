"""The source files of the project that a module consists of: its own, and those of what it imports."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

MOST = 500
"""Files that are followed."""


def sources_of(module: str, root: Path) -> tuple[Path, ...] | None:
    """The files of a module and of the modules of the project that it imports, sorted.

    Read from their text: nothing is imported. Of a module that is installed, all of its package. What is imported by a
    name that is only computed is not found.

    Args:
        module: its dotted name.
        root: the project's folder.

    Returns:
        ``None`` where there is no such module, or too much of it.
    """
    pending, found = [module], set[Path]()
    if not list(_files(module, root)):
        return _installed(module.partition(".")[0])
    while pending:
        name = pending.pop()
        for file in _files(name, root):
            if file not in found:
                found.add(file)
                package = file.relative_to(root).with_suffix("").parts[:-1]
                pending += _imported(file, package)
        if len(found) > MOST:
            return None
    return tuple(sorted(found))


def _files(module: str, root: Path) -> Iterator[Path]:
    """The module's file and those of the packages around it."""
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        place = root.joinpath(*parts[:depth])
        file = next((f for f in (place / "__init__.py", place.with_suffix(".py")) if f.is_file()), None)
        if file is not None:
            yield file


def _imported(file: Path, package: tuple[str, ...]) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):  # importing it will say what is wrong
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join((*base, *filter(None, [node.module])))
            yield from (".".join(filter(None, (name, alias.name))) for alias in node.names)


def _installed(package: str) -> tuple[Path, ...] | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or not spec.origin:
        return None
    origin = Path(spec.origin)
    files = origin.parent.rglob("*.py") if origin.name == "__init__.py" else [origin]
    return tuple(sorted(files))
