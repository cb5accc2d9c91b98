"""The check: everything that is wrong with memories, as they are on disk or in an editor.

A finding is silenced by its code: for all memories in the config, `[check] silenced`, or in a Markdown memory
by a comment, `<!-- mdmem: silence dangling-link -->`. A secret is always told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mdmem.diagnostic import SECRETS, Diagnostic, Related, Span, about_error, about_file, told
from mdmem.document.document import Document
from mdmem.document.text.lines import Lines
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import first_of
from mdmem.document.tree import LINEAGE, Flaw
from mdmem.errors import (
    CANNOT_READ,
    BinaryContent,
    ConfigInvalid,
    DocumentRefused,
    MemoryNotFound,
    NotEncodable,
    NotReady,
    NotUtf8,
    StorageFailed,
    SystemFailing,
    TooNested,
)
from mdmem.index.code.citations import AMBIGUOUS, DANGLING, STALE, UNKNOWN
from mdmem.kind import PROPOSAL, RULE, kind_at
from mdmem.vault.folder import hides
from mdmem.vault.paths import relative

if TYPE_CHECKING:
    from mdmem.index.links.names import Names
    from mdmem.index.view import View
    from mdmem.vault.vault import Vault

SILENCING = regex(r"<!--[ \t]*mdmem:[ \t]*silence[ \t]+([a-z0-9, \t-]*?)[ \t]*-->")
_SIGN = "silence"
_NAMED = 4  # of the memories that share an id, or say the same
_MOST_COMPARED = 20  # of the memories that are named, those that are compared with all
_HELD = ("rule:/globs", "rule:/enabled")


class Check:
    """One run of checks over the memories of a vault on disk."""

    def __init__(self, vault: Vault, view: Callable[[], View]) -> None:
        self._vault = vault
        self._view = view
        self._related: set[str] = set()
        self._named: set[str] = set()
        self._silenced: dict[str, frozenset[str]] = {}

    def run(self, paths: Sequence[str], *, links: bool) -> list[Diagnostic]:
        """Return what is wrong with memories and folders, by path and place; with all without any.

        Raises:
            MemoryNotFound: a path names nothing.
        """
        findings: list[Diagnostic] = []
        checked: list[str] = []
        self._named.update(paths)
        for path in paths or ("",):
            for file, problem in self._vault.report_progress("checking", list(self._list_memories(path))):
                checked.append(file)
                findings += self._check_one(file, problem)
        if self._related:
            from mdmem.index.links.lineage import check_lineage  # noqa: PLC0415 - start-up

            with suppress(NotReady):  # then it is told what is wrong with the memory alone
                findings += tell_guests(self._vault, check_lineage(self._view(), self._related))
        if links and checked:
            findings += drop_repeats(findings, self._check_pointing(checked if paths else None))
        if not paths:
            findings += find_hidden(self._vault)
            findings += _check_own(self._vault)
        silenced = self._vault.config.check.silenced
        told = (found for found in findings if not _is_silenced(found, silenced, self._silenced))
        return sorted(told, key=lambda each: (each.path, each.position))

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
            found = about_file(path, "not-a-memory", f"left out: {problem}", severity="warning")
            return tell_guests(self._vault, [found])
        document: Document | None = None
        try:
            document = self._vault.read(path)
            if not document.fields.keys().isdisjoint(LINEAGE):
                self._related.add(path)
            if codes := find_silenced(document):
                self._silenced[path] = codes
            return check_document(self._vault, document)
        except DocumentRefused as error:
            refusal = describe_refusal(path, error, document.text if document else "")
            return tell_guests(self._vault, [refusal])
        except (StorageFailed, SystemFailing) as error:
            return [about_file(path, error.code, error.message, error.hint)]

    def _check_pointing(self, paths: Collection[str] | None) -> Iterator[Diagnostic]:
        from mdmem.index.code.workspace import Workspace  # noqa: PLC0415 - start-up
        from mdmem.index.links.references import (  # noqa: PLC0415 - start-up
            CODE,
            LINKS,
            LinkJudge,
            check_citations,
            check_links,
            find_repairs,
            names_for,
            occurrences,
        )

        view = self._view()
        yield from find_repeats(view, [path for path in paths or () if path in self._named])
        judge = LinkJudge(view, names_for(view, paths))
        repairs = find_repairs(view, judge.names)
        wrong = {
            **dict.fromkeys(LINKS, (AMBIGUOUS, DANGLING)),
            **dict.fromkeys(CODE, (*STALE, DANGLING, UNKNOWN)),
        }
        pointing = occurrences(view, types=wrong, paths=paths, links=judge)
        found = {
            (each.type in LINKS, each.place.path) for each in pointing if each.place.state in wrong[each.type]
        }
        broken = {path for is_link, path in found if is_link}
        stale = {path for is_link, path in found if not is_link}
        shared = {path for _, same in find_same_ids(view) for path in same}
        with Workspace.of(view.vault) as workspace:
            for path in sorted(broken | stale | (shared if paths is None else shared.intersection(paths))):
                with suppress(*CANNOT_READ):  # which is told already
                    document = view.read(path)
                    yield from check_links(view, document, repairs, judge) if path in broken else ()
                    yield from check_citations(view, document, workspace) if path in stale else ()
                    yield from check_id(view, document)


def find_repeats(view: View, paths: Sequence[str]) -> Iterator[Diagnostic]:
    """Report memories that say the same as these, the most alike first; only the first ones are compared."""
    from mdmem.memory.content import utc_now  # noqa: PLC0415 - start-up
    from mdmem.memory.duplicates import ComparedMemories  # noqa: PLC0415 - start-up

    for path in paths[:_MOST_COMPARED]:
        for pair in ComparedMemories(view, utc_now(), near=path).pairs[:_NAMED]:
            other = pair.path if pair.other == path else pair.other
            message = f"{other} says the same" + ("" if pair.is_same else f", by {pair.share:.0%} of both")
            hint = "`mdmem duplicates` shows what each has alone, `mdmem consolidate` proposes what to do"
            yield about_file(path, "duplicate", message, hint, severity="note", rule=other)


def check_document(vault: Vault, document: Document) -> list[Diagnostic]:
    """Return what is wrong with a memory by itself: form, schema, secrets, validity.

    In a guest that names no schema or type of the vault's own, all findings are notes, except secrets, the
    marks of a merge, and `globs` and `enabled` of a rule: agents obey these.
    """
    findings = vault.check(document)
    if not (vault.is_data(document) or document.fields.keys().isdisjoint(("tier", "valid_to"))):
        from mdmem.memory.validity import check_validity  # noqa: PLC0415 - start-up

        findings += check_validity(document, vault.config.tiers._fields)
    if kind_at(document.path) is PROPOSAL:
        from mdmem.memory.proposal import judge  # noqa: PLC0415 - start-up

        findings += judge(document)
    if not vault.schemas.follows_own(document):
        held = _HELD if kind_at(document.path) is RULE else ()
        findings = tell_guests(vault, findings, held)
    return told(findings)


def tell_guests(vault: Vault, findings: Iterable[Diagnostic], held: tuple[str, ...] = ()) -> list[Diagnostic]:
    """Return findings; those in files of other tools become notes: what mdmem cannot read is not wrong.

    Secrets and the marks of a merge stay as they are, and so do rules of a schema that begin with one of
    `held`.
    """

    def is_note(found: Diagnostic) -> bool:
        is_held = found.code in {SECRETS, "conflict-markers"} or found.rule.startswith(held)
        return not is_held and vault.is_guest(found.path)

    return [found._replace(severity="note") if is_note(found) else found for found in findings]


def check_open(around: View, document: Document) -> list[Diagnostic]:
    """Return everything that is wrong with a memory in an editor, as a run over the saved one would."""
    from mdmem.index.code.workspace import Workspace  # noqa: PLC0415 - start-up
    from mdmem.index.links.lineage import check_lineage  # noqa: PLC0415 - start-up
    from mdmem.index.links.references import check_citations, check_links, find_repairs  # noqa: PLC0415 - start-up

    findings = check_document(around.vault, document)
    if not document.fields.keys().isdisjoint(LINEAGE):
        findings += tell_guests(around.vault, check_lineage(around, {document.path}))
    links = check_links(around, document, find_repairs(around))
    with Workspace.of(around.vault, around.unsaved) as workspace:
        pointing = (*links, *check_citations(around, document, workspace))
    findings += drop_repeats(findings, (*pointing, *check_id(around, document)))
    silenced, here = around.vault.config.check.silenced, {document.path: find_silenced(document)}
    return [found for found in findings if not _is_silenced(found, silenced, here)]


def describe_refusal(path: str, error: DocumentRefused, text: str = "") -> Diagnostic:
    """Return why a text cannot be a memory, as a finding; with the text, at its place."""
    line = error.line if isinstance(error, NotUtf8 | TooNested) else 1
    found = about_file(path, error.code, error.fault, error.hint, line=line)
    at = text.find("\0") if isinstance(error, BinaryContent) else -1
    if isinstance(error, NotEncodable):
        at = error.offset
    if isinstance(error, TooNested) and text:
        at = Lines(text).span(error.line).start
    return found._replace(span=Span(at, at + 1), position=Lines(text).position(at)) if at >= 0 else found


def find_hidden(vault: Vault) -> Iterator[Diagnostic]:
    """Report the files of the vault that a mount hides, which nothing else sees."""
    for path, target in vault.mounted("").items():
        if hides(target, os.path.join(vault.root, path)):
            message = "a file of the vault is hidden by a mount of the same path"
            hint = "move the file away, or remove the mount"
            yield about_file(relative(path, vault.namespace), "mount-shadows", message, hint)


def _check_own(vault: Vault) -> Iterator[Diagnostic]:
    yield from vault.config.unknown
    try:
        yield from vault.schemas.lint()
        yield from vault.templates.lint()
    except ConfigInvalid as error:
        yield about_error(error, error.path)


def find_same_ids(view: View) -> Iterator[tuple[str, list[str]]]:
    """Yield the ids that several memories have, each with these; in a site, those of one folder."""
    for ident, paths in view.same_ids():
        folders: dict[str, list[str]] = {}
        for path in paths:
            folders.setdefault(_find_site_folder(view, path), []).append(path)
        yield from ((ident, same) for same in folders.values() if len(same) > 1)


def _find_site_folder(around: Names, path: str) -> str:
    from mdmem.index.links.dialect import find_site  # noqa: PLC0415 - start-up

    return path[: path.rfind("/") + 1] if "Docusaurus" in find_site(around.layout, path).tools else ""


def check_id(around: View, document: Document) -> Iterator[Diagnostic]:
    """Report an `id` that another memory has as well."""
    ident = document.fields.get("id")
    is_name = isinstance(ident, str | int | float) and not around.vault.is_data(document)
    same = around.named("id", str(ident)) if is_name else ()
    folder = _find_site_folder(around, document.path) if same else ""
    others = [path for path in same if path != document.path and folder in ("", path[: path.rfind("/") + 1])]
    if others and document.tree:
        message = f"the id {ident!r} is also that of {first_of(others, _NAMED)}"
        hint = "give one of them another id"
        span = document.tree.nearest(("id",)).span
        related = tuple(Related(path, Span(0, 0), "it has the same id") for path in others[:_NAMED])
        found = document.diagnose(Flaw(span, "duplicate-id", message, hint, "id"), related)
        yield from tell_guests(around.vault, [found])


def drop_repeats(findings: Iterable[Diagnostic], further: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield further findings; leave out those with the code and line of an earlier one."""
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
