"""Citations of code: what counts as one in prose, between backticks and behind a Markdown link."""

from __future__ import annotations

import re
from typing import NamedTuple

from mdmem.diagnostic import Span
from mdmem.document.text.regex import regex


class Citation(NamedTuple):
    """Code that is cited: `src/app.py#L10-L23`, `src/app.py:10-23`, `src/app.py#symbol`, `src/app.py`.

    Attributes:
        path: decoded, as cited.
        first, last: 1-based lines, both included; None without.
        symbol: "" without; "Class.method" is possible.
        span: from the path to the end of the locator.
        locator_span: "#L10-L23", ":10-23", "#symbol", the mark included; without one, empty at the end of
            the path.
        pin: the 16 hexadecimal digits of the pin right behind it, `<!-- pin 0123456789abcdef -->`, or "".
        pin_span: the whole comment; without one, empty where a pin would be put.
        in_link: whether it is the destination of a Markdown link, and so relative to the citing file first.
    """

    path: str
    first: int | None = None
    last: int | None = None
    symbol: str = ""
    span: Span = Span(0, 0)
    line: int = 0
    locator_span: Span = Span(0, 0)
    pin: str = ""
    pin_span: Span = Span(0, 0)
    in_link: bool = False


class Locator(NamedTuple):
    """Lines, a symbol, or nothing behind the path of a citation."""

    first: int | None = None
    last: int | None = None
    symbol: str = ""


# A fragment with lines as VS Code reads it: ^L?(\d+)(,col)?(-L?(\d+)(,col)?)?$. `path:10:5` is a line and a
# column, as compilers write it.
_NUMBER = r"([1-9][0-9]{0,8})"
_LINES = rf"#L?{_NUMBER}(?:,[0-9]{{1,9}})?(?:-L?{_NUMBER}(?:,[0-9]{{1,9}})?)?(?![A-Za-z0-9_/@#:-]|[.,][0-9])"
_COLON = rf":{_NUMBER}(?:-{_NUMBER}|:[0-9]{{1,9}})?(?![A-Za-z0-9_/@#-]|[.,:][0-9])"
_SYMBOL = r"#([^\W\d][\w$]*+(?:(?:\.|::)[^\W\d][\w$]*+)*+)"
_LOCATOR = regex(rf"{_LINES}|{_COLON}|{_SYMBOL}")
_SYMBOL_GROUP = 5
_PIN = regex(r"[ \t]?<!-- pin ([0-9a-f]{16}) -->")
_PIN_LENGTH = len("<!-- pin 0123456789abcdef -->")

# A path between backticks; some frameworks name folders and files with brackets, `$` and `@`.
_SEGMENT = r"(?:[\w.+@$-]++|\[[\w.-]++\]|\([\w.-]++\))"
_IN_CODE = regex(rf"((?:{_SEGMENT}/)*+{_SEGMENT})(?=[#:]|\Z)")
_LONGEST_EXTENSION = 10
_HIDDEN_FILE = regex(r"(?:\A|/)\.[A-Za-z][\w.-]+\Z")
# An absolute path is a place on one machine, a package is none, and a host is not the workspace.
_ELLIPSIS = regex(r"(?:\A|/)\.{3,}(?:/|\Z)")
_HOSTS = (".com", ".dev", ".io", ".net", ".org")
_LONGEST = 300
# In prose a path is looked for from its end backwards.
_BACKWARDS = regex(r"[\w./+-]+", re.ASCII)
_BEFORE = frozenset(" \t\r\n([{<\"'*_~|,;–—‘“«→")  # noqa: RUF001 - as people type them
_FIRST_CJK = "\u2e80"

_CODE = frozenset(
    re.findall(
        r"\S+",
        """
        asm astro awk bash bat bzl c cc cfg cjs clj cljs cmake coffee cpp cs css csv cu
        cxx dart edn elm erl ex exs f90 fish fs fsx gd glsl go gradle graphql groovy h
        hcl hh hpp hrl hs hxx ini ipynb java jl js jsx kt kts less lisp lua m mjs mk ml
        mli mm mts nim nix php pl pm proto ps1 py pyi pyx qml r rb rkt rs rst sass sbt
        scala scm scss sh sol sql svelte swift tcl tf toml ts tsx v vb vim vue wgsl yaml
        yml zig zsh
        """,
    )
)
_FILES = _CODE | {"conf", "htm", "html", "json", "json5", "jsonc", "jsonl", "md", "mdx", "tex", "txt", "xml"}
_NAMES = frozenset(("Cargo.lock", "Dockerfile", "Gemfile", "Justfile", "Makefile", "poetry.lock", "uv.lock"))
_PRODUCTS = frozenset(("d3.js", "discord.js", "express.js", "next.js", "node.js", "three.js", "vue.js"))


