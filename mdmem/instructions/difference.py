"""What differs between a file of a tool and what the source makes of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from mdmem.instructions import block
from mdmem.text.diff import Hunk, hunks, unified
from mdmem.text.lines import LINE_END, Lines, with_newline
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mdmem.instructions.wanted import Part, Wanted

_SECTION = regex(r" {0,3}##?[ \t]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file of a tool that is not what the source makes of it.

    Attributes:
        path: from the workspace.
        state: missing, outdated, stale (its rule is gone), or what `sync` leaves as it is: edited (somebody
            wrote in its block), foreign (not made by `sync`), refused (it cannot be written).
        reason: more about it; may be empty.
        before, after: the texts of the file; None where there is none. What is left as it is has `after`
            equal to `before`.
        texts: what somebody made of the texts of memories in the block: path in the vault to new text.
        added: what somebody wrote there beside these; None where nothing can be brought back.
    """

    path: str
    state: str
    reason: str = ""
    before: str | None = None
    after: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    added: str | None = None

    @property
    def is_mended(self) -> bool:
        """Whether `sync` writes the file."""
        return self.before != self.after

    def diff(self) -> str:
        """What would be written, as a unified diff."""
        return unified(self.before, self.after, self.path)

    def as_dict(self) -> dict[str, Any]:
        """The difference as a JSON object."""
        return {
            "path": self.path,
            "state": self.state,
            "reason": self.reason,
            "mended": self.is_mended,
            "diff": self.diff(),
        }


def compared(
    path: str, text: str | None, wanted: Wanted | None, *, is_taken: bool = False
) -> Difference | None:
    """What a file lacks; None when it is as wanted. Outside of its block, and its header, no byte changes.

    Args:
        path: the file.
        text: what it holds; None where there is none.
        wanted: what its block should hold; None for no block.
        is_taken: an edited block may be overwritten.
    """
    try:
        found = block.find(text or "")
    except block.Broken:
        reason = "the marks of its block are broken: mend or delete them"
        return Difference(path=path, state="refused", reason=reason, before=text, after=text)
    if wanted is None:
        return _without(path, text, found) if text is not None and found else None
    if text is None or found is None:
        return _with(path, text, wanted)
    newline = Lines(text).newline
    new = with_newline(wanted.header + block.written(wanted.inner, wanted.source, wanted.header), newline)
    # A rule's file begins with its header; elsewhere what stands before the block is not ours.
    start = 0 if wanted.header else found.span.start
    after = text[:start] + new + text[found.span.end :]
    if with_newline(after, "\n") == with_newline(text, "\n"):
        return None
    edited = None if is_taken else _edited(path, text, found, wanted)
    return edited or Difference(path=path, state="outdated", before=text, after=after)


def _with(path: str, text: str | None, wanted: Wanted) -> Difference:
    """A file that has no block and should."""
    new = block.written(wanted.inner, wanted.source, wanted.header)
    if text is None or not text:
        return Difference(path=path, state="missing", before=text, after=wanted.header + new)
    if wanted.header:
        reason = "a file of somebody else's stands there: move it away"
        return Difference(path=path, state="foreign", reason=reason, before=text, after=text)
    newline = Lines(text).newline
    after = text + _gap(text, newline) + with_newline(new, newline)
    return Difference(path=path, state="missing", before=text, after=after)


