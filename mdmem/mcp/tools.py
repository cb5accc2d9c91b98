"""The tools: what they say of themselves, their arguments and aliases, and how a call becomes an answer."""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mdmem.errors import ConfigInvalid, MdmemError, Usage
from mdmem.kind import KINDS
from mdmem.mcp import argument, verbs
from mdmem.mcp.answer import Answer, Bound, Call, Tick, encodable, no_tick, told
from mdmem.mcp.argument import Argument
from mdmem.mcp.resources import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mdmem.kind import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool.

    Attributes:
        name: that of the façade's verb.
        title: what a person is shown.
        about: what a model is told.
        arguments: what it takes.
        run: does it.
        changes: whether it changes memories; then it also takes `base` and `dry_run`.
        destructive: whether what was there may be gone afterwards.
        idempotent: whether the same call again changes nothing more.
    """

    name: str
    title: str
    about: str
    arguments: tuple[Argument, ...]
    run: Callable[..., Answer]
    changes: bool = False
    destructive: bool = False
    idempotent: bool = False


_PATH_ALIASES = (
    "file filename file_path filepath filePath memory identifier uri note note_path memory_path permalink"
)
_FOLDER_ALIASES = "folder directory dir path in namespace prefix dir_name path_prefix"
_TEXT_ALIASES = "content new_content new_text body insert_text entry lines"
_LIMIT_ALIASES = "max_results max count n page_size head_limit top_k num_results max_count"

_PATH = Argument("path", is_needed=True, aliases=_PATH_ALIASES)
_WITHIN = Argument("within", about="folder, or sessions/KEY", aliases=_FOLDER_ALIASES)
_GLOBS = Argument("globs", "texts", aliases="glob include file_glob file_name_glob")
_LIMIT = Argument("limit", "integer", aliases=_LIMIT_ALIASES, least=1)
_OFFSET = Argument("offset", "integer", aliases="skip start cursor")
_BASE = Argument(
    "base",
    about="hash that you read",
    aliases="hash base_hash expected_hash etag if_match sha256 checksum version",
)
_DRY_RUN = Argument("dry_run", "flag", aliases="dryRun preview")
_CHANGE = (_BASE, _DRY_RUN)


def _remembered(kinds: Iterable[Kind]) -> tuple[str, ...]:
    return tuple(sorted(kind.name for kind in kinds if kind.is_remembered))


TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="context",
        title="What to know first",
        about="What you should know before you begin: rules, project memory, preferences, pinned notes,"
        " working memory, and passages that fit a query.",
        arguments=(
            Argument("query", about="the task", aliases="q task topic text about"),
            Argument("files", "texts", about="only rules about these", aliases="file paths path for_file"),
            Argument("thread", aliases="thread_id session session_id"),
            Argument("budget", "integer", about="tokens", aliases="max_tokens tokens limit", least=1),
        ),
        run=verbs.context,
    ),
    ToolSpec(
        name="search",
        title="Search memories",
        about="Find the memories that fit best by meaning of words, each with its best lines: take it for a"
        ' question or a topic. Words, "phrases", prefix*, -not, tag: type: path:.',
        arguments=(
            Argument("query", is_needed=True, aliases="q text search topic words pattern"),
            _WITHIN,
            Argument("types", "texts", aliases="type note_types"),
            Argument("tags", "texts", aliases="tag"),
            Argument("since", about="2026, 2026-01 or 2026-01-31", aliases="after after_date from"),
            Argument("before", aliases="until to before_date"),
            _LIMIT,
            _OFFSET,
        ),
        run=verbs.search,
    ),
    ToolSpec(
        name="grep",
        title="Find lines",
        about="Find every line that has exactly a text, or fits a regular expression: take it for a name, an"
        " identifier or to be complete.",
        arguments=(
            Argument("pattern", is_needed=True, aliases="query text search find regexp q"),
            _WITHIN,
            _GLOBS,
            Argument("regex", "flag", aliases="is_regex use_regex regexp_mode"),
            Argument("context", "integer", about="lines around", aliases="context_lines C -C"),
            _LIMIT,
            _OFFSET,
        ),
        run=verbs.grep,
    ),
    ToolSpec(
        name="ls",
        title="List memories",
        about="List memories with their hashes. where: conditions on frontmatter such as type=note or"
        " created>=2026-01.",
        arguments=(
            _WITHIN,
            _GLOBS,
            Argument("where", "texts", aliases="filter filters condition conditions"),
            Argument("sort", about="field; -field: largest first", aliases="sort_by order order_by"),
            _LIMIT,
            _OFFSET,
        ),
        run=verbs.ls,
    ),
    ToolSpec(
        name="show",
        title="Read a memory",
        about="Read a memory, or one section of it, with its hash; or sessions/KEY#12, what was said;"
        " or result:HASH, what a tool printed.",
        arguments=(
            _PATH,
            Argument("heading", about="only this section", aliases="section title header"),
            Argument(
                "line",
                "integer",
                about="from here on",
                aliases="offset start first from_line start_line fromLine",
                least=1,
            ),
            Argument("limit", "integer", about="lines", aliases="lines max_lines maxLines n head", least=1),
            Argument("column", "integer", about="of a long line", least=1),
        ),
        run=verbs.show,
    ),
    ToolSpec(
        name="references",
        title="Links and citations",
        about="What memories link to and cite, and whether it is still there: of one target (a memory, #tag,"
        " URL, file or symbol: its backlinks), or of all.",
        arguments=(
            Argument("target", aliases="path query identifier of to url tag symbol"),
            Argument("within", "texts", about="memories or folders", aliases="paths folder in from"),
            Argument(
                "stale", "flag", about="only cited code that moved, changed or is gone", aliases="only_stale"
            ),
            _LIMIT,
            _OFFSET,
        ),
        run=verbs.references,
    ),
    ToolSpec(
        name="write",
        title="Write a memory or its fields",
        about="Replaces all: write a whole memory (.md or .json); one that is there needs base, or overwrite."
        " With fields instead of content it sets these fields of the frontmatter (source.type: nested), and"
        " nothing else changes.",
        arguments=(
            _PATH,
            Argument("content", aliases="text file_text body data new_content contents"),
            Argument("fields", "fields", aliases="frontmatter metadata properties field set attributes"),
            Argument("overwrite", "flag", aliases="force replace_existing"),
            *_CHANGE,
        ),
        run=verbs.write,
        changes=True,
        destructive=True,
        idempotent=True,
    ),
    ToolSpec(
        name="replace",
        title="Replace text",
        about="Replaces a text in a memory exactly; old must occur once, or count times.",
        arguments=(
            _PATH,
            Argument(
                "old",
                is_needed=True,
                aliases="find find_text old_text old_string old_str oldText search pattern",
            ),
            Argument(
                "new",
                is_needed=True,
                aliases="new_text new_string new_str newText replace replacement replace_with with content "
                "text new_content",
            ),
            Argument(
                "count",
                "count",
                about='number or "all"',
                aliases="expected_replacements occurrences",
                least=1,
            ),
            Argument("regex", "flag", aliases="is_regex use_regex"),
            *_CHANGE,
        ),
        run=verbs.replace,
        changes=True,
        destructive=True,
    ),
    ToolSpec(
        name="section",
        title="Add or change a section",
        about="Replaces or adds to one section, found by its heading or heading path (Design > Index):"
        " where=append adds at its end. Without heading, where=append adds at the end of the memory, which is"
        " made if it is not there.",
        arguments=(
            _PATH,
            Argument("heading", aliases="section title header name section_title"),
            Argument("text", is_needed=True, aliases=_TEXT_ALIASES),
            Argument(
                "where",
                about="default replace",
                choices=("replace", "append", "before", "after"),
                aliases="operation mode position",
            ),
            Argument("keep_subsections", "flag", aliases="keep_children"),
            *_CHANGE,
        ),
        run=verbs.section,
        changes=True,
        destructive=True,
    ),
    ToolSpec(
        name="mv",
        title="Move a memory",
        about="Move a memory or a folder; links to it follow. A target that ends in / is a folder.",
        arguments=(
            Argument(
                "source", is_needed=True, aliases="src from old_path path old identifier file from_path"
            ),
            Argument(
                "target",
                is_needed=True,
                aliases="dst dest to new_path destination new destination_path to_path",
            ),
            *_CHANGE,
        ),
        run=verbs.mv,
        changes=True,
    ),
    ToolSpec(
        name="rm",
        title="Delete a memory, or undo",
        about="Delete a memory or a folder (path), or undo a change.",
        arguments=(
            _PATH._replace(is_needed=False, aliases=f"{_PATH_ALIASES} target folder"),
            Argument(
                "undo", about="the change that a tool has named, or last", aliases="change change_id revert"
            ),
            *_CHANGE,
        ),
        run=verbs.rm,
        changes=True,
        destructive=True,
    ),
    ToolSpec(
        name="remember",
        title="Remember",
        about="Keep something where it belongs: note and project (AGENTS.md) add to what is there; working"
        " memory of a thread or resource and a preference are replaced.",
        arguments=(
            Argument("kind", is_needed=True, choices=_remembered(KINDS), aliases="type"),
            Argument(
                "name",
                about="note name; thread; category/key; heading in AGENTS.md",
                aliases="key path thread section heading category note id",
            ),
            Argument(
                "value",
                "any",
                about="text; a preference may be any JSON",
                is_needed=True,
                aliases=f"text {_TEXT_ALIASES}",
            ),
            Argument("title", about="of a note's section"),
            Argument("why", about="of a preference", aliases="reason"),
            Argument("resource", about="whose working memory, in place of a thread's", aliases="resource_id"),
            Argument(
                "ttl", "integer", about="seconds that working memory lives", aliases="ttl_seconds expires_in"
            ),
            *_CHANGE,
        ),
        run=verbs.remember,
        changes=True,
        destructive=True,
    ),
)


NAMES = frozenset(tool.name for tool in TOOLS)
_PATHS = ("path", "source", "target", "within")


class Toolbox:
    """The tools of one binding."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._remarks: set[str] = set()  # those that were told

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Those that are offered."""
        return tuple(tool for tool in self._by_name.values() if not (tool.changes and self._bound.read_only))

    @cached_property
    def _by_name(self) -> dict[str, ToolSpec]:
        """All of them, with the kinds of memory that there are in this vault."""
        tools = {tool.name: tool for tool in TOOLS}
        with suppress(ConfigInvalid):  # told by whatever is called
            kinds = self._bound.memory.kinds
            if declared := _remembered(kinds[len(KINDS) :]):
                tools["remember"] = _remembering(
                    tools["remember"], (*_remembered(KINDS), *declared), declared
                )
        return tools

    def call(self, name: str, given: Mapping[str, Any] | None, tick: Tick = no_tick) -> Answer:
        """Do what a model asks for; what goes wrong is an answer too.

        Raises:
            KeyError: there is no such tool.
            Whatever `tick` raises, to end the work.
        """
        tool = self._by_name[name]
        answer = self._remarked(self._answer(tool, given or {}, tick))
        return Answer(tuple(map(encodable, answer.texts)), encodable(answer.data), answer.is_error)

    def _remarked(self, answer: Answer) -> Answer:
        """An answer with what had to give in the vault since the last one; each is told once."""
        new = [remark for remark in self._bound.memory.remarks if remark not in self._remarks]
        if answer.is_error or not new:
            return answer
        self._remarks.update(new)
        texts = (*answer.texts, *(f"[{remark}]" for remark in new))
        return Answer(texts, {**answer.data, "remarks": new})

    def _answer(self, tool: ToolSpec, given: Mapping[str, Any], tick: Tick) -> Answer:
        try:
            return self._done(tool, given, tick)
        except MdmemError as error:
            return told(error, self._bound.memory)
        except Exception as error:  # noqa: BLE001 - the one boundary: a bug is told, and ends nothing
            traceback.print_exception(error, file=sys.stderr)
            problem = {"code": "bug", "message": f"a bug in mdmem: {type(error).__name__}", "hint": ""}
            return Answer((problem["message"],), {"error": problem}, is_error=True)

    def _done(self, tool: ToolSpec, given: Mapping[str, Any], tick: Tick) -> Answer:
        if tool.changes and self._bound.read_only:
            raise Usage(problem=f"{tool.name} is refused: this memory is bound read-only")
        values = argument.read(tool.arguments, given)
        for key in _PATHS:
            if key in values:
                values[key] = _located(values[key])
        return tool.run(Call(bound=self._bound, tick=tick), **values)


def _remembering(tool: ToolSpec, kinds: tuple[str, ...], declared: Sequence[str]) -> ToolSpec:
    """The tool `remember`, of a vault that declares kinds of its own."""
    about = f"{tool.about} {', '.join(declared)}: a text adds a section, an object fills in the template."
    arguments = (each._replace(choices=kinds) if each.name == "kind" else each for each in tool.arguments)
    return replace(tool, about=about, arguments=tuple(arguments))


def _located(value: Any) -> Any:
    """A path that was given as the URI of a resource."""
    if isinstance(value, list):
        return [_located(each) for each in value]
    return path_of(value) if value.startswith("mdmem:") else value
