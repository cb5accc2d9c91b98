"""The other views: a memory and its text field, search, proposals, the overview and its days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mdmem
from tests.waiting import until
from tests.web_page.browsing import CURRENT, visit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.git.conftest import VaultTree
    from tests.web_page.browsing import Visit

TEXT = "# Deploy\r\n\r\nThe release runs \U0001f98a on Fridays, see [[login]] and [[nowhere]].\r\n"


def read(tree: VaultTree, path: str) -> str:
    return (tree.root / "memories" / path).read_bytes().decode()


def prepare(tree: VaultTree, visits: Callable[..., Visit]) -> Visit:
    tree.note("notes/login.md", "# Login\n\nSessions last a day.\n")
    (tree.root / "memories/notes/deploy.md").write_bytes(TEXT.encode())
    tree.commit()
    tree.open("claude").append("notes/login.md", "- See [[deploy]].")
    return visits()


def test_a_memory_is_shown_as_written_with_what_is_known_of_it(
    tree: VaultTree, visits: Callable[..., Visit]
) -> None:
    page = prepare(tree, visits)
    page.go("memory?path=notes%2Fdeploy.md&line=3")
    assert page.see(".line.target").inner_text() == TEXT.splitlines()[2]
    assert page.read_all(".lines a") == ["login"]
    assert "nowhere" in page.see("aside li", "line 3").inner_text()
    assert "See [[deploy]]" in page.see("aside", "What links here").inner_text()
    page.page.locator(".lines a").click()
    page.see(".lines", "Sessions last a day")
    assert "claude" in page.see("aside", "History").inner_text()


def test_a_memory_is_edited_from_the_line_of_a_row_and_the_edit_is_undone(
    tree: VaultTree, visits: Callable[..., Visit]
) -> None:
    page = prepare(tree, visits)
    page.see(".row")
    page.press("e")
    page.see("textarea")
    page.page.wait_for_function("() => document.querySelector('textarea').selectionStart > 20")
    page.page.keyboard.type("X")
    page.press("Control+s")
    until(lambda: "X- See [[deploy]]." in read(tree, "notes/login.md"))
    page.see(".row", "X- See").focus()
    page.press("u")
    until(lambda: "X" not in read(tree, "notes/login.md"))


def test_saving_keeps_line_ends_and_what_moved_on_is_not_overwritten_unseen(
    tree: VaultTree, visits: Callable[..., Visit]
) -> None:
    page = prepare(tree, visits)
    page.go("memory?path=notes%2Fdeploy.md&edit=1")
    page.see("textarea").fill(TEXT.replace("\r\n", "\n").replace("Fridays", "Tuesdays"))
    (tree.root / "memories/notes/deploy.md").write_bytes(TEXT.replace("Fridays", "Mondays").encode())
    page.press("Control+s")
    assert "Mondays" in page.see("pre").inner_text()
    assert "Tuesdays" in page.see("textarea").input_value()
    assert "Mondays" in read(tree, "notes/deploy.md")
    page.page.get_by_role("button", name="Save").click()
    until(lambda: "Tuesdays" in read(tree, "notes/deploy.md"))
    assert read(tree, "notes/deploy.md") == TEXT.replace("Fridays", "Tuesdays")


def test_memories_are_found_while_the_words_are_typed(tree: VaultTree, visits: Callable[..., Visit]) -> None:
    page = prepare(tree, visits)
    page.see(".row")
    page.press("/")
    page.page.keyboard.type("release")
    assert "Fridays" in page.see(".hit").inner_text()
    page.press("Enter", "o")
    page.see(".lines", "Fridays")
    page.page.go_back()
    page.see(".hit", "Fridays")
    page.page.locator("#search").fill("zzz")
    page.see("h1", "Nothing found")


def test_a_proposal_is_accepted_and_another_one_rejected(
    tree: VaultTree, visits: Callable[..., Visit]
) -> None:
    page = prepare(tree, visits)
    for word in ("first", "second"):
        arguments = {"path": "notes/login.md", "text": f"- The {word}."}
        tree.open("claude").inbox.propose("append", arguments, reason=f"Because of {word}.")
    page.go("proposals")
    page.see(".card", "Because of second")
    assert page.read("#proposed") == "2"
    is_first = "first" in page.see(".card").inner_text()
    page.press("a")
    page.miss(".card", f"Because of {'first' if is_first else 'second'}")
    until(lambda: f"- The {'first' if is_first else 'second'}." in read(tree, "notes/login.md"))
    page.page.get_by_role("button", name="reject x").click()
    page.see("h1", "No proposals")
    assert [each.status for each in tree.memory.inbox.list(all=True)] == ["rejected"]


def test_the_overview_leads_to_lists_days_and_memories(tree: VaultTree, visits: Callable[..., Visit]) -> None:
    page = prepare(tree, visits)
    page.go("overview")
    figures = page.see(".figures")
    assert " ".join(figures.inner_text().split()) == (
        "2 memories 1 to review 0 proposals 0 stale citations 1 broken links 0 ambiguous links"
    )
    assert "claude" in page.read(".legend")
    assert page.page.locator(".picture a").count() == 3
    page.page.locator(".picture a[href*='login']").click()
    page.see(".lines", "Sessions")
    page.page.go_back()
    page.see(".figures a", "broken links").click()
    page.see(".hit", "notes/deploy.md")
    page.page.go_back()
    page.see(".picture a[href*='day']").click()
    page.see(CURRENT, "append to notes/login.md")
    page.press("u")
    until(lambda: "See [[deploy]]" not in read(tree, "notes/login.md"))


def test_a_vault_in_no_repository_is_read_and_searched_and_the_review_says_what_it_needs(
    tmp_path: Path, browser: Any
) -> None:
    memory = mdmem.open(mdmem.init(tmp_path / "memories").root)
    memory.notes.append("db.md", "The database is one file.")
    with visit(browser, tmp_path / "memories") as open_page:
        page = open_page()
        page.see("h1", "There is no review here")
        page.go("search?query=database")
        page.see(".hit", "one file")
        page.go("overview")
        page.see(".figures")
        assert page.said == []


def test_a_large_review_is_bounded_and_says_what_is_left(
    tree: VaultTree, visits: Callable[..., Visit]
) -> None:
    for number in range(45):
        tree.note(f"notes/n{number:02}.md", f"# Note {number}\n")
    tree.note("notes/big.md", "# Big\n\n" + "- a fact\n" * 3_000)
    page = visits()
    page.see("button", "Show all of it")
    assert page.see(".card", "notes/big.md").bounding_box()["height"] < 900
    page.see("main > button", "memories are left").click()
    page.see(".card", "notes/n44.md")
