"""Layers, losses and functions of the user, which files of models name but do not carry."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from guider_engine.errors import unusable

from .functions import importing


@contextmanager
def custom_objects(spec: str, root: str) -> Iterator[dict[str, Any]]:
    """The objects that ``spec`` names, and whatever its module registers, until the end of the context.

    Args:
        spec: ``module`` that registers them (`register_keras_serializable`), or ``module:name`` of a dictionary, a
            class, a function without arguments that returns a dictionary, or another function, which is one of them
            itself; empty: none.
        root: folder of the project.

    Raises:
        EngineFailure: there is no such module or name, it is something else, or the user's code raised.
    """
    if not spec:
        yield {}
        return
    module_name, _, name = spec.partition(":")
    with importing(spec, module_name, root) as module:
        found = _of_module(module) if not name else _named(spec, module, name)
    yield found


@contextmanager
def registrations_kept() -> Iterator[None]:
    """Take back what is registered meanwhile: a module is imported anew for each request, and Keras 2 refuses to
    register a name twice."""
    registries = list(_registries())
    before = [dict(registry) for registry in registries]
    try:
        yield
    finally:
        for registry, entries in zip(registries, before, strict=True):
            registry.clear()
            registry.update(entries)


def _registries() -> Iterator[dict[str, Any]]:
    import sys

    for name in ("keras", "tf_keras"):
        keras = sys.modules.get(name)
        if keras is not None:
            yield keras.utils.get_custom_objects()


def _of_module(module: ModuleType) -> dict[str, Any]:
    """Its own classes of layers and the like: a module that is named alone need not register them."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and hasattr(value, "get_config")
    }


def _named(spec: str, module: ModuleType, name: str) -> dict[str, Any]:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise unusable("function-missing", f"{spec}: the module {module.__name__} has no {name}.")
        found = getattr(found, part)
    if inspect.isclass(found):
        return {found.__name__: found}
    if inspect.isfunction(found):
        if inspect.signature(found).parameters:
            return {found.__name__: found}
        found = found()
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise unusable(
            "custom-objects-type",
            f"{spec} is a {type(found).__name__}; expected a dictionary of names and classes or functions, a "
            "class, or a function that returns such a dictionary.",
        )
    return dict(found)
