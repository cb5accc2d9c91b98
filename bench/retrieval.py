"""Measures ranked search: how often the right memory is found, beside SQLite's FTS5.

    python bench/retrieval.py --locomo locomo.json --markdown FOLDER --markdown FOLDER

LoCoMo (Maharana and others, ACL 2024) is not part of the project; its path may also stand in MDMEM_LOCOMO.
One file is made of each session, one paragraph of each turn, and each question is searched for in its own
conversation; adversarial questions and those without usable evidence are left out.

The other sets are made of what is there: docstrings of Python's library, looked for by their first line, and
Markdown files below the folders that are named, looked for by a heading that was taken out of them, by five
words of one of their paragraphs, or by a heading and their name; and their sections as short notes, looked
for by their headings.

    python bench/retrieval.py --semantic --locomo locomo.json --markdown FOLDER

Measures the same sets with the leg that knows other words for the same thing (the extra `semantic`), beside
words alone.

    python bench/retrieval.py --questions bench/questions/jellyfin.tsv FOLDER

Asks questions that people wrote, a line each with the page that answers it, over a folder that the first line
of the file names, by words alone and with the leg, and counts the answers that are equal, too. The pages are
not part of the project.

    python bench/retrieval.py --sessions --locomo locomo.json

Measures what summaries keep without a model, in place of searches: each session of LoCoMo is a run of
messages, and of the turns that answer a question those count that keep at least half of their rare words,
which stand in at most two turns of their conversation. Beside it is the beginning of each run.

    python bench/retrieval.py --observations --locomo locomo.json

Measures what observations without a model lead to: each conversation of LoCoMo is a session, which is
observed whenever that is due and where a session of LoCoMo ends. A question is answered where one of the
first three observations is about a turn that answers it. Beside it stand the first words of the same
stretches, as many tokens of them. Then sessions are looked for, as memories alone and with the observations
beside them, each of which counts for its session.
"""

from __future__ import annotations

import argparse
import ast
import glob
import json
import os
import random
import re
import sqlite3
import sys
import sysconfig
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from mdmem.conversations.log.message import Message
from mdmem.conversations.prompt.summarise import extract
from mdmem.document.document import parse
from mdmem.document.text.tokens import estimate
from mdmem.facade.memory import Memory
from mdmem.index.passages import indexed
from mdmem.index.query import parse as parse_query, stop_words
from mdmem.index.scoring import Ranked, RankedBlock, Scorer
from mdmem.index.text_index import TextIndex, TextView
from mdmem.vault.folder import init
from mdmem.vault.paths import Namespace

_TODAY = 20260101
_ADVERSARIAL = 5
_TURN = re.compile(r"\[(D[0-9]+:[0-9]+)\]")
_MOST_QUESTIONS = 700


class Question(NamedTuple):
    """A question, the memories that answer it, and the turns; there are no turns in most sets."""

    text: str
    memories: frozenset[str]
    turns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """Memories by their paths, and questions about them."""

    name: str
    memories: Mapping[str, str]
    questions: Sequence[Question]


class Answer(NamedTuple):
    """What a search gave: memories and turns, the best first."""

    memories: Sequence[str]
    turns: Sequence[str]


Search = Callable[[str], Answer]


@dataclass(slots=True)
class Figures:
    """Sums over the questions of a kind of set."""

    questions: int = 0
    at_5: float = 0.0
    at_10: float = 0.0
    reciprocal: float = 0.0
    turns: float = 0.0
    asked_turns: int = 0

    def add(self, question: Question, answer: Answer) -> None:
        right = question.memories
        self.questions += 1
        self.at_5 += len(right & set(answer.memories[:5])) / len(right)
        self.at_10 += len(right & set(answer.memories[:10])) / len(right)
        ranks = (rank for rank, path in enumerate(answer.memories[:50], 1) if path in right)
        self.reciprocal += 1 / next(ranks, float("inf"))
        if question.turns:
            self.turns += len(question.turns & set(answer.turns[:10])) / len(question.turns)
            self.asked_turns += 1

    def cells(self) -> list[str]:
        means = [f"{total / self.questions:.3f}" for total in (self.at_5, self.at_10, self.reciprocal)]
        turns = f"{self.turns / self.asked_turns:.3f}" if self.asked_turns else ""
        return [*means, turns]


