"""A server of the page, and the page in a browser that a test drives."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKOUT = Path(__file__).parents[2]
FOLDER = CHECKOUT / ".venv/web"
CHROMIUM = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
MILLISECONDS = 60_000
CURRENT = ".row.current"

sys.path.append(str(FOLDER / "python"))


def require(piece: str) -> Path:
    """Return what is installed; without it, skip with the reason why it could not be installed."""
    if not (FOLDER / piece).exists():
        reason = FOLDER / "missing" / piece
        pytest.skip(f"needs {piece}: {reason.read_text() if reason.exists() else 'run make web'}")
    return FOLDER / piece


@contextmanager
def launch() -> Iterator[Any]:
    """Start a browser."""
    require("python")
    chromium = require("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*CHROMIUM])
        yield browser
        browser.close()


class Visit:
    """The page, used by keys and by what it shows; and what it has asked for and said in the console."""

    def __init__(self, context: Any, url: str) -> None:
        self.page, self.url, self.said, self.asked = context.new_page(), url, list[str](), list[str]()
        self.page.set_default_timeout(MILLISECONDS)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)

    def _dismiss(self, dialog: Any) -> None:
        self.said.append(dialog.message)
        dialog.dismiss()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def go(self, place: str) -> None:
        """Go to a view by its address."""
        self.page.evaluate("place => { location.hash = place; }", f"#/{place}")

    def see(self, selector: str, text: str | re.Pattern[str] = "") -> Any:
        """Wait until something is shown, and return it."""
        found = self.page.locator(selector, has_text=text or None).first
        found.wait_for()
        return found

    def miss(self, selector: str, text: str = "") -> None:
        """Wait until something is shown no more."""
        self.page.locator(selector, has_text=text or None).first.wait_for(state="hidden")

    def wait_for(self, function: str, argument: Any = None) -> None:
        """Wait until a function of the page gives what is true."""
        self.page.wait_for_function(function, arg=argument)

    def read(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def read_all(self, selector: str) -> list[str]:
        return [str(text) for text in self.page.locator(selector).all_inner_texts()]


@contextmanager
def serve(vault: Path) -> Iterator[str]:
    """Serve the page of a vault, and return the address that is printed."""
    command = [sys.executable, "-m", "mdmem", "--vault", str(vault), "web"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address
            yield address[0]
        finally:
            server.terminate()


@contextmanager
def visit(browser: Any, vault: Path) -> Iterator[Callable[..., Visit]]:
    """Serve the page of a vault; what is returned opens it, with the settings of a browser's context."""
    contexts, opened = list[Any](), list[Visit]()

    def open_page(**settings: Any) -> Visit:
        contexts.append(browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | settings)))
        opened.append(Visit(contexts[-1], url))
        return opened[-1]

    with serve(vault) as url:
        try:
            yield open_page
        except BaseException:
            if opened:
                opened[-1].page.screenshot(path=FOLDER / "screenshot.png")
            raise
        finally:
            for context in contexts:
                context.close()
