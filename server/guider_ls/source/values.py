"""What an expression may evaluate to, as far as layers are concerned.

A program is read by abstract interpretation: it is run on these values instead of real ones. A tensor is the set
of layers it came through, a model its list of layers, a function its body; all else is a constant or unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import libcst as cst

from guider_ls.source.sites import Part


class Value:
    """Anything; by itself: nothing is known of it."""

    __slots__ = ()


UNKNOWN = Value()


@dataclass(frozen=True, slots=True)
class Known(Value):
    """A constant. ``fixed``: the text says it, whoever calls the code; else it holds for this call only."""

    value: Any
    fixed: bool = True
    pattern: str = ".+"
    """Regular expression for all the texts it may be when it is not fixed."""
    assumed: bool = False
    """Whether whoever starts the program may choose another (the default of an argument)."""


@dataclass(frozen=True, slots=True)
class Text(Value):
    """A string known in parts."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Name(Value):
    """Something imported or built in, by its canonical dotted name."""

    name: str

    @property
    def is_keras(self) -> bool:
        """Whether it is Keras' own."""
        return self.name == "keras" or self.name.startswith("keras.")


@dataclass(slots=True, eq=False)
class Items(Value):
    """A list, tuple or set; ``exact`` when these are all its items."""

    items: list[Value]
    is_tuple: bool = False
    exact: bool = True


@dataclass(slots=True, eq=False)
class Table(Value):
    """A dict; ``exact`` when these are all its items."""

    items: dict[Any, Value]
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Other(Value):
    """An object that is fitted like a model and is none, such as a scaler."""

    name: str


@dataclass(slots=True, eq=False)
class Record(Value):
    """Something that only has attributes: a named tuple, a namespace, parsed arguments."""

    attributes: dict[str, Value]


@dataclass(slots=True, eq=False)
class RecordClass(Value):
    """A class of records, made by ``namedtuple`` and the like."""

    fields: tuple[str, ...]
    defaults: dict[str, Value]


@dataclass(slots=True, eq=False)
class Parser(Value):
    """An ``argparse`` parser, with the defaults of its arguments."""

    defaults: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Where:
    """The unfinished loops and branches, outermost first, in which something happens."""

    loops: tuple[int, ...] = ()
    """Loops of unknown count."""
    branches: tuple[int, ...] = ()

    def within(self, outer: Where) -> Where:
        """What of it lies inside ``outer``."""
        return Where(
            tuple(loop for loop in self.loops if loop not in outer.loops),
            tuple(branch for branch in self.branches if branch not in outer.branches),
        )

    def __or__(self, other: Where) -> Where:
        """Inside both."""
        return Where(
            self.loops + tuple(loop for loop in other.loops if loop not in self.loops),
            self.branches + tuple(branch for branch in other.branches if branch not in self.branches),
        )


@dataclass(frozen=True, slots=True)
class PartValue(Value):
    """An initializer, regularizer or constraint."""

    part: Part


@dataclass(slots=True, eq=False)
class Instance:
    """One layer that one evaluation of a call constructs."""

    call: cst.Call
    number: int
    """Counts constructions in the order they happen."""
    qualified_name: str
    where: Where
    name_pattern: str | None
    inside: Model | Object | None = None
    spread: bool = False
    """Stands for any number of layers that the call makes out of sight."""
    in_call: bool = False
    """Whether it is made while a layer or a model is called."""
    caller: cst.Call | None = None
    """The call of the program that has it made, where its own call stands in another module."""


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """A (symbolic) tensor and the layers it came through; ``maybe`` are those of which this is not certain."""

    through: frozenset[Instance] = frozenset()
    maybe: frozenset[Instance] = frozenset()


@dataclass(slots=True, eq=False)
class Layer(Value):
    """A layer."""

    instance: Instance


@dataclass(slots=True, eq=False)
class Candidate(Value):
    """An instance of a class from elsewhere: a layer if it is used like one."""

    instance: Instance
    given: Value = UNKNOWN
    """The tensors that it was made of."""


