"""Which labels belong to which output of a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from guider_engine.errors import unusable
from guider_engine.load.tests.testset import Block, TestSet
from guider_engine.wire import ModelOutput, ModelSummary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from guider_engine.load.tests.testset import Arrays

Path = tuple[str | int, ...]

ENOUGH = 10_000
"""Labels that are looked at, where reading them costs nothing …"""
MOST_VALUES = 4_000_000
"""… and if they are not more numbers than this."""


@dataclass(frozen=True, slots=True)
class Head:
    """One output of a model, with the labels that it is judged by."""

    name: str
    output: ModelOutput
    path: Path
    """Keys and indices that lead to it in what the model puts out."""
    label: Path
    """The same for its labels."""
    inputs: Arrays
    """Of the sample, as the model takes them."""
    labels: NDArray[Any]
    """Of some tests, shape (tests, …): the sample's, or more."""
    outputs: NDArray[Any]
    """Of the sample, shape (tests, …)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the output of one test."""
        return self.outputs.shape[1:]

    @property
    def units(self) -> int:
        """How many numbers the output of one test has."""
        return math.prod(self.outputs.shape[1:])

    @property
    def columns(self) -> int:
        """How many numbers the label of one test has."""
        return math.prod(self.labels.shape[1:])

    @property
    def loss(self) -> str:
        """Lower case; empty: not known."""
        return (self.output.loss or "").lower()

    @property
    def bounded(self) -> bool:
        """Whether the activation makes probabilities."""
        return self.output.activation in ("sigmoid", "softmax", "hard_sigmoid")


def at(path: Path) -> Callable[[Any], Any]:
    """What takes one array out of a structure."""

    def pick(structure: Any) -> Any:
        for key in path:
            structure = structure[key]
        return structure

    return pick


def heads_of(
    model: ModelSummary, tests: TestSet, sample: Block, outputs: Any
) -> tuple[tuple[Head, ...], tuple[str, ...]]:
    """The outputs that have labels, and the names of those that have none.

    Labels belong to outputs by name, else in order. One array of labels belongs to the only output that was trained.

    Raises:
        EngineFailure: an output or a label is no array of numbers with an entry a test, or it is not known which
            labels are whose.
    """
    found = list(_outputs(model, outputs, len(sample)))
    if not found:
        raise unusable("output-shape", "The model puts out nothing that could be judged.")
    pairs = _pairs([(head.output, head.path) for head in found], sample.labels)
    known = _known_labels(tests, sample)
    judged = [
        replace(head, label=pairs[i], labels=_numbers(at(pairs[i])(known)), inputs=sample.inputs)
        for i, head in enumerate(found)
        if i in pairs
    ]
    return tuple(judged), tuple(head.name for i, head in enumerate(found) if i not in pairs)


def _outputs(model: ModelSummary, outputs: Any, rows: int) -> Iterator[Head]:
    leaves = list(_leaves(outputs, ()))
    described = {output.name: output for output in model.outputs}
    for i, (path, array) in enumerate(leaves):
        named = path[-1] if path and isinstance(path[-1], str) else None
        output = described.get(named) if named is not None else None
        if output is None and len(model.outputs) == len(leaves):
            output = model.outputs[i]
        if output is None:
            output = _undescribed(model, str(named or i), only=len(leaves) == 1)
        if not model.outputs and len(leaves) == 1 and model.layers:
            output = replace(output, activation=model.layers[-1].activation)
        name = str(named or output.name)
        array = np.asarray(array)
        if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
            raise unusable(
                "output-shape",
                f"The output {name} is of type {array.dtype}; only real numbers can be judged.",
            )
        if array.ndim == 0 or len(array) != rows:
            raise unusable(
                "output-shape",
                f"For {rows} tests the output {name} has the shape {array.shape}: its first axis is not the test, so "
                "it does not say which test is right. The model must put out something for each test; is the result "
                "of the last layer summed or averaged over the batch?",
            )
        if array.size == 0:
            raise unusable("output-shape", f"The output {name} is empty: its shape is {array.shape}.")
        array = array if array.dtype.kind in "biu" else array.astype(np.float64)
        yield Head(name, replace(output, name=name), path, (), (), np.empty(0), array)


