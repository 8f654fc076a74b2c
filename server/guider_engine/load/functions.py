"""``module:function`` of the user's project."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from guider_engine.errors import EngineFailure, unusable


def is_function(spec: str) -> bool:
    """Whether ``spec`` has the form ``package.module:function``."""
    module, _, function = spec.rpartition(":")
    return function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def call(spec: str, root: str) -> Any:
    """Import the module afresh from ``root`` and call the function without arguments.

    The project's modules are forgotten afterwards, so that the next call sees an edit on disk.

    Raises:
        EngineFailure: no such module or function, or the user's code raised.
    """
    module_name, _, function_name = spec.rpartition(":")
    sys.path.insert(0, root)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(module_name)
        function = getattr(module, function_name, None)
        if not callable(function):
            raise unusable(
                "function-missing",
                f"{spec}: the module {module_name} has no function {function_name}.",
            )
        return function()
    except EngineFailure:
        raise
    except ModuleNotFoundError as error:
        if error.name and module_name.split(".")[0] == error.name:
            raise unusable(
                "function-missing", f"{spec}: there is no module {module_name} in {root} or the environment."
            ) from error
        raise _user_code(spec, error) from error
    except Exception as error:
        raise _user_code(spec, error) from error
    finally:
        sys.path.remove(root)
        _forget(Path(root))


def _user_code(spec: str, error: Exception) -> EngineFailure:
    return EngineFailure(
        "engine",
        "user-code",
        f"{spec} raised {type(error).__name__}: {error}",
        detail="".join(traceback.format_exception(error)),
    )


def _forget(root: Path) -> None:
    root = root.resolve()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name.split(".")[0] == __name__.split(".")[0]:
            continue
        path = Path(file)
        if root in path.parents and "site-packages" not in path.parts:
            del sys.modules[name]
