"""Why a program that was written for an older Keras fails, and what to write instead."""

from __future__ import annotations

import ast
import inspect
import re
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType, TracebackType
from typing import Any

from guider_engine.wire import Failure

from .legacy_keras import installation
from .old_keras import (
    ASSIGNMENTS,
    ATTRIBUTES,
    BACKEND,
    FUNCTION_ARGUMENTS,
    HISTORY,
    LAYER_ARGUMENTS,
    MESSAGES,
    MODULES,
    NAMES,
    OPTIMIZER_ARGUMENTS,
    PACKAGES,
    TENSORFLOW,
    Spelling,
)
from .sources import Sources

DEEPEST = 10
"""Innermost lines of the project's own code that are looked at."""
_DOWNLOAD = re.compile(r"^URL fetch failure on (\S+?): (?:None -- )?(.*)$", re.MULTILINE)
_UNKNOWN_ARGUMENTS = re.compile(
    r"^(?:Unrecognized keyword arguments passed to (?P<function>\w+): |Argument\(s\) not recognized: |"
    r"Arguments not recognized: |\('Keyword argument not understood:', |Invalid keyword argument[^{\[]*)"
)
_NAMES = re.compile(r"(?:^|[{\[]|, )'(\w+)'")
_UNKNOWN_ARGUMENT = re.compile(
    r"^(?P<function>[\w.]+)\(\) got an unexpected keyword argument '(?P<name>\w+)'"
)
_MISSING_ARGUMENT = re.compile(r"^[\w.]+\(\) missing \d+ required positional arguments?: ")
_NO_NAME = re.compile(
    r"^(?:cannot import name '(?P<imported>\w+)' from '(?P<source>[\w.]+)'|"
    r"module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)')"
)
_NO_ATTRIBUTE = re.compile(r"'(?P<owner>\w+)' object has no attribute '(?P<name>\w+)'")
_NO_SETTER = re.compile(r"^(?:property|can't set attribute) '(?P<name>\w+)'")
_KERAS = re.compile(
    r"^(?:keras\._tf_keras\.keras|keras\.api|tf_keras\.api\._v2\.keras|tensorflow\.keras|tf_keras|keras)(?:\.|$)"
)
_TENSORFLOW = re.compile(r"^tensorflow(?:\._api\.v2)?(?:\.|$)")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the project's own code that an exception passed."""

    path: str
    number: int
    frame: FrameType
    nodes: tuple[ast.expr, ...]
    """The expressions of its text."""

    def calls(self, keyword: str) -> Iterator[tuple[ast.Call, ast.keyword]]:
        """The calls that pass an argument by that name."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                yield from ((node, given) for given in node.keywords if given.arg == keyword)

    def attributes(self, name: str) -> list[ast.Attribute]:
        """Where an attribute of that name is used."""
        return [node for node in self.nodes if isinstance(node, ast.Attribute) and node.attr == name]

    def owners(self, name: str) -> list[Any]:
        """The objects whose attribute of that name is used, ``None`` for those that are not known."""
        return [_resolve(node.value, self.frame) for node in self.attributes(name)]


@dataclass(frozen=True, slots=True)
class _Found:
    """What an exception means: what the line does, and whether Keras 2 takes it."""

    said: str
    kept: bool
    place: tuple[str, int] | None = None
    """Path and line, where they are known better than by the traceback."""


def explain(error: BaseException, sources: Sources, keras_version: str, *, legacy: bool) -> Failure | None:
    """The failure of a program that uses what its Keras does not have any more; ``None``: it failed for another reason.

    Args:
        error: what the program raised.
        sources: which code is the project's own.
        keras_version: of the Keras that the program imported; empty where it did not come so far.
        legacy: whether ``tf_keras`` is installed.
    """
    lines = _own_lines(error.__traceback__, sources)
    if not lines:
        return None
    text = _text(error)
    place = (lines[0].path, lines[0].number)
    if download := _DOWNLOAD.search(text):
        file, reason = download[1].rpartition("/")[2], download[2]
        return Failure(
            "engine",
            "program-failed",
            f"{_said(place)} downloads {file} and cannot: {reason}. Put the file where Keras keeps its downloads "
            "(the folder .keras in your home folder), or read the data from a file of your own.",
        )
    found = _found(error, text, lines, in_own_code=_innermost_is_own(error, sources))
    if found is None:
        return None
    old = keras_version.startswith("2.")
    said = found.said.replace("{keras}", "Keras 2" if old else "Keras 3")
    offer = _offer(legacy) if found.kept and not old else ""
    return Failure("engine", "keras-2-program", f"{_said(found.place or place)} {said}.{offer}")


def _said(place: tuple[str, int]) -> str:
    return f"{Path(place[0]).name}, line {place[1]}"


def _offer(legacy: bool) -> str:
    how = "use the setting guider.capture.legacyKeras or the option --legacy-keras"
    if legacy:
        return f" Keras 2 runs the line as it is, and is installed here as tf_keras: {how}."
    return f" Keras 2 runs the line as it is: install it with {installation()}, and {how}."


def _text(error: BaseException) -> str:
    """What it says, without what Keras wraps around it."""
    try:
        text = _COLOURS.sub("", str(error))
    except Exception:  # an exception's own text may fail
        return ""
    told = [part for part in text.split("\n\n") if not part.startswith("Exception encountered when calling")]
    return told[0] if told else text


def _own_lines(trace: TracebackType | None, sources: Sources) -> tuple[_Line, ...]:
    """The lines of the project's own code that the exception passed, innermost first."""
    innermost: deque[tuple[str, FrameType, int]] = deque(maxlen=DEEPEST)
    for frame, number in traceback.walk_tb(trace):
        path = sources.own(frame.f_code.co_filename)
        if path:
            innermost.append((path, frame, number))
    return tuple(
        _Line(path, number, frame, tuple(_expressions(sources.text(path), number)))
        for path, frame, number in reversed(innermost)
    )


