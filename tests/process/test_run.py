"""``guider-ls localize --run``: a program is run as a shell runs it, and what it trains is localized."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from guider_ls.project.captures import RECORD

from .test_cli import DEADLINE, PYTHON, command, error_of, guider

NET = """\
from keras import layers


def hidden(units):
    return layers.Dense(units, activation="relu")
"""
PROGRAM = """\
import os, sys
import keras
import numpy as np
from keras import layers
from net import hidden

print("run in", os.getcwd(), "with", sys.argv[1:])
sys.stdout.write("a bar 1/2\\r")
sys.stdout.flush()
os.write(2, b"raw \\xff bytes\\n")
keras.utils.set_random_seed(3)
x = np.loadtxt("../data.csv", delimiter=",").astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("int64")

def make(units):
    model = keras.Sequential([keras.Input((2,)), hidden(units), layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model

first = make(3)
first.fit(x, y, epochs=5, verbose=0)
model = make(4)
model.fit(x[:40], y[:40], epochs=5, verbose=0, validation_data=(x[40:], y[40:]))
if "--fail" in sys.argv:
    {}["the missing key"]
print("the end")
"""
LINE_OF_FIT = 23


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose program reads data and is run in a folder of its own."""
    import numpy as np

    root = tmp_path_factory.mktemp("run") / "un projet à moi"
    (root / "work").mkdir(parents=True)
    (root / "pyproject.toml").write_text("")
    (root / "net.py").write_text(NET)
    (root / "train.py").write_text(PROGRAM)
    np.savetxt(root / "data.csv", np.random.default_rng(1).normal(size=(60, 2)), delimiter=",")
    return root


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def run(project: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return guider("localize", *PYTHON, "--run", *arguments, cwd=project / "work", GUIDER_CACHE=str(cache))


@pytest.fixture(scope="module")
def first(project: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    """The first run, with arguments and a cap."""
    return run(project, cache, "../train.py", "--epochs", "2", "--format", "json", "--", "--name", "a b")


def body_of(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    body: dict[str, Any] = json.loads(result.stdout)
    return body


def test_what_it_trains_is_localized(first: subprocess.CompletedProcess[str], project: Path) -> None:
    body = body_of(first)
    assert body["schema"] == 1
    assert body["program"] == str(project / "train.py")
    capture = body["capture"]
    assert (capture["model"], capture["ending"], capture["failure"]) == ("model", "finished", None)
    assert [(m["name"], m["epochs"]) for m in capture["models"]] == [("model", 2), ("first", 2)]
    assert capture["program"]["arguments"] == ["--name", "a b"]
    assert capture["program"]["folder"] == str(project / "work")
    assert capture["data_kind"] == "validation"
    assert capture["data"] == f"validation data of fit, train.py line {LINE_OF_FIT}"
    assert body["tests"]["total"] == 20
    (notice,) = [n for n in body["warnings"] if n["code"] == "several-models"]
    assert "This is model; first is captured, too" in notice["message"]
    assert "--model NAME" in notice["message"]


def test_its_output_is_passed_on_as_it_is(
    first: subprocess.CompletedProcess[str], project: Path, cache: Path
) -> None:
    said = f"run in {project / 'work'} with ['--name', 'a b']\na bar 1/2\nraw "
    assert said + "\\xff bytes\n" in first.stderr
    assert "the end" in first.stderr
    (folder,) = [f.parent for f in (cache / "captures").glob(f"*/{RECORD}")]
    kept = (folder / "output.txt").read_bytes()
    assert b"a bar 1/2\rraw \xff bytes\n" in kept
    assert b"the end\n" in kept


def test_what_holds_is_not_run_again(
    first: subprocess.CompletedProcess[str], project: Path, cache: Path
) -> None:
    arguments = ("../train.py", "--epochs", "2", "--format", "json")
    again = run(project, cache, *arguments, "--model", "first", "--", "--name", "a b")
    body = body_of(again)
    assert again.stderr.startswith("note: train.py --name 'a b' was captured at ")
    assert "--fresh runs it again" in again.stderr
    assert "the end" not in again.stderr
    assert body["capture"]["model"] == "first"
    assert body["capture"]["started"] == body_of(first)["capture"]["started"]
    assert "This is first; model is captured" in str(body["warnings"])

    wrong = run(project, cache, *arguments, "--model", "last", "--", "--name", "a b")
    assert (error_of(wrong), wrong.returncode) == ("captured-model-unknown", 3)

    # Without --run the same capture is found, whichever arguments it had where none are named, and each model of it.
    named = (*PYTHON, "train.py", "--model", "first", "--format", "json")
    found = guider("localize", *named, cwd=project, GUIDER_CACHE=str(cache))
    assert body_of(found)["capture"]["model"] == "first"
    checks = json.loads(guider("doctor", *named, cwd=project, GUIDER_CACHE=str(cache)).stdout)["checks"]
    (model,) = [check["message"] for check in checks if check["name"] == "model"]
    assert "(first, captured by running" in model
    (project / "pyproject.toml").write_text("[tool.guider.capture]\narguments = ['--name', 'a b']\n")
    arguments = (*PYTHON, "train.py", "--format", "json")
    found = guider("localize", *arguments, cwd=project, GUIDER_CACHE=str(cache))
    assert body_of(found)["capture"]["model"] == "model"

    def checked() -> dict[str, Any]:
        found = guider("doctor", *arguments, cwd=project, GUIDER_CACHE=str(cache))
        (check,) = [c for c in json.loads(found.stdout)["checks"] if c["name"] == "capture"]
        return dict(check)

    check = checked()
    assert (check["status"], check["holds"], check["models"]) == ("ok", True, ["model", "first"])
    (project / "net.py").write_text(NET + "\n")
    check = checked()
    assert (check["status"], check["changed"]) == ("warning", [str(project / "net.py")])
    (project / "net.py").write_text(NET)
    (project / "pyproject.toml").write_text("")


def test_a_program_that_fails_in_the_middle_is_a_ranking_with_a_warning(
    project: Path, tmp_path: Path
) -> None:
    result = run(project, tmp_path, "../train.py", "--epochs", "1", "--", "--fail")
    assert result.returncode == 0, result.stderr
    assert "KeyError: 'the missing key'" in result.stdout
    assert "[program-failed]" in result.stdout
    assert f"validation data of fit, train.py line {LINE_OF_FIT}" in result.stdout
    assert "net.py:5:12" in result.stdout


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        ("print('nothing')\n", "program-no-model", 3),
        ("import math\nmath.sqrt(-1)\n", "program-failed", 4),
        ("import os\nprint('last words', flush=True)\nos.abort()\n", "engine-crashed", 4),
        ("import keras\nx = (\n", "program-syntax", 3),
    ],
)
def test_a_program_that_gives_nothing(tmp_path: Path, text: str, code: str, status: int) -> None:
    (tmp_path / "train.py").write_text(text)
    cache = tmp_path / "cache"
    result = guider(
        "localize", *PYTHON, "--run", "train.py", "--format", "json", cwd=tmp_path, GUIDER_CACHE=str(cache)
    )
    body = json.loads(result.stdout)
    assert (body["error"]["code"], result.returncode) == (code, status)
    assert not (cache / "captures").exists() or list((cache / "captures").iterdir()) == []
    if code == "engine-crashed":
        assert "SIGABRT" in body["error"]["message"]
        assert "last words" in body["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train.py", "--run", "train.py"], "named once"),
        (["train.py", "--epochs", "3"], "--epochs says how the program is run"),
        (["train.py", "--fresh"], "--fresh says how"),
        (["--run", "train.py", "--epochs", "0"], "--epochs: found 0, expected a whole number from 1"),
        (["--run", "train.py", "--minutes", "-1"], "--minutes: found -1.0, expected a number above 0"),
        (["train.py", "--", "--small"], "nrecognized"),
        (["--run"], "expected one argument"),
    ],
)
def test_wrong_use(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "train.py").write_text("")
    result = guider("localize", "--format", "json", *arguments, cwd=tmp_path)
    assert (error_of(result), result.returncode) == ("usage", 2)
    assert said in result.stderr


