"""Lets the index meet crashes or a full disk, and reports what it was like after; prints JSON.

    index_fault_worker.py crash VAULT ELSEWHERE TRIALS SEED
    index_fault_worker.py commit VAULT ELSEWHERE TRIALS SEED
    index_fault_worker.py full VAULT ELSEWHERE SPARE STEPS
    index_fault_worker.py check VAULT ELSEWHERE

`crash`: in each trial some of 200 files change, and a process that makes the index current is ended at a
random instant of its processor time, as by SIGKILL. `commit`: the same, but it is ended at one of the steps
of the commit of the text index, each as it appears in its folder. `full`: the disk of VAULT is filled but for
so many pages (or files, if it has few of these), in STEPS up to SPARE. `check` only says what is wrong.
ELSEWHERE is a folder on another disk, for a rebuild to compare with.

Each trial runs in a fork of this process, which has one thread and everything imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inotify_simple import INotify, flags

from mdmem.index.index import Index
from mdmem.index.sync import Sync  # noqa: F401 - loaded before anything is timed

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = 200
PARTS = ("names", "fields", "sections", "blocks", "links", "citations", "tags", "urls")


def content(chance: random.Random) -> str:
    number = chance.randrange(1_000)
    lines = [
        f"---\ntitle: T{number}\ntags: [a{number % 7}]\n---\n# H{number}\n",
        f"[[{number % FILES}]] ^b\n",
    ]
    return "".join(lines + [f"## S{n}\nword{number} {'text ' * 40}\n" for n in range(number % 5)])


def change(root: Path, chance: random.Random) -> None:
    """Write, move and delete some of the files."""
    for number in chance.sample(range(FILES), 60):
        file = root / f"notes/{number % 9}/{number}.md"
        how = chance.randrange(6)
        if how == 0:
            file.unlink(missing_ok=True)
        elif how == 1 and file.exists():
            file.replace(file.with_name(f"moved{number}.md"))
        else:
            file.write_text(content(chance))


def make(root: Path, chance: random.Random) -> None:
    (root / ".mdmem").mkdir(parents=True)
    (root / ".mdmem/config.toml").touch()
    for number in range(FILES):
        file = root / f"notes/{number % 9}/{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content(chance))


def forked(work: Callable[[], Any]) -> tuple[int, Any]:
    """What a fork of this process returns, and how it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), json.loads(told) if told else None


def rows_of(index: Index) -> dict[str, Any]:
    columns = "path, hash, problem, title, type, day, dated, ident"
    found: dict[str, Any] = {"documents": index.rows(f"SELECT {columns} FROM documents ORDER BY path")}
    for part in PARTS:
        query = f"SELECT d.path, x.* FROM {part} AS x JOIN documents AS d ON d.id = x.document"
        found[part] = sorted(((path, *row) for path, _, *row in index.rows(query)), key=repr)
    found["texts"] = index.text(lambda text: text.paths())
    found["passages"] = index.text(lambda text: text.searcher().num_docs)
    return found


def state(root: Path) -> dict[str, str]:
    return {
        str(file.relative_to(root)): sha256(file.read_bytes()).hexdigest()
        for file in sorted((root / "notes").rglob("*.md"))
    }


def wrong(root: Path, elsewhere: Path, *, rebuild: bool, notes: bool = False) -> list[str]:
    """What is not right once the index is made current; with `notes` it may say that it was made anew."""
    index = Index(str(root))
    index.sync()
    files = state(root)
    found = []
    if index.notes and not notes:
        found.append(f"notes: {index.notes}")
    if dict(index.rows("SELECT path, hash FROM documents")) != files:
        found.append("the documents are not the files")
    if index.text(lambda text: text.paths()) != sorted(files):
        found.append("the texts are not the files")
    if index.rows("SELECT path FROM pending") or index.rows("PRAGMA integrity_check") != [("ok",)]:
        found.append("the database is not sound")
    if len(index.rows("SELECT name FROM sqlite_master WHERE name LIKE '%_by_%'")) < 5:
        found.append("an index over the rows is missing")
    if rebuild:
        shutil.rmtree(elsewhere, ignore_errors=True)
        elsewhere.mkdir(parents=True)
        other = Index(str(root))
        other.__dict__["folder"] = str(elsewhere)
        other.sync()
        if rows_of(other) != rows_of(index):
            found.append("the rows are not those of a rebuild")
        other.close()
    index.close()
    return found


# --------------------------------------------------------------------------------------------------- crashes


