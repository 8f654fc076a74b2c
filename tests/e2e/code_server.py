"""A VS Code that runs in a browser: code-server with its own data, our extension installed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import psutil

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / ".tools/node/bin"
ENTRY = ROOT / ".tools/code-server/node_modules/code-server/out/node/entry.js"
VSIX = ROOT / "dist/guider.vsix"
VENV = ROOT / ".venv/bin"

QUIET: Mapping[str, Any] = {
    "chat.disableAIFeatures": True,
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": "off",
    "files.autoSave": "off",
    "git.enabled": False,
    "security.workspace.trust.banner": "never",
    "security.workspace.trust.startupPrompt": "never",
    "telemetry.telemetryLevel": "off",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
}
"""User settings: nothing opens, asks or downloads by itself."""

OURS: Mapping[str, Any] = {
    "guider.interpreter": str(VENV / "python"),
    "guider.server.command": [str(VENV / "guider-ls"), "serve"],
}
"""Settings of the machine: the server and the interpreter of this checkout."""

PATIENCE = 120.0
"""Seconds until something that should have happened counts as failed."""


class CodeServer:
    """One code-server under ``folder`` (emptied first); use it as a context manager.

    Args:
        folder: for data, extensions and logs.
        user: settings of the user, beside the quiet ones.
        machine: settings of the machine; code-server reads machine-scoped settings nowhere else.
        trust: whether workspace trust is on, so that folders open untrusted.
        environment: variables changed for it and all that it starts.
        extensions: further extensions, as VSIX files.
    """

    def __init__(
        self,
        folder: Path,
        *,
        user: Mapping[str, Any] | None = None,
        machine: Mapping[str, Any] = OURS,
        trust: bool = False,
        environment: Mapping[str, str] | None = None,
        extensions: Sequence[Path] = (),
    ) -> None:
        self._folder = folder
        self._cache = folder / "cache"
        self._trust = trust
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("auth: none\n")
        self._write("User", {**QUIET, **(user or {})})
        self.set_machine(machine)
        self._environment = {
            **os.environ,
            "PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}",
            "EXTENSIONS_GALLERY": "{}",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "XDG_CACHE_HOME": str(self._cache),
            **(environment or {}),
        }
        self._base = [
            *(str(NODE / "node"), str(ENTRY)),
            *("--config", str(folder / "config.yaml")),
            *("--user-data-dir", str(folder / "data")),
            *("--extensions-dir", str(folder / "extensions")),
        ]
        self._extensions = (VSIX, *extensions)
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def set_machine(self, settings: Mapping[str, Any]) -> None:
        """Write the settings of the machine; a running editor takes them over."""
        self._write("Machine", settings)

    def forget_counts(self) -> None:
        """Remove what was counted of models and tests: the same ones, in another project, run anew."""
        for spectra in self._cache.glob("*/spectra"):
            shutil.rmtree(spectra)

    def url(self, folder: Path) -> str:
        """The address that opens a folder, or the folders of a ``.code-workspace`` file."""
        kind = "workspace" if folder.suffix == ".code-workspace" else "folder"
        return f"http://127.0.0.1:{self._port}/?{kind}={quote(str(folder))}"

    def processes(self, word: str) -> list[psutil.Process]:
        """Its descendants with ``word`` in their command line."""
        if self._process is None:
            return []
        found = []
        for child in psutil.Process(self._process.pid).children(recursive=True):
            try:
                if word in " ".join(child.cmdline()):
                    found.append(child)
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        return found

    def log(self) -> str:
        """What the extension wrote to its output, in all windows so far."""
        logs = sorted((self._folder / "data/logs").glob("**/guider-ls.guider/*.log"))
        return "\n".join(log.read_text(errors="replace") for log in logs)

    def __enter__(self) -> CodeServer:
        subprocess.run(
            [
                *self._base,
                *(word for vsix in self._extensions for word in ("--install-extension", str(vsix))),
            ],
            env=self._environment,
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        options = [
            *("--auth", "none", "--bind-addr", f"127.0.0.1:{self._port}"),
            *("--disable-telemetry", "--disable-update-check"),
            # Else the extension host takes PATH from a login shell.
            *("--vscode-option", "force-disable-user-env"),
            *([] if self._trust else ["--disable-workspace-trust"]),
        ]
        with (self._folder / "code-server.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*self._base, *options],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait_for_health()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> list[psutil.Process]:
        """End it; the answer is what was started in it and outlived it (and has been killed now)."""
        if self._process is None:
            return []
        children = psutil.Process(self._process.pid).children(recursive=True)
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(PATIENCE / 4)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None
        _, alive = psutil.wait_procs(children, timeout=PATIENCE / 4)
        for process in alive:
            process.kill()
        return alive

    def _write(self, scope: str, settings: Mapping[str, Any]) -> None:
        file = self._folder / "data" / scope / "settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings, indent=2), encoding="utf-8")

    def _wait_for_health(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/healthz", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        self.stop()
        log = (self._folder / "code-server.log").read_text(errors="replace")
        raise RuntimeError(f"code-server did not start:\n{log[-4000:]}")
