"""`mdmem mv` of a note that 1,000 others link to, among 10,000: once, and killed at random instants.

The links are planted, so that what has to become of each is known without asking mdmem: the bytes before and
behind a link stay, its text and its anchor stay, and its target names the new file in the old style. What a
kill leaves is what `doctor` finds, which is the next command: it recovers first.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import floors
import vaults
from machine import environment, installed
from percentiles import clock
from table import Row, seconds
from timing import program

from mdmem.facade.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from setting import Setting

_NOTES = 10_000
_BACKLINKS = 1_000
_OUTGOING = 20
_KILLS = 100
_BEYOND = 1.1  # some moves take longer than the first: their ends must be hit as well
_OLD, _NEW = f"{vaults.NOTES}/hub-old.md", f"{vaults.NOTES}/far/away/hub-new.md"
_NEW_FOLDER = f"{vaults.NOTES}/far"
_STAGING = ".mdmem/local/staging"
_AT_REST = re.compile(
    r"\.mdmem/(?:config\.toml|local/(?:\.gitignore|lock|trash\.size|trash/(?:log\.jsonl|[0-9a-f]{64})"
    r"|index/[0-9a-f]{32}/(?:lock|database\.sqlite(?:-wal|-shm)?|text/(?!\.tmp).*)))"
)

# A link as it is planted in a note; `{0}` is the path from the folder of the note, `{1}` from the vault.
_STYLES = (
    "[[hub-old]]",
    "[[hub-old|called so]]",
    "[[hub-old#The hub]]",
    "![[hub-old#^fact]]",
    "[[{1}]]",
    "[[{1}|called so]]",
    "[called so]({0})",
    "[called so]({0}#the-hub)",
    "![called so](<{0}>)",
    "[called so][hub]\n\n[hub]: {0} 'A title'",
)
# The parts of a planted link: what is before the target, the target, what is behind it.
_WIKI = re.compile(r"(!?\[\[)([^\]|#]+)((?:#[^\]|]*)?(?:\|[^\]]*)?\]\])")
_INLINE = re.compile(r"(!?\[called so\]\(<?)([^)>#]+)((?:#[^)>]*)?>?\))")
_REFERENCE = re.compile(r"(\[called so\]\[hub\]\n\n\[hub\]: )(\S+)( 'A title')")


class _Link(NamedTuple):
    """A planted link: the text of its note before and behind its target, and the target."""

    before: str
    target: str
    behind: str

    @property
    def is_identifier(self) -> bool:
        return self.before.endswith("[[")


class _Vault:
    """A vault in which many notes link to one, whose own links are relative; `files` is how it all begins."""

    def __init__(self, root: str, notes: int, backlinks: int, seed: int) -> None:
        self.root = root
        vaults.make(root, notes, seed)
        chosen = Random(f"moving {seed}").sample(range(notes), backlinks)
        self.backlinks = {
            vaults.path(number): self._plant(vaults.path(number), _STYLES[count % len(_STYLES)])
            for count, number in enumerate(chosen)
        }
        outgoing = [
            f"[note {n}](./{vaults.path(n).removeprefix(f'{vaults.NOTES}/')})." for n in range(_OUTGOING)
        ]
        hub = ["# The hub", "", *outgoing, "[itself](#the-hub) and [[#The hub]].", "", "A fact. ^fact"]
        vaults.write(os.path.join(root, _OLD), "\n".join(hub) + "\n")
        self.files = _contents(root)

    def _plant(self, path: str, style: str) -> _Link:
        """Put a link into a note, as a paragraph of its own at the end."""
        file = os.path.join(self.root, path)
        with open(file, encoding="utf-8", newline="") as opened:
            text = opened.read()
        relative = posixpath.relpath(_OLD, posixpath.dirname(path))
        link = style.format(relative, _OLD.removesuffix(".md"))
        vaults.write(file, f"{text}\nSee {link}\n")
        return _parts(f"{text}\nSee {link}\n", len(text))

    def wrong(self, files: Mapping[str, bytes]) -> Counter[str]:
        """What is not as it has to be after the move: links, other bytes, files."""
        found: Counter[str] = Counter()
        expected = {*self.files, _NEW} - {_OLD}
        found["files"] = len(expected ^ files.keys())
        for path in expected & files.keys():
            if path == _NEW:
                found["links"] += not self._is_hub(files[path].decode())
            elif path in self.backlinks:
                found += self._judge(path, files[path].decode())
            else:
                found["other bytes"] += files[path] != self.files[path]
        return found

    def _judge(self, path: str, text: str) -> Counter[str]:
        old = self.backlinks[path]
        if not (text.startswith(old.before) and text.endswith(old.behind)):
            return Counter({"other bytes": 1})
        target = text[len(old.before) : len(text) - len(old.behind)]
        if old.is_identifier:
            # An identifier is the end of a path, segment by segment, without the suffix.
            segments, right = target.split("/"), _NEW.removesuffix(".md").split("/")
            is_right = segments == right[-len(segments) :]
        else:
            is_right = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) == _NEW
        return Counter({"links": int(not is_right)})

    def _is_hub(self, text: str) -> bool:
        """Whether the moved note's own links lead where they led, and nothing else in it has changed."""
        pattern = re.compile(r"(?<=\]\()[^)#]+")
        old = self.files[_OLD].decode()
        places = [
            [
                posixpath.normpath(posixpath.join(posixpath.dirname(where), target))
                for target in pattern.findall(t)
            ]
            for where, t in ((_OLD, old), (_NEW, text))
        ]
        return places[0] == places[1] and pattern.sub("", old) == pattern.sub("", text)

    def unexpected(self, files: Mapping[str, bytes]) -> list[str]:
        """Every file that is neither a memory nor the bookkeeping of a vault at rest."""
        every = (os.path.join(folder, name) for folder, _, names in os.walk(self.root) for name in names)
        paths = (os.path.relpath(path, self.root) for path in every)
        return [path for path in paths if path not in files and not _AT_REST.fullmatch(path)]

    def restore(self) -> None:
        """Put every file back as it was in the beginning."""
        files = _contents(self.root)
        for path in files.keys() - self.files.keys():
            os.unlink(os.path.join(self.root, path))
        shutil.rmtree(os.path.join(self.root, _NEW_FOLDER), ignore_errors=True)
        for path, data in self.files.items():
            if files.get(path) != data:
                with open(os.path.join(self.root, path), "wb") as file:
                    file.write(data)


