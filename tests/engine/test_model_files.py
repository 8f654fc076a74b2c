"""Models in every format: what is read, by which Keras, and what is refused before anything is allocated."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from guider_engine.errors import EngineFailure
from guider_engine.load import claims, files
from guider_engine.load.model import LoadedModel, load_model, load_weights
from guider_engine.wire import Failure, Inputs

KERAS_2 = Path(__file__).parents[1] / "fixtures" / "models" / "keras2.h5"
KERNEL, BIAS = np.array([[1, 0], [0, 2], [3, 0]], "float32"), np.array([0.5, -0.5], "float32")
X = np.array([[1, 2, 3], [0, 1, 0]], "float32")
ANSWERS = [[10.5, 3.5], [0.5, 1.5]]
"""X @ KERNEL + BIAS."""


def small(library: Any = keras) -> Any:
    given = library.layers.Input((3,), name="given")
    same = library.layers.Dropout(0.5, name="same")
    model = library.Sequential([given, same, library.layers.Dense(2, name="answer")], name="small")
    model.layers[-1].set_weights([KERNEL, BIAS])
    return model


def load(path: Any, root: Path | None = None, **options: Any) -> LoadedModel:
    return load_model(Inputs(str(path), (), str(root or Path(path).parent), **options))


def answers(model: Any) -> Any:
    return np.asarray(model(X)).tolist()


def failure(action: Callable[[], Any], code: str) -> Failure:
    with pytest.raises(EngineFailure) as caught:
        action()
    found = caught.value.failure
    assert (found.kind, found.code) == ("input", code), found
    return found


@pytest.fixture(scope="module")
def tf_keras() -> Iterator[Any]:
    """Keras 2, which warns of its age."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield pytest.importorskip("tf_keras")


@pytest.mark.parametrize("name", ["m.keras", "m.h5", "m.hdf5"])
def test_files_of_keras_3(tmp_path: Path, name: str) -> None:
    model = small()
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.save(tmp_path / name)
    found = load(tmp_path / name)
    assert answers(found.model) == ANSWERS
    (output,) = found.summary.outputs
    assert (output.shape, output.activation) == ((None, 2), "linear")
    assert (output.loss, output.from_logits) == ("SparseCategoricalCrossentropy", True)
    assert (found.summary.loss, found.summary.from_logits, found.notices) == (output.loss, True, ())


def test_what_a_keras_archive_holds_as_a_folder(tmp_path: Path) -> None:
    small().save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        archive.extractall(tmp_path / "folder")
    assert answers(load(tmp_path / "folder").model) == ANSWERS


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:You are saving your model as an HDF5:UserWarning"
)
@pytest.mark.parametrize(("name", "by"), [("saved", "tf_keras"), ("m.keras", "tf_keras"), ("m.h5", "keras")])
def test_files_of_keras_2(tmp_path: Path, tf_keras: Any, name: str, by: str) -> None:
    model = small(tf_keras)
    model.compile(loss=tf_keras.losses.BinaryCrossentropy(from_logits=True))
    model.save(tmp_path / name)
    found = load(tmp_path / name)
    assert answers(found.model) == ANSWERS
    assert type(found.model).__module__.split(".")[0] == by
    assert [code for code, _ in found.notices] == (["keras-2-model"] if by == "tf_keras" else [])
    output = found.summary.outputs[0]
    assert (output.name, output.loss, output.from_logits) == ("answer", "BinaryCrossentropy", True)


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:You are saving your model as an HDF5:UserWarning"
)
def test_keras_2_reads_what_keras_3_does_not_know_any_more(tmp_path: Path, tf_keras: Any) -> None:
    """Keras 3 has no `LocallyConnected1D`."""
    model = tf_keras.Sequential([tf_keras.layers.Input((4, 2)), tf_keras.layers.LocallyConnected1D(3, 2)])
    model.save(tmp_path / "m.h5")
    found = load(tmp_path / "m.h5")
    assert [code for code, _ in found.notices] == ["keras-2-model"]
    assert found.summary.layers[-1].class_name == "LocallyConnected1D"
    assert np.allclose(found.model(np.ones((1, 4, 2))), model(np.ones((1, 4, 2))))


