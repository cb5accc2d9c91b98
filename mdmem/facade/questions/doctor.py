"""The doctor: what is wrong with a vault itself, rather than with what its memories say."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from shutil import rmtree, which
from typing import TYPE_CHECKING, TypeAlias

from mdmem.conversations.log.logs import FOLDER, SUFFIX, capture_refused
from mdmem.diagnostic import Diagnostic, about_error, about_file
from mdmem.document.text.tokens import estimate, first_of
from mdmem.errors import MdmemError
from mdmem.facade.questions.check import find_hidden, find_same_ids, tell_guests
from mdmem.git.repository import Repository
from mdmem.hosts.hosts import find_commands
from mdmem.index import ripgrep
from mdmem.index.code.citations import keep_stale
from mdmem.index.links.dialect import find_site
from mdmem.index.links.lineage import check_lineage
from mdmem.index.links.move import known, repair
from mdmem.index.links.references import LINKS, occurrences, unresolved
from mdmem.index.view import View
from mdmem.kind import PROJECT_FILE
from mdmem.review.merge_setup import find_missing_driver
from mdmem.review.tracked import Tracked, describe_ignored
from mdmem.vault import files
from mdmem.vault.config import CONFIG_PATH
from mdmem.vault.folder import (
    IGNORE_FILE,
    SESSIONS_IGNORED,
    add_ignores,
    find_missing_ignores,
    takes_ignores,
)
from mdmem.vault.journal import ASIDE, STAGING
from mdmem.vault.local_store import LOCAL
from mdmem.vault.paths import Namespace, relative, unportable
from mdmem.vault.plan import EditPlan
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.vault.transaction import Applied

Facts: TypeAlias = dict[str, str | int]
_BESIDE = ".mdmem-"  # how the journal names a file that it stages beside its target …
_RECORDS = (".one", ".many", ".done")  # … and the records of its changes
_NAMED = 4  # of the memories that share an id
_CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "d", "version": "1"}}
_INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _CLIENT}
_REMOVED, _DELETE = "`mdmem doctor --fix` removes them", "delete them"
_OWN_FOLDERS = {"index": _REMOVED, "history": _DELETE, "results": _DELETE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the doctor found: facts by name, and findings; without findings the vault is clean.

    `diff` is what a dry run of the fixes would change in memories, which the fact `fixed` names.
    """

    facts: Facts
    findings: tuple[Diagnostic, ...]
    diff: str = ""


def examine(
    vault: Vault,
    view: Callable[[], View],
    fixed: Applied | EditPlan | None = None,
    others: Iterable[str] = (),
) -> Health:
    """Repair what a crash left; then look at config, mounts, names, schemas, programs, index and links.

    Args:
        fixed: what was fixed before, or the plan of it.
        others: the files that were fixed, or would be, and are no memories.
    """
    facts: Facts = {"vault": vault.name, "workspace": vault.workspace}
    if fixed:
        paths = ", ".join((*others, *(changed.path for changed in fixed.files)))
        facts["fixed"] = paths or "nothing"
    findings: list[Diagnostic] = []
    findings += _look_safely(lambda: vault.config.unknown)
    for look in (_check_files, _check_mounts, _check_schemas, _check_programs, _check_sessions):
        findings += _look_safely(partial(look, vault, facts))
    if vault.wall == Namespace():
        for of_owner in (_find_leftovers, _check_git, _find_foreign_state, _check_ignores):
            findings += _look_safely(partial(of_owner, vault))
    findings += _look_safely(lambda: _check_index(view(), facts))
    # A broken config is met wherever it is needed.
    diff = fixed.diff() if isinstance(fixed, EditPlan) else ""
    return Health(facts=facts, findings=tuple(dict.fromkeys(findings)), diff=diff)


