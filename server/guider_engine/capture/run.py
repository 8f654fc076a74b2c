"""Run a program as ``python PROGRAM.py ARGUMENTS`` would."""

from __future__ import annotations

import contextlib
import importlib.machinery
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from guider_engine.wire import Program

from .limits import Ended, Limits

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
        super().__init__("exit")
        self.status = status


def run(program: Program, content: bytes, limits: Limits) -> BaseException | None:
    """Run the program's text to its end, and that of the threads it started.

    Returns:
        What ended it; ``None``: it ran to its end.
    """
    with _surroundings(program, limits) as module:
        try:
            with limits:
                try:
                    code = compile(content, program.path, "exec", dont_inherit=True)
                    exec(code, module.__dict__)
                except SystemExit as error:
                    _join_threads()
                    return error if error.code not in (None, 0) else None
                _join_threads()
        except BaseException as error:
            return error
    return None


@contextlib.contextmanager
def _surroundings(program: Program, limits: Limits) -> Iterator[ModuleType]:
    module = _main_module(program)
    kept: dict[Any, Any] = {number: signal.getsignal(number) for number in _SIGNALS}
    before = (
        sys.argv,
        sys.path[:],
        os.getcwd(),
        sys.stdin,
        sys.stdout,
        sys.stderr,
        warnings.filters[:],
        os._exit,
    )
    shadowed: dict[str, ModuleType] = {}
    try:
        os.chdir(program.folder)
        sys.argv = [program.path, *program.arguments]
        folder = os.path.dirname(
            os.path.realpath(program.path) if os.path.islink(program.path) else program.path
        )
        sys.path.insert(0, folder)
        sys.modules["__main__"] = module
        os.environ["MPLBACKEND"] = "Agg"
        shadowed = _shadowed(folder)
        os._exit = _exit_of(limits)
        yield module
    finally:
        sys.modules.update(shadowed)
        sys.argv, sys.path[:], folder, sys.stdin, sys.stdout, sys.stderr, warnings.filters[:], os._exit = (
            before
        )
        with contextlib.suppress(OSError):
            os.chdir(folder)
        _reopen()
        for number, handler in kept.items():
            if handler is not None:
                signal.signal(number, handler)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)


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


def _shadowed(folder: str) -> dict[str, ModuleType]:
    """Take out of the imported modules those that a module of the program's folder hides, if it asks for it.

    The engine has imported more of the standard library than Python does before a program.
    """
    hidden = {}
    for name in list(sys.modules):
        if (
            "." in name
            or name in _STARTUP
            or name in sys.builtin_module_names
            or name in ("__main__", "guider_engine")
        ):
            continue
        file = getattr(sys.modules[name], "__file__", None) or ""
        beside = (os.path.join(folder, name + ".py"), os.path.join(folder, name, "__init__.py"))
        if any(os.path.isfile(path) and path != file for path in beside):
            hidden[name] = sys.modules.pop(name)
    return hidden


def _exit_of(limits: Limits) -> Any:
    """An ``os._exit`` that keeps what was captured; that of a forked process is the real one."""
    real, process = os._exit, os.getpid()

    def _exit(status: int) -> NoReturn:
        if os.getpid() != process:
            real(status)
        if threading.current_thread() is not threading.main_thread():
            limits.end("exit")
        raise Exited(status)

    return _exit


def _join_threads() -> None:
    """Wait for the threads that Python waits for at a program's end."""
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()


def _reopen() -> None:
    """Standard output and error as they were, if the program closed them."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None or not stream.closed:
            continue
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        setattr(
            sys, name, io.TextIOWrapper(open(descriptor, "wb", 0, closefd=False), "utf-8", write_through=True)
        )  # noqa: SIM115
        assert Path
