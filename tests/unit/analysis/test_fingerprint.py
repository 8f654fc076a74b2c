from __future__ import annotations

import asyncio
import dataclasses
import os
from pathlib import Path

import pytest

from guider_engine.wire import Inputs
from guider_ls.analysis.fingerprint import Fingerprint, Fingerprints, Stamp, files_of, settled

OLD = 1_600_000_000_000_000_000


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    for name in ("model.keras", "tests.npz"):
        (tmp_path / name).write_bytes(name.encode())
        os.utime(tmp_path / name, ns=(OLD, OLD))
    return Inputs(str(tmp_path / "model.keras"), (str(tmp_path / "tests.npz"),), str(tmp_path))


def test_the_same_content_is_the_same_whenever_it_was_written(inputs: Inputs) -> None:
    before = Fingerprints().take(inputs)
    content = Path(inputs.model).read_bytes()
    Path(inputs.model).write_bytes(content)
    assert Fingerprints().take(inputs).same(before)


@pytest.mark.parametrize("number", [0, 1])
def test_another_content_is_not(inputs: Inputs, number: int) -> None:
    fingerprints = Fingerprints()
    before = fingerprints.take(inputs)
    path = Path([inputs.model, *inputs.test_data][number])
    path.write_bytes(path.read_bytes()[::-1])
    assert not fingerprints.take(inputs).same(before)


@pytest.mark.parametrize("change", [{"formula": "dstar"}, {"seed": 8}, {"neurons_per_layer": None}])
def test_settings_matter(inputs: Inputs, change: dict[str, object]) -> None:
    fingerprints = Fingerprints()
    other = dataclasses.replace(inputs, **change)  # type: ignore[arg-type]
    assert not fingerprints.take(other).same(fingerprints.take(inputs))


def test_a_file_is_read_only_when_it_changed(inputs: Inputs) -> None:
    model = Path(inputs.model)
    stat = model.stat()
    known = Stamp(str(model), stat.st_size, stat.st_mtime_ns, "remembered")
    fingerprints = Fingerprints()
    fingerprints.remember(Fingerprint(inputs, (known,)))
    assert fingerprints.take(inputs).stamps[0].digest == "remembered"
    os.utime(model, ns=(OLD + 1, OLD + 1))
    assert fingerprints.take(inputs).stamps[0].digest != "remembered"


def test_a_missing_file_has_no_digest(inputs: Inputs) -> None:
    before = Fingerprints().take(inputs)
    Path(inputs.model).unlink()
    after = Fingerprints().take(inputs)
    assert after.stamps[0].digest == ""
    assert not after.same(before)


def test_a_model_folder_is_its_files(inputs: Inputs, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "a.data").write_bytes(b"1")
    inputs = dataclasses.replace(inputs, model=str(folder))
    before = Fingerprints().take(inputs)
    (folder / "variables" / "a.data").rename(folder / "variables" / "b.data")
    assert not Fingerprints().take(inputs).same(before)


@pytest.mark.parametrize("file", ["data/load.py", "data/load/__init__.py"])
def test_a_function_counts_as_its_module(inputs: Inputs, tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("def tests(): ...")
    inputs = dataclasses.replace(inputs, test_data=("data.load:tests",))
    assert files_of(inputs)[1] == tmp_path / file


async def test_files_that_rest_are_settled(inputs: Inputs) -> None:
    await settled(files_of(inputs))


async def test_a_file_that_grows_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(b"")
    waiting = asyncio.ensure_future(settled([path]))

    with path.open("ab") as file:
        for _ in range(20):
            file.write(b"x")
            file.flush()
            await asyncio.sleep(0.05)
        assert not waiting.done()
    await waiting
