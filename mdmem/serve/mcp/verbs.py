"""What the tools do: each function is a tool, with its arguments and its description for the model.

Each calls one verb of the façade, and bounds its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from mdmem import as_json, clipped, find_section
from mdmem.errors import MdmemError, PathRefused, Usage, show_name
from mdmem.facade.kinds import Kinds
from mdmem.facade.paths import GROW, NEW, READ_ANY, READ_MESSAGE, READ_OTHER, WRITE, WRITE_ANY, Role
from mdmem.kind import KINDS, PROPOSAL, WORKING, Kind, kind_at
from mdmem.memory.verbs import Listed
from mdmem.serve.mcp import sessions
from mdmem.serve.mcp.answer import (
    AS_JSON,
    Answer,
    Bound,
    answer_page,
    clipped_to,
    fit,
    name_tools,
    page_of_lines,
    short_hash,
)
from mdmem.serve.mcp.argument import Count, Fields, Number, Positive, Texts

if TYPE_CHECKING:
    from mdmem import Applied, Document, EditPlan, Hit, Reference

Verb = Callable[[Kinds[Any]], Any]

PAGE = 20
# Characters of a line in a listing of lines; more than a hit shows of a line that was too long for it.
_LINE = 600
_MOST_PAGE = 1_000
_MOST_FILES = 50


def remembered_kinds(kinds: Iterable[Kind]) -> tuple[str, ...]:
    """Return the names of the kinds that `remember` keeps."""
    return tuple(sorted(kind.name for kind in kinds if kind.is_remembered))


Within = Annotated[str, Field(description="folder, memory, sessions/KEY, or sessions/*")]
Where = Annotated[Literal["replace", "append", "before", "after"], Field(description="default replace")]
Base = Annotated[str | None, Field(description="hash that you read")]


# -- reading ------------------------------------------------------------------------------------------------


def context(
    call: Bound,
    query: Annotated[str, Field(description="the task")] = "",
    files: Annotated[Texts, Field(description="only rules about these")] = (),
    thread: str | None = None,
    budget: Annotated[Positive, Field(description="tokens")] = 4000,
) -> Answer:
    """Return what you should know before you begin.

    Rules, project memory, preferences, pinned notes, working memory, and passages that fit a query.
    """
    call.sync()
    found = call.memory.context(query, files, call.resolve_thread(thread), min(budget, call.budget))
    call.count_uses(place.partition("#")[0] for part in found.parts for place in part.places)
    data = as_json(found._replace(left_out=found.left_out[:PAGE]))
    text = found.text or "there is nothing to know yet"
    return Answer((text,), {**data, "total_left_out": len(found.left_out)})


def search(
    call: Bound,
    query: str,
    within: Within = "",
    types: Texts = (),
    tags: Texts = (),
    since: Annotated[str, Field(description="2026, 2026-01 or 2026-01-31")] = "",
    before: str = "",
    where: Texts = (),
    any_state: Annotated[bool, Field(description="also superseded, over, expired")] = False,
    as_of: Annotated[str, Field(description="what counted then")] = "",
    limit: Positive = 10,
    offset: Number = 0,
) -> Answer:
    """Find the memories that match some words best, each with its best lines.

    Use it for a question or a topic. Words, "phrases", prefix*, -not, tag: type: path:.
    """
    if sessions.is_session(call, within):
        sessions.refuse_options(types=types, tags=tags, where=where, any_state=any_state, as_of=as_of)
        return sessions.search(call, within, query, since, before, limit, offset)
    call.sync()
    within = call.paths.resolve(within, READ_ANY)
    most = offset + min(limit, _MOST_PAGE)
    results = call.memory.search(
        query,
        within=within,
        types=types,
        tags=tags,
        since=since,
        before=before,
        limit=most,
        where=where,
        any_state=any_state,
        as_of=as_of,
    )
    # Why words alone count may name a file of this machine.
    plain = "meaning: words alone"
    told = (plain if call.say and note.startswith("meaning:") else note for note in results.notes)
    notes = [f"[{note}]" for note in told]
    if not results.hits and (only := call.memory.searched_alone(within, widely=True)):
        notes.append(f"[{only}]")
    if said := call.memory.sessions.count_fitting(query, call.thread, len(results.hits)):
        notes.append(f"[at most {said:,} messages of conversations fit: search within=sessions/*]")
    return _answer_hits(call, results.hits[offset:], offset, results.left_out, notes)


def grep(
    call: Bound,
    pattern: str,
    within: Within = "",
    globs: Texts = (),
    where: Texts = (),
    regex: bool = False,
    context: Annotated[Number, Field(description="lines around")] = 0,
    limit: Positive = PAGE,
    offset: Number = 0,
) -> Answer:
    """Find every line that holds a text exactly, or matches a regular expression.

    Use it for a name or an identifier, or to find every place.
    """
    if sessions.is_session(call, within):
        sessions.refuse_options(globs=globs, where=where)
        return sessions.grep(call, within, pattern, regex, limit, offset)
    within = call.paths.resolve(within, READ_ANY)
    most = offset + min(limit, _MOST_PAGE)
    hits = call.memory.grep(
        pattern,
        within=within,
        globs=globs,
        where=where,
        regex=regex,
        context=min(context, PAGE),
        limit=most,
    )
    try:
        found = []
        for hit in hits:
            call.tick(0, 0)
            found.append(hit)
    finally:
        hits.close()
    left_out = found[-1].left_out if found else 0
    notes = [f"[{note}]" for note in hits.notes]
    if not found and (only := call.memory.searched_alone(within)):
        notes.append(f"[{only}]")
    notes += [f"[{finding.path or 'a folder'}: {finding.message}]" for finding in hits.findings]
    if left_out >= hits.most_counted:
        notes.append(f"[counting ended at {left_out:,}]")
    return _answer_hits(call, found[offset:], offset, left_out, notes)


def ls(
    call: Bound,
    within: Within = "",
    globs: Texts = (),
    where: Texts = (),
    sort: Annotated[str, Field(description="field; -field: largest first")] = "",
    target: Annotated[str, Field(description="memory, #tag, URL, file or symbol: its backlinks")] = "",
    stale: Annotated[bool, Field(description="only cited code that moved, changed or is gone")] = False,
    limit: Positive = 200,
    offset: Number = 0,
) -> Answer:
    """List memories with their hashes; or what links to and cites a target.

    where: conditions on frontmatter such as type=note or created>=2026-01.
    """
    within = call.paths.resolve(within, READ_ANY)
    if target or stale:
        if globs or where or sort:
            remedy = "give only within, limit and offset with target or stale"
            raise Usage(problem="globs, where and sort are about memories, not about links", remedy=remedy)
        target = call.paths.resolve(target, READ_OTHER)
        return _list_references(call, target, within, stale, limit, offset)
    if where or sort:
        call.sync()
    paths = [within] if within.endswith(call.memory.suffixes) else []
    listed = call.memory.ls("" if paths else within, paths=paths, globs=globs, where=where, sort=sort)
    memories = [each for each in listed if not each.problem]
    found = memories[offset : offset + min(limit, _MOST_PAGE)]
    read = ((each, _read_memory(call, each.path)) for each in found)
    judged = (
        (each, short_hash(document.hash), call.memory.state_of(each.path)) if document else (each, "", "")
        for each, document in read
    )
    lines = ((each, _format_listed(*each)) for each in judged)
    taken = fit(lines, call.budget // AS_JSON)
    problems = [f"{each.path}: {each.problem}" for each in listed if each.problem]
    data = {
        "memories": [
            {"path": each.path, "hash": digest, "size": each.size} | ({"state": state} if state else {})
            for (each, digest, state), _ in taken
        ],
        "total": len(memories),
        "problems": problems[:PAGE],
    }
    notes = [*listed.unknown.values()]
    data |= {"notes": notes} if notes else {}
    tail = [f"[{note}]" for note in notes] + [f"[cannot be a memory: {each}]" for each in problems[:PAGE]]
    return answer_page(data, [text for _, text in taken], offset, len(memories) - offset - len(taken), tail)


def _list_references(call: Bound, target: str, within: str, stale: bool, limit: int, offset: int) -> Answer:
    call.sync()
    options: dict[str, Any] = {"paths": [within] if within else None, "stale": stale}
    known = call.memory.references
    found = known.lookup(target, **options) if target else known.list(**options)
    wanted = found[offset : offset + min(limit, _MOST_PAGE)]
    taken = fit(((each, _format_reference(each)) for each in wanted), call.budget // AS_JSON)
    left_out = len(found) - offset - len(taken)
    data = {"references": [_reference_shape(each) for each, _ in taken], "total": len(found)}
    return answer_page(data, [text for _, text in taken], offset, left_out, ())


def show(
    call: Bound,
    path: str,
    heading: Annotated[str, Field(description="only this section")] = "",
    line: Annotated[Positive, Field(description="from here on")] = 1,
    limit: Annotated[Positive, Field(description="lines")] = 0,
    column: Annotated[Positive, Field(description="of a long line")] = 1,
) -> Answer:
    """Read a memory, or one section of it, with its hash.

    Or sessions/KEY#12, what was said; or result:HASH, what a tool printed.
    """
    if sessions.is_session(call, path):
        return sessions.show(call, path, line, limit, column)
    if path.startswith(sessions.RESULT):
        return sessions.show_result(call, path, line, limit, column)
    document = call.memory.show(call.paths.resolve(path, READ_MESSAGE))
    call.count_uses([document.path])
    first, last = _lines_of(document, heading)
    first = max(first, line)
    if first > max(last, 1):
        raise Usage(problem=f"line is {line}; the last one is {last}", remedy="give a smaller line")
    texts = (document.text[slice(*document.lines.span(number))] for number in range(first, last + 1))
    page, tail = page_of_lines(texts, last + 1 - first, (first, limit, column), call.budget)
    digest, shown = short_hash(document.hash), first + page.pop("shown")
    # A section is read without the frontmatter, which says whether all of it counts.
    state = call.memory.state_of(document.path) if heading else ""
    head = f"{document.path}  hash {digest}  lines {first}-{shown - 1} of {len(document.lines)}"
    head += f"  {state}" if state else ""
    data = {"path": document.path, "hash": digest, "lines": len(document.lines), **page}
    data |= {"state": state} if state else {}
    return Answer(tuple(filter(None, (head, page["text"], tail))), data)


def _lines_of(document: Document, heading: str) -> tuple[int, int]:
    if not heading:
        return 1, len(document.lines)
    start, end = find_section(document, heading).span
    return document.lines.number(start), document.lines.number(max(start, end - 1))


def _read_memory(call: Bound, path: str) -> Document | None:
    call.tick(0, 0)
    try:
        return call.memory.show(path)
    except MdmemError:
        return None


def _format_listed(listed: Listed, digest: str, state: str) -> str:
    return "  ".join(
        filter(None, (listed.path, f"hash {digest}" if digest else "", f"{listed.size:,} bytes", state))
    )


def _answer_hits(call: Bound, hits: Sequence[Hit], offset: int, behind: int, notes: Sequence[str]) -> Answer:
    """Return hits as an answer, each with the hash of its memory where that still says what was found."""
    read = cache(partial(_read_memory, call))

    def hash_of(hit: Hit) -> str:
        document = read(hit.path)
        return short_hash(document.hash) if document and hit.stands_in(document) else ""

    taken = fit(((hit, _format_hit(hit, hash_of(hit))) for hit in hits), call.budget // AS_JSON)
    shown = [
        {
            "path": hit.path,
            "hash": hash_of(hit),
            "line": hit.line,
            "heading": list(hit.heading),
            "date": hit.date,
            "state": hit.state,
            "column": hit.column,
            "before": [_shorten_text(text) for text in hit.before],
            "text": _hit_line(hit),
            "after": [_shorten_text(text) for text in hit.after],
        }
        for hit, _ in taken
    ]
    call.count_uses(hit.path for hit, _ in taken)
    left_out = behind + len(hits) - len(taken)
    data = {"hits": shown, "notes": [note.strip("[]") for note in notes]}
    return answer_page(data, [text for _, text in taken], offset, left_out, notes)


def _format_hit(hit: Hit, digest: str) -> str:
    place = [
        hit.path,
        f"hash {digest}" if digest else "",
        hit.date,
        hit.state,
        show_name(f"# {' > '.join(hit.heading)}"),
    ]
    head = "  ".join(part for part in place if part not in {"", "# "})
    first = hit.line - len(hit.before)
    before = [f"{number}-{_shorten_text(text)}" for number, text in enumerate(hit.before, first)]
    after = [f"{number}-{_shorten_text(text)}" for number, text in enumerate(hit.after, hit.line + 1)]
    return "\n".join((head, *before, f"{hit.line}:{_hit_line(hit)}", *after))


def _hit_line(hit: Hit) -> str:
    return _shorten_text(hit.text, around=hit.matches[0][0] if hit.matches else 0)


def _shorten_text(text: str, around: int = 0) -> str:
    return clipped(text, _LINE, around)


def _reference_shape(reference: Reference) -> dict[str, Any]:
    return {
        "type": reference.type,
        "target": reference.target,
        "state": reference.state,
        "count": len(reference.places),
        "places": as_json(reference.places[:PAGE]),
    }


def _format_reference(reference: Reference) -> str:
    places = [
        "  ".join(filter(None, (f"  {place.path}:{place.line}", place.state, place.detail)))
        for place in islice(reference.places, PAGE)
    ]
    behind = len(reference.places) - len(places)
    more = [f"  [{behind:,} more places left out]"] if behind else []
    return "\n".join((f"{reference.type}  {_shorten_text(show_name(reference.target))}", *places, *more))


# -- changing -----------------------------------------------------------------------------------------------


def _resolve_changed(call: Bound, text: str, role: Role) -> str:
    """Find the path of what is to be changed; only a person changes proposals."""
    path = call.paths.resolve(text, role)
    _refuse_inbox(path)
    return path


def _refuse_inbox(path: str) -> None:
    if kind_at(f"{path.casefold()}/x.md") is PROPOSAL:
        reason = "a proposal waits for a person, who accepts or rejects it"
        raise PathRefused(path=path, reason=reason, remedy="say what should be changed instead")


def _refuse_inbox_in(call: Bound, folder: str) -> None:
    inside = () if folder.endswith(call.memory.suffixes) else call.memory.ls(folder)
    if found := next((each.path for each in inside if kind_at(each.path.casefold()) is PROPOSAL), ""):
        reason = f"{found} in it is a proposal, which waits for a person"
        raise PathRefused(
            path=folder, reason=reason, remedy="name the memories, or the folders beside its inbox"
        )


def _change_memories(call: Bound, verb: Verb, *, dry_run: bool) -> Answer:
    """Make a change and say what it did, or with `dry_run` what it would do."""
    memory = call.memory
    if not dry_run:
        applied: Applied = verb(memory)
        call.own.extend(applied.ids)
        return _answer_applied(applied)
    plan = memory.prepared(verb(memory.plan))
    diff = clipped_to(plan.diff(), call.budget)
    data = {"dry_run": True, "diff": diff, "paths": list(plan.paths[:_MOST_FILES]), "total": len(plan.paths)}
    notes = _plan_notes(plan)
    texts = ("nothing is written; this would change:", diff or "nothing", "\n".join(notes))
    return Answer(tuple(filter(None, texts)), {**data, "notes": notes})


def _answer_applied(applied: Applied) -> Answer:
    files = [
        {
            "path": file.path,
            "did": file.did,
            "hash": short_hash(file.after),
            "merged": file.path in applied.merged,
        }
        for file in applied.files
    ]
    lines = [_format_change(file) for file in files[:_MOST_FILES]]
    if not files:
        lines = [f"nothing to change{f': {applied.plan.message}' if applied.plan.message else ''}"]
    elif applied.plan.moves:
        lines = [*_describe_moves(applied.plan), *lines]
    elif applied.plan.undoes or applied.plan.redoes or applied.plan.steps:
        lines.insert(0, applied.plan.message)
    left_out = len(files) - _MOST_FILES
    if left_out > 0:
        lines.append(f"[{left_out:,} more memories left out]")
    notes = _plan_notes(applied.plan)
    data = {"change": applied.id, "files": files[:_MOST_FILES], "total": len(files), "notes": notes}
    data |= {"links_rewritten": applied.plan.links_rewritten} if applied.plan.moves else {}
    named = [f"change {applied.id}"] if applied.id else []
    return Answer(("\n".join((*lines, *notes, *named)),), data)


def _plan_notes(plan: EditPlan) -> list[str]:
    """Return what a plan could not look into, and what was found in it that does not refuse it."""
    warnings = [f"warning: {finding}" for finding in plan.warnings]
    left_out = [f"left out: {name_tools(each)}" for each in plan.left_out]
    gone = "it" if len(plan.changes) == 1 else "what is gone"
    dangling = [each.describe(gone) for each in plan.dangling[:PAGE]]
    if (more := len(plan.dangling) - PAGE) > 0:
        dangling.append(f"{more:,} more links lead nowhere now")
    return [*[*warnings, *left_out][:_MOST_FILES], *dangling]


def _describe_moves(plan: EditPlan) -> list[str]:
    moves, count = plan.moves, plan.links_rewritten
    lines = [f"moved {old} → {new}" for old, new in islice(moves.items(), _MOST_FILES)]
    return [*lines, f"{count:,} links rewritten"] if count else lines


def _format_change(file: dict[str, Any]) -> str:
    digest = f"hash {file['hash']}" if file["hash"] else ""
    merged = "merged with a change made meanwhile" if file["merged"] else ""
    return "  ".join(filter(None, (f"{file['did']} {file['path']}", digest, merged)))


def write(
    call: Bound,
    path: str,
    content: str | None = None,
    fields: Fields | None = None,
    overwrite: bool = False,
    supersedes: Annotated[str, Field(description="memory that it replaces")] = "",
    base: Base = None,
    dry_run: bool = False,
) -> Answer:
    """Replaces all: write a whole memory (.md or .json); one that is there needs base, or overwrite.

    With fields instead of content it sets only these fields of the frontmatter (source.type: nested).
    """
    path = _resolve_changed(call, path, NEW if fields is None else WRITE)
    supersedes = _resolve_changed(call, supersedes, WRITE)
    if content is not None and fields is None:
        return _change_memories(
            call,
            lambda m: m.write(path, content, base=base, overwrite=overwrite, supersedes=supersedes or None),
            dry_run=dry_run,
        )
    if content is None and fields is not None:
        return _change_memories(call, lambda m: m.set(path, fields, base=base), dry_run=dry_run)
    raise Usage(problem="either content or fields must be given")


def replace(
    call: Bound,
    path: str,
    old: str,
    new: str,
    count: Annotated[Count, Field(description='number or "all"')] = 1,
    regex: bool = False,
    base: Base = None,
    dry_run: bool = False,
) -> Answer:
    """Replaces a text in a memory exactly; old must occur once, or count times."""
    path = _resolve_changed(call, path, WRITE)
    return _change_memories(
        call, lambda m: m.replace(path, old, new, count=count, regex=regex, base=base), dry_run=dry_run
    )


def section(
    call: Bound,
    path: str,
    text: str,
    heading: str = "",
    where: Where = "replace",
    keep_subsections: bool = False,
    base: Base = None,
    dry_run: bool = False,
) -> Answer:
    """Replaces one section, found by its heading or heading path (Design > Index), or adds to it.

    Its subsections are replaced too, unless keep_subsections. where=append adds at its end. Without heading,
    where=append adds at the end of the memory, and makes it if it is not there.
    """
    path = _resolve_changed(call, path, WRITE if heading else GROW)
    if heading:
        options: dict[str, Any] = {"where": where, "keep_subsections": keep_subsections, "base": base}
        return _change_memories(call, lambda m: m.section(path, heading, text, **options), dry_run=dry_run)
    if where != "append" or keep_subsections:
        remedy = "only where=append can do without: it adds at the end of the memory"
        raise Usage(problem="heading must be given", remedy=remedy)
    return _change_memories(call, lambda m: m.append(path, text, base=base), dry_run=dry_run)


def mv(call: Bound, source: str, target: str, base: Base = None, dry_run: bool = False) -> Answer:
    """Move a memory or a folder; links to it follow. A target that ends in / is a folder."""
    call.sync()
    source, target = call.paths.resolve_move(source, target)
    _refuse_inbox(source)
    _refuse_inbox(target)
    _refuse_inbox_in(call, source)
    return _change_memories(call, lambda m: m.mv(source, target, base=base), dry_run=dry_run)


def rm(
    call: Bound,
    path: str,
    recursive: Annotated[bool, Field(description="also a folder, with all in it")] = False,
    base: Base = None,
    dry_run: bool = False,
) -> Answer:
    """Delete a memory, or a folder with recursive; undo brings it back."""
    path = _resolve_changed(call, path, WRITE_ANY)
    if recursive:
        _refuse_inbox_in(call, path)
    return _change_memories(call, lambda m: m.rm(path, recursive=recursive, base=base), dry_run=dry_run)


def undo(
    call: Bound,
    change: Annotated[str, Field(description="id that a tool has named; your last one without")] = "",
    count: Annotated[Positive, Field(description="how many of the last changes")] = 1,
    redo: Annotated[bool, Field(description="put back what undo took last")] = False,
    dry_run: bool = False,
) -> Answer:
    """Undo your last change; again, the one before it. What has changed since stays."""
    if redo and change:
        raise Usage(problem="redo takes no change", remedy="leave change out, or redo")
    options: dict[str, Any] = {"count": count, "own": call.own}
    if redo:
        return _change_memories(call, lambda m: m.redo(**options), dry_run=dry_run)
    return _change_memories(call, lambda m: m.undo(change or None, **options), dry_run=dry_run)


def remember(
    call: Bound,
    kind: Annotated[str, Field(json_schema_extra={"enum": [*remembered_kinds(KINDS)]})],
    value: Annotated[Any, Field(description="text; a preference may be any JSON")],
    name: Annotated[
        str, Field(description="note name (none: log of today); thread; category/key; heading in AGENTS.md")
    ] = "",
    title: Annotated[str | None, Field(description="of a note's section")] = None,
    why: Annotated[str | None, Field(description="of a preference")] = None,
    resource: Annotated[str | None, Field(description="owner of the working memory, if not a thread")] = None,
    ttl: Annotated[Number | None, Field(description="seconds that working memory lives")] = None,
    base: Base = None,
    dry_run: bool = False,
) -> Answer:
    """Keep something where it belongs.

    A note and project memory (AGENTS.md) are added to; a preference, and the working memory of a thread or
    resource, are replaced.
    """
    resource = resource or None
    if kind == WORKING.name and not resource:
        name = call.resolve_thread(name) or ""
    name = call.paths.resolve_name(name, kind)
    options: dict[str, Any] = {"title": title, "why": why, "resource": resource, "ttl": ttl, "base": base}
    return _change_memories(call, lambda m: m.remember(kind, name, value, **options), dry_run=dry_run)
