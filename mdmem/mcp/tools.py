"""The tools: their names, what they say of themselves, their arguments and aliases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdmem.mcp import changing, reading
from mdmem.mcp.answer import Answer
from mdmem.mcp.argument import Argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool.

    Attributes:
        name: that of the façade's verb.
        about: what a model is told.
        arguments: what it takes.
        run: does it.
        changes: whether it changes memories; then it also takes `base` and `dry_run`.
        destructive: whether what was there may be gone afterwards.
        idempotent: whether the same call again changes nothing more.
    """

    name: str
    about: str
    arguments: tuple[Argument, ...]
    run: Callable[..., Answer]
    changes: bool = False
    destructive: bool = False
    idempotent: bool = False


_PATH_ALIASES = (
    *("file", "filename", "file_path", "filepath", "filePath", "memory", "identifier", "uri", "note"),
    *("note_path", "memory_path", "permalink"),
)
_FOLDER_ALIASES = (
    "folder",
    "directory",
    "dir",
    "path",
    "in",
    "namespace",
    "prefix",
    "dir_name",
    "path_prefix",
)
_TEXT_ALIASES = ("content", "new_content", "new_text", "body", "insert_text", "entry", "lines")
_LIMIT_ALIASES = (
    "max_results",
    "max",
    "count",
    "n",
    "page_size",
    "head_limit",
    "top_k",
    "num_results",
    "max_count",
)

