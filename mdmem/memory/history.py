"""The states of a memory: what a caller saw of it, what it held before, what it would be without a change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, takewhile

from mdmem.document.arguments import complete_id
from mdmem.document.document import NAMED_SUFFIXES, Document, parse
from mdmem.document.edit import between
from mdmem.document.text.diff import unified
from mdmem.document.text.tokens import first_of
from mdmem.errors import (
    Conflict,
    DocumentRefused,
    NamedNotFound,
    NotEncodable,
    UndoConflict,
    UndoRefused,
    Usage,
    plural,
)
from mdmem.vault.config import CONFIG_PATH, ConfigChange, find_change
from mdmem.vault.paths import StrPath, check_folder, check_memory, is_under
from mdmem.vault.plan import AttachmentChange, Change, EditPlan, edit
from mdmem.vault.store import Entry, FileChange
from mdmem.vault.vault import Vault

_LEAST_HASH = 8  # hexadecimal digits by which a content can be named


def require(vault: Vault, path: str, base: str | None, *, unreadable: bool = False) -> Document:
    """Return the memory at `path`, which must be what `base` says, where one is given; see `Vault.read`.

    Raises:
        MemoryNotFound: there is none.
        Conflict: it has moved on; with the difference, where what the caller saw is still kept.
    """
    document = vault.read(check_memory(path), unreadable=unreadable)
    compare(vault, document, base)
    return document


def find(vault: Vault, path: str, base: str | None) -> Document | None:
    """See `require`, with None where there is no memory and no `base` says that there should be."""
    if base is not None:
        return require(vault, path, base)
    return vault.find(check_memory(path))


def compare(vault: Vault, document: Document, base: str | None) -> None:
    """Refuse to go on where a document is not what `base` says."""
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
    """Return the beginning of a hash, long enough to name one content, as hashes are written."""
    if len(hash) < _LEAST_HASH:
        raise Usage(problem=f"a hash is named by {_LEAST_HASH} digits or more, not {hash!r}")
    return hash.lower()


def encoded(path: str, text: str) -> bytes:
    """Return the UTF-8 of a text that is to become the memory at `path`."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotEncodable(path=path, offset=error.start) from None


def creation(path: str, text: str, message: str) -> EditPlan:
    """Return the plan that makes a memory."""
    change = Change(path=path, before=None, content=encoded(path, text))
    return EditPlan(changes=(change,), message=message)


def rewriting(before: Document, after: Document, message: str) -> EditPlan:
    """Return the plan that makes one document another, and conflicts with what others write meanwhile."""
    return edit(before, between(before.text, after.text), message, merge=False)


_SHORT = 8  # digits of a hash in a message, and of the date in the id of a change
_SWEPT = "what was replaced is kept for as long as the config says: see `mdmem history`"
_NEAR = 3  # how many of the last changes are named where another one is asked for


def restored(vault: Vault, path: str, wanted: str | None) -> EditPlan:
    """Return the plan that gives a memory what it held before its last change, or the content with a hash.

    Where another program has changed or deleted it since, that was the last change.
    """
    name = check_memory(path, vault.suffixes)
    start = digits(wanted) if wanted is not None else None
    changes = [f for e in vault.history() for f in e.files if f.path == name]
    before, back = _find_standing(vault, changes[0]) if changes else (vault.find(name, unreadable=True), None)
    now = before.hash if before else None
    hashes = [h for f in changes for h in (f.after, f.before) if h]
    start = start and complete_id("version", start, hashes)
    wanting = [h for h in hashes if (h.startswith(start) if start else h != now)]
    data = next((data for h in wanting if (data := _find_data(vault, h)) is not None), None)
    if data is None:
        near = tuple(dict.fromkeys(h[:_SHORT] for h in hashes if h != now))
        remedy = "" if near else "`mdmem history` lists what was changed"
        if not changes:
            remedy = "mdmem has not changed it: look for it in git or in a backup"
        raise NamedNotFound(kind=f"kept version of {path}", name=wanted or "", near=near, remedy=remedy)
    change = Change(path=name, before=before, content=data, merge=False, back=back, as_it_was=True)
    return EditPlan(changes=(change,), message=f"restore {path}", brings_back=True)


