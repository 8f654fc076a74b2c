"""``module:function`` of the user's project."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from guider_engine.errors import EngineFailure, first_line, unusable


def is_function(spec: str) -> bool:
    """Whether ``spec`` has the form ``package.module:function`` (``:Class.method`` is one, too)."""
    module, _, function = spec.rpartition(":")
    return all(part.isidentifier() for part in (*module.split("."), *function.split(".")))


def call(spec: str, root: str) -> Any:
    """Import the module afresh from ``root`` and call the function without arguments.

    The project's modules are forgotten afterwards, so that the next call sees an edit on disk.

    Raises:
        EngineFailure: no such module or function, one that needs arguments, or the user's code raised.
    """
    with importing(spec, spec.rpartition(":")[0], root) as module:
        return _function(spec, module)()


@contextlib.contextmanager
def importing(spec: str, name: str, root: str) -> Iterator[ModuleType]:
    """A module of the project, for as long as its code runs; ``spec`` is what messages call it.

    Raises:
        EngineFailure: there is no such module, or its code raised.
    """
    sys.path.insert(0, root)
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(name)
    except EngineFailure:
        raise
    except ModuleNotFoundError as error:
        if error.name and name.split(".")[0] == error.name:
            raise unusable(
                "function-missing", f"{spec}: there is no module {name} in {root} or the environment."
            ) from error
        raise user_code(spec, error) from error
    except Exception as error:
        raise user_code(spec, error) from error
    finally:
        with contextlib.suppress(ValueError):  # the user's code may have removed it
            sys.path.remove(root)
        forget(root)


@contextlib.contextmanager
def importable(root: str) -> Iterator[None]:
    """Code of the project that runs later than its module was imported may import other modules of it."""
    sys.path.insert(0, root)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the user's code may have removed it
            sys.path.remove(root)


def _function(spec: str, module: ModuleType) -> Callable[[], Any]:
    """What ``spec`` names, if it can be called without arguments."""
    name = spec.rpartition(":")[2]
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise unusable(
                "function-missing", f"{spec}: the module {module.__name__} has no function {name}."
            )
        found = getattr(found, part)
    is_model = hasattr(found, "layers") and not inspect.isclass(found)  # which is called with inputs
    if is_model or not callable(found):
        raise unusable(
            "function-missing",
            f"{spec} is a {type(found).__name__}, not a function. Write a function that returns it, and name that.",
        )
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise unusable(
            "function-missing",
            f"{spec} cannot be called without arguments: {error}. Write a function that takes none and calls it "
            "with them, and name that.",
        ) from error
    except ValueError:  # no signature: something built in
        pass
    return found  # type: ignore[no-any-return]


def user_code(spec: str, error: Exception) -> EngineFailure:
    """The failure that code of the project, which ``spec`` names, raised ``error``."""
    return EngineFailure(
        "engine",
        "user-code",
        f"{spec} raised {type(error).__name__}: {first_line(error)}",
        detail="".join(traceback.format_exception(type(error), error, _from_user_code(error.__traceback__))),
    )


def _from_user_code(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames that called the user's code; whole if there are no others."""
    own = (
        f"{Path(__file__).parents[1]}{os.sep}",
        importlib.__file__,
        contextlib.__file__,
        "<frozen importlib",
    )
    below = trace
    while below and below.tb_frame.f_code.co_filename.startswith(own):
        below = below.tb_next
    return below or trace


def forget(root: str) -> None:
    """Let go of the modules of the project, so that they are imported as they are then."""
    folder = Path(root).resolve()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name.split(".")[0] == __name__.split(".")[0]:
            continue
        path = Path(file)
        if folder in path.parents and "site-packages" not in path.parts:
            del sys.modules[name]
