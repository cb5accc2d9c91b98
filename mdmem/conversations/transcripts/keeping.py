"""Keeping: the messages that the config lets be kept, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdmem.conversations.log.logs import SessionLogs, fits
from mdmem.conversations.log.message import Message, check
from mdmem.diagnostic import SECRETS, SECRETS_HINT, about_file
from mdmem.document import secret
from mdmem.document.secret import redacted
from mdmem.errors import Invalid


def is_kept(logs: SessionLogs, key: str) -> bool:
    """Return whether the config lets anything be kept of a session."""
    return not any(fits(glob, key) for glob in logs.vault.config.sessions.ignored)


def refuse_secret(logs: SessionLogs, key: str) -> None:
    """Refuse a key that holds a secret, where the config lets none be kept: files are named after it."""
    config = logs.vault.config
    if config.sessions.secrets != "keep" and (secrets := secret.find(key, allow=config.secrets.allow)):
        message = f"this key looks like it holds a secret: {secrets[0].kind} {secrets[0].shown}…"
        raise Invalid(findings=(about_file(secret.masked(key), SECRETS, message, SECRETS_HINT),))


def clean_message(logs: SessionLogs, key: str, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a message as it is kept; None if it is not kept."""
    if isinstance(message, dict) and "role" not in message:
        # Most messages have a role.
        from mdmem.conversations.transcripts.transcripts import read_any  # noqa: PLC0415 - start-up

        message = read_any(message)
    check(message)
    return None if Message.of(0, message).is_transient else remove_secrets(logs, key, message)


def remove_secrets(logs: SessionLogs, key: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Remove the secrets from what is said, or refuse them, as the config has it."""
    config = logs.vault.config
    if config.sessions.secrets == "keep":
        return data
    clean, secrets = redacted(data, config.secrets.allow)
    if secrets and config.sessions.secrets == "refuse":
        path = logs.path(key)
        raise Invalid(findings=tuple(about_file(path, SECRETS, each.told, SECRETS_HINT) for each in secrets))
    return clean