def list_changes(vault: Vault, paths: Iterable[StrPath]) -> list[Entry]:
    """List the changes to memories, or to what is below folders, newest first; without any, all changes."""
    names = [check_folder(path) for path in paths]
    if not names:
        return list(vault.history())
    return [
        entry
        for entry in vault.history()
        if any(is_under(file.path, name) for file in entry.files for name in names)
    ]


def find_gone(vault: Vault, folder: str) -> list[str]:
    """Find the memories below a folder that another program deleted since mdmem changed them last."""
    folder = check_folder(folder)
    last: dict[str, FileChange] = {}
    for file in (file for entry in vault.history() for file in entry.files):
        if file.path.startswith(f"{folder}/") and file.path.endswith(vault.suffixes):
            last.setdefault(file.path, file)
    if not folder or not last:
        check_memory(folder, vault.suffixes)
    gone = sorted(path for path, file in last.items() if file.after and vault.find(path) is None)
    if not gone:
        remedy = "`mdmem history` lists what was changed, and `mdmem undo` takes back what mdmem did"
        raise NamedNotFound(kind="memory that another program deleted in", name=folder, remedy=remedy)
    return gone


def find_changes(
    vault: Vault, identifier: str | None, count: int, own: Collection[str] | None = None
) -> Sequence[Entry]:
    """Return the change with this id; without one the caller's last changes that stand, the last made first.

    A change that was taken back does not stand. One that was put back stands as the entry that did so, and is
    the change of whoever made it. `own` are the ids of the caller's; without, they are those of the actor.
    """
    _require_count(count)
    if identifier is None:
        standing = [entry for entry in _iterate_newest(vault.history()) if not entry.undoes]
        mine = (entry for entry in standing if _is_own(vault, _find_maker(vault, entry), own))
        if found := list(islice(mine, count)):
            return found
        if standing:
            last = standing[0]
            by = _describe_maker(_find_maker(vault, last))
            remedy = f"the last one is by {by}: {last.message}; `mdmem undo {last.subject}` takes it back"
            raise NamedNotFound(kind="change of yours to take back", name="", remedy=remedy)
        if next(vault.history(), None):
            remedy = "all are taken back: `mdmem redo` puts back what was taken last"
            raise NamedNotFound(kind="change to take back", name="", remedy=remedy)
        raise NamedNotFound(kind="change", name="", remedy="nothing was changed through mdmem yet")
    if count != 1:
        raise Usage(problem="a change that is named is one change", remedy="leave out its id, or the count")
    entries = list(vault.history())
    whole = _complete_change(identifier, (e.id for e in entries))
    entry = next((e for e in entries if e.id == whole), None)
    if entry is None:
        near = tuple(e.id for e in entries[:_NEAR])
        raise NamedNotFound(kind="change", name=identifier, near=near)
    return (entry,)


def describe_newer(vault: Vault, entries: Sequence[Entry]) -> str:
    """Say which changes by others stand that are newer than the caller's last ones; empty for none."""
    own = {entry.id for entry in entries}
    since = takewhile(lambda entry: entry.id != entries[-1].id, _iterate_newest(vault.history()))
    newer = [_find_maker(vault, entry) for entry in since if not entry.undoes and entry.id not in own]
    if not newer:
        return ""
    by = first_of(
        [*dict.fromkeys(entry.actor or "somebody without a name" for entry in newer)], _NEAR, " and "
    )
    stay, one = ("stays", "it") if len(newer) == 1 else ("stay", "one")
    changes = plural(len(newer), "newer change")
    return f"{changes} by {by} {stay}; `mdmem undo {newer[0].id}` takes {one} back"


def _complete_change(given: str, known: Iterable[str]) -> str:
    return complete_id("change", given, known) if len(given) >= _SHORT else given


def _find_maker(vault: Vault, entry: Entry) -> Entry:
    if entry.subject == entry.id:
        return entry
    return next((each for each in vault.history() if each.id == entry.subject), entry)


def _is_own(vault: Vault, entry: Entry, own: Collection[str] | None) -> bool:
    return entry.actor == vault.actor if own is None else entry.id in own


