"""Estimates are near what tokenizers make of a text, in every script, and never fall when a text grows."""

from __future__ import annotations

import math
import sys
import unicodedata

import pytest
from hypothesis import given, strategies as st

from mdmem.text.tokens import counter, estimate


# What cl100k_base and o200k_base make of the same text, the smaller number first.
@pytest.mark.parametrize(
    ("text", "least", "most"),
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


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fiver", 2), ("2026", 2), ("你好", 2)]
)
def test_four_letters_are_a_token_two_digits_and_one_character_of_han(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_two_texts_take_no_more_than_both_alone_and_no_less_than_either(one: str, other: str) -> None:
    both = estimate(one + other)
    assert max(estimate(one), estimate(other)) <= both <= estimate(one) + estimate(other)


@given(st.characters())
def test_no_character_is_free(character: str) -> None:
    assert estimate(character * 40) >= 10


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
