"""What an editor is told: the answers for unsaved texts, and what becomes of them when others write."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings, strategies as st

import mdmem
from mdmem.diagnostic import Span
from mdmem.errors import MdmemError
from tests.speed import examples
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mdmem.editor.editing import Editing
    from mdmem.facade.memory import Memory

PATHS = ("a.md", "b.md", "notes/a.md", "notes/c.md", "deep/er/d.md", "e.json", "Ä.md")
LINES = (
    *("# One", "## Two", "## Two", "text ^f1", "- item ^f2", "---", "id: x1", "id: x2", "aliases: [alf, B]"),
    *("tags: [t, u/v]", "title: T", "type: note", "derived_from: '[[b]]'", "superseded_by: notes/c.md"),
    *("[[a]]", "😀 [[b#Two]]", "[[notes/a#^f1|x]]", "[[alf]]", "[[x1]]", "[x](b.md#two)", "[y](../a.md)"),
    *(
        "[[gone]]",
        "![[pic.png]]",
        "![[only.png]]",
        "[c](../src/app.py#L1-L2)",
        "`src/app.py#L2`",
        "`src/app.py:1-2`",
        "#t #u/v",
    ),
    *(
        "`src/app.py#L1-L2`<!-- pin 0123456789abcdef -->",
        "[r]",
        "[r]: notes/c.md",
        "```",
        "`[[a]]`",
        "\u2028",
    ),
    *(
        "<!-- mdmem: silence dangling-link -->",
        "tier: often",
        "valid_to: 2020-01-01",
        "[[Ä]]",
        "[[#Two]]",
        "",
    ),
)
ODD = (
    "\0",
    '{"id": "x1", "derived_from": ["a.md"]}',
    "{",
    "\ufeff# B",
    "---\ntitle: {a: {b: 1}}\n---\n",
    "[[a]]",
)


class Life:
    """An editor and other programs that change the files of a vault, chosen by chance."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.root = folder / "memories"
        (folder / "src").mkdir(parents=True)
        (folder / "src/app.py").write_text("def a():\n    return 1\n")
        mdmem.init(self.root)
        for name in ("pic.png", "img/pic.png", "img/only.png", "img/other/only.png"):
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_bytes(b"\x89PNG")
        for path in PATHS[:4]:
            self.write(path)
        self.editing = mdmem.open(self.root).editing()

    def text(self) -> str:
        if self.chance.random() < 0.1:
            return self.chance.choice(ODD)
        body = self.chance.choices(LINES, k=self.chance.randint(1, 9))
        head = self.chance.choices(LINES[6:14], k=self.chance.randint(0, 3))
        lines = ["---", *dict.fromkeys(head), "---", *body] if head else body
        end = self.chance.choice(("\n", "\n", "\r\n", "\r"))
        return end.join(lines) + self.chance.choice((end, ""))

    def path(self) -> str:
        return self.chance.choice(PATHS)

    def write(self, path: str, text: str | None = None) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((self.text() if text is None else text).encode())

    def step(self) -> None:
        editing, path = self.editing, self.path()
        action = self.chance.randrange(6)
        if action == 0:
            self.write(path)
        elif action == 1:
            (self.root / path).unlink(missing_ok=True)
        elif action == 2 and editing.is_open(path):
            self.write(path, editing.text(path))
            editing.saved(path)
        elif action == 3:
            editing.close(path)
        else:
            editing.open(path, self.text())

    def saved(self) -> Memory:
        """The same memories in a vault where everything that is open is saved."""
        folder = self.folder.with_name(f"{self.folder.name}-saved")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("local"))
        memory = mdmem.open(folder / "memories")
        for path in PATHS:
            text = self.editing.text(path)
            if text is not None:
                file = Path(memory.root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode())
        return memory


