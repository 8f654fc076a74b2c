"""Every layer of a model that a program trains knows the line that constructed it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.engine.conftest import WatchProgram

from guider_engine.wire import CapturedModel, ModelLayer, Origin

exact = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows lines only")

START = """\
import keras
import numpy as np
from keras import layers
"""
END = """
model.predict(np.ones((2, 4), "float32"), verbose=0)
"""


def text_at(origin: Origin | None) -> str:
    """What the source says where a layer was constructed."""
    assert origin is not None
    lines = Path(origin.file).read_text(encoding="utf-8").split("\n")
    if origin.column is None or origin.end_line is None:
        return lines[origin.line]
    span = lines[origin.line : origin.end_line + 1]
    span[-1] = span[-1][: origin.end_column]
    span[0] = span[0][origin.column :]
    return "\n".join(span)


def made(model: CapturedModel) -> dict[str, str]:
    """For each class or name of a layer, the text that constructed it."""
    return {layer.name: text_at(layer.origin) for layer in model.model.all_layers()}


def lines(layer: ModelLayer) -> list[int]:
    """The lines of the calls around its construction, from one, innermost first."""
    assert layer.origin is not None
    return [origin.line + 1 for origin in (layer.origin, *layer.callers)]


def first(watch: WatchProgram, code: str) -> CapturedModel:
    found: CapturedModel = watch(START + code + END).record.models[0]
    return found


@exact
def test_spans_are_of_the_innermost_call_in_code_points(watch: WatchProgram) -> None:
    model = first(
        watch,
        """
ü = "größe"; model = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="a"), (layers.Dense)(
    5,
    name="b")])
model.add(layers.Dense(
    2, name="c"
))
""",
    )
    assert made(model) == {
        "a": 'layers.Dense(3, name="a")',
        "b": '(layers.Dense)(\n    5,\n    name="b")',
        "c": 'layers.Dense(\n    2, name="c"\n)',
    }
    assert all(layer.callers == () for layer in model.model.layers)


@exact
def test_helpers_loops_comprehensions_partial_and_lambda(watch: WatchProgram) -> None:
    model = first(
        watch,
        """
import functools
small = functools.partial(layers.Dense, 3)
make = lambda n: layers.Dense(n, name="of_lambda")
def block(x, name):
    return layers.Dense(4, name=name)(x)
x = inputs = keras.Input((4,))
for name in "ab":
    x = block(x, name)
for layer in [layers.Dense(2, name=f"c{i}") for i in range(2)]:
    x = layer(x)
x = small(name="d")(x)
x = make(3)(x)
model = keras.Model(inputs, x)
""",
    )
    text = made(model)
    assert text["a"] == text["b"] == "layers.Dense(4, name=name)"
    assert text["c0"] == text["c1"] == 'layers.Dense(2, name=f"c{i}")'
    assert text["d"] == 'small(name="d")'
    assert text["of_lambda"] == 'layers.Dense(n, name="of_lambda")'
    layers = {layer.name: layer for layer in model.model.layers}
    assert lines(layers["a"]) == [9, 12]
    assert lines(layers["c0"]) == [13]
    assert lines(layers["of_lambda"]) == [7, 16]


@exact
def test_modules_of_the_project_and_decorators(watch: WatchProgram, project: Path) -> None:
    (project / "parts").mkdir()
    (project / "parts" / "__init__.py").write_text("")
    (project / "parts" / "heads.py").write_text(
        "# größe\nfrom keras import layers\ndef head(n):\n    'ä'; return layers.Dense(n, name='head')\n",
        "utf-8",
    )
    model = first(
        watch,
        """
import functools
from parts.heads import head
def twice(build):
    @functools.wraps(build)
    def wrapped():
        return build()
    return wrapped
@twice
def build():
    return keras.Sequential([keras.Input((4,)), head(3)])
model = build()
""",
    )
    layer = model.model.layers[0]
    assert text_at(layer.origin) == "layers.Dense(n, name='head')"
    assert layer.origin is not None
    assert layer.origin.file == str(project / "parts" / "heads.py")
    assert [text_at(caller) for caller in layer.callers] == ["head(3)", "build()", "build()"]


@exact
def test_subclassed_models_and_custom_layers(watch: WatchProgram) -> None:
    model = first(
        watch,
        """
