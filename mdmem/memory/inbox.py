"""The inbox: changes that somebody proposes, each a memory `inbox/<id>.md` until it is accepted or rejected.

To accept a proposal is one change: it does what is proposed to what is there now, and removes the proposal.
So it happens once, whoever asks at the same time, and undoing it brings both back.
"""

from __future__ import annotations

import builtins
import dataclasses
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from mdmem.diagnostic import SECRETS, SECRETS_HINT, Diagnostic, about_file
from mdmem.document.arguments import complete_id, json_value, texts_of
from mdmem.document.document import Document, Limits
from mdmem.document.field import set_field, with_field
from mdmem.document.moment import stamp
from mdmem.document.secret import redacted
from mdmem.document.source import MOST_SOURCES
from mdmem.errors import Conflict, EditRefused, Invalid, LimitReached, MdmemError, NamedNotFound, Usage
from mdmem.kind import PROPOSAL, RULE, kind_at
from mdmem.memory import content, history, proposal as proposals
from mdmem.memory.proposal import EXPIRED, OPEN, REJECTED, Proposal
from mdmem.memory.verbs import Build, FindVerb, KindVerbs, R
from mdmem.vault.plan import Change, EditPlan, deletion, edit, together
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.memory.upkeep import ProposalDraft

WAITING = "proposals that wait"
"""What there are too many of, where `LimitReached` says so."""
_MOST_NEAR = 5


