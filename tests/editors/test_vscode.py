"""VS Code with the extension, in a browser."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.editors import vscode
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)
NOTES = {
    "hub.md": "# Hub\n\n## Deep 🦊 heading\n\nText. ^fact\n",
    "first.md": "# First\n\n🦊 to [[hub#Deep 🦊 heading]], and [[missing]].\n",
    "people/ada.md": "# Ada\n\n🦊 [hub](../hub.md#^fact), [[first]] and [Bob](bob.md).\n",
    "people/bob.md": "# Bob\n\n[[people/ada|Ada]]\n",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with vscode.launch() as launched:
        yield launched


@pytest.fixture(scope="module")
def code(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[vscode.VsCode]:
    with vscode.start(browser, tmp_path_factory.mktemp("code"), "--disable-workspace-trust") as started:
        yield started


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "memories/.mdmem").mkdir(parents=True)
    (root / "memories/.mdmem/config.toml").touch()
    for path, text in NOTES.items():
        file = root / "memories/notes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def read_notes(root: Path) -> dict[str, str]:
    notes = root / "memories/notes"
    return {str(file.relative_to(notes)): file.read_text() for file in notes.rglob("*.md")}


def wait_for(root: Path, notes: dict[str, str]) -> None:
    """Wait until notes stand on disk as they should."""
    with contextlib.suppress(AssertionError):
        until(lambda: read_notes(root) == notes)
    assert read_notes(root) == notes


def open_first(window: vscode.Window) -> None:
    """Open a note, and wait until the server has said what is wrong with it."""
    window.open("memories/notes/first.md")
    window.see(".squiggly-warning")


def test_findings_are_shown(code: vscode.VsCode, root: Path) -> None:
    with code.window(root) as window:
        open_first(window)
        window.press("Control+Shift+m")
        window.see(".markers-panel .monaco-list-row", "there is no memory 'missing'")
        window.see(".statusbar-item[id='status.languageStatus']").click()
        window.see(".hover-language-status", "mdmem: 1 finding")


def test_a_link_is_completed_behind_an_emoji(code: vscode.VsCode, root: Path) -> None:
    with code.window(root) as window:
        open_first(window)
        window.press("Control+End")
        window.type("🦊 [[hu")
        window.see(".suggest-widget .monaco-list-row.focused", "Hub")
        window.press("Enter", "Control+s")
        wait_for(root, NOTES | {"first.md": NOTES["first.md"] + "🦊 [[hub]]"})


def test_headings_are_listed_once(code: vscode.VsCode, root: Path) -> None:
    """VS Code lists them by itself."""
    with code.window(root) as window:
        open_first(window)
        window.open("memories/notes/hub.md")
        window.press("Control+Shift+o")
        window.see(".quick-input-list .monaco-list-row", "Deep")
        assert window.page.locator(".quick-input-list .monaco-list-row", has_text="Deep").count() == 1


def test_links_follow_a_renamed_file(code: vscode.VsCode, root: Path) -> None:
    with code.window(root) as window:
        open_first(window)
        window.press("Control+End")
        window.type("Unsaved [[hub|🦊]].")
        window.rename("hub.md", "core 🦊.md")
        window.save_all("first.md", "ada.md")
        notes = {
            "core 🦊.md": NOTES["hub.md"],
            "first.md": NOTES["first.md"].replace("[[hub", "[[core 🦊") + "Unsaved [[core 🦊|🦊]].",
            "people/ada.md": NOTES["people/ada.md"].replace("hub.md", "core%20🦊.md"),
            "people/bob.md": NOTES["people/bob.md"],
        }
        wait_for(root, notes)


def test_links_follow_a_renamed_folder(code: vscode.VsCode, root: Path) -> None:
    with code.window(root) as window:
        open_first(window)
        window.rename("people", "crew")
        window.save_all("bob.md")
        notes = {
            "hub.md": NOTES["hub.md"],
            "first.md": NOTES["first.md"],
            "crew/ada.md": NOTES["people/ada.md"],
            "crew/bob.md": NOTES["people/bob.md"].replace("people", "crew"),
        }
        wait_for(root, notes)


def test_links_that_vs_code_changes_too_are_changed_once(code: vscode.VsCode, root: Path) -> None:
    (root / ".vscode").mkdir()
    (root / ".vscode/settings.json").write_text('{"markdown.updateLinksOnFileMove.enabled": "always"}')
    with code.window(root) as window:
        open_first(window)
        window.see(".explorer-folders-view .monaco-list-row", "people").click()
        window.rename("ada.md", "deep/grace.md")
        window.save_all("bob.md", "grace.md")  # by mdmem, and then by VS Code
        notes = {
            "hub.md": NOTES["hub.md"],
            "first.md": NOTES["first.md"],
            "people/deep/grace.md": NOTES["people/ada.md"].replace("(", "(../"),
            "people/bob.md": "# Bob\n\n[[deep/grace|Ada]]\n",
        }
        wait_for(root, notes)


def test_what_another_program_has_written_survives_an_overwrite(code: vscode.VsCode, root: Path) -> None:
    file = root / "memories/notes/first.md"
    with code.window(root) as window:
        open_first(window)
        window.press("Control+End")
        window.type("Mine.")
        window.see(".tab.active.dirty")
        file.write_text(NOTES["first.md"].replace("# First", "# First\n\nTheirs."))
        window.press("Control+Shift+m")
        window.see(".markers-panel .monaco-list-row", "disk")
        window.press("Control+1", "Control+s")
        window.see(".notification-toast .monaco-button", "Overwrite").click()
        both = NOTES["first.md"].replace("# First", "# First\n\nTheirs.") + "Mine."
        wait_for(root, NOTES | {"first.md": both})


def test_a_memory_is_made_from_a_template(code: vscode.VsCode, root: Path) -> None:
    with code.window(root) as window:
        open_first(window)
        window.run("mdmem: New Memory from Template")
        window.see(".quick-input-list .monaco-list-row", "decision").click()
        for title, value in (("Path in the vault", "notes/$(x).md"), ("title", "Use 🦊; no `shell`")):
            window.see(".quick-input-titlebar", title)
            window.see(".quick-input-widget input").fill(value)
            window.press("Enter")
        window.see(".tab.active", "$(x).md")
    assert "title: Use 🦊; no `shell`" in read_notes(root)["$(x).md"]


def test_memories_are_searched(code: vscode.VsCode, root: Path) -> None:
    with code.window(root) as window:
        open_first(window)
        window.run("mdmem: Search Memories")
        window.see(".quick-input-titlebar", "Search memories")
        window.see(".quick-input-widget input").fill("deep heading")
        window.see(".quick-input-list .monaco-list-row", "notes/hub.md").click()
        window.see(".tab.active", "hub.md")


def test_references_are_shown(code: vscode.VsCode, root: Path) -> None:
    with code.window(root) as window:
        open_first(window)
        window.press("Control+Home", "ArrowDown", "ArrowDown", *["ArrowRight"] * len("to [[hu"))
        window.run("mdmem: Show References")
        window.see(".pane-body .monaco-list-row", "ada.md")


def test_an_untrusted_workspace_starts_nothing_of_its_own(
    browser: Any, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> None:
    """Neither by PATH nor by its settings; once it is trusted, it does."""
    started = root / "started"
    planted = root / ".venv/bin/mdmem"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\necho >>'{started}'\n")
    planted.chmod(0o755)
    (root / ".vscode").mkdir()
    (root / ".vscode/settings.json").write_text(f'{{"mdmem.path": "{planted}"}}')
    path = f".venv/bin:{planted.parent}:/usr/bin:/bin"
    started_code = vscode.start(browser, tmp_path_factory.mktemp("code"), PATH=path)
    with started_code as code, code.window(root) as window:
        window.open("memories/notes/first.md")
        window.see(".notification-toast", "There is no mdmem to start")
        window.run("mdmem: Search Memories")
        window.see(".notification-toast", "There is no mdmem to start")
        assert not started.exists()
        window.run("Workspaces: Manage Workspace Trust")
        window.see(".workspace-trust-buttons-row .monaco-button", "Trust").click()
        until(started.exists)
