"""Files of models: what each is, and what it claims, before Keras reads it."""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from guider_engine.errors import EngineFailure, first_line, unusable
from guider_engine.memory import available_memory, spelled

Kind = Literal["keras", "hdf5", "saved-model", "weights", "checkpoint"]

WEIGHTS = "model.weights.h5"
"""Within a ``.keras`` archive."""
HDF5 = b"\x89HDF\r\n\x1a\n"
LARGEST_CONFIG = 256 << 20
"""Bytes of a configuration at most; that of a model with ten thousand layers has a few million."""

_OTHERS = {
    (
        ".pkl",
        ".pickle",
        ".joblib",
        ".dill",
    ): "a pickle, which can run any code when it is read and is never loaded",
    (".pt", ".pth", ".ckpt", ".safetensors"): "a file of PyTorch or of another library",
    (".onnx",): "an ONNX file",
    (".tflite",): "a TensorFlow Lite file, which has no layers any more",
    (".pb", ".pbtxt"): "a graph of TensorFlow; name its folder, if that was written by model.save",
    (".json", ".yaml", ".yml"): "an architecture without weights",
    (".npz", ".npy", ".csv"): "a file of data",
}
_QUANTIZED = re.compile(r'"(?:Quantized\w*|GPTQ|AWQ)DTypePolicy"|"(?:u?int\d|float8|gptq|awq)[^"]*_from_\w+"')
_CODE = re.compile(r'"__lambda__"|"function_type": "lambda"')
"""How Keras 3 and Keras 2 write a function without a name, whose compiled code the file carries."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file (or folder) of a model, as far as it can be known without Keras."""

    path: Path
    """Of a checkpoint: without its ending."""
    kind: Kind
    version: str = ""
    """Of the Keras that wrote it."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """``{"class_name", "config", …}``; empty where the file has none."""
    compiled: Mapping[str, Any] = field(default_factory=dict)
    """What the model was compiled with."""
    assets: bool = False
    """Whether it holds more than numbers, such as vocabularies."""


def read_file(spec: str) -> ModelFile:
    """See what a file of a model is, and refuse what cannot be one.

    Raises:
        EngineFailure: it is missing, empty, damaged or of another kind, or claims more than there is memory.
    """
    path = Path(spec)
    if path.suffix == ".index" or (not path.exists() and path.with_name(path.name + ".index").exists()):
        return _checkpoint(path)
    if not path.exists():
        raise unusable(
            "model-missing",
            f"There is no model {path.name} in {path.parent}. Train the program first, or name another.",
        )
    suffix = path.suffix.lower()
    if not path.is_dir() and suffix not in (".keras", ".h5", ".hdf5"):
        other = next((said for suffixes, said in _OTHERS.items() if suffix in suffixes), "")
        raise unusable(
            "model-format",
            f"{path.name} is {other or 'no Keras model'}. Expected is a file ending in .keras, .h5 or .hdf5, or a "
            f"SavedModel's folder: model.save('model.keras').\n{path}",
        )
    if not path.is_dir() and path.stat().st_size == 0:
        raise _damaged(path, "is empty (0 bytes). Train and save the model again.")
    try:
        if path.is_dir():
            return _folder(path)
        return _archive(path) if suffix == ".keras" else _hdf5(path)
    except (EngineFailure, MemoryError):
        raise
    except ImportError as error:
        raise unusable("model-unreadable", f"{path.name} cannot be read without h5py: {error}.") from error
    except Exception as error:  # whatever h5py says of damaged files
        raise _damaged(
            path,
            f"cannot be read: {first_line(error)} It may be truncated or still being written; save it again.",
            str(error),
        ) from error


def refuse_code(file: ModelFile) -> None:
    """Refuse a file that carries code of Python.

    Raises:
        EngineFailure: it does.
    """
    said = json.dumps(file.config)
    if file.kind == "saved-model":
        said = (file.path / "keras_metadata.pb").read_bytes().decode("utf-8", "replace")
    if _CODE.search(said):
        raise unsafe(file.path.name)


def unsafe(name: str, detail: str = "") -> EngineFailure:
    """A file carries code of Python."""
    return unusable(
        "model-unsafe",
        f"{name} contains code (a Lambda layer), which is not run unless you trust the file. If you do, "
        "set guider.safeMode to false (safe_mode = false in [tool.guider]).",
        detail=detail,
    )


def refuse_quantized(file: ModelFile) -> None:
    """Refuse a model whose weights were quantized.

    Raises:
        EngineFailure: it is one.
    """
    if _QUANTIZED.search(json.dumps(file.config)):
        raise quantized(file.path.name)


def quantized(name: str) -> EngineFailure:
    """A model's weights were quantized."""
    return unusable(
        "model-quantized",
        f"{name} is quantized: its layers compute with rounded weights, and what is wrong with it was so "
        "before. Save the "
        "model before model.quantize(…), and name that file.",
    )


