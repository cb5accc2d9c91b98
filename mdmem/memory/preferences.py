"""Preferences: what a user likes, one file each, with a strength that fades until it is confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from mdmem.errors import (
    DocumentRefused,
    FieldNotFound,
    LimitReached,
    MemoryNotFound,
    NamedNotFound,
    Usage,
)
from mdmem.memory import moment, preference, seen
from mdmem.memory.arguments import Checked, json_value
from mdmem.memory.preference import FOLDER, Given, Preference
from mdmem.memory.strength import Bands, bands, rounded
from mdmem.vault.config import POLICIES
from mdmem.vault.plan import Change, EditPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from mdmem.memory.verbs import Build
    from mdmem.text.document import Document
    from mdmem.vault.vault import Vault

R = TypeVar("R")
Found: TypeAlias = list[Preference]  # `list` is also a verb here

# A wish that is told to an agent matters, and is quite sure; both can still grow.
STRENGTH = 0.7
CONFIDENCE = 0.8
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Preferences in numbers.

    Attributes:
        total: all that can be read, hidden ones included.
        hidden: those that have faded; they count in nothing below.
        by_category: how many in each category.
        mean_strength: 0 when there are none.
        bands: how many are strong, medium and weak.
    """

    total: int
    hidden: int
    by_category: Mapping[str, int]
    mean_strength: float
    bands: Bands

    def as_dict(self) -> dict[str, Any]:
        """The numbers as a JSON object."""
        return {
            "total": self.total,
            "hidden": self.hidden,
            "by_category": dict(self.by_category),
            "mean_strength": self.mean_strength,
            "bands": self.bands.as_dict(),
        }


