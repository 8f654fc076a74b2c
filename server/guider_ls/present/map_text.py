"""The mapping of a program's lines to a model's layers as text."""

from __future__ import annotations

from collections.abc import Iterator

from guider_engine.wire import LayerPath, ModelSummary
from guider_ls.mapping.mapping import Mapping
from guider_ls.present.phrases import counted, older
from guider_ls.present.terminal import Terminal
from guider_ls.source.sites import LayerSite, SourceMap, line_name


def map_to_text(
    program: str,
    source: SourceMap,
    model: ModelSummary | None = None,
    mapping: Mapping | None = None,
    *,
    terminal: Terminal,
) -> str:
    """Each construction with the layers that came from it, then the layers without a line; ends with a newline."""
    page = _Page(program, model, mapping, terminal)
    parts = [page.header(source), page.sites(source), page.unmatched(), page.artifacts(source)]
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part))) + "\n"


class _Page:
    def __init__(
        self, program: str, model: ModelSummary | None, mapping: Mapping | None, terminal: Terminal
    ) -> None:
        self.program = program
        self.model = model
        self.mapping = mapping
        self.terminal = terminal
        self.layers = {layer.path: layer for layer in model.all_layers()} if model is not None else {}

    def header(self, source: SourceMap) -> Iterator[str]:
        constructions = counted(len(source.sites), "layer construction")
        yield from self.terminal.field("program", f"{self.terminal.file(self.program)} ({constructions})")
        if self.model is not None:
            layers = counted(len(self.model.layers), "layer")
            yield from self.terminal.field("model", f"{self.model.name} ({self.model.class_name}, {layers})")

    def sites(self, source: SourceMap) -> Iterator[str]:
        for site in source.sites:
            yield f"{self.terminal.place(self.program, site)}  {self.terminal.quoted(site)}"
            yield from (line for text in self.said(site) for line in self.terminal.wrapped(text, "    "))

    def said(self, site: LayerSite) -> Iterator[str]:
        """What became of a construction."""
        if self.mapping is None:
            notes = (("may run several times", site.repeats), ("may be skipped", site.conditional))
            if said := ", ".join(note for note, applies in notes if applies):
                yield said
            return
        for match in self.mapping.of_site(site):
            yield f"→ {self.layer(match.layer)}: {match.reason}"
            if match.differences:
                yield older(match.differences, "")
        for unmatched in self.mapping.unmatched_sites:
            if unmatched.site == site:
                yield f"→ no layer: {unmatched.reason}"

    def unmatched(self) -> Iterator[str]:
        if self.mapping is None or not self.mapping.unmatched_layers:
            return
        yield self.terminal.style("bold", "Layers without a line in the program")
        for unmatched in self.mapping.unmatched_layers:
            places = ", ".join(self.terminal.place(self.program, site) for site in unmatched.candidates[:3])
            more = f"; it may be {places}" if places else ""
            yield from self.terminal.wrapped(f"{self.layer(unmatched.layer)}: {unmatched.reason}{more}", "  ")

    def artifacts(self, source: SourceMap) -> Iterator[str]:
        if source.artifacts:
            yield self.terminal.style("bold", "Files that the program writes")
        for artifact in source.artifacts:
            what = {"model": "model", "tests": "test set"}[artifact.kind]
            unsaid = "" if artifact.known else ", known when it runs"
            yield f"  {artifact.path} ({what}, {line_name(artifact.span.line, artifact.cell)}{unsaid})"

    def layer(self, path: LayerPath) -> str:
        layer = self.layers[path]
        return f"layer {'.'.join(map(str, path))} {layer.name} ({layer.class_name})"
