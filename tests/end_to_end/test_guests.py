"""Whose files are whose: a violation is told as the config says, and refused where a change brings it in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import mdmem
from mdmem.errors import ConfigInvalid, Invalid, MdmemError
from mdmem.vault.config import DEFAULT_TEXT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mdmem.facade.memory import Memory

WRONG = "---\nconfidence: 7\ntags: {a: 1}\nsource: [{type: 3}]\n---\n# A\n\nold\n"
SCHEMA = (
    '{"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"n": {"type": "integer"}}}'
)


def make(tmp_path: Path, guests: str, **files: str) -> Memory:
    root = tmp_path / "memories"
    mdmem.init(root)
    text = DEFAULT_TEXT.replace("# guests = []", f"guests = [{guests}]")
    (root / ".mdmem/config.toml").write_text(text, "utf-8")
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, "utf-8", newline="")
    return mdmem.open(root)


@pytest.mark.parametrize("guests", ["", '"**"'])
@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        (lambda m: m.set("a.md", {"title": "New"}), False),
        (lambda m: m.set("a.md", {"confidence": 0.5}), False),
        (lambda m: m.set("a.md", {"confidence": 8}), True),
        (lambda m: m.set("a.md", {"tags": {"a": 2}}), True),
        (lambda m: m.set("a.md", {"expires": "soon"}), True),
        (lambda m: m.unset("a.md", "tags"), False),
        (lambda m: m.append("a.md", "more\n"), False),
        (lambda m: m.replace("a.md", "old", "new"), False),
        (lambda m: m.replace("a.md", "confidence: 7", "confidence: 9"), True),
        (lambda m: m.replace("a.md", "type: 3", "type: 4"), True),
        (lambda m: m.replace("a.md", "[{type: 3}]", "[{type: x}, {type: 3}]"), True),
        (lambda m: m.write("a.md", WRONG.replace("old", "other"), overwrite=True), False),
        (lambda m: m.write("a.md", WRONG.replace("# A", "# B").replace("7", "-1"), overwrite=True), True),
        (lambda m: m.write("b.md", WRONG), True),
        (lambda m: m.notes.append("n.md", "x\n", title="T"), False),
        (lambda m: m.mv("a.md", "notes/b.md"), False),
        (lambda m: m.mv("a.md", "projects/p/rules/b.md"), False),
        (lambda m: m.mv("a.md", "preferences/ui/theme.md"), True),
        (lambda m: m.mv("preferences/ui/font.md", "preferences/ui/face.md"), False),
        (lambda m: m.mv("preferences/ui/font.md", "notes/font.md"), False),
    ],
)
def test_a_change_is_refused_for_what_it_brings_in(
    tmp_path: Path, guests: str, change: Callable[[Memory], Any], *, is_refused: bool
) -> None:
    files = {"a.md": WRONG, "preferences/ui/font.md": "---\nnote: no value\n---\n"}
    memory = make(tmp_path, guests, **files)
    before = {path: memory.show(path).text for path in files}
    if is_refused:
        with pytest.raises(Invalid):
            change(memory)
        assert {path: memory.show(path).text for path in files} == before
    else:
        assert change(memory).files


def test_what_was_there_comes_back_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    memory = make(tmp_path, "", **{"a.md": WRONG})
    memory.rm("a.md")
    memory.undo()
    assert memory.show("a.md").text == WRONG
    memory.write("a.md", "# Sound\n", overwrite=True)
    memory.restore("a.md")
    assert memory.show("a.md").text == WRONG


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("notes/a.md", WRONG, {"note"}),
        ("notes/a.md", "---\ntitle: [\n---\n", {"note"}),
        ("notes/a.md", "---\n$schema: https://elsewhere.org/post\n---\n", {"note"}),
        ("notes/a.md", "---\ntype: rule\ntier: golden\n---\n", {"note"}),
        ("notes/a.json", '{"tags": 7, "$schema": "note"}', {"note"}),
        ("notes/a.json", "{", {"note"}),
        ("notes/a.md", "a\0b\n", {"note"}),
        ("preferences/ui/a.md", "no value\n", {"note"}),
        ("notes/a.md", "---\nsuperseded_by: gone\n---\n", {"note"}),
        ("notes/a.md", "[[gone]]\n", {"warning"}),
        ("notes/a.md", "---\ntype: own\nn: x\n---\n", {"error"}),
        ("notes/a.md", "---\n$schema: own\nn: x\nconfidence: 7\n---\n", {"error"}),
        ("rules/a.md", "---\nglobs: 7\n---\n", {"error"}),
        ("rules/a.md", "---\nglobs: [{a: 1}]\nenabled: maybe\n---\n", {"error"}),
        ("rules/a.md", "---\npriority: high\nconfidence: 7\n---\n", {"note"}),
        ("notes/a.md", "# A\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n", {"error"}),
        ("notes/a.md", "ghp_" + "uT3kVb9QzX1mJ7cLrW5nYh2SdG8fPa4EoKiM\n", {"warning"}),
    ],
)
def test_what_a_guest_breaks_is_a_note(tmp_path: Path, path: str, text: str, told: set[str]) -> None:
    memory = make(tmp_path, '"notes/**", "rules/**", "preferences/**"', **{path: text})
    (tmp_path / "memories/.mdmem/schemas").mkdir()
    (tmp_path / "memories/.mdmem/schemas/own.json").write_text(SCHEMA, "utf-8")
    assert {found.severity for found in memory.check()} == told
    assert {found.severity for found in memory.check([path])} == told


def test_what_is_no_guest_is_held_exactly(tmp_path: Path) -> None:
    memory = make(tmp_path, '"wiki/**", "!wiki/ours/**"', **{"wiki/ours/a.md": WRONG, "notes/a.md": WRONG})
    assert {found.severity for found in memory.check()} == {"error"}


def test_a_file_is_a_guest_by_its_path_in_the_vault_from_every_scope(tmp_path: Path) -> None:
    memory = make(tmp_path, '"projects/p/**"', **{"projects/p/notes/a.md": WRONG, "notes/a.md": WRONG})
    inside = mdmem.open(memory.root, scope=mdmem.Scope(project="p"))
    assert {found.severity for found in inside.check(["notes/a.md"])} == {"note"}


def test_the_same_id_in_guests_is_a_note(tmp_path: Path) -> None:
    same = dict.fromkeys(("wiki/a.md", "wiki/b.md"), "---\nid: x\n---\n")
    memory = make(tmp_path, '"wiki/**"', **same)
    assert [(found.code, found.severity) for found in memory.check()] == [("duplicate-id", "note")] * 2
    health = memory.doctor()
    assert health.facts["guests"] == "wiki/**"
    assert {found.severity for found in health.findings if found.code == "duplicate-id"} == {"note"}


@pytest.mark.parametrize(
    ("before", "guests"),
    [({}, ()), ({"a.txt": ""}, ()), ({"x/a.md": "# A\n"}, ("**",)), ({"a.mdx": ""}, ("**",))],
)
def test_init_says_that_the_markdown_of_a_folder_is_a_guest(
    tmp_path: Path, before: dict[str, str], guests: tuple[str, ...]
) -> None:
    for path, text in before.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    mdmem.init(tmp_path)
    assert mdmem.open(tmp_path).vault.config.check.guests == guests


@pytest.mark.parametrize("guests", ['"["', '"a{b"', "7"])
def test_a_glob_that_cannot_be_read_is_named(tmp_path: Path, guests: str) -> None:
    with pytest.raises((ConfigInvalid, MdmemError), match="guests"):
        make(tmp_path, guests, **{"a.md": "x"}).check()


def test_an_import_says_that_the_folder_that_it_fills_is_a_guest(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/a.md").write_text(WRONG, "utf-8")
    memory = make(tmp_path, '"old/**"')
    for _ in range(2):  # the second one finds it there
        memory.import_("obsidian", tmp_path / "vault", to="wi[k]i")
        config = mdmem.open(memory.root).vault.config
        assert config.check.guests == ("old/**", r"wi\[k\]i/**")
    assert {found.severity for found in memory.check()} == {"note"}
    assert memory.show("wi[k]i/a.md").text == WRONG


def test_an_import_into_a_config_that_cannot_be_added_to_says_what_to_add(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/a.md").write_text("# A\n", "utf-8")
    memory = make(tmp_path, '\n  "old/**",\n')
    memory.import_("obsidian", tmp_path / "vault")
    assert memory.show("notes/a.md").text == "# A\n"
    assert any("notes/**" in note for note in memory.vault.notes)
