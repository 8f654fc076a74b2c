"""Arithmetic on constants: literals, f-strings, operators, and the few built-in functions that loops run over."""

from __future__ import annotations

import ast
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from guider_ls.source.values import UNKNOWN, Arguments, Items, Known, Record, Table, Text, Value, either

LONGEST = 512
"""Items of a sequence that is spelled out, and loop rounds that are run one by one."""
LONGEST_LIST = 10_000
"""Items of a list that is put together."""
LONGEST_TEXT = 10_000
"""Characters (or bytes) of a string that is spelled out."""

_BINARY: dict[type[cst.BaseBinaryOp], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.Power: operator.pow,
    cst.LeftShift: operator.lshift,
}
_COMPARE: dict[type[cst.BaseCompOp], Callable[[Any, Any], Any]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.Is: operator.is_,
    cst.IsNot: operator.is_not,
    cst.In: lambda one, many: one in many,
    cst.NotIn: lambda one, many: one not in many,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (int, float, str, bool, max, min, abs, sum, round, chr, ord)
}

_MATHEMATICS = {"ceil", "floor", "sqrt", "log2", "log", "pow", "exp"}
_KEYS = (str, int, float, bytes, type(None))

Literal = cst.Integer | cst.Float | cst.SimpleString


def literal(node: Literal) -> Value:
    """A number or a string; unknown where Python would not take it, such as ``"C:\\Users"``, which libcst does."""
    return _evaluated(node.value) if len(node.value) < 100 else _evaluated.__wrapped__(node.value)


@functools.lru_cache(4096)
def _evaluated(code: str) -> Value:
    try:
        return Known(ast.literal_eval(code))
    except (SyntaxError, ValueError):
        return UNKNOWN


def plain(value: Value) -> Any:
    """The Python object of a constant, lists and tuples of constants included.

    Raises:
        ValueError: some of it is not a constant.
    """
    if isinstance(value, Known):
        return value.value
    if isinstance(value, Items) and value.exact:
        items = [plain(item) for item in value.items]
        return tuple(items) if value.is_tuple else items
    raise ValueError


def is_fixed(value: Value) -> bool:
    """Whether a constant holds whoever calls the code."""
    if isinstance(value, Items):
        return all(is_fixed(item) for item in value.items)
    return isinstance(value, Known) and value.fixed


def compute(values: Sequence[Value], function: Callable[..., Any]) -> Value:
    """A function of constants; unknown unless all are constants and the result is small."""
    try:
        result = function(*map(plain, values))
    except (ValueError, TypeError, ArithmeticError, LookupError):
        return UNKNOWN
    return constant(result, fixed=all(map(is_fixed, values)), assumed=any(map(is_assumed, values)))


def constant(result: Any, *, fixed: bool, assumed: bool = False) -> Value:
    """A Python object as a value."""
    if isinstance(result, (list, tuple)) and len(result) <= LONGEST:
        items = [constant(item, fixed=fixed, assumed=assumed) for item in result]
        return Items(items, isinstance(result, tuple))
    if isinstance(result, (str, bytes)) and len(result) > LONGEST_TEXT:
        return UNKNOWN
    if isinstance(result, int) and result.bit_length() > 128:
        return UNKNOWN
    if result is None or isinstance(result, (bool, int, float, str, bytes)):
        return Known(result, fixed, assumed=assumed)
    return UNKNOWN


def is_assumed(value: Value) -> bool:
    """Whether a constant, or one of a list, is the default of what may be chosen when the program starts."""
    if isinstance(value, Items):
        return any(map(is_assumed, value.items))
    return isinstance(value, Known) and value.assumed


