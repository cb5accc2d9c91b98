"""Measures how much of what messages state is captured, and how much that they do not: beside keyword lists.

    python bench/capture.py [--half dev] [--mistakes]

The messages stand in `bench/capture/`, one JSON object a line: `heldout.jsonl` was written, and fixed, before
there was any word of a lexicon; words and rules were chosen on `dev.jsonl` alone. The same author wrote both
and the lexicons, so that messages of other people may give less.

What is stated, by kind:

- preference: what the speaker likes, dislikes or wants for longer than this one answer; with category, key
  and value where they are among `ui/theme`, `ui/editor`, `language/reply`, `workflow/indent`,
  `workflow/package_manager`, `format/quotes`, `format/units`, `format/time` and `format/date`.
- constraint: what must, or must never, be done or be so.
- style, audience, length, format: how a text is to be written, for whom, how long, in which form.
- decision: what was chosen or agreed, and is no proposal any more.
- fix: what mended something. problem: what does not work. fact: what lasts, about people and things.

Nothing is stated by questions, conditions, quotations, code, orders for this moment, the output of tools, and
what an assistant offers, advises, or only repeats.

An expected entry is found by a candidate of its kind (or of one in `or`, where people may differ) whose quote
holds its words, and whose category, key and value, where both have them, are the same. A candidate that finds
no entry, or one that another has found already, is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from table import Row

from mdmem.capture.extract import KINDS, Candidate, extract

if TYPE_CHECKING:
    from setting import Setting

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "capture")

Extract = Callable[[str, str], list[Candidate]]
"""What a text says, said by a speaker."""


class Message(NamedTuple):
    """A message, and what of it is expected."""

    id: str
    language: str
    speaker: str
    text: str
    expected: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Score:
    """Counts by kind: what was expected, what of it was found, what was captured, and what of that is right.

    `keys` counts what was expected and found with a key; `mistakes` are lines for people.
    """

    expected: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    captured: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)

    def precision(self, kinds: Iterable[str] = KINDS) -> float:
        return _ratio(sum(self.right[kind] for kind in kinds), sum(self.captured[kind] for kind in kinds))

    def recall(self, kinds: Iterable[str] = KINDS) -> float:
        return _ratio(sum(self.found[kind] for kind in kinds), sum(self.expected[kind] for kind in kinds))


def messages(half: str) -> list[Message]:
    with open(os.path.join(_FOLDER, f"{half}.jsonl"), encoding="utf-8") as file:
        return [Message(**json.loads(line)) for line in file]


def score(given: Sequence[Message], extract: Extract) -> Score:
    counts = Score()
    for message in given:
        left = extract(message.text, message.speaker)
        counts.captured.update(each.kind for each in left)
        for entry in message.expected:
            counts.expected[entry["kind"]] += 1
            counts.keys["expected"] += "key" in entry
            found = next((each for each in left if _finds(each, entry)), None)
            if found is None:
                counts.mistakes.append(f"{message.id} missed {entry['kind']}: {message.text}")
                continue
            left.remove(found)
            counts.found[entry["kind"]] += 1
            counts.right[found.kind] += 1
            counts.keys["found"] += "key" in entry and bool(found.key)
        counts.mistakes += [f"{message.id} wrong {each.kind} ({each.why}): {each.quote}" for each in left]
    return counts


def _finds(candidate: Candidate, entry: Mapping[str, Any]) -> bool:
    if candidate.kind not in {entry["kind"], *entry.get("or", ())} or entry["quote"] not in candidate.quote:
        return False
    mine = candidate.category, candidate.key, candidate.value
    return (
        "key" not in entry or not candidate.key or mine == tuple(map(entry.get, ("category", "key", "value")))
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


# -- keyword lists, as others have them -------------------------------------------------------------------

# The first word of a list that stands anywhere in the text, in this very case, makes a candidate of the
# sentence around it: no word boundaries, negation, roles or questions.
_KEYWORDS: dict[str, str] = {
    "constraint": "must no not never only should always cannot limit avoid "
    "必须 不要 不能 禁止 只能 一定 务必 限制 要求",
    "style": "style tone formal casual concise friendly simple professional "
    "风格 语气 正式 简洁 幽默 专业 通俗 轻松",
    "audience": "audience reader beginner user for customer developer expert "
    "读者 受众 面向 用户 初学者 新手 客户",
    "length": "words short long brief detailed length page paragraph 字 简短 详细 长度 以内 篇幅 一段",
    "format": "format table list json JSON markdown Markdown bullet code 格式 表格 列表 分点 标题 代码",
    "preference": "prefer like want favorite love rather 喜欢 偏好 希望 想要 更喜欢 习惯 倾向",
    "decision": "decide decision 决定 选择 方案 采用",
    "fix": "fixed solved done completed 修复 解决 完成 搞定",
    "problem": "error bug problem 问题 错误 失败",
}
_KEYS = {
    ("ui", "theme", "dark"): ("dark mode", "深色", "dark theme"),
    ("ui", "theme", "light"): ("light mode", "浅色"),
    ("language", "reply", "zh"): ("chinese", "中文"),
    ("language", "reply", "en"): ("english", "英文"),
    ("workflow", "indent", "tabs"): ("tabs",),
    ("workflow", "indent", "spaces"): ("spaces",),
}


def by_keywords(text: str, _: str) -> list[Candidate]:
    found: list[Candidate] = []
    keys: set[str] = set()
    for (category, key, value), words in _KEYS.items():
        word = next((each for each in words if each in text.lower()), None)
        if word and key not in keys:
            keys.add(key)
            found.append(_candidate(text, text.lower().find(word), "preference", (category, key, value)))
    for kind, listed in _KEYWORDS.items():
        word = next((each for each in listed.split() if each in text), None)
        if word and not (kind == "preference" and keys):
            found.append(_candidate(text, text.find(word), kind))
    return found


def _candidate(text: str, at: int, kind: str, key: tuple[str, str, str] = ("", "", "")) -> Candidate:
    ends = ".!?\u3002\uff01\uff1f\n"
    start = max(text.rfind(end, 0, at) for end in ends) + 1
    end = min((place for place in (text.find(each, at) for each in ends) if place >= 0), default=len(text))
    quote = text[start:end]
    category, name, value = key
    return Candidate(
        kind=kind,
        category=category,
        key=name,
        value=value or quote,
        quote=quote,
        start=start,
        end=end,
        confidence=0.6,
        why="keyword",
    )


# -- the table --------------------------------------------------------------------------------------------

_PRECISION, _RECALL = 0.90, 0.75


def table(scores: Mapping[str, Score]) -> str:
    """By kind, and in total: how many were expected, and of each way precision and recall."""
    head = "kind", "expected", *(f"{name}: {what}" for name in scores for what in ("precision", "recall"))
    lines = [head, ("---", *("--:",) * (len(head) - 1))]
    for title, kinds in (*((kind, (kind,)) for kind in KINDS), ("in total", KINDS)):
        cells = [title, str(sum(next(iter(scores.values())).expected[kind] for kind in kinds))]
        for each in scores.values():
            captured = sum(each.captured[kind] for kind in kinds)
            precision = f"{each.precision(kinds):.2f} of {captured}" if captured else "none captured"
            cells += [precision, f"{each.recall(kinds):.2f}"]
        lines.append(tuple(cells))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def silent(read: Sequence[Message]) -> list[tuple[str, list[Message]]]:
    """Messages that state nothing: questions, those with code or quotations, the output of tools, others."""

    def of(message: Message) -> str:
        if message.speaker == "tool":
            return "output of tools"
        if message.text.rstrip("\"'\u201d")[-1:] in {"?", "\uff1f"}:
            return "questions"
        if any(sign in message.text for sign in ("`", "\n    ", '"', "\u201c", "\n>", "> ")):
            return "code and quotations"
        return "others of an assistant" if message.speaker == "assistant" else "others of a user"

    groups: dict[str, list[Message]] = defaultdict(list)
    for message in read:
        if not message.expected:
            groups[of(message)].append(message)
    return sorted(groups.items())


def measure(_: Setting) -> list[Row]:
    """Rows for `bench/run.py`."""
    read = messages("heldout")
    ours, theirs = score(read, extract), score(read, by_keywords)
    rows = [
        Row(
            what=f"capture, {len(read)} held-out messages: {what}",
            ours=f"{mine:.2f}",
            beside=f"keyword lists: {other:.2f}",
            budget=f"\u2265 {least}",
            kept=mine >= least,
        )
        for what, mine, other, least in (
            ("precision", ours.precision(), theirs.precision(), _PRECISION),
            ("recall", ours.recall(), theirs.recall(), _RECALL),
        )
    ]
    for name, group in silent(read):
        if name.startswith(("questions", "code", "output")):
            stray, other = (score(group, each).captured.total() for each in (extract, by_keywords))
            what = f"capture, {len(group)} held-out messages of {name}: captured"
            beside = f"keyword lists: {other}"
            rows.append(Row(what=what, ours=str(stray), beside=beside, budget="0", kept=stray == 0))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure what is captured of messages.")
    parser.add_argument("--half", choices=("heldout", "dev"), default="heldout")
    parser.add_argument("--mistakes", action="store_true", help="print what was missed or wrong; of dev only")
    given = parser.parse_args(arguments)
    if given.mistakes and given.half != "dev":
        parser.error("the mistakes in held-out messages are not looked at: --half dev")
    read = messages(given.half)
    ours, theirs = score(read, extract), score(read, by_keywords)
    print(table({"mdmem": ours, "keyword lists": theirs}))
    print(f"\nOf {ours.keys['expected']} with a key, {ours.keys['found']} were found with the right one.\n")
    print("| messages that state nothing | of them | mdmem: captured | keyword lists: captured |")
    print("|---|--:|--:|--:|")
    for name, group in silent(read):
        print(
            f"| {name} | {len(group)}",
            *(score(group, each).captured.total() for each in (extract, by_keywords)),
            sep=" | ",
            end=" |\n",
        )
    if given.mistakes:
        print("", *ours.mistakes, sep="\n")
    return 0 if ours.precision() >= _PRECISION and ours.recall() >= _RECALL else 1


if __name__ == "__main__":
    sys.exit(main())
