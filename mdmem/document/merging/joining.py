"""The trees of three versions joined into one: which nodes stand, below which parent, and in which order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, combinations, groupby, pairwise, takewhile
from operator import itemgetter
from typing import Literal, NamedTuple

from mdmem.document.anchor import plain
from mdmem.document.merging.likeness import PlacedFact, find_alike
from mdmem.document.merging.matching import NEARLY_ALL, Matching, count_words
from mdmem.document.outline import Tree, TreeNode
from mdmem.document.text.diff import Versions
from mdmem.document.text.regex import regex

SIDES = (1, 2)
"""The places of ours and theirs in `Versions`."""


_TAG = regex(r"</?[A-Za-z][^<>]*>")
_LONGEST_RUN = 100  # nodes that a side added beside each other, and that may stand once for both
_ALIKE = "added by each side, nearly alike"
_MOST_SORTED = 500  # siblings, where both sides changed the order


@dataclass(slots=True, eq=False)
class Trio:
    """One node in three versions, and what becomes of it.

    Attributes:
        state: a conflict takes with it all that is below the node on either side.
        why: what both sides did to it, where it is a conflict.
        is_replaced: whether a side has something else in its place.
        parent, children: its place among those that stand or conflict, in the order of the result.
    """

    nodes: Versions[TreeNode | None]
    state: Literal["stands", "gone", "conflict"] = "stands"
    why: str = ""
    is_replaced: bool = False
    parent: Trio | None = None
    children: list[Trio] = field(default_factory=list)

    @property
    def sides(self) -> list[int]:
        """The sides that have it."""
        return [side for side in SIDES if self.nodes[side]]

    @property
    def node(self) -> TreeNode:
        """The node as theirs has it, else ours, else the base; as the side that made another kind of it."""
        base, ours, theirs = self.nodes
        if base and ours and theirs and ours.kind != base.kind == theirs.kind:
            return ours
        return next(node for node in reversed(self.nodes) if node)

    def on(self, side: int) -> TreeNode:
        """Return the node on a side that has it."""
        node = self.nodes[side]
        if node is None:
            raise AssertionError("the side does not have this node")
        return node

    def contest(self, why: str, side: int = 0) -> None:
        """Make it a conflict; `why` may name `side` and then the other one as `{}`."""
        self.state = "conflict"
        names = ("", "ours", "theirs")
        self.why = why.format(names[side], names[3 - side]) if side else why

    def is_removed_by(self, side: int) -> bool:
        """Return whether a side no longer has what was in the base."""
        return self.nodes.base is not None and self.nodes[side] is None


class Joined(NamedTuple):
    """The root of the result, and the trio of each node of the three trees.

    `is_whole` tells whether the result has each node that stands, or is in conflict, as each side has it.
    """

    root: Trio
    trios: dict[TreeNode, Trio]
    is_whole: bool


def join_trees(trees: Versions[Tree], first: int = 1) -> Joined:
    """Join three trees; of two insertions at one place, that of the side `first` stands last."""
    return _Joining(trees, first).join()


class _Joining:
    def __init__(self, trees: Versions[Tree], first: int) -> None:
        self._trees = trees
        self._order = (first, 3 - first)
        self._weak: Sequence[AbstractSet[TreeNode]] = ()
        self._trios: dict[TreeNode, Trio] = {}
        self._all: list[Trio] = []
        nodes = [node for tree in trees for node in tree.nodes]
        self._before = {below: above for node in nodes for above, below in pairwise(node.children)}
        self._after = {above: below for below, above in self._before.items()}
        self._known_before: dict[TreeNode, Trio | None] = {}
        self._known_after: dict[TreeNode, Trio | None] = {}
        self._runs: dict[TreeNode, list[tuple[str, str]]] = {}  # additions beside each other
        self._lists: list[tuple[Sequence[Trio], bool]] = []  # items or rows, and whether a side moved some
        self._pieces: dict[Trio, Trio] = {}  # and what each was cut from
        self._subsections: dict[TreeNode, list[TreeNode]] = defaultdict(list)
        for node in nodes:
            if node.above:
                self._subsections[node.above].append(node)

    def join(self) -> Joined:
        self._make_trios()
        for trio in self._all:
            self._mark_pieces(trio)
            self._decide_state(trio)
        self._keep_contexts()
        self._contest_replacements()
        below: dict[Trio, list[Trio]] = defaultdict(list)
        for trio in self._all[1:]:
            if self._is_moved_apart(trio):
                trio.contest("moved to another place by each side")
            if trio.state != "gone":
                trio.parent = self._choose_parent(trio)
                below[trio.parent].append(trio)
            elif len(trio.sides) == 1 and not self._is_moved(trio, trio.sides[0]):
                below[self._trios[trio.on(0).parent or trio.on(0)]].append(trio)
        for parent, children in below.items():
            if parent.state == "stands":
                ordered = self._sort_children(parent, children)
                self._widen_conflicts(ordered)
                parent.children = [trio for trio in ordered if trio.state != "gone"]
        self._contest_additions()
        self._drop_empty_lists(self._all[0])
        shown = set(self._walk_shown(self._all[0]))
        kept = [trio for trio in self._all if trio.state != "gone" and trio.node.head]
        is_whole = all(trio.nodes[side] in shown for trio in kept for side in trio.sides)
        return Joined(self._all[0], self._trios, is_whole)

    def _walk_shown(self, trio: Trio) -> Iterator[TreeNode | None]:
        """Yield the nodes of both sides that a result shows, in conflicts or changed."""
        for side in trio.sides:
            yield from trio.on(side).walk() if trio.state == "conflict" else [trio.on(side)]
        for child in trio.children:
            yield from self._walk_shown(child)

    def _trio_of(self, node: TreeNode) -> Trio:
        return self._trios[node]

    def _parent_of(self, node: TreeNode | None) -> Trio | None:
        return self._trios[node.parent] if node and node.parent else None

    def _find_parents(self, trio: Trio) -> Versions[Trio | None]:
        return Versions(*map(self._parent_of, trio.nodes))

    # -- one node in three trees ---------------------------------------------------------------------------

    def _make_trios(self) -> None:
        base, ours, theirs = self._trees
        mine, yours = Matching(base, ours), Matching(base, theirs)
        self._weak = [each.weak | set(filter(each.is_other_entry, base.nodes)) for each in (mine, yours)]
        for node in base.nodes:
            self._add_trio(Versions(node, mine.partner(node), yours.partner(node)))
        for parent in (*ours.nodes, *theirs.nodes):
            self._note_known(self._known_before, parent.children)
            self._note_known(self._known_after, reversed(parent.children))
        added: dict[object, list[TreeNode]] = defaultdict(list)
        for node in theirs.nodes:
            if node not in self._trios:
                for key in ((node.id, ""), ("", node.label), _shown_words(node)):
                    added[key].append(node)
        for node in ours.nodes:
            if node not in self._trios:
                self._add_trio(Versions(None, node, self._find_twin(node, added)))
        for node in theirs.nodes:
            if node not in self._trios:
                self._add_trio(Versions(None, None, node))

    def _mark_pieces(self, trio: Trio) -> None:
        """Note what a side cut from a node and put beside it, and tags that it put around it."""
        for side in trio.sides if trio.nodes.base else ():
            for beside in (self._after, self._before):
                near = beside.get(trio.on(side))
                lost: Counter[str] | None = None
                while near and self._trios[near].sides == [side] and not self._trios[near].nodes.base:
                    if lost is None:
                        lost = count_words(trio.on(0).words) - count_words(trio.on(side).words)
                    words = count_words(near.words)
                    is_tag = near.kind == "html" and near.head.lstrip().startswith("</") == (
                        beside is self._after
                    )
                    if not is_tag and (not words or (words & lost).total() < words.total() * NEARLY_ALL):
                        break
                    self._pieces[self._trios[near]] = trio
                    lost -= words
                    near = beside.get(near)

    def _add_trio(self, nodes: Versions[TreeNode | None]) -> None:
        trio = Trio(nodes)
        self._all.append(trio)
        self._trios.update((node, trio) for node in nodes if node)

    def _find_twin(self, node: TreeNode, added: dict[object, list[TreeNode]]) -> TreeNode | None:
        named = (added[node.id, ""] if node.id else []) + (added["", node.label] if node.label else [])
        same = (each for each in added[_shown_words(node)] if self._is_same_addition(node, each))
        return next((each for each in (*named, *same) if each not in self._trios), None)

    def _is_same_addition(self, one: TreeNode, other: TreeNode) -> bool:
        """Return whether both sides added the same words, list or section in one place."""
        if other in self._trios or not other.parent or not one.parent:
            return False
        if self._trios.get(other.parent) is not self._trios[one.parent]:
            return False
        if one.kind in {"item", "row"}:
            return True
        is_there = self._known_before[one] is self._known_before[other]
        if one.kind == "section":
            over, above = (self._trios.get(node.above) if node.above else None for node in (one, other))
            return is_there and one.level == other.level and over is above
        if is_there and one.kind != "list":
            # Of two runs of blocks that differ, a block is not taken out because the other has it as well.
            shorter, longer = sorted((self._runs[one], self._runs[other]), key=len)
            rest = iter(longer[:_LONGEST_RUN])
            if all(words in rest for words in shorter):
                return True
        before, after = self._before.get(one), self._before.get(other)
        is_behind_same = (before and self._trios[before]) is (after and self._trios.get(after, after))
        return is_behind_same and list_marker(one) == list_marker(other)

    def _note_known(self, known: dict[TreeNode, Trio | None], siblings: Iterable[TreeNode]) -> None:
        """Note for each node the nearest sibling in one direction that is in the base, and those between."""
        last: Trio | None = None
        run: list[tuple[str, str]] = []
        for node in siblings:
            known[node] = last
            if node in self._trios:
                last, run = self._trios[node], []
            else:
                self._runs[node] = run
                run.append(_shown_words(node))

    # -- what stands --------------------------------------------------------------------------------------

    def _decide_state(self, trio: Trio) -> None:
        base, ours, theirs = trio.nodes
        if base is None or (ours and theirs):
            if base and base.kind == "table" and self._has_columns_conflict(trio):
                trio.contest("its columns were changed by one side, its rows by the other")
            for side in SIDES:
                other = 3 - side
                if not self._is_replaced(trio, side):
                    continue
                trio.is_replaced = True
                parents = self._find_parents(trio)
                is_moved = (
                    parents[other] is not parents.base and not self._is_lost(parents.base or trio)[other - 1]
                )
                if is_moved or self._is_changed_below(trio, other):
                    trio.contest("replaced by {}, moved or added to by {}", side)
        else:
            trio.state = "gone"
            for side in trio.sides:
                if self._is_changed(trio, side):
                    trio.contest("removed by {}, changed by {}", 3 - side)

    def _is_replaced(self, trio: Trio, side: int) -> bool:
        """Return whether a side has something else in the place of a node and of all in it."""
        base = trio.nodes.base
        if base is None or base not in self._weak[side - 1]:
            return False
        return not any(self._has_kept(node, side) for node in base.walk() if node.words)

    def _has_kept(self, node: TreeNode, side: int) -> bool:
        """Return whether a side still has a node of the base, with nothing else in its place."""
        return self._trios[node].nodes[side] is not None and node not in self._weak[side - 1]

    def _is_changed(self, trio: Trio, side: int) -> bool:
        """Return whether a side changed a node that the other removed."""
        is_moved = self._is_moved(trio, side) and not trio.node.id  # an id that is moved and removed is gone
        if is_moved or _is_reworded(trio.on(0), trio.on(side)):
            return True
        return self._is_changed_below(trio, side)

    def _is_changed_below(self, trio: Trio, side: int) -> bool:
        """Return whether a side changed what is in a node that the other removed."""
        node, base, other = trio.on(side), trio.on(0), 3 - side
        held = set(self._walk_below(base))
        tops = [base, *(each for each in base.children if each.kind in {"list", "table"})]
        if any(self._has_kept(each, other) for each in held if each.parent in tops or each.above is base):
            return False  # the other side took only the node from around them
        for below in self._walk_below(node):
            each = self._trios[below]
            if each.nodes.base is None or self._is_moved(each, side):
                return True
            if each.nodes[other] is None and _is_reworded(each.nodes.base, below):
                return True
            if each.nodes[other] and each.nodes.base not in held:
                return True
        return False

    def _walk_below(self, node: TreeNode) -> Iterator[TreeNode]:
        """Yield what is in a node, in order, and the sections below a section."""
        nodes = node.walk()
        next(nodes)
        yield from nodes
        for section in self._subsections.get(node, ()):
            yield section
            yield from self._walk_below(section)

    def _is_moved(self, trio: Trio, side: int) -> bool:
        node, base = trio.nodes[side], trio.nodes.base
        if not node or not base or not node.parent or not base.parent:
            return False
        new, old = self._trios[node.parent], self._trios[base.parent]
        while new.nodes.base is None and new.node.kind in {"list", "table"} and new.nodes[side]:
            new = self._parent_of(new.on(side)) or new
        return new is not old and new.nodes.base is not None and old.nodes[side] is not None

    def _has_columns_conflict(self, trio: Trio) -> bool:
        for side in SIDES:
            base, one, other = trio.on(0), trio.on(side), trio.on(3 - side)
            if _has_other_columns(base, one) and one.words != other.words:
                rows = Versions(base, one, other).map(lambda table: [row.words for row in table.children])
                if rows.base != rows.theirs or base.words != other.words:
                    return True
        return False

    def _keep_contexts(self) -> None:
        """Make a conflict of additions of one side to things that the other removed."""
        rewritten = {
            (self._trios[node], side)
            for node in self._trees.base.nodes
            for side in self._trios[node].sides
            if node.kind == "list" and all(self._trios[item].is_removed_by(side) for item in node.children)
        }
        for trio in self._all:
            if len(trio.sides) == 1 and trio.nodes.base is None:
                self._keep_context(trio, rewritten)
            elif len(trio.sides) == 1 and trio.state == "conflict" and trio.node.kind == "section":
                for below in map(self._trio_of, self._walk_below(trio.node)):
                    if below.node.kind == "section" and below.sides == trio.sides:
                        below.contest(trio.why)

    def _keep_context(self, trio: Trio, rewritten: Container[tuple[Trio | None, int]]) -> None:
        """Make a conflict of an addition of one side if the other removed its surroundings."""
        (side,) = trio.sides
        node, whole, other = trio.on(side), self._parent_of(trio.on(side)), 3 - side
        held = {self._trios[below].state for below in self._walk_below(node) if below.head}
        if self._is_in_removed_html(node, other):
            trio.contest("added by {} in HTML that {} removed", side)
        elif held == {"gone"}:
            trio.contest("put by {} around something that {} removed", side)
        elif whole and (whole, other) in rewritten:
            whole.contest("rewritten by {}, added to by {}", other)

    def _is_in_removed_html(self, node: TreeNode, side: int) -> bool:
        """Return whether a side removed what stands around a node, HTML among it."""
        around = [known[node] for known in (self._known_before, self._known_after)]
        gone = [trio for trio in around if trio and trio.state == "gone" and trio.is_removed_by(side)]
        return len(gone) == len(around) and "html" in {trio.node.kind for trio in gone}

    def _contest_replacements(self) -> None:
        """Make a conflict of the replacements of something that both sides removed."""
        facts = self._trees.map(lambda tree: [node for node in tree.nodes if node.head])
        base = [self._trios[node] for node in facts.base]
        gaps = [self._find_gaps(base, facts[side]) for side in SIDES]
        seen: set[object] = set()
        for above, trio, *ends in zip([None, *base], base, *gaps, strict=False):
            if trio.sides or trio.node.kind == "rule" or tuple(ends) in seen:
                continue
            seen.add(tuple(ends))
            glued = above if not trio.node.lead else None
            put = [self._list_put(facts[side][slice(*ends[side - 1])], side, glued) for side in SIDES]
            for each in chain(*put) if all(put) else ():
                each.contest(f"put where {trio.node.words!r} stood, by each side")

    def _find_gaps(self, base: Sequence[Trio], facts: Sequence[TreeNode]) -> list[tuple[int, int]]:
        """Return for each node of the base where its nearest kept neighbours end and begin on a side."""
        place = {self._trios[node]: number for number, node in enumerate(facts)}
        last, above = 0, []
        for trio in base:
            above.append(last)
            last = place.get(trio, last - 1) + 1
        last, below = len(facts), []
        for trio in reversed(base):
            last = place.get(trio, last)
            below.append(last)
        return list(zip(above, reversed(below), strict=True))

    def _list_put(self, nodes: Sequence[TreeNode], side: int, glued: Trio | None) -> list[Trio]:
        """Return what a side alone has among some nodes, with all in it, or as lines of `glued`."""
        found = []
        if glued and glued.nodes[side] and glued.on(side).words.startswith(f"{glued.on(0).words}\n"):
            found.append(glued)
        for trio in map(self._trio_of, nodes):
            if trio.nodes.base is None and trio.sides == [side]:
                top, around = trio, self._parent_of(trio.on(side))
                while around and around.nodes.base is None and around.sides == [side]:
                    top, around = around, self._parent_of(around.on(side))
                found.append(top)
        return found

    # -- where it stands ----------------------------------------------------------------------------------

    def _choose_parent(self, trio: Trio) -> Trio:
        base, ours, theirs = self._find_parents(trio)
        found = theirs or ours
        if base and ours and ours is not base and (theirs is base or self._is_lost(base) == [False, True]):
            found = ours
        if trio in self._pieces:
            found = self._pieces[trio].parent or found
        elif base is None and trio.node.kind in {"item", "row"}:
            found = self._follow_neighbours(trio, found)
        known = (each for each in (found, theirs, ours, base) if each and each.state != "gone")
        return next(known, None) or self._find_standing_parent(trio)

    def _follow_neighbours(self, trio: Trio, own: Trio | None) -> Trio | None:
        """Return where both neighbours of an addition to a list went, or one if the list is gone."""
        near = [known.get(trio.node) for known in (self._known_before, self._known_after)]
        parents = [each.parent for each in near if each and each.parent]
        is_one = len(parents) == len(near) and parents[0] is parents[1]
        return parents[0] if is_one or (parents and own and own.state == "gone") else own

    def _is_lost(self, parent: Trio) -> list[bool]:
        """Return for each side whether a parent is gone, so that its children moved by themselves."""
        return [parent.is_removed_by(side) for side in SIDES]

    def _is_moved_apart(self, trio: Trio) -> bool:
        base, ours, theirs = self._find_parents(trio)
        if trio.state == "gone" or not base or not ours or not theirs:
            return False
        lost = self._is_lost(base)
        return ours is not theirs and base not in (ours, theirs) and lost[0] == lost[1]

    def _find_standing_parent(self, trio: Trio) -> Trio:
        """Return the nearest thing above that stands, as the parent of a node that lost its own."""
        node: TreeNode | None = trio.node
        while node and (node is trio.node or self._trios[node].state == "gone"):
            before = self._before.get(node) if node.kind == "section" else None
            node = before or node.parent
        return self._trios[node] if node else self._all[0]

    def _sort_children(self, parent: Trio, children: Sequence[Trio]) -> list[Trio]:
        among = set(children)
        base, *sides = (
            [trio for trio in map(self._trio_of, node.children) if trio in among] if node else []
            for node in parent.nodes
        )
        if base == sides[0] == sides[1] and len(base) == len(children):
            return base
        common = set(base).intersection(*sides)
        orders = Versions(*([trio for trio in order if trio in common] for order in (base, *sides)))
        changed = [side for side in SIDES if orders[side] != orders.base]
        if parent.node.kind in {"list", "table"}:
            self._lists.append((children, bool(changed)))
        steady = self._merge_orders(parent, *orders)
        following: dict[Trio | None, Trio | None] = dict(pairwise([None, *steady, None]))
        waiting = [
            # What both added stands where the side has it that changed the order.
            (each, changed[0] if len(changed) == 1 and each.sides == list(SIDES) else side)
            for is_known in (True, False)
            for side in self._order
            for each in sorted(self._select_side(children, parent, side), key=lambda one: one.on(side).line)
            if bool(each.nodes.base) == is_known
        ]
        while waiting:
            left = [each for each in waiting if not self._insert_behind(*each, following, among)]
            if len(left) == len(waiting):  # each waits for another one
                self._insert_behind(*left.pop(0), following, following)
            waiting = left
        result: list[Trio] = []
        last = following[None]
        while last:
            result.append(last)
            last = following[last]
        return result

    def _merge_orders(
        self, parent: Trio, base: list[Trio], ours: list[Trio], theirs: list[Trio]
    ) -> list[Trio]:
        """Merge the orders of nodes that all versions have; the side counts that changed it."""
        agreed = Versions(base, ours, theirs).agreed()
        if agreed:
            return agreed[0]
        # Whichever side is judged as ours, the additions of theirs stand first.
        places = [{trio: number for number, trio in enumerate(order)} for order in (ours, theirs)]
        theirs_first = places[self._order[1] - 1]
        pairs = list(combinations(base, 2)) if len(base) <= _MOST_SORTED else []
        twice = [pair for pair in pairs if all(place[pair[1]] < place[pair[0]] for place in places)]
        named = {trio for pair in twice for trio in pair if trio.node.id}
        above: Counter[Trio] = Counter()
        for one, other in pairs:
            known = [theirs_first] if named & {one, other} else places
            above[one if any(place[other] < place[one] for place in known) else other] += 1
        found = sorted(base, key=above.__getitem__)
        is_sorted = all(above[trio] == number for number, trio in enumerate(found))
        if not is_sorted or not all(named.intersection(pair) for pair in twice):
            parent.contest("put in another order by each side")
        return found

    def _insert_behind(
        self, trio: Trio, side: int, following: dict[Trio | None, Trio | None], among: Container[Trio | None]
    ) -> bool:
        """Put a node behind the nearest one above it on a side; return whether that has its place."""
        if trio in following:
            return True
        own, whole = trio.on(side), self._pieces.get(trio)
        is_first = whole is not None and whole in following and own.line < whole.on(side).line
        if is_first and len(following) < _MOST_SORTED:
            above = next(each for each, below in following.items() if below is whole)
        else:
            above = self._find_standing_above(own, among)
        if above not in following:
            return False
        # What was cut from a node still goes before anything else behind it, and subsections before the next
        # section.
        while (below := following[above]) and (
            ((there := below.nodes[side]) and there.line < own.line)
            or (below.nodes.base is None and below.node.level > own.level > 0)
            or (self._pieces.get(below) is not None and self._pieces.get(below) is self._whole_of(above))
        ):
            above = below
        following[above], following[trio] = trio, following[above]
        return True

    def _whole_of(self, trio: Trio | None) -> Trio | None:
        return self._pieces.get(trio, trio) if trio else None

    def _find_standing_above(self, node: TreeNode, among: Container[Trio | None]) -> Trio | None:
        above = self._before.get(node)
        while above and self._trios[above] not in among:
            above = self._before.get(above)
        return self._trios[above] if above else None

    def _drop_empty_lists(self, trio: Trio) -> None:
        for child in trio.children:
            self._drop_empty_lists(child)
        trio.children = [
            child
            for child in trio.children
            if child.children or child.node.kind != "list" or child.state == "conflict"
        ]

    def _widen_conflicts(self, children: Sequence[Trio]) -> None:
        """Add to a conflict what the side that removed something wrote in its place."""
        for number, trio in enumerate(children):
            if trio.state != "conflict" or len(trio.sides) != 1 or trio.nodes.base is None:
                continue
            remover = 3 - trio.sides[0]
            beside: list[Trio] = []
            for near in (children[number + 1 :], children[:number][::-1]):
                rewritten = (self._is_rewritten(each, remover) for each in near)
                beside += [each for each, _ in takewhile(itemgetter(1), zip(near, rewritten, strict=True))]
            if any(each.nodes.base is None for each in beside):
                for each in beside:
                    each.contest(trio.why)

    def _contest_additions(self) -> None:
        """Make a conflict of nearly equal additions at one place, or about one thing in a list."""
        facts = [trio for trio in self._walk_standing(self._all[0]) if trio.node.head]
        for is_added, group in groupby(facts, _is_addition):
            run = list(group) if is_added else []
            found = self._find_alike(run)
            at = [number for number, each in enumerate(run) if each in found]
            for each in run[at[0] : at[-1] + 1] if at else ():
                each.contest(_ALIKE)
        for children, is_sorted in self._lists:
            # Where a side changed the order, the neighbours of an addition tell nothing.
            for each in self._find_alike(list(filter(_is_addition, children)), by_key=not is_sorted):
                each.contest(_ALIKE)

    def _find_alike(self, added: Sequence[Trio], *, by_key: bool = False) -> set[Trio]:
        """Return the additions that are nearly the same as one of the other side."""
        mine, yours = ([each for each in added if each.sides == [side]] for side in SIDES)
        parents = dict.fromkeys(trio.parent for trio in added if trio.parent and mine and yours)
        known = [(each, node) for each in parents if each.nodes.base for node in each.on(0).children]
        before = [_read_fact(self._trios[node], parent) for parent, node in known]
        facts, others = ([_read_fact(each, each.parent) for each in side] for side in (mine, yours))
        pairs = find_alike(facts, others, before, by_key=by_key)
        return {each for n, m in pairs for each in (mine[n], yours[m])}

    def _walk_standing(self, trio: Trio) -> Iterator[Trio]:
        yield trio
        for child in trio.children if trio.state == "stands" else ():
            yield from self._walk_standing(child)

    def _is_rewritten(self, trio: Trio, side: int) -> bool:
        """Return whether one side alone added or removed something that is no section."""
        is_own = trio.sides == [side] if trio.nodes.base is None else trio.is_removed_by(side)
        return is_own and trio.node.kind != "section"

    def _select_side(self, children: Iterable[Trio], parent: Trio, side: int) -> Iterator[Trio]:
        """Yield the children that a side has below `parent`, or that only this side has."""
        for trio in children:
            below = [each for each in trio.sides if self._parent_of(trio.on(each)) is parent]
            if side in (below or trio.sides):
                yield trio


def _is_addition(trio: Trio) -> bool:
    return trio.nodes.base is None and trio.state == "stands"


def _read_fact(trio: Trio, parent: Trio | None) -> PlacedFact:
    node, section = trio.node, parent
    words = _TAG.sub("", node.words) if node.kind == "html" else node.words
    if node.kind == "section":
        return PlacedFact(node.kind, node.source, node.words, parent, parent)
    while section and section.node.kind != "section":
        section = section.parent
    return PlacedFact(node.kind, words, "", parent, section)


def _shown_words(node: TreeNode) -> tuple[str, str]:
    """Return the kind and the words of a node; of a heading as a reader sees them."""
    return node.kind, plain(node.words) if node.kind == "section" else node.words


def list_marker(node: TreeNode) -> str:
    """Return what marks the items of a list, without numbers."""
    return node.children[0].marker.strip(" \t").lstrip("0123456789") if node.kind == "list" else ""


def _is_reworded(base: TreeNode, node: TreeNode) -> bool:
    return (base.kind, base.words, base.id, base.level) != (node.kind, node.words, node.id, node.level)


def _has_other_columns(base: TreeNode, node: TreeNode) -> bool:
    """Return whether a table has more or fewer columns, or one of them at another place."""
    old, new = base.words.split(" | "), node.words.split(" | ")
    return len(old) != len(new) or any(
        name in old and old[at] != name != "" for at, name in enumerate(new) if new.count(name) == 1
    )
