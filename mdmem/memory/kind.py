"""What is to be remembered, kept where its kind is kept.

A kind of a vault's own, and any without verbs of its own, grows as notes do: a text becomes a section at the
end of the memory that is named. An object fills in the kind's template, which makes a new memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mdmem.errors import Usage
from mdmem.kind import NOTE, PREFERENCE, PROJECT, WORKING, Kind
from mdmem.memory.notes import Notes

if TYPE_CHECKING:
    from collections.abc import Callable

    from mdmem.memory.memory import Kinds
    from mdmem.memory.verbs import Build
    from mdmem.vault.vault import Vault

R = TypeVar("R")

_CATEGORY_AND_KEY = "category/key, such as ui/theme"
_NAMES = {
    PREFERENCE.name: _CATEGORY_AND_KEY,
    PROJECT.name: "a heading of AGENTS.md",
    WORKING.name: "the id of the thread",
}
# Options that are of one kind; what belongs to notes is of every kind that grows as they do.
_OPTIONS = {"title": NOTE, "why": PREFERENCE, "resource": WORKING, "ttl": WORKING}


def remember(
    verbs: Kinds[R],
    vault: Vault,
    run: Callable[[Build], R],
    kind: str,
    name: str,
    value: Any,
    *,
    base: str | None = None,
    **options: Any,
) -> R:
    """Keep something where its kind is kept; see `Kinds.remember`.

    Args:
        verbs: the verbs of the kinds, of a memory or of its plan.
        vault, run: as `Verbs` takes them.
        kind, name, value, base: as `Kinds.remember` takes them.
        options: title, why, resource, ttl; None where it is not given.
    """
    row = _row(vault, kind)
    like = row if row.name in _NAMES else NOTE
    for option, of in _OPTIONS.items():
        if options.get(option) is not None and of is not like:
            raise Usage(problem=f"{option} is for {of.name}, not for {kind}")
    if base is not None and like not in {WORKING, PREFERENCE}:
        raise Usage(problem=f"a {kind} entry is added whatever else has changed", remedy="leave base out")
    resource, ttl = options.get("resource"), options.get("ttl")
    if resource and name:
        problem = "working memory is of a thread or of a resource"
        raise Usage(problem=problem, remedy="give name or resource")
    if not (name or resource):
        what = _NAMES.get(row.name, f"the name of the {kind}")
        raise Usage(problem="name must be given", remedy=f"here it is {what}")
    if like is WORKING:
        return verbs.working.update(value, thread=name or None, resource=resource, ttl=ttl, base=base)
    if like is PREFERENCE:
        return verbs.preferences.set(*_category_and_key(name), value, why=options.get("why"), base=base)
    if like is PROJECT:
        return verbs.project.append(name, _text(value))
    if isinstance(value, Mapping) and row.template and row is not NOTE:
        return verbs.new(kind, name, value)
    return Notes(vault, run, kind=row).append(name, _text(value), options.get("title"))


def _row(vault: Vault, name: str) -> Kind:
    remembered = {kind.name: kind for kind in vault.config.kinds if kind.is_remembered}
    if name not in remembered:
        known = ", ".join(sorted(remembered))
        raise Usage(problem=f"nothing is remembered as {name!r}", remedy=f"a kind is one of {known}")
    return remembered[name]


def _category_and_key(name: str) -> tuple[str, str]:
    category, _slash, key = name.partition("/")
    if not (category and key):
        raise Usage(problem=f"name is {name!r}", remedy=f"for a preference it is {_CATEGORY_AND_KEY}")
    return category, key


def _text(value: Any) -> str:
    if not isinstance(value, str):
        remedy = "only a preference or working memory may be any JSON"
        raise Usage(problem="value is a text here", remedy=remedy)
    return value
