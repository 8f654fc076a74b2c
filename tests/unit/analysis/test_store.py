from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.unit.analysis.results import layer, localization, neuron, score

from guider_ls.analysis.fingerprint import Fingerprint, Stamp
from guider_ls.analysis.store import Store, Stored, cache_folder


def stored(program: Path) -> Stored:
    inner = score((0, 0), 0.4, 1)
    found = localization(
        (layer((0,), "a", (layer((0, 0), "b"),)), layer((1,), "c")),
        (score((0,), 0.5, 1, inner=(inner,), top=(neuron(3),)), score((1,), None, None)),
    )
    stamps = (Stamp("/project/model.keras", 100, 1_700_000_000_123_456_789, "abc"),)
    return Stored(str(program), Fingerprint(found.inputs, stamps), 1700000000.5, found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


def the_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_a_result_comes_back_as_it_was(folder: Path) -> None:
    program = folder / "tr\u00e4in \U0001f600.py"
    Store(folder).save(stored(program))
    assert Store(folder).load(program) == stored(program)


def test_nothing_is_stored_at_first(folder: Path) -> None:
    assert Store(folder).load(folder / "train.py") is None
    assert not folder.exists()


def test_the_last_result_replaces_the_one_before(folder: Path) -> None:
    store, program = Store(folder), folder / "train.py"
    store.save(stored(program))
    store.save(stored(program))
    assert the_file(folder).suffix == ".json"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"schema": "0.1", "result": {}}',
        b'{"schema": "SCHEMA", "result": null}',
        b'{"schema": "SCHEMA", "result": {"program": "PROGRAM"}}',
        b"\xff\xfe",
    ],
)
def test_a_file_that_cannot_be_used_is_removed(folder: Path, content: bytes) -> None:
    store, program = Store(folder), folder / "train.py"
    store.save(stored(program))
    body = json.loads(the_file(folder).read_bytes())
    content = content.replace(b"SCHEMA", body["schema"].encode()).replace(b"PROGRAM", str(program).encode())
    the_file(folder).write_bytes(content)
    assert store.load(program) is None
    assert list(folder.iterdir()) == []


def test_a_truncated_file_is_removed(folder: Path) -> None:
    store, program = Store(folder), folder / "train.py"
    store.save(stored(program))
    whole = the_file(folder).read_bytes()
    the_file(folder).write_bytes(whole[: len(whole) // 2])
    assert store.load(program) is None


def test_the_oldest_results_go(folder: Path) -> None:
    store = Store(folder, limit=2)
    for number in range(3):
        store.save(stored(folder / f"{number}.py"))
        for age, file in enumerate(
            sorted(folder.iterdir(), key=lambda f: f.stat().st_mtime_ns, reverse=True)
        ):
            os.utime(file, ns=(0, (number - age) * 1_000_000_000))
    left = [number for number in range(3) if store.load(folder / f"{number}.py")]
    assert left == [1, 2]


def test_no_half_file_is_left_when_storing_fails(folder: Path) -> None:
    store, program = Store(folder), folder / "train.py"
    broken = stored(program)
    with pytest.raises(ValueError, match="JSON"):
        store.save(Stored(broken.program, broken.fingerprint, float("nan"), broken.localization))
    assert list(folder.iterdir()) == []


def test_the_cache_is_absolute_since_the_engine_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GUIDER_CACHE", "kept/here")
    assert cache_folder() == tmp_path / "kept" / "here"