# -- the sets ---------------------------------------------------------------------------------------------


def conversations(path: str) -> Iterator[Set]:
    with open(path, encoding="utf-8") as file:
        for told in json.load(file):
            yield _conversation(told)


def _conversation(told: Mapping[str, Any]) -> Set:
    memories: dict[str, str] = {}
    session_of: dict[str, str] = {}
    conversation = told["conversation"]
    for key in sorted(key for key in conversation if re.fullmatch("session_[0-9]+", key)):
        path = f"{told['sample_id']}/{key}.md"
        title, day = key.replace("_", " ").capitalize(), conversation.get(f"{key}_date_time", "")
        turns = [_turn(turn) for turn in conversation[key]]
        memories[path] = f"---\ntitle: {title}\ndate: {json.dumps(day)}\n---\n\n" + "\n\n".join(turns) + "\n"
        session_of.update({turn["dia_id"]: path for turn in conversation[key]})
    questions = []
    for asked in told["qa"]:
        turns_ = frozenset(turn for turn in asked.get("evidence", ()) if turn in session_of)
        if asked.get("category") != _ADVERSARIAL and turns_:
            sessions = frozenset(session_of[turn] for turn in turns_)
            questions.append(Question(asked["question"], sessions, turns_))
    return Set(name="LoCoMo", memories=memories, questions=questions)


def _turn(turn: Mapping[str, str]) -> str:
    caption = f" (photo: {turn['blip_caption']})" if turn.get("blip_caption") else ""
    return f"[{turn['dia_id']}] {turn['speaker']}: {turn['text']}{caption}"


