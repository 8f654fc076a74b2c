"""Lists and dicts of a program, as far as they hold layers and sizes."""

from __future__ import annotations

from typing import Any

from guider_ls.source import constants
from guider_ls.source.values import UNKNOWN, Arguments, Items, Known, Table, Value, either


def table_key(value: Value) -> Any:
    """A key for a dict: the constant, or something equal to nothing else."""
    if isinstance(value, Known) and isinstance(value.value, (str, int, float, bytes, type(None))):
        return value.value
    return object()


def list_method(items: Items, name: str, arguments: Arguments, *, certain: bool) -> Value:
    """Call a method of a list; ``certain``: nothing in the present function may skip or repeat the call."""
    value = arguments.get(0) or UNKNOWN
    if name in {"append", "add"}:
        items.items.append(value)
    elif name == "extend":
        spread = constants.elements(value)
        items.items += spread if spread is not None else [value]
        items.exact &= spread is not None
    elif name == "insert" and len(arguments.positional) == 2:
        position = arguments.positional[0]
        at = position.value if isinstance(position, Known) and isinstance(position.value, int) else 0
        items.items.insert(at, arguments.positional[1])
    elif name == "pop":
        popped = constants.element(items, arguments.get(0) or Known(-1))
        if items.items and not arguments.positional and items.exact:
            items.items.pop()
        return popped
    elif name in {"reverse", "sort", "remove", "clear"}:
        items.exact = False
    items.exact &= certain
    return UNKNOWN


def dict_method(table: Table, name: str, arguments: Arguments) -> Value:
    """Call a method of a dict."""
    if name == "items":
        if all(isinstance(key, (str, int, float)) for key in table.items):
            return Items([Items([Known(key), value], True) for key, value in table.items.items()])
        return UNKNOWN
    if name == "values":
        return Items(list(table.items.values()))
    if name == "keys":
        return Items([Known(key) if isinstance(key, (str, int, float)) else UNKNOWN for key in table.items])
    key = arguments.get(0)
    if name in {"get", "pop", "setdefault"} and key is not None:
        fallback = arguments.get(1) or Known(None)
        if isinstance(key, Known):
            return table.items.get(table_key(key), fallback)
        return either([*table.items.values(), fallback])
    return UNKNOWN
