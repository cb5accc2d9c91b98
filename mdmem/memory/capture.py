"""Capture: what people state in conversations becomes memory, or a proposal of it.

What counts as stated is found by `mdmem.capture.extract`, which reads a text and nothing else. Here is where
it goes. Every memory and every proposal that comes of it names the messages that said so, and each message
counts once: so it makes no difference how often one is read, or where reading was broken off.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from mdmem.arguments import Checked, json_value
from mdmem.capture import extract as reading
from mdmem.capture.extract import Candidate
from mdmem.capture.lexicon import MOST_BYTES, PATH as LEXICON, Lexicon, builtin, extended
from mdmem.diagnostic import Diagnostic, about_file
from mdmem.errors import LimitReached, MdmemError, NotFound, Refused, Usage
from mdmem.kind import PREFERENCE, RULE
from mdmem.memory import content
from mdmem.memory.inbox import WAITING, redacted_in, said_again
from mdmem.memory.preferences import STRENGTH, name_of as preference_at, path_of, read_preference
from mdmem.memory.proposal import REJECTED, Proposal
from mdmem.memory.statement import (
    MOST_SOURCES,
    SOURCE,
    FolderTexts,
    NoteTexts,
    Standing,
    attributed,
    bullet,
    name_for,
    readable,
    said_in,
    say_the_same,
    sources_of,
    stated_in,
    with_sources,
)
from mdmem.sessions.logs import name_of
from mdmem.sessions.record import LogRecord
from mdmem.text.document import digest, parse_text
from mdmem.text.edit import TextEdit
from mdmem.text.regex import regex
from mdmem.text.relink import percent
from mdmem.text.tokens import clipped, in_line, plain, unescaped
from mdmem.vault.config import CAPTURE_POLICIES
from mdmem.vault.plan import Change, EditPlan, edit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mdmem.generator import Generator
    from mdmem.memory.kinds import Kinds
    from mdmem.memory.verbs import Build
    from mdmem.sessions.conversation import Conversation
    from mdmem.sessions.message import Message
    from mdmem.sessions.sessions import Sessions
    from mdmem.vault.vault import Vault

R = TypeVar("R")
OFF, INBOX, APPLY = CAPTURE_POLICIES
KEPT, STRENGTHENED, PROPOSED = "kept", "strengthened", "proposed"
KNOWN, LEFT_OUT, UNFIT, REFUSED = "known", "left out", "not kept", "refused"

_CURSOR = "capture"
_BATCH = 100  # messages between two looks at how far a log was read
_AUTHOR = "capture"
_PREFERENCES = ("preference", "style", "audience", "length", "format")
_NOTES = {
    "decision": "notes/decisions.md",
    "fix": "notes/fixes.md",
    "fact": "notes/facts.md",
    "problem": "notes/problems.md",
}
_CONSTRAINT = "constraint"
_GENERAL = "general"
_LONGEST = 1_000  # characters of a value
_UNSAFE = regex(r"[\s()\[\]<>`*_#]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedItem:
    """What became of one candidate.

    Attributes:
        candidate: what was stated.
        source: where: `sessions/t1#3`.
        outcome: kept, strengthened, proposed; known, where this message counted already; rejected, where a
            person said no to it before; left out, where as many proposals wait as may; not kept, of kinds
            that nothing is kept of; refused, with the reason.
        path: of the memory or the proposal; empty where there is none.
        reason: why it was refused.
        change: what was applied, or the plan of it; None without any.
    """

    candidate: Candidate
    source: str
    outcome: str
    path: str = ""
    reason: str = ""
    change: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What was captured.

    Attributes:
        policy: off, inbox or apply.
        items: what became of each candidate, in order.
        left_out: how many were not proposed, since as many proposals wait as the config allows.
        unread: how many characters of long messages were not looked at.
        through: the number of the last message of the session that was read; 0 without any.
        told: in words, what was not done, and why.
    """

    policy: str
    items: tuple[CapturedItem, ...] = ()
    left_out: int = 0
    unread: int = 0
    through: int = 0
    told: str = ""