@contextmanager
def weights_of(file: ModelFile) -> Iterator[Path]:
    """A file of the weights alone, as far as there is one; Keras reads weights within an archive three times slower."""
    if file.kind != "keras":
        yield file.path
    elif file.path.is_dir():
        yield file.path / WEIGHTS
    else:
        with zipfile.ZipFile(file.path) as archive, TemporaryDirectory(prefix="guider-") as folder:
            yield Path(archive.extract(WEIGHTS, folder)) if WEIGHTS in archive.namelist() else file.path


def architecture(file: ModelFile) -> str:
    """What must be equal for the weights of one file to serve the model of another; empty: cannot be known."""
    if not file.config or file.assets:
        return ""
    parts = (file.kind, file.version, file.config, file.compiled.get("loss"))
    return json.dumps(_numbered(parts, {}), sort_keys=True, default=str)


def _numbered(value: Any, ids: dict[Any, int]) -> Any:
    """With numbers for the addresses by which Keras tells objects that several layers share."""
    if isinstance(value, Mapping):
        return {
            key: ids.setdefault(item, len(ids)) if key == "shared_object_id" else _numbered(item, ids)
            for key, item in value.items()
        }
    return [_numbered(item, ids) for item in value] if isinstance(value, (list, tuple)) else value


def _damaged(path: Path, said: str, detail: str = "") -> EngineFailure:
    return unusable("model-damaged", f"{path.name} {said}\n{path}", detail=detail)


def _too_large(path: Path, said: str) -> EngineFailure:
    return unusable("model-too-large", f"{path.name} {said} It was not loaded.\n{path}")


def _archive(path: Path) -> ModelFile:
    """A ``.keras`` file."""
    size = path.stat().st_size
    if not zipfile.is_zipfile(path):
        raise _damaged(
            path,
            f"is not a whole .keras archive ({size} bytes): truncated, still being written, or another format. Save "
            "the model again with model.save('….keras').",
        )
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if "config.json" not in entries:
            raise _damaged(path, "is a ZIP archive, but none of Keras: there is no config.json in it.")
        packed = (entry for entry in entries.values() if entry.compress_type != zipfile.ZIP_STORED)
        _check_claim(path, sum(entry.file_size for entry in packed))
        if entries["config.json"].file_size > LARGEST_CONFIG:
            raise _too_large(path, f"has a configuration of {spelled(entries['config.json'].file_size)}.")
        config = json.loads(archive.read("config.json"))
        metadata = json.loads(archive.read("metadata.json")) if "metadata.json" in entries else {}
        weights = [entry for name, entry in entries.items() if name.endswith(".weights.h5")]
        if not weights:
            raise _damaged(path, f"has no weights: there is no {WEIGHTS} in it. Save the model again.")
        _check_config(path, config, sum(_check_weights(path, archive, entry) for entry in weights))
    return _described(path, config, metadata, any(name.startswith("assets/") for name in entries))


def _described(path: Path, config: Any, metadata: Any, assets: bool) -> ModelFile:
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise _damaged(path, "has a config.json that describes no model.")
    compiled = config.pop("compile_config", None) or {}
    return ModelFile(path, "keras", str(metadata.get("keras_version", "")), config, compiled, assets)


