"""Files by folder descriptor: nothing here follows a symbolic link, and every replacement is atomic.

A path is walked part by part from an open folder with O_NOFOLLOW, so a link that is swapped in between a
check and its use is refused like any other.

Locks are flock(2) directly, which is all that a lock library does here: one costs as much to import as the
rest of a command, and more to take than a small write. A lock belongs to an open file, so two threads exclude
each other like two processes, and it ends with its process, however that ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import stat
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from mdmem.errors import LockTimeout, MemoryNotFound, PathRefused, StorageFailed, SystemFailing

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK so that opening a FIFO returns, to be refused, instead of waiting for a writer.
_SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
BUSY_SECONDS = 2.0
"""How long a change waits for a program that has a file open for writing."""
_IS_FOLDER, _IS_LINK = "it is a folder", "it is a symbolic link, which is never followed"
_REFUSED = {
    errno.ELOOP: _IS_LINK,
    errno.EMLINK: _IS_LINK,
    errno.ENOTDIR: "a part of it is a file or a symbolic link, not a folder",
    errno.EISDIR: _IS_FOLDER,
    errno.ENOTEMPTY: _IS_FOLDER,
    errno.ENXIO: "it is a device, a FIFO or a socket, not a file",
    errno.ENAMETOOLONG: "a name is too long for this file system",
}
_PAUSE, _LONGEST_PAUSE = 0.00002, 0.008
_LOCK_PAUSE = 0.001  # many who wait for a lock take less from the one who works
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN)
"""What the system says where it has run out of something, whichever file is asked for."""

# Nobody chooses a umask that lets everyone write (containers have it): then only the owner reads.
_umask = os.umask(0o077)
os.umask(_umask)
NEW_FOLDER = 0o777 & ~(_umask if _umask & 0o002 else 0o077)
NEW_FILE = NEW_FOLDER & 0o666
"""What new folders and files permit at most, whatever the umask becomes."""

# linux/fs.h and sys/stdio.h of macOS: the flags of renameat2 and of renameatx_np have other values.
_LINUX_NOREPLACE, _LINUX_EXCHANGE = 1, 2
_MACOS_SWAP, _MACOS_EXCLUSIVE = 2, 4


class Raced(Exception):
    """A program that takes no lock wrote, made or removed a file in the instant of a step.

    `late` is what it wrote where a step had already put ours: path to bytes.
    """

    def __init__(self, path: str, late: Mapping[str, bytes] | None = None) -> None:
        super().__init__(path)
        self.late = dict(late or {})


class Place(NamedTuple):
    """Where a memory's file is: the names `parts` below the folder `root`, which is never a link."""

    root: str
    parts: tuple[str, ...]


class Content(NamedTuple):
    """What a file holds, and the metadata that a replacement keeps: permission bits, owner, group.

    `stamp` is the file's number, size and times before it was read: another one says that it has changed.
    """

    data: bytes
    mode: int
    owner: int
    group: int
    stamp: tuple[int, int, int, int]


def failure(error: OSError, path: str, action: str) -> StorageFailed | SystemFailing:
    """Return the error of ours that says what the system refused to do with the file at `path`."""
    kind = SystemFailing if error.errno in {*EXHAUSTED, errno.EIO} else StorageFailed
    return kind(path=path, action=action, reason=error.strerror or str(error))


def refusal(
    error: OSError, path: str, action: str
) -> MemoryNotFound | PathRefused | StorageFailed | SystemFailing:
    """Return the error of ours that says what `error` means for the memory at `path`."""
    if error.errno == errno.ENOENT:
        return MemoryNotFound(path=path)
    if error.errno in _REFUSED:
        return PathRefused(path=path, reason=_REFUSED[error.errno])
    return failure(error, path, action)


@contextlib.contextmanager
def translated(path: str, action: str) -> Iterator[None]:
    """Turn what the system refuses inside the block into an error about the memory at `path`."""
    try:
        yield
    except OSError as error:
        raise refusal(error, path, action) from None


