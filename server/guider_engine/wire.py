"""What the engine and the language server say to each other; the only module both sides import.

Standard library only, no NumPy, importable by every supported Python. All values are immutable and
JSON-able: non-finite numbers travel as ``None``.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

PROTOCOL = 3
"""Raised whenever a message changes its meaning; both sides compare it in `Hello`."""

Formula = Literal["tarantula", "ochiai", "dstar", "op2", "barinel"]
FORMULAS: tuple[Formula, ...] = ("tarantula", "ochiai", "dstar", "op2", "barinel")
Aggregation = Literal["mean-gini", "mean"]
AGGREGATIONS: tuple[Aggregation, ...] = ("mean-gini", "mean")
Task = Literal["classification", "multi-label", "regression", "segmentation", "autoencoder", "custom"]
"""What a test is judged by: one class (of two or more), a set of classes, numbers, one class for each of many places
(pixels, time steps), its own reconstruction, or a function of the user."""
TaskChoice = Literal["auto", "classification", "multi-label", "regression", "segmentation", "autoencoder"]
TASK_CHOICES: tuple[TaskChoice, ...] = (
    "auto",
    "classification",
    "multi-label",
    "regression",
    "segmentation",
    "autoencoder",
)
Neuron = Literal["unit", "channel"]
NEURONS: tuple[Neuron, ...] = ("unit", "channel")
Recurrent = Literal["all", "last", "max"]
RECURRENT: tuple[Recurrent, ...] = ("all", "last", "max")
Outcome = Literal["ranking", "no-failure-signal"]
Stage = Literal["import", "model", "tests", "trace", "spectrum", "statistics", "program", "record"]
FailureKind = Literal["input", "environment", "engine", "cancelled"]

LayerPath = tuple[int, ...]
"""Where a layer sits: ``(3,)`` is ``model.layers[3]``, ``(3, 0)`` the first layer inside it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A call in a source file: 0-based lines, 0-based columns in code points, end exclusive.

    Columns are ``None`` where the interpreter does not know them (Python 3.10).
    """

    file: str
    """Absolute path."""
    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """One layer of a trained model, as the mapper needs to know it."""

    path: LayerPath
    name: str
    class_name: str
    builtin: bool
    """Whether the class is Keras' own (False: defined by the program or a third package)."""
    config: Mapping[str, Any]
    """``layer.get_config()`` as JSON data; objects in it are ``{"class_name", "config"}``."""
    parameters: int
    output_shape: tuple[int | None, ...] | None
    """Shape with the batch axis as ``None``; ``None`` where it is not one known tensor."""
    activation: str | None = None
    inner: tuple[ModelLayer, ...] = ()
    """Layers of a nested model or of a composite layer that is not Keras' own."""
    origin: Origin | None = None
    """Where it was constructed, if the program was watched while it ran (`Capture`): the innermost call of the
    project's own code, of the layer that it is a clone of where it is one."""
    callers: tuple[Origin, ...] = ()
    """The calls of the project's own code around ``origin``, innermost first."""


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """One output of a model, and what it was trained by."""

    name: str
    """Of the output where outputs have names, else of the layer that puts it out."""
    shape: tuple[int | None, ...] | None
    """With the batch axis; ``None``: known only when the model runs."""
    activation: str | None
    """Of the layer that puts it out; ``None``: not known."""
    loss: str | None
    from_logits: bool | None
    """As the loss was compiled; ``None``: not known."""


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """A loaded model without its weights."""

    name: str
    class_name: str
    layers: tuple[ModelLayer, ...]
    loss: str | None
    from_logits: bool
    outputs: tuple[ModelOutput, ...] = ()
    """In the order in which the model puts them out; empty: known only when the model runs."""

    def all_layers(self) -> Iterator[ModelLayer]:
        """Every layer in model order, each before those inside it."""
        pending = list(reversed(self.layers))
        while pending:
            layer = pending.pop()
            yield layer
            pending += reversed(layer.inner)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests there were, and what the oracle said of them."""

    total: int
    passed: int
    failed: int
    available: int | None = None
    """How many the test set holds, where only some of them were run."""


@dataclass(frozen=True, slots=True)
class FailingTest:
    """A failing test worth looking at (the most confidently wrong ones first)."""

    index: int
    expected: str
    actual: str
    confidence: float | None


@dataclass(frozen=True, slots=True)
class ActivationStatistics:
    """Activation of one neuron on the tests of one outcome (pass or fail); ``tests`` of them were read."""

    tests: int
    mean: float | None
    std: float | None


@dataclass(frozen=True, slots=True)
class NeuronScore:
    """One neuron: its hit spectrum (test counts), suspiciousness and activation."""

    position: tuple[int, ...]
    """Index in the shape of the layer's neurons, e.g. ``(7,)`` or ``(row, column, channel)``."""
    suspiciousness: float
    a_ef: int
    a_ep: int
    a_nf: int
    a_np: int
    weighted_ef: float
    weighted_ep: float
    passing: ActivationStatistics
    failing: ActivationStatistics
    minimum: float | None
    maximum: float | None
    condition: Literal["", "dead", "saturated", "constant"] = ""


