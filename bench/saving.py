"""The ways in which others save a note: what programs do to files, without mdmem."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

import vaults


class Saved(NamedTuple):
    """What is found after a save, and what is not: memories, each with a word; "" is not searched for."""

    there: Mapping[str, str]
    gone: Mapping[str, str]


class Save(NamedTuple):
    """One save of the note at `path` in the vault at `root`.

    The note holds the word `before`; `text` holds the word `after` in its place, and both words nowhere else.
    """

    root: str
    path: str
    text: str
    before: str
    after: str

    @property
    def file(self) -> str:
        return os.path.join(self.root, self.path)

    @property
    def changed(self) -> Saved:
        return Saved({self.path: self.after}, {self.path: self.before})

    def aside(self, name: str) -> str:
        """A file with the new text, in the same folder."""
        file = os.path.join(os.path.dirname(self.file), name)
        vaults.write(file, self.text)
        return file


Way = Callable[[Save], Saved]


def in_place(save: Save) -> Saved:
    """Some bytes of the file, which keeps its size: one word is written over the other."""
    with open(save.file, "r+b") as file:
        place = file.read().index(save.before.encode())
        file.seek(place)
        file.write(save.after.encode())
    return save.changed


def truncated(save: Save) -> Saved:
    vaults.write(save.file, save.text)
    return save.changed


def replaced(save: Save) -> Saved:
    """As careful programs do: a temporary file in the same folder, put in the place."""
    os.replace(save.aside(f".{os.path.basename(save.path)}.tmp"), save.file)
    return save.changed


def replaced_by_note(save: Save) -> Saved:
    """The same, and the temporary file looks like a note."""
    os.replace(save.aside(f"tmp-{save.after}.md"), save.file)
    return save.changed


def replaced_from_elsewhere(save: Save) -> Saved:
    """A temporary file from a folder that nobody watches."""
    aside = os.path.join(os.path.dirname(save.root), "aside.md")
    vaults.write(aside, save.text)
    os.replace(aside, save.file)
    return save.changed


def vim(save: Save) -> Saved:
    """vim, which asks with a file 4913 whether it may; the old note is put aside, and deleted at the end."""
    vim_backup(save)
    os.unlink(f"{save.file}~")
    return save.changed


def vim_backup(save: Save) -> Saved:
    """vim with 'backup': the old note stays aside, with a tilde."""
    os.unlink(save.aside("4913"))
    os.rename(save.file, f"{save.file}~")
    return truncated(save)


def renamed(save: Save) -> Saved:
    new = f"{os.path.dirname(save.path)}/renamed-{save.after}.md"
    os.rename(save.file, os.path.join(save.root, new))
    return Saved({new: save.before}, {save.path: save.before})


def created(save: Save) -> Saved:
    """A new note in a new folder."""
    new = f"{vaults.NOTES}/new-{save.after}/{save.after}.md"
    os.mkdir(os.path.dirname(os.path.join(save.root, new)))
    vaults.write(os.path.join(save.root, new), save.text)
    return Saved({new: save.after}, {})


def deleted(save: Save) -> Saved:
    os.unlink(save.file)
    return Saved({}, {save.path: save.before})


def recreated(save: Save) -> Saved:
    os.unlink(save.file)
    return truncated(save)


def folder_moved(save: Save) -> Saved:
    """The folder of the note, with all that is in it."""
    old = os.path.dirname(save.path)
    new = f"{vaults.NOTES}/moved-{save.after}"
    os.rename(os.path.join(save.root, old), os.path.join(save.root, new))
    names = [name for name in os.listdir(os.path.join(save.root, new)) if name.endswith(".md")]
    there = {f"{new}/{name}": "" for name in names}
    there[f"{new}/{os.path.basename(save.path)}"] = save.before
    return Saved(there, {save.path: save.before})


WAYS: Mapping[str, Way] = {
    "written in place, same size": in_place,
    "truncated and written": truncated,
    "written aside, `os.replace`": replaced,
    "written aside under the name of a note, `os.replace`": replaced_by_note,
    "written in another folder, `os.replace`": replaced_from_elsewhere,
    "saved by vim's steps": vim,
    "saved by vim's steps, backup kept": vim_backup,
    "renamed": renamed,
    "created in a new folder": created,
    "deleted": deleted,
    "deleted and created again": recreated,
}