def _expressions(text: str, number: int) -> Iterator[ast.expr]:
    """The expressions of which a part stands on a line."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and node.lineno <= number <= (node.end_lineno or node.lineno):
            yield node


def _innermost_is_own(error: BaseException, sources: Sources) -> bool:
    """Whether the project's own code raised it, or called something in a way that Python refuses."""
    innermost = deque(traceback.walk_tb(error.__traceback__), maxlen=1)
    return any(sources.own(frame.f_code.co_filename) for frame, _ in innermost)


def _found(error: BaseException, text: str, lines: tuple[_Line, ...], *, in_own_code: bool) -> _Found | None:
    if isinstance(error, ModuleNotFoundError):
        return _module(error.name or "")
    if isinstance(error, (ImportError, AttributeError)) and (match := _NO_NAME.search(text)):
        return _name(match["source"] or match["module"], match["imported"] or match["name"])
    if isinstance(error, AttributeError) and (match := _NO_ATTRIBUTE.search(text)):
        return _attribute(error, match["owner"], match["name"], lines[0]) or _message(text, lines[0])
    if isinstance(error, AttributeError) and (match := _NO_SETTER.search(text)):
        return _assignment(match["name"], lines[0])
    if isinstance(error, KeyError):
        return _key(error, lines[0]) if in_own_code else None
    if isinstance(error, TypeError) and (match := _UNKNOWN_ARGUMENT.search(text)):
        called = [_resolve(call.func, lines[0].frame) for call, _ in lines[0].calls(match["name"])]
        if in_own_code and not any(map(_is_called_in_keras, called)):
            return None
        return _arguments(
            [match["name"]], match["function"], {**FUNCTION_ARGUMENTS, **LAYER_ARGUMENTS}, lines
        )
    if isinstance(error, TypeError) and in_own_code and _MISSING_ARGUMENT.search(text):
        return _misnamed(lines)
    if match := _UNKNOWN_ARGUMENTS.search(text):
        tables = {**LAYER_ARGUMENTS, **OPTIMIZER_ARGUMENTS, **FUNCTION_ARGUMENTS}
        return _arguments(_NAMES.findall(text[match.end() :]), match["function"] or "", tables, lines)
    return _message(text, lines[0])


def _sentence(verb: str, old: str, spelling: Spelling, *, keras: str = "{keras}") -> str:
    if spelling.now:
        advice = f" ({spelling.advice})" if spelling.advice else ""
        return f"{verb} {old}, which {keras} calls {spelling.now}{advice}"
    return f"{verb} {old}, which {keras} does not have: {spelling.advice}"


def _below_keras(name: str) -> str | None:
    """A dotted name without ``keras``; ``None`` where it is of another package."""
    match = _KERAS.match(name)
    return name[match.end() :] if match else None


def _module(name: str) -> _Found | None:
    below = _below_keras(name)
    if below is None:
        keras = "TensorFlow 2" if name.startswith("tensorflow") else "{keras}"
        known = name in PACKAGES
        return _Found(_sentence("imports", name, PACKAGES[name], keras=keras), False) if known else None
    key = below
    while key and key not in MODULES:
        key = key.rpartition(".")[0]
    if not key:
        return None
    # Of these, only the layers of the experimental module were in tensorflow.keras.
    never = name.startswith("tensorflow") and key != "layers.experimental"
    return _Found(_sentence("imports", f"keras.{key}", MODULES[key]), MODULES[key].kept and not never)


def _name(module: str, name: str) -> _Found | None:
    below = _below_keras(module)
    if below is None:
        rest = _TENSORFLOW.match(module)
        path = f"{module[rest.end() :]}.{name}".lstrip(".") if rest else ""
        known = path in TENSORFLOW
        return (
            _Found(_sentence("uses", f"tf.{path}", TENSORFLOW[path], keras="TensorFlow 2"), False)
            if known
            else None
        )
    path = f"{below}.{name}".lstrip(".")
    spelling = BACKEND.get(name) if below == "backend" else NAMES.get(path)
    if spelling is None:
        return None
    return _Found(_sentence("uses", f"keras.{path}", spelling), spelling.kept)


