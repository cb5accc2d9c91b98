"""Judges mdmem on trees of notes that other tools' users wrote: `python bench/foreign.py TREE…`.

Each tree is copied, made a repository and a vault, and checked. Linked files are removed and linked headings
renamed: `check` has to find the links that now lead nowhere by `foreign_oracle.py`, which shares no code with
mdmem. Files and folders are moved there and back. All is imported into a new vault. `--sample N` prints N
errors and warnings and N routes, with their lines, for a person to read. Ends with 1 where a byte changed, a
note was not imported, or a move broke a link.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import posixpath
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from foreign_oracle import PAGES, SETTINGS, Link, Page, Tree
from machine import environment, installed

import mdmem
from mdmem.errors import MdmemError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OURS = re.compile(r"(\.git|\.mdmem)/|\.gitignore$")
FIXED = re.compile(r"[._]|(pages|journals|assets|content|docs|blog|src|static|public|node_modules)$")
HEAD = (
    "| errors, warnings, notes | routes | files changed | links to removed files found, and told ones "
    "| links to renamed headings found, and told ones | there and back | import |"
)
HIDDEN = re.compile(r"(^|/)\.|(^|/)node_modules/")
SEVERITIES = ("error", "warning", "note")
Findings = list[dict[str, Any]]


class Lead(NamedTuple):
    """A link that leads somewhere, and where."""

    source: str
    link: Link
    target: str

    def __str__(self) -> str:
        return f"{self.source}:{self.link.lines[0]} {self.link.target}#{self.link.anchor}"


class Copy:
    """A tree in a temporary folder, as a repository and a vault."""

    def __init__(self, tree: str, folder: str) -> None:
        self.root = os.path.join(folder, "tree")
        shutil.copytree(tree, self.root, symlinks=True, ignore=shutil.ignore_patterns(".git", ".mdmem"))
        self.pages: dict[tuple[str, str], Page] = {}
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false")
        for rest in (("init", "-q"), ("add", "-A", "-f"), ("commit", "-qm", "as it came", "--no-verify")):
            run(self.root, *git, *rest)
        self.before = hashes(self.root)
        self.run("init", ".")
        name_suffixes(self.root, self.before)

    def run(self, *arguments: str) -> str:
        done = run(self.root, installed("mdmem"), *arguments)
        return done.stdout if done.returncode in {0, 1} else ""

    def check(self) -> Findings:
        found = [json.loads(line) for line in self.run("check", "--json").splitlines()]
        return [each for each in found if "severity" in each]

    def routes(self) -> Findings:
        """The addresses that are no files, and of which the site may make something."""
        lines = self.run("refs", "--state", "route", "--verbose", "--json").splitlines()
        found = [(each["target"], place) for each in map(json.loads, lines) for place in each["places"]]
        return [{"message": target, **place} for target, place in found]

    def line(self, finding: Mapping[str, Any]) -> str:
        lines = text_of(os.path.join(self.root, finding["path"])).split("\n")
        return (
            lines[finding["line"] - 1].rstrip("\r") if finding.get("line", 0) in range(1, len(lines)) else ""
        )

    def oracle(self) -> Tree:
        """Where everything leads, as the files are now."""
        paths = [*files_of(self.root)]
        read = [each for each in paths if each.endswith((*PAGES, *SETTINGS)) and "node_modules/" not in each]
        texts = {each: text_of(os.path.join(self.root, each)) for each in read}
        return Tree(paths, {path: text for path, text in texts.items() if text}, self.pages)

    def missed(self, broken: list[Lead]) -> list[Lead]:
        """Those of some broken links of which `check` says nothing."""
        said = defaultdict[str, dict[int, str]](dict)
        for found in self.check():
            if found["code"] in {"dangling-link", "citation-gone"}:
                said[found["path"]][found["line"]] = unquote(self.line(found))
        return [
            lead
            for lead in broken
            if not said[lead.source].keys() & {*range(lead.link.lines[0], lead.link.lines[1] + 1)}
            and not any((lead.link.target or lead.link.anchor) in line for line in said[lead.source].values())
        ]


def name_suffixes(root: str, paths: Iterable[str]) -> None:
    """Make memories of the pages that end in something else than `.md`."""
    suffixes = sorted({posixpath.splitext(path)[1] for path in paths} & {".mdx", ".markdown"})
    config = text_of(os.path.join(root, ".mdmem", "config.toml"))
    named = re.sub(r"^# (suffixes =) \[\]", rf"\1 {json.dumps(suffixes)}", config, flags=re.MULTILINE)
    write(root, ".mdmem/config.toml", named)


def run(folder: str, *command: str) -> subprocess.CompletedProcess[str]:
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment() | settings, capture_output=True, text=True, check=False
    )


def files_of(root: str) -> Iterator[str]:
    for parent, _, names in os.walk(root):
        for name in names:
            path = os.path.relpath(os.path.join(parent, name), root).replace(os.sep, "/")
            if not OURS.match(path):
                yield path


def digest(file: str) -> str:
    if os.path.islink(file):
        return os.readlink(file)
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def text_of(file: str) -> str:
    """The text of a file; empty where it is none."""
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError):
        return ""


def write(root: str, path: str, text: str) -> None:
    with open(os.path.join(root, path), "w", encoding="utf-8", newline="") as opened:
        opened.write(text)


def leads_of(oracle: Tree) -> list[Lead]:
    """The links from one file to another that lead somewhere."""
    found = []
    for source in oracle.sources:
        for link in oracle.page(source).links:
            target = oracle.leads(source, link)
            if target in oracle.files and target != source:
                found.append(Lead(source, link, target))
    return found


def hashes(root: str) -> dict[str, str]:
    return {path: digest(os.path.join(root, path)) for path in files_of(root)}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def remove_files(copy: Copy, most: int, chance: random.Random) -> tuple[list[Lead], list[Lead]]:
    """The links that lead nowhere without some linked files, and those of them that `check` misses."""
    leads = leads_of(copy.oracle())
    linked = sorted({lead.target for lead in leads})
    chosen = {path: str(number) for number, path in enumerate(chance.sample(linked, min(most, len(linked))))}
    with tempfile.TemporaryDirectory() as aside:
        for path, number in chosen.items():
            shutil.move(os.path.join(copy.root, path), os.path.join(aside, number))
        after = copy.oracle()
        broken = [lead for lead in leads if lead.target in chosen and lead.source not in chosen]
        broken = [lead for lead in broken if after.leads(lead.source, lead.link) is None]
        left = copy.missed(broken)
        for path, number in chosen.items():
            shutil.move(os.path.join(aside, number), os.path.join(copy.root, path))
    return broken, left


def rename_headings(copy: Copy, most: int, chance: random.Random) -> tuple[list[Lead], list[Lead]]:
    """The links that lead nowhere once some headings have other words, and those that `check` misses."""
    oracle = copy.oracle()
    leads = defaultdict[tuple[str, int], list[Lead]](list)
    for source in oracle.sources:
        for link in oracle.page(source).links:
            path, line = oracle.named(source, link)
            if path and line and re.search(r"^[^{]*\w[\s#]*$", oracle.texts[path].split("\n")[line - 1]):
                leads[path, line].append(Lead(source, link, path))
    chosen = chance.sample(sorted(leads), min(most, len(leads)))
    kept = {path: oracle.texts[path] for path, _ in chosen}
    for path, line in chosen:
        lines = text_of(os.path.join(copy.root, path)).split("\n")
        lines[line - 1] = re.sub(r"(\w)([\s#]*)$", r"\1 zq7x\2", lines[line - 1], count=1)
        write(copy.root, path, "\n".join(lines))
    after = copy.oracle()
    broken = [
        lead for place in chosen for lead in leads[place] if after.leads(lead.source, lead.link) is None
    ]
    left = copy.missed(broken)
    for path, text in kept.items():
        write(copy.root, path, text)
    return broken, left


def places(oracle: Tree, most: int, chance: random.Random) -> dict[str, str]:
    """Linked files and folders, none of them inside of another, and a new place for each."""
    targets = sorted({lead.target for lead in leads_of(oracle) if not HIDDEN.search(lead.target)})
    folders = sorted({posixpath.dirname(path) for path in targets})
    folders = [each for each in folders if each.count("/") and not FIXED.match(posixpath.basename(each))]
    chosen: dict[str, str] = {}
    first = chance.sample(folders, min(most // 3, len(folders)))
    for path in first + chance.sample(targets, len(targets)):
        above, name = posixpath.split(path)
        stem, suffix = posixpath.splitext(name) if path in oracle.files else (name, "")
        if len(chosen) == most or stem.strip("_").lower() in {"index", "readme"} or is_near(path, chosen):
            continue
        near = {posixpath.dirname(other) for other in targets if oracle.root(other) == oracle.root(path)}
        other = [each for each in folders if each in near and not is_near(each, chosen)]
        new = posixpath.join(above, f"{stem}-moved{suffix}")
        is_flat = oracle.site(path).tool in {"dendron", "logseq", "jekyll"} or path not in oracle.files
        if other and not is_flat and chance.random() < 0.5:
            new = posixpath.join(chance.choice(other), name)
        if new not in oracle.files | oracle.folders | {*chosen.values()} and not is_near(new, chosen):
            chosen[path] = new
    return chosen


def is_near(path: str, others: Iterable[str]) -> bool:
    """Whether a path is one of the others, inside of it or around it."""
    return any(f"{a}/".startswith(f"{b}/") for each in others for a, b in ((path, each), (each, path)))


def move(copy: Copy, most: int, chance: random.Random) -> dict[str, list[str]]:
    """Move files and folders there and back: what went, was refused, broke, was named as left, differs."""
    before, oracle = hashes(copy.root), copy.oracle()
    memory = mdmem.open(copy.root)
    went: dict[str, str] = {}
    refused, broken, named = [], [], list[str]()
    for old, new in places(oracle, most, chance).items():
        try:
            named += memory.mv(old, new).plan.left_out
            went[old] = new
        except MdmemError as error:
            refused.append(f"{old} → {new}: {error}".split("\n")[0])
    after = copy.oracle()
    for source in oracle.sources:
        now = placed(source, went)
        links = after.page(now).links if now in after.texts else []
        for number, link in enumerate(oracle.page(source).links):
            target = oracle.leads(source, link)
            found = after.leads(now, links[number]) if number < len(links) else None
            if target in oracle.files and found != placed(target, went):
                broken.append(f"{Lead(now, link, target)} → {found}, not {placed(target, went)}")
    for old, new in reversed(went.items()):
        memory.mv(new, old)
    differs = changed(before, hashes(copy.root))
    return {"moved": [*went], "refused": refused, "broken": broken, "left": named, "differs": differs}


def placed(path: str, went: Mapping[str, str]) -> str:
    """Where a file is now."""
    return next(
        (new + path[len(old) :] for old, new in went.items() if f"{path}/".startswith(f"{old}/")), path
    )


def import_all(tree: str, folder: str) -> dict[str, list[str]]:
    """Import a whole tree into a new vault: which notes came byte for byte, and which did not."""
    vault = os.path.join(folder, "memories")
    run(folder, installed("mdmem"), "init", vault)
    notes = [path for path in files_of(tree) if path.endswith(PAGES) and not re.search(r"(^|/)\.", path)]
    name_suffixes(vault, notes)
    done = run(vault, installed("mdmem"), "import", "obsidian", os.path.abspath(tree), "--to", "notes/tree")
    came: dict[str, list[str]] = {"imported": [], "not imported": []}
    print(done.stderr[-1000:], file=sys.stderr)
    for path in notes:
        file = os.path.join(vault, "notes/tree", path)
        is_same = os.path.exists(file) and digest(file) == digest(os.path.join(tree, path))
        came["imported" if is_same else "not imported"].append(path)
    return came


def judge(tree: str, given: argparse.Namespace) -> bool:
    """Print what mdmem makes of a tree; whether nothing was changed, left out or broken."""
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="mdmem-foreign-") as folder:
        copy, started = Copy(tree, folder), time.monotonic()
        found = copy.check()
        seconds, routes = time.monotonic() - started, copy.routes()
        by_code = sorted(Counter((each["severity"], each["code"]) for each in found).items())
        memories = copy.run("ls", "--json").count("\n")
        print(
            f"## {os.path.basename(os.path.abspath(tree))}: {memories} memories, first check {seconds:.1f} s"
        )
        print(
            *(f"{number} {code} ({severity})" for (severity, code), number in by_code), sep=", ", flush=True
        )
        unasked = changed(copy.before, hashes(copy.root))
        oracle = copy.oracle()
        gone, renamed = (each(copy, given.count, chance) for each in (remove_files, rename_headings))
        moved = move(copy, given.moves, chance)
        came = import_all(tree, folder)
        counts = [sum(each["severity"] == name for each in found) for name in SEVERITIES]
        cells: list[object] = [", ".join(map(str, counts)), len(routes), len(unasked)]
        for broken, left in (gone, renamed):
            pairs = (
                [each for each in some if oracle.tells(each.source, each.link)] for some in (broken, left)
            )
            told, silent = map(len, pairs)
            cells.append(f"{len(broken) - len(left)} of {len(broken)}, {told - silent} of {told}")
        cells += [", ".join(f"{len(paths)} {what}" for what, paths in part.items()) for part in (moved, came)]
        print(HEAD, f"| {' | '.join(map(str, cells))} |", sep="\n")
        wrong = {"changed": unasked, "not found": [*map(str, gone[1] + renamed[1])], **moved, **came}
        for what, lines in wrong.items():
            if what not in {"moved", "imported"}:
                print(
                    *(f"  {what}: {line}" for line in lines[: given.show]), sep="\n", end="\n" * bool(lines)
                )
        for some in ([each for each in found if each["severity"] != "note"], routes):
            for each in chance.sample(some, min(given.sample, len(some))):
                what = f"{each.get('severity', 'route')} {each['path']}:{each['line']}"
                at = each.get("column", 1)
                print(
                    f"{what} {each.get('message', '')}\n    | {copy.line(each)[max(0, at - 60) : at + 120]}"
                )
        sys.stdout.flush()
        return not (unasked or moved["differs"] or moved["broken"] or came["not imported"])


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge mdmem on trees of notes of other tools.")
    parser.add_argument("trees", nargs="+", metavar="TREE", help="a folder of notes, which is only read")
    parser.add_argument("--sample", type=int, default=0, help="how many findings and routes are printed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100, help="files to remove, and headings to rename")
    parser.add_argument("--moves", type=int, default=30, help="files and folders to move there and back")
    parser.add_argument("--show", type=int, default=10, help="how many of each that went wrong are printed")
    given = parser.parse_args()
    return min(1, sum(not judge(tree, given) for tree in given.trees))


if __name__ == "__main__":
    sys.exit(main())
