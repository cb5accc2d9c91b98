"""Secrets in a text: tokens and keys of known formats, and nothing else.

Only what has a published form is looked for, also behind the escapes of JSON and YAML. Guessing by entropy or
by words such as `password` would refuse hashes, identifiers and prose, which memories are full of.
"""

from __future__ import annotations

import json
import re
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from mdmem.diagnostic import SECRETS_HINT, Span
from mdmem.document.document import digest
from mdmem.document.edit import TextEdit, splice
from mdmem.document.text.regex import regex
from mdmem.document.tree import encoded
from mdmem.errors import Usage

ALLOW_MARK = "mdmem:allow-secret"
"""A line that holds this may hold secrets."""

DIGITS = 16
"""How many hexadecimal digits of its SHA-256 name a secret in the list of those that are allowed."""

_SHOWN = 4  # characters of a secret in a message
_FEWEST = 6  # different characters in the part of a token that is drawn at random
_MOST_BY_CHANCE = 0.6  # of the characters of a token that stand in a sequence

# A token does not begin inside a word, but behind what stands for a line end in JSON or a sign in a URL.
_START = r"(?:(?<![A-Za-z0-9\\])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
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

# What stands where a password would: a mask, a variable, …
_FILL_IN = regex(r"[xX*.•_-]+|[$*%].*|%s|[A-Z]+(?:_[A-Z]+)*|REDACTED.*")
# … or words that say nothing, maybe with digits and signs between them.
_WORDS_OF_NONE = regex(
    r"(?i)p(?:[a@4]|%40)(?:ss|\$\$)(?:w[o0]r[dt]|wd|wort|phrase|code)?|passwd|pwd|secret|change|admin"
    r"|root|toor|username|user|guest|test|demo|foo|bar|baz|qwerty|letmein|welcome|hello|world|abc|example"
    r"|sample|dummy|fake|token|key|here|default|postgres(?:ql)?|rabbit|redis|mongo|redacted|hidden|masked"
    r"|placeholder|none|null|strong|super|secure|login|local|anonymous|foobared|minio|elastic|neo4j|value|your"
    r"|personal|access|proxy|some|prod|dev|app|the|new|old|sql|db|pw|my|me|it"
)
_LOCAL = (
    r"(?:localhost|127\.|0\.0\.0\.0|\[::1|host\.docker\.internal"
    r"|(?:[\w-]+\.)*(?:example\.(?:com|net|org)|example|invalid|local|test)\b)"
)


class Form(NamedTuple):
    """The form of one kind of secret: one of `marks` stands in every text that `pattern` matches.

    If the pattern has groups, the last one is the secret. A `password` is judged by its words, too. `begins`
    is the pattern before it; an empty one is faster for a frequent mark. The mark is looked for at the
    `start` of a possible token, in a long `word`, or in all the `text`, if the secret is short or may hold
    blanks.
    """

    kind: str
    marks: tuple[str, ...]
    pattern: str
    password: bool = False
    begins: str = _START
    place: Literal["start", "word", "text"] = "word"


def _token(kind: str, prefixes: str, rest: str) -> Form:
    marks = tuple(prefixes.split())
    return Form(kind, marks, f"(?:{'|'.join(map(re.escape, marks))})(?:{rest}){_END}", place="start")


def _azure(count: int, marks: str, rest: str) -> Form:
    """Make the form of a key of Azure: `count` characters, a mark, and a rest."""
    each = tuple(marks.split())
    pattern = f"[A-Za-z0-9+/_-]{{{count}}}(?:{'|'.join(map(re.escape, each))}){rest}(?![A-Za-z0-9+/=_-])"
    return Form("Azure key", each, pattern)


def _named(kind: str, names: str, value: str) -> Form:
    """Make the form of a value that is secret by the name that it is assigned to."""
    marks = tuple(names.split())
    assigned = rf"(?:{'|'.join(map(re.escape, marks))})(?:\\?[\"'])?[ \t]{{0,3}}(?:=>|:?=|:)[ \t]{{0,3}}"
    return Form(kind, marks, rf"{assigned}(?:\\?[\"'])?({value})(?![A-Za-z0-9/+=])", place="text")


_UUID = "[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"
# What stands before the password of a database or a queue, as ADO.NET, ODBC and Redis write it.
_CONNECTION = r"(?:=[^;=\r\n]{1,100}; ?|:[0-9]{2,5},)(?i:password|pwd) ?= ?(?=[^\s;,]*[^A-Za-z_.\s;,])"

