"""The first hits of a search are the same at every limit and by whichever way, and counted alike."""

from __future__ import annotations

import json
import random
import re
from itertools import cycle, product
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import mdmem
from mdmem.index import text_index
from tests import foreign
from tests.end_to_end.test_foreign_tree import run
from tests.serve.mcp.conftest import on_stdio, run as run_async
from tests.speed import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from mcp import Client

    from mdmem.index.search import Results

LIMITS = (1, 5, 10, 50, 200)
THROUGH_ALL = 20
SCOPE = mdmem.Scope(user="alice", project="demo")
AS_OPTIONS = ("--user", "alice", "--project", "demo")
FOLDERS = ("", "projects/demo/", "users/alice/", "users/alice/projects/demo/")
LONGEST = 2_000  # bytes of a file that is taken in
OTHERS = 160  # files that others wrote, or that are made of such
NARROWED: Sequence[Mapping[str, Any]] = (
    {},
    {"types": ["decision"]},
    {"tags": ["odd"]},
    {"since": "2026-03"},
    {"before": "2026-06"},
    {"within": "notes"},
    {"budget": 2_000},
    {"where": ["confidence>=0.5"]},
    {"any_state": True},
    {"as_of": "2026-04-01"},
)
# What is found in no line as it is written: days, escapes, and letters that stand for others.
SAID_OTHERWISE = (
    *("may", "june 2026", "1 march", "2026", "january february march april may june july august september"),
    *(
        "tel",
        "office",
        "café",
        "escaped",
        "हिन्दी",
        "ＦＵＬＬ",
        "ガ",
        "kelvin",
        "quoted",
        "head",
        "in*",
        "日本",
    ),
)
OTHERWISE: Mapping[str, str] = {
    "notes/sign.md": "A ℡ number, the oﬃce, ㎏ and ½: 5 K.\n",
    "notes/yaml.md": '---\nsummary: "caf\\u00e9 \\x65scaped, a\\nquoted line"\n---\nText.\n',
    "working/resources/a.json": '{"a": "caf\\u00e9 and \\u0065scaped", "b": ["\\u65e5\\u672c"]}\n',
    "notes/hindi.md": "# हिन्दी\n\nयह हिन्दी में है।\n\nहिन्दी लिखी है।\n",
    "notes/wide.md": "ＦＵＬＬ width, ｶﾞ and 日本語\n",
    "notes/headed.md": "# Head\n\nOne.\n\nTwo.\n\nThree.\n\n## Sub\n\nFour.\n\nFive.\n",
    "notes/2026-05-07.md": "Only a name says when.\n",
    "notes/daily/2026-06-01.md": "",
    "notes/old.md": "---\ncreated: 2026-05-02\nsuperseded_by: notes/headed.md\n---\nMay it be.\n",
    "notes/gone.md": "---\ncreated: 2026-05-03\nexpires: 2026-05-04\n---\nIt may go.\n",
    "notes/long.md": "word " * 3_000 + "needle " + "may " * 2_000 + "\n",
}


class Ask(NamedTuple):
    """A search: its words, what is ranked, what it is narrowed to."""

    query: str
    each: Any
    narrowed: Mapping[str, Any]


class Library(NamedTuple):
    """A vault, and what is asked of it."""

    root: Path
    asked: Sequence[Ask]