def plain(value: Any, root: str) -> Any:
    """An answer without what two vaults cannot have alike."""
    if hasattr(value, "starts"):
        return value.text
    if isinstance(value, mdmem.EditPlan):
        return value.diff()
    if hasattr(value, "_asdict"):
        return {name: plain(each, root) for name, each in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [plain(each, root) for each in value]
    if not isinstance(value, str):
        return value
    # What was never saved was never seen.
    value = value.replace(" is unchanged (compared with first seen).", " is ok.")
    return value.replace(os.path.dirname(root), "")


def asked(question: Callable[[], Any], root: str) -> Any:
    try:
        answer = question()
    except MdmemError as error:
        return type(error).__name__, error.message.replace(root, "")
    return plain(answer.diff() if isinstance(answer, mdmem.EditPlan) else answer, root)


def findings(found: list[mdmem.Diagnostic]) -> list[Any]:
    """Where each is and what; why a file cannot be a memory has no place on disk."""
    refused = {"binary", "not-utf8", "too-large"}
    return sorted((f.code, f.span if f.code not in refused else (0, 0), f.message, f.related) for f in found)


def answers(editing: Editing, path: str, offsets: list[int], new: str) -> Iterator[Any]:
    root = editing.memory.root
    for offset in offsets:
        yield offset, asked(lambda: editing.at(path, offset), root)  # noqa: B023 - called at once
        yield offset, asked(lambda: editing.targets(path, offset), root)  # noqa: B023
        yield offset, asked(lambda: editing.uses(path, offset, declaration=True), root)  # noqa: B023
        yield offset, asked(lambda: editing.hover(path, offset), root)  # noqa: B023
    yield asked(lambda: editing.rename(path, offsets[0], new), root)
    yield asked(lambda: editing.completions(path, offsets[0]), root)
    for fix in editing.fixes(path, Span(offsets[0], offsets[0])):
        yield fix.title, fix.plan.diff()
    yield asked(lambda: editing.links(path), root)
    yield asked(lambda: editing.outline(path), root)


def compare(life: Life) -> None:
    memory = life.saved()
    editing, fresh = life.editing, memory.editing()
    for path in life.chance.sample(PATHS, 3):
        text = editing.text(path)
        if text is None and not (life.root / path).exists():
            continue
        assert findings(editing.check(path)) == findings(memory.check([path])), path
        document = editing.document(path)
        if document is None:
            continue
        spans = [link.span for link in document.links]
        places = [
            *(span.start + 3 for span in spans),
            *life.chance.choices(range(len(document.text) + 1), k=3),
        ]
        offsets, new = (
            life.chance.sample(places, min(4, len(places))),
            life.chance.choice(("new", "x/y", "b")),
        )
        assert list(answers(editing, path, offsets, new)) == list(answers(fresh, path, offsets, new)), path
        linked = {(each.path, each.line) for each in memory.references.backlinks(path)}
        head = editing.uses(path, 0) if document.text.startswith("---") and document.body_span.start else None
        if head is not None and (standing := editing.at(path, 0)) is None:
            assert {(s.path, s.lines.number(s.span.start)) for s in head if s.lines} == linked, standing
    first = asked(lambda: editing.symbols("t", 30), editing.memory.root)
    assert first == asked(lambda: fresh.symbols("t", 30), memory.root)
    assert editing.around().tags() == fresh.around().tags()
    memory.index.close()


@settings(max_examples=examples(40))
@example(209066046)  # an open JSON file that follows no schema
@example(15664)  # a rename of what is open, and can be no memory
@given(st.integers(0, 1 << 32))
def test_overlay_answers_as_a_vault_would_where_everything_open_is_saved(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder, "work"), random.Random(seed))
        for _ in range(life.chance.randint(1, 4)):
            for _ in range(life.chance.randint(1, 5)):
                life.step()
            compare(life)
        life.editing.memory.index.close()


# -- who writes what ----------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    mdmem.init(tmp_path / "memories")
    return tmp_path / "memories"


@pytest.fixture
def editing(root: Path) -> Editing:
    return mdmem.open(root).editing()


def put(root: Path, path: str, text: str) -> str:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return text


