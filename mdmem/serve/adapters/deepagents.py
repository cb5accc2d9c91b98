"""A backend of deepagents that keeps its files in a vault (the extra `deepagents`).

create_deep_agent(model, backend=VaultBackend(mdmem.open("memories")))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from mdmem import check_folder
from mdmem.errors import ExtraMissing, MdmemError, MemoryNotFound, PathRefused
from mdmem.serve.adapters.memory_tool import MARKDOWN, kept_as, shown_as

try:
    from deepagents.backends.protocol import (
        BackendProtocol,
        DeleteResult,
        EditResult,
        FileData,
        FileDownloadResponse,
        FileInfo,
        FileOperationError,
        FileUploadResponse,
        GlobResult,
        GrepMatch,
        GrepResult,
        LsResult,
        ReadResult,
        WriteResult,
    )
    from deepagents.backends.utils import slice_read_response
except ImportError as error:
    raise ExtraMissing(extra="deepagents", package=str(error.name).partition(".")[0]) from error

if TYPE_CHECKING:
    from mdmem.facade.memory import Memory
    from mdmem.memory.verbs import Listed


class VaultBackend(BackendProtocol):
    """The files of a namespace: `/notes/db.md` is its memory `notes/db.md`.

    What is not Markdown or JSON by its name is kept as Markdown (`mdmem.serve.adapters.memory_tool.kept_as`).
    Nothing is raised: a result says in words why something was not done.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    # -- reading ------------------------------------------------------------------------------------------

    def ls(self, path: str) -> LsResult:
        """Return what is in a folder: its memories, and the folders in it with a slash at their end."""
        try:
            entries: dict[str, FileInfo] = {}
            for each in self._list_below(path):
                folder, slash, _ = each.path[len(_path_prefix(path)) :].partition("/")
                place = f"/{_path_prefix(path)}{folder}/"
                info = FileInfo(path=place, is_dir=True) if slash else _file_info(each)
                entries.setdefault(info["path"], info)
        except MdmemError as error:
            return LsResult(error=_describe_error(error, path))
        if not entries and _path_prefix(path):
            return LsResult(error=f"Path '{path}': path_not_found")
        return LsResult(entries=list(entries.values()))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Up to `limit` lines of a memory behind the first `offset` ones."""
        try:
            text = self._memory.show(self._memory_path(file_path)).text
        except MdmemError as error:
            return ReadResult(error=_describe_error(error, file_path))
        return slice_read_response(FileData(content=text, encoding="utf-8"), offset, limit)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Return the lines that hold a text; `max_count` of them at most."""
        try:
            globs = _globs_for(glob) if glob else []
            found = self._memory.grep(
                pattern,
                within=_path_prefix(path or "/").rstrip("/"),
                globs=globs,
                case="exact",
                limit=max_count,
            )
            hits = list(found)
        except MdmemError as error:
            return GrepResult(error=_describe_error(error, path or "/"))
        matches = [GrepMatch(path=f"/{shown_as(hit.path)}", line=hit.line, text=hit.text) for hit in hits]
        return GrepResult(matches=matches, truncated=bool(hits and hits[-1].left_out))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Return the memories with paths that fit a glob."""
        try:
            within = _path_prefix(path or "/").rstrip("/")
            listed = self._memory.ls(within, globs=_globs_for(pattern))
        except MemoryNotFound:
            return GlobResult(matches=[])
        except MdmemError as error:
            return GlobResult(error=_describe_error(error, path or "/"))
        return GlobResult(matches=[_file_info(each) for each in listed if not each.problem])

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return the bytes of memories."""
        answers = []
        for path in paths:
            try:
                data = self._memory.show(self._memory_path(path)).data
                answers.append(FileDownloadResponse(path=path, content=data))
            except MdmemError as error:
                answers.append(FileDownloadResponse(path=path, error=_error_code(error)))
        return answers

    # -- changes ------------------------------------------------------------------------------------------

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a memory, whether it is there or not; what it held is kept."""
        try:
            self._memory.write(self._memory_path(file_path), content, overwrite=True)
        except MdmemError as error:
            return WriteResult(error=_describe_error(error, file_path))
        return WriteResult(path=file_path)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace a text that stands exactly once, or every occurrence."""
        count: Literal[1, "all"] = "all" if replace_all else 1
        try:
            applied = self._memory.replace(self._memory_path(file_path), old_string, new_string, count=count)
        except MdmemError as error:
            return EditResult(error=_describe_error(error, file_path))
        return EditResult(path=file_path, occurrences=sum(len(c.edits) for c in applied.plan.changes))

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a memory, or a folder of memories; `restore` and `undo` bring it back."""
        try:
            folder = _path_prefix(file_path).rstrip("/")
            is_folder = not folder.endswith(self._memory.suffixes) and self._list_below(file_path)
            self._memory.rm(folder if is_folder else self._memory_path(file_path), recursive=True)
        except MdmemError as error:
            return DeleteResult(error=_describe_error(error, file_path))
        return DeleteResult(path=file_path)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write memories; what is no UTF-8 is none."""
        answers = []
        for path, data in files:
            try:
                self._memory.write(self._memory_path(path), data.decode(), overwrite=True)
                answers.append(FileUploadResponse(path=path))
            except UnicodeDecodeError as error:
                answers.append(FileUploadResponse(path=path, error=f"not UTF-8: byte {error.start}"))
            except MdmemError as error:
                answers.append(FileUploadResponse(path=path, error=_error_code(error)))
        return answers

    def _memory_path(self, path: str) -> str:
        return kept_as(path.lstrip("/"), self._memory.suffixes)

    def _list_below(self, path: str) -> list[Listed]:
        try:
            return [each for each in self._memory.ls(_path_prefix(path).rstrip("/")) if not each.problem]
        except MemoryNotFound:
            return []


def _path_prefix(path: str) -> str:
    folder = check_folder(path.lstrip("/"))
    return f"{folder}/" if folder else ""


def _globs_for(pattern: str) -> list[str]:
    """Return a glob for the name of a file, and one for the memory that it is kept in."""
    return [pattern, f"{pattern}{MARKDOWN}"]


def _file_info(listed: Listed) -> FileInfo:
    path = f"/{shown_as(listed.path)}"
    return FileInfo(path=path, is_dir=False, size=listed.size, modified_at=listed.modified)


def _describe_error(error: MdmemError, path: str) -> str:
    """Return an error in words, about the path that the agent gave."""
    error = error.for_agent()
    return f"Error: {error.but(path=path) if 'path' in error.fields else error}"


def _error_code(error: MdmemError) -> FileOperationError | str:
    if isinstance(error, MemoryNotFound):
        return "file_not_found"
    return "invalid_path" if isinstance(error, PathRefused) else error.code
