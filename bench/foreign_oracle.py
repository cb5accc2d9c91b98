"""Where a link of another tool's notes leads, by that tool's own rules: no code of mdmem.

The rules are those of Obsidian's `getLinkpathDest`, of Dendron, Logseq, Hugo, Jekyll, Docusaurus, Astro's
Starlight and MkDocs, and of GitHub for all else. What they leave to a program (a hook, a plugin) has no
target here, and is not judged.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import yaml
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

WIKI = {"obsidian", "dendron", "logseq", "none"}
PAGES = (".md", ".mdx", ".markdown")
SETTINGS = (".yml", ".yaml", ".toml", ".edn", ".json", ".js", ".ts", ".mjs")
MARKERS = (
    (r"\.obsidian/", "obsidian"),
    (r"dendron\.yml$", "dendron"),
    (r"logseq/config\.edn$", "logseq"),
    (r"(?:config/[\w-]+/\w+|hugo|config)\.(?:toml|ya?ml|json)$", "hugo"),
    (r"_config\.yml$", "jekyll"),
    (r"docusaurus\.config\.\w+$", "docusaurus"),
    (r"astro\.config\.\w+$", "astro"),
    (r"mkdocs\.yml$", "mkdocs"),
)
BESIDE = {"hugo": ("content/",), "jekyll": ("_posts/", "_layouts/", "Gemfile")}
_WIKILINK = re.compile(r"!?\[\[([^\[\]\n]+)\]\]")
_FRONT = re.compile(
    r"\A\ufeff?(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*\r?$", re.DOTALL | re.MULTILINE
)
_ID = re.compile(r"""\b(?:id|name)\s*=\s*["']?([^"'\s>]+)|\{:?[^}\n]*?#([^\s}]+)[^}\n]*\}""")
_REF = re.compile(r"""\{\{[<%]-?\s*(?:rel)?ref\s+["'`]?([^"'`\s>%]+)""")
_JEKYLL = re.compile(r"\{%-?\s*(link|post_url)\s+([^\s%]+)")
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_BLOCK = re.compile(r"\(\(([0-9a-f]{8}-[0-9a-f-]{27})\)\)")
_DATED = re.compile(r"(?:(.*)/)?(\d{4})[-/](\d\d?)[-/](\d\d?)[-/](.*)")
_STYLES = {"date": "/:categories/:year/:month/:day/:title", "none": "/:categories/:title"}
_STYLES |= {"pretty": _STYLES["date"], "ordinal": "/:categories/:year/:y_day/:title"}


class Link(NamedTuple):
    """A link: its lines (from, to), how it is written (path, wiki, ref or block), and where it points."""

    lines: tuple[int, int]
    form: str
    target: str
    anchor: str


class Page(NamedTuple):
    links: list[Link]
    headings: list[tuple[int, str]]
    ids: set[str]
    blocks: set[str]
    fields: dict[str, Any]


class Site(NamedTuple):
    """A folder that a tool is used for; `roots` are where its paths begin that begin with `/`."""

    tool: str
    folder: str
    roots: list[str]
    settings: str


def read(text: str, tool: str) -> Page:
    """What a page consists of, as its tool reads it."""
    front = _FRONT.match(text)
    fields = _fields(front) if front else {}
    body = "\n" * text[: front.end()].count("\n") + text[front.end() :] if front else text
    links: list[Link] = []
    if tool in {"hugo", "jekyll"}:
        for found in (*_REF.finditer(body), *_JEKYLL.finditer(body)):
            line = body.count("\n", 0, found.start()) + 1
            target, _, anchor = found[found.re.groups].partition("#")
            links.append(Link((line, line), "ref", target, anchor))
        body = _TAG.sub(lambda tag: re.sub(r"[^\n]", "x", tag[0]), body)
    if tool == "obsidian":
        body = re.sub(r"%%.*?%%", lambda said: re.sub(r"[^\n]", " ", said[0]), body, flags=re.DOTALL)
    page = Page(links, [], set(), set(re.findall(r"\s\^([\w-]+)[ \t]*\r?$", body, re.MULTILINE)), fields)
    if tool == "logseq":
        page.blocks.update(re.findall(r"^\s*id:: (\S+)", body, re.MULTILINE))
    tokens = _parser(tool in WIKI).parse(body)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type in {"html_block", "inline"}:
            page.ids.update(a or b for a, b in _ID.findall(token.content))
        if token.type == "inline":
            links += _links(token)
            if before and before.type == "heading_open" and token.map:
                page.headings.append((token.map[0] + 1, _plain(token)))
    return page


def _fields(front: re.Match[str]) -> dict[str, Any]:
    try:
        found = tomllib.loads(front[2]) if front[1] == "+++" else yaml.safe_load(front[2])
    except (ValueError, yaml.YAMLError):
        return {}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


def _parser(is_wiki: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    if is_wiki:
        parser.inline.ruler.before("link", "wiki", _wiki)
        parser.inline.ruler.before("escape", "math", _math)
    return parser


def _wiki(state: StateInline, silent: bool) -> bool:
    if found := _WIKILINK.match(state.src, state.pos):
        if not silent:
            state.push("wiki", "", 0).content = found[1]
        state.pos = found.end()
    return bool(found)


def _math(state: StateInline, silent: bool) -> bool:
    if found := re.compile(r"\$\$.+?\$\$|\$(?=\S)[^$\n]*?(?<=\S)\$(?!\d)", re.DOTALL).match(
        state.src, state.pos
    ):
        if not silent:
            state.push("math", "", 0).content = found[0]
        state.pos = found.end()
    return bool(found)


def _links(inline: Token) -> Iterator[Link]:
    start, end = inline.map or (0, 1)
    for token in _all(inline):
        href = token.attrGet("href") or token.attrGet("src")
        if token.type == "wiki":
            yield Link((start + 1, end), "wiki", token.content.replace("\\|", "|"), "")
        elif block := _BLOCK.search(str(href or (token.content if token.type == "text" else ""))):
            yield Link((start + 1, end), "block", "", block[1])
        elif isinstance(href, str) and not re.match(r"[a-z][\w.+-]+:|//", href, re.IGNORECASE):
            target, _, anchor = href.partition("#")
            yield Link((start + 1, end), "path", unquote(target.partition("?")[0]), unquote(anchor))


def _all(token: Token) -> Iterator[Token]:
    for child in token.children or ():
        yield child
        yield from _all(child)


def _halved(link: Link, tool: str) -> Link:
    """A wikilink's target and anchor: Obsidian has them before the bar, Dendron behind it."""
    if link.form != "wiki":
        return link
    target, _, anchor = link.target.split("|")[-1 if tool == "dendron" else 0].partition("#")
    return link._replace(target=target.strip(), anchor=anchor)


def _plain(inline: Token) -> str:
    said = "".join(
        token.content.split("|")[-1] if token.type == "wiki" else token.content
        for token in inline.children or ()
        if token.type in {"text", "code_inline", "wiki", "math", "softbreak"}
    )
    return re.sub(r"\s*\{:?[^}]*\}\s*$", "", said).strip()


def slugs(text: str, tool: str) -> set[str]:
    """What an anchor of a heading may be, in lower case, without what tells equal ones apart."""
    if tool in {"obsidian", "logseq"}:
        return {_words(text)}
    lower = text.strip().lower()
    found = {re.sub(r"[^\w\- ]", "", lower).replace(" ", "-")}
    if tool == "mkdocs":
        ascii_only = unicodedata.normalize("NFKD", lower).encode("ascii", "ignore").decode()
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip()))
    if tool == "jekyll":
        found.add(re.sub(r"[^a-z0-9 -]", "", re.sub(r"^[^a-z]+", "", lower)).replace(" ", "-"))
    return found


