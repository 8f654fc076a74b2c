"""From the text of a program to its layer sites, the models they build and the files it writes.

The program is parsed (`guider_ls.source.trees`), with the places of its calls (`guider_ls.source.positions`), and
run on abstract values once (`guider_ls.source.statements`); so is every module of the project that it imports.
"""

from __future__ import annotations

import re

import libcst as cst

from guider_ls.source.comments import is_ignored
from guider_ls.source.modules import Modules, imported
from guider_ls.source.numbering import numbers
from guider_ls.source.outlines import callers, constructions, fates, outline, placed_calls
from guider_ls.source.sites import Artifact, Fate, LayerSite, SourceMap, Span
from guider_ls.source.statements import Program
from guider_ls.source.trace import Draft, Trace
from guider_ls.source.trees import Tree, Trees
from guider_ls.source.values import Instance

_KERAS = re.compile(r"keras|layers", re.IGNORECASE)


def read_program(text: str, modules: Modules | None = None) -> SourceMap:
    """All that a program's text says of layers, models and the files it writes.

    Args:
        text: of the program.
        modules: finds the modules of its project; they are followed.

    Raises:
        InputError: code ``program-syntax``; the text is not Python. The message names the line.
    """
    if not _concerns_keras(text, modules):
        return SourceMap((), ())
    trees = Trees()
    try:
        return _source_map(trees.tree(text), modules, trees)
    except RecursionError:  # an expression nested thousands deep: nothing to show, nothing to break
        return SourceMap((), ())
    finally:
        trees.close()


def _concerns_keras(text: str, modules: Modules | None) -> bool:
    """Whether Keras is named in a program or in a module that it seems to import; nothing is parsed for that."""
    seen: set[str] = set()
    todo = [("", text)]
    while todo:
        importer, text = todo.pop()
        if _KERAS.search(text):
            return True
        if modules is None:
            return False
        for name, level in imported(text):
            found = modules.find(name, level, importer)
            if found is not None and found[0] not in seen:
                seen.add(found[0])
                todo.append(found)
    return False


def _source_map(tree: Tree, modules: Modules | None, trees: Trees) -> SourceMap:
    program = Program(modules, trees)
    program.run(tree)
    trace = program.trace
    found = constructions(program)
    placed = placed_calls(found)
    fate = fates(program, placed)
    drafts: list[Draft] = []
    sites: list[LayerSite] = []
    spans: dict[cst.Call, Span] = {}
    for file, module in {"": tree, **program.trees}.items():
        own = [draft for draft in trace.drafts.values() if draft.file == file]
        own = [draft for draft in own if id(draft.call) in placed or (draft.certain and not file)]
        others = (
            [*trace.trainings, *callers(found), *(call for call, _, _ in trace.files)] if not file else []
        )
        if module is None or not (own or others):
            continue
        layout = module.lay_out([draft.call for draft in own] + others)
        own = [draft for draft in own if draft.call in layout.spans]
        own.sort(key=lambda draft: layout.spans[draft.call])
        drafts += own
        for draft in own:
            span = layout.spans[draft.call]
            sites.append(_site(draft, span, layout.comments, fate.get(id(draft.call), "")))
        if not file:
            spans = layout.spans
    index = {id(draft.call): number for number, draft in enumerate(drafts)}
    outlines, made = outline(found, index, spans, numbers(program))
    return SourceMap(
        tuple(sites),
        tuple(_artifacts(trace, spans, made)),
        outlines,
        tuple(program.trees),
        tuple(sorted(spans[call] for call in trace.trainings if call in spans)),
    )


def _artifacts(trace: Trace, spans: dict[cst.Call, Span], made: dict[Instance, int]) -> list[Artifact]:
    told = {call for call, written, _ in trace.files if written.known}
    found: dict[tuple[Span, str], Artifact] = {}
    for call, written, model in trace.files:
        if call in spans and (written.known or call not in told):
            key = spans[call], written.path
            outline = made.get(model) if model is not None else None
            if key in found and found[key].outline != outline:
                outline = None  # now this model, now that one
            found[key] = Artifact(spans[call], written.kind, written.path, written.known, outline)
    return sorted(found.values(), key=lambda artifact: artifact.span)


def _site(draft: Draft, span: Span, comments: dict[int, str], fate: Fate) -> LayerSite:
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
        file=draft.file,
        others=tuple(draft.others),
        fate=fate,
    )
