"""The help: groups, whole sentences, what was meant, and topics."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

import mdmem
from mdmem.cli.help import (
    FIRST,
    GROUPS,
    explain_code,
    list_guides,
    pages,
    read_codes,
    read_other_names,
    read_topic,
    sentence,
    topics,
)
from mdmem.cli.main import app, main
from mdmem.errors import MdmemError
from mdmem.index.code.citations import BROKEN, STALE, code_of

DOCS = Path(__file__).parents[2] / "docs"
CONTEXT = click.Context(app, info_name="mdmem")
ALL = {name: app.get_command(CONTEXT, name) for name in app.list_commands(CONTEXT)}
COMMANDS = {name: each for name, each in ALL.items() if each and not each.hidden}


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints."""
    capsys.readouterr()
    assert main(arguments) == code
    out, errors = capsys.readouterr()
    return out if code == 0 else errors


def in_one_line(text: str) -> str:
    return " ".join(text.split())


# ----------------------------------------------------------------------------------------- lists of commands


def test_every_command_is_in_one_group() -> None:
    grouped = [name for group in GROUPS.values() for name in group.commands.split()]
    assert sorted(grouped) == sorted(COMMANDS)
    assert {*" ".join(FIRST.values()).split()} <= {*grouped}


def test_the_first_screen_has_a_line_for_each_command(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "--help")
    assert len(text.splitlines()) <= 45
    listed = dict(re.findall(r"^  ([a-z]+)  +(\S.*)$", text, re.MULTILINE))
    first = " ".join(FIRST.values()).split()
    assert len(first) == 20
    assert [name for name in listed if name not in GROUPS] == first
    assert all(listed[name] == sentence(COMMANDS[name]) for name in first)
    assert all(f"\n  {name} " in text for name in GROUPS)
    assert all(re.search(rf"[ ]{name}\b", text) for name in COMMANDS)
    assert "mdmem --help --all" in text
    assert told(capsys, "help") == text == told(capsys, "-h") == told(capsys, code=2)


def test_the_list_of_all_has_whole_sentences_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys, "--help", "--all")
    assert "..." not in text.partition("\n")[2]
    for name, each in COMMANDS.items():
        assert in_one_line(f"{name} {sentence(each)}") in in_one_line(text)
        assert sentence(each).endswith(".")
    titles = re.findall(r"^(\w.*):$", text, re.MULTILINE)
    more = ["Topics, as in `mdmem help json`", "Guides, as in `mdmem help find.md`"]
    assert titles == ["Options", *(group.title.capitalize() for group in GROUPS.values()), *more]
    assert told(capsys, "help", "--all") == text == told(capsys, "--all", "-h")
    assert "--help --all" in told(capsys, "--all", "ls", code=2)
    assert not {name for name, each in ALL.items() if each and each.hidden} & set(
        re.findall(r"^  ([a-z-]+)  ", text, re.MULTILINE)
    )


def leaves(group: click.Group = app, above: str = "") -> dict[str, click.Command]:
    """The commands that people type, without those that are hidden, by their whole names."""
    found: dict[str, click.Command] = {}
    for name in group.list_commands(CONTEXT):
        each = group.get_command(CONTEXT, name)
        assert each
        if not each.hidden:
            found |= (
                leaves(each, f"{above}{name} ") if isinstance(each, click.Group) else {above + name: each}
            )
    return found


def test_there_are_no_more_commands_than_one_can_hold() -> None:
    assert len(COMMANDS) <= 56
    assert len(leaves()) <= 106


# Commands that take the letters of another program, each as it means there.
BY_HABIT = {"grep": "ripgrep", "ls": "ls", "show": "cat", "git commit": "git"}