def taken(editing: Editing, path: str) -> str | None:
    """The open text with what is on disk taken over; None where there is nothing to take over, or no way."""
    found, text = editing.merge(path), editing.text(path)
    if found is None or found.edits is None or text is None:
        return None
    for start, end, new in reversed(found.edits):
        text = text[:start] + new + text[end:]
    return text


def test_a_link_to_an_open_text_that_cannot_be_a_memory_is_not_broken(root: Path, editing: Editing) -> None:
    (root / "bytes.md").write_bytes(b"\xff")
    editing.open("bad.md", "one\0\n")
    editing.open("a.md", "[[bad]] [[bytes]]\n")
    assert editing.check("a.md") == []
    editing.open("bytes.md", "one\n")
    editing.close("bad.md")
    assert [each.message for each in editing.check("a.md")] == ["there is no memory 'bad'"]


def test_what_another_program_wrote_is_taken_over_beside_unsaved_work(root: Path, editing: Editing) -> None:
    editing.open("a.md", put(root, "a.md", "# A\n\none\n\n## B\n\ntwo\n"))
    editing.open("a.md", "# A\n\none, mine\n\n## B\n\ntwo\n")
    assert editing.merge("a.md") is None
    put(root, "a.md", "# A\n\none\n\n## B\n\ntwo\n\ntheirs\n")
    assert taken(editing, "a.md") == "# A\n\none, mine\n\n## B\n\ntwo\n\ntheirs\n"


def test_what_was_taken_over_once_is_not_merged_again(root: Path, editing: Editing) -> None:
    editing.open("a.md", put(root, "a.md", "one\n\ntwo\n"))
    put(root, "a.md", "one\n\ntwo, theirs\n")
    merged = taken(editing, "a.md")
    assert merged == "one\n\ntwo, theirs\n"
    editing.open("a.md", merged)
    editing.open("a.md", "one\n\ntwo, theirs and mine\n")
    assert editing.merge("a.md") is None
    put(root, "a.md", "zero\n\none\n\ntwo, theirs\n")
    assert taken(editing, "a.md") == "zero\n\none\n\ntwo, theirs and mine\n"


def test_what_was_taken_over_is_not_doubled_when_the_disk_changes_before_the_editor_has_it(
    root: Path, editing: Editing
) -> None:
    editing.open("a.md", put(root, "a.md", "# A\n\none\n"))
    editing.open("a.md", "# A\n\none, mine\n")
    put(root, "a.md", "# A\nfirst\n\none\n")
    merged = taken(editing, "a.md")
    assert merged == "# A\nfirst\n\none, mine\n"
    put(root, "a.md", "# A\n\n- second\nfirst\n\none\n")
    assert editing.merge("a.md") is not None  # as the check of a file does that has changed
    editing.open("a.md", merged)
    assert taken(editing, "a.md") == "# A\n\n- second\nfirst\n\none, mine\n"


def test_a_conflict_says_in_which_line_of_the_open_text_it_is(root: Path, editing: Editing) -> None:
    editing.open("a.md", put(root, "a.md", "one\n\ntwo\n"))
    editing.open("a.md", "new\n\none\n\ntwo, mine\n")
    put(root, "a.md", "one\n\ntwo, theirs\n")
    found = editing.merge("a.md")
    assert found is not None
    assert found.edits is None
    assert found.lines == (5,)


def test_what_was_saved_is_the_base_of_the_next_merge(root: Path, editing: Editing) -> None:
    editing.open("a.md", put(root, "a.md", "one\n"))
    editing.open("a.md", "one, mine\n")
    put(root, "a.md", "one, mine\n")
    editing.saved("a.md")
    put(root, "a.md", "one, mine\n\ntheirs\n")
    assert taken(editing, "a.md") == "one, mine\n\ntheirs\n"


