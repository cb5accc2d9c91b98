"""What the server does with what is out of order, unknown or not its business, and that it goes on."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from tests.editor.lsp.client import SECONDS, Client, Refused, uri
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.editor.lsp.conftest import Desk

NOT_INITIALIZED, NO_METHOD, INVALID_REQUEST, BAD_ARGUMENTS = -32002, -32601, -32600, -32602
LINK = "[[b]]\n"
SYMBOLS = {"textDocument/documentSymbol": "document", "workspace/symbol": "workspace"}
NAMES = {
    "textDocument/documentSymbol": "documentSymbolProvider",
    "workspace/symbol": "workspaceSymbolProvider",
}


@pytest.fixture
def file(desk: Desk) -> Path:
    """A memory that is open, with a link to another one."""
    desk.write("b.md", "# B\n")
    found = desk.write("a.md", LINK)
    desk.editor.open(found)
    return found


def answers(desk: Desk, file: Path, text: str = LINK) -> bool:
    """Whether the server still answers, and from this text."""
    found = desk.client.ask("definition", file, {"line": 0, "character": text.index("b]]")})
    return [goal["targetUri"] for goal in found] == [uri(desk.root / "b.md")]


def logged(desk: Desk) -> str:
    said = desk.client.told["window/logMessage"]
    return str(desk.client.wait(lambda: said)[-1]["message"])


def test_a_version_that_goes_back_is_left_out_and_said(desk: Desk, file: Path) -> None:
    desk.client.change(file, f"newer {LINK}", 5)
    desk.client.change(file, "older\n", 4)
    assert "went from 5 to 4" in logged(desk)
    assert answers(desk, file, f"newer {LINK}")


def test_a_change_before_the_opening_is_left_out_and_said(desk: Desk, file: Path) -> None:
    other = desk.write("c.md", LINK)
    desk.client.change(other, "else\n", 2)
    assert "c.md was changed before it was opened" in logged(desk)
    assert answers(desk, other)
    assert answers(desk, file)


def test_a_part_of_a_text_is_left_out_and_said(desk: Desk, file: Path) -> None:
    place = {"line": 0, "character": 0}
    change = {"range": {"start": place, "end": place}, "text": "x"}
    named = {"uri": uri(file), "version": 2}
    desk.client.notify("textDocument/didChange", {"textDocument": named, "contentChanges": [change]})
    assert "not its whole text" in logged(desk)
    assert answers(desk, file)


@pytest.mark.parametrize(
    "given",
    ["untitled:Untitled-1", "https://example.org/a.md", "no uri", "", "file://host/a.md", "file:///a%00.md"],
)
def test_of_an_unknown_scheme_nothing_is_known(desk: Desk, file: Path, given: str) -> None:
    document = {"uri": given, "languageId": "markdown", "version": 1, "text": "[[gone]]\n"}
    desk.client.notify("textDocument/didOpen", {"textDocument": document})
    changes = [{"text": "[[gone]] more\n"}]
    desk.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
    desk.client.notify("textDocument/didSave", {"textDocument": {"uri": given}})
    params = {"textDocument": {"uri": given}, "position": {"line": 0, "character": 3}}
    assert desk.client.request("textDocument/definition", params) is None
    desk.client.notify("textDocument/didClose", {"textDocument": {"uri": given}})
    moves = [{"oldUri": given, "newUri": "untitled:x"}]
    assert desk.client.request("workspace/willRenameFiles", {"files": moves}) is None
    assert answers(desk, file)
    assert given not in desk.client.diagnostics


def test_an_unknown_command_or_method_is_an_error(desk: Desk, file: Path) -> None:
    with pytest.raises(Refused):
        desk.client.request("workspace/executeCommand", {"command": "mdmem.none", "arguments": []})
    with pytest.raises(Refused) as refused:
        desk.client.request("textDocument/none", {})
    assert refused.value.code == NO_METHOD
    desk.client.notify("textDocument/none", {})
    assert answers(desk, file)


@pytest.mark.parametrize("given", [{}, {"arguments": None}, {"arguments": [{}]}, {"arguments": [1, 2, 3]}])
def test_a_command_without_what_it_needs_is_an_error(desk: Desk, file: Path, given: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        desk.client.request("workspace/executeCommand", {"command": "mdmem.applyEdit", **given})
    assert refused.value.code == BAD_ARGUMENTS
    assert answers(desk, file)


def test_a_place_beyond_the_line_or_the_text_is_its_end(desk: Desk) -> None:
    desk.write("b.md", "# B\n")
    file = desk.write("a.md", "# A\n\n[[b]]\n\n[[b]]")
    for line in (2, 4, 99):
        found = desk.client.ask("definition", file, {"line": line, "character": 999})
        assert [goal["targetUri"] for goal in found] == [uri(desk.root / "b.md")]
    assert desk.client.ask("definition", file, {"line": 0, "character": 999})[0]["targetUri"] == uri(file)


def test_a_file_outside_of_a_vault_gets_nothing(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("[[gone]]\n")
    desk.editor.open(file)
    desk.editor.type(file, "[[gone]] more\n")
    for question in ("definition", "hover", "completion", "prepareRename"):
        assert desk.client.ask(question, file, {"line": 0, "character": 3}) is None
    for question in ("documentLink", "documentSymbol"):
        assert desk.client.ask(question, file) is None
    assert not desk.client.diagnostics[uri(file)]
    assert list(tmp_path.iterdir()) == [file]


def test_one_server_serves_two_vaults(desk: Desk, file: Path, tmp_path: Path) -> None:
    mdmem.init(tmp_path / "memories")
    other, target = tmp_path / "memories/a.md", tmp_path / "memories/deep/b.md"
    target.parent.mkdir()
    target.write_text("# Other vault\n")
    other.write_text(LINK)
    desk.editor.open(other)
    (goal,) = desk.client.ask("definition", other, {"line": 0, "character": 3})
    assert goal["targetUri"] == uri(target)
    assert answers(desk, file)
    desk.editor.type(other, "[[gone]]\n")
    desk.client.codes(other, ["dangling-link"])
    assert not desk.client.found(file)
    found = desk.client.request("workspace/symbol", {"query": "b.md"})
    assert {each["location"]["uri"] for each in found} >= {uri(target), uri(desk.root / "b.md")}


def is_removed(folder: Path) -> bool:
    """Remove a folder in which a server may make a file meanwhile."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def test_of_a_vault_that_is_deleted_nothing_more_is_told(desk: Desk, file: Path, tmp_path: Path) -> None:
    mdmem.init(tmp_path / "memories")
    (tmp_path / "memories/c.md").write_text("# Other vault\n")
    desk.editor.open(tmp_path / "memories/c.md")
    assert answers(desk, file)
    until(partial(is_removed, tmp_path / "memories"))
    found = desk.client.request("workspace/symbol", {"query": "b.md"})
    assert [each["location"]["uri"] for each in found] == [uri(desk.root / "b.md")]
    moves = [{"oldUri": uri(desk.root / "b.md"), "newUri": uri(desk.root / "d.md")}]
    changed = desk.client.request("workspace/willRenameFiles", {"files": moves})["documentChanges"]
    assert [each["textDocument"]["uri"] for each in changed] == [uri(file)]
    assert not desk.client.told["window/showMessage"]