@dataclass(frozen=True, slots=True)
class LayerScore:
    """One layer of the ranking. ``suspiciousness`` and ``rank`` are ``None`` when nothing was ranked."""

    path: LayerPath
    suspiciousness: float | None
    rank: int | None
    """1 is the most suspicious; tied layers share the best rank of their group."""
    tied: bool
    neurons: int
    """How many the layer has; what one is says ``neuron``."""
    sampled: int
    """Neurons whose spectrum was kept (with the repetitions of sampling with replacement)."""
    suspicious: int
    """Of ``sampled``: active on more than half of the failing tests."""
    dead: int
    """Of ``measured``, as are ``saturated`` and ``non_finite``."""
    saturated: int
    non_finite: int
    """Of ``measured``: with a NaN or an infinity on a test that was read for the statistics."""
    top: tuple[NeuronScore, ...]
    inner: tuple[LayerScore, ...] = ()
    measured: int = 0
    """Of ``sampled``: whose activation was measured (all, unless a layer has very many)."""
    ranks: tuple[int, int] | None = None
    """Best and worst rank that another sample of tests of this size would give, with 95 % confidence (jackknife)."""
    neuron: str = ""
    """What a neuron of this layer is, for people: ``unit``, ``mean of a channel over 26×26``, ``unit, last of 80``."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the reader of a result has to know; ``code`` is stable."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files and options of one localization. Paths are absolute."""

    model: str
    """A ``.keras``, ``.h5`` or weights file, a SavedModel's folder, or ``module:function`` returning a model; empty:
    ``load`` returns it."""
    test_data: tuple[str, ...]
    """One ``.npz``, ``.csv``, ``.parquet`` or HDF5 file, two ``.npy`` (inputs, labels), a folder (of images by class,
    or a saved ``tf.data`` dataset), or ``module:function``; empty: ``load`` returns them."""
    root: str
    """Folder of the project: importable while ``module:function`` is resolved, and the working directory."""
    formula: Formula = "ochiai"
    aggregation: Aggregation = "mean-gini"
    weighted: bool = True
    threshold: float = 0.1
    neurons_per_layer: int | None = 200
    """``None`` keeps every neuron."""
    seed: int = 7
    """Of the sampling of neurons and of tests."""
    task: TaskChoice = "auto"
    safe_mode: bool = True
    load: str = ""
    """``module:function`` returning the model, or ``(model, tests)``, or ``(model, inputs, labels)``. Where ``model``
    is a file of weights alone, they are loaded into the model that it returns."""
    custom_objects: str = ""
    """``module`` that registers them when it is imported, or ``module:name`` of a dictionary, a class, or a function
    that returns a dictionary."""
    label: str = ""
    """Name of the column or array that holds the labels; empty: found by its name."""
    image_scale: float = 1.0
    """What the pixels (0 to 255) of an image folder are multiplied by."""
    max_tests: int | None = None
    """Most tests that are run, drawn by class; ``None``: all."""
    neuron: Neuron = "unit"
    recurrent: Recurrent = "all"
    """Which time steps of a layer that puts out a sequence count: all, the last, or the maximum over time."""
    tolerance: str = "0.001"
    """What a regression may be off: ``0.001``, ``5%`` of the target, or ``0.1 iqr`` of all targets."""
    accuracy: float | None = None
    """Share of a test's places or labels that must be right; ``None``: 0.9 of the places, all labels."""
    quantile: float = 0.9
    """Share of the tests whose reconstruction counts as good (autoencoders)."""
    oracle: str = ""
    """``module:function`` that judges: ``(inputs, labels, outputs)`` of a batch → passed, or (passed, confidence)."""


@dataclass(frozen=True, slots=True)
class Localization:
    """The whole result of one localization."""

    method: Literal["guider"]
    inputs: Inputs
    outcome: Outcome
    task: Task
    task_reason: str
    tests: Counts
    tests_read: str
    """What the test data were, for people: file, names, shapes and types."""
    model: ModelSummary
    layers: tuple[LayerScore, ...]
    """In model order, one for each entry of ``model.layers``."""
    examples: tuple[FailingTest, ...]
    notices: tuple[Notice, ...]
    timings: Mapping[str, float]
    """Seconds by stage."""
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Hello:
    """First message of an engine, sent before anything slow is imported."""

    protocol: int
    pid: int
    python: str
    executable: str
    packages: Mapping[str, str]
    """Installed versions of keras, tensorflow, numpy and the like, by distribution name; absent: not installed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request is; ``fraction`` is ``None`` where the length is unknown."""

    request: int
    stage: Stage
    message: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request gave no result: found, expected, what to do. ``detail`` is for the log (a traceback)."""

    kind: FailureKind
    code: str
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """Answer to a request that failed."""

    request: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Localized:
    """Answer to `Localize`."""

    request: int
    localization: Localization


@dataclass(frozen=True, slots=True)
class Inspected:
    """Answer to `Inspect` and `Probe`."""

    request: int
    model: ModelSummary


@dataclass(frozen=True, slots=True)
class Localize:
    """Ask for a localization."""

    request: int
    inputs: Inputs
    cache: str = ""
    """Folder in which hit spectra are kept from one process to the next; empty: none."""


@dataclass(frozen=True, slots=True)
class Inspect:
    """Ask for the layers of a model, without tests; the fields are those of `Inputs`."""

    request: int
    model: str
    root: str
    safe_mode: bool = True
    load: str = ""
    custom_objects: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask whether model and tests can be localized: both are loaded, and one test is run."""

    request: int
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run, and how. Paths are absolute."""

    path: str
    arguments: tuple[str, ...]
    folder: str
    """Its working directory."""
    root: str
    """Folder of the project: files in it are the project's own code."""
    epochs: int | None = None
    """Most epochs of each training; ``None``: as the program says."""
    seconds: float | None = None
    """Longest run; then what was captured until then is used. ``None``: no limit."""
    legacy_keras: bool = False
    """Run it on ``tf_keras`` (Keras 2)."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was when the program read it."""

    path: str
    digest: str
    """SHA-256 of its content in hexadecimal digits for source files; size and time of change for data."""


