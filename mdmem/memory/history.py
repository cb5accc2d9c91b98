"""The states of a memory: what a caller saw of it, what it held before, what it would be without a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdmem.arguments import complete_id
from mdmem.document.document import SUFFIXES, Document, parse
from mdmem.errors import Conflict, NamedNotFound, NotEncodable, UndoRefused, Usage
from mdmem.text.diff import unified
from mdmem.vault.paths import check_memory
from mdmem.vault.plan import AttachmentMove, Change, EditPlan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.document.document import Document
    from mdmem.vault.store import Entry, FileChange
    from mdmem.vault.vault import Vault


_LEAST_HASH = 8  # hexadecimal digits by which a content can be named


def require(vault: Vault, path: str, base: str | None) -> Document:
    """Return the memory at `path`, which must be what `base` says, where one is given.

    Raises:
        MemoryNotFound: there is none.
        Conflict: it has moved on; with the difference, where what the caller saw is still kept.
    """
    document = vault.read(check_memory(path))
    compare(vault, document, base)
    return document


def find(vault: Vault, path: str, base: str | None) -> Document | None:
    """See `require`, with None where there is no memory and no `base` says that there should be."""
    if base is not None:
        return require(vault, path, base)
    return vault.find(check_memory(path))


def compare(vault: Vault, document: Document, base: str | None) -> None:
    """Refuse to go on where a document is not what `base` says.

    Raises:
        Conflict: as `require`.
        Usage: `base` has fewer than eight digits.
    """
    if base is None or document.hash.startswith(digits(base)):
        return
    files = (file for entry in vault.history() for file in entry.files if file.path == document.path)
    hashes = (digest for file in files for digest in (file.after, file.before) if digest)
    full = next((digest for digest in hashes if digest.startswith(digits(base))), None)
    content = vault.content(full) if full else None
    text = content.decode("utf-8", "replace") if content is not None else None
    diff = unified(text, document.text, document.path) if text is not None else ""
    raise Conflict(path=document.path, base=base, actual=document.hash, diff=diff)


def digits(hash: str) -> str:  # noqa: A002 - its name everywhere else
    """Return the beginning of a hash, long enough to name one content, as hashes are written.

    Raises:
        Usage: fewer than eight digits.
    """
    if len(hash) < _LEAST_HASH:
        raise Usage(problem=f"a hash is named by {_LEAST_HASH} digits or more, not {hash!r}")
    return hash.lower()


def encoded(path: str, text: str) -> bytes:
    """Return the UTF-8 of a text that is to become the memory at `path`.

    Raises:
        NotEncodable: it has a lone surrogate.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotEncodable(path=path, offset=error.start) from None


def creation(path: str, text: str, message: str) -> EditPlan:
    """Return the plan that makes a memory.

    Raises:
        NotEncodable: as `encoded`.
    """
    change = Change(path=path, before=None, content=encoded(path, text))
    return EditPlan(changes=(change,), message=message)


_SHORT = 8  # digits of a hash in a message
_SWEPT = "what was replaced is kept for as long as the config says: see `mdmem history`"
_NEAR = 3  # how many of the last changes are named where another one is asked for


def restored(vault: Vault, path: str, wanted: str | None) -> EditPlan:
    """Return the plan that gives a memory what it held before its last change, or the content with a hash.

    Raises:
        NamedNotFound: nothing of that memory is kept, or not that.
        Usage: the hash has fewer than eight digits.
    """
    name = check_memory(path)
    start = digits(wanted) if wanted is not None else None
    kept = [f for e in vault.history() for f in e.files if f.path == name and f.before]
    before, back = _find_standing(vault, kept[0]) if kept else (vault.find(name), None)
    now = before.hash if before else None
    hashes = [f.before for f in kept if f.before]
    start = start and complete_id("version", start, hashes)
    wanting = (h for h in hashes if (h.startswith(start) if start else h != now))
    data = next((data for h in wanting if (data := _find_data(vault, h)) is not None), None)
    if data is None:
        near = tuple(dict.fromkeys(h[:_SHORT] for h in hashes if h != now))
        raise NamedNotFound(kind=f"kept version of {path}", name=wanted or "latest", near=near)
    change = Change(path=name, before=before, content=data, merge=False, back=back)
    return EditPlan(changes=(change,), message=f"restore {path}", brings_back=True)


def change_named(vault: Vault, identifier: str | None) -> Entry:
    """Return the change with this id, or the last one.

    Raises:
        NamedNotFound: there is no such change.
    """
    entries = list(vault.history())
    entry = next((e for e in entries if identifier in {None, e.id}), None)
    if entry is None:
        near = tuple(e.id for e in entries[:_NEAR])
        raise NamedNotFound(kind="change", name="last" if identifier is None else identifier, near=near)
    return entry


def undone(vault: Vault, entry: Entry) -> EditPlan:
    """Return the plan that takes a change back.

    What has changed since stays, where the two can be told apart.

    Raises:
        Conflict: a memory has changed since, in the same place.
        NamedNotFound: what it held before is not kept any more.
        UndoRefused: the change touched memories outside of the namespace as well.
    """
    if entry.is_part:
        raise UndoRefused(change=entry.id)
    memories = (file for file in entry.files if file.path.endswith(SUFFIXES))
    changes = tuple(change for file in memories for change in _undo_file(vault, entry, file))
    message = f"undo {entry.id}: {entry.message}"
    attachments = tuple(_move_back(entry))
    return EditPlan(changes=changes, message=message, brings_back=True, attachments=attachments)


