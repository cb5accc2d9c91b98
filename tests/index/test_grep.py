"""Exact search with a real ripgrep in real folders."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.diagnostic import as_json
from mdmem.document import document
from mdmem.errors import (
    MemoryNotFound,
    PathRefused,
    PatternInvalid,
    ProgramFailed,
    StorageFailed,
    Usage,
)
from mdmem.index.grep import COUNTED, GATHERED, GrepRun, Hits
from mdmem.index.hit import Hit, day_of
from tests import speed
from tests.programs import needs_readers
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Folder(NamedTuple):
    """A vault's folder, read as a vault reads it."""

    root: Path
    mounts: dict[str, str]

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def read(self, path: str) -> document.Document:
        try:
            data = Path(self.mounts.get(path) or self.root / path).read_bytes()
        except FileNotFoundError:
            raise MemoryNotFound(path=path) from None
        except OSError as error:
            raise StorageFailed(path=path, action="read", reason=str(error)) from None
        return document.parse(path, data)

    def grep(self, pattern: str, context: int = 0, **options: Any) -> Hits:
        options = {"before": context, "after": context, **options}
        given = {"read": self.read, **options}
        return Hits(GrepRun(pattern=pattern, root=str(self.root), mounts=self.mounts, **given))

    def found(self, pattern: str, **options: Any) -> list[tuple[str, int]]:
        return [(hit.path, hit.line) for hit in self.grep(pattern, **options)]

    def paths(self, pattern: str, **options: Any) -> list[str]:
        return [hit.path for hit in self.grep(pattern, **options)]


def new_vault(tmp_path: Path) -> Folder:
    (tmp_path / "vault").mkdir()
    return Folder(tmp_path / "vault", {})


@pytest.fixture
def vault(tmp_path: Path) -> Folder:
    return new_vault(tmp_path)


def only(hits: Hits) -> Hit:
    [hit] = hits
    return hit


