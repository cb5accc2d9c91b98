"""What git knows of the memories of one scope: its history, in facts; not that of the vault itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING

from mdmem.errors import DocumentRefused, SectionNotFound, Usage
from mdmem.git.history import LoggedCommit
from mdmem.memory.verbs import Build, KindVerbs, R
from mdmem.review.blame import SaidFact, blame
from mdmem.review.past import ChangedMemory, FactTarget, find_changes, read_versions
from mdmem.review.review import MemoryChanges, Review
from mdmem.review.tracked import MemoryCommit, Tracked
from mdmem.vault.paths import StrPath, path_text, path_texts
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.index.view import View
    from mdmem.review.commits import Committed
    from mdmem.review.decisions import ReviewedMemories
    from mdmem.review.merge_setup import MergeSetup


class Git(KindVerbs[R]):
    """What git, the program, knows of the memories of one scope, and commits of them.

    It is asked about commits and the index; no setting of the repository starts a program. The history of the
    vault itself, which needs no repository, is `history`, `undo` and `restore`.

    Args:
        vault, run: as for `KindVerbs`.
        view: returns what the index knows of the memories now.
    """

    def __init__(self, vault: Vault, run: Callable[[Build], R], view: Callable[[], View]) -> None:
        vault.require_folder("git")
        super().__init__(vault, run)
        self._view = view

    def log(
        self, path: StrPath | None = None, anchor: str = "", *, limit: int | None = None
    ) -> list[MemoryCommit]:
        """Return the commits that touched memories of the namespace, newest first.

        Args:
            path: only those that touched this memory, under whatever name.
            anchor: only commits that changed one part of that memory: a section, named by its heading, or a
                block, named by `^` and its id.

        Raises:
            PathRefused: `path` cannot name a memory of this namespace.
            SectionNotFound: no version of the memory has what `anchor` names.
            GitFailed: the vault is in no repository, there is no git, or it cannot say.
        """
        if anchor and path is None:
            raise Usage(problem="a heading or block id needs its memory", remedy="give the memory as well")
        with Tracked(self._vault) as tracked:
            names = tracked.names if path is None else [tracked.name(path_text(path))]
            if tracked.head is None:
                return []
            with closing(tracked.history.log(names, tracked.head, follow=path is not None)) as found:
                if not anchor or path is None:
                    return list(islice(tracked.describe_commits(found), limit))
                versions = (version for logged in found for version in _read_memories(logged, tracked))
                changes = find_changes(versions, FactTarget(path_text(path), anchor, ""))
                touched = (each.commit for each in changes if each.commit)
                if not (commits := list(islice(tracked.describe_commits(touched), limit))):
                    remedy = "no commit has it: see what the memory says with `mdmem show`"
                    raise SectionNotFound(path=path_text(path), heading=anchor, remedy=remedy)
                return commits

    def blame(self, path: StrPath) -> list[SaidFact]:
        """Return each field and each fact of a memory, with who last changed it, when, and in which commit.

        Raises:
            MemoryNotFound: there is no such memory.
            DocumentRefused: it is too large, or no text, now or in the last commit.
        """
        with Tracked(self._vault) as tracked:
            return blame(self._vault, tracked, path_text(path))

    def diff(self, revisions: str = "", paths: Sequence[StrPath] | None = None) -> MemoryChanges:
        """Compare two states of the memories: memories, fields and facts, each named once.

        Args:
            revisions: `A..B`, two commits; `A...B`, what B has since both went apart; `A`, a commit and the
                files now; without any, the last commit and the files now, new ones included that git does not
                ignore. A commit that is left out is the last one.
            paths: only these memories and folders.

        Raises:
            NamedNotFound: no such commit, or two that have none in common.
            MemoryNotFound: one of `paths` is in neither state.
        """
        with Tracked(self._vault) as tracked:
            old, new = _resolve_states(tracked, revisions)
            return Review(self._vault, tracked, old, new, path_texts(paths or ())).changes()

    def install(self, program: str = "mdmem") -> MergeSetup:
        """Return what makes git merge the memories with mdmem; nothing is written before it is applied.

        Raises:
            Usage: a namespace is bound: git is set up for the whole vault.
            EditRefused: another driver has our name, or the marks in the attributes are broken.
        """
        from mdmem.review.merge_setup import install  # noqa: PLC0415 - repositories are seldom set up

        return install(self._whole_vault(), program)

    def uninstall(self) -> MergeSetup:
        """Return what takes out of the repository what `install` put in; as `install`."""
        from mdmem.review.merge_setup import uninstall  # noqa: PLC0415 - as install

        return uninstall(self._whole_vault())

    def _whole_vault(self) -> str:
        if self._vault.namespace:
            remedy = "leave out --user, --project and --resource"
            raise Usage(problem="git is set up for the whole vault", remedy=remedy)
        return self._vault.root

    def revert(self, what: str, paths: Sequence[StrPath] = (), *, keep: Sequence[str] = ()) -> R:
        """Take back the last change of a fact, or what a commit did to memories, in what they say now.

        It goes by identity: what was written since stays, also around it. Nothing is committed; `undo` takes
        it back.

        Args:
            what: a fact, as `notes/db.md#^id`, `notes/db.md#Heading` for a section, `notes/db.md:some of its
                words` or `notes/db.md:7` for the one in that line; a field, as `notes/db.md:title`; a memory,
                as `notes/db.md`; else a commit.
            paths: of a commit, only what it did to these memories and folders.
            keep: what stays as it is, each named as `what`.

        Raises:
            NamedNotFound: there is no such commit, never was such a fact, or nothing to `keep` was changed.
            MemoryNotFound: the commit touched none of a path.
            RevertRefused: it cannot be taken back, with the reasons.
            GitRefused: the commit is a merge, or git never had the memory.
        """
        from mdmem.review.reverts import build_revert  # noqa: PLC0415 - start-up

        return self._run(build_revert(self._vault, what, path_texts(paths), keep))

    def review(self, paths: Sequence[StrPath] = (), *, split: Sequence[StrPath] = ()) -> ReviewedMemories:
        """List what differs from the last commit, by memory and row, with who made it; no proposals.

        Settings of the vault that differ, too, are told in `settings`.

        Args:
            paths: only these memories and folders.
            split: new memories of which each fact and field is a row.
        """
        from mdmem.review.decisions import Decisions  # noqa: PLC0415 - start-up

        with Tracked(self._vault) as tracked:
            return Decisions(self._vault, tracked).list_memories(path_texts(paths), path_texts(split))

    def reject(self, path: StrPath, rows: Sequence[str]) -> R:
        """Make rows of a memory what they are in the last commit; what is written beside them stays.

        With an added heading or item goes what was added in it. With its last row, a memory has the bytes of
        the last commit. Attachments that were moved go back where its links mean them. Nothing is committed;
        `undo` takes it back.

        Args:
            rows: the `row` of each, as `review` has it.

        Raises:
            RevertRefused: a row is gone or says something else by now, would change nothing, or cannot be
                taken back by itself.
        """
        from mdmem.review.decisions import Decisions  # noqa: PLC0415 - start-up

        with Tracked(self._vault) as tracked:
            build = Decisions(self._vault, tracked).build(path_text(path), rows, self._view)
        return self._run(build)

    def commit(
        self,
        message: str = "",
        *,
        only: Sequence[StrPath] = (),
        accepted: Mapping[str, Sequence[str]] | None = None,
        session: str | None = None,
        hooks: bool = False,
        dry_run: bool = False,
    ) -> Committed:
        """Commit the memories that have changed, are new or gone, mounted files, and the vault's settings.

        Files that are no memories go along where mdmem moved, made or deleted them, and git had them before;
        `notes` name others that are new to git. What else is staged stays staged, and only that. The user's
        hooks and signing hold. The settings are the `.gitignore` of the vault and what git tracks of
        `.mdmem`; a namespace has none.

        Args:
            message: what to say; without it, what was done. Trailers name the changes in the history of the
                vault that led from the last commit to what the files hold.
            only: these memories and folders; of a memory that was renamed, both names. No settings.
            accepted: rows by path. Only memories are committed that have no other rows; the rest is left out,
                and told. No settings.
            session: in which it was done, for the trailer `Mdmem-Session`.
            hooks: run the programs that the repository itself names: its hooks, filters, signing.
            dry_run: only say what would be committed.

        Returns:
            The commit; its id is None for a dry run, and where there is nothing to commit.

        Raises:
            MemoryNotFound: `only` names none.
            Usage: both `only` and `accepted` are given.
            GitRefused: a merge or the like is under way, another git holds the lock of the index, or the
                repository would start programs that are not allowed.
            GitFailed: a hook, signing or git itself refused, with what it said; or git cannot be asked, or
                was ended since it fell silent.
        """
        from mdmem.review.commits import Commits  # noqa: PLC0415 - start-up

        commits = Commits(self._vault)
        return commits.commit(
            message,
            only=path_texts(only),
            accepted=accepted,
            session=session or "",
            hooks=hooks,
            dry_run=dry_run,
        )

    def allow(self, what: str, *, off: bool = False) -> str:
        """Let something be done for the user of this machine; with `off`, no longer.

        Args:
            what: `commit`: commit by itself, as the config of the vault wants it. `hooks`: run the programs
                that the repository itself names at a commit.
            off: take it back.

        Returns:
            Why nothing will be committed by itself all the same, as where the repository has other files than
            the memories; else an empty text.

        Raises:
            Usage: `what` is something else.
            StorageFailed: it cannot be kept.
        """
        from mdmem.review.commits import Commits  # noqa: PLC0415 - start-up

        return Commits(self._vault).allow(what, off=off)


def _read_memories(logged: LoggedCommit, tracked: Tracked) -> list[ChangedMemory]:
    """Read what a commit did to memories; nothing if it cannot be read."""
    with suppress(DocumentRefused):
        return [*read_versions(logged, tracked)]
    return []


def _resolve_states(tracked: Tracked, revisions: str) -> tuple[str | None, str | None]:
    """Return the commits that revisions name; None for a missing first commit, and for the files now."""
    old, dots, new = revisions.partition("..." if "..." in revisions else "..")
    if not dots:
        return tracked.history.resolve(old) if old else tracked.head, None
    states = tracked.history.resolve(old or "HEAD"), tracked.history.resolve(new or "HEAD")
    return (tracked.history.merge_base(*states), states[1]) if dots == "..." else states
