from __future__ import annotations

import pytest

from guider_ls.errors import InputError
from guider_ls.source.parse import parse


def test_brackets_without_end_are_an_error() -> None:
    for text in ("(" * 10_000, "x = " + "[" * 500 + "]" * 500):
        with pytest.raises(InputError) as caught:
            parse(text)
        assert caught.value.code == "program-syntax"
        assert "200 brackets" in caught.value.message


def test_as_deep_as_python_goes_and_any_number_beside_each_other() -> None:
    for text in ("(" * 200 + "1" + ")" * 200, "[()]\n" * 1000):
        assert parse(text).code == text
