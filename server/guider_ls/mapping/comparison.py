"""Whether a layer could come from a site, and how well what the site says agrees with the layer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guider_engine.wire import LayerPath, ModelLayer
from guider_ls.mapping.mapping import Difference
from guider_ls.source.catalog import auto_name, is_application
from guider_ls.source.parts import make, named
from guider_ls.source.sites import LayerSite, Location, Part, Unknown

_NESTED = frozenset({"Functional", "Model"})

_INCOMPARABLE = re.compile(
    r".*_shape$"
    r"|name|dtype|trainable|seed|weights|function|arguments|layer|layers|cell|cells|vocabulary|inputs|outputs"
    r"|axis|axes|data_format|batch_size|noise_shape"
)
"""Arguments that a layer's config may spell in a way that cannot be compared."""

_PARTS = re.compile(r".*_(initializer|regularizer|constraint)")
"""Arguments whose values are objects of Keras."""

_RENAMED = {"LeakyReLU": {"alpha": "negative_slope"}, "MultiHeadAttention": {"head_size": "key_dim"}}

_DEFAULTS: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    (re.compile(r"Dense|EinsumDense|(Separable|Depthwise)?Conv[123]D(Transpose)?"), {"activation": "linear"}),
    (
        re.compile(r"Dense|(Separable|Depthwise)?Conv[123]D(Transpose)?|LSTM|GRU|SimpleRNN"),
        {"use_bias": True},
    ),
    (
        re.compile(r"Dense|Conv[123]D(Transpose)?"),
        {"kernel_initializer": "glorot_uniform", "kernel_regularizer": None},
    ),
    (
        re.compile(r"(Separable|Depthwise)?Conv[123]D(Transpose)?"),
        {"padding": "valid", "strides": 1, "dilation_rate": 1},
    ),
    (re.compile(r"(Max|Average)Pooling[123]D"), {"padding": "valid"}),
    (re.compile(r"(Max|Average)Pooling[23]D"), {"pool_size": 2}),
    (
        re.compile(r"LSTM|GRU|SimpleRNN"),
        {"activation": "tanh", "return_sequences": False, "go_backwards": False},
    ),
    (re.compile(r"ReLU"), {"max_value": None, "threshold": 0}),
)
"""By class: what Keras takes for arguments that are left out."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Arguments of a site held against the config of a layer."""

    agreeing: int
    differences: tuple[Difference, ...]


def fits(site: LayerSite, layer: ModelLayer) -> bool:
    """Whether a layer is of the class, or of one of the classes, that a site constructs."""
    return any(_is_of(name, layer) for name in (site.qualified_name, *site.others))


def _is_of(name: str, layer: ModelLayer) -> bool:
    if name == "keras.Model" or is_application(name):
        return layer.class_name in _NESTED
    own = name.startswith(("keras.layers.", "keras.Sequential"))
    return layer.class_name == name.rpartition(".")[2] and layer.builtin == own


_UNNUMBERED = frozenset({"InputLayer", "LayerNormalization", "Normalization", "Rescaling", "ZeroPadding2D"})


def may_hide_in(site: LayerSite, layer: ModelLayer) -> bool:
    """Whether a layer may be one of those that a ready-made network makes out of sight.

    Most of these networks name their layers; only a few leave that to Keras.
    """
    if layer.class_name == "InputLayer" and site.arguments.get("input_tensor") is not None:
        return False  # it is given one
    if not has_automatic_name(layer) or layer.class_name in _UNNUMBERED:
        return True
    return site.class_name.startswith(("Inception", "Xception", "NASNet"))


def has_automatic_name(layer: ModelLayer) -> bool:
    """Whether Keras chose the layer's name."""
    return automatic_number(layer) is not None


