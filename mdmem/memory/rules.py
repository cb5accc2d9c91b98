"""Rules: what an agent must keep to, from every layer that speaks to a scope."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from mdmem.document.arguments import check_natural, require_text, texts_of
from mdmem.document.document import Document
from mdmem.document.text.globs import globs_of, matcher
from mdmem.errors import AlreadyExists, DocumentRefused, MemoryNotFound, PatternInvalid, Usage
from mdmem.kind import NAMESPACES, RULE
from mdmem.memory import history
from mdmem.memory.content import State, StatesAt, make_judge, utc_now
from mdmem.memory.verbs import Build, KindVerbs, R
from mdmem.vault.paths import Scope, StrPath, check_memory, is_under, join, path_text
from mdmem.vault.plan import EditPlan
from mdmem.vault.vault import Vault

_SUFFIX = ".md"
_UNSURE = "its frontmatter cannot be read: it may be off, or not count any more"


class Rule(NamedTuple):
    """A rule.

    Attributes:
        name: its path below `rules/`, without the suffix.
        scope: whom it speaks to: global, user, project or resource.
        path: its file, as the whole vault names it.
        layer: the namespace that it stands in; empty for the vault itself.
        title: its `title`, else its first heading, else its name.
        globs: the files of the workspace that it is about; without any, it is about everything.
        priority: rules with a higher number come first; 0 where the file does not say.
        enabled: whether it applies, as long as it counts.
        description: what it is for; may be empty.
        state: whether it counts now: "live", or why not.
        flaw: what is wrong with its frontmatter, so that it may be off or not count any more; else empty.
    """

    name: str
    scope: str
    path: str
    layer: str
    title: str
    globs: tuple[str, ...]
    priority: int
    text: str
    enabled: bool
    description: str
    state: State
    flaw: str

    def applies_to(self, file: str) -> bool:
        """Return whether the rule is about `file`, a path relative to the workspace.

        One with a glob that cannot be compiled is about every file, as any rule that cannot be read.
        """
        try:
            return matcher(self.globs)(file)
        except PatternInvalid:
            return True


Found: TypeAlias = list[Rule]  # `list` is also a verb here


class Rules(KindVerbs[R]):
    """The rules that speak to a scope: those of everyone, of its project, of its user, and its own.

    Rules of the same name in several layers all apply. A rule with unreadable frontmatter
    always applies, with priority 0, and says so: one rule too many does less harm than a lost rule.
    """

    def __init__(self, vault: Vault, run: Callable[[Build], R], scope: Scope, find_states: StatesAt) -> None:
        super().__init__(vault, run)
        self._scope = scope
        self._find_states = find_states

    def add(self, name: StrPath, text: str, *, globs: Sequence[str] = (), priority: int | None = None) -> R:
        """Make a rule of this scope from the template `rule`.

        Args:
            name: its path below `rules/`, without the suffix.
            text: what to keep to, in Markdown.
            globs: the files of the workspace that it is about; without any, it is about everything.
            priority: rules with a higher number come first.

        Raises:
            AlreadyExists: there is one of this name.
            PatternInvalid: a glob cannot be read.
            Usage: no name, or no text.
            TemplateFailed: the vault's own template cannot be rendered, or misses a variable.
        """
        given = path_text(name)
        require_text(text=text)
        if not (given.strip() and text.strip()):
            raise Usage(
                problem="a rule needs a name and a text", remedy="give both, as in `style 'Type it.'`"
            )
        path = given if given.endswith(_SUFFIX) else given + _SUFFIX
        path = check_memory(path if is_under(path, RULE.folder) else join(RULE.folder, path))
        variables: dict[str, Any] = {"text": text, "globs": [*texts_of(globs, "globs")]}
        matcher(variables["globs"])
        variables |= {} if priority is None else {"priority": priority}
        # Rendered before anything is built: a plan may be built again under the lock, a template never is.
        content = self._vault.templates.render(RULE.template, variables, now=datetime.now(UTC))

        def build() -> EditPlan:
            if self._vault.exists(path):
                raise AlreadyExists(path=path, remedy="change it, or choose another name")
            return history.creation(path, content, f"add the rule {path}")

        return self._run(build)

    def list(self, for_file: StrPath | None = None, *, disabled: bool = False) -> Found:
        """List the rules by priority, highest first, then by layer, broadest first, then by name.

        Args:
            for_file: only those about this file: a path relative to the workspace, or an absolute one.
                Without it, all. Rules without globs are about every file.
            disabled: also those that are not enabled, or do not count now.

        Raises:
            ConfigInvalid, StorageFailed: the vault cannot be read.
        """
        return self._find_rules(for_file, disabled=disabled)[0]

    def text(self, for_file: StrPath | None = None, max_chars: int | None = None) -> str:
        """Return the rules that apply now as a text for an agent: titles and bodies, in the order of `list`.

        Where `for_file` is not given, a rule with globs says which files it is about.

        Args:
            for_file: as for `list`.
            max_chars: the most characters to return. A rule that does not fit is left out whole, and named
                at the end; that note is never cut.
        """
        check_natural(max_chars=max_chars or 0)
        rules, unreadable = self._find_rules(for_file, disabled=False)
        blocks = {rule.path: _format_rule(rule, for_file) for rule in rules}
        if max_chars is None:
            return _join_blocks(blocks, [*blocks], unreadable)
        kept: Sequence[str] = []
        for path in blocks:
            longer = [*kept, path]
            kept = longer if len(_join_blocks(blocks, longer, unreadable)) <= max_chars else kept
        return _join_blocks(blocks, kept, unreadable)

    def _find_rules(self, for_file: StrPath | None, *, disabled: bool) -> tuple[Found, Sequence[str]]:
        file = workspace_path(self._vault, path_text(for_file)) if for_file is not None else None
        rules, unreadable, judge = [], [], make_judge(self._find_states, utc_now())
        for number, layer in enumerate(self._scope.layers):
            vault = self._vault.within(layer)
            for found in vault.walk(RULE.folder):
                if found.problem or not found.path.endswith(_SUFFIX):
                    continue
                try:
                    document = vault.read(found.path)
                    state = judge(document, self._vault.show_path(join(layer, found.path)))
                    rule = _read_rule(document, layer, state)
                except MemoryNotFound:
                    continue
                except DocumentRefused:
                    unreadable.append(join(layer, found.path))
                    continue
                if (disabled or (rule.enabled and state == "live")) and (
                    file is None or rule.applies_to(file)
                ):
                    rules.append((-rule.priority, number, rule.name, rule))
        return [rule for *_, rule in sorted(rules, key=lambda entry: entry[:3])], unreadable


def workspace_path(vault: Vault, file: str) -> str:
    """Return a file, relative to the workspace or absolute, as `Rule.applies_to` takes it."""
    if os.path.isabs(file):
        file = os.path.relpath(file, vault.workspace)
    return posixpath.normpath(file.replace(os.sep, "/"))


def _read_rule(document: Document, layer: str, state: State) -> Rule:
    fields = {} if document.frontmatter.unread else document.fields
    name = document.path[len(RULE.folder) + 1 : -len(_SUFFIX)]
    title, priority, description = (fields.get(name) for name in ("title", "priority", "description"))
    heading = document.headings[0].title if document.headings else ""
    return Rule(
        name=name,
        scope=_scope_name(layer),
        path=join(layer, document.path),
        layer=layer,
        title=title if isinstance(title, str) and title.strip() else heading or name,
        globs=globs_of(fields.get("globs")),
        priority=priority if isinstance(priority, int) and not isinstance(priority, bool) else 0,
        text=document.body.strip("\r\n"),
        enabled=fields.get("enabled") is not False,
        description=description if isinstance(description, str) else "",
        state=state,
        flaw=_UNSURE if document.frontmatter.flaws else "",
    )


def _scope_name(layer: str) -> str:
    """Return what the innermost part of a namespace is about: user, project or resource; else global."""
    parts = layer.split("/")
    start, scope = 0, "global"
    while start < len(parts) and parts[start] in NAMESPACES:
        scope = parts[start].removesuffix("s")
        start += NAMESPACES[parts[start]]
    return scope


def _format_rule(rule: Rule, for_file: StrPath | None) -> str:
    about = f"Applies to: {', '.join(rule.globs)}" if rule.globs and for_file is None else ""
    first, _, rest = rule.text.partition("\n")
    body = rest if first.lstrip("#").strip() == rule.title and first.startswith("#") else rule.text
    flaw = f"[{rule.path}: {rule.flaw}; see `mdmem check`]" if rule.flaw else ""
    return "\n\n".join(part for part in (f"# {rule.title}", flaw, about, body.strip("\r\n")) if part.strip())


def _join_blocks(blocks: dict[str, str], kept: Sequence[str], unreadable: Sequence[str]) -> str:
    left_out = [path for path in blocks if path not in kept]
    notes = [f"[{len(left_out)} of {len(blocks)} rules left out: {', '.join(left_out)}]"] if left_out else []
    if unreadable:
        notes.append(f"[cannot be read: {', '.join(unreadable)}; see `mdmem check`]")
    return "\n\n".join([*(blocks[path] for path in kept), *notes])
