"""What an editor gets before anything was localized."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.protocol.editor import VS_CODE, Editor, ErrorAnswer, Message, editor

PROGRAM = """\
import keras
from keras import layers

model = keras.Sequential([
    keras.Input((4,)),
    layers.Dense(64, activation="sigmoid"),
    layers.Dense(3, activation="softmax"),
])
"""
OFFER = "GUIDER: no model or test set found"
DENSE = "Dense · not ranked yet"
TRAIN = "GUIDER: train and localize"


def manual(client: Editor) -> None:
    client.settings = {"run": "manual"}


async def lines(client: Editor, uri: str) -> list[int]:
    return [line for line, _ in await client.lenses(uri)]


async def test_every_construction_has_a_lens(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    assert await client.lenses(uri) == [(4, "GUIDER: localize"), (5, DENSE), (6, DENSE)]


async def test_a_program_without_a_model_says_so_without_a_message(client: Editor, folder: Path) -> None:
    await client.initialize(folder, options={"status": True})
    uri = client.open(folder / "train.py", PROGRAM)
    status = await client.status(uri, "no-target")
    assert "pyproject.toml" in status["detail"]
    assert (await client.lenses(uri))[0] == (4, OFFER)
    assert "pyproject" in str(await client.hover(uri, 5, 14))
    assert client.messages() == []
    await client.command("guider.localize", uri)
    message = await client.wait_for("window/showMessage")
    assert "[tool.guider]" in message["message"]


async def test_hover_says_what_a_line_constructs(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    await client.lenses(uri)
    assert "constructs a **Dense** layer" in str(await client.hover(uri, 5, 14))
    assert await client.hover(uri, 0, 3) is None
    assert await client.hover(uri, 999, 3) is None


async def test_the_server_syncs_whole_texts_and_offers_no_pull(client: Editor, folder: Path) -> None:
    capabilities = (await client.initialize(folder))["capabilities"]
    assert capabilities["textDocumentSync"]["change"] == 1
    assert "diagnosticProvider" not in capabilities
    assert sorted(capabilities["executeCommandProvider"]["commands"]) == [
        "guider.cancel",
        "guider.chooseCapturedModel",
        "guider.localize",
        "guider.showLog",
        "guider.showReport",
        "guider.trainAndLocalize",
    ]


async def test_lenses_follow_edits_and_survive_syntax_errors(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    assert await lines(client, uri) == [4, 5, 6]
    client.change(uri, "# one\n# two\n" + PROGRAM, 2)
    assert await lines(client, uri) == [6, 7, 8]
    broken = PROGRAM.replace('"sigmoid"),', '"sigmoid"\n')
    client.change(uri, broken, 3)
    assert await lines(client, uri) == [4, 5, 7]
    client.change(uri, "x = (\n" + broken, 4)
    for _ in range(5):
        assert await lines(client, uri) == [5, 6, 8]
    client.change(
        uri, PROGRAM.replace("    layers.Dense(3", "    layers.Dropout(0.5),\n    layers.Dense(3"), 5
    )
    assert await client.wait_until(lambda: four_lenses(client, uri)) == [4, 5, 6, 7]


async def test_a_program_is_read_with_the_modules_it_imports_as_they_are_in_the_editor(
    client: Editor, folder: Path
) -> None:
    manual(client)
    await client.initialize(folder)
    (folder / "kinds.py").write_text("from keras.layers import Dense as Kind\n", encoding="utf-8")
    program = "import keras\nfrom kinds import Kind\nmodel = keras.Sequential([keras.Input((4,)), Kind(3)])\n"
    uri = client.open(folder / "train.py", program)
    assert [text for _, text in await client.lenses(uri)] == [TRAIN, "GUIDER: localize", DENSE]
    module = client.open(folder / "kinds.py", "from keras.layers import Dense as Kind\n")
    client.change(module, "from keras.layers import LSTM as Kind\n", 2)

    async def changed() -> list[str] | None:
        texts = [text for _, text in await client.lenses(uri)]
        return texts if DENSE not in texts else None

    assert await client.wait_until(changed) == [TRAIN, "GUIDER: localize", "LSTM · not ranked yet"]
    since = client.now
    client.close(module)
    await client.wait_for("workspace/codeLens/refresh", since=since)
    assert [text for _, text in await client.lenses(uri)] == [TRAIN, "GUIDER: localize", DENSE]


async def four_lenses(client: Editor, uri: str) -> list[int] | None:
    found = await lines(client, uri)
    return found if len(found) == 4 else None


async def test_the_client_is_asked_to_refresh_when_lenses_change(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    await client.lenses(uri)
    since = client.now
    client.change(uri, PROGRAM + "extra = layers.Dense(1)\n", 2)
    await client.wait_for("workspace/codeLens/refresh", since=since)
    assert await lines(client, uri) == [4, 5, 6, 8]


async def test_a_program_that_is_broken_from_the_start_gets_lenses_when_it_is_mended(
    client: Editor, folder: Path
) -> None:
    manual(client)
    await client.initialize(folder)
    uri = client.open(folder / "train.py", "x = (\n" + PROGRAM)
    assert await lines(client, uri) == []
    client.change(uri, PROGRAM, 2)
    await client.wait_for("workspace/codeLens/refresh")
    assert await lines(client, uri) == [4, 5, 6]
    assert client.messages() == []


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("encoding", "start", "end"), [("utf-16", 16, 24), ("utf-8", 18, 26), ("utf-32", 15, 23)]
)
async def test_positions_are_those_of_the_client(
    client: Editor, folder: Path, line_break: str, encoding: str, start: int, end: int
) -> None:
    manual(client)
    await client.initialize(folder, {**VS_CODE, "general": {"positionEncodings": [encoding]}})
    # \x0c and \x1c end no line for Python, nor for an editor.
    program = 'from keras.layers import Dense\n\x0c\nx = "\x1c"\ny = ("😀"); z = Dense(3); w = 0\n'.replace(
        "\n", line_break
    )
    uri = client.open(folder / "train.py", program)
    (lens,) = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert lens["range"] == {"start": {"line": 3, "character": start}, "end": {"line": 3, "character": end}}
    assert await client.hover(uri, 3, start) is not None
    assert await client.hover(uri, 3, start - 1) is None
    assert await client.hover(uri, 3, end + 1) is None


async def test_a_program_in_another_encoding(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    program = "# -*- coding: latin-1 -*-\nfrom keras.layers import Dense\nx = ('é', Dense(3))\n"
    (folder / "train.py").write_bytes(program.encode("latin-1"))
    uri = client.open(folder / "train.py", program)
    assert await lines(client, uri) == [2]


async def test_a_client_that_can_do_nothing_gets_lenses_and_no_requests(client: Editor, folder: Path) -> None:
    await client.initialize(folder, capabilities={})
    uri = client.open(folder / "train.py", PROGRAM)
    assert len(await client.lenses(uri)) == 3
    client.change(uri, PROGRAM + "\nlayers.Dense(1)\n", 2)
    await client.wait_until(lambda: four_lenses(client, uri))
    client.save(uri)
    await client.command("guider.localize", uri)
    await client.wait_for("window/showMessage")
    assert [m["method"] for m in client.received if "id" in m] == []


async def test_an_editor_that_does_not_answer_gets_lenses_all_the_same(client: Editor, folder: Path) -> None:
    client.silent = {"workspace/configuration", "client/registerCapability"}
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    assert len(await client.lenses(uri)) == 3


async def test_an_untitled_document_has_lenses(client: Editor) -> None:
    await client.initialize(None)
    uri = client.open("untitled:Untitled-1", PROGRAM)
    assert len(await client.lenses(uri)) == 3
    await client.command("guider.localize", uri)
    assert "save the program" in (await client.wait_for("window/showMessage"))["message"]


async def test_switched_off_for_an_untitled_document(client: Editor) -> None:
    client.settings = {"enable": False}
    await client.initialize(None)
    uri = client.open("untitled:Untitled-1", PROGRAM)
    await client.wait_until(lambda: no_lenses(client, uri))


async def test_other_languages_are_left_alone(client: Editor, folder: Path) -> None:
    await client.initialize(folder)
    uri = (folder / "a.md").as_uri()
    document = {"uri": uri, "languageId": "markdown", "version": 1, "text": PROGRAM}
    client.notify("textDocument/didOpen", {"textDocument": document})
    assert await client.lenses(uri) == []


async def test_a_closed_document_is_forgotten(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    assert len(await client.lenses(uri)) == 3
    client.close(uri)
    assert await client.lenses(uri) == []
    client.open(folder / "train.py", PROGRAM)
    assert len(await client.lenses(uri)) == 3


async def test_two_documents_each_have_their_own(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    one = client.open(folder / "one.py", PROGRAM)
    two = client.open(folder / "two.py", "import keras\nkeras.layers.Dense(1)\n")
    assert (len(await client.lenses(one)), len(await client.lenses(two))) == (3, 1)


# Settings


async def test_switched_off_and_on_again(client: Editor, folder: Path) -> None:
    client.settings = {"run": "manual", "enable": False}
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    await client.wait_until(lambda: no_lenses(client, uri))
    await client.command("guider.localize", uri)
    assert "guider.enable" in (await client.wait_for("window/showMessage"))["message"]
    client.settings = {"run": "manual", "enable": True}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.wait_for("workspace/codeLens/refresh")
    assert len(await client.lenses(uri)) == 3


async def no_lenses(client: Editor, uri: str) -> bool:
    return await client.lenses(uri) == []


@pytest.mark.parametrize("key", ["codeLens", "hover"])
async def test_one_surface_switched_off(client: Editor, folder: Path, key: str) -> None:
    client.settings = {"run": "manual", key: False}
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)

    async def surfaces() -> list[bool]:
        shown = [bool(await client.lenses(uri)), bool(await client.hover(uri, 5, 14))]
        return shown if shown.count(True) == 1 else []

    assert await client.wait_until(surfaces) == [key != "codeLens", key != "hover"]


async def test_a_wrong_value_is_told_once(client: Editor, folder: Path) -> None:
    client.settings = {"run": "manual", "diagnostics": {"top": "many"}, "server": {"command": []}}
    await client.initialize(folder)
    for name in ("one.py", "two.py"):
        client.open(folder / name, PROGRAM)
    message = await client.wait_for("window/showMessage")
    assert message["type"] == 2
    for part in ("guider.diagnostics.top", "many", "1 is used"):
        assert part in message["message"]
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    uri = client.open(folder / "three.py", PROGRAM)
    await client.lenses(uri)
    assert len(client.messages()) == 1


async def test_settings_of_pyproject_count_and_follow_the_file(client: Editor, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.guider]\nenable = false\nrun = "manual"\n')
    # An editor sends the defaults of what nobody set.
    client.settings = {"enable": True, "run": "onSave"}
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    await client.wait_until(lambda: no_lenses(client, uri))
    (folder / "pyproject.toml").write_text('[tool.guider]\nrun = "manual"\n')
    client.changed_on_disk(folder / "pyproject.toml")
    await client.wait_for("workspace/codeLens/refresh")
    assert len(await client.lenses(uri)) == 3


async def test_a_client_that_sends_its_settings(client: Editor, folder: Path) -> None:
    await client.initialize(folder, capabilities={})
    client.notify("workspace/didChangeConfiguration", {"settings": {"guider": {"enable": False}}})
    uri = client.open(folder / "train.py", PROGRAM)
    await client.wait_until(lambda: no_lenses(client, uri))


# Trust, commands, nonsense


async def test_nothing_runs_in_a_folder_that_is_not_trusted(client: Editor, folder: Path) -> None:
    await client.initialize(folder, options={"status": True, "trusted": False})
    uri = client.open(folder / "train.py", PROGRAM)
    await client.status(uri, "untrusted")
    assert len(await client.lenses(uri)) == 3
    assert client.messages() == []
    await client.command("guider.localize", uri)
    assert "not trusted" in (await client.wait_for("window/showMessage"))["message"]


@pytest.mark.parametrize("name", ["guider.localize", "guider.cancel", "guider.showReport", "guider.showLog"])
@pytest.mark.parametrize("arguments", [[], [None], ["file:///nowhere.py"], [{"a": 1}, 2]])
async def test_commands_answer_whatever_they_are_given(
    client: Editor, folder: Path, name: str, arguments: list[object]
) -> None:
    await client.initialize(folder)
    assert await client.command(name, *arguments) is None
    message = await client.wait_for("window/showMessage")
    assert message["message"].startswith("GUIDER")


async def test_a_command_without_argument_means_the_only_program(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    client.open(folder / "train.py", PROGRAM)
    await client.command("guider.localize")
    assert "[tool.guider]" in (await client.wait_for("window/showMessage"))["message"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("guider/nonsense", {}, -32601),
        ("workspace/executeCommand", {"command": "guider.nonsense"}, -32602),
        ("textDocument/hover", {"textDocument": 5}, -32602),
        ("textDocument/hover", None, -32602),
        ("textDocument/codeLens", [], -32602),
    ],
)
async def test_malformed_requests_are_answered(
    client: Editor, folder: Path, method: str, params: Message, code: int
) -> None:
    manual(client)
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    with pytest.raises(ErrorAnswer) as error:
        await client.request(method, params)
    assert error.value.code == code
    assert len(await client.lenses(uri)) == 3


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xff",
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"a": 1}}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didOpen"}',
        b'{"jsonrpc": "2.0", "id": 7, "result": 1}',
    ],
)
async def test_nonsense_is_survived(client: Editor, folder: Path, body: bytes) -> None:
    manual(client)
    await client.initialize(folder)
    uri = client.open(folder / "train.py", PROGRAM)
    client.send_raw(body)
    assert len(await client.lenses(uri)) == 3


DEFECT = """
from guider_ls.lsp.documents import Document
change = Document.change
def broken(self, parts):
    change(self, parts)
    raise ZeroDivisionError(parts[0].version)
