"""Refresh requirements/constraints.txt with the newest versions that fit each Python: pin.py PYTHON...

Give one interpreter of every supported version: ``pin.py python3.10 python3.11 python3.12 python3.13``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = "# Every version the development environment uses, for Python 3.10 to 3.13; refreshed by scripts/pin.py.\n"
WANTED = ("build", "dev", "tensorflow")
# The distribution that other platforms use in place of the pinned one.
SAME_VERSION = {"tensorflow-cpu": "tensorflow"}


def resolve(python: str, folder: Path) -> tuple[tuple[int, int], dict[str, str]]:
    """The version of an interpreter and what pip would install for it, by normalized name."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    inside = folder / "bin/python"
    version = subprocess.check_output(
        [inside, "-c", "import sys; print(*sys.version_info[:2])"], text=True
    ).split()
    report = folder / "report.json"
    files = [option for name in WANTED for option in ("-r", ROOT / f"requirements/{name}.txt")]
    command = [inside, "-m", "pip", "install", "--quiet", "--dry-run", "--report", report, *files, ROOT]
    subprocess.run(command, check=True)
    installed = [item["metadata"] for item in json.loads(report.read_text(encoding="utf-8"))["install"]]
    versions = {re.sub(r"[-_.]+", "-", item["name"]).lower(): item["version"] for item in installed}
    versions.pop("guider-ls", None)
    for name, other in SAME_VERSION.items():
        if name in versions:
            versions[other] = versions[name]
    return (int(version[0]), int(version[1])), versions


def lines(pins: dict[tuple[int, int], dict[str, str]]) -> list[str]:
    """``name==version`` for all, with a marker where Pythons differ."""
    found = []
    for name in sorted({name for versions in pins.values() for name in versions}):
        spans: list[tuple[str, list[str]]] = []
        for python in sorted(pins):
            if (version := pins[python].get(name)) is None:
                continue
            if not spans or spans[-1][0] != version:
                spans.append((version, []))
            spans[-1][1].append("{}.{}".format(*python))
        for index, (version, pythons) in enumerate(spans):
            # The first span reaches down, the last one up, without end.
            lower = [f'python_version >= "{pythons[0]}"'] if index > 0 else []
            upper = [f'python_version <= "{pythons[-1]}"'] if index < len(spans) - 1 else []
            marker = " and ".join([*lower, *upper])
            found.append(f"{name}=={version}; {marker}" if marker else f"{name}=={version}")
    return found


def main(pythons: list[str]) -> None:
    """Resolve for each interpreter, then write the file."""
    with tempfile.TemporaryDirectory() as folder:
        pins = dict(resolve(python, Path(folder) / str(index)) for index, python in enumerate(pythons))
    text = HEADER + "".join(f"{line}\n" for line in lines(pins))
    (ROOT / "requirements/constraints.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
