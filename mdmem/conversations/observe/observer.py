"""The observer makes observations and reflections when they are due, in one process for each session.

A memory is written first, then the log says how far it was observed. What a crash leaves between the two is
the memory, and its name says the same: nothing is observed twice, and nothing passed over. While a model
thinks, neither the log nor the vault is locked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from mdmem.conversations.log.logs import now
from mdmem.conversations.log.message import Message, beside_pairs, is_asked, pairs
from mdmem.conversations.models.generator import Generator, named, prompt
from mdmem.conversations.models.program import program_failed
from mdmem.conversations.observe.events import events, listed
from mdmem.conversations.observe.observations import (
    CURSOR,
    DIGITS,
    HOST,
    Observation,
    ObservationPlace,
    Observations,
    Step,
    folder_of,
    observation_in,
    of_log,
    or_default,
)
from mdmem.conversations.prompt.summarise import EXTRACT, SUMMARY, Summarised, most_told, summarise
from mdmem.document.document import parse_text
from mdmem.document.secret import redacted
from mdmem.document.text.tokens import estimate, in_line, plain
from mdmem.document.yaml_edit import block
from mdmem.errors import LockTimeout, MdmemError, Usage
from mdmem.kind import OBSERVATION
from mdmem.memory import history
from mdmem.vault.paths import is_under
from mdmem.vault.transaction import Applied

MOST_TOKENS = 8_000
"""Of the messages that one observation is about; a longer one stands alone, without its middle."""
MOST_COVERED = 200
"""How many memories one reflection is on: its fields name each."""

_WAIT = 10.0  # seconds for another observer of the session, where somebody waits for the answer
_LOCKS, _REFLECTION = "observers", "reflection"
_CONFIDENCE = 0.5  # so that a note counts for more, where both fit a query
_OBSERVATION_TARGET, _REFLECTION_TARGET = 200, 320  # tokens, where a model makes it
_BEFORE = 8  # messages in which a question may stand that the first one answers
_LIST = 800  # tokens of an observation that is a list


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedSession:
    """What an observer did for a session.

    Attributes:
        session: its key.
        made: the paths of the memories that it made, in order.
        compacted: how many summaries stand for messages of it in a prompt that did not before.
        is_busy: whether another process observes the session, which then does what is due.
        problems: every error, in words.
    """

    session: str
    made: tuple[str, ...] = ()
    compacted: int = 0
    is_busy: bool = False
    problems: tuple[str, ...] = ()


class WaitingSession(NamedTuple):
    """A session with too little new to observe: how many tokens are new, and how many are needed."""

    session: str
    tokens: int
    needed: int


class SessionObservations(Observations[Applied]):
    """The observations of a namespace's sessions, and the verbs that make them."""

    # -- when it is due -----------------------------------------------------------------------------------

    def held(self, key: str, seconds: float = _WAIT) -> AbstractContextManager[None]:
        """Return the lock of whoever observes a session, as `files.held`."""
        return self._sessions.logs.alone(_LOCKS, key, seconds)

    def work(self, session: str, generator: Generator | None = None, *, now: bool = False) -> ObservedSession:
        """Do all that is due for a session, unless another process is at it.

        A step that fails does not stop the others. When the lock is free again, it looks once more, so that
        a process that came meanwhile need not wait.
        """
        key, is_busy, compacted = session, False, 0
        made, problems, given_up = list[str](), list[str](), set[Step]()

        def waiting() -> list[Step]:
            return [step for step in self.due(key, generator, now=now) if step not in given_up]

        try:
            key = self._sessions.resolve(session)
            while waiting():
                with self.held(key, 0):
                    for step in waiting():
                        try:
                            found = self._run_step(step, key, generator)
                        except MdmemError as error:
                            problems.append(f"{step}: {error}")
                            found = None
                        if found:
                            made.append(found.path)
                        else:
                            given_up.add(step)
        except LockTimeout:
            is_busy = True
        except MdmemError as error:
            problems.append(str(error))
        if made and self._vault.config.observation.compact:
            try:
                done = self._sessions.compact(key, generator=generator)
                compacted = len(done.summaries)
                problems += [f"compact: {problem}" for problem in done.problems]
            except MdmemError as error:
                problems.append(f"compact: {error}")
        return ObservedSession(
            session=key,
            made=tuple(made),
            compacted=compacted,
            is_busy=is_busy,
            problems=tuple(dict.fromkeys(problems)),
        )

    def _run_step(self, step: Step, key: str, generator: Generator | None) -> Observation | None:
        if step == "observe":
            return self._observe(key, generator)
        return self._reflect(key, generator, meta=step == "reflect-meta")

    def every(self, generator: Generator | None = None, *, now: bool = False) -> list[ObservedSession]:
        """Run `work` for all sessions; return those for which anything was done."""
        keys = [each.key for each in self._sessions.list() if not each.alias_of]
        found = [self.work(key, generator, now=now) for key in keys]
        return [each for each in found if each != ObservedSession(session=each.session)]

    def waiting(self, session: str | None = None) -> list[WaitingSession]:
        """List the sessions that have too little new to be observed; with `session`, only this one."""
        keys = [each.key for each in self._sessions.list() if not each.alias_of]
        found = map(self._count_new, keys if session is None else [session])
        return [each for each in found if each.tokens < each.needed]

    def _count_new(self, session: str) -> WaitingSession:
        needed = or_default(self._vault.config.observation, "message_tokens")
        with self._sessions.logs.reading(session) as conversation:
            _, end = self._find_observed(conversation.state)
            tokens = sum(each.tokens for each in conversation.messages(end + 1))
            return WaitingSession(conversation.state.key, tokens, needed)

    def watch(
        self, session: str | None = None, generator: Generator | None = None
    ) -> Iterator[ObservedSession]:
        """Observe all sessions, or one, each time that their logs grow; it never ends."""
        from mdmem.index.watch.watcher import Watcher  # noqa: PLC0415 - few observe sessions as they grow

        logs = self._sessions.logs
        with Watcher(self._vault.root, logs=True) as watcher:
            for hints in watcher:
                paths = logs.paths() if session is None else [logs.path(self._sessions.resolve(session))]
                for path in paths:
                    has_grown = hints.everything or any(is_under(path, hint) for hint in hints.paths)
                    key = self._key_of_log(path) if has_grown else ""
                    done = self.work(key, generator) if key else None
                    if done and done != ObservedSession(session=done.session):
                        yield done

    def _key_of_log(self, path: str) -> str:
        try:
            with self._sessions.logs.at(path) as conversation:
                return conversation.state.key if conversation and not conversation.state.alias_of else ""
        except MdmemError:
            return ""

    # -- observing ----------------------------------------------------------------------------------------

    def observe(self, session: str, generator: Generator | None = None) -> Observation | None:
        """Note what was said since the last time, at most 8,000 tokens of it; None where that is nothing.

        Args:
            generator: asks a model; without one, or if it fails, rules list what happened.

        Raises:
            LockTimeout: another process has observed the session for ten seconds.
        """
        key = self._sessions.resolve(session)
        with self.held(key):
            return self._observe(key, generator)

    def _observe(self, key: str, generator: Generator | None) -> Observation | None:
        with self._sessions.logs.opened(key) as conversation:
            state = conversation.state
            places, end = self._find_observed(state)
            messages = _first_messages(conversation.messages(end + 1)) if state.log else []
            behind = conversation.messages(messages[-1].seq + 1) if messages else iter(())
            following = next(iter(behind), None)
            before = list(conversation.messages(max(1, messages[0].seq - _BEFORE), end)) if messages else []
        if not messages:
            if end:
                self._sessions.logs.move_cursor(key, state.log, CURSOR, end)
            return None

        def list_events(*_: object) -> str:
            return listed(events(messages, _LIST, self._vault.workspace, before, following))

        is_long = len(messages) == 1 and messages[0].abridged(MOST_TOKENS)
        asked = [is_long] if is_long else messages
        said = summarise(asked, prompt(OBSERVATION.name), _OBSERVATION_TARGET, generator, list_events)
        numbers = (messages[0].seq, messages[-1].seq)
        return self._write_observation(key, state.log, *numbers, _previous_path(places, end), said)

    def _write_observation(
        self, key: str, log: str, first: int, last: int, follows: str, said: Summarised
    ) -> Observation:
        digits = log[:DIGITS]
        found = self._write_place(
            ObservationPlace(f"{folder_of(key)}/{digits}-{first}-{last}.md", digits, 0, first, last),
            {"session": key, "log": log, "from": first, "to": last, "follows": follows},
            said,
        )
        self._sessions.logs.move_cursor(key, log, CURSOR, last)
        return found

    def save(self, session: str, text: str, through: int | None = None) -> Observation:
        """Keep an observation that the caller made, about what was said since the last one.

        Args:
            text: what it says, in Markdown, at least one word; secrets are taken out.
            through: the number of the last message that it is about; the last one of the session without.

        Raises:
            Usage: the text is blank, or no message since the last observation has a number up to `through`.
            LockTimeout: another process has observed the session for ten seconds.
        """
        if not in_line(text):
            raise Usage(problem="the text of an observation is blank")
        key = self._sessions.resolve(session)
        with self.held(key):
            with self._sessions.logs.opened(key) as conversation:
                state = conversation.state
                places, end = self._find_observed(state)
                numbers = [message.seq for message in conversation.messages(end + 1, through)]
            if not numbers or (through is not None and numbers[-1] != through):
                wanted = "no message" if through is None else f"no message {through:,}"
                problem = f"{key!r} has {wanted} behind {end:,}, up to which it was observed"
                raise Usage(problem=problem, remedy="give the number of a later message")
            return self._write_observation(
                key, state.log, numbers[0], numbers[-1], _previous_path(places, end), Summarised(text, HOST)
            )

    def _settle(self, key: str) -> None:
        with self._sessions.logs.opened(key) as conversation:
            state = conversation.state
            _, end = self._find_observed(state)
        if end:
            self._sessions.logs.move_cursor(key, state.log, CURSOR, end)

    # -- reflecting ---------------------------------------------------------------------------------------

    def reflect(
        self, session: str, *, meta: bool = False, generator: Generator | None = None
    ) -> Observation | None:
        """Let a model sum up the observations that no reflection covers; None where there are none.

        Args:
            meta: sum up the reflections that none covers instead, one generation higher.

        Raises:
            Usage: no model is given.
            ProgramFailed: it gave no sound answer.
        """
        key = self._sessions.resolve(session)
        with self.held(key):
            return self._reflect(key, generator, meta=meta)

    def _reflect(self, key: str, generator: Generator | None, *, meta: bool) -> Observation | None:
        if generator is None:
            remedy = "name one in MDMEM_MODEL, or give a generator"
            raise Usage(problem="only a model makes a reflection", remedy=remedy)
        with self._sessions.logs.opened(key) as conversation:
            log = conversation.state.log
        places = of_log(self._list_places(folder_of(key)), log)
        on_messages, on_observations = self._find_uncovered(places)
        wanted = on_observations if meta else on_messages
        read = [*islice((each for each in map(self._observation_at, wanted) if each.text), MOST_COVERED)]
        if not read:
            return None
        generation = 1 + max(each.generation for each in read)
        numbers = [place.last for place in places if place.generation]
        number = 1 + max(numbers, default=0)
        messages = [
            Message(place, {"role": SUMMARY, "content": each.text}, each.created)
            for place, each in enumerate(read, 1)
        ]
        said = summarise(messages, prompt(_REFLECTION), _REFLECTION_TARGET, generator, lambda *_: "")
        if said.problem:
            raise program_failed(named(generator), said.problem)
        path = f"{folder_of(key)}/reflection-{log[:DIGITS]}-{generation}-{number}.md"
        return self._write_place(
            ObservationPlace(path, log[:DIGITS], generation, number, number),
            {
                "session": key,
                "log": log,
                "from": min(each.first for each in read),
                "to": max(each.last for each in read),
                "generation": generation,
                "derived_from": [each.path for each in read],
            },
            said,
        )

    # -- writing ------------------------------------------------------------------------------------------

    def _write_place(self, place: ObservationPlace, fields: dict[str, Any], said: Summarised) -> Observation:
        found = self._mask_secrets(place.path, said.text)
        written = {
            "type": OBSERVATION.name,
            **fields,
            "created": now(),
            "tokens": estimate(found),
            "by": in_line(said.by),
            "asked": said.asked,
            "answered": said.answered,
            "problem": in_line(said.problem),
            "confidence": _CONFIDENCE,
        }
        lines = block({name: value for name, value in written.items() if value not in ("", [], 0)}, 2)
        body = found.strip("\n") if said.by == HOST else _as_markdown(found, is_list=said.by == EXTRACT)
        text = "\n".join(("---", *lines, "---", "", body, ""))
        plan = history.creation(place.path, text, f"observe {fields['session']}")
        self._run(lambda: plan)
        return observation_in(place, parse_text(place.path, text, self._vault.config.limits))

    def _mask_secrets(self, path: str, text: str) -> str:
        """Return a text without secrets, whatever the config has the logs keep."""
        clean, found = redacted({"text": text}, self._vault.config.secrets.allow)
        for each in found:
            note = f"{path}: {each.told}; {each.word} is written instead"
            if note not in self._vault.notes:
                self._vault.notes.append(note)
        return str(clean["text"])


def _previous_path(places: Iterable[ObservationPlace], end: int) -> str:
    earlier = [place.path for place in places if not place.generation and place.last <= end]
    return earlier[-1] if earlier else ""


def _as_markdown(text: str, *, is_list: bool) -> str:
    lines = [in_line(line) for line in text.split("\n") if line.strip()]
    if is_list:
        return "\n".join(f"- {plain(line.removeprefix('- '))}" for line in lines)
    return "\n\n".join(map(plain, lines))


def _first_messages(messages: Iterable[Message]) -> list[Message]:
    """Return the first messages for one observation; no call is parted from its answer.

    They end before a question of the user where one stands in their second half.
    """
    taken: list[Message] = []
    tokens = half = 0
    for message in messages:
        tokens += min(message.tokens, most_told(message))
        if taken and tokens > MOST_TOKENS:
            halves = pairs(taken)
            joined = [*halves.joined, *((place, len(taken)) for place in halves.calling)]
            places = beside_pairs(taken, joined)
            asked = [place for place in places if half < place < len(taken) and is_asked(taken[place])]
            return taken[: [*places, *asked][-1] or len(taken)]
        taken.append(message)
        half = len(taken) if tokens <= MOST_TOKENS // 2 else half
    return taken
