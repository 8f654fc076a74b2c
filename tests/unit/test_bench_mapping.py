"""How the benchmark of the mapping judges and counts."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks.capturing import Job, relative
from benchmarks.mapping import (
    Judged,
    Tally,
    callee,
    figures,
    half,
    is_same,
    judge,
    keras_io,
    kind_of,
    misses_text,
    table,
    without_origins,
)
from benchmarks.shims import BatchShape, Unavailable, layer_arguments, moved, renamed, smaller, with_nothing

from guider_engine.wire import CaptureRecord, ModelLayer, ModelSummary, Origin, Program
from guider_ls.mapping.mapping import Mapping, Match, UnmatchedLayer
from guider_ls.source.read import read_program
from guider_ls.source.sites import SourceMap

PROGRAM = """\
from keras import Sequential, layers
model = Sequential([layers.Dense(4), layers.Dense(
    4), layers.Dense(2)])
other = layers.Dense(4)
"""
FIRST = Origin("train.py", 1, 20, 1, 35)
SECOND = Origin("train.py", 1, 37, 2, 6)
THIRD = Origin("train.py", 2, 8, 2, 23)
UNSEEN = Origin("train.py", 9, 0, 9, 5)


def layer(index: int, origin: Origin | None, class_name: str = "Dense") -> ModelLayer:
    return ModelLayer((index,), f"dense_{index}", class_name, True, {}, 0, None, origin=origin)


def model(*origins: Origin | None) -> ModelSummary:
    layers = tuple(layer(index, origin) for index, origin in enumerate(origins))
    return ModelSummary("model", "Sequential", layers, None, False)


def judged(source: SourceMap, mapping: Mapping, summary: ModelSummary, called: str = "Dense") -> list[Judged]:
    names = {one.origin: called for one in summary.all_layers() if one.origin}
    return list(judge("model", summary, mapping, source, "train.py", names))


def test_a_site_is_the_call_that_ends_where_it_ends() -> None:
    sites = read_program(PROGRAM).sites
    assert is_same(sites[0], FIRST, "train.py")
    assert is_same(sites[1], SECOND, "train.py")
    assert not is_same(sites[0], SECOND, "train.py")
    assert not is_same(sites[0], FIRST, "other.py")
    assert is_same(
        dataclasses.replace(sites[0], file="other.py"), dataclasses.replace(FIRST, file="other.py"), ""
    )


def test_without_columns_the_line_has_to_do() -> None:
    sites = read_program(PROGRAM).sites
    assert is_same(sites[1], Origin("train.py", 2), "train.py")
    assert not is_same(sites[0], Origin("train.py", 2), "train.py")


def test_what_is_called_is_read_from_the_text() -> None:
    assert callee(PROGRAM, FIRST) == "layers.Dense"
    assert callee(PROGRAM, SECOND) == "layers.Dense"
    assert callee(PROGRAM, UNSEEN) == ""
    assert callee("x = '😀'; y = Dense(1)\n", Origin("", 0, 13, 0, 21)) == "Dense"
    assert callee("y = kinds['a'](1)\n", Origin("", 0, 4, 0, 17)) == ""


def test_kinds_of_layers() -> None:
    assert kind_of(layer(0, FIRST), "layers.Dense") == "own"
    assert kind_of(layer(0, FIRST), "") == "own"
    assert kind_of(layer(0, FIRST), "keras.applications.VGG16") == "ready-made"
    assert kind_of(layer(0, FIRST), "keras.models.load_model") == "ready-made"
    assert kind_of(layer(0, None), "") == "elsewhere"
    assert kind_of(layer(0, FIRST, "InputLayer"), "keras.Input") == "own"
    assert kind_of(layer(0, FIRST, "InputLayer"), "model.add") == "inserted"
    assert kind_of(layer(0, None, "InputLayer"), "") == "inserted"


def test_each_layer_is_judged_and_each_miss_has_a_cause() -> None:
    source = read_program(PROGRAM)
    sites = source.sites
    summary = model(FIRST, FIRST, SECOND, THIRD, UNSEEN, None)
    mapping = Mapping(
        (Match(sites[0], (0,), ""), Match(sites[1], (1,), ""), Match(sites[2], (5,), "")),
        (),
        (
            UnmatchedLayer((2,), "either", (sites[0], sites[1])),
            UnmatchedLayer((3,), "none"),
            UnmatchedLayer((4,), "none"),
        ),
    )
    found = judged(source, mapping, summary)
    assert [(one.verdict, one.cause) for one in found] == [
        ("right", ""),
        ("wrong", "wrong line"),
        ("ambiguous", "ambiguous"),
        ("missing", "left out, though its line is in a construction"),
        ("missing", "no site at the line"),
        ("wrong", "no line of the project constructs it"),
    ]
    assert found[5].kind == "elsewhere"


def test_layers_got_ready_made_are_one_and_the_worst_counts() -> None:
    source = read_program(PROGRAM)
    summary = model(FIRST, FIRST, FIRST)
    right, wrong = Match(source.sites[0], (0,), ""), Match(source.sites[1], (1,), "")
    rest = (UnmatchedLayer((2,), ""),)
    assert [one.verdict for one in judged(source, Mapping((right,), (), rest), summary, "VGG16")] == ["right"]
    found = judged(source, Mapping((right, wrong), (), rest), summary, "VGG16")
    assert [one.verdict for one in found] == ["wrong"]


def test_a_call_that_makes_a_layer_with_its_inside_gives_it_ready_made() -> None:
    nested = dataclasses.replace(layer(0, FIRST, "Functional"), inner=(layer(0, FIRST), layer(1, FIRST)))
    own = dataclasses.replace(layer(1, SECOND, "Functional"), inner=(layer(0, THIRD),))
    summary = ModelSummary("m", "Functional", (nested, own), None, False)
    found = judged(read_program(PROGRAM), Mapping((), (), ()), summary, called="build")
    assert [(one.layer.class_name, one.kind) for one in found] == [
        ("Functional", "own"),
        ("Dense", "own"),
        ("Functional", "ready-made"),
    ]


def test_precision_is_of_pairs_and_recall_of_lines() -> None:
    tally = Tally()
    tally.counts = Counter(
        {
            ("static", "own", "right"): 90,
            ("static", "own", "wrong"): 2,
            ("static", "own", "ambiguous"): 5,
            ("static", "ready-made", "missing"): 3,
            ("static", "elsewhere", "wrong"): 8,
            ("static", "elsewhere", "missing"): 50,
            ("static", "inserted", "missing"): 50,
            ("capture", "own", "right"): 100,
        }
    )
    assert tally.precision("static") == 0.9
    assert tally.recall("static") == 0.9
    assert tally.precision("capture") == tally.recall("capture") == 1.0
    assert tally.left_out("elsewhere") == 58
    both = tally + tally
    assert both.count("static", "right") == 180
    assert both.precision("static") == 0.9
    assert Tally().precision("static") is None


def test_figures_have_goals_and_the_table_shows_them() -> None:
    tally = Tally(programs=3, ran=2, models=2, layers=10, sites=9)
    tally.counts = Counter({("static", "own", "right"): 9, ("static", "own", "missing"): 1})
    found, goals = figures([("fixtures", "dev", tally)])
    assert found["fixtures, dev, static, recall"] == 0.9
    assert goals["fixtures, dev, static, recall"] == (">=", 0.98)
    assert goals["fixtures, dev, static, precision"] == (">=", 0.995)
    assert "fixtures, dev, capture, recall" not in found
    assert "100.00%   90.00%" in table([("fixtures", "dev", tally)])


def test_misses_of_the_test_half_are_counted_and_not_shown() -> None:
    source = read_program(PROGRAM)
    missed = judged(source, Mapping((), (), (UnmatchedLayer((0,), "a reason"),)), model(FIRST))
    job = Job("a/program.py", Path("/x/train.py"), Path("/x"), alone=True)
    tally = Tally(causes=Counter({missed[0].cause: 1}), stopped=Counter({"ValueError": 2}))
    for part in ("dev", "test"):
        text = misses_text([("set", part, job, missed)], {("set", part): tally})
        assert "1 × left out, though its line is in a construction" in text
        assert "2 programs gave no model: ValueError" in text
        assert ("a/program.py" in text) == ("a reason" in text) == (part == "dev")


def test_halves_go_by_the_path(tmp_path: Path) -> None:
    copy = tmp_path / "keras-io"
    (copy / "guides").mkdir(parents=True)
    names = [f"guides/{letter}.py" for letter in "abcdefgh"]
    for name in names:
        (copy / name).write_text("")
    found = {job.name: part for job, part in keras_io([copy]).jobs}
    for name in names:
        first = hashlib.sha1(name.encode()).hexdigest()[0]
        assert found[f"keras-io/{name}"] == half(name) == ("dev" if first in "01234567" else "test")


def test_a_model_without_origins_is_else_the_same() -> None:
    inner = layer(0, FIRST)
    summary = ModelSummary(
        "m",
        "Functional",
        (dataclasses.replace(layer(0, SECOND), inner=(inner,), callers=(FIRST,)),),
        None,
        False,
    )
    bare = without_origins(summary)
    assert all(one.origin is None and one.callers == () for one in bare.all_layers())
    assert [one.name for one in bare.all_layers()] == [one.name for one in summary.all_layers()]


def test_the_paths_of_a_record_are_those_of_the_project() -> None:
    root = "/somewhere/project"
    found = dataclasses.replace(FIRST, file=f"{root}/nets/train.py")
    record = CaptureRecord(
        Program(f"{root}/train.py", (), root, root), "finished", None, (), (), (), (), (), 0.0, 0.0, {}
    )
    from guider_engine.wire import CapturedModel

    captured = CapturedModel("m", "", False, model(found), "", "", "", False, 0, "")
    kept = relative(dataclasses.replace(record, models=(captured,)), Path(root))
    origin = kept.models[0].model.layers[0].origin
    assert origin is not None
    assert origin.file == "nets/train.py"
    assert kept.program.path == "train.py"


def test_old_arguments_of_layers() -> None:
    def given(*classes: str, **kwargs: Any) -> dict[str, Any]:
        return layer_arguments(classes, {"units", "rate", "weights_only"}, (), kwargs)[1]

    assert given("Dense", output_dim=4, init="uniform") == {"units": 4, "kernel_initializer": "uniform"}
    assert given("Dropout", p=0.5) == {"rate": 0.5}
    assert given("Conv2D", "BaseConv", nb_filter=8, nb_row=3, nb_col=2, border_mode="same") == {
        "filters": 8,
        "kernel_size": (3, 2),
        "padding": "same",
    }
    assert given("LSTM", "RNN", input_dim=3, input_length=9) == {"input_shape": (9, 3)}
    assert given("Embedding", input_dim=3, input_length=9) == {"input_dim": 3}
    assert given("Dense", units=4) == {"units": 4}
    assert given("Dense", batch_input_shape=(2, 3)) == {"input_shape": BatchShape((2, 3))}
    assert given("InputLayer", shape=BatchShape((2, 3))) == {"batch_shape": (2, 3)}


def test_a_new_name_counts_before_an_old_one() -> None:
    assert renamed(
        {"lr": 0.1, "learning_rate": 0.2, "decay": 1e-6}, {"lr": "learning_rate", "decay": ""}
    ) == {"learning_rate": 0.2}


def test_modules_that_moved() -> None:
    assert moved("keras.layers.core") == ("keras.layers",)
    assert moved("tensorflow.keras.layers.core") == ("keras.layers",)
    assert moved("tensorflow.python.keras.layers.core") == ("keras.layers",)
    assert moved("keras.layers") is None
    assert moved("keras._tf_keras.keras.preprocessing.text") is None
    assert moved("numpy") is None


def test_a_call_may_leave_out_what_keras_passed_by_itself() -> None:
    def call(inputs: int, training: bool | None, scale: int = 2) -> tuple[int, bool | None, int]:
        return inputs, training, scale

    complete = with_nothing(call, ["training"])
    assert complete(1) == (1, None, 2)
    assert complete(1, True) == (1, True, 2)
    assert complete(1, scale=3, training=False) == (1, False, 3)
    assert list(inspect.signature(complete).parameters) == ["inputs", "training", "scale"]


def test_many_numbers_take_no_memory() -> None:
    def make(n_samples: int, n_features: int = 2, *, n_classes: int = 2) -> str:
        return f"{n_samples} {n_features} {n_classes}"

    assert smaller(make)(3) == "3 2 2"
    x, y = smaller(make)(12_000, 60_000, n_classes=3)
    assert x.shape == (12_000, 60_000)
    assert y[:4].tolist() == [0, 1, 2, 0]


def test_what_is_absent_may_be_named_and_not_used() -> None:
    absent = Unavailable("tensorflow_addons")
    with pytest.raises(ModuleNotFoundError, match=r"tensorflow_addons\.layers\.GELU is not available here"):
        absent.layers.GELU()
    with pytest.raises(ModuleNotFoundError):

        class _Own(absent.layers.Layer):  # type: ignore[misc,name-defined]
            pass
