"""Which models a program trained or used, and on what data."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from guider_engine.wire import DataKind

from .data import Fed, is_same

MOST = 16
"""Models that are kept."""


@dataclass(slots=True, eq=False)
class Seen:
    """One model, and what the program did with it. Moments are numbers that grow."""

    model: Any
    first: int
    variable: str = ""
    """The variable that held it where it was used first."""
    trained: int = 0
    """When it was trained last; 0: never."""
    validated: int = 0
    """When it was fitted with validation data last."""
    used: bool = False
    """Trained for a batch or more, evaluated, predicted with or saved."""
    called: bool = False
    """Called by the program, not to be a part of another model."""
    epochs: int = 0
    feeds: dict[DataKind, list[Fed]] = field(default_factory=dict)
    """The latest data of each kind, the last ones last."""
    training: Fed | None = None

    @property
    def tested(self) -> int:
        """When it was evaluated on test data last; 0: never."""
        return max((fed.moment for fed in self.feeds.get("test", ())), default=0)

    def feed(self, fed: Fed) -> None:
        """It was fed these data."""
        kept = self.feeds.setdefault(fed.kind, [])
        kept[:] = [*[other for other in kept if not is_same(other, fed)][-3:], fed]

    def candidates(self) -> Iterator[Fed]:
        """What it was fed; of each kind the latest first."""
        for fed in self.feeds.values():
            yield from reversed(fed)


class Models:
    """The models seen so far; at most `MOST`, and of more those that are used least are dropped."""

    def __init__(self) -> None:
        """None so far."""
        self._seen: dict[int, Seen] = {}
        self._moments = itertools.count(1)
        self._updates: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.dropped = 0

    def moment(self) -> int:
        """A number greater than all before."""
        return next(self._moments)

    def get(self, model: Any) -> Seen | None:
        """What is known of a model."""
        return self._seen.get(id(model))

    def see(self, model: Any) -> Seen:
        """What is known of a model, from now on."""
        found = self._seen.get(id(model))
        if found is None:
            found = self._seen[id(model)] = Seen(model, self.moment())
            if len(self._seen) > MOST:
                oldest = min(
                    (seen for seen in self._seen.values() if seen is not found),
                    key=lambda seen: (bool(seen.trained), bool(seen.tested), seen.first),
                )
                del self._seen[id(oldest.model)]
                self.dropped += 1
        return found

    def updated(self, weights: Iterable[Any]) -> None:
        """An optimizer changes these weights."""
        moment = self.moment()
        for weight in weights:
            self._updates[id(weight)] = (weakref.ref(weight), moment)

    def _updated_last(self, model: Any) -> int:
        """When an optimizer changed a weight of the model last; 0: never."""
        last = 0
        for weight in getattr(model, "trainable_weights", ()):
            known = self._updates.get(id(weight))
            if known is not None and known[0]() is weight:
                last = max(last, known[1])
        return last

    def ordered(self) -> list[Seen]:
        """The one to localize first: evaluated on test data last, fitted with validation, trained last, others."""
        inside = {id(layer) for seen in self._seen.values() for layer in _inside(seen.model)}
        for seen in self._seen.values():
            seen.trained = max(seen.trained, self._updated_last(seen.model))
        kept = [
            seen
            for seen in self._seen.values()
            if seen.used or (seen.called and id(seen.model) not in inside)
        ]
        kept.sort(key=lambda s: (s.tested, s.validated, s.trained, s.first), reverse=True)
        return kept


def keras_of(model: Any) -> ModuleType:
    """The Keras that a model is of; a program may import two."""
    packages = (base.__module__.split(".")[0] for base in type(model).__mro__)
    return sys.modules[next(package for package in packages if package in ("keras", "tf_keras"))]


def names(models: list[Seen], variables: Mapping[str, Any]) -> list[str]:
    """A name for each model, unique: the variable that holds it, else its own."""
    found: list[str] = []
    for seen in models:
        held = next(
            (name for name, value in variables.items() if value is seen.model and name[:1] != "_"), ""
        )
        wanted = held or seen.variable or str(getattr(seen.model, "name", "")) or type(seen.model).__name__
        numbers = itertools.count(2)
        name = wanted
        while name in found:
            name = f"{wanted}_{next(numbers)}"
        found.append(name)
    return found


def _inside(model: Any) -> Iterator[Any]:
    """Every layer below a model."""
    try:
        yield from model._flatten_layers(include_self=False)
    except Exception:  # never built, or a class with layers of its own making
        return
