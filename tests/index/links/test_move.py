"""Moving memories: every link means what it meant, in the style that it had, and nothing else changes."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings, strategies as st

from mdmem.document.document import ANY_SUFFIXES, Document, parse_text
from mdmem.document.edit import TextEdit, splice
from mdmem.errors import AlreadyExists, MemoryNotFound, PathRefused
from mdmem.index.links.move import Shift, move, move_names, repair
from mdmem.vault.paths import MemoryLayout
from tests.speed import examples
from tests.tables import cases

if TYPE_CHECKING:
    from tests.index.links.conftest import Notes

Texts = dict[str, str]

# One memory that links, in each case, to one that moves: the moves, the text before, the text after.
TO_IT: dict[str, tuple[str, str, str]] = {
    "an identifier": (
        "n/new.md",
        "[[old]] ![[old]] [[old|x]] [[old#A]]",
        "[[new]] ![[new]] [[new|x]] [[new#A]]",
    ),
    "only the folder": ("far/old.md", "[[old]] [t](n/old.md)", "[[old]] [t](far/old.md)"),
    "a suffix": ("n/new.md", "[[old.md]] [[n/old.md#A|x]]", "[[new.md]] [[n/new.md#A|x]]"),
    "folders": (
        "far/off/new.md",
        "[[n/old]] [[./n/old]] [[/n/old]]",
        "[[far/off/new]] [[./far/off/new]] [[/far/off/new]]",
    ),
    "markdown": (
        "n/a (b).md",
        "[t](n/old.md 'T') [t](./n/old.md#a)",
        "[t](n/a%20(b).md 'T') [t](./n/a%20(b).md#a)",
    ),
    "angles": ("n/a b.md", "[t](<n/old.md>) ![x](<n/old.md#a>)", "[t](<n/a b.md>) ![x](<n/a b.md#a>)"),
    "no suffix": ("m/new.md", "[t](n/old) [t](/n/old#a)", "[t](m/new) [t](/m/new#a)"),
    "a suffix that has to come": ("m/app.py.md", "[t](n/old) [[old]]", "[t](m/app.py.md) [[app.py]]"),
    "root": ("m/new.md", "[t](/n/old.md)", "[t](/m/new.md)"),
    "case": ("n/new.md", "[[OLD]] [t](N/Old.md)", "[[new]] [t](n/new.md)"),
    "a colon": ("ab:c.md", "[t](n/old.md)", "[t](./ab:c.md)"),
    "a definition": (
        "m/new.md",
        "[a][r] and [r] and ![r]\n\n[r]: n/old.md#a 'T'\n[s]: <n/old.md>\n",
        "[a][r] and [r] and ![r]\n\n[r]: m/new.md#a 'T'\n[s]: <m/new.md>\n",
    ),
    "a table": ("m/new.md", "|a|\n|-|\n|[[old\\|x]]|\n", "|a|\n|-|\n|[[new\\|x]]|\n"),
    "fields": (
        "m/new.md",
        "---\nup: \"[[old]]\" # why\nsee:\n  - '[[n/old|x]]'\n---\r\n[[old]]\r\n",
        "---\nup: \"[[new]]\" # why\nsee:\n  - '[[m/new|x]]'\n---\r\n[[new]]\r\n",
    ),
    "lineage": (
        "m/new.md",
        "---\nsuperseded_by: n/old.md # why\nderived_from: [old, 'n/old.md#A', \"./n/old.md\", ID-1]\n---\n",
        "---\nsuperseded_by: m/new.md # why\nderived_from: [new, 'm/new.md#A', \"./m/new.md\", ID-1]\n---\n",
    ),
    "lineage in a list": (
        "m/a, b.md",
        "---\nderived_from:\n- n/old.md\n- '[[old]]'\n- /n/old\n---\n",
        '---\nderived_from:\n- "m/a, b.md"\n- \'[[a, b]]\'\n- "/m/a, b"\n---\n',
    ),
    "lineage that would be another value": (
        "m/7.md",
        "---\nsuperseded_by: old\nderived_from: [n/old]\n---\n",
        '---\nsuperseded_by: "7"\nderived_from: [m/7]\n---\n',
    ),
    "what lineage does not name": (
        "m/new.md",
        "---\nsuperseded_by: https://n/old.md\nup: n/old.md\nderived_from: {a: n/old.md}\n---\n",
        "---\nsuperseded_by: https://n/old.md\nup: n/old.md\nderived_from: {a: n/old.md}\n---\n",
    ),
    "no link": (
        "n/new.md",
        "`[[old]]` old n/old.md\n\n```\n[[old]]\n```\n",
        "`[[old]]` old n/old.md\n\n```\n[[old]]\n```\n",
    ),
    "an id": ("m/new.md", "[[ID-1]] [[old]]", "[[ID-1]] [[new]]"),
    "an alias": ("m/new.md", "[[Nick name]] [[old]]", "[[Nick name]] [[new]]"),
    "the name as before, elsewhere": ("old.md", "[[n/old]] [t](n/old.md)", "[[old]] [t](old.md)"),
    "bytes that stay": ("n/new.md", "\ufeff[[old]]\u2028\x0c\r[[old]]", "\ufeff[[new]]\u2028\x0c\r[[new]]"),
}
MOVING = "---\nid: ID-1\naliases: [Nick name]\n---\n# A\n"


def test_lineage_in_json_follows(notes: type[Notes]) -> None:
    texts = {
        "n/old.md": MOVING,
        "n/d.json": '{ "superseded_by":"old.md", "derived_from": [ "./old.md", 7, "ID-1" ]}',
    }
    vault = notes(texts)

    moved = vault.after(move(vault.known, {"n/old.md": "m/it's.md"}))

    assert (
        moved.texts["n/d.json"]
        == '{ "superseded_by":"it\'s.md", "derived_from": [ "../m/it\'s.md", 7, "ID-1" ]}'
    )


def test_what_its_quotes_cannot_hold_gets_others_or_stays_and_is_reported(notes: type[Notes]) -> None:
    field = "---\nsuperseded_by: 'n/old.md'\nup: '[[old]]'\n---\n[[old]]\n"
    vault = notes({"n/old.md": MOVING, "a.md": field})

    plan = move(vault.known, {"n/old.md": "it's.md"})

    expected = field.replace("'n/old.md'", '"it\'s.md"').replace("\n[[old]]", "\n[[it's]]")
    assert vault.after(plan).texts["a.md"] == expected
    (left,) = plan.left_out
    assert left == 'a.md:3: the value in line 3 cannot hold "it\'s" without escapes: it stays as it is'


@cases("case", TO_IT)
def test_links_to_a_memory_follow_it(notes: type[Notes], case: str) -> None:
    new, before, after = TO_IT[case]
    vault = notes({"n/old.md": MOVING, "index.md": before, "else.md": "[[index]] [[nothing]]"})
    plan = move(vault.known, {"n/old.md": new})
    moved = vault.after(plan)
    assert moved.texts == {new: MOVING, "index.md": after, "else.md": "[[index]] [[nothing]]"}
    assert not plan.left_out
    assert plan.message == f"move n/old.md to {new}"
    assert [meant.path for meant in moved.meant("index.md")] == [new] * len(moved.documents["index.md"].links)


# A memory that moves from `n/` to another path, and what its own links become.
FROM_IT: dict[str, tuple[str, str, str]] = {
    "relative": (
        "m/x/a.md",
        "[b](b.md) [b](./b.md#h) [d](../d.md)",
        "[b](../../n/b.md) [b](./../../n/b.md#h) [d](../../d.md)",
    ),
    "up": ("a.md", "[b](b.md) [[./b]] [[../d]] [d](../d.md)", "[b](n/b.md) [[./n/b]] [[./d]] [d](d.md)"),
    "the same folder": ("n/z.md", "[b](b.md) [[./b]] ![i](img/i.png)", "[b](b.md) [[./b]] ![i](img/i.png)"),
    "identifiers and roots": ("m/a.md", "[[b]] [b](/n/b.md) [[/n/b]]", "[[b]] [b](/n/b.md) [[/n/b]]"),
    "itself": (
        "m/z.md",
        "[[#H]] [x](#h) [[a]] [x](a.md) [[./a#H]]",
        "[[#H]] [x](#h) [[z]] [x](z.md) [[./z#H]]",
    ),
    "attachments": (
        "m/a.md",
        "![i](img/i.png) ![i](<./img/i j.png>) ![[./img/i.png]] [c](data.csv)",
        "![i](../n/img/i.png) ![i](<./../n/img/i j.png>) ![[../n/img/i.png]] [c](../n/data.csv)",
    ),
    "an attachment by its name": (
        "m/a.md",
        "![[data.csv]] ![[n/data.csv]] ![[i.png]] ![[img/i.png]]",
        "![[data.csv]] ![[n/data.csv]] ![[i.png]] ![[img/i.png]]",
    ),
    "detours": (
        "d/a.md",
        "[d](../d/x.md) [[../d/x]] [d](../n/../d/x.md)",
        "[d](x.md) [[./x]] [d](../n/../d/x.md)",
    ),
    "folders": ("m/x/a.md", "[i](img/) [i](../n)", "[i](../../n/img/) [i](../../n)"),
    "code": (
        "m/x/a.md",
        "[c](../../src/app.py#L3)<!-- pin 0123456789abcdef --> [c](<../../src/app.py>) [w](src/a.py)",
        "[c](../../../src/app.py#L3)<!-- pin 0123456789abcdef --> [c](<../../../src/app.py>) [w](src/a.py)",
    ),
    "code that is not in a link": (
        "m/x/a.md",
        "`../../src/app.py:3` n/b.md:3",
        "`../../src/app.py:3` n/b.md:3",
    ),
    "definitions of code": (
        "m/x/a.md",
        "[c][r] ![i][s]\n\n[r]: ../../src/app.py#L3 'T'\n[s]: img/i.png\n",
        "[c][r] ![i][s]\n\n[r]: ../../../src/app.py#L3 'T'\n[s]: ../../n/img/i.png\n",
    ),
    "what is not there yet": (
        "m/a.md",
        "[t](todo.md) [t](./later) [[./todo]] [t](url) [[todo]] [t](../../../x/y.md)",
        "[t](../n/todo.md) [t](./../n/later) [[../n/todo]] [t](url) [[todo]] [t](../../../x/y.md)",
    ),
    "URLs": (
        "m/a.md",
        "<https://a.org/b.md> [u](https://a.org/b.md)",
        "<https://a.org/b.md> [u](https://a.org/b.md)",
    ),
}


@cases("case", FROM_IT)
def test_the_links_of_a_memory_that_moves_lead_to_what_they_led_to(notes: type[Notes], case: str) -> None:
    new, before, after = FROM_IT[case]
    others = ["n/img/i.png", "n/img/i j.png", "n/data.csv", "../src/app.py"]
    vault = notes({"n/a.md": before, "n/b.md": "# H\n", "d.md": "", "d/x.md": ""}, others)
    plan = move(vault.known, {"n/a.md": new})
    assert vault.after(plan).texts[new] == after
    assert len(plan.changes) == 1


@cases(
    "before, new, after",
    [
        ("![[pic.png]]", "b/pic.png", "![[pic.png]]"),
        ("![[pic.png|200]]", "b/new.png", "![[new.png|200]]"),
        ("![[PIC.png]]", "b/new.png", "![[new.png]]"),
        ("![[pic.png]]", "b/other.png", "![[b/other.png]]"),
        ("![[img/pic.png]]", "img/new.png", "![[img/new.png]]"),
        ("![[a/img/pic.png]]", "img/new.png", "![[img/new.png]]"),
        ("![](a/img/pic.png) ![[other.png]]", "b/new.png", "![](b/new.png) ![[other.png]]"),
    ],
)
def test_links_by_name_follow_an_attachment(notes: type[Notes], before: str, new: str, after: str) -> None:
    vault = notes({"n.md": before, "c/z.md": ""}, ["a/img/pic.png", "c/other.png"])
    plan = move(vault.known, {"a/img/pic.png": new})
    assert vault.after(plan).texts["n.md"] == after


def test_links_follow_a_folder_and_those_in_it(notes: type[Notes]) -> None:
    before = "[a](f/) [b](f) [c](./f/deep/) [d](/n/f/deep) [[/n/f]] [[n/f/]] [e](f/x.md) [f](../n/) [[#H]]"
    after = "[a](../lib/g/) [b](../lib/g) [c](./../lib/g/deep/) [d](/lib/g/deep) [[/lib/g]] [[lib/g/]]"
    after += " [e](../lib/g/x.md) [f](../n/) [[#H]]"
    texts = {"n/i.md": before, "n/f/x.md": "[up](../) [deep](deep/)", "n/f/deep/y.md": "[up](../)"}
    vault = notes(texts, ["n/f/deep/p.png"])
    files = ["n/f/x.md", "n/f/deep/y.md", "n/f/deep/p.png"]
    moves = {old: f"lib/g{old.removeprefix('n/f')}" for old in files}
    moved = vault.after(move(vault.known, moves, {"n/f": "lib/g"})).texts
    assert moved["n/i.md"] == after
    assert moved["lib/g/x.md"] == "[up](../../n/) [deep](deep/)"
    assert moved["lib/g/deep/y.md"] == "[up](../)"


def test_links_follow_a_memory_into_a_mount_and_out_of_it(notes: type[Notes]) -> None:
    """From where its file stands, as git hosts and editors read it."""
    inside = {
        "notes/a.md": "[[./no]] [r](../../R.md) [db](db.md) [c](../../a.py#L1) ![p](../../p.png) [a](a.md)",
        "notes/db.md": "[a](a.md) [[a]]",
    }
    mounted = {
        "AGENTS.md": "[[./notes/no]] [r](R.md) [db](m/notes/db.md) [c](a.py#L1) ![p](p.png) [a](AGENTS.md)",
        "notes/db.md": "[a](../../AGENTS.md) [[AGENTS]]",
    }
    around = ["../R.md", "../a.py", "../p.png"]
    layout = MemoryLayout("m", {"AGENTS.md": "AGENTS.md"})
    vault = notes(inside, around, layout)
    there = vault.after(move(vault.known, {"notes/a.md": "AGENTS.md"}))
    assert there.texts == mounted
    back = there.after(move(there.known, {"AGENTS.md": "notes/a.md"}))
    assert back.texts == inside


def test_a_link_in_another_case_than_the_new_name_is_written_again(notes: type[Notes]) -> None:
    vault = notes({"n/agents.md": "", "n/i.md": "[a](agents.md) [[agents]] [[Agents]]"})
    moved = vault.after(move(vault.known, {"n/agents.md": "n/AGENTS.md"})).texts
    assert moved["n/i.md"] == "[a](AGENTS.md) [[AGENTS]] [[AGENTS]]"
    vault = notes({"n/agents.md": "[a](agents.md) [[agents]]"})
    moved = vault.after(move(vault.known, {"n/agents.md": "m/AGENTS.md"})).texts
    assert moved["m/AGENTS.md"] == "[a](AGENTS.md) [[AGENTS]]"


def test_links_by_name_do_not_become_ambiguous_by_another_attachment(notes: type[Notes]) -> None:
    vault = notes({"n.md": "![[pic.png]]"}, ["a/pic.png", "b/x.png"])
    plan = move(vault.known, {"b/x.png": "b/pic.png"})
    assert vault.after(plan).texts["n.md"] == "![[a/pic.png]]"


def test_links_of_third_parties_do_not_become_ambiguous(notes: type[Notes]) -> None:
    vault = notes(
        {"a/db.md": "", "old.md": "", "n/x.md": "[[db]] [[db.md#H|t]] [[old]] [[a/db]]", "y.md": "[[DB]]"}
    )
    plan = move(vault.known, {"old.md": "b/db.md"})
    moved = vault.after(plan)
    assert moved.texts["n/x.md"] == "[[a/db]] [[a/db.md#H|t]] [[b/db]] [[a/db]]"
    assert moved.texts["y.md"] == "[[a/DB]]"


def test_links_of_third_parties_are_not_captured_by_a_nearer_memory(notes: type[Notes]) -> None:
    vault = notes({"notes/db.md": "", "projects/p/old.md": "", "projects/p/x.md": "[[db]] [[notes/db]]"})
    plan = move(vault.known, {"projects/p/old.md": "projects/p/notes/db.md"})
    moved = vault.after(plan)
    assert [meant.path for meant in moved.meant("projects/p/x.md")] == ["notes/db.md"] * 2
    assert moved.texts["projects/p/x.md"] == "[[/notes/db]] [[/notes/db]]"


def test_an_identifier_stays_complete_in_its_namespace(notes: type[Notes]) -> None:
    vault = notes(
        {"projects/p/notes/a.md": "", "projects/p/m.md": "[[notes/a]]", "m.md": "[[projects/p/notes/a]]"}
    )
    plan = move(vault.known, {"projects/p/notes/a.md": "projects/p/notes/deep/b.md"})
    texts = vault.after(plan).texts
    assert texts["projects/p/m.md"] == "[[notes/deep/b]]"
    assert texts["m.md"] == "[[projects/p/notes/deep/b]]"


def test_an_id_or_alias_that_becomes_ambiguous_gives_way_to_a_path(notes: type[Notes]) -> None:
    ours = "---\nid: one\naliases: [al]\n---\n"
    vault = notes({"users/u/a.md": ours, "b.md": ours, "users/u/m.md": "[[one]] [[al]]"})
    plan = move(vault.known, {"users/u/a.md": "a.md"})
    assert vault.after(plan).texts["users/u/m.md"] == "[[a]] [[a]]"


def test_an_ambiguous_link_stays_where_its_winner_stays(notes: type[Notes]) -> None:
    vault = notes({"a/x.md": "", "b/x.md": "", "m.md": "[[x]]"})
    plan = move(vault.known, {"b/x.md": "c/x.md"})
    assert vault.after(plan).texts["m.md"] == "[[x]]"
    assert not plan.left_out


@pytest.mark.parametrize(
    ("texts", "moves", "source", "said"),
    [
        ({"a/x.md": "", "b/x.md": "", "m.md": "[[x]]"}, {"a/x.md": "a/y.md"}, "m.md", "[[y]]"),
        ({"a/x.md": "", "b/x.md": "", "m.md": "[[x|X]]"}, {"a/x.md": "c/x.md"}, "m.md", "[[c/x|X]]"),
        ({"x.md": "", "b/x.md": "", "q/m.md": "[[x#H]]"}, {"x.md": "c/d/x.md"}, "q/m.md", "[[d/x#H]]"),
        # The winner was that of the folder.
        ({"a/x.md": "", "b/x.md": "", "b/m.md": "[[x]]"}, {"b/x.md": "c/x.md"}, "b/m.md", "[[c/x]]"),
        ({"a/x.md": "", "b/x.md": "", "b/m.md": "[[x]]"}, {"b/m.md": "a/m.md"}, "a/m.md", "[[b/x]]"),
        # A memory gets a name that would win.
        ({"b/x.md": "", "c/x.md": "", "q.md": "", "m.md": "[[x]]"}, {"q.md": "x.md"}, "m.md", "[[b/x]]"),
        # Of the two, only one is left.
        ({"a/x.md": "", "b/x.md": "", "m.md": "![[x.md]]"}, {"a/x.md": "z/y.md"}, "m.md", "![[y.md]]"),
    ],
)
def test_an_ambiguous_link_goes_on_to_mean_what_readers_took(
    notes: type[Notes], texts: Texts, moves: Texts, source: str, said: str
) -> None:
    vault = notes(texts)
    plan = move(vault.known, moves)
    moved = vault.after(plan)
    assert moved.texts[source] == said
    (found,) = plan.warnings
    assert (found.path, found.code, found.severity) == (source, "ambiguous-link", "warning")
    assert not plan.left_out
    (before,) = vault.meant(next(old for old, text in texts.items() if text))
    (after,) = moved.meant(source)
    assert (after.path, after.ambiguous) == (moves.get(before.path or "", before.path), False)
    assert str(before.path) in found.message


def test_an_ambiguous_link_that_cannot_name_its_winner_is_reported(notes: type[Notes]) -> None:
    vault = notes({"a/x.md": "", "b/x.md": "", "m.md": "line\n[[x]]"})
    plan = move(vault.known, {"a/x.md": "a/c#.md"})
    assert vault.after(plan).texts["m.md"] == "line\n[[x]]"
    assert plan.left_out == ("m.md:2: the wikilink in line 2 cannot say 'c#': it stays as it is",)
    assert not plan.warnings


def test_links_that_say_the_same_are_each_mended_and_each_named(notes: type[Notes]) -> None:
    vault = notes(
        {"a/x.md": "", "b/x.md": "", "n.md": "", "m.md": "[[x]] [o](n.md) [o](n.md#a)\n[[x]] [o](n.md)"}
    )
    plan = move(vault.known, {"a/x.md": "a/y.md", "n.md": "a/n.md"})
    assert vault.after(plan).texts["m.md"] == "[[y]] [o](a/n.md) [o](a/n.md#a)\n[[y]] [o](a/n.md)"
    assert [found.position.line for found in plan.warnings] == [1, 2]


def test_a_folder_moves_with_its_links_among_each_other(notes: type[Notes]) -> None:
    vault = notes(
        {
            "p/a.md": "[[b]] [b](b.md) [b](sub/../b.md) [c](sub/c.md) [o](../o.md) [[p/sub/c]]",
            "p/b.md": "[[a#H]]",
            "p/sub/c.md": "[a](../a.md) [[../b]] [[/p/a]] ![i](../i.png)",
            "o.md": "[[p/a]] [c](p/sub/c.md) [[c]]",
        },
        ["p/i.png"],
    )
    moves = {path: f"q/r/{path[2:]}" for path in ("p/a.md", "p/b.md", "p/sub/c.md")}
    plan = move(vault.known, moves)
    assert vault.after(plan).texts == {
        "q/r/a.md": "[[b]] [b](b.md) [b](sub/../b.md) [c](sub/c.md) [o](../../o.md) [[q/r/sub/c]]",
        "q/r/b.md": "[[a#H]]",
        "q/r/sub/c.md": "[a](../a.md) [[../b]] [[/q/r/a]] ![i](../../../p/i.png)",
        "o.md": "[[q/r/a]] [c](q/r/sub/c.md) [[c]]",
    }
    assert plan.message == "move 3 memories"


def test_json_memories_move_too(notes: type[Notes]) -> None:
    vault = notes({"n/d.json": '{"a": "[[x]]"}', "m.md": "[[d.json]] [t](n/d.json) [[n/d.json]]"})
    plan = move(vault.known, {"n/d.json": "k/e.json"})
    assert vault.after(plan).texts == {
        "k/e.json": '{"a": "[[x]]"}',
        "m.md": "[[e.json]] [t](k/e.json) [[k/e.json]]",
    }


def test_only_memories_that_may_link_to_it_are_read(notes: type[Notes]) -> None:
    texts = {f"n/{number}.md": f"[[{number + 1}]] [t](old-{number}.md)" for number in range(200)}
    vault = notes({**texts, "old.md": "", "a.md": "[[old]]", "b.md": "[[new]]", "c.md": "[old](x/y.md)"})
    move(vault.known, {"old.md": "new.md"})
    assert sorted(vault.reads) == ["a.md", "b.md", "old.md"]


DEEP = f"---\nx: {'[' * 40}{']' * 40}\n---\n[[old]]"


def test_a_memory_that_cannot_be_read_is_left_out_and_named(notes: type[Notes]) -> None:
    vault = notes({"old.md": "", "a.md": "[[old]]"})
    deep = parse_text("deep.md", DEEP)
    known = vault.known._replace(
        sources=lambda _: ["gone.md", "a.md", "deep.md"],
        read=lambda path: deep if path == "deep.md" else vault.read(path),
    )
    plan = move(known, {"old.md": "new.md"})
    assert [change.path for change in plan.changes] == ["old.md", "a.md"]
    assert plan.left_out == (
        "deep.md:2: values are nested too deeply; the limit is 32",
        "gone.md: no such memory",
    )


def test_a_memory_whose_fields_cannot_be_read_moves_all_the_same(notes: type[Notes]) -> None:
    deep = parse_text("deep.md", DEEP)
    known = notes({"deep.md": "", "a.md": "[[deep]]"}).known
    read = known.read
    known = known._replace(read=lambda path: deep if path == "deep.md" else read(path))
    plan = move(known, {"deep.md": "n/new.md"})
    assert [(change.path, change.move_to, len(change.edits)) for change in plan.changes] == [
        ("deep.md", "n/new.md", 0),
        ("a.md", None, 1),
    ]
    assert plan.left_out == ("deep.md:2: values are nested too deeply; the limit is 32",)


@cases(
    "moves, error",
    [
        ({"a.md": "b.md"}, AlreadyExists),
        ({"a.md": "c.md", "b.md": "c.md"}, AlreadyExists),
        ({"a.md": "b.md", "b.md": "a.md"}, AlreadyExists),
        ({"a.md": "../x.md"}, PathRefused),
        ({"a.md": "x.txt"}, PathRefused),
        ({"gone.md": "x.md"}, MemoryNotFound),
    ],
)
def test_a_move_that_cannot_be_is_refused(notes: type[Notes], moves: Texts, error: type[Exception]) -> None:
    with pytest.raises(error):
        move(notes({"a.md": "", "b.md": ""}).known, moves)


def test_a_move_to_where_it_is_changes_nothing(notes: type[Notes]) -> None:
    assert move(notes({"a.md": "[[a]]"}).known, {"a.md": "a.md"}).changes == ()


@cases(
    "text, there",
    [
        ("[[Name]]", "[[Name]]"),
        ("![[n/Name.md#A|x]]", "![[k/Name.md#A|x]]"),
        ("[[N/NAME]]", "[[K/NAME]]"),
        ("[t](n/name.md?raw=true#a)", "[t](k/name.md?raw=true#a)"),
        ("[t](./n/x%20%281%29.md)", "[t](./k/x%20%281%29.md)"),
        ("[t](<n/x (1).md>) [t](n/x%20(1).md)", "[t](<k/x (1).md>) [t](k/x%20(1).md)"),
        ("[t](~/n/name.md) [t](@site/n/name.md)", "[t](~/n/name.md) [t](@site/n/name.md)"),
    ],
)
def test_what_a_folder_holds_is_named_as_before_once_it_is_back(
    notes: type[Notes], text: str, there: str
) -> None:
    within = "[x](./x%20%281%29.md) [s](sub-page/) [g](../gone.md)"
    detours = ("[n](../n/name.md) [[../n/name]]", "[n](../k/name.md) [[../k/name]]")
    texts = {"n/name.md": within, "n/x (1).md": detours[0], "a.md": text}
    vault = notes(texts)
    moves = {"n/name.md": "k/name.md", "n/x (1).md": "k/x (1).md"}
    moved = vault.after(move(vault.known, moves, {"n": "k"}))
    assert moved.texts["a.md"] == there
    assert (moved.texts["k/name.md"], moved.texts["k/x (1).md"]) == (within, detours[1])
    back = moved.after(move(moved.known, {new: old for old, new in moves.items()}, {"k": "n"}))
    assert back.texts == vault.texts


@cases(
    "text, there",
    [
        ("[[Name]] [[name]]", "[[Other]] [[other]]"),
        ("[t](n/p%20%281%29.md)", "[t](n/q%20%282%29.md)"),
    ],
)
def test_a_new_name_is_written_in_the_style_of_the_old_one(notes: type[Notes], text: str, there: str) -> None:
    moves = {"n/name.md": "n/other.md", "n/p (1).md": "n/q (2).md"}
    vault = notes({**dict.fromkeys(moves, ""), "a.md": text})
    assert vault.after(move(vault.known, moves)).texts["a.md"] == there


def test_a_dead_link_goes_on_leading_to_where_it_led(notes: type[Notes]) -> None:
    text = "[s](sub/) [u](../up.md) [h](~/x.md) [t](@theme/x.md) [v]($lib/x.md) [o](../../o.md)"
    vault = notes({"b/d/index.md": text})
    moved = vault.after(move(vault.known, {"b/d/index.md": "e/index.md"}, {"b/d": "e"}))
    assert moved.texts["e/index.md"] == text.replace("../up.md", "../b/up.md").replace("../../o", "../o")


def test_a_name_that_a_wikilink_cannot_say_is_reported_where_one_would_have_to(notes: type[Notes]) -> None:
    vault = notes({"n/a.md": "", "m.md": "x\n[[a]]", "o.md": "[a](n/a.md)"})
    plan = move(vault.known, {"n/a.md": "n/c#.md"})
    assert vault.after(plan).texts == {"n/c#.md": "", "m.md": "x\n[[a]]", "o.md": "[a](n/c%23.md)"}
    assert plan.left_out == ("m.md:2: the wikilink in line 2 cannot say 'c#': it stays as it is",)
    without = notes({"n/a.md": "", "o.md": "[a](n/a.md)"})
    assert without.after(move(without.known, {"n/a.md": "n/c#.md"})).texts["o.md"] == "[a](n/c%23.md)"


# ------------------------------------------------------------------------------- moved by somebody else


def test_links_to_what_somebody_else_moved_are_mended(notes: type[Notes]) -> None:
    vault = notes(
        {
            "far/new.md": "[b](b.md) [[./b]] [b](../n/b.md) [[b]] [s](old.md) [t](t.md)",
            "n/b.md": "[[old]] [o](old.md#h) [[nothing]]",
            "m.md": "---\nup: '[[n/old]]'\n---\n",
        },
    )
    plan = repair(vault.known, {"n/old.md": "far/new.md"})
    assert vault.after(plan).texts == {
        "far/new.md": "[b](../n/b.md) [[../n/b]] [b](../n/b.md) [[b]] [s](new.md) [t](t.md)",
        "n/b.md": "[[new]] [o](../far/new.md#h) [[nothing]]",
        "m.md": "---\nup: '[[far/new]]'\n---\n",
    }
    assert not plan.left_out
    assert plan.message == "fix links to far/new.md"


def test_citations_of_what_somebody_else_moved_are_mended(notes: type[Notes]) -> None:
    vault = notes({"a/b/new.md": "[c](../../src/app.py#L2) [d](../../../src/app.py)"}, ["../src/app.py"])
    plan = repair(vault.known, {"a/old.md": "a/b/new.md"})
    assert vault.after(plan).texts["a/b/new.md"] == "[c](../../../src/app.py#L2) [d](../../../src/app.py)"


def test_mending_changes_no_link_that_leads_somewhere(notes: type[Notes]) -> None:
    vault = notes({"c/x.md": "[y](y.md)", "a/y.md": "", "c/y.md": "", "b/x.md": "", "m.md": "[[b/x]]"})
    plan = repair(vault.known, {"a/x.md": "c/x.md"})
    assert plan.changes == ()
    assert plan.left_out == (
        "c/x.md:1: the link to 'y.md' stays as it is: it meant a/y.md, it leads to c/y.md now",
    )


def test_moves_that_count_no_more_mend_nothing(notes: type[Notes]) -> None:
    vault = notes({"a.md": "", "b.md": "", "m.md": "[[gone]] [[a]]"})
    plan = repair(vault.known, {"gone.md": "away.md", "a.md": "b.md", "b.md": "b.md"})
    assert (plan.changes, plan.left_out) == ((), ())


def test_mending_twice_does_nothing_the_second_time(notes: type[Notes]) -> None:
    vault = notes({"n/new.md": "", "m.md": "[[old]] [o](old.md)"})
    fixed = vault.after(repair(vault.known, {"old.md": "n/new.md"}))
    assert fixed.texts["m.md"] == "[[new]] [o](n/new.md)"
    assert repair(fixed.known, {"old.md": "n/new.md"}).changes == ()


# ------------------------------------------------------------------------------------------- properties

FOLDERS = ["", "n/", "n/d/", "m/", "projects/p/", "users/u/notes/"]
NAMES = ["a", "b", "A", "c d", "x.y", "ä", "p(1)"]
paths = st.builds(lambda folder, name: f"{folder}{name}.md", st.sampled_from(FOLDERS), st.sampled_from(NAMES))
# How a link may be written to a path; `{0}` is the path, `{1}` its name, `{2}` from the folder of the note.
IDENTIFIERS = ["[[{1}]]", "[[{0}]]", "![[{1}#H|x]]", "[[{1}.md]]", "|a|\n|-|\n|[[{1}\\|x]]|\n"]
PATHS = ["[t](<{2}.md>)", "![t](</{0}.md#h> 'T')", "[t](<{2}>)", "[[/{0}]]", "[r][]\n\n[r]: <{2}.md> 'T'\n\n"]


def link_text(style: str, source: str, path: str) -> str:
    bare = path.removesuffix(".md")
    way = posixpath.relpath(bare, posixpath.dirname(source) or ".")
    return style.format(bare, bare.rpartition("/")[2], way)


@st.composite
def vaults(draw: st.DrawFn, styles: list[str], *, dangling: bool = True) -> Texts:
    texts: Texts = {}
    names = draw(st.lists(paths, min_size=2, max_size=7, unique_by=str.casefold))
    known = st.sampled_from(names)
    for path in names:
        targets = draw(st.lists(st.one_of(known, paths) if dangling else known, max_size=4))
        links = [link_text(draw(st.sampled_from(styles)), path, each) for each in targets]
        before = [draw(st.sampled_from(["Text ", "\r\n\r\n", "- "])) for _ in links]
        texts[path] = "".join(f"{lead}{link}\n\n" for lead, link in zip(before, links, strict=True))
    return texts


@st.composite
def moves_in(draw: st.DrawFn, texts: Texts) -> Texts:
    chosen = draw(st.lists(st.sampled_from(sorted(texts)), min_size=1, max_size=3, unique=True))
    new = draw(st.lists(paths, min_size=len(chosen), max_size=len(chosen), unique_by=str.casefold))
    standing = {path.casefold() for path in texts}
    return {old: path for old, path in zip(chosen, new, strict=True) if path.casefold() not in standing}


def skeleton(document: Document) -> tuple[str, list[tuple[object, ...]]]:
    """A memory without the targets of its links, and what else its links say."""
    without = splice(document.text, {TextEdit(*link.target_span, "") for link in document.links})
    return without, [(k.kind, k.embed, k.anchor, k.alias, k.line) for k in document.links]


@given(vaults([*IDENTIFIERS, *PATHS]).flatmap(lambda texts: st.tuples(st.just(texts), moves_in(texts))))
@settings(deadline=None, max_examples=examples(75))
def test_after_any_move_every_link_means_what_it_meant(notes: type[Notes], case: tuple[Texts, Texts]) -> None:
    texts, moves = case
    assume(moves)
    vault = notes(texts)
    plan = move(vault.known, moves)
    moved = vault.after(plan)
    for path, document in vault.documents.items():
        new = moves.get(path, path)
        assert skeleton(moved.documents[new]) == skeleton(document)
        for was, now in zip(vault.meant(path), moved.meant(new), strict=True):
            if was.path is None:
                continue
            if was.ambiguous:
                assert now.path == moves.get(was.path, was.path)
            else:
                assert (now.path, now.ambiguous) == (moves.get(was.path, was.path), False)


@given(vaults([*IDENTIFIERS, *PATHS]), st.sampled_from(NAMES))
@settings(deadline=None, max_examples=examples(150))
def test_a_new_name_in_its_folder_changes_as_many_links_as_if_all_were_asked(
    notes: type[Notes], texts: Texts, name: str
) -> None:
    """Only links with a key of what moves are asked then: of 100,000 others none can mean something else."""
    vault, old = notes(texts), min(texts)
    moves = {old: f"{old.rpartition('/')[0]}/{name}.md".removeprefix("/")}
    assume(moves[old].casefold() not in map(str.casefold, texts))
    change = move(vault.known, moves).changes[0]
    shift = Shift(vault.known, vault, move_names(vault, moves, ANY_SUFFIXES), moves)
    assert list(change.edits) == shift.edits(vault.documents[old], old, moves[old])


@given(vaults(PATHS, dangling=False).flatmap(lambda texts: st.tuples(st.just(texts), moves_in(texts))))
@settings(deadline=None, max_examples=examples(75))
def test_a_move_there_and_back_restores_every_byte_of_links_by_path(
    notes: type[Notes], case: tuple[Texts, Texts]
) -> None:
    texts, moves = case
    # A link without `.md` gets it where the name would be a file of another kind, and keeps it.
    assume(not any("x.y" in new for new in moves.values()))
    vault = notes(texts)
    there = vault.after(move(vault.known, moves))
    back = there.after(move(there.known, {new: old for old, new in moves.items()}))
    assert back.texts == vault.texts


THERE_AND_BACK = ["[t](<./{2}.md>)", "[t](<./{2}.md?plain=1#L3>)", "[t](%2E/{2}.md)", "[t](/{0}/)"]


@given(vaults([*IDENTIFIERS, *PATHS, *THERE_AND_BACK], dangling=False), st.data())
@settings(deadline=None, max_examples=examples(150))
def test_a_folder_moved_there_and_back_restores_every_byte(
    notes: type[Notes], texts: Texts, data: st.DataObject
) -> None:
    vault = notes(texts)
    folders = sorted({path.rpartition("/")[0] for path in texts} & {"n", "n/d", "m"})
    names = {path.rpartition("/")[2].casefold() for path in texts}
    assume(folders and len(names) == len(texts))  # what would be ambiguous elsewhere says more afterwards
    old = data.draw(st.sampled_from(folders))
    moves = {path: f"new{path[len(old) :]}" for path in texts if path.startswith(f"{old}/")}
    there = vault.after(move(vault.known, moves, {old: "new"}))
    back = there.after(move(there.known, {new: old for old, new in moves.items()}, {"new": old}))
    assert back.texts == vault.texts


@given(vaults([*IDENTIFIERS, *PATHS]).flatmap(lambda texts: st.tuples(st.just(texts), moves_in(texts))))
@settings(deadline=None, max_examples=examples(75))
def test_mending_gives_what_moving_would_have_given_where_links_lead_nowhere(
    notes: type[Notes], case: tuple[Texts, Texts]
) -> None:
    texts, moves = case
    outside = notes({moves.get(path, path): text for path, text in texts.items()})
    fixed = outside.after(repair(outside.known, moves))
    before = notes(texts)
    for path in texts:
        new = moves.get(path, path)
        assert skeleton(fixed.documents[new]) == skeleton(before.documents[path])
        for was, now, unmended in zip(before.meant(path), fixed.meant(new), outside.meant(new), strict=True):
            if was.path is not None and not was.ambiguous and unmended.path is None:
                assert (now.path, now.ambiguous) == (moves.get(was.path, was.path), False)
