"""What a reading of the program has seen so far: constructions, models, files written, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from guider_ls.source.catalog import positional
from guider_ls.source.files import Written
from guider_ls.source.legacy import modernize
from guider_ls.source.sites import Unknown
from guider_ls.source.values import (
    Arguments,
    Class,
    Frame,
    Function,
    Instance,
    Items,
    Known,
    Model,
    Name,
    Object,
    PartValue,
    Text,
    Value,
    Where,
    layers_in,
    pattern_of,
    source_of,
)

BUDGET = 30_000
"""Statements that are run before calls are no longer followed and loops no longer unrolled."""


@dataclass(slots=True)
class Draft:
    """A call that may turn out to construct a layer of a model."""

    call: cst.Call
    file: str
    qualified_name: str
    arguments: dict[str, Any]
    name_pattern: str | None
    scope: str
    repeats: bool
    conditional: bool
    complete: bool
    certain: bool
    """Whether it constructs a layer for sure, not only if used as one."""
    others: list[str] = field(default_factory=list)
    """See `LayerSite.others`."""


GAP = cst.Call(cst.Name("_"))
"""Stands for layers that a model has and that are not known."""


@dataclass(slots=True)
class Trace:
    """The state of one reading."""

    drafts: dict[int, Draft] = field(default_factory=dict)
    """By the identity of the call's node, in the order of first evaluation."""
    instances: list[Instance] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    files: list[tuple[cst.Call, Written, Instance | None]] = field(default_factory=list)
    """Calls that write files, with the model that is saved."""
    trainings: list[cst.Call] = field(default_factory=list)
    """Calls that seem to train a model; those of the program itself."""
    wrapped: set[Instance] = field(default_factory=set)
    """Layers that are an argument of another layer."""
    replaced: set[Instance] = field(default_factory=set)
    """Layers whose variable was given another value that does not come through them."""
    functions: list[Function] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)
    executed: set[int] = field(default_factory=set)
    where: Where = field(default_factory=Where)
    loops: int = 0
    """Loops around the present expression inside the present function."""
    branches: int = 0
    calls: int = 0
    """Depth of functions that layers call."""
    dead: int = 0
    """Depth of code that is known not to run: it is read for its sites only."""
    steps: int = 0
    ran: int = 0
    """How many of ``instances`` a run of the program constructs; the others are those of code that nobody calls."""
    recounted: bool = False
    """Whether the program has Keras count its names anew."""
    activity: int = 0
    """Grows whenever something happens to a layer or a model."""
    caller: cst.Call | None = None
    """The innermost call of the program itself that is being run."""
    _ids: int = 0

    def fresh(self) -> int:
        """A new number."""
        self._ids += 1
        return self._ids

    @property
    def exhausted(self) -> bool:
        """Whether calls are no longer followed."""
        return self.steps > BUDGET

    @property
    def is_certain(self) -> bool:
        """Whether nothing in the present function may skip or repeat what happens now an unknown number of times."""
        return not ((self.where.loops or self.where.branches) and (self.loops or self.branches))

    @contextmanager
    def loop(self, *, known: bool = False) -> Iterator[None]:
        """Inside a loop; ``known``: it is run round by round."""
        outer = self.where
        self.loops += 1
        if not known:
            self.where = Where((*outer.loops, self.fresh()), outer.branches)
        try:
            yield
        finally:
            self.loops -= 1
            self.where = outer

    @contextmanager
    def branch(self, *, taken: bool = False) -> Iterator[None]:
        """Inside code that may be skipped; ``taken``: though not this time."""
        outer = self.where
        self.branches += 1
        if not taken:
            self.where = Where(outer.loops, (*outer.branches, self.fresh()))
        try:
            yield
        finally:
            self.branches -= 1
            self.where = outer

    def gap(self) -> Instance:
        """Any number of layers that are not known, see `GAP`."""
        return Instance(GAP, self.fresh(), "", self.where, ".*", spread=True)

    @contextmanager
    def called(self, node: cst.Call, frame: Frame) -> Iterator[None]:
        """While a call runs that stands in ``frame``."""
        outer = self.caller
        self.caller = outer if frame.root().file else node
        try:
            yield
        finally:
            self.caller = outer

    def construct(
        self,
        call: cst.Call,
        qualified_name: str,
        arguments: Arguments,
        frame: Frame,
        *,
        certain: bool,
        parameters: tuple[str, ...] = (),
    ) -> Instance:
        """One more layer (or what may be one), and the call as a site of it.

        Args:
            call: what constructs it.
            qualified_name: of its class.
            arguments: of the call.
            frame: where the call stands.
            certain: it is a layer for sure, not only if it is used as one.
            parameters: names of the positional parameters, where the class is the program's own.
        """
        self.activity += 1
        named = spell(arguments, parameters or positional(qualified_name))
        if qualified_name.startswith("keras.layers."):
            class_name = qualified_name.rpartition(".")[2]
            named = modernize(class_name, named, len(arguments.positional))
        name = arguments.keywords.get("name")
        draft = Draft(
            call=call,
            file=frame.root().file,
            qualified_name=qualified_name,
            arguments=named,
            name_pattern=pattern_of(name) if name is not None else None,
            scope=frame.scope,
            repeats=self.loops > 0,
            conditional=self.branches > 0,
            complete=not (arguments.open_positional or arguments.open_keywords),
            certain=certain,
        )
        known = self.drafts.setdefault(id(call), draft)
        if known is not draft:
            _widen(known, draft, arguments)
        own = qualified_name.startswith("keras.") and not qualified_name.startswith("keras.applications")
        instance = Instance(
            call,
            self.fresh(),
            qualified_name,
            self.where,
            _exact(name, arguments.open_keywords or not own),
            in_call=self.calls > 0,
            caller=self.caller if draft.file else None,
        )
        self.wrapped.update(inner.instance for inner in layers_in(arguments.all()))
        if not self.dead:
            self.instances.append(instance)
        return instance