@contextlib.contextmanager
def opened(
    root: str, parts: Sequence[str] = (), *, create: bool = False, exact: bool = False
) -> Iterator[int]:
    """Open the folder `parts` below `root`, whatever the Unicode spelling of its names.

    With `exact`, only in this spelling; with `create`, what is missing in this spelling is made.

    Raises:
        OSError: ELOOP or ENOTDIR when a part is a link or a file; ENOENT when it is missing.
    """
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            below = _open_subfolder(current, part, create=create, exact=exact)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _open_subfolder(folder: int, part: str, *, create: bool, exact: bool) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            twin = None if exact else twin_of(folder, part)
            if twin is None:
                raise
            return os.open(twin, _FOLDER, dir_fd=folder)
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, NEW_FOLDER, dir_fd=folder)
        os.fsync(folder)
    return os.open(part, _FOLDER, dir_fd=folder)


def twin_of(folder: int, name: str) -> str | None:
    """Find another Unicode spelling of `name` in `folder` (other systems write NFD), or None."""
    if name.isascii():
        return None
    return next((n for n in os.listdir(folder) if unicodedata.normalize("NFC", n) == name), None)


def spelled_in(folder: int, name: str) -> str:
    """Return a name as it is spelled in `folder`; as given, where nothing stands."""
    return name if name.isascii() or exists(folder, name) else twin_of(folder, name) or name


def spelled(root: str, parts: Sequence[str]) -> tuple[str, ...]:
    """Return the names `parts` below `root` as they are spelled there; as given, where nothing stands."""
    names: list[str] = []
    for part in parts:
        name = part
        if not part.isascii():
            with contextlib.suppress(OSError), opened(root, names) as folder:
                name = spelled_in(folder, part)
        names.append(name)
    return tuple(names)


def open_regular(path: str, flags: int = os.O_RDONLY, folder: int | None = None) -> int:
    """Open a regular file, as `os.open` with `dir_fd`; neither is a link followed nor a pipe waited for.

    Raises:
        OSError: it is missing, a link (ELOOP), a folder (EISDIR), a device, a FIFO or a socket (ENXIO), or
            cannot be opened.
    """
    descriptor = os.open(path, flags | _SAFELY, NEW_FILE, dir_fd=folder)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, _IS_FOLDER, path)
    raise OSError(errno.ENXIO, "it is not a regular file", path)