def crash(root: Path, elsewhere: Path, trials: int, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    make(root, chance)
    forked(lambda: Index(str(root)).sync())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = used.ru_utime + used.ru_stime
    killed, failures = 0, []
    for trial in range(trials):
        change(root, chance)
        is_first = trial % 4 == 0
        if is_first:
            shutil.rmtree(root / ".mdmem/local")
        # One that begins anew takes as long as the very first, and others less.
        delay = chance.random() * whole * (1 if is_first else 0.6) + 1e-6

        def sync(delay: float = delay) -> None:
            # Its default action ends the process at once, whatever that is doing.
            signal.setitimer(signal.ITIMER_PROF, delay)
            Index(str(root)).sync()

        ended, _ = forked(sync)
        killed += ended == -signal.SIGPROF
        # How long it takes changes with how much there is to do.
        whole *= 1.1 if ended else 0.7
        code, found = forked(partial(wrong, root, elsewhere, rebuild=trial % 5 == 0))
        if code or found:
            failures.append(f"trial {trial}, after {delay:.4f} s of {whole:.4f}: {code}, {found}")
    return {"killed": killed, "failures": failures}


def steps(root: Path, last: int | None = None) -> int:
    """Make the index current in a process that is killed behind the `last` step in the texts' folder.

    Returns:
        How many steps there were until then; all of them without `last`.
    """
    # Asked in a fork: opening the texts starts a thread that holds a lock, which a fork beside it would keep.
    _, folder = forked(lambda: Index(str(root)).text(lambda text: text.folder))
    watch = INotify()
    watch.add_watch(folder, flags.CREATE | flags.MODIFY | flags.CLOSE_WRITE | flags.MOVED_TO | flags.DELETE)
    child = os.fork()
    if child == 0:
        Index(str(root)).sync()
        os._exit(0)
    count, ended = 0, False
    while not ended:
        ended = os.waitpid(child, os.WNOHANG) != (0, 0)
        count += len(watch.read(timeout=20))
        if last is not None and count > last and not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            ended = True
    watch.close()
    return count


def commit(root: Path, elsewhere: Path, trials: int, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    make(root, chance)
    forked(lambda: Index(str(root)).sync())
    change(root, chance)
    _, first = forked(lambda: steps(root))
    whole, killed, failures = first, 0, []
    for trial in range(trials):
        change(root, chance)
        last = trial * whole // trials
        _, reached = forked(partial(steps, root, last))
        killed += reached > last
        whole = whole if reached > last else reached  # so many are seen where the machine has more to do
        code, found = forked(partial(wrong, root, elsewhere, rebuild=trial % 5 == 0))
        if code or found:
            failures.append(f"trial {trial}, behind step {last} of {whole}: {code}, {found}")
    files = forked(lambda: len(os.listdir(Index(str(root)).text(lambda text: text.folder))))[1]
    return {"killed": killed, "failures": failures, "steps": first, "files": files}


# ----------------------------------------------------------------------------------------------- a full disk


@contextlib.contextmanager
def nearly_full(root: Path, left: int) -> Any:
    """Fill the disk, but for `left` pages or files, whichever there are fewer of."""
    filler = root.parent / "filler"
    filler.mkdir()
    status = os.statvfs(root)
    if status.f_bavail < status.f_favail * 4:
        (filler / "pages").write_bytes(b"\0" * max(0, (status.f_bavail - left) * status.f_bsize))
    else:
        for number in range(max(0, os.statvfs(root).f_favail - left)):
            (filler / str(number)).touch()
    try:
        yield
    finally:
        shutil.rmtree(filler)


def tried(root: Path) -> dict[str, Any]:
    """What a sync on a full disk finds, and where it keeps that."""
    index = Index(str(root))
    index.sync()
    texts = index.text(lambda text: text.paths())
    is_inside = Path(index.folder).is_relative_to(root)
    return {"right": texts == sorted(state(root)), "inside": is_inside, "notes": index.notes}


def full(root: Path, elsewhere: Path, spare: int, steps: int) -> dict[str, Any]:
    chance = random.Random(1)
    make(root, chance)
    attempts, failures = [], []
    for step in range(steps):
        left = step * spare // steps
        if step % 2:
            shutil.rmtree(root / ".mdmem/local", ignore_errors=True)
        else:
            forked(lambda: Index(str(root)).sync())
            change(root, chance)
        before = state(root)
        with nearly_full(root, left):
            code, told = forked(lambda: tried(root))
        attempts.append({"left": left, "code": code, **(told or {})})
        if state(root) != before:
            failures.append(f"{left} left: the memories were changed")
        code, found = forked(partial(wrong, root, elsewhere, rebuild=step % 5 == 0, notes=True))
        if code or found:
            failures.append(f"{left} left, then enough: {code}, {found}")
    return {"attempts": attempts, "failures": failures}


if __name__ == "__main__":
    what, vault, other, *numbers = sys.argv[1:]
    trials: dict[str, Callable[..., Any]]
    trials = {"crash": crash, "commit": commit, "full": full, "check": partial(wrong, rebuild=True)}
    sys.stdout.write(json.dumps(trials[what](Path(vault), Path(other), *map(int, numbers))))
