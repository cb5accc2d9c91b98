"""Find which node of a document is which node of its other version. This module alone decides that.

A node is free until it has a partner.
The surest matches come first: block ids and labels, then sections, then equal parts below equal parents, then
the same words elsewhere, and last similar words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from mdmem.document.outline import Tree, TreeNode
from mdmem.document.text.diff import increasing, matches
from mdmem.document.text.regex import regex

T = TypeVar("T")
Word = str | tuple[str, int]
# Scripts without blanks between words: each character counts as one.
_WORD = regex(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
# The targets of links, as far as they are seen without parsing: two nodes that differ only there are one.
_TARGET = regex(r"(?<=\]\()[^()\s]+(?=\))|(?<=\[\[)[^\[\]|\n]+|https?://[^\s<>()\[\]\"]+")
_SIMILAR = 0.5  # the least share of equal words at which two nodes may be one
_SIMILAR_ELSEWHERE = 0.6
_OTHER_KIND = 0.7
NEARLY_ALL = 0.9
"""The least share of the words of a text that another text has if it holds that text."""
_ABOUT = 0.1  # the most by which two shares differ that are about equal
TELLING = 4
"""The least words of a text that is recognised in another place, or in a longer text."""
_MOST_READ = 10_000  # characters of a node that are compared
_MOST_PAIRS = 4_000  # of nodes between two matched nodes; more are not compared
_MAY_CHANGE_KIND = frozenset(["paragraph", "quote", "code", "html"])
_CONTAINERS = frozenset(["root", "section", "list", "table"])


class Matching:
    """The nodes of two trees that are the same.

    Attributes:
        weak: nodes of `old` with a partner that stands in their place and says something else.
        unsure: nodes of `old` that are about as similar to another one as to their partner.
        unmatched: how many nodes of `old` have no partner and were not compared with all others.
    """

    def __init__(self, old: Tree, new: Tree) -> None:
        self.old, self.new = old, new
        self.weak: set[TreeNode] = set()
        self.unsure: set[TreeNode] = set()
        self._skipped: set[TreeNode] = set()
        self._partner: dict[TreeNode, TreeNode] = {}
        self._shapes: dict[TreeNode, int] = {}
        self._words: dict[TreeNode, frozenset[Word]] = {}
        self._counts: dict[tuple[TreeNode, ...], tuple[Counter[Word], int]] = {}  # of the words of entries
        known: dict[Hashable, int] = {}
        for node in (*reversed(old.nodes), *reversed(new.nodes)):
            shape = (node.kind, node.words, node.id, node.level, *(self._shapes[c] for c in node.children))
            self._shapes[node] = known.setdefault(shape, len(known))
        self._pair_nodes(old.root, new.root)
        self._match_names()
        self._match_sections()
        self._match_equal_below()
        self._match_equal_elsewhere()
        self._match_in_order(self.old.nodes, self.new.nodes, self._find_telling_words)
        self._match_similar_anywhere()
        self._match_sections_by_children()
        self._match_places()
        self.unmatched = sum(map(self._is_free, self._skipped))

    def partner(self, node: TreeNode) -> TreeNode | None:
        """Return the same node in the other tree."""
        return self._partner.get(node)

    def is_equal(self, node: TreeNode) -> bool:
        """Return whether a node and its partner, with all below them, say the same."""
        other = self._partner.get(node)
        return other is not None and self._shapes[node] == self._shapes[other]

    def _pair_nodes(self, old: TreeNode, new: TreeNode) -> None:
        self._partner[old], self._partner[new] = new, old

    def _is_free(self, node: TreeNode) -> bool:
        return node not in self._partner

    def _find_open(self) -> Iterator[tuple[TreeNode, TreeNode]]:
        for old in self.old.nodes:
            new = self._partner.get(old)
            if new and any(map(self._is_free, old.children)) and any(map(self._is_free, new.children)):
                yield old, new

    def _match_once(self, key: Callable[[TreeNode], Hashable | None]) -> list[tuple[TreeNode, TreeNode]]:
        """Match two free nodes of one key if no other free node of either tree has it; None is no key."""
        olds, news = (_find_single(filter(self._is_free, each.nodes), key) for each in (self.old, self.new))
        pairs = [(node, news[each]) for each, node in olds.items() if each in news]
        for pair in pairs:
            self._pair_nodes(*pair)
        return pairs

    # -- names and sections -------------------------------------------------------------------------------

    def _match_names(self) -> None:
        ids = [Counter(node.id for node in each.nodes) for each in (self.old, self.new)]
        self._match_once(lambda node: node.id if node.id and max(c[node.id] for c in ids) == 1 else None)
        self._match_once(lambda node: (node.kind, node.label) if node.label else None)

    def _match_sections(self) -> None:
        olds, news = self.old.root.children, self.new.root.children
        self._pair_nodes(olds[0], news[0])  # what stands above the first heading
        self._match_in_order(olds, news, lambda node: (node.path, node.level))
        self._match_in_order(olds, news, lambda node: node.path)
        self._match_in_order(olds, news, lambda node: (node.words, node.level))
        self._match_in_order(olds, news, lambda node: node.words)

    def _count_equal(self, old: TreeNode, new: TreeNode) -> int:
        counts = [Counter(self._shapes[child] for child in node.children) for node in (old, new)]
        return (counts[0] & counts[1]).total()

    def _match_sections_by_children(self) -> None:
        votes: Counter[tuple[TreeNode, TreeNode]] = Counter()
        for node in self.old.nodes:
            other = self._partner.get(node)
            if other:
                old, new = node.above or section_of(node), other.above or section_of(other)
                if self._is_free(old) and self._is_free(new):
                    votes[old, new] += 1
        for (old, new), _ in votes.most_common():
            if self._is_free(old) and self._is_free(new):
                self._pair_nodes(old, new)
        self._match_similar_children(self.old.root, self.new.root)

    # -- equal parts --------------------------------------------------------------------------------------

    def _match_equal_below(self) -> None:
        for old, new in self._find_open():
            if self.is_equal(old):
                self._join_below(old, new)
            elif old.kind != "root":
                self._match_in_order(old.children, new.children, self._shapes.__getitem__)
                self._match_in_order(old.children, new.children, _own_words)
                self._match_containers(old.children, new.children)

    def _match_in_order(
        self, olds: Sequence[TreeNode], news: Sequence[TreeNode], key: Callable[[TreeNode], Hashable | None]
    ) -> None:
        """Match the free nodes with equal keys, first those between matched neighbours."""
        if not any(map(self._is_free, olds)) or not any(map(self._is_free, news)):
            return
        sides: list[list[Hashable]] = [[], []]
        for nodes, keys in zip((olds, news), sides, strict=True):
            for node in nodes:
                own = key(node) if self._is_free(node) else None
                anchor = node if nodes is olds else self._partner.get(node, node)
                keys.append(anchor if own is None else (own,))
        for at, other, size in matches(*sides):
            for step in range(size):
                if self._is_free(olds[at + step]):
                    self._pair_nodes(olds[at + step], news[other + step])
        left: dict[Hashable, list[TreeNode]] = defaultdict(list)
        for new in filter(self._is_free, reversed(news)):
            left[key(new)].append(new)
        for old in filter(self._is_free, olds):
            own = key(old)
            if own is not None and left.get(own):
                self._pair_nodes(old, left[own].pop())

    def _match_containers(self, olds: Sequence[TreeNode], news: Sequence[TreeNode]) -> None:
        """Match the lists, and the tables, that have the most items in common."""
        for kind in ("list", "table"):
            mine, yours = (
                [node for node in nodes if node.kind == kind and self._is_free(node)]
                for nodes in (olds, news)
            )
            nearest = pair_nearest(len(mine), len(yours))
            scored = [(-self._count_equal(mine[n], yours[m]), away, n, m) for n, m, away in nearest]
            for count, _, n, m in sorted(scored):
                if count and self._is_free(mine[n]) and self._is_free(yours[m]):
                    self._pair_nodes(mine[n], yours[m])

    def _match_equal_elsewhere(self) -> None:
        for pair in self._match_once(lambda node: None if _own_words(node) is None else self._shapes[node]):
            self._join_below(*pair)
        self._match_once(_own_words)

    def _find_telling_words(self, node: TreeNode) -> Hashable | None:
        """Return the words of a node if they are enough to recognise it among several; else None."""
        return _own_words(node) if len(self._words_of(node)) >= TELLING else None

    def _join_below(self, old: TreeNode, new: TreeNode) -> None:
        """Match two equal nodes and all nodes below them, one by one."""
        for below, other in zip(old.walk(), new.walk(), strict=True):
            if self._is_free(below) and self._is_free(other):
                self._pair_nodes(below, other)

    # -- similar parts ------------------------------------------------------------------------------------

    def _match_similar_children(self, old: TreeNode, new: TreeNode) -> None:
        gaps = list(self._find_gaps(old.children, new.children))
        gap_of = {node: number for number, gap in enumerate(gaps) for node in (*gap[0], *gap[1])}
        free, others = (list(filter(self._is_free, each.children)) for each in (old, new))
        self._match_similar(free, others, lambda a, b: gap_of[a] == gap_of[b], _SIMILAR)

    def _match_places(self) -> None:
        """Match similar nodes, then a single node between matched neighbours, whatever the node says."""
        for old, new in self._find_open():
            self._match_in_order(old.children, new.children, _said_first)
            self._match_similar_children(old, new)
            for olds, news in self._find_gaps(old.children, new.children):
                self._match_alone(olds, news)

    def _match_alone(self, olds: Sequence[TreeNode], news: Sequence[TreeNode]) -> None:
        for kind in dict.fromkeys(node.kind for node in olds):
            mine, yours = ([node for node in nodes if node.kind == kind] for nodes in (olds, news))
            if len(mine) == len(yours) == 1:
                self._pair_nodes(mine[0], yours[0])
                if kind != "list" and not _say_one_thing(mine[0], yours[0]):
                    self.weak.add(mine[0])
        olds, news = (
            [node for node in nodes if node.kind in _MAY_CHANGE_KIND and self._is_free(node)]
            for nodes in (olds, news)
        )
        self._match_similar(olds, news, lambda _a, _b: True, _OTHER_KIND, other_kind=True)

    def _match_similar_anywhere(self) -> None:
        olds, news = (
            [node for node in each.nodes if node.kind not in _CONTAINERS] for each in (self.old, self.new)
        )
        for mine, yours in self._find_gaps(olds, news):
            self._match_similar(mine, yours, self._is_below_same, _SIMILAR_ELSEWHERE)

    def _is_below_same(self, old: TreeNode, new: TreeNode) -> bool:
        return old.parent is not None and self._partner.get(old.parent) is new.parent

    def _find_gaps(
        self, olds: Sequence[TreeNode], news: Sequence[TreeNode]
    ) -> Iterator[tuple[list[TreeNode], list[TreeNode]]]:
        """Yield the free nodes between neighbours that are matched in the same order."""
        place = {node: number for number, node in enumerate(news)}
        at = [
            (number, place[other])
            for number, node in enumerate(olds)
            if (other := self._partner.get(node)) in place and other is not None
        ]
        kept = increasing([other for _, other in at])
        last_old = last_new = -1
        for next_old, next_new in [*(at[each] for each in kept), (len(olds), len(news))]:
            gap = olds[last_old + 1 : next_old], news[last_new + 1 : next_new]
            mine, yours = (list(filter(self._is_free, nodes)) for nodes in gap)
            if mine or yours:
                yield mine, yours
            last_old, last_new = next_old, next_new

    def _match_similar(
        self,
        olds: Sequence[TreeNode],
        news: Sequence[TreeNode],
        is_near: Callable[[TreeNode, TreeNode], bool],
        least: float,
        *,
        other_kind: bool = False,
    ) -> None:
        """Match nodes with similar words, the most similar first; near nodes get a small bonus."""
        scored = []
        if len(olds) * len(news) > _MOST_PAIRS:
            self._skipped.update(olds)
        for n, m, away in pair_nearest(len(olds), len(news)):
            old, new = olds[n], news[m]
            share = self._measure_likeness(old, new) if other_kind or old.kind == new.kind else 0
            if share >= least:
                rank = share + _ABOUT if is_near(old, new) else share
                scored.append((-rank, away, n, m))
        best: list[tuple[float, int, int]] = []
        for rank, _, n, m in sorted(scored):
            if self._is_free(olds[n]) and self._is_free(news[m]):
                self._pair_nodes(olds[n], news[m])
                best.append((rank, n, m))
        others: dict[tuple[bool, int], list[float]] = defaultdict(list)
        for rank, _, n, m in scored:
            others[True, n].append(rank)
            others[False, m].append(rank)
        for rank, n, m in best:
            close = [each for each in (*others[True, n], *others[False, m]) if each <= rank + _ABOUT]
            if len(close) > len("nm"):  # both lists have the pair itself
                self.unsure.add(olds[n])

    def _measure_likeness(self, old: TreeNode, new: TreeNode) -> float:
        """Return the share of equal words; at least `_SIMILAR` if one text has nearly all of the other."""
        words, others = self._words_of(old), self._words_of(new)
        if not words or not others:
            return 0.0
        shared, fewest = len(words & others), min(len(words), len(others))
        is_part = fewest >= TELLING and shared >= fewest * NEARLY_ALL
        share = 2 * shared / (len(words) + len(others))
        return max(share, _SIMILAR) if is_part else share

    def is_other_entry(self, old: TreeNode) -> bool:
        """Return whether an item or row is likely another entry: its partner has few of its rare words."""
        new = self._partner.get(old)
        parents = tuple(node.parent for node in (old, new) if node and node.parent)
        if old.kind not in {"item", "row"} or old.id or not new or self.is_equal(old):
            return False
        if parents not in self._counts:
            beside = [self._words_of(each) for parent in parents for each in parent.children]
            self._counts[parents] = Counter(chain(*beside)), len(beside)
        (counts, entries), words, others = self._counts[parents], self._words_of(old), self._words_of(new)

        def tells(word: Word) -> bool:
            return 2 * (counts[word] - (word in words) - (word in others)) <= entries - len((old, new))

        shared, both = (sum(map(tells, each)) for each in (words & others, [*words, *others]))
        is_unlike = any(map(tells, words - others)) and 2 * shared < _SIMILAR * both
        return is_unlike and not _say_one_thing(old, new)

    def _words_of(self, node: TreeNode) -> frozenset[Word]:
        if node not in self._words:
            text = node.source if node.kind in {"list", "table"} else node.words
            self._words[node] = occurrences(text[:_MOST_READ])
        return self._words[node]


def pair_nearest(olds: int, news: int) -> Iterator[tuple[int, int, int]]:
    """Yield pairs of places in two lists, with their distance; for long lists, only pairs of near places."""
    reach = news if olds * news <= _MOST_PAIRS else max(1, _MOST_PAIRS // olds // 2)
    for n in range(olds):
        middle = n * news // olds
        for m in range(max(0, middle - reach), min(news, middle + reach + 1)):
            yield n, m, abs(m - middle)


def holds(text: str, other: str) -> bool:
    """Return whether one text has all words of the other in a row."""
    words, others = (f" {' '.join(_WORD.findall(each.casefold()))} " for each in (text, other))
    return bool(words.strip() and others.strip()) and (words in others or others in words)


def _say_one_thing(old: TreeNode, new: TreeNode) -> bool:
    """Return whether one node holds the words of the other, or only the targets of their links differ."""
    is_same_but_targets = _TARGET.sub("", old.words) == _TARGET.sub("", new.words)
    return is_same_but_targets or holds(old.words, new.words)


def section_of(node: TreeNode) -> TreeNode:
    """Return the section that a node stands in."""
    while node.kind != "section" and node.parent:
        node = node.parent
    return node


def _find_single(
    nodes: Iterable[TreeNode], key: Callable[[TreeNode], Hashable | None]
) -> dict[Hashable, TreeNode]:
    found: dict[Hashable, list[TreeNode]] = defaultdict(list)
    for node in nodes:
        own = key(node)
        if own is not None:
            found[own].append(node)
    return {own: each[0] for own, each in found.items() if len(each) == 1}


def _own_words(node: TreeNode) -> Hashable | None:
    """Return the kind and words of a node; None for a section, and for one without words, such as a list."""
    return (node.kind, node.words) if node.words and node.kind != "section" else None


def _said_first(node: TreeNode) -> Hashable | None:
    """Return the kind of a node and the first line of its words; None as in `_own_words`."""
    return (node.kind, node.words.partition("\n")[0]) if node.words and node.kind != "section" else None


def count_words(text: str) -> Counter[str]:
    """Return how often each word stands in a text."""
    return Counter(_WORD.findall(text.casefold()))


def occurrences(text: str) -> frozenset[Word]:
    """Return the words of a text; each repetition counts as another word."""
    counts: Counter[str] = Counter()
    found: set[Word] = set()
    for word in _WORD.findall(text.casefold()):
        found.add((word, counts[word]) if counts[word] else word)
        counts[word] += 1
    return frozenset(found)
