"""Citations of code: which place one names, what became of it, and how it is written again.

What is cited is unchanged, moved, changed or gone since the citation was written. It is compared with what
was cited then. That says, in this order: the pin behind the citation; git, by the file in the commit that
last touched the citing line; what the index first saw. Lines are compared exactly, apart from their ends: a
change of indentation is a change. Where none of them saw it, what is not there is unknown, and never gone: a
text may name what it is about to make, or what is somewhere else. A Markdown link to it is dangling.

Where git has the whole file of then, its diff with the file of now says where the lines went. Lines that are
deleted by that are looked for by content, but only among lines that are new, so that an old copy elsewhere is
not taken for them, and only when there are enough letters and digits in them to tell them from others, as
`git blame -M` does. With a pin alone, any other place in the file with the same hash is where they moved to.
Several such places are ambiguous.
"""

from __future__ import annotations

import os
import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mdmem.document import relink
from mdmem.document.document import Document
from mdmem.document.edit import TextEdit
from mdmem.document.markdown.citation import names_code
from mdmem.document.text.regex import regex
from mdmem.index.code.cited_path import candidates, join_path
from mdmem.index.code.symbols import Symbol
from mdmem.index.code.workspace import Followed, LineMap, Source, Unread, Workspace, pin_of
from mdmem.vault.plan import Change, EditPlan, rewritten

if TYPE_CHECKING:
    from mdmem.document.markdown.inline import Citation
    from mdmem.index.view import View
    from mdmem.vault.vault import Vault


OK = "ok"
UNCHANGED = "unchanged"
MOVED = "moved"
CHANGED = "changed"
GONE = "gone"
DANGLING = "dangling"
AMBIGUOUS = "ambiguous"
UNKNOWN = "unknown"
ROUTE = "route"
"""Of a link: a page that a site makes of something else than a file of this name."""

# From the worst to the best: a reference is in the worst state of its places.
STATES = (DANGLING, GONE, CHANGED, AMBIGUOUS, MOVED, UNKNOWN, ROUTE, UNCHANGED, OK)
STALE = frozenset((GONE, CHANGED, MOVED))
BROKEN = STALE.union((DANGLING, AMBIGUOUS))


def code_of(state: str) -> str:
    """Return the code of a finding about a link or a citation in a state of `BROKEN`, or unknown."""
    if state == UNKNOWN:
        return "citation-unknown"
    return f"citation-{state}" if state in STALE else f"{state}-link"


_LOCATOR = regex(
    r"(?P<mark>[#:]L?)\d+(?P<column>,\d+)?(?:(?P<to>-L?)\d+(?P<last_column>,\d+)?)?",
    re.ASCII | re.IGNORECASE,
)


def lines_of(citation: Citation) -> tuple[int, int] | None:
    """Return the first and the last line that are cited, 1-based, in this order; None without any."""
    if citation.first is None:
        return None
    last = citation.first if citation.last is None else citation.last
    return min(citation.first, last), max(citation.first, last)


def path_of(workspace: Workspace, citing: str, citation: Citation) -> str | None:
    """Return the cited file, from the workspace; None for a path that leaves it.

    The destination of a link is taken relative to the memory first, and then, like any other citation, to the
    workspace; "/" in front of it stands for the workspace. What exists comes first, then what git says
    existed. A name without a folder that is neither is the file of that name beside the memory, or the one in
    the workspace.
    """
    possible = candidates(citing, citation.path, in_link=citation.in_link)
    named = namesakes(workspace, citing, citation) or ()
    if len(named) == 1:
        return named[0]
    if len(possible) > 1:
        for path in possible:
            if workspace.current(path) is not None:
                return path
        for path in possible:
            if workspace.follow(path).existed:
                return path
    return possible[-1] if possible else None


