"""What the names of Keras mean: packages under their many paths, layer classes, aliases, positional parameters."""

from __future__ import annotations

import functools
import re

_ROOT = re.compile(
    r"^(?:tensorflow(?:\.(?:python|contrib|compat\.v[12]|_api\.v[12]))*\.keras|tf_keras|keras)"
    r"((?:\.(?:src|api|_v[12]|__internal__))*)(?=\.|$)"
)

_ALIASES = {
    **{f"AvgPool{n}D": f"AveragePooling{n}D" for n in (1, 2, 3)},
    **{f"MaxPool{n}D": f"MaxPooling{n}D" for n in (1, 2, 3)},
    **{f"GlobalAvgPool{n}D": f"GlobalAveragePooling{n}D" for n in (1, 2, 3)},
    **{f"GlobalMaxPool{n}D": f"GlobalMaxPooling{n}D" for n in (1, 2, 3)},
    **{f"Convolution{n}D": f"Conv{n}D" for n in (1, 2, 3)},
    **{f"Convolution{n}DTranspose": f"Conv{n}DTranspose" for n in (1, 2, 3)},
    **{f"SeparableConvolution{n}D": f"SeparableConv{n}D" for n in (1, 2)},
    "Deconvolution2D": "Conv2DTranspose",
    "Deconvolution3D": "Conv3DTranspose",
    "DepthwiseConvolution2D": "DepthwiseConv2D",
    "GroupQueryAttention": "GroupedQueryAttention",
    "Input": "InputLayer",
}

MERGES = {
    name: name.capitalize()
    for name in ("add", "average", "concatenate", "dot", "maximum", "minimum", "multiply", "subtract")
}
"""Functions of ``keras.layers`` that construct a layer and call it."""

_NOT_LAYERS = frozenset({"Layer", "InputSpec", "Wrapper"})


def canonical(name: str) -> str:
    """One spelling for each thing of Keras: ``tensorflow.keras.layers.core.Dense`` is ``keras.layers.Dense``."""
    root = _ROOT.match(name)
    if root is None:
        return name
    rest = name[root.end() :].split(".")[1:]
    if not rest:
        return "keras"
    last = rest[-1]
    if last == "Layer" and rest[0] in {"layers", "engine", "Layer"}:
        return "keras.layers.Layer"
    if last in {"Model", "Sequential", "Functional"} and rest[0] in {"models", "engine", last}:
        return "keras.Sequential" if last == "Sequential" else "keras.Model"
    if last == "Input" and rest[0] in {"layers", "engine", "Input"}:
        return "keras.layers.Input"
    if rest[0] == "layers" and len(rest) > 1 and (last[:1].isupper() or last in MERGES):
        return f"keras.layers.{last}"
    return ".".join(("keras", *rest))


def layer_class(name: str) -> str | None:
    """Qualified class of the layer that calling ``name`` constructs; ``None`` when it constructs none.

    ``keras.layers.Input`` and the merging functions construct one as well as call it.
    """
    package, _, last = name.rpartition(".")
    if package == "keras.layers":
        if last in MERGES:
            return f"keras.layers.{MERGES[last]}"
        if last[:1].isupper() and last not in _NOT_LAYERS:
            return f"keras.layers.{_ALIASES.get(last, last)}"
        return None
    if last[:1].isupper() and (package.endswith(".layers") or ".layers." in package):
        return None if last in _NOT_LAYERS else name
    return None


def is_application(name: str) -> bool:
    """Whether calling ``name`` gives one of Keras' ready-made networks."""
    return name.startswith("keras.applications.") and name.rpartition(".")[2][:1].isupper()


