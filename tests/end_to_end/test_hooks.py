"""Hooks as hosts run them, with the JSON of Claude Code and of Codex, in a repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import mdmem
from mdmem.document.text.tokens import estimate
from mdmem.facade.memory import open as open_memory
from tests.end_to_end.shell import copy_folder, run_program
from tests.git.conftest import SETTINGS
from tests.speed import soak_most
from tests.tables import cases
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = {"type": "object", "properties": {"status": {"enum": ["open", "done"]}}, "required": ["status"]}
CODE = "import os\n\n\ndef answer():\n    return 42\n"


class Said(NamedTuple):
    """What a hook said."""

    out: str
    errors: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def context(self) -> str:
        text: str = self.json["hookSpecificOutput"]["additionalContext"]
        return text


class Repository:
    """A repository with a vault, and an agent that works in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.vault = root / "memories"

    def hook(
        self,
        event: str,
        given: Any,
        *,
        codex: bool = False,
        scope: Sequence[str] = (),
        is_program: bool = False,
    ) -> Said:
        """Run a hook as a host does; it never fails."""
        env = {
            name: value for name, value in os.environ.items() if not name.startswith(("MDMEM_", "CLAUDE_"))
        }
        if not codex:
            env["CLAUDE_PROJECT_DIR"] = str(self.root)
        asked = given if isinstance(given, str) else json.dumps(given)
        ended = run_program([*scope, "hook", event], asked, self.root, env, is_program=is_program)
        assert ended.returncode == 0, ended.stderr
        return Said(ended.stdout, ended.stderr)

    def edited(self, path: str, tool: str = "Edit") -> dict[str, Any]:
        """What Claude Code says when its tool has changed a file."""
        return {
            "session_id": "5e1f",
            "transcript_path": str(self.root / "transcript.jsonl"),
            "cwd": str(self.root),
            "permission_mode": "default",
            "hook_event_name": "PostToolUse",
            "tool_name": tool,
            "tool_input": {"file_path": str(self.root / path), "old_string": "a", "new_string": "b"},
            "tool_response": {"filePath": str(self.root / path), "success": True},
            "tool_use_id": "toolu_01",
        }

    def patched(self, *paths: str) -> dict[str, Any]:
        """What Codex says when it has applied a patch."""
        files = "".join(f"*** Update File: {path}\n@@\n-a\n+b\n" for path in paths)
        return {
            "session_id": "5e1f",
            "turn_id": "t-1",
            "transcript_path": None,
            "cwd": str(self.root),
            "hook_event_name": "PostToolUse",
            "model": "gpt",
            "permission_mode": "default",
            "tool_name": "apply_patch",
            "tool_input": {"command": f"*** Begin Patch\n{files}*** End Patch\n"},
            "tool_response": "Success.",
            "tool_use_id": "call_1",
        }

    def stopped(self, *, again: bool = False) -> dict[str, Any]:
        return {
            "session_id": "5e1f",
            "cwd": str(self.root),
            "hook_event_name": "Stop",
            "stop_hook_active": again,
        }


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("prepared") / "repo"
    (root / "src").mkdir(parents=True)
    git = partial(subprocess.run, check=True, cwd=root, env=os.environ | SETTINGS)
    git(["git", "init", "-q", "--template="])
    vault = mdmem.init(root / "memories").root
    (root / "memories/.mdmem/schemas").mkdir()
    (root / "memories/.mdmem/schemas/task.json").write_text(json.dumps(SCHEMA))
    (root / "src/app.py").write_text(CODE)
    memory = open_memory(vault)
    memory.write(
        "notes/task.md", "---\ntype: task\nstatus: open\n---\n# Task\n\nSee [[db]] and `src/app.py#L4-L5`.\n"
    )
    memory.write("notes/db.md", "# Database\n")
    (root / "AGENTS.md").write_text("# Demo\n\n## Decisions\n\n- Use files\n")
    git(["git", "add", "-A"])
    git(["git", "commit", "-qm", "x"])
    git(["git", "repack", "-adq"])
    memory.sync()
    memory.index.close()
    return root


