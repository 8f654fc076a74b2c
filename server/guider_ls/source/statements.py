"""Statements, functions and classes of a program, run on abstract values.

A branch whose condition is not known is run on a copy of the names, which are joined afterwards. A loop over
known items is run round by round, any other loop once. Functions are run where they are called, and those that
nobody calls once at the end, so that every construction is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

import libcst as cst

from guider_ls.source import constants
from guider_ls.source.catalog import canonical, layer_class
from guider_ls.source.expressions import Expressions, table_key
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
    Model,
    Name,
    Object,
    Table,
    Tensor,
    Text,
    Value,
    either,
    loosen,
    merge,
    same,
)

DEPTH = 20
"""Calls inside calls that are followed."""


class Program(Expressions):
    """Runs a whole module; what happened is in ``trace``."""

    def __init__(self) -> None:
        super().__init__()
        self._active: list[int] = []

    def run(self, module: cst.Module) -> None:
        """Run the module, then whatever nobody called."""
        self._block(module.body)
        root = self.frame
        done = 0
        while done < len(self.trace.classes) or any(
            id(function.node) not in self.trace.executed for function in self.trace.functions
        ):
            for of in self.trace.classes[done:]:
                done += 1
                self._exercise(of)
            for function in list(self.trace.functions):
                if id(function.node) not in self.trace.executed:
                    self.frame = root
                    self.invoke(function, unknown_arguments(), UNKNOWN)
                    self.trace.executed.add(id(function.node))

    def _exercise(self, of: Class) -> None:
        """Run the methods of a class that nobody ran, on an object of it."""
        made = next((made for made in self.trace.objects if made.of is of), None)
        if made is None:
            value = self.instantiate(of, unknown_arguments(), None)
            if not isinstance(value, Object):
                return
            made = value
        for function in list(of.frame.names.values()):
            if isinstance(function, Function) and id(function.node) not in self.trace.executed:
                self.invoke(function, unknown_arguments(), UNKNOWN if function.is_static else made)
                self.trace.executed.add(id(function.node))

    # statements

    def _block(self, body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> bool:
        """Run statements; whether control surely does not get past them."""
        for index, statement in enumerate(body):
            self.trace.steps += 1
            ended = self._statement(statement)
            if ended:
                with self.unreachable():
                    self._block(body[index + 1 :])
                return True
            if ended is None and index + 1 < len(body):
                with self.trace.branch():
                    return self._block(body[index + 1 :])
        return False

    def _suite(self, suite: cst.BaseSuite) -> bool:
        return self._block(suite.body)

    def _statement(self, node: cst.CSTNode) -> bool | None:
        """Run one statement: True if control ends there, None if it may."""
        if isinstance(node, cst.SimpleStatementLine):
            return self._block(node.body)
        if isinstance(node, cst.Expr):
            self.evaluate(node.value)
        elif isinstance(node, cst.Assign):
            value = self.evaluate(node.value)
            for target in node.targets:
                self.assign(target.target, value)
        elif isinstance(node, cst.If):
            return self._if(node)
        elif isinstance(node, cst.FunctionDef):
            self._define(node)
        elif isinstance(node, cst.ClassDef):
            self._class(node)
        elif isinstance(node, (cst.Import, cst.ImportFrom)):
            self._import(node)
        elif isinstance(node, (cst.Return, cst.Raise, cst.Continue, cst.Break)):
            if isinstance(node, cst.Return) and node.value is not None:
                value = self.evaluate(node.value)
                if not self.trace.dead:
                    self.frame.returned.append(value)
            elif isinstance(node, cst.Raise):
                self._generic(node)
            return True
        elif isinstance(node, cst.For):
            self._for(node)
        elif isinstance(node, cst.While):
            self.evaluate(node.test)
            self._repeat(node.body, None)
            self._otherwise(node.orelse)
        elif isinstance(node, cst.With):
            for item in node.items:
                value = self.evaluate(item.item)
                if item.asname is not None:
                    self.assign(item.asname.name, value)
            return self._suite(node.body)
        elif isinstance(node, (cst.Try, cst.TryStar)):
            return self._try(node)
        elif isinstance(node, cst.AugAssign):
            self._augmented(node)
        elif isinstance(node, cst.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.evaluate(node.value))
        elif isinstance(node, cst.Global):
            self.frame.globals.update(item.name.value for item in node.names)
        elif isinstance(node, cst.Match):
            self.evaluate(node.subject)
            self._branches([case.body for case in node.cases], exhaustive=False)
        else:
            self._generic(node)
        return False

    def _if(self, node: cst.If) -> bool | None:
        test = self.evaluate(node.test)
        truth = self.truth(test)
        orelse = node.orelse
        if truth is None:
            return self._branches([node.body, orelse], exhaustive=orelse is not None)
        around: AbstractContextManager[None] = nullcontext()
        if not constants.is_fixed(test):
            around = self.trace.branch(taken=True)
        ended: bool | None = False
        if not truth:
            with self.unreachable():
                self._suite(node.body)
        with around:
            if truth:
                ended = self._suite(node.body)
            elif orelse is not None:
                ended = self._orelse(orelse)
        if truth and orelse is not None:
            with self.unreachable():
                self._orelse(orelse)
        return ended

    def _orelse(self, node: cst.If | cst.Else) -> bool | None:
        return self._if(node) if isinstance(node, cst.If) else self._suite(node.body)

    def _branches(
        self, bodies: Sequence[cst.BaseSuite | cst.If | cst.Else | None], *, exhaustive: bool
    ) -> bool | None:
        """Run alternatives, each on its own copy of the names; the results are joined."""
        frame = self.frame
        before = frame.names
        results: list[dict[str, Value]] = [] if exhaustive else [before]
        ends: list[bool | None] = []
        leaves = False
        for body in bodies:
            if body is None:
                continue
            frame.names = dict(before)
            with self.trace.branch():
                ended = self._orelse(body) if isinstance(body, (cst.If, cst.Else)) else self._suite(body)
            ends.append(ended)
            if ended:
                leaves |= not _raises(body)
            else:
                results.append(frame.names)
        frame.names = _join(results) if results else before
        if exhaustive and ends and all(ends):
            return True
        return None if leaves or None in ends else False

    def _try(self, node: cst.Try | cst.TryStar) -> bool | None:
        bodies: list[cst.BaseSuite | cst.If | cst.Else | None] = [node.body]
        bodies += [handler.body for handler in node.handlers]
        ended: bool | None = False
        if node.handlers:
            # What the body did first holds in the handlers too; names of both are joined.
            self._branches(bodies, exhaustive=True)
        else:
            ended = self._suite(node.body)
        self._otherwise(node.orelse)
        if node.finalbody is not None:
            self._suite(node.finalbody.body)
        return ended

    def _otherwise(self, node: cst.Else | None) -> None:
        if node is not None:
            self._suite(node.body)

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Around code that does not run: it is read for its sites, and changes nothing."""
        frame, names = self.frame, self.frame.names
        frame.names = dict(names)
        self.trace.dead += 1
        try:
            with self.trace.branch(taken=True):
                yield
        finally:
            self.trace.dead -= 1
            frame.names = names

    # loops

    def _for(self, node: cst.For) -> None:
        iterable = self.evaluate(node.iter)
        rounds = constants.elements(iterable)
        if rounds is None or len(rounds) > constants.LONGEST or self.trace.exhausted:
            self._repeat(node.body, node.target)
        elif rounds:
            self._unroll(node, list(rounds))
        else:
            with self.unreachable():
                self._suite(node.body)
        self._otherwise(node.orelse)

    def _unroll(self, node: cst.For, rounds: list[Value]) -> None:
        before = dict(self.frame.names)
        for number, item in enumerate(rounds):
            activity = self.trace.activity
            with self.trace.loop(known=True):
                self.assign(node.target, loosen(item))
                self._suite(node.body)
            if self.trace.exhausted or (number == 0 and activity == self.trace.activity):
                self._forget(before)
                return

    def _repeat(self, body: cst.BaseSuite, target: cst.BaseExpression | None) -> None:
        """Run the body of a loop of unknown count once."""
        before = dict(self.frame.names)
        for name in _assigned(body):
            if isinstance(before.get(name), (Known, Text)):
                self.frame.names[name] = UNKNOWN
        with self.trace.loop():
            if target is not None:
                self.assign(target, UNKNOWN)
            self._suite(body)
        self.frame.names = _join([before, self.frame.names])

    def _forget(self, before: dict[str, Value]) -> None:
        """Constants that a loop changed are not known after it when not all its rounds were run."""
        for name, value in self.frame.names.items():
            if isinstance(value, (Known, Text)) and not (name in before and same(before[name], value)):
                self.frame.names[name] = UNKNOWN

    # names

    def assign(self, target: cst.BaseExpression, value: Value) -> None:
        """Bind a name, attribute, item or several of them."""
        if isinstance(target, cst.Name):
            frame = self.frame.root() if target.value in self.frame.globals else self.frame
            frame.names[target.value] = value
            if isinstance(value, Model) and not value.label:
                value.label = target.value
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target.elements, value)
        elif isinstance(target, cst.Attribute):
            owner = self.evaluate(target.value)
            if isinstance(owner, Object) and not self.trace.dead:
                self._set_attribute(owner, target.attr.value, value)
        elif isinstance(target, cst.Subscript):
            owner = self.evaluate(target.value)
            index = target.slice[0].slice
            key = self.evaluate(index.value) if isinstance(index, cst.Index) else UNKNOWN
            if isinstance(owner, Table) and not self.trace.dead:
                owner.items[table_key(key)] = value

    def _set_attribute(self, owner: Object, name: str, value: Value) -> None:
        before = owner.attributes.get(name)
        conditional = self.trace.where.within(owner.instance.where).branches
        owner.attributes[name] = either([before, value]) if before is not None and conditional else value
        if isinstance(value, Model) and not value.label:
            value.label = name

    def _unpack(self, elements: Sequence[cst.BaseElement], value: Value) -> None:
        items = constants.elements(value)
        starred = [i for i, element in enumerate(elements) if isinstance(element, cst.StarredElement)]
        if items is not None and not starred and len(items) == len(elements):
            values = items
        elif items is not None and len(starred) == 1 and len(items) >= len(elements) - 1:
            first, after = starred[0], len(elements) - starred[0] - 1
            middle = Items(items[first : len(items) - after])
            values = [*items[:first], middle, *items[len(items) - after :]]
        else:
            rest = (
                either(value.items)
                if isinstance(value, Items)
                else value
                if isinstance(value, Tensor)
                else UNKNOWN
            )
            values = [rest] * len(elements)
        for element, item in zip(elements, values, strict=True):
            self.assign(element.value, item)

    def _augmented(self, node: cst.AugAssign) -> None:
        left, right = self.evaluate(node.target), self.evaluate(node.value)
        if isinstance(node.operator, cst.AddAssign) and isinstance(left, Items) and not self.trace.dead:
            spread = constants.elements(right)
            left.items += spread if spread is not None else [right]
            left.exact &= spread is not None
            return
        operator = _OPERATORS.get(type(node.operator))
        value = constants.binary(operator, left, right) if operator is not None else UNKNOWN
        self.assign(node.target, value if value is not UNKNOWN else merge([left, right]))

    def _import(self, node: cst.Import | cst.ImportFrom) -> None:
        if isinstance(node, cst.Import):
            for alias in node.names:
                name = _dotted(alias.name)
                if alias.asname is not None:
                    self.assign(alias.asname.name, Name(canonical(name)))
                else:
                    first = name.split(".")[0]
                    self.frame.names[first] = Name(canonical(first))
            return
        package = "." * len(node.relative) + (_dotted(node.module) if node.module is not None else "")
        if isinstance(node.names, cst.ImportStar):
            self.frame.stars.append(canonical(package))
            return
        for alias in node.names:
            bound = alias.asname.name if alias.asname is not None else alias.name
            self.assign(bound, Name(canonical(f"{package}.{_dotted(alias.name)}")))

    # functions

    def _define(self, node: cst.FunctionDef) -> None:
        decorators = [self.evaluate(decorator.decorator) for decorator in node.decorators]
        names = {value.name.rpartition(".")[2] for value in decorators if isinstance(value, Name)}
        scope = f"{self.frame.scope}.{node.name.value}" if self.frame.scope else node.name.value
        closure = self.frame.parent if self.frame.is_class and self.frame.parent is not None else self.frame
        function = Function(
            node, scope, closure, self.frame.owner if self.frame.is_class else None, self.defaults(node.params),
            is_property=bool(names & {"property", "cached_property"}), is_static="staticmethod" in names,
        )  # fmt: skip
        self.frame.names[node.name.value] = function
        self.trace.functions.append(function)

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
        too_deep = len(self._active) >= DEPTH or self._active.count(key) > 1
        if too_deep or trace.exhausted or (trace.dead and key in trace.executed):
            return merge(arguments.all())
        trace.executed.add(key)
        frame = Frame({}, function.frame, function.name, owner=function.owner, self_value=self_value)
        self._bind_parameters(function, arguments, self_value, frame)
        caller, loops, branches = self.frame, trace.loops, trace.branches
        self.frame, trace.loops, trace.branches = frame, 0, 0
        self._active.append(key)
        try:
            if isinstance(function.node, cst.Lambda):
                return self.evaluate(function.node.body)
            self._suite(function.node.body)
        finally:
            self._active.pop()
            self.frame, trace.loops, trace.branches = caller, loops, branches
        if not frame.returned:
            return Known(None)
        return either(frame.returned)

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

    # classes

    def _class(self, node: cst.ClassDef) -> None:
        for decorator in node.decorators:
            self.evaluate(decorator.decorator)
        bases = tuple(self.evaluate(argument.value) for argument in node.bases)
        scope = f"{self.frame.scope}.{node.name.value}" if self.frame.scope else node.name.value
        outer = self.frame
        frame = Frame({}, outer, scope, is_class=True)
        of = Class(node, node.name.value, _kind(bases), bases, frame)
        frame.owner = of
        self.frame = frame
        try:
            self._suite(node.body)
        finally:
            self.frame = outer
        outer.names[of.name] = of
        self.trace.classes.append(of)

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
                node, f".{of.name}", arguments, self.frame.scope, parameters, certain=of.kind == "layer"
            )
        made = Object(of, instance)
        instance.inside = made
        if not trace.dead:
            trace.objects.append(made)
        if self._active.count(id(of.node)) > 1:
            return made
        self._active.append(id(of.node))
        try:
            if isinstance(init, Function):
                self.invoke(init, arguments, made)
            build = of.lookup("build")
            if of.kind != "plain" and isinstance(build, Function):
                self.invoke(build, unknown_arguments(), made)
        finally:
            self._active.pop()
        return made


