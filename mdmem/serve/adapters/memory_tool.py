"""The memory tool: six commands over a namespace, as Anthropic's SDKs word them.

A model sees the namespace as the folder `/memories`. The tool answers as the Python SDK's own tool on a
folder does (`anthropic.tools.BetaLocalFilesystemMemoryTool`); `docs/memory-tool.md` lists every difference.
Changes are edit plans: locked, checked against schemas, kept in the history.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import unquote

from mdmem import Document, TextEdit, check_folder, check_memory
from mdmem.errors import (
    AlreadyExists,
    Invalid,
    MdmemError,
    MemoryNotFound,
    PathRefused,
    TextAmbiguous,
    TextNotFound,
    ToolRefused,
)

if TYPE_CHECKING:
    from mdmem import Change
    from mdmem.facade.memory import Memory
    from mdmem.memory.verbs import Listed

ROOT = "/memories"
MARKDOWN = ".md"

_MOST_LINES = 999_999
_WIDTH = len(str(_MOST_LINES))
_AROUND = 2  # lines of the snippet on either side
_DEPTH = 2
# A listing of more would cost more than it tells; the folders below can be viewed one by one.
_MOST_LISTED = 1_000
_PROGRAM = re.compile(r"`mdmem [^`]*`")
_WHOLE = re.compile(r"-?[0-9]{1,9}")
_UNITS = ("B", "K", "M", "G")
_KIB_BITS = 10
# What models call files that this tool keeps as Markdown: `plan.txt` is the memory `plan.txt.md`.
_TEXT_SUFFIXES = (
    *(".txt", ".text", ".log", ".org", ".rst", ".html", ".xml", ".csv", ".tsv", ".sql"),
    *(".yaml", ".yml", ".toml", ".ini", ".cfg", ".py", ".js", ".ts", ".sh"),
)


class Tool:
    """The six commands; `/memories` is the namespace of `memory`."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def call(self, command: Mapping[str, Any]) -> str:
        """Do a command as a model gives it: `{"command": "view", "path": "/memories"}`.

        Raises:
            ToolRefused: it was not done; nothing was changed.
        """
        name = command.get("command")
        accepted = _ARGUMENTS.get(name) if isinstance(name, str) else None
        if accepted is None:
            _refuse_call(f"Unknown command: {name}. It is one of {', '.join(_ARGUMENTS)}.")
        given = {key: value for key, value in command.items() if key in accepted and value is not None}
        for key, (kinds, is_needed) in accepted.items():
            if key not in given and is_needed:
                _refuse_call(f"The parameter `{key}` is required for the command `{name}`.")
            if key in given and kinds is int:
                given[key] = _whole_number(given[key])
            if key in given and (not isinstance(given[key], kinds) or isinstance(given[key], bool)):
                _refuse_call(f"The parameter `{key}` of the command `{name}` has the wrong type.")
        answer: str = getattr(self, str(name))(**given)
        return answer

    # -- the commands -------------------------------------------------------------------------------------

    def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Return a memory with line numbers, or what is in a folder."""
        inside = self._namespace_path(path)
        with self._in_words(path):
            document = self._find_memory(inside)
            if document is None:
                return self._list_folder(path, inside)
        lines = document.text.split("\n")
        if len(lines) > _MOST_LINES:
            _refuse_call(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, shown = 1, [_whole_number(number) for number in view_range or ()]
        if not all(isinstance(number, int) for number in shown):
            _refuse_call("The parameter `view_range` of the command `view` has the wrong type.")
        if len(shown) == 2:  # noqa: PLR2004 - a first and a last line
            first = max(1, shown[0])
            lines = lines[first - 1 : None if shown[1] == -1 else shown[1]]
        return f"Here's the content of {path} with line numbers:\n{_number_lines(lines, first)}"

    def create(self, path: str, file_text: str) -> str:
        """Make a memory that is not there."""
        inside = self._namespace_path(path)
        with self._in_words(path):
            try:
                is_taken = self._is_folder(inside)
                if not is_taken:
                    self._memory.write(self._kept_as(inside), file_text)
            except AlreadyExists:
                is_taken = True
            if is_taken:
                _refuse_call(f"File {path} already exists")
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace a text that stands exactly once."""
        with self._in_words(path):
            document = self._require_memory(path)
            try:
                change = self._memory.replace(document.path, old_str, new_str).plan.changes[0]
            except TextNotFound:
                _refuse_call(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
                )
            except TextAmbiguous as error:
                lines = ", ".join(map(str, error.lines))
                _refuse_call(
                    "No replacement was performed. Multiple occurrences of old_str"
                    f" `{old_str}` in lines: {lines}. Please ensure it is unique"
                )
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            f"{_change_snippet(change)}"
        )

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert lines behind the line `insert_line`; 0 is before the first."""

        def change(document: Document) -> list[TextEdit]:
            starts = _line_starts(document.text)
            count = len(starts) - 1
            if not 0 <= insert_line <= count:
                _refuse_call(
                    f"Invalid `insert_line` parameter: {insert_line}."
                    f" It should be within the range [0, {count}]."
                )
            if insert_line == 0 and document.frontmatter.present:
                last = document.lines.number(document.body_span.start - 1)
                _refuse_call(
                    "Invalid `insert_line` parameter: 0."
                    f" The file begins with frontmatter: insert behind line {last}."
                )
            return _insert_lines(document, starts[insert_line], insert_text.rstrip("\n"))

        with self._in_words(path):
            self._memory.edit(self._require_memory(path).path, change)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a memory, or a folder of memories; the vault keeps what they held."""
        inside = self._namespace_path(path)
        if not inside:
            _refuse_call(f"Cannot delete the {ROOT} directory itself")
        with self._in_words(path):
            try:
                self._memory.rm(self._kept_name(inside), recursive=True)
            except MemoryNotFound:
                _refuse_call(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Move a memory, or a folder of memories; links to them follow."""
        old, new = self._namespace_path(old_path), self._namespace_path(new_path)
        if not old:
            _refuse_call(f"Cannot rename the {ROOT} directory itself")
        with self._in_words(old_path, new_path):
            named = self._kept_name(old)
            if not new or self._memory.exists(self._kept_as(new)) or self._is_folder(new):
                _refuse_call(f"The destination {new_path} already exists")
            if new.startswith(f"{named}/"):
                _refuse_call(f"The path {old_path} cannot be moved into itself")
            try:
                self._memory.mv(named, self._kept_as(new) if named.endswith(self._memory.suffixes) else new)
            except MemoryNotFound:
                _refuse_call(f"The path {old_path} does not exist")
            except AlreadyExists:
                _refuse_call(f"The destination {new_path} already exists")
        return f"Successfully renamed {old_path} to {new_path}"

    def clear(self) -> str:
        """Delete every memory of the namespace but mounted ones; the vault keeps what they held."""
        with self._in_words(ROOT):
            self._memory.clear()
        return "All memory cleared"

    # -- paths --------------------------------------------------------------------------------------------

    def _namespace_path(self, path: str) -> str:
        """Return the path in the namespace that a path of the model means; empty for `/memories` itself."""
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            _refuse_call(f"Path must start with {ROOT}, got: {path}")
        inside = _resolve_path(path)
        # A model that writes `%2e%2e%2f` or `..\` means what a web server or another system reads in it.
        if inside is None or _resolve_path(unquote(path).replace("\\", "/")) is None:
            _refuse_call(f"Path {path} would escape {ROOT} directory")
        try:
            check_folder(inside)
        except PathRefused as error:
            _refuse_call(f"The path {path} cannot be used: {error.reason}.")
        return inside

    def _kept_name(self, inside: str) -> str:
        """Return the memory or folder that a path means: as it is, or as this tool keeps it."""
        return inside if self._is_folder(inside) else self._kept_as(inside)

    def _kept_as(self, inside: str) -> str:
        return kept_as(inside, self._memory.suffixes)

    def _find_memory(self, inside: str) -> Document | None:
        """Return the memory at a path of the namespace; None for a folder."""
        if not inside or (not inside.endswith(self._memory.suffixes) and self._is_folder(inside)):
            return None
        return self._read_memory(inside)

    def _read_memory(self, inside: str) -> Document:
        """Return the memory that a path means; there is nothing below a file."""
        try:
            return self._memory.show(self._kept_as(inside))
        except PathRefused:
            for place in accumulate(inside.split("/")[:-1], os.path.join, initial=self._memory.folder):
                # No further than a link: what is behind it is not ours to look at.
                if os.path.islink(place):
                    break
                if os.path.isfile(place):
                    raise MemoryNotFound(path=inside) from None
            raise

    def _is_folder(self, inside: str) -> bool:
        return os.path.isdir(self._file_path(inside))

    def _file_path(self, inside: str) -> str:
        return os.path.join(self._memory.folder, inside)

    # -- what is told -------------------------------------------------------------------------------------

    def _list_folder(self, path: str, inside: str) -> str:
        """Return what is in a folder, two levels deep."""
        items = list(self._iterate_items(inside))
        lines = [f"{_format_size(self._size_of(inside))}\t{path}"]
        lines += [f"{_format_size(size)}\t{path}/{name}" for name, size in items[:_MOST_LISTED]]
        if len(items) > _MOST_LISTED:
            lines.append(f"({len(items) - _MOST_LISTED} more are left out: view one of the directories)")
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join((head, *lines))

    def _iterate_items(self, inside: str) -> Iterator[tuple[str, int]]:
        """Yield what is in a folder: name from there, a slash behind that of a folder, and size in bytes."""
        skip = len(inside) + 1 if inside else 0
        told: set[str] = set()
        for found in self._list_memories(inside):
            parts = found.path[skip:].split("/")
            if found.problem:
                continue
            for depth in range(1, min(len(parts), _DEPTH + 1)):
                folder = "/".join(parts[:depth])
                if folder not in told:
                    told.add(folder)
                    yield f"{folder}/", self._size_of(os.path.join(inside, folder))
            if len(parts) <= _DEPTH:
                yield shown_as("/".join(parts)), found.size

    def _list_memories(self, inside: str) -> list[Listed]:
        try:
            return self._memory.ls(inside)
        except MemoryNotFound:
            return []  # an empty folder

    def _size_of(self, inside: str) -> int:
        try:
            return os.stat(self._file_path(inside)).st_size
        except OSError:
            return 0

    # -- changes ------------------------------------------------------------------------------------------

    def _require_memory(self, path: str) -> Document:
        inside = self._namespace_path(path)
        document = self._find_memory(inside)
        if document is None:
            _refuse_call(f"The path {path} is not a file.")
        return document

    @contextmanager
    def _in_words(self, path: str, new_path: str = "") -> Iterator[None]:
        """Turn the errors of a command into words for the model."""
        try:
            yield
        except ToolRefused:
            raise
        except MdmemError as error:
            raise ToolRefused(words=self._describe_error(path, new_path, error)) from None

    def _describe_error(self, path: str, new_path: str, error: MdmemError) -> str:
        """Return what a model is told of an error: its paths are those that the model knows."""
        if (
            new_path
            and isinstance(error, PathRefused)
            and error.path != self._kept_name(self._namespace_path(path))
        ):
            path = new_path
        if isinstance(error, MemoryNotFound):
            return f"The path {path} does not exist. Please provide a valid path."
        if isinstance(error, Invalid):
            findings = (each._replace(path=f"{ROOT}/{shown_as(each.path)}") for each in error.findings)
            error = error.but(findings=tuple(findings)).for_agent()
        elif "path" in error.fields:
            error = error.but(path=path)
        # A model that has these commands alone cannot run the program.
        words = _PROGRAM.sub(r"\g<0> (tell the user to run it)", str(error))
        return words.replace(self._memory.folder, ROOT).replace(self._memory.root, ROOT)


# The arguments of each command: what they may be, and whether they have to be given.
_ARGUMENTS: Mapping[str, Mapping[str, tuple[type | tuple[type, ...], bool]]] = {
    "view": {"path": (str, True), "view_range": ((list, tuple), False)},
    "create": {"path": (str, True), "file_text": (str, True)},
    "str_replace": {"path": (str, True), "old_str": (str, True), "new_str": (str, False)},
    "insert": {"path": (str, True), "insert_line": (int, True), "insert_text": (str, True)},
    "delete": {"path": (str, True)},
    "rename": {"old_path": (str, True), "new_path": (str, True)},
}


def _whole_number(value: Any) -> Any:
    """Return a whole number, also one that a model wrote as a text or as `2.0`; anything else as it is."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None if isinstance(value, bool) else value


def _refuse_call(words: str) -> NoReturn:
    raise ToolRefused(words=words)


def _resolve_path(path: str) -> str | None:
    """Return what a path names below `/memories`, without `.` and `..`; None where it leaves the folder."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts[1:]) if parts[:1] == [ROOT[1:]] else None


def kept_as(inside: str, suffixes: tuple[str, ...]) -> str:
    """Return the memory in which a file of the model is kept: what has no suffix of one is Markdown."""
    return inside if inside.endswith(suffixes) else check_memory(f"{inside}{MARKDOWN}")


def shown_as(path: str) -> str:
    """Return the file of the model that a memory is; see `kept_as`."""
    bare = path.removesuffix(MARKDOWN)
    return bare if bare.endswith(_TEXT_SUFFIXES) else path


def _format_size(count: int) -> str:
    """Return a size in bytes as the SDK writes it: `0B`, `8B`, `4K`, `1.5K`."""
    unit = min((max(count, 1).bit_length() - 1) // _KIB_BITS, len(_UNITS) - 1)
    size = count / (1 << _KIB_BITS * unit)
    return f"{int(size)}{_UNITS[unit]}" if size == int(size) else f"{size:.1f}{_UNITS[unit]}"


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _change_snippet(change: Change) -> str:
    """Return the lines around a change, as they are afterwards."""
    before = cast("Document", change.before)
    after = cast("Document", change.after(before.limits))
    at = before.text.count("\n", 0, change.edits[0].start) if change.edits else 0
    start = max(0, at - _AROUND)
    return _number_lines(after.text.split("\n")[start : at + _AROUND + 1], start + 1)


def _line_starts(text: str) -> list[int]:
    r"""Return where each line begins, and the end of the text; only `\n` ends a line, as in the SDK."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


def _insert_lines(document: Document, at: int, new: str) -> list[TextEdit]:
    """Return the edits that insert lines, after which the text ends with a line end."""
    text, newline = document.text, document.lines.newline
    if document.lines.uniform and "\r" not in new:
        new = new.replace("\n", newline)
    if at < len(text) or not text or text.endswith("\n"):
        edits = [TextEdit(at, at, new + newline)]
    else:
        return [TextEdit(at, at, f"{newline}{new}{newline}")]
    return edits if not text or text.endswith("\n") else [*edits, TextEdit(len(text), len(text), newline)]
