"""Ranked search in conversations: a text index of its own, made current by each question.

Each message, and each summary, is in it what a memory is in the other one. How far a log was read stands
beside the index. Where the log has not only grown since, as a session that was made again, it is read from
its start.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from mdmem.conversations.find.find import (
    SessionFilter,
    SessionHit,
    SessionHits,
    explain_missed,
    read_text,
    snippet,
)
from mdmem.conversations.log.conversation import LogPosition
from mdmem.conversations.log.logs import FOLDER, SUFFIX, SessionLogs
from mdmem.diagnostic import Span
from mdmem.document.moment import moment_of
from mdmem.errors import (
    IndexDamaged,
    LimitReached,
    MdmemError,
    MemoryNotFound,
    PathRefused,
    SessionConflict,
    StorageFailed,
)
from mdmem.index import passages
from mdmem.index.passages import Indexed, Passage
from mdmem.index.query import parse
from mdmem.index.scoring import Ranked, Scorer
from mdmem.index.text_index import TextIndex, TextView
from mdmem.vault import files
from mdmem.vault.paths import Namespace, join

_INDEX, _TEXT, _POSITIONS, _LOCK = "sessions_index", "text", "positions.json", "lock"
_LOCK_SECONDS = 600.0  # a first run over very long logs may take minutes; the others wait for it
_TRIES = 5  # to make an index that can be searched
_MOST = 20_000  # messages that are looked at, and are dropped or do not fit
_UNREADABLE = (LimitReached, PathRefused, SessionConflict, StorageFailed)
_EVERYTHING = SessionFilter(dropped=True)
_PASSAGE = re.compile(r"(?s).{1,4000}(?:\s|\Z)|.{1,4000}")


class IndexedLog(NamedTuple):
    """How far a log is indexed: the last number, what tells the file from others, and the place in bytes."""

    seq: int
    file: str
    position: LogPosition


def search(logs: SessionLogs, query: str, key: str | None, asked: SessionFilter, limit: int) -> SessionHits:
    """Find what fits a query best in a session; without a key in all of the namespace.

    Of the query's filters (`mdmem.index.query`), `type:` is the role.
    """
    with logs.vault.store.steady():
        key = key and logs.resolve(key)
        logs.vault.recover()  # which may remove the index
        left = _TRIES
        while True:
            folder, was = "", None
            try:
                folder = logs.vault.disk.own(_INDEX)
                was = _identify(folder)
                return _search_index(logs, folder, query, key, asked, limit)
            except (IndexDamaged, MemoryNotFound, StorageFailed) as error:
                # Another process removes the whole folder when something in the vault is erased.
                if folder and (was is None or _identify(folder) != was):
                    continue
                left -= 1
                if not left or (folder and not isinstance(error, IndexDamaged)):
                    raise
            if folder:
                with contextlib.suppress(StorageFailed), files.held(join(folder, _LOCK), _LOCK_SECONDS):
                    shutil.rmtree(join(folder, _TEXT), ignore_errors=True)


def _identify(folder: str) -> tuple[int, int] | None:
    """Return what tells a folder from another one of its name; None where there is none."""
    found = files.status_of(folder, follows=True)
    return (found.st_dev, found.st_ino) if found else None


def _search_index(
    logs: SessionLogs, folder: str, query: str, key: str | None, asked: SessionFilter, limit: int
) -> SessionHits:
    index, missed = _update_index(logs, folder, key)
    understood = parse(query)
    # The wall is around the one session, or those of the bound thread: no score or count tells of others.
    paths = [logs.path(key)] if key is not None else [join(logs.vault.namespace, FOLDER)]
    paths = [*logs.paths()] if key is None and logs.vault.wall.keeps else paths
    if understood.is_empty or not paths:
        return SessionHits(hits=(), notes=understood.notes)
    walls = [Namespace(path.removesuffix(SUFFIX)) for path in paths]
    scorer = Scorer(TextView(index, walls), understood, (), int(f"{datetime.now(UTC):%Y%m%d}"))
    words = [*understood.words, *(run[0] for term in understood.prefixes for run in term.runs)]
    hits: list[SessionHit] = []
    left_out = looked_at = 0
    for block in scorer.rank("memory"):
        rest = iter(block.ranked)
        hits += islice(_read_hits(logs, scorer, rest, words, asked), limit - len(hits))
        left_out, looked_at = len([*rest]) + block.further, looked_at + len(block.ranked)
        # What was dropped, or is not looked at, stands among the best.
        if len(hits) == limit or looked_at - len(hits) >= _MOST:
            break
    notes = (*scorer.notes, *explain_missed(missed))
    return SessionHits(hits=tuple(hits), left_out=left_out, notes=notes)


def _read_hits(
    logs: SessionLogs, scorer: Scorer, best: Iterable[Ranked], words: list[str], asked: SessionFilter
) -> Iterator[SessionHit]:
    """Yield the hits at some places of the index, as their logs have them now."""
    for ranked in best:
        path, _, number = scorer.paths([ranked])[0].rpartition("/")
        with contextlib.suppress(*_UNREADABLE), logs.at(path + SUFFIX) as conversation:
            text = read_text(conversation, int(number), asked) if conversation else None
            if conversation and text:
                lower = text.snippet.lower()
                start = min((at for word in words if (at := lower.find(word)) >= 0), default=0)
                yield replace(text, snippet=snippet(text.snippet, start), score=ranked.score)


# -- making the index current -----------------------------------------------------------------------------


def _update_index(logs: SessionLogs, folder: str, key: str | None) -> tuple[TextIndex, list[MdmemError]]:
    """Update the index from the log of a key, or without one from all of the namespace, and open it.

    And why logs cannot be read, or are too large for it, where it is not the only one.
    """
    missed: list[MdmemError] = []
    with files.translated(_INDEX, "write it"), files.held(os.path.join(folder, _LOCK), _LOCK_SECONDS):
        update = _Update(logs, folder)
        for path in logs.paths() if key is None else [logs.path(key)]:
            try:
                update.look_at(path, unasked=key is None)
            except _UNREADABLE as error:
                if key is not None:
                    raise
                missed.append(error)
        update.end()
        update.index.refresh()
        return update.index, missed


class _Update:
    """What makes the index current; nobody else writes it meanwhile."""

    def __init__(self, logs: SessionLogs, folder: str) -> None:
        self._logs, self._positions = logs, os.path.join(folder, _POSITIONS)
        self._is_writing = False
        self.index = TextIndex(os.path.join(folder, _TEXT))
        self._known = self._load_positions()

    def _load_positions(self) -> dict[str, IndexedLog]:
        """Load how far the logs are indexed; where nothing says it, as after a kill, empty the index."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            with open(self._positions, "rb") as file:
                kept = json.load(file)
            if kept["commit"] == self.index.opstamp:
                return {
                    path: IndexedLog(seq, file, LogPosition(tuple(identity), size, tail))
                    for path, (seq, file, (identity, size, tail)) in kept["logs"].items()
                }
        self.index.clear()
        return {}

    def look_at(self, path: str, *, unasked: bool) -> None:
        """Index what a log says that is not indexed yet; what stood at the path before is dropped."""
        known, file = self._known.get(path), _identify_file(os.path.join(self._logs.vault.root, path))
        if known and file and known.file == file:
            return
        with self._logs.at(path, unasked=unasked) as conversation:
            if conversation is None or not (known and known.position.begins(conversation.log)):
                self._remove_log(path)
                known = None
            if conversation:
                for records in conversation.record_blocks(known.seq + 1 if known else 1):
                    self._mark_writing()
                    for text in _EVERYTHING.texts_of(conversation, records):
                        self._add_text(f"{path.removesuffix(SUFFIX)}/{text.seq}", text)
                self._known[path] = IndexedLog(conversation.state.seq, file, conversation.position)

    def _add_text(self, place: str, text: SessionHit) -> None:
        time = moment_of(text.time)
        # Half of a character, as JSON has it where somebody cut it, is one that no UTF-8 can carry.
        said, role = (each.encode(errors="replace").decode() for each in (text.snippet, text.role))
        parts = [passages.written_out(part) for part in _PASSAGE.findall(said)] or [""]
        self.index.add(
            Indexed(
                path=place,
                title="",
                headings=(),
                tags=(),
                aliases=(),
                type=role,
                day=int(f"{time:%Y%m%d}") if time else 0,
                confidence=1.0,
                text="\n".join(parts),
                passages=tuple(Passage(Span(0, 0), 1, 1, (), part) for part in parts),
            )
        )

    def _remove_log(self, path: str) -> None:
        if self._known.pop(path, None):
            self._mark_writing()
            self.index.remove_below(path.removesuffix(SUFFIX))

    def _mark_writing(self) -> None:
        if not self._is_writing:
            self._is_writing = True
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._positions)

    def end(self) -> None:
        if self._is_writing:
            commit = self.index.commit()
            with open(f"{self._positions}.new", "w", encoding="utf-8") as file:
                json.dump({"commit": commit, "logs": self._known}, file)
            os.replace(f"{self._positions}.new", self._positions)


def _identify_file(path: str) -> str:
    """Write what tells a file from others, and from itself once it changed; empty without a file."""
    status = files.status_of(path)
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_ctime_ns}" if status else ""
