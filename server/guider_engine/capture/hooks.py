"""Watching Keras while the program uses it: what it constructs, trains, evaluates, predicts with and saves.

A hook calls the original with what the program passed; whatever goes wrong in a hook becomes a notice, never an error
of the program.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from guider_engine.load.keras_import import BACKENDS
from guider_engine.request import Report
from guider_engine.wire import DataKind

from .constructions import Constructions
from .data import Batches, Fed, flowing, is_generator, is_same_array
from .limits import Limits
from .models import Models, Seen, keras_of
from .progress import new_callback
from .stack import StackReader

Original = Callable[..., Any]


class Hooks:
    """Patches the classes of a Keras, and takes the patches back."""

    def __init__(
        self,
        stacks: StackReader,
        constructions: Constructions,
        models: Models,
        limits: Limits,
        report: Report,
        epochs: int | None,
        before_training: Callable[[], None],
    ) -> None:
        """``epochs`` is the most of one training; ``before_training`` is called as each begins."""
        self.keras: ModuleType | None = None
        self.failures: list[str] = []
        """What went wrong in hooks."""
        self._stacks = stacks
        self._constructions = constructions
        self._models = models
        self._limits = limits
        self._report = report
        self._epochs = epochs
        self._before_training = before_training
        self._undo: list[Callable[[], None]] = []
        self._process = os.getpid()
        self._inside = threading.local()

    def install(self, keras: ModuleType) -> None:
        """Watch a Keras that was just imported: version 2 or 3, by whatever name."""
        layer, model = keras.layers.Layer, keras.Model
        if self._models_are_watched(model):
            return
        self.keras = keras
        backend = getattr(keras.backend, "backend", lambda: "tensorflow")()
        if backend not in BACKENDS:
            self._limits.end("backend")
            self._limits.check()
        self._patch_new(layer)
        self._patch(layer, "__init__", self._init)
        self._patch(model, "__call__", self._call)
        self._patch(model, "fit", self._fit)
        self._patch(model, "evaluate", self._evaluate)
        for name in ("predict", "predict_on_batch"):
            self._patch(model, name, self._predict)
        self._patch(model, "train_on_batch", functools.partial(self._on_batch, "training"))
        self._patch(model, "test_on_batch", functools.partial(self._on_batch, "test"))
        self._patch(model, "save", self._save)
        self._patch_optimizers(keras.optimizers)

    def uninstall(self) -> None:
        """Everything is as it was."""
        while self._undo:
            self._undo.pop()()

    def _patch_optimizers(self, optimizers: Any) -> None:
        """Loops of the program's own train by them."""
        if hasattr(optimizers.Optimizer, "apply"):  # Keras 3, whose apply_gradients calls it
            self._patch(optimizers.Optimizer, "apply", self._apply)
            return
        legacy = getattr(getattr(optimizers, "legacy", None), "Optimizer", optimizers.Optimizer)
        for optimizer in {optimizers.Optimizer, legacy}:
            self._patch(optimizer, "apply_gradients", self._apply_gradients)

    def _models_are_watched(self, model: type[Any]) -> bool:
        return hasattr(vars(model).get("fit"), "_watched_by_guider")

    # Patching

    def _patch(self, owner: type[Any], name: str, make: Callable[[Original], Original]) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return
        hook = functools.wraps(original)(make(original))
        hook.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
        hook._watched_by_guider = True  # type: ignore[attr-defined]
        self._replace(owner, name, hook)

    def _patch_new(self, layer: type[Any]) -> None:
        original = layer.__new__

        @functools.wraps(original)
        def __new__(cls: type[Any], *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            made = original(cls, *args, **kwargs)
            if isinstance(made, layer):
                self._try(self._constructions.constructed, made, sys._getframe(1))
            return made

        __new__.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
        self._replace(layer, "__new__", staticmethod(__new__))

    def _replace(self, owner: type[Any], name: str, value: Any) -> None:
        if name in vars(owner):
            self._undo.append(functools.partial(setattr, owner, name, vars(owner)[name]))
        else:
            self._undo.append(functools.partial(delattr, owner, name))
        setattr(owner, name, value)

    def _try(self, hook: Callable[..., Any], *arguments: Any) -> Any:
        """What a hook gives; nothing if it fails, or in a process that the program forked."""
        if os.getpid() != self._process:
            return None
        try:
            return hook(*arguments)
        except Exception as error:
            text = f"{getattr(hook, '__name__', hook)}: {type(error).__name__}: {error}"
            if text not in self.failures:
                self.failures.append(text)
            return None

    # Layers

    def _init(self, original: Original) -> Original:
        def hook(layer: Any, *args: Any, **kwargs: Any) -> None:
            original(layer, *args, **kwargs)
            self._try(self._constructions.named, layer)

        return hook

    # Models

    def _call(self, original: Original) -> Original:
        def hook(model: Any, *args: Any, **kwargs: Any) -> Any:
            depth = getattr(self._inside, "calls", 0)
            self._inside.calls = depth + 1
            try:
                result = original(model, *args, **kwargs)
            finally:
                self._inside.calls = depth
            if depth == 0 and self._models.get(model) is None:
                self._try(self._called, model, args, kwargs, sys._getframe(1))
            self._limits.check()
            return result

        return hook

    def _called(self, model: Any, args: Any, kwargs: Any, frame: FrameType) -> None:
        """Called by the project's own code with data, not to be a part of another model."""
        symbolic = any("KerasTensor" in type(value).__name__ for value in _flat((args, kwargs)))
        if symbolic or not self._stacks.is_called_by_own(frame) or self._stacks.read(frame).in_call:
            return
        self._see(model, frame).called = True

    def _fit(self, original: Original) -> Original:
        def hook(model: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            call = self._try(self._fitting, original, model, args, kwargs, frame)
            if call is None:
                return original(model, *args, **kwargs)
            result = original(*call.args, **call.kwargs)
            self._models.see(model).used = True
            return result

        return hook

    def _fitting(
        self, original: Original, model: Any, args: Any, kwargs: Any, frame: FrameType
    ) -> inspect.BoundArguments | None:
        call = _bound(original, model, args, kwargs)
        if call is None:
            return None
        self._before_training()
        given = call.arguments
        seen = self._see(model, frame)
        split = float(given.get("validation_split") or 0.0)
        held = given.get("validation_data")
        split = 0.0 if held is not None else split
        weighted = any(given.get(name) is not None for name in ("sample_weight", "class_weight"))
        x, y = given.get("x"), given.get("y")
        if is_generator(x):
            batches = Batches()
            given["x"], x = flowing(x, batches), batches
        training = self._fed(frame, "training", "training data of fit", x, y, given.get("steps_per_epoch"))
        training.split, training.weighted = split, weighted
        seen.training = training
        seen.feed(training)
        if held is not None:
            if is_generator(held):
                batches = Batches()
                given["validation_data"], held = flowing(held, batches), batches
            self._validated(seen, frame, held, given.get("validation_steps"))
        elif split:
            fed = self._fed(frame, "validation", f"validation_split={split:g} of fit", x, y, None)
            fed.split, fed.held_out, fed.weighted = split, True, given.get("sample_weight") is not None
            seen.feed(fed)
            seen.validated = fed.moment
        self._limit_and_report(call, seen)
        return call

    def _validated(self, seen: Seen, frame: FrameType, data: Any, steps: int | None) -> None:
        pair = isinstance(data, (tuple, list)) and len(data) in (2, 3)
        x, y = (data[0], data[1]) if pair else (data, None)
        fed = self._fed(frame, "validation", "validation data of fit", x, y, steps)
        fed.weighted = pair and len(data) == 3 and data[2] is not None
        seen.feed(fed)
        seen.validated = fed.moment

    def _limit_and_report(self, call: inspect.BoundArguments, seen: Seen) -> None:
        given = call.arguments
        first, last = int(given.get("initial_epoch") or 0), int(given.get("epochs") or 1)
        if self._epochs is not None and last - first > self._epochs:
            last = given["epochs"] = first + self._epochs
        own = new_callback(keras_of(seen.model), seen, self._models, self._limits, self._report, first, last)
        callbacks = given.get("callbacks")
        if callbacks is None or isinstance(callbacks, (list, tuple)):
            given["callbacks"] = [*(callbacks or ()), own]
        elif hasattr(callbacks, "on_batch_end") and not hasattr(callbacks, "append"):
            given["callbacks"] = [callbacks, own]

    def _evaluate(self, original: Original) -> Original:
        def hook(model: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            call = None
            if not _is_keras(frame):  # fit evaluates its validation data itself
                call = self._try(self._evaluating, original, model, args, kwargs, frame)
            result = (
                original(*call.args, **call.kwargs) if call is not None else original(model, *args, **kwargs)
            )
            self._limits.check()
            return result

        return hook

    def _evaluating(
        self, original: Original, model: Any, args: Any, kwargs: Any, frame: FrameType
    ) -> inspect.BoundArguments | None:
        call = _bound(original, model, args, kwargs)
        if call is None:
            return None
        self._report("program", "evaluating", None)
        given = call.arguments
        seen = self._see(model, frame)
        seen.used = True
        x = given.get("x")
        if is_generator(x):
            batches = Batches()
            given["x"], x = flowing(x, batches), batches
        fed = self._fed(frame, "test", "data of evaluate", x, given.get("y"), given.get("steps"))
        fed.weighted = given.get("sample_weight") is not None
        if seen.training is not None and is_same_array(seen.training.x, x):
            fed.kind, fed.what = "training", "training data, passed to evaluate"
        seen.feed(fed)
        return call

    def _predict(self, original: Original) -> Original:
        def hook(model: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if not _is_keras(frame):
                self._try(self._predicting, original, model, args, kwargs, frame)
            result = original(model, *args, **kwargs)
            self._limits.check()
            return result

        return hook

    def _predicting(self, original: Original, model: Any, args: Any, kwargs: Any, frame: FrameType) -> None:
        call = _bound(original, model, args, kwargs)
        if call is None:
            return
        seen = self._see(model, frame)
        seen.used = True
        x = call.arguments.get("x")
        if hasattr(x, "shape") or isinstance(x, list):
            seen.feed(self._fed(frame, "", "inputs of predict", x, None, None))

    def _on_batch(self, kind: DataKind, original: Original) -> Original:
        def hook(model: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            self._try(self._batch, kind, original, model, args, kwargs, frame)
            result = original(model, *args, **kwargs)
            self._limits.check()
            return result

        return hook

    def _batch(
        self, kind: DataKind, original: Original, model: Any, args: Any, kwargs: Any, frame: FrameType
    ) -> None:
        call = _bound(original, model, args, kwargs)
        if call is None:
            return
        seen = self._see(model, frame)
        seen.used = True
        if kind == "training":
            if not seen.trained:
                self._before_training()
            seen.trained = self._models.moment()
        method = original.__name__
        noted = next((fed for fed in seen.feeds.get(kind, ()) if fed.what == f"batches of {method}"), None)
        if noted is None:
            noted = self._fed(frame, kind, f"batches of {method}", Batches(), None, None)
            seen.feed(noted)
        noted.moment = self._models.moment()
        noted.x.add(call.arguments.get("x"), call.arguments.get("y"))

    def _apply(self, original: Original) -> Original:
        def hook(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
            result = original(optimizer, grads, trainable_variables)
            weights = optimizer._trainable_variables if trainable_variables is None else trainable_variables
            self._try(self._models.updated, weights)
            return result

        return hook

    def _apply_gradients(self, original: Original) -> Original:
        def hook(optimizer: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)  # often a zip, which can be read only once
            self._try(self._models.updated, [weight for _, weight in pairs])
            return original(optimizer, pairs, *args, **kwargs)

        return hook

    def _save(self, original: Original) -> Original:
        def hook(model: Any, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if not _is_keras(frame):  # checkpoints of callbacks save what fit knows already
                self._try(self._saving, model, frame)
            return original(model, *args, **kwargs)

        return hook

    def _saving(self, model: Any, frame: FrameType) -> None:
        self._see(model, frame).used = True

    def _see(self, model: Any, frame: FrameType) -> Seen:
        seen = self._models.see(model)
        if not seen.variable:
            held = (name for name, value in frame.f_locals.items() if value is model)
            seen.variable = next((name for name in held if name != "self"), "")
        return seen

    def _fed(self, frame: FrameType, kind: DataKind, what: str, x: Any, y: Any, steps: Any) -> Fed:
        wanted = int(steps) if isinstance(steps, int) else None
        return Fed(kind, what, self._stacks.place(frame), self._models.moment(), x, y, wanted)


def _bound(original: Original, model: Any, args: Any, kwargs: Any) -> inspect.BoundArguments | None:
    """The arguments by name; ``None`` where the call is wrong, which the original then says."""
    try:
        return inspect.signature(original).bind(model, *args, **kwargs)
    except TypeError:
        return None


def _is_keras(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] in ("keras", "tf_keras")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [item for part in value.values() for item in _flat(part)]
    if isinstance(value, (list, tuple)):
        return [item for part in value[:100] for item in _flat(part)]
    return [value]
