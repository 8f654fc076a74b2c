"""The command line as a shell runs it, with a real model in a real interpreter."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from guider_ls import __version__

DEADLINE = 300
PYTHON = ("--python", sys.executable)
PROGRAM = '''\
# -*- coding: utf-8 -*-
"""Un modèle 😀 whose tests fail in part."""
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
model = keras.Sequential(name="tiny")
model.add(keras.Input((4,)))
model.add(layers.Dense(8, activation="relu", name="hidden"))
for width in (6, 5):
    model.add(layers.Dense(width, activation="relu"))
mark = "😀"; model.add(layers.Dense(3, activation="softmax"))
model.compile(loss="sparse_categorical_crossentropy")

x = np.random.default_rng(1).normal(size=(60, 4)).astype("float32")
y = model.predict(x, verbose=0).argmax(axis=1)
y[:20] = (y[:20] + 1) % 3
model.save("model.keras")
np.savez("test.npz", x=x, y=y)
'''


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Spectra that were kept by other runs must not answer for these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUIDER_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def guider(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=DEADLINE,
        check=False,
    )


def command() -> str:
    found = shutil.which("guider-ls", path=str(Path(sys.executable).parent))
    assert found, "guider-ls is not installed beside the interpreter"
    return found


def error_of(result: subprocess.CompletedProcess[str]) -> str:
    """The code of the error that a run with ``--format json`` ended with."""
    assert "Traceback" not in result.stderr
    body = json.loads(result.stdout)
    assert body["schema"] == 1
    assert f"[{body['error']['code']}]" in result.stderr
    assert body["error"]["message"]
    return str(body["error"]["code"])


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose program was run."""
    root = tmp_path_factory.mktemp("cli") / "un projet à moi"
    root.mkdir()
    (root / "train.py").write_text(PROGRAM, encoding="utf-8")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "train.py"], cwd=root, env=environment, check=True, timeout=DEADLINE)
    return root


@pytest.fixture
def project(trained: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(trained, tmp_path / "un projet à moi"))


@pytest.fixture(scope="session")
def ranking(trained: Path) -> dict[str, Any]:
    """The JSON of the program's localization."""
    result = guider("localize", "train.py", *PYTHON, "--format", "json", cwd=trained)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    body: dict[str, Any] = json.loads(result.stdout)
    return body


# localize


def test_json_is_the_contract(ranking: dict[str, Any], trained: Path) -> None:
    assert ranking["schema"] == 1
    assert (ranking["method"], ranking["formula"], ranking["aggregation"]) == (
        "guider",
        "ochiai",
        "mean-gini",
    )
    assert ranking["outcome"] == "ranking"
    assert ranking["task"] == "classification"
    assert ranking["tests"] == {"total": 60, "passed": 40, "failed": 20, "available": None}
    layers = ranking["layers"]
    assert [layer["index"] for layer in layers] == list(range(len(layers)))
    assert [layer["class_name"] for layer in layers] == ["Dense"] * 4
    assert sorted(layer["rank"] for layer in layers)[0] == 1
    assert all(0 <= layer["score"] <= 1 for layer in layers)
    assert ranking["inputs"]["model"] == str(trained / "model.keras")
    assert ranking["inputs"]["test_data"] == [str(trained / "test.npz")]
    assert {"keras", "tensorflow", "numpy"} <= set(ranking["versions"])


def test_sites_count_from_one_and_in_code_points(ranking: dict[str, Any], trained: Path) -> None:
    lines = PROGRAM.splitlines()
    for layer in ranking["layers"]:
        (site,) = layer["sites"]
        assert site["file"] == str(trained / "train.py")
        assert site["line"] == site["end_line"]
        assert lines[site["line"] - 1][site["column"] - 1 : site["end_column"] - 1].startswith(
            "layers.Dense("
        )
        assert site["reason"]
    assert [layer["sites"][0]["line"] for layer in ranking["layers"]] == [10, 12, 12, 13]


def test_text_for_a_person(ranking: dict[str, Any], trained: Path) -> None:
    result = guider("localize", *PYTHON, "train.py", "--formula", "dstar", "--unweighted", cwd=trained)
    assert (result.returncode, result.stderr) == (0, "")
    assert "60: 40 passed, 20 failed" in result.stdout
    assert "D*, mean × (1 − Gini), unweighted" in result.stdout
    assert "train.py:13:23" in result.stdout
    assert 'model.add(layers.Dense(8, activation="relu", name="hidden"))' in result.stdout
    assert "\x1b" not in result.stdout


