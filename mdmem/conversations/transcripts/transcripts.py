"""Conversations as other programs write them, read message by message; nothing is written here.

Known are the files of picoclaw (a JSON document for each session, or JSON lines beside a file that tells of
them), the transcripts of Claude Code, the rollouts of Codex, the sessions of Gemini CLI, exports of opencode,
and messages of chat completions, as a JSON list or as JSON lines. Of JSON lines one is in memory at a time;
a document is read whole, and so are the lines of Gemini CLI, which write a message again when it grows. No
link is followed.
"""

from __future__ import annotations

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from itertools import islice, takewhile
from typing import IO, Any, NamedTuple

from mdmem.conversations.log.message import Message
from mdmem.conversations.log.record import DECODER, MOST_VALUES, has_too_much, read_object
from mdmem.document.document import digest
from mdmem.document.moment import moment_of, stamp
from mdmem.document.tree import encoded
from mdmem.errors import StorageFailed, Usage
from mdmem.vault import files
from mdmem.vault.walk import tree

_CHUNK = 1 << 16
_LOOKED_AT = 20  # lines or messages by which a format is known
META, MIGRATED = ".meta.json", ".migrated"
# Lines that Claude Code writes for itself, or for an agent of the agent: nobody said them here.
_NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")
_PEOPLE = ("human", "cli", "channel")  # where a line of Claude Code comes from, if a person typed it
_MOST_LOOKED_BACK = 20  # times that what was imported before is read again for a line
_SPEAKERS = ("user", "human", "assistant", "model", "gemini", "system", "info", "error")
_OF_GEMINI = ("user", "gemini", "info", "error", "warning")
_OF_OPENCODE = ("text", "reasoning", "file", "subtask")  # parts that say something, beside tools
_KEPT = ("type", "text", "synthetic", "filename", "mime", "url", "prompt", "description")
_TIMES = ("timestamp", "created_at", "createdAt", "created", "time", "ts", "date")
_LEAST_SECONDS, _LEAST_MILLISECONDS = 1e8, 1e11  # of a number that is a time


Reader = Callable[[Any], Mapping[str, Any] | None]
"""A function that makes a message of a JSON value; None of one that says nothing."""


class Unreadable(Exception):
    """Why a file, or an entry of it, is not what it should be."""


