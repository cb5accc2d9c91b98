"""A scope: whose memory, about what; it names a namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mdmem.errors import Usage, WrongType
from mdmem.vault.paths import encode_id, is_under, relative

USERS = "users"
"""The folder at the top of a vault that holds what is private to one user each."""


class Namespace(NamedTuple):
    """A folder of the vault, without some folders in it: the wall around what a scope sees.

    Attributes:
        folder: as the whole vault names it; empty for the vault itself.
        hides: the folders in it that do not belong to it.
    """

    folder: str = ""
    hides: tuple[str, ...] = ()

    def holds(self, path: str) -> bool:
        """Whether a memory or folder belongs to it, by its path as the whole vault names it."""
        # Some file systems take names that differ in case alone for the same.
        hidden = self.hides and any(is_under(path.casefold(), folder.casefold()) for folder in self.hides)
        return is_under(path, self.folder) and not hidden


class Layer(NamedTuple):
    """A namespace that a scope reads: its own one, which has no name, or one that others share with it.

    Attributes:
        name: what its paths begin with, before a colon; empty for the own one.
        namespace: what belongs to it.
    """

    name: str = ""
    namespace: Namespace = Namespace()

    def shown(self, path: str) -> str:
        """A path of the whole vault as the scope names it."""
        inside = relative(path, self.namespace.folder)
        return f"{self.name}:{inside}" if self.name else inside


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
        for name in ("user", "project", "resource_type", "resource_id"):
            value = getattr(self, name)
            if not isinstance(value, str | None):
                raise WrongType(problem=f"Scope() {name} must be str or None, not {type(value).__name__}")
        if not isinstance(self.shared, bool):
            raise WrongType(problem=f"Scope() shared must be bool, not {type(self.shared).__name__}")
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
            parts += [USERS, encode_id(self.user)]
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

    @property
    def is_owner(self) -> bool:
        """Whether nothing is bound: the owner of the files, who sees everything."""
        return self == Scope()

    @property
    def wall(self) -> Namespace:
        """What belongs to this scope.

        Raises:
            PathRefused: an id that no file name can carry.
        """
        folder = self.namespace
        return Namespace(folder, () if folder or self.is_owner else (USERS,))

    @property
    def reads(self) -> tuple[Layer, ...]:
        """What can be shown: its own namespace, then what is wider.

        That is what its user has for every project, what the project shares, and what everyone shares.
        """
        if self.is_owner:
            return (Layer("", self.wall),)
        layers = [Layer("", self.wall), Layer("shared", Scope(shared=True).wall)]
        if self.project is not None:
            layers.insert(1, Layer("project", Scope(project=self.project, shared=True).wall))
        if self.user is not None and not self.shared:
            folder = Scope(user=self.user).namespace
            layers.insert(1, Layer("user", Namespace(folder, (f"{folder}/projects", f"{folder}/resources"))))
        folders = [layer.namespace.folder for layer in layers]
        return tuple(layer for n, layer in enumerate(layers) if layer.namespace.folder not in folders[:n])

    @property
    def searches(self) -> tuple[Layer, ...]:
        """What search looks through: all of `reads` with a user and a project, else its own namespace."""
        return self.reads if self.user is not None and self.project is not None else self.reads[:1]
