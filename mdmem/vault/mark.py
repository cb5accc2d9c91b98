"""The mark of local state: what is under `.mdmem/local` is believed only where it was written.

A repository, an archive or another machine may bring files there that say what to delete or overwrite. So
records and log lines carry a keyed hash. Data that is too large for a record stands in a folder with a name
that nobody else can guess. The key is a secret of this user on this machine, outside of every vault.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from mdmem.diagnostic import find_toml_place
from mdmem.document.text.tokens import in_line
from mdmem.errors import ConfigInvalid, StorageFailed
from mdmem.vault import files

KEY = "key"
_TEMPORARY = "/tmp"  # noqa: S108 - who owns what is in it is looked at
_USUAL = "~/.local/state/mdmem"
_USUAL_CONFIG = "~/.config/mdmem"
NONE = "none"
"""Names no model, and no embedder."""
_EMBEDDER = "MDMEM_EMBEDDER"
_KEY_BYTES = 32
_ALLOWED = "allowed"
_MARK_BYTES = 16
_MARK, _END = b',"mark":"', b'"}'
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KEEP = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def signed(shape: Mapping[str, Any]) -> bytes:
    """Return a JSON object as one line without its end; its last member says that it was written here."""
    text = json.dumps(shape, ensure_ascii=False, separators=(",", ":"))
    said = text.encode("utf-8", "surrogatepass").removesuffix(b"}")
    return said + _MARK + _hash_statement(_own_key(), said).encode() + _END


def believed(line: bytes) -> dict[str, Any] | None:
    """Return the object that `signed` wrote; None for anything else, such as a line of somebody else."""
    text, mark, given = line.rpartition(_MARK)
    if not mark:
        return None
    from hmac import compare_digest  # noqa: PLC0415 - start-up

    if not any(compare_digest(given, _hash_statement(key, text).encode() + _END) for key in _iterate_keys()):
        return None
    shape: dict[str, Any] = json.loads(text.decode("utf-8", "surrogatepass") + "}")
    return shape


def name_for(folder: int) -> str:
    """Return a name that nobody can guess for what belongs to an open folder, not to its copies."""
    return _hash_statement(_own_key(), b"folder %d" % os.fstat(folder).st_ino)


# -- what a user lets a vault do --------------------------------------------------------------------------


def allow(what: str, root: str, *, allowed: bool = True) -> None:
    """Say that the vault in a folder may do something for this user on this machine, or no longer.

    A config comes with the files, and may ask for what is the user's to say. This is kept outside of them.
    """
    place = _allowance_path(_own_key(), what, root)
    with files.translated(place, "keep what the vault may do"), contextlib.suppress(FileNotFoundError):
        if not allowed:
            os.unlink(place)
            return
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        with open(os.open(place, _KEEP, 0o600), "w", encoding="utf-8", errors="replace") as file:
            print(what, root, file=file)


def is_allowed(what: str, root: str) -> bool:
    """Return whether `allow` was said; not of a copy of the vault, nor of another one in its place."""
    return any(os.path.isfile(_allowance_path(key, what, root)) for key in _iterate_keys())


def _allowance_path(key: bytes, what: str, root: str) -> str:
    folder = os.path.realpath(root)
    text = f"{what} {os.stat(folder).st_ino} {folder}"
    return os.path.join(state_folder(_ALLOWED), _hash_statement(key, text.encode("utf-8", "surrogateescape")))


def _hash_statement(key: bytes, text: bytes) -> str:
    from hashlib import blake2b  # noqa: PLC0415 - start-up

    return blake2b(text, key=key, digest_size=_MARK_BYTES).hexdigest()


# -- the key ----------------------------------------------------------------------------------------------


def _own_key() -> bytes:
    """Return the key that marks what is written; make it where there is none."""
    reasons = []
    for folder in _key_folders():
        try:
            return _read_key(folder)
        except OSError:
            try:
                return _make_key(folder)
            except OSError as error:
                reasons.append(f"{folder}: {error.strerror or error}")
    raise StorageFailed(path=KEY, action="keep the key of local state", reason="; ".join(reasons))


def _iterate_keys() -> Iterator[bytes]:
    for folder in _key_folders():
        with contextlib.suppress(OSError):
            yield _read_key(folder)


def _key_folders() -> Iterator[str]:
    # A program started with few variables knows only the usual place: keys there count, too.
    yield from dict.fromkeys((state_folder(), os.path.expanduser(_USUAL)))
    # For a sandbox, until the next boot. The module tempfile finds no folder on a full disk.
    given = os.environ.get("TMPDIR", "")
    yield os.path.join(given if os.path.isabs(given) else _TEMPORARY, f"mdmem-{os.geteuid()}")


def state_folder(name: str = "") -> str:
    """Return where the state of this user is that belongs to no vault, or the file or folder `name` in it."""
    return _locate_folder("state", "XDG_STATE_HOME", _USUAL, name)


def config_folder(name: str = "") -> str:
    """Return the folder of the user's settings that belong to no vault, or `name` in it."""
    return _locate_folder("config", "XDG_CONFIG_HOME", _USUAL_CONFIG, name)


