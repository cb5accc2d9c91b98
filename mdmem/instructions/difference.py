"""What differs between a file of a tool and what the source makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mdmem.instructions import block
from mdmem.instructions.wanted import Wanted
from mdmem.text.diff import unified
from mdmem.text.lines import LINE_END, Lines, with_newline


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
        added: what somebody wrote in the block and can be brought back; None where nothing can.
        memory: the rule that is all of the file, as the vault names it.
    """

    path: str
    state: str
    reason: str = ""
    before: str | None = None
    after: str | None = None
    added: str | None = None
    memory: str = ""

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
    reason = "its block was changed: --bring-back takes that into the vault"
    added = inner if wanted.memory else _added(inner, wanted.inner)
    return Difference(
        path=path,
        state="edited",
        reason=reason,
        before=text,
        after=text,
        added=added.strip("\r\n"),
        memory=wanted.memory,
    )


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
