"""From a program with a fault to a program without, in the editor."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.e2e.code_server import CodeServer
from tests.e2e.conftest import Project
from tests.e2e.workbench import MILLISECONDS, Workbench


def test_fault_is_found_where_it_stands_and_goes_when_it_is_repaired(
    workbench: Workbench, code_server: CodeServer, digits: Project
) -> None:
    faulty, fixed = digits.fault.faulty, digits.fault.fixed
    text = digits.program.read_text(encoding="utf-8")
    constructions = [line.strip() for line in text.splitlines() if line.strip().startswith("layers.")]

    code_server.forget_counts()
    workbench.open_folder(code_server.url(digits.folder))
    workbench.open_file("train.py")

    def lensed() -> list[str]:
        return [line for label, line in workbench.lenses() if label != "GUIDER: train and localize"]

    # A lens on every construction, before the engine has anything to say; and one on the training.
    workbench.until(lambda: lensed() == constructions, "a lens on each construction")
    assert workbench.lens_above("model.fit(") == "GUIDER: train and localize"
    assert not any(label.startswith("#") for label, _ in workbench.lenses())
    expect(workbench.progress("localizing train.py")).to_be_visible(timeout=MILLISECONDS)
    workbench.screenshot("story-1-localizing")

    # The ranking: exactly the faulty call is underlined.
    workbench.until(lambda: workbench.squiggles() == [faulty], "the faulty call is underlined")
    workbench.until(lambda: workbench.lens_above(faulty).startswith("#1 "), "its lens says #1")
    assert lensed() == constructions
    assert sum(label.startswith("#1 ") for label, _ in workbench.lenses()) == 1
    expect(workbench.progress("localizing train.py")).to_have_count(0)
    workbench.screenshot("story-2-ranked")
    expect(workbench.status()).to_contain_text("tests failed")
    workbench.screenshot("story-2-status")
    workbench.leave()

    hover = workbench.hover_on(faulty)
    expect(hover).to_contain_text("suspiciousness")
    expect(hover.locator("table tbody tr").first).to_be_visible()
    workbench.screenshot("story-3-hover")
    hover.get_by_text("suspicious-layer").click()
    expect(workbench.page.locator(".tab.active", has_text="errors.md")).to_be_visible()
    workbench.screenshot("story-3-meaning")
    workbench.open_file("train.py")
    workbench.leave()

    rows = workbench.problems()
    expect(rows.filter(has_text="guider")).to_have_count(1)
    workbench.screenshot("story-4-problems")
    workbench.page.keyboard.press("Control+J")

    # The repair: the line says that the model does not have it yet; then the ranking follows the training.
    workbench.replace(faulty, fixed)
    workbench.until(
        lambda: " in the model of " in workbench.lens_above(fixed), "the line differs from the model"
    )
    workbench.save(digits.program, fixed)
    workbench.until(lambda: workbench.squiggles() == [fixed], "the repaired call is still the suspect")
    workbench.screenshot("story-5-repaired")
    digits.train()
    workbench.until(
        lambda: workbench.squiggles() != [fixed], "the repaired call is no more the first suspect"
    )
    workbench.until(
        lambda: (lens := workbench.lens_above(fixed)) != "" and not lens.startswith("#1 "),
        "nor says its lens so",
    )
    workbench.screenshot("story-6-retrained")

    workbench.run_command("GUIDER: Show Report")
    workbench.page.locator('.monaco-editor[data-uri$=".txt"] .view-line').first.wait_for()
    workbench.screenshot("story-7-report")
    expect(workbench.messages()).to_have_count(0)
