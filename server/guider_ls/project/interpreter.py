"""Which Python runs the engine, and in what environment: one order of search, never silently another one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from guider_ls.errors import EnvironmentProblem
from guider_ls.project.settings import Settings

_PYTHONS = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")
"""Where an environment keeps its interpreter: virtual on POSIX and Windows, conda on Windows."""

_OF_THE_SERVER = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONIOENCODING",
    "PYTHONEXECUTABLE",
    "__PYVENV_LAUNCHER__",
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "CONDA_PROMPT_MODIFIER",
)
"""Variables that describe the Python of whoever started the server."""


@attrs.frozen
class Interpreter:
    """The command that runs Python, and for people where it was found."""

    command: tuple[str, ...]
    source: str


def find_interpreter(
    root: Path,
    settings: Settings,
    *,
    editor_choice: tuple[str, ...] = (),
    environ: Mapping[str, str] = os.environ,
    named_by: str = "setting guider.interpreter",
) -> Interpreter:
    """The project's interpreter; nothing is run.

    In order: the setting; the editor's choice; ``VIRTUAL_ENV``; ``.venv`` or ``venv`` in the folder or a
    parent within its repository; ``CONDA_PREFIX``; ``python3`` or ``python`` on PATH. What was named by a
    person is used or reported, never replaced.

    Raises:
        EnvironmentProblem: ``interpreter-missing``, with everything that was tried.
    """
    for named, source in (
        (settings.interpreter, named_by),
        (editor_choice, "the environment chosen in the editor"),
    ):
        if named and named[0]:
            command = _command(named, root, environ)
            if command is None:
                raise _missing([f"{source}: {' '.join(named)}"], "Correct or empty it.")
            return Interpreter(command, source)
    tried = []
    for place, source in _environments(root, environ):
        if python := _python_of(place):
            return Interpreter((str(python),), source)
        tried.append(f"{source}: {place}")
    for name in ("python3", "python"):
        if path := shutil.which(name, path=environ.get("PATH", "")):
            return Interpreter((path,), f"{name} on PATH")
        tried.append(f"{name} on PATH")
    raise _missing(tried, "Create an environment in .venv, or name one in the setting guider.interpreter.")


def engine_environment(command: tuple[str, ...], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables an engine of that command runs with, made from those of the server.

    What describes the server's own Python is left out; the environment of the interpreter (virtual or conda)
    is activated. TensorFlow sees no GPU and says little unless ``environ`` wants it otherwise.
    """
    result = {name: value for name, value in environ.items() if name.upper() not in _OF_THE_SERVER}
    result.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    result.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    python = Path(command[0])
    if not python.is_absolute() or not python.name.lower().startswith("python"):
        return result  # a launcher (`uv run python`) activates what it chooses
    prefix = python.parent.parent if python.parent.name in ("bin", "Scripts") else python.parent
    folders = [prefix / "bin"]
    if (prefix / "conda-meta").is_dir():
        result |= {"CONDA_PREFIX": str(prefix), "CONDA_DEFAULT_ENV": prefix.name}
        if sys.platform == "win32":
            library = prefix / "Library"
            folders = [
                prefix,
                library / "mingw-w64/bin",
                library / "usr/bin",
                library / "bin",
                prefix / "Scripts",
            ]
    elif (prefix / "pyvenv.cfg").is_file():
        result |= {"VIRTUAL_ENV": str(prefix)}
        if sys.platform == "win32":
            folders = [prefix / "Scripts"]
    else:
        return result
    path = [str(folder) for folder in folders] + [entry for entry in [environ.get("PATH", "")] if entry]
    return result | {"PATH": os.pathsep.join(path)}


def _environments(root: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if active := environ.get("VIRTUAL_ENV"):
        yield Path(active), "VIRTUAL_ENV"
    for folder in _within_repository(root):
        for name in (".venv", "venv"):
            yield folder / name, f"{name} in {'the folder' if folder == root else folder}"
    if active := environ.get("CONDA_PREFIX"):
        yield Path(active), "CONDA_PREFIX"


def _within_repository(root: Path) -> list[Path]:
    """The folder and its parents up to the top of its repository; the folder alone if it is in none."""
    folders = [root, *root.parents]
    for index, folder in enumerate(folders):
        if (folder / ".git").exists():
            return folders[: index + 1]
    return [root]


def _command(named: tuple[str, ...], root: Path, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """The command with its variables and its program resolved; ``None`` if there is no such program."""
    first, *rest = (part.replace("${workspaceFolder}", str(root)) for part in named)
    path = root / _expand_home(first, environ)
    program: str | None
    if os.path.isdir(path):  # noqa: PTH112
        python = _python_of(path)
        program = str(python) if python else None
    elif _is_program(path):
        program = str(path)
    elif "/" in first or os.sep in first:
        program = None
    else:
        program = shutil.which(first, path=environ.get("PATH", ""))
    return (program, *rest) if program else None


def _expand_home(path: str, environ: Mapping[str, str]) -> str:
    if path == "~" or path.startswith(("~/", "~\\")):
        home = environ.get("HOME") or environ.get("USERPROFILE") or str(Path.home())
        return home + path[1:]
    return path


def _python_of(environment: Path) -> Path | None:
    return next((python for name in _PYTHONS if _is_program(python := environment / name)), None)


def _is_program(path: Path) -> bool:
    # Unlike pathlib's, these answer for what may not be looked at, too.
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


def _missing(tried: list[str], advice: str) -> EnvironmentProblem:
    places = "\n".join(f"  {place}" for place in tried)
    return EnvironmentProblem(
        "interpreter-missing",
        f"No Python was found for the project. There is no interpreter at:\n{places}\n{advice}",
    )
