"""Programs that are run to localize in what they train: when that is due, the run itself, which model is taken."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from guider_engine.wire import CapturedModel, FileState, Program, Progress
from guider_ls.errors import GuiderError, InputError
from guider_ls.lsp.documents import Document, Status
from guider_ls.project.captures import (
    Capture,
    Captures,
    command_line,
    folder_of,
    source_states,
    to_program,
)
from guider_ls.project.targets import PROGRAMS, for_program, program_of
from guider_ls.source.decode import decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from guider_ls.analysis.store import Stored
    from guider_ls.lsp.projects import Project
    from guider_ls.lsp.server import GuiderServer
    from guider_ls.project.settings import Settings


TRAINING = "GUIDER: training"
"""How the status of a program begins while it runs."""


@dataclass(frozen=True, slots=True)
class Wish:
    """That a program be run before it is localized."""

    model: str
    """Which of the models it trains is localized; empty: as the settings say."""
    asked: bool
    """Whether the user asked for it, rather than a save."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What was run last, whatever came of it."""

    program: Program
    command: tuple[str, ...]
    states: tuple[FileState, ...]


class Trainings:
    """The captures of open documents. All methods belong to the event loop."""

    def __init__(self, server: GuiderServer, captures: Captures) -> None:
        """Nothing was run yet."""
        self.captures = captures
        self._server = server
        self._client = server.client
        self._runs: dict[str, _Run] = {}
        self._folders: dict[str, Path] = {}
        """What the user had captured: it counts before what the settings name."""
        self._models: dict[str, str] = {}
        """Models that the user chose, until the next capture."""
        self._legacy: set[str] = set()
        """Programs that the user had run on ``tf_keras``."""

    def settings(self, document: Document, settings: Settings) -> Settings:
        """The settings with what the user chose for this document."""
        key = document.key
        return attrs.evolve(
            settings,
            capture_model=self._models.get(key, settings.capture_model),
            capture_legacy_keras=settings.capture_legacy_keras or key in self._legacy,
        )

    async def latest(self, document: Document, settings: Settings) -> Capture | None:
        """The latest capture of a document's program with the arguments that the settings name."""
        if document.path is None:
            return None
        return await asyncio.to_thread(self.captures.newest, document.path, settings.capture_arguments)

    async def restore(self, document: Document, settings: Settings, stored: Stored) -> None:
        """Take over which captured model was shown when the document was closed, if its capture holds."""
        capture = await self.latest(document, settings) if stored.capture is not None else None
        if capture is None or not capture.holds or document.key in self._folders:
            return
        for model in capture.record.models:
            if model.path == stored.fingerprint.inputs.model:
                usual = model is capture.record.models[0] and not settings.capture_model
                self.take(document, capture, "" if usual else model.name)

    def was_wanted(self, document: Document, capture: Capture | None) -> bool:
        """Whether the user asked for this capture, and for nothing else since."""
        return capture is not None and self._folders.get(document.key) == capture.folder

    def forget(self, document: Document) -> None:
        """The user asks for a localization of whatever is there."""
        self._folders.pop(document.key, None)

    def on_legacy(self, document: Document) -> None:
        """The user wants the program to run on ``tf_keras``."""
        self._legacy.add(document.key)

    def take(self, document: Document, capture: Capture, model: str) -> None:
        """The user wants a capture, and this model of it."""
        self._folders[document.key] = capture.folder
        if model:
            self._models[document.key] = model
        else:
            self._models.pop(document.key, None)

    # When

    async def is_due(self, document: Document, project: Project, settings: Settings) -> bool:
        """Whether a save of the program or of a module of it calls for another run: anything of it changed."""
        await self._server.until_read(document)
        settings = self.settings(document, settings)
        path = document.path
        if path is None or path.suffix not in PROGRAMS:
            return False
        if not await self._is_program(document, path, project, settings):
            return False
        try:
            program = to_program(path, project.root, settings)
            command = (await asyncio.to_thread(project.interpreter)).command
        except GuiderError:
            return True  # the attempt will say why
        before = self._runs.get(document.key)
        same = before is not None and (before.program, before.command) == (program, command)
        if same and await self.is_current(document):
            return False
        return await asyncio.to_thread(self.captures.reusable, program, command) is None

    async def is_current(self, document: Document) -> bool:
        """Whether what was run last, or runs, is the program as its files are now."""
        run = self._runs.get(document.key)
        if run is None:
            return True  # it is about to begin
        return await asyncio.to_thread(source_states, [state.path for state in run.states]) == run.states

    async def _is_program(self, document: Document, path: Path, project: Project, settings: Settings) -> bool:
        """Whether it is a program that trains, rather than one of the many files that must not be run by a save."""
        if document.key in self._runs or await self.latest(document, settings) is not None:
            return True
        try:
            named = program_of(for_program(settings, None, project.root), project.root)
        except GuiderError:
            named = None
        if named is not None:
            return named == path
        others = (other for other in self._server.documents_of(project) if other is not document)
        trains = document.source is not None and document.source.training and document.source.sites
        return bool(trains) and not any(uses(other, path) for other in others)

    async def unsaved(self, document: Document, project: Project) -> str:
        """Which file has to be saved before the program is run: what is on the disk is run; empty: none."""
        await self._server.until_read(document)
        for other in self._server.documents_of(project):
            if (
                other.path is not None
                and (other is document or uses(document, other.path))
                and await asyncio.to_thread(_differs, other.text, other.path)
            ):
                return other.path.name
        return ""

    # The run

    async def run(
        self, document: Document, project: Project, wish: Wish, cancel: Callable[[], object]
    ) -> Capture:
        """Run the program of a document.

        Raises:
            GuiderError: why it gave nothing.
        """
        from guider_ls.analysis.capturing import capture

        assert document.path is not None
        settings = self.settings(document, await project.configured())
        interpreter = await asyncio.to_thread(project.interpreter)
        program = to_program(document.path, project.root, settings)
        used = (document.key, *(document.source.modules if document.source is not None else ()))
        states = await asyncio.to_thread(source_states, used)
        self._runs[document.key] = _Run(program, interpreter.command, states)
        if wish.asked and project.gave_up:
            await project.close_engine()
        engine = await project.engine(interpreter)
        self._show(document, TRAINING)
        self._server.refresh(document)
        title = f"GUIDER: training {command_line(program)}"
        async with self._client.progress(title, cancel) as show:

            def on_progress(progress: Progress) -> None:
                show(progress)
                if progress.stage == "program" and progress.fraction is not None:
                    self._show(document, f"{TRAINING}, {progress.message.partition(' · ')[0]}")

            found = await capture(engine, self.captures, program, on_progress, keep=self._shown())
        states = found.record.sources
        self._runs[document.key] = _Run(program, interpreter.command, states)
        self.take(document, found, wish.model)
        return found

    def _show(self, document: Document, text: str) -> None:
        self._server.show_status(document, Status("running", text))

    def _shown(self) -> tuple[Path, ...]:
        """The folders of what is shown, which are not to be removed."""
        results = (document.result for document in self._server.documents.values())
        return tuple(folder_of(r.capture) for r in results if r is not None and r.capture is not None)


def uses(document: Document, path: Path) -> bool:
    """Whether the program of a document has this file as a module: by its text, or when it ran."""
    source, result = document.source, document.result
    ran = result.capture.sources if result is not None and result.capture is not None else ()
    return (source is not None and str(path) in source.modules) or any(s.path == str(path) for s in ran)


def described(model: CapturedModel) -> str:
    """A model to choose, for people."""
    epochs = f", {model.epochs} epochs" if model.epochs else ""
    return f"{model.name} ({model.model.class_name}, {len(model.model.layers)} layers{epochs})"


def _differs(text: str, path: Path) -> bool:
    """Whether a file has another text than the editor; also if there is no such file."""
    try:
        on_disk = decode(path.read_bytes())
    except OSError:
        return True
    except InputError:
        return False  # running it will say so
    return _normal(text) != _normal(on_disk)


def _normal(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
