"""Validity: which memories count now, or counted at a moment, and the changes that say so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Diagnostic, Span
from mdmem.document.document import SUFFIXES, Document
from mdmem.document.edit import spliced
from mdmem.document.field import unset_field, with_field
from mdmem.document.markdown.link import external
from mdmem.document.moment import moment_of, stamp
from mdmem.document.tree import Flaw
from mdmem.errors import MdmemError, MemoryNotFound, Usage, plural
from mdmem.index.hit import fields_of
from mdmem.memory import history
from mdmem.memory.content import State, expiry_of, has_passed, ttl_of, utc_now, without_empty_frontmatter
from mdmem.vault.paths import Layer, is_under, join
from mdmem.vault.plan import EditPlan, deletion, together
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.index.view import View

# The state of a memory that the moment of a field rules out; of several, the last one counts.
_STATES: tuple[tuple[str, State], ...] = (
    ("valid_from", "not yet"),
    ("expires", "expired"),
    ("valid_to", "over"),
)
_SUCCESSOR, _CONTRADICTIONS = "superseded_by", "contradicted_by"
_PINNED = "pinned"


class Bounds(NamedTuple):
    """The moments that a memory names, in UTC; None where it names none that can be read."""

    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires: datetime | None = None

    def judge(self, moment: datetime) -> State:
        """Return the state at a moment, successors ignored; at `valid_to` itself it is over."""
        state: State = "live"
        for key, other in _STATES:
            at: datetime | None = getattr(self, key)
            if at is not None and _rules_out(key, at, moment):
                state = other
        return state


def _rules_out(key: str, at: datetime, moment: datetime) -> bool:
    return at > moment if key == "valid_from" else at <= moment


def bounds_of(fields: Mapping[str, Any]) -> Bounds:
    """Read the moments that the fields of a memory name; a day is its start, in UTC."""
    return Bounds(*(moment_of(fields.get(key)) for key in Bounds._fields))


def judge(fields: Mapping[str, Any], path: str, moment: datetime, stands: Callable[[str], bool]) -> State:
    """Return the state at a moment that the fields of the memory at `path` say, without asking the index.

    A successor that is named by a path has to stand there. One that is named by a link or a name counts as
    found, and circles of successors are not seen.
    """
    if _has_successor(fields.get(_SUCCESSOR), path, stands):
        return "superseded"
    state = bounds_of(fields).judge(moment)
    return "contradicted" if state == "over" and fields.get(_CONTRADICTIONS) else state


def state_of(vault: Vault, document: Document) -> str:
    """Return why a memory does not count now, as it says itself (see `judge`); empty where it does."""
    vault, path = vault.locate_layer(document.path)

    def stands(path: str) -> bool:
        with suppress(MdmemError):
            return vault.find(path, recovered=True) is not None
        return False

    state = judge(fields_of(document), path, utc_now(), stands)
    return "" if state == "live" else state


def _has_successor(named: object, path: str, stands: Callable[[str], bool]) -> bool:
    if not isinstance(named, str):
        return bool(named)
    name = named.partition("#")[0].strip()
    if not name or name == path or external(name):
        return False
    beside = join(path.rpartition("/")[0], name)
    return not name.endswith(SUFFIXES) or any(map(stands, (name, beside)))


def find_states(view: View, moment: datetime, *, is_past: bool = False) -> dict[str, State]:
    """Find the memories that do not count at a moment, each with its state, by their paths in the view.

    A successor that is missing, ambiguous, the memory itself or in a circle is ignored. With `is_past`, all
    successors and contradictions are: they may have come only later.
    """
    states: dict[str, State] = {}
    values = view.field_values(*Bounds._fields, _CONTRADICTIONS, _SUCCESSOR)
    for key, state in _STATES:
        for path, value in values[key]:
            at = moment_of(value)
            if at is not None and _rules_out(key, at, moment):
                states[path] = state
    if not is_past:
        against = (path for path, value in values[_CONTRADICTIONS] if value)
        states |= {path: "contradicted" for path in against if states.get(path) == "over"}
        states |= dict.fromkeys(find_successors(view) if values[_SUCCESSOR] else (), "superseded")
    return states


def find_shown_states(
    layers: Iterable[tuple[Layer, View]], moment: datetime, *, is_past: bool = False
) -> dict[str, State]:
    """Find the memories of several layers that do not count at a moment, by their names in the layers."""
    return {
        layer.shown(view.outside(path)): state
        for layer, view in layers
        for path, state in find_states(view, moment, is_past=is_past).items()
    }


def check_validity(document: Document, tiers: Collection[str]) -> Iterator[Diagnostic]:
    """Report a memory that ends before it begins, or has an unknown tier."""
    begin, end, _ = bounds_of(document.fields)
    if begin and end and end < begin:
        message = f"`valid_to`: it ends at {stamp(end)}, before it begins at {stamp(begin)}"
        yield _warn_at_field(document, "valid_to", "ends-before-it-begins", message, "change one of them")
    known, tier = (*tiers, _PINNED), document.fields.get("tier")
    if tier is not None and tier not in known:
        message = f"`tier`: there is no tier {tier!r}"
        yield _warn_at_field(document, "tier", "unknown-tier", message, f"a tier is {', '.join(known)}")


def _warn_at_field(document: Document, key: str, code: str, message: str, hint: str) -> Diagnostic:
    span = document.tree.nearest((key,)).span if document.tree else Span(0, 0)
    return document.diagnose(Flaw(span, code, message, hint, severity="warning"))


def read_moment(given: datetime | str | None, now: datetime) -> datetime:
    """Return a moment that a caller gives, in UTC: a day is its start, no time zone is UTC, None is `now`."""
    if given is None:
        return now
    moment = given if isinstance(given, datetime) else moment_of(given)
    if moment is None:
        remedy = "give a day or a time such as 2026-01-31 or 2026-01-31T12:30:00Z"
        raise Usage(problem=f"{given!r} is no moment", remedy=remedy)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def find_successors(view: View) -> dict[str, str]:
    """Find what took the place of each superseded memory: by path, the path of its successor."""
    from mdmem.index.links.lineage import find_circles, find_references  # noqa: PLC0415 - few are superseded

    successors = {
        reference.path: reference.goal
        for reference in find_references(view, _SUCCESSOR)
        if reference.goal and not reference.is_ambiguous and reference.goal != reference.path
    }
    turning = {path for circle in find_circles({a: [b] for a, b in successors.items()}) for path in circle}
    return {path: goal for path, goal in successors.items() if goal not in turning}


# -- changes ------------------------------------------------------------------------------------------------


def supersede(
    vault: Vault, view: Callable[[], View], old: str, by: str, at: datetime, *, is_written: bool = False
) -> EditPlan:
    """Plan that one memory replaces another; `valid_to` of the other becomes `at` if it has none.

    With `is_written`, the successor is written by the same change, and need not be there yet.
    """
    before = history.require(vault, old, None)
    successor = _check_other(vault, old, by, is_written=is_written)
    # Behind the memory: what is written to it from here on is a conflict with the plan.
    known = find_successors(view())
    first = known.get(old)
    if first is not None and first != successor:
        remedy = f"supersede {first}, or reinstate {old} first"
        raise Usage(problem=f"{old} is superseded by {first} already", remedy=remedy)
    chain, step = {old}, successor
    while step in known and step not in chain:
        chain.add(step)
        step = known[step]
    if step == old:
        remedy = f"reinstate {successor} first"
        raise Usage(problem=f"{successor} is itself superseded by {old}", remedy=remedy)
    after = before if first else with_field(before, (_SUCCESSOR,), successor)
    return history.rewriting(before, _with_end(after, at), f"supersede {old} by {successor}")


def contradict(vault: Vault, path: str, by: str, at: datetime) -> EditPlan:
    """Plan that a memory speaks against another; `valid_to` of the other becomes `at` if it has none."""
    before, other = history.require(vault, path, None), _check_other(vault, path, by)
    written = before.fields.get(_CONTRADICTIONS)
    known = written if isinstance(written, list) else [written] if written else []
    after = before if other in known else with_field(before, (_CONTRADICTIONS,), [*known, other])
    return history.rewriting(before, _with_end(after, at), f"contradict {path} by {other}")


def reinstate(vault: Vault, path: str, now: datetime) -> EditPlan:
    """Plan to remove a memory's successor, contradictions and past `valid_to`; `expires` stays."""
    before = after = history.require(vault, path, None)
    keys = [key for key in (_SUCCESSOR, _CONTRADICTIONS) if key in before.fields]
    end = moment_of(before.fields.get("valid_to"))
    for key in (*keys, *(["valid_to"] if end is not None and end <= now else ())):
        after = spliced(after, unset_field(after, (key,)))
    return history.rewriting(before, without_empty_frontmatter(after), f"reinstate {path}")