def _attribute(error: AttributeError, owner: str, name: str, line: _Line) -> _Found | None:
    if name in ("as_list", "value") and owner in ("tuple", "int", "NoneType"):
        if not any("shape" in ast.unparse(node.value) for node in line.attributes(name)):
            return None
        said = f"uses .{name} of a shape, which {{keras}} does not have: a shape is a tuple of numbers"
        return _Found(said, name == "as_list")
    if name not in ATTRIBUTES:
        return None
    found = getattr(error, "obj", None)
    objects = [found] if found is not None else line.owners(name)
    if not any(_is_of_keras(type(one)) for one in objects):
        return None
    return _Found(_sentence("uses", f".{name} of {owner}", ATTRIBUTES[name]), ATTRIBUTES[name].kept)


def _key(error: KeyError, line: _Line) -> _Found | None:
    """A metric that a history has under another name."""
    key = error.args[0] if error.args else None
    if not isinstance(key, str):
        return None
    prefix = "val_" if key.startswith("val_") else ""
    for node in line.nodes:
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and node.slice.value == key
        ):
            history = _resolve(node.value, line.frame)
            for now in HISTORY.get(key.removeprefix("val_"), ()):
                if isinstance(history, dict) and "loss" in history and prefix + now in history:
                    said = f"reads '{key}' of a history, which {{keras}} calls '{prefix}{now}'"
                    return _Found(said, now == "learning_rate")
    return None


def _arguments(
    names: list[str], function: str, table: Mapping[str, Spelling], lines: tuple[_Line, ...]
) -> _Found | None:
    """The first argument that is an old one."""
    function = function.removesuffix(".__init__").rpartition(".")[2]
    for name in names:
        spelling = table.get(f"{function}.{name}") or table.get(name)
        if spelling is not None:
            to = f" to {function}" if function else ""
            passed = ((line.path, given.value.lineno) for line in lines for _, given in line.calls(name))
            said = _sentence("passes", f"{name}={to}", spelling)
            return _Found(said, spelling.kept, next(passed, None))
    return None


def _misnamed(lines: tuple[_Line, ...]) -> _Found | None:
    """An argument that is missing because it was given under its old name."""
    for node in lines[0].nodes:
        if isinstance(node, ast.Call) and _is_called_in_keras(_resolve(node.func, lines[0].frame)):
            names = [given.arg for given in node.keywords if given.arg]
            found = _arguments(names, ast.unparse(node.func), LAYER_ARGUMENTS, lines)
            if found is not None:
                return found
    return None


def _assignment(name: str, line: _Line) -> _Found | None:
    if name in ASSIGNMENTS and any(_is_of_keras(type(one)) for one in line.owners(name)):
        said = _sentence("sets", f".{name}", ASSIGNMENTS[name])
        return _Found(said, ASSIGNMENTS[name].kept)
    return None


def _message(text: str, line: _Line) -> _Found | None:
    for pattern, said, kept in MESSAGES:
        if match := re.search(pattern, text, re.DOTALL):
            values = [value or "" for value in match.groups()]
            return _Found(said.format(*values, keras="{keras}"), kept)
    if text == "None values not supported.":
        return _epsilon(line)
    return None


def _epsilon(line: _Line) -> _Found | None:
    for model in line.owners("fit"):
        if _is_of_keras(type(model)) and getattr(getattr(model, "optimizer", None), "epsilon", 0) is None:
            said = "trains with an optimizer that was made with epsilon=None, which {keras} does not take: leave it out"
            return _Found(said, True)
    return None


def _resolve(node: ast.expr, frame: FrameType) -> Any:
    """What a dotted name means in a frame, without running code of the program; ``None`` where that is not known."""
    if isinstance(node, ast.Name):
        spaces = (frame.f_locals, frame.f_globals, frame.f_builtins)
        return next((space[node.id] for space in spaces if node.id in space), None)
    if not isinstance(node, ast.Attribute):
        return None
    owner = _resolve(node.value, frame)
    if isinstance(owner, ModuleType):
        return getattr(owner, node.attr, None)
    return inspect.getattr_static(owner, node.attr, None)


def _is_called_in_keras(thing: Any) -> bool:
    """Whether calling it runs Keras' own code first, which then says what it takes."""
    if isinstance(thing, type):
        return _is_of_keras(thing) and _module_of(inspect.getattr_static(thing, "__init__", None)) in _OWNERS
    return _module_of(thing) in _OWNERS


def _is_of_keras(kind: type[Any]) -> bool:
    """Whether a class is one of Keras or TensorFlow, or is derived from one."""
    return any(_module_of(base) in _OWNERS for base in kind.__mro__)


_OWNERS = ("keras", "tf_keras", "tensorflow")


def _module_of(thing: Any) -> str:
    return str(getattr(thing, "__module__", "")).partition(".")[0]