def test_what_was_merged_and_saved_is_the_base_of_the_next_merge(root: Path, editing: Editing) -> None:
    editing.open("a.md", put(root, "a.md", "one\n\ntwo\n"))
    editing.open("a.md", "one, mine\n\ntwo\n")
    put(root, "a.md", "one\n\ntwo, theirs\n")
    merged = taken(editing, "a.md")
    assert merged == "one, mine\n\ntwo, theirs\n"
    editing.open("a.md", put(root, "a.md", merged))
    editing.saved("a.md")
    editing.open("a.md", "one, mine again\n\ntwo, theirs\n")
    assert editing.merge("a.md") is None


def test_an_open_file_that_is_renamed_keeps_what_another_program_wrote(root: Path, editing: Editing) -> None:
    """An editor closes what it renames, and opens the other name with the text of the buffer."""
    editing.open("a.md", put(root, "a.md", "one\n\ntwo\n"))
    editing.open("a.md", "one, mine\n\ntwo\n")
    put(root, "a.md", "one\n\ntwo, theirs\n")
    (root / "a.md").rename(root / "b.md")
    editing.close("a.md")
    editing.open("b.md", "one, mine\n\ntwo\n")
    assert taken(editing, "b.md") == "one, mine\n\ntwo, theirs\n"


def test_a_conflict_about_a_whole_text_names_the_lines_that_both_changed(
    root: Path, editing: Editing
) -> None:
    base = "---\ntitle: T\n---\n\n# A\n\n## B\n\ntext\n\nlast"
    editing.open("a.md", put(root, "a.md", base))
    editing.open("a.md", base.replace("## B\n", "## B\n## Mine\n") + "\n")
    put(root, "a.md", base.replace("## B\n", "## B\n\n## Theirs\n"))
    found = editing.merge("a.md")
    assert found is not None
    assert (found.edits, found.lines) == (None, (8,))


@pytest.mark.parametrize("disk", ["\ufeffone\n\ntwo\n", "one\r\n\r\ntwo\r\n", "one\n\ntwo"])
def test_what_editors_hide_of_a_file_is_no_change(root: Path, editing: Editing, disk: str) -> None:
    put(root, "a.md", disk)
    editing.open("a.md", "one\n\ntwo\n")
    assert editing.merge("a.md") is None
    put(root, "a.md", disk.replace("one", "one, theirs"))
    assert taken(editing, "a.md") == "one, theirs\n\ntwo\n"


def test_a_file_that_changed_while_it_was_opened_keeps_that_change(root: Path, editing: Editing) -> None:
    """The editor read it a moment before another program wrote it."""
    old = put(root, "a.md", "one\n\ntwo\n")
    editing.around()
    put(root, "a.md", "one\n\ntwo\n\ntheirs\n")
    editing.open("a.md", old)
    assert taken(editing, "a.md") == "one\n\ntwo\n\ntheirs\n"


def test_unsaved_work_of_an_earlier_run_is_not_undone(root: Path, editing: Editing) -> None:
    """An editor that was restarted opens what it had kept, which nobody has seen on disk."""
    put(root, "a.md", "one\n\ntwo\n")
    os.utime(root / "a.md", (1e9, 1e9))
    editing.around()
    editing.open("a.md", "one, mine\n\ntwo\n")
    assert editing.merge("a.md") is None
    put(root, "a.md", "one\n\ntwo, theirs\n")
    assert taken(editing, "a.md") == "one, mine\n\ntwo, theirs\n"


def test_of_two_texts_without_a_known_beginning_a_person_decides(root: Path, editing: Editing) -> None:
    """Either may be the newer one: a file that was written just now, and another text that is opened."""
    old = "one\n\ntwo\n"
    put(root, "a.md", "one\n\ntwo, theirs\n")
    editing.open("a.md", old)
    found = editing.merge("a.md")
    assert found is not None
    assert (found.edits, found.lines) == (None, (3,))
    editing.open("a.md", "one\n\ntwo, theirs\n")
    assert editing.merge("a.md") is None
    editing.open("a.md", "one\n\ntwo, theirs and mine\n")
    assert editing.merge("a.md") is None
    put(root, "a.md", "zero\n\none\n\ntwo, theirs\n")
    assert taken(editing, "a.md") == "zero\n\none\n\ntwo, theirs and mine\n"


