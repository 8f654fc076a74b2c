from __future__ import annotations

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guider_ls.errors import InputError
from guider_ls.source import trees
from guider_ls.source.parse import parse
from guider_ls.source.positions import Layout, lay_out
from guider_ls.source.sites import Span
from guider_ls.source.trees import Tree, Trees

PIECES = [
    "import keras",
    "x = f(1)",
    "x = f(1)  # a comment",
    '"""Docstring.\n\nf(2) in it.\n"""',
    "'''\n\nx = (\n'''",
    'x = "a # \\" b" + r"\\" + f(3)',
    "def g(a):\n    b = f(a)\n\n    return b",
    "# alone",
    "if a:\n    f(1)\n\nelse:\n    f(2)",
    "try:\n    f()\n\nexcept E(1):\n    pass\n\nfinally:\n    f(3)",
    "x = (\n\nf(1),\n\nf(2)\n\n)",
    "x = [\n\n\n1, f(2)\n\n]",
    "@d(1)\n\nclass C:\n\n    y = f(4)",
    "x = 1 + \\\n\n",
    "def h():\n    f(1)\n\n# in between\n\n    f(2)",
    "async def k():\n\tawait f(1)",
    "match f(1):\n    case 1:\n        f(2)\n\n    case _:\n        pass",
    "x = f'{g('é')}' '''\n\n😀\n'''",
    "x = 3)",
    "x = (1,",
    "y = 'abc",
    '"""',
    "  z = 1",
    "else:\n    f(1)",
    "for x in y\n    f(1)",
    "\x0cf(1)",
    "\x00",
]


def tree_of(text: str) -> Tree:
    reading = Trees()
    try:
        return reading.tree(text)
    finally:
        reading.close()


def parsed(text: str) -> tuple[cst.Module | None, str]:
    """The tree of a text in one piece, or why there is none."""
    try:
        return parse(text), ""
    except InputError as error:
        return None, error.message


def layout_of(text: str) -> Layout:
    tree = tree_of(text)
    return tree.lay_out(call for piece in tree.pieces for call in piece.layout.spans)


def outcome(spans: Layout) -> tuple[list[Span], dict[int, str]]:
    return sorted(spans.spans.values()), spans.comments


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(PIECES), st.sampled_from(["\n", "\n\n", "\n\n\n", "\n \n"])), max_size=7
    ),
    st.sampled_from(["\n", "\n", "\r\n", "\r"]),
)
def test_pieces_are_what_the_whole_is(parts: list[tuple[str, str]], newline: str) -> None:
    text = "".join(piece + end for piece, end in parts).replace("\n", newline)
    whole, refused = parsed(text)
    if whole is None:
        with pytest.raises(InputError) as caught:
            tree_of(text)
        # Of what is no token, libcst does not say the line.
        assert caught.value.message == refused or "tokenizer" in refused
        return
    tree = tree_of(text)
    assert [type(ours) for ours in tree.body] == [type(theirs) for theirs in whole.body]
    assert outcome(layout_of(text)) == outcome(lay_out(whole))


def test_only_what_changed_is_parsed_again() -> None:
    blocks = [f"def f{i}(x):\n    return g({i})\n" for i in range(20)]
    before = tree_of("\n\n".join(blocks))
    blocks[7] = "def new(x):\n\n    return g(0)\n"
    after = tree_of("# shifted\n" + "\n\n".join(blocks))
    same = [one is other for one, other in zip(before.body, after.body, strict=True)]
    assert [i for i, kept in enumerate(same) if not kept] == [0, 7]
    last = before.body[-1]
    assert isinstance(last, cst.FunctionDef)
    (line,) = {
        span.line for call, span in layout_of("\n\n".join(blocks)).spans.items() if call in calls(last)
    }
    assert line == sum(block.count("\n") + 2 for block in blocks[:-1]) + 1


def calls(node: cst.CSTNode) -> set[cst.CSTNode]:
    found = {node} if isinstance(node, cst.Call) else set()
    return found.union(*(calls(child) for child in node.children))


def test_equal_pieces_have_nodes_of_their_own_also_in_two_texts() -> None:
    reading = Trees()
    first = reading.tree("f(1)\n\nf(1)\n\n")
    second = reading.tree("f(1)\n\n")
    nodes = [*first.body, *second.body]
    assert len({id(node) for node in nodes}) == 3
    reading.close()
    assert all(one is other for one, other in zip(first.body, tree_of("f(1)\n\nf(1)\n\n").body, strict=True))


def test_a_broken_piece_does_not_lose_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "KEPT", 5_000)
    blocks = [f"def f{i}():\n    return {i}\n" for i in range(500)]
    before = tree_of("\n\n".join(blocks))
    assert sum(map(len, blocks)) > 2 * trees.KEPT
    broken = [*blocks[:5], "x = (\n", *blocks[6:]]
    with pytest.raises(InputError, match=r"^Line 25 "):
        tree_of("\n\n".join(broken))
    after = tree_of("\n\n".join(blocks))
    assert sum(one is not other for one, other in zip(before.body, after.body, strict=True)) <= 1


def test_little_is_kept_of_programs_that_are_not_read_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "KEPT", 20_000)
    for number in range(10):
        tree_of(f"x = {number}\n" + "y = [1, 2, 3]  # a long line of nothing\n" * 100)
    assert sum(len(text) for text, _ in trees._kept) <= trees.KEPT
