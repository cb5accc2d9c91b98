"""Watching memories: every kind of event, from whoever changes the files, and nothing over the wall."""

from __future__ import annotations

import os
import queue
import shutil
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mdmem.diagnostic import as_json
from mdmem.errors import StorageFailed
from mdmem.facade.memory import Memory
from mdmem.index import text_index as text_module
from mdmem.index.view import View
from mdmem.index.watch import hints as hints_module, watcher as watch_module
from mdmem.index.watch.events import READY, Event, Watch
from mdmem.vault.folder import init
from mdmem.vault.paths import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 20.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A vault in a workspace with code, which is no repository."""
    (tmp_path / "ws/src").mkdir(parents=True)
    (tmp_path / "ws/src/app.py").write_text("one = 1\ntwo = 2\n")
    return Path(init(tmp_path / "ws/memories").root)


def save(file: Path, text: str) -> None:
    """As an editor saves: it is there at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.aside")
    aside.write_text(text)
    aside.replace(file)


@contextmanager
def watched(root: Path, scope: Scope | None = None, poll_seconds: float | None = None) -> Iterator[Watch]:
    """A watch that is ready."""
    memory = Memory(str(root), scope)
    with memory.watch(poll_seconds=poll_seconds) as watch:
        assert watch.next(LIMIT) == Event(READY)
        yield watch
    memory.index.close()


def events(watch: Watch, count: int) -> list[tuple[str, ...]]:
    """So many events, sorted: kind, path, and what else they say but for the message."""
    found: list[tuple[str, ...]] = []
    for _ in range(count):
        event = watch.next(LIMIT)
        assert event, f"no more events than {found}"
        told = (event.kind, event.path, event.old, event.target, event.code)
        found.append(tuple(part for part in told if part))
    return sorted(found)


# ------------------------------------------------------------------------------------------------- memories


def test_what_happens_to_memories_is_told_with_their_paths(root: Path) -> None:
    save(root / "notes/a.md", "a")
    with watched(root) as watch:
        save(root / "notes/b.md", "b")
        assert events(watch, 1) == [("created", "notes/b.md")]
        save(root / "notes/a.md", "other")
        assert events(watch, 1) == [("changed", "notes/a.md")]
        (root / "notes/a.md").rename(root / "notes/c.md")
        assert events(watch, 1) == [("moved", "notes/c.md", "notes/a.md")]
        (root / "notes/b.md").unlink()
        assert events(watch, 1) == [("deleted", "notes/b.md")]
        assert watch.next(0) is None


def test_a_folder_that_moves_is_its_memories(root: Path) -> None:
    for name in "ab":
        save(root / f"notes/deep/{name}.md", f"text of {name}")
    with watched(root) as watch:
        (root / "notes/deep").rename(root / "archive")
        assert events(watch, 2) == [
            ("moved", "archive/a.md", "notes/deep/a.md"),
            ("moved", "archive/b.md", "notes/deep/b.md"),
        ]
        shutil.rmtree(root / "archive")
        assert events(watch, 2) == [("deleted", "archive/a.md"), ("deleted", "archive/b.md")]


def test_what_was_there_before_is_no_event_and_what_changes_nothing_neither(root: Path) -> None:
    save(root / "notes/a.md", "a")
    with watched(root) as watch:
        save(root / "notes/a.md", "a")
        os.utime(root / "notes/a.md")
        save(root / "notes/other.txt", "no memory")
        save(root / "notes/b.md", "b")
        assert events(watch, 1) == [("created", "notes/b.md")]


def test_changes_by_its_own_memory_are_events_too(root: Path) -> None:
    memory = Memory(str(root))
    with memory.watch() as watch:
        assert watch.next(LIMIT) == Event(READY)
        memory.write("notes/a.md", "[[b]]\n")
        memory.write("notes/b.md", "b\n")
        memory.sync()
        assert memory.references.backlinks("notes/b.md")
        memory.mv("notes/b.md", "notes/c.md")
        found = []
        while ("moved", "notes/c.md") not in found and ("created", "notes/c.md") not in found:
            event = watch.next(LIMIT)
            assert event
            found.append((event.kind, event.path))
        assert ("created", "notes/a.md") in found
    memory.index.close()