class Block(layers.Layer):
    def __init__(self, n):
        super().__init__(name="block")
        self.dense = layers.Dense(n, name="in_init")
    def build(self, shape):
        self.late = layers.Dense(2, name="in_build")
        self.late.build((None, 3))
    def call(self, x):
        return self.late(self.dense(x))
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.block = Block(3)
        self.out = layers.Dense(1, name="out")
    def call(self, x):
        return self.out(self.block(x))
model = Net()
""",
    )
    assert made(model) == {
        "block": "Block(3)",
        "in_init": 'layers.Dense(n, name="in_init")',
        "in_build": 'layers.Dense(2, name="in_build")',
        "out": 'layers.Dense(1, name="out")',
    }
    block = next(layer for layer in model.model.layers if layer.name == "block")
    assert [text_at(caller) for caller in block.inner[0].callers] == ["Block(3)", "Net()"]


@exact
def test_clones_have_the_lines_of_what_they_copy(watch: WatchProgram, project: Path) -> None:
    found = watch(
        START
        + """
def build():
    return keras.Sequential([keras.Input((4,)), layers.Dense(3, name="a"), layers.Dense(2, name="b")])
first = build()
second = keras.models.clone_model(first)
second.predict(np.ones((2, 4)), verbose=0)
second.save("m.keras")
first.layers[1].name = "renamed"
third = keras.models.clone_model(first)
fourth = keras.models.load_model("m.keras")
dense = layers.Dense.from_config(fourth.layers[0].get_config())
fifth = keras.Sequential([keras.Input((4,)), dense])
for model in (third, fourth, fifth):
    model.predict(np.ones((2, 4)), verbose=0)
"""
    )
    models = {model.name: model for model in found.record.models}
    wanted = {"a": 'layers.Dense(3, name="a")', "b": 'layers.Dense(2, name="b")'}
    assert made(models["second"]) == wanted
    assert made(models["third"]) == {"a": wanted["a"], "renamed": wanted["b"]}
    assert made(models["fourth"]) == wanted
    assert made(models["fifth"]) == {"a": wanted["a"]}


@exact
def test_loaded_models_have_the_line_that_loads_them(watch: WatchProgram, project: Path) -> None:
    watch(
        START
        + 'model = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="dense")])\nmodel.save("m.keras")\n'
    )
    found = watch(
        START
        + """
other = layers.Dense(7, name="dense")
model = keras.models.load_model("m.keras")
"""
        + END
    )
    assert made(found.record.models[0]) == {"dense": 'keras.models.load_model("m.keras")'}


@exact
def test_applications_wrappers_and_nested_models(watch: WatchProgram) -> None:
    found = watch(
        START
        + """
base = keras.applications.MobileNetV2((32, 32, 3), weights=None, include_top=False, alpha=0.35)
model = keras.Sequential([keras.Input((32, 32, 3)), base, layers.Reshape((1, -1), name="flat"),
    layers.Bidirectional(layers.LSTM(2, name="lstm"), name="both")])
model.predict(np.ones((1, 32, 32, 3)), verbose=0)
"""
    )
    model = found.record.models[0]
    text = made(model)
    inside = [layer.name for layer in model.model.layers[0].inner]
    assert len(inside) > 100
    assert {text[name] for name in inside} == {
        "keras.applications.MobileNetV2((32, 32, 3), weights=None, include_top=False, alpha=0.35)"
    }
    assert text["flat"] == 'layers.Reshape((1, -1), name="flat")'
    assert text["both"].startswith("layers.Bidirectional(layers.LSTM(2")
    assert found.record.strays == ()


def test_strays_are_layers_of_no_model(watch: WatchProgram) -> None:
    found = watch(
        START
        + """
def build():
    return keras.Sequential([keras.Input((4,)), layers.Dense(3)])
build()
forgotten = layers.Dropout(0.1)
for i in range(3):
    layers.Dense(7)
inputs = keras.Input((4,))
x = layers.Lambda(lambda x: layers.Dense(4)(x))(inputs)
model = keras.Model(inputs, build()(x))
model(np.ones((1, 4)))
"""
    )
    strays = [(s.origin.line + 1, s.class_name, s.count, s.in_call) for s in found.record.strays]
    assert (8, "Dropout", 1, False) in strays
    assert (10, "Dense", 3, False) in strays
    assert [s[:2] for s in strays if s[3]] == [(12, "Dense")]
    assert len(strays) == 3
