"""Messages survive the way there and back; anything else is refused in one way."""

from __future__ import annotations

import math

import pytest

from guider_engine.wire import Cancel, Inputs, Localize, Message, Progress, decode, encode

MESSAGES: list[Message] = [
    Cancel(3),
    Progress(1, "spectrum", "1 of 2 tests", 0.5),
    Progress(1, "trace", "café ✓"),
    Localize(2, Inputs("m.keras", ("x.npy", "y.npy"), "/project", neurons_per_layer=None)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_there_and_back(message: Message) -> None:
    line = encode(message)
    assert b"\n" not in line
    assert decode(line) == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"[]",
        b"null",
        b"{}",
        b'{"type": "Nothing"}',
        b'{"type": "Cancel"}',
        b'{"type": "Localize", "request": 1, "inputs": 3}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=lambda line: repr(line[:20]),
)
def test_what_is_no_message_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match="not a message"):
        decode(line)


def test_numbers_that_are_not_finite_do_not_travel() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(Progress(1, "spectrum", "", math.nan))
