"""The review: each key and each button, what comes back, and what others write meanwhile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.waiting import until
from tests.web_page.browsing import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.git.conftest import VaultTree
    from tests.web_page.browsing import Visit

BEFORE = {
    "notes/a.md": "# Login\n\n- Sessions last a day at most.\n- Passwords are hashed twice.\n",
    "notes/b.md": "---\nconfidence: 0.8\n---\n# Deploy\n\nThe release runs on Fridays.\n",
    "notes/c.md": "# Old\n\nGone soon.\n",
}
AFTER = {
    "notes/a.md": "# Login\n\n- Sessions last an hour at most.\n- Passwords are hashed twice.\n"
    "- New: tokens.\n",
    "notes/b.md": "---\nconfidence: 0.6\n---\n# Deploy\n\nThe release runs on Fridays.\n",
    "notes/d.md": "# New\n\nIt is new.\n",
}


@pytest.fixture
def page(tree: VaultTree, visits: Callable[..., Visit]) -> Visit:
    for path, text in BEFORE.items():
        tree.note(path, text)
    tree.commit()
    for path, text in AFTER.items():
        tree.open("claude").write(path, text, overwrite=path in BEFORE)
    tree.open("codex").rm("notes/c.md")
    page = visits()
    page.see(".row")
    return page


def read(tree: VaultTree, path: str) -> str:
    return (tree.root / "memories" / path).read_text()


def wait_for(tree: VaultTree, path: str, text: str) -> None:
    until(lambda: (tree.root / "memories" / path).exists() and read(tree, path) == text)


# README: `mdmem web` is the same on a page, where a key decides each change …
def test_a_change_is_shown_by_its_words_below_its_heading_with_who_made_it_and_when(page: Visit) -> None:
    assert page.read_all(".card h2") == ["notes/a.md", "notes/b.md", "notes/c.md", "notes/d.md"]
    first = page.see(".card", "notes/a.md")
    assert first.locator(".under").inner_text() == "Login"
    assert first.locator(".row").first.locator("del").inner_text() == "a day"
    assert first.locator(".row").first.locator("ins").inner_text() == "an hour"
    paint = "element => getComputedStyle(element).backgroundColor"
    assert first.locator(".row").first.locator(".words > span").first.evaluate(paint) == "rgba(0, 0, 0, 0)"
    assert first.locator(".words").first.evaluate(paint) == "rgba(0, 0, 0, 0)"
    assert re.fullmatch(r"claude · \d\d:\d\d", first.locator(".maker").inner_text())
    assert page.see(".card", "notes/b.md").locator("code").inner_text() == "confidence: "
    assert page.see(".card", "notes/c.md").locator(".tag").first.inner_text() == "removed"
    assert "codex" in page.see(".card", "notes/c.md").inner_text()
    assert page.see(".card", "notes/d.md").locator("ins").inner_text() == "# New\n\nIt is new.\n"
    assert page.read("#tally") == "0 of 5 accepted · 0 of 4 memories ready"
    assert page.page.title() == "(5) mdmem"


def test_rows_are_accepted_and_rejected_and_all_that_is_accepted_is_committed(
    page: Visit, tree: VaultTree
) -> None:
    page.press("a", "x", "a", "x", "a")
    wait_for(tree, "notes/a.md", AFTER["notes/a.md"].replace("- New: tokens.\n", ""))
    wait_for(tree, "notes/c.md", BEFORE["notes/c.md"])
    page.wait_for("() => document.querySelectorAll('.row').length === 3")
    page.see("#tally", "3 of 3 accepted · 3 of 3 memories ready")
    page.page.locator("#message").fill("What was learnt")
    page.press("Enter")
    page.see("h1", "Nothing to review")
    assert tree.git("log", "-1", "--format=%s") == "What was learnt"
    assert tree.git("status", "--porcelain", "memories/notes") == ""
    assert page.said == []


def test_the_rest_of_a_memory_is_decided_at_once(page: Visit, tree: VaultTree) -> None:
    page.press("X", "a")
    wait_for(tree, "notes/a.md", BEFORE["notes/a.md"])
    page.miss(".card", "notes/a.md")
    page.press("k", "j", "J", "K", "k")
    assert "confidence" in page.read(CURRENT)
    assert "accepted" in page.see(".card", "notes/b.md").inner_text()


def test_every_key_of_a_row_has_a_button(page: Visit, tree: VaultTree) -> None:
    assert page.read_all(".tools button") == [
        *("accept a", "reject x", "accept all A", "reject all X", "skip s", "edit e", "open o"),
    ]
    assert page.read_all("#bar button") == [
        *("commit c", "undo u", "next j", "back k", "memory ↓ J", "memory ↑ K", "keys ?"),
    ]
    page.page.get_by_role("button", name="accept all A").click()
    page.page.get_by_role("button", name="reject x").click()
    wait_for(tree, "notes/b.md", BEFORE["notes/b.md"])
    page.page.get_by_role("button", name="undo u").click()
    wait_for(tree, "notes/b.md", AFTER["notes/b.md"])
    page.see(CURRENT, "confidence")
    page.page.get_by_role("button", name="commit c").click()
    page.see("#notice", "Committed")
    page.miss(".card", "notes/a.md")
    page.page.get_by_role("button", name="keys ?").click()
    assert page.page.locator("#keys dt").count() == 15


def test_decisions_are_undone_in_turn(page: Visit, tree: VaultTree) -> None:
    page.press("s", "x", "a", "x")
    wait_for(tree, "notes/c.md", BEFORE["notes/c.md"])
    page.press("u", "u", "u", "u", "u")
    page.see("#notice", "nothing to undo")
    until(lambda: not (tree.root / "memories/notes/c.md").exists())
    wait_for(tree, "notes/a.md", AFTER["notes/a.md"])
    page.wait_for("() => document.querySelectorAll('.row').length === 5")
    assert {*page.read_all(".state")} == {""}


def test_what_was_accepted_is_still_so_when_the_page_is_loaded_again(page: Visit) -> None:
    page.press("a", "a", "s")
    page.page.reload()
    page.see("#tally", "2 of 5 accepted · 1 of 4 memories ready")
    assert page.page.evaluate("Object.keys(sessionStorage).sort()") == ["accepted", "token"]
    assert page.page.url.endswith("/#/review")


def test_a_refused_decision_comes_back_in_its_place_with_the_reason(page: Visit, tree: VaultTree) -> None:
    """Somebody has changed the words meanwhile; the page is not told before it has decided."""
    page.page.route("**/api/review*", lambda route: route.abort())
    page.page.evaluate("dispatchEvent(new Event('focus'))")
    page.see("#offline")  # so what it had asked before is answered
    tree.note("notes/b.md", AFTER["notes/b.md"].replace("0.6", "0.5"))
    page.press("J", "x")
    reason = page.see(".card:nth-child(2) .reason", "cannot be reverted")
    assert "gone" in reason.inner_text()
    assert page.see(".card", "notes/b.md").locator("ins").inner_text() == "5"
    page.page.unroute("**/api/review*")
    page.press("K", "x")
    wait_for(tree, "notes/b.md", BEFORE["notes/b.md"])
    page.miss(".reason")


def test_what_others_write_shows_by_itself_and_focus_and_scroll_stay(page: Visit, tree: VaultTree) -> None:
    page.page.set_viewport_size({"width": 1280, "height": 400})
    page.press("J", "J")
    page.page.evaluate("scrollBy(0, 37)")
    place = "() => document.querySelector('.row.current').getBoundingClientRect().top"
    before = page.page.evaluate(place)
    tree.open("cursor").append("notes/a.md", "- From another one.")
    page.see(".row", "From another one")
    assert page.page.evaluate("document.activeElement.matches('.row.current')")
    assert "Gone soon" in page.read(CURRENT)
    assert abs(page.page.evaluate(place) - before) < 2


def test_a_commit_of_git_shows_when_the_window_gets_the_focus(page: Visit, tree: VaultTree) -> None:
    tree.commit()
    page.page.evaluate("dispatchEvent(new Event('focus'))")
    page.see("h1", "Nothing to review")


def test_keys_do_nothing_while_the_focus_is_elsewhere(page: Visit, tree: VaultTree) -> None:
    page.press("/")
    page.page.keyboard.type("xX")
    assert page.page.locator("#search").input_value() == "xX"
    assert read(tree, "notes/a.md") == AFTER["notes/a.md"]


def test_decisions_wait_for_a_server_that_does_not_answer(page: Visit, tree: VaultTree) -> None:
    page.page.route("**/api/**", lambda route: route.abort())
    page.press("x")
    page.see("#offline", "No answer from mdmem")
    page.see(".row.rejected")
    page.page.unroute("**/api/**")
    wait_for(tree, "notes/a.md", AFTER["notes/a.md"].replace("an hour", "a day"))
    page.miss("#offline")


def test_without_the_token_nothing_is_shown(page: Visit) -> None:
    page.page.evaluate("sessionStorage.clear()")
    page.page.reload()
    page.see("h1", "This page is locked")
    page.page.evaluate("sessionStorage.setItem('token', 'of another start')")
    page.page.reload()
    page.see("h1", "This page is locked")
