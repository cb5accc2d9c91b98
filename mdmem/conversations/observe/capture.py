"""Capture: what people state in conversations becomes memory, or a proposal of it.

`mdmem.conversations.observe.extract` finds what a text states; it reads a text and nothing else. Here each
statement becomes a proposal: a verb with its arguments, and the message that said so. By the policy it is
written into the inbox, or accepted at once. Every memory and every proposal that comes of it names its
messages, and each message counts once: it makes no difference how often one is read.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from mdmem.conversations.log.logs import name_of
from mdmem.conversations.log.message import Message
from mdmem.conversations.models.generator import Generator
from mdmem.conversations.observe import quotation
from mdmem.conversations.observe.candidate import Candidate, from_event
from mdmem.conversations.observe.cues import MOST_BYTES, PATH as LEXICON, Cues, builtin_cues, extended_cues
from mdmem.conversations.observe.extract import extract, is_user, left_out
from mdmem.conversations.observe.statement import (
    Standing,
    find_standing,
    name_for,
    read_memory,
    statements_in,
)
from mdmem.conversations.sessions import Sessions
from mdmem.diagnostic import Diagnostic, about_file
from mdmem.document.arguments import json_value
from mdmem.document.document import Document, digest
from mdmem.document.edit import TextEdit
from mdmem.document.moment import moment_of
from mdmem.document.relink import percent
from mdmem.document.source import MOST_SOURCES, SOURCE, bullet, normal, sources_of, with_sources
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, in_line, plain
from mdmem.errors import LimitReached, MdmemError, NotFound, Refused, Usage
from mdmem.kind import PREFERENCE, RULE
from mdmem.memory import content
from mdmem.memory.inbox import WAITING, Inbox, redact_fields
from mdmem.memory.preferences import STRENGTH, name_of as preference_at, path_of, read_preference
from mdmem.memory.proposal import (
    REJECTED,
    Proposal,
    attributed,
    bind_verb,
    find,
    new_proposal,
    plan_acceptance,
)
from mdmem.memory.verbs import Build, FindVerb, KindVerbs, R
from mdmem.vault.config import CAPTURE_POLICIES
from mdmem.vault.plan import Change, EditPlan, edit
from mdmem.vault.vault import Vault

OFF, INBOX, APPLY = CAPTURE_POLICIES
KEPT, STRENGTHENED, PROPOSED = "kept", "strengthened", "proposed"
KNOWN, LEFT_OUT, UNFIT, REFUSED = "known", "left out", "not kept", "refused"

_CURSOR = "capture"
_BATCH = 100  # messages between two looks at how far a log was read
_AUTHOR = "capture"
_NOTES = {"decision": "notes/decisions.md", "fact": "notes/facts.md"}
_GENERAL = "general"
_LONGEST, _LONGEST_QUOTE = 1_000, 200  # characters of a value, and of a quotation in a proposal
_FULL = "as many proposals wait as [capture] max_open allows"
_OFF = "the policy is off, so nothing is captured: set [capture] policy in .mdmem/config.toml"
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
    outcome: str = UNFIT
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
        through: the number of the last message of the session that was done; 0 without any. The next run
            goes on behind it.
        told: what was not done, and why; one line each.
    """

    policy: str
    items: tuple[CapturedItem, ...] = ()
    left_out: int = 0
    unread: int = 0
    through: int = 0
    told: str = ""


class _Draft(NamedTuple):
    """A candidate as a proposal, which is in no file yet.

    `said` is compared with what stands at `place`: in a file, or in the files of a folder.
    """

    proposal: Proposal
    said: str
    place: str
    warnings: tuple[Diagnostic, ...]


class _Decision(NamedTuple):
    """What is done about a candidate: an outcome, the plan, and the path of the memory or the proposal."""

    outcome: str
    path: str
    plan: EditPlan = EditPlan(changes=())


@dataclass(slots=True)
class _CaptureRun:
    """What came of the messages so far; `problems` say why a model was not asked."""

    policy: str
    generator: Generator | None = None
    items: list[CapturedItem] = field(default_factory=list)
    unread: int = 0
    problems: list[str] = field(default_factory=list)
    is_stopped: bool = False


