from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from guider_ls.project.settings import (
    Problem,
    Settings,
    TargetSettings,
    camel,
    from_mapping,
    of_project,
    snake,
)


def test_nothing_said_gives_the_defaults() -> None:
    assert from_mapping({}) == (Settings(), ())


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(Settings)])
def test_every_name_has_one_spelling_for_the_editor(name: str) -> None:
    assert snake(camel(name)) == name


@pytest.mark.parametrize(
    "values",
    [
        {"diagnostics": {"top": 3}, "neuronsPerLayer": None, "testData": "t.npz"},
        {"diagnostics.top": 3, "neurons_per_layer": "all", "test_data": ["t.npz"]},
        {"diagnostics_top": 3, "neurons-per-layer": "all", "testData": ["t.npz"]},
    ],
)
def test_spellings(values: dict[str, Any]) -> None:
    expected = Settings(diagnostics_top=3, neurons_per_layer=None, test_data=("t.npz",))
    assert from_mapping(values) == (expected, ())


def test_an_interpreter_is_a_path_or_a_command() -> None:
    assert from_mapping({"interpreter": "C:/Program Files/python.exe"})[0].interpreter == (
        "C:/Program Files/python.exe",
    )
    assert from_mapping({"interpreter": ["uv", "run", "python"]})[0].interpreter == ("uv", "run", "python")
    assert from_mapping({"interpreter": ""}) == (Settings(), ())


def test_what_only_the_client_reads_is_passed_over() -> None:
    values = {"server": {"command": ["x"]}, "trace": {"server": "off"}, "trace.server": "off"}
    assert from_mapping({**values, "editorInterpreter": ["python"]}) == (Settings(), ())


@pytest.mark.parametrize(
    "values",
    [
        {"capture": {"arguments": ["--lr", ""], "epochs": 3.0, "legacyKeras": True}, "trainOnSave": True},
        {
            "capture.arguments": "--lr ''",
            "capture.epochs": 3,
            "capture.legacyKeras": True,
            "train_on_save": True,
        },
        {"capture": {"arguments": ["--lr", ""], "epochs": 3, "legacy_keras": True}, "train-on-save": True},
    ],
)
def test_how_a_program_is_run(values: dict[str, Any]) -> None:
    expected = Settings(
        train_on_save=True, capture_arguments=("--lr", ""), capture_epochs=3, capture_legacy_keras=True
    )
    assert from_mapping(values) == (expected, ())


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("capture.epochs", 0, "a whole number from 1"),
        ("capture.minutes", 0, "a number above 0"),
        ("capture.minutes", "1", "a number above 0"),
        ("capture.arguments", "it's", "a list of strings"),
        ("capture.arguments", [1], "a list of strings"),
        ("threshold", "0.1", "a finite number"),
        ("threshold", float("nan"), "a finite number"),
        ("threshold", True, "a finite number"),
        ("threshold", 10**400, "a finite number"),
        ("neuronsPerLayer", 0, "a whole number from 1"),
        ("neurons_per_layer", 1.5, "a whole number from 1"),
        ("neurons_per_layer", True, "a whole number from 1"),
        ("seed", -1, "a whole number from 0"),
        ("formula", "ochia", "one of tarantula, ochiai"),
        ("formula", ["ochiai"], "one of tarantula, ochiai"),
        ("weighted", 1, "true or false"),
        ("model", 3, "a path"),
        ("testData", ["a", "b", "c"], "a pair of .npy files"),
        ("testData", ["a", ""], "a pair of .npy files"),
        ("interpreter", [1], "a path or a command"),
        ("load", "package/net.py", '"module:function"'),
        ("load", "package.net", '"module:function"'),
        ("oracle", "judge", '"module:function"'),
        ("customObjects", "my objects", '"module" or "module:name"'),
        ("label", 3, "the name of a column"),
        ("imageScale", 0, "a number above 0"),
        ("maxTests", 0, "a whole number from 1"),
        ("neuron", "filter", "one of unit, channel"),
        ("recurrent", "mean", "one of all, last, max"),
        ("task", "clustering", "one of auto, classification, multi-label"),
        ("tolerance", "0.1 mm", "a percentage (5%)"),
        ("tolerance", "-1", "a percentage (5%)"),
        ("tolerance", 0, "a percentage (5%)"),
        ("tolerance", "1e999", "a percentage (5%)"),
        ("accuracy", 0, "a number above 0, at most 1"),
        ("accuracy", 1.5, "a number above 0, at most 1"),
        ("quantile", "90%", "a number above 0, at most 1"),
        ("diagnostics.top", -1, "a whole number from 0"),
        ("diagnostics.minimum", float("inf"), "a finite number"),
        ("diagnostics.severity", "info", "one of error, warning, information, hint"),
    ],
)
def test_a_bad_value_is_one_problem_and_spares_the_rest(key: str, value: Any, expected: str) -> None:
    base = Settings(neurons_per_layer=50, threshold=0.5)
    settings, problems = from_mapping({key: value, "hover": False}, base)
    assert settings == attrs.evolve(base, hover=False)
    (problem,) = problems
    assert problem.key == key
    assert expected in problem.message
    assert problem.message.startswith("found ")
    assert problem.message.endswith(" is used")