def binary(node: cst.BaseBinaryOp, left: Value, right: Value) -> Value:
    """``left operator right`` of constants, strings known in parts, and lists."""
    if isinstance(node, cst.Add) and isinstance(left, Items) and isinstance(right, Items):
        joined = Items(list(left.items), left.is_tuple, left.exact)
        extend(joined, right)
        return joined
    if isinstance(node, cst.Multiply):
        for items, times in ((left, right), (right, left)):
            if isinstance(items, Items) and isinstance(times, Known) and isinstance(times.value, int):
                count = max(times.value, 0)
                if count * len(items.items) <= LONGEST:
                    return Items(items.items * count, items.is_tuple, items.exact)
                return Items(items.items, items.is_tuple, exact=False)
        if any(isinstance(side, Known) and isinstance(side.value, (str, bytes)) for side in (left, right)):
            return compute([left, right], _repeat)
    if isinstance(node, cst.Add) and (is_text(left) or is_text(right)):
        return concatenate([left, right])
    if isinstance(node, cst.Modulo) and isinstance(left, Known) and isinstance(left.value, str):
        parts = re.split(r"%[-#0 +\d.]*[a-zA-Z]", left.value)
        return _fill(compute([left, right], operator.mod), parts)
    function = _BINARY.get(type(node))
    if function in (operator.pow, operator.lshift) and not _is_small(right):
        return UNKNOWN
    return compute([left, right], function) if function is not None else UNKNOWN


def _repeat(left: Any, right: Any) -> Any:
    text, times = (left, right) if isinstance(left, (str, bytes)) else (right, left)
    if len(text) * times > LONGEST_TEXT:
        raise ValueError
    return text * times


def _is_small(value: Value) -> bool:
    return isinstance(value, Known) and isinstance(value.value, int) and abs(value.value) < 64


def compare(node: cst.BaseCompOp, left: Value, right: Value) -> Value:
    """``left operator right`` of constants, as a constant bool."""
    function = _COMPARE.get(type(node))
    return compute([left, right], function) if function is not None else UNKNOWN


def is_text(value: Value) -> bool:
    """Whether the value is a string, known in whole or in parts."""
    return isinstance(value, Text) or (isinstance(value, Known) and isinstance(value.value, str))


def concatenate(parts: Sequence[Value]) -> Value:
    """The parts of an f-string, one after another."""
    if all(isinstance(part, Known) for part in parts):
        text = "".join(str(part.value) for part in parts if isinstance(part, Known))
        if all(map(is_fixed, parts)):
            return Known(text)
        pattern = "".join(map(_pattern, parts))
        return Known(text, fixed=False, pattern=pattern, assumed=any(map(is_assumed, parts)))
    return Text("".join(map(_pattern, parts)))


def _pattern(part: Value) -> str:
    if isinstance(part, Known):
        return re.escape(str(part.value)) if part.fixed else part.pattern
    return part.pattern if isinstance(part, Text) else ".+"


def _fill(result: Value, parts: Sequence[str]) -> Value:
    pattern = ".+".join(map(re.escape, parts))
    if isinstance(result, Known):
        return result if result.fixed else replace(result, pattern=pattern)
    return Text(pattern)


def format_text(template: Value, arguments: Arguments) -> Value:
    """``template.format(…)``."""
    if not isinstance(template, Known) or not isinstance(template.value, str):
        return UNKNOWN
    parts = re.split(r"\{[^{}]*\}", template.value)
    names = list(arguments.keywords)
    count = len(arguments.positional)
    values = [template, *arguments.positional, *arguments.keywords.values()]

    def fill(text: str, *values: Any) -> str:
        return text.format(*values[:count], **dict(zip(names, values[count:], strict=True)))

    return _fill(compute(values, fill), parts)


def builtin(name: str, arguments: Arguments) -> Value:
    """The built-in functions that loops and sizes are made of."""
    values = arguments.positional
    if name in {"list", "tuple", "sorted", "reversed", "iter", "set"} and len(values) == 1:
        items = elements(values[0])
        if items is None:
            return UNKNOWN
        ordered = items[::-1] if name == "reversed" else items
        if name in {"sorted", "set"}:
            return compute(values, lambda items: sorted(set(items) if name == "set" else items))
        return Items(list(ordered), name == "tuple")
    if name in {"list", "tuple"} and not values:
        return Items([], name == "tuple")
    if name == "enumerate" and values:
        items = elements(values[0])
        start = arguments.get(1, "start") or Known(0)
        if items is None or not isinstance(start, Known) or not isinstance(start.value, int):
            return UNKNOWN
        first = start.value
        return Items([Items([Known(first + i, fixed=False), item], True) for i, item in enumerate(items)])
    if name == "zip" and values:
        rows = [elements(value) for value in values]
        if any(row is None for row in rows):
            return UNKNOWN
        return Items([Items(list(row), True) for row in zip(*(row or [] for row in rows), strict=False)])
    if name == "range" and values:
        return compute(values, _range)
    if name == "len" and len(values) == 1:
        items = elements(values[0])
        fixed = isinstance(values[0], Items) and is_fixed(values[0])
        return Known(len(items), fixed) if items is not None else UNKNOWN
    return compute(values, _FUNCTIONS[name]) if name in _FUNCTIONS and values else UNKNOWN


