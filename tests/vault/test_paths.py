"""A path never leaves its root, and an id and its file name stand for each other.

A scope names one namespace, and no two scopes share one.
"""

from __future__ import annotations

import os
import unicodedata
from typing import Any

import pytest
from hypothesis import assume, event, given, settings, strategies as st

from mdmem.errors import PathRefused, Usage
from mdmem.vault.paths import (
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    Scope,
    check_folder,
    check_memory,
    decode_id,
    encode_id,
    is_under,
    join,
    relative,
    unportable,
)
from tests.speed import examples
from tests.tables import cases

ROOT = "/vault/of/alice"
NASTY = [
    *("..", ".", "/", "//", "\\", "..\\", "../", "%2e%2e", "%2E%2E", "%2E%2E%2F", "%2e.", "%252e%252e", "%"),
    *("%00", "%2F", "%5C", "%0A", "\0", "\n", "\x7f", "\x85", "\ud800", "\udcff", "\uff0e\uff0e", "\uff0f"),
    *("\u2024", "e\u0301", "\xe9", "\u0301", "\u200c", "\u202e", "~", "C:", "nul", "a" * 300, "a", "b.md"),
    *(".md", ".json", "notes", ".git", ".mdmem", " ", "/etc/passwd", "file://", "%c0%ae%c0%ae", "%u002e"),
]
PATHS = st.lists(st.sampled_from(NASTY) | st.text(max_size=4), max_size=8).map("".join)
IDS = st.lists(
    st.sampled_from(
        [
            *(
                *("%", "/", "\\", "<", ">", ":", '"', "|", "?", "*", ".", "..", " ", "\0", "\x1f", "\x7f"),
                "\x80",
            ),
            *(
                *("a", "CON", "nul", "com1", "lpt\xb9", "conin$", "e\u0301", "\xe9", "\u0301", "\u0327"),
                "\u0338",
            ),
            *(
                *("\u0307", "\u200b", "\u200c", "\u2028", "\xad", "\u212b", "\xc5", "%2E", "%41", ".md"),
                "\ufb00",
            ),
            *("\u1100", "\u1161", "\u11a8", "\U0001f600", "~", "\u0344", "\u2126"),
        ]
    )
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    min_size=1,
    max_size=6,
).map("".join)


# ------------------------------------------------------------------------------------------------ confinement


@given(PATHS | PATHS.map(lambda path: path + ".md"))
@settings(max_examples=examples(800))
def test_no_path_leaves_the_root(path: str) -> None:
    for check in (check_memory, check_folder):
        try:
            safe = check(path)
        except PathRefused as refusal:
            event(refusal.reason)
            continue
        inside = os.path.normpath(os.path.join(ROOT, safe))
        assert inside == ROOT if safe == "" else inside.startswith(ROOT + "/")
        assert inside == os.path.join(ROOT, safe).rstrip("/")
        assert "\\" not in safe
        assert "\0" not in safe
        assert not any(part.startswith(".") for part in safe.split("/"))
        assert len(safe.encode()) <= MAX_PATH_BYTES
        assert unicodedata.is_normalized("NFC", safe)
        assert check(safe) == safe


@given(st.binary(max_size=30))
@settings(max_examples=examples(300))
def test_no_bytes_of_another_system_leave_the_root(name: bytes) -> None:
    """A name as `os.fsdecode` gives it: what is not UTF-8 comes as lone surrogates."""
    try:
        safe = check_memory(os.fsdecode(name) + ".md")
    except PathRefused:
        return
    assert os.path.normpath(os.path.join(ROOT, safe)).startswith(ROOT + "/")


@cases(
    "path",
    [
        *("../a.md", "notes/../../a.md", "/etc/a.md", "notes//a.md", "./a.md", "notes/./a.md", ".hidden.md"),
        *(
            *("notes/.git/a.md", ".mdmem/a.md", "a\\b.md", "a\0.md", "a\n.md", "a\x7f.md", "a\x9f.md"),
            "\ud800.md",
        ),
        *(
            *("%2e%2e/a.md", "%2E%2E/a.md", "%2E%2E%2Fa.md", "%2e%2e%2fa.md", "a%2fb.md", "a%00.md%"),
            "%2emd/a.md",
        ),
        *("%2E/a.md", "x%5cy.md", "%0a.md", "notes/", "/", "a" * 300 + ".md", "a/" * 512 + "a.md", ""),
    ],
)
def test_what_no_memory_can_be_called_is_refused_by_name(path: str) -> None:
    with pytest.raises(PathRefused) as refused:
        check_memory(path)
    assert refused.value.path == unicodedata.normalize("NFC", path)
    assert refused.value.reason
    assert refused.value.remedy
    assert repr(refused.value.path) in str(refused.value)


