"""What the tools' files should hold, made of the project memory and the rules, and how they differ from it.

It stands in marked blocks; everything around them is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mdmem.document.synced_block import (
    BrokenMarks,
    SyncedBlock,
    digest_block,
    find_block,
    gap_before_block,
    has_marks,
    without_block,
)
from mdmem.document.text.diff import unified
from mdmem.document.text.lines import Lines, with_newline
from mdmem.errors import EditRefused
from mdmem.hosts.files import AGENTS, expand_braces, find_imports

# The tools that get files of their own; Codex and other readers of AGENTS.md need only that file.
IMPORTERS = {"claude": ("CLAUDE.md", f"@{AGENTS}"), "gemini": ("GEMINI.md", f"@./{AGENTS}")}
FOLDERS = {
    "claude": (".claude/rules/mdmem", ".md"),
    "cursor": (".cursor/rules/mdmem", ".mdc"),
    "copilot": (".github/instructions/mdmem", ".instructions.md"),
}
TARGETS = ("agents", "claude", "codex", "copilot", "cursor", "gemini")


class RuleText(NamedTuple):
    """A rule of the vault; `file` is its path from the workspace."""

    name: str
    title: str
    globs: tuple[str, ...]
    text: str
    file: str


class Wanted(NamedTuple):
    """What a file of the workspace should hold: `inner`, made of `source`, in a block behind `header`."""

    path: str
    inner: str
    source: str
    header: str = ""

    def render(self) -> str:
        """Return the text of the header and the block."""
        digests = f"{digest_block(self.header)}.{digest_block(self.inner)}"
        mark = f"<!-- mdmem:begin {digests} from {self.source}, by `mdmem project sync` -->"
        return self.header + "\n".join([mark, _unmarked_text(self.inner), "<!-- mdmem:end -->", ""])


def list_wanted(
    tools: Sequence[str], rules: Sequence[RuleText], memory: str | None, copied: str
) -> list[Wanted]:
    """List the files that some tools need.

    Rules without globs stand in AGENTS.md, which every tool reads, or imports. A rule with globs is a file of
    its own for tools that know such rules, and for the others a line in AGENTS.md that says when to read it.

    `copied` is where the project memory is when that is not AGENTS.md itself, as the workspace names it.

    Raises:
        EditRefused: a text holds the marks of a block.
    """
    texts = {rule.file: rule.text for rule in rules}
    if copied:
        texts[copied] = memory or ""
    for path, text in texts.items():
        if has_marks(text):
            reason = "it holds a mark of a block, so it cannot stand in one"
            raise EditRefused(path=path, reason=reason, remedy="remove the mark")
    shared = _render_shared(rules, memory if copied else None)
    folder = rules[0].file[: -len(rules[0].name) - len(".md")] if rules else ""
    source = " and ".join(filter(None, (copied, folder)))
    files = [Wanted(AGENTS, shared, source)] if shared else []
    if shared or memory is not None:
        importers = [IMPORTERS[tool] for tool in tools if tool in IMPORTERS]
        files += [Wanted(path, line, AGENTS) for path, line in importers]
    return files + [
        _make_own(tool, rule) for tool in tools if tool in FOLDERS for rule in rules if rule.globs
    ]


def imports_shared(path: str, text: str) -> bool:
    """Return whether people have written the import of AGENTS.md into one of the tools' files themselves."""
    if path not in dict(IMPORTERS.values()):
        return False
    return any(target.removeprefix("./") == AGENTS for target in find_imports(without_block(text)))


def _render_shared(rules: Sequence[RuleText], memory: str | None) -> str:
    parts = [_unmarked_text(memory)] if memory and memory.strip() else []
    parts += [_render_rule(rule.title, rule.text) for rule in rules if not rule.globs]
    lines = [
        f"- {', '.join(f'`{glob}`' for glob in rule.globs)}: {rule.title} (`{rule.file}`)"
        for rule in rules
        if rule.globs
    ]
    if lines:
        lead = "## Rules for some files\n\nRead the rule before you change a file that it is about.\n"
        parts.append("\n".join([lead, *lines]))
    return "\n\n".join(parts)


def _render_rule(title: str, text: str) -> str:
    text = _unmarked_text(text)
    first, _, rest = text.partition("\n")
    has_title = first.startswith("#") and first.lstrip("#").strip() == title
    return f"## {title}\n\n{(rest if has_title else text).strip()}".rstrip()


def holds_rule(text: str, title: str, rule: str) -> bool:
    """Return whether a file's block holds a rule about every file, as the rule is now."""
    with suppress(BrokenMarks):
        if block := find_block(text):
            inner = _unmarked_text(text[slice(*block.inner)])
            return f"\n\n{_render_rule(title, rule)}\n\n" in f"\n\n{inner}\n\n"
    return False


def _unmarked_text(text: str) -> str:
    return with_newline(text, "\n").strip("\n")