def _describe_maker(entry: Entry) -> str:
    return f"{entry.actor or 'somebody without a name'} ({entry.id})"


def find_undos(vault: Vault, count: int, own: Collection[str] | None = None) -> Sequence[Entry]:
    """Return the caller's undos that `redo` may put back: those since the last change, the newest first."""
    _require_count(count)
    since = takewhile(lambda entry: entry.undoes or entry.redoes, vault.history())
    undos = (entry for entry in _iterate_newest(since) if entry.undoes)
    found = list(islice((entry for entry in undos if _is_own(vault, entry, own)), count))
    if not found:
        remedy = "`redo` puts back what `undo` took, until something else is changed"
        raise NamedNotFound(kind="undo to put back", name="", remedy=remedy)
    return found


def _require_count(count: int) -> None:
    if count < 1:
        raise Usage(problem=f"count is {count}", remedy="give how many changes, 1 or more")


def _iterate_newest(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield of each change the newest entry that is about it: that it was made, taken back or put back."""
    seen = set[str]()
    for entry in entries:
        if entry.subject not in seen:
            seen.add(entry.subject)
            yield entry


class _Outlook:
    """The memories and attachments of a vault as they will be once some plans are applied."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self._made: dict[str, Document | None] = {}
        self._attached: dict[str, bool] = {}

    def find(self, path: str, *, spelled: str = "", unreadable: bool = True) -> Document | None:
        """Return what will be at a path; see `Vault.find`."""
        found = self.vault.find_around
        return self._made[path] if path in self._made else found(path, spelled=spelled, unreadable=unreadable)

    def stands(self, path: str) -> bool:
        """Return whether a memory or an attachment will be at a path."""
        if path.endswith(self.vault.suffixes):
            return self.find(path) is not None
        store, full = self.vault.store, self.vault.folder(path)
        is_file = store.stands(full) and not store.names(full)
        return self._attached.get(path, is_file)

    def add(self, plan: EditPlan) -> None:
        limits = self.vault.config.limits
        self._made |= {change.path: change.after(limits) for change in plan.changes}
        self._attached |= dict.fromkeys((each.path for each in plan.attachments), False)
        self._attached |= dict.fromkeys((each.move_to for each in plan.attachments), True)


def undone(vault: Vault, entries: Sequence[Entry]) -> EditPlan:
    """Return the plan that takes changes back, one after the other: of several, a plan with `steps`.

    What has changed since stays, where the two can be told apart. To take back an undo is to put back what it
    took.
    """
    outlook, steps = _Outlook(vault), list[EditPlan]()
    for entry in entries:
        steps.append(_undo_entry(outlook, entry))
        outlook.add(steps[-1])
    return steps[0] if len(steps) == 1 else _sum_up(steps)


def _undo_entry(outlook: _Outlook, entry: Entry) -> EditPlan:
    if entry.is_part:
        raise UndoRefused(change=entry.id)
    suffixes = outlook.vault.suffixes
    files = [_follow_moves(outlook, entry, file) for file in entry.files]
    memories = [file for file in files if file.path.endswith(suffixes)]
    moved = _find_moved(outlook, entry, memories)
    changes = tuple(
        change for file in memories for change in _undo_file(outlook, entry, file, moved.get(file.path))
    )
    subject = entry.subject
    message = entry.message.removeprefix(f"undo {subject}: ").removeprefix(f"redo {subject}: ")
    if subject == entry.id and entry.actor not in {"", outlook.vault.actor}:
        message += f" (by {entry.actor})"
    attachments = tuple(_take_attachments_back(outlook.vault, entry, files))
    told = entry.config if changes or attachments else None  # what it told the config holds for its files
    config = _take_config_back(outlook.vault, entry) if told else None
    made = (file.path for file in memories if file.after and not file.before)
    left_out = [_describe_gone(outlook.vault, entry, path) for path in made if not outlook.stands(path)]
    left_out += [f"{CONFIG_PATH}: what it was is not kept"] if told and not config else []
    return EditPlan(
        changes=changes,
        message=f"{'redo' if entry.undoes else 'undo'} {subject}: {message}",
        brings_back=True,
        attachments=attachments,
        undoes="" if entry.undoes else subject,
        redoes=subject if entry.undoes else "",
        made_at="" if entry.undoes else entry.time,
        left_out=tuple(left_out),
        config=config,
    )


def _describe_gone(vault: Vault, entry: Entry, path: str) -> str:
    """Say of a memory that a change made, and that is not there any more, who deleted it."""
    later = ((each, file) for each in _list_later(vault, entry) for file in each.files)
    by, last = next(((each, file) for each, file in later if file.path == path), (entry, None))
    if last is None or last.after:
        return f"{path} is gone already; mdmem did not delete it"
    return f"{path} is gone already: deleted by {_describe_maker(by)}; `mdmem undo {by.id}` brings it back"


def _take_config_back(vault: Vault, entry: Entry) -> ConfigChange | None:
    """Return the change that takes back what was told to the config; None where that is not kept.

    What a later move changed there is taken back as it stands now.
    """
    told = _read_config_change(vault, entry)
    if told is None or told.back is None:
        return None
    loses, (before, after) = told.gains, told.back
    for later in reversed([*_list_later(vault, entry)]):
        moved = _read_config_change(vault, later)
        if moved and moved.back and len(moved.loses) == len(moved.gains):
            renamed = dict(zip(moved.loses, moved.gains, strict=True))
            # As long as nothing else was changed, the config gets its bytes back.
            after = moved.back[1] if moved.back[0] == after and renamed.keys() <= {*loses} else after
            loses = tuple(renamed.get(each, each) for each in loses)
    return ConfigChange(told.loses, loses, (before, after))


def _read_config_change(vault: Vault, entry: Entry) -> ConfigChange | None:
    """Return what a change told the config, with the hashes before and after; None where that is not kept."""
    if entry.config is None:
        return None
    hashes = (entry.config.before, entry.config.after)
    kept = [vault.store.kept(digest) if digest else None for digest in hashes]
    if any(digest and not content for digest, content in zip(hashes, kept, strict=True)):
        return None
    before, after = (content.data.decode() if content else "" for content in kept)
    return find_change(before, after)._replace(back=hashes)


def _sum_up(steps: Sequence[EditPlan]) -> EditPlan:
    firsts, lasts = dict[str, Change](), dict[str, Change]()
    moves = list[AttachmentChange]()
    for change in (change for step in steps for change in step.changes):
        firsts.setdefault(change.path, change)
        lasts[change.path] = change
    for move in (move for step in steps for move in step.attachments):
        begun = next((each for each in moves if move.path and each.move_to == move.path), move)
        moves = [each for each in moves if each != begun]
        changed = move._replace(path=begun.path, content=begun.content)
        if begun.path != move.move_to:
            moves.append(changed)
    changes = (
        first._replace(content=lasts[path].content, delete=lasts[path].delete)
        for path, first in firsts.items()
        if lasts[path].content != (first.before.data if first.before else None)
    )
    messages = [step.message for step in steps]
    return EditPlan(
        changes=tuple(changes),
        message=first_of(messages, _NEAR),
        brings_back=True,
        attachments=tuple(moves),
        left_out=tuple(each for step in steps for each in step.left_out),
        steps=tuple(steps),
    )


def _take_attachments_back(
    vault: Vault, entry: Entry, files: Iterable[FileChange]
) -> Iterator[AttachmentChange]:
    attached = [file for file in files if not file.path.endswith(vault.suffixes)]
    gone = [file for file in attached if file.after is None]
    for made in (file for file in attached if file.after):
        if made.before:
            if made.path.endswith(NAMED_SUFFIXES):  # it was a memory, by the config of then
                check_memory(made.path, vault.suffixes)
            raise Conflict(path=made.path, base=made.before, actual=made.after)
        old = next((file for file in gone if file.before == made.after), None)
        if old:
            gone.remove(old)
        yield AttachmentChange(made.path, old.path if old else "", made.after or "")
    for deleted in gone:
        yield AttachmentChange("", deleted.path, deleted.before or "", _require_kept(vault, entry, deleted))


def changed_since(vault: Vault, path: str, wanted: str | None) -> str:
    """Return the unified diff from what a memory was to what it is; see `Questions.diff`."""
    name = check_memory(path, vault.suffixes)
    changes = list(_iterate_changes(vault, name))
    if not changes:
        vault.read(name)  # it says what is near, where there is no such memory
        raise NamedNotFound(kind=f"change of {path}", name=wanted or "last")
    ids = {entry.id: file.before for entry, file in changes}
    if wanted is None:
        start = changes[0][1].before
    else:
        change = _complete_change(wanted, ids)
        start = ids[change] if change in ids else _find_version([file for _, file in changes], wanted)
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
    start = digits(wanted)
    hashes = [h for file in changes for h in (file.after, file.before) if h]
    found = complete_id("version", start, hashes)
    if found not in hashes:
        near = tuple(dict.fromkeys(h[:_SHORT] for h in hashes))
        raise NamedNotFound(kind="version or change", name=wanted, near=near[:_NEAR])
    return found


def _find_moved(outlook: _Outlook, entry: Entry, files: Sequence[FileChange]) -> dict[str, Document]:
    """Find the memories that a change moved and that have changed since, by their old and new paths."""
    made: dict[str | None, str] = {
        file.after: file.path for file in files if file.before is None and file.after
    }
    # Of two that held the same, nobody knows which one went where.
    copies = Counter(file.before or file.after for file in files if None in {file.before, file.after})
    moved: dict[str, Document] = {}
    for gone in files:
        is_moved = gone.after is None and copies[gone.before] == 2  # noqa: PLR2004 - made and gone
        if not is_moved or (path := made.get(gone.before)) is None:
            continue
        now = outlook.find(path)
        if now and now.hash != gone.before:
            if standing := _find_standing(outlook, gone)[0]:
                raise _describe_conflict(outlook.vault, entry, gone, standing)
            moved |= {gone.path: now, path: now}
    return moved


def _undo_file(outlook: _Outlook, entry: Entry, file: FileChange, moved: Document | None) -> Iterator[Change]:
    """Yield what takes back one file of a change; nothing where it is as it was before.

    Args:
        moved: what the memory that was moved to or from there holds now, if it has changed since.
    """
    vault = outlook.vault
    now, back = _find_standing(outlook, file)
    digest = now.hash if now else None
    if digest == file.before:
        return
    if moved:
        data = None if now else moved.data
    else:
        data = _require_kept(vault, entry, file) if file.before else None
        if digest != file.after:
            data = _content_without(vault, entry, file, data, now)
    change = Change(path=file.path, before=now, content=data, delete=data is None, merge=False, back=back)
    yield change._replace(as_it_was=True)


def _follow_moves(outlook: _Outlook, entry: Entry, file: FileChange) -> FileChange:
    """Return the same with the path that a file has now, if it was moved after a change.

    Raises:
        UndoConflict: it was moved together with others that held the same.
    """
    if not file.after or outlook.stands(file.path):
        return file
    path = file.path
    for later in reversed([*_list_later(outlook.vault, entry)]):
        gone = next((f for f in later.files if f.path == path and f.after is None), None)
        if gone is None:
            continue
        same = [f for f in later.files if f.before is None and f.after == gone.before]
        alike = [f for f in later.files if f.after is None and f.before == gone.before]
        if len(same) > 1 or (same and len(alike) > 1):
            reason = f"moved since by {_describe_maker(later)}, with others that held the same"
            raise _describe_conflict(outlook.vault, entry, file, None, reason=reason)
        target = same[0] if same else _find_rewritten(later, gone)
        path = target.path if target else path
    return file if path == file.path else file._replace(path=path, spelled="")


def _find_rewritten(entry: Entry, gone: FileChange) -> FileChange | None:
    """Find what a change made of a memory that it moved, and in which it rewrote links; None for none.

    A move names the two beside each other, the new path first, and an undo of it the other way round.
    """
    made = [file for file in entry.files if file.before is None]
    is_only = len(made) == 1 == sum(file.after is None for file in entry.files)
    beside = entry.files.index(gone) + (1 if entry.undoes else -1)
    found = next((file for at, file in enumerate(entry.files) if at == beside and file in made), None)
    names = {file.path.rpartition("/")[2] for file in (found, gone) if file}
    return found if len(names) == 1 or is_only else None


def _find_standing(vault: Vault | _Outlook, file: FileChange) -> tuple[Document | None, FileChange | None]:
    """Return the memory at the place of a change, or the change if it deleted the file and the place is free.

    A file with another Unicode spelling of the same path is a different file, and stays.
    """
    if file.after is None and vault.find(file.path, spelled=file.spelled, unreadable=True) is None:
        return None, file
    return vault.find(file.path, unreadable=True), None


def _content_without(
    vault: Vault, entry: Entry, file: FileChange, before: bytes | None, now: Document | None
) -> bytes:
    after = _find_data(vault, file.after) if file.after else None
    diff, last = "", None
    if now and after is not None:
        try:
            base = parse(file.path, after, now.limits)
            if before is not None:
                return carried(base, before, now)
            diff = unified(base.text, now.text, file.path)
        except Conflict as error:
            diff, last = error.diff, _find_clash(vault, entry, file)
        except DocumentRefused:
            pass  # it cannot be read, and not be merged
    raise _describe_conflict(vault, entry, file, now, diff=diff, last=last, is_kept=after is not None)


def _list_later(vault: Vault, entry: Entry) -> Iterator[Entry]:
    return takewhile(lambda each: each.id != entry.id, vault.history())


def _find_clash(vault: Vault, entry: Entry, file: FileChange) -> Entry | None:
    after, before = (_find_data(vault, digest or "") or b"" for digest in (file.after, file.before))
    limits, clash = vault.config.limits, None
    for later in _list_later(vault, entry):
        changed = next((each for each in later.files if each.path == file.path), None)
        data = _find_data(vault, changed.after) if changed and changed.after else None
        if data is None:
            continue
        try:
            carried(parse(file.path, after, limits), before, parse(file.path, data, limits))
        except (Conflict, DocumentRefused):
            clash = later
        else:
            break
    return clash


def _describe_conflict(
    vault: Vault,
    entry: Entry,
    file: FileChange,
    now: Document | None,
    *,
    diff: str = "",
    last: Entry | None = None,
    is_kept: bool = False,
    reason: str = "",
) -> UndoConflict:
    digest = now.hash if now else None
    if last is None:
        changes = ((e, f) for e in _list_later(vault, entry) for f in e.files)
        last = next((e for e, f in changes if f.path == file.path and f.after == digest), None)
    return UndoConflict(
        path=file.path,
        base=file.after,
        actual=digest,
        diff=diff,
        reason=reason or _describe_since(file, digest, last, is_kept=is_kept),
        before=file.before,
        change=entry.id,
        is_alone=len(entry.files) == 1 and not entry.is_part,
    )


def _describe_since(file: FileChange, digest: str | None, last: Entry | None, *, is_kept: bool) -> str:
    by = f" by {_describe_maker(last)}" if last else " by another program"
    if digest is None:
        return f"deleted since{by}"
    if file.after is None:
        return f"made again since{by}"
    if file.before is None:
        return f"changed since{by}, and the change made it"
    why = "in the same place" if is_kept else "and what the change wrote is not kept any more"
    return f"changed since{by}, {why}"


def carried(base: Document, changed: bytes, now: Document) -> bytes:
    """Return `now` with the changes that lead from `base` to `changed`.

    Raises:
        Conflict: both have changed the same place; with what has changed since.
        DocumentRefused: `changed` cannot be a memory.
    """
    if now.hash == base.hash:
        return changed
    from mdmem.document.merging.merge import merge  # noqa: PLC0415 - few memories change in between

    merged = merge(base, parse(base.path, changed, now.limits), now)
    if merged.text is None:
        diff = unified(base.text, now.text, base.path)
        raise Conflict(path=base.path, base=base.hash, actual=now.hash, diff=diff)
    return encoded(base.path, merged.text)


def _require_kept(vault: Vault, entry: Entry, file: FileChange) -> bytes:
    data = _find_data(vault, file.before or "")
    if data is None:
        raise NamedNotFound(kind=f"kept content of change {entry.id}", name=(file.before or "")[:_SHORT])
    return data


def _find_data(vault: Vault, digest: str) -> bytes | None:
    # The hash comes from the history of this namespace: what it names may be seen.
    kept = vault.store.kept(digest)
    return kept.data if kept else None
