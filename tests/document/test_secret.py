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
from tests.speed import examples
from tests.tables import cases

WORD = string.ascii_letters + string.digits
BASE64 = f"{WORD}+/"
BASE64URL = f"{WORD}_-"
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
UPPER = string.ascii_uppercase + string.digits

Form = Sequence[str | tuple[str, int]]
UUID: list[str | tuple[str, int]] = [(HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12)]
# For each kind its forms, as fixed texts and (alphabet, length) to draw.
FORMS: dict[str, Sequence[Form]] = {
    "AWS access key": [[f"A{name}A", (BASE32, 16)] for name in ("KI", "SI", "BI", "CC")],
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
        ["GR1348941", (BASE64URL, 20)],
        ["_gitlab_session=", (HEX, 32)],
    ],
    "Slack token": [
        ["xoxb-", ("123456789", 12), "-", ("123456789", 13), "-", (WORD, 24)],
        ["xoxp-", ("123456789", 12), "-", ("123456789", 12), "-", ("123456789", 12), "-", (HEX, 32)],
        ["xoxe.xoxp-1-", (UPPER, 166)],
        ["xoxe-1-", (UPPER, 146)],
        ["xapp-1-A", (UPPER, 10), "-", ("123456789", 13), "-", (HEX, 64)],
        ["xoxd-", (WORD, 60), "%2B", (WORD, 40)],
    ],
    "Slack webhook": [
        ["hooks.slack.com/services/T", (UPPER, 9), "/B", (UPPER, 10), "/", (WORD, 24)],
        [
            "hooks.slack.com/workflows/T",
            (UPPER, 8),
            "/A",
            (UPPER, 8),
            "/",
            (string.digits, 18),
            "/",
            (WORD, 24),
        ],
        ["hooks.slack.com/triggers/E", (UPPER, 8), "/", (string.digits, 12), "/", (HEX, 32)],
    ],
    "Stripe key": [[f"{kind}_{mode}_", (WORD, 24)] for kind in ("sk", "rk") for mode in ("live", "test")],
    "Stripe webhook secret": [["whsec_", (WORD, 32)]],
    "OpenAI key": [
        ["sk-", (WORD, 20), "T3BlbkFJ", (WORD, 20)],
        ["sk-proj-", (BASE64URL, 74), "T3BlbkFJ", (BASE64URL, 73), "Q"],
        ["sk-svcacct-", (BASE64URL, 58), "T3BlbkFJ", (BASE64URL, 57), "Q"],
        ["sk-admin-", (BASE64URL, 120)],
    ],
    "Anthropic key": [
        ["sk-ant-api03-", (BASE64URL, 93), "AA"],
        ["sk-ant-admin01-", (BASE64URL, 93), "AA"],
        ["sk-ant-oat01-", (BASE64URL, 93), "AA"],
    ],
    "Google API key": [["AIza", (BASE64URL, 34), "k"], ["AQ.Ab8", (BASE64URL, 47)]],
    "Google client secret": [["GOCSPX-", (BASE64URL, 28)]],
    "Google access token": [["ya29.", (BASE64URL, 120)]],
    "npm token": [["npm_", (WORD, 36)]],
    "PyPI token": [
        ["pypi-", "AgEIcHlwaS5vcmc", (BASE64URL, 80)],
        ["pypi-", "AgENdGVzdC5weXBpLm9yZw", (BASE64URL, 80)],
    ],
    "RubyGems key": [["rubygems_", (HEX, 48)]],
    "Docker token": [["dckr_pat_", (BASE64URL, 27)], ["dckr_oat_", (BASE64URL, 32)]],
    "Hugging Face token": [["hf_", (WORD, 34)], ["api_org_", (WORD, 34)]],
    "OpenRouter key": [["sk-or-v1-", (HEX, 64)]],
    "Groq key": [["gsk_", (WORD, 52)]],
    "Perplexity key": [["pplx-", (WORD, 48)]],
    "xAI key": [["xai-", (WORD, 80)]],
    "SendGrid key": [["SG.", (BASE64URL, 22), ".", (BASE64URL, 43)]],
    "DigitalOcean token": [[f"do{letter}_v1_", (HEX, 64)] for letter in "por"],
    "Vault token": [[f"hv{letter}.", (BASE64URL, 95)] for letter in "sbr"],
    "Terraform token": [[(WORD, 14), ".atlasv1.", (BASE64URL, 67)]],
    "Databricks token": [["dapi", (HEX, 32)], ["dapi", (HEX, 32), "-3"], ["dose", (HEX, 32)]],
    "Shopify token": [[f"shp{name}_", (HEX, 32)] for name in ("at", "ca", "pa", "ss", "ua")],
    "Twilio key": [["SK", (HEX, 32)]],
    "Notion token": [
        ["ntn_", (string.digits, 11), (WORD, 35)],
        ["ntn_", (WORD, 46)],
        ["secret_", (WORD, 43)],
    ],
    "Linear key": [[f"lin_{name}_", (WORD, 40)] for name in ("api", "oauth", "wh")],
    "Atlassian token": [["ATATT3", (BASE64URL, 186)], ["ATCTT3", (BASE64URL, 186)]],
    "Grafana token": [
        ["glsa_", (WORD, 32), "_", (HEX, 8)],
        ["glc_eyJ", (BASE64, 120)],
        ["eyJrIjoi", (WORD, 44), "LCJuIjoi", (WORD, 30)],
    ],
    "Sentry token": [
        ["sntryu_", (HEX, 64)],
        ["sntrya_", (HEX, 64)],
        ["sntrys_eyJpYXQiO", (BASE64, 150), "=_", (BASE64, 43)],
    ],
    "Telegram bot token": [[("123456789", 10), ":AA", (BASE64URL, 33)]],
    "JSON web token": [
        ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI", (WORD, 20), ".", (BASE64URL, 43)],
        ["eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiI", (WORD, 90), ".", (BASE64URL, 342)],
        ["eyJhbGciOiJIUzI1NiJ9.eyJhIjoxfQ.", (BASE64URL, 43)],
        ["eyJhbGciOiJkaXIifQ..", (WORD, 16), ".", (WORD, 90), ".", (WORD, 22)],
    ],
    # The rest of them are those of the vendors of models, packages, clouds, mail, payment and tracking.
    "AWS session token": [
        ["IQoJb3JpZ2lu", (BASE64, 600), "=="],
        ["FwoGZXIvYXdz", (BASE64, 160)],
        ["FQoGZXIvYXdz", (BASE64, 300)],
    ],
    "AWS Bedrock key": [
        ["ABSK", (BASE64, 128), "=="],
        ["bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t", (BASE64, 120)],
    ],
    "Amazon MWS token": [["amzn.mws.", *UUID]],
    "Amazon login secret": [["amzn1.oa2-cs.v1.", (HEX, 64)]],
    "model key": [["sk-", (HEX, 32)], ["sk-", (WORD, 48)]],
    "Google refresh token": [["1//0", (BASE64URL, 99)]],
    "Firebase server key": [["AAAA", (BASE64URL, 7), ":APA91b", (BASE64URL, 134)]],
    "Cargo token": [["cio", (WORD, 32)]],
    "NuGet key": [["oy2", (LOWER, 43)]],
    "Clojars token": [["CLOJARS_", (LOWER, 60)]],
    "Packagist token": [[f"packagist_{name}_", (HEX, 68)] for name in ("ort", "out", "uut")],
    "Artifactory token": [["AKCp", (WORD, 69)], ["cmVmdGtuO", (WORD, 55)]],
    "Replicate token": [["r8_", (WORD, 37)]],
    "Pinecone key": [["pcsk_", (WORD, 5), "_", (WORD, 63)]],
    "LangSmith key": [[f"lsv2_{name}_", (HEX, 32), "_", (HEX, 10)] for name in ("pt", "sk")],
    "Langfuse key": [["sk-lf-", *UUID]],
    "LlamaCloud key": [["llx-", (WORD, 48)]],
    "Mem0 key": [["m0-", (WORD, 40)]],
    "Together key": [["tgp_v1_", (BASE64URL, 43)]],
    "Fireworks key": [["fw_", (WORD, 24)]],
    "Cerebras key": [["csk-", (LOWER, 48)]],
    "ElevenLabs key": [["sk_", (HEX, 48)]],
    "Tavily key": [["tvly-", (WORD, 32)], ["tvly-dev-", (WORD, 32)]],
    "Firecrawl key": [["fc-", (HEX, 32)]],
    "Jina key": [["jina_", (HEX, 32), (BASE64URL, 28)]],
    "Voyage key": [["pa-", (BASE64URL, 43)]],
    "E2B key": [["e2b_", (HEX, 40)]],
    "Modal token": [["ak-", (WORD, 22)], ["as-", (WORD, 22)]],
    "RunPod key": [["rpa_", (UPPER, 40), (LOWER, 6)]],
    "NVIDIA key": [["nvapi-", (BASE64URL, 64)]],
    "Anyscale key": [["esecret_", (WORD, 26)]],
    "Coze token": [["pat_", (WORD, 64)]],
    "Apify token": [["apify_api_", (WORD, 36)]],
    "Weights and Biases key": [["wandb_v1_", (BASE64URL, 77)]],
    "Brevo key": [[f"{name}-", (HEX, 64), "-", (WORD, 16)] for name in ("xkeysib", "xsmtpsib")],
    "Mailgun key": [["key-", (HEX, 32)]],
    "Mailchimp key": [[(HEX, 32), f"-us{digit}"] for digit in range(1, 22)],
    "Mandrill key": [["md-", (BASE64URL, 21), "A"]],
    "MailerSend token": [["mlsn.", (HEX, 64)]],
    "Resend key": [["re_", (WORD, 8), "_", (WORD, 24)]],
    "Courier key": [[f"pk_{mode}_", (UPPER, 28)] for mode in ("prod", "test")],
    "OneSignal key": [[f"os_v2_{name}_", (LOWER, 103)] for name in ("app", "org")],
    "Pulumi token": [["pul-", (HEX, 40)]],
    "Infracost key": [["ico-", (WORD, 32)]],
    "Doppler token": [["dp.pt.", (WORD, 43)], ["dp.st.dev_personal.", (WORD, 43)]],
    "1Password key": [["A3-", (UPPER, 6), *("-", (UPPER, 6)), *4 * ("-", (UPPER, 5))]],
    "1Password token": [["ops_eyJ", (BASE64, 600), "=="]],
    "Infisical token": [["st.", (HEX, 24), ".", (HEX, 32), ".", (HEX, 32)]],
    "Harness token": [[f"{name}.", (WORD, 22), ".", (HEX, 24), ".", (WORD, 20)] for name in ("pat", "sat")],
    "Azure client secret": [[(WORD, 3), f"{digit}Q~", (BASE64URL, 30), "~x.y"] for digit in range(10)],
    "Azure key": [
        [(WORD, 52), "JQQJ99", (WORD, 26)],
        *([(BASE64, 76), mark, (WORD, 6), "=="] for mark in ("+ASt", "+ABa", "+AMC", "ACDb", "APIM")),
        *([(BASE64, 33), mark, (WORD, 6), "="] for mark in ("+ASb", "+AEh", "+ARm", "AIoT")),
        [(WORD, 44), "AzFu", (WORD, 6), "=="],
        *([(WORD, 42), mark, (WORD, 6)] for mark in ("+ACR", "AzSe", "AzCa")),
        [(WORD, 76), "AZDO", (WORD, 4)],
    ],
    "Bitbucket password": [["ATBB", (WORD, 32)]],
    "Trello token": [["ATTA", (HEX, 64), ("0123456789ABCDEF", 8)]],
    "Airtable token": [["pat", (WORD, 14), ".", (HEX, 64)]],
    "ClickUp token": [["pk_", (string.digits, 8), "_", (UPPER, 32)]],
    "Asana token": [
        ["0/1", (string.digits, 15), ":", (HEX, 32)],
        ["1/1", (string.digits, 15), ":", (HEX, 32)],
        ["2/1", (string.digits, 15), "/1", (string.digits, 15), ":", (HEX, 32)],
    ],
    "Figma token": [[f"{name}_", (BASE64URL, 40)] for name in ("figd", "figoh", "figu")],
    "Canva secret": [["cnvca", (BASE64URL, 51)]],
    "Intercom token": [["dG9rO", (BASE64, 54), "="]],
    "HubSpot token": [[f"pat-{name}-", *UUID] for name in ("na1", "eu1")],
    "Salesforce session": [["00D", (WORD, 12), "!AQ", (f"{WORD}._", 94)]],
    "Typeform token": [["tfp_", (WORD, 44), "_", (WORD, 14)]],
    "Contentful token": [["CFPAT-", (BASE64URL, 43)]],
    "Sanity token": [["sk", (WORD, 178)]],
    "ReadMe key": [["rdme_", (LOWER, 70)]],
    "GitBook token": [["gb_api_", (WORD, 40)]],
    "Frame token": [["fio-u-", (BASE64URL, 64)]],
    "New Relic key": [
        ["NRAK-", (UPPER, 27)],
        ["NRJS-", (HEX, 19)],
        ["NRII-", (BASE64URL, 32)],
        [(HEX, 32), "FFFFNRAL"],
        ["eu01xx", (HEX, 30), "NRAL"],
    ],
    "Dynatrace token": [
        [f"dt0{name}.", (UPPER, 24), ".", (UPPER, 64)] for name in ("c01", "s01", "s02", "s16", "a01")
    ],
    "Honeycomb key": [["hcaik_", (LOWER, 58)], ["hcamk_", (LOWER, 58)]],
    "Axiom token": [[f"{name}-", *UUID] for name in ("xaat", "xapt")],
    "Logfire token": [["pylf_v1_us_", (WORD, 43)]],
    "PostHog key": [["phx_", (WORD, 43)], ["phs_", (WORD, 43)]],
    "Sourcegraph token": [
        ["sgp_", (HEX, 40)],
        ["sgp_local_", (HEX, 40)],
        ["sgp_", (HEX, 16), "_", (HEX, 40)],
    ],
    "LaunchDarkly key": [[f"{name}-", *UUID] for name in ("api", "sdk", "mob")],
    "Statsig key": [["secret-", (WORD, 43)]],
    "Stytch secret": [[f"secret-{mode}-", (BASE64URL, 36), "="] for mode in ("live", "test")],
    "SonarQube token": [[f"sq{letter}_", (HEX, 40)] for letter in "upa"],
    "Snyk token": [
        [f"snyk_{name}.", (HEX, 8), ".", (BASE64URL, 80), ".", (BASE64URL, 43)] for name in ("uat", "sat")
    ],
    "Socket key": [["sktsec_", (BASE64URL, 36), "_api"]],
    "StackHawk key": [["hawk.", (WORD, 20), ".", (WORD, 20)]],
    "CircleCI token": [[f"{name}_", (WORD, 22), "_", (HEX, 40)] for name in ("CCIPAT", "CCIPRJ")],
    "Buildkite token": [[f"bk{name}_", (HEX, 40)] for name in ("ua", "aj", "ct")],
    "Prefect key": [["pnu_", (LOWER, 36)], ["pnb_", (LOWER, 36)]],
    "Octopus key": [["API-", (UPPER, 26)]],
    "TeamCity token": [["eyJ0eXAiOiAiVENWMiJ9.", (BASE64URL, 36), ".", (BASE64URL, 48)]],
    "Postman key": [["PMAK-", (HEX, 24), "-", (HEX, 34)], ["PMAT-", (UPPER, 26)]],
    "Heroku key": [["HRKU-AA", (BASE64URL, 58)], ["HRKU-", *UUID]],
    "Fly token": [
        ["fo1_", (BASE64URL, 43)],
        ["fm1a_", (BASE64, 160), "=="],
        ["fm1r_", (BASE64, 160), "=="],
        ["fm2_", (BASE64, 160), "=="],
        ["FlyV1 ", (BASE64, 120)],
    ],
    "Vercel token": [[f"vc{letter}_", (WORD, 56)] for letter in "piark"],
    "Netlify token": [[f"nf{letter}_", (WORD, 36)] for letter in "pcoub"],
    "Render key": [["rnd_", (WORD, 28)]],
    "Scalingo token": [["tk-us-", (BASE64URL, 48)]],
    "UpCloud token": [["ucat_", (UPPER, 26)]],
    "Supabase key": [["sbp_", (HEX, 40)], ["sbp_oauth_", (HEX, 40)], ["sb_secret_", (BASE64URL, 31)]],
    "PlanetScale token": [[f"pscale_{name}_", (BASE64URL, 43)] for name in ("tkn", "oauth", "pw")],
    "Neon key": [["napi_", (LOWER, 64)]],
    "CockroachDB key": [["CCDB1_", (WORD, 22), "_", (WORD, 40)]],
    "Xata key": [["xau_", (WORD, 40)]],
    "MongoDB Atlas secret": [["mdb_sa_sk_", (BASE64URL, 40)]],
    "Aiven password": [["AVNS_", (BASE64URL, 19)]],
    "dbt token": [["dbtc_", (BASE64URL, 43)], ["dbtu_", (BASE64URL, 43)]],
    "Confluent secret": [["cflt", (BASE64, 59), "A"]],
    "ClickHouse key": [["4b1d", (WORD, 38)]],
    "Tailscale key": [
        ["tskey-auth-", (WORD, 12), "CNTRL-", (WORD, 32)],
        ["tskey-api-", (WORD, 16), "-", (WORD, 32)],
    ],
    "Cloudflare token": [
        ["cfut_", (WORD, 48)],
        ["cfat_", (WORD, 48)],
        ["cfk_", (WORD, 48)],
        ["eyJhIjoi", (BASE64, 170), "=="],
    ],
    "Cloudflare CA key": [["v1.0-", (HEX, 24), "-", (HEX, 146)]],
    "Defined Networking key": [["dnkey-", (LOWER, 26), "-", (LOWER, 52)]],
    "ngrok key": [["ak_2", (WORD, 26)], ["cr_2", (WORD, 26)]],
    "OpenShift token": [["sha256~", (BASE64URL, 43)]],
    "Rancher token": [["token-", (LOWER, 5), ":", (LOWER, 54)]],
    "Portainer token": [["ptr_", (BASE64, 43), "="]],
    "Ory token": [[f"ory_{name}_", (BASE64URL, 43)] for name in ("at", "rt", "ac", "st", "pat", "wst")],
    "Zuplo key": [["zpka_", (HEX, 32), "_", (HEX, 8)]],
    "Konnect token": [["kpat_", (WORD, 44)], ["spat_", (WORD, 44)]],
    "Authress key": [[f"sc_{'a7' * 6}.k2b4.acc{sign}", (LOWER, 12), ".", (BASE64, 60)] for sign in "-_"],
    "Alibaba key": [["LTAI", (WORD, 20)]],
    "Tencent key": [["AKID", (WORD, 32)]],
    "Baidu key": [["bce-v3/ALTAK-", (WORD, 21), "/", (HEX, 40)]],
    "Yandex token": [
        ["AQVN", (BASE64URL, 36)],
        ["y0_", (BASE64URL, 58)],
        ["t1.", (BASE64URL, 90), ".", (BASE64URL, 86)],
    ],
    "Yandex secret": [["YC", (BASE64URL, 37), "A"]],
    "Square token": [["sq0atp-", (BASE64URL, 22)], ["sq0csp-", (BASE64URL, 43)], ["EAAA", (BASE64URL, 60)]],
    "Facebook token": [["EAAG", (WORD, 160)]],
    "Instagram token": [["IGQV", (BASE64URL, 130)], ["IGAA", (BASE64URL, 130)]],
    "Twitter token": [["A" * 21, (WORD, 22), "%2F", (WORD, 10), "%3D", (WORD, 50)]],
    "Pinterest token": [["pina_", (UPPER, 70)]],
    "Twitch token": [["oauth:", (LOWER, 30)]],
    "LinkedIn secret": [["WPL_AP1.", (WORD, 16)]],
    "Dropbox token": [["sl.", (BASE64URL, 136)], ["sl.u.", (BASE64URL, 1200)]],
    "Discord token": [
        [start, (WORD, 22), ".", (BASE64URL, 6), ".", (BASE64URL, 38)] for start in ("MT", "ND", "OT")
    ],
    "Discord webhook": [
        [f"{host}.com/api/webhooks/1", (string.digits, 18), "/", (BASE64URL, 68)]
        for host in ("discord", "discordapp")
    ],
    "Teams webhook": [
        [".webhook.office.com/webhookb2/", *UUID, "@", *UUID, "/IncomingWebhook/", (HEX, 32), "/", *UUID]
    ],
    "Braintree token": [
        [f"access_token${mode}$", (LOWER, 16), "$", (HEX, 32)] for mode in ("production", "sandbox")
    ],
    "Flutterwave key": [
        ["FLWSECK_TEST-", (HEX, 32), "-X"],
        ["FLWSECK_LIVE-", (HEX, 12)],
        ["FLWSECK-", (HEX, 32), "-18f2a1c0b3dvt-X"],
    ],
    "Midtrans key": [["Mid-server-", (BASE64URL, 24)]],
    "Xendit key": [[f"xnd_{mode}_", (WORD, 60)] for mode in ("production", "development")],
    "Checkout key": [["sk_sbox_", ("abcdefghijklmnopqrstuvwxyz234567", 27)]],
    "Lob key": [["live_", (HEX, 35)], ["test_", (HEX, 35)]],
    "Mollie key": [["live_", (WORD, 30)], ["test_", (WORD, 30)]],
    "GoCardless token": [["live_", (BASE64URL, 40)]],
    "Plaid token": [[f"access-{mode}-", *UUID] for mode in ("sandbox", "development", "production")],
    "Persona key": [[f"persona_{mode}_", *UUID] for mode in ("production", "sandbox")],
    "Shippo token": [[f"shippo_{mode}_", (HEX, 40)] for mode in ("live", "test")],
    "EasyPost key": [["EZAK", (WORD, 54)], ["EZTK", (WORD, 54)]],
    "Duffel token": [[f"duffel_{mode}_", (BASE64URL, 43)] for mode in ("live", "test")],
    "WooCommerce key": [["ck_", (HEX, 40)], ["cs_", (HEX, 40)]],
    "Cal key": [["cal_", (HEX, 32)], ["cal_live_", (HEX, 32)]],
    "Alchemy token": [["alcht_", (WORD, 30)]],
    "Mapbox token": [[f"{letter}k.eyJ1Ijoi", (WORD, 70), ".", (BASE64URL, 22)] for letter in "st"],
    "Adafruit key": [["aio_", (WORD, 28)]],
    "Adobe secret": [["p8e-", (BASE64URL, 32)]],
    "Ubidots token": [[f"{name}-", (WORD, 30)] for name in ("BBFF", "BBUS")],
    "WakaTime key": [["waka_", *UUID]],
    "Riot key": [["RGAPI-", *UUID]],
    "SettleMint token": [[f"sm_{name}_", (WORD, 16)] for name in ("aat", "pat", "sat")],
    "Intra42 secret": [[f"s-s4t2{name}-", (HEX, 64)] for name in ("ud", "af")],
    "MaxMind key": [[(WORD, 6), "_", (WORD, 29), "_mmk"]],
    "Nostr key": [["nsec1", ("qpzry9x8gf2tvdw0s3jn54khce6mua7l", 58)]],
    "age key": [["AGE-SECRET-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)]],
}
# Of these only a part is the secret: what stands before it and behind it.
NAMED: dict[str, Sequence[tuple[str, tuple[str, int] | list[str | tuple[str, int]], str]]] = {
    "AWS secret key": [
        ("aws_secret_access_key = ", (BASE64, 40), ""),
        ("export AWS_SECRET_ACCESS_KEY='", (BASE64, 40), "'"),
        ('"SecretAccessKey": "', (BASE64, 40), '"'),
        ("SecretAccessKey = ", (BASE64, 40), ""),
        ("secretAccessKey: '", (BASE64, 40), "',"),
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
    "Azure storage key": [("AccountName=a;AccountKey=", [(BASE64, 86), "=="], ";EndpointSuffix=x")],
    "AWS session token": [
        ("aws_session_token = ", [(BASE64, 300), "="], ""),
        ("export AWS_SESSION_TOKEN=", (BASE64, 300), ""),
        ("aws_security_token=", (BASE64, 300), ""),
        ('"SessionToken": "', [(BASE64, 300), "=="], '"'),
        ("sessionToken: '", (BASE64, 300), "'"),
    ],
    "npm token": [
        ("//npm.x.test/:_authToken=", UUID, ""),
        ("_authToken = ", (WORD, 40), ""),
        ("//npm.x.test/:_auth=", [(WORD, 30), "=="], ""),
        ('//npm.x.test/:_password="', [(WORD, 30), "=="], '"'),
    ],
    "Docker login": [('{"auths": {"x.test": {"auth": "', [(WORD, 42), "=="], '"}}}')],
    "Azure access key": [("SharedAccessKeyName=a;SharedAccessKey=", [(BASE64, 43), "="], ";EntityPath=x")],
    "Azure shared access signature": [
        (
            "https://a.blob.x.test/b?sv=2022-11-02&se=2030-01-01&sig=",
            [(WORD, 20), "%2B", (WORD, 22), "%3D"],
            "&sp=r",
        ),
        ("SharedAccessSignature sr=x&sig=", [(WORD, 43), "="], "&se=1"),
    ],
    "Okta token": [("Authorization: SSWS ", ["00", (BASE64URL, 39), "x"], "")],
    "connection password": [
        ("Server=tcp:db.x.test,1433;Initial Catalog=app;User ID=app;Password=", (WORD, 14), ";Encrypt=True"),
        ("Host=db.x.test;Username=app;Password=", (WORD, 14), ""),
        ("DRIVER={x};SERVER=db;DATABASE=a;UID=app;PWD=", (WORD, 14), ""),
        ("data source=db;user id=app;pwd=", (WORD, 14), ";"),
        ("server=db; uid=app; Pwd=", (WORD, 14), ";"),
        ("cache.x.test:6380,password=", [(BASE64, 43), "="], ",ssl=True"),
        ("SERVER=db;UID=a;PASSWORD=", (WORD, 14), ""),
        ("Data Source = db; Password = ", (WORD, 14), ";"),
    ],
    "netrc password": [
        ("machine x.test login ada password ", (WORD, 14), ""),
        ("machine x.test\n  login ada\n  password ", (WORD, 14), "\n"),
    ],
    "private key": [
        ("    client-key-data: ", [(BASE64, 400), "=="], ""),
        ('"clientKeyData": "', [(BASE64, 400)], '"'),
    ],
    "WireGuard key": [("[Interface]\nPrivateKey = ", [(BASE64, 42), "0="], "\n")],
    "PuTTY key": [("Private-Lines: 1\n", [(BASE64, 64), "\n", (BASE64, 40)], "\nPrivate-MAC: 0")],
    "Ethereum key": [
        (f"{name}=", ["0x", (HEX, 64)], "") for name in ("PRIVATE_KEY", "private_key", "privateKey")
    ],
    "Laravel key": [("APP_KEY=", ["base64:", (BASE64, 43), "="], "")],
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
LABELS = ["PRIVATE KEY", *(f"{each} PRIVATE KEY" for each in ("RSA", "EC", "DSA", "OPENSSH", "ENCRYPTED"))]
TOKENS += [("private key", base64.b64encode(pem(label).encode()).decode()) for label in LABELS]


JWT_IO = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0."


def named() -> list[tuple[str, str, str, str]]:
    return [
        (kind, before, drawn(part if isinstance(part, list) else [part]), after)
        for kind, forms in NAMED.items()
        for before, part, after in forms
    ]


def kinds(text: str) -> list[str]:
    return [secret.kind for secret in find(text)]


def redacted(text: str) -> str:
    return splice(text, redactions(find(text)))


def test_every_format_of_the_table_is_tested() -> None:
    assert {form.kind for form in FORMATS} == {kind for kind, _ in TOKENS} | NAMED.keys()


@cases("form", FORMATS, ids=lambda form: f"{form.kind} {form.marks[0]}")
def test_every_mark_stands_in_a_token_of_its_kind(form: SecretForm) -> None:
    tokens = [token for kind, token in TOKENS if kind == form.kind]
    tokens += [before + token + after for kind, before, token, after in named() if kind == form.kind]
    one_of_many = len(form.marks) > 5  # the forms of GitLab and Slack are drawn for some of their prefixes
    known = [any(mark in token for token in tokens) for mark in form.marks]
    assert any(known) if one_of_many else all(known)


@cases("kind, token", TOKENS)
@pytest.mark.parametrize(
    "around",
    [
        *("{}", "The token is {}.", "`{}`", "key={}\n", '{{"token": "{}"}}', "https://x.test/?t={}&n=1"),
        *("a\\n{}\\nb", "token: '{}' # of ada", "export TOKEN={}", 'client = Client(token="{}", retry=3)'),
        "tool --token={} --all",
    ],
)
def test_a_token_is_found_where_it_stands(kind: str, token: str, around: str) -> None:
    text = around.format(token)
    (secret,) = find(text)
    assert secret.kind == kind
    # Only what may end a token, but also a sentence or an escape, can be left in doubt.
    assert text[slice(*secret.span)].rstrip(".-") == token.rstrip(".-")


@cases("kind, before, token, after", named())
def test_of_a_named_value_the_value_is_the_secret(kind: str, before: str, token: str, after: str) -> None:
    (secret,) = find(before + token + after)
    assert secret.kind == kind
    assert secret.span.start == len(before)
    assert redacted(before + token + after).startswith(before + secret.word)


@cases("token", [token for _, token in TOKENS])
def test_a_token_that_is_cut_off_is_none(token: str) -> None:
    cut = 70 if token.startswith("-----") else 16
    assert kinds(f"{token[:cut]}\n") == []


WORDS_OF_NONE = (
    *(
        "password123",
        "secret",
        "P@ssw0rd!",
        "my-secret-pw",
        "Your_password123",
        "admin1234",
        "changeme",
        "secret!",
    ),
    *(
        "123456",
        "12345678",
        "abc123",
        "qwerty",
        "test1234",
        "MySecretPassword",
        "<password>",
        "${PASS}",
        "****",
    ),
)
SEQUENCES = (
    *(
        "1234567890abc" * 4,
        f"{string.ascii_letters}{string.digits}",
        f"{string.digits}{string.ascii_letters}",
    ),
    *(
        "abc123def456ghi789jkl012mno345" * 2,
        "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789" * 2,
    ),
    *("deadbeef" * 8, "0123456789abcdef" * 4, "fedcba9876543210" * 4, "x" * 60, "0" * 60, "exampletoken" * 5),
    *("changeme" * 8, "notarealtoken" * 5, "placeholder-" * 5),
)


@cases(
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
        *(f"postgres://ada:{word}@db.x.test" for word in WORDS_OF_NONE),
        *(f"Server=db;User Id=ada;Password={word};" for word in WORDS_OF_NONE),
        *(f"machine x.test login ada password {word}" for word in WORDS_OF_NONE),
        "redis://root:secret@127.0.0.1 ftp://anonymous:me@x.org ftp://anonymous:me@x.org@ftp.x.test",
        "postgres://app:app123@db mysql://ada:lovelace@localhost/x http://abc:xyz@example.com http://u:p@x.test",
        *(
            f"{before}{row}"
            for before in ("ghp_", "hf_", "npm_", "sk-", "glpat-", "AKIA")
            for row in SEQUENCES
        ),
        *(f"key-{row[:32]} pul-{row[:40]}" for row in SEQUENCES),
        "re_create_the_index_of_everything_now_ok sk_buff_alloc_with_frags_and_pages_of_kernel",
        "pul-the-lever-and-other-stories-of-the-old-west cio-operations-and-information-technology-v2",
        "--md-code-hl-special-color test_the_memory_of_an_agent_is_kept_when_2_run",
        "client-key-data: DATA+OMITTED :_authToken=${NPM_TOKEN} :_authToken=YOUR_AUTH_TOKEN_HERE",
        ":_authToken=00000000-0000-0000-0000-000000000000 pat-na1-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
        "f(username=auth[0], password=auth[1]) machine learning needs a login and a password somehow",
        "https://x.test:8080,me@x.test https://x.test:80)@me (https://x.test:80/@me) https://x.test:80#me@x",
        "docker://alpine:3.18@sha256:0123 ssh://git@github.com:22/x git@github.com:a/b.git",
        '{"text": "https://x.test:8080\\nme@x.test"}',
        f'"integrity": "sha512-{"a3KBk/LmYD6w" * 5}SGqa+1M6p9edeuypAzSehTUw=="',
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
@settings(max_examples=examples(200))
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


@cases("token", [token for _, token in TOKENS])
def test_what_stands_for_a_token_is_none_and_a_plain_word(token: str) -> None:
    (secret,) = find(token)
    assert find(secret.word) == []
    assert secret.word.replace("-", "").isalnum()
    assert secret.word.isascii()


@cases("token", [token for _, token in TOKENS] + [b + t + a for _, b, t, a in named()])
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


@cases(
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


@cases("header", ["a: b ", "A: ", "A: x \\n ", "A: ,,,", "a: ,,,,,,,,,,,,,,,,,,,, "])
def test_headers_of_a_key_that_go_on_take_no_endless_search(header: str) -> None:
    assert find("-----BEGIN PRIVATE KEY-----" + header * 20_000) == []
