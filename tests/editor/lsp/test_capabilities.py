"""What an editor asks, over the protocol: a state of files goes in, and ranges, answers or edits come out.

A case in `tests/data/lsp` has these parts:

    open PATH, file PATH   what is there: memories, or files of the workspace as `../PATH`
    outside OLD NEW        what another program renames after that
    ask QUESTION …         what is asked, by a function below
    answer                 the lines of the answer, if there are any
    after PATH             what stands in a file afterwards; `made` is the same, with a newline at its end,
                           and `fresh` a file with nothing of its state in it
    gone PATH              a file that is no more there

All other files stay as they are. `‸` is where the cursor stands, two of them what is selected, and the ranges
of the answer are marked `⟦…⟧` in the files. `§` is text that editors count in other ways than it is stored;
`¤` and `¶` are parts of it that YAML takes: as a letter, and in quotes. `␀` is NUL. Each memory has a
byte-order mark, CRLF, and no newline at its end.
"""

from __future__ import annotations

import json
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from mdmem.cli.main import main
from tests.editor.lsp.client import UTF8, UTF16, UTF32, uri
from tests.editor.lsp.editor import BOM, file_of, position_of, span_of
from tests.speed import soak_most
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.editor.lsp.conftest import Desk

DATA = Path(__file__).parents[2] / "data/lsp"
CURSOR, OPENING, CLOSING, NUL = "‸⟦⟧␀"
NEWLINE = "\r\n"
ODD = {"§": "😀é日\u2028\x0c ", "¤": "😀é日", "¶": "\u2028"}
MOMENT_NS = 50_000_000  # in which a file may be written again and have the same times
UNPLACED = {"binary"}  # on disk, it has no place
Ranges = set[tuple[str, int, int]]
Found = tuple[Ranges, list[str]]
Parts = list[tuple[str, str]]


def spell(text: str) -> str:
    for mark, odd in ODD.items():
        text = text.replace(mark, odd)
    return text.replace("\n", NEWLINE)


def spell_file(text: str) -> str:
    """What stands in a file, which has no newline at its end."""
    return spell(text.removesuffix("\n"))


def read_cases(name: str) -> Iterator[tuple[str, Parts]]:
    text = (DATA / f"{name}.md").read_text()
    for case, body in re.findall(r"^%% case ([^\n]*)\n(.*?)(?=^%% case |\Z)", text, re.MULTILINE | re.DOTALL):
        parts = re.findall(r"^%% ([^\n]*)\n(.*?)(?=^%% |\Z)", body, re.MULTILINE | re.DOTALL)
        last, content = parts[-1]
        parts[-1] = last, content.rstrip("\n") + "\n"
        yield f"{name}: {case}", parts


def every_case() -> list[Any]:
    names = sorted(file.stem for file in DATA.glob("*.md"))
    return [pytest.param(parts, id=case) for name in names for case, parts in read_cases(name)]


def unmarked(text: str) -> tuple[str, list[int], list[tuple[int, int]]]:
    """A text without its marks; where the cursor stands, and the ranges that are marked."""
    plain, cursors, starts, ranges = "", [], [], []
    for piece in re.split(f"([{CURSOR}{OPENING}{CLOSING}])", text.replace(NUL, "\0")):
        if piece == CURSOR:
            cursors.append(len(plain))
        elif piece == OPENING:
            starts.append(len(plain))
        elif piece == CLOSING:
            ranges.append((starts.pop(), len(plain)))
        else:
            plain += piece
    return plain, cursors, ranges


