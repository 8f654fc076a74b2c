"""``guider-ls localize``."""

from __future__ import annotations

import argparse
import asyncio
import time

from guider_engine.wire import Localization, ModelSummary
from guider_ls.analysis.engine import Engine
from guider_ls.cli import console
from guider_ls.cli.inputs import Program, find_project, interpreter, read
from guider_ls.mapping.align import align
from guider_ls.mapping.mapping import Mapping, UnmatchedLayer
from guider_ls.present.json import to_json
from guider_ls.present.report import Report
from guider_ls.present.sarif import to_sarif
from guider_ls.present.text import to_text
from guider_ls.project.interpreter import Interpreter
from guider_ls.project.settings import Settings
from guider_ls.project.targets import Target, find_target, to_inputs
from guider_ls.source.sites import SourceMap


def run(options: argparse.Namespace) -> int:
    """Localize and write the report."""
    console.check_output(options.output)
    project = find_project(options)
    console.print_warnings(f"{p.origin}, {p.key}: {p.message}" for p in project.problems)
    program = read(project.program, project.root) if project.program is not None else None
    source = program.source if program is not None else None
    target = find_target(project.program, project.root, project.settings, source)
    python = interpreter(project, options)
    with console.progress_line() as progress:
        localization = asyncio.run(_localize(python, target, project.settings, progress))
    report = Report(
        program=str(program.path) if program is not None else None,
        source=source or SourceMap((), ()),
        localization=localization,
        mapping=_mapping(source, localization.model),
        finished=time.time(),
    )
    console.write_result(_written(report, program, options), options.output)
    return 0


async def _localize(
    python: Interpreter, target: Target, settings: Settings, progress: console.ProgressLine
) -> Localization:
    progress.say("Starting the engine")
    engine = Engine(python.command, root=target.root)
    try:
        return await engine.localize(to_inputs(target, settings), progress)
    finally:
        await engine.close()


def _mapping(source: SourceMap | None, model: ModelSummary) -> Mapping:
    if source is not None:
        return align(source, model)
    reason = "no program was given"
    return Mapping((), (), tuple(UnmatchedLayer(layer.path, reason) for layer in model.all_layers()))


def _written(report: Report, program: Program | None, options: argparse.Namespace) -> str:
    if options.format == "json":
        return console.dumped(to_json(report))
    if options.format == "sarif":
        return console.dumped(to_sarif(report))
    return to_text(report, terminal=console.terminal(options, program.text if program is not None else None))
