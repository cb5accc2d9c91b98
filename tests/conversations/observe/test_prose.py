"""Sentences of what is written in Markdown, whole, and nothing that is none."""

from __future__ import annotations

from hypothesis import given, strategies as st

from mdmem.conversations.observe.prose import LONGEST, prose, without_home
from tests.tables import cases

ANN = "/Users/" + "ann"
BOB = "/home/" + "bob"


@cases(
    "text, found",
    [
        ("One is here. Two is there.", ["One is here.", "Two is there."]),
        ("It is so (e.g. here, etc.) and ends.", ["It is so (e.g. here, etc.) and ends."]),
        ("1. **Added** it\n2. Moved it", ["Added it", "Moved it"]),
        ("- [x] Wrote it\n  - And this", ["Wrote it", "And this"]),
        ("A line that is\nbroken in two.", ["A line that is broken in two."]),
        ("# No\n\n> No.\n\n    no\n\n```\nno\n```\n\n| a | b |\n|---|---|\n| no | no |\n\nYes.", ["Yes."]),
        ("Do this:\n```\nno\n```\n- item\n  ```\n  no\n  ```", ["Do this:", "item"]),
        ("It is so. It is so.", ["It is so."]),
        ("今天很好。我们决定用SQLite。", ["今天很好。", "我们决定用SQLite。"]),
        ("x.go:1:2: undefined: y\nx.go:3:4: undefined: z\nWhat is that?", ["What is that?"]),
        ("function f() {\nreturn 1;", []),
        ("", []),
    ],
)
def test_sentences_are_whole(text: str, found: list[str]) -> None:
    assert prose(text) == found


def test_what_is_too_long_for_a_sentence_is_left_out_and_not_cut() -> None:
    assert prose(f"{'word ' * LONGEST}end.\n\nShort it is.") == ["Short it is."]
    assert len(prose("A sentence stands here.\n\n" + "Another one stands here.\n\n" * 9_000)) == 2


@cases(
    "text, shown",
    [
        (f"in {ANN}/a/b.py", "in ~/a/b.py"),
        (f"`{BOB}`, {BOB}/x", "`~`, ~/x"),
        ("file://" + f"{BOB}/x", "~/x"),
        ("/var/home/" + "eve/x and /root/y and (/root)", "~/x and ~/y and (~)"),
        ("C:\\Users\\" + "Eve\\x", "~\\x"),
        ("https://example.com/home/page", "https://example.com/home/page"),
        ("src/root/x and /rooted/y", "src/root/x and /rooted/y"),
        ("/work/space/src/a.py", "src/a.py"),
        ("/work/spaces/a.py", "/work/spaces/a.py"),
    ],
)
def test_home_folders_and_the_workspace_are_not_told(text: str, shown: str) -> None:
    assert without_home(text, "/work/space") == shown


@given(st.text(st.sampled_from("aB .!?\n`*_|>#-1(){}:~中。\u202e"), max_size=200))
def test_property_a_sentence_is_one_line_and_no_row(text: str) -> None:
    for said in prose(text):
        assert said == " ".join(said.split())
        assert not said.startswith("|")
        assert len(said) <= LONGEST
