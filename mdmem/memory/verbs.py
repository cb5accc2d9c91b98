"""The verbs for any memory, each written once: as the plan of the change that it makes.

A `Verbs` is given `run`, which takes a function that makes an edit plan. `memory.replace(…)` runs it and
returns what was applied; `memory.plan.replace(…)` returns the plan, and nothing is written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from mdmem.document import edit as text_edit, field, section as text_section
from mdmem.document.arguments import json_value, require_text, texts_of
from mdmem.document.document import ANY_SUFFIXES, SUFFIXES, Document, parse
from mdmem.document.edit import TextEdit
from mdmem.document.moment import stamp_of
from mdmem.document.text.globs import matcher
from mdmem.document.text.tokens import first_of
from mdmem.document.tree import Key
from mdmem.errors import (
    CANNOT_READ,
    AlreadyExists,
    EditRefused,
    IndexDamaged,
    LockTimeout,
    MemoryNotFound,
    NearLine,
    StorageFailed,
    TextAmbiguous,
    TextNotFound,
    Usage,
    plural,
    show_name,
)
from mdmem.memory import history
from mdmem.memory.content import sliding, utc_now
from mdmem.memory.history import find_gone, restored
from mdmem.vault.config import follow_moves
from mdmem.vault.paths import (
    StrPath,
    check_folder,
    check_memory,
    is_hidden,
    is_under,
    join,
    path_text,
    path_texts,
    relative,
)
from mdmem.vault.plan import AttachmentChange, Change, EditPlan, LinkPlace, deletion, edit, together
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.index.links.move import Known
    from mdmem.index.view import Value, View


_NO_SLIP = "not even with other case, whitespace or line ends: look for it with `mdmem search`"


class Listed(NamedTuple):
    """A memory in a listing: its path, bytes, and time of change in nanoseconds since the epoch.

    `problem` says why a file that looks like a memory cannot be one; it is empty for a memory. The
    day of the memory (see `mdmem.index.hit.day_of`), its type and its title are filled in by `ls(long=True)`
    alone; in other listings they are None, whatever the memory has.
    """

    path: str
    size: int
    mtime_ns: int
    problem: str = ""
    date: str | None = None
    type: str | None = None
    title: str | None = None

    @property
    def modified(self) -> str:
        """The time of change, see `stamp_of`."""
        return stamp_of(self.mtime_ns)

    def json_shape(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        shape = {"path": self.path, "size": self.size, "modified": self.modified}
        if self.date is not None:
            shape |= {"date": self.date, "type": self.type, "title": self.title}
        return {**shape, "problem": self.problem} if self.problem else shape


class Listing(list[Listed]):
    """The memories of a listing; `unknown` has a sentence on each field that was asked for and is nowhere."""

    def __init__(self, listed: Iterable[Listed], unknown: Mapping[str, str]) -> None:
        super().__init__(listed)
        self.unknown = unknown


def detailed(view: View, listed: Iterable[Listed]) -> list[Listed]:
    """Return a listing with what the index knows of each memory; nothing where it cannot be read."""
    fields = {path: values for path, _, _, values in view.memories({"type"})}

    def first(path: str, key: str) -> str:
        values = fields.get(path, {}).get(key)
        return str(values[0]) if values else ""

    return [
        entry._replace(
            date=first(entry.path, "date"), type=first(entry.path, "type"), title=first(entry.path, "title")
        )
        for entry in listed
    ]


def among(listed: Iterable[str], named: Sequence[str]) -> set[str]:
    """Return the listed paths that are named, or below a named folder; all of them without names."""
    if not named:
        return set(listed)
    missing = dict.fromkeys(map(check_folder, named))
    names, found = set(missing), set()
    for path in listed:
        ends = (at for at, character in enumerate(path) if character == "/")
        if here := names.intersection(("", path, *(path[:end] for end in ends))):
            found.add(path)
            for name in here:
                missing.pop(name, None)
    for name in missing:
        if name:
            raise MemoryNotFound(path=name, kind="folder or memory")
    return found


_COMPUTED = frozenset({"path", "title", "size", "modified", "date", "tag", "state", "confidence"})
"""Fields that need not stand in a memory."""


def conditional(
    view: View,
    named: Sequence[str],
    where: Sequence[str],
    sort: str,
    types: Sequence[str] = (),
    unread: Sequence[Listed] = (),
) -> Listing:
    """Return the memories that are named and meet all conditions, in the order of a field; see `Memory.ls`.

    Args:
        named: memories and folders; all without.
        where: the conditions; the fields `state`, `confidence` and `modified` are what they are now.
        sort: the field to sort by.
        types: of one of these types, without case; all without.
        unread: files that cannot be read as memories; those that are named come last.
    """
    from mdmem.index import view as conditions  # noqa: PLC0415 - most commands ask no index

    wanted = [conditions.parse(text) for text in texts_of(where, "where")]
    key, descending = conditions.sort_order(sort)
    asked = dict.fromkeys(each for each in (*(c.key for c in wanted), key) if each)
    chosen = {name.casefold() for name in texts_of(types, "types")}
    judged = list(_judge_memories(view, {*asked, *(("type",) if chosen else ())}, utc_now()))
    conditions.refuse_no_date(wanted, [each.fields for each in judged])
    inside = among([*(each.path for each in judged), *(each.path for each in unread)], named)
    found = [each for each in judged if each.path in inside and conditions.fits(wanted, each.fields)]
    if chosen:
        found = [
            each for each in found if any(str(t).casefold() in chosen for t in each.fields.get("type", ()))
        ]
    if sort:
        firsts = {each.path: next(iter(each.fields.get(key, ())), None) for each in found}
        # Sorted twice, so that memories without a value are last in both directions.
        found.sort(key=lambda each: conditions.sort_key(firsts[each.path]), reverse=descending)
        found.sort(key=lambda each: firsts[each.path] is None)
    there = {name for each in judged for name, values in each.fields.items() if values}
    nowhere = asked.keys() - _COMPUTED - there if judged else ()
    unknown = _describe_unknown(view, nowhere) if nowhere else {}
    memories = [Listed(each.path, each.size, each.mtime_ns) for each in found]
    return Listing([*memories, *(each for each in unread if each.path in inside)], unknown)


def _describe_unknown(view: View, keys: Iterable[str]) -> dict[str, str]:
    names = {name.casefold(): name for name in sorted({*view.field_names(), *_COMPUTED})}

    def describe(key: str) -> str:
        near = ", ".join(names[each] for each in get_close_matches(key.casefold(), names))
        return f"no memory has a field {key!r}{f'; nearest names: {near}' if near else ''}"

    return {key: describe(key) for key in sorted(keys)}


class _JudgedMemory(NamedTuple):
    path: str
    size: int
    mtime_ns: int
    fields: dict[str, list[Value]]


def _judge_memories(view: View, keys: Collection[str], moment: datetime) -> Iterator[_JudgedMemory]:
    """Yield every memory with the values of some fields; `state` and `confidence` are computed."""
    states: Mapping[str, str] = {}
    sure: Mapping[str, float] = {}
    if "state" in keys:
        from mdmem.memory.validity import find_states  # noqa: PLC0415 - start-up

        states = find_states(view, moment)
    if "confidence" in keys:
        from mdmem.memory.provenance import find_confidences  # noqa: PLC0415 - start-up

        sure = dict(find_confidences(view, moment))
    for path, size, mtime_ns, fields in view.memories(keys):
        if "state" in keys:
            fields["state"] = [states.get(path, "live")]
        if "confidence" in keys:
            fields["confidence"] = [sure[path]] if path in sure else []
        yield _JudgedMemory(path, size, mtime_ns, fields)


def _name_memories(path: StrPath | Sequence[StrPath], hash_: str | None) -> Sequence[str]:
    names = (path_text(path),) if isinstance(path, str | os.PathLike) else path_texts(path)
    if not names:
        raise Usage(problem="no memory is named", remedy="name one or more")
    if hash_ is not None and len(names) > 1:
        raise Usage(problem="a hash is that of one memory", remedy="leave it out, or name one memory")
    return names


_NAMED = 3  # in the message of a change
R = TypeVar("R")
Build = Callable[[], EditPlan]
FindVerb = Callable[[str], Callable[..., Build]]
"""Find a verb by its name, such as `preferences.set`; called, it returns what makes its plan."""
Where = Literal["replace", "append", "before", "after"]


class KindVerbs(Generic[R]):
    """What all verbs have: a vault, `run` as in the module, `clock`, which says what time it is."""

    def __init__(
        self, vault: Vault, run: Callable[[Build], R], clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._vault = vault
        self._run = run
        self._clock = clock


class Verbs(KindVerbs[R]):
    """Every change that can be made to any memory.

    Paths are relative to the namespace. `base` is the hash that the caller saw (at least its first eight
    digits): when the memory has moved on, the change is refused with the difference. Without it, a change
    is made to what is there at that moment. What changes working memory that expires begins its life again,
    see `mdmem.memory.working`.

    All verbs raise `MemoryNotFound`, `PathRefused`, `Conflict` (with `base`), `Invalid`, and what
    `Vault.apply` raises.
    """

    def __init__(self, vault: Vault, run: Callable[[Build], R], view: Callable[[], View]) -> None:
        super().__init__(vault, run)
        self._view = view

    # -- one memory ---------------------------------------------------------------------------------------

    def write(
        self,
        path: StrPath,
        content: str,
        *,
        base: str | Document | None = None,
        overwrite: bool = False,
        supersedes: StrPath | None = None,
    ) -> R:
        """Write a whole memory: a new one, or one that is there with its `base` or `overwrite`.

        Args:
            base: what the caller saw of it: the hash, which it must still have; or all of it, and then what
                has changed since is merged.
            overwrite: write it whatever is there.
            supersedes: a memory that it supersedes in the same change.

        Raises:
            AlreadyExists: it is there, and neither `base` nor `overwrite` was given.
        """

        def build() -> EditPlan:
            plan = self._write_plan(path_text(path), content, base, overwrite=overwrite)
            if supersedes is None:
                return plan
            from mdmem.memory import validity  # noqa: PLC0415 - start-up

            ended = validity.supersede(
                self._vault, self._view, path_text(supersedes), path_text(path), utc_now(), is_written=True
            )
            return together((plan, ended), f"{plan.message}, which supersedes {path_text(supersedes)}")

        return self._run_renewed(build)

    def _write_plan(
        self, path: str, content: str, base: str | Document | None = None, *, overwrite: bool = False
    ) -> EditPlan:
        data = history.encoded(path, content)
        if isinstance(base, Document):
            before: Document | None = history.require(self._vault, path, None)
            data = history.carried(base, data, before) if before else data
        else:
            before = history.find(self._vault, path, base)
        if before is not None and base is None and not overwrite:
            raise AlreadyExists(path=path, remedy="give its hash (--base), or say --overwrite")
        change = Change(path=check_memory(path), before=before, content=data, merge=False)
        return EditPlan(changes=(change,), message=f"write {path}")

    def append(self, path: StrPath, text: str, *, base: str | None = None) -> R:
        """Add lines at the end of a memory; a memory that is not there is made."""

        def build() -> EditPlan:
            name = path_text(path)
            before = history.find(self._vault, name, base)
            if before is None:
                empty = parse(check_memory(name), b"")
                new = text_edit.splice("", text_edit.append(empty, text))
                return history.creation(empty.path, new, f"append to {path}")
            return edit(before, text_edit.append(before, text), f"append to {path}", merge=base is None)

        return self._run_renewed(build)

    def edit(self, path: StrPath, change: Callable[[Document], list[TextEdit]]) -> R:
        """Change a memory by the edits that `change` returns; it is asked again if the memory changes."""
        return self._edit_memory(path, None, "edit", change)

    def prepend(self, path: StrPath, text: str, *, base: str | None = None) -> R:
        """Add lines at the beginning of a memory's body, behind its frontmatter."""
        return self._edit_memory(path, base, "prepend to", lambda d: text_edit.prepend(d, text))

    def insert(self, path: StrPath, line: int, text: str, *, base: str | None = None) -> R:
        """Insert lines behind line `line` (1-based; 0 is before the first)."""
        return self._edit_memory(path, base, "insert into", lambda d: text_edit.insert(d, line, text))

    def delete_lines(self, path: StrPath, first: int, last: int, *, base: str | None = None) -> R:
        """Delete the lines `first` to `last` (1-based, both included)."""
        return self._edit_memory(
            path, base, "delete lines of", lambda d: text_edit.delete_lines(d, first, last)
        )

    def set(self, path: StrPath, fields: Mapping[str, Any], *, base: str | None = None) -> R:
        """Set fields of the frontmatter, or of a JSON memory, by their dotted keys (`source.type`)."""
        values = json_value(fields)

        def change(document: Document) -> list[TextEdit]:
            changed = document
            for key, value in values.items():
                changed = field.with_field(changed, key, value)
            return text_edit.between(document.text, changed.text)

        return self._edit_memory(path, base, "set fields of", change)

    def unset(self, path: StrPath, key: str | Sequence[Key], *, base: str | None = None) -> R:
        """Remove a field of the frontmatter, or of a JSON memory, by its dotted key."""
        return self._edit_memory(path, base, "unset a field of", lambda d: field.unset_field(d, key))

    def section(
        self,
        path: StrPath,
        heading: str,
        text: str,
        *,
        where: Where = "replace",
        keep_subsections: bool = False,
        base: str | None = None,
    ) -> R:
        """Change a section, found by its heading or heading path (`Design > Index`).

        `where` says how: replace its text, append to it, or insert before or after the whole section.
        """

        def change(document: Document) -> list[TextEdit]:
            if where == "replace":
                return text_section.replace_section(
                    document, heading, text, keep_subsections=keep_subsections
                )
            verbs = {
                "append": text_section.append_to_section,
                "before": text_section.insert_before_section,
                "after": text_section.insert_after_section,
            }
            if where not in verbs:
                raise Usage(problem=f"where is replace, append, before or after, not {where!r}")
            return verbs[where](document, heading, text)

        return self._edit_memory(path, base, "change a section of", change)

    # -- one memory, or many ------------------------------------------------------------------------------

    def replace(
        self,
        path: StrPath | None,
        old: str,
        new: str,
        *,
        count: int | Literal["all"] = 1,
        regex: bool = False,
        within: StrPath = "",
        globs: Sequence[str] = (),
        base: str | None = None,
    ) -> R:
        """Replace text: in one memory, as often as expected; with `path` None, in all below `within`.

        Args:
            path: the memory, or None for every memory below the folder `within` that fits one of `globs`.
            old, new, count, regex: as `mdmem.document.edit.replace`; across memories, `count` is of all
                occurrences together.
            within, globs: which memories.

        Raises:
            TextNotFound, TextAmbiguous: it does not occur, or not as often as `count` says.
            MemoryNotFound: no memory is below `within`.
        """
        if path is not None:
            return self._edit_memory(
                path, base, "replace in", lambda d: text_edit.replace(d, old, new, count=count, regex=regex)
            )
        return self._run_renewed(
            lambda: self._replace_across(old, new, count=count, regex=regex, within=within, globs=globs)
        )

    def _replace_across(
        self,
        old: str,
        new: str,
        *,
        count: int | Literal["all"],
        regex: bool,
        within: StrPath,
        globs: Sequence[str],
    ) -> EditPlan:
        fits, folder = matcher(globs), check_folder(within)
        changes, counts, left_out = [], [], []
        walked = list(self._vault.walk(folder))
        if folder and not walked:
            if folder.endswith(self._vault.suffixes) and self._vault.exists(folder):
                raise Usage(problem=f"{folder} is a memory, not a folder", remedy="give it as PATH")
            raise MemoryNotFound(path=folder, kind="folder")
        walked = [found for found in walked if fits(relative(found.path, folder))]
        for found in self._vault.report_progress("replacing", walked):
            try:
                if found.problem:
                    left_out.append(f"{found.path}: {found.problem}")
                    continue
                document = self._vault.read(found.path)
                places = text_edit.find_replacements(document, old, new, regex=regex)
            except CANNOT_READ as error:
                left_out.append(error.message)
                continue
            if places.starts:
                edits = tuple(places.as_edits(document.text))
                changes.append(Change(path=found.path, before=document, edits=edits, merge=False))
                counts.append((found.path, len(places.starts)))
        name = folder or "every memory"
        if not changes:
            near = self._find_slips((found.path for found in walked if not found.problem), old, regex=regex)
            remedy = text_edit.NO_MATCH if regex else _NO_SLIP
            raise TextNotFound(path=name, old=old, near=near, left_out=tuple(left_out), remedy=remedy)
        times = sum(number for _, number in counts)
        if count != "all" and count != times:  # noqa: PLR1714 - so that mypy sees an int
            raise TextAmbiguous(path=name, old=old, expected=count, counts=tuple(counts))
        message = f"replace {plural(times, 'occurrence')} in {plural(len(changes), 'memory')}"
        return EditPlan(changes=tuple(changes), message=message, left_out=tuple(left_out))

    def _find_slips(self, paths: Iterable[str], old: str, *, regex: bool) -> tuple[NearLine, ...]:
        for path in paths:
            with contextlib.suppress(*CANNOT_READ):
                if near := text_edit.find_slips(self._vault.read(path), old, regex=regex):
                    return tuple(line._replace(path=path) for line in near)
        return ()

    def mv(self, source: StrPath | Sequence[StrPath], target: StrPath, *, base: str | None = None) -> R:
        """Move a memory, an attachment, or a folder of both, to a path where nothing stands; links follow.

        What the config says of a folder, in `check.guests` and `links.dialects`, follows it too.
        A `target` with a slash at its end is a folder to move into, under the same name, also several at
        once, all of them or none. See `mdmem.index.links.move`.
        """
        from mdmem.index.links.outside import move_files  # noqa: PLC0415 - start-up

        sources, target = _name_memories(source, base), path_text(target)
        if len(sources) > 1 and not target.endswith("/"):
            raise Usage(problem=f"{target} is not a folder to move several into", remedy=f"say {target}/")

        def build() -> EditPlan:
            moves: dict[str, str] = {}
            attached: dict[str, str] = {}
            folders: dict[str, str] = {}
            for old in map(check_folder, sources):
                new = join(check_folder(target), old.rpartition("/")[2]) if target.endswith("/") else target
                found = {} if old.endswith(self._vault.suffixes) else dict(self._vault.attachments(old))
                attached |= found
                is_alone = found and base is None and next(self._vault.walk(old), None) is None
                memories = [] if is_alone else [each.path for each in self._read_source(old, new, base)]
                moves |= {path: new + path[len(old) :] for path in (*memories, *found)}
                folders |= {} if old in moves else {old: new}
            view = self._view()
            outside = {view.in_workspace(path): view.in_workspace(moves[path]) for path in attached}
            plan = move_files(view, moves, outside, folders)
            files = (AttachmentChange(path, moves[path], attached[path]) for path in attached)
            message = f"move {first_of(sources, _NAMED)} to {target}"
            refused = (each for name in sources for each in self._list_refused(name))
            left = (*plan.left_out, *refused, *self._describe_hidden(folders))
            in_vault = {self._vault.folder(old): self._vault.folder(new) for old, new in folders.items()}
            told = follow_moves(self._vault.config, in_vault)
            return plan._replace(message=message, attachments=tuple(files), left_out=left, config=told)

        return self._run(build)

    def rename_heading(self, path: StrPath, old: str, new: str) -> R:
        """Give a heading, found by its title or heading path, a new title; every link to it follows."""
        from mdmem.index.links.rename import rename_heading  # noqa: PLC0415 - start-up

        return self._run_rename(lambda known: rename_heading(known, path_text(path), old, new))

    def rename_block(self, path: StrPath, old: str, new: str) -> R:
        """Give a block a new id (`fact1` or `^fact1`); every link to it follows."""
        from mdmem.index.links.rename import rename_block  # noqa: PLC0415 - start-up

        return self._run_rename(lambda known: rename_block(known, path_text(path), old, new))

    def rename_id(self, path: StrPath, new: str) -> R:
        """Give a memory a new `id`; every link that says the old one follows."""
        from mdmem.index.links.rename import rename_id  # noqa: PLC0415 - start-up

        return self._run_rename(lambda known: rename_id(known, path_text(path), new))

    def _run_rename(self, build: Callable[[Known], EditPlan]) -> R:
        from mdmem.index.code.citations import keep_stale  # noqa: PLC0415 - start-up
        from mdmem.index.links.move import known  # noqa: PLC0415 - as above

        def build_all() -> EditPlan:
            view = self._view()
            return keep_stale(view, build(known(view)))

        return self._run(build_all)

    def rename_tag(self, old: str, new: str) -> R:
        """Rename a tag, and those below it, in every memory."""
        from mdmem.index.links.rename import rename_tag  # noqa: PLC0415 - start-up

        def build() -> EditPlan:
            view = self._view()
            documents = map(self._vault.read, view.tagged(old))
            return rename_tag(documents, old, new, [name for name, _ in view.tags()])

        return self._run(build)

    def _read_source(self, path: str, target: str, base: str | None) -> list[Document]:
        try:
            return self._read_all(path, base)
        except MemoryNotFound:
            if not target.endswith(self._vault.suffixes) or self._vault.find(target) is None:
                raise
            remedy = f"if it was renamed to {target} without mdmem, give it back its name, and move it again"
            raise MemoryNotFound(path=path, remedy=remedy) from None

    def _read_all(self, path: str, base: str | None) -> list[Document]:
        if path.endswith(self._vault.suffixes):
            return [history.require(self._vault, path, base, unreadable=True)]
        if base is not None:
            raise Usage(problem=f"{path!r} is a folder, which has no hash", remedy="leave the base out")
        paths = list(self._list_below(check_folder(path)))
        reading = self._vault.report_progress("reading", paths)
        documents = [self._vault.read(each, unreadable=True) for each in reading]
        if not documents:
            if any(is_under(each, check_folder(path)) for each in self._vault.other_files()):
                raise Usage(
                    problem=f"{path} holds no memory", remedy="delete other files with your system's `rm`"
                )
            raise MemoryNotFound(path=path, kind="folder or memory")
        return documents

    def _list_below(self, folder: str) -> Iterator[str]:
        if not folder:
            raise Usage(
                problem="the whole namespace cannot be moved or deleted", remedy="name a folder in it"
            )
        for found in self._vault.walk(folder):
            if not found.problem:
                yield found.path
            elif "\\" not in found.path:  # no memory can have such a name
                raise Usage(
                    problem=f"{found.path} cannot be moved or deleted: {found.problem}",
                    remedy="move it away first",
                )

    def _describe_hidden(self, folders: Iterable[str]) -> Iterator[str]:
        """Say which hidden files stay where a folder moves; refuse if one marks it as that of a tool."""
        from mdmem.index.links.dialect import DIALECTS  # noqa: PLC0415 - start-up

        markers = {marker: each.name for each in DIALECTS for marker in each.markers}
        for folder in folders:
            hidden = sorted(self._list_hidden(folder))
            for path in hidden:
                if tool := markers.get(f"{path.rpartition('/')[2]}/"):
                    reason = f"it belongs to {tool}, is hidden, and would stay behind"
                    remedy = f"move {folder} with git or the file manager, then run `mdmem doctor --fix`"
                    raise EditRefused(path=path, reason=reason, remedy=remedy)
            if hidden:
                yield f"{folder}: hidden, and stays: {first_of(hidden, _NAMED)}"

    def _list_hidden(self, folder: str) -> Iterator[str]:
        pending = [folder]
        while pending:
            above = pending.pop()
            for name in self._vault.store.names(join(self._vault.namespace, above)):
                path = join(above, name)
                if not self._vault.wall.holds(join(self._vault.namespace, path)):
                    continue
                if is_hidden(name):
                    yield show_name(path)
                elif not name.endswith(self._vault.suffixes):
                    pending.append(path)

    def _list_refused(self, name: str) -> Iterator[str]:
        walked = () if name.endswith(self._vault.suffixes) else self._vault.walk(name.rstrip("/"))
        yield from (f"{each.path}: {each.problem}: it stays" for each in walked if "\\" in each.path)

    def rm(
        self,
        path: StrPath | Sequence[StrPath],
        *,
        recursive: bool = False,
        cascade: bool = False,
        base: str | None = None,
    ) -> R:
        """Delete a memory, or several at once; `restore` brings them back.

        Args:
            recursive: a folder is taken as well, with every memory in it.
            cascade: what derives from nothing else is deleted as well.

        Raises:
            Usage: a folder is named without `recursive`; or a `base` for more than one memory.
        """
        names = _name_memories(path, base)

        def build() -> EditPlan:
            for name in () if recursive or base else names:
                self._refuse_folder(name)
            found = {each.path: each for name in names for each in self._read_all(name, base)}
            if cascade:
                from mdmem.index.links.lineage import find_orphans  # noqa: PLC0415 - start-up

                found |= {each: self._vault.read(each) for each in find_orphans(self._view(), [*found])}
            return EditPlan(
                changes=tuple(map(deletion, found.values())),
                message=f"delete {first_of(names, _NAMED)}",
                left_out=tuple(self._list_staying(names)) if recursive else (),
                dangling=self._find_dangling(found.keys()),
            )

        return self._run(build)

    def _list_staying(self, names: Iterable[str]) -> Iterator[str]:
        others = list(self._vault.other_files())
        for name in names:
            if count := sum(is_under(path, name.rstrip("/")) for path in others):
                files = "1 file that is no memory" if count == 1 else f"{count:,} files that are no memories"
                yield f"{name}: {files}"
            yield from self._list_refused(name)

    def _find_dangling(self, gone: Collection[str]) -> tuple[LinkPlace, ...]:
        from mdmem.index.links.resolve import find_dangling  # noqa: PLC0415 - start-up

        try:
            return tuple(find_dangling(self._view(), frozenset(gone)))
        except (IndexDamaged, LockTimeout, StorageFailed):
            return ()

    def _refuse_folder(self, path: str) -> None:
        if path.endswith(self._vault.suffixes):
            return
        count = sum(1 for _ in self._list_below(check_folder(path)))
        if count:
            memories = plural(count, "memory")
            remedy = "delete all of it with recursive (-r), or name a memory"
            raise Usage(problem=f"{path} is a folder with {memories}", remedy=remedy)

    def clear(self) -> R:
        """Delete every memory of the namespace but mounted files."""

        def build() -> EditPlan:
            mounted = {relative(path, self._vault.namespace) for path in self._vault.mounted("")}
            paths = [found.path for found in self._vault.walk() if not found.problem]
            documents = [self._vault.read(path) for path in paths if path not in mounted]
            return EditPlan(changes=tuple(map(deletion, documents)), message="clear the memory")

        return self._run(build)

    # -- from templates, from elsewhere, and from the past ------------------------------------------------

    def new(self, template: str, path: StrPath, variables: Mapping[str, Any] | None = None) -> R:
        """Make a memory from a template; a `type` that is the kind of another folder is a warning.

        Args:
            template: its name, or that of a kind, which has one.
            path: with its suffix; for a kind a name without one means the memory of its folder.

        Raises:
            NamedNotFound: no such template.
            TemplateFailed: it cannot be rendered, misses a variable, or does not read one.
            AlreadyExists: a memory stands there.
        """
        path, templates = path_text(path), self._vault.templates
        kind = next((k for k in self._vault.config.kinds if k.name == template and k.template), None)
        if kind:
            template = kind.template
            if not path.endswith(ANY_SUFFIXES):
                suffix = SUFFIXES[templates.find(template)[0].endswith(SUFFIXES[True])]
                path = (path if is_under(path, kind.folder) else join(kind.folder, path)) + suffix
        # Rendered before anything is built: a plan may be built again under the lock, a template never is.
        content = templates.render(template, variables or {}, now=datetime.now(UTC), refuse_unread=True)

        def build() -> EditPlan:
            try:
                plan = self._write_plan(path, content)
            except AlreadyExists as error:
                raise error.but(remedy="give another path, or edit the memory that is there") from None
            made = plan.changes[0].after(self._vault.config.limits)
            return plan._replace(warnings=self._vault.schemas.misplaced(made) if made else ())

        return self._run_renewed(build)

    def import_(
        self,
        format: str,  # noqa: A002 - its name on the command line
        source: StrPath,
        *,
        to: StrPath | None = None,
    ) -> R:
        """Take in the memory of another system, as one change that `undo` takes back whole.

        Memories keep their bytes, whatever is wrong with them, and attachments come along. What stands there
        already is never overwritten. What cannot be held is in the plan's `left_out`, with the reason, and
        all files are counted in its `outcomes`. Links that may mean several memories, among the new ones and
        those that stand there, are in its `warnings`.

        Args:
            format: see `mdmem.memory.importing.FORMATS`.
            to: the folder to put it in; without one `notes`.

        Raises:
            Usage: there is no such format, or no such source.
            NamedNotFound: there is nothing to import in it.
        """
        from mdmem.memory.importing import importing  # noqa: PLC0415 - start-up

        return self._run(importing(self._vault, self._view, format, path_text(source), to))

    def restore(self, path: StrPath | Sequence[StrPath], *, hash: str | None = None) -> R:  # noqa: A002 - its name everywhere else
        """Bring back what a memory, or each of several, held before its last change.

        Args:
            path: the memory, or several. Of a folder, all that another program deleted below it.
            hash: the content to bring back, instead of the last one.

        Raises:
            NamedNotFound: nothing of that memory is kept, or nothing was deleted in the folder.
            Usage: `hash` has fewer than eight digits, or more than one memory is named.
        """
        names = _name_memories(path, hash)

        def build() -> EditPlan:
            found = dict.fromkeys(path for name in names for path in self._list_restorable(name, hash))
            plans = [restored(self._vault, path, hash) for path in found]
            changes = together(plans, "").changes
            return plans[0]._replace(changes=changes, message=f"restore {first_of(names, _NAMED)}")

        return self._run(build)

    def _list_restorable(self, name: str, wanted: str | None) -> Sequence[str]:
        is_folder = wanted is None and not name.endswith(self._vault.suffixes)
        return find_gone(self._vault, name) if is_folder else (name,)

    def undo(self, change: str | None = None, *, count: int = 1, own: Collection[str] | None = None) -> R:
        """Take back your last change, all its memories at once; again, the one before. `redo` puts it back.

        What has changed since then stays, where the two can be merged.

        Args:
            change: the id of another change to take back, whoever made it. That of an undo is put back.
            count: how many of the last changes to take back, each as a change of its own; as many as there
                are, and none where one of them is refused.
            own: the ids of your changes; without, those that this actor made.

        Raises:
            NamedNotFound: no such change; the error says who made the last one.
            Conflict: a memory has changed since, in the same place.
            Usage: `count` is less than 1, or more for a change that is named.
        """
        # Named once: built again under the lock, it must not become what somebody changed meanwhile.
        entries = history.find_changes(self._vault, change, count, own)
        newer = "" if change else history.describe_newer(self._vault, entries)
        return self._run(lambda: history.undone(self._vault, entries)._replace(newer=newer))

    def redo(self, *, count: int = 1, own: Collection[str] | None = None) -> R:
        """Put back what your last `undo` took, unless something was changed since; again, the one before.

        `count` and `own` are as for `undo`.

        Raises:
            NamedNotFound: nothing was undone since the last change that was made.
            Conflict: a memory has changed since, in the same place.
            Usage: `count` is less than 1.
        """
        entries = history.find_undos(self._vault, count, own)
        return self._run(lambda: history.undone(self._vault, entries))

    # -- who may use it -----------------------------------------------------------------------------------

    def share(self, path: StrPath, user: str, level: str, *, until: datetime | str | None = None) -> R:
        """Let another user, or `everyone`, use a memory of a user; see `mdmem.memory.sharing`.

        Args:
            path, user: the memory, and the id of the user.
            level: read; write, which changes its text; or full, which also deletes, moves and shares it.
            until: the day or time at which all grants of the memory end; without it, as before.

        Raises:
            Usage, LimitReached: sharing is off; the memory, user, level or end cannot be; over 100 users.
        """
        from mdmem.memory import sharing  # noqa: PLC0415 - start-up

        require_text(user=user, level=level)
        return self._run(lambda: sharing.share(self._vault, path_text(path), user, level, until, utc_now()))

    def unshare(self, path: StrPath, user: str | None = None) -> R:
        """Take back what `user` may do with a memory, or all others; NamedNotFound where that is nothing."""
        from mdmem.memory import sharing  # noqa: PLC0415 - start-up

        return self._run(lambda: sharing.unshare(self._vault, path_text(path), user))

    # -- what counts --------------------------------------------------------------------------------------

    def supersede(
        self,
        old: StrPath,
        by: StrPath,
        *,
        at: datetime | str | None = None,
        bases: Mapping[str, str] | None = None,
    ) -> R:
        """Let one memory take the place of another, which then counts no more; see `mdmem.memory.validity`.

        Args:
            at: when the old one ends, unless it has an end; now without one.
            bases: the hashes of memories by path, such as both: refuse if one has another.

        Raises:
            Usage: `old` has another successor, or leads to itself; or `at` is no moment.
        """
        from mdmem.memory import validity  # noqa: PLC0415 - start-up

        end = validity.read_moment(at, utc_now())

        def build() -> EditPlan:
            self._require_bases(bases)
            return validity.supersede(self._vault, self._view, path_text(old), path_text(by), end)

        return self._run(build)

    def merge(
        self,
        paths: Sequence[StrPath],
        into: StrPath,
        content: str | None = None,
        *,
        bases: Mapping[str, str] | None = None,
    ) -> R:
        """Make one memory of several, which it supersedes; see `mdmem.memory.duplicates`.

        Args:
            into: one of them, or a new memory.
            content: what it says then; without it, its own text and the blocks that the others have alone.
            bases: as for `supersede`.

        Raises:
            Usage: fewer than two memories, or one is JSON.
            AlreadyExists: `into` is another memory.
        """
        from mdmem.memory.duplicates import plan_merge  # noqa: PLC0415 - start-up

        names = [check_memory(path_text(each)) for each in paths]

        def build() -> EditPlan:
            self._require_bases(bases)
            documents = [history.require(self._vault, name, None) for name in dict.fromkeys(names)]
            return plan_merge(self._vault, self._view(), documents, check_memory(into), content, utc_now())

        return self._run(build)

    def _require_bases(self, bases: Mapping[str, str] | None) -> None:
        for path, base in (bases or {}).items():
            history.require(self._vault, path, base)

    def contradict(self, path: StrPath, by: StrPath, *, at: datetime | str | None = None) -> R:
        """Note that a memory speaks against another, which then counts no more.

        Args:
            at: when it ends, unless it has an end; now without one.

        Raises:
            Usage: they are one memory; or `at` is no moment.
        """
        from mdmem.memory import validity  # noqa: PLC0415 - start-up

        end = validity.read_moment(at, utc_now())
        return self._run(lambda: validity.contradict(self._vault, path_text(path), path_text(by), end))

    def reinstate(self, path: StrPath) -> R:
        """Let a memory count again: without successor, contradictions, and an end that has come."""
        from mdmem.memory import validity  # noqa: PLC0415 - start-up

        return self._run(lambda: validity.reinstate(self._vault, path_text(path), utc_now()))

    def confirm(self, path: StrPath, *, source: str | None = None) -> R:
        """Note that a memory was found right now, and by which source, such as `sessions/t1#7`.

        Raises:
            Usage: its field `source` is a text, to which none can be added.
        """
        from mdmem.memory import validity  # noqa: PLC0415 - start-up

        if source is not None:
            require_text(source=source)
        return self._run(lambda: validity.confirm(self._vault, path_text(path), source, utc_now()))

    def retier(self, path: StrPath, tier: str, *, expires: datetime | str | None = None) -> R:
        """Give a memory a tier, and the time to live that the config gives to that tier.

        Args:
            tier: working, episodic, semantic, procedural or pinned.
            expires: when it expires, whatever its tier says.

        Raises:
            Usage: there is no such tier; or `expires` is no moment.
        """
        from mdmem.memory import validity  # noqa: PLC0415 - start-up

        now = utc_now()
        end = validity.read_moment(expires, now) if expires is not None else None
        return self._run(lambda: validity.retier(self._vault, path_text(path), tier, end, now))

    def reinforce(self, paths: StrPath | Sequence[StrPath], *, until: datetime | str | None = None) -> R:
        """Let memories that expire live on; no end is moved back, and none is given.

        Args:
            until: when they expire; without it, as long from now as their `ttl_seconds` or tier says.

        Raises:
            Usage: `until` is no moment.
        """
        from mdmem.memory import validity  # noqa: PLC0415 - start-up

        names, now = _name_memories(paths, None), utc_now()
        end = validity.read_moment(until, now) if until is not None else None
        return self._run(lambda: validity.reinforce(self._vault, names, end, now))

    def sweep(self, within: StrPath = "") -> R:
        """Delete what has expired below a folder, and has a tier or `ttl_seconds`; name what else has."""
        from mdmem.memory import validity  # noqa: PLC0415 - start-up

        return self._run(lambda: validity.sweep(self._view(), check_folder(within), utc_now()))

    # -- what the verbs share -----------------------------------------------------------------------------

    def _edit_memory(
        self, path: StrPath, base: str | None, action: str, change: Callable[[Document], list[TextEdit]]
    ) -> R:
        def build() -> EditPlan:
            document = history.require(self._vault, path_text(path), base)
            return edit(document, change(document), f"{action} {path}", merge=base is None)

        return self._run_renewed(build)

    def _run_renewed(self, build: Build) -> R:
        return self._run(lambda: sliding(self._vault, build()))
