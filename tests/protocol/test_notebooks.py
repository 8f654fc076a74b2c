"""Notebooks: the cells are one program, and each place is told in its own cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.protocol.conftest import PROGRAM
from tests.protocol.editor import VS_CODE, Editor, Message, editor

NOTEBOOKS: Message = {**VS_CODE, "notebookDocument": {"synchronization": {}}}
STATUS = {"status": True}
DENSE = "Dense · not ranked yet"
OFFER = "GUIDER: localize"
IMPORTS = "%matplotlib inline\nimport keras\nfrom keras import layers"
CODE, TEXT = 2, 1


@dataclass
class Notebook:
    """A notebook in the editor: sends what an editor sends."""

    client: Editor
    uri: str
    ids: list[str] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    version: int = 1

    def open(self, *cells: tuple[str, str] | str) -> None:
        """Open it with cells: code, or a language and a text."""
        documents = [self._document(cell) for cell in cells]
        self.client.notify(
            "notebookDocument/didOpen",
            {
                "notebookDocument": {
                    "uri": self.uri,
                    "notebookType": "jupyter-notebook",
                    "version": 1,
                    "cells": [self._cell(document) for document in documents],
                },
                "cellTextDocuments": documents,
            },
        )
        self.ids = [document["uri"] for document in documents]

    def cell(self, number: int) -> str:
        """The URI of a cell, counted from 1."""
        return self.ids[number - 1]

    def change(self, **cells: Any) -> None:
        self.version += 1
        document = {"uri": self.uri, "version": self.version}
        change = {"cells": cells} if cells else {"metadata": {}}
        self.client.notify("notebookDocument/didChange", {"notebookDocument": document, "change": change})

    def type(self, number: int, *changes: Message) -> None:
        """Edit the text of a cell."""
        uri = self.cell(number)
        self.versions[uri] += 1
        document = {"uri": uri, "version": self.versions[uri]}
        self.change(textContent=[{"document": document, "changes": list(changes)}])

    def write(self, number: int, text: str) -> None:
        """Give a cell another text."""
        self.type(number, {"text": text})

    def insert(self, number: int, cell: tuple[str, str] | str) -> None:
        """Insert a cell, which gets that number."""
        document = self._document(cell)
        self.ids.insert(number - 1, document["uri"])
        array = {"start": number - 1, "deleteCount": 0, "cells": [self._cell(document)]}
        self.change(structure={"array": array, "didOpen": [document], "didClose": []})

    def delete(self, number: int) -> None:
        uri = self.ids.pop(number - 1)
        array = {"start": number - 1, "deleteCount": 1}
        self.change(structure={"array": array, "didOpen": [], "didClose": [{"uri": uri}]})

    def swap(self, number: int) -> None:
        """Exchange a cell and the next one; their texts stay open meanwhile."""
        one, other = self.ids[number - 1 : number + 1]
        self.ids[number - 1 : number + 1] = [other, one]
        cells = [{"kind": CODE, "document": uri} for uri in (other, one)]
        self.change(structure={"array": {"start": number - 1, "deleteCount": 2, "cells": cells}})

    def save(self) -> None:
        self.client.notify("notebookDocument/didSave", {"notebookDocument": {"uri": self.uri}})

    def close(self) -> None:
        cells = [{"uri": uri} for uri in self.ids]
        self.client.notify(
            "notebookDocument/didClose", {"notebookDocument": {"uri": self.uri}, "cellTextDocuments": cells}
        )

    async def lenses(self) -> list[tuple[int, int, str]]:
        """Cell, line in the cell, and text of every lens."""
        return [
            (number, line, text)
            for number, uri in enumerate(self.ids, start=1)
            for line, text in await self.client.lenses(uri)
        ]

    async def places(self) -> list[tuple[int, int]]:
        """Cell and line of every lens."""
        return [(cell, line) for cell, line, _ in await self.lenses()]

    async def until_at(self, *places: tuple[int, int]) -> None:
        """Wait until there is a lens on these lines of these cells and nowhere else."""

        async def there() -> bool:
            return await self.places() == list(places)

        await self.client.wait_until(there)

    def _document(self, cell: tuple[str, str] | str) -> Message:
        language, text = ("python", cell) if isinstance(cell, str) else cell
        uri = f"vscode-notebook-cell:{self.uri.partition(':')[2]}#W{len(self.versions)}"
        self.versions[uri] = 1
        return {"uri": uri, "languageId": language, "version": 1, "text": text}

    def _cell(self, document: Message) -> Message:
        kind = TEXT if document["languageId"] == "markdown" else CODE
        return {"kind": kind, "document": document["uri"]}


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> Message:
    positions = [{"line": line, "character": character} for line, character in (start, end)]
    return {"range": {"start": positions[0], "end": positions[1]}, "text": text}


@pytest.fixture
async def notebook(client: Editor, folder: Path) -> Notebook:
    """One that nothing is run for, in an editor that has said hello."""
    client.settings["run"] = "manual"
    await client.initialize(folder, NOTEBOOKS)
    return Notebook(client, (folder / "net.ipynb").as_uri())


async def test_the_server_asks_for_notebooks_and_their_saves(notebook: Notebook) -> None:
    assert notebook.client.capabilities["notebookDocumentSync"] == {
        "notebookSelector": [{"notebook": "jupyter-notebook"}],
        "save": True,
    }


async def test_every_construction_has_a_lens_in_its_cell(notebook: Notebook) -> None:
    notebook.open(
        ("markdown", "# layers.Dense(1)"),
        IMPORTS,
        "!pip install keras\nmodel = keras.Sequential()",
        ("sql", "select layers.Dense(2)"),
        "# one\nname = '😀'; %time\n%time model.add(layers.Dense(3))",
        "name = '😀😀'; model.add(layers.Dense(4))\n%%time",
        "%%bash\necho layers.Dense(5)",
        "model.add(layers.Dropout(0.1))  # guider: ignore",
        "await model.add(\n    layers.Flatten()\n)",
    )
    # Python puts nothing after `;` but statements, so the fifth cell is none.
    assert await notebook.lenses() == [(6, 0, OFFER), (9, 1, "Flatten · not ranked yet")]
    notebook.write(5, "# one\nname = '😀'\n%time model.add(layers.Dense(3))")
    await notebook.until_at((5, 2), (6, 0), (9, 1))
    found = await notebook.client.request(
        "textDocument/codeLens", {"textDocument": {"uri": notebook.cell(6)}}
    )
    assert found[0]["range"] == {"start": {"line": 0, "character": 25}, "end": {"line": 0, "character": 40}}
    assert found[0]["command"]["arguments"] == [notebook.uri]
    hover = await notebook.client.request(
        "textDocument/hover",
        {"textDocument": {"uri": notebook.cell(6)}, "position": {"line": 0, "character": 30}},
    )
    assert "Dense" in hover["contents"]["value"]
    assert hover["range"] == found[0]["range"]
    assert await notebook.client.hover(notebook.cell(6), 0, 20) is None
    # A line that the cell does not have is not one of the next cell.
    assert await notebook.client.hover(notebook.cell(5), 3, 30) is None
    assert await notebook.client.hover(notebook.cell(1), 0, 5) is None


async def test_edits_move_places_of_their_cell_at_once(notebook: Notebook) -> None:
    notebook.open(IMPORTS, "a = '😀'\nx = layers.Dense(1)", "y = layers.Dense(2)")
    assert await notebook.places() == [(2, 1), (3, 0)]
    # Each change is about the text that the one before has made; columns are UTF-16.
    notebook.type(2, edit((0, 0), (0, 0), "# 😀\n"), edit((0, 4), (0, 4), "\n"), edit((2, 5), (2, 7), "\n"))
    assert await notebook.places() == [(2, 4), (3, 0)]
    notebook.type(3, edit((0, 0), (0, 0), "\n"), edit((9, 9), (9, 99), "\nz = layers.Dense(3)"))
    assert (3, 1) in await notebook.places()
    await notebook.until_at((3, 1), (3, 2))  # the text of cell 2 is not Python any more: "a = '\n'"
    notebook.type(2, edit((2, 0), (4, 0), ""))
    await notebook.until_at((2, 2), (3, 1), (3, 2))


async def test_cells_come_move_and_go(notebook: Notebook) -> None:
    notebook.open(IMPORTS, "x = layers.Dense(1)", "\ny = layers.Flatten()")
    assert await notebook.places() == [(2, 0), (3, 1)]
    notebook.insert(2, "\n\nz = layers.Dropout(0.5)\n")
    assert await notebook.places() == [(3, 0), (4, 1)]  # at once, before it is read again
    await notebook.until_at((2, 2), (3, 0), (4, 1))
    notebook.swap(3)
    assert await notebook.lenses() == [
        (2, 2, OFFER),
        (3, 1, "Flatten · not ranked yet"),
        (4, 0, DENSE),
    ]
    gone = notebook.cell(3)
    notebook.delete(3)
    assert await notebook.places() == [(2, 2), (3, 0)]
    assert await notebook.client.lenses(gone) == []
    notebook.insert(2, ("markdown", "layers.Dense(1)"))
    await notebook.until_at((3, 2), (4, 0))
    # A cell becomes text.
    notebook.change(data=[{"kind": TEXT, "document": notebook.cell(3)}])
    await notebook.until_at((4, 0))
    notebook.change(data=[{"kind": CODE, "document": notebook.cell(3)}])
    await notebook.until_at((3, 2), (4, 0))
    # Another language: the same cell is closed and opened.
    uri = notebook.cell(4)
    notebook.delete(4)
    notebook.ids.append(uri)
    document = {"uri": uri, "languageId": "r", "version": 2, "text": "x = layers.Dense(1)"}
    array = {"start": 3, "deleteCount": 0, "cells": [{"kind": CODE, "document": uri}]}
    notebook.change(structure={"array": array, "didOpen": [document]})
    await notebook.until_at((3, 2))
    notebook.change()  # metadata
    assert await notebook.places() == [(3, 2)]


async def test_a_cell_that_is_being_written_loses_nothing(notebook: Notebook) -> None:
    notebook.open(IMPORTS, "x = layers.Dense(1)", "y = layers.Dense(2)")
    await notebook.until_at((2, 0), (3, 0))
    notebook.write(2, "(\nx = layers.Dense(1)")
    # However often it is read: the last good reading stays, moved.
    notebook.write(2, "((\nx = layers.Dense(1)")
    assert await notebook.places() == [(2, 1), (3, 0)]
    assert await notebook.client.hover(notebook.cell(2), 1, 10) is not None
    # When another cell is written, the rest is read without it.
    notebook.write(3, "y = layers.Dense(2)\nz = layers.Dense(3)")
    await notebook.until_at((3, 0), (3, 1))
    # A cell that never was Python hides nothing when one goes on writing in it.
    notebook.write(2, "((\nx = layers.Dense(1))")
    assert await notebook.places() == [(3, 0), (3, 1)]
    notebook.write(2, "\nx = layers.Dense(1)")
    await notebook.until_at((2, 1), (3, 0), (3, 1))
    # So it is when it is saved.
    notebook.write(2, "\nx = layers.Dense(1")
    assert await notebook.places() == [(2, 1), (3, 0), (3, 1)]
    notebook.save()
    await notebook.until_at((3, 0), (3, 1))


async def test_what_is_broken_from_the_start_hides_nothing(notebook: Notebook) -> None:
    notebook.open(IMPORTS, "x = layers.Dense(", "y = layers.Dense(2)", "'''", "z = layers.Dense(3)")
    assert await notebook.places() == [(3, 0), (5, 0)]


async def test_messages_that_do_not_fit_are_passed_over(notebook: Notebook) -> None:
    client = notebook.client
    other = Notebook(client, "file:///nowhere.ipynb", ["cell:1"], {"cell:1": 1})
    other.write(1, "x = layers.Dense(1)")
    other.save()
    other.close()
    notebook.open(IMPORTS, "x = layers.Dense(1)")
    await notebook.until_at((2, 0))
    # Cells that it does not have, ranges that no text has, and cells without a text.
    stray = Notebook(client, notebook.uri, ["cell:1"], {"cell:1": 1})
    stray.write(1, "y = layers.Dense(2)")
    stray.change(data=[{"kind": CODE, "document": "cell:2"}])
    array = {"start": 70, "deleteCount": 7, "cells": [{"kind": CODE, "document": "cell:3"}]}
    stray.change(structure={"array": array, "didClose": [{"uri": "cell:4"}, {"uri": "cell:4"}]})
    notebook.type(2, edit((5, 3), (0, 0), "\ny = layers.Dense(2)"), edit((9, 0), (2, 7), "#"))
    await notebook.until_at((2, 0), (2, 1))
    # The file of the notebook as a text.
    client.change(notebook.uri, "{}", 7)
    client.close(notebook.uri)
    client.notify(
        "textDocument/didOpen",
        {"textDocument": {"uri": notebook.uri, "languageId": "json", "version": 1, "text": "{}"}},
    )
    client.change(notebook.cell(2), "", 7)
    client.close(notebook.cell(2))
    await notebook.until_at((2, 0), (2, 1))
    # Opened once more, with other cells; closed twice.
    again = Notebook(client, notebook.uri)
    again.open(("markdown", ""), IMPORTS, "\n\nx = layers.Dense(1)")
    assert await again.places() == [(3, 2)]
    again.close()
    again.close()
    again.write(2, "x")
    assert await again.places() == []
    # Nothing but text, and nothing at all.
    again.open(("markdown", "x"))
    again.open()
    assert await again.places() == []
    again.insert(1, IMPORTS + "\nx = layers.Dense(1)")
    await again.until_at((1, 3))
    again.ids = ["cell:404"]
    assert await again.places() == []
    assert client.messages() == []


async def test_a_notebook_that_is_no_file_has_what_its_text_says(client: Editor, folder: Path) -> None:
    await client.initialize(folder, NOTEBOOKS)
    notebook = Notebook(client, "untitled:Untitled-1.ipynb")
    notebook.open(IMPORTS, "x = layers.Dense(1)")
    await notebook.until_at((2, 0))
    await client.command("guider.localize", notebook.uri)
    assert "save the program to a file first" in (await client.wait_for("window/showMessage"))["message"]


async def test_a_notebook_is_not_run(client: Editor, folder: Path) -> None:
    client.settings["train_on_save"] = True
    await client.initialize(folder, NOTEBOOKS, options=STATUS)
    notebook = Notebook(client, (folder / "net.ipynb").as_uri())
    notebook.open(IMPORTS, "model = keras.Sequential([layers.Dense(1)])\nmodel.fit(x, y)")
    await client.status(notebook.uri, "no-target")
    detail = client.of("guider/status")[-1]["detail"]
    assert "guider.model" in detail
    assert "Train and Localize" not in detail
    assert await notebook.lenses() == [(2, 0, "GUIDER: no model or test set found")]
    notebook.save()
    await client.command("guider.trainAndLocalize", notebook.cell(1))
    said = (await client.wait_for("window/showMessage"))["message"]
    assert "not net.ipynb" in said
    assert "guider.model" in said
    assert client.of("$/progress") == []


async def test_without_synchronization_of_notebooks_there_is_none(client: Editor, folder: Path) -> None:
    await client.initialize(folder, VS_CODE)
    assert "notebookDocumentSync" not in client.capabilities


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_columns_are_those_of_the_client(client: Editor, folder: Path, encoding: str) -> None:
    client.settings["run"] = "manual"
    await client.initialize(folder, {**NOTEBOOKS, "general": {"positionEncodings": [encoding]}})
    notebook = Notebook(client, (folder / "net.ipynb").as_uri())
    notebook.open(IMPORTS, "s = 'ß😀'; x = layers.Dense(1)")
    units = {"utf-8": 6, "utf-16": 3, "utf-32": 2}[encoding]
    found = await client.request("textDocument/codeLens", {"textDocument": {"uri": notebook.cell(2)}})
    assert found[0]["range"]["start"] == {"line": 0, "character": 12 + units}
    notebook.type(2, edit((0, 5), (0, 5 + units), "😀"))
    assert await notebook.places() == [(2, 0)]
    units = {"utf-8": 4, "utf-16": 2, "utf-32": 1}[encoding]
    found = await client.request("textDocument/codeLens", {"textDocument": {"uri": notebook.cell(2)}})
    assert found[0]["range"]["start"] == {"line": 0, "character": 12 + units}


# With a model

CELLS: tuple[tuple[str, str] | str, ...] = (
    ("markdown", "# A net"),
    PROGRAM[: PROGRAM.index("model = ")],
    "%%time\n" + PROGRAM[PROGRAM.index("model = ") : PROGRAM.index("model.compile")],
    PROGRAM[PROGRAM.index("model.compile") :],
)


async def test_from_opening_to_reopening(client: Editor, project: Path, cache: Path) -> None:
    await client.initialize(project, NOTEBOOKS, options=STATUS)
    notebook = Notebook(client, (project / "net.ipynb").as_uri())
    notebook.open(*CELLS)
    assert await notebook.places() == [(3, 2), (3, 3), (3, 4), (3, 5), (3, 6)]

    # Ranked with the files that its cells say they write; told of the cell.
    await client.status(notebook.uri, "ranked")
    shown = await notebook.lenses()
    assert all(text.startswith("#") for _, _, text in shown[1:])
    (published,) = client.of("textDocument/publishDiagnostics")
    assert (published["uri"], published["version"]) == (notebook.cell(3), 1)
    first = published["diagnostics"][0]
    assert shown[first["range"]["start"]["line"] - 2][2].startswith("#1")
    assert {
        r["location"]["uri"] for d in published["diagnostics"] for r in d.get("relatedInformation", ())
    } <= {notebook.cell(3)}
    hover = str(await client.hover(notebook.cell(3), 3, 12))
    for said in ("hidden", "Ochiai", "Failing tests", "tests\\.npz"):
        assert said in hover
    assert "net.ipynb" in client.of("$/progress")[0]["value"]["title"]

    # The quick fix is an edit of the cell.
    context = {"diagnostics": published["diagnostics"][:1]}
    document = {"uri": notebook.cell(3)}
    params = {"textDocument": document, "range": first["range"], "context": context}
    (action,) = await client.request("textDocument/codeAction", params)
    (change,) = action["edit"]["changes"][notebook.cell(3)]
    assert change["newText"] == "  # guider: ignore"
    assert change["range"]["start"]["line"] == first["range"]["end"]["line"]

    # Nothing changed: nothing runs.
    since = client.now
    notebook.save()
    await client.command("guider.localize", notebook.cell(2))
    assert "nothing changed" in (await client.wait_for("window/showMessage", since=since))["message"]
    assert not [s for s in client.of("guider/status", since=since) if s["state"] == "running"]

    # Edits elsewhere leave the diagnostics alone; cells above, too.
    since = client.now
    notebook.write(2, "\n" + PROGRAM[: PROGRAM.index("model = ")])
    notebook.insert(2, "!ls")
    assert await notebook.lenses() == [(cell + 1, line, text) for cell, line, text in shown]
    notebook.type(4, edit((0, 0), (0, 0), "%%capture\n"))
    moved = await client.wait_for("textDocument/publishDiagnostics", since=since)
    assert (moved["uri"], moved["version"]) == (notebook.cell(4), 2)
    assert moved["diagnostics"][0]["range"]["start"]["line"] == first["range"]["start"]["line"] + 1

    # A line that the model does not have yet.
    line = next(n for n, text in enumerate(PROGRAM.splitlines()) if "Dense(12" in text) - 7
    notebook.type(4, edit((line, 17), (line, 19), "13"))

    async def stale() -> bool:
        return any("units: 13 here, 12 in the model of" in text for _, _, text in await notebook.lenses())

    await client.wait_until(stale)

    # The ranking ends with its cell.
    since = client.now
    gone = notebook.cell(4)
    notebook.delete(4)
    assert (await client.wait_for("textDocument/publishDiagnostics", since=since))["diagnostics"] == []
    assert client.of("textDocument/publishDiagnostics", since=since)[0]["uri"] == gone
    notebook.insert(4, CELLS[2])
    await client.wait_for("textDocument/publishDiagnostics", since=since, uri=notebook.cell(4))
    await notebook.until_at((4, 2), (4, 3), (4, 4), (4, 5), (4, 6))

    # And with the notebook; opened again, it is there at once.
    since = client.now
    notebook.close()
    cleared = await client.wait_for("textDocument/publishDiagnostics", since=since)
    assert (cleared["uri"], cleared["diagnostics"]) == (notebook.cell(4), [])
    assert await client.stop() == 0
    async with editor(cache) as second:
        second.settings = {"run": "manual"}
        await second.initialize(project, NOTEBOOKS, options=STATUS)
        notebook = Notebook(second, notebook.uri)
        notebook.open(*CELLS)
        await second.status(notebook.uri, "ranked")
        assert await notebook.lenses() == shown
        assert second.engines() == []