def _move_back(entry: Entry) -> Iterator[AttachmentMove]:
    """Yield the moves that take the attachments of a change back.

    Raises:
        Conflict: one of them was changed, by another program, and not moved.
    """
    attached = [file for file in entry.files if not file.path.endswith(SUFFIXES)]
    gone = [file for file in attached if file.after is None]
    for made in (file for file in attached if file.after):
        old = next((file for file in gone if file.before == made.after), None)
        if old is None:
            raise Conflict(path=made.path, base=made.before, actual=made.after)
        gone.remove(old)
        yield AttachmentMove(made.path, old.path, old.before or "")


def changed_since(vault: Vault, path: str, wanted: str | None) -> str:
    """Return the unified diff from what a memory was to what it is; see `Questions.diff`."""
    name = check_memory(path)
    changes = list(_iterate_changes(vault, name))
    if not changes:
        vault.read(name)  # it says what is near, where there is no such memory
        raise NamedNotFound(kind=f"change of {path}", name=wanted or "last")
    ids = {entry.id: file.before for entry, file in changes}
    if wanted is None:
        start = changes[0][1].before
    else:
        start = ids[wanted] if wanted in ids else _find_version([file for _, file in changes], wanted)
    now = vault.find(name)
    if now and now.hash == start:
        return ""
    before = _find_data(vault, start) if start else None
    if start and before is None:
        raise NamedNotFound(kind=f"kept version of {path}", name=start[:_SHORT], remedy=_SWEPT)
    text = None if before is None else before.decode("utf-8", "replace")
    return unified(text, now.text if now else None, name)


def _iterate_changes(vault: Vault, path: str) -> Iterator[tuple[Entry, FileChange]]:
    """Yield the changes of a memory, newest first, under each name that it had; being moved is not one."""
    for entry in vault.history():
        file = next((f for f in entry.files if f.path == path), None)
        if file is None:
            continue
        is_new = file.before is None and file.after
        moved = (f.path for f in entry.files if is_new and f.after is None and f.before == file.after)
        source = next(moved, None)
        if source is None:
            yield entry, file
        else:
            path = source


def _find_version(changes: Sequence[FileChange], wanted: str) -> str:
    """Return the whole hash of a version that begins so."""
    start = digits(wanted)
    hashes = [h for file in changes for h in (file.after, file.before) if h]
    found = complete_id("version", start, hashes)
    if found not in hashes:
        near = tuple(dict.fromkeys(h[:_SHORT] for h in hashes))
        raise NamedNotFound(kind="version or change", name=wanted, near=near[:_NEAR])
    return found


def _undo_file(vault: Vault, entry: Entry, file: FileChange) -> Iterator[Change]:
    """Yield what takes back one file of a change; nothing where it is as it was before."""
    now, back = _find_standing(vault, file)
    digest = now.hash if now else None
    if digest == file.before:
        return
    data = _find_data(vault, file.before) if file.before else None
    if file.before and data is None:
        raise NamedNotFound(kind=f"kept content of change {entry.id}", name=file.before[:_SHORT])
    if digest != file.after:
        data = _content_without(vault, file, data, now)
    yield Change(path=file.path, before=now, content=data, delete=data is None, merge=False, back=back)


def _find_standing(vault: Vault, file: FileChange) -> tuple[Document | None, FileChange | None]:
    """Return what stands where a change was made; and the change, when it deleted a file whose place is free.

    A file whose name is another Unicode spelling of the same path is another one, which stays.
    """
    if file.after is None and vault.find(file.path, spelled=file.spelled) is None:
        return None, file
    return vault.find(file.path), None


def _content_without(vault: Vault, file: FileChange, before: bytes | None, now: Document | None) -> bytes:
    """Return what a memory that has changed since would be without the change."""
    after = _find_data(vault, file.after) if file.after else None
    if now is None or before is None or after is None:
        raise Conflict(path=file.path, base=file.after, actual=now.hash if now else None)
    return carried(parse(file.path, after, now.limits), before, now)


def carried(base: Document, changed: bytes, now: Document) -> bytes:
    """Return what was made of `base`, made of what there is now instead.

    Raises:
        Conflict: both have changed the same place; with what has changed since.
        DocumentRefused: `changed` cannot be a memory.
    """
    if now.hash == base.hash:
        return changed
    from mdmem.merging.merge import merge  # noqa: PLC0415 - few memories change in between

    merged = merge(base, parse(base.path, changed, now.limits), now)
    if merged.text is None:
        diff = unified(base.text, now.text, base.path)
        raise Conflict(path=base.path, base=base.hash, actual=now.hash, diff=diff)
    return encoded(base.path, merged.text)


def _find_data(vault: Vault, digest: str) -> bytes | None:
    # The hash comes from the history of this namespace: what it names may be seen.
    kept = vault.store.kept(digest)
    return kept.data if kept else None
