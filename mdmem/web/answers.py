"""What the page asks of the memories, and what it lets them do: each question is one function.

Every answer has a bound, and says what it leaves out. A path that comes back from the page is as it was shown
there: what cannot be seen in it is spelled out.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem import as_json, clipped
from mdmem.errors import LimitReached, MdmemError, MemoryNotFound, NeedsFolder
from mdmem.facade.shown import ShownText, exact_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mdmem import Applied
    from mdmem.editor.places import Leads
    from mdmem.facade.memory import Memory
    from mdmem.review.decisions import Reviewed, ReviewedRow

_MOST_ROWS = 1_000  # of a memory
_LONGEST_ROW = 20_000  # characters
_MOST_REVIEWED = 400_000  # characters of an answer
_LONGEST_TEXT = 200_000  # characters of a memory
_MOST_LISTED = 100
_MOST_SHOWN = 500  # characters of a line or message
_MOST_NAMED = 20  # paths of a change
_MOST_CHANGES = 500  # of a day
_MOST_ACTORS = 20  # of a day
_DAY = len("2024-01-31")
_EDITOR = "edit it in your editor"
_MOST_BOXES = 300
_WEEKS = 8
_DEEPEST = 3  # folders by which the rest is summed up


class Refusal(NamedTuple):
    """Why something was not done, and the memory as it is now, where that was decided about."""

    error: MdmemError
    memory: Any = None

    def json_shape(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        error = {
            name: clipped(getattr(self.error, name), _LONGEST_ROW) for name in ("code", "message", "hint")
        }
        return {"error": error, "memory": self.memory}


def _find_path(memory: Memory, shown: str) -> str:
    """Find the path that the page shows so; one that is written so goes first."""
    if "<U+" not in shown or memory.exists(shown):
        return shown
    return exact_name(shown)


# -- the review --------------------------------------------------------------------------------------------


def list_review(memory: Memory, limit: int = 40, after: str = "", path: str = "") -> Any:
    """List what differs from the last commit: all without `path`, behind the memory `after`."""
    empty: dict[str, Any] = {"needs": None, "memories": [], "left": 0, "rows": 0}
    paths = [_find_path(memory, path)] if path else []
    try:
        reviewed = memory.git.review(paths)
    except MemoryNotFound:
        return empty
    except MdmemError as error:
        return {**empty, "needs": Refusal(error).json_shape()["error"]}
    start = _find_path(memory, after).split("/") if after else []
    behind = [each for each in reviewed if each.path.split("/") > start]
    shown, room = list[Any](), _MOST_REVIEWED
    for each in behind[: max(1, limit)]:
        if room <= 0:
            break
        shape, used = _shape_reviewed(each, room)
        shown.append(shape)
        room -= used
    rows = sum(len(each.rows) for each in reviewed)
    return {"needs": None, "memories": shown, "left": len(behind) - len(shown), "rows": rows}


def _shape_reviewed(reviewed: Reviewed, room: int) -> tuple[dict[str, Any], int]:
    """Return a memory of the review as JSON, with the rows for which there is room; and what they take."""
    rows, used = list[Any](), 0
    for row in islice(reviewed.rows, _MOST_ROWS):
        if used > room:
            break
        rows.append(shape := _shape_row(row))
        used += sum(len(text) for _, text in shape["words"])
    return {
        **as_json(replace(reviewed, rows=())),
        "rows": rows,
        "rows_left": len(reviewed.rows) - len(rows),
    }, used


def _shape_row(row: ReviewedRow) -> dict[str, Any]:
    """Return a row as JSON: what it says in words that went, came and stayed, of a long one the beginning."""
    said = {name: getattr(row, name) for name in ("before", "after")}
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, default=str)
        for name, value in said.items()
    }
    long: dict[str, Any] = {
        name: text[:_LONGEST_ROW] for name, text in texts.items() if len(text) > _LONGEST_ROW
    }
    row = replace(row, **long) if long else row
    told = as_json(replace(row, before=None, after=None, path=""))
    shape = {
        name: value for name, value in told.items() if value not in ("", None, [], False) or name == "sure"
    }
    return {**shape, "words": [[*word] for word in row.words], "cut": bool(long)}


def _review_again(memory: Memory, paths: Iterable[str]) -> list[Any]:
    """List those of some memories that differ from the last commit now."""
    found = dict[str, Any]()
    for path in islice(dict.fromkeys(paths), _MOST_LISTED):
        with suppress(MdmemError):
            for each in memory.git.review([path]):
                found[each.path] = _shape_reviewed(each, _MOST_REVIEWED)[0]
    return [*found.values()]


def reject_rows(memory: Memory, path: str, rows: list[str]) -> Any:
    """Make rows what they are in the last commit; where that is refused, return the memory as it is now."""
    path = _find_path(memory, path)
    try:
        applied = memory.git.reject(path, rows)
    except MdmemError as error:
        return Refusal(error, next(iter(_review_again(memory, [path])), None))
    return _tell_applied(memory, applied, path)


def _tell_applied(memory: Memory, applied: Applied, path: str = "") -> dict[str, Any]:
    """Return the id of a change, what it touched, and what differs there now from the last commit."""
    touched = list(dict.fromkeys((*applied.plan.paths, *(file.path for file in applied.files))))
    memories = _review_again(memory, touched)
    own = next((each for each in memories if each["path"] == path), None)
    return {"id": applied.id, "touched": touched, "memories": memories, "memory": own}


def undo_change(memory: Memory, id: str) -> Any:  # noqa: A002 - its name everywhere else
    """Take back a change."""
    applied = memory.undo(id)
    return {"undone": id, **_tell_applied(memory, applied)}


def commit_accepted(memory: Memory, message: str, accepted: dict[str, list[str]]) -> Any:
    """Commit the memories of which every row is accepted."""
    named = {_find_path(memory, path): rows for path, rows in accepted.items()}
    return memory.git.commit(message, accepted=named)


# -- one memory --------------------------------------------------------------------------------------------


def show_memory(memory: Memory, path: str) -> Any:
    """Show a memory as it is written, with what is said of it, what leads here, and what was done to it."""
    path = _find_path(memory, path)
    document = memory.show(path)
    shown = ShownText(document.text)
    links = list[Any]()
    with suppress(NeedsFolder):  # where each leads is asked of an editor's folder
        links = [_shape_link(each, shown) for each in memory.editing().links(path)]
    backlinks = memory.references.backlinks(path)
    return {
        "path": path,
        "text": shown.text[:_LONGEST_TEXT],
        "cut": len(shown.text) > _LONGEST_TEXT,
        "hash": document.hash,
        "line_count": len(document.lines),
        "findings": memory.check([path])[:_MOST_LISTED],
        "links": [each for each in links if each["end"] <= _LONGEST_TEXT],
        "backlinks": [_show_line(memory, each.path, each.line) for each in backlinks[:_MOST_LISTED]],
        "backlinks_left": max(0, len(backlinks) - _MOST_LISTED),
        "history": memory.history(path)[:_MOST_LISTED],
        "uses": memory.uses.of(path),
    }


def _shape_link(link: Leads, shown: ShownText) -> dict[str, Any]:
    start, end = map(shown.find_shown, link.span)
    spot = link.spot
    line = spot.lines.position(spot.span.start).line if spot.lines and any(spot.span) else 0
    return {"start": start, "end": end, "target": shown.text[start:end], "line": line, "path": spot.path}


def _show_line(memory: Memory, path: str, line: int) -> dict[str, Any]:
    """Return a line of a memory, and where it is."""
    text = ""
    with suppress(MdmemError):
        text = memory.show(path).lines.content(line)
    return {"path": path, "line": line, "text": clipped(text.strip(), _MOST_SHOWN)}


def write_memory(memory: Memory, path: str, text: str, base: str) -> Any:
    """Write a memory whose text was changed in the page, if it is what the page has shown."""
    path = _find_path(memory, path)
    if len(text) > _LONGEST_TEXT:
        raise LimitReached(
            what="characters of a memory that the page edits", limit=_LONGEST_TEXT, remedy=_EDITOR
        )
    before = memory.show(path)
    exact = ShownText(before.text).take_back(text) if before.hash == base else text
    applied = memory.write(path, exact, base=base)
    return {**_tell_applied(memory, applied, path), "hash": memory.show(path).hash}


# -- search, proposals -------------------------------------------------------------------------------------


def search_memories(memory: Memory, query: str, limit: int = 20) -> Any:
    """Search the memories."""
    return memory.search(query, limit=min(max(limit, 1), _MOST_LISTED), context=0)


def list_proposals(memory: Memory) -> Any:
    """List the proposals that wait, each with what accepting it would change."""
    found = memory.inbox.list()
    shown = [memory.inbox.show(each.id) for each in found[:_MOST_LISTED]]
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
    days = dict[str, Counter[str]]()
    for entry in memory.history():
        if entry.time[:_DAY] > first:
            days.setdefault(entry.time[:_DAY], Counter())[entry.actor] += 1
    sizes = memory.sizes()
    rest = dict[str, list[int]]()
    for each in sizes[_MOST_BOXES:]:
        rest.setdefault("/".join(each.path.split("/")[:-1][:_DEEPEST]), []).append(each.tokens)
    folders = sorted(rest.items(), key=lambda each: -sum(each[1]))
    return {
        "status": memory.status(),
        "days": [
            {"day": day, "by": dict(counts.most_common(_MOST_ACTORS))} for day, counts in sorted(days.items())
        ],
        "boxes": [
            {"path": each.path, "tokens": each.tokens, "changed": each.modified, "dead": each.is_broken}
            for each in sizes[:_MOST_BOXES]
        ],
        "folders": [
            {"path": path, "tokens": sum(tokens), "memories": len(tokens)}
            for path, tokens in folders[:_MOST_BOXES]
        ],
    }


def list_day(memory: Memory, day: str) -> Any:
    """List the changes of a day in UTC, the newest first."""
    history = memory.history()
    last = {entry.subject: entry for entry in reversed(history)}
    found = [entry for entry in history if entry.time[:_DAY] == day]
    changes = [
        {
            "id": each.id,
            "when": each.time,
            "by": each.actor,
            "message": clipped(each.message, _MOST_SHOWN),
            "paths": [file.path for file in each.files[:_MOST_NAMED]],
            "paths_left": max(0, len(each.files) - _MOST_NAMED),
            "undoable": each.subject == each.id and not last[each.id].undoes and bool(each.files),
        }
        for each in found[:_MOST_CHANGES]
    ]
    return {"changes": changes, "left_out": len(found) - len(changes)}


def wait_for_change(memory: Memory, since: int = -1) -> Any:
    """Wait for what happens to memories; its arguments are those of the server's own."""


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
    ("GET", "day"): list_day,
    ("GET", "changes"): wait_for_change,
}
