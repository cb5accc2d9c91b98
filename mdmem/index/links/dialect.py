"""Dialects: how the tool that notes are written for reads their links. One row for each tool.

The dialect of a note is that of the nearest folder at or above it, within the workspace, that holds a marker,
or that the config of the vault names, since an import does not take every marker along.
Nothing of these files is run. Of a config a few settings are read, by patterns; what cannot be read counts as
the default. `docs/formats.md` says the table in words, and where each tool documents its rules.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from mdmem.document.document import ANY_SUFFIXES, MARKDOWN_SUFFIXES, without_suffix
from mdmem.document.markdown.link import percent_decoded
from mdmem.document.text.regex import regex
from mdmem.index.database import nth
from mdmem.vault import files
from mdmem.vault.folder import workspace_of
from mdmem.vault.paths import MemoryLayout, is_under, join, nfc, relative

SITE, UNWRITTEN, BY_NAME, LABEL_FIRST, PAGES = "site", "unwritten", "by name", "label first", "pages"
MOUNTS, COMPONENTS = "mounts", "components"
RELATIVE, ABSOLUTE = '"newLinkFormat": "relative"', '"newLinkFormat": "absolute"'
"""What a config of Obsidian says where links are paths from their notes, or from its vault, and not names."""

_MOST_READ, _MOST_SAID = 1 << 16, 16  # bytes of a config, and folders in it
_LANGUAGE = r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?"
# Where the pages of one language or version are, seen from a root, or from the folder of Docusaurus.
_VARIANT = regex(rf"{_LANGUAGE}(?=/)|versioned_docs/version-[^/]+|i18n/[^/]+/[^/]+/(?:current|version-[^/]+)")
_TWIN = regex(rf"(?:\A|/)(?:{_VARIANT.pattern}|docs|website)(?=/)")
# What makes anchors that stand nowhere in a page: plugins, shortcodes, macros.
_MAKES_ANCHORS = regex(r"^#[^\n]*[ \t]:id=|--8<--|(?<!=)\{\{|\{%|<!-- md:", re.MULTILINE)
_INSERTED = regex(r"^(?:#{1,6}[ \t]*)?:::[ \t]*\w", re.MULTILINE)  # by mkdocstrings, mkdocs-click, …
_COMPONENT = regex(r"^[ \t]*<[A-Z]\w*[\s/>]", re.MULTILINE)
PART = regex(r"^import\s[^\n]{1,200}?[\"']([^\"'\n]{1,200}\.mdx?)[\"']", re.MULTILINE)
"""A page of MDX that another one shows."""
_HUGO = ("hugo.toml", "hugo.yaml", "hugo.yml", "hugo.json")
_BESIDE_CONTENT = ("config.toml", "config.yaml", "config.yml", "config.json", "config/_default/")
# Files of a config that is a folder.
_CONFIGS = regex(r"app\.json|(?:hugo|config|module|languages)\.(?:toml|ya?ml|json|[cm]?[jt]s)")
# Of Docusaurus: the options of its plugins, what stands in them, and what is no option.
_COMMENT = regex(r"^[ \t]*//[^\n]*|/\*.*?\*/", re.MULTILINE | re.DOTALL)
_PLUGIN = regex(r"\b(docs|blog|pages)['\")\s]*[:,][(\s]*\{")
_SAYS_WHERE, _BRACE = regex(r"\b(?:path|routeBasePath|lastVersion|versions)\b"), regex(r"[{}]")
_VERSION_PATH = regex(r"([\w.-]+)['\"]?\s*:\s*\{[^{}]*\bpath\s*:\s*['\"]([^'\"\n]*)")
_MOST_VERSIONS = 100
_FOLDERS = {"docs": "docs", "blog": "blog", "pages": "src/pages"}
_MOUNT = regex(r"\bsource\"?[ \t]*[:=][ \t]*([^#\n]+)\n[ \t]*\"?target\"?[ \t]*[:=][ \t]*[\"']?([^\"'#,\n]+)")


class Dialect(NamedTuple):
    """How one tool reads links.

    Attributes:
        name: of the tool.
        markers: what the folder of its notes holds: a file, a folder (`x/`), several beside each other
            (`a+b`), a file that holds a word (`file~word`).
        traits: of `SITE`, its pages have addresses; `UNWRITTEN`, a wikilink to nothing is a page that nobody
            has written yet; `BY_NAME`, so may be the path of a Markdown link; `LABEL_FIRST`,
            `[[Label|note]]`; `PAGES`, files are those of pages, in another spelling; `COMPONENTS`, what a
            page has as `<Name>` may have anchors.
        roots: where a path is looked for that begins so; a folder.
        setting: a pattern of the config that names folders to look into before the first.
        programs: what lets the site make pages that are no files: a file or folder, a word of the config
            (`~word`); `*` always.
        checks: a pattern of the config by which the tool reports every address that leads nowhere.
        generated: names of pages that the tool makes in any folder.
    """

    name: str
    markers: tuple[str, ...]
    traits: tuple[str, ...]
    roots: tuple[tuple[str, str], ...] = (("/", ""),)
    setting: str = ""
    programs: tuple[str, ...] = ()
    checks: str = ""
    generated: tuple[str, ...] = ()


DIALECTS = (
    Dialect("Obsidian", (".obsidian/",), (UNWRITTEN, BY_NAME)),
    Dialect("Foam", (".foam/",), (UNWRITTEN,)),
    Dialect(
        "Dendron",
        ("dendron.yml",),
        (UNWRITTEN, LABEL_FIRST),
        roots=(("/", ""), ("/", "notes")),  # where a vault is of the newer kind
        setting=r"^[ \t-]*fsPath:[ \t]*([^#\n]+)",
    ),
    Dialect("Logseq", ("logseq/config.edn",), (UNWRITTEN, PAGES)),
    Dialect(
        "Hugo",
        (*_HUGO, *(f"{name}+content/" for name in _BESIDE_CONTENT)),
        (SITE,),
        # A path of Zola, which has the same folders, begins with an at.
        roots=(("/", "content"), ("/", "static"), ("/", "assets"), ("/", ""), ("@/", "content")),
        setting=r"^[ \t]*\"?contentDir\"?[ \t]*[:=][ \t]*([^#\n]+)",
        programs=(
            *("themes/", "_vendor/", "go.mod", "layouts/_markup/", "layouts/_default/_markup/"),
            *("config/_default/", "~theme", "~module", "~permalinks"),
        ),
        generated=("page", "index.xml", "sitemap.xml", "tags", "categories"),
    ),
    Dialect(
        "Jekyll",
        ("_config.yml+_posts/", "_config.yml+_layouts/", "_config.yml+Gemfile~jekyll"),
        (SITE,),
        programs=("*",),
    ),
    Dialect(
        "Docusaurus",
        tuple(f"docusaurus.config.{end}" for end in ("js", "ts", "mjs", "cjs", "mts")),
        (SITE,),
        roots=(
            *(("/docs/", "docs"), ("/blog/", "blog"), ("/", "docs"), ("/", "static"), ("/", "src/pages")),
            *(("@site/", ""), ("/", "")),
        ),
        setting=r"\bpath:\s*['\"]([^'\"\n]+)",
        generated=("tags", "category", "archive", "authors", "page", "search"),
    ),
    Dialect(
        "Astro",
        tuple(f"astro.config.{end}" for end in ("mjs", "js", "ts", "mts", "cjs")),
        (SITE,),
        roots=(
            *(("/", "src/content/docs"), ("/", "src/pages"), ("/", "public"), ("/", "src/content")),
            ("/", ""),
        ),
        programs=("*",),
    ),
    Dialect(
        "VitePress",
        (".vitepress/",),
        (SITE, COMPONENTS),
        roots=(("/", ""), ("/", "public")),
        setting=r"\bsrcDir:\s*['\"]([^'\"\n]+)",
        programs=("~rewrites",),
    ),
    Dialect("Mintlify", ("mint.json", "docs.json~mintlify"), (SITE, COMPONENTS)),
    Dialect("Docsify", ("index.html~docsify",), (SITE,), programs=("~alias",)),
    Dialect("VuePress", (".vuepress/",), (SITE, COMPONENTS), roots=(("/", ""), ("/", ".vuepress/public"))),
    Dialect(
        "mdBook",
        ("book.toml",),
        (SITE,),
        roots=(("/", "src"),),
        setting=r"^src[ \t]*=[ \t]*([^#\n]+)",
        programs=("~preprocessor",),
        generated=("print.html", "toc.html", "404.html"),
    ),
    Dialect(
        "MkDocs",
        ("mkdocs.yml", "mkdocs.yaml"),
        (SITE,),
        roots=(("/", "docs"),),
        setting=r"^docs_dir:[ \t]*([^#\n]+)",
        programs=("*",),
        checks=r"^[ \t]+(?:absolute_links|unrecognized_links):[ \t]*(?:warn|relative_to_docs)",
    ),
)


class Site(NamedTuple):
    """The notes of one folder, and how the tools read them that they are written for.

    Attributes:
        folder: seen from the workspace.
        tools: their names, mostly one; none where nothing says a tool.
        traits: the names, and what the tools have in `Dialect.traits`.
        roots: as `Dialect.roots`, with folders seen from the workspace.
        generated: as `Dialect.generated`; `*` where a program may make any page.
        config: what was read of the configs.
        served: the folders with addresses that a config says plainly: the beginning of these, and the folder.
    """

    folder: str = ""
    tools: tuple[str, ...] = ()
    traits: frozenset[str] = frozenset()
    roots: tuple[tuple[str, str], ...] = ()
    generated: frozenset[str] = frozenset()
    config: str = ""
    served: tuple[tuple[str, str], ...] = ()


NO_SITE = Site()


def find_site(layout: MemoryLayout, path: str) -> Site:
    """Return the site that the memory at `path` belongs to; `NO_SITE` without one."""
    return _find_around(layout, layout.file_of(path).rpartition("/")[0]) if layout.root else NO_SITE


def _find_around(layout: MemoryLayout, folder: str) -> Site:
    kept = layout.kept
    if folder not in kept:
        here = _look_into(layout.root, folder, layout.tools.get(folder, ()))
        website = join(folder, "website")  # it may hold the config of Docusaurus for what lies around it
        at = os.path.join(layout.root, website)
        if not here and os.path.isdir(at) and not os.path.islink(at):
            beside = _look_into(layout.root, website)
            here = beside if beside and "Docusaurus" in beside.traits else None
        kept[folder] = here or (_find_around(layout, folder.rpartition("/")[0]) if folder else NO_SITE)
    found: Site = kept[folder]
    return found


def list_tools(root: str, files: Iterable[str]) -> list[tuple[str, str]]:
    """List folders of `root`, an absolute path, that hold some of the files, and the tools they are for."""
    workspace = workspace_of(root)
    folder = nfc(os.path.relpath(root, workspace))
    layout = MemoryLayout("" if folder == os.curdir else folder, root=workspace, kept={})
    sites = dict.fromkeys((site.folder, site.tools) for site in (find_site(layout, path) for path in files))
    return [(place_in(layout, folder) or "", tool) for folder, tools in sites for tool in tools]


def find_note_tools(folder: str) -> tuple[str, ...]:
    """Return the tools whose marker a folder holds and that keep their notes there, as Obsidian does."""
    site = _look_into(folder, "")
    return site.tools if site and UNWRITTEN in site.traits else ()


def _look_into(root: str, folder: str, named: Collection[str] = ()) -> Site | None:
    at, site = os.path.join(root, folder), Site(folder)
    for dialect in DIALECTS:
        markers = (marker.split("+") for marker in dialect.markers)
        files_of_marker = next((names for names in markers if all(_is_there(at, name) for name in names)), ())
        if not files_of_marker and dialect.name not in named:
            continue
        text = _read_config(os.path.join(at, files_of_marker[0].partition("~")[0])) if files_of_marker else ""
        said = re.findall(dialect.setting, text, re.MULTILINE | re.IGNORECASE) if dialect.setting else ()
        said, first = list(dict.fromkeys(said))[:_MOST_SAID], dialect.roots[0][1]
        places = [place for name in said if (place := _place_below(folder, name)) is not None]
        roots = [
            (start, join(place, relative(name, first)))
            for place in places
            for start, name in dialect.roots
            if is_under(name, first)
        ]
        mounts = [*_list_mounts(folder, text)] if dialect.name == "Hugo" else []
        served = [*_list_served(root, folder, text)] if dialect.name == "Docusaurus" else []
        roots += [*mounts, *((start, join(folder, name)) for start, name in dialect.roots)]
        roots += [] if files_of_marker else [("/", folder)]  # it may have been a folder below the marker
        own = {place for _, place in served}
        roots = [*served, *(each for each in roots if each[0] == "/" or each[1] not in own)]
        traits, generated = {*dialect.traits, dialect.name}, {*dialect.generated}
        if mounts:
            traits.add(MOUNTS)
        checks = bool(dialect.checks) and re.search(dialect.checks, text, re.MULTILINE)
        if not checks and any(_has_program(at, name, text) for name in dialect.programs):
            generated.add("*")
        site = Site(
            folder,
            (*site.tools, dialect.name),
            site.traits | traits,
            (*site.roots, *roots),
            site.generated | generated,
            site.config + text,
            (*site.served, *served),
        )
    return site if site.tools else None


def _list_mounts(folder: str, config: str) -> Iterator[tuple[str, str]]:
    for source, target in _MOUNT.findall(config):
        part, _, start = target.strip(" \t/").partition("/")
        place = _place_below(folder, source)
        if place is not None and part in {"content", "static", "assets"}:
            yield f"/{start}/" if start else "/", place


def _list_served(root: str, folder: str, config: str) -> Iterator[tuple[str, str]]:
    """Yield where the pages of Docusaurus are served that its config, or its list of versions, names."""
    text = _COMMENT.sub("", config)
    fronts = {"", _read_option(text, "baseUrl").strip("/")}
    for plugin in _read_plugins(text):
        place = _place_below(folder, plugin.say("path") or _FOLDERS[plugin.kind])
        name, base = plugin.say("id"), plugin.say("routeBasePath")
        prefix = folder and f"{folder}/"
        if name not in {"", "default"}:
            prefix += f"{name}_"
        versions = (
            _read_versions(os.path.join(root, f"{prefix}versions.json")) if plugin.kind == "docs" else []
        )
        if place is None or not (base or versions):
            continue
        last = plugin.say("lastVersion") or next(iter(versions), "current")
        paths = {"current": "next", **{each: each for each in versions}, last: ""}
        paths |= dict(_VERSION_PATH.findall(plugin.all))
        folders = {each: f"{prefix}versioned_docs/version-{each}" for each in versions} | {"current": place}
        for version, there in folders.items():
            for front in fronts:
                parts = (each.strip("/") for each in (front, base or plugin.kind, paths[version]))
                start = "/".join(filter(None, parts))
                yield f"/{start}/" if start else "/", there


class _Plugin(NamedTuple):
    """A plugin of Docusaurus: its own options, and `all` with those of the objects in them."""

    kind: str
    own: str
    all: str

    def say(self, name: str) -> str:
        return _read_option(self.own, name)


def _read_plugins(script: str) -> list[_Plugin]:
    """Read the plugins of a config that say where pages are served; the docs are there in any case."""
    found = islice(_PLUGIN.finditer(script), _MOST_SAID)
    plugins = [_Plugin(each[1], *_read_object(script, each.end())) for each in found]
    plugins = [plugin for plugin in plugins if _SAYS_WHERE.search(plugin.own)]
    if not any(plugin.kind == "docs" and not plugin.say("id") for plugin in plugins):
        plugins.append(_Plugin("docs", "", ""))
    return plugins


def _read_object(script: str, start: int) -> tuple[str, str]:
    """Return the text of an object without the objects in it, and all of it; it begins before `start`."""
    depth, pieces, at = 1, list[str](), start
    for brace in _BRACE.finditer(script, start):
        if depth == 1:
            pieces.append(script[at : brace.start()])
        depth += 1 if brace[0] == "{" else -1
        at = brace.end()
        if not depth:
            break
    return "".join(pieces), script[start:at]


def _read_option(options: str, name: str) -> str:
    said = re.search(rf"\b{name}['\"]?\s*:\s*['\"]([^'\"\n]+)['\"]", options)
    return said[1] if said else ""


def _read_versions(file: str) -> list[str]:
    with suppress(ValueError, RecursionError):
        versions = json.loads(_read_text(file))
        if isinstance(versions, list):
            return [each for each in versions if isinstance(each, str)][:_MOST_VERSIONS]
    return []


def _is_there(at: str, name: str) -> bool:
    """Return whether a folder holds a marker; a link is none, but for one in the place of a folder."""
    name, _, word = name.partition("~")
    status = files.status_of(os.path.join(at, name.rstrip("/")))
    mode = status.st_mode if status else 0
    if name.endswith("/"):
        return stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
    return stat.S_ISREG(mode) and (not word or word in _read_text(os.path.join(at, name)))


def _has_program(at: str, name: str, text: str) -> bool:
    if name.startswith("~"):
        return re.search(rf"^[ \t\[\"]*{name[1:]}\b", text, re.MULTILINE) is not None
    return name == "*" or _is_there(at, name)


def _read_config(file: str) -> str:
    try:
        names = sorted(filter(_CONFIGS.fullmatch, os.listdir(file)))
    except OSError:  # as it is no folder
        return _read_text(file)
    return "\n".join(_read_text(os.path.join(file, name)) for name in names)


def _read_text(file: str) -> str:
    try:
        with open(files.open_regular(file), "rb") as opened:
            return opened.read(_MOST_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def _place_below(folder: str, name: str) -> str | None:
    place = os.path.normpath(os.path.join(folder, name.strip(" \t\r\"',"))).replace(os.sep, "/")
    return None if place.startswith(("/", "..")) else "" if place == "." else place


def place_in(layout: MemoryLayout, file: str) -> str | None:
    """Return the path of `file` in the namespace; it is empty for the folder of the namespace."""
    return "" if file == layout.folder else layout.path_of(file)


def list_roots(site: Site, layout: MemoryLayout, source: str) -> Iterator[tuple[str, str]]:
    """Yield the roots for a note: those of its language or version, its site, the vault, the repository."""
    file, variants = layout.file_of(source), []
    for start, folder in site.roots if SITE in site.traits else ():
        variant = _VARIANT.match(relative(file, folder)) if is_under(file, folder) else None
        starts = ("/docs/", "/") if folder == site.folder else (start,)
        variants += [(each, join(folder, variant[0])) for each in starts if variant]
    # An address in a page of Astro is the same in every language.
    first, last = ((), variants) if "Astro" in site.traits else (variants, ())
    yield from (*first, *site.roots, *last, ("/", layout.folder), ("/", ""))
    yield from (("/", folder) for folder in _list_served_folders(site, layout))


def _list_served_folders(site: Site, layout: MemoryLayout) -> list[str]:
    """List the folders that are served at the top, whatever tool it is that nothing tells of."""
    above = () if site.tools else (layout.folder, "")
    return [join(folder, name) for folder in above for name in ("public", "static")]


def may_be_served(site: Site, layout: MemoryLayout, path: str | None) -> bool:
    """Return whether a file is in a folder that may be served at the top, since no tool says otherwise."""
    file = layout.file_of(path or "")
    return any(is_under(file, folder) for folder in _list_served_folders(site, layout))


def drop_twins(site: Site, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths without those that are the first page in another language or version."""
    if SITE not in site.traits or len(paths) < 2:  # noqa: PLR2004 - one has none
        return tuple(paths)
    bare = [_TWIN.sub("", path) for path in paths]
    return tuple(path for path, name in zip(paths, bare, strict=True) if path == paths[0] or name != bare[0])


