"""Programs for an older Keras: every spelling of the tables stops a real program, and is explained on its line."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

from guider_engine.capture import old_keras
from guider_engine.capture.old_keras import Spelling
from guider_engine.capture.sources import Sources
from guider_engine.capture.spellings import explain
from guider_engine.wire import Failure, Program

SERVER = Path(__file__).parents[2] / "server"

LAYER = {
    "init": "Dense(3, init='uniform')",
    "Embedding.init": "Embedding(9, 3, init='uniform')",
    "PReLU.init": "PReLU(init='zero')",
    "inner_init": "LSTM(3, inner_init='orthogonal')",
    "forget_bias_init": "LSTM(3, forget_bias_init='one')",
    "gamma_init": "BatchNormalization(gamma_init='one')",
    "beta_init": "BatchNormalization(beta_init='zero')",
    "W_regularizer": "Dense(3, W_regularizer='l2')",
    "U_regularizer": "LSTM(3, U_regularizer='l2')",
    "b_regularizer": "Dense(3, b_regularizer='l2')",
    "W_constraint": "Dense(3, W_constraint=None)",
    "U_constraint": "LSTM(3, U_constraint=None)",
    "b_constraint": "Dense(3, b_constraint=None)",
    "bias": "Dense(3, bias=False)",
    "output_dim": "Dense(output_dim=3, activation='relu', input_dim=4)",
    "nb_filter": "Conv2D(nb_filter=3, kernel_size=3)",
    "nb_row": "Conv2D(3, nb_row=3)",
    "nb_col": "Conv2D(3, nb_col=3)",
    "filter_length": "Conv1D(3, filter_length=3)",
    "border_mode": "Conv2D(3, (3, 3), border_mode='same')",
    "subsample": "Conv2D(3, (3, 3), subsample=(2, 2))",
    "subsample_length": "Conv1D(3, 3, subsample_length=2)",
    "pool_length": "MaxPooling1D(pool_length=2)",
    "stride": "MaxPooling1D(2, stride=2)",
    "dim_ordering": "MaxPooling2D((2, 2), dim_ordering='th')",
    "inner_activation": "LSTM(3, inner_activation='sigmoid')",
    "dropout_W": "LSTM(3, dropout_W=0.2)",
    "dropout_U": "LSTM(3, dropout_U=0.2)",
    "Embedding.dropout": "Embedding(9, 3, dropout=0.2)",
    "consume_less": "LSTM(3, consume_less='gpu')",
    "p": "Dropout(p=0.5)",
    "sigma": "GaussianNoise(sigma=0.1)",
    "dims": "Reshape(dims=(3,))",
    "length": "UpSampling1D(length=2)",
    "input_length": "LSTM(3, input_dim=4, input_length=2)",
    "batch_input_shape": "LSTM(3, batch_input_shape=(1, 2, 4), stateful=True)",
    "weights": "Dense(3, weights=[])",
    "BatchNormalization.mode": "BatchNormalization(mode=0)",
    **{
        f"{name}.mode": f"{name}(mode='sum')"
        for name in ("Add", "Average", "Concatenate", "Maximum", "Multiply")
    },
    "Dot.mode": "Dot(1, mode='dot')",
    "fused": "BatchNormalization(fused=True)",
    "renorm": "BatchNormalization(renorm=True)",
    "virtual_batch_size": "BatchNormalization(virtual_batch_size=3)",
    "dynamic": "Dense(3, dynamic=True)",
    "time_major": "LSTM(3, time_major=True)",
    "max_tokens": "CategoryEncoding(max_tokens=3)",
    "Conv2DTranspose.output_shape": "Conv2DTranspose(3, 3, output_shape=(None, 3, 3, 3))",
}
MODEL = {
    "Model.input": "keras.Model(input=model.inputs, outputs=model.outputs)",
    "Model.output": "keras.Model(inputs=model.inputs, output=model.outputs)",
}
OPTIMIZER = {
    "lr": "Adam(lr=0.1)",
    "decay": "SGD(0.1, decay=1e-6)",
    "schedule_decay": "Nadam(0.1, schedule_decay=0.004)",
}
FUNCTION = {
    "nb_epoch": "model.fit(x, y, nb_epoch=2)",
    "samples_per_epoch": "model.fit(x, y, samples_per_epoch=2)",
    "nb_val_samples": "model.fit(x, y, nb_val_samples=2)",
    "val_samples": "model.evaluate(x, y, val_samples=2)",
    "nb_words": "keras.utils.to_categorical([1], nb_words=10)",
    "show_accuracy": "model.fit(x, y, show_accuracy=True)",
    "class_mode": "model.compile('adam', 'mse', class_mode='binary')",
    "options": "model.compile('adam', 'mse', options=None)",
    "accuracy": "model.train_on_batch(x, y, accuracy=True)",
    "workers": "model.fit(x, y, workers=2, verbose=0)",
    "use_multiprocessing": "model.fit(x, y, use_multiprocessing=True, verbose=0)",
    "max_queue_size": "model.fit(x, y, max_queue_size=3, verbose=0)",
    "max_q_size": "model.fit(x, y, max_q_size=3)",
    "pickle_safe": "model.fit(x, y, pickle_safe=True)",
    "nb_worker": "model.fit(x, y, nb_worker=2)",
    "target_tensors": "model.compile('adam', 'mse', target_tensors=None)",
    "sample_weight_mode": "model.compile('adam', 'mse', sample_weight_mode='temporal')",
    "experimental_run_tf_function": "model.compile('adam', 'mse', experimental_run_tf_function=False)",
    "reset_metrics": "model.test_on_batch(x, y, reset_metrics=True)",
    "ModelCheckpoint.period": "keras.callbacks.ModelCheckpoint('m.keras', period=2)",
    "TensorBoard.batch_size": "keras.callbacks.TensorBoard('logs', batch_size=32)",
    "TensorBoard.write_grads": "keras.callbacks.TensorBoard('logs', write_grads=True)",
    "Input.batch_input_shape": "keras.Input(batch_input_shape=(1, 3))",
}
PARTS = (
    "input_shape",
    "output_shape",
    "inbound_nodes",
    "outbound_nodes",
    "input_mask",
    "output_mask",
    "updates",
    "W",
    "b",
)
INTERNALS = (
    "state_updates",
    "total_loss",
    "targets",
    "sample_weights",
    "metrics_tensors",
    "_make_train_function",
    "container_nodes",
)
LAYER_CLASS = "class Mine(keras.layers.Layer):\n    def "
ATTRIBUTE = {
    "fit_generator": "model.fit_generator(iter([(x, y)]), steps_per_epoch=1, verbose=0)",
    "evaluate_generator": "model.evaluate_generator(iter([(x, y)]), 1)",
    "predict_generator": "model.predict_generator(iter([x]), 1)",
    "predict_classes": "model.predict_classes(x)",
    "predict_proba": "model.predict_proba(x)",
    **{name: f"model.layers[0].{name}" for name in PARTS},
    **{
        name: f"model.layers[0].{name}(0)"
        for name in ("get_input_at", "get_output_at", "get_input_shape_at", "get_output_shape_at")
    },
    **{name: f"model.{name}" for name in INTERNALS},
    "reset_states": "model.reset_states()",
    "to_yaml": "model.to_yaml()",
    "validation_data": (
        "class Mine(keras.callbacks.Callback):\n    def on_epoch_end(self, epoch, logs={}):\n"
        "        self.validation_data[0]\nMine().on_epoch_end(0)"
    ),
    **{name: f"model.optimizer.{name}" for name in ("lr", "decay", "get_weights", "get_updates")},
    "get_shape": "keras.Input((3,)).get_shape()",
    "_keras_shape": "keras.Input((3,))._keras_shape",
    "make_one_shot_iterator": "import tensorflow as tf\ntf.data.Dataset.range(3).make_one_shot_iterator()",
    "output_shapes": "import tensorflow as tf\ntf.data.Dataset.range(3).output_shapes",
    "output_types": "import tensorflow as tf\ntf.data.Dataset.range(3).output_types",
    "add_update": (LAYER_CLASS + "call(self, t):\n        self.add_update(t)\n        return t\nMine()(x)"),
    "add_metric": (
        LAYER_CLASS + "call(self, t):\n        self.add_metric(t, name='a')\n        return t\nMine()(x)"
    ),
}
ASSIGNMENT = {
    **{
        name: f"{LAYER_CLASS}build(self, shape):\n        self.{name} = []\nMine().build((1, 3))"
        for name in ("trainable_weights", "non_trainable_weights")
    },
    **{name: f"model.{name} = [model.layers[-1].output]" for name in ("inputs", "outputs")},
}
WEIGHT = (
    "class Mine(keras.layers.Layer):\n    def build(self, shape):\n        self.w = self.add_weight({})\n"
    "    def call(self, t):\n        return t\nMine()(x)"
)
OTHER = {
    "shape=(3,)": "keras.Input(shape=3)",
    "learning_rate=1.0": "keras.optimizers.Adam(learning_rate=1)",
    "its optimizers are in keras.optimizers": "import tensorflow as tf\ntf.keras.optimizers.legacy.Adam(0.1)",
    "add_weight(shape=…, name=": WEIGHT.format("'w', (3,)"),
    "takes by keyword: add_weight(shape=…": WEIGHT.format("'w', shape=(3,), initializer='zeros'"),
    "metrics=['accuracy']": "model.compile('adam', 'mse', metrics='accuracy')\nmodel.evaluate(x, y, verbose=0)",
    "'log_cosh'": "model.compile('adam', 'logcosh')\nmodel.evaluate(x, y, verbose=0)",
    "keras.metrics.Precision": "model.compile('adam', 'mse', metrics=['fmeasure'])\nmodel.evaluate(x, y, verbose=0)",
    "reduction='auto'": "keras.losses.MeanSquaredError(reduction='auto')",
    "saves a model as a folder": "model.save('folder')",
    "name a file that ends in .keras": "model.save('folder', save_format='tf')",
    "it has to end in .weights.h5": "model.save_weights('w.h5')",
    "names a file for weights": "keras.callbacks.ModelCheckpoint('w.hdf5', save_weights_only=True)",
    "names a file for checkpoints": "keras.callbacks.ModelCheckpoint('w.hdf5')",
    "loads a model that was saved as a folder": "import os\nos.makedirs('saved')\nkeras.models.load_model('saved')",
    "which Keras 3 calls 'val_accuracy'": (
        "model.fit(x, y, verbose=0, validation_data=(x, y), callbacks=[keras.callbacks.EarlyStopping('val_acc')])"
    ),
    "keras.ops, or put the call into a layer": "import tensorflow as tf\ntf.reduce_mean(keras.Input((3,)))",
    "function of that name in keras.ops": "import tensorflow as tf\ntf.keras.backend.mean(keras.Input((3,)))",
    "pass output_shape=": (
        "import tensorflow as tf\nkeras.layers.Lambda(lambda t: tf.py_function(lambda a: a, [t], tf.float32))"
        "(keras.Input((3,)))"
    ),
    "asks for the output of a model": "keras.Sequential([keras.layers.Dense(3)]).output",
    "numpy.array(…)": "model.fit([[0.0, 0.0, 0.0]] * 4, y, verbose=0)",
    "use keras.Input": "import tensorflow as tf\ntf.compat.v1.placeholder(tf.float32)",
    "with an optimizer that was made with epsilon=None": (
        "model.compile(keras.optimizers.Adam(0.1, epsilon=None), 'mse')\nmodel.fit(x, y, verbose=0)"
    ),
    "units=3.5, which Keras 3 takes as a whole number": "keras.layers.Dense(7 / 2)",
    "gives the name 'a/b'": "keras.layers.Dense(3, name='a/b')",
    ".as_list of a shape": "keras.Input((3,)).shape.as_list()",
    ".value of a shape": "keras.Input((3,)).shape[1].value",
}
HISTORY = """
history = keras.callbacks.History()
history.history = {'loss': [1.0], 'accuracy': [0.5], 'val_accuracy': [0.5], 'learning_rate': [0.1], 'mse': [1.0]}
"""
IMPORTED = {"wrappers": "wrappers.scikit_learn"}
"""Of a module that some versions have, what none has."""
MAYBE = {"layer's renorm", "optimizer's decay", "units=3.5, which Keras 3 takes as a whole number"}
"""What some versions of Keras 3 take."""
BEGIN = """\
import keras
import numpy as np
from keras.layers import *
from keras.optimizers import *
x = np.zeros((4, 3), "float32"); y = np.zeros((4, 1), "float32")
model = keras.Sequential([keras.Input((3,)), Dense(1, activation="sigmoid")])
model.compile("adam", "mse")
"""


def in_module(module: str, name: str) -> str:
    folder, _, last = f"{module}.{name}".rpartition(".")
    return f"from {folder} import {last}"


def rows() -> Iterator[tuple[str, str, Spelling]]:
    """Key, program and entry of everything in the tables."""
    for key, spelling in old_keras.MODULES.items():
        yield f"module {key}", f"import keras.{IMPORTED.get(key, key)}", spelling
    for key, spelling in old_keras.PACKAGES.items():
        yield f"package {key}", f"import {key}", spelling
    for key, spelling in old_keras.NAMES.items():
        yield f"name {key}", in_module("keras", key), spelling
    for key, spelling in old_keras.BACKEND.items():
        yield f"backend {key}", f"from keras import backend as K\nK.{key}", spelling
    for key, spelling in old_keras.TENSORFLOW.items():
        yield f"tensorflow {key}", f"import tensorflow as tf\ntf.{key}", spelling
    explicit: list[tuple[str, Mapping[str, Spelling], dict[str, str]]] = [
        ("layer's", old_keras.LAYER_ARGUMENTS, LAYER | MODEL),
        ("optimizer's", old_keras.OPTIMIZER_ARGUMENTS, OPTIMIZER),
        ("function's", old_keras.FUNCTION_ARGUMENTS, FUNCTION),
        ("attribute", old_keras.ATTRIBUTES, ATTRIBUTE),
        ("assignment", old_keras.ASSIGNMENTS, ASSIGNMENT),
    ]
    for what, table, programs in explicit:
        for key, spelling in table.items():
            yield f"{what} {key}", BEGIN + programs[key], spelling


ROWS = list(rows())
ROW_IDS = [row[0] for row in ROWS]


def failure(
    folder: Path, text: str, *, version: str = "3.15", legacy: bool = True
) -> tuple[Any, Failure | None]:
    """The exception of a program, and what is said of it."""
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    sources = Sources(Program(str(path), (), str(folder), str(folder)), text.encode())
    try:
        exec(compile(text, str(path), "exec"), {"__name__": "__main__"})
    except Exception as error:
        return error, explain(error, sources, version, legacy=legacy)
    return None, None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("key", "program", "spelling"), ROWS, ids=ROW_IDS)
def test_a_spelling_is_explained(folder: Path, key: str, program: str, spelling: Spelling) -> None:
    error, found = failure(folder, program)
    if error is None and key in MAYBE:
        pytest.skip("this version of Keras takes it")

    assert error is not None
    assert found is not None, error
    assert (found.kind, found.code) == ("engine", "keras-2-program")
    assert found.message.startswith("train.py, line ")
    assert spelling.now in found.message
    assert spelling.advice in found.message
    assert ("legacyKeras" in found.message) == spelling.kept


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("said", "line"), OTHER.items(), ids=OTHER.keys())
def test_other_words_of_keras_are_explained(folder: Path, said: str, line: str) -> None:
    error, found = failure(folder, BEGIN + line)
    if error is None and said in MAYBE:
        pytest.skip("this version of Keras takes it")

    assert found is not None, error
    assert found.code == "keras-2-program"
    assert said in found.message


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("acc", "accuracy"),
        ("val_acc", "val_accuracy"),
        ("lr", "learning_rate"),
        ("mean_squared_error", "mse"),
    ],
)
def test_a_metric_of_a_history_is_explained(folder: Path, old: str, now: str) -> None:
    for reading in (f"history.history['{old}']", f"of = history.history\nprint(of['{old}'])"):
        _, found = failure(folder, BEGIN + HISTORY + reading)
        assert found is not None
        assert f"reads '{old}' of a history, which Keras 3 calls '{now}'" in found.message


def test_new_names_exist() -> None:
    """Whatever is said to be the name today can be written so."""
    packages = {"keras": keras, "tf": tf, "tensorflow": tf}
    names = {row[2].now for row in ROWS if row[2].now.partition(".")[0] in packages}
    assert len(names) > 100
    for name in names:
        package, *parts = name.split(".")
        if name.startswith("tensorflow.keras"):
            importlib.import_module(".".join(name.split(".")[:4]))
        reduce(getattr, parts, packages[package])


NOT_OLD = {
    "a function of one's own": "def f(rate):\n    pass\nf(lr=3)",
    "a class of one's own": "class Adam:\n    def __init__(self, rate):\n        pass\nAdam(lr=3)",
    "a constructor of one's own": (
        "class Mine(keras.optimizers.Adam):\n    def __init__(self, rate):\n        super().__init__(rate)\nMine(lr=3)"
    ),
    "a method of one's own": (
        "class Mine(keras.Model):\n    def train(self, x):\n        pass\nMine().train(x, nb_epoch=3)"
    ),
    "a layer of one's own without its argument": (
        "class Dense:\n    def __init__(self, units):\n        pass\nDense(output_dim=3)"
    ),
    "an attribute of one's own": "class Trainer:\n    pass\nTrainer().fit_generator()",
    "a setter of one's own": "class Report:\n    outputs = property(lambda self: 1)\nReport().outputs = 2",
    "a dictionary of one's own": "scores = {'loss': 1}\nscores['acc']",
    "a key that a history has not": "logs = {'loss': [1]}\nlogs['accuracy']",
    "a module of one's own": "import wrappers",
    "an unknown argument": "keras.layers.Dense(3, colour='red')",
    "an unknown layer": "keras.layers.Dence(3)",
    "a wrong shape": "model.predict(np.zeros((3, 7)))",
    "a value of a tuple": "(1, 2).value",
    "another package": "np.asscalar(np.array([3]))",
    "an exception whose text fails": (
        "class Odd(Exception):\n    def __str__(self):\n        raise ValueError('no text')\nraise Odd"
    ),
}


@pytest.mark.parametrize("line", NOT_OLD.values(), ids=NOT_OLD.keys())
def test_other_errors_are_not(folder: Path, line: str) -> None:
    error, found = failure(folder, BEGIN + line)
    assert error is not None
    assert found is None


def test_an_error_outside_of_the_project_is_not(tmp_path: Path) -> None:
    sources = Sources(Program(str(tmp_path / "train.py"), (), str(tmp_path), str(tmp_path)), b"")
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("keras.layers.core")
    assert explain(caught.value, sources, "3.15", legacy=True) is None


def test_the_line_is_that_of_the_argument(folder: Path) -> None:
    _, found = failure(
        folder, "from keras.optimizers import Adam\n\nAdam(\n    beta_1=0.9,\n    lr=0.1,\n)\n"
    )
    assert found is not None
    assert found.message.startswith("train.py, line 5 passes lr=, which Keras 3 calls learning_rate=. ")


def test_an_argument_that_a_class_of_the_project_passes_on_is_shown_where_it_is_given(folder: Path) -> None:
    own = "class Mine(Dense):\n    def __init__(self, units, **others):\n        super().__init__(units, **others)\n"
    _, found = failure(folder, f"{BEGIN}{own}\nMine(3,\n     init='uniform')")
    assert found is not None
    assert found.message == (
        f"train.py, line {BEGIN.count(chr(10)) + 6} passes init= to Mine, which Keras 3 calls kernel_initializer=."
    )


def test_a_module_of_the_project_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "old_parts.py").write_text("def part():\n    import keras.layers.core\n")
    monkeypatch.syspath_prepend(str(folder))
    _, found = failure(folder, "import old_parts\nold_parts.part()")
    assert found is not None
    assert found.message.startswith("old_parts.py, line 2 imports keras.layers.core,")


def test_keras_2_is_offered_as_far_as_it_is_there(folder: Path) -> None:
    program = "import keras\nkeras.optimizers.Adam(lr=0.1)"
    _, there = failure(folder, program, legacy=True)
    _, missing = failure(folder, program, legacy=False)
    _, already = failure(folder, program, version="2.15.0", legacy=True)
    assert there is not None
    assert "is installed here as tf_keras" in there.message
    assert missing is not None
    assert (
        f'{sys.executable} -m pip install "tf_keras=={".".join(tf.__version__.split(".")[:2])}.*"'
        in missing.message
    )
    assert already is not None
    assert already.message.endswith("passes lr=, which Keras 2 calls learning_rate=.")


def test_a_download_that_fails_is_no_old_spelling(folder: Path) -> None:
    reason = "URL fetch failure on https://example.invalid/digits.npz: None -- [Errno -2] Name or service not known"
    _, found = failure(folder, f"def get():\n    raise Exception({reason!r})\nget()")
    assert found is not None
    assert found.code == "program-failed"
    assert found.message.startswith(
        "train.py, line 2 downloads digits.npz and cannot: [Errno -2] Name or service"
    )


RUNNER = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from guider_engine.capture.legacy_keras import LegacyKeras, complete
with LegacyKeras():
    import tf_keras
    complete(tf_keras)
    import keras, tensorflow
    assert keras is tf_keras
    assert tensorflow.keras.layers.Dense is keras.layers.Dense
    outcomes = {}
    for key, text in json.load(sys.stdin).items():
        try:
            exec(compile(text, "train.py", "exec"), {"__name__": "__main__"})
            outcomes[key] = ""
        except Exception as error:
            outcomes[key] = f"{type(error).__name__}: {error}"
    for name in ("lr", "learning_rate"):
        assert float(keras.optimizers.Adam(**{name: 0.5}).learning_rate) == 0.5
print("OUTCOMES", json.dumps(outcomes))
"""


def test_keras_2_takes_what_it_is_said_to_take(folder: Path) -> None:
    programs = {key: program for key, program, _ in ROWS}
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER, str(SERVER)],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    outcomes = json.loads(ran.stdout.rpartition("OUTCOMES ")[2])
    assert {key: outcomes[key] for key, _, spelling in ROWS if spelling.kept and outcomes[key]} == {}
    modules = ("module", "package", "name")  # that one is there does not say that all is there that it had
    taken = [key for key, _, spelling in ROWS if not spelling.kept and not outcomes[key]]
    assert [key for key in taken if not key.startswith(modules)] == []
