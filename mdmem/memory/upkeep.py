"""Upkeep: what is hardly sure is proposed for deletion, and a source is taken out of all that rests on it.

Nothing is deleted here: a deletion waits in the inbox until somebody accepts it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.document.bullets import Bullet
from mdmem.document.confidence import names_source
from mdmem.document.document import Document
from mdmem.document.edit import TextEdit, spliced
from mdmem.document.field import unset_field, with_field
from mdmem.document.source import said_in, sourced_bullets, with_sources
from mdmem.errors import DocumentRefused, MemoryNotFound, Usage
from mdmem.index.links.lineage import DERIVED, find_references, references_in
from mdmem.kind import PROPOSAL
from mdmem.memory.content import without_empty_frontmatter
from mdmem.memory.history import rewriting
from mdmem.memory.provenance import find_doubtful
from mdmem.vault.paths import is_under
from mdmem.vault.plan import EditPlan, together

if TYPE_CHECKING:
    from mdmem.index.view import View


class ProposalDraft(NamedTuple):
    """A change to propose: its verb, the verb's arguments, and why."""

    verb: str
    arguments: Mapping[str, Any]
    reason: str


def list_doubtful(view: View, is_linked: Callable[[str], bool], now: datetime) -> list[ProposalDraft]:
    """List the deletions of memories that are hardly sure at `now`, and that nothing links to."""
    return [
        ProposalDraft("rm", {"path": path}, f"its confidence is {sure:.2f} by now, and nothing links to it")
        for path, sure in find_doubtful(view, now)
        if not is_linked(path)
    ]


def revoke(view: View, source: str) -> tuple[EditPlan, list[ProposalDraft]]:
    """Plan to take a source out of fields and bullets that have others; list the deletions of those without.

    Args:
        source: the id of a message, of a session with all its messages, a URL, or the path of a memory.
    """
    derived = {each.path for each in find_references(view, DERIVED) if each.goal == source}
    plans, drafts = list[EditPlan](), list[ProposalDraft]()
    for document in _read_naming(view, source, derived):
        after, found = _revoke_in(view, document, source)
        drafts += found
        if after.text != document.text:
            plans.append(rewriting(document, after, ""))
    if not plans and not drafts:
        raise Usage(
            problem=f"no memory names the source {source!r}",
            remedy="name a message (sessions/t1#7), a session, a URL or a memory as it is written there",
        )
    return together(plans, f"revoke {source}"), drafts


def _read_naming(view: View, source: str, derived: Collection[str]) -> Iterator[Document]:
    for path in view.list_files():
        if is_under(path, PROPOSAL.folder):
            continue
        with contextlib.suppress(DocumentRefused, MemoryNotFound):
            document = view.vault.read(path)
            if path in derived or source in document.text:
                yield document


def _revoke_in(view: View, document: Document, source: str) -> tuple[Document, list[ProposalDraft]]:
    edits, drafts, has_others = list[TextEdit](), list[ProposalDraft](), False
    for bullet, sources in sourced_bullets(document):
        left = [each for each in sources if not names_source(source, each)]
        has_others = has_others or bool(left)
        if not left:
            drafts.append(_draft_bullet(document, bullet, source))
        elif len(left) < len(sources):
            head = document.text[slice(*bullet.head)]
            edits.append(TextEdit(*bullet.head, _rewrite_sources(head, left)))
    after = spliced(document, edits)
    for key, written in _list_source_fields(document):
        left = [each for each in written if not _names(view, document.path, source, each, key)]
        has_others = has_others or bool(left)
        if left == written:
            continue
        after = with_field(after, key, left) if left else spliced(after, unset_field(after, key))
    if after.text == document.text or has_others:
        return without_empty_frontmatter(after), list({str(each): each for each in drafts}.values())
    return document, [ProposalDraft("rm", {"path": document.path}, f"its only source, {source}, was revoked")]


def _list_source_fields(document: Document) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    source = document.fields.get("source")
    written = {
        ("source", "ids"): source.get("ids") if isinstance(source, dict) else None,
        ("source",): source if isinstance(source, str) else None,
        (DERIVED,): document.fields.get(DERIVED),
    }
    for key, value in written.items():
        if value:
            yield key, value if isinstance(value, list) else [value]


def _names(view: View, path: str, source: str, written: Any, key: tuple[str, ...]) -> bool:
    """Return whether an item of a field names a source: by its id, or as the memory it is derived from."""
    if key == (DERIVED,):
        return any(each.goal == source for each in references_in(view, path, str(written)))
    return names_source(source, str(written))


def _rewrite_sources(head: str, sources: list[str]) -> str:
    stripped = head.rstrip()
    end = f"({' '.join(said_in(head)[1])})"
    return with_sources(stripped.removesuffix(end).rstrip(), sources) + head[len(stripped) :]


def _draft_bullet(document: Document, bullet: Bullet, source: str) -> ProposalDraft:
    text, (start, end) = document.text, bullet.span
    # With the line end before it, so that nothing that merely ends alike is meant.
    first = max(0, start - 1)
    end = document.lines.span(document.lines.number(end - 1)).end
    old, new = text[first:end], text[first:start]
    arguments = {"path": document.path, "old": old, "new": new, "count": text.count(old)}
    return ProposalDraft("replace", arguments, f"the only source of this bullet, {source}, was revoked")
