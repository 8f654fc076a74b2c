"""Running a program into a folder of its own: what the command line and the server do alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from guider_engine.wire import Program, Progress
from guider_ls.analysis.engine import Engine
from guider_ls.project.captures import Capture, Captures, changes, unwritable


async def capture(
    engine: Engine,
    captures: Captures,
    program: Program,
    on_progress: Callable[[Progress], None],
    on_output: Callable[[bytes], None] = lambda _data: None,
    keep: Sequence[Path] = (),
) -> Capture:
    """Run a program in a fresh process of the engine, keep what it trains, and remove what is too old to be kept.

    Args:
        engine: whose process stays for localizations of what was captured.
        captures: where it is kept.
        program: what to run, and how.
        on_progress: called on the event loop.
        on_output: gets what is printed as it comes, in a thread.
        keep: folders of captures that are not too old.

    Raises:
        GuiderError: what `Engine.capture` raises, or "cache-unwritable". Then nothing is kept.
    """
    folder = await asyncio.to_thread(captures.new_folder, program, engine.command)
    try:
        record = await engine.capture(program, folder, on_progress, on_output)
    except BaseException as error:
        await asyncio.to_thread(captures.discard, folder)
        raise (unwritable(folder, error) if isinstance(error, OSError) else error) from None
    await asyncio.to_thread(captures.prune, (folder, *keep))
    return Capture(folder, record, await asyncio.to_thread(changes, record))
