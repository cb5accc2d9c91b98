"""Sharing: what the owner of a memory allows other users to do with it, in the field `access`.

    access:
      read: [bob, everyone]
      write: [carol]
      until: 2027-01-31

What has another form grants nothing, and is no error: other tools have a field of this name, too. All grants
of a memory end at one moment, so that none is made longer by one for somebody else.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from mdmem.document.document import Document
from mdmem.document.edit import spliced
from mdmem.document.field import unset_field, with_field
from mdmem.document.moment import moment_of, stamp
from mdmem.document.tree import same
from mdmem.errors import LimitReached, NamedNotFound, Usage
from mdmem.kind import NAMESPACES, OBSERVATION, PROPOSAL, SESSION_SUMMARY, WORKING
from mdmem.memory import history
from mdmem.memory.content import has_passed, without_empty_frontmatter
from mdmem.memory.validity import read_moment
from mdmem.vault.paths import USERS, decode_id, encode_id, is_encoded, join
from mdmem.vault.plan import EditPlan
from mdmem.vault.vault import Vault

LEVELS = READ, WRITE, FULL = "read", "write", "full"
"""What a user may do, each with what those before it allow."""
EVERYONE = "everyone"
# Fields that say who may use a memory, which one it is, and whether it counts, or is told in every prompt.
_OWNED = ("access", "id", "until", "expires", "valid_to", "superseded_by", "tier")
_MOST_USERS = 100
_NEVER_SHARED = frozenset(kind.folder for kind in (SESSION_SUMMARY, WORKING, OBSERVATION, PROPOSAL))


class Access(NamedTuple):
    """Who may use a memory beside its owner.

    Attributes:
        users: the level of each user: read, write or full; `everyone` is every user.
        until: the moment at which all of it ends, as it is written; empty for never.
        problem: why the memory grants nothing, where it has a field `access` or cannot be read.
    """

    users: dict[str, str] = {}  # noqa: RUF012 - nobody changes it
    until: str = ""
    problem: str = ""

    def level_of(self, user: str, now: datetime) -> str:
        """Return the level of a user at a moment; empty for none."""
        levels = set() if has_passed(self.until, now) else {self.users.get(user), self.users.get(EVERYONE)}
        return next((level for level in reversed(LEVELS) if level in levels), "")


def read_access(document: Document) -> Access:
    """Read who may use a memory: nobody where any of its frontmatter cannot be read."""
    flaws, given = document.frontmatter.flaws, document.fields.get("access")
    if flaws or document.is_json:
        return Access(problem=flaws[0].message if flaws else "a JSON memory has no frontmatter")
    fields = given if isinstance(given, dict) else {}
    until, users = fields.get("until", ""), {level: fields.get(level, []) for level in LEVELS}
    is_access = fields.keys() <= {*LEVELS, "until"} and (until == "" or moment_of(until) is not None)
    lists = [each for each in users.values() if isinstance(each, list)]
    listed = [user for each in lists for user in each if isinstance(user, str)]
    is_access = is_access and len(lists) == len(LEVELS) and len(listed) == sum(map(len, lists)) <= _MOST_USERS
    if not is_access or not isinstance(given, dict | None):
        return Access(problem="its field `access` is not an object with read, write, full and until")
    return Access({user: level for level in LEVELS for user in users[level]}, str(until))


def find_owner(path: str) -> str | None:
    """Return the owner of a memory, by its path in the vault; None if it cannot be shared."""
    parts, start = path.split("/"), 0
    while start + NAMESPACES.get(parts[start], len(parts)) < len(parts):
        start += NAMESPACES[parts[start]]
    is_shared = parts[0] == USERS and start and parts[start].casefold() not in _NEVER_SHARED
    return decode_id(parts[1]) if is_shared and is_encoded(parts[1]) else None


def changes_owned(before: Document, after: Document) -> bool:
    """Tell whether a change touches fields that `write` leaves as they are."""
    owned = ({key: each.fields[key] for key in _OWNED if key in each.fields} for each in (before, after))
    return not same(*owned) or read_access(before) != read_access(after)


def require_sharing(vault: Vault) -> None:
    """Raise Usage where the config of a vault has sharing off."""
    vault.recover()  # another server may have changed the config
    if not vault.config.sharing.enabled:
        remedy = "write `enabled = true` below [sharing] in .mdmem/config.toml"
        raise Usage(problem="sharing is off in this vault", remedy=remedy)


def share(
    vault: Vault, path: str, user: str, level: str, until: datetime | str | None, now: datetime
) -> EditPlan:
    """Plan that a user may use a memory; see `Verbs.share`."""
    require_sharing(vault)
    before = history.require(vault, path, None)
    owner, known = find_owner(join(vault.namespace, before.path)), read_access(before)
    encode_id(user)
    if level not in LEVELS:
        raise Usage(problem=f"there is no level {level!r}", remedy=f"a level is {', '.join(LEVELS)}")
    if owner is None:
        remedy = (
            "name a memory of a user, and no conversation or proposal; what everyone may read belongs into"
        )
        raise Usage(problem=f"{path} cannot be shared", remedy=f"{remedy} projects/ or the top")
    if user == owner:
        raise Usage(problem=f"{user} is the owner of {path}", remedy=f"name another user, or {EVERYONE}")
    if known.problem:
        remedy = f"fix its frontmatter, or `mdmem unshare {path}` removes `access`"
        raise Usage(problem=f"{path} grants nothing: {known.problem}", remedy=remedy)
    if until is not None and read_moment(until, now) <= now:
        raise Usage(problem=f"{until} is over", remedy="give a day or time to come, or none")
    # What is over must not begin again with a grant to somebody else.
    known = Access() if has_passed(known.until, now) else known
    end = (
        known.until if until is None else until if isinstance(until, str) else stamp(read_moment(until, now))
    )
    others = {each: known.users[each] for each in known.users if each != user}
    if others and moment_of(end) != moment_of(known.until):
        problem = f"{path} is shared with {', '.join(others)} until {known.until or 'that is taken back'}"
        raise Usage(problem=problem, remedy="its grants end together: give that end, or unshare it first")
    if len(others) >= _MOST_USERS:
        raise LimitReached(what=f"users of {path}", limit=_MOST_USERS, remedy="unshare it with some of them")
    return _plan(before, {**others, user: level}, end, f"share {path} with {user} ({level})")


def unshare(vault: Vault, path: str, user: str | None) -> EditPlan:
    """Plan to take back what a user may do with a memory, or all users; see `Verbs.unshare`."""
    before = history.require(vault, path, None)
    known = read_access(before)
    if user is not None and user not in known.users:
        raise NamedNotFound(kind=f"user who may use {path}", name=user, near=tuple(known.users))
    left = {each: level for each, level in known.users.items() if user not in {None, each}}
    return _plan(before, left, known.until, f"unshare {path}{f' with {user}' if user else ''}")


def _plan(before: Document, users: dict[str, str], until: str, message: str) -> EditPlan:
    after = before
    if users:
        levels = {level: [user for user in users if users[user] == level] for level in LEVELS}
        value = {level: listed for level, listed in levels.items() if listed}
        after = with_field(before, ("access",), value | ({"until": until} if until else {}))
    elif "access" in before.fields:
        after = without_empty_frontmatter(spliced(before, unset_field(before, ("access",))))
    return history.rewriting(before, after, message)