@cases(
    "path, meant",
    [
        *((path, f"{path}.md") for path in ("a.txt", "a", "a.md.bak", "notes")),
        *(("notes/a.MD", "notes/a.md"), ("a.Json", "a.json"), ("a.md ", "a.md")),
        *(("notes/end .", "notes/end.md"), ("n. d/end ", "n. d/end.md")),
    ],
)
def test_a_memory_ends_in_md_or_json(path: str, meant: str) -> None:
    with pytest.raises(PathRefused, match=r"\.md or \.json") as refused:
        check_memory(path)
    assert refused.value.remedy == f"try {meant}"


@cases(
    "path",
    [
        *(
            *("a.md", "a.json", "notes/Über uns.md", "\uff0e\uff0e/a.md", "%20.md", "100%.md", "%zz.md"),
            "a%252F.md",
        ),
        *("notes/日本語.md", "...a"[3:] + ".md", "a.b.md", "-.md", "--.md", "~.md", "$(x).md"),
    ],
)
def test_what_is_harmless_is_kept_as_it_is(path: str) -> None:
    assert check_memory(path) == path


def test_a_path_is_brought_into_nfc() -> None:
    assert check_memory("cafe\u0301.md") == "caf\xe9.md"
    assert check_folder("cafe\u0301/") == "caf\xe9"


def test_the_vault_itself_is_the_empty_folder() -> None:
    assert (check_folder(""), check_folder("/"), check_folder("notes/")) == ("", "", "notes")
    for path in ("//", "notes//", "/notes", "notes/..", ".."):
        with pytest.raises(PathRefused):
            check_folder(path)


def test_the_limits_are_counted_in_bytes() -> None:
    name = "é" * 126 + ".md"
    assert len(name.encode()) == MAX_NAME_BYTES
    assert check_memory(name) == name
    with pytest.raises(PathRefused, match="255 bytes"):
        check_memory("a" + name)
    path = ("a" * 127 + "/") * 7 + "a" * 125 + ".md"
    assert len(path) == MAX_PATH_BYTES
    assert check_memory(path) == path
    with pytest.raises(PathRefused, match="1024 bytes"):
        check_memory("a" + path)


# -------------------------------------------------------------------------------------------------- new names


@cases(
    "path",
    [
        *("con.md", "CON.md", "notes/nul.json", "aux/a.md", "com1.md", "lpt\xb9.md", "prn.x.md", "conin$.md"),
        *("a:b.md", "a<b.md", "what?.md", 'a"b.md', "a|b.md", "a*b.md", "a /b.md", "a./b.md", " a.md"),
        *("a\u200b.md", "a\u202eb.md", "\ufeffa.md", "a\xad.md"),
    ],
)
def test_a_new_name_must_be_one_on_every_system(path: str) -> None:
    (told,) = (each for each in map(unportable, check_memory(path).split("/")) if each != ("", ""))
    assert all(told)


@cases(
    "path, refused",
    [
        ("console.md", "con.md"),
        ("nully.md", "nul.md"),
        ("com.md", "com1.md"),
        ("com10.md", "com1.md"),
        ("a b.md", "a /b.md"),
        ("a.b.md", "a./b.md"),
        ("aux-1.md", "aux.1.md"),
    ],
)
def test_a_name_that_only_resembles_a_refused_one_is_accepted(path: str, refused: str) -> None:
    assert not any(unportable(part)[0] for part in path.split("/"))
    assert any(unportable(part)[0] for part in refused.split("/"))


# -------------------------------------------------------------------------------------------------------- ids


@given(IDS)
def test_an_id_comes_back_from_its_name(identifier: str) -> None:
    try:
        name = encode_id(identifier)
    except PathRefused:
        assume(identifier not in {"", ".", ".."})
        assert len("".join(f"%{byte:02X}" for byte in identifier.encode())) > MAX_NAME_BYTES - 5
        return
    assert decode_id(name) == identifier
    assert unicodedata.is_normalized("NFC", name), "the name on the disk would be another one"
    assert "/" not in name
    assert check_folder(name) == name
    for suffix in (".md", ".json"):
        assert check_memory(name + suffix) == name + suffix
        assert unportable(name + suffix) == ("", "")
    assert unportable(name) == ("", "")


@given(IDS, IDS)
def test_two_ids_never_share_a_name(one: str, other: str) -> None:
    assume(one != other)
    try:
        names = [unicodedata.normalize("NFC", encode_id(each)) for each in (one, other)]
    except PathRefused:
        return
    assert names[0] != names[1]


