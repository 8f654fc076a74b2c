"""Statements of a program, run on abstract values.

A branch whose condition is not known is run on a copy of the names, which are joined afterwards. A loop over
known items is run round by round, any other loop once. Functions and classes that nobody uses are run once at the
end, so that every construction is seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import libcst as cst

from guider_ls.source import constants
from guider_ls.source.containers import delete_item, set_item
from guider_ls.source.imports import Imports
from guider_ls.source.modules import Modules
from guider_ls.source.trace import unknown_arguments
from guider_ls.source.trees import Tree, Trees
from guider_ls.source.values import (
    UNKNOWN,
    Class,
    Frame,
    Function,
    Items,
    Known,
    Layer,
    Model,
    Module,
    Object,
    Record,
    Tensor,
    Text,
    Value,
    either,
    loosen,
    merge,
    same,
)
from guider_ls.source.walk import children


class Program(Imports):
    """Runs a whole module; what happened is in ``trace``."""

    def __init__(self, modules: Modules | None = None, trees: Trees | None = None) -> None:
        """Follow the modules of the project that ``modules`` finds; ``trees`` parses them."""
        super().__init__(modules, trees)
        self._bound_by: dict[int, frozenset[str]] = {}
        """Names that the bodies of loops bind, by the identity of the body."""

    def run(self, module: Tree) -> None:
        """Run the module, then whatever of it nobody called."""
        root = self.frame
        self.block(module)
        self.trace.ran = len(self.trace.instances)
        done = 0
        while done < len(self.trace.classes) or self._uncalled(root):
            for of in self.trace.classes[done:]:
                done += 1
                self._exercise(of, own=of.frame.root() is root)
            for function in self._uncalled(root):
                self.frame = root
                self.invoke(function, unknown_arguments(), UNKNOWN)
                self.trace.executed.add(id(function.node))

    def block(self, body: Tree) -> None:
        """Run the statements of a module in the present frame."""
        self._block(body.body)

    def _uncalled(self, root: Frame) -> list[Function]:
        """The program's own functions that nobody called."""
        return [
            function
            for function in self.trace.functions
            if id(function.node) not in self.trace.executed and function.frame.root() is root
        ]

    def _exercise(self, of: Class, *, own: bool) -> None:
        """Run the methods of a class that nobody ran, on an object of it; of an imported class, what Keras calls."""
        made = next((made for made in self.trace.objects if made.of is of), None)
        if made is None:
            value = self.instantiate(of, unknown_arguments(), None) if own else None
            if not isinstance(value, Object):
                return
            made = value
        for name, function in list(of.frame.names.items()):
            if not isinstance(function, Function) or not (own or (name == "call" and of.kind != "plain")):
                continue
            if id(function.node) not in self.trace.executed:
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

    def suite(self, suite: cst.BaseSuite) -> bool:
        """Run a block of statements; whether control surely does not get past it."""
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
            self.define(node)
        elif isinstance(node, cst.ClassDef):
            self.define_class(node)
        elif isinstance(node, (cst.Import, cst.ImportFrom)):
            self.run_import(node)
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
            return self.suite(node.body)
        elif isinstance(node, (cst.Try, cst.TryStar)):
            return self._try(node)
        elif isinstance(node, cst.AugAssign):
            self._augmented(node)
        elif isinstance(node, cst.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.evaluate(node.value))
        elif isinstance(node, cst.Global):
            self.frame.globals.update(item.name.value for item in node.names)
        elif isinstance(node, cst.Del):
            self._delete(node.target)
        elif isinstance(node, cst.Nonlocal):
            self.frame.nonlocals.update(item.name.value for item in node.names)
        elif isinstance(node, cst.Match):
            return self._match(node)
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
                self.suite(node.body)
        with around:
            if truth:
                ended = self.suite(node.body)
            elif orelse is not None:
                ended = self._orelse(orelse)
        if truth and orelse is not None:
            with self.unreachable():
                self._orelse(orelse)
        return ended

    def _match(self, node: cst.Match) -> bool | None:
        subject = self.evaluate(node.subject)
        live: list[cst.BaseSuite | cst.If | cst.Else | None] = []
        done = False
        for case in node.cases:
            truth = False if done else self._matches(case.pattern, subject)
            if truth is not False and case.guard is not None:
                guard = self.truth(self.evaluate(case.guard))
                truth = guard if truth or guard is False else None
            if truth is False:
                with self.unreachable():
                    self.suite(case.body)
                continue
            live.append(case.body)
            done = bool(truth)
        if done and len(live) == 1:
            with nullcontext() if constants.is_fixed(subject) else self.trace.branch(taken=True):
                return self._orelse(live[0])
        return self._branches(live, exhaustive=done)

    def _matches(self, pattern: cst.MatchPattern, subject: Value) -> bool | None:
        """Whether a pattern takes a value; ``None``: it is not known."""
        if isinstance(pattern, (cst.MatchValue, cst.MatchSingleton)):
            return self.truth(constants.compare(cst.Equal(), subject, self.evaluate(pattern.value)))
        if isinstance(pattern, cst.MatchOr):
            truths = [self._matches(element.pattern, subject) for element in pattern.patterns]
            return True if True in truths else None if None in truths else False
        if isinstance(pattern, cst.MatchAs):
            if pattern.name is not None:
                self.assign(pattern.name, subject)
            return self._matches(pattern.pattern, subject) if pattern.pattern is not None else True
        return None

    def _orelse(self, node: cst.BaseSuite | cst.If | cst.Else | None) -> bool | None:
        """Run a block, or what stands after ``else``."""
        if isinstance(node, cst.If):
            return self._if(node)
        return self.suite(node.body if isinstance(node, cst.Else) else node) if node is not None else False

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
                ended = self._orelse(body)
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
            # Which of them ran is not known; their names are joined.
            self._branches(bodies, exhaustive=True)
        else:
            ended = self.suite(node.body)
        self._otherwise(node.orelse)
        if node.finalbody is not None:
            self.suite(node.finalbody.body)
        return ended

    def _otherwise(self, node: cst.Else | None) -> None:
        if node is not None:
            self.suite(node.body)

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
            self._repeat(node.body, node.target, constants.some_element(iterable))
        elif rounds:
            self._unroll(node, list(rounds))
        else:
            with self.unreachable():
                self.suite(node.body)
        self._otherwise(node.orelse)

    def _unroll(self, node: cst.For, rounds: list[Value]) -> None:
        before = dict(self.frame.names)
        for number, item in enumerate(rounds):
            activity = self.trace.activity
            with self.trace.loop(known=True):
                self.assign(node.target, loosen(item))
                self.suite(node.body)
            if self.trace.exhausted or (number == 0 and activity == self.trace.activity):
                self._forget(before)
                return

    def _repeat(self, body: cst.BaseSuite, target: cst.BaseExpression | None, item: Value = UNKNOWN) -> None:
        """Run the body of a loop of unknown count once."""
        before = dict(self.frame.names)
        if id(body) not in self._bound_by:
            self._bound_by[id(body)] = _assigned(body)
        for name in self._bound_by[id(body)]:
            if isinstance(before.get(name), (Known, Text)):
                self.frame.names[name] = UNKNOWN
        with self.trace.loop():
            if target is not None:
                self.assign(target, loosen(item))
            self.suite(body)
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
            frame = self.frame.binding(target.value)
            if frame is not self.frame:
                if self.trace.dead:
                    return
                if not self.trace.is_certain and target.value in frame.names:
                    value = either([frame.names[target.value], value])
            self._note_replaced(frame.names.get(target.value), value)
            frame.names[target.value] = value
            if isinstance(value, Model) and not value.label:
                value.label = target.value
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target.elements, value)
        elif isinstance(target, cst.Attribute):
            self.set_attribute(self.evaluate(target.value), target.attr.value, value)
        elif isinstance(target, cst.Subscript):
            owner, key = self._item(target)
            if not self.trace.dead:
                set_item(owner, key, value, certain=self.trace.is_certain)

    def _item(self, target: cst.Subscript) -> tuple[Value, Value]:
        """The container and the key of ``container[key]``."""
        owner = self.evaluate(target.value)
        index = target.slice[0].slice
        return owner, self.evaluate(index.value) if isinstance(index, cst.Index) else UNKNOWN

    def _delete(self, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Subscript):
            owner, key = self._item(target)
            if not self.trace.dead:
                delete_item(owner, key, certain=self.trace.is_certain)

    def _note_replaced(self, before: Value | None, after: Value) -> None:
        """The variable of a layer, or of its output, is given a value that does not come through it."""
        if self.trace.dead:
            return
        if isinstance(before, Tensor) and isinstance(after, Tensor):
            self.trace.replaced |= before.through - after.through
        elif isinstance(before, Layer) and before is not after:
            self.trace.replaced.add(before.instance)

    def set_attribute(self, owner: Value, name: str, value: Value) -> None:
        """``owner.name = value``."""
        if self.trace.dead:
            return
        if isinstance(owner, Object):
            before = owner.attributes.get(name)
            conditional = self.trace.where.within(owner.instance.where).branches
            owner.attributes[name] = either([before, value]) if before is not None and conditional else value
        elif isinstance(owner, Record):
            owner.attributes[name] = value
        elif isinstance(owner, (Module, Class)):
            owner.frame.names[name] = value
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
            constants.extend(left, right)
            left.exact &= self.trace.is_certain
            return
        operator = _OPERATORS.get(type(node.operator))
        value = constants.binary(operator, left, right) if operator is not None else UNKNOWN
        self.assign(node.target, value if value is not UNKNOWN else merge([left, right]))


_OPERATORS: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {
    cst.AddAssign: cst.Add(),
    cst.SubtractAssign: cst.Subtract(),
    cst.MultiplyAssign: cst.Multiply(),
    cst.FloorDivideAssign: cst.FloorDivide(),
    cst.DivideAssign: cst.Divide(),
}


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


def _assigned(node: cst.CSTNode) -> frozenset[str]:
    """Names that statements bind."""
    names: set[str] = set()
    todo: list[cst.CSTNode] = [node]
    while todo:
        inner = todo.pop()
        if isinstance(inner, (cst.AssignTarget, cst.AugAssign, cst.NamedExpr, cst.AnnAssign)):
            _bound(inner.target, names)
        todo += children(inner)
    return frozenset(names)


def _bound(target: cst.BaseExpression, names: set[str]) -> None:
    if isinstance(target, cst.Name):
        names.add(target.value)
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            _bound(element.value, names)