def _edited(path: str, text: str, found: block.Block, wanted: Wanted) -> Difference | None:
    """What somebody changed in a block or header; None when it is as it was written."""
    inner = text[slice(*found.inner)]
    head = text[: found.span.start]
    if wanted.header and block.digest(head) not in {found.header_digest, block.digest(wanted.header)}:
        reason = f"its header was changed: change the globs in {wanted.source}, and delete this file"
        return Difference(path=path, state="edited", reason=reason, before=text, after=text)
    if block.digest(inner) in {found.digest, block.digest(wanted.inner)}:
        return None
    left = Difference(path=path, state="edited", before=text, after=text)
    by_hand = f"take the change into {wanted.source} by hand, and delete the block"
    if wanted.parts and found.digest != block.digest(wanted.inner):
        return replace(left, reason=f"its block was changed, and what it is made of was, too: {by_hand}")
    texts: dict[str, str] = {}
    if wanted.parts:
        # The file of one rule is all its text, new sections too.
        added = _apart(inner, wanted.parts, texts, alone=bool(wanted.header))
    else:
        added = _added(inner, wanted.inner)
    if added is None:
        return replace(left, reason=f"its block was changed, and it is not clear in which memory: {by_hand}")
    reason = "its block was changed: --bring-back takes that into the vault"
    return replace(left, reason=reason, texts=texts, added=added.strip("\r\n"))


def _apart(inner: str, parts: Sequence[Part], texts: dict[str, str], *, alone: bool) -> str | None:
    """What was written in a block beside its parts; None where a change is not clearly in one of them.

    A section that follows a part belongs to none; any other text behind a part belongs to that one.

    Args:
        inner: what is in the block.
        parts: what was in it.
        texts: is told the new texts of the memories that were changed.
        alone: whether all that is in the block belongs to its only part.
    """
    old = [LINE_END.split(part.text) for part in parts]
    starts = [0, *accumulate(len(lines) + 1 for lines in old)]
    before = [line for lines in old for line in (*lines, "")][:-1]
    after = LINE_END.split(with_newline(inner, "\n").strip("\n"))
    changes: list[list[Hunk]] = [[] for _ in parts]
    added: list[str] = []
    for hunk in hunks(before, after):
        number = bisect_right(starts, hunk.start) - 1
        is_new = hunk.start == hunk.end
        if is_new and hunk.start == starts[number]:
            number = (
                max(0, number - 1) if alone else number - 1
            )  # behind the part before, rather than in front of this one
        new = after[hunk.new_start : hunk.new_end]
        first = next(filter(str.strip, new), "")
        is_behind = is_new and hunk.start >= starts[number] + len(old[number])
        is_beside = number < 0 or (is_behind and (_SECTION.match(first) or not parts[number].memory))
        if is_beside and not alone:
            added += new
        elif hunk.end > starts[number + 1]:
            return None
        else:
            changes[number].append(hunk)
    for number, part in enumerate(parts):
        lines, at = [], starts[number]
        for hunk in changes[number]:
            lines += [*before[at : hunk.start], *after[hunk.new_start : hunk.new_end]]
            at = hunk.end
        text = "\n".join([*lines, *before[at : starts[number + 1]]]).strip("\n")
        if text != part.text:
            taken = part.taken_back(text) if part.memory else None
            if taken is None:
                return None
            texts[part.memory] = taken
    return "\n".join(added)


def _added(inner: str, wanted: str) -> str:
    """The lines of a block that are not wanted there, in their order."""
    present = {line.strip() for line in LINE_END.split(wanted)}
    return "\n".join(line for line in LINE_END.split(inner) if line.strip() not in present)


def _without(path: str, text: str, found: block.Block) -> Difference:
    """A file that has a block and should not."""
    has_header = found.header_digest != block.digest("")
    head = text[: found.span.start] if has_header else ""
    if (block.digest(head), block.digest(text[slice(*found.inner)])) != (found.header_digest, found.digest):
        reason = "it was changed, and nothing is wanted there any more: delete its block, or the file"
        return Difference(path=path, state="edited", reason=reason, before=text, after=text)
    rest = ("" if has_header else text[: found.span.start]) + text[found.span.end :]
    return Difference(path=path, state="stale", before=text, after=rest if rest.strip() else None)


def _gap(text: str, newline: str) -> str:
    """What parts a new block from the text before it: one blank line."""
    if text.endswith(newline * 2):
        return ""
    return newline if text.endswith(newline) else newline * 2