class TranscriptEntry(NamedTuple):
    """A line of a transcript, or an element of its list, that is not blank.

    Attributes:
        number: how many there are up to this one.
        start, end: where it begins and the next one does: bytes of lines, and elements of a list.
        text: as it is written.
        message: what it says; None where it says nothing.
        fault: why nothing can be read from it.
        value: as it was decoded.
        takes_back: how many turns, or which ids, it takes back.
        own: the id by which an earlier version of the message is known.
        replaces: the id of an earlier version that may be in the history.
    """

    number: int
    start: int
    end: int
    text: str
    message: Mapping[str, Any] | None = None
    fault: str = ""
    value: Any = None
    takes_back: int | tuple[str, ...] = ()
    own: str = ""
    replaces: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation in a file: `read` yields entries from the one that begins at a place and has a number.

    The summary stands for what was said before; `dropped` entries at the start are no longer in the history.
    """

    path: str
    key: str
    format: str
    read: Callable[[int, int], Iterator[TranscriptEntry]]
    summary: str = ""
    aliases: tuple[str, ...] = ()
    dropped: int = 0
    files: tuple[str, ...] = ()


def transcripts(
    form: str, source: str, most: int, left_out: list[str], report: Callable[[Any], Iterator[str]] = iter
) -> Iterator[Transcript]:
    """Yield the conversations in a file, or in every file of a folder, by their paths.

    Args:
        form: one of `FORMATS`; empty if each file says which it has.
        most: bytes of one message beyond which it is not read.
        left_out: is told which file is none, and why.
        report: yields the files, and reports how many are done.
    """
    if form and form not in FORMATS:
        near = ", ".join([each for each in FORMATS if form in each] or get_close_matches(form, FORMATS))
        remedy = f"nearest names: {near}" if near else ""
        raise Usage(problem=f"a format is one of {', '.join(FORMATS)}, not {form!r}", remedy=remedy)
    if not os.path.lexists(source):
        raise Usage(problem=f"{source}: there is no such file or folder")
    paths = sorted(_find_files(source, form)) if os.path.isdir(source) else [source]
    if packed := sum(path.endswith(".zst") for path in paths):
        left_out.append(f"{source}: packed by zstd ({packed:,}); unpack it first, with `zstd -d`")
    for path in report(paths):
        try:
            if not path.endswith(".zst"):
                yield _open_transcript(path, form, most)
        except (Unreadable, StorageFailed) as error:
            left_out.append(f"{path}: {error}" if isinstance(error, Unreadable) else error.message)


def _find_files(folder: str, form: str) -> Iterator[str]:
    suffixes = (".zst", ".jsonl") if form and FORMATS[form].mark else (".zst", ".jsonl", ".json")
    for above, folders, names in tree(folder):
        folders[:] = [name for name in folders if form not in _FLAT and name[0] != "."]
        for name in names:
            if name.endswith(suffixes) and not name.endswith(META) and name[0] != ".":
                yield os.path.join(above, name)


def open_file(path: str) -> IO[bytes]:
    """Return a file of a transcript, to be read; opening it cannot hang, and follows no link."""
    try:
        return open(files.open_regular(path), "rb")
    except OSError as error:
        if os.path.islink(path):
            raise StorageFailed(path=path, action="read it", reason="it is a symbolic link") from None
        raise files.failure(error, path, "read it") from None


# -- what a line, or an element of a list, says ------------------------------------------------------------


def _dict_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _name_format(value: Mapping[str, Any]) -> str:
    kind, keys, has_role = _text_of(value.get("type")), value.keys(), isinstance(value.get("role"), str)
    if isinstance(value.get("info"), dict) and keys & {"parts", "messages"}:
        return "opencode-session"
    is_said = kind in _OF_GEMINI and "content" in keys and not keys & {"role", "message", "uuid"}
    if is_said or keys & {"projectHash", "$set", "$rewindTo"}:
        return "gemini-cli-session"
    is_said = isinstance(value.get("message"), dict) and kind in {"user", "assistant"}
    is_line = kind and not isinstance(value.get("message"), str)
    if is_said or (is_line and keys & {"sessionId", "leafUuid", "attachment", "operation", "snapshot"}):
        return "claude-code-session"
    is_item = (kind == "message" and has_role) or keys & {"record_type", "call_id"}
    if is_item or (kind and isinstance(value.get("payload"), dict)):
        return "codex-session"
    return "openai-messages" if has_role or isinstance(value.get("messages"), list) else ""


def _check_role(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("role"), str) or not value["role"]:
        raise Unreadable("no message: it has no role")
    return value if isinstance(value.get("created_at"), str) else _add_line_fields(value, value)


def _read_claude(value: Any) -> Mapping[str, Any] | None:
    """Read a line of Claude Code; what was typed while it worked is a message of the user."""
    if not isinstance(value, dict):
        raise Unreadable("no line of a transcript")
    kind, said, origin = _text_of(value.get("type")), value.get("message"), value.get("origin")
    if any(value.get(name) for name in _NOT_SAID):
        return None
    if kind == "queue-operation" and value.get("operation") == "enqueue":
        said = {"role": "user", "content": value.get("content")}
    elif kind == "attachment":
        queued = _dict_of(value.get("attachment"))
        is_said = queued.get("type") == "queued_command" and not queued.get("isMeta")
        is_said = is_said and queued.get("commandMode", "prompt") == "prompt"
        said = {"role": "user", "content": queued.get("prompt") if is_said else ""}
        origin = queued.get("origin", origin)
    elif kind not in {"user", "assistant"}:
        return None
    message = {name: each for name, each in _check_role(said).items() if name in {"role", "content", "model"}}
    by = _text_of(_dict_of(origin).get("kind")) or "human"
    if kind in {"user", "assistant"} or (by in _PEOPLE and Message(0, message).spoken.strip()):
        return _add_line_fields(message, value, "uuid", "" if by in _PEOPLE else by)
    return None


def _read_codex(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, dict):
        raise Unreadable("no line of a rollout")
    item, kind = value.get("payload", value), _text_of(value.get("type"))
    if not isinstance(item, dict) or not (kind == "response_item" or ("payload" not in value and kind)):
        return None
    if item.get("type", "message") == "message":
        return _add_line_fields(_check_role(item), value)
    # What only Codex can read has no role, and reasoning says nothing to anybody else.
    is_said = item["type"] != "reasoning" and Message(0, item).role
    return _add_line_fields(item, value) if is_said else None


def _read_gemini(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, dict) or value.get("type") not in _OF_GEMINI:
        raise Unreadable("no message of Gemini CLI")
    content = value.get("content")
    words = [{"text": each} if isinstance(each, str) else each for each in _list_of(content) if each]
    thoughts = [(each.get("subject"), each.get("description")) for each in _dicts_in(value.get("thoughts"))]
    told = ["\n".join(filter(None, map(_text_of, each))) for each in thoughts]
    blocks = [{"type": "thinking", "thinking": each} for each in told] + words
    for call in _dicts_in(value.get("toolCalls")):
        results = [_dict_of(_dict_of(each).get("functionResponse")) for each in _list_of(call.get("result"))]
        outputs = [_dict_of(each.get("response")).get("output", each.get("response")) for each in results]
        answer = outputs[0] if len(outputs) == 1 else outputs or call.get("resultDisplay")
        blocks += _write_call(call.get("id"), call.get("name"), call.get("args"), answer)
    said = content if isinstance(content, str) and blocks == words else blocks
    role = {"user": "user", "gemini": "assistant"}.get(value["type"])
    return _add_line_fields({"role": role, "content": said}, value, "id") if role and blocks else None


def _read_opencode(value: Any) -> Mapping[str, Any] | None:
    """Read a message of opencode: `info`, and `parts` without steps and patches."""
    info, blocks = _dict_of(_dict_of(value).get("info")), list[Mapping[str, Any]]()
    if not isinstance(info.get("role"), str) or not isinstance(value.get("parts"), list):
        raise Unreadable("no message of opencode")
    for part in _dicts_in(value["parts"]):
        if part.get("type") == "tool":
            state = _dict_of(part.get("state"))
            answer = state.get("output", state.get("error"))
            blocks += _write_call(part.get("callID"), part.get("tool"), state.get("input"), answer)
        elif part.get("type") in _OF_OPENCODE and not part.get("ignored"):
            blocks.append({name: part[name] for name in _KEPT if name in part})
    return _add_line_fields({"role": info["role"], "content": blocks}, info, "id") if blocks else None


def _write_call(own: Any, name: Any, asked: Any, answer: Any) -> Iterator[Mapping[str, Any]]:
    yield {"type": "tool_use", "id": own, "name": name, "input": asked}
    if answer is not None:
        yield {"type": "tool_result", "tool_use_id": own, "content": answer}


def read_any(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without a role as it is kept: with the role that Gemini CLI or opencode tell of."""
    read = {"gemini-cli-session": _read_gemini, "opencode-session": _read_opencode}.get(_name_format(value))
    with suppress(Unreadable):
        said = Message.of(0, (read(value) if read else value) or {})
        if said.data and (read or value.get("type") not in _SPEAKERS):
            return {**said.line, **said.data}
    problem = "the role of a message is a text, and nothing says who speaks in this one"
    raise Usage(problem=problem, remedy='give "user", "assistant" or another')


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _dicts_in(values: Any) -> list[dict[str, Any]]:
    return [each for each in _list_of(values) if isinstance(each, dict)]