def test_files_of_keras_2_without_it_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tf_keras", None)
    (tmp_path / "saved").mkdir()
    for name in ("saved_model.pb", "keras_metadata.pb"):
        (tmp_path / "saved" / name).write_bytes(b"x")
    assert "tf_keras==" in failure(lambda: load(tmp_path / "saved"), "model-version").message


def test_file_of_keras_3_under_keras_2(
    tmp_path: Path, tf_keras: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    small().save(tmp_path / "m.keras")
    monkeypatch.setattr("guider_engine.load.reading.import_keras", lambda: tf_keras)
    found = failure(lambda: load(tmp_path / "m.keras"), "model-version")
    assert f"written by Keras {keras.__version__}" in found.message
    assert tf_keras.__version__ in found.message


def test_saved_model_without_keras_metadata(tmp_path: Path) -> None:
    small().export(tmp_path / "exported", verbose=False)
    found = failure(lambda: load(tmp_path / "exported"), "saved-model-without-layers")
    assert "model.save('model.keras')" in found.message


@pytest.fixture
def maker(tmp_path: Path) -> str:
    (tmp_path / "maker_of_this_test.py").write_text(
        "import keras\n"
        "def make(units=2):\n"
        "    l = keras.layers\n"
        "    dense = l.Dense(units, name='answer')\n"
        "    return keras.Sequential([l.Input((3,)), l.Dropout(0.5), dense], name='small')\n"
        "def with_tests():\n    return make(), ([[1, 2, 3]], [0])\n"
        "def with_labels():\n    return make(), [[1, 2, 3]], [0]\n"
        "def other():\n    return make(4)\n"
        "def unbuilt():\n    return keras.Sequential([keras.layers.Dense(2)])\n"
        "def nothing():\n    return None\n"
        "def a_class():\n    return keras.Sequential\n"
        "def too_many():\n    return make(), 1, 2, 3\n"
    )
    return "maker_of_this_test"


@pytest.mark.parametrize(
    "name", ["w.weights.h5", "w.h5", "m.keras", "m.h5", "checkpoint.index", "checkpoint"]
)
def test_weights_alone_with_a_function_that_makes_the_model(tmp_path: Path, maker: str, name: str) -> None:
    model = small()
    if name.startswith("checkpoint"):
        tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))
    elif name == "w.h5":
        with h5py.File(tmp_path / name, "w") as file:  # as Keras 2 wrote it
            group = file.create_group("answer")
            file.attrs["layer_names"] = [b"answer"]
            group.attrs["weight_names"] = [b"kernel", b"bias"]
            group["kernel"], group["bias"] = KERNEL, BIAS
    elif name.startswith("w"):
        model.save_weights(tmp_path / name)
    else:
        model.save(tmp_path / name)
    assert answers(load(tmp_path / name, load=f"{maker}:make").model) == ANSWERS


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_checkpoint_of_keras_2(tmp_path: Path, tf_keras: Any) -> None:
    small(tf_keras).save_weights(tmp_path / "epoch-1")
    (tmp_path / "maker_of_keras_2.py").write_text(
        "import tf_keras\n"
        "def make():\n"
        "    l = tf_keras.layers\n"
        "    return tf_keras.Sequential([l.Input((3,)), l.Dropout(0.5), l.Dense(2, name='answer')])\n"
    )
    assert answers(load(tmp_path / "epoch-1.index", load="maker_of_keras_2:make").model) == ANSWERS


@pytest.mark.parametrize("name", ["w.weights.h5", "w.index"])
def test_weights_alone_say_what_is_missing(tmp_path: Path, name: str) -> None:
    if name == "w.index":
        tf.train.Checkpoint(model=small()).write(str(tmp_path / "w"))
    else:
        small().save_weights(tmp_path / name)
    found = failure(lambda: load(tmp_path / name), "model-weights-only")
    assert "def make_model():" in found.message
    assert 'load = "' in found.message


