"""The resolver: which memory a link means, and the shortest way to say it."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from mdmem.document.document import parse_text
from mdmem.index.links.resolve import Resolution, namespaces, place_of, resolve, resolve_link, shortest
from tests.index.links.conftest import Notes
from tests.speed import examples
from tests.tables import cases

VAULT = Notes(
    {
        "notes/db.md": "---\nid: 01HXDB\naliases: [Database, the store]\n---\n",
        "notes/deep/cache.md": "---\nid: cache\n---\n",
        "notes/api.v1.md": "",
        "notes/Readme.md": "",
        "notes/data.json": "{}",
        "other/db.md": "",
        "other/cache.md": "",
        "readme.md": "",
        "README2.md": "",
        "notes/only.md": "",
        "notes/caf\u00e9.md": "",
        "notes/x.json.md": "",
    },
    others=[
        "notes/img.png",
        "assets/logo.svg",
        "a/x/pic.png",
        "b/pic.png",
        "b/v1.0",
        "notes/page.mdx",
        "Make",
    ],
)


def meant(target: str, source: str = "index.md", *, as_path: bool = False) -> tuple[str, list[str]]:
    found = resolve(VAULT, target, source, as_path=as_path)
    assert found.path == (found.candidates[0] if found.candidates else None)
    assert found.ambiguous == (len(found.candidates) > 1)
    return found.rule, list(found.candidates)


@cases(
    "target, expected",
    [
        ("only", ("suffix", ["notes/only.md"])),
        ("only.md", ("suffix", ["notes/only.md"])),
        ("notes/only", ("suffix", ["notes/only.md"])),
        ("api.v1", ("suffix", ["notes/api.v1.md"])),
        ("ONLY", ("suffix", ["notes/only.md"])),
        ("nly", ("", [])),
        ("otes/only", ("", [])),
        ("Only.MD", ("", [])),
        ("data", ("", [])),
        ("data.json", ("suffix", ["notes/data.json"])),
        ("x.json", ("suffix", ["notes/x.json.md"])),
        ("cafe\u0301", ("suffix", ["notes/caf\u00e9.md"])),
        ("01HXDB", ("id", ["notes/db.md"])),
        ("01hxdb", ("", [])),
        ("cache", ("id", ["notes/deep/cache.md"])),
        ("the STORE", ("alias", ["notes/db.md"])),
        ("Database", ("alias", ["notes/db.md"])),
        ("db", ("suffix", ["notes/db.md", "other/db.md"])),
        ("other/db", ("suffix", ["other/db.md"])),
        ("readme", ("suffix", ["readme.md"])),
        ("Readme", ("suffix", ["notes/Readme.md"])),
        ("REAdme", ("suffix", ["readme.md", "notes/Readme.md"])),
        ("assets/logo.svg", ("attachment", ["assets/logo.svg"])),
        ("logo.svg", ("attachment", ["assets/logo.svg"])),
        ("LOGO.svg", ("attachment", ["assets/logo.svg"])),
        ("ogo.svg", ("", [])),
        ("logo.svg/", ("", [])),
        ("pic.png", ("attachment", ["b/pic.png", "a/x/pic.png"])),
        ("x/pic.png", ("attachment", ["a/x/pic.png"])),
        ("a/pic.png", ("", [])),
        ("v1.0", ("attachment", ["b/v1.0"])),
        ("page.mdx", ("", [])),
        ("Make", ("attachment", ["Make"])),
        ("only/", ("", [])),
        ("notes/", ("attachment", ["notes"])),
        ("a/../notes/only", ("", [])),
    ],
)
def test_identifiers_by_id_then_path_suffix_then_alias(target: str, expected: tuple[str, list[str]]) -> None:
    assert meant(target) == expected


@cases(
    "target, source, expected",
    [
        ("./only", "notes/a.md", ("path", ["notes/only.md"])),
        ("./only.md", "notes/a.md", ("path", ["notes/only.md"])),
        ("../other/db", "notes/a.md", ("path", ["other/db.md"])),
        ("../db", "notes/deep/a.md", ("path", ["notes/db.md"])),
        ("./db", "a.md", ("", [])),
        ("/notes/db", "other/a.md", ("path", ["notes/db.md"])),
        ("/db", "notes/a.md", ("", [])),
        ("/Notes/DB", "a.md", ("path", ["notes/db.md"])),
        ("./img.png", "notes/a.md", ("attachment", ["notes/img.png"])),
        ("./data", "notes/a.md", ("", [])),
        ("./data.json", "notes/a.md", ("path", ["notes/data.json"])),
        ("../readme", "notes/a.md", ("path", ["readme.md"])),
        ("../../readme", "notes/a.md", ("", [])),
        ("../../x/readme", "notes/a.md", ("", [])),
        ("..", "notes/a.md", ("", [])),
        ("../notes", "other/a.md", ("attachment", ["notes"])),
    ],
)
def test_wikilinks_that_begin_like_a_path_are_paths(
    target: str, source: str, expected: tuple[str, list[str]]
) -> None:
    assert meant(target, source) == expected


def test_an_attachment_by_its_name_is_one_in_the_folder_of_the_link_first() -> None:
    assert meant("pic.png", "b/n.md") == ("attachment", ["b/pic.png"])
    assert meant("pic.png", "a/x/n.md") == ("attachment", ["a/x/pic.png"])
    assert meant("pic.png", "a/n.md") == ("attachment", ["b/pic.png", "a/x/pic.png"])


def test_a_markdown_destination_is_always_a_path() -> None:
    assert meant("logo.svg", "other/a.md", as_path=True) == ("", [])
    assert meant("db.md", "other/a.md", as_path=True) == ("path", ["other/db.md"])
    assert meant("db", "other/a.md", as_path=True) == ("path", ["other/db.md"])
    assert meant("only.md", "other/a.md", as_path=True) == ("", [])
    assert meant("01HXDB", "other/a.md", as_path=True) == ("", [])


def test_links_of_each_kind_resolve_by_how_they_are_written() -> None:
    text = "---\nup: '[[only]]'\n---\n[[only]] [t](only.md) ![[./img.png]] [r] [[#A]] [s](#a)\n\n"
    text += "[r]: ../other/db\n"
    document = parse_text("notes/a.md", text)
    paths = [resolve_link(VAULT, link, "notes/a.md").path for link in document.links]
    assert paths == [
        *("notes/only.md", "notes/only.md", "notes/only.md", "notes/img.png"),
        *("other/db.md", "notes/a.md", "notes/a.md", "other/db.md"),
    ]


def test_the_empty_target_is_the_memory_itself() -> None:
    assert resolve(VAULT, "", "notes/a.md") == Resolution("notes/a.md", ("notes/a.md",), "self")


def test_the_winner_is_in_the_same_folder_else_has_the_fewest_parts_else_comes_first() -> None:
    names = Notes(["b/x.md", "a/x.md", "a/deep/x.md", "c/d/x.md"])
    ordered = {
        source: list(resolve(names, "x", source).candidates) for source in ("m.md", "c/d/m.md", "b/m.md")
    }
    assert ordered == {
        "m.md": ["a/x.md", "b/x.md", "a/deep/x.md", "c/d/x.md"],
        "c/d/m.md": ["c/d/x.md", "a/x.md", "b/x.md", "a/deep/x.md"],
        "b/m.md": ["b/x.md", "a/x.md", "a/deep/x.md", "c/d/x.md"],
    }


def test_a_namespace_comes_before_those_around_it() -> None:
    own, user = "users/al/projects/p/notes/x.md", "users/al/notes/x.md"
    project, all_ = "projects/p/notes/x.md", "notes/x.md"
    source = "users/al/projects/p/notes/m.md"
    paths = [own, user, project, all_, "users/bo/notes/x.md"]
    while paths[0] != all_:
        assert resolve(Notes(paths), "x", source).candidates == (paths.pop(0),)
    assert resolve(Notes(paths), "x", source).candidates == (all_,)


@cases(
    "target, source, expected",
    [
        ("x", "notes/m.md", []),
        ("x", "users/bo/m.md", []),
        ("x", "users/bo/projects/p/m.md", []),
        ("x", "users/al/m.md", ["users/al/notes/x.md"]),
        ("x", "users/al/projects/p/m.md", ["users/al/notes/x.md"]),
        ("notes/x", "notes/m.md", []),
        ("al/notes/x", "notes/m.md", []),
        ("users/al/notes/x", "notes/m.md", ["users/al/notes/x.md"]),
        ("Users/AL/notes/x.md", "users/bo/m.md", ["users/al/notes/x.md"]),
        ("id-of-al", "notes/m.md", []),
        ("Alf", "users/bo/m.md", []),
        ("Alf", "users/al/m.md", ["users/al/notes/x.md"]),
        ("al.png", "notes/m.md", []),
        ("al.png", "users/al/m.md", ["users/al/p/al.png"]),
        ("y", "notes/m.md", ["users/y.md"]),
    ],
)
def test_a_name_means_nothing_of_another_user(target: str, source: str, expected: list[str]) -> None:
    of_al = "---\nid: id-of-al\naliases: [Alf]\n---\n"
    names = Notes({"users/al/notes/x.md": of_al, "users/y.md": ""}, ["users/al/p/al.png"])
    assert list(resolve(names, target, source).candidates) == expected


def test_a_complete_path_is_complete_in_whatever_case() -> None:
    vault = Notes(["users/Al/notes/db.md", "users/Al/deep/notes/db.md"])
    for target in ("notes/db", "NOTES/DB"):
        assert resolve(vault, target, "users/Al/x.md").candidates == ("users/Al/notes/db.md",)


def test_of_many_with_one_name_the_one_beside_is_first_and_none_is_missing() -> None:
    paths = [f"p{number}/readme.md" for number in range(50)]
    vault = Notes([*paths, "p7/deep/readme.md"])
    found = resolve(vault, "readme", "p7/x.md").candidates
    assert found[0] == "p7/readme.md"
    assert found[1:] == (*sorted(set(paths) - {"p7/readme.md"}), "p7/deep/readme.md")


def test_a_complete_path_is_not_ambiguous() -> None:
    names = Notes(["notes/db.md", "projects/p/notes/db.md", "projects/q/notes/db.md"])
    assert resolve(names, "notes/db", "a.md").candidates == ("notes/db.md",)
    assert resolve(names, "notes/db", "projects/q/notes/a.md").candidates == ("projects/q/notes/db.md",)
    assert resolve(names, "projects/p/notes/db", "projects/q/a.md").candidates == ("projects/p/notes/db.md",)
    assert resolve(names, "p/notes/db", "a.md").candidates == ("projects/p/notes/db.md",)


def test_two_memories_with_one_id_or_alias_are_ambiguous() -> None:
    names = Notes({"b.md": "---\nid: i\naliases: al\n---\n", "a.md": "---\nid: i\naliases: [AL]\n---\n"})
    assert resolve(names, "i", "c.md") == Resolution("a.md", ("a.md", "b.md"), "id")
    assert resolve(names, "Al", "c.md") == Resolution("a.md", ("a.md", "b.md"), "alias")


@cases(
    "path, expected",
    [
        ("notes/x.md", [""]),
        ("projects/p/x.md", ["projects/p/", ""]),
        ("users/a/resources/t/1/x.md", ["users/a/resources/t/1/", "users/a/", ""]),
        (
            "users/a/projects/p/resources/t/1/x.md",
            ["users/a/projects/p/resources/t/1/", "users/a/projects/p/", "users/a/", "projects/p/", ""],
        ),
        ("users/x.md", [""]),
    ],
)
def test_namespaces_from_the_inside(path: str, expected: list[str]) -> None:
    assert namespaces(path) == expected


def test_shortest_says_no_more_than_it_needs() -> None:
    names = Notes(["a/x.md", "b/x.md", "b/c/y.md", "x/b/x.md", "z.md", "n/z.md", "d.json"])
    said = {path: shortest(names, path, "m/m.md") for path in names.documents}
    assert said == {
        "a/x.md": "a/x",
        "b/x.md": "b/x",
        "b/c/y.md": "y",
        "x/b/x.md": "x/b/x",
        "z.md": "/z",
        "n/z.md": "n/z",
        "d.json": "d.json",
    }
    assert shortest(names, "b/c/y.md", "m.md", parts=2) == "c/y"
    assert shortest(names, "b/c/y.md", "m.md", parts=9) == "b/c/y"


def test_shortest_avoids_ids_and_aliases_of_others() -> None:
    names = Notes(
        {"a/x.md": "", "b.md": "---\nid: x\n---\n", "c/y.md": "", "d.md": "---\naliases: [y]\n---\n"}
    )
    assert shortest(names, "a/x.md", "m.md") == "a/x"
    assert shortest(names, "c/y.md", "m.md") == "y"


part = st.sampled_from(["a", "b", "A", "notes", "users", "projects", "ä", "x.y"])
paths = st.lists(part, min_size=1, max_size=4).map(lambda parts: "/".join(parts) + ".md")
vaults = st.lists(
    st.one_of(paths, paths.map(lambda path: path[:-3] + ".json")), min_size=1, max_size=10, unique=True
)


@given(vaults, paths, st.data())
@settings(max_examples=examples(100))
def test_the_shortest_identifier_means_that_memory_and_nothing_else(
    vault: list[str], source: str, data: st.DataObject
) -> None:
    names = Notes(vault)
    path = data.draw(st.sampled_from(vault))
    found = resolve(names, shortest(names, path, source), source)
    assert (found.path, found.ambiguous) == (path, False)


@given(vaults, paths, st.text(st.sampled_from("ab./é#%\\ \n"), max_size=12), st.booleans())
@settings(max_examples=examples(100))
def test_any_target_resolves_to_what_is_there_or_to_nothing(
    vault: list[str], source: str, target: str, as_path: bool
) -> None:
    names = Notes(vault)
    found = resolve(names, target, source, as_path=as_path)
    assert found.path is None or found.rule == "self" or names.exists(found.path)


@given(paths, st.lists(st.sampled_from(["..", ".", "a", ""]), max_size=10).map("/".join))
def test_no_path_leaves_the_namespace(source: str, target: str) -> None:
    place = place_of(target, source)
    assert place is None or not {"..", "."} & set(place.split("/"))


# -------------------------------------------------------------------------------------- suffixes of Markdown


@cases(
    "target, expected",
    [
        ("a", "n/a.md"),
        ("a.mdx", "n/a.mdx"),
        ("a.markdown", "n/a.markdown"),
        ("n/a.mdx", "n/a.mdx"),
        ("b", "b.mdx"),
        ("B", "b.mdx"),
        ("c", "c.markdown"),
        ("d.mdx", "d.mdx.md"),
        ("./n/a", "n/a.md"),
        ("./n/a.mdx", "n/a.mdx"),
        ("./b", "b.mdx"),
        ("/c", "c.markdown"),
        ("./d.mdx", "d.mdx.md"),
        ("e.mdx", "e.mdx"),
        ("c.md", None),
        ("b.markdown", None),
    ],
)
def test_a_name_means_md_before_mdx_before_markdown(target: str, expected: str | None) -> None:
    paths = ["n/a.markdown", "n/a.md", "n/a.mdx", "b.mdx", "c.markdown", "d.mdx.md"]
    found = resolve(Notes(paths, others=["e.mdx"]), target, "index.md")
    assert found.path == expected
    assert not found.ambiguous


@cases(
    "path, expected",
    [("b.mdx", "b"), ("n/a.md", "a"), ("n/a.mdx", "a.mdx"), ("m/c.mdx", "m/c"), ("c.mdx", "/c.mdx")],
)
def test_the_shortest_name_has_a_suffix_only_where_it_needs_one(path: str, expected: str) -> None:
    names = Notes(["b.mdx", "n/a.md", "n/a.mdx", "m/c.mdx", "c.mdx"])
    assert shortest(names, path, "k/index.md") == expected