def namesakes(workspace: Workspace, citing: str, citation: Citation) -> tuple[str, ...] | None:
    """Return the files in other folders that a name without one may mean; as `Workspace.named`.

    None are where the workspace itself has a file of that name, or had it when the name was written.
    """
    name = citation.path
    if citation.in_link or "/" in name or workspace.current(name) is not None:
        return ()
    if beside := _find_beside(workspace, citing, citation):
        return (beside,)
    return () if _follow(workspace, citing, citation, name).existed else workspace.named(name)


def _find_beside(workspace: Workspace, citing: str, citation: Citation) -> str | None:
    """Return the file of a name beside the memory; None where the name meant another one."""
    name = citation.path
    beside = join_path(posixpath.dirname(citing), name)
    if beside is None or workspace.current(beside) is None:
        return None
    commit = workspace.commit_of(citing, citation.line) if workspace.follow(name).existed else None
    is_other = commit and workspace.then(commit, name) and not workspace.then(commit, beside)
    return None if is_other else beside


def _follow(workspace: Workspace, citing: str, citation: Citation, path: str) -> Followed:
    """Return what git says of a cited file that is gone.

    Many files are called `requirements.txt`: a name alone means the one that stood in the workspace only if
    it stood there in the commit that wrote the name.
    """
    followed = workspace.follow(path)
    is_bare = "/" not in citation.path and citation.first is None and not citation.symbol
    if citation.in_link or citation.pin or not is_bare or not followed.existed:
        return followed
    commit = workspace.commit_of(citing, citation.line)
    return followed if commit is None or workspace.then(commit, path) else Followed()


def path_to(workspace: Workspace, citing: str, citation: Citation, new: str) -> str:
    """Return the path that cites the file `new` of the workspace, in the style of `citation`.

    It is decoded: in a link it is still to be escaped.
    """
    cited = path_of(workspace, citing, citation)
    return citation.path if cited == new else spell_path(citation, citing, citing, cited, new)


def spell_path(citation: Citation, here: str, there: str, old: str | None, new: str) -> str:
    """Return the path that cites `new` in a memory at `there`, as `citation` cites `old` in one at `here`."""
    if not citation.in_link:
        return new
    if citation.path.startswith("/"):
        return f"/{new}"
    if old != join_path(posixpath.dirname(here), citation.path):
        return new
    path = posixpath.relpath(new, posixpath.dirname(there) or ".")
    return f"./{path}" if citation.path.startswith("./") and not path.startswith("../") else path


def locator(written: str, first: int, last: int) -> str:
    """Write a locator of lines in the style of `written`: `#L34-L47`, `#L34-47`, `:34-47`.

    Columns stay: lines that only moved have the same.
    """
    style = _LOCATOR.fullmatch(written)
    if style is None:
        return f"#L{first}" if first == last else f"#L{first}-L{last}"
    start = f"{style['mark']}{first}{style['column'] or ''}"
    if first == last and style["to"] is None:
        return start
    to = style["to"] or ("-L" if style["mark"][1:] else "-")
    return f"{start}{to}{last}{style['last_column'] or ''}"


_FIRST_SEEN = "first seen"
_LATE = "?"  # behind what was first seen of code that had been written since: nobody saw what was cited
_SHALLOW = (
    "this clone is shallow: nobody knows what became of code that was cited before it begins; "
    "`git fetch --unshallow` lets it be compared"
)
# What `git blame -M` asks for before it takes lines elsewhere for the same ones (its documentation).
_TELLING = 20
_LISTED = 5


class Judgement(NamedTuple):
    """What became of a citation.

    Attributes:
        state: "unchanged", "moved", "changed", "gone"; "ok" when it is there and nothing says what was cited;
            "ambiguous" when it may have moved to several places; "dangling" when a Markdown link leads to no
            file, and nothing says that there was one; "unknown" when nobody can tell.
        path: the cited file, from the workspace, under its newest name; as cited when it is refused.
        first, last: the lines, 1-based, both included: where they are now, or else as cited; None for a file
            as a whole, and where they are not known. Of a symbol, those of its first definition.
        reason: why, in words, for what is not "unchanged" or "ok".
        against: what it was compared with: "pin", "git 0123456789ab", "first seen"; empty for nothing.
        symbol: the name that a symbol has now, when it is another one; else empty.
    """

    state: str
    path: str
    first: int | None = None
    last: int | None = None
    reason: str = ""
    against: str = ""
    symbol: str = ""


