"""The scanner beside markdown-it-py: what each finds in Markdown texts that others wrote.

`python bench/oracle.py [FOLDER…]` compares the files in these folders, and prints where they disagree.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from table import Row, markdown

from mdmem.document.document import parse_text
from mdmem.document.markdown import citation, inline, link
from mdmem.document.markdown.blocks import CODE, HTML
from mdmem.document.text.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from setting import Setting

# What was found, as many times as it was: the construct, and where it leads to. A "link" is an inline link,
# an image or an autolink; a "reference" leads to a memory (of one to a URL, mdmem keeps the definition only).
Found = Counter[tuple[str, str]]

_FOLDERS = (sysconfig.get_paths()["purelib"], "/usr/share/doc", "/usr/lib/node_modules")
_CONSTRUCTS = ("heading", "fence", "link", "reference", "definition", "wikilink")
_BY_REFERENCE = "\0"
_TAIL = re.compile(r"(\?([\w&~-]+|[^?=]+=.*)|(?<=\.md):\d+([:-]\d+)?)$")  # a query, or a line
_WIKILINK = re.compile(r"!?\[\[([^\[\]\r\n]+)\]\]")
_MOST_BYTES = 1_000_000
_IGNORED = ("mailto:", "data:", "javascript:")


def measure(setting: Setting) -> list[Row]:
    texts = list(markdown_texts(_FOLDERS))
    return compare(texts[: setting.count(len(texts))])


def compare(texts: Sequence[str]) -> list[Row]:
    """A row for each construct: how many there are, and what mdmem missed, or found besides."""
    theirs, missed, extra = Counter[str](), Counter[str](), Counter[str]()
    for text in texts:
        expected, found = in_oracle(text), in_mdmem(text)
        for counts, what in ((theirs, expected), (missed, expected - found), (extra, found - expected)):
            for (construct, _), count in what.items():
                counts[construct] += count
    return [
        Row(
            what=f"{construct}s in {len(texts):,} Markdown texts, {theirs[construct]:,}",
            ours=f"{missed[construct]} missed, {extra[construct]} besides",
            beside="markdown-it-py",
            compared=_percent(missed[construct] + extra[construct], theirs[construct]),
        )
        for construct in _CONSTRUCTS
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else ""


def markdown_texts(folders: Iterable[str]) -> Iterator[str]:
    """The Markdown files below `folders`, and the descriptions of installed packages."""
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in sorted(names):
                described = name == "METADATA" and parent.endswith(".dist-info")
                if described or name.endswith(".md"):
                    text = _read(os.path.join(parent, name))
                    if text:
                        yield text.partition("\n\n")[2] if described else text


def _read(path: str) -> str:
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            return ""
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if "\0" in text else text


# --------------------------------------------------------------------------------------------------- mdmem


def in_mdmem(text: str) -> Found:
    """What the scanner finds in the body of `text`."""
    document = parse_text("a.md", text)
    found: Found = Counter()
    found.update(("heading", heading.title.strip()) for heading in document.headings)
    found["fence", ""] = len(document.fences)
    outline = document._scan_blocks  # noqa: SLF001 - the texts and definitions are nobody else's concern
    everything = inline.scan(text, outline, Lines(text))
    for item in everything.links:
        construct = "link" if item.kind == "markdown" else item.kind
        if construct not in {"block", "definition", "html", "import", "ref"}:
            found[construct, f"{item.target}#{item.anchor}"] += 1
    # What stands in none of these is a destination of a definition, or bare.
    marks = [mark for mark in outline.marks if mark.kind not in (CODE, HTML)]
    starts, ends = [mark.start for mark in marks], list(accumulate((mark.end for mark in marks), max))
    for leads, (at, _) in (
        *((_parts(text[slice(*cited.span)]), cited.span) for cited in everything.citations if cited.in_link),
        *((url.url, url.span) for url in everything.urls),
    ):
        number = bisect_left(starts, at) - 1
        found["link", leads] += number >= 0 and at < ends[number]
    labels: dict[str, str] = {}
    for definition in outline.definitions:
        written = text[slice(*definition.destination)]
        written = written[1:-1] if written.startswith("<") else written
        labels.setdefault(_squeezed(definition.label.casefold()), link.unescaped(written))
    found.update(("definition", destination) for destination in labels.values())
    return found


# ---------------------------------------------------------------------------------------------- the oracle


def in_oracle(text: str) -> Found:
    """What markdown-it-py finds in the body of `text`."""
    body = text[slice(*parse_text("a.md", text).body_span)]
    environment: dict[str, Any] = {}
    found: Found = Counter()
    tokens = _PARSER.parse(body, environment)
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            title = " ".join(line.strip() for line in tokens[number + 1].content.split("\n"))
            found["heading", title.strip()] += 1
        elif token.type == "fence":
            found["fence", ""] += 1
        elif token.type == "inline":
            found.update(_inline(token.children or ()))
    for label, reference in environment.get("references", {}).items():
        if not label.startswith("^"):
            found["definition", reference["href"].removeprefix(_BY_REFERENCE)] += 1
    return found


def _inline(tokens: Iterable[Token]) -> Iterator[tuple[str, str]]:
    for token in tokens:
        if token.type == "wikilink":
            yield "wikilink", token.content
        elif token.type in ("link_open", "image"):
            destination = str(token.attrs["href" if token.type == "link_open" else "src"])
            leads = destination.removeprefix(_BY_REFERENCE)
            if leads and not leads.lower().startswith(_IGNORED):
                if leads == destination:
                    yield "link", destination if link.external(leads) else _parts(leads)
                elif not link.external(leads) and (token.type == "image" or not _is_cited(leads)):
                    yield "reference", _parts(leads)


def _is_cited(destination: str) -> bool:
    target, _, anchor = destination.partition("#")
    return citation.in_destination(link.percent_decoded(target), link.percent_decoded(anchor)) is not None


def _parts(destination: str) -> str:
    target, _, anchor = destination.partition("#")
    target = _TAIL.sub("", target)
    return f"{link.percent_decoded(target)}#{link.percent_decoded(anchor)}"


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _wikilink(state: StateInline, silent: bool) -> bool:
    """A rule for what CommonMark does not have."""
    found = _WIKILINK.match(state.src, state.pos)
    if not found:
        return False
    target, _, anchor = map(str.strip, found[1].split("|")[0].removesuffix("\\").partition("#"))
    if not target and not anchor:
        return False
    if not silent:
        state.push("wikilink", "", 0).content = f"{target}#{anchor}"
    state.pos = found.end()
    return True


def _mark_references(state: StateCore) -> None:
    """Make links through definitions known from others, which tokens do not tell."""
    for reference in state.env.get("references", {}).values():
        reference["href"] = _BY_REFERENCE + reference["href"]


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.core.ruler.before("inline", "mark_references", _mark_references)
    # Destinations as they are written, unescaped, and each of them.
    parser.normalizeLink = _as_written  # type: ignore[method-assign]
    parser.validateLink = _any  # type: ignore[method-assign]
    return parser


def _as_written(url: str) -> str:
    return url


def _any(url: str) -> bool:  # noqa: ARG001 - the parser calls it so
    return True


_PARSER = _parser()


def main() -> None:
    folders = sys.argv[1:] or _FOLDERS
    print(markdown(compare(list(markdown_texts(folders)))))


if __name__ == "__main__":
    main()