def _add_line_fields(
    message: Mapping[str, Any], value: Mapping[str, Any], name: str = "", origin: str = ""
) -> Mapping[str, Any]:
    own, model = value.get(name) if name else None, value.get("model", value.get("modelID"))
    given = {"id": own if isinstance(own, str) else "", "created_at": _find_time(value), "origin": origin}
    said = {**message, "model": model} if name == "id" and isinstance(model, str) else message
    return Message(0, said, "", {field: text for field, text in given.items() if text}).written


def _find_time(value: Mapping[str, Any]) -> str:
    for given in map(value.get, _TIMES):
        time = given.get("created", given.get("start")) if isinstance(given, dict) else given
        if isinstance(time, str) and moment_of(time):
            return time
        with suppress(TypeError, ValueError, OverflowError, OSError):
            if (number := float(time or 0)) > _LEAST_SECONDS:
                moment = datetime.fromtimestamp(number / (1000 if number > _LEAST_MILLISECONDS else 1), UTC)
                return stamp(moment, "milliseconds")
    return ""


# -- which conversation a file belongs to ------------------------------------------------------------------


def _choose_format(wanted: str, values: list[dict[str, Any]], beside: str) -> str:
    known = [value for value in values if _name_format(value)]
    told = _name_format(known[0]) if known else ""
    if wanted in _PLAIN and known and all(value.keys() & {"role", "messages"} for value in known):
        return wanted
    if told in _PLAIN and os.path.exists(beside):
        told = "picoclaw"
    if (wanted and values and told != wanted) or not (wanted or told):
        reason = f"it has the format {told}" if told else "nothing in it is of a known format"
        raise Unreadable(f"{reason}, and not {wanted}" if wanted else reason)
    return wanted or told


