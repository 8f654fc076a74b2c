"""What does not work is said once and clearly, and the editor goes on."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.e2e.code_server import CodeServer
from tests.e2e.conftest import Project
from tests.e2e.workbench import MILLISECONDS, Workbench


def test_cancel_ends_a_run_that_hangs(workbench: Workbench, code_server: CodeServer, digits: Project) -> None:
    (digits.folder / "slow.py").write_text(
        "import time\n\n\ndef load():\n    open('reached', 'w').close()\n    time.sleep(3600)\n"
    )
    (digits.folder / "pyproject.toml").write_text(
        '[tool.guider]\nmodel = "model.keras"\ntest_data = "slow:load"\n'
    )
    workbench.open_folder(code_server.url(digits.folder))
    workbench.open_file("train.py")
    workbench.until((digits.folder / "reached").exists, "the engine is in the user's code")
    expect(workbench.progress("localizing train.py")).to_be_visible(timeout=MILLISECONDS)
    workbench.screenshot("cancel-1-running")

    workbench.run_command("GUIDER: Cancel Run")
    expect(workbench.progress("localizing train.py")).to_have_count(0, timeout=MILLISECONDS)
    workbench.until(
        lambda: (
            (lenses := workbench.lenses()) != [] and not any("localizing" in label for label, _ in lenses)
        ),
        "no lens says that something runs",
    )
    expect(workbench.messages()).to_have_count(0)
    workbench.screenshot("cancel-2-cancelled")


def test_broken_model_is_one_clear_message(
    workbench: Workbench, code_server: CodeServer, digits: Project
) -> None:
    (digits.folder / "model.keras").write_bytes(b"not a model")
    workbench.open_folder(code_server.url(digits.folder))
    workbench.open_file("train.py")
    message = workbench.messages()
    expect(message).to_have_count(1, timeout=MILLISECONDS)
    expect(message).to_contain_text("model.keras")
    workbench.screenshot("broken-model")
    assert workbench.lenses()
    assert not workbench.squiggles()

    # Saving the same again is no news; the editor still works.
    message.hover()
    message.locator(".codicon-notifications-clear").click()
    workbench.replace("epochs=20", "epochs=21")
    workbench.save(digits.program, "epochs=21")
    workbench.until(lambda: bool(workbench.lenses()), "the lenses are still there")
    expect(workbench.messages()).to_have_count(0)

    # A good model takes its place.
    digits.train()
    workbench.until(lambda: workbench.squiggles() == [digits.fault.faulty], "the faulty call is underlined")


def test_server_that_crashes_comes_back(
    workbench: Workbench, code_server: CodeServer, digits: Project
) -> None:
    workbench.open_folder(code_server.url(digits.folder))
    workbench.open_file("train.py")
    workbench.until(lambda: workbench.squiggles() == [digits.fault.faulty], "the faulty call is underlined")
    servers = code_server.processes("guider-ls serve")
    assert servers
    for server in servers:
        server.kill()
    workbench.until(lambda: not workbench.squiggles(), "its marks are gone")
    workbench.until(
        lambda: workbench.squiggles() == [digits.fault.faulty], "the new one has the result at once"
    )
    expect(workbench.messages()).to_have_count(0)
