"""Files as other tools write them, a question about them, and its answer: `tests/data/foreign/cases`.

A file is a text, or says its bytes as `hex` or `repeat`; `../` is beside the vault. A question is words as a
shell reads them: `mdmem` and a command, whose answer is its exit code, how its output begins, what its errors
contain, and files behind it; or one of `QUESTIONS`, whose answer is a value, or the reason of a refusal.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem import read_value
from mdmem.cli.main import main
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mdmem import Memory

CASES = Path(__file__).parents[1] / "data/foreign/cases"


def content(written: str | Mapping[str, Any]) -> bytes:
    if isinstance(written, str):
        return written.encode()
    text, times = written.get("repeat", ("", 0))
    return bytes.fromhex(written.get("hex", "")) or text.encode() * times


def frontmatter_lines(text: str) -> list[str]:
    return [line.strip("`") for line in text.split("\n") if "frontmatter" in line]


def change_field(memory: Memory, path: str, key: str, value: str | None = None) -> str:
    memory.unset(path, key) if value is None else memory.set(path, {key: read_value(value)})
    return memory.show(path).text


def change_and_undo(memory: Memory, *paths: str) -> list[str]:
    for path in paths:
        change_field(memory, path, "title", "Plan")
        change_field(memory, path, "tags", '["a", "b"]')
        change_field(memory, path, "title")
        change_field(memory, path, "tags")
    return [memory.show(path).text for path in paths]


def move(memory: Memory, source: str, target: str) -> object:
    left = memory.mv(source, target).plan.left_out
    files = {found.path: memory.show(found.path).text for found in memory.ls()}
    return {**files, "left": list(left)} if left else files


def move_there_and_back(memory: Memory, source: str, target: str) -> object:
    before = len(memory.check())
    move(memory, source, target)
    assert len(memory.check()) == before
    return move(memory, target, source)


QUESTIONS: dict[str, Callable[..., object]] = {
    "backlinks": lambda memory, path: [f"{at.path}:{at.line}" for at in memory.references.backlinks(path)],
    "check": lambda memory, *paths: [f"{f.path}:{f.position.line} {f.code}" for f in memory.check(paths)],
    "context": lambda memory: frontmatter_lines(memory.context().text),
    "days": lambda memory, query: [hit.date for hit in memory.search(query).hits],
    "ls": lambda memory, where: [found.path for found in memory.ls(where=[where])],
    "mv": move,
    "return": move_there_and_back,
    "notes": lambda memory, query: list(memory.search(query).notes),
    "search": lambda memory, query: sorted(f"{hit.path}:{hit.line}" for hit in memory.search(query).hits),
    "set": change_field,
    "severity": lambda memory: [f"{f.path}:{f.position.line} {f.code} {f.severity}" for f in memory.check()],
    "status": lambda memory: frontmatter_lines("\n".join(memory.status().setup)),
    "unset": change_field,
    "undo": change_and_undo,
}


def list_cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{file.stem}: {name}")
        for file in sorted(CASES.glob("*.json"))
        for name, case in json.loads(file.read_text("utf-8")).items()
    ]


@pytest.mark.parametrize("case", list_cases())
def test_what_others_wrote_is_read_as_they_read_it(
    case: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "memories"
    mdmem.init(root)
    monkeypatch.chdir(root)
    for path, written in case["files"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content(written))
    (verb, *words), answer = shlex.split(case["question"]), case["answer"]
    if verb == "mdmem":
        code = main(["--vault", str(root), *words])
        printed, errors = capfd.readouterr()
        assert code == answer["code"], errors
        assert printed.startswith(answer["out"]) if answer["out"] else not printed
        assert answer.get("errors", "") in errors
        for path, written in answer.get("files", {}).items():
            assert (root / path).read_bytes() == content(written)
        return
    try:
        answered = QUESTIONS[verb](mdmem.open(root), *words)
    except MdmemError as error:
        answered = str(error).partition("\n")[0].partition(": ")[2]
    assert answered == answer
