"""A child process: what it has printed is passed on though it lives on."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from guider_ls.analysis import process
from guider_ls.analysis.process import ProcessTree

CODE = """\
import sys
sys.stderr.write("first\\n" + "x" * 100_000 + "last")
print("printed", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("platform", sorted({sys.platform, "win32"}))
async def test_what_a_process_printed_was_passed_on_while_it_waits(
    platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed, passed_on = asyncio.Event(), bytearray()
    loop = asyncio.get_running_loop()

    def on_line(_line: bytes) -> None:
        loop.call_soon_threadsafe(printed.set)

    child = ProcessTree(
        [sys.executable, "-c", CODE],
        cwd=tmp_path,
        environment=os.environ,
        on_line=on_line,
        on_output=passed_on.extend,
    )
    # On Windows, the thread that reads holds the pipe while it waits.
    with monkeypatch.context() as patched:
        patched.setattr(process, "sys", SimpleNamespace(platform=platform))
        await asyncio.wait_for(printed.wait(), 30)
        await asyncio.wait_for(child.drained(), 30)
    assert passed_on.endswith(b"last")
    assert child.running
    await child.end()
