"""Files of models: what each is, and what it claims, before Keras reads it."""

from __future__ import annotations

import glob
import json
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
from guider_engine.memory import spelled

from .claims import check_config, check_entry, check_hdf5, check_size, damaged, too_large

Kind = Literal["keras", "hdf5", "saved-model", "weights", "checkpoint"]

WEIGHTS = "model.weights.h5"
"""Within a ``.keras`` archive."""
LARGEST_CONFIG = 256 << 20
"""Bytes of a configuration at most; that of a model with ten thousand layers has a few million."""

_OTHERS = {
    (".pkl", ".pickle", ".joblib"): "a pickle, which can run any code when it is read and is never loaded",
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
        raise damaged(path, "is empty (0 bytes). Train and save the model again.")
    try:
        if path.is_dir():
            return _folder(path)
        return _archive(path) if suffix == ".keras" else _hdf5(path)
    except (EngineFailure, MemoryError):
        raise
    except ImportError as error:
        raise unusable("model-unreadable", f"{path.name} cannot be read without h5py: {error}.") from error
    except Exception as error:  # whatever h5py says of damaged files
        raise damaged(
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
        "before. Save the model before model.quantize(…), and name that file.",
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


def _archive(path: Path) -> ModelFile:
    """A ``.keras`` file."""
    size = path.stat().st_size
    if not zipfile.is_zipfile(path):
        raise damaged(
            path,
            f"is not a whole .keras archive ({size} bytes): truncated, still being written, or another format. Save "
            "the model again with model.save('….keras').",
        )
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if "config.json" not in entries:
            raise damaged(path, "is a ZIP archive, but none of Keras: there is no config.json in it.")
        packed = (entry for entry in entries.values() if entry.compress_type != zipfile.ZIP_STORED)
        check_size(path, sum(entry.file_size for entry in packed))
        if entries["config.json"].file_size > LARGEST_CONFIG:
            raise too_large(path, f"has a configuration of {spelled(entries['config.json'].file_size)}.")
        config = json.loads(archive.read("config.json"))
        metadata = json.loads(archive.read("metadata.json")) if "metadata.json" in entries else {}
        weights = [entry for name, entry in entries.items() if name.endswith(".weights.h5")]
        if not weights:
            raise damaged(path, f"has no weights: there is no {WEIGHTS} in it. Save the model again.")
        check_config(path, config, sum(check_entry(path, archive, entry) for entry in weights))
    return _described(path, config, metadata, any(name.startswith("assets/") for name in entries))


def _described(path: Path, config: Any, metadata: Any, assets: bool) -> ModelFile:
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise damaged(path, "has a config.json that describes no model.")
    compiled = config.pop("compile_config", None) or {}
    return ModelFile(path, "keras", str(metadata.get("keras_version", "")), config, compiled, assets)


def _hdf5(path: Path) -> ModelFile:
    """A ``.h5`` file: a whole model, or weights alone."""
    import h5py

    held = check_hdf5(path)
    with h5py.File(os.fspath(path), "r") as file:
        if "model_config" in file.attrs:
            config = json.loads(file.attrs["model_config"])
            compiled = json.loads(file.attrs.get("training_config") or "{}")
            if not isinstance(config, dict) or not isinstance(config.get("config"), (dict, list)):
                raise damaged(path, "has a configuration that describes no model.")
            check_config(path, config, held)
            return ModelFile(path, "hdf5", _text(file.attrs.get("keras_version", "")), config, compiled)
        known = {"layers", "_layer_checkpoint_dependencies", "vars", "optimizer", "top_level_model_weights"}
        if "layer_names" in file.attrs or known & set(file):
            return ModelFile(path, "weights", _text(file.attrs.get("keras_version", "")))
        names = ", ".join(list(file)[:5])
    raise unusable(
        "model-format",
        f"{path.name} is an HDF5 file of other data ({names or 'nothing'}), no Keras model.\n{path}",
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _folder(path: Path) -> ModelFile:
    """A SavedModel's folder, or what a ``.keras`` archive holds as a folder."""
    if (path / "config.json").exists() and (path / WEIGHTS).exists():
        if (path / "config.json").stat().st_size > LARGEST_CONFIG:
            raise too_large(path, "has a configuration of absurd size.")
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        metadata = path / "metadata.json"
        known = json.loads(metadata.read_text(encoding="utf-8")) if metadata.exists() else {}
        check_config(path, config, check_hdf5(path / WEIGHTS))
        return _described(path, config, known, (path / "assets").exists())
    if (path / "keras_metadata.pb").exists() and (path / "saved_model.pb").exists():
        for name in ("saved_model.pb", "keras_metadata.pb"):
            if (path / name).stat().st_size == 0:
                raise damaged(path / name, "is empty (0 bytes). Save the model again.")
        return ModelFile(path, "saved-model", "2.")
    if (path / "saved_model.pb").exists() or (path / "saved_model.pbtxt").exists():
        raise unusable(
            "saved-model-without-layers",
            f"{path.name} is a SavedModel without Keras metadata (of model.export, or of tf.saved_model.save): it can "
            "be run, and does not say which layers there are. Save the model as one file: "
            f"model.save('model.keras').\n{path}",
        )
    if (path / "checkpoint").exists():
        raise unusable(
            "model-format",
            f"{path.name} is a folder of checkpoints. Name one of them by its file ending in .index, and a "
            f"function that makes the model (load).\n{path}",
        )
    raise unusable(
        "model-format",
        f"{path.name} is a folder without a model: a SavedModel has saved_model.pb and keras_metadata.pb in "
        f"it. Save the model as one file: model.save('model.keras').\n{path}",
    )


def _checkpoint(path: Path) -> ModelFile:
    prefix = path.with_suffix("") if path.suffix == ".index" else path
    if not prefix.with_name(prefix.name + ".index").exists():
        raise unusable("model-missing", f"There is no checkpoint {path.name} in {path.parent}.")
    if not list(prefix.parent.glob(glob.escape(prefix.name) + ".data-*")):
        raise damaged(
            path,
            f"has no weights: {prefix.name}.data-00000-of-00001 is not beside it. Copy the whole checkpoint.",
        )
    return ModelFile(prefix, "checkpoint")
