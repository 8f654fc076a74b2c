"""Which of several named arrays are the inputs and the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from guider_engine.errors import EngineFailure, unusable
from guider_engine.load.inputs import ModelInput
from guider_engine.load.names import inputs_and_labels
from guider_engine.wire import Inputs


@dataclass(frozen=True, slots=True)
class Selected:
    """Names of the arrays; by the model's inputs where it has several."""

    inputs: str | dict[str, str]
    labels: str | dict[str, str]
    """By the model's outputs, where there are several."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        parts = (self.inputs, self.labels)
        return tuple(
            name for part in parts for name in (part.values() if isinstance(part, dict) else (part,))
        )

    @property
    def described(self) -> str:
        """For people."""
        return ", ".join(self.names)

    def pick(self, arrays: Mapping[str, Any]) -> tuple[Any, Any]:
        """Inputs and labels."""
        inputs, labels = (
            {key: arrays[name] for key, name in part.items()} if isinstance(part, dict) else arrays[part]
            for part in (self.inputs, self.labels)
        )
        return inputs, labels


def select(origin: str, names: tuple[str, ...], options: Inputs, wanted: tuple[ModelInput, ...]) -> Selected:
    """By the setting, the names of the model's inputs, and usual names.

    Several arrays of labels are named as the outputs, ``y_`` before them: ``y_age``, ``y_kind``. The labels of an
    autoencoder may be its inputs.

    Raises:
        EngineFailure: the names do not say it.
    """
    if options.label and options.label not in names:
        raise _unclear(origin, names, f"no {options.label}, which the setting label names")
    of_inputs = {one.name: name for one in wanted if (name := _named(one.name, names)) is not None}
    if len(wanted) > 1 and len(of_inputs) == len(wanted):
        rest = tuple(name for name in names if name not in of_inputs.values())
        return Selected(of_inputs, _labels(origin, rest, options, names))
    if options.label:
        rest = tuple(name for name in names if name != options.label)
        if len(rest) == 1:
            return Selected(rest[0], options.label)
        pair = inputs_and_labels((*rest, "y")) or inputs_and_labels((*rest, "y_test"))
        if pair is None or pair[0] not in rest:
            raise _unclear(origin, names, f"several arrays beside {options.label}")
        return Selected(pair[0], options.label)
    pair = inputs_and_labels(names)
    if pair is not None:
        return Selected(*pair)
    several = {name.removeprefix("y_"): name for name in names if name.startswith("y_")}
    rest = tuple(name for name in names if name not in several.values())
    if len(several) > 1 and len(rest) == 1:
        return Selected(rest[0], several)
    if len(names) == 1 and options.task == "autoencoder":
        return Selected(names[0], names[0])
    missing = [one.name for one in wanted if one.name not in of_inputs]
    raise _unclear(origin, names, f"but the model takes {', '.join(missing)}" if len(wanted) > 1 else "")


def _labels(
    origin: str, rest: tuple[str, ...], options: Inputs, names: tuple[str, ...]
) -> str | dict[str, str]:
    if options.label:
        return options.label
    if len(rest) == 1:
        return rest[0]
    several = {name.removeprefix("y_"): name for name in rest if name.startswith("y_")}
    if several and len(several) == len(rest):
        return several
    pair = inputs_and_labels(("x", *rest)) or inputs_and_labels(("x_test", *rest))
    if pair is None or pair[1] not in rest:
        raise _unclear(origin, names, "")
    return pair[1]


def _named(name: str, names: tuple[str, ...]) -> str | None:
    return next((found for found in (name, f"x_{name}") if found in names), None)


def _unclear(origin: str, names: tuple[str, ...], but: str) -> EngineFailure:
    return unusable(
        "test-data-keys",
        f"{origin} holds {', '.join(names) or 'nothing'}{f', {but}' if but else ''}; expected inputs and labels named "
        "such as x_test and y_test, X and y, test_images and test_labels, or the setting label to name the labels "
        "(--label): np.savez('test.npz', x_test=…, y_test=…). Several inputs are named as the model's; an autoencoder "
        "needs no labels where the setting task says so.",
    )
