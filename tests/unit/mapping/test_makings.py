"""Models that are made alike: their names, and the numbers in the names of their layers, tell them apart."""

from __future__ import annotations

from guider_engine.wire import ModelLayer, ModelSummary
from guider_ls.mapping.align import align
from guider_ls.source.read import read_program

ALIKE = """\
from keras import Sequential, layers
one = Sequential([layers.Dense(4), layers.Dense(1)])
two = Sequential([layers.Dense(4), layers.Dense(1)], name="two")
three = Sequential([layers.Dense(4), layers.Dense(1)])
"""


def lines(text: str, model_name: str, *names: str) -> list[int | None]:
    """The lines, from 1, of the layers of a model like those of `ALIKE`; ``None``: not known."""
    layers = tuple(
        ModelLayer((index,), name, "Dense", True, {"units": units}, 0, (None, units))
        for index, (name, units) in enumerate(zip(names, (4, 1), strict=True))
    )
    mapping = align(read_program(text), ModelSummary(model_name, "Sequential", layers, None, False))
    matches = [mapping.of_layer((index,)) for index in range(len(layers))]
    return [None if match is None else match.site.span.line + 1 for match in matches]


def test_keras_numbers_say_which_was_constructed_first() -> None:
    assert lines(ALIKE, "sequential", "dense", "dense_1") == [2, 2]
    assert lines(ALIKE, "sequential_1", "dense_4", "dense_5") == [4, 4]


def test_the_name_of_the_model_says_which_it_is() -> None:
    assert lines(ALIKE, "two", "dense_2", "dense_3") == [3, 3]
    assert lines(ALIKE, "two", "dense_12", "dense_13") == [3, 3]


def test_the_name_of_the_model_counts_before_what_its_lines_say() -> None:
    assert lines(
        ALIKE.replace("Dense(4), layers.Dense(1)], name", "Dense(9), layers.Dense(1)], name"), "two", "a", "b"
    ) == [
        3,
        3,
    ]


def test_other_numbers_decide_nothing() -> None:
    assert lines(ALIKE, "sequential_7", "dense_12", "dense_13") == [None, None]
    assert lines(ALIKE, "sequential", "dense", "dense_2") == [None, None]


def test_nothing_is_decided_where_keras_counts_anew() -> None:
    text = ALIKE.replace("three", "import keras\nkeras.backend.clear_session()\nthree")
    assert lines(text, "sequential", "dense", "dense_1") == [None, None]


def test_numbers_are_known_up_to_what_the_text_does_not_say() -> None:
    for unknown in (
        "for width in widths():\n    layers.Dense(width)",
        "if chosen():\n    layers.Dense(3)",
        "base = VGG16()\nfor layer in base.layers:\n    layer.trainable = False",
        "x = Unseen(3)(layers.Input((3,)))",
    ):
        head = "from keras.applications import VGG16\nfrom elsewhere import Unseen, chosen, widths\n"
        before = ALIKE.replace("one = ", f"{head}{unknown}\none = ")
        assert lines(before, "sequential_9", "dense", "dense_1") == [None, None], unknown


def test_code_that_nobody_calls_constructs_nothing() -> None:
    uncalled = """\
from keras import Sequential, layers
def first():
    return Sequential([layers.Dense(4), layers.Dense(1)])
def second():
    return Sequential([layers.Dense(4), layers.Dense(1)])
"""
    assert lines(uncalled, "sequential", "dense", "dense_1") == [None, None]
    assert lines(uncalled + "second()\n", "sequential", "dense", "dense_1") == [5, 5]


def test_a_function_that_is_called_twice_has_two_numberings() -> None:
    text = """\
from keras import Sequential, layers
def build():
    return Sequential([layers.Dense(4), layers.Dense(1)])
build()
other = Sequential([layers.Dense(4), layers.Dense(1)])
build()
"""
    assert lines(text, "sequential", "dense", "dense_1") == [3, 3]
    assert lines(text, "sequential_1", "dense_2", "dense_3") == [5, 5]
    assert lines(text, "sequential_2", "dense_4", "dense_5") == [3, 3]


def test_a_name_that_keras_may_have_chosen_speaks_for_no_line_that_gives_it() -> None:
    text = """\
from keras import Sequential, layers
one = Sequential([layers.Dense(4), layers.Dense(1)])
two = Sequential([layers.Dense(4, name="dense_1"), layers.Dense(1, name="dense_2")])
"""
    assert lines(text, "sequential", "dense", "dense_1") == [2, 2]
    assert lines(text, "sequential_1", "dense_1", "dense_2") == [3, 3]


def test_where_the_lines_name_all_layers_the_number_of_the_model_says_which_it_is() -> None:
    text = """\
from keras import Sequential, layers
one = Sequential([layers.Dense(4, name="a"), layers.Dense(1, name="b")])
two = Sequential([layers.Dense(4, name="a"), layers.Dense(1, name="b")])
"""
    assert lines(text, "sequential", "a", "b") == [2, 2]
    assert lines(text, "sequential_1", "a", "b") == [3, 3]
    assert lines(text, "sequential_2", "a", "b") == [None, None]