def _words(text: str) -> str:
    return " ".join(re.sub(r"""[!"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\]""", " ", text.lower()).split())


def _address(path: str) -> str:
    """An address in one form: no suffix, no index, lower case."""
    path = re.sub(r"(\.html?|/)$", "", "/" + unquote(path).lower().strip("/"))
    return re.sub(r"(^|/)(_?index|readme)$", "", path).strip("/").replace(" ", "-")


def _join(base: str, target: str) -> str:
    return posixpath.normpath(posixpath.join("/" + base, target)).strip("/")


class Tree:
    """Notes as they are now: `files` are all paths, `texts` those that are pages."""

    def __init__(
        self, files: Iterable[str], texts: Mapping[str, str], cache: dict[tuple[str, str], Page]
    ) -> None:
        self.files = set(files)
        self.texts = texts
        self.cache = cache
        self.folders = {folder for path in self.files for folder in _above(path)}
        self.sites = defaultdict[str, list[Site]](list)
        for site in self._find_sites():
            outside = {
                root for root in site.roots if not f"{root}/".startswith(f"{site.folder}/".lstrip("/"))
            }
            for folder in (site.folder, *outside):
                self.sites[folder].append(site)

    def _find_sites(self) -> Iterator[Site]:
        yield Site("none", "", [""], "")
        for pattern, tool in reversed(MARKERS):
            found = re.compile(rf"(?:(.*?)/)?{pattern}")
            settings = defaultdict[str, str](str)
            for path in self.files:
                if match := found.match(path):
                    settings[match[1] or ""] += "\n" + self.texts.get(path, "")
            for folder, text in settings.items():
                beside = BESIDE.get(tool, ("",))
                if any(
                    (folder + "/" + each).strip("/") in self.folders | self.files | {""} for each in beside
                ):
                    yield Site(tool, folder, [*_roots(tool, folder, text)], text)

    @cached_property
    def sources(self) -> list[str]:
        """The pages whose links are judged: those of hidden folders are no memories."""
        return sorted(path for path in self.texts if path.endswith(PAGES) and not re.search(r"(^|/)\.", path))

    def root(self, path: str) -> str | None:
        """The content root that a file stands below."""
        site = self.site(path)
        return max((r for r in site.roots if not r or path.startswith(r + "/")), key=len, default=None)

    def site(self, path: str) -> Site:
        """The site whose folder is the nearest; of two tools in one folder, the one that is named first."""
        return next(self.sites[folder] for folder in [*_above(path), ""] if folder in self.sites)[-1]

    def page(self, path: str) -> Page:
        key = self.site(path).tool, self.texts[path]
        if key not in self.cache:
            self.cache[key] = read(key[1], key[0])
        return self.cache[key]

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """The files of each last name, in lower case."""
        found = defaultdict[str, list[str]](list)
        for path in sorted(self.files):
            found[posixpath.basename(path).lower()].append(path)
        return found

    @cached_property
    def addresses(self) -> dict[tuple[str, str], str]:
        """The page at each address of each site."""
        found: dict[tuple[str, str], str] = {}
        for path in self.texts:
            if path.endswith(PAGES):
                for address in self.served(path):
                    found.setdefault((self.site(path).folder, address), path)
        return found

    @cached_property
    def blocks(self) -> dict[str, str]:
        """The page of each block that has an id."""
        return {
            block: path for path in self.texts if path.endswith(PAGES) for block in self.page(path).blocks
        }

    def served(self, path: str) -> list[str]:
        """The addresses of a page, the first of which its relative links begin at."""
        site = self.site(path)
        root = self.root(path)
        if root is None or site.tool in {"obsidian", "dendron", "none"}:
            return []
        fields = self.page(path).fields
        inside = re.sub(r"\.(md|mdx|markdown)$", "", path.removeprefix(root).strip("/"))
        above, name = posixpath.split(inside)
        if site.tool == "logseq":
            names = [name, re.sub("___", "/", unquote(name)), name.replace(".", "/"), *_journal(name)]
            said = re.findall(r"^\s*(?:alias|title):: *(.+)$", self.texts[path], re.MULTILINE)
            names += [part.strip("# []") for line in said for part in line.split(",")]
            return [each.strip().lower() for each in [*names, *_strings(fields.get("alias"))]]
        if site.tool == "hugo":
            inside = re.sub(r"\.[a-z]{2}(-[a-z]{2})?$", "", inside)
        dated = _DATED.match(inside.replace("_posts/", ""))
        others = [*_strings(fields.get("aliases")), *_strings(fields.get("redirect_from"))]
        first = _address(posixpath.join(above, str(fields["slug"])) if fields.get("slug") else inside)
        patterns = [str(fields[key]) for key in ("url", "permalink") if fields.get(key)]
        if site.tool == "jekyll" and "_posts/" in f"{path}/":
            style = re.search(r"^permalink: *(\S+)", site.settings, re.MULTILINE)
            patterns.append(_STYLES.get(style[1], style[1]) if style else _STYLES["date"])
        if site.tool == "hugo":
            patterns += re.findall(
                rf"^\s+{re.escape(inside.split('/')[0])}\s*[:=]\s*['\"]?(/\S*:\w+\S*?)['\"]?\s*$",
                site.settings,
                re.MULTILINE,
            )
        values = {
            "slug": fields.get("slug") or re.sub(r"[^\w\s-]", "", str(fields.get("title", name))),
            "title": name,
        }
        date = re.match(r"(\d{4})-(\d\d?)-(\d\d?)", str(fields.get("date", "")))
        if dated:
            values |= {"categories": dated[1] or "", "title": dated[5]}
        if day := (date.groups() if date else dated.groups()[1:4] if dated else None):
            values |= dict(zip(("year", "month", "day"), day, strict=True))
        if site.tool == "docusaurus":
            first = "/".join(re.sub(r"^\d+[-_.](?=\D)", "", part) for part in first.split("/"))
            others += [posixpath.join(above, str(fields[key])) for key in ("id", "slug") if fields.get(key)]
            others += ["/".join(part for part in dated.groups()[1:])] if dated else []
            others = [f"{posixpath.basename(root)}/{each}" for each in ["", first, *others]][1:] + others
        filled = [re.sub(r":(\w+)", lambda m: str(values.get(m[1], "")), each) for each in patterns]
        return [_address(re.sub("/+", "/", each)) for each in [*filled, first, *others]]

    def target(self, source: str, link: Link) -> str | None:
        """The file or folder that a link leads to; None where it leads nowhere, or a program may make it."""
        return self._follow(source, link)[0]

    def _follow(self, source: str, link: Link) -> tuple[str | None, str]:
        """The target of a link, and its anchor."""
        folder = self.site(source).folder
        for site in reversed(
            [each for each in self.sites[folder] if folder or each.tool != "none"] or self.sites[""]
        ):
            half = _halved(link, site.tool)
            if path := self._find(source, half, site):
                return path, half.anchor
        return None, ""

    def _find(self, source: str, link: Link, site: Site) -> str | None:
        if link.form == "block":
            return self.blocks.get(link.anchor)
        if not link.target:
            return source
        if site.tool == "obsidian" or (link.form == "wiki" and site.tool == "none"):
            return self._in_obsidian(source, link.target, site)
        if link.form == "wiki":
            return self._by_name(link.target, site)
        return self._by_path(source, link, site)

    def _by_name(self, name: str, site: Site) -> str | None:
        if site.tool == "logseq":
            return self.addresses.get((site.folder, name.strip().lower()))
        name = re.sub(r"^dendron://[^/]*/", "", name).lower()
        inside = (p for p in self.names.get(f"{name}.md", ()) if posixpath.dirname(p) in site.roots)
        return next(inside, None)

    def _in_obsidian(self, source: str, target: str, site: Site) -> str | None:
        path = target.lower()
        found = self.names.get(posixpath.basename(path)) if "." in posixpath.basename(path) else None
        if not found:
            path += ".md"
            found = self.names.get(posixpath.basename(path), [])
        start = f"{site.folder}/".lstrip("/").lower()
        inside = {each.lower().removeprefix(start): each for each in found if each.lower().startswith(start)}
        above = posixpath.dirname(source).lower().removeprefix(start.rstrip("/")).strip("/")
        if path.startswith(("./", "../")):
            path = _join(above, path)
        if path.lstrip("/") in inside:
            return inside[path.lstrip("/")]
        ends = sorted(
            (p for p in inside if p.endswith(path)), key=lambda p: (not p.startswith(above), len(p))
        )
        return inside[ends[0]] if ends and not path.startswith("/") else None

    def _by_path(self, source: str, link: Link, site: Site) -> str | None:
        target = link.target.replace("@site/", "/") if site.tool == "docusaurus" else link.target
        above = posixpath.dirname(source)
        version = re.search(r"(^|.*/)versioned_docs/[^/]+(?=/)", source)
        roots = [version[0]] if version else site.roots
        is_rooted = target.startswith("/") or link.form == "ref" or site.tool == "docusaurus"
        starts = [above, *roots, site.folder] if is_rooted else [above]
        places = [_join(start, target.lstrip("/")) for start in starts][target.startswith("/") :]
        bases = [_join("", target)]
        if not target.startswith("/") and source in self.texts and (served := self.served(source)):
            bases = [_join(served[0] if site.tool != "docusaurus" else posixpath.dirname(served[0]), target)]
            places += [_join(root, bases[0]) for root in site.roots]
        if site.tool == "hugo" and link.form == "ref":
            places += self.names.get(posixpath.basename(target).lower().removesuffix(".md") + ".md", [])[:1]
        if site.tool == "jekyll" and link.form == "ref":
            places += [p for p in self.texts if re.sub(r"(^|/)_posts/", r"\1", p).startswith(f"{target}.")]
        for place in places:
            suffixes = (
                ("", *PAGES) if site.tool in {"hugo", "docusaurus", "astro"} or link.form == "ref" else ("",)
            )
            for suffix in suffixes:
                if place + suffix in self.files:
                    return place + suffix
        for base in bases:
            if found := self.addresses.get((site.folder, _address(base))):
                return found
        return next((place for place in places if place in self.folders), None)

    def leads(self, source: str, link: Link) -> str | None:
        """The target of a link, where its anchor is there, too."""
        path, anchor = self._follow(source, link)
        if path is None or not anchor or path not in self.texts or link.form == "block":
            return path
        return path if self.heading(path, anchor) is not None or self._has(path, anchor) else None

    def named(self, source: str, link: Link) -> tuple[str | None, int | None]:
        """The page and the line of the heading that a link names, if it names one."""
        path, anchor = self._follow(source, link)
        is_page = path in self.texts and bool(anchor) and link.form != "block"
        return (path, self.heading(path, anchor)) if path and is_page else (None, None)

    def tells(self, source: str, link: Link) -> bool:
        """Whether the tool itself shows that a link leads nowhere, and not the reader's browser alone."""
        tool = self.site(source).tool
        if tool in {"hugo", "jekyll"}:
            return link.form == "ref"
        if tool == "astro":
            return bool(re.match(r"\.[^#?]*\.(?!md)\w+$", link.target))  # images that stand beside the page
        return not (tool == "mkdocs" and (link.target.startswith("/") or link.anchor))

    def heading(self, path: str, anchor: str) -> int | None:
        """The line of the heading that an anchor names."""
        last = anchor.rsplit("#", 1)[-1].split(",", 1)[0].removesuffix(":")
        for tool in {site.tool for site in self.sites[self.site(path).folder]}:
            wanted = _words(last) if tool in {"obsidian", "logseq"} else last.lower()
            for line, text in self.page(path).headings:
                if wanted in slugs(text, tool):
                    return line
        return None

    def _has(self, path: str, anchor: str) -> bool:
        page = self.page(path)
        return anchor in page.ids or anchor.lstrip("^") in page.blocks


