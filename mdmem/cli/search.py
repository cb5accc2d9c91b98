"""The commands that find lines, grep and search, and how a hit is printed."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

import mdmem
from mdmem.cli import options, render
from mdmem.cli.main import Target, command
from mdmem.errors import NotFound, plural
from mdmem.facade.paths import READ_ANY

if TYPE_CHECKING:
    from mdmem import Hit, Memory


# By the form of a file, the globs that leave out the other one.
_EXCLUDED = {
    "md": ("!*.json",),
    "markdown": ("!*.json",),
    "json": ("!*.md", "!*.mdx", "!*.markdown", "!*.mdc"),
}
# What stands for something else in a regular expression, and seldom for itself in a text.
_LIKE_REGEX = re.compile(r"\||\\|\.[*+?]|\[.+\]|^\^|\$$")
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")
_AS_OF = "note: today's text of memories that counted then; `mdmem past WHEN` has the text of then"
_NARROW = "raise --limit, or narrow with a path or -g"
_CLIPPED = re.compile(r"\[[0-9,]+ characters left out\]")


grouped_option = click.option(
    "--heading/--no-heading",
    "grouped",
    default=None,
    help="Group hits under their memory, day and heading, as on a terminal; else a line each.",
)


@command("grep", epilog="Example: mdmem grep --regex 'SQL(ite)?' notes AGENTS.md -C 1 --limit 20")
@click.argument("pattern", required=False)
@options.path_argument("paths", READ_ANY, nargs=-1, metavar="[PATH]…")
@click.option(
    *("-e", "--regexp", "given"),
    multiple=True,
    metavar="PATTERN",
    help="Give a PATTERN that begins with a dash, or several.",
)
@options.in_option(default="", role=READ_ANY, metavar="PATH")
@options.from_option
@options.globs_option
@options.type_option("-t")
@click.option(
    *("--regex", "-E", "--extended-regexp", "-P", "--perl-regexp"),
    is_flag=True,
    help="Read the pattern as a regular expression.",
)
@click.option("-F", "--fixed-strings", "literal", is_flag=True, help="Read PATTERN as plain text (default).")
@options.case_option
@click.option("-i", "--ignore-case", "case", flag_value="ignore", help="Ignore case.")
@click.option("-s", "--case-sensitive", "case", flag_value="exact", help="Respect case, as in ripgrep.")
@click.option("-S", "--smart-case", "case", flag_value="smart", help="Respect case if PATTERN has capitals.")
@click.option("-w", "--word-regexp", "word", is_flag=True, help="Match only whole words.")
@options.number_option("-A", "--after-context", "after", help="Print N lines after a hit.")
@options.number_option("-B", "--before-context", "before", help="Print N lines before a hit.")
@options.number_option("-C", "--context", default=0, help="Print N lines around a hit.")
@click.option("-l", "--files-with-matches", "shown", flag_value="paths", help="Print only the paths.")
@click.option("-c", "shown", flag_value="counts", help="Count matching lines, by memory.")
@click.option("-o", "--only-matching", "shown", flag_value="matches", help="Print only what matches.")
@click.option("-q", "--quiet", "shown", flag_value="nothing", help="Print nothing; exit with 0 for a hit.")
@options.where_option
@options.limit_option("--limit")
@grouped_option
@click.option(
    *("-n", "-r", "-R", "-H", "--line-number", "--recursive", "same"),
    is_flag=True,
    help="Change nothing: this is the default.",
)
@options.json_option
@click.pass_obj
def grep_command(target: Target, /, **asked: Any) -> int:
    """Find the lines that match a text or a pattern.

    Hits are in the order of path and line. In a pipe, a hit is PATH:LINE:TEXT, and a line around it is
    PATH-LINE-TEXT. The exit code is 0 with hits, 1 without, and 2 when something could not be searched;
    standard error names it. A file of more than 64 MiB, which cannot be a memory, is searched only where it
    is named. One in another encoding, such as Windows-1252, is searched as it is: letters beyond ASCII are
    not found in it. `mdmem check` reports such files.

    TYPE is the field `type` of a memory, or md or json for the form of its file. PATHs are memories and
    folders.
    """
    render.start_paging()
    memory = options.open_memory(target)
    try:
        return _print_matches(memory, **asked)
    except NotFound as error:
        # 1 would say that nothing was found where it was looked for.
        render.print_error(error, as_json=render.is_set("as_json"))
        return 2
    finally:
        render.print_notes(memory)


def _print_matches(
    memory: Memory,
    *,
    pattern: str | None,
    given: tuple[str, ...],
    paths: tuple[str, ...],
    types: tuple[str, ...],
    literal: bool,
    shown: str | None,
    limit: int | None,
    grouped: bool | None,
    same: bool,  # noqa: ARG001 - it is so anyway
    **asked: Any,
) -> int:
    if given and pattern is not None:
        paths = (options.Spelled(pattern, READ_ANY), *paths)
    patterns = given or (() if pattern is None else (pattern,))
    if not patterns:
        raise click.UsageError("Missing argument 'PATTERN'.")
    if literal and asked["regex"]:
        raise click.UsageError("-F and --regex exclude each other")
    is_guess = not (literal or asked["regex"] or shown == "nothing")
    joined, asked["regex"] = _join_patterns(patterns, is_regex=asked["regex"])
    excluded = {_EXCLUDED[name] for name in types if name in _EXCLUDED}
    asked["globs"] = (*asked["globs"], *(excluded.pop() if len(excluded) == 1 else ()))
    asked["types"] = [name for name in types if name not in _EXCLUDED]
    within = asked.pop("within")
    where = {"paths": paths, "within": within if within or not paths else "", "owner": asked.pop("owner")}
    where = options.resolve_paths(memory, where)
    if shown in {"paths", "counts", "nothing"}:
        hits = memory.grep(joined, **where, **asked)
        found = _print_counts(hits.counts(), shown, limit)
        if shown == "nothing" and found:
            return 0
    else:
        hits = memory.grep(joined, **where, **asked, limit=limit)
        apart = any(asked[name] for name in ("context", "before", "after"))
        found = _print_hits(hits, HitPrinter(grouped=grouped, apart=apart, only_matches=shown == "matches"))
    render.print_remarks(f"{finding.path or '.'}: {finding.message}" for finding in hits.findings)
    render.print_remarks(f"note: {note}" for note in hits.notes)
    if not (found or hits.findings or shown == "nothing"):
        render.say_nothing("matches", is_asked=True)
    if is_guess and not found and any(map(_LIKE_REGEX.search, patterns)):
        render.print_remarks(["note: PATTERN was taken as plain text; -E takes it as a regular expression"])
    return 2 if hits.findings else int(not found)


def _join_patterns(patterns: Sequence[str], *, is_regex: bool) -> tuple[str, bool]:
    """Join patterns to one that any of them matches; tell whether that is a regular expression."""
    if len(patterns) == 1:
        return patterns[0], is_regex
    each = (one if is_regex else _SPECIAL.sub(r"\\\g<0>", one) for one in patterns)
    return "|".join(f"(?:{one})" for one in each), True


def _print_hits(hits: Any, printer: HitPrinter) -> bool:
    last = printer.print(hits)
    printer.print_states()
    if printer.is_clipped:
        render.print_remarks(["of very long lines, only matches near the first one are printed"])
    if last and last.left_out:
        most = " or more" if last.left_out >= hits.most_counted else ""
        render.print_remarks([f"{last.left_out:,}{most} more left out: {_NARROW}"])
    return last is not None


def _print_counts(counts: Iterable[tuple[str, int]], shown: str, limit: int | None) -> bool:
    number = 0
    for number, (path, lines) in enumerate(counts, 1):
        if shown == "nothing":
            return True
        if limit is not None and number > limit:
            continue
        if render.is_set("as_json"):
            render.print_json({"path": path} if shown == "paths" else {"path": path, "lines": lines})
            continue
        render.print_coloured(path, "magenta")
        print(f":{lines}" if shown == "counts" else "")
    if limit is not None and number > limit:
        more = plural(number - limit, "more memory")
        render.print_remarks([f"{more} left out: {_NARROW}"])
    return number > 0


class HitPrinter:
    """Prints hits as they come: below their memory, day and heading, or a line each.

    Args:
        grouped: whether hits stand below their memory; by default on a terminal.
        apart: whether `--` stands between hits that are not next to each other.
        only_matches: whether what matches is printed, not its line.
    """

    def __init__(
        self, *, grouped: bool | None = None, apart: bool = True, only_matches: bool = False
    ) -> None:
        self._grouped = isinstance(sys.stdout, render.Terminal) if grouped is None else grouped
        self._apart = apart and not only_matches
        self._only_matches = only_matches
        self._path = ""
        self._heading: Sequence[str] = ()
        self._last = 0  # the line that was printed last
        self._states: dict[str, None] = {}
        self.is_clipped = False
        """Whether a line was too long for all of its matches."""

    def print(self, hits: Iterable[Hit]) -> Hit | None:
        """Print hits, lines that stand around two of them once; return the last hit."""
        above: Hit | None = None
        for hit in hits:
            if render.is_set("as_json"):
                render.print_json(hit)  # the first can be read before the last is found
            elif self._only_matches:
                self.is_clipped |= bool(_CLIPPED.search(hit.text))
                for start, end in hit.matches:
                    if start < end:
                        self._print_line(hit, hit.line, ":", hit.text[start:end], ((0, end - start),))
            else:
                self._print_with_context(hit, above)
            above = hit
        if above and not (self._only_matches or render.is_set("as_json")):
            self._print_behind(above)
        return above

    def print_states(self) -> None:
        """Say of what does not count, or not yet, that it does not, where no line of a group says so."""
        render.print_remarks(render.limit_lines([*self._states], render.MANY))

    def _print_with_context(self, hit: Hit, above: Hit | None) -> None:
        is_below = above is not None and hit.path == above.path and hit.line > above.line
        if above:
            self._print_behind(above, hit.line if is_below else None)
        for number, text in enumerate(hit.before, hit.line - len(hit.before)):
            if not is_below or number > self._last:
                self._print_line(hit, number, "-", text)
        self._print_line(hit, hit.line, ":", hit.text, hit.matches)

    def _print_behind(self, hit: Hit, until: int | None = None) -> None:
        for number, text in enumerate(hit.after, hit.line + 1):
            if until is None or number < until:
                self._print_line(hit, number, "-", text)

    def _print_place(self, hit: Hit, number: int) -> None:
        """Print what stands between the last line and this one."""
        is_same = hit.path == self._path and number >= self._last
        is_gap = self._apart and not (is_same and number <= self._last + 1)
        if self._grouped and not is_same:
            sys.stdout.write("\n" if self._path else "")
            render.print_coloured(hit.path, "magenta")
            print("  ".join(("", *filter(None, (hit.date, hit.state)))))
            self._heading = ()
        elif is_gap and self._path:
            print("--")
        if hit.state and not self._grouped:
            self._states[f"note: {hit.path} does not count: {hit.state}"] = None
        if self._grouped and hit.heading != self._heading:
            render.print_head(f"# {' > '.join(hit.heading)}")
        self._path, self._heading, self._last = hit.path, hit.heading, number

    def _print_line(
        self, hit: Hit, number: int, mark: str, text: str, matches: Sequence[tuple[int, int]] = ()
    ) -> None:
        self._print_place(hit, number)
        if not self._grouped:
            render.print_coloured(hit.path, "magenta")
            sys.stdout.write(mark)
        render.print_coloured(str(number), "green")
        at, parts = 0, [mark]
        for start, end in matches:
            sys.stdout.write("".join((*parts, text[at:start])))
            render.print_coloured(text[start:end], "red")
            at, parts = end, []
        sys.stdout.write("".join((*parts, text[at:], "\n")))


@command("search", epilog="Example: mdmem search which database --in notes --limit 5")
@click.argument("words", nargs=-1, required=True)
@options.in_option(default="", role=READ_ANY, metavar="PATH")
@options.from_option
@options.type_option()
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Take memories with all of these tags.")
@options.since_option("")
@options.before_option("")
@options.limit_option(default=10)
@options.budget_option(least=1)
@options.number_option("--context", "-C", help="Print N lines around a hit.")
@click.option("--passages", is_flag=True, help="Rank passages: a memory may have several hits.")
@click.option("--explain", is_flag=True, help="Explain each score.")
@click.option("--words", "words_only", is_flag=True, help="Search by words alone, whatever embedder is set.")
@options.where_option
@click.option("--any-state", is_flag=True, help="Also find what counts no more, or not yet; with its state.")
@click.option("--as-of", default="", metavar="WHEN", help="Answer as of this day or time.")
@grouped_option
@options.read_command
def search_command(
    memory: Memory, words: tuple[str, ...], passages: bool, grouped: bool | None, **given: Any
) -> int:
    """Find the memories that fit some words best, with their lines.

    Any of WORDS may be there; "some words" have to be, in this order. Also begin*, tag:, type:, path:,
    after:, before:, and -without: put -- before words that begin with a dash, or all in quotes.

    Lines around a hit are those of its passage, or as many as --context says; with --budget, whole passages
    are printed. --since and --before compare the date of a memory with a day, a month or a year.

    With a user and a project, wider memories are found as well, and named user:…, project:… or shared:…, as
    `show` takes them.
    """
    query = " ".join(words)
    results = memory.search(query, each="passage" if passages else "memory", **given)
    if render.is_set("as_json"):
        render.print_json(mdmem.as_json(results)["hits"])
    else:
        printer = HitPrinter(grouped=grouped, apart=given["context"] != 0)
        printer.print(() if results.explanations else results.hits)
        for hit, parts in zip(results.hits, results.explanations, strict=False):
            printer.print([hit])
            for part in parts:
                print(f"    {part.value:8.3f}  {part.of} {part.word}".rstrip())
        printer.print_states()
    if results.left_out:
        tokens = results.left_out_tokens
        beyond = f", about {tokens:,} tokens of it beyond the budget" if tokens else ""
        remedy = "raise --budget" if tokens else "raise --limit, or narrow with --in, --type or --tag"
        render.print_remarks([f"{results.left_out:,} more fit{beyond}: {remedy}"])
    render.print_remarks(f"note: {note}" for note in results.notes)
    if said := memory.sessions.count_fitting(query, beside=len(results.hits)):
        how = f"`mdmem sessions search {shlex.quote(query)}`"
        render.print_remarks([f"note: at most {said:,} messages of conversations fit: {how}"])
    if not results.hits and (only := memory.searched_alone(given["within"], widely=True)):
        render.print_remarks([f"note: {only}; --shared searches what everybody shares"])
    if given["as_of"]:
        render.print_remarks([_AS_OF])
    return int(not results.hits)
