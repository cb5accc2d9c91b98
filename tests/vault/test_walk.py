"""A walk meets every memory once, in the order of the paths, and says of the others why they are none."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.document import ANY_SUFFIXES
from mdmem.errors import PathRefused, StorageFailed
from mdmem.vault.walk import (
    Found,
    Look,
    compare_files,
    compare_paths,
    count_hidden,
    count_passed_over,
    list_others,
    tree,
    walk,
)
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path


def fill(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def paths(root: Path, *parts: str, mounts: dict[str, str] | None = None) -> list[str]:
    return [found.path for found in walk(str(root), parts, mounts=mounts)]


def test_the_order_is_that_of_the_parts(tmp_path: Path) -> None:
    fill(tmp_path, "a/z.md", "a.md", "a-b.md", "a/b/c.json", "B.md", "é.md", "z.md", "a.b/x.md")
    found = paths(tmp_path)
    assert found == ["B.md", "a/b/c.json", "a/z.md", "a-b.md", "a.b/x.md", "a.md", "z.md", "é.md"]
    assert found == sorted(found, key=lambda path: path.split("/"))


def test_the_order_is_that_of_the_names_as_they_are_shown(tmp_path: Path) -> None:
    """Another system wrote the name in NFD, which sorts elsewhere."""
    fill(tmp_path, "e\u0301.md", "f.md", "e\u0301x/a.md")
    assert paths(tmp_path) == ["f.md", "\xe9.md", "\xe9x/a.md"]


def test_a_file_is_found_with_its_size_and_time(tmp_path: Path) -> None:
    fill(tmp_path, "a.md")
    os.utime(tmp_path / "a.md", ns=(1, 1_700_000_000_000_000_001))
    status = os.stat(tmp_path / "a.md")
    changed = 1_700_000_000_000_000_001
    assert list(walk(str(tmp_path))) == [Found("a.md", 4, changed, "", status.st_ctime_ns, status.st_ino)]


def test_what_is_hidden_or_no_memory_is_never_met(tmp_path: Path) -> None:
    fill(tmp_path, ".a.md", ".git/a.md", ".mdmem/schemas/a.json", "n/.obsidian/a.json", "a.txt", "b.MD", "md")
    assert paths(tmp_path) == []


def test_files_of_text_that_are_no_memories_are_counted_by_suffix(tmp_path: Path) -> None:
    for name in ("a.md", "b.json", "c.txt", "d/e.mdx", "d/f.mdx", "G.MD", "h.png", "i", ".j.txt", ".k/l.mdx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\n")
    counts = count_passed_over(list_others(str(tmp_path)))
    assert next(iter(counts.items())) == (".mdx", 2)
    assert counts == {".mdx": 2, ".txt": 1, ".MD": 1}
    assert count_passed_over(list_others(str(tmp_path / "d/none"))) == {}


def test_other_files_are_listed_without_memories_and_what_is_hidden(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "b.png", "c.md/d.png", "u/e\u0301.png", "u/.f.png", ".g/h.png", "v/i.png")
    (tmp_path / "link").symlink_to(tmp_path / "v")
    assert sorted(list_others(str(tmp_path))) == ["b.png", "c.md/d.png", "link", "u/\xe9.png", "v/i.png"]
    assert list(list_others(str(tmp_path), ("u",))) == ["u/\xe9.png"]
    assert list(list_others(str(tmp_path), ("link",))) == []
    assert list(list_others(str(tmp_path), ("v",), holds=lambda path: path != "v/i.png")) == []


def test_markdown_below_hidden_folders_is_counted_by_folder(tmp_path: Path) -> None:
    fill(
        tmp_path, ".cursor/rules/a.mdc", ".cursor/b.md", "x/.hid/c.md", "x/.hid/deep/d.json", "e.md", ".f.md"
    )
    fill(tmp_path, ".git/g.md", ".mdmem/h.md", "x/.empty/i.png")
    assert count_hidden(str(tmp_path)) == {".cursor/": 2, ".hid/": 1}
    assert count_hidden(str(tmp_path), ("x",)) == {".hid/": 1}
    assert count_hidden(str(tmp_path), holds=lambda path: path != "x") == {".cursor/": 2}
    assert count_hidden(str(tmp_path), ("none",)) == {}


def test_of_two_spellings_of_one_name_only_one_can_be_read(tmp_path: Path) -> None:
    fill(tmp_path, "\xe9.md", "e\u0301.md", "\xe9/a.md", "e\u0301/a.md", "e\u0301/b.md", "u\u0308.md")
    met = [(each.path, "spelling" in each.problem) for each in walk(str(tmp_path))]
    assert sorted(met) == [
        *((r"e\u0301.md", True), (r"e\u0301/a.md", True), (r"e\u0301/b.md", True)),
        *(("\xe9.md", False), ("\xe9/a.md", False), ("\xfc.md", False)),
    ]


def test_a_walk_can_begin_below(tmp_path: Path) -> None:
    fill(tmp_path, "users/alice/a.md", "users/alicebob/a.md", "users/alice.md")
    assert paths(tmp_path, "users", "alice") == ["users/alice/a.md"]
    assert paths(tmp_path, "users", "nobody") == []
    assert paths(tmp_path, "users", "alice.md") == []


def test_a_walk_can_begin_in_a_folder_of_another_spelling(tmp_path: Path) -> None:
    fill(tmp_path, "users/e\u0301/notes/a.md")
    assert paths(tmp_path, "users", "\xe9") == ["users/\xe9/notes/a.md"]
    assert paths(tmp_path, "users", "\xe9", "notes") == ["users/\xe9/notes/a.md"]


def test_the_vaults_own_files_can_be_asked_for(tmp_path: Path) -> None:
    fill(tmp_path, ".mdmem/templates/a.md", ".mdmem/templates/b/c.json", ".mdmem/templates/d.txt")
    found = walk(str(tmp_path), (".mdmem", "templates"), (".md", ".json"))
    assert [each.path for each in found] == [".mdmem/templates/a.md", ".mdmem/templates/b/c.json"]


def test_a_link_is_a_problem_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    fill(outside, "secret.md")
    root = tmp_path / "root"
    fill(root, "a.md")
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside)
    (root / "folder.md").symlink_to(outside)
    (root / "dangling.md").symlink_to("nowhere")
    found = list(walk(str(root)))
    assert [each.path for each in found] == ["a.md", "dangling.md", "file.md", "folder.md"]
    assert [each.problem for each in found] == ["", *["a symbolic link"] * 3]
    assert paths(root, "folder") == []


def test_what_is_no_file_is_a_problem(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert [(each.path, each.problem) for each in walk(str(tmp_path))] == [("pipe.md", "not a regular file")]


@cases(
    "name, shown, problem",
    [
        (b"a\xff.md", "a\\xff.md", "control"),
        (b"a\nb.md", "a\\x0ab.md", "control"),
        (b"a\x1b[31m.md", "a\\x1b[31m.md", "control"),
        (b"a\xc2\x9b.md", "a\\x9b.md", "control"),
        (b"a\\b.md", "a\\b.md", "backslash"),
        (b"%2e%2e%2fa.md", "%2e%2e%2fa.md", "escape"),
    ],
)
def test_a_name_that_is_no_path_is_shown_so_that_it_can_be_printed(
    tmp_path: Path, name: bytes, shown: str, problem: str
) -> None:
    with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
        pass
    (found,) = walk(str(tmp_path))
    assert found.path == shown
    assert problem in found.problem
    shown.encode()


def test_files_in_a_folder_whose_name_is_no_path_are_shown(tmp_path: Path) -> None:
    fill(tmp_path, "a\\b/c.md", "x.md/y.md")
    assert [(each.path, bool(each.problem)) for each in walk(str(tmp_path))] == [
        ("a\\b/c.md", True),
        ("x.md/y.md", False),
    ]


def test_a_file_that_goes_while_the_walk_is_under_way_is_left_out(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "b.md", "c/d.md", "e.md")
    walking = walk(str(tmp_path))
    assert next(walking).path == "a.md"
    (tmp_path / "b.md").unlink()
    (tmp_path / "c/d.md").unlink()
    (tmp_path / "c").rmdir()
    assert [each.path for each in walking] == ["e.md"]


def test_a_mounted_file_that_goes_while_the_walk_is_under_way_is_left_out(tmp_path: Path) -> None:
    fill(tmp_path, "root/a.md", "root/c.md", "AGENTS.md")
    walking = walk(str(tmp_path / "root"), mounts={"b.md": str(tmp_path / "AGENTS.md")})
    assert next(walking).path == "a.md"
    (tmp_path / "AGENTS.md").unlink()
    assert [each.path for each in walking] == ["c.md"]


def test_a_missing_vault_has_no_files(tmp_path: Path) -> None:
    assert paths(tmp_path / "missing") == []


def deep(folder: Path, levels: int) -> None:
    """Folders in each other, each made from the one above: no path is as long as theirs."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 10, dir_fd=descriptor)
        below = os.open("d" * 10, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("deep.md", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def test_a_tree_of_a_thousand_folders_in_each_other_is_walked(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for _ in range(1_100):
        folder += "/d"
        os.mkdir(folder)
    assert len(list(tree(str(tmp_path)))) == 1_101
    while folder != str(tmp_path):
        os.rmdir(folder)
        folder = os.path.dirname(folder)


def test_folders_too_deep_for_a_memory_are_named_and_the_rest_is_found(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "notes/a.md", "z.md")
    deep(tmp_path / "notes", 600)
    left_out = "/".join(["notes", *["d" * 10] * 93])
    assert len(left_out) == 1028
    problem = "a folder that is left out: a path has at most 1024 bytes"

    met = [(found.path, found.problem) for found in walk(str(tmp_path))]
    looked = compare_files(str(tmp_path), {})

    assert met == [("a.md", ""), ("notes/a.md", ""), (left_out, problem), ("z.md", "")]
    assert [(found.path, found.problem) for found in looked.changed] == sorted(met)
    known = {found.path: found.seen for found in looked.changed}
    assert compare_files(str(tmp_path), known) == Look([], [], [])
    shutil.rmtree(tmp_path / "notes" / ("d" * 10))


def as_nobody(folder: Path, work: Callable[[], bool]) -> bool:
    """Whether work does it, for somebody who may do less, in this folder."""
    folder.chmod(0o755)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(folder)
            os.setuid(65534)
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(("mode", "left_out"), [(0o000, "notes"), (0o644, "notes/b.md")])
def test_a_folder_that_may_not_be_read_is_named_and_the_rest_is_found(
    tmp_path: Path, mode: int, left_out: str
) -> None:
    fill(tmp_path, "a.md", "notes/b.md", "z.md")
    (tmp_path / "notes").chmod(mode)

    def is_named() -> bool:
        met = list(walk("."))
        changed = compare_files(".", {}).changed
        denied = met[1].problem.endswith(": Permission denied")
        return denied and [found.path for found in met] == ["a.md", left_out, "z.md"] and changed == met

    assert as_nobody(tmp_path, is_named)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_vault_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, "root/a.md")
    (tmp_path / "root").chmod(0)

    def is_refused() -> bool:
        with pytest.raises(StorageFailed, match="Permission denied"):
            list(walk("root"))
        return True

    assert as_nobody(tmp_path, is_refused)


# ----------------------------------------------------------------------------------------------------- mounts


def test_mounts_stand_where_their_paths_stand(tmp_path: Path) -> None:
    fill(tmp_path, "root/B.md", "root/a/x.md", "root/a.md", "root/z.md", "AGENTS.md")
    file = str(tmp_path / "AGENTS.md")
    mounts = dict.fromkeys(["AGENTS.md", "a/b.md", "a/y.md", "zz/z.md"], file)
    found = list(walk(str(tmp_path / "root"), mounts=mounts))
    assert [each.path for each in found] == [
        *("AGENTS.md", "B.md", "a/b.md", "a/x.md", "a/y.md", "a.md", "z.md", "zz/z.md")
    ]
    assert found[0].size == len("AGENTS.md")


def test_a_mount_stands_over_a_file_of_its_name_even_when_its_own_is_missing(tmp_path: Path) -> None:
    fill(tmp_path, "root/AGENTS.md", "root/b.md", "AGENTS.md")
    mounts = {"AGENTS.md": str(tmp_path / "AGENTS.md"), "b.md": str(tmp_path / "missing.md")}
    assert [(each.path, each.size) for each in walk(str(tmp_path / "root"), mounts=mounts)] == [
        ("AGENTS.md", 9)
    ]


# ------------------------------------------------------------------------------------------------------- look


def known(root: Path, mounts: Mapping[str, str] | None = None) -> dict[str, tuple[int, int, int, int]]:
    """What a first look sees."""
    return {found.path: found.seen for found in compare_files(str(root), {}, mounts).changed}


def told(found: Look) -> tuple[list[str], list[str]]:
    return [each.path for each in found.changed], found.gone


def test_a_look_tells_what_is_new_what_differs_and_what_is_gone(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "b/c.md", "b/d.json", "e.md")
    before = known(tmp_path)
    assert compare_files(str(tmp_path), before) == Look([], [], [])
    (tmp_path / "a.md").write_text("longer than before")
    (tmp_path / "b/c.md").unlink()
    fill(tmp_path, "f/g.md", "h.txt", ".i.md")
    found = compare_files(str(tmp_path), before)
    assert told(found) == (["a.md", "f/g.md"], ["b/c.md"])
    assert found.changed[0].size == len("longer than before")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_what_is_in_a_folder_that_may_not_be_read_does_not_count_as_gone(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "notes/b.md", "notes-2.md")
    before = known(tmp_path)
    (tmp_path / "notes").chmod(0)
    (tmp_path / "notes-2.md").unlink()
    assert as_nobody(tmp_path, lambda: compare_files(".", before).gone == ["notes-2.md"])


def test_a_file_of_the_same_size_and_time_that_took_its_place_differs(tmp_path: Path) -> None:
    fill(tmp_path, "a.md")
    before = known(tmp_path)
    status = os.stat(tmp_path / "a.md")
    (tmp_path / "new").write_text("b.md")
    os.utime(tmp_path / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(tmp_path / "new", tmp_path / "a.md")
    assert told(compare_files(str(tmp_path), before)) == (["a.md"], [])


def test_what_is_no_memory_is_remembered_like_what_is_one(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "b\\c.md")
    (tmp_path / "link.md").symlink_to("a.md")
    before = known(tmp_path)
    assert set(before) == {"a.md", "b\\c.md", "link.md"}
    assert compare_files(str(tmp_path), before) == Look([], [], [])
    (tmp_path / "link.md").unlink()
    fill(tmp_path, "link.md")
    (changed,) = compare_files(str(tmp_path), before).changed
    assert (changed.path, changed.problem) == ("link.md", "")


def test_of_files_with_one_path_the_one_that_can_be_read_counts(tmp_path: Path) -> None:
    fill(tmp_path, "\xe9.md", "e\u0301.md", "\xe9/a.md", "e\u0301/a.md", "e\u0301/b.md")
    first = compare_files(str(tmp_path), {})
    assert [(each.path, bool(each.problem)) for each in first.changed] == [
        *((r"e\u0301.md", True), (r"e\u0301/a.md", True), (r"e\u0301/b.md", True)),
        *(("\xe9.md", False), ("\xe9/a.md", False)),
    ]
    second = compare_files(str(tmp_path), {found.path: found.seen for found in first.changed})
    assert (second.changed, second.gone) == ([], [])


def test_a_file_differs_when_another_one_comes_into_its_way_or_goes(tmp_path: Path) -> None:
    fill(tmp_path, "e\u0301/b.md")
    free = known(tmp_path)
    (tmp_path / "\xe9").mkdir()
    now = compare_files(str(tmp_path), free)
    (shadowed,) = now.changed
    assert (shadowed.path, "spelling" in shadowed.problem) == (r"e\u0301/b.md", True)
    assert now.gone == ["\xe9/b.md"]
    (tmp_path / "\xe9").rmdir()
    (again,) = compare_files(str(tmp_path), {shadowed.path: shadowed.seen}).changed
    assert (again.path, again.problem) == ("\xe9/b.md", "")


def test_a_mount_is_looked_at_where_it_is_and_stands_over_a_file_of_its_name(tmp_path: Path) -> None:
    fill(tmp_path, "AGENTS.md", "root/a.md")
    os.link(tmp_path / "AGENTS.md", tmp_path / "root/AGENTS.md")
    mounts = {"AGENTS.md": str(tmp_path / "AGENTS.md"), "missing.md": str(tmp_path / "missing.md")}
    before = known(tmp_path / "root", mounts)
    assert set(before) == {"AGENTS.md", "a.md"}
    assert compare_files(str(tmp_path / "root"), before, mounts) == Look([], [], [])
    (tmp_path / "AGENTS.md").unlink()
    assert told(compare_files(str(tmp_path / "root"), before, mounts)) == ([], ["AGENTS.md"])


def test_a_mount_over_a_folder_hides_nothing_in_it(tmp_path: Path) -> None:
    fill(tmp_path, "AGENTS.md", "root/a.md/b.md")
    mounts = {"a.md": str(tmp_path / "AGENTS.md")}
    before = known(tmp_path / "root", mounts)
    assert set(before) == {"a.md", "a.md/b.md"}
    (tmp_path / "root/a.md/b.md").unlink()
    assert told(compare_paths(str(tmp_path / "root"), ["a.md"], before, mounts)) == ([], ["a.md/b.md"])


def test_a_look_at_some_paths_leaves_all_others_alone(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "b/c.md", "b/d/e.md", "f.md", "bb.md")
    before = known(tmp_path)
    shutil.rmtree(tmp_path / "b")
    fill(tmp_path, "g/h.md", "g/i/j.md", "bb/k.md")
    (tmp_path / "a.md").unlink()
    (tmp_path / "f.md").write_text("longer than before")
    root = str(tmp_path)
    assert told(compare_paths(root, [], before)) == ([], [])
    assert told(compare_paths(root, ["a.md", "bb.md", "nothing/at.md", "g/none.md"], before)) == (
        [],
        ["a.md"],
    )
    assert told(compare_paths(root, ["b"], before)) == ([], ["b/c.md", "b/d/e.md"])
    assert told(compare_paths(root, ["b/d", "f.md"], before)) == (["f.md"], ["b/d/e.md"])
    assert told(compare_paths(root, ["g/i", "g/i/j.md", "g/h.md/x.md"], before)) == (["g/i/j.md"], [])
    assert told(compare_paths(root, ["g"], before)) == (["g/h.md", "g/i/j.md"], [])
    assert compare_paths(root, ["a.md", ""], before) == compare_files(root, before)


def test_a_look_at_a_path_follows_no_link_and_enters_nothing_hidden(tmp_path: Path) -> None:
    fill(tmp_path, "outside/a.md", "root/.git/a.md")
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    assert compare_paths(str(tmp_path / "root"), ["link/a.md", "link", ".git", ".git/a.md"], {}) == Look(
        [], [], []
    )


def test_a_look_at_a_path_finds_it_in_the_spelling_of_the_disk(tmp_path: Path) -> None:
    fill(tmp_path, "e\u0301/u\u0308.md", "a.md")
    for paths in (["\xe9/\xfc.md"], ["\xe9"], ["e\u0301/\xfc.md"]):
        assert told(compare_paths(str(tmp_path), paths, {})) == (["\xe9/\xfc.md"], [])


def test_a_look_at_a_missing_vault_finds_all_gone(tmp_path: Path) -> None:
    before = {"a.md": (1, 2, 3, 4)}
    assert compare_files(str(tmp_path / "missing"), before) == Look([], ["a.md"], [])
    assert compare_paths(str(tmp_path / "missing"), ["a.md", "b"], before) == Look([], ["a.md"], [])


# ------------------------------------------------------------------------------------------------- properties

NAMES = st.text(alphabet="aAbé.\u0301 -\\\n", min_size=1, max_size=4).filter(lambda n: n not in {".", ".."})


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=6))
@settings(max_examples=examples(60))
def test_every_memory_is_met_once_in_order(
    tmp_path_factory: pytest.TempPathFactory, trees: list[list[str]]
) -> None:
    from mdmem.vault.paths import check_memory

    root = tmp_path_factory.mktemp("walk")
    made = set()
    for parts in trees:
        folder = root.joinpath(*parts[:-1])
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{parts[-1]}.md").write_text("x")
        except OSError:
            continue
        made.add("/".join([*parts[:-1], f"{parts[-1]}.md"]))
    expected = set()
    for path in made:
        try:
            expected.add(check_memory(path))
        except PathRefused:
            continue
    found = list(walk(str(root)))
    met = [each.path for each in found if not each.problem]
    assert set(met) == expected
    assert met == sorted(met, key=lambda path: path.split("/"))
    assert all(each.problem for each in found if each.path not in expected)
    assert all(unicodedata.is_normalized("NFC", path) for path in met)


FOLDERS_AND_FILES = ("a", "b", "a.md", "b.json", "K.md", "\u212a.md", "\u3042.md", "t.txt", ".h")
SPELT_TWICE = ("\xe9", "e\u0301", "\xe9.md", "e\u0301.md")
REFUSED = ("a\\.md", "a\n.md", "b\\x0a.md", "e\u0301\\.md", "%2e%2e.md", os.fsdecode(b"\xff.md"))
PARTS = st.sampled_from([*FOLDERS_AND_FILES, *SPELT_TWICE, *REFUSED])
CHANGES = st.lists(
    st.tuples(
        st.lists(PARTS, min_size=1, max_size=3),
        st.sampled_from(["write", "write", "write", "folder", "link", "dangling", "pipe", "hard", "delete"]),
    ),
    max_size=8,
)
MOUNTED = st.dictionaries(
    st.sampled_from(["a.md", "a/b.json", "\xe9.md", "zz/z.md"]),
    st.sampled_from(["w.md", "l.md", "no.md"]),
    max_size=2,
)


def change(root: Path, changes: list[tuple[list[str], str]]) -> None:
    """Make the changes that the system allows."""
    for number, (parts, kind) in enumerate(changes):
        path = root.joinpath(*parts)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "delete" and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif kind == "delete":
                path.unlink()
            elif kind == "write" and not path.is_fifo():  # nobody would read what is written into one
                path.write_text("x" * number)
            elif kind == "folder":
                path.mkdir()
            elif kind == "pipe":
                os.mkfifo(path)
            elif kind == "hard":
                os.link(root.parent / "w.md", path)
            elif kind in {"link", "dangling"}:
                path.symlink_to(root.parent if kind == "link" else "nowhere")


def covered(path: str, wanted: Collection[str]) -> bool:
    """Whether a path is wanted, or below one that is; a name stands for each of its spellings."""
    folded = unicodedata.normalize("NFC", ESCAPE.sub(lambda found: chr(int(found[1], 16)), path))
    return not _above(folded).isdisjoint(unicodedata.normalize("NFC", each) for each in wanted)


ESCAPE = re.compile(r"\\u([0-9a-f]{4})")  # in the path of a file that another spelling shadows


@given(CHANGES, CHANGES, MOUNTED, st.data())
def test_looks_agree_with_a_walk_whatever_has_changed(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[list[str], str]],
    then: list[tuple[list[str], str]],
    mounted: dict[str, str],
    data: st.DataObject,
) -> None:
    top = tmp_path_factory.mktemp("look")
    fill(top, "w.md", "root/a.txt")
    (top / "l.md").symlink_to("w.md")
    mounts = {path: str(top / file) for path, file in mounted.items()}
    root = top / "root"
    try:
        change(root, first)
        before = known(root, mounts)
        change(root, then)
        now = compare_files(str(root), {}, mounts)
        assert Counter(now.changed + now.doubles) == Counter(walk(str(root), mounts=mounts))
        assert len({found.path for found in now.changed}) == len(now.changed)
        there = {found.path for found in now.changed}
        differs = [found for found in now.changed if before.get(found.path) != found.seen]
        gone = sorted(before.keys() - there)
        found = compare_files(str(root), before, mounts)
        assert found == Look(differs, gone, now.doubles)
        met = (path for path in there | before.keys() if not ESCAPE.search(path))
        anything = sorted({above for path in met for above in _above(path)} | {"b", "zz"})
        wanted = data.draw(st.lists(st.sampled_from(anything), max_size=4))
        at = compare_paths(str(root), wanted, before, mounts)
        assert at.changed == [each for each in differs if covered(each.path, wanted)]
        assert at.gone == [path for path in gone if covered(path, wanted) and not ESCAPE.search(path)]
    finally:
        shutil.rmtree(top)


