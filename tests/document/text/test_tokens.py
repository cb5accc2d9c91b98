"""Estimates are near what tokenizers make of a text, in every script, and never fall when a text grows.

What cannot be seen is shown, what writing needs stays, and no text closes the fence that it stands in.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given, settings, strategies as st
from markdown_it import MarkdownIt

from mdmem.document.text.tokens import abridged, clipped, counter, estimate, fenced, in_line, visible
from tests.document.text.kinds_of_text import texts
from tests.speed import examples
from tests.tables import cases


# What cl100k_base and o200k_base make of the same text, the smaller number first.
@cases(
    "text, least, most",
    [
        ("The decision was to use one file for the database, because it can be deleted at any time.", 19, 19),
        ("def parse(path: str, *, strict: bool = False) -> Config:\n    return load(path)\n", 21, 21),
        ("Die Entscheidung fiel für eine einzige Datei, weil sie jederzeit gelöscht werden kann.", 17, 24),
        ("Было решено использовать один файл, потому что его можно удалить в любой момент.", 18, 31),
        ("我们决定使用一个文件，因为它可以随时删除。", 15, 21),
        ("언제든지 삭제할 수 있기 때문에 하나의 파일을 사용하기로 결정했습니다.", 18, 28),
        ("Zdecydowano się użyć jednego pliku, ponieważ można go w każdej", 18, 22),
        ("Chúng tôi quyết định dùng một tệp duy nhất cho cơ sở dữ liệu,", 17, 32),
        ("Αποφασίστηκε να χρησιμοποιηθεί ένα αρχείο για τη βάση", 15, 49),
        ("הוחלט להשתמש בקובץ אחד עבור מסד הנתונים, מפני שאפשר למחוק אותו", 21, 59),
        ("تقرر استخدام ملف واحد لقاعدة البيانات لأنه يمكن حذفه في أي وقت", 17, 44),
        ("डेटाबेस के लिए एक ही फ़ाइल का उपयोग करने का निर्णय लिया गया,", 17, 62),
        ("เราตัดสินใจใช้ไฟล์เดียวสำหรับฐานข้อมูล", 12, 34),
        ("გადაწყდა, რომ მონაცემთა ბაზისთვის ერთი ფაილი გამოვიყენოთ,", 19, 106),
        ("ဒေတာဘေ့စ်အတွက် ဖိုင်တစ်ခုတည်းကို အသုံးပြုရန် ဆုံးဖြတ်ခဲ့သည်။", 28, 118),
        ("ለዳታቤዙ አንድ ፋይል ብቻ ለመጠቀም ተወስኗል፣ ምክንያቱም በማንኛውም ጊዜ ሊሰረዝ ይችላል።", 104, 140),
        (
            "データベースには一つのファイルを使うことに決めました。いつでも削除でき、人が書いたメモから作り直",
            34,
            48,
        ),
        ("🎉🚀✅❌🔥💡📝🧠👍😀 🐛🔧⚡", 24, 35),
        ("𝐓𝐡𝐞 𝐝𝐞𝐜𝐢𝐬𝐢𝐨𝐧 𝑤𝑎𝑠 𝕥𝕠 𝓾𝓼𝓮", 50, 56),
        ("→ ← ⇒ ≤ ≥ ≠ × ÷ … — – “ ” ‘ ’ • © ™ € £ ° ² ½ ∀ ∃ ∈", 31, 33),
        ("┌──────┬─────┐\n│ name │ n   │\n├──────┼─────┤\n└──────┴─────┘", 38, 39),
        (
            '{"path":"notes/db.md","hits":[{"line":12,"text":"One file."},{"line":40,"text":"Two."}]}',
            29,
            30,
        ),
    ],
)
def test_an_estimate_is_near_what_tokenizers_make_of_it(text: str, least: int, most: int) -> None:
    assert least * 0.7 <= estimate(text) <= most * 1.5


@cases("text, tokens", [("", 0), ("a", 1), ("word", 1), ("one file", 2), ("1", 2), ("123", 3), ("你好", 2)])
def test_an_estimate_of_few_characters(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


KINDS = texts()
NOT_MUCH_MORE = {
    *("English", "German", "Chinese", "notes with code", "diff of code", "prose and code", "indented code"),
    *(kind for kind in KINDS if kind.startswith("code of ")),
}


@cases("kind", KINDS)
def test_an_estimate_is_near_what_o200k_makes_of_a_kind_of_text(kind: str) -> None:
    """At least nine tenths of it; of prose and code, which most memories are, at most thirteen tenths."""
    pytest.importorskip("toktok")
    ratio = estimate(KINDS[kind]) / counter()(KINDS[kind])
    assert 0.9 <= ratio <= (1.3 if kind in NOT_MUCH_MORE else 4)


PIECES = st.one_of(
    st.text(),
    st.text(st.characters(codec="ascii")),
    st.sampled_from(["bcd", "XYZ", "12", ",;-", "\n", "\r\n", " ", *"éяשनế─한中😀\ud800"]),
)
TEXTS = st.lists(st.one_of(PIECES, st.sampled_from([each[:300] for each in KINDS.values()]))).map("".join)


@given(TEXTS, TEXTS)
@settings(max_examples=examples(1000))
@example("bc", "dfg")
@example("5", "5")
@example("a ", "5")
@example("\n", " ")
@example("x ", "中")
@example("jh", "hj" + "0" * 34)
def test_an_estimate_of_a_text_is_no_less_than_of_a_part_and_no_more_than_of_both_and_one(
    one: str, other: str
) -> None:
    both = estimate(one + other)
    assert max(estimate(one), estimate(other)) <= both <= estimate(one) + estimate(other) + 1


@given(st.characters())
def test_no_estimate_is_less_than_a_token_for_eight_characters(character: str) -> None:
    assert estimate(character * 40) >= 5


def test_a_character_that_is_spelled_by_its_bytes_costs_more_than_a_letter() -> None:
    """A tokenizer that knows no character spells it in at most one token for each byte."""
    for number in range(0x10000, sys.maxunicode, 0x100):
        if unicodedata.category(chr(number)) != "Cn":
            assert estimate(chr(number) * 4) >= 7, hex(number)


def test_where_a_tokenizer_is_installed_it_counts() -> None:
    pytest.importorskip("toktok")
    assert counter()("hello world") == 2
    assert counter()("언제든지 삭제할 수 있기 때문에") == 9
    assert counter()("a\ud800b") > 1
    assert counter()("") == 0


def test_an_estimate_can_be_asked_for_all_the_same() -> None:
    assert counter(estimated=True) is estimate


def test_without_a_tokenizer_tokens_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "toktok", None)
    assert counter() is estimate


@pytest.mark.parametrize(
    "text", ["word " * 200, "было решено " * 60, "データベース" * 60, "{'a': [1, 2]}, " * 60]
)
def test_an_estimate_is_near_what_the_tokenizer_counts(text: str) -> None:
    pytest.importorskip("toktok")
    exact = counter()(text)
    assert exact * 0.7 <= estimate(text) <= exact * 2.5
    assert math.isclose(estimate(text * 3), 3 * estimate(text), abs_tol=3)


TRICKY = st.text(st.one_of(st.sampled_from("`~ \n\r\t>-#<!\u202e\u200b\ufeff\U000e0041"), st.characters()))


@cases(
    "hidden, shown",
    [
        ("safe\u202egnp.exe", "safe<U+202E>gnp.exe"),
        ("a\u2066b\u2069", "a<U+2066>b<U+2069>"),
        ("pass\u200bword", "pass<U+200B>word"),
        ("a\ufeffb\u2060c", "a<U+FEFF>b<U+2060>c"),
        ("soft\u00adhyphen", "soft<U+00AD>hyphen"),
        ("\U000e0048\U000e0069", "<U+E0048><U+E0069>"),
        ("a\ufe0fb\U000e0101", "a<U+FE0F>b<U+E0101>"),
        ("\x1b[31mred\x07\x00", "<U+001B>[31mred<U+0007><U+0000>"),
        ("line\u2028paragraph\u2029next\x85", "line<U+2028>paragraph<U+2029>next<U+0085>"),
        ("\u3164\u115f\u034f\u180e", "<U+3164><U+115F><U+034F><U+180E>"),
    ],
)
def test_what_cannot_be_seen_is_named_by_its_code_point(hidden: str, shown: str) -> None:
    assert visible(hidden) == shown


def test_lines_of_ascii_are_seen_to_be_plain_without_the_pattern() -> None:
    """To compile it takes longer than the rest of a fence."""
    code = (
        "from mdmem.document.text import tokens; print(tokens.fenced('one\\ntwo\\n', 'a.md'));"
        " assert not hasattr(type(tokens._SHOWN), 'sub') and 'sub' not in vars(tokens._SHOWN)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "```a.md\none\ntwo\n```\n"


@cases(
    "text",
    [
        *("plain\ttext\n\nof lines", "❤️ ⚡︎ ©️", "1️⃣ #️⃣", "👩‍💻 👩🏽‍🚒 🏳️‍🌈", "می‌خواهم", "क्‍ष"),
        "Tiếng Việt, ελληνικά, עברית, ไทย, 日本語, 한국어",
    ],
)
def test_what_writing_needs_stays(text: str) -> None:
    assert visible(text) == text


def test_only_one_selector_stays_behind_a_picture() -> None:
    assert visible("❤\ufe0f\ufe0f\ufe0e") == "❤\ufe0f<U+FE0F><U+FE0E>"


def test_a_joiner_stays_between_pictures_only() -> None:
    assert visible("a\u200d👩\u200d\u200d💻") == "a<U+200D>👩<U+200D><U+200D>💻"


def test_a_flag_of_tags_is_shown_for_tags_can_hide_sentences() -> None:
    assert visible("🏴\U000e0067\U000e007f") == "🏴<U+E0067><U+E007F>"


def test_every_format_and_control_character_that_unicode_knows_is_shown() -> None:
    """But for the tab and line ends, and the marks of Arabic and its kin that stand around a number."""
    numbers = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character not in "\t\n\r":
            assert (visible(character) == character) == (number in numbers), hex(number)


@given(TRICKY)
def test_what_is_visible_is_not_changed_again_and_has_as_many_lines(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert shown.count("\n") == text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


@given(TRICKY)
def test_a_text_in_a_line_is_one(text: str) -> None:
    assert "\n" not in in_line(text)
    assert visible(in_line(text)) == in_line(text)


@given(TRICKY, TRICKY)
@example("```", "a`b")
@example("~~~\n```", "`")
@example("````\n# out", "path with ``` in it")
@example("", "")
def test_no_text_and_no_name_gets_out_of_a_fence(text: str, info: str) -> None:
    """An independent parser sees one block of code, and what stands behind it."""
    tokens = MarkdownIt("commonmark").parse(f"{fenced(text, info)}\n\n# after\n")
    assert [token.type for token in tokens] == ["fence", "heading_open", "inline", "heading_close"]
    assert tokens[2].content == "after"
    shown = visible(text).strip("\n")
    assert tokens[0].content == f"{shown}\n"


def test_a_short_text_is_not_clipped() -> None:
    assert clipped("abc", 3) == "abc"


def test_a_clipped_text_says_on_both_sides_how_much_is_missing() -> None:
    text = "a" * 30 + "HERE" + "b" * 66
    assert clipped(text, 10, around=30) == "[27 characters left out]aaaHEREbbb[63 characters left out]"
    assert clipped(text, 97) == f"{text[:97]}[3 characters left out]"


@given(st.text(st.sampled_from("ab 1\n中👩\u200d\u0301\U0001f3fd"), max_size=300), st.integers(0, 60))
def test_an_abridged_text_is_its_two_ends_within_the_tokens(text: str, most: int) -> None:
    short = abridged(text, most)
    assert estimate(short) <= most
    if estimate(text) <= most:
        assert short == text
    start, *gap_and_end = re.split(r"\[([\d,]+) characters left out\]", short)
    assert text.startswith(start)
    if gap_and_end:
        gap, end = gap_and_end
        assert text.endswith(end)
        assert len(start) + int(gap.replace(",", "")) + len(end) == len(text)


@pytest.mark.parametrize("sign", ["e\u0301", "👩\u200d👧", "👍\U0001f3fd", "☎\ufe0f"])
def test_an_abridged_text_parts_no_character(sign: str) -> None:
    for most in range(1, 60):
        start, _, end = abridged(sign * 200, most).partition("[")
        assert start == sign * (len(start) // len(sign))
        end = end.partition("]")[2]
        assert end == sign * (len(end) // len(sign))
