"""Observations: what stretches of a session left behind, and reflections on several, as memories.

Each stands below `observations/<session>/`. The name of one tells its source: how the log's id begins, and
the numbers of the first and the last message. So a session that is made again has nothing in common with the
one before it. What a reflection covers stays where it is, and is known from the fields `derived_from`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

from mdmem.conversations.log.conversation import Conversation
from mdmem.conversations.log.logs import name_of
from mdmem.conversations.log.message import Message
from mdmem.conversations.log.record import RunSummary
from mdmem.conversations.log.state import State
from mdmem.conversations.sessions import Sessions
from mdmem.document.arguments import check_natural, complete_id
from mdmem.document.document import Document
from mdmem.document.field import set_field, unset_field
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import estimate, first_of, unescaped
from mdmem.errors import DocumentRefused, MemoryNotFound, NamedNotFound, PathRefused, Usage
from mdmem.kind import OBSERVATION
from mdmem.memory.verbs import Build, KindVerbs, R
from mdmem.vault.config import ObservationSettings
from mdmem.vault.paths import check_memory, is_under, join
from mdmem.vault.plan import Change, EditPlan, deletion, edit
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.conversations.models.generator import Generator
    from mdmem.conversations.prompt.engine import Expanded

Step = Literal["observe", "reflect", "reflect-meta"]
"""What may be due for a session."""
CURSOR = "observations"
"""The name under which a log keeps how far it was observed: the number of the last message."""
REFLECTIONS, OBSERVATIONS, TOKENS = 5, 20, 4_000
"""How many of each an agent is given, and how many tokens of both."""
HOST = "host"
"""Who made an observation that a caller saved."""
DIGITS = 8
"""How many characters of a log's id stand in a name."""

