"""Conversations as other programs write them, read message by message; nothing is written here.

Known are the files of picoclaw (a JSON document for each session, or JSON lines beside a file that tells of
them), the transcripts of Claude Code, the rollouts of Codex, and messages of chat completions, as a JSON list
or as JSON lines. Of JSON lines one is in memory at a time; a document is read whole. No link is followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import IO, Any, NamedTuple

from mdmem.errors import StorageFailed, Usage
from mdmem.sessions.message import Message
from mdmem.sessions.parts import encoded
from mdmem.sessions.record import DECODER, MOST_VALUES, has_too_much, read_object
from mdmem.vault import files
from mdmem.vault.walk import tree

_CHUNK = 1 << 16
# Lines that Claude Code writes for itself, or for an agent of the agent: nobody said them here.
_NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")
_NOT_KEPT = {"reasoning", "ghost_snapshot", "compaction"}  # items of Codex that only it can read
META, MIGRATED = ".meta.json", ".migrated"


Reader = Callable[[Any], Mapping[str, Any] | None]
"""A function that makes a message of a JSON value; None of one that says nothing."""


class TranscriptEntry(NamedTuple):
    """A line of a transcript, or an element of its list, that is not blank.

    Attributes:
        number: how many there are up to this one.
        start, end: where it begins and the next one does: bytes of lines, and elements of a list.
        text: as it is written.
        message: what it says; None where it says nothing.
        fault: why nothing can be read from it.
    """

    number: int
    start: int
    end: int
    text: str
    message: Mapping[str, Any] | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A conversation in a file.

    Attributes:
        path: of the file.
        key: of the session that it becomes.
        read: its entries, from one that begins at `start` and has this number.
        summary: the text that stands for what was said before.
        aliases: other keys of the session.
        dropped: how many of the first entries are no longer in the history.
        files: what it consists of.
    """

    path: str
    key: str
    read: Callable[[int, int], Iterator[TranscriptEntry]]
    summary: str = ""
    aliases: tuple[str, ...] = ()
    dropped: int = 0
    files: tuple[str, ...] = ()


class Unreadable(Exception):
    """Why a file, or an entry of it, is not what it should be."""


def transcripts(form: str, source: str, most: int, left_out: list[str]) -> Iterator[Transcript]:
    """Yield the conversations in a file, or in every file of a folder, by their paths.

    Args:
        form: one of `FORMATS`.
        source: the file or folder.
        most: bytes of one message beyond which it is not read.
        left_out: is told which file is none, and why.

    Raises:
        Usage: there is no such format, or nothing at the path.
        StorageFailed, SystemFailing: the source cannot be read.
    """
    if form not in FORMATS:
        near = ", ".join(get_close_matches(form, FORMATS))
        remedy = f"nearest names: {near}" if near else ""
        raise Usage(problem=f"a format is one of {', '.join(FORMATS)}, not {form!r}", remedy=remedy)
    if not os.path.lexists(source):
        raise Usage(problem=f"{source}: there is no such file or folder")
    known = FORMATS[form]
    for path in sorted(_find_files(source, known)) if os.path.isdir(source) else [source]:
        try:
            yield known.transcript(path, most)
        except (Unreadable, StorageFailed) as error:
            left_out.append(f"{path}: {error}" if isinstance(error, Unreadable) else error.message)


def _find_files(folder: str, form: _Form) -> Iterator[str]:
    for above, folders, names in tree(folder):
        folders[:] = [name for name in folders if form.is_nested and name[0] != "."]
        for name in names:
            if name.endswith(form.suffixes) and not name.endswith(META) and name[0] != ".":
                yield os.path.join(above, name)


def open_file(path: str) -> IO[bytes]:
    """Return a file of a transcript, to be read; opening it cannot hang, and follows no link.

    Raises:
        StorageFailed, SystemFailing: it is not a regular file, or cannot be read.
    """
    try:
        return open(files.open_regular(path), "rb")
    except OSError as error:
        if os.path.islink(path):
            raise StorageFailed(path=path, action="read it", reason="it is a symbolic link") from None
        raise files.failure(error, path, "read it") from None


# -- what the entries of each program say -----------------------------------------------------------------


