"""The log makes lines of whatever a process prints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guider_ls.analysis.engine import last_words
from guider_ls.analysis.log import KEPT, WIDTH, Log


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"unfinished", ["unfinished"]),
        (b"1/3\r2/3\r3/3\n", ["3/3"]),
        (b"1/3\r2/3\r", ["2/3"]),
        (b"done \r\n", ["done"]),
        (b"\x08\x08\x08\x1b[1m2/3\x1b[0m \x1b[32m==\x1b[0m\n", ["2/3 =="]),
        (b"caf\xc3\xa9 \xff\n", ["café \N{REPLACEMENT CHARACTER}"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"", []),
    ],
)
def test_lines(data: bytes, lines: list[str]) -> None:
    log = Log()
    log.feed(data)
    assert log.tail(100).split("\n") == (lines or [""])


@given(st.lists(st.sampled_from(["a", "é", "😀", "\r", "\n", "\r\n", "xyz"])), st.data())
def test_where_a_chunk_ends_does_not_matter(parts: list[str], data: st.DataObject) -> None:
    printed = "".join(parts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(printed)), max_size=5)))
    whole, pieces = Log(), Log()
    whole.feed(printed)
    for start, end in zip([0, *cuts], [*cuts, len(printed)], strict=True):
        pieces.feed(printed[start:end])
    whole.finish()
    pieces.finish()
    assert pieces.take() == whole.take()


def test_a_line_without_end_is_broken_not_held() -> None:
    log = Log()
    for _ in range(100):
        log.feed(b"x" * 1000)
    assert log.count == 100_000 // WIDTH - 1
    assert set(log.take()) == {"x" * WIDTH}


def test_a_bar_without_end_is_held_once() -> None:
    log = Log()
    for step in range(10_000):
        log.feed(b"\r%d/10000" % step)
    assert log.count == 0
    assert log.tail(5) == "9999/10000"


def test_what_is_kept_is_bounded_and_the_loss_is_told() -> None:
    log = Log()
    log.feed(b"".join(b"%d\n" % n for n in range(KEPT + 5)))
    first, *rest = log.take()
    assert first == "… 5 lines left out …"
    assert (rest[0], rest[-1], len(rest)) == ("5", str(KEPT + 4), KEPT)
    assert log.take() == []


def test_wakes_once_until_taken() -> None:
    woken: list[None] = []
    log = Log(lambda: woken.append(None))
    log.feed(b"part")
    assert len(woken) == 0
    log.feed(b" of a line\nanother\n")
    log.add("mine")
    assert len(woken) == 1
    assert log.take() == ["part of a line", "another", "mine"]
    log.finish()
    assert len(woken) == 1
    log.add("last")
    assert len(woken) == 2


def test_tail_since_a_mark() -> None:
    log = Log()
    log.add("old")
    mark = log.count
    log.feed(b"new\nnewer\nopen")
    assert log.tail(10, since=mark) == "new\nnewer\nopen"
    assert log.tail(2, since=mark) == "newer\nopen"
    assert log.tail(10, since=log.count + 1) == "open"


def test_last_words_show_a_fatal_error_rather_than_the_end_of_its_stack() -> None:
    stack = [f'  File "deep.py", line {n} in f' for n in range(100)]
    words = last_words("\n".join(["before", "Fatal Python error: Segmentation fault", *stack]))
    assert "before" in words
    assert "Segmentation fault" in words
    assert "line 0 in f" in words
    assert "line 99" not in words
