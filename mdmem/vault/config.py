"""`.mdmem/config.toml`: limits, mounts and defaults of a vault."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mdmem.errors import ConfigInvalid
from mdmem.text.document import DEFAULT_LIMITS, Limits
from mdmem.text.regex import regex

CONFIG_PATH = ".mdmem/config.toml"
# Of a config: its reader takes the square of the time for a key with so many dots.
MAX_BYTES, _MOST_DOTS = 256 * 1024, 2_000
MOST_BYTES = 64 * 2**20
"""No memory is larger, whatever a config says."""
_MOST = 2**63 - 1  # the largest integer of TOML 1.0
# A config may have come with somebody else's files: it does not decide how much memory a program takes.
_BOUNDS = Limits(max_bytes=MOST_BYTES, max_frontmatter_bytes=4 * 2**20, max_depth=100, max_values=1_000_000)

DEFAULT_TEXT = """\
# The config of this memory vault. Everything here is optional: what is left out has its default.

[limits]
# max_bytes = 4194304             # of one memory
# max_frontmatter_bytes = 65536   # of its frontmatter
# max_depth = 32                  # how deeply values may be nested
# max_values = 10000              # values in a frontmatter, counting what an alias repeats
# max_parts = 100000              # headings, links, block ids or JSON values in a memory, of each

[trash]
# max_bytes = 268435456           # overwritten and deleted content that can be restored
# max_days = 90

[working]
# ttl_seconds = 0                 # how long working memory lives after its last change; 0: for ever
# schema = ""                     # the schema of working memory that names none
# template = ""                   # what `working get` begins with, where there is nothing yet

[preferences]
# policy = "keep-latest"          # or "keep-stronger", "merge"
# max_per_user = 1000

[secrets]
# policy = "refuse"               # what happens to a secret that a change adds; or "redact", "warn", "off"
# allow = []                      # secrets that may stand here: the first 16 digits of their SHA-256

# A mount shows one file of the workspace as a memory of this vault: vault path = file, seen from the vault.
[mounts]
"""


class Trash(NamedTuple):
    """How much is kept for `restore`: bytes of content, and days since it was replaced."""

    max_bytes: int = 256 * 1024 * 1024
    max_days: int = 90


class Working(NamedTuple):
    """Working memory: seconds that it lives after its last change (0 for ever), its schema and template."""

    ttl_seconds: int = 0
    schema: str = ""
    template: str = ""


class Preferences(NamedTuple):
    """Preferences: what happens when a value changes, and how many one namespace may have."""

    policy: str = "keep-latest"
    max_per_user: int = 1000


class Secrets(NamedTuple):
    """Secrets that a change adds: what happens to them, and the hashes of those that may stand there."""

    policy: str = "refuse"
    allow: tuple[str, ...] = ()


POLICIES = ("keep-latest", "keep-stronger", "merge")
SECRET_POLICIES = ("refuse", "redact", "warn", "off")
_CHOICES = {"preferences": POLICIES, "secrets": SECRET_POLICIES}
_DIGEST = regex(r"[0-9a-f]{16,64}")


class Config(NamedTuple):
    """The whole config. `mounts` maps a path of the vault to a file, as seen from the vault's folder."""

    limits: Limits = DEFAULT_LIMITS
    trash: Trash = Trash()
    working: Working = Working()
    preferences: Preferences = Preferences()
    secrets: Secrets = Secrets()
    mounts: Mapping[str, str] = MappingProxyType({})


def parse(text: str, path: str = CONFIG_PATH) -> Config:
    """Read a config.

    Raises:
        ConfigInvalid: not TOML, an unknown table or key, or a value of the wrong kind.
    """
    if text in ("", DEFAULT_TEXT):
        return Config()  # without the time to import tomllib
    import tomllib  # noqa: PLC0415 - start-up

    if text.count(".") > _MOST_DOTS:
        raise ConfigInvalid(path=path, reason=f"it has more than {_MOST_DOTS:,} dots", remedy="shorten it")
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigInvalid(path=path, reason=f"not TOML: {error}") from None
    _refuse_unknown(path, "", tables, Config._fields)
    mounts = tables.pop("mounts", {})
    if not isinstance(mounts, dict) or not all(isinstance(target, str) for target in mounts.values()):
        raise ConfigInvalid(path=path, reason="[mounts] maps paths of the vault to files, both as strings")
    kinds = {
        "limits": Limits,
        "trash": Trash,
        "working": Working,
        "preferences": Preferences,
        "secrets": Secrets,
    }
    parts = {name: _table(path, name, kinds[name], table) for name, table in tables.items()}
    return Config(mounts=mounts, **parts)


def _table(path: str, name: str, kind: type[Any], table: Any) -> Any:
    if not isinstance(table, dict):
        raise ConfigInvalid(path=path, reason=f"{name} is a table", remedy=f"write [{name}]")
    _refuse_unknown(path, f"[{name}] ", table, kind._fields)
    defaults = kind()
    given = dict(table)
    for key, value in table.items():
        wanted = type(getattr(defaults, key))
        if wanted is tuple:
            given[key] = _digests(path, f"[{name}] {key}", value)
            continue
        if type(value) is not wanted or (wanted is int and not 0 <= value <= _MOST):
            expected = "a whole number, 0 or more, of 64 bits" if wanted is int else "a string"
            raise ConfigInvalid(path=path, reason=f"[{name}] {key} is {expected}, not {value!r}")
        if name == "limits" and value > getattr(_BOUNDS, key):
            reason = f"[limits] {key} is at most {getattr(_BOUNDS, key):,}, not {value:,}"
            raise ConfigInvalid(path=path, reason=reason)
        if key == "policy" and value not in _CHOICES[name]:
            raise ConfigInvalid(path=path, reason=f"[{name}] {key} is one of {', '.join(_CHOICES[name])}")
    return kind(**given)


def _digests(path: str, where: str, value: Any) -> tuple[str, ...]:
    """A list of hashes. What is none is not quoted: it may be the secret itself."""
    if not isinstance(value, list) or not all(isinstance(v, str) and _DIGEST.fullmatch(v) for v in value):
        reason = f"{where} is a list of hashes, each 16 to 64 small hexadecimal digits"
        raise ConfigInvalid(path=path, reason=reason, remedy="a refused change names the hash to add")
    return tuple(value)


def _refuse_unknown(path: str, where: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            raise ConfigInvalid(
                path=path, reason=f"{where}{key!r} is unknown", remedy=f"known: {', '.join(known)}"
            )