@pytest.mark.parametrize("function", ["other", "unbuilt"])
@pytest.mark.parametrize("name", ["w.weights.h5", "m.h5", "checkpoint.index"])
def test_weights_of_another_model(tmp_path: Path, maker: str, function: str, name: str) -> None:
    if name == "checkpoint.index":
        tf.train.Checkpoint(model=small()).write(str(tmp_path / "checkpoint"))
    elif name == "m.h5":
        small().save(tmp_path / name)
    else:
        small().save_weights(tmp_path / name)
    found = failure(lambda: load(tmp_path / name, load=f"{maker}:{function}"), "weights-mismatch")
    assert name.removesuffix(".index") in found.message
    if (name, function) == ("w.weights.h5", "other") and keras.__version__.startswith("3."):
        assert "answer has a weight of shape (3, 4), and the file one of shape (3, 2)." in found.message


def test_what_a_function_returns_beside_the_model(tmp_path: Path, maker: str) -> None:
    def given(function: str) -> Any:
        return load_model(Inputs("", (), str(tmp_path), load=f"{maker}:{function}")).given

    assert given("make") is None
    assert given("with_tests") == ([[1, 2, 3]], [0])
    assert given("with_labels") == ([[1, 2, 3]], [0])
    assert load_model(Inputs(f"{maker}:with_labels", (), str(tmp_path))).given == ([[1, 2, 3]], [0])


@pytest.mark.parametrize(
    ("function", "word"), [("nothing", "NoneType"), ("a_class", "type"), ("too_many", "4 values")]
)
def test_functions_that_return_no_model(tmp_path: Path, maker: str, function: str, word: str) -> None:
    spec = f"{maker}:{function}"
    assert word in failure(lambda: load_model(Inputs("", (), str(tmp_path), load=spec)), "model-type").message


CUSTOM = """
import keras
{decorator}
class Twice(keras.layers.Layer):
    def call(self, x):
        return x * 2
class Halved(keras.layers.Layer):
    def call(self, x):
        return x / 2
def shifted(x):
    return x + 1
mine = {{"Twice": Twice, "Halved": Halved, "shifted": shifted}}
def objects():
    return mine
model = keras.Sequential([keras.layers.Input((3,)), Twice(), Halved(), keras.layers.Activation(shifted)])
"""


@pytest.mark.parametrize("spec", ["", ":mine", ":objects"])
def test_custom_objects(tmp_path: Path, spec: str) -> None:
    (tmp_path / "objects_of_this_test.py").write_text(CUSTOM.format(decorator=""))
    namespace: dict[str, Any] = {"__name__": "objects_of_this_test"}
    exec(CUSTOM.format(decorator=""), namespace)
    namespace["model"].save(tmp_path / "m.keras")
    before = dict(keras.saving.get_custom_objects())
    if spec:
        found = load(tmp_path / "m.keras", custom_objects=f"objects_of_this_test{spec}")
        assert answers(found.model) == (X + 1).tolist()
        assert [layer.class_name for layer in found.summary.layers[:2]] == ["Twice", "Halved"]
        assert found.summary.outputs[0].activation == "shifted"
    else:
        message = failure(lambda: load(tmp_path / "m.keras"), "custom-object-missing").message
        assert all(
            word in message for word in ("Halved, Twice, shifted", "custom_objects", "guider.customObjects")
        )
    assert keras.saving.get_custom_objects() == before


def test_custom_objects_that_a_module_registers(tmp_path: Path) -> None:
    text = CUSTOM.format(decorator='@keras.saving.register_keras_serializable("mine")').replace(
        "Halved(), ", ""
    )
    text = text.replace(", keras.layers.Activation(shifted)", "")
    (tmp_path / "registering_of_this_test.py").write_text(text)
    before = dict(keras.saving.get_custom_objects())
    exec(text, {"__name__": "registering_of_this_test", "model": None})
    namespace: dict[str, Any] = {"__name__": "registering_of_this_test"}
    exec(text, namespace)
    namespace["model"].save(tmp_path / "m.keras")
    keras.saving.get_custom_objects().clear()
    keras.saving.get_custom_objects().update(before)
    assert "Twice" in failure(lambda: load(tmp_path / "m.keras"), "custom-object-missing").message
    for _ in range(2):  # the module is imported, and registers, anew
        found = load(tmp_path / "m.keras", custom_objects="registering_of_this_test")
        assert answers(found.model) == (X * 2).tolist()


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("nowhere_of_this_test", "function-missing"),
        ("wrong_of_this_test:nothing", "function-missing"),
        ("wrong_of_this_test:number", "custom-objects-type"),
        ("wrong_of_this_test:numbers", "custom-objects-type"),
    ],
)
def test_custom_objects_that_are_none(tmp_path: Path, spec: str, code: str) -> None:
    (tmp_path / "wrong_of_this_test.py").write_text("number = 1\ndef numbers():\n    return [1]\n")
    small().save(tmp_path / "m.keras")
    assert spec in failure(lambda: load(tmp_path / "m.keras", custom_objects=spec), code).message


