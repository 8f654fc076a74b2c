from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.protocol.editor import Editor, editor


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project folder with a space and letters that are not ASCII in its name."""
    root = tmp_path / "mon projet ß"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    return root


@pytest.fixture
async def client(cache: Path) -> AsyncIterator[Editor]:
    async with editor(cache) as found:
        yield found
