"""The process that reads programs: what it is asked, what kills it, and what it leaves behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from guider_ls.analysis import reading
from guider_ls.analysis.reader import Reader
from guider_ls.analysis.reading import Defect
from guider_ls.errors import InputError
from guider_ls.source.notebook import Combined
from guider_ls.source.read import read_program

from . import reading_work as work

PROGRAM = "import keras\nmodel = keras.Sequential([\n    keras.layers.Dense(3),\n])\n"
BROKEN = PROGRAM + "x = (\n"
FATAL = "import keras\nx = " + "-" * 200_000 + "1\n"


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    found = Reader()
    yield found
    await found.close()


def read(reader: Reader, text: str) -> Coroutine[Any, Any, Any]:
    return reader.run(reading.read, partial(Combined, text, (), ()), None, None, {}, None, None)


async def until(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(0.01)


async def test_it_reads_like_the_function(reader: Reader) -> None:
    assert await read(reader, PROGRAM) == (read_program(PROGRAM), None)


async def test_nothing_starts_before_it_is_needed_and_one_process_does_all(reader: Reader) -> None:
    assert reader.pid is None
    found = await asyncio.gather(*(reader.run(work.pid) for _ in range(5)))
    assert set(found) == {reader.pid}


async def test_answers_belong_to_their_questions_whatever_their_size(reader: Reader) -> None:
    values = [bytes(size) for size in (0, 1, 10, 1 << 16, 1 << 24, 5)]
    assert await asyncio.gather(*(reader.run(work.echo, value) for value in values)) == values


async def test_what_is_printed_is_no_answer(reader: Reader, capfd: pytest.CaptureFixture[str]) -> None:
    assert await reader.run(work.print_and, 5) == 5
    assert await reader.run(work.echo, 6) == 6
    captured = capfd.readouterr()
    assert captured.out == ""
    assert {"printed", "written", "by a child"} <= set(captured.err.splitlines())


async def test_errors_for_people_and_defects(reader: Reader) -> None:
    with pytest.raises(InputError, match=r"^no$") as refused:
        await reader.run(work.refuse, "no")
    assert (refused.value.code, refused.value.detail) == ("program-syntax", "more")
    with pytest.raises(Defect, match=r"(?s)Traceback.*in fail\n.*ZeroDivisionError: in the work"):
        await reader.run(work.fail)
    with pytest.raises(InputError, match=r"^Line 5 is not Python"):
        await read(reader, BROKEN)
    assert await reader.run(work.echo, 1) == 1


async def test_it_has_the_servers_path_and_not_its_libraries(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'ein Ordner\'s "Pfad"'
    folder.mkdir()
    (folder / "pickle.py").write_text("raise SystemExit('of the project')")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    assert await reader.run(work.paths) == sys.path
    await read(reader, PROGRAM)
    assert not {"pygls", "lsprotocol", "asyncio", "numpy", "tensorflow", "keras"} & set(
        await reader.run(work.loaded)
    )


async def test_a_text_that_kills_the_parser_is_refused_and_the_next_is_read(reader: Reader) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match="SIGSEGV") as refused:
            await read(reader, FATAL)
        assert refused.value.code == "program-unreadable"
        assert (await read(reader, PROGRAM))[0].sites


async def test_what_kills_the_process_is_not_tried_without_end(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="SIGKILL"):
        await reader.run(work.die, tmp_path / "fresh")
    assert (tmp_path / "fresh").read_text() == "x"
    await reader.run(work.pid)
    with pytest.raises(InputError, match="SIGKILL"):
        await reader.run(work.die, tmp_path / "used")
    assert (tmp_path / "used").read_text() == "xx"


async def test_a_process_that_dies_of_something_else_is_replaced(reader: Reader, tmp_path: Path) -> None:
    first = await reader.run(work.pid)
    assert await reader.run(work.die_at_first, tmp_path / "tries") == "answered"
    second = await reader.run(work.pid)
    psutil.Process(second).kill()
    third = await reader.run(work.pid)
    assert len({first, second, third}) == 3


async def test_obsolete_work_is_finished_for_the_next_if_it_is_short(reader: Reader, tmp_path: Path) -> None:
    first = asyncio.ensure_future(reader.run(work.work_for, 0.3, tmp_path / "started"))
    await until(tmp_path / "started")
    pid = reader.pid
    first.cancel()
    assert await reader.run(work.pid) == pid


async def test_obsolete_work_is_ended_if_it_is_long(tmp_path: Path, gone: Callable[[int], bool]) -> None:
    reader = Reader(patience=0.1)
    first = asyncio.ensure_future(reader.run(work.work_for, 1000, tmp_path / "started"))
    waiting = asyncio.ensure_future(reader.run(work.echo, "never asked"))
    await until(tmp_path / "started")
    pid = reader.pid
    assert pid is not None
    first.cancel()
    waiting.cancel()
    assert await reader.run(work.pid) != pid
    assert await asyncio.to_thread(gone, pid)
    await reader.close()


async def test_work_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    reader = Reader(longest=1.0)
    with pytest.raises(InputError, match="longer than 1 seconds"):
        await reader.run(work.work_for, 1000, tmp_path / "started")
    await reader.close()


async def test_an_idle_process_ends_and_is_started_again(gone: Callable[[int], bool]) -> None:
    reader = Reader(idle=0.05)
    pid = await reader.run(work.pid)
    await asyncio.sleep(0.2)
    assert await asyncio.to_thread(gone, pid)
    assert await reader.run(work.pid) != pid
    await reader.close()


@pytest.mark.parametrize("seconds", [0, 1000], ids=["idle", "busy"])
async def test_closing_leaves_no_process(tmp_path: Path, gone: Callable[[int], bool], seconds: int) -> None:
    reader = Reader()
    task = asyncio.ensure_future(reader.run(work.work_for, seconds, tmp_path / "started"))
    await until(tmp_path / "started")
    if not seconds:
        await task
    task.cancel()
    pid = reader.pid
    assert pid is not None
    await reader.close()
    assert await asyncio.to_thread(gone, pid)
    assert psutil.Process().children(recursive=True) == []


SERVER = """
import asyncio, sys
from pathlib import Path
from tests.process import reading_work
from guider_ls.analysis.reader import Reader

async def main(seconds, started):
    reader = Reader()
    await reader.run(reading_work.pid)
    task = asyncio.ensure_future(reader.run(reading_work.work_for, seconds, Path(started)))
    while not Path(started).exists():
        await asyncio.sleep(0.01)
    print(reader.pid, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main(float(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("seconds", [0, 1000], ids=["idle", "busy"])
def test_killing_the_server_ends_the_process(
    tmp_path: Path, gone: Callable[[int], bool], seconds: int
) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SERVER, str(seconds), str(tmp_path / "started")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        server.kill()
    assert gone(pid)
