"""From what a reading saw to the constructions of its models, in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import libcst as cst

from guider_ls.source.sites import Fate, Making, Outline, Span, Step
from guider_ls.source.statements import Program
from guider_ls.source.trace import GAP
from guider_ls.source.values import (
    Candidate,
    Instance,
    Object,
    Place,
    Where,
    layers_in,
)


@dataclass(frozen=True, slots=True)
class Construction:
    """One model (or composite layer) that the program makes, with its layers in order."""

    label: str
    kind: Literal["sequential", "functional", "class", "fragment"]
    places: tuple[Place, ...]
    maker: Instance | None


def constructions(program: Program) -> list[Construction]:
    """Every model and composite layer of a program that was run."""
    found = [
        Construction(model.label, model.kind, tuple(model.places), model.instance)
        for model in program.trace.models
        if model.kind != "opaque" and model.places
    ]
    for made in program.trace.objects:
        if made.of.kind != "plain":
            places = _places_of_object(program, made)
            if places:
                found.append(Construction(made.of.name, "class", tuple(places), made.instance))
    found = [_without_gaps(program, one, found) for one in found]
    if not found and program.trace.instances:
        places = [
            Place(instance, instance.where)
            for instance in program.trace.instances
            if program.is_layer(instance)
        ]
        found.append(Construction("", "fragment", tuple(places), None))
    return found


def _without_gaps(
    program: Program, construction: Construction, found: Collection[Construction]
) -> Construction:
    """Put layers that nothing else has, and that were made before, where a model has layers that are not known."""
    if not any(place.instance.call is GAP for place in construction.places):
        return construction
    placed = {place.instance for one in found for place in one.places}
    free = [
        one
        for one in program.trace.instances
        if program.is_layer(one)
        and one not in placed
        and one not in program.trace.wrapped
        and not one.in_call
    ]
    places: list[Place] = []
    for place in construction.places:
        if place.instance.call is not GAP:
            places.append(place)
            continue
        for one in [one for one in free if one.number < place.instance.number]:
            where = one.where | place.where
            places.append(Place(one, Where(where.loops, (*where.branches, program.trace.fresh()))))
            free.remove(one)
    return replace(construction, places=tuple(places))


def _places_of_object(program: Program, made: Object) -> list[Place]:
    if made.outputs is not None:
        return program.between(made.instance, made.outputs)
    instances: list[Instance] = []
    for value in layers_in(made.attributes.values()):
        if isinstance(value, Object) and value.of.kind == "plain":
            continue
        if isinstance(value, Candidate) and not program.is_layer(value.instance):
            continue
        if value.instance not in instances:
            instances.append(value.instance)
    instances.sort(key=lambda instance: instance.number)
    return [Place(instance, instance.where.within(made.instance.where)) for instance in instances]


def placed_calls(found: Collection[Construction]) -> set[int]:
    """Identities of the calls whose layers are part of something."""
    return {id(place.instance.call) for construction in found for place in construction.places}


def callers(found: Collection[Construction]) -> list[cst.Call]:
    """The calls of the program that have layers of other modules made."""
    made = (place.instance.caller for construction in found for place in construction.places)
    return list({id(call): call for call in made if call is not None}.values())


def fates(program: Program, placed: Collection[int]) -> dict[int, Fate]:
    """What becomes of the layers that no construction has, by the identity of their call."""
    found: dict[int, Fate] = {key: "unreached" for key in program.trace.drafts if key not in placed}
    for instance in program.trace.instances:
        key = id(instance.call)
        if key in found:
            found[key] = _fate(program, instance)
    return found


def _fate(program: Program, instance: Instance) -> Fate:
    if instance in program.trace.wrapped:
        return "wrapped"
    if instance.in_call:
        return "in-call"
    if instance in program.trace.replaced:
        return "replaced"
    return "unconnected" if program.is_called(instance) else "uncalled"


def outline(
    found: Collection[Construction],
    index: Mapping[int, int],
    spans: Mapping[cst.Call, Span],
    numbers: Mapping[Instance, int],
) -> tuple[tuple[Outline, ...], dict[Instance, int]]:
    """The constructions in terms of site indices (by the identity of the call), each different one once;
    ``numbers`` are those in the names that Keras chooses. Second, the index of the outline of each model.
    """
    outlines: dict[tuple[object, ...], Outline] = {}
    made: dict[Instance, int] = {}
    for construction in found:
        places = [place for place in construction.places if id(place.instance.call) in index]
        if not places:
            continue
        steps = tuple(
            Step(
                index[id(place.instance.call)],
                place.instance.name_pattern,
                optional=bool(place.where.branches),
                spread=place.instance.spread,
                caller=spans.get(place.instance.caller) if place.instance.caller is not None else None,
            )
            for place in places
        )
        maker = index.get(id(construction.maker.call)) if construction.maker is not None else None
        making = Making(
            construction.maker.name_pattern if construction.maker is not None else ".*",
            tuple(numbers.get(place.instance) for place in places),
            numbers.get(construction.maker) if construction.maker is not None else None,
        )
        new = Outline(
            construction.label,
            construction.kind,
            steps,
            _loops(places),
            () if maker is None else (maker,),
            (making,),
        )
        called_anyhow = tuple(replace(step, caller=None) for step in steps)
        key = (new.kind, called_anyhow, new.loops, new.label if new.kind == "class" else "")
        old = outlines.get(key)
        if construction.maker is not None:
            made[construction.maker] = len(outlines) if old is None else list(outlines).index(key)
        if old is None:
            outlines[key] = new
        else:
            makers = tuple(sorted({*old.makers, *new.makers}))
            same = old.steps if old.steps == steps else called_anyhow
            outlines[key] = replace(
                old,
                label=old.label or new.label,
                makers=makers,
                steps=same,
                makings=(*old.makings, making),
            )
    return tuple(outlines.values()), made


def _loops(places: list[Place]) -> tuple[tuple[int, int], ...]:
    """Stretches of the places that lie inside one loop of unknown count."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for position, place in enumerate(places):
        for loop in place.where.loops:
            first.setdefault(loop, position)
            last[loop] = position + 1
    return tuple(sorted({(first[loop], last[loop]) for loop in first}))
