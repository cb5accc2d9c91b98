"""What the name of a file says: which form a memory has, and which file is project memory."""

SUFFIXES = (".md", ".json")
PROJECT_FILE = "AGENTS.md"


def is_json(path: str) -> bool:
    """Whether the memory at `path` is JSON; otherwise it is Markdown."""
    return path.endswith(".json")


LINEAGE = ("superseded_by", "derived_from")
"""The fields that name other memories: as links, or plainly by a path or an id."""