def no_children() -> bool:
    """Tell whether no ripgrep of this process runs or is left; other tests may have programs of their own."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it is gone
            name, _, rest = file.read_text().rpartition(")")
            if name.endswith("(rg") and int(rest.split()[1]) == os.getpid():
                return False
    return True


# ------------------------------------------------------------------------------------- what a hit says


def test_a_hit_gives_the_line_with_its_heading_date_context_and_matches(vault: Folder) -> None:
    text = "---\ncreated: 2026-03-04T10:00:00Z\n---\n# Plan\n\n## Data\n\nwhy\nUse SQLite, sqlite!\nend\n"
    vault.write("notes/db.md", text)

    hit = only(vault.grep("sqlite", context=1))

    assert hit == Hit(
        path="notes/db.md",
        line=9,
        heading=("Plan", "Data"),
        text="Use SQLite, sqlite!",
        matches=((4, 10), (12, 18)),
        column=5,
        before=("why",),
        after=("end",),
        date="2026-03-04",
        score=None,
        left_out=0,
    )
    assert as_json(hit) == {
        "path": "notes/db.md",
        "line": 9,
        "heading": ["Plan", "Data"],
        "text": "Use SQLite, sqlite!",
        "matches": [[4, 10], [12, 18]],
        "column": 5,
        "before": ["why"],
        "after": ["end"],
        "date": "2026-03-04",
        "score": None,
        "state": "",
        "left_out": 0,
    }


@pytest.mark.parametrize("letter", ["x", "é"])
def test_of_a_long_line_a_hit_shows_what_stands_around_the_match(vault: Folder, letter: str) -> None:
    before, after = f"{letter} " * 4_000, f" needle {letter}" * 4_000
    vault.write("a.md", f"# {letter * 5_000}\n{before}needle{after}\n{letter * 5_000}\n")

    hit = only(vault.grep("needle", context=1))

    assert (hit.line, hit.column) == (2, 8_001)
    assert hit.text.startswith(f"[7,834 characters left out]{letter} ")
    assert hit.text.endswith(" characters left out]")
    assert len(hit.text) < 600
    assert all("needle".startswith(hit.text[first:last]) for first, last in hit.matches)
    assert len(hit.matches) == hit.text.count("needle") + hit.text.count("nee[") > 30
    assert hit.heading == hit.after == (f"{letter * 500}[4,500 characters left out]",)
    assert hit.before == (f"# {letter * 498}[4,502 characters left out]",)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("ending", [" ", "\r"])
def test_a_line_of_megabytes_with_a_match_everywhere_is_searched_at_once(vault: Folder, ending: str) -> None:
    """Every match is counted from the one before: from the beginning of the line it would take minutes."""
    vault.write("a.md", f"é{ending}" * (500_000 if speed.is_all else 100_000))
    hits = list(vault.grep("é", limit=2))
    assert [len(hit.text) < 600 for hit in hits] == [True, True] if ending == "\r" else [True]
    assert hits[-1].left_out == (COUNTED if ending == "\r" else 0)


@pytest.mark.parametrize("others", [(), ("a.md", "c.md")], ids=repr)
def test_lines_beside_one_of_megabytes_keep_their_order(vault: Folder, others: tuple[str, ...]) -> None:
    ends = 200_000 if speed.is_all else 15_000
    vault.write("b.md", "é\r" * ends + "é")
    for path in others:
        vault.write(path, "é\n")

    hits = list(vault.grep("é", limit=3))

    assert [hit.path for hit in hits] == [
        *(path for path in others if path == "a.md"),
        "b.md",
        "b.md",
        "b.md",
    ][:3]
    assert hits[-1].left_out == COUNTED
    assert list(vault.grep("é").counts()) == sorted([("b.md", ends + 1), *((path, 1) for path in others)])


def test_a_match_in_the_frontmatter_or_above_the_first_heading_has_no_heading(vault: Folder) -> None:
    vault.write("a.md", "---\ntitle: needle\n---\nneedle\n# H\nneedle\n")
    assert [(hit.line, hit.heading) for hit in vault.grep("needle")] == [(2, ()), (4, ()), (6, ("H",))]


def test_a_headings_own_line_stands_in_its_section(vault: Folder) -> None:
    vault.write("a.md", "# Needle\n\n## Other\n\nNeedle 2\n======\n\nneedle\n")
    assert [hit.heading for hit in vault.grep("needle")] == [("Needle",), ("Needle 2",), ("Needle 2",)]


def test_frontmatter_that_cannot_be_read_hides_no_heading(vault: Folder) -> None:
    vault.write("2026-03-04.md", f"---\nkey: {'[' * 40 + ']' * 40}\n---\n# H\nneedle\n")
    hit = only(vault.grep("needle", context=1))
    assert (hit.heading, hit.before, hit.date) == (("H",), ("# H",), "2026-03-04")


def test_a_json_memory_has_fields_and_no_headings(vault: Folder) -> None:
    vault.write("working/a.json", '{\n "date": "2025-01-02",\n "x": "# needle"\n}\n')
    hit = only(vault.grep("needle"))
    assert (hit.line, hit.heading, hit.text, hit.date) == (3, (), ' "x": "# needle"', "2025-01-02")


def test_context_ends_with_the_memory(vault: Folder) -> None:
    vault.write("a.md", "1\nneedle\n3\n4\nneedle")
    first, second = vault.grep("needle", context=3)
    assert (first.before, first.after) == (("1",), ("3", "4", "needle"))
    assert (second.before, second.after) == (("needle", "3", "4"), ())


@cases(
    "path, fields, day",
    [
        ("a.md", {"created": "2026-01-02", "date": "2026-02-02", "updated": "2026-03-02"}, "2026-01-02"),
        ("a.md", {"created": "soon", "date": "2026-02-02 10:00"}, "2026-02-02"),
        ("a.md", {"created": None, "date": ["2026-02-02"], "updated": "2026-03-02"}, "2026-03-02"),
        ("2025-12-31.md", {"updated": "2026-03-02"}, "2026-03-02"),
        ("a.md", {"created": 1694500000000, "updated": "2026-03-02"}, "2023-09-12"),
        ("a.md", {"created": "1694500000"}, "2023-09-12"),
        ("a.md", {"created": "25/12/2023"}, "2023-12-25"),
        ("a.md", {"created": "12-25-2023 10:00"}, "2023-12-25"),
        ("a.md", {"created": "2.1.2023"}, "2023-01-02"),
        ("a.md", {"created": "2023/1/2"}, "2023-01-02"),
        ("a.md", {"created": 20230102}, "2023-01-02"),
        ("a.md", {"created": "[[2023-01-02]]"}, "2023-01-02"),
        ("a.md", {"created": [["2023-01-02"]]}, "2023-01-02"),
        ("a.md", {"created": "09/12/2023", "updated": "2026-03-02"}, "2026-03-02"),
        ("a.md", {"created": "2023-09"}, "1970-01-02"),
        ("a.md", {"created": 20231302}, "1970-01-02"),
        ("a.md", {"created": "31/12/23"}, "1970-01-02"),
        ("a/2025-12-31-party.md", {}, "2025-12-31"),
        ("2025-12-31/a.md", {}, "1970-01-02"),
        ("12025-12-31.md", {}, "1970-01-02"),
        ("2025-13-31.md", {"created": "2026-01-021"}, "1970-01-02"),
    ],
)
def test_the_day_is_the_fields_else_the_names_else_the_files(
    path: str, fields: dict[str, Any], day: str
) -> None:
    assert day_of(path, fields, 86_400.0) == day


def test_the_day_may_be_unknown() -> None:
    assert day_of("a.md", {}, None) == ""


def test_a_memory_that_says_no_day_has_none(vault: Folder) -> None:
    """The time of a file is that of a checkout as soon as not."""
    os.utime(vault.write("a.md", "needle"), (0, 1_000_000_000))
    assert only(vault.grep("needle")).date == ""


# ------------------------------------------------------------------------------------------- the bytes


def test_crlf_lines_come_without_their_ends_and_anchors_hold(vault: Folder) -> None:
    vault.write("a.md", "# H\r\n\r\na needle\r\nneedle\r\nneedle b\r\n")
    hits = list(vault.grep("needle$", regex=True, context=1))
    assert [(hit.line, hit.text, hit.heading) for hit in hits] == [
        (3, "a needle", ("H",)),
        (4, "needle", ("H",)),
    ]
    assert (hits[0].before, hits[0].after) == (("",), ("needle",))


def test_a_byte_order_mark_is_not_part_of_the_line(vault: Folder) -> None:
    vault.write("a.md", "\ufeff# Needle\nb\n")
    hit = only(vault.grep("^# needle", regex=True))
    assert (hit.line, hit.text, hit.matches, hit.heading) == (1, "# Needle", ((0, 8),), ("Needle",))
    assert only(vault.grep("b", context=1)).before == ("# Needle",)


def test_lone_carriage_returns_end_lines(vault: Folder) -> None:
    vault.write("a.md", "# H\rneedle 1\rx\nneedle 2\r\rneedle 3\r\nx\rneedle 4")
    hits = list(vault.grep("needle", context=1))
    assert [(hit.line, hit.text) for hit in hits] == [
        (2, "needle 1"),
        (4, "needle 2"),
        (6, "needle 3"),
        (8, "needle 4"),
    ]
    assert hits[0].heading == ("H",)
    assert (hits[2].before, hits[2].after) == (("",), ("x",))


def test_other_separators_of_unicode_stay_inside_the_line(vault: Folder) -> None:
    vault.write("a.md", "a\u2028b\x0cneedle\x85c\nd\n")
    hit = only(vault.grep("needle", context=1))
    assert (hit.line, hit.text, hit.matches, hit.after) == (1, "a\u2028b\x0cneedle\x85c", ((4, 10),), ("d",))


def test_spans_count_characters_in_any_script(vault: Folder) -> None:
    vault.write("日本.md", "# 設計\n\n索引は検索の検索です 🎉 検索\n")
    hit = only(vault.grep("検索"))
    assert (hit.path, hit.heading) == ("日本.md", ("設計",))
    assert [hit.text[start:end] for start, end in hit.matches] == ["検索", "検索", "検索"]


def test_case_folds_beyond_ascii(vault: Folder) -> None:
    vault.write("a.md", "STRAẞE ÄRGER\n")
    assert vault.found("ärger") == [("a.md", 1)]


def test_what_is_not_utf8_is_found_and_shown_with_replacements(vault: Folder) -> None:
    vault.write("2024-05-06.md", b"# H\nok needle\n\xff needle \xe9\n")
    hits = list(vault.grep("needle", context=2))
    assert [(hit.line, hit.text, hit.matches) for hit in hits] == [
        (2, "ok needle", ((3, 9),)),
        (3, "\ufffd needle \ufffd", ((2, 8),)),
    ]
    assert {(hit.heading, hit.before, hit.after, hit.date) for hit in hits} == {((), (), (), "2024-05-06")}


def test_a_nul_character_hides_nothing(vault: Folder) -> None:
    vault.write("a.md", b"a\0b\nneedle\n")
    assert vault.found("needle") == [("a.md", 2)]


def test_utf16_is_found(vault: Folder) -> None:
    vault.write("a.md", "x\nneedle\n".encode("utf-16"))
    assert vault.found("needle") == [("a.md", 2)]


# ----------------------------------------------------------------------------------------- the pattern


@cases(
    "pattern",
    ["-e", "--pre=touch", "--", "-", "-f", "(", "[", "a.c", "$HOME", "*", "\\", "--help", "~", "'\""],
)
def test_a_literal_pattern_means_itself(vault: Folder, pattern: str) -> None:
    vault.write("a.md", f"abc\nx {pattern} x\n")
    hit = only(vault.grep(pattern))
    assert (hit.line, [hit.text[slice(*m)] for m in hit.matches]) == (2, [pattern])


@cases("pattern", ["--pre=touch", "-e", "--files"])
def test_a_regular_expression_that_looks_like_an_option_is_none(vault: Folder, pattern: str) -> None:
    vault.write("a.md", f"x {pattern} x\n")
    assert vault.found(pattern, regex=True) == [("a.md", 1)]
    assert os.listdir(vault.root) == ["a.md"]


def test_a_regular_expression_matches_within_a_line(vault: Folder) -> None:
    vault.write("a.md", "foo 12\nfoo\n12 foo 345\n")
    assert [hit.matches for hit in vault.grep(r"\d+", regex=True)] == [((4, 6),), ((0, 2), (7, 10))]
    assert vault.found(r"\Afoo$", regex=True) == [("a.md", 2)]


@pytest.mark.parametrize(
    ("pattern", "reason"), [("(", "unclosed group"), (r"a\nb", r'the literal "\n" is not allowed in a regex')]
)
def test_a_bad_regular_expression_is_explained(vault: Folder, pattern: str, reason: str) -> None:
    vault.write("a.md", "x")
    hits = vault.grep(pattern, regex=True)
    with pytest.raises(PatternInvalid) as caught:
        next(hits)
    assert (caught.value.pattern, caught.value.reason) == (pattern, reason)
    assert no_children()


def test_a_very_long_regular_expression_is_refused(vault: Folder) -> None:
    """ripgrep takes the product of its length and that of a text."""
    vault.write("a.md", "x")
    with pytest.raises(PatternInvalid, match="10,002 characters"):
        vault.grep("(a|b)*" * 1_667, regex=True)
    assert vault.found("x" * 20_000) == []


@pytest.mark.parametrize("namespace", ["", "users/nobody"])
def test_a_bad_pattern_is_refused_where_there_is_nothing_to_search(vault: Folder, namespace: str) -> None:
    with pytest.raises(PatternInvalid):
        list(vault.grep("(", regex=True, namespace=namespace))
    assert vault.found("x", namespace=namespace) == []


@cases(
    "options",
    [
        {"pattern": ""},
        {"pattern": "a\nb"},
        {"pattern": "a\rb"},
        {"pattern": "a\0b"},
        {"pattern": "\ud800"},
        {"pattern": "a", "globs": [""]},
        {"pattern": "a", "globs": ["*.md", " "]},
        {"pattern": "a", "globs": ["a\0"]},
        {"pattern": "a", "context": -1},
        {"pattern": "a", "limit": 0},
    ],
)
def test_arguments_that_mean_nothing_are_refused_at_once(vault: Folder, options: dict[str, Any]) -> None:
    with pytest.raises(Usage) as caught:
        vault.grep(**options)
    assert caught.value.hint


def test_a_pattern_too_long_for_a_command_line_is_refused(vault: Folder) -> None:
    with pytest.raises(Usage) as caught:
        next(vault.grep("x" * 3_000_000))
    assert caught.value.message == "the pattern is too long"


@cases(
    "case, pattern, lines",
    [
        ("ignore", "Needle", [1, 2]),
        ("smart", "needle", [1, 2]),
        ("smart", "Needle", [2]),
        ("exact", "needle", [1]),
    ],
)
def test_letter_case_counts_as_asked(vault: Folder, case: Any, pattern: str, lines: Any) -> None:
    vault.write("a.md", "needle\nNeedle\n")
    assert [hit.line for hit in vault.grep(pattern, case=case)] == lines


# -------------------------------------------------------------------------------------- what is searched


def test_only_memories_are_searched(vault: Folder) -> None:
    for name in ("a.md", "b.json", "c.py", "d.MD", "e.mdx", "f.md.bak", "g", "md"):
        vault.write(name, "needle")
    assert vault.paths("needle") == ["a.md", "b.json"]


def test_what_git_or_another_ignore_file_ignores_is_searched(vault: Folder) -> None:
    (vault.root / ".git").mkdir()
    for name in (".gitignore", ".ignore", ".rgignore", "working/.gitignore", ".git/info/exclude"):
        vault.write(name, "*\n")
    vault.write("working/threads/t.md", "needle")
    assert vault.paths("needle") == ["working/threads/t.md"]


def test_hidden_files_and_folders_are_never_searched(vault: Folder) -> None:
    for path in (".mdmem/templates/t.md", ".h.md", "notes/.obsidian/x.md", ".x.md/a.md"):
        vault.write(path, "needle")
    vault.write("notes/a.md", "needle")
    for globs in (
        (),
        ("*",),
        ("**",),
        (".mdmem/**", "**/*.md"),
        ("**/.*", "**/.obsidian/**", "*.md"),
        ("!x",),
    ):
        assert vault.paths("needle", globs=globs) == ["notes/a.md"]


def test_the_configuration_of_ripgrep_is_not_read(
    vault: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rc").write_text("--hidden\n--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    vault.write("a.md", "needle\nother\n")
    vault.write(".b.md", "needle")
    assert vault.found("needle") == [("a.md", 1)]


def test_links_are_not_followed(vault: Folder, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("needle")
    (vault.root / "file.md").symlink_to(tmp_path / "outside" / "secret.md")
    (vault.root / "folder").symlink_to(tmp_path / "outside")
    assert vault.paths("needle") == []
    assert vault.paths("needle", namespace="folder") == []
    assert vault.paths("needle", globs=["folder/**", "file.md"]) == []


def test_a_link_above_the_namespace_is_not_followed(vault: Folder, tmp_path: Path) -> None:
    (tmp_path / "outside" / "alice").mkdir(parents=True)
    (tmp_path / "outside" / "alice" / "secret.md").write_text("needle")
    (vault.root / "users").symlink_to(tmp_path / "outside")
    assert vault.paths("needle", namespace="users/alice") == []


def test_the_vault_itself_may_be_reached_through_a_link(vault: Folder, tmp_path: Path) -> None:
    vault.write("a.md", "needle")
    (tmp_path / "link").symlink_to(vault.root)
    assert Folder(tmp_path / "link", {}).paths("needle") == ["a.md"]


def test_a_namespace_is_compared_part_by_part(vault: Folder) -> None:
    for path in ("users/alice/a.md", "users/alicebob/b.md", "users/alice.md", "a.md"):
        vault.write(path, "needle")
    assert vault.paths("needle", namespace="users/alice") == ["users/alice/a.md"]
    assert vault.paths("needle", namespace="users/alic") == []
    assert vault.paths("needle", namespace="users/alice.md") == []


@cases("namespace", ["..", "../other", "/etc", "a/../b", "a//b", ".mdmem"])
def test_a_namespace_cannot_leave_the_vault(vault: Folder, namespace: str) -> None:
    with pytest.raises(PathRefused):
        vault.grep("needle", namespace=namespace)


@cases(
    "name",
    ["quo'te\".md", "sp ace.md", "ü日🎉.md", "-e.md", "[x]{y}.md", "a: b (os error 13).md"],
)
def test_names_may_hold_anything(tmp_path: Path, name: str) -> None:
    vault = new_vault(tmp_path)
    vault.write(f"notes/{name}", "# H\nneedle\n")
    hit = only(vault.grep("needle"))
    assert (hit.path, hit.line, hit.heading) == (f"notes/{name}", 2, ("H",))


@cases(
    "name, shown",
    [
        ("new\nnotes/b.md:7:line.md", r"new\x0anotes/b.md:7:line.md"),
        ("\x1b[2Ka.md", r"\x1b[2Ka.md"),
        ("a\r.md", r"a\x0d.md"),
        ("a\x85.md", r"a\x85.md"),
    ],
)
def test_a_name_with_control_characters_has_escapes(tmp_path: Path, name: str, shown: str) -> None:
    vault = new_vault(tmp_path)
    vault.write(f"notes/{name}", "needle\n")
    assert only(vault.grep("needle")).path == f"notes/{shown}"


def test_files_whose_names_differ_in_their_unicode_spelling_are_named_apart(vault: Folder) -> None:
    twins = ("\xe9.md", "e\u0301.md", "\xe9/a.md", "e\u0301/a.md", "\ud55c.md", "\u1112\u1161\u11ab.md")
    for path in (*twins, "u\u0308.md"):
        vault.write(path, "needle")
    apart = ["e\\u0301.md", "e\\u0301/a.md", "\\u1112\\u1161\\u11ab.md"]
    assert sorted(vault.paths("needle")) == sorted([*apart, *twins[::2], "\xfc.md"])


def test_a_name_that_is_not_utf8_has_escapes(vault: Folder) -> None:
    try:
        with open(os.fsencode(vault.root) + b"/a\xff.md", "wb") as file:
            file.write(b"needle")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    hit = only(vault.grep("needle"))
    assert (hit.path, hit.line, hit.date) == (r"a\xff.md", 1, "")


# ----------------------------------------------------------------------------------------------- globs


@pytest.fixture
def tree(vault: Folder) -> Folder:
    for path in (
        *("a.md", "notes/a.md", "notes/b.json", "notes/deep/a.md", "rules/a.md", "rules/#x.md"),
        "rules/x.py",
    ):
        vault.write(path, "needle")
    return vault


@cases(
    "globs, expected",
    [
        (["a.md"], ["a.md", "notes/a.md", "notes/deep/a.md", "rules/a.md"]),
        (["/a.md"], ["a.md"]),
        (["notes/*"], ["notes/a.md", "notes/b.json"]),
        (["notes/**"], ["notes/a.md", "notes/b.json", "notes/deep/a.md"]),
        (["notes/**", "!deep"], ["notes/a.md", "notes/b.json"]),
        (["!notes"], ["a.md", "rules/#x.md", "rules/a.md"]),
        (["!*.md"], ["notes/b.json"]),
        (["*.{json,py}"], ["notes/b.json"]),
        (["rules/**", "*.py"], ["rules/#x.md", "rules/a.md"]),
        (["#x.md"], ["rules/#x.md"]),
        (["!#x.md", "!notes/"], ["a.md", "rules/a.md"]),
        (["nothing"], []),
    ],
)
def test_globs_narrow_and_never_let_anything_else_in(
    tree: Folder, globs: list[str], expected: list[str]
) -> None:
    assert tree.paths("needle", globs=globs) == expected


def test_globs_are_relative_to_the_namespace(tree: Folder) -> None:
    assert tree.paths("needle", namespace="notes", globs=["/deep/*"]) == ["notes/deep/a.md"]
    assert tree.paths("needle", namespace="notes", globs=["notes/**"]) == []


@pytest.mark.parametrize("mounted", [False, True])
def test_a_bad_glob_is_explained(tree: Folder, tmp_path: Path, mounted: bool) -> None:
    if mounted:
        (tmp_path / "AGENTS.md").write_text("needle")
        tree.mounts["AGENTS.md"] = str(tmp_path / "AGENTS.md")
    with pytest.raises(PatternInvalid) as caught:
        tree.grep("needle", globs=["no[tes"])
    assert (caught.value.pattern, caught.value.reason) == ("no[tes", "a [ is never closed")


# ---------------------------------------------------------------------------------------------- mounts


@pytest.fixture
def mounted(vault: Folder, tmp_path: Path) -> Folder:
    """A vault where AGENTS.md and users/alice/zeta.md stand for files outside of it."""
    (tmp_path / "AGENTS.md").write_text("# Project\n\nneedle\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".hidden.md").write_text("needle\n")
    vault.mounts.update(
        {
            "users/alice/zeta.md": str(tmp_path / "other" / ".hidden.md"),
            "AGENTS.md": str(tmp_path / "AGENTS.md"),
            "gone.md": str(tmp_path / "gone.md"),
            "main.py": str(tmp_path / "AGENTS.md"),
        }
    )
    for path in ("A.md", "notes/a.md", "users/alice/a.md", "users/alicebob/a.md"):
        vault.write(path, "needle")
    return vault


def test_a_mounted_file_is_reported_in_its_place_under_its_vault_path(mounted: Folder) -> None:
    hits = list(mounted.grep("needle"))
    assert [(hit.path, hit.line, hit.heading) for hit in hits] == [
        ("A.md", 1, ()),
        ("AGENTS.md", 3, ("Project",)),
        ("notes/a.md", 1, ()),
        ("users/alice/a.md", 1, ()),
        ("users/alice/zeta.md", 1, ()),
        ("users/alicebob/a.md", 1, ()),
    ]


def test_a_mounted_file_outside_the_namespace_is_not_searched(mounted: Folder) -> None:
    assert mounted.paths("needle", namespace="users/alice") == ["users/alice/a.md", "users/alice/zeta.md"]
    assert mounted.paths("needle", namespace="users/alicebob") == ["users/alicebob/a.md"]


def test_a_mounted_file_is_searched_where_its_namespace_has_no_folder(mounted: Folder) -> None:
    shutil.rmtree(mounted.root / "users")
    assert mounted.paths("needle", namespace="users/alice") == ["users/alice/zeta.md"]


@cases(
    "namespace, globs, expected",
    [
        ("", ["A*.md"], ["A.md", "AGENTS.md"]),
        ("", ["!AGENTS.md", "!users"], ["A.md", "notes/a.md"]),
        ("", ["users/**/z*"], ["users/alice/zeta.md"]),
        ("", ["notes/*"], ["notes/a.md"]),
        ("users/alice", ["/zeta.md"], ["users/alice/zeta.md"]),
        ("users/alice", ["!zeta.md"], ["users/alice/a.md"]),
    ],
)
def test_globs_count_for_mounted_files_by_their_vault_path(
    mounted: Folder, namespace: str, globs: list[str], expected: list[str]
) -> None:
    assert mounted.paths("needle", namespace=namespace, globs=globs) == expected


def test_a_file_of_the_vault_behind_a_mounted_one_is_not_seen(mounted: Folder) -> None:
    mounted.write("AGENTS.md", "shadowed needle")
    mounted.write("gone.md", "shadowed needle")
    assert [hit.text for hit in mounted.grep("needle") if "shadowed" in hit.text] == []


# ------------------------------------------------------------------------------- order, limits, the process


def many(vault: Folder, files: int, lines: int) -> list[tuple[str, int]]:
    """So many memories with so many matching lines each; returns them all in order."""
    places = []
    for number in range(files):
        path = f"{number % 7}/{number:05}.md"
        vault.write(path, "needle\n" * lines)
        places += [(path, line) for line in range(1, lines + 1)]
    return sorted(places, key=lambda place: (place[0].split("/"), place[1]))


ORDER = ["B/x.md", "a b/x.md", "a-b.md", "a.md", "a/a.md", "a/é.md", "a/日.md", "a/🎉.md", "b.md"]


def by_parts(path: str) -> list[str]:
    return path.split("/")


@pytest.mark.parametrize("lines", [1, GATHERED if speed.is_all else 200])
def test_hits_come_by_path_part_by_part_and_line_few_or_many(
    mounted: Folder, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not speed.is_all:
        monkeypatch.setattr("mdmem.index.grep.GATHERED", 200)
    for path in ORDER:
        mounted.write(path, "needle\n" * lines)
    found = mounted.found("needle")
    assert found == sorted(found, key=lambda place: (by_parts(place[0]), place[1]))
    assert len(found) == 6 + len(ORDER) * lines


def test_many_hits_are_the_same_hits(vault: Folder) -> None:
    expected = many(vault, 50, 50)
    assert len(expected) > GATHERED
    assert vault.found("needle") == expected


@pytest.mark.parametrize("pattern", ["needle", "gone"])
def test_many_hits_in_mounted_files_only(vault: Folder, tmp_path: Path, pattern: str) -> None:
    (tmp_path / "big.md").write_text("needle\n" * (GATHERED + 10))
    vault.mounts["big.md"] = str(tmp_path / "big.md")
    assert len(vault.found(pattern)) == (GATHERED + 10 if pattern == "needle" else 0)


@cases("limit, left_out", [(1, 5), (4, 2), (5, 1), (6, 0), (7, 0)])
def test_the_last_hit_says_how_many_were_left_out(vault: Folder, limit: int, left_out: int) -> None:
    expected = many(vault, 2, 3)
    hits = list(vault.grep("needle", limit=limit))
    assert [(hit.path, hit.line) for hit in hits] == expected[:limit]
    assert [hit.left_out for hit in hits] == [0] * (len(hits) - 1) + [left_out]


def test_lines_that_a_lone_carriage_return_ends_are_counted_one_by_one(vault: Folder) -> None:
    vault.write("a.md", "needle\rneedle\rneedle\n")
    assert [hit.left_out for hit in vault.grep("needle", limit=1)] == [2]


def test_a_limited_search_through_very_many_lines_is_cancelled(vault: Folder) -> None:
    """It counts 10,000 lines beyond the limit, then ends ripgrep, and reads few memories."""
    expected = many(vault, 3000 if speed.is_all else 1_500, 10)
    read = []

    def counted(path: str) -> document.Document:
        read.append(path)
        return vault.read(path)

    hits = list(vault.grep("needle", limit=25, read=counted))

    assert [(hit.path, hit.line) for hit in hits] == expected[:25]
    assert hits[-1].left_out == COUNTED
    assert len(set(read)) <= 25 + 3  # those that are read before it is known which come first
    assert no_children()


def test_closing_the_hits_ends_the_process(vault: Folder) -> None:
    many(vault, 400, 50)
    hits = vault.grep("needle")
    assert [next(hits).line for _ in range(3)] == [1, 2, 3]
    assert not no_children()

    hits.close()

    assert no_children()
    assert list(hits) == []


def test_dropping_the_hits_ends_the_process(vault: Folder) -> None:
    many(vault, 400, 50)
    next(vault.grep("needle"))
    assert no_children()


def test_a_failing_reader_ends_the_process(vault: Folder) -> None:
    many(vault, 400, 50)

    def broken(path: str) -> document.Document:
        raise ZeroDivisionError(path)

    with pytest.raises(ZeroDivisionError):
        list(vault.grep("needle", read=broken))
    assert no_children()


def test_nothing_is_started_before_the_first_hit_is_asked_for(vault: Folder) -> None:
    vault.write("a.md", "needle")
    hits = vault.grep("needle")
    assert no_children()
    assert len(list(hits)) == 1


# ---------------------------------------------------------------------------- while others write, or forbid


def test_a_memory_that_vanishes_before_it_is_read_is_still_a_hit(vault: Folder) -> None:
    vault.write("2024-05-06.md", "# H\nneedle\n")
    vault.write("b.md", "# H\nneedle\n")

    def late(path: str) -> document.Document:
        (vault.root / path).unlink()
        return vault.read(path)

    hits = list(vault.grep("needle", read=late, context=1))
    assert [(hit.path, hit.line, hit.text, hit.date) for hit in hits] == [
        ("2024-05-06.md", 2, "needle", "2024-05-06"),
        ("b.md", 2, "needle", ""),
    ]
    assert {(hit.heading, hit.before, hit.after) for hit in hits} == {((), (), ())}


def test_a_memory_that_changes_before_it_is_read_lends_no_heading_or_context(vault: Folder) -> None:
    vault.write("a.md", "# H\nneedle\n")

    def late(path: str) -> document.Document:
        vault.write(path, "# Other\nsomething\nneedle\n")
        return vault.read(path)

    hit = only(vault.grep("needle", read=late, context=1))
    assert (hit.line, hit.text, hit.heading, hit.before) == (2, "needle", (), ())


def test_a_memory_that_shrinks_before_it_is_read_lends_nothing(vault: Folder) -> None:
    vault.write("a.md", "1\n2\nneedle\n")

    def late(path: str) -> document.Document:
        vault.write(path, "")
        return vault.read(path)

    hit = only(vault.grep("needle", read=late, context=1))
    assert (hit.line, hit.text, hit.before) == (3, "needle", ())


@pytest.fixture
def forbidding() -> Iterator[tuple[Folder, Callable[[], None]]]:
    """A vault outside of the test's own folder, searched by someone who is not root."""
    root = Path(tempfile.mkdtemp(prefix="mdmem-test-"))
    needs_readers()
    privileged = os.geteuid() == 0
    vault = Folder(root / "vault", {})
    vault.root.mkdir()

    def drop() -> None:
        if privileged:
            for path in (root, *root.rglob("*")):
                os.chown(path, 65534, 65534)
            os.seteuid(65534)

    try:
        yield vault, drop
    finally:
        if privileged:
            os.seteuid(0)
        for folder, names, _ in os.walk(root):
            for name in names:
                os.chmod(os.path.join(folder, name), 0o755)
        shutil.rmtree(root)