@pytest.fixture
def repository(prepared: Path, tmp_path: Path) -> Repository:
    copy_folder(prepared, tmp_path / "repo")
    return Repository(tmp_path / "repo")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# -- behind an edit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("codex", [False, True])
def test_an_edit_that_breaks_a_schema_comes_back_with_line_reason_and_fix(
    repository: Repository, *, codex: bool
) -> None:
    change(repository.vault / "notes/task.md", "status: open", "status: started")
    path = "memories/notes/task.md"
    given = repository.patched(path) if codex else repository.edited(path)
    said = repository.hook("post-edit", given, codex=codex)
    assert said.json.keys() == {"decision", "reason"}
    assert said.json["decision"] == "block"
    line = said.json["reason"]
    assert line.startswith("notes/task.md:3: schema-enum: ")
    assert "started" in line
    assert 'Fix: accepted: one of "open", "done".' in line


@pytest.mark.parametrize("codex", [False, True])
def test_an_edit_of_code_says_which_memories_went_stale(repository: Repository, *, codex: bool) -> None:
    change(repository.root / "src/app.py", "return 42", "return 43")
    given = repository.patched("src/app.py") if codex else repository.edited("src/app.py")
    said = repository.hook("post-edit", given, codex=codex)
    assert said.json["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
    assert said.context.startswith("notes/task.md:7: citation-changed: it points at src/app.py#L4-L5 (")
    assert (
        "Fix: read the code, fix the text, then `mdmem refs --pin --accept --in notes/task.md`"
        in said.context
    )


def test_code_that_moved_says_where_to(repository: Repository) -> None:
    change(repository.root / "src/app.py", "import os\n", "import os\nimport re\nimport sys\n")
    said = repository.hook("post-edit", repository.edited("src/app.py"))
    assert said.context.startswith(
        "notes/task.md:7: citation-moved: it points at src/app.py#L4-L5 (moved to src/app.py#L6-L7)"
    )
    assert "`mdmem refs --fix --in notes/task.md` makes it say so" in said.context


def test_code_that_changed_says_nothing_of_a_memory_that_does_not_count(repository: Repository) -> None:
    memory = open_memory(repository.vault)
    memory.write("notes/newer.md", "Newer.\n")
    memory.supersede("notes/task.md", "notes/newer.md")
    change(repository.root / "src/app.py", "import os\n", "import os\nimport re\nimport sys\n")
    assert repository.hook("post-edit", repository.edited("src/app.py")) == Said("", "")


def test_an_edit_that_makes_a_link_dangle_says_where(repository: Repository) -> None:
    change(repository.vault / "notes/task.md", "[[db]]", "[[database]]")
    said = repository.hook("post-edit", repository.edited("memories/notes/task.md"))
    assert said.context.startswith(
        "notes/task.md:7: dangling-link: it points at database (there is no memory 'database')"
    )


def test_an_edit_that_misspells_a_cited_file_says_so(repository: Repository) -> None:
    change(repository.vault / "notes/task.md", "src/app.py#L4-L5", "src/ap.py#L4-L5")
    said = repository.hook("post-edit", repository.edited("memories/notes/task.md"))
    assert said.context == (
        "notes/task.md:7: citation-unknown: it points at src/ap.py#L4-L5 (there is no such file)."
        " Fix: correct its name or number."
    )


def test_a_mounted_file_is_a_memory_too(repository: Repository) -> None:
    change(repository.root / "AGENTS.md", "- Use files", "- Use [[nothing]]")
    said = repository.hook("post-edit", repository.edited("AGENTS.md"))
    assert said.context.startswith("AGENTS.md:5: dangling-link: ")


def test_errors_and_references_come_together_and_each_once(repository: Repository) -> None:
    task = repository.vault / "notes/task.md"
    change(task, "status: open", "status: started")
    change(repository.root / "src/app.py", "return 42", "return 43")
    reason = repository.hook(
        "post-edit", repository.patched("memories/notes/task.md", "src/app.py"), codex=True
    ).json["reason"]
    assert [line.split(":")[2].strip() for line in reason.splitlines()] == ["schema-enum", "citation-changed"]


def test_what_is_wrong_in_many_places_is_cut_and_counted(repository: Repository) -> None:
    links = "".join(f"[[none{n}]]\n" for n in range(30))
    (repository.vault / "notes/many.md").write_text(links)
    lines = repository.hook(
        "post-edit", repository.edited("memories/notes/many.md", "Write")
    ).context.splitlines()
    assert len(lines) == 13
    assert lines[-1].startswith("18 more: ")


@cases(
    "path",
    ["memories/notes/db.md", "src/other.py", "memories/.mdmem/config.toml", "../elsewhere.md", "gone.md"],
)
def test_an_edit_that_leaves_all_well_says_nothing(repository: Repository, path: str) -> None:
    assert repository.hook("post-edit", repository.edited(path, "Write")) == Said("", "")


def command(repository: Repository, session: str = "5e1f") -> dict[str, Any]:
    """What Claude Code says when a command has run."""
    given = {"session_id": session, "cwd": str(repository.root), "hook_event_name": "PostToolUse"}
    return {**given, "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": ""}}


