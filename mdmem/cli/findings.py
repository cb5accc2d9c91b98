"""What `check` and its like print: findings, in groups for people, and as programs read them."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.render import Terminal, print_coloured, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mdmem.diagnostic import Diagnostic

strict_option = click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
# Of each kind so many are named on a terminal, unless all are asked for.
_NAMED = 10
_COLOURS = {"error": "red", "warning": "yellow"}


def print_findings(
    findings: Iterable[Diagnostic],
    form: str = "text",
    file: Callable[[str], str] = str,
    /,
    *,
    verbose: bool = False,
    strict: bool = False,
) -> int:
    """Print findings.

    Args:
        findings: what was found.
        form: text (on a terminal in groups, else a line for each), json, github: annotations, or sarif.
        file: what programs that know nothing of vaults call the file of a path.
        verbose: name every one, however many there are.
        strict: as `exit_code` has it.

    Returns:
        The exit code.
    """
    found = list(findings)
    if form == "json":
        print_json(found)
    elif form == "github":
        for finding in found:
            print(_annotation(finding, file(finding.path)))
    elif form == "sarif":
        print_json(_sarif(found, file))
    elif isinstance(sys.stdout, Terminal):
        _print_groups(found, verbose=verbose)
    else:
        _print_lines(found)
    return exit_code(found, strict=strict)


def exit_code(found: Iterable[Diagnostic], *, strict: bool = False) -> int:
    """What a command ends with that found this: 1 when one of them is an error, or `strict`."""
    return int(any(strict or finding.severity == "error" for finding in found))


def _print_lines(found: Sequence[Diagnostic]) -> None:
    """Print a line for each, then on standard error what to do about each kind, and how many there are."""
    for finding in found:
        warning = " (warning)" if finding.severity == "warning" else ""
        print(_in_line(f"{finding}{warning}"))
    sys.stdout.flush()
    for (_, code), group in _grouped(found).items():
        for hint in islice(filter(None, _hints(group)), _NAMED):
            print(f"{code}: {hint}", file=sys.stderr)
    if found:
        print(counted(found), file=sys.stderr)


def _print_groups(found: Sequence[Diagnostic], *, verbose: bool) -> None:
    """The findings of each kind together, each hint once, and last how many there are."""
    for (severity, code), group in _grouped(found).items():
        print_coloured(code, _COLOURS[severity])
        print(f"  {_number(len(group), severity)}")
        left = len(group) if verbose else _NAMED
        for hint, members in _hints(group).items():
            for finding in members[:left]:
                print_coloured(
                    f"  {finding.path}:{finding.position.line}:{finding.position.column}", "magenta"
                )
                print(f"  {_in_line(finding.message)}")
            if hint and left > 0:
                print_coloured(f"    → {hint}\n", "cyan")
            left -= len(members)
        if left < 0:
            print(f"  {-left:,} more: -v names them")
        print()
    if found:
        print(counted(found))


def _grouped(found: Sequence[Diagnostic]) -> Mapping[tuple[str, str], list[Diagnostic]]:
    """The findings by severity and code: errors first, and else in the order in which they were found."""
    groups: dict[tuple[str, str], list[Diagnostic]] = {}
    for finding in sorted(found, key=lambda finding: finding.severity):
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    return groups


def _hints(group: Sequence[Diagnostic]) -> Mapping[str, list[Diagnostic]]:
    """The findings of a group by what is to be done about them."""
    hints: dict[str, list[Diagnostic]] = {}
    for finding in group:
        hints.setdefault(_in_line(finding.hint), []).append(finding)
    return hints


def counted(found: Sequence[Diagnostic]) -> str:
    """How many findings there are, in words: `1 error, 12 warnings in 3 files`."""
    severities = [finding.severity for finding in found]
    numbers = [_number(severities.count(each), each) for each in _COLOURS if each in severities]
    files = len({finding.path for finding in found})
    return f"{', '.join(numbers)} in {_number(files, 'file')}"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _in_line(text: str) -> str:
    """A text without line ends: a name or a value of somebody else's may hold some."""
    return " ".join(text.splitlines())


def _annotation(finding: Diagnostic, file: str) -> str:
    """A workflow command of GitHub Actions, which shows the finding at its line."""
    line, column = finding.position
    path = _escaped(file).replace(",", "%2C").replace(":", "%3A")
    text = _escaped(_with_hint(finding))
    return f"::{finding.severity} file={path},line={line},col={column},title={finding.code}::{text}"


def _with_hint(finding: Diagnostic) -> str:
    return f"{finding.message} ({finding.hint})" if finding.hint else finding.message


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _sarif(found: Sequence[Diagnostic], file: Callable[[str], str]) -> dict[str, Any]:
    """The findings as a log of SARIF 2.1.0, which code scanning and editors read."""
    from mdmem import __version__

    codes = sorted({finding.code for finding in found})
    tool = {"name": "mdmem", "version": __version__, "rules": [{"id": code} for code in codes]}
    results = [_result(finding, file(finding.path), codes.index(finding.code)) for finding in found]
    run = {"tool": {"driver": tool}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Diagnostic, file: str, rule: int) -> dict[str, Any]:
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
        "message": {"text": _with_hint(finding)},
        "locations": [{"physicalLocation": place}],
    }