def test_what_cannot_be_read_is_a_finding_and_the_rest_is_searched(
    forbidding: tuple[Folder, Callable[[], None]],
) -> None:
    vault, drop = forbidding
    vault.write("a.md", "needle")
    vault.write("secret.md", "needle").chmod(0)
    vault.write("secret.py", "needle").chmod(0)
    vault.write("shut/x.md", "needle")
    (vault.root / "shut").chmod(0)
    outside = vault.root.parent / "AGENTS.md"
    outside.write_text("needle")
    outside.chmod(0)
    vault.mounts["AGENTS.md"] = str(outside)
    drop()

    for globs in ([], ["*", "!never"]):
        hits = vault.grep("needle", globs=globs)
        assert [hit.path for hit in hits] == ["a.md"]
        assert [(f.path, f.code, f.message, f.severity) for f in hits.findings] == [
            ("AGENTS.md", "unreadable", "not searched: Permission denied", "warning"),
            ("secret.md", "unreadable", "not searched: Permission denied", "warning"),
            ("shut", "unreadable", "not searched: Permission denied", "warning"),
        ]


def test_paths_are_given_relative_to_the_base(mounted: Folder) -> None:
    read = []

    def noted(path: str) -> document.Document:
        read.append(path)
        return mounted.read(path)

    hits = list(mounted.grep("needle", namespace="users/alice", base="users", read=noted))
    assert [hit.path for hit in hits] == ["alice/a.md", "alice/zeta.md"]
    assert sorted(read) == ["users/alice/a.md", "users/alice/zeta.md"]
    assert mounted.paths("needle", namespace="users/alice", base="users/alice") == ["a.md", "zeta.md"]


