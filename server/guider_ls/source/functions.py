"""Functions and classes of a program: they are run where they are called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import libcst as cst

from guider_ls.source.catalog import layer_class
from guider_ls.source.expressions import Expressions
from guider_ls.source.trace import unknown_arguments
from guider_ls.source.values import (
    UNKNOWN,
    Arguments,
    Class,
    Either,
    Frame,
    Function,
    Instance,
    Items,
    Known,
    Name,
    Object,
    Partial,
    Table,
    Tensor,
    Value,
    Where,
    either,
    loosen,
    merge,
)

DEPTH = 20
"""Calls inside calls that are followed."""


class Functions(Expressions):
    """Defines, calls and instantiates what the program itself defines."""

    def __init__(self) -> None:
        super().__init__()
        self._active: list[tuple[int, int, Where]] = []
        """Functions and classes that are being run: their node, their frame, and where they were called."""

    def suite(self, suite: cst.BaseSuite) -> bool:
        """Run a block of statements; whether control surely does not get past it."""
        raise NotImplementedError

    def define(self, node: cst.FunctionDef) -> None:
        """Bind a function to its name."""
        decorators = [self.evaluate(decorator.decorator) for decorator in node.decorators]
        if any(_is_setter(decorator.decorator) for decorator in node.decorators):
            return
        names = {value.name.rpartition(".")[2] for value in decorators if isinstance(value, Name)}
        scope = f"{self.frame.scope}.{node.name.value}" if self.frame.scope else node.name.value
        closure = self.frame.parent if self.frame.is_class and self.frame.parent is not None else self.frame
        function = Function(
            node,
            scope,
            closure,
            owner=self.frame.owner if self.frame.is_class else None,
            defaults=self.defaults(node.params),
            is_property=bool(names & {"property", "cached_property"}),
            is_static="staticmethod" in names,
            is_class_method="classmethod" in names,
        )
        self.trace.functions.append(function)
        self.frame.names[node.name.value] = self._decorated(function, decorators)

    def _decorated(self, function: Function, decorators: Iterable[Value]) -> Value:
        """What a function's name is bound to; decorators from elsewhere leave the function what it is."""
        value: Value = function
        for decorator in reversed(list(decorators)):
            if isinstance(decorator, (Function, Class, Object, Partial)):
                made = self.call(decorator, Arguments([value], {}, {}), None)
                value = made if isinstance(made, (Function, Object, Partial)) else value
            elif isinstance(decorator, Name) and decorator.name == "keras.layers.Lambda":
                function.is_traced = True
        return value

    def defaults(self, parameters: cst.Parameters) -> dict[str, Value]:
        """Default values of parameters, evaluated where the function is defined."""
        return {
            parameter.name.value: loosen(self.evaluate(parameter.default))
            for parameter in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
            if parameter.default is not None
        }

    def invoke(self, function: Function, arguments: Arguments, self_value: Value) -> Value:
        """Run a function of the program; where that leads too deep, its result is unknown."""
        trace, key = self.trace, id(function.node)
        active = (key, id(function.frame))
        if self._is_too_deep(active) or trace.exhausted or (trace.dead and key in trace.executed):
            return merge(arguments.all())
        trace.executed.add(key)
        trace.steps += 1
        frame = Frame({}, function.frame, function.name, owner=function.owner, self_value=self_value)
        self._bind_parameters(function, arguments, self_value, frame)
        caller, loops, branches = self.frame, trace.loops, trace.branches
        self.frame, trace.loops, trace.branches = frame, 0, 0
        is_call = function.is_traced or (
            function.owner is not None and function.owner.kind != "plain" and function.name.endswith(".call")
        )
        trace.calls += is_call
        self._active.append((*active, trace.where))
        try:
            if isinstance(function.node, cst.Lambda):
                return self.evaluate(function.node.body)
            self.suite(function.node.body)
        except RecursionError:  # far down already: what it gives is not known
            return merge(arguments.all())
        finally:
            trace.calls -= is_call
            self._active.pop()
            self.frame, trace.loops, trace.branches = caller, loops, branches
        if frame.yielded is not None:
            return frame.yielded
        if not frame.returned:
            return Known(None)
        return either(frame.returned)

    def _is_too_deep(self, key: tuple[int, int]) -> bool:
        """Whether a call goes too deep: a function in itself more than once, unless the text says when that ends."""
        if len(self._active) >= DEPTH:
            return True
        around = [where for *active, where in self._active if tuple(active) == key]
        return len(around) > 1 and around[0] != self.trace.where

    def _bind_parameters(
        self, function: Function, arguments: Arguments, self_value: Value, frame: Frame
    ) -> None:
        parameters = function.node.params
        positional = list(arguments.positional)
        if self_value is not UNKNOWN and not function.is_static:
            positional.insert(0, self_value)
        keywords = dict(arguments.keywords)
        # The arguments of Layer.call are tensors, whoever calls it.
        layer_call = function.owner is not None and function.name.endswith((".call", ".build"))
        absent: Value = Tensor() if layer_call and arguments.open_positional else UNKNOWN
        for index, parameter in enumerate(
            (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
        ):
            name = parameter.name.value
            is_positional = index < len(parameters.posonly_params) + len(parameters.params)
            if is_positional and index < len(positional):
                value = loosen(positional[index])
                keywords.pop(name, None)
            elif name in keywords:
                value = loosen(keywords.pop(name))
            elif arguments.open_keywords or (is_positional and arguments.open_positional):
                value = absent
            else:
                value = function.defaults.get(name, UNKNOWN)
            frame.names[name] = value
        if isinstance(parameters.star_arg, cst.Param):
            taken = len(parameters.posonly_params) + len(parameters.params)
            rest = Items([loosen(value) for value in positional[taken:]], True, not arguments.open_positional)
            frame.names[parameters.star_arg.name.value] = rest
        if parameters.star_kwarg is not None:
            known = not arguments.open_keywords
            words = Table({key: loosen(value) for key, value in keywords.items()}) if known else UNKNOWN
            frame.names[parameters.star_kwarg.name.value] = words

    def _fill(self, made: Object, fields: tuple[str, ...], arguments: Arguments) -> None:
        """Set the attributes of an object of a dataclass."""
        for name, value in (*zip(fields, arguments.positional, strict=False), *arguments.keywords.items()):
            made.attributes[name] = loosen(value)
        after = made.of.lookup("__post_init__")
        if isinstance(after, Function):
            self.invoke(after, Arguments([], {}, {}), made)

    # classes

    def define_class(self, node: cst.ClassDef) -> None:
        """Run the body of a class and bind the class to its name."""
        decorators = [self._decorator(decorator.decorator) for decorator in node.decorators]
        bases = tuple(self.evaluate(argument.value) for argument in node.bases)
        scope = f"{self.frame.scope}.{node.name.value}" if self.frame.scope else node.name.value
        outer = self.frame
        frame = Frame({}, outer, scope, is_class=True)
        of = Class(node, node.name.value, _kind(bases), bases, frame)
        frame.owner = of
        self.frame = frame
        try:
            self.suite(node.body)
        finally:
            self.frame = outer
        if any(map(_makes_fields, (*decorators, *bases))):
            of.fields = _fields(of)
        outer.names[of.name] = of
        self.trace.classes.append(of)
        for called in decorators:
            if isinstance(called, Function):
                self.call(called, Arguments([of], {}, {}), None)

    def _decorator(self, node: cst.BaseExpression) -> Value:
        """A decorator; of one from elsewhere that takes arguments, what takes them."""
        value = self.evaluate(node)
        if isinstance(node, cst.Call) and not isinstance(value, Function):
            return self.evaluate(node.func)
        return value

    def instantiate(self, of: Class, arguments: Arguments, node: cst.Call | None) -> Value:
        """Make an object of a class of the program."""
        trace = self.trace
        init = of.lookup("__init__")
        parameters = _parameter_names(init) if isinstance(init, Function) else ()
        if node is None or of.kind == "plain":
            instance = Instance(
                node or cst.Call(cst.Name("_")), trace.fresh(), f".{of.name}", trace.where, ".*"
            )
        else:
            instance = trace.construct(
                node,
                f".{of.name}",
                arguments,
                self.frame,
                certain=of.kind == "layer",
                parameters=parameters,
            )
        made = Object(of, instance)
        instance.inside = made
        if not trace.dead:
            trace.objects.append(made)
        key = (id(of.node), id(of.frame))
        if self._is_too_deep(key):
            return made
        self._active.append((*key, trace.where))
        try:
            if isinstance(init, Function):
                self.invoke(init, arguments, made)
            elif of.fields is not None:
                self._fill(made, of.fields, arguments)
            elif of.kind == "model":
                self.initialize(made, arguments)
            build = of.lookup("build")
            if of.kind != "plain" and isinstance(build, Function):
                self.invoke(build, unknown_arguments(), made)
        finally:
            self._active.pop()
        return made


def _is_setter(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value in {"setter", "deleter"}


def _makes_fields(value: Value) -> bool:
    """Whether a decorator or a base makes constructor's arguments of a class' annotated names."""
    if isinstance(value, Class):
        return value.fields is not None
    if not isinstance(value, Name):
        return False
    package, _, last = value.name.rpartition(".")
    return (
        last in {"dataclass", "NamedTuple", "BaseModel", "BaseSettings"}
        or package.split(".")[0] in {"attr", "attrs"}
    ) and package.split(".")[0] not in {"keras", "tensorflow"}


def _fields(of: Class) -> tuple[str, ...]:
    """Annotated names of a class, those of its bases first."""
    names: dict[str, None] = {}
    for base in of.bases:
        if isinstance(base, Class):
            names.update(dict.fromkeys(base.fields or ()))
    for statement in of.node.body.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name):
                names[small.target.value] = None
    return tuple(names)


def _kind(bases: Iterable[Value]) -> Literal["layer", "model", "plain"]:
    for base in bases:
        for option in base.options if isinstance(base, Either) else (base,):
            if isinstance(option, Class) and option.kind != "plain":
                return option.kind
            if isinstance(option, Name):
                if option.name in {"keras.Model", "keras.Sequential"}:
                    return "model"
                if option.name in {"keras.layers.Layer", "keras.layers.Wrapper"} or layer_class(option.name):
                    return "layer"
                if not option.name.startswith("builtins.") and option.name.endswith("Layer"):
                    return "layer"
    return "plain"


def _parameter_names(function: Function) -> tuple[str, ...]:
    parameters = function.node.params
    names = [parameter.name.value for parameter in (*parameters.posonly_params, *parameters.params)]
    return tuple(names[1:])
