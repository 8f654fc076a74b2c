"""Arguments as Keras 1 spelled them, in the words of today. Many programs on the web are still written so."""

from __future__ import annotations

from typing import Any

from guider_ls.source.sites import Unknown

_RENAMED = {
    "nb_filter": "filters",
    "filter_length": "kernel_size",
    "border_mode": "padding",
    "subsample": "strides",
    "subsample_length": "strides",
    "pool_length": "pool_size",
    "inner_activation": "recurrent_activation",
    "init": "kernel_initializer",
    "W_regularizer": "kernel_regularizer",
    "b_regularizer": "bias_regularizer",
    "bias": "use_bias",
    "dim_ordering": "data_format",
}
_UNITS = frozenset({"Dense", "LSTM", "GRU", "SimpleRNN"})


def modernize(class_name: str, arguments: dict[str, Any], positional: int) -> dict[str, Any]:
    """The arguments of a call in today's words, the first ``positional`` of which had no keyword.

    ``Conv2D(32, 3, 3)`` says rows and columns in old Keras, size and strides today: beside an old word it is
    taken as old, else what it says of the strides is not known.
    """
    old = arguments.keys() & _RENAMED.keys()
    units = class_name in _UNITS and "output_dim" in arguments
    rate = "Dropout" in class_name and "p" in arguments
    rows = {"nb_row", "nb_col"} <= arguments.keys()
    size, strides = arguments.get("kernel_size"), arguments.get("strides")
    square = class_name == "Conv2D" and positional >= 3 and isinstance(size, int) and isinstance(strides, int)
    if not (old or units or rate or rows):
        return {**arguments, "strides": Unknown(str(strides))} if square and size == strides else arguments
    named = {
        _RENAMED.get(key, key): value for key, value in arguments.items() if not (square and key == "strides")
    }
    if units:
        named["units"] = named.pop("output_dim")
    if rate:
        named["rate"] = named.pop("p")
    if rows:
        named["kernel_size"] = (named.pop("nb_row"), named.pop("nb_col"))
    elif square:
        named["kernel_size"] = (size, strides)
    return named