@dataclass(frozen=True, slots=True)
class Place:
    """A layer's place in a model."""

    instance: Instance
    where: Where


@dataclass(slots=True, eq=False)
class Model(Value):
    """A model that is not a class of the program."""

    instance: Instance
    kind: Literal["sequential", "functional", "opaque"]
    label: str
    places: list[Place] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Frame:
    """Names of a module, class body or function call."""

    names: dict[str, Value]
    parent: Frame | None = None
    scope: str = ""
    is_class: bool = False
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    returned: list[Value] = field(default_factory=list)
    owner: Class | None = None
    """Class whose method is being called, for ``super()``."""
    self_value: Value = UNKNOWN
    stars: list[str] = field(default_factory=list)
    """Packages whose public names were all imported."""
    file: str = ""
    """Of a module's frame: its absolute path; empty for the program."""
    yielded: Items | None = None
    """What a generator gives."""

    def binding(self, name: str) -> Frame:
        """The frame in which an assignment binds a name."""
        if name in self.globals:
            return self.root()
        frame: Frame | None = self.parent if name in self.nonlocals else None
        while frame is not None:
            if name in frame.names and not frame.is_class:
                return frame
            frame = frame.parent
        return self

    def root(self) -> Frame:
        """The module's frame."""
        frame = self
        while frame.parent is not None:
            frame = frame.parent
        return frame


@dataclass(slots=True, eq=False)
class Module(Value):
    """A module of the project."""

    file: str
    name: str
    frame: Frame


@dataclass(slots=True, eq=False)
class Function(Value):
    """A function of the program."""

    node: cst.FunctionDef | cst.Lambda
    name: str
    frame: Frame
    owner: Class | None = None
    defaults: dict[str, Value] = field(default_factory=dict)
    is_property: bool = False
    is_static: bool = False
    is_class_method: bool = False
    is_traced: bool = False
    """Whether a layer calls it (the function of a ``Lambda``)."""


@dataclass(slots=True, eq=False)
class Method(Value):
    """An attribute of a value, to be called."""

    owner: Value
    name: str
    function: Function | None = None


@dataclass(slots=True, eq=False)
class Class(Value):
    """A class of the program."""

    node: cst.ClassDef
    name: str
    kind: Literal["layer", "model", "plain"]
    bases: tuple[Value, ...]
    frame: Frame
    fields: tuple[str, ...] | None = None
    """Of a dataclass and the like: its fields, which its constructor takes."""

    def lookup(self, name: str) -> Value | None:
        """An attribute of the class or of its bases in this program."""
        found = self.frame.names.get(name)
        for base in self.bases:
            if found is None and isinstance(base, Class):
                found = base.lookup(name)
        return found


@dataclass(slots=True, eq=False)
class Object(Value):
    """An instance of a class of the program."""

    of: Class
    instance: Instance
    attributes: dict[str, Value] = field(default_factory=dict)
    outputs: Value | None = None
    """What ``super().__init__(inputs, outputs)`` of a functional model was given."""


@dataclass(frozen=True, slots=True, eq=False)
class Super(Value):
    """``super()`` in a method of a class."""

    of: Class
    of_object: Value


@dataclass(slots=True, eq=False)
class Partial(Value):
    """``functools.partial``."""

    target: Value
    arguments: Arguments


@dataclass(frozen=True, slots=True, eq=False)
class Configuration(Value):
    """What a layer or a model is made anew from: ``model.get_config()``, ``model.to_json()``."""

    of: Layer | Model


@dataclass(frozen=True, slots=True, eq=False)
class Either(Value):
    """One of several."""

    options: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Arguments:
    """Evaluated arguments of a call; ``open`` when ``*`` or ``**`` may add others."""

    positional: list[Value]
    keywords: dict[str, Value]
    code: dict[int | str, cst.BaseExpression]
    open_positional: bool = False
    open_keywords: bool = False

    def get(self, position: int, *keywords: str) -> Value | None:
        """An argument by one of its keywords or by its position."""
        for keyword in keywords:
            if keyword in self.keywords:
                return self.keywords[keyword]
        return self.positional[position] if 0 <= position < len(self.positional) else None

    def all(self) -> Iterator[Value]:
        """Every argument."""
        yield from self.positional
        yield from self.keywords.values()


