"""Sharing: what a user may do with a memory of another one, and who says so."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.errors import (
    Conflict,
    Invalid,
    LimitReached,
    MdmemError,
    MemoryNotFound,
    NamedNotFound,
    PathRefused,
    Usage,
)
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mdmem.facade.memory import Memory

NOTE = "---\ntitle: Database\n---\n\n# Database\n\nSQLite is one file.\n"
SECRET = "---\nid: secret\n---\nThe zebra is in the cellar. [[db]]\n"
SHARING = "[sharing]\nenabled = true\n"
LATER = "2999-01-31"


class World:
    """A vault in which alice has a note and a secret, and whoever opens it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        mdmem.init(root)
        (root / ".mdmem/config.toml").write_text(SHARING)
        self.alice, self.bob = self.of("alice"), self.of("bob")
        self.alice.write("notes/db.md", NOTE)
        self.alice.write("notes/secret.md", SECRET)

    def of(self, user: str, **scope: Any) -> Memory:
        return mdmem.open(self.root, mdmem.Scope(user=user, **scope))

    def text(self, path: str = "notes/db.md") -> str:
        return (self.root / "users/alice" / path).read_text()

    def put(self, text: str, path: str = "notes/db.md") -> None:
        (self.root / "users/alice" / path).write_text(text)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "memories")


def told(ask: Callable[[], Any]) -> str:
    """What is answered, or why not."""
    try:
        return repr(ask())
    except MdmemError as error:
        return f"{error.code}: {error} {error.hint}"


# -- the cases of the seed system ---------------------------------------------------------------------------


def test_add_memory_is_private_until_it_is_shared(world: World) -> None:
    assert world.bob.shared.list() == []
    assert world.bob.ls("from-alice:") == []
    with pytest.raises(MemoryNotFound):
        world.bob.show("from-alice:notes/db.md")
    assert world.alice.access("notes/db.md").users == {}


def test_sharing_that_is_switched_reaches_who_is_open(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "read")
    config = world.root / ".mdmem/config.toml"
    asked: list[Callable[[], Any]] = [
        lambda: world.bob.show("from-alice:notes/db.md").text,
        lambda: [hit.text for hit in world.bob.grep("SQLite", within="from-alice:")],
        lambda: world.bob.ls("from-alice:"),
        world.bob.shared.list,
        lambda: world.bob.shared("alice").show("notes/db.md").text,
    ]

    def is_answered(ask: Callable[[], Any]) -> bool:
        try:
            return bool(ask())
        except MdmemError:
            return False

    for text, other in ((SHARING, ""), ("", SHARING)):
        for ask in asked:
            config.write_text(other)
            assert is_answered(ask) == bool(other)
            config.write_text(text)
            assert is_answered(ask) == bool(text)


def test_share_memory_lets_a_user_read_it_and_no_other(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "read")
    assert world.text() == NOTE.replace("Database\n---", "Database\naccess:\n  read:\n    - bob\n---")
    shown = world.bob.show("from-alice:notes/db.md")
    assert (shown.path, shown.text) == ("from-alice:notes/db.md", world.text())
    assert [each.path for each in world.bob.ls("from-alice:")] == ["from-alice:notes/db.md"]
    assert [hit.path for hit in world.bob.grep("e", within="from-alice:")] == ["from-alice:notes/db.md"] * 5
    found = world.bob.search("sqlite zebra", within="from-alice:")
    assert [(hit.path, hit.line) for hit in found.hits] == [("from-alice:notes/db.md", 10)]
    with pytest.raises(MemoryNotFound):
        world.of("carol").show("from-alice:notes/db.md")


def test_only_owner_and_whom_full_is_given_share_delete_and_move(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "write")
    bob = world.bob.shared("alice")
    changes: list[Callable[[], Any]] = [
        lambda: bob.share("notes/db.md", "carol", "read"),
        lambda: bob.unshare("notes/db.md"),
        lambda: bob.rm("notes/db.md"),
        lambda: bob.mv("notes/db.md", "notes/taken.md"),
    ]
    for change in changes:
        with pytest.raises(PathRefused, match="this takes full"):
            change()
    world.alice.share("notes/db.md", "bob", "full")
    bob.share("notes/db.md", "carol", "read")
    assert world.of("carol").show("from-alice:notes/db.md").text
    bob.mv("notes/db.md", "projects/demo/notes/db.md")
    assert world.of("carol").show("from-alice:projects/demo/notes/db.md").text
    bob.rm("projects/demo/notes/db.md")
    assert [each.path for each in world.alice.ls()] == ["notes/secret.md"]
    assert {entry.actor for entry in world.alice.history()[:3]} == {"bob"}
    world.alice.restore("projects/demo/notes/db.md")


