"""The doctor: what it tells of a vault, what it finds wrong, and that nothing wrong stops it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, strategies as st

from mdmem.diagnostic import as_json
from mdmem.facade.memory import Memory
from mdmem.vault.files import held
from mdmem.vault.folder import init
from mdmem.vault.mark import signed
from mdmem.vault.paths import Scope

if TYPE_CHECKING:
    from mdmem.facade.questions.doctor import Health

STAGING = ".mdmem/local/staging"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A vault in a repository, whose project memory is mounted."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("# Project\n")
    return Path(init(tmp_path / "memories").root)


@pytest.fixture
def staging(root: Path) -> Path:
    (root / STAGING).mkdir(parents=True)
    (root / ".mdmem/local/trash").mkdir()
    return root / STAGING


def health(root: Path) -> Health:
    return Memory(str(root)).doctor()


def findings(root: Path) -> list[tuple[str, str, str]]:
    return [(f.path, f.code, f.severity) for f in health(root).findings]


def test_a_sound_vault_has_facts_and_no_findings(root: Path) -> None:
    memory = Memory(str(root))
    memory.write("a.md", "one")
    memory.write("a.md", "two", overwrite=True)
    found = memory.doctor()
    assert found.findings == ()
    assert found.facts["vault"] == str(root)
    assert found.facts["workspace"] == str(root.parent)
    assert found.facts["memories"] == 2
    assert found.facts["recovered"] == 0
    assert found.facts["kept versions"] == 2, "what was replaced, and what was written"
    assert "rg" in str(found.facts["ripgrep"]).rpartition("/")[2]
    assert as_json(found) == {"facts": found.facts, "findings": [], "diff": ""}


def test_a_scope_counts_its_own_memories(root: Path) -> None:
    Memory(str(root), Scope(user="alice")).write("a.md", "one")
    assert Memory(str(root), Scope(user="alice")).doctor().facts["memories"] == 1
    assert Memory(str(root), Scope(user="bob")).doctor().facts["memories"] == 0


def test_looking_changes_nothing_but_what_can_be_deleted(root: Path) -> None:
    before = sorted(root.rglob("*"))
    health(root)
    local = root / ".mdmem/local"
    assert sorted(p for p in root.rglob("*") if not p.is_relative_to(local)) == before
    assert {p.name for p in local.iterdir()} == {".gitignore", "index", "staging", "trash"}
    assert not list((local / "staging").iterdir())
    assert not list((local / "trash").iterdir())


# ------------------------------------------------------------------------------------------ what a crash left


def test_what_a_crash_left_is_put_right_first(root: Path, staging: Path) -> None:
    change = {"path": "notes/gone.md", "before": None, "after": "0" * 64}
    entry = {"id": "20240131T120000000000-aaaa", "time": "", "actor": "", "message": "", "files": [change]}
    (staging / f"{entry['id']}.one").write_bytes(signed(entry))
    (staging / f"{entry['id']}.0").write_text("new content")
    found = health(root)
    assert found.facts["recovered"] == 1
    assert found.findings == ()
    assert not os.listdir(staging)
    assert found.facts["kept versions"] == 1


def test_results_that_were_not_kept_here_are_told_and_stay(root: Path) -> None:
    Memory(str(root)).results.compress("Bash", "x" * 3_000)
    assert findings(root) == []
    came = root / ".mdmem/local/results/0123456789abcdef"
    came.mkdir()
    assert findings(root) == [(".mdmem/local/results", "not-from-here", "warning")]
    assert came.exists()


def test_what_nothing_will_finish_is_a_leftover(root: Path) -> None:
    (root.parent / ".mdmem-20240131T120000000000-aaaa.0").write_text("staged beside the mounted file")
    (root.parent / ".mdmem.toml").write_text("somebody else's")
    assert findings(root) == [("../.mdmem-20240131T120000000000-aaaa.0", "leftover", "error")]


def test_what_another_process_is_writing_is_no_leftover(root: Path, staging: Path) -> None:
    change = "20240131T120000000000-aaaa"
    with held(str(root / ".mdmem/local/lock"), 1):
        (staging / f"{change}.one").write_text("{}")
        (staging / f"{change}.0").write_text("new content")
        (root.parent / f".mdmem-{change}.0").write_text("new content")
        assert findings(root) == []
        assert sorted(os.listdir(staging)) == [f"{change}.0", f"{change}.one"]


# ----------------------------------------------------------------------------------------------------- mounts


def test_a_mounted_file_that_is_not_there_is_a_warning(root: Path) -> None:
    (root / ".mdmem/config.toml").write_text('[mounts]\n"guide.md" = "../guide.md"\n')
    assert findings(root) == [("guide.md", "mount-missing", "warning")]


def test_project_memory_that_nobody_has_written_yet_is_no_finding(root: Path) -> None:
    (root.parent / "AGENTS.md").unlink()
    assert findings(root) == []
    Memory(str(root)).project.append("Decisions", "Use SQLite")
    assert "- Use SQLite\n" in (root.parent / "AGENTS.md").read_text()


def test_a_file_that_a_mount_hides_is_an_error(root: Path) -> None:
    (root / "AGENTS.md").write_text("nobody sees this")
    assert findings(root) == [("AGENTS.md", "mount-shadows", "error")]


def test_a_mount_that_leaves_the_workspace_is_an_error_of_the_config(root: Path) -> None:
    (root / ".mdmem/config.toml").write_text('[mounts]\n"a.md" = "/etc/passwd"\n')
    assert findings(root) == [(".mdmem/config.toml", "config-invalid", "error")]


# ---------------------------------------------------------------------------------------- config and schemas


@pytest.mark.parametrize("config", ["[limits", "[limits]\nmax_bytes = -1\n", "\xff", "[mounts]\na = 1\n"])
def test_a_broken_config_is_one_finding_and_the_rest_is_still_looked_at(root: Path, config: str) -> None:
    (root / ".mdmem/config.toml").write_bytes(config.encode("latin-1"))
    (root / ".mdmem/schemas").mkdir()
    (root / ".mdmem/schemas/bad.json").write_text("{")
    found = health(root)
    assert [f.path for f in found.findings] == [".mdmem/config.toml", ".mdmem/schemas/bad.json"]
    assert found.findings[0].code == "config-invalid"
    assert "ripgrep" in found.facts


def test_what_a_config_says_for_a_later_version_is_a_warning(root: Path) -> None:
    (root / ".mdmem/config.toml").write_text("[trash]\nmax_day = 1\n[later]\na = 1\n")
    assert findings(root) == [(".mdmem/config.toml", "config-unknown", "warning")] * 2


def test_broken_schemas_are_found(root: Path) -> None:
    (root / ".mdmem/schemas").mkdir()
    (root / ".mdmem/schemas/type.json").write_text('{"type": "nothing"}')
    (root / ".mdmem/schemas/ref.json").write_text('{"$ref": "missing"}')
    (root / ".mdmem/schemas/good.json").write_text('{"$ref": "note"}')
    assert {path for path, _, severity in findings(root) if severity == "error"} == {
        ".mdmem/schemas/type.json",
        ".mdmem/schemas/ref.json",
    }


def test_broken_templates_are_found(root: Path) -> None:
    (root / ".mdmem/templates").mkdir()
    (root / ".mdmem/templates/daily.md").write_text("\n{% if %}")
    (root / ".mdmem/templates/note.md").write_text("{{ title }}\n")
    assert findings(root) == [(".mdmem/templates/daily.md", "template-broken", "error")]


# -------------------------------------------------------------------------------------- names and programs


def test_files_that_cannot_be_memories_are_warnings(root: Path) -> None:
    (root / "link.md").symlink_to("AGENTS.md")
    (root / "notes").mkdir()
    (root / "notes/tab\there.md").touch()
    assert findings(root) == [
        ("link.md", "not-a-memory", "warning"),
        ("notes/tab\\x09here.md", "not-a-memory", "warning"),
    ]


def test_names_that_not_every_system_can_hold_or_tell_apart_are_warnings(root: Path) -> None:
    """One for each file or folder, and none for what only lies below it."""
    twins = ("n/E.md", "n/e.md", "n/fine.md", "N/E.md", "n/\u00c9/x.md", "n/\u00e9/x.md")
    put(root, dict.fromkeys((*twins, "con/a?.md", "con/b.md", "n/x\u200by.md"), "x\n"))
    memory = Memory(str(root))
    found = {(f.path, f.code): f for f in memory.doctor().findings}
    memory.index.close()
    assert set(found) == {
        *(("con", "unportable-name"), ("con/a?.md", "unportable-name"), ("n/x\u200by.md", "unportable-name")),
        *(("n", "case-twin"), ("n/e.md", "case-twin"), ("n/\u00e9", "case-twin")),
    }
    assert {f.severity for f in found.values()} == {"warning"}
    assert "from n/E.md: the same name on macOS and Windows" in found["n/e.md", "case-twin"].message
    assert "device" in found["con", "unportable-name"].message
    assert all("mdmem mv" in f.hint for f in found.values())


def test_a_missing_ripgrep_is_found_and_named(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = health(root)
    assert [(f.path, f.code) for f in found.findings] == [("rg", "ripgrep-missing")]
    assert "pip install" in found.findings[0].hint
    assert "ripgrep" not in found.facts


def test_a_ripgrep_that_cannot_be_run_is_found(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/rg"
    program.parent.mkdir()
    program.write_text("no program")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    assert [f.code for f in health(root).findings] == ["ripgrep-failed"]


def test_everything_wrong_at_once_is_told_at_once(root: Path) -> None:
    (root.parent / ".mdmem-x.0").touch()
    (root / "AGENTS.md").touch()
    (root / "link.md").symlink_to("AGENTS.md")
    (root / ".mdmem/schemas").mkdir()
    (root / ".mdmem/schemas/bad.json").write_text("{")
    assert {code for _, code, _ in findings(root)} == {
        "leftover",
        "mount-shadows",
        "not-a-memory",
        "invalid-json",
    }


# ---------------------------------------------------------------------------------------- links and the index


def put(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def told(root: Path, scope: Scope | None = None, *, fix: bool = False) -> list[tuple[str, str, int]]:
    """What a doctor finds who comes new to the vault: path, code, line."""
    memory = Memory(str(root), scope)
    found = memory.doctor(fix=fix).findings
    memory.index.close()
    return [(finding.path, finding.code, finding.position.line) for finding in found]


def test_links_that_lead_nowhere_or_to_several_are_warnings_where_they_stand(root: Path) -> None:
    put(
        root,
        {
            "a.md": "# A\n\n[[nowhere]] [[b]]\n[x](b.md#gone)\n",
            "b.md": "[[a]]",
            "one/c.md": "",
            "two/c.md": "",
        },
    )
    put(root, {"d.md": "[[c]] [[a#^no]]\n"})
    memory = Memory(str(root))
    found = {(f.path, f.position.line, f.code): f for f in memory.doctor().findings}
    assert found.keys() == {
        ("a.md", 3, "dangling-link"),
        ("a.md", 4, "dangling-link"),
        ("d.md", 1, "ambiguous-link"),
        ("d.md", 1, "dangling-link"),
    }
    assert "nowhere" in found["a.md", 3, "dangling-link"].message
    assert "two/c.md" in found["d.md", 1, "ambiguous-link"].message
    assert {finding.severity for finding in found.values()} == {"warning"}
    assert all(finding.hint for finding in found.values())
    memory.index.close()


def test_ids_that_two_memories_have_are_named_with_both(root: Path) -> None:
    put(root, {f"{name}.md": "---\nid: one\n---\n[[a]]\n" for name in "ab"})
    put(root, {"c.md": "---\nid: two\n---\n"})
    memory = Memory(str(root))
    found = [f for f in memory.doctor().findings if f.code == "duplicate-id"]
    assert [f.path for f in found] == ["a.md", "b.md"]
    assert {f.message for f in found} == {"2 memories have the id 'one': a.md, b.md"}
    memory.index.close()


def test_an_id_that_many_have_is_told_at_each_with_a_few_of_them_and_how_many_more(root: Path) -> None:
    put(root, {f"{number}.md": "---\nid: one\n---\n" for number in range(6)})
    memory = Memory(str(root))
    found = {f.path: f.message for f in memory.doctor().findings if f.code == "duplicate-id"}
    assert found["1.md"] == "6 memories have the id 'one': 0.md, 1.md, 2.md, 3.md and 2 more"
    assert len(found) == 6
    memory.index.close()


def test_what_is_joined_to_nothing_is_counted(root: Path) -> None:
    put(root, {"a.md": "[[b]]\n", "b.md": "b", "alone.md": "x", "self.md": "[[#x]]\n", "tag.md": "#tag\n"})
    facts = Memory(str(root)).doctor().facts
    assert facts["indexed"] == 6  # AGENTS.md
    assert facts["orphans"] == 3


def test_files_that_cannot_be_memories_are_told_once(root: Path) -> None:
    put(root, {"a.md": "x"})
    (root / "bad.md").write_bytes(b"\xff")
    (root / "link.md").symlink_to("a.md")
    assert sorted(told(root)) == [("bad.md", "not-a-memory", 1), ("link.md", "not-a-memory", 1)]


def garbled(root: Path) -> Memory:
    """A memory whose index says something else than its files, and believes that it is current."""
    put(root, {"a.md": "one\n", "b.md": "[[a]]\n", "c.md": "c\n"})
    memory = Memory(str(root))
    memory.sync()
    while memory.index.rows("SELECT 1 FROM documents WHERE racy"):
        memory.sync()
    database, text = memory.index._open_database(), memory.index._open_text_index()
    with database.writing():
        database.write("UPDATE documents SET hash = 'wrong' WHERE path = 'a.md'", [()])
    text.remove("c.md")
    with database.writing():
        database.set_value("opstamp", text.commit())
    return memory


def test_a_dry_run_of_the_fixes_shows_them_and_makes_none(root: Path) -> None:
    memory = Memory(str(root))
    memory.write("goal.md", "# Goal\n\nIt stays what it is.\n")
    memory.write("way.md", "See [[goal]].\n")
    memory.sync()
    (root / "goal.md").rename(root / "moved.md")
    would = memory.doctor(fix=True, dry_run=True)
    assert would.facts["fixed"] == "way.md"
    assert "+See [[moved]]." in would.diff
    assert memory.show("way.md").text == "See [[goal]].\n"
    fixed = memory.doctor(fix=True)
    assert (fixed.facts["fixed"], fixed.diff) == ("way.md", "")
    assert memory.show("way.md").text == "See [[moved]].\n"


def test_an_index_that_differs_from_the_files_is_found_and_made_anew(root: Path) -> None:
    memory = garbled(root)
    assert [(f.path, f.code, f.severity) for f in memory.doctor().findings] == [
        ("a.md", "index-differs", "error"),
        ("c.md", "index-differs", "error"),
    ]
    assert memory.doctor(fix=True).findings == ()
    assert memory.index.text(lambda text: text.paths()) == ["AGENTS.md", "a.md", "b.md", "c.md"]
    memory.index.close()


def test_a_text_that_no_memory_has_is_found(root: Path) -> None:
    memory = garbled(root)
    database = memory.index._open_database()
    with database.writing():
        database.write("UPDATE documents SET hash = 'x', problem = 'x' WHERE path = 'b.md'", [()])
    assert ("b.md", "index-differs") in [(f.path, f.code) for f in memory.doctor().findings]
    memory.index.close()


def test_a_scope_hears_of_its_own_links_and_index_only(root: Path) -> None:
    for user in ("al", "albert"):
        put(root, {f"users/{user}/a.md": f"---\nid: x\n---\n[[nowhere]] {user}\n"})
    assert told(root, Scope(user="al")) == [("a.md", "dangling-link", 4)]
    put(root, {"users/al/a.md": "---\nid: x\n---\n"})
    assert told(root, Scope(user="al")) == []


def test_an_index_that_stands_elsewhere_is_a_fact(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (root / ".mdmem/local").mkdir()
    (root / ".mdmem/local/index").symlink_to(tmp_path)
    assert str(tmp_path / "cache") in str(Memory(str(root)).doctor().facts["index"])


# ---------------------------------------------------------------------------------- moves by other programs

MOVED = {
    "a.md": "# A\n\n[[b]] [[b|B]] ![[b#One]] [x](b.md) [y](<b.md#one>)\n\n[r]: b.md\n",
    "deep/c.md": "---\nsee: '[[b]]'\n---\n[z](../b.md)\n",
    "b.md": "# One\n\n[to a](a.md) [to c](deep/c.md) [[a]]\n",
}


def test_a_link_to_what_another_program_moved_says_where_it_is(root: Path) -> None:
    put(root, MOVED)
    Memory(str(root)).sync()
    (root / "b.md").rename(root / "other.md")
    memory = Memory(str(root))
    found = [f for f in memory.doctor().findings if f.path == "a.md"]
    assert {f.code for f in found} == {"dangling-link"}
    assert {f.hint for f in found} == {"it has moved to other.md: `mdmem doctor --fix`"}
    memory.index.close()


def test_each_link_to_what_other_programs_moved_is_told_its_own_new_place(root: Path) -> None:
    put(root, {f"{n}.md": f"# {n}\n\nText of {n}.\n" for n in "bcd"})
    put(root, {"a.md": "[[b]] [[c#c]]\n[d](./d.md) [[never]]\n"})
    Memory(str(root)).sync()
    for name in "bcd":
        (root / f"{name}.md").rename(root / f"far-{name}.md")
    memory = Memory(str(root))
    found = [(f.message, f.hint) for f in memory.doctor().findings]
    moved = "it has moved to far-{}.md: `mdmem doctor --fix`".format
    assert found == [
        ("there is no memory 'b'", moved("b")),
        ("there is no memory 'c'", moved("c")),
        ("there is no memory './d.md'", moved("d")),
        ("there is no memory 'never'", "make it, or remove the link"),
    ]
    memory.index.close()


# Memories of a few folders that link to each other in every form, and where other programs move them.
PLACES = ["a.md", "b.md", "x/a.md", "x/b.md", "x/c.md", "y/a.md", "y/d.md", "y/z/c.md"]
FORMS = [
    "[[{stem}]]",
    "[[{path}]]",
    "[t]({way})",
    "[t](./{way}#h)",
    "[t](/{path})",
    "[[{path}#H]]",
    "![[{stem}]]",
]


@st.composite
def moved_trees(draw: st.DrawFn) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Draw memories, with a link in each line, and moves of some of them."""
    paths = draw(st.lists(st.sampled_from(PLACES), min_size=2, max_size=5, unique=True))
    files = {}
    for path in paths:
        lines = [f"# H\n\nText of {path}.\n\n"]
        for target, form in draw(
            st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(FORMS)), max_size=4)
        ):
            way = os.path.relpath(target, os.path.dirname(path))
            lines.append(form.format(stem=target.rpartition("/")[2][:-3], path=target[:-3], way=way) + "\n\n")
        files[path] = "".join(lines)
    free = [place for place in (*PLACES, "w/a.md", "w/e.md", "f.md") if place not in paths]
    olds = draw(st.lists(st.sampled_from(paths), min_size=1, max_size=2, unique=True))
    news = draw(st.lists(st.sampled_from(free), min_size=len(olds), max_size=len(olds), unique=True))
    return files, list(zip(olds, news, strict=True))


