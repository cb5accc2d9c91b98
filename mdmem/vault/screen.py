"""What a plan adds is looked through for secrets, before it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mdmem.diagnostic import SECRETS, SECRETS_HINT, Diagnostic, Severity, about_file
from mdmem.errors import Invalid
from mdmem.text import secret
from mdmem.text.document import Document, parse_text
from mdmem.text.edit import between, inverse, splice
from mdmem.vault.config import CONFIG_PATH, Secrets
from mdmem.vault.paths import decode_id
from mdmem.vault.plan import Change, Prepared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mdmem.text.secret import Secret


def screen(prepared: Prepared, config: Secrets) -> Prepared:
    """A plan without the secrets that it would add, or with a warning for each, as the config says.

    What stood in one of its memories before is not added, and may move among them. A new name can only be
    refused: nobody would find a memory under another one.

    Raises:
        Invalid: the config says so, or a new name holds a secret; no message holds one.
    """
    before = [change.before for change in prepared.plan.changes if change.before]
    stood = [text for document in before for text in (document.text, *_read(document.path))]
    pairs = list(zip(prepared.plan.changes, prepared.afters, strict=True))
    findings = [each for change, after in pairs if after for each in _of_name(change, stood, config)]
    if findings and config.policy == "redact":
        raise Invalid(findings=tuple(findings))
    for number, (change, after) in enumerate(pairs):
        found = _added(change, after, stood, config.allow) if after else []
        if found and after:
            if config.policy == "redact":
                pairs[number] = _redacted(change, after, found)
                found = _moved(found)
            document = pairs[number][1] or after
            findings += [_finding(document, each, config.policy) for each in found]
    if findings and config.policy == "refuse":
        # Alone: what a schema says of a value quotes it.
        raise Invalid(findings=tuple(findings))
    if not findings:
        return prepared
    warnings = tuple(dict.fromkeys([*prepared.plan.warnings, *findings]))
    plan = replace(prepared.plan, changes=tuple(change for change, _ in pairs), warnings=warnings)
    return Prepared(plan, [after for _, after in pairs])


def standing(document: Document, config: Secrets) -> list[Diagnostic]:
    """The secrets that stand in a memory or its name, as warnings."""
    named = _in_name(document.path, (), config)
    found = secret.find(document.text, allow=config.allow)
    return [
        *(_about_name(document.path, each, "warning") for each in named),
        *(_finding(document, each, "check") for each in found),
    ]


def _read(path: str) -> tuple[str, ...]:
    """What a path says: as it is written, and without the escapes of an id."""
    return tuple(dict.fromkeys((path, decode_id(path))))


def _in_name(path: str, stood: Sequence[str], config: Secrets) -> Iterator[Secret]:
    """The secrets in a path that did not stand before."""
    told: set[str] = set()
    for text in _read(path):
        for each in secret.find(text, allow=config.allow):
            if each.digest not in told and not any(text[slice(*each.span)] in other for other in stood):
                told.add(each.digest)
                yield each


def _of_name(change: Change, stood: Sequence[str], config: Secrets) -> Iterator[Diagnostic]:
    """The secrets in the name that a change gives a memory."""
    path = change.move_to or change.path
    if change.before is None or change.move_to:
        severity: Severity = "warning" if config.policy == "warn" else "error"
        for each in _in_name(path, stood, config):
            yield _about_name(_shown(path), each, severity)


def _shown(path: str) -> str:
    """A path without the secrets in it."""
    return path if not any(map(secret.find, _read(path))) else secret.masked(decode_id(path))


def _about_name(path: str, found: Secret, severity: Severity) -> Diagnostic:
    message = f"this name looks like it holds a secret: {found.kind} {found.shown}…"
    hint = f"{SECRETS_HINT}; to allow it, add {found.digest!r} to [secrets] allow in {CONFIG_PATH}"
    return replace(about_file(path, SECRETS, message, hint, severity=severity), rule=found.digest)


def _added(change: Change, after: Document, stood: Sequence[str], allow: Sequence[str]) -> list[Secret]:
    spans = None
    if change.before and change.content is None:
        spans = [(edit.start, edit.end) for edit in inverse(change.before.text, change.edits)]
    found = secret.find(after.text, spans, allow)
    return [each for each in found if not any(after.text[slice(*each.span)] in text for text in stood)]


def _redacted(change: Change, after: Document, found: Sequence[Secret]) -> tuple[Change, Document]:
    text = splice(after.text, secret.redactions(found), after.path)
    document = parse_text(after.path, text, after.limits)
    if change.before is None or change.content is not None:
        return replace(change, content=document.data), document
    return replace(change, edits=tuple(between(change.before.text, text))), document


def _moved(found: Sequence[Secret]) -> list[Secret]:
    """The secrets, each where its `word` stands once they are taken out."""
    result, shift = [], 0
    for each in found:
        start, end = each.span
        span = each.span._replace(start=start + shift, end=start + shift + len(each.word))
        result.append(each._replace(span=span))
        shift = span.end - end
    return result


def _finding(document: Document, found: Secret, policy: str) -> Diagnostic:
    """A secret as a finding that does not give it away."""
    outcome = {
        "redact": f"; {found.word} is written instead",
        "warn": "; it is written all the same",
    }
    return Diagnostic(
        path=document.path if policy == "check" else _shown(document.path),
        span=found.span,
        position=document.lines.position(found.span.start),
        code=SECRETS,
        message=f"this looks like a secret: {found.kind} {found.shown}…{outcome.get(policy, '')}",
        hint=(
            f"{SECRETS_HINT}; to allow it, write "
            f"{secret.ALLOW_MARK} in its line, or add {found.digest!r} to [secrets] allow in {CONFIG_PATH}"
        ),
        severity="error" if policy == "refuse" else "warning",
        rule=found.digest,
    )
