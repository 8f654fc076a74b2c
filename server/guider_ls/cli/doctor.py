"""``guider-ls doctor``: each thing that a localization needs, what it is and how it was found."""

from __future__ import annotations

import argparse
import asyncio
import platform
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar

import attrs

from guider_engine.wire import Hello, ModelSummary
from guider_ls import __version__
from guider_ls.analysis.engine import Engine
from guider_ls.cli import console
from guider_ls.cli.inputs import (
    Program,
    Project,
    find_project,
    interpreter,
    latest_capture,
    read,
    with_captured_model,
)
from guider_ls.errors import GuiderError
from guider_ls.mapping.align import align
from guider_ls.present.json import SCHEMA, plain
from guider_ls.present.phrases import counted
from guider_ls.present.terminal import Style, Terminal
from guider_ls.project.captures import Capture
from guider_ls.project.interpreter import Interpreter
from guider_ls.project.targets import Target, find_target, to_inputs

T = TypeVar("T")
Status = Literal["ok", "warning", "error"]
_STYLES: dict[Status, Style] = {"ok": "green", "warning": "yellow", "error": "red"}
_ORDER = (
    "--python, the setting interpreter, VIRTUAL_ENV, .venv or venv in the folder or above it in the repository, "
    "CONDA_PREFIX, python3 and python on PATH"
)


@attrs.frozen
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    message: str
    code: str = ""
    """Of the error, else empty."""
    data: Mapping[str, Any] = attrs.field(factory=dict)
    """The same for programs."""


@attrs.define
class _Checks:
    """What was found so far, and the exit status of the worst."""

    checks: list[Check] = attrs.field(factory=list)
    status: int = 0

    def add(self, name: str, status: Status, message: str, **data: Any) -> None:
        self.checks.append(Check(name, status, message, data=data))

    def attempt(self, name: str, work: Callable[[], T]) -> T | None:
        """The result of ``work``; its failure is a check of that name."""
        try:
            return work()
        except GuiderError as error:
            self.fail(name, error)
            return None

    def fail(self, name: str, error: GuiderError) -> None:
        self.checks.append(Check(name, "error", error.message, error.code))
        self.status = max(self.status, error.exit_status)


def run(options: argparse.Namespace) -> int:
    """Look at everything and write what was found."""
    console.check_output(options.output)
    found = _Checks()
    found.add("guider-ls", "ok", f"{__version__}, Python {platform.python_version()} at {sys.executable}")
    project = found.attempt("settings", lambda: with_captured_model(find_project(options), options.model))
    if project is not None:
        _look(project, options, found)
    if options.format == "json":
        body = {"schema": SCHEMA, "ok": found.status == 0, "checks": [_plain(c) for c in found.checks]}
        written = console.dumped(body)
    else:
        written = "\n".join(_lines(found, console.terminal(options))) + "\n"
    console.write_result(written, options.output)
    return found.status


def _look(project: Project, options: argparse.Namespace, found: _Checks) -> None:
    _settings(project, found)
    program = _program(project, found)
    target = None
    if program is not None or project.program is None:
        source = program.source if program is not None else None
        capture = _capture(project, found)
        target = found.attempt(
            "model and test set",
            lambda: find_target(project.program, project.root, project.settings, source, capture),
        )
    if target is not None:
        path = str(target.model) if target.model is not None else ""
        found.add("model", "ok", _with_source(path, target.model_source), path=path)
        data = _with_source(", ".join(target.test_data), target.test_source)
        found.add("test set", "ok", data, paths=target.test_data)
    python = found.attempt("interpreter", lambda: interpreter(project, options))
    if python is not None:
        command = shlex.join(python.command)
        found.add(
            "interpreter",
            "ok",
            f"{command} ({python.source}). Looked for in this order: {_ORDER}.",
            command=python.command,
            source=python.source,
        )
        with console.progress_line() as progress:
            model = asyncio.run(_engine(python, project, target, found, progress))
        if model is not None:
            _mapping(program, model, found)


