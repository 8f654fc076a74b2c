"""The start of an engine: what it says, what it must not see, and interpreters that cannot run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from guider_engine import wire
from guider_ls.analysis.engine import ENTRY, Engine
from guider_ls.errors import EnvironmentProblem

from .conftest import EngineFactory

SERVER = ENTRY.parents[1]
OTHER_PYTHONS = sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
"""Those that pyenv has installed, where somebody uses it."""
UNSEEN = "wire", "channel", "guider_ls", "pygls", "lsprotocol", "libcst", "attrs", "code_engine", "conftest"
FIND_UNSEEN = f"""
import importlib.util, sys
import guider_engine.session
result = [name for name in {UNSEEN} if importlib.util.find_spec(name)]
result += [name for name in sys.modules if name.split('.')[0] in ('guider_ls', 'pygls', 'numpy', 'tensorflow')]
"""


async def test_hello_says_who_it_is(engine: Engine) -> None:
    hello = await engine.start()

    assert hello is engine.hello
    assert hello.protocol == wire.PROTOCOL
    assert Path(hello.executable).samefile(sys.executable)
    assert hello.python == ".".join(map(str, sys.version_info[:3]))
    assert hello.packages["numpy"] == version("numpy")
    assert "torch" not in hello.packages
    assert await engine.start() is hello


async def test_hello_of_an_environment_without_packages(new_engine: EngineFactory, bare_python: Path) -> None:
    hello = await new_engine((str(bare_python),)).start()

    assert hello.packages == {}
    assert hello.executable == str(bare_python)


async def test_nothing_of_the_server_can_be_imported(new_engine: EngineFactory, bare_python: Path) -> None:
    environ = os.environ | {"PYTHONPATH": str(SERVER), "PYTHONHOME": sys.prefix, "VIRTUAL_ENV": sys.prefix}
    engine = new_engine((str(bare_python),), environ=environ)

    assert (await engine.inspect(FIND_UNSEEN)).name == "[]"
    path = json.loads((await engine.inspect("import sys, json; result = json.dumps(sys.path)")).name)
    assert not [entry for entry in path if Path(entry).is_relative_to(SERVER) or "code_engine" in entry]
    assert not [entry for entry in path if Path(entry).is_relative_to(Path(sys.prefix))]


async def test_the_real_entry_leaves_no_path_behind(
    new_engine: EngineFactory, sitecustomize: Callable[[str], tuple[str, ...]]
) -> None:
    tell = "event == 'import' and arguments[0] == 'guider_engine.channel' and print('PATH', sys.path)"
    engine = new_engine(
        sitecustomize(f"import sys; sys.addaudithook(lambda event, arguments: {tell})"), entry=ENTRY
    )
    await engine.start()

    (told,) = (line for line in engine.log_tail().splitlines() if line.startswith("PATH"))
    assert str(SERVER) not in told


async def test_the_real_session_in_an_environment_without_keras(
    new_engine: EngineFactory, bare_python: Path
) -> None:
    engine = new_engine((str(bare_python),), entry=ENTRY)
    (engine.root / "model.keras").touch()

    with pytest.raises(EnvironmentProblem, match=r"(?i)numpy|keras|tensorflow"):
        await engine.inspect(str(engine.root / "model.keras"))


async def test_environment(new_engine: EngineFactory, bare_python: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/ada",
        "PYTHONPATH": "/server",
        "VIRTUAL_ENV": "/server/.venv",
        "CONDA_PREFIX": "/opt/conda",
        "MY_DATA": "/data",
    }
    engine = new_engine((str(bare_python),), environ=environ)
    code = "import os, json; result = json.dumps({'cwd': os.getcwd(), 'nice': os.nice(0), **os.environ})"
    seen = json.loads((await engine.inspect(code)).name)

    assert seen["cwd"] == str(engine.root)
    assert seen["nice"] > os.nice(0)
    assert seen["MY_DATA"] == "/data"
    assert seen["CUDA_VISIBLE_DEVICES"] == "-1"
    assert seen["VIRTUAL_ENV"] == str(bare_python.parents[1])
    assert seen["PATH"].split(os.pathsep)[0] == str(bare_python.parent)
    assert not {"PYTHONPATH", "CONDA_PREFIX"} & set(seen)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for the launcher")
async def test_command_list(new_engine: EngineFactory, root: Path) -> None:
    launcher = root / "launch"
    launcher.write_text('#!/bin/sh\nshift\n"$@"\n')
    launcher.chmod(0o755)
    engine = new_engine((str(launcher), "run", sys.executable))

    assert (await engine.inspect("result = 'launched'")).name == "launched"


@pytest.mark.parametrize(
    "noise",
    [
        "print('hello from the site')",
        'print(\'{"type": "Hello"}\')',
        "print('[1, 2]'); print('3'); print('null')",
        "import os; os.write(1, b'\\xff\\xfe no text\\n')",
        "print('x' * 300_000)",
    ],
    ids=["text", "half a hello", "json", "bytes", "long line"],
)
async def test_what_is_printed_before_hello_goes_to_the_log(
    new_engine: EngineFactory, sitecustomize: Callable[[str], tuple[str, ...]], noise: str
) -> None:
    engine = new_engine(sitecustomize(noise))

    assert (await engine.inspect("result = 'works'")).name == "works"
    assert len(engine.log_tail().splitlines()) > 1


async def test_another_protocol_is_a_precise_error(new_engine: EngineFactory, root: Path) -> None:
    entry = root / "other.py"
    entry.write_text('print(\'{"type": "Hello", "protocol": 99, "new": true}\', flush=True)\ninput()')

    with pytest.raises(EnvironmentProblem, match=rf"protocol 99.*protocol {wire.PROTOCOL}\b") as caught:
        await new_engine(entry=entry).start()
    assert caught.value.code == "engine-version"


@pytest.mark.parametrize("python", OTHER_PYTHONS, ids=str)
async def test_other_versions_of_python(new_engine: EngineFactory, python: Path) -> None:
    command = [str(python), "-c", "import sys; print('%d %d' % sys.version_info[:2])"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    version = tuple(map(int, done.stdout.split()))
    if version >= (3, 10):
        await new_engine((str(python),), entry=ENTRY).start()
        code = "print('told'); import sys; result = sys.version_info[:2]"
        assert (await new_engine((str(python),)).inspect(code)).name == str(version)
    else:
        said = (
            rf"Python {version[0]}\.{version[1]}\.\d+, and the engine needs"
            if version >= (3, 0)
            else "status"
        )
        with pytest.raises(EnvironmentProblem, match=said):
            await new_engine((str(python),), entry=ENTRY).start()


async def test_a_python_that_is_too_old_says_so(
    new_engine: EngineFactory, sitecustomize: Callable[[str], tuple[str, ...]]
) -> None:
    engine = new_engine(sitecustomize("import sys; sys.version_info = (3, 8, 20, 'final', 0)"))

    with pytest.raises(EnvironmentProblem, match=r"Python 3\.8\.20.* needs Python 3\.10 or newer") as caught:
        await engine.start()
    assert caught.value.code == "interpreter-broken"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX commands")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\necho 'I am no Python.' >&2\nexit 3\n", r"exit status 3.*I am no Python\."),
        ("#!/bin/sh\nexit 0\n", r"exit status 0"),
        ("no program at all", r"cannot be started"),
        ("#!/nowhere/python\n", r"cannot be started"),
        ("#!/bin/sh\nkill -9 $$\n", r"SIGKILL"),
        ("#!/bin/sh\nexec sleep 1000\n", r"within 0\.3 seconds"),
        ("#!/bin/sh\nexec yes\n", r"within 0\.3 seconds.*  y"),
    ],
    ids=["fails", "ends", "not executable code", "broken environment", "killed", "silent", "chatters"],
)
async def test_an_interpreter_that_is_none(
    new_engine: EngineFactory, root: Path, script: str, said: str
) -> None:
    program = root / "python"
    program.write_text(script)
    program.chmod(0o755)
    timeout = 0.3 if "exec" in script else 60
    engine = new_engine((str(program),), start_timeout=timeout)

    for _ in range(4):  # always the same answer, never that of a crash
        with pytest.raises(EnvironmentProblem, match=f"(?s){said}") as caught:
            await engine.inspect("")
        assert caught.value.code == "interpreter-broken"
        assert str(program) in caught.value.message


async def test_an_interpreter_that_is_missing(new_engine: EngineFactory, root: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="cannot be started") as caught:
        await new_engine((str(root / "python"),)).start()
    assert caught.value.code == "interpreter-broken"
