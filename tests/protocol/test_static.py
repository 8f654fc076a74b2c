"""What an editor gets before anything was localized."""

from __future__ import annotations

from pathlib import Path

from tests.protocol.editor import Editor

PROGRAM = """\
import keras
from keras import layers

model = keras.Sequential([
    keras.Input((4,)),
    layers.Dense(64, activation="sigmoid"),
    layers.Dense(3, activation="softmax"),
])
"""


async def test_every_construction_has_a_lens(client: Editor, folder: Path) -> None:
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    lenses = await client.lenses(uri)
    assert [line for line, _ in lenses][-2:] == [5, 6]
    assert lenses[-1] == (6, "Dense · not ranked yet")
    assert "GUIDER" in lenses[0][1]