def write_memories(rng: random.Random, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield memories by their paths: some texts, others made of their words, and observations of these."""
    words = [word for text in texts for word in re.findall("[A-Za-z]{3,}", text)]
    folders = cycle(FOLDERS)
    for number, text in enumerate(texts):
        yield f"{next(folders)}notes/foreign-{number}.md", text
    for number in range(240):
        day = f"2026-{number % 9 + 1:02}-{number % 28 + 1:02}"
        head = f"type: {('note', 'decision')[number % 2]}\ntags: [{('odd', 'even')[number % 3 % 2]}]"
        head += f"\nconfidence: {number % 10 / 10}\n{('valid_to', 'updated')[number % 7 > 0]}: {day}"
        said = " ".join(rng.choices(words, k=rng.choice((5, 20, 60))))
        text = (
            f"---\n{head}\ncreated: {day}\n---\n# {said[:20]}\n\n{said}\n\n## More\n\n{said[::-1]}\n{said}\n"
        )
        folder = next(folders)
        yield f"{folder}notes/made-{number}.md", text
        if number % 3 == 0:
            yield f"{folder}notes/same-{number}.md", text
            yield f"{folder}observations/s/x-{number + 1}-{number + 1}.md", f"# Said\n\n{said}\n"
    yield from OTHERWISE.items()


def make_library(root: Path, seed: int) -> Library:
    """Write a vault; seed 0 takes the files that others wrote, another one texts that are made of them."""
    rng = random.Random(seed)
    (root / ".mdmem").mkdir(parents=True)
    (root / ".mdmem" / "config.toml").touch()
    every = foreign.more(seed, 3 * OTHERS) if seed else iter(foreign.files().items())
    texts = [data.decode("utf-8", "replace") for _, data in every if len(data) < LONGEST][:OTHERS]
    memories = dict(write_memories(rng, texts))
    for path, text in memories.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    words = [word for text in memories.values() for word in re.findall("[A-Za-z]{3,}", text)]
    drawn = [" ".join(rng.choices(words, k=rng.randint(1, 5))) for _ in range(examples(200))]
    kinds = list(product(("memory", "passage"), NARROWED))
    rng.shuffle(kinds)
    asked = [
        Ask(query, each, narrowed)
        for query, (each, narrowed) in zip((*SAID_OTHERWISE, *drawn), cycle(kinds), strict=False)
    ]
    plain = [Ask(query, each, {}) for query in SAID_OTHERWISE for each in ("memory", "passage")]
    return Library(root, [*asked, *plain, Ask("tag:odd", "memory", {}), Ask("-the", "passage", {})])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return make_library(tmp_path_factory.mktemp("order") / "memories", 0)


def order(results: Results) -> list[tuple[str, int]]:
    return [(hit.path, hit.line) for hit in results.hits]


def check_order(library: Library, scope: mdmem.Scope, every: int = 1) -> None:
    """Check that hits begin alike, and add up with `left_out` to one number, at every limit."""
    memory = mdmem.open(library.root, scope=scope)
    beyond = 0
    for ask in library.asked[::every]:
        answers = [memory.search(ask.query, each=ask.each, limit=limit, **ask.narrowed) for limit in LIMITS]
        most = answers[-1]
        beyond += len(most.hits) > text_index.BLOCK
        for limit, results in zip(LIMITS, answers, strict=True):
            found = order(results)
            assert found == order(most)[: len(found)], ask
            if "budget" not in ask.narrowed:
                assert len(found) == min(limit, len(most.hits)), ask
            assert len(found) + results.left_out == len(most.hits) + most.left_out, (ask, limit)
    assert beyond  # more than one block was looked into


@pytest.mark.parametrize(("scope", "every"), [(mdmem.Scope(), 12), (SCOPE, 3)], ids=["owner", "layers"])
def test_one_order_and_one_count_at_every_limit(library: Library, scope: mdmem.Scope, every: int) -> None:
    check_order(library, scope, every)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 4))
def test_one_order_and_one_count_in_other_texts(tmp_path: Path, seed: int) -> None:
    check_order(make_library(tmp_path / "memories", seed), SCOPE, 2)


def test_what_is_counted_is_given_where_all_is_asked_for(library: Library) -> None:
    """Whatever a memory is found by, a hit has a line of it."""
    memory = mdmem.open(library.root, scope=SCOPE)
    for query in SAID_OTHERWISE:
        for each in ("memory", "passage"):
            results = memory.search(query, each=each, limit=5_000)
            assert results.left_out == 0, query
            assert len(results.hits) == sum_up(memory.search(query, each=each, limit=1)), query
            assert len(set(order(results))) == len(results.hits) or each == "passage"


def sum_up(results: Results) -> int:
    return len(results.hits) + results.left_out


def test_one_order_on_the_command_line_and_through_mcp(library: Library) -> None:
    memory = mdmem.open(library.root, scope=SCOPE)
    plain = [
        ask for ask in library.asked if not ask.narrowed.keys() & {"budget", "where", "any_state", "as_of"}
    ]
    asked = plain[:: len(plain) // examples(THROUGH_ALL)]
    expected = [
        order(memory.search(ask.query, each=ask.each, limit=LIMITS[-1], **ask.narrowed)) for ask in asked
    ]
    for ask, hits in zip(asked, expected, strict=True):
        for limit in LIMITS:
            assert on_command_line(library.root, ask, limit) == hits[:limit], ask

    async def ask_server() -> None:
        async with on_stdio(library.root, "--structured", scope=AS_OPTIONS) as client:
            for ask, hits in zip(asked, expected, strict=True):
                if ask.each == "memory":
                    for limit in LIMITS:
                        assert await through_mcp(client, ask, limit) == hits[:limit], ask

    run_async(ask_server)


def on_command_line(root: Path, ask: Ask, limit: int) -> list[tuple[str, int]]:
    names = {"types": "--type", "tags": "--tag", "within": "--in", "since": "--since", "before": "--before"}
    narrowed = [
        part
        for name, value in ask.narrowed.items()
        for part in (names[name], value if isinstance(value, str) else value[0])
    ]
    passages = ["--passages"] if ask.each == "passage" else []
    options = ["--json", "--limit", str(limit), *narrowed, *passages]
    ran = run(root, *AS_OPTIONS, "search", *options, "--", *ask.query.split())
    return [(hit["path"], hit["line"]) for hit in map(json.loads, ran.out.splitlines())]


async def through_mcp(client: Client, ask: Ask, limit: int) -> list[tuple[str, int]]:
    """So many hits, page by page where they are more than an answer may hold."""
    found: list[tuple[str, int]] = []
    following: dict[str, int] | None = {"offset": 0}
    while following and len(found) < limit:
        given = {"query": ask.query, "limit": limit - len(found), **ask.narrowed, **following}
        answer = (await client.call_tool("search", given)).structured_content
        assert answer is not None
        found += [(hit["path"], hit["line"]) for hit in answer["hits"]]
        following = answer.get("next")
    return found
