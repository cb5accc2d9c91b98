"""The check: everything that is wrong with memories, as they are on disk or in an editor.

A finding is silenced by its code: for all memories in the config, `[check] silenced`, or in a Markdown memory
by a comment, `<!-- mdmem: silence dangling-link -->`. A secret is always told.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from mdmem.code.citations import AMBIGUOUS, DANGLING, STALE
from mdmem.diagnostic import SECRETS, Diagnostic, Related, Span, about_file, told
from mdmem.document.tree import LINEAGE, Flaw
from mdmem.errors import (
    BinaryContent,
    ConfigInvalid,
    DocumentRefused,
    MemoryNotFound,
    NotEncodable,
    NotUtf8,
    StorageFailed,
    SystemFailing,
    TooNested,
)
from mdmem.kind import PROPOSAL, kind_at
from mdmem.text.lines import Lines
from mdmem.text.regex import regex
from mdmem.vault.folder import hides
from mdmem.vault.paths import relative

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from mdmem.document.document import Document
    from mdmem.index.view import View
    from mdmem.links.references import Around
    from mdmem.vault.vault import Vault

SILENCING = regex(r"<!--[ \t]*mdmem:[ \t]*silence[ \t]+([a-z0-9, \t-]*?)[ \t]*-->")
_SIGN = "silence"
_NAMED = 4  # of the memories that share an id


class Check:
    """One run of checks over the memories of a vault on disk.

    Args:
        vault: which memories.
        view: returns what the index knows, once it is current.
    """

    def __init__(self, vault: Vault, view: Callable[[], View]) -> None:
        self._vault = vault
        self._view = view
        self._related: set[str] = set()
        self._silenced: dict[str, frozenset[str]] = {}

    def run(self, paths: Sequence[str], *, links: bool) -> list[Diagnostic]:
        """Return what is wrong with memories and folders; with all without any.

        Args:
            paths: memories and folders.
            links: whether to look at what they point at.

        Raises:
            MemoryNotFound: a path names nothing.
        """
        findings: list[Diagnostic] = []
        checked: list[str] = []
        for path in paths or ("",):
            for file, problem in self._vault.report_progress("checking", list(self._list_memories(path))):
                checked.append(file)
                findings += self._check_one(file, problem)
        if self._related:
            from mdmem.links.lineage import check_lineage  # noqa: PLC0415 - start-up

            findings += check_lineage(self._view(), self._related)
        if links and checked:
            findings += drop_repeats(findings, self._check_pointing(checked if paths else None))
        if not paths:
            findings += find_hidden(self._vault)
            findings += _check_own(self._vault)
        silenced = self._vault.config.check.silenced
        return [found for found in findings if not _is_silenced(found, silenced, self._silenced)]

    def _list_memories(self, path: str) -> Iterator[tuple[str, str]]:
        if path.endswith(self._vault.suffixes):
            yield path, ""
            return
        files = list(self._vault.walk(path))
        if path and not files:
            raise MemoryNotFound(path=path, kind="folder or memory")
        yield from ((file.path, file.problem) for file in files)

    def _check_one(self, path: str, problem: str) -> list[Diagnostic]:
        if problem:
            return [about_file(path, "not-a-memory", f"left out: {problem}", severity="warning")]
        document: Document | None = None
        try:
            document = self._vault.read(path)
            if not document.fields.keys().isdisjoint(LINEAGE):
                self._related.add(path)
            if codes := find_silenced(document):
                self._silenced[path] = codes
            return check_document(self._vault, document)
        except DocumentRefused as error:
            return [describe_refusal(path, error, document.text if document else "")]
        except (StorageFailed, SystemFailing) as error:
            return [about_file(path, error.code, error.message, error.hint)]

    def _check_pointing(self, paths: Collection[str] | None) -> Iterator[Diagnostic]:
        """Yield what is wrong with what memories point at; the index says which to look into."""
        from mdmem.links.references import (  # noqa: PLC0415 - start-up
            CODE,
            LINKS,
            check_citations,
            check_links,
            find_repairs,
            names_for,
            occurrences,
        )

        view = self._view()
        names = names_for(view, paths)
        repairs = find_repairs(view, names)
        wrong = (AMBIGUOUS, DANGLING)
        broken = {o.place.path for o in occurrences(view, types=LINKS, paths=paths) if o.place.state in wrong}
        gone = (*STALE, DANGLING)
        stale = {o.place.path for o in occurrences(view, types=CODE, paths=paths) if o.place.state in gone}
        shared = {path for _, same in view.same_ids() for path in same}
        for path in sorted(broken | stale | (shared if paths is None else shared.intersection(paths))):
            with suppress(DocumentRefused, MemoryNotFound, StorageFailed):  # which is told already
                document = view.read(path)
                yield from check_links(view, document, repairs, names) if path in broken else ()
                yield from check_citations(view, document) if path in stale else ()
                yield from check_id(view, document)


def check_document(vault: Vault, document: Document) -> list[Diagnostic]:
    """Return what is wrong with a memory by itself: form, schema, secrets, validity.

    Raises:
        DocumentRefused: it passes a limit.
    """
    findings = vault.check(document)
    if not document.fields.keys().isdisjoint(("tier", "valid_to")):
        from mdmem.memory.validity import check_validity  # noqa: PLC0415 - start-up

        findings += check_validity(document, vault.config.tiers._fields)
    if kind_at(document.path) is PROPOSAL:
        from mdmem.capture.proposal import judge  # noqa: PLC0415 - start-up

        findings += judge(document)
    return told(findings)


def check_open(around: Around, document: Document) -> list[Diagnostic]:
    """Return everything that is wrong with a memory in an editor, as a run over the saved one would."""
    from mdmem.links.lineage import check_lineage  # noqa: PLC0415 - start-up
    from mdmem.links.references import check_citations, check_links, find_repairs  # noqa: PLC0415 - start-up

    findings = check_document(around.vault, document)
    if not document.fields.keys().isdisjoint(LINEAGE):
        findings += check_lineage(around, {document.path})
    links = check_links(around, document, find_repairs(around))
    pointing = (*links, *check_citations(around, document))
    findings += drop_repeats(findings, (*pointing, *check_id(around, document)))
    silenced, here = around.vault.config.check.silenced, {document.path: find_silenced(document)}
    return [found for found in findings if not _is_silenced(found, silenced, here)]


def describe_refusal(path: str, error: DocumentRefused, text: str = "") -> Diagnostic:
    """Return why a text cannot be a memory, as a finding; with the text, at its place."""
    reason = error.message.removeprefix(error.path).partition(": ")[2]  # the finding names the path itself
    line = error.line if isinstance(error, NotUtf8 | TooNested) else 1
    found = about_file(path, error.code, reason, error.hint, line=line)
    at = text.find("\0") if isinstance(error, BinaryContent) else -1
    if isinstance(error, NotEncodable):
        at = error.offset
    if isinstance(error, TooNested) and text:
        at = Lines(text).span(error.line).start
    return replace(found, span=Span(at, at + 1), position=Lines(text).position(at)) if at >= 0 else found


def find_hidden(vault: Vault) -> Iterator[Diagnostic]:
    """Report the files of the vault that a mount hides, which nothing else sees."""
    for path, target in vault.mounted("").items():
        if hides(target, os.path.join(vault.root, path)):
            message = "a file of the vault is hidden by a mount of the same path"
            hint = "move the file away, or remove the mount"
            yield about_file(relative(path, vault.namespace), "mount-shadows", message, hint)


def _check_own(vault: Vault) -> Iterator[Diagnostic]:
    """Report the vault's own schemas and templates that cannot be used, and what the config says of them."""
    try:
        yield from vault.schemas.lint()
        yield from vault.templates.lint()
    except ConfigInvalid as error:
        yield about_file(error.path, error.code, error.message, error.hint)


