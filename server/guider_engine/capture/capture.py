"""Run a program under watch and keep what it trained."""

from __future__ import annotations

import contextlib
import importlib.util
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from guider_engine.errors import CancelRequested, EngineFailure, unusable
from guider_engine.request import Check, Report
from guider_engine.wire import CapturedModel, CaptureRecord, Failure, Notice, Program

from .constructions import Constructions
from .failures import failure_of
from .files import ReadFiles
from .hooks import Hooks
from .imports import ImportHook
from .legacy_keras import LegacyKeras, complete, installation
from .limits import Limits
from .models import MOST, Models, keras_of, names
from .record import empty_folder, write_model, write_record
from .run import Exited, run
from .sources import Sources
from .stack import StackReader


@dataclass(frozen=True, slots=True)
class Watched:
    """A capture, and its models in the order of its record."""

    record: CaptureRecord
    models: tuple[Any, ...]


def capture(program: Program, output: str, report: Report, check: Check) -> Watched:
    """Run the program; write its models, tests and sources to the folder ``output``, and the record last.

    Raises:
        EngineFailure: the program cannot be read, or it ended without any model; ``program-failed``,
            ``program-no-model``, ``backend-unsupported``.
        CancelRequested: through ``check``, at any time.
    """
    started, clock = time.time(), time.monotonic()
    content = _content(program)
    if program.legacy_keras and importlib.util.find_spec("tf_keras") is None:
        raise _no_legacy_keras()
    folder = empty_folder(output)
    sources = Sources(program, content)
    stacks = StackReader(sources)
    constructions = Constructions(stacks)
    models = Models()
    limits = Limits(program.seconds, check)
    hooks = Hooks(stacks, constructions, models, limits, report, program.epochs, sources.read_modules)
    files = ReadFiles(program)
    report("program", f"running {Path(program.path).name}", None)
    error = _run(program, content, limits, hooks, files)
    check()
    if limits.reason == "cancelled":
        raise CancelRequested
    if limits.reason == "backend":
        raise _backend()
    sources.read_modules()
    failure = None
    if error is not None and not _ended_well(error, limits):
        failure = failure_of(error, program, sources, _version(hooks.keras))
    seen = models.ordered()
    if not seen:
        raise _nothing(failure, limits, program, hooks)
    if failure is not None:
        print(failure.detail, file=sys.stderr)  # as Python does
    variables = vars(sys.modules["__main__"])
    named = names(seen, variables)
    captured: list[tuple[CapturedModel, Any]] = []
    for one, name in zip(seen, named, strict=True):
        try:
            entry = write_model(
                one, name, len(captured), folder, constructions.calls, variables, report, check
            )
        except (CancelRequested, OSError):
            raise
        except Exception as failed:  # a model class may do anything when it is asked for its layers
            hooks.failures.append(f"{name}: {type(failed).__name__}: {failed}")
            continue
        captured.append((entry, one.model))
    if not captured:
        raise _nothing(failure, limits, program, hooks)
    record = CaptureRecord(
        program=program,
        ending="stopped" if limits.reason == "time" else "failed" if failure is not None else "finished",
        failure=failure,
        models=tuple(entry for entry, _ in captured),
        strays=constructions.strays(layer for one in seen for layer in _with_inner(one.model)),
        sources=sources.states(),
        data=files.states(),
        notices=tuple(_notices(models, hooks)),
        started=started,
        seconds=time.monotonic() - clock,
        versions=_versions(keras_of(captured[0][1])),
    )
    write_record(record, sources.contents(), folder)
    return Watched(record, tuple(model for _, model in captured))


def _content(program: Program) -> bytes:
    try:
        return Path(program.path).read_bytes()
    except FileNotFoundError as error:
        raise unusable("program-missing", f"There is no program {program.path}.") from error
    except OSError as error:
        raise unusable("program-unreadable", f"{program.path} cannot be read: {error.strerror}.") from error