class Inbox(KindVerbs[R]):
    """The proposals of one namespace.

    One is named by its id, or by the path of its file. `clock` (UTC) says which have expired.
    """

    def __init__(
        self,
        vault: Vault,
        run: Callable[[Build], R],
        find_verb: FindVerb,
        *,
        clock: Callable[[], datetime] = content.utc_now,
    ) -> None:
        super().__init__(vault, run, clock)
        self._find_verb = find_verb

    # -- reading ------------------------------------------------------------------------------------------

    def list(self, *, all: bool = False) -> builtins.list[Proposal]:  # noqa: A002 - its name on the command line
        """List the proposals that wait, by path; with `all`, also those that were rejected or expired."""
        now = self._clock()
        paths = [found.path for found in self._vault.walk(PROPOSAL.folder) if not found.problem]
        proposed = filter(None, (proposals.find(path, self._vault, now) for path in paths))
        return [each for each in proposed if all or each.status == OPEN]

    def show(self, id: str) -> Proposal:  # noqa: A002 - its name everywhere else
        """Return one proposal, with its `problem`, or the diff that accepting it would make now.

        Raises:
            NamedNotFound: there is none of this id.
        """
        found = self._read_proposal(self._require_proposal(id, None))
        if found.problem:
            return found
        try:
            plan = proposals.plan_acceptance(found, proposals.bind_verb(found, self._find_verb), self._vault)
            return dataclasses.replace(found, diff=self._vault.prepare(plan).plan.diff())
        except MdmemError as error:
            return dataclasses.replace(found, problem=error.message)

    # -- changing -----------------------------------------------------------------------------------------

    def propose(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        *,
        reason: str = "",
        author: str = "",
        sources: Sequence[str] = (),
    ) -> R:
        """Propose that a verb be called with these arguments; nothing else is changed.

        The same verb with the same target and value is one proposal, whoever makes it: what is proposed again
        adds its sources to the one that waits. One that was rejected is not made again. A secret of a known
        format is taken out, with a warning.

        Args:
            verb: one of `mdmem.memory.proposal.VERBS`, such as `preferences.set`.
            arguments: its arguments by name: JSON values.
            author: who proposes it; without one the actor of this memory.
            sources: where it was said, such as `sessions/t1#3`.

        Raises:
            Usage: another verb, an argument that it does not take, or nothing would change.
            PathRefused: an argument leaves the namespace, or names a proposal.
            LimitReached: as many proposals wait as the config allows.
            MdmemError: as the verb, where what is proposed cannot be done now.
        """
        given = [*dict.fromkeys(texts_of(sources, "sources"))]
        said = {"reason": reason, "author": author or self._vault.actor, "sources": given}
        shape = {"arguments": json_value(arguments), **said}
        clean, warnings = redact_fields(self._vault, PROPOSAL.folder, shape)
        proposals.check_call(verb, clean["arguments"])
        new = proposals.new_proposal(verb, **{**clean, "sources": tuple(clean["sources"])})
        # Called before anything is built: a plan may be built again under the lock, a template never is.
        change = proposals.bind_verb(new, self._find_verb)
        return self._run(lambda: self._propose_plan(new, change)._replace(warnings=warnings))

    def propose_each(self, drafts: Iterable[ProposalDraft]) -> R:
        """Propose several changes at once; `left_out` names those that the config leaves no room for."""
        return self._run(lambda: self._plan_each(drafts))

    def _plan_each(self, drafts: Iterable[ProposalDraft]) -> EditPlan:
        room, left_out = self._vault.config.capture.max_open - len(self.list()), list[str]()
        plans = list[EditPlan]()
        for draft in drafts:
            given = {"reason": draft.reason, "author": self._vault.actor, "sources": ()}
            new = proposals.new_proposal(draft.verb, draft.arguments, **given)
            if not self._vault.exists(new.path):
                room -= 1
            if room < 0:
                left_out.append(f"{new.target}: {draft.reason}")
            else:
                plans.append(self._propose_plan(new, proposals.bind_verb(new, self._find_verb)))
        if left_out:
            left_out.append("accept, reject or sweep some proposals, or raise [capture] max_open")
        message = f"propose {sum(bool(plan.changes) for plan in plans)} changes"
        return together(plans, message)._replace(left_out=tuple(left_out))

    def _propose_plan(self, new: Proposal, verb: Build) -> EditPlan:
        now, settings = self._clock(), self._vault.config.capture
        before = self._vault.find(new.path)
        if before:
            found = proposals.read(before, now)
            return _plan_renewal(before, found, new.sources, now, settings.expires_days)
        if len(self.list()) >= settings.max_open:
            remedy = "accept, reject or sweep some, or raise [capture] max_open"
            raise LimitReached(what=WAITING, limit=settings.max_open, remedy=remedy)
        # Whoever proposes learns now what would be found out by whoever accepts.
        self._vault.prepare(proposals.plan_acceptance(new, verb, self._vault))
        expires = now + timedelta(days=settings.expires_days) if settings.expires_days else None
        document = proposals.to_document(self._vault, dataclasses.replace(new, created=now, expires=expires))
        if flaws := proposals.judge(document):
            raise Invalid(findings=tuple(flaws))
        change = Change(path=new.path, before=None, content=document.data)
        return EditPlan(changes=(change,), message=f"propose {new.verb}")

    def accept(self, id: str, *, base: str | None = None) -> R:  # noqa: A002 - its name everywhere else
        """Do what is proposed, to what is there now, and remove the proposal: one change.

        Args:
            base: the hash of the proposal that was shown (8 digits or more): refuse if it was changed since.

        Raises:
            NamedNotFound: there is none: it was accepted already, or never made.
            Conflict: it is not the one that `base` names, or was changed in this moment.
            EditRefused: it was rejected, has expired, cannot be read, or would change nothing.
        """
        document = self._require_proposal(id, base)
        found = self._read_proposal(document)
        self._refuse_closed(found)
        verb = proposals.bind_verb(found, self._find_verb)  # before anything is built, as in `propose`

        def build() -> EditPlan:
            now = self._require_proposal(id, None)
            if now.hash != document.hash:
                raise Conflict(path=now.path, base=document.hash, actual=now.hash)
            plan, limits = proposals.plan_acceptance(found, verb, self._vault), self._vault.config.limits
            changes = (*plan.changes, deletion(now))
            warnings = (*plan.warnings, *_list_off(plan, limits))
            message = f"accept {found.id}: {plan.message}"
            return plan._replace(changes=changes, message=message, warnings=warnings)

        return self._run(build)

    def reject(self, id: str, *, base: str | None = None) -> R:  # noqa: A002 - its name everywhere else
        """Say no to a proposal: its file stays with the status `rejected`, so that it is not made again.

        Raises:
            NamedNotFound: there is none.
            Conflict: it is not the one that `base` names.
        """

        def build() -> EditPlan:
            document = self._require_proposal(id, base)
            edits = set_field(document, ("status",), REJECTED)
            return edit(document, edits, f"reject {document.path}", merge=False)

        return self._run(build)

    def sweep(self) -> R:
        """Remove the proposals that have expired, except those that were rejected."""

        def build() -> EditPlan:
            expired = [each.path for each in self.list(all=True) if each.status == EXPIRED]
            changes = tuple(deletion(self._vault.read(path)) for path in expired)
            return EditPlan(changes=changes, message=f"sweep {len(changes)} expired proposals")

        return self._run(build)

    # -- what the verbs share -----------------------------------------------------------------------------

    def _require_proposal(self, identifier: str, base: str | None) -> Document:
        if not identifier.strip():
            raise Usage(problem="a proposal has an id", remedy="see them with `mdmem inbox list`")
        document = self._vault.find(proposals.path_of(identifier))
        if document is None:
            whole = complete_id("proposal", identifier, (each.id for each in self.list(all=True)))
            document = self._vault.find(proposals.path_of(whole)) if whole != identifier else None
        if document is None:
            near = tuple(each.id for each in self.list()[:_MOST_NEAR])
            raise NamedNotFound(kind="proposal", name=identifier, near=near)
        history.compare(self._vault, document, base)
        return document

    def _read_proposal(self, document: Document) -> Proposal:
        if not proposals.is_proposal(document):
            raise EditRefused(
                path=document.path, reason=f"this is not a proposal: its `type` is not {PROPOSAL.name}"
            )
        return proposals.read(document, self._clock())

    def _refuse_closed(self, found: Proposal) -> None:
        if found.problem:
            raise EditRefused(path=found.path, reason=found.problem, remedy="fix it, or reject it")
        if found.status == REJECTED:
            remedy = "undo that, or give it the status `open`"
            raise EditRefused(path=found.path, reason="it was rejected", remedy=remedy)
        if found.status == EXPIRED and found.expires:
            reason = f"it expired at {stamp(found.expires)}"
            raise EditRefused(path=found.path, reason=reason, remedy="propose it again")


