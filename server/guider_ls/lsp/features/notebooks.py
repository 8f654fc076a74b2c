"""Notebooks as the client opens, edits, saves and closes them.

A notebook is one document: its Python cells are one program, in the order of the notebook. The client knows each
cell by a URI of its own, and asks and is told by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from guider_ls.lsp.documents import Document, Part, path_of
from guider_ls.lsp.features.synchronization import DEBOUNCE, opened, saved
from guider_ls.lsp.positions import Encoding, from_position
from guider_ls.source.lines import Lines
from guider_ls.source.notebook import Code, Combined, combine, first_lines

if TYPE_CHECKING:
    from guider_ls.lsp.server import GuiderServer

SYNCHRONIZED = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook("jupyter-notebook")], save=True
)
"""All cells, not those of Python alone: people count all when they speak of the third cell."""


def register(server: GuiderServer) -> None:
    """Register the feature."""

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        item = params.notebook_document
        if (before := find(item.uri)) is not None:
            server.forget(before)
        notebook = Notebook(item.uri, path_of(item.uri), item.cells, params.cell_text_documents)
        server.documents[item.uri] = notebook
        server.read(notebook)
        server.spawn(opened(server, notebook))

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        notebook = find(params.notebook_document.uri)
        if notebook is not None and (cells := params.change.cells) is not None:
            notebook.apply(cells, server.client.encoding)
            server.refresh(notebook)
            server.read(notebook, DEBOUNCE)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    async def did_save(params: types.DidSaveNotebookDocumentParams) -> None:
        if (notebook := find(params.notebook_document.uri)) is not None:
            notebook.typed_in = frozenset()
            await saved(server, notebook)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        if (notebook := find(params.notebook_document.uri)) is not None:
            server.forget(notebook)

    def find(uri: str) -> Notebook | None:
        document = server.documents.get(uri)
        return document if isinstance(document, Notebook) else None


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a cell of any kind."""

    version: int
    language: str
    lines: Lines


class Notebook(Document):
    """An open notebook."""

    def __init__(
        self,
        uri: str,
        path: Path | None,
        cells: Iterable[types.NotebookCell],
        texts: Iterable[types.TextDocumentItem],
    ) -> None:
        """Open a notebook; ``path`` is ``None`` where it is not a file."""
        self._cells = list(cells)
        self._texts = {text.uri: _opened(text) for text in texts}
        self.typed_in: frozenset[str] = frozenset()
        """The cells whose text was changed last."""
        super().__init__(uri, path, self._code())

    def apply(self, change: types.NotebookDocumentCellChanges, encoding: Encoding) -> None:
        """Take over a change, and move what is known with it. What does not fit the notebook is passed over."""
        if (structure := change.structure) is not None:
            array = structure.array
            self._cells[array.start : array.start + array.delete_count] = array.cells or ()
            for closed in structure.did_close or ():
                self._texts.pop(closed.uri, None)
            self._texts.update({text.uri: _opened(text) for text in structure.did_open or ()})
        if change.data:
            changed = {cell.document: cell for cell in change.data}
            self._cells = [changed.get(cell.document, cell) for cell in self._cells]
        self.change(self._code())
        edits = [edit for edit in change.text_content or () if edit.document.uri in self._texts]
        for edit in edits:
            # One by one: from the texts before and after it is not always clear what was moved by several.
            for one in edit.changes:
                before = self._texts[edit.document.uri]
                lines = _edited(before.lines, one, encoding)
                self._texts[edit.document.uri] = _Text(edit.document.version, before.language, lines)
                self.change(self._code())
        self.typed_in = frozenset(edit.document.uri for edit in edits)

    def program(self) -> Callable[[], Combined]:
        """See `Document.program`. A cell that is not Python is left out, unless it is the one being typed in."""
        codes = [Code(part.number, part.lines.text) for part in self.parts]
        typed = {part.number for part in self.parts if part.uri in self.typed_in}
        return partial(combine, codes, typed if self.reading is not None else ())

    def _code(self) -> tuple[Part, ...]:
        """The Python cells, below each other."""
        found = [
            (number, cell.document, text)
            for number, cell in enumerate(self._cells, start=1)
            if cell.kind == types.NotebookCellKind.Code
            and (text := self._texts.get(cell.document)) is not None
            and text.language == "python"
        ]
        starts = first_lines(text.lines for _, _, text in found)
        return tuple(
            Part(uri, text.version, text.lines, start, number)
            for (number, uri, text), start in zip(found, starts, strict=True)
        )


def _opened(text: types.TextDocumentItem) -> _Text:
    return _Text(text.version, text.language_id, Lines(text.text))


def _edited(lines: Lines, change: types.TextDocumentContentChangeEvent, encoding: Encoding) -> Lines:
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return Lines(change.text)
    start = lines.offset(*from_position(lines, change.range.start, encoding))
    end = lines.offset(*from_position(lines, change.range.end, encoding))
    return Lines(lines.text[:start] + change.text + lines.text[max(start, end) :])
