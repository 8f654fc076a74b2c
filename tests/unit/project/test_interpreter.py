from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from guider_ls.errors import EnvironmentProblem
from guider_ls.project.interpreter import engine_environment, find_interpreter
from guider_ls.project.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX layout and permissions")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "repository" / "my project"
    folder.mkdir(parents=True)
    return folder


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def found(
    root: Path, *interpreter: str, editor: tuple[str, ...] = (), **environ: object
) -> tuple[tuple[str, ...], str]:
    result = find_interpreter(
        root,
        Settings(interpreter=interpreter),
        editor_choice=editor,
        environ={name: str(value) for name, value in environ.items()},
    )
    return result.command, result.source


def missing(root: Path, *interpreter: str, editor: tuple[str, ...] = (), **environ: object) -> str:
    with pytest.raises(EnvironmentProblem) as caught:
        found(root, *interpreter, editor=editor, **environ)
    assert caught.value.code == "interpreter-missing"
    return caught.value.message


def test_the_order(root: Path) -> None:
    """Every place is used once those before it are gone."""
    path = program(root.parents[1] / "path" / "python3")
    conda = program(root.parents[1] / "conda" / "bin" / "python")
    venv = program(root / "venv" / "bin" / "python")
    dot_venv = program(root / ".venv" / "bin" / "python")
    active = program(root.parents[1] / "active" / "bin" / "python")
    editor = program(root.parents[1] / "editor" / "python")
    setting = program(root.parents[1] / "setting" / "python")
    environ: dict[str, Any] = {
        "PATH": path.parent,
        "CONDA_PREFIX": conda.parents[1],
        "VIRTUAL_ENV": active.parents[1],
    }

    assert found(root, str(setting), editor=(str(editor),), **environ) == (
        (str(setting),), "setting guider.interpreter",
    )  # fmt: skip
    assert found(root, editor=(str(editor),), **environ) == (
        (str(editor),), "the environment chosen in the editor",
    )  # fmt: skip
    for python, source in (
        (active, "VIRTUAL_ENV"),
        (dot_venv, ".venv in the folder"),
        (venv, "venv in the folder"),
        (conda, "CONDA_PREFIX"),
        (path, "python3 on PATH"),
    ):
        assert found(root, **environ) == ((str(python),), source)
        python.unlink()
    message = missing(root, **environ)
    for place in ("VIRTUAL_ENV", str(root / ".venv"), str(root / "venv"), "CONDA_PREFIX", "python on PATH"):
        assert place in message


def test_the_environment_of_a_parent_in_the_same_repository(root: Path) -> None:
    repository = root.parent
    python = program(repository / ".venv" / "bin" / "python")
    outside = program(repository.parent / ".venv" / "bin" / "python")

    missing(root, PATH="")
    (repository / ".git").mkdir()
    assert found(root, PATH="") == ((str(python),), f".venv in {repository}")
    python.unlink()
    assert str(outside.parents[1]) not in missing(root, PATH="")


@pytest.mark.parametrize("layout", ["bin/python", "bin/python3", "Scripts/python.exe", "python.exe"])
def test_layouts_of_environments(root: Path, layout: str) -> None:
    python = program(root / ".venv" / layout)
    assert found(root, PATH="")[0] == (str(python),)


def test_what_cannot_be_run_is_passed_over(root: Path) -> None:
    program(root / ".venv" / "bin" / "python", mode=0o644)
    (root / "venv" / "bin").mkdir(parents=True)
    (root / "venv" / "bin" / "python").symlink_to(root / "nowhere")
    missing(root, PATH="")


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("tools/python", "{root}/tools/python"),
        ("./tools/python", "{root}/tools/python"),
        ("${workspaceFolder}/tools/python", "{root}/tools/python"),
        ("{root}/tools/python", "{root}/tools/python"),
        ("~/python", "{home}/python"),
        ("tools/env", "{root}/tools/env/bin/python"),
        ("env", "{root}/env/bin/python"),
        ("pythonX", "{home}/path/pythonX"),
    ],
)
def test_forms_of_the_setting(root: Path, named: str, expected: str) -> None:
    home = root.parents[1]
    for path in (root / "tools/python", root / "tools/env/bin/python", root / "env/bin/python"):
        program(path)
    program(home / "python")
    program(home / "path" / "pythonX")
    places = {"root": root, "home": home}
    named = named.replace("{root}", str(root))

    (command, _) = found(root, named, PATH=home / "path", HOME=home)
    assert Path(command[0]) == Path(expected.format(**places))


def test_a_command_list(root: Path) -> None:
    uv = program(root.parents[1] / "path" / "uv")
    named = ("uv", "run", "--project", "${workspaceFolder}", "python")
    assert found(root, *named, PATH=uv.parent)[0] == (str(uv), "run", "--project", str(root), "python")


@pytest.mark.parametrize(
    "named", ["tools/python", "~/python", "${workspaceFolder}/python", "pythonX", "/none", "env"]
)
def test_what_was_named_is_never_replaced(root: Path, named: str) -> None:
    program(root / ".venv" / "bin" / "python")
    (root / "env").mkdir()

    assert named in missing(root, named, PATH="", HOME=root)
    assert named in missing(root, editor=(named,), PATH="", HOME=root)


def test_empty_means_not_set(root: Path) -> None:
    python = program(root / ".venv" / "bin" / "python")
    assert found(root, "", editor=("",), PATH="")[0] == (str(python),)


def test_environment_of_a_virtual_environment(tmp_path: Path) -> None:
    python = program(tmp_path / "env" / "bin" / "python")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    environ = {
        "PATH": "/usr/bin",
        "VIRTUAL_ENV": "/server",
        "PYTHONPATH": "/server",
        "PYTHONHOME": "/",
        "A": "b",
    }

    assert engine_environment((str(python),), environ) == {
        "PATH": os.pathsep.join([str(python.parent), "/usr/bin"]),
        "VIRTUAL_ENV": str(tmp_path / "env"),
        "A": "b",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


def test_environment_of_conda_is_activated(tmp_path: Path) -> None:
    python = program(tmp_path / "deep" / "bin" / "python3.11")
    (tmp_path / "deep" / "conda-meta").mkdir()
    environ = engine_environment((str(python),), {"CONDA_PREFIX": "/base", "CONDA_DEFAULT_ENV": "base"})

    assert environ["CONDA_PREFIX"] == str(tmp_path / "deep")
    assert environ["CONDA_DEFAULT_ENV"] == "deep"
    assert environ["PATH"] == str(python.parent)


def test_environment_of_anything_else_activates_nothing(tmp_path: Path) -> None:
    uv = program(tmp_path / "bin" / "uv")
    (tmp_path / "pyvenv.cfg").touch()
    for command in ((str(uv), "run", "python"), ("python3",), ("/usr/bin/python3",)):
        environ = engine_environment(command, {"PATH": "/usr/bin", "CONDA_PREFIX": "/base"})
        assert environ["PATH"] == "/usr/bin"
        assert not {"VIRTUAL_ENV", "CONDA_PREFIX"} & set(environ)


def test_the_caller_decides_about_the_gpu(tmp_path: Path) -> None:
    environ = engine_environment(("python3",), {"CUDA_VISIBLE_DEVICES": "0", "TF_CPP_MIN_LOG_LEVEL": "0"})
    assert environ == {"CUDA_VISIBLE_DEVICES": "0", "TF_CPP_MIN_LOG_LEVEL": "0"}
