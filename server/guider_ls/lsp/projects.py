"""A project: its settings as the editor and pyproject.toml give them, its engine, its runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from lsprotocol import types

from guider_ls.analysis.scheduler import Scheduler
from guider_ls.errors import EnvironmentProblem
from guider_ls.project.settings import Problem, Settings, from_mapping, of_project

if TYPE_CHECKING:
    from guider_ls.analysis.engine import Engine
    from guider_ls.lsp.client import Client
    from guider_ls.project.interpreter import Interpreter

_CONFIGURATION_TIMEOUT = 10.0
"""Seconds that a client has to answer for its settings; then those of the project alone count."""


class Project:
    """The folder of one or more programs. At most one engine, of one interpreter, belongs to it."""

    def __init__(
        self,
        root: Path,
        client: Client,
        on_error: Callable[[BaseException], None],
        spectra: Path | None = None,
    ) -> None:
        """Start without settings and without an engine, which is to keep hit spectra in ``spectra``."""
        self.root = root
        self._spectra = spectra
        self.scheduler = Scheduler(on_error)
        self.settings = Settings()
        self._editor_choice: tuple[str, ...] = ()
        self._client = client
        self._engine: Engine | None = None
        self.gave_up = False
        """Whether the engine crashed so often that only the user may start it again."""
        self._configuring: asyncio.Task[None] | None = None

    async def configured(self) -> Settings:
        """The settings, once they are known."""
        task = None
        while task is None or task is not self._configuring:
            if self._configuring is None:
                self._configuring = asyncio.ensure_future(self._configure())
            task = self._configuring
            await asyncio.shield(task)
        return self.settings

    def reconfigure(self) -> None:
        """Settings may have changed: read them again when they are needed next."""
        self._configuring = None
        self._client.forget(str(self.root))

    async def _configure(self) -> None:
        editor = await editor_settings(self._client, self.root)
        project, problems = await asyncio.to_thread(of_project, self.root)
        if self._configuring is not asyncio.current_task():
            return  # they changed again meanwhile
        chosen, more = from_mapping(editor)
        # An editor sends all keys, those that nobody set with their defaults: these leave the project's alone.
        default = Settings()
        names = [field.name for field in attrs.fields(Settings)]
        changed = {n: getattr(chosen, n) for n in names if getattr(chosen, n) != getattr(default, n)}
        self.settings = attrs.evolve(project, **changed)
        choice = editor.get("editorInterpreter")
        valid = isinstance(choice, list) and all(isinstance(part, str) for part in choice)
        self._editor_choice = tuple(choice) if choice is not None and valid else ()
        for problem in problems:
            self._warn(f"settings of {self.root}", problem, problem.key)
        for problem in more:
            # Of all folders that share the editor's settings, one is enough.
            self._warn("settings", problem, f"guider.{problem.key}")

    def _warn(self, subject: str, problem: Problem, key: str) -> None:
        origin = f" in {problem.origin}" if problem.origin else ""
        text = f"GUIDER: setting {key}{origin}: {problem.message}"
        self._client.tell_once(subject, text, types.MessageType.Warning)

    # The engine

    def interpreter(self) -> Interpreter:
        """The interpreter of the engine.

        Raises:
            EnvironmentProblem: there is none.
        """
        from guider_ls.project.interpreter import find_interpreter

        return find_interpreter(self.root, self.settings, editor_choice=self._editor_choice)

    async def engine(self, interpreter: Interpreter) -> Engine:
        """The engine of that interpreter; another one is closed."""
        from guider_ls.analysis.engine import Engine

        if self._engine is not None and self._engine.command != interpreter.command:
            await self.close_engine()
        if self._engine is None:
            self._engine = Engine(
                interpreter.command, root=self.root, log=self._client.log, spectra=self._spectra
            )
        return self._engine

    async def close_other_engine(self) -> None:
        """End the engine if the interpreter is not that of the settings any more."""
        try:
            command = (await asyncio.to_thread(self.interpreter)).command
        except EnvironmentProblem:
            command = ()
        if self._engine is not None and self._engine.command != command:
            await self.close_engine()

    def engine_log(self) -> str:
        """What the engine printed last; empty where there is no engine."""
        return self._engine.log_tail() if self._engine is not None else ""

    def has_package(self, name: str) -> bool:
        """Whether the interpreter has a package that matters, as far as its engine was asked."""
        hello = self._engine.hello if self._engine is not None else None
        return hello is not None and name in hello.packages

    async def close_engine(self) -> None:
        """End the engine, busy or not."""
        engine, self._engine = self._engine, None
        self.gave_up = False
        if engine is not None:
            await engine.close()

    async def close(self) -> None:
        """End runs and engine."""
        # Together: no new run starts an engine, and the engine's end ends a run that does not stop by itself.
        await asyncio.gather(self.scheduler.close(), self.close_engine())


async def editor_settings(client: Client, root: Path | None) -> Mapping[str, Any]:
    """What the editor says of a folder, or of no folder; an empty mapping where it says nothing."""
    if not client.gives_configuration:
        return client.pushed_configuration
    item = types.ConfigurationItem(scope_uri=root.as_uri() if root is not None else None, section="guider")
    question = client.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams([item]))
    try:
        answer = await asyncio.wait_for(question, _CONFIGURATION_TIMEOUT)
    except Exception as error:  # whatever the client does: its settings are not worth a failure
        client.log(f"the editor gave no settings: {error or type(error).__name__}")
        return {}
    section = answer[0] if answer else None
    return section if isinstance(section, dict) else {}
