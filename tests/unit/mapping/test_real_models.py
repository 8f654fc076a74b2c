"""Programs run for real on Keras: every pair must name the call that was seen constructing the layer."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.mapping.ground_truth import Truth, agrees, run

from guider_engine.wire import LayerPath
from guider_ls.errors import InputError
from guider_ls.mapping.align import align
from guider_ls.project.reading import read
from guider_ls.source.read import read_program

pytest.importorskip("keras")

FIXTURES = Path(__file__).parents[2] / "fixtures"
PROGRAMS = [
    *sorted((FIXTURES / "programs").glob("*.py")),
    *sorted((FIXTURES / "projects").glob("*/train.py")),
]
HIDDEN = {"application_as_layer": (2,), "application_frozen": (1,), "application_by_name": (0,)}
"""Layers whose inside is made by Keras alone: no line of the program is theirs."""
UNKNOWN = {"cloned_functional": (0, 0)}
"""A layer that no line constructs: cloning a functional model makes an input of its own."""


@functools.cache
def truth_of(program: Path) -> Truth:
    return run(program)


def known(program: Path, truth: Truth) -> set[LayerPath]:
    """Layers that a line of the program constructs."""
    hidden = HIDDEN.get(program.stem)
    paths = {path for path in truth.calls if hidden is None or path[:1] != hidden or path == hidden}
    return paths - {UNKNOWN.get(program.stem, ())}


def name_of(program: Path) -> str:
    return program.parent.name if program.stem == "train" else program.stem


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 100


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_every_layer_is_mapped_to_the_call_that_made_it(program: Path) -> None:
    truth = truth_of(program)
    found = align(read(truth.text, program, program.parent), truth.model)
    for match in found.matches:
        assert agrees(match.site.span, truth.calls[match.layer]), match
        assert match.site.file == truth.files[match.layer], match
        assert match.differences == (), match
    assert {match.layer for match in found.matches} == known(program, truth)


Edit = tuple[str, Callable[[int], int | None]]
"""A text, and where a line of the text before stands in it."""


def edits(text: str) -> Iterator[Edit]:
    """The program after one edit of one construction: its line deleted, its numbers changed, another put before it."""
    lines = text.split("\n")

    def program(*parts: list[str]) -> str:
        return "\n".join(line for part in parts for line in part)

    for at in sorted({site.span.line for site in read_program(text).sites}):
        line = lines[at]
        changed = re.sub(r"(?<=[(=, ])(\d+)(?=[,)])", lambda number: str(int(number[1]) + 3), line)
        yield program(lines[:at], [changed], lines[at + 1 :]), lambda old: old
        if re.match(r"\s*(x = |model\.add|layers\.|self\.|[A-Z])", line):
            yield (
                program(lines[:at], lines[at + 1 :]),
                lambda old, at=at: None if old == at else old - (old > at),  # type: ignore[misc]
            )
        new = re.sub(r"(\s*)(model\.add\(|x = ).*", r"\1\2layers.Dense(77)", line)
        if new != line:
            new += ")" if "add(" in new else "(x)"
            yield program(lines[:at], [new], lines[at:]), lambda old, at=at: old + (old >= at)  # type: ignore[misc]


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_no_line_is_wrong_after_an_edit(program: Path) -> None:
    truth = truth_of(program)
    for text, moved in edits(truth.text):
        try:
            source = read(text, program, program.parent)
        except InputError:
            continue  # the edit broke the syntax
        for match in align(source, truth.model).matches:
            line = truth.calls[match.layer].line
            assert match.site.span.line == (line if match.site.file else moved(line)), (text, match)


NETWORKS = [("mobilenet_v2", "MobileNetV2"), ("resnet", "ResNet50"), ("efficientnet_v2", "EfficientNetV2B0")]


@pytest.mark.parametrize(("module", "build"), NETWORKS)
def test_networks_of_keras(module: str, build: str, tmp_path: Path) -> None:
    """Real programs of some hundred lines: Keras' own networks."""
    import keras

    text = (Path(keras.__file__).parent / "src" / "applications" / f"{module}.py").read_text(encoding="utf-8")
    program = tmp_path / f"{module}.py"
    program.write_text(f"{text}\nmodel = {build}(weights=None)\n", encoding="utf-8")
    truth = run(program)
    found = align(read_program(truth.text), truth.model)
    assert all(agrees(match.site.span, truth.calls[match.layer]) for match in found.matches)
    assert len(found.matches) == len(truth.calls)
    assert not any(match.differences for match in found.matches)