class Preferences(Checked, Generic[R]):
    """The preferences of one namespace: `preferences/<category>/<key>.md`.

    Strengths fade by 0.01 of what they were with every day since the last update. That is computed from
    `clock` (UTC) whenever a preference is read, and never written. Below 0.1 a preference is hidden.
    """

    def __init__(
        self, vault: Vault, run: Callable[[Build], R], *, clock: Callable[[], datetime] = moment.now
    ) -> None:
        self._vault = vault
        self._run = run
        self._clock = clock

    # -- reading ------------------------------------------------------------------------------------------

    def get(self, category: str, key: str, *, hidden: bool = False) -> Preference:
        """One preference; with `hidden`, also one that has faded.

        Raises:
            NamedNotFound: there is none, or it has faded.
            FieldNotFound, DocumentRefused: its file cannot be read as a preference.
        """
        try:
            found = preference.read(self._vault.read(preference.path_of(category, key)), self._clock())
        except MemoryNotFound:
            raise self._absent(category, key) from None
        if found.hidden and not hidden:
            raise self._absent(category, key)
        return found

    def list(self, category: str | None = None, *, hidden: bool = False) -> Found:
        """All preferences, or those of a category, by their paths; with `hidden`, also those that have faded.

        What cannot be read as a preference is left out; `check` tells of it.
        """
        found = [p for p in self._all() if hidden or not p.hidden]
        return [p for p in found if category is None or p.category == category]

    def top(self, count: int = 10) -> Found:
        """The strongest preferences; of equal ones the latest comes first.

        Raises:
            Usage: `count` is negative.
        """
        if count < 0:
            raise Usage(problem=f"the number of preferences is 0 or more, not {count}")
        return sorted(self.list(), key=_rank)[:count]

    def stats(self) -> Stats:
        """How many there are, where, and how strong they are now."""
        everything = [*self._all()]
        strengths = [p.strength for p in everything if not p.hidden]
        categories = [p.category for p in everything if not p.hidden]
        return Stats(
            total=len(everything),
            hidden=len(everything) - len(strengths),
            by_category={name: categories.count(name) for name in dict.fromkeys(categories)},
            mean_strength=rounded(sum(strengths) / len(strengths)) if strengths else 0.0,
            bands=bands(strengths),
        )

    def _all(self) -> Iterator[Preference]:
        now = self._clock()
        for path in self._paths():
            try:
                yield preference.read(self._vault.read(path), now)
            except (DocumentRefused, FieldNotFound, MemoryNotFound):
                continue

    def _paths(self) -> Iterator[str]:
        found = self._vault.walk(FOLDER)
        return (f.path for f in found if not f.problem and preference.name_of(f.path))

    def _absent(self, category: str, key: str) -> NamedNotFound:
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
          stays (of equal ones the new one); strength and confidence become the means.

        Args:
            category, key: its name: any texts.
            value: any JSON value.
            strength: how much it matters, 0 to 1.
            confidence: how sure it is, 0 to 1.
            why: the reason; it replaces the one that is there.
            policy: `keep-latest`, `keep-stronger` or `merge`; without one, the config's.
            base: the hash (8 digits or more) of the file that the caller saw.

        Raises:
            Usage: a number that is not from 0 to 1, an unknown policy, or no JSON value.
            LimitReached: the namespace has as many preferences as the config allows.
            Conflict: the file is not the one that `base` names.
            EditRefused: the fields of the file cannot be edited.
        """
        rule, value = self._policy(policy), json_value(value)
        for name, share in (("strength", strength), ("confidence", confidence)):
            if not 0 <= share <= 1:
                raise Usage(problem=f"{name} is a number from 0 to 1, not {share!r}")

        def build() -> EditPlan:
            now = self._clock()
            given = Given(
                category=category,
                key=key,
                value=value,
                strength=strength,
                confidence=confidence,
                why=why,
            )
            before = seen.found(self._vault, given.path, base)
            if before is None:
                self._refuse_over_limit()
            after = preference.settled(before, given, rule, now)
            if after is None and before is not None:
                return EditPlan(changes=(), message=_kept(preference.read(before, now), given))
            return EditPlan(changes=_changes(before, after), message=f"set preference {category}/{key}")

        return self._run(build)

    def delete(self, category: str, key: str) -> R:
        """Delete a preference; `restore` brings it back.

        Raises:
            NamedNotFound: there is none.
        """

        def build() -> EditPlan:
            before = self._vault.find(preference.path_of(category, key))
            if before is None:
                raise self._absent(category, key)
            return EditPlan(changes=(_deletion(before),), message=f"delete preference {category}/{key}")

        return self._run(build)

    def sweep(self) -> R:
        """Delete every preference that has faded below 0.1; `plan.preferences.sweep()` only proposes it."""

        def build() -> EditPlan:
            faded = [p.path for p in self.list(hidden=True) if p.hidden]
            changes = tuple(_deletion(self._vault.read(path)) for path in faded)
            return EditPlan(changes=changes, message=f"sweep {len(changes)} faded preferences")

        return self._run(build)

    # -- what the verbs share -----------------------------------------------------------------------------

    def _policy(self, policy: str | None) -> str:
        chosen = self._vault.config.preferences.policy if policy is None else policy
        if chosen not in POLICIES:
            raise Usage(problem=f"a policy is {', '.join(POLICIES)}, not {chosen!r}")
        return chosen

    def _refuse_over_limit(self) -> None:
        limit = self._vault.config.preferences.max_per_user
        if sum(1 for _ in self._paths()) >= limit:
            remedy = (
                "sweep those that have faded (`mdmem preferences sweep`), or raise [preferences] max_per_user"
            )
            raise LimitReached(what="preferences of this namespace", limit=limit, remedy=remedy)


def _rank(found: Preference) -> tuple[float, float]:
    return -found.strength, -found.updated.timestamp() if found.updated else 0.0


def _kept(stored: Preference, given: Given) -> str:
    return (
        f"kept preference {stored.name}: {stored.value!r} has the strength {stored.strength:g}, "
        f"{given.value!r} no more than {given.strength:g}"
    )


def _changes(before: Document | None, after: Document | None) -> tuple[Change, ...]:
    """What makes `after` of `before`: nothing where both are the same."""
    if after is None or (before is not None and before.data == after.data):
        return ()
    # Never merged with what somebody else wrote: whether a value is taken depends on all that stood there.
    return (Change(path=after.path, before=before, content=after.data, merge=False),)


def _deletion(document: Document) -> Change:
    return Change(path=document.path, before=document, delete=True, merge=False)