@cases(
    "identifier, name",
    [
        ("alice", "alice"),
        ("alice@example.org", "alice@example.org"),
        ("a/b", "a%2Fb"),
        ("../../etc", "%2E.%2F..%2Fetc"),
        (".hidden", "%2Ehidden"),
        ("a.", "a%2E"),
        ("a/b.", "a%2Fb%2E"),
        ("...", "%2E.%2E"),
        ("a ", "a%20"),
        ("a/b ", "a%2Fb%20"),
        (" ", "%20"),
        ("100%", "100%25"),
        ("%2F", "%252F"),
        ("CON", "%43ON"),
        ("con.txt", "%63on.txt"),
        ("caf\xe9", "caf\xe9"),
        ("cafe\u0301", "cafe%CC%81"),
        ("a\u200db", "a%E2%80%8Db"),
        ("C:\\x", "C%3A%5Cx"),
        ("<\u0327", "%3C%CC%A7"),
    ],
)
def test_ids_are_escaped_only_where_a_name_cannot_carry_them(identifier: str, name: str) -> None:
    assert encode_id(identifier) == name
    assert decode_id(name) == identifier
    assert check_memory(f"{name}.md") == f"{name}.md"


@cases("identifier", ["", ".", "..", "\ud800", "x" * 251, "\u4e00" * 100])
def test_an_id_that_no_name_can_carry_is_refused(identifier: str) -> None:
    with pytest.raises(PathRefused):
        encode_id(identifier)


def test_the_longest_id_still_makes_a_memory() -> None:
    name = encode_id("x" * 250)
    assert check_memory(name + ".json") == name + ".json"


def test_an_escape_in_another_spelling_than_ours_is_refused() -> None:
    """`a%2Fb` is the name of the id `a/b`; `a%2fb` could only be there to be decoded."""
    assert check_memory("a%2Fb.md") == "a%2Fb.md"
    for path in ("a%2fb.md", "%61%2Fb.md", "..%2Fb.md", "a%2F%2e%2e.md"):
        with pytest.raises(PathRefused):
            check_memory(path)


# --------------------------------------------------------------------------------------------- by their parts

PARTS = st.lists(st.sampled_from(["a", "ab", "b", "alice", "alicebob"]), max_size=4)


@given(PARTS, PARTS)
def test_under_means_by_whole_parts(path: list[str], namespace: list[str]) -> None:
    assert is_under("/".join(path), "/".join(namespace)) == (path[: len(namespace)] == namespace)


@given(PARTS, PARTS)
def test_relative_is_the_inverse_of_join(namespace: list[str], path: list[str]) -> None:
    above, below = "/".join(namespace), "/".join(path)
    whole = join(above, below)
    assert whole == "/".join([*namespace, *path])
    assert is_under(whole, above)
    assert relative(whole, above) == below


def test_alice_is_not_above_alicebob() -> None:
    assert is_under("users/alice", "users/alice")
    assert is_under("users/alice/a.md", "users/alice")
    assert not is_under("users/alicebob/a.md", "users/alice")
    assert is_under("anything.md", "")


@cases(
    "scope, namespace",
    [
        (Scope(), ""),
        (Scope(shared=True), ""),
        (Scope(user="alice"), "users/alice"),
        (Scope(user="alice", shared=True), ""),
        (Scope(project="demo"), "projects/demo"),
        (Scope(project="demo", shared=True), "projects/demo"),
        (Scope(user="alice", project="demo"), "users/alice/projects/demo"),
        (Scope(user="alice", project="demo", shared=True), "projects/demo"),
        (Scope(resource_type="pr", resource_id="7"), "resources/pr/7"),
        (Scope(user="alice", resource_type="pr", resource_id="7"), "users/alice/resources/pr/7"),
        (Scope(project="demo", resource_type="pr", resource_id="7"), "projects/demo/resources/pr/7"),
        (
            Scope(user="alice", project="demo", resource_type="pr", resource_id="7"),
            "users/alice/projects/demo/resources/pr/7",
        ),
        (
            Scope(user="alice", project="demo", resource_type="pr", resource_id="7", shared=True),
            "projects/demo/resources/pr/7",
        ),
        (Scope(user="../bob"), "users/%2E.%2Fbob"),
        (Scope(user="a/b", project="c:d"), "users/a%2Fb/projects/c%3Ad"),
        (Scope(user="CON"), "users/%43ON"),
    ],
)
def test_the_namespace_of_a_scope(scope: Scope, namespace: str) -> None:
    assert scope.namespace == namespace
    assert check_folder(namespace) == namespace