class Run:
    """A case at one desk."""

    def __init__(self, desk: Desk, parts: Parts) -> None:
        self.desk = desk
        self.expected: dict[str, str] = {}
        self.ranges: Ranges = set()
        self.answer: list[str] = []
        self.asked, self.cursors, self.question = "", [0], ""
        self.opened: list[str] = []
        self.outside: list[str] = []
        for head, text in parts:
            kind, _, about = head.partition(" ")
            PARTS[kind](self, about, text)
        for path in self.opened:
            desk.editor.open(desk.root / path)
        if self.outside:
            self._move_outside(*(desk.root / path for path in self.outside))

    def _move_outside(self, old: Path, new: Path) -> None:
        """Rename as another program does, what the server knows, and what was not made this moment."""
        until(lambda: time.time_ns() - old.stat().st_ctime_ns > MOMENT_NS)
        self.desk.editor.ask("documentLink", self.file)
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)

    def put(self, path: str, text: str) -> None:
        plain, cursors, ranges = unmarked(spell_file(text))
        self.desk.write(path, BOM * path.endswith(".md") + plain)
        if not path.startswith(".mdmem"):
            self.expected[path] = plain
        self.ranges |= {(path, *each) for each in ranges}
        if cursors or not self.asked:
            self.asked, self.cursors = path, cursors or [0]

    def open(self, path: str, text: str) -> None:
        self.put(path, text)
        self.opened.append(path)

    def expect(self, path: str, text: str) -> None:
        self.expected[path] = spell_file(text)

    def expect_made(self, path: str, text: str) -> None:
        self.expected[path] = spell(text)

    def expect_fresh(self, path: str, text: str) -> None:
        self.expected[path] = text

    def expect_gone(self, path: str, _: str) -> None:
        del self.expected[path]

    def expect_answer(self, _: str, text: str) -> None:
        lines = spell(text).split(NEWLINE)[:-1]
        self.answer = lines if text.strip() else []

    def take_question(self, question: str, _: str) -> None:
        self.question = question

    def take_outside(self, moved: str, _: str) -> None:
        self.outside = moved.split(" ")

    @property
    def file(self) -> Path:
        return self.desk.root / self.asked

    def path(self, given: str) -> str:
        """The path of a URI, with what stands behind it."""
        name, mark, rest = given.partition("#")
        file = file_of(name)
        if file.is_relative_to(self.desk.root):
            return f"{file.relative_to(self.desk.root)}{mark}{rest}"
        return f"../{file.relative_to(self.desk.folder)}{mark}{rest}"

    def ask(self, name: str, **more: Any) -> Any:
        return self.desk.editor.ask(name, self.file, self.cursors[0], **more)

    def span(self, path: str, given: Any) -> tuple[int, int]:
        return span_of(self.desk.read(path), given, self.desk.editor.encoding)

    def spans(self, places: list[tuple[str, Any]]) -> Ranges:
        """Ranges by their paths; none of what is a whole file."""
        found = {(path, *self.span(path, each)) for path, each in places}
        return {each for each in found if each[1:] != (0, 0)}

    def own(self, *ranges: Any) -> Ranges:
        return {(self.asked, *self.span(self.asked, each)) for each in ranges}

    def selection(self) -> dict[str, Any]:
        text, encoding = self.desk.editor.text(self.file), self.desk.editor.encoding
        start, end = (position_of(text, each, encoding) for each in (self.cursors[0], self.cursors[-1]))
        return {"start": start, "end": end}

    def files(self) -> dict[str, str]:
        kept = {".gitignore", ".mdmem"}
        places = [*self.desk.root.rglob("*.*"), *(self.desk.folder / "src").rglob("*.*")]
        files = [place for place in places if place.is_file() and not kept.intersection(place.parts)]
        found = {self.path(uri(file)): file for file in files}
        return {path: self.desk.editor.text(file) for path, file in found.items()}


def definition(run: Run) -> Found:
    goals = run.ask("definition")
    for goal in goals:
        text, encoding = run.desk.editor.text(file_of(goal["targetUri"])), run.desk.editor.encoding
        whole, chosen = (
            span_of(text, goal[f"target{each}"], encoding) for each in ("Range", "SelectionRange")
        )
        assert whole[0] <= chosen[0] <= chosen[1] <= whole[1]
        origin = run.span(run.asked, goal["originSelectionRange"])
        assert origin[0] <= run.cursors[0] <= origin[1]
    places = [(run.path(goal["targetUri"]), goal["targetSelectionRange"]) for goal in goals]
    return run.spans(places), [path for path, _ in places]


