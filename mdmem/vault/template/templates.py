"""The templates of a vault over the built-in ones: found by name, shown with their variables, rendered."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Diagnostic, about_file
from mdmem.document.text.regex import regex
from mdmem.errors import NamedNotFound, PathRefused, TemplateFailed, Usage
from mdmem.vault.builtin import builtin_folder

if TYPE_CHECKING:
    from mdmem.vault.template.rendering import Variable


class TemplateInfo(NamedTuple):
    """One template of a list.

    Attributes:
        name: what it is asked for by: its path without `.md`; with the suffix when it is another.
        builtin: whether it is a built-in one; False for a vault's own, also where that replaces one.
        description: the text of the comment in its first line; empty when there is none.
    """

    name: str
    builtin: bool
    description: str


class Shown(NamedTuple):
    """A template as it is written, by its full name, with the suffix, and its variables."""

    name: str
    source: str
    variables: tuple[Variable, ...]


BUILTIN_PREFIX = "builtin/"  # names a built-in template, also where one of the vault's own stands over it
_DEFAULT_MAX_CHARS = 1_000_000
_SUFFIXES = ("", ".md", ".json")
_DESCRIPTION = regex(r"\ufeff?\{#-?[ \t]*(.*?)[ \t]*-?#\}")


class Templates:
    """The templates of a vault and the built-in ones. Making it parses nothing.

    Args:
        own: the source of each, by its path in the vault's template folder, with `/` and suffix. One that is
            named like a built-in template replaces it, and may extend it as `builtin/<name>`.
    """

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own

    def names(self) -> list[TemplateInfo]:
        """Return the templates that can be rendered, by name."""
        sources = {**_builtin_sources(), **self._own}
        return [
            TemplateInfo(
                name=name.removesuffix(".md"),
                builtin=name not in self._own,
                description=_description_of(sources[name]),
            )
            for name in sorted(sources)
            if not name.startswith(BUILTIN_PREFIX)
        ]

    def lint(self) -> list[Diagnostic]:
        """List the vault's own templates that cannot be compiled."""
        findings = []
        for name, source in sorted(self._own.items()):
            from mdmem.vault.template import rendering  # noqa: PLC0415 - as `show`

            try:
                rendering.refuse_broken(name, source.removeprefix("\ufeff"), self._find_source)
            except TemplateFailed as error:
                path, line = f".mdmem/templates/{name}", error.line or 1
                findings.append(about_file(path, "template-broken", error.reason, error.hint, line=line))
        return findings

    def show(self, name: str) -> Shown:
        """Return the source of a template and the variables that it reads."""
        from mdmem.vault.template import rendering  # noqa: PLC0415 - Jinja costs 45 ms, most commands need none

        full, source = self.find(name)
        return Shown(name=full, source=source, variables=rendering.variables(full, source, self._find_source))

    def render(
        self,
        name: str,
        variables: Mapping[str, Any],
        *,
        now: datetime,
        max_chars: int = _DEFAULT_MAX_CHARS,
        refuse_unread: bool = False,
    ) -> str:
        """Render the template `name`; the result ends in exactly one newline.

        Args:
            variables: plain values: texts, numbers, booleans, None, dates, and lists and mappings of these.
            now: the moment that `now` and `today` mean, with a time zone; templates see it in UTC.
            max_chars: how long the result may be; what may be made on the way to it grows with that.

        Raises:
            TemplateFailed: a variable is missing or refused, or the template cannot be parsed, fails, reaches
                for what it may not have, or does or writes too much.
            Usage: `now` has no time zone.
        """
        from mdmem.vault.template import rendering  # noqa: PLC0415 - as above

        full, source = self.find(name)
        if now.tzinfo is None:
            raise Usage(problem="`now` has no time zone", remedy="give an aware datetime")
        if refuse_unread and variables:
            rendering.refuse_unread(full, source, self._find_source, variables)
        utc = now.astimezone(UTC)
        values = {"now": utc, "today": f"{utc:%Y-%m-%d}"}
        text = rendering.render(
            full, source, self._find_source, given=variables, values=values, max_chars=max_chars
        )
        return text.rstrip("\r\n") + "\n"

    def find(self, name: str) -> tuple[str, str]:
        """Find a template: its full name, with the suffix, and its source."""
        for suffix in _SUFFIXES:
            source = self._source_of(name, suffix)
            if source is not None:
                return name + suffix, source
        names = [info.name for info in self.names()]
        near = dict.fromkeys([*get_close_matches(name, names), *names])
        raise NamedNotFound(kind="template", name=name, near=tuple(near))

    def _source_of(self, name: str, suffix: str) -> str | None:
        reason = refusal(name)
        if reason:
            remedy = "name a template as `mdmem template list` does"
            raise PathRefused(path=name, reason=reason, remedy=remedy)
        full = name + suffix
        if full.startswith(BUILTIN_PREFIX):
            return _builtin_sources().get(full.removeprefix(BUILTIN_PREFIX))
        source = self._own.get(full)
        return _builtin_sources().get(full) if source is None else source.removeprefix("\ufeff")

    def _find_source(self, name: str) -> str | None:
        sources = (self._source_of(name, suffix) for suffix in _SUFFIXES)
        return next((source for source in sources if source is not None), None)


def refusal(name: str) -> str | None:
    """Return why a template may not be named so; None when it may."""
    if "\\" in name:
        return "a template's name has no backslash"
    if name.startswith("/"):
        return "a template's name is not an absolute path"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return "a template's name has no empty part, `.` or `..`"
    return None


def _description_of(source: str) -> str:
    found = _DESCRIPTION.match(source)
    return found[1] if found else ""


@cache
def _builtin_sources() -> dict[str, str]:
    top = builtin_folder("templates")
    sources = {}
    for name in os.listdir(top):
        with open(os.path.join(top, name), encoding="utf-8", newline="") as file:
            sources[name] = file.read()
    return sources