def test_a_deleted_file_has_nothing_to_take_over(root: Path, editing: Editing) -> None:
    editing.open("a.md", put(root, "a.md", "one\n"))
    (root / "a.md").unlink()
    assert editing.merge("a.md") is None


# -- what is to be checked again ----------------------------------------------------------------------------


def test_a_memory_is_checked_again_when_what_it_links_to_changes(root: Path, editing: Editing) -> None:
    put(root, "b.md", "# B\n")
    editing.open("a.md", put(root, "a.md", "[[b#B]]\n"))
    editing.open("c.md", put(root, "c.md", "nothing\n"))
    assert editing.changed() == ("a.md", "c.md")
    assert editing.changed() == ()
    put(root, "b.md", "# Other\n")
    assert editing.changed() == ("a.md",)
    editing.open("b.md", "# B\n")
    assert editing.changed() == ("a.md", "b.md")
    editing.open("b.md", "# B\n\nmore\n")
    assert editing.changed() == ()
    editing.close("b.md")
    assert editing.changed() == ("a.md",)
    put(root, "c.md", "more\n")
    assert editing.changed() == ("c.md",)


def test_a_picture_is_found_by_its_name_as_soon_as_it_is_there(root: Path, editing: Editing) -> None:
    editing.open("a.md", put(root, "a.md", "![[new.png]]\n"))
    assert [found.code for found in editing.check("a.md")] == ["dangling-link"]
    put(root, "img/new.png", "x")
    assert editing.check("a.md") == []
    put(root, "img/deep/new.png", "x")
    assert [found.code for found in editing.check("a.md")] == ["ambiguous-link"]


def test_changes_of_other_programs_are_told(root: Path, editing: Editing) -> None:
    (root.parent / "app.py").write_text("a = 1\n")
    editing.open("a.md", put(root, "a.md", "[[b]] `app.py#L1`\n"))
    told: list[tuple[str, ...]] = []
    changes = editing.changes()
    assert next(changes) == ("a.md",)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: told.extend(changes))
        for change in (
            lambda: put(root, "b.md", "# B\n"),
            lambda: (root / ".mdmem/config.toml").write_text("[check]\nsilenced = ['dangling-link']\n"),
            lambda: (root.parent / "app.py").write_text("b = 1\na = 1\n"),
        ):
            told.clear()
            change()
            until(lambda: ("a.md",) in told)
        put(root, "b.md", "[[gone]]\n")
        assert editing.check("b.md") == []  # by the config of now
        editing.stop()
        done.result()


# -- bad texts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "span"),
    [
        ("one\ntwo\0\n", "binary", (7, 8)),
        ("one \ud800", "not-encodable", (4, 5)),
        ("---\na: " + "[" * 40 + "]" * 40 + "\n---\n", "too-nested", (4, 5)),
    ],
)
def test_a_text_that_cannot_be_a_memory_has_one_finding_and_no_answers(
    root: Path, editing: Editing, text: str, code: str, span: tuple[int, int]
) -> None:
    editing.open("a.md", put(root, "a.md", "# A [[b]]\n"))
    editing.open("a.md", text)
    assert [(found.code, found.span) for found in editing.check("a.md")] == [(code, span)]
    assert editing.document("a.md") is None
    assert (editing.targets("a.md", 5), editing.links("a.md"), editing.outline("a.md")) == ([], [], [])
    assert (editing.hover("a.md", 5), editing.at("a.md", 5)) == (None, None)
    with pytest.raises(MdmemError):
        editing.rename("a.md", 5, "new")


