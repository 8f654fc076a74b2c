from __future__ import annotations

import asyncio

import pytest

from guider_ls.analysis.scheduler import Scheduler, Work


class Log:
    """Work that says when it starts, and ends when it is let."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.errors: list[BaseException] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.scheduler = Scheduler(self.errors.append)

    def work(self, name: str) -> Work:
        gate = self.gates.setdefault(name, asyncio.Event())

        async def run(_generation: int) -> None:
            self.started.append(name)
            try:
                await gate.wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            self.ended.append(name)

        return run

    def open(self, *names: str) -> None:
        for name in names:
            self.gates[name].set()


async def test_the_newest_waits_and_older_ones_are_dropped() -> None:
    log = Log()
    for name in ("first", "second", "third"):
        log.scheduler.submit("program", log.work(name))
    await asyncio.sleep(0)
    assert log.started == ["first"]
    log.open("first", "second", "third")
    await log.scheduler.idle()
    assert log.ended == ["first", "third"]


async def test_programs_do_not_push_each_other_out() -> None:
    log = Log()
    log.scheduler.submit("a", log.work("a1"))
    log.scheduler.submit("b", log.work("b1"))
    log.scheduler.submit("a", log.work("a2"))
    log.open("a1", "a2", "b1")
    await log.scheduler.idle()
    assert log.ended == ["a1", "b1", "a2"]


async def test_generations_tell_the_newest() -> None:
    log = Log()
    old = log.scheduler.submit("a", log.work("a1"))
    other = log.scheduler.submit("b", log.work("b1"))
    new = log.scheduler.submit("a", log.work("a2"))
    assert old < other < new
    assert not log.scheduler.is_newest("a", old)
    assert log.scheduler.is_newest("a", new)
    assert log.scheduler.is_newest("b", other)
    await log.scheduler.close()


async def test_work_knows_its_generation() -> None:
    seen = []

    async def work(generation: int) -> None:
        seen.append(generation)

    scheduler = Scheduler(lambda error: None)
    generations = [scheduler.submit("a", work), scheduler.submit("b", work)]
    await scheduler.idle()
    assert seen == generations


async def test_cancel_stops_what_runs_and_lets_the_next_run() -> None:
    log = Log()
    log.scheduler.submit("a", log.work("a1"))
    log.scheduler.submit("b", log.work("b1"))
    await asyncio.sleep(0)
    assert log.scheduler.running == "a"
    assert log.scheduler.cancel("a")
    log.open("b1")
    await log.scheduler.idle()
    assert (log.cancelled, log.ended) == (["a1"], ["b1"])
    assert not log.scheduler.cancel("a")
    assert log.errors == []


async def test_cancelled_work_that_waits_never_starts() -> None:
    log = Log()
    log.scheduler.submit("a", log.work("a1"))
    log.scheduler.submit("a", log.work("a2"))
    await asyncio.sleep(0)
    assert log.scheduler.cancel()
    await log.scheduler.idle()
    assert log.started == ["a1"]


async def test_what_work_raises_is_told_and_stops_nothing() -> None:
    log = Log()

    async def broken(_generation: int) -> None:
        raise ValueError("broken")

    log.scheduler.submit("a", broken)
    log.scheduler.submit("b", log.work("b1"))
    log.open("b1")
    await log.scheduler.idle()
    assert [str(error) for error in log.errors] == ["broken"]
    assert log.ended == ["b1"]


@pytest.mark.parametrize("waiting", [False, True])
async def test_close_waits_for_the_end_and_takes_no_more(waiting: bool) -> None:
    log = Log()
    log.scheduler.submit("a", log.work("a1"))
    if waiting:
        log.scheduler.submit("b", log.work("b1"))
    await asyncio.sleep(0)
    await log.scheduler.close()
    assert log.cancelled == ["a1"]
    log.scheduler.submit("c", log.work("c1"))
    await log.scheduler.idle()
    assert log.started == ["a1"]
