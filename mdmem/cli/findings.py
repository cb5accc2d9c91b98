"""Print findings of `check` and its like: in groups for people, and in the formats of programs."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mdmem.diagnostic import Diagnostic

strict_option = click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
# Of each kind this many are named on a terminal, unless all are asked for.
_NAMED = 10
_COLOURS = {"error": "red", "warning": "yellow"}


def print_findings(
    findings: Iterable[Diagnostic],
    form: str = "text",
    file: Callable[[str], str] = str,
    /,
    *,
    strict: bool = False,
) -> int:
    """Print findings: with --json as JSON, with --verbose every one, however many there are.

    Args:
        findings: what was found.
        form: text (on a terminal in groups, else a line for each), json, github: annotations, or sarif.
        file: what programs that know nothing of vaults call the file of a path.
        strict: whether warnings count as errors.

    Returns:
        The exit code.
    """
    found = list(findings)
    if form == "json" or render.is_set("as_json"):
        render.print_json(found)
    elif form == "github":
        for finding in found:
            print(_format_annotation(finding, file(finding.path)))
    elif form == "sarif":
        render.print_json(_make_sarif(found, file))
    elif isinstance(sys.stdout, render.Terminal):
        _print_groups(found)
    else:
        _print_lines(found)
    return exit_code(found, strict=strict)


def exit_code(found: Iterable[Diagnostic], *, strict: bool = False) -> int:
    """Return the exit code of a command that found this: 1 for an error, and for any finding if `strict`."""
    return int(any(strict or finding.severity == "error" for finding in found))


def _print_lines(found: Sequence[Diagnostic]) -> None:
    """Print a line for each, then on standard error what to do about each kind, and how many there are."""
    for finding in found:
        warning = " (warning)" if finding.severity == "warning" else ""
        print(_join_lines(f"{finding}{warning}"))
    for (_, code), group in _group_findings(found).items():
        hints = islice(filter(None, _group_by_hint(group)), _NAMED)
        render.print_remarks(f"{code}: {hint}" for hint in hints)
    render.print_remarks([count_findings(found)] if found else [])


def _print_groups(found: Sequence[Diagnostic]) -> None:
    """Print the findings of each kind together, each hint once, and last how many there are."""
    for (severity, code), group in _group_findings(found).items():
        render.print_coloured(code, _COLOURS[severity])
        print(f"  {_count_of(len(group), severity)}")
        left = len(group) if render.is_set("verbose") else _NAMED
        for hint, members in _group_by_hint(group).items():
            for finding in members[:left]:
                line, column = finding.position
                render.print_coloured(f"  {finding.path}:{line}:{column}", "magenta")
                print(f"  {_join_lines(finding.message)}")
            if hint and left > 0:
                render.print_coloured(f"    → {hint}\n", "cyan")
            left -= len(members)
        if left < 0:
            print(f"  {-left:,} more: -v names them")
        print()
    if found:
        print(count_findings(found))


def _group_findings(found: Sequence[Diagnostic]) -> Mapping[tuple[str, str], list[Diagnostic]]:
    """Group findings by severity and code: errors first, else in the order in which they were found."""
    groups: dict[tuple[str, str], list[Diagnostic]] = {}
    for finding in sorted(found, key=lambda finding: finding.severity):
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return groups


def _group_by_hint(group: Sequence[Diagnostic]) -> Mapping[str, list[Diagnostic]]:
    """Group findings by what to do about them."""
    hints: dict[str, list[Diagnostic]] = {}
    for finding in group:
        hints.setdefault(_join_lines(finding.hint), []).append(finding)
    return hints


def count_findings(found: Sequence[Diagnostic]) -> str:
    """Count findings, as in `1 error, 12 warnings in 3 files`."""
    severities = [finding.severity for finding in found]
    numbers = [_count_of(severities.count(each), each) for each in _COLOURS if each in severities]
    files = len({finding.path for finding in found})
    return f"{', '.join(numbers)} in {_count_of(files, 'file')}"


def _count_of(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _join_lines(text: str) -> str:
    """Join the lines of a text: a name or a value may hold line ends."""
    return " ".join(text.splitlines())


def _format_annotation(finding: Diagnostic, file: str) -> str:
    """Format a finding as a workflow command of GitHub Actions, which shows it at its line."""
    line, column = finding.position
    path = _escape_data(file).replace(",", "%2C").replace(":", "%3A")
    text = _escape_data(_add_hint(finding))
    return f"::{finding.severity} file={path},line={line},col={column},title={finding.code}::{text}"


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
