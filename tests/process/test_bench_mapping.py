"""The benchmark of the mapping runs programs for real."""

from __future__ import annotations

from pathlib import Path

from benchmarks.capturing import Captures, Job, Limits

OLD = """\
import seaborn
from keras.layers.core import Dense
from keras.models import Sequential

model = Sequential()
model.add(Dense(output_dim=4, input_dim=3, init="uniform"))
model.add(Dense(1))
raise ValueError("what was built until now counts")
"""


async def test_a_program_of_an_old_keras_that_only_builds_a_model(tmp_path: Path) -> None:
    program = tmp_path / "project" / "train.py"
    program.parent.mkdir()
    program.write_text(OLD)
    captures = Captures(tmp_path / "cache", Limits())
    job = Job("old", program, program.parent, alone=True)
    said: list[str] = []
    (run,) = await captures.all([job], 1, said.append)
    assert "what was built until now counts" in run.failure
    assert run.record is not None
    (model,) = run.record.models
    assert [(layer.class_name, layer.config["units"]) for layer in model.model.layers] == [
        ("Dense", 4),
        ("Dense", 1),
    ]
    assert [layer.origin.line for layer in model.model.layers if layer.origin] == [5, 6]
    assert {layer.origin.file for layer in model.model.layers if layer.origin} == {"train.py"}
    assert len(said) == 1

    kept = list((tmp_path / "cache" / "runs").iterdir())
    kept[0].write_text(kept[0].read_text().replace("until now", "until then"))
    (again,) = await captures.all([job], 1, said.append)
    assert "until then" in again.failure  # it was not run again
