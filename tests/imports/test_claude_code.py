"""Claude Code's memory folder is taken in as it is: names become titles and aliases, types stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.memory.memory import Memory, open as open_memory

if TYPE_CHECKING:
    from pathlib import Path

FEEDBACK = """\
---
name: terse-answers
description: No summary at the end of an answer
type: feedback
modified: 2026-03-01T10:00:00Z
---

The user reads the diff. See [[user-role]].
"""
ROLE = """\
---
name: user-role
description: Who the user is
metadata:
  type: user
---

Writes Go.
"""


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return open_memory(mdmem.init(tmp_path / "memories").root)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "-home-me-app" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\n- [Answers](feedback_terse.md)\n")
    (folder / "feedback_terse.md").write_text(FEEDBACK)
    (folder / "user_role.md").write_text(ROLE)
    (folder.parent / "session.jsonl").write_text("{}\n")
    return folder


@pytest.mark.parametrize("of_repository", [True, False])
def test_its_files_keep_what_they_say_and_links_lead_where_they_led(
    memory: Memory, source: Path, *, of_repository: bool
) -> None:
    named = source.parent if of_repository else source
    applied = memory.import_("claude-code", str(named), to="notes/claude")
    assert applied.plan.left_out == ()
    feedback = memory.show("notes/claude/feedback_terse.md")
    assert feedback.body == FEEDBACK.rpartition("---\n")[2]
    assert {name: feedback.fields[name] for name in ("type", "title", "aliases", "modified", "name")} == {
        "type": "feedback",
        "title": "terse-answers",
        "aliases": ["terse-answers"],
        "modified": "2026-03-01T10:00:00Z",
        "name": "terse-answers",
    }
    assert memory.show("notes/claude/user_role.md").fields["type"] == "user"
    found = {r.target: r.state for r in memory.references.list(types=["note"])}
    assert found == {"notes/claude/feedback_terse.md": "ok", "notes/claude/user_role.md": "ok"}
    assert memory.check() == []


def test_the_same_again_changes_nothing(memory: Memory, source: Path) -> None:
    memory.import_("claude-code", str(source))
    assert not memory.import_("claude-code", str(source)).files
