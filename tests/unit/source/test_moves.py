from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from guider_ls.source.lines import Lines
from guider_ls.source.moves import moves
from guider_ls.source.sites import Span

TEXT = st.text(alphabet=st.sampled_from("ab(\n\r\x0c😀"), max_size=40)


def span_of(text: str, part: str) -> Span:
    lines, start = Lines(text), text.index(part)
    return Span(*lines.place(start), *lines.place(start + len(part)))


def text_of(lines: Lines, span: Span) -> str:
    return lines.text[lines.offset(span.line, span.column) : lines.offset(span.end_line, span.end_column)]


@given(TEXT, TEXT, TEXT, TEXT)
@example("", "\r\n", "\r", "")
def test_what_stands_beside_an_edit_keeps_its_text(before: str, old: str, new: str, after: str) -> None:
    first, second = "Dense(1)", "Dense(2,\n)"
    one, other = f"{before}{first};{old};{second}{after}", f"{before}{first};{new};{second}{after}"
    move = moves(Lines(one), Lines(other))
    for call in (first, second):
        moved = move(span_of(one, call))
        assert moved is not None
        assert text_of(Lines(other), moved) == call


SHORT = st.lists(st.text(alphabet=st.sampled_from("ab( ")).map(lambda text: text[:3]), min_size=3, max_size=3)


@given(SHORT, SHORT)
def test_several_edits_at_once(olds: list[str], news: list[str]) -> None:
    calls = ["Dense(10)", "Conv2D(20)"]

    def program(edited: list[str]) -> str:
        return f"{edited[0]}\nx = {calls[0]}\n{edited[1]}\nx = {calls[1]}\n{edited[2]}"

    move = moves(Lines(program(olds)), Lines(program(news)))
    for call in calls:
        moved = move(span_of(program(olds), call))
        assert moved is not None
        assert text_of(Lines(program(news)), moved) == call


@given(TEXT, TEXT, st.data())
def test_a_moved_span_always_fits(old: str, new: str, data: st.DataObject) -> None:
    lines = Lines(old)
    start = data.draw(st.integers(0, len(old)))
    end = data.draw(st.integers(start, len(old)))
    moved = moves(lines, Lines(new))(Span(*lines.place(start), *lines.place(end)))
    assert moved is None or Lines(new).fits(moved)


@given(st.integers(0, 9000), st.integers(0, 9000), st.integers(0, 3))
def test_long_texts_agree_with_short_ones(before: int, after: int, typed: int) -> None:
    old = "a" * before + "\nDense(64)\n" + "b" * after
    new = "a" * before + "c" * typed + "\nDense(64)\n" + "b" * after
    moved = moves(Lines(old), Lines(new))(span_of(old, "Dense(64)"))
    assert moved == span_of(new, "Dense(64)")


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("m.add(Dense(64))", "m.add(Dense(128))", "Dense(128)"),
        ("m.add(Dense(64))", "m.add(Dense(64, ))", "Dense(64, )"),
        ("x = Dense(64)", "x = \n\nDense(64)", "Dense(64)"),
        ("x = Dense(64)", "x = Dense(64)(y)", "Dense(64)"),
        ("x = Dense(64)\n", "x = Dense(64\n", "Dense(64"),
        ("x = Dense(\n  64,\n)\ny", "x = Dense(\n  64,\n  'relu'\n)\ny", "Dense(\n  64,\n  'relu'\n)"),
        ("p = 1\nx = Dense(64)\nq = 1", "p = 2\nx = Dense(64)\nq = 2", "Dense(64)"),
    ],
)
def test_edits_of_a_call(old: str, new: str, left: str) -> None:
    call = old[old.index("Dense") : old.index(")") + 1]
    assert moves(Lines(old), Lines(new))(span_of(old, call)) == span_of(new, left)


@pytest.mark.parametrize("new", ["", "x", "\n\n\n", "y = 1\n"])
def test_a_deleted_call_has_no_place(new: str) -> None:
    old = "a = 1\nb = Dense(64)\nc = 2\n"
    assert moves(Lines(old), Lines(new))(span_of(old, "Dense(64)")) is None
