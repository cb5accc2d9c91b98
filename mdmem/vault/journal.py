"""The journal: several files change together or not at all, whatever happens in between.

A transaction has an id. In the staging folder its record is `<id>.one` or `<id>.many`, and the new content
of its n-th file is `<id>.n`. Each step exchanges the staged file with its target, so that the old content
stands in the staged file. When every step is done and checked, a record of several files is renamed to
`<id>.done`. The old contents go to the trash, with a copy of the new ones.

Only a record that was written here is believed (`mdmem.vault.mark`); what came into the staging folder in any
other way is moved to `ASIDE`, unread.

After a crash: `.many` is undone. `.one` is finished if its only step happened, and undone otherwise. `.done`
is finished. So a vault is as it was before a transaction, or as it is after it. Steps are undone from the
last on. A folder that they have emptied goes where a file takes its place, and is made again for its files.
A file that another program has written since stays as it is, with what the step did to it. The history then
has the step as a change of its own, which `undo` can take back.

A loss of power is a crash that also takes what was not flushed, in any order; a rename happens whole or not
at all. So the staged content and the log's entry of the change are on the disk before the first step. The
record of a change of several files is there, too. A change of one file does not wait for its record: the old
content has the name `<id>.0` in the staging folder, or its hash in the trash, and the log says which
file it was in. The folders of the targets are flushed after the last step, and again when steps were undone,
before the record goes. Only the name of a record that did nothing can still be lost. Then the log tells of a
change that was never made, and undoing it does nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mdmem.diagnostic import as_json
from mdmem.document.document import digest
from mdmem.errors import FileBusy, MdmemError, MemoryNotFound, PathRefused
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.files import BUSY_SECONDS, Place, Raced
from mdmem.vault.mark import believed, signed
from mdmem.vault.paths import check_folder
from mdmem.vault.store import Entry, FileChange, Step, entry_from
from mdmem.vault.trash import TrashFolder

STAGING = ".mdmem/local/staging"
ASIDE = ".mdmem/local/aside"  # what stood there, and was not written here


# A record of a hundred thousand files is smaller.
_MOST_RECORD_BYTES = 32 * 1024 * 1024
_RECORDS = (".one", ".many", ".done")
_BESIDE = ".mdmem-"
_NO_FILE = "no file"  # instead of a hash: it equals none
_SET_ASIDE = "set aside what another program wrote"
_PART = "part of an interrupted change: another program has written here since"


def pending(root: str) -> set[str]:
    """Return the kinds of records that stand there: `one`, `many`, `done`, or others' names."""
    try:
        return {name.rpartition(".")[2] for name in os.listdir(os.path.join(root, STAGING))}
    except (FileNotFoundError, NotADirectoryError):
        return set()


class _Seat(NamedTuple):
    """Where a step happens: target, open folder and name of the staged file, and the hashes it turns on."""

    path: str
    place: Place
    folders: _Folders
    staged: tuple[int, str]
    before: str | None
    after: str | None

    @property
    def target(self) -> tuple[int, str]:
        """The open folder and the name of the file; an earlier step may have to make room for the folder."""
        return self.folders.of(self.place), self.place.parts[-1]

    def move_back(self) -> None:
        """Move the staged file to its target; a folder there goes, which may hold folders and no file."""
        folder, name = self.target
        if files.is_folder(os.path.join(self.place.root, *self.place.parts)):
            self.folders.sync()
            for _, below, _, inside in os.fwalk(name, topdown=False, dir_fd=folder):
                for each in below:
                    os.rmdir(each, dir_fd=inside)
            os.rmdir(name, dir_fd=folder)
        files.move(self.staged, self.target)


class _Folders:
    """The open folders of a transaction, each opened once: thousands of files may stand in a few."""

    def __init__(self, stack: contextlib.ExitStack, staging: int) -> None:
        self.staging = staging
        self._stack = stack
        self._open: dict[Place, int] = {}

    def of(self, place: Place) -> int:
        """Return the descriptor of the folder in which `place` is; it is made when it is missing."""
        folder = Place(place.root, place.parts[:-1])
        if folder not in self._open:
            opened = files.opened(folder.root, folder.parts, create=True)
            self._open[folder] = self._stack.enter_context(opened)
        return self._open[folder]

    def sync(self) -> None:
        """Wait until all done in them is on the disk; each is opened again where it is asked for again."""
        for folder in self._open.values():
            os.fsync(folder)
        self._open.clear()


