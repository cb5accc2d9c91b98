"""Print all that capture takes from messages of people, beside what people labelled as lasting.

    python bench/capture.py [--prompts FILE] [--chats FILE] [--found FILE] [--refused FILE]

`--prompts`: a line for each message that somebody typed to a coding agent, `{"text": …}`. Of the file whose
messages were labelled, `capture_labels.json` says what lasts: the number of the message, 0 for the first, and
start and end in code points. Two people marked each message before there was any rule: a statement is lasting
where one of them was sure, else borderline. What is captured outside of both is right for the moment only, or
wrong; that is for you to see. A sentence that stands in several messages counts once.
`--chats`: LoCoMo, people who chat; hardly anything of it is a wish to an agent.
`--found`, `--refused`: a sentence on each line, `{"text": …}`, that states something lasting, or that only
begins as if it did.

Exit status 1 says that less is found, or more is taken, than the bounds below allow.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from mdmem.conversations.observe.candidate import Candidate
from mdmem.conversations.observe.extract import extract
from mdmem.document.source import normal

_LABELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "capture_labels.json")
_CHATS_MOST = 0.01  # captures a message
_LASTING_LEAST = 0.5  # of what is taken from prompts
_FOUND_LEAST, _REFUSED_MOST = 1 / 2, 4 / 60


def captured(messages: Sequence[str]) -> Iterator[tuple[int, Candidate]]:
    for number, text in enumerate(messages):
        for candidate in extract(text):
            yield number, candidate


def label_of(number: int, candidate: Candidate, labels: dict[str, list[list[int]]]) -> str:
    for name, spans in labels.items():
        for message, start, end in spans:
            if message == number and start < candidate.end and candidate.start < end:
                return name
    return "neither"


def read_texts(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def print_prompts(path: str) -> bool:
    messages = read_texts(path)
    with open(_LABELS, encoding="utf-8") as file:
        labels: dict[str, list[list[int]]] = json.load(file)
    counts = Counter[str]()
    places: list[tuple[int, Candidate]] = []
    seen = set[str]()
    for number, candidate in captured(messages):
        places.append((number, candidate))
        if normal(candidate.quote) in seen:
            continue
        seen.add(normal(candidate.quote))
        label = label_of(number, candidate, labels)
        counts[label] += 1
        print(f"{number:4} {label:10} {candidate.kind:10} {candidate.value}  [{candidate.why}]")
    found = sum(
        any(number == at and each.start < end and start < each.end for at, each in places)
        for number, start, end in labels["lasting"]
    )
    print(
        f"{len(messages)} messages, {counts.total()} sentences taken: {counts['lasting']} lasting,"
        f" {counts['borderline']} borderline, {counts['neither']} neither"
    )
    print(f"{found} of {len(labels['lasting'])} labelled as lasting were found")
    return counts["lasting"] >= counts.total() * _LASTING_LEAST


def print_sentences(path: str, *, is_lasting: bool) -> bool:
    texts = read_texts(path)
    taken = [text for text in texts if extract(text)]
    for text in texts:
        print(f"{'taken' if text in taken else '':6} {text}")
    print(f"{path}: {len(taken)} of {len(texts)} taken")
    most = len(texts) * _REFUSED_MOST
    return len(taken) >= len(texts) * _FOUND_LEAST if is_lasting else len(taken) <= most


def print_chats(path: str) -> bool:
    with open(path, encoding="utf-8") as file:
        conversations = [item["conversation"] for item in json.load(file)]
    turns = [
        turn["text"]
        for each in conversations
        for part in each.values()
        if isinstance(part, list)
        for turn in part
    ]
    found = list(captured(turns))
    print(*(f"{number:4} {each.kind:10} {each.value}" for number, each in found), sep="\n")
    print(f"{len(turns)} turns of chats, {len(found)} captures")
    return len(found) <= len(turns) * _CHATS_MOST


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print what is captured of messages.")
    parser.add_argument("--prompts", metavar="FILE")
    parser.add_argument("--chats", metavar="FILE")
    parser.add_argument("--found", metavar="FILE")
    parser.add_argument("--refused", metavar="FILE")
    given = parser.parse_args(arguments)
    kept = [
        given.prompts is None or print_prompts(given.prompts),
        given.chats is None or print_chats(given.chats),
        given.found is None or print_sentences(given.found, is_lasting=True),
        given.refused is None or print_sentences(given.refused, is_lasting=False),
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
