"""What a model was trained by: the loss of each of its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Loss:
    """One loss, or one for each output, by name or in order."""

    name: str | None = None
    from_logits: bool | None = False
    """``None``: not known, as of a function of the user."""
    parts: tuple[Loss, ...] = ()
    names: tuple[str, ...] = ()
    """Of the outputs that ``parts`` belong to; empty: they are in the order of the outputs."""

    def of_output(self, name: str, index: int) -> Loss:
        """The loss of one output."""
        if self.names:
            return dict(zip(self.names, self.parts, strict=True)).get(name, Loss())
        if self.parts:
            return self.parts[index] if index < len(self.parts) else Loss()
        return self


def loss_of(model: Any) -> Loss:
    """The loss that a model in memory was compiled with, as far as it is one."""
    return _loss(getattr(model, "loss", None))


def loss_of_config(config: Mapping[str, Any]) -> Loss:
    """The loss that the compile configuration in a model's file names."""
    try:
        return _loss_of_config(config.get("loss"))
    except (KeyError, TypeError, AttributeError):
        return Loss()


def _several(losses: Any, one: Any) -> Loss:
    """Of a list or a dictionary."""
    named = isinstance(losses, Mapping)
    parts = tuple(map(one, losses.values() if named else losses))
    names = tuple(map(str, losses)) if named else ()
    if len(parts) == 1:
        return Loss(parts[0].name, parts[0].from_logits, parts, names)
    return Loss(", ".join(str(part.name) for part in parts) or None, False, parts, names)


def _loss(loss: Any) -> Loss:
    if loss is None or isinstance(loss, str):
        return Loss(loss)
    if isinstance(loss, (list, tuple, Mapping)):
        return _several(loss, _loss)
    wrapped = getattr(loss, "func", loss)  # of functools.partial
    name = getattr(loss, "name", None) or getattr(wrapped, "__name__", None) or type(loss).__name__
    options = {**(getattr(loss, "_fn_kwargs", None) or {}), **(getattr(loss, "keywords", None) or {})}
    logits = getattr(loss, "from_logits", options.get("from_logits"))
    if logits is None and _is_of_keras(wrapped):
        logits = False
    return Loss(str(name), None if logits is None else bool(logits))


def _is_of_keras(loss: Any) -> bool:
    module = getattr(loss, "__module__", None) or type(loss).__module__
    return str(module).split(".")[0] in ("keras", "tf_keras", "tensorflow")


def _loss_of_config(loss: Any) -> Loss:
    if loss is None or isinstance(loss, str):
        return Loss(loss)
    if isinstance(loss, (list, tuple)):
        return _several(loss, _loss_of_config)
    if "config" not in loss or "class_name" not in loss:
        return _several(loss, _loss_of_config)
    options = loss["config"]
    if not isinstance(options, Mapping):  # a function, by its name
        return Loss(str(options), False if _names_a_loss(str(options)) else None)
    name = str(loss["class_name"])
    own = ">" in name or ">" in str(loss.get("registered_name") or "")
    logits = options.get("from_logits", None if own else False)
    return Loss(name, None if logits is None else bool(logits))


def _names_a_loss(name: str) -> bool:
    """Whether Keras itself has a loss function of that name."""
    import keras

    return hasattr(keras.losses, name)
