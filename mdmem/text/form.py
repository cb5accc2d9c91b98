"""The two forms of a memory, told apart by the end of its name."""

SUFFIXES = (".md", ".json")


def is_json(path: str) -> bool:
    """Whether the memory at `path` is JSON; otherwise it is Markdown."""
    return path.endswith(".json")
