"""Which models and which tests are captured from a program that ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine.conftest import WatchProgram, quiet

from guider_engine.capture.capture import Watched
from guider_engine.errors import EngineFailure
from guider_engine.session import Session
from guider_engine.wire import CapturedModel, CaptureRecord, Inputs, structure

START = """
import keras
import numpy as np
from keras import layers
keras.utils.set_random_seed(1)
rng = np.random.default_rng(0)
x_train, y_train = rng.normal(size=(40, 4)).astype("float32"), np.arange(40) % 3
x_test, y_test = rng.normal(size=(25, 4)).astype("float32"), np.arange(25) % 3
def build():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(5, "relu"), layers.Dense(3, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model
model = build()
"""


def first(found: Watched) -> CapturedModel:
    return found.record.models[0]


def data_of(model: CapturedModel) -> tuple[Any, Any]:
    with np.load(model.tests) as archive:
        return archive["x"], archive["y"]


def the_test_set() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    rng.normal(size=(40, 4))
    return rng.normal(size=(25, 4)).astype("float32"), np.arange(25) % 3


def test_data_of_evaluate_are_the_tests(watch: WatchProgram) -> None:
    found = watch(
        START
        + """
model.fit(x_train, y_train, validation_split=0.25, epochs=2, verbose=0)
model.evaluate(x_train, y_train, verbose=0)
model.evaluate(x_test, y_test, verbose=0)
model.evaluate(x_train, y_train, verbose=0)
del x_test, y_test
"""
    )
    model = first(found)
    x, y = data_of(model)
    assert np.array_equal(x, the_test_set()[0])
    assert np.array_equal(y, the_test_set()[1])
    assert (model.name, model.data_kind, model.data) == (
        "model",
        "test",
        "data of evaluate, train.py line 17",
    )
    assert (model.trained, model.epochs, model.optimizer, model.saved) == (True, 2, "Adam", True)
    assert (model.model.loss, model.model.from_logits) == ("sparse_categorical_crossentropy", False)
    assert found.record.ending == "finished"
    assert found.record.failure is None


def test_validation_split_is_the_end_of_the_data(watch: WatchProgram) -> None:
    model = first(watch(START + "model.fit(x_train, y_train, None, 1, 0, None, 0.3)\n"))
    x, y = data_of(model)
    assert len(x) == len(y) == 12
    assert np.array_equal(y, (np.arange(40) % 3)[28:])
    assert (model.data_kind, model.data) == ("validation", "validation_split=0.3 of fit, train.py line 14")


@pytest.mark.parametrize(
    ("call", "kind", "tests"),
    [
        ("model.fit(x_train, y_train, validation_data=(x_test, y_test), verbose=0)", "validation", 25),
        (
            "model.fit(x_train, y_train, validation_data=[x_test, y_test, np.ones(25)], verbose=0)",
            "validation",
            25,
        ),
        ("model.fit(x_train.tolist() and x_train, y_train, verbose=0)", "training", 40),
        (
            "for i in range(4): model.train_on_batch(x_train[i * 8:i * 8 + 8], y_train[i * 8:i * 8 + 8])",
            "training",
            32,
        ),
        (
            "model.test_on_batch(x_test[:9], y_test[:9]); model.test_on_batch(x_test[9:], y_test[9:])",
            "test",
            25,
        ),
        ("model.fit(x_train, y_train, verbose=0); model.predict(x_test, verbose=0)", "test", 25),
        ("model.predict(x_train, verbose=0)", "training", 40),
    ],
)
def test_other_data(watch: WatchProgram, call: str, kind: str, tests: int) -> None:
    model = first(watch(START + call))
    assert (model.data_kind, len(data_of(model)[1])) == (kind, tests)


@pytest.mark.parametrize(
    ("data", "tests"),
    [
        ("tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(7)", 25),
        ("tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(7).repeat(), steps=2", 14),
        ("tf.constant(x_test), tf.constant(y_test)", 25),
        ("pd.DataFrame(x_test), pd.Series(y_test)", 25),
        ("x_test, keras.utils.to_categorical(y_test)", 25),
        ("x_test, y_test[:, None].astype('float32')", 25),
        ("batches(), steps=3", 15),
        ("Batches()", 25),
        ("ImageDataGenerator().flow(x_test[:, :, None, None], y_test, batch_size=8, shuffle=False)", 25),
    ],
)
def test_forms_of_data(watch: WatchProgram, data: str, tests: int) -> None:
    loss = "categorical_crossentropy" if "categorical" in data else "sparse_categorical_crossentropy"
    reshape = (
        "model = keras.Sequential([keras.Input((4, 1, 1)), layers.Flatten(), layers.Dense(3, 'softmax')])"
    )
    found = watch(
        START
        + f"""
import pandas as pd
import tensorflow as tf
from tensorflow.keras.preprocessing.image import ImageDataGenerator
{reshape if "Image" in data else ""}
def batches():
    for i in range(0, 1000, 5):
        yield x_test[i % 25:i % 25 + 5], y_test[i % 25:i % 25 + 5]
class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 5
    def __getitem__(self, i):
        return x_test[i * 5:i * 5 + 5], y_test[i * 5:i * 5 + 5]
model.compile("adam", "{loss}")
print(model.evaluate({data}, verbose=0))
"""
    )
    model = first(found)
    assert model.data_kind == "test", model.data
    x, y = data_of(model)
    assert np.array_equal(x.reshape(-1, 4), the_test_set()[0][:tests])
    labels = y.argmax(axis=1) if y.ndim == 2 and y.shape[1] > 1 else y.reshape(-1)
    assert np.array_equal(labels, the_test_set()[1][:tests])


def test_generators_give_the_program_what_they_gave_it_before(watch: WatchProgram, capsys: Any) -> None:
    code = (
        START
        + """
def batches():
    while True:
        yield x_train[:8], y_train[:8]
source = batches()
history = model.fit(source, steps_per_epoch=4, epochs=2, validation_data=batches(), validation_steps=2,
    shuffle=False, verbose=0)
print("RESULT", next(source)[0].shape, {k: [float(n) for n in v] for k, v in history.history.items()})
"""
    )
    found = watch(code)
    watched = [line for line in capsys.readouterr().out.splitlines() if line.startswith("RESULT")]
    exec(compile(code, "plain", "exec"), {"__name__": "plain"})
    plain = [line for line in capsys.readouterr().out.splitlines() if line.startswith("RESULT")]
    assert watched == plain
    assert first(found).data_kind == "validation"


def test_data_that_make_no_tests_say_why(watch: WatchProgram) -> None:
    found = watch(
        """
import keras
import numpy as np
a, b = keras.Input((2,), name="a"), keras.Input((3,), name="b")
model = keras.Model([a, b], keras.layers.Dense(1)(keras.layers.Concatenate()([a, b])))
model.compile("adam", "mse")
model.fit({"a": np.ones((8, 2)), "b": np.ones((8, 3))}, np.ones(8), verbose=0)
"""
    )
    model = first(found)
    assert model.tests == ""
    assert model.data == "training data of fit, train.py line 7: they have 2 inputs (a, b)"
    assert len(model.model.layers) == 4


def test_better_data_that_cannot_be_used_are_told(watch: WatchProgram) -> None:
    model = first(
        watch(
            START
            + """
model.fit(x_train, y_train, sample_weight=np.ones(40), verbose=0)
try:
    model.evaluate(x_test, y_test[:4], verbose=0)
except ValueError:
    pass
"""
        )
    )
    assert model.data_kind == "training"
    assert [notice.code for notice in model.notices] == ["weights-ignored", "tests-refused"]
    assert "25 inputs, but 4 labels" in model.notices[1].message


def test_many_tests_are_sampled_evenly(watch: WatchProgram, project: Path) -> None:
    np.lib.format.open_memmap(project / "x.npy", "w+", np.float32, (30_000, 4))[:, 0] = np.arange(30_000)
    found = watch(
        START
        + """
x = np.load("x.npy", mmap_mode="r")
model.evaluate(x, np.zeros(30_000), steps=1, verbose=0)
"""
    )
    model = first(found)
    x, y = data_of(model)
    assert len(x) == len(y) == 10_000
    assert set(np.diff(x[:, 0])) == {3.0}
    assert [notice.code for notice in model.notices] == ["tests-sampled"]
    assert [Path(state.path).name for state in found.record.data] == ["x.npy"]


def test_order_and_names_of_several_models(watch: WatchProgram) -> None:
    found = watch(
        START
        + """
folds = []
for fold in range(3):
    net = build()
    net.fit(x_train, y_train, verbose=0, validation_split=0.2)
    folds.append(net)
def train():
    local = build()
    local.fit(x_train, y_train, verbose=0)
train()
first = build()
first.fit(x_train, y_train, verbose=0)
first.evaluate(x_test, y_test, verbose=0)
never_used = build()
model.save("model.keras")
"""
    )
    assert [model.name for model in found.record.models] == [
        "first",
        "net",
        "net_2",
        "net_3",
        "local",
        "model",
    ]
    assert [model.trained for model in found.record.models] == [True] * 5 + [False]
    assert found.models[0] is sys_main()["first"]


def sys_main() -> dict[str, Any]:
    import sys

    return vars(sys.modules["__main__"])


def test_parts_of_a_model_are_models_where_the_program_uses_them(watch: WatchProgram) -> None:
    found = watch(
        START
        + """
encoder = keras.Sequential([keras.Input((4,)), layers.Dense(2)], name="encoder")
decoder = keras.Sequential([keras.Input((2,)), layers.Dense(4)], name="decoder")
inputs = keras.Input((4,))
both = keras.Model(inputs, decoder(encoder(inputs)))
both.compile("adam", "mse")
both.fit(x_train, x_train, verbose=0)
encoder.predict(x_test, verbose=0)
"""
    )
    assert [model.name for model in found.record.models] == ["both", "encoder"]
    assert np.array_equal(*data_of(found.record.models[0]))


@pytest.mark.parametrize("decorator", ["", "@tf.function"])
def test_custom_loops(watch: WatchProgram, decorator: str) -> None:
    found = watch(
        START
        + f"""
import tensorflow as tf
optimizer = keras.optimizers.SGD(0.1)
loss = keras.losses.SparseCategoricalCrossentropy()
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = build()
    def call(self, x):
        return self.inner(x)
net, other = Net(), build()
{decorator}
def step(x, y):
    with tf.GradientTape() as tape:
        value = loss(y, net(x, training=True))
    optimizer.apply_gradients(zip(tape.gradient(value, net.trainable_variables), net.trainable_variables))
    return value
for epoch in range(2):
    for i in range(0, 40, 8):
        step(tf.constant(x_train[i:i + 8]), tf.constant(y_train[i:i + 8]))
other(x_test)
accuracy = np.mean(np.argmax(net(x_test), 1) == y_test)
"""
    )
    assert [(model.name, model.trained) for model in found.record.models] == [("net", True), ("other", False)]
    model = first(found)
    assert (model.data_kind, len(data_of(model)[1])) == ("test", 25)


def test_a_loop_has_its_tests_in_the_dataset_that_is_called_so(watch: WatchProgram) -> None:
    found = watch(
        START
        + """
import tensorflow as tf
x, y = x_train, y_train
train_ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
test_ds = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(8)
del x_train, y_train, x_test, y_test
net = build()
optimizer = keras.optimizers.SGD(0.1)
loss = keras.losses.SparseCategoricalCrossentropy()
for inputs, labels in train_ds:
    with tf.GradientTape() as tape:
        value = loss(labels, net(inputs, training=True))
    optimizer.apply_gradients(zip(tape.gradient(value, net.trainable_variables), net.trainable_variables))
"""
    )
    model = next(model for model in found.record.models if model.name == "net")
    assert (model.data_kind, model.data, len(data_of(model)[1])) == ("test", "test_ds by its name", 25)


def test_the_program_sees_no_difference(watch: WatchProgram, capsys: Any) -> None:
    code = (
        "import keras; keras.backend.clear_session()"
        + START
        + """
import inspect
class Mine(keras.callbacks.Callback):
    pass
mine = [Mine()]
history = model.fit(x_train, y_train, epochs=2, batch_size=16, validation_data=(x_test, y_test),
    callbacks=mine, verbose=0)
lines = [
    str(len(mine)),
    repr({k: [float(n) for n in v] for k, v in history.history.items()}),
    str(inspect.signature(keras.Model.fit)), str(inspect.signature(layers.Layer.__init__)),
    str(inspect.getfullargspec(keras.layers.Layer.__init__)),
    keras.Model.fit.__name__, str(model.get_config()),
    repr(float(model.evaluate(x_test, y_test, verbose=0)[0])),
    repr(model.predict(x_test, verbose=0).sum()),
]
try:
    model.fit(x_train, nonsense=1)
except TypeError as error:
    lines.append(str(error))
try:
    model.fit(np.ones((3, 9)), np.ones(3), verbose=0)
except ValueError as error:
    lines.append(str(error)[:200])
print("\\n".join("RESULT " + line for line in lines))
"""
    )
    watch(code)
    watched = [line for line in capsys.readouterr().out.splitlines() if line.startswith("RESULT")]
    exec(compile(code, "plain", "exec"), {"__name__": "plain"})
    plain = [line for line in capsys.readouterr().out.splitlines() if line.startswith("RESULT")]
    assert len(watched) == 11
    assert watched == plain


@pytest.mark.parametrize(
    ("loss", "name", "logits"),
    [
        (
            "keras.losses.SparseCategoricalCrossentropy(from_logits=True)",
            "sparse_categorical_crossentropy",
            True,
        ),
        ("['mse']", "mse", False),
        (
            "{'out': keras.losses.SparseCategoricalCrossentropy(from_logits=True)}",
            "sparse_categorical_crossentropy",
            True,
        ),
        ("lambda y, p: keras.ops.mean(p)", "<lambda>", False),
        ("keras.losses.sparse_categorical_crossentropy", "sparse_categorical_crossentropy", False),
    ],
)
def test_losses(watch: WatchProgram, loss: str, name: str, logits: bool) -> None:
    found = watch(
        START
        + f"""
inputs = keras.Input((4,))
model = keras.Model(inputs, layers.Dense(3, name="out")(inputs))
model.compile("rmsprop", {loss})
model.fit(x_train, y_train[:, None], verbose=0)
"""
    )
    model = first(found)
    assert (model.model.loss, model.model.from_logits, model.optimizer) == (name, logits, "RMSprop")


def test_artefacts(watch: WatchProgram, project: Path, tmp_path: Path) -> None:
    (project / "part.py").write_text("def f():\n    return 3\n")
    (project / "rows.csv").write_text("1,2\n")
    found = watch(
        START
        + """
import part
from pathlib import Path
Path("rows.csv").read_text()
Path("made.txt").write_text("x")
Path("made.txt").read_text()
model.fit(x_train, y_train, verbose=0)
Path("part.py").write_text("edited while it trained")
"""
    )
    folder = tmp_path / "captured"
    record = structure(json.loads((folder / "capture.json").read_text()), CaptureRecord)
    assert record == found.record
    assert [Path(state.path).name for state in record.sources] == ["train.py", "part.py"]
    assert (folder / "sources" / "0.py").read_bytes() == (project / "train.py").read_bytes()
    assert (folder / "sources" / "1.py").read_text() == "def f():\n    return 3\n"
    assert [Path(state.path).name for state in record.data] == ["rows.csv"]
    assert not (folder / "model-1.keras").exists()


def test_session_localizes_what_it_captured(watch: WatchProgram, project: Path, tmp_path: Path) -> None:
    watch(START + "model.fit(x_train, y_train, verbose=0)\n")  # writes the program
    from guider_engine.wire import Program

    session = Session()
    program = Program(str(project / "train.py"), (), str(project), str(project))
    record = session.capture(program, str(tmp_path / "one"), quiet, quiet)
    model = record.models[0]
    inputs = Inputs(model.path, (model.tests,), str(project))
    found = session.localize(inputs, quiet, quiet)
    assert "model" not in found.timings
    assert found.model == model.model
    afresh = Session().localize(inputs, quiet, quiet)
    assert "model" in afresh.timings
    assert afresh.model == model.model
    assert afresh.layers == found.layers

    other = Session().capture(program, str(tmp_path / "one"), quiet, quiet)
    assert other.models[0].path == model.path
    assert "model" in session.localize(inputs, quiet, quiet).timings


@pytest.mark.parametrize("problem", ["unsaved", "custom"])
def test_a_model_that_is_only_in_memory(
    watch: WatchProgram, project: Path, tmp_path: Path, problem: str
) -> None:
    base = "raise NotImplementedError" if problem == "unsaved" else "return super().get_config()"
    code = (
        START
        + f"""
class Odd(layers.Layer):
    def call(self, x):
        return x * 2
    def get_config(self):
        {base}
model = keras.Sequential([keras.Input((4,)), Odd(), layers.Dense(3, "softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(x_train, y_train, verbose=0)
"""
    )
    watch(code)
    from guider_engine.wire import Program

    session = Session()
    program = Program(str(project / "train.py"), (), str(project), str(project))
    model = session.capture(program, str(tmp_path / "one"), quiet, quiet).models[0]
    assert model.saved == (problem == "custom")
    assert [notice.code for notice in model.notices] == (["model-unsaved"] if problem == "unsaved" else [])
    inputs = Inputs(model.path, (model.tests,), str(project))
    assert session.localize(inputs, quiet, quiet).tests.total == 40
    with pytest.raises(EngineFailure) as caught:
        Session().localize(inputs, quiet, quiet)
    assert caught.value.failure.code == "capture-gone"
