"""Changes fields of notes that others wrote, and brings in violations: `bench/foreign_fields.py TREE…`.

Of each shape of frontmatter in the trees, at most `--count` of them, a new field and one that is there are
set and unset: every other byte has to stay, by an oracle that knows lines and no YAML. Then each verb meets
a violation that was there, a new one, another wrong value and another field, among guests and in a vault of
its own: what brings a violation in has to be refused, and all else to go through.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from foreign import files_of, text_of, write
from foreign_oracle import PAGES

import mdmem
from mdmem.errors import MdmemError

FRONT = re.compile(
    r"\A(\ufeff?)(---|\+\+\+)[ \t]*\r?\n(.*?)^(---|\+\+\+|\.\.\.)[ \t]*\r?$", re.DOTALL | re.MULTILINE
)
KEY = re.compile(r"""^("[^"]+"|'[^']+'|[\w$-][^:#\n]*?)[ \t]*:(?=[ \t\r\n]|$)(.*)""")
# What breaks the schema of a memory, and another value that does.
WRONG = {
    "created": ("1640014781866x", "yesterday-ish"),
    "tags": ("{a: 1}", "{b: 2}"),
    "aliases": ("[[a, b]]", "[[c]]"),
    "confidence": ("[1]", "[2]"),
    "valid_from": ("[soon]", "[later]"),
}


def fields_of(text: str) -> dict[str, tuple[int, int]]:
    """The lines of each field of a frontmatter, from and to."""
    front, key = FRONT.match(text), ""
    found: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(front[3].split("\n")[:-1] if front else (), 1):
        if named := KEY.match(line):
            key = named[1].strip("\"'")
            found[key] = (number, number + 1)
        elif key and (line[:1] in " \t-]}" or not line.strip("\r")):
            found[key] = (found[key][0], number + 1)
        else:
            key = ""
    return found


def shape(text: str) -> str:
    """A frontmatter without its words, which tells shapes apart."""
    front = FRONT.match(text)
    return front[2] + re.sub(r"[^\W\d_]+|\d+", "a", front[3]) if front else "none"


def without_empty(text: str) -> str:
    """A text without empty frontmatter: `unset` leaves it where a field was set in a note that had none."""
    return re.sub(r"\A(\ufeff?)---\r?\n---\r?\n(\r?\n)?", r"\1", text)


def try_fields(memory: mdmem.Memory, path: str, chance: random.Random) -> list[str]:
    """What went wrong when fields of a note were set and unset; a refusal begins with "refused"."""
    file = os.path.join(memory.root, path)
    before, said = text_of(file), []
    lines = before.split("\n")
    try:
        memory.set(path, {"kind_of_it": "it's"})
        after = text_of(file).split("\n")
        added = [line for line in after if "kind_of_it" in line]
        rest = [line for line in after if line not in added]
        if len(added) != 1 or without_empty("\n".join(rest)) not in (without_empty(before), before.lstrip()):
            said.append("set of a new field changed other lines")
        memory.unset(path, "kind_of_it")
        if without_empty(text_of(file)) not in (without_empty(before), before.lstrip()):
            said.append("unset of a new field left other bytes")
        write(memory.root, path, before)
        fields = fields_of(before)
        if not fields:
            return said
        key, (first, last) = chance.choice(sorted(fields.items()))
        memory.set(path, {key: "2024-01-31"})
        after = text_of(file).split("\n")
        while (
            last > first + 1 and not lines[last - 1].strip()
        ):  # blank lines behind a field are no part of it
            last -= 1
        if after[:first] != lines[:first] or after[last - len(lines) :] != lines[last:]:
            said.append(f"set of {key} changed other lines")
        write(memory.root, path, before)
        memory.unset(path, key)
        if "".join(text_of(file).split()) not in (
            "".join("\n".join(lines[:first] + lines[last:]).split()),
            "".join(re.sub(FRONT, "", before).split()),
        ):
            said.append(f"unset of {key} changed other lines")
    except MdmemError as error:
        said.append(f"refused: {error}".split("\n")[0][:160])
    write(memory.root, path, before)
    return said