def makes_anchors(site: Site, path: str, text: str, target: str) -> bool:
    """Return whether the page that a target leads to has anchors that nothing in its text says."""
    is_twin = "Hugo" in site.traits and target.startswith("/") and _TWIN.search(path)
    has_components = COMPONENTS in site.traits and _COMPONENT.search(text)
    has_program = "mdBook" in site.traits and "*" in site.generated
    has_inserted = "MkDocs" in site.traits and _INSERTED.search(text)
    is_made = is_twin or has_components or has_program or has_inserted  # a twin may have it
    return bool(is_made or _MAKES_ANCHORS.search(text))


def is_note_of(site: Site, file: str) -> bool:
    """Return whether a file is one of the notes of a site, and no copy that the tool keeps of one."""
    is_copy = PAGES in site.traits and is_under(file, join(site.folder, "logseq/bak"))
    return is_under(file, site.folder) and not is_copy


def list_places(site: Site, layout: MemoryLayout, target: str, source: str) -> Iterator[str]:
    """Yield where a path that begins with `/` or `@` leads from the roots, the likeliest place first."""
    # A path of a file is one from the root of the version that it stands in.
    own, docs = layout.file_of(source), {folder for start, folder in site.roots if start == "/docs/"}
    docs |= {folder for _, folder in site.served}
    is_of_docs = "versioned_docs/" in own or any(is_under(own, folder) for folder in docs)
    others = {folder for folder in docs if is_of_docs and not is_under(own, folder)}
    others = others if target.endswith(MARKDOWN_SUFFIXES) else set()
    for start, folder in list_roots(site, layout, source) if ".." not in target.split("/") else ():
        if f"{target}/".startswith(start) and folder not in others:
            file = join(folder, target[len(start) :].strip("/")).strip("/")
            place = place_in(layout, file)
            if place is not None and is_served_at(site, file, target):
                yield place


