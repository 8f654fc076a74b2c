"""Expressions of a program, evaluated on abstract values (see `guider_ls.source.values`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import libcst as cst

from guider_ls.source import constants, containers, files
from guider_ls.source.calls import Calls
from guider_ls.source.catalog import STAR, canonical
from guider_ls.source.values import (
    UNKNOWN,
    Arguments,
    Class,
    Either,
    Frame,
    Function,
    Items,
    Known,
    Layer,
    Method,
    Model,
    Module,
    Name,
    Object,
    Record,
    Super,
    Table,
    Tensor,
    Text,
    Value,
    either,
    loosen,
    merge,
)
from guider_ls.source.walk import children

_CONSTANTS = {"True": Known(True), "False": Known(False), "None": Known(None)}


class Expressions(Calls):
    """Evaluates expressions in the present frame."""

    def evaluate(self, node: cst.BaseExpression) -> Value:
        """The value of an expression; whatever it constructs is recorded."""
        handler = _HANDLERS.get(type(node))
        return handler(self, node) if handler is not None else self._generic(node)

    def _generic(self, node: cst.CSTNode) -> Value:
        """Evaluate the expressions inside a node of no interest of its own."""
        values: list[Value] = []
        for child in children(node):
            if isinstance(child, cst.BaseExpression):
                values.append(self.evaluate(child))
            else:
                values.append(self._generic(child))
        return merge(values)

    def truth(self, value: Value) -> bool | None:
        """Whether a condition holds; ``None``: it is not known."""
        if isinstance(value, Known):
            return bool(value.value) if not value.assumed else None
        if isinstance(value, (Items, Table)) and value.exact:
            return bool(value.items)
        if isinstance(value, (Layer, Model, Function, Class)):
            return True
        return None

    def look_up(self, name: str) -> Value:
        """The value of a name where it is read now."""
        return self.look_up_in(self.frame, name)

    def look_up_in(self, inner: Frame, name: str) -> Value:
        """The value of a name where it is read in some frame."""
        frame: Frame | None = inner
        stars: list[str] = []
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            stars += frame.stars
            frame = frame.parent
        for package in reversed(stars):
            if package == "keras.layers" and name in STAR:
                return Name(f"keras.layers.{name}")
            if package == "keras.models" and name in {"Sequential", "Model"}:
                return Name(f"keras.{name}")
            if package == "keras" and name in {
                "Sequential",
                "Model",
                "Input",
                "layers",
                "models",
                "applications",
            }:
                return Name(canonical(f"keras.{name}"))
        return Name(f"builtins.{name}")

    # names and literals

    def _name(self, node: cst.Name) -> Value:
        constant = _CONSTANTS.get(node.value)
        return constant if constant is not None else self.look_up(node.value)

    def _literal(self, node: constants.Literal) -> Value:
        return constants.literal(node)

    def _concatenated_string(self, node: cst.ConcatenatedString) -> Value:
        return constants.concatenate([self.evaluate(node.left), self.evaluate(node.right)])

    def _formatted_string(self, node: cst.FormattedString) -> Value:
        parts: list[Value] = []
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                parts.append(constants.literal(cst.SimpleString(f'"""{part.value}"""')))
            elif isinstance(part, cst.FormattedStringExpression):
                value = self.evaluate(part.expression)
                formatted = part.format_spec is not None or part.conversion is not None
                parts.append(UNKNOWN if formatted or not isinstance(value, (Known, Text)) else value)
        return constants.concatenate(parts)

    def _tuple(self, node: cst.Tuple) -> Value:
        return self._items(node.elements, is_tuple=True)

    def _list(self, node: cst.List | cst.Set) -> Value:
        return self._items(node.elements)

    def _items(self, elements: Sequence[cst.BaseElement], *, is_tuple: bool = False) -> Items:
        result = Items([], is_tuple)
        for element in elements:
            value = self.evaluate(element.value)
            if isinstance(element, cst.StarredElement):
                constants.extend(result, value)
            else:
                result.items.append(value)
        return result

    def _dict(self, node: cst.Dict) -> Value:
        table = Table({})
        for element in node.elements:
            value = self.evaluate(element.value)
            if isinstance(element, cst.DictElement):
                key = self.evaluate(element.key)
                table.items[containers.table_key(key)] = value
            else:
                containers.update(table, value, certain=True)
        return table

    # operators

    def _binary_operation(self, node: cst.BinaryOperation) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(node.operator, cst.Divide) and constants.is_text(left):
            return files.join(left, right)
        value = constants.binary(node.operator, left, right)
        return value if value is not UNKNOWN else merge([left, right])

    def _unary_operation(self, node: cst.UnaryOperation) -> Value:
        value = self.evaluate(node.expression)
        if isinstance(node.operator, cst.Not):
            truth = self.truth(value)
            return UNKNOWN if truth is None else Known(not truth, constants.is_fixed(value))
        if isinstance(value, Known) and isinstance(value.value, (int, float)):
            if isinstance(node.operator, cst.Minus):
                return Known(-value.value, value.fixed)
            if isinstance(node.operator, cst.Plus):
                return value
        return merge([value])

    def _comparison(self, node: cst.Comparison) -> Value:
        value = self.evaluate(node.left)
        results: list[Value] = []
        for target in node.comparisons:
            right = self.evaluate(target.comparator)
            results.append(
                _is_none(target.operator, value, right) or constants.compare(target.operator, value, right)
            )
            value = right
        return constants.compute(results, lambda *truths: all(truths))

    def _boolean_operation(self, node: cst.BooleanOperation) -> Value:
        left = self.evaluate(node.left)
        truth = self.truth(left)
        short = truth is isinstance(node.operator, cst.Or)
        if truth is None:
            with self.trace.branch():
                right = self.evaluate(node.right)
            if isinstance(left, Known) or isinstance(right, Known):
                return UNKNOWN
            return either([left, right])
        with self._resolved(left, dead=short):
            right = self.evaluate(node.right)
        return left if short else right

    def _if_exp(self, node: cst.IfExp) -> Value:
        test = self.evaluate(node.test)
        truth = self.truth(test)
        if truth is None:
            values = []
            for branch in (node.body, node.orelse):
                with self.trace.branch():
                    values.append(self.evaluate(branch))
            return either(values)
        with self._resolved(test, dead=not truth):
            body = self.evaluate(node.body)
        with self._resolved(test, dead=truth):
            orelse = self.evaluate(node.orelse)
        return body if truth else orelse

    def _resolved(self, test: Value, *, dead: bool) -> AbstractContextManager[None]:
        """Around a branch whose condition is known."""
        if dead:
            return self.unreachable()
        return nullcontext() if constants.is_fixed(test) else self.trace.branch(taken=True)

    def _named_expr(self, node: cst.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def _yield(self, node: cst.Yield) -> Value:
        given = self.frame.yielded = self.frame.yielded or Items([])
        if isinstance(node.value, cst.From):
            values = constants.elements(value := self.evaluate(node.value.item))
            given.items += values if values is not None else [constants.some_element(value)]
            given.exact &= values is not None
        else:
            given.items.append(self.evaluate(node.value) if node.value is not None else Known(None))
        given.exact &= self.trace.is_certain
        return UNKNOWN

    def _await(self, node: cst.Await) -> Value:
        return self.evaluate(node.expression)

    def _lambda(self, node: cst.Lambda) -> Value:
        function = Function(node, self.frame.scope, self.frame, defaults=self.defaults(node.params))
        self.trace.functions.append(function)
        return function

    # loops inside expressions

    def _dict_comp(self, node: cst.DictComp) -> Value:
        rows = self._comprehension(node)
        table = Table({}, rows.exact)
        for row in rows.items:
            if isinstance(row, Items):
                table.items[containers.table_key(row.items[0])] = row.items[1]
        return table

    def _comprehension(self, node: cst.BaseComp) -> Items:
        names = dict(self.frame.names)
        result = Items([])

        def body() -> None:
            if isinstance(node, cst.DictComp):
                key = self.evaluate(node.key)
                result.items.append(Items([key, self.evaluate(node.value)], True))
            elif isinstance(node, cst.BaseSimpleComp):
                result.items.append(self.evaluate(node.elt))

        self._comp_for(node.for_in, body, result)
        self.frame.names = names
        return result

    def _comp_for(self, loop: cst.CompFor, body: Callable[[], None], result: Items) -> None:
        iterable = self.evaluate(loop.iter)
        rounds = constants.elements(iterable)
        known = rounds is not None and not self.trace.exhausted
        result.exact &= known
        with self.trace.loop(known=known):
            before = self.trace.activity
            # A copy: the body may change the list that it runs over.
            items = list(rounds) if rounds is not None and known else [constants.some_element(iterable)]
            for number, item in enumerate(items):
                idle = number == 1 and self.trace.activity == before and len(items) > 16
                if idle or (number and self.trace.exhausted):
                    result.exact = False
                    break
                self.trace.steps += 1
                self.assign(loop.target, loosen(item))
                self._comp_round(loop, body, result)

    def _comp_round(self, loop: cst.CompFor, body: Callable[[], None], result: Items) -> None:
        context: AbstractContextManager[None] = nullcontext()
        for condition in loop.ifs:
            truth = self.truth(self.evaluate(condition.test))
            if truth is False:
                return
            if truth is None:
                result.exact = False
                context = self.trace.branch()
        with context:
            if loop.inner_for_in is not None:
                self._comp_for(loop.inner_for_in, body, result)
            else:
                body()

    # parts of values

    def _attribute(self, node: cst.Attribute) -> Value:
        return self.attribute(self.evaluate(node.value), node.attr.value)

    def attribute(self, owner: Value, name: str) -> Value:
        """``owner.name``."""
        if isinstance(owner, Name):
            return Name(canonical(f"{owner.name}.{name}"))
        if isinstance(owner, Object):
            if name in owner.attributes:
                return owner.attributes[name]
            return self._bind(owner, owner.of.lookup(name), name)
        if isinstance(owner, Class):
            found = owner.lookup(name)
            if isinstance(found, Function) and found.is_class_method:
                return Method(owner, name, found)
            return found if found is not None else Method(owner, name)
        if isinstance(owner, Record):
            found = owner.attributes.get(name)
            return found if found is not None else Method(owner, name)
        if isinstance(owner, Module):
            return self.module_attribute(owner, name)
        if isinstance(owner, Super):
            for base in owner.of.bases:
                found = base.lookup(name) if isinstance(base, Class) else None
                if found is not None:
                    return self._bind(owner.of_object, found, name)
            return Method(owner, name)
        if isinstance(owner, (Model, Layer)):
            return self.keras_attribute(owner, name)
        if isinstance(owner, Known) and isinstance(owner.value, str) and name == "parent":
            return files.parent(owner)
        if isinstance(owner, Either):
            return either([self.attribute(option, name) for option in owner.options])
        return Method(owner, name)

    def _bind(self, owner: Value, found: Value | None, name: str) -> Value:
        if isinstance(found, Function):
            if found.is_static:
                return found
            if found.is_class_method:
                return Method(owner.of if isinstance(owner, Object) else owner, name, found)
            method = Method(owner, name, found)
            return self.call(method, Arguments([], {}, {}), None) if found.is_property else method
        return found if found is not None else Method(owner, name)

    def _subscript(self, node: cst.Subscript) -> Value:
        container = self.evaluate(node.value)
        if len(node.slice) != 1:
            self._generic(node)
            return merge([container])
        part = node.slice[0].slice
        if isinstance(part, cst.Index):
            index = self.evaluate(part.value)
            if isinstance(container, Table):
                found = container.items.get(containers.table_key(index))
                return found if found is not None else either(container.items.values())
            if isinstance(container, Items):
                return constants.element(container, index)
            return merge([container])
        if not isinstance(part, cst.Slice) or not isinstance(container, Items):
            return merge([container])
        bounds = [
            self.evaluate(bound) if bound is not None else Known(None)
            for bound in (part.lower, part.upper, part.step)
        ]
        if container.exact and all(isinstance(bound, Known) for bound in bounds):
            try:
                cut = container.items[slice(*(constants.plain(bound) for bound in bounds))]
            except (TypeError, ValueError):
                return UNKNOWN
            return Items(cut, container.is_tuple)
        return Items(list(container.items), container.is_tuple, exact=False)

    # calls

    def _call(self, node: cst.Call) -> Value:
        callee = self.evaluate(node.func)
        arguments = self.arguments(node.args)
        with self.trace.called(node, self.frame):
            return self.call(callee, arguments, node)

    def arguments(self, args: Sequence[cst.Arg]) -> Arguments:
        """Evaluate the arguments of a call in order."""
        result = Arguments([], {}, {})
        for arg in args:
            value = self.evaluate(arg.value)
            if arg.star == "*":
                spread = constants.elements(value)
                if spread is None or result.open_positional:
                    result.open_positional = True
                else:
                    result.positional += spread
            elif arg.star == "**":
                if isinstance(value, Table):
                    known = {key: item for key, item in value.items.items() if isinstance(key, str)}
                    result.keywords.update(known)
                    result.open_keywords |= not value.exact or len(known) < len(value.items)
                else:
                    result.open_keywords = True
            elif arg.keyword is not None:
                result.keywords[arg.keyword.value] = value
                result.code[arg.keyword.value] = arg.value
            elif not result.open_positional:
                result.code[len(result.positional)] = arg.value
                result.positional.append(value)
        return result

    # what statements provide

    def assign(self, target: cst.BaseExpression, value: Value) -> None:
        """Bind a name, attribute, item or several of them."""
        raise NotImplementedError

    def unreachable(self) -> AbstractContextManager[None]:
        """Around code that does not run: it is read for its sites, and changes nothing."""
        raise NotImplementedError

    def module_attribute(self, module: Module, name: str) -> Value:
        """``module.name``."""
        raise NotImplementedError

    def defaults(self, parameters: cst.Parameters) -> dict[str, Value]:
        """Default values of parameters, evaluated where the function is defined."""
        raise NotImplementedError


_HANDLERS: dict[type[cst.CSTNode], Callable[[Expressions, Any], Value]] = {
    cst.Name: Expressions._name,
    cst.Integer: Expressions._literal,
    cst.Float: Expressions._literal,
    cst.SimpleString: Expressions._literal,
    cst.ConcatenatedString: Expressions._concatenated_string,
    cst.FormattedString: Expressions._formatted_string,
    cst.Tuple: Expressions._tuple,
    cst.List: Expressions._list,
    cst.Set: Expressions._list,
    cst.Dict: Expressions._dict,
    cst.BinaryOperation: Expressions._binary_operation,
    cst.UnaryOperation: Expressions._unary_operation,
    cst.Comparison: Expressions._comparison,
    cst.BooleanOperation: Expressions._boolean_operation,
    cst.IfExp: Expressions._if_exp,
    cst.NamedExpr: Expressions._named_expr,
    cst.Await: Expressions._await,
    cst.Yield: Expressions._yield,
    cst.Lambda: Expressions._lambda,
    cst.ListComp: Expressions._comprehension,
    cst.SetComp: Expressions._comprehension,
    cst.GeneratorExp: Expressions._comprehension,
    cst.DictComp: Expressions._dict_comp,
    cst.Attribute: Expressions._attribute,
    cst.Subscript: Expressions._subscript,
    cst.Call: Expressions._call,
}


def _is_none(operator: cst.BaseCompOp, left: Value, right: Value) -> Value | None:
    """``x is None`` of a thing that surely is not ``None``."""
    if not (isinstance(right, Known) and right.value is None and isinstance(operator, (cst.Is, cst.IsNot))):
        return None
    if isinstance(left, (Tensor, Layer, Model, Items, Object, Table, Function)):
        return Known(isinstance(operator, cst.IsNot), fixed=False)
    return None
