"""Three-way merge of documents: what two sides made of one base, as one text or as conflicts.

Frontmatter and JSON are merged by key, from the source text of each side, so comments and quoting stay. A
body is merged as a tree; what cannot be read as one, by lines. What both sides added at one place is kept
from both, theirs first. What both began with stands once, and the same item of a list: the same change
often arrives twice (a retried write, a cherry-picked commit). Whoever means a second equal line must append
again to what is there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mdmem.document import frontmatter
from mdmem.document.relink import MOST_COMPARED
from mdmem.document.synced_block import with_one_block
from mdmem.document.tree import same
from mdmem.errors import DocumentRefused
from mdmem.merging.conflict import ConflictKind, Conflicts, Markers, MergeConflict, value_conflict
from mdmem.merging.joining import SIDES, join_trees
from mdmem.merging.merge_fields import MergedFields, merge_fields, merged_json
from mdmem.merging.tree import read_tree
from mdmem.merging.writing import Writer, is_in_limits, join_pieces, merge_lines
from mdmem.text.diff import Versions, complete
from mdmem.text.lines import LINE_END, whole_lines
from mdmem.text.regex import regex

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence, Set as AbstractSet

    from mdmem.document.document import Document
    from mdmem.document.frontmatter import Frontmatter
    from mdmem.merging.tree import Tree, TreeNode
    from mdmem.merging.writing import Written

__all__ = ["Markers", "MergeConflict", "Merged", "merge"]

_FINAL_LINE_END = regex(r"(?:\r\n|\n|\r)\Z")
# What may stand behind any line, and never continues what another inserted there.
_BEGINS_BLOCK = regex(r"[ \t]*(?:[\r\n]|\Z)|#{1,6}[ \t]|[-+*][ \t]|[0-9]{1,9}[.)][ \t]")
_NOTHING = regex(r"(?!)")
_LONGEST = 60  # characters of a line in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to.

    Attributes:
        text: None when there are conflicts; with markers, only where they cannot be marked in the text.
        conflicts: the places that both sides changed.
    """

    text: str | None
    conflicts: tuple[MergeConflict, ...] = ()


def merge(base: Document, ours: Document, theirs: Document, *, markers: Markers | None = None) -> Merged:
    """Merge what `ours` and `theirs` made of `base`, all three versions of one memory.

    Versions larger than `MOST_COMPARED`, and those with too many parts, are merged by lines. Of two blocks
    that `project sync` wrote, that of theirs stays, until it is run again.

    Args:
        base, ours, theirs: the versions.
        markers: how to mark conflicts in the text; without them, a text with conflicts is none.
    """
    versions = Versions(base, ours, theirs)
    texts = versions.map(lambda document: document.text)
    if (synced := with_one_block(texts)) != texts:
        versions, texts = versions.paired(synced, _with_text), synced
    whole = texts.agreed()
    return Merged(text=whole[0]) if whole else merge_parts(versions, markers)


def merge_parts(versions: Versions[Document], markers: Markers | None = None) -> Merged:
    """Merge three versions by their parts, also where one side changed nothing; as `merge`."""
    conflicts = Conflicts(markers)
    text = merged_json(versions, conflicts)
    if text is None and not conflicts:
        text = _merged_markdown(versions, conflicts)
    elif conflicts:
        text = None
    return Merged(text=text, conflicts=tuple(conflicts.found))


def _merged_markdown(versions: Versions[Document], conflicts: Conflicts) -> str | None:
    ended = versions.map(lambda document: _ends_line(document.text)).agreed()
    versions = _terminate_lines(versions)
    sound = complete(versions.map(_sound_frontmatter))
    fields = _merged_frontmatter(versions, sound, conflicts) if sound else None
    is_large = any(len(document.text) > MOST_COMPARED for document in versions)
    trees = complete(versions.map(_read_tree)) if fields and not is_large else None
    reason = ""
    kind: ConflictKind = "lines"
    if fields and trees:
        reason, body = _merged_body(versions, trees, conflicts)
        text = fields.text + body
    else:
        text = _merged_lines(versions, conflicts, _BEGINS_BLOCK if fields else _NOTHING)
    if not conflicts and sound and not reason:
        is_read = _reads_as(versions.theirs, fields, text[len(fields.text) :]) if fields else None
        if not (is_read or (is_read is None and _sound_frontmatter(_with_text(versions.theirs, text)))):
            reason, kind = "has frontmatter that neither side wrote", "field" if fields else "lines"
    if reason:
        whole = versions.map(lambda document: document.text)
        conflicts.take(value_conflict(kind, (), versions.theirs, whole, reason), "\n")
        return None
    if conflicts:
        # Behind a byte-order mark, a marker would be none.
        can_mark = conflicts.markers and not text.startswith(frontmatter.BOM + "<" * conflicts.markers.size)
        return text if can_mark else None
    return _FINAL_LINE_END.sub("", text) if ended == (False,) else text


def _merged_frontmatter(
    versions: Versions[Document], fronts: Versions[Frontmatter], conflicts: Conflicts
) -> MergedFields | None:
    """Return the frontmatter; from the lines of ours where those of theirs do not read as they must."""
    swapped = Versions(versions.base, versions.theirs, versions.ours)
    found = merge_fields(versions, fronts, conflicts)
    if not found or conflicts or _reads_as(versions.theirs, found):
        return found
    other = merge_fields(swapped, Versions(fronts.base, fronts.theirs, fronts.ours), Conflicts())
    return other if other and _reads_as(versions.theirs, other) else found


