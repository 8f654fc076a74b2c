"""Alignment of small programs with models written down by hand."""

from __future__ import annotations

from typing import Any

import pytest

from guider_engine.wire import LayerPath, ModelLayer, ModelSummary
from guider_ls.mapping.align import align
from guider_ls.mapping.mapping import Difference, Mapping
from guider_ls.source.read import read_program

K = "import keras\nfrom keras.layers import *\n"
DEFAULTS: dict[str, dict[str, Any]] = {
    "Dense": {"units": 1, "activation": "linear", "use_bias": True},
    "Conv2D": {
        "filters": 1,
        "kernel_size": [3, 3],
        "strides": [1, 1],
        "padding": "valid",
        "activation": "linear",
    },
    "Dropout": {"rate": 0.5},
    "LSTM": {"units": 1, "activation": "tanh"},
}


def layer(
    path: LayerPath, class_name: str, name: str, inner: tuple[ModelLayer, ...] = (), **config: Any
) -> ModelLayer:
    known = class_name in {
        "Dense",
        "Conv2D",
        "Dropout",
        "LSTM",
        "Flatten",
        "InputLayer",
        "Sequential",
        "Functional",
    }
    return ModelLayer(
        path, name, class_name, known, {**DEFAULTS.get(class_name, {}), **config}, 0, None, None, inner
    )


def model(*layers: tuple[str, str, dict[str, Any]], kind: str = "Sequential") -> ModelSummary:
    made = tuple(
        layer((i,), class_name, name, **config) for i, (class_name, name, config) in enumerate(layers)
    )
    return ModelSummary("m", kind, made, None, False)


def dense(name: str, units: int, **config: Any) -> tuple[str, str, dict[str, Any]]:
    return "Dense", name, {"units": units, **config}


def sequential(*calls: str) -> str:
    return K + "m = keras.Sequential()\n" + "".join(f"m.add({call})\n" for call in calls)


def lines(mapping: Mapping) -> dict[LayerPath, int]:
    return {match.layer: match.site.span.line + 1 for match in mapping.matches}


def mapped(text: str, summary: ModelSummary) -> Mapping:
    return align(read_program(text), summary)


def test_names_need_not_start_at_zero() -> None:
    found = mapped(sequential("Dense(4)", "Dense(4)"), model(dense("dense_41", 4), dense("dense_42", 4)))
    assert lines(found) == {(0,): 4, (1,): 5}
    assert [match.reason for match in found.matches] == ["first Dense in order", "second Dense in order"]


def test_functional_layers_are_paired_in_construction_order() -> None:
    text = K + "a = Dense(4)\nb = Dense(4)\ni = Input((3,))\nm = keras.Model(i, a(b(i)))"
    found = mapped(
        text,
        model(("InputLayer", "input_layer", {}), dense("dense_8", 4), dense("dense_7", 4), kind="Functional"),
    )
    assert lines(found) == {(0,): 5, (1,): 4, (2,): 3}


def test_numbers_are_compared_as_numbers() -> None:
    text = K + "i = Input((3,))\nx = i\n" + "x = Dense(4)(x)\n" * 2 + "m = keras.Model(i, x)"
    found = mapped(text, model(dense("dense_10", 4), dense("dense_9", 4), kind="Functional"))
    assert lines(found) == {(1,): 5, (0,): 6}


def test_a_changed_argument_is_a_difference() -> None:
    text = sequential("Dense(64, activation='relu')", "Dense(10)")
    found = mapped(text, model(dense("dense", 32, activation="relu"), dense("dense_1", 10)))
    assert lines(found) == {(0,): 4, (1,): 5}
    assert found.matches[0].differences == (Difference("units", "64", "32"),)
    assert found.matches[1].differences == ()


GLOROT = {"kernel_initializer": {"class_name": "GlorotUniform", "config": {"seed": None}}}
NORMAL = {
    "kernel_initializer": {
        "class_name": "RandomNormal",
        "config": {"mean": 1.0, "stddev": 0.05, "seed": None},
    }
}