# Beside some: where the vendor publishes the prefix.
FORMATS = (
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    _token("AWS access key", "AKIA ASIA ABIA ACCA", "[A-Z2-7]{16}"),
    # docs.aws.amazon.com/cli/latest/userguide/cli-configure-files.html: no prefix, but a name before it
    _named(
        "AWS secret key",
        "aws_secret_access_key AWS_SECRET_ACCESS_KEY SecretAccessKey secretAccessKey",
        "[A-Za-z0-9/+]{40}",
    ),
    _named(
        "AWS session token",
        "aws_session_token AWS_SESSION_TOKEN aws_security_token SessionToken sessionToken",
        "[A-Za-z0-9/+]{80,}={0,2}",
    ),
    _token("AWS session token", "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz", "[A-Za-z0-9/+]{80,}={0,2}"),
    _token("AWS Bedrock key", "ABSK", "[A-Za-z0-9/+]{100,}={0,2}"),
    _token("AWS Bedrock key", "bedrock-api-key-", "[A-Za-z0-9/+_-]{60,}={0,2}"),
    _token("Amazon MWS token", "amzn.mws.", _UUID),
    _token("Amazon login secret", "amzn1.oa2-cs.v1.", "[a-f0-9]{64}"),
    # docs.github.com/authentication/keeping-your-account-and-data-secure/about-authentication-to-github
    _token("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", "[A-Za-z0-9]{36,251}"),
    _token("GitHub token", "github_pat_", "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    # docs.gitlab.com/security/tokens
    _token(
        "GitLab token",
        "glpat- gloas- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- glwt-",
        r"[A-Za-z0-9_-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?",
    ),
    _token("GitLab token", "GR1348941", "[A-Za-z0-9_-]{20}"),
    _token("GitLab token", "_gitlab_session=", "[a-f0-9]{32}"),
    # docs.slack.dev/authentication/tokens and docs.slack.dev/messaging
    Form(
        "Slack token",
        tuple(f"xox{letter}-" for letter in "abcdeoprs"),
        r"(?:xoxe\.)?xox[abceoprs]-[0-9]{1,14}-[0-9A-Za-z-]{18,250}|xoxd-[A-Za-z0-9%/+=-]{40,}",
        place="start",
    ),
    _token("Slack token", "xapp-", "[0-9]-[A-Z0-9]{5,}-[0-9]{5,}-[a-f0-9]{32,}"),
    _token("Slack webhook", "hooks.slack.com/services/", "T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{24}"),
    _token(
        "Slack webhook",
        "hooks.slack.com/workflows/ hooks.slack.com/triggers/",
        "[TE][A-Z0-9]{6,}/[A-Z0-9]{6,}(?:/[0-9]{8,})?/[A-Za-z0-9]{20,}",
    ),
    # docs.stripe.com/keys and docs.stripe.com/webhooks
    _token("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", "[A-Za-z0-9]{16,247}"),
    _token("Stripe webhook secret", "whsec_", "[A-Za-z0-9/+]{32,}=?"),
    # openai.com keys: "T3BlbkFJ" is "OpenAI" in Base64
    Form(
        "OpenAI key",
        ("T3BlbkFJ",),
        r"(?<![_-])sk-[A-Za-z0-9_-]{20,170}?T3BlbkFJ[A-Za-z0-9_-]{20,170}(?![A-Za-z0-9])",
    ),
    _token("OpenAI key", "sk-proj- sk-svcacct- sk-admin-", "[A-Za-z0-9_-]{40,200}"),
    # DeepSeek, Moonshot, Stability and others, and OpenAI before 2023
    _token("model key", "sk-", "[a-f0-9]{32}|[A-Za-z0-9]{48}"),
    # platform.claude.com/docs/en/api/admin-api
    _token("Anthropic key", "sk-ant-", "[a-z]{3,8}[0-9]{2}-[A-Za-z0-9_-]{80,}"),
    # cloud.google.com/docs/authentication/api-keys and developers.google.com/identity/protocols/oauth2
    _token("Google API key", "AIza", "[A-Za-z0-9_-]{35}"),
    _token("Google API key", "AQ.Ab8", "[A-Za-z0-9_-]{40,60}"),
    _token("Google client secret", "GOCSPX-", "[A-Za-z0-9_-]{28}"),
    _token("Google access token", "ya29.", "[A-Za-z0-9_-]{40,}"),
    _token("Google refresh token", "1//0", "[A-Za-z0-9_-]{40,120}"),
    Form("Firebase server key", (":APA91b",), rf"AAAA[A-Za-z0-9_-]{{7}}:APA91b[A-Za-z0-9_-]{{134}}{_END}"),
    # npm, documentation: about access tokens
    _token("npm token", "npm_", "[A-Za-z0-9]{36}"),
    _named("npm token", "_authToken :_auth :_password", "[A-Za-z0-9/+_.-]{16,}={0,2}"),
    # PyPI, help: a macaroon whose first field names the index or its test site, in base64
    _token("PyPI token", "pypi-AgEIcHlwaS5vcmc pypi-AgENdGVzdC5weXBpLm9yZw", "[A-Za-z0-9_-]{50,}"),
    # guides.rubygems.org/api-key-scopes and crates.io/policies/security
    _token("RubyGems key", "rubygems_", "[a-f0-9]{48}"),
    _token("Cargo token", "cio", "[A-Za-z0-9]{32}"),
    _token("NuGet key", "oy2", "[a-z0-9]{43}"),
    _token("Clojars token", "CLOJARS_", "[a-z0-9]{60}"),
    _token("Packagist token", "packagist_ort_ packagist_out_ packagist_uut_", "[a-f0-9]{60,72}"),
    _token("Artifactory token", "AKCp", "[A-Za-z0-9]{69}"),
    _token("Artifactory token", "cmVmd", "[A-Za-z0-9]{59}"),
    # docs.docker.com/security/access-tokens
    _token("Docker token", "dckr_pat_ dckr_oat_", "[A-Za-z0-9_-]{27,}"),
    _named("Docker login", '"auth"', "[A-Za-z0-9/+]{24,}={0,2}"),
    # huggingface.co/docs/hub/security-tokens
    _token("Hugging Face token", "hf_ api_org_", "[A-Za-z0-9]{34}"),
    # openrouter.ai/docs/api-reference/authentication, console.groq.com/docs, docs.perplexity.ai, docs.x.ai
    _token("OpenRouter key", "sk-or-v1-", "[a-f0-9]{64}"),
    _token("Groq key", "gsk_", "[A-Za-z0-9]{52}"),
    _token("Perplexity key", "pplx-", "[A-Za-z0-9]{48}"),
    _token("xAI key", "xai-", "[A-Za-z0-9]{80}"),
    _token("Replicate token", "r8_", "[A-Za-z0-9]{37,40}"),
    _token("Pinecone key", "pcsk_", "[A-Za-z0-9]{5,6}_[A-Za-z0-9]{60,66}"),
    _token("LangSmith key", "lsv2_pt_ lsv2_sk_", "[a-f0-9]{32}_[a-f0-9]{10}"),
    _token("Langfuse key", "sk-lf-", _UUID),
    _token("LlamaCloud key", "llx-", "[A-Za-z0-9]{48}"),
    _token("Mem0 key", "m0-", "[A-Za-z0-9]{40}"),
    _token("Together key", "tgp_v1_", "[A-Za-z0-9_-]{40,}"),
    _token("Fireworks key", "fw_", "[A-Za-z0-9]{24}"),
    _token("Cerebras key", "csk-", "[a-z0-9]{48}"),
    _token("ElevenLabs key", "sk_", "[a-f0-9]{48}"),
    _token("Tavily key", "tvly-", "(?:dev-|prod-)?[A-Za-z0-9]{32,}"),
    _token("Firecrawl key", "fc-", "[a-f0-9]{32}"),
    _token("Jina key", "jina_", "[A-Za-z0-9_-]{60,64}"),
    _token("Voyage key", "pa-", "[A-Za-z0-9_-]{43}"),
    _token("E2B key", "e2b_", "[a-f0-9]{40}"),
    _token("Modal token", "ak- as-", "[A-Za-z0-9]{22}"),
    _token("RunPod key", "rpa_", "[A-Z0-9]{40}[A-Za-z0-9]{0,12}"),
    _token("NVIDIA key", "nvapi-", "[A-Za-z0-9_-]{60,70}"),
    _token("Anyscale key", "esecret_", "[A-Za-z0-9]{26,}"),
    _token("Coze token", "pat_", "[A-Za-z0-9]{64}"),
    _token("Apify token", "apify_api_", "[A-Za-z0-9]{36}"),
    _token("Weights and Biases key", "wandb_v1_", "[A-Za-z0-9_-]{40,}"),
    # www.twilio.com/docs/iam/api-keys; a token has no prefix, but a name or its account before it
    _token("Twilio key", "SK", "[0-9a-fA-F]{32}"),
    Form(
        "Twilio token",
        ("TWILIO", "twilio", "Twilio"),
        r"(?:TWILIO|[Tt]wilio)[A-Za-z_-]{0,20}(?:TOKEN|[Tt]oken|SECRET|[Ss]ecret)"
        rf"(?:\\?[\"'])?[ \t]{{0,3}}[=:][ \t]{{0,3}}(?:\\?[\"'])?([0-9A-Za-z]{{32}}){_END}",
        place="text",
    ),
    _token("Twilio token", "AC", "[0-9a-f]{32}:([0-9a-f]{32})"),
    # www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys
    _token("SendGrid key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _token("Brevo key", "xkeysib- xsmtpsib-", "[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    _token("Mailgun key", "key-", "[a-f0-9]{32}"),
    Form("Mailchimp key", ("-us",), rf"[a-f0-9]{{32}}-us[0-9]{{1,2}}{_END}"),
    _token("Mandrill key", "md-", "[A-Za-z0-9_-]{22}"),
    _token("MailerSend token", "mlsn.", "[a-f0-9]{64}"),
    _token("Resend key", "re_", "[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    _token("Courier key", "pk_prod_ pk_test_", "[A-Z0-9]{28}"),
    _token("OneSignal key", "os_v2_app_ os_v2_org_", "[a-z0-9]{80,110}"),
    # docs.digitalocean.com/reference/api
    _token("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", "[a-f0-9]{64}"),
    # developer.hashicorp.com/vault/docs/concepts/tokens and /terraform/cloud-docs/users-teams-organizations
    _token("Vault token", "hvs. hvb. hvr.", "[A-Za-z0-9_-]{24,}"),
    Form("Terraform token", (".atlasv1.",), rf"[A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,70}}{_END}"),
    _token("Pulumi token", "pul-", "[a-f0-9]{40}"),
    _token("Infracost key", "ico-", "[A-Za-z0-9]{32}"),
    _token("Doppler token", "dp.", r"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    _token("1Password key", "A3-", "[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}"),
    _token("1Password token", "ops_eyJ", "[A-Za-z0-9+/_-]{100,}={0,3}"),
    _token("Infisical token", "st.", r"[a-f0-9]{24}\.[a-f0-9]{32}\.[a-f0-9]{32}"),
    _token("Harness token", "pat. sat.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    # docs.databricks.com/dev-tools/auth/pat
    _token("Databricks token", "dapi dose", "[a-f0-9]{32}(?:-[0-9])?"),
    # shopify.dev/docs/apps/build/authentication-authorization/access-tokens
    _token("Shopify token", "shpat_ shpca_ shppa_ shpss_ shpua_", "[a-fA-F0-9]{32}"),
    # learn.microsoft.com/azure/storage/common/storage-configure-connection-string
    _named("Azure storage key", "AccountKey", "[A-Za-z0-9+/]{86}=="),
    _named("Azure access key", "SharedAccessKey", "[A-Za-z0-9+/]{43}="),
    Form("Azure shared access signature", ("sig=",), r"sig=((?:[A-Za-z0-9/+]|%2[BbFf]){43}(?:%3[Dd]|=))"),
    Form(
        "Azure client secret",
        ("Q~",),
        rf"[A-Za-z0-9_~.-]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}{_END}",
        begins=r"(?:(?<![A-Za-z0-9_~.-])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))",
    ),
    Form("Azure key", ("JQQJ9",), rf"[A-Za-z0-9]{{52}}JQQJ9[A-Za-z0-9]{{27}}{_END}"),
    # github.com/microsoft/security-utilities: the mark stands at a certain place
    _azure(76, "+ASt +ABa +AMC ACDb APIM", "[A-Za-z0-9+/]{6}=="),
    _azure(33, "+ASb +AEh +ARm AIoT", "[A-Za-z0-9+/]{6}="),
    _azure(44, "AzFu", "[A-Za-z0-9_-]{6}=="),
    _azure(42, "+ACR AzSe AzCa", "[A-Za-z0-9+/]{6}"),
    _azure(76, "AZDO", "[A-Za-z0-9]{4}"),
    # developers.notion.com, linear.app/developers and support.atlassian.com (API tokens)
    _token("Notion token", "ntn_", "[A-Za-z0-9]{40,60}"),
    _token("Notion token", "secret_", "[A-Za-z0-9]{43}"),
    _token("Linear key", "lin_api_ lin_oauth_ lin_wh_", "[A-Za-z0-9]{40,64}"),
    _token("Atlassian token", "ATATT3 ATCTT3", "[A-Za-z0-9_=-]{150,200}"),
    _token("Bitbucket password", "ATBB", "[A-Za-z0-9]{28,36}"),
    _token("Trello token", "ATTA", "[A-Za-z0-9]{72}"),
    _token("Airtable token", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _token("ClickUp token", "pk_", "[0-9]{5,10}_[A-Z0-9]{32}"),
    _token("Asana token", "0/1 1/1 2/1", "[0-9]{12,15}(?:/1[0-9]{12,15})?:[a-f0-9]{32}"),
    _token("Figma token", "figd_ figdr_ figo_ figoh_ figor_ figu_ figur_", "[A-Za-z0-9_-]{38,}"),
    _token("Canva secret", "cnvca", "[A-Za-z0-9_-]{40,60}"),
    _token("Intercom token", "dG9rO", "[A-Za-z0-9+/_-]{50,60}={0,2}"),
    _token("HubSpot token", "pat-na1- pat-na2- pat-na3- pat-eu1- pat-eu2- pat-ap1- pat-au1- pat-ca1-", _UUID),
    Form("Salesforce session", ("!AQ",), rf"00D[A-Za-z0-9]{{12}}!AQ[A-Za-z0-9._]{{80,110}}{_END}"),
    _token("Typeform token", "tfp_", "[A-Za-z0-9_.=-]{40,70}"),
    _token("Contentful token", "CFPAT-", "[A-Za-z0-9_-]{43}"),
    _token("Sanity token", "sk", "[A-Za-z0-9]{140,200}"),
    _token("ReadMe key", "rdme_", "[a-z0-9]{70}"),
    _token("GitBook token", "gb_api_", "[A-Za-z0-9]{40}"),
    _token("Frame token", "fio-u-", "[A-Za-z0-9_=-]{64}"),
    # grafana.com/docs/grafana/latest/administration/service-accounts and docs.sentry.io/account/auth-tokens
    _token("Grafana token", "glsa_", "[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    _token("Grafana token", "glc_", "[A-Za-z0-9+/]{32,400}={0,3}"),
    _token("Grafana token", "eyJrIjoi", "[A-Za-z0-9]{44}LCJuIjoi[A-Za-z0-9]{10,300}={0,2}"),
    _token("Sentry token", "sntryu_ sntrya_", "[a-f0-9]{64}"),
    _token("Sentry token", "sntrys_", "[A-Za-z0-9+/=_-]{60,500}"),
    _token("New Relic key", "NRAK- NRJS- NRII- NRIQ- NRRA- NRBR-", "[A-Za-z0-9_-]{19,42}"),
    Form(
        "New Relic key",
        ("NRAL",),
        rf"(?:[a-z]{{2,3}}[0-9]{{2}}x{{1,2}})?[a-f0-9]{{30,36}}(?:FFFF)?NRAL{_END}",
    ),
    _token("Dynatrace token", "dt0c01. dt0s01. dt0s02. dt0s16. dt0a01.", r"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    _token("Honeycomb key", "hcaik_ hcbik_ hcxik_ hcaik hcamk_ hcalk_ hcxmk_", "[a-z0-9_]{32,100}"),
    _token("Axiom token", "xaat- xapt-", _UUID),
    _token("Logfire token", "pylf_v1_", "[a-z]{2}_[A-Za-z0-9]{40,}"),
    _token("PostHog key", "phx_ phs_", "[A-Za-z0-9]{40,50}"),
    _token("Sourcegraph token", "sgp_", "(?:(?:[a-f0-9]{16}|local)_)?[a-f0-9]{40}|[A-Za-z0-9]{64}"),
    _token("LaunchDarkly key", "api- sdk- mob-", _UUID),
    _token("Statsig key", "secret-", "[A-Za-z0-9]{40,60}"),
    _token("Stytch secret", "secret-live- secret-test-", "[A-Za-z0-9_-]{36}=?"),
    _token("SonarQube token", "squ_ sqp_ sqa_", "[a-f0-9]{40}"),
    _token("Snyk token", "snyk_uat. snyk_sat.", r"[a-z0-9]{8}\.[A-Za-z0-9_.-]{40,}"),
    _token("Socket key", "sktsec_", "[A-Za-z0-9_-]{30,60}"),
    _token("StackHawk key", "hawk.", r"[A-Za-z0-9_-]{20}\.[A-Za-z0-9_-]{20}"),
    _token("CircleCI token", "CCIPAT_ CCIPRJ_", "[A-Za-z0-9]{20,24}_[a-f0-9]{40}"),
    _token("Buildkite token", "bkua_ bkaj_ bkct_", "[A-Za-z0-9_]{40,}"),
    _token("Prefect key", "pnu_ pnb_", "[A-Za-z0-9]{36}"),
    _token("Octopus key", "API-", "[A-Z0-9]{26}"),
    _token("TeamCity token", "eyJ0eXAiOiAiVENWMiJ9.", r"[A-Za-z0-9_-]{36}\.[A-Za-z0-9_-]{48}"),
    _token("Postman key", "PMAK-", "[a-f0-9]{24}-[a-f0-9]{34}"),
    _token("Postman key", "PMAT-", "[A-Z0-9]{26}"),
    _token("Heroku key", "HRKU-", "[A-Za-z0-9_-]{36,64}"),
    _token("Fly token", "fo1_", "[A-Za-z0-9_-]{43}"),
    _token("Fly token", "fm1a_ fm1r_ fm2_", "[A-Za-z0-9+/_=,-]{40,}"),
    Form("Fly token", ("FlyV1 ",), r"FlyV1 (?!fm)[A-Za-z0-9+/_=,-]{40,}", place="text"),
    _token("Vercel token", "vcp_ vci_ vca_ vcr_ vck_", "[A-Za-z0-9]{24,80}"),
    _token("Netlify token", "nfp_ nfc_ nfo_ nfu_ nfb_", "[A-Za-z0-9_-]{32,60}"),
    _token("Render key", "rnd_", "[A-Za-z0-9]{28,40}"),
    _token("Scalingo token", "tk-us-", "[A-Za-z0-9_-]{48}"),
    _token("UpCloud token", "ucat_", "[A-Z0-9]{26}"),
    _token("Supabase key", "sbp_ sbp_oauth_", "[a-f0-9]{40}"),
    _token("Supabase key", "sb_secret_", "[A-Za-z0-9_-]{30,50}"),
    _token("PlanetScale token", "pscale_tkn_ pscale_oauth_ pscale_pw_", "[A-Za-z0-9_=.-]{32,64}"),
    _token("Neon key", "napi_", "[a-z0-9]{64}"),
    _token("CockroachDB key", "CCDB1_", "[A-Za-z0-9]{22}_[A-Za-z0-9]{40}"),
    _token("Xata key", "xau_", "[A-Za-z0-9]{30,}"),
    _token("MongoDB Atlas secret", "mdb_sa_sk_", "[A-Za-z0-9_-]{40}"),
    _token("Aiven password", "AVNS_", "[A-Za-z0-9_-]{16,24}"),
    _token("dbt token", "dbtc_ dbtu_", "[A-Za-z0-9_=-]{30,64}"),
    _token("Confluent secret", "cflt", "[A-Za-z0-9+/]{60}"),
    _token("ClickHouse key", "4b1d", "[A-Za-z0-9]{38}"),
    _token("Tailscale key", "tskey-", "[a-z]{3,8}-[A-Za-z0-9]{8,}(?:-[A-Za-z0-9]{16,})?"),
    _token("Cloudflare token", "cfut_ cfat_ cfk_", "[A-Za-z0-9]{40,56}"),
    _token("Cloudflare token", "eyJhIjoi", "[A-Za-z0-9+/_-]{100,}={0,2}"),
    _token("Cloudflare CA key", "v1.0-", "[a-f0-9]{24}-[a-f0-9]{146}"),
    _token("Defined Networking key", "dnkey-", "[A-Za-z0-9_=-]{26}-[A-Za-z0-9_=-]{52}"),
    _token("ngrok key", "ak_ cr_", "[A-Za-z0-9]{27}"),
    _token("OpenShift token", "sha256~", "[A-Za-z0-9_-]{43}"),
    _token("Rancher token", "token-", "[a-z0-9]{5}:[a-z0-9]{54}"),
    _token("Portainer token", "ptr_", "[A-Za-z0-9+/]{40,44}=?"),
    Form("Okta token", ("SSWS",), rf"SSWS[ \t]+(00[A-Za-z0-9_-]{{40}}){_END}", place="text"),
    _token("Ory token", "ory_at_ ory_rt_ ory_ac_ ory_st_ ory_pat_ ory_wst_", "[A-Za-z0-9_-]{32,}"),
    _token("Zuplo key", "zpka_", "[a-f0-9]{32}_[a-f0-9]{8}"),
    _token("Konnect token", "kpat_ spat_", "[A-Za-z0-9]{40,60}"),
    Form(
        "Authress key",
        (".acc",),
        r"[a-z]{2,8}_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
    ),
    _token("Alibaba key", "LTAI", "[A-Za-z0-9]{16,24}"),
    _token("Tencent key", "AKID", "[A-Za-z0-9]{32}"),
    _token("Baidu key", "bce-v3/ALTAK-", "[A-Za-z0-9]{21}/[a-f0-9]{40}"),
    _token("Yandex token", "AQVN", "[A-Za-z0-9_-]{35,38}"),
    _token("Yandex token", "y0_", "[A-Za-z0-9_-]{50,70}"),
    _token("Yandex token", "t1.", "[A-Za-z0-9_-]{10,}={0,2}[.][A-Za-z0-9_-]{86}={0,2}"),
    _token("Yandex secret", "YC", "[A-Za-z0-9_-]{38}"),
    _token("Square token", "sq0atp- sq0csp-", "[A-Za-z0-9_-]{22,60}"),
    _token("Square token", "EAAA", "[A-Za-z0-9_-]{60}(?![+/=])"),
    _token("Facebook token", "EAA", "[A-Z][A-Za-z0-9]{100,250}(?![+/=])"),
    _token("Instagram token", "IGQ IGAA", "[A-Za-z0-9_-]{100,250}(?![+/=])"),
    _token("Twitter token", "A" * 19, "A{0,4}[A-Za-z0-9%]{70,110}(?![+/=])"),
    _token("Pinterest token", "pina_", "[A-Z0-9]{60,150}"),
    _token("Twitch token", "oauth:", "[a-z0-9]{30}"),
    _token("LinkedIn secret", "WPL_AP1.", "[A-Za-z0-9.=]{16,30}"),
    _token("Dropbox token", "sl.", r"(?:u\.)?[A-Za-z0-9_-]{120,}"),
    _token(
        "Discord token",
        "MT Mj Mz ND NT Nj Nz OD OT",
        r"[A-Za-z0-9_-]{22,26}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40}",
    ),
    _token(
        "Discord webhook",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        "[0-9]{15,21}/[A-Za-z0-9_-]{60,80}",
    ),
    _token(
        "Teams webhook",
        ".webhook.office.com/webhookb2/",
        "[0-9a-f@-]{36,80}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36}(?:/[A-Za-z0-9_-]+)?",
    ),
    _token(
        "Braintree token", "access_token$production$ access_token$sandbox$", "[a-z0-9]{16}[$][a-f0-9]{32}"
    ),
    _token(
        "Flutterwave key",
        "FLWSECK_TEST- FLWSECK- FLWSECK_LIVE-",
        "[a-h0-9]{32}-[A-Za-z0-9-]{0,20}X|[a-h0-9]{12}",
    ),
    _token("Midtrans key", "Mid-server-", "[A-Za-z0-9_-]{24}"),
    _token("Xendit key", "xnd_production_ xnd_development_", "[A-Za-z0-9]{40,70}"),
    _token("Checkout key", "sk_sbox_", "[a-z2-7]{26}[a-z2-7*#$=]"),
    _token("Lob key", "live_ test_", "[a-f0-9]{35}"),
    _token("Mollie key", "live_ test_", "[A-Za-z0-9]{30}"),
    _token("GoCardless token", "live_", "[A-Za-z0-9_-]{40}"),
    _token("Plaid token", "access-sandbox- access-development- access-production-", _UUID),
    _token("Persona key", "persona_production_ persona_sandbox_", _UUID),
    _token("Shippo token", "shippo_live_ shippo_test_", "[a-f0-9]{40}"),
    _token("EasyPost key", "EZAK EZTK", "[A-Za-z0-9]{54}"),
    _token("Duffel token", "duffel_live_ duffel_test_", "[A-Za-z0-9_=-]{43}"),
    _token("WooCommerce key", "ck_ cs_", "[a-f0-9]{40}"),
    _token("Cal key", "cal_ cal_live_", "[a-f0-9]{32}"),
    _token("Alchemy token", "alcht_", "[A-Za-z0-9]{30}"),
    _token("Mapbox token", "sk.eyJ tk.eyJ", r"[A-Za-z0-9_-]{30,120}\.[A-Za-z0-9_-]{20,24}"),
    _token("Adafruit key", "aio_", "[A-Za-z0-9]{28}"),
    _token("Adobe secret", "p8e-", "[A-Za-z0-9_-]{32}"),
    _token("Ubidots token", "BBFF- BBUS-", "[A-Za-z0-9]{30}"),
    _token("WakaTime key", "waka_", _UUID),
    _token("Riot key", "RGAPI-", _UUID),
    _token("SettleMint token", "sm_aat_ sm_pat_ sm_sat_", "[A-Za-z0-9]{16}"),
    _token("Intra42 secret", "s-s4t2ud- s-s4t2af-", "[a-f0-9]{64}"),
    Form("MaxMind key", ("_mmk",), rf"[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk{_END}"),
    # core.telegram.org/bots/api
    Form("Telegram bot token", (":AA",), rf"(?:bot)?([0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}){_END}"),
    # RFC 7519: a header and claims, JSON objects in Base64url, and a signature; or, by RFC 7516, a header,
    # a key that may be empty, an initialization vector, what is encrypted, and a tag
    Form(
        "JSON web token",
        ("eyJ",),
        r"(?<![_-])eyJ[A-Za-z0-9_-]{10,}\.(?:eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{20,}"
        r"|[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{16,22}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22,43}(?![A-Za-z0-9_-]))",
        place="start",
    ),
    # RFC 3986, section 3.2.1; a password that begins with the user's name is a default, and no secret
    Form(
        "URL password",
        ("://",),
        r"://(?!anonymous:|ftp:)([^\s:/?#@\"'`<>()|\\]{0,100}):(?!\1[0-9!]*@)"
        rf"(?!(?:[a-z]+|[0-9]+)@{_LOCAL})"
        r"([^\s/?#\"'`<>()\[\]{}|\\,;]{3,200})@(?!sha[0-9]{3}:)[A-Za-z0-9\[$]",
        password=True,
        begins="",
        place="text",
    ),
    Form(
        "connection password",
        ("assword=", "ASSWORD=", "assword =", "Pwd=", "pwd=", "PWD="),
        _CONNECTION + r"([^\s;,\"'`<>(){}\[\]\\]{5,200})",
        password=True,
        begins="",
        place="text",
    ),
    Form(
        "netrc password",
        ("machine",),
        r"machine\s+[\w.:-]+\s+login\s+(?!anonymous\s)\S+\s+password\s+(?![a-z]+\s)"
        r"([^\s\"'`<>(){}\\,;]{6,200})",
        password=True,
        begins=r"\b",
        place="text",
    ),
    # RFC 7468, RFC 4716, RFC 9580
    Form("private key", ("PRIVATE KEY",), _PEM, place="text"),
    _named("private key", "client-key-data clientKeyData", "[A-Za-z0-9+/]{60,}={0,2}"),
    # the same in base64, of the kinds that there are: RSA, EC, DSA, OPENSSH, ENCRYPTED, and none
    _token(
        "private key",
        "LS0tLS1CRUdJTi",
        "B(?:SU0EgU|FQyBQU|EU0EgU|PUEVOU1NIIF|FTkNSWVBURUQgU|QU|UkdQIF)[A-Za-z0-9+/]{60,}={0,2}",
    ),
    _named("WireGuard key", "PrivateKey", "[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]="),
    Form(
        "PuTTY key",
        ("Private-Lines:",),
        rf"Private-Lines: [0-9]+{_BREAK}+([A-Za-z0-9+/=]{{30,}}(?:{_BREAK}+[A-Za-z0-9+/=]{{20,}})*)",
        place="text",
    ),
    _named("Ethereum key", "PRIVATE_KEY private_key privateKey", "0x[a-f0-9]{64}"),
    _named("Laravel key", "APP_KEY", "base64:[A-Za-z0-9+/]{43}="),
    _token("Nostr key", "nsec1", "[02-9ac-hj-np-z]{58}"),
    # github.com/C2SP/C2SP/blob/main/age.md
    _token("age key", "AGE-SECRET-KEY-1", "[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
)

_MARKS = [(mark, form) for form in FORMATS for mark in form.marks if form.place != "start"]
_BY_START = defaultdict[str, list[tuple[str, Form]]](list)
for _form in FORMATS:
    for _mark in _form.marks if _form.place == "start" else ():
        _BY_START[_mark[:2]].append((_mark, _form))
_STARTS = regex(rf"{_START}(?=(\S\S))")
_SHORTEST = 20  # characters of a token, with its prefix
_BETWEEN = regex(r"[^\w+/=.:~$!%*#@\\?-]+", re.ASCII)  # what is in no token
_DRAWN = regex("[0-9A-Z]")  # what is in a token that is drawn at random
# What stands in documentation: words for a value to be filled in …
_FILLED_IN = regex(
    r"(?i)example|your|xxxx|placeholder|change[-_]?me|redacted|dummy|sample|fake|insert|replace|not-?real"
    r"|12345678|abcdefgh"
)
_LONGEST_FILLED_IN = 300  # in something longer they may stand by chance
# … a row of words or numbers …
_WORD = regex("[A-Z]?[a-z]{3,}|[0-9]+(?![a-z])|(?<![A-Za-z0-9])[a-z]+(?![A-Za-z0-9])")
# … and what vendors print: AWS, GitHub, Stripe, jwt.io, Telegram, and Microsoft's storage emulator.
_PUBLISHED = (
    "EXAMPLE",
    "fICCQD6m7oRw0uXOjANBgkqhkiG9w0BAQUFADCBiDELMAkGA1UEBhMCVVMxCzAJBgNVBAgT",
    "16C7e42F292c6912E7710c838347Ae178B4a",
    "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
    "sk_test_BQokikJOvBiI2HlWgH4olfQ2",
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq",
)


class Secret(NamedTuple):
    """A secret in a text, without itself: its first characters, and the first digits of its SHA-256."""

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

    Only the lines that `spans` touch, given in order, are looked into; `allow` has the first digits of the
    SHA-256 of secrets that are allowed.
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
    words = "\n".join([word for word in text.split() if len(word) >= _SHORTEST])
    kept = [word for word in _BETWEEN.split(words) if len(word) >= _SHORTEST and _DRAWN.search(word)]
    words = "\n".join(kept)
    starts = _BY_START.keys() & set(_STARTS.findall(words))
    marked = [*_MARKS, *(pair for start in starts for pair in _BY_START[start])]
    found = [(mark, form) for mark, form in marked if mark in (text if form.place == "text" else words)]
    return [
        form
        for mark, form in found
        if form.place == "text"
        or any(re.search(form.begins + form.pattern, each) for each in kept if mark in each)
    ]


def masked(text: str) -> str:
    """Return a text with the `word` of each secret in its place."""
    return splice(text, redactions(find(text)))


def redacted(data: Mapping[str, Any], allow: Sequence[str] = ()) -> tuple[Mapping[str, Any], list[Secret]]:
    """Replace the secrets of a JSON object by their `word`, and return them; `allow` as in `find`.

    Raises:
        Usage: without them, it is no JSON.
    """
    written = encoded(data)
    # The mark that allows secrets counts for its own line, and JSON is all one: here it allows none.
    secrets = find(written.replace(ALLOW_MARK, "-" * len(ALLOW_MARK)), allow=allow)
    if not secrets:
        return data, secrets
    try:
        clean = splice(written, redactions(secrets))
        return json.loads(clean, object_pairs_hook=_number_names), secrets
    except ValueError:
        problem = f"a secret reaches over several values: {secrets[0].kind} {secrets[0].shown}…"
        raise Usage(problem=problem, remedy=SECRETS_HINT) from None


def _number_names(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        own = name
        while own in made:
            own = f"{name}-{len(made)}"
        made[own] = value
    return made


def _find_escaped(text: str, line: Span) -> list[Secret]:
    """Return the secrets with characters that are written as escapes."""
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
    """Return the character that an escape stands for; nothing for an escaped line end."""
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
    """Return whether a value shows the form of a secret, as `ghp_xxxx…`, or is one that a vendor prints."""
    if len(value) >= _LONGEST_FILLED_IN:
        return any(part in value for part in _PUBLISHED)
    rest = value
    for mark in () if form.password else form.marks:
        rest = rest.replace(mark, "")
    if form.password:
        left = _WORDS_OF_NONE.sub("", value)
        is_word = _FILL_IN.fullmatch(value) or (left != value and not any(map(str.isalpha, left)))
    else:
        is_word = len(set(rest)) < _FEWEST or not any(map(str.isalnum, _WORD.sub("", rest)))
    is_published = any(part in value for part in _PUBLISHED)
    return bool(is_word or is_published or _FILLED_IN.search(rest)) or _is_sequence(rest)


def _is_sequence(value: str) -> bool:
    """Return whether most characters follow the one before: `1234567890abc`, `abc123def456`, `AbCdEf`."""
    codes = [ord(each) for each in value.casefold() if each.isalnum()]
    near = [abs(code - before) <= 1 for before, code in pairwise(codes)]
    return sum(near) > _MOST_BY_CHANCE * len(near)


def _is_allowed(text: str, secret: Secret, allow: Sequence[str]) -> bool:
    if any(secret.digest.startswith(digest[:DIGITS]) for digest in allow):
        return True
    (lines,) = _expand_to_lines(text, [secret.span])
    start, end = (secret.span.start - lines.start, secret.span.end - lines.start)
    around = text[slice(*lines)]
    first, last = around.rfind("\r", 0, start) + 1, around.find("\r", end)
    return ALLOW_MARK in around[first : last if last != -1 else None]
