"""Settings files as people write them: plain JSON in all its layouts, TOML in all its forms."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import strategies as st

_LINE_ENDS = ["\n", "\r\n"]
_NAMES = st.sampled_from(["a", "b c", "mcpServers", "hooks", "ü", 'q"', "//", "/*", "other", "mdmem2"])
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from(["", "x", '"', "\\", "// no", "/* no */", ",}"]),
)


@st.composite
def _blank(draw: st.DrawFn, newline: str) -> str:
    pieces = ["", " ", "\t", newline, f"{newline}    "]
    return "".join(draw(st.lists(st.sampled_from(pieces), max_size=2)))


@st.composite
def _json(draw: st.DrawFn, value: Any, newline: str) -> str:
    def blank() -> str:
        return draw(_blank(newline))

    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    items = value.items() if isinstance(value, dict) else [(None, item) for item in value]
    parts = []
    for key, item in items:
        name = "" if key is None else f"{json.dumps(key)}{blank()}:{blank()}"
        parts.append(f"{blank()}{name}{draw(_json(item, newline))}{blank()}")
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}{','.join(parts)}{blank()}{closing}"


_SERVERS = st.dictionaries(
    st.sampled_from(["git", "fetch", "mdmem-old"]), st.just({"command": "x", "args": []})
)
_GROUPS = st.lists(
    st.just({"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}), max_size=2
)
_HOOKS = st.dictionaries(st.sampled_from(["Stop", "PreToolUse", "PostToolUse"]), _GROUPS, max_size=3)
_VALUES = st.recursive(
    _SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(_NAMES, below, max_size=3)
)


@st.composite
def plain_json(draw: st.DrawFn) -> str:
    """The text of a JSON settings file."""
    value: dict[str, Any] = draw(st.dictionaries(_NAMES, _VALUES, max_size=3))
    for key, values in (("mcpServers", _SERVERS), ("hooks", _HOOKS)):
        value.pop(key, None)
        if draw(st.booleans()):
            value[key] = draw(values)
    newline = draw(st.sampled_from(_LINE_ENDS))
    if draw(st.integers(0, 4)) == 0:
        indent: Any = draw(st.sampled_from([2, 4, "\t"]))
        text = json.dumps(value, indent=indent).replace("\n", newline)
    else:
        text = draw(_json(value, newline))
    begin, end = (draw(_blank(newline)) for _ in range(2))
    return draw(st.sampled_from(["", "\ufeff"])) + begin + text + end


_LINES = [
    *("# a comment", "", "  ", 'title = "x"  # behind', "a.b = 1", "date = 2020-01-01T00:00:00Z"),
    *("list = [\n  1, # one\n  2,\n]", 'text = """\n[mcp_servers.mdmem]\n"""'),
    *("raw = '''\n[[hooks.Stop]]\n'''", "inline = { a = 1, b = [2] }", "[table]", "[ table . 'sub' ]"),
    *("[mcp_servers.git]", 'command = "git"', "[mcp_servers]"),
    *('[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = "true"', "[[hooks.PreToolUse]]  # nothing yet"),
    *("[[other]]", "[hooks.state]"),
]


@st.composite
def toml(draw: st.DrawFn) -> str:
    """The text of a TOML settings file."""
    newline = draw(st.sampled_from(_LINE_ENDS))
    text = ""
    for line in draw(st.lists(st.sampled_from(_LINES), max_size=12)):
        longer = f"{text}{line}\n"
        try:
            tomllib.loads(longer)
        except tomllib.TOMLDecodeError:
            continue
        text = longer
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    return draw(st.sampled_from(["", "\ufeff"])) + text.replace("\n", newline)