def _plan_renewal(
    before: Document, found: Proposal, sources: Sequence[str], now: datetime, days: int
) -> EditPlan:
    """Plan to add new sources to a proposal that is made again, and to let it expire `days` from now.

    A rejected proposal stays as it is. So does one without new sources, unless it has expired and is made
    again without any sources.
    """
    if found.status == REJECTED:
        return EditPlan(changes=(), message=f"{before.path} was rejected, and is not proposed again")
    new = [each for each in dict.fromkeys(sources) if each not in found.sources]
    if (not new or len(found.sources) >= MOST_SOURCES) and (sources or found.status == OPEN):
        return EditPlan(changes=(), message=f"{before.path} is proposed already")
    document = before
    if new:
        document = with_field(document, ("sources",), [*found.sources, *new][:MOST_SOURCES])
    if days and found.expires:
        document = with_field(document, ("expires",), stamp(now + timedelta(days=days)))
    return history.rewriting(before, document, f"propose again {before.path}")


def redact_fields(
    vault: Vault, path: str, shape: Mapping[str, Any]
) -> tuple[Mapping[str, Any], tuple[Diagnostic, ...]]:
    """Return the fields for `path` without secrets, and warnings; the policy `off` leaves them unchanged."""
    config = vault.config.secrets
    if config.policy == "off":
        return shape, ()
    clean, found = redacted(shape, config.allow)
    warnings = []
    for each in found:
        message = f"{each.told}; {each.word} is written instead"
        warnings.append(
            about_file(path, SECRETS, message, SECRETS_HINT, severity="warning", rule=each.digest)
        )
    return clean, tuple(warnings)


def _list_off(plan: EditPlan, limits: Limits) -> Iterator[Diagnostic]:
    for change in plan.changes:
        after = change.after(limits) if kind_at(change.path) is RULE else None
        if after and after.fields.get("enabled") is False:
            hint = f"turn it on with `mdmem set {shlex.quote(change.path)} enabled=true`"
            yield about_file(change.path, "rule-off", "this rule is off", hint, severity="warning")
