"""A scope: whose memory, about what; it names a namespace."""

from __future__ import annotations

from dataclasses import dataclass

from mdmem.errors import Usage
from mdmem.vault.paths import encode_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whose memory, about what.

    Attributes:
        user: private to this user, unless `shared`.
        project: about this project.
        resource_type, resource_id: about this resource; both or neither.
        shared: for every user, whoever the user is.

    Raises:
        Usage: only one of `resource_type` and `resource_id`.
    """

    user: str | None = None
    project: str | None = None
    resource_type: str | None = None
    resource_id: str | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        if (self.resource_type is None) != (self.resource_id is None):
            raise Usage(problem="a resource has a type and an id", remedy="give both, or neither")

    @property
    def namespace(self) -> str:
        """The folder of this scope, relative to the vault; empty for the vault itself.

        Raises:
            PathRefused: an id that no file name can carry.
        """
        parts: list[str] = []
        if self.user is not None and not self.shared:
            parts += ["users", encode_id(self.user)]
        if self.project is not None:
            parts += ["projects", encode_id(self.project)]
        if self.resource_type is not None and self.resource_id is not None:
            parts += ["resources", encode_id(self.resource_type), encode_id(self.resource_id)]
        return "/".join(parts)

    @property
    def layers(self) -> tuple[str, ...]:
        """The namespaces that speak to this scope, from everyone's to its own, without repeats."""
        project = Scope(project=self.project, shared=True)
        user = Scope(user=self.user, shared=self.shared)
        return tuple(dict.fromkeys(("", project.namespace, user.namespace, self.namespace)))