def _check_role(value: Any) -> Mapping[str, Any]:
    """Return a message as chat completions and picoclaw write it."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str) or not value["role"]:
        raise Unreadable("no message: it has no role")
    return value


def _read_claude(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, dict):
        raise Unreadable("no line of a transcript")
    if value.get("type") not in {"user", "assistant"} or any(value.get(name) for name in _NOT_SAID):
        return None
    message = _check_role(value.get("message"))
    kept = {name: message[name] for name in ("role", "content", "model") if name in message}
    return _add_line_fields(kept, value, "uuid")


def _read_codex(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, dict):
        raise Unreadable("no line of a rollout")
    item = value.get("payload") if "payload" in value else value
    if not isinstance(item, dict) or value.get("type") == "session_meta":
        return None
    is_item = "payload" not in value or value.get("type") == "response_item"
    kind = item.get("type")
    if not is_item or not isinstance(kind, str) or kind in _NOT_KEPT:
        return None
    return _add_line_fields(_check_role(item) if kind == "message" else item, value)


def _add_line_fields(
    message: Mapping[str, Any], value: Mapping[str, Any], name: str = ""
) -> Mapping[str, Any]:
    given = {"id": value.get(name), "created_at": value.get("timestamp")}
    line = {field: text for field, text in given.items() if isinstance(text, str) and text}
    return Message(0, message, "", line).written


# -- whose conversation a file is -------------------------------------------------------------------------


def _open_claude(path: str, most: int) -> Transcript:
    return _open_lines(path, most, _read_claude, f"claude-code:{_file_stem(path)}")


def _open_codex(path: str, most: int) -> Transcript:
    transcript = _open_lines(path, most, _read_codex, f"codex:{_file_stem(path)}")
    first = next(transcript.read(0, 1), None)
    value = read_object(first.text.encode()) if first else None
    meta = (value or {}).get("payload", value)
    key = meta.get("id") if isinstance(meta, dict) else None
    return replace(transcript, key=f"codex:{key}") if isinstance(key, str) else transcript


def _open_openai(path: str, most: int) -> Transcript:
    return _open_lines(path, most) if path.endswith(".jsonl") else _open_document(path, most)


def _open_picoclaw(path: str, most: int) -> Transcript:
    if not path.endswith(".jsonl"):
        return _open_document(path, most)
    transcript, beside, meta = _open_lines(path, most), path.removesuffix(".jsonl") + META, None
    with suppress(StorageFailed), open_file(beside) as file:
        meta = read_object(file.read(most))
    if meta is None:
        return transcript
    skip, aliases = meta.get("skip"), meta.get("aliases")
    return replace(
        _add_meta(transcript, meta),
        aliases=tuple(each for each in aliases if isinstance(each, str)) if isinstance(aliases, list) else (),
        dropped=skip if isinstance(skip, int) else 0,
        files=(path, beside),
    )


def _add_meta(transcript: Transcript, meta: Mapping[str, Any]) -> Transcript:
    key, summary = (each if isinstance(each := meta.get(name), str) else "" for name in ("key", "summary"))
    return replace(transcript, key=key or transcript.key, summary=summary)


def _file_stem(path: str) -> str:
    return os.path.basename(path).rpartition(".")[0] or os.path.basename(path)


# -- what stands in a file --------------------------------------------------------------------------------


def _open_lines(path: str, most: int, reader: Reader = _check_role, key: str = "") -> Transcript:
    open_file(path).close()  # what cannot be read is left out here, and does not end the import of a folder
    read = partial(_read_lines, path, reader, most)
    return Transcript(path=path, key=key or _file_stem(path), read=read, files=(path,))


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
        return entry._replace(message=reader(DECODER.decode(line.decode())))
    except UnicodeDecodeError:
        return entry._replace(fault="not UTF-8")
    except (Unreadable, ValueError, RecursionError) as error:
        return entry._replace(fault=str(error) if isinstance(error, Unreadable) else "not JSON")


def _open_document(path: str, most: int) -> Transcript:
    """Read a conversation in one JSON document: a list of messages, or an object that has one."""
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most or has_too_much(data):
        reason = f"longer than {most:,} bytes, or more than {MOST_VALUES:,} values"
        raise Unreadable(f"{reason}; write one message a line, in a file that ends in .jsonl")
    try:
        value = DECODER.decode(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON: {error}") from None
    meta = value if isinstance(value, dict) else {"messages": value}
    if not isinstance(messages := meta.get("messages"), list):
        raise Unreadable("it has no list of messages")
    read = partial(_read_elements, messages)
    return _add_meta(Transcript(path=path, key=_file_stem(path), read=read, files=(path,)), meta)


def _read_elements(messages: list[Any], start: int, _number: int) -> Iterator[TranscriptEntry]:
    for at, value in enumerate(messages[start:], start):
        entry = TranscriptEntry(at + 1, at, at + 1, "")
        try:
            entry = entry._replace(text=encoded(value))
            yield entry._replace(message=_check_role(value))
        except (Unreadable, RecursionError) as error:
            yield entry._replace(fault=str(error))


class _Form(NamedTuple):
    """A format: what reads a file, how names of such files end, and whether folders hold them in folders."""

    transcript: Callable[[str, int], Transcript]
    suffixes: tuple[str, ...]
    is_nested: bool = False


FORMATS = {
    "picoclaw": _Form(_open_picoclaw, (".jsonl", ".json")),
    "claude-code-session": _Form(_open_claude, (".jsonl",)),
    "codex-session": _Form(_open_codex, (".jsonl",), is_nested=True),
    "openai-messages": _Form(_open_openai, (".jsonl", ".json")),
}
"""The formats of transcripts, by name."""