def confirm(vault: Vault, path: str, source: str | None, now: datetime) -> EditPlan:
    """Plan that a memory was found right at `now`, by a source if one is given."""
    before = history.require(vault, path, None)
    after = with_field(before, ("confirmed",), stamp(now))
    if source:
        written = before.fields.get("source")
        if written is not None and not isinstance(written, dict):
            remedy = "make it a mapping with type and ids first"
            raise Usage(
                problem=f"{path}: `source` is {written!r}: a second source cannot be added",
                remedy=remedy,
            )
        ids = (written or {}).get("ids") or []
        known = ids if isinstance(ids, list) else [ids]
        if source not in map(str, known):
            after = with_field(after, ("source", "ids"), [*known, source])
    return history.rewriting(before, after, f"confirm {path}")


def retier(vault: Vault, path: str, tier: str, expires: datetime | None, now: datetime) -> EditPlan:
    """Plan that a memory has a tier, and expires when the config says for that; `expires` says otherwise."""
    require_tier(vault, tier)
    before = history.require(vault, path, None)
    after = with_field(before, ("tier",), tier)
    end = expires or _expiry_of_tier(vault, tier, now)
    if end is not None:
        after = with_field(after, ("expires",), stamp(end))
    elif "expires" in after.fields:
        after = spliced(after, unset_field(after, ("expires",)))
    return history.rewriting(before, after, f"give {path} the tier {tier}")


