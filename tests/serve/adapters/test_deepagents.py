"""The backend of deepagents: the protocol on a vault, and a real agent that works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import mdmem
from mdmem.serve.adapters.deepagents import VaultBackend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.callbacks import CallbackManagerForLLMRun


@pytest.fixture
def backend(memory: mdmem.Memory) -> VaultBackend:
    for path, text in {"notes/db.md": "One\nfile.\n", "notes/deep/er.md": "one more\n", "top.md": ""}.items():
        memory.write(path, text)
    return VaultBackend(memory)


# --------------------------------------------------------------------------------------------- the protocol


def paths(entries: Sequence[Any] | None) -> list[str]:
    assert entries is not None
    return [entry["path"] for entry in entries]


def test_a_folder_is_listed_with_what_is_right_in_it(backend: VaultBackend) -> None:
    assert paths(backend.ls("/").entries) == ["/notes/", "/top.md"]
    assert paths(backend.ls("/notes").entries) == ["/notes/db.md", "/notes/deep/"]
    (info,) = [entry for entry in backend.ls("/notes/").entries or [] if not entry["is_dir"]]
    assert info["size"] == 10
    assert backend.ls("/nothing").error == "Path '/nothing': path_not_found"


def test_lines_are_read_by_pages(backend: VaultBackend) -> None:
    found = backend.read("/notes/db.md", offset=1, limit=5)
    assert found.file_data
    assert (found.file_data["content"], found.start_line, found.total_lines) == ("file.\n", 2, 2)
    missing = backend.read("/notes/none.md")
    assert missing.error
    assert "/notes/none.md: no such memory" in missing.error


def test_a_text_is_looked_for_exactly(backend: VaultBackend) -> None:
    found = backend.grep("one", path="/notes")
    assert found.matches == [{"path": "/notes/deep/er.md", "line": 1, "text": "one more"}]
    assert backend.grep("o.e").matches == []
    capped = backend.grep("e", max_count=1)
    assert (len(capped.matches or []), capped.truncated) == (1, True)
    assert backend.grep("e", glob="er.*").matches == found.matches


def test_globs_find_memories(backend: VaultBackend) -> None:
    assert paths(backend.glob("*.md").matches) == ["/notes/db.md", "/notes/deep/er.md", "/top.md"]
    assert paths(backend.glob("deep/*.md", "/notes").matches) == ["/notes/deep/er.md"]
    assert backend.glob("*.md", "/nothing").matches == []


def test_a_write_replaces_and_keeps_what_was_there(backend: VaultBackend, memory: mdmem.Memory) -> None:
    assert backend.write("/notes/db.md", "Two.\n").path == "/notes/db.md"
    memory.undo()
    assert memory.show("notes/db.md").text == "One\nfile.\n"


def test_an_edit_counts_what_it_replaced(backend: VaultBackend, memory: mdmem.Memory) -> None:
    assert backend.edit("/notes/db.md", "One", "1").occurrences == 1
    ambiguous = backend.edit("/notes/db.md", "e", "E", replace_all=False)
    assert ambiguous.occurrences == 1
    assert backend.edit("/notes/db.md", "i", "i", replace_all=True).error is None
    refused = backend.edit("/notes/db.md", "none", "x")
    assert refused.error
    assert "does not occur" in refused.error
    assert memory.show("notes/db.md").text == "1\nfilE.\n"


def test_a_file_or_a_folder_is_deleted(backend: VaultBackend, memory: mdmem.Memory) -> None:
    assert backend.delete("/top.md").path == "/top.md"
    assert backend.delete("/notes").path == "/notes"
    assert memory.ls() == []
    assert backend.delete("/notes").error


def test_files_of_other_names_are_kept_as_markdown(backend: VaultBackend, memory: mdmem.Memory) -> None:
    assert backend.write("/plan.txt", "one\n").path == "/plan.txt"
    assert memory.show("plan.txt.md").text == "one\n"
    assert "/plan.txt" in paths(backend.ls("/").entries)
    assert paths(backend.glob("*.txt").matches) == ["/plan.txt"]
    assert backend.delete("/plan.txt").error is None


def test_bytes_go_in_and_out(backend: VaultBackend) -> None:
    uploaded = backend.upload_files([("/a.md", b"\xc3\xbc\r\n"), ("/b.md", b"\xff"), ("/../c.md", b"")])
    assert [each.error for each in uploaded] == [None, "not UTF-8: byte 0", "invalid_path"]
    downloaded = backend.download_files(["/a.md", "/b.md", "/../c.md"])
    assert [(each.content, each.error) for each in downloaded] == [
        (b"\xc3\xbc\r\n", None),
        (None, "file_not_found"),
        (None, "invalid_path"),
    ]


@pytest.mark.parametrize(
    "path", ["/../x.md", "/users/../../x.md", "/%2e%2e/x.md", "/.mdmem/config.toml", "/"]
)
def test_no_path_leaves_the_namespace(memory: mdmem.Memory, path: str) -> None:
    backend = VaultBackend(mdmem.open(memory.vault.root, mdmem.Scope(user="alice")))
    assert backend.read(path).error
    assert backend.write(path, "x").error
    assert backend.edit(path, "x", "y").error
    assert backend.delete(path).error
    assert memory.ls() == []


# ------------------------------------------------------------------------------------------- a real agent


class Scripted(BaseChatModel):
    """A model that asks for one tool after the other."""

    script: list[tuple[str, dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ARG002 - langchain's signature
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - as above
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **_: Any,
    ) -> ChatResult:
        step = sum(isinstance(message, ToolMessage) for message in messages)
        if step == len(self.script):
            return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])
        name, arguments = self.script[step]
        call = {"name": name, "args": arguments, "id": f"c{step}", "type": "tool_call"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


def test_an_agent_works_on_the_vault(memory: mdmem.Memory) -> None:
    script = [
        ("write_file", {"file_path": "/notes/db.md", "content": "One file.\n"}),
        ("edit_file", {"file_path": "/notes/db.md", "old_string": "One", "new_string": "A single"}),
        ("read_file", {"file_path": "/notes/db.md"}),
        ("ls", {"path": "/notes"}),
        ("grep", {"pattern": "single", "output_mode": "content"}),
        ("glob", {"pattern": "*.md"}),
        ("edit_file", {"file_path": "/notes/none.md", "old_string": "a", "new_string": "b"}),
    ]
    agent = create_deep_agent(model=Scripted(script=script), backend=VaultBackend(memory))
    question: Any = {"messages": [("user", "remember")]}
    messages = agent.invoke(question)["messages"]
    told = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
    assert memory.show("notes/db.md").text == "A single file.\n"
    assert len(told) == len(script)
    assert "A single file." in told[2]
    assert "/notes/db.md" in told[3]
    assert "/notes/db.md" in told[4]
    assert "/notes/db.md" in told[5]
    assert "no such memory" in told[6]
