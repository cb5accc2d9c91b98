"""References: everything that memories point at, and whether it is still there and still what it was."""

from __future__ import annotations

import os
import posixpath
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mdmem.diagnostic import Diagnostic, Related, Severity, Span
from mdmem.document import anchor, relink
from mdmem.document.document import ANY_SUFFIXES, EMBEDDED, MARKDOWN_SUFFIXES, Document
from mdmem.document.markdown.citation import Citation
from mdmem.document.text.regex import regex
from mdmem.document.tree import Flaw
from mdmem.errors import CANNOT_READ
from mdmem.index.code.citations import (
    AMBIGUOUS,
    CHANGED,
    DANGLING,
    GONE,
    MOVED,
    OK,
    ROUTE,
    STATES,
    UNKNOWN,
    Judgement,
    code_of,
    is_nowhere,
    judge,
    path_of,
)
from mdmem.index.code.cited_path import candidates
from mdmem.index.code.symbols import CLASS, FUNCTION, VARIABLE
from mdmem.index.code.workspace import Source, Workspace
from mdmem.index.database import key_of, tag_key
from mdmem.index.links import move
from mdmem.index.links.dialect import LABEL_FIRST, PART, SITE, UNWRITTEN, find_site, is_note_of, makes_anchors
from mdmem.index.links.names import ChangedNames, Names
from mdmem.index.links.resolve import (
    NOTHING,
    PATH_KINDS,
    QUIET_KINDS,
    Resolution,
    drop_walled,
    kept_link,
    leads_to_route,
    place_of,
    resolve,
    resolve_link,
    turn_link,
    turn_links,
    without_places,
)
from mdmem.vault.paths import is_under

if TYPE_CHECKING:
    from mdmem.document.markdown.link import Link
    from mdmem.index.view import Anchors, LoadedNames, View


NOTE, HEADING, BLOCK, TAG, URL = "note", "heading", "block", "tag", "url"
FILE, LINES = "file_path", "line_range"
SYMBOL = "symbol"  # of a file that cannot be parsed
TYPES = (NOTE, HEADING, BLOCK, TAG, URL, FILE, LINES, FUNCTION, CLASS, VARIABLE, SYMBOL)
SYMBOLS = (FUNCTION, CLASS, VARIABLE, SYMBOL)
CODE = (FILE, LINES, *SYMBOLS)
LINKS = (NOTE, HEADING, BLOCK)
AMBIGUOUS_LINK = code_of(AMBIGUOUS)
_COMMENT = "%%"
_BEFORE_LIST = (":", "-", ",", "[")  # of YAML: `up: [[X]]` is a list in a list
_AMBIGUOUS_HINT = "name its folder, or its id"
# How many lines a reference of Dendron leaves out at its beginning or end: `#a,1:#b`; all to the end: `*`.
_LEFT_OUT = regex(r",[0-9]{1,9}\Z|\A\*\Z")
_CITED_LINES = regex(
    r"(?P<path>[^#]+)(?:#L?|:)(?P<first>[1-9][0-9]{0,8})(?:-L?(?P<last>[1-9][0-9]{0,8}))?", re.IGNORECASE
)


class ReferencePlace(NamedTuple):
    """Where a reference stands, and what became of it, as seen from there.

    Attributes:
        path: the memory.
        line: the 1-based line.
        state: one of `STATES`.
        detail: why, in words; empty when all is well.
    """

    path: str
    line: int
    state: str
    detail: str = ""

    @property
    def code(self) -> str:
        """The code of the finding about what is broken there."""
        return code_of(self.state)