def test_equal_findings_are_told_once(desk: Desk) -> None:
    file = desk.write("a.md", "[[gone]]\n")
    desk.editor.open(file)
    desk.client.codes(file, ["dangling-link"])
    desk.editor.type(file, "[[gone]] and more\n")
    desk.editor.save(file)
    desk.editor.type(file, "[[gone]] [[gone]]\n")
    desk.client.codes(file, ["dangling-link"] * 2)
    told = [len(each["diagnostics"]) for each in desk.client.diagnostics[uri(file)]]
    assert told == [1, 2]


def test_what_comes_before_the_beginning_or_after_the_end_is_refused(tmp_path: Path) -> None:
    mdmem.init(tmp_path / "memories")
    file = tmp_path / "memories/a.md"
    file.write_text("# A\n")
    with Client(cwd=tmp_path) as client:
        client.open(file, "[[gone]]\n")
        with pytest.raises(Refused) as refused:
            client.ask("hover", file, {"line": 0, "character": 0})
        assert refused.value.code == NOT_INITIALIZED
        client.initialize(tmp_path)
        with pytest.raises(Refused) as refused:
            client.initialize(tmp_path)
        assert refused.value.code == INVALID_REQUEST
        client.open(file, "[[gone]]\n")
        client.codes(file, ["dangling-link"])
        client.request("shutdown", None)
        with pytest.raises(Refused) as refused:
            client.ask("hover", file, {"line": 0, "character": 0})
        assert refused.value.code == INVALID_REQUEST
        client.notify("exit", None)
        client.process.wait(30)


