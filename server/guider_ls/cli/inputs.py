"""From the options of a command to settings, program, interpreter and earlier captures."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from guider_ls.analysis.store import cache_folder
from guider_ls.errors import InputError, UsageError
from guider_ls.project import reading
from guider_ls.project.artifacts import absolute, exists
from guider_ls.project.captures import Capture, Captures
from guider_ls.project.interpreter import Interpreter, find_interpreter
from guider_ls.project.settings import Problem, Settings, from_mapping, of_project
from guider_ls.project.targets import for_program, is_function, program_of, project_root
from guider_ls.source.decode import decode
from guider_ls.source.notebook import SUFFIX, Code, code_cells, combine, in_cells
from guider_ls.source.sites import SourceMap

_OPTIONS = {
    **{
        name: name
        for name in (
            *("load", "custom_objects", "label", "image_scale", "max_tests"),
            *(
                "formula",
                "aggregation",
                "threshold",
                "neurons_per_layer",
                "neuron",
                "recurrent",
                "seed",
                "weighted",
            ),
            *("task", "tolerance", "accuracy", "quantile", "oracle"),
        )
    },
    "capture_epochs": "epochs",
    "capture_minutes": "minutes",
    "capture_legacy_keras": "legacy_keras",
    "capture_arguments": "program_arguments",
}
"""Settings by name, and the options that say them."""


@attrs.frozen
class Project:
    """The folder, and its settings with the options over them."""

    root: Path
    here: Path
    """Where the command was typed."""
    settings: Settings
    problems: tuple[Problem, ...]
    program: Path | None


@attrs.frozen
class Program:
    """A program as it was read."""

    path: Path
    text: str
    """As it is written; of a notebook the code cells below each other."""
    source: SourceMap
    problems: tuple[str, ...] = ()
    """What was passed over, for people."""


def find_project(options: argparse.Namespace) -> Project:
    """Read the settings: defaults, over them ``[tool.guider]``, over them the options.

    Raises:
        UsageError: "usage" for an option's value, "target-unknown".
        InputError: "target-ambiguous".
    """
    try:
        here = Path.cwd()
    except OSError as error:
        raise UsageError("usage", "The current folder does not exist any more; change to another.") from error
    given = absolute(options.program) if options.program else None
    root = project_root(given or here / "pyproject.toml")
    settings, problems = of_project(root)
    settings = for_program(settings, given, root, getattr(options, "target", None) or "")
    settings, wrong = from_mapping(_named(options), settings)
    if wrong:
        key = wrong[0].key
        option = f"--{_OPTIONS.get(key, key).replace('_', '-')}"
        raise UsageError("usage", f"{option}: {wrong[0].message.partition(';')[0]}.")
    return Project(root, here, settings, problems, given or program_of(settings, root))


def with_captured_model(project: Project, name: str | None) -> Project:
    """The project with ``--model`` taken as the name of a captured model, where there is one and no such file."""
    if not name or exists(absolute(name)):
        return project
    capture = latest_capture(project)
    if capture is None or not capture.holds or all(model.name != name for model in capture.record.models):
        return project
    return attrs.evolve(project, settings=attrs.evolve(project.settings, model="", capture_model=name))


def captures() -> Captures:
    """The captures of this user."""
    return Captures(cache_folder() / "captures")


def latest_capture(project: Project) -> Capture | None:
    """What was captured of the project's program the last time that it was run so."""
    if project.program is None:
        return None
    return captures().newest(project.program, project.settings.capture_arguments)


def interpreter(project: Project, options: argparse.Namespace) -> Interpreter:
    """The interpreter for the engine.

    Raises:
        EnvironmentProblem: "interpreter-missing".
    """
    if options.python:
        return find_interpreter(project.root, project.settings, named_by="option --python")
    return find_interpreter(project.root, project.settings)


def read(path: Path, root: Path) -> Program:
    """Read a program or a notebook, with the modules of its project in ``root`` that it imports.

    Raises:
        InputError: "program-missing", "program-unreadable", "program-encoding" or "program-syntax";
            "notebook-format" or "notebook-language".
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        near = (
            sorted(p.name for p in path.parent.glob(f"*{path.suffix or '.py'}"))[:5]
            if path.parent.is_dir()
            else []
        )
        beside = f" In that folder there is {', '.join(near)}." if near else ""
        raise InputError("program-missing", f"There is no program {path}.{beside}") from None
    except OSError as error:
        raise InputError(
            "program-unreadable", f"The program {path} cannot be read: {error.strerror or error}."
        ) from error
    if path.suffix == SUFFIX:
        return _notebook(path, root, code_cells(data))
    text = decode(data)
    try:
        return Program(path, text, reading.read(text, path, root))
    except InputError as error:  # it names the line alone, which is enough in an editor
        raise InputError(error.code, f"{path.name}: {error.message}", detail=error.detail) from error


def _notebook(path: Path, root: Path, codes: Sequence[Code]) -> Program:
    combined = combine(codes)
    source = in_cells(reading.read(combined.text, path, root), combined.cells)
    problems = [
        f"{path.name}, cell {code.number} is left out: it is not Python." for code in combined.left_out
    ]
    return Program(path, "\n".join(code.text for code in codes), source, tuple(problems))


def _named(options: argparse.Namespace) -> dict[str, Any]:
    """What the options say; their relative paths start where the command was typed, not at the project's root."""
    values: dict[str, Any] = {name: getattr(options, option, None) for name, option in _OPTIONS.items()}
    if options.model and getattr(options, "run", None):
        values["capture_model"] = options.model
    elif options.model:
        values["model"] = _path(options.model)
    if getattr(options, "test_data", None):
        values["test_data"] = [_path(item) for item in options.test_data]
    if options.python:
        values["interpreter"] = _command(options.python)
    return {name: value for name, value in values.items() if value is not None}


def _path(item: str) -> str:
    return item if is_function(item) and not exists(Path(item)) else str(absolute(item))


def _command(text: str) -> list[str]:
    """A path or a name on PATH as it stands; anything else is a command with arguments."""
    if exists(path := absolute(text)):
        return [str(path)]
    return [text] if shutil.which(text) else shlex.split(text, posix=os.name == "posix")
