"""Conversations through the tools for memories: `sessions/<key>` is a folder, `sessions/<key>#<seq>` a path.

A host that has bound a thread lets its agent see the session of that name alone. What tools printed in it is
`result:<hash>`, and nobody else's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mdmem import as_json
from mdmem.errors import Usage
from mdmem.serve.mcp.answer import AS_JSON, Answer, Bound, answer_page, cut_text, fit, page_of_lines

if TYPE_CHECKING:
    from mdmem import Message, SessionHits

FOLDER = "sessions"
RESULT = "result:"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")  # as `results recover` counts them
_LAST = 20  # messages that are shown where none is named
_MOST = 1_000


def is_session(call: Bound, path: str) -> bool:
    """Return whether a path means a session or one of its messages; memories there have a suffix."""
    folder, _, name = path.partition("/")
    return folder == FOLDER and bool(name) and not name.endswith(call.memory.suffixes)


def show(call: Bound, path: str, line: int = 1, limit: int = 0, column: int = 1) -> Answer:
    """Return a message, or what a summary stands for; of a session as a whole its last messages.

    `limit` counts the lines of one message, or the messages of a session; 0 is as many as fit.
    """
    key, seq = _parse_place(call, path)
    if seq is None:
        found = call.memory.sessions.history(key, limit=min(limit or _LAST, _MOST))
        if not found:
            raise Usage(problem=f"nothing was said in the session {key!r}", remedy="name another one")
        return _answer_messages(call, key, found)
    opened = call.memory.sessions.expand(key, [seq], call.budget // AS_JSON)
    is_one = [message.seq for message in opened.messages] == [seq]
    if not is_one:
        return _answer_messages(call, key, opened.messages, opened.left_out)
    message = call.memory.sessions.message(key, seq)
    lines = message.text.split("\n")[line - 1 :]
    page, tail = page_of_lines(lines, len(lines), (line, limit, column), call.budget // AS_JSON, "\n")
    del page["shown"]
    texts = (_message_head(key, message), page["text"], tail)
    return Answer(tuple(filter(None, texts)), {**_message_shape(key, message), **page})


def show_result(call: Bound, path: str, line: int = 1, limit: int = 0, column: int = 1) -> Answer:
    """Return what a tool has printed in the session that is bound, from a line on.

    Raises:
        Usage: no session is bound, or there is no such line.
    """
    key = call.thread
    if key is None:
        remedy = "tell the user to start this server with --thread"
        raise Usage(problem="a result is shown to the session that has it, and none is bound", remedy=remedy)
    wanted = path.removeprefix(RESULT).strip()
    text = call.memory.results.recover(wanted, session=key).decode("utf-8", "replace")
    lines = _LINE.findall(text)
    if line > len(lines):
        raise Usage(problem=f"line is {line}; the last one is {len(lines)}", remedy="give a smaller line")
    asked = (line, limit, column)
    page, tail = page_of_lines(lines[line - 1 :], len(lines) - line + 1, asked, call.budget // AS_JSON)
    del page["shown"]
    head = f"{RESULT}{wanted}  from line {line} of {len(lines)}"
    data = {"result": wanted, "lines": len(lines), **page}
    return Answer(tuple(filter(None, (head, page["text"], tail))), data)


def grep(call: Bound, within: str, pattern: str, regex: bool, limit: int, offset: int) -> Answer:
    """Find the messages of a session that hold a text or fit a regular expression, the newest first."""
    key, _ = _parse_place(call, within)
    most = offset + min(limit, _MOST)
    found = call.memory.sessions.grep(pattern, key or None, all=not key, regex=regex, limit=most)
    return _answer_hits(call, found, offset)


def search(call: Bound, within: str, query: str, since: str, before: str, limit: int, offset: int) -> Answer:
    """Find the messages of a session that fit a query best."""
    key, _ = _parse_place(call, within)
    most = offset + min(limit, _MOST)
    find = call.memory.sessions.search
    found = find(query, key or None, since=since or None, before=before or None, limit=most)
    return _answer_hits(call, found, offset, "at most ")


def refuse_options(**options: Sequence[str] | bool) -> None:
    """Refuse what is about memories only.

    Raises:
        Usage: one of the options is given.
    """
    for name, value in options.items():
        if value:
            raise Usage(problem=f"{name} is about memories, not about what was said", remedy="leave it out")


def _parse_place(call: Bound, path: str) -> tuple[str, int | None]:
    """Parse the key and the number that a path names; of the bound session if there is one; `*` is no key."""
    name = "" if path == f"{FOLDER}/*" else path.partition("/")[2]
    key, mark, number = name.rpartition("#")
    if not (mark and number.isascii() and number.isdecimal()):
        key, number = name, ""
    key = call.resolve_thread(key) or key  # refuses another than the bound one
    return key, int(number[:18]) if number else None


def _answer_messages(call: Bound, key: str, messages: Sequence[Message], left_out: int = 0) -> Answer:
    blocks = ((message, f"{_message_head(key, message)}\n{message.text}") for message in reversed(messages))
    taken = fit(blocks, call.budget // AS_JSON)[::-1]
    left_out += len(messages) - len(taken)
    texts = [_answer_beginning(call, key, message, text) for message, text in taken]
    shapes = [
        {**_message_shape(key, message), "text": text}
        for (message, _), text in zip(taken, texts, strict=True)
    ]
    tail = f"[{left_out:,} earlier messages left out: show {FOLDER}/{key}#<seq>]" if left_out else ""
    data = {"messages": shapes, "left_out": left_out}
    return Answer(tuple(filter(None, ("\n\n".join(texts) or "nothing was said", tail))), data)


def _answer_hits(call: Bound, found: SessionHits, offset: int, about: str = "") -> Answer:
    """Return the hits that fit as an answer; `about` stands before the number of those left out."""
    hits = found.hits[offset:]
    blocks = ((hit, f"{hit.key}#{hit.seq}  {hit.role}  {hit.time}\n{hit.snippet}\n") for hit in hits)
    taken = fit(blocks, call.budget // AS_JSON)
    data = {"hits": as_json([hit for hit, _ in taken]), "notes": list(found.notes)}
    left_out = found.left_out + len(hits) - len(taken)
    notes = [f"[{note}]" for note in found.notes]
    return answer_page(data, [text for _, text in taken], offset, left_out, notes, about)


def _answer_beginning(call: Bound, key: str, message: Message, text: str) -> str:
    """Return a message as a text, or the beginning of one that alone is too long, and how to get the rest."""
    piece = cut_text(text, call.budget // AS_JSON)
    if piece == text:
        return text
    gap = f"[{len(text) - len(piece):,} characters left out: show {FOLDER}/{key}#{message.seq}]"
    return f"{piece}\n{gap}"


def _message_head(key: str, message: Message) -> str:
    return f"{key}#{message.seq}  {message.role}  {message.created_at}"


def _message_shape(key: str, message: Message) -> dict[str, Any]:
    return {"key": key, "seq": message.seq, "role": message.role, "time": message.created_at}
