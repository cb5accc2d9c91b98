"""Exact edits inside brackets: JSON, and flow collections (`[a, b]`, `{a: 1}`) of YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from mdmem.errors import EditRefused
from mdmem.text import yaml_write
from mdmem.text.edit import TextEdit
from mdmem.text.layout import Layout, parts
from mdmem.text.lines import LINE_END
from mdmem.text.regex import regex
from mdmem.text.tree import Node

_COLON = regex(r"[ \t]*:")
_COMMA = regex(r"(?:[ \t\r\n]|#[^\r\n]*+)*+,")
_COMMENT_AHEAD = regex(r"[ \t]+#")


class FlowEdit(Layout):
    """Computes edits of one document's bracketed collections; style and indentation follow the siblings."""

    def replace(self, container: Node, index: int, value: Any) -> list[TextEdit]:
        """Write `value` in place of the value at `index` of `container`."""
        node = parts(container)[index]
        start, end = node.span
        if start < end:
            alone = self.begins_line(_starts(container)[index])
            return [TextEdit(start, end, self._replacement(node, value, alone=alone))]
        key_end = container.members[index].key_span.end
        colon = _COLON.match(self.text, key_end)
        at, mark = (colon.end(), " ") if colon else (key_end, ": ")
        return [TextEdit(at, at, mark + yaml_write.inline(value))]

    def insert(self, container: Node, after: int, new: Sequence[tuple[str, Any]]) -> list[TextEdit]:
        """Write new members, or items (whose names do not count), behind the one at index `after`.

        Args:
            container: the list or mapping.
            after: the index; -1 is the beginning.
            new: names and values.
        """
        opening, closing = self._brackets(container)
        if not parts(container):
            return self._fill(container, opening, closing, new)
        start = _starts(container)[max(after, 0)]
        alone, base = self.begins_line(start), self.indent(start)
        gap = self.lines.newline + base if alone else self._comma[1:]
        written = [self._part(container, *part, alone=alone, base=base) for part in new]
        if after < 0:
            return [TextEdit(start, start, "".join(f"{part},{gap}" for part in written))]
        at = parts(container)[after].span.end
        if after + 1 < len(parts(container)):
            return [TextEdit(at, at, "".join(f",{gap}{part}" for part in written))]
        return self._append(at, gap, alone=alone, written=written)

    def remove(self, container: Node, first: int, last: int) -> list[TextEdit]:
        """Take away the members or items from index `first` to `last`; comments between them stay."""
        opening, closing = self._brackets(container)
        starts, ends = _starts(container), [node.span.end for node in parts(container)]
        before = ends[first - 1] if first else opening + 1
        behind = starts[last + 1] if last + 1 < len(starts) else closing
        if self._has_comment(container, before, behind, first, last):
            return [
                edit
                for index in range(first, last + 1)
                for edit in self._remove_beside_comment(container, index)
            ]
        if last + 1 < len(starts):
            return [TextEdit(starts[first], behind, "")]
        return [TextEdit(before, closing if not first else ends[last], "")]

    # ------------------------------------------------------------------------------------------ writing

    def _replacement(self, node: Node, value: Any, *, alone: bool) -> str:
        if not self.document.is_json:
            is_text = isinstance(value, str) and node.kind == "scalar"
            return yaml_write.scalar(value, node.style, flow=True) if is_text else yaml_write.inline(value)
        spread = not self._in_line(node) if parts(node) else alone
        return self._json(value, spread=spread, base=self.indent(node.span.start))

    def _part(self, container: Node, name: str, value: Any, *, alone: bool, base: str) -> str:
        listed = container.kind == "list"
        if self.document.is_json:
            # Lists and objects beside it that stand in one line each are followed.
            in_line = any(type(n.value) is type(value) and self._in_line(n) for n in parts(container))
            written = self._json(value, spread=alone and not in_line, base=base)
            return written if listed else json.dumps(name, ensure_ascii=False) + self._colon + written
        written = yaml_write.inline(value)
        return written if listed else f"{yaml_write.key(name, flow=True)}: {written}"

    def _json(self, value: Any, *, spread: bool, base: str) -> str:
        if not spread or not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=False, separators=(self._comma, self._colon))
        text = json.dumps(value, ensure_ascii=False, indent=self._unit, separators=(",", self._colon))
        return text.replace("\n", self.lines.newline + base)

    def _fill(
        self, container: Node, opening: int, closing: int, new: Sequence[tuple[str, Any]]
    ) -> list[TextEdit]:
        base = self.indent(opening)
        spread = self.document.is_json and (container is self.document.tree or self._is_spread)
        inner = base + self._unit
        written = [self._part(container, *part, alone=spread, base=inner) for part in new]
        if not spread:
            return [TextEdit(opening + 1, opening + 1, self._comma.join(written))]
        newline = self.lines.newline
        lines = f",{newline}{inner}".join(written)
        return [TextEdit(opening + 1, closing, f"{newline}{inner}{lines}{newline}{base}")]

    def _append(self, at: int, gap: str, *, alone: bool, written: list[str]) -> list[TextEdit]:
        comma = None if self.document.is_json else _COMMA.match(self.text, at)
        after_comma = comma.end() if comma else at
        place = after_comma
        if alone and _COMMENT_AHEAD.match(self.text, after_comma):
            place = self.content_end(after_comma)
        if comma:
            return [TextEdit(place, place, "".join(f"{gap}{part}," for part in written))]
        if place == at:
            return [TextEdit(at, at, "".join(f",{gap}{part}" for part in written))]
        # The comment behind the last value stays with it: the comma goes before it, the rest behind.
        return [TextEdit(at, at, ","), TextEdit(place, place, gap + f",{gap}".join(written))]

    # ----------------------------------------------------------------------------------------- removing

    def _has_comment(self, container: Node, before: int, behind: int, first: int, last: int) -> bool:
        if self.document.is_json:
            return False
        bounds = [before]
        for start, node in list(zip(_starts(container), parts(container), strict=True))[first : last + 1]:
            bounds += [start, node.span.end]
        bounds.append(behind)
        return any("#" in self.text[s:e] for s, e in zip(bounds[::2], bounds[1::2], strict=True))

    def _remove_beside_comment(self, container: Node, index: int) -> list[TextEdit]:
        start, end = _starts(container)[index], parts(container)[index].span.end
        comma = _COMMA.match(self.text, end)
        gone = [TextEdit(start, end, "")]
        if comma:
            gone.append(TextEdit(comma.end() - 1, comma.end(), ""))
        reached = gone[-1].end
        if self.begins_line(start) and (not comma or comma.end() == end + 1):
            line_end = self.content_end(reached)
            rest = self.text[reached:line_end].strip(" \t")
            if not rest or rest.startswith("#"):
                following = self.following_line(reached)
                return [TextEdit(self.line_start(start), following, "")]
        return gone

    # --------------------------------------------------------------------------------------- what stands

    def _brackets(self, container: Node) -> tuple[int, int]:
        pair = "[]" if container.kind == "list" else "{}"
        start, end = container.span
        opening = self.text.find(pair[0], start, end) if container.anchored else start
        if opening < 0 or self.text[opening] != pair[0] or self.text[end - 1] != pair[1]:
            line = self.lines.number(start)
            reason = f"line {line}: a pair without braces in a list cannot be edited exactly"
            raise EditRefused(path=self.document.path, reason=reason, remedy="write it as {key: value}")
        return opening, end - 1

    def _in_line(self, node: Node) -> bool:
        """Whether a collection that is not empty stands in one line."""
        return bool(parts(node)) and not LINE_END.search(self.text, *node.span)

    @cached_property
    def _colon(self) -> str:
        tree = self.document.tree
        first = next((member for _, member in tree.walk()), None) if tree else None
        if not self.document.is_json or first is None:
            return ": "
        written = self.text[first.key_span.end : first.node.span.start]
        return written if not LINE_END.search(written) else ": "

    @cached_property
    def _comma(self) -> str:
        if not self.document.is_json:
            return ", "
        for container in _containers(self.document.tree):
            starts = _starts(container)
            if len(starts) > 1 and not self.begins_line(starts[1]):
                gap = self.text[parts(container)[0].span.end : starts[1]]
                return gap if gap.startswith(",") and not LINE_END.search(gap) else ", "
        return "," if self._colon.endswith(":") else ", "

    @cached_property
    def _is_spread(self) -> bool:
        """Whether the JSON is written with a line for each member."""
        return any(self.begins_line(_starts(c)[0]) for c in _containers(self.document.tree) if parts(c))

    @cached_property
    def _unit(self) -> str:
        """What one level of the JSON's indentation is."""
        for container in _containers(self.document.tree):
            if parts(container) and self.begins_line(_starts(container)[0]):
                outer, inner = self.indent(container.span.start), self.indent(_starts(container)[0])
                if inner.startswith(outer) and inner != outer:
                    return inner.removeprefix(outer)
        return "  "


def _starts(container: Node) -> list[int]:
    if container.kind == "mapping":
        return [m.key_span.start for m in container.members]
    return [item.span.start for item in container.items]


def _containers(node: Node | None) -> Iterator[Node]:
    if node and node.kind in ("mapping", "list"):
        yield node
        for below in parts(node):
            yield from _containers(below)
