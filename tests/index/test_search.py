"""What a hit shows as matched is what the query found, in whatever spelling the line has it.

Ranked search: what fits best comes first, what a filter shuts out stays out, and no query breaks it.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.diagnostic import as_json
from mdmem.document.document import Document, parse_text
from mdmem.errors import MdmemError, MemoryNotFound, PathRefused, Usage
from mdmem.index import text_index
from mdmem.index.hit import Hit
from mdmem.index.passages import indexed
from mdmem.index.query import SearchRequest, parse
from mdmem.index.search import Matcher, Results, search, tokens_of, within_budget
from mdmem.index.text_index import TextIndex
from mdmem.vault.paths import Layer, Namespace
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA = Path(__file__).parents[1] / "data"


def matched(query: str, line: str) -> list[str]:
    return [line[start:end] for start, end in Matcher(parse(query), {}).spans(line)]


@pytest.mark.parametrize(
    ("query", "line", "found"),
    [
        ("database", "Databases, and a database.", ["Databases", "database"]),
        ("cafe", "Le café, le cafe\u0301.", ["café", "cafe\u0301"]),
        ("http server", "An HTTPServer serves.", ["HTTPServer"]),
        ("parse config", "parse_config(x)", ["parse", "config"]),
        ("conf*", "A config is conformant, unlike the reconf.", ["config", "conformant"]),
        ("configurat*", "Its configuration", ["configuration"]),
        ('"the file"', "the best file", ["the", "file"]),
        ("数据库", "我们使用数据库。", ["数据库"]),
        ("水", "水道と水", ["水", "水"]),
        ("the file", "the best file", ["file"]),
        ("c#", "C, C# and C++", ["C", "C#", "C"]),
        ("😀 good", "a good day 😀", ["good", "😀"]),
        ("nothing", "the best file", []),
        ("-file", "the best file", []),
    ],
)
def test_words_of_the_query_are_found_in_a_line(query: str, line: str, found: list[str]) -> None:
    assert matched(query, line) == found


def test_a_line_is_worth_its_different_words() -> None:
    matcher = Matcher(parse("rare common"), {"rare": 5.0, "common": 0.5})
    assert matcher.worth("rare rare") == 5.0
    assert matcher.worth("common and rare") == 5.5
    assert matcher.worth("neither") == 0


@pytest.mark.parametrize(
    "query", ["C# 😀", "database café", "conf* the", "数据库 file", '"the file"', "HTTPServer", "水"]
)
@given(
    st.lists(
        st.sampled_from(
            [
                "C#",
                "C++",
                "😀",
                "Databases",
                "café",
                "cafe\u0301",
                "a_config",
                "数据库",
                "HTTPServer",
                "水",
                "é",
            ]
        )
    )
)
def test_a_line_is_worth_something_where_something_of_it_matches(query: str, line: list[str]) -> None:
    matcher = Matcher(parse(query), {"databas": 0.5, "cafe": 2.0})
    text = " ".join(line)
    assert bool(matcher.worth(text)) == bool(matcher.spans(text))


def test_more_words_than_are_kept_are_matched_all_the_same() -> None:
    for start in range(0, 40_000, 4_000):
        line = " ".join(f"word{number}" for number in range(start, start + 4_000))
        assert Matcher(parse("word7 word39999 databases"), {}).worth(f"{line} Database") == 1.0 + (
            start in {0, 36_000}
        )


@given(st.text(max_size=80), st.text(max_size=80))
@settings(deadline=None, max_examples=300)
def test_spans_are_in_the_line_in_order_and_apart(query: str, line: str) -> None:
    spans = Matcher(parse(query), {}).spans(line)
    ends = [place for span in spans for place in span]
    assert ends == sorted(set(ends))
    assert all(0 <= place <= len(line) for place in ends)


def test_what_a_text_holds_is_a_share_of_what_is_looked_for() -> None:
    matcher = Matcher(parse("databases cafe port"), {"databas": 3.0, "cafe": 1.0, "port": 4.0})
    assert matcher.held("The database\nof the café") == (0.5, 2)
    assert matcher.held("nothing") == (0.0, 0)
    assert Matcher(parse(""), {}).held("a port") == (0.0, 0)


DB = """---
title: Choice of a database
tags: [storage, Area/Data]
type: decision
created: 2026-02-10
---
# Choice of a database