def test_an_event_is_a_json_object_without_what_is_empty() -> None:
    assert as_json(Event("moved", "b.md", old="a.md")) == {"kind": "moved", "path": "b.md", "old": "a.md"}
    assert as_json(Event(READY)) == {"kind": "ready"}
    assert as_json(Event("stale", "a.md", line=3, code="gone"))["line"] == 3


# --------------------------------------------------------------------------------------------------- links


def test_a_link_dangles_and_heals_as_its_target_goes_and_comes(root: Path) -> None:
    save(root / "notes/a.md", "# A\n\n[[b]] and [x](b.md)\n")
    save(root / "notes/b.md", "b")
    with watched(root) as watch:
        (root / "notes/b.md").unlink()
        assert events(watch, 3) == [
            ("dangling", "notes/a.md", "b", "dangling"),
            ("dangling", "notes/a.md", "b.md", "dangling"),
            ("deleted", "notes/b.md"),
        ]
        save(root / "notes/b.md", "back")
        assert events(watch, 3) == [
            ("created", "notes/b.md"),
            ("healed", "notes/a.md", "b", "note"),
            ("healed", "notes/a.md", "b.md", "note"),
        ]
        (root / "notes/b.md").rename(root / "notes/c.md")
        assert [told[0] for told in events(watch, 3)] == ["dangling", "dangling", "moved"]
        save(root / "notes/a.md", "# A\n\n[[c]]\n")
        assert [told[0] for told in events(watch, 3)] == ["changed", "healed", "healed"]


def test_an_event_of_a_reference_says_where_and_why(root: Path) -> None:
    with watched(root) as watch:
        save(root / "notes/a.md", "# A\n\n[[nowhere#H]]\n")
        assert watch.next(LIMIT) == Event("created", "notes/a.md")
        event = watch.next(LIMIT)
        assert event
        assert event == Event(
            "dangling",
            "notes/a.md",
            line=3,
            target="nowhere#H",
            code="dangling",
            message="there is no memory 'nowhere'",
        )
        save(root / "notes/a.md", "# A\n\nmore\n\n[[nowhere#H]]\n")
        assert events(watch, 1) == [("changed", "notes/a.md")]  # it is the same one, some lines further


def test_headings_and_blocks_dangle_when_they_are_renamed(root: Path) -> None:
    save(root / "notes/a.md", "[[b#One]] [[b#^fact]]\n")
    save(root / "notes/b.md", "# One\n\ntext ^fact\n")
    with watched(root) as watch:
        save(root / "notes/b.md", "# Two\n\ntext ^other\n")
        assert events(watch, 3) == [
            ("changed", "notes/b.md"),
            ("dangling", "notes/a.md", "notes/b.md#One", "dangling"),
            ("dangling", "notes/a.md", "notes/b.md#^fact", "dangling"),
        ]


def test_what_dangled_before_is_no_event_until_it_heals(root: Path) -> None:
    save(root / "notes/a.md", "[[later]] [[never]]\n")
    with watched(root) as watch:
        save(root / "notes/later.md", "---\naliases: [x]\n---\n")
        assert events(watch, 2) == [("created", "notes/later.md"), ("healed", "notes/a.md", "later", "note")]


def test_a_link_that_becomes_ambiguous_is_told(root: Path) -> None:
    save(root / "notes/a.md", "[[b]]\n")
    save(root / "one/b.md", "1")
    with watched(root) as watch:
        save(root / "two/b.md", "2")
        assert events(watch, 2) == [
            ("created", "two/b.md"),
            ("dangling", "notes/a.md", "one/b.md", "ambiguous"),
        ]
        (root / "two/b.md").unlink()
        assert [told[0] for told in events(watch, 2)] == ["deleted", "healed"]


