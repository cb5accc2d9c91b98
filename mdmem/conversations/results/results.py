"""Outputs of tools: a short form of each for the reader, and every byte of it when it is asked for."""

from __future__ import annotations

import builtins
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from mdmem.conversations.results.database import (
    NamespaceResults,
    ResultDatabase,
    ResultReference,
    StoredResult,
    SweptResults,
)
from mdmem.conversations.results.named import CONTEXT, LONGEST, TYPES, Named, NamedReference, named
from mdmem.conversations.results.shorten import redacted, shortened
from mdmem.document.arguments import check_natural, complete_id
from mdmem.document.document import digest
from mdmem.document.secret import masked
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, in_line
from mdmem.errors import ConfigInvalid, MdmemError, NamedNotFound, StorageFailed, Usage
from mdmem.vault.local_store import LOCAL
from mdmem.vault.vault import Vault

T = TypeVar("T")

_FOLDER = "results"
_WHERE = f"{LOCAL}/{_FOLDER}"
_HASH = regex(r"[0-9a-f]{8,64}")
_SHOWN = 16  # digits of a hash in a hint
_LONGEST_TOOL, _LONGEST_SESSION = 100, 1_000  # characters
_LONGEST_TARGET = 10_000
_RANGE = regex(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_MOST_BYTES = 900_000_000  # SQLite holds no more than 1,000,000,000 in one row
_MOST_USED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedResult:
    """The output of a tool in short.

    Attributes:
        summary: the short form, or the output itself where that is short.
        references: what the output names.
        hash: the SHA-256 of the output.
        original_length: characters of the output.
        ratio: characters of the summary for each of the output.
        tool: the tool that printed it.
        recoverable: whether `recover` gives the output.
        rest: how to get what the summary leaves out; else why nobody can.
        warnings: secrets that were taken out, bytes that are no text, names not looked for.
    """

    summary: str
    references: tuple[NamedReference, ...]
    hash: str
    original_length: int
    ratio: float
    tool: str
    recoverable: bool
    rest: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoverable:
    """Whether an output is kept.

    Attributes:
        hash: as it was asked for, or all of it where it is known.
        recoverable: whether `recover` gives it: its bytes were read, and are what was stored.
        gone: when it was swept; empty where it was not, or is not known.
    """

    hash: str
    recoverable: bool
    gone: str = ""

    def __bool__(self) -> bool:
        return self.recoverable


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultStats:
    """References and outputs in numbers; `added` counts references that were new in the last hour."""

    total: int
    by_type: dict[str, int]
    most_used: tuple[ResultReference, ...]
    added: int
    outputs: int
    bytes: int


class ToolResults:
    """The outputs of tools that one namespace has stored. Another one cannot tell that they are there.

    With a `session`, a question is about what that session has stored, and nothing else exists.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def compress(self, tool: str, output: str | bytes, session: str | None = None) -> CompressedResult:
        """Return the short form of an output, which is stored first.

        One of less than `min_length` characters (config, [results]) is given back as it is and not stored,
        where it has neither secrets nor bytes that are no text.

        Args:
            tool: its name, such as `Bash`, `Read`, `Grep`, `Glob` or `WebFetch`.
            output: what it printed.
            session: the key of the conversation that it belongs to.

        Raises:
            Usage: a session that cannot be a key.
            ConfigInvalid: the config cannot be read.
        """
        tool, session = _check_tool(tool), _check_session(session) or ""
        data = output.encode("utf-8", "surrogatepass") if isinstance(output, str) else output
        text = data.decode("utf-8", "replace")
        is_text = text.encode() == data
        settings = self._vault.config.results
        is_long = len(text) >= settings.min_length
        short = shortened(tool, text, settings.max_summary) if is_long else redacted(text)
        hash_, found, warnings = digest(data), Named(()), list[str]()
        if is_long or not is_text or short.secrets:
            found = named(text)
            problem = self._store_output(tool, session, hash_, data, found.references)
            rest = f"it is not kept: {problem}" if problem else _how_to_recover(hash_, short.gaps)
        else:
            problem = rest = "it is short: it is unchanged, and not stored"
        if not is_text:
            warnings.append("it has bytes that are no UTF-8, which stand here as \ufffd")
        warnings += [f"a secret ({kind}) was taken out of the short form" for kind in short.secrets]
        if found.left_out:
            warnings.append(f"it names {found.left_out:,} more, which are left out")
        if found.unread:
            warnings.append(f"names were not looked for in {found.unread:,} characters in its middle")
        return CompressedResult(
            summary=short.text,
            references=found.references,
            hash=hash_,
            original_length=len(text),
            ratio=len(short.text) / max(1, len(text)),
            tool=tool,
            recoverable=not problem,
            rest=rest,
            warnings=tuple(warnings),
        )

    def _store_output(
        self, tool: str, session: str, hash_: str, data: bytes, references: Sequence[NamedReference]
    ) -> str:
        settings = self._vault.config.results
        most = min(settings.max_bytes, _MOST_BYTES)
        problem = "" if len(data) <= most else f"it has {len(data):,} bytes, and {most:,} may be kept"

        def change(results: NamespaceResults) -> None:
            if not problem:
                results.store(hash_, data, session, tool)
            results.register(references, session, tool)
            results.sweep(settings, keep=hash_)

        try:
            self._change_results(change)
        except ConfigInvalid:
            raise
        except MdmemError as error:
            return error.message
        return problem

    def recover(
        self,
        hash: str,  # noqa: A002 - the field's name
        lines: str | Sequence[int] | None = None,
        session: str | None = None,
    ) -> bytes:
        """Return the bytes of an output, exactly as they were given, checked against their hash.

        Args:
            hash: its SHA-256, or 8 digits of it or more.
            lines: only these, with their ends: `"10-20"`, `"10"` or a first and a last number, from 1 on.

        Raises:
            Usage: no hash, several outputs that begin so, or lines that it has not.
            NamedNotFound: it is not kept; where it was swept, with the time.
            StorageFailed: it cannot be read.
        """
        wanted, digits = _parse_lines(lines), _check_hash(hash)
        found, data = self._find_output(digits, _check_session(session))
        if data is None:
            gone = f"it was swept at {found.gone}: run the tool again" if found.gone else ""
            remedy = gone or "see `mdmem results list`"
            raise NamedNotFound(code="result-not-found", kind="result", name=digits, remedy=remedy)
        if not found:
            reason = "its bytes are not those that were stored"
            raise StorageFailed(path=_WHERE, action=f"recover {digits}", reason=reason)
        with contextlib.suppress(MdmemError):  # a vault that cannot be written to can be read
            self._change_results(lambda results: results.use_output(found.hash))
        return _cut_lines(data, *wanted) if wanted else data

    def can_recover(self, hash: str, session: str | None = None) -> Recoverable:  # noqa: A002 - as above
        """Return whether `recover` gives an output, and of one that was swept, when that was.

        Args:
            hash: its SHA-256, or 8 digits of it or more.

        Raises:
            Usage: no hash, or several outputs that begin so.
        """
        return self._find_output(_check_hash(hash), _check_session(session))[0]

    def _find_output(self, digits: str, session: str | None) -> tuple[Recoverable, bytes | None]:
        """Find the one output with a hash that begins so, and its bytes; None if it is not kept."""

        def ask(results: NamespaceResults) -> tuple[Recoverable, bytes | None]:
            hashes = results.find_hashes(digits, session)
            if len(hashes) > 1:
                complete_id("result", digits, hashes)
            if hashes:
                data = results.read_content(hashes[0])
                return Recoverable(hash=hashes[0], recoverable=digest(data) == hashes[0]), data
            hash_, gone = results.find_removed(digits, session) or (digits, "")
            return Recoverable(hash=hash_, recoverable=False, gone=gone), None

        return self._ask_results(ask) or (Recoverable(hash=digits, recoverable=False), None)

    def list(self, session: str | None = None, tool: str | None = None) -> builtins.list[StoredResult]:
        """Return the outputs that are kept, the oldest first."""
        session, tool = _check_session(session), None if tool is None else _check_tool(tool)
        return self._ask_results(lambda results: results.list_outputs(session, tool)) or []

    def references(
        self,
        type: str | None = None,  # noqa: A002 - the field's name
        session: str | None = None,
        tool: str | None = None,
        limit: int | None = None,
    ) -> builtins.list[ResultReference]:
        """Return what outputs name, in the order in which it was found first.

        Args:
            type: only these (`mdmem.conversations.results.named.TYPES`).
            tool: only what this one printed.
            limit: as many as were used last, the last one first.

        Raises:
            Usage: there is no such type, or `limit` is negative.
        """
        check_natural(limit=limit or 0)
        return self._list_references(type, session, tool, limit=limit)

    def register(
        self,
        type: str,  # noqa: A002 - the field's name
        value: str,
        context: str = "",
        session: str | None = None,
        tool: str | None = None,
    ) -> builtins.list[ResultReference]:
        """Keep a reference that the caller found itself; one that is known counts once more.

        Args:
            value: a path, a path with `#L10-L23`, a URL, or a name.
            context: the line in which it stands; its first 120 characters are kept.

        Raises:
            Usage: there is no such type, or the value is blank, too long, or holds a secret.
        """
        _check_type(type)
        name = in_line(masked(_storable(value)))
        if not name or name != in_line(value) or len(name) > LONGEST:
            problem = f"{clipped(value, _LONGEST_TOOL)!r} cannot be kept as a reference"
            raise Usage(
                problem=problem, remedy=f"give a name of at most {LONGEST} characters, without secrets"
            )
        reference = NamedReference(type, name, in_line(masked(_storable(context))[:CONTEXT]))
        own, tool = _check_session(session) or "", "" if tool is None else _check_tool(tool)
        settings = self._vault.config.results

        def change(results: NamespaceResults) -> None:
            results.register([reference], own, tool)
            results.sweep(settings)

        self._change_results(change)
        return [each for each in self.lookup(name, type, session) if each.value == name]

    def lookup(
        self,
        target: str,
        type: str | None = None,  # noqa: A002 - the field's name
        session: str | None = None,
    ) -> builtins.list[ResultReference]:
        """Return the references to one thing.

        Args:
            target: as `references` names it, or the end of its path, without the folders in front.
        """
        return self._list_references(type, session, ending=_storable(target))

    def mark(
        self,
        target: str,
        type: str | None = None,  # noqa: A002 - the field's name
        session: str | None = None,
    ) -> builtins.list[ResultReference]:
        """Count a reference as used now; the others are swept before it.

        Args:
            target, type, session: as `lookup` takes them; the whole name.

        Raises:
            NamedNotFound: there is no such reference.
        """
        _check_type(type)
        target = _storable(target)
        columns = {"type": type, "session": _check_session(session), "value": target}
        found = self.lookup(target, type, session)
        if not found or not self._change_results(lambda results: results.use_reference(**columns)):
            near = tuple(each.value for each in found)
            raise NamedNotFound(kind="reference", name=clipped(target, _LONGEST_TOOL), near=near)
        return [each for each in self.lookup(target, type, session) if each.value == target]

    def _list_references(
        self, type_: str | None, session: str | None, tool: str | None = None, **wanted: Any
    ) -> builtins.list[ResultReference]:
        _check_type(type_)
        columns = {"type": type_, "session": _check_session(session)}
        columns["tool"] = None if tool is None else _check_tool(tool)
        return self._ask_results(lambda results: results.list_references(columns, **wanted)) or []

    def stats(self, session: str | None = None) -> ResultStats:
        """Count references and outputs."""
        rows = self._list_references(None, session)
        sizes = {each.hash: each.size for each in self.list(session)}
        since = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
        counts = {type_: sum(row.type == type_ for row in rows) for type_ in TYPES}
        return ResultStats(
            total=len(rows),
            by_type={type_: count for type_, count in counts.items() if count},
            most_used=tuple(sorted(rows, key=lambda row: -row.count)[:_MOST_USED]),
            added=sum(row.created >= since for row in rows),
            outputs=len(sizes),
            bytes=sum(sizes.values()),
        )

    def sweep(self, max_age: float | None = None, *, dry_run: bool = False) -> SweptResults:
        """Remove outputs and references that nobody has used for so long.

        Args:
            max_age: in days; `max_days` of the config without.
            dry_run: only count them.

        Raises:
            LockTimeout, StorageFailed: it cannot be done now.
        """
        days = self._vault.config.results.max_days if max_age is None else max_age
        if not days >= 0:
            raise Usage(problem=f"max_age is {days:g}", remedy="give a number of days, 0 or more")
        if not self._has_folder:
            return SweptResults()
        if dry_run:
            return self._ask_results(lambda results: results.count_expired(days)) or SweptResults()
        return self._change_results(lambda results: results.expire(days))

    @property
    def _has_folder(self) -> bool:
        self._vault.require_folder("keeping the outputs of tools")
        return os.path.isdir(os.path.join(self._vault.disk.root, _WHERE))

    def _change_results(self, change: Callable[[NamespaceResults], T]) -> T:
        return self._open_database().write(lambda c: change(NamespaceResults(c, self._vault.namespace)))

    def _ask_results(self, ask: Callable[[NamespaceResults], T]) -> T | None:
        # What only reads makes nothing, not even a folder.
        if not self._has_folder:
            return None
        return self._open_database().read(lambda c: ask(NamespaceResults(c, self._vault.namespace)))

    def _open_database(self) -> ResultDatabase:
        self._vault.require_folder("keeping the outputs of tools")
        self._vault.enter()
        return ResultDatabase(self._vault.disk.own(_FOLDER), self._vault.notes)


def _check_tool(tool: str) -> str:
    name = in_line(_storable(tool[:_LONGEST_TOOL]))[:_LONGEST_TOOL]
    if not name:
        raise Usage(problem="a tool has a name", remedy="say which one it is, such as Bash")
    return name


def _check_session(session: str | None) -> str | None:
    if session is not None and (len(session) > _LONGEST_SESSION or _storable(session) != session):
        problem = f"{clipped(session, _LONGEST_TOOL)!r} cannot be the key of a session"
        raise Usage(problem=problem, remedy=f"give a text of at most {_LONGEST_SESSION:,} characters")
    return session


def _storable(text: str) -> str:
    """Return a text as SQLite takes it, without lone surrogates."""
    return text[:_LONGEST_TARGET].encode("utf-8", "replace").decode()


def _check_type(type_: str | None) -> None:
    if type_ is not None and type_ not in TYPES:
        problem = f"there is no type of references {clipped(type_, _LONGEST_TOOL)!r}"
        raise Usage(problem=problem, remedy=f"say {', '.join(TYPES)}")


def _check_hash(hash_: str) -> str:
    if not _HASH.fullmatch(hash_.lower()):
        problem = f"{clipped(hash_, _LONGEST_TOOL)!r} is not the hash of a result"
        raise Usage(problem=problem, remedy="give its SHA-256, or 8 hexadecimal digits of it or more")
    return hash_.lower()


def _parse_lines(lines: str | Sequence[int] | None) -> tuple[int, int] | None:
    if lines is None:
        return None
    if isinstance(lines, str):
        found = _RANGE.fullmatch(lines)
        given = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    else:
        given = (lines[0], lines[1]) if len(lines) == 2 else (0, 0)  # noqa: PLR2004 - first and last
    if not 1 <= given[0] <= given[1]:
        shown = clipped(str(lines), _LONGEST_TOOL)
        raise Usage(problem=f"not a range of lines: {shown}", remedy="give 10-20: first and last, from 1 on")
    return given


def _cut_lines(data: bytes, first: int, last: int) -> bytes:
    lines = data.splitlines(keepends=True)
    if first > len(lines):
        problem = f"the first line is {first:,}; the last one is {len(lines):,}"
        raise Usage(problem=problem, remedy="give others")
    return b"".join(lines[first - 1 : last])


def _how_to_recover(made: str, gaps: Sequence[tuple[int, int]]) -> str:
    command = f"mdmem results recover {made[:_SHOWN]}"
    if not gaps:
        return f"all of it: {command}"
    first, last = max(gaps, key=lambda gap: gap[1] - gap[0])
    return f"all of it: {command}; of a gap: {command} --lines {first}-{last}"
