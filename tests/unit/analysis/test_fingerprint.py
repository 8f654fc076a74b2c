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


def test_the_modules_of_functions_count(inputs: Inputs, tmp_path: Path) -> None:
    for name in ("nets", "layers", "judges"):
        (tmp_path / f"{name}.py").write_text("")
    coded = dataclasses.replace(
        inputs, model="", load="nets:build", custom_objects="layers", oracle="judges:near"
    )
    assert [path.name for path in files_of(coded)] == ["tests.npz", "nets.py", "layers.py", "judges.py"]
    before = Fingerprints().take(coded)
    (tmp_path / "judges.py").write_text("def near(): ...")
    assert not Fingerprints().take(coded).same(before)
    # One that is installed somewhere is no file of the project.
    assert files_of(dataclasses.replace(inputs, oracle="numpy:all")) == files_of(inputs)


def test_a_large_folder_is_looked_at_without_reading_its_files(inputs: Inputs, tmp_path: Path) -> None:
    folder = tmp_path / "pictures" / "cat"
    folder.mkdir(parents=True)
    for number in range(300):
        (folder / f"{number}.png").write_bytes(b"one")
        os.utime(folder / f"{number}.png", ns=(OLD, OLD))
    pictures = dataclasses.replace(inputs, test_data=(str(tmp_path / "pictures"),))
    before = Fingerprints().take(pictures)
    (folder / "7.png").write_bytes(b"two")
    os.utime(folder / "7.png", ns=(OLD, OLD))
    assert Fingerprints().take(pictures).same(before)  # its content was not read
    os.utime(folder / "7.png", ns=(OLD + 1, OLD + 1))
    assert not Fingerprints().take(pictures).same(before)


@pytest.mark.parametrize("files", [3, 300])
def test_a_renamed_file_of_a_folder_is_seen(inputs: Inputs, tmp_path: Path, files: int) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(files):
        (folder / f"{number}.png").write_bytes(b"one")
        os.utime(folder / f"{number}.png", ns=(OLD, OLD))
    os.utime(folder, ns=(OLD, OLD))
    pictures = dataclasses.replace(inputs, test_data=(str(folder),))
    fingerprints = Fingerprints()
    before = fingerprints.take(pictures)
    (folder / "1.png").rename(folder / "x.png")
    assert not fingerprints.take(pictures).same(before)


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
