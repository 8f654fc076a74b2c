"""What is a layer construction and what is not, idiom by idiom; spans are checked by slicing the text."""

from __future__ import annotations

from typing import Any

import pytest

from guider_ls.errors import InputError
from guider_ls.source.read import read_program
from guider_ls.source.sites import LayerSite, Part, SourceMap, Span, Unknown


def cut(text: str, span: Span) -> str:
    lines = text.splitlines(keepends=True)
    if span.line == span.end_line:
        return lines[span.line][span.column : span.end_column]
    middle = "".join(lines[span.line + 1 : span.end_line])
    return lines[span.line][span.column :] + middle + lines[span.end_line][: span.end_column]


def calls(text: str) -> list[str]:
    return [cut(text, site.span) for site in read_program(text).sites]


def only(text: str) -> LayerSite:
    (site,) = read_program(text).sites
    return site


def orders(source: SourceMap) -> list[list[str]]:
    """Constructions as class names with the line of their site."""
    return [
        [f"{site.class_name}:{site.span.line + 1}" for site in (source.sites[s.site] for s in one.steps)]
        for one in source.outlines
    ]


VALID_IMPORTS = {
    "module": "import keras\nkeras.layers.Dense(3)",
    "module under another name": "import keras as k\nk.layers.Dense(3)",
    "tensorflow": "import tensorflow as tf\ntf.keras.layers.Dense(3)",
    "tensorflow without alias": "import tensorflow\ntensorflow.keras.layers.Dense(3)",
    "submodule import": "import tensorflow.keras.layers as tl\ntl.Dense(3)",
    "submodule binds its root": "import keras.layers\nkeras.layers.Dense(3)",
    "from tensorflow": "from tensorflow import keras\nkeras.layers.Dense(3)",
    "layers": "from tensorflow.keras import layers\nlayers.Dense(3)",
    "class": "from keras.layers import Dense\nDense(3)",
    "class under another name": "from keras.layers import Dense as D\nD(3)",
    "old module": "from keras.layers.core import Dense\nDense(3)",
    "python package": "from tensorflow.python.keras.layers import Dense\nDense(3)",
    "source package": "from keras.src.layers.core.dense import Dense\nDense(3)",
    "tf_keras": "import tf_keras as keras\nkeras.layers.Dense(3)",
    "compat": "import tensorflow.compat.v1 as tf\ntf.keras.layers.Dense(3)",
    "star": "from keras.layers import *\nDense(3)",
    "star of tensorflow": "from tensorflow.keras.layers import *\nDense(3)",
    "star of keras": "from keras import *\nlayers.Dense(3)",
    "bound module": "import tensorflow as tf\nL = tf.keras.layers\nL.Dense(3)",
    "bound class": "import keras\nDense = keras.layers.Dense\nDense(3)",
    "bound twice": "import keras\nk = keras\nl = k.layers\nl.Dense(3)",
    "inside a function": "def f():\n    from keras import layers\n    return layers.Dense(3)",
    "tried": "try:\n    from a.layers import Dense\nexcept ImportError:\n    from keras.layers import Dense\nDense(3)",
    "getattr": "import keras\ngetattr(keras.layers, 'Dense')(3)",
}


@pytest.mark.parametrize("text", VALID_IMPORTS.values(), ids=VALID_IMPORTS.keys())
def test_import_forms(text: str) -> None:
    site = only(text)
    assert cut(text, site.span).endswith("(3)")
    assert (site.qualified_name, site.class_name) == ("keras.layers.Dense", "Dense")
    assert site.arguments == {"units": 3}


INVALID = {
    "no keras": "Dense(3)\nlayers = 3",
    "another Dense": "import keras\nfrom torch.nn import Dense\nDense(3)",
    "rebound": "from keras.layers import Dense\nDense = print\nDense(3)",
    "shadowed by a parameter": "from keras.layers import Dense\ndef f(Dense):\n    Dense(3)",
    "shadowed by a local": "from keras.layers import Dense\ndef f():\n    Dense = len\n    Dense(3)",
    "in a string": "import keras\n'''keras.layers.Dense(3)'''",
    "in a comment": "import keras\n# keras.layers.Dense(3)",
    "not called": "import keras\nf = keras.layers.Dense",
    "a spec": "import keras\nkeras.layers.InputSpec(ndim=2)",
    "a function of layers": "import keras\nkeras.layers.deserialize({})",
    "an optimizer": "import keras\nkeras.optimizers.Adam(1e-3)",
    "a model": "import keras\nkeras.Sequential()\nkeras.Model()",
    "a name imported under star": "from keras.layers import *\nSomething(3)",
}


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID.keys())
def test_what_is_no_layer(text: str) -> None:
    assert read_program(text).sites == ()


