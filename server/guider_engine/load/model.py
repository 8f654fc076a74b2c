"""Load a trained Keras model and describe its layers."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guider_engine.errors import EngineFailure, first_line, unusable
from guider_engine.wire import CapturedModel, CaptureRecord, LayerPath, ModelLayer, ModelSummary, Origin

from .captured import captured, gone, with_origins
from .functions import call, is_function
from .keras_import import import_keras

CallsOf = Callable[[Any], tuple[Origin, ...]]

FORMATS = (".keras", ".h5", ".hdf5")

_MISSING = re.compile(r"(?:Could not locate (?:class|function)|Unknown [a-z ]+):? '([^']+)'")
"""How Keras 3 and Keras 2 say that a class or function is not registered."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss a model was compiled with, as its file says."""

    name: str | None = None
    from_logits: bool = False


def load_model(spec: str, root: str, *, safe_mode: bool) -> tuple[Any, ModelSummary]:
    """A Keras model from a ``.keras`` or ``.h5`` file (Keras 2 files too), or from ``module:function``.

    The model is not compiled: an old optimizer or a custom loss must not stop a localization.

    Raises:
        EngineFailure: the file is missing, empty, damaged, of another kind, or needs code that is not there.
    """
    if is_function(spec) and not Path(spec).exists():
        model = call(spec, root)
        if not hasattr(model, "layers") or not callable(model):
            raise unusable("model-type", f"{spec} returned {type(model).__name__}, not a Keras model.")
        return model, summarize(model, loss_of(model))
    path = Path(spec)
    found = captured(spec)
    if found is not None:
        return _load_captured(path, *found, safe_mode=safe_mode)
    _check_file(path)
    model = _read(path, import_keras(), safe_mode)
    return model, summarize(model, _loss_of_file(path))


def _load_captured(
    path: Path, record: CaptureRecord, model: CapturedModel, *, safe_mode: bool
) -> tuple[Any, ModelSummary]:
    if not path.exists():
        raise gone(model.name, record.program.path)
    try:
        loaded = _read(path, import_keras(record.versions.get("keras", "")), safe_mode)
    except EngineFailure as error:
        raise gone(model.name, record.program.path, error.failure.message) from error
    return loaded, with_origins(summarize(loaded, Loss()), model.model)


def _read(path: Path, keras: Any, safe_mode: bool) -> Any:
    options: dict[str, Any] = {"compile": False}
    if path.suffix == ".keras":
        options["safe_mode"] = safe_mode
    try:
        return keras.models.load_model(str(path), **options)
    except Exception as error:
        raise _explain(path, error) from error


def _check_file(path: Path) -> None:
    if not path.exists():
        raise unusable(
            "model-missing",
            f"There is no model {path.name} in {path.parent}. Train the program first, or name another.",
        )
    if path.is_dir():
        raise unusable(
            "model-format",
            f"{path.name} is a folder (a SavedModel?). Save the model as one file: model.save('model.keras').\n{path}",
        )
    if path.suffix.lower() not in FORMATS:
        raise unusable(
            "model-format",
            f"{path.name} is no Keras model: expected a file ending in {', '.join(FORMATS)}.\n{path}",
        )
    size = path.stat().st_size
    if size == 0:
        raise unusable(
            "model-damaged", f"{path.name} is empty (0 bytes). Train and save the model again.\n{path}"
        )
    if path.suffix == ".keras" and not zipfile.is_zipfile(path):
        raise unusable(
            "model-damaged",
            f"{path.name} is not a whole .keras archive ({size} bytes): truncated, still being written, or another "
            f"format. Save the model again with model.save('….keras').\n{path}",
        )
    if path.suffix != ".keras":
        with path.open("rb") as file:
            if file.read(8) != b"\x89HDF\r\n\x1a\n":
                raise unusable(
                    "model-damaged",
                    f"{path.name} is not an HDF5 file ({size} bytes). Save the model again.\n{path}",
                )


def _explain(path: Path, error: Exception) -> Exception:
    text = str(error)
    first = first_line(error)
    low = text.lower()
    missing = _MISSING.search(text)
    if missing:
        return unusable(
            "custom-object-missing",
            f"{path.name} needs {missing[1]}, which is defined in your program and not in the file. Name a function "
            'that returns the loaded model instead of the file (model = "module:function"), which can import it.',
            detail=text,
        )
    if "safe_mode" in low or "unsafe" in low or "lambda" in low:
        return unusable(
            "model-unsafe",
            f"{path.name} contains code (a Lambda layer), which is not run unless you trust the file. If you do, "
            "set guider.safeMode to false (safe_mode = false in [tool.guider]).",
            detail=text,
        )
    if isinstance(error, (OSError, zipfile.BadZipFile, EOFError)) or "unable to" in low:
        return unusable(
            "model-damaged",
            f"{path.name} cannot be read: {first} It may be truncated or still being written; save it again.\n{path}",
            detail=text,
        )
    return unusable(
        "model-unreadable",
        f"Keras cannot load {path.name}: {first}",
        detail=text,
    )