def test_a_flag_means_one_thing() -> None:
    """What the help says of a flag is the same wherever it is, but for the letters of other programs."""
    meanings: dict[str, dict[str, str]] = {}
    for name, each in {"": app, **leaves()}.items():
        for option in each.params:
            assert isinstance(option, click.Option | click.Argument)
            for flag in [*option.opts, *option.secondary_opts] if isinstance(option, click.Option) else []:
                if option.name != "same" and not (len(flag) == len("-n") and name in BY_HABIT):
                    meanings.setdefault(flag, {})[name] = option.help or ""
    several = {flag: where for flag, where in meanings.items() if len(set(where.values())) > 1}
    assert several == {}
    assert all(text for where in meanings.values() for text in where.values())


NO_VERBS = {"A", "As", "At", "For", "In", "Of", "On", "Only", "That", "The", "What", "Which", "Who", "With"}


def test_each_line_of_the_help_says_what_happens_to_which_thing() -> None:
    for name, each in {"": app, **leaves(), **COMMANDS}.items():
        lines = [sentence(each), *(option.help for option in each.params if isinstance(option, click.Option))]
        for line in filter(None, lines):
            first = line.split()[0]
            assert first not in NO_VERBS, (name, line)
            assert first[0].isupper(), (name, line)
            assert not re.search(r"of which|of what|whose", line), (name, line)


@pytest.mark.parametrize("name", [name for name, each in COMMANDS.items() if isinstance(each, click.Group)])
def test_a_group_lists_its_commands_with_whole_sentences(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    group = ALL[name]
    assert isinstance(group, click.Group)
    text = told(capsys, name, "--help")
    assert "..." not in text.partition("\n")[2]
    for each in group.commands.values():
        if each.hidden:
            assert f"\n  {each.name}  " not in text
            continue
        assert in_one_line(f"{each.name} {sentence(each)}") in in_one_line(text)


@pytest.mark.parametrize("columns", ["1", "20", "200"])
def test_help_takes_any_width(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert told(capsys, "help", "environment")
    assert told(capsys, "--help")


# ---------------------------------------------------------------------------------------- what was meant


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("serch x", "search"),
        ("apend", "append"),
        ("cat notes/db.md", "show"),
        ("delete x", "rm"),
        ("log", "history"),
        ("blame notes/db.md", "git blame"),
        ("who notes/db.md", "git blame"),
        ("decision", "new"),
        ("review", "git review"),
        ("help propose", "inbox propose"),
        ("notes lst", "list"),
        ("inbox acept x", "accept"),
        ("help jsn", "json"),
        ("help serch", "search"),
        ("help notes lst", ""),
    ],
)
def test_a_name_that_is_none_is_answered_with_what_was_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = told(capsys, *typed.split(), code=2)
    assert (f"Did you mean {meant!r}" in errors) == bool(meant)
    assert "see `mdmem" in errors


def test_what_is_like_nothing_is_answered_with_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean" not in told(capsys, "xyzzyx", code=2)
    assert "Did you mean" not in told(capsys, "notes", "delete", code=2)  # rm is no command of notes


def test_an_option_is_answered_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--json" in told(capsys, "ls", "--jsn", code=2)


def test_words_of_other_programs_are_none_of_ours_and_mean_one() -> None:
    names = read_other_names("commands")
    assert not names.keys() & ALL.keys()
    assert len(names) > 40
    for meant in names.values():
        assert {each.split()[0] for each in meant.split(", ")} <= {*ALL, "--version"}


# --------------------------------------------------------------------------------------- help of something


@pytest.mark.parametrize("names", [["show"], ["notes"], ["notes", "append"], ["help"]])
def test_help_on_a_command_is_that_of_the_command(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "help", *names) == told(capsys, *names, "--help")


@pytest.mark.parametrize("name", GROUPS)
def test_help_on_a_group_of_commands_lists_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert name not in ALL
    text = told(capsys, "help", name)
    for each in GROUPS[name].commands.split():
        assert in_one_line(f"{each} {sentence(COMMANDS[each])}") in in_one_line(text)


