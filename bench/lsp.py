"""The language server on 10,000 notes, beside the calls of the façade that it answers from."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import lsp_messages
import vaults
from machine import environment
from percentiles import clock, percentiles
from protocol import ticks_of
from table import Row, milliseconds, seconds

import mdmem

sys.path.append(str(Path(__file__).parents[1]))

from tests.editor.lsp.client import UTF32, Client, uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from setting import Setting

    from mdmem.editor.editing import Editing

_NOTES = 10_000
_QUESTIONS = 200
_LINES = 2_000
_BACKLINKS = 50
_STARTS = 3
_BURSTS = 20
_BURST = 100
_MOST_CHECKS = 5
_EDITS = 20_000
_FILES = 300
_ASKED = 20  # of so many edits, one is behind a question, so that the server is not left behind
_IDLE_SECONDS = 60
_REST_SECONDS = 5.0
_KEY_SECONDS = 0.3  # after which a keystroke is not part of a burst
_MOST_BYTES = 150e6
_MOST_GROWTH = 5e6
_MOST_IDLE = 0.2
_MESSAGES = 50_000
_LINK = re.compile(r"\[\[(\d+)")


class _Desk(NamedTuple):
    """A server and the façade, over the same vault."""

    root: str
    client: Client
    editing: Editing
    notes: int

    def file(self, path: str) -> Path:
        return Path(self.root, path)

    def text(self, path: str) -> str:
        return self.file(path).read_bytes().decode()

    def ask(self, name: str, path: str, offset: int, text: str, **more: Any) -> Any:
        before = text[:offset]
        line = before.count("\n")
        place = {"line": line, "character": len(before) - before.rfind("\n") - 1}
        return self.client.ask(name, self.file(path), place, **more)


def measure(setting: Setting) -> list[Row]:
    folder, notes = setting.path("served"), setting.count(_NOTES)
    root = os.path.join(folder, "vault")
    os.mkdir(folder)
    vaults.make(root, notes, setting.seed)
    for number in range(_BACKLINKS):
        text = f"# From {number}\n\nsome words\n\n- [[hub]] and more words\n"
        vaults.write(os.path.join(root, vaults.NOTES, f"from-{number}.md"), text)
    vaults.write(os.path.join(root, vaults.NOTES, "hub.md"), "# Hub\n\nwords\n")
    first = _first(setting, root)
    with _desk(root, notes) as desk:
        rows = [
            first,
            _typed(setting, desk),
            _completed(setting, desk),
            _asked(setting, desk, "definition", desk.editing.targets),
            _asked(setting, desk, "hover", desk.editing.hover),
            *_spread_out(setting, desk),
            *_bursts(setting, desk),
        ]
    with _desk(root, notes) as desk:
        return [*rows, *_edited(setting, desk), _idle(setting, desk)]


@contextmanager
def _desk(root: str, notes: int) -> Iterator[_Desk]:
    """A server that has made its index current, and the façade with a watcher, as the server has."""
    editing = mdmem.open(root).editing()
    watching = Thread(target=lambda: [None for _ in editing.changes()], daemon=True)
    watching.start()
    with _client(root) as client:
        desk = _Desk(root, client, editing, notes)
        client.request("workspace/symbol", {"query": "nothing is called so"})
        editing.around()
        yield desk
    assert not client.errors, client.errors
    editing.stop()
    watching.join()


def _client(root: str) -> Client:
    client = Client(cwd=root, env=environment())
    client.initialize(Path(root), [UTF32])
    return client


# -- the beginning ----------------------------------------------------------------------------------------


def _first(setting: Setting, root: str) -> Row:
    """From the start of the process to the first answer, in a vault without an index."""
    ours, theirs = [], []
    path = vaults.path(setting.chance("first").randrange(setting.count(_NOTES)))
    text = Path(root, path).read_bytes().decode()
    for _ in range(_STARTS):
        shutil.rmtree(os.path.join(root, ".mdmem/local/index"), ignore_errors=True)
        theirs.append(clock(lambda: mdmem.open(root).index.sync(texts=False)))
        shutil.rmtree(os.path.join(root, ".mdmem/local/index"), ignore_errors=True)
        start = time.perf_counter()
        with _client(root) as client:
            client.open(Path(root, path), text)
            client.ask("documentLink", Path(root, path))
            ours.append(time.perf_counter() - start)
    difference = median(mine - other for mine, other in zip(ours, theirs, strict=True))
    return Row(
        what=f"from the start of `mdmem lsp` to its first answer, {setting.count(_NOTES):,} notes, no index",
        ours=seconds(median(ours)),
        beside=f"making the index: {seconds(median(theirs))}",
        compared=f"+ {seconds(difference)}",
        budget="≤ + 1.00 s",
        kept=difference <= 1.0,
    )


# -- questions --------------------------------------------------------------------------------------------


def _compared(
    what: str, ours: Sequence[float], theirs: Sequence[float], beside: str, *, most: float, is_more: bool
) -> Row:
    """A row of two sides, whose budget is one of the p50; where `is_more`, of how much it is longer."""
    mine, other = percentiles(ours), percentiles(theirs)
    difference = mine.p50 - other.p50
    return Row(
        what=what,
        ours=mine.text(),
        beside=f"{beside}: {other.text()}",
        compared=f"+ {milliseconds(difference)}",
        budget=f"p50 ≤ {'+ ' if is_more else ''}{milliseconds(most)}",
        kept=(difference if is_more else mine.p50) <= most,
    )


def _long_text(setting: Setting, desk: _Desk) -> str:
    """A memory of 2,000 lines, out of the lines of others."""
    numbers = setting.chance("long").choices(range(desk.notes), k=_LINES // 10)
    bodies = (desk.text(vaults.path(number)).split("---\n", 2)[2] for number in numbers)
    lines = [line for body in bodies for line in body.splitlines() if not line.startswith(("[", "`"))]
    lines = [re.sub(r" \^note-\d+", "", line) for line in lines]
    return "\n".join(["# Long", "", *lines[: _LINES - 3], ""])


def _typed(setting: Setting, desk: _Desk) -> Row:
    """Each key makes another finding, so that it is told; the façade checks the same text right after."""
    path, body = f"{vaults.NOTES}/long.md", _long_text(setting, desk)
    file = desk.file(path)
    vaults.write(str(file), body)
    desk.client.open(file, body)
    desk.client.found(file, 1)
    ours, theirs = [], []
    for version in range(2, setting.count(_QUESTIONS) + 2):
        text = f"{body}[[gone {version}]]\n"
        time.sleep(_KEY_SECONDS)
        start = time.perf_counter()
        desk.client.change(file, text, version)
        desk.client.found(file, version)
        ours.append(time.perf_counter() - start)
        desk.editing.open(path, text)
        theirs.append(clock(partial(desk.editing.check, path)))
    desk.client.shut(file)
    desk.editing.close(path)
    what = f"a keystroke in {_LINES:,} lines → its findings"
    return _compared(what, ours, theirs, "`check` of that text", most=0.030, is_more=True)


def _completed(setting: Setting, desk: _Desk) -> Row:
    """Behind `[[` and the beginning of a name, right after it was typed."""
    ours, theirs = [], []
    path = vaults.path(7)
    body, file = desk.text(path), desk.file(path)
    desk.client.open(file, body)
    chance = setting.chance("completion")
    for version in range(2, setting.count(_QUESTIONS) + 2):
        name = chance.choice(vaults.VOCABULARY)[: chance.randrange(4)] if version % 2 else f"00{version % 90}"
        text = f"{body}\nsee [[{name}"
        desk.client.change(file, text, version)
        start = time.perf_counter()
        desk.ask("completion", path, len(text), text)
        ours.append(time.perf_counter() - start)
        desk.editing.open(path, text)
        theirs.append(clock(partial(desk.editing.completions, path, len(text))))
    desk.client.shut(file)
    desk.editing.close(path)
    return _compared("completion of `[[`", ours, theirs, "`completions`", most=0.050, is_more=False)


def _asked(setting: Setting, desk: _Desk, name: str, call: Callable[[str, int], object]) -> Row:
    """About a link of an open memory, another one each time."""
    ours: list[float] = []
    theirs: list[float] = []
    chance = setting.chance(name)
    while len(ours) < setting.count(_QUESTIONS):
        path = vaults.path(chance.randrange(desk.notes))
        text = desk.text(path)
        if not (link := _LINK.search(text)):
            continue
        desk.client.open(desk.file(path), text)
        desk.editing.open(path, text)
        desk.client.found(desk.file(path), 1)
        start = time.perf_counter()
        assert desk.ask(name, path, link.start(1), text)
        ours.append(time.perf_counter() - start)
        theirs.append(clock(partial(call, path, link.start(1))))
        desk.client.shut(desk.file(path))
        desk.editing.close(path)
    return _compared(name, ours, theirs, "its call", most=0.010, is_more=False)


def _spread_out(setting: Setting, desk: _Desk) -> Iterator[Row]:
    """What is answered out of many files, for each file."""
    old, new = (desk.file(f"{vaults.NOTES}/{name}.md") for name in ("hub", "other"))
    path = f"{vaults.NOTES}/from-0.md"
    text = desk.text(path)
    at = text.index("hub")
    moves = [{"oldUri": uri(old), "newUri": uri(new)}]

    def references() -> int:
        found = desk.ask("references", path, at, text, context={"includeDeclaration": False})
        return len({each["uri"] for each in found})

    def will_rename() -> int:
        return len(desk.client.request("workspace/willRenameFiles", {"files": moves})["documentChanges"])

    sides: tuple[tuple[str, Callable[[], int], Callable[[], object]], ...] = (
        ("references", references, lambda: desk.editing.uses(path, at)),
        ("willRenameFiles", will_rename, lambda: desk.editing.move({str(old): str(new)})),
    )
    for name, ask, call in sides:
        ours, theirs = [], []
        for _ in range(setting.count(_QUESTIONS)):
            start = time.perf_counter()
            hits = ask()
            ours.append((time.perf_counter() - start) / hits)
            assert hits == _BACKLINKS
            theirs.append(clock(call) / hits)
        what = f"{name} for each of {_BACKLINKS} files with a hit"
        yield _compared(what, ours, theirs, "its call", most=0.004, is_more=False)


def _bursts(setting: Setting, desk: _Desk) -> Iterator[Row]:
    """100 edits without a rest, each with another finding, and a question behind them."""
    path, body = f"{vaults.NOTES}/long.md", _long_text(setting, desk)
    file, version = desk.file(path), 1
    desk.client.open(file, body)
    desk.client.found(file, 1)
    desk.editing.open(path, body)
    checks, waits, alone, answers = [], [], [], []
    for _ in range(setting.count(_BURSTS)):
        time.sleep(_KEY_SECONDS)
        before, version = len(desk.client.diagnostics[uri(file)]), version + _BURST
        texts = [f"{body}[[gone {number}]]\n" for number in range(version - _BURST, version)]
        for number, text in enumerate(texts, version - _BURST + 1):
            desk.client.change(file, text, number)
        start = time.perf_counter()
        desk.client.ask("documentLink", file)
        waits.append(time.perf_counter() - start)
        desk.client.found(file, version)
        checks.append(len(desk.client.diagnostics[uri(file)]) - before)
        start = time.perf_counter()
        desk.client.ask("documentLink", file)
        answers.append(time.perf_counter() - start)
        desk.editing.open(path, texts[-1])
        alone.append(clock(partial(desk.editing.check, path)))
    desk.client.shut(file)
    desk.editing.close(path)
    yield Row(
        what=f"checks of {_BURST} edits without a rest, in {_LINES:,} lines, {len(checks)} times",
        ours=f"{median(checks):.0f}, {max(checks)} at most",
        budget=f"≤ {_MOST_CHECKS}",
        kept=max(checks) <= _MOST_CHECKS,
    )
    wait, answer, check = median(waits), median(answers), median(alone)
    yield Row(
        what="a question behind such edits, which the server has to read first",
        ours=milliseconds(wait),
        beside=f"the same at rest: {milliseconds(answer)}; `check`: {milliseconds(check)}",
        compared=f"+ {milliseconds(wait - answer)}",
        budget=f"≤ + {milliseconds(check)}, one check",
        kept=wait - answer <= check,
    )


# -- what it takes ----------------------------------------------------------------------------------------


def _edited(setting: Setting, desk: _Desk) -> Iterator[Row]:
    """Edits of files by chance: the memory that the server has at most, and whether it grows."""
    chance, client = setting.chance("edits"), desk.client
    paths = [vaults.path(number) for number in chance.sample(range(desk.notes), min(_FILES, desk.notes))]
    texts = {path: desk.text(path) for path in paths}
    for path, text in texts.items():
        client.open(desk.file(path), text)
    sizes: list[list[float]] = [[] for _ in range(4)]
    edits = setting.count(_EDITS)
    start = time.perf_counter()
    for number in range(edits):
        path = chance.choice(paths)
        line = f"{chance.choice(vaults.VOCABULARY)} [[{number % desk.notes:06}]] [[gone {number}]]"
        client.change(desk.file(path), f"{texts[path]}\n{line}\n", number + 2)
        if number % _ASKED == 0:
            client.ask("documentLink", desk.file(path))
            sizes[4 * number // edits].append(_resident(client.process.pid))
            client.told.clear()
            client.diagnostics.clear()
    lasted = time.perf_counter() - start
    most, growth = max(map(max, sizes)), median(sizes[3]) - median(sizes[2])
    yield Row(
        what=f"memory at most, {edits:,} edits of {len(paths)} files",
        ours=f"{most / 1e6:.0f} MB; {seconds(lasted)}",
        budget=f"≤ {_MOST_BYTES / 1e6:.0f} MB",
        kept=most <= _MOST_BYTES,
    )
    yield Row(
        what="the same, from the third quarter to the last",
        ours=f"{growth / 1e6:+.1f} MB",
        beside=f"medians {', '.join(f'{median(each) / 1e6:.1f}' for each in sizes)} MB",
        budget=f"≤ + {_MOST_GROWTH / 1e6:.0f} MB",
        kept=growth <= _MOST_GROWTH,
    )


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _idle(setting: Setting, desk: _Desk) -> Row:
    """What a server takes that nobody asks, with 300 files open."""
    time.sleep(_REST_SECONDS)
    lasting, before = setting.count(_IDLE_SECONDS), ticks_of(desk.client.process.pid)
    time.sleep(lasting)
    taken = (ticks_of(desk.client.process.pid) - before) / os.sysconf("SC_CLK_TCK")
    return Row(
        what=f"processor time of an idle server in {lasting} s, while it watches",
        ours=milliseconds(taken),
        budget=f"≤ {milliseconds(_MOST_IDLE)}",
        kept=taken <= _MOST_IDLE,
    )


# -- hostile messages -------------------------------------------------------------------------------------


def measure_messages(setting: Setting) -> list[Row]:
    """Messages by chance: out of order, cancelled, malformed, lying about the disk."""
    start = time.perf_counter()
    met = lsp_messages.play(Path(setting.path("messages")), setting.count(_MESSAGES), setting.seed)
    return [
        Row(
            what=f"{met.sent:,} messages out of order, cancelled, malformed, lying about the disk",
            ours=f"{len(met.wrong)} found wrong: {'; '.join(met.wrong[:3]) or 'nothing'}",
            beside=f"{met.asked:,} questions, {met.refused:,} refused; {time.perf_counter() - start:.0f} s",
            budget="0",
            kept=not met.wrong,
        )
    ]
