"""Modules of a project: beside the program, in the folders above it up to the project's root, and in ``src``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from guider_ls.errors import InputError
from guider_ls.source.decode import decode

FILES = 100
"""Modules that are read for one program."""
LARGEST = 150_000
"""Bytes of the largest module that is read."""
TOTAL = 400_000
"""Bytes that are read for one program."""

_OTHERS = frozenset({*sys.stdlib_module_names, "keras", "tensorflow", "tf_keras", "numpy"})
_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass(slots=True)
class ProjectModules:
    """The modules that one program may import from its project; texts of open documents count before files.

    Implements `guider_ls.source.modules.Modules`.
    """

    program: Path
    root: Path
    overlays: Mapping[str, str] = field(default_factory=dict)
    """Texts of open documents, by absolute path."""
    _texts: dict[str, str | None] = field(default_factory=dict)
    _read: int = 0

    def find(self, name: str, level: int, importer: str) -> tuple[str, str] | None:
        """See `Modules.find`."""
        parts = [part for part in name.split(".") if part]
        if level:
            folder = Path(importer) if importer else self.program
            for _ in range(level):
                folder = folder.parent
            folders = [folder]
        elif parts and parts[0] not in _OTHERS:
            folders = self._folders()
        else:
            return None
        for folder in folders:
            place = folder.joinpath(*parts)
            for path in (place / "__init__.py", *([place.with_name(f"{place.name}.py")] if parts else [])):
                text = self._text(path)
                if text is not None:
                    return str(path), text
        return None

    def _folders(self) -> list[Path]:
        above = [self.program.parent, *self.program.parent.parents]
        inside = [folder for folder in above if folder == self.root or self.root in folder.parents]
        return [*inside, self.root, self.root / "src"]

    def _text(self, path: Path) -> str | None:
        """The text of a file of the project; ``None`` where there is none to read."""
        key = os.path.normpath(path)
        if key not in self._texts:
            self._texts[key] = self._fetch(Path(key))
        return self._texts[key]

    def _fetch(self, path: Path) -> str | None:
        known = sum(text is not None for text in self._texts.values())
        if path == self.program or known >= FILES or not _is_inside(path, self.root):
            return None
        text = self.overlays.get(str(path))
        try:
            if text is None and path.is_file() and path.stat().st_size <= min(LARGEST, TOTAL - self._read):
                text = decode(path.read_bytes())
        except (OSError, InputError):
            return None
        self._read += len(text or "")
        return text


def _is_inside(path: Path, root: Path) -> bool:
    """Whether a path lies in the project, whatever links lead there, and is none of its environments' packages."""
    if not path.is_relative_to(root) or _INSTALLED & set(path.parts):
        return False
    return os.path.realpath(path).startswith(os.path.realpath(root) + os.sep)