def test_by_an_alias_or_an_id_a_link_heals_as_well(root: Path) -> None:
    save(root / "notes/a.md", "[[Some Name]] [[x-1]]\n")
    save(root / "notes/b.md", "b")
    with watched(root) as watch:
        save(root / "notes/b.md", "---\nid: x-1\naliases: [some name]\n---\n")
        assert [told[0] for told in events(watch, 3)] == ["changed", "healed", "healed"]
        save(root / "notes/b.md", "b")
        assert [told[0] for told in events(watch, 3)] == ["changed", "dangling", "dangling"]


# ------------------------------------------------------------------------------------------------ cited code


def test_code_that_changes_moves_goes_and_comes_back_is_told_of_who_cites_it(root: Path) -> None:
    code = root.parent / "src/app.py"
    save(root / "notes/a.md", "See `src/app.py#L2`.\n")
    save(root / "notes/b.md", "Nothing.\n")
    with watched(root) as watch:
        save(code, "one = 1\ntwo = 3\n")
        assert events(watch, 1) == [("stale", "notes/a.md", "src/app.py#L2", "changed")]
        save(code, "one = 1\ntwo = 2\n")
        assert events(watch, 1) == [("healed", "notes/a.md", "src/app.py#L2", "line_range")]
        save(code, "zero = 0\none = 1\ntwo = 2\n")
        event = watch.next(LIMIT)
        assert event
        assert (event.kind, event.code, event.line) == ("stale", "moved", 1)
        assert event.message == "moved to src/app.py#L3"
        save(root / "notes/a.md", "See `src/app.py#L3`.\n")
        assert [told[0] for told in events(watch, 2)] == ["changed", "healed"]
        code.unlink()
        assert events(watch, 1) == [("stale", "notes/a.md", "src/app.py#L3", "gone")]


def test_code_that_is_cited_only_now_is_watched_from_now_on(root: Path) -> None:
    with watched(root) as watch:
        save(root / "notes/a.md", "See [app](../../src/app.py#L1).\n")
        assert events(watch, 1) == [("created", "notes/a.md")]
        save(root.parent / "src/app.py", "changed\n")
        assert events(watch, 1) == [("stale", "notes/a.md", "src/app.py#L1", "changed")]


def test_code_that_was_stale_at_the_start_is_no_event_until_it_heals(root: Path) -> None:
    save(root / "notes/a.md", "See `src/app.py#L2`.\n")
    memory = Memory(str(root))
    memory.sync()
    save(root.parent / "src/app.py", "one = 1\ntwo = 3\n")
    memory.index.close()
    with watched(root) as watch:
        save(root / "notes/a.md", "See `src/app.py#L2`. More.\n")
        assert events(watch, 1) == [("changed", "notes/a.md")]
        save(root.parent / "src/app.py", "one = 1\ntwo = 2\n")
        assert events(watch, 1) == [("healed", "notes/a.md", "src/app.py#L2", "line_range")]


@pytest.mark.parametrize(
    "link", ["![](img/a.png)", "![[img/a.png]]", "![](/img/a.png)", "![](../../src/a.png)"]
)
def test_a_link_to_an_image_dangles_and_heals_as_that_goes_and_comes(root: Path, link: str) -> None:
    places = [root / "notes/img/a.png", root / "img/a.png", root.parent / "src/a.png"]
    place = places[0 if "(img" in link else 1 if "img/" in link else 2]
    save(root / "notes/a.md", link)
    with watched(root) as watch:
        for _ in range(2):
            save(place, "image")
            assert [told[:2] for told in events(watch, 1)] == [("healed", "notes/a.md")]
            place.unlink()
            place.parent.rename(place.parent.with_name("other"))
            assert [told[:2] for told in events(watch, 1)] == [("dangling", "notes/a.md")]
            shutil.rmtree(place.parent.with_name("other"))


# -------------------------------------------------------------------------------------------------- findings


