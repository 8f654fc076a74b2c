"""One localization after another in a warm process.

What a request needs again is kept: the model until its file changes, the traced step until the model or an option
of the trace changes, the hit spectrum until the tests change too. So another formula costs no forward pass.
"""

from __future__ import annotations

import gc
import platform
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .request import Check, Report, Timer
from .wire import CaptureRecord, Inputs, Localization, ModelSummary, Program

if TYPE_CHECKING:
    from .counting import Counted
    from .load.tests import TestSet


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model and what it was loaded from."""

    key: Hashable
    model: Any
    summary: ModelSummary


class Session:
    """State of the engine between requests. Not safe for several threads."""

    def __init__(self) -> None:
        """Nothing is imported or loaded before the first request."""
        self._loaded: Loaded | None = None
        self._counted: Counted | None = None
        self._captured: dict[str, Loaded] = {}

    def capture(self, program: Program, output: str, report: Report, check: Check) -> CaptureRecord:
        """Run a program and keep what it trains, in the folder ``output`` and in memory.

        Raises:
            EngineFailure: it failed, or ended, without any model.
            CancelRequested: through ``check``.
        """
        from .capture.capture import capture

        watched = capture(program, output, report, check)
        self._loaded = self._counted = None
        self._captured = {
            entry.path: Loaded(_captured_key(entry.path), model, entry.model)
            for entry, model in zip(watched.record.models, watched.models, strict=True)
        }
        return watched.record

    def inspect(self, model: str, root: str, safe_mode: bool, report: Report, check: Check) -> ModelSummary:
        """The layers of a model.

        Raises:
            EngineFailure: the model cannot be loaded.
            CancelRequested: through ``check``.
        """
        return self._load(model, root, safe_mode, report, check, Timer()).summary

    def probe(self, inputs: Inputs, report: Report, check: Check) -> ModelSummary:
        """The layers of a model, if it can run the tests; one of them is run.

        Raises:
            EngineFailure: the model or the tests cannot be used, or do not fit each other.
            CancelRequested: through ``check``.
        """
        loaded = self._load(inputs.model, inputs.root, inputs.safe_mode, report, check, Timer())
        tests = self._tests(loaded, inputs, report, check, Timer())
        from .counting import prepare

        prepare(loaded.model, loaded.summary, inputs.task, tests)
        return loaded.summary

    def localize(self, inputs: Inputs, report: Report, check: Check) -> Localization:
        """Rank the layers of a model by suspicion.

        Raises:
            EngineFailure: the model or the tests cannot be used, or do not fit each other.
            CancelRequested: through ``check``.
        """
        timer = Timer()
        loaded = self._load(inputs.model, inputs.root, inputs.safe_mode, report, check, timer)
        counted = self._count(loaded, inputs, report, check, timer)

        from .localization import localization

        with timer("rank"):
            found = localization(inputs, loaded.summary, counted, versions())
        return replace(found, timings=timer.seconds)

    def _load(
        self, spec: str, root: str, safe_mode: bool, report: Report, check: Check, timer: Timer
    ) -> Loaded:
        in_memory = self._captured.get(spec)
        if in_memory is not None:
            if in_memory.key == _captured_key(spec):
                return in_memory
            del self._captured[spec]  # another capture has written the folder since
        key = (spec, safe_mode, signature(spec))
        if self._loaded is not None and self._loaded.key == key and None not in key:
            return self._loaded
        self._loaded = self._counted = None
        gc.collect()
        report("import", "Importing TensorFlow", None)
        check()
        from .load.keras_import import import_keras
        from .load.model import load_model

        with timer("import"):
            import_keras()
        check()
        report("model", f"Loading {Path(spec).name}", None)
        with timer("model"):
            model, summary = load_model(spec, root, safe_mode=safe_mode)
        check()
        self._loaded = Loaded(key, model, summary)
        return self._loaded

    def _count(self, loaded: Loaded, inputs: Inputs, report: Report, check: Check, timer: Timer) -> Counted:
        options = (inputs.threshold, inputs.neurons_per_layer, inputs.seed, inputs.task)
        data = tuple(signature(spec) for spec in inputs.test_data)
        key = (loaded.key, inputs.test_data, data, options)
        if self._counted is not None and self._counted.key == key and None not in data:
            return self._counted
        self._counted = None
        from .counting import count

        tests = self._tests(loaded, inputs, report, check, timer)
        self._counted = count(key, loaded.model, loaded.summary, inputs, tests, report, check, timer)
        return self._counted

    def _tests(self, loaded: Loaded, inputs: Inputs, report: Report, check: Check, timer: Timer) -> TestSet:
        from .compatibility import only_input
        from .load.tests import load_tests

        only_input(loaded.model)  # before the tests are looked at: no test set would do
        report("tests", "Loading the test data", None)
        with timer("tests"):
            tests = load_tests(inputs.test_data, inputs.root)
        check()
        return tests


def signature(spec: str) -> Hashable | None:
    """What changes when the file does; ``None`` where that cannot be known (``module:function``)."""
    try:
        stat = Path(spec).stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _captured_key(spec: str) -> Hashable:
    """What changes when the folder of a capture is written again; the model's own file need not exist."""
    from .load.captured import RECORD

    return ("captured", spec, signature(str(Path(spec).with_name(RECORD))), signature(spec))


def versions() -> dict[str, str]:
    """Versions that a result depends on."""
    from importlib import metadata

    import numpy as np
    import tensorflow as tf

    found = {"python": platform.python_version(), "numpy": np.__version__, "tensorflow": tf.__version__}
    for package in ("keras", "guider-ls"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
