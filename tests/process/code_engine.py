"""An engine whose requests are Python code: all of the real process, with another session in it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guider_engine.request import Check, Report
    from guider_engine.wire import Inputs, Localization, ModelSummary

ENTRY = Path(__file__).resolve().parents[2] / "server" / "guider_engine" / "__main__.py"


class CodeSession:
    """Runs the name of the model as code; what that leaves in ``result`` is the name of the summary."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def inspect(self, inputs: Inputs, report: Report, check: Check) -> ModelSummary:
        from guider_engine.wire import ModelSummary

        names: dict[str, Any] = {
            "report": report,
            "check": check,
            "root": inputs.root,
            "kept": self.kept,
            "result": "",
        }
        exec(inputs.model, names)
        return ModelSummary(str(names["result"]), "", (), None, False)

    def probe(self, inputs: Inputs, report: Report, check: Check) -> ModelSummary:
        raise NotImplementedError

    def localize(self, inputs: Inputs, report: Report, check: Check, cache: str = "") -> Localization:
        raise NotImplementedError


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("engine_entry", ENTRY)
    assert spec is not None
    assert spec.loader is not None
    entry = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(entry)
    entry.main(CodeSession)
