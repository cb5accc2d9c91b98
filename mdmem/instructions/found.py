"""What a tool reads for a file: each instruction file with the reason, and how much of it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdmem.text import tokens

if TYPE_CHECKING:
    from mdmem.diagnostic import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An instruction file as a tool sees it.

    Attributes:
        path: relative to the workspace; `~/…` in the home directory; absolute elsewhere.
        tool: whose view this is.
        scope: whom the file speaks to: managed, user, project, local, rule or memory.
        reason: why the tool reads it, or does not.
        bytes: its size.
        bytes_kept: how many bytes of it the tool takes, comments and frontmatter that it drops not counted.
        text: what the tool takes.
        limit: the limit that cut it; empty where none did.
    """

    path: str
    tool: str
    scope: str
    reason: str
    bytes: int
    bytes_kept: int
    text: str = ""
    limit: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The file as a JSON object."""
        return {
            "path": self.path,
            "tool": self.tool,
            "scope": self.scope,
            "reason": self.reason,
            "bytes": self.bytes,
            "bytes_kept": self.bytes_kept,
            "limit": self.limit,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a tool reads for a file.

    Attributes:
        file: the file that it works on, relative to the workspace.
        tool: its name.
        as_of: when its rules were last compared with what it does: `2026-09`.
        files: what it reads, in its order.
        left_out: files that look as if it read them and that it does not, with the reason.
        findings: what is wrong: imports that fail, links that leave the workspace, patterns that are none.
    """

    file: str
    tool: str
    as_of: str
    files: tuple[Found, ...]
    left_out: tuple[Found, ...]
    findings: tuple[Diagnostic, ...]

    @property
    def text(self) -> str:
        """All that is kept, in order, with a blank line between files."""
        return "\n\n".join(found.text.strip("\r\n") for found in self.files if found.text.strip())

    @property
    def tokens(self) -> int:
        """About how many tokens the text is."""
        return tokens.estimate(self.text)

    def as_dict(self) -> dict[str, Any]:
        """The answer as a JSON object."""
        return {
            "file": self.file,
            "tool": self.tool,
            "as_of": self.as_of,
            "tokens": self.tokens,
            "files": [found.as_dict() for found in self.files],
            "left_out": [found.as_dict() for found in self.left_out],
            "findings": [finding.as_dict() for finding in self.findings],
            "text": self.text,
        }