def test_findings_are_relative_to_the_base_too(forbidding: tuple[Folder, Callable[[], None]]) -> None:
    vault, drop = forbidding
    vault.write("users/alice/secret.md", "needle").chmod(0)
    drop()
    hits = vault.grep("needle", namespace="users", base="users")
    assert list(hits) == []
    assert [finding.path for finding in hits.findings] == ["alice/secret.md"]


@cases("namespace, base", [("", "users"), ("users/alice", "users/al"), ("a", "a/b")])
def test_a_base_that_does_not_contain_the_namespace_is_refused(
    vault: Folder, namespace: str, base: str
) -> None:
    with pytest.raises(Usage) as caught:
        vault.grep("needle", namespace=namespace, base=base)
    assert base in caught.value.message


def test_a_search_that_read_everything_has_no_findings(mounted: Folder) -> None:
    hits = mounted.grep("needle")
    assert list(hits)
    assert hits.findings == ()


# --------------------------------------------------------------------------------- some memories, and counts


@cases(
    "targets, options, expected",
    [
        (["notes"], {}, ["notes/a.md", "notes/deep/b.md"]),
        (["notes/deep", "top.md"], {}, ["notes/deep/b.md", "top.md"]),
        (["top.md", "notes/deep", "notes"], {}, ["notes/a.md", "notes/deep/b.md", "top.md"]),
        (["top.md", "notes/a.md"], {"globs": ["a*"]}, ["notes/a.md"]),
        (["notes"], {"only": {"notes/deep/b.md", "top.md"}}, ["notes/deep/b.md"]),
        (["none.md", "no"], {}, []),
        (["link.md", "links", "links/x.md"], {}, []),
        (["AGENTS.md"], {}, ["AGENTS.md"]),
        (["notes"], {"word": True}, ["notes/a.md"]),
    ],
)
def test_only_what_is_named_is_searched(
    tmp_path: Path, targets: list[str], options: dict[str, Any], expected: list[str]
) -> None:
    vault = new_vault(tmp_path)
    vault.write("notes/a.md", "needle")
    vault.write("notes/deep/b.md", "needles")
    vault.write("top.md", "needle")
    vault.write("../outside/x.md", "needle")
    (vault.root / "link.md").symlink_to("../outside/x.md")
    (vault.root / "links").symlink_to("../outside")
    vault.mounts["AGENTS.md"] = str(vault.write("../AGENTS.md", "needle"))
    assert vault.paths("needle", targets=targets, **options) == expected
    assert [path for path, _ in vault.grep("needle", targets=targets, **options).counts()] == expected


