"""Rules: which apply to a file, in which order, and what an agent reads of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mdmem.diagnostic import as_json
from mdmem.errors import AlreadyExists, EditRefused, PathRefused, PatternInvalid, Usage
from mdmem.facade.memory import open as open_memory
from mdmem.memory.rules import Rule, Rules
from mdmem.vault.paths import Scope

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.vault.transaction import Applied


def rules(vault_root: Path, scope: Scope | None = None) -> Rules[Applied]:
    scope = scope or Scope()
    memory = open_memory(vault_root, scope)
    return Rules(memory.vault, memory.vault.transact, scope, memory._find_states_at)


def write(vault_root: Path, path: str, text: str | bytes) -> None:
    file = vault_root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


def rule(body: str = "Text.", **fields: object) -> str:
    lines = [f"{name}: {json.dumps(value)}" for name, value in fields.items()]
    return "\n".join(["---", *lines, "---", "", body, ""])


def names(found: list[Rule]) -> list[str]:
    return [each.name for each in found]


DEMO = Scope(user="alice", project="demo")


def test_a_rule_says_what_it_is(vault_root: Path) -> None:
    text = rule("# Style\n\nShort lines.", globs=["*.py"], priority=3, description="How code looks.")
    write(vault_root, "users/alice/projects/demo/rules/python/style.md", text)
    (found,) = rules(vault_root, DEMO).list()
    assert as_json(found) == {
        "name": "python/style",
        "scope": "project",
        "path": "users/alice/projects/demo/rules/python/style.md",
        "layer": "users/alice/projects/demo",
        "title": "Style",
        "globs": ["*.py"],
        "priority": 3,
        "text": "# Style\n\nShort lines.",
        "enabled": True,
        "description": "How code looks.",
        "state": "live",
        "flaw": "",
    }


def test_every_layer_of_the_scope_speaks_and_no_other(vault_root: Path) -> None:
    for layer in ("", "projects/demo/", "users/alice/", "users/alice/projects/demo/"):
        write(vault_root, f"{layer}rules/one.md", rule(layer or "everyone"))
    for layer in ("users/alicebob/", "users/bob/", "projects/other/", "users/alice/projects/other/"):
        write(vault_root, f"{layer}rules/foreign.md", rule(layer))
    found = rules(vault_root, DEMO).list()
    assert [(r.scope, r.layer) for r in found] == [
        ("global", ""),
        ("project", "projects/demo"),
        ("user", "users/alice"),
        ("project", "users/alice/projects/demo"),
    ]
    resource = Scope(user="projects", project="p", resource_type="users", resource_id="x")
    write(vault_root, f"{resource.namespace}/rules/one.md", rule())
    assert [r.scope for r in rules(vault_root, resource).list()] == ["global", "resource"]
    assert [r.layer for r in rules(vault_root).list()] == [""]


def test_the_order_is_priority_then_layer_then_name(vault_root: Path) -> None:
    write(vault_root, "rules/b.md", rule())
    write(vault_root, "rules/a.md", rule())
    write(vault_root, "rules/last.md", rule(priority=-1))
    write(vault_root, "users/alice/rules/a.md", rule())
    write(vault_root, "users/alice/rules/first.md", rule(priority=10))
    found = rules(vault_root, Scope(user="alice")).list()
    assert [(r.layer, r.name) for r in found] == [
        ("users/alice", "first"),
        ("", "a"),
        ("", "b"),
        ("users/alice", "a"),
        ("", "last"),
    ]


def test_rules_without_globs_are_about_every_file_and_others_about_what_matches(vault_root: Path) -> None:
    write(vault_root, "rules/all.md", "Always.\n")
    write(vault_root, "rules/list.md", rule(globs=["src/**/*.py", "!src/gen/"]))
    write(vault_root, "rules/text.md", rule(globs="*.{ts,tsx}, docs/**"))
    write(vault_root, "rules/null.md", rule(globs=None))
    kind = rules(vault_root)
    assert names(kind.list()) == ["all", "list", "null", "text"]
    for file, expected in {
        "src/a.py": ["all", "list", "null"],
        "./src/deep/../a.py": ["all", "list", "null"],
        "src/gen/a.py": ["all", "null"],
        "web/x.tsx": ["all", "null", "text"],
        "docs/a/b.md": ["all", "null", "text"],
        str(vault_root.parent / "docs" / "a.md"): ["all", "null", "text"],
        "/elsewhere/a.md": ["all", "null"],
        "a.ts,": ["all", "null"],
    }.items():
        assert names(kind.list(file)) == expected, file


def test_a_rule_with_a_broken_glob_is_about_every_file(vault_root: Path) -> None:
    write(vault_root, "rules/both.md", rule(globs=["[a", "*.py"]))
    write(vault_root, "rules/broken.md", rule(globs=["{a"]))
    write(vault_root, "rules/except.md", rule(globs=["[a", "!tests/"]))
    write(vault_root, "rules/unless.md", rule(globs=["!tests/"]))
    assert names(rules(vault_root).list("tests/a.py")) == ["both", "broken", "except"]


def test_disabled_rules_are_seen_when_asked_for(vault_root: Path) -> None:
    write(vault_root, "rules/off.md", rule(enabled=False))
    write(vault_root, "rules/on.md", rule(enabled=None))
    assert names(rules(vault_root).list()) == ["on"]
    found = rules(vault_root).list(disabled=True)
    assert [(r.name, r.enabled) for r in found] == [("off", False), ("on", True)]


def test_a_rule_with_broken_fields_applies_always_and_hides_none(vault_root: Path) -> None:
    write(vault_root, "rules/a.md", "---\nglobs: [x\npriority: 9\n---\n\nStill said.\n")
    write(vault_root, "rules/b.md", rule(priority="high", globs=3, enabled="no", title=["x"]))
    write(vault_root, "rules/latin.md", b"caf\xe9")
    write(vault_root, "rules/data.json", "{}")
    found = rules(vault_root).list("any/file.c")
    assert [(r.name, r.priority, r.globs, r.enabled) for r in found] == [
        ("a", 0, (), True),
        ("b", 0, (), True),
    ]
    assert found[0].text == "Still said."
    text = rules(vault_root).text()
    assert "Still said." in text
    assert text.endswith("[cannot be read: rules/latin.md; see `mdmem check`]")


def test_the_title_is_the_field_else_the_first_heading_else_the_name(vault_root: Path) -> None:
    write(vault_root, "rules/a.md", rule("# Heading\n\nx", title="Field"))
    write(vault_root, "rules/b.md", rule("Intro.\n\n## Heading\n\nx", title=" "))
    write(vault_root, "rules/c.md", "x\n")
    assert [r.title for r in rules(vault_root).list()] == ["Field", "Heading", "c"]


def test_the_text_is_each_title_and_body(vault_root: Path) -> None:
    write(vault_root, "rules/a.md", rule("# Style\n\nShort lines.\n\n", priority=1))
    write(vault_root, "rules/b.md", rule("Ask.\r\n", title="Caution", globs="*.py, docs/"))
    write(vault_root, "rules/c.md", "")
    assert rules(vault_root).text() == (
        "# Style\n\nShort lines.\n\n# Caution\n\nApplies to: *.py, docs/\n\nAsk.\n\n# c"
    )
    assert rules(vault_root).text("a.py") == "# Style\n\nShort lines.\n\n# Caution\n\nAsk.\n\n# c"
    assert rules(vault_root, Scope(user="nobody")).text("x.md") == "# Style\n\nShort lines.\n\n# c"


def test_no_rules_are_no_text(vault_root: Path) -> None:
    assert rules(vault_root).list() == []
    assert rules(vault_root).text() == ""


def test_a_bounded_text_leaves_whole_rules_out_and_names_them(vault_root: Path) -> None:
    write(vault_root, "rules/a.md", rule("x" * 500, priority=2))
    write(vault_root, "rules/b.md", rule("y" * 50, priority=1))
    write(vault_root, "rules/c.md", rule("z" * 50))
    whole = rules(vault_root).text()
    assert rules(vault_root).text(max_chars=len(whole)) == whole
    assert rules(vault_root).text(max_chars=400) == (
        f"# b\n\n{'y' * 50}\n\n# c\n\n{'z' * 50}\n\n[1 of 3 rules left out: rules/a.md]"
    )
    assert (
        rules(vault_root).text(max_chars=0) == "[3 of 3 rules left out: rules/a.md, rules/b.md, rules/c.md]"
    )
    for most in (60, 150, 300, 600, len(whole) - 1):
        assert len(rules(vault_root).text(max_chars=most)) <= most
    with pytest.raises(Usage):
        rules(vault_root).text(max_chars=-1)


def test_a_rule_is_added_where_its_scope_writes(vault_root: Path) -> None:
    mine = rules(vault_root, DEMO)
    mine.add("python/style", "Type everything.", globs=["src/**/*.py", "*.pyi"], priority=7)
    mine.add("rules/plain.md", "# Short\n\nBe short.\n")
    (style,) = mine.list("src/deep/a.py")[:1]
    assert (style.layer, style.name, style.priority) == ("users/alice/projects/demo", "python/style", 7)
    assert (style.globs, style.text) == (("src/**/*.py", "*.pyi"), "Type everything.")
    assert names(mine.list("a.md")) == ["plain"]
    assert mine.list("a.md")[0].title == "Short"
    with pytest.raises(AlreadyExists):
        mine.add("python/style", "Other.")


@pytest.mark.parametrize(
    ("name", "text", "globs", "error"),
    [
        ("", "x", (), Usage),
        ("a", " \n", (), Usage),
        ("../a", "x", (), PathRefused),
        ("a", "x", ["[z-a]"], PatternInvalid),
    ],
)
def test_what_cannot_be_a_rule_is_refused(
    vault_root: Path, name: str, text: str, globs: list[str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        rules(vault_root).add(name, text, globs=globs)
    assert not rules(vault_root).list()


@pytest.mark.parametrize("scope", [Scope(), DEMO, Scope(user="alice")])
def test_a_rule_that_does_not_count_is_only_listed_with_the_disabled_ones(
    vault_root: Path, scope: Scope
) -> None:
    write(vault_root, "rules/superseded.md", rule("Tabs.", superseded_by="rules/live.md"))
    write(vault_root, "rules/over.md", rule("Tabs.", valid_to="2020-01-01"))
    against = rule("Tabs.", valid_to="2020-01-01", contradicted_by="rules/live.md")
    write(vault_root, "rules/contradicted.md", against)
    write(vault_root, "rules/live.md", rule("Spaces.", valid_to="9000-01-01"))
    found = rules(vault_root, scope)
    assert names(found.list()) == ["live"]
    assert found.text() == "# live\n\nSpaces."
    states = {each.name: each.state for each in found.list(disabled=True)}
    assert states == {each: each for each in ("superseded", "over", "contradicted", "live")}


def test_a_rule_whose_frontmatter_cannot_be_read_is_told_with_a_word_about_it(vault_root: Path) -> None:
    """It may have been turned off, or superseded, and nobody can tell."""
    write(vault_root, "rules/off.md", rule("Deploy on Fridays.", enabled=False))
    write(vault_root, "rules/broken.md", "---\nenabled: false\ncreated: [oops\n---\n\nDeploy on Mondays.\n")
    text = rules(vault_root).text()
    assert text == (
        "# broken\n\n[rules/broken.md: its frontmatter cannot be read: it may be off, or not count any more;"
        " see `mdmem check`]\n\nDeploy on Mondays."
    )
    memory = open_memory(vault_root)
    assert "its frontmatter cannot be read: it may be off" in memory.context().text
    with pytest.raises(EditRefused, match=r"rules/broken\.md: its frontmatter cannot be read"):
        memory.project.sync(check=True)


def test_a_rule_that_was_superseded_is_not_found_in_what_a_sync_wrote(vault_root: Path) -> None:
    memory = open_memory(vault_root)
    memory.rules.add("old", "Zebra locks are held for an hour.")
    memory.rules.add("new", "Be brief.")
    memory.project.append("Decisions", "Use SQLite.")
    memory.project.sync(["agents"])
    assert [hit.path for hit in memory.search("zebra locks").hits] == ["rules/old.md"]
    memory.supersede("rules/old.md", "rules/new.md")
    assert memory.search("zebra locks").hits == ()
    assert [hit.path for hit in memory.search("which SQLite").hits] == ["AGENTS.md"]