class Journal:
    """The journal of the vault at `root`; `place` says where a memory's file is.

    Every method wants the vault's lock held.

    Attributes:
        aside: the names in the staging folder that were not written here, and were moved to `ASIDE`.
        stayed: the steps that recovery could not undo, because another program has written there since.
        report: yields steps that are written, and may say how far it is.
    """

    def __init__(self, root: str, place: Callable[[str], Place], trash: TrashFolder) -> None:
        self.root = root
        self.place = place
        self.trash = trash
        self.aside: list[str] = []
        self.stayed: list[FileChange] = []
        self.report: Callable[[Sequence[Step]], Iterable[Step]] = iter

    def commit(self, entry: Entry, steps: Sequence[Step]) -> None:
        """Do all steps, or none.

        Raises:
            Raced: a program that takes no lock wrote in between; what it wrote stands in its file. What it
                wrote over ours is kept too: its writer may have read ours, and overwrite its own with that.
            FileBusy: such a program still has a file open for writing.
            PathRefused, StorageFailed: a step cannot be done; everything is as before.
            OSError: the journal itself cannot be written; everything is as before.
        """
        many = len(steps) > 1
        record = f"{entry.id}.many" if many else f"{entry.id}.one"
        with contextlib.ExitStack() as stack:
            staging = stack.enter_context(files.opened(os.path.join(self.root, STAGING)))
            files.write_new(staging, record, signed(as_json(entry)), durable=many)
            done = f"{entry.id}.done"
            seats: list[_Seat] = []
            folders = _Folders(stack, staging)
            try:
                for number, step in enumerate(steps):
                    with files.translated(step.path, "write it"):
                        seats.append(self._make_seat(folders, entry, number))
                _stage_contents(seats, self.report(steps))
                self._keep_written(seats, steps)
                if many:
                    os.fsync(staging)
                elif seats[0].staged[0] != staging:
                    # What was taken out stands beside its target: recovery looks there if the record says so.
                    files.sync(staging, record)
                    os.fsync(staging)
                self.trash.record(entry)
                _apply_steps(seats, steps)
                folders.sync()
                if many:
                    os.rename(record, done, src_dir_fd=staging, dst_dir_fd=staging)
                    os.fsync(staging)
            except BaseException as error:
                if files.exists(staging, done):
                    os.rename(done, record, src_dir_fd=staging, dst_dir_fd=staging)
                    os.fsync(staging)
                self._take_back(folders, seats, entry)
                self.trash.take_back(entry)
                files.remove(staging, record)
                for path, data in error.late.items() if isinstance(error, Raced) else ():
                    with files.translated(path, "keep what another program wrote"):
                        self.trash.keep(data, digest(data))
                        after = next(each.after for each in entry.files if each.path == path)
                        change = FileChange(path=path, before=digest(data), after=after)
                        self._note_change(entry, change, _SET_ASIDE)
                raise
            # The change is made. Should its bookkeeping fail, the next command finishes it.
            with contextlib.suppress(OSError, MdmemError):
                for seat in seats:
                    if seat.before is not None:  # its hash is known: it has just been compared
                        self.trash.put(*seat.staged, seat.before)
                self._finish_entry(seats, entry)
                files.remove(staging, done if many else record)

    def _keep_written(self, seats: Sequence[_Seat], steps: Sequence[Step]) -> None:
        # Before the steps: after a crash, only this tells apart what we and another program wrote to a file.
        for seat, step in zip(seats, steps, strict=True):
            if step.after is not None and seat.after is not None:
                self.trash.keep_written(step.after, seat.after, step.before or step.like)

    def recover(self) -> int:
        """Undo or finish what a crash left behind, and clear the staging folder; how many transactions."""
        if not pending(self.root):
            return 0
        done: set[str] = set()
        # Only the log is sure to have the entry of a change of one file. It is read once, since strangers may
        # have filled both the folder and the log.
        last = next(self.trash.entries(), None)
        with files.opened(os.path.join(self.root, STAGING)) as staging:
            for record in sorted(os.listdir(staging)):
                is_last = last is not None and record == f"{last.id}.one"
                entry = _read_record(staging, record) or (last if is_last else None)
                if entry:
                    self._recover_one(staging, record, entry)
                    done.add(entry.id)
            left = os.listdir(staging)
            ours = (
                done
                if done.issuperset(map(_change_id, left))
                else done | {e.id for e in self.trash.entries()}
            )
            for name in left:
                if _change_id(name) not in ours:
                    self._set_aside(staging, name)
                elif name.endswith(_RECORDS):
                    files.remove(staging, name)  # a loss of power has torn it, and the log has the change
                else:
                    self._discard_staged((staging, name))
        return len(done)

    def _set_aside(self, staging: int, name: str) -> None:
        """Move what nobody here has written, or a crash tore before anything was done, out of the way."""
        if name.endswith(_RECORDS) and not os.stat(name, dir_fd=staging, follow_symlinks=False).st_size:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=staging)
                return
        with files.opened(self.root, ASIDE.split("/"), create=True) as aside:
            kept = f"{name}.{os.urandom(4).hex()}" if files.exists(aside, name) else name
            os.rename(name, kept, src_dir_fd=staging, dst_dir_fd=aside)
        self.aside.append(name)

    def _recover_one(self, staging: int, record: str, entry: Entry) -> None:
        done = f"{entry.id}.done"
        with contextlib.ExitStack() as stack:
            folders = _Folders(stack, staging)
            seats: list[_Seat] = []
            for number, change in enumerate(entry.files):
                with contextlib.suppress(PathRefused), files.translated(change.path, "recover it"):
                    seats.append(self._make_seat(folders, entry, number))
            for seat in seats:
                with contextlib.suppress(PathRefused), files.translated(seat.path, "recover it"):
                    files.rejoin(seat.staged, seat.target)
            if record.endswith(".one") and seats and self._was_done(seats[0], entry):
                # Finishing removes the evidence that the change was done, and may be interrupted, too.
                os.rename(record, done, src_dir_fd=staging, dst_dir_fd=staging)
                record = done
            if record == done:
                if not self.trash.tells_of(entry):
                    self.trash.record(entry)
                for seat in seats:
                    self._discard_staged(seat.staged, seat.after)
                self._finish_entry(seats, entry)
            else:
                self.stayed += self._undo_steps(folders, seats, entry)
                self.trash.take_back(entry)
        files.remove(staging, record)

    def _make_seat(self, folders: _Folders, entry: Entry, number: int) -> _Seat:
        change = entry.files[number]
        place = self._locate_change(change)
        staged = (folders.staging, f"{entry.id}.{number}")
        with contextlib.suppress(NotADirectoryError):  # an earlier step makes room for the folder
            folder = folders.of(place)
            if os.fstat(folder).st_dev != os.fstat(folders.staging).st_dev:
                # A mount on another file system: files cannot be exchanged with the staging folder.
                staged = (folder, f"{_BESIDE}{entry.id}.{number}")
        return _Seat(change.path, place, folders, staged, change.before, change.after)

    def _locate_change(self, change: FileChange) -> Place:
        place = self.place(change.path)
        return place._replace(parts=tuple(change.spelled.split("/"))) if change.spelled else place

    def _take_back(self, folders: _Folders, seats: Sequence[_Seat], entry: Entry) -> None:
        """Undo what has been done, and remove the folders that were made for the rest."""
        self._undo_steps(folders, seats, entry)
        for change in entry.files[len(seats) :]:
            if change.before is None:
                self._prune_folders(self._locate_change(change))

    def _was_done(self, seat: _Seat, entry: Entry) -> bool:
        """Return whether the only step was done: what it took out is staged, or in the trash."""
        staged = _hash_content(seat.staged)
        if staged is not None:
            return staged == seat.before
        # In the trash, or a creation took nothing. Where another program has written since, the log tells it
        # from a step whose content was not staged yet; a deletion stages none.
        now = _hash_target(seat)
        if now in {seat.before, seat.after} or seat.after is None:
            return now == seat.after
        last = next(self.trash.entries(), None)
        return last is not None and last.id == entry.id

    def _undo_steps(self, folders: _Folders, seats: Sequence[_Seat], entry: Entry) -> list[FileChange]:
        """Undo what has been done; return the steps that stay, because another program wrote there meanwhile.

        The history then tells of each, and of what another program wrote and goes to the trash.
        """
        # Where a folder is a file (or a link, by now), its memory is out of reach: either its step was not
        # done, or what was taken out of it goes to the trash.
        for seat in reversed(seats):
            with contextlib.suppress(PathRefused), files.translated(seat.path, "recover it"):
                files.rejoin(seat.staged, seat.target)
                if seat.before is None:
                    _undo_creation(seat)
                elif seat.after is None:
                    _undo_deletion(seat)
                else:
                    self._undo_replacement(seat, entry)
        stayed: list[FileChange] = []
        for seat in reversed(seats):
            if self._stays(seat, entry):
                stayed.append(next(change for change in entry.files if change.path == seat.path))
                self._note_change(entry, stayed[-1], _PART)
            else:
                self._note_replaced_content(seat, entry)
        folders.sync()
        for seat in reversed(seats):
            self._discard_staged(seat.staged, seat.after)
            if seat.before is None:
                self._prune_folders(seat.place)
        return stayed

    def _stays(self, seat: _Seat, entry: Entry) -> bool:
        """Return whether a step was done and is not undone: what it took out, if anything, is staged."""
        # What is no file, such as a place below what is a file again, has nothing of ours in it.
        kept = {seat.before, seat.after, _NO_FILE}
        if _hash_content(seat.staged) != seat.before or _hash_target(seat) in kept:
            return False
        return self.trash.tells_of(entry)  # which is written when all is staged, and nothing is done

    def _undo_replacement(self, seat: _Seat, entry: Entry) -> None:
        if _hash_content(seat.staged) in {None, seat.after} or _hash_content(seat.target) != seat.after:
            return
        with contextlib.suppress(Raced):
            files.exchange(seat.staged, seat.target)
            if _hash_content(seat.staged) != seat.after:
                # Somebody replaced our content in this instant: theirs is the newest, so it stays. But they
                # may have read the older one meanwhile, and overwrite their own with what they make of it.
                self._note_replaced_content(seat, entry)
                data = files.read(*seat.staged).data
                self.trash.keep(data, digest(data))
                files.exchange(seat.staged, seat.target)

    def _note_replaced_content(self, seat: _Seat, entry: Entry) -> None:
        """Note in the history another program's content that goes to the trash."""
        taken = _hash_content(seat.staged)
        is_theirs = taken is not None and taken not in {_NO_FILE, seat.before, seat.after}
        if not is_theirs or not self.trash.tells_of(entry):
            return
        now = _hash_target(seat)
        after = None if now == _NO_FILE else now
        self._note_change(entry, FileChange(path=seat.path, before=taken, after=after), _SET_ASIDE)

    def _note_change(self, entry: Entry, change: FileChange, message: str) -> None:
        number = next(n for n, each in enumerate(entry.files) if each.path == change.path)
        identifier = f"{entry.id}.{number}.{(change.before or change.after or '')[:8]}"
        noted = entry._replace(id=identifier, message=message, files=(change,), undoes="", redoes="")
        if not self.trash.tells_of(noted):  # an earlier recovery may have been killed
            self.trash.record(noted)

    def _finish_entry(self, seats: Sequence[_Seat], entry: Entry) -> None:
        for seat in seats:
            if seat.after is None:
                self._prune_folders(seat.place)
        self.trash.settle(entry)

    def _discard_staged(self, staged: tuple[int, str], ours: str | None = None) -> None:
        """Clear a staged file away: into the trash, unless it holds `ours`, the content that we brought."""
        present = _hash_content(staged)
        if present is None:
            return
        if present == _NO_FILE:
            with contextlib.suppress(OSError, PathRefused):
                self.trash.put(*staged, f"{staged[1]}.aside")
        elif present == ours:
            files.remove(*staged)
        else:
            self.trash.put(*staged, present)

    def _prune_folders(self, place: Place) -> None:
        """Remove the folders of a memory that is gone, as far as they are empty."""
        root, parts = place
        if root != self.root:
            return
        with contextlib.suppress(OSError):
            for depth in range(len(parts) - 2, -1, -1):
                with (
                    contextlib.suppress(FileNotFoundError),
                    files.opened(root, parts[:depth]) as folder,
                ):
                    os.rmdir(parts[depth], dir_fd=folder)