@contextlib.contextmanager
def opened_regular(path: str, flags: int = os.O_RDONLY, folder: int | None = None) -> Iterator[int]:
    """Open a file as `open_regular`, and close it at the end."""
    descriptor = open_regular(path, flags, folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read(folder: int, name: str, limit: int | None = None) -> Content:
    """Return the content of a regular file of at most `limit` bytes.

    Raises:
        OSError: as `open_regular`, or it is too large (EFBIG).
    """
    descriptor = open_regular(name, folder=folder)
    try:
        if limit is not None and os.fstat(descriptor).st_size > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", name)
        return _read_content(descriptor)
    finally:
        os.close(descriptor)


def read_settled(folder: int, name: str, seconds: float) -> Content | None:
    """Read a file once no program is writing it; None when one still has it open after `seconds`.

    A program that saves in place truncates first: what is read in that instant is not what it saves.
    """
    descriptor = open_regular(name, folder=folder)
    try:
        for _ in attempts(seconds):
            content = _read_content(descriptor)
            # In this order: a writer that came and went during the read has changed the stamp by now.
            if not has_writer(descriptor) and content.stamp == stamp(os.fstat(descriptor)):
                return content
            os.lseek(descriptor, 0, os.SEEK_SET)
        return None
    finally:
        os.close(descriptor)


def attempts(seconds: float, pause: float = _PAUSE) -> Iterator[None]:
    """Yield at once, then again and again, with pauses that grow from `pause` on, for at most `seconds`."""
    deadline = time.monotonic() + seconds
    yield
    while time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
        yield


def has_writer(descriptor: int) -> bool:
    """Return whether some program has an open file open for writing.

    False where nobody can tell, as on macOS.

    A read lease (fcntl(2), F_SETLEASE) is granted only while no descriptor is open for writing. It is given
    back at once, so that no other program ever waits for it.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        # Should a program ask for the file in this very instant, the kernel tells the holder by SIGIO, which
        # ends a process. SIGURG says the same and is ignored by default.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        # Other errors: somebody else's file, or a file system without leases.
        return error.errno in {errno.EAGAIN, errno.EWOULDBLOCK}
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    """Return what tells two states of a file apart without reading it: number, size, times of change."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read_content(descriptor: int) -> Content:
    status = os.fstat(descriptor)
    data = os.read(descriptor, status.st_size + 1)
    if len(data) != status.st_size:
        parts = [data]
        while parts[-1]:
            parts.append(os.read(descriptor, _CHUNK))
        data = b"".join(parts)
    return Content(data, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, stamp(status))


def write_new(
    folder: int,
    name: str,
    data: bytes | Iterable[bytes],
    like: Content | None = None,
    *,
    durable: bool = True,
) -> None:
    """Write a file that must not exist, with permissions and owner of `like`; `durable` waits for the disk.

    Raises:
        OSError: it exists, or cannot be written (nothing of it remains then).
    """
    descriptor = os.open(name, _CREATE, NEW_FILE, dir_fd=folder)
    try:
        if like:
            _keep_owner(descriptor, like)
        for part in (data,) if isinstance(data, bytes) else data:
            write(descriptor, part)
        if durable:
            os.fsync(descriptor)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)


def _keep_owner(descriptor: int, like: Content) -> None:
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (like.owner, like.group):
        # Only root may give a file away; a shared folder still works, with the writer as the owner.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, like.owner, like.group)
    if stat.S_IMODE(status.st_mode) != like.mode:
        os.fchmod(descriptor, like.mode)