def test_counts_are_of_all_lines_however_many_and_read_no_memory(vault: Folder) -> None:
    vault.write("a.md", "needle\n" * (GATHERED + 5) + "x\n")
    vault.write("b.md", "one needle\rtwo needle needle\n")
    vault.write("c/d.md", "needle\n")
    vault.write("c.md", "needle\n")

    def refused(path: str) -> document.Document:
        raise AssertionError(path)

    counts = vault.grep("needle", read=refused).counts()
    assert list(counts) == [("a.md", GATHERED + 5), ("b.md", 2), ("c/d.md", 1), ("c.md", 1)]
    few = vault.grep("needle", read=refused, globs=["[!a]*"]).counts()
    assert list(few) == [("b.md", 2), ("c/d.md", 1), ("c.md", 1)]


def test_what_matches_nothing_inside_a_character_is_no_match(vault: Folder) -> None:
    vault.write("a.md", "ö x")
    hit = only(vault.grep("x?", regex=True))
    assert [hit.text[first:last] for first, last in hit.matches if first < last] == ["x"]


# ---------------------------------------------------------------------------------------- the program


def test_without_ripgrep_the_error_says_how_to_get_it(
    vault: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramFailed) as caught:
        vault.grep("needle")
    assert caught.value.code == "ripgrep-missing"
    assert "pip install" in caught.value.hint