_MEMORIES = (".md", ".mdx", ".markdown", ".mdc", ".json")


def is_memory(path: str) -> bool:
    """Return whether a link to `path` is to a memory, by its name alone."""
    return path[-9:].lower().endswith(_MEMORIES)


def names_code(path: str) -> bool:
    """Return whether a cited path can only be that of a source file: `src/app.py`, not `app.py`."""
    return "/" in path and _extension_of(path) in _CODE


def in_code(content: str) -> tuple[str, Locator] | None:
    """Return what a code span cites: its whole `content` has to be a path, or a path with a locator."""
    found = _IN_CODE.match(content) if len(content) <= _LONGEST else None
    if not found or _is_no_path(found[1]):
        return None
    path, rest = found[1], content[found.end() :]
    if rest:
        locator = _LOCATOR.fullmatch(rest)
        return (path, _read_locator(locator)) if locator and _is_bare(path, locator) else None
    name = path[path.rfind("/") + 1 :]
    extension = _extension_of(path)
    if "/" in path:
        cites = bool(extension) or name in _NAMES
    else:
        cites = (extension in _FILES and name.lower() not in _PRODUCTS) or name in _NAMES
    return (path, Locator()) if cites else None


def in_prose(text: str, at: int, start: int, end: int) -> tuple[str, Locator, int, int] | None:
    """Find an unmarked citation with its locator at `at`, between `start` and `end`.

    Return the path, the locator, and the offsets where the path begins and where the locator ends.
    """
    if at == start or text[at - 1].isspace():
        return None
    backwards = _BACKWARDS.match(text[max(start, at - _LONGEST) : at][::-1])
    if not backwards or backwards.end() == _LONGEST:
        return None
    begin = at - backwards.end()
    if begin > start and text[begin - 1] not in _BEFORE and text[begin - 1] < _FIRST_CJK:
        return None
    path = text[begin:at]
    locator = _LOCATOR.match(text, at, end)
    if locator and not _is_no_path(path) and _is_bare(path, locator):
        return path, _read_locator(locator), begin, locator.end()
    return None


def in_destination(target: str, anchor: str) -> tuple[str, Locator] | None:
    """Return what a Markdown link cites: a file that is not a memory, or lines of it.

    `target` is its decoded destination up to the "#".
    """
    path, colon, lines = target.rpartition(":")
    if colon and _extension_of(path) and (found := _LOCATOR.fullmatch(f":{lines}")):
        return (path, _read_locator(found)) if not is_memory(path) else None
    if not target or is_memory(target) or target.endswith("/"):
        return None
    found = _LOCATOR.fullmatch(f"#{anchor}")
    if target.endswith(".html") and not (found and anchor.startswith("L")):
        return None  # which is the address of a page
    if _extension_of(target) or _HIDDEN_FILE.search(target):
        return target, _read_locator(found) if found else Locator(symbol=anchor)
    if found and found.lastindex != _SYMBOL_GROUP and anchor.startswith("L"):
        return target, _read_locator(found)
    return None


def pin(text: str, at: int) -> tuple[str, Span]:
    """Return the pin that stands at `at`, a blank before it or not, and its span; empty without one."""
    found = _PIN.match(text, at)
    return (found[1], Span(found.end() - _PIN_LENGTH, found.end())) if found else ("", Span(at, at))


def _is_no_path(path: str) -> bool:
    host, slash, _ = path.partition("/")
    return (
        path[0] in "/$@-"
        or "//" in path
        or bool(slash and host.endswith(_HOSTS))
        or ("..." in path and _ELLIPSIS.search(path) is not None)
    )


def _extension_of(path: str) -> str:
    name, _, extension = path.rpartition(".")
    if not name or name[-1] == "/" or not (extension.isascii() and extension.isalnum()):
        return ""
    return extension.lower() if extension[0].isalpha() and len(extension) <= _LONGEST_EXTENSION else ""


def _is_bare(path: str, locator: re.Match[str]) -> bool:
    """Return whether these are a citation without a link, as `12:30` and `owner/project#12` are not."""
    extension = _extension_of(path)
    if locator.lastindex == _SYMBOL_GROUP:
        return extension in _CODE
    if locator[0].startswith("#") and not locator[0].startswith("#L") and "-" not in locator[0]:
        return False
    return extension in _FILES or ("/" in path and any(map(str.isalpha, path[path.rfind("/") :])))


def _read_locator(locator: re.Match[str]) -> Locator:
    if locator.lastindex == _SYMBOL_GROUP:
        return Locator(symbol=locator[_SYMBOL_GROUP])
    first = int(locator[1] or locator[3])
    last = int(locator[2] or locator[4] or first)
    return Locator(min(first, last), max(first, last))