def _change_id(name: str) -> str:
    return name.partition(".")[0]


def _read_record(staging: int, record: str) -> Entry | None:
    """Return what a record says; None when it was torn by a crash, or not written here."""
    # A record of several files is on the disk before any of its steps: where it is torn, none happened.
    if not record.endswith(_RECORDS):
        return None
    try:
        shape = believed(files.read(staging, record, _MOST_RECORD_BYTES).data)
        if shape is None:
            return None
        entry = entry_from(shape)
        paths = [change.path for change in entry.files if change.path != CONFIG_PATH]
        sound = bool(paths) and all(path and check_folder(path) == path for path in paths)
    except (ValueError, KeyError, TypeError, RecursionError, PathRefused):
        return None
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EFBIG, errno.EACCES}:
            raise
        return None
    return entry if sound and entry.id == record.rpartition(".")[0] else None


def _stage_contents(seats: Sequence[_Seat], steps: Iterable[Step]) -> None:
    for seat, step in zip(seats, steps, strict=True):
        if step.after is not None:
            with files.translated(step.path, "write it"):
                files.write_new(*seat.staged, step.after, step.before or step.like)


def _apply_steps(seats: Sequence[_Seat], steps: Sequence[Step]) -> None:
    # Writing to the disk takes a hundred times as long as what follows: who came in between is seen here,
    # before anybody can have seen, and built upon, content of ours that lacks theirs.
    for seat, step in zip(seats, steps, strict=True):
        with files.translated(step.path, "write it"):
            if step.before is not None and _read_settled_content(seat, seat.target) != step.before.data:
                raise Raced(seat.path)
    for seat, step in zip(seats, steps, strict=True):
        with files.translated(step.path, "write it"):
            _swap_seat(seat)


