"""``guider-ls localize --run``: the program is run, unless what it gave the last time still holds."""

from __future__ import annotations

from pathlib import Path

from guider_ls.analysis.capturing import capture
from guider_ls.analysis.engine import Engine
from guider_ls.cli import console
from guider_ls.cli.inputs import Project, captures
from guider_ls.project.captures import Capture, command_line, to_program, when


async def captured(
    engine: Engine, project: Project, path: Path, progress: console.ProgressLine, *, fresh: bool
) -> Capture:
    """What running the program gives, or gave if nothing changed since and it need not be ``fresh``.

    Raises:
        GuiderError: why it gives nothing.
    """
    kept = captures()
    program = to_program(path, project.root, project.settings, project.here)
    found = None if fresh else kept.reusable(program, engine.command)
    if found is not None and found.model(project.settings.capture_model).saved:
        progress.clear()
        console.print_note(
            f"{command_line(program)} was captured at {when(found.record.started)} and is unchanged since; "
            "--fresh runs it again."
        )
        return found
    progress.say(f"Running {command_line(program)}")
    return await capture(engine, kept, program, progress, progress.pass_on)