def test_two_files_that_are_written_alike_are_one_path_and_a_double(tmp_path: Path) -> None:
    fill(tmp_path, "a\n.md", "a\\x0a.md", "b.md")
    now = compare_files(str(tmp_path), {})
    assert [found.path for found in now.changed] == ["a\\x0a.md", "b.md"]
    assert [found.path for found in now.doubles] == ["a\\x0a.md"]
    assert now.changed[0].problem
    assert now.changed[0].inode < now.doubles[0].inode


def _above(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}


def test_a_walk_and_a_comparison_meet_the_suffixes_that_they_are_given(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "b.mdx", "n.mdx/c.markdown", "d.json")
    root = str(tmp_path)
    for suffixes in ((".md", ".json"), (".md", ".json", ".mdx"), (".md", ".json", ".mdx", ".markdown")):
        met = list(walk(root, suffixes=suffixes))
        assert all(not found.problem and found.path.endswith(suffixes) for found in met)
        assert len(met) == len(suffixes)
        look = compare_files(root, {}, suffixes=suffixes)
        assert sorted(found.path for found in look.changed) == sorted(found.path for found in met)
        known = {found.path: found.seen for found in walk(root, suffixes=ANY_SUFFIXES)}
        look = compare_files(root, known, suffixes=suffixes)
        assert look.changed == []
        assert look.gone == sorted(known.keys() - {found.path for found in met})
        assert compare_paths(root, ["b.mdx"], known, suffixes=suffixes).gone == (
            [] if ".mdx" in suffixes else ["b.mdx"]
        )
