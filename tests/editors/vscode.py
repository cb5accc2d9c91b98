"""VS Code as code-server serves it, in a Chromium that a test drives."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from tests.editors.installed import FOLDER, environment, require
from tests.waiting import until

sys.path.append(str(FOLDER / "python"))

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
SETTINGS = {
    "chat.disableAIFeatures": True,
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",  # as it is on a desktop
    "git.enabled": False,
    "security.workspace.trust.startupPrompt": "never",
    "telemetry.telemetryLevel": "off",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
}
MILLISECONDS = 60_000


class Window:
    """A window of VS Code, used by its keys."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def see(self, selector: str, text: str = "") -> Any:
        """Wait until something is shown, and return it."""
        found = (
            self.page.locator(selector, has_text=text).first if text else self.page.locator(selector).first
        )
        found.wait_for(timeout=MILLISECONDS)
        return found

    def run(self, command: str) -> None:
        """Run a command by its title."""
        self.press("F1")
        self.see(".quick-input-widget input").fill(f">{command}")
        self.see(".quick-input-list .monaco-list-row.focused", command)
        self.press("Enter")

    def open(self, path: str) -> None:
        """Open a file of the workspace."""
        name = path.rpartition("/")[2]
        self.press("Control+p")
        self.see(".quick-input-widget input").fill(path)
        self.see(".quick-input-list .monaco-list-row", name).click()
        self.see(f'.tab.active[data-resource-name="{name}"]')
        self.see(".monaco-editor.focused")

    def save_all(self, *changed: str) -> None:
        """Save files, once VS Code shows that these are changed."""
        for name in changed:
            self.see(f'.tab.dirty[data-resource-name="{name}"]')
        self.run("File: Save All Files")
        self.page.wait_for_selector(".tab.dirty", state="detached", timeout=MILLISECONDS)

    def rename(self, name: str, new: str) -> None:
        """Rename an entry of the explorer, and let links follow."""
        self.see(".explorer-folders-view .monaco-list-row", name).click()
        field = self.page.locator(".explorer-folders-view input")

        def is_begun() -> bool:
            self.press("F2")  # which is lost while the file is opened
            return bool(field.is_visible())

        until(is_begun)
        field.fill(new)
        self.press("Enter")
        self.see(".monaco-dialog-box", "'mdmem' wants to make")
        self.see(".monaco-dialog-box .monaco-button", "OK").click()


class VsCode(NamedTuple):
    """A running code-server, and a browser."""

    url: str
    browser: Any

    @contextmanager
    def window(self, folder: Path) -> Iterator[Window]:
        context = self.browser.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        page.set_default_timeout(MILLISECONDS)
        try:
            page.goto(f"{self.url}/?folder={quote(str(folder))}")
            window = Window(page)
            window.see(".explorer-folders-view .monaco-list-row")
            yield window
        except BaseException:
            page.screenshot(path=FOLDER / "screenshot.png")
            raise
        finally:
            context.close()


@contextmanager
def launch() -> Iterator[Any]:
    """Start a browser."""
    chromium = require("chromium", "chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*CHROMIUM])
        yield browser
        browser.close()


@contextmanager
def start(browser: Any, folder: Path, *arguments: str, **own: str) -> Iterator[VsCode]:
    """Start VS Code with the extension, as somebody whose home is in a folder."""
    program = require("code_server", "code-server")
    data = folder / "data"
    (data / "User").mkdir(parents=True)
    (data / "User/settings.json").write_text(json.dumps(SETTINGS))
    named = ["--user-data-dir", str(data), "--extensions-dir", str(folder / "extensions")]
    # Else the environment is asked of a login shell, whatever it is here.
    running = environment(folder / "home") | {"VSCODE_CLI": "1"} | own
    install = [program, *named, "--install-extension", str(FOLDER / "mdmem.vsix")]
    subprocess.run(install, env=running, check=True, capture_output=True, timeout=60)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    listen = ["--auth", "none", "--bind-addr", address, "--disable-telemetry", "--disable-update-check"]
    command = [program, *named, *listen, *arguments]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=running, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        until(lambda: is_up(f"http://{address}/healthz"))
        yield VsCode(f"http://{address}", browser)
    finally:
        server.terminate()
        server.wait()


def is_up(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return bool(answer.status == 200)
    return False
