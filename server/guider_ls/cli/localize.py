"""``guider-ls localize``."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import time
from pathlib import Path

from guider_engine.wire import CaptureRecord, Localization, ModelSummary
from guider_ls.analysis.engine import Engine
from guider_ls.analysis.store import spectra_folder
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
from guider_ls.cli.run_program import captured
from guider_ls.mapping.align import align
from guider_ls.mapping.mapping import Mapping, UnmatchedLayer
from guider_ls.present.json import to_json
from guider_ls.present.report import Report
from guider_ls.present.sarif import to_sarif
from guider_ls.present.text import to_text
from guider_ls.project.captures import notices
from guider_ls.project.ran import made, ran
from guider_ls.project.targets import Target, find_target, to_inputs
from guider_ls.source.sites import SourceMap


def run(options: argparse.Namespace) -> int:
    """Localize and write the report."""
    console.check_output(options.output)
    project = find_project(options)
    if not options.run:
        project = with_captured_model(project, options.model)
    console.print_warnings(f"{p.origin}, {p.key}: {p.message}" for p in project.problems)
    program = read(project.program, project.root) if project.program is not None else None
    console.print_warnings(program.problems if program is not None else ())
    source = program.source if program is not None else None
    found = None if options.run else _target(project, program)
    engine = Engine(interpreter(project, options).command, root=project.root, spectra=spectra_folder())
    with console.progress_line() as progress:
        target, localization = asyncio.run(_localize(engine, project, program, found, options, progress))
    record = target.capture.record if target.capture is not None else None
    model = Path(localization.inputs.model or project.settings.load)
    report = Report(
        program=str(program.path) if program is not None else None,
        source=source or SourceMap((), ()),
        localization=localization,
        mapping=_mapping(source, localization.model, record),
        finished=time.time(),
        capture=record,
        made=made(record, model.stat().st_mtime if model.is_file() else None),
    )
    console.write_result(_written(report, program, options), options.output)
    return 0


def _target(project: Project, program: Program | None) -> Target:
    """What the settings, an earlier run or the program's text say."""
    source = program.source if program is not None else None
    return find_target(project.program, project.root, project.settings, source, latest_capture(project))


async def _localize(
    engine: Engine,
    project: Project,
    program: Program | None,
    target: Target | None,
    options: argparse.Namespace,
    progress: console.ProgressLine,
) -> tuple[Target, Localization]:
    """Localize the target, or what running the program gives where there is none yet."""
    progress.say("Starting the engine")
    try:
        if target is None:
            assert program is not None  # the option --run names it
            capture = await captured(engine, project, program.path, progress, fresh=options.fresh is True)
            target = find_target(
                program.path, project.root, project.settings, program.source, capture, trained=True
            )
        if target.capture is None or target.captured is None:
            return target, await engine.localize(to_inputs(target, project.settings), progress)
        found = await engine.localize(to_inputs(target, project.settings), progress)
        said = notices(target.capture, target.captured, target.test_data)
        return target, dataclasses.replace(found, notices=(*said, *found.notices))
    finally:
        await engine.close()


def _mapping(source: SourceMap | None, model: ModelSummary, record: CaptureRecord | None) -> Mapping:
    if source is not None:
        return align(source, model, ran(record, model) if record is not None else None)
    reason = "no program was given"
    return Mapping((), (), tuple(UnmatchedLayer(layer.path, reason) for layer in model.all_layers()))


def _written(report: Report, program: Program | None, options: argparse.Namespace) -> str:
    if options.format == "json":
        return console.dumped(to_json(report))
    if options.format == "sarif":
        return console.dumped(to_sarif(report))
    return to_text(report, terminal=console.terminal(options, program.text if program is not None else None))