def _range(*bounds: int) -> list[int]:
    numbers = range(*bounds)
    if len(numbers) > LONGEST:
        raise ValueError
    return list(numbers)


def elements(value: Value) -> list[Value] | None:
    """What a loop over the value runs over, item by item; ``None`` when that is not known."""
    if isinstance(value, Items) and value.exact:
        return value.items
    if isinstance(value, Table) and value.exact and all(isinstance(key, _KEYS) for key in value.items):
        return [Known(key) for key in value.items]
    if isinstance(value, Record):
        return list(value.attributes.values())
    if isinstance(value, Known) and isinstance(value.value, str):
        return [Known(character, value.fixed) for character in value.value[:LONGEST]]
    return None


def extend(items: Items, more: Value) -> None:
    """Append what a loop over ``more`` runs over; a list that grows too long is left as it is."""
    spread = more.items if isinstance(more, Items) else elements(more)
    added = spread if spread is not None else [more]
    if len(items.items) + len(added) > LONGEST_LIST:
        items.exact = False
        return
    items.items += added
    items.exact &= spread is not None and not (isinstance(more, Items) and not more.exact)


def element(container: Value, index: Value) -> Value:
    """``container[index]`` of a list or tuple."""
    if not isinstance(container, Items):
        return UNKNOWN
    if isinstance(index, Known) and isinstance(index.value, int) and container.exact:
        try:
            return container.items[index.value]
        except IndexError:
            return UNKNOWN
    return either(container.items)


def some_element(value: Value) -> Value:
    """What a loop over the value sees in some round, when it is not known which."""
    return either(value.items) if isinstance(value, Items) else UNKNOWN


def library(name: str, arguments: Arguments) -> Value | None:
    """Functions of the standard library that sizes are made of; ``None`` when ``name`` is no such function."""
    values = arguments.positional
    package, _, last = name.rpartition(".")
    if package == "copy" and last in {"copy", "deepcopy"} and len(values) == 1:
        return duplicate(values[0])
    if package in {"math", "numpy"} and last in _MATHEMATICS and values:
        return compute(values, getattr(math, last))
    if name in {"numpy.prod", "math.prod"} and values:
        return compute(values[:1], math.prod)
    if name == "numpy.arange" and values:
        return compute(values, _range)
    if name == "collections.deque" and not arguments.keywords:
        return builtin("list", arguments)
    if name in {"numpy.array", "numpy.asarray"} and values:
        return duplicate(values[0])
    if package == "itertools" or package == "itertools.chain":
        return _iterator(last, values)
    return None


def _iterator(name: str, values: Sequence[Value]) -> Value | None:
    """Functions of ``itertools`` that layers and sizes go through."""
    if name == "repeat" and len(values) == 2:
        return binary(cst.Multiply(), Items([values[0]]), values[1])
    if name == "from_iterable" and len(values) == 1:
        inner = elements(values[0])
        return _iterator("chain", inner) if inner is not None else UNKNOWN
    rows = [elements(value) for value in values]
    known = [row for row in rows if row is not None]
    if name == "chain":
        chained = Items([])
        for value in values:
            extend(chained, value)
        return chained
    if len(known) < len(rows) or math.prod(map(len, known)) > LONGEST:
        return UNKNOWN
    if name == "product":
        return Items([Items(list(row), True) for row in itertools.product(*known)])
    if name == "pairwise" and len(known) == 1:
        pairs = zip(known[0], known[0][1:], strict=False)
        return Items([Items(list(pair), True) for pair in pairs])
    return UNKNOWN


def duplicate(value: Value) -> Value:
    """A copy of lists and dicts of constants, so that changing one leaves the other."""
    if isinstance(value, Items):
        return Items([duplicate(item) for item in value.items], value.is_tuple, value.exact)
    if isinstance(value, Table):
        return Table({key: duplicate(item) for key, item in value.items.items()}, value.exact)
    return value
