"""The texts that a schema describes: the values of the keyword `format`, and regular expressions.

The names are those of JSON Schema 2020-12, Validation, section 7.3. Dates and times are RFC 3339, section
5.6, made wider in three ways, because people write them so: the offset may be absent, the seconds may be
absent, and a space may stand for the `T`.

JSON Schema means the regular expressions of ECMA-262. They are read by the package `regex`, which reads what
both share the same way but for `$`, which there also matches before a final line end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mdmem.document.moment import DAY, read_date
from mdmem.document.text.regex import foreign, regex
from mdmem.errors import PatternInvalid

if TYPE_CHECKING:
    from regex import Pattern

_DATE = regex(DAY)
_TIME = regex(
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:\.[0-9]+)?)?"
    r"(?:[Zz]|[-+](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
)
_DURATION = regex(
    r"P(?:[0-9]+W|(?=.)(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:T(?=.)(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?)"
)
_LABEL = regex(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_UUID = regex(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LOCAL = regex(r"""[^\s@"(),:;<>\[\\\]\x00-\x1f\x7f]+""")
_SCHEME = regex(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NOT_IN_URI = regex(r"""[^\x21-\x7e]|["<>\\^`{|}]|%(?![0-9A-Fa-f]{2})""")
_DOLLAR = regex(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]?)|\$", re.DOTALL)
_MOST_HOST_CHARACTERS = 253


class Format(NamedTuple):
    """What a format accepts, in words that follow "must be", and the check itself."""

    means: str
    accepts: Callable[[str], bool]


def is_date(text: str) -> bool:
    """Return whether `text` is a day of the calendar, `2024-01-31`."""
    return _DATE.fullmatch(text) is not None and read_date(text) is not None


def is_time(text: str) -> bool:
    """Return whether `text` is a time of day, `12:30`, `12:30:00` or `12:30:00.5+02:00`."""
    return _TIME.fullmatch(text) is not None


def is_date_time(text: str) -> bool:
    """Return whether `text` is a date and a time of day with `T` or a space between them."""
    return is_date(text[:10]) and text[10:11] in ("T", "t", " ") and is_time(text[11:])


def is_hostname(text: str) -> bool:
    """Return whether `text` is a host name of ASCII labels (RFC 1123, section 2.1)."""
    labels = text.split(".")
    return len(text) <= _MOST_HOST_CHARACTERS and all(_LABEL.fullmatch(label) for label in labels)


def _is_email(text: str) -> bool:
    local, at, host = text.rpartition("@")
    return bool(at) and text.isascii() and _LOCAL.fullmatch(local) is not None and is_hostname(host)


def _ip_address(version: int) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        import ipaddress  # noqa: PLC0415 - start-up

        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return address.version == version and not getattr(address, "scope_id", None)

    return accepts


def _is_uri_reference(text: str) -> bool:
    from urllib.parse import urlsplit  # noqa: PLC0415 - start-up

    try:
        urlsplit(text)
    except ValueError:
        return False
    return _NOT_IN_URI.search(text) is None


def _is_uri(text: str) -> bool:
    return _SCHEME.match(text) is not None and _is_uri_reference(text)


def _is_regex(text: str) -> bool:
    try:
        expression(text)
    except PatternInvalid:
        return False
    return True


@lru_cache(maxsize=256)
def expression(pattern: str) -> Pattern[str]:
    """Compile a regular expression of a schema, to be searched for anywhere in a text."""
    return foreign(_DOLLAR.sub(lambda found: found[1] or r"\Z", pattern))


def _full_match(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


FORMATS: dict[str, Format] = {
    "date": Format("a date such as 2024-01-31", is_date),
    "date-time": Format("a date with a time such as 2024-01-31T12:30:00Z", is_date_time),
    "time": Format("a time such as 12:30:00", is_time),
    "duration": Format("a duration such as P1DT12H", _full_match(_DURATION)),
    "email": Format("an e-mail address", _is_email),
    "hostname": Format("a host name", is_hostname),
    "ipv4": Format("an IPv4 address such as 192.0.2.1", _ip_address(4)),
    "ipv6": Format("an IPv6 address such as 2001:db8::1", _ip_address(6)),
    "uri": Format("an address with a scheme such as https://example.com/", _is_uri),
    "uri-reference": Format("an address, whole or relative", _is_uri_reference),
    "uuid": Format("a UUID such as 123e4567-e89b-12d3-a456-426614174000", _full_match(_UUID)),
    "regex": Format("a regular expression", _is_regex),
}
