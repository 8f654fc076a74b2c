"""What there is to know of a model without its weights: layers, outputs, loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from guider_engine.wire import LayerPath, ModelLayer, ModelOutput, ModelSummary, Origin

from .loss import Loss

CallsOf = Callable[[Any], tuple[Origin, ...]]

_PASSING = frozenset(
    {
        "ActivityRegularization",
        "AlphaDropout",
        "Cropping1D",
        "Cropping2D",
        "Cropping3D",
        "Dropout",
        "Flatten",
        "GaussianDropout",
        "GaussianNoise",
        "Identity",
        "Permute",
        "RepeatVector",
        "Reshape",
        "SpatialDropout1D",
        "SpatialDropout2D",
        "SpatialDropout3D",
        "Squeeze",
        "Transpose",
        "UpSampling1D",
        "UpSampling2D",
        "UpSampling3D",
    }
)
"""Layers that put out what they take, so that the activation is of the layer before."""
_FUNCTIONS = {
    "ReLU": "relu",
    "Relu": "relu",
    "Softmax": "softmax",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "LeakyReLU": "leaky_relu",
    "ELU": "elu",
    "PReLU": "prelu",
}
"""Layers and operations that are an activation."""
_WRAPPERS = ("SpectralNormalization", "TimeDistributed", "WeightNormalization")
"""Layers that put out what the one inside them does."""


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
        from_logits=bool(loss.from_logits),
        outputs=outputs_of(model, loss),
    )


def outputs_of(model: Any, loss: Loss) -> tuple[ModelOutput, ...]:
    """The outputs that a model declares; of one that declares none, those that its loss names."""
    declared = _declared_outputs(model)
    if not declared:
        return tuple(
            ModelOutput(name, None, None, part.name, part.from_logits)
            for name, part in zip(loss.names, loss.parts, strict=False)
        )
    found = []
    for index, (name, tensor) in enumerate(declared):
        of_output = loss.of_output(name, index)
        found.append(
            ModelOutput(
                name, _shape(tensor), output_activation(tensor), of_output.name, of_output.from_logits
            )
        )
    return tuple(found)


def _declared_outputs(model: Any) -> list[tuple[str, Any]]:
    """Name and symbolic tensor of each output, in the order of the structure that the model returns."""
    flat = list(_attribute(model, "outputs") or ())
    structure = _attribute(model, "output")
    if isinstance(structure, Mapping) and {id(one) for one in structure.values()} == {
        id(one) for one in flat
    }:
        return [(str(name), tensor) for name, tensor in structure.items()]
    names = list(getattr(model, "output_names", None) or ())
    if len(names) != len(flat):
        names = [str(getattr(_source(tensor)[0], "name", "")) for tensor in flat]
    return list(zip(map(str, names), flat, strict=True))


def _attribute(model: Any, name: str) -> Any:
    try:
        return getattr(model, name, None)
    except (ValueError, RuntimeError):  # not called yet
        return None


def output_activation(tensor: Any) -> str | None:
    """The activation of the layer that puts a symbolic tensor out; ``None``: it has none that is known."""
    for _ in range(100):
        layer, node, index = _source(tensor)
        if layer is None:
            return None
        if any(base.__name__ == "Model" for base in type(layer).__mro__):
            inside = list(getattr(layer, "outputs", None) or ())
            if index >= len(inside):
                return None
            tensor = inside[index]
            continue
        if type(layer).__name__ not in _PASSING:
            return _activation_of(layer)
        before = _before(layer, node)
        if before is None:
            return None
        tensor = before
    return None


def _source(tensor: Any) -> tuple[Any, int, int]:
    """The layer (or operation) that puts a symbolic tensor out, at which of its calls, as which of its outputs."""
    history = getattr(tensor, "_keras_history", None)
    if history is None:
        return None, 0, 0
    return tuple(history)


def _before(layer: Any, node: int) -> Any:
    """What the layer was called with at one of its calls, where it is one tensor."""
    try:
        call = layer._inbound_nodes[node]
        taken = call.input_tensors
    except (AttributeError, IndexError):
        return None
    if isinstance(taken, (list, tuple)):
        return taken[0] if len(taken) == 1 else None
    return taken


def _activation_of(layer: Any) -> str | None:
    inside = getattr(layer, "layer", None)  # of a wrapper
    if inside is not None and type(layer).__name__ in _WRAPPERS:
        return _activation_of(inside)
    found = _activation(layer, _config(layer))
    if found is None and type(layer).__name__ in (
        "TFOpLambda",
        "SlicingOpLambda",
    ):  # of tf_keras: tf.nn.softmax_3
        function = str(getattr(layer, "symbol", "")).rpartition(".")[2]
        return function if function in _FUNCTIONS.values() else None
    return found


def layers_within(model: Any) -> list[Any]:
    """All layers, at any depth."""
    flatten = getattr(model, "_flatten_layers", None)
    return list(model.layers) if flatten is None else list(flatten(include_self=False))


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
    if isinstance(named, dict):  # an activation that is an object or a function of the user
        inside = named.get("config")
        named = inside if isinstance(inside, str) else named.get("class_name")
        return _FUNCTIONS.get(str(named), str(named))
    if isinstance(named, str):
        return named
    return _FUNCTIONS.get(type(layer).__name__)


def _parameters(layer: Any) -> int:
    try:
        return int(layer.count_params())
    except Exception:  # not built yet
        return 0


def _output_shape(layer: Any) -> tuple[int | None, ...] | None:
    try:
        return _shape(layer.output)
    except Exception:  # not built, called several times, or several outputs
        return None


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    try:
        return tuple(None if size is None else int(size) for size in tensor.shape)
    except (AttributeError, ValueError):  # several tensors, or of unknown rank
        return None