def test_behind_a_command_what_it_changed_is_looked_at(repository: Repository) -> None:
    assert repository.hook("post-edit", command(repository)) == Said("", "")  # its first look
    assert repository.hook("post-edit", command(repository)) == Said("", "")
    change(repository.root / "src/app.py", "return 42", "return 43")
    (repository.root / "src/other.py").write_text("nobody cites it\n")
    said = repository.hook("post-edit", command(repository))
    named, found = said.context.split("\n", 1)
    assert re.fullmatch(r"Changed since \d\d:\d\d:\d\d, perhaps by somebody else: src/app\.py\.", named)
    assert found.startswith("notes/task.md:7: citation-changed: it points at src/app.py#L4-L5")
    assert repository.hook("post-edit", command(repository)) == Said("", "")
    change(repository.vault / "notes/task.md", "status: open", "status: started")
    assert "schema-enum" in repository.hook("post-edit", command(repository)).json["reason"]
    (repository.vault / "notes/new.md").write_text("[[nothing]]\n")
    assert "notes/new.md:1: dangling" in repository.hook("post-edit", command(repository)).context
    (repository.root / "src/app.py").unlink()
    assert "gone" in repository.hook("post-edit", command(repository)).out


def test_behind_a_command_nobody_is_blamed_for_what_others_wrote(repository: Repository) -> None:
    for session in ("a", "b"):
        repository.hook("post-edit", command(repository, session))
    change(repository.vault / "notes/task.md", "status: open", "status: started")
    edited = {**repository.edited("memories/notes/task.md"), "session_id": "b"}
    assert "schema-enum" in repository.hook("post-edit", edited).json["reason"]
    assert repository.hook("post-edit", command(repository, "a")) == Said("", "")
    # A person writes before the next prompt.
    (repository.vault / "notes/new.md").write_text("[[nothing]]\n")
    repository.hook("user-prompt", {"session_id": "a", "cwd": str(repository.root), "prompt": "Go on."})
    assert repository.hook("post-edit", command(repository, "a")) == Said("", "")


def test_a_memory_of_another_namespace_is_none_of_its_business(repository: Repository) -> None:
    change(repository.vault / "notes/task.md", "status: open", "status: started")
    given = repository.edited("memories/notes/task.md")
    assert repository.hook("post-edit", given, scope=("--user", "alice")) == Said("", "")


# -- beginning, compaction, end ---------------------------------------------------------------------------


def working(repository: Repository, text: str, seconds_ago: float = 0, thread: str = "t1") -> None:
    memory = open_memory(repository.vault)
    memory.working.update(text, thread=thread)
    path = repository.vault / f"working/threads/{thread}.md"
    then = path.stat().st_mtime - seconds_ago
    os.utime(path, (then, then))