class Occurrence(NamedTuple):
    """One reference at one place.

    `day` is the memory's, `written` the target as it stands there, and `kind` that of a link in its text.
    `unwritten` says that it is a page that nobody has written yet, which some tools do not call broken, and
    `nowhere` that it cites code that is not there and never was; see `is_nowhere`.
    """

    type: str
    target: str
    place: ReferencePlace
    day: str
    written: str
    kind: str = ""
    unwritten: bool = False
    nowhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Something that memories point at.

    Attributes:
        type: one of `TYPES`.
        target: what is pointed at: a memory with its anchor, a URL, `#tag`, a file with its lines or symbol.
        places: where, in the order of path and line.
        first_seen: the day of the earliest memory that points at it, `YYYY-MM-DD`.
        last_seen: the day of the latest.
    """

    JSON: ClassVar = ("type", "target", "state", "count", "first_seen", "last_seen", "places")

    type: str
    target: str
    places: tuple[ReferencePlace, ...]
    first_seen: str
    last_seen: str

    @property
    def state(self) -> str:
        """The worst state of its places."""
        return min((place.state for place in self.places), key=STATES.index)

    @property
    def count(self) -> int:
        """In how many places it is pointed at."""
        return len(self.places)

    @property
    def memories(self) -> tuple[str, ...]:
        """The memories that point at it."""
        return tuple(dict.fromkeys(place.path for place in self.places))


class ReferenceStats(NamedTuple):
    """References in numbers: how many different ones, how many places, and both by type and by state."""

    total: int
    places: int
    by_type: Mapping[str, int]
    by_state: Mapping[str, int]
    most_cited: tuple[tuple[str, int], ...]

    def json_shape(self) -> dict[str, Any]:
        """Return the numbers as a JSON object."""
        return {
            **self._asdict(),
            "most_cited": [{"target": target, "count": count} for target, count in self.most_cited],
        }


class Backlink(NamedTuple):
    """A link to a memory: where it stands, as what, with which anchor, and whether it is ambiguous."""

    path: str
    line: int
    kind: str
    anchor: str
    alias: str
    ambiguous: bool


def shown_lines(first: int | None, last: int | None) -> str:
    """Lines as a target names them: `#L3`, `#L3-L9`; empty without any."""
    if first is None:
        return ""
    return f"#L{first}" if last in {None, first} else f"#L{first}-L{last}"


def lookup_key(target: str) -> str:
    """Return a target in the form in which references are compared.

    Lines are written as `list` writes them.
    """
    key = target.removeprefix("./")
    cited = _CITED_LINES.fullmatch(key)
    if cited and "://" not in key:
        first, last = int(cited["first"]), int(cited["last"] or cited["first"])
        key = f"{cited['path']}{shown_lines(first, last)}"
    return key.casefold()


def is_named(occurrence: Occurrence, wanted: str) -> bool:
    """Return whether what stands there can be looked up by a key."""
    if not wanted:
        return False
    names = occurrence.target.casefold(), occurrence.written.casefold()
    if wanted in names or occurrence.type == URL:
        return wanted in names
    if occurrence.type == TAG:
        return wanted == names[0].removeprefix("#")
    wanted_ends = tuple(f"/{wanted}{suffix}" for suffix in ("", *MARKDOWN_SUFFIXES))
    for name in names:
        path, _, part = name.partition("#")
        ends = [path, name] if occurrence.type != HEADING else [path]
        if any(f"/{end}".endswith(wanted_ends) for end in ends):
            return True
        if part == wanted and occurrence.type in SYMBOLS:
            return True
    return False


def gathered(occurrences: Iterable[Occurrence]) -> tuple[Reference, ...]:
    """Return one reference for each type and target."""
    by_target: dict[tuple[int, str], list[Occurrence]] = {}
    for occurrence in occurrences:
        by_target.setdefault((TYPES.index(occurrence.type), occurrence.target), []).append(occurrence)
    return tuple(
        Reference(
            type=same[0].type,
            target=target,
            places=tuple(sorted(occurrence.place for occurrence in same)),
            first_seen=min(occurrence.day for occurrence in same),
            last_seen=max(occurrence.day for occurrence in same),
        )
        for (_, target), same in sorted(by_target.items())
    )


def counted(references: Collection[Reference]) -> ReferenceStats:
    """References in numbers; of those in most places, ten."""
    counts = [(reference.target, reference.count) for reference in references]
    most_cited = sorted(counts, key=lambda pair: (-pair[1], pair[0]))
    return ReferenceStats(
        total=len(references),
        places=sum(count for _, count in counts),
        by_type=dict(sorted(Counter(reference.type for reference in references).items())),
        by_state=dict(sorted(Counter(reference.state for reference in references).items())),
        most_cited=tuple(most_cited[:10]),
    )


_FEW = 20
_NAMED = 4  # of the memories that a link may mean
_REMEMBERED = 1 << 16


def backlinks(view: View, path: str) -> tuple[Backlink, ...]:
    """Return the links to the memory at `path`, in the order of path and line."""
    names = view.all_names
    links = []
    for key in view.keys_of(path):
        for source, line, kind, target, mark, alias in view.links_with(key):
            link = turn_link(names, kept_link(kind, target, mark, alias), source)
            meant = resolve_link(names, link, source) if target else NOTHING
            if path in meant.candidates:
                shown = link.alias if kind == "wikilink" else alias
                links.append(Backlink(source, line, kind, link.anchor, shown, meant.ambiguous))
    return tuple(sorted(links))


def occurrences(
    view: View,
    *,
    types: Collection[str] = (),
    paths: Collection[str] | None = None,
    links: LinkJudge | None = None,
) -> Iterator[Occurrence]:
    """Yield every reference at every place, by kind of reference.

    Within one, in the order of path and line. `links` judges those of `view`, where more is asked of them.
    """
    wanted = frozenset(types or TYPES)
    pointing: list[Iterator[Occurrence]] = []
    if wanted & {NOTE, HEADING, BLOCK, FILE}:
        pointing.append(_link_occurrences(view, paths, links or LinkJudge(view, names_for(view, paths))))
    if wanted.intersection(CODE):
        pointing.append(_citation_occurrences(view, paths))
    yield from (occurrence for occurrence in chain(*pointing) if occurrence.type in wanted)
    if TAG in wanted:
        names = {tag_key(name): f"#{name}" for name, _ in view.tags()}
        for path, day, line, name, key in _find_rows(view, "tags", "x.line, x.name, x.key", paths):
            yield Occurrence(TAG, names[key], ReferencePlace(path, line, OK), day, f"#{name}")
    if URL in wanted:
        for path, day, line, url in _find_rows(view, "urls", "x.line, x.url", paths):
            yield Occurrence(URL, url, ReferencePlace(path, line, OK), day, url)


def unresolved(around: View, links: Iterable[Occurrence]) -> Iterator[Diagnostic]:
    """Yield the findings about links of each memory that has a broken one."""
    broken, repairs = (DANGLING, AMBIGUOUS), find_repairs(around, around.all_names)
    judge = LinkJudge(around, around.all_names)
    for path in dict.fromkeys(link.place.path for link in links if link.place.state in broken):
        with suppress(*CANNOT_READ):  # which is reported elsewhere
            yield from check_links(around, around.read(path), repairs, judge)


def find_repairs(around: View, names: Names | None = None) -> move.Repairs:
    """Return what `doctor --fix` would do with links; `names` are those of `around`, if they are loaded."""
    known = move.known(around)._replace(names=names or around)
    return move.Repairs(known, around.moves())


def check_links(
    around: View, document: Document, repairs: move.Repairs, judge: LinkJudge | None = None
) -> Iterator[Diagnostic]:
    """Yield what is wrong with the links of a memory: nothing is there, or more than one thing is meant.

    `repairs` are those of `find_repairs`; one `judge` serves many memories.
    """
    targets: dict[int, tuple[str, bool]] | None = None
    judge = judge or LinkJudge(around, around)
    is_data = around.vault.is_data(document)
    for link in () if is_data else turn_links(judge.names, document, document.path):
        if link.kind == "reference":  # its definition says where it leads
            continue
        meant = judge.resolve(link, document.path)
        judged = judge.judge(link, document.path, meant)
        if judged.state == DANGLING and _may_lead_nowhere(document, link, link.span.start):
            continue
        if judged.state not in {DANGLING, AMBIGUOUS}:
            continue
        is_anchor = judged.state == DANGLING and meant.path
        span = link.anchor_span if is_anchor else link.target_span
        hint, code, target = _AMBIGUOUS_HINT, AMBIGUOUS_LINK, ""
        if judged.state == DANGLING:
            if targets is None:
                targets = repairs.find_targets(document) if repairs.moved else {}
            target, has_moved = targets.get(link.target_span.start, ("", False))
            code, hint = code_of(DANGLING), _NO_TARGET
            elsewhere = "" if is_anchor else _find_elsewhere(around, judge.names, link, document.path)
            hint = f"{elsewhere} has this name: link to it, or make one here" if elsewhere else hint
            if target and not is_anchor:
                what = "it has moved to" if has_moved else "this memory has moved, and the link means"
                hint = f"{what} {target}: `mdmem doctor --fix`"
            elif not (is_anchor or elsewhere) and (gone := find_gone(around, document.path, link)):
                hint = f"{gone} is gone: bring it back, or remove the link"
        others = meant.candidates if judged.state == AMBIGUOUS else ()
        related = tuple(Related(path, Span(0, 0), "it may mean this") for path in others[:_NAMED])
        is_new = not target and _is_unwritten(around, document, link, judged, meant)
        severity: Severity = "note" if is_new else "warning"
        yield document.diagnose(Flaw(span, code, judged.detail, hint, link.target, severity), related)


def _is_unwritten(
    around: View, document: Document, link: Link, judged: JudgedLink, meant: Resolution
) -> bool:
    is_name = judged.state == DANGLING and meant.path is None and relink.is_wikilink(link, document.text)
    return (
        is_name
        and not EMBEDDED.search(link.target)
        and UNWRITTEN in find_site(around.layout, document.path).traits
        and not find_gone(around, document.path, link)
    )


def _find_elsewhere(around: View, names: Names, link: Link, source: str) -> str:
    key = key_of(link.target)
    for layer, view in around.layers() if key else ():
        there = view.all_names if layer.name else names
        spelled = (there.named("stem", f"{key}{suffix}") for suffix in ("", *view.vault.suffixes))
        near = next(filter(None, spelled), ())
        if found := drop_walled(near, "" if layer.name else source):
            return layer.shown(view.outside(found[0])) if layer.name else found[0]
    return ""


def find_ambiguous(names: Names, document: Document) -> Iterator[Diagnostic]:
    """Yield the links that may mean several memories, of one that need not be in the vault yet."""
    for link in document.links:
        meant = resolve_link(names, link, document.path)
        if meant.ambiguous and link.kind != "reference":  # its definition says where it leads
            others = _name_others(meant)
            flaw = Flaw(link.target_span, AMBIGUOUS_LINK, others, _AMBIGUOUS_HINT, link.target, "warning")
            yield document.diagnose(flaw)


def check_citations(around: View, document: Document, workspace: Workspace) -> Iterator[Diagnostic]:
    """Yield the citations of code that has moved, was changed or is gone since they were written.

    What nothing says was ever there is reported where `is_nowhere`, but not of guests. One `workspace` serves
    many memories.
    """
    citations = document.citations
    if not citations:
        return
    seen, citing = around.first_seen(document.path), around.in_workspace(document.path)
    for citation in citations:
        known = seen.get((citation.path, citation.first, citation.last, citation.symbol), "")
        judgement = _look_for_route(
            around, document.path, citation, judge(workspace, citing, citation, known)
        )
        if judgement.state == UNKNOWN and not (
            is_nowhere(workspace, citation, judgement) and not around.vault.is_guest(document.path)
        ):
            continue
        if judgement.state not in _HINTS:
            continue
        _, detail, locator = _describe_citation(citation, judgement, workspace)
        place = f"{citation.path}{locator}"
        message = f"{place}: {detail or judgement.reason}"
        hint = _HINTS[judgement.state]
        flaw = Flaw(
            citation.span, code_of(judgement.state), message, hint, place, _SEVERITIES[judgement.state]
        )
        yield document.diagnose(flaw)


def _look_for_route(around: View, path: str, citation: Citation, judgement: Judgement) -> Judgement:
    """Return the judgement of a citation in the memory at `path`; no file may be the address of one."""
    if judgement.state == DANGLING and find_site(around.layout, path).tools:
        link = kept_link("markdown", citation.path)
        is_found = resolve_link(around, link, path).path or leads_to_route(around, link, path)
        if is_found or _is_of_no_tool(around, path, link.kind):
            return judgement._replace(state=ROUTE)
    return judgement


_NO_TARGET = "make it, or remove the link"
_HINTS = {
    DANGLING: _NO_TARGET,
    MOVED: "re-point it: `mdmem refs --fix`",
    CHANGED: "read what it says again, then `mdmem refs --pin --accept`",
    GONE: "cite what took its place, or remove it",
    UNKNOWN: "correct its name or number",
}


_SEVERITIES: dict[str, Severity] = {
    DANGLING: "warning",
    MOVED: "note",
    CHANGED: "note",
    GONE: "warning",
    UNKNOWN: "note",
}


def _find_rows(
    view: View, table: str, columns: str, paths: Collection[str] | None
) -> Iterator[tuple[Any, ...]]:
    read = partial(view.part_rows, table, f"d.path, d.day, {columns}")
    if paths is None:
        rows = read("ORDER BY d.path, x.n")
    else:
        rest = "AND d.path = ? ORDER BY x.n"
        rows = [row for path in sorted(paths) for row in read(rest, (view.outside(path),))]
    return ((view.inside(path), *others) for path, *others in rows)


def names_for(view: View, paths: Collection[str] | None) -> View | LoadedNames:
    """Return what to ask for names: all of them at once, but for links of a few memories."""
    return view.all_names if paths is None or len(paths) > _FEW else view


def _link_occurrences(view: View, paths: Collection[str] | None, judge: LinkJudge) -> Iterator[Occurrence]:
    for path, day, line, kind, *said, at in _find_rows(
        view, "links", "x.line, x.kind, x.target, x.anchor, x.alias, x.start", paths
    ):
        row = turn_link(judge.names, kept_link(kind, *said), path)
        meant, unwritten = judge.resolve(row, path), False
        judged = judge.judge(row, path, meant)
        if judged.state == DANGLING:
            with suppress(*CANNOT_READ):  # which is told elsewhere
                document = judge.read(path)
                is_none = _may_lead_nowhere(document, row, at)
                judged = judged._replace(state=UNKNOWN) if is_none else judged
                links = (each for each in document.links if each.span.start == at)
                link = next(links, row) if row.kind == "field" else row
                unwritten = _is_unwritten(view, document, link, judged, meant)
        written = f"{row.target}#{row.anchor}" if row.anchor else row.target
        place = ReferencePlace(path, line, judged.state, judged.detail)
        yield Occurrence(judged.type, judged.goal, place, day, written, kind, unwritten)


def _may_lead_nowhere(document: Document, link: Link, at: int) -> bool:
    """Return whether a dead link is no error: it is in a comment of Obsidian, or may not be a link at all.

    It may be a list in the frontmatter, a half of `[[1]](path)`, or a definition that nothing uses.
    """
    text = document.text
    if link.kind == "definition":
        used = {each.target_span for each in document.links if each.kind == "reference"}
        return not any(each.span.start == at and each.target_span in used for each in document.links)
    if at < document.body_span.start:
        return text.startswith("[[", at) and text[max(0, at - 80) : at].rstrip(" ")[-1:] in _BEFORE_LIST
    if text.startswith("[[", at) and text.startswith("](", text.find("]", at) + 1):
        return link.kind == "wikilink" or not {".", "/"}.intersection(link.target)
    if text.count(_COMMENT) < 2:  # noqa: PLR2004 - one opens it, one ends it
        return False
    code, end = (Span(0, 0), *document.code), len(text)
    found = (sign.start() for sign in re.finditer(_COMMENT, text))
    signs = [sign for sign in found if code[bisect(code, (sign, end)) - 1].end <= sign]
    before = bisect(signs, at)
    return before % 2 == 1 and before < len(signs)


class JudgedLink(NamedTuple):
    """What a link leads to.

    Attributes:
        type: one of `NOTE`, `HEADING`, `BLOCK` and `FILE`.
        goal: what it leads to, as `Reference.target`.
        state: `OK`, `DANGLING` or `AMBIGUOUS`; `ROUTE` where a site may make it, `UNKNOWN` where nothing has
            to be there.
        detail: why, in words; empty when all is well.
    """

    type: str
    goal: str
    state: str = OK
    detail: str = ""


class LinkJudge:
    """What links mean and lead to. What many of them ask is found out once: `names` are loaded for many."""

    def __init__(self, around: View, names: View | LoadedNames) -> None:
        self.names = names
        self.read = lru_cache(maxsize=_FEW)(around.read)
        self._around = around
        self._mounted = names.layout.mounted
        remembered = lru_cache(maxsize=_REMEMBERED)
        self._resolve = remembered(partial(resolve_link, names))
        self._miss = remembered(partial(_judge_anchor, self.read, remembered(names.anchors)))

    def resolve(self, link: Link, path: str) -> Resolution:
        """Return what a link in the memory at `path` means, behind `turn_link`."""
        if not link.target:
            return Resolution(path, (path,), "self")
        # It is the same in any memory of a folder, unless the file stands elsewhere or its address counts.
        by_address = link.kind in PATH_KINDS and not link.target.endswith(MARKDOWN_SUFFIXES)
        is_alike = path not in self._mounted and not by_address
        asked = without_places(self.names, link, path)
        return self._resolve(asked, f"{path[: path.rfind('/') + 1]}_" if is_alike else path)

    def judge(self, link: Link, path: str, meant: Resolution) -> JudgedLink:
        """Return what a link in the memory at `path` leads to, where its target means `meant`."""
        around = self._around
        kind, target, mark = link.kind, link.target, link.anchor
        file = meant.path if meant.rule == "attachment" and not meant.ambiguous else None
        if meant.path is None and (kind in PATH_KINDS or kind == "field"):
            file = (file_beside if kind in PATH_KINDS else file_named)(around, path, target)
        if meant.path is None and file is None:
            file = find_unread(around, path, target, as_path=kind in PATH_KINDS)
        if file is not None:
            return JudgedLink(FILE, file)
        type_ = (BLOCK if mark.startswith("^") else HEADING) if mark else NOTE
        if meant.path is None:
            has_suffix = bool(posixpath.splitext(target)[1]) and not target.endswith(ANY_SUFFIXES)
            detail = f"there is no memory{' or file' if has_suffix else ''} {target!r}"
            state = _judge_broken(around, path, link, meant, self.read)
            return JudgedLink(type_, f"{target}#{mark}" if mark else target, state, detail)
        goal = f"{meant.path}#{mark}" if mark else meant.path
        if mark and meant.path.endswith(MARKDOWN_SUFFIXES):
            is_range = LABEL_FIRST in find_site(around.layout, path).traits
            marks = [_LEFT_OUT.sub("", each) for each in mark.split(":#")] if is_range else [mark]
            found = (self._miss(meant.path, each) for each in marks if each)
            detail = next(filter(None, found), "")
            if detail:
                return JudgedLink(type_, goal, _judge_broken(around, path, link, meant, self.read), detail)
        if meant.ambiguous:
            return JudgedLink(type_, goal, AMBIGUOUS, _name_others(meant))
        return JudgedLink(type_, goal)


def _judge_broken(
    around: View, path: str, link: Link, meant: Resolution, read: Callable[[str], Document]
) -> str:
    if link.kind in QUIET_KINDS or _is_of_no_tool(around, path, link.kind):
        return UNKNOWN
    if meant.path is None:
        is_path = link.kind in PATH_KINDS or link.kind == "field" or "*" in link.target
        return ROUTE if is_path and leads_to_route(around, link, path) else DANGLING
    site = find_site(around.layout, meant.path)
    with suppress(*CANNOT_READ):  # which is told elsewhere
        text = read(meant.path).text if SITE in site.traits else ""
        parts = (resolve(around, part[1], meant.path, as_path=True).path for part in PART.finditer(text))
        if any(part is None or anchor.find(read(part), link.anchor) for part in parts):
            return ROUTE
        if SITE in site.traits and makes_anchors(site, meant.path, text, link.target):
            return ROUTE
    return DANGLING


def _is_of_no_tool(around: View, path: str, kind: str) -> bool:
    site = find_site(around.layout, path)
    if UNWRITTEN in site.traits and not is_note_of(site, around.layout.file_of(path)):
        return True
    if kind == "wikilink":  # a site around the vault is none of its own
        is_own = is_under(site.folder, around.layout.folder) or around.vault.is_guest(path)
        return SITE in site.traits and UNWRITTEN not in site.traits and is_own
    tools = {"ref": ("Hugo", "Jekyll"), "block": ("Logseq",)}.get(kind)
    return tools is not None and site.traits.isdisjoint(tools)


def _name_others(meant: Resolution) -> str:
    return f"it may also mean {', '.join(meant.candidates[1:_NAMED])}"


def _citation_occurrences(view: View, paths: Collection[str] | None) -> Iterator[Occurrence]:
    columns = "x.line, x.path, x.first, x.last, x.symbol, x.pin, x.in_link, x.seen"
    rows = list(_find_rows(view, "citations", columns, paths))
    if not rows:
        return
    in_workspace = lru_cache(maxsize=1)(view.in_workspace)
    with Workspace.of(view.vault, view.unsaved) as workspace:
        for path, day, line, cited, first, last, symbol, pin, in_link, seen in rows:
            citation = Citation(cited, first, last, symbol, line=line, pin=pin, in_link=bool(in_link))
            citing = in_workspace(path)
            judgement = _look_for_route(view, path, citation, judge(workspace, citing, citation, seen))
            place = ReferencePlace(path, line, judgement.state, judgement.reason)
            file = path_of(workspace, citing, citation) or cited
            judged = _judge_citation(place, day, citation, judgement, file, workspace)
            yield judged._replace(nowhere=is_nowhere(workspace, citation, judgement))


def file_beside(view: View, path: str, target: str) -> str | None:
    """Find the file of the workspace that a Markdown destination means, if it is no memory.

    Nothing in the vault is meant so: the namespace has its own links, and around it is a wall.
    """
    place = place_of(target, view.in_workspace(path))
    file = os.path.join(view.vault.workspace, place or "")
    if not place or not (os.path.exists(file) or place in view.left_out):
        return None
    return None if is_under(os.path.realpath(file), os.path.realpath(view.vault.root)) else place


def file_named(view: View, path: str, target: str) -> str | None:
    """Return the file of the workspace that a field of a memory names, seen from there or from the memory."""
    return file_beside(view, path, f"/{target}") or file_beside(view, path, target)


def find_unread(around: View, path: str, target: str, *, as_path: bool = False) -> str | None:
    """Find the file that a link in the memory at `path` means and that cannot be read as a memory."""
    names = ChangedNames(around, added=around.unread)
    return resolve(names, target, path, as_path=as_path).path if around.unread else None


def find_gone(around: View, path: str, link: Link) -> str | None:
    """Find what a link in the memory at `path` meant before that was moved or deleted."""
    if ("stem", key_of(link.target)) not in around.gone:
        return None
    return resolve_link(ChangedNames(around, added=around.gone), link, path).path


def _judge_anchor(
    read: Callable[[str], Document], find_anchors: Callable[[str], Anchors], path: str, mark: str
) -> str:
    """Return why an anchor names nothing in a memory; empty where it does.

    Of headings that have it in common the first one is meant, as in every reader.
    """
    anchors = find_anchors(path)
    if mark.startswith("^"):
        return "" if mark[1:].casefold() in anchors.blocks else f"{path} has no block {mark}"
    if anchor.match(anchors.headings, mark):
        return ""
    with suppress(*CANNOT_READ):  # which is told elsewhere
        if anchor.find(read(path), mark):
            return ""
    return f"{path} has no heading {mark!r}"


def _judge_citation(
    place: ReferencePlace, day: str, citation: Citation, judgement: Judgement, path: str, workspace: Workspace
) -> Occurrence:
    type_, detail, locator = _describe_citation(citation, judgement, workspace)
    if detail:
        place = place._replace(detail=detail)
    return Occurrence(type_, f"{path}{locator}", place, day, f"{citation.path}{locator}")


def _describe_citation(
    citation: Citation, judgement: Judgement, workspace: Workspace
) -> tuple[str, str, str]:
    type_, locator, now = FILE, "", ""
    if citation.symbol:
        current = workspace.current(judgement.path)
        defined = current.symbols.named(citation.symbol) if isinstance(current, Source) else ()
        type_, locator = defined[0].kind if defined else SYMBOL, f"#{citation.symbol}"
        now = f"#{judgement.symbol or citation.symbol}"
    elif citation.first is not None:
        type_, locator = LINES, shown_lines(citation.first, citation.last)
        now = shown_lines(judgement.first, judgement.last)
    moved = f"moved to {judgement.path}{now}" if judgement.state == MOVED else ""
    return type_, moved, locator


def files_of(view: View, memories: Collection[str] | None = None) -> dict[str, set[str]]:
    """Return the absolute paths of the files that memories, or some of them, point at: code, images.

    Also those where a file would be, if it came. A memory that points at no file is left out.
    """
    by_memory: dict[str, set[str]] = {}
    root, workspace = os.path.join(view.vault.root, view.base), view.vault.workspace
    with Workspace.of(view.vault) as looked_at:
        for path, _, cited, in_link in dict.fromkeys(
            _find_rows(view, "citations", "x.path, x.in_link", memories)
        ):
            files = candidates(view.in_workspace(path), cited, in_link=bool(in_link))
            is_bare = not in_link and "/" not in cited
            if is_bare and not os.path.lexists(os.path.join(workspace, cited)):
                files += looked_at.named(cited) or ()
            for file in files:
                by_memory.setdefault(path, set()).add(os.path.join(workspace, file))
    for path, _, target, kind in dict.fromkeys(_find_rows(view, "links", "x.target, x.kind", memories)):
        if not posixpath.splitext(target)[1] or target.endswith(view.vault.suffixes):
            continue
        places = {
            os.path.join(root, place) for start in ("", "/") if (place := place_of(start + target, path))
        }
        if kind in PATH_KINDS and (place := place_of(target, view.in_workspace(path))):
            places.add(os.path.join(workspace, place))
        by_memory.setdefault(path, set()).update(places)
    return by_memory