@cases(
    "scope, layers",
    [
        (Scope(), ("",)),
        (Scope(user="alice"), ("", "users/alice")),
        (Scope(project="demo"), ("", "projects/demo")),
        (
            Scope(user="alice", project="demo"),
            ("", "projects/demo", "users/alice", "users/alice/projects/demo"),
        ),
        (Scope(user="alice", project="demo", shared=True), ("", "projects/demo")),
        (Scope(user="alice", shared=True), ("",)),
    ],
)
def test_layers_go_from_everyones_to_its_own(scope: Scope, layers: tuple[str, ...]) -> None:
    assert scope.layers == layers
    assert scope.layers[-1] == scope.namespace


@pytest.mark.parametrize("half", [{"resource_type": "pr"}, {"resource_id": "7"}])
def test_a_resource_has_a_type_and_an_id(half: dict[str, Any]) -> None:
    with pytest.raises(Usage, match="a type and an id"):
        Scope(**half)


@pytest.mark.parametrize("name", ["", ".", "..", "\udc80"])
def test_an_id_that_no_file_name_can_carry_is_refused(name: str) -> None:
    for scope in (
        Scope(user=name),
        Scope(project=name),
        Scope(resource_type=name, resource_id="7"),
        Scope(resource_type="pr", resource_id=name),
    ):
        with pytest.raises(PathRefused):
            _ = scope.namespace


WORDS = st.none() | st.sampled_from(["alice", "alicebob", "projects", "users", "a/b", "a", "b", "%2F", "é"])
SCOPES = st.builds(
    lambda user, project, resource, shared: Scope(
        user=user,
        project=project,
        resource_type=resource and resource[0],
        resource_id=resource and resource[1],
        shared=shared,
    ),
    WORDS,
    WORDS,
    st.none() | st.tuples(WORDS.filter(bool), WORDS.filter(bool)),
    st.booleans(),
)


@given(SCOPES, SCOPES)
def test_two_scopes_share_a_namespace_only_when_they_mean_the_same(one: Scope, other: Scope) -> None:
    def meaning(scope: Scope) -> tuple[str | None, ...]:
        user = None if scope.shared else scope.user
        return user, scope.project, scope.resource_type, scope.resource_id

    assert (one.namespace == other.namespace) == (meaning(one) == meaning(other))
    if one.user and other.user and one.user != other.user and not one.shared and not other.shared:
        assert not is_under(one.namespace, Scope(user=other.user).namespace)


@cases(
    "scope, reads, searches",
    [
        (Scope(), [("", "")], 1),
        (Scope(shared=True), [("", "")], 1),
        (Scope(user="al"), [("", "users/al"), ("shared", "")], 1),
        (Scope(project="p"), [("", "projects/p"), ("shared", "")], 1),
        (
            Scope(user="al", project="p"),
            [("", "users/al/projects/p"), ("user", "users/al"), ("project", "projects/p"), ("shared", "")],
            4,
        ),
        (Scope(user="al", project="p", shared=True), [("", "projects/p"), ("shared", "")], 2),
    ],
)
def test_what_a_scope_reads_besides_its_own(
    scope: Scope, reads: list[tuple[str, str]], searches: int
) -> None:
    assert [(layer.name, layer.namespace.folder) for layer in scope.reads] == reads
    assert scope.searches == scope.reads[:searches]


@cases(
    "scope, path, holds",
    [
        (Scope(), "users/al/a.md", True),
        (Scope(shared=True), "users/al/a.md", False),
        (Scope(shared=True), "Users/al", False),
        (Scope(shared=True), "users.md", True),
        (Scope(shared=True), "projects/p/users/a.md", True),
        (Scope(user="al"), "users/albert/a.md", False),
        (Scope(user="al"), "users/al/projects/p/a.md", True),
    ],
)
def test_what_belongs_to_a_scope(scope: Scope, path: str, holds: bool) -> None:
    assert scope.wall.holds(path) is holds


def test_a_suffix_that_a_vault_does_not_take_is_refused_with_the_key_that_names_it() -> None:
    assert check_memory("n/a.mdx") == "n/a.mdx"
    for suffix in (".mdx", ".markdown"):
        with pytest.raises(PathRefused) as refused:
            check_memory(f"a{suffix}", (".md", ".json"))
        assert f"in {suffix} only where the vault's config names it" in refused.value.reason
        assert refused.value.hint == (
            f"name {suffix} in `[files] suffixes` of .mdmem/config.toml, or try a{suffix}.md"
        )
    with pytest.raises(PathRefused) as refused:
        check_memory("a.txt", (".md", ".json"))
    assert (refused.value.reason, refused.value.hint) == (
        "a memory's name ends in .md or .json",
        "try a.txt.md",
    )