DataKind = Literal["test", "validation", "training", ""]


@dataclass(frozen=True, slots=True)
class CapturedModel:
    """One model that a program trained or used."""

    name: str
    """Unique in its capture: the variable that holds it, else the model's own name."""
    path: str
    """The model's file in the folder of the capture; the process that captured it need not read it."""
    saved: bool
    """Whether that file exists: some models cannot be saved, and only the process that captured them has them."""
    model: ModelSummary
    tests: str
    """The ``.npz`` of the tests (``x``, ``y``); empty: there is none, and ``data`` says why."""
    data_kind: DataKind
    data: str
    """For people, what the tests are: ``validation data of fit, train.py line 40``."""
    trained: bool
    epochs: int
    """Epochs that were trained to their end."""
    optimizer: str
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Stray:
    """Layers that one line constructed and that are part of no captured model."""

    origin: Origin
    class_name: str
    count: int
    in_call: bool
    """Whether they were constructed while a layer or model was called, so that nothing trains their weights."""


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """What running a program gave; kept as ``capture.json`` in the folder of the capture."""

    program: Program
    ending: Literal["finished", "failed", "stopped"]
    """``stopped``: its time was up."""
    failure: Failure | None
    """Why it failed, where it did; what was captured until then is there all the same."""
    models: tuple[CapturedModel, ...]
    """The one to localize first, unless the user names another."""
    strays: tuple[Stray, ...]
    sources: tuple[FileState, ...]
    """The project's own source files that ran."""
    data: tuple[FileState, ...]
    """Other files of the project that the program read."""
    notices: tuple[Notice, ...]
    started: float
    """Seconds since the epoch."""
    seconds: float
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Capture:
    """Ask to run a program and to keep what it trains; the process answers nothing else meanwhile.

    For a process that has run nothing before: what a program leaves behind stays in it.
    """

    request: int
    program: Program
    output: str
    """Folder for the artefacts; made if missing, and emptied."""


@dataclass(frozen=True, slots=True)
class Captured:
    """Answer to `Capture`. Localizations of its models are asked of the same process where it still lives."""

    request: int
    record: CaptureRecord


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ask to stop the request of that number; it is answered by `Failed` of kind ``cancelled``."""

    request: int


Request = Localize | Inspect | Probe | Capture
Message = Hello | Progress | Failed | Localized | Inspected | Captured | Request | Cancel

_MESSAGES: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(Message)}

T = TypeVar("T")


def encode(message: Message) -> bytes:
    """One line of JSON, without its newline.

    Raises:
        ValueError: a number is not finite.
    """
    body = {"type": type(message).__name__, **dataclasses.asdict(message)}
    return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()


def decode(line: bytes) -> Message:
    """The message of one line.

    Raises:
        ValueError: the line is not a message of this protocol.
    """
    try:
        body = json.loads(line)
        kind = _MESSAGES[body.pop("type")]
        message: Message = structure(body, kind)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"not a message of protocol {PROTOCOL}: {line[:80]!r}") from error
    return message


def structure(value: Any, kind: type[T]) -> T:
    """Build ``kind`` from JSON data: dataclasses, tuples, mappings, optionals and scalars.

    Raises:
        TypeError, KeyError: the data does not have that form.
    """
    return typing.cast(T, _structure(value, kind))


@functools.cache
def _field_types(kind: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _structure(value: Any, kind: Any) -> Any:
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        hints = _field_types(typing.cast(type, kind))
        return typing.cast(Any, kind)(**{k: _structure(v, hints[k]) for k, v in value.items() if k in hints})
    if origin in (typing.Union, types.UnionType):
        choices = [c for c in typing.get_args(kind) if c is not type(None)]
        return None if value is None else _structure(value, choices[0])
    if origin is tuple:
        args = typing.get_args(kind)
        return tuple(_structure(v, args[0]) for v in value)
    if origin in (dict, Mapping):
        return dict(value)
    if kind is float and isinstance(value, int):
        return float(value)
    return value
