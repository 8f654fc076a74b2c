"""Which files of a project are read with a program, and which never."""

from __future__ import annotations

from pathlib import Path

import pytest

from guider_ls.project import modules
from guider_ls.project.reading import read
from guider_ls.source.sites import SourceMap

BUILD = "import keras\ndef build(): return keras.Sequential([keras.layers.Dense({units})])\n"
USE = "from models import build\nmodel = build()\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def units(source: SourceMap) -> list[object]:
    return [site.arguments["units"] for site in source.sites]


@pytest.mark.parametrize("place", ["app/models.py", "models.py", "src/models.py", "app/models/__init__.py"])
def test_modules_beside_the_program_in_the_root_and_in_src(tmp_path: Path, place: str) -> None:
    program = write(tmp_path / "app" / "train.py", USE)
    path = write(tmp_path / place, BUILD.format(units=3))
    source = read(USE, program, tmp_path)
    assert units(source) == [3]
    assert source.modules == (str(path),)
    assert source.sites[0].file == str(path)


def test_what_is_nearest_to_the_program_counts(tmp_path: Path) -> None:
    program = write(tmp_path / "app" / "train.py", USE)
    write(tmp_path / "models.py", BUILD.format(units=1))
    write(tmp_path / "app" / "models.py", BUILD.format(units=2))
    assert units(read(USE, program, tmp_path)) == [2]


def test_texts_of_open_documents_count_before_files(tmp_path: Path) -> None:
    program = write(tmp_path / "train.py", USE)
    path = write(tmp_path / "models.py", BUILD.format(units=1))
    assert units(read(USE, program, tmp_path, {str(path): BUILD.format(units=9)})) == [9]


def test_a_relative_import_starts_at_its_module(tmp_path: Path) -> None:
    text = "from pkg.nets import build\nmodel = build()\n"
    program = write(tmp_path / "train.py", text)
    write(tmp_path / "pkg" / "nets.py", "from .deep.blocks import build")
    write(tmp_path / "pkg" / "deep" / "blocks.py", "from ..models import build")
    write(tmp_path / "pkg" / "models.py", BUILD.format(units=4))
    assert units(read(text, program, tmp_path)) == [4]


@pytest.mark.parametrize(
    "place", ["../models.py", ".venv/lib/site-packages/models.py", "other/models.py", "app/models.txt"]
)
def test_nothing_outside_the_project_and_nothing_installed(tmp_path: Path, place: str) -> None:
    root = tmp_path / "project"
    program = write(root / "app" / "train.py", USE)
    write((root / place), BUILD.format(units=1))
    assert read(USE, program, root) == SourceMap((), ())


def test_no_way_out_of_the_project_by_dots_or_links(tmp_path: Path) -> None:
    root = tmp_path / "project"
    outside = write(tmp_path / "models.py", BUILD.format(units=1))
    program = write(root / "train.py", "from ..models import build\nm = build()\n")
    assert units(read(program.read_text(encoding="utf-8"), program, root)) == []
    (root / "models.py").symlink_to(outside)
    assert units(read(USE, program, root)) == []


def test_a_program_of_an_environment_has_no_modules(tmp_path: Path) -> None:
    folder = tmp_path / ".venv" / "site-packages"
    program = write(folder / "train.py", USE)
    write(folder / "models.py", BUILD.format(units=1))
    assert units(read(USE, program, tmp_path)) == []


@pytest.mark.parametrize("name", ["random", "keras", "tensorflow"])
def test_names_of_libraries_are_the_libraries(tmp_path: Path, name: str) -> None:
    text = f"from {name} import build\nmodel = build()\n"
    write(tmp_path / f"{name}.py", BUILD.format(units=1))
    assert units(read(text, tmp_path / "train.py", tmp_path)) == []


def test_the_program_is_not_a_module_of_itself(tmp_path: Path) -> None:
    text = "from train import build\n" + BUILD.format(units=1) + "m = build()\n"
    program = write(tmp_path / "train.py", text)
    source = read(text, program, tmp_path)
    assert (units(source), source.modules) == ([1], ())


def test_files_that_cannot_be_read_are_skipped(tmp_path: Path) -> None:
    program = write(tmp_path / "train.py", USE)
    (tmp_path / "models.py").write_bytes(b"import keras  # \xff\xfe\n")
    assert units(read(USE, program, tmp_path)) == []
    (tmp_path / "models.py").unlink()
    (tmp_path / "models.py").mkdir()
    assert units(read(USE, program, tmp_path)) == []


def test_no_more_is_read_than_a_person_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write(tmp_path / "train.py", USE)
    write(tmp_path / "models.py", BUILD.format(units=1) + "#" * modules.LARGEST)
    assert units(read(USE, program, tmp_path)) == []
    monkeypatch.setattr(modules, "FILES", 1)
    write(tmp_path / "models.py", "from more import build")
    write(tmp_path / "more.py", BUILD.format(units=1))
    assert units(read(USE, program, tmp_path)) == []


def test_a_program_that_is_no_file_has_no_modules(tmp_path: Path) -> None:
    write(tmp_path / "models.py", BUILD.format(units=1))
    assert units(read(USE, None, None)) == []


def test_the_encoding_of_a_module_is_its_own(tmp_path: Path) -> None:
    program = write(tmp_path / "train.py", USE)
    text = "# -*- coding: latin-1 -*-\n# é\n" + BUILD.format(units=6)
    (tmp_path / "models.py").write_bytes(text.encode("latin-1"))
    assert units(read(USE, program, tmp_path)) == [6]
