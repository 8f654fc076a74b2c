"""Run a program as ``python PROGRAM.py ARGUMENTS`` would."""

from __future__ import annotations

import contextlib
import importlib.machinery
import io
import linecache
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from guider_engine.wire import Program

from .limits import Ended, Limits
from .sources import decode

_STARTUP = ("abc", "codecs", "encodings", "io", "os", "site", "stat", "genericpath", "ntpath", "posixpath")
"""Modules that Python itself has imported before it runs a program."""
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1")
    if hasattr(signal, name)
]


class Exited(Ended):
    """The program called ``os._exit``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"os._exit({status!r})")
        self.code = status


def run(program: Program, content: bytes, limits: Limits) -> BaseException | None:
    """Run the program's text to its end, and that of the threads it started.

    Returns:
        What ended it; ``None``: it ran to its end.
    """
    before, process, leave = set(threading.enumerate()), os.getpid(), os._exit
    ended: BaseException | None = None
    exited: list[int] = []
    with _surroundings(program, limits, exited) as module:
        try:
            with limits:
                try:
                    lines = decode(content).splitlines(keepends=True)
                    linecache.cache[program.path] = (len(content), None, lines, program.path)
                    code = compile(content, program.path, "exec", dont_inherit=True)
                    exec(code, module.__dict__)
                except SystemExit as error:
                    ended = error if error.code not in (None, 0) else None
                _join(before)
        except BaseException as error:
            ended = Exited(exited[0]) if limits.reason == "exit" else error
        if os.getpid() != process:  # a process that the program forked is no second engine
            leave(_status(ended))
    return ended


def _status(ended: BaseException | None) -> int:
    """What a process exits with, having said why."""
    if isinstance(ended, SystemExit) and isinstance(ended.code, int):
        return ended.code
    if ended is not None:
        traceback.print_exception(ended)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    return int(ended is not None)


@contextlib.contextmanager
def _surroundings(program: Program, limits: Limits, exited: list[int]) -> Iterator[ModuleType]:
    """What Python gives a program; afterwards all is as before, but for its module and what it imported."""
    module = _main_module(program)
    folder = _folder_of_script(program.path)
    kept: dict[Any, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    argv, path, cwd, real_exit = sys.argv, sys.path[:], Path.cwd(), os._exit
    streams = sys.stdin, sys.stdout, sys.stderr
    hidden: dict[str, ModuleType] = {}
    with warnings.catch_warnings():
        try:
            os.chdir(program.folder)
            sys.argv = [program.path, *program.arguments]
            sys.path.insert(0, str(folder))
            sys.modules["__main__"] = module
            os.environ["MPLBACKEND"] = "Agg"
            hidden = _hidden_by(folder)
            os._exit = _exit_of(limits, exited)
            # Whoever started the server may ignore it, and children inherit that.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            yield module
        finally:
            sys.modules.update(hidden)
            sys.argv, sys.path[:], os._exit = argv, path, real_exit
            sys.stdin, sys.stdout, sys.stderr = streams
            os.chdir(cwd)
            _reopen()
            _reset_libraries()
            for number, handler in kept.items():
                signal.signal(number, handler or signal.SIG_DFL)
            sys.settrace(None)
            sys.setprofile(None)
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0)


def _folder_of_script(path: str) -> Path:
    return Path(os.path.realpath(path) if Path(path).is_symlink() else path).parent


def _main_module(program: Program) -> ModuleType:
    module = ModuleType("__main__")
    module.__dict__.update(
        __builtins__=__builtins__,
        __file__=program.path,
        __cached__=None,
        __loader__=importlib.machinery.SourceFileLoader("__main__", program.path),
        __annotations__={},
    )
    return module


def _hidden_by(folder: Path) -> dict[str, ModuleType]:
    """Take out of the imported modules those that one of the program's folder hides, so that it imports its own.

    The engine has imported more of the standard library than Python does before a program.
    """
    own = {
        entry.stem for entry in folder.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").is_file()
    }
    own -= {"__main__", "guider_engine", *_STARTUP, *sys.builtin_module_names}
    return {name: sys.modules.pop(name) for name in own & sys.modules.keys() if not _lies_in(name, folder)}


def _lies_in(module: str, folder: Path) -> bool:
    file = getattr(sys.modules[module], "__file__", None)
    return bool(file) and Path(str(file)).is_relative_to(folder)


def _exit_of(limits: Limits, exited: list[int]) -> Any:
    """An ``os._exit`` that keeps what was captured, and its status; that of a forked process is the real one."""
    real, process = os._exit, os.getpid()

    def _exit(status: int) -> NoReturn:
        if os.getpid() != process:
            real(status)
        exited.append(status)
        if threading.current_thread() is not threading.main_thread():
            limits.end("exit")
        raise Exited(status)

    return _exit


def _join(before: set[threading.Thread]) -> None:
    """Wait for the threads that Python waits for at a program's end."""
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join()


def _reset_libraries() -> None:
    """What a program may have set for the whole process, and a localization in it must not have."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].seterr(divide="warn", over="warn", under="ignore", invalid="warn")
    config = getattr(sys.modules.get("tensorflow"), "config", None)
    if config is not None and config.functions_run_eagerly():
        config.run_functions_eagerly(False)


def _reopen() -> None:
    """Standard output and error as they were, if the program closed them."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if not getattr(getattr(sys, name), "closed", False):
            continue
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        raw = io.FileIO(descriptor, "w", closefd=False)
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", write_through=True))
