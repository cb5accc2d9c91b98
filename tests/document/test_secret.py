"""Secrets are known by their published forms; nothing else is taken for one, and nothing gives one away.

No token stands in this file: each is put together from its prefix and drawn characters.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import uuid
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings, strategies as st

from mdmem.document.edit import splice
from mdmem.document.secret import ALLOW_MARK, DIGITS, FORMATS, Form as SecretForm, Secret, find, redactions

WORD = string.ascii_letters + string.digits
BASE64 = f"{WORD}+/"
BASE64URL = f"{WORD}_-"
HEX = "0123456789abcdef"
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
UPPER = string.ascii_uppercase + string.digits

Form = Sequence[str | tuple[str, int]]
# For each kind its forms, as fixed texts and (alphabet, length) to draw.
FORMS: dict[str, Sequence[Form]] = {
    "AWS access key": [["AKIA", (BASE32, 16)], ["ASIA", (BASE32, 16)]],
    "GitHub token": [
        *((f"gh{letter}_", (WORD, 36)) for letter in "pousr"),
        ["github_pat_", (WORD, 22), "_", (WORD, 59)],
    ],
    "GitLab token": [
        *((f"gl{name}-", (BASE64URL, 20)) for name in ("pat", "dt", "rt", "ft", "soat", "ffct")),
        ["gloas-", (BASE64URL, 64)],
        ["glptt-", (HEX, 40)],
        ["glimt-", (BASE64URL, 25)],
        ["glagent-", (BASE64URL, 50)],
        ["glcbt-64_", (BASE64URL, 20)],
        ["glpat-", (WORD, 27), ".", (string.digits, 2), ".", (HEX, 9)],
    ],
    "Slack token": [
        ["xoxb-", ("123456789", 12), "-", ("123456789", 13), "-", (WORD, 24)],
        ["xoxp-", ("123456789", 12), "-", ("123456789", 12), "-", ("123456789", 12), "-", (HEX, 32)],
        ["xoxe.xoxp-1-", (UPPER, 166)],
        ["xoxe-1-", (UPPER, 146)],
        ["xapp-1-A", (UPPER, 10), "-", ("123456789", 13), "-", (HEX, 64)],
    ],
    "Slack webhook": [["hooks.slack.com/services/T", (UPPER, 9), "/B", (UPPER, 10), "/", (WORD, 24)]],
    "Stripe key": [[f"{kind}_{mode}_", (WORD, 24)] for kind in ("sk", "rk") for mode in ("live", "test")],
    "Stripe webhook secret": [["whsec_", (WORD, 32)]],
    "OpenAI key": [
        ["sk-", (WORD, 20), "T3BlbkFJ", (WORD, 20)],
        ["sk-proj-", (BASE64URL, 74), "T3BlbkFJ", (BASE64URL, 73), "Q"],
        ["sk-svcacct-", (BASE64URL, 58), "T3BlbkFJ", (BASE64URL, 57), "Q"],
    ],
    "Anthropic key": [
        ["sk-ant-api03-", (BASE64URL, 93), "AA"],
        ["sk-ant-admin01-", (BASE64URL, 93), "AA"],
        ["sk-ant-oat01-", (BASE64URL, 93), "AA"],
    ],
    "Google API key": [["AIza", (BASE64URL, 34), "k"]],
    "Google client secret": [["GOCSPX-", (BASE64URL, 28)]],
    "Google access token": [["ya29.", (BASE64URL, 120)]],
    "npm token": [["npm_", (WORD, 36)]],
    "PyPI token": [
        ["pypi-", "AgEIcHlwaS5vcmc", (BASE64URL, 80)],
        ["pypi-", "AgENdGVzdC5weXBpLm9yZw", (BASE64URL, 80)],
    ],
    "RubyGems key": [["rubygems_", (HEX, 48)]],
    "Docker token": [["dckr_pat_", (BASE64URL, 27)], ["dckr_oat_", (BASE64URL, 32)]],
    "Hugging Face token": [["hf_", (WORD, 34)]],
    "OpenRouter key": [["sk-or-v1-", (HEX, 64)]],
    "Groq key": [["gsk_", (WORD, 52)]],
    "Perplexity key": [["pplx-", (WORD, 48)]],
    "xAI key": [["xai-", (WORD, 80)]],
    "SendGrid key": [["SG.", (BASE64URL, 22), ".", (BASE64URL, 43)]],
    "DigitalOcean token": [[f"do{letter}_v1_", (HEX, 64)] for letter in "por"],
    "Vault token": [[f"hv{letter}.", (BASE64URL, 95)] for letter in "sbr"],
    "Terraform token": [[(WORD, 14), ".atlasv1.", (BASE64URL, 67)]],
    "Databricks token": [["dapi", (HEX, 32)], ["dapi", (HEX, 32), "-3"]],
    "Shopify token": [[f"shp{name}_", (HEX, 32)] for name in ("at", "ca", "pa", "ss")],
    "Twilio key": [["SK", (HEX, 32)]],
    "Notion token": [
        ["ntn_", (string.digits, 11), (WORD, 35)],
        ["ntn_", (WORD, 46)],
        ["secret_", (WORD, 43)],
    ],
    "Linear key": [["lin_api_", (WORD, 40)]],
    "Atlassian token": [["ATATT3", (BASE64URL, 186)]],
    "Grafana token": [["glsa_", (WORD, 32), "_", (HEX, 8)]],
    "Sentry token": [["sntryu_", (HEX, 64)]],
    "Telegram bot token": [[("123456789", 10), ":AA", (BASE64URL, 33)]],
    "JSON web token": [
        ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI", (WORD, 20), ".", (BASE64URL, 43)],
        ["eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiI", (WORD, 90), ".", (BASE64URL, 342)],
        ["eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.", (BASE64URL, 43)],
        ["eyJhbGciOiJkaXIifQ..", (WORD, 16), ".", (WORD, 90), ".", (WORD, 22)],
    ],
    "age key": [["AGE-SECRET-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)]],
}
# Of these only a part is the secret: what stands before it and behind it.
NAMED = {
    "AWS secret key": [
        ("aws_secret_access_key = ", (BASE64, 40), ""),
        ("export AWS_SECRET_ACCESS_KEY='", (BASE64, 40), "'"),
        ('"SecretAccessKey": "', (BASE64, 40), '"'),
        ("SecretAccessKey = ", (BASE64, 40), ""),
    ],
    "Twilio token": [
        ("TWILIO_AUTH_TOKEN=", (HEX, 32), ""),
        ('twilio_auth_token: "', (HEX, 32), '"'),
        ("TwilioApiSecret = ", (WORD, 32), ""),
        (f"curl -u AC{'0a' * 16}:", (HEX, 32), " https://api.twilio.com"),
    ],
    "URL password": [
        (f"{scheme}://{user}:", (WORD, 12), f"@{rest}")
        for scheme, user, rest in (
            ("https", "alice", "x.test/a"),
            ("postgres", "app", "db.x.test:5432/app"),
            ("redis", "", "localhost"),
            ("jdbc:mysql", "me%40x", "[::1]/x"),
            ("mongodb+srv", "u", "${HOST}/x"),
        )
    ],
    "Azure storage key": [("AccountName=a;AccountKey=", (BASE64, 86), "==;EndpointSuffix=x")],
}


def drawn(form: Form, seed: int = 0) -> str:
    source = random.Random(f"{form} {seed}")
    return "".join(
        part if isinstance(part, str) else "".join(source.choices(part[0], k=part[1])) for part in form
    )


def pem(label: str, lines: int = 4, newline: str = "\n", before: str = "") -> str:
    rows = [drawn([(BASE64, 64)], number) for number in range(lines)] + ["abc="]
    return newline.join([f"-----BEGIN {label}-----", *([before, ""] if before else []), *rows]) + (
        f"{newline}-----END {label}-----"
    )


TOKENS = [(kind, drawn(form)) for kind, forms in FORMS.items() for form in forms]
KEYS = [
    pem("PRIVATE KEY"),
    pem("PRIVATE KEY", lines=1),
    pem("RSA PRIVATE KEY", before="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF"),
    pem("OPENSSH PRIVATE KEY", lines=8),
    pem("EC PRIVATE KEY", newline="\r\n"),
    pem("PGP PRIVATE KEY BLOCK", before="Version: GnuPG v2"),
    pem("PRIVATE KEY", newline="\\n"),
    pem("PRIVATE KEY", newline="\n    "),
]
TOKENS += [("private key", key) for key in KEYS]


JWT_IO = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0."


def named() -> list[tuple[str, str, str, str]]:
    return [
        (kind, before, drawn([part]), after) for kind, all_ in NAMED.items() for before, part, after in all_
    ]


def kinds(text: str) -> list[str]:
    return [secret.kind for secret in find(text)]


def redacted(text: str) -> str:
    return splice(text, redactions(find(text)))


def test_every_format_of_the_table_is_tested() -> None:
    assert {form.kind for form in FORMATS} == {kind for kind, _ in TOKENS} | NAMED.keys()


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: f"{form.kind} {form.marks[0]}")
def test_every_mark_stands_in_a_token_of_its_kind(form: SecretForm) -> None:
    tokens = [token for kind, token in TOKENS if kind == form.kind]
    tokens += [before + token + after for kind, before, token, after in named() if kind == form.kind]
    one_of_many = len(form.marks) > 5  # the forms of GitLab and Slack are drawn for some of their prefixes
    known = [any(mark in token for token in tokens) for mark in form.marks]
    assert any(known) if one_of_many else all(known)


@pytest.mark.parametrize(("kind", "token"), TOKENS)
@pytest.mark.parametrize(
    "around",
    [
        *("{}", "The token is {}.", "`{}`", "key={}\n", '{{"token": "{}"}}', "https://x.test/?t={}&n=1"),
        "a\\n{}\\nb",
    ],
)
def test_a_token_is_found_where_it_stands(kind: str, token: str, around: str) -> None:
    text = around.format(token)
    (secret,) = find(text)
    assert secret.kind == kind
    # Only what may end a token, but also a sentence or an escape, can be left in doubt.
    assert text[slice(*secret.span)].rstrip(".-") == token.rstrip(".-")


@pytest.mark.parametrize(("kind", "before", "token", "after"), named())
def test_of_a_named_value_the_value_is_the_secret(kind: str, before: str, token: str, after: str) -> None:
    (secret,) = find(before + token + after)
    assert secret.kind == kind
    assert secret.span.start == len(before)
    assert redacted(before + token + after).startswith(before + secret.word)


@pytest.mark.parametrize("token", [token for _, token in TOKENS])
def test_a_token_that_is_cut_off_is_none(token: str) -> None:
    cut = 70 if token.startswith("-----") else 16
    assert kinds(f"{token[:cut]}\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AKIA" + "X" * 16,
        "ghp_" + "x" * 36,
        "github_pat_" + "0" * 22 + "_" + "0" * 59,
        "glpat-<your token>, glpat-your-token-goes-here-1",
        "sk-ant-api03-...",
        "sk-ant-api03-" + "xxxxxxxx-" * 11,
        "sk_test_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "hooks.slack.com/services/T00000000/B00000000/" + "X" * 24,
        JWT_IO + "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
        "a PEM file begins with `-----BEGIN PRIVATE KEY-----` and ends with `-----END PRIVATE KEY-----`",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQE...\n-----END PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\n" + drawn([(BASE64, 64)]) + "\n-----END PUBLIC KEY-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + drawn([(BASE64, 43)]) + " me@host",
        "prefixes: ghp_, gho_, xoxb-, AKIA, sk-ant-, AIza, npm_, hf_, eyJ, SG., glpat-, pypi-AgEIcHlwaS5vcmc",
        f"the word {drawn([(WORD, 12)])}AKIA{drawn([(BASE32, 16)])} begins elsewhere",
        f"risk-{drawn([(WORD, 40)])}",
        "password = 'correct horse battery staple'",
        *(
            f"postgres://user:{word}@db.x.test/app"
            for word in (
                *(
                    *("password", "user", "PASSWORD", "DB_PASS", "your-password", "<password>"),
                    *("{password}", "xxx"),
                ),
                *(
                    *("***", "...", "$PASS", "${PASS}", "{{ pass }}", "%s", "%PASS%", "[YOUR-PASSWORD]"),
                    "changeme",
                ),
            )
        ),
        "https://x.test:8080,me@x.test https://x.test:80)@me (https://x.test:80/@me) https://x.test:80#me@x",
        "docker://alpine:3.18@sha256:0123 ssh://git@github.com:22/x git@github.com:a/b.git",
        '{"text": "https://x.test:8080\\nme@x.test"}',
    ],
)
def test_what_only_resembles_a_secret_is_none(text: str) -> None:
    assert find(text) == []


@given(st.randoms(use_true_random=False))
def test_identifiers_hashes_and_pictures_are_none(source: random.Random) -> None:
    data = source.randbytes(3000)
    text = "\n".join(
        [
            str(uuid.UUID(bytes=data[:16], version=4)),
            f"commit {hashlib.sha1(data).hexdigest()}",
            f"sha256:{hashlib.sha256(data).hexdigest()}",
            f"![dot](data:image/png;base64,{base64.b64encode(data).decode()})",
            f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"',
        ]
    )
    assert find(text) == []


SNIPPETS = st.sampled_from([mark for form in FORMATS for mark in form.marks])
SHORT = st.text(st.sampled_from(f"{BASE64URL}./+= \n\"'"), max_size=13)


@given(
    st.lists(st.tuples(SNIPPETS, SHORT, st.sampled_from([" ", "\n", ". ", '"', "("]))).map(
        lambda parts: "".join("".join(part) for part in parts)
    )
)
def test_the_beginning_of_a_token_is_none(text: str) -> None:
    assert find(text) == []


@given(st.text())
@settings(max_examples=200)
def test_ordinary_text_is_never_refused(text: str) -> None:
    assert find(text) == []


@given(
    st.text(max_size=40), st.sampled_from(TOKENS), st.text(max_size=40), st.sampled_from(TOKENS), st.text()
)
def test_redacting_takes_out_the_tokens_and_nothing_else(
    before: str, first: tuple[str, str], between: str, second: tuple[str, str], after: str
) -> None:
    text = f"{before}\n{first[1]}\n({between})\n{second[1]}\n{after}"
    words = [f"REDACTED-{kind.lower().replace(' ', '-')}" for kind, _ in (first, second)]
    assert redacted(text) == f"{before}\n{words[0]}\n({between})\n{words[1]}\n{after}"


@pytest.mark.parametrize("token", [token for _, token in TOKENS])
def test_what_stands_for_a_token_is_none_and_a_plain_word(token: str) -> None:
    (secret,) = find(token)
    assert find(secret.word) == []
    assert secret.word.replace("-", "").isalnum()
    assert secret.word.isascii()


@pytest.mark.parametrize("token", [token for _, token in TOKENS] + [b + t + a for _, b, t, a in named()])
def test_a_found_secret_does_not_hold_itself(token: str) -> None:
    (secret,) = find(token)
    value = token[slice(*secret.span)]
    assert len(secret.shown) == 4
    assert value.startswith(secret.shown)
    assert value[5:] not in repr(secret)
    assert secret.digest == hashlib.sha256(value.encode()).hexdigest()[:DIGITS]


TOKEN = drawn(["ghp_", (WORD, 36)])
OTHER = drawn(["ghp_", (WORD, 36)], 1)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_mark_allows_the_secrets_of_its_line_alone(newline: str) -> None:
    lines = [f"{TOKEN} <!-- {ALLOW_MARK} -->", OTHER, f"# {ALLOW_MARK}"]
    (secret,) = find(newline.join(lines))
    assert newline.join(lines)[slice(*secret.span)] == OTHER


@pytest.mark.parametrize("digits", [16, 40, 64])
def test_a_hash_allows_one_secret(digits: int) -> None:
    allowed = hashlib.sha256(TOKEN.encode()).hexdigest()[:digits]
    assert [secret.digest[:16] for secret in find(f"{TOKEN} {OTHER}", allow=[allowed])] == [
        hashlib.sha256(OTHER.encode()).hexdigest()[:16]
    ]


def test_a_hash_that_differs_in_its_last_digit_allows_nothing() -> None:
    (secret,) = find(TOKEN)
    last = "1" if secret.digest[-1] == "0" else "0"
    assert find(TOKEN, allow=[secret.digest[:-1] + last]) == [secret]


def test_only_lines_that_are_touched_are_looked_into() -> None:
    text = f"{TOKEN}\nplain\n{OTHER}\nplain"
    assert find(text, []) == []
    assert find(text, [(len(TOKEN) + 1, len(TOKEN) + 3)]) == []
    (secret,) = find(text, [(3, 3)])
    assert secret.span == (0, len(TOKEN))
    at = text.index(OTHER)
    assert [each.span.start for each in find(text, [(1, 2), (4, 5), (at + 40, at + 42)])] == [0, at]
    assert len(find(text, [(0, len(text))])) == 2


@given(st.data())
def test_looking_into_every_line_is_looking_everywhere(data: st.DataObject) -> None:
    pieces = st.sampled_from([TOKEN, OTHER, "\n", "\r\n", " ", "x", KEYS[0]])
    text = "".join(data.draw(st.lists(pieces, max_size=8)))
    cut = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=3)))
    spans = list(zip([0, *cut], [*cut, len(text)], strict=True))
    whole: list[Secret] = find(text)
    found = find(text, spans)
    assert [each for each in found if "\n" not in text[slice(*each.span)]] == [
        each for each in whole if "\n" not in text[slice(*each.span)]
    ]


@pytest.mark.parametrize(
    "write",
    [
        lambda token: "".join(f"\\u{ord(each):04x}" for each in token),
        lambda token: "".join(f"\\x{ord(each):02X}" for each in token),
        lambda token: f"\\U{ord(token[0]):08X}{token[1:]}",
        lambda token: f"{token[:9]}\\u{ord(token[9]):04X}{token[10:]}",
        lambda token: f"{token[:9]}\\\n    {token[9:]}",
        lambda token: token[:-1] + f"\\x{ord(token[-1]):x}",
    ],
    ids=["JSON", "YAML", "long", "one", "lines", "last"],
)
@pytest.mark.parametrize("token", [TOKEN, "https://me:hunter2@x.test"])
def test_a_secret_behind_escapes_is_found_where_it_is_written(
    token: str, write: Callable[[str], str]
) -> None:
    before, after = '# One\n\nnext: "\\u00e4 ', ' \\u00e4"\nlast\n'
    text = before + write(token) + after
    (secret,) = find(text)
    (plain,) = find(token)
    assert (secret.kind, secret.digest) == (plain.kind, plain.digest)
    assert find(text, [(len(before), len(before))]) in ([secret], [])  # it may stand in two lines
    assert find(redacted(text)) == []
    if token == TOKEN:
        assert redacted(text) == before + secret.word + after


def test_a_slash_that_json_escapes_hides_no_password() -> None:
    (secret,) = find(r'{"url": "https:\/\/me:hunter2@x.test"}')
    assert (secret.kind, secret.shown) == ("URL password", "hu")


@given(st.text(st.sampled_from("ab\\ux041/\n U"), max_size=60))
def test_any_escapes_are_read(text: str) -> None:
    assert find(text) == []


def test_in_json_a_token_behind_an_escaped_line_end_is_found() -> None:
    assert kinds(json.dumps({"note": f"first\n{TOKEN}\nlast", "key": KEYS[0]})) == [
        "GitHub token",
        "private key",
    ]


@pytest.mark.parametrize("header", ["a: b ", "A: ", "A: x \\n ", "A: ,,,", "a: ,,,,,,,,,,,,,,,,,,,, "])
def test_headers_of_a_key_that_go_on_take_no_endless_search(header: str) -> None:
    assert find("-----BEGIN PRIVATE KEY-----" + header * 20_000) == []
