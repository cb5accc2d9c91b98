"""What is offered to be done, and that doing it ends what was wrong.

In a case, the finding is the one whose span holds `⟨`; what is expected is the text after the fix.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

import mdmem
from mdmem.diagnostic import Span
from mdmem.document.document import DEFAULT_LIMITS
from mdmem.errors import MdmemError
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.editor.editing import Editing
    from mdmem.editor.fixes import Fix

SCHEMA = (
    '{"type": "object", "required": ["state", "level"], "properties": {"type": {}, "state": {"enum": ["open",'
    ' "closed"]}, "count": {"type": "integer"}, "names": {"type": "array"}, "level": {"const": "high"},'
    ' "when": {"type": "string", "format": "date"}, "sure": {"type": "boolean"}},'
    ' "additionalProperties": false}'
)


@pytest.fixture
def editing(tmp_path: Path) -> Editing:
    root = tmp_path / "memories"
    mdmem.init(root)
    for path, text in {
        "notes/database.md": "# Choice\n\n## Why\n\nfact ^fact1\n\n## Other\n\n### Why\n",
        "x/twin.md": "# One\n",
        "y/twin.md": "# Two\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / ".mdmem/schemas").mkdir(parents=True, exist_ok=True)
    (root / ".mdmem/schemas/bug.json").write_text(SCHEMA)
    return mdmem.open(root).editing()


def texts(fix: Fix) -> dict[str, str]:
    after = (change.after(DEFAULT_LIMITS) for change in fix.plan.changes)
    return {document.path: document.text for document in after if document}


def offered(editing: Editing, case: str, path: str = "notes/mine.md") -> list[Fix]:
    offset = case.index("⟨")
    editing.open(path, case.replace("⟨", ""))
    return editing.fixes(path, Span(offset, offset))


def bug(fields: str) -> str:
    return f"---\ntype: bug\n{fields}---\n"


CASES = {
    "the nearest name": (
        "😀 [[datebase⟨#Choice|x]]\r\n",
        "Link to notes/database.md",
        "😀 [[database#Choice|x]]\r\n",
    ),
    "the nearest path": ("[x](./datbase⟨.md)\n", "Link to notes/database.md", "[x](./database.md)\n"),
    "the nearest heading": ("[[database#Whyy⟨]]\n", "Link to #why", "[[database#why]]\n"),
    "the nearest slug": ("[x](database.md#choise⟨)\n", "Link to #choice", "[x](database.md#choice)\n"),
    "the nearest block": ("[[database#^fact2⟨]]\n", "Link to #^fact1", "[[database#^fact1]]\n"),
    "one of two": ("[[twin⟨]]\n", "Link to y/twin.md", "[[y/twin]]\n"),
    "a choice": (
        bug("state: Opn⟨ # why\nlevel: high\n"),
        "Make state open",
        bug("state: open # why\nlevel: high\n"),
    ),
    "a number": (
        bug('state: open\nlevel: high\ncount: "3⟨"\n'),
        "Make count 3",
        bug("state: open\nlevel: high\ncount: 3\n"),
    ),
    "a list": (
        bug("state: open\nlevel: high\nnames: a⟨\n"),
        "Make names ['a']",
        bug("state: open\nlevel: high\nnames:\n  - a\n"),
    ),
    "a truth": (
        bug("state: open\nlevel: high\nsure: yes⟨\n"),
        "Make sure True",
        bug("state: open\nlevel: high\nsure: true\n"),
    ),
    "a day": (
        bug("state: open\nlevel: high\nwhen: 2026/1/2⟨\n"),
        "Make when 2026-01-02",
        bug("state: open\nlevel: high\nwhen: 2026-01-02\n"),
    ),
    "a key": (
        bug("state: open\nlevel: high\ncuont⟨: 3\n"),
        "Call it count",
        bug("state: open\nlevel: high\ncount: 3\n"),
    ),
    "what is missing": (
        "---\n⟨type: bug\nstate: open\n---\n",
        "Add level: high",
        bug("state: open\nlevel: high\n"),
    ),
    "a tier": ("---\ntier: semantik⟨\n---\n", "Make tier semantic", "---\ntier: semantic\n---\n"),
    "silence": (
        "[[twin⟨]]\n",
        "Silence ambiguous-link in this memory",
        "[[twin]]\n\n<!-- mdmem: silence ambiguous-link -->\n",
    ),
    "more silence": (
        "[[twin⟨]]\n<!-- mdmem: silence other -->\n",
        "Silence ambiguous-link in this memory",
        "[[twin]]\n<!-- mdmem: silence other ambiguous-link -->\n",
    ),
}


@cases("case", CASES)
def test_a_fix_writes_what_it_says_and_ends_what_was_wrong(editing: Editing, case: str) -> None:
    given_, title, expected = CASES[case]
    fixes = {fix.title: fix for fix in offered(editing, given_)}
    assert title in fixes, list(fixes)
    assert texts(fixes[title]) == {"notes/mine.md": expected}
    before = [found.code for found in editing.check("notes/mine.md")]
    editing.open("notes/mine.md", expected)
    after = [found.code for found in editing.check("notes/mine.md")]
    assert len(after) == len(before) - 1


def test_a_missing_memory_is_made_where_the_link_leads(editing: Editing) -> None:
    for link, path in (
        ("[[new thing⟨]]", "notes/new thing.md"),
        ("[[a/b⟨]]", "a/b.md"),
        ("[x](../z/new⟨.md)", "z/new.md"),
        ("[[/top⟨]]", "top.md"),
    ):
        fixes = {fix.title: fix for fix in offered(editing, link)}
        made = fixes[f"Create {path}"]
        assert texts(made) == {path: f"# {path.rpartition('/')[2].removesuffix('.md')}\n"}
    assert not any(fix.title.startswith("Create") for fix in offered(editing, "[[../../out⟨]]"))


def test_a_missing_heading_is_made_in_the_memory_that_is_there(editing: Editing) -> None:
    fixes = {fix.title: fix for fix in offered(editing, "[[database#When⟨]]")}
    (text,) = texts(fixes["Add the heading When to notes/database.md"]).values()
    assert text.endswith("### Why\n\n## When\n")


def test_a_link_follows_what_another_program_moved(editing: Editing, tmp_path: Path) -> None:
    root = tmp_path / "memories"
    (root / "a.md").write_text("[[database]] [x](notes/database.md)\n")
    editing.around()
    (root / "notes/database.md").rename(root / "moved.md")
    text = (root / "a.md").read_text()
    editing.open("a.md", text)
    fixes = editing.fixes("a.md", Span(3, 3))
    assert fixes[0].title == "Link to moved, where it has moved"
    assert fixes[0].is_preferred
    assert texts(fixes[0]) == {"a.md": "[[moved]] [x](notes/database.md)\n"}
    assert texts(fixes[1]) == {"a.md": "[[moved]] [x](moved.md)\n"}
    assert editing.check("a.md")[0].hint == "it has moved to moved.md: `mdmem doctor --fix`"
    editing.open("a.md", "[[other/database]]\n")
    assert "moved" not in editing.check("a.md")[0].hint


def test_citations_are_pointed_at_where_the_code_is(editing: Editing, tmp_path: Path) -> None:
    code = tmp_path / "app.py"
    lines = [f"value_{n} = compute({n}, {n} + 1)\n" for n in range(6)]
    code.write_text("".join(lines))
    text = "`app.py#L2-L3` and `app.py#L5`\n"
    (tmp_path / "memories/a.md").write_text(text)
    pinned = editing.memory.references.pin(["a.md"])
    assert pinned.files
    text = (tmp_path / "memories/a.md").read_text()
    code.write_text("first = 0\n" + "".join(lines).replace("value_4", "other"))
    editing.open("a.md", text + "\nunsaved\n")
    first, *_ = editing.fixes("a.md", Span(3, 3))
    assert (first.title, first.is_preferred) == ("Cite the lines where they are now", True)
    assert texts(first)["a.md"].startswith("`app.py#L3-L4`<!-- pin")
    second, *_ = editing.fixes("a.md", Span(text.index("L5"), text.index("L5")))
    assert second.title == "It still holds: pin what it cites now"
    editing.open("a.md", texts(second)["a.md"])
    assert [found.code for found in editing.check("a.md")] == ["citation-moved"]


def test_a_selection_becomes_a_memory_of_its_own(editing: Editing) -> None:
    text = "# Mine\n\nbefore [[database]]\n\n## The plan: step 1\n\nsee [[database#Why]] here\n\n## After\n"
    editing.open("notes/mine.md", text)
    start = text.index("## The")
    (fix,) = editing.fixes("notes/mine.md", Span(start, text.index("## After")))[-1:]
    assert (fix.title, fix.kind) == ("Extract to notes/the-plan-step-1.md", "refactor.extract")
    assert texts(fix) == {
        "notes/mine.md": "# Mine\n\nbefore [[database]]\n\n[[the-plan-step-1]]\n## After\n",
        "notes/the-plan-step-1.md": "## The plan: step 1\n\nsee [[database#Why]] here\n",
    }


@pytest.mark.parametrize(
    "text",
    [
        "⟨```\na\n⟩b\n```\n",
        "⟨text ^b1\n⟩\n[[#^b1]]\n",
        "⟨[a][r]\n⟩\n[r]: x.md\n",
        "---\n⟨a: b\n⟩---\n",
        "⟨[[#Here]]\n⟩# Here\n",
    ],
)
def test_what_would_be_cut_in_two_is_not_extracted(editing: Editing, text: str) -> None:
    start, end = text.index("⟨"), text.index("⟩") - 1
    editing.open("notes/mine.md", text.replace("⟨", "").replace("⟩", ""))
    assert not [f for f in editing.fixes("notes/mine.md", Span(start, end)) if f.kind != "quickfix"]


LINES = (
    *(
        "[[datebase]]",
        "[[twin]]",
        "[[database#Whyy]]",
        "[x](gone.md)",
        "[[#nothing]]",
        "# One",
        "# One",
        "text ^b",
    ),
    *(
        "<!-- mdmem: silence x -->",
        "[r][l]",
        "[l]: nowhere.md",
        "```",
        "😀 [[a|b]]",
        "| [[twin\\|x]] |",
        "![[gone.png]]",
    ),
)
HEADS = (
    "type: bug",
    "state: Opn",
    "state: open",
    "level: hihg",
    "count: '4'",
    "tier: x",
    "names: a",
    "derived_from: gone",
)


@settings(max_examples=examples(40))
@given(st.integers(0, 1 << 32))
def test_every_fix_that_is_offered_can_be_done_and_ends_its_finding(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    chance = random.Random(seed)
    root = tmp_path_factory.mktemp("life") / "memories"
    mdmem.init(root)
    (root / "database.md").write_text("# Choice\n\n## Why\n")
    (root / ".mdmem/schemas").mkdir(parents=True, exist_ok=True)
    (root / ".mdmem/schemas/bug.json").write_text(SCHEMA)
    for place in ("x", "y"):
        (root / place).mkdir()
        (root / place / "twin.md").write_text("# T\n")
    memory = mdmem.open(root)
    editing = memory.editing()
    head = chance.sample(HEADS, chance.randint(0, 5))
    body = chance.choices(LINES, k=chance.randint(1, 6))
    end = chance.choice(("\n", "\r\n"))
    text = end.join([*(["---", *head, "---"] if head else []), *body, ""])
    editing.open("mine.md", text)
    before = editing.check("mine.md")
    for found in before:
        for fix in editing.fixes("mine.md", found.span):
            memory.prepared(fix.plan)
            changed = texts(fix)
            other = mdmem.open(root).editing()
            try:
                for path, after in {"mine.md": text, **changed}.items():
                    other.open(path, after)
            except MdmemError as error:
                raise AssertionError(fix.title) from error
            now = other.check("mine.md")
            count = [f.code for f in before].count(fix.code)
            assert [f.code for f in now].count(fix.code) < count or fix.code == "", (fix.title, text)
            errors = [f for f in now if f.severity == "error"]
            assert len(errors) <= len([f for f in before if f.severity == "error"]), fix.title
