"""What a repository may not do when something is committed to it, unless its user lets it.

The user's own settings hold. What the repository itself would start is named and refused: its settings and
hooks may have come with it. So may links in git's folder, which git would follow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePath

from mdmem.document.text.regex import regex
from mdmem.errors import GitRefused
from mdmem.git.program import run_as_user
from mdmem.git.repository import Repository

# The files by which git shows what it is in the middle of, and the command that ends it.
_UNDER_WAY = {
    "MERGE_HEAD": "merge --abort",
    "rebase-merge": "rebase --abort",
    "rebase-apply": "rebase --abort",
    "CHERRY_PICK_HEAD": "cherry-pick --abort",
    "REVERT_HEAD": "revert --abort",
    "sequencer": "cherry-pick --abort",
    "BISECT_LOG": "bisect reset",
}
_WRITTEN = ("HEAD", "index", "COMMIT_EDITMSG", "logs", "logs/HEAD")  # by a commit, in git's folder
_HOOKS = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    *("reference-transaction", "post-index-change", "pre-auto-gc"),
)
_STARTED = regex(
    r"filter\..*\.(?:clean|process)|hook\..*\.command|gc\.recentobjectshook"
    r"|gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand"
)
_PROMISED = regex(r"extensions\.partialclone|remote\..*\.promisor")
_OWN = ("local", "worktree")  # scopes of the settings that may have come with the repository
_FALSE = ("false", "no", "off", "0", "")
_NO_FETCH = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}


def refuse(repository: Repository, folder: str, *, hooks: bool) -> dict[str, str]:
    """Refuse a repository in which no commit can or should be made now.

    Return what the environment of git is to have in addition.

    Args:
        folder: one in its work tree, where git is run.
        hooks: whether it may start its own programs: hooks, filters, signing.

    Raises:
        GitRefused: it is in the middle of something, its folder is not plainly its own, or it would start
            programs and may not.
    """
    for name, end in _UNDER_WAY.items():
        if os.path.lexists(os.path.join(repository.folder, name)):
            what = end.split()[0]
            finish = "`git commit`" if what == "merge" else "git"
            reason, remedy = (
                f"a {what} is under way",
                f"finish it with {finish}, or give it up with `git {end}`",
            )
            raise GitRefused(path=repository.top, reason=reason, remedy=remedy)
    if elsewhere := _find_link(repository) or _other_work_tree(repository, folder):
        reason = f"{elsewhere}, so that a commit would be written elsewhere"
        remedy = "if that is intended, commit with git itself"
        raise GitRefused(path=repository.top, reason=reason, remedy=remedy)
    return {} if hooks else _refuse_programs(repository, folder)


def _find_link(repository: Repository) -> str:
    """Describe the link through which a commit would be written; empty without one."""
    top, own, common = repository.top, repository.folder, repository.common
    ref, objects = PurePath(repository.branch() or "HEAD"), os.path.join(common, "objects")
    written = [os.path.join(top, ".git"), os.path.join(common, "packed-refs"), objects]
    written += [os.path.join(own, name) for name in _WRITTEN]
    written += [os.path.join(common, part, each) for part in ("", "logs") for each in (ref, *ref.parents)]
    with suppress(OSError):
        written += [os.path.join(objects, name) for name in os.listdir(objects)]
    found = next(filter(os.path.islink, written), "")
    return found and f"{os.path.relpath(found, top)} is a link"


def _other_work_tree(repository: Repository, folder: str) -> str:
    """Return why git's folder may belong to another work tree, in words; empty where it names this one."""
    trees = os.fsdecode(_ask_git(["worktree", "list", "--porcelain"], folder, "list the work trees"))
    if f"\nworktree {repository.top}\n" in f"\n{trees}":
        return ""
    # For a submodule, a setting names it.
    printed = run_as_user(["config", "--local", "core.worktree"], folder, "read the settings").printed
    named = os.path.join(repository.folder, os.fsdecode(printed.removesuffix(b"\n")))
    if printed and os.path.realpath(named) == os.path.realpath(repository.top):
        return ""
    return f".git names {repository.common}, which does not name this work tree"


def _refuse_programs(repository: Repository, folder: str) -> dict[str, str]:
    printed = _ask_git(["config", "--list", "-z", "--show-scope"], folder, "read the settings")
    words = os.fsdecode(printed).split("\0")
    settings = [(scope, *each.partition("\n")) for scope, each in zip(words[::2], words[1::2], strict=False)]
    own = {key: value if end else "true" for scope, key, end, value in settings if scope in _OWN}
    started = [key for key, value in own.items() if value and _STARTED.fullmatch(key)]
    if own.get("commit.gpgsign", "false").casefold() not in _FALSE:
        started.append("commit.gpgsign")
    scopes = [scope for scope, key, *_ in settings if key == "core.hookspath"]
    if not scopes or scopes[-1] in _OWN:  # else the hooks of the user are run in their place
        printed = _ask_git(["rev-parse", "--git-path", "hooks"], folder, "find the hooks")
        hooks = os.path.join(folder, os.fsdecode(printed.removesuffix(b"\n")))
        started += [f"hook {name}" for name in _HOOKS if os.access(os.path.join(hooks, name), os.X_OK)]
    if started:
        reason = f"a commit would start programs that the repository itself names: {', '.join(started)}"
        remedy = "run them this once with --hooks, or always with `mdmem git allow hooks`"
        raise GitRefused(path=repository.top, reason=reason, remedy=remedy)
    # A partial clone would fetch what it lacks, by programs that its settings name.
    return _NO_FETCH if any(map(_PROMISED.fullmatch, own)) else {}


def _ask_git(arguments: Sequence[str], folder: str, action: str) -> bytes:
    return run_as_user(arguments, folder, action).require(folder, action)
