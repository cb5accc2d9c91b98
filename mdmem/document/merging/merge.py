"""Three-way merge of documents: the changes of two sides in one text, or as conflicts.

Frontmatter and JSON are merged by key, from the source text of each side, so comments and quoting stay. A
body is merged by lines where that is clean, and nothing was moved or would stand twice; else as a tree, or by
lines where that leaves less to a person. What both sides added at one place is kept from both, theirs first,
unless it is nearly the same. What both began with stands once, and the same item of a list: the same change
often arrives twice (a retried write, a cherry-picked commit). Whoever means a second equal line must append
again to what is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from mdmem.document import frontmatter
from mdmem.document.document import Document
from mdmem.document.frontmatter import Frontmatter
from mdmem.document.markdown.blocks import LIST_MARKER
from mdmem.document.merging.conflict import ConflictKind, Conflicts, Markers, MergeConflict, value_conflict
from mdmem.document.merging.joining import SIDES, join_trees
from mdmem.document.merging.likeness import read_key
from mdmem.document.merging.line_merge import (
    LineMerge,
    Piece,
    count_contested_lines,
    is_clean,
    is_in_limits,
    join_lines,
    merge_loose_lines,
    merge_texts,
)
from mdmem.document.merging.merge_fields import MergedFields, merge_fields, merged_json
from mdmem.document.merging.writing import Writer, Written
from mdmem.document.outline import Tree, TreeNode, read_tree
from mdmem.document.relink import MOST_COMPARED
from mdmem.document.synced_block import with_one_block
from mdmem.document.text.diff import Versions, complete
from mdmem.document.text.lines import LINE_END, whole_lines
from mdmem.document.text.regex import regex
from mdmem.document.tree import same
from mdmem.errors import DocumentRefused

__all__ = ["Markers", "MergeConflict", "Merged", "merge"]

_FINAL_LINE_END = regex(r"(?:\r\n|\n|\r)\Z")
# What may stand behind any line, and never continues what another inserted there.
_BEGINS_BLOCK = regex(rf"[ \t]*(?:[\r\n]|\Z)|(?:#{{1,6}}|{LIST_MARKER})[ \t]")
_LONGEST = 60  # characters of a line in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to.

    With conflicts, `text` is None; with markers too, only where they cannot be marked in the text.
    """

    text: str | None
    conflicts: tuple[MergeConflict, ...] = ()


def merge(
    base: Document,
    ours: Document,
    theirs: Document,
    *,
    markers: Markers | None = None,
    by_lines: LineMerge | None = merge_texts,
) -> Merged:
    """Merge what `ours` and `theirs` made of `base`, all three versions of one memory.

    Versions with conflict markers, with more code points than `MOST_COMPARED`, or with too many parts are
    merged by lines alone. Of two blocks of `project sync`, that of theirs stays until the next run.

    Args:
        markers: how to mark conflicts in the text; without them, a text with conflicts is none.
        by_lines: merges texts by lines; None to merge a body as a tree also where its lines merge cleanly.
    """
    versions = Versions(base, ours, theirs)
    texts = versions.map(_whole_text)
    if (synced := with_one_block(texts)) != texts:
        versions, texts = versions.paired(synced, Document.with_text), synced
    whole = texts.agreed()
    return Merged(text=whole[0]) if whole else merge_parts(versions, markers, by_lines)


def merge_parts(
    versions: Versions[Document], markers: Markers | None = None, by_lines: LineMerge | None = merge_texts
) -> Merged:
    """Merge three versions by their parts, also where one side changed nothing; as `merge`."""
    conflicts = Conflicts(markers)
    text = merged_json(versions, conflicts)
    if text is None and not conflicts:
        text = _merged_markdown(versions, conflicts, by_lines)
    elif conflicts:
        text = None
    return Merged(text=text, conflicts=tuple(conflicts.found))


def _merged_markdown(
    versions: Versions[Document], conflicts: Conflicts, by_lines: LineMerge | None
) -> str | None:
    ended = versions.map(lambda document: _ends_line(document.text)).agreed()
    versions = _terminate_lines(versions)
    is_settled = not any(document.conflicts(in_code=True) for document in versions)
    sound = complete(versions.map(_sound_frontmatter)) if is_settled else None
    fields = _merged_frontmatter(versions, sound, conflicts) if sound else None
    reason = ""
    kind: ConflictKind = "lines"
    if fields:
        reason, body = _merged_body(versions, conflicts, by_lines)
        text = fields.text + body
    else:
        pieces = (by_lines or merge_texts)(versions.map(_whole_text))
        text = _write_pieces(pieces, conflicts, versions.theirs)
    if not conflicts and sound and not reason:
        is_read = _reads_as(versions.theirs, fields, text[len(fields.text) :]) if fields else None
        if not (is_read or (is_read is None and _sound_frontmatter(versions.theirs.with_text(text)))):
            reason, kind = "has frontmatter that neither side wrote", "field" if fields else "lines"
    if reason:
        whole = versions.map(_whole_text)
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
    """Return the frontmatter, from the lines of ours if those of theirs do not read as they must."""
    found = merge_fields(versions, fronts, conflicts)
    if not found or conflicts or _reads_as(versions.theirs, found):
        return found
    other = merge_fields(versions.swapped, fronts.swapped, Conflicts())
    return other if other and _reads_as(versions.theirs, other) else found


