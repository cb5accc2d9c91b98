"""What users of other language servers for Markdown complain about: one test for each, named as filed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests import speed
from tests.editor.lsp.client import uri
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.lsp.conftest import Desk


def put(desk: Desk, path: str, text: str, *, is_open: bool = False) -> Path:
    file = desk.write(path, text)
    if is_open:
        desk.editor.open(file)
    return file


def rename(desk: Desk, file: Path, at: str, new: str) -> None:
    """Rename what stands at the beginning of some words of a file."""
    offset = desk.editor.text(file).index(at)
    assert desk.editor.apply(desk.editor.ask("rename", file, offset, newName=new))


def targets(desk: Desk, file: Path, at: str) -> list[str]:
    found = desk.editor.ask("definition", file, desk.editor.text(file).index(at))
    return [link["targetUri"].rpartition("memories/")[2] for link in found or ()]


def codes(desk: Desk, file: Path) -> list[str]:
    version = desk.editor.buffers[file].version
    return [found["code"] for found in desk.client.found(file, version)]


def memories(desk: Desk) -> dict[str, str]:
    files = (file for file in desk.root.rglob("*.md") if ".mdmem" not in file.parts)
    return {str(file.relative_to(desk.root)): desk.editor.text(file) for file in sorted(files)}


def test_complaints_marksman_89_diagnostics_can_be_silenced(desk: Desk) -> None:
    file = put(desk, "a.md", "[[gone]]\n", is_open=True)
    desk.client.codes(file, ["dangling-link"])
    desk.editor.type(file, "[[gone]]\n\n<!-- mdmem: silence dangling-link -->\n")
    desk.client.codes(file, [])


def test_complaints_marksman_154_a_rename_on_a_link_renames_its_target(desk: Desk) -> None:
    put(desk, "b.md", "# B\n")
    put(desk, "c.md", "[x](b.md)\n")
    file = put(desk, "a.md", "see [[b]]\n", is_open=True)
    rename(desk, file, "b]]", "new")
    assert memories(desk) == {"a.md": "see [[new]]\n", "c.md": "[x](new.md)\n", "new.md": "# B\n"}


def test_complaints_marksman_301_typing_does_not_check_after_each_key(desk: Desk) -> None:
    file = put(desk, "a.md", "[[gone]]\n", is_open=True)
    desk.client.codes(file, ["dangling-link"])
    before = len(desk.client.diagnostics[uri(file)])
    for number in range(100):
        desk.editor.type(file, "x" * number + " [[gone]]\n")
    version = desk.editor.buffers[file].version
    desk.client.wait(lambda: desk.client.diagnostics[uri(file)][-1].get("version") == version)
    assert len(desk.client.diagnostics[uri(file)]) - before <= 5


def test_complaints_marksman_308_links_follow_a_file_that_the_explorer_renames(desk: Desk) -> None:
    old = put(desk, "b.md", "[[a]]\n")
    put(desk, "a.md", "[[b]] [x](./b.md#h)\n", is_open=True)
    desk.editor.move((old, desk.root / "deep/new name.md"))
    assert memories(desk) == {
        "a.md": "[[new name]] [x](./deep/new%20name.md#h)\n",
        "deep/new name.md": "[[a]]\n",
    }


def test_complaints_oxide_124_the_memory_with_the_link_keeps_its_name(desk: Desk) -> None:
    put(desk, "target.md", "# T\n")
    file = put(desk, "source.md", "[t](target.md)\n", is_open=True)
    rename(desk, file, "target", "other")
    assert set(memories(desk)) == {"source.md", "other.md"}


def test_complaints_oxide_162_a_heading_that_is_renamed_leaves_its_file_alone(desk: Desk) -> None:
    file = put(desk, "title.md", "# title\n", is_open=True)
    put(desk, "b.md", "[[title#title]]\n")
    rename(desk, file, "title", "Other")
    assert memories(desk) == {"title.md": "# Other\n", "b.md": "[[title#Other]]\n"}


def test_complaints_oxide_163_no_folder_is_put_before_a_name(desk: Desk) -> None:
    put(desk, "deep/er/b.md", "# B\n")
    file = put(desk, "a.md", "[[b]] [[er/b]]\n", is_open=True)
    rename(desk, file, "b]]", "new")
    assert desk.editor.text(file) == "[[new]] [[er/new]]\n"


def test_complaints_oxide_176_the_file_on_disk_follows(desk: Desk) -> None:
    put(desk, "b.md", "# B\n")
    file = put(desk, "a.md", "[[b]]\n", is_open=True)
    rename(desk, file, "b", "new")
    assert (desk.root / "new.md").read_text() == "# B\n"
    assert not (desk.root / "b.md").exists()


def test_complaints_oxide_208_the_server_goes_on_after_what_it_cannot_read(desk: Desk) -> None:
    file = put(desk, "a.md", "[[a]]\n", is_open=True)
    desk.client.notify("textDocument/didChange", {"textDocument": {"uri": 7}})
    desk.client.notify("workspace/didChangeWatchedFiles", {"changes": "none"})
    desk.editor.type(file, "\0")
    desk.editor.type(file, "# A\n\n[[a]]\n")
    assert targets(desk, file, "a]]") == ["a.md"]


def test_complaints_oxide_269_brackets_of_two_code_spans_are_no_link(desk: Desk) -> None:
    file = put(desk, "a.md", "`[[` and `]]`\n", is_open=True)
    assert codes(desk, file) == []
    assert not desk.editor.ask("documentLink", file)


def test_complaints_oxide_274_a_relative_link_is_seen_from_its_memory(desk: Desk) -> None:
    for path in ("b.md", "x/b.md", "x/y/b.md"):
        put(desk, path, "# B\n")
    file = put(desk, "x/a.md", "[1](./b.md) [2](../b.md) [3](y/b.md) [[./y/b]]\n", is_open=True)
    assert [targets(desk, file, at) for at in ("./b", "../b", "y/b", "./y/b")] == [
        ["x/b.md"],
        ["b.md"],
        ["x/y/b.md"],
        ["x/y/b.md"],
    ]


def test_complaints_oxide_331_a_markdown_link_keeps_its_text_folder_and_escapes(desk: Desk) -> None:
    put(desk, "a b/Lorem.md", "# L\n")
    file = put(desk, "c.md", "[Lorem](./a%20b/Lorem.md)\n", is_open=True)
    rename(desk, file, "Lorem.md", "Hello World")
    assert desk.editor.text(file) == "[Lorem](./a%20b/Hello%20World.md)\n"


def test_complaints_zk_668_a_link_may_go_on_in_the_next_line(desk: Desk) -> None:
    put(desk, "b.md", "# B\n")
    file = put(desk, "a.md", "see [a text that\ngoes on](b.md) here\n", is_open=True)
    assert targets(desk, file, "b.md") == ["b.md"]
    rename(desk, file, "b.md", "new")
    assert desk.editor.text(file) == "see [a text that\ngoes on](new.md) here\n"


def test_complaints_zk_734_many_memories_that_link_to_one_are_indexed_at_once(desk: Desk) -> None:
    count = 3_000 if speed.is_all else 300
    for number in range(count):
        put(desk, f"many/n{number}.md", f"[[hub]] [[n{number // 2}]]\n")
    file = put(desk, "hub.md", "# Hub\n", is_open=True)
    found = desk.editor.ask("references", file, 2, context={"includeDeclaration": False})
    assert len(found) == 0
    desk.editor.type(file, "---\nid: h\n---\n# Hub\n")
    assert len(desk.editor.ask("references", file, 1, context={"includeDeclaration": False})) == count


def test_complaints_iwe_261_a_relative_link_is_no_name_from_the_root(desk: Desk) -> None:
    put(desk, "b.md", "# root\n")
    put(desk, "x/b.md", "# beside\n")
    file = put(desk, "x/a.md", "[b](b.md)\n", is_open=True)
    assert targets(desk, file, "b.md") == ["x/b.md"]


def test_complaints_iwe_0_4_0_a_rename_in_a_folder_loses_no_text(desk: Desk) -> None:
    text = "---\r\nid: x # why\r\n---\r\n# B\r\n\r\n\\*text\\*\r\n"
    put(desk, "deep/b.md", text)
    file = put(desk, "deep/a.md", "[[b]]\r\n", is_open=True)
    rename(desk, file, "b", "new")
    assert memories(desk) == {"deep/a.md": "[[new]]\r\n", "deep/new.md": text}


def test_complaints_iwe_0_16_0_what_another_program_wrote_is_not_overwritten(desk: Desk) -> None:
    file = put(desk, "a.md", "# A\n\none\n", is_open=True)
    desk.client.found(file, 1)  # it knows what was there
    desk.editor.type(file, "# A\n\none, mine\n")
    put(desk, "a.md", "# A\n\none\n\ntheirs\n")
    desk.client.codes(file, ["changed-on-disk"])
    desk.editor.save(file)
    assert file.read_text() == "# A\n\none, mine\n\ntheirs\n"


def test_complaints_iwe_0_18_1_links_in_cells_of_tables_are_renamed(desk: Desk) -> None:
    put(desk, "b.md", "# B\n")
    file = put(desk, "a.md", "| a | b |\n|---|---|\n| [[b\\|x]] | [y](b.md) |\n", is_open=True)
    rename(desk, file, "b\\|", "new")
    assert desk.editor.text(file) == "| a | b |\n|---|---|\n| [[new\\|x]] | [y](new.md) |\n"


def test_complaints_foam_1143_links_follow_a_folder(desk: Desk) -> None:
    put(desk, "old/b.md", "[c](c.md) [[old/c]]\n")
    put(desk, "old/c.md", "# C\n")
    put(desk, "a.md", "[[old/b]] [c](old/c.md)\n", is_open=True)
    desk.editor.move((desk.root / "old", desk.root / "new"))
    assert memories(desk) == {
        "a.md": "[[new/b]] [c](new/c.md)\n",
        "new/b.md": "[c](c.md) [[new/c]]\n",
        "new/c.md": "# C\n",
    }


def test_complaints_foam_1545_brackets_alone_are_no_link(desk: Desk) -> None:
    file = put(desk, "a.md", "a [plain] text, [x] done\n\n- [ ] open\n", is_open=True)
    assert codes(desk, file) == []
    assert not desk.editor.ask("documentLink", file)


def modified(desk: Desk) -> tuple[Path, Path]:
    """Two memories with unsaved texts, one of which links to the other twice."""
    put(desk, "b.md", "# B\n")
    first = put(desk, "a.md", "[[b]]\n", is_open=True)
    second = desk.root / "b.md"
    desk.editor.open(second)
    desk.editor.type(first, "unsaved 😀 [[b]]\n\nmore [[b#B]]\n")
    desk.editor.type(second, "unsaved\n\n# B\n")
    return first, second


def test_complaints_obs_nvim_19_a_rename_keeps_what_is_not_saved(desk: Desk) -> None:
    first, _ = modified(desk)
    rename(desk, first, "b]]", "new")
    assert desk.editor.text(first) == "unsaved 😀 [[new]]\n\nmore [[new#B]]\n"
    assert desk.editor.text(desk.root / "new.md") == "unsaved\n\n# B\n"


def test_complaints_obs_nvim_20_a_heading_is_found_where_it_stands_in_the_buffer(desk: Desk) -> None:
    first, second = modified(desk)
    rename(desk, second, "B", "Other")
    assert desk.editor.text(second) == "unsaved\n\n# Other\n"
    assert desk.editor.text(first) == "unsaved 😀 [[b]]\n\nmore [[b#Other]]\n"
    assert (desk.root / "a.md").read_text() == "[[b]]\n"


def test_complaints_vscode_150_angle_brackets_and_a_fragment_stay_whole(desk: Desk) -> None:
    put(desk, "old name.md", "# The heading\n")
    file = put(desk, "a.md", "[x](<old name.md#the-heading>) [y](<old name.md>)\n", is_open=True)
    desk.editor.move((desk.root / "old name.md", desk.root / "new name.md"))
    assert desk.editor.text(file) == "[x](<new name.md#the-heading>) [y](<new name.md>)\n"
    rename(desk, file, "the-heading", "Another one")
    assert desk.editor.text(file) == "[x](<new name.md#another-one>) [y](<new name.md>)\n"


def test_complaints_are_about_a_server_that_still_runs(desk: Desk) -> None:
    until(lambda: desk.client.process.poll() is None)
    found: Any = desk.client.request("workspace/symbol", {"query": "nothing is called so"})
    assert not found