def check_id(around: Around, document: Document) -> Iterator[Diagnostic]:
    """Report an `id` that another memory has as well."""
    ident = document.fields.get("id")
    same = around.named("id", str(ident)) if isinstance(ident, str | int | float) else ()
    others = [path for path in same if path != document.path]
    if others and document.tree:
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        message = f"the id {ident!r} is also that of {', '.join(others[:_NAMED])}{more}"
        hint = "give one of them another id"
        span = document.tree.nearest(("id",)).span
        related = tuple(Related(path, Span(0, 0), "it has the same id") for path in others[:_NAMED])
        yield document.diagnose(Flaw(span, "duplicate-id", message, hint, "id"), related)


def drop_repeats(findings: Iterable[Diagnostic], further: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield further findings, without those that stand in a line of which the same is said already."""
    reported = {(found.path, found.position.line, found.code) for found in findings}
    return (found for found in further if (found.path, found.position.line, found.code) not in reported)


def find_silenced(document: Document) -> frozenset[str]:
    """Find the codes that the comments of a Markdown memory silence."""
    if document.is_json or _SIGN not in document.text:
        return frozenset()
    fences = document.fences
    comments = (
        found
        for found in SILENCING.finditer(document.text, document.body_span.start)
        if not any(fence.start <= found.start() < fence.end for fence in fences)
    )
    return frozenset(code for found in comments for code in found[1].replace(",", " ").split())


def _is_silenced(found: Diagnostic, everywhere: Sequence[str], here: dict[str, frozenset[str]]) -> bool:
    is_named = found.code in everywhere or found.code in here.get(found.path, ())
    return is_named and found.code != SECRETS
