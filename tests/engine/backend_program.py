"""Localize what a file names, on a backend other than TensorFlow: ``backend_program.py REQUESTS RESULTS``.

REQUESTS is JSON, by name a list of `Inputs` that one session is asked for one after the other. RESULTS is JSON, by name
a list of localizations, each with whether it ran op by op and how often its step was traced. Beside REQUESTS lies
``train.py``, which is run under watch at the end; ``captured`` is what its model and tests give.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from guider_engine.session import Session
from guider_engine.wire import Inputs, Program, structure


def quiet(*_: object) -> None:
    """Neither reports progress nor stops."""


def answers(requests: list[Any]) -> list[dict[str, Any]]:
    """What one session says of them."""
    session = Session()
    found = []
    for request in requests:
        localization = session.localize(structure(request, Inputs), quiet, quiet)
        assert session._plan is not None
        stream = session._plan.stream
        found.append(
            {
                "localization": dataclasses.asdict(localization),
                "eager": stream.eager,
                "traces": stream.traces,
            }
        )
    return found


def captured(folder: Path) -> dict[str, Any]:
    """What the program in that folder trains, localized."""
    session = Session()
    program = Program(str(folder / "train.py"), (), str(folder), str(folder))
    record = session.capture(program, str(folder / "captured"), quiet, quiet)
    (model,) = record.models
    found = session.localize(Inputs(model.path, (model.tests,), str(folder)), quiet, quiet)
    return {"record": dataclasses.asdict(record), "localization": dataclasses.asdict(found)}


def main(requests: str, results: str) -> None:
    """Answer all requests where TensorFlow is not installed: Keras would import it for nothing."""
    sys.modules["tensorflow"] = None  # type: ignore[assignment]
    found: dict[str, Any] = {
        name: answers(asked) for name, asked in json.loads(Path(requests).read_text(encoding="utf-8")).items()
    }
    import keras

    found["captured"] = captured(Path(requests).parent)
    found["backend"] = keras.backend.backend()
    Path(results).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