K = "import keras\nfrom keras import layers\nfrom keras.layers import *\n"

SPANS = {
    "in a list": ("keras.Sequential([Dense(1), Dense(2)])", ["Dense(1)", "Dense(2)"]),
    "added": ("m = keras.Sequential()\nm.add(layers.Dense(1))", ["layers.Dense(1)"]),
    "called at once": ("x = Dense(2)(Dense(1)(y))", ["Dense(2)", "Dense(1)"]),
    "several lines": ("x = layers.Dense(\n    1,  # units\n)(y)", ["layers.Dense(\n    1,  # units\n)"]),
    "several on a line": ("a = Dense(1); b = '😀', Dense(2)", ["Dense(1)", "Dense(2)"]),
    "parentheses": ("x = ((Dense)(1))", ["(Dense)(1)"]),
    "continued": ("x = layers \\\n  . Dense (1)", ["layers \\\n  . Dense (1)"]),
    "tabs": ("if y:\n\tx = Dense(1)", ["Dense(1)"]),
    "wrapper": ("TimeDistributed(Dense(3))", ["TimeDistributed(Dense(3))", "Dense(3)"]),
    "weightless": (
        "Activation('relu')\nFlatten()\nInput((3,))",
        ["Activation('relu')", "Flatten()", "Input((3,))"],
    ),
    "decorator": ("@Lambda\ndef f(x): return Dense(1)(x)", ["Dense(1)"]),
    "default": ("def f(x=Dense(1)): pass", ["Dense(1)"]),
    "lambda": ("f = lambda x: Dense(1)(x)", ["Dense(1)"]),
    "comprehension": ("a = [Dense(i) for i in range(9)]", ["Dense(i)"]),
    "dict": ("a = {'x': Dense(1), **{'y': Dense(2)}}", ["Dense(1)", "Dense(2)"]),
    "conditional": ("a = Dense(1) if c else Dense(2)", ["Dense(1)", "Dense(2)"]),
    "dead code": ("if False:\n    Dense(1)\ndef f():\n    return 1\n    Dense(2)", ["Dense(1)", "Dense(2)"]),
    "in an f-string": ("print(f'{Dense(1)}')", ["Dense(1)"]),
    "merging function": ("x = concatenate([a, b], axis=-1)", ["concatenate([a, b], axis=-1)"]),
    "awaited and yielded": (
        "async def f():\n    await Dense(1)\n    yield Dense(2)",
        ["Dense(1)", "Dense(2)"],
    ),
    "match": (
        "match x:\n    case 1:\n        Dense(1)\n    case _:\n        Dense(2)",
        ["Dense(1)", "Dense(2)"],
    ),
    "with and try": (
        "with a:\n    try:\n        Dense(1)\n    finally:\n        Dense(2)",
        ["Dense(1)", "Dense(2)"],
    ),
    "subscripted": ("(Dense(1), 2)[0](y)", ["Dense(1)"]),
    "walrus": ("if (d := Dense(1)):\n    d(x)", ["Dense(1)"]),
    "class attribute": ("class A:\n    d = Dense(1)", ["Dense(1)"]),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("body", "expected"), SPANS.values(), ids=SPANS.keys())
def test_spans(body: str, expected: list[str], newline: str) -> None:
    text = (K + body).replace("\n", newline)
    assert calls(text) == [call.replace("\n", newline) for call in expected]


ARGUMENTS: dict[str, dict[str, Any]] = {
    "Conv2D(32, (3, 3), padding='same')": {"filters": 32, "kernel_size": (3, 3), "padding": "same"},
    "Conv2D(2 ** 5, [3, n])": {"filters": 32, "kernel_size": [3, Unknown("n")]},
    "Dense(units=n + 1)": {"units": Unknown("n + 1")},
    "Dense(4, keras.activations.relu)": {"units": 4, "activation": "relu"},
    "Dropout(.5)": {"rate": 0.5},
    "LSTM(4, return_sequences=True)": {"units": 4, "return_sequences": True},
    "Rescaling(1.0 / 4)": {"scale": 0.25},
    "Dense(-(-3))": {"units": 3},
    "MaxPool2D(2)": {"pool_size": 2},
    "Dense(10, kernel_regularizer=keras.regularizers.l2(1e-4))": {
        "units": 10,
        "kernel_regularizer": Part("L2", {"l2": 1e-4}),
    },
    "Dense(10, kernel_initializer=keras.initializers.RandomNormal(1.0, seed=s))": {
        "units": 10,
        "kernel_initializer": Part("RandomNormal", {"mean": 1.0, "stddev": 0.05, "seed": Unknown("s")}),
    },
    "Dense(10, kernel_initializer=keras.initializers.RandomNormal(**options))": {
        "units": 10,
        "kernel_initializer": Unknown("keras.initializers.RandomNormal(**options)"),
    },
    "Dense(10, kernel_initializer=keras.initializers.get('zeros'))": {
        "units": 10,
        "kernel_initializer": Unknown("keras.initializers.get('zeros')"),
    },
    "Dense(10, kernel_initializer=keras.initializers.Zeros())": {
        "units": 10,
        "kernel_initializer": Part("Zeros", {}),
    },
}

