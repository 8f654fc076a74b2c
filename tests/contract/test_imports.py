"""Who may import what: two environments that must not leak into each other, and pure parts that stay pure."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[2] / "server"
STANDARD = set(sys.stdlib_module_names)
PROTOCOL = {"pygls", "lsprotocol"}
NUMERICAL = {"numpy", "tensorflow", "keras", "h5py"}


def modules(folder: str) -> list[Path]:
    return sorted((SERVER / folder).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every module that the file imports anywhere, by its full name."""
    package = path.relative_to(SERVER).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            yield ".".join(part for part in (base, node.module) if part)


def offenders(folder: str, forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(SERVER)} imports {name}"
        for path in modules(folder)
        for name in imports(path)
        if name.split(".")[0] in forbidden or name in forbidden
    ]


def test_there_is_something_to_check() -> None:
    assert len(modules("guider_ls")) > 20
    assert len(modules("guider_engine")) > 15


def test_engine_imports_nothing_of_the_server() -> None:
    assert (
        offenders(
            "guider_engine", {"guider_ls", "libcst", "attrs", "attr", "cattrs", "platformdirs", *PROTOCOL}
        )
        == []
    )


def test_server_imports_no_numerical_library() -> None:
    assert offenders("guider_ls", NUMERICAL) == []


def test_server_knows_the_engine_by_its_messages_only() -> None:
    found = {
        f"{path.relative_to(SERVER)} imports {name}"
        for path in modules("guider_ls")
        for name in imports(path)
        if name.split(".")[0] == "guider_engine" and name != "guider_engine.wire"
    }
    assert found <= {"guider_ls/analysis/engine.py imports guider_engine"}  # for the path of its entry


def test_messages_need_the_standard_library_only() -> None:
    names = {name.split(".")[0] for name in imports(SERVER / "guider_engine" / "wire.py")}
    assert names <= STANDARD


def test_only_the_language_server_speaks_the_protocol() -> None:
    found = offenders("guider_ls", PROTOCOL)
    assert [line for line in found if not line.startswith("guider_ls/lsp/")] == []


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("source", {"guider_ls.source", "guider_ls.errors", "libcst"}),
        ("mapping", {"guider_ls.mapping", "guider_ls.source", "guider_engine.wire"}),
        (
            "present",
            {
                "guider_ls.present",
                "guider_ls.mapping",
                "guider_ls.source",
                "guider_ls.project.settings",
                "guider_ls.errors",
                "guider_ls",
                "guider_engine.wire",
            },
        ),
    ],
)
def test_pure_packages(package: str, allowed: set[str]) -> None:
    found = [
        f"{path.relative_to(SERVER)} imports {name}"
        for path in modules(f"guider_ls/{package}")
        for name in imports(path)
        if name.split(".")[0] not in STANDARD
        and not any(
            name == place or (name.startswith(f"{place}.") and place != "guider_ls") for place in allowed
        )
    ]
    assert found == []


def test_server_starts_without_parser_or_numbers() -> None:
    """Answering ``initialize`` must not wait for libcst, and never loads NumPy or TensorFlow."""
    code = (
        "import sys, guider_ls.lsp.server\n"
        f"loaded = {{name.split('.')[0] for name in sys.modules}} & { ({'libcst'} | NUMERICAL)!r}\n"
        "sys.exit(' '.join(loaded) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
