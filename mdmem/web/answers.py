"""What the page asks of the memories, and what it lets them do: each question is one function.

Every answer has a bound, and says what it leaves out. A path that comes back from the page is as it was shown
there: what cannot be seen in it is spelled out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from mdmem import as_json, clipped
from mdmem.errors import LimitReached, MdmemError, MemoryNotFound, NeedsFolder, Usage
from mdmem.facade.shown import ShownText, exact_name
from mdmem.memory.references import Wrong

if TYPE_CHECKING:
    from mdmem import Applied, Span
    from mdmem.facade.memory import Memory
    from mdmem.review.decisions import Reviewed, ReviewedRow

_MOST_ROWS = 1_000  # of a memory
_LONGEST_ROW = 20_000  # characters
_MOST_REVIEWED = 400_000  # characters of an answer
_LONGEST_TEXT = 200_000  # characters of a memory
_LONGEST_LINE = 500  # characters of a line or message
_FEW, _MOST, _MANY = 20, 100, 300  # entries: in one line; in a list beside others; in a list alone
_DEEPEST = 3  # folders by which the smaller memories are summed up
_WEEKS, _DAY = 8, len("2024-01-31")
_DEAD = {"dangling-link", "citation-gone"}


class Refusal(NamedTuple):
    """Why something was not done, and what else is told: of a decision, the memory as it is now."""

    error: MdmemError
    told: Mapping[str, Any] = {}

    def json_shape(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        message, hint = (clipped(each, _LONGEST_ROW) for each in (self.error.message, self.error.hint))
        return {"error": {"code": self.error.code, "message": message, "hint": hint}, **self.told}


def _find_path(memory: Memory, shown: str) -> str:
    """Find the path that the page shows so; one that is written so goes first."""
    return shown if "<U+" not in shown or memory.exists(shown) else exact_name(shown)


# -- the review --------------------------------------------------------------------------------------------


def list_review(memory: Memory, limit: int = 40, after: str = "", path: str = "") -> Any:
    """List what differs from the last commit: of one memory, or of those behind the memory `after`."""
    reviewed, needs, settings = list["Reviewed"](), None, ""
    try:
        reviewed = found = memory.git.review([_find_path(memory, path)] if path else [])
        settings = found.settings
    except MdmemError as error:
        needs = None if isinstance(error, MemoryNotFound) else Refusal(error).json_shape()["error"]
    start = _find_path(memory, after).split("/") if after else []
    behind = [each for each in reviewed if each.path.split("/") > start]
    shown, used = list[Any](), 0
    for each in behind[: max(1, limit)]:
        if used < _MOST_REVIEWED:
            shown.append(_shape_reviewed(each))
            used += sum(len(text) for row in shown[-1]["rows"] for _, text in row["words"])
    told = {"left": len(behind) - len(shown), "rows": sum(len(each.rows) for each in reviewed)}
    return {"needs": needs, "settings": settings, "memories": shown, **told}


def _shape_reviewed(reviewed: Reviewed) -> dict[str, Any]:
    """Return a memory of the review as JSON, with the rows for which there is room: one at least."""
    rows, used = list[Any](), 0
    for row in islice(reviewed.rows, _MOST_ROWS):
        if used < _MOST_REVIEWED:
            rows.append(_shape_row(row))
            used += sum(len(text) for _, text in rows[-1]["words"])
    return {**as_json(replace(reviewed, rows=())), "rows": rows, "rows_left": len(reviewed.rows) - len(rows)}


def _shape_row(row: ReviewedRow) -> dict[str, Any]:
    """Return a row as JSON: what it says in words that went, came and stayed, cut where it is long."""
    long: dict[str, Any] = {}
    for name in ("before", "after"):
        value = getattr(row, name)
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        if len(text) > _LONGEST_ROW:
            long[name] = text[:_LONGEST_ROW]
    row = replace(row, **long)
    told = as_json(replace(row, before=None, after=None, path=""))
    shape = {
        name: value for name, value in told.items() if name == "sure" or value not in ("", None, [], False)
    }
    return {**shape, "words": [[*word] for word in row.words], "cut": bool(long)}


def _review_again(memory: Memory, paths: Iterable[str]) -> list[Any]:
    wanted, found = {*paths}, list["Reviewed"]()
    with suppress(MdmemError):
        found = memory.git.review([*wanted] if len(wanted) == 1 else [])
    again = (each for each in found if not wanted.isdisjoint({each.path, each.old_path}))
    return [_shape_reviewed(each) for each in islice(again, _MOST)]


def reject_rows(memory: Memory, path: str, rows: list[str]) -> Any:
    """Make rows what they are in the last commit; where that is refused, return the memory as it is now."""
    path = _find_path(memory, path)
    try:
        return _tell_applied(memory, memory.git.reject(path, rows), path)
    except MdmemError as error:
        return Refusal(error, {"memory": next(iter(_review_again(memory, [path])), None)})


def _tell_applied(memory: Memory, applied: Applied, path: str = "") -> dict[str, Any]:
    """Return the id of a change, what it touched, and what differs there now from the last commit."""
    touched = list(dict.fromkeys((*applied.plan.paths, *(file.path for file in applied.files))))
    memories = _review_again(memory, touched)
    own = next((each for each in memories if each["path"] == path), None)
    return {"id": applied.id, "touched": touched[:_MOST], "memories": memories, "memory": own}


def undo_change(memory: Memory, id: str) -> Any:  # noqa: A002 - its name everywhere else
    """Take back a change."""
    return {"undone": id, **_tell_applied(memory, memory.undo(id))}


def commit_accepted(memory: Memory, message: str, accepted: dict[str, list[str]]) -> Any:
    """Commit the memories with all their rows accepted."""
    named = {_find_path(memory, path): rows for path, rows in accepted.items()}
    done = memory.git.commit(message, accepted=named)
    told = {"files": len(done.files), "left_out": done.left_out[:_MOST], "notes": done.notes[:_MOST]}
    return {"commit": done.commit, "branch": done.branch, **told}


# -- one memory --------------------------------------------------------------------------------------------


def show_memory(memory: Memory, path: str) -> Any:
    """Show a memory as it is written, with what is said of it, what leads here, and what was done to it."""
    document = memory.show(path := _find_path(memory, path))
    shown, findings = ShownText(document.text), memory.check([path])[:_MOST]
    links: list[tuple[Span, Any]] = [(each.span, {"dead": True}) for each in findings if each.code in _DEAD]
    with suppress(NeedsFolder):  # an editor's folder says where each leads
        for span, spot in memory.editing().links(path):
            line = spot.lines.number(spot.span.start) if spot.lines else 1
            links += [(span, {"path": spot.path, "line": line})] if spot.path else []
    backlinks = memory.references.backlinks(path)
    return {
        "path": path,
        "text": shown.text[:_LONGEST_TEXT],
        "cut": len(shown.text) > _LONGEST_TEXT,
        "hash": document.hash,
        "line_count": len(document.lines),
        "findings": findings,
        "links": [*_place_links(shown, links)],
        "backlinks": [_show_line(memory, each.path, each.line) for each in backlinks[:_MOST]],
        "backlinks_left": max(0, len(backlinks) - _MOST),
        "history": _shape_changes(memory, path)[:_MOST],
        "uses": memory.uses.of(path),
    }


def _place_links(shown: ShownText, links: list[tuple[Span, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield links by their places in the text that is shown, none in another."""
    reached = 0
    for (start, end), told in sorted(links, key=itemgetter(0)):
        first, last = shown.find_shown(start), shown.find_shown(end)
        if reached <= first < last <= _LONGEST_TEXT:
            yield {"start": first, "end": last, **told}
            reached = last