def _exact(name: Value | None, uncertain: bool) -> str | None:
    """Pattern of the layer's name in this one evaluation; ``None``: Keras chooses it."""
    if name is None:
        return ".*" if uncertain else None
    if isinstance(name, Known):
        return re.escape(str(name.value)) if name.value is not None else (".*" if uncertain else None)
    return name.pattern if isinstance(name, Text) else ".*"


def _widen(known: Draft, again: Draft, arguments: Arguments) -> None:
    known.repeats |= again.repeats
    known.conditional |= again.conditional
    known.certain |= again.certain
    if again.qualified_name not in (known.qualified_name, *known.others):
        known.others.append(again.qualified_name)
    known.complete &= again.complete
    for key in again.arguments.keys() - known.arguments.keys():
        known.arguments[key] = Unknown("…")
    if known.name_pattern is None or again.name_pattern is None:
        known.name_pattern = None
    elif again.name_pattern not in known.name_pattern.split("|"):
        known.name_pattern = f"{known.name_pattern}|{again.name_pattern}"
    for key, value in known.arguments.items():
        if value != again.arguments.get(key) and not isinstance(value, Unknown):
            known.arguments[key] = Unknown(source_of(arguments.code[key]) if key in arguments.code else "…")


def spell(arguments: Arguments, parameters: tuple[str, ...]) -> dict[str, Any]:
    """Arguments by parameter name, as literals where the text says their values."""
    named: dict[str, Any] = {}
    for index, value in enumerate(arguments.positional[: len(parameters)]):
        named[parameters[index]] = literal(value, arguments.code.get(index))
        if index in arguments.code:
            arguments.code.setdefault(parameters[index], arguments.code[index])
    for keyword, value in arguments.keywords.items():
        named[keyword] = literal(value, arguments.code.get(keyword))
    return named


def literal(value: Value, code: cst.BaseExpression | None) -> Any:
    """A value as `LayerSite.arguments` holds it."""
    if isinstance(value, Known) and value.fixed:
        return value.value
    if isinstance(value, PartValue):
        return value.part
    if isinstance(value, Name):
        package, _, last = value.name.rpartition(".")
        if package in {"keras.activations", "keras.backend", "keras.ops", "tensorflow.nn", "keras.nn"}:
            return last
    if isinstance(value, Items) and value.exact:
        inner: list[cst.BaseExpression | None] = [None] * len(value.items)
        if isinstance(code, (cst.List, cst.Tuple)) and len(code.elements) == len(inner):
            inner = [element.value for element in code.elements]
        items = [literal(item, node) for item, node in zip(value.items, inner, strict=True)]
        return tuple(items) if value.is_tuple else items
    return Unknown(source_of(code) if code is not None else "…")


def unknown_arguments() -> Arguments:
    """Arguments of a call that nobody is seen to make."""
    return Arguments([], {}, {}, open_positional=True, open_keywords=True)