def _make_own(tool: str, rule: RuleText) -> Wanted:
    folder, suffix = FOLDERS[tool]
    written = [portable(glob) for glob in rule.globs if not glob.startswith("!")]
    # Some globs with braces stand for more than a disk holds: those stay as they are.
    globs = expand_braces(written) or written
    # A rule that only leaves files out is about all others.
    fields = _FIELDS[tool](rule, globs or ["**"])
    header = "\n".join(["---", *fields, "---", ""])
    return Wanted(f"{folder}/{rule.name}{suffix}", _unmarked_text(rule.text), rule.file, header)


def portable(glob: str) -> str:
    """Write a glob of a rule as every tool reads it: `*.py` is `**/*.py`, `docs/` is `docs/**`."""
    inner = glob.removesuffix("/")
    if "/" not in inner and inner != "**":
        inner = f"**/{inner}"
    return inner.removeprefix("/") + ("/**" if glob.endswith("/") else "")


def _quote_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# The fields of each tool's rules; Cursor reads its globs bare.
_FIELDS = {
    "claude": lambda rule, globs: ["paths:", *(f"  - {_quote_text(glob)}" for glob in globs)],  # noqa: ARG005
    "cursor": lambda rule, globs: [
        f"description: {_quote_text(rule.title)}",
        f"globs: {','.join(globs)}",
        "alwaysApply: false",
    ],
    "copilot": lambda rule, globs: [f"applyTo: {_quote_text(','.join(globs))}"],  # noqa: ARG005
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file of a tool that is not what the source makes of it.

    Attributes:
        state: missing, outdated, stale (its rule is gone), or what `sync` leaves as it is: edited (somebody
            wrote in its block), foreign (not made by `sync`), refused (it cannot be written).
        before, after: the texts of the file; None where there is none. What is left as it is has `after`
            equal to `before`.
    """

    path: str
    state: str
    reason: str = ""
    before: str | None = None
    after: str | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether `sync` writes the file."""
        return self.before != self.after

    def diff(self) -> str:
        """Return what would be written, as a unified diff."""
        return unified(self.before, self.after, self.path)

    def json_shape(self) -> dict[str, Any]:
        """Return the difference as a JSON object."""
        shape = {"path": self.path, "state": self.state, "reason": self.reason}
        return {**shape, "fixed": self.is_fixed, "diff": self.diff()}


def compare(path: str, text: str | None, wanted: Wanted | None) -> Difference | None:
    """Compare a file with what is wanted, None for no block; return None when it is so.

    Outside of block and header no byte changes.
    """
    left = Difference(path=path, state="edited", before=text, after=text)
    try:
        block = find_block(text or "")
    except BrokenMarks:
        return replace(
            left, state="refused", reason="the marks of its block are broken: repair or delete them"
        )
    if wanted is None:
        return _compare_unwanted(left, text, block) if text is not None and block else None
    return (
        _compare_block(left, text, block, wanted) if text and block else _add_block(left, text or "", wanted)
    )


def _add_block(left: Difference, text: str, wanted: Wanted) -> Difference:
    if text and wanted.header:
        return replace(left, state="foreign", reason="a file of somebody else's stands there: move it away")
    block = with_newline(wanted.render(), Lines(text).newline)
    return replace(left, state="missing", after=text + gap_before_block(text) + block)


def _compare_block(left: Difference, text: str, block: SyncedBlock, wanted: Wanted) -> Difference | None:
    head, inner = text[: block.span.start], text[slice(*block.inner)]
    # A rule's file begins with its header; elsewhere what stands before the block is not ours.
    kept = "" if wanted.header else head
    after = kept + with_newline(wanted.render(), Lines(text).newline) + text[block.span.end :]
    if with_newline(after, "\n") == with_newline(text, "\n"):
        return None
    if wanted.header and digest_block(head) not in {block.header_digest, digest_block(wanted.header)}:
        reason = f"its header was changed: change the globs in {wanted.source}, and delete this file"
        return replace(left, reason=reason)
    if digest_block(inner) not in {block.digest, digest_block(wanted.inner)}:
        by_hand = f"take the change into {wanted.source}, and delete the block"
        return replace(left, reason=f"its block was changed: {by_hand}")
    return replace(left, state="outdated", after=after)


def _compare_unwanted(left: Difference, text: str, block: SyncedBlock) -> Difference:
    has_header = block.header_digest != digest_block("")
    head = text[: block.span.start]
    digests = digest_block(head if has_header else ""), digest_block(text[slice(*block.inner)])
    if digests != (block.header_digest, block.digest):
        reason = "it was changed, and nothing is wanted there any more: delete its block, or the file"
        return replace(left, reason=reason)
    rest = ("" if has_header else head) + text[block.span.end :]
    return replace(left, state="stale", after=rest if rest.strip() else None)