def examine_host(health: Health, host: str, root: str) -> Health:
    """Add what an agent gets from the settings of a host: of each hook, run in `sh`, and of the server."""
    facts, findings = dict(health.facts), list(health.findings)
    given = {
        "sessionId" if host == "copilot-cli" else "session_id": f"doctor-{os.getpid()}",
        "cwd": os.getcwd(),
        "source": "startup",
        "prompt": "What is decided here?",
        "stop_hook_active": True,
        "tool_name": "Bash",
        "tool_input": {"command": "true"},
    }
    commands = list(find_commands(host, root))
    for path, event, command in commands:
        is_server = isinstance(command, list)
        words = command if isinstance(command, list) else ["sh", "-c", command]
        asked = json.dumps(_INITIALIZE if is_server else {**given, "hook_event_name": event}) + "\n"
        hint = f"`mdmem install {host}` writes it again"
        if not command:
            findings.append(
                about_file(path, "host-command", f"{event}: not what `install` writes: not run", hint)
            )
            continue
        try:
            ended = subprocess.run(  # noqa: S603 - it is what `install` writes
                words, input=asked, capture_output=True, text=True, timeout=30, check=False
            )
            told, failed = ended.stdout, ended.stderr if ended.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            told, failed = "", str(error)
        said = "starts" if is_server else f"about {estimate(told):,} tokens"
        is_failed = bool(failed) or (is_server and "serverInfo" not in told)
        name = f"{host} {event}"
        # The user's own settings come after those of the project, and count beside them.
        name = name if name not in facts else f"{name} of {path}"
        facts[name] = "fails" if is_failed else said if told else "nothing to say"
        if is_failed:
            message = f"{event} fails: {' '.join(failed.split()) or 'it does not answer'}"
            findings.append(about_file(path, "host-fails", message, "correct the cause that it names"))
    if not commands or not which("mdmem"):
        message = "mdmem is not on the PATH" if commands else f"nothing of mdmem is in the settings of {host}"
        findings.append(about_file(host, "host-missing", message, f"`mdmem install {host}`"))
    return replace(health, facts=facts, findings=tuple(findings))


def _look_safely(look: Callable[[], Iterable[Diagnostic]]) -> Iterator[Diagnostic]:
    """Yield the findings of a look, or the error that ends it."""
    try:
        yield from look()
    except MdmemError as error:
        yield about_error(error, getattr(error, "path", CONFIG_PATH))


def _check_index(view: View, facts: Facts) -> Iterator[Diagnostic]:
    """Yield what the index says, against the files, and of the links."""
    if notes := [note for note in view.index.notes if note not in view.vault.notes]:
        facts["index"] = "; ".join(notes)
    for path in find_differing(view):
        yield about_file(
            path,
            "index-differs",
            "the index does not say what the file says",
            "`mdmem doctor --fix` makes it again",
        )
    links = list(occurrences(view, types=LINKS))
    yield from unresolved(view, links)
    found = [found for found in check_lineage(view) if found.code == "lineage-circle"]
    for ident, paths in find_same_ids(view):
        message = f"{len(paths):,} memories have the id {ident!r}: {first_of(paths, _NAMED)}"
        found += [about_file(path, "duplicate-id", message, "give one of them another id") for path in paths]
    for path, problem in view.problems():
        found.append(about_file(path, "not-a-memory", problem, severity="warning"))
    yield from tell_guests(view.vault, found)
    known = [path for path, *_ in view.states()]
    sites = {(site := find_site(view.layout, path)).folder or ".": site for path in known}
    for folder, site in sorted(sites.items()):
        if site.tools:
            facts[f"notes in {folder}"] = " and ".join(site.tools)
    linked = {path for link in links for path in (link.place.path, link.target.partition("#")[0])}
    facts["indexed"] = len(known)
    facts["orphans"] = sum(path not in linked for path in known)


def find_differing(view: View) -> Iterator[str]:
    """Yield the memories that the index, though current, has otherwise than their files."""
    view.index.sync()
    paths = view.index.text(lambda text: text.paths())
    texts = {view.inside(path) for path in paths if view.vault.wall.holds(path)}
    for path, _, digest, _ in view.states():
        found = view.vault.find(path)
        if found is not None and (found.hash != digest or path not in texts):
            yield path
        texts.discard(path)
    yield from sorted(texts)


def fix_vault(vault: Vault, view: View) -> EditPlan:
    """Put right what is safe: remove leftovers, make a wrong index again, and say which links to fix.

    Returns:
        The plan that fixes links to memories that were moved by other programs.
    """
    for finding in _find_leftovers(vault):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(vault.root, finding.path))
    _remove_other_indexes(vault)
    if any(find_differing(view)):
        view.index.rebuild()
        view.forget_names()
    return plan_fixes(view)


def fix_ignores(vault: Vault, *, dry_run: bool) -> list[str]:
    """Add the lines that the `.gitignore` of a vault lacks, and return the path if it changes."""
    if vault.wall != Namespace() or not takes_ignores(vault.root) or not find_unignored(vault):
        return []
    if not dry_run:
        add_ignores(vault.root, find_missing_ignores(vault.root))
    return [IGNORE_FILE]


