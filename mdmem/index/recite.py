"""Plans that change citations of code: to where the code is now, and to have a pin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import DocumentRefused, MemoryNotFound, StorageFailed
from mdmem.index import citations
from mdmem.index.citations import Judgement, judge
from mdmem.index.locator import locator, path_to
from mdmem.index.state import CHANGED, MOVED, OK, UNCHANGED
from mdmem.index.workspace import Workspace
from mdmem.text import relink
from mdmem.text.edit import TextEdit
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from mdmem.index.view import View
    from mdmem.text.document import Document
    from mdmem.text.inline import Citation


class _Judged(NamedTuple):
    """A citation of a memory, the memory's file seen from the workspace, and what became of it."""

    document: Document
    citation: Citation
    citing: str
    judgement: Judgement


Edits = Callable[[Workspace, _Judged], Iterator[TextEdit]]


def repointed(view: View, paths: Collection[str] | None = None) -> EditPlan:
    """The plan that makes every citation of code that has moved say where it is now.

    Args:
        view: which memories.
        paths: only these of them.
    """
    return _plan(view, paths, _moved, "re-point citations")


def pinned(view: View, paths: Collection[str] | None = None, *, accept: bool = False) -> EditPlan:
    """The plan that puts a pin behind every citation of lines or of a symbol that has none.

    Args:
        view: which memories.
        paths: only these of them.
        accept: also renew the pins of what has changed, and point at it: somebody has read that it
            still holds.
    """

    def edits(workspace: Workspace, judged: _Judged) -> Iterator[TextEdit]:
        _, citation, citing, found = judged
        fits = (OK, UNCHANGED, *((CHANGED,) if accept else ()))
        if found.state not in fits or not (citation.first or citation.symbol):
            return
        if found.state == CHANGED:
            # What has been read is what stands there now.
            yield from _repointing(workspace, judged)
            if citation.first is not None:
                citation = citation._replace(first=found.first, last=found.last)
            citation = citation._replace(path=path_to(workspace, citing, citation, found.path))
        pin = citations.pin(workspace, citing, citation)
        if pin and pin != citation.pin:
            yield TextEdit(*citation.pin_span, f"<!-- pin {pin} -->")

    return _plan(view, paths, edits, "pin citations")


def _moved(workspace: Workspace, judged: _Judged) -> Iterator[TextEdit]:
    if judged.judgement.state == MOVED:
        yield from _repointing(workspace, judged)


def _repointing(workspace: Workspace, judged: _Judged) -> Iterator[TextEdit]:
    """The edits that make a citation say where the code is now."""
    document, citation, citing, found = judged
    path = path_to(workspace, citing, citation, found.path)
    if path != citation.path:
        yield relink.repath(citation, document.text, path)
    if citation.symbol and found.symbol and found.symbol != citation.symbol:
        yield TextEdit(*citation.locator_span, f"#{found.symbol}")
    elif citation.first is not None and found.first is not None:
        written = document.text[slice(*citation.locator_span)]
        new = locator(written, found.first, found.last or found.first)
        if new != written:
            yield TextEdit(*citation.locator_span, new)


def _plan(view: View, paths: Collection[str] | None, edits: Edits, message: str) -> EditPlan:
    changes: list[Change] = []
    left_out: list[str] = []
    with view.workspace() as workspace:
        for path in view.citing(paths):
            try:
                document = view.vault.read(path)
            except (DocumentRefused, MemoryNotFound, StorageFailed) as error:
                left_out.append(error.message)
                continue
            citing, seen = view.in_workspace(path), view.first_seen(path)
            made: list[TextEdit] = []
            for each in document.citations:
                known = seen.get((each.path, each.first, each.last, each.symbol), "")
                judgement = judge(workspace, citing, each, known)
                made += edits(workspace, _Judged(document, each, citing, judgement))
            if made:
                changes.append(Change(path=path, before=document, edits=tuple(made)))
    return EditPlan(changes=tuple(changes), message=message, left_out=tuple(left_out))
