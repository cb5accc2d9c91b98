"""The trees of three versions joined into one: which nodes stand, below which parent, and in which order."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import combinations, pairwise, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from mdmem.merging.matching import Matching
from mdmem.text.diff import Versions, increasing

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence, Set as AbstractSet

    from mdmem.merging.tree import Tree, TreeNode

SIDES = (1, 2)
"""The places of ours and theirs in `Versions`."""


_MOST_SORTED = 500  # siblings whose order both sides changed


@dataclass(slots=True, eq=False)
class Trio:
    """One node in three versions, and what becomes of it.

    Attributes:
        nodes: the node in each version; None where it is not there.
        state: whether it stands, is gone, or is a conflict with all that is below it on either side.
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

    def is_removed_by(self, side: int) -> bool:
        """Return whether a side no longer has what was in the base."""
        return self.nodes.base is not None and self.nodes[side] is None


class Joined(NamedTuple):
    """The root of the result, and the trio of each node of the three trees.

    `is_whole` tells whether each node that stands, or is in conflict, is in the result as each side has it.
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

    def join(self) -> Joined:
        self._make_trios()
        for trio in self._all:
            self._decide_state(trio)
        self._keep_contexts()
        below: dict[Trio, list[Trio]] = defaultdict(list)
        for trio in self._all[1:]:
            if self._is_moved_apart(trio):
                trio.state, trio.why = "conflict", "moved to another place by each side"
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
        self._drop_empty_lists(self._all[0])
        shown = set(self._walk_shown(self._all[0]))
        kept = [trio for trio in self._all if trio.state != "gone" and trio.node.head]
        is_whole = all(trio.nodes[side] in shown for trio in kept for side in trio.sides)
        return Joined(self._all[0], self._trios, is_whole)

    def _walk_shown(self, trio: Trio) -> Iterator[TreeNode | None]:
        """Yield the nodes of either side that a result shows, in conflicts or as what they have become."""
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
        self._weak = (mine.weak, yours.weak)
        for node in base.nodes:
            self._add_trio(Versions(node, mine.partner(node), yours.partner(node)))
        added: dict[object, list[TreeNode]] = defaultdict(list)
        for node in theirs.nodes:
            if node not in self._trios:
                for key in ((node.id, ""), ("", node.label), (node.kind, node.words)):
                    added[key].append(node)
        for node in ours.nodes:
            if node not in self._trios:
                self._add_trio(Versions(None, node, self._find_twin(node, added)))
        for node in theirs.nodes:
            if node not in self._trios:
                self._add_trio(Versions(None, None, node))

    def _add_trio(self, nodes: Versions[TreeNode | None]) -> None:
        trio = Trio(nodes)
        self._all.append(trio)
        self._trios.update((node, trio) for node in nodes if node)

    def _find_twin(self, node: TreeNode, added: dict[object, list[TreeNode]]) -> TreeNode | None:
        """Return the node that theirs added as well."""
        named = (added[node.id, ""] if node.id else []) + (added["", node.label] if node.label else [])
        same = (each for each in added[node.kind, node.words] if self._is_same_addition(node, each))
        return next((each for each in (*named, *same) if each not in self._trios), None)

    def _is_same_addition(self, one: TreeNode, other: TreeNode) -> bool:
        """Return whether both sides added one thing: the same words, list or section in one place."""
        if other in self._trios or not other.parent or not one.parent:
            return False
        if self._trios.get(other.parent) is not self._trios[one.parent]:
            return False
        if one.kind in {"item", "row"}:
            return True
        # Of two runs of blocks that differ, a block is not taken out because the other has it as well.
        before, after = self._before.get(one), self._before.get(other)
        is_behind_same = (before and self._trios[before]) is (after and self._trios.get(after, after))
        return is_behind_same and one.level == other.level and _list_marker(one) == _list_marker(other)

    # -- what stands --------------------------------------------------------------------------------------

    def _decide_state(self, trio: Trio) -> None:
        base, ours, theirs = trio.nodes
        if base is None or (ours and theirs):
            if base and base.kind == "table" and self._has_columns_conflict(trio):
                why = "its columns were changed by one side, its rows by the other"
                trio.state, trio.why = "conflict", why
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
                    trio.state, trio.why = (
                        "conflict",
                        _describe_sides("replaced by {}, moved or added to by {}", side),
                    )
        elif not ours and not theirs:
            trio.state = "gone"
        else:
            (side,) = trio.sides
            trio.state = "conflict" if self._is_changed(trio, side) else "gone"
            trio.why = _describe_sides("removed by {}, changed by {}", 3 - side)

    def _is_replaced(self, trio: Trio, side: int) -> bool:
        """Return whether a side has something else in the place of a node, and of all that was in it."""
        base = trio.nodes.base
        if base is None or base not in self._weak[side - 1]:
            return False
        return not any(self._trios[child].nodes[side] for child in base.children)

    def _is_changed(self, trio: Trio, side: int) -> bool:
        """Return whether a side changed a node that the other removed."""
        is_moved = self._is_moved(trio, side) and not trio.node.id  # an id that is moved and removed is gone
        if is_moved or _is_reworded(trio.on(0), trio.on(side)):
            return True
        return self._is_changed_below(trio, side)

    def _is_changed_below(self, trio: Trio, side: int) -> bool:
        """Return whether a side changed what is in a node that the other removed."""
        node, base, other = trio.on(side), trio.on(0), 3 - side
        if any(self._trios[child].nodes[other] for child in base.children):
            return False  # the other side took only the node from around them
        for below in self._walk_below(node):
            each = self._trios[below]
            if each.nodes.base is None or self._is_moved(each, side):
                return True
            if not each.nodes[other] and _is_reworded(each.nodes.base, below):
                return True
        return False

    def _walk_below(self, node: TreeNode) -> Iterator[TreeNode]:
        nodes = node.walk()
        next(nodes)
        return nodes

    def _is_moved(self, trio: Trio, side: int) -> bool:
        """Return whether a side moved a node to another place that existed."""
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
        """Make a conflict of what one side added to things that the other removed."""
        for trio in self._all:
            if trio.nodes.base or len(trio.sides) != 1 or trio.state != "stands":
                continue
            (side,) = trio.sides
            node, other = trio.on(side), 3 - side
            whole = self._parent_of(node) or trio
            if whole.node.kind == "list" and self._is_rewritten_list(whole, other):
                whole.state, whole.why = "conflict", _describe_sides("rewritten by {}, added to by {}", other)

    def _is_rewritten_list(self, trio: Trio, side: int) -> bool:
        base = trio.nodes.base
        if not base or not trio.nodes[side]:
            return False
        return all(self._trios[item].is_removed_by(side) for item in base.children)

    # -- where it stands ----------------------------------------------------------------------------------

    def _choose_parent(self, trio: Trio) -> Trio:
        base, ours, theirs = self._find_parents(trio)
        found = theirs or ours
        if base and ours and ours is not base and (theirs is base or self._is_lost(base) == [False, True]):
            found = ours
        if len(trio.sides) == 1 and not trio.nodes.base:
            found = self._follow_neighbour(trio, found)
        known = (each for each in (found, theirs, ours, base) if each and each.state != "gone")
        return next(known, None) or self._find_standing_parent(trio)

    def _is_lost(self, parent: Trio) -> list[bool]:
        """For each side, whether a parent is gone, so that what was in it came elsewhere by itself."""
        return [parent.is_removed_by(side) for side in SIDES]

    def _is_moved_apart(self, trio: Trio) -> bool:
        """Return whether both sides moved a node, each to another place."""
        base, ours, theirs = self._find_parents(trio)
        if trio.state == "gone" or not base or not ours or not theirs:
            return False
        lost = self._is_lost(base)
        return ours is not theirs and base not in (ours, theirs) and lost[0] == lost[1]

    def _follow_neighbour(self, trio: Trio, parent: Trio | None) -> Trio | None:
        """Return the parent of what one side added behind a node that the other took to another place."""
        before = self._before.get(trio.on(trio.sides[0]))
        while before and self._trios[before].state == "gone":
            before = self._before.get(before)
        behind = before and self._trios[before].parent
        if not behind or not parent or _place_of(behind.node) != _place_of(parent.node):
            return parent
        return behind if behind.nodes.base is None or parent.state == "gone" else parent

    def _find_standing_parent(self, trio: Trio) -> Trio:
        """Return the nearest thing above that stands, in which a node can stand whose parent is gone."""
        node: TreeNode | None = trio.node
        while node and (node is trio.node or self._trios[node].state == "gone"):
            before = self._before.get(node) if node.kind == "section" else None
            node = before or node.parent
        return self._trios[node] if node else self._all[0]

    def _sort_children(self, parent: Trio, children: Sequence[Trio]) -> list[Trio]:
        among = set(children)
        base, *sides = (self._select_among(node.children, among) if node else [] for node in parent.nodes)
        if base == sides[0] == sides[1] and len(base) == len(children):
            return base
        common = set(base).intersection(*sides)
        steady = self._merge_orders(parent, *([t for t in order if t in common] for order in (base, *sides)))
        following: dict[Trio | None, Trio | None] = dict(pairwise([None, *steady, None]))
        waiting = [
            (each, side)
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
        """Merge the orders of nodes that all versions have; of two, the side counts that changed it."""
        agreed = Versions(base, ours, theirs).agreed()
        if agreed:
            return agreed[0]
        both = set.intersection(*_find_moved_by_both(base, (ours, theirs)))
        mine, yours = ({trio: number for number, trio in enumerate(order)} for order in (ours, theirs))
        above: Counter[Trio] = Counter()
        for one, other in combinations(base, 2) if len(base) <= _MOST_SORTED else ():
            is_first = yours[one] < yours[other]
            if not both & {one, other}:
                is_first &= mine[one] < mine[other]
            above[other if is_first else one] += 1
        found = sorted(base, key=above.__getitem__)
        if any(above[trio] != number for number, trio in enumerate(found)) or any(
            not t.node.id for t in both
        ):
            parent.state, parent.why = "conflict", "put in another order by each side"
        return found

    def _insert_behind(
        self, trio: Trio, side: int, following: dict[Trio | None, Trio | None], among: Container[Trio | None]
    ) -> bool:
        """Put a node behind the nearest one of some that a side has above it, once that has its place."""
        if trio in following:
            return True
        own = trio.on(side)
        above = self._find_standing_above(own, among)
        if above not in following:
            return False
        while (below := following[above]) and (there := below.nodes[side]) and there.line < own.line:
            above = below
        following[above], following[trio] = trio, following[above]
        return True

    def _find_standing_above(self, node: TreeNode, among: Container[Trio | None]) -> Trio | None:
        """Return the nearest sibling before a node that is among some."""
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
        """Put what a side wrote in the place of what it removed into the conflict about that."""
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
                    each.state, each.why = "conflict", trio.why

    def _is_rewritten(self, trio: Trio, side: int) -> bool:
        """Return whether only one side has, or no longer has, something that is no section."""
        is_own = trio.sides == [side] if trio.nodes.base is None else trio.is_removed_by(side)
        return is_own and trio.node.kind != "section"

    def _select_side(self, children: Iterable[Trio], parent: Trio, side: int) -> Iterator[Trio]:
        """Yield those of some children that a side has below `parent`, or whose place it alone knows."""
        for trio in children:
            below = [each for each in trio.sides if self._parent_of(trio.on(each)) is parent]
            if side in (below or trio.sides):
                yield trio

    def _select_among(self, nodes: Iterable[TreeNode], among: set[Trio]) -> list[Trio]:
        return [trio for trio in map(self._trio_of, nodes) if trio in among]


def _find_moved_by_both(base: Sequence[Trio], sides: Sequence[Sequence[Trio]]) -> list[set[Trio]]:
    """Return what each side has in another order than the base.

    Of several ways to tell, the one with fewest.
    """
    ours, theirs = (_find_moved(base, side) for side in sides)
    ways = [
        [ours, theirs],
        [ours, _find_moved(base, sides[1], ours)],
        [_find_moved(base, sides[0], theirs), theirs],
    ]
    return min(ways, key=lambda way: len(way[0] | way[1]))


def _find_moved(
    base: Sequence[Trio], side: Sequence[Trio], rather: AbstractSet[Trio] = frozenset()
) -> set[Trio]:
    """Return what a side has in another order than the base, those of `rather` before others."""
    place = {trio: number for number, trio in enumerate(base)}
    there = [trio for trio in side if trio in place]
    steady = [trio for trio in there if trio not in rather]
    kept = {steady[at] for at in increasing([place[trio] for trio in steady])}
    for trio in rather:
        numbers = [place[each] for each in there if each in kept or each is trio]
        if trio in place and numbers == sorted(numbers):
            kept.add(trio)
    return {trio for trio in there if trio not in kept}


def _place_of(node: TreeNode) -> tuple[str, int]:
    """Return what a node is, and how deep it stands."""
    depth, around = 0, node.parent
    while around:
        depth, around = depth + 1, around.parent
    return node.kind, depth


def _describe_sides(what: str, side: int) -> str:
    """Return a sentence about what a side and then the other one did."""
    return what.format(*(("", "ours", "theirs")[each] for each in (side, 3 - side)))


def _list_marker(node: TreeNode) -> str:
    """Return what marks the items of a list, without numbers."""
    return node.children[0].marker.strip(" \t").lstrip("0123456789") if node.kind == "list" else ""


def _is_reworded(base: TreeNode, node: TreeNode) -> bool:
    return (base.kind, base.words, base.id, base.level) != (node.kind, node.words, node.id, node.level)


def _has_other_columns(base: TreeNode, node: TreeNode) -> bool:
    """Return whether a table has more or fewer columns, or the same in another order."""
    old, new = base.words.split(" | "), node.words.split(" | ")
    return len(old) != len(new) or (old != new and sorted(old) == sorted(new))