def automatic_number(layer: ModelLayer) -> int | None:
    """3 for ``dense_3``, 0 for ``dense``; ``None`` for a name that a program gave.

    The numbers of one class grow in the order of construction; they need not start at zero.
    """
    stem = "input(_layer)?" if layer.class_name == "InputLayer" else re.escape(auto_name(layer.class_name))
    if layer.class_name in _NESTED:
        stem = "functional|model"
    found = re.fullmatch(rf"(?:{stem})(?:_(?P<number>\d+))?", layer.name)
    return None if found is None else int(found["number"] or 0)


def compare(site: LayerSite, layer: ModelLayer) -> Comparison:
    """Hold the literal arguments of a site against a layer's config."""
    agreeing = 0
    differences: list[Difference] = []
    for argument, given in _arguments(site).items():
        if isinstance(given, Unknown):
            continue
        trained = _config(layer.config, argument)
        verdict = _agree(argument, given, trained) if trained is not None else None
        if verdict:
            agreeing += 1
        elif verdict is False:
            differences.append(Difference(argument, *_told_apart(given, trained)))
    for argument, usual in _defaults(site).items():
        trained = layer.config.get(argument, usual)
        if _agree(argument, usual, trained) is False or (usual is None) != (trained is None):
            differences.append(Difference(argument, f"{show(usual)} (default)", show(trained)))
    return Comparison(agreeing, tuple(differences))


class Comparisons:
    """The comparisons of one program with one model, each made once.

    Layers that differ by their names only are compared as one: a program of hundreds of lines has few of another
    kind, and every line is held against every layer.
    """

    def __init__(self) -> None:
        """Nothing is compared yet."""
        self._kinds: dict[LayerPath, str] = {}
        self._known: dict[tuple[Location, str], Comparison] = {}

    def __call__(self, site: LayerSite, layer: ModelLayer) -> Comparison:
        """Hold the literal arguments of a site against a layer's config."""
        kind = self._kinds.get(layer.path)
        if kind is None:
            config = {key: value for key, value in layer.config.items() if key != "name"}
            kind = self._kinds[layer.path] = repr(config)
        key = site.location, kind
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = compare(site, layer)
        return found


def _defaults(site: LayerSite) -> dict[str, Any]:
    """Values that Keras takes for what a site leaves out, where they tell layers apart."""
    if site.others or not site.complete or not site.qualified_name.startswith("keras.layers."):
        return {}
    given = _arguments(site)
    return {
        argument: value
        for pattern, defaults in _DEFAULTS
        if pattern.fullmatch(site.class_name)
        for argument, value in defaults.items()
        if argument not in given
    }


def contradicted(site: LayerSite, layers: Sequence[ModelLayer]) -> frozenset[str]:
    """Arguments that a site says once for all, while its supposed layers were trained with several values."""
    values: dict[str, set[str]] = {}
    for argument, given in _arguments(site).items():
        if not isinstance(given, Unknown):
            values[argument] = {repr(_config(layer.config, argument)) for layer in layers}
    for argument in _defaults(site):
        values[argument] = {repr(layer.config.get(argument)) for layer in layers}
    differing = {difference.argument for layer in layers for difference in compare(site, layer).differences}
    return frozenset(argument for argument in differing if len(values.get(argument, ())) > 1)


def literals(site: LayerSite) -> str:
    """What a site says of its layer, for people: ``units=64, activation='relu'``."""
    shown = [
        f"{name}={value!r}"
        for name, value in site.arguments.items()
        if name != "name" and value is not None and _is_literal(value)
    ]
    return ", ".join(shown[:3])


def _is_literal(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_literal, value))
    return value is None or isinstance(value, (int, float, str))


def _arguments(site: LayerSite) -> dict[str, Any]:
    renamed = _RENAMED.get(site.class_name, {})
    arguments = {
        renamed.get(key, key): value
        for key, value in site.arguments.items()
        if not _INCOMPARABLE.fullmatch(renamed.get(key, key))
    }
    if site.class_name == "InputLayer":
        shape = site.arguments.get("shape")
        return {"batch_shape": (None, *shape)} if isinstance(shape, (tuple, list)) else {}
    return arguments


