"""A server that is killed leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guider_engine import wire

from .conftest import CODE_ENGINE

SERVER = """
import asyncio, sys
from pathlib import Path
from guider_ls.analysis.engine import Engine

async def main(entry, root, code):
    engine = Engine((sys.executable,), root=Path(root), entry=Path(entry))
    request = engine.inspect(code, on_progress=lambda progress: print(progress.message, flush=True))
    await asyncio.gather(request, return_exceptions=True)
    await asyncio.sleep(1000)

asyncio.run(main(*sys.argv[1:]))
"""
ENGINE = """
import json, os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
report("tests", json.dumps([os.getpid(), child.pid]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize(
    "work", ["time.sleep(1000)", "while True: pass", ""], ids=["sleeping", "computing", "idle"]
)
def test_killing_the_server_ends_the_engine_and_its_children(
    root: Path, gone: Callable[[int], bool], work: str
) -> None:
    command = [sys.executable, "-c", SERVER, str(CODE_ENGINE), str(root), ENGINE + work]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pids = json.loads(server.stdout.readline())
        server.send_signal(signal.SIGKILL)
    for pid in pids:
        assert gone(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_an_engine_whose_parent_is_gone_ends_though_its_channel_is_open(gone: Callable[[int], bool]) -> None:
    code = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(1000)"
    parent = subprocess.Popen(
        [sys.executable, "-c", code, sys.executable, "-u", str(CODE_ENGINE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with parent:
        assert parent.stdout is not None
        hello = wire.decode(parent.stdout.readline())
        assert isinstance(hello, wire.Hello)
        parent.kill()
        parent.wait()
        assert gone(hello.pid)