class _Then(NamedTuple):
    """What was cited, when it was cited.

    Attributes:
        pin: of the lines; empty when they were not there, or cannot be told from the rest of the file.
        source: the whole file; None when only the pin is known.
        against: as in `Judgement`.
    """

    pin: str
    source: Source | None
    against: str


def judge(workspace: Workspace, citing: str, citation: Citation, seen: str = "") -> Judgement:
    """Judge what became of the code that `citation` cites.

    Args:
        citing: the memory, from the workspace; its lines are those on the disk.
        seen: what `pin` said when the citation was first seen; empty when it said nothing.
    """
    path = path_of(workspace, citing, citation)
    if path is None:
        return Judgement(UNKNOWN, citation.path, reason="it is outside of the workspace")
    lines = lines_of(citation)
    if lines and lines[0] < 1:
        return Judgement(UNKNOWN, path, reason="lines are counted from 1")
    judging = _Judging(workspace, citing, citation, path, seen)
    current = workspace.current(path)
    if current is not None:
        return judging.doubted(judging.judgement(current))
    followed = _follow(workspace, citing, citation, path)
    target = workspace.current(followed.path) if followed.path else None
    if target is None:
        return _judge_absent(judging, followed)
    return _judge_renamed(judging.judgement(target), followed.path or path, citation)


def _judge_absent(judging: _Judging, followed: Followed) -> Judgement:
    workspace, citing, citation, path, seen = judging
    first, last = lines_of(citation) or (None, None)
    named = namesakes(workspace, citing, citation)
    if named is None:
        reason = "there is no such file, and the workspace cannot be searched for its name"
        return Judgement(UNKNOWN, path, first, last, reason)
    if named:
        left_out = f" and {len(named) - _LISTED:,} others" if len(named) > _LISTED else ""
        reason = f"{len(named):,} files have this name: {', '.join(named[:_LISTED])}{left_out}"
        return Judgement(AMBIGUOUS, path, first, last, reason)
    deletion = followed.deletion
    reason = f"the file was deleted in {deletion[:12]}" if deletion else "there is no such file"
    was_there = followed.existed or citation.pin or seen
    never = DANGLING if citation.in_link else UNKNOWN
    return Judgement(GONE if was_there else never, path, first, last, reason)


def is_nowhere(workspace: Workspace, citation: Citation, judgement: Judgement) -> bool:
    """Return whether what is cited is not there, and never was as far as is known.

    A file that is not there is excused without a line or symbol, or without its folder: it may be another's.
    """
    if judgement.state != UNKNOWN or not (citation.symbol or citation.first):
        return False
    current = workspace.current(judgement.path)
    if current is None:
        path = join_path("", judgement.path)
        is_beside = path is not None and os.path.isdir(os.path.join(workspace.root, posixpath.dirname(path)))
        return is_beside and names_code(citation.path)
    if not isinstance(current, Source):
        return False
    return not _pin_for(current, citation) and not (citation.symbol and current.symbols.problem)


def pin_now(workspace: Workspace, citing: str, citation: Citation) -> str:
    """Return the pin of the cited code as it is now; empty when it is not there or cannot be read.

    It is what stands in a pin behind the citation. That of a symbol is of the lines of all its definitions,
    one after the other.
    """
    path = path_of(workspace, citing, citation)
    current = workspace.current(path) if path is not None else None
    return _pin_for(current, citation) if isinstance(current, Source) else ""