def verbs(
    memory: mdmem.Memory, field: str, wrong: str, other: str
) -> dict[str, tuple[bool, Callable[[], object]]]:
    """What is done with a note that has a wrong value, and whether it has to go through."""
    bad, clean = f"---\n{field}: {wrong}\nkind: a\n---\nText.\n", "---\nkind: a\n---\nText.\n"
    changed = f"---\n{field}: {other}\nkind: a\n---\nText.\n"
    value = {"{a: 1}": {"a": 1}, "{b: 2}": {"b": 2}}.get(other, [["c"]] if other[0] == "[" else other)

    def with_text(text: str, do: Callable[[], object]) -> Callable[[], object]:
        def act() -> object:
            write(memory.root, "n/a.md", text)
            return do()

        return act

    return {
        "there: append": (True, with_text(bad, lambda: memory.append("n/a.md", "More."))),
        "there: mv": (True, with_text(bad, lambda: memory.mv("n/a.md", "n/b.md"))),
        "there: replace": (True, with_text(bad, lambda: memory.replace("n/a.md", "Text", "Words"))),
        "there: set of another field": (True, with_text(bad, lambda: memory.set("n/a.md", {"kind": "b"}))),
        "there: write": (
            True,
            with_text(bad, lambda: memory.write("n/a.md", f"{bad}More.\n", overwrite=True)),
        ),
        "there: unset": (True, with_text(bad, lambda: memory.unset("n/a.md", field))),
        "new: set": (False, with_text(clean, lambda: memory.set("n/a.md", {field: value}))),
        "new: write": (False, with_text(clean, lambda: memory.write("n/a.md", bad, overwrite=True))),
        "new: write of a new note": (False, lambda: memory.write("n/c.md", bad)),
        "new: replace": (
            False,
            with_text(clean, lambda: memory.replace("n/a.md", "kind: a", f"{field}: {wrong}")),
        ),
        "another value: set": (False, with_text(bad, lambda: memory.set("n/a.md", {field: value}))),
        "another value: write": (
            False,
            with_text(bad, lambda: memory.write("n/a.md", changed, overwrite=True)),
        ),
        "another value: replace": (False, with_text(bad, lambda: memory.replace("n/a.md", wrong, other))),
        "another field: set": (
            False,
            with_text(bad, lambda: memory.set("n/a.md", {"title": ["a", ["b"]], "kind": "c"})),
        ),
    }


def try_verbs(*, is_guest: bool) -> Counter[str]:
    """How often each verb did what it has to, and what it did otherwise."""
    found = Counter[str]()
    for field, (wrong, other) in WRONG.items():
        with tempfile.TemporaryDirectory() as folder:
            if is_guest:
                write(folder, "start.md", "A note.\n")
            os.mkdir(os.path.join(folder, "n"))
            memory = mdmem.open(mdmem.init(Path(folder)).root)
            for name, (is_allowed, act) in verbs(memory, field, wrong, other).items():
                for file in os.listdir(os.path.join(folder, "n")):
                    os.remove(os.path.join(folder, "n", file))
                try:
                    act()
                    did = True
                except MdmemError:
                    did = False
                found[
                    "as said" if did == is_allowed else f"{name}: {field}: {'done' if did else 'refused'}"
                ] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Change fields of foreign notes, and bring violations in.")
    parser.add_argument("trees", nargs="+", metavar="TREE")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    texts: dict[str, str] = {}
    for tree in given.trees:
        paths = sorted(path for path in files_of(tree) if path.endswith(PAGES))
        for text in (text_of(os.path.join(tree, path)) for path in chance.sample(paths, len(paths))):
            texts.setdefault(shape(text), text)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        chosen = chance.sample([*texts.values()], min(given.count, len(texts)))
        for number, text in enumerate(chosen):
            write(folder, f"{number}.md", text)
        memory, counts = mdmem.open(mdmem.init(Path(folder)).root), Counter[str]()
        for number, text in enumerate(chosen):
            said = try_fields(memory, f"{number}.md", chance)
            kinds = {"refused" if each.startswith("refused") else "wrong" for each in said}
            counts["wrong" if "wrong" in kinds else "refused" if kinds else "right"] += 1
            if said:
                print(*said, repr(text[:300]), sep="\n  ")
        print(f"{len(chosen)} of {len(texts)} shapes: {dict(counts)}")
        wrong += counts["wrong"]
    for is_guest in (True, False):
        found = try_verbs(is_guest=is_guest)
        print("guests:" if is_guest else "the vault's own:", dict(found))
        wrong += found.total() - found["as said"]
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
