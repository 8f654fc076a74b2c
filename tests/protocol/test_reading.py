"""Programs are read in a process of its own: what takes long or kills it holds up nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
from benchmarks.programs import program
from tests.protocol.editor import Editor

SHORT = "import keras\nmodel = keras.Sequential([\n    keras.layers.Dense(3),\n])\n"
LONG = program(10_000)
FATAL = SHORT + "x = " + "-" * 200_000 + "1\n"


async def opened(client: Editor, folder: Path) -> str:
    client.settings = {"run": "manual"}
    await client.initialize(folder)
    uri = client.open(folder / "short.py", SHORT)
    assert len(await client.lenses(uri)) == 1
    return uri


def children(client: Editor) -> list[psutil.Process]:
    return psutil.Process(client.process.pid).children(recursive=True)


async def test_a_long_program_holds_up_no_other_request(client: Editor, folder: Path) -> None:
    short = await opened(client, folder)
    long = client.open(folder / "long.py", LONG)
    _, read = client.start("textDocument/codeLens", {"textDocument": {"uri": long}})
    for version in range(2, 12):
        assert await client.hover(short, 2, 8) is not None
        client.change(short, SHORT + "# typed\n" * version, version)
        assert len(await client.lenses(short)) == 1
        assert not read.done()
    assert len(await read) > 2_000
    since = client.now
    client.change(long, LONG.replace("WIDTHS", "SIZES"), 2)
    assert await client.hover(long, 0, 0) is None
    assert await client.hover(short, 2, 8) is not None
    client.change(long, LONG + "last = layers.Dense(1)\n", 3)
    await client.wait_for("workspace/codeLens/refresh", since=since)


async def test_only_the_newest_text_counts(client: Editor, folder: Path) -> None:
    uri = await opened(client, folder)
    for count in range(2, 30):
        client.change(uri, SHORT + "keras.layers.Dense(1)\n" * count, count)

    async def newest() -> bool:
        return len(await client.lenses(uri)) == 30

    await client.wait_until(newest)
    assert len(children(client)) == 1


async def test_a_text_that_kills_the_parser_is_survived(client: Editor, folder: Path) -> None:
    uri = await opened(client, folder)
    (before,) = children(client)
    client.change(uri, FATAL, 2)
    await asyncio.to_thread(before.wait)
    assert len(await client.lenses(uri)) == 1
    client.change(uri, SHORT + "extra = keras.layers.Dense(1)\n", 3)

    async def mended() -> bool:
        return len(await client.lenses(uri)) == 2

    await client.wait_until(mended)
    assert client.messages() == []


async def test_no_reading_process_outlives_its_server(client: Editor, folder: Path) -> None:
    await opened(client, folder)
    (reader,) = children(client)
    client.open(folder / "long.py", LONG)
    assert await client.stop() == 0
    assert not reader.is_running()


async def test_nor_one_that_is_killed(client: Editor, folder: Path) -> None:
    await opened(client, folder)
    (reader,) = children(client)
    client.open(folder / "long.py", LONG)
    client.process.kill()
    await client.process.wait()
    await asyncio.to_thread(reader.wait)