def reinforce(vault: Vault, paths: Iterable[str], until: datetime | None, now: datetime) -> EditPlan:
    """Plan that memories which expire live on: until `until`, else as long as their own ttl or tier says.

    No `expires` becomes earlier, and none is added to a memory without one.
    """
    plans = []
    for path in dict.fromkeys(paths):
        before = history.require(vault, path, None)
        ttl = ttl_of(before)
        life = now + timedelta(seconds=ttl) if ttl else _expiry_of_tier(vault, before.fields.get("tier"), now)
        end = until or life
        known = moment_of(expiry_of(before))
        if known is not None and end is not None and end > known:
            plans.append(history.rewriting(before, with_field(before, ("expires",), stamp(end)), ""))
    return EditPlan(changes=together(plans, "").changes, message=f"reinforce {len(plans)} memories")


def sweep(view: View, within: str, now: datetime) -> EditPlan:
    """Plan to delete what has expired below a folder and says that it is short-lived: by a tier, or a ttl.

    What has expired and says neither is named in `left_out`: its `expires` may be about something else.
    """
    changes, left_out = [], []
    for path in dict.fromkeys(path for path, _ in view.field_values("expires")["expires"]):
        document = view.vault.find(path) if is_under(path, within) else None
        if document is None or not has_passed(expiry_of(document), now):
            continue
        if document.fields.get("tier") or ttl_of(document) is not None:
            changes.append(deletion(document))
        else:
            left_out.append(f"{path}: expired at {expiry_of(document)}, without a tier or ttl_seconds")
    message = f"sweep {plural(len(changes), 'expired memory')}"
    return EditPlan(changes=tuple(changes), message=message, left_out=tuple(left_out))


def list_tiers(vault: Vault) -> tuple[str, ...]:
    """List the tiers that a memory of a vault may have."""
    return (*vault.config.tiers._fields, _PINNED)


def require_tier(vault: Vault, tier: str) -> None:
    """Raise Usage for what is no tier."""
    if tier not in (known := list_tiers(vault)):
        raise Usage(problem=f"there is no tier {tier!r}", remedy=f"a tier is {', '.join(known)}")


def _expiry_of_tier(vault: Vault, tier: object, now: datetime) -> datetime | None:
    hours = vault.config.tiers._asdict().get(str(tier))
    return now + timedelta(hours=hours) if hours else None


def _check_other(vault: Vault, path: str, by: str, *, is_written: bool = False) -> str:
    if by == path:
        raise Usage(problem=f"{path} names itself", remedy="name the other memory")
    if not is_written and vault.find(by) is None:
        raise MemoryNotFound(path=by)
    return by


def _with_end(document: Document, at: datetime) -> Document:
    is_open = moment_of(document.fields.get("valid_to")) is None
    return with_field(document, ("valid_to",), stamp(at)) if is_open else document
