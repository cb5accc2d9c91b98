"""Preferences: what a user likes, one file each, with a strength that fades until it is confirmed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from mdmem.document.arguments import check_natural, json_value, require_text
from mdmem.document.document import Document, parse_text
from mdmem.document.edit import spliced
from mdmem.document.field import with_field
from mdmem.document.moment import moment_of, stamp
from mdmem.document.text.regex import regex
from mdmem.document.tree import same
from mdmem.errors import DocumentRefused, FieldNotFound, LimitReached, MemoryNotFound, NamedNotFound, Usage
from mdmem.kind import PREFERENCE
from mdmem.memory import content, history
from mdmem.memory.content import State, StatesAt
from mdmem.memory.verbs import Build, KindVerbs, R
from mdmem.vault.config import POLICIES
from mdmem.vault.paths import decode_id, encode_id
from mdmem.vault.plan import Change, EditPlan, deletion
from mdmem.vault.vault import Vault

STRENGTH, CONFIDENCE = 0.7, 0.8
"""Of a wish that is told to an agent: it matters, and is quite sure; both can still grow."""

_DECAY_PER_DAY = 0.01
_LEAST_VISIBLE, _MEDIUM, _STRONG = 0.1, 0.4, 0.7
_CONFIRMED = 0.1  # what a value gains each time that it is set again
_DECIMALS = 4  # of a strength or a confidence, as it is written
_SECONDS_PER_DAY = 86_400
_MOST_NAMED = 20
# Who writes a preference by hand, without these, means it.
_BY_HAND = 1.0
_SHAPE = regex(rf"{PREFERENCE.folder}/([^/]+)/([^/]+)\.md")


class Preference(NamedTuple):
    """A preference, as it is now.

    Attributes:
        category, key: its name; one file has one.
        value: any JSON value.
        strength: how much it matters, 0 to 1, as it has faded until now.
        stored_strength: its strength when it was last updated.
        confidence: how sure it is, 0 to 1.
        created, updated: UTC; None where the file does not say.
        why: the reason, which is the body of the file.
        state: whether it counts now: "live", or why not.
        hidden: whether it does not count, for that reason or because it has faded so far.
    """

    category: str
    key: str
    value: Any
    strength: float
    stored_strength: float
    confidence: float
    created: datetime | None
    updated: datetime | None
    why: str
    path: str
    state: State
    hidden: bool

    @property
    def name(self) -> str:
        """The category and the key."""
        return f"{self.category}/{self.key}"

    def json_shape(self) -> dict[str, Any]:
        """Return the preference as a JSON object."""
        shape = self._asdict()
        moments = {name: shape[name] for name in ("created", "updated") if shape[name]}
        return {**shape, **{name: stamp(moment) for name, moment in moments.items()}}


def path_of(category: str, key: str) -> str:
    """Return the file of a preference."""
    return f"{PREFERENCE.folder}/{encode_id(category)}/{encode_id(key)}.md"


@lru_cache(maxsize=10_000)
def name_of(path: str) -> tuple[str, str] | None:
    """Return the category and key of the preference at `path`; None if `path` is not one's file."""
    shape = _SHAPE.fullmatch(path)
    if not shape:
        return None
    category, key = decode_id(shape[1]), decode_id(shape[2])
    return (category, key) if path_of(category, key) == path else None


def read_preference(document: Document, now: datetime, state: State = "live") -> Preference:
    """Return the preference that a file holds.

    Strength and confidence are 1 where the file gives no number for them, and without a time (`updated`,
    else `created`) it does not fade: that is how a file written by hand is meant.
    """
    fields = document.fields
    if "value" not in fields:
        raise FieldNotFound(path=document.path, key="value", near=tuple(fields))
    category, key = name_of(document.path) or ("", "")
    created = moment_of(fields.get("created"))
    updated = moment_of(fields.get("updated")) or created
    stored = strength = _read_share(fields.get("strength"))
    if updated is not None:
        days = max(0.0, (now - updated).total_seconds() / _SECONDS_PER_DAY)
        strength = round(stored * max(0.0, 1 - _DECAY_PER_DAY * days), _DECIMALS)
    return Preference(
        category=category,
        key=key,
        value=fields["value"],
        strength=strength,
        stored_strength=stored,
        confidence=_read_share(fields.get("confidence")),
        created=created,
        updated=updated,
        why=document.body.strip(),
        path=document.path,
        state=state,
        hidden=state != "live" or strength < _LEAST_VISIBLE,
    )