def _swap_seat(seat: _Seat) -> None:
    """Do one step, then check that it took out what the change was computed from."""
    if seat.before is None:
        seat.move_back()
        return
    if seat.after is None:
        files.move(seat.target, seat.staged)
    else:
        files.exchange(seat.staged, seat.target)
    taken = _read_settled_content(seat, seat.staged)
    if taken is not None and digest(taken) != seat.before:
        raise Raced(seat.path, {seat.path: taken})


def _read_settled_content(seat: _Seat, place: tuple[int, str]) -> bytes | None:
    """Return what a file holds once nobody is writing it; None when it is gone."""
    try:
        content = files.read_settled(*place, BUSY_SECONDS)
    except FileNotFoundError:
        return None
    if content is None:
        raise FileBusy(path=seat.path, seconds=BUSY_SECONDS)
    return content.data


def _undo_creation(seat: _Seat) -> None:
    if _hash_content(seat.staged) is not None or _hash_content(seat.target) != seat.after:
        return
    with contextlib.suppress(Raced):
        files.move(seat.target, seat.staged)
        if _hash_content(seat.staged) != seat.after:
            # Somebody wrote there in this instant: theirs stays.
            files.move(seat.staged, seat.target)


def _undo_deletion(seat: _Seat) -> None:
    if _hash_content(seat.staged) is not None:
        # Where somebody has made the file again, theirs stays, and the old content goes to the trash.
        with contextlib.suppress(Raced):
            seat.move_back()


def _hash_target(seat: _Seat) -> str | None:
    """Return the hash of what stands where a step is done; see `_hash_content`."""
    try:
        with files.translated(seat.path, "read it"):
            return _hash_content(seat.target)
    except PathRefused:
        return _NO_FILE


def _hash_content(place: tuple[int, str]) -> str | None:
    """Return the hash of a file; None when there is nothing, `_NO_FILE` for a link, a folder, a device."""
    try:
        with files.translated(place[1], "read it"):
            content = files.read_settled(*place, BUSY_SECONDS) or files.read(*place)
            return digest(content.data)
    except MemoryNotFound:
        return None
    except PathRefused:
        return _NO_FILE