def _show_line(memory: Memory, path: str, line: int) -> dict[str, Any]:
    text = ""
    with suppress(MdmemError):
        text = memory.show(path).lines.content(line)
    return {"path": path, "line": line, "text": clipped(text.strip(), _LONGEST_LINE)}


def write_memory(memory: Memory, path: str, text: str, base: str) -> Any:
    """Write a text that was changed in the page, if the memory is still as the page has shown it."""
    before = ShownText(memory.show(path := _find_path(memory, path)).text)
    if len(before.text) > _LONGEST_TEXT:
        what = "characters of a memory that the page can edit"
        raise LimitReached(what=what, limit=_LONGEST_TEXT, remedy="edit it in your editor")
    applied = memory.write(path, before.take_back(text), base=base)
    return {**_tell_applied(memory, applied, path), "hash": memory.show(path).hash}


def search_memories(memory: Memory, query: str, limit: int = 20) -> Any:
    """Search the memories."""
    return memory.search(query, limit=min(max(limit, 1), _MOST), context=0)


def list_proposals(memory: Memory) -> Any:
    """List the proposals that wait, each with what accepting it would change."""
    found = memory.inbox.list()
    shown = (memory.inbox.show(each.id) for each in found[:_MOST])
    cut = [replace(each, diff=clipped(each.diff, _LONGEST_ROW)) for each in shown]
    return {"proposals": cut, "left_out": len(found) - len(cut)}