def test_custom_objects_that_do_not_have_what_is_missing(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "somewhere"}
    exec(CUSTOM.format(decorator=""), namespace)
    namespace["model"].save(tmp_path / "m.keras")
    (tmp_path / "half_of_this_test.py").write_text("objects = {}\n")
    found = failure(
        lambda: load(tmp_path / "m.keras", custom_objects="half_of_this_test:objects"),
        "custom-object-missing",
    )
    assert "half_of_this_test:objects" in found.message
    assert "does not have Twice" in found.message


@pytest.mark.parametrize("name", ["m.keras", "m.h5"])
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5:UserWarning")
def test_code_in_a_file_is_not_run_unless_trusted(tmp_path: Path, name: str) -> None:
    keras.Sequential([layers.Input((3,)), layers.Lambda(lambda x: x * 3)]).save(tmp_path / name)
    assert "safe_mode" in failure(lambda: load(tmp_path / name), "model-unsafe").message
    assert answers(load(tmp_path / name, safe_mode=False).model) == (X * 3).tolist()


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:You are saving your model as an HDF5:UserWarning"
)
@pytest.mark.parametrize("name", ["saved", "m.keras", "m.h5"])
def test_code_in_a_file_of_keras_2(tmp_path: Path, tf_keras: Any, name: str) -> None:
    tf_keras.Sequential([tf_keras.layers.Input((3,)), tf_keras.layers.Lambda(lambda x: x * 3)]).save(
        tmp_path / name
    )
    failure(lambda: load(tmp_path / name), "model-unsafe")


@pytest.mark.filterwarnings("ignore:Layer .* does not have a:UserWarning")
def test_quantized_models_are_refused(tmp_path: Path) -> None:
    model = small()
    model.quantize("int8")
    model.save(tmp_path / "m.keras")
    assert "before model.quantize" in failure(lambda: load(tmp_path / "m.keras"), "model-quantized").message
    (tmp_path / "quantized_of_this_test.py").write_text(
        "import keras\n"
        "def make():\n"
        "    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])\n"
        "    model.quantize('int8')\n"
        "    return model\n"
    )
    failure(lambda: load("quantized_of_this_test:make", tmp_path), "model-quantized")


@pytest.mark.parametrize("name", ["m.keras", "m.h5", "w.weights.h5"])
@pytest.mark.parametrize("keep", [0, 7, 200, -30])
def test_truncated_files(tmp_path: Path, name: str, keep: int) -> None:
    path = tmp_path / name
    (small().save_weights if "weights" in name else small().save)(path)
    path.write_bytes(path.read_bytes()[:keep])
    assert path.name in failure(lambda: load(path), "model-damaged").message


def test_damaged_weights_within_a_whole_archive(tmp_path: Path) -> None:
    small().save(tmp_path / "m.keras")
    entries = _entries(tmp_path / "m.keras")
    whole = entries["model.weights.h5"]
    for weights in (b"no HDF5 file", whole[:600]):
        _write(tmp_path / "m.keras", {**entries, "model.weights.h5": weights})
        failure(lambda: load(tmp_path / "m.keras"), "model-damaged")


