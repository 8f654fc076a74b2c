"""Test sets in files: archives, tables, HDF5, folders of images, saved datasets."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from guider_engine.errors import EngineFailure
from guider_engine.load.inputs import ModelInput
from guider_engine.load.tests import checks, load_tests
from guider_engine.load.tests import table as of_tables
from guider_engine.load.tests.arrays import ArrayTests
from guider_engine.load.tests.streams import StreamTests
from guider_engine.wire import Inputs

X, Y = np.arange(18, dtype="float32").reshape(6, 3), np.arange(6) % 3


def read(*files: Path, wanted: tuple[ModelInput, ...] = (), **options: Any) -> Any:
    return load_tests(Inputs("", tuple(map(str, files)), str(files[0].parent), **options), wanted)


def only(tests: Any) -> Any:
    (block,) = tests.blocks(1_000)
    return block


def code(*files: Path, **options: Any) -> str:
    with pytest.raises(EngineFailure) as caught:
        list(read(*files, **options).blocks(1_000))
    assert caught.value.failure.kind == "input"
    return caught.value.failure.code


def table(folder: Path, text: str, name: str = "t.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_arrays_of_an_archive_are_mapped_where_they_are_not_compressed(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x=X, y=Y)
    np.savez_compressed(tmp_path / "c.npz", x=X, y=Y)
    plain, packed = read(tmp_path / "t.npz"), read(tmp_path / "c.npz")
    assert isinstance(plain.inputs, np.memmap)
    assert not isinstance(packed.inputs, np.memmap)
    assert only(plain).inputs.tolist() == only(packed).inputs.tolist() == X.tolist()


@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("<f4", "(1000000000000, 3)"), ("<f4", "(-1, -3)"), ("<U0", "(1000000000000,)"), ("<f4", "(2,)")],
)
def test_an_archive_that_claims_more_than_it_holds_is_refused_unread(
    tmp_path: Path, packed: int, dtype: str, shape: str
) -> None:
    np.save(tmp_path / "y.npy", Y)
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    with zipfile.ZipFile(tmp_path / "t.npz", "w", packed) as archive:
        archive.writestr(
            "x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 12
        )
        archive.write(tmp_path / "y.npy", "y.npy")
    assert code(tmp_path / "t.npz") == "test-data-damaged"


def test_a_shape_that_no_file_has_room_for_is_refused_unread(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3), }\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    np.save(tmp_path / "y.npy", Y)
    assert code(tmp_path / "x.npy", tmp_path / "y.npy") == "test-data-damaged"


def test_what_unpacks_to_more_than_the_free_memory_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "t.npz", x=np.zeros((1_000, 1_000), "float32"), y=np.zeros(1_000, "uint8"))
    assert (tmp_path / "t.npz").stat().st_size < 10_000  # of 4,000,000 bytes
    monkeypatch.setattr(checks, "available_memory", lambda: 3_999_999)
    assert code(tmp_path / "t.npz") == "test-data-too-large"
    monkeypatch.setattr(checks, "available_memory", lambda: 4_000_000)
    assert read(tmp_path / "t.npz").total == 1_000


RECORD = np.zeros(6, [("a", "f4"), ("b", "i4")])


@pytest.mark.parametrize("suffix", ["npz", "npy", "h5"])
@pytest.mark.parametrize("part", ["x", "y"])
@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (RECORD, "test-data-type"),
        (np.ones(6, "complex64"), "test-data-type"),
        (np.array([[1], [2, 3]] * 3, object), "test-data-pickled"),
    ],
    ids=["structured", "complex", "objects"],
)
def test_types_that_are_no_numbers(tmp_path: Path, suffix: str, part: str, array: Any, expected: str) -> None:
    arrays = {"x": X, "y": Y, part: array}
    files = [tmp_path / f"t.{suffix}"]
    if suffix == "npz":
        np.savez(files[0], **arrays)
    elif suffix == "npy":
        files = [tmp_path / "x.npy", tmp_path / "y.npy"]
        for file in files:
            np.save(file, arrays[file.stem], allow_pickle=True)
    else:
        with h5py.File(files[0], "w") as file:
            for name, one in arrays.items():
                dtype = h5py.vlen_dtype("int64") if one.dtype == object else one.dtype
                file.create_dataset(name, one.shape, dtype)
    assert code(*files) == expected


def test_several_inputs_and_labels_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", left=X, right=X + 1, y_a=Y, y_b=Y + 1)
    wanted = (ModelInput("left", (3,), "float32"), ModelInput("right", (3,), "float32"))
    block = only(read(tmp_path / "t.npz", wanted=wanted))
    assert {name: array[0].tolist() for name, array in block.inputs.items()} == {
        "left": [0, 1, 2],
        "right": [1, 2, 3],
    }
    assert {name: array.tolist() for name, array in block.labels.items()} == {
        "a": [0, 1, 2] * 2,
        "b": [1, 2, 3] * 2,
    }


def test_several_inputs_with_the_prefix_of_inputs_and_one_array_of_labels(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "t.npz", x_left=X, x_right=X + 1, y_test=Y)
    wanted = (ModelInput("left", (3,), "float32"), ModelInput("right", (3,), "float32"))
    block = only(read(tmp_path / "t.npz", wanted=wanted))
    assert {name: array[1].tolist() for name, array in block.inputs.items()} == {
        "left": [3, 4, 5],
        "right": [4, 5, 6],
    }
    assert block.labels.tolist() == [0, 1, 2] * 2


@pytest.mark.parametrize("labels", [["dog", "ant", "cat"] * 2, [b"dog", b"ant", b"cat"] * 2])
def test_names_become_class_numbers_in_order(tmp_path: Path, labels: list[Any]) -> None:
    np.savez(tmp_path / "t.npz", x=X, y=np.array(labels))
    tests = read(tmp_path / "t.npz")
    assert tests.classes == ("ant", "cat", "dog")
    assert only(tests).labels.tolist() == [2, 0, 1, 2, 0, 1]


def test_a_sample_has_each_class_by_its_share(tmp_path: Path) -> None:
    labels = np.repeat([0, 1], [90, 10])
    np.savez(tmp_path / "t.npz", x=np.arange(100.0)[:, None], y=labels)
    tests = read(tmp_path / "t.npz", max_tests=20)
    block = only(tests)
    assert np.bincount(block.labels).tolist() == [18, 2]
    assert (np.diff(block.inputs[:, 0]) > 0).all()
    assert (tests.total, tests.available) == (20, 100)
    assert "20 of 100 tests" in tests.description
    assert only(read(tmp_path / "t.npz", max_tests=20)).inputs.tolist() == block.inputs.tolist()
    assert only(read(tmp_path / "t.npz", max_tests=20, seed=8)).inputs.tolist() != block.inputs.tolist()


@pytest.mark.parametrize(
    "form",
    [lambda y: y, lambda y: np.eye(3)[y], lambda y: np.array(["ant", "cat", "dog"])[y]],
    ids=["numbers", "one-hot", "names"],
)
def test_each_of_three_classes_keeps_its_share(tmp_path: Path, form: Any) -> None:
    labels = np.tile([0, 0, 0, 0, 0, 0, 0, 1, 1, 2], 100)  # 700, 200 and 100 of 1,000
    np.savez(tmp_path / "t.npz", x=labels[:, None], y=form(labels))
    tests = read(tmp_path / "t.npz", max_tests=20)
    assert np.bincount(only(tests).inputs[:, 0]).tolist() == [14, 4, 2]
    assert "drawn by class" in tests.description


def test_each_tenth_of_a_target_is_drawn_from_alike(tmp_path: Path) -> None:
    target = np.random.default_rng(1).permutation(1_000) ** 2 / 2  # ordered by their squares, all different
    np.savez(tmp_path / "t.npz", x=np.arange(1_000)[:, None], y=target)
    tests = read(tmp_path / "t.npz", max_tests=50)
    drawn = np.sqrt(2 * only(tests).labels).round().astype(int)
    assert np.bincount(drawn // 100).tolist() == [5] * 10
    assert "drawn by tenths of the target, seed 7" in tests.description


def test_nan_among_the_inputs_is_counted(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x=np.where(X == 4, np.nan, X), y=Y)
    assert "of 1 of 6 tests" in dict(read(tmp_path / "t.npz").notices)["nan-inputs"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_million_mapped_rows_take_no_memory(tmp_path: Path) -> None:
    def anonymous() -> int:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("RssAnon:")[2].split()[0]) << 10

    rows = 1_000_000
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", "float32", (rows, 64))
    np.lib.format.open_memmap(tmp_path / "y.npy", "w+", "uint8", (rows,))
    tests = read(tmp_path / "x.npy", tmp_path / "y.npy")
    before, count, peak = anonymous(), 0, 0
    for block in tests.blocks(65_536):
        assert not block.inputs.flags.owndata
        assert isinstance(block.inputs, np.memmap)
        assert not block.inputs.any()  # every row is read
        count, peak = count + len(block), max(peak, anonymous())
    assert count == rows
    assert peak - before < 32 << 20  # of 256 MB


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_table_with_names(tmp_path: Path, separator: str) -> None:
    rows = ["a,label,b", "1,cat,2", "3,ant,4.5"]
    tests = read(table(tmp_path, "\n".join(rows).replace(",", separator)))
    block = only(tests)
    assert block.inputs.tolist() == [[1, 2], [3, 4.5]]
    assert (block.labels.tolist(), tests.classes) == ([1, 0], ("ant", "cat"))


def test_a_table_without_names_has_its_label_last(tmp_path: Path) -> None:
    tests = read(table(tmp_path, "1,2,0\n3,4,1\n"))
    assert only(tests).inputs.tolist() == [[1, 2], [3, 4]]
    assert only(tests).labels.tolist() == [0, 1]
    assert "the last column" in tests.description


def test_columns_named_as_the_inputs(tmp_path: Path) -> None:
    wanted = (ModelInput("age", (1,), "float32"), ModelInput("town", (1,), "string"))
    block = only(read(table(tmp_path, "town,age,y\nBonn,3,0\nUlm,4,1\n"), wanted=wanted))
    assert block.inputs["age"].tolist() == [[3], [4]]
    assert block.inputs["town"].tolist() == [["Bonn"], ["Ulm"]]


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["dog", "ant", "cat", "dog", "ant"], ("ant", "cat", "dog"), [2, 0, 1, 2, 0]),
        (
            ["2", "01", "x", "2", "1"],
            ("01", "1", "2", "x"),
            [2, 0, 3, 2, 1],
        ),  # names only from the second chunk on
        (["1", "2", "0.5", "3", "4"], (), [1, 2, 0.5, 3, 4]),
        (["4", "3", "2", "1", "0"], (), [4, 3, 2, 1, 0]),
    ],
    ids=["names", "names later", "targets", "classes"],
)
def test_a_large_table_is_streamed_and_gives_the_tests_of_a_small_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    labels: list[str],
    classes: tuple[str, ...],
    numbers: list[float],
) -> None:
    path = table(tmp_path, "a,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    monkeypatch.setattr(of_tables, "ROWS", 2)
    whole = read(path)
    monkeypatch.setattr(of_tables, "WHOLE", 10)
    streamed = read(path)
    assert isinstance(whole, ArrayTests)
    assert isinstance(streamed, StreamTests)
    for tests in (whole, streamed):
        assert tests.classes == classes
        block = only(tests)
        assert block.inputs.tolist() == [[0], [1], [2], [3], [4]]
        assert block.labels.tolist() == numbers
        first: Any = next(iter(tests.blocks(1)))
        assert first.labels.dtype == block.labels.dtype


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "test-data-damaged"),
        ("a,b,y\n", "test-data-empty"),
        ("\n\n", "test-data-empty"),
        ("a,b,y\n1,,0\n", "test-data-missing-value"),
        ("a,b,y\n1,red,0\n", "test-data-type"),
        ("a,b,y\n1,2,0\n1,2\n", "test-data-damaged"),
        ("y\n1\n", "test-data-shape"),
    ],
)
def test_tables_that_are_no_tests(tmp_path: Path, text: str, expected: str) -> None:
    assert code(table(tmp_path, text)) == expected


def test_a_label_column_that_is_not_there(tmp_path: Path) -> None:
    assert code(table(tmp_path, "a,y\n1,0\n"), label="kind") == "test-data-keys"
    assert only(read(table(tmp_path, "a,y\n1,0\n"), label="a")).labels.tolist() == [1]


def test_a_table_may_begin_with_an_empty_line(tmp_path: Path) -> None:
    assert only(read(table(tmp_path, "\na,y\n3,1\n\n4,0\n"))).inputs.tolist() == [[3], [4]]


def test_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": [1.0, 2.0], "label": ["b", "a"]}), tmp_path / "t.parquet")
    tests = read(tmp_path / "t.parquet")
    assert only(tests).inputs.tolist() == [[1], [2]]
    assert only(tests).labels.tolist() == [1, 0]
    (tmp_path / "t.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-9])
    assert code(tmp_path / "t.parquet") == "test-data-damaged"


def test_parquet_by_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "label": ["b", "a", "b"]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame["label"] = ["b", None, "b"]
    frame.to_parquet(tmp_path / "missing.parquet")
    monkeypatch.setattr(of_tables, "_parquet", of_tables._parquet_by_pandas)
    monkeypatch.setattr(of_tables, "ROWS", 2)
    tests = read(tmp_path / "t.parquet")
    assert only(tests).inputs.tolist() == [[1], [2], [3]]
    assert (only(tests).labels.tolist(), tests.classes) == ([1, 0, 1], ("a", "b"))
    assert code(tmp_path / "missing.parquet") == "test-data-missing-value"


@pytest.mark.parametrize(
    "missing", [("pyarrow", "pyarrow.parquet", "fastparquet"), ("pyarrow.parquet", "pandas")]
)
def test_a_parquet_file_that_nothing_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 PAR1")
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        EngineFailure, match=r"t\.parquet needs pyarrow.*pip install pyarrow.*as CSV"
    ) as caught:
        read(tmp_path / "t.parquet")
    assert (caught.value.failure.kind, caught.value.failure.code) == ("environment", "package-missing")


def test_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["x_test"], file["y_test"] = X, Y
    tests = read(tmp_path / "t.h5")
    assert isinstance(tests.inputs, h5py.Dataset)  # not read before it is asked for
    assert [block.inputs.tolist() for block in tests.blocks(4)] == [X[:4].tolist(), X[4:].tolist()]
    tests.inputs.file.close()
    (tmp_path / "t.h5").write_bytes(b"no HDF5")
    assert code(tmp_path / "t.h5") == "test-data-damaged"


def images(folder: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    for name, value in (("cat", 200), ("ant", 100)):
        (folder / "images" / name).mkdir(parents=True)
        image.new("RGB", (4, 4), (value, 0, 0)).save(folder / "images" / name / "1.png")
    return folder / "images"


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open cannot be written there")
def test_hdf5_that_is_held_open_can_be_written_by_others(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = np.zeros((2, 3)), np.arange(2)
    tests = read(path)
    program = f"import h5py; h5py.File({str(path)!r}, 'a').close()"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert only(tests).labels.tolist() == [0, 1]


def test_a_class_without_images_has_its_number(tmp_path: Path) -> None:
    (images(tmp_path) / "bee").mkdir()
    (tmp_path / "images" / ".cache").mkdir()
    tests = read(tmp_path / "images", wanted=(ModelInput("x", (2, 2, 3), "float32"),))
    assert (tests.classes, only(tests).labels.tolist()) == (("ant", "bee", "cat"), [0, 2])


def test_a_folder_of_images(tmp_path: Path) -> None:
    wanted = (ModelInput("x", (2, 2, 3), "float32"),)
    tests = read(images(tmp_path), wanted=wanted)
    block = only(tests)
    assert (tests.classes, block.labels.tolist()) == (("ant", "cat"), [0, 1])
    assert block.inputs.shape == (2, 2, 2, 3)
    assert block.inputs[:, 0, 0, 0].tolist() == [100, 200]
    assert "image-range" in dict(tests.notices)
    scaled = read(tmp_path / "images", wanted=wanted, image_scale=0.5)
    assert only(scaled).inputs[:, 0, 0, 0].tolist() == [50, 100]
    assert not scaled.notices


@pytest.mark.parametrize("by", ["Pillow", "TensorFlow"])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("suffix", ["png", "jpg", "jpeg", "bmp", "gif"])
def test_every_kind_of_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, mode: str, channels: int, by: str
) -> None:
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "images" / "one").mkdir(parents=True)
    image.new(mode, (8, 4), 120 if mode == "L" else (120, 120, 120)).save(
        tmp_path / "images" / "one" / f"1.{suffix}"
    )
    if by == "TensorFlow":
        monkeypatch.setitem(sys.modules, "PIL", None)
    wanted = (ModelInput("x", (2, 4, channels), "float32"),)
    pixels = only(read(tmp_path / "images", wanted=wanted)).inputs
    assert pixels.shape == (1, 2, 4, channels)
    np.testing.assert_allclose(pixels[..., :3], 120, atol=1)  # JPEG and grey of colors are rounded
    assert (pixels[..., 3:] == 255).all()


@pytest.mark.parametrize("by", ["Pillow", "TensorFlow"])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(("mode", "color"), [("LA", (120, 60)), ("RGBA", (120, 120, 120, 60))])
def test_an_image_with_transparency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, color: tuple[int, ...], channels: int, by: str
) -> None:
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "images" / "one").mkdir(parents=True)
    image.new(mode, (4, 4), color).save(tmp_path / "images" / "one" / "1.png")
    if by == "TensorFlow":
        monkeypatch.setitem(sys.modules, "PIL", None)
    pixels = only(read(tmp_path / "images", wanted=(ModelInput("x", (4, 4, channels), "float32"),))).inputs
    np.testing.assert_allclose(pixels[0, 0, 0], [120, 120, 120, 60][:channels], atol=1)


def test_images_are_made_smaller_alike_by_either_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "images" / "one").mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    image.fromarray(pixels).save(tmp_path / "images" / "one" / "1.png")
    wanted = (ModelInput("x", (8, 8, 3), "float32"),)
    by_pillow = only(read(tmp_path / "images", wanted=wanted)).inputs
    monkeypatch.setitem(sys.modules, "PIL", None)
    np.testing.assert_allclose(only(read(tmp_path / "images", wanted=wanted)).inputs, by_pillow, atol=1)


def test_a_broken_image_without_pillow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (images(tmp_path) / "cat" / "2.png").write_bytes(b"no image")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(EngineFailure, match=r"cat/2\.png"):
        list(read(tmp_path / "images").blocks(8))


def test_a_broken_image_is_named(tmp_path: Path) -> None:
    (images(tmp_path) / "cat" / "2.png").write_bytes(b"no image")
    with pytest.raises(EngineFailure, match=r"cat/2\.png"):
        list(read(tmp_path / "images").blocks(8))


def test_a_saved_dataset(tmp_path: Path) -> None:
    import tensorflow as tf

    tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).save(str(tmp_path / "saved"))
    tests = read(tmp_path / "saved", wanted=(ModelInput("x", (3,), "float32"),))
    assert only(tests).inputs.tolist() == X.tolist()
    assert only(tests).labels.tolist() == Y.tolist()


def test_an_autoencoder_needs_no_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "only.npz", images=np.ones((3, 2)))
    tests = load_tests(Inputs("", (str(tmp_path / "only.npz"),), str(tmp_path), task="autoencoder"))
    (block,) = tests.blocks(8)
    assert np.asarray(block.labels).tolist() == np.asarray(block.inputs).tolist()


def test_an_input_that_no_array_is_named_like_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", left=np.ones((3, 2)), rigth=np.ones((3, 2)), target=np.zeros(3))
    wanted = (ModelInput("left", (2,), "float32"), ModelInput("right", (2,), "float32"))
    with pytest.raises(EngineFailure) as caught:
        load_tests(Inputs("", (str(tmp_path / "two.npz"),), str(tmp_path)), wanted)
    assert "but the model takes right" in caught.value.failure.message