_NUMBER = "([1-9][0-9]{0,14})"
_OBSERVATION = regex(rf"([0-9A-Za-z]{{1,{DIGITS}}})-{_NUMBER}-{_NUMBER}\.md")
_REFLECTION = regex(rf"reflection-([0-9A-Za-z]{{1,{DIGITS}}})-{_NUMBER}-{_NUMBER}\.md")
_LEAST_REFLECTIONS = 2  # that one is made of when it is due
_NAMED = 3  # of the observations in the message of a change


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a stretch of a session left behind; with a generation, a reflection on several of these.

    Attributes:
        path: of the memory, by which it is named.
        session, log: the key of the session, and the id of its log.
        first, last: the numbers of the first and the last message that it is about.
        generation: 0 of an observation; of a reflection one more than that of its sources.
        follows: the path of the observation before it; empty of the first, and of reflections.
        derived_from: the paths of the sources of a reflection.
        created: when it was made (ISO 8601, UTC).
        tokens: of its text.
        by: who made it: `extract` (rules), `host` (who saved it), or the name of a model.
        asked, answered: tokens that a model was asked and has answered for it, estimated; 0 without one.
        problem: why no model made it, or why it cannot be read; empty otherwise.
        text: what it says.
    """

    path: str
    session: str
    log: str
    first: int
    last: int
    generation: int = 0
    follows: str = ""
    derived_from: tuple[str, ...] = ()
    created: str = ""
    tokens: int = 0
    by: str = ""
    asked: int = 0
    answered: int = 0
    problem: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestObservations:
    """What an agent is given of a session's observations, in the order of time.

    `left_out` counts the further ones that no reflection covers.
    """

    found: tuple[Observation, ...]
    left_out: int


class ObservationPlace(NamedTuple):
    """What the name of an observation tells: how the log's id begins, and the numbers of its messages.

    Of a reflection, `first` and `last` are its own number.
    """

    path: str
    log: str
    generation: int
    first: int
    last: int


class Observations(KindVerbs[R]):
    """The observations of a namespace's sessions. What is unknown is empty."""

    def __init__(self, vault: Vault, run: Callable[[Build], R], sessions: Sessions) -> None:
        super().__init__(vault, run)
        self._sessions = sessions

    def _settle(self, key: str) -> None:
        """Let the log of a session say how far it was observed; a plan changes no log."""

    # -- asking -------------------------------------------------------------------------------------------

    def list(self, session: str, limit: int | None = None) -> builtins.list[Observation]:
        """List the observations of a session's log, the oldest first; without a log, all there are.

        Args:
            limit: only this many, the newest ones.
        """
        return self._list_observations(session, limit, reflections=False)

    def reflections(self, session: str, limit: int | None = None) -> builtins.list[Observation]:
        """Return the reflections on a session, of every generation; otherwise as `list`."""
        return self._list_observations(session, limit, reflections=True)

    def newest(
        self,
        session: str,
        reflections: int = REFLECTIONS,
        observations: int = OBSERVATIONS,
        budget: int = TOKENS,
    ) -> NewestObservations:
        """Return what no reflection covers, reflections first, the newest while they fit.

        Args:
            reflections, observations: at most this many of each; 0 for all.
            budget: tokens of both; 0 for all. The newest is given in every case.
        """
        check_natural(reflections=reflections, observations=observations, budget=budget)
        _, places = self._current_session(session)
        on_messages, on_observations = self._find_uncovered(places)
        found: list[Observation] = []
        left = budget
        for most, uncovered in ((reflections, on_observations), (observations, on_messages)):
            for place in reversed(uncovered[-most:] if most else uncovered):
                read = self._observation_at(place)
                if not read.text:
                    continue
                if budget and found and read.tokens > left:
                    break
                left -= read.tokens
                found.append(read)
        found.sort(key=lambda each: (each.last, each.generation))
        left_out = len(on_messages) + len(on_observations) - len(found)
        return NewestObservations(found=tuple(found), left_out=left_out)

    def get(self, id: str) -> Observation | None:  # noqa: A002 - what everybody calls it
        """Return the observation or reflection of an id, its path or a beginning of it; None without one.

        Raises:
            Usage: several begin so.
        """
        path = _path_of_id(id)
        if not self._vault.exists(path):
            known = (each.path for each in self._vault.walk(OBSERVATION.folder) if place_of(each.path))
            path = complete_id("observation", path.removesuffix(".md"), known)
        place = place_of(path)
        document = self._vault.find(path) if place else None
        return observation_in(place, document) if place and document else None

    def expand(self, id: str, budget: int = 4_000) -> Expanded:  # noqa: A002 - as above
        """Return the messages that an observation or a reflection is about, also those in the archive alone.

        Args:
            id: its path.
            budget: tokens; what goes beyond is counted.

        Raises:
            NamedNotFound: there is no such observation.
        """
        from mdmem.conversations.prompt.engine import within_budget  # noqa: PLC0415 - most calls only list

        check_natural(budget=budget)
        found = self.get(id)
        if found is None:
            raise NamedNotFound(kind="observation", name=id)
        said: dict[int, Message] = {}
        stretch = RunSummary(found.last + 1, 0, found.first, found.last, messages=0)
        for conversation in self._logs_of(found):
            said = {message.seq: message for message in conversation.standing_for(stretch)} | said
        messages = [said[seq] for seq in sorted(said)]
        return within_budget(messages, len(messages), budget)

    def _logs_of(self, found: Observation) -> Iterator[Conversation]:
        """Yield the log that an observation is of, and what was put aside of it, the newest first."""
        logs = self._sessions.logs
        with logs.opened(found.session) as conversation:
            if conversation.state.log == found.log:
                yield conversation
        for path in reversed(logs.archived(found.session)):
            if f"-{found.log}-" in path:
                with self._vault.store.log(path) as log:
                    yield Conversation(log, found.session, logs.most)

    def due(self, session: str, generator: Generator | None = None, *, now: bool = False) -> tuple[Step, ...]:
        """Return what is due for a session, by [observation] of the config.

        The log is read from where it was observed until there is enough, and no further.

        Args:
            generator: asks a model; without one no reflection is due, since only a model makes one.
            now: any new message is enough for an observation.

        Returns:
            Of `observe`, `reflect` and `reflect-meta` those that are.
        """
        settings = self._vault.config.observation
        with self._sessions.logs.reading(session) as conversation:
            places, end = self._find_observed(conversation.state)
            new = (message.tokens for message in conversation.messages(end + 1))
            enough = 1 if now else or_default(settings, "message_tokens")
            steps: list[Step] = ["observe"] if _reaches(new, enough) else []
        if generator:
            on_messages, on_observations = self._find_uncovered(places)
            tokens = (self._observation_at(place).tokens for place in reversed(on_messages))
            if _reaches(tokens, or_default(settings, "observation_tokens")):
                steps.append("reflect")
            # One alone would become another one, for which the same is due, without end.
            if len(on_observations) >= max(_LEAST_REFLECTIONS, or_default(settings, "meta_at")):
                steps.append("reflect-meta")
        return tuple(steps)

    def _find_observed(self, state: State) -> tuple[builtins.list[ObservationPlace], int]:
        """Find what was observed of a log, and the number up to which it was."""
        places = of_log(self._list_places(folder_of(state.key)), state.log)
        return places, reached(state, places)

    # -- changing -----------------------------------------------------------------------------------------

    def delete(self, ids: Sequence[str] = (), session: str | None = None) -> R:
        """Remove observations and reflections, which undo brings back; their sources are not observed again.

        Reflections on them stay, and do not name them any more.

        Args:
            session: delete all of this session, and of earlier ones with its key.

        Raises:
            Usage: neither is given.
            MemoryNotFound: an id names no observation.
        """
        if not ids and session is None:
            raise Usage(problem="nothing says what to delete", remedy="give ids, or a session")
        paths = [*map(_path_of_id, ids)]
        if session is not None:
            paths += [place.path for place in self._list_places(folder_of(self._sessions.resolve(session)))]
        paths = [*dict.fromkeys(paths)]
        places = filter(None, map(place_of, paths))
        for key in dict.fromkeys(self._observation_at(place).session for place in places):
            with suppress(Usage):  # it names no session
                self._settle(key)
        what = f"of {session}" if session is not None else first_of(ids, _NAMED)

        def build() -> EditPlan:
            changes = []
            for path in paths:
                document = self._vault.find(path) if place_of(path) else None
                if document is None:
                    raise MemoryNotFound(path=path)
                changes.append(deletion(document))
            changes += self._remove_names(paths)
            return EditPlan(changes=tuple(changes), message=f"delete observations {what}")

        return self._run(build)

    def _remove_names(self, paths: Sequence[str]) -> Iterator[Change]:
        for folder in dict.fromkeys(path.rpartition("/")[0] for path in paths):
            for place in self._list_places(folder):
                if not place.generation or place.path in paths:
                    continue
                named = self._sources_of(place)
                left = [each for each in named if each not in paths]
                document = self._vault.find(place.path) if len(left) < len(named) else None
                if document:
                    key = ("derived_from",)
                    edits = set_field(document, key, left) if left else unset_field(document, key)
                    yield from edit(document, edits, "").changes

    # -- what stands where --------------------------------------------------------------------------------

    def _list_observations(
        self, session: str, limit: int | None, *, reflections: bool
    ) -> builtins.list[Observation]:
        check_natural(limit=limit or 0)
        log, places = self._current_session(session)
        wanted = [place for place in places if bool(place.generation) == reflections]
        start = 0 if limit is None else max(0, len(wanted) - limit)
        if log:
            return [self._observation_at(place) for place in wanted[start:]]
        return sorted(map(self._observation_at, wanted), key=lambda each: each.created)[start:]

    def _current_session(self, session: str) -> tuple[str, builtins.list[ObservationPlace]]:
        """Return the id of a session's log, and what was observed of it; without a log, all there is."""
        key = self._sessions.resolve(session)
        with self._sessions.logs.opened(key) as conversation:
            log = conversation.state.log
        places = self._list_places(folder_of(key))
        return log, of_log(places, log) if log else places

    def _list_places(self, folder: str) -> builtins.list[ObservationPlace]:
        names = self._vault.store.names(join(self._vault.namespace, folder))
        found = filter(None, (place_of(f"{folder}/{name}") for name in names))
        return sorted(found, key=lambda place: (place.log, place.last, place.first))

    def _find_uncovered(
        self, places: Sequence[ObservationPlace]
    ) -> tuple[builtins.list[ObservationPlace], builtins.list[ObservationPlace]]:
        """Return the observations, and the reflections, that no reflection covers, the oldest first."""
        covered = {
            path.rpartition("/")[2]
            for place in places
            if place.generation
            for path in self._sources_of(place)
        }
        left = [place for place in places if place.path.rpartition("/")[2] not in covered]
        return [place for place in left if not place.generation], [p for p in left if p.generation]

    def _sources_of(self, place: ObservationPlace) -> tuple[str, ...]:
        """Return what a reflection is on; nothing where it cannot be read. Its text is not looked at."""
        with suppress(DocumentRefused, PathRefused):
            document = self._vault.find(place.path)
            return _sources_in(document.fields) if document else ()
        return ()

    def _observation_at(self, place: ObservationPlace) -> Observation:
        try:
            document = self._vault.read(place.path)
            return observation_in(place, document)
        except (DocumentRefused, MemoryNotFound, PathRefused) as error:
            return Observation(
                path=place.path, session="", log=place.log, first=place.first, last=place.last,
                generation=place.generation, problem=error.message,
            )  # fmt: skip