def _pin_for(source: Source, citation: Citation) -> str:
    if citation.symbol:
        defined = source.definition(citation.symbol)
        return pin_of(defined) if defined else ""
    lines = lines_of(citation)
    cited = source.cut(*lines) if lines else source.lines
    return "" if cited is None else pin_of(cited)


def _judge_renamed(judgement: Judgement, path: str, citation: Citation) -> Judgement:
    renamed = f"the file was renamed to {path}"
    reason = f"{renamed}; {judgement.reason}" if judgement.reason else renamed
    if judgement.state == OK and citation.first is not None:
        # The numbers are those of a file that nobody has seen.
        return Judgement(UNKNOWN, path, reason=f"{renamed}, and nothing says what was cited")
    state = MOVED if judgement.state in {OK, UNCHANGED} else judgement.state
    return judgement._replace(state=state, path=path, reason=reason)


class _Judging(NamedTuple):
    """The judging of one citation, of the file `path`; the others as `judge` takes them."""

    workspace: Workspace
    citing: str
    citation: Citation
    path: str
    seen: str

    def judgement(self, current: Source | Unread) -> Judgement:
        """Return what became of it, in the cited file or in the one that it was renamed to."""
        citation, lines = self.citation, lines_of(self.citation)
        first, last = lines or (None, None)
        whole = lines is None and not citation.symbol
        if isinstance(current, Unread):
            if whole and current.inside and not citation.pin:
                return Judgement(OK, self.path)
            return Judgement(UNKNOWN, self.path, first, last, current.reason)
        if whole and not citation.pin:
            return Judgement(OK, current.path)
        if citation.pin and _pin_for(current, citation) == citation.pin:
            first, last = lines or current.place(citation.symbol) or (None, None)
            return Judgement(UNCHANGED, current.path, first, last, against="pin")
        if whole:
            return Judgement(CHANGED, current.path, reason="the file is not what was pinned", against="pin")
        return self._judge_lines(current, *lines) if lines else self._judge_symbol(current)

    def doubted(self, judgement: Judgement) -> Judgement:
        """Return unknown for what is unchanged since it was first seen, where that may have been too late."""
        if judgement.state != UNCHANGED or judgement.against != _FIRST_SEEN:
            return judgement
        if self.seen.endswith(_LATE):
            reason = "the code was written after the memory, and nobody saw what it was before"
            return judgement._replace(state=UNKNOWN, reason=reason)
        if not self.workspace.is_cut_off(self.citing, self.citation.line):
            return judgement
        if _SHALLOW not in self.workspace.notes:
            self.workspace.notes.append(_SHALLOW)
        return judgement._replace(state=UNKNOWN, reason="it was written before this shallow clone begins")

    def find_then(self) -> _Then | None:
        workspace, citation = self.workspace, self.citation
        commit = workspace.commit_of(self.citing, citation.line)
        source = workspace.then(commit, self.path) if commit else None
        cited = _pin_for(source, citation) if source else ""
        # A symbol has no pin where its language cannot be parsed; the file as a whole may still be the same.
        if not citation.pin and commit and source and (cited or citation.symbol):
            return _Then(cited, source, f"git {commit[:12]}")
        known = citation.pin or self.seen.removesuffix(_LATE)
        if not known:
            return None
        against = "pin" if citation.pin else _FIRST_SEEN
        # Any commit will do in which the lines are what they were then.
        if source is None or cited != known:
            source = workspace.then(workspace.head, self.path) if workspace.head else None
        return _Then(known, source if source and _pin_for(source, citation) == known else None, against)

    # -------------------------------------------------------------------------------------------- symbols

    def _judge_symbol(self, current: Source) -> Judgement:
        symbol = self.citation.symbol
        then = self.find_then()
        against = then.against if then else ""
        place = current.place(symbol)
        if place is None:
            return self._judge_undefined(then, current)
        if then is None or not then.pin:
            return Judgement(OK, current.path, *place)
        if pin_of(current.definition(symbol)) == then.pin:
            return Judgement(UNCHANGED, current.path, *place, against=against)
        return Judgement(CHANGED, current.path, *place, f"{symbol} was changed", against)

    def _judge_undefined(self, then: _Then | None, current: Source) -> Judgement:
        symbol, problem = self.citation.symbol, current.symbols.problem
        against = then.against if then else ""
        old = then.source if then else None
        renamed = self._renamed_symbol(old, current) if old else None
        if renamed:
            reason = f"now {renamed.name}"
            return Judgement(MOVED, current.path, renamed.first, renamed.last, reason, against, renamed.name)
        if problem and old and old.data == current.data:
            return Judgement(UNCHANGED, current.path, against=against)
        if problem:
            return Judgement(UNKNOWN, current.path, reason=problem, against=against)
        if then is None or not then.pin:
            reason = f"the file defines no {symbol}, and is not known to have done so"
            return Judgement(UNKNOWN, current.path, reason=reason, against=against)
        return Judgement(GONE, current.path, reason=f"the file defines no {symbol}", against=against)

    def _renamed_symbol(self, old: Source, current: Source) -> Symbol | None:
        """Find the symbol that the same lines define now, as when their class was renamed."""
        place = old.place(self.citation.symbol)
        first = self.workspace.line_map(old, current).moved(*place) if place else None
        if place is None or first is None:
            return None
        last = first + place[1] - place[0]
        same = (symbol for symbol in current.symbols.found if (symbol.first, symbol.last) == (first, last))
        return next(same, None)

    # ---------------------------------------------------------------------------------------------- lines

    def _judge_lines(self, current: Source, first: int, last: int) -> Judgement:
        then = self.find_then()
        if then is not None and then.source is not None:
            return self._judge_by_source(then, then.source, current, first, last)
        if then is not None:
            return self._judge_by_pin(then, current, first, last)
        if last <= len(current.lines):
            return Judgement(OK, current.path, first, last)
        return Judgement(UNKNOWN, current.path, first, last, _describe_end(current))

    def _judge_by_pin(self, then: _Then, current: Source, first: int, last: int) -> Judgement:
        if _pin_for(current, self.citation) == then.pin:
            return self._judge_unchanged(then, current, [first], first, last)
        places = current.pinned_places(then.pin, last - first + 1)
        if places:
            return self._judge_unchanged(then, current, places, first, last)
        if first > len(current.lines):
            return Judgement(GONE, current.path, first, last, _describe_end(current), then.against)
        reason = (
            "the lines are others" if places is not None else "the lines are others, too many to search for"
        )
        # Where they would be now is not known.
        return Judgement(CHANGED, current.path, first, min(last, len(current.lines)), reason, then.against)

    def _judge_by_source(self, then: _Then, old: Source, current: Source, first: int, last: int) -> Judgement:
        line_map = self.workspace.line_map(old, current)
        content = old.lines[first - 1 : last]
        moved = line_map.moved(first, last)
        if moved is not None:
            return self._judge_unchanged(then, current, [moved], first, last)
        if current.cut(first, last) == content:
            return self._judge_unchanged(then, current, [first], first, last)
        start, end = line_map.successor(first, last)
        places = _new_places(line_map, current, content)
        if places:
            nearest = min(abs(place - start) for place in places)
            near = [place for place in places if abs(place - start) == nearest]
            return self._judge_unchanged(then, current, near if len(near) == 1 else places, first, last)
        was_blank = not any(map(str.strip, content))
        if any(was_blank or line.strip() for line in current.lines[start - 1 : end]):
            return Judgement(CHANGED, current.path, start, end, "the lines were changed", then.against)
        return Judgement(GONE, current.path, first, last, "the lines were deleted", then.against)

    def _judge_unchanged(
        self, then: _Then, current: Source, places: Sequence[int], first: int, last: int
    ) -> Judgement:
        more = last - first
        if len(places) > 1:
            listed = ", ".join(_describe_lines(place, place + more) for place in places[:_LISTED])
            left_out = f" and {len(places) - _LISTED} others" if len(places) > _LISTED else ""
            reason = f"the same lines stand in {len(places)} places: {listed}{left_out}"
            return Judgement(AMBIGUOUS, current.path, first, last, reason, then.against)
        place = places[0]
        if place == first:
            return Judgement(UNCHANGED, current.path, first, last, against=then.against)
        reason = f"now {_describe_lines(place, place + more)}"
        return Judgement(MOVED, current.path, place, place + more, reason, then.against)