def test_what_is_frozen_does_not_change(root: Path, editing: Editing) -> None:
    editing.open("a.md", put(root, "a.md", "# A\n"))
    frozen = editing.frozen()
    editing.open("a.md", "# B\n")
    editing.open("b.md", "# C\n")
    assert (frozen.text("a.md"), frozen.text("b.md")) == ("# A\n", None)
    assert [item.name for item in frozen.outline("a.md")] == ["A"]
    editing.close("a.md")
    assert frozen.is_open("a.md")


# -- renames ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "new", "reason"),
    [
        ("plain", "x", "nothing that has a name"),
        ("gone", "x", "leads to no memory"),
        ("two", "x", "may also mean"),
        ("[[b]]", "c", "already"),
        ("[[b]]", "../../../etc/x", "path"),
        ("# A", "B\nC", "cannot be the title"),
    ],
)
def test_a_rename_that_cannot_be_is_refused(
    root: Path, editing: Editing, here: str, new: str, reason: str
) -> None:
    for path in ("b.md", "c.md", "x/two.md", "y/two.md"):
        put(root, path, "# T\n")
    editing.open("a.md", put(root, "a.md", "# A\n\nplain [[gone]] [[two]] [[b]]\n"))
    text = editing.text("a.md") or ""
    with pytest.raises(MdmemError, match=reason):
        editing.rename("a.md", text.index(here) + 2, new)


def test_a_rename_changes_open_texts_as_they_are(root: Path, editing: Editing) -> None:
    put(root, "b.md", "# B\n")
    put(root, "c.md", "[[b]]\n")
    editing.open("a.md", put(root, "a.md", "[[b]]\n"))
    editing.open("a.md", "unsaved 😀 [[b]] and [[b#B]]\n")
    plan = editing.rename("a.md", (editing.text("a.md") or "").index("[[b]]") + 2, "new")
    changes = {change.path: change for change in plan.changes}
    assert set(changes) == {"a.md", "b.md", "c.md"}
    assert changes["b.md"].move_to == "new.md"
    assert changes["a.md"].before is editing.document("a.md")
    assert [edit.new for edit in changes["a.md"].edits] == ["new", "new"]
    assert (root / "b.md").exists()


# -- files that an editor moves -----------------------------------------------------------------------------


def moved(editing: Editing, *pairs: tuple[str, str]) -> dict[str, str]:
    """The texts that change when files are moved, all relative to the workspace, by memory."""
    workspace = editing.memory.workspace
    plan = editing.move({f"{workspace}/{old}": f"{workspace}/{new}" for old, new in pairs})
    assert not any(change.move_to for change in plan.changes)
    after = (change.after(mdmem.document.document.DEFAULT_LIMITS) for change in plan.changes)
    return {document.path: document.text for document in after if document}


@pytest.mark.parametrize(
    ("old", "new", "text", "after"),
    [
        ("memories/a/pic.png", "memories/a/new.png", "![](a/pic.png)", "![](a/new.png)"),
        ("memories/a/pic.png", "memories/a/new.png", "![[a/pic.png|x]]", "![[a/new.png|x]]"),
        ("memories/a/pic.png", "memories/z/b.png", "![[pic.png]] ![[a/pic.png]]", "![[b.png]] ![[z/b.png]]"),
        ("memories/a/pic.png", "memories/b c/pic.png", "[p](a/pic.png)", "[p](b%20c/pic.png)"),
        ("memories/a", "memories/z", "![](a/pic.png) [[a/m]]", "![](z/pic.png) [[z/m]]"),
        ("memories/a", "memories/z", "[x](a/m.md#t)", "[x](z/m.md#t)"),
        ("memories/a", "memories/z/b", "[x](a/) [y](./a) [z](a/m.md)", "[x](z/b/) [y](./z/b) [z](z/b/m.md)"),
        ("src/app.py", "src/new.py", "`src/app.py#L1` src/app.py:1-2", "`src/new.py#L1` src/new.py:1-2"),
        ("src/app.py", "src/new.py", "[c](../src/app.py#L2)", "[c](../src/new.py#L2)"),
        ("src", "lib", "`src/app.py#run` ![](../src/logo.png)", "`lib/app.py#run` ![](../lib/logo.png)"),
        ("src/app.py", "src/new.py", "`app.py#L1` other.py", "`src/new.py#L1` other.py"),
        ("src/logo.png", "logo2.png", "![](/src/logo.png)", "![](/logo2.png)"),
        ("src/logo.png", "l.png", "---\nicon: '[[src/logo.png]]'\n---\n", "---\nicon: '[[l.png]]'\n---\n"),
        ("memories/a/m.md", "memories/a/n.md", "😀 [[m]] [[m#T]]", "😀 [[n]] [[n#T]]"),
        ("other.txt", "another.txt", "nothing", None),
    ],
)  # fmt: skip
def test_links_follow_what_an_editor_moves(
    root: Path, editing: Editing, old: str, new: str, text: str, after: str | None
) -> None:
    workspace = root.parent
    (workspace / ".git").mkdir()
    for path in ("memories/a/pic.png", "src/logo.png", "src/app.py", "other.txt"):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_bytes(b"def run():\n    return 1\n")
    put(root, "a/m.md", "# T\n")
    put(root, "b.md", "")
    editing.open("b.md", text)
    assert moved(editing, (old, new)) == ({"b.md": after} if after else {})
    editing.close("b.md")
    put(root, "b.md", text)
    assert moved(editing, (old, new)) == ({"b.md": after} if after else {})