def _undescribed(model: ModelSummary, name: str, only: bool) -> ModelOutput:
    if not only:
        return ModelOutput(name, None, None, None, None)
    logits = model.from_logits if model.loss else None
    return ModelOutput(name if model.outputs else "output", None, None, model.loss, logits)


def _leaves(structure: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(structure, dict):
        for key, value in structure.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(structure, (list, tuple)):
        for i, value in enumerate(structure):
            yield from _leaves(value, (*path, i))
    else:
        yield path, structure


def _pairs(outputs: list[tuple[ModelOutput, Path]], labels: Arrays) -> dict[int, Path]:
    """Which labels belong to the output of each number."""
    names = [output.name for output, _ in outputs]
    if isinstance(labels, dict):
        pairs: dict[int, Path] = {i: (name,) for i, name in enumerate(names) if name in labels}
        if not pairs and len(labels) == len(names) == 1:
            return {0: (next(iter(labels)),)}
        if not pairs:
            raise unusable(
                "several-outputs",
                f"The model puts out {_listed(names)}, the test set has labels named {_listed(list(labels))}. Name "
                "the labels like the outputs (in an .npz: y_NAME).",
            )
        return pairs
    if isinstance(labels, tuple) and len(labels) != 1:
        if len(labels) == len(names):
            return {i: (i,) for i in range(len(names))}
        trained = [i for i, (output, _) in enumerate(outputs) if output.loss]
        if len(labels) == len(trained):
            return {i: (k,) for k, i in enumerate(trained)}
        raise unusable(
            "several-outputs",
            f"The model puts out {_listed(names)}, the test set has {len(labels)} arrays of labels, and which belong "
            "to which output is not known. Name the labels like the outputs (in an .npz: y_NAME).",
        )
    only: Path = (0,) if isinstance(labels, tuple) else ()
    if len(names) == 1:
        return {0: only}
    trained = [i for i, (output, _) in enumerate(outputs) if output.loss]
    if len(trained) == 1:
        return {trained[0]: only}
    raise unusable(
        "several-outputs",
        f"The model puts out {_listed(names)}, but the test set has one array of labels, and whose they are is not "
        "known. Name the labels like their output (in an .npz: y_NAME); outputs without labels are not judged.",
    )


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]


def _numbers(labels: Any) -> NDArray[Any]:
    array = np.asarray(labels)
    if array.dtype.kind not in "biuf":
        raise unusable(
            "label-type", f"Labels are of type {array.dtype}; expected numbers, or one class name a test."
        )
    return array


def _known_labels(tests: TestSet, sample: Block) -> Arrays:
    """Labels of up to `ENOUGH` tests where the inputs beside them are views of an array, else those of the sample."""
    if tests.total is None or tests.total <= len(sample):
        return sample.labels
    values = sum(int(np.asarray(a).size) for _, a in _leaves(sample.labels, ()))
    enough = min(ENOUGH, MOST_VALUES * len(sample) // max(1, values))
    blocks = []
    rows = 0
    for block in tests.blocks(len(sample)):
        if not all(isinstance(a, np.ndarray) and a.base is not None for _, a in _leaves(block.inputs, ())):
            return sample.labels
        blocks.append(block.labels)
        rows += len(block)
        if rows >= enough:
            break
    paths = [path for path, _ in _leaves(sample.labels, ())]
    joined = {path: np.concatenate([at(path)(labels) for labels in blocks]) for path in paths}
    if isinstance(sample.labels, dict):
        return {name: joined[name,] for name in sample.labels}
    if isinstance(sample.labels, tuple):
        return tuple(joined[i,] for i in range(len(sample.labels)))
    return joined[()]