def _new_places(line_map: LineMap, current: Source, content: Sequence[str]) -> list[int]:
    """Return where `content` stands in lines that are mostly new."""
    if sum(character.isalnum() for line in content for character in line) < _TELLING:
        return []
    telling = [number for number, line in enumerate(content) if line.strip()]
    places = []
    for place in current.places(content):
        kept = sum(line_map.old_line(place + number) is not None for number in telling)
        if kept * 2 < len(telling):
            places.append(place)
    return places


def _describe_end(current: Source) -> str:
    return f"the file has {len(current.lines):,} lines"


def _describe_lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


class _Judged(NamedTuple):
    """A citation of a memory, the memory's file seen from the workspace, and what became of it."""

    document: Document
    citation: Citation
    citing: str
    judgement: Judgement


Edits = Callable[[Workspace, _Judged], Iterator[TextEdit]]


def repointed(view: View, paths: Collection[str] | None = None) -> EditPlan:
    """Return the plan that makes every citation of code that has moved say where it is now."""
    return keep_stale(view, _make_plan(view, paths, _edit_moved, "re-point citations"))


def keep_stale(view: View, plan: EditPlan) -> EditPlan:
    """Return a plan that also pins what was cited in the lines that it rewrites, where that is stale.

    A line that is rewritten would say of the code as it is now that it is what was cited.
    """
    with Workspace.of(view.vault, view.unsaved) as workspace:
        changes = tuple(
            each._replace(edits=(*each.edits, *_pin_stale(view, workspace, each))) for each in plan.changes
        )
    return plan._replace(changes=changes)


