"""What the name of a file says: which form a memory has, and which file is project memory."""

SUFFIXES = (".md", ".json")
PROJECT_FILE = "AGENTS.md"


def is_json(path: str) -> bool:
    """Whether the memory at `path` is JSON; otherwise it is Markdown."""
    return path.endswith(".json")