def _open_transcript(path: str, wanted: str, most: int) -> Transcript:
    (document, values), beside = _look_into(path, most), path.removesuffix(".jsonl") + META
    form = _choose_format(wanted, values, beside)
    program, stem = FORMATS[form], os.path.basename(path).rpartition(".")[0] or os.path.basename(path)
    if document is not None and program.mark:
        raise Unreadable(f"it is one JSON document, and {form} has a line for each message")
    if document is None and form in {"gemini-cli-session", "opencode-session"}:
        document = _merge_lines(_read_lines(path, _read_nothing, most, 0, 1))
    first: Mapping[str, Any] = document if isinstance(document, dict) else (values or [{}])[0]
    info = _dict_of(first.get("info"))
    lines = partial(_read_lines, path, program.read, most)
    read = partial(program.mark, path, lines) if program.mark else lines
    if document is not None:
        messages = first["messages"] if isinstance(document, dict) else document
        reverted = _dict_of(info.get("revert")).get("messageID")
        messages = [*messages, {"$rewindTo": reverted}] if reverted else messages
        read = partial(_read_elements, messages, program.read)
    if program.prefix:  # the files of Claude Code are named after the session
        places = [] if form == "claude-code-session" else [first, _dict_of(first.get("payload")), info]
        ids = [place.get(name) for place in places for name in ("sessionId", "id")]
        stem = f"{program.prefix}:{next((each for each in ids if isinstance(each, str)), stem)}"
    transcript = Transcript(path=path, key=stem, format=form, read=read, files=(path,))
    if form in _PLAIN and document is not None:
        return _add_meta(transcript, first)
    if form == "picoclaw":
        with suppress(StorageFailed), open_file(beside) as file:
            if (meta := read_object(file.read(most))) is not None:
                return _add_meta(replace(transcript, files=(path, beside)), meta)
    return transcript


