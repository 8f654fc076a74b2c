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


def keys(table: Table) -> list[Value]:
    """The keys of a dict."""
    return [
        Known(key) if isinstance(key, (str, int, float, bytes, type(None))) else UNKNOWN
        for key in table.items
    ]


def list_method(items: Items, name: str, arguments: Arguments, *, certain: bool) -> Value:
    """Call a method of a list; ``certain``: nothing in the present function may skip or repeat the call."""
    value = arguments.get(0) or UNKNOWN
    if name in {"append", "add"}:
        items.items.append(value)
    elif name == "extend":
        constants.extend(items, value)
    elif name == "appendleft":
        items.items.insert(0, value)
    elif name == "insert" and len(arguments.positional) == 2:
        position = arguments.positional[0]
        at = position.value if isinstance(position, Known) and isinstance(position.value, int) else 0
        items.items.insert(at, arguments.positional[1])
    elif name == "pop":
        index = arguments.get(0) or Known(-1)
        popped = constants.element(items, index)
        if items.exact and isinstance(index, Known) and isinstance(index.value, int):
            at = index.value
            items.items[at : at + 1 or None] = []
        items.exact &= certain
        return popped
    elif name == "copy":
        return Items(list(items.items), items.is_tuple, items.exact)
    elif name == "reverse" and certain:
        items.items.reverse()
    elif name == "clear" and certain:
        items.items.clear()
    elif name == "remove" and certain and items.exact and any(item is value for item in items.items):
        del items.items[next(at for at, item in enumerate(items.items) if item is value)]
    elif name in {"index", "count"}:
        return UNKNOWN
    elif name in {"reverse", "sort", "remove", "clear"}:
        items.exact = False
    items.exact &= certain
    return UNKNOWN


def set_item(owner: Value, key: Value, value: Value, *, certain: bool) -> None:
    """``owner[key] = value``; ``certain``: as for methods."""
    if isinstance(owner, Table):
        at = table_key(key)
        owner.exact &= certain or at in owner.items
        owner.items[at] = value
    elif isinstance(owner, Items):
        at = _place(owner, key)
        if at is not None and certain:
            owner.items[at] = value
        else:
            owner.exact = False
            owner.items.append(value)


def delete_item(owner: Value, key: Value, *, certain: bool) -> None:
    """``del owner[key]``; ``certain``: as for methods."""
    if isinstance(owner, Table):
        owner.exact &= certain and owner.items.pop(table_key(key), None) is not None
    elif isinstance(owner, Items):
        at = _place(owner, key)
        if at is not None and certain:
            del owner.items[at]
        else:
            owner.exact = False


def _place(items: Items, key: Value) -> int | None:
    """The place of an item, where it is known."""
    if not (items.exact and isinstance(key, Known) and isinstance(key.value, int)):
        return None
    return key.value if -len(items.items) <= key.value < len(items.items) else None


def dict_method(table: Table, name: str, arguments: Arguments, *, certain: bool) -> Value:
    """Call a method of a dict; ``certain``: as for lists."""
    if name == "items":
        if not table.exact:
            return Items(
                [Items(list(pair), True) for pair in zip(keys(table), table.items.values(), strict=True)],
                exact=False,
            )
        return Items(
            [Items(list(pair), True) for pair in zip(keys(table), table.items.values(), strict=True)]
        )
    if name == "values":
        return Items(list(table.items.values()), exact=table.exact)
    if name == "keys":
        return Items(keys(table), exact=table.exact)
    if name == "copy":
        return Table(dict(table.items), table.exact)
    if name == "update":
        update(table, arguments.get(0), certain=certain)
        update(table, Table(arguments.keywords, not arguments.open_keywords), certain=certain)
        return UNKNOWN
    key = arguments.get(0)
    if name in {"get", "pop", "setdefault"} and key is not None:
        return _look_up(table, name, key, arguments.get(1), certain=certain)
    return UNKNOWN


def _look_up(table: Table, name: str, key: Value, fallback: Value | None, *, certain: bool) -> Value:
    fallback = fallback or Known(None)
    if not isinstance(key, Known):
        table.exact &= name == "get"
        return either([*table.items.values(), fallback])
    at = table_key(key)
    found = table.items.get(at)
    if found is None:
        if name == "setdefault" and table.exact:
            table.items[at] = fallback
        return fallback if table.exact else UNKNOWN
    if name == "pop" and certain:
        del table.items[at]
    table.exact &= certain or name != "pop"
    return found


def update(table: Table, other: Value | None, *, certain: bool) -> None:
    """Take over the items of another dict."""
    if other is None:
        return
    if isinstance(other, Table):
        table.items.update(other.items)
        table.exact &= other.exact and certain
    else:
        table.exact = False