def _parts(text: str, start: int) -> _Link:
    """The planted link in a text, which begins behind `start`."""
    for pattern in (_REFERENCE, _WIKI, _INLINE):
        if found := pattern.search(text, start):
            return _Link(text[: found.start(2)], found[2], text[found.end(2) :])
    raise RuntimeError(f"no link in {text[start:]!r}")


def _contents(root: str) -> dict[str, bytes]:
    found = {}
    for path, _ in floors.files(root):
        with open(path, "rb") as file:
            found[os.path.relpath(path, root)] = file.read()
    return found


def measure(setting: Setting) -> list[Row]:
    notes, backlinks = setting.count(_NOTES), setting.count(_BACKLINKS)
    vault = _Vault(setting.path("moving"), notes, backlinks, setting.seed)
    Memory(vault.root).sync()
    what = f"`mdmem mv` of a note with {backlinks:,} backlinks among {notes:,}"
    duration, once = _once(vault, f"{what}, whole process")
    return [once, _killed(setting, vault, duration, "kill -9 during the same, {} times")]


def _once(vault: _Vault, what: str) -> tuple[float, Row]:
    """The whole process once; how many seconds it took, and its row."""
    run = program([installed("mdmem"), "--vault", vault.root, "mv", _OLD, _NEW], environment())
    duration = clock(lambda: run(0))
    wrong = vault.wrong(_contents(vault.root))
    memory = Memory(vault.root)
    made, findings = len(memory.history()), len(memory.doctor().findings)
    vault.restore()
    row = Row(
        what=what,
        ours=f"{wrong['links']} links wrong, {wrong['other bytes']} notes with other bytes changed, "
        f"{wrong['files']} files too many or missing, {made} plan, {findings} findings of `doctor`; "
        f"{seconds(duration)}",
        budget="0, 0, 0, 1, 0",
        kept=not wrong.total() and made == 1 and not findings,
    )
    return duration, row


def _killed(setting: Setting, vault: _Vault, duration: float, what: str) -> Row:
    chance, count = setting.chance("moving"), setting.count(_KILLS)
    seen: Counter[str] = Counter()
    for _ in range(count):
        Memory(vault.root).sync()
        is_done = _move_and_kill(vault.root, chance.uniform(0, duration * _BEYOND))
        found = _look(vault, is_done=is_done)
        if not found["before"]:
            vault.restore()
        seen += found
    return Row(
        what=what.format(count),
        ours=f"{seen['between']} vaults in between, {seen['lost']} moves lost that were done, "
        f"{seen['temporary']} temporary files, {seen['links']} backlinks that the index does not know, "
        f"{seen['findings']} findings of `doctor`",
        beside=f"{seen['amid']} kills came amid the plan; {seen['before']} vaults were as before it, "
        f"{seen['after']} as after it",
        budget="0, 0, 0, 0, 0",
        kept=not any(seen[each] for each in ("between", "lost", "temporary", "links", "findings")),
    )


def _look(vault: _Vault, *, is_done: bool) -> Counter[str]:
    """What the next command finds, and leaves, after a kill."""
    amid = bool(os.listdir(os.path.join(vault.root, _STAGING)))
    memory = Memory(vault.root)
    findings = memory.doctor().findings
    files = _contents(vault.root)
    if files == vault.files:
        state, hub = "before", _OLD
    else:
        state, hub = "between" if vault.wrong(files).total() else "after", _NEW
    known = {link.path for link in memory.references.backlinks(hub)}
    memory.index.close()
    return Counter(
        {
            state: 1,
            "amid": amid,
            "lost": is_done and state != "after",
            "temporary": len(vault.unexpected(files)),
            "links": len(vault.backlinks.keys() - known),
            "findings": len(findings),
        }
    )


def _move_and_kill(root: str, pause: float) -> bool:
    """Kill `mdmem mv` so many seconds after its start; whether it had ended by then.

    Raises:
        RuntimeError: it failed.
    """
    command = [installed("mdmem"), "--vault", root, "mv", _OLD, _NEW]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) as process:
        time.sleep(pause)
        process.kill()
    if process.returncode > 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return process.returncode == 0
