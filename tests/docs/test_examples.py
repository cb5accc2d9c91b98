"""The pages: their examples print what they show, and pass the type checker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

CHECKOUT = Path(__file__).parents[2]
sys.path.append(str(CHECKOUT / "bench"))

import examples  # noqa: E402 - it is where programs that measure are

PAGES = [*sorted((CHECKOUT / "docs").glob("*.md")), CHECKOUT / "README.md"]


def run_examples(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKOUT / "bench/examples.py"), *map(str, arguments)]
    environ = os.environ | {"TMPDIR": str(folder)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_every_page_prints_what_it_shows(tmp_path: Path) -> None:
    done = run_examples(tmp_path, "--check", *PAGES)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
    assert [*tmp_path.iterdir()] == []


def test_the_python_of_every_page_has_types(tmp_path: Path) -> None:
    found = examples.check_types([examples.Page(page) for page in PAGES], tmp_path)
    assert found.startswith("Success"), found


def test_a_hash_may_have_any_digits() -> None:
    for other in ("ecacdddf", "01234567"):
        assert examples.matches(["changed  notes/a.md  dccc949a"], [f"changed  notes/a.md  {other}"])


@pytest.fixture
def page(tmp_path: Path) -> Path:
    text = """\
    # A page

    ```console
    $ mdmem init
    made the vault /home/ada/demo/memories
        .gitignore
        .mdmem/config.toml
    $ cat > memories/a.md <<'END'
    > # A
    >
    > Made on 2026-01-31.
    > END
    $ mdmem show --only-hash memories/a.md
    0123456789abcdef
    $ mdmem show nothing
    …
    $ echo $?
    1
    ```

    ```python
    import mdmem

    memory = mdmem.open("memories")
    print(memory.ls()[0].path)
    ```

    ```text
    a.md
    ```
    """
    made = tmp_path / "page.md"
    made.write_text(dedent(text))
    return made


def test_what_differs_from_run_to_run_is_compared_by_its_kind(page: Path, tmp_path: Path) -> None:
    done = run_examples(tmp_path, "--check", page)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_an_output_that_is_another_is_named_with_its_line_and_put_in(page: Path, tmp_path: Path) -> None:
    right = page.read_text()
    wrong = right.replace("made the vault", "built it").replace("\n1\n", "\n2\n")
    page.write_text(wrong.replace("```text\na.md", "```text\nb.md"))
    done = run_examples(tmp_path, "--check", page)
    assert done.returncode == 1
    assert re.findall(rf"^{page}:(\d+):$", done.stdout, re.MULTILINE) == ["4", "17", "28"]
    assert run_examples(tmp_path, page).returncode == 0
    assert page.read_text() == right


def test_a_command_that_fails_says_so_on_the_page(page: Path, tmp_path: Path) -> None:
    page.write_text(page.read_text().replace("$ echo $?\n1\n", ""))
    for arguments in ([page], ["--check", page]):
        done = run_examples(tmp_path, *arguments)
        assert done.returncode == 1
        assert "ended with 1: mdmem show nothing" in done.stdout
