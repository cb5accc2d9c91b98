"""Notes in real vaults: sections that are added, and what cannot break their structure."""

from __future__ import annotations

import tempfile
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings, strategies as st
from markdown_it import MarkdownIt

from mdmem.diagnostic import as_json
from mdmem.document.document import Document, parse
from mdmem.errors import (
    BinaryContent,
    Conflict,
    EditRefused,
    MemoryNotFound,
    NotEncodable,
    NotUtf8,
    PathRefused,
    Usage,
)
from mdmem.facade.memory import Memory
from mdmem.memory.content import unpadded
from mdmem.memory.notes import NoteInfo, Notes, heading_text
from mdmem.vault.vault import Vault
from tests import speed
from tests.memory.forking import run_at_once
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mdmem.vault.plan import EditPlan
    from mdmem.vault.transaction import Applied


def clock() -> datetime:
    return datetime(2024, 1, 31, 12, 30, 5, 999)  # noqa: DTZ001 - the local time, wherever that is


@pytest.fixture
def vault(vault_root: Path) -> Vault:
    return Vault(str(vault_root))


@pytest.fixture
def notes(vault: Vault) -> Notes[Applied]:
    return Notes(vault, vault.transact, clock)


@pytest.fixture(scope="module")
def plans() -> Iterator[tuple[Path, Notes[EditPlan]]]:
    """A file of a vault to write to, and notes that only plan: fast enough for many examples."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".mdmem").mkdir()
        (Path(folder) / "notes").mkdir()
        (Path(folder) / ".mdmem" / "config.toml").write_text("")
        yield Path(folder) / "notes" / "n.md", Notes(Vault(folder), lambda build: build(), clock)


def put(vault_root: Path, path: str, content: str | bytes) -> Path:
    file = vault_root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def appended(plans: tuple[Path, Notes[EditPlan]], before: str, content: str, title: str | None) -> Document:
    file, planned = plans
    file.write_bytes(before.encode())
    (change,) = planned.append("n", content, title).changes
    after = change.after(parse("n.md", b"").limits)
    assert after is not None
    return after


def swallows(text: str) -> bool:
    """Whether a heading behind `text` is none, as another parser sees it."""
    tokens = MarkdownIt().parse(f"{text}\n\n## probe\n")
    return len(tokens) < 3 or (tokens[-3].type, tokens[-3].tag) != ("heading_open", "h2")


# -- append -----------------------------------------------------------------------------------------------


def test_append_makes_a_note_of_one_section(vault_root: Path, notes: Notes[Applied]) -> None:
    applied = notes.append("db", "SQLite: one file.", "Decision")

    assert (vault_root / "notes/db.md").read_bytes() == b"## Decision\n\nSQLite: one file.\n"
    assert [file.path for file in applied.files] == ["notes/db.md"]
    assert applied.plan.message == "append to notes/db.md"


@cases(
    "before, after",
    [
        ("", "## T\n\nnew\n"),
        ("  \n\t\n\n", "## T\n\nnew\n"),
        ("old", "old\n\n## T\n\nnew\n"),
        ("old\n", "old\n\n## T\n\nnew\n"),
        ("old\n\n\n \n", "old\n\n## T\n\nnew\n"),
        ("old\r\nmore\r\n", "old\r\nmore\r\n\r\n## T\r\n\r\nnew\r\n"),
        ("\ufeffold\n", "\ufeffold\n\n## T\n\nnew\n"),
        ("---\ntags: [a]  # mine\n---\n", "---\ntags: [a]  # mine\n---\n\n## T\n\nnew\n"),
        ("---\ntags: [a]\n---\nold\n", "---\ntags: [a]\n---\nold\n\n## T\n\nnew\n"),
        ("- a\n  - b\n", "- a\n  - b\n\n## T\n\nnew\n"),
        ("- a\n  ```\n  open\n", "- a\n  ```\n  open\n\n## T\n\nnew\n"),
        ("> quote\n", "> quote\n\n## T\n\nnew\n"),
        ("```\nclosed\n```\n", "```\nclosed\n```\n\n## T\n\nnew\n"),
        ("<div>\nhtml\n", "<div>\nhtml\n\n## T\n\nnew\n"),
    ],
)
def test_exactly_one_blank_line_stands_before_a_section(
    vault_root: Path, notes: Notes[Applied], before: str, after: str
) -> None:
    file = put(vault_root, "notes/db.md", before)

    notes.append("db", "\n\nnew\n \n", "T")

    assert file.read_bytes() == after.encode()


def test_sections_follow_each_other(vault_root: Path, notes: Notes[Applied]) -> None:
    notes.append("db", "one", "A")
    notes.append("db.md", "two", "B")
    notes.append("notes/db.md", "three")

    assert (vault_root / "notes/db.md").read_text() == "## A\n\none\n\n## B\n\ntwo\n\nthree\n"


@pytest.mark.parametrize("title", ["A > #1 `x`", "C#"])
def test_a_title_that_stands_gets_the_text_below_it(
    vault_root: Path, notes: Notes[Applied], title: str
) -> None:
    notes.append("db", "one\n\n### Below", title)
    notes.append("db", "between", "B")
    notes.append("db", "two", f" {title}\n")

    written = heading_text(title)
    text = f"## {written}\n\none\n\ntwo\n\n### Below\n\n## B\n\nbetween\n"
    assert (vault_root / "notes/db.md").read_text() == text


def test_of_equal_titles_the_last_one_gets_the_text(vault_root: Path, notes: Notes[Applied]) -> None:
    file = put(vault_root, "notes/db.md", "# A\n\n## A\n\none\n\n## A\n\ntwo\n\n### A\n")

    notes.append("db", "three", "A")

    assert file.read_text() == "# A\n\n## A\n\none\n\n## A\n\ntwo\n\nthree\n\n### A\n"


def test_two_entries_of_one_minute_stand_below_one_heading(vault: Vault) -> None:
    notes = Notes(vault, vault.transact, clock)
    notes.today("one")
    notes.today("two")

    assert vault.read(notes.today_path).text.endswith("## 12:30\n\none\n\ntwo\n")


def test_a_text_without_a_title_gets_no_heading(vault_root: Path, notes: Notes[Applied]) -> None:
    notes.append("log", "one")
    notes.append("log", "- two")
    notes.append("log", "three")
    assert (vault_root / "notes/log.md").read_text() == "one\n\n- two\n\nthree\n"


def test_a_new_note_may_be_given_with_its_frontmatter(vault_root: Path, notes: Notes[Applied]) -> None:
    notes.append("db", "---\ntags: [db]\n---\nOne file.")
    assert (vault_root / "notes/db.md").read_text() == "---\ntags: [db]\n---\nOne file.\n"
    assert notes.read("db").fields == {"tags": ["db"]}


@pytest.mark.parametrize("title", ["", " \n\t", "\x00\x1b"])
def test_a_section_with_a_blank_title_is_called_by_the_local_time(
    vault_root: Path, notes: Notes[Applied], title: str
) -> None:
    notes.append("log", "x", title)

    assert (vault_root / "notes/log.md").read_text() == "## 2024-01-31 12:30:05\n\nx\n"


def test_content_is_kept_as_it_is_without_the_blank_lines_around_it(
    vault_root: Path, notes: Notes[Applied]
) -> None:
    notes.append("x", "\n \n    code\n\n\n# Heading\n\ttext  \nend\n\n", "T")

    assert (vault_root / "notes/x.md").read_text() == "## T\n\n    code\n\n\n# Heading\n\ttext  \nend\n"


@cases(
    "title, written",
    [
        ("a\nb", "a b"),
        ("a\r\n## b", "a ## b"),
        ("# a", "# a"),
        ("a #", "a \\#"),
        ("a ###", "a \\###"),
        ("###", "\\###"),
        ("C#", "C#"),
        ("a\u2028b\x85c\x0bd", "a b c d"),
        ("a\x1b[31mb\x00", "a [31mb"),
        ("fact ^id", "fact \\^id"),
        ("`x` *y*", "`x` *y*"),
    ],
)
def test_a_title_is_one_line_that_reads_as_given(title: str, written: str) -> None:
    assert heading_text(title) == written


_TITLES = st.text(alphabet=st.sampled_from("ab#\n\r\t \\^-=`~<>!*_[]:\x00\x85\u2028é"), max_size=12)
_PIECES = (
    *("a", "b c", "\n", "\n\n", "\r\n", " ", "    ", "```", "~~~~", "# h", "## h", "- ", "> ", "1. "),
    *("<!--", "-->", "<div>", "</div>", "<script>", "</script>", "<?", "?>", "---", "===", "k: v", "[a]: b"),
    *("|a|b|", "^id", "\t", "<![CDATA[", "]]>", "<!X", ">", "\ufeff"),
)
_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=10).map("".join)


@given(title=_TITLES)
@example("# #")
@example("#\\ #")
def test_any_title_makes_exactly_one_heading_that_says_it(
    plans: tuple[Path, Notes[EditPlan]], title: str
) -> None:
    before = "# Top\n\ntext\n"
    after = appended(plans, before, "content", title)

    collapsed = " ".join(title.replace("\x00", " ").split()) or "2024-01-31 12:30:05"
    assert [h.level for h in after.headings] == [1, 2]
    assert after.headings[1].title == heading_text(collapsed)
    assert after.blocks == ()
    inline = MarkdownIt().parse(after.text)[7]
    assert inline.content == heading_text(collapsed)
    if not set(collapsed) & set("\\`<>!*_[]:"):
        assert "".join(part.content for part in inline.children or ()) == collapsed
    assert after.text.startswith(before)
    assert after.text.endswith("\n\ncontent\n")


@given(before=_TEXTS, content=_TEXTS.filter(unpadded))
@example("---\nk: v\n", "---\n")
@example("<!--", "-->")
@example("~~~~\n", "a")
@example("", ">## h\n```")
@settings(max_examples=examples(150))
def test_a_section_is_a_section_or_the_append_is_refused(
    plans: tuple[Path, Notes[EditPlan]], before: str, content: str
) -> None:
    try:
        after = appended(plans, before, content, "T")
        last = appended(plans, after.text, "end", "U")
    except EditRefused:
        # Then one of the two must really swallow a heading behind it.
        file = plans[0].read_bytes().decode().removeprefix("\ufeff")
        assert file.startswith("---") or swallows(content) or swallows(file)
        return
    kept = parse("n.md", before.encode())
    assert after.text.startswith(before.rstrip(" \t\r\n"))
    assert after.frontmatter.span == kept.frontmatter.span
    assert "T" in [h.title for h in after.headings if h.level == 2]
    assert last.headings[-1].title == "U"
    assert after.text.replace("\r\n", "\n").rstrip("\n").endswith(unpadded(content).replace("\r\n", "\n"))


# -- what an append refuses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("# A\n\n```py\ncode\n", "line 3"),
        ("---\na: 1\n---\n\n~~~~\ncode\n~~~\n", "line 5"),
        ("text\n\n<!-- note\n", "the comment in line 3 of the note"),
        ("---\nopen: frontmatter\n", "frontmatter"),
    ],
)
def test_a_note_that_would_swallow_the_section_is_left_alone(
    vault_root: Path, notes: Notes[Applied], before: str, reason: str
) -> None:
    file = put(vault_root, "notes/db.md", before)

    with pytest.raises(EditRefused, match=reason) as caught:
        notes.append("db", "---\nnew\n", "T")

    assert caught.value.path == "notes/db.md"
    assert caught.value.hint
    assert file.read_text() == before


@pytest.mark.parametrize("verb", ["append", "overwrite"])
def test_content_that_would_swallow_later_sections_is_refused(
    vault_root: Path, notes: Notes[Applied], verb: str
) -> None:
    with pytest.raises(EditRefused, match="the fence in line 2 of the content is never closed"):
        getattr(notes, verb)("db", "code:\n```\nx = 1\n", "T")

    assert not (vault_root / "notes").exists()


@pytest.mark.parametrize("content", ["", " \n\t\n", "\u2003\n", "\ufeff\n"])
def test_blank_content_is_refused(notes: Notes[Applied], content: str) -> None:
    with pytest.raises(Usage, match="content"):
        notes.append("db", content)
    with pytest.raises(Usage, match="content"):
        notes.overwrite("db", content)


@pytest.mark.parametrize("name", ["", "  "])
def test_a_note_needs_a_name(notes: Notes[Applied], name: str) -> None:
    with pytest.raises(Usage, match="name"):
        notes.append(name, "x")


def test_a_note_is_markdown(notes: Notes[Applied]) -> None:
    with pytest.raises(Usage, match=r"leave \.json out"):
        notes.append("data.json", "x")


@cases("name", ["../x", "../../evil.md", "a/../../x", "/etc/x", ".hidden", "a//b", "a\\b", "a\0b"])
def test_no_name_leaves_the_notes(vault_root: Path, notes: Notes[Applied], name: str) -> None:
    for verb in (
        lambda: notes.append(name, "x"),
        lambda: notes.overwrite(name, "x"),
        lambda: notes.read(name),
    ):
        with pytest.raises(PathRefused):
            verb()

    assert sorted(p.name for p in vault_root.parent.rglob("*") if p.is_file()) == ["config.toml"]


@given(name=st.text(max_size=20))
def test_any_name_stands_below_notes_or_is_refused(plans: tuple[Path, Notes[EditPlan]], name: str) -> None:
    try:
        plan = plans[1].append(name, "x")
    except (Usage, PathRefused):
        return

    (path,) = plan.paths
    assert path.startswith("notes/")
    assert path.endswith(".md")
    assert not {"", ".", ".."} & set(path.split("/"))


def test_a_link_in_the_vault_is_not_followed(vault_root: Path, notes: Notes[Applied]) -> None:
    (vault_root / "notes").mkdir()
    outside = put(vault_root.parent, "outside/secret.md", "mine\n")
    (vault_root / "notes" / "link").symlink_to(outside.parent)
    (vault_root / "notes" / "direct.md").symlink_to(outside)

    for name in ("link/secret", "link/new", "direct"):
        with pytest.raises(PathRefused):
            notes.append(name, "x")

    assert outside.read_text() == "mine\n"
    assert [p.name for p in outside.parent.iterdir()] == ["secret.md"]


@pytest.mark.parametrize(("content", "error"), [("\ud800", NotEncodable), ("a\0b", BinaryContent)])
def test_content_that_no_file_can_hold_is_refused(
    vault_root: Path, notes: Notes[Applied], content: str, error: type[Exception]
) -> None:
    file = put(vault_root, "notes/old.md", "old\n")

    for name in ("new", "old"):
        with pytest.raises(error):
            notes.append(name, content, "T")

    assert file.read_text() == "old\n"
    assert not (vault_root / "notes/new.md").exists()


# -- overwrite --------------------------------------------------------------------------------------------


def test_overwrite_makes_a_note_of_one_section(vault_root: Path, notes: Notes[Applied]) -> None:
    notes.overwrite("a/b", "one", "A")
    notes.overwrite("a/b", "two\n", "B")

    assert (vault_root / "notes/a/b.md").read_text() == "## B\n\ntwo\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\ntitle: 'x' # c\n---\n# Old\n", "---\ntitle: 'x' # c\n---\n\n## T\n\nnew\n"),
        ("---\r\na: 1\r\n---\r\n\r\nold\r\n", "---\r\na: 1\r\n---\r\n\r\n## T\r\n\r\nnew\r\n"),
        ("---\na: 1\n---", "---\na: 1\n---\n\n## T\n\nnew\n"),
        ("\ufeffold", "\ufeff## T\n\nnew\n"),
        ("```\nopen\n", "## T\n\nnew\n"),
    ],
)
def test_overwrite_keeps_the_frontmatter_byte_for_byte(
    vault_root: Path, notes: Notes[Applied], before: str, after: str
) -> None:
    file = put(vault_root, "notes/db.md", before)

    notes.overwrite("db", "new", "T")

    assert file.read_bytes() == after.encode()


def test_what_was_overwritten_can_be_restored(vault_root: Path, vault: Vault, notes: Notes[Applied]) -> None:
    file = put(vault_root, "notes/db.md", "precious\r\n")

    notes.overwrite("db", "new", "T")
    Memory(vault.root).restore("notes/db.md")

    assert file.read_bytes() == b"precious\r\n"


def test_overwrite_with_a_base_refuses_what_has_moved_on(vault_root: Path, notes: Notes[Applied]) -> None:
    file = put(vault_root, "notes/db.md", "one\n")
    seen = notes.read("db").hash
    file.write_text("two\n")

    with pytest.raises(Conflict):
        notes.overwrite("db", "new", "T", base=seen)
    assert file.read_text() == "two\n"

    notes.overwrite("db", "new", "T", base=notes.read("db").hash)
    assert file.read_text() == "## T\n\nnew\n"

    with pytest.raises(MemoryNotFound):
        notes.overwrite("absent", "new", base=seen)


# -- read and list ----------------------------------------------------------------------------------------


def test_read_takes_the_name_in_every_form(vault_root: Path, notes: Notes[Applied]) -> None:
    put(vault_root, "notes/db/postgres.md", "x\n")

    found = {notes.read(name).text for name in ("db/postgres", "db/postgres.md", "notes/db/postgres.md")}

    assert found == {"x\n"}
    with pytest.raises(MemoryNotFound) as caught:
        notes.read("db/postgre")
    assert caught.value.near == ("notes/db/postgres.md",)


def test_list_shows_every_note_with_its_title(vault_root: Path, notes: Notes[Applied]) -> None:
    put(vault_root, "notes/b.md", "intro\n\n# Heading\n")
    put(vault_root, "notes/a/field.md", "---\ntitle: From the field\n---\n# Heading\n")
    put(vault_root, "notes/a/plain.md", "no heading\n")
    put(vault_root, "notes/a/deep/empty-title.md", "---\ntitle: ''\n---\n## Setext\n")
    put(vault_root, "notes/broken.md", b"\xff\xfe")
    put(vault_root, "notes/data.json", "{}")
    put(vault_root, "notes/.hidden/x.md", "x")
    put(vault_root, "other.md", "x")
    put(vault_root, "projects/p/notes/x.md", "x")
    (vault_root / "notes/link.md").symlink_to(vault_root / "other.md")

    listed = notes.list()

    assert [(n.path, n.title) for n in listed] == [
        ("notes/a/deep/empty-title.md", "Setext"),
        ("notes/a/field.md", "From the field"),
        ("notes/a/plain.md", "plain"),
        ("notes/b.md", "Heading"),
        ("notes/broken.md", "broken"),
    ]
    file = vault_root / "notes/b.md"
    assert listed[3] == NoteInfo(
        path="notes/b.md", title="Heading", size=17, mtime_ns=file.stat().st_mtime_ns
    )
    assert as_json(listed[3])["path"] == "notes/b.md"
    with pytest.raises(NotUtf8):
        notes.read("broken")


def test_list_below_a_folder(vault_root: Path, notes: Notes[Applied]) -> None:
    put(vault_root, "notes/a/x.md", "x")
    put(vault_root, "notes/ab/y.md", "y")

    assert [n.path for n in notes.list("a")] == ["notes/a/x.md"]
    assert notes.list("notes/a") == notes.list("a/")
    assert notes.list("notes") == notes.list() == notes.list("notes/a") + notes.list("ab")
    with pytest.raises(MemoryNotFound):
        notes.list("none")
    with pytest.raises(PathRefused):
        notes.list("../..")


def test_a_vault_without_notes_lists_none(notes: Notes[Applied]) -> None:
    assert notes.list() == []


def test_notes_stand_in_their_namespace(vault_root: Path) -> None:
    put(vault_root, "notes/shared.md", "x")
    inner = Vault(str(vault_root), "users/alice")
    mine = Notes(inner, inner.transact, clock)

    mine.append("own", "x", "T")

    assert [n.path for n in mine.list()] == ["notes/own.md"]
    assert (vault_root / "users/alice/notes/own.md").exists()
    with pytest.raises(MemoryNotFound):
        mine.read("shared")


# -- plans, and others who write --------------------------------------------------------------------------


def test_a_plan_shows_the_diff_and_writes_nothing(vault_root: Path, vault: Vault) -> None:
    file = put(vault_root, "notes/db.md", "old\n")
    planned = Notes(vault, lambda build: build(), clock)

    plan = planned.append("db", "new", "T")

    assert plan.diff() == "--- a/notes/db.md\n+++ b/notes/db.md\n@@ -1 +1,5 @@\n old\n+\n+## T\n+\n+new\n"
    assert planned.append("new", "x", "T").diff().startswith("--- /dev/null\n+++ b/notes/new.md\n")
    assert file.read_text() == "old\n"
    assert [p.name for p in (vault_root / "notes").iterdir()] == ["db.md"]


def test_a_planned_append_keeps_what_was_appended_since(vault_root: Path, vault: Vault) -> None:
    file = put(vault_root, "notes/db.md", "old\n")
    plan = Notes(vault, lambda build: build(), clock).append("db", "mine", "T")
    file.write_text("old\n\n## Theirs\n\ntheirs\n")

    applied = vault.apply(plan)

    assert applied.merged == ("notes/db.md",)
    assert sorted(h.title for h in parse("n.md", file.read_bytes()).headings) == ["T", "Theirs"]


MANY = 4 if speed.is_all else 2
EACH = examples(25)


def append_many(root: Path, me: int) -> None:
    vault = Vault(str(root))
    notes = Notes(vault, vault.transact)
    for number in range(EACH):
        notes.append("shared", f"content {me}-{number}", f"title {me}-{number}")


def test_processes_that_append_to_one_note_lose_nothing(vault_root: Path, notes: Notes[Applied]) -> None:
    assert set(run_at_once(*(partial(append_many, vault_root, n) for n in range(MANY)))) == {0}

    document = notes.read("shared")
    wanted = {f"{process}-{number}" for process in range(MANY) for number in range(EACH)}
    assert {h.title.removeprefix("title ") for h in document.headings} == wanted
    assert len(document.headings) == len(wanted)
    assert {
        s.removeprefix("content ") for s in document.text.split("\n") if s.startswith("content")
    } == wanted
