"""What the run of a program says of its lines, against texts that changed since."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guider_engine.wire import ModelLayer, ModelSummary, Origin, Stray
from guider_ls.mapping.align import align
from guider_ls.mapping.captured import Run
from guider_ls.mapping.mapping import Difference, Mapping
from guider_ls.source.lines import Lines
from guider_ls.source.read import read_program

PROGRAM = "/p/train.py"
K = "import keras\nfrom keras.layers import *\n"


def origin(text: str, call: str, *, nth: int = 0, file: str = PROGRAM, columns: bool = True) -> Origin:
    """The place of the n-th such call."""
    lines, start = Lines(text), [m.start() for m in re.finditer(re.escape(call), text)][nth]
    line, column = lines.place(start)
    return Origin(file, line, column, *lines.place(start + len(call))) if columns else Origin(file, line)


def layer(index: int, class_name: str, at: Origin | None, *callers: Origin, **config: object) -> ModelLayer:
    name = str(config.pop("name", f"{class_name.lower()}_{index}"))
    made = ModelLayer((index,), name, class_name, True, config, 0, None, origin=at, callers=callers)
    return replace(made, builtin=class_name != "Block")


def model(*layers: ModelLayer) -> ModelSummary:
    return ModelSummary("m", "Functional", layers, None, False)


def mapped(then: str, found: ModelSummary, now: str | None = None, **more: object) -> Mapping:
    now = then if now is None else now
    run = Run(PROGRAM, {PROGRAM: (then, now)}, **more)  # type: ignore[arg-type]
    return align(read_program(now), found, run)


def calls(mapping: Mapping, text: str) -> dict[int, str]:
    """The source of the call that each layer is paired with."""
    lines = Lines(text)
    return {
        match.layer[0]: text[
            lines.offset(match.site.span.line, match.site.span.column) : lines.offset(
                match.site.span.end_line, match.site.span.end_column
            )
        ]
        for match in mapping.matches
    }


HELPER = "def block(x, n):\n    return Dense(n)(x)\n"
LOOP = K + HELPER + "i = Input((3,))\nx = block(i, 4)\nx = block(x, 5)\nm = keras.Model(i, x)\n"


def test_a_helper_that_is_called_twice() -> None:
    dense = origin(LOOP, "Dense(n)")
    found = mapped(
        LOOP,
        model(
            layer(0, "InputLayer", origin(LOOP, "Input((3,))")),
            layer(1, "Dense", dense, origin(LOOP, "block(i, 4)"), units=4),
            layer(2, "Dense", dense, origin(LOOP, "block(x, 5)"), units=5),
        ),
    )
    assert calls(found, LOOP) == {0: "Input((3,))", 1: "Dense(n)", 2: "Dense(n)"}
    assert [match.reason for match in found.matches] == [
        "constructed here when the program ran",
        "constructed here when the program ran, called from line 6",
        "constructed here when the program ran, called from line 7",
    ]
    assert [match.callers[0].span.line for match in found.matches[1:]] == [5, 6]


def test_the_run_knows_better_than_the_order() -> None:
    text = K + "a = Dense(4)\nb = Dense(4)\ni = Input((3,))\nm = keras.Model(i, a(b(i)))\n"
    first, second = origin(text, "Dense(4)"), origin(text, "Dense(4)", nth=1)
    found = mapped(text, model(layer(0, "Dense", second, units=4), layer(1, "Dense", first, units=4)))
    assert {m.layer: m.site.span.line for m in found.matches} == {(0,): 3, (1,): 2}


def test_an_edited_call_is_the_same_and_says_its_differences() -> None:
    then = K + "m = keras.Sequential([\n    Dense(64),\n    Dense(3),\n])\n"
    now = "# new\n" + then.replace("Dense(64)", "Dense(32, activation='relu')")
    found = mapped(
        then,
        model(
            layer(0, "Dense", origin(then, "Dense(64)"), units=64, activation="linear"),
            layer(1, "Dense", origin(then, "Dense(3)"), units=3, activation="linear"),
        ),
        now,
    )
    assert calls(found, now) == {0: "Dense(32, activation='relu')", 1: "Dense(3)"}
    assert found.matches[0].differences == (
        Difference("units", "32", "64"),
        Difference("activation", "relu", "linear"),
    )
    assert found.matches[1].differences == ()


def test_a_program_that_is_as_it_ran_differs_nowhere() -> None:
    text = K + "m = keras.Sequential([Dense(64)])\n"
    found = mapped(text, model(layer(0, "Dense", origin(text, "Dense(64)"), units=32)))
    assert found.matches[0].differences == ()


def test_a_deleted_call_has_no_site() -> None:
    then = K + "m = keras.Sequential()\nm.add(Dense(64))\nm.add(Flatten())\nm.add(Dense(3))\n"
    now = then.replace("m.add(Dense(64))\n", "")
    found = mapped(
        then,
        model(
            layer(0, "Dense", origin(then, "Dense(64)"), units=64),
            layer(1, "Flatten", origin(then, "Flatten()")),
            layer(2, "Dense", origin(then, "Dense(3)"), units=3),
        ),
        now,
    )
    assert calls(found, now) == {1: "Flatten()", 2: "Dense(3)"}
    (left,) = found.unmatched_layers
    assert left.reason == "made by line 4 when the program ran, which is gone"


def test_a_call_that_was_cut_and_pasted() -> None:
    then = K + "m = keras.Sequential()\nm.add(Dense(64))\nm.add(Flatten())\nm.add(Dense(3))\n"
    now = K + "m = keras.Sequential()\nm.add(Flatten())\nm.add(Dense(3))\nm.add(Dense(64))\n"
    found = mapped(then, model(layer(0, "Dense", origin(then, "Dense(64)"), units=64)), now)
    assert calls(found, now) == {0: "Dense(64)"}


def test_a_call_that_constructs_something_else_now_is_another() -> None:
    then = K + "m = keras.Sequential([LSTM(64)])\n"
    now = then.replace("LSTM", "GRU")
    found = mapped(then, model(layer(0, "LSTM", origin(then, "LSTM(64)"), units=64)), now)
    assert found.matches == ()
    assert found.unmatched_layers[0].reason == "made by line 3, which constructs something else now"
    assert found.unmatched_sites[0].reason == "newer than the model"


def test_keras_own_input_has_no_line() -> None:
    text = K + "m = keras.Sequential([Dense(4)])\nm.build((None, 3))\n"
    made = (
        layer(0, "InputLayer", origin(text, "m.build((None, 3))")),
        layer(1, "Dense", origin(text, "Dense(4)")),
    )
    found = mapped(text, model(*made))
    assert calls(found, text) == {1: "Dense(4)"}
    assert found.unmatched_layers[0].reason == "inserted by Keras"


def test_a_call_that_only_the_run_knows_to_construct_layers() -> None:
    text = (
        K + "m = keras.Sequential([find('Dense', 4), restore('m.json'), find('Flatten')])  # guider: ignore\n"
    )
    restored = origin(text, "restore('m.json')")
    found = mapped(
        text,
        model(
            layer(0, "Dense", origin(text, "find('Dense', 4)"), units=4),
            layer(1, "InputLayer", restored),
            layer(2, "Dense", restored, units=5),
            layer(3, "Conv2D", restored),
        ),
    )
    assert calls(found, text) == {0: "find('Dense', 4)", **dict.fromkeys((1, 2, 3), "restore('m.json')")}
    assert [match.site.class_name for match in found.matches] == ["Dense", "restore", "restore", "restore"]
    assert found.matches[3].reason == "made by restore(…) when the program ran"
    assert all(match.site.ignored for match in found.matches)


def test_a_ready_made_network_is_one_block() -> None:
    text = K + "b = keras.applications.ResNet50()\nm = keras.Model(b.input, Dense(3)(b.output))\n"
    network = origin(text, "keras.applications.ResNet50()")
    made = (layer(0, "InputLayer", network), layer(1, "Conv2D", network), layer(2, "ReLU", network))
    found = mapped(text, model(*made, layer(3, "Dense", origin(text, "Dense(3)"), units=3)))
    assert [match.site.class_name for match in found.matches] == ["ResNet50"] * 3 + ["Dense"]
    assert found.matches[1].reason == "made by ResNet50(…) when the program ran"


def test_layers_made_in_another_module_move_with_it() -> None:
    blocks = "from keras.layers import Dense\n\ndef head(x):\n    return Dense(3)(x)\n"
    text = "import keras\nfrom blocks import head\ni = keras.Input((3,))\nm = keras.Model(i, head(i))\n"
    made = layer(
        0, "Dense", origin(blocks, "Dense(3)", file="/p/blocks.py"), origin(text, "head(i)"), units=3
    )
    run = Run(PROGRAM, {PROGRAM: (text, text), "/p/blocks.py": (blocks, "# new\n" + blocks)})
    (match,) = align(read_program(text), model(made), run).matches
    assert (match.site.file, match.site.span.line, match.site.class_name) == ("/p/blocks.py", 4, "Dense")
    assert match.reason == "constructed here when the program ran, called from line 4 of train.py"
    assert [(caller.file, caller.span.line) for caller in match.callers] == [("", 3)]


def test_a_file_that_is_gone() -> None:
    text = K + "m = keras.Sequential([Dense(4)])\n"
    found = mapped(text, model(layer(0, "Dense", Origin("/p/old.py", 6, 0, 6, 8))))
    assert found.unmatched_layers[0].reason == "made by line 7 of old.py when the program ran, which is gone"


def test_what_has_no_origin_is_aligned() -> None:
    text = K + "m = keras.Sequential([Dense(4), Dropout(0.5)])\n"
    found = mapped(
        text, model(layer(0, "Dense", origin(text, "Dense(4)"), units=4), layer(1, "Dropout", None, rate=0.5))
    )
    assert [match.reason for match in found.matches] == [
        "constructed here when the program ran",
        "only Dropout",
    ]


class TestLinesWithoutColumns:
    """Python 3.10 knows the line of a call only."""

    layers = "a, b = Dense(4), Dense(5)\nx = Dropout(0.5)(a(i)); y = Dense(6)(b(x))\n"
    text = K + "i = Input((3,))\n" + layers + "m = keras.Model(i, y)\n"

    def at(self, call: str) -> Origin:
        return origin(self.text, call, columns=False)

    def found(self, *names: str, strays: tuple[Stray, ...] = ()) -> Mapping:
        first, second = (
            layer(n, "Dense", self.at("Dense(4)"), units=4, name=name) for n, name in enumerate(names)
        )
        others = layer(2, "Dropout", self.at("Dropout(0.5)")), layer(3, "Dense", self.at("Dense(6)"), units=6)
        return mapped(self.text, model(first, second, *others), strays=strays)

    def test_one_call_of_a_class_in_a_line(self) -> None:
        assert calls(self.found("a", "b"), self.text).items() >= {2: "Dropout(0.5)", 3: "Dense(6)"}.items()

    def test_order_decides(self) -> None:
        found = calls(self.found("dense_8", "dense_7"), self.text)
        assert (found[0], found[1]) == ("Dense(5)", "Dense(4)")

    def test_what_order_does_not_decide_is_open(self) -> None:
        found = self.found("a", "b")
        assert sorted(calls(found, self.text)) == [2, 3]
        assert [left.reason for left in found.unmatched_layers] == ["could be each of 2 calls in line 4"] * 2
        assert len(found.unmatched_layers[0].candidates) == 2

    def test_a_stray_of_the_line_takes_the_order_away(self) -> None:
        stray = Stray(self.at("Dense(4)"), "Dense", 1, False)
        assert 0 not in calls(self.found("dense_8", "dense_7", strays=(stray,)), self.text)


@pytest.mark.parametrize(
    ("count", "in_call", "reason"),
    [
        (3, False, "constructed 3 times when the program ran, never part of a model"),
        (1, True, "constructed once inside a call when the program ran: nothing trains its weights"),
    ],
)
def test_strays_are_said_and_known_to_be_unused(count: int, in_call: bool, reason: str) -> None:
    text = K + "m = keras.Sequential([Dense(4)])\nx = Dense(5)\n"
    stray = Stray(origin(text, "Dense(5)"), "Dense", count, in_call)
    found = mapped(text, model(layer(0, "Dense", origin(text, "Dense(4)"), units=4)), strays=(stray,))
    (left,) = found.unmatched_sites
    assert (left.reason, left.unused) == (reason, True)


def test_lines_of_other_models_and_lines_that_made_nothing() -> None:
    text = K + "m = keras.Sequential([Dense(4)])\nn = keras.Sequential([Dense(5)])\nif False:\n    Dense(6)\n"
    other = model(layer(0, "Dense", origin(text, "Dense(5)"), units=5))
    found = mapped(text, model(layer(0, "Dense", origin(text, "Dense(4)"), units=4)), others=(("n", other),))
    assert [(left.reason, left.unused) for left in found.unmatched_sites] == [
        ('part of another model, "n"', False),
        ("no layer of the model was constructed here when the program ran", False),
    ]


NOISE = st.lists(st.sampled_from(["", "# note", "y = 1", "x = f(2)", ")"]), max_size=3)


@given(st.lists(NOISE, min_size=5, max_size=5), st.lists(NOISE, min_size=5, max_size=5))
def test_edits_around_calls_leave_every_pair(before: list[list[str]], after: list[list[str]]) -> None:
    made = [f"m.add(Dense({n + 10}, name='layer {n}'))" for n in range(4)]

    def text(noise: list[list[str]]) -> str:
        parts = [line for lines, call in zip(noise, [*made, ""], strict=True) for line in [*lines, call]]
        return "\n".join([K, "m = keras.Sequential()", *(part for part in parts if part != ")"), ""])

    then, now = text(before), text(after)
    layers = [
        layer(n, "Dense", origin(then, call[6:-1]), units=n + 10, name=f"layer {n}")
        for n, call in enumerate(made)
    ]
    found = mapped(then, model(*layers), now)
    assert calls(found, now) == {n: call[6:-1] for n, call in enumerate(made)}
