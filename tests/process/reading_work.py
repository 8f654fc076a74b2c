"""What tests have the reading process do; it imports this module by the path of the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from guider_ls.errors import InputError


def pid() -> int:
    return os.getpid()


def echo(value: object) -> object:
    return value


def print_and(value: object) -> object:
    print("printed")
    os.write(1, b"written\n")
    subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)
    return value


def refuse(message: str) -> None:
    raise InputError("program-syntax", message, detail="more")


def fail() -> None:
    raise ZeroDivisionError("in the work")


def die(tries: Path) -> None:
    with tries.open("a") as file:
        file.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_first(tries: Path) -> str:
    if tries.exists():
        return "answered"
    die(tries)
    return "survived"


def work_for(seconds: float, started: Path) -> int:
    started.touch()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return os.getpid()


def loaded() -> list[str]:
    return sorted({name.split(".")[0] for name in sys.modules})


def paths() -> list[str]:
    return sys.path
