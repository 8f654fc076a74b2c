"""One localization after another in a warm process.

What a request needs again is kept, by content: of the last model its memory and its compiled pass, of the last tests
what was opened, of the last count its result, and results in a folder, too, for the next process. So

- another formula, aggregation or weighting runs nothing,
- new weights of the same architecture are put into the model that is there, whose pass stays compiled,
- other tests or options are run by the model that is there.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .content import Contents, Keys
from .request import Check, Report, Timer
from .versions import versions
from .wire import CaptureRecord, Inputs, Localization, ModelSummary, Program

if TYPE_CHECKING:
    from .counting import Plan
    from .kept import Entry
    from .load.model import LoadedModel
    from .load.tests.testset import TestSet


@dataclass(frozen=True, slots=True)
class Warm:
    """A model in memory, and the keys of what it was loaded from (see `Keys`)."""

    code: str | None
    weights: str | None
    loaded: LoadedModel


class Session:
    """State of the engine between requests. Not safe for several threads."""

    def __init__(self) -> None:
        """Nothing is imported or loaded before the first request."""
        self._contents = Contents()
        self._warm: Warm | None = None
        self._plan: Plan | None = None
        self._tests: tuple[Hashable, TestSet] | None = None
        self._entry: tuple[str, Entry] | None = None
        self._captured: dict[str, Warm] = {}

    def capture(self, program: Program, output: str, report: Report, check: Check) -> CaptureRecord:
        """Run a program and keep what it trains, in the folder ``output`` and in memory.

        Raises:
            EngineFailure: it failed, or ended, without any model.
            CancelRequested: through ``check``.
        """
        from .capture.capture import capture
        from .load.model import LoadedModel

        watched = capture(program, output, report, check)
        self._forget()
        self._tests, self._captured = None, {}
        for entry, model in zip(watched.record.models, watched.models, strict=True):
            weights = self._contents.weights(Inputs(entry.path, (), program.root), check)
            self._captured[entry.path] = Warm(None, weights, LoadedModel(model, entry.model))
        return watched.record

    def inspect(self, inputs: Inputs, report: Report, check: Check) -> ModelSummary:
        """The layers of a model; tests are not looked at.

        Raises:
            EngineFailure: the model cannot be loaded.
            CancelRequested: through ``check``.
        """
        keys = self._contents.keys(replace(inputs, test_data=()), check)
        return self._model(keys, inputs, report, check, Timer())[0].summary

    def probe(self, inputs: Inputs, report: Report, check: Check) -> ModelSummary:
        """The layers of a model, if it can run the tests; a few of them are run.

        Raises:
            EngineFailure: the model or the tests cannot be used, or do not fit each other.
            CancelRequested: through ``check``.
        """
        keys = self._contents.keys(inputs, check)
        plan, _, _ = self._prepare(keys, inputs, report, check, Timer())
        return plan.loaded.summary

    def localize(self, inputs: Inputs, report: Report, check: Check, cache: str = "") -> Localization:
        """Rank the layers of a model by suspicion.

        Args:
            inputs: files and options.
            report: told what is being done.
            check: raises when the request was cancelled.
            cache: folder in which results of counting are kept for other processes; empty: none.

        Raises:
            EngineFailure: the model or the tests cannot be used, or do not fit each other.
            CancelRequested: through ``check``.
        """
        timer = Timer()
        with timer("content"):
            keys = self._contents.keys(inputs, check)
            entry = self._known(keys.counted, cache)
        if entry is None:
            entry = self._count(keys, inputs, report, check, timer, cache)
        from .localization import localization

        with timer("rank"):
            found = localization(inputs, entry.summary, entry.counted, entry.versions)
        return replace(found, timings=timer.seconds)

    def _known(self, key: str | None, cache: str) -> Entry | None:
        """What was counted before, in this process or in another one."""
        if key is None:
            return None
        if self._entry is not None and self._entry[0] == key:
            return self._entry[1]
        if not cache:
            return None
        try:
            from .kept import Kept
        except ModuleNotFoundError:
            return None  # without NumPy nothing was kept, and the loading of Keras says what is missing
        entry = Kept(Path(cache)).read(key)
        if entry is not None:
            self._entry = key, entry
        return entry

    def _count(
        self, keys: Keys, inputs: Inputs, report: Report, check: Check, timer: Timer, cache: str
    ) -> Entry:
        self._entry = None
        plan, tests, keys = self._prepare(keys, inputs, report, check, timer)
        from .counting import count
        from .kept import Entry, Kept

        counted, self._plan = count(plan, tests, inputs, report, check, timer)
        entry = Entry(plan.loaded.summary, counted, versions())
        after = self._contents.keys(inputs, check)
        if after.tests != keys.tests:
            self._tests = None
        if keys.counted is not None and after == keys:
            self._entry = keys.counted, entry
            if cache:
                Kept(Path(cache)).write(keys.counted, entry, check)
        return entry

    def _prepare(
        self, keys: Keys, inputs: Inputs, report: Report, check: Check, timer: Timer
    ) -> tuple[Plan, TestSet, Keys]:
        loaded, keys = self._model(keys, inputs, report, check, timer)
        tests = self._open(keys, loaded, inputs, report, check, timer)
        from .counting import prepare

        with timer("prepare"):
            self._plan = plan = prepare(loaded, tests, inputs, self._plan)
        check()
        return plan, tests, keys

    def _model(
        self, keys: Keys, inputs: Inputs, report: Report, check: Check, timer: Timer
    ) -> tuple[LoadedModel, Keys]:
        """The model, and the keys without those that do not hold because its file changed while it was loaded."""
        in_memory = self._captured.get(inputs.model)
        if in_memory is not None:
            if in_memory.weights == keys.weights:
                return in_memory.loaded, keys
            del self._captured[inputs.model]  # another capture has written the folder since
        warm = self._warm
        if warm is not None and keys.weights is not None and keys.code is not None and warm.code == keys.code:
            if warm.weights == keys.weights:
                return warm.loaded, keys
            self._warm = None
            if self._put_weights(warm.loaded, inputs, report, timer):
                return self._hold(warm.loaded, keys, inputs, check)
        del warm
        self._forget()
        return self._hold(self._load(inputs, report, check, timer), keys, inputs, check)

    def _hold(
        self, loaded: LoadedModel, keys: Keys, inputs: Inputs, check: Check
    ) -> tuple[LoadedModel, Keys]:
        check()
        now = self._contents.keys(replace(inputs, test_data=()), check)
        if (now.code, now.weights) != (keys.code, keys.weights):
            keys = replace(keys, code=None, weights=None, counted=None)
        self._warm = Warm(keys.code, keys.weights, loaded)
        return loaded, keys

    @staticmethod
    def _put_weights(loaded: LoadedModel, inputs: Inputs, report: Report, timer: Timer) -> bool:
        """Whether the model in memory has become the one that is asked for."""
        from .load.model import load_weights

        report("model", f"Loading the weights of {_name(inputs)}", None)
        with timer("weights"):
            return load_weights(loaded.model, inputs.model)

    @staticmethod
    def _load(inputs: Inputs, report: Report, check: Check, timer: Timer) -> LoadedModel:
        report("import", "Importing Keras", None)
        check()
        from .load.keras_import import import_keras
        from .load.model import load_model

        with timer("import"):
            import_keras()
        check()
        report("model", f"Loading {_name(inputs)}", None)
        with timer("model"):
            return load_model(inputs)

    def _open(
        self, keys: Keys, loaded: LoadedModel, inputs: Inputs, report: Report, check: Check, timer: Timer
    ) -> TestSet:
        from .load.inputs import inputs_of
        from .load.tests import load_tests

        wanted = inputs_of(loaded.model)
        key = (keys.tests, wanted)
        if self._tests is not None and self._tests[0] == key and keys.tests is not None:
            return self._tests[1]
        self._tests = None
        report("tests", "Loading the test data", None)
        with timer("tests"):
            tests = load_tests(inputs, wanted, loaded.given, check)
        check()
        if sys.platform != "win32":  # there, nobody could write a file that is held open
            self._tests = key, tests
        return tests

    def _forget(self) -> None:
        """Let go of the model and of what was counted, before memory is needed for another one."""
        self._warm = self._plan = self._entry = None
        gc.collect()


def _name(inputs: Inputs) -> str:
    return Path(inputs.model).name or inputs.load
