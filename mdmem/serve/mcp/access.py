"""Who may use a team's server: the operator's file, which maps the SHA-256 of each token to what it gives."""

from __future__ import annotations

import hmac
import json
import secrets
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mdmem import Scope
from mdmem.errors import MdmemError, Usage

if TYPE_CHECKING:
    from starlette.authentication import AuthCredentials, BaseUser
    from starlette.requests import HTTPConnection

_LONGEST_TOKEN = 256
_MOST_BYTES = 1 << 20  # of the file


class TokenGrant(BaseModel):
    """What a token gives: a table `[[token]]` of the file, which has these keys.

    `name` is what the history shows, and `expires` is of UTC where it names no zone.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    name: Annotated[str, Field(min_length=1)]
    scope: dict[str, str | bool]
    read_only: bool = False
    expires: Annotated[datetime | None, Field(strict=False)] = None

    @property
    def bound(self) -> Scope:
        """Whose memories it gives."""
        return Scope(**self.scope)  # type: ignore[arg-type]  # it looks at the types itself

    @property
    def is_over(self) -> bool:
        """Whether it has expired."""
        end = self.expires
        return end is not None and (end if end.tzinfo else end.replace(tzinfo=UTC)) <= datetime.now(UTC)


class AccessFile(BearerAuthBackend):
    """The tokens that are let in, as the file says now. What in it cannot be read lets nobody in.

    `problem` says what cannot be read, and `say` is told so.
    """

    def __init__(self, path: str, say: Callable[[str], None]) -> None:
        super().__init__(self)
        self._path = path
        self._say = say
        self._seen: tuple[bytes, str] | None = None
        self._grants: list[TokenGrant] = []
        self.problem = ""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        """Return who asks with one token that is good; None for others."""
        is_one = len(conn.headers.getlist("authorization")) == 1
        return await super().authenticate(conn) if is_one else None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what a token gives; None where it is unknown, expired, too long, or there twice."""
        digest = sha256(token.encode("utf-8", "replace")).hexdigest() if len(token) <= _LONGEST_TOKEN else ""
        found = [each for each in self.read() if hmac.compare_digest(each.sha256, digest)]
        if len(found) != 1 or found[0].is_over:
            return None
        return AccessToken(token=token, client_id=found[0].name, scopes=[], claims={"grant": found[0]})

    def read(self) -> list[TokenGrant]:
        """Return what all tokens give, as the file says now."""
        try:
            with open(self._path, "rb") as file:
                seen = file.read(_MOST_BYTES + 1), ""
        except OSError as error:
            seen = b"", f"nobody is let in: {error.strerror}"
        if seen != self._seen:
            self._seen = seen
            self._grants, problem = _read_grants(seen[0])
            self.problem = seen[1] or problem
            if self.problem:
                self._say(f"{self._path}: {self.problem}")
        return self._grants


def _read_grants(text: bytes) -> tuple[list[TokenGrant], str]:
    """Return what the tokens of a file give, and what of it cannot be read."""
    try:
        found = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        return [], f"nobody is let in: {error}"
    rows = found.pop("token", [])
    if found or not isinstance(rows, list) or len(text) > _MOST_BYTES:
        return [], f"nobody is let in: it holds more than tables [[token]], or than {_MOST_BYTES:,} bytes"
    grants, problem = [], ""
    for number, row in enumerate(rows, 1):
        try:
            grant = TokenGrant.model_validate(row)
            if grant.bound.wall.folder or grant.bound.shared:
                grants.append(grant)
                continue
            why = "scope: it names nobody's memories"
        except ValidationError as error:
            why = ", ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        except (MdmemError, TypeError) as error:
            why = str(error)
        problem = f"[[token]] {number} is not let in: {why}"
    return grants, problem


def make_token(name: str, scope: Scope, *, read_only: bool = False, expires: str = "") -> tuple[str, str]:
    """Make a token; return it, and the lines of the file that let it in.

    Raises:
        Usage: the scope is everybody's, or a value cannot be one.
    """
    token = f"mdmem_{secrets.token_urlsafe(32)}"
    values = {"sha256": sha256(token.encode()).hexdigest(), "name": name, "read_only": read_only}
    values |= {f"scope.{key}": value for key, value in asdict(scope).items()}
    # JSON's strings are those of TOML, apart from one character.
    rows = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value]
    rows += [f"expires = {expires}"] if expires else []
    text = "\n".join(["[[token]]", *rows, ""]).replace("\x7f", "\\u007f")
    if problem := _read_grants(text.encode("utf-8", "replace"))[1]:
        raise Usage(problem=f"no such token is let in: {problem.partition(': ')[2]}")
    return token, text