@pytest.mark.parametrize(
    "config",
    [b"", b"{", b"[1]", b'{"class_name": "Sequential"}', b'{"config": 3}', b'{"a":' * 100_000, b"\xff\xfe"],
)
def test_configurations_that_are_none(tmp_path: Path, config: bytes) -> None:
    small().save(tmp_path / "m.keras")
    _write(tmp_path / "m.keras", {**_entries(tmp_path / "m.keras"), "config.json": config})
    failure(lambda: load(tmp_path / "m.keras"), "model-damaged")


def test_other_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "archive.npz", x=X)
    (tmp_path / "archive.npz").rename(tmp_path / "archive.keras")
    with h5py.File(tmp_path / "data.h5", "w") as file:
        file["images"] = X
    (tmp_path / "folder").mkdir()
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "checkpoint").write_text("x")
    for name in ("text.keras", "text.h5", "m.onnx", "m.pkl", "m.pt", "m.tflite", "alone.index"):
        (tmp_path / name).write_text("not a model, though long enough to look like a file")
    for name, code, word in (
        ("nowhere.keras", "model-missing", "nowhere.keras"),
        ("text.keras", "model-damaged", ".keras archive"),
        ("text.h5", "model-damaged", "HDF5"),
        ("archive.keras", "model-damaged", "config.json"),
        ("data.h5", "model-format", "images"),
        ("m.onnx", "model-format", "ONNX"),
        ("m.pkl", "model-format", "never loaded"),
        ("m.pt", "model-format", "PyTorch"),
        ("m.tflite", "model-format", "Lite"),
        ("folder", "model-format", "folder"),
        ("checkpoints", "model-format", ".index"),
        ("alone.index", "model-damaged", "data-00000-of-00001"),
    ):
        assert word in failure(lambda name=name: load(tmp_path / name), code).message  # type: ignore[misc]


def test_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small().save(tmp_path / "m.keras")
    entries = _entries(tmp_path / "m.keras")
    monkeypatch.setattr(claims, "available_memory", lambda: 1 << 20)
    _write(tmp_path / "m.keras", {**entries, "assets/zeros": bytes(2 << 20)}, zipfile.ZIP_DEFLATED)
    assert (tmp_path / "m.keras").stat().st_size < 40_000
    assert "1.0 MB" in failure(lambda: load(tmp_path / "m.keras"), "model-too-large").message
    monkeypatch.setattr(files, "LARGEST_CONFIG", 100)
    _write(tmp_path / "m.keras", entries)
    failure(lambda: load(tmp_path / "m.keras"), "model-too-large")


@pytest.mark.parametrize("name", ["m.keras", "m.h5"])
def test_layers_that_claim_more_weights_than_the_file_holds(tmp_path: Path, name: str) -> None:
    small().save(tmp_path / name)
    absurd = 10**12
    if name == "m.keras":
        entries = _entries(tmp_path / name)
        config = json.loads(entries["config.json"])
        config["config"]["layers"][2]["config"]["units"] = absurd
        _write(tmp_path / name, {**entries, "config.json": json.dumps(config).encode()})
    else:
        with h5py.File(tmp_path / name, "a") as file:
            config = json.loads(file.attrs["model_config"])
            config["config"]["layers"][2]["config"]["units"] = absurd
            file.attrs["model_config"] = json.dumps(config)
    message = failure(lambda: load(tmp_path / name), "model-too-large").message
    assert "answer (Dense)" in message
    assert "1,000,000,000,000 weights" in message or "3,000,000,000,000 weights" in message


@pytest.mark.parametrize("name", ["m.keras", "m.h5", "w.weights.h5"])
def test_weights_that_claim_more_than_there_is_memory(tmp_path: Path, name: str) -> None:
    """A chunked dataset of any size takes no room as long as nothing is written to it."""
    path = tmp_path / name
    (small().save_weights if "weights" in name else small().save)(path)
    content = io.BytesIO(_entries(path)["model.weights.h5"] if name == "m.keras" else path.read_bytes())
    with h5py.File(content, "a") as file:
        file.create_dataset("layers/absurd", (10**9, 10**6), "float32", chunks=(1000, 1000))
    if name == "m.keras":
        _write(path, {**_entries(path), "model.weights.h5": content.getvalue()})
    else:
        path.write_bytes(content.getvalue())
    assert "4,000 TB" in failure(lambda: load(path), "model-too-large").message