def test_a_model_without_a_program(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.sarif"
    result = guider(
        "localize",
        *PYTHON,
        *("--model", str(trained / "model.keras"), "--test-data", str(trained / "test.npz")),
        *("--format", "sarif", "--output", str(out)),
        cwd=tmp_path,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    log = json.loads(out.read_text(encoding="utf-8"))
    assert (log["version"], log["runs"][0]["results"]) == ("2.1.0", [])
    assert [path.name for path in tmp_path.iterdir()] == ["out.sarif"]


def test_options_go_over_the_project_file(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        "[tool.guider]\nprogram = 'train.py'\nformula = 'op2'\nseed = 5\nthreshold = 'low'\nneurons = 3\n",
        encoding="utf-8",
    )
    (project / "sub").mkdir()
    result = guider(
        "localize",
        *PYTHON,
        *("--format", "json", "--seed", "9", "--neurons-per-layer", "all"),
        cwd=project / "sub",
    )
    assert result.returncode == 0, result.stderr
    body = json.loads(result.stdout)
    assert body["program"] == str(project / "train.py")
    inputs = body["inputs"]
    assert (inputs["formula"], inputs["seed"], inputs["threshold"]) == ("op2", 9, 0.1)
    assert inputs["neurons_per_layer"] is None
    warnings = result.stderr.splitlines()
    assert warnings[0].startswith('warning: pyproject.toml [tool.guider], threshold: found "low", expected')
    assert "neurons: no such setting" in warnings[1]
    assert len(warnings) == 2


def test_no_failing_test_is_no_error(project: Path) -> None:
    (project / "good.py").write_text(
        "import keras\nimport numpy as np\ndef load():\n"
        "    x = np.load('test.npz')['x']\n"
        "    return x, keras.models.load_model('model.keras').predict(x).argmax(axis=1)\n",
        encoding="utf-8",
    )
    result = guider("localize", "train.py", *PYTHON, "--test-data", "good:load", cwd=project)
    assert result.returncode == 0, result.stderr
    assert "No failure signal, so no layer is ranked" in result.stdout
    assert "[no-failing-test]" in result.stdout
    assert "rank  " not in result.stdout


def test_a_table_with_labels_in_a_column(project: Path, ranking: dict[str, Any]) -> None:
    with np.load(project / "test.npz") as tests:
        rows = np.column_stack([tests["x"], tests["y"]])
    header = "a,b,quality,c,d"
    np.savetxt(
        project / "table.csv", rows[:, [0, 1, 4, 2, 3]], delimiter=",", header=header, comments="", fmt="%.9g"
    )
    options = ("--test-data", "table.csv", "--label", "quality", "--neuron", "channel")
    result = guider("localize", "train.py", *PYTHON, *options, "--format", "json", cwd=project)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["tests"] == ranking["tests"]
    assert [layer["score"] for layer in found["layers"]] == pytest.approx(
        [layer["score"] for layer in ranking["layers"]]
    )
    assert (found["inputs"]["label"], found["inputs"]["neuron"]) == ("quality", "channel")
    assert "quality" in found["tests_read"]


def test_only_some_of_the_tests(project: Path) -> None:
    options = ("--max-tests", "30", "--format", "json")
    result = guider("localize", "train.py", *PYTHON, *options, cwd=project)
    assert result.returncode == 0, result.stderr
    tests = json.loads(result.stdout)["tests"]
    assert (tests["total"], tests["available"]) == (30, 60)


# What cannot be used


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["train.py", "--formula", "x"], "usage", 2),
        (["train.py", "--neurons-per-layer", "0"], "usage", 2),
        (["train.py", "--threshold", "nan"], "usage", 2),
        (["train.py", "--tolerance", "near"], "usage", 2),
        (["train.py", "--accuracy", "90"], "usage", 2),
        (["train.py", "--quantile", "0"], "usage", 2),
        (["train.py", "--max-tests", "0"], "usage", 2),
        (["train.py", "--image-scale", "-1"], "usage", 2),
        (["train.py", "--load", "nets.py"], "usage", 2),
        (["train.py", "--oracle", "judge"], "usage", 2),
        (["train.py", "--neuron", "filter"], "usage", 2),
        (["train.py", "--test-data", "a.npy", "b.npy", "c.npy"], "usage", 2),
        (["train.py", "--method", "deepfault"], "usage", 2),
        (["train.py", "--run", "train.py"], "usage", 2),
        (["train.py", "--output", "nowhere/out.json"], "output-unwritable", 2),
        (["train.py", "--output", "train.py/out.json"], "output-unwritable", 2),
        (["train.py", "--output", "."], "output-unwritable", 2),
        (["train.py", "--target", "x"], "target-unknown", 2),
        (["trian.py"], "program-missing", 3),
        (["."], "program-unreadable", 3),
        (["train.py", "--model", "modle.keras"], "model-missing", 3),
        (["train.py", "--test-data", "tset.npz"], "test-data-missing", 3),
        (["--model", "model.keras"], "target-missing", 3),
        ([], "target-missing", 3),
        (["train.py", "--python", "no-such-python"], "interpreter-missing", 4),
    ],
)
def test_wrong_use_is_explained_at_once(
    trained: Path, arguments: Sequence[str], code: str, status: int
) -> None:
    result = guider("localize", *arguments, "--format", "json", cwd=trained)
    assert (error_of(result), result.returncode) == (code, status)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"import keras\nmodel = keras.Sequential([\n", "program-syntax"),
        ("import keras  # é\n".encode("latin-1"), "program-encoding"),
        (b"# -*- coding: klingon -*-\nimport keras\n", "program-encoding"),
    ],
)
def test_programs_that_are_not_text_or_not_python(
    trained: Path, tmp_path: Path, text: bytes, code: str
) -> None:
    (tmp_path / "train.py").write_bytes(text)
    result = guider("localize", "train.py", "--format", "json", cwd=tmp_path)
    assert (error_of(result), result.returncode) == (code, 3)
    if code == "program-syntax":
        assert result.stderr.startswith("error: train.py: Line ")


