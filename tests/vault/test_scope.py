"""A scope names one namespace, and no two scopes share one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from mdmem.errors import PathRefused, Usage
from mdmem.vault.paths import check_folder, is_under
from mdmem.vault.scope import Scope


@pytest.mark.parametrize(
    ("scope", "namespace"),
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
# README: A scope names a namespace: …
def test_the_namespace_of_a_scope(scope: Scope, namespace: str) -> None:
    assert scope.namespace == namespace
    assert check_folder(namespace) == namespace


@pytest.mark.parametrize(
    ("scope", "layers"),
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


@pytest.mark.parametrize(
    ("scope", "reads", "searches"),
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


@pytest.mark.parametrize(
    ("scope", "path", "holds"),
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
