"""Hit spectra on disk: whole or absent, bounded, whoever else writes there."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guider_engine.counting import Counted, Example
from guider_engine.errors import CancelRequested
from guider_engine.kept import Entry, Kept
from guider_engine.spectrum.hits import Hits, LayerHits
from guider_engine.spectrum.statistics import LayerStatistics
from guider_engine.wire import ModelLayer, ModelOutput, ModelSummary

from .conftest import quiet


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def entry(neurons: int = 3, value: float = 1.5) -> Entry:
    """Made up, with everything that is hard to write down."""
    pair = np.full((2, neurons), value)
    hits = LayerHits(
        (neurons,),
        "unit",
        np.arange(neurons),
        pair.astype(np.float32),
        pair,
        None,
        np.zeros((4, 8, min(neurons, 3))),
    )
    row, flags = np.array([0.1, np.nan, -np.inf]), np.array([True, False, True])
    statistics = LayerStatistics(
        (3, 5),
        pair[:, :3],
        pair[:, :3],
        row,
        row,
        not_finite=flags,
        dead=flags,
        saturated=flags,
        constant=flags,
    )
    layer = ModelLayer((0,), "dense", "Dense", True, {"units": neurons, "seed": None}, 12, (None, neurons))
    return Entry(
        ModelSummary("m", "Sequential", (layer,), None, False, (ModelOutput("y", None, None, None, None),)),
        Counted(
            task="classification",
            reason="as set – ✓",
            confidence="certainty",
            tests_read="t.npz",
            available=None,
            hits=Hits(
                {(0,): hits, (1, 0): hits}, (3, 5), (0.1, 2.0), (0.0, float("inf")), np.zeros((4, 8)), 0
            ),
            statistics={(0,): statistics},
            examples=(Example(3, "cat", "dog", float("nan")),),
            notices=(("code", "message"),),
            broken=(),
        ),
        {"python": "3.11"},
    )


def same(a: Any, b: Any) -> bool:
    """Equal in value, type and dtype."""
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)
        )
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and (a == b or a != a)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "new" / "spectra")


def files(kept: Kept) -> list[Path]:
    return sorted(kept._folder.iterdir())


def test_there_and_back(kept: Kept) -> None:
    assert kept.read(key(0)) is None
    kept.write(key(0), entry(), quiet)
    found = kept.read(key(0))
    assert same(found, entry())
    assert not same(found, entry(value=1.6))
    assert kept.read(key(1)) is None
    assert [path.name for path in files(kept)] == [f"{key(0)}.npz"]


def test_nothing_is_pickled(kept: Kept) -> None:
    kept.write(key(0), entry(), quiet)
    with np.load(files(kept)[0], allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
        assert json.loads(archive["header"].tobytes())["key"] == key(0)


def pickled(path: Path) -> bytes:
    np.savez(path, header=np.array([{"key": key(0)}], dtype=object), allow_pickle=True)
    return path.read_bytes()


def of_other_key(path: Path) -> bytes:
    other = Kept(path.parent / "other")
    other.write(key(5), entry(), quiet)
    return files(other)[0].read_bytes()


def huge_shape(path: Path) -> bytes:
    """A header of NumPy that claims more than any memory."""
    with zipfile.ZipFile(path, "w") as archive:
        head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % 10**15
        head += b" " * (117 - len(head)) + b"\n"
        archive.writestr("header.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    return path.read_bytes()


def without_field(path: Path) -> bytes:
    text = json.dumps(
        {"key": key(0), "counted": {"class": "Counted", "fields": {}}, "summary": {}, "versions": {}}
    )
    np.savez(path, header=np.frombuffer(text.encode(), np.uint8))
    return path.read_bytes()


@pytest.mark.parametrize(
    "damage", [pickled, of_other_key, huge_shape, without_field], ids=lambda f: f.__name__
)
def test_foreign_file_is_removed_and_counts_as_absent(kept: Kept, tmp_path: Path, damage: Any) -> None:
    kept.write(key(0), entry(), quiet)
    kept._path(key(0)).write_bytes(damage(tmp_path / "foreign.npz"))
    assert kept.read(key(0)) is None
    assert files(kept) == []


def test_half_and_damaged_files_are_removed_and_count_as_absent(kept: Kept) -> None:
    kept.write(key(0), entry(), quiet)
    path = kept._path(key(0))
    whole = path.read_bytes()
    for size in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert kept.read(key(0)) is None, size
        assert files(kept) == []
    for place in range(0, len(whole), 97):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        found = kept.read(key(0))  # some bytes of an archive say nothing
        assert found is None or same(found, entry()), place


def test_least_recently_used_go_first(tmp_path: Path) -> None:
    kept = Kept(tmp_path, most=3)
    for number in range(3):
        kept.write(key(number), entry(), quiet)
        os.utime(kept._path(key(number)), (number + 1, number + 1))
    assert kept.read(key(0)) is not None
    kept.write(key(3), entry(), quiet)
    assert [number for number in range(4) if kept.read(key(number))] == [0, 2, 3]


def test_bytes_are_bounded_and_large_entries_are_not_kept(tmp_path: Path) -> None:
    size = entry(1_000).bytes
    kept = Kept(tmp_path, most_bytes=4 * size, largest=size)
    for number in range(6):
        kept.write(key(number), entry(1_000), quiet)
        os.utime(kept._path(key(number)), (number + 1, number + 1))
    assert [number for number in range(6) if kept.read(key(number))] == [3, 4, 5]
    assert sum(path.stat().st_size for path in files(kept)) <= 4 * size
    kept.write(key(9), entry(1_001), quiet)
    assert kept.read(key(9)) is None
    kept._path(key(8)).write_bytes(bytes(2 * size + 1))
    assert kept.read(key(8)) is None


def test_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "weights.npz").write_text("mine")
    (tmp_path / "fresh.part").write_text("being written")
    (tmp_path / "old.part").write_text("abandoned")
    os.utime(tmp_path / "old.part", (1, 1))
    Kept(tmp_path, most=0).write(key(0), entry(), quiet)
    assert [path.name for path in files(Kept(tmp_path))] == ["fresh.part", "notes.txt", "weights.npz"]


def test_folder_that_cannot_be_written_switches_it_off(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Kept(tmp_path / "file" / "spectra")
    kept.write(key(0), entry(), quiet)
    assert kept.read(key(0)) is None


def test_cancel_while_writing_leaves_nothing(kept: Kept) -> None:
    calls = 0

    def stop() -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise CancelRequested

    with pytest.raises(CancelRequested):
        kept.write(key(0), entry(), stop)
    assert files(kept) == []


WRITER = """
import sys
from pathlib import Path
from guider_engine.kept import Kept
from tests.engine.test_kept import entry, key, same, quiet

