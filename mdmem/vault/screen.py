"""What a plan adds is looked through for secrets, before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mdmem.diagnostic import Diagnostic, Severity
from mdmem.errors import Invalid
from mdmem.text import secret
from mdmem.text.document import Document, parse_text
from mdmem.text.edit import between, inverse, splice
from mdmem.text.secret import Secret
from mdmem.vault.config import CONFIG_PATH, Secrets
from mdmem.vault.plan import Change, Prepared

_CODE = "secret"


def screen(prepared: Prepared, config: Secrets) -> Prepared:
    """A plan without the secrets that it would add, or with a warning for each, as the config says.

    What stood in one of its memories before is not added, and may move among them.

    Raises:
        Invalid: the config says so; no message holds a secret.
    """
    stood = [change.before.text for change in prepared.plan.changes if change.before]
    pairs = list(zip(prepared.plan.changes, prepared.afters, strict=True))
    findings: list[Diagnostic] = []
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
    """The secrets that stand in a memory, as warnings."""
    return [_finding(document, each, "check") for each in secret.find(document.text, allow=config.allow)]


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
    severity: Severity = "error" if policy == "refuse" else "warning"
    return Diagnostic(
        path=document.path,
        span=found.span,
        position=document.lines.position(found.span.start),
        code=_CODE,
        message=f"this looks like a secret: {found.kind} {found.shown}…{outcome.get(policy, '')}",
        hint=(
            "leave it out, or name where it is kept; to allow it, write "
            f"{secret.ALLOW_MARK} in its line, or add {found.digest!r} to [secrets] allow in {CONFIG_PATH}"
        ),
        severity=severity,
        rule=found.digest,
    )