def summarize(model: Any, loss: Loss, calls_of: CallsOf = lambda _layer: ()) -> ModelSummary:
    """The layers of ``model.layers``, with what is inside nested models and composite layers.

    ``calls_of`` gives the calls of the project's own code that constructed a layer, innermost first, where it was
    watched.
    """
    return ModelSummary(
        name=str(model.name),
        class_name=type(model).__name__,
        layers=tuple(_describe(layer, (i,), calls_of) for i, layer in enumerate(model.layers)),
        loss=loss.name,
        from_logits=loss.from_logits,
    )


def inner_layers(layer: Any) -> list[Any]:
    """Layers to be shown inside ``layer``: those of a nested model, or of a composite layer not Keras' own."""
    if any(base.__name__ == "Model" for base in type(layer).__mro__):
        return list(layer.layers)
    if _is_builtin(layer) or not hasattr(layer, "_flatten_layers"):
        return []
    return list(layer._flatten_layers(include_self=False, recursive=False))


def _is_builtin(layer: Any) -> bool:
    package = type(layer).__module__.split(".")[0]
    return package in ("keras", "tf_keras", "tensorflow")


def _describe(layer: Any, path: LayerPath, calls_of: CallsOf) -> ModelLayer:
    config = _config(layer)
    calls = calls_of(layer)
    return ModelLayer(
        path=path,
        name=str(layer.name),
        class_name=type(layer).__name__,
        builtin=_is_builtin(layer),
        config=config,
        parameters=_parameters(layer),
        output_shape=_output_shape(layer),
        activation=_activation(layer, config),
        inner=tuple(_describe(inner, (*path, i), calls_of) for i, inner in enumerate(inner_layers(layer))),
        origin=calls[0] if calls else None,
        callers=calls[1:],
    )


def _config(layer: Any) -> dict[str, Any]:
    try:
        config = layer.get_config()
    except Exception:  # a custom layer without get_config, or with a broken one
        return {}
    if "layers" in config:  # a nested model: its layers are described as inner ones
        return {"name": config.get("name")}
    return {str(key): _plain(value) for key, value in config.items()}


def _plain(value: Any) -> Any:
    """JSON data: objects as ``{"class_name", "config"}``, what Keras cannot spell by its class."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        if "class_name" in value:
            return {"class_name": str(value["class_name"]), "config": _plain(value.get("config"))}
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return _plain(value.item())
    return type(value).__name__


def _activation(layer: Any, config: dict[str, Any]) -> str | None:
    named = config.get("activation")
    if isinstance(named, str):
        return named
    by_class = {
        "ReLU": "relu",
        "Softmax": "softmax",
        "LeakyReLU": "leaky_relu",
        "ELU": "elu",
        "PReLU": "prelu",
    }
    return by_class.get(type(layer).__name__)


def _parameters(layer: Any) -> int:
    try:
        return int(layer.count_params())
    except Exception:  # not built yet
        return 0


def _output_shape(layer: Any) -> tuple[int | None, ...] | None:
    try:
        shape = layer.output.shape
    except Exception:  # not built, called several times, or several outputs
        return None
    return tuple(None if size is None else int(size) for size in shape)


def loss_of(model: Any) -> Loss:
    """The loss that a model in memory was compiled with, as far as it is one."""
    return _loss(getattr(model, "loss", None))


def _loss(loss: Any) -> Loss:
    if loss is None or isinstance(loss, str):
        return Loss(loss)
    if isinstance(loss, (list, tuple, dict)):  # one for each output
        parts = [_loss(part) for part in (loss.values() if isinstance(loss, dict) else loss)]
        return parts[0] if len(parts) == 1 else Loss(", ".join(str(part.name) for part in parts) or None)
    name = getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__
    options = getattr(loss, "_fn_kwargs", None) or {}
    return Loss(str(name), bool(getattr(loss, "from_logits", options.get("from_logits", False))))


def _loss_of_file(path: Path) -> Loss:
    """Read from the file, since the model is loaded without compiling it."""
    try:
        if path.suffix == ".keras":
            with zipfile.ZipFile(path) as archive:
                config = json.loads(archive.read("config.json"))
            loss = (config.get("compile_config") or {}).get("loss")
        else:
            import h5py

            with h5py.File(os.fspath(path), "r") as file:
                loss = json.loads(file.attrs.get("training_config", "{}")).get("loss")
    except (OSError, KeyError, ValueError, TypeError, AttributeError):
        return Loss()
    if isinstance(loss, dict) and "config" in loss:
        options = loss["config"] if isinstance(loss["config"], dict) else {}
        name = loss["config"] if isinstance(loss["config"], str) else loss.get("class_name")
        return Loss(str(name), bool(options.get("from_logits", False)))
    return Loss(loss) if isinstance(loss, str) else Loss()
