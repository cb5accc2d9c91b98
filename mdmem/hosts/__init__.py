"""What coding tools are told by files: `AGENTS.md`, `CLAUDE.md`, rules of Cursor, and their like.

`sync` writes them from one source, `files` says which of them Claude Code and Codex read by themselves, and
`hosts` puts mdmem into the settings of hosts.
"""