def test_findings_are_raised_and_cleared(root: Path) -> None:
    with watched(root) as watch:
        save(root / "notes/a.md", "---\ntags: {a: 5}\n---\n")
        first, second = watch.next(LIMIT), watch.next(LIMIT)
        assert first
        assert second
        assert (first.kind, second.kind, second.path) == ("created", "raised", "notes/a.md")
        assert second.line == 2
        assert second.code
        assert second.message
        save(root / "notes/a.md", "---\ntags: {a: 5}\n---\nmore\n")
        assert events(watch, 1) == [("changed", "notes/a.md")]
        save(root / "notes/a.md", "---\ntags: [x]\n---\n")
        assert [told[0] for told in events(watch, 2)] == ["changed", "cleared"]


def test_findings_of_a_mounted_file_are_raised_and_cleared(root: Path) -> None:
    (root / ".mdmem/config.toml").write_text('[mounts]\n"AGENTS.md" = "../AGENTS.md"\n')
    with watched(root) as watch:
        save(root.parent / "AGENTS.md", "---\ntags: {a: 5}\n---\n")
        assert [told[:2] for told in events(watch, 2)] == [("created", "AGENTS.md"), ("raised", "AGENTS.md")]
        save(root.parent / "AGENTS.md", "---\ntags: [x]\n---\n")
        assert [told[:2] for told in events(watch, 2)] == [("changed", "AGENTS.md"), ("cleared", "AGENTS.md")]


def test_a_schema_that_changes_raises_and_clears_what_it_says(root: Path) -> None:
    save(root / "notes/a.md", "---\n$schema: owned\n---\n")
    with watched(root) as watch:
        save(root / ".mdmem/schemas/owned.json", '{"type": "object", "required": ["owner"]}')
        found = events(watch, 2)
        assert {told[:2] for told in found} == {("raised", "notes/a.md"), ("cleared", "notes/a.md")}
        save(root / ".mdmem/schemas/owned.json", '{"type": "object"}')
        assert [told[:2] for told in events(watch, 1)] == [("cleared", "notes/a.md")]


def test_a_memory_that_cannot_be_read_any_more_is_deleted_with_the_reason(root: Path) -> None:
    save(root / "notes/a.md", "a")
    with watched(root) as watch:
        aside = root / "notes/.a"
        aside.write_bytes(b"\xff")
        aside.replace(root / "notes/a.md")
        found = events(watch, 2)
        assert [told[:2] for told in found] == [("deleted", "notes/a.md"), ("raised", "notes/a.md")]
        save(root / "notes/a.md", "again")
        assert [told[0] for told in events(watch, 2)] == ["cleared", "created"]


# ------------------------------------------------------------------------------------------------------ walls


def test_nothing_of_another_namespace_is_seen(root: Path) -> None:
    for user in ("al", "albert"):
        save(root / f"users/{user}/notes/a.md", "[[b]] `src/app.py#L1`\n")
        save(root / f"users/{user}/notes/b.md", f"of {user}")
    with watched(root, Scope(user="al")) as watch:
        save(root / "users/albert/notes/b.md", "changed")
        save(root / "users/albert/notes/new.md", "[[nowhere]]")
        (root / "users/albert/notes/b.md").unlink()
        save(root / "notes/shared.md", "shared")
        save(root / "users/al/notes/c.md", "c")
        assert events(watch, 1) == [("created", "notes/c.md")]
        (root / "users/al/notes/c.md").rename(root / "notes/c.md")
        assert events(watch, 1) == [("deleted", "notes/c.md")]
        (root / "notes/shared.md").rename(root / "users/al/notes/shared.md")
        assert events(watch, 1) == [("created", "notes/shared.md")]
        (root / "users").rename(root / "people")
        found = events(watch, 3)
        assert {told[0] for told in found} == {"deleted"}


# ----------------------------------------------------------------------------------------------- one by one