class Capture(KindVerbs[R]):
    """What is stated in the sessions of one namespace, and where it goes.

    The policy is that of the config (`[capture] policy`), unless a verb is given one. With `off` nothing is
    done. With `inbox` what is new is proposed; with `apply` it is accepted at once: a preference is set, a
    decision or a fact becomes a bullet of `notes/decisions.md` or `notes/facts.md`, a constraint a rule that
    is not enabled. What says again what is in memory, or waits already, adds its source there, and makes a
    preference stronger.

    Where the config does not keep the latest preference, one that is stronger than a wish stays, and the wish
    is proposed.
    """

    def __init__(
        self,
        vault: Vault,
        run: Callable[[Build], R],
        find_verb: FindVerb,
        sessions: Sessions,
        moves: bool,
        *,
        clock: Callable[[], datetime] = content.utc_now,
    ) -> None:
        """Take the conversations, and whether it is written into a log how far it was read; no plan does so.

        `find_verb` finds a verb of memories, which returns what makes its plan.
        """
        super().__init__(vault, run, clock)
        self._find_verb = find_verb
        self._inbox: Inbox[Build] = Inbox(vault, lambda build: build, find_verb, clock=clock)
        self._sessions = sessions
        self._moves = moves

    def extract(self, text: str, speaker: str = "user") -> tuple[Candidate, ...]:
        """Find what a text states; nothing is kept. See `mdmem.conversations.observe.extract.extract`.

        The vault may add cues of its own in `.mdmem/lexicon.toml`.
        """
        return tuple(extract(text, speaker, self._read_cues()[0]))

    def check(self) -> list[Diagnostic]:
        """Check the vault's own cues; where they are wrong, those that come with the program are used."""
        return [*self._read_cues()[1]]

    def due(self, key: str) -> bool:
        """Return whether a session has messages to capture that were not read yet."""
        if self._vault.config.capture.policy == OFF:
            return False
        with self._sessions.logs.reading(key) as conversation:
            return any(True for _ in conversation.messages(conversation.state.cursor(_CURSOR) + 1))

    def run(self, key: str, *, policy: str | None = None, generator: Generator | None = None) -> Captured:
        """Capture what was said in a session since the last time.

        The log of the session says how far it was read. When as many proposals wait as the config allows, it
        stops before the message that has more; the next run begins there.
        Where a program ended in between, some messages are read again, and make no difference.

        Args:
            key: of the session; of one that is not there, nothing was said.
            policy: off, inbox or apply; without one, the config's.
            generator: asks a model about the messages of the user, several at once, until it fails. It may
                add to what rules find, and nothing else.

        Raises:
            Usage: an unknown policy, or an impossible key.
            LockTimeout, StorageFailed: it cannot be written; what was written stays.
        """
        done, through = self._begin_run(policy, generator), 0
        key = self._sessions.resolve(key)
        while not done.is_stopped:
            with self._sessions.logs.reading(key) as conversation:
                log, through = conversation.state.log, max(conversation.state.cursor(_CURSOR), through)
                messages = list(islice(conversation.messages(through + 1), _BATCH))
            if not messages:
                break
            through = self._read_messages(key, messages, done) or through
            if self._moves:
                self._sessions.logs.move_cursor(key, log, _CURSOR, through)
        return self._describe_run(done, through)

    def from_message(
        self, key: str, seq: int, *, policy: str | None = None, generator: Generator | None = None
    ) -> Captured:
        """Capture what one message of a session states; see `run`.

        Raises:
            Usage: an unknown policy.
            NamedNotFound: the session has no message of this number.
        """
        done, key = self._begin_run(policy, generator), self._sessions.resolve(key)
        with self._sessions.logs.reading(key) as conversation:
            if conversation.is_new or done.is_stopped:
                return self._describe_run(done)
        return self._describe_run(done, self._read_messages(key, [self._sessions.message(key, seq)], done))

    def from_event(self, kind: str, data: Mapping[str, Any], *, policy: str | None = None) -> Captured:
        """Capture what a program reports.

        Args:
            kind: one of `mdmem.conversations.observe.candidate.EVENTS`.
            data: what it is about. The same data is the same event, and counts once.

        Raises:
            Usage: an unknown policy or event, or data that is not JSON.
        """
        done, value = self._begin_run(policy), json_value(data)
        candidates = from_event(kind, value)
        written = json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        self._take_each(candidates, f"events/{kind}#{digest(written)[:12]}", done)
        return self._describe_run(done)

    def keep(self, candidate: Candidate, source: str, *, policy: str | None = None) -> Captured:
        """Keep or propose what a program has found itself, such as by asking a model.

        Args:
            candidate: what was stated.
            source: where, such as `sessions/t1#3`: a folder, a name, no blanks. Each counts once.

        Raises:
            Usage: an unknown policy, or what is no source.
        """
        done = self._begin_run(policy)
        if not SOURCE.fullmatch(source):
            raise Usage(problem=f"a source is like sessions/t1#3, not {source!r}")
        self._take_each([candidate], source, done)
        return self._describe_run(done)

    # -- what is read -------------------------------------------------------------------------------------

    def _read_cues(self) -> tuple[Cues, tuple[Diagnostic, ...]]:
        try:
            kept = self._vault.store.read(LEXICON, MOST_BYTES)
        except MdmemError as error:
            finding = about_file(LEXICON, "lexicon", error.message, error.hint, severity="warning")
            return builtin_cues(), (finding,)
        text = kept.data.decode("utf-8", "replace") if kept else ""
        cues, flaw = extended_cues(text) if text else (builtin_cues(), None)
        return cues, (flaw,) if flaw else ()

    def _begin_run(self, policy: str | None, generator: Generator | None = None) -> _CaptureRun:
        chosen = self._vault.config.capture.policy if policy is None else policy
        if chosen not in CAPTURE_POLICIES:
            raise Usage(problem=f"a policy is {', '.join(CAPTURE_POLICIES)}, not {chosen!r}")
        return _CaptureRun(chosen, generator, is_stopped=chosen == OFF)

    def _read_messages(self, key: str, messages: Sequence[Message], done: _CaptureRun) -> int:
        """Take what messages state until something is left out; return the number of the last one, or 0."""
        most = self._vault.config.capture.max_open
        if done.generator and done.policy == INBOX and len(self._inbox.list()) >= most:
            done.is_stopped = True  # else a model would be asked about the same messages in every run
            done.problems.append(f"it was not asked, and nothing was read: {_FULL}")
            return 0
        folder, through = f"sessions/{_UNSAFE.sub(percent, name_of(key))}", 0
        for message, candidates in zip(messages, self._find_candidates(messages, done), strict=True):
            self._take_each(candidates, f"{folder}#{message.seq}", done, moment_of(message.created_at))
            if done.is_stopped:
                break
            if done.generator is None or done.problems:  # a model reads long messages, too
                done.unread += left_out(message.spoken)
            through = message.seq
        return through

    def _find_candidates(self, messages: Sequence[Message], done: _CaptureRun) -> list[Sequence[Candidate]]:
        """Find what each message states; a model that fails is asked no more."""
        found: list[Sequence[Candidate]] = [self.extract(each.spoken, each.role) for each in messages]
        asked = [at for at, each in enumerate(messages) if is_user(each.role) and each.spoken.strip()]
        for batch in quotation.in_batches([messages[at].spoken for at in asked]):
            if done.generator is None or done.problems:
                break
            places = [asked[number] for number in batch]
            texts = [messages[at].spoken for at in places]
            known = [found[at] for at in places]
            added = quotation.added_by(done.generator, texts, known, self._read_cues()[0])
            if added.problem:
                done.problems.append(added.problem)
            for at, candidates in zip(places, added.candidates, strict=True):
                found[at] = candidates
        return found

    def _describe_run(self, done: _CaptureRun, through: int = 0) -> Captured:
        if done.policy == OFF:
            return Captured(policy=OFF, told=_OFF)
        left_out = sum(each.outcome == LEFT_OUT for each in done.items)
        told = [f"{flaw.path}:{flaw.position.line}: {flaw.message}; {flaw.hint}" for flaw in self.check()]
        told += [f"without the model: {problem}" for problem in done.problems]
        if left_out:
            told.append(f"{left_out} not proposed: {_FULL}")
        if done.unread:
            told.append(
                f"{done.unread:,} characters of long messages were not looked at: only a model reads these"
            )
        return Captured(
            policy=done.policy,
            items=tuple(done.items),
            left_out=left_out,
            unread=done.unread,
            through=through,
            told="\n".join(told),
        )

    # -- where it goes ------------------------------------------------------------------------------------

    def _take_each(
        self,
        candidates: Sequence[Candidate],
        source: str,
        done: _CaptureRun,
        said_at: datetime | None = None,
    ) -> None:
        """Take the candidates of one message, said now if not at another time.

        Where one is left out, nothing more is read.
        """
        for candidate in candidates if done.policy != OFF else ():
            item = CapturedItem(candidate=candidate, source=source)
            try:
                draft = self._draft_proposal(candidate, source, said_at or self._clock())
                item = self._apply_draft(item, draft, done.policy) if draft else item
            except (Refused, NotFound, Usage) as error:
                if isinstance(error, LimitReached) and error.what == WAITING:
                    item = dataclasses.replace(item, outcome=LEFT_OUT)
                    done.is_stopped = True
                else:
                    item = dataclasses.replace(item, outcome=REFUSED, reason=error.message)
            done.items.append(item)

    def _apply_draft(self, item: CapturedItem, draft: _Draft, policy: str) -> CapturedItem:
        decision = _Decision(KNOWN, "")

        def build() -> EditPlan:
            nonlocal decision
            decision = self._decide(draft, policy)
            message = f"capture from {item.source}: {decision.plan.message}"
            return decision.plan._replace(message=message, warnings=draft.warnings)

        applied = self._run(build)
        change = applied if decision.plan.changes else None
        return dataclasses.replace(item, outcome=decision.outcome, path=decision.path, change=change)

    def _draft_proposal(self, candidate: Candidate, source: str, said_at: datetime) -> _Draft | None:
        shape = {name: getattr(candidate, name) for name in ("value", "category", "key", "quote")}
        folder = RULE.folder if candidate.kind == "constraint" else PREFERENCE.folder
        clean, warnings = redact_fields(self._vault, _NOTES.get(candidate.kind, folder), shape)
        said = clipped(in_line(clean["value"]), _LONGEST)
        if not said:
            return None
        if candidate.kind in _NOTES:
            verb, place = "append", _NOTES[candidate.kind]
            text = bullet(said_at.date().isoformat(), plain(said), [source])
            arguments: dict[str, Any] = {"path": place, "text": text}
        elif candidate.kind == "constraint":
            verb, place = "write", RULE.folder
            text = f"---\ntype: {RULE.name}\nenabled: false\n---\n\n{plain(said)}\n"
            arguments = {"path": f"{RULE.folder}/{name_for(said)}.md", "content": text}
        elif candidate.kind == "preference":
            verb, category = "preferences.set", clean["category"] or _GENERAL
            arguments = {"category": category, "key": clean["key"] or name_for(said), "value": said}
            # Who accepts it wants it, whatever is stronger.
            arguments |= {"confidence": candidate.confidence, "policy": "keep-latest"}
            path = path_of(category, arguments["key"])
            # A key that was made of the value is no name: the same may stand under another one.
            place = path if clean["key"] else path.rpartition("/")[0]
        else:
            return None
        reason = f"stated as a {candidate.kind}: {clipped(in_line(clean['quote']), _LONGEST_QUOTE)}"
        proposal = new_proposal(verb, arguments, reason=reason, author=_AUTHOR, sources=(source,))
        return _Draft(proposal, said, place, warnings)

    def _decide(self, draft: _Draft, policy: str) -> _Decision:
        new, own = draft.proposal, None
        if new.verb == "preferences.set":
            own = read_memory(self._vault, path_of(new.arguments["category"], new.arguments["key"]))
        if own and {*new.sources} & {*(sources_of(own) or ())}:
            return _Decision(KNOWN, own.path)  # whatever is wished there now was said later
        if standing := find_standing(self._vault, draft.place, draft.said):
            return self._strengthen(standing, new)
        waiting = find(new.path, self._vault, self._clock())
        if waiting and waiting.status == REJECTED:
            return _Decision(REJECTED, new.path)
        if waiting is None and policy == APPLY and not (own and self._is_stronger(own)):
            plan = plan_acceptance(new, bind_verb(new, self._find_verb), self._vault)
            self._refuse_swallowed(plan, draft)
            return _Decision(KEPT, plan.paths[0], plan)
        plan = self._inbox.propose(
            new.verb, new.arguments, reason=new.reason, author=new.author, sources=new.sources
        )()
        outcome = STRENGTHENED if waiting else PROPOSED
        return _Decision(outcome if plan.changes else KNOWN, new.path, plan)

    def _is_stronger(self, own: Document) -> bool:
        if self._vault.config.preferences.policy == "keep-latest" or "value" not in own.fields:
            return False
        return read_preference(own, self._clock()).strength > STRENGTH

    def _strengthen(self, standing: Standing, new: Proposal) -> _Decision:
        document, known = standing.document, standing.sources
        if known is None or {*new.sources} & {*known} or len(known) >= MOST_SOURCES:
            return _Decision(KNOWN, document.path)
        if standing.span:
            text = with_sources(document.text[slice(*standing.span)], new.sources)
            plan = edit(document, [TextEdit(*standing.span, text)], "")
        else:
            same = Change(path=document.path, before=document, content=document.data)
            plan = EditPlan(changes=(same,))
            if name := preference_at(document.path):
                value, confidence = document.fields["value"], new.arguments["confidence"]
                stronger = self._find_verb("preferences.set")(*name, value, confidence=confidence)()
                plan = stronger if stronger.changes else plan
            plan = attributed(self._vault, plan, new.sources)
        plan = plan._replace(message=f"said again: {document.path}")
        return _Decision(STRENGTHENED, document.path, plan)

    def _refuse_swallowed(self, plan: EditPlan, draft: _Draft) -> None:
        """Refuse to write a bullet that would become part of the text before it."""
        after = plan.changes[0].after(self._vault.config.limits) if draft.proposal.verb == "append" else None
        if after and normal(draft.said) not in statements_in(after):
            raise after.refused("it ends in something that is never closed", "close it first")
