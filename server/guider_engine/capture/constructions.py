"""Which call of the project's own code constructed each layer."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from guider_engine.wire import Origin, Stray

from .stack import Stack, StackReader

_OF_BIDIRECTIONAL = ("forward_", "backward_")


@dataclass(slots=True)
class Construction:
    """One layer that was constructed."""

    layer: weakref.ref[Any]
    class_name: str
    stack: Stack
    name: str = ""
    source: Construction | None = None
    """What it is a copy of."""

    @property
    def calls(self) -> tuple[Origin, ...]:
        """The calls that constructed it; of a copy, those that constructed what it is a copy of."""
        source = self.source
        if source is None or self._differs_from(source):
            return self.stack.calls
        return source.calls

    def _differs_from(self, source: Construction) -> bool:
        """Whether it only happens to have the name: two layers of different programs, saved and loaded."""
        own, other = self.layer(), source.layer()
        if own is None or other is None:
            return False
        try:
            return bool(
                {**own.get_config(), "name": ""} != {**other.get_config(), "name": ""}
            )  # one may be renamed
        except Exception:  # a layer of the program without a configuration
            return False


class Constructions:
    """Every construction of a layer while the program runs; keeps no layer alive."""

    def __init__(self, stacks: StackReader) -> None:
        """Nothing was constructed yet."""
        self._stacks = stacks
        self._all: list[Construction] = []
        self._by_id: dict[int, Construction] = {}
        self._by_name: dict[tuple[str, str], Construction] = {}

    def constructed(self, layer: Any, frame: FrameType | None) -> None:
        """A layer came into being, without a name so far."""
        stack = self._stacks.read(frame)
        construction = Construction(weakref.ref(layer), type(layer).__name__, stack)
        self._all.append(construction)
        self._by_id[id(layer)] = construction

    def named(self, layer: Any) -> None:
        """A layer has its name."""
        construction = self._of(layer)
        if construction is None:
            return
        construction.name = str(layer.name)
        if construction.stack.copied:
            construction.source = self._original(construction)
        self._by_name[construction.class_name, construction.name] = construction

    def calls(self, layer: Any) -> tuple[Origin, ...]:
        """The calls of the project's own code that constructed the layer, innermost first; empty: none is known."""
        construction = self._of(layer)
        return construction.calls if construction is not None else ()

    def strays(self, used: Iterable[Any]) -> tuple[Stray, ...]:
        """What the project's own code constructed and none of ``used`` is, in the order of construction.

        A line that made a layer of ``used`` as well is left out: it made others for models of before.
        """
        members = [found for found in map(self._of, used) if found is not None]
        members += [found.source for found in members if found.source is not None]
        known = {(member.class_name, member.calls[:1]) for member in members}
        known |= {(member.class_name, member.stack.calls[:1]) for member in members}
        counts: dict[tuple[Origin, str, bool], int] = {}
        for one in self._all:
            if not one.stack.direct or not one.calls or one.class_name == "InputLayer":
                continue
            if (one.class_name, one.calls[:1]) not in known:
                key = (one.calls[0], one.class_name, one.stack.in_call)
                counts[key] = counts.get(key, 0) + 1
        return tuple(Stray(*key[:2], count, key[2]) for key, count in counts.items())

    def _of(self, layer: Any) -> Construction | None:
        found = self._by_id.get(id(layer))
        return found if found is not None and found.layer() is layer else None

    def _original(self, copy: Construction) -> Construction | None:
        """The latest earlier layer of the copy's class and name."""
        for prefix in ("", *_OF_BIDIRECTIONAL):
            found = self._by_name.get((copy.class_name, copy.name.removeprefix(prefix)))
            if found is not None:
                return found
        for other in reversed(self._all):  # one that was given another name since
            layer = other.layer()
            if other is copy or other.class_name != copy.class_name or layer is None:
                continue
            if getattr(layer, "name", None) == copy.name:
                return other
        return None