_PATH = Argument("path", is_needed=True, aliases=_PATH_ALIASES)
_WITHIN = Argument("within", about="folder", aliases=_FOLDER_ALIASES)
_GLOBS = Argument("globs", "texts", aliases=("glob", "include", "file_glob", "file_name_glob"))
_LIMIT = Argument("limit", "integer", aliases=_LIMIT_ALIASES, least=1)
_OFFSET = Argument("offset", "integer", aliases=("skip", "start", "cursor"))
_BASE = Argument(
    "base",
    about="hash that you read",
    aliases=("hash", "base_hash", "expected_hash", "etag", "if_match", "sha256", "checksum", "version"),
)
_DRY_RUN = Argument("dry_run", "flag", aliases=("dryRun", "preview"))
_CHANGE = (_BASE, _DRY_RUN)


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="context",
        about="What you should know before you begin: rules, project memory, preferences, pinned notes,"
        " working memory, and passages that fit a query.",
        arguments=(
            Argument("query", about="the task", aliases=("q", "task", "topic", "text", "about")),
            Argument(
                "files",
                "texts",
                about="only rules about these",
                aliases=("file", "paths", "path", "for_file"),
            ),
            Argument("thread", aliases=("thread_id", "session", "session_id")),
            Argument("budget", "integer", about="tokens", aliases=("max_tokens", "tokens", "limit"), least=1),
        ),
        run=reading.context,
    ),
    Tool(
        name="search",
        about='Find the memories that fit best, each with its best lines. Words, "phrases", prefix*, -not,'
        " tag: type: path:.",
        arguments=(
            Argument("query", is_needed=True, aliases=("q", "text", "search", "topic", "words", "pattern")),
            _WITHIN,
            Argument("types", "texts", aliases=("type", "note_types")),
            Argument("tags", "texts", aliases=("tag",)),
            Argument("since", about="2026, 2026-01 or 2026-01-31", aliases=("after", "after_date", "from")),
            Argument("before", aliases=("until", "to", "before_date")),
            _LIMIT,
            _OFFSET,
        ),
        run=reading.search,
    ),
    Tool(
        name="grep",
        about="Find every line that has a text, or fits a regular expression.",
        arguments=(
            Argument("pattern", is_needed=True, aliases=("query", "text", "search", "find", "regexp", "q")),
            _WITHIN,
            _GLOBS,
            Argument("regex", "flag", aliases=("is_regex", "use_regex", "regexp_mode")),
            Argument("context", "integer", about="lines around", aliases=("context_lines", "C", "-C")),
            _LIMIT,
            _OFFSET,
        ),
        run=reading.grep,
    ),
    Tool(
        name="ls",
        about="List memories. where: conditions on frontmatter such as type=note or created>=2026-01.",
        arguments=(
            _WITHIN,
            _GLOBS,
            Argument("where", "texts", aliases=("filter", "filters", "condition", "conditions")),
            Argument("sort", about="field; -field: largest first", aliases=("sort_by", "order", "order_by")),
            _LIMIT,
            _OFFSET,
        ),
        run=reading.ls,
    ),
    Tool(
        name="show",
        about="Read a memory, or one section of it, with its hash.",
        arguments=(
            _PATH,
            Argument("heading", about="only this section", aliases=("section", "title", "header")),
            Argument(
                "line",
                "integer",
                about="from here on",
                aliases=("offset", "start", "first", "from_line", "start_line", "fromLine"),
                least=1,
            ),
            Argument(
                "limit",
                "integer",
                about="lines",
                aliases=("lines", "max_lines", "maxLines", "n", "head"),
                least=1,
            ),
            Argument("column", "integer", about="of a long line", least=1),
        ),
        run=reading.show,
    ),
    Tool(
        name="references",
        about="What memories link to and cite, and whether it is still there: of one target (a memory, #tag,"
        " URL, file or symbol: its backlinks), or of all.",
        arguments=(
            Argument("target", aliases=("path", "query", "identifier", "of", "to", "url", "tag", "symbol")),
            Argument(
                "within", "texts", about="memories or folders", aliases=("paths", "folder", "in", "from")
            ),
            Argument(
                "stale",
                "flag",
                about="only cited code that moved, changed or is gone",
                aliases=("only_stale",),
            ),
            _LIMIT,
            _OFFSET,
        ),
        run=reading.references,
    ),
    Tool(
        name="write",
        about="Write a whole memory (.md or .json). One that is there needs base, or overwrite.",
        arguments=(
            _PATH,
            Argument(
                "content",
                is_needed=True,
                aliases=("text", "file_text", "body", "data", "new_content", "contents"),
            ),
            Argument("overwrite", "flag", aliases=("force", "replace_existing")),
            *_CHANGE,
        ),
        run=changing.write,
        changes=True,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        name="replace",
        about="Replace text in a memory exactly; old must occur once, or count times.",
        arguments=(
            _PATH,
            Argument(
                "old",
                is_needed=True,
                aliases=(
                    "find",
                    "find_text",
                    "old_text",
                    "old_string",
                    "old_str",
                    "oldText",
                    "search",
                    "pattern",
                ),
            ),
            Argument(
                "new",
                is_needed=True,
                aliases=(
                    *(
                        "new_text",
                        "new_string",
                        "new_str",
                        "newText",
                        "replace",
                        "replacement",
                        "replace_with",
                    ),
                    *("with", "content", "text", "new_content"),
                ),
            ),
            Argument(
                "count",
                "count",
                about='number or "all"',
                aliases=("expected_replacements", "occurrences"),
                least=1,
            ),
            Argument("regex", "flag", aliases=("is_regex", "use_regex")),
            *_CHANGE,
        ),
        run=changing.replace,
        changes=True,
        destructive=True,
    ),
    Tool(
        name="section",
        about="Change one section, found by its heading or heading path (Design > Index). Without heading,"
        " where=append adds at the end of the memory, which is made if it is not there.",
        arguments=(
            _PATH,
            Argument("heading", aliases=("section", "title", "header", "name", "section_title")),
            Argument("text", is_needed=True, aliases=_TEXT_ALIASES),
            Argument(
                "where",
                about="default replace",
                choices=("replace", "append", "before", "after"),
                aliases=("operation", "mode", "position"),
            ),
            Argument("keep_subsections", "flag", aliases=("keep_children",)),
            *_CHANGE,
        ),
        run=changing.section,
        changes=True,
        destructive=True,
    ),
    Tool(
        name="mv",
        about="Move a memory or a folder; links to it follow. A target that ends in / is a folder.",
        arguments=(
            Argument(
                "source",
                is_needed=True,
                aliases=("src", "from", "old_path", "path", "old", "identifier", "file", "from_path"),
            ),
            Argument(
                "target",
                is_needed=True,
                aliases=(
                    "dst",
                    "dest",
                    "to",
                    "new_path",
                    "destination",
                    "new",
                    "destination_path",
                    "to_path",
                ),
            ),
            *_CHANGE,
        ),
        run=changing.mv,
        changes=True,
    ),
    Tool(
        name="rm",
        about="Delete a memory or a folder. People can bring it back.",
        arguments=(_PATH._replace(aliases=(*_PATH_ALIASES, "target", "folder")), *_CHANGE),
        run=changing.rm,
        changes=True,
        destructive=True,
    ),
    Tool(
        name="remember",
        about="Keep something where it belongs: a note (a section is added to it), working memory of a thread"
        " or resource (replaced), a preference, or an entry of project memory (AGENTS.md).",
        arguments=(
            Argument("kind", is_needed=True, choices=changing.KINDS, aliases=("type",)),
            Argument(
                "name",
                about="note name; thread; category/key; heading in AGENTS.md",
                aliases=("key", "path", "thread", "section", "heading", "category", "note", "id"),
            ),
            Argument(
                "value",
                "any",
                about="text; a preference may be any JSON",
                is_needed=True,
                aliases=("text", *_TEXT_ALIASES),
            ),
            Argument("title", about="of a note's section"),
            Argument("why", about="of a preference", aliases=("reason",)),
            Argument(
                "resource", about="whose working memory, in place of a thread's", aliases=("resource_id",)
            ),
            Argument(
                "ttl",
                "integer",
                about="seconds that working memory lives",
                aliases=("ttl_seconds", "expires_in"),
            ),
            *_CHANGE,
        ),
        run=changing.remember,
        changes=True,
        destructive=True,
    ),
)