def docstrings(rng: random.Random) -> Set:
    memories: dict[str, str] = {}
    questions: list[Question] = []
    for file in sorted(glob.glob(os.path.join(sysconfig.get_path("stdlib"), "*.py"))):
        with open(file, encoding="utf-8") as source:
            tree = ast.parse(source.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
                if len(first.split()) > 3 and len(rest) > 150:
                    path = f"docstrings/{len(memories)}.md"
                    memories[path] = rest
                    questions.append(Question(first, frozenset([path])))
    rng.shuffle(questions)
    return Set(name="docstrings by first line", memories=memories, questions=questions[:_MOST_QUESTIONS])


def documentation(folders: Sequence[str], rng: random.Random) -> Iterator[Set]:
    files = dict(_markdown(folders))
    by_heading, by_words, by_name, by_note = [], [], [], []
    without: dict[str, str] = {}
    notes: dict[str, str] = {}
    for path, text in files.items():
        document = parse(path, text.encode())
        sections = [s for s in document.sections if s.heading.level > 1 and _tells(s.heading.title)]
        sections = [s for s in sections if 200 < s.own.end - s.own.start < 3000]
        left = text
        for section in sorted(rng.sample(sections, min(2, len(sections))), key=lambda s: -s.span.start):
            left = left[: section.heading.span.start] + left[section.heading.span.end :]
            by_heading.append(Question(section.heading.title, frozenset([path])))
        without[path] = left
        for section in rng.sample(sections, min(1, len(sections))):
            name = " ".join(re.findall(r"\w+", os.path.basename(path)[:-3])[:2])
            by_name.append(Question(f"{section.heading.title} {name}", frozenset([path])))
        for number, section in enumerate(sections[:12]):
            note = f"notes/{len(notes)}-{number}.md"
            notes[note] = text[slice(*section.own)]
            by_note.append(Question(section.heading.title, frozenset([note])))
        by_words += [Question(asked, frozenset([path])) for asked in _five_words(text, rng)]
    for name, memories, questions in (
        ("documentation by a missing heading", without, by_heading),
        ("documentation by words of a paragraph", files, by_words),
        ("documentation by heading and name", files, by_name),
        ("short notes by a missing heading", notes, by_note),
    ):
        rng.shuffle(questions)
        yield Set(name=name, memories=memories, questions=questions[:_MOST_QUESTIONS])


def _markdown(folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for file in sorted(glob.glob(os.path.join(glob.escape(folder), "**", "*.md"), recursive=True)):
            with open(file, encoding="utf-8", errors="replace") as opened:
                text = opened.read(200_000).replace("\0", "")
            if len(text) > 300:
                yield f"{os.path.basename(folder)}/{os.path.relpath(file, folder)}", text


def _tells(title: str) -> bool:
    return len(re.findall("[A-Za-z]{3,}", title)) > 1


def _five_words(text: str, rng: random.Random) -> Iterator[str]:
    paragraphs = [p for p in re.split(r"\n\s*\n", text) if 150 < len(p) < 900 and p.lstrip()[:1].isalpha()]
    for paragraph in rng.sample(paragraphs, min(1, len(paragraphs))):
        found = [w for w in re.findall("[A-Za-z][A-Za-z_]{2,}", paragraph) if w.lower() not in stop_words()]
        if len(found) > 8:
            yield " ".join(found[at] for at in sorted(rng.sample(range(len(found)), 5)))


# -- the searches -----------------------------------------------------------------------------------------


def ours(folder: str, memories: Mapping[str, str]) -> Search:
    index = TextIndex(folder)
    texts: dict[tuple[str, int], str] = {}
    for path, text in memories.items():
        memory = indexed(parse(path, text.encode()))
        index.add(memory)
        texts.update({(path, number): passage.text for number, passage in enumerate(memory.passages)})
    index.commit()

    return lambda text: _answer(Scorer(TextView(index, (Namespace(),)), parse_query(text), (), _TODAY), texts)


def _filled(folder: str, memories: Mapping[str, str]) -> Memory:
    """A vault of memories, all of which have their vectors."""
    memory = Memory(init(folder).root, embedder="minilm")
    for path, text in memories.items():
        file = os.path.join(folder, path)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w", encoding="utf-8", newline="") as opened:
            opened.write(text)
    memory.sync()
    assert memory.meaning
    memory.meaning.fill()
    return memory


def with_meaning(folder: str, memories: Mapping[str, str]) -> Search:
    memory, texts = _filled(folder, memories), dict[tuple[str, int], str]()
    for path, text in memories.items():
        passages = indexed(parse(path, text.encode())).passages
        texts.update({(path, number): passage.text for number, passage in enumerate(passages)})
    meaning = memory.meaning
    assert meaning

    def search(text: str) -> Answer:
        query = parse_query(text)
        near = meaning.ask(query.said, [Namespace()]) if query.said else None
        leg = None if isinstance(near, str) else near
        return memory.index.text(
            lambda index: _answer(Scorer(TextView(index, (Namespace(),)), query, (), _TODAY, near=leg), texts)
        )

    return search


def _answer(scorer: Scorer, texts: Mapping[tuple[str, int], str]) -> Answer:
    found, passages = _first(50, scorer.rank("memory")), _first(20, scorer.rank("passage"))
    placed = [each for each in passages if each.place]
    named = zip(scorer.paths(placed), placed, strict=True)
    turns = [
        _TURN.match(texts[path, each.place.ordinal])
        for path, each in named
        if each.place and (path, each.place.ordinal) in texts
    ]
    return Answer(scorer.paths(found), [turn[1] for turn in turns if turn])


def _first(most: int, blocks: Iterator[RankedBlock]) -> Iterator[Ranked]:
    """The best of what was ranked, whatever the limit of a search is."""
    return islice((ranked for block in blocks for ranked in block.ranked), most)


def fts5(_: str, memories: Mapping[str, str]) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE whole USING fts5(path UNINDEXED, text, tokenize = 'porter unicode61')"
    )
    database.execute(
        "CREATE VIRTUAL TABLE turn USING fts5(id UNINDEXED, text, tokenize = 'porter unicode61')"
    )
    database.executemany("INSERT INTO whole VALUES (?, ?)", memories.items())
    turns = [(m[1], p) for text in memories.values() for p in text.split("\n\n") if (m := _TURN.match(p))]
    database.executemany("INSERT INTO turn VALUES (?, ?)", turns)

    def search(text: str) -> Answer:
        asked = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        return Answer(
            *(
                [row[0] for row in database.execute(statement, (asked,))]
                for statement in (
                    "SELECT path FROM whole WHERE whole MATCH ? ORDER BY rank LIMIT 50",
                    "SELECT id FROM turn WHERE turn MATCH ? ORDER BY rank LIMIT 10",
                )
            )
        )

    return search


_SEARCHES: Mapping[str, Callable[[str, Mapping[str, str]], Search]] = {"mdmem": ours, "FTS5, porter": fts5}


# -- questions that people wrote -------------------------------------------------------------------------


def questions(sets: Sequence[Sequence[str]]) -> int:
    """Print how often the right page is first, and among five, by words and with the leg."""
    print("| questions | pages | asked | first: words, meaning | among five: words, meaning | equal |")
    print("|---|--:|--:|--:|--:|--:|")
    for file, tree in sets:
        with open(file, encoding="utf-8") as opened:
            rows = [line.rstrip("\n").split("\t") for line in opened if not line.startswith("#")]
        pages = dict(_markdown([os.path.abspath(tree)]))
        top, equal = os.path.basename(os.path.abspath(tree)), 0
        ranks: dict[bool, list[int]] = {True: [], False: []}
        with tempfile.TemporaryDirectory(prefix="mdmem-retrieval-") as folder:
            memory = _filled(os.path.join(folder, "memories"), pages)
            for asked, page in rows:
                if f"{top}/{page}" not in pages:
                    raise SystemExit(f"{tree} has no page {page}: is it the folder that {file} is about?")
                answers = {words: memory.search(asked, limit=5, words_only=words) for words in ranks}
                equal += replace(answers[True], notes=()) == replace(answers[False], notes=())
                for words, answer in answers.items():
                    found = [hit.path for hit in answer.hits]
                    ranks[words].append(found.index(f"{top}/{page}") if f"{top}/{page}" in found else 5)
        first, five = (
            ", ".join(str(sum(rank < most for rank in ranks[words])) for words in (True, False))
            for most in (1, 5)
        )
        name = os.path.basename(file)
        print(f"| {' | '.join([name, f'{len(pages)}', f'{len(rows)}', first, five, f'{equal}'])} |")
    return 0


# -- summaries --------------------------------------------------------------------------------------------

_KEPT, _RARE, _TIMES = 0.2, 2, 1.5  # of the tokens; turns that a rare word stands in; as many as beginnings
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


class Told(NamedTuple):
    """A turn of a conversation: its id, the message, and its rare words."""

    turn: str
    message: Message
    rare: frozenset[str]


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _runs(told: Mapping[str, Any]) -> list[list[Told]]:
    """The sessions of a conversation, in order."""
    conversation = told["conversation"]
    keys = sorted(
        (key for key in conversation if re.fullmatch("session_[0-9]+", key)), key=lambda key: int(key[8:])
    )
    counts = Counter(word for key in keys for turn in conversation[key] for word in _words(turn["text"]))
    runs: list[list[Told]] = []
    for key in keys:
        runs.append([])
        for number, turn in enumerate(conversation[key], 1):
            role = "user" if turn["speaker"] == conversation["speaker_a"] else "assistant"
            rare = frozenset(word for word in _words(turn["text"]) if counts[word] <= _RARE)
            runs[-1].append(
                Told(turn["dia_id"], Message(number, {"role": role, "content": turn["text"]}), rare)
            )
    return runs


def _beginning(messages: Sequence[Message], target: int) -> str:
    """What a summary is that takes the first characters."""
    text = "\n".join(f"{message.role}: {message.text}" for message in messages)
    return text[: bisect_right(range(len(text) + 1), target, key=lambda end: estimate(text[:end])) - 1]


def summaries(path: str) -> int:
    """Print how many turns keep half of their rare words; whether these are enough is the exit code."""
    with open(path, encoding="utf-8") as file:
        every = json.load(file)
    kept = {"sentences": 0, "beginnings": 0}
    tokens = dict.fromkeys(kept, 0)
    turns = 0
    for told in every:
        evidence = {
            turn
            for asked in told["qa"]
            if asked.get("category") != _ADVERSARIAL
            for turn in asked["evidence"]
        }
        for run in _runs(told):
            messages = [each.message for each in run]
            target = int(sum(message.tokens for message in messages) * _KEPT)
            asked = [each for each in run if each.turn in evidence and each.rare]
            turns += len(asked)
            for name, text in (
                ("sentences", extract(messages, target)),
                ("beginnings", _beginning(messages, target)),
            ):
                words = _words(text)
                tokens[name] += estimate(text)
                kept[name] += sum(len(each.rare & words) * 2 >= len(each.rare) for each in asked)
    print("| summary | tokens | evidence turns that keep half of their rare words | of | part |")
    print("|---|--:|--:|--:|--:|")
    for name, count in kept.items():
        print(f"| {name} | {tokens[name]:,} | {count} | {turns} | {count / turns:.3f} |")
    times = kept["sentences"] / kept["beginnings"]
    print(f"\n{times:.2f} times as many; the budget is {_TIMES}")
    return 0 if times >= _TIMES else 1


# -- observations -----------------------------------------------------------------------------------------

_FIRST, _MORE_OFTEN = 3, 1.3  # observations that are looked at; as often as the first words


class _Noted(NamedTuple):
    """An observation: its path, its memory, its tokens, the turns it is about, and their session's memory."""

    path: str
    text: str
    tokens: int
    turns: Mapping[str, Message]
    session: str


def _noted(told: Mapping[str, Any], folder: str) -> list[_Noted]:
    """What is observed of a conversation; whoever speaks is the role."""
    memory = Memory(init(folder).root)
    conversation = told["conversation"]
    keys = [key for key in conversation if re.fullmatch("session_[0-9]+", key)]
    turns: dict[int, tuple[str, str]] = {}
    for key in sorted(keys, key=lambda key: int(key[8:])):
        for turn in conversation[key]:
            number = memory.sessions.add("s", turn["speaker"], turn["text"])
            assert number is not None
            turns[number] = turn["dia_id"], f"{told['sample_id']}/{key}.md"
            if "observe" in memory.observations.due("s"):
                memory.observations.observe("s")
        memory.observations.observe("s")
    said = {message.seq: message for message in memory.sessions.history("s")}
    found = []
    for each in memory.observations.list("s"):
        numbers = [number for number in turns if each.first <= number <= each.last]
        about = {turns[number][0]: said[number] for number in numbers}
        text = memory.show(each.path).text
        found.append(_Noted(each.path, text, each.tokens, about, turns[numbers[0]][1]))
    return found


def _first_words(noted: _Noted) -> str:
    """The same memory with the first words of its messages, of as many tokens."""
    lines: list[str] = []
    for message in noted.turns.values():
        for number, word in enumerate(message.text.split()):
            if estimate("\n\n".join(lines)) >= noted.tokens:
                break
            if not number:
                lines.append(f"{message.role}:")
            lines[-1] += f" {word}"
    head = noted.text.split("---\n")[1]
    return f"---\n{head}---\n\n" + "\n\n".join(lines) + "\n"


def observations(path: str) -> int:
    """Print what is found by observations; whether that is enough is the exit code."""
    with open(path, encoding="utf-8") as file:
        every = json.load(file)
    sets = list(conversations(path))
    answered = {"observations": 0, "first words": 0}
    tokens = dict.fromkeys(answered, 0)
    figures = {"sessions alone": Figures(), "with observations": Figures()}
    asked = count = 0
    for told, each in zip(every, sets, strict=True):
        with tempfile.TemporaryDirectory(prefix="mdmem-retrieval-") as folder:
            noted = _noted(told, os.path.join(folder, "memories"))
            count += len(noted)
            by_path = {one.path: one for one in noted}
            texts = {
                "observations": {one.path: one.text for one in noted},
                "first words": {one.path: _first_words(one) for one in noted},
            }
            searches = {name: ours(os.path.join(folder, name), found) for name, found in texts.items()}
            for name, found in texts.items():
                tokens[name] += sum(
                    estimate(parse(p, text.encode()).body.strip()) for p, text in found.items()
                )
                for question in each.questions:
                    first = searches[name](question.text).memories[:_FIRST]
                    answered[name] += any(by_path[p].turns.keys() & question.turns for p in first)
            asked += len(each.questions)
            alone = ours(os.path.join(folder, "alone"), each.memories)
            both = ours(os.path.join(folder, "both"), {**each.memories, **texts["observations"]})
            for question in each.questions:
                figures["sessions alone"].add(question, Answer(alone(question.text).memories, ()))
                paths = both(question.text).memories
                sessions = [by_path[p].session if p in by_path else p for p in paths]
                figures["with observations"].add(question, Answer([*dict.fromkeys(sessions)], ()))
    print(f"| {count:,} notes on the same stretches | tokens | in the first {_FIRST} | of | part |")
    print("|---|--:|--:|--:|--:|")
    for name, found_ in answered.items():
        print(f"| {name} | {tokens[name]:,} | {found_} | {asked} | {found_ / asked:.3f} |")
    print("\n| sessions | recall@5 | recall@10 | MRR |\n|---|--:|--:|--:|")
    for name, sums in figures.items():
        print(f"| {name} | {' | '.join(sums.cells()[:3])} |")
    times = answered["observations"] / answered["first words"]
    one, other = figures.values()
    is_no_less = other.at_5 >= one.at_5 and other.at_10 >= one.at_10 and other.reciprocal >= one.reciprocal
    print(
        f"\n{times:.2f} times as often; the budget is {_MORE_OFTEN}, and no less with observations than alone"
    )
    return 0 if times >= _MORE_OFTEN and is_no_less else 1


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure what ranked search finds.")
    parser.add_argument("--locomo", default=os.environ.get("MDMEM_LOCOMO", ""), help="LoCoMo's file")
    parser.add_argument("--markdown", action="append", default=[], metavar="FOLDER", help="documentation")
    parser.add_argument("--seed", type=int, default=1, help="which questions are made")
    parser.add_argument("--semantic", action="store_true", help="words, and with the leg of meaning")
    wrote = "questions that people wrote, and the folder that they are about"
    parser.add_argument("--questions", nargs=2, action="append", metavar=("FILE", "FOLDER"), help=wrote)
    parser.add_argument("--sessions", action="store_true", help="what summaries of LoCoMo's sessions keep")
    parser.add_argument("--observations", action="store_true", help="what observations of LoCoMo lead to")
    given = parser.parse_args(arguments)
    if given.questions:
        return questions(given.questions)
    if given.sessions or given.observations:
        if not given.locomo:
            parser.error("--sessions and --observations want --locomo")
        return observations(given.locomo) if given.observations else summaries(given.locomo)
    rng = random.Random(given.seed)
    sets = [*(conversations(given.locomo) if given.locomo else ()), docstrings(rng)]
    if given.markdown:
        sets += documentation([os.path.abspath(folder) for folder in given.markdown], rng)
    print("| set | memories | questions | search | recall@5 | recall@10 | MRR | turns, recall@10 |")
    print("|---|--:|--:|---|--:|--:|--:|--:|")
    for name in dict.fromkeys(each.name for each in sets):
        of_kind = [each for each in sets if each.name == name]
        searches = {"words": ours, "meaning": with_meaning} if given.semantic else _SEARCHES
        for search, figures in _measured(of_kind, searches).items():
            size = sum(len(each.memories) for each in of_kind)
            print(f"| {' | '.join([name, f'{size:,}', str(figures.questions), search, *figures.cells()])} |")
    return 0


def _measured(
    sets: Sequence[Set], searches: Mapping[str, Callable[[str, Mapping[str, str]], Search]]
) -> dict[str, Figures]:
    figures = {name: Figures() for name in searches}
    for each in sets:
        for name, make in searches.items():
            with tempfile.TemporaryDirectory(prefix="mdmem-retrieval-") as folder:
                search = make(os.path.join(folder, "text"), each.memories)
                for question in each.questions:
                    figures[name].add(question, search(question.text))
    return figures


if __name__ == "__main__":
    sys.exit(main())
