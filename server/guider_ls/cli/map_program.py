"""``guider-ls map``."""

from __future__ import annotations

import argparse
import asyncio

from guider_engine.wire import ModelSummary
from guider_ls.analysis.engine import Engine
from guider_ls.cli import console
from guider_ls.cli.inputs import Project, find_project, interpreter, read
from guider_ls.mapping.align import align
from guider_ls.present.json import map_to_json
from guider_ls.present.map_text import map_to_text
from guider_ls.project.interpreter import Interpreter
from guider_ls.project.targets import existing_model


def run(options: argparse.Namespace) -> int:
    """Map a program, with a model if one is named."""
    console.check_output(options.output)
    project = find_project(options)
    assert project.program is not None  # the parser requires it
    program = read(project.program, project.root)
    console.print_warnings(program.problems)
    model = _inspect(project, options) if options.model or options.load else None
    mapping = align(program.source, model) if model is not None else None
    if options.format == "json":
        written = console.dumped(map_to_json(str(program.path), program.source, model, mapping))
    else:
        written = map_to_text(
            str(program.path),
            program.source,
            model,
            mapping,
            terminal=console.terminal(options, program.text),
        )
    console.write_result(written, options.output)
    return 0


def _inspect(project: Project, options: argparse.Namespace) -> ModelSummary:
    named = project.settings.model if options.model else ""
    model = existing_model(named, project.root) if named else ""
    python = interpreter(project, options)
    with console.progress_line() as progress:
        return asyncio.run(_load(python, project, model, progress))


async def _load(
    python: Interpreter, project: Project, model: str, progress: console.ProgressLine
) -> ModelSummary:
    """Have an engine read the layers of a model."""
    progress.say("Starting the engine")
    engine = Engine(python.command, root=project.root)
    try:
        return await engine.inspect(
            model,
            safe_mode=project.settings.safe_mode,
            load=project.settings.load,
            custom_objects=project.settings.custom_objects,
            on_progress=progress,
        )
    finally:
        await engine.close()
