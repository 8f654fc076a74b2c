"""What is known of a program from its text alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source: 0-based lines, 0-based columns in code points, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """An argument whose value the text does not say; ``code`` is its source."""

    code: str


@dataclass(frozen=True, slots=True)
class LayerSite:
    """One expression that constructs a Keras layer.

    ``arguments`` maps Keras' parameter names (positional ones included, where the class is Keras' own) to the
    literal value, a nested ``Unknown`` where it is not literal.
    """

    span: Span
    """The whole call, from the callee's first character to the closing parenthesis."""
    class_name: str
    """Last part of the class' qualified name, e.g. ``Dense``."""
    qualified_name: str
    """``keras.layers.Dense`` for Keras' own however it was imported; ``.Block`` for a class of this file."""
    arguments: Mapping[str, Any]
    name_pattern: str | None
    """Regular expression for the layer's name where the program gives one (literal or f-string)."""
    scope: str
    """Dotted path of enclosing classes and functions, ``""`` at module level."""
    repeats: bool
    """Whether one evaluation of the scope may run the call more than once (loop, comprehension, ``* n``)."""
    conditional: bool
    """Whether one evaluation of the scope may skip the call (``if``, ``try``, ``and``/``or``, ``x if c else y``)."""
    group: str
    """The model expression it builds where the text says so (variable, function or class name), else ``""``."""
    ignored: bool = False
    """Marked ``# guider: ignore``."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that the program says it writes: ``model.save("m.keras")``, ``np.savez("t.npz", x_test=…)``."""

    span: Span
    kind: Literal["model", "tests"]
    path: str
    """As written in the program, relative to its working directory."""


@dataclass(frozen=True, slots=True)
class SourceMap:
    """All that one program's text says: layer sites in source order, and the files it writes."""

    sites: tuple[LayerSite, ...]
    artifacts: tuple[Artifact, ...]
    construction: tuple[tuple[int, ...], ...] = ()
    """For each model the program may build: indices into ``sites`` in construction order, helper calls and
    literal loops unrolled; an index occurs once for each layer it is known to construct."""