_OPERATORS: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {
    cst.AddAssign: cst.Add(),
    cst.SubtractAssign: cst.Subtract(),
    cst.MultiplyAssign: cst.Multiply(),
    cst.FloorDivideAssign: cst.FloorDivide(),
    cst.DivideAssign: cst.Divide(),
}


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


def _join(branches: Sequence[dict[str, Value]]) -> dict[str, Value]:
    first, *rest = branches
    joined = dict(first)
    for names in rest:
        for name, value in names.items():
            if name not in joined:
                joined[name] = value
            elif joined[name] is not value:
                joined[name] = either([joined[name], value])
    return joined


def _raises(body: cst.BaseSuite | cst.If | cst.Else) -> bool:
    """Whether a block that ends control does so by an error."""
    suite = body if isinstance(body, cst.BaseSuite) else body.body
    last: cst.CSTNode | None = suite.body[-1] if suite.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Raise)


def _assigned(node: cst.CSTNode) -> set[str]:
    """Names that statements bind."""
    names: set[str] = set()
    todo = [node]
    while todo:
        inner = todo.pop()
        if isinstance(inner, (cst.AssignTarget, cst.AugAssign, cst.NamedExpr, cst.AnnAssign)):
            _bound(inner.target, names)
        if not isinstance(inner, cst.BaseParenthesizableWhitespace):
            todo += inner.children
    return names


def _bound(target: cst.BaseExpression, names: set[str]) -> None:
    if isinstance(target, cst.Name):
        names.add(target.value)
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            _bound(element.value, names)


def _dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""
