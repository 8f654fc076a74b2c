from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.project.records import data_state, model, program, record, state, write

from guider_engine.wire import Failure, Notice, Program
from guider_ls.errors import EnvironmentProblem, InputError, UsageError
from guider_ls.project.captures import (
    RECORD,
    Capture,
    Captures,
    changes,
    command_line,
    notices,
    source_copies,
    to_program,
)
from guider_ls.project.output import OUTPUT, Output, in_use
from guider_ls.project.settings import Settings

PYTHON = ("/usr/bin/python3",)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A program in a folder with letters beyond ASCII."""
    folder = tmp_path / "un projet à moi"
    folder.mkdir()
    (folder / "train.py").write_text("model.fit(x, y)\n")
    return folder / "train.py"


@pytest.fixture
def captures(tmp_path: Path) -> Captures:
    return Captures(tmp_path / "captures")


def made(captures: Captures, of: Program, *, started: float = 1_700_000_000.0) -> Path:
    folder = captures.new_folder(of, PYTHON)
    return write(folder, record(of, (model(folder, 0, "model"),), started=started))


# Finding


def test_a_capture_comes_back_as_it_was(captures: Captures, path: Path) -> None:
    of = program(path, "--lr", "0.1")
    folder = captures.new_folder(of, PYTHON)
    kept = record(of, (model(folder, 0, "model"), model(folder, 1, "other")), notices=(Notice("a-b", "c"),))
    write(folder, kept)
    found = captures.reusable(of, PYTHON)
    assert found == Capture(folder, kept)
    assert found is not None
    assert found.holds
    assert captures.newest(path, ("--lr", "0.1")) == found


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": ("--lr", "0.2")},
        {"folder": "/elsewhere"},
        {"epochs": 3},
        {"seconds": 60.0},
        {"legacy_keras": True},
    ],
)
def test_another_run_is_another_capture(captures: Captures, path: Path, change: dict[str, object]) -> None:
    made(captures, program(path))
    assert captures.reusable(program(path, **change), PYTHON) is None


def test_another_interpreter_is_another_run(captures: Captures, path: Path) -> None:
    made(captures, program(path))
    assert captures.reusable(program(path), ("/usr/bin/python3", "-X", "dev")) is None


def test_the_newest_is_that_of_the_same_program_and_arguments_however_it_was_run(
    captures: Captures, path: Path
) -> None:
    made(captures, program(path), started=1.0)
    newest = made(captures, program(path, epochs=3), started=3.0)
    made(captures, program(path, legacy_keras=True), started=2.0)
    made(captures, program(path, "--other"), started=4.0)
    found = captures.newest(path, ())
    assert found is not None
    assert found.folder == newest


def test_a_program_that_only_ran_with_arguments_is_found_where_none_are_named(
    captures: Captures, path: Path
) -> None:
    other = path.with_name("other.py")
    other.write_text("")
    made(captures, program(other, "--lr", "0.3"), started=3.0)
    latest = made(captures, program(path, "--lr", "0.2"), started=2.0)
    made(captures, program(path, "--lr", "0.1"), started=1.0)
    found = captures.newest(path, ())
    assert found is not None
    assert found.folder == latest
    assert captures.newest(path, ("--lr", "0.3")) is None
    assert captures.reusable(program(path), PYTHON) is None


def test_the_latest_of_the_same_run_counts(captures: Captures, path: Path) -> None:
    made(captures, program(path), started=2.0)
    made(captures, program(path), started=1.0)
    found = captures.reusable(program(path), PYTHON)
    assert found is not None
    assert found.record.started == 2.0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{}",
        b'{"program": 3, "models": "abc"}',
        b"[" * 100_000,
    ],
)
def test_a_record_that_cannot_be_used_is_none(captures: Captures, path: Path, content: bytes) -> None:
    folder = made(captures, program(path))
    (folder / RECORD).write_bytes(content)
    assert captures.newest(path, ()) is None


def test_a_truncated_record_is_none(captures: Captures, path: Path) -> None:
    folder = made(captures, program(path))
    whole = (folder / RECORD).read_bytes()
    (folder / RECORD).write_bytes(whole[: len(whole) // 2])
    assert captures.newest(path, ()) is None


def test_what_is_not_finished_is_none(captures: Captures, path: Path) -> None:
    folder = made(captures, program(path))
    (folder / RECORD).rename(folder / "capture.json.new")
    assert captures.newest(path, ()) is None


@pytest.mark.parametrize("name", ["model-0.keras", "tests-0.npz"])
def test_a_capture_without_its_files_is_none(captures: Captures, path: Path, name: str) -> None:
    (made(captures, program(path)) / name).unlink()
    assert captures.newest(path, ()) is None


def test_a_capture_that_was_moved_is_none(captures: Captures, path: Path) -> None:
    folder = made(captures, program(path))
    folder.rename(folder.with_name(folder.name + "x"))
    assert captures.newest(path, ()) is None


# Whether it holds


def test_a_source_that_changed(captures: Captures, path: Path) -> None:
    made(captures, program(path))
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    assert captures.reusable(program(path), PYTHON) is None
    found = captures.newest(path, ())
    assert found is not None
    assert (found.holds, found.changed) == (False, (str(path),))
    path.write_bytes(before)  # at another time, but with the same content
    assert captures.reusable(program(path), PYTHON) is not None


def test_data_that_changed_and_a_module_that_is_gone(tmp_path: Path, path: Path) -> None:
    data, module = tmp_path / "x.csv", tmp_path / "net.py"
    data.write_text("1,2\n")
    module.write_text("")
    of = record(
        program(path),
        (model(tmp_path, 0, "model"),),
        sources=(state(path), state(module)),
        data=(data_state(data),),
    )
    assert changes(of) == ()
    os.utime(data, ns=(1, 1))
    module.unlink()
    assert changes(of) == (str(module), str(data))


# Keeping


def test_old_captures_go_and_the_last_used_stay(tmp_path: Path) -> None:
    captures = Captures(tmp_path / "captures", most=3)
    folders = []
    for number in range(5):
        path = tmp_path / f"{number}.py"
        path.touch()
        folders.append(made(captures, program(path)))
        os.utime(folders[-1], (number, number))
    assert captures.newest(tmp_path / "1.py", ()) is not None  # used just now
    captures.prune()
    assert [n for n, folder in enumerate(folders) if folder.exists()] == [1, 3, 4]


def test_large_captures_go(tmp_path: Path) -> None:
    captures = Captures(tmp_path / "captures", most_bytes=3_000_000)
    folders = []
    for number in range(4):
        path = tmp_path / f"{number}.py"
        path.touch()
        folders.append(made(captures, program(path)))
        (folders[-1] / "tests-0.npz").write_bytes(bytes(1_000_000))
        os.utime(folders[-1], (number, number))
    captures.prune(keep=[folders[0]])
    assert [n for n, folder in enumerate(folders) if folder.exists()] == [0, 2, 3]


def test_of_the_same_run_two_stay(captures: Captures, path: Path) -> None:
    folders = [made(captures, program(path)) for _ in range(4)]
    for number, folder in enumerate(folders):
        os.utime(folder, (number, number))
    captures.prune()
    assert [folder.exists() for folder in folders] == [False, False, True, True]


def test_a_capture_in_the_making_is_not_removed_until_it_is_given_up(captures: Captures, path: Path) -> None:
    old = time.time() - 10_000
    young, running, given_up = (captures.new_folder(program(path), PYTHON) for _ in range(3))
    output = Output(running / OUTPUT, lambda _: None)
    for folder in (running, given_up):
        os.utime(folder, (old, old))
    captures.prune()
    assert [folder.exists() for folder in (young, running, given_up)] == [True, True, False]
    output.close()
    captures.prune()
    assert not running.exists()


def test_a_capture_that_another_editor_removes_meanwhile_is_no_failure(
    captures: Captures, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(captures, program(path))
    (folder / "sources" / "inner").mkdir(parents=True)
    rglob = Path.rglob

    def removed_meanwhile(self: Path, pattern: str) -> Iterator[Path]:
        for found in rglob(self, pattern):
            shutil.rmtree(folder, ignore_errors=True)
            yield found

    monkeypatch.setattr(Path, "rglob", removed_meanwhile)
    captures.prune()
    assert not folder.exists()


def test_a_capture_whose_process_lives_elsewhere_is_in_use(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from guider_ls.project.output import Output\n"
        "kept = Output(pathlib.Path(sys.argv[1]), print); print('ready', flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / OUTPUT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        assert in_use(tmp_path)
        other.kill()
        other.wait()
    assert not in_use(tmp_path)


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, path: Path) -> None:
    (tmp_path / "captures").write_text("a file")
    with pytest.raises(EnvironmentProblem, match="GUIDER_CACHE") as caught:
        Captures(tmp_path / "captures").new_folder(program(path), PYTHON)
    assert caught.value.code == "cache-unwritable"
    assert str(tmp_path / "captures") in caught.value.message


def test_what_is_printed_is_kept_whole(tmp_path: Path) -> None:
    told: list[bytes] = []
    output = Output(tmp_path / OUTPUT, told.append)
    output.feed(b"one\rtwo")
    output.only_to_file()
    output.feed(b"\x00\xff" * 500_000)
    output.close()
    output.feed(b"late")
    assert (tmp_path / OUTPUT).read_bytes() == b"one\rtwo" + b"\x00\xff" * 500_000
    assert told == [b"one\rtwo"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk")
def test_a_full_disk_ends_the_file_and_not_the_program() -> None:
    told: list[bytes] = []
    output = Output(Path("/dev/full"), told.append)
    output.feed(b"one")
    output.feed(b"two")
    assert told[1:] == [b"one", b"two"]
    assert b"No space left" in told[0]


# What is run


def test_the_settings_say_how_a_program_is_run(path: Path) -> None:
    (path.parent / "data").mkdir()
    settings = Settings(
        capture_arguments=("--small",),
        capture_folder="data",
        capture_epochs=2,
        capture_minutes=1.5,
        capture_legacy_keras=True,
    )
    root = path.parent
    assert to_program(path, root, settings, Path("/typed/here")) == Program(
        str(path), ("--small",), str(root / "data"), str(root), 2, 90.0, True
    )
    assert to_program(path, root, Settings(), Path("/typed/here")).folder == "/typed/here"
    assert to_program(path, root, Settings()).folder == str(root)


def test_a_folder_that_is_not_there(path: Path) -> None:
    with pytest.raises(UsageError, match=r"guider\.capture\.folder") as caught:
        to_program(path, path.parent, Settings(capture_folder="data"))
    assert caught.value.code == "capture-folder-missing"


def test_a_command_line_is_one_that_could_be_typed(path: Path) -> None:
    assert command_line(program(path, "--name", "a b", "")) == "train.py --name 'a b' ''"


# What is told


def capture(path: Path, folder: Path, *names: str, **of_record: object) -> Capture:
    models = tuple(model(folder, number, name) for number, name in enumerate(names or ("model",)))
    return Capture(folder, record(program(path), models, **of_record))


def told(found: Capture, name: str = "") -> dict[str, str]:
    chosen = found.model(name)
    return {notice.code: notice.message for notice in notices(found, chosen, (chosen.tests,))}


def test_a_whole_run_with_tests_needs_no_notice(path: Path, tmp_path: Path) -> None:
    assert told(capture(path, tmp_path)) == {}


def test_a_program_that_failed_says_where(path: Path, tmp_path: Path) -> None:
    failure = Failure("engine", "program-failed", "train.py, line 40 failed: KeyError: 'x'")
    said = told(capture(path, tmp_path, ending="failed", failure=failure))
    assert said["program-failed"].startswith("train.py, line 40 failed: KeyError: 'x'. What it trained")


def test_a_program_that_was_stopped(path: Path, tmp_path: Path) -> None:
    found = capture(path, tmp_path, ending="stopped")
    capped = dataclasses.replace(found.record.program, seconds=90.0)
    found = Capture(tmp_path, dataclasses.replace(found.record, program=capped))
    assert "after 1.5 minutes" in told(found)["program-stopped"]


def test_training_data_are_warned_of_unless_other_tests_are_used(path: Path, tmp_path: Path) -> None:
    trained = model(tmp_path, 0, "model", kind="training")
    found = Capture(tmp_path, record(program(path), (trained,)))
    assert "training data of fit, train.py line 9" in told(found)["training-data"]
    assert notices(found, trained, ("mine.npz",)) == ()


def test_of_several_models_the_others_are_named(path: Path, tmp_path: Path) -> None:
    found = capture(
        path, tmp_path, "a", "b", "c", "d", "e", notices=(Notice("several-models", "a is taken."),)
    )
    said = told(found, "b")["several-models"]
    assert "This is b; a, c, d and 1 more are captured, too" in said
    assert "--model" in said


def test_a_model_is_chosen_by_its_name(path: Path, tmp_path: Path) -> None:
    found = capture(path, tmp_path, "a", "b")
    assert (found.model().name, found.model("b").name) == ("a", "b")
    with pytest.raises(InputError, match="There is a, b") as caught:
        found.model("c")
    assert caught.value.code == "captured-model-unknown"


def test_a_capture_of_an_older_program_says_so(path: Path, tmp_path: Path) -> None:
    found = capture(path, tmp_path)
    older = Capture(found.folder, found.record, (str(path), "/project/net.py"))
    assert "train.py and net.py changed since" in told(older)["older-capture"]


def test_the_sources_as_they_ran_are_kept(path: Path, tmp_path: Path) -> None:
    found = capture(path, tmp_path)
    assert source_copies(found.record) == {str(path): tmp_path / "sources" / "0.py"}