@pytest.mark.parametrize(
    ("value", "read"),
    [("5%", "5%"), (" 0.1 IQR", "0.1 IQR"), ("0.1iqr", "0.1iqr"), (".5", ".5"), (0.01, "0.01")],
)
def test_a_tolerance_is_a_number_a_percentage_or_a_part_of_the_range(value: str | float, read: str) -> None:
    assert from_mapping({"tolerance": value}) == (Settings(tolerance=read), ())


def test_functions_may_be_in_packages_and_classes() -> None:
    values = {"load": "package.net:Net.restore", "customObjects": "package.layers", "oracle": ""}
    expected = Settings(load="package.net:Net.restore", custom_objects="package.layers")
    assert from_mapping(values) == (expected, ())


def test_the_value_used_instead_is_named() -> None:
    _, (problem,) = from_mapping({"threshold": "low"}, Settings(threshold=0.5))
    assert problem == Problem("threshold", 'found "low", expected a finite number; 0.5 is used')


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("neuron_per_layer", "did you mean neurons_per_layer?"),
        ("neuronPerLayer", "did you mean neuronsPerLayer?"),
        ("diagnostics.tops", "did you mean diagnostics.top?"),
        ("thresold", "did you mean threshold?"),
        ("zzzz", "there are accuracy, aggregation, capture_arguments"),
    ],
)
def test_an_unknown_key_is_a_problem_with_a_hint(key: str, hint: str) -> None:
    settings, (problem,) = from_mapping({key: 1})
    assert settings == Settings()
    assert problem.key == key
    assert hint in problem.message


@hypothesis_settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([camel(f.name) for f in attrs.fields(Settings)]) | st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
            ),
            max_leaves=6,
        ),
    )
)
def test_any_json_gives_settings(values: dict[str, Any]) -> None:
    settings, _ = from_mapping(values)
    again, problems = from_mapping(
        {f.name: getattr(settings, f.name) for f in attrs.fields(Settings) if f.name != "targets"}
    )
    assert attrs.evolve(again, targets=()) == attrs.evolve(settings, targets=())
    assert not problems


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


def test_no_project_file_is_no_problem(tmp_path: Path) -> None:
    base = Settings(seed=1)
    assert of_project(tmp_path, base) == (base, ())
    assert of_project(project(tmp_path, "[project]\nname = 'x'\n"), base) == (base, ())


def test_the_project_file_goes_over_the_base(tmp_path: Path) -> None:
    root = project(tmp_path, "[tool.guider]\nmodel = 'm.keras'\ndiagnostics = { top = 2 }\n")
    assert of_project(root, Settings(seed=1, model="other.keras")) == (
        Settings(seed=1, model="m.keras", diagnostics_top=2),
        (),
    )


def test_a_problem_says_where_it_stands(tmp_path: Path) -> None:
    _, (problem,) = of_project(project(tmp_path, "[tool.guider]\nseed = 'x'\n"))
    assert problem.key == "seed"
    assert problem.origin == "pyproject.toml [tool.guider]"


@pytest.mark.parametrize("text", ["[tool.guider\n", "x = \x00", "[tool]\nguider = 3\n"])
def test_a_broken_project_file_is_one_problem(tmp_path: Path, text: str) -> None:
    settings, problems = of_project(project(tmp_path, text))
    assert settings == Settings()
    assert len(problems) == 1


def test_a_project_file_that_is_not_utf_8_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"# \xe9\n[tool.guider]\n")
    assert len(of_project(tmp_path)[1]) == 1


def test_targets(tmp_path: Path) -> None:
    settings, problems = of_project(
        project(
            tmp_path,
            """
            [tool.guider]
            test_data = "common.npz"
            [[tool.guider.targets]]
            name = "a"
            program = "a.py"
            model = "a.keras"
            [[tool.guider.targets]]
            program = "b.py"
            test_data = ["x.npy", "y.npy"]
            modell = "b.keras"
            """,
        )
    )
    assert settings.test_data == ()
    assert settings.targets == (
        TargetSettings("a", "a.py", "a.keras", ("common.npz",)),
        TargetSettings("", "b.py", "", ("x.npy", "y.npy")),
    )
    (problem,) = problems
    assert problem.key == "targets[1].modell"
    assert "did you mean model?" in problem.message


@pytest.mark.parametrize("value", ["x", [1], [{"model": 3}]])
def test_bad_targets_are_problems(value: Any) -> None:
    _, problems = from_mapping({"targets": value})
    assert len(problems) == 1