def accept_proposal(memory: Memory, id: str, base: str = "") -> Any:  # noqa: A002 - as above
    """Do what is proposed, and remove the proposal."""
    return _tell_applied(memory, memory.inbox.accept(id, base=base or None))


def reject_proposal(memory: Memory, id: str, base: str = "") -> Any:  # noqa: A002 - as above
    """Say no to a proposal."""
    return _tell_applied(memory, memory.inbox.reject(id, base=base or None))


# -- the overview ------------------------------------------------------------------------------------------


def show_overview(memory: Memory) -> Any:
    """Show what there is: the status, who wrote when, and the memories by their size."""
    first = (datetime.now(UTC) - timedelta(weeks=_WEEKS)).date().isoformat()
    days, folders = defaultdict[str, Counter[str]](Counter), defaultdict[str, list[int]](list)
    for entry in memory.history():
        if entry.time[:_DAY] > first:
            days[entry.time[:_DAY]][entry.actor] += 1
    sizes = memory.sizes()
    for each in sizes[_MANY:]:
        folders["/".join(each.path.split("/")[:-1][:_DEEPEST])].append(each.tokens)
    sums: list[dict[str, Any]] = [
        {"path": path, "tokens": sum(each), "memories": len(each)} for path, each in folders.items()
    ]
    return {
        "status": memory.status(),
        "days": [{"day": day, "by": dict(days[day].most_common(_FEW))} for day in sorted(days)],
        "boxes": sizes[:_MANY],
        "folders": sorted(sums, key=lambda each: -each["tokens"])[:_MANY],
    }


def list_items(memory: Memory, what: str) -> Any:
    """List what a figure of the overview counts: memories, or one of what `status` counts as wrong."""
    found = list[tuple[str, int, str]]()
    if what == "memories":
        found += [(each.path, 1, each.title or "") for each in memory.ls(sort="-modified", long=True)]
    elif what in get_args(Wrong):
        wrong = (each for name, each in memory.references.wrong() if name == what)
        found += [(each.place.path, each.place.line, f"{each.target}: {each.place.detail}") for each in wrong]
    else:
        remedy = f"give memories, {', '.join(get_args(Wrong))}"
        raise Usage(problem=f"no figure is called {what!r}", remedy=remedy)
    items = [
        {"path": path, "line": line, "text": clipped(text, _LONGEST_LINE)}
        for path, line, text in found[:_MANY]
    ]
    return {"items": items, "left_out": len(found) - len(items)}


def list_day(memory: Memory, day: str) -> Any:
    """List the changes of a day in UTC, the newest first."""
    found = [each for each in _shape_changes(memory) if each["when"][:_DAY] == day]
    return {"changes": found[:_MANY], "left_out": max(0, len(found) - _MANY)}


def _shape_changes(memory: Memory, path: str | None = None) -> list[dict[str, Any]]:
    """Return the changes to memories, or to one, as JSON, the newest first; which of them can be undone."""
    history = memory.history(path)
    last = {entry.subject: entry for entry in reversed(history)}
    named = ([file.path for file in each.files[:_FEW]] for each in history)
    return [
        {"id": each.id, "when": each.time, "by": each.actor, "message": clipped(each.message, _LONGEST_LINE)}
        | {"paths": paths, "paths_left": len(each.files) - len(paths)}
        | {"undoable": bool(paths) and each.subject == each.id and not last[each.id].undoes}
        for each, paths in zip(history, named, strict=True)
    ]


def wait_for_change(memory: Memory, since: int = -1) -> Any:
    """Wait for what happens to memories: the server does so."""


QUESTIONS: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("GET", "review"): list_review,
    ("POST", "reject"): reject_rows,
    ("POST", "undo"): undo_change,
    ("POST", "commit"): commit_accepted,
    ("GET", "memory"): show_memory,
    ("POST", "memory"): write_memory,
    ("GET", "search"): search_memories,
    ("GET", "proposals"): list_proposals,
    ("POST", "proposals/accept"): accept_proposal,
    ("POST", "proposals/reject"): reject_proposal,
    ("GET", "overview"): show_overview,
    ("GET", "list"): list_items,
    ("GET", "day"): list_day,
    ("GET", "changes"): wait_for_change,
}