def folder_of(key: str) -> str:
    """Return the folder of a session's observations."""
    return f"{OBSERVATION.folder}/{name_of(key)}"


def reached(state: State, places: Iterable[ObservationPlace]) -> int:
    """Return the number up to which a log was observed: what it says itself, or a file that is newer.

    A number that the log has not got is somebody else's.
    """
    ends = (place.last for place in places if not place.generation and place.last <= state.seq)
    return max(state.cursor(CURSOR), max(ends, default=0))


def of_log(places: Iterable[ObservationPlace], log: str) -> list[ObservationPlace]:
    """Return the observations and reflections of one log; none where there is no log."""
    return [place for place in places if log and place.log == log[:DIGITS]]


def place_of(path: str) -> ObservationPlace | None:
    """Return what a path tells; None where it is that of no observation."""
    name = path.rpartition("/")[2]
    if not is_under(path, OBSERVATION.folder):
        return None
    if found := _OBSERVATION.fullmatch(name):
        log, first, last = found[1], int(found[2]), int(found[3])
        return ObservationPlace(path, log, 0, first, last) if first <= last else None
    if found := _REFLECTION.fullmatch(name):
        return ObservationPlace(path, found[1], int(found[2]), int(found[3]), int(found[3]))
    return None


def _path_of_id(given: str) -> str:
    path = given if given.endswith(".md") else f"{given}.md"
    return check_memory(path if is_under(path, OBSERVATION.folder) else f"{OBSERVATION.folder}/{path}")