def test_revoke_access_ends_it_at_once(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "read")
    world.alice.share("notes/db.md", "carol", "write")
    world.alice.unshare("notes/db.md", "bob")
    with pytest.raises(MemoryNotFound):
        world.bob.show("from-alice:notes/db.md")
    assert world.alice.access("notes/db.md").users == {"carol": "write"}
    with pytest.raises(NamedNotFound, match="no user who may use"):
        world.alice.unshare("notes/db.md", "bob")
    world.alice.unshare("notes/db.md")
    assert world.text() == NOTE


def test_update_memory_takes_write_and_leaves_what_is_the_owners(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "read")
    bob = world.bob.shared("alice")
    with pytest.raises(PathRefused, match="it is shared to read, and this takes write"):
        bob.append("notes/db.md", "more")
    world.alice.share("notes/db.md", "bob", "write")
    bob.append("notes/db.md", "From bob.")
    bob.set("notes/db.md", {"tags": ["db"]})
    assert world.text().endswith("From bob.\n")
    assert "tags:\n  - db\n" in world.text()
    before = world.text()
    for field in ("access", "id", "until", "expires", "valid_to", "superseded_by", "tier"):
        with pytest.raises((PathRefused, Invalid)):
            bob.set("notes/db.md", {field: LATER})
    assert world.text() == before


def test_list_by_owner_and_level(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "write", until=LATER)
    carol = world.of("carol")
    carol.write("notes/a.md", "a")
    carol.share("notes/a.md", "everyone", "read")
    grants = world.bob.shared.list()
    assert [tuple(each) for each in grants] == [
        ("alice", "write", "from-alice:notes/db.md", LATER),
        ("carol", "read", "from-carol:notes/a.md", ""),
    ]
    assert world.bob.shared.list("carol") == grants[1:]
    assert carol.shared.list() == []


def test_stats_and_every_other_answer_contain_nothing_that_is_shared(world: World) -> None:
    questions: list[Callable[[Memory], Any]] = [
        lambda m: m.stats(),
        lambda m: [each.path for each in m.ls()],
        lambda m: m.search("sqlite database"),
        lambda m: [hit.path for hit in m.grep("SQLite")],
        lambda m: m.context("sqlite database", estimated=True).text,
        lambda m: m.references.backlinks("from-alice:notes/db.md"),
        lambda m: m.why("from-alice:notes/db.md"),
        lambda m: m.check(["from-alice:notes/db.md"]),
        lambda m: m.history("from-alice:notes/db.md"),
        lambda m: m.diff("from-alice:notes/db.md"),
        lambda m: m.show("from-alice:notes/db.md", as_of="2999-01-01"),
        lambda m: m.references.tags(),
        lambda m: m.history(),
        lambda m: m.doctor().findings,
    ]
    world.bob.write("notes/own.md", "own")
    before = [told(lambda ask=ask: ask(world.bob)) for ask in questions]  # type: ignore[misc]
    world.alice.share("notes/db.md", "bob", "full")
    assert [told(lambda ask=ask: ask(world.bob)) for ask in questions] == before  # type: ignore[misc]


def test_cleanup_expired_is_not_needed_and_what_is_over_never_begins_again(world: World) -> None:
    world.put(NOTE.replace("Database\n---", "Database\naccess:\n  full: [bob]\n  until: 2020-01-31\n---"))
    with pytest.raises(MemoryNotFound):
        world.bob.show("from-alice:notes/db.md")
    assert world.bob.shared.list() == []
    world.alice.share("notes/db.md", "carol", "read")
    assert world.alice.access("notes/db.md").users == {"carol": "read"}
    assert world.alice.access("notes/db.md").until == ""