OLD_ARGUMENTS: dict[str, dict[str, Any]] = {
    "Dense(output_dim=4, init='uniform')": {"units": 4, "kernel_initializer": "uniform"},
    "Convolution2D(8, 3, 5, border_mode='same')": {"filters": 8, "kernel_size": (3, 5), "padding": "same"},
    "Convolution2D(nb_filter=8, nb_row=3, nb_col=5)": {"filters": 8, "kernel_size": (3, 5)},
    "Conv2D(8, 3, 3)": {"filters": 8, "kernel_size": 3, "strides": Unknown("3")},
    "Conv2D(8, 3, 2)": {"filters": 8, "kernel_size": 3, "strides": 2},
    "Dropout(p=0.5)": {"rate": 0.5},
    "Embedding(10, output_dim=4)": {"input_dim": 10, "output_dim": 4},
}


@pytest.mark.parametrize("call", OLD_ARGUMENTS)
def test_old_arguments(call: str) -> None:
    assert dict(only(K + call).arguments) == OLD_ARGUMENTS[call]


@pytest.mark.parametrize("call", ARGUMENTS)
def test_arguments(call: str) -> None:
    assert dict(only(K + call).arguments) == ARGUMENTS[call]


def test_constants_of_the_module_are_literal_and_parameters_are_not() -> None:
    text = K + "N = 4\ndef f(n=2):\n    return Dense(N), Dense(n)\nf(); f(5)"
    first, second = read_program(text).sites
    assert first.arguments == {"units": 4}
    assert second.arguments == {"units": Unknown("n")}


def test_arguments_that_others_may_add() -> None:
    assert not only(K + "Dense(3, **options)").complete
    assert not only(K + "Dense(*sizes)").complete
    assert only(K + "Dense(3)").complete


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("'fc.1'", r"fc\.1"),
        ("f'conv{i}_x'", "conv.+_x"),
        ("'a' + 'b'", "ab"),
        ("prefix + '_bn'", ".+_bn"),
        ("'c%d' % i", "c.+"),
        ("'c{}_{}'.format(i, j)", "c.+_.+"),
        ("name", None),
        ("None", None),
    ],
)
def test_names(name: str, pattern: str | None) -> None:
    assert only(f"{K}Dense(3, name={name})").name_pattern == pattern


def test_where_a_site_is() -> None:
    text = K + (
        "class A:\n    def f(self):\n        for i in y:\n            Dense(1)\n        if y:\n            Dense(2)\n"
        "        Dense(3)\nfor _ in range(2):\n    Dense(4)\nwhile y:\n    y and Dense(5)\n"
        "if __name__ == '__main__':\n    Dense(6)\n[Dense(7) for _ in y]\ntry:\n    Dense(8)\nexcept E:\n    Dense(9)\n"
    )
    found = {s.arguments["units"]: (s.scope, s.repeats, s.conditional) for s in read_program(text).sites}
    assert found == {
        1: ("A.f", True, False),
        2: ("A.f", False, True),
        3: ("A.f", False, False),
        4: ("", True, False),
        5: ("", True, True),
        6: ("", False, False),
        7: ("", True, False),
        8: ("", False, True),
        9: ("", False, True),
    }


