"""Duplicates: what counts as one, what each has alone, and one memory made of several."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import mdmem
from mdmem import Memory
from mdmem.errors import AlreadyExists, Conflict, Usage
from tests.tables import cases

LOCKS = """\
# Locks

The write lock of a vault is an flock on one file, held for milliseconds and never while git runs.

- A crash gives the lock back at once, so that no lease and no clean-up is needed.
- Eight writers of one file lost nothing in four hundred edits when we tried it in March.
- A lock file with a process id was tried before; it stayed behind after a crash.

## Where it fails

Network file systems that lie about flock are refused with a word about what to do.
"""
PARTS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return mdmem.open(mdmem.init(tmp_path / "memories").root)


def write(memory: Memory, **texts: str) -> None:
    for name, text in texts.items():
        memory.write(f"notes/{name}.md", text, overwrite=True)


def pairs(memory: Memory, **asked: str) -> list[tuple[str, str]]:
    return [(pair.path[6:-3], pair.other[6:-3]) for pair in memory.duplicates(**asked)]


def other_words(text: str, number: int) -> str:
    """A text of the same form with other words."""
    return " ".join(f"{word}{number}" if word.isalpha() else word for word in text.split(" "))


@cases(
    "other",
    [
        LOCKS,
        LOCKS.replace("# Locks", "# How locks are held"),
        LOCKS.replace("in March", "in spring") + "\nSee the journal as well.\n",
        f"---\ntags: [lock]\ncreated: 2020-01-01\n---\n{LOCKS}\n## Related\n\n- [[journal]]\n- [[undo]]\n",
        LOCKS.replace(" an flock on\n", "\nan flock on ").replace("- A", "* A"),
    ],
)
def test_what_says_the_same_is_a_pair_whatever_its_title_fields_and_links(tmp_path: Path, other: str) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    write(memory, a=LOCKS, b=other, c=other_words(LOCKS, 1))
    assert {frozenset(pair) for pair in pairs(memory)} == {frozenset("ab")}


def test_chinese_text_is_compared_by_its_characters(memory: Memory) -> None:
    text = "写锁是一个文件上的锁，只持有几毫秒，进程崩溃时立刻释放，因此不需要租约，也不需要清理。"
    write(
        memory,
        a=f"# 锁\n\n{text}\n",
        b=f"# 写锁\n\n{text}\n",
        c="# 别的\n\n备份在每天夜里两点运行，保存三十天。\n",
    )
    assert {frozenset(pair) for pair in pairs(memory)} == {frozenset("ab")}


def test_what_a_template_repeats_makes_no_pair(memory: Memory) -> None:
    form = LOCKS.replace("vault", "{0}").replace("March", "{0}")
    write(memory, **{part: form.format(part).replace("# Locks", f"# {part}") for part in PARTS})
    assert pairs(memory) == []


def test_what_each_title_says_alone_makes_no_pair(memory: Memory) -> None:
    text = LOCKS + "\nCall `{0}` for that.\n"
    write(memory, a=text.format("IsAncestor").replace("# Locks", "# IsAncestor"))
    write(memory, b=text.format("IsDescendant").replace("# Locks", "# IsDescendant"))
    assert pairs(memory) == []
    # The other one may name it, as pages of a manual do.
    text += "Beside it there is {1}. Of all ways `{0}` is the one that {0} itself prefers.\n"
    write(memory, a=text.format("cupsaccept", "cupsreject").replace("# Locks", "# cupsaccept"))
    write(memory, b=text.format("cupsreject", "cupsaccept").replace("# Locks", "# cupsreject"))
    assert pairs(memory) == []


@cases(
    "name, other, is_pair",
    [
        ("task_1770_38", "task_1771_84", False),
        ("run 5", "run 6", False),
        ("2026-W12-Mar13", "2026-W12-Mar20", False),
        ("db", "db 2", True),  # a copy that a program for synchronising made
        ("db", "old-db", True),
    ],
)
def test_names_that_differ_in_numbers_alone_are_of_a_series(
    tmp_path: Path, name: str, other: str, is_pair: bool
) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    write(memory, **{name: LOCKS + "\nIt began at 10:00.\n", other: LOCKS + "\nIt began at 11:00.\n"})
    assert bool(pairs(memory)) is is_pair
    write(memory, **{other: LOCKS + "\nIt began at 10:00.\n"})
    assert len(pairs(memory)) == 1


@cases(
    "name, other, uses, is_pair",
    [
        ("git-clear", "git-clear-soft", "A soft one keeps what is ignored.", False),
        ("gdm restart", "gdm safe restart", "When it is safe.", False),
        ("plan", "plan-v2", "The v2 is final.", True),  # a version, as its number says
        ("db", "db 2", "It tries 2 times.", True),
        ("db", "old-db", "It was found by chance.", True),  # the text does not say it
        ("day", "day-jobs", "It found jobs.", True),  # and here both do
    ],
)
def test_a_name_with_one_word_more_that_its_own_text_alone_uses_is_about_something_narrower(
    tmp_path: Path, name: str, other: str, uses: str, is_pair: bool
) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    write(memory, **{name: LOCKS + "\nThe jobs it runs are ten.\n", other: f"{LOCKS}\n{uses}\n"})
    assert bool(pairs(memory)) is is_pair
    write(memory, **{name: LOCKS})
    assert len(pairs(memory)) == 1  # nothing is lost where one holds all that the other says
    memory.mv(f"notes/{name}.md", f"elsewhere/{name}.md")
    memory.append(f"elsewhere/{name}.md", "Ten jobs are run.")
    assert len(pairs(memory)) == 1


def test_of_folders_that_tell_of_the_same_things_otherwise_only_equal_files_are_a_pair(
    memory: Memory,
) -> None:
    for number in range(9):
        own = other_words(LOCKS, number)
        memory.write(f"linux/page{number}.md", own + "\nHere the kernel does it.\n")
        memory.write(f"osx/page{number}.md", own + "\nHere launchd does it.\n")
    assert memory.duplicates() == memory.duplicates(path="osx/page0.md") == ()
    memory.write("osx/page0.md", memory.show("linux/page0.md").text, overwrite=True)
    assert len(memory.duplicates()) == 1
    for number in range(4):
        memory.write(f"osx/page{number}.md", memory.show(f"linux/page{number}.md").text, overwrite=True)
    assert len(memory.duplicates()) == 9  # a backup, to which something has been added since


@cases("fence", ["```", "~~~~text"])
def test_what_quotes_another_one_as_code_is_about_it(tmp_path: Path, fence: str) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    write(memory, a=LOCKS, b=f"# Evidence\n\nIt was added.\n\n{fence}\n{LOCKS}{fence[:4].rstrip('t')}\n")
    assert pairs(memory) == []
    write(memory, a=f"# Use\n\n{fence}\n{LOCKS}", b=f"# How it is used\n\n{fence}\n{LOCKS}")
    assert len(pairs(memory)) == 1


@cases(
    "path, other",
    [
        *((f"agents/{name}.md", f"notes/{name}.md") for name in ("README", "SKILL", "SOUL")),
        ("sessions/a.md", "sessions/b.md"),
        ("working/threads/a.md", "notes/b.md"),
        ("observations/t/a.md", "notes/b.md"),
        ("AGENTS.md", "notes/b.md"),
        ("users/ada/notes/a.md", "users/bob/notes/a.md"),
        ("notes/a.md", "projects/p/notes/a.md"),
    ],
)
def test_what_stands_for_a_time_or_belongs_to_somebody_else_is_not_compared(
    tmp_path: Path, path: str, other: str
) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    for each in (path, other):
        file = Path(memory.root, each)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(LOCKS)
    assert memory.duplicates() == ()


def test_what_does_not_count_is_not_compared_and_what_cannot_be_read_is_named(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS, d=LOCKS)
    Path(memory.root, "notes/c.md").write_text(f"---\ntags: [a\n  b: :\n---\n{LOCKS}")
    memory.supersede("notes/a.md", "notes/b.md")
    found = memory.duplicates()
    assert [{*pair[:2]} for pair in found] == [{"notes/b.md", "notes/d.md"}]
    assert [each for each in memory.service.remarks if each.startswith("left out: notes/c.md: ")]


def test_the_lines_that_each_has_alone_are_told(memory: Memory) -> None:
    write(memory, a=LOCKS + "\nThe limit is -1.\n", b=LOCKS + "\nThe limit is 1.\n")
    (pair,) = memory.duplicates()
    assert {pair.alone, pair.other_alone} == {("The limit is -1.",), ("The limit is 1.",)}
    assert not pair.is_same
    write(memory, c=LOCKS + "\n- [[a]]\n")
    assert any(pair.is_same for pair in memory.duplicates()) is False


def test_blanks_and_lines_of_links_make_no_difference(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS.replace("\n\n", "\n\n\n") + "\n- [[a]]\n- [x](y.md)\n")
    (pair,) = memory.duplicates()
    assert pair.is_same


def test_what_is_compared_may_be_named(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS + "\nOne more line for b.\n", c=other_words(LOCKS, 1))
    memory.write("old/d.md", LOCKS)
    assert len(pairs(memory, within="old")) == 0
    assert len(memory.duplicates(path="notes/b.md")) == 1
    assert pairs(memory, path="notes/c.md") == []
    with pytest.raises(mdmem.NotFound):
        memory.duplicates(path="notes/nothing.md")


def test_many_copies_and_a_long_line_are_bounded_and_said(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.memory.duplicates._MOST_PAIRS", 5)
    for number in range(10):
        write(memory, **{f"n{number}": LOCKS})
    write(memory, long="word " * 400_000)
    found = memory.duplicates()
    assert len(found) == 5
    assert "left out: notes/long.md: all behind its first 100,000 words" in memory.service.remarks
    assert "left out: 4 further pairs: make one of some of these first" in memory.service.remarks


def test_check_says_of_a_named_memory_what_repeats_it(memory: Memory) -> None:
    write(memory, a=LOCKS, b=LOCKS, c=other_words(LOCKS, 1))
    assert [(each.code, each.severity, each.rule) for each in memory.check(["notes/a.md"])] == [
        ("duplicate", "note", "notes/b.md")
    ]
    assert memory.check(["notes/c.md"]) == memory.check() == memory.check(["notes/a.md"], links=False) == []
    form = LOCKS.replace("vault", "{0}").replace("March", "{0}")
    write(memory, **{part: form.format(part) for part in PARTS})
    assert memory.check([f"notes/{PARTS[0]}.md"]) == []


# -- merge -------------------------------------------------------------------------------------------------


def test_a_merge_takes_over_what_the_others_have_alone_under_its_heading(memory: Memory) -> None:
    write(
        memory,
        a="---\ntags: [lock, vault]\nsource: {type: agent, ids: [s1]}\n---\n"
        + LOCKS.replace("# Locks", "# Old locks")
        + "\nOn AFS it was refused in each test that we ran.\n\n## Peers\n\nOthers use leases.\n",
        b="---\n# kept\ntags: [vault, new]\nsource: {type: user, ids: [s2]}\n---\n" + LOCKS,
    )
    before = {path: memory.show(path).data for path in ("notes/a.md", "notes/b.md")}
    memory.merge(["notes/a.md", "notes/b.md"], "notes/b.md")

    merged = memory.show("notes/b.md")
    assert merged.body == (
        LOCKS + "\nOn AFS it was refused in each test that we ran.\n\n## Peers\n\nOthers use leases.\n"
    )
    assert "# kept" in merged.text
    assert merged.fields["tags"] == ["lock", "vault", "new"]
    assert merged.fields["source"] == {"type": "user", "ids": ["s1", "s2"]}
    assert merged.fields["derived_from"] == ["notes/a.md"]
    assert memory.states() == {"notes/a.md": "superseded"}
    memory.undo()
    assert {path: memory.show(path).data for path in before} == before


@cases(
    "alone, there",
    [
        (
            "It speaks plain HTTP behind the proxy. Never restart it by day.",
            "It speaks plain HTTP behind the proxy.",
        ),
        ("Port 9000 is where every client connects.", "Port 8000 is where every client connects."),
        ("The limit of a lock is -1 minutes at most.", "The limit of a lock is 1 minutes at most."),
        ("It never speaks plain HTTP to the proxy.", "It speaks plain HTTP to the proxy."),
        (
            "| name | port |\n|---|---|\n| api | 9000 |\n| web | 3000 |",
            "| name | port |\n|---|---|\n| api | 8000 |",
        ),
        ("```sh\nrun --port=9000 --quiet\n```", "```sh\nrun --port 9000 quiet\n```"),
        ("- Keep it for a minute at most, then let go.", "- Keep it for an hour at most, then let go."),
    ],
)
def test_a_merge_loses_nothing_that_is_said_nearly_alike(tmp_path: Path, alone: str, there: str) -> None:
    for number, (one, other) in enumerate(((alone, there), (there, alone))):
        memory = mdmem.open(mdmem.init(tmp_path / f"memories-{number}").root)
        write(memory, a=f"# Server\n\n{one}\n", b=f"# Server\n\n{other}\n")
        memory.merge(["notes/a.md", "notes/b.md"], "notes/b.md")
        merged = memory.show("notes/b.md").body
        assert other in merged
        assert all(line in merged for line in one.splitlines() if alone is one)


def test_a_merge_may_make_a_new_memory_of_a_text_that_is_given(memory: Memory) -> None:
    write(memory, a="# A\n\nOne.\n", b="# B\n\nTwo.\n")
    memory.merge(["notes/a.md", "notes/b.md"], "notes/c.md", "# Both\n\nOne and two.\n")
    assert memory.show("notes/c.md").body.strip() == "# Both\n\nOne and two."
    assert memory.states() == {"notes/a.md": "superseded", "notes/b.md": "superseded"}
    assert memory.lineage.ancestors("notes/c.md") == ("notes/a.md", "notes/b.md")


def test_what_cannot_be_merged_is_refused(memory: Memory) -> None:
    write(memory, a="# A\n\nOne.\n", b="# B\n\nTwo.\n", c="# C\n")
    memory.write("notes/d.json", "{}")
    with pytest.raises(Usage, match="two or more"):
        memory.merge(["notes/a.md", "notes/a.md"], "notes/a.md")
    with pytest.raises(Usage, match="Markdown"):
        memory.merge(["notes/a.md", "notes/d.json"], "notes/a.md")
    with pytest.raises(AlreadyExists):
        memory.merge(["notes/a.md", "notes/b.md"], "notes/c.md")
    bases = {path: memory.show(path).hash for path in ("notes/a.md", "notes/b.md")}
    memory.append("notes/a.md", "More.")
    for change in (
        partial(memory.merge, [*bases], "notes/b.md", bases=bases),
        partial(memory.supersede, "notes/b.md", "notes/a.md", bases=bases),
    ):
        with pytest.raises(Conflict):
            change()
