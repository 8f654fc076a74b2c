"""What a person sees and does in a VS Code window, through the browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, Locator, Page, expect
from tests.e2e.code_server import PATIENCE, ROOT

SCREENSHOTS = ROOT / "build/screenshots"
MILLISECONDS = PATIENCE * 1000

_SCRIPT = """
(() => {
  const characters = (editor) => {
    const found = [];
    for (const line of editor.querySelectorAll('.view-line')) {
      const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
      const range = document.createRange();
      const row = [];
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (let i = 0; i < node.length; i++) {
          range.setStart(node, i);
          range.setEnd(node, i + 1);
          row.push([node.data[i].replace('\\u00a0', ' '), range.getBoundingClientRect()]);
        }
      }
      found.push(row);
    }
    return found.sort((a, b) => (a[0]?.[1].y ?? 0) - (b[0]?.[1].y ?? 0));
  };
  const text = (row) => row.map(([character]) => character).join('');
  const visible = (element) => element.getBoundingClientRect().width > 0;
  window.guiderTest = {
    lines: (editor) => characters(editor).map(text),
    /** Boxes of all places where `wanted` stands. */
    boxes: (editor, wanted) => characters(editor).flatMap((row) => {
      const boxes = [];
      const line = text(row);
      for (let at = line.indexOf(wanted); at >= 0; at = line.indexOf(wanted, at + 1)) {
        const first = row[at][1];
        const last = row[at + wanted.length - 1][1];
        boxes.push({ x: first.x, y: first.y, width: last.right - first.x, height: first.height });
      }
      return boxes;
    }),
    /** The text under each decoration of a class, from top to bottom. */
    decorated: (editor, selector) => {
      const rows = characters(editor);
      const boxes = [...editor.querySelectorAll(selector)].filter(visible).map((e) => e.getBoundingClientRect());
      boxes.sort((a, b) => a.y - b.y || a.x - b.x);
      return boxes.map((box) => rows.flat().filter(([, r]) => {
        const x = r.x + r.width / 2;
        const y = r.y + r.height / 2;
        return box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
      }).map(([character]) => character).join(''));
    },
    /** Lenses from top to bottom, each with the line of code below it. */
    lenses: (editor) => {
      const rows = characters(editor).filter((row) => row.length > 0);
      return [...editor.querySelectorAll('.codelens-decoration')].filter(visible)
        .map((lens) => [lens.getBoundingClientRect(), lens.innerText.replaceAll('\\u00a0', ' ').trim()])
        .sort(([a], [b]) => a.y - b.y)
        .map(([box, label]) => {
          const below = rows.find((row) => row[0][1].y + row[0][1].height / 2 > box.bottom - 1);
          return [label, below === undefined ? '' : text(below).trim()];
        });
    },
  };
})();
"""


class Workbench:
    """One window; waits for what it is asked for, never for a time."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._editor = ""
        page.set_default_timeout(MILLISECONDS)
        page.add_init_script(_SCRIPT)

    def open_folder(self, url: str) -> None:
        """Open the window on the folder of that address."""
        self.page.goto(url)
        self.page.locator(".monaco-workbench .explorer-folders-view").wait_for()

    def open_file(self, name: str) -> None:
        """Open a file of the folder; what follows is about its editor."""
        self._open(name, f'.monaco-editor[data-uri$="/{name}"]')

    def open_notebook(self, name: str, cell: str) -> None:
        """Open a notebook of the folder; what follows is about the editor of the cell that holds a text."""
        self._open(name, f'.monaco-editor[data-uri*="/{name}#"]:has-text("{cell}")')

    def _open(self, name: str, editor: str) -> None:
        self._quick_input("Control+P", name, re.compile(re.escape(name)))
        self._editor = editor
        self.editor.locator(".view-line").first.wait_for()

    @property
    def editor(self) -> Locator:
        """The editor of the file, or of the notebook's cell, that was opened last."""
        return self.page.locator(self._editor).first

    def lines(self) -> list[str]:
        """The visible lines of the editor."""
        return self._ask("lines")

    def lenses(self) -> list[tuple[str, str]]:
        """Every lens with the line of code below it."""
        return [(label, line) for label, line in self._ask("lenses")]

    def lens_above(self, code: str) -> str:
        """The lens above the line that holds ``code``; empty: none."""
        return next((label for label, line in self.lenses() if code in line), "")

    def squiggles(self, severity: str = "info") -> list[str]:
        """The text that is underlined, line by line."""
        return self._ask("decorated", f".squiggly-{severity}")

    def hover_on(self, text: str) -> Locator:
        """Rest the pointer on the only place where ``text`` stands; the answer is the hover."""
        box = self._box(text)
        self.page.mouse.move(1, 1)
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
        hover = self.page.locator(".monaco-hover:visible .hover-contents").first
        hover.wait_for()
        return self.page.locator(".monaco-hover:visible").first

    def leave(self) -> None:
        """Take the pointer away, so that hovers go."""
        self.page.mouse.move(1, 1)

    def click_lens(self, label: str) -> None:
        """Click the first lens with ``label`` in it."""
        self.editor.locator(".codelens-decoration a", has_text=label).first.click()

    def replace(self, old: str, new: str) -> None:
        """Select the only place where ``old`` stands (within one line) and write ``new``."""
        box = self._box(old)
        middle = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + 1, middle)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + box["width"] - 1, middle, steps=4)
        self.page.mouse.up()
        self.page.keyboard.insert_text(new)
        self.until(lambda: any(new in line for line in self.lines()), f"the editor shows {new!r}")

    def save(self, file: Path, expected: str) -> None:
        """Save, and wait until ``expected`` stands in ``file`` on the disk."""
        self.page.keyboard.press("Control+S")
        self.until(lambda: expected in file.read_text(encoding="utf-8"), f"{file.name} holds {expected!r}")

    def run_command(self, title: str) -> None:
        """Run a command of the palette by its whole title."""
        self._quick_input("F1", f">{title}", re.compile(rf"^{re.escape(title)}(,|$)"))

    def choose(self, title: str, choice: str) -> None:
        """Run a command that asks, and answer with the row that begins with ``choice``."""
        self._pick("F1", f">{title}", re.compile(rf"^{re.escape(title)}(,|$)"))
        answer = re.compile(rf"^{re.escape(choice)}")
        self.until(lambda: self._click_row(answer), lambda: f"a row like {choice!r} in {self._offered()}")
        expect(self.page.locator(".quick-input-widget")).to_be_hidden()

    def palette_offers(self, title: str) -> bool:
        """Whether the palette lists a command."""
        self.until(
            lambda: self._ask_for("F1", f">{title}") and self._offered(), "the palette lists something"
        )
        found = any(label.startswith(title) for label in self._offered())
        self.page.keyboard.press("Escape")
        return found

    def problems(self) -> Locator:
        """The rows of the Problems view."""
        self.run_command("Problems: Focus on Problems View")
        self.page.locator(".markers-panel").wait_for()
        return self.page.locator(
            ".markers-panel .monaco-list-row .marker-line, .markers-panel .monaco-tl-contents"
        )

    def messages(self) -> Locator:
        """The notifications that are shown."""
        return self.page.locator(".notifications-toasts .notification-list-item")

    def status(self) -> Locator:
        """The hover of the language status item, which lists what GUIDER says of the program."""
        self.page.locator("#status\\.languageStatus").hover()
        hover = self.page.locator(".hover-language-status")
        hover.first.wait_for()
        return hover

    def progress(self, text: str) -> Locator:
        """The entry of the status bar that shows progress with ``text``."""
        return self.page.locator(".statusbar-item:visible", has_text=text)

    def screenshot(self, name: str) -> None:
        """Keep what is seen now as ``build/screenshots/NAME.png``."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def until(self, condition: Callable[[], object], what: str | Callable[[], str]) -> None:
        """Wait until ``condition()`` holds.

        Raises:
            AssertionError: it did not, with ``what`` was waited for.
        """
        waited = 0.0
        while not condition():
            assert waited < MILLISECONDS, (
                f"not within {PATIENCE:.0f} s: {what if isinstance(what, str) else what()}"
            )
            self.page.wait_for_timeout(100)
            waited += 100

    def _quick_input(self, key: str, text: str, row: re.Pattern[str]) -> None:
        self._pick(key, text, row)
        expect(self.page.locator(".quick-input-widget")).to_be_hidden()

    def _pick(self, key: str, text: str, row: re.Pattern[str]) -> None:
        """Open the quick input, write ``text`` and click the row; opened again whenever it was closed or emptied."""
        self.until(
            lambda: self._ask_for(key, text) and self._click_row(row),
            lambda: f"a row like {row.pattern} for {text!r} is offered, but {self._offered()} are",
        )

    def _ask_for(self, key: str, text: str) -> bool:
        """Whether the quick input asks for ``text``; if not, a step towards it was made.

        What takes the focus (a view that opens, a notification) closes it at any time.
        """
        box = self.page.locator(".quick-input-widget:visible input").first
        if not box.is_visible():
            self.page.keyboard.press(key)
            return False
        try:
            if box.input_value(timeout=1000) == text:
                return True
            box.fill(text, timeout=1000)
        except Error:  # closed meanwhile
            pass
        return False

    def _offered(self) -> list[str]:
        """The rows of the quick input, all at once: the list is drawn anew while it fills."""
        rows = self.page.locator(".quick-input-widget:visible .quick-input-list .monaco-list-row")
        labels: list[str] = rows.evaluate_all("rows => rows.map((one) => one.ariaLabel ?? '')")
        return labels

    def _click_row(self, row: re.Pattern[str]) -> bool:
        """Click the row, if it is offered and stays so until then."""
        at = next((at for at, label in enumerate(self._offered()) if row.search(label)), None)
        if at is None:
            return False
        rows = self.page.locator(".quick-input-widget:visible .quick-input-list .monaco-list-row")
        try:
            rows.nth(at).click(timeout=1000)
        except Error:
            return False
        return True

    def _ask(self, question: str, *arguments: str) -> list[Any]:
        answer: list[Any] = self.editor.evaluate(
            f"(editor, rest) => window.guiderTest.{question}(editor, ...rest)", list(arguments)
        )
        return answer

    def _box(self, text: str) -> dict[str, float]:
        boxes: list[dict[str, float]] = self._ask("boxes", text)
        assert len(boxes) == 1, f"{text!r} stands {len(boxes)} times among the visible lines: {self.lines()}"
        return boxes[0]
