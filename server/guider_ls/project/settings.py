"""Settings: one frozen class, filled from the editor or from ``[tool.guider]``, bad values reported by key.

The names here are those of ``[tool.guider]`` (``neurons_per_layer``); the editor's are the same in camel case
under ``guider.`` (``guider.neuronsPerLayer``).
"""

from __future__ import annotations

import difflib
import importlib
import json
import math
import re
import shlex
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from guider_engine.wire import (
    AGGREGATIONS,
    FORMULAS,
    NEURONS,
    RECURRENT,
    TASK_CHOICES,
    Aggregation,
    Formula,
    Neuron,
    Recurrent,
    TaskChoice,
)

tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

RunWhen = Literal["onSave", "onModelChange", "manual"]
Severity = Literal["error", "warning", "information", "hint"]

MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
FUNCTION = re.compile(rf"{MODULE.pattern}:{MODULE.pattern}")
"""``module:function``; both may have dots."""
_TOLERANCE = re.compile(
    r"\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)\s*(?:|%|iqr)\s*", re.IGNORECASE
)


@attrs.frozen(slots=True)
class TargetSettings:
    """One of several targets of a project, an entry of ``[[tool.guider.targets]]``."""

    name: str = ""
    program: str = ""
    model: str = ""
    test_data: tuple[str, ...] = ()
    load: str = ""
    custom_objects: str = ""
    label: str = ""
    oracle: str = ""


@attrs.frozen(slots=True)
class Settings:
    """All settings of one folder, with their defaults."""

    enable: bool = True
    interpreter: tuple[str, ...] = ()
    """Command of the Python that has the project's TensorFlow; empty: see ``project/interpreter.py``."""
    run: RunWhen = "onSave"
    program: str = ""
    model: str = ""
    test_data: tuple[str, ...] = ()
    load: str = ""
    """Function that returns what ``model`` and ``test_data`` do not name; see `guider_engine.wire.Inputs`, as of all
    from ``model`` to ``safe_mode``."""
    custom_objects: str = ""
    label: str = ""
    image_scale: float = 1.0
    max_tests: int | None = None
    formula: Formula = "ochiai"
    aggregation: Aggregation = "mean-gini"
    weighted: bool = True
    threshold: float = 0.1
    neurons_per_layer: int | None = 200
    neuron: Neuron = "unit"
    recurrent: Recurrent = "all"
    seed: int = 7
    task: TaskChoice = "auto"
    tolerance: str = "0.001"
    accuracy: float | None = None
    quantile: float = 0.9
    oracle: str = ""
    safe_mode: bool = True
    train_on_save: bool = False
    """Whether saving the program or a module of it runs the program again and localizes in what it trains."""
    capture_arguments: tuple[str, ...] = ()
    """What follows the program's name when it is run."""
    capture_folder: str = ""
    """Its working folder, relative to the root; empty: the root."""
    capture_epochs: int | None = None
    """Most epochs of each training; ``None``: as the program says."""
    capture_minutes: float | None = None
    """Longest run; ``None``: until it ends."""
    capture_model: str = ""
    """Which of the models that it trains is localized; empty: the one that it evaluates."""
    capture_legacy_keras: bool = False
    """Whether it is run on ``tf_keras`` (Keras 2)."""
    diagnostics_top: int = 1
    """How many ranks are underlined; 0 underlines none."""
    diagnostics_minimum: float = 0.0
    """Lowest suspiciousness that is underlined."""
    diagnostics_severity: Severity = "information"
    code_lens: bool = True
    hover: bool = True
    targets: tuple[TargetSettings, ...] = ()
    """Several programs with a model and a test set each; only ``[tool.guider]`` can name them."""


@attrs.frozen(slots=True)
class Problem:
    """A setting that cannot be used; the others are used all the same."""

    key: str
    """As the user wrote it."""
    message: str
    """The value found, what was expected and the value used instead."""
    origin: str = ""
    """Where it is written, for people; empty: where the caller got the values from."""


def from_mapping(
    values: Mapping[str, Any], base: Settings = Settings()
) -> tuple[Settings, tuple[Problem, ...]]:
    """Put ``values`` over ``base``; a value that cannot be used is a `Problem` and leaves that of ``base``.

    Keys are in snake or camel case, nested (``{"diagnostics": {"top": 2}}``) or flat. ``None`` means "not
    said", except for ``neurons_per_layer``, where it keeps every neuron. Keys that only an editor's client
    reads are passed over.
    """
    changes: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, value in _flat(values):
        name = snake(key)
        if name.partition("_")[0] in _CLIENT_ONLY_GROUPS or name in _CLIENT_ONLY:
            continue
        if name == "targets":
            changes["targets"], found = _targets(value)
            problems += found
            continue
        reader = _READERS.get(name)
        if reader is None:
            problems.append(Problem(key, _unknown(key, _READERS)))
        elif value is not None or name == "neurons_per_layer":
            try:
                changes[name] = reader.read(value)
            except ValueError:
                kept = _shown(getattr(base, name))
                problems.append(
                    Problem(key, f"found {_shown(value)}, expected {reader.expected}; {kept} is used")
                )
    return attrs.evolve(base, **_shared_with_targets(changes)), tuple(problems)