def write(descriptor: int, data: bytes) -> None:
    """Write all of `data` to an open file, in as many steps as the system takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync(folder: int, name: str) -> None:
    """Wait until what a file holds is on the disk."""
    with opened_regular(name, folder=folder) as descriptor:
        os.fsync(descriptor)


def remove(folder: int, name: str) -> None:
    """Remove a file; it may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def is_folder(path: str) -> bool:
    """Return whether there is a folder at `path`, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def status_of(path: str, *, follows: bool = False) -> os.stat_result | None:
    """Return what the system says of a file, with `follows` of what a link leads to; None without a file."""
    try:
        return os.stat(path, follow_symlinks=follows)
    except (OSError, ValueError):
        return None


def size(folder: int, name: str) -> int:
    """Return the bytes of a regular file; 0 of anything else."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def exists(folder: int, name: str) -> bool:
    """Return whether there is anything of this name, a dangling link included."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@cache
def _rename_program() -> tuple[str, object] | None:
    import ctypes  # noqa: PLC0415 - start-up: reading needs none of it

    library = ctypes.CDLL(None, use_errno=True)
    for name in ("renameat2", "renameatx_np"):
        if hasattr(library, name):
            call = getattr(library, name)
            call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
            return name, call
    return None


def _rename_with_flag(source: tuple[int, str], target: tuple[int, str], *, exchange: bool) -> bool:
    """Rename with a flag; False where the system or the file system has no such call."""
    import ctypes  # noqa: PLC0415 - start-up

    program = _rename_program()
    if program is None:
        return False
    if sys.platform == "darwin":
        flag = _MACOS_SWAP if exchange else _MACOS_EXCLUSIVE
    else:
        flag = _LINUX_EXCHANGE if exchange else _LINUX_NOREPLACE
    call = program[1]
    result = call(source[0], os.fsencode(source[1]), target[0], os.fsencode(target[1]), flag)  # type: ignore[operator]
    if result == 0:
        return True
    number = ctypes.get_errno()
    if number in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
        return False
    raise OSError(number, os.strerror(number), target[1])


def exchange(staged: tuple[int, str], target: tuple[int, str]) -> None:
    """Put `staged` in the place of `target`, and what stood there in the place of `staged`, at once.

    Both are a folder's descriptor and a name. Where the system cannot exchange, the old file is kept by a
    second name and then replaced. Raise `Raced` where the target is gone.
    """
    try:
        if _rename_with_flag(staged, target, exchange=True):
            return
        aside = staged[1] + "~"
        os.link(target[1], aside, src_dir_fd=target[0], dst_dir_fd=staged[0], follow_symlinks=False)
        os.fsync(staged[0])  # the second name is on the disk before the first one may go
        os.rename(staged[1], target[1], src_dir_fd=staged[0], dst_dir_fd=target[0])
        os.rename(aside, staged[1], src_dir_fd=staged[0], dst_dir_fd=staged[0])
    except FileNotFoundError:
        raise Raced(target[1]) from None


def move(source: tuple[int, str], target: tuple[int, str]) -> None:
    """Move a file to a name that must be free."""
    try:
        if _rename_with_flag(source, target, exchange=False):
            return
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
        os.fsync(target[0])
        os.unlink(source[1], dir_fd=source[0])
    except (FileExistsError, FileNotFoundError):
        raise Raced(target[1]) from None


def rejoin(staged: tuple[int, str], target: tuple[int, str]) -> None:
    """Put right what a crash left halfway through `exchange` or `move`, where the system has no such call.

    If both ends of a step are then one file, the step did not begin, or all of it is done.
    """
    aside = (staged[0], staged[1] + "~")
    if exists(*aside):
        if exists(*staged):
            remove(*aside)
        else:
            os.rename(aside[1], staged[1], src_dir_fd=aside[0], dst_dir_fd=staged[0])
    if exists(*staged) and exists(*target):
        both = (os.stat(name, dir_fd=folder, follow_symlinks=False) for folder, name in (staged, target))
        if os.path.samestat(*both):
            remove(*staged)


Waits: TypeAlias = "Callable[[], None] | None"


@contextlib.contextmanager
def held(path: str, seconds: float, *, stopped: float | None = None, waits: Waits = None) -> Iterator[None]:
    """Hold the lock in a file, which is made when it is missing, stays, and has the number of the process.

    Args:
        stopped: how long to wait for a process that is stopped, where the system can tell.
        waits: called again and again while it waits.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, NEW_FILE)
    except OSError as error:
        raise StorageFailed(path=path, action="lock it", reason=error.strerror or str(error)) from None
    try:
        take(descriptor, path, seconds, stopped=stopped, waits=waits)
        with contextlib.suppress(OSError):  # a full disk holds up nobody
            os.pwrite(descriptor, b"%-10d" % os.getpid(), 0)
        yield
    finally:
        os.close(descriptor)


def take(
    descriptor: int, path: str, seconds: float, *, stopped: float | None = None, waits: Waits = None
) -> None:
    """Lock an open file or folder; as `held`, until it is closed."""
    start = time.monotonic()
    for _ in attempts(seconds, _LOCK_PAUSE):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - start
            if stopped is not None and waited >= stopped and _is_stopped(descriptor):
                break
            if waits:
                waits()
        except OSError as error:
            raise StorageFailed(path=path, action="lock it", reason=error.strerror or str(error)) from None
        else:
            return
    raise LockTimeout(path=path, seconds=min(seconds, time.monotonic() - start))


def _is_stopped(descriptor: int) -> bool:
    """Return whether the process that holds the lock is stopped, as by ^Z; False where nobody can tell."""
    try:
        number = int(os.pread(descriptor, 10, 0))
        with open(f"/proc/{number}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[0] in {b"T", b"t"}
    except (OSError, ValueError, IndexError):
        return False