@pytest.mark.parametrize(
    ("call", "config", "differences"),
    [
        ("Conv2D(1, 3)", {}, ()),
        ("Conv2D(1, (3, 3), strides=(1, 1))", {}, ()),
        ("Conv2D(1, [3, 3], padding='VALID')", {}, ()),
        ("Conv2D(1, 3, activation=keras.activations.relu)", {"activation": "relu"}, ()),
        ("Conv2D(1, 3, activation=None)", {}, ()),
        ("Conv2D(1, 3, activation='swish')", {"activation": "silu"}, ()),
        ("Conv2D(1, k, activation=act)", {"kernel_size": [5, 5], "activation": "elu"}, ()),
        ("Conv2D(1, (3, k))", {"kernel_size": [3, 5]}, ()),
        ("Conv2D(1, 3, **options)", {"activation": "relu"}, ()),
        ("Conv2D(1, 5)", {}, (Difference("kernel_size", "5", "(3, 3)"),)),
        ("Conv2D(1, (3, 5))", {}, (Difference("kernel_size", "(3, 5)", "(3, 3)"),)),
        ("Conv2D(1, 3)", {"activation": "relu"}, (Difference("activation", "linear (default)", "relu"),)),
        ("Conv2D(1, 3, kernel_initializer='glorot_uniform')", GLOROT, ()),
        ("Conv2D(1, 3, kernel_initializer=keras.initializers.GlorotUniform(seed=3))", GLOROT, ()),
        ("Conv2D(1, 3)", GLOROT, ()),
        ("Conv2D(1, 3, kernel_initializer=mine)", GLOROT, ()),
        ("Conv2D(1, 3, kernel_initializer='mine')", GLOROT, ()),
        (
            "Conv2D(1, 3, kernel_initializer='zeros')",
            GLOROT,
            (Difference("kernel_initializer", "zeros", "GlorotUniform()"),),
        ),
        ("Conv2D(1, 3, kernel_initializer=keras.initializers.RandomNormal(1.0))", NORMAL, ()),
        (
            "Conv2D(1, 3, kernel_initializer=keras.initializers.RandomNormal(stddev=0.05))",
            NORMAL,
            (
                Difference(
                    "kernel_initializer",
                    "RandomNormal(mean=0)",
                    "RandomNormal(mean=1)",
                ),
            ),
        ),
        (
            "Conv2D(1, 3)",
            NORMAL,
            (
                Difference(
                    "kernel_initializer", "glorot_uniform (default)", "RandomNormal(mean=1, stddev=0.05)"
                ),
            ),
        ),
        (
            "Conv2D(1, 3, kernel_regularizer=keras.regularizers.l2(0.1))",
            {"kernel_regularizer": {"class_name": "L2", "config": {"l2": 0.009999999776482582}}},
            (Difference("kernel_regularizer", "L2(l2=0.1)", "L2(l2=0.01)"),),
        ),
        (
            "Conv2D(1, 3, kernel_regularizer='l2')",
            {"kernel_regularizer": {"class_name": "L2", "config": {"l2": 0.009999999776482582}}},
            (),
        ),
        (
            "Conv2D(1, 3)",
            {"kernel_regularizer": {"class_name": "L2", "config": {"l2": 0.1}}},
            (Difference("kernel_regularizer", "None (default)", "L2(l2=0.1)"),),
        ),
        ("Conv2D(1, 3, input_shape=(8, 8, 1))", {}, ()),
    ],
)
def test_arguments_are_compared_as_keras_takes_them(
    call: str, config: dict[str, Any], differences: tuple[Difference, ...]
) -> None:
    found = mapped(sequential(call), model(("Conv2D", "conv2d", config)))
    assert lines(found) == {(0,): 4}
    assert found.matches[0].differences == differences


def test_a_new_line_has_no_layer_and_moves_no_other() -> None:
    text = sequential("Dense(64)", "Dense(32)", "Dense(10)")
    found = mapped(text, model(dense("dense", 64), dense("dense_1", 10)))
    assert lines(found) == {(0,): 4, (1,): 6}
    (left,) = found.unmatched_sites
    assert left.reason == "no Dense in the model has units=32"


def test_a_deleted_line_leaves_its_layer_alone() -> None:
    found = mapped(
        sequential("Dense(64)", "Dense(10)"), model(dense("a", 64), dense("b", 32), dense("c", 10))
    )
    assert lines(found) == {(0,): 4, (2,): 5}
    assert found.unmatched_layers[0].layer == (1,)


def test_what_cannot_be_told_apart_is_not_guessed() -> None:
    found = mapped(sequential("Dense(64)", "Dense(64)"), model(dense("dense", 64)))
    assert found.matches == ()
    (left,) = found.unmatched_layers
    assert left.reason == "could be line 4 or line 5"
    assert [site.span.line for site in left.candidates] == [3, 4]
    assert [site.reason for site in found.unmatched_sites] == [
        "may be a layer of the model, but so may line 5",
        "may be a layer of the model, but so may line 4",
    ]


