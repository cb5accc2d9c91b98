"""The file of a team's tokens: what it lets in, and what cannot be read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.errors import Usage
from mdmem.serve.mcp.access import AccessFile, make_token
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from mdmem.serve.mcp.access import TokenGrant

ANN = mdmem.Scope(user="ann")


def find(access: AccessFile, token: str) -> TokenGrant | None:
    """What a token gives."""
    known = asyncio.run(access.verify_token(token))
    return known.claims["grant"] if known and known.claims else None


@cases(
    "scope",
    [
        ANN,
        mdmem.Scope(shared=True),
        mdmem.Scope(project="demo"),
        mdmem.Scope(user='a"\\\n\x7f\u00e9\U0001f600', project="a/b", shared=True),
        mdmem.Scope(user="ann", resource_type="repo", resource_id="a/b"),
    ],
)
def test_a_token_of_a_team_gives_what_it_was_made_for(tmp_path: Path, scope: mdmem.Scope) -> None:
    token, lines = make_token('ann\'s "laptop"', scope, read_only=True, expires="2999-01-01")
    other, more = make_token("x", ANN)
    (tmp_path / "access").write_text(lines + more)
    access = AccessFile(str(tmp_path / "access"), pytest.fail)
    grant, plain = find(access, token), find(access, other)
    assert grant
    assert plain
    assert (grant.name, grant.bound, grant.read_only) == ('ann\'s "laptop"', scope, True)
    assert (plain.bound, plain.read_only, plain.expires) == (ANN, False, None)
    assert token not in lines
    assert find(access, token + "x") is None


@cases(
    "expires, lives",
    [("2020-01-01", False), ("2999-01-01T10:00:00+02:00", True), ("2020-01-01 10:00:00", False)],
)
def test_a_token_of_a_team_ends_at_its_time(tmp_path: Path, expires: str, lives: bool) -> None:
    token, lines = make_token("x", ANN, expires=expires)
    (tmp_path / "access").write_text(lines)
    assert bool(find(AccessFile(str(tmp_path / "access"), pytest.fail), token)) == lives


@pytest.mark.parametrize(
    ("scope", "options"),
    [
        (mdmem.Scope(), {}),
        (ANN, {"name": ""}),
        (ANN, {"expires": "soon"}),
        (ANN, {"expires": "12:30:00"}),
        (mdmem.Scope(user="x" * 5_000), {}),
        (mdmem.Scope(user=""), {}),
    ],
)
def test_no_token_of_a_team_is_made_for_what_cannot_be(scope: mdmem.Scope, options: dict[str, str]) -> None:
    with pytest.raises(Usage):
        make_token(**{"name": "x", "scope": scope, **options})  # type: ignore[arg-type]


@cases(
    "row",
    [
        'name = ""',
        'scope.user = "ann"\nread_onyl = true',
        "scope.user = 5",
        'scope.usr = "ann"',
        'scope.resource_type = "x"',
        "scope.shared = false",
        'scope.user = "ann"\nread_only = "yes"',
        'scope.user = "ann"\nexpires = "soon"',
        'scope = "ann"',
    ],
)
def test_a_row_of_a_team_that_cannot_be_read_lets_nobody_in(tmp_path: Path, row: str) -> None:
    token, lines = make_token("x", ANN)
    other, more = make_token("y", ANN)
    name = "" if "name" in row else 'name = "x"\n'
    (tmp_path / "access").write_text(f"{lines.splitlines()[0]}\n{lines.splitlines()[1]}\n{name}{row}\n{more}")
    told: list[str] = []
    access = AccessFile(str(tmp_path / "access"), told.append)
    assert find(access, token) is None
    assert find(access, other) is not None
    (problem,) = told
    assert "[[token]] 1 is not let in" in problem


@pytest.mark.parametrize(
    "text",
    [
        b"\xff",
        b"[[token]",
        b"token = 5",
        b"[tokens]",
        b"token = [5]",
        b"a=" + b"[" * 9_000,
        b"\0",
        b"#" * (2 << 20),
    ],
)
def test_a_file_of_a_team_that_cannot_be_read_lets_nobody_in(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "access").write_bytes(text)
    told: list[str] = []
    access = AccessFile(str(tmp_path / "access"), told.append)
    assert access.read() == []
    assert len(told) == 1
    assert access.problem


def test_a_file_of_a_team_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path, told = tmp_path / "access", list[str]()
    token, lines = make_token("x", ANN)
    path.write_text(lines)
    access = AccessFile(str(path), told.append)
    assert find(access, token)
    for broken in (path.unlink, lambda: path.write_text("")):
        broken()
        until(lambda: not find(access, token))
        path.write_text(lines)
        until(lambda: find(access, token))
    assert [word.partition("nobody is let in: ")[2] for word in told] == ["No such file or directory"]


@cases("token", ["", "x" * 257, "x" * 100_000, "\xe9", "\ud800"])
def test_what_cannot_be_a_token_of_a_team_is_none(tmp_path: Path, token: str) -> None:
    (tmp_path / "access").write_text(make_token("x", ANN)[1])
    assert find(AccessFile(str(tmp_path / "access"), pytest.fail), token) is None


def test_a_token_of_a_team_that_is_there_twice_is_none(tmp_path: Path) -> None:
    token, lines = make_token("x", ANN)
    (tmp_path / "access").write_text(lines + lines)
    assert find(AccessFile(str(tmp_path / "access"), pytest.fail), token) is None
