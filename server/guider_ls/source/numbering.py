"""The numbers that Keras gives to the names that it chooses: ``dense`` is the first `Dense`, ``dense_1`` the next.

They count up through the whole run of a program, so the text says them only as far as it says what is constructed
before.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from guider_ls.source.catalog import auto_name, is_application
from guider_ls.source.values import Instance

if TYPE_CHECKING:
    from guider_ls.source.statements import Program

_MODELS = {"keras.Sequential": "sequential", "keras.Model": "functional"}


def numbers(program: Program) -> dict[Instance, int]:
    """The number of each layer and model that Keras names, where the text says it.

    Input layers have none: Keras makes some of them by itself.
    """
    found: dict[Instance, int] = {}
    if program.trace.recounted:
        return found
    counts: Counter[str] = Counter()
    unknown = {auto_name("InputLayer")}
    for one in program.trace.instances[: program.trace.ran]:
        name = one.qualified_name
        if is_application(name):
            break  # it constructs any layers out of sight
        kind = _MODELS.get(name) or auto_name(name.rpartition(".")[2])
        if name == "keras.Sequential":
            unknown.add(_MODELS["keras.Model"])  # it makes one of its own each time that it is built
        elif name not in _MODELS:
            if not program.is_layer(one):
                continue
            if one.spread or not name.startswith(("keras.layers.", ".")):
                break
        if one.name_pattern == ".*" or (one.name_pattern is None and (one.where.loops or one.where.branches)):
            unknown.add(kind)  # for those that follow, too
        elif one.name_pattern is None and kind not in unknown:
            found[one] = counts[kind]
            counts[kind] += 1
    return found
