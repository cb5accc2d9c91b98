"""Only what is listed can be read, whatever Python offers.

Compiled templates: what is kept is the code of the very same source.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from jinja2.filters import FILTERS
from jinja2.utils import Namespace

from mdmem.vault.template import sandbox
from mdmem.vault.template.sandbox import COMPILED, Sandbox
from mdmem.vault.template.templates import Templates
from tests.tables import cases


@cases(
    "owner, attribute",
    [
        ({"a": 1}, "items"),
        (datetime(2026, 1, 2, tzinfo=UTC), "year"),
        (Namespace(), "anything"),
    ],
)
def test_what_is_listed_can_be_read(owner: Any, attribute: str) -> None:
    assert sandbox.is_readable(owner, attribute)


@cases(
    "owner, attribute",
    [
        ("text", "format"),
        ("text", "upper"),
        ({}, "update"),
        ([], "append"),
        (1, "to_bytes"),
        (1.0, "hex"),
        ({}.keys(), "mapping"),
        (range(3), "count"),
        (datetime(2026, 1, 2, tzinfo=UTC), "tzinfo"),
        (str, "join"),
        (type, "mro"),
    ],
)
def test_nothing_else_can(owner: Any, attribute: str) -> None:
    assert not sandbox.is_readable(owner, attribute)


def test_every_allowed_filter_is_one_of_jinjas() -> None:
    assert FILTERS.keys() >= sandbox.ALLOWED_FILTERS


NOW = datetime(2026, 5, 8, tzinfo=UTC)


def test_a_template_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    generate = Sandbox._generate

    def watched(self: Sandbox, *given: object, **named: object) -> str:
        compiled.append(given)
        return generate(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Sandbox, "_generate", watched)
    for value in ("one", "two"):
        templates = Templates({"compiled-once.md": "{{ x }}!"})
        assert templates.render("compiled-once", {"x": value}, now=NOW) == f"{value}!\n"
    assert len(compiled) == 1


def test_another_source_of_the_same_name_is_compiled_anew() -> None:
    for source in ("a {{ x }}", "b {{ x }}", "a {{ x }}"):
        made = Templates({"same": source}).render("same", {"x": 1}, now=NOW)
        assert made == source.replace("{{ x }}", "1") + "\n"


def test_no_more_than_some_are_kept() -> None:
    for number in range(200):
        Templates({"a.md": f"{number}"}).render("a", {}, now=NOW)
        assert len(COMPILED._codes) <= 64