def observation_in(place: ObservationPlace, document: Document) -> Observation:
    """Return an observation as its fields tell it, which people may have changed."""
    fields = document.fields
    by = str(fields.get("by") or "")
    body = document.body.strip()
    text = body if by == HOST else unescaped(body)
    found = Observation(
        path=place.path,
        session=str(fields.get("session") or ""),
        log=str(fields.get("log") or place.log),
        first=place.first,
        last=place.last,
        generation=place.generation,
        follows=str(fields.get("follows") or ""),
        derived_from=_sources_in(fields),
        created=str(fields.get("created") or ""),
        tokens=estimate(text),
        by=by,
        asked=_positive_number(fields.get("asked")),
        answered=_positive_number(fields.get("answered")),
        problem=str(fields.get("problem") or ""),
        text=text,
    )
    if not place.generation:
        return found
    first, last = (_positive_number(fields.get(name)) or 1 for name in ("from", "to"))
    return replace(found, first=min(first, last), last=last)


def _sources_in(fields: Mapping[str, object]) -> tuple[str, ...]:
    derived = fields.get("derived_from")
    named = derived if isinstance(derived, list) else [derived]
    return tuple(each for each in named if isinstance(each, str))


def _positive_number(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _reaches(tokens: Iterable[int], most: int) -> bool:
    """Return whether a sum reaches `most`, reading no further."""
    return any(total >= most for total in accumulate(tokens))


def or_default(settings: ObservationSettings, name: str) -> int:
    """Return a setting, or its default where it is no positive number."""
    value: int = getattr(settings, name)
    default: int = ObservationSettings._field_defaults[name]
    return value if value > 0 else default