def _check_weights(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """See that an entry is an HDF5 file whose arrays can be read; their size in bytes."""
    with archive.open(entry) as weights:
        if weights.read(len(HDF5)) != HDF5:
            raise _damaged(path, "has weights that are no HDF5 file.")
    if entry.compress_type != zipfile.ZIP_STORED:
        return entry.file_size  # seeking in it would unpack it again and again; Keras stores it
    import h5py

    with path.open("rb") as raw, h5py.File(_Part(raw, _offset(raw, entry), entry.file_size), "r") as file:
        return _check_datasets(path, file)


def _offset(raw: Any, entry: zipfile.ZipInfo) -> int:
    """Where an entry's bytes begin: after its local header and two fields of variable length."""
    raw.seek(entry.header_offset + 26)
    name, extra = (int.from_bytes(raw.read(2), "little") for _ in range(2))
    return int(entry.header_offset) + 30 + name + extra


class _Part(io.RawIOBase):
    """Part of a file as a file."""

    def __init__(self, raw: Any, start: int, size: int) -> None:
        super().__init__()
        self._raw, self._start, self._size, self._at = raw, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._raw.seek(self._start + self._at)
        read: int = self._raw.readinto(memoryview(buffer)[: max(0, self._size - self._at)])
        self._at += read
        return read


def _hdf5(path: Path) -> ModelFile:
    """A ``.h5`` file: a whole model, or weights alone."""
    import h5py

    held = _open_hdf5(path)
    with h5py.File(os.fspath(path), "r") as file:
        if "model_config" in file.attrs:
            config = json.loads(file.attrs["model_config"])
            compiled = json.loads(file.attrs.get("training_config") or "{}")
            if not isinstance(config, dict) or not isinstance(config.get("config"), (dict, list)):
                raise _damaged(path, "has a configuration that describes no model.")
            _check_config(path, config, held)
            return ModelFile(path, "hdf5", _text(file.attrs.get("keras_version", "")), config, compiled)
        known = {"layers", "_layer_checkpoint_dependencies", "vars", "optimizer", "top_level_model_weights"}
        if "layer_names" in file.attrs or known & set(file):
            return ModelFile(path, "weights", _text(file.attrs.get("keras_version", "")))
        names = ", ".join(list(file)[:5])
    raise unusable(
        "model-format",
        f"{path.name} is an HDF5 file of other data ({names or 'nothing'}), no Keras model.\n{path}",
    )


def _open_hdf5(path: Path) -> int:
    """See that a file is an HDF5 file whose arrays can be read; their size in bytes."""
    with path.open("rb") as file:
        if file.read(len(HDF5)) != HDF5:
            raise _damaged(path, f"is not an HDF5 file ({path.stat().st_size} bytes). Save the model again.")
    import h5py

    with h5py.File(os.fspath(path), "r") as file:
        return _check_datasets(path, file)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _folder(path: Path) -> ModelFile:
    """A SavedModel's folder, or what a ``.keras`` archive holds as a folder."""
    if (path / "config.json").exists() and (path / WEIGHTS).exists():
        if (path / "config.json").stat().st_size > LARGEST_CONFIG:
            raise _too_large(path, "has a configuration of absurd size.")
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        metadata = path / "metadata.json"
        known = json.loads(metadata.read_text(encoding="utf-8")) if metadata.exists() else {}
        _check_config(path, config, _open_hdf5(path / WEIGHTS))
        return _described(path, config, known, (path / "assets").exists())
    if (path / "keras_metadata.pb").exists() and (path / "saved_model.pb").exists():
        for name in ("saved_model.pb", "keras_metadata.pb"):
            if (path / name).stat().st_size == 0:
                raise _damaged(path / name, "is empty (0 bytes). Save the model again.")
        return ModelFile(path, "saved-model", "2.")
    if (path / "saved_model.pb").exists() or (path / "saved_model.pbtxt").exists():
        raise unusable(
            "saved-model-without-layers",
            f"{path.name} is a SavedModel without Keras metadata (of model.export, or of "
            "tf.saved_model.save): it can be "
            "run, and does not say which layers there are. Save the model as one file: model.save('model.keras').\n"
            f"{path}",
        )
    if (path / "checkpoint").exists():
        raise unusable(
            "model-format",
            f"{path.name} is a folder of checkpoints. Name one of them by its file ending in .index, and a "
            "function that "
            f"makes the model (load).\n{path}",
        )
    raise unusable(
        "model-format",
        f"{path.name} is a folder without a model: a SavedModel has saved_model.pb and keras_metadata.pb in "
        "it. Save the "
        f"model as one file: model.save('model.keras').\n{path}",
    )


def _checkpoint(path: Path) -> ModelFile:
    prefix = path.with_suffix("") if path.suffix == ".index" else path
    if not prefix.with_name(prefix.name + ".index").exists():
        raise unusable("model-missing", f"There is no checkpoint {path.name} in {path.parent}.")
    if not list(prefix.parent.glob(glob_escaped(prefix.name) + ".data-*")):
        raise _damaged(
            path,
            f"has no weights: {prefix.name}.data-00000-of-00001 is not beside it. Copy the whole checkpoint.",
        )
    return ModelFile(prefix, "checkpoint")


def glob_escaped(name: str) -> str:
    """A file's name as a pattern that matches it alone."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _check_claim(path: Path, size: int) -> None:
    memory = available_memory()
    if memory is not None and size > memory:
        raise _too_large(
            path, f"claims to hold {spelled(size)}, more than the {spelled(memory)} of memory that are free."
        )


def _check_datasets(path: Path, file: Any) -> int:
    """Refuse shapes that claim more than there is memory, and data that lie in other files.

    Returns:
        Bytes of all arrays, without those of the optimizer, which are not read.
    """
    import h5py

    claimed = 0

    def visit(name: str, found: Any) -> None:
        nonlocal claimed
        if isinstance(found, h5py.Dataset):
            if found.is_virtual or found.external:
                raise _damaged(path, f"takes its weights {name} from other files, which are not read.")
            if not name.startswith("optimizer"):
                claimed += math.prod(map(int, found.shape or ())) * found.dtype.itemsize

    file.visititems(visit)
    _check_claim(path, claimed)
    return claimed


def _check_config(path: Path, config: Mapping[str, Any], held: int) -> None:
    """Refuse a configuration whose layers have more weights than there are bytes of weights.

    All together may have four times as many, since a layer that is shared may be described several times.
    """
    total = 0
    for class_name, options, shape in _layers(config):
        claimed = _weights(class_name, options, shape)
        total += claimed
        if claimed > held or total > 4 * held:
            raise _too_large(
                path,
                f"describes a layer {options.get('name', class_name)} ({class_name}) of at least {claimed:,} "
                f"weights, and holds {spelled(held)} of them: the file is damaged, or made to exhaust the memory.",
            )


def _layers(value: Any) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """Class, configuration and input shape of every layer of Keras within a configuration."""
    if isinstance(value, Mapping):
        options = value.get("config")
        if isinstance(options, Mapping) and ">" not in str(value.get("registered_name")):
            yield str(value.get("class_name")), options, (value.get("build_config") or {}).get("input_shape")
        for item in value.values():
            yield from _layers(item)
    elif isinstance(value, list):
        for item in value:
            yield from _layers(item)


def _weights(class_name: str, options: Mapping[str, Any], shape: Any) -> int:
    """How many weights a layer has at least."""
    last = shape[-1] if isinstance(shape, list) and shape and isinstance(shape[-1], int) else 1
    try:
        if class_name == "Dense":
            return int(options["units"]) * last
        if class_name in ("LSTM", "GRU", "SimpleRNN"):
            return int(options["units"]) ** 2
        if class_name == "Embedding":
            return int(options["input_dim"]) * int(options["output_dim"])
        if class_name in ("Conv1D", "Conv2D", "Conv3D"):
            return int(options["filters"]) * math.prod(map(int, options["kernel_size"]))
    except (KeyError, TypeError, ValueError):
        pass
    return 0
