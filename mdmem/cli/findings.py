"""Print findings of `check` and its like: in lines for people, and in the formats of programs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, get_args

import click

from mdmem.cli import render
from mdmem.diagnostic import Diagnostic, Severity
from mdmem.errors import plural, show_name

strict_option = click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
_SHOWN = 20  # findings of one code, on a terminal
_NAMED = 10  # hints for findings of one kind
_LISTED = ("citation-changed", "citation-moved")


def print_findings(
    findings: Iterable[Diagnostic],
    form: str = "text",
    file: Callable[[str], str] = str,
    /,
    *,
    strict: bool = False,
    notes: bool = False,
) -> int:
    """Print findings, with --json as JSON, and return the exit code.

    Args:
        form: text (a line for each), json, github (annotations), or sarif.
        file: what programs that know nothing of vaults call the file of a path.
        strict: whether warnings count as errors.
        notes: whether a terminal gets a line for each, also for each note.
    """
    found = list(findings)
    if form == "json" or render.is_set("as_json"):
        render.print_json(found)
    elif form == "github":
        for finding in found:
            print(_format_annotation(finding, file(finding.path)))
    elif form == "sarif":
        render.print_json(_make_sarif(found, file))
    else:
        _print_lines(found, notes=notes)
    return exit_code(found, strict=strict)


def exit_code(found: Iterable[Diagnostic], *, strict: bool = False) -> int:
    """Return the exit code of a command that found this: 1 for an error, and for a warning if `strict`."""
    wrong = ("error", "warning") if strict else ("error",)
    return int(any(finding.severity in wrong for finding in found))


def _print_lines(found: Sequence[Diagnostic], *, notes: bool) -> None:
    """Print a line for each, the worst first, then what to do with them.

    On a terminal these are `_SHOWN` of a code, and of notes only their number, but where citations say what
    has changed.
    """
    hints: dict[str, list[str]] = {}
    counts = Counter[str]()
    is_short = isinstance(sys.stdout, render.Terminal) and not notes
    most = _SHOWN if is_short else len(found)
    for finding in sorted(found, key=lambda each: get_args(Severity).index(each.severity)):
        if is_short and finding.severity == "note" and finding.code not in _LISTED:
            counts[finding.code] += 1
            continue
        less = f" ({finding.severity})" if finding.severity != "error" else ""
        of_code = hints.setdefault(finding.code, [])
        of_code.append(show_name(finding.hint))
        if len(of_code) <= most:
            print(f"{finding}{less}")
    for code, group in hints.items():
        if len(group) > most:
            print(f"and {len(group) - most:,} more {code}: a pipe gets all, as in `mdmem check | less`")
        render.print_remarks(f"{code}: {hint}" for hint in islice(filter(None, dict.fromkeys(group)), _NAMED))
    for code, count in counts.items():
        print(f"{code}: {plural(count, 'note')}: `mdmem check --notes` lists them")
    if found:
        codes = {finding.code for finding in found}
        one = found[0].code if len(codes) == 1 else "CODE"
        render.print_remarks([f"{count_findings(found)}; `mdmem help {one}` explains what to do"])


def count_findings(found: Sequence[Diagnostic]) -> str:
    """Count findings, as in `1 error, 12 warnings in 3 files`."""
    severities = [finding.severity for finding in found]
    numbers = [plural(severities.count(each), each) for each in get_args(Severity) if each in severities]
    files = len({finding.path for finding in found})
    return f"{', '.join(numbers)} in {plural(files, 'file')}"


def _format_annotation(finding: Diagnostic, file: str) -> str:
    """Format a finding as a workflow command of GitHub Actions, which shows it at its line."""
    line, column = finding.position
    path = _escape_data(file).replace(",", "%2C").replace(":", "%3A")
    text = _escape_data(_add_hint(finding))
    kind = "notice" if finding.severity == "note" else finding.severity
    return f"::{kind} file={path},line={line},col={column},title={finding.code}::{text}"


def _add_hint(finding: Diagnostic) -> str:
    return f"{finding.message} ({finding.hint})" if finding.hint else finding.message


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _make_sarif(found: Sequence[Diagnostic], file: Callable[[str], str]) -> dict[str, Any]:
    """Format findings as a log of SARIF 2.1.0, which code scanning and editors read."""
    from mdmem import __version__

    codes = sorted({finding.code for finding in found})
    tool = {"name": "mdmem", "version": __version__, "rules": [{"id": code} for code in codes]}
    results = [_make_result(finding, file(finding.path), codes.index(finding.code)) for finding in found]
    run = {"tool": {"driver": tool}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _make_result(finding: Diagnostic, file: str, rule: int) -> dict[str, Any]:
    from urllib.parse import quote

    line, column = finding.position
    # A relative URI, as a colon in it would else end a scheme.
    place = {
        "artifactLocation": {"uri": quote(file, errors="surrogateescape"), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": line, "startColumn": column},
    }
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": _add_hint(finding)},
        "locations": [{"physicalLocation": place}],
    }
