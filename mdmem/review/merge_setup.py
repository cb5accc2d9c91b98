"""What makes git merge memories with mdmem: a driver in its config, and attributes that name it.

How the config changes is asked of git, on a copy. `.gitattributes` gets a block between marks, one for each
vault; the rest of the file keeps its bytes, and without the block the file is as it was before, or none. A
clone that has the attributes and no driver merges lines, as git always does.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.document.document import is_json
from mdmem.document.text.diff import unified
from mdmem.errors import EditRefused, GitFailed
from mdmem.git.program import run
from mdmem.git.repository import Repository
from mdmem.vault import outside
from mdmem.vault.paths import absolute
from mdmem.vault.vault import Vault

ATTRIBUTES = ".gitattributes"
_TITLE, _DRIVER = "merge.mdmem.name", "merge.mdmem.driver"
_OURS = " git merge-driver -- %O %A %B %L %P"
# Before git 2.44, %S, %X and %Y stay as they are; what `rerere` merges has no names.
# What it prints says that it came to its end: a program that is broken, too old or killed says neither, and
# has written nothing. After a conflict, the file has its markers already, and nothing may merge again.
_COMMAND = (
    "s=%S x=%X y=%Y; case \"$x\" in ''|%%X) s=base x=ours y=theirs;; esac; "
    f'said=; command -v {{program}} >/dev/null 2>&1 && said=$({{program}}{_OURS} "$s" "$x" "$y"); '
    'case "$?$said" in 0merged) exit 0;; 1conflict) exit 1;; esac; '
    'git merge-file --marker-size=%L -L "$x" -L "$s" -L "$y" %A %O %B || exit 1'
)
_OF_MARKDOWN, _OF_JSON = "merge=mdmem diff=markdown", "merge=mdmem"
_BEGIN, _END = "# mdmem:begin ", "# mdmem:end "
_MARK = re.compile(rf"(?m)^(?:{_BEGIN}|{_END})[^\r\n]*")
_BLOCK = re.compile(
    rf"(?m)^{_BEGIN}(?P<name>[^\r\n]*)\r?\n(?:(?!{_BEGIN}|{_END}).*\n)*{_END}(?P=name)(?=\r?(?:\n|\Z))"
)
_ABOUT = "# made by `mdmem git install`; `mdmem git uninstall` takes it out"
_GLOB = re.compile(r"[\\*?\[]")
_TO_QUOTE = re.compile(r'[\s"\\\x00-\x1f\x7f]')
_IN_QUOTES = re.compile(r'["\\\x00-\x1f\x7f]')
_NOT_SET = 5  # what `git config --unset-all` ends with


class ChangedFile(NamedTuple):
    """A file that is changed: its absolute path, and its bytes; None where there is none."""

    path: str
    before: bytes | None
    after: bytes | None


class MergeSetup(NamedTuple):
    """What a command changes so that git merges memories with mdmem, or no longer does.

    Attributes:
        changes: `.gitattributes`, and the config that all work trees of the repository share, in this order:
            so git never finds a driver that is not there. Without a file that stays as it is.
        remarks: warnings, in words.
    """

    changes: Sequence[ChangedFile]
    remarks: Sequence[str] = ()

    def diff(self) -> str:
        """Return the changes as one unified diff."""
        here = absolute(os.curdir)
        return "".join(
            unified(_decode_text(each.before), _decode_text(each.after), os.path.relpath(each.path, here))
            for each in self.changes
        )

    def notes(self) -> list[str]:
        """Return the remarks."""
        return list(self.remarks)

    def apply(self) -> None:
        """Write both files, or neither.

        Raises:
            Conflict: one of them has changed since it was read.
            PathRefused, StorageFailed, LockTimeout, FileBusy: one of them cannot be written.
        """
        written: list[ChangedFile] = []
        try:
            for change in self.changes:
                _replace_file(change)
                written.append(change)
        except BaseException:
            for path, before, after in written:
                _replace_file(ChangedFile(path, after, before))
            raise


def install(root: str, program: str = "mdmem") -> MergeSetup:
    """Return what makes git merge memories and mounts of a vault with mdmem; nothing is written yet.

    `root` is the vault's folder, `program` the command that starts mdmem.

    Raises:
        EditRefused: another driver has our name, or the marks in the attributes are broken.
        GitFailed: the vault is not in a work tree of git, or git refuses it.
        PathRefused: one of the files is a link.
    """
    repository = Repository.around(root)
    attributes, before = _read_attributes(repository)
    name, lines, remarks = _wanted_block(root, repository.top)
    after = _with_block(before, name, lines)
    path = _config_path(repository)
    ours = _COMMAND.format(program=shlex.quote(program).replace("%", "%%"))
    known = _read_driver(path)
    if known and _OURS not in known:
        remedy = f"remove it with `git config --unset {_DRIVER}`"
        raise EditRefused(path=path, reason=f"{_DRIVER} is another command: {known}", remedy=remedy)
    config = _plan_config(path, {_TITLE: "memories, merged by mdmem", _DRIVER: ours})
    if config:
        remarks.append("each clone needs `mdmem git install` of its own; without it, git merges lines")
    return MergeSetup(_changed_file(attributes, before, after) + config, remarks)


def uninstall(root: str, *, is_vault: bool = True) -> MergeSetup:
    """Return what takes out of a repository what `install` put in; nothing is written yet.

    Unless `is_vault`, `root` is any folder of the repository, and the blocks of every vault are taken out.
    """
    repository = Repository.around(root)
    attributes, before = _read_attributes(repository)
    name = _quote_pattern(_vault_folder(root, repository.top)) if is_vault else None
    after = before and _remove_block(before, name)
    # What was empty before has no line end, and stays.
    after = None if after == "" and before and before.endswith("\n") else after
    path = _config_path(repository)
    known, settings, remarks = _read_driver(path), dict[str, str | None](), []
    if known and _OURS not in known:
        remarks.append(f"{_DRIVER} stays as it is, since it is another command: {known}")
    elif not _find_blocks(after or ""):
        settings = {_TITLE: None, _DRIVER: None}
    return MergeSetup(_changed_file(attributes, before, after) + _plan_config(path, settings), remarks)


def find_missing_driver(repository: Repository) -> Diagnostic | None:
    """Report that the attributes of a repository name our driver, and its settings do not have it."""
    path, attributes = _read_attributes(repository)
    if not _BLOCK.search(attributes or ""):
        return None
    if repository.ask(["config", "--get", _DRIVER], "read its settings").printed.strip():
        return None
    message = "git merges memories by lines: this clone lacks the merge driver that .gitattributes names"
    return about_file(
        os.path.basename(path), "merge-driver-missing", message, "`mdmem git install`", severity="warning"
    )


def _read_file(path: str) -> bytes | None:
    content = outside.read(outside.below(*os.path.split(path)), path)
    return content.data if content else None


def _replace_file(change: ChangedFile) -> None:
    place = outside.below(*os.path.split(change.path))
    outside.replace(place, change.path, change.before, change.after)


def _decode_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


# ------------------------------------------------------------------------------------------- the attributes


def _read_attributes(repository: Repository) -> tuple[str, str | None]:
    path = os.path.join(repository.top, ATTRIBUTES)
    return path, _decode_text(_read_file(path))


def _changed_file(path: str, before: str | None, after: str | None) -> list[ChangedFile]:
    old, new = (text if text is None else text.encode("utf-8", "surrogateescape") for text in (before, after))
    return [ChangedFile(path, old, new)] if old != new else []


def _vault_folder(root: str, top: str) -> str:
    """Return the folder of the vault from the top of the work tree."""
    return os.path.relpath(os.path.realpath(root), top)


def _wanted_block(root: str, top: str) -> tuple[str, list[str], list[str]]:
    """Return the name of a block, its lines, and what should be known about them."""
    folder, disk = _vault_folder(root, top), Vault(root).disk
    inside = "/" if folder == os.curdir else f"/{_GLOB.sub(_escape_character, folder)}/"
    patterns = [f"{inside}**/*{suffix}" for suffix in disk.config.suffixes]
    lines = [f"{_quote_pattern(each)} {_attributes_for(each)}" for each in patterns]
    remarks = []
    for path in sorted(disk.mounts):
        file = os.path.relpath(os.path.realpath(os.path.join(disk.workspace, disk.in_workspace(path))), top)
        if file.startswith(os.pardir):
            remarks.append(f"{path} is outside of the repository")
            continue
        pattern = _quote_pattern("/" + _GLOB.sub(_escape_character, file))
        lines.append(f"{pattern} {_attributes_for(file)}")
    return _quote_pattern(folder), lines, remarks


def _attributes_for(file: str) -> str:
    return _OF_JSON if is_json(file) else _OF_MARKDOWN


def _escape_character(found: re.Match[str]) -> str:
    return "\\" + found[0]


def _quote_pattern(pattern: str) -> str:
    """Quote a pattern for the beginning of a line of gitattributes, if it needs quotes."""
    if not _TO_QUOTE.search(pattern):
        return pattern
    escaped = _IN_QUOTES.sub(lambda found: f"\\{ord(found[0]):03o}", pattern)
    return f'"{escaped}"'


def _with_block(text: str | None, name: str, lines: list[str]) -> str:
    """Put a block where the one of this name stands, else behind the rest.

    Behind a text without a final line end, the block has none either: so `_remove_block` knows to remove the
    one before it.
    """
    newline = "\r\n" if text and "\r\n" in text else "\n"
    block = newline.join([f"{_BEGIN}{name}", _ABOUT, *lines, f"{_END}{name}"])
    for found in _find_blocks(text or ""):
        if text and found["name"] == name:
            return text[: found.start()] + block + text[found.end() :]
    if text is None or text.endswith("\n"):
        return f"{text or ''}{block}{newline}"
    return f"{text}{newline if text else ''}{block}"


def _remove_block(text: str, name: str | None) -> str:
    """Remove the block of this name from attributes, or every block."""
    for found in reversed(_find_blocks(text)):
        if name in {None, found["name"]}:
            before, behind = text[: found.start()], text[found.end() :]
            if not behind:
                before = before.removesuffix("\n").removesuffix("\r")
            text = before + behind.removeprefix("\r").removeprefix("\n")
    return text


def _find_blocks(text: str) -> list[re.Match[str]]:
    """Return the blocks, in order, each without its last line end.

    Raises:
        EditRefused: there are marks that make none.
    """
    if mark := _MARK.search(_BLOCK.sub("", text)):
        reason = f"the mark {mark[0]!r} in it has no partner"
        remedy = "remove the lines of mdmem from it by hand, with the marks"
        raise EditRefused(path=ATTRIBUTES, reason=reason, remedy=remedy)
    return list(_BLOCK.finditer(text))


# ----------------------------------------------------------------------------------------------- the config


def _config_path(repository: Repository) -> str:
    """Return the config that all work trees of a repository share."""
    return os.path.join(os.path.realpath(repository.common), "config")


def _read_driver(config: str) -> str:
    asked = ["config", "--file", config, "--get", _DRIVER]
    ended = run(asked, os.path.dirname(config), "read its config")
    return ended.printed.decode("utf-8", "replace").removesuffix("\n")


def _plan_config(config: str, settings: Mapping[str, str | None]) -> list[ChangedFile]:
    """Return the change that git makes of the config for some settings; None takes a setting out."""
    before = _read_file(config)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "config")
        with open(copy, "wb") as file:
            file.write(before or b"")
        for name, value in settings.items():
            change = ["--unset-all", name] if value is None else [name, value]
            ended = run(["config", "--file", copy, *change], folder, "set up its merges")
            if ended.status not in {0, _NOT_SET}:
                raise GitFailed(path=config, action="set up its merges", reason=ended.reason)
        with open(copy, "rb") as file:
            after = file.read()
    return [ChangedFile(config, before, after)] if after != (before or b"") else []