def _add_meta(transcript: Transcript, meta: Mapping[str, Any]) -> Transcript:
    key, summary = (each if isinstance(each := meta.get(name), str) else "" for name in ("key", "summary"))
    skip, aliases = meta.get("skip"), meta.get("aliases")
    return replace(
        transcript,
        key=key or transcript.key,
        summary=summary,
        aliases=tuple(each for each in aliases if isinstance(each, str)) if isinstance(aliases, list) else (),
        dropped=skip if isinstance(skip, int) else 0,
    )


# -- what lines say of others -----------------------------------------------------------------------------

_Lines = Callable[[int, int], Iterator[TranscriptEntry]]


def _merge_lines(entries: Iterator[TranscriptEntry]) -> dict[str, Any]:
    """Return the document that lines of Gemini CLI or opencode add up to.

    Gemini CLI writes a message again when it grows, and may write all again, shortened (`$set`).
    """
    meta, places, messages = dict[str, Any](), dict[Any, int](), list[Any]()
    for entry in entries:
        value = _dict_of(entry.value) or {"type": entry.fault or "no object"}
        again = _dict_of(value.get("$set")).get("messages")
        for each in map(_dict_of, again if isinstance(again, list) else [value.get("$set", value)]):
            own = each.get("id")
            if own in places:
                messages[places[own]] = messages[places[own]] if again else each
            elif not each.keys() & {"type", "parts", "$rewindTo"}:
                meta |= each
            else:
                if isinstance(own, str):
                    places[own] = len(messages)
                messages.append(each)
    return {**meta, "messages": messages}


class _ThreadPlace(NamedTuple):
    """The place of a line of Claude Code: the line that it follows, who speaks, the response; and a hash."""

    parent: str
    turn: str
    response: Any
    content: int

    def is_other_answer(self, place: _ThreadPlace) -> bool:
        """Return whether both follow the same line in the same role, and belong to two responses."""
        is_beside = self.parent == place.parent and self.turn == place.turn
        return is_beside and self.response != place.response


def _mark_claude(path: str, lines: _Lines, start: int, number: int) -> Iterator[TranscriptEntry]:
    """Give each message of Claude Code once, and mark what its lines take back.

    A prompt behind a line that others follow already takes these back, and another answer the first one;
    parts of one response, and what runs beside it, follow the same line.
    """
    thread, last, looked = dict[str, _ThreadPlace](), "", 0
    for entry in _settle_queued(lines, start, number):
        value, takes_back = _dict_of(entry.value), tuple[str, ...]()
        if not isinstance(own := value.get("uuid"), str) or value.get("isSidechain"):
            yield entry
            continue
        place = _place_of(entry)
        parent, turn = place.parent, place.turn
        is_aside = turn and parent != last and (parent or (turn == "user" and "parentUuid" in value))
        if is_aside and parent not in thread and looked < _MOST_LOOKED_BACK:
            looked += 1
            thread = {**dict(_read_behind(path, lines, parent, start)), **thread}
        if own in thread and thread[own].content == place.content:  # the same line again
            yield entry._replace(message=None)
            continue
        if is_aside:
            # The first prompt has no parent, and nor has what takes its place.
            is_there = parent in thread if parent else any(each.parent in thread for each in thread.values())
            behind = list(takewhile(parent.__ne__, reversed(thread))) if is_there else []
            turns = [at for at, each in enumerate(behind) if thread[each].turn]
            if turn == "assistant":
                turns = [at for at in turns if thread[behind[at]].is_other_answer(place)]
            takes_back = tuple(behind[: turns[-1] + 1]) if turns else ()
        thread[own], last = place, own
        yield entry._replace(takes_back=takes_back)


def _place_of(entry: TranscriptEntry) -> _ThreadPlace:
    value = _dict_of(entry.value)
    said = _dict_of(value.get("message"))
    return _ThreadPlace(_text_of(value.get("parentUuid")), _turn_of(entry), said.get("id"), hash(repr(said)))


