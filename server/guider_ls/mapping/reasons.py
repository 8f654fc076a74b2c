"""Why a layer and a line are paired, or why one of them is left over, in words for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from guider_engine.wire import ModelLayer, ModelSummary
from guider_ls.mapping.comparison import Comparisons, automatic_number, fits, has_automatic_name, literals
from guider_ls.mapping.mapping import UnmatchedLayer
from guider_ls.source.sites import Cell, LayerSite, Outline, SourceMap, Step, line_name

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def of_match(
    site: LayerSite,
    step: Step,
    layer: ModelLayer,
    peers: Sequence[ModelLayer],
    compare: Comparisons,
    *,
    rivals: int,
) -> str:
    """Why a layer comes from a site. ``peers``: layers of its class; ``rivals``: sites of its class."""
    if step.name_pattern not in {None, ".*"} and re.fullmatch(step.name_pattern or "", layer.name):
        return f'name "{layer.name}"'
    if len(peers) == 1 and rivals == 1:
        return f"only {site.class_name}"
    if rivals == 1:
        return f"only line that constructs a {site.class_name}"
    comparison = compare(site, layer)
    said = literals(site)
    alike = [peer for peer in peers if not compare(site, peer).differences]
    if said and not comparison.differences and len(alike) == 1:
        return f"only {site.class_name} with {said}"
    ordered = sorted(peers, key=lambda peer: (automatic_number(peer) or 0, peer.path))
    position = next(i for i, peer in enumerate(ordered) if peer.path == layer.path)
    return f"{_ordinal(position)} {site.class_name} in order"


def _ordinal(position: int) -> str:
    return _ORDINALS[position] if position < len(_ORDINALS) else f"{position + 1}th"


def lines(sites: Iterable[LayerSite]) -> str:
    """``line 4 or line 9``, 1-based; of another module ``line 9 of models.py``, of a cell ``cell 2, line 9``."""
    places = {(site.file, site.span.line): site.cell for site in sites}
    return " or ".join(line(*place, places[place]) for place in sorted(places))


def line(file: str, number: int, cell: Cell | None = None) -> str:
    """``line 4``, or ``line 4 of models.py``; ``number`` is 0-based."""
    name = re.split(r"[\\/]", file)[-1]
    return f"{line_name(number, cell)} of {name}" if name else line_name(number, cell)


def of_layer(layer: ModelLayer, candidates: Sequence[LayerSite], sites: Sequence[LayerSite]) -> str:
    """Why a layer has no line."""
    if len(candidates) > 1:
        return f"could be {lines(candidates)}"
    if candidates:
        return f"could be {lines(candidates)}, but the line fits other layers as well"
    same = [site for site in sites if fits(site, layer)]
    if layer.class_name == "InputLayer" and not same:
        return "inserted by Keras"
    if not same:
        return f"no line of this program constructs a {layer.class_name}"
    if not has_automatic_name(layer) and not any(
        site.name_pattern and re.fullmatch(site.name_pattern, layer.name) for site in same
    ):
        return f'no line gives a {layer.class_name} the name "{layer.name}"'
    return f"the lines that construct a {layer.class_name} belong to other layers of the model"


_FATES = {
    "unreached": "in code that does not run",
    "in-call": "made anew inside each call of a layer, where nothing trains it",
    "replaced": "its variable gets another value before a model uses it",
    "unconnected": "called, but its output does not lead to the output of a model",
    "uncalled": "neither called nor added to a model",
    "wrapped": "wrapped by another layer, which the model shows as one layer",
}
"""See `LayerSite.fate`."""


class SiteReasons:
    """Explains sites without layers."""

    def __init__(
        self,
        source: SourceMap,
        model: ModelSummary,
        outlines: Sequence[Outline],
        chosen: Sequence[Outline],
        doubtful: Sequence[UnmatchedLayer],
        compare: Comparisons,
    ) -> None:
        self._compare = compare
        self._sites = source.sites
        self._layers = tuple(model.all_layers())
        self._chosen = {step.site for outline in chosen for step in outline.steps}
        self._homes: dict[int, list[Outline]] = {}
        for outline in outlines:
            for site in {step.site for step in outline.steps}:
                self._homes.setdefault(site, []).append(outline)
        self._wrappers = _wrappers(source.sites)
        self._candidates = [layer.candidates for layer in doubtful if layer.candidates]

    def doubt(self, index: int) -> str | None:
        """Why the site of that index may well be part of the model although no layer is known to come from it."""
        site = self._sites[index]
        wrapper = self._wrappers.get(index) if index not in self._homes else None
        if wrapper is not None and site.fate != "in-call":
            return f"wrapped by {wrapper.class_name}, {lines([wrapper])}, which the model shows as one layer"
        for candidates in self._candidates:
            if site in candidates:
                others = [other for other in candidates if other != site]
                if others:
                    return f"may be a layer of the model, but so may {lines(others)}"
                return "may be one of several layers of the model"
        return None

    def __call__(self, index: int) -> str:
        """Why the site of that index has no layer."""
        if (doubt := self.doubt(index)) is not None:
            return doubt
        site = self._sites[index]
        if index not in self._chosen:
            return self._elsewhere(index)
        if site.class_name == "InputLayer":
            return "Keras does not list the input of this model as a layer"
        same = [layer for layer in self._layers if fits(site, layer)]
        if not same:
            return f"the model has no {site.class_name}"
        said = literals(site)
        if said and all(self._compare(site, layer).differences for layer in same):
            return f"no {site.class_name} in the model has {said}"
        if site.conditional:
            return "in a branch that this model does not seem to have taken"
        return f"every {site.class_name} of the model comes from another line"

    def _elsewhere(self, index: int) -> str:
        homes = self._homes.get(index)
        if not homes:
            return _FATES.get(self._sites[index].fate, "never becomes part of a model in this program")
        label = next((home.label for home in homes if home.label), "")
        kind = "layer" if homes[0].kind == "class" else "model"
        return f"part of another {kind}, {label}" if label else f"part of another {kind}"


def _wrappers(sites: Sequence[LayerSite]) -> dict[int, LayerSite]:
    """For each site inside the call of another one of Keras' layers, that layer; sites are in source order."""
    found: dict[int, LayerSite] = {}
    around: list[LayerSite] = []
    for index, site in enumerate(sites):
        start = (site.span.line, site.span.column)
        while around and (
            around[-1].file != site.file or (around[-1].span.end_line, around[-1].span.end_column) <= start
        ):
            around.pop()
        if around and around[-1].qualified_name.startswith("keras.layers."):
            found[index] = around[-1]
        around.append(site)
    return found