def references(run: Run) -> Found:
    found = run.ask("references", context={"includeDeclaration": True})
    return run.spans([(run.path(each["uri"]), each["range"]) for each in found]), []


def hover(run: Run) -> Found:
    found = run.ask("hover")
    if found is None:
        return set(), ["nothing"]
    text = found["contents"]["value"]
    assert found["contents"]["kind"] == "markdown"
    tokens = MarkdownIt().parse(text)
    kinds = {each.type for token in tokens for each in (token, *(token.children or ()))}
    assert kinds.isdisjoint({"image", "link_open", "html_block", "html_inline"})
    return run.own(found["range"]), text.split("\n")


def links(run: Run) -> Found:
    found = run.desk.editor.ask("documentLink", run.file)
    return run.own(*(each["range"] for each in found)), [run.path(each["target"]) for each in found]


def outline(run: Run) -> Found:
    found = run.desk.editor.ask("documentSymbol", run.file)
    names, ranges, waiting = [], [], [(each, 0) for each in reversed(found)]
    while waiting:
        item, depth = waiting.pop()
        (start, end), title = (run.span(run.asked, item[each]) for each in ("range", "selectionRange"))
        assert start <= title[0] <= title[1] <= end
        names.append(f"{'  ' * depth}{item['name']}")
        ranges.append(item["selectionRange"])
        waiting += [(each, depth + 1) for each in reversed(item["children"])]
    return run.own(*ranges), names


def symbols(run: Run, query: str) -> Found:
    found = run.desk.client.request("workspace/symbol", {"query": query})
    places = [(run.path(each["location"]["uri"]), each["location"]["range"]) for each in found]
    return run.spans(places), [f"{each['name']} in {each['containerName']}" for each in found]


def findings(run: Run) -> Found:
    told = run.desk.client.codes(run.file, [line.partition(":")[0] for line in run.answer])
    lines = []
    for each in sorted(told, key=lambda each: (run.span(run.asked, each["range"]), each["code"])):
        related = [run.path(place["location"]["uri"]) for place in each.get("relatedInformation", ())]
        lines.append(": ".join((each["code"], ", ".join(related))) if related else each["code"])
    return run.own(*(each["range"] for each in told)), lines


def prepare(run: Run) -> Found:
    found = run.ask("prepareRename")
    return (run.own(found["range"]), [found["placeholder"]]) if found else (set(), ["nothing"])


def rename(run: Run, *new: str) -> Found:
    before = len(run.desk.editor.refused)
    edit = run.desk.editor.try_to("rename", run.file, run.cursors[0], newName=" ".join(new))
    if edit is None:
        (reason,) = run.desk.editor.refused[before:]
        return set(), reason.split("\n")
    assert run.desk.editor.apply(edit)
    return set(), []


def move(run: Run, *places: str) -> Found:
    """Rename as a file explorer does, and say what is shown of links that cannot follow."""
    files = [run.desk.root / place for place in places]
    run.desk.editor.move(*list(pairwise(files))[::2])
    return set(), [each["message"].split("\n")[0] for each in run.desk.client.told["window/showMessage"]]