def test_an_old_ripgrep_is_named_with_its_version(
    vault: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "rg"
    old.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo "ripgrep 0.10.0"; exit 0; fi\n'
        "echo \"error: Found argument '--json' which wasn't expected\" >&2\nexit 2\n"
    )
    old.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    with pytest.raises(ProgramFailed) as caught:
        next(vault.grep("needle"))
    assert caught.value.code == "ripgrep-too-old"
    assert caught.value.message == f"{old}: ripgrep 0.10.0 is too old"


def test_the_logging_of_the_application_is_left_alone(vault: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    vault.write("a.md", "needle")
    assert vault.found("needle", globs=["*.md"]) == [("a.md", 1)]
    assert logging.root.handlers == []


# ------------------------------------------------------------------------------------- against a reference

ALPHABET = "abAB -.*\\[é日🎉\t\u2028"
ENDS = st.sampled_from(["\n", "\r\n", "\r", ""])
TEXTS = st.lists(st.tuples(st.text(ALPHABET, max_size=8), ENDS), max_size=8).map(
    lambda lines: "".join(content + end for content, end in lines)
)
NEEDLES = st.text("abAB-.*\\[ ", min_size=1, max_size=3)


def reference(texts: dict[str, str], needle: str) -> list[tuple[str, int, str, tuple[tuple[int, int], ...]]]:
    """Every line of every text that holds the needle in any (ASCII) case."""
    looked_for = re.compile(re.escape(needle), re.IGNORECASE | re.ASCII)
    found = []
    for path in sorted(texts, key=by_parts):
        for number, line in enumerate(re.split(r"\r\n|\n|\r", texts[path].removeprefix("\ufeff")), 1):
            spans = tuple(match.span() for match in looked_for.finditer(line))
            if spans:
                found.append((path, number, line, spans))
    return found


@settings(deadline=None, max_examples=examples(60))
@given(
    texts=st.dictionaries(st.sampled_from(["a.md", "a/b.md", "a-b.json", "AGENTS.md"]), TEXTS, max_size=4),
    bom=st.booleans(),
    needle=NEEDLES,
    limit=st.none() | st.integers(1, 4),
)
def test_literal_search_agrees_with_a_plain_one(
    texts: dict[str, str], bom: bool, needle: str, limit: int | None
) -> None:
    texts = {path: "\ufeff" * bom + text for path, text in texts.items()}
    with tempfile.TemporaryDirectory() as folder:
        vault = Folder(Path(folder) / "vault", {})
        vault.root.mkdir()
        for path, text in texts.items():
            vault.write(path, text)
        if "AGENTS.md" in texts:
            outside = (vault.root / "AGENTS.md").rename(Path(folder) / "AGENTS.md")
            vault.mounts["AGENTS.md"] = str(outside)
        hits = list(vault.grep(needle, limit=limit))
    expected = reference(texts, needle)
    assert [(hit.path, hit.line, hit.text, hit.matches) for hit in hits] == expected[:limit]
    assert sum(hit.left_out for hit in hits) == len(expected) - len(expected[:limit])
