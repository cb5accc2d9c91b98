"""Which tool notes are written for, whatever its files are, and moves there and back in each dialect."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import mdmem
from mdmem.index.links.dialect import find_site
from mdmem.vault.paths import MemoryLayout
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mdmem import Memory


def write(root: Path, files: dict[str, str]) -> Memory:
    mdmem.init(root)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return mdmem.open(root)


def tools(root: Path, path: str = "a.md") -> tuple[str, ...]:
    return find_site(MemoryLayout(root=str(root), kept={}), path).tools


@cases(
    "name, make, found",
    [
        ("mkdocs.yml", lambda file: file.symlink_to("/etc/passwd"), ()),
        ("mkdocs.yml", os.mkfifo, ()),
        ("mkdocs.yml", lambda file: file.mkdir(), ()),
        (".obsidian", lambda file: file.write_text(""), ()),
        (".obsidian", lambda file: file.symlink_to("/etc"), ("Obsidian",)),
        ("mkdocs.yml", lambda file: file.write_bytes(b"docs_dir: \xff\xfe\x00\n{[:"), ("MkDocs",)),
        ("mkdocs.yml", lambda file: os.truncate(file, 100 << 20) if file.touch() is None else 0, ("MkDocs",)),
        ("hugo.toml", lambda file: file.write_bytes(b"contentDir " + b" " * (1 << 20)), ("Hugo",)),
        ("config.toml", lambda file: file.write_text(""), ()),
        ("_config.yml", lambda file: file.write_text(""), ()),
    ],
    ids=lambda value: None if callable(value) else str(value),
)
def test_a_marker_is_a_file_whatever_it_holds(
    tmp_path: Path, name: str, make: Callable[[Path], object], found: tuple[str, ...]
) -> None:
    make(tmp_path / name)
    assert tools(tmp_path) == found


def test_a_gemfile_tells_a_site_of_jekyll_by_its_word(tmp_path: Path) -> None:
    (tmp_path / "_config.yml").write_text("")
    (tmp_path / "Gemfile").write_text("gem 'rails'\n")
    assert tools(tmp_path) == ()
    (tmp_path / "Gemfile").write_text("gem 'jekyll'\n")
    assert tools(tmp_path, "deep/er/a.md") == ("Jekyll",)


def test_a_marker_outside_of_the_workspace_is_none(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / "inner").mkdir()
    assert tools(tmp_path / "inner") == ()


@cases("said", ["../../../etc", "/etc", "x\0y", "a/../../.."])
def test_a_config_names_no_folder_outside_of_the_workspace(tmp_path: Path, said: str) -> None:
    (tmp_path / "mkdocs.yml").write_text(f"docs_dir: {said}\n")
    roots = find_site(MemoryLayout(root=str(tmp_path), kept={}), "a.md").roots
    assert roots
    assert all(not folder.startswith(("/", "..")) for _, folder in roots)


def test_a_config_names_a_bounded_number_of_folders(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text("".join(f"docs_dir: d{number}\n" for number in range(5_000)))
    assert len(find_site(MemoryLayout(root=str(tmp_path), kept={}), "a.md").roots) <= 20


@pytest.mark.parametrize("form", ["%Y yyyy yyyy (((%q", "yyyy" * 10, "'", "MMM do, yyyy E"])
def test_a_title_format_that_is_none_finds_no_day(tmp_path: Path, form: str) -> None:
    config = {"logseq/config.edn": f'{{:journal/page-title-format "{form}"}}', "a.md": "[[29 2026 (]]\n"}
    found = write(tmp_path, config).check()
    assert [(each.code, each.severity) for each in found] == [("dangling-link", "note")]


def test_addresses_that_are_none_are_no_findings_and_reach_nothing(tmp_path: Path) -> None:
    long = "/".join(["a"] * 10_000)
    texts = {
        "_config.yml": "",
        "_posts/2026-01-02-x.md": "",
        "b.md": "---\npermalink: ../../x\n---\n",
        "c.md": "---\nslug: 7\nurl: /c:/\nredirect_from: [/y/, null, 3]\n---\n",
        "d.md": f"---\nslug: {long}\n---\n",
        "a.md": f"[x](../../x) [y](/y/) [c](/c:/) [z](/{long})\n",
    }
    memory = write(tmp_path, texts)
    assert [found.path for found in memory.check() if found.code == "dangling-link"] == []
    assert [link.path for link in memory.references.backlinks("c.md")] == ["a.md"]
    assert memory.references.backlinks("b.md") == memory.references.backlinks("d.md") == ()


def test_what_is_behind_the_wall_is_told_apart_from_nothing_by_no_address(tmp_path: Path) -> None:
    link = {"hugo.toml": "", "users/ann/notes/a.md": "[x](/secret/) [y](/notes/secret) [[secret]]\n"}
    there = {"users/bob/notes/b.md": "---\nslug: secret\nurl: /secret/\n---\n", "notes/secret.md": ""}
    told = []
    for number, files in enumerate((link, {**link, **there})):
        write(tmp_path / str(number), files)
        scoped = mdmem.open(tmp_path / str(number), scope=mdmem.Scope(user="ann"))
        assert [(f.path, f.message) for f in scoped.check() if f.code == "ambiguous-link"] == []
        told.append([(f.path, f.code, f.message) for f in scoped.check()])
    assert told[0] == told[1]


@cases(
    "marker, meant",
    [(".obsidian/app.json", "n/db.md"), ("logseq/config.edn", "n/db.md"), ("hugo.toml", "n/one.md")],
)
def test_an_id_takes_no_link_from_a_file_of_that_name(tmp_path: Path, marker: str, meant: str) -> None:
    """A tool with wikilinks of its own knows no `id`."""
    one, db = "---\nid: db\n---\n# First\n\n## Setup\n", "---\nid: d-7\naliases: [one]\n---\n## Setup\n"
    texts = {marker: "", "n/one.md": one, "n/db.md": db, "n/s.md": "[[db]] [[db#Setup]] [[one]] [[d-7]]\n"}
    memory = write(tmp_path, texts)
    assert memory.check() == []
    assert len(memory.references.backlinks(meant)) == 3
    memory.mv("n/db.md", "n/data.md")
    moved = "[[data]] [[data#Setup]] [[one]] [[d-7]]\n"
    assert memory.show("n/s.md").text == (moved if meant == "n/db.md" else texts["n/s.md"])
    assert memory.check() == []


def test_only_what_nobody_has_written_yet_is_a_note(tmp_path: Path) -> None:
    new = "[[new]] ![[new]] [[Dr. New]] [[new 1.2]]\n"
    gone = "[[kyoto]] ![[pic.png]] [[a plan.PDF]] [p](gone.png)\n"
    memory = write(
        tmp_path, {".obsidian/app.json": "", "kyoto.md": "# K\n\nOn the river.\n", "s.md": new + gone}
    )
    memory.sync()
    (tmp_path / "kyoto.md").rename(tmp_path / "city.md")
    found = [(each.severity, each.position.line, each.rule) for each in memory.check()]
    assert found == [
        *(("note", 1, name) for name in ("new", "new", "Dr. New", "new 1.2")),
        *(("warning", 2, name) for name in ("kyoto", "pic.png", "a plan.PDF", "gone.png")),
    ]


def test_a_page_that_was_deleted_is_not_one_that_nobody_has_written(tmp_path: Path) -> None:
    """Whoever deleted it, as long as something led to it; until it is there again."""
    texts = {"n/a.md": "one\n", "b.md": "two\n", "c.md": "three\n", "s.md": "[[a]] [[n/a]] [[b|B]] [[new]]\n"}
    memory = write(tmp_path, {".obsidian/app.json": "", **texts})
    memory.sync()
    memory.rm("n/a.md")
    for path in ("b.md", "c.md"):
        (tmp_path / path).unlink()
    memory.sync()
    memory.append("s.md", "[[c]]\n")

    def told() -> list[tuple[str, str, str]]:
        return [(each.severity, each.rule, each.hint) for each in memory.check()]

    make, hint = "make it, or remove the link", "is gone: bring it back, or remove the link"
    notes = [("note", "new", make), ("note", "c", make)]
    lost = [("warning", "a", f"n/a.md {hint}"), ("warning", "n/a", f"n/a.md {hint}")]
    assert told() == [*lost, ("warning", "b", f"b.md {hint}"), *notes]
    assert (memory.status().unwritten, memory.status().broken) == (2, 3)
    memory.restore("n/a.md")
    (tmp_path / "b.md").write_text("two again\n")
    assert told() == notes


# --------------------------------------------------------------------------------------------- there and back

TREES: dict[str, dict[str, Any]] = {
    "Hugo": {"marker": "hugo.toml", "root": "content", "links": [
        "[a](/g/x/#t)", "[a](/g/x)", "[a](../../g/x/)", "[a](../g/x.md)", '{{< ref "x.md" >}}',
        '{{< relref "/g/x.md" >}}', "[a](/content/g/x.md)"]},
    "Docusaurus": {"marker": "docusaurus.config.js", "root": "docs", "links": [
        "[a](/docs/g/x)", "[a](../g/x)", "[a](../g/x.md)", "[a](@site/docs/g/x.md)", "[a](/g/x.md)"]},
    "MkDocs": {"marker": "mkdocs.yml", "root": "docs", "links": [
        "[a](../../g/x/)", "[a](../g/x.md#t)", "[a](/g/x/)", "[a](../../g/x/#t)"]},
    "Jekyll": {"marker": "_config.yml", "root": "_layouts", "links": [
        "{% link _layouts/g/x.md %}", "[a](/_layouts/g/x.html)", "[a](../g/x.html)", "[a](../g/x.md)"]},
    "Obsidian": {"marker": ".obsidian/app.json", "root": "n", "links": [
        "[[x|l]]", "[a](x.md)", "[a](n/g/x.md)", "[a](../g/x.md)", "[[n/g/x#t]]"]},
    "Dendron": {"marker": "dendron.yml", "root": "v", "links": [
        "[[x]]", "[[L|x]]", "[[L|x#t]]", "[[L|dendron://v/x]]", "![[x#t,1:#*]]", "[a](../g/x.md)"]},
    "Logseq": {"marker": "logseq/config.edn", "root": "pages", "links": [
        "[[x]]", "#[[x]]", "[a](../g/x.md)"]},
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
@given(data=st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_there_and_back_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    tree = TREES[name]
    root = tree["root"]
    links = data.draw(st.lists(st.sampled_from(tree["links"]), min_size=1, max_size=6))
    places = ("g/y.md", "h/x.md", "x.md", "a/b/z.md")
    target = f"{root}/{data.draw(st.sampled_from(places))}"
    texts = {tree["marker"]: "", f"{root}/g/x.md": "# T\n", f"{root}/p/s.md": " ".join(links) + "\n"}
    memory = write(tmp_path_factory.mktemp("there"), texts)
    assert memory.check() == []
    memory.mv(f"{root}/g/x.md", target)
    assert memory.check() == []
    memory.mv(target, f"{root}/g/x.md")
    assert memory.show(f"{root}/p/s.md").text == texts[f"{root}/p/s.md"]


@pytest.mark.timeout(30)
@cases(
    "text",
    [
        "docs: {" + "{" * 30_000 + "}" * 30_000,
        "docs: {" * 9_000,
        "docs: {path: '" * 5_000,
        "docs: {routeBasePath: 'a', " + "current: {" * 6_000,
        "/*" * 30_000,
    ],
)
def test_a_config_that_never_ends_is_read_at_once(tmp_path: Path, text: str) -> None:
    """The config is a stranger's: without a bound, these took minutes."""
    write(tmp_path, {"docusaurus.config.js": text, "docs/a.md": "x"})
    assert tools(tmp_path, "docs/a.md") == ("Docusaurus",)


