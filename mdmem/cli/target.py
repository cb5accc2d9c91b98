"""The target of a command line: which memories it names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmem.memory.memory import Memory

ENVIRONMENT = {
    "vault": "MDMEM_VAULT",
    "user": "MDMEM_USER",
    "project": "MDMEM_PROJECT",
    "actor": "MDMEM_ACTOR",
}
"""The variables that stand in for options."""


class Target(NamedTuple):
    """Which memories the command line names: the vault, the scope, and who asks."""

    vault: str | None
    user: str | None
    project: str | None
    resource: str | None
    shared: bool
    actor: str

    def open(self) -> Memory:
        """The memories.

        Raises:
            VaultNotFound, Usage, PathRefused: there are none.
        """
        from mdmem.errors import Usage
        from mdmem.memory.memory import open as open_memory
        from mdmem.vault.paths import Scope

        kind, slash, identifier = (self.resource or "").partition("/")
        if self.resource and not (kind and slash and identifier):
            raise Usage(problem=f"--resource is TYPE/ID, not {self.resource!r}")
        scope = Scope(
            user=self.user,
            project=self.project,
            resource_type=kind or None,
            resource_id=identifier or None,
            shared=self.shared,
        )
        return open_memory(self.vault, scope, actor=self.actor)


class Plain(NamedTuple):
    """A command line that can be read without a library: its target, and its command with what follows."""

    target: Target
    command: tuple[str, ...]


def plain(arguments: Sequence[str]) -> Plain | None:
    """A command line in the form in which `mdmem install` writes it: options with their values, a command.

    None for any other form, which click reads.
    """
    found: dict[str, Any] = {name: os.environ.get(variable) or None for name, variable in ENVIRONMENT.items()}
    found |= {"resource": None, "shared": False, "actor": found["actor"] or ""}
    rest = iter(arguments)
    for argument in rest:
        name = argument.removeprefix("--")
        if not argument.startswith("-"):
            return Plain(Target(**found), (argument, *rest))
        if name == argument or name not in found:
            return None
        if name == "shared":
            found[name] = True
            continue
        found[name] = next(rest, None)
        if found[name] is None:
            return None
    return None