kept = Kept(Path(sys.argv[1]), most=3)
found = 0
for turn in range(60):
    number = turn % 5
    kept.write(key(number), entry(2_000, number), quiet)
    read = kept.read(key((turn * 3) % 5))
    if read is not None:
        assert same(read, entry(2_000, (turn * 3) % 5))
        found += 1
assert found
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=Path(__file__).parents[2],
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_that_write_read_and_tidy_at_once_never_fail_each_other(tmp_path: Path) -> None:
    writers = [python(WRITER, str(tmp_path)) for _ in range(3)]
    assert [(*writer.communicate()[1:], writer.returncode) for writer in writers] == [("", 0)] * 3
    Kept(tmp_path, most=3).write(key(9), entry(), quiet)
    assert len(files(Kept(tmp_path))) == 3
    assert all(path.suffix == ".npz" for path in files(Kept(tmp_path)))


ENDLESS = """
import sys
from pathlib import Path
from guider_engine.kept import Kept
from tests.engine.test_kept import entry, key, quiet

large = entry(1_000_000)
while True:
    Kept(Path(sys.argv[1])).write(key(1), large, quiet)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX kills at once")
def test_killed_while_it_writes(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.write(key(0), entry(), quiet)
    writer = python(ENDLESS, str(tmp_path))
    deadline = time.monotonic() + 60
    while not half_written(tmp_path) and writer.poll() is None and time.monotonic() < deadline:
        pass
    writer.kill()
    assert writer.communicate()[1] == ""
    half = [path for path in files(kept) if path.suffix == ".part"]
    assert len(half) == 1
    found = kept.read(key(1))
    assert found is None or found.bytes == entry(1_000_000).bytes
    assert same(kept.read(key(0)), entry())
    os.utime(half[0], (1, 1))
    kept.write(key(2), entry(), quiet)
    assert half[0] not in files(kept)


def half_written(folder: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):  # it is whole by now
        return any(path.stat().st_size > 1 << 20 for path in folder.glob("*.part"))
    return False
