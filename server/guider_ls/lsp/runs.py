"""From a wish to localize or to train to a result: what is needed, whether anything changed, the run, its failures."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lsprotocol import types

from guider_ls.analysis.fingerprint import Fingerprint, files_of, is_fresh, settled
from guider_ls.analysis.store import Stored
from guider_ls.errors import Cancelled, GuiderError, InputError, UsageError
from guider_ls.lsp.client import Button
from guider_ls.lsp.documents import Document, Result, State, Status
from guider_ls.lsp.features.commands import choose_captured_model, show_log
from guider_ls.lsp.projects import Project
from guider_ls.lsp.trainings import Trainings, Wish
from guider_ls.project.captures import Capture, Captures, localized_all_the_same, notices
from guider_ls.project.targets import PROGRAMS, Target, find_target, to_inputs

if TYPE_CHECKING:
    from guider_ls.lsp.server import GuiderServer
    from guider_ls.project.interpreter import Interpreter
    from guider_ls.project.settings import Settings

Reason = Literal["command", "open", "save", "files"]
"""Why a localization is wished for."""

_FRESH = 5.0
"""Seconds after its last change in which a file that cannot be loaded is tried once more."""
_RETRY_AFTER = 1.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed or was cancelled; the same inputs are not tried again by themselves."""

    fingerprint: Fingerprint
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would read."""

    fingerprint: Fingerprint
    target: Target


class Runs:
    """The localizations of all projects."""

    def __init__(self, server: GuiderServer) -> None:
        """Work for ``server``."""
        self._server = server
        self._client = server.client
        self._failures: dict[str, Failure] = {}
        self._declined: set[str] = set()
        """Programs whose run the user is cancelling."""
        self._asked: set[str] = set()
        """Programs that the user asked for, until a run for them starts, be it of a newer wish."""
        self._wishes: dict[str, Wish] = {}
        """Programs that are to be run first, until a run for them starts."""
        self._training: set[str] = set()
        """Programs that are being run."""
        self.trainings = Trainings(server, Captures(server.cache / "captures"))

    async def restore(self, document: Document, project: Project) -> None:
        """Show the stored result of a document, if it is one of the inputs as they are now."""
        if document.path is None or document.result is not None:
            return
        stored = await asyncio.to_thread(self._server.store.load, document.path)
        if stored is None:
            return
        self._server.fingerprints.remember(stored.fingerprint)
        await self.trainings.restore(document, await project.configured(), stored)
        with contextlib.suppress(GuiderError):
            plan = await self._plan(document, project)
            if stored.fingerprint.same(plan.fingerprint) and document.result is None:
                origin, found = plan.target.source, stored.localization
                result = Result(found, stored.finished, plan.fingerprint, 0, origin, stored.capture)
                await self._server.show(document, result)

    async def request(self, document: Document, project: Project, reason: Reason) -> None:
        """Localize, if the settings want it for this reason and anything changed."""
        settings = await project.configured()
        explicit = reason == "command"
        if not self._may_run(document, settings, explicit=explicit):
            return
        if reason == "save" and settings.train_on_save:
            if await self.trainings.is_due(document, project, settings):
                await self.train(document, project, Wish("", asked=False))
                return
            idle = document.key not in self._training and document.status.state != "error"
            if not idle and not await self.trainings.is_current(document):
                # What runs or failed is of another text, and for this one there is a capture.
                project.scheduler.cancel(document.key)
                self._submit(document, project, explicit=False)
                return
        if reason == "save" and document.result is not None and document.result.capture is not None:
            return  # only running the program gives another model
        if not explicit and settings.run == "manual":
            return
        if reason == "save" and settings.run == "onModelChange" and self._client.watches_files:
            return
        if explicit:
            if project.scheduler.running == document.key and document.status.state == "running":
                return
            self._client.forget(str(project.root))
            self.trainings.forget(document)
        self._submit(document, project, explicit)

    async def train(self, document: Document, project: Project, wish: Wish) -> None:
        """Run the program and localize in what it trains; a run of it that is under way is ended."""
        settings = await project.configured()
        if not self._may_run(document, settings, explicit=wish.asked):
            return
        if document.path is not None and document.path.suffix not in PROGRAMS:
            self._client.tell(
                f"GUIDER runs programs (.py), not {document.path.name}. A notebook is localized in the model that "
                "its cells save, or that guider.model and guider.testData name: run GUIDER: Localize Faults."
            )
            return
        if wish.asked and (name := await self.trainings.unsaved(document, project)):
            self._client.tell(
                f"GUIDER: save {name} first. What is on the disk is run.", types.MessageType.Warning
            )
            return
        if wish.asked:
            self._client.forget(str(project.root))
        if document.key in self._training:
            project.scheduler.cancel(document.key)
        self._wishes[document.key] = wish
        self._submit(document, project, wish.asked)

    async def localize_captured(
        self, document: Document, project: Project, capture: Capture, name: str
    ) -> None:
        """Localize in this model of a capture, as the user asks."""
        if self._may_run(document, await project.configured(), explicit=True):
            self.trainings.take(document, capture, name)
            self._submit(document, project, explicit=True)

    def _may_run(self, document: Document, settings: Settings, *, explicit: bool) -> bool:
        """Whether anything may run for a document; the user is told why not, if it is what they asked for."""
        if not settings.enable:
            if explicit:
                self._client.tell("GUIDER is switched off by the setting guider.enable.")
            return False
        if document.path is None:
            if explicit:
                self._client.tell("GUIDER: save the program to a file first, then localize.")
            return False
        if not self._client.trusted:
            self._status(document, "untrusted", "GUIDER: not trusted", UNTRUSTED)
            if explicit:
                self._client.tell(UNTRUSTED, types.MessageType.Warning)
            return False
        return True

    def _submit(self, document: Document, project: Project, explicit: bool) -> None:
        if explicit:
            self._asked.add(document.key)
        project.scheduler.submit(document.key, partial(self._run, document, project))

    def cancel(self, document: Document | None = None) -> bool:
        """Cancel the runs of a document, or all, as the user wants; return whether there were any."""
        cancelled = False
        key = document.key if document is not None else None
        self._asked = set() if key is None else self._asked - {key}
        self._wishes = {k: wish for k, wish in self._wishes.items() if key not in (None, k)}
        for project in self._server.projects.values():
            running = project.scheduler.running
            if project.scheduler.cancel(key):
                cancelled = True
                if running is not None and key in (None, running):
                    self._declined.add(running)
        return cancelled

    def drop(self, project: Project) -> None:
        """Cancel the runs of a project that is switched off or gone; what was asked for is not done later either."""
        for document in self._server.documents_of(project):
            self._asked.discard(document.key)
            self._wishes.pop(document.key, None)
        project.scheduler.cancel()

    def reads(self, document: Document) -> tuple[Path, ...]:
        """The files from which what is shown of a document was computed, or could not be."""
        if document.result is not None:
            return files_of(document.result.fingerprint.inputs)
        failure = self._failures.get(document.key)
        return files_of(failure.fingerprint.inputs) if failure is not None else ()

    # One run

    async def _run(self, submitted: Document, project: Project, generation: int) -> None:
        key = submitted.key
        explicit = key in self._asked
        wish = self._wishes.pop(key, None)
        self._asked.discard(key)
        self._declined.discard(key)
        document = self._server.documents.get(submitted.uri)
        if document is None:
            return
        try:
            await self._localize(document, project, explicit, wish, generation)
        except asyncio.CancelledError:
            self._settle(document)
            if explicit:
                self._client.log(f"cancelled: {document.key}")
            raise
        except Cancelled:
            self._settle(document)
        except GuiderError as error:
            self._fail(document, project, error, explicit)
        except Exception:
            self._settle(document)
            raise
        else:
            if document.status.state == "running" and project.scheduler.is_newest(document.key, generation):
                self._settle(document)

    async def _localize(
        self, document: Document, project: Project, explicit: bool, wish: Wish | None, generation: int
    ) -> None:
        await self._server.until_read(document)
        if not self._server.is_open(document):
            return
        if document.source is None:
            raise InputError("program-syntax", document.problem or "The program cannot be read.")
        if not explicit and wish is None and not document.source.sites:
            return
        capture = await self._train(document, project, wish) if wish is not None else None
        plan = await self._plan(document, project, capture, settle=wish is None)
        if await self._is_answered(document, plan, explicit, generation):
            return
        interpreter = await asyncio.to_thread(project.interpreter)
        failure = Failure(plan.fingerprint, interpreter.command)
        if not explicit and self._same_failure(document, failure):
            return
        self._client.forget(str(project.root))
        if explicit and project.gave_up:
            await project.close_engine()
        try:
            result = await self._ask(document, project, plan, interpreter, generation)
        except asyncio.CancelledError:
            if document.key in self._declined:
                self._declined.discard(document.key)
                self._failures[document.key] = failure
            raise
        except Cancelled:
            raise
        except GuiderError:
            self._failures[document.key] = failure
            raise
        self._failures.pop(document.key, None)
        await self._publish(document, project, result, capture, explicit)

    async def _is_answered(self, document: Document, plan: Plan, explicit: bool, generation: int) -> bool:
        """Whether the result for these inputs is there already; then it is what is shown."""
        shown = document.result
        if shown is not None and shown.fingerprint.same(plan.fingerprint):
            self._settle(document)
            if explicit:
                when = time.strftime("%H:%M", time.localtime(shown.finished))
                self._client.tell(
                    f"GUIDER: nothing changed since the localization of {when}: the model, the test set and the "
                    "settings are the same."
                )
            return True
        if (known := self._known(plan.fingerprint, generation)) is not None:
            await self._server.show(document, known)
            return True
        return False

    async def _train(self, document: Document, project: Project, wish: Wish) -> Capture:
        self._training.add(document.key)
        try:
            capture = await self.trainings.run(document, project, wish, partial(self.cancel, document))
        finally:
            self._training.discard(document.key)
        record = capture.record
        if record.failure is not None:
            text = f"GUIDER: {localized_all_the_same(record.failure.message)}"
            button = self._way_out(document, project, record.failure.code, record.failure.message)
            self._client.tell_once(str(project.root), text, types.MessageType.Warning, button)
        elif len(record.models) > 1 and not wish.model:
            text = f"GUIDER: the program trained {len(record.models)} models; localized is {capture.model().name}."
            button = Button("Choose Another", partial(choose_captured_model, self._server, document, project))
            self._client.tell_once(str(project.root), text, types.MessageType.Info, button)
        return capture

    async def _ask(
        self, document: Document, project: Project, plan: Plan, interpreter: Interpreter, generation: int
    ) -> Result:
        program = document.path.name if document.path is not None else ""
        self._status(document, "running", "GUIDER: localizing")
        self._server.refresh(document)
        title = f"GUIDER: localizing {program}"
        inputs, target = plan.fingerprint.inputs, plan.target
        async with self._client.progress(title, partial(self.cancel, document)) as on_progress:
            for last in (False, True):
                engine = await project.engine(interpreter)
                try:
                    localization = await engine.localize(inputs, on_progress)
                    break
                except InputError as error:
                    # A training script may have been caught in the middle of writing.
                    fresh = any(is_fresh(file, _FRESH) for file in files_of(inputs))
                    if last or not fresh or not error.code.startswith(("model", "test-data")):
                        raise
                    await asyncio.sleep(_RETRY_AFTER)
        origin = f"{target.source}; interpreter: {interpreter.source}"
        if target.capture is None or target.captured is None:
            return Result(localization, time.time(), plan.fingerprint, generation, origin)
        said = notices(target.capture, target.captured, inputs.test_data)
        localization = replace(localization, notices=(*said, *localization.notices))
        record = target.capture.record
        return Result(localization, time.time(), plan.fingerprint, generation, origin, record)

    async def _publish(
        self, document: Document, project: Project, result: Result, capture: Capture | None, explicit: bool
    ) -> None:
        """Show and store a result; where files or settings changed while it was computed, run again instead."""
        now = await self._plan(document, project, capture)
        if not now.fingerprint.same(result.fingerprint):
            if project.scheduler.is_newest(document.key, result.generation):
                self._submit(document, project, explicit)
            return
        try:
            stored = Stored(
                document.key, result.fingerprint, result.finished, result.localization, result.capture
            )
            await asyncio.to_thread(self._server.store.save, stored)
        except OSError as error:
            self._client.log(f"the result cannot be stored: {error}", types.MessageType.Warning)
        current = self._server.documents.get(document.uri)
        if current is not None:
            await self._server.show(current, result)

    async def _plan(
        self, document: Document, project: Project, capture: Capture | None = None, *, settle: bool = False
    ) -> Plan:
        """What to read; a ``capture`` that was made for this very run comes first."""
        settings = self.trainings.settings(document, await project.configured())
        trained = capture is not None
        if capture is None:
            capture = await self.trainings.latest(document, settings)
            trained = self.trainings.was_wanted(document, capture)
        target = await asyncio.to_thread(
            partial(find_target, trained=trained),
            *(document.path, project.root, settings, document.source, capture),
        )
        inputs = to_inputs(target, settings)
        if settle:
            await settled(files_of(inputs))
        fingerprint = await asyncio.to_thread(self._server.fingerprints.take, inputs)
        return Plan(fingerprint, target)

    def _known(self, fingerprint: Fingerprint, generation: int) -> Result | None:
        """The same question answered for another open document."""
        for other in self._server.documents.values():
            if other.result is not None and other.result.fingerprint.same(fingerprint):
                return replace(other.result, generation=generation)
        return None

    def _same_failure(self, document: Document, failure: Failure) -> bool:
        known = self._failures.get(document.key)
        return (
            known is not None
            and known.command == failure.command
            and known.fingerprint.same(failure.fingerprint)
        )

    def _fail(self, document: Document, project: Project, error: GuiderError, explicit: bool) -> None:
        no_target = isinstance(error, UsageError) or error.code in NO_TARGET
        if not no_target:
            self._client.log(
                f"{error.code}: {error.message}\n{error.detail}".rstrip(), types.MessageType.Error
            )
        if error.code == "engine-crash-loop":
            project.gave_up = True
        if no_target:
            self._status(document, "no-target", "GUIDER: no model or test set", error.message)
        else:
            self._status(document, "error", "GUIDER: failed", error.message)
        if explicit or (not no_target and error.code != "program-syntax"):
            button = self._way_out(document, project, error.code, error.message)
            self._client.tell_once(str(project.root), f"GUIDER: {error.message}", button=button)
        self._server.refresh(document)

    def _way_out(self, document: Document, project: Project, code: str, message: str) -> Button | None:
        """What to offer with the message of a failure."""
        if code == "keras-2-program" and "legacyKeras" in message and project.has_package("tf-keras"):
            return Button("Run on tf_keras", partial(self._train_on_legacy, document, project))
        if project.engine_log():
            return Button("Show Log", partial(show_log, self._server, [project]))
        return None

    async def _train_on_legacy(self, document: Document, project: Project) -> None:
        self.trainings.on_legacy(document)
        await self.train(document, project, Wish("", asked=True))

    def _settle(self, document: Document) -> None:
        """Back to what is shown, after a run that changed nothing."""
        self._server.show_status(document, self._server.status_of(document))
        self._server.refresh(document)

    def _status(self, document: Document, state: State, text: str, detail: str = "") -> None:
        self._server.show_status(document, Status(state, text, detail))


NO_TARGET = frozenset(
    {
        "target-missing",
        "target-ambiguous",
        "model-missing",
        "test-data-missing",
        "captured-model-unknown",
        "captured-no-tests",
    }
)
UNTRUSTED = (
    "GUIDER does not run the model of a folder that is not trusted: loading a model executes code. Trust the folder "
    "to localize faults."
)