def _read_behind(path: str, lines: _Lines, parent: str, end: int) -> Iterator[tuple[str, _ThreadPlace]]:
    with open_file(path) as file:
        data = file.read(end)
    at = data.find(parent.encode("utf-8", "surrogatepass"))
    for entry in lines(data.rfind(b"\n", 0, at) + 1, 1) if at >= 0 else ():
        own = _dict_of(entry.value).get("uuid")
        if entry.start >= end:
            return
        if isinstance(own, str):
            yield own, _place_of(entry)


def _settle_queued(lines: _Lines, start: int, number: int) -> Iterator[TranscriptEntry]:
    """Yield once what was typed while Claude Code worked: where it was sent, else where it was typed.

    What was not sent yet has an id that what is sent later replaces.
    """
    sent: dict[str, list[int]] = {}
    operation, is_read = "", False
    for entry in lines(start, number):
        value, words, replaces = _dict_of(entry.value), _read_sent(entry), ""
        said = Message.of(0, entry.message or {})
        if value.get("type") == "queue-operation" and entry.message:
            for each in () if is_read else lines(entry.end, entry.number + 1):
                sent.setdefault(_read_sent(each), []).append(each.number)
            is_read, typed = True, said.text.strip()
            later = [at for at in sent.get(typed, ()) if at > entry.number]
            sent[typed] = later[1:]
            said = Message(0, {}) if later else said._replace(line={**said.line, "id": _name_queued(typed)})
        elif words and start and (operation == "dequeue" or value.get("type") != "user"):
            replaces = _name_queued(words)
        operation = value.get("operation") or ("" if words else operation)
        yield entry._replace(message=said.written or None, replaces=replaces)


def _read_sent(entry: TranscriptEntry) -> str:
    """Return what a line says was sent that may have been queued, or was taken out of the queue."""
    value = _dict_of(entry.value)
    if value.get("type") == "queue-operation":
        return str(value.get("content") or "").strip() if value.get("operation") == "popAll" else ""
    return Message.of(0, entry.message or {}).text.strip() if _turn_of(entry) == "user" else ""


def _name_queued(words: str) -> str:
    return f"queued:{digest(words.encode('utf-8', 'surrogatepass'))[:16]}"


def _turn_of(entry: TranscriptEntry) -> str:
    """Return who speaks in a line of Claude Code; empty if it answers a call."""
    message = entry.message or {}
    content = message.get("content")
    kinds = [_dict_of(each).get("type") for each in content] if isinstance(content, list) else []
    return "" if "tool_result" in kinds else str(message.get("role", ""))


def _mark_rollbacks(_: str, lines: _Lines, start: int, number: int) -> Iterator[TranscriptEntry]:
    for entry in lines(start, number):
        told = _dict_of(_dict_of(entry.value).get("payload"))
        turns = told.get("num_turns") if told.get("type") == "thread_rolled_back" else 0
        yield entry._replace(takes_back=turns) if type(turns) is int and turns > 0 else entry


# -- what stands in a file --------------------------------------------------------------------------------


def _look_into(path: str, most: int) -> tuple[Any, list[dict[str, Any]]]:
    """Return the one JSON document that a file is, None where it has lines, and the first objects in it."""
    with open_file(path) as file:
        lines = list(islice(filter(bytes.strip, iter(partial(file.readline, most), b"")), _LOOKED_AT))
    values = [_read_line(TranscriptEntry(0, 0, 0, ""), line, _read_nothing).value for line in lines]
    document, head = None, _dict_of((values or [None])[0])
    if not head or isinstance(head.get("messages"), list) or (path.endswith(".json") and len(lines) == 1):
        with nullcontext() if path.endswith(".json") else suppress(Unreadable):
            whole = _read_document(path, most)
            messages = whole.get("messages") if isinstance(whole, dict) else whole
            if not isinstance(messages, list):
                raise Unreadable("it has no list of messages")
            document, values = whole, [whole, *messages[:_LOOKED_AT]]
    return document, [value for value in values if isinstance(value, dict)]