def test_symbols_are_left_to_an_editor_that_lists_them_itself(tmp_path: Path) -> None:
    with Client(cwd=tmp_path) as client:
        about = {"name": "Visual Studio Code", "version": "1"}
        offered = client.initialize(tmp_path, clientInfo=about)["capabilities"]
        assert offered["definitionProvider"]
        for method, name in SYMBOLS.items():
            assert not offered.get(f"{name}SymbolProvider")
            with pytest.raises(Refused) as refused:
                client.request(method, {"textDocument": {"uri": uri(tmp_path / "a.md")}, "query": "a"})
            assert refused.value.code == NO_METHOD


def test_the_beginning_is_answered_before_the_vault_is_read_which_shows_how_far_it_is(tmp_path: Path) -> None:
    mdmem.init(tmp_path / "memories")
    for number in range(1_000):
        (tmp_path / f"memories/n{number}.md").write_text(f"# N {number}\n\n[[n{number // 2}]]\n")
    with Client(cwd=tmp_path) as client:
        capabilities = {"window": {"workDoneProgress": True}}
        folders = [{"uri": uri(tmp_path), "name": "x"}]
        given = {
            "processId": None,
            "rootUri": None,
            "capabilities": capabilities,
            "workspaceFolders": folders,
        }
        client.request("initialize", given)
        assert not list((tmp_path / "memories/.mdmem").rglob("*.sqlite"))
        client.notify("initialized", {})
        shown = client.told["$/progress"]
        client.wait(lambda: shown and shown[-1]["value"]["kind"] == "end")
        kinds = [each["value"]["kind"] for each in shown]
        assert kinds[0] == "begin"
        assert set(kinds[1:-1]) <= {"report"}
        done = [each["value"]["percentage"] for each in shown[:-1]]
        assert done == sorted(set(done))
        found = client.ask("documentLink", tmp_path / "memories/n7.md")
        assert [each["target"] for each in found] == [uri(tmp_path / "memories/n3.md")]


def test_a_cancelled_question_is_dropped_and_the_server_goes_on(desk: Desk, file: Path) -> None:
    for number in range(400):
        desk.write(f"n{number}.md", LINK)
    where = {"textDocument": {"uri": uri(file)}, "position": {"line": 0, "character": LINK.index("b]]")}}
    given = {**where, "context": {"includeDeclaration": True}}
    asked = [desk.client.start("textDocument/references", given) for _ in range(8)]
    for number, _ in asked:
        desk.client.notify("$/cancelRequest", {"id": number})
    codes = set()
    for _, future in asked:
        with pytest.raises(Refused) as caught:
            future.result(SECONDS)
        codes.add(caught.value.code)
    assert codes == {-32800}
    assert answers(desk, file)