def complete(run: Run, *chosen: str) -> Found:
    """List what is offered, with what there is to say of it; or choose one."""
    found = run.ask("completion")
    items = sorted(found["items"], key=lambda item: item["sortText"]) if found else []
    labels = [item["label"] for item in items]
    if not chosen:
        told = (item.get("documentation", {}).get("value", "") for item in items)
        return set(), [
            f"{label}: {about}" if about else label for label, about in zip(labels, told, strict=True)
        ]
    item = items[labels.index(" ".join(chosen))]
    start, end = run.span(run.asked, item["textEdit"]["range"])
    assert start <= run.cursors[0] <= end
    edits = [item["textEdit"], *item.get("additionalTextEdits", ())]
    edits.sort(key=lambda edit: (edit["range"]["start"]["line"], edit["range"]["start"]["character"]))
    named = {"uri": uri(run.file), "version": 1}
    assert run.desk.editor.apply({"documentChanges": [{"textDocument": named, "edits": edits}]})
    if command := item.get("command"):
        applied: list[bool] = []
        run.desk.client.handlers["workspace/applyEdit"] = lambda params: applied.append(
            run.desk.editor.apply(params["edit"])
        )
        given = {"command": command["command"], "arguments": command["arguments"]}
        run.desk.client.request("workspace/executeCommand", given)
        run.desk.client.wait(lambda: applied)
        assert applied == [True]
    return set(), []


def fix(run: Run, *title: str) -> Found:
    """List what can be done, or do it."""
    told = run.desk.client.found(run.file, 1) if run.opened else []
    context = {"diagnostics": told}
    found = run.desk.editor.ask("codeAction", run.file, range=run.selection(), context=context)
    titles = [each["title"] for each in found]
    if not title:
        return set(), titles
    assert run.desk.editor.apply(found[titles.index(" ".join(title))]["edit"])
    return set(), []


PARTS: dict[str, Callable[[Run, str, str], None]] = {
    "open": Run.open,
    "file": Run.put,
    "after": Run.expect,
    "made": Run.expect_made,
    "fresh": Run.expect_fresh,
    "gone": Run.expect_gone,
    "answer": Run.expect_answer,
    "ask": Run.take_question,
    "outside": Run.take_outside,
}
QUESTIONS: dict[str, Callable[..., Found]] = {
    each.__name__: each
    for each in (
        *(definition, references, hover, links, outline, symbols, findings, prepare, rename, move, complete),
        fix,
    )
}


ENCODINGS = soak_most([UTF8, UTF16, UTF32], quick=(1,))


@pytest.mark.parametrize("encoding", ENCODINGS)
@cases("parts", every_case())
def test_it_answers(desks: dict[str, Desk], parts: Parts, encoding: str) -> None:
    desk = desks[encoding]
    desk.clear()
    run = Run(desk, parts)
    name, *arguments = run.question.split(" ")
    ranges, answer = QUESTIONS[name](run, *arguments)
    assert (ranges, answer) == (run.ranges, run.answer)
    assert run.files() == run.expected


def checked(desk: Desk, printed: str) -> dict[str, list[tuple[int, int, str]]]:
    """What the command line says is wrong with each memory, in offsets of an editor, which hides a mark."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    for line in printed.splitlines():
        each = json.loads(line)
        shift = (desk.root / each["path"]).read_text("utf-8").startswith(BOM)
        place = (0, 0) if each["code"] in UNPLACED else (each["start"] - shift, each["end"] - shift)
        found.setdefault(each["path"], []).append((*place, each["code"]))
    return {path: sorted(places) for path, places in found.items()}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_findings_of_saved_files_are_those_of_check(
    desks: dict[str, Desk],
    encoding: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk = desks[encoding]
    desk.clear()
    runs = [
        Run(desk, parts)
        for _, parts in read_cases("findings")
        if "file .mdmem/config.toml" not in dict(parts)
    ]
    paths = [path for run in runs for path in run.expected if path.endswith(".md")]
    assert len(paths) == len(set(paths))  # a file of one case is none of another
    monkeypatch.chdir(desk.folder)
    main(["check", "--json"])
    expected = checked(desk, capsys.readouterr().out)
    assert len({code for found in expected.values() for *_, code in found}) > len(runs) // 2
    for path in paths:
        file = desk.root / path
        if file not in desk.editor.buffers:
            desk.editor.open(file)
        told = desk.client.codes(file, [code for *_, code in expected.get(path, ())])
        found = [
            (*((0, 0) if each["code"] in UNPLACED else runs[0].span(path, each["range"])), each["code"])
            for each in told
        ]
        assert sorted(found) == expected.get(path, [])
