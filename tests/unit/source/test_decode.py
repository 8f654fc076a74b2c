from __future__ import annotations

import pytest

from guider_ls.errors import InputError
from guider_ls.source.decode import decode


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"x = 1\r\n", "x = 1\r\n"),
        ("é = '😀'\n".encode(), "é = '😀'\n"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        (b"# -*- coding: latin-1 -*-\nname = '\xe9'\n", "# -*- coding: latin-1 -*-\nname = 'é'\n"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'\n", None),
        (b"", ""),
    ],
)
def test_text_of_bytes(data: bytes, text: str | None) -> None:
    assert decode(data) == (text if text is not None else data.decode("cp1252"))


def test_bytes_that_are_not_utf8_name_their_line() -> None:
    with pytest.raises(InputError, match=r"Line 3 of the program is not utf-8: byte 0xe9") as caught:
        decode(b"a = 1\nb = 2\nc = '\xe9'\n")
    assert caught.value.code == "program-encoding"


def test_unknown_encoding() -> None:
    with pytest.raises(InputError, match="klingon") as caught:
        decode(b"# coding: klingon\n")
    assert caught.value.code == "program-encoding"


def test_a_mark_that_contradicts_its_cookie() -> None:
    with pytest.raises(InputError, match="encoding"):
        decode(b"\xef\xbb\xbf# coding: latin-1\n")
