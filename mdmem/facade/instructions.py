"""Write project memory and rules into the files of coding tools, and set mdmem up in their settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mdmem.errors import Usage
from mdmem.memory.content import StatesAt
from mdmem.memory.project import Project
from mdmem.memory.verbs import Build
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.facade.scoped import ScopedMemory
    from mdmem.hosts.hosts import Setup
    from mdmem.hosts.sync import FilesSynced
    from mdmem.vault.transaction import Applied


class WorkspaceProject(Project["Applied"]):
    """The project memory, and the instruction files of tools beside it, which are not memories."""

    def __init__(self, vault: Vault, run: Callable[[Build], Applied], find_states: StatesAt) -> None:
        super().__init__(vault, run)
        self._find_states = find_states

    def sync(self, tools: Sequence[str] = (), *, check: bool = False) -> FilesSynced:
        """Write project memory and rules into the files of tools, in marked blocks.

        Each file is replaced atomically, and a copy of the old one is kept. A block that somebody edited is
        never overwritten.

        Args:
            tools: agents, claude, codex, copilot, cursor, gemini; all of them when empty.
            check: only report what differs.

        Raises:
            NeedsFolder: the vault is in a database.
            Usage: there is no such tool, or a user, project or resource is bound: the files are everyone's.
            Conflict: another program wrote in between.
        """
        from mdmem.hosts.sync import sync  # noqa: PLC0415 - start-up

        self._vault.require_folder("writing the files of coding tools")
        if self._vault.namespace:
            remedy = "leave --user, --project and --resource out"
            raise Usage(problem="instruction files are made from shared memory only", remedy=remedy)
        return sync(self._vault, self._find_states, tools=tools, check=check)

    def find_read_by_host(self, host: str, folder: str, short: int = 0) -> frozenset[str]:
        """Find the instruction files that a host reads whole by itself; see `mdmem.hosts.files`.

        The shared project memory is among them where it has at most `short` characters.
        """
        from mdmem.hosts.files import SourceFiles, find_read_by_host  # noqa: PLC0415 - start-up

        source = SourceFiles(os.path.realpath(self._vault.workspace), self._vault.hides)
        read = find_read_by_host(host, folder, source)
        top = self._vault.within("")
        found = top.find(top.project_file) if short else None
        if found is None or len(found.text) > short:
            return read
        root, parts = top.place(found.path)
        return read | {os.path.realpath(os.path.join(root, *parts))}


def install(memory: ScopedMemory, host: str, program: str, *, project: bool) -> Setup:
    """Prepare the change that adds the MCP server, and for some hosts hooks, to a host's settings.

    Nothing is written yet. Memories of no scope are served as the shared ones: else an agent would be served
    those of every user. Without an actor, each client of the server and the host of the hooks is one.

    Raises:
        NeedsFolder: the vault is in a database.
        Usage: the host has no such settings, or the project is the home folder.
        ExtraMissing: the server cannot run.
        EditRefused: a settings file cannot be added to.
    """
    from mdmem.hosts import hosts  # noqa: PLC0415 - start-up

    vault, scope = memory.vault, memory.scope
    vault.require_folder("connecting a host")
    resource = f"{scope.resource_type}/{scope.resource_id}" if scope.resource_type else None
    named = (("--user", scope.user), ("--project", scope.project), ("--resource", resource))
    options = [part for option, value in named if value for part in (option, value)]
    if scope.shared or not options:
        options.append("--shared")
    options += ["--actor", vault.actor] if vault.actor else []
    folder = hosts.find_project(vault.root) if project else None
    keeps_outputs = vault.config.capture.policy != "off"
    bound = hosts.ServerBinding(program, vault.root, tuple(options), folder, keeps_outputs)
    return hosts.install(host, bound)


def uninstall(host: str, root: str, *, project: bool) -> Setup:
    """Prepare the change that undoes `install`; an empty `root` means the vault is gone.

    Raises:
        Usage: the host has no such settings, or the project is the home folder.
        EditRefused: a settings file cannot be edited.
    """
    from mdmem.hosts import hosts  # noqa: PLC0415 - start-up

    return hosts.uninstall(host, hosts.find_project(root) if project else None)
