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


def run_page(page: Path, capfd: pytest.CaptureFixture[str], *, is_check: bool) -> tuple[int, str]:
    """Run a page in a fork of this process: its exit code, and what is said of it."""
    code = examples.run_page(str(page), is_check=is_check)
    return code, capfd.readouterr().out


def test_the_readme_prints_what_it_shows(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_page(CHECKOUT / "README.md", capfd, is_check=True) == (0, "")


@pytest.mark.soak
def test_every_page_prints_what_it_shows(tmp_path: Path) -> None:
    command = [sys.executable, str(CHECKOUT / "bench/examples.py"), "--check", *map(str, PAGES)]
    environ = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
    assert [*tmp_path.iterdir()] == []


def test_the_python_of_every_page_is_python() -> None:
    for page in PAGES:
        compile(examples.Page(page).code(), page, "exec")


@pytest.mark.soak
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


def test_what_differs_from_run_to_run_is_compared_by_its_kind(
    page: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_page(page, capfd, is_check=True) == (0, "")


def test_an_output_that_is_another_is_named_with_its_line_and_put_in(
    page: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    right = page.read_text()
    wrong = right.replace("made the vault", "built it").replace("\n1\n", "\n2\n")
    page.write_text(wrong.replace("```text\na.md", "```text\nb.md"))
    code, told = run_page(page, capfd, is_check=True)
    assert code == 1
    assert re.findall(rf"^{page}:(\d+):$", told, re.MULTILINE) == ["4", "17", "28"]
    assert run_page(page, capfd, is_check=False)[0] == 0
    assert page.read_text() == right


def test_a_command_that_fails_says_so_on_the_page(page: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page.write_text(page.read_text().replace("$ echo $?\n1\n", ""))
    for is_check in (False, True):
        code, told = run_page(page, capfd, is_check=is_check)
        assert code == 1
        assert "ended with 1: mdmem show nothing" in told
