"""The kinds of memory, one row for each. All code that lists kinds reads these rows.

A kind that does more than its row says has a module of its own in `mdmem.memory`. A vault declares further
kinds under `[kinds]` of its config, which are rows of the same form. The built-in schemas and templates that
rows name are files inside the wheel, or at the top of a checkout.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

PROJECT_FILE = "AGENTS.md"
"""The file of project memory."""


class Kind(NamedTuple):
    """A kind of memory.

    Attributes:
        name: what its memories say as their `type`.
        folder: where they stand below a namespace; empty for project memory, which is one file.
        schema: the schema of its memories, unless they name another one.
        template: the template that `mdmem new NAME` uses, where NAME is that of the kind; empty without one.
        title: the heading above its memories in a context, the text that an agent is given; empty where they
            have none of their own.
        share: how many of a context's tokens that part gets, relative to the other parts.
        is_remembered: whether `remember` takes it.
        is_ignored: whether git leaves it out, since it changes all the time.
    """

    name: str
    folder: str
    schema: str
    template: str = ""
    title: str = ""
    share: int = 0
    is_remembered: bool = False
    is_ignored: bool = False

    @property
    def part(self) -> str:
        """The name of its part of a context."""
        return self.folder or self.name


RULE = Kind("rule", "rules", "rule", "rule", "Rules", 20)
PROJECT = Kind("project", "", "project", title="Project memory", share=20, is_remembered=True)
PREFERENCE = Kind(
    "preference", "preferences", "preference", "preference", "Preferences", 10, is_remembered=True
)
WORKING = Kind(
    "working", "working", "working", title="Working memory", share=15, is_remembered=True, is_ignored=True
)
NOTE = Kind("note", "notes", "note", "note", is_remembered=True)
SESSION_SUMMARY = Kind("session-summary", "sessions", "session-summary")
OBSERVATION = Kind("observation", "observations", "observation")
PROPOSAL = Kind("proposal", "inbox", "proposal")

KINDS: tuple[Kind, ...] = (
    *(RULE, PROJECT, PREFERENCE, WORKING, NOTE),
    *(SESSION_SUMMARY, OBSERVATION, PROPOSAL),
)
"""The built-in kinds. Those that have a part of a context stand in the order of these parts."""

DEFAULT_SCHEMA = "memory"
NAMESPACES = {"users": 2, "projects": 2, "resources": 3}
"""The folders that begin a level of a namespace, each with the number of path parts of that level."""
MEANINGS = {
    RULE.folder: "agents are told its rules",
    PREFERENCE.folder: "agents are told its preferences",
    WORKING.folder: "working memory, which git leaves out",
    SESSION_SUMMARY.folder: "logs of conversations, which git leaves out, and their summaries",
    OBSERVATION.folder: "observations of conversations",
    PROPOSAL.folder: "proposals, which no agent is told of",
    "users": "each folder in it is private to a user",
    "projects": "each folder in it belongs to a project",
    "resources": "its folders belong to resources",
}
"""What a folder means by its name at the top of a vault, where that may be a surprise."""
FIELD_MEANINGS = {
    "valid_from": "counts from then on",
    "valid_to": "counts until then",
    "expires": "counts until then",
    "superseded_by": "counts no more",
    "tier": "pinned: agents are always given it",
}
"""What a field of its frontmatter says of a memory, where that may be a surprise."""


def namespace_of(path: str) -> list[str]:
    """Return the first folders of a path: those that name a user, a project or a resource."""
    folders, end = path.split("/")[:-1], 0
    while end < len(folders) and folders[end] in NAMESPACES:
        end += NAMESPACES[folders[end]]
    return folders[:end]


def kind_at(path: str, kinds: Iterable[Kind] = KINDS) -> Kind | None:
    """Return the kind of memory that stands at a path, in any namespace; None if it is of no kind."""
    *folders, file = path.split("/")
    if file == PROJECT_FILE:
        return PROJECT
    start = len(namespace_of(path))
    if start == len(folders) and file.casefold() == PROJECT_FILE.casefold():
        return PROJECT
    for folder in folders[start:]:
        for kind in kinds:
            if kind.folder == folder:
                return kind
    return None