def plan_fixes(view: View) -> EditPlan:
    """Return the plan that fixes links to memories that were moved by other programs."""
    return keep_stale(view, repair(known(view), view.moves()))


def _remove_other_indexes(vault: Vault) -> None:
    own = _names_of_own(vault, "index")
    index = os.path.join(vault.root, LOCAL, "index")
    for name in _list_names(index) if own and files.is_folder(index) else ():
        path = os.path.join(index, name)
        if name in own:
            continue
        if files.is_folder(path):
            rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _check_files(vault: Vault, facts: Facts) -> Iterator[Diagnostic]:
    recovered = vault.recover()
    walked = list(vault.walk())
    facts["memories"] = sum(not file.problem for file in walked)
    if vault.config.check.guests:
        facts["guests"] = ", ".join(vault.config.check.guests)
    if vault.wall == Namespace():  # what others changed and kept is for the owner to know
        facts["recovered"] = recovered
        trash = _list_names(os.path.join(vault.root, LOCAL, "trash"))
        facts["kept versions"] = sum(name != "log.jsonl" for name in trash)
    problems = [
        about_file(file.path, "not-a-memory", file.problem, severity="warning")
        for file in walked
        if file.problem
    ]
    odd = _find_odd_names(file.path for file in walked if not file.problem)
    yield from tell_guests(vault, [*problems, *odd])


def _find_odd_names(paths: Iterable[str]) -> Iterator[Diagnostic]:
    """Yield files and folders with names that some systems cannot hold or tell apart."""
    looked: set[str] = set()
    folded: dict[tuple[str, str], str] = {}
    for path in paths:
        parts = path.split("/")
        for here in ("/".join(parts[: count + 1]) for count in range(len(parts))):
            if here in looked:
                continue
            looked.add(here)
            above, _, name = here.rpartition("/")
            reason, _ = unportable(name)
            if reason:
                hint = "rename it: `mdmem mv` takes every link along"
                yield about_file(here, "unportable-name", reason, hint, severity="warning")
            twin = folded.setdefault((above, name.casefold()), here)
            if twin != here:
                message = f"differs only in case from {twin}: the same name on macOS and Windows"
                hint = "rename one of them: `mdmem mv` takes every link along"
                yield about_file(here, "case-twin", message, hint, severity="warning")


def _check_schemas(vault: Vault, _: Facts) -> Iterator[Diagnostic]:
    yield from vault.schemas.lint()
    yield from vault.templates.lint()


def _check_programs(_: Vault, facts: Facts) -> list[Diagnostic]:
    try:
        program = ripgrep.program()
        facts["ripgrep"] = f"{program} {'.'.join(map(str, ripgrep.version(program)))}"
    except MdmemError as error:
        return [about_error(error, "rg")]
    return []


def _find_leftovers(vault: Vault) -> Iterator[Diagnostic]:
    """Yield temporary files that nothing uses any more, in the staging folder and beside mounted files."""
    staging = os.path.join(vault.root, STAGING)
    beside = {os.path.join(vault.workspace, *parts[:-1]): _BESIDE for parts in vault.disk.mounts.values()}
    found = [(f, name) for f, prefix in ({staging: ""} | beside).items() for name in _list_names(f, prefix)]
    # A change that another process is making right now has its record there, or is done by now.
    running = tuple(name.partition(".")[0] for name in _list_names(staging) if name.endswith(_RECORDS))
    for folder, name in found:
        file = os.path.join(folder, name)
        if not name.removeprefix(_BESIDE).startswith(running) and os.path.lexists(file):
            path = os.path.relpath(file, vault.root)
            yield about_file(path, "leftover", "a temporary file that nothing uses", "delete it")


def _check_git(vault: Vault) -> Iterator[Diagnostic]:
    """Report local state that git has, and memories that it ignores."""
    repository = Repository.find(vault.root)
    if repository is None:
        return
    if count := repository.tracked(repository.name(LOCAL)):
        message = f"git has {count} of its files and gives them to everyone; what came so is not used"
        yield about_file(LOCAL, "local-tracked", message, f"`git rm -r --cached {LOCAL}`")
    if not vault.namespace and (missing := find_missing_driver(repository)):
        yield missing
    with Tracked(vault, repository) as tracked:
        ignored = tracked.find_ignored([file.path for file in vault.walk() if not file.problem])
        if found := describe_ignored(tracked, ignored):
            yield found


