"""Settings: one frozen class, filled from the editor or from ``[tool.guider]``, bad values reported by key.

The names here are those of ``[tool.guider]`` (``neurons_per_layer``); the editor's are the same in camel case
under ``guider.`` (``guider.neuronsPerLayer``).
"""

from __future__ import annotations

from typing import Literal

import attrs

from guider_engine.wire import Aggregation, Formula, TaskChoice

RunWhen = Literal["onSave", "onModelChange", "manual"]
Severity = Literal["error", "warning", "information", "hint"]


@attrs.frozen(slots=True)
class Settings:
    """All settings of one folder, with their defaults."""

    enable: bool = True
    interpreter: tuple[str, ...] = ()
    """Command of the Python that has the project's TensorFlow; empty: found (see ``project/interpreter.py``)."""
    run: RunWhen = "onSave"
    program: str = ""
    model: str = ""
    test_data: tuple[str, ...] = ()
    formula: Formula = "ochiai"
    aggregation: Aggregation = "mean-gini"
    weighted: bool = True
    threshold: float = 0.1
    neurons_per_layer: int | None = 200
    seed: int = 7
    task: TaskChoice = "auto"
    safe_mode: bool = True
    diagnostics_top: int = 1
    """How many ranks are underlined; 0 underlines none."""
    diagnostics_minimum: float = 0.0
    """Lowest suspiciousness that is underlined."""
    diagnostics_severity: Severity = "information"
    code_lens: bool = True
    hover: bool = True