We looked at three engines.

## Decision

Use SQLite: one file, no server.
Backups are copies.

## Open

parse_config still reads the old path.
"""
MEMORIES = {
    "notes/db.md": DB,
    "notes/lunch.md": """---
type: note
created: 2025-03-04
---
# Lunch

The café has a menu. SQLite is not on it.
""",
    "notes/server.md": "# Servers\n\nHTTPServer answers.\n\nThe server of the café is down.\n",
    "notes/cjk.md": "# 数据库\n\n我们使用SQLite数据库。\n\n水道管\n",
    "users/al/notes/db.md": "# Private database\n\nSQLite for al only.\n",
    "users/alice/notes/db.md": "# Alice\n\nSQLite for alice only.\n",
}

Ask = Callable[..., Results]


class Shelf:
    """An index over memories that are kept in memory; `gone` can no longer be read."""

    def __init__(self, folder: Path, texts: Mapping[str, str]) -> None:
        self.index = TextIndex(str(folder))
        self.documents = {path: parse_text(path, text) for path, text in texts.items()}
        for document in self.documents.values():
            self.index.add(indexed(document))
        self.index.commit()

    def read(self, path: str) -> Document:
        if path not in self.documents:
            raise MemoryNotFound(path=path)
        return self.documents[path]

    def ask(self, text: str, *, layers: Sequence[Layer] = (), base: str = "", **given_: object) -> Results:
        layers = layers or (Layer("", Namespace(base)),)
        return search(
            self.index,
            SearchRequest(query=text, **given_),  # type: ignore[arg-type]
            read=self.read,
            layers=layers,
            today="2026-03-01",
        )


def paths(results: Results) -> list[str]:
    return [hit.path for hit in results.hits]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("search") / "text", MEMORIES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("three engines", {"notes/db.md"}),
        ("cafe", {"notes/lunch.md", "notes/server.md"}),
        ("http server", {"notes/server.md", "notes/db.md"}),
        ("parseConfig", {"notes/db.md"}),
        ("parse config", {"notes/db.md"}),
        ('"one file"', {"notes/db.md"}),
        ('"file one"', set()),
        ('"choice of a database"', {"notes/db.md"}),
        ("engi*", {"notes/db.md"}),
        ("数据库", {"notes/cjk.md"}),
        ("道", {"notes/cjk.md"}),
        ('"使用SQLite数据库"', {"notes/cjk.md"}),
        ("sqlite -café -数据库 path:notes", {"notes/db.md"}),
        ("sqlite tag:storage", {"notes/db.md"}),
        ("sqlite tag:area", {"notes/db.md"}),
        ("sqlite -tag:storage path:notes/l", {"notes/lunch.md"}),
        ("sqlite type:note", {"notes/lunch.md"}),
        ("sqlite type:NOTE type:decision", {"notes/lunch.md", "notes/db.md"}),
        ("sqlite after:2026", {"notes/db.md"}),
        ("sqlite before:2026", {"notes/lunch.md"}),
        ("sqlite after:2025-03-04 before:2025-03-05", {"notes/lunch.md"}),
        ("sqlite after:2026 before:2025", set()),
        ("february 2026", {"notes/db.md"}),
        ("-sqlite", {"notes/server.md"}),
        ("tag:storage", {"notes/db.md"}),
        ("nothingofthat", set()),
    ],
)
def test_what_is_asked_for_is_found(shelf: Shelf, text: str, expected: set[str]) -> None:
    assert set(paths(shelf.ask(text))) == expected


def test_the_best_comes_first_with_its_line_heading_and_date(shelf: Shelf) -> None:
    hit = shelf.ask("which sqlite file", base="notes").hits[0]
    assert (hit.path, hit.line, hit.heading, hit.date) == (
        "db.md",
        13,
        ("Choice of a database", "Decision"),
        "2026-02-10",
    )
    assert hit.text == "Use SQLite: one file, no server."
    assert [hit.text[slice(*span)] for span in hit.matches] == ["SQLite", "file"]
    assert (hit.before, hit.after) == (("## Decision", ""), ("Backups are copies.",))


def test_context_ends_with_the_section(shelf: Shelf) -> None:
    hit = shelf.ask("sqlite file", base="notes", context=9).hits[0]
    assert (hit.before, hit.after) == (("## Decision", ""), ("Backups are copies.", ""))
    hit = shelf.ask("sqlite file", base="notes", context=0).hits[0]
    assert (hit.before, hit.after) == ((), ())


@pytest.mark.parametrize("text", ["sqlite", "-nothing", "SQLi*", "path:notes", '"for al only"'])
def test_a_namespace_is_a_wall(shelf: Shelf, text: str) -> None:
    results = shelf.ask(text, base="users/al")
    assert set(paths(results)) == {"notes/db.md"}
    assert results.left_out == 0


def test_a_search_is_narrowed_by_what_it_is_given(shelf: Shelf) -> None:
    assert paths(shelf.ask("sqlite", within="users/alice")) == ["users/alice/notes/db.md"]
    assert paths(shelf.ask("sqlite", base="users", within="al/notes/db.md")) == ["al/notes/db.md"]
    assert paths(shelf.ask("sqlite", types=["decision"])) == ["notes/db.md"]
    assert paths(shelf.ask("sqlite type:note", types=["decision"])) == []
    assert paths(shelf.ask("sqlite", tags=["storage", "#area/data"])) == ["notes/db.md"]
    assert paths(shelf.ask("sqlite", tags=["storage", "other"])) == []
    assert paths(shelf.ask("sqlite", since="2026")) == ["notes/db.md"]
    assert paths(shelf.ask("sqlite before:2027", before="2026")) == ["notes/lunch.md"]


def test_what_a_limit_leaves_out_is_counted(shelf: Shelf) -> None:
    results = shelf.ask("sqlite", limit=2)
    assert len(results.hits) == 2
    assert results.left_out == results.hits[-1].left_out == 3
    assert results.hits[0].left_out == 0


def test_each_passage_can_be_a_hit(shelf: Shelf) -> None:
    hits = shelf.ask("café server", each="passage", within="notes/server.md").hits
    assert [(hit.path, hit.line) for hit in hits] == [("notes/server.md", 5), ("notes/server.md", 3)]


def test_without_words_the_newest_come_first(shelf: Shelf) -> None:
    assert paths(shelf.ask("path:notes/ -cafe -水道管 after:2000")) == ["notes/db.md"]
    assert paths(shelf.ask("after:2000")) == ["notes/db.md", "notes/lunch.md"]


def test_a_query_of_nothing_finds_nothing_and_says_so(shelf: Shelf) -> None:
    assert shelf.ask(" ... ") == Results(hits=(), notes=("there is nothing to search for",))


def test_a_memory_that_has_vanished_or_changed_is_skipped(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "text", {f"notes/{n}.md": f"# Note\n\nalpha {n}\n" for n in range(6)})
    del shelf.documents["notes/1.md"]
    shelf.documents["notes/2.md"] = parse_text("notes/2.md", "changed\n")
    shelf.documents["notes/3.md"] = parse_text("notes/3.md", "one\n\n\n\n\nand alpha\n")
    shelf.documents["notes/4.md"] = parse_text("notes/4.md", "")
    results = shelf.ask("alpha")
    assert sorted(paths(results)) == ["notes/0.md", "notes/3.md", "notes/5.md"]
    assert [hit.line for hit in results.hits if hit.path == "notes/3.md"] == [6]
    assert results.left_out == 0


@pytest.mark.parametrize("context", [None, 0, 2])
@pytest.mark.parametrize("text", ["", "\ufeff", "\n", "---\ntype: note\n---\n", "---\ntype: note\n---"])
def test_a_memory_without_a_body_is_found_by_its_name(tmp_path: Path, text: str, context: int | None) -> None:
    shelf = Shelf(tmp_path / "text", {"notes/alpha.md": text, "notes/beta.md": "# Alpha\n\nalpha\n"})
    shelf.documents["notes/beta.md"] = parse_text("notes/beta.md", text)
    hits = shelf.ask("alpha", context=context).hits
    assert [(hit.path, hit.matches, hit.stands_in(shelf.documents[hit.path])) for hit in hits] == [
        ("notes/alpha.md", (), True)
    ]


def test_a_memory_of_json_is_found_in_its_line(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "text", {"working/a.json": '{\n  "theme": "dark\\nmode"\n}\n'})
    (hit,) = shelf.ask("mode").hits
    assert (hit.path, hit.line, hit.heading) == ("working/a.json", 2, ())


@pytest.mark.parametrize("path", ["a.md", "a.json"])
def test_each_passage_of_a_long_line_is_a_hit_of_its_own(tmp_path: Path, path: str) -> None:
    """A hit shows what stands around its match, and says where in the line that is."""
    text = "".join(f"{'lorem ipsum ' * 500}{word} needle " for word in ("one", "two", "three"))
    shelf = Shelf(tmp_path, {path: json.dumps([text]) if path.endswith("json") else text})

    hits = shelf.ask("needle", each="passage").hits

    whole = shelf.documents[path].text
    assert sorted(hit.text.split(" needle")[0].split()[-1] for hit in hits) == ["one", "three", "two"]
    assert all(len(hit.text) < 600 and "characters left out]" in hit.text for hit in hits)
    for hit in hits:
        [(first, last)] = hit.matches
        assert hit.text[first:last] == "needle" == whole[hit.column - 1 :][:6]


def test_the_best_passage_of_a_long_line_is_shown_after_a_change(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, {"a.md": "needle thread\n"})
    changed = "lorem " * 2_000 + "needle thread " + "ipsum " * 2_000
    shelf.documents["a.md"] = parse_text("a.md", changed)
    [hit] = shelf.ask("needle thread").hits
    assert "needle thread ipsum" in hit.text


def test_what_only_the_title_says_is_found_at_the_beginning(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "text", {"notes/a.md": "---\ntitle: Alpha\n---\n\n# Head\n\nText.\n"})
    (hit,) = shelf.ask("alpha").hits
    assert (hit.line, hit.text, hit.matches) == (5, "# Head", ())


@cases(
    "text, first",
    [
        ("Sync-Settings", {"a/sync settings.md"}),
        ("sync_settings", {"a/sync settings.md"}),
        ('the "sync"  setting', {"b/other.md"}),
        ("SETUP", {"c/third.md", "d/setup.md"}),
        ("cafe\u0301 setup", {"c/third.md"}),
        ("setup -others", set()),
        ("setup*", set()),
    ],
)
def test_what_is_called_as_the_query_says_comes_first(tmp_path: Path, text: str, first: set[str]) -> None:
    """By its file name, title or alias; a query that asks for more is no name."""
    often = "Sync settings. The sync setting. Setup. Café setup.\n\n" * 5
    texts = {f"many/{n}.md": f"# Setup of sync settings {n}\n\n{often}" for n in range(80)}
    shelf = Shelf(
        tmp_path,
        {
            **texts,
            "a/sync settings.md": "Text of its own.\n",
            "b/other.md": "# The sync setting\n\nAnything.\n",
            "c/third.md": "---\naliases: [Setup, Café-Setup]\nconfidence: 0\n---\n\nOthers.\n",
            "d/setup.md": f"{'Much else. ' * 400}\n",
        },
    )
    found = paths(shelf.ask(text))
    if first:
        assert {*found[: len(first)]} == first
    else:
        assert found[0].startswith("many/")


def test_a_title_counts_more_than_a_mention(tmp_path: Path) -> None:
    filler = "Some more words stand here.\n" * 3
    shelf = Shelf(
        tmp_path / "text",
        {
            "notes/mention.md": f"# Other\n\nAlpha.\n{filler}",
            "notes/titled.md": f"# Alpha\n\nOther.\n{filler}",
        },
    )
    assert paths(shelf.ask("alpha")) == ["notes/titled.md", "notes/mention.md"]


def test_a_stop_word_finds_nothing_and_settles_what_is_close(tmp_path: Path) -> None:
    texts = {
        "notes/1.md": "Alpha and beta, gamma.\n",
        "notes/2.md": "Alpha or beta, gamma.\n",
        "notes/3.md": "Alpha, beta: gamma.\n",
        "notes/4.md": "And and and and.\n",
    }
    shelf = Shelf(tmp_path / "text", texts)
    assert paths(shelf.ask("alpha and delta"))[0] == "notes/1.md"
    assert paths(shelf.ask("alpha or delta"))[0] == "notes/2.md"
    results = shelf.ask("alpha and or", limit=1, explain=True)
    assert len(results.hits) + results.left_out == 3
    assert {part.word for part in results.explanations[0] if part.of == "text"} & {"and", "or"}


def test_stop_words_do_not_make_up_for_a_word(tmp_path: Path) -> None:
    texts = {"notes/right.md": "Alpha beta.\n", "notes/wrong.md": "Alpha, and and and and and.\n"}
    assert paths(Shelf(tmp_path / "text", texts).ask("alpha and beta"))[0] == "notes/right.md"


def test_of_two_equal_memories_the_newer_and_the_surer_comes_first(tmp_path: Path) -> None:
    def note(day: str, confidence: float) -> str:
        return f"---\nupdated: {day}\nconfidence: {confidence}\n---\n# Note\n\nalpha beta\n"

    shelf = Shelf(
        tmp_path / "text",
        {
            "notes/old.md": note("2020-01-01", 1),
            "notes/new.md": note("2026-02-28", 1),
            "notes/unsure.md": note("2026-02-28", 0.1),
        },
    )
    assert paths(shelf.ask("alpha")) == ["notes/new.md", "notes/old.md", "notes/unsure.md"]


def test_priors_settle_only_what_is_close(tmp_path: Path) -> None:
    texts = {
        "notes/right.md": "---\ncreated: 2001-01-01\nconfidence: 0\n---\nalpha beta\n",
        "notes/new.md": "---\ncreated: 2026-02-28\n---\nalpha gamma\n",
    }
    assert paths(Shelf(tmp_path / "text", texts).ask("alpha beta"))[0] == "notes/right.md"
    assert text_index.RECENCY + text_index.CONFIDENCE < 0.2


def test_results_as_json_have_the_hits_with_their_parts_and_what_was_left_out(shelf: Shelf) -> None:
    results = shelf.ask("sqlite before:yesterday", explain=True, limit=1)
    shape = as_json(results)
    (hit,) = shape.pop("hits")
    assert hit.pop("parts") == [part._asdict() for part in results.explanations[0]]
    assert hit == as_json(results.hits[0])
    assert shape == {"left_out": results.left_out, "left_out_tokens": 0, "notes": list(results.notes)}
    assert results.left_out
    assert results.notes
    assert "parts" not in as_json(shelf.ask("sqlite"))["hits"][0]


@pytest.mark.parametrize("each", ["memory", "passage"])
@pytest.mark.parametrize(
    "text",
    ["sqlite one file", '"one file" serv*', "database", "数据库", "february 2026 café", "the open file"],
)
def test_an_explanation_adds_up_to_the_score(shelf: Shelf, text: str, each: str) -> None:
    results = shelf.ask(text, each=each, explain=True)
    assert results.hits
    for hit, parts in zip(results.hits, results.explanations, strict=True):
        assert sum(part.value for part in parts) == pytest.approx(hit.score, abs=1e-3)
        assert {part.of for part in parts} & {"text", "title", "tags"}


def test_an_explanation_names_what_each_word_gives(shelf: Shelf) -> None:
    results = shelf.ask("database storage", explain=True, within="notes/db.md")
    given_ = {(part.of, part.word) for part in results.explanations[0]}
    assert {
        ("title", "databas"),
        ("headings", "databas"),
        ("tags", "storag"),
        ("passage", "databas"),
    } <= given_


def test_what_was_not_used_of_a_query_is_said(shelf: Shelf) -> None:
    assert shelf.ask("sqlite before:soon").notes == (
        "before:soon was left out: a date is 2026, 2026-01 or 2026-01-31",
    )


@pytest.mark.parametrize("each", ["memory", "passage"])
def test_a_phrase_that_nothing_has_is_searched_word_by_word_beside_others(shelf: Shelf, each: str) -> None:
    results = shelf.ask('which engines are in "one big file" path:notes', each=each, explain=True)
    assert paths(results)[0] == "notes/db.md"
    assert "notes/lunch.md" not in paths(results)
    assert results.notes == (
        "no memory has what stands in quotation marks: its words were searched one by one",
    )
    assert sum(part.value for part in results.explanations[0]) == pytest.approx(
        results.hits[0].score, abs=1e-3
    )


def test_a_phrase_that_something_has_stays_demanded(shelf: Shelf) -> None:
    results = shelf.ask('sqlite "one file"')
    assert (paths(results), results.notes) == (["notes/db.md"], ())


@pytest.mark.parametrize(
    "arguments", [{"limit": 0}, {"context": -1}, {"since": "soon"}, {"before": "2026-13"}]
)
def test_an_argument_that_cannot_mean_anything_is_refused(shelf: Shelf, arguments: dict[str, Any]) -> None:
    with pytest.raises(Usage):
        shelf.ask("sqlite", **arguments)


@pytest.mark.parametrize("folder", ["../other", "/etc", "users/../notes"])
def test_a_folder_outside_of_the_vault_is_refused(shelf: Shelf, folder: str) -> None:
    with pytest.raises(PathRefused):
        shelf.ask("sqlite", within=folder)


def test_filters_that_no_memory_can_have_find_nothing(shelf: Shelf) -> None:
    assert not shelf.ask("sqlite", types=["\ud800"]).hits
    assert not shelf.ask("sqlite", tags=["\ud800", "\x00"]).hits


HOSTILE = st.one_of(
    st.text(max_size=100),
    st.text(st.sampled_from('ab "“”*-+()[]{}:^~/\\&|!?.\0\n水数\ud800é#$'), max_size=100),
    st.lists(
        st.sampled_from(
            [
                *("tag:", "tag:\\", "type:[a", "path:(", "path:\\", "path:.*", "before:2026", "after:x"),
                *("-", '"', "-tag:x", "a*", "*", "OR", "AND", "(", "the", "sqlite", '"one', 'file"'),
                *("-sqlite", "[*", "TO", "*]", "sqlite~2^3", "é*", "\x00"),
            ]
        ),
        max_size=12,
    ).map(" ".join),
)


@given(text=HOSTILE, each=st.sampled_from(["memory", "passage"]))
@settings(deadline=None, max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_query_raises(shelf: Shelf, text: str, each: str) -> None:
    results = shelf.ask(text, each=each, explain=True, limit=3)
    assert len(results.hits) <= 3


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"word{n} sqlite" for n in range(5_000)),
        "sqlite " * 150_000,
        '"sqlite ' * 10_000,
        "s* " * 10_000,
        '"a b" ' * 5_000,
        "-x " * 5_000 + "sqlite",
        "数据库" * 5_000,
        "a" * 1_000_000,
    ],
)
def test_a_query_of_any_length_is_answered_and_what_was_cut_is_said(shelf: Shelf, text: str) -> None:
    results = shelf.ask(text, limit=1)
    assert results.notes


def test_an_index_made_in_steps_ranks_as_one_made_at_once(tmp_path: Path) -> None:
    rng = random.Random(3)
    words = [f"w{n}" for n in range(30)]
    texts = {
        f"notes/{n}.md": f"# {rng.choice(words)}\n\n{' '.join(rng.choices(words, k=20))}\n" for n in range(30)
    }
    once = Shelf(tmp_path / "once", texts)
    steps = Shelf(tmp_path / "steps", {path: f"old {text}" for path, text in texts.items()})
    for path, text in texts.items():
        steps.documents[path] = parse_text(path, text)
        steps.index.remove(path)
        steps.index.add(indexed(steps.documents[path]))
        steps.index.commit()
    for word in words[:10]:
        assert set(paths(once.ask(word, limit=50))) == set(paths(steps.ask(word, limit=50)))


def test_an_error_of_reading_is_ours_or_comes_through(shelf: Shelf) -> None:
    def broken(path: str) -> Document:
        raise RuntimeError(path)

    with pytest.raises(RuntimeError):
        search(shelf.index, SearchRequest(query="sqlite"), read=broken)
    assert issubclass(MemoryNotFound, MdmemError)


# -- budgets ------------------------------------------------------------------------------------------

HITS = st.lists(
    st.builds(
        partial(Hit, path="notes/a.md", heading=("One",)),
        line=st.integers(1, 99),
        text=st.text(max_size=80),
        before=st.lists(st.text(max_size=40), max_size=3).map(tuple),
    ),
    max_size=8,
).map(tuple)


@given(hits=HITS, left_out=st.integers(0, 5), tokens=st.integers(0, 200))
def test_a_budget_is_never_passed_and_nothing_is_left_out_in_silence(
    hits: tuple[Hit, ...], left_out: int, tokens: int
) -> None:
    kept = within_budget(Results(hits=hits, left_out=left_out), tokens)
    assert sum(map(tokens_of, kept.hits)) <= tokens
    assert kept.left_out == left_out + len(hits) - len(kept.hits)
    assert kept.left_out_tokens + sum(map(tokens_of, kept.hits)) == sum(map(tokens_of, hits))
    if kept.hits:
        assert kept.hits[-1].left_out == kept.left_out


@given(hits=HITS)
def test_a_budget_that_is_large_enough_changes_nothing(hits: tuple[Hit, ...]) -> None:
    assert within_budget(Results(hits=hits), sum(map(tokens_of, hits))).hits == hits


def test_a_passage_that_does_not_fit_leaves_its_room_to_a_later_one() -> None:
    long = Hit(path="a.md", line=1, heading=(), text="word " * 200)
    short = Hit(path="b.md", line=1, heading=(), text="word")
    kept = within_budget(Results(hits=(long, short)), tokens_of(short))
    assert [hit.path for hit in kept.hits] == ["b.md"]
    assert kept.left_out_tokens == tokens_of(long)


@pytest.mark.parametrize("each", ["memory", "passage"])
def test_one_order_whatever_can_no_longer_be_read(tmp_path: Path, each: Any) -> None:
    rng = random.Random(22)
    words = ["database", "server", "file", "engine", "menu"]
    texts = {f"{n}.md": " ".join(rng.choices(words, k=rng.randint(2, 30))) + "\n" for n in range(300)}
    shelf = Shelf(tmp_path / "text", texts)
    before = [paths(shelf.ask(f"{word} server", each=each, limit=400)) for word in words]
    for path in rng.sample(list(texts), 150):
        del shelf.documents[path]
    for word, order in zip(words, before, strict=True):
        left = [path for path in order if path in shelf.documents]
        for limit in (1, 5, 10, 50, 200):
            results = shelf.ask(f"{word} server", each=each, limit=limit)
            assert paths(results) == left[:limit]
            assert len(left) <= limit + results.left_out <= len(order) or not results.left_out


OBSERVED = {
    **{f"observations/s/x-{n}-{n}.md": f"# Said\n\nSQLite server file, engines {n}.\n" for n in range(1, 30)},
    "users/al/observations/s/x-1-2.md": "# Said\n\nThe server of al. Quokka in a row.\n",
}


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("observed") / "text", MEMORIES | OBSERVED)


@pytest.mark.parametrize("each", ["memory", "passage"])
@pytest.mark.parametrize(
    "text",
    ["sqlite server", "which engines are in one file", "SQLi* -menu", "tag:storage", '"one file" server'],
)
def test_observations_change_neither_the_order_nor_the_score_of_other_memories(
    shelf: Shelf, observed: Shelf, text: str, each: Any
) -> None:
    alone = shelf.ask(text, each=each, limit=50, explain=True)
    both = observed.ask(text, each=each, limit=50, explain=True)
    scores = [(hit.path, hit.line, hit.score) for hit in both.hits if hit.path not in OBSERVED]
    assert scores == [(hit.path, hit.line, hit.score) for hit in alone.hits]
    for hit, explanation in zip(both.hits, both.explanations, strict=True):
        score = hit.score or 0.0
        assert math.isclose(sum(part.value for part in explanation), score, abs_tol=1e-3)
        assert any(part.of == "observed" for part in explanation) == (hit.path in OBSERVED and score > 0)


def test_an_observation_is_found_where_it_fits_better_than_what_is_there(observed: Shelf) -> None:
    assert paths(observed.ask("quokka server"))[0] == "users/al/observations/s/x-1-2.md"
    assert paths(observed.ask('"quokka in a row" café')) == ["users/al/observations/s/x-1-2.md"]
    assert not observed.ask('"quokka in a row" café').notes
    assert paths(observed.ask("quokka", base="users/al")) == ["observations/s/x-1-2.md"]
    assert not paths(observed.ask("quokka", base="observations"))
    results = observed.ask("quoka")
    assert "quokka" in results.notes[-1]


def test_a_proposal_is_found_where_proposals_are_asked_for(tmp_path: Path) -> None:
    """It is no fact, so nobody meets one who looks for what is known."""
    said = "---\ntype: proposal\n---\n# Use Quokka\n\nWe use Quokka.\n"
    texts = {"inbox/a.md": said, "users/al/inbox/b.md": said, "inbox/c.md": "Quokka is a note.\n"}
    shelf = Shelf(tmp_path / "text", texts)
    assert paths(shelf.ask("quokka")) == ["inbox/c.md"]
    assert paths(shelf.ask('"use quokka"')) == []
    assert paths(shelf.ask("-nothing")) == ["inbox/c.md"]
    both = {"inbox/a.md", "users/al/inbox/b.md"}
    assert set(paths(shelf.ask("quokka type:proposal"))) == both
    assert set(paths(shelf.ask("quokka", types=["Proposal"]))) == both
    assert set(paths(shelf.ask("quokka", within="inbox"))) == {"inbox/a.md", "inbox/c.md"}
    assert paths(shelf.ask("quokka", within="users/al/inbox/b.md")) == ["users/al/inbox/b.md"]
    assert paths(shelf.ask("quokka path:users/al/inbox/")) == ["users/al/inbox/b.md"]


def test_no_word_is_suggested_for_one_that_nobody_mistypes(tmp_path: Path) -> None:
    """To look for words that are like it takes memory by its length."""
    shelf = Shelf(tmp_path / "text", {"a.md": f"quagga {'x' * 50}\n"})
    assert "quagga" in shelf.ask("quaga").notes[-1]
    assert shelf.ask("x" * 49).notes[-1] == "nothing was found"


@pytest.mark.parametrize("further", ["", " ".join(f"Line {n} says nothing else." for n in range(60))])
def test_the_passage_that_is_shown_is_not_chosen_by_words_that_fit_any_question(
    tmp_path: Path, further: str
) -> None:
    """Of notes with two sections, the other one of which has the words use, need, work, get and have."""
    notes = json.loads((DATA / "search/two_sections.json").read_text("utf-8"))
    texts = {
        f"{number}.md": "# {title}\n\n## {wrong_heading}\n\n{wrong}\n\n{further}\n\n"
        "## {heading}\n\n{right}\n\n{further}\n".format(**note, further=further)
        for number, note in enumerate(notes)
    }
    together, right = Shelf(tmp_path / "all", texts), [0, 0]
    for number, note in enumerate(notes):
        path = f"{number}.md"
        alone = Shelf(tmp_path / path, {path: texts[path]})
        for at, shelf in enumerate((alone, together)):
            hits = [hit for hit in shelf.ask(note["question"], limit=20).hits if hit.path == path]
            right[at] += hits[0].text == note["right"]
    assert min(right) >= 18


def test_a_passage_that_ends_in_a_colon_is_shown_with_what_it_announces(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(300))
    text = f"# A\n\n{words}\n\nThese are the needles:\n\n- one\n- two\n\n{words}\n\n## B\n\n{words}\n"
    shelf = Shelf(tmp_path / "text", {"a.md": f"{text}\nlast thread:\n\n## C\n\nother\n"})
    (hit,) = shelf.ask("needles").hits
    assert "- two" in hit.after
    (hit,) = shelf.ask("thread").hits
    assert "other" not in hit.after