@functools.cache
def auto_name(class_name: str) -> str:
    """The name Keras gives to the first unnamed layer of a class; later ones end in ``_1``, ``_2`` …"""
    name = re.sub(r"\W+", "", class_name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


_CONV = (
    "filters",
    "kernel_size",
    "strides",
    "padding",
    "data_format",
    "dilation_rate",
    "groups",
    "activation",
)
_TRANSPOSED = ("filters", "kernel_size", "strides", "padding", "output_padding")
_POOL = ("pool_size", "strides", "padding", "data_format")
_RNN = ("units", "activation", "recurrent_activation", "use_bias")

_POSITIONAL: dict[str, tuple[str, ...]] = {
    "Activation": ("activation",),
    "AlphaDropout": ("rate", "noise_shape", "seed"),
    "BatchNormalization": ("axis", "momentum", "epsilon", "center", "scale"),
    "Bidirectional": ("layer", "merge_mode"),
    "CategoryEncoding": ("num_tokens", "output_mode"),
    "CenterCrop": ("height", "width"),
    "Concatenate": ("axis",),
    **{f"Conv{n}D": _CONV for n in (1, 2, 3)},
    **{f"Conv{n}DTranspose": _TRANSPOSED for n in (1, 2)},
    "Conv3DTranspose": _TRANSPOSED[:4],
    **{f"ConvLSTM{n}D": _CONV[:6] for n in (1, 2, 3)},
    **{f"SeparableConv{n}D": (*_CONV[:6], "depth_multiplier", "activation") for n in (1, 2)},
    **{f"DepthwiseConv{n}D": ("kernel_size", "strides", "padding", "depth_multiplier") for n in (1, 2)},
    **{f"Cropping{n}D": ("cropping",) for n in (1, 2, 3)},
    "Dense": ("units", "activation", "use_bias", "kernel_initializer", "bias_initializer"),
    "Dot": ("axes", "normalize"),
    "Dropout": ("rate", "noise_shape", "seed"),
    "ELU": ("alpha",),
    "EinsumDense": ("equation", "output_shape", "activation", "bias_axes"),
    "Embedding": ("input_dim", "output_dim", "embeddings_initializer"),
    "Flatten": ("data_format",),
    "GaussianDropout": ("rate", "seed"),
    "GaussianNoise": ("stddev", "seed"),
    "GroupNormalization": ("groups", "axis", "epsilon"),
    "GRU": _RNN,
    "GRUCell": _RNN,
    "InputLayer": ("shape", "batch_size", "dtype"),
    "Lambda": ("function", "output_shape"),
    "LayerNormalization": ("axis", "epsilon", "center", "scale"),
    "LeakyReLU": ("negative_slope",),
    "LSTM": _RNN,
    "LSTMCell": _RNN,
    "Masking": ("mask_value",),
    "MultiHeadAttention": ("num_heads", "key_dim", "value_dim", "dropout", "use_bias"),
    "Normalization": ("axis", "mean", "variance"),
    "Permute": ("dims",),
    **{f"{kind}Pooling{n}D": _POOL for kind in ("Max", "Average") for n in (1, 2, 3)},
    **{
        f"Global{kind}Pooling{n}D": ("data_format", "keepdims")
        for kind in ("Max", "Average")
        for n in (1, 2, 3)
    },
    "RandomBrightness": ("factor", "value_range", "seed"),
    "RandomContrast": ("factor",),
    "RandomCrop": ("height", "width", "seed"),
    "RandomFlip": ("mode", "seed"),
    "RandomRotation": ("factor", "fill_mode", "interpolation"),
    "RandomTranslation": ("height_factor", "width_factor", "fill_mode"),
    "RandomZoom": ("height_factor", "width_factor", "fill_mode"),
    "ReLU": ("max_value", "negative_slope", "threshold"),
    "RepeatVector": ("n",),
    "Rescaling": ("scale", "offset"),
    "Reshape": ("target_shape",),
    "Resizing": ("height", "width", "interpolation"),
    "RNN": ("cell", "return_sequences", "return_state"),
    "SimpleRNN": ("units", "activation", "use_bias"),
    "SimpleRNNCell": ("units", "activation", "use_bias"),
    "Softmax": ("axis",),
    **{f"SpatialDropout{n}D": ("rate",) for n in (1, 2, 3)},
    "SpectralNormalization": ("layer", "power_iterations"),
    "StackedRNNCells": ("cells",),
    "TextVectorization": ("max_tokens", "standardize", "split", "ngrams", "output_mode"),
    "TimeDistributed": ("layer",),
    "UnitNormalization": ("axis",),
    **{f"UpSampling{n}D": ("size", "data_format") for n in (1, 2, 3)},
    **{f"ZeroPadding{n}D": ("padding", "data_format") for n in (1, 2, 3)},
}

_BARE = (
    "ActivityRegularization",
    "Add",
    "AdditiveAttention",
    "Attention",
    "Average",
    "Discretization",
    "HashedCrossing",
    "Hashing",
    "Identity",
    "IntegerLookup",
    "Layer",
    "Maximum",
    "MelSpectrogram",
    "Minimum",
    "Multiply",
    "PReLU",
    "RandomHeight",
    "RandomWidth",
    "RMSNormalization",
    "StringLookup",
    "Subtract",
    "ThresholdedReLU",
)
STAR = frozenset({*_POSITIONAL, *_ALIASES, *_BARE, *MERGES})
"""What ``from keras.layers import *`` brings in."""


def positional(qualified_name: str) -> tuple[str, ...]:
    """Leading positional parameters of one of Keras' layer classes, as far as programs use them."""
    package, _, last = qualified_name.rpartition(".")
    return _POSITIONAL.get(last, ()) if package == "keras.layers" else ()
