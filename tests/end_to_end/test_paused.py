"""A machine that is paused or busy refuses nothing sound: what can refuse counts work, and reads no clock."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.document.document import parse_text
from mdmem.document.edit import replace
from mdmem.document.text.regex import Allowance, foreign
from mdmem.vault.plan import Change, EditPlan
from mdmem.vault.schema import Schemas
from mdmem.vault.template.templates import Templates
from mdmem.vault.vault import Vault
from tests.clocks import jumping
from tests.serve.mcp.test_stdio import call, lines_of
from tests.speed import examples, is_all, soak_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA = {
    "properties": {
        "tags": {"items": {"type": "string", "pattern": "^[a-z]+[0-9]*$"}, "uniqueItems": True},
        "status": {"anyOf": [{"const": "open"}, {"enum": ["done", "late"]}]},
        "text": {"pattern": "(word ?)+[.]?$"},
        "slow": {"items": {"pattern": "^(?:a|a){12}c|b$"}},
    },
    "patternProperties": {"^x-": {"format": "date"}},
    "additionalProperties": {"type": ["string", "array"]},
}
TAGS = ", ".join(f"tag{number}" for number in range(30))
SOUND = f"""---
type: own
tags: [{TAGS}]
status: late
text: {"word " * 2_000}
slow: [{", ".join(["aaaaaaaaaaaab"] * 5)}]
x-day: 2024-01-05
---
A word.
"""
# It tries 4,096 ways to divide each text before it finds that none fits: some milliseconds.
SLOW, SLOW_TEXT = "(?:a|a){12}b", "a" * 12 + "c\n"


def check_schemas() -> None:
    schemas = Schemas({"own": json.dumps(SCHEMA)})
    assert schemas.lint() == []
    assert schemas.check(parse_text("notes/a.md", SOUND)) == []


def render_templates() -> None:
    source = "{% for n in range(200) %}{{ given }} {{ n }}{{ n | string }}\n{% endfor %}{{ given | upper }}"
    templates = Templates({"own.md": source})
    text = templates.render("own", {"given": "x"}, now=datetime(2025, 1, 2, tzinfo=UTC))
    assert text.endswith("x 199199\nX\n")


def match_patterns() -> None:
    allowance = Allowance()
    for text in (SLOW_TEXT * 10, "word " * 20_000, SLOW_TEXT * 10):
        for pattern in (SLOW, r"(word|text){3} x", r"\d+\w+$"):
            assert not allowance.matches(foreign(pattern), text)


def replace_text() -> None:
    document = parse_text("notes/a.md", "one two, three\n" * 3_000 + SLOW_TEXT * 10)
    assert len(replace(document, r"(\w+) two,", r"\1 2,", count="all", regex=True)) == 3_000
    assert len(replace(document, f"{SLOW}|three", "3", count="all", regex=True)) == 3_000


@pytest.mark.parametrize("work", [check_schemas, render_templates, match_patterns, replace_text])
def test_where_a_clock_jumps_nothing_sound_is_refused_when_paused(work: Callable[[], None]) -> None:
    """At one of the calls, whichever it is; and at all of them."""
    with jumping(lambda _: False) as clocks:
        work()
    for number in range(1, clocks.calls + 1):
        with jumping(lambda call, number=number: call == number):  # type: ignore[misc]
            work()
    with jumping(lambda _: True):
        work()


@pytest.mark.parametrize("every", soak_most([1, 2, 3, 10, 1_000], quick=(1,)))
def test_a_replacement_across_memories_is_made_when_paused(tmp_path: Path, every: int) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    texts = {f"notes/n{number}.md": f"one two, three {number}\n" * 5_000 for number in range(5)}
    for path, text in texts.items():
        memory.write(path, text)
    with jumping(lambda call: call % every == 0):
        memory.replace(None, r"(\w+) two,", r"\1 2,", count="all", regex=True)
    for path, text in texts.items():
        assert memory.show(path).text == text.replace("two", "2")


def test_a_change_that_an_editor_gets_in_the_way_of_is_made_when_paused(tmp_path: Path) -> None:
    """An editor takes no lock; where it has written, the plan is made again."""
    vault = Vault(str(tmp_path))
    note = tmp_path / "a.md"
    note.write_text("0\n")

    def build() -> EditPlan:
        before = vault.read("a.md")
        if before.text != "3\n":
            note.write_text(f"{int(before.text) + 1}\n")
        return EditPlan(changes=(Change(path="a.md", before=before, content=b"ours\n"),), message="write")

    with jumping(lambda _: True):
        vault.transact(build)
    assert note.read_text() == "ours\n"


@pytest.mark.parametrize("every", soak_most([1, 2, 3, 7, 100], quick=(1,)))
def test_a_server_refuses_nothing_sound_when_paused(tmp_path: Path, every: int) -> None:
    root = Path(mdmem.init(tmp_path / "memories").root)
    for folder, name, text in (
        ("schemas", "own.json", json.dumps(SCHEMA)),
        (
            "templates",
            "own.md",
            "---\ntype: own\n---\n{% for n in range(200) %}{{ title }} {{ n }}\n{% endfor %}",
        ),
    ):
        (root / ".mdmem" / folder).mkdir()
        (root / ".mdmem" / folder / name).write_text(text)
    with open(root / ".mdmem/config.toml", "a") as config:
        config.write('[kinds.own]\nfolder = "own"\nschema = "own"\ntemplate = "own"\n')
    calls = [
        call(1, "write", path="notes/a.md", content=SOUND),
        call(2, "write", path="notes/b.md", content="word " * 20_000 + SLOW_TEXT * 10),
        call(3, "replace", path="notes/b.md", old=r"(word )+", new="x ", regex=True, count="all"),
        call(4, "replace", path="notes/b.md", old=f"{SLOW}|x", new="y", regex=True, count="all"),
        call(5, "remember", kind="own", name="c", value={"title": "Title"}),
        call(6, "search", query="word"),
        call(7, "grep", pattern="word+", regex=True),
    ]
    answers = served(root, every, calls)
    refused = [answer for answer in answers.values() if "error" in answer or answer["result"].get("isError")]
    assert refused == []
    assert (root / "notes/b.md").read_text().startswith("y a")
    assert "Title 199" in (root / "own/c.md").read_text()


def served(root: Path, every: int, calls: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The answers of a server whose clocks jump, which is asked one thing after the other."""
    command = [
        sys.executable,
        "-m",
        "tests.end_to_end.paused_worker",
        str(every),
        "--vault",
        str(root),
        "mcp",
    ]
    answers = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines_of())
        process.stdin.flush()
        process.stdout.readline()
        for asked in calls:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **asked}).encode() + b"\n")
            process.stdin.flush()
            while (answer := json.loads(process.stdout.readline())).get("id") != asked["id"]:
                pass
            answers[asked["id"]] = answer
        process.stdin.close()
    return answers