def _pin_stale(view: View, workspace: Workspace, change: Change) -> Iterator[TextEdit]:
    document = change.before
    if document is None or not change.edits or not document.citations:
        return
    number, edits = document.lines.number, sorted(change.edits)
    touched = {line for edit in edits for line in range(number(edit.start), number(edit.end) + 1)}
    citing, seen = view.in_workspace(document.path), view.first_seen(document.path)
    for citation in document.citations:
        if citation.pin or citation.line not in touched:
            continue
        begin, start, end = citation.span.start, citation.locator_span.start, citation.pin_span.end
        near = edits[max(bisect_left(edits, (begin,)) - 1, 0) : bisect_left(edits, (end + 1,))]
        if any(edit.end > start for edit in near):  # its lines or its symbol are written again
            continue
        known = seen.get((citation.path, citation.first, citation.last, citation.symbol), "")
        state = judge(workspace, citing, citation, known).state
        is_led = any(edit.end > begin for edit in near)
        if state in STALE and not (state == MOVED and is_led):  # which says where it is now
            path = path_of(workspace, citing, citation) or ""
            then = _Judging(workspace, citing, citation, path, known).find_then()
            if then and then.pin:
                yield TextEdit(*citation.pin_span, f"<!-- pin {then.pin} -->")


def pinned(view: View, paths: Collection[str] | None = None, *, accept: bool = False) -> EditPlan:
    """Return the plan that puts a pin behind every citation of lines or of a symbol that has none.

    Args:
        accept: also renew the pins of changed code, and point at the code as it is now: somebody has read
            it, and the citation still holds.
    """

    def edits(workspace: Workspace, judged: _Judged) -> Iterator[TextEdit]:
        _, citation, citing, judgement = judged
        fits = (OK, UNCHANGED, UNKNOWN, *((CHANGED,) if accept else ()))
        if judgement.state not in fits or not (citation.first or citation.symbol):
            return
        if judgement.state == UNKNOWN and workspace.is_cut_off(citing, citation.line):
            return  # it may be stale already
        if judgement.state == CHANGED:
            # What has been read is what stands there now.
            yield from _repoint(workspace, judged)
            if citation.first is not None:
                citation = citation._replace(first=judgement.first, last=judgement.last)
            citation = citation._replace(path=path_to(workspace, citing, citation, judgement.path))
        pin = pin_now(workspace, citing, citation)
        if pin and pin != citation.pin:
            yield TextEdit(*citation.pin_span, f"<!-- pin {pin} -->")

    return _make_plan(view, paths, edits, "pin citations")