def test_what_happens_while_much_is_to_be_judged_does_not_wait_for_that(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints_module, "QUIET_SECONDS", 0.0)
    for number in range(300):
        save(root / f"notes/{number}.md", "[[hub]]\n")
    save(root / "hub.md", "hub")
    with watched(root) as watch:
        (root / "hub.md").unlink()
        assert watch.next(LIMIT) == Event("deleted", "hub.md")
        save(root / "notes/new.md", "new")
        assert watch.next(LIMIT) == Event("created", "notes/new.md")
        assert {told[0] for told in events(watch, 300)} == {"dangling"}


def test_what_could_not_be_judged_is_judged_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(root / "notes/a.md", "[[b]]\n")
    save(root / "notes/b.md", "b")

    def refused(_: object, *__: object) -> list[str]:
        raise StorageFailed(path="x", action="read the index", reason="Input/output error")

    with watched(root) as watch:
        (root / "notes/b.md").unlink()
        assert watch.next(LIMIT) == Event("deleted", "notes/b.md")
        with monkeypatch.context() as patched:
            patched.setattr(View, "sources", refused)
            for _ in range(2):
                with pytest.raises(StorageFailed):
                    watch.next(LIMIT)
        assert events(watch, 1) == [("dangling", "notes/a.md", "b", "dangling")]


# ----------------------------------------------------------------------------------------- notices and ending


def test_where_there_are_no_events_it_polls_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "remote_kind", lambda _: "nfs")
    monkeypatch.setattr(watch_module, "POLL_SECONDS", 0.05)
    memory = Memory(str(root))
    with memory.watch() as watch:
        first, second = watch.next(LIMIT), watch.next(LIMIT)
        assert first
        assert (first.kind, first.code) == ("notice", "polling")
        assert "nfs" in first.message
        assert second == Event(READY)
        save(root / "notes/a.md", "a")
        assert events(watch, 1) == [("created", "notes/a.md")]
    memory.index.close()


def test_a_vault_that_goes_and_comes_back(root: Path) -> None:
    save(root / "notes/a.md", "a")
    with watched(root) as watch:
        root.rename(root.with_name("aside"))
        assert events(watch, 2) == [("deleted", "notes/a.md"), ("notice", "vault-gone")]
        assert not root.exists()
        root.with_name("aside").rename(root)
        assert events(watch, 2) == [("created", "notes/a.md"), ("notice", "vault-back")]


def test_without_an_event_it_ends_in_time(root: Path) -> None:
    with watched(root) as watch:
        assert watch.next(0) is None
        assert watch.next(0.01) is None


def test_time_is_over_even_when_there_is_a_lot_that_is_no_event(root: Path) -> None:
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            save(root / "users/bob/x.md", str(time.monotonic_ns()))

    with watched(root, Scope(user="al")) as watch:
        thread = threading.Thread(target=busy)
        thread.start()
        try:
            assert watch.next(0.5) is None
        finally:
            stop.set()
            thread.join()


def test_another_thread_can_close_it(root: Path) -> None:
    found: list[Event] = []
    memory = Memory(str(root))
    watch = memory.watch()
    ready = threading.Event()

    def follow() -> None:
        for event in watch:
            found.append(event)
            ready.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert ready.wait(LIMIT)
    watch.close()
    thread.join(LIMIT)
    assert not thread.is_alive()
    assert found == [Event(READY)]
    watch.close()
    assert watch.next(0) is None
    with pytest.raises(StopIteration):
        next(watch)
    save(root / "notes/a.md", "a")
    assert memory.sync().created == ("notes/a.md",)  # nobody vouches any more
    memory.index.close()


def test_a_callback_is_called_with_each_event_until_it_is_closed(root: Path) -> None:
    found: queue.Queue[Event] = queue.Queue()
    memory = Memory(str(root))
    with memory.watch(found.put):
        assert found.get(timeout=LIMIT) == Event(READY)
        save(root / "notes/a.md", "a")
        assert found.get(timeout=LIMIT) == Event("created", "notes/a.md")
        (root / "notes/a.md").rename(root / "notes/b.md")
        assert found.get(timeout=LIMIT) == Event("moved", "notes/b.md", old="notes/a.md")
    save(root / "notes/c.md", "c")
    assert memory.sync().created == ("notes/c.md",)  # nobody vouches any more
    assert found.empty()
    memory.index.close()


