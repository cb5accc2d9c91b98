"""Merges concurrent edits of notes and judges the results: `bench/merging.py FOLDER… --pairs N --seed S`.

The notes are the project's own and the Markdown files below the folders, of which nothing is changed. Ends
with 1 when a merge lost, doubled or misplaced a line. With `--against COMMIT`, the merge of that commit is
measured beside it.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from merge_edits import pairs, prepared
from merge_oracle import Pair, Verdict, Version, demands, judge, missing

ROOT = Path(__file__).parent.parent


class Result(NamedTuple):
    """A text, with markers where it is not clean."""

    text: str
    is_clean: bool


Merge = Callable[[str, str, str], Result]


def serve() -> None:
    """Answer each line of three texts, as JSON, with what the mdmem on the path merges them to."""
    try:
        merge = importlib.import_module("mdmem.document.merging.merge").merge
    except ImportError:  # older commits, for --against
        merge = importlib.import_module("mdmem.document.text.merge").merge
    from mdmem.document.document import parse_text  # noqa: PLC0415
    from mdmem.document.merging.conflict import Markers  # noqa: PLC0415

    for line in sys.stdin:
        merged = merge(*(parse_text("note.md", text) for text in json.loads(line)), markers=Markers())
        print(json.dumps([merged.text or "", not merged.conflicts]), flush=True)


@contextmanager
def mdmem(path: str) -> Iterator[Merge]:
    """The merge of the mdmem in a folder."""
    environ = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, env=environ, stdin=-1, stdout=-1, text=True, encoding="utf-8") as process:

        def merge(*texts: str) -> Result:
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps(texts) + "\n")
            process.stdin.flush()
            return Result(*json.loads(process.stdout.readline()))

        yield merge
        process.stdin.close()  # type: ignore[union-attr]


@contextmanager
def at_commit(commit: str) -> Iterator[Merge]:
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "-C", ROOT, "archive", commit, "mdmem"], stdout=-1, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        with mdmem(folder) as merge:
            yield merge


def by_lines(base: str, ours: str, theirs: str) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for file, text in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(text.encode())
        done = subprocess.run(["git", "merge-file", "-p", *files], stdout=-1, check=False)
        return Result(done.stdout.decode(), done.returncode == 0)


def between_markers(text: str) -> int:
    lines, inside = 0, False
    for line in text.splitlines():
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            inside = line.startswith("<")
        elif inside and line != "=======":
            lines += 1
    return lines


def counted(
    pair: Pair, result: Result, must: list[str], may: list[str], counts: Counter[str]
) -> Verdict | None:
    """Count what became of a pair; the verdict on what is wrong."""
    if not result.is_clean:
        counts["conflict"] += 1
        counts["not demanded"] += not must and not may
        counts["between markers"] += between_markers(result.text)
        lost = missing(pair, result.text) if result.text else []
        counts["lost"] += len(lost)
        needless = [] if must or may else ["conflict that is not demanded"]
        return Verdict(lost, [], needless) if lost or needless else None
    verdict = judge(pair, result.text)
    counts["lost"] += len(verdict.lost)
    counts["doubled"] += len(verdict.doubled)
    is_right = not any(verdict)
    counts["right" if is_right else "wrong"] += 1
    return None if is_right else verdict


def keep(folder: Path, name: str, number: int, pair: Pair, result: Result, verdict: Verdict) -> None:
    """Write one that is wrong, for a person: what is wrong, and what each side did, as diffs."""
    file = folder / f"{name}-{len(pair.base.lines):03}-{number}.txt"
    parts = [
        f"{pair.name}: {', '.join(pair.edits)}",
        *(f"{k}: {v}" for k, v in verdict._asdict().items() if v),
    ]
    texts = {
        "base": pair.base.text,
        "ours": pair.ours.text,
        "theirs": pair.theirs.text,
        "merged": result.text,
    }
    for side, text in texts.items():
        (folder / f"{file.stem}.{side}.md").write_text(text)
        lines = difflib.unified_diff(
            pair.base.text.splitlines(), text.splitlines(), "base", side, n=4, lineterm=""
        )
        parts.append("\n".join(lines))
    file.write_text("\n\n".join(parts))


def notes(folders: list[str]) -> list[tuple[str, Version]]:
    own = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "*.md"], stdout=-1, text=True, check=True
    ).stdout.split("\n")
    files = [ROOT / name for name in own if name and not name.startswith("tests/")]
    for folder in folders:
        files += sorted(Path(folder).rglob("*.md"))
    found = []
    for file in files:
        try:
            note = prepared(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        if note:
            found.append((str(file), note))
    return found


COLUMNS = ("right", "conflict", "wrong", "lost", "doubled", "not demanded", "between markers")


def measure(given: argparse.Namespace, found: list[tuple[str, Version]], label: str) -> bool:
    """Print the table of one set of pairs; whether no text of mdmem is wrong."""
    chance = random.Random(f"{given.seed} {label}")
    demanded = 0
    with ExitStack() as stack:
        merges: dict[str, Merge] = {"git merge-file": by_lines}
        if given.against:
            merges[given.against] = stack.enter_context(at_commit(given.against))
        merges["mdmem"] = stack.enter_context(mdmem(str(ROOT)))
        counts = {name: Counter[str]() for name in merges}
        for number, pair in enumerate(islice(pairs(found, chance, close=label == "close"), given.pairs)):
            must, may = demands(pair)
            demanded += bool(must)
            for name, merge in merges.items():
                result = merge(pair.base.text, pair.ours.text, pair.theirs.text)
                verdict = counted(pair, result, must, may, counts[name])
                if verdict and given.keep:
                    what = "wrong" if result.is_clean or verdict.lost else "needless"
                    keep(Path(given.keep), f"{name.split()[0]}-{what}-{label}", number, pair, result, verdict)
    print(f"{given.pairs} pairs, {label}, {len(found)} notes, seed {given.seed}; {demanded} must conflict\n")
    print(f"| merge | {' | '.join(COLUMNS)} |\n| --- |{' ---: |' * len(COLUMNS)}")
    for name, each in counts.items():
        print(f"| {name} | {' | '.join(str(each[column]) for column in COLUMNS)} |")
    print(flush=True)
    return not any(counts["mdmem"][column] for column in ("wrong", "lost", "doubled"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge merges of concurrent edits.")
    parser.add_argument("folders", nargs="*", help="folders of Markdown, beside the project's own")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spread", action="store_true", help="only edits spread out")
    parser.add_argument("--close", action="store_true", help="only edits close together")
    parser.add_argument("--against", help="a commit whose merge stands beside it")
    parser.add_argument("--keep", help="the folder for what is wrong")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return 0
    if given.keep:
        os.makedirs(given.keep, exist_ok=True)
    labels = [label for label in ("spread", "close") if getattr(given, label) or given.spread == given.close]
    found = notes(given.folders)
    return 0 if all([measure(given, found, label) for label in labels]) else 1  # noqa: C419 - print all


if __name__ == "__main__":
    sys.exit(main())
