"""Stored memories: notes by namespace and id, with the fields that programs keep of them.

The namespace `a/b` is the folder `notes/a/b`, without the folders in it. The id is the field `id`, and,
encoded, the name of the file; where another file has that name, or it is too long, the name is a hash of the
id. A note without the field has its name for an id. What a program does not set keeps its bytes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from mdmem.document.document import Document, parse_text
from mdmem.document.edit import between, spliced
from mdmem.document.field import unset_field, with_field
from mdmem.errors import Conflict, MemoryNotFound, PathRefused, Usage
from mdmem.index.view import View
from mdmem.kind import NOTE
from mdmem.links.lineage import references_in
from mdmem.memory import validity
from mdmem.memory.content import moment_of, utc_now
from mdmem.text.regex import regex
from mdmem.vault.paths import check_folder, decode_id, encode_id, join
from mdmem.vault.plan import Change, EditPlan, edit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mdmem.memory.verbs import Build
    from mdmem.vault.transaction import Applied
    from mdmem.vault.vault import Vault

_FOLDER, _MARKDOWN = NOTE.folder, ".md"
_PINNED = "pinned"
_NO_ID = regex("\0|[\ud800-\udfff]|\\A\\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = ("created_at", "updated_at", "expires_at", "valid_from", "valid_to")
_SHARES = ("importance", "confidence")
_SORTED = ("created", "updated", "importance")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """A memory as programs store it; times are in milliseconds since the epoch, UTC, and None for none.

    Attributes:
        id: one within all namespaces.
        namespace: such as `a/b`; empty for the notes that are in no folder.
        tier: one of the config's tiers, or `pinned`; empty for none.
        metadata: any JSON object.
        importance, confidence: from 0 to 1; None where nothing is said.
        created_at: when it was first stored, which never changes.
        superseded_by, contradicted_by: ids of memories; no `upsert` changes these.
        linked: ids of memories that belong to it.
        embedding: its vector, which stands in no file.
        access_count, last_accessed_at: its use in its namespace, which stands in no file.
    """

    id: str
    namespace: str = ""
    content: str = ""
    tier: str = ""
    level: str = ""
    type: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    importance: float | None = None
    confidence: float | None = None
    created_at: int | None = None
    updated_at: int | None = None
    expires_at: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    superseded_by: str = ""
    contradicted_by: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    embedding: tuple[float, ...] = ()
    access_count: int = 0
    last_accessed_at: int | None = None

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the content in lower case, each run of white space as one space."""
        return sha256(" ".join(self.content.lower().split()).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories are asked for; without anything, all that count now. Times are in milliseconds.

    Attributes:
        tiers, levels, types: one of these; any without.
        tags, metadata: all of these.
        exclude_metadata, exclude_ids: none of these.
        include_expired: also what has expired.
        include_superseded: also what is over, not yet valid, or superseded.
        now: the moment of the question; that of the clock without.
        as_of: ask for what was valid at this moment, whatever took its place since.
        since: only what was stored at this moment or later.
        sort: created, updated or importance, with `-` before it the largest first; by id without.
    """

    tiers: Sequence[str] = ()
    levels: Sequence[str] = ()
    types: Sequence[str] = ()
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    exclude_metadata: Mapping[str, Any] = field(default_factory=dict)
    exclude_ids: Sequence[str] = ()
    include_expired: bool = False
    include_superseded: bool = False
    now: int | None = None
    as_of: int | None = None
    since: int | None = None
    sort: str = ""


def to_moment(milliseconds: int) -> datetime:
    """Return the moment that a number of milliseconds since the epoch is.

    Raises:
        Usage: it is negative, or beyond the year 9999.
    """
    with suppress(OverflowError):
        if milliseconds >= 0:
            return _EPOCH + timedelta(milliseconds=milliseconds)
    remedy = "give milliseconds since 1970, 0 or more, and None for never"
    raise Usage(problem=f"{milliseconds} is no time", remedy=remedy)


def to_milliseconds(moment: datetime) -> int:
    """Return a moment in milliseconds since the epoch."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def in_namespace(namespace: str) -> str:
    """Return the folder of a namespace, or raise PathRefused where it cannot be one."""
    return join(_FOLDER, check_folder(namespace))


class StoredMemories:
    """Notes by namespace and id; `run` applies a plan, and holds the lock while it is made."""

    def __init__(self, vault: Vault, run: Callable[[Build], Applied], view: Callable[[], View]) -> None:
        self._vault = vault
        self._run = run
        self._view = view

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers that a memory may have."""
        return (*self._vault.config.tiers._fields, _PINNED)

    def find_path(self, namespace: str, identifier: str) -> str:
        """Return the path of a memory, or raise MemoryNotFound where the namespace has none with this id."""
        document = self._find_document(namespace, identifier)
        if document is None:
            raise MemoryNotFound(path=join(in_namespace(namespace), identifier))
        return document.path

    def at(self, path: str, document: Document | None = None) -> StoredMemory:
        """Return the memory at a path, or what it was in a document of another time.

        Raises:
            MemoryNotFound: it is not there.
        """
        document = document or self._vault.read(path)
        known: dict[str, Any] = {name: read(document.fields.get(key)) for name, key, read in _VALUES}
        return StoredMemory(
            id=_id_of(document),
            namespace=path.rpartition("/")[0][len(_FOLDER) + 1 :],
            content=_content_of(document),
            superseded_by=next(self._list_ids(document, "superseded_by"), ""),
            contradicted_by=tuple(self._list_ids(document, "contradicted_by")),
            **known,
        )

    def namespaces(self) -> list[str]:
        """List the namespaces that hold memories."""
        paths = (file.path for file in self._vault.walk(_FOLDER) if file.path.endswith(_MARKDOWN))
        return sorted({path.rpartition("/")[0][len(_FOLDER) + 1 :] for path in paths})

    def select(self, namespace: str, wanted: Filter, *, limit: int = 0) -> dict[str, str]:
        """Find the memories that a filter admits: their ids by path, sorted as it says; 0 is no limit.

        Raises:
            Usage: a value of the filter cannot mean anything.
        """
        key, is_down = wanted.sort.removeprefix("-"), wanted.sort.startswith("-")
        if key and key not in _SORTED:
            raise Usage(problem=f"nothing is sorted by {key!r}", remedy=f"sort by {', '.join(_SORTED)}")
        view, admits = self._view(), _make_test(wanted)
        is_any = wanted.include_superseded or wanted.as_of is not None
        superseded = {} if is_any else validity.find_successors(view)
        listed = _list_rows(view, in_namespace(namespace), (*wanted.metadata, *wanted.exclude_metadata))
        rows = [(path, row) for path, row in listed if path not in superseded and admits(row)]
        rows.sort(key=lambda pair: str(pair[1]["id"]))
        if key:
            rows.sort(key=lambda pair: _sort_value(pair[1].get(key)), reverse=is_down)
        return {path: row["id"] for path, row in rows[: limit or None]}

    def predecessors(self, path: str) -> list[str]:
        """List the ids of the memories whose place the one at a path has taken, sorted."""
        old = [old for old, new in validity.find_successors(self._view()).items() if new == path]
        return sorted(_id_of(document) for document in map(self._vault.find, old) if document is not None)

    def check(self, memory: StoredMemory) -> None:
        """Raise Usage for a memory with a value that cannot mean anything, or none of the tiers."""
        if memory.tier not in ("", *self.tiers):
            remedy = f"a tier is {', '.join(self.tiers)}"
            raise Usage(problem=f"there is no tier {memory.tier!r}", remedy=remedy)
        for name in _SHARES:
            share = getattr(memory, name)
            if share is not None and _read_share(share) is None:
                raise Usage(problem=f"{name} is {share!r}", remedy="give a number from 0 to 1, or None")
        for name in _TIMES:
            to_moment(getattr(memory, name) or 0)
        if memory.valid_from and memory.valid_to is not None and memory.valid_to < memory.valid_from:
            raise Usage(problem=f"{memory.id} ends before it begins", remedy="change valid_from or valid_to")

    def upsert(self, memory: StoredMemory) -> Applied:
        """Store a memory, or change the one with its id to it.

        Raises:
            Conflict: another namespace has a memory with this id.
            Usage: a value cannot mean anything; or what took its place, or speaks against it, is another than
                before.
        """
        self.check(memory)
        return self._run(lambda: self._plan_upsert(memory))

    def _plan_upsert(self, memory: StoredMemory) -> EditPlan:
        document = self._find_document(memory.namespace, memory.id)
        known = self.at(document.path, document) if document else StoredMemory(id=memory.id)
        is_same = memory.superseded_by in ("", known.superseded_by)
        if not is_same or memory.contradicted_by not in ((), known.contradicted_by):
            remedy = "call set_superseded or mark_contradicted"
            raise Usage(problem="what ended a memory is not stored with it", remedy=remedy)
        now = to_milliseconds(utc_now())
        before = document or self._make_blank(memory.namespace, memory.id)
        created = known.created_at if document else memory.created_at or now
        updated = memory.updated_at or (now if document else created)
        after = _with_values(before, replace(memory, created_at=created, updated_at=updated))
        if document:
            return edit(before, between(before.text, after.text), f"store {before.path}", merge=False)
        change = Change(path=after.path, before=None, content=after.data, merge=False)
        return EditPlan(changes=(change,), message=f"store {after.path}")

    def _make_blank(self, namespace: str, identifier: str) -> Document:
        """Make a memory with nothing but an id, where its file may be.

        Raises:
            Conflict: another namespace has a memory with this id.
        """
        for path in self._view().named("id", identifier):
            document = self._vault.find(path)
            if document is not None and path.startswith(f"{_FOLDER}/") and path.endswith(_MARKDOWN):
                diff = f"the id {identifier!r} is of a memory in another namespace"
                raise Conflict(path=path, base=None, actual=document.hash, diff=diff)
        folder = in_namespace(namespace)
        taken = {file.path.casefold() for file in self._vault.walk(folder)}
        free = [path for path in _list_paths(folder, identifier) if path.casefold() not in taken]
        if not free:
            raise Usage(problem=f"{folder} has other files for the id {identifier!r}", remedy="rename these")
        blank = parse_text(free[0], "---\n---\n", self._vault.config.limits)
        return with_field(blank, ("id",), identifier)

    def _find_document(self, namespace: str, identifier: str) -> Document | None:
        """Find a memory: by the name that its file has, else by the index."""
        folder = in_namespace(namespace)
        for path in _list_paths(folder, identifier):
            document = self._vault.find(path)
            if document is not None and _id_of(document) == identifier:
                return document
        for path in self._view().named("id", identifier):
            if path.endswith(_MARKDOWN) and path.rpartition("/")[0] == folder:
                return self._vault.find(path)
        return None

    def _list_ids(self, document: Document, key: str) -> Iterator[str]:
        """Yield the ids of the memories that a field of lineage names; of one that is not there, its name."""
        for text in _read_texts(document.fields.get(key)):
            for reference in references_in(self._view(), document.path, text):
                goal = self._vault.find(reference.goal) if reference.goal else None
                yield _id_of(goal) if goal is not None else reference.name


def _list_paths(folder: str, identifier: str) -> Iterator[str]:
    """Yield the paths that the file of an id may have: by the id, if that can be a name, and by its hash."""
    if _NO_ID.search(identifier):
        raise Usage(problem=f"{identifier!r} cannot be an id", remedy="give another text")
    with suppress(PathRefused):  # too long a name, or . or ..
        yield join(folder, encode_id(identifier) + _MARKDOWN)
    yield join(folder, sha256(identifier.encode()).hexdigest()[:32] + _MARKDOWN)


def _id_of(document: Document) -> str:
    written = document.fields.get("id")
    is_named = isinstance(written, str | int) and not isinstance(written, bool)
    return (str(written) if is_named else "") or _decode_name(document.path)


def _decode_name(path: str) -> str:
    return decode_id(path.rpartition("/")[2].removesuffix(_MARKDOWN))


def _content_of(document: Document) -> str:
    return document.body.removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")


def _with_values(document: Document, memory: StoredMemory) -> Document:
    """Return a document that says what a memory does; what says the same already keeps its bytes."""
    fields = document.fields
    for name, key, read in _VALUES:
        value = getattr(memory, name)
        if read(fields.get(key)) == value:
            continue
        if value in (None, "", (), {}):
            document = spliced(document, unset_field(document, (key,)))
        else:
            written = (
                _write_time(value) if name in _TIMES else list(value) if isinstance(value, tuple) else value
            )
            document = with_field(document, (key,), written)
    if _content_of(document) == memory.content:
        return document
    end = ("\r\n" if document.text.endswith("\r\n") else "\n") * bool(memory.content)
    text = document.text[: document.body_span.start] + memory.content + end
    return spliced(document, between(document.text, text))


# -- the values of fields, as they are written and read -----------------------------------------------------


def _write_time(milliseconds: int) -> str:
    """Return a time as it is written: to the second, or to the millisecond where that says more."""
    spec = "milliseconds" if milliseconds % 1000 else "seconds"
    return to_moment(milliseconds).isoformat(timespec=spec).replace("+00:00", "Z")


def _read_time(written: Any) -> int | None:
    moment = moment_of(written)
    return None if moment is None else to_milliseconds(moment)


def _read_text(written: Any) -> str:
    return written if isinstance(written, str) else ""


def _read_texts(written: Any) -> tuple[str, ...]:
    items = written if isinstance(written, list) else [written]
    return tuple(str(item) for item in items if isinstance(item, str | int) and str(item))


def _read_object(written: Any) -> dict[str, Any]:
    return written if isinstance(written, dict) else {}


def _read_share(written: Any) -> float | None:
    is_number = isinstance(written, int | float) and not isinstance(written, bool)
    return written if is_number and 0 <= written <= 1 else None


_VALUES: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    *((name, name, _read_text) for name in ("tier", "level", "type", "summary")),
    *((name, name, _read_share) for name in _SHARES),
    *((name, name, _read_texts) for name in ("tags", "linked")),
    ("metadata", "metadata", _read_object),
    *((name, name.removesuffix("_at"), _read_time) for name in _TIMES),
)
"""The values of a memory: the attribute, the key of the field, and what reads the field."""


# -- filters, over what the index has of the fields ----------------------------------------------------------


def _list_rows(view: View, folder: str, metadata: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the memories of a folder by path, each with the values of the fields that a filter may name."""
    inner = View(view.index, view.vault.within(view.outside(folder)))
    keys = {"id", *(key for _, key, _ in _VALUES), *(f"metadata.{key}" for key in metadata)}
    for name, _, _, values in inner.memories(keys):
        if "/" not in name and name.endswith(_MARKDOWN):
            row: dict[str, Any] = {key: items[0] for key, items in values.items() if items}
            row["tags"] = [str(tag) for tag in values.get("tags", ())]
            yield join(folder, name), row | {"id": str(row.get("id") or _decode_name(name))}


def _make_test(wanted: Filter) -> Callable[[Mapping[str, Any]], bool]:
    """Make the test of a row: whether a filter admits it, superseded or not."""
    now = to_moment(wanted.now) if wanted.now is not None else utc_now()
    moment = now if wanted.as_of is None else to_moment(wanted.as_of)
    since = None if wanted.since is None else to_moment(wanted.since)
    is_timed = not wanted.include_superseded or wanted.as_of is not None
    choices = {"tier": wanted.tiers, "level": wanted.levels, "type": wanted.types}

    def admits(row: Mapping[str, Any]) -> bool:
        bounds = validity.bounds_of(row)
        is_expired = bounds.expires is not None and bounds.expires <= moment
        is_over = is_timed and bounds._replace(expires=None).judge(moment) != "live"
        if is_over or (is_expired and not wanted.include_expired) or row["id"] in wanted.exclude_ids:
            return False
        stored = moment_of(row.get("updated")) or moment_of(row.get("created"))
        return (
            (since is None or (stored is not None and stored >= since))
            and all(not choice or row.get(key) in choice for key, choice in choices.items())
            and set(wanted.tags) <= set(row["tags"])
            and all(_is_value(row, key, value) for key, value in wanted.metadata.items())
            and not any(_is_value(row, key, value) for key, value in wanted.exclude_metadata.items())
        )

    return admits


def _is_value(row: Mapping[str, Any], key: str, value: Any) -> bool:
    wanted = str(value).lower() if isinstance(value, bool) else value  # as the index has it
    return value is not None and row.get(f"metadata.{key}") == wanted


def _sort_value(value: Any) -> tuple[bool, float]:
    """Return what sorts a number or a time; what is missing comes first."""
    number = value if isinstance(value, int | float) else _read_time(value)
    return number is not None, number or 0
