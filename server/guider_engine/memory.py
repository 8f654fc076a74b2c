"""How much memory there is, as far as the system says."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Bytes that can still be used; ``None``: the system does not say."""
    try:
        if sys.platform == "win32":
            return _on_windows()
        if sys.platform == "linux":
            return _on_linux()
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # macOS frees caches as it needs to
    except (OSError, ValueError, AttributeError):
        return None


def spelled(size: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"


def _on_linux() -> int | None:
    lines = Path("/proc/meminfo").read_text().splitlines()
    found = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)
    limit, used = _CGROUP / "memory.max", _CGROUP / "memory.current"
    if limit.exists() and limit.read_text().strip().isdigit():
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        cached = int(stat.get("inactive_file", 0)) + int(stat.get("active_file", 0))  # given back when needed
        left = max(0, int(limit.read_text()) - int(used.read_text()) + cached)
        return left if found is None else min(found, left)
    return found


def _on_windows() -> int | None:
    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")),
        )

    status = Status()
    status.length = ctypes.sizeof(status)
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    return int(status.free) if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else None
