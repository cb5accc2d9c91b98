"""A walk meets every memory once, in the order of the paths, and says of the others why they are none."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.errors import PathRefused, StorageFailed
from mdmem.vault.walk import Found, walk


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
    assert list(walk(str(tmp_path))) == [Found("a.md", 4, 1_700_000_000_000_000_001)]


def test_what_is_hidden_or_no_memory_is_never_met(tmp_path: Path) -> None:
    fill(tmp_path, ".a.md", ".git/a.md", ".mdmem/schemas/a.json", "n/.obsidian/a.json", "a.txt", "b.MD", "md")
    assert paths(tmp_path) == []


def test_of_two_spellings_of_one_name_only_one_can_be_read(tmp_path: Path) -> None:
    fill(tmp_path, "\xe9.md", "e\u0301.md", "\xe9/a.md", "e\u0301/a.md", "e\u0301/b.md", "u\u0308.md")
    met = [(each.path, "spelling" in each.problem) for each in walk(str(tmp_path))]
    assert sorted(met) == [
        *(("\xe9.md", False), ("\xe9.md", True)),
        *(("\xe9/a.md", False), ("\xe9/a.md", True), ("\xe9/b.md", True)),
        ("\xfc.md", False),
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
    assert [each.path for each in found] == ["a.md", "b/c.json"]


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
    assert list(walk(str(tmp_path))) == [Found("pipe.md", 0, 0, "not a regular file")]


@pytest.mark.parametrize(
    ("name", "shown", "problem"),
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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "a.md", "notes/b.md")
    (tmp_path / "notes").chmod(0o000)
    tmp_path.chmod(0o755)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(tmp_path)
            os.setuid(65534)
            list(walk("."))
        except StorageFailed as error:
            status = 0 if error.path == "notes" and "Permission denied" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


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


# ------------------------------------------------------------------------------------------------- properties

NAMES = st.text(alphabet="aAbé.\u0301 -\\\n", min_size=1, max_size=4).filter(lambda n: n not in {".", ".."})


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=6))
@settings(deadline=None, max_examples=60)
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