def _reads_as(document: Document, fields: MergedFields, body: str = "") -> bool:
    """Return whether merged fields read as their value in front of a body."""
    found = _sound_frontmatter(document.with_text(fields.text + body))
    return (
        found is not None
        and found.span.end == len(fields.text)
        and same(found.node.value if found.node else {}, fields.value)
    )


def _merged_body(
    versions: Versions[Document], conflicts: Conflicts, by_lines: LineMerge | None
) -> tuple[str, str]:
    """Return what is wrong with the merged body, and the body."""
    bodies = versions.map(lambda document: document.text[document.body_span.start :])
    pieces = (by_lines or merge_texts)(bodies)
    plain = join_lines(piece.text for piece in pieces) if is_clean(pieces) else None
    is_large = any(len(document.text) > MOST_COMPARED for document in versions)
    trees = None if is_large else complete(versions.map(_read_tree))
    if not trees:
        pieces = merge_loose_lines(bodies.map(whole_lines), _may_join) if plain is None else pieces
        return "", _write_pieces(pieces, conflicts, versions.theirs)
    is_sound = plain is not None and by_lines is not None and _is_sound(versions, trees, plain)
    if plain is not None and is_sound and not _has_moved_lines(bodies):
        return "", plain
    found, lines = Conflicts(conflicts.markers), Conflicts(conflicts.markers)
    # Whichever side is ours, they are judged one way round: the verdict has no sides.
    is_swapped = bodies.ours > bodies.theirs
    judged = (versions.swapped, trees.swapped, SIDES[::-1]) if is_swapped else (versions, trees, SIDES)
    reason, body = _merged_trees(*judged, found)
    if found and is_swapped:
        found.found.clear()
        reason, body = _merged_trees(versions, trees, SIDES, found)
        if not reason and not found:
            reason = "depends on which side is ours"
    if plain is not None and is_sound and reason:
        return "", plain
    if plain is None:
        # Git compares lines in several ways, and was asked for one.
        others = merge_texts(bodies) if conflicts.markers and by_lines is not merge_texts else pieces
        if not is_clean(others):
            pieces = min(pieces, others, key=count_contested_lines)
        marked = _write_pieces(pieces, lines, versions.theirs, reason)
        if reason or (conflicts.markers and found.size > lines.size):
            reason, body, found = "", marked, lines
    conflicts.found += found.found
    return reason, body


def _merged_trees(
    versions: Versions[Document], trees: Versions[Tree], sides: Sequence[int], conflicts: Conflicts
) -> tuple[str, str]:
    """Return what is wrong with the body merged as a tree, and the body.

    Of two additions at one place, one may be read aright only in front of the other: if that of the first of
    `sides` cannot stand last, the other does.
    """
    wrong = []
    for last in sides:
        joined = join_trees(trees, last)
        if not joined.is_whole:
            return "cannot be cut into smaller conflicts", ""
        writer = Writer(versions, trees, joined, last)
        found = Conflicts(conflicts.markers)
        body = writer.write(found)
        result = None if found else _read_body(versions.theirs, body)
        reason = f"puts the section {writer.misplaced!r} below another" if writer.misplaced else ""
        if not found and not reason:
            reason = _find_wrong(trees, result, writer.written, writer.composed)
        if not reason:
            conflicts.found += found.found
            return "", body
        wrong.append((reason, body))
    return wrong[0]


def _write_pieces(pieces: Sequence[Piece], conflicts: Conflicts, theirs: Document, reason: str = "") -> str:
    written = []
    for piece in pieces:
        if piece.sides is None:
            written.append(piece.text)
            continue
        base, ours, yours = piece.sides
        line = min(piece.line + 1, max(1, len(theirs.lines)))
        found = MergeConflict(
            kind="lines", where="", line=line, base=base, ours=ours, theirs=yours, reason=reason
        )
        written.append(conflicts.take(found, theirs.lines.newline))
    return join_lines(written)


def _read_body(document: Document, body: str) -> Tree | None:
    return _read_tree(document.with_text(document.text[: document.body_span.start] + body))