def is_served_at(site: Site, file: str, target: str) -> bool:
    """Return whether a path from a root may mean a file; of one in `Site.served` only its address does."""
    own = [(start, folder) for start, folder in site.served if is_under(file, folder)]
    ways = [f"{start}{relative(file, folder)}".rstrip("/") for start, folder in own]
    return not own or target.endswith(ANY_SUFFIXES) or target.rstrip("/") in ways


def begins_as_served(site: Site, file: str, address: str) -> bool:
    """Return whether an address may be one that a page says of itself, by the folder that the page is in."""
    starts = [start for start, folder in site.served if is_under(file, folder)]
    return not starts or address[0] != "/" or f"{address}/".startswith(tuple(starts))


# Logseq's names of the parts of a day.
_SPELLED = "yyyy=%Y MMMM=%B MMM=%b MM=%m M=%m do=%d dd=%d d=%d EEEE=%A EEE=%a EE=%a E=%a %=%%"
_PARTS = {part: sign for part, _, sign in (each.partition("=") for each in _SPELLED.split())}
_PART = regex("|".join(_PARTS))
_NTH = regex(r"(?<=[0-9])(?:st|nd|rd|th)\b")
_TITLE_FORMAT = regex(r"^[^;\n]*:journal/page-title-format[ \t]+\"([^\"\n]{1,40})\"", re.MULTILINE)


