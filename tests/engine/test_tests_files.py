"""Test sets in files: archives, tables, HDF5, folders of images, saved datasets."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from guider_engine.errors import EngineFailure
from guider_engine.load.inputs import ModelInput
from guider_engine.load.tests import load_tests
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


def test_an_archive_that_claims_more_than_it_holds_is_refused_unread(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", Y)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3), }\n"
    with zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 12
        )
        archive.write(tmp_path / "y.npy", "y.npy")
    assert code(tmp_path / "t.npz") == "test-data-damaged"


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
    before, count = anonymous(), 0
    for block in tests.blocks(65_536):
        assert not block.inputs.flags.owndata
        assert isinstance(block.inputs, np.memmap)
        count += len(block)
    assert count == rows
    assert anonymous() - before < 32 << 20  # of 256 MB


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
    ("text", "expected"),
    [
        ("", "test-data-damaged"),
        ("a,b,y\n", "test-data-empty"),
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


def test_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": [1.0, 2.0], "label": ["b", "a"]}), tmp_path / "t.parquet")
    tests = read(tmp_path / "t.parquet")
    assert only(tests).inputs.tolist() == [[1], [2]]
    assert only(tests).labels.tolist() == [1, 0]
    (tmp_path / "t.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-9])
    assert code(tmp_path / "t.parquet") == "test-data-damaged"


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