def _reads_as(document: Document, fields: MergedFields, body: str = "") -> bool:
    """Return whether merged fields, in front of a body, read as their value."""
    found = _sound_frontmatter(_with_text(document, fields.text + body))
    return found is not None and found.span.end == len(fields.text) and same(found.values, fields.value)


def _merged_body(
    versions: Versions[Document], trees: Versions[Tree], conflicts: Conflicts
) -> tuple[str, str]:
    """Return the body, behind what is wrong with it.

    Of what both sides added at one place, one may be read aright only in front of the other: where theirs
    cannot stand first, ours does.
    """
    front = versions.theirs.text[: versions.theirs.body_span.start]
    wrong = []
    for last in SIDES:
        joined = join_trees(trees, last)
        if not joined.is_whole:
            return "cannot be cut into smaller conflicts", ""
        writer = Writer(versions, trees, joined, last)
        found = Conflicts(conflicts.markers)
        body = writer.write(found)
        result = None if found else _read_tree(_with_text(versions.theirs, front + body))
        reason = f"puts the section {writer.misplaced!r} below another" if writer.misplaced else ""
        if not found and not reason:
            reason = _find_wrong(trees, result, writer.written, writer.composed)
        if not reason:
            conflicts.found += found.found
            return "", body
        wrong.append((reason, body))
    return wrong[0]


def _read_tree(document: Document) -> Tree | None:
    try:
        return read_tree(document)
    except DocumentRefused:
        return None


def _ends_line(text: str) -> bool:
    return not text or text.endswith(("\n", "\r"))


def _with_text(document: Document, text: str) -> Document:
    return replace(document, text=text, data=text.encode())


def _terminate_lines(versions: Versions[Document]) -> Versions[Document]:
    """Give the documents a final line end, so that an appended line does not change the last."""
    newlines = versions.map(lambda document: document.lines.newline if LINE_END.search(document.text) else "")
    known = newlines.base or min(filter(None, newlines), default="\n")

    def terminated(document: Document, newline: str) -> Document:
        text = document.text
        return document if _ends_line(text) else _with_text(document, text + (newline or known))

    return versions.paired(newlines, terminated)


def _sound_frontmatter(document: Document) -> Frontmatter | None:
    """Return the frontmatter, which may be absent; None when something is wrong with it."""
    try:
        found = document.frontmatter
    except DocumentRefused:
        return None
    return None if found.flaws else found


# -------------------------------------------------------------------------------------------------- check


def _find_wrong(
    trees: Versions[Tree], result: Tree | None, written: Sequence[Written], composed: AbstractSet[str]
) -> str:
    """Return why a clean merge is not to be trusted, in words that follow "it".

    Empty where nothing is wrong.
    """
    if result is None:
        return "has more parts than a memory may have"
    found = list(_list_outline(result.root, -1, iter(range(len(result.nodes)))))
    for node, wanted in zip(found, written, strict=False):
        kind, words, parent, text = node
        if (kind, parent) != (wanted.kind, wanted.parent) or wanted.words not in (None, words):
            return f"reads {text.strip()[:_LONGEST]!r} as something else than either side"
    if len(found) != len(written):
        return "has other parts than both sides together"
    after = _count_lines(result)
    counts = trees.map(_count_lines)
    for line in counts.base | counts.ours | counts.theirs:
        if line not in composed and not is_in_limits(line, counts, after):
            return f"has {line[:_LONGEST]!r} more often or less often than both sides together"
    for name in ("id", "label"):
        names = [Counter(getattr(node, name) for node in tree.nodes) for tree in (*trees, result)]
        for each, count in names[-1].items():
            if each and count > max(1, *(known[each] for known in names[:-1])):
                return f"has {each!r} twice"
    return ""


def _list_outline(node: TreeNode, parent: int, numbers: Iterator[int]) -> Iterator[tuple[str, str, int, str]]:
    own = next(numbers)
    yield node.kind, node.words, parent, node.head
    for child in node.children:
        yield from _list_outline(child, own, numbers)


def _count_lines(tree: Tree) -> Counter[str]:
    return Counter(
        line for node in tree.nodes for each in whole_lines(node.head) if (line := each.strip(" \t\r\n"))
    )


# -------------------------------------------------------------------------------------------------- lines


def _merged_lines(versions: Versions[Document], conflicts: Conflicts, joins: re.Pattern[str]) -> str:
    """Return the versions merged by lines: what cannot be read, or has too many parts."""
    lines = versions.map(lambda document: whole_lines(document.text))
    result = []
    for text, places in merge_lines(lines, may_join=lambda text: joins.match(text) is not None):
        if places is None:
            result.append(text)
            continue
        base, ours, theirs = lines.paired(places, lambda side, part: "".join(side[part]))
        line = min(places.theirs.start + 1, max(1, len(lines.theirs)))
        found = MergeConflict(kind="lines", where="", line=line, base=base, ours=ours, theirs=theirs)
        result.append(conflicts.take(found, versions.theirs.lines.newline))
    return join_pieces(result)