def test_layers_that_put_out_more_than_there_is_memory(tmp_path: Path) -> None:
    wide = keras.Sequential([layers.Input((3, 3, 1)), layers.UpSampling2D(10**6, name="wide")])
    wide.save(tmp_path / "m.keras")
    assert "wide" in failure(lambda: load(tmp_path / "m.keras"), "model-too-large").message


def test_memory_that_ends_while_a_model_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load_model(*_: Any, **__: Any) -> None:
        raise MemoryError

    small().save(tmp_path / "m.keras")
    monkeypatch.setattr(keras.models, "load_model", load_model)
    with pytest.raises(EngineFailure) as caught:
        load(tmp_path / "m.keras")
    assert (caught.value.failure.kind, caught.value.failure.code) == ("environment", "out-of-memory")


def test_archive_without_weights(tmp_path: Path) -> None:
    small().save(tmp_path / "m.keras")
    entries = _entries(tmp_path / "m.keras")
    del entries["model.weights.h5"]
    _write(tmp_path / "m.keras", entries)
    assert "no weights" in failure(lambda: load(tmp_path / "m.keras"), "model-damaged").message


def test_weights_in_other_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(100))
    small().save(tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5", "a") as file:
        file.create_dataset("elsewhere", (10,), "uint8", external=[(str(tmp_path / "secret"), 0, 10)])
    assert "elsewhere" in failure(lambda: load(tmp_path / "m.h5"), "model-damaged").message


def test_weights_that_are_not_numbers_are_loaded(tmp_path: Path) -> None:
    model = small()
    model.layers[-1].set_weights([KERNEL * np.nan, BIAS])
    model.save(tmp_path / "m.keras")
    assert np.isnan(load(tmp_path / "m.keras").model.get_weights()[0]).all()


@pytest.mark.parametrize("name", ["m.keras", "m.h5"])
def test_new_weights_go_into_the_model_in_memory(tmp_path: Path, name: str) -> None:
    """The optimizer's state, which the file holds too, is passed over."""
    path = tmp_path / name
    model = small()
    model.compile("adam", "mse")
    model.save(path)
    found = load(path).model
    model.fit(X, X[:, :2], verbose=0)
    model.layers[-1].set_weights([KERNEL * 2, BIAS])
    model.save(path)
    assert load_weights(found, str(path))
    assert answers(found) == [[20.5, 7.5], [0.5, 3.5]]


def test_new_weights_of_a_file_of_weights(tmp_path: Path, maker: str) -> None:
    path = tmp_path / "w.weights.h5"
    small().save_weights(path)
    found = load(path, load=f"{maker}:make").model
    trained = small()
    trained.layers[-1].set_weights([KERNEL * 2, BIAS])
    trained.save_weights(path)
    assert load_weights(found, str(path))
    assert answers(found) == [[20.5, 7.5], [0.5, 3.5]]


def test_another_architecture_is_loaded_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    small().save(path)
    found = load(path).model

    def fits(model: Any, **compiled: Any) -> bool:
        if compiled:
            model.compile(**compiled)
        model.save(path)
        return load_weights(found, str(path))

    wider = keras.Sequential([layers.Input((3,)), layers.Dense(3, name="answer")])
    renamed = keras.Sequential([layers.Input((3,)), layers.Dense(2, name="other")])
    assert [fits(wider), fits(renamed), fits(small(), loss="mse")] == [False, False, False]
    assert answers(found) == ANSWERS
    assert fits(small())
    assert not load_weights(small(), str(path))  # of unknown origin


def test_layers_that_keep_values_aside_are_loaded_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    normalization = layers.Normalization()
    normalization.adapt(X)
    keras.Sequential([layers.Input((3,)), normalization, layers.Dense(2)]).save(path)
    assert not load_weights(load(path).model, str(path))
    vectorization = layers.TextVectorization(vocabulary=["a", "b"], output_sequence_length=2)
    keras.Sequential([layers.Input((1,), dtype="string"), vectorization, layers.Embedding(4, 2)]).save(path)
    assert not load_weights(load(path).model, str(path))


def _entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
