"""Calls on abstract values: what is called decides what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from guider_ls.source import constants, containers, files, options
from guider_ls.source.keras_calls import KerasCalls, is_library
from guider_ls.source.values import (
    UNKNOWN,
    Arguments,
    Candidate,
    Class,
    Either,
    Function,
    Items,
    Known,
    Layer,
    Method,
    Model,
    Module,
    Name,
    Object,
    Parser,
    Partial,
    Record,
    RecordClass,
    Super,
    Table,
    Tensor,
    Value,
    either,
    merge,
)

_TEXT_METHODS = {"lower", "upper", "strip", "capitalize", "title", "replace", "split", "join"}
_TRAINING = {"fit", "fit_generator", "train_on_batch"}
_TRAINED = (Value, Model, Object, Candidate, Either, Method)
"""What may be a model when it is trained."""
_SAME_PATH = {"resolve", "absolute", "as_posix", "expanduser"}


class Calls(KerasCalls):
    """Calls functions, classes, methods, and the built-in functions that call others."""

    def call(self, callee: Value, arguments: Arguments, node: cst.Call | None) -> Value:
        """The value of a call; ``node`` is its place in the text."""
        if isinstance(callee, Either):
            values = []
            for option in callee.options:
                with self.trace.branch():
                    values.append(self.call(option, arguments, node))
            return either(values)
        if isinstance(callee, Function):
            return self.invoke(callee, arguments, UNKNOWN)
        if isinstance(callee, Class):
            return self.instantiate(callee, arguments, node)
        if isinstance(callee, Partial):
            given = callee.arguments
            joined = Arguments(
                given.positional + arguments.positional,
                {**given.keywords, **arguments.keywords},
                {**given.code, **arguments.code},
                given.open_positional or arguments.open_positional,
                given.open_keywords or arguments.open_keywords,
            )
            return self.call(callee.target, joined, node)
        if isinstance(callee, Method):
            return self._call_method(callee, arguments, node)
        if isinstance(callee, Object) and callee.of.kind == "plain":
            found = callee.of.lookup("__call__")
            return (
                self.invoke(found, arguments, callee)
                if isinstance(found, Function)
                else merge(arguments.all())
            )
        if isinstance(callee, (Layer, Model, Object, Candidate)):
            return self.apply(callee, arguments)
        if isinstance(callee, RecordClass):
            return _record(callee, arguments)
        if isinstance(callee, Name):
            if callee.name.rpartition(".")[2] in _TRAINING and not is_library(callee.name):
                self._note_training(node)
            special = _SPECIAL.get(callee.name)
            found = special(self, arguments) if special is not None else None
            return found if found is not None else self.call_name(callee, arguments, node)
        return merge(arguments.all())

    def _call_method(self, method: Method, arguments: Arguments, node: cst.Call | None) -> Value:
        owner, name = method.owner, method.name
        if method.function is not None:
            return self.invoke(method.function, arguments, owner)
        if isinstance(owner, (Items, Table)):
            if self.trace.dead:
                return UNKNOWN
            certain = self.trace.is_certain
            if isinstance(owner, Items):
                return containers.list_method(owner, name, arguments, certain=certain)
            return containers.dict_method(owner, name, arguments, certain=certain)
        if isinstance(owner, Parser):
            return options.parser_method(owner, name, arguments)
        if isinstance(owner, Record) and name == "_asdict":
            return Table(dict(owner.attributes))
        if isinstance(owner, Known) and isinstance(owner.value, str):
            if name == "format":
                return constants.format_text(owner, arguments)
            if name in _SAME_PATH:
                return owner
            if name == "joinpath" and arguments.positional:
                return files.join(owner, arguments.positional[0])
            if name in _TEXT_METHODS:
                return constants.compute([owner, *arguments.positional], getattr(str, name))
            return UNKNOWN
        if name in _TRAINING and type(owner) in _TRAINED:
            self._note_training(node)
        return self.call_keras_method(owner, name, arguments, node)

    def _note_training(self, node: cst.Call | None) -> None:
        if node is not None and not self.frame.root().file and node not in self.trace.trainings:
            self.trace.trainings.append(node)

    # built-in functions that know values of every kind; ``None``: nothing special

    def _super(self, _: Arguments) -> Value | None:
        of, self_value = self.frame.owner, self.frame.self_value
        return Super(of, self_value) if of is not None else UNKNOWN

    def _getattr(self, arguments: Arguments) -> Value | None:
        if len(arguments.positional) < 2:
            return None
        owner, name = arguments.positional[:2]
        if isinstance(name, Known) and isinstance(name.value, str):
            return self.attribute(owner, name.value)
        if isinstance(owner, Module):
            own = [value for value in owner.frame.names.values() if isinstance(value, (Function, Class))]
            return either(value for value in own if value.frame.root() is owner.frame)
        return UNKNOWN

    def _setattr(self, arguments: Arguments) -> Value | None:
        if len(arguments.positional) == 3:
            owner, name, value = arguments.positional
            spelled = name.value if isinstance(name, Known) and isinstance(name.value, str) else None
            self.set_attribute(owner, spelled or f"?{self.trace.fresh()}", value)
        return UNKNOWN

    def _map(self, arguments: Arguments) -> Value | None:
        function, *lists = arguments.positional or [UNKNOWN]
        rows = [constants.elements(values) for values in lists]
        if not rows or any(row is None for row in rows):
            return Items(
                [self._each(function, [constants.some_element(values) for values in lists])], exact=False
            )
        return Items([self._each(function, row) for row in zip(*(row or [] for row in rows), strict=False)])

    def _each(self, function: Value, values: Sequence[Value]) -> Value:
        return self.call(function, Arguments(list(values), {}, {}), None)

    def _filter(self, arguments: Arguments) -> Value | None:
        if len(arguments.positional) != 2:
            return None
        function, values = arguments.positional
        items = constants.elements(values)
        kept = Items([], exact=items is not None)
        for item in items if items is not None else [constants.some_element(values)]:
            is_none = isinstance(function, Known) and function.value is None
            truth = self.truth(item if is_none else self._each(function, [item]))
            if truth is not False:
                kept.items.append(item)
                kept.exact &= truth is not None
        return kept

    def _reduce(self, arguments: Arguments) -> Value | None:
        function, values = arguments.get(0) or UNKNOWN, arguments.get(1) or UNKNOWN
        items = constants.elements(values)
        if items is None:
            return merge([self._each(function, [constants.some_element(values), UNKNOWN])])
        queue = [*arguments.positional[2:3], *items]
        result = queue[0] if queue else UNKNOWN
        for item in queue[1:]:
            result = self._each(function, [result, item])
        return result

    def _make_dict(self, arguments: Arguments) -> Value | None:
        table = Table({})
        containers.update(table, arguments.get(0), certain=True)
        containers.update(table, Table(dict(arguments.keywords), not arguments.open_keywords), certain=True)
        return table

    def _globals(self, _: Arguments) -> Value | None:
        return Table(self.frame.root().names)

    def _vars(self, arguments: Arguments) -> Value | None:
        owner = arguments.get(0)
        if isinstance(owner, (Record, Object)):
            return Table(dict(owner.attributes))
        return Table(self.frame.names) if owner is None else UNKNOWN

    def _import_module(self, arguments: Arguments) -> Value | None:
        name = arguments.get(0)
        return (
            self.import_module(name.value)
            if isinstance(name, Known) and isinstance(name.value, str)
            else UNKNOWN
        )

    def _isinstance(self, arguments: Arguments) -> Value | None:
        if len(arguments.positional) != 2:
            return None
        value, classes = arguments.positional
        names = constants.elements(classes) or [classes]
        answers = [_is_instance(value, of) for of in names]
        if True in answers:
            return Known(True, constants.is_fixed(value))
        return UNKNOWN if None in answers else Known(False, constants.is_fixed(value))

    def _field(self, arguments: Arguments) -> Value | None:
        factory = arguments.get(-1, "default_factory", "factory")
        if factory is not None:
            return self.call(factory, Arguments([], {}, {}), None)
        return arguments.get(-1, "default") or UNKNOWN

    def _namespace(self, arguments: Arguments) -> Value | None:
        return Record(dict(arguments.keywords))

    def _namedtuple(self, arguments: Arguments) -> Value | None:
        listed = arguments.get(1, "field_names")
        if isinstance(listed, Known) and isinstance(listed.value, str):
            names: list[object] = list(listed.value.replace(",", " ").split())
        else:
            items = constants.elements(listed or UNKNOWN) or []
            names = [item.value for item in items if isinstance(item, Known)]
        fields = tuple(name for name in names if isinstance(name, str))
        defaults = constants.elements(arguments.get(-1, "defaults") or UNKNOWN) or []
        return RecordClass(fields, dict(zip(fields[len(fields) - len(defaults) :], defaults, strict=False)))

    def _make_parser(self, _: Arguments) -> Value | None:
        return Parser()

    # what is defined further up

    def truth(self, value: Value) -> bool | None:
        """Whether a condition holds; ``None``: it is not known."""
        raise NotImplementedError

    def attribute(self, owner: Value, name: str) -> Value:
        """``owner.name``."""
        raise NotImplementedError

    def set_attribute(self, owner: Value, name: str, value: Value) -> None:
        """``owner.name = value``."""
        raise NotImplementedError

    def import_module(self, name: str) -> Value:
        """A module by its name."""
        raise NotImplementedError

    def invoke(self, function: Function, arguments: Arguments, self_value: Value) -> Value:
        """Run a function of the program."""
        raise NotImplementedError

    def instantiate(self, of: Class, arguments: Arguments, node: cst.Call | None) -> Value:
        """Make an object of a class of the program."""
        raise NotImplementedError


_SPECIAL: dict[str, Callable[[Calls, Arguments], Value | None]] = {
    "builtins.super": Calls._super,
    "builtins.getattr": Calls._getattr,
    "builtins.setattr": Calls._setattr,
    "builtins.map": Calls._map,
    "builtins.filter": Calls._filter,
    "builtins.dict": Calls._make_dict,
    "builtins.globals": Calls._globals,
    "builtins.locals": Calls._vars,
    "builtins.vars": Calls._vars,
    "builtins.isinstance": Calls._isinstance,
    "functools.reduce": Calls._reduce,
    "importlib.import_module": Calls._import_module,
    "collections.OrderedDict": Calls._make_dict,
    "collections.namedtuple": Calls._namedtuple,
    "types.SimpleNamespace": Calls._namespace,
    "argparse.Namespace": Calls._namespace,
    "argparse.ArgumentParser": Calls._make_parser,
    "dataclasses.field": Calls._field,
    "dataclasses.asdict": Calls._vars,
    "attr.ib": Calls._field,
    "attr.field": Calls._field,
    "attrs.field": Calls._field,
    "pydantic.Field": Calls._field,
}

_TYPES = {"int": int, "str": str, "float": float, "bool": bool, "list": list, "tuple": tuple, "dict": dict}


def _is_instance(value: Value, of: Value) -> bool | None:
    """Whether a value is of a class; ``None``: it is not known."""
    kind = _TYPES.get(of.name.removeprefix("builtins.")) if isinstance(of, Name) else None
    if isinstance(value, Known) and kind is not None:
        return isinstance(value.value, kind)
    if isinstance(value, Items) and kind is not None:
        return kind is (tuple if value.is_tuple else list)
    if isinstance(value, Table) and kind is not None:
        return kind is dict
    if isinstance(value, (Tensor, Layer, Model, Function)) and kind is not None:
        return False
    if isinstance(value, Layer) and isinstance(of, Name) and of.name.startswith("keras.layers."):
        same = value.instance.qualified_name == of.name
        return True if same else None
    return None


def _record(of: RecordClass, arguments: Arguments) -> Value:
    """An instance of a class of records."""
    attributes = {name: of.defaults.get(name, UNKNOWN) for name in of.fields}
    attributes.update(zip(of.fields, arguments.positional, strict=False))
    attributes.update((name, value) for name, value in arguments.keywords.items() if name in attributes)
    return Record(attributes)
