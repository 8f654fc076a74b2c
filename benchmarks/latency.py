"""How long an editor waits for the server, and what it costs: ``make bench-latency``.

Everything runs in alternation, several rounds each; a figure is the median. Where wall time is what counts, the
fastest round is printed beside it, since other work on the machine makes a round slower and never faster. The text
goes to standard output, the numbers to ``build/bench/latency.json``.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import libcst as cst
import psutil
from benchmarks.figures import Figures
from benchmarks.programs import program
from libcst.metadata import MetadataWrapper, PositionProvider, QualifiedNameProvider, ScopeProvider
from tests.protocol.editor import Editor, editor

from guider_ls.source import trees
from guider_ls.source.read import read_program

ROOT = Path(__file__).parents[1]
SIZES = (126, 1_026, 10_026)
GOAL_MS = {126: 30.0, 1_026: 200.0, 10_026: 5_000.0}
OPEN = 50
"""Programs that are open at once where memory is measured."""
PARTS = ("start", "typing", "others", "memory", "reading")
PLACE = '    print(f"table'
"""A line of the generated programs that is replaced by a layer."""

COMMAND = "import sys; from guider_ls.cli import main; sys.exit(main(['serve']))"
"""What ``guider-ls serve`` does."""
NO_PAUSE = """
from guider_ls.lsp.features import synchronization
synchronization.DEBOUNCE = 0.0
"""
WATCHED = """
import asyncio, os, time
from pathlib import Path
from guider_ls.lsp import server
serve = server._serve

async def watch():
    longest = 0.0
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.002)
        late = time.perf_counter() - before - 0.002
        if Path(os.environ["GUIDER_CACHE"], "reset").exists():
            Path(os.environ["GUIDER_CACHE"], "reset").unlink()
            longest = 0.0
        elif late > longest:
            longest = late
            Path(os.environ["GUIDER_CACHE"], "stall").write_text(str(longest))

async def watched(*arguments):
    task = asyncio.ensure_future(watch())
    await serve(*arguments)

server._serve = watched
"""
"""Notes the longest time that the event loop did not turn."""


def row(*cells: object) -> None:
    first, *others = (f"{cell:,.1f}" if isinstance(cell, float) else str(cell) for cell in cells)
    print(f"{first:46}" + "".join(f"{cell:>13}" for cell in others), flush=True)


# Reading a text


def cpu(work: Callable[[], object]) -> float:
    """Milliseconds of processor time."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def with_providers(text: str) -> object:
    wrapper = MetadataWrapper(cst.parse_module(text))
    return wrapper.resolve_many([PositionProvider, ScopeProvider, QualifiedNameProvider])


def cold(text: str) -> object:
    trees._kept.clear()
    return read_program(text)


def edited(edit: Callable[[], str]) -> object:
    return read_program(edit())


