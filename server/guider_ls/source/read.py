"""From the text of a program to its layer sites, the models they build and the files it writes.

The program is parsed once, run on abstract values once (`guider_ls.source.statements`), and written back once to
find where the calls stand (`guider_ls.source.positions`).
"""

from __future__ import annotations

import re

import libcst as cst

from guider_ls.errors import InputError
from guider_ls.source.comments import is_ignored
from guider_ls.source.outlines import constructions, outline, placed_calls
from guider_ls.source.positions import lay_out
from guider_ls.source.sites import Artifact, LayerSite, SourceMap, Span
from guider_ls.source.statements import Program
from guider_ls.source.trace import Draft

_KERAS = re.compile(r"keras|layers", re.IGNORECASE)


def read_program(text: str) -> SourceMap:
    """All that a program's text says of layers, models and the files it writes.

    Raises:
        InputError: code ``program-syntax``; the text is not Python. The message names the line.
    """
    if not _KERAS.search(text):
        return SourceMap((), ())
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        message = " ".join(error.message.split())
        raise InputError(
            "program-syntax",
            f"Line {error.raw_line} is not Python: {message} Fix it there (column {error.raw_column + 1}) "
            "to have the program mapped again.",
        ) from error
    except (ValueError, cst.CSTValidationError) as error:  # null bytes, text and bytes side by side
        raise InputError("program-syntax", f"The text is not Python: {error}") from error
    try:
        return _source_map(module)
    except RecursionError:  # an expression nested thousands deep: nothing to show, nothing to break
        return SourceMap((), ())


def _source_map(module: cst.Module) -> SourceMap:
    program = Program()
    program.run(module)
    trace = program.trace
    found = constructions(program)
    placed = placed_calls(found)
    drafts = [draft for key, draft in trace.drafts.items() if draft.certain or key in placed]
    layout = lay_out(module, [draft.call for draft in drafts] + [call for call, _ in trace.files])
    drafts = [draft for draft in drafts if draft.call in layout.spans]
    drafts.sort(key=lambda draft: layout.spans[draft.call])
    outlines = outline(found, {id(draft.call): index for index, draft in enumerate(drafts)})
    sites = tuple(_site(draft, layout.spans[draft.call], layout.comments) for draft in drafts)
    told = {call for call, written in trace.files if written.known}
    artifacts = sorted(
        (
            Artifact(layout.spans[call], written.kind, written.path, written.known)
            for call, written in trace.files
            if call in layout.spans and (written.known or call not in told)
        ),
        key=lambda artifact: artifact.span,
    )
    return SourceMap(sites, tuple(artifacts), outlines)


def _site(draft: Draft, span: Span, comments: dict[int, str]) -> LayerSite:
    return LayerSite(
        span=span,
        class_name=draft.qualified_name.rpartition(".")[2],
        qualified_name=draft.qualified_name,
        arguments=draft.arguments,
        name_pattern=draft.name_pattern,
        scope=draft.scope,
        repeats=draft.repeats,
        conditional=draft.conditional,
        ignored=is_ignored(span, comments),
        complete=draft.complete,
    )
