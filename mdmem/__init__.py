"""mdmem keeps an agent's memory as plain Markdown and JSON files."""

__version__ = "0.1.0"