def test_global_access_is_for_every_user_and_off_where_sharing_is(world: World) -> None:
    world.alice.share("notes/db.md", "everyone", "read")
    for user in ("bob", "carol"):
        assert world.of(user).show("from-alice:notes/db.md").text
    with pytest.raises(MemoryNotFound):
        mdmem.open(world.root, mdmem.Scope(shared=True)).show("from-alice:notes/db.md")
    (world.root / ".mdmem/config.toml").write_text("")
    with pytest.raises(MemoryNotFound):
        world.of("bob").show("from-alice:notes/db.md")
    with pytest.raises(Usage, match="sharing is off"):
        world.of("bob").shared("alice")
    with pytest.raises(Usage, match="sharing is off"):
        world.of("alice").share("notes/db.md", "bob", "read")
    world.of("alice").unshare("notes/db.md")


def test_max_shared_sessions_is_a_hundred_users_of_whom_each_can_get_another_level(world: World) -> None:
    users = ", ".join(f"u{number}" for number in range(100))
    world.put(NOTE.replace("Database\n---", f"Database\naccess:\n  read: [{users}]\n---"))
    with pytest.raises(LimitReached, match="the limit is 100"):
        world.alice.share("notes/db.md", "bob", "read")
    world.alice.share("notes/db.md", "u5", "write")
    assert world.alice.access("notes/db.md").users["u5"] == "write"
    assert len(world.alice.access("notes/db.md").users) == 100
    world.put(NOTE.replace("Database\n---", f"Database\naccess:\n  read: [{users}, bob]\n---"))
    assert world.bob.shared.list() == []


# -- what grants nothing ------------------------------------------------------------------------------------


@cases(
    "access",
    [
        "private",
        "bob",
        "[bob]",
        "{read: bob}",
        "{read: [bob], until: soon}",
        "{read: [bob], until: 2020-01-01}",
        "{read: [bob], until: [2999-01-01]}",
        "{read: [bob], write: }",
        "{read: [bob, 7]}",
        "{read: [bob], comment: mine}",
        "{Read: [bob]}",
        "{read: [Bob, bobby, 'bob ', all]}",
        "{read: [bob]}\naccess: {read: [carol]}",
        "{read: [bob]}\ntags: [a",
        "{read: [bob]",
    ],
)
def test_what_has_another_form_grants_nothing_and_is_no_error(tmp_path: Path, access: str) -> None:
    world = World(tmp_path / "memories")
    world.put(f"---\naccess: {access}\n---\ntext\n")
    assert world.bob.ls("from-alice:") == []
    assert world.bob.shared.list() == []
    with pytest.raises(MemoryNotFound):
        world.bob.show("from-alice:notes/db.md")
    assert world.bob.search("text", within="from-alice:").hits == ()


def test_an_owner_is_told_that_frontmatter_cannot_be_read(world: World) -> None:
    world.put("---\naccess: {read: [bob]}\ntags: [a\n---\ntext\n")
    assert "did not find" in world.alice.access("notes/db.md").problem
    world.put("---\naccess: private\n---\ntext\n")
    assert world.alice.access("notes/db.md").problem.startswith("its field `access` is not an object")
    with pytest.raises(Usage, match="grants nothing"):
        world.alice.share("notes/db.md", "bob", "read")
    world.alice.unshare("notes/db.md")
    world.alice.share("notes/db.md", "bob", "read")


@cases(
    "path",
    [
        "sessions/t1.md",
        "working/threads/t1.md",
        "observations/t1/1.md",
        "inbox/a.md",
        "projects/demo/inbox/a.md",
        "projects/demo/resources/service/api/sessions/AGENTS.md",
        "Sessions/t1.md",
        "data.json",
    ],
)
def test_what_conversations_left_behind_is_never_shared(tmp_path: Path, path: str) -> None:
    world = World(tmp_path / "memories")
    file = world.root / "users/alice" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        '{"access": {"read": ["bob"]}}' if path.endswith("json") else "---\naccess: {read: [bob]}\n---\nx\n"
    )
    assert world.bob.shared.list() == []
    with pytest.raises(MemoryNotFound):
        world.bob.show(f"from-alice:{path}")
    with pytest.raises(Usage):
        world.alice.share(path, "bob", "read")


