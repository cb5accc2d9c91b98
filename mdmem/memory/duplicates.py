"""Duplicates: which memories say the same, what each says alone, and how several become one.

Two memories are compared by the runs of words that few memories hold: what templates and lists of links
repeat in many says nothing about two of them.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, cached_property
from itertools import combinations
from operator import ne
from typing import TYPE_CHECKING, NamedTuple

from mdmem.document.confidence import confidence_of, sources_of
from mdmem.document.document import Document, parse_text
from mdmem.document.edit import spliced
from mdmem.document.field import with_field
from mdmem.document.markdown.blocks import LIST_MARKER
from mdmem.document.outline import read_tree
from mdmem.document.section import SEPARATOR, append_block, append_to_section, insert_before_section
from mdmem.document.text.regex import regex
from mdmem.errors import CANNOT_READ, AlreadyExists, SectionAmbiguous, SectionNotFound, Usage
from mdmem.kind import NOTE, PREFERENCE, RULE, kind_at, namespace_of
from mdmem.memory.content import new_body
from mdmem.memory.history import creation, rewriting
from mdmem.memory.validity import find_states, supersede
from mdmem.vault.paths import is_under
from mdmem.vault.plan import EditPlan, together
from mdmem.vault.vault import Vault

if TYPE_CHECKING:
    from mdmem.document.outline import TreeNode
    from mdmem.index.view import View

_FEW = 4  # memories that may hold a run that says something about two of them
_LEAST, _SHARE = 10, 0.6  # such runs that two memories have in common, and of all that either has
_MOST_WORDS, _MOST_PAIRS = 100_000, 1_000  # of one memory, and in all, that are compared
_MOST_NEAR, _MOST_SAMPLED = 20, 40  # memories, and runs of them, that are looked at for one memory
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = regex(rf"[{_CJK}]|[^\W{_CJK}]+")
_LINK = r"!?(?:\[\[[^\]\r\n]*\]\]|\[[^\]\r\n]*\]\([^)\r\n]*\)|<?https?://[^\s>]++>?)"
_ONLY_LINKS = regex(rf"(?m)^[ \t>]*(?:{LIST_MARKER}[ \t]+)?(?:{_LINK}[ \t.,;|]*+)++$")
_NUMBER = regex(r"[-+]?[0-9]+(?:[.,:][0-9]+)*")  # with what its words lack: -1 is not 1, nor 1.0 is 10
_OFTEN, _MORE = 3, 2  # uses of a word that say what a memory is about, and times as often as elsewhere
_SHARED_NAMES, _COPIED = 8, 4  # names that two folders share; of versions less than a quarter is copied
_SIGNS, _NUMBERS, _DIGIT = regex(r"[\W_]+"), regex(r"[\W\d_]+"), regex(r"\d")
_TEMPLATE = regex(r"(?i)(?:^|/)_?(?:templates?/|template\.)")
# What a host or a forge reads by its name, each for the folder in which it stands.
_NAMED = regex(
    r"(?:^|/)(?:AGENTS|BOOTSTRAP|CLAUDE|GEMINI|HEARTBEAT|IDENTITY|MEMORY|README|SKILL|SOUL|TOOLS|USER)\.md$"
)
_FENCE = regex(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)")
_JOINED = regex(rf"(?<=[{_CJK}]) (?=[{_CJK}])")
_RUN = 3  # words in a row


class AlikePair(NamedTuple):
    """Two memories by their paths, and the share of their runs of words that both hold."""

    share: float
    path: str
    other: str

    @property
    def paths(self) -> tuple[str, str]:
        """Both paths."""
        return self.path, self.other


class DuplicatePair(NamedTuple):
    """Two memories that say the same.

    Attributes:
        path, other: the memories; `other` is the newer one.
        share: of the runs of words that few memories hold, how many of those of either both hold, 0 to 1.
        is_same: whether they differ in nothing but blanks and lines of links.
        alone, other_alone: the lines that only `path`, or only `other`, has.
    """

    path: str
    other: str
    share: float
    is_same: bool
    alone: tuple[str, ...]
    other_alone: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, str]:
        """Both paths, the older memory first."""
        return self.path, self.other


def read_words(text: str) -> list[str]:
    """Return the words of a text without its lines of links; of Chinese, Japanese and Korean, characters."""
    return _WORD.findall(_ONLY_LINKS.sub("", text).casefold())[:_MOST_WORDS]


def make_runs(words: Sequence[str], size: int = _RUN) -> set[int]:
    """Return each run of `size` words as a hash, which takes a tenth of the memory; of this process alone."""
    return set(map(hash, zip(*(words[at:] for at in range(size)), strict=False)))


class ComparedMemories:
    """The memories that are compared: those that count, the newest first; each is read when it is needed.

    These are notes, preferences, rules and Markdown of no kind, without files that tools read by name.

    Args:
        now: says which memories count.
        within: a folder; all without.
        near: only this memory, and those that may say the same, as the text index tells; it must be current.
    """

    def __init__(self, view: View, now: datetime, within: str = "", near: str = "") -> None:
        self.view, self.within, self.near = view, within, near
        self.left_out: dict[str, str] = {path: flaw for path, flaw in view.flaws() if is_under(path, within)}
        passed, only = find_states(view, now).keys() | self.left_out.keys(), self._find_candidates()
        self._ages, self._names = dict[str, tuple[str, int, int]](), defaultdict[str, set[str]](set)
        for path, day, mtime_ns in view.ages():
            folder, _, name = path.rpartition("/")
            self._names[folder].add(name)
            is_near = is_under(path, within) and (not near or path in only)
            if is_near and path not in passed and is_compared(path) and not _NAMED.search(path):
                # Of one day, what stands in fewer folders: a copy is a backup more often.
                self._ages[path] = day, -path.count("/"), mtime_ns
        self.paths = sorted(self._ages, key=lambda path: self._ages[path], reverse=True)

    def _find_candidates(self) -> set[str]:
        """Find the memory that is asked about, and those that hold most of its rarest words."""
        with suppress(*CANNOT_READ):
            words = " ".join(read_words(self.view.read(self.near).body)) if self.near else ""
            found = self.view.text(lambda text: text.nearest(words, _MOST_NEAR)) if words else ()
            return {self.near, *map(self.view.inside, found)}
        return set()

    def read(self, *paths: str) -> tuple[Document, ...]:
        """Read memories, the oldest first; none where one cannot be read, which is then in `left_out`."""
        found = []
        for path in sorted(paths, key=lambda each: self._ages[each]):
            try:
                found.append(self.view.vault.read(path, recovered=True))
                _ = found[-1].headings if len(paths) > 1 else ()  # it may have too many
            except CANNOT_READ as error:
                self.left_out[path] = error.message
                return ()
        return tuple(found)

    @property
    def reasons(self) -> list[str]:
        """What was left out, in words."""
        return [": ".join(filter(None, each)) for each in self.left_out.items()]

    @cached_property
    def pairs(self) -> tuple[DuplicatePair, ...]:
        """The pairs that say the same, the most alike first."""
        alike = self.find_alike(self.paths)
        if self.near:
            alike = [pair for pair in alike if self.near in pair.paths and self._is_rare(*pair.paths)]
        if (more := len(alike) - _MOST_PAIRS) > 0:
            self.left_out[""] = f"{more:,} further pairs: make one of some of these first"
        read = ((pair.share, self.read(*pair.paths)) for pair in alike[:_MOST_PAIRS])
        compared = (compare(found[0], found[1], share) for share, found in read if found)
        hold_versions = cache(self._hold_versions)

        def is_version(pair: DuplicatePair) -> bool:
            (folder, name), (other, beside) = map(posixpath.split, pair.paths)
            return name == beside and hold_versions(folder, other)

        return tuple(pair for pair in filter(None, compared) if pair.is_same or not is_version(pair))

    def _hold_versions(self, *folders: str) -> bool:
        """Return whether two folders share many names under which they hold other texts.

        A backup holds the same texts; pages about a program on two systems do not.
        """
        one, other = (self._names[folder] for folder in folders)
        shared = sorted(one & other)
        sample = shared[:: len(shared) // _SHARED_NAMES or 1]

        def is_copied(name: str) -> bool:
            with suppress(*CANNOT_READ):
                words = [read_words(self.view.read(posixpath.join(each, name)).body) for each in folders]
                return words[0] == words[1]
            return False

        return len(sample) >= _SHARED_NAMES and _COPIED * sum(map(is_copied, sample)) < len(sample)

    def find_alike(
        self, given: Sequence[str], size: int = _RUN, least: int = _LEAST, most: float = _SHARE
    ) -> list[AlikePair]:
        """Find the pairs that share runs of `size` words which few memories hold, the most alike first.

        Of memories with the same words, the first stands for all.
        """
        paths, pairs = list[str](), list[tuple[float, int, int]]()
        holders, firsts = dict[int, int | tuple[int, ...]](), dict[int, int]()
        for path in self.view.vault.report_progress("comparing", given):
            for document in self.read(path):
                words, number = read_words(document.body), len(paths)
                runs = make_runs(words, size)
                if len(words) == _MOST_WORDS:
                    self.left_out[path] = f"all behind its first {_MOST_WORDS:,} words"
                first = firsts.setdefault(hash(tuple(words)), number) if len(runs) >= least else None
                if first is not None:
                    paths.append(path)
                if first == number:
                    _hold(holders, runs, number)
                elif first is not None:
                    pairs.append((1.0, first, number))
        for share, count, one, other in _find_shares(holders):
            if count >= least and share >= most:
                pairs.append((share, one, other))
        found = [AlikePair(share, paths[one], paths[other]) for share, one, other in pairs]
        own = (pair for pair in found if namespace_of(pair.path) == namespace_of(pair.other))
        return sorted(own, key=lambda pair: (-pair.share, *pair.paths))

    def _is_rare(self, *paths: str) -> bool:
        """Return whether few memories of all hold what two have in common, by a sample of its runs."""
        words, other = (read_words(each.body) for each in self.read(*paths))
        both = make_runs(words) & make_runs(other)
        runs = [run for run in zip(words, words[1:], words[2:], strict=False) if hash(run) in both]
        texts = [_JOINED.sub("", " ".join(run)) for run in runs[:: len(runs) // _MOST_SAMPLED + 1]]
        counts = self.view.text(lambda text: [text.count_holders(each) for each in texts])
        return sum(count <= _FEW for count in counts) >= _SHARE * len(counts)


def _find_shares(
    holders: Mapping[int, int | tuple[int, ...]],
) -> Iterator[tuple[float, int, int, int]]:
    """Yield for two memories the share of their runs that both hold, how many these are, and the two."""
    held, shared = Counter[int](), Counter[tuple[int, int]]()
    for known in holders.values():
        if isinstance(known, tuple):
            held.update(known)
            shared.update(combinations(known, 2))
    for (one, other), count in shared.items():
        yield count / (held[one] + held[other] - count), count, one, other


def _hold(holders: dict[int, int | tuple[int, ...]], runs: set[int], number: int) -> None:
    for run in runs:
        known = holders.get(run)
        if known is None:
            holders[run] = number
        elif isinstance(known, int):
            holders[run] = (known, number)
        elif known:
            holders[run] = (*known, number) if len(known) < _FEW else ()


def is_compared(path: str) -> bool:
    """Return whether a path names a note, preference, rule, or Markdown of no kind, and no template."""
    is_text = not path.endswith(".json") and not _TEMPLATE.search(path)
    return is_text and kind_at(path) in (None, NOTE, PREFERENCE, RULE)


def compare(older: Document, newer: Document, share: float = 1.0) -> DuplicatePair | None:
    """Compare the texts of two memories; None where their titles or names say that they are about two things.

    They do if each has a word there that its own text uses, and the other hardly, as `IsAncestor` and
    `IsDescendant`. If both have lines alone, one such word is enough when it is used often, or when one name
    is the other with this word, as `clear` and `clear-soft`; and so are the names of a series. A memory that
    quotes the other one as code is about it.
    """
    alone = find_alone(older, newer), find_alone(newer, older)
    own = _find_subject(older, newer), _find_subject(newer, older)
    both = own[0] | own[1]
    is_narrower = _find_added(older.path, newer.path) in both or max(both.values(), default=0) >= _OFTEN
    is_other = is_narrower or _are_of_series(older.path, newer.path)
    is_quoted = _is_quoted(older, newer) or _is_quoted(newer, older)
    if all(own) or (all(alone) and is_other) or is_quoted:
        return None
    bare = [_ONLY_LINKS.sub("", each.body).split() for each in (older, newer)]
    return DuplicatePair(older.path, newer.path, share, bare[0] == bare[1], *alone)


def _is_quoted(one: Document, other: Document) -> bool:
    """Return whether most of a text, without its code, stands in the code of another text."""
    own, there = (make_runs(read_words(_FENCE.sub("", each.body))) for each in (one, other))
    quoted = (own & make_runs(read_words(other.body))) - there
    return 2 * len(quoted) > len(own)


def _are_of_series(*paths: str) -> bool:
    """Return whether two names in one folder differ in one word of several, or in nothing but numbers."""
    (folder, name), (other, beside) = (posixpath.split(posixpath.splitext(path)[0]) for path in paths)
    one, two = _SIGNS.split(name), _SIGNS.split(beside)
    is_like = len(one) == len(two) > 1 and sum(map(ne, one, two)) == 1
    bare = [_NUMBERS.sub(" ", each).strip() for each in (name, beside)]
    is_numbered = bare[0] == bare[1] and all(map(_DIGIT.search, (name, beside)))
    return folder == other and (is_like or is_numbered)


def _find_added(*paths: str) -> str:
    """Find the one word, without a digit, that one of two names in a folder has more than the other."""
    (folder, name), (other, beside) = (posixpath.split(posixpath.splitext(path)[0]) for path in paths)
    one, two = (Counter(_SIGNS.split(each.casefold())) for each in (name, beside))
    added = [*(one - two).elements(), *(two - one).elements()]
    return added[0] if folder == other and len(added) == 1 and not _DIGIT.search(added[0]) else ""


def _find_subject(one: Document, other: Document) -> dict[str, int]:
    """Count how often a text uses each word of its title or name that another text hardly uses."""
    body, heading = one.body, next(iter(one.headings), None)
    title = one.fields.get("title")
    if heading and title in (None, heading.title):
        start = one.body_span.start
        title, body = heading.title, body[: heading.span.start - start] + body[heading.span.end - start :]
    used, there = Counter(read_words(body)), Counter(read_words(other.body))
    words = {*read_words(f"{title or ''} {_SIGNS.sub(' ', one.path.rpartition('/')[2])}")}
    return {word: used[word] for word in words if used[word] > _MORE * there[word]}


def find_alone(one: Document, other: Document) -> tuple[str, ...]:
    """List the lines of a memory with words that do not stand in a row in the other memory."""
    there = other.body.split()[:_MOST_WORDS]
    rows = {size: {tuple(there[at : at + size]) for at in range(len(there))} for size in range(1, _RUN + 1)}

    def is_alone(parts: list[str]) -> bool:
        size = min(_RUN, len(parts))
        return any(tuple(parts[at : at + size]) not in rows[size] for at in range(len(parts) - size + 1))

    return tuple(line.strip() for line in one.body.splitlines() if line.strip() and is_alone(line.split()))


def find_own_blocks(document: Document, other: Document, held: float = 1.0) -> list[tuple[TreeNode, str]]:
    """List the paragraphs, items and other blocks that another memory does not hold, with their sections.

    A block is held where this share of its runs of words is; of 1, its numbers and its code as well.
    """
    there = read_words(other.body)
    runs, text, numbers = make_runs(there), f" {' '.join(there)} ", {*_NUMBER.findall(other.body)}

    def is_own(part: TreeNode) -> bool:
        mine = make_runs(words := read_words(part.source))
        is_held = len(mine & runs) >= held * len(mine) if mine else f" {' '.join(words)} " in text
        if held == 1.0 and is_held:
            is_held = numbers.issuperset(_NUMBER.findall(part.source)) and (
                not part.is_code or part.source.strip() in other.body
            )
        return bool(words) and not is_held

    return [
        (section, part.source.strip("\r\n"))
        for section in read_tree(document).root.children
        for node in section.children
        for part in (node.children if node.kind == "list" else [node])
        if is_own(part)
    ]


# -- one memory of several ---------------------------------------------------------------------------------


def plan_merge(
    vault: Vault, view: View, documents: Sequence[Document], into: str, content: str | None, at: datetime
) -> EditPlan:
    """Plan that one memory says what several say, and supersedes the others, which stay as they are.

    What the others have alone goes under the heading that it stood under. Tags and sources are united. The
    arguments are those of `Verbs.merge`.
    """
    if len({each.path for each in documents}) < 2 or any(each.is_json for each in documents):  # noqa: PLR2004
        raise Usage(problem="a merge takes two or more memories, all Markdown", remedy="name them")
    target = next((each for each in documents if each.path == into), None)
    if target is None and vault.exists(into):
        raise AlreadyExists(path=into, remedy="name it as one of the memories, or give another path")
    others = [each for each in documents if each is not target]
    merged = target or parse_text(into, "" if content is not None else others[0].body, vault.config.limits)
    if content is not None:
        merged = spliced(merged, [new_body(merged, content)])
    for other in others if content is None else ():
        for section, block in find_own_blocks(other, merged):
            merged = _add_block(merged, section, block, next((each.title for each in other.headings), ""))
    merged = _unite_fields(merged, documents, [each.path for each in others])
    message = f"merge {len(documents)} memories into {into}"
    written = rewriting(target, merged, message) if target else creation(into, merged.text, message)
    ended = (supersede(vault, lambda: view, each.path, into, at, is_written=True) for each in others)
    return together((written, *ended), message)


def _add_block(document: Document, section: TreeNode, block: str, title: str) -> Document:
    """Add a block under its heading; under the title of the memory where it stood under that of the other."""
    first = next(iter(document.headings), None)
    own = f"# {first.title}" if first and first.level == 1 else ""
    is_top = not section.path or (section.level == 1 and section.path[0] == title)
    for name in filter(None, [own] if is_top else [SEPARATOR.join(section.path), section.path[-1]]):
        with suppress(SectionAmbiguous, SectionNotFound):
            return spliced(document, append_to_section(document, name, block))
    if first and is_top:
        return spliced(document, insert_before_section(document, first.title, block))
    heading = "" if is_top else f"{section.marker} {section.path[-1]}\n\n"
    return spliced(document, append_block(document, heading + block))


def _unite_fields(merged: Document, documents: Sequence[Document], derived: Sequence[str]) -> Document:
    sources = [each.fields.get("source") for each in documents]
    sure = [confidence_of(each.fields) or 0.0 for each in documents]
    ids = [*dict.fromkeys(name for each in documents for name in sources_of(each.fields))]
    best = sources[sure.index(max(sure))] or next(filter(None, sources), None)
    values = {
        "tags": [tag for each in documents for tag in _as_list(each.fields.get("tags"))],
        "source": {**best, "ids": ids} if isinstance(best, dict) and ids else best,
        "derived_from": [*_as_list(merged.fields.get("derived_from")), *derived],
    }
    for name, value in values.items():
        new = [*dict.fromkeys(map(str, value))] if isinstance(value, list) else value
        if new and new != merged.fields.get(name):
            merged = with_field(merged, (name,), new)
    return merged


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]
