from __future__ import annotations

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libcst.metadata import MetadataWrapper, PositionProvider

from guider_ls.source.positions import lay_out
from guider_ls.source.sites import Span

SNIPPETS = [
    "a = f(1)",
    'a = "😀"; b = f("é", g())',
    "a = (f)(1)\n",
    "a = (f(1))",
    "a = ((\n    f(\n\t1,  # a comment\n    )\n))",
    "if x:\n\ty = f(1)\n\tz = g()(2)",
    "if x:\n        y = f(1)",
    "@d(1)\n@e\ndef f(a=g(2)):\n    return h(a)",
    "@d()\nclass C(B(1), metaclass=M()):\n    x = f()\n",
    "a = f'{g(1)!r:>{w(2)}} {{}} {h()}'",
    'a = f"""\n{g(1)}\n😀 {h(2)}"""',
    "a = 'x' 'y' f'{g()}'",
    "a = f(1) + \\\n    g(2)",
    "\fa = f(1)\f\n\fb = g(2)",
    "a = f(*b, **c(1))",
    'a = """\nline\n""" + f(1)',
    "a = [f(x) for x in g() if h(x)]",
    "async def f():\n    await g(1)\n    async with h() as x:\n        pass",
    "x = lambda: f(1)",
    "with (f(1) as a, g() as b):\n    pass",
    "try:\n    f(1)\nexcept E(1):\n    g()\nelse:\n    h()\nfinally:\n    i()",
    "a = f (1) . g ( 2 )",
    "a: T(1) = f(2)",
    "del f(1)[g()]",
    "# 😀 comment\n\n\n   # odd\nf(1)",
    "match f(1):\n    case C(x) if g(x):\n        h()",
]


def by_provider(module: cst.Module, calls: list[cst.Call]) -> list[Span]:
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    ranges = wrapper.resolve(PositionProvider)
    found = [ranges[call] for call in calls]
    return [Span(at.start.line - 1, at.start.column, at.end.line - 1, at.end.column) for at in found]


def calls_of(module: cst.Module) -> list[cst.Call]:
    found: list[cst.Call] = []

    class Calls(cst.CSTVisitor):
        def visit_Call(self, node: cst.Call) -> None:  # noqa: N802
            found.append(node)

    module.visit(Calls())
    return found


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_spans_are_those_of_the_position_provider(snippets: list[str], newline: str, ends: bool) -> None:
    text = "\n".join(snippet.rstrip("\n") for snippet in snippets) + ("\n" if ends else "")
    module = cst.parse_module(text.replace("\n", newline))
    calls = calls_of(module)
    layout = lay_out(module)
    assert [layout.spans[call] for call in calls] == by_provider(module, calls)
    assert len(layout.spans) == len(calls)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_comments_by_line(newline: str) -> None:
    text = newline.join(["a = 1  # one", "b = '# none'", "f(  # two", "    1)", "# three"])
    assert lay_out(cst.parse_module(text)).comments == {0: "# one", 2: "# two", 4: "# three"}
