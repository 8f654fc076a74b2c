"""Acting right after the program imports a package, without importing it first.

Programs choose their Keras, its backend and their devices by environment variables before they import it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

AfterImport = Callable[[ModuleType], None]


class ImportHook:
    """Calls a function with a module when it has been executed; for modules imported already, at once."""

    def __init__(self, after: Mapping[str, AfterImport]) -> None:
        """``after`` says for the names of modules what to call."""
        self._after = after
        self._searching: set[str] = set()

    def __enter__(self) -> ImportHook:
        """Watch imports from now on."""
        for name, after in self._after.items():
            if name in sys.modules:
                after(sys.modules[name])
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        """Watch no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """What the other finders find, with a loader that calls back."""
        if name not in self._after or name in self._searching:
            return None
        self._searching.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _CallingBack(spec.loader, self._after[name])
        return spec


class _CallingBack(Loader):
    def __init__(self, loader: Loader, after: AfterImport) -> None:
        self._loader = loader
        self._after = after

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._after(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
