"""Compiled templates: what is kept is the code of the very same source."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mdmem.template import Templates
from mdmem.template.compiled import COMPILED
from mdmem.template.sandbox import Sandbox

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
        made = Templates({}).render_text(source, {"x": 1}, now=NOW, name="same")
        assert made == source.replace("{{ x }}", "1") + "\n"


def test_no_more_than_some_are_kept() -> None:
    for number in range(200):
        Templates({}).render_text(f"{number}", {}, now=NOW)
        assert len(COMPILED._codes) <= 64
