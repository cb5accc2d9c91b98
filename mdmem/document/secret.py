"""Secrets in a text: tokens and keys of known formats, and nothing else.

Only what has a published form is looked for, also behind the escapes of JSON and YAML. Guessing by entropy or
by words such as `password` would refuse hashes, identifiers and prose, which memories are full of.
"""

from __future__ import annotations

import re
import sys
from array import array
from typing import TYPE_CHECKING, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.document import digest
from mdmem.document.edit import TextEdit, splice
from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ALLOW_MARK = "mdmem:allow-secret"
"""A line that holds this may hold secrets."""

DIGITS = 16
"""How many hexadecimal digits of its SHA-256 name a secret in the list of those that are allowed."""

_SHOWN = 4  # characters of a secret in a message
_FEWEST = 6  # different characters in the part of a token that is drawn at random

# A token does not begin inside a word, but behind what stands for a line end in JSON or a sign in a URL.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
_END = r"(?![A-Za-z0-9_-])"

# Keys are broken into lines: in JSON these are escapes; they may be quoted or indented.
_BREAK = r"(?:[\s>\"',|]|\\[nr])"
_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM = (
    rf"-----BEGIN {_KEY}{_BREAK}*+(?:[A-Za-z][A-Za-z-]*+: [\s\S]{{0,400}}?{_BREAK})?"
    rf"[A-Za-z0-9+/=]{{60,}}(?:{_BREAK}+[A-Za-z0-9+/=]{{20,}})*(?:[^-]{{0,80}}-----END {_KEY})?"
)


# What JSON and YAML write for a character, and a line end of YAML that is none.
_ESCAPE = regex(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|U([0-9A-Fa-f]{8})|(/)|\r?\n[ \t]*)")

# What stands where a password would: a mask, a variable, or the word itself.
_FILL_IN = (
    r"(.)\1+|[xX*.•_-]+|[$*].*|%s|%\w+%|[A-Z]+(?:_[A-Z]+)*|REDACTED.*"
    r"|(?i:[\w.-]*passw(?:or)?d|pass|pwd|change[-_]?me)"
)


class Form(NamedTuple):
    """The form of one kind of secret: one of `marks` stands in every text that `pattern` matches.

    Where the pattern has groups, the last one is the secret. What `harmless` matches is none; without it, a
    value that only shows the form. One that `begins` by itself is found faster, where its mark is frequent.
    """

    kind: str
    marks: tuple[str, ...]
    pattern: str
    harmless: str = ""
    begins: str = _START