def test_a_move_names_the_canvases_of_obsidian_that_it_leaves_pointing_at_nothing(tmp_path: Path) -> None:
    card, told = '{"nodes": [{"type": "file", "file": "top/db.md", "subpath": "#One"}]}', "[[top/db]] [[db]]"
    canvas = {
        "nodes": [{"type": "text", "text": told}, 1, {"file": "top/pic.png"}, {"file": 1, "text": None}]
    }
    files = {
        ".obsidian/app.json": "{}",
        "top/db.md": "# One\n",
        "top/pic.png": "1",
        "top/other.md": "",
        "B.canvas": card,
        "c/Text.canvas": json.dumps(canvas),
        "c/x.canvas": "{",
        "c/y.canvas": '["nodes"]',
    }
    memory = write(tmp_path, files)
    stays = "a canvas is not changed"
    assert memory.plan.mv("top/other.md", "o.md").left_out == ()
    assert memory.plan.mv("top/db.md", "in/db.md").left_out == (
        f"B.canvas: {stays}: top/db.md is in/db.md now: correct it in Obsidian",
        f"c/Text.canvas: {stays}: top/db.md is in/db.md now: correct it in Obsidian",
    )
    done = memory.mv("top", "in/")
    assert done.plan.left_out == (
        f"B.canvas: {stays}: top/db.md is in/top/db.md now: correct it in Obsidian",
        f"c/Text.canvas: {stays}: top/pic.png is in/top/pic.png now: correct it in Obsidian",
    )
    assert (tmp_path / "B.canvas").read_text() == card
    assert memory.plan.mv("B.canvas", "c/").left_out == ()


def test_a_move_names_the_pages_that_the_config_of_a_site_still_has(tmp_path: Path) -> None:
    config = "site_name: x\nnav:\n  - guide/a.md\n  - B: ./guide/b.md\n  - guide/cc.md\n"
    memory = write(tmp_path, {"mkdocs.yml": config, **{f"docs/guide/{name}.md": "# x\n" for name in "abc"}})
    assert memory.plan.mv("docs/guide/c.md", "docs/c.md").left_out == ()
    assert memory.mv("docs/guide", "docs/user").plan.left_out == (
        "the config of MkDocs is not changed: it names guide/a.md, guide/b.md",
    )
    assert (tmp_path / "mkdocs.yml").read_text() == config
