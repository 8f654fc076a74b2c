"""Runs programs under capture, each in an engine of its own, and keeps what that gave for the next time."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guider_engine import wire
from guider_engine.wire import CaptureRecord, Program
from guider_ls.analysis.engine import Engine
from guider_ls.errors import GuiderError

ENTRY = Path(__file__).with_name("shims.py")
LARGEST = 50_000_000
"""Bytes of the largest data file that is copied beside a program."""


@dataclass(frozen=True, slots=True)
class Job:
    """A program of a set, and the folder that is its project."""

    name: str
    """Unique in its set, for people."""
    path: Path
    root: Path
    alone: bool
    """Whether nothing else in the folder is part of the project."""

    def files(self) -> list[Path]:
        """The project's files, the program first."""
        if self.alone:
            return [self.path]
        others = (file for file in sorted(self.root.rglob("*")) if file.is_file() and file != self.path)
        return [self.path, *(file for file in others if "__pycache__" not in file.parts)]


@dataclass(frozen=True, slots=True)
class Run:
    """What running a program gave; paths in the record are relative to the project."""

    record: CaptureRecord | None
    failure: str
    """Why there is no record, or why the program did not come to its end; empty where it did."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much a program may run."""

    cpu_seconds: float = 40.0
    seconds: float = 300.0
    megabytes: float = 6_000.0


class Captures:
    """Runs programs, or finds what a run of the same program by the same engine gave before."""

    def __init__(self, folder: Path, limits: Limits, *, reuse: bool = False) -> None:
        """Prepare.

        Args:
            folder: of what is kept.
            limits: of each program.
            reuse: whether a run by other sources of the engine will do.
        """
        self._folder = folder
        self._limits = limits
        self._reuse = reuse
        self._engine = _engine_digest()

    async def all(self, jobs: Sequence[Job], workers: int, say: Callable[[str], None]) -> list[Run]:
        """The runs of the programs, in their order; ``workers`` at a time."""
        free = asyncio.Semaphore(workers)
        done = 0

        async def one(job: Job) -> Run:
            nonlocal done
            async with free:
                run = await self._one(job)
            done += 1
            say(f"{done} of {len(jobs)}: {job.name} {run.failure}")
            return run

        return await asyncio.gather(*(one(job) for job in jobs))

    async def _one(self, job: Job) -> Run:
        kept = self._folder / "runs" / f"{_digest(job)}.json"
        if (found := self._kept(kept)) is not None:
            return found
        run = await self._run(job)
        if run.failure.startswith("interpreter-broken"):
            raise SystemExit(run.failure)
        kept.parent.mkdir(parents=True, exist_ok=True)
        body = {"engine": self._engine, "program": job.name, **dataclasses.asdict(run)}
        temporary = kept.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(body), encoding="utf-8")
        temporary.replace(kept)
        return run

    def _kept(self, file: Path) -> Run | None:
        if not file.is_file():
            return None
        body = json.loads(file.read_text(encoding="utf-8"))
        if body["engine"] != self._engine and not self._reuse:
            return None
        return wire.structure(body, Run)

    async def _run(self, job: Job) -> Run:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as temporary:
            work, output = Path(temporary) / "project", Path(temporary) / "capture"
            _copy(job, work)
            output.mkdir()
            program = Program(
                path=str(work / job.path.relative_to(job.root)),
                arguments=(),
                folder=str((work / job.path.relative_to(job.root)).parent),
                root=str(work),
                epochs=1,
                seconds=self._limits.seconds,
            )
            engine = Engine(
                (sys.executable,), root=work, entry=ENTRY, environ=self._environment(Path(temporary))
            )
            try:
                record = await engine.capture(program, output)
            except GuiderError as error:
                return Run(None, f"{error.code}: {_short(str(error))}")
            finally:
                await engine.close()
            failure = record.failure
            said = "" if failure is None else f"{failure.code}: {_short(failure.message)}"
            if record.ending == "stopped":
                said = f"stopped after {self._limits.seconds:g} seconds"
            return Run(relative(record, work), said)

    def _environment(self, temporary: Path) -> dict[str, str]:
        limits = self._limits
        return {
            **os.environ,
            "TMPDIR": str(temporary),
            "GUIDER_BENCH_CPU": str(limits.cpu_seconds),
            "GUIDER_BENCH_MEMORY": str(limits.megabytes),
            "OMP_NUM_THREADS": "1",
            "TF_NUM_INTRAOP_THREADS": "1",
            "TF_NUM_INTEROP_THREADS": "1",
        }


def relative(record: CaptureRecord, root: Path) -> CaptureRecord:
    """The record with paths relative to the project; nested values are built anew."""

    def moved(value: Any) -> Any:
        if isinstance(value, str):
            return value.removeprefix(f"{root}{os.sep}") if value.startswith(str(root)) else value
        if isinstance(value, dict):
            return {key: moved(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [moved(one) for one in value]
        return value

    return wire.structure(moved(dataclasses.asdict(record)), CaptureRecord)


def _copy(job: Job, work: Path) -> None:
    for file in job.files():
        if file.stat().st_size <= LARGEST:
            target = work / file.relative_to(job.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _digest(job: Job) -> str:
    """Of what the run of a program depends on, but for the engine."""
    found = hashlib.sha256(f"{job.path.relative_to(job.root)}\0".encode())
    for file in job.files():
        found.update(f"{file.relative_to(job.root)}\0{file.stat().st_size}\0".encode())
        if file.suffix == ".py":
            found.update(file.read_bytes())
    return found.hexdigest()[:24]


def _engine_digest() -> str:
    """Of the engine's sources, the shims and the versions that matter."""
    found = hashlib.sha256()
    for file in sorted([*Path(wire.__file__).parent.rglob("*.py"), ENTRY]):
        found.update(file.read_bytes())
    for package in ("keras", "numpy", "tensorflow-cpu", "tensorflow"):
        try:
            found.update(importlib.metadata.version(package).encode())
        except importlib.metadata.PackageNotFoundError:
            continue
    return found.hexdigest()[:24]


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
