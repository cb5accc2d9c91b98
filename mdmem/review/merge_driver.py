"""The merge driver: what git asks to merge the three versions of one file.

A memory is merged as the vault merges concurrent changes, with git's own merge of lines, and the result is
checked before git is told that it is clean: it must read as a memory, and keep its schema as well as both
sides do. If it does not, and for other files, git's merge of lines decides. The file is never left with one
side alone: if they cannot be merged, both stand between markers.
"""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path
from typing import NamedTuple

from mdmem.document.document import ANY_SUFFIXES, Document, parse, parse_text
from mdmem.document.merging.conflict import Markers, MergeConflict
from mdmem.document.merging.line_merge import Piece, read_marked
from mdmem.document.merging.merge import merge
from mdmem.document.text.diff import Versions, hunks
from mdmem.document.text.lines import whole_lines
from mdmem.document.text.regex import regex
from mdmem.errors import DocumentRefused, GitFailed, MdmemError, StorageFailed, Usage
from mdmem.git import program
from mdmem.vault import outside
from mdmem.vault.files import Place
from mdmem.vault.folder import find
from mdmem.vault.vault import Vault

_MOST_SIZE = 1_000  # of a marker: attributes come with the files
_SHOWING_BASE = ("diff3", "zdiff3")
_MARKER = regex(r"(?:(?<=[\r\n])|\A)([<|=>])\1*")
_CONFLICTS = range(1, 128)  # what `git merge-file` ends with


class MergedFile(NamedTuple):
    """What became of a file.

    Attributes:
        path: the file, from the top of the work tree.
        conflicts: how many places stand between markers.
        notes: why it was not merged as a memory, or not cleanly, in words.
    """

    path: str
    conflicts: int
    notes: tuple[str, ...] = ()


class _Outcome(NamedTuple):
    data: bytes
    conflicts: int


def merge_files(
    base: str,
    ours: str,
    theirs: str,
    path: str,
    size: int = 7,
    labels: tuple[str, str, str] = ("base", "ours", "theirs"),
) -> MergedFile:
    """Merge what two sides made of one file, and write it in the place of `ours`.

    Args:
        base, ours, theirs: the files that hold the three versions.
        path: the file that they are versions of, from the top of the work tree, which is the current folder.
        labels: what the markers call `base`, `ours` and `theirs`.

    Raises:
        MemoryNotFound, PathRefused, StorageFailed: one of the files cannot be read, or `ours` not written;
            then nothing was written.
    """
    if size < 1:
        raise Usage(problem=f"a conflict marker needs at least 1 character, not {size}")
    names = Versions(base, ours, theirs)
    places = names.map(_locate_file)
    data = places.paired(names, _read_version)
    before, mine, yours = labels
    markers = Markers(size=min(size, _MOST_SIZE), base=before, ours=mine, theirs=yours)
    work = _Work(names, data, path, markers, [])
    result = work.outcome()
    outside.replace(places.ours, ours, data.ours, result.data)
    return MergedFile(path, result.conflicts, tuple(work.notes))


def _locate_file(name: str) -> Place:
    folder, file = os.path.split(os.path.abspath(name))
    return outside.below(os.path.realpath(folder), file)


def _read_version(place: Place, name: str) -> bytes:
    content = outside.read(place, name)
    if content is None:
        raise StorageFailed(path=name, action="read a version", reason="there is no such file")
    return content.data


