"""What links lead to, for many at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import mdmem
from mdmem.index.links.references import LINKS, LinkJudge, check_links, find_repairs, occurrences
from mdmem.index.view import Anchors, LoadedNames, View

if TYPE_CHECKING:
    from pathlib import Path


class Counted(LoadedNames):
    """Names that count how often each is asked for."""

    def __init__(self, view: View) -> None:
        super().__init__(view.part_rows("names", "x.kind, x.key, d.path", "ORDER BY d.path"), view)
        self.asked = Counter[tuple[str, str]]()

    def named(self, kind: str, key: str) -> Sequence[str]:
        self.asked[kind, key] += 1
        return super().named(kind, key)

    def anchors(self, path: str) -> Anchors:
        self.asked["anchors", path] += 1
        return super().anchors(path)


def test_a_name_is_looked_up_once_for_a_folder_and_an_anchor_once_for_a_memory(tmp_path: Path) -> None:
    """However many links say it, and however often they are asked about."""
    mdmem.init(tmp_path / "memories")
    memory = mdmem.open(tmp_path / "memories")
    paths = [f"notes/{folder}/{name}.md" for folder in "abc" for name in ("db", "one", "two")]
    for path in paths:
        memory.write(path, "# Why\n\n" + "See [[db#Why]], [[db|the base]] and [[db#Nowhere]].\n" * 5)
    memory.sync()
    view = View(memory.index, memory.vault)
    names = Counted(view)
    judge = LinkJudge(view, names)
    states = Counter(each.place.state for each in occurrences(view, types=LINKS, links=judge))
    assert states == {"ambiguous": 90, "dangling": 45}
    repairs = find_repairs(view, names)
    found = [each for path in paths for each in check_links(view, view.read(path), repairs, judge)]
    assert Counter(each.code for each in found) == {"ambiguous-link": 90, "dangling-link": 45}
    assert names.asked["stem", "db"] == len("abc")
    assert [names.asked["anchors", f"notes/{folder}/db.md"] for folder in "abc"] == [1, 1, 1]