def _read_nothing(_: Any) -> None:
    return None


def _read_lines(path: str, reader: Reader, most: int, start: int, number: int) -> Iterator[TranscriptEntry]:
    with open_file(path) as file:
        file.seek(start)
        while line := file.readline(most):
            end, piece = start + len(line), line
            while not piece.endswith(b"\n") and len(line) == most and (piece := file.readline(_CHUNK)):
                end += len(piece)
            entry = TranscriptEntry(number, start, end, "")
            if len(line) == most and not line.endswith(b"\n"):
                yield entry._replace(fault=f"longer than {most:,} bytes")
            elif line.strip():
                entry = _read_line(entry, line, reader)
                # What has no line end is still being written, unless it is whole.
                if entry.fault and not line.endswith(b"\n"):
                    return
                yield entry
            number, start = number + bool(line.strip()), end


def _read_line(entry: TranscriptEntry, line: bytes, reader: Reader) -> TranscriptEntry:
    entry = entry._replace(text=line.decode("utf-8", "replace"))
    try:
        entry = entry._replace(value=DECODER.decode(line.decode("utf-8-sig")))
        return entry._replace(message=reader(entry.value))
    except UnicodeDecodeError:
        return entry._replace(fault="not UTF-8")
    except (Unreadable, ValueError, RecursionError) as error:
        return entry._replace(fault=str(error) if isinstance(error, Unreadable) else "not JSON")


def _read_document(path: str, most: int) -> Any:
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most or has_too_much(data):
        reason = f"longer than {most:,} bytes, or more than {MOST_VALUES:,} values"
        raise Unreadable(f"{reason}; write one message a line, in a file that ends in .jsonl")
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as PowerShell redirects
    try:
        return DECODER.decode(data.decode("utf-16" if is_wide else "utf-8-sig"))
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {error}") from None


def _read_elements(
    messages: list[Any], reader: Reader, start: int, _number: int
) -> Iterator[TranscriptEntry]:
    ids = [*map(_id_of, messages)]
    counts = Counter(ids)
    for at, value in enumerate(messages[start:], start):
        back, own = _dict_of(value).get("$rewindTo"), ids[at]
        behind = ids[ids.index(back, 0, at) if back in ids[:at] else 0 : at] if back else []
        entry = TranscriptEntry(at + 1, at, at + 1, "", own=own if counts[own] == 1 else "")
        try:
            entry = entry._replace(text=encoded(value), takes_back=tuple(behind))
            yield entry._replace(message=None if back else reader(value))
        except (Unreadable, RecursionError) as error:
            yield entry._replace(fault=str(error))


def _id_of(value: Any) -> str:
    """Return the id by which a program that writes a message again knows it; empty without one."""
    own = _dict_of(_dict_of(value).get("info", value)).get("id")
    return own if isinstance(own, str) and _name_format(value) not in _PLAIN else ""


class _Form(NamedTuple):
    """A format: the reader of its messages, the prefix of its keys, and `mark`, which reads all lines.

    Only a format that is read line by line has `mark`; the others may also be one JSON document.
    """

    read: Reader
    prefix: str = ""
    mark: Callable[[str, _Lines, int, int], Iterator[TranscriptEntry]] | None = None


_PLAIN, _FLAT = {"picoclaw", "openai-messages"}, {"picoclaw", "openai-messages", "claude-code-session"}
FORMATS = {
    "picoclaw": _Form(_check_role),
    "claude-code-session": _Form(_read_claude, "claude-code", _mark_claude),
    "codex-session": _Form(_read_codex, "codex", _mark_rollbacks),
    "gemini-cli-session": _Form(_read_gemini, "gemini-cli"),
    "opencode-session": _Form(_read_opencode, "opencode"),
    "openai-messages": _Form(_check_role),
}
"""The formats of transcripts, by name."""