def _read_share(written: Any) -> float:
    if isinstance(written, bool) or not isinstance(written, int | float) or math.isnan(written):
        return _BY_HAND
    return float(min(1, max(0, written)))


def _decide_fields(stored: Preference, given: dict[str, Any], policy: str) -> dict[str, Any]:
    value, strength, confidence = given["value"], given["strength"], given["confidence"]
    if same(stored.value, value):
        stronger = min(1.0, max(stored.strength, strength) + _CONFIRMED)
        surer = max(stored.confidence, confidence)
        return {"strength": round(stronger, _DECIMALS), "confidence": round(surer, _DECIMALS)}
    if policy == "merge":
        united = _merge_values(stored.value, value)
        if united is None:
            united = value if strength >= stored.strength else stored.value
        return {
            "value": united,
            "strength": round((stored.strength + strength) / 2, _DECIMALS),
            "confidence": round((stored.confidence + confidence) / 2, _DECIMALS),
        }
    return given if policy == "keep-latest" or strength > stored.strength else {}


def _merge_values(old: Any, new: Any) -> Any:
    if isinstance(old, list) and isinstance(new, list):
        united = list(old)
        for item in new:
            if not any(same(item, present) for present in united):
                united.append(item)
        return united
    return {**old, **new} if isinstance(old, dict) and isinstance(new, dict) else None


def _decide_reason(stored: Preference, given: Any, result: Any, why: str | None, policy: str) -> str | None:
    """Return the reason to write, None to leave what is there: no value gets the reason of another one."""
    if not _has_value(result, given, policy):
        return None
    return "" if why is None and stored.why and not _has_value(result, stored.value, policy) else why


def _has_value(result: Any, value: Any, policy: str) -> bool:
    united = _merge_values(result, value) if policy == "merge" else None
    return same(value if united is None else united, result)


def _write_fields(document: Document, fields: Mapping[str, Any], why: str | None) -> Document:
    for name, value in fields.items():
        document = with_field(document, (name,), value)
    if why is None:
        return document
    require_text(why=why)
    return spliced(document, [content.new_body(document, why.strip() + "\n" if why.strip() else "")])


Found: TypeAlias = list[Preference]  # `list` is also a verb here


class Bands(NamedTuple):
    """How many preferences are strong (0.7 and more), medium (0.4 and more) and weak."""

    strong: int
    medium: int
    weak: int


class PreferenceStats(NamedTuple):
    """Preferences in numbers.

    Attributes:
        total: all that can be read, hidden ones included.
        hidden: those that have faded, or do not count for another reason; they count in nothing below.
        mean_strength: 0 when there are none.
    """

    total: int
    hidden: int
    by_category: Mapping[str, int]
    mean_strength: float
    bands: Bands


