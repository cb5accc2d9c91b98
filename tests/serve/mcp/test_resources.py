"""Resources and prompts: the memories by URI, who is told of changes, messages that say what memory holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mcp_types as types
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.errors import MdmemError, PathRefused, Usage
from mdmem.serve.mcp import prompts, resources
from mdmem.serve.mcp.answer import Bound
from mdmem.serve.mcp.resources import path_of, uri_of
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory

URI = "mdmem:///notes/a.md"


def test_the_memories_are_listed_page_by_page(memory: Memory, vault_root: Path) -> None:
    paths = sorted(f"notes/{number:04}.md" for number in range(1_201))
    (vault_root / "notes").mkdir()
    for path in paths:
        (vault_root / path).touch()
    seen: list[str] = []
    cursor, pages = "", 0
    while cursor or not pages:
        page = resources.list_resources(memory, cursor)
        cursor = page.next_cursor or ""
        seen += [each.name for each in page.resources]
        pages += 1
    assert (seen, pages) == (paths, 3)


def test_a_page_goes_on_where_its_last_memory_was_deleted(memory: Memory) -> None:
    for name in ("a", "b-c", "b/c", "d"):
        memory.write(f"{name}.md", "x\n")
    found = resources.list_resources(memory).resources
    assert [each.name for each in found] == ["a.md", "b/c.md", "b-c.md", "d.md"]
    behind = resources.list_resources(memory, "b/d.md").resources
    assert behind == found[2:]


def test_a_resource_is_the_whole_text_with_its_hash(memory: Memory) -> None:
    memory.write("notes/ü %20.json", '{"a": "\\u00e9"}\r\n')
    found = resources.list_resources(memory).resources
    (read,) = resources.read_resource(memory, found[0].uri).contents
    assert isinstance(read, types.TextResourceContents)
    assert read.meta
    assert read.text == '{"a": "\\u00e9"}\r\n'
    assert (read.uri, read.mime_type) == (found[0].uri, "application/json")
    assert memory.show("notes/ü %20.json").hash.startswith(read.meta["hash"])


@cases(
    "uri",
    [
        *("mdmem:///../a.md", "mdmem:///%2e%2e/a.md", "mdmem:///notes%2f..%2f..%2fa.md"),
        *("mdmem:////etc/passwd.md", "mdmem:///%2fetc%2fa.md", "mdmem:///notes\\a.md", "mdmem:///a%00.md"),
        *("mdmem:///%ff.md", "mdmem:///.mdmem/config.md", "mdmem://notes/a.md", "file:///etc/passwd"),
        *("MDMEM:///a.md", "mdmem:///", ""),
    ],
)
def test_a_uri_that_means_no_memory_is_refused(uri: str) -> None:
    with pytest.raises(PathRefused):
        path_of(uri)


@given(st.text(min_size=1))
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_a_path_comes_back_from_its_uri(name: str) -> None:
    try:
        path = path_of(uri_of(f"{name}.md"))
    except (MdmemError, UnicodeEncodeError):
        return
    assert path_of(uri_of(path)) == path


def test_recalling_shows_what_is_found_in_a_fence_that_it_cannot_close(memory: Memory) -> None:
    memory.write("notes/a.md", "needle ``` and ```` more\n")
    message = prompts.write_prompt(Bound(memory=memory), "recall", {"about": "needle"})
    assert message.startswith("Say what memory holds about: needle\n")
    fence = message.rstrip().rpartition("\n")[2]
    assert fence == "`" * 5
    assert message.count(fence) == 2


def test_reviewing_shows_findings_and_stale_code(memory: Memory, vault_root: Path) -> None:
    (vault_root / "bad.md").write_text("---\ntags: {a: 5}\n---\n")
    (vault_root / "notes").mkdir()
    code = vault_root.parent / "gone.py"
    code.write_text("one\ntwo\n")
    (vault_root / "notes/a.md").write_text("See `gone.py#L1-L2`, and `never.py#L1` that nobody has seen.\n")
    memory.sync()
    code.unlink()
    message = prompts.write_prompt(Bound(memory=memory), "review", {})
    assert "bad.md:2:" in message
    assert "gone.py" in message
    assert "never.py" not in message
    assert "bad.md" not in prompts.write_prompt(Bound(memory=memory), "review", {"within": "notes"})


def test_a_prompt_asks_for_its_argument(memory: Memory) -> None:
    bound = Bound(memory=memory)
    with pytest.raises(Usage, match="about must be given"):
        prompts.write_prompt(bound, "remember", {"about": " "})
    with pytest.raises(Usage, match="there is no argument 'topic'"):
        prompts.write_prompt(bound, "recall", {"topic": "x"})
    with pytest.raises(KeyError):
        prompts.write_prompt(bound, "forget", {})