def either(values: Iterable[Value]) -> Value:
    """The join of values: one of them, it is not known which. A constant is kept only where it is the only one."""
    values = list(values)
    options: list[Value] = []
    for value in values:
        for option in value.options if isinstance(value, Either) else (value,):
            if option is not UNKNOWN and not any(same(option, other) for other in options):
                options.append(option)
    constants = [option for option in options if isinstance(option, (Known, Text))]
    if len(constants) > 1 or (constants and any(value is UNKNOWN for value in values)):
        options = [option for option in options if option not in constants]
    if any(isinstance(option, Name) and option.is_keras for option in options):
        # Imports that were tried one after another: Keras is the one that matters.
        options = [option for option in options if not isinstance(option, Name) or option.is_keras]
    if not options:
        return UNKNOWN
    if len(options) == 1:
        return options[0]
    if all(isinstance(option, Tensor) for option in options):
        return Tensor(*through(options))
    return Either(tuple(options[:8]))


def same(one: Value, other: Value) -> bool:
    """Whether two values are the same constant, name or object."""
    if isinstance(one, Known) and isinstance(other, Known):
        return type(one.value) is type(other.value) and bool(one.value == other.value)
    return one is other or (isinstance(one, (Name, Text, Tensor)) and one == other)


def through(values: Iterable[Value]) -> tuple[frozenset[Instance], frozenset[Instance]]:
    """Layers that tensors came through, those in lists and tables included: certain ones, uncertain ones."""
    certain: set[Instance] = set()
    maybe: set[Instance] = set()
    todo = list(values)
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Tensor):
            certain |= value.through
            maybe |= value.maybe
        elif isinstance(value, Items):
            todo += value.items
        elif isinstance(value, Table):
            todo += value.items.values()
        elif isinstance(value, Either):
            todo += value.options
    return frozenset(certain), frozenset(maybe - certain)


def merge(values: Iterable[Value]) -> Value:
    """A tensor made of tensors by something that is not a layer; unknown when there is no tensor in them."""
    certain, maybe = through(values)
    return Tensor(certain, maybe) if certain or maybe else UNKNOWN


def layers_in(values: Iterable[Value]) -> list[Layer | Model | Candidate | Object]:
    """Layers, models and objects, those in lists and tables included, in order, each once."""
    found: list[Layer | Model | Candidate | Object] = []
    seen: set[int] = set()

    def walk(value: Value) -> None:
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, (Layer, Model, Candidate, Object)):
            found.append(value)
        elif isinstance(value, Items):
            for item in value.items:
                walk(item)
        elif isinstance(value, Table):
            for item in value.items.values():
                walk(item)
        elif isinstance(value, Either):
            for item in value.options:
                walk(item)

    for value in values:
        walk(value)
    return found


def loosen(value: Value) -> Value:
    """The value as a function sees an argument: true of this call only."""
    if isinstance(value, Known) and value.fixed:
        return replace(value, fixed=False)
    if isinstance(value, Items) and any(isinstance(item, Known) and item.fixed for item in value.items):
        return Items([loosen(item) for item in value.items], value.is_tuple, value.exact)
    return value


def pattern_of(value: Value) -> str | None:
    """Regular expression for the strings that a value may be, whoever calls the code; ``None``: it says nothing."""
    if isinstance(value, Known):
        if not value.fixed:
            return value.pattern if value.pattern != ".+" else None
        return re.escape(str(value.value)) if value.value is not None else None
    return value.pattern if isinstance(value, Text) else None


def source_of(node: cst.CSTNode) -> str:
    """The text of a node."""
    return cst.Module([]).code_for_node(node)