CONSTRUCTIONS = {
    "list": ("m = keras.Sequential([Dense(1),\n Dense(2)])", [["Dense:4", "Dense:5"]]),
    "unrolled": (
        "m = keras.Sequential()\nfor i in range(2):\n  m.add(Dense(i))\n  m.add(ReLU())",
        [["Dense:6", "ReLU:7"] * 2],
    ),
    "helper": (
        "def f(x):\n  x = Dense(1)(x)\n  return ReLU()(x)\ni = Input((1,))\nm = keras.Model(i, f(f(i)))",
        [["InputLayer:7", "Dense:5", "ReLU:6", "Dense:5", "ReLU:6"]],
    ),
    "wrapped layers are not the model's": (
        "m = keras.Sequential([Bidirectional(LSTM(1)), TimeDistributed(Dense(1))])",
        [["Bidirectional:4", "TimeDistributed:4"]],
    ),
    "construction order, not call order": (
        "a = Dense(1)\nb = Flatten()\ni = Input((1,))\nm = keras.Model(i, a(b(i)))",
        [["Dense:4", "Flatten:5", "InputLayer:6"]],
    ),
    "the last model of a loop": (
        "for n in (1, 2):\n  m = keras.Sequential([Dense(n)])",
        [["Dense:5"]],
    ),
    "two models": (
        "a = keras.Sequential([Dense(1)])\nb = keras.Sequential([Flatten()])",
        [["Dense:4"], ["Flatten:5"]],
    ),
    "popped": (
        "m = keras.Sequential([Dense(1), Dense(2)])\nm.pop()\nm.add(Flatten())",
        [["Dense:4", "Flatten:6"]],
    ),
    "class": (
        "class B(Layer):\n  def __init__(s):\n    s.d = Dense(1)\n  def build(s, x):\n    s.e = [Dense(2)] + [ReLU()]",
        [["Dense:6", "Dense:8", "ReLU:8"]],
    ),
    "layers without a model": ("x = Dense(1)(y)\nz = Flatten()(x)", [["Dense:4", "Flatten:5"]]),
    "layers that come from nowhere": (
        "a = Dense(1)\nm = keras.Sequential([Flatten(), *load(a), Dense(2)])\nb = ReLU()",
        [["Flatten:5", "Dense:4", "Dense:5"]],
    ),
    "dicts that are put together": (
        "A = dict(units=1)\nB = {**A, 'name': 'b'}\nB.update(use_bias=False)\nif 'x' in B: d = Flatten()\n"
        "m = keras.Sequential([Dense(**B), Dense(**(A | B))])",
        [["Dense:8", "Dense:8"]],
    ),
    "recursion that the text ends": (
        "def f(x, n):\n  return f(Dense(n)(x), n - 1) if n else ReLU()(x)\ni = Input((1,))\n"
        "m = keras.Model(i, f(i, 4))",
        [["InputLayer:6", *["Dense:5"] * 4, "ReLU:5"]],
    ),
    "match": (
        "match 'b':\n  case 'a' | 'c':\n    d = ReLU()\n  case str() if False:\n    d = PReLU()\n  case 'b' as k:\n"
        "    d = Dense(1, name=k)\n  case _:\n    d = Flatten()\nm = keras.Sequential([d])",
        [["Dense:10"]],
    ),
    "options stay open": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('-n', '--deep', type=int, default=2)\n"
        "a = p.parse_args()\nm = keras.Sequential()\nfor i in range(a.deep):\n  m.add(Dense(i))\n"
        "if a.deep > 3:\n  m.add(Flatten())\nm.add(ReLU())",
        [["Dense:10", "Dense:10", "Flatten:12", "ReLU:13"]],
    ),
    "condition that is known": (
        "def f(x, deep):\n  if deep:\n    x = Dense(1)(x)\n  return Flatten()(x)\n"
        "i = Input((1,))\nm = keras.Model(i, f(i, False))",
        [["InputLayer:8", "Flatten:7"]],
    ),
}


@pytest.mark.parametrize(("body", "expected"), CONSTRUCTIONS.values(), ids=CONSTRUCTIONS.keys())
def test_construction_order(body: str, expected: list[list[str]]) -> None:
    assert orders(read_program(K + body)) == expected


FATES = {
    "unreached": "if False:\n  Dense(1)",
    "in-call": "class B(Layer):\n  def call(self, x):\n    return Dense(1)(x)\nm = keras.Sequential([B()])",
    "replaced": "i = Input((1,))\nx = Dense(1)(i)\nx = Flatten()(i)\nm = keras.Model(i, x)",
    "unconnected": "i = Input((1,))\nside = Dense(1)(i)\nm = keras.Model(i, Flatten()(i))",
    "uncalled": "d = Dense(1)\nm = keras.Sequential([Flatten()])",
    "wrapped": "d = Dense(1)\nm = keras.Sequential([TimeDistributed(d)])",
    "": "d = Dense(1)\nm = keras.Sequential([d])",
}


@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate or "in a model")
def test_what_becomes_of_a_layer(fate: str) -> None:
    sites = read_program(K + FATES[fate]).sites
    assert [site.fate for site in sites if site.class_name == "Dense"] == [fate]


