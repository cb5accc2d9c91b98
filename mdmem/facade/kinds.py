"""The kinds of memory, each with its verbs, and what is remembered by the name of its kind.

A kind of a vault's own, and any without verbs of its own, grows as notes do: a text becomes a section at the
end of the memory that is named. An object fills in the kind's template, which makes a new memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mdmem.document.arguments import require_text
from mdmem.errors import Usage
from mdmem.facade.lazy import Lazy
from mdmem.kind import NOTE, PREFERENCE, PROJECT, WORKING, Kind
from mdmem.memory.content import State
from mdmem.memory.verbs import Build, Verbs
from mdmem.vault.paths import Scope, StrPath, place_text
from mdmem.vault.plan import EditPlan, together
from mdmem.vault.vault import Vault

if TYPE_CHECKING:  # most commands use one of these, or none
    from mdmem.conversations.models.generator import Generator
    from mdmem.conversations.observe.capture import Capture
    from mdmem.conversations.observe.consolidation import ConsolidationStrategy
    from mdmem.conversations.observe.observations import Observations
    from mdmem.conversations.observe.summaries import Summaries
    from mdmem.conversations.sessions import Sessions
    from mdmem.index.links.lineage import Lineage
    from mdmem.index.view import View
    from mdmem.memory.inbox import Inbox
    from mdmem.memory.notes import Notes
    from mdmem.memory.preferences import Preferences
    from mdmem.memory.project import Project
    from mdmem.memory.references import References
    from mdmem.memory.rules import Rules
    from mdmem.memory.working import Working
    from mdmem.review.git import Git

R = TypeVar("R")

_CATEGORY_AND_KEY = "category/key, such as ui/theme"
_NAMES = {
    PREFERENCE.name: _CATEGORY_AND_KEY,
    PROJECT.name: "a heading of AGENTS.md",
    WORKING.name: "the id of the thread",
}
# Options that are of one kind; what belongs to notes is of every kind that grows as they do.
_OPTIONS = {"title": NOTE, "why": PREFERENCE, "resource": WORKING, "ttl": WORKING}


class Kinds(Verbs[R], Generic[R]):
    """The verbs for any memory, and the kinds with their own verbs."""

    def __init__(
        self, vault: Vault, scope: Scope, run: Callable[[Build], R], view: Callable[[], View]
    ) -> None:
        super().__init__(vault, run, view)
        self.scope = scope
        # A plan writes into no log how far it has read.
        self._run_locked, self._moves = run, False

    notes: Lazy[Notes[R]] = Lazy("mdmem.memory.notes:Notes", "_vault", "_run", doc="The notes.")
    working: Lazy[Working[R]] = Lazy(
        "mdmem.memory.working:Working", "_vault", "_run", doc="The working memory of threads and resources."
    )
    preferences: Lazy[Preferences[R]] = Lazy(
        "mdmem.memory.preferences:Preferences", "_vault", "_run", "_find_states_at", doc="The preferences."
    )
    project: Lazy[Project[R]] = Lazy(
        "mdmem.memory.project:Project", "_vault", "_run", doc="The project memory."
    )
    rules: Lazy[Rules[R]] = Lazy(
        "mdmem.memory.rules:Rules", "_vault", "_run", "scope", "_find_states_at", doc="The rules."
    )
    references: Lazy[References[R]] = Lazy(
        "mdmem.memory.references:References",
        "_vault",
        "_run",
        "_view",
        doc="What memories point at: links, tags, URLs, and code.",
    )
    lineage: Lazy[Lineage] = Lazy(
        "mdmem.index.links.lineage:Lineage", "_view", doc="What memories were derived from."
    )
    git: Lazy[Git[R]] = Lazy(
        "mdmem.review.git:Git",
        "_vault",
        "_run",
        "_view",
        doc="What git knows of the memories, and commits of them.",
    )
    summaries: Lazy[Summaries[R]] = Lazy(
        "mdmem.conversations.observe.summaries:Summaries",
        "_vault",
        "_run",
        "_sessions",
        doc="The summaries of sessions, one memory for each.",
    )
    observations: Lazy[Observations[R]] = Lazy(
        "mdmem.conversations.observe.observations:Observations",
        "_vault",
        "_run",
        "_sessions",
        doc="What stretches of sessions left behind.",
    )
    inbox: Lazy[Inbox[R]] = Lazy(
        "mdmem.memory.inbox:Inbox", "_vault", "_run", "_find_verb", doc="The changes that somebody proposes."
    )
    capture: Lazy[Capture[R]] = Lazy(
        "mdmem.conversations.observe.capture:Capture",
        "_vault",
        "_run_locked",
        "_find_verb",
        "_sessions",
        "_moves",
        doc="What is stated in sessions, and where it goes.",
    )
    _sessions: Lazy[Sessions] = Lazy(
        "mdmem.conversations.sessions:Sessions", "_vault", doc="The conversations."
    )

    def _find_verb(self, name: str) -> Callable[..., Build]:
        """Find a verb by its name; called, it returns what makes its plan, and reads nothing yet."""
        builds: Kinds[Build] = Kinds(self._vault, self.scope, lambda build: build, self._view)
        verb: Callable[..., Build] = attrgetter(name)(builds)
        return verb

    def _find_states_at(self, moment: datetime) -> dict[str, State]:
        """Find the memories that do not count at a moment, here and in wider scopes, by their names here."""
        from mdmem.memory.validity import find_shown_states  # noqa: PLC0415 - start-up

        return find_shown_states(self._view().layers(), moment)

    def prune(self) -> R:
        """Propose to delete what is hardly sure by now and nothing links to; see `mdmem.memory.upkeep`."""
        from mdmem.memory.content import utc_now  # noqa: PLC0415 - start-up
        from mdmem.memory.upkeep import list_doubtful  # noqa: PLC0415 - start-up

        def build() -> EditPlan:
            drafts = list_doubtful(
                self._view(), lambda path: bool(self.references.backlinks(path)), utc_now()
            )
            return self._find_verb("inbox.propose_each")(drafts)()

        return self._run(build)

    def consolidate(
        self,
        within: StrPath = "",
        strategies: Sequence[str | ConsolidationStrategy] = (),
        limit: int = 20,
        generator: Generator | None = None,
        *,
        accept: str = "",
    ) -> R:
        """Propose to make one memory of several that say the same.

        See `mdmem.conversations.observe.consolidation`.

        Args:
            within: compare the memories of this folder; all without.
            strategies: `redundant`, `conflict`, `summary` (of `within`), or strategies of one's own; without
                any the first one, and with a generator the second.
            limit: how many are proposed, and about how many pairs a model is asked, at most.
            accept: `same` accepts at once what differs in blanks and in lines of links alone.

        Raises:
            Usage: an argument that cannot mean anything.
        """
        from mdmem.conversations.observe.consolidation import draft_changes  # noqa: PLC0415 - start-up
        from mdmem.memory.content import utc_now  # noqa: PLC0415 - start-up
        from mdmem.memory.duplicates import ComparedMemories  # noqa: PLC0415 - start-up
        from mdmem.memory.proposal import EXPIRED  # noqa: PLC0415 - start-up

        # Drafted once: a plan may be built again under the lock, and a model is not asked there.
        view = self._view()
        memories = ComparedMemories(view, utc_now(), place_text(within))
        known = {each.id for each in self.inbox.list(all=True) if each.status != EXPIRED}
        found = draft_changes(memories, strategies, limit, generator, known, accept)

        def build() -> EditPlan:
            verbs = Verbs[EditPlan](self._vault, lambda build: build(), lambda: view)
            made = [getattr(verbs, each.verb)(**each.arguments) for each in found.accepted]
            proposed = self._find_verb("inbox.propose_each")(found.proposed)()
            message = f"supersede {len(made)}, {proposed.message}" if made else proposed.message
            left_out = (*proposed.left_out, *found.left_out)
            return together((*made, proposed), message)._replace(left_out=left_out)

        return self._run(build)

    def revoke(self, source: str) -> R:
        """Take a source out of all that has others, and propose to delete what has none.

        Args:
            source: a message such as `sessions/t1#7`, a session, a URL, or the path of a memory.

        Raises:
            Usage: no memory names the source.
        """
        from mdmem.memory.upkeep import revoke  # noqa: PLC0415 - start-up

        require_text(source=source)

        def build() -> EditPlan:
            plan, drafts = revoke(self._view(), source)
            proposed = self._find_verb("inbox.propose_each")(drafts)()
            return together((plan, proposed), plan.message)._replace(left_out=proposed.left_out)

        return self._run(build)

    def remember(
        self,
        kind: str,
        name: str,
        value: Any,
        *,
        title: str | None = None,
        why: str | None = None,
        resource: str | None = None,
        ttl: int | None = None,
        base: str | None = None,
    ) -> R:
        """Keep something where its kind is kept, by the verb of that kind.

        Args:
            kind: note, working, preference, project, or a kind that the vault declares.
            name: of a note, without which it is the log of today; the id of a thread; `category/key` of a
                preference; a heading of project memory.
            value: a text. A preference and working memory may be any JSON value. For a kind that the vault
                declares a text is added as a section, and an object fills in its template for a new memory.
            resource: write its working memory instead of a thread's; `name` is empty then.
            ttl: seconds that working memory lives from each change on; 0 for ever.
            base: the hash that the caller saw of working memory or a preference.

        Raises:
            Usage: there is no such kind, or it does not take what is given.
        """
        row = _find_kind(self._vault, kind)
        like = row if row.name in _NAMES else NOTE
        given = {"title": title, "why": why, "resource": resource, "ttl": ttl}
        _refuse_options(row, like, name, base, given)
        if row is NOTE and not name:
            return self.notes.today(_require_text(value))
        if like is WORKING:
            return self.working.update(value, thread=name or None, resource=resource, ttl=ttl, base=base)
        if like is PREFERENCE:
            return self.preferences.set(*_category_and_key(name), value, why=why, base=base)
        if like is PROJECT:
            return self.project.append(name, _require_text(value))
        if isinstance(value, Mapping) and row.template and row is not NOTE:
            return self.new(kind, name, value)
        from mdmem.memory.notes import Notes  # noqa: PLC0415 - start-up

        return Notes(self._vault, self._run, kind=row).append(name, _require_text(value), title)


def _refuse_options(row: Kind, like: Kind, name: str, base: str | None, given: Mapping[str, Any]) -> None:
    """Refuse options that a kind does not take, and a name that is missing."""
    for option, of in _OPTIONS.items():
        if given[option] is not None and of is not like:
            raise Usage(problem=f"{option} is for {of.name}, not for {row.name}")
    if base is not None and like not in {WORKING, PREFERENCE}:
        problem = f"a {row.name} entry is added whatever else has changed"
        raise Usage(problem=problem, remedy="leave base out")
    if given["resource"] and name:
        problem = "working memory is of a thread or of a resource"
        raise Usage(problem=problem, remedy="give name or resource")
    if row is NOTE and not name and given["title"] is not None:
        raise Usage(problem="the log of today has times as titles", remedy="give name, or no title")
    if row is not NOTE and not (name or given["resource"]):
        what = _NAMES.get(row.name, f"the name of the {row.name}")
        raise Usage(problem="name must be given", remedy=f"here it is {what}")


def _find_kind(vault: Vault, name: str) -> Kind:
    remembered = {kind.name: kind for kind in vault.config.kinds if kind.is_remembered}
    if name not in remembered:
        known = ", ".join(sorted(remembered))
        folder = next((kind.folder for kind in vault.config.kinds if kind.name == name), "")
        other = f"; a {name} is written whole: `mdmem write {folder}/NAME.md`" if folder else ""
        raise Usage(problem=f"nothing is remembered as {name!r}", remedy=f"a kind is one of {known}{other}")
    return remembered[name]


def _category_and_key(name: str) -> tuple[str, str]:
    from mdmem.memory.preferences import name_of  # noqa: PLC0415 - start-up

    within = name.removeprefix(f"{PREFERENCE.folder}/")
    category, key = name_of(f"{name.removesuffix('.md')}.md") or within.partition("/")[::2]
    if not (category and key):
        raise Usage(problem=f"name is {name!r}", remedy=f"for a preference it is {_CATEGORY_AND_KEY}")
    return category, key


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        remedy = "only a preference or working memory may be any JSON"
        raise Usage(problem="value is a text here", remedy=remedy)
    return value
