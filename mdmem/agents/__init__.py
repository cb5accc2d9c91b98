"""What coding tools are told by files: `AGENTS.md`, `CLAUDE.md`, rules of Cursor, and their like.

`resolve` says what one tool reads for one file, `audit` compares the tools, `sync` writes their files from
one source. Each tool's ways are one class in `tool` or `claude`, with the date of what it was written from.
"""