@pytest.mark.parametrize(
    "body",
    [
        "def call(self, x):\n    return helper(x)",
        "@property\n  def call(self):\n    return 1\n  def run(self, x):\n    return helper(x)",
    ],
    ids=["in a call", "not in a call"],
)
def test_a_helper_of_a_call_is_in_the_call(body: str) -> None:
    text = f"{K}def helper(x):\n  return Dense(1)(x)\nclass B(Layer):\n  {body}\nm = keras.Sequential([B()])"
    fates = [site.fate for site in read_program(text).sites if site.class_name == "Dense"]
    assert fates == ["unconnected" if "run" in body else "in-call"]


def test_calls_that_train() -> None:
    text = K + (
        "from sklearn.preprocessing import StandardScaler\nscaler = StandardScaler()\nscaler.fit(x)\n"
        "m = keras.Sequential([Dense(1)])\nm.fit(x, y)\ndef train(net):\n  return net.fit_generator(g)\n"
        "class N(keras.Model): pass\nN().fit(x)\nif False:\n  m.train_on_batch(x, y)\nm.evaluate(x, y)\n"
        "keras.preprocessing.image.ImageDataGenerator().fit(x)\nfrom elsewhere import net\nnet.fit(x)\n"
        "class Own:\n  def fit(self, x): pass\nOwn().fit(x)\n"
    )
    assert [cut(text, span) for span in read_program(text).training] == [
        "m.fit(x, y)",
        "net.fit_generator(g)",
        "N().fit(x)",
        "m.train_on_batch(x, y)",
        "net.fit(x)",
    ]


def test_one_call_of_several_classes_is_one_site() -> None:
    text = K + "m = keras.Sequential([getattr(layers, kind)(4) for kind in ('Dense', 'LSTM', 'Dense')])"
    (site,) = read_program(text).sites
    assert (site.qualified_name, site.others) == ("keras.layers.Dense", ("keras.layers.LSTM",))


def test_which_model_is_saved() -> None:
    text = K + (
        "a = keras.Sequential([Dense(1)])\nb = keras.Sequential([Dense(1)])\nb.save('b.keras')\n"
        "for m in (a, b):\n  m.save('any.keras')\nkeras.models.save_model(a, 'a.keras')\nload().save('c.keras')\n"
    )
    source = read_program(text)
    saved = {artifact.path: artifact.outline for artifact in source.artifacts}
    assert saved == {"b.keras": 1, "any.keras": None, "a.keras": 0, "c.keras": None}
    assert [source.outlines[index].label for index in (0, 1)] == ["a", "b"]


def test_a_model_that_is_loaded_is_the_one_that_was_saved() -> None:
    text = K + (
        "a = keras.Sequential([Dense(1), ReLU()])\na.save('a.keras')\nb = keras.models.load_model('a.keras')\n"
        "b.pop()\nb.add(Flatten())"
    )
    assert orders(read_program(text)) == [["Dense:4", "ReLU:4"], ["Dense:4", "Flatten:8"]]


def test_classes_of_the_program_and_nested_models() -> None:
    text = K + (
        "class Block(Layer):\n  def __init__(self, width, **kw):\n    super().__init__(**kw)\n"
        "    self.net = keras.Sequential([Dense(width)])\nclass Net(keras.Model):\n  def __init__(self):\n"
        "    super().__init__()\n    self.b = Block(4, name='b')\nnet = Net()"
    )
    source = read_program(text)
    found = {site.qualified_name: site for site in source.sites}
    assert found.keys() == {".Block", "keras.Sequential", "keras.layers.Dense"}
    assert found[".Block"].arguments == {"width": 4, "name": "b"}
    assert found["keras.layers.Dense"].scope == "Block.__init__"
    inside = {one.label: [source.sites[maker].class_name for maker in one.makers] for one in source.outlines}
    assert inside["Net"] == []
    assert inside["Block"] == ["Sequential"] or inside["Block"] == ["Block"]
    assert {one.kind for one in source.outlines} == {"class", "sequential"}


def test_unknown_loops_and_branches_are_marked() -> None:
    text = (
        K
        + "m = keras.Sequential()\nfor n in sizes:\n  m.add(Dense(n))\n  if n:\n    m.add(ReLU())\nm.add(Flatten())"
    )
    (one,) = read_program(text).outlines
    assert one.loops == ((0, 2),)
    assert [step.optional for step in one.steps] == [False, True, False]


def test_labels() -> None:
    text = (
        K
        + "a = keras.Sequential([Dense(1)])\ndef make():\n  m = keras.Sequential([Dense(2)])\n  return m\nDense(3)"
    )
    assert [one.label for one in read_program(text).outlines] == ["a", "make"]