def test_what_an_option_says_is_reported_as_the_option(trained: Path) -> None:
    result = guider("localize", "train.py", "--python", "no-such-python", cwd=trained)
    assert "option --python: no-such-python" in result.stderr
    assert "guider.interpreter" not in result.stderr


def test_a_reader_of_sarif_gets_the_error_as_sarif(tmp_path: Path) -> None:
    result = guider("localize", "--format", "sarif", cwd=tmp_path)
    assert result.returncode == 3
    (run,) = json.loads(result.stdout)["runs"]
    (invocation,) = run["invocations"]
    (said,) = invocation["toolExecutionNotifications"]
    assert (invocation["executionSuccessful"], said["level"]) == (False, "error")
    assert said["descriptor"]["id"] == "guider/target-missing"
    assert "results" not in run


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("model.keras", b"", "model-damaged"),
        ("model.keras", b"PK\x03\x04 cut off", "model-damaged"),
        ("model.h5", b"not HDF5", "model-damaged"),
        ("model.txt", b"a model", "model-format"),
    ],
)
def test_models_that_are_none(trained: Path, tmp_path: Path, name: str, content: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(content)
    model = str(tmp_path / name)
    result = guider("localize", "train.py", *PYTHON, "--model", model, "--format", "json", cwd=trained)
    assert (error_of(result), result.returncode) == (code, 3)


def test_a_truncated_model(project: Path) -> None:
    whole = (project / "model.keras").read_bytes()
    (project / "model.keras").write_bytes(whole[: len(whole) // 2])
    result = guider("localize", "train.py", *PYTHON, "--format", "json", cwd=project)
    assert (error_of(result), result.returncode) == ("model-damaged", 3)


def test_tests_that_do_not_fit(project: Path) -> None:
    (project / "odd.py").write_text(
        "import numpy as np\ndef load():\n    return np.zeros((8, 4), 'float32'), np.zeros(7)\n",
        encoding="utf-8",
    )
    result = guider(
        "localize", "train.py", *PYTHON, "--test-data", "odd:load", "--format", "json", cwd=project
    )
    assert (error_of(result), result.returncode) == ("test-data-shape", 3)


def test_the_users_code_is_quoted(project: Path) -> None:
    (project / "broken.py").write_text("def load():\n    return 1 / 0  # here\n", encoding="utf-8")
    result = guider(
        "localize", "train.py", *PYTHON, "--test-data", "broken:load", "--format", "json", cwd=project
    )
    assert result.returncode == 4
    assert json.loads(result.stdout)["error"]["code"] == "user-code"
    assert "ZeroDivisionError" in result.stderr
    assert "return 1 / 0  # here" in result.stderr


def test_an_interpreter_without_tensorflow(project: Path) -> None:
    venv.create(project / ".venv", with_pip=False, symlinks=os.name == "posix")
    environment = {"VIRTUAL_ENV": ""}
    result = guider("localize", "train.py", "--format", "json", cwd=project, **environment)
    assert (error_of(result), result.returncode) == ("tensorflow-missing", 4)
    assert ".venv" in json.loads(result.stdout)["error"]["message"]
    result = guider("doctor", "train.py", "--format", "json", cwd=project, **environment)
    assert result.returncode == 4
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["interpreter"]["source"] == ".venv in the folder"
    assert checks["packages"]["status"] == "warning"
    assert (checks["loading"]["status"], checks["loading"]["code"]) == ("error", "tensorflow-missing")


# map


@pytest.mark.parametrize(
    ("encoding", "end"), [("utf-8", "\n"), ("utf-8", "\r\n"), ("utf-8-sig", "\r\n"), ("latin-1", "\n")]
)
def test_map_reads_programs_as_python_does(tmp_path: Path, encoding: str, end: str) -> None:
    cookie = f"# -*- coding: {encoding.removesuffix('-sig')} -*-\n"
    text = cookie + 'from keras import layers\né = "é"; a = layers.Dense(3)\n'
    (tmp_path / "train.py").write_bytes(text.replace("\n", end).encode(encoding))
    result = guider("map", "train.py", "--format", "json", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    (site,) = json.loads(result.stdout)["sites"]
    assert (site["line"], site["column"], site["end_column"]) == (3, 14, 29)
    assert (site["qualified_name"], site["arguments"]) == ("keras.layers.Dense", {"units": 3})


def test_map_with_a_model(trained: Path) -> None:
    result = guider("map", "train.py", *PYTHON, "--model", "model.keras", cwd=trained)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("train.py:10:11"))
    assert "→ layer 0 hidden (Dense): " in lines[at + 1]
    assert "model.keras (model, line 19)" in result.stdout


def test_map_with_a_function_that_builds_the_model(tmp_path: Path) -> None:
    program = """\
import keras


@keras.saving.register_keras_serializable("mine")
class Twice(keras.layers.Layer):
    def call(self, x):
        return 2 * x


def build():
    model = keras.Sequential(name="net")
    model.add(keras.Input((3,)))
    model.add(keras.layers.Dense(2, name="first"))
    model.add(Twice(name="second"))
    return model


if __name__ == "__main__":
    build().save("net.keras")
"""
    (tmp_path / "net.py").write_text(program, encoding="utf-8")
    options = ("--format", "json", *PYTHON)
    loaded = guider("map", "net.py", "--load", "net:build", *options, cwd=tmp_path)
    assert loaded.returncode == 0, loaded.stderr
    sites = json.loads(loaded.stdout)["sites"]
    assert [[layer["name"] for layer in site["layers"]] for site in sites][-2:] == [["first"], ["second"]]
    subprocess.run([sys.executable, "net.py"], cwd=tmp_path, check=True, timeout=DEADLINE)
    alone = guider("map", "net.py", "--model", "net.keras", *options, cwd=tmp_path)
    assert (error_of(alone), alone.returncode) == ("custom-object-missing", 3)
    given = guider("map", "net.py", "--model", "net.keras", "--custom-objects", "net", *options, cwd=tmp_path)
    assert given.returncode == 0, given.stderr
    assert json.loads(given.stdout)["sites"] == sites


def test_map_names_the_module_that_a_layer_is_made_in(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(
        "import keras\n\n\ndef build():\n    return keras.Sequential([keras.layers.Dense(3)])\n",
        encoding="utf-8",
    )
    (tmp_path / "train.py").write_text("from nets import build\n\nmodel = build()\n", encoding="utf-8")
    (site,) = json.loads(guider("map", "train.py", "--format", "json", cwd=tmp_path).stdout)["sites"]
    assert (Path(site["file"]).name, site["line"], site["column"]) == ("nets.py", 5, 30)
    lines = guider("map", "train.py", cwd=tmp_path).stdout.splitlines()
    assert any(line.startswith("nets.py:5:30  Dense(units=3)") for line in lines), lines


def test_map_needs_neither_engine_nor_server(trained: Path) -> None:
    code = (
        "import sys; from guider_ls.cli import main; status = main(sys.argv[1:]); "
        "print(sorted({'pygls', 'lsprotocol', 'numpy', 'tensorflow', 'keras'} & set(sys.modules)), status)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, "map", "train.py"],
        cwd=trained,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        timeout=DEADLINE,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == "[] 0"


# doctor


def test_doctor_says_what_would_be_used(trained: Path) -> None:
    result = guider(
        "doctor", "train.py", "--python", f"{sys.executable} -X utf8", "--format", "json", cwd=trained
    )
    assert result.returncode == 0, result.stdout
    body = json.loads(result.stdout)
    assert body["ok"] is True
    checks = {check["name"]: check for check in body["checks"]}
    assert checks["model"]["path"] == str(trained / "model.keras")
    assert "train.py, line 19" in checks["model"]["message"]
    assert checks["test set"]["paths"] == [str(trained / "test.npz")]
    assert checks["interpreter"]["command"] == [sys.executable, "-X", "utf8"]
    assert checks["interpreter"]["source"] == "option --python"
    assert {"keras", "numpy"} <= set(checks["packages"]["versions"])
    assert (checks["loading"]["layers"], checks["loading"]["mapped"]) == (4, 4)


def test_doctor_goes_on_after_a_failure(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from keras import layers\nlayers.Dense(3)\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.guider]\nsede = 3\n", encoding="utf-8")
    result = guider("doctor", "train.py", *PYTHON, cwd=tmp_path)
    assert result.returncode == 3
    assert "did you mean seed?" in result.stdout
    assert "[target-missing]" in result.stdout
    assert "option --python" in result.stdout
    assert "A localization cannot run" in result.stdout


def test_doctor_tries_the_tests(project: Path) -> None:
    np.savez(project / "odd.npz", first=np.zeros((3, 2)), second=np.zeros(3))
    result = guider("doctor", "train.py", "--test-data", "odd.npz", *PYTHON, cwd=project)
    assert result.returncode == 3
    assert "[test-data-keys]" in result.stdout
    assert "A localization cannot run" in result.stdout


# serve, and the rest


def test_serve_speaks_the_protocol() -> None:
    def framed(**body: object) -> bytes:
        text = json.dumps({"jsonrpc": "2.0", **body}).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)

    hello: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
    messages = (
        framed(id=1, method="initialize", params=hello)
        + framed(method="initialized", params={})
        + framed(id=2, method="shutdown")
        + framed(method="exit")
    )
    result = subprocess.run(
        [command(), "serve"], input=messages, capture_output=True, timeout=DEADLINE, check=False
    )
    assert result.returncode == 0, result.stderr
    assert b'"capabilities"' in result.stdout


def test_serve_refuses_what_is_no_address(tmp_path: Path) -> None:
    result = guider("serve", "--tcp", "somewhere", cwd=tmp_path)
    assert result.returncode == 2
    assert "HOST:PORT" in result.stderr


@pytest.mark.parametrize("name", ["localize", "map", "doctor", "serve"])
def test_help_fits_a_terminal(tmp_path: Path, name: str) -> None:
    result = guider(name, "--help", cwd=tmp_path, COLUMNS="80")
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_version(tmp_path: Path) -> None:
    assert guider("--version", cwd=tmp_path).stdout == f"guider-ls {__version__}\n"


def test_a_reader_that_has_seen_enough(trained: Path) -> None:
    process = subprocess.Popen(
        [command(), "map", "train.py", "--format", "json"],
        cwd=trained,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=DEADLINE)
    assert errors == b""


WAITING = """\
import os, pathlib, time
def load():
    pathlib.Path("pid").write_text(str(os.getpid()))
    time.sleep(10_000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_leaves_nothing_behind(project: Path) -> None:
    (project / "waiting.py").write_text(WAITING, encoding="utf-8")
    process = subprocess.Popen(
        [command(), "localize", "train.py", *PYTHON, "--test-data", "waiting:load"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        # A shell that runs the tests in its background has them ignore the signal.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + DEADLINE
    marker = project / "pid"
    while not (marker.exists() and marker.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=DEADLINE)
    assert (process.returncode, output, errors) == (130, "", "Interrupted.\n")
    assert not psutil.pid_exists(int(marker.read_text()))


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_a_terminal_sees_progress_and_color(trained: Path, tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        [command(), "localize", "train.py", *PYTHON],
        cwd=trained,
        env={**environment, "TERM": "xterm", "GUIDER_CACHE": str(tmp_path)},  # nothing is kept: all is done
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(ours)
    assert process.wait(timeout=DEADLINE) == 0
    text = seen.decode()
    progress, _, report = text.rpartition("\r\x1b[1mmodel")
    assert progress.startswith("\rStarting the engine")
    assert progress.count("\r") > 3
    assert "\n" not in progress
    assert "\x1b[1;31m" in report


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a folder that someone is in")
def test_doctor_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    script = f'rmdir "$PWD" && exec "{command()}" doctor'
    result = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "")
    assert "does not exist any more" in result.stdout