def test_neighbours_tell_equal_layers_apart_in_a_sequential_model() -> None:
    text = sequential("Dense(64)", "Dropout(0.5)", "Dense(64)")
    found = mapped(text, model(("Dropout", "dropout", {}), dense("dense", 64)))
    assert lines(found) == {(0,): 5, (1,): 6}


def test_two_layers_on_one_line_are_two_sites() -> None:
    text = K + "m = keras.Sequential([Dense(4), Dense(4)])"
    found = mapped(text, model(dense("dense", 4), dense("dense_1", 4)))
    assert [match.site.span.column for match in found.matches] == [22, 32]


def test_names_that_contradict_forbid_a_pair() -> None:
    text = sequential("Dense(64, name='one')", "Dense(64, name='two')")
    found = mapped(text, model(dense("two", 64)))
    assert lines(found) == {(0,): 5}
    assert found.matches[0].reason == 'name "two"'
    assert mapped(text, model(dense("three", 64))).matches == ()


def test_a_name_given_after_training_is_a_difference() -> None:
    found = mapped(sequential("Dense(64, name='one')"), model(dense("dense_3", 64)))
    assert found.matches[0].differences == (Difference("name", "one", "dense_3"),)


def test_a_loop_is_one_site_of_many_layers() -> None:
    text = (
        K + "m = keras.Sequential()\nfor n in sizes:\n    m.add(Dense(n, activation='relu'))\nm.add(Dense(1))"
    )
    summary = model(*(dense(f"dense_{i}", i, activation="relu") for i in (5, 6, 7)), dense("dense_8", 1))
    found = mapped(text, summary)
    assert lines(found) == {(0,): 5, (1,): 5, (2,): 5, (3,): 6}
    assert len(found.of_site(read_program(text).sites[0])) == 3


def test_a_line_that_says_one_value_is_not_given_layers_of_two() -> None:
    text = K + "m = keras.Sequential()\nfor n in sizes:\n    m.add(Dense(n, activation='relu'))"
    summary = model(dense("dense", 5, activation="relu"), dense("dense_1", 5, activation="tanh"))
    assert lines(mapped(text, summary)) == {(0,): 5}


def test_a_class_of_the_program_is_not_keras_own() -> None:
    text = (
        K
        + "class Dense(keras.layers.Dense):\n    pass\n"
        + sequential("Dense(4)", "keras.layers.Dense(4)")[len(K) :]
    )
    own = ModelLayer((0,), "dense", "Dense", False, {"units": 4}, 0, None)
    kept = ModelLayer((1,), "dense_1", "Dense", True, {"units": 4, "activation": "linear"}, 0, None)
    found = mapped(text, ModelSummary("m", "Sequential", (own, kept), None, False))
    assert lines(found) == {(0,): 6, (1,): 7}


def test_the_other_model_of_a_file() -> None:
    text = K + "a = keras.Sequential([Dense(4), Flatten()])\nb = keras.Sequential([Dense(8)])"
    found = mapped(text, model(dense("dense", 8)))
    assert lines(found) == {(0,): 4}
    assert {site.reason for site in found.unmatched_sites} == {"part of another model, a"}


def test_two_models_alike() -> None:
    text = K + "a = keras.Sequential([Dense(8)])\nb = keras.Sequential([Dense(8)])"
    found = mapped(text, model(dense("dense_7", 8)))
    assert found.matches == ()
    assert found.unmatched_layers[0].reason == "could be line 3 or line 4"


def test_a_network_that_is_given_its_input_makes_none() -> None:
    text = (
        K
        + "i = Input((32, 32, 3))\nbase = keras.applications.VGG16({}include_top=False)\n"
        + "m = keras.Model(base.input, Dense(2)(base.output))"
    )
    layers: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("InputLayer", "input_layer", {}),
        dense("dense", 2),
    )
    assert lines(mapped(text.format("input_tensor=i, "), model(*layers))).get((0,)) != 4
    assert lines(mapped(text.format(""), model(*layers)))[(0,)] == 4


def test_the_inside_of_a_nested_model() -> None:
    text = (
        K
        + "e = keras.Sequential([Dense(4), Dense(2)], name='e')\ni = Input((3,))\nm = keras.Model(i, Dense(2)(e(i)))"
    )
    inside = (layer((1, 0), "Dense", "dense", units=4), layer((1, 1), "Dense", "dense_1", units=2))
    layers = (
        layer((0,), "InputLayer", "input_layer"),
        layer((1,), "Sequential", "e", inside),
        layer((2,), "Dense", "dense_2", units=2),
    )
    found = mapped(text, ModelSummary("m", "Functional", layers, None, False))
    assert lines(found) == {(0,): 4, (1,): 3, (1, 0): 3, (1, 1): 3, (2,): 5}
    assert [match.site.span.column for match in found.matches if match.layer[0] == 1] == [4, 22, 32]