@pytest.mark.parametrize("name", pages())
def test_a_page_of_the_documentation_is_printed_as_it_is(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / name).read_text()
    assert told(capsys, "help", name) == text
    stem = name.removesuffix(".md")
    if stem in ALL or stem in GROUPS:
        assert told(capsys, "help", stem).endswith(f"\nGuide: mdmem help {name}\n")
    else:
        assert told(capsys, "help", stem) == text


def test_guides_are_the_pages_that_people_write_for_users() -> None:
    guides = dict(list_guides())
    assert guides.keys() < {*pages()}
    assert "find.md" in guides
    assert not guides.keys() & {"contributing.md", "commands.md", "config.md", "wrong.md"}
    assert all(title and title[0].isupper() for title in guides.values())


# ------------------------------------------------------------------------------------------------- codes

PACKAGE = Path(mdmem.__file__).parent
CODES = {code: text for codes in read_codes().values() for code, text in codes.items()}


def codes_of_errors(base: type[MdmemError] = MdmemError) -> set[str]:
    return {code for each in base.__subclasses__() for code in {*each.codes, *codes_of_errors(each)}}


def codes_in_calls() -> set[str]:
    """The codes that stand as a text where a finding or a notice is made."""
    found = set()
    places = {"about_file": 1, "Flaw": 1, "Notice": 0, "_make_finding": 3, "_warn_at_field": 2}
    for file in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            place = places.get(getattr(call.func, "id", "")) if isinstance(call, ast.Call) else None
            if isinstance(call, ast.Call) and place is not None and len(call.args) > place:
                code = call.args[place]
                found |= {str(code.value)} if isinstance(code, ast.Constant) else set()
    return found


def test_every_code_is_explained() -> None:
    assert codes_of_errors() | codes_in_calls() <= {*CODES}


def test_every_code_that_is_explained_exists() -> None:
    source = "".join(file.read_text() for file in PACKAGE.rglob("*.py") if file.name != "help.py")
    states = {f"citation-{state}" for state in STALE}
    made = [code for code in CODES if f'"{code}"' not in source and code not in states]
    assert made == ["schema-KEYWORD"]


@pytest.mark.parametrize("code", [*CODES, "schema-minLength"])
def test_a_code_is_explained_with_what_to_do(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert code not in ALL
    text = told(capsys, "help", code)
    meaning, _, remedy = (explain_code(code)).strip("\n").partition("\n")
    assert in_one_line(text) == in_one_line(f"{code}: {meaning} {remedy}")
    assert meaning.endswith(".")
    assert remedy.endswith(".")


def test_a_state_that_refs_prints_is_explained_as_its_finding(capsys: pytest.CaptureFixture[str]) -> None:
    for state in BROKEN:
        assert told(capsys, "help", state).startswith(
            explain_code(code_of(state)).split("\n")[0][:20], len(state) + 2
        )


def test_the_version_has_a_short_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "-V") == told(capsys, "--version") == f"mdmem {mdmem.__version__}\n"


@pytest.mark.parametrize("name", topics())
def test_a_topic_is_printed_whole(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    title, text = read_topic(name)
    assert name not in ALL
    assert title[0].isupper()
    assert not title.endswith(".")
    printed = told(capsys, "help", name)
    assert printed.startswith(f"{name}: {title}\n\n")
    assert printed.split()[len(f"{name} {title}".split()) :] == text.split()


def test_the_environment_is_told_whole() -> None:
    """Every variable that the program reads, but for what it sets in programs that it starts."""
    source = "".join(file.read_text() for file in Path(mdmem.__file__).parent.rglob("*.py"))
    read = set(re.findall(r'"((?:MDMEM|XDG)_[A-Z_]+|(?:NO|CLICOLOR)_[A-Z]+)"', source)) - {
        "MDMEM_ASKED",
        "MDMEM_WORKER",
    }
    assert read <= set(re.findall(r"^    (\S+)", read_topic("environment")[1], re.MULTILINE))
