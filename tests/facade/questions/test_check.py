"""What is wrong with memories: with its exact place, and what silences it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mdmem
from mdmem.diagnostic import Related, Span
from mdmem.errors import ConfigInvalid

if TYPE_CHECKING:
    from pathlib import Path

    from mdmem.facade.memory import Memory

SECRET = "ghp_" + "uT3kVb9QzX1mJ7cLrW5nYh2SdG8fPa4EoKiM"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    mdmem.init(tmp_path / "memories")
    return mdmem.open(tmp_path / "memories")


def put(memory: Memory, path: str, text: str) -> str:
    with open(f"{memory.root}/{path}", "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return text


@pytest.mark.parametrize(
    ("text", "code", "about"),
    [
        ("😀 [[gone]]\r\n", "dangling-link", "gone"),
        ("\u2028 [[b#Nothing]]\n", "dangling-link", "Nothing"),
        ("[[b#^none]]\n", "dangling-link", "^none"),
        ("[[two]]\n", "ambiguous-link", "two"),
        ("![[two.png]]\n", "ambiguous-link", "two.png"),
        ("![[one.png]] ![[none.png]]\n", "dangling-link", "none.png"),
        ("[x](gone.md#a 'title')\n", "dangling-link", "gone.md"),
        ("[x][ref]\n\n[ref]: gone.md\n", "dangling-link", "gone.md"),
        ("---\nnote: 'see [[gone]]'\n---\n", "dangling-link", "gone"),
        ("😀 [x](no.pdf) `no.py` no/such.py [y](x/one.png) [z](../app.py)\n", "dangling-link", "no.pdf"),
        ("[x][r] [y][r]\n\n[r]: ../no.py#L3\n", "dangling-link", "../no.py#L3"),
        ("---\nid: same\n---\n", "duplicate-id", "same"),
    ],
)
def test_a_finding_stands_where_it_is_about(memory: Memory, text: str, code: str, about: str) -> None:
    put(memory, "b.md", "---\nid: same\n---\n# B\n\n## Twice\n\n## Twice\n")
    memory.write("x/two.md", "# T\n")
    memory.write("y/two.md", "# T\n")
    for name in ("x/one.png", "x/two.png", "y/two.png", "../app.py"):
        put(memory, name, "a picture")
    put(memory, "a.md", text)
    (found,) = memory.check(["a.md"])
    assert (found.code, text[slice(*found.span)]) == (code, about)
    assert found.position.column == found.span.start - text.rfind("\n", 0, found.span.start)


def test_a_file_that_a_mount_hides_is_a_finding(memory: Memory, tmp_path: Path) -> None:
    put(memory, "AGENTS.md", "# Hidden\n")
    put(memory, "../AGENTS.md", "# Mounted\n")
    assert memory.check() == []
    put(memory, ".mdmem/config.toml", '[mounts]\n"AGENTS.md" = "../AGENTS.md"\n')
    for asked in (mdmem.open(memory.root), mdmem.open(memory.root, mdmem.Scope(shared=True))):
        assert [(f.path, f.code, f.severity) for f in asked.check()] == [
            ("AGENTS.md", "mount-shadows", "error")
        ]
    assert mdmem.open(memory.root, mdmem.Scope(user="ann")).check() == []
    assert mdmem.open(memory.root).check(["AGENTS.md"]) == []
    (tmp_path / "memories/AGENTS.md").unlink()
    (tmp_path / "memories/AGENTS.md").symlink_to("../AGENTS.md")
    assert mdmem.open(memory.root).check() == [], "it is the mounted file by another name"


def test_a_template_that_is_broken_or_not_there_is_a_finding_of_the_whole(
    memory: Memory, tmp_path: Path
) -> None:
    memory.write("notes/a.md", "a\n")
    (tmp_path / "memories/.mdmem/templates").mkdir()
    put(memory, ".mdmem/templates/daily.md", "\n{% if %}\n")
    (found,) = memory.check()
    assert (found.path, found.position.line) == (".mdmem/templates/daily.md", 2)
    assert (found.code, found.message) == (
        "template-broken",
        "Expected an expression, got 'end of statement block'",
    )
    assert memory.check(["notes"]) == []
    put(memory, ".mdmem/config.toml", '[kinds.recipe]\nfolder = "recipes"\ntemplate = "none"\n')
    (found,) = mdmem.open(memory.root).check()
    assert (found.path, found.code) == (".mdmem/config.toml", "config-invalid")


def test_a_schema_of_the_vault_that_is_broken_is_a_finding_of_the_whole(
    memory: Memory, tmp_path: Path
) -> None:
    memory.write("notes/a.md", "a\n")
    schemas = tmp_path / "memories/.mdmem/schemas"
    schemas.mkdir(exist_ok=True)
    (schemas / "cut.json").write_text('{"type":\n')
    (schemas / "latin.json").write_bytes(b'{"title":\n"caf\xe9"}')
    cut, latin = memory.check()
    assert (cut.path, cut.position.line, cut.code) == (".mdmem/schemas/cut.json", 1, "invalid-json")
    assert (latin.path, latin.code) == (".mdmem/schemas/latin.json", "not-utf8")
    assert "byte 0xe9 at offset 14" in latin.message
    assert memory.check(["notes"]) == []


def test_the_pictures_of_another_user_are_not_found_by_their_names(memory: Memory) -> None:
    for user in ("ann", "bob"):
        mine = mdmem.open(memory.root, mdmem.Scope(user=user))
        mine.write("notes/a.md", "![[bob.png]]\n")
        put(memory, f"users/{user}/notes/{user}.png", "a picture")
    (found,) = mdmem.open(memory.root, mdmem.Scope(user="ann")).check()
    assert (found.code, found.message) == ("dangling-link", "there is no memory or file 'bob.png'")
    assert mdmem.open(memory.root, mdmem.Scope(user="bob")).check() == []


def test_a_finding_names_the_places_that_it_is_also_about(memory: Memory) -> None:
    memory.write("x/two.md", "---\nid: same\n---\n")
    memory.write("y/two.md", "# T\n")
    put(memory, "a.md", "---\nid: same\n---\n[[two]]\n")
    related = {found.code + str(found.position.line): found.related for found in memory.check(["a.md"])}
    assert related["duplicate-id2"] == (Related("x/two.md", Span(0, 0), "it has the same id"),)
    assert [place.path for place in related["ambiguous-link4"]] == ["x/two.md", "y/two.md"]


def test_code_that_a_memory_cites_is_compared_with_what_it_was(memory: Memory) -> None:
    code = f"{memory.workspace}/app.py"
    with open(code, "w", encoding="utf-8") as file:
        file.write("".join(f"value_{n} = {n} * {n}\n" for n in range(9)))
    text = put(memory, "a.md", "`app.py#L2-L3` `app.py#L5-L6` `never.py#L1`\n")
    assert memory.check() == []
    with open(code, "w", encoding="utf-8") as file:
        file.write(
            "new = 1\n" + "".join(f"value_{n} = {n} * {n}\n" for n in range(9)).replace("value_5", "x")
        )
    memory.sync()
    found = memory.check()
    assert {(f.code, text[slice(*f.span)]) for f in found} <= {
        ("citation-moved", "app.py#L2-L3"),
        ("citation-changed", "app.py#L2-L3"),
        ("citation-changed", "app.py#L5-L6"),
    }
    assert len(found) == 2
    assert memory.check(links=False) == []


@pytest.mark.parametrize(
    ("comment", "told"),
    [
        ("<!-- mdmem: silence dangling-link -->", []),
        ("<!--mdmem: silence other, dangling-link-->", []),
        ("<!-- mdmem: silence dangling-links -->", ["dangling-link"]),
        ("```\n<!-- mdmem: silence dangling-link -->\n```", ["dangling-link"]),
        ("<!-- mdmem: silence -->", ["dangling-link"]),
    ],
)
def test_a_comment_silences_codes_in_its_memory(memory: Memory, comment: str, told: list[str]) -> None:
    put(memory, "a.md", f"[[gone]]\n\n{comment}\n")
    put(memory, "b.md", "[[gone]]\n")
    assert [found.code for found in memory.check(["a.md"])] == told
    assert [found.code for found in memory.check(["b.md"])] == ["dangling-link"]
    assert [found.path for found in memory.check()] == ["a.md"] * len(told) + ["b.md"]


def test_the_config_silences_codes_and_never_a_secret(memory: Memory) -> None:
    put(memory, ".mdmem/config.toml", "[check]\nsilenced = ['dangling-link', 'secret']\n")
    put(memory, "a.md", f"[[gone]]\n\n<!-- mdmem: silence secret -->\n\ntoken {SECRET}\n")
    assert [found.code for found in mdmem.open(memory.root).check()] == ["secret"]


def test_a_config_that_is_not_utf8_is_refused(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "memories/.mdmem/config.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigInvalid, match="it is not UTF-8: byte 0xe9 at offset 5"):
        mdmem.open(memory.root).write("notes/a.md", "a\n")


def test_a_path_behind_the_wall_is_told_as_one_that_leads_nowhere(memory: Memory) -> None:
    ways = [
        "/users/{}/notes/x.md",
        "/memories/users/{}/notes/x.md",
        "../../{}/notes/x.md?raw=1",
        "/notes/{}/",
    ]
    mdmem.open(memory.root, mdmem.Scope(user="bob")).write("notes/x.md", "# X\n")
    memory.write("notes/bob/index.md", "# Shared\n")
    ann = mdmem.open(memory.root, mdmem.Scope(user="ann"))
    ann.write("notes/b.md", "")
    told = []
    for user in ("bob", "eve"):
        put(ann, "users/ann/notes/a.md", "".join(f"[x]({way})\n".format(user) for way in ways))
        told.append([(f.code, f.message.replace(user, "{}"), f.position) for f in ann.check()])
    assert [code for code, *_ in told[0]] == ["dangling-link"] * len(ways)
    assert told[0] == told[1]