@cases(
    "given, message",
    [
        ({"level": "admin"}, "there is no level 'admin'"),
        ({"level": ""}, "there is no level ''"),
        ({"until": "soon"}, "'soon' is no moment"),
        ({"until": "2020-01-01"}, "2020-01-01 is over"),
        ({"user": "alice"}, "alice is the owner"),
        ({"user": ""}, "cannot be an id"),
        ({"user": ".."}, "cannot be an id"),
        ({"user": "x" * 300}, "has no file name"),
        ({"path": "notes/nope.md"}, "no such memory"),
        ({"path": "../bob/notes/a.md"}, "no part . or .."),
    ],
)
def test_what_cannot_be_is_refused_with_what_is_accepted(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    world = World(tmp_path / "memories")
    with pytest.raises(MdmemError) as refused:
        world.alice.share(**{"path": "notes/db.md", "user": "bob", "level": "read", **given})
    assert message in str(refused.value)
    assert world.text() == NOTE


def test_what_belongs_to_no_user_is_not_shared_with_one(world: World) -> None:
    owner = mdmem.open(world.root)
    owner.write("notes/all.md", "x")
    with pytest.raises(Usage, match=r"notes/all\.md cannot be shared"):
        owner.share("notes/all.md", "bob", "read")
    owner.share("users/alice/notes/db.md", "bob", "read")
    assert world.bob.show("from-alice:notes/db.md").text
    with pytest.raises(Usage, match="alice is the owner"):
        owner.share("users/alice/notes/db.md", "alice", "read")
    with pytest.raises(Usage, match="bind one"):
        owner.shared("alice")


def test_grants_of_a_memory_end_together(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "read", until=LATER)
    with pytest.raises(Usage, match="is shared with bob until 2999-01-31"):
        world.alice.share("notes/db.md", "carol", "read", until="2999-02-01")
    world.alice.share("notes/db.md", "carol", "read")
    assert world.alice.access("notes/db.md").until == LATER
    world.alice.unshare("notes/db.md", "carol")
    world.alice.share("notes/db.md", "bob", "read", until="2999-02-01")
    assert world.alice.access("notes/db.md").until == "2999-02-01"


# -- names of layers ----------------------------------------------------------------------------------------


@cases(
    "user", ["a:b", "from-alice", "shared", "user", "é", "e\u0301", "a/b", "100%", "con", ".hidden", "a b"]
)
def test_every_user_has_a_layer_of_one_name(tmp_path: Path, user: str) -> None:
    world = World(tmp_path / "memories")
    owner = world.of(user)
    owner.write("notes/own.md", "of this user")
    owner.share("notes/own.md", "bob", "write")
    (grant,) = world.bob.shared.list()
    assert grant.owner == user
    assert grant.path == f"{world.bob.shared.name(user)}notes/own.md"
    assert world.bob.show(grant.path).path == grant.path
    world.bob.shared(user).append("notes/own.md", "more")
    assert owner.show("notes/own.md").body.endswith("more\n")


@cases(
    "layer",
    [
        *(
            "from-%61lice",
            "from-Alice",
            "From-alice",
            "from-alice ",
            " from-alice",
            "from-",
            "from-.",
            "from-..",
        ),
        *(
            "from-alice/notes",
            "from-alice%2F",
            "from-bob",
            "from-from-alice",
            "users/alice",
            "alice",
            "from-*",
        ),
        *("from-alicebob", "from-al"),
    ],
)
def test_no_other_name_leads_to_a_layer(tmp_path: Path, layer: str) -> None:
    world = World(tmp_path / "memories")
    world.alice.share("notes/db.md", "bob", "full")
    for ask in (world.bob.show, world.bob.exists, lambda path: list(world.bob.grep("SQLite", paths=[path]))):
        for path in ("notes/db.md", "../alice/notes/db.md", "./notes/db.md", "/notes/db.md"):
            answer = told(lambda ask=ask, path=path: ask(f"{layer}:{path}"))  # type: ignore[misc]
            assert "SQLite" not in answer
            assert answer.startswith(("memory-not-found", "path-refused", "False", "usage")), (
                layer,
                path,
                answer,
            )


def test_a_layer_leads_to_nothing_beside_what_is_granted(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "full")
    (world.root / "users/alice/notes/link.md").symlink_to("secret.md")
    for path in (
        *("notes/secret.md", "notes/link.md", "notes/../notes/secret.md", "./notes/secret.md", "secret"),
        *(
            "../alice/notes/secret.md",
            "notes/%73ecret.md",
            "notes/secret.md/",
            "notes//secret.md",
            "NOTES/secret.md",
        ),
        *("notes/nope.md", "", "/", "notes", ".mdmem/config.toml", "from-alice:notes/secret.md"),
    ):
        for ask in (world.bob.show, world.bob.shared("alice").show):
            with pytest.raises(MemoryNotFound) as refused:
                ask(f"from-alice:{path}" if ask == world.bob.show else path)
            assert "secret" not in refused.value.hint
    names = ("notes/secret.md", "notes/sacret.md")
    same = [told(partial(world.bob.show, f"from-alice:{name}")) for name in names]
    assert same[0] == same[1].replace("sacret", "secret")


# -- changing -----------------------------------------------------------------------------------------------


def test_a_grant_that_is_taken_back_between_a_look_and_a_write_refuses_the_write(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "write")
    bob = world.bob.shared("alice")
    plan = bob.plan.append("notes/db.md", "late")
    prepared = bob._vault.prepare(plan)  # the instant before the lock is taken
    world.alice.unshare("notes/db.md", "bob")
    with pytest.raises(MemoryNotFound):
        bob.apply(plan)
    with bob._vault.store.writing(), pytest.raises(MemoryNotFound):
        bob._vault._run_prepared(prepared, may_merge=True)
    assert "late" not in world.text()
    world.alice.share("notes/db.md", "bob", "read")
    bob.show("notes/db.md")
    with pytest.raises(PathRefused, match="it is shared to read"):
        bob.apply(plan)


def test_a_look_that_somebody_wrote_after_is_not_merged(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "write")
    bob = world.bob.shared("alice")
    plan = bob.plan.append("notes/db.md", "From bob.")
    world.alice.append("notes/db.md", "From alice.")
    with pytest.raises(Conflict):
        bob.apply(plan)
    bob.append("notes/db.md", "From bob.")
    assert world.text().endswith("From alice.\nFrom bob.\n")


@cases(
    "change",
    [
        lambda m: m.write("notes/db.md", "mine\n", overwrite=True),
        lambda m: m.write("notes/db.md", "---\naccess: {full: [bob]}\n---\n", overwrite=True),
        lambda m: m.replace("notes/db.md", "write:", "full:"),
        lambda m: m.replace("notes/db.md", "- bob", "- bob\n    - carol"),
        lambda m: m.replace("notes/db.md", "title: Database", "title: [a"),
        lambda m: m.replace("notes/db.md", "title: Database", "title: a\naccess: {full: [bob]}"),
        lambda m: m.replace("notes/db.md", "title: Database", "title: a\nid: taken"),
        lambda m: m.unset("notes/db.md", "access"),
        lambda m: m.delete_lines("notes/db.md", 1, 5),
        lambda m: m.insert("notes/db.md", 1, "valid_to: 2020-01-01"),
        lambda m: m.supersede("notes/db.md", "notes/db.md"),
        lambda m: m.rename_id("notes/db.md", "taken"),
        lambda m: m.retier("notes/db.md", "working"),
        lambda m: m.clear(),
        lambda m: m.rm("notes", recursive=True),
        lambda m: m.mv("notes", "rules"),
        lambda m: m.write("notes/new.md", "x"),
        lambda m: m.write("notes/secret.md", "x", overwrite=True),
        lambda m: m.append("notes/secret.md", "x"),
        lambda m: m.append("../bob/notes/x.md", "x"),
        lambda m: m.replace(None, "zebra", "okapi"),
        lambda m: m.undo(),
        lambda m: m.redo(),
        lambda m: m.restore("notes/db.md"),
        lambda m: m.rename_tag("a", "b"),
    ],
)  # fmt: skip
def test_write_never_changes_what_is_the_owners(tmp_path: Path, change: Callable[[Any], Any]) -> None:
    world = World(tmp_path / "memories")
    world.alice.share("notes/db.md", "bob", "write")
    before = {file: file.read_bytes() for file in (world.root / "users").rglob("*.md")}
    bob = world.bob.shared("alice")
    applied = told(lambda: change(bob).files)
    assert applied == "()" or not applied.startswith("("), applied
    assert {file: file.read_bytes() for file in (world.root / "users").rglob("*.md")} == before
    with pytest.raises(MdmemError):
        bob.apply(change(bob.plan) if applied != "()" else bob.plan.rm("notes/db.md"))


def test_a_move_that_is_refused_tells_nothing_of_what_is_there(world: World) -> None:
    for level in ("read", "write"):
        world.alice.share("notes/db.md", "bob", level)
        bob = world.bob.shared("alice")
        told_of = [told(lambda n=n: bob.mv("notes/db.md", n)) for n in ("notes/SECRET.md", "notes/SACRET.md")]  # type: ignore[misc]  # noqa: B023
        assert told_of[0] == told_of[1]
        assert told(lambda: bob.mv("notes/db.md", "notes/secret.md")) == told_of[0]  # noqa: B023
        assert told(lambda: bob.write("notes/SECRET.md", "x")) == "memory-not-found: " + told(  # noqa: B023
            lambda: bob.write("notes/SACRET.md", "x")  # noqa: B023
        ).replace("SACRET", "SECRET").removeprefix("memory-not-found: ")


def test_full_stays_among_the_kind_of_the_memory(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "full")
    bob = world.bob.shared("alice")
    for target in (
        *("rules/db.md", "Rules/db.md", "AGENTS.md", "notes/AGENTS.md", "inbox/db.md", "sessions/db.md"),
        *("working/threads/db.md", "preferences/ui/db.md", "../bob/notes/db.md", "projects/p/rules/a.md"),
    ):
        with pytest.raises(PathRefused):
            bob.mv("notes/db.md", target)
    assert world.text()
    with pytest.raises(MdmemError):
        bob.mv("notes/db.md", "notes/secret.md")
    assert world.text("notes/secret.md") == SECRET


def test_what_was_before_a_memory_was_shared_stays_with_its_owner(world: World) -> None:
    world.alice.write("notes/db.md", "The password is okapi.\n", overwrite=True)
    old = world.alice.show("notes/db.md").hash
    world.alice.write("notes/db.md", NOTE, overwrite=True)
    world.alice.share("notes/db.md", "bob", "full")
    bob = world.bob.shared("alice")
    asked: list[Callable[[], Any]] = [
        lambda: bob.restore("notes/db.md"),
        lambda: bob.restore("notes/db.md", hash=old),
        bob.undo,
        lambda: bob.append("notes/db.md", "x", base=old),
        lambda: world.bob.show("from-alice:notes/db.md", as_of="2999-01-01"),
        lambda: world.bob.diff("from-alice:notes/db.md", against=old),
        lambda: world.bob.restore("from-alice:notes/db.md", hash=old),
    ]
    for ask in asked:
        assert "okapi" not in told(ask)
    assert "okapi" not in world.text()


def test_only_what_paths_decide_is_offered_of_another_user(world: World) -> None:
    bob = world.bob.shared("alice")
    public = {name for name in dir(bob) if not name.startswith("_")}
    assert not public & {
        *(
            "context",
            "sessions",
            "results",
            "git",
            "working",
            "past",
            "history",
            "diff",
            "store",
            "uses",
            "vault",
        ),
        *(
            "observations",
            "inbox",
            "capture",
            "rules",
            "project",
            "preferences",
            "stats",
            "status",
            "doctor",
            "index",
        ),
    }


# -- the program and agents ---------------------------------------------------------------------------------


def test_a_thread_that_is_bound_shares_nothing_of_others(world: World) -> None:
    world.alice.share("notes/db.md", "bob", "read")
    assert world.bob.of_thread("t1").show("from-alice:notes/db.md").text
    assert world.alice.of_thread("t1").share("notes/db.md", "carol", "read").files