class UserSettings(NamedTuple):
    """The user's own config, which no vault can change; see `user_settings`.

    Attributes:
        model: the program that answers as a language model; `none` for none.
        embedder: what makes vectors, see `mdmem.index.embedder`; `none` for none.
        embedder_sends: whether texts may be sent to an address on another machine.
        embedder_key: the variable of the environment that holds the key of the address.
    """

    model: str = NONE
    embedder: str = NONE
    embedder_sends: bool = False
    embedder_key: str = ""


def user_settings() -> UserSettings:
    """Read `config.toml` in the folder of the user's settings; the defaults where there is no such file."""
    path = config_folder("config.toml")
    remedy, text = 'write model = "none", or model = "claude -p"', ""
    try:
        with open(path, "rb") as file:
            import tomllib  # noqa: PLC0415 - start-up

            text = file.read().decode()
            table = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return UserSettings()
    except OSError as error:
        raise ConfigInvalid(path=path, reason=f"it cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        line, column = find_toml_place(text, error) or (None, None)
        reason = f"not TOML: {error}"
        raise ConfigInvalid(path=path, reason=reason, remedy=remedy, line=line, column=column) from None
    known = UserSettings._field_defaults
    if unknown := sorted(table.keys() - known):
        reason = f"unknown: {in_line(', '.join(unknown))}"
        raise ConfigInvalid(path=path, reason=reason, remedy=remedy)
    for name, value in table.items():
        if type(value) is not type(known[name]):
            kind = "true or false" if type(known[name]) is bool else "a string"
            raise ConfigInvalid(path=path, reason=f"{name} is {kind}", remedy=remedy)
    return UserSettings(**table)


def named_embedder() -> str:
    """Return what makes vectors: MDMEM_EMBEDDER, else the config of the user; `none` for nothing."""
    return os.environ.get(_EMBEDDER, "").strip() or user_settings().embedder


def _locate_folder(kind: str, variable: str, usual: str, name: str) -> str:
    # On Linux without platformdirs: importing it takes a tenth of a small command.
    if sys.platform == "linux":
        given = os.environ.get(variable, "")
        # A relative folder would be below the current one, which may hold files of others.
        folder = os.path.join(given, "mdmem") if os.path.isabs(given) else os.path.expanduser(usual)
    else:
        import platformdirs  # noqa: PLC0415 - start-up

        folder = getattr(platformdirs, f"user_{kind}_dir")("mdmem", appauthor=False)
    return os.path.join(folder, name).rstrip(os.sep)


@cache
def _read_key(folder: str) -> bytes:
    """Return the key in a folder, if this user alone can have written it."""
    descriptor = os.open(folder, _FOLDER)
    try:
        with files.opened_regular(KEY, folder=descriptor) as file:
            statuses = os.fstat(descriptor), os.fstat(file)
            data = os.read(file, _KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    if any(status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH for status in statuses):
        raise PermissionError(errno.EPERM, "the key belongs to another user")
    if len(data) != _KEY_BYTES:
        raise FileNotFoundError(errno.ENOENT, "the key is torn")
    return data


def _make_key(folder: str) -> bytes:
    """Make the key in a folder, unless another process was faster, and return it."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with files.opened(folder) as descriptor:
        part = f"{KEY}.{os.urandom(4).hex()}"
        made = os.open(part, _CREATE, 0o600, dir_fd=descriptor)
        try:
            with contextlib.suppress(OSError):
                if os.stat(KEY, dir_fd=descriptor, follow_symlinks=False).st_size != _KEY_BYTES:
                    os.unlink(KEY, dir_fd=descriptor)
            os.write(made, os.urandom(_KEY_BYTES))
            os.fsync(made)
            with contextlib.suppress(FileExistsError):
                os.link(part, KEY, src_dir_fd=descriptor, dst_dir_fd=descriptor)
            os.fsync(descriptor)
        finally:
            os.close(made)
            os.unlink(part, dir_fd=descriptor)
    return _read_key(folder)