@pytest.mark.parametrize(
    ("call", "ignored"),
    [
        ("Dense(3)  # guider: ignore", True),
        ("Dense(  #guider:ignore\n  3)", True),
        ("Dense(\n  3\n)  # noqa # guider: ignore", True),
        ("Dense(3)  # guider: ignored", False),
        ("'# guider: ignore'; Dense(3)", False),
        ("# guider: ignore\nDense(3)", False),
    ],
)
def test_ignore_comments(call: str, ignored: bool) -> None:
    assert only(K + call).ignored is ignored


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("m = keras.Sequential()\nm.save('m.keras')", [("model", "m.keras")]),
        ("OUT = 'm.h5'\nkeras.models.save_model(m, OUT)", [("model", "m.h5")]),
        (
            "keras.callbacks.ModelCheckpoint(filepath='best.keras', save_best_only=True)",
            [("model", "best.keras")],
        ),
        ("keras.callbacks.ModelCheckpoint('w.h5', save_weights_only=True)", []),
        ("from pathlib import Path\nD = Path('out')\nm.save(D / 'm.keras')", [("model", "out/m.keras")]),
        (
            "from pathlib import Path\nm.save(Path(__file__).resolve().parent / 'm.keras')",
            [("model", "m.keras")],
        ),
        (
            "import os\nm.save(os.path.join(os.path.dirname(__file__), 'a', 'm.keras'))",
            [("model", "a/m.keras")],
        ),
        ("NAME = 'run'\nm.save(f'{NAME}_1.keras')", [("model", "run_1.keras")]),
        ("def train(path='m.keras'):\n    m.save(path)\ntrain()", [("model", "m.keras")]),
        ("import numpy as np\nnp.savez('t', x_test=1)", [("tests", "t.npz")]),
        ("import numpy as np\nnp.savez_compressed('t.npz', x=1)", [("tests", "t.npz")]),
        (
            "import numpy as np\nnp.save('x.npy', a)\nnp.save('y.npy', b)",
            [("tests", "x.npy"), ("tests", "y.npy")],
        ),
        ("m.save(path)", []),
        ("m.save('figure.png')", []),
        ("m = keras.Sequential()\nm.save('out/net')", [("model", "out/net")]),
        ("keras.models.save_model(keras.Sequential(), 'net')", [("model", "net")]),
        ("m.save('net')", []),
        ("m.save_weights('w.weights.h5')", []),
        ("data.save('data/test')", [("tests", "data/test")]),
        ("data.save('data/train')", []),
        ("m.save('test_model')", []),
        (
            "import numpy as np\nnp.savetxt('wine-test.csv', a, delimiter=',')  # save",
            [("tests", "wine-test.csv")],
        ),
    ],
)
def test_files_written(body: str, expected: list[tuple[str, str]]) -> None:
    text = K + body
    artifacts = read_program(text).artifacts
    assert [(artifact.kind, artifact.path) for artifact in artifacts] == expected
    assert all("save" in cut(text, a.span) or "Checkpoint" in cut(text, a.span) for a in artifacts)


@pytest.mark.parametrize(
    ("call", "path"),
    [
        ("frame.to_csv('data/test.csv', index=False)", "data/test.csv"),
        ("frame.to_csv(path_or_buf='Valid.TSV', sep='\\t')", "Valid.TSV"),
        ("frame.iloc[800:].to_parquet('eval_2.parquet')", "eval_2.parquet"),
        ("h5py.File('test.h5', 'w')", "test.h5"),
        ("frame.to_csv('wine.csv')", None),
        ("frame.to_csv('x_test.csv')", None),
        ("frame.to_csv('test_predictions.csv')", None),
        ("frame.to_csv('latest.csv')", None),
        ("frame.to_csv('val_loss.csv')", None),
        ("frame.to_csv('test.txt')", None),
        ("frame.to_csv(args.test)", None),
        ("h5py.File('test.h5')", None),
        ("h5py.File('test.h5', 'r')", None),
    ],
)
def test_a_table_is_a_test_set_if_it_is_called_one(call: str, path: str | None) -> None:
    found = read_program(f"import h5py\n{K}{call}").artifacts
    assert [(artifact.kind, artifact.path) for artifact in found] == ([("tests", path)] if path else [])


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ("keras.callbacks.ModelCheckpoint('m-{epoch}.keras')", "model", "'m-{epoch}.keras'"),
        ("m = keras.Sequential()\nm.save(args.out)", "model", "args.out"),
        ("m.save(f'fold_{i}.keras')", "model", "f'fold_{i}.keras'"),
        ("keras.models.save_model(m, filepath=path)", "model", "path"),
        ("import numpy as np\nnp.savez(out / 't.npz', x=1)", "tests", "out / 't.npz'"),
    ],
)
def test_files_written_to_a_path_that_the_text_does_not_say(body: str, kind: str, code: str) -> None:
    (artifact,) = read_program(K + body).artifacts
    assert (artifact.kind, artifact.path, artifact.known) == (kind, code, False)


