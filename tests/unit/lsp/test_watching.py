from pathlib import Path

import pytest

from guider_ls.lsp.features.watching import touches

ROOT = Path("/project")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("model.keras", True),
        ("pictures/cat/1.png", True),
        ("pictures", True),
        ("figures/loss.png", False),
        ("pictures-2/cat/1.png", False),
    ],
)
def test_a_file_matters_if_it_or_its_folder_is_read(changed: str, expected: bool) -> None:
    read = (ROOT / "model.keras", ROOT / "pictures")
    assert touches([ROOT / "other.txt", ROOT / changed], read) is expected
