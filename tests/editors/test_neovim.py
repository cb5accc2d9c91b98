"""Neovim without a screen, with the settings of docs/editors.md, on ten thousand notes."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from tests.editors.installed import CHECKOUT, environment, read_settings, require
from tests.waiting import until

sys.path.append(str(CHECKOUT / "bench"))

import vaults

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTES = 10_000
BACKLINKS = 50
HUB = "# Hub\n\n## Deep 🦊 heading\n\nText. ^fact\n\nSee [[000001]] and [a note](0000/000001.md).\n"
# An emoji has another length in each encoding of the protocol.
BACKLINK = "🦊 to [[hub]], to [[hub#Deep 🦊 heading|it]] and to [a 🦊 fact](../hub.md#^fact).\n"
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "mdmem:decision",
    "$ref": "memory",
    "properties": {"status": {"enum": ["proposed", "accepted"]}},
}


class Neovim:
    """A Neovim that listens on a socket, as whoever sits in front of it would type."""

    def __init__(self, folder: Path, opened: str) -> None:
        self.program = require("debian_editors", "nvim")
        self.socket = str(folder / "socket")
        self.environment = environment(folder / "home")
        settings = folder / "init.lua"
        # Who is asked for one of several takes the one that the test names.
        settings.write_text(
            read_settings("Neovim", "lua")
            + "vim.ui.select = function(items, options, choose)\n"
            + "  _G.offered = vim.tbl_map(options.format_item, items)\n"
            + "  for index, title in ipairs(_G.offered) do\n"
            + "    if title:find(_G.wanted, 1, true) then return choose(items[index], index) end\n"
            + "  end\nend\n"
        )
        self.process = subprocess.Popen(
            [self.program, "--headless", "--listen", self.socket, "-u", str(settings), opened],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self, *arguments: str) -> str:
        """Return what another Neovim hears from this one."""
        asked = [self.program, "--server", self.socket, *arguments]
        done = subprocess.run(
            asked, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def keys(self, keys: str) -> None:
        self.ask("--remote-send", keys)

    def lua(self, expression: str) -> Any:
        quoted = expression.replace("'", "''")
        return json.loads(self.ask("--remote-expr", f"luaeval('vim.json.encode({quoted})')"))

    def edit(self, file: Path | str) -> None:
        self.keys(f"<C-\\><C-n>:edit {file}<CR>")
        self.until(f"vim.api.nvim_buf_get_name(0) == '{file}' and #vim.lsp.get_clients({{ bufnr = 0 }}) == 1")

    def until(self, expression: str) -> None:
        until(lambda: self.lua(expression))

    def write(self) -> None:
        self.keys(":write<CR>")
        self.until("not vim.bo.modified")

    @property
    def line(self) -> str:
        return str(self.lua("vim.api.nvim_get_current_line()"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("neovim")
    vaults.make(str(root / "memories"), NOTES, seed=1)
    notes = root / "memories/notes"
    (notes / "hub.md").write_text(HUB)
    (notes / "backlinks").mkdir()
    for number in range(BACKLINKS):
        (notes / f"backlinks/{number:02}.md").write_text(BACKLINK)
    (root / "memories/.mdmem/schemas").mkdir()
    (root / "memories/.mdmem/schemas/decision.json").write_text(json.dumps(SCHEMA))
    mdmem.open(root / "memories").sync()
    return root


@pytest.fixture(scope="module")
def neovim(root: Path) -> Iterator[Neovim]:
    (root / "memories/notes/first.md").write_text("# First\n")
    started = Neovim(root, "memories/notes/first.md")
    try:
        until(Path(started.socket).exists)
        started.until("#vim.lsp.get_clients({ bufnr = 0 }) == 1")
        yield started
    finally:
        started.close()


def test_a_link_is_completed_behind_an_emoji(neovim: Neovim, root: Path) -> None:
    file = root / "memories/notes/first.md"
    neovim.edit(file)
    neovim.keys("Go🦊 see [[")
    neovim.until("vim.fn.pumvisible() == 1")
    neovim.keys("<Esc>Ahub<C-x><C-o>")
    neovim.until("vim.fn.pumvisible() == 1 and vim.fn.complete_info().items[1].word == 'hub]]'")
    neovim.keys("<C-n><C-y><Esc>")
    neovim.until("vim.api.nvim_get_current_line() == '🦊 see [[hub]]'")
    neovim.write()
    assert file.read_text() == "# First\n🦊 see [[hub]]\n"


def test_a_jump_leads_to_a_heading(neovim: Neovim, root: Path) -> None:
    neovim.edit(root / "memories/notes/backlinks/00.md")
    neovim.keys("gg0/Deep<CR><C-]>")
    neovim.until(f"vim.api.nvim_buf_get_name(0) == '{root}/memories/notes/hub.md'")
    assert neovim.line == "## Deep 🦊 heading"


def test_a_jump_leads_to_cited_code(neovim: Neovim, root: Path) -> None:
    cited = next((root / "src").iterdir())
    file = root / "memories/notes/code.md"
    file.write_text(f"🦊 in `src/{cited.name}#L5-L6` it is.\n")
    neovim.edit(file)
    neovim.keys("0/src<CR><C-]>")
    neovim.until(f"vim.api.nvim_buf_get_name(0) == '{cited}'")
    assert neovim.lua("vim.fn.line('.')") == 5


def test_a_field_is_mended(neovim: Neovim, root: Path) -> None:
    file = root / "memories/notes/decision.md"
    file.write_text("---\ntype: decision\ntitle: 🦊\nstatus: acepted\n---\n# 🦊\n")
    neovim.edit(file)
    neovim.until("#vim.diagnostic.get(0) == 1")
    assert neovim.lua("vim.diagnostic.get(0)[1].code") == "schema-enum"
    neovim.lua("vim.fn.execute([[lua wanted = 'accepted']])")
    neovim.keys("gg/acepted<CR>gra")
    neovim.until("vim.fn.getline(4) == 'status: accepted'")
    neovim.until("#vim.diagnostic.get(0) == 0")
    neovim.write()
    assert file.read_text() == "---\ntype: decision\ntitle: 🦊\nstatus: accepted\n---\n# 🦊\n"


def test_links_follow_a_renamed_file(neovim: Neovim, root: Path) -> None:
    """All of them once, one in a buffer that is not saved yet, and those of the file itself."""
    notes = root / "memories/notes"
    neovim.edit(notes / "backlinks/07.md")
    neovim.keys("ggO🦊 unsaved [[hub]]<Esc>")
    neovim.edit(notes / "hub.md")
    neovim.keys(f":MemoryRename {notes}/people/🦊 core.md<CR>")
    neovim.until(f"vim.api.nvim_buf_get_name(0) == '{notes}/people/🦊 core.md'")
    assert not (notes / "hub.md").exists()
    linked = BACKLINK.replace("[[hub", "[[🦊 core").replace("../hub.md", "../people/🦊%20core.md")
    assert (notes / "backlinks/00.md").read_text() == BACKLINK
    neovim.keys(":wall<CR>")
    neovim.until("#vim.fn.getbufinfo({ bufmodified = 1 }) == 0")
    for number in range(BACKLINKS):
        unsaved = "🦊 unsaved [[🦊 core]]\n" if number == 7 else ""
        assert (notes / f"backlinks/{number:02}.md").read_text() == unsaved + linked
    assert (notes / "people/🦊 core.md").read_text() == HUB.replace("(0000/", "(../0000/")
    assert "[[🦊 core]]" in (notes / "first.md").read_text()
    assert mdmem.open(root / "memories").check(["notes/backlinks"]) == []


def test_a_rename_on_a_link_renames_the_file(neovim: Neovim, root: Path) -> None:
    notes = root / "memories/notes"
    (notes / "solo.md").write_text("# Solo\n")
    (notes / "duo.md").write_text("🦊 [[solo]]\n")
    neovim.edit(notes / "duo.md")
    neovim.keys("gg0/solo<CR>:lua vim.lsp.buf.rename('due 🦊')<CR>")
    until((notes / "due 🦊.md").exists)
    neovim.until("vim.fn.getline(1) == '🦊 [[due 🦊]]'")
    assert not (notes / "solo.md").exists()


def test_what_another_program_has_written_is_taken_over(neovim: Neovim, root: Path) -> None:
    """A write that is forced keeps both."""
    file = root / "memories/notes/both.md"
    file.write_text("# Both\n\nOne.\n\nTwo.\n")
    neovim.edit(file)
    neovim.keys("ggjjAMine.<Esc>")
    neovim.until("vim.fn.getline(3) == 'One.Mine.'")
    file.write_text("# Both\n\nOne.\n\nTwo. Theirs.\n")
    neovim.until("#vim.diagnostic.get(0) == 1")
    neovim.keys(":w!<CR>")
    until(lambda: _read_file(file) == "# Both\n\nOne.Mine.\n\nTwo. Theirs.\n")


def _read_file(file: Path) -> str:
    """Read a file that Neovim may have moved away for a moment, as it does while it writes."""
    with suppress(FileNotFoundError):
        return file.read_text()
    return ""