class _Work(NamedTuple):
    names: Versions[str]
    data: Versions[bytes]
    path: str
    markers: Markers
    notes: list[str]

    def outcome(self) -> _Outcome:
        if not _may_be_memory(self.path):
            return self._by_lines()
        try:
            return self._as_memory() or self._by_lines(may_be_clean=False)
        except DocumentRefused as error:
            self.notes.append(error.message)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in here, git's own merge is there
            self.notes.append(f"it cannot be merged as a memory: {type(error).__name__} {error}")
        return self._by_lines()

    def _as_memory(self) -> _Outcome | None:
        """Merge as memories; return None if conflicts cannot be marked, or the merge is not to be trusted."""
        vault, name = _find_memory(self.path) or (None, self.path)
        documents = self.data.map(lambda data: parse(name, data))
        merged = merge(*documents, markers=self.markers, by_lines=self._merge_lines)
        reason = ""
        if merged.conflicts and self._shows_base():
            markers = self.markers._replace(shows_base=True)
            merged = merge(*documents, markers=markers, by_lines=self._merge_lines)
        if merged.text is None:
            reason = merged.conflicts[0].reason
            if not reason:
                self.notes.append(f"both sides changed {merged.conflicts[0].where or 'the same place'}")
        elif not merged.conflicts:
            vault = self._readable_vault(vault)
            reason = _describe_fault(documents, merged.text, vault)
            # What its lines make may break what the tree keeps.
            again = merge(*documents, by_lines=None) if reason else merged
            if (
                again.text is not None
                and again != merged
                and not _describe_fault(documents, again.text, vault)
            ):
                merged, reason = again, ""
        if reason:
            self.notes.append(f"the clean merge was discarded: it {reason}")
        if merged.text is None or reason:
            return None
        self.notes.extend(filter(None, map(_describe_conflict, merged.conflicts)))
        # A label may be any bytes.
        return _Outcome(merged.text.encode("utf-8", "surrogateescape"), len(merged.conflicts))

    def _shows_base(self) -> bool:
        ended = program.run(["config", "--get", "merge.conflictStyle"], os.getcwd(), "read its settings")
        return ended.printed.decode("utf-8", "replace").strip() in _SHOWING_BASE

    def _readable_vault(self, vault: Vault | None) -> Vault | None:
        """Return the vault if it can check memories: during a merge its own files may hold conflicts."""
        try:
            if vault:
                _ = vault.config, vault.schemas
        except MdmemError as error:
            self.notes.append(f"its schema is not checked: {error.message}")
            return None
        return vault

    def _by_lines(self, *, may_be_clean: bool = True) -> _Outcome:
        """Return git's merge of the lines; if that is clean and may not be, all differences as conflicts."""
        agreed = self.data.agreed()
        if agreed and may_be_clean:
            return _Outcome(agreed[0], 0)
        try:
            outcome = self._run_git(self.names, self.markers)
            if outcome.conflicts or may_be_clean:
                return outcome
        except MdmemError as error:
            self.notes.append(error.message)
        _, mine, yours = self.data.map(lambda side: whole_lines(side.decode("utf-8", "surrogateescape")))
        parts, reached, changed = [], 0, hunks(mine, yours)
        for start, end, new_start, new_end in changed:
            sides = "".join(mine[start:end]), "".join(yours[new_start:new_end])
            newline = "\r\n" if "\r\n" in sides[0] + sides[1] else "\n"
            parts += [*mine[reached:start], self.markers.around("", *sides, newline)]
            reached = end
        marked = "".join([*parts, *mine[reached:]])
        return _Outcome(marked.encode("utf-8", "surrogateescape"), max(1, len(changed)))

    def _merge_lines(self, texts: Versions[str]) -> list[Piece]:
        taken = {len(each[0]) for text in texts for each in _MARKER.finditer(text)}
        size = next(size for size in count(7) if size not in taken)
        with tempfile.TemporaryDirectory() as folder:
            names = Versions(*(os.path.join(folder, name) for name in Versions._fields))
            for name, text in zip(names, texts, strict=True):
                Path(name).write_bytes(text.encode())
            outcome = self._run_git(names, Markers(size=size))
        return read_marked(outcome.data.decode(), size, texts.theirs)

    def _run_git(self, names: Versions[str], markers: Markers) -> _Outcome:
        labels = (markers.ours, markers.base, markers.theirs)
        options = [part for label in labels for part in ("-L", label)]
        files = (names.ours, names.base, names.theirs)
        query = ["merge-file", "-p", f"--marker-size={markers.size}", *options, "--", *files]
        ended = program.run(query, os.getcwd(), "merge lines")
        if ended.status and ended.status not in _CONFLICTS:
            raise GitFailed(path=self.path, action="merge lines", reason=ended.reason)
        return _Outcome(ended.printed, ended.status)


def _describe_conflict(conflict: MergeConflict) -> str:
    what = conflict.what or (conflict.where and f"the field {conflict.where!r}: changed by both sides")
    what = what or (conflict.reason and f"a clean merge of all was discarded: it {conflict.reason}")
    return f"line {conflict.line}: {what}" if what else ""


def _may_be_memory(path: str) -> bool:
    """Return whether a file may be a memory by its name; what is hidden belongs to something else."""
    return path.endswith(ANY_SUFFIXES) and not any(part.startswith(".") for part in path.split("/"))


def _find_memory(path: str) -> tuple[Vault, str] | None:
    """Return the vault that has a file as a memory, mounted or not, and its path there."""
    top = os.path.realpath(os.getcwd())
    folders = path.split("/")[:-1]
    for depth in range(len(folders), -1, -1):
        folder = os.path.join(top, *folders[:depth])
        inside = "/".join(path.split("/")[depth:])
        for root in (folder, os.path.join(folder, "memories")):
            try:
                vault = Vault(find(root))
                if root == folder:
                    return vault, inside
                parts = tuple(os.path.relpath(os.path.join(top, path), vault.workspace).split(os.sep))
                mounted = [name for name, file in vault.disk.mounts.items() if file == parts]
            except MdmemError:
                continue
            if mounted:
                return vault, mounted[0]
    return None


def _describe_fault(documents: Versions[Document], text: str, vault: Vault | None) -> str:
    """Return why a clean merge is not to be trusted, in words that follow "it"; else nothing."""
    try:
        after = parse_text(documents.ours.path, text, documents.ours.limits)
        sides = documents.ours, documents.theirs
        if vault:
            new = vault.schemas.find_new(after, *sides)
        else:
            known = {(each.code, each.rule) for side in sides for each in side.findings}
            errors = [each for each in after.findings if each.severity == "error"]
            new = [each for each in errors if (each.code, each.rule) not in known]
    except DocumentRefused as error:
        return f"is not a memory: {error.message}"
    return f"is not valid: {new[0].message}" if new else ""