# Beside each: where its vendor publishes the prefix.
FORMATS = (
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    Form("AWS access key", ("AKIA", "ASIA"), rf"(?:AKIA|ASIA)[A-Z2-7]{{16}}{_END}"),
    # docs.aws.amazon.com/cli/latest/userguide/cli-configure-files.html: no prefix, but a name before it
    Form(
        "AWS secret key",
        ("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey"),
        r"(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY|SecretAccessKey)[\"']?[ \t]{0,3}[=:][ \t]{0,3}[\"']?"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    # docs.github.com/authentication/keeping-your-account-and-data-secure/about-authentication-to-github
    Form("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"gh[pousr]_[A-Za-z0-9]{{36,251}}{_END}"),
    Form("GitHub token", ("github_pat_",), rf"github_pat_[A-Za-z0-9]{{22}}_[A-Za-z0-9]{{59}}{_END}"),
    # docs.gitlab.com/security/tokens
    Form(
        "GitLab token",
        tuple(
            f"gl{name}-"
            for name in ("pat", "oas", "dt", "rt", "cbt", "ptt", "ft", "imt", "agent", "soat", "ffct")
        ),
        r"gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{20,300}"
        r"(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?",
    ),
    # docs.slack.dev/authentication/tokens and docs.slack.dev/messaging
    Form(
        "Slack token",
        tuple(f"xox{letter}-" for letter in "abceoprs"),
        r"(?:xoxe\.)?xox[abceoprs]-[0-9]{1,14}-[0-9A-Za-z-]{18,250}",
    ),
    Form("Slack token", ("xapp-",), r"xapp-[0-9]-[A-Z0-9]{5,}-[0-9]{5,}-[a-f0-9]{32,}"),
    Form(
        "Slack webhook",
        ("hooks.slack.com/services/",),
        r"hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{24}",
    ),
    # docs.stripe.com/keys and docs.stripe.com/webhooks
    Form(
        "Stripe key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        rf"[sr]k_(?:live|test)_[A-Za-z0-9]{{16,247}}{_END}",
    ),
    Form("Stripe webhook secret", ("whsec_",), rf"whsec_[A-Za-z0-9]{{32,}}{_END}"),
    # openai.com keys: "T3BlbkFJ" is "OpenAI" in Base64
    Form(
        "OpenAI key",
        ("T3BlbkFJ",),
        r"(?<![_-])sk-[A-Za-z0-9_-]{20,170}?T3BlbkFJ[A-Za-z0-9_-]{20,170}(?![A-Za-z0-9])",
    ),
    # platform.claude.com/docs/en/api/admin-api
    Form("Anthropic key", ("sk-ant-",), r"sk-ant-[a-z]{3,8}[0-9]{2}-[A-Za-z0-9_-]{80,}"),
    # cloud.google.com/docs/authentication/api-keys and developers.google.com/identity/protocols/oauth2
    Form("Google API key", ("AIza",), rf"AIza[A-Za-z0-9_-]{{35}}{_END}"),
    Form("Google client secret", ("GOCSPX-",), rf"GOCSPX-[A-Za-z0-9_-]{{28}}{_END}"),
    Form("Google access token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{40,}"),
    # npm, documentation: about access tokens
    Form("npm token", ("npm_",), rf"npm_[A-Za-z0-9]{{36}}{_END}"),
    # PyPI, help: a macaroon whose first field names the index or its test site, in base64
    Form(
        "PyPI token",
        ("pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"),
        r"pypi-(?:AgEIcHlwaS5vcmc|AgENdGVzdC5weXBpLm9yZw)[A-Za-z0-9_-]{50,}",
    ),
    # guides.rubygems.org/api-key-scopes and crates.io/policies/security
    Form("RubyGems key", ("rubygems_",), rf"rubygems_[a-f0-9]{{48}}{_END}"),
    # docs.docker.com/security/access-tokens
    Form("Docker token", ("dckr_pat_", "dckr_oat_"), r"dckr_[po]at_[A-Za-z0-9_-]{27,}"),
    # huggingface.co/docs/hub/security-tokens
    Form("Hugging Face token", ("hf_",), rf"hf_[A-Za-z0-9]{{34}}{_END}"),
    # openrouter.ai/docs/api-reference/authentication, console.groq.com/docs, docs.perplexity.ai, docs.x.ai
    Form("OpenRouter key", ("sk-or-v1-",), rf"sk-or-v1-[a-f0-9]{{64}}{_END}"),
    Form("Groq key", ("gsk_",), rf"gsk_[A-Za-z0-9]{{52}}{_END}"),
    Form("Perplexity key", ("pplx-",), rf"pplx-[A-Za-z0-9]{{48}}{_END}"),
    Form("xAI key", ("xai-",), rf"xai-[A-Za-z0-9]{{80}}{_END}"),
    # www.twilio.com/docs/iam/api-keys; a token has no prefix, but a name or its account before it
    Form(
        "Twilio key", ("SK",), rf"SK(?:(?<![A-Za-z0-9]SK)|(?<=\\[nrt]SK))[0-9a-fA-F]{{32}}{_END}", begins=""
    ),
    Form(
        "Twilio token",
        ("TWILIO", "twilio", "Twilio"),
        r"(?:TWILIO|[Tt]wilio)[A-Za-z_-]{0,20}(?:TOKEN|[Tt]oken|SECRET|[Ss]ecret)"
        rf"[\"']?[ \t]{{0,3}}[=:][ \t]{{0,3}}[\"']?([0-9A-Za-z]{{32}}){_END}",
    ),
    Form(
        "Twilio token",
        ("AC",),
        rf"AC(?:(?<![A-Za-z0-9]AC)|(?<=\\[nrt]AC))[0-9a-f]{{32}}:([0-9a-f]{{32}}){_END}",
        begins="",
    ),
    # www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys
    Form("SendGrid key", ("SG.",), rf"SG\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{43}}{_END}"),
    # docs.digitalocean.com/reference/api
    Form("DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), rf"do[por]_v1_[a-f0-9]{{64}}{_END}"),
    # developer.hashicorp.com/vault/docs/concepts/tokens and /terraform/cloud-docs/users-teams-organizations
    Form("Vault token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    Form("Terraform token", (".atlasv1.",), rf"[A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,70}}{_END}"),
    # docs.databricks.com/dev-tools/auth/pat
    Form("Databricks token", ("dapi",), rf"dapi[a-f0-9]{{32}}(?:-[0-9])?{_END}"),
    # shopify.dev/docs/apps/build/authentication-authorization/access-tokens
    Form(
        "Shopify token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        rf"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{32}}{_END}",
    ),
    # learn.microsoft.com/azure/storage/common/storage-configure-connection-string
    Form("Azure storage key", ("AccountKey=",), r"AccountKey=([A-Za-z0-9+/]{86}==)"),
    # developers.notion.com, linear.app/developers and support.atlassian.com (API tokens)
    Form("Notion token", ("ntn_",), rf"ntn_[A-Za-z0-9]{{40,60}}{_END}"),
    Form("Notion token", ("secret_",), rf"secret_[A-Za-z0-9]{{43}}{_END}"),
    Form("Linear key", ("lin_api_",), rf"lin_api_[A-Za-z0-9]{{40}}{_END}"),
    Form("Atlassian token", ("ATATT3",), r"ATATT3[A-Za-z0-9_=-]{180,200}"),
    # grafana.com/docs/grafana/latest/administration/service-accounts and docs.sentry.io/account/auth-tokens
    Form("Grafana token", ("glsa_",), rf"glsa_[A-Za-z0-9]{{32}}_[A-Fa-f0-9]{{8}}{_END}"),
    Form("Sentry token", ("sntryu_",), rf"sntryu_[a-f0-9]{{64}}{_END}"),
    # core.telegram.org/bots/api
    Form("Telegram bot token", (":AA",), rf"[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}"),
    # RFC 7519: a header and claims, JSON objects in Base64url, and a signature; or, by RFC 7516, a header,
    # a key that may be empty, an initialization vector, what is encrypted, and a tag
    Form(
        "JSON web token",
        ("eyJ",),
        r"(?<![_-])eyJ[A-Za-z0-9_-]{10,}\.(?:eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{20,}"
        r"|[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{16,22}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22,43}(?![A-Za-z0-9_-]))",
    ),
    # RFC 3986, section 3.2.1; a password that is the user's name is a default, and no secret
    Form(
        "URL password",
        ("://",),
        r"://([^\s:/?#@\"'`<>()|\\]{0,100}):(?!\1@)"
        r"([^\s/?#\"'`<>()\[\]{}|\\,;]{1,200})@(?!sha[0-9]{3}:)[A-Za-z0-9\[$]",
        harmless=_FILL_IN,
        begins="",
    ),
    # RFC 7468, RFC 4716, RFC 9580
    Form("private key", ("PRIVATE KEY",), _PEM),
    # github.com/C2SP/C2SP/blob/main/age.md
    Form(
        "age key",
        ("AGE-SECRET-KEY-1",),
        rf"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{{58}}{_END}",
    ),
)

_MARKS = [(mark, form) for form in FORMATS for mark in form.marks]
# What stands in documentation: words for a value to be filled in …
_FILLED_IN = ("EXAMPLE", "example", "YOUR", "your", "XXXX", "xxxx", "PLACEHOLDER", "placeholder")
_LONGEST_FILLED_IN = 300  # in something longer they may stand by chance
# … and what vendors print: Stripe, jwt.io, and the key of Microsoft's storage emulator.
_PUBLISHED = (
    "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
    "sk_test_BQokikJOvBiI2HlWgH4olfQ2",
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",
)


class Secret(NamedTuple):
    """A secret in a text, without itself.

    Attributes:
        span: where it stands.
        kind: whose it is.
        shown: its first characters.
        digest: the first digits of its SHA-256.
    """

    span: Span
    kind: str
    shown: str
    digest: str

    @property
    def told(self) -> str:
        """What is said of it, without it."""
        return f"this looks like a secret: {self.kind} {self.shown}…"

    @property
    def word(self) -> str:
        """What stands for it where it is taken out: one word in Markdown, YAML, JSON and a URL alike."""
        return f"REDACTED-{self.kind.lower().replace(' ', '-')}"


def find(
    text: str, spans: Iterable[tuple[int, int]] | None = None, allow: Sequence[str] = ()
) -> list[Secret]:
    """Return the secrets in a text that are not allowed, in order.

    Args:
        text: where to look.
        spans: look only into the lines that these touch, given in order; everywhere without.
        allow: the first digits of the SHA-256 of those that are allowed.
    """
    lines = [Span(0, len(text))] if spans is None else list(_expand_to_lines(text, spans))
    suspects = _find_suspected_forms("\n".join([text[slice(*line)] for line in lines]))
    found = [secret for line in lines for each in suspects for secret in _match_form(text, line, each)]
    if "\\" in text:
        found += [secret for line in lines for secret in _find_escaped(text, line)]
    found.sort()
    result: list[Secret] = []
    for secret in found:
        overlaps = result and secret.span.start < result[-1].span.end
        if not overlaps and not _is_allowed(text, secret, allow):
            result.append(secret)
    return result


def redactions(secrets: Iterable[Secret]) -> list[TextEdit]:
    """Return the edits that put each secret's `word` in its place."""
    return [TextEdit(*secret.span, secret.word) for secret in secrets]


def _find_suspected_forms(text: str) -> list[Form]:
    return list(dict.fromkeys([form for mark, form in _MARKS if mark in text]))


def masked(text: str) -> str:
    """Return a text with the `word` of each secret in its place."""
    return splice(text, redactions(find(text)))


def _find_escaped(text: str, line: Span) -> list[Secret]:
    """Return the secrets in a stretch of a text of which characters are written as escapes."""
    parts: list[str] = []
    places = array("q")  # where each character that is read is written
    at = line.start
    for escape in _ESCAPE.finditer(text, *line):
        character = _decode_escape(escape)
        parts += [text[at : escape.start()], character]
        places.extend(range(at, escape.start()))
        places.extend([escape.start()] * len(character))
        at = escape.end()
    if not parts:
        return []
    read = "".join([*parts, text[at : line.end]])
    places.extend(range(at, line.end + 1))
    return [
        secret._replace(span=Span(places[secret.span.start], places[secret.span.end]))
        for form in _find_suspected_forms(read)
        for secret in _match_form(read, Span(0, len(read)), form)
    ]


def _decode_escape(escape: re.Match[str]) -> str:
    """Return the character that an escape stands for; none for a line end that is none."""
    digits = escape[1] or escape[2] or escape[3]
    number = int(digits, 16) if digits else 0
    return chr(number) if 0 < number <= sys.maxunicode else escape[4] or ""


def _expand_to_lines(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Span]:
    reached = -1
    for start, end in spans:
        if end <= reached:
            continue
        first = max(text.rfind("\n", 0, start) + 1, reached)
        last = text.find("\n", end)
        reached = len(text) if last == -1 else last
        yield Span(first, reached)


def _match_form(text: str, line: Span, form: Form) -> Iterator[Secret]:
    for match in re.compile(form.begins + form.pattern).finditer(text, *line):
        group = match.lastindex or 0
        value = match[group]
        if not _is_example(value, form):
            # Of a short password even a beginning says much.
            shown = value[: min(_SHOWN, len(value) // 3)]
            short_digest = digest(value.encode("utf-8", "surrogatepass"))[:DIGITS]
            yield Secret(Span(*match.span(group)), form.kind, shown, short_digest)


def _is_example(value: str, form: Form) -> bool:
    """Return whether a value only shows the form of a token: `ghp_xxxx…`, or one that its vendor prints."""
    if form.harmless:
        return bool(re.fullmatch(form.harmless, value)) or any(part in value for part in _FILLED_IN)
    rest = value
    for mark in form.marks:
        rest = rest.replace(mark, "")
    known = (*_PUBLISHED, *_FILLED_IN) if len(value) < _LONGEST_FILLED_IN else _PUBLISHED
    return len(set(rest)) < _FEWEST or any(part in value for part in known)


def _is_allowed(text: str, secret: Secret, allow: Sequence[str]) -> bool:
    if any(secret.digest.startswith(digest[:DIGITS]) for digest in allow):
        return True
    (lines,) = _expand_to_lines(text, [secret.span])
    start, end = (secret.span.start - lines.start, secret.span.end - lines.start)
    around = text[slice(*lines)]
    first, last = around.rfind("\r", 0, start) + 1, around.find("\r", end)
    return ALLOW_MARK in around[first : last if last != -1 else None]
