"""Session summaries: for each session one memory, `sessions/<key>.md`, that says what it came to.

It grows: what was said since the last time adds a paragraph and bullets, and whatever people wrote or changed
in it stays. The field `through` is the number of the last message that it knows.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from mdmem.conversations.log.logs import name_of
from mdmem.conversations.log.message import Message
from mdmem.conversations.models.generator import Generator
from mdmem.conversations.observe.outline import Outline, outline
from mdmem.conversations.prompt.summarise import label
from mdmem.conversations.sessions import Sessions
from mdmem.document.bullets import bullets
from mdmem.document.document import Document, parse_text
from mdmem.document.edit import between, spliced
from mdmem.document.field import with_field
from mdmem.document.section import append_block, append_to_section
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import plain, visible
from mdmem.errors import AlreadyExists, MemoryNotFound, SessionConflict, Usage
from mdmem.kind import NOTE, SESSION_SUMMARY
from mdmem.memory import history
from mdmem.memory.verbs import Build, KindVerbs, R
from mdmem.vault.paths import StrPath, check_memory, is_under, join, path_text
from mdmem.vault.plan import EditPlan, deletion, edit
from mdmem.vault.vault import Vault

_TARGET = 500  # the tokens that are added at one time
_HEADINGS = {"key_points": "Key points", "decisions": "Decisions", "action_items": "Action items"}
_SUMMARY = "Summary"
_AROUND = regex(r"\A- | \(#[0-9]+\)\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """What a session came to, as its memory has it.

    `through` is the number of the last message that it knows, and `messages` how many it was made of.
    """

    key: str
    path: str
    through: int
    messages: int
    topics: tuple[str, ...]
    key_points: tuple[str, ...]
    decisions: tuple[str, ...]
    action_items: tuple[str, ...]
    hash: str


class Summaries(KindVerbs[R]):
    """The summaries of the sessions of a namespace."""

    def __init__(self, vault: Vault, run: Callable[[Build], R], sessions: Sessions) -> None:
        super().__init__(vault, run)
        self._sessions = sessions

    def summarize(self, key: str, generator: Generator | None = None) -> R:
        """Write what was said since the last time into the memory of a session.

        Args:
            generator: asks a model; without one, or where it fails, rules decide. Why it failed is kept in
                the memory, as its field `problem`.

        Raises:
            Usage: nothing was said since.
            SessionConflict: somebody else summarized the session meanwhile.
        """
        key = self._sessions.resolve(key)
        path = self._path_of(key)
        before = self._vault.find(path)
        with self._sessions.logs.opened(key) as conversation:
            log = conversation.state.log
            since = _last_known(before, log)
            messages = list(conversation.messages(since + 1))
        if not messages:
            raise Usage(problem=f"nothing was said in {key!r} since it was summarized")
        # Made before anything is built: a plan may be built again under the lock, and a model takes its time.
        new = outline(messages, _TARGET, generator, self._vault.workspace)

        def build() -> EditPlan:
            now = self._vault.find(path)
            if (now.hash if now else None) != (before.hash if before else None):
                raise SessionConflict(path=path, reason="it was changed while the session was summarized")
            document = self._with_outline(now or self._new_memory(path, key, log), new, messages, log)
            message = f"summarize {key}"
            if now:
                return edit(now, between(now.text, document.text), message)
            return history.creation(path, document.text, message)

        return self._run(build)

    def due(self, key: str) -> bool:
        """Return whether `summary_every` messages of the config came since the last summary."""
        every = self._vault.config.sessions.summary_every
        before = self._vault.find(self._path_of(self._sessions.resolve(key)))
        with self._sessions.logs.reading(key) as conversation:
            since = _last_known(before, conversation.state.log)
            newest = [message.seq for message in islice(conversation.messages_back(), max(0, every))]
        return 0 < every <= len(newest) and newest[-1] > since

    def get(self, key: str) -> SessionSummary | None:
        """Return the summary of a session; None where it has none."""
        key = self._sessions.resolve(key)
        document = self._vault.find(self._path_of(key))
        return _summary_in(document) if document else None

    def text(self, key: str) -> str:
        """Return the summary of a session as Markdown, without its fields; empty where it has none."""
        document = self._vault.find(self._path_of(self._sessions.resolve(key)))
        return document.body.strip("\r\n") if document else ""

    def list(self) -> builtins.list[SessionSummary]:
        """Return the summaries of all sessions, by path."""
        paths = [found.path for found in self._vault.walk(SESSION_SUMMARY.folder) if not found.problem]
        documents = filter(None, map(self._vault.find, paths))
        return [_summary_in(each) for each in documents if each.fields.get("type") == SESSION_SUMMARY.name]

    def delete(self, key: str) -> R:
        """Remove the summary of a session; the session stays, and undo brings the summary back.

        Raises:
            MemoryNotFound: there is none.
        """
        path = self._path_of(self._sessions.resolve(key))

        def build() -> EditPlan:
            document = self._vault.find(path)
            if document is None:
                raise MemoryNotFound(path=path)
            return EditPlan(changes=(deletion(document),), message=f"rm {path}")

        return self._run(build)

    def keep(self, key: str, to: StrPath | None = None, min_tokens: int = 0) -> R:
        """Write a conversation as a note.

        Args:
            to: name of the note; that of the session without one.
            min_tokens: refuse a conversation that has fewer.

        Raises:
            Usage: it has no messages, or fewer tokens.
            AlreadyExists: the note is there already.
        """
        messages = self._sessions.history(key)
        tokens = sum(message.tokens for message in messages)
        if not messages:
            raise Usage(problem=f"nothing was said in {key!r}", remedy="list them with `mdmem sessions list`")
        if tokens < min_tokens:
            raise Usage(problem=f"{key!r} has {tokens:,} tokens, which is too short to keep")
        name = name_of(key) if to is None else path_text(to)
        path = name if is_under(name, NOTE.folder) else join(NOTE.folder, name)
        path = check_memory(path if path.endswith(".md") else f"{path}.md")
        ids = [f"{key}#{messages[0].seq}", f"{key}#{messages[-1].seq}"]
        document = parse_text(path, "", self._vault.config.limits)
        source = {"type": "session", "ids": ids}
        fields = {"type": NOTE.name, "title": key, "created": f"{self._clock():%Y-%m-%d}", "source": source}
        for name, value in fields.items():
            document = with_field(document, name, value)
        document = spliced(document, append_block(document, "\n\n".join(map(_as_quote, messages))))

        def build() -> EditPlan:
            if self._vault.exists(path):
                raise AlreadyExists(path=path, remedy="give another name")
            return history.creation(path, document.text, f"keep {key}")

        return self._run(build)

    def _path_of(self, key: str) -> str:
        return f"{SESSION_SUMMARY.folder}/{name_of(key)}.md"

    def _new_memory(self, path: str, key: str, log: str) -> Document:
        document = parse_text(path, f"# {plain(key)}\n", self._vault.config.limits)
        day = f"{self._clock():%Y-%m-%d}"
        fields = {"type": SESSION_SUMMARY.name, "session": key, "log": log, "created": day}
        for name, value in fields.items():
            document = with_field(document, name, value)
        return document

    def _with_outline(
        self, document: Document, new: Outline, messages: builtins.list[Message], log: str
    ) -> Document:
        fields = document.fields
        topics = [str(each) for each in fields.get("topics") or () if isinstance(each, str)]
        known = _number_or_0(fields.get("messages")) if fields.get("log") == log else 0
        changed = {
            "log": log,
            "through": messages[-1].seq,
            "messages": known + len(messages),
            "topics": list(dict.fromkeys([*topics, *new.topics])),
            "by": new.by,
        }
        if new.problem or "problem" in fields:
            changed["problem"] = new.problem or None
        for name, value in changed.items():
            document = with_field(document, name, value)
        there = {_bare_line(line) for line in document.body.split("\n")}
        parts = {_SUMMARY: (new.summary,), **{_HEADINGS[name]: getattr(new, name) for name in _HEADINGS}}
        for heading, entries in parts.items():
            lines = [plain(each) for each in entries if _bare_line(plain(each)) not in there]
            there.update(map(_bare_line, lines))
            document = _append_to(
                document,
                heading,
                "\n".join(lines if heading == _SUMMARY else (f"- {line}" for line in lines)),
            )
        return document


def _bare_line(line: str) -> str:
    """Return a line of a memory without what a list puts around it: its mark, and the number of a message."""
    return _AROUND.sub("", line)


def _append_to(document: Document, heading: str, text: str) -> Document:
    if not text:
        return document
    if any(each.heading.title == heading for each in document.sections):
        return spliced(document, append_to_section(document, heading, text))
    return spliced(document, append_block(document, f"## {heading}\n\n{text}"))


def _bullets_of(document: Document, heading: str) -> list[str]:
    section = next((each for each in document.sections if each.heading.title == heading), None)
    if section is None:
        return []
    return [bullet.text for bullet in bullets(document, section.own)]


def _last_known(document: Document | None, log: str) -> int:
    fields = document.fields if document else {}
    return _number_or_0(fields.get("through")) if fields.get("log") == log else 0


def _summary_in(document: Document) -> SessionSummary:
    fields = document.fields
    topics = fields.get("topics")
    lists = {name: tuple(_bullets_of(document, heading)) for name, heading in _HEADINGS.items()}
    return SessionSummary(
        key=str(fields.get("session") or ""),
        path=document.path,
        through=_number_or_0(fields.get("through")),
        messages=_number_or_0(fields.get("messages")),
        topics=tuple(map(str, topics)) if isinstance(topics, list) else (),
        key_points=lists["key_points"],
        decisions=lists["decisions"],
        action_items=lists["action_items"],
        hash=document.hash,
    )


def _number_or_0(value: object) -> int:
    return value if isinstance(value, int) else 0


def _as_quote(message: Message) -> str:
    lines = visible(message.text).split("\n")
    said = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"**{plain(label(message))}**, {message.created_at}, {message.seq}:\n\n{said}"