Document.change = broken
"""


async def test_a_defect_is_told_once_and_stops_nothing(cache: Path, folder: Path) -> None:
    async with editor(cache, DEFECT) as client:
        manual(client)
        await client.initialize(folder)
        uri = client.open(folder / "train.py", PROGRAM)
        for _ in range(3):
            client.change(uri, "\n" + PROGRAM, 2)
        message = await client.wait_for("window/showMessage")
        assert "ZeroDivisionError: 2" in message["message"]
        assert "Traceback" in (await client.wait_for("window/logMessage"))["message"]
        assert await lines(client, uri) == [5, 6, 7]
        assert len(client.messages()) == 1


NOISE = """
from guider_ls.lsp.documents import Document
take = Document.take
Document.take = lambda self, reading: (print("noise"), take(self, reading))[1]
"""


async def test_printing_does_not_disturb_the_messages(cache: Path, folder: Path) -> None:
    async with editor(cache, NOISE) as client:
        manual(client)
        await client.initialize(folder)
        uri = client.open(folder / "train.py", PROGRAM)
        assert await lines(client, uri) == [4, 5, 6]
        assert b"noise" in client.stderr


async def test_each_folder_has_its_own_settings(client: Editor, tmp_path: Path) -> None:
    for name, settings in (("on", 'run = "manual"'), ("off", "enable = false")):
        root = tmp_path / name
        root.mkdir()
        (root / "pyproject.toml").write_text(f"[tool.guider]\n{settings}\n")
    await client.initialize(tmp_path)
    on, off = (client.open(tmp_path / name / "train.py", PROGRAM) for name in ("on", "off"))
    await client.wait_until(lambda: no_lenses(client, off))
    assert len(await client.lenses(on)) == 3


async def test_edits_of_unknown_documents_are_survived(client: Editor, folder: Path) -> None:
    manual(client)
    await client.initialize(folder)
    client.change("file:///nowhere.py", PROGRAM, 2)
    client.save("file:///nowhere.py")
    client.close("file:///nowhere.py")
    uri = client.open(folder / "train.py", PROGRAM)
    assert len(await client.lenses(uri)) == 3


# The process


async def test_it_goes_when_it_is_told_to(client: Editor, folder: Path) -> None:
    await client.initialize(folder)
    client.open(folder / "train.py", PROGRAM)
    assert await client.stop() == 0
    assert b"Traceback" not in client.stderr


async def test_it_says_when_it_is_sent_away_without_a_goodbye(client: Editor, folder: Path) -> None:
    await client.initialize(folder)
    client.notify("exit")
    assert await client.process.wait() == 1


async def test_it_serves_on_a_port(client: Editor, cache: Path) -> None:
    code = "from guider_ls.lsp.server import run_tcp; run_tcp('127.0.0.1', 0)"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "GUIDER_CACHE": str(cache)},
    )
    try:
        assert process.stderr is not None
        port = int((await process.stderr.readline()).split()[-1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for message, answer in (
            (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}', b'"guider-ls"'),
            (b'{"jsonrpc":"2.0","id":2,"method":"shutdown"}', b'"id": 2'),
            (b'{"jsonrpc":"2.0","method":"exit"}', b""),
        ):
            writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(message), message))
            if answer:
                await reader.readuntil(answer)
        writer.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_it_goes_with_its_editor(client: Editor, folder: Path) -> None:
    await client.initialize(folder)
    assert client.process.stdin is not None
    client.process.stdin.close()
    await client.process.wait()


def test_it_starts_light() -> None:
    code = "import sys, guider_ls.lsp.server; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "tensorflow", "keras", "libcst"}.intersection(modules)