def edits(text: str) -> Callable[[], str]:
    """The text with one line changed, another one each time."""
    lines = text.split("\n")
    places = [index for index, line in enumerate(lines) if line.startswith(PLACE)]
    place, count = places[len(places) // 2], 0

    def edit() -> str:
        nonlocal count
        count += 1
        return "\n".join([*lines[:place], f"    extra = layers.Dense({count})", *lines[place + 1 :]])

    return edit


def reading(figures: Figures, rounds: int) -> None:
    print("\nReading a text, processor time in ms (× libcst's parser)")
    row("lines", *SIZES)
    table: dict[str, list[float]] = {}
    for size in SIZES:
        text = program(size)
        kinds: dict[str, Callable[[], object]] = {
            "ast.parse": partial(ast.parse, text),
            "libcst, parse only": partial(cst.parse_module, text),
            "libcst, with positions, scopes, names": partial(with_providers, text),
            "guider, first reading": partial(cold, text),
            "guider, after an edit": partial(edited, edits(text)),
        }
        found: dict[str, list[float]] = {kind: [] for kind in kinds}
        for number in range(max(3, rounds * 500 // size) if size > 500 else 3 * rounds):
            for kind, work in kinds.items():
                if "scopes" in kind and number * size > 1_100:
                    continue
                found[kind].append(cpu(work))
        for kind, values in found.items():
            table.setdefault(kind, []).append(median(values))
            figures.add(f"{kind}, {size} lines, cpu ms", median(values))
    for kind, values in table.items():
        parse = table["libcst, parse only"]
        row(kind, *(f"{v:,.0f} ({v / p:.2f})" for v, p in zip(values, parse, strict=True)))


# A real server


@asynccontextmanager
async def serving(folder: Path, before: str = "") -> AsyncIterator[Editor]:
    async with editor(folder / "cache", before) as client:
        client.settings = {"run": "manual"}
        await client.initialize(folder)
        yield client


def milliseconds(since: float) -> float:
    return (time.perf_counter() - since) * 1000


def processes(client: Editor) -> list[psutil.Process]:
    server = psutil.Process(client.process.pid)
    return [server, *server.children(recursive=True)]


def processor_time(client: Editor) -> float:
    times = [process.cpu_times() for process in processes(client)]
    return sum(t.user + t.system for t in times)


class Typing:
    """One document in one server, which is edited over and over."""

    def __init__(self, client: Editor, path: Path, text: str) -> None:
        self.client = client
        self.text = text
        self.uri = client.open(path, text)
        self.version = 1
        self.edit = edits(text)
        self.sites = 0
        self.waited: list[float] = []

    async def start(self) -> float:
        """Wait for the first lenses; the milliseconds."""
        start = time.perf_counter()
        self.sites = len(await self.client.lenses(self.uri))
        return milliseconds(start)

    def change(self, text: str) -> None:
        self.version += 1
        self.client.change(self.uri, text, self.version)

    async def keystroke(self) -> None:
        """Make a line a layer, and wait until the server knows it and has the editor ask; then take it back."""
        since = self.client.now
        text = self.edit()
        start = time.perf_counter()
        self.change(text)
        await self.client.wait_for("workspace/codeLens/refresh", since=since)
        self.waited.append(milliseconds(start))
        assert len(await self.client.lenses(self.uri)) == self.sites + 1
        self.change(self.text)
        while len(await self.client.lenses(self.uri)) > self.sites:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)  # until that is read, too


async def typing(figures: Figures, rounds: int, folder: Path) -> None:
    print("\nFrom a keystroke to the new lens, over the pipes of a real server, in ms (fastest)")
    row("lines", *SIZES)
    first, with_pause, without_pause, used = [], [], [], []
    for size in SIZES:
        text, path = program(size), folder / f"typed_{size}.py"
        count = rounds if size < 5_000 else max(3, rounds // 3)
        async with serving(folder) as one, serving(folder, NO_PAUSE) as other:
            pausing, prompt = Typing(one, path, text), Typing(other, path, text)
            first.append(await pausing.start())
            await prompt.start()
            for typed in (pausing, prompt):
                await typed.keystroke()
                typed.waited.clear()
            before = processor_time(other)
            for _ in range(count):
                await pausing.keystroke()
                await prompt.keystroke()
            used.append((processor_time(other) - before) * 1000 / count / 2)
        with_pause.append(pausing.waited)
        without_pause.append(prompt.waited)
        figures.add(f"opened to lenses, {size} lines, ms", first[-1])
        figures.add(f"keystroke to sites, {size} lines, ms", median(prompt.waited), GOAL_MS[size])
        figures.add(f"keystroke to sites, {size} lines, fastest, ms", min(prompt.waited))
        figures.add(f"keystroke to sites with the pause in typing, {size} lines, ms", median(pausing.waited))
        figures.add(f"keystroke to sites, {size} lines, cpu ms", used[-1])
    row("goal", *(f"{GOAL_MS[size]:,.0f}" for size in SIZES))
    row("without the pause in typing", *(f"{median(v):,.0f} ({min(v):,.0f})" for v in without_pause))
    row("with it", *(f"{median(v):,.0f} ({min(v):,.0f})" for v in with_pause))
    row("processor time of server and reader", *used)
    row("opened, to the first lenses, once", *first)


async def others_meanwhile(figures: Figures, folder: Path) -> None:
    text, path = program(SIZES[-1]), folder / "long.py"
    (folder / "cache").mkdir(exist_ok=True)
    async with serving(folder, WATCHED) as client:
        short = client.open(folder / "short.py", program(126))
        await client.lenses(short)
        idle = await hovers(client, short, asyncio.ensure_future(asyncio.sleep(2)))
        (folder / "cache" / "reset").touch()
        await asyncio.sleep(0.1)
        long = client.open(path, text)
        opened = await hovers(client, short, asyncio.ensure_future(client.lenses(long)))
        since = client.now
        client.change(long, edits(text)(), 2)
        refreshed = client.wait_for("workspace/codeLens/refresh", since=since)
        edited = await hovers(client, short, asyncio.ensure_future(refreshed))
        stall = float((folder / "cache" / "stall").read_text()) * 1000
    print(f"\nA hover over another program while {SIZES[-1]:,} lines are read, in ms")
    row("", "median", "longest", "hovers")
    for what, found in (("nothing is read", idle), ("they are opened", opened), ("they are edited", edited)):
        row(f"while {what}", median(found), max(found), len(found))
        figures.add(f"hover while {what}, median ms", median(found))
        figures.add(f"hover while {what}, longest ms", max(found))
    row("longest stall of the server's event loop", stall)
    figures.add("event loop, longest stall while 10026 lines are read, ms", stall)


async def hovers(client: Editor, uri: str, done: asyncio.Future[Any]) -> list[float]:
    """How long each of many hovers takes until something is done."""
    found = []
    while not done.done():
        start = time.perf_counter()
        await client.hover(uri, 20, 8)
        found.append(milliseconds(start))
        await asyncio.sleep(0.01)
    await done
    return found


async def starting(figures: Figures, rounds: int, folder: Path) -> None:
    imports: list[tuple[float, float]] = []
    starts: list[tuple[float, float]] = []
    for _ in range(rounds):
        imports.append(await imported("import pygls.lsp.server, time; print(time.process_time())"))
        start = time.perf_counter()
        async with editor(folder / "cache", COMMAND) as client:
            await client.initialize(folder)
            wall = milliseconds(start)
            times = psutil.Process(client.process.pid).cpu_times()
            starts.append((wall, (times.user + times.system) * 1000))
    print("\nStart, in ms")
    row("", "wall", "fastest", "processor")
    for what, found in (
        ("import pygls.lsp.server", imports),
        ("the server, to the answer of initialize", starts),
    ):
        walls, used = zip(*found, strict=True)
        row(what, median(walls), min(walls), median(used))
    ratio = median(wall for wall, _ in starts) / median(wall for wall, _ in imports)
    used_ratio = median(used for _, used in starts) / median(used for _, used in imports)
    print(f"ratio {ratio:.2f} by wall time, {used_ratio:.2f} by processor time; goal 1.2")
    figures.add("start to initialize, ms", median(wall for wall, _ in starts))
    figures.add("import of pygls.lsp.server, ms", median(wall for wall, _ in imports))
    figures.add("start to initialize / import of pygls.lsp.server", ratio, 1.2)
    figures.add("start to initialize / import of pygls.lsp.server, cpu", used_ratio)


async def imported(code: str) -> tuple[float, float]:
    """Wall and processor time of a Python that runs code which prints the latter in seconds."""
    start = time.perf_counter()
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=pipe)
    assert process.stdout is not None
    line = await process.stdout.readline()
    wall = milliseconds(start)
    await process.wait()
    return wall, float(line) * 1000


async def memory(figures: Figures, folder: Path) -> None:
    async with serving(folder) as client:
        alone = [megabytes(process) for process in processes(client)]
        for number in range(OPEN):
            text = program(126).replace("SEED = 7", f"SEED = {number}")
            await client.lenses(client.open(folder / f"open_{number}.py", text))
        found = [megabytes(process) for process in processes(client)]
        long = client.open(folder / "long.py", program(SIZES[-1]))
        await client.lenses(long)
        after = [megabytes(process) for process in processes(client)]
    print("\nMemory, MB (proportional set size)")
    row("", "server", "reader", "together")
    row("before anything is open", *alone, 0.0, sum(alone))
    row(f"{OPEN} programs open", *found, sum(found))
    row(f"after {SIZES[-1]:,} lines were read, too", *after, sum(after))
    figures.add(f"memory, {OPEN} programs open, MB", sum(found), 80.0)
    figures.add(f"memory of the server, {OPEN} programs open, MB", found[0])
    figures.add("memory after 10026 lines, MB", sum(after))


def megabytes(process: psutil.Process) -> float:
    full = process.memory_full_info()
    return float(getattr(full, "pss", full.uss)) / 1e6


# All of it


async def measure(figures: Figures, rounds: int, parts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pyproject.toml").write_text("")
        if "start" in parts:
            await starting(figures, rounds, folder)
        if "typing" in parts:
            await typing(figures, rounds, folder)
        if "others" in parts:
            await others_meanwhile(figures, folder)
        if "memory" in parts:
            await memory(figures, folder)
    if "reading" in parts:
        reading(figures, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("parts", nargs="*", default=PARTS, help=f"some of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    figures = Figures()
    asyncio.run(measure(figures, arguments.rounds, arguments.parts))
    figures.conclude()
    figures.write("latency", ("pygls", "lsprotocol", "libcst", "attrs", "cattrs"))


if __name__ == "__main__":
    main()
