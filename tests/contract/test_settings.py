"""The settings class, the editor's manifest and the table for people name the same settings and defaults."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from guider_engine.wire import AGGREGATIONS, FORMULAS, NEURONS, RECURRENT, TASK_CHOICES, Inputs
from guider_ls.project.settings import Settings, camel, from_mapping, snake

ROOT = Path(__file__).parents[2]
CLIENT_ONLY = {"server.command", "trace.server"}
PROJECT_ONLY = {"targets"}
NAMES = {field.name for field in attrs.fields(Settings)} - PROJECT_ONLY


def properties() -> dict[str, dict[str, Any]]:
    """The manifest's settings, without the section's name."""
    manifest = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    sections = manifest["contributes"]["configuration"]
    found: dict[str, dict[str, Any]] = {}
    for section in sections if isinstance(sections, list) else [sections]:
        for key, value in section["properties"].items():
            assert key.startswith("guider.")
            found[key.removeprefix("guider.")] = value
    return found


def table() -> dict[str, str]:
    """Name and default of each row of the table in the README whose first cell names a setting."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|\s*`(?:guider\.)?([\w.]+)`\s*\|\s*([^|]*?)\s*\|", text, re.MULTILINE)
    return {snake(name): default.strip("`") for name, default in rows if snake(name) in NAMES}


def test_the_manifest_names_every_setting() -> None:
    assert set(properties()) - CLIENT_ONLY == {camel(name) for name in NAMES}


def test_the_manifest_has_the_same_defaults() -> None:
    defaults = {key: value["default"] for key, value in properties().items()}
    assert from_mapping(defaults) == (Settings(), ())


@pytest.mark.parametrize(
    ("key", "choices"),
    [
        ("formula", FORMULAS),
        ("aggregation", AGGREGATIONS),
        ("task", TASK_CHOICES),
        ("neuron", NEURONS),
        ("recurrent", RECURRENT),
    ],
)
def test_the_manifest_has_the_same_choices(key: str, choices: tuple[str, ...]) -> None:
    assert properties()[key]["enum"] == list(choices)


@pytest.mark.parametrize("key", ["run", "diagnostics.severity"])
def test_the_manifest_offers_only_what_is_accepted(key: str) -> None:
    for choice in properties()[key]["enum"]:
        assert from_mapping({key: choice})[1] == ()


def test_the_manifest_explains_every_setting() -> None:
    for key, value in properties().items():
        assert value.get("description") or value.get("markdownDescription"), key


@pytest.mark.parametrize(
    "name", ["interpreter", "program", "model", "testData", "load", "customObjects", "oracle"]
)
def test_a_folder_that_is_not_trusted_does_not_say_what_code_runs(name: str) -> None:
    manifest = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    restricted = manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert f"guider.{name}" in restricted


def test_every_option_of_the_engine_is_a_setting_with_its_default() -> None:
    options = {field.name: field.default for field in dataclasses.fields(Inputs)}
    required = {"model", "test_data", "root"}
    defaults = attrs.asdict(Settings(), recurse=False)
    assert {name: defaults[name] for name in options if name not in required} == {
        name: default for name, default in options.items() if name not in required
    }


def test_the_readme_names_every_setting() -> None:
    assert sorted(NAMES - set(table())) == []


def test_the_readme_has_the_same_defaults() -> None:
    said: dict[str, Any] = {}
    for name, default in table().items():
        try:
            said[name] = json.loads(default)
        except ValueError:
            said[name] = default
    said = {name: value for name, value in said.items() if value not in ("", "–", "-", "none")}
    assert from_mapping(said) == (Settings(), ())
    unsaid = {name for name in table() if name not in said}
    assert {getattr(Settings(), name) for name in unsaid} <= {"", (), None}