def test_one_call_that_is_known_to_write_a_file_is_enough() -> None:
    body = "def train(path):\n    keras.Sequential().save(path)\ntrain('m.keras')\ntrain(other)"
    (artifact,) = read_program(K + body).artifacts
    assert (artifact.path, artifact.known) == ("m.keras", True)


def test_syntax_errors_name_their_line() -> None:
    with pytest.raises(InputError, match=r"^Line 3 is not Python") as caught:
        read_program("import keras\nx = 1\nx = (\n")
    assert caught.value.code == "program-syntax"


def test_text_without_keras_is_not_parsed() -> None:
    assert read_program("x = (") == SourceMap((), ())


ODD = [
    "",
    "import keras",
    "import keras\nx = " + "1 + " * 1500 + "1",
    "import keras\nx = " + "f(" * 60 + ")" * 60,
    "import keras\ndef f(x):\n  return f(f(x))\nf(f)\ndef g(): h()\ndef h(): g()\ng()",
    "import keras\nclass A(A): pass\nclass B(keras.layers.Layer):\n  def __init__(s): s.b = B()\nB()",
    "import keras\na = []\na.append(a)\nkeras.Sequential(a)\nb = {}\nb['x'] = b\nkeras.Model(b, b)",
    "import keras\n*a, b = 1, 2\na, *b, c = d\n(a, [b, c]) = 1\nfor a.b, c[0] in d: pass",
    "import keras\nx = 9 ** 9 ** 9\ny = 'a' * 10 ** 9\nz = [0] * 10 ** 9\nw = 1 << 10 ** 9\nv = range(10 ** 12)",
    "import keras\nfor i in range(500):\n for j in range(500):\n  for k in range(500):\n   keras.layers.Dense(i)",
    "import keras\nkeras.layers.Dense(*a, *b, **c, **d)\nkeras.layers.Dense(units=1, *a)",
    "import keras\nx = [][0]\ny = {}['a']\nz = 1 / 0\nw = 'x' + 1\nv = '%d' % 'a'\nu = '{' .format()",
    "import keras\nlambda *a, b=1, **k: (yield)\nglobal q\nnonlocal_ = 1\ndel q\nassert q, q\nraise q from q",
    "import keras\nsuper().x\nsuper().__init__()\nclass A:\n x = super()\n @property\n def p(s): return s.p\nA().p",
    "import keras\nfrom . import a\nfrom ..b import *\nfrom .. import c as d\nimport e.f, g.h as i\ni.layers.Dense(3)",
    "import keras\nm = keras.Sequential()\nm.add(m)\nm.add(keras.Model(m, m))\nn = keras.Model(m.output, m.layers)",
    "import keras\nprint(f'{x!r:{y}}' f'{{', rb'\\x00')\nkeras.layers.Dense(name=b'x')",
    "import keras\nclass A(keras.Model):\n def __init__(self): self.a = self; self.b = [self]\nA()",
    K + "x=[Dense(1)]\nfor i in range(40):\n  Dense(i)\n  x = x + x\nm=keras.Sequential(x)",
    K + "x=[1]\nfor i in range(400):\n  x = [x, x]\nm=keras.Sequential([Dense(x)])",
    K + "def f(n):\n  return Dense(n) if n < 2 else [f(n-1), f(n-2)]\nm=keras.Sequential(f(18))",
    K + "def f(x,n):\n  if n:\n    if n:\n      if n:\n        for i in range(1):\n          with a:\n"
    "            try:\n              return f(Dense(n)(x), n-1)\n            finally:\n"
    "              pass\n  return x\ni=Input((1,))\nm=keras.Model(i,f(i,100))",
    K + "def a(m,n):\n  return n+1 if m==0 else a(m-1,1) if n==0 else a(m-1,a(m,n-1))\nDense(a(3,3))",
    K + "def g():\n  while True:\n    yield Dense(1)\nm=keras.Sequential([next(g()), *g()])\n"
    "def h(): yield from h()\nh()",
    K + "def d(f):\n  return d\n@d\n@d\ndef f(): pass\nf()()()\nclass C:\n  @d\n  def m(self): pass\nC().m()",
    K + "class A: pass\na=A()\nfor n in names:\n  setattr(a, n, Dense(1))\nsetattr(a)\n"
    "setattr(a,1,2)\ngetattr(a)\nmap()\nfilter()\ndict(1,2)\nvars(1)\nisinstance()",
    K + "from functools import reduce\nreduce()\nreduce(lambda a,b: a, [])\n"
    "reduce(lambda a,b: reduce(lambda a,b:a,[1,2,3]*100), [1]*500)",
    K + "import argparse\np=argparse.ArgumentParser()\np.add_argument()\np.add_argument(3)\n"
    "p.add_argument('--')\np.add_argument('-a','--b-c',default=[1],dest=4)\na=p.parse_args().x.y\n"
    "Dense(a)",
    K + "from collections import namedtuple\nnamedtuple()\n"
    "N=namedtuple('N','a b',defaults=(1,2,3,4))\nN(1,2,3,4)\nDense(N(1).a)",
    K + "from dataclasses import *\n@dataclass\nclass A(A):\n"
    "  x: int = field(default_factory=lambda: A())\nA(1,2,3,x=4)\n@dataclass\nclass B:\n"
    "  b: 'B' = None\n  def __post_init__(s): s.b=B()\nB()",
    K + "match x:\n  case [a,*b]: Dense(1)\n  case {'a': 1, **r}: Dense(2)\n  case P(x=1): Dense(3)\n"
    "  case (1|2) as z if z: Dense(4)\n  case -1: Dense(5)\n  case a.b: Dense(6)",
    K + "keras.models.clone_model()\nkeras.models.load_model(p)\nm=keras.Sequential.from_config({})\n"
    "Dense.from_config()\nDense.from_config({'units':3})\n"
    "m2=keras.models.clone_model(keras.models.clone_model(m))\nm2.get_config().x",
    K + "def f():\n  x=0\n  def g():\n    nonlocal x, y\n    x+=1\n    y=2\n  g()\nf()\nnonlocal q\n"
    "global r\nr=1",
    K + "globals()['a']=Dense(1)\nlocals()['b']=2\nglobals().update(c=Dense(2))\n"
    "m=keras.Sequential([a,c])\nfor k,v in globals().items(): pass\n"
    "[v for v in globals().values()]",
    K + "import keras.x.y.z as q\nfrom . import *\nfrom .. import a\nimport importlib\n"
    "importlib.import_module('..a')\nimportlib.import_module()",
    K
    + "".join(
        f"def f{i}(x):\n  for k in range(3):\n    x = f{i + 1}(x)\n  return Dense({i})(x)\n"
        for i in range(15)
    )
    + "def f15(x): return x\ni = Input((1,))\nm = keras.Model(i, f0(i))",
]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_programs_are_read(text: str) -> None:
    assert isinstance(read_program(text), SourceMap)