def _above(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _strings(value: object) -> list[str]:
    return [str(each) for each in (value if isinstance(value, list) else [value] if value else [])]


def _roots(tool: str, folder: str, settings: str) -> Iterator[str]:
    def named(pattern: str, *default: str) -> list[str]:
        return re.findall(rf"\b{pattern}['\"]?\s*[:=]\s*['\"]?([^'\"\s,#]+)", settings) or [*default]

    found = {
        "hugo": [*named("contentDir", "content"), "static", "assets"],
        "docusaurus": [*named("path", "docs"), "docs", "blog", "static", "src/pages"],
        "astro": ["src/content/docs", "public", "src/pages"],
        "mkdocs": named("docs_dir", "docs"),
        "dendron": named("fsPath", "."),
        "logseq": [*named(r":pages-directory", "pages"), "journals", ""],
    }.get(tool, [""])
    for each in found:
        yield posixpath.normpath(posixpath.join(folder, each)).removeprefix(".").strip("/")


def _journal(name: str) -> Iterator[str]:
    """The titles of a day that Logseq's settings may choose."""
    if found := re.fullmatch(r"(\d{4})[-_](\d\d)[-_](\d\d)", name):
        year, month, day = map(int, found.groups())
        ending = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
        short = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"][
            min(max(month, 1), 12) - 1
        ]
        yield from (
            f"{short} {day}{ending}, {year}",
            f"{year}-{month:02}-{day:02}",
            f"{year}/{month:02}/{day:02}",
        )