@given(tree=moved_trees())
@example(
    tree=({"x/a.md": "# H\n\n[t](b.md)\n", "y/b.md": "# B\n"}, [("x/a.md", "y/a.md"), ("y/b.md", "w/b.md")])
)
@example(tree=({"x/a.md": "# H\n\n[t](b.md#none)\n", "x/b.md": "# B\n"}, [("x/a.md", "y/a.md")]))
@example(tree=({"a.md": "# H\n\n[t](x/b.md)\n\n[[y/b]]\n", "y/b.md": "# B\n"}, [("y/b.md", "w/e.md")]))
def test_the_doctor_mends_each_link_of_which_it_is_said_and_no_other(
    tree: tuple[dict[str, str], list[tuple[str, str]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    files, moves = tree
    root = tmp_path_factory.mktemp("moved") / "memories"
    init(root)
    put(root, files)
    Memory(str(root)).sync()
    for old, new in moves:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)
    memory = Memory(str(root))

    def dangling() -> dict[tuple[str, int], tuple[str, str]]:
        found = (each for each in memory.check() if each.code == "dangling-link")
        return {(each.path, each.position.line): (each.message, each.hint) for each in found}

    before = dangling()
    said = {place for place, (_, hint) in before.items() if "mdmem doctor --fix" in hint}
    told = {(f.message, f.hint) for f in memory.doctor().findings if f.code == "dangling-link"}
    assert told == set(before.values())
    memory.doctor(fix=True)
    after = dangling()
    memory.index.close()
    assert not any("mdmem doctor --fix" in hint for _, hint in after.values())
    # Of what was mended, at most the heading is not there.
    assert all("has no heading" in after[place][0] for place in said & after.keys())
    assert {place for place in after if place not in said} == before.keys() - said


def statements(memory: Memory) -> int:
    """How many statements the doctor runs in the database of an index that is current."""
    memory.sync()
    while memory.index.rows("SELECT 1 FROM documents WHERE racy"):
        memory.sync()
    seen: list[str] = []
    memory.index._open_database()._connection.set_trace_callback(seen.append)
    memory.doctor()
    memory.index.close()
    return len(seen)


def test_more_links_that_lead_nowhere_are_no_more_questions_to_the_index(root: Path) -> None:
    put(root, {"a.md": "[[gone]]\n", "b.md": "b\n"})
    few = statements(Memory(str(root)))
    put(root, {"a.md": "".join(f"[[gone-{number}]]\n" for number in range(50))})
    assert statements(Memory(str(root))) == few


@pytest.mark.parametrize("program", ["mv", "git mv"])
@pytest.mark.parametrize("target", ["other.md", "new/place/other.md"])
def test_links_are_mended_after_other_programs_moved_a_memory(root: Path, program: str, target: str) -> None:
    put(root, MOVED)
    if program == "git mv":
        shutil.rmtree(root.parent / ".git")
        for command in (("init", "-q"), ("add", "-A")):
            subprocess.run(["git", *command], cwd=root.parent, check=True)
    Memory(str(root)).sync()
    (root / target).parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([*program.split(), "b.md", target], cwd=root, check=True)
    assert {code for _, code, _ in told(root)} == {"dangling-link"}
    assert told(root, fix=True) == []
    folder = "../" * target.count("/")
    assert (root / "a.md").read_text() == MOVED["a.md"].replace("[[b", "[[other").replace("b.md", target)
    assert (root / "deep/c.md").read_text() == MOVED["deep/c.md"].replace("[[b", "[[other").replace(
        "b.md", target
    )
    assert (root / target).read_text() == MOVED["b.md"].replace("(a.md", f"({folder}a.md").replace(
        "(deep", f"({folder}deep"
    )
    Memory(str(root)).undo()
    assert (root / "a.md").read_text() == MOVED["a.md"]


def test_a_chain_of_moves_and_a_folder_are_mended(root: Path) -> None:
    put(root, MOVED)
    Memory(str(root)).sync()
    (root / "b.md").rename(root / "second.md")
    Memory(str(root)).sync()
    (root / "second.md").rename(root / "third.md")
    (root / "deep").rename(root / "deeper")
    assert told(root, fix=True) == []
    assert "[[third]]" in (root / "a.md").read_text()
    assert "[to c](deeper/c.md)" in (root / "third.md").read_text()


def test_where_nothing_is_wrong_nothing_is_written(root: Path) -> None:
    put(root, {"a.md": "[[b]]\n", "b.md": "b\n"})
    memory = Memory(str(root))
    memory.sync()
    assert memory.doctor(fix=True).findings == ()
    assert memory.history() == []
    memory.index.close()


def test_leftovers_are_removed_where_that_is_safe(root: Path, staging: Path) -> None:
    (staging / "20240131T120000000000-aaaa.7").write_text("nobody's")
    (root.parent / ".mdmem-x.0").touch()
    assert {code for _, code, _ in told(root)} == {"leftover", "not-from-here"}
    assert told(root, fix=True) == [(".mdmem/local/aside", "not-from-here", 1)]
    assert not list(staging.iterdir())


# ------------------------------------------------------------------------------- what came with the files


def test_local_state_in_git_is_a_finding(root: Path) -> None:
    Memory(str(root)).write("notes/a.md", "a\n")
    local = "memories/.mdmem/local"
    for words in (["init", "--quiet"], ["add", "--force", local]):
        subprocess.run(["git", *words], cwd=root.parent, check=True)
    assert (".mdmem/local", "local-tracked", "error") in findings(root)
    subprocess.run(["git", "rm", "-r", "--cached", "--quiet", local], cwd=root.parent, check=True)
    assert findings(root) == []


def test_local_state_that_was_made_elsewhere_is_named_and_removed(root: Path) -> None:
    memory = Memory(str(root))
    memory.write("notes/a.md", "a\n")
    memory.sync()
    local = root / ".mdmem/local"
    (local / "index/other").mkdir()
    (local / "index/other/database.sqlite").write_bytes(b"x")
    (local / "index/database.sqlite").write_bytes(b"x")
    with (local / "trash/log.jsonl").open("ab") as log:
        log.write(b'{"id":"x"}\n')
    (local / "staging/x.many").write_text("{}")
    found = [(finding.path, finding.message[:2]) for finding in health(root).findings]
    assert found == [
        (".mdmem/local/trash", "1 "),
        (".mdmem/local/index", "2 "),
        (".mdmem/local/aside", "1 "),
    ]
    Memory(str(root)).doctor(fix=True)
    assert len(os.listdir(local / "index")) == 1
    assert Memory(str(root)).search("a").hits


def test_a_config_that_asks_for_conversations_is_a_finding_until_the_user_allows_it(tmp_path: Path) -> None:
    root = Path(init(tmp_path / "memories").root)
    (root / ".mdmem/config.toml").write_text('[sessions]\ncapture = "hooks"\n')
    assert findings(root) == [(".mdmem/config.toml", "not-allowed", "warning")]
    Memory(str(root)).sessions.allow_capture()
    assert findings(root) == []
    Memory(str(root)).sessions.allow_capture(off=True)
    assert len(findings(root)) == 1


def test_conversations_that_git_would_take_are_a_finding(tmp_path: Path) -> None:
    """In any namespace; not in a vault that `init` made, and not where there are none."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "AGENTS.md").touch()
    root = Path(init(tmp_path / "memories").root)
    for scope in (None, Scope(user="alice")):
        Memory(str(root), scope).sessions.add("s", "user", "x")
    assert findings(root) == []
    Memory(str(root)).sessions.delete("s")
    Memory(str(root)).sessions.add("t", "user", "x")
    (root / ".gitignore").write_text("sessions/*.jsonl\n")  # neither the archive nor those of users
    assert findings(root) == [
        ("sessions", "sessions-in-git", "warning"),
        ("users/alice/sessions", "sessions-in-git", "warning"),
        (".gitignore", "not-ignored", "warning"),
    ]
    shutil.rmtree(root / "sessions")
    shutil.rmtree(root / "users")
    assert findings(root) == [(".gitignore", "not-ignored", "warning")]


def test_memories_that_git_ignores_are_a_finding_without_those_that_mdmem_keeps_out(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "AGENTS.md").touch()
    memory = Memory(init(tmp_path / "memories").root)
    memory.working.update("Goal: x", thread="t1")
    memory.write("notes/a.md", "a\n")
    memory.write("notes/b.md", "b\n")
    subprocess.run(["git", "add", "AGENTS.md", "memories/notes/b.md"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("*.md\n")
    (found,) = memory.doctor().findings
    assert (found.path, found.code, found.severity) == ("notes/a.md", "git-ignores", "warning")
    assert found.message == "git ignores 1 memory: notes/a.md"
    command = found.hint.split("`")[1]
    said = subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said.startswith(".gitignore:1:*.md")
    (tmp_path / ".gitignore").unlink()
    assert memory.doctor().findings == ()


def git_shows(folder: Path) -> str:
    command = ["git", "-C", str(folder), "status", "--short", "--untracked-files=all"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_private_files_that_git_does_not_ignore_are_a_finding_that_is_fixed(tmp_path: Path) -> None:
    """Not in a scope, which the file of the vault is no part of."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "AGENTS.md").touch()
    root = Path(init(tmp_path / "memories").root)
    memory = Memory(str(root))
    memory.working.update("Goal: x", thread="t1")
    memory.sessions.add("t1", "user", "x")
    ignored = (root / ".gitignore").read_bytes()
    (root / ".gitignore").write_bytes(b"mine")
    assert "working" in git_shows(tmp_path)
    (found,) = (each for each in health(root).findings if each.code == "not-ignored")
    assert found.path == ".gitignore"
    assert found.message.startswith("lacks lines that keep private files out of git: /working/, ")
    assert "not-ignored" not in {each.code for each in Memory(str(root), Scope(user="a")).doctor().findings}
    told = [each for each in memory.status().setup if ".gitignore" in each]
    assert told == [
        ".gitignore lacks 10 lines that keep private files out of git: `mdmem doctor --fix` adds them"
    ]
    assert memory.doctor(fix=True, dry_run=True).facts["fixed"] == ".gitignore"
    assert (root / ".gitignore").read_bytes() == b"mine"
    Memory(str(root), Scope(user="a")).doctor(fix=True)
    assert (root / ".gitignore").read_bytes() == b"mine"
    fixed = memory.doctor(fix=True)
    assert (fixed.facts["fixed"], fixed.findings) == (".gitignore", ())
    assert (root / ".gitignore").read_bytes() == b"mine\n" + ignored
    assert not re.search("working|sessions", git_shows(tmp_path))
    assert not any(".gitignore" in each for each in memory.status().setup)
    (root / ".gitignore").unlink()
    assert not memory.doctor(fix=True).findings
    assert (root / ".gitignore").read_bytes() == ignored


@pytest.mark.parametrize(
    ("where", "rules"),
    [
        ("memories", "working/\n**/sessions/*.jsonl\n**/sessions/.archive/\n"),
        (".", "memories/\n"),
        ("memories", "*\n"),
        ("memories", None),  # outside of a repository
    ],
)
def test_private_files_that_other_rules_keep_out_of_git_are_no_finding(
    tmp_path: Path, where: str, rules: str | None
) -> None:
    root = Path(init(tmp_path / "memories").root)
    (root / ".gitignore").unlink()
    if rules:
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        (tmp_path / where / ".gitignore").write_text(rules)
    assert findings(root) == []


def test_an_ignore_file_that_is_a_link_is_not_followed_by_a_fix(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "AGENTS.md").touch()
    root = Path(init(tmp_path / "memories").root)
    (root / ".gitignore").rename(tmp_path / "rules")
    (root / ".gitignore").symlink_to("../rules")
    (found,) = Memory(str(root)).doctor(fix=True).findings
    assert found.hint.startswith("it is no regular file: put one there, with the lines /working/ ")
    assert (root / ".gitignore").is_symlink()


def test_a_clone_without_the_merge_driver_that_its_attributes_name_is_told(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    memory = Memory(init(tmp_path / "memories").root)
    memory.git.install().apply()
    assert memory.doctor().findings == ()
    subprocess.run(["git", "config", "--unset", "merge.mdmem.driver"], cwd=tmp_path, check=True)
    (found,) = memory.doctor().findings
    assert (found.path, found.code) == (".gitattributes", "merge-driver-missing")
    assert found.hint == "`mdmem git install`"
    assert f"{found.message}; {found.hint}" in memory.status().setup


def test_no_fact_begins_with_its_own_name(tmp_path: Path) -> None:
    """As `meaning` did where the embedder cannot be used."""
    root = init(tmp_path / "memories").root
    facts = Memory(root, embedder="minilm").doctor().facts
    assert "meaning" in facts
    assert [name for name, value in facts.items() if str(value).startswith(f"{name}:")] == []
