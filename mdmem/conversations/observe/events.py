"""Events of a conversation, by rules: who asked for what, what was decided, files, errors, and what is open.

An event quotes a message or a whole sentence, or names what tools did. Nothing in it is cut: where there is
no room, an event is left out. The words that tell events apart stand in `events.toml`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, filterfalse, islice
from re import Pattern
from typing import NamedTuple

from mdmem.conversations.log.message import Message, is_asked
from mdmem.conversations.observe.prose import QUESTION, parted, prose, without_home
from mdmem.conversations.observe.runs import ToolRun, errors_in, files, runs
from mdmem.conversations.prompt.summarise import by_worth, label, names, sentence_of
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import estimate, first_of, in_line

ASKED, DECIDED, SAID, FILES, ERROR, OPEN = "asked", "decided", "said", "files", "error", "open"
"""The kinds of events."""

_LEAST, _FULL = 3, 6  # words of a sentence that tells an outcome, and of any other
_NAMED, _LAST = 2, 3  # names that make up for words; sentences among which a question waits for an answer
_SHORT, _WHOLE = 60, 800  # characters of an answer or of praise; of a text that is quoted whole
_SHOWN, _TASKS = 2, 3  # the most errors, and tasks to do, that are named for one message
_REPORTED, _ON_THE_WAY = 25, 2  # sentences of a report; of findings before it
# Of people who talk, chosen on one conversation of LoCoMo (bench/retrieval.py --observations): what each of
# two words about people or a time adds to the weight of a sentence; the power of its tokens; the part of the
# target; how many sentences are looked at, and kept of a message.
_MORE, _LONG, _PART, _LOOKED_AT, _A_MESSAGE = 0.4, 0.5, 4, 40, 4
_ROLES = {"user", "assistant", "system", "developer", "tool", "function"}

_CLAUSE = regex(r"[,;:!?(\u2013\u2014\uff0c\u3002\uff1b\uff1a\uff01\uff1f]|\.\s|\s-\s")
_TO_QUESTION = regex(r"(?:[^.!?\n\u3002\uff01\uff1f]|\.\S)*(?:[?\uff1f]|[吗呢]\W?\Z)")
_BEHIND = regex(r"[:;]\s|[\u2013\u2014\uff1a\uff1b]|\s-\s")  # what stands between chatter and a fact
_LEAD, _LATIN = (":", "\uff1a"), regex("[a-z]")
_BEHIND_FILLER, _SIGN = ("chatter", "praise", "asks"), r"[\s.,:;!\u2026\u2014\u2013\uff0c\u3002\uff01\uff1a-]"
_HAN = regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")

# What Claude Code writes into the answer of a tool when a person answers, approves or stops it.
_REFUSED = regex(r"(?s)The user doesn't want to .*?the user said:\s*(.+)")
_APPROVED = "User has approved your plan"
_ANSWERED = "User has answered your questions"
_ANSWER = regex(r'"([^"\n]{1,500})"="([^"\n]{1,500})"')
_COMMAND = regex(
    r"<command-name>\s*(/[^<\s]+)\s*</command-name>(?:(?s:.*?)<command-args>([^<]*)</command-args>)?"
)
_LOCAL = "<local-command-stdout"
_OPTION = regex(r"(?im)^[\s#*-]*(?:option )?([0-9]{1,2}|[a-f])[.):]\**\s+(\S.*)$")
# Numbers or letters, which make no amount.
_NUMBER = regex(r"[0-9]{1,2}|[a-f]")
_NUMBERS = regex(r"(?:[\s,;&#()!\u3001\uff0c\u3002]*(?:[0-9]{1,2}|[a-f])\b(?:[.:](?!\d))?)+[\s,)!*\u3002]*")


class SessionEvent(NamedTuple):
    """Something that happened, in one line.

    The lowest `rank` is kept first. `quote` has the words of others in it, by which it is told from others.
    """

    kind: str
    seq: int
    rank: float
    text: str
    quote: str = ""


def events(
    messages: Sequence[Message],
    target: int,
    workspace: str = "",
    before: Sequence[Message] = (),
    following: Message | None = None,
) -> list[SessionEvent]:
    """Find the events of messages, in order, files and open tasks last, without repeats.

    Args:
        messages: in order, at least one.
        target: tokens that the events have at most, unless one alone has more; a fourth of them where people
            talk and nobody works.
        workspace: the folder below which paths are written without it.
        before: some messages before them; the last one may ask what the first of `messages` answers.
        following: the message behind them; what nobody has answered is open only without one.
    """
    finder = _EventFinder(messages, list(runs(messages)), workspace, before, following)
    best: dict[str, SessionEvent] = {}
    for event in finder.events():
        name = event.quote or event.text.rpartition(" (#")[0]
        if name not in best or event.rank < best[name].rank:
            best[name] = event
    left = target if finder.is_work else target // _PART
    kept: set[str] = set()
    for name, event in sorted(best.items(), key=lambda found: found[1].rank):
        cost = estimate(event.text) + 1
        if cost <= left or not kept:
            kept.add(name)
            left -= cost
    found = [event for name, event in best.items() if name in kept]
    return sorted(found, key=lambda event: (event.kind == OPEN, event.kind == FILES, event.seq))


def listed(found: Iterable[SessionEvent]) -> str:
    """Write events as a list, each in one line."""
    return "\n".join(f"- {event.text}" for event in found)


@dataclass(frozen=True)
class _EventFinder:
    """Finds the events of messages, with the arguments of `events`."""

    messages: Sequence[Message]
    runs: Sequence[ToolRun]
    workspace: str
    before: Sequence[Message]
    following: Message | None

    @cached_property
    def is_work(self) -> bool:
        """Whether an assistant works for a user; people who talk have names, and no tools."""
        speakers = {message.speaker for message in self.messages}
        return bool(self.runs or speakers & _ROLES) or len(speakers) == 1

    def events(self) -> Iterator[SessionEvent]:
        """Find all of them, in no order."""
        if not self.is_work:
            return self._find_talk()
        found = chain(self._find_turns(), self._find_decisions(), self._find_files(), self._find_errors())
        return chain(found, () if self.following else self._find_open())

    def _make_event(self, kind: str, seq: int, rank: float, what: str, quote: str = "") -> SessionEvent:
        text = without_home(f"{what}: {quote}" if quote else what, self.workspace)
        return SessionEvent(kind, seq, rank, f"{text} (#{seq})", quote)

    def _quote_message(self, message: Message, rank: float, said: str) -> SessionEvent:
        is_request = message.role == "user" and self.is_work
        is_asked_for = QUESTION.search(said) or (is_request and _read_words()["wants"].search(said))
        verb = DECIDED if _is_decision(said) else ASKED if is_asked_for else SAID
        kind = ASKED if is_request else DECIDED if verb == DECIDED else SAID
        return self._make_event(kind, message.seq, rank, f"{label(message)} {verb}", said)

    # -- turns: what a user asks, and what the assistant reports -------------------------------------------

    def _find_turns(self) -> Iterator[SessionEvent]:
        is_end = self.following is None or is_asked(self.following)
        for place in reversed(range(len(self.messages))):
            message = self.messages[place]
            if message.role == "user" and not message.answers:
                is_end = True
                yield from (
                    self._find_requests(message, place)
                    if is_asked(message)
                    else self._find_command(message, place)
                )
            elif message.role == "assistant" and not message.answers:
                is_end = is_end and not message.calls
                yield from self._find_report(message, is_end=is_end)
            else:
                is_end = False

    def _find_requests(self, message: Message, place: int) -> Iterator[SessionEvent]:
        who, seq = label(message), message.seq
        written, pasted = parted(message.spoken)
        own, shown = in_line(written), errors_in(pasted)[:_SHOWN]
        for line in shown:
            yield self._make_event(ERROR, seq, 0.1, f"{who} pasted an error", line)
        question, option = self._find_question(place, own) if 0 < len(own) <= _SHORT else ("", "")
        if question or option:
            answered = f"{who} answered {own}{option}{' to the question' if question else ''}"
            yield self._make_event(DECIDED, seq, 0, answered, question)
        elif len(own) <= _WHOLE:
            yield from [] if _is_nod(own) else [self._quote_message(message, 0, own)]
        else:
            wants = _read_words()["wants"]
            said = [each for each in prose(written) if not each.endswith(_LEAD)]
            said = [each for each in said if wants.search(each) or _is_telling(each)]
            asking = sorted(range(len(said)), key=lambda at: (not wants.search(said[at]), at))
            asking.sort(key=lambda at: at > 0 and not QUESTION.search(said[at]))
            kept: list[int] = []
            for at in asking:
                if sum(len(said[each].encode()) for each in [*kept, at]) <= _WHOLE:
                    kept.append(at)
            yield from (self._quote_message(message, 0.01 * at, said[at]) for at in sorted(kept))

    def _find_command(self, message: Message, place: int) -> Iterator[SessionEvent]:
        behind = (each.text for each in self.messages[place + 1 : place + 3] if each.role == "user")
        command = _COMMAND.search(message.text)
        # One that their own program answers asks an assistant for nothing.
        if command and not any(_LOCAL in text for text in behind):
            line = " ".join(in_line(part) for part in command.groups() if part)
            yield self._make_event(ASKED, message.seq, 0, f"{label(message)} ran {line}")

    def _find_question(self, place: int, reply: str) -> tuple[str, str]:
        """Find the question that a reply answers, and the options that it names; each may be empty."""
        behind = reversed([*self.before, *self.messages[:place]])
        before = next((each for each in behind if each.spoken.strip()), None)
        if before is None or before.role != "assistant" or _is_question(reply):
            return "", ""
        said, words = prose(before.spoken), _read_words()
        question = next(filter(QUESTION.search, reversed(said)), "")
        options = {number.lower(): text for number, text in _OPTION.findall(before.spoken)}
        chosen = dict.fromkeys(each for each in _read_choice(reply) if each in options)
        named = "; ".join(chain.from_iterable(prose(options[each])[:1] for each in chosen))
        if named and not words["count"].search(question):
            return question, f" ({named})"
        is_answer = words["choice"].search(question) or words["replies"].match(reply) or _is_nod(reply)
        return (question if is_answer and question in said[-_LAST:] else ""), ""

    def _find_report(self, message: Message, *, is_end: bool) -> Iterator[SessionEvent]:
        finding = _read_words()["finding"]
        sentences = [
            (number > 0 and not finding.search(said), number, said)
            for number, said in enumerate(filter(_is_telling, prose(message.spoken)))
        ]
        if is_end:
            ranked = {
                said: 1 + 0.2 * place for place, (_, _, said) in enumerate(sorted(sentences)[:_REPORTED])
            }
        else:
            findings = [
                said for _, _, said in sentences if finding.search(said) and _count_words(said) >= _FULL
            ]
            ranked = {said: 2.4 + 0.8 * place for place, said in enumerate(findings[:_ON_THE_WAY])}
        yield from (
            self._quote_message(message, ranked[said], said) for _, _, said in sentences if said in ranked
        )

    # -- what tools tell -----------------------------------------------------------------------------------

    def _find_decisions(self) -> Iterator[SessionEvent]:
        for run in self.runs:
            what = "the plan" if "plan" in run.name.lower() else run.what
            if refused := _REFUSED.match(run.answer):
                yield self._make_event(
                    DECIDED, run.seq, 0, f"user stopped {what} and said", in_line(refused[1])
                )
            elif run.answer.startswith(_APPROVED):
                yield self._make_event(DECIDED, run.seq, 0, "user approved the plan")
            elif run.answer.startswith(_ANSWERED) and "questions" in run.arguments:
                for question, said in _ANSWER.findall(run.answer):
                    verb, end = ("asked", "about") if _is_question(said) else ("answered", "to")
                    what_said = f"user {verb} {in_line(said)} {end} the question"
                    yield self._make_event(DECIDED, run.seq, 0, what_said, in_line(question))

    def _find_files(self) -> Iterator[SessionEvent]:
        for line, seq in files(self.runs, self.workspace):
            yield SessionEvent(FILES, seq, 0.3, line)

    def _find_errors(self) -> Iterator[SessionEvent]:
        for place, run in enumerate(self.runs):
            behind = self.runs[place + 1 :]
            later = next((each for each in behind if each.what == run.what and each.is_done), None)
            if run.command and run.failure:
                rank = 1.3 if later else 0.7
                event = self._make_event(ERROR, run.seq, rank, f"{run.what} failed", run.failure)
                ended = f"; a later run did not fail (#{later.seq})" if later else ""
                yield event._replace(text=event.text + ended)

    def _find_open(self) -> Iterator[SessionEvent]:
        last = next((each for each in reversed(self.messages) if each.spoken.strip()), self.messages[-1])
        who = label(last)
        if is_asked(last) and not _is_nod(last.spoken):
            yield self._make_event(OPEN, last.seq, 0.2, f"open: nobody answered {who}")
        sentences = prose(last.spoken) if last.role == "assistant" else []
        for place, said in enumerate(sentences, _LAST - len(sentences)):
            if QUESTION.search(said) and place >= 0:
                yield self._make_event(OPEN, last.seq, 0.2, f"open: nobody answered what {who} asked", said)
            elif _read_words()["left"].search(said) and not said.endswith((*_LEAD, "?")):
                yield self._make_event(OPEN, last.seq, 0.9, "open", said)
        lists = (
            (run.seq, run.arguments.get("todos", run.arguments.get("plan"))) for run in reversed(self.runs)
        )
        seq, tasks = next((each for each in lists if isinstance(each[1], list)), (0, []))
        left = [task for task in tasks if isinstance(task, Mapping) and task.get("status") != "completed"]
        if names := [in_line(str(task.get("content") or task.get("step") or "")) for task in left]:
            yield self._make_event(OPEN, seq, 0.6, "open: to do", first_of(names, _TASKS, "; "))

    # -- people who talk -----------------------------------------------------------------------------------

    def _find_talk(self) -> Iterator[SessionEvent]:
        """Yield the sentences that say most, one of each message before the second of any."""
        weighed = [
            sentence_of(place, said, 1 + _MORE * min(2, len(_read_words()["personal"].findall(said))))
            for place, message in enumerate(self.messages)
            for said in prose(message.spoken if message.role in _ROLES else message.text)
            if len(said.split()) > _LEAST or not said.isascii()
        ]
        counts = [0] * len(self.messages)
        for rank, index in enumerate(islice(by_worth(weighed, _LONG), _LOOKED_AT)):
            place, text = weighed[index][:2]
            counts[place] += 1
            if counts[place] <= _A_MESSAGE:
                yield self._quote_message(self.messages[place], counts[place] + rank / 1_000, text)


def _is_telling(said: str) -> bool:
    """Return whether a sentence tells something; politeness, questions, leads and announcements do not."""
    words, count = _read_words(), _count_words(said)
    if said.endswith(_LEAD) or QUESTION.search(said):
        return False
    if words["chatter"].match(said):
        behind = _BEHIND.split(said, maxsplit=1)[-1]
        is_found = behind != said and (names(said) or words["finding"].search(behind))
        return bool(is_found) and _is_telling(behind)
    if len(said) > _SHORT and count >= _FULL:
        return True
    named = len(names(said)) + any(map(str.isdigit, said))
    is_praise = not named and words["praise"].match(said)
    is_outcome = count >= _LEAST and bool(words["outcome"].search(said))
    return not is_praise and (is_outcome or count + 2 * min(_NAMED, named) >= _FULL)


def _is_decision(text: str) -> bool:
    """Return whether a text says, without a doubt, what somebody decided, and does not ask for it."""
    return any(
        not _read_words()["doubt"].search(_CLAUSE.split(text[: found.end()])[-1])
        and not _TO_QUESTION.match(text, found.end())
        for found in _read_words()["decided"].finditer(text)
    )


def _is_question(text: str) -> bool:
    return bool(QUESTION.search(text) or _read_words()["asks"].match(text))


def _is_nod(text: str) -> bool:
    return len(text) <= _SHORT and not any(map(str.isalnum, _read_words()["nods"].sub("", text)))


def _read_choice(reply: str) -> list[str]:
    """Return the numbers and letters of options that a reply consists of; none where it says more."""
    words, reply = _read_words(), reply.lower()
    reply = words["ordinals"].sub(lambda found: f" {found.lastindex} ", words["options"].sub(" ", reply))
    return _NUMBER.findall(reply) if _NUMBERS.fullmatch(reply) else []


def _count_words(said: str) -> int:
    """Count the words of a sentence; of Chinese, Japanese and Korean every two characters are one."""
    return len(said.split()) + len(_HAN.findall(said))


@cache
def _read_words() -> Mapping[str, Pattern[str]]:
    """Read the tables of `events.toml`; what has Latin letters is a whole word."""
    with open(os.path.join(os.path.dirname(__file__), "events.toml"), encoding="utf-8") as file:
        tables = tomllib.loads(file.read().replace("'", "['\u2019]"))
    found: dict[str, Pattern[str]] = {}
    for name, table in tables.items():
        whole = "|".join(filter(_LATIN.search, table))
        words = "|".join((rf"(?<!\w)(?:{whole})(?!\w)", *filterfalse(_LATIN.search, table)))
        filler = f"(?:{found['filler'].pattern}|{_SIGN})*" if name in _BEHIND_FILLER else ""
        found[name] = regex(f"(?i:{filler}(?:{words}))")
    return found