def test_a_memory_takes_its_links_along_when_an_editor_moves_it(root: Path, editing: Editing) -> None:
    put(root, "a/m.md", "![](pic.png) [n](n.md) `src/app.py#L1` [c](../../src/app.py)\n")
    put(root, "a/pic.png", "x")
    put(root, "a/n.md", "[m](m.md)\n")
    (root.parent / "src").mkdir()
    (root.parent / "src/app.py").write_text("a = 1\n")
    assert moved(editing, ("memories/a/m.md", "memories/m.md")) == {
        "a/m.md": "![](a/pic.png) [n](a/n.md) `src/app.py#L1` [c](../src/app.py)\n",
        "a/n.md": "[m](../m.md)\n",
    }
    assert moved(editing, ("memories/a", "memories/z")) == {}
    assert moved(editing, ("memories/a", "memories/z/y")) == {
        "a/m.md": "![](pic.png) [n](n.md) `src/app.py#L1` [c](../../../src/app.py)\n"
    }


def test_an_editor_is_told_which_moves_no_link_can_follow(root: Path, editing: Editing) -> None:
    put(root, "a.md", "# A\n")
    put(root, "b.md", "# B\n")
    for new in ("a.md", "memories/b.md", "memories/a.txt"):
        with pytest.raises(MdmemError):
            moved(editing, ("memories/a.md", new))
    assert moved(editing, ("memories", "other")) == {}


@pytest.mark.parametrize("goal", ["b.md", "t.md"])
def test_a_search_for_uses_that_nobody_waits_for_ends_at_once(
    root: Path, editing: Editing, goal: str
) -> None:
    text = {"b.md": "---\ntitle: B\n---\n", "t.md": "#tag\n"}[goal]
    put(root, goal, text)
    for number in range(20):
        put(root, f"{number}.md", "[[b]] #tag\n")
    asked: list[bool] = []

    def is_over() -> bool:
        asked.append(True)
        return len(asked) > 3

    assert len(editing.uses(goal, 2)) >= 20
    assert len(editing.uses(goal, 2, is_over=is_over)) == 3
    assert len(asked) == 4


def test_a_search_for_uses_that_finds_none_ends_at_once_as_well(root: Path, editing: Editing) -> None:
    put(root, "b.md", "## Nobody links here\n")
    for number in range(20):
        put(root, f"{number}.md", "[[b]]\n")
    asked: list[bool] = []

    def is_over() -> bool:
        asked.append(True)
        return len(asked) > 3

    assert editing.uses("b.md", 2) == []
    assert editing.uses("b.md", 2, is_over=is_over) == []
    assert len(asked) == 4
