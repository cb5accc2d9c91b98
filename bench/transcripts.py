"""Imports public transcripts of four hosts, and holds what is kept to a reader of its own.

`python bench/transcripts.py FOLDER` reads the files that `bench/transcripts.json` names in a folder: of each,
every message that a person or a model wrote has to be in its session once, in order, with its role and time.
The list holds, for each file, where it is public, its SHA-256, and its messages: role, time, and the start of
the SHA-256 of the words. `--write FILE…` makes the list of these files anew, by the reader alone; a file is
called `OWNER+NAME__PATH`, with `_` for each `/` of its path.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mdmem
from mdmem.conversations.log.record import messages_in

LIST = Path(__file__).with_suffix(".json")
ASIDE = ("isSidechain", "isMeta", "isCompactSummary")
Row = tuple[str, str, str]
"""Who wrote a message, when (ISO 8601), and the start of the SHA-256 of its words."""


def row(role: str, time: Any, words: str) -> Iterator[Row]:
    """One message, in the form of the list; none without words."""
    if words.split():
        if isinstance(time, int | float):
            seconds = time / 1000 if time > 1e11 else time
            time = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:23] + "Z"
        told = hashlib.sha256(" ".join(words.split()).encode("utf-8", "replace")).hexdigest()
        yield role, time or "", told[:10]


def words_of(content: Any) -> str:
    """What is said in a content: a text, or the texts of a list."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    said = [each for each in blocks if isinstance(each, dict) and isinstance(each.get("text"), str)]
    return "\n".join(
        each["text"] for each in said if each.get("type") in {None, "text", "input_text", "output_text"}
    )


# -- the reader: nothing of mdmem is used here ------------------------------------------------------------


def read(path: Path) -> list[Row]:
    """Every message that a person or a model wrote, by what the host's files are known to hold."""
    text = path.read_bytes().decode("utf-8-sig", "replace")
    host = path.parent.name
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if whole is None or host in {"claude", "codex"}:
        whole = [value for line in text.splitlines() if isinstance(value := decode(line), dict)]
    return [*{"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode}[host](whole)]


def decode(line: str) -> Any:
    """The value in a line; None where it is none."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def claude(values: list[dict[str, Any]]) -> Iterator[Row]:
    """Count a line that stands there twice once, and what was queued where it was sent, else where typed."""
    seen, sent = set[str](), {typed for value in values if (typed := sent_words(value))}
    for value in values:
        kind, time, said = value.get("type"), value.get("timestamp"), value.get("message")
        own = json.dumps(value) if value.get("uuid") else ""
        if own in seen or any(value.get(each) for each in ASIDE):
            continue
        seen |= {own} if own else set()
        if kind == "queue-operation":
            words = words_of(value.get("content")).strip() if value.get("operation") == "enqueue" else ""
            yield from row("user", time, "" if words in sent or words.startswith("<") else words)
        elif kind == "attachment":
            yield from row("user", time, sent_words(value))
        elif kind in {"user", "assistant"} and isinstance(said, dict) and not value.get("isApiErrorMessage"):
            yield from row(kind, time, words_of(said.get("content")))


def sent_words(value: dict[str, Any]) -> str:
    """What was typed, where a line says that it was sent, or taken out of the queue."""
    kind, said = value.get("type"), value.get("message")
    if value.get("operation") == "popAll":
        return str(value.get("content")).strip()
    if kind == "attachment":
        own = value["attachment"]
        is_typed = own.get("type") == "queued_command" and own.get("commandMode", "prompt") == "prompt"
        return words_of(own.get("prompt")).strip() if is_typed else ""
    is_said = kind == "user" and isinstance(said, dict) and not any(value.get(each) for each in ASIDE)
    return words_of(said.get("content")).strip() if is_said and said else ""


def codex(values: list[dict[str, Any]]) -> Iterator[Row]:
    """The items that the model had, in an envelope or bare."""
    for value in values:
        item = value.get("payload", value)
        is_item = value.get("type") == "response_item" or "payload" not in value
        if is_item and isinstance(item, dict) and item.get("role") in {"user", "assistant"}:
            time = value.get("timestamp") or item.get("timestamp")
            yield from row(item["role"], time, words_of(item.get("content")))


def gemini(whole: Any) -> Iterator[Row]:
    """Of a message that was written again, the last version, where the first one stood."""
    messages: dict[Any, dict[str, Any]] = {}
    for value in whole if isinstance(whole, list) else whole["messages"]:
        if value.get("type") in {"user", "gemini"}:
            messages[value.get("id", len(messages))] = value
    for value in messages.values():
        role = "user" if value["type"] == "user" else "assistant"
        yield from row(role, value.get("timestamp"), words_of(value.get("content")))


def opencode(whole: Any) -> Iterator[Row]:
    """The texts of each message."""
    for value in whole if isinstance(whole, list) else whole["messages"]:
        texts = [part for part in value["parts"] if part["type"] == "text" and not part.get("ignored")]
        yield from row(value["info"]["role"], value["info"].get("time", {}).get("created"), words_of(texts))


# -- what mdmem keeps -------------------------------------------------------------------------------------


def kept(path: Path) -> tuple[list[Row], list[str]]:
    """The rows of the session that a file becomes, what was taken back included, and what was left out."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "memories")
        (root / ".mdmem").mkdir(parents=True)
        (root / ".mdmem" / "config.toml").write_text('[sessions]\nsecrets = "keep"\n')
        sessions = mdmem.open(str(root)).sessions
        done = sessions.import_(str(path))
        rows: list[Row] = []
        for each in done.sessions:
            with sessions.logs.reading(each.key) as conversation:
                for message in messages_in(conversation.records()):
                    if message.role in {"user", "assistant"} and "role" in message.data:
                        time = message.line.get("created_at", "")
                        rows += row(message.role, time, words_of(message.data.get("content")))
        return rows, list(done.left_out)


def describe_file(path: Path) -> dict[str, Any]:
    """What the list says of a file."""
    repository, _, inside = path.name.partition("__")
    return {
        "host": path.parent.name,
        "repository": repository.replace("+", "/"),
        "path": inside,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "messages": [" ".join(each) for each in read(path)],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", nargs="+", type=Path)
    given = parser.parse_args()
    if given.write:
        listed = [describe_file(path) for path in sorted(given.write)]
        LIST.write_text(json.dumps(listed, indent=0, ensure_ascii=False) + "\n")
    wrong, found = 0, defaultdict[str, list[int]](list)
    for entry in json.loads(LIST.read_text()):
        name = f"{entry['repository'].replace('/', '+')}__{entry['path']}"
        path = given.folder / entry["host"] / name
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            print(f"not here: {entry['host']}/{name}")
            wrong += 1
            continue
        rows, left_out = kept(path)
        told = [" ".join(each) for each in rows]
        found[entry["host"]].append(len(told))
        if told != entry["messages"]:
            wrong += 1
            print(
                f"{entry['host']}/{name}: {len(entry['messages'])} wanted, {len(told)} kept",
                *left_out[:3],
                sep="\n  ",
            )
            for place, pair in enumerate(zip(entry["messages"], told, strict=False)):
                if pair[0] != pair[1]:
                    print(f"  first other one, {place}: {pair[0]} | {pair[1]}")
                    break
    for host, counts in sorted(found.items()):
        print(f"{host}: {len(counts)} files, {sum(counts):,} messages")
    print(f"{wrong} files differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