def _edit_moved(workspace: Workspace, judged: _Judged) -> Iterator[TextEdit]:
    if judged.judgement.state == MOVED:
        yield from _repoint(workspace, judged)


def _repoint(workspace: Workspace, judged: _Judged) -> Iterator[TextEdit]:
    document, citation, citing, judgement = judged
    path = path_to(workspace, citing, citation, judgement.path)
    if path != citation.path:
        yield relink.repath(citation, document.text, path)
    if citation.symbol and judgement.symbol and judgement.symbol != citation.symbol:
        yield TextEdit(*citation.locator_span, f"#{judgement.symbol}")
    elif citation.first is not None and judgement.first is not None:
        written = document.text[slice(*citation.locator_span)]
        new = locator(written, judgement.first, judgement.last or judgement.first)
        if new != written:
            yield TextEdit(*citation.locator_span, new)


def _make_plan(view: View, paths: Collection[str] | None, edits: Edits, message: str) -> EditPlan:
    left_out: list[str] = []
    with Workspace.of(view.vault, view.unsaved) as workspace:

        def edits_of(path: str, document: Document) -> list[TextEdit]:
            citing, seen = view.in_workspace(path), view.first_seen(path)
            made: list[TextEdit] = []
            for citation in document.citations:
                known = seen.get((citation.path, citation.first, citation.last, citation.symbol), "")
                judgement = judge(workspace, citing, citation, known)
                made += edits(workspace, _Judged(document, citation, citing, judgement))
            return made

        changes = rewritten(view.read, view.citing(paths), edits_of, left_out)
    return EditPlan(changes=tuple(changes), message=message if changes else "", left_out=tuple(left_out))


@contextmanager
def pinning(vault: Vault) -> Iterator[Callable[[str, Citation], str]]:
    """Says, in a context, what an index keeps of a citation when it first sees it; see `pin_now`."""
    with Workspace.of(vault) as workspace:
        yield lambda citing, citation: _pin_seen(workspace, citing, citation)


def _pin_before(workspace: Workspace, citing: str, citation: Citation) -> str:
    """Return the pin of what was cited; where the code was written after the memory, that is the head's."""
    pin, path = pin_now(workspace, citing, citation), path_of(workspace, citing, citation)
    if not pin or path is None or not workspace.is_newer(path, citing):
        return pin
    then = workspace.then(workspace.head, path) if workspace.head else None
    return (_pin_for(then, citation) if then else "") or f"{pin}{_LATE}"


def _pin_seen(workspace: Workspace, citing: str, citation: Citation) -> str:
    """Return what is kept of a citation: its pin; of a whole file only where it is plainly there.

    Whole files are cited by the thousand in prose: git and the rest of the workspace are not asked for each.
    """
    if citation.first is not None or citation.symbol:
        return _pin_before(workspace, citing, citation)
    possible = candidates(citing, citation.path, in_link=citation.in_link)
    found = map(workspace.current, possible)
    return next((_pin_for(each, citation) for each in found if isinstance(each, Source)), "")
