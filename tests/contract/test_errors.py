"""Every code that a person may see is explained, and nothing else is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from guider_ls.present.diagnostics import SUSPICIOUS, UNUSED

ROOT = Path(__file__).parents[2]
CODE_FIRST = {
    "UsageError",
    "InputError",
    "EnvironmentProblem",
    "EngineError",
    "Cancelled",
    "unusable",
    "Notice",
}
CODE_SECOND = {"EngineFailure", "Failure"}
KEBAB = re.compile(r"[a-z]+(-[a-z0-9]+)+")


def codes_of(source: str) -> Iterator[str]:
    """Literal codes of errors, and of notices, which are made as pairs of code and message."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            place = 0 if name in CODE_FIRST else 1 if name in CODE_SECOND else None
            code = node.args[place] if place is not None and len(node.args) > place else None
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2 and _is_message(node.elts[1]):
            code = node.elts[0]
        else:
            continue
        if isinstance(code, ast.Constant) and isinstance(code.value, str):
            yield code.value


def _is_message(node: ast.expr) -> bool:
    """Whether it may be a sentence: a literal one ends as such, others are not known here."""
    if isinstance(node, ast.Constant):
        return str(node.value).endswith(".")
    return isinstance(node, (ast.JoinedStr, ast.Call))


def used_codes() -> set[str]:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "server").rglob("*.py"))
    found = {code for source in sources for code in codes_of(source)}
    return {code for code in found if KEBAB.fullmatch(code) or code in ("usage", "cancelled")}


def explained_codes() -> list[str]:
    text = (ROOT / "server" / "guider_ls" / "errors.md").read_text(encoding="utf-8")
    return re.findall(r"^### (\S+)$", text, re.MULTILINE)


def test_codes_are_found() -> None:
    source = """
raise InputError("a-b", f"{x}")
raise unusable("c-d", "no")
fail(wire.Failure("input", "e-f", "no"))
notices.append(("g-h", f"All {n}."))
"""
    assert sorted(codes_of(source)) == ["a-b", "c-d", "e-f", "g-h"]


def test_every_code_is_explained() -> None:
    assert sorted(used_codes() - set(explained_codes())) == []


def test_every_explanation_is_of_a_code() -> None:
    assert sorted(set(explained_codes()) - used_codes() - {SUSPICIOUS, UNUSED}) == []
    assert len(explained_codes()) == len(set(explained_codes()))