def test_a_callback_may_close_its_own_watch(root: Path) -> None:
    found: list[Event] = []
    closed = threading.Event()
    memory = Memory(str(root))

    def take_one(event: Event) -> None:
        found.append(event)
        watch.close()
        closed.set()

    watch = memory.watch()
    watch.call(take_one)
    assert closed.wait(LIMIT)
    watch.close()
    save(root / "notes/a.md", "a")
    assert found == [Event(READY)]
    memory.index.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_exception_of_a_callback_closes_the_watch(root: Path) -> None:
    memory = Memory(str(root))
    watch = memory.watch()

    def fail(event: Event) -> None:
        raise ValueError(event.kind)

    watch.call(fail)
    watch.close()
    assert watch.next(0) is None
    memory.index.close()


def test_a_callback_is_told_what_cannot_be_looked_at_and_goes_on(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdmem.index.watch.events._AGAIN_AFTER", 0.0)
    found: queue.Queue[Event] = queue.Queue()
    memory = Memory(str(root))

    def fail(*_: object, **__: object) -> None:
        raise StorageFailed(path="x", action="write the index", reason="No space left on device")

    with memory.watch(found.put):
        assert found.get(timeout=LIMIT) == Event(READY)
        with monkeypatch.context() as patched:
            patched.setattr(memory.index, "sync", fail)
            save(root / "notes/a.md", "a")
            told = found.get(timeout=LIMIT)
            assert (told.kind, told.code) == ("notice", "storage-failed")
        while told.kind == "notice":
            told = found.get(timeout=LIMIT)
        assert told == Event("created", "notes/a.md")
    memory.index.close()


def test_while_it_watches_questions_are_answered_from_what_is_there_now(root: Path) -> None:
    memory = Memory(str(root))
    with memory.watch() as watch:
        assert watch.next(LIMIT) == Event(READY)
        for number in range(20):
            save(root / f"notes/{number}.md", f"number {number}")
            assert [listed.path for listed in memory.ls(where=[f"path=notes/{number}.md"])] == [
                f"notes/{number}.md"
            ]
            if number % 5 == 0:
                watch.next(LIMIT)
    memory.index.close()


def test_an_index_that_is_made_anew_while_it_watches_is_whole(root: Path) -> None:
    save(root / "notes/a.md", "a")
    memory = Memory(str(root))
    with memory.watch() as watch:
        assert watch.next(LIMIT) == Event(READY)
        assert watch.next(0) is None  # from here on it vouches
        memory.sync(rebuild=True)
        assert [listed.path for listed in memory.ls(where=["path=notes/a.md"])] == ["notes/a.md"]
        other = Memory(str(root))
        other.sync(rebuild=True)
        other.index.close()
        assert [listed.path for listed in memory.ls(where=["path=notes/a.md"])] == ["notes/a.md"]
        save(root / "notes/b.md", "b")
        assert events(watch, 1) == [("created", "notes/b.md")]
    memory.index.close()


def test_what_could_not_be_looked_at_is_looked_at_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(root / "notes/a.md", "[[b]]\n")
    save(root / "notes/b.md", "b")

    def full(_: object, **__: object) -> int:
        raise StorageFailed(path="x", action="write the index", reason="No space left on device")

    with watched(root) as watch:
        (root / "notes/b.md").unlink()
        save(root / "notes/c.md", "---\ntags: {a: 5}\n---\n")
        with monkeypatch.context() as patched:
            patched.setattr(text_module.TextIndex, "commit", full)
            for _ in range(2):
                with pytest.raises(StorageFailed):
                    watch.next(LIMIT)
        assert [told[:2] for told in events(watch, 4)] == [
            ("created", "notes/c.md"),
            ("dangling", "notes/a.md"),
            ("deleted", "notes/b.md"),
            ("raised", "notes/c.md"),
        ]