def test_a_session_begins_with_what_is_kept(repository: Repository) -> None:
    working(repository, "State: tests are red.")
    open_memory(repository.vault).preferences.set("ui", "theme", "dark")
    given = {
        "session_id": "5e1f",
        "cwd": str(repository.root),
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    (repository.root / "CLAUDE.md").write_text("# Claude\n")  # which is read instead of AGENTS.md
    said = repository.hook("session-start", given, is_program=True)
    assert said.json["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    places = [said.context.find(text) for text in ("Use files", "dark", "tests are red")]
    assert -1 < places[0] < places[1] < places[2]


def test_a_session_is_told_the_project_memory_unless_its_host_reads_it_for_certain(
    repository: Repository,
) -> None:
    """Claude Code reads it with an import; without CLAUDE.md, not on each provider and with each setting."""
    given = {"session_id": "5e1f", "cwd": str(repository.root), "hook_event_name": "SessionStart"}
    told = "Use files"
    assert told in repository.hook("session-start", given).context
    assert repository.hook("session-start", given, codex=True) == Said("", "")
    assert told in repository.hook("session-start", {**given, "cwd": "/"}, codex=True).context
    for text, is_told in (("# Claude\n", True), ("See @AGENTS.md\n", False)):
        (repository.root / "CLAUDE.md").write_text(text)
        assert (told in repository.hook("session-start", given).out) == is_told
        assert repository.hook("session-start", given, codex=True) == Said("", "")


@pytest.mark.parametrize("is_mounted", [True, False])
def test_a_session_is_told_a_rule_unless_its_host_reads_it_as_it_is_now(
    repository: Repository, *, is_mounted: bool
) -> None:
    if not is_mounted:
        config = repository.vault / ".mdmem/config.toml"
        config.write_text(config.read_text().partition("[mounts]")[0])
    given = {"session_id": "5e1f", "cwd": str(repository.root), "hook_event_name": "SessionStart"}
    memory = open_memory(repository.vault)
    memory.write("rules/style.md", "Short sentences.\n")
    memory.write("rules/python.md", "---\nglobs: ['*.py']\n---\n\nTypes everywhere.\n")
    assert "Short sentences." in repository.hook("session-start", given).context
    memory.project.sync()
    for codex in (False, True):
        said = repository.hook("session-start", given, codex=codex).context
        assert "Short sentences." not in said
        assert "Types everywhere." in said, "of which the file has the place alone"
    memory.replace("rules/style.md", "Short", "Shorter")
    assert "Shorter sentences." in repository.hook("session-start", given).context
    memory.project.sync()
    (repository.root / "CLAUDE.md").unlink()
    assert "Shorter sentences." in repository.hook("session-start", given).context


def test_a_session_is_told_of_a_file_that_its_host_cuts_off(repository: Repository) -> None:
    (repository.root / "AGENTS.md").write_text(f"# Decisions\n\n- Use files\n\n# Long\n\n{'word ' * 8_000}\n")
    given = {"session_id": "5e1f", "cwd": str(repository.root), "hook_event_name": "SessionStart"}
    assert "Use files" in repository.hook("session-start", given, codex=True).context


def test_a_session_begins_with_its_own_thread_else_with_the_newest(repository: Repository) -> None:
    memory = open_memory(repository.vault)
    memory.working.update("State: mine.", thread="5e1f")
    working(repository, "State: of another session.")
    for session, own in (("5e1f", "mine"), ("new", "of another session")):
        given = {"session_id": session, "cwd": str(repository.root), "source": "resume"}
        context = repository.hook("session-start", given).context
        assert f"State: {own}" in context
        assert ("of another session, thread t1 (0 min ago)" in context) == (session == "new")
        assert ("`mdmem working set TEXT --thread claude-code:new`" in context) == (session == "new")


def test_working_memory_has_the_key_that_the_log_and_the_results_of_a_session_have(
    repository: Repository,
) -> None:
    working(repository, "State: of another session.")
    repository.hook("post-edit", repository.edited("src/app.py"))
    told = re.search(r"--thread (\S+)`", repository.hook("stop", repository.stopped()).json["reason"])
    assert told
    memory = open_memory(repository.vault)
    memory.working.update("State: mine.", thread=told[1])
    given = {"session_id": "5e1f", "cwd": str(repository.root), "source": "resume"}
    context = repository.hook("session-start", given).context
    assert "State: mine." in context
    assert "another session" not in context
    assert told[1] == "claude-code:5e1f"  # as `sessions capture` names it


def test_a_session_is_given_no_observations_of_another_one(repository: Repository) -> None:
    working(repository, "State: of another session.")
    text = "---\nsession: t1\n---\nIt was said elsewhere.\n"
    (repository.vault / "observations/t1").mkdir(parents=True)
    (repository.vault / "observations/t1/0a1b2c3d-1-5.md").write_text(text)
    given = {"session_id": "new", "cwd": str(repository.root)}
    context = repository.hook("session-start", given).context
    assert "State: of another session." in context
    assert "It was said elsewhere." not in context


# -- with a prompt ----------------------------------------------------------------------------------------

BILLING = (
    "# Billing\n\nInvoices are rendered by the worker `ledger`, and sent at night.\n\nRefunds: two days.\n"
)


@pytest.fixture
def asked(repository: Repository) -> Any:
    memory = open_memory(repository.vault)
    memory.write("notes/billing.md", BILLING)
    memory.write(
        "notes/tagged.md", "---\ndescription: Quarterly telescope calibration\n---\nPoint it north.\n"
    )
    for number, word in enumerate(("apples", "bridges", "candles", "dragons", "engines", "forests")):
        memory.write(f"notes/{number}.md", f"# {word}\n\nWe like {word} and the worker that makes them.\n")
    memory.sync()
    memory.index.close()

    def ask(prompt: Any, *, codex: bool = False, scope: Sequence[str] = ()) -> Said:
        given = {"session_id": "5e1f", "cwd": str(repository.root), "prompt": prompt}
        given["hook_event_name"] = "UserPromptSubmit"
        return repository.hook("user-prompt", given, codex=codex, scope=scope)

    return ask


@pytest.mark.parametrize("codex", [False, True])
def test_a_prompt_is_given_the_passages_that_fit_it(asked: Any, *, codex: bool) -> None:
    said = asked("How are invoices rendered at night, -by tag:whom?", codex=codex)
    assert said.json["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert "notes/billing.md#L1-L3" in said.context
    assert "the worker `ledger`" in said.context
    assert "dragons" not in said.context


def test_a_prompt_of_a_user_in_a_project_is_given_what_is_wider(asked: Any, repository: Repository) -> None:
    """Also where AGENTS.md fits, which the host reads by itself."""
    with (repository.root / "AGENTS.md").open("a") as file:
        file.write("\nInvoices are rendered at night.\n")
    said = asked("How are invoices rendered at night?", scope=("--user", "ada", "--project", "p"))
    assert said.errors == ""
    assert "shared:notes/billing.md#L1-L3" in said.context
    assert "AGENTS.md" not in said.context


def test_a_prompt_is_not_told_a_short_project_memory_again_but_a_long_one(
    asked: Any, repository: Repository
) -> None:
    prompt = "Why does this repository use files?"
    assert asked(prompt) == Said("", "")
    with (repository.root / "AGENTS.md").open("a") as file:
        file.write("\n## More\n\n" + "Another line.\n" * 100)
    assert "Use files" in asked(prompt).context
    assert asked(prompt, codex=True) == Said("", "")


def test_a_prompt_without_spaces_between_words_is_answered(asked: Any, repository: Repository) -> None:
    open_memory(repository.vault).write("notes/tide.md", "# 潮汐\n\n潮汐表は青い。\n")
    assert "潮汐表は青い" in asked("潮汐表は青いか").context


@cases(
    "prompt",
    [
        "",
        "yes",
        "continue please",
        "Refactor the parser so that it does not copy strings, then run the tests of the worker",
        "the worker",
        "- [ ] :::",
        "Why does this repository use files?",  # AGENTS.md says so, which the session has from its beginning
        None,
        5,
        "x " * 100_000,
    ],
)
def test_a_prompt_that_nothing_fits_well_is_given_nothing(asked: Any, prompt: Any) -> None:
    assert asked(prompt) == Said("", "")


@pytest.mark.parametrize("prompt", ["Is the database still one file?", "Does the database need a server?"])
def test_the_only_memory_is_given_with_a_prompt_about_it(tmp_path: Path, prompt: str) -> None:
    """A word that it does not have counts no more than one that it has."""
    memory = open_memory(mdmem.init(tmp_path / "memories").root)
    memory.write("notes/db.md", "# SQLite\n\nThe database is one file, without a server.\n")
    assert "without a server" in Repository(tmp_path).hook("user-prompt", {"prompt": prompt}).context
    assert Repository(tmp_path).hook("user-prompt", {"prompt": "Run the tests of one parser."}) == Said(
        "", ""
    )


@cases(
    "prompt",
    [
        "Add retries with exponential backoff to the invoice export, and write a test.",
        "1. Add retries, with backoff, to the invoice export. 2. Write a test.",
    ],
)
def test_a_long_prompt_is_given_what_several_of_its_words_fit(
    asked: Any, repository: Repository, prompt: str
) -> None:
    """The words that no memory has do not outweigh them."""
    text = "Retries of the invoice export are off: the bank rejects duplicates.\n"
    open_memory(repository.vault).write("notes/export.md", text, overwrite=True)
    assert "the bank rejects duplicates" in asked(prompt).context


@cases("prompt", ["Fix links in README.md", "1. build 2. check 3. skip 4. push"])
def test_numbers_of_a_list_and_endings_of_files_fit_nothing(
    asked: Any, repository: Repository, prompt: str
) -> None:
    text = "1. Fetch the keys of the links.\n2. Sign.\n3. Send.\n4. Wait.\n"
    open_memory(repository.vault).write("notes/steps.md", text, overwrite=True)
    assert asked(prompt) == Said("", "")


def test_what_fits_a_prompt_by_its_fields_is_told_by_its_text(asked: Any) -> None:
    said = asked("When is the quarterly telescope calibration?")
    assert "Point it north." in said.context
    assert "description:" not in said.context


def test_what_is_told_with_a_prompt_is_bounded(asked: Any, repository: Repository) -> None:
    lines = "".join(f"- invoices rendered at night, case {number}\n" for number in range(2_000))
    open_memory(repository.vault).write("notes/many.md", f"# Invoices\n\n{lines}")
    assert estimate(asked("How are invoices rendered at night?").context) < 600


def test_an_empty_vault_has_nothing_to_begin_with(tmp_path: Path) -> None:
    mdmem.init(tmp_path / "memories")
    for event in ("session-start", "pre-compact", "stop"):
        assert Repository(tmp_path).hook(event, {"stop_hook_active": False}) == Said("", "")


def test_before_compaction_each_host_is_told_in_its_form(repository: Repository) -> None:
    working(repository, "State: red.")
    given = {
        "session_id": "5e1f",
        "hook_event_name": "PreCompact",
        "trigger": "auto",
        "custom_instructions": "",
    }
    text = repository.hook("pre-compact", given).out
    assert "- working/threads/t1.md (changed " in text
    assert "Keep in the summary" in text
    said = repository.hook("pre-compact", {**given, "turn_id": "1", "model": "gpt"}, codex=True)
    assert said.json == {"systemMessage": text.removesuffix("\n")}


def test_a_stop_behind_edits_asks_once_for_the_working_memory(repository: Repository) -> None:
    working(repository, "State: red.", seconds_ago=180, thread="5e1f")
    assert repository.hook("stop", repository.stopped()).out == ""
    repository.hook("post-edit", repository.edited("src/app.py"))
    assert repository.hook("stop", repository.stopped(again=True)).out == ""
    said = repository.hook("stop", repository.stopped())
    assert said.json["decision"] == "block"
    assert "working/threads/5e1f.md was written (3 min ago)" in said.json["reason"]
    assert "`mdmem working set TEXT --thread 5e1f`" in said.json["reason"]
    assert repository.hook("stop", repository.stopped()).out == ""


def test_a_stop_names_the_thread_of_its_own_session(repository: Repository) -> None:
    memory = open_memory(repository.vault)
    memory.working.update("State: mine.", thread="5e1f")
    working(repository, "State: of another session.")
    then = (repository.vault / "working/threads/5e1f.md").stat().st_mtime - 300
    os.utime(repository.vault / "working/threads/5e1f.md", (then, then))
    repository.hook("post-edit", repository.edited("src/app.py"))
    working(repository, "State: written later.")
    reason = repository.hook("stop", repository.stopped()).json["reason"]
    assert "working/threads/5e1f.md was written (5 min ago)" in reason
    assert "--thread 5e1f`" in reason


@pytest.mark.parametrize("others", [("t1",), ("t1", "b")])
def test_a_stop_without_a_thread_of_its_own_names_no_other_session_s(
    repository: Repository, others: tuple[str, ...]
) -> None:
    for other in others:
        working(repository, "State: of another session.", thread=other)
    stopped = {**repository.stopped(), "session_id": "a b"}
    repository.hook("post-edit", {**repository.edited("src/app.py"), "session_id": "a b"})
    reason = repository.hook("stop", stopped).json["reason"]
    assert "--thread 'claude-code:a b'`" in reason
    assert "t1" not in reason


def test_a_stop_says_nothing_where_working_memory_is_newer_than_the_edits(repository: Repository) -> None:
    repository.hook("post-edit", repository.edited("src/app.py"))
    working(repository, "State: green.", thread="5e1f")
    assert repository.hook("stop", repository.stopped()).out == ""


def test_a_stop_that_does_not_say_whether_it_was_stopped_before_is_let_go(repository: Repository) -> None:
    working(repository, "State: red.", seconds_ago=180)
    repository.hook("post-edit", repository.edited("src/app.py"))
    assert repository.hook("stop", {"session_id": "5e1f"}).out == ""


# -- what was said ----------------------------------------------------------------------------------------


def write_turns(transcript: Path, *, codex: bool, texts: list[str]) -> None:
    """Go on with a transcript as its host writes it."""
    with transcript.open("a", encoding="utf-8") as file:
        if codex and not file.tell():
            file.write(json.dumps({"type": "session_meta", "payload": {"id": transcript.stem}}) + "\n")
        for text in texts:
            if codex:
                content = [{"type": "input_text", "text": text}]
                said = {"type": "message", "role": "user", "content": content}
                line = {"type": "response_item", "payload": said}
            else:
                line = {"type": "user", "message": {"role": "user", "content": text}}
            file.write(json.dumps(line) + "\n")


@pytest.mark.parametrize("codex", [False, True])
def test_a_stop_and_a_compaction_keep_what_was_said(repository: Repository, *, codex: bool) -> None:
    transcript = repository.root / "5e1f.jsonl"
    write_turns(transcript, codex=codex, texts=["Which database?", "SQLite."])
    told = {"session_id": "5e1f", "transcript_path": str(transcript), "cwd": str(repository.root)}
    repository.hook("stop", told, codex=codex)
    sessions = open_memory(repository.vault).sessions
    assert sessions.list() == []  # not unless the config says so
    (repository.vault / ".mdmem" / "config.toml").write_text('[sessions]\ncapture = "hooks"\n')
    refused = repository.hook("stop", told, codex=codex, is_program=True)  # what is logged is on its errors
    assert "allow-capture" in refused.errors  # nor unless the user does
    begun = repository.hook("session-start", told, codex=codex)
    assert "allow-capture" in json.loads(begun.out)["systemMessage"]
    assert sessions.list() == []
    sessions.allow_capture()
    key = f"{'codex' if codex else 'claude-code'}:5e1f"
    for event, more in (("stop", []), ("pre-compact", ["Why?"]), ("stop", ["It is one file."])):
        write_turns(transcript, codex=codex, texts=more)
        assert repository.hook(event, told, codex=codex).errors == ""
    said = [message.text for message in open_memory(repository.vault).sessions.history(key)]
    assert said == ["Which database?", "SQLite.", "Why?", "It is one file."]


@pytest.mark.parametrize(
    ("event", "codex"),
    soak_most(product(["stop", "pre-compact"], [False, True]), quick=(0, 3)),
)
def test_a_conversation_is_observed_by_a_process_that_nobody_waits_for(
    repository: Repository, event: str, *, codex: bool
) -> None:
    transcript = repository.root / "5e1f.jsonl"
    write_turns(transcript, codex=codex, texts=["We take SQLite, since it is one file. " * 150])
    told = {"session_id": "5e1f", "transcript_path": str(transcript), "cwd": str(repository.root)}
    config = repository.vault / ".mdmem" / "config.toml"
    key = f"{'codex' if codex else 'claude-code'}:5e1f"
    config.write_text('[sessions]\ncapture = "hooks"\n')
    open_memory(repository.vault).sessions.allow_capture()
    assert repository.hook(event, told, codex=codex).errors == ""
    observations = open_memory(repository.vault).observations
    assert observations.due(key) == ("observe",)  # not unless the config says so
    config.write_text('[sessions]\ncapture = "hooks"\n[observation]\nenabled = true\n')
    assert repository.hook(event, told, codex=codex).errors == ""
    until(lambda: not observations.due(key))
    (found,) = observations.list(key)
    (made,) = open_memory(repository.vault).history(found.path)
    assert made.actor == key.partition(":")[0]
    again = repository.hook("session-start", {**told, "source": "resume"}, codex=codex).context
    assert "## Conversation memory" in again
    assert found.text in again
    other = repository.hook("session-start", {**told, "session_id": "another"}, codex=codex).out
    assert "Conversation memory" not in other


def test_only_the_file_that_the_host_names_is_read(repository: Repository) -> None:
    (repository.vault / ".mdmem" / "config.toml").write_text('[sessions]\ncapture = "hooks"\n')
    open_memory(repository.vault).sessions.allow_capture()
    real = repository.root / "elsewhere.jsonl"
    write_turns(real, codex=False, texts=["secret"])
    link = repository.root / "5e1f.jsonl"
    link.symlink_to(real)
    os.mkfifo(repository.root / "pipe.jsonl")
    for path in (link, repository.root, repository.root / "pipe.jsonl", "elsewhere.jsonl", "", None, 3):
        given = {"session_id": "5e1f", "transcript_path": path and str(path), "cwd": str(repository.root)}
        assert repository.hook("stop", given).out == ""
    assert open_memory(repository.vault).sessions.list() == []


# -- whatever goes wrong ----------------------------------------------------------------------------------

EVENTS = ["session-start", "user-prompt", "post-edit", "post-tool", "pre-compact", "stop", "background"]


@cases("event", EVENTS)
def test_without_a_vault_it_is_silent(tmp_path: Path, event: str) -> None:
    assert Repository(tmp_path).hook(event, {"tool_input": {"file_path": "a.md"}}) == Said("", "")


GIVEN = [
    *("", "nonsense", "[]", "5", '{"tool_input": 5}', '{"tool_input": {"file_path": 5}}'),
    *('{"tool_input": {"file_path": "a\\u0000.md"}}', '{"prompt": "a\\ud800 b"}'),
]


@cases("event", [*EVENTS, "no-such-event"])
def test_whatever_it_is_given_the_turn_goes_on(prepared: Path, tmp_path: Path, event: str) -> None:
    copy_folder(prepared, tmp_path / "repo")
    repository = Repository(tmp_path / "repo")
    for given in GIVEN:
        said = repository.hook(event, given)
        assert event == "session-start" or said.out == "", given
        assert said.errors == "" or said.errors.startswith("mdmem hook: "), given
        assert "Traceback" not in said.errors


def test_a_word_that_is_no_event_is_a_note_that_names_them(repository: Repository) -> None:
    said = repository.hook("post-edti", "{}")
    assert said.out == ""
    assert "there is no event 'post-edti'" in said.errors
    assert "session-start, user-prompt, post-edit, post-tool, pre-compact, stop" in said.errors


def test_a_broken_config_is_a_note(repository: Repository) -> None:
    (repository.vault / ".mdmem/config.toml").write_text("[")
    said = repository.hook("post-edit", repository.edited("memories/notes/task.md"))
    assert said.out == ""
    assert "config.toml" in said.errors


def test_findings_come_also_where_no_index_can_be_made(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(repository.vault / "notes/task.md", "status: open", "status: started")
    index = repository.vault / ".mdmem/local/index"
    shutil.rmtree(index)
    index.write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    reason = repository.hook("post-edit", repository.edited("memories/notes/task.md")).json["reason"]
    assert "schema-enum" in reason
    assert "references were not looked at" in reason
