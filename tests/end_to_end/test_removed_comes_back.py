"""Whatever a verb removes, renames or overwrites comes back byte for byte, whatever its name is.

The trees hold what no new memory may be called: names that differ only in case or in Unicode spelling, that
another system reserves, that end in a space or hide a character. Some lie there, some are met by an import.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import unicodedata
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings, strategies as st

from mdmem.errors import MdmemError
from mdmem.facade.memory import Memory
from tests.speed import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMORY_DISK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
COMPOSED, DECOMPOSED = "\u00e9t\u00e9", "e\u0301te\u0301"
STEMS = [
    *("errors", "Errors", "ERRORS", "fi", "\ufb01", "stra\u00dfe", "STRASSE", COMPOSED, DECOMPOSED),
    *("\u00c9t\u00e9", "con", "AUX", "nul.1", "What? Why", "Q&A: why?", "a|b", "x\u200by", " before", "a..b"),
]
FOLDERS = ["", "notes/", "Notes/", f"{COMPOSED}/", f"{DECOMPOSED}/", "con/", "a. /", "notes/in/"]
PATHS = st.builds("{}{}.md".format, st.sampled_from(FOLDERS), st.sampled_from(STEMS))
TEXTS = st.sampled_from(
    ["", "one\n", "\ufeffone\r\ntwo", "see [it](errors.md) and [[con]]\n", "---\ntitle: x\n---\none\n"]
)
TREES = st.dictionaries(PATHS, TEXTS, min_size=1, max_size=7)
Tree = dict[bytes, tuple[int, bytes]]


def tree(root: str) -> Tree:
    """Every folder and file of a vault as the disk spells it, but for the vault's own: mode and bytes."""
    found: Tree = {}
    for folder, names, files in os.walk(os.fsencode(root)):
        names[:] = [name for name in names if name != b".mdmem"]
        for name in names:
            found[os.path.relpath(os.path.join(folder, name), os.fsencode(root)) + b"/"] = (0, b"")
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, os.fsencode(root))] = os.stat(path).st_mode, file.read()
    return found


@contextmanager
def vault_of(texts: dict[str, str]) -> Iterator[Memory]:
    folder = tempfile.mkdtemp(prefix="mdmem-", dir=MEMORY_DISK)
    try:
        os.makedirs(f"{folder}/memories/.mdmem")
        write(f"{folder}/memories", texts)
        yield Memory(f"{folder}/memories")
    finally:
        shutil.rmtree(folder)


def write(root: str, texts: dict[str, str]) -> None:
    for path, text in texts.items():
        file = Path(root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        file.chmod(0o600 if "one" in text else 0o644)  # content is kept once, with its last permissions


def named(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def taken_in(memory: Memory, texts: dict[str, str]) -> str:
    """The change that an import makes of notes by another program."""
    source = tempfile.mkdtemp(dir=os.path.dirname(memory.vault.root))
    os.mkdir(f"{source}/.obsidian")
    write(source, texts)
    return memory.import_("obsidian", source).id


def swept(memory: Memory) -> str:
    with memory.vault.disk.locked(10):
        memory.vault.disk.trash.sweep(time.time())
    return ""


@st.composite
def calls(draw: st.DrawFn, texts: dict[str, str]) -> Callable[[Memory], str]:
    """A change that takes something away or renames it; it gives its id."""
    path = named(draw(st.sampled_from(sorted(texts))))
    folder = path.rpartition("/")[0] or path
    what = draw(st.sampled_from([path, folder]))
    end = ".md" if what.endswith(".md") else ""
    targets = [what.lower(), what.upper().removesuffix(".MD") + end, f"new{end}", f"notes/deep/new{end}"]
    target = draw(st.sampled_from([*targets, draw(PATHS), "archive/"]))
    more = draw(TREES)
    changes: list[Callable[[Memory], str]] = [
        lambda memory: memory.rm(what, recursive=True).id,
        lambda memory: memory.mv(what, target).id,
        lambda memory: memory.replace(None, "one", "1", count="all").id,
        lambda memory: memory.append(path, "more").id,
        lambda memory: taken_in(memory, more),
        swept,
    ]
    return draw(st.sampled_from(changes))


@settings(max_examples=examples(75), suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_undo_gives_back_the_tree_of_before(data: st.DataObject) -> None:
    """Changes are taken back one by one, the last one first; one that is refused changes nothing."""
    texts = data.draw(TREES)
    with vault_of(texts) as memory:
        done: list[tuple[str, Tree]] = []
        for _ in range(data.draw(st.integers(1, 4))):
            before = tree(memory.vault.root)
            try:
                change = data.draw(calls(texts))(memory)
            except MdmemError:
                assert tree(memory.vault.root) == before
                continue
            if change:
                assert tree(memory.vault.root) != before
                done.append((change, before))
        for change, before in reversed(done):
            memory.undo(change)
            assert tree(memory.vault.root) == before


@settings(max_examples=examples(50))
@given(TREES, st.data())
def test_restore_gives_back_each_memory_that_was_deleted(texts: dict[str, str], data: st.DataObject) -> None:
    with vault_of(texts) as memory:
        before = tree(memory.vault.root)
        # A file whose name is another spelling of one that is there has no path of its own, and stays.
        found = [found.path for found in memory.vault.walk() if not found.problem]
        paths = data.draw(st.permutations(found))
        for path in paths:
            memory.rm(path)
        assert len(tree(memory.vault.root)) < len(before)
        swept(memory)
        for path in paths:
            memory.restore(path)
        assert tree(memory.vault.root) == before
