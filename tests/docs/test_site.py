"""The site: it builds without a warning, its reference is what the code says, and it asks no other host."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import mdmem

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
sys.path.append(str(CHECKOUT / "bench"))

import examples  # noqa: E402 - it is where programs that measure are
import menu  # noqa: E402
import pages  # noqa: E402

GUIDES = (
    *("index", "hosts", "existing", "find", "change", "validity", "rules", "conversations", "templates"),
    *("git", "editors", "team", "program", "concepts"),
)
MOST_GUIDES, MOST_WORDS, MOST_LINES_OF_OVERVIEW = 14, 11_000, 60
REFERENCES = ("commands", "python", "mcp", "config", "formats", "memory-tool")
BESIDE = {"wrong", "stable", "leaving", "comparison", "releasing", "contributing"}
# What front ends and hosts call, and programs seldom: the reference has it without an example.
OTHERS = {
    "": "complete_thread editing index mounted_over names_shared of_scope prepared progress"
    " searched_alone service state_folder state_of suffixes texts_at",
    "preferences": "unreadable",
    "project": "find_read_by_host",
    "references": "broken wrong",
    "sessions": "capture is_kept save",
    "observations": "held watch",
    "inbox": "propose_each",
    "shared": "ask bind has_layer name show",
    "store": "delete_if_expired_before get_by_fingerprint vector_search",
}


class Fetched(HTMLParser):
    """Addresses that a browser asks for by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") in {"canonical", "next", "prev", "edit"}:
            return
        name = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}.get(tag)
        if name and (address := given.get(name)):
            self.addresses.append(address)


@pytest.mark.soak
def test_the_site_builds_without_a_warning_and_asks_no_other_host(tmp_path: Path) -> None:
    config = (CHECKOUT / "zensical.toml").read_text()
    for old, new in (('".venv/site"', '"site"'), ('paths = ["."]', f'paths = ["{CHECKOUT}"]')):
        assert old in config
        config = config.replace(old, new)
    (tmp_path / "zensical.toml").write_text(config)
    shutil.copytree(DOCS, tmp_path / "docs")
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told = built.stdout + built.stderr
    assert built.returncode == 0, told
    assert not re.search("griffe|[Ww]arning|[Ee]rror", told), told
    pages = [*(tmp_path / "site").glob("*.html")]
    assert {page.stem for page in pages} >= {page.stem for page in DOCS.glob("*.md")}
    fetched = Fetched()
    for page in pages:
        fetched.feed(page.read_text())
    for sheet in (tmp_path / "site").rglob("*.css"):
        fetched.addresses += re.findall(r"""(?:url\(|@import)\s*['"]?([^'")\s]+)""", sheet.read_text())
    assert len(fetched.addresses) > len(pages)
    assert [each for each in fetched.addresses if re.match(r"(\w+:)?//", each)] == []


def test_every_page_is_in_the_menu() -> None:
    named = [page for group in menu.read_menu().values() for page in group.values()]
    assert sorted(named) == sorted(page.name for page in DOCS.glob("*.md"))


def test_a_page_is_a_guide_a_reference_or_one_of_the_few_beside_them() -> None:
    named = {page.stem for page in DOCS.glob("*.md")}
    assert len(GUIDES) <= MOST_GUIDES
    assert named >= {*GUIDES, *REFERENCES}
    assert named - {*GUIDES, *REFERENCES} <= BESIDE


def test_the_guides_can_be_read_in_an_hour() -> None:
    words = {name: len((DOCS / f"{name}.md").read_text().split()) for name in GUIDES}
    assert sum(words.values()) <= MOST_WORDS, words


def test_the_menu_tells_a_model_what_each_page_is_about() -> None:
    """`make docs` writes it, and puts it into the site with the addresses of the site."""
    text = (CHECKOUT / "llms.txt").read_text()
    assert text == menu.write_overview("docs/{}.md")
    assert len(text.splitlines()) <= MOST_LINES_OF_OVERVIEW
    links = re.findall(r"\]\((docs/[^)]+)\)", text)
    assert sorted(links) == sorted(f"docs/{page.name}" for page in DOCS.glob("*.md"))


def test_the_reference_is_what_the_code_says() -> None:
    checked = [sys.executable, "bench/pages.py", "--check"]
    done = subprocess.run(checked, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_every_verb_of_python_is_called_in_an_example() -> None:
    code = "\n".join(examples.Page(page).code() for page in DOCS.glob("*.md"))
    for part, home in {"": "mdmem.facade.memory.Memory", **pages.PARTS}.items():
        module, name = home.rsplit(".", 1)
        verbs = [verb for verb in dir(getattr(importlib.import_module(module), name)) if verb[0] != "_"]
        called = rf"\.{part}\.(\w+)" if part else r"(?:(?<=memory)|(?<=plan)|(?<=bob))\.(\w+)"
        assert {*verbs} - {*re.findall(called, code)} == {*OTHERS.get(part, "").split()}, part


def test_every_public_name_of_python_is_shown_in_an_example() -> None:
    text = (DOCS / "python.md").read_text()
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^:::)", text, re.MULTILINE | re.DOTALL))
    assert [
        name for name, part in sections.items() if not re.search("Shown in: |^```+python", part, re.MULTILINE)
    ] == []
    assert {f"mdmem.{name}" for name in mdmem.__all__ if name != "__version__"} <= {
        *re.findall(r"^### (\S+)$", text, re.MULTILINE)
    }