def _whole_text(document: Document) -> str:
    return document.text


def _may_join(ours: str, theirs: str) -> bool:
    return all(_BEGINS_BLOCK.match(text) for text in (ours, theirs))


def _read_tree(document: Document) -> Tree | None:
    try:
        return read_tree(document)
    except DocumentRefused:
        return None


def _ends_line(text: str) -> bool:
    return not text or text.endswith(("\n", "\r"))


def _terminate_lines(versions: Versions[Document]) -> Versions[Document]:
    """Add a final line end, so that an appended line does not change the last."""
    newlines = versions.map(lambda document: document.lines.newline if LINE_END.search(document.text) else "")
    known = newlines.base or min(filter(None, newlines), default="\n")

    def terminated(document: Document, newline: str) -> Document:
        text = document.text
        return document if _ends_line(text) else document.with_text(text + (newline or known))

    return versions.paired(newlines, terminated)


def _sound_frontmatter(document: Document) -> Frontmatter | None:
    """Return the frontmatter, which may be absent; None if something is wrong with it."""
    try:
        found = document.frontmatter
    except DocumentRefused:
        return None
    return None if found.flaws else found


# -------------------------------------------------------------------------------------------------- check


def _find_wrong(
    trees: Versions[Tree], result: Tree | None, written: Sequence[Written], composed: AbstractSet[str]
) -> str:
    """Return why a clean merge is not to be trusted, in words that follow "it"; else nothing."""
    if result is None:
        return "has more parts than a memory may have"
    places = {node: number for number, node in enumerate(result.nodes)}
    for node, wanted in zip(result.nodes, written, strict=False):
        parent = places[node.parent] if node.parent else -1
        if (node.kind, parent) != (wanted.kind, wanted.parent) or wanted.words not in (None, node.words):
            return f"reads {node.head.strip()[:_LONGEST]!r} as something else than either side"
    if len(result.nodes) != len(written):
        return "has other parts than both sides together"
    if line := _find_uncounted(trees, result, composed):
        return f"has {line[:_LONGEST]!r} more often or less often than both sides together"
    return _find_twice(trees, result)


def _is_sound(versions: Versions[Document], trees: Versions[Tree], body: str) -> bool:
    """Return whether a clean merge by lines has each line as often as both sides say, and nothing twice."""
    result = _read_body(versions.theirs, body)
    return result is not None and not (_find_uncounted(trees, result, ()) or _find_twice(trees, result))


def _find_uncounted(trees: Versions[Tree], result: Tree, composed: Collection[str]) -> str:
    """Return a line that stands in the result more often or less often than both sides say."""
    after, counts = _count_lines(result), trees.map(_count_lines)
    lines = counts.base | counts.ours | counts.theirs
    return next(
        (line for line in lines if line not in composed and not is_in_limits(line, counts, after)), ""
    )


def _find_twice(trees: Versions[Tree], result: Tree) -> str:
    """Return what stands in the result more often than on a side, and at most once in each version."""
    *counts, after = (Counter(_list_names(tree)) for tree in (*trees, result))
    for name, count in after.items():
        known = [each[name] for each in counts]
        if count > max(1, *known) and known[0] <= 1:
            return f"has {name[-1][:_LONGEST]!r} twice"
    return ""


def _list_names(tree: Tree) -> Iterator[tuple[str, ...]]:
    """Yield ids, labels, sections, items, rows and keys, each behind what it stands in."""
    around: dict[TreeNode, tuple[str, ...]] = {}
    for node in tree.nodes:
        if node.id:
            yield "^", node.id
        if node.label:
            yield node.kind, node.label
        own = node.path if node.kind == "section" else (node.words,)
        around[node] = (*(around[node.parent] if node.parent else ()), *own)
        if node.kind in {"section", "item", "row"} and node.words:
            yield node.kind, *around[node]
        if node.parent and (key := read_key(node.kind, node.words)):
            yield "key", *around[node.parent], key


def _has_moved_lines(bodies: Versions[str]) -> bool:
    """Return whether two single lines of the base have changed their order on a side."""
    base, *sides = map(_place_single_lines, bodies)
    for side in sides:
        places = [side[line] for line in base if line in side]
        if any(below < above for above, below in pairwise(places)):
            return True
    return False


def _place_single_lines(text: str) -> dict[str, int]:
    """Return the place of each line that stands once in a text, in order."""
    lines = [line.strip(" \t\r\n") for line in whole_lines(text)]
    counts = Counter(lines)
    return {line: number for number, line in enumerate(lines) if line and counts[line] == 1}


def _count_lines(tree: Tree) -> Counter[str]:
    return Counter(
        line for node in tree.nodes for each in whole_lines(node.head) if (line := each.strip(" \t\r\n"))
    )