def of_project(root: Path, base: Settings = Settings()) -> tuple[Settings, tuple[Problem, ...]]:
    """Put ``[tool.guider]`` of ``root/pyproject.toml``, where there is one, over ``base``."""
    path = root / "pyproject.toml"
    origin = "pyproject.toml [tool.guider]"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return base, ()
    except (OSError, ValueError) as error:  # a TOMLDecodeError and a UnicodeDecodeError are ValueErrors
        message = f"{path} cannot be read ({error}); its settings are not used"
        return base, (Problem("pyproject.toml", message, "pyproject.toml"),)
    tool = document.get("tool", {})
    table = tool.get("guider", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        message = f"found {_shown(table)}, expected a table [tool.guider]; it is not used"
        return base, (Problem("tool.guider", message, "pyproject.toml"),)
    settings, problems = from_mapping(table, base)
    return settings, tuple(attrs.evolve(p, origin=origin) for p in problems)


def snake(key: str) -> str:
    """The name in `Settings` for a key in camel, snake, dashed or dotted spelling."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key.replace(".", "_").replace("-", "_")).lower()


def camel(name: str) -> str:
    """The editor's spelling of a name of `Settings` (``diagnostics.top``, ``neuronsPerLayer``)."""
    group, _, rest = name.partition("_")
    if group in _GROUPS:
        return f"{group}.{camel(rest)}"
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


_GROUPS = frozenset({"diagnostics", "capture"})
_CLIENT_ONLY_GROUPS = frozenset({"server", "trace"})
_CLIENT_ONLY = frozenset({"editor_interpreter"})


@attrs.frozen(slots=True)
class _Reader:
    expected: str
    read: Callable[[Any], Any]
    """Raises ValueError when the value is not what is expected."""


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if snake(key) in _GROUPS | _CLIENT_ONLY_GROUPS and isinstance(value, Mapping):
            yield from ((f"{key}.{inner}", v) for inner, v in value.items())
        else:
            yield key, value


def _unknown(key: str, known: Iterable[str]) -> str:
    spell = camel if "." in key or key != key.lower() else str
    names = sorted(known)
    near = difflib.get_close_matches(snake(key), names, n=1)
    if near:
        return f"no such setting, so it is not used; did you mean {spell(near[0])}?"
    return f"no such setting, so it is not used; there are {', '.join(map(spell, names))}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        value = list(value)
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _flag(value: Any) -> bool:
    _require(isinstance(value, bool))
    return bool(value)


def _text(value: Any) -> str:
    _require(isinstance(value, str))
    return str(value)


def _integer(value: Any, low: int, high: float = math.inf) -> int:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    _require(whole and not isinstance(value, bool) and low <= value <= high)
    return int(value)


def _number(value: Any) -> float:
    _require(isinstance(value, (int, float)) and not isinstance(value, bool))
    _require(abs(value) <= sys.float_info.max)  # not what is not finite, nor an integer that is no float
    return float(value)


def _positive(value: Any, most: float = math.inf) -> float:
    number = _number(value)
    _require(0 < number <= most)
    return number


def _tolerance(value: Any) -> str:
    text = value if isinstance(value, str) else repr(_positive(value))
    match = _TOLERANCE.fullmatch(text)
    _require(match is not None and 0 < float(match[1]) < math.inf)
    return text.strip()


def _named(*forms: re.Pattern[str]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        _require(isinstance(value, str) and (not value or any(form.fullmatch(value) for form in forms)))
        return str(value)

    return read


def _arguments(value: Any) -> tuple[str, ...]:
    """Words of a command line, of which some may be empty; a string is split as a shell does."""
    items = shlex.split(value) if isinstance(value, str) else value
    _require(isinstance(items, (list, tuple)) and all(isinstance(item, str) for item in items))
    return tuple(items)


def _words(value: Any, most: int | None = None) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    _require(isinstance(items, (list, tuple)) and all(isinstance(item, str) for item in items))
    words = tuple(items) if any(items) else ()  # the editor's way to say "nothing" is an empty string
    _require(all(words) and (most is None or len(words) <= most))
    return words


def _choice(choices: tuple[str, ...]) -> _Reader:
    def read(value: Any) -> str:
        _require(isinstance(value, str) and value in choices)
        return str(value)

    return _Reader("one of " + ", ".join(choices), read)


_FLAG = _Reader("true or false", _flag)
_NUMBER = _Reader("a finite number", _number)
_FILE = _Reader("a path (a string)", _text)
_TEST_DATA = _Reader(
    'a file (.npz, .csv, .tsv, .parquet, .h5), a pair of .npy files, a folder or "module:function" (a string, or a '
    "list of one or two)",
    lambda value: _words(value, most=2),
)
_CODE = _Reader('"module:function" (a string)', _named(FUNCTION))
_OBJECTS = _Reader('"module" or "module:name" (a string)', _named(MODULE, FUNCTION))
_LABEL = _Reader("the name of a column or array (a string)", _text)
_SHARE = _Reader("a number above 0, at most 1", lambda value: _positive(value, most=1.0))
_READERS: dict[str, _Reader] = {
    "enable": _FLAG,
    "interpreter": _Reader("a path or a command as a list of strings", _words),
    "run": _choice(typing.get_args(RunWhen)),
    "program": _FILE,
    "model": _FILE,
    "test_data": _TEST_DATA,
    "load": _CODE,
    "custom_objects": _OBJECTS,
    "label": _LABEL,
    "image_scale": _Reader("a number above 0", _positive),
    "max_tests": _Reader("a whole number from 1", lambda value: _integer(value, 1)),
    "formula": _choice(FORMULAS),
    "aggregation": _choice(AGGREGATIONS),
    "weighted": _FLAG,
    "threshold": _NUMBER,
    "neurons_per_layer": _Reader(
        'a whole number from 1, or "all"',
        lambda value: None if value in (None, "all") else _integer(value, 1),
    ),
    "seed": _Reader("a whole number from 0 to 4294967295", lambda value: _integer(value, 0, 2**32 - 1)),
    "neuron": _choice(NEURONS),
    "recurrent": _choice(RECURRENT),
    "task": _choice(TASK_CHOICES),
    "tolerance": _Reader(
        "a number above 0 (0.001), a percentage (5%) or a part of the range (0.1 iqr)", _tolerance
    ),
    "accuracy": _SHARE,
    "quantile": _SHARE,
    "oracle": _CODE,
    "safe_mode": _FLAG,
    "train_on_save": _FLAG,
    "capture_arguments": _Reader("a list of strings", _arguments),
    "capture_folder": _FILE,
    "capture_epochs": _Reader("a whole number from 1", lambda value: _integer(value, 1)),
    "capture_minutes": _Reader("a number above 0", _positive),
    "capture_model": _Reader("the name of a model (a string)", _text),
    "capture_legacy_keras": _FLAG,
    "diagnostics_top": _Reader("a whole number from 0", lambda value: _integer(value, 0)),
    "diagnostics_minimum": _NUMBER,
    "diagnostics_severity": _choice(typing.get_args(Severity)),
    "code_lens": _FLAG,
    "hover": _FLAG,
}
_TARGET_READERS = {
    "name": _Reader("a string", _text),
    "program": _FILE,
    "model": _FILE,
    "test_data": _TEST_DATA,
    "load": _CODE,
    "custom_objects": _OBJECTS,
    "label": _LABEL,
    "oracle": _CODE,
}
OF_TARGET = tuple(name for name in _TARGET_READERS if name not in ("name", "program"))
"""What a target says of its model and its tests."""


def _targets(value: Any) -> tuple[tuple[TargetSettings, ...], list[Problem]]:
    if not isinstance(value, (list, tuple)):
        return (), [Problem("targets", f"found {_shown(value)}, expected a list of tables; it is not used")]
    targets: list[TargetSettings] = []
    problems: list[Problem] = []
    for number, table in enumerate(value):
        place = f"targets[{number}]"
        if not isinstance(table, Mapping):
            problems.append(Problem(place, f"found {_shown(table)}, expected a table; it is not used"))
            continue
        changes: dict[str, Any] = {}
        for key, item in table.items():
            reader = _TARGET_READERS.get(snake(key))
            if reader is None:
                problems.append(Problem(f"{place}.{key}", _unknown(key, _TARGET_READERS)))
                continue
            try:
                changes[snake(key)] = reader.read(item)
            except ValueError:
                message = f"found {_shown(item)}, expected {reader.expected}; it is not used"
                problems.append(Problem(f"{place}.{key}", message))
        targets.append(TargetSettings(**changes))
    return tuple(targets), problems


def _shared_with_targets(changes: dict[str, Any]) -> dict[str, Any]:
    """Beside targets, what is said of model and tests without a program is for each target that does not say it."""
    if not changes.get("targets") or changes.get("program"):
        return changes
    shared = {key: changes[key] for key in OF_TARGET if changes.get(key)}
    rest = {key: value for key, value in changes.items() if key not in shared}
    rest["targets"] = tuple(
        attrs.evolve(target, **{key: value for key, value in shared.items() if not getattr(target, key)})
        for target in changes["targets"]
    )
    return rest
