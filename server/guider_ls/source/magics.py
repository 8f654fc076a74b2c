"""What IPython understands in a cell and Python does not, taken out of the text.

Every line keeps its number and every character of Python its column: a line of IPython's (``%magic``, ``!shell``,
``help?``) becomes the statement ``0`` with spaces after it, a whole cell of another language only spaces. Strings and
brackets are followed, since a line inside of them is Python, whatever it begins with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STATEMENT_MAGICS = frozenset({"time", "timeit", "prun", "memit", "mprun", "lprun", "snakeviz", "scalene"})
"""Line magics that run the Python statement after them."""
_PYTHON_CELLS = _STATEMENT_MAGICS | {"capture", "debug", "heat", "pyinstrument", "wandb"}
"""Cell magics whose cell is Python that runs in the kernel."""
_COMMANDS = "pip|conda|mamba|cd|ls|ll|cat|cp|mv|rm|mkdir|rmdir|man|less|more|matplotlib|load_ext|reload_ext"
"""Magics that are often written without their ``%``."""

_AUTOMATIC = re.compile(
    rf"(?:{_COMMANDS})\s+(?!(?:in|is|if|and|or|not|else|for|as)\b)(?:[\w~$]|[./-]\S)(?!\w*\s*=[^=])"
)
_STATEMENT = re.compile(
    r"%(?P<magic>\w+)(?:\s+-(?:[nrplsTDfm]\s*[^\s-]\S*|[^\snrplsTDfm]\S*))*\s+"
    r"(?!(?:for|while|if|with|def|class|try|async|match)\b)(?=[^\s%!?@])"
)
_TOKEN = re.compile(
    r"#.*"
    r"|(?P<triple>\"\"\"|''')"
    r"|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
    r"|(?P<broken>[\"'])"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?P<assigned>(?<![=!<>:%])=\s*(?=[%!]))"
    r"|\w+|\s+|."
)


def as_python(cell: str) -> str:
    """The same number of lines, each as long as it was, without what is not Python.

    Args:
        cell: lines that end at ``\\n``.
    """
    lines = cell.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("%%"):
            if line[2:].partition(" ")[0].strip() not in _PYTHON_CELLS:
                return "\n".join(" " * len(other) for other in lines)
            lines[at] = _nothing(line)
        elif line.strip():
            break
    state = _State()
    return "\n".join([state.next(line) for line in lines])


def _nothing(line: str, start: int = 0) -> str:
    """The line up to ``start``, then the expression ``0`` in place of the rest."""
    return f"{line[:start]}0".ljust(len(line))


@dataclass(slots=True)
class _State:
    """What the lines before say of the next one."""

    depth: int = 0
    """Of open brackets."""
    quote: str = ""
    """That ends the string which is open."""
    continued: bool = False
    """By a backslash: the next line goes on with a statement."""
    command: bool = False
    """By a backslash: the next line goes on with what is not Python."""

    def next(self, line: str) -> str:
        """Take over one more line; return it as Python."""
        if self.command:
            self.command = line.endswith("\\")
            return " " * len(line)
        start = 0
        if not (self.depth or self.quote or self.continued):
            line, start = self._begun(line)
            if self.command:
                return line
        return self._followed(line, start)

    def _begun(self, line: str) -> tuple[str, int]:
        """A line that begins a statement, and where its Python begins."""
        indent = len(line) - len(line.lstrip())
        rest = line[indent:]
        if found := _statement(rest):
            return f"{line[:indent]}0;".ljust(indent + found) + rest[found:], indent + found
        if rest[:1] in tuple("%!?/,;") or _AUTOMATIC.match(rest):
            self.command = line.endswith("\\")
            return _nothing(line, indent), len(line)
        return line, indent

    def _followed(self, line: str, start: int) -> str:
        """A line of Python, at least from ``start`` on."""
        whole = not (self.depth or self.quote or self.continued)
        at, last = start, ""
        self.continued = False
        while at < len(line):
            if self.quote:
                at = self._inside_string(line, at)
                continue
            token = _TOKEN.match(line, at)
            assert token is not None  # any character is one
            at, text = token.end(), token.group()
            if token["triple"]:
                self.quote = text
            elif token["broken"]:
                # Goes on in the next line if this one says so, else it is an error that ends here.
                self.quote = text if line.endswith("\\") else ""
                at = len(line)
            elif token["open"]:
                self.depth += 1
            elif token["close"]:
                self.depth = max(self.depth - 1, 0)
            elif token["assigned"] and not self.depth:
                if found := _statement(line[at:]):
                    line = f"{line[:at]}{' ' * found}{line[at + found :]}"
                else:
                    self.command = line.endswith("\\")
                    return _nothing(line, at)
            if text.strip() and not text.startswith("#"):
                last = text
        self.continued = last == "\\" and not self.quote
        if whole and last == "?" and not (self.depth or self.quote):
            return _nothing(line, len(line) - len(line.lstrip()))
        return line

    def _inside_string(self, line: str, at: int) -> int:
        """Where the string ends that is open, or the line."""
        while at < len(line):
            if line[at] == "\\":
                at += 2
            elif line.startswith(self.quote, at):
                at += len(self.quote)
                self.quote = ""
                return at
            else:
                at += 1
        if len(self.quote) == 1 and not line.endswith("\\"):
            self.quote = ""
        return len(line)


def _statement(text: str) -> int:
    """Where the Python begins that a magic like ``%time`` runs; 0 where the text is none."""
    found = _STATEMENT.match(text)
    return found.end() if found and found["magic"] in _STATEMENT_MAGICS else 0