class _Destination(NamedTuple):
    """Where a candidate goes: the verb with its arguments, and what is compared with what is there.

    `near` names where to look for what says the same: a file, or the folder that it would be in.
    """

    verb: str
    arguments: Mapping[str, Any]
    said: str
    near: str


class Capture(Checked, Generic[R]):
    """What is stated in the sessions of one namespace, and where it goes.

    The policy is that of the config (`[capture] policy`), unless a verb is given one. With `off` nothing is
    done. With `inbox` everything new is proposed; what says again what is in memory, or waits already, adds
    its source there and makes it stronger. With `apply` it becomes memory at once: a wish a preference, under
    the conflict policy of preferences; a decision, a fix, a fact or a problem a bullet of
    `notes/decisions.md` and so on; a constraint a rule that is not enabled.

    Where preferences keep the stronger value, a later wish that is as strong wins; a weaker one is proposed.
    """

    def __init__(
        self,
        vault: Vault,
        run: Callable[[Build], R],
        kinds: Kinds[Build],
        sessions: Sessions,
        *,
        moves: bool,
        clock: Callable[[], datetime] = content.utc_now,
    ) -> None:
        """Take what is needed.

        Args:
            vault, run: as for `Verbs`.
            kinds: the verbs, which return what makes their plan.
            sessions: the conversations.
            moves: whether it is written into a log how far it was read; not for a plan.
            clock: UTC.
        """
        self._vault = vault
        self._run = run
        self._kinds = kinds
        self._sessions = sessions
        self._moves = moves
        self._clock = clock
        self._values = FolderTexts(vault, lambda document: document.fields.get("value"))
        self._bodies = FolderTexts(vault, lambda document: unescaped(document.body.strip()))
        self._notes = NoteTexts()
        self._known: tuple[bytes | None, Lexicon, tuple[Diagnostic, ...]] | None = None

    def extract(self, text: str, speaker: str = "user", language: str | None = None) -> tuple[Candidate, ...]:
        """What a text states; nothing is kept. See `mdmem.capture.extract.extract`.

        The vault may add words of its own in `.mdmem/lexicon.toml`.

        Raises:
            Usage: there is no such language.
        """
        return tuple(reading.extract(text, speaker, language, self._words()[0]))

    def check(self) -> list[Diagnostic]:
        """What is wrong with the vault's own words: then those that come with the program are used."""
        return [*self._words()[1]]

    def run(self, key: str, *, policy: str | None = None, generator: Generator | None = None) -> Captured:
        """Capture what was said in a session since the last time.

        How far it was read stands in the log of the session. Where a program ended in between, some messages
        are read again, and make no difference.

        Args:
            key: of the session; of one that is not there, nothing was said.
            policy: off, inbox or apply; without one, the config's.
            generator: asks a model about the messages of the user, several at once, until it fails. It may
                add to what rules find, and nothing else.

        Raises:
            Usage: an unknown policy, or an impossible key.
            LockTimeout, StorageFailed: it cannot be written; what was written stays.
        """
        chosen = self._policy(policy)
        if chosen == OFF:
            return _nothing()
        key = self._sessions.resolve(key)
        found, through, unread = list[CapturedItem](), 0, 0
        problems: list[str] = []
        while True:
            with self._sessions.logs.reading(key) as conversation:
                log, since = conversation.state.log, max(_reached(conversation), through)
                messages = list(islice(conversation.messages(since + 1), _BATCH))
            if not messages:
                return self._captured(chosen, found, max(since, through), unread, problems)
            found += self._of_messages(key, messages, chosen, generator, problems)
            unread += sum(reading.left_out(message.spoken) for message in messages)
            through = messages[-1].seq
            self._move(key, log, through)

    def from_message(
        self, key: str, seq: int, *, policy: str | None = None, generator: Generator | None = None
    ) -> Captured:
        """Capture what one message of a session states; see `run`.

        Raises:
            Usage: an unknown policy.
            NamedNotFound: the session has no message of this number.
        """
        chosen = self._policy(policy)
        if chosen == OFF:
            return _nothing()
        key = self._sessions.resolve(key)
        with self._sessions.logs.reading(key) as conversation:
            if conversation.is_new:
                return self._captured(chosen, [])
        message = self._sessions.message(key, seq)
        unread = reading.left_out(message.spoken)
        problems: list[str] = []
        found = self._of_messages(key, [message], chosen, generator, problems)
        return self._captured(chosen, found, seq, unread, problems)

    def from_event(self, kind: str, data: Mapping[str, Any], *, policy: str | None = None) -> Captured:
        """Capture what a program reports.

        Args:
            kind: one of `mdmem.capture.extract.EVENTS`.
            data: what it is about. The same data is the same event, and counts once.
            policy: as for `run`.

        Raises:
            Usage: an unknown policy or event, or data that is not JSON.
        """
        chosen = self._policy(policy)
        value = json_value(data)
        candidates = reading.from_event(kind, value)
        if chosen == OFF:
            return _nothing()
        written = json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        source = f"events/{kind}#{digest(written)[:12]}"
        return self._captured(chosen, [self._take(each, source, chosen) for each in candidates])

    def keep(self, candidate: Candidate, source: str, *, policy: str | None = None) -> Captured:
        """Keep or propose what a program has found itself, such as by asking a model.

        Args:
            candidate: what was stated.
            source: where, such as `sessions/t1#3`: a folder, a name, no blanks. Each counts once.
            policy: as for `run`.

        Raises:
            Usage: an unknown policy, or what is no source.
        """
        chosen = self._policy(policy)
        if not SOURCE.fullmatch(source):
            raise Usage(problem=f"a source is like sessions/t1#3, not {source!r}")
        if chosen == OFF:
            return _nothing()
        return self._captured(chosen, [self._take(candidate, source, chosen)])

    # -- what is read -------------------------------------------------------------------------------------

    def _words(self) -> tuple[Lexicon, tuple[Diagnostic, ...]]:
        """The words by which it is known what is stated, and what is wrong with the vault's own."""
        try:
            kept = self._vault.store.read(LEXICON, MOST_BYTES)
        except MdmemError as error:
            return builtin(), (about_file(LEXICON, "lexicon", error.message, error.hint, severity="warning"),)
        data = kept.data if kept else None
        if self._known is None or self._known[0] != data:
            text = None if data is None else data.decode("utf-8", "replace")
            lexicon, flaw = (builtin(), None) if text is None else extended(text)
            self._known = data, lexicon, (flaw,) if flaw else ()
        return self._known[1:]

    def _captured(
        self,
        policy: str,
        items: Sequence[CapturedItem],
        through: int = 0,
        unread: int = 0,
        problems: Sequence[str] = (),
    ) -> Captured:
        left_out = sum(each.outcome == LEFT_OUT for each in items)
        told = [f"{flaw.path}:{flaw.position.line}: {flaw.message}; {flaw.hint}" for flaw in self.check()]
        told += [f"without the model: {problem}" for problem in problems]
        if left_out:
            told.append(f"{left_out} not proposed: as many wait as [capture] max_open allows")
        if unread:
            told.append(f"{unread:,} characters of long messages were not looked at")
        return Captured(
            policy=policy,
            items=tuple(items),
            left_out=left_out,
            unread=unread,
            through=through,
            told="\n".join(told),
        )

    def _policy(self, policy: str | None) -> str:
        chosen = self._vault.config.capture.policy if policy is None else policy
        if chosen not in CAPTURE_POLICIES:
            raise Usage(problem=f"a policy is {', '.join(CAPTURE_POLICIES)}, not {chosen!r}")
        return chosen

    def _of_messages(
        self,
        key: str,
        messages: Sequence[Message],
        policy: str,
        generator: Generator | None,
        problems: list[str],
    ) -> list[CapturedItem]:
        """What becomes of what messages state; why a model did not say so is added to the problems."""
        found: list[Sequence[Candidate]] = [self.extract(each.spoken, each.role) for each in messages]
        if generator:
            asked = [
                at for at, each in enumerate(messages) if reading.is_user(each.role) and each.spoken.strip()
            ]
            for batch in reading.in_batches([messages[at].spoken for at in asked]):
                if problems:
                    break
                places = [asked[number] for number in batch]
                texts = [messages[at].spoken for at in places]
                added = reading.added_by(generator, texts, [found[at] for at in places])
                problems += [added.problem] if added.problem else []
                for at, candidates in zip(places, added.candidates, strict=True):
                    found[at] = candidates
        folder = f"sessions/{_UNSAFE.sub(percent, name_of(key))}"
        return [
            self._take(each, f"{folder}#{message.seq}", policy)
            for message, candidates in zip(messages, found, strict=True)
            for each in candidates
        ]

    def _move(self, key: str, log: str, seq: int) -> None:
        """Write into a log how far it was read, unless somebody has read on, or made the session again."""
        if not self._moves:
            return

        def build(conversation: Conversation) -> tuple[LogRecord | None, None]:
            if conversation.state.log != log or _reached(conversation) >= seq:
                return None, None
            return LogRecord(seq=0, cursors={_CURSOR: {"seq": seq}}), None

        self._sessions.logs.commit(key, build)

    # -- where it goes ------------------------------------------------------------------------------------

    def _take(self, candidate: Candidate, source: str, policy: str) -> CapturedItem:
        """Keep one candidate, or propose it."""
        wanted, warnings = self._wanted(candidate)
        if wanted is None:
            return CapturedItem(candidate=candidate, source=source, outcome=UNFIT)
        decided = CapturedItem(candidate=candidate, source=source, outcome=KNOWN)

        def build() -> EditPlan:
            # All of it is decided here: under the lock it is decided again, where somebody came in between.
            nonlocal decided
            found = self._decided(wanted, candidate, source, policy)
            path = found.path or next(iter(found.plan.paths), "")
            decided = dataclasses.replace(decided, outcome=found.outcome, path=path)
            said = f"capture from {source}: {found.plan.message}"
            return dataclasses.replace(found.plan, message=said, warnings=(*found.plan.warnings, *warnings))

        try:
            change = self._run(build)
        except LimitReached as error:
            if error.what != WAITING:
                return dataclasses.replace(decided, outcome=REFUSED, reason=error.message, path="")
            return dataclasses.replace(decided, outcome=LEFT_OUT, path="")
        except (Refused, NotFound, Usage) as error:
            return dataclasses.replace(decided, outcome=REFUSED, reason=error.message, path="")
        if decided.outcome in {KNOWN, REJECTED}:
            return decided
        return dataclasses.replace(decided, change=change)

    def _wanted(self, candidate: Candidate) -> tuple[_Destination | None, Sequence[Diagnostic]]:
        """Where a candidate goes; None where nothing is kept of its kind. What is a secret stays behind."""
        shape = {"value": candidate.value, "category": candidate.category, "key": candidate.key}
        path = RULE.folder if candidate.kind == _CONSTRAINT else PREFERENCE.folder
        clean, warnings = redacted_in(self._vault, _NOTES.get(candidate.kind, path), shape)
        said = clipped(in_line(clean["value"]), _LONGEST)
        if not said:
            return None, ()
        if candidate.kind in _PREFERENCES:
            category = clean["category"] or (_GENERAL if candidate.kind == "preference" else candidate.kind)
            key = clean["key"] or name_for(said)
            arguments = {"category": category, "key": key, "value": said}
            return _Destination(
                "preferences.set", {**arguments, "confidence": candidate.confidence}, said, ""
            ), warnings
        if candidate.kind == _CONSTRAINT:
            text = f"---\ntype: {RULE.name}\nenabled: false\n---\n\n{plain(said)}\n"
            path = f"{RULE.folder}/{name_for(said)}.md"
            return _Destination("write", {"path": path, "content": text}, said, RULE.folder), warnings
        if candidate.kind in _NOTES:
            path = _NOTES[candidate.kind]
            return _Destination("append", {"path": path, "text": plain(said)}, said, path), warnings
        return None, ()

    def _decided(self, wanted: _Destination, candidate: Candidate, source: str, policy: str) -> _Decision:
        """What is to be done, by what is there now."""
        counted = self._counted(wanted, candidate, source)
        if counted:
            return counted
        verb, arguments = wanted.verb, dict(wanted.arguments)
        if verb == "append":
            arguments["text"] = bullet(f"{self._clock():%Y-%m-%d}", arguments["text"], [source])
        if policy == INBOX:
            if verb == "preferences.set":
                arguments["policy"] = "keep-latest"  # who accepts it wants it
            return self._proposing(verb, arguments, candidate, source)
        if verb == "preferences.set":
            return self._wish(arguments, candidate, source)
        if verb == "write":
            return _Decision(KEPT, self._said_by(self._kinds.write(**arguments)(), source))
        plan = self._kinds.append(**arguments)()
        self._refuse_swallowed(plan, wanted.said)
        return _Decision(KEPT, plan)

    def _counted(self, wanted: _Destination, candidate: Candidate, source: str) -> _Decision | None:
        """What is done where the same was said before, or this message counted; None where it is new."""
        nothing = EditPlan(changes=())
        if wanted.verb == "preferences.set":
            own = readable(self._vault, path_of(wanted.arguments["category"], wanted.arguments["key"]))
            if own and source in (sources_of(own) or ()):
                # Whatever is wished now was said later.
                return _Decision(KNOWN, nothing, own.path)
        standing = next(self._standing(wanted, has_key=bool(candidate.key)), None)
        if standing:
            return self._strengthened(standing, candidate, source)
        again = self._proposed(wanted, has_key=bool(candidate.key))
        if again and again.status == REJECTED:
            return _Decision(REJECTED, nothing, again.path)
        if again:
            days = self._vault.config.capture.expires_days
            plan = said_again(self._vault.read(again.path), again, [source], self._clock(), days)
            return _Decision(STRENGTHENED if plan.changes else KNOWN, plan, again.path)
        return None

    def _wish(self, arguments: Mapping[str, Any], candidate: Candidate, source: str) -> _Decision:
        """A preference that has no value yet, or another one."""
        before = self._vault.find(path_of(arguments["category"], arguments["key"]))
        policy = self._vault.config.preferences.policy
        if before and "value" in before.fields and policy == "keep-stronger":
            if read_preference(before, self._clock()).strength > STRENGTH:
                given = {**arguments, "policy": "keep-latest"}
                return self._proposing("preferences.set", given, candidate, source)
            policy = "keep-latest"
        plan = self._kinds.preferences.set(**arguments, policy=policy)()
        return _Decision(KEPT, self._said_by(plan, source))

    def _proposing(
        self, verb: str, arguments: Mapping[str, Any], candidate: Candidate, source: str
    ) -> _Decision:
        reason = f"stated as a {candidate.kind}: {clipped(in_line(candidate.quote), 200)}"
        build = self._kinds.inbox.propose(verb, arguments, reason=reason, author=_AUTHOR, sources=[source])
        plan = build()
        return _Decision(PROPOSED if plan.changes else KNOWN, plan)

    def _said_by(self, plan: EditPlan, source: str) -> EditPlan:
        limits = self._vault.config.limits
        changes = tuple(attributed(each, [source], each.after(limits)) for each in plan.changes)
        return dataclasses.replace(plan, changes=changes)

    def _refuse_swallowed(self, plan: EditPlan, said: str) -> None:
        """Refuse to write a bullet that would be part of what stands before it.

        Raises:
            EditRefused: it would.
        """
        after = plan.changes[0].after(self._vault.config.limits)
        if after and all(text != said for _, text in self._notes.said(after)):
            raise after.refused("it ends in something that is never closed", "close it first")

    # -- what says the same already -----------------------------------------------------------------------

    def _standing(self, wanted: _Destination, *, has_key: bool) -> Iterator[Standing]:
        """What is in memory and says the same."""
        if wanted.verb == "append":
            return self._notes.that_say(readable(self._vault, wanted.near), wanted.said)
        if wanted.verb == "write":
            return self._bodies.that_say(wanted.near, wanted.said)
        own = path_of(wanted.arguments["category"], wanted.arguments["key"])
        same = self._values.that_say(own.rpartition("/")[0], wanted.said)
        found = [each for each in same if each.document.path == own or not has_key]
        return iter(sorted(found, key=lambda each: each.document.path != own))

    def _proposed(self, wanted: _Destination, *, has_key: bool) -> Proposal | None:
        """The proposal that says the same, the rejected one first."""
        same = [
            each
            for each in self._kinds.inbox.list(all=True)
            if not each.problem and each.verb == wanted.verb and self._is_like(each, wanted, has_key=has_key)
        ]
        return next((each for each in same if each.status == REJECTED), next(iter(same), None))

    def _is_like(self, proposal: Proposal, wanted: _Destination, *, has_key: bool) -> bool:
        given, mine = proposal.arguments, wanted.arguments
        if wanted.verb == "preferences.set":
            names = ("category", "key") if has_key else ("category",)
            is_there = all(given[name] == mine[name] for name in names)
            value = given["value"]
            return is_there and isinstance(value, str) and say_the_same(value, wanted.said)
        if wanted.verb == "append":
            said = stated_in(str(given["text"]))
            return given["path"] == mine["path"] and say_the_same(said, wanted.said)
        if not str(given["path"]).startswith(f"{RULE.folder}/"):
            return False
        body = parse_text(str(given["path"]), str(given["content"])).body.strip()
        return say_the_same(unescaped(body), wanted.said)

    def _strengthened(self, standing: Standing, candidate: Candidate, source: str) -> _Decision:
        """What says the same, with one more source; a preference becomes stronger."""
        document, nothing = standing.document, EditPlan(changes=())
        if standing.span:
            known = said_in(standing.text)[1]
            if source in known or len(known) >= MOST_SOURCES:
                return _Decision(KNOWN, nothing, document.path)
            new = with_sources(document.text[slice(*standing.span)], [source])
            plan = edit(document, [TextEdit(*standing.span, new)], f"said again: {document.path}")
            return _Decision(STRENGTHENED, plan, document.path)
        named = sources_of(document)
        if named is None or source in named:
            return _Decision(KNOWN, nothing, document.path)
        same = Change(path=document.path, before=document, content=document.data)
        plan = EditPlan(changes=(same,), message=f"said again: {document.path}")
        name = preference_at(document.path)
        if name:
            confidence = candidate.confidence
            stronger = self._kinds.preferences.set(*name, standing.text, confidence=confidence)()
            plan = stronger if stronger.changes else plan  # it cannot be stronger than it is
        after = self._said_by(plan, source)
        if after.changes == plan.changes:  # it names as many messages as it may
            return _Decision(KNOWN, nothing, document.path)
        return _Decision(STRENGTHENED, after, document.path)


class _Decision(NamedTuple):
    """What is done about a candidate: an outcome, the plan, and where."""

    outcome: str
    plan: EditPlan
    path: str = ""


def _reached(conversation: Conversation) -> int:
    """The number of the last message that was read for this."""
    kept = conversation.state.cursors.get(_CURSOR)
    seq = kept.get("seq") if isinstance(kept, dict) else None
    return seq if isinstance(seq, int) and not isinstance(seq, bool) else 0


def _nothing() -> Captured:
    told = "the policy is off, so nothing is captured: set [capture] policy in .mdmem/config.toml"
    return Captured(policy=OFF, told=told)