REASONS = [
    (sequential("Dense(4)", "TimeDistributed(Dense(3))"), "wrapped by TimeDistributed, line 5"),
    (sequential("Dense(4)") + "forgotten = Flatten()", "neither called nor added to a model"),
    (sequential("Dense(4)") + "if False:\n    Flatten()", "in code that does not run"),
    (
        sequential("Dense(4)") + "x = Flatten()(y)",
        "called, but its output does not lead to the output of a model",
    ),
    (sequential("Dense(4)") + "x = Flatten()(y)\nx = ReLU()(y)", "its variable gets another value before"),
    (sequential("Dense(4)") + "cell = LSTM(3)\nm.add(Bidirectional(cell))", "wrapped by another layer"),
    (sequential("Dense(4)", "Lambda(lambda x: Dense(9)(x))"), "made anew inside each call of a layer"),
    (sequential("Dense(4)", "Flatten()"), "the model has no Flatten"),
    (sequential("Input((3,))", "Dense(4)"), "Keras does not list the input of this model as a layer"),
    (
        sequential("Dense(4)") + "if x:\n    m.add(Dense(4))",
        "in a branch that this model does not seem to have taken",
    ),
]


@pytest.mark.parametrize(("text", "reason"), REASONS, ids=[reason for _, reason in REASONS])
def test_why_a_line_has_no_layer(text: str, reason: str) -> None:
    found = mapped(text, model(dense("dense", 4)))
    assert any(site.reason.startswith(reason) for site in found.unmatched_sites), found.unmatched_sites


def test_why_a_layer_has_no_line() -> None:
    found = mapped(
        sequential("Dense(4)"),
        model(("InputLayer", "input_layer", {}), dense("dense", 4), ("LSTM", "lstm", {}), kind="Functional"),
    )
    assert {left.layer: left.reason for left in found.unmatched_layers} == {
        (0,): "inserted by Keras",
        (2,): "no line of this program constructs a LSTM",
    }


@pytest.mark.parametrize("text", ["", "x = 1", K, sequential("Dense(4)")])
@pytest.mark.parametrize("layers", [(), (dense("dense", 4),), (("Whatever", "w", {}),) * 3])
def test_every_site_and_every_layer_is_accounted_for(text: str, layers: tuple[Any, ...]) -> None:
    source, summary = read_program(text), model(*layers)
    found = align(source, summary)
    paths = [match.layer for match in found.matches] + [left.layer for left in found.unmatched_layers]
    assert sorted(paths) == [layer.path for layer in summary.layers]
    paired = {match.site.span for match in found.matches}
    assert paired | {left.site.span for left in found.unmatched_sites} == {site.span for site in source.sites}
    assert all(site.reason for site in found.unmatched_sites)
    assert all(left.reason for left in found.unmatched_layers)


def test_what_the_text_alone_knows_to_be_unused() -> None:
    text = K + "i = Input((3,))\nx = Dense(5)(i)\nx = Dense(6)(i)\nm = keras.Model(i, x)\nspare = Dense(7)\n"
    found = mapped(text, model(("InputLayer", "input_layer", {}), dense("dense_1", 6), kind="Functional"))
    assert [(left.site.span.line + 1, left.unused) for left in found.unmatched_sites] == [
        (4, True),
        (7, False),
    ]


def test_the_call_that_makes_a_layer_in_another_module() -> None:
    class One:
        def find(self, name: str, level: int, importer: str) -> tuple[str, str] | None:
            text = "from keras.layers import Dense\ndef block(x, n):\n    return Dense(n)(x)\n"
            return ("/p/blocks.py", text) if name == "blocks" else None

    text = "import keras\nfrom blocks import block\ni = keras.Input((3,))\nx = block(block(i, 4), 5)\n"
    source = read_program(text + "m = keras.Model(i, x)\n", One())
    summary = model(
        ("InputLayer", "input_layer", {}), dense("dense", 4), dense("dense_1", 5), kind="Functional"
    )
    found = align(source, summary)
    calls = [(match.layer, [(c.file, c.span.column) for c in match.callers]) for match in found.matches]
    assert calls == [((0,), []), ((1,), [("", 10)]), ((2,), [("", 4)])]