def _settings(project: Project, found: _Checks) -> None:
    file = project.root / "pyproject.toml"
    has = "has a pyproject.toml" if file.is_file() else "has no pyproject.toml"
    found.add("project", "ok", f"{project.root} ({has})", root=str(project.root))
    for problem in project.problems:
        found.add(
            "settings", "warning", f"{problem.origin}, {problem.key}: {problem.message}", key=problem.key
        )


def _capture(project: Project, found: _Checks) -> Capture | None:
    """What running the program gave the last time; it is no failing that there is nothing."""
    capture = latest_capture(project)
    if capture is not None:
        models = ", ".join(model.name for model in capture.record.models)
        state = "unchanged since" if capture.holds else f"changed since: {', '.join(capture.changed)}"
        found.add(
            "capture",
            "ok" if capture.holds else "warning",
            f"{models}, {capture.source}; {state}",
            holds=capture.holds,
            changed=capture.changed,
            models=tuple(model.name for model in capture.record.models),
            folder=str(capture.folder),
        )
    return capture


def _program(project: Project, found: _Checks) -> Program | None:
    path = project.program
    if path is None:
        found.add(
            "program", "warning", "None is named, so layers have no lines. Name it as the first argument."
        )
        return None
    program = found.attempt("program", lambda: read(path, project.root))
    for problem in program.problems if program is not None else ():
        found.add("program", "warning", problem)
    if program is not None:
        sites = len(program.source.sites)
        status: Status = "ok" if sites else "warning"
        found.add(
            "program", status, f"{path} ({counted(sites, 'layer construction')})", path=str(path), sites=sites
        )
    return program


async def _engine(
    python: Interpreter,
    project: Project,
    target: Target | None,
    found: _Checks,
    progress: console.ProgressLine,
) -> ModelSummary | None:
    """Start the engine and have it load model and tests, which needs TensorFlow."""
    progress.say("Starting the engine")
    engine = Engine(python.command, root=project.root)
    step = "engine"
    try:
        _packages(await engine.start(), found)
        if target is None:
            return None
        step = "loading"
        return await engine.probe(to_inputs(target, project.settings), progress)
    except GuiderError as error:
        found.fail(step, error)
        return None
    finally:
        await engine.close()


def _packages(hello: Hello, found: _Checks) -> None:
    found.add(
        "engine", "ok", f"Python {hello.python} at {hello.executable}", python=hello.python, pid=hello.pid
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(hello.packages.items()))
    complete = "numpy" in hello.packages and any(name.startswith("tensorflow") for name in hello.packages)
    advice = "" if complete else f". TensorFlow is needed: {hello.executable} -m pip install tensorflow"
    found.add(
        "packages",
        "ok" if complete else "warning",
        f"{versions or 'neither TensorFlow nor Keras nor NumPy'}{advice}",
        versions=hello.packages,
    )


def _mapping(program: Program | None, model: ModelSummary, found: _Checks) -> None:
    layers = counted(len(model.layers), "layer")
    if program is None:
        found.add("loading", "ok", f"the model loads and takes the tests ({model.class_name}, {layers})")
        return
    mapping = align(program.source, model)
    mapped = sum(mapping.of_layer(layer.path) is not None for layer in model.layers)
    found.add(
        "loading",
        "ok" if mapped else "warning",
        f"the model loads and takes the tests ({model.class_name}, {layers}); "
        f"{mapped} of them have a line in {program.path.name}",
        layers=len(model.layers),
        mapped=mapped,
    )


def _lines(found: _Checks, terminal: Terminal) -> Iterator[str]:
    room = max(len(check.name) for check in found.checks)
    for check in found.checks:
        code = f" [{check.code}]" if check.code else ""
        first, *rest = terminal.wrapped(f"{check.message}{code}", " " * (room + 11))
        head = f"{terminal.style(_STYLES[check.status], f'{check.status:<7}')}  {check.name:<{room}}  "
        yield head + first.lstrip()
        yield from rest
    yield ""
    yield (
        "A localization can run." if found.status == 0 else "A localization cannot run: see the errors above."
    )


def _with_source(what: str, source: str) -> str:
    return f"{what} ({source})" if what else f"returned by {source}"


def _plain(check: Check) -> dict[str, Any]:
    body = {"name": check.name, "status": check.status, "message": check.message}
    if check.code:
        body["code"] = check.code
    return {**body, **plain(check.data)}