def test_memories_whose_schemas_are_slow_leave_the_next_its_time_when_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server checks one memory after the other; each has the whole of its allowance and of its steps."""
    if not is_all:
        monkeypatch.setattr("mdmem.vault.schema.meter.MOST_SECONDS", 0.2)
        monkeypatch.setattr("mdmem.vault.schema.meter.MOST_STEPS", 100_000)
    slow = {"properties": {"k": {"pattern": "^(a|aa)+$"}}}
    endless: dict[str, Any] = {"items": {"allOf": [{}] * 1_000}}
    tags = {"properties": {"tags": {"items": {"type": "string", "pattern": "^[a-z0-9]+$"}}}}
    own = {"slow": slow, "endless": endless, "note": tags}
    schemas = Schemas({name: json.dumps(schema) for name, schema in own.items()})
    stopped = parse_text("notes/s.md", f"---\ntype: slow\nk: {'a' * 80}b\n---\n")
    numbers = parse_text("notes/n.json", json.dumps(list(range(10_000))))
    for number in range(3 if is_all else 1):
        assert [each.code for each in schemas.check(stopped)] == ["schema-unchecked"], number
    assert [each.code for each in schemas.check(numbers, "endless")] == ["schema-unchecked"]
    text = ", ".join(f"tag{number}" for number in range(3_000))
    assert schemas.check(parse_text("notes/a.md", f"---\ntags: [{text}]\n---\n")) == []


@contextmanager
def busy_threads() -> Iterator[None]:
    """Three threads that take all the time there is."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_beside_busy_threads_no_harmless_pattern_is_refused_as_if_paused() -> None:
    texts = [f"{'word ' * 400}{number}" for number in range(examples(1_500))]
    document = parse_text("notes/a.json", json.dumps(texts))
    schemas = Schemas({"note": json.dumps({"items": {"pattern": r"^(\w+ ?)+[.!]?$"}})})
    with busy_threads():
        assert schemas.check(document) == []


def test_beside_busy_threads_no_replacement_is_refused_as_if_paused() -> None:
    document = parse_text("notes/a.md", "one two, three\n" * 2_000)
    with busy_threads():
        for word in ("one", "two", "three"):
            assert len(replace(document, rf"\b({word}),?", r"<\1>", count="all", regex=True)) == 2_000