def _run(
    program: Program, content: bytes, limits: Limits, hooks: Hooks, files: ReadFiles
) -> BaseException | None:
    after: dict[str, Callable[[ModuleType], None]] = {
        "keras": hooks.install,
        "tf_keras": hooks.install,
        "matplotlib": _calm_matplotlib,
        "matplotlib.pyplot": _calm_pyplot,
    }
    legacy: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if program.legacy_keras:
        legacy = LegacyKeras()

        def install(keras: ModuleType) -> None:
            complete(keras)
            hooks.install(keras)

        after["tf_keras"] = install
    try:
        with ImportHook(after), legacy, files:
            return run(program, content, limits)
    finally:
        hooks.uninstall()


def _calm_matplotlib(matplotlib: ModuleType) -> None:
    """No window is opened, whatever backend the program asks for."""
    matplotlib.use = lambda *_args, **_options: None  # type: ignore[attr-defined]


def _calm_pyplot(pyplot: ModuleType) -> None:
    switch: Callable[[str], None] = pyplot.switch_backend  # it also chooses the first one
    pyplot.switch_backend = lambda _backend: switch("agg")  # type: ignore[attr-defined]
    pyplot.show = pyplot.pause = lambda *_args, **_options: None  # type: ignore[attr-defined]


def _ended_well(error: BaseException | None, limits: Limits) -> bool:
    if isinstance(error, Exited):
        return error.code == 0
    return error is None or limits.reason is not None


def _nothing(failure: Failure | None, limits: Limits, program: Program, hooks: Hooks) -> EngineFailure:
    if failure is not None:
        return EngineFailure(failure.kind, failure.code, failure.message, detail=failure.detail)
    name = Path(program.path).name
    how = "was stopped when its time was up" if limits.reason == "time" else "ran to its end"
    keras = "imported no Keras" if hooks.keras is None else f"used no model of {hooks.keras.__name__}"
    return unusable(
        "program-no-model",
        f"{name} {how} and {keras}. Watched were fit, evaluate, predict, train_on_batch, save and calls of models. "
        "Name the program that trains, with the arguments that it needs.",
    )


def _no_legacy_keras() -> EngineFailure:
    return EngineFailure(
        "environment",
        "legacy-keras-missing",
        f"The program is to run on Keras 2, and tf_keras is not installed for {sys.executable}. Install it with: "
        f"{installation()} — or switch off guider.capture.legacyKeras (option --legacy-keras).",
    )


def _backend() -> EngineFailure:
    return EngineFailure(
        "environment",
        "backend-unsupported",
        "Keras runs on another backend here than TensorFlow, JAX or PyTorch. Set KERAS_BACKEND=tensorflow (or jax, "
        "torch) for the project.",
    )


def _with_inner(model: Any) -> list[Any]:
    """The model, every layer below it, and what its wrappers wrap."""
    found: list[Any] = []
    pending = [model]
    seen: set[int] = set()
    while pending:
        layer = pending.pop()
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        found.append(layer)
        inside = getattr(layer, "_flatten_layers", None)
        if inside is not None:
            pending += inside(include_self=False, recursive=False)
        pending += [
            wrapped for name in ("layer", "cell") if (wrapped := getattr(layer, name, None)) is not None
        ]
    return found


def _notices(models: Models, hooks: Hooks) -> list[Notice]:
    notices = []
    if models.dropped:
        notices.append(
            Notice(
                "models-dropped",
                f"The program has more than {MOST} models; {models.dropped} used less were not kept.",
            )
        )
    if hooks.failures:
        notices.append(Notice("watch-failed", f"Something was not seen: {'; '.join(hooks.failures[:3])}."))
    return notices


def _versions(keras: ModuleType) -> dict[str, str]:
    """Of what the program ran on; ``keras`` is that of its first model, by whatever name."""
    found = {"python": platform.python_version(), "keras": _version(keras)}
    for name in ("numpy", "tensorflow", "jax", "torch"):
        if name in sys.modules:
            found[name] = _version(sys.modules[name])
    return found


def _version(package: ModuleType | None) -> str:
    return str(getattr(package, "__version__", ""))