def test_the_options_of_the_program_are_its_own(tmp_path: Path) -> None:
    """Ours after the two dashes are the program's: no JSON is wanted here."""
    (tmp_path / "train.py").write_text("import sys\nsys.exit(' '.join(sys.argv[1:]))\n")
    result = guider(
        "localize",
        *PYTHON,
        "--run=train.py",
        "--",
        "--format",
        "json",
        "--",
        "x",
        cwd=tmp_path,
        GUIDER_CACHE=str(tmp_path / "cache"),
    )
    assert result.returncode == 4
    assert result.stdout == ""
    assert "--format json -- x" in result.stderr


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="whoever may write everywhere")
def test_a_cache_that_is_read_only(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "cache").mkdir(mode=0o500)
    result = guider(
        "localize",
        *PYTHON,
        "--run",
        "train.py",
        "--format",
        "json",
        cwd=tmp_path,
        GUIDER_CACHE=str(tmp_path / "cache"),
    )
    assert (error_of(result), result.returncode) == ("cache-unwritable", 4)


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals and signals there")
def test_at_a_terminal_progress_and_output_do_not_mix_and_ctrl_c_ends_all(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('pid', os.getpid())\nprint('half a line', end='', flush=True)\n"
        "while True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        pass\n"
    )
    import pty  # there is none on Windows

    master, slave = pty.openpty()
    process = subprocess.Popen(
        [command(), "localize", *PYTHON, "--run", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "GUIDER_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=slave,
        start_new_session=True,
        # A shell that runs the tests in its background has them ignore the signal.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    os.close(slave)
    with process:
        shown = b""
        deadline = time.monotonic() + DEADLINE
        while b"half a line" not in shown and time.monotonic() < deadline:
            shown += os.read(master, 4096)
        lines = shown.decode().replace("\r\n", "\n").split("\n")
        assert lines[-1] == "half a line"
        pid = int(lines[-2].rpartition("\r")[2].removeprefix("pid "))
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 130
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        shown = b""
        try:
            while data := os.read(master, 4096):
                shown += data
        except OSError:  # the other end is closed
            pass
        assert shown.decode().endswith("Interrupted.\r\n")
        assert process.stdout is not None
        assert process.stdout.read() == b""