class Preferences(KindVerbs[R]):
    """The preferences of one namespace: `preferences/<category>/<key>.md`.

    A strength loses a hundredth of its stored value with every day since the last update. The loss is
    computed from `clock` (UTC) whenever a preference is read; it is never written. Below 0.1 a
    preference is hidden.
    """

    def __init__(
        self,
        vault: Vault,
        run: Callable[[Build], R],
        find_states: StatesAt,
        clock: Callable[[], datetime] = content.utc_now,
    ) -> None:
        super().__init__(vault, run, clock)
        self._find_states = find_states

    # -- reading ------------------------------------------------------------------------------------------

    def get(self, category: str, key: str, *, hidden: bool = False) -> Preference:
        """Return one preference; with `hidden`, also one that has faded or does not count now.

        Raises:
            NamedNotFound: there is none, or it is hidden.
            FieldNotFound, DocumentRefused: its file cannot be read as a preference.
        """
        now = self._clock()
        try:
            document = self._vault.read(path_of(category, key))
            found = read_preference(document, now, self._find_state(document, now))
        except MemoryNotFound:
            raise self._describe_absent(category, key) from None
        if found.hidden and not hidden:
            raise self._describe_absent(category, key)
        return found

    def list(self, category: str | None = None, *, hidden: bool = False) -> Found:
        """Return the preferences that are shown, or those of a category, by their paths; with `hidden`, all.

        What cannot be read as a preference is left out; `check` tells of it.
        """
        found = [p for p in self._read_all() if hidden or not p.hidden]
        return [p for p in found if category is None or p.category == category]

    def unreadable(self) -> tuple[str, ...]:
        """Return the paths of the files that cannot be read as a preference."""
        readable = {found.path for found in self._read_all()}
        return tuple(path for path in self._list_paths() if path not in readable)

    def top(self, count: int = 10) -> Found:
        """Return the strongest preferences; of equal ones the latest comes first."""
        check_natural(count=count)
        latest = sorted(self.list(), key=lambda p: p.updated.timestamp() if p.updated else 0.0, reverse=True)
        return sorted(latest, key=lambda p: -p.strength)[:count]

    def stats(self) -> PreferenceStats:
        """Return how many there are, where, and how strong they are now."""
        everything = [*self._read_all()]
        shown = [p for p in everything if not p.hidden]
        strengths, categories = [p.strength for p in shown], [p.category for p in shown]
        strong = sum(strength >= _STRONG for strength in strengths)
        medium = sum(_MEDIUM <= strength < _STRONG for strength in strengths)
        return PreferenceStats(
            total=len(everything),
            hidden=len(everything) - len(shown),
            by_category={name: categories.count(name) for name in dict.fromkeys(categories)},
            mean_strength=round(sum(strengths) / len(shown), _DECIMALS) if shown else 0.0,
            bands=Bands(strong=strong, medium=medium, weak=len(shown) - strong - medium),
        )

    def _read_all(self) -> Iterator[Preference]:
        now = self._clock()
        judge = content.make_judge(self._find_states, now)
        for path in self._list_paths():
            try:
                document = self._vault.read(path)
                yield read_preference(document, now, judge(document, path))
            except (DocumentRefused, FieldNotFound, MemoryNotFound):
                continue

    def _find_state(self, document: Document, now: datetime) -> State:
        return content.make_judge(self._find_states, now)(document, document.path)

    def _list_paths(self) -> Iterator[str]:
        found = self._vault.walk(PREFERENCE.folder)
        return (f.path for f in found if not f.problem and name_of(f.path))

    def _describe_absent(self, category: str, key: str) -> NamedNotFound:
        wanted, names = f"{category}/{key}", [p.name for p in self.list()]
        near = get_close_matches(wanted, names) or names[:_MOST_NAMED]
        return NamedNotFound(kind="preference", name=wanted, near=tuple(near))

    # -- changing -----------------------------------------------------------------------------------------

    def set(
        self,
        category: str,
        key: str,
        value: Any,
        *,
        strength: float = STRENGTH,
        confidence: float = CONFIDENCE,
        why: str | None = None,
        policy: str | None = None,
        base: str | None = None,
    ) -> R:
        """Say what is preferred.

        The same value again makes a preference stronger by 0.1, whatever the policy. For another value:

        - `keep-latest`: the new value, strength and confidence replace the old ones.
        - `keep-stronger`: so too, but only if the new one is stronger than the old one as it has faded until
          now; of equal ones the old one stays.
        - `merge`: lists are united, mappings merged (the new one wins), of other values the stronger one
          stays, with its reason (of equal ones the new one); strength and confidence become the means.

        One that does not count, as it has expired or was superseded, leaves nothing of it behind.

        Args:
            category, key: its name: any texts.
            value: any JSON value.
            strength: how much it matters, 0 to 1.
            confidence: how sure it is, 0 to 1.
            why: the reason; it replaces the one that is there. Without one, the old reason goes with the old
                value.
            policy: `keep-latest`, `keep-stronger` or `merge`; without one, the config's.
            base: the hash (8 digits or more) of the file that the caller saw.

        Raises:
            Usage: a number that is not from 0 to 1, an unknown policy, or no JSON value.
            LimitReached: the namespace has as many preferences as the config allows.
            Conflict: the file is not the one that `base` names.
            EditRefused: the fields of the file cannot be edited.
        """
        rule = self._vault.config.preferences.policy if policy is None else policy
        if rule not in POLICIES:
            raise Usage(problem=f"a policy is {', '.join(POLICIES)}, not {rule!r}")
        if bad := [share for share in (strength, confidence) if not 0 <= share <= 1]:
            raise Usage(problem=f"strength and confidence are numbers from 0 to 1, not {bad[0]!r}")
        given = {
            "value": json_value(value),
            "strength": round(strength, _DECIMALS),
            "confidence": round(confidence, _DECIMALS),
        }
        path, message = path_of(category, key), f"set preference {category}/{key}"

        def build() -> EditPlan:
            now = self._clock()
            before, fields, reason = history.find(self._vault, path, base), given, why
            if before is None:
                self._refuse_over_limit()
            live = before if before and self._find_state(before, now) == "live" else None
            if live is None:
                names = {"type": PREFERENCE.name, "category": category, "key": key}
                fields = {**names, **given, "created": stamp(now)}
            elif "value" in live.fields:
                stored = read_preference(live, now)
                fields = _decide_fields(stored, given, rule)
                if not fields:
                    kept = f"{stored.value!r} has the strength {stored.strength:g}"
                    compared = f"{kept}, {given['value']!r} no more than {strength:g}"
                    return EditPlan(changes=(), message=f"kept preference {stored.name}: {compared}")
                result = fields.get("value", stored.value)
                reason = _decide_reason(stored, given["value"], result, why, rule)
            document = live or parse_text(path, "")
            after = _write_fields(document, {**fields, "updated": stamp(now)}, reason)
            # Never merged with what somebody else wrote: whether a value is taken depends on all of it.
            change = Change(path=path, before=before, content=after.data, merge=False)
            is_same = before is not None and before.data == after.data
            removed = ", remove the old reason" if why is None and reason == "" else ""
            return EditPlan(changes=() if is_same else (change,), message=message + removed)

        return self._run(build)

    def delete(self, category: str, key: str) -> R:
        """Delete a preference; `restore` brings it back.

        Raises:
            NamedNotFound: there is none.
        """

        def build() -> EditPlan:
            before = self._vault.find(path_of(category, key))
            if before is None:
                raise self._describe_absent(category, key)
            return EditPlan(changes=(deletion(before),), message=f"delete preference {category}/{key}")

        return self._run(build)

    def sweep(self) -> R:
        """Delete every preference that has faded below 0.1; `plan.preferences.sweep()` only proposes it."""

        def build() -> EditPlan:
            faded = [p.path for p in self.list(hidden=True) if p.strength < _LEAST_VISIBLE]
            changes = tuple(deletion(self._vault.read(path)) for path in faded)
            return EditPlan(changes=changes, message=f"sweep {len(changes)} faded preferences")

        return self._run(build)

    # -- what the verbs share -----------------------------------------------------------------------------

    def _refuse_over_limit(self) -> None:
        limit = self._vault.config.preferences.max_per_user
        if sum(1 for _ in self._list_paths()) >= limit:
            remedy = (
                "sweep those that have faded (`mdmem preferences sweep`), or raise [preferences] max_per_user"
            )
            raise LimitReached(what="preferences of this namespace", limit=limit, remedy=remedy)
