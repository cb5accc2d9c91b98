"""What the tools' files should hold, made of one source: the project memory and the rules of a vault."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from mdmem.errors import EditRefused
from mdmem.instructions import block, header
from mdmem.instructions.imports import imports
from mdmem.instructions.tool import AGENTS
from mdmem.text.lines import with_newline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The tools whose own files are written; Codex and what else reads AGENTS.md need no more than that.
IMPORTERS = {"claude": ("CLAUDE.md", f"@{AGENTS}"), "gemini": ("GEMINI.md", f"@./{AGENTS}")}
FOLDERS = {
    "claude": (".claude/rules/mdmem", ".md"),
    "cursor": (".cursor/rules/mdmem", ".mdc"),
    "copilot": (".github/instructions/mdmem", ".instructions.md"),
}
TARGETS = ("agents", "claude", "codex", "copilot", "cursor", "gemini")


class Rule(NamedTuple):
    """A rule of the vault; `file` is what the workspace calls it, `memory` what the vault does."""

    name: str
    title: str
    globs: tuple[str, ...]
    text: str
    file: str
    memory: str


class Part(NamedTuple):
    """A part of a block, which is parted from the others by blank lines.

    Attributes:
        text: what stands in the block.
        memory: the memory that it is made of, as the vault names it; empty for what is not a memory's text.
        head: with what `text` begins in the place of `lead`, with which the text of the memory begins.
        lead: see `head`.
    """

    text: str
    memory: str = ""
    head: str = ""
    lead: str = ""

    def taken_back(self, text: str) -> str | None:
        """The text of the memory when this part becomes `text`; None where its head or all else is gone."""
        body = text.removeprefix(self.head).strip("\n")
        return self.lead + body if text.startswith(self.head) and body.strip() else None


class Wanted(NamedTuple):
    """What a file of the workspace should hold: `inner` in a block, behind `header`.

    `source` is what it is made of; `parts` are those of `inner`, where any of it is the text of a memory.
    """

    path: str
    inner: str
    source: str
    header: str = ""
    parts: tuple[Part, ...] = ()


def wanted(tools: Sequence[str], rules: Sequence[Rule], memory: str | None, copied: str) -> list[Wanted]:
    """The files that some tools need.

    Rules without globs stand in AGENTS.md, which every tool reads, or imports. A rule with globs is a file of
    its own for tools that know such rules, and for the others a line in AGENTS.md that says when to read it.

    Args:
        tools: their names.
        rules: the rules that are enabled, in order.
        memory: the project memory; None where there is none.
        copied: where the project memory is when that is not AGENTS.md itself, as the workspace names it.

    Raises:
        EditRefused: a text holds the marks of a block.
    """
    for path, text in [(rule.file, rule.text) for rule in rules] + [(copied, memory or "")] * bool(copied):
        if block.has_marks(text):
            reason = "it holds a mark of a block, so it cannot stand in one"
            raise EditRefused(path=path, reason=reason, remedy="take the mark away")
    parts = tuple(_shared(rules, memory if copied else None))
    shared = "\n\n".join(part.text for part in parts)
    files = [Wanted(AGENTS, shared, _sources(rules, copied), parts=parts)] if shared else []
    if shared or memory is not None:
        importers = [IMPORTERS[tool] for tool in tools if tool in IMPORTERS]
        files += [Wanted(path, line, AGENTS) for path, line in importers]
    files += [_own(tool, rule) for tool in tools if tool in FOLDERS for rule in rules if rule.globs]
    return files


def imports_shared(path: str, text: str) -> bool:
    """Whether people have written the import of AGENTS.md into one of the tools' files themselves."""
    if path not in dict(IMPORTERS.values()):
        return False
    return any(one.target.removeprefix("./") == AGENTS for one in imports(block.outside(text)))


def _sources(rules: Sequence[Rule], copied: str) -> str:
    folder = rules[0].file[: -len(rules[0].name) - len(".md")] if rules else ""
    return " and ".join(filter(None, (copied, folder)))


def _shared(rules: Sequence[Rule], memory: str | None) -> Iterator[Part]:
    if memory and memory.strip():
        yield Part(_plain(memory), AGENTS)
    for rule in rules:
        if not rule.globs:
            yield _titled(rule)
    some = [rule for rule in rules if rule.globs]
    if some:
        listed = "\n".join(f"- {_code(rule.globs)}: {rule.title} (`{rule.file}`)" for rule in some)
        told = "Read the rule before you change a file that it is about."
        yield Part(f"## Rules for some files\n\n{told}\n\n{listed}")


def _titled(rule: Rule) -> Part:
    text = _plain(rule.text)
    first, _, rest = text.partition("\n")
    has_title = first.startswith("#") and first.lstrip("#").strip() == rule.title
    body = (rest if has_title else text).strip()
    lead = text[: text.index(body, len(first))] if has_title and body else ""
    head = f"## {rule.title}\n"
    return Part(f"{head}\n{body}".rstrip(), rule.memory, head, lead)


def _plain(text: str) -> str:
    """A text as it stands in a block."""
    return with_newline(text, "\n").strip("\n")


def _code(globs: Sequence[str]) -> str:
    return ", ".join(f"`{glob}`" for glob in globs)


def _own(tool: str, rule: Rule) -> Wanted:
    folder, suffix = FOLDERS[tool]
    written = [portable(glob) for glob in rule.globs if not glob.startswith("!")]
    # Some globs with braces stand for more than a disk holds: those stay as they are.
    globs = header.patterns(written) or written
    # A rule that only leaves files out is about all others.
    fields = _FIELDS[tool](rule, globs or ["**"])
    head = "\n".join(["---", *fields, "---", ""])
    text = _plain(rule.text)
    return Wanted(f"{folder}/{rule.name}{suffix}", text, rule.file, head, (Part(text, rule.memory),))


def portable(glob: str) -> str:
    """A glob of a rule as every tool reads it: `*.py` at any depth is `**/*.py`, `docs/` is `docs/**`."""
    inner = glob.removesuffix("/")
    if "/" not in inner and inner != "**":
        inner = f"**/{inner}"
    return inner.removeprefix("/") + ("/**" if glob.endswith("/") else "")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# The fields of each tool's rules; Cursor reads its globs bare.
_FIELDS = {
    "claude": lambda rule, globs: ["paths:", *(f"  - {_quoted(glob)}" for glob in globs)],  # noqa: ARG005
    "cursor": lambda rule, globs: [
        f"description: {_quoted(rule.title)}",
        f"globs: {','.join(globs)}",
        "alwaysApply: false",
    ],
    "copilot": lambda rule, globs: [f"applyTo: {_quoted(','.join(globs))}"],  # noqa: ARG005
}