def _config(config: Mapping[str, Any], argument: str) -> Any:
    return config.get(argument, config.get("batch_input_shape") if argument == "batch_shape" else None)


def _agree(argument: str, given: Any, trained: Any) -> bool | None:
    """Whether two values are the same to Keras; ``None`` where that cannot be said."""
    if argument == "activation":
        given = given or "linear"
        if not isinstance(given, str) or not isinstance(trained, str):
            return None
        return _plain_name(given) == _plain_name(trained)
    if _PARTS.fullmatch(argument):
        return _agree_parts(given, trained)
    if given is None or isinstance(trained, Mapping):
        return None
    if isinstance(given, (tuple, list)) or isinstance(trained, (tuple, list)):
        return _agree_items(argument, given, trained)
    if isinstance(given, str) and isinstance(trained, str):
        return given.lower() == trained.lower()
    if isinstance(given, (int, float)) and isinstance(trained, (int, float)):
        return math.isclose(given, trained, rel_tol=1e-6)
    return None


def _agree_parts(given: Any, trained: Any) -> bool | None:
    """Initializers and the like: class and parameters; a seed, or what the text does not say, never differs."""
    part, other = _part(given), _part(trained)
    if part is None or other is None:
        return None
    if part.class_name != other.class_name:
        # Keras before 2.3 saved Glorot's and He's initializers as the general one.
        return None if "VarianceScaling" in (part.class_name, other.class_name) else False
    verdicts = [
        _agree("", value, other.arguments.get(name))
        for name, value in part.arguments.items()
        if name != "seed"
    ]
    return False if False in verdicts else True if all(verdicts) else None


def _part(value: Any) -> Part | None:
    """A part as the text says it, as its short name, or as a model's config has it."""
    if isinstance(value, Part):
        return value
    if isinstance(value, str):
        return named(value)
    if isinstance(value, Mapping) and isinstance(value.get("config"), Mapping):
        return make(str(value.get("class_name")), lambda _: value["config"])
    return None


def _agree_items(argument: str, given: Any, trained: Any) -> bool | None:
    if not isinstance(trained, (tuple, list)):
        return None
    if isinstance(given, (int, float)):
        given = _spread(given, trained)
    if not isinstance(given, (tuple, list)):
        return None
    if any(isinstance(item, Unknown) for item in given):
        return None
    if len(given) != len(trained):
        return (
            False
            if argument in {"kernel_size", "pool_size", "strides", "target_shape", "batch_shape"}
            else None
        )
    verdicts = [
        one is other if one is None or other is None else _agree("", one, other)
        for one, other in zip(given, trained, strict=True)
    ]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _spread(given: float, trained: Any) -> list[Any]:
    return [_spread(given, item) if isinstance(item, (tuple, list)) else given for item in trained]


def _plain_name(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower())
    return plain.replace("swish", "silu")


def _told_apart(given: Any, trained: Any) -> tuple[str, str]:
    """Two values that differ, for people; of two parts of one class only the parameters that do."""
    part, other = _part(given), _part(trained)
    if part is not None and other is not None and part.class_name == other.class_name:
        differing = [
            name
            for name, value in part.arguments.items()
            if name != "seed" and _agree("", value, other.arguments.get(name)) is False
        ]
        given, trained = (
            Part(one.class_name, {name: one.arguments.get(name) for name in differing})
            for one in (part, other)
        )
    return show(given), show(trained)


def show(value: Any) -> str:
    """A value for people."""
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(show, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, Mapping):
        value = _part(value) or value.get("class_name")
    if isinstance(value, Part):
        said = ((name, argument) for name, argument in value.arguments.items() if argument is not None)
        return f"{value.class_name}({', '.join(f'{name}={show(argument)}' for name, argument in said)})"
    if isinstance(value, Unknown):
        return value.code
    return f"{value:g}" if isinstance(value, float) else str(value)
