"""What any store of a vault must do; a store passes when a class of tests made of `StoreConformance` does."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from mdmem.document.document import digest
from mdmem.errors import MdmemError, MemoryNotFound, PathRefused, StorageFailed, TooLarge
from mdmem.facade.kinds import Kinds
from mdmem.index.view import View
from mdmem.vault.files import Content, Raced
from mdmem.vault.log import lines, lines_back
from mdmem.vault.paths import Layer, Namespace, Scope
from mdmem.vault.store import Step, Store, changed_by, new_entry
from mdmem.vault.transaction import Applied
from mdmem.vault.vault import Vault

MOST = 1 << 20
Put = Callable[[str, bytes], None]
Files = dict[str, bytes]


def data_of(content: Content | None) -> bytes | None:
    return content.data if content else None


def held(store: Store, folder: str = "") -> Files:
    paths = [found.path for found in store.walk(Namespace(folder))]
    return {path: data_of(store.read(path, MOST)) or b"" for path in paths}


def commit(store: Store, *steps: Step) -> str:
    entry = new_entry("ann", "change", changed_by(steps))
    with store.writing():
        store.commit(entry, steps)
    return entry.id


def write(store: Store, path: str, data: bytes | None) -> str:
    return commit(store, Step(path, store.read(path, MOST, settled=True), data))


def count(store: Store, times: int) -> None:
    """Add to the number in a memory, and again where somebody else was faster."""
    while times:
        base = store.read("a.md", MOST, settled=True)
        with contextlib.suppress(Raced):
            commit(store, Step("a.md", base, b"%d" % (int(base.data if base else 0) + 1)))
            times -= 1


def append(store: Store, path: str, lines: Sequence[bytes]) -> None:
    with store.appending(path) as (log,):
        log.append(lines)


def add_lines(store: Store, name: bytes) -> None:
    """Append pairs of lines, each a few pages long."""
    for number in range(10):
        line = b"%s %d %s" % (name, number, name * 5000)
        append(store, "a.jsonl", [line, line])


def check_lines(store: Store, names: Sequence[bytes]) -> None:
    """Every pair that `add_lines` appended stands whole, and those of each writer in order."""
    lines = (data_of(store.read("a.jsonl", MOST)) or b"").splitlines()
    assert lines[::2] == lines[1::2]
    for name in names:
        own = [line for line in lines[::2] if line.startswith(name)]
        assert own == [b"%s %d %s" % (name, number, name * 5000) for number in range(10)]
    assert len(lines) == 20 * len(names)


def together(works: Sequence[Callable[[], None]]) -> None:
    """Let several threads work at once; what one of them raises is raised."""
    failed: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def no_index() -> View:
    """Fail as an index that cannot be made: what is changed here does without one."""
    raise StorageFailed(path=".mdmem/local/index", action="make it", reason="there is none")


class StoreConformance:
    """A subclass has the fixtures `store`, an empty one, and `put`, which writes to it as no store would."""

    # -- reading ------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("path", ["a.md", "n/a.md", ".mdmem/schemas/a.json"])
    def test_what_is_not_there_is_none(self, store: Store, path: str) -> None:
        assert store.read(path, MOST) is None
        assert store.read(path, MOST, exact=True, settled=True) is None
        assert not store.stands(path)
        assert store.stands("")

    def test_what_is_larger_than_the_limit_is_refused(self, store: Store) -> None:
        write(store, "a.md", b"12345")
        assert data_of(store.read("a.md", 5)) == b"12345"
        with pytest.raises(TooLarge) as refused:
            store.read("a.md", 4)
        assert (refused.value.path, refused.value.size, refused.value.limit) == ("a.md", 5, 4)

    def test_the_vaults_own_files_are_read_and_walked_by_name(self, store: Store, put: Put) -> None:
        put(".mdmem/config.toml", b"[limits]\nmax_bytes = 77\n")
        put(".mdmem/schemas/own.json", b"{}")
        put(".mdmem/schemas/more/own.json", b"{}")
        put("a.json", b"{}")
        assert store.config.limits.max_bytes == 77
        found = [each.path for each in store.walk(Namespace(".mdmem/schemas"), (".json",))]
        assert found == [".mdmem/schemas/more/own.json", ".mdmem/schemas/own.json"]
        assert data_of(store.read(".mdmem/schemas/own.json", MOST)) == b"{}"
        assert set(held(store)) == {"a.json"}

    # -- compare and commit -------------------------------------------------------------------------------

    def test_files_are_made_replaced_and_deleted_together(self, store: Store) -> None:
        for path in ("b.md", "n/c.md"):
            write(store, path, b"old " + path.encode())
        commit(
            store,
            Step("a.md", None, b"new\r\n"),
            Step("b.md", store.read("b.md", MOST), b""),
            Step("n/c.md", store.read("n/c.md", MOST), None),
        )
        assert held(store) == {"a.md": b"new\r\n", "b.md": b""}
        assert not store.stands("n"), "an empty folder is left behind"

    @pytest.mark.parametrize("base", [b"another", None])
    @pytest.mark.parametrize("now", [b"here", None])
    def test_a_base_that_differs_refuses_all_of_a_change(
        self, store: Store, base: bytes | None, now: bytes | None
    ) -> None:
        for path, data in (("a.md", b"a"), ("z.md", b"another"), ("b.md", now)):
            if data:
                write(store, path, data)
        stale = store.read("z.md", MOST) if base else None
        before, told = held(store), [entry.id for entry in store.entries()]
        steps = [Step("a.md", store.read("a.md", MOST), b"A"), Step("b.md", stale, b"B")]
        steps.append(Step("c.md", None, b"C"))
        if base == now:
            commit(store, *steps)
            assert held(store) == {**before, "a.md": b"A", "b.md": b"B", "c.md": b"C"}
            return
        for order in (steps, steps[::-1]):
            with pytest.raises(Raced):
                commit(store, *order)
            assert held(store) == before
            assert [entry.id for entry in store.entries()] == told

    def test_a_version_token_tells_two_states_of_a_file_apart(self, store: Store) -> None:
        states = set()
        for data in (b"one", b"two", b"three"):
            write(store, "a.md", data)
            (found,) = store.walk(Namespace())
            states.add(found.seen)
            assert found.size == len(data)
        assert len(states) == 3

    def test_a_file_stands_neither_below_a_file_nor_in_the_place_of_a_folder(self, store: Store) -> None:
        write(store, "n/a.md", b"one")
        for path in ("n/a.md/b.md", "n"):
            with pytest.raises(PathRefused):
                commit(store, Step(path, None, b"two"))
        assert held(store) == {"n/a.md": b"one"}
        assert len(list(store.entries())) == 1

    def test_changes_are_told_in_the_order_in_which_they_were_made(self, store: Store) -> None:
        """Whatever their clocks say."""
        ids = []
        for number, time in enumerate(("2026-05-01", "2020-01-01", "2026-05-01")):
            steps = [Step("a.md", store.read("a.md", MOST), b"%d" % number)]
            entry = new_entry("ann", "change", changed_by(steps))._replace(time=f"{time}T00:00:00.000Z")
            with store.writing():
                store.commit(entry, steps)
            ids.append(entry.id)
        assert [entry.id for entry in store.entries()] == ids[::-1]

    # -- kept versions ------------------------------------------------------------------------------------

    def test_every_version_that_was_replaced_is_kept(self, store: Store) -> None:
        ids = [write(store, "n/a.md", data) for data in (b"one", b"two", b"one", None)]
        assert [data_of(store.kept(digest(data))) for data in (b"one", b"two")] == [b"one", b"two"]
        assert store.kept(digest(b"never")) is None
        assert store.kept("../a.md") is None
        entries = list(store.entries())
        assert [entry.id for entry in entries] == ids[::-1], "newest first"
        assert [(f.path, f.before, f.after) for f in entries[0].files] == [("n/a.md", digest(b"one"), None)]
        assert {entry.actor for entry in entries} == {"ann"}

    def test_the_history_of_a_folder_is_that_of_what_is_in_it(self, store: Store) -> None:
        ids = [write(store, path, b"one") for path in ("n.md", "n-.md", "n/a.md", "n/b/c.md", "n0.md")]
        ids.append(commit(store, Step("n/a.md", store.read("n/a.md", MOST), b"two"), Step("o.md", None, b"")))
        assert [entry.id for entry in store.entries("n/b")] == [ids[3]]
        assert [entry.id for entry in store.entries("n/a.md")] == [ids[5], ids[2]]
        assert [entry.id for entry in store.entries("n")] == [ids[5], ids[3], ids[2]]
        assert [entry.id for entry in store.entries("o")] == []

    # -- walking ------------------------------------------------------------------------------------------

    def test_a_namespace_is_walked_by_the_parts_of_its_paths(self, store: Store, put: Put) -> None:
        paths = ["a.md", "a/z.md", "a-b.md", "users/al/n.md", "users/alice/n.json", "users/alice/x.txt"]
        for path in (*paths, ".hidden.md", ".git/x.md"):
            put(path, b"{}")
        whole = ["a/z.md", "a-b.md", "a.md", "users/al/n.md", "users/alice/n.json"]
        assert [found.path for found in store.walk(Namespace())] == whole
        assert set(held(store, "users/al")) == {"users/al/n.md"}
        assert list(store.walk(Namespace("nothing"))) == []
        assert [found.path for found in store.walk(Namespace("", ("users",)))] == whole[:3]
        assert [found.path for found in store.walk(Namespace("users"), (".txt",))] == ["users/alice/x.txt"]
        assert sorted(name for name in store.names("users") if name[0] != ".") == ["al", "alice"]
        assert store.names("nothing") == []
        assert store.stands("users/alice")
        assert not store.stands("users/ali")

    # -- appending lines ----------------------------------------------------------------------------------

    def test_lines_are_appended_in_order(self, store: Store) -> None:
        for added in ([b"one", b""], [], [b'{"a": "\xc3\xa9\r"}']):
            append(store, "logs/a.jsonl", added)
        assert data_of(store.read("logs/a.jsonl", MOST)) == b'one\n\n{"a": "\xc3\xa9\r"}\n'

    @pytest.mark.parametrize("torn", [b'{"a":', b'{"a":1}'])
    def test_a_line_that_a_crash_tore_never_counts(self, store: Store, put: Put, torn: bytes) -> None:
        """Not even one that lacks no more than its end, which it gets from the next one."""
        put("a.jsonl", b"one\n" + torn)
        append(store, "a.jsonl", [b"two"])
        assert data_of(store.read("a.jsonl", MOST)) == b"one\n" + torn + b"~\ntwo\n"

    def test_a_line_with_a_line_end_in_it_is_refused(self, store: Store) -> None:
        with pytest.raises(ValueError, match="line end"):
            append(store, "a.jsonl", [b"one", b"t\nwo"])
        assert not data_of(store.read("a.jsonl", MOST))

    def test_a_log_is_read_as_it_was_when_it_was_opened(self, store: Store) -> None:
        with store.log("a.jsonl") as log:
            assert (log.size, log.read(0, 10)) == (0, b"")
        append(store, "a.jsonl", [b"one", b"two"])
        with store.log("a.jsonl") as log:
            append(store, "a.jsonl", [b"three"])
            assert [line.data for line in lines(log)] == [b"one", b"two"]
            assert [line.data for line in lines_back(log)] == [b"two", b"one"]

    def test_who_appends_sees_what_stands_and_what_it_added(self, store: Store) -> None:
        append(store, "a.jsonl", [b"one"])
        with store.appending("a.jsonl", "b.jsonl") as (log, other):
            log.append([b"two"])
            other.append([line.data or b"" for line in lines(log)])
        assert data_of(store.read("b.jsonl", MOST)) == b"one\ntwo\n"

    def test_a_log_is_put_aside_whole_and_brought_back(self, store: Store) -> None:
        append(store, "n/a.jsonl", [b"one", b"two"])
        with store.appending("n/a.jsonl") as (log,):
            log.put_aside("n/.old/1", [b"two"])
        assert data_of(store.read("n/.old/1", MOST)) == b"one\ntwo\n"
        assert data_of(store.read("n/a.jsonl", MOST)) == b"two\n"
        with store.appending("n/a.jsonl") as (log,):
            log.put_aside("n/.old/2")
        assert not store.stands("n/a.jsonl")
        with store.appending("n/a.jsonl") as (log,):
            log.bring_back("n/.old/1")
            log.purge("n/.old/2")
        assert data_of(store.read("n/a.jsonl", MOST)) == b"one\ntwo\n"
        assert store.names("n/.old") == []

    def test_lines_of_many_writers_stand_whole_and_together(self, store: Store) -> None:
        names = (b"a", b"b", b"c", b"d")
        together([partial(add_lines, store, name) for name in names])
        check_lines(store, names)

    # -- many writers -------------------------------------------------------------------------------------

    def test_no_change_of_many_writers_is_lost(self, store: Store) -> None:
        together([lambda: count(store, 10)] * 4)
        assert data_of(store.read("a.md", MOST)) == b"40"
        assert len(list(store.entries())) == 40

    # -- the vault over it --------------------------------------------------------------------------------

    @pytest.fixture
    def kinds(self, store: Store) -> Kinds[Applied]:
        """Every kind of memory over the store; nothing here asks an index."""
        vault = Vault(store)

        return Kinds(vault, Scope(), vault.transact, no_index)

    def test_memories_are_written_moved_deleted_and_brought_back(self, kinds: Kinds[Applied]) -> None:
        kinds.write("n/a.md", "# One\n\nfirst\n")
        kinds.append("n/a.md", "second")
        kinds.replace("n/a.md", "first", "1st")
        assert kinds._vault.read("n/a.md").text == "# One\n\n1st\nsecond\n"
        kinds.undo()
        assert kinds._vault.read("n/a.md").text == "# One\n\nfirst\nsecond\n"
        kinds.rm("n/a.md")
        with pytest.raises(MemoryNotFound):
            kinds._vault.read("n/a.md")
        kinds.restore("n/a.md")
        assert [found.path for found in kinds._vault.walk()] == ["n/a.md"]
        kinds.notes.append("db", "SQLite: one file.", title="Decision")
        kinds.working.update("State: green.", thread="t1")
        assert kinds._vault.read("working/threads/t1.md").text == "State: green.\n"
        assert len(list(kinds._vault.history())) == 8

    def test_two_who_change_one_memory_are_merged(self, store: Store, kinds: Kinds[Applied]) -> None:
        kinds.write("a.md", "one\n")
        plans = [Kinds(Vault(store), Scope(), lambda build: build(), no_index) for _ in "ab"]
        built = [each.append("a.md", text) for each, text in zip(plans, ("ours", "theirs"), strict=True)]
        assert [kinds._vault.apply(plan).merged for plan in built] == [(), ("a.md",)]
        assert kinds._vault.read("a.md").text == "one\nours\ntheirs\n"

    def test_a_namespace_is_a_wall(self, store: Store) -> None:
        alice = Vault(store, "users/alice", reads=(Layer("", Namespace("users/alice")), Layer("shared")))
        bob = Vault(store, "users/bob")
        for vault in (alice, bob, alice.within("")):
            kinds = Kinds(vault, Scope(), vault.transact, no_index)
            kinds.write("own.md", vault.namespace or "everyone's")
        assert [found.path for found in alice.walk()] == ["own.md"]
        assert [f.path for entry in bob.history() for f in entry.files] == ["own.md"]
        assert alice.read("shared:own.md").text == "everyone's"
        with pytest.raises(PathRefused):
            alice.read("../bob/own.md")

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("NOTES/b.md", "only in case from 'notes'"),
            ("notes/A.md", "only in case from 'notes/a.md'"),
            ("notes/É.md", "only in case from 'notes/é.md'"),
            ("con.md", "a device on Windows"),
            ("../a.md", "no part . or .."),
            (".hidden.md", "hidden"),
            ("a.txt", "ends in .md or .json"),
        ],
    )
    def test_names_that_not_every_system_can_hold_are_refused(
        self, kinds: Kinds[Applied], path: str, reason: str
    ) -> None:
        for name in ("notes/a.md", "notes/é.md"):
            kinds.write(name, "one\n")
        with pytest.raises(MdmemError) as refused:
            kinds.write(path, "two\n")
        assert reason in str(refused.value)

    def test_a_name_is_the_same_in_every_unicode_spelling(self, kinds: Kinds[Applied]) -> None:
        kinds.write("ne\u0301/e\u0301.md", "one\n")
        assert kinds._vault.read("n\xe9/\xe9.md").text == "one\n"
        kinds.append("n\xe9/\xe9.md", "two")
        assert [found.path for found in kinds._vault.walk()] == ["n\xe9/\xe9.md"]
        assert kinds._vault.read("ne\u0301/e\u0301.md").text == "one\ntwo\n"
