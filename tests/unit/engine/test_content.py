"""Keys follow the content of what a result depends on, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from guider_engine import content
from guider_engine.content import Contents, Keys
from guider_engine.errors import CancelRequested
from guider_engine.wire import Inputs


def quiet() -> None:
    """Does not stop."""


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    (tmp_path / "m.keras").write_bytes(b"model")
    (tmp_path / "t.npz").write_bytes(b"tests")
    return Inputs(str(tmp_path / "m.keras"), (str(tmp_path / "t.npz"),), str(tmp_path))


def keys(inputs: Inputs, **changes: Any) -> Keys:
    return Contents().keys(dataclasses.replace(inputs, **changes), quiet)


def age(path: Path, seconds: float = 60) -> None:
    """Make a file look as if it had not been changed for some time."""
    os.utime(path, (time.time() - seconds,) * 2)


def test_same_content_elsewhere_has_the_same_keys(inputs: Inputs, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "m.keras").write_bytes(b"model")
    (copy / "t.npz").write_bytes(b"tests")
    there = keys(inputs, model=str(copy / "m.keras"), test_data=(str(copy / "t.npz"),), root=str(copy))
    assert there == keys(inputs)
    assert None not in dataclasses.astuple(there)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (
            {"formula": "dstar", "aggregation": "mean", "weighted": False},
            {"code", "weights", "tests", "counted"},
        ),
        ({"threshold": 0.2}, {"code", "weights", "tests"}),
        ({"neurons_per_layer": None}, {"code", "weights", "tests"}),
        ({"neuron": "channel"}, {"code", "weights", "tests"}),
        ({"recurrent": "last"}, {"code", "weights", "tests"}),
        ({"tolerance": "5%"}, {"code", "weights", "tests"}),
        ({"accuracy": 0.5}, {"code", "weights", "tests"}),
        ({"quantile": 0.5}, {"code", "weights", "tests"}),
        ({"task": "regression"}, {"code", "weights"}),
        ({"seed": 8}, {"code", "weights"}),
        ({"label": "target"}, {"code", "weights"}),
        ({"image_scale": 0.5}, {"code", "weights"}),
        ({"max_tests": 10}, {"code", "weights"}),
        ({"safe_mode": False}, {"weights", "tests"}),
    ],
    ids=lambda value: str(next(iter(value))) if isinstance(value, dict) else "",
)
def test_option_changes_what_depends_on_it(inputs: Inputs, change: dict[str, Any], same: set[str]) -> None:
    before, after = keys(inputs), keys(inputs, **change)
    assert {
        f.name for f in dataclasses.fields(Keys) if getattr(before, f.name) == getattr(after, f.name)
    } == same


def test_every_option_is_part_of_a_key_or_of_the_ranking(inputs: Inputs) -> None:
    other: dict[str, Any] = {"neurons_per_layer": 3, "max_tests": 3, "accuracy": 0.3}
    kinds: dict[type, Any] = {str: "os:path", bool: False, float: 0.123, int: 3}
    for field in dataclasses.fields(Inputs):
        if field.name not in content.RANKING | {"root"}:
            old = getattr(inputs, field.name)
            new = other.get(field.name) or (("x",) if isinstance(old, tuple) else kinds[type(old)])
            assert keys(inputs, **{field.name: new}).counted != keys(inputs).counted, field.name


def test_environment_of_keras_is_part_of_the_code(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(inputs)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert keys(inputs).code != before.code
    assert keys(inputs).tests == before.tests


@pytest.mark.parametrize(
    "change",
    [
        {"load": "program:load"},
        {"model": "program:model"},
        {"test_data": ("program:tests",)},
        {"test_data": ()},
    ],
    ids=str,
)
def test_what_a_function_returns_cannot_be_known(inputs: Inputs, change: dict[str, Any]) -> None:
    found = keys(inputs, **change)
    assert found.counted is None
    assert (found.weights is None) == ("test_data" not in change)


def test_missing_files_and_empty_names_have_no_key(inputs: Inputs) -> None:
    assert keys(inputs, model="").weights is None
    assert keys(inputs, model=inputs.model + "x").weights is None
    assert keys(inputs, test_data=(inputs.model, inputs.model + "x")).tests is None


def test_change_of_equal_size_at_the_same_time_is_seen(inputs: Inputs) -> None:
    contents, path = Contents(), Path(inputs.model)
    before, stat = contents.keys(inputs, quiet), path.stat()
    path.write_bytes(b"MODEL")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after = contents.keys(inputs, quiet)
    assert (after.weights != before.weights, after.tests == before.tests) == (True, True)


def test_settled_file_is_read_once(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = content._content

    def note(path: Path, *rest: Any) -> str | None:
        read.append(path.name)
        return real(path, *rest)

    monkeypatch.setattr(content, "_content", note)
    contents = Contents()
    age(Path(inputs.model))
    first = contents.keys(inputs, quiet)
    assert contents.keys(inputs, quiet) == first
    assert read == ["m.keras", "t.npz", "t.npz"]  # the tests have just been written
    Path(inputs.model).write_bytes(b"other")
    age(Path(inputs.model), 30)
    assert contents.keys(inputs, quiet).weights != first.weights


def test_touched_file_has_the_same_key(inputs: Inputs) -> None:
    contents = Contents()
    before = contents.keys(inputs, quiet)
    age(Path(inputs.model), 1_000)
    assert contents.keys(inputs, quiet) == before


def test_file_that_changes_while_it_is_read_has_no_key(inputs: Inputs) -> None:
    path, calls = Path(inputs.model), 0

    def grow() -> None:
        nonlocal calls
        calls += 1
        with path.open("ab") as file:
            file.write(b"more")

    assert Contents().item(str(path), grow) is None
    assert calls > 0


def archive(
    path: Path, date: str = "monday", weights: bytes = b"weights", compression: int = zipfile.ZIP_STORED
) -> str:
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("metadata.json", json.dumps({"keras_version": "3.0", "date_saved": date}))
        file.writestr("model.weights.h5", weights)
    found = Contents().item(str(path), quiet)
    assert found is not None
    return found


def test_archive_of_keras_is_known_by_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    before = archive(path)
    assert archive(path, date="sunday") == before
    assert archive(path, weights=b"WEIGHTS") != before
    assert archive(tmp_path / "m.zip") != before
    assert archive(path, weights=bytes(10**6), compression=zipfile.ZIP_DEFLATED) != before


@pytest.mark.parametrize("size", [0, 20, 100])
def test_half_an_archive_is_known_by_its_bytes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "m.keras"
    seen = {archive(path)}
    whole = path.read_bytes()
    path.write_bytes(whole[:size])
    seen.add(str(Contents().item(str(path), quiet)))
    path.write_bytes(whole[:size] + b"?")
    seen.add(str(Contents().item(str(path), quiet)))
    assert len(seen) == 3


def test_folder_is_known_by_names_and_content_of_all_that_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    contents = Contents()

    def key() -> str | None:
        return contents.item(str(folder), quiet)

    before = key()
    assert before is not None
    (folder / "dog/1.png").rename(folder / "dog/2.png")
    moved = key()
    (folder / "dog/2.png").write_bytes(b"dog/2.png")
    changed = key()
    (folder / "dog/2.png").unlink()
    assert len({before, moved, changed, key()}) == 4


def test_folder_is_followed_through_links_and_not_round_in_them(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "images", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "1.png").write_bytes(b"1")
    try:
        (folder / "cat").symlink_to(elsewhere, target_is_directory=True)
        (folder / "round").symlink_to(folder, target_is_directory=True)
    except OSError:
        pytest.skip("links are not allowed here")
    before = Contents().item(str(folder), quiet)
    (elsewhere / "1.png").write_bytes(b"2")
    assert None is not before != Contents().item(str(folder), quiet)


def test_large_folder_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "LARGE", 1_000)
    for i in range(content._SAMPLES + 1):
        (tmp_path / f"{i}.png").write_bytes(b"x" * 100)
    monkeypatch.setattr(content, "_sampled", None)
    before = Contents().item(str(tmp_path), quiet)
    (tmp_path / "0.png").write_bytes(b"y" * 101)
    assert None is not before != Contents().item(str(tmp_path), quiet)


def test_large_file_is_known_by_its_state_and_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        file.truncate(content.LARGE + 1)
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1

    before = Contents().item(str(path), count)
    assert before is not None
    assert seen < 100
    stat = path.stat()
    with path.open("r+b") as opened:
        opened.seek(-1, os.SEEK_END)
        opened.write(b"x")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert Contents().item(str(path), quiet) != before


def test_cancel_stops_reading(inputs: Inputs) -> None:
    def stop() -> None:
        raise CancelRequested

    with pytest.raises(CancelRequested):
        Contents().keys(inputs, stop)


def test_record_of_a_capture_is_part_of_the_model(inputs: Inputs, tmp_path: Path) -> None:
    before = keys(inputs)
    (tmp_path / "capture.json").write_text("{}")
    with_record = keys(inputs)
    assert None is not with_record.weights != before.weights
    Path(inputs.model).unlink()  # one that could not be saved
    assert keys(inputs).weights not in (None, with_record.weights)


@pytest.mark.parametrize("field", ["custom_objects", "oracle"])
def test_code_of_the_user_is_known_by_its_sources(inputs: Inputs, tmp_path: Path, field: str) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layers.py").write_text(
        "from . import helper\nfrom .deep.down import f\nimport alone, numpy\n"
    )
    (package / "helper.py").write_text("import pack.layers\n")
    (package / "unrelated.py").write_text("")
    (package / "deep").mkdir()
    (package / "deep" / "down.py").write_text("def f(): ...\n")
    (tmp_path / "alone.py").write_text("not Python at all")

    def key() -> str | None:
        return keys(inputs, **{field: "pack.layers:Thing"}).counted

    seen = [key()]
    for name in ("__init__.py", "layers.py", "helper.py", "deep/down.py", "../alone.py"):
        path = package / name
        path.write_text(path.read_text() + "\n# edited\n")
        seen.append(key())
    assert None not in seen
    assert len(set(seen)) == len(seen)
    (package / "unrelated.py").write_text("# edited\n")
    assert key() == seen[-1]


def test_code_that_is_not_there_is_not_known(inputs: Inputs) -> None:
    found = keys(inputs, custom_objects="no_such_module_anywhere")
    assert (found.code, found.counted) == (None, None)
    assert found.tests is not None


def test_installed_package_is_known(inputs: Inputs) -> None:
    assert keys(inputs, custom_objects="json").code not in (None, keys(inputs).code)
