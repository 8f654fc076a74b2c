"""What Keras does in a program, on abstract values: layers, models, wrappers, files written."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import libcst as cst

from guider_ls.source import constants, files
from guider_ls.source.catalog import MERGES, auto_name, is_application, layer_class
from guider_ls.source.parts import is_part_package, make
from guider_ls.source.trace import Trace, spell
from guider_ls.source.values import (
    UNKNOWN,
    Arguments,
    Candidate,
    Configuration,
    Either,
    Frame,
    Function,
    Instance,
    Items,
    Known,
    Layer,
    Method,
    Model,
    Name,
    Object,
    Other,
    Partial,
    PartValue,
    Place,
    Super,
    Table,
    Tensor,
    Value,
    Where,
    either,
    layers_in,
    merge,
    through,
)

_LIBRARIES = frozenset(
    {"keras", "tensorflow", "numpy", "builtins", "pandas", "sklearn", "matplotlib", "torch", "scipy"}
    | sys.stdlib_module_names
)
_ADDED = "add()"
"""Where an object keeps what was added to it; no attribute has that name."""
_FITTED = ("sklearn.", "keras.preprocessing.", "xgboost.", "lightgbm.", "scipy.", "statsmodels.")
"""Packages whose objects have a ``fit`` and are no models of Keras."""
_CALL = cst.Call(cst.Name("_"))
_COPIES = frozenset(
    {
        "keras.models.clone_model",
        "keras.clone_model",
        "keras.models.load_model",
        "keras.saving.load_model",
        "keras.models.model_from_json",
        "keras.models.model_from_yaml",
        "keras.models.model_from_config",
    }
)
"""Functions that make a model after another."""


class KerasCalls:
    """The part of the evaluator that knows Keras."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.frame = Frame({"__name__": Known("__main__"), "__file__": Known("program.py")})
        self._outputs: dict[Instance, Tensor] = {}
        """What each layer gave when it was called."""
        self._saved: dict[str, Model] = {}
        """Models by the path that they were saved to."""

    def call_name(self, callee: Name, arguments: Arguments, node: cst.Call | None) -> Value:
        """Call something that is not of this program."""
        node = node or _CALL
        name = callee.name
        qualified = layer_class(name)
        if qualified is not None:
            return self._layer(name, qualified, arguments, node)
        if name == "keras.Sequential":
            model = self._model("sequential", name, arguments, node)
            for layer in _listed(arguments.get(0, "layers")):
                self._add(model, layer)
            return model
        if name == "keras.Model":
            model = self._model("functional", name, arguments, node)
            model.places = self.between(model.instance, arguments.get(1, "outputs", "output"))
            return model
        if is_application(name):
            return self._model("opaque", name, arguments, node)
        if name in _COPIES or name.endswith(".from_config"):
            copied = self._copied(arguments)
            if copied is not None:
                return copied
        qualified = layer_class(name.removesuffix(".from_config"))
        if qualified is not None:
            return Layer(
                self.trace.construct(node, qualified, _unpacked(arguments), self.frame, certain=True)
            )
        if name == "functools.partial" and arguments.positional:
            code = {key - 1 if isinstance(key, int) else key: part for key, part in arguments.code.items()}
            given = replace(arguments, positional=arguments.positional[1:], code=code)
            return Partial(arguments.positional[0], given)
        if name.endswith((".clear_session", ".reset_uids")):
            self.trace.recounted = True
        self._write(callee, UNKNOWN, name.rpartition(".")[2], arguments, node)
        known = files.path_function(name, arguments) or constants.library(name, arguments)
        if known is not None:
            return known
        package, _, last = name.rpartition(".")
        if is_part_package(package) and not (arguments.open_positional or arguments.open_keywords):
            part = make(last, lambda parameters: spell(arguments, parameters))
            if part is not None:
                return PartValue(part)
        if package == "builtins":
            return constants.builtin(last, arguments)
        if last[:1].isupper() and not is_library(name):
            made = self.trace.construct(node, name, arguments, self.frame, certain=False)
            return Candidate(made, merge(arguments.all()))
        if last[:1].isupper() and name.startswith(_FITTED):
            return Other(name)
        return merge(arguments.all())

    def _layer(self, name: str, qualified: str, arguments: Arguments, node: cst.Call) -> Value:
        instance = self.trace.construct(node, qualified, arguments, self.frame, certain=True)
        if qualified == "keras.layers.Lambda" and isinstance(
            function := arguments.get(0, "function"), Function
        ):
            function.is_traced = True
        last = name.rpartition(".")[2]
        if last == "Input":
            return Tensor(frozenset({instance}))
        if last in MERGES:
            certain, maybe = through(arguments.all())
            return Tensor(certain | {instance}, maybe)
        return Layer(instance)

    def _model(
        self,
        kind: Literal["sequential", "functional", "opaque"],
        name: str,
        arguments: Arguments,
        node: cst.Call,
    ) -> Model:
        instance = self.trace.construct(node, name, arguments, self.frame, certain=False)
        holders = [part for part in self.frame.scope.split(".") if not part.startswith("__")]
        model = Model(instance, kind, holders[-1] if holders else "")
        instance.inside = model
        if not self.trace.dead and kind != "opaque":
            self.trace.models.append(model)
        return model

    def _add(self, model: Model, value: Value, where: Where | None = None) -> None:
        """Append a layer to a model."""
        where = where or self.trace.where
        if isinstance(value, Either):
            for option in value.options:
                branch = Where(where.loops, (*where.branches, self.trace.fresh()))
                self._add(model, option, branch)
        elif isinstance(value, (Layer, Model, Candidate, Object)):
            instance = value.instance
            model.places.append(Place(instance, (instance.where | where).within(model.instance.where)))
        elif isinstance(value, Tensor):
            for instance in sorted(value.through, key=_by_number):
                model.places.append(Place(instance, instance.where.within(model.instance.where)))
        elif not (isinstance(value, Known) and value.value is None):
            model.places.append(Place(self.trace.gap(), where.within(model.instance.where)))
        self.trace.activity += 1

    def between(self, whole: Instance, outputs: Value | None) -> list[Place]:
        """The layers that a functional model's outputs came through, in construction order."""
        certain, maybe = through([outputs] if outputs is not None else [])
        places = []
        for instance in sorted(certain | maybe, key=_by_number):
            where = instance.where.within(whole.where)
            if instance in maybe and not where.branches:
                where = Where(where.loops, (self.trace.fresh(),))
            places.append(Place(instance, where))
        return places

    def _copied(self, arguments: Arguments) -> Value | None:
        """What a configuration, a clone's original or a saved file gives; its layers are the original's."""
        given = arguments.get(0, "model", "config", "json_string", "filepath")
        if isinstance(given, Configuration):
            given = given.of
        elif isinstance(given, Known) and isinstance(given.value, str):
            given = self._saved.get(given.value)
        if not isinstance(given, Model):
            return given if isinstance(given, Layer) else None
        copied = Model(given.instance, given.kind, "", list(given.places))
        if given.kind != "opaque" and not self.trace.dead:
            self.trace.models.append(copied)
        return copied

    def is_layer(self, instance: Instance) -> bool:
        """Whether something is a layer for sure, or was used like one."""
        draft = self.trace.drafts.get(id(instance.call))
        return (draft is not None and draft.certain) or instance in self._outputs

    def is_called(self, instance: Instance) -> bool:
        """Whether a layer was called."""
        merging = instance.qualified_name.rpartition(".")[2] in {*MERGES.values(), "InputLayer"}
        return merging or instance in self._outputs

    def apply(self, layer: Layer | Model | Object | Candidate, arguments: Arguments) -> Value:
        """Call a layer or a model on tensors."""
        self.trace.activity += 1
        certain, maybe = through(arguments.all())
        if isinstance(layer, Candidate) and not any(
            isinstance(value, (Tensor, Items)) for value in arguments.all()
        ):
            return merge(arguments.all())
        result = Tensor(certain | {layer.instance}, maybe)
        before = self._outputs.get(layer.instance)
        self._outputs[layer.instance] = result if before is None else Tensor(*through([before, result]))
        return result

    def keras_attribute(self, owner: Model | Layer, name: str) -> Value:
        """``model.output``, ``model.layers``, ``layer.output`` and the like."""
        if isinstance(owner, Layer):
            if name in {"output", "outputs"}:
                return self._outputs.get(owner.instance, Tensor(frozenset({owner.instance})))
            return Method(owner, name)
        if owner.kind == "opaque":
            if name in {"output", "outputs"}:
                return Tensor(frozenset({self._spread(owner)}))
            if name == "layers":
                return Items([Layer(self._spread(owner))], exact=False)
            return UNKNOWN if name in {"input", "inputs"} else Method(owner, name)
        if name in {"output", "outputs"}:
            inside = [place.instance for place in owner.places if not place.where.branches]
            return Tensor(
                frozenset(inside), frozenset(place.instance for place in owner.places) - frozenset(inside)
            )
        if name in {"input", "inputs"}:
            return Tensor(
                frozenset(
                    p.instance for p in owner.places if p.instance.qualified_name == "keras.layers.InputLayer"
                )
            )
        if name == "layers":
            return self._layers(owner)
        return Method(owner, name)

    def _layers(self, model: Model) -> Items:
        layers: list[Value] = []
        passed: set[Instance] = set()
        for place in model.places:
            passed.add(place.instance)
            if model.kind == "sequential":
                if place.instance.qualified_name == "keras.layers.InputLayer":
                    continue
                self._outputs.setdefault(place.instance, Tensor(frozenset(passed)))
            inside = place.instance.inside
            layers.append(inside if inside is not None else Layer(place.instance))
        exact = not any(p.where.loops or p.where.branches or p.instance.spread for p in model.places)
        return Items(layers, exact=exact and (model.kind == "sequential" or self._is_chain(model)))

    def _is_chain(self, model: Model) -> bool:
        """Whether the layers of a functional model follow each other, so that its order is that of construction."""
        passed: set[Instance] = set()
        for place in model.places:
            passed.add(place.instance)
            output = self._outputs.get(place.instance)
            if place.instance.qualified_name == "keras.layers.InputLayer":
                if len(passed) > 1:
                    return False
            elif output is None or output.through != passed or output.maybe:
                return False
        return True

    def _spread(self, model: Model) -> Instance:
        """Stands for all the layers of a ready-made network that another model takes over one by one."""
        whole = model.instance
        return Instance(whole.call, whole.number, whole.qualified_name, whole.where, ".*", spread=True)

    def call_keras_method(
        self, owner: Value, name: str, arguments: Arguments, node: cst.Call | None
    ) -> Value:
        """``model.add(…)``, ``model.save(…)``, ``super().__init__(…)`` and other methods that are not the program's."""
        if node is not None:
            self._write(UNKNOWN, owner, name, arguments, node)
        if name == "from_config":
            return self._copied(arguments) or UNKNOWN
        if name in {"get_config", "to_json", "to_yaml"} and isinstance(owner, (Model, Layer)):
            return Configuration(owner)
        if isinstance(owner, Super):
            owner = owner.of_object
            if name == "__init__" and isinstance(owner, Object):
                self.initialize(owner, arguments)
                return UNKNOWN
        if self.trace.dead:
            return merge(arguments.all())
        if isinstance(owner, Model):
            if name == "add":
                self._add(owner, arguments.get(0, "layer") or UNKNOWN)
                return UNKNOWN
            if name == "pop" and owner.places:
                owner.places.pop()
                return UNKNOWN
            if name == "get_layer":
                return self._get_layer(owner, arguments)
        if isinstance(owner, Object) and name == "add":
            added = owner.attributes.setdefault(_ADDED, Items([]))
            if isinstance(added, Items):
                added.items.append(arguments.get(0, "layer") or UNKNOWN)
            self.trace.activity += 1
            return UNKNOWN
        given = owner.given if isinstance(owner, Candidate) else owner
        return merge([given, *arguments.all()])

    def _get_layer(self, model: Model, arguments: Arguments) -> Value:
        name = arguments.get(0, "name")
        if model.kind == "opaque":
            return Layer(self._spread(model))
        layers = self._layers(model)
        if isinstance(name, Known) and isinstance(name.value, str):
            found = self._called(name.value, model)
            if found is not None:
                return found
        elif (index := arguments.get(1, "index")) is not None and layers.exact:
            return constants.element(layers, index)
        everything = frozenset(place.instance for place in model.places)
        tap = Instance(_CALL, 0, "", Where(), None)
        self._outputs[tap] = Tensor(frozenset(), everything)
        return Layer(tap)

    def _called(self, name: str, model: Model) -> Value | None:
        """The layer of a model that has a name, be it given or Keras' own."""
        for place in model.places:
            if place.instance.name_pattern == re.escape(name):
                return place.instance.inside or Layer(place.instance)
        for place in model.places:
            kind = place.instance.qualified_name
            numbered = re.fullmatch(rf"{auto_name(kind.rpartition('.')[2])}(?:_(\d+))?", name)
            if numbered is None or place.instance.name_pattern is not None:
                continue
            peers = [one for one in self.trace.instances if one.qualified_name == kind]
            peers = [one for one in peers if one.name_pattern is None]
            number = int(numbered[1] or 0)
            certain = not any(one.where.loops or one.where.branches for one in peers)
            if certain and number < len(peers) and peers[number] is place.instance:
                return Layer(place.instance)
        return None

    def initialize(self, owner: Object, arguments: Arguments) -> None:
        """``keras.Model.__init__`` of a model of the program: a functional one, or a list of layers."""
        outputs = arguments.get(1, "outputs", "output")
        if owner.of.kind == "model" and outputs is not None and not self.trace.dead:
            owner.outputs = outputs
        listed = arguments.get(0, "layers")
        if owner.of.kind == "model" and isinstance(listed, Items) and layers_in([listed]):
            owner.attributes[_ADDED] = listed

    def _write(self, callee: Value, owner: Value, method: str, arguments: Arguments, node: cst.Call) -> None:
        written = files.written_file(callee, owner, method, arguments)
        if written is None:
            return
        self.trace.activity += 1
        model = owner if owner is not UNKNOWN else arguments.get(0, "model")
        instance = model.instance if isinstance(model, (Model, Object)) else None
        if isinstance(model, Model) and written.known:
            self._saved[written.path] = model
        # Of a call in another module, the program's own call that leads there.
        place = self.trace.caller if self.frame.root().file else node
        if place is not None and (place, written, instance) not in self.trace.files:
            self.trace.files.append((place, written, instance))


def is_library(name: str) -> bool:
    """Whether a dotted name is one of the libraries that everybody uses, which hold no layers but Keras' own."""
    return name.split(".")[0] in _LIBRARIES


def _by_number(instance: Instance) -> int:
    return instance.number


def _listed(value: Value | None) -> Iterable[Value]:
    """The layers of a list, kept in order; of a list of unknown length, those that are known."""
    if isinstance(value, Items):
        return value.items
    if isinstance(value, Either):
        return [either([item for option in value.options for item in _listed(option)])]
    return []


def _unpacked(arguments: Arguments) -> Arguments:
    """The arguments that a configuration, a dict, stands for."""
    config = arguments.get(0, "config")
    if not isinstance(config, Table):
        return replace(arguments, positional=[], keywords={}, code={}, open_keywords=True)
    words = {key: value for key, value in config.items.items() if isinstance(key, str)}
    return Arguments([], words, {}, open_keywords=not config.exact)