def journal_stems(site: Site, title: str) -> tuple[str, ...]:
    """Return the names of the file of a journal that has this title in Logseq; none where it is no day."""
    form = _PART.sub(lambda part: _PARTS[part[0]], _find_title_format(site))
    with suppress(ValueError, re.error):
        day = time.strptime(_NTH.sub("", title), form)
        return time.strftime("%Y_%m_%d", day), time.strftime("%Y-%m-%d", day)
    return ()


def list_page_names(site: Site, path: str) -> list[str]:
    """List the names of a page of Logseq, the likeliest first: the title of its day, its file's name read."""
    name = without_suffix(path.rpartition("/")[2])
    names = [percent_decoded(name.replace(mark, "/")) for mark in ("___", ".")]
    with suppress(ValueError):
        day = time.strptime(name.replace("-", "_"), "%Y_%m_%d")
        ends = {"d": str(day.tm_mday), "M": str(day.tm_mon), "do": f"{day.tm_mday}{nth(day.tm_mday)}"}
        spell = lambda part: ends.get(part[0]) or time.strftime(_PARTS[part[0]], day)  # noqa: E731
        names.insert(0, _PART.sub(spell, _find_title_format(site)))
    return names


def _find_title_format(site: Site) -> str:
    said = _TITLE_FORMAT.search(site.config)
    return said[1] if said else "MMM do, yyyy"