def test_every_prefix_of_a_program_is_read_or_refused() -> None:
    text = (
        K + "m = keras.Sequential([\n  Dense(1, name=f'a{1}'),\n])\n"
        "for i in range(2):\n  m.add(Dense(i))\nm.save('m.keras')\n"
    )
    refused = set()
    for end in range(len(text)):
        try:
            read_program(text[:end])
        except InputError as error:
            refused.add(error.code)
    assert refused == {"program-syntax"}


def test_a_long_program() -> None:
    blocks = "".join(
        f"def make_{i}(x):\n    # block {i}\n    for _ in range(2):\n"
        f"        x = Dense({i}, name='d{i}')(x)\n    return x\n\n\n"
        "values = [1, 2, 3]\nprint(values)\n\n"
        for i in range(1000)
    )
    text = K + blocks
    assert text.count("\n") > 9_900
    sites = read_program(text).sites
    assert [site.arguments["units"] for site in sites] == list(range(1000))
    assert [cut(text, site.span) for site in sites[::99]] == [
        f"Dense({i}, name='d{i}')" for i in range(0, 1000, 99)
    ]


@pytest.mark.parametrize("literal", ['"C:\\Users"', '"\\N{no such}"', "b'é'", "9" * 5000])
def test_literals_that_libcst_takes_and_python_does_not(literal: str) -> None:
    source = read_program(K + f"path = {literal}\nDense(3, name={literal})\n")
    assert source.sites[0].arguments["units"] == 3
    assert source.sites[0].arguments["name"] == Unknown(literal)


@pytest.mark.parametrize(
    "expression",
    [
        "'a' * 10**12",
        "10**12 * b'a'",
        "[kinds.append(kind) for kind in kinds]",
        "[Dense(a + b + c) for a in range(500) for b in range(500) for c in range(500)]",
        f"[1 {' '.join(f'for x{i} in range(10)' for i in range(9))}]",
    ],
)
def test_expressions_that_would_take_long_or_much(expression: str) -> None:
    source = read_program(K + f"kinds = ['relu', 'tanh']\nmuch = {expression}\nDense(3)\n")
    assert source.sites[-1].arguments["units"] == 3