def _find_foreign_state(vault: Vault) -> Iterator[Diagnostic]:
    """Report local state that was written elsewhere: it is not used, and takes room."""
    if passed := vault.disk.trash.passed_over():
        message = f"{passed} of its lines were not written here: that history is not used"
        yield about_file(f"{LOCAL}/trash", "not-from-here", message, severity="warning")
    for folder, hint in _OWN_FOLDERS.items():
        names = _list_names(os.path.join(vault.root, LOCAL, folder))
        if names and (others := len(set(names) - _names_of_own(vault, folder))):
            message = f"{others} files or folders there were not made here, and are not used"
            yield about_file(f"{LOCAL}/{folder}", "not-from-here", message, hint, severity="warning")
    if aside := _list_names(os.path.join(vault.root, ASIDE)):
        message = f"{len(aside)} files that stood in {STAGING} and were not written here"
        yield about_file(ASIDE, "not-from-here", message, "delete them", severity="warning")


def _check_sessions(vault: Vault, _: Facts) -> Iterator[Diagnostic]:
    """Report conversations that git would take, or that hooks do not keep."""
    if refused := capture_refused(vault):
        yield about_file(CONFIG_PATH, refused.code, refused.message, refused.hint, severity="warning")
    walked = {found.path.rpartition("/")[0] for found in vault.store.walk(vault.wall, (".jsonl",))}
    folders = sorted(folder for folder in walked if folder.rpartition("/")[2] == FOLDER)
    if not folders:
        return
    if repository := Repository.find(vault.root):
        taken = repository.taken(list(map(repository.name, folders)))
        for folder in folders:
            name = repository.name(folder) + "/"
            if count := sum(each.startswith(name) and each.endswith(SUFFIX) for each in taken):
                message = f"conversations that git takes: {count}; they are private, and grow all the time"
                hint = f"add {' and '.join(SESSIONS_IGNORED)} to the .gitignore of the vault"
                shown = relative(folder, vault.namespace)
                yield about_file(shown, "sessions-in-git", message, hint, severity="warning")


def _check_ignores(vault: Vault) -> Iterator[Diagnostic]:
    if lines := find_unignored(vault):
        message = f"lacks lines that keep private files out of git: {first_of(lines, _NAMED)}"
        hint = "`mdmem doctor --fix` adds them"
        if not takes_ignores(vault.root):
            hint = f"it is no regular file: put one there, with the lines {' '.join(lines)}"
        yield about_file(IGNORE_FILE, "not-ignored", message, hint, severity="warning")


def find_unignored(vault: Vault) -> list[str]:
    """Return the lines that the `.gitignore` of a vault lacks, where git would take their files."""
    missing = find_missing_ignores(vault.root)
    repository = Repository.find(vault.root) if missing else None
    if repository is None:
        return []
    # What another ignore file leaves out needs no line.
    samples = {repository.name(_make_sample(line)): line for line in missing}
    return [samples[name] for name in repository.find_unignored(list(samples))]


def _make_sample(line: str) -> str:
    """Return a file that a line of `.gitignore` leaves out."""
    name = line.replace("**", "users/x").replace("*", "x").strip("/")
    return f"{name}/x" if line.endswith("/") else name


def _names_of_own(vault: Vault, folder: str) -> set[str]:
    with contextlib.suppress(MdmemError):
        return {os.path.basename(vault.disk.own(folder))}
    return set()


def _list_names(folder: str, prefix: str = "") -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.startswith(prefix))
    except OSError:
        return []  # whether it can be read is for those to say who need it


def _check_mounts(vault: Vault, _: Facts) -> Iterator[Diagnostic]:
    for path, parts in vault.disk.mounts.items():
        # `init` mounts the project memory before there is any: its first entry makes the file.
        if not vault.wall.holds(path) or path == PROJECT_FILE:
            continue
        shown = relative(path, vault.namespace)
        target = os.path.join(vault.workspace, *parts)
        if not os.path.exists(target):
            message = f"the mounted file {os.path.join(*parts)} does not exist yet"
            yield about_file(
                shown, "mount-missing", message, "create the file, or remove the mount", severity="warning"
            )
    yield from find_hidden(vault)
