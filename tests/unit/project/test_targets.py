from pathlib import Path
from typing import Any

import pytest
from tests.unit.project.records import model, program, record

from guider_ls.errors import GuiderError, InputError, UsageError
from guider_ls.project.captures import Capture
from guider_ls.project.settings import Settings, TargetSettings, from_mapping, tomllib
from guider_ls.project.targets import find_target, for_program, is_function, project_root, to_inputs
from guider_ls.source.sites import Artifact, SourceMap, Span


def source(*paths: str) -> SourceMap:
    """A program that writes these files, one a line."""
    return SourceMap(
        (),
        tuple(
            Artifact(Span(n, 0, n, 1), "tests" if path.endswith((".npz", ".npy")) else "model", path)
            for n, path in enumerate(paths)
        ),
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "un projet à moi"
    folder.mkdir()
    return folder


def touch(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root / paths[0]


def refused(root: Path, settings: Settings, written: SourceMap, program: str = "train.py") -> GuiderError:
    with pytest.raises(GuiderError) as caught:
        find_target(root / program, root, settings, written)
    return caught.value


def test_the_project_root_is_the_nearest_marked_parent(root: Path) -> None:
    program = touch(root, "src/deep/train.py")
    assert project_root(program) in (program.parent, *program.parents)
    touch(root, "pyproject.toml")
    assert project_root(program) == root
    (root / "src" / ".git").mkdir()
    assert project_root(program) == root / "src"


def test_settings_name_files_from_the_root(root: Path) -> None:
    program = touch(root, "src/train.py", "out/m.keras", "t.npz")
    settings = Settings(model="out/m.keras", test_data=("t.npz",))
    target = find_target(program, root, settings, source("other.keras"))
    assert (target.program, target.model) == (program, root / "out/m.keras")
    assert target.test_data == (str(root / "t.npz"),)
    assert target.source == "model: settings; test set: settings"


def test_the_settings_program_is_taken_where_none_is_given(root: Path) -> None:
    touch(root, "src/train.py", "m.keras", "t.npz")
    settings = Settings(program="src/train.py", model="m.keras", test_data=("t.npz",))
    assert find_target(None, root, settings, None).program == root / "src/train.py"


def test_a_function_is_no_file(root: Path) -> None:
    settings = Settings(model="package.models:best", test_data=("package.data:load",))
    inputs = to_inputs(find_target(None, root, settings, None), settings)
    assert (inputs.model, inputs.test_data) == ("package.models:best", ("package.data:load",))
    assert not is_function("C:\\data\\test.npz")


@pytest.mark.parametrize("name", ["~nobody-of-this-name/m.keras", "m" * 300 + ".keras"])
def test_paths_that_cannot_be_followed_are_missing_files(root: Path, name: str) -> None:
    error = refused(root, Settings(model=name, test_data=("t.npz",)), source())
    assert (error.code, name in error.message) == ("model-missing", "/" not in name)
    assert refused(root, Settings(test_data=("t.npz",)), source(name)).code == "target-missing"


def test_a_path_known_only_when_the_program_runs_is_told_and_never_a_file(root: Path) -> None:
    touch(root, "train.py", "args.out", "t.npz")
    written = SourceMap((), (Artifact(Span(7, 0, 7, 9), "model", "args.out", known=False),))
    error = refused(root, Settings(test_data=("t.npz",)), written)
    assert error.code == "target-missing"
    assert "known only when it runs: args.out (train.py, line 8)." in error.message
    assert "model = 'model.keras'" in error.message


def test_a_file_may_begin_with_a_tilde(root: Path) -> None:
    program = touch(root, "train.py", "~m.keras", "t.npz")
    target = find_target(program, root, Settings(), source("~m.keras", "t.npz"))
    assert target.model == root / "~m.keras"


def test_the_program_says_where_its_files_are(root: Path) -> None:
    program = touch(root, "src/train.py", "src/m.keras", "t.npz")
    target = find_target(program, root, Settings(), source("m.keras", "t.npz"))
    assert (target.model, target.test_data) == (root / "src/m.keras", (str(root / "t.npz"),))
    assert target.source == "model: train.py, line 1; test set: train.py, line 2"


def test_one_may_be_set_and_the_other_written(root: Path) -> None:
    program = touch(root, "train.py", "m.keras", "mine.npz", "t.npz")
    target = find_target(program, root, Settings(test_data=("mine.npz",)), source("m.keras", "t.npz"))
    assert target.test_data == (str(root / "mine.npz"),)


@pytest.mark.parametrize(
    ("inputs", "labels"),
    [
        ("x_test.npy", "y_test.npy"),
        ("test_images.npy", "test_labels.npy"),
        ("data.npy", "target.npy"),
        ("Xtest.npy", "ytest.npy"),
    ],
)
def test_arrays_make_a_pair_by_their_names(root: Path, inputs: str, labels: str) -> None:
    program = touch(root, "train.py", "m.keras", labels, inputs)
    target = find_target(program, root, Settings(), source("m.keras", labels, inputs))
    assert target.test_data == (str(root / inputs), str(root / labels))


def test_arrays_come_before_tables_and_files_before_folders(root: Path) -> None:
    program = touch(root, "train.py", "net/saved_model.pb", "test.csv", "other/notes.txt")
    models = ("net", "other", "m.keras")
    written = SourceMap(
        (),
        (
            *(Artifact(Span(n, 0, n, 1), "model", path) for n, path in enumerate(models)),
            *(Artifact(Span(n, 0, n, 1), "tests", path) for n, path in enumerate(("test.csv", "t.npz"), 3)),
        ),
    )
    target = find_target(program, root, Settings(), written)
    assert (target.model, target.test_data) == (root / "net", (str(root / "test.csv"),))
    touch(root, "m.keras", "t.npz")
    target = find_target(program, root, Settings(), written)
    assert (target.model, target.test_data) == (root / "m.keras", (str(root / "t.npz"),))


def test_a_folder_is_a_dataset_only_if_one_was_saved_there(root: Path) -> None:
    program = touch(root, "train.py", "m.keras", "test/cat/1.png")
    written = SourceMap(
        (), (Artifact(Span(0, 0, 0, 1), "model", "m.keras"), Artifact(Span(1, 0, 1, 1), "tests", "test"))
    )
    assert refused(root, Settings(), written).code == "target-missing"
    touch(root, "test/dataset_spec.pb")
    assert find_target(program, root, Settings(), written).test_data == (str(root / "test"),)


def test_the_same_file_written_twice_is_one(root: Path) -> None:
    program = touch(root, "train.py", "m.keras", "t.npz")
    written = source("m.keras", "./m.keras", str(root / "m.keras"), "t.npz")
    assert find_target(program, root, Settings(), written).model == root / "m.keras"


def test_several_models_are_not_guessed_among(root: Path) -> None:
    touch(root, "train.py", "best.keras", "last.keras", "t.npz")
    error = refused(root, Settings(), source("best.keras", "last.keras", "t.npz"))
    assert (type(error), error.code) == (InputError, "target-ambiguous")
    assert "best.keras (train.py, line 1)" in error.message
    assert "last.keras (train.py, line 2)" in error.message
    assert written_lines(error) == {"program": "train.py", "model": "best.keras"}


def test_several_test_sets_are_not_guessed_among(root: Path) -> None:
    names = ("x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy")
    touch(root, "train.py", "m.keras", *names)
    error = refused(root, Settings(), source("m.keras", *names))
    assert error.code == "target-ambiguous"
    assert written_lines(error)["test_data"] == ["x_train.npy", "y_train.npy"]


def written_lines(error: GuiderError) -> dict[str, object]:
    """The lines that a message proposes for pyproject.toml, read as TOML."""
    table = error.message[error.message.index("  [tool.guider]") :]
    values: dict[str, object] = tomllib.loads(table)["tool"]["guider"]
    return values


def test_nothing_written_says_how_to_name_one(root: Path) -> None:
    touch(root, "train.py")
    error = refused(root, Settings(), source())
    assert error.code == "target-missing"
    for word in (
        "--model",
        "guider.testData",
        "pyproject.toml",
        "model.save(",
        "np.savez(",
        "--run train.py",
    ):
        assert word in error.message
    assert written_lines(error) == {"program": "train.py", "model": "model.keras", "test_data": "test.npz"}


def test_one_that_is_missing_is_told_alone(root: Path) -> None:
    touch(root, "train.py", "t.npz")
    error = refused(root, Settings(), source("t.npz"))
    assert error.message.startswith("There is no model: ")
    assert "Train and Localize" in error.message
    assert written_lines(error) == {"program": "train.py", "model": "model.keras"}


def test_without_a_program_there_is_none_to_run(root: Path) -> None:
    with pytest.raises(InputError) as caught:
        find_target(None, root, Settings(), None)
    assert "--run" not in caught.value.message
    assert written_lines(caught.value) == {"model": "model.keras", "test_data": "test.npz"}


def test_a_program_that_was_not_run_yet(root: Path) -> None:
    touch(root, "train.py", "m.keras")
    error = refused(root, Settings(), source("m.keras", "out/t.npz"))
    assert error.code == "target-missing"
    assert "out/t.npz (train.py, line 2)" in error.message
    assert "--test-data" in error.message


@pytest.mark.parametrize(
    ("settings", "code", "near"),
    [
        (Settings(model="modle.keras", test_data=("t.npz",)), "model-missing", "model.h5, model.keras"),
        (
            Settings(model="nowhere/m.keras", test_data=("t.npz",)),
            "model-missing",
            "Nor is there such a folder",
        ),
        (Settings(model="model.keras", test_data=("test.npz",)), "test-data-missing", "t.npz"),
        (Settings(model="model.keras", test_data=("x.csv",)), "test-data-missing", "No .csv file"),
    ],
)
def test_a_missing_file_names_what_is_near(root: Path, settings: Settings, code: str, near: str) -> None:
    touch(root, "train.py", "model.keras", "model.h5", "t.npz")
    error = refused(root, settings, source())
    assert (type(error), error.code) == (InputError, code)
    assert near in error.message


TWO = Settings(
    targets=(
        TargetSettings("one", "a.py", "a.keras", ("a.npz",)),
        TargetSettings("two", "b.py", "b.keras", ("b.npz",)),
    )
)


def test_the_program_picks_its_target(root: Path) -> None:
    touch(root, "a.py", "a.keras", "a.npz", "b.py", "b.keras", "b.npz")
    assert find_target(root / "b.py", root, TWO, None).model == root / "b.keras"
    assert find_target(root / "a.py", root, TWO, None).model == root / "a.keras"


def test_a_target_is_taken_by_its_name(root: Path) -> None:
    chosen = for_program(TWO, None, root, "two")
    assert (chosen.program, chosen.model, chosen.test_data) == ("b.py", "b.keras", ("b.npz",))
    with pytest.raises(UsageError, match="one, two") as caught:
        for_program(TWO, None, root, "three")
    assert caught.value.code == "target-unknown"


def test_several_targets_and_no_program_are_ambiguous(root: Path) -> None:
    with pytest.raises(InputError, match="one, two") as caught:
        for_program(TWO, None, root)
    assert caught.value.code == "target-ambiguous"


def test_what_is_set_for_another_program_is_not_taken(root: Path) -> None:
    touch(root, "train.py", "other.py", "m.keras", "t.npz")
    settings = Settings(program="train.py", model="m.keras", test_data=("t.npz",))
    assert find_target(root / "train.py", root, settings, source()).model == root / "m.keras"
    assert refused(root, settings, source(), "other.py").code == "target-missing"


def test_a_target_has_functions_and_labels_of_its_own(root: Path) -> None:
    table = """
    load = "nets:build"
    max_tests = 500
    [[targets]]
    program = "a.py"
    oracle = "judges:near"
    [[targets]]
    program = "b.py"
    load = "nets:other"
    label = "quality"
    """
    settings, problems = from_mapping(tomllib.loads(table))
    assert problems == ()
    a, b = (for_program(settings, root / name, root) for name in ("a.py", "b.py"))
    assert (a.load, a.oracle, a.label, a.max_tests) == ("nets:build", "judges:near", "", 500)
    assert (b.load, b.oracle, b.label, b.max_tests) == ("nets:other", "", "quality", 500)


def test_a_function_returns_what_the_settings_do_not_name(root: Path) -> None:
    program = touch(root, "train.py", "m.keras", "t.npz", "w.weights.h5")
    written = source("m.keras", "t.npz")
    both = find_target(program, root, Settings(load="nets:build"), written)
    assert (both.model, both.test_data) == (None, ())
    assert both.source == "model: nets:build, as the settings say; test set: nets:build, as the settings say"
    inputs = to_inputs(both, Settings(load="nets:build"))
    assert (inputs.model, inputs.test_data, inputs.load) == ("", (), "nets:build")
    named = Settings(load="nets:build", model="w.weights.h5", test_data=("t.npz",))
    weights = find_target(program, root, named, written)
    assert (weights.model, weights.test_data) == (root / "w.weights.h5", (str(root / "t.npz"),))


def test_folders_and_tables_are_models_and_tests(root: Path) -> None:
    program = touch(root, "train.py", "net/saved_model.pb", "pictures/cat/1.png")
    settings = Settings(model="net", test_data=("pictures",))
    target = find_target(program, root, settings, source())
    assert (target.model, target.test_data) == (root / "net", (str(root / "pictures"),))


def test_the_engine_gets_absolute_paths(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(root, "train.py", "m.keras", "x.npy", "y.npy")
    monkeypatch.chdir(root)
    settings = Settings(model="m.keras", test_data=("x.npy", "y.npy"), seed=3, neurons_per_layer=None)
    inputs = to_inputs(find_target(Path("train.py"), Path(), settings, None), settings)
    assert inputs.root == str(root)
    assert inputs.model == str(root / "m.keras")
    assert inputs.test_data == (str(root / "x.npy"), str(root / "y.npy"))
    assert (inputs.seed, inputs.neurons_per_layer) == (3, None)


# What was captured


def captured(root: Path, *names: str, changed: tuple[str, ...] = (), **of_model: Any) -> Capture:
    """A capture of train.py in the folder; it holds unless files are named that changed."""
    folder = root / "captures"
    folder.mkdir(exist_ok=True)
    models = tuple(model(folder, n, name, **of_model) for n, name in enumerate(names or ("net",)))
    return Capture(folder, record(program(root / "train.py", "--small"), models), changed)


def test_what_was_captured_comes_before_what_is_written(root: Path) -> None:
    touch(root, "train.py", "m.keras", "t.npz")
    capture = captured(root)
    target = find_target(root / "train.py", root, Settings(), source("m.keras", "t.npz"), capture)
    (net,) = capture.record.models
    assert (target.model, target.test_data) == (Path(net.path), (net.tests,))
    assert (target.capture, target.captured) == (capture, net)
    assert target.source.startswith("model: net, captured by running train.py --small at ")
    assert target.source.endswith("test set: test data of fit, train.py line 9")


def test_settings_that_name_both_come_before_what_was_captured(root: Path) -> None:
    touch(root, "train.py", "m.keras", "t.npz")
    settings = Settings(model="m.keras", test_data=("t.npz",))
    target = find_target(root / "train.py", root, settings, source(), captured(root))
    assert (target.model, target.captured) == (root / "m.keras", None)


def test_what_the_user_had_run_comes_first(root: Path) -> None:
    touch(root, "train.py", "m.keras", "t.npz")
    settings = Settings(model="m.keras", test_data=("t.npz",))
    target = find_target(root / "train.py", root, settings, source(), captured(root), trained=True)
    assert target.captured is not None
    assert target.test_data == (str(root / "t.npz"),)


def test_what_is_written_comes_before_an_older_capture(root: Path) -> None:
    touch(root, "train.py", "m.keras", "t.npz")
    capture = captured(root, changed=("train.py",))
    target = find_target(root / "train.py", root, Settings(), source("m.keras", "t.npz"), capture)
    assert (target.model, target.captured) == (root / "m.keras", None)


@pytest.mark.parametrize("written", [(), ("a.keras", "b.keras", "t.npz")])
def test_an_older_capture_is_better_than_nothing(root: Path, written: tuple[str, ...]) -> None:
    touch(root, "train.py", *written)
    capture = captured(root, changed=("train.py",))
    target = find_target(root / "train.py", root, Settings(), source(*written), capture)
    assert target.captured is capture.record.models[0]
    assert "which was before the program changed" in target.source


def test_one_of_several_captured_models(root: Path) -> None:
    touch(root, "train.py")
    capture = captured(root, "a", "b")
    target = find_target(root / "train.py", root, Settings(capture_model="b"), source(), capture)
    assert target.captured is capture.record.models[1]
    with pytest.raises(InputError) as caught:
        find_target(root / "train.py", root, Settings(capture_model="c"), source(), capture)
    assert caught.value.code == "captured-model-unknown"


def test_a_captured_model_without_tests(root: Path) -> None:
    touch(root, "train.py", "t.npz")
    capture = captured(root, tests="", data_kind="", data="the program fed it no data")
    with pytest.raises(InputError) as caught:
        find_target(root / "train.py", root, Settings(), source(), capture)
    assert caught.value.code == "captured-no-tests"
    assert "without tests: the program fed it no data." in caught.value.message
    assert written_lines(caught.value) == {"program": "train.py", "test_data": "test.npz"}
    for settings, written in ((Settings(test_data=("t.npz",)), source()), (Settings(), source("t.npz"))):
        target = find_target(root / "train.py", root, settings, written, capture)
        assert (target.captured, target.test_data) == (capture.record.models[0], (str(root / "t.npz"),))
