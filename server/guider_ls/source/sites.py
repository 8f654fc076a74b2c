"""What is known of a program from its text alone."""

from __future__ import annotations

from bisect import bisect_right
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


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A stretch of a file of the project."""

    file: str
    """As in `LayerSite.file`."""
    span: Span


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell of a notebook."""

    number: int
    """Among all cells of the notebook, counted from 1, as editors show it."""
    line: int
    """Its first line in the program that the cells are together."""


def line_name(number: int, cell: Cell | None = None) -> str:
    """A line of a program for people: ``line 4`` for 3; in a notebook ``cell 2, line 4``, counted in the cell."""
    return f"cell {cell.number}, line {number - cell.line + 1}" if cell is not None else f"line {number + 1}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """An argument whose value the text does not say; ``code`` is its source."""

    code: str


@dataclass(frozen=True, slots=True)
class Part:
    """An initializer, regularizer or constraint that an argument constructs.

    ``arguments`` holds every parameter: as the text says it, else Keras' default, `Unknown` where neither is known.
    """

    class_name: str
    arguments: Mapping[str, Any]


Fate = Literal["", "unreached", "in-call", "replaced", "unconnected", "uncalled", "wrapped"]
"""``unreached``: the code does not run. ``in-call``: made anew inside each call, so that nothing trains it.
``replaced``: its variable is given another value before a model uses it. ``unconnected``: called, but its output does
not lead to a model's. ``uncalled``: neither called nor added to a model. ``wrapped``: the argument of another layer."""


@dataclass(frozen=True, slots=True)
class LayerSite:
    """One expression that constructs a Keras layer.

    ``arguments`` maps Keras' parameter names (positional ones included, where the class is Keras' own) to the
    literal value, to a `Part`, or to `Unknown` where it is neither (also inside lists).
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
    ignored: bool = False
    """Marked ``# guider: ignore``."""
    complete: bool = True
    """Whether ``arguments`` holds all the arguments (no ``*args`` or ``**kwargs`` may add others)."""
    file: str = ""
    """Absolute path of the module of the project that it stands in; ``""``: the program that was read."""
    others: tuple[str, ...] = ()
    """Qualified names of further classes that the same call constructs (``getattr(layers, kind)(8)``)."""
    fate: Fate = ""
    """What becomes of its layers where no `Outline` has them; ``""``: they are in one, or it is not known."""
    cell: Cell | None = None
    """That it stands in, where the program is a notebook."""

    @property
    def location(self) -> Location:
        """Where it stands, which tells it from every other site."""
        return Location(self.file, self.span)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that the program says it writes: ``model.save("m.keras")``, ``np.savez("t.npz", x_test=…)``."""

    span: Span
    """The call that writes it; where that stands in another module, the call that leads there."""
    kind: Literal["model", "tests"]
    path: str
    """As written in the program, relative to its working directory."""
    known: bool = True
    """Whether the text says the path; else ``path`` is the code that does when it runs."""
    outline: int | None = None
    """Index into `SourceMap.outlines` of the model that is saved, where the text says which."""
    cell: Cell | None = None
    """That it stands in, where the program is a notebook."""


@dataclass(frozen=True, slots=True)
class Step:
    """One layer in the construction of a model."""

    site: int
    """Index into `SourceMap.sites`."""
    name_pattern: str | None
    """Regular expression for the name of this very layer; ``None``: Keras chooses it (``dense_3``)."""
    optional: bool = False
    """Whether it may be left out (a branch whose condition the text does not say)."""
    spread: bool = False
    """Whether it stands for any number of layers made out of sight (a ready-made network taken apart)."""
    caller: Span | None = None
    """The call of the program that has it made, where its site stands in another module and one call is known."""


@dataclass(frozen=True, slots=True)
class Making:
    """One time that a construction is made."""

    name_pattern: str | None
    """Regular expression for the name of the model; ``None``: Keras chooses it."""
    numbers: tuple[int | None, ...]
    """For each step the number in the name that Keras chooses (3 for ``dense_3``), where the text says it."""
    number: int | None = None
    """That in the name of the model (3 for ``sequential_3``)."""


@dataclass(frozen=True, slots=True)
class Outline:
    """One model that the program may build: its layers in construction order.

    Helper calls and literal loops are unrolled; a site occurs once for each layer it is known to construct.
    """

    label: str
    """Variable, function or class that holds the model, for people; ``""`` when there is none."""
    kind: Literal["sequential", "functional", "class", "fragment"]
    """``fragment``: layers that the program puts into no model by itself."""
    steps: tuple[Step, ...]
    loops: tuple[tuple[int, int], ...] = ()
    """Stretches ``[start, end)`` of the steps that run any number of times."""
    makers: tuple[int, ...] = ()
    """Sites that make it as a layer of another model."""
    makings: tuple[Making, ...] = ()
    """Each time that a run of the program makes it, as far as the text says."""


@dataclass(frozen=True, slots=True)
class SourceMap:
    """All that one program's text says: layer sites in source order, and the files it writes."""

    sites: tuple[LayerSite, ...]
    """The program's own first, then those of the modules that it imports, in the order of import."""
    artifacts: tuple[Artifact, ...]
    outlines: tuple[Outline, ...] = ()
    modules: tuple[str, ...] = ()
    """Absolute paths of the project's modules that were followed."""
    training: tuple[Span, ...] = ()
    """Calls that train a model (``model.fit(…)``), in source order; those of the program itself."""
    cells: tuple[Cell, ...] = ()
    """The cells of the program, where it is a notebook."""

    def cell_at(self, line: int) -> Cell | None:
        """The cell that holds a line of the program; ``None``: it is no notebook."""
        after = bisect_right(self.cells, line, key=lambda cell: cell.line)
        return self.cells[after - 1] if after else None
