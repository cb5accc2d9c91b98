"""What stands in the JSON of a message: its words, its calls of tools and what answers them, and its size.

No program's messages are known by heart. A *part* is the message itself, or an object in one of its fields.
Its type says what it is, or the field that it stands in: `custom_tool_call` and `functionCall` call,
`mcp_tool_result` and `functionResponse` answer. Two parts are a pair where one has the id that the other
refers to (`call_id`, `tool_use_id`), whatever they are called. All else is JSON, and counts as such.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import abridged, estimate, gap
from mdmem.document.tree import encoded

TOOLS = ("tool", "function")
"""The roles of tools."""
_PLAIN = frozenset(("role", "content", "id", "name", "created_at", "model", "model_name", "mdmem"))
_OBJECT = (dict, Mapping)  # what is read is the one, and is known at once
_ATTACHED = ("media", "attachments")
# The fields that say what a part is, and nothing that was said.
_FORM = frozenset(
    (
        *("type", "id", "role", "status", "created_at", "model", "model_name", "usage", "metadata"),
        *("stop_reason", "stop_sequence", "finish_reason", "cache_control", "signature", "thoughtSignature"),
    )
)
_ASKED = frozenset(("arguments", "input", "args", "action", "parameters"))  # what a tool is asked
_DATA = _ASKED | {"response", "result", "results", "metadata"}  # values in which no object is a part
_READ = frozenset(("content", "text", "output"))  # texts that a model reads, whatever they look like
_ENCRYPTED = regex(r"(?i)signature|encrypted")  # fields of base64 that is no file
_NEVER_CUT = regex(r"(?:\A|_)(?:id|url|uri|name)\Z|[a-z](?:Id|Url|Uri)\Z")
_DATA_URL = regex(r"data:[^,]{0,200};base64,")
# In one line or in lines, with capitals, small letters and digits.
_BASE64 = regex(
    r"(?=[^A-Z]*+[A-Z])(?=[^a-z]*+[a-z])(?=[^0-9]*+[0-9])"
    r"(?:[A-Za-z0-9_+/-]{60,}+={0,2}\s++)*+[A-Za-z0-9_+/-]*+={0,2}\s*+\Z"
)
_LEAST_BASE64 = 256  # characters
_TOKENS_OF_MEDIA, _BETWEEN = 256, 2  # of a picture or file; between two messages
_ITEMS = (10**6, 300, 100, 30, 10, 3, 1, 0)  # how many elements a list that is cut may keep
_JSON = json.JSONEncoder(ensure_ascii=False, default=dict).encode

Kind = Literal["call", "answer", ""]


class ToolCall(NamedTuple):
    """A call of a tool: its id, the tool's name, and its arguments as JSON."""

    id: str
    name: str
    arguments: str


class ToolAnswer(NamedTuple):
    """What a tool answered: the id of the call, and the text."""

    id: str
    text: str


class Half(NamedTuple):
    """A part that may have another half.

    Attributes:
        kind: which of the two it is; empty where only their order tells.
        ids: by which the other one is found; an empty one where the program gives none.
        refers: whether it names the id of another part.
        is_needed: whether it means nothing without its other half.
    """

    kind: Kind
    ids: tuple[str, ...]
    refers: bool
    is_needed: bool

    @property
    def waits(self) -> bool:
        """Return whether the other half is looked for."""
        return self.refers or self.is_needed or self.kind == "answer"


class _Name(NamedTuple):
    """What the name of a field or a type tells about its value."""

    is_call: bool
    is_answer: bool
    is_tools: bool
    is_link: bool
    is_reasoning: bool
    is_media: bool


# Of the fields of `_Name`, in their order.
_NAMES = (
    regex(r"(?i)(?:calls?|use)\Z"),
    regex(r"(?i)(?:output|result|response)s?\Z"),
    # Parts that need their other half, whether they have an id or not.
    regex(r"(?i)(?:function|tool|shell)[_-]?(?:call[_-]?)?(?:call|use|output|result|response)s?\Z"),
    regex(r"(?i)(?:\A|_|tool|function)(?:call|use|tool|approval_request)_?id\Z"),
    regex(r"(?i)\A(?:redacted_)?(?:thinking|reasoning|thought)"),
    regex(
        r"(?i)(?:\A|[_-])(?:image|audio|video|document|media|screenshot|file|inline)s?(?:[_-]?url|_?data)?\Z"
    ),
)
_LONGEST_NAME = 100  # characters of a name that says anything


@lru_cache(maxsize=1_024)  # programs use the same few in each message
def _classify_short(name: str) -> _Name:
    return _Name(*(bool(pattern.search(name)) for pattern in _NAMES))


def _classify_name(name: str) -> _Name:
    return _classify_short(name if len(name) <= _LONGEST_NAME else "")


class MessagePart(NamedTuple):
    """A message, or an object in it: what it is called, its fields, and whether it calls or answers."""

    name: str
    data: Mapping[str, Any]
    kind: Kind = ""

    @property
    def links(self) -> tuple[str, ...]:
        """The ids of other parts that it names."""
        return tuple(
            [str(each) for name, each in self.data.items() if _classify_name(name).is_link and _is_id(each)]
        )

    @property
    def id(self) -> str:
        """By which its other half is found; empty without one."""
        own = self.data.get("id")
        return next(iter(self.links), str(own) if _is_id(own) else "")

    @property
    def half(self) -> Half | None:
        """What it is to another part; None where it is nothing to any."""
        links, own = self.links, self.data.get("id")
        is_needed = bool(self.kind and (links or _classify_name(self.name).is_tools))
        ids = (*links, str(own)) if _is_id(own) and not (links and self.kind == "answer") else links
        return Half(self.kind, ids or ("",), bool(links), is_needed) if ids or is_needed else None

    @property
    def _call_fields(self) -> Mapping[str, Any]:
        """What has the name and the arguments of a call: that of chat completions has an object for them."""
        objects = (
            each for name, each in self.data.items() if name not in _DATA and isinstance(each, _OBJECT)
        )
        return next((each for each in (self.data, *objects) if "name" in each), self.data)

    @property
    def said(self) -> Mapping[str, Any]:
        """Its fields without those that say what it is."""
        data = self._call_fields if self.kind == "call" else self.data
        return {
            name: each
            for name, each in data.items()
            if name not in _FORM and name != "name" and not _classify_name(name).is_link
        }

    @property
    def call(self) -> ToolCall:
        """The call that it is."""
        name = self._call_fields.get("name")
        said = [*self.said.values()]
        asked = said[0] if len(said) == 1 else self.said if said else None
        return ToolCall(self.id, name if isinstance(name, str) else self.name, _write_argument(asked))

    @property
    def answer(self) -> ToolAnswer:
        """The answer that it is."""
        return ToolAnswer(self.id, "\n".join(filter(None, map(_write_value, self.said.values()))))


def _is_id(value: Any) -> bool:
    return type(value) in {str, int} and value != ""


def _name_type(value: Any, field: str) -> str:
    said = value.get("type") if isinstance(value, _OBJECT) else None
    return said if isinstance(said, str) else field


def _make_part(data: Mapping[str, Any], field: str = "") -> MessagePart:
    name = field if _classify_name(field).is_tools else _name_type(data, "")  # `result` alone may be anything
    kind: Kind = (
        "call" if _classify_name(name).is_call else "answer" if _classify_name(name).is_answer else ""
    )
    return MessagePart(name, data, kind)


def parts(data: Mapping[str, Any]) -> list[MessagePart]:
    """Return the message, and the objects in its fields; of one that calls or answers itself, only that."""
    whole = _make_part(data)
    is_item = "role" not in data or bool(whole.half and whole.half.is_needed)
    if is_item and (whole.kind or is_reasoning(data)):
        return [whole]
    found = [part for name, each in data.items() if name not in _DATA for part in _find_parts(each, name)]
    has_answer = any(part.kind == "answer" for part in found)
    if "tool_call_id" in data or (data.get("role") in TOOLS and not has_answer):
        return [MessagePart("tool_result", data, "answer")]
    return [whole._replace(kind=""), *found]


def _find_parts(value: Any, field: str) -> Iterator[MessagePart]:
    """Yield the parts in a field; of an object without a type, such as `{"functionCall": …}`, those in it."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, _OBJECT):
            inner = [] if "type" in each else [name for name in each if _classify_name(name).is_tools]
            own = [_make_part(each[name], name) for name in inner if isinstance(each[name], _OBJECT)]
            yield from own or [_make_part(each, field)]


def is_reasoning(value: Any, field: str = "") -> bool:
    """Return whether an object, or what stands in a field, is what a model thought."""
    is_thought = isinstance(value, _OBJECT) and value.get("thought") is True
    return is_thought or _classify_name(_name_type(value, field)).is_reasoning


def _is_media(value: Any, field: str) -> bool:
    return isinstance(value, _OBJECT) and _classify_name(_name_type(value, field)).is_media


def _is_base64(text: str, field: str) -> bool:
    if field in _READ:
        return False
    return bool(_DATA_URL.match(text) or (len(text) >= _LEAST_BASE64 and _BASE64.match(text)))


# -- in words ---------------------------------------------------------------------------------------------


def text_of(data: Mapping[str, Any]) -> str:
    """Write a message in words for a reader, without reasoning."""
    return data["content"] if is_plain(data) else "\n".join(filter(None, _write_parts(data)))


def _write_parts(data: Mapping[str, Any]) -> Iterator[str]:
    whole = parts(data)[0]
    if whole.kind or "role" not in data:
        yield _write_part(whole) if whole.kind else _write_value(data)
        return
    for name, value in data.items():
        if name in {"content", "refusal"} or (name not in _FORM and isinstance(value, list | Mapping)):
            yield _write_value(value, name)


def _write_value(value: Any, field: str = "") -> str:
    """Return a value in words: text as it is, parts by what they are, all else as JSON without base64."""
    if isinstance(value, list):
        return "\n".join(filter(None, (_write_value(each, field) for each in value)))
    if field in _ATTACHED and value is not None:
        return f"[media: {_write_argument(value)}]"
    if not isinstance(value, _OBJECT):
        return "" if value is None or isinstance(value, bool) else str(value)
    written = "\n".join(_write_part(part) for part in _find_parts(value, field) if part.kind)
    text = value.get("text", value.get("refusal"))
    if written or isinstance(text, str) or is_reasoning(value, field):
        return "" if is_reasoning(value, field) else written or str(text)
    if _is_media(value, field):
        return f"[media: {next(leaves(value, field), value.get('type', field))}]"
    return _write_argument(value)


def _write_part(part: MessagePart) -> str:
    if part.kind == "call":
        _, name, arguments = part.call
        return f"[tool_use: {name}, args: {arguments}]"
    return f"[tool_result for {part.id}: {part.answer.text}]"


def _write_argument(value: Any) -> str:
    bare = _strip_base64(value, "text", [], is_part=False)
    return "" if bare is None else bare if isinstance(bare, str) else encoded(bare)


def leaves(
    value: Any,
    field: str = "",
    *,
    thoughts: bool | None = False,
    is_part: bool = True,
    is_named: bool = False,
) -> Iterator[str]:
    """Yield the texts and numbers of a message by which it is found, without base64.

    Args:
        value: the message, or a value in it.
        field: in which the value stands.
        thoughts: give what a model thought instead, which is left out else; None gives all.
        is_part: whether objects in it may be parts.
        is_named: give the names of fields as well.
    """
    if is_part and thoughts is not None and is_reasoning(value, field):
        if not thoughts:
            return
        thoughts = None
    if isinstance(value, _OBJECT):
        # In an object without a type an id is as good as any text.
        is_form = is_part and (not field or "type" in value)
        is_said = not field and "role" in value and value["role"] not in TOOLS
        for name, each in value.items():
            if is_form and (name in _FORM or _classify_name(name).is_link or (is_said and name == "name")):
                continue
            if is_named and not thoughts:
                yield name
            asked, inner = is_part and name in _ASKED, is_part and name not in _DATA
            yield from leaves(each, name, thoughts=thoughts, is_part=inner, is_named=is_named or asked)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each, field, thoughts=thoughts, is_part=is_part, is_named=is_named)
    elif not thoughts and type(value) in {str, int, float} and not _is_base64(str(value), field):
        yield str(value)


# -- in tokens --------------------------------------------------------------------------------------------


def tokens(data: Mapping[str, Any]) -> int:
    """Estimate the tokens that a message takes in a prompt: never fewer than its JSON without base64."""
    media: list[Any] = []
    written = _JSON(data if is_plain(data) else _strip_base64(data, "", media, is_part=True))
    return estimate(written) + _BETWEEN + len(media) * _TOKENS_OF_MEDIA


def tokens_of_text(value: Any) -> int:
    """Estimate the tokens that a value takes as JSON."""
    return estimate(_JSON(value))


def is_plain(data: Mapping[str, Any]) -> bool:
    """Return whether a message is only a content of words, as most messages are."""
    return isinstance(data.get("content"), str) and data.keys() <= _PLAIN and data.get("role") not in TOOLS


def _strip_base64(value: Any, field: str, media: list[Any], *, is_part: bool) -> Any:
    """Return a value without base64; each picture or file in it is added to `media`."""
    if isinstance(value, str):
        if not _is_base64(value, field):
            return value
        media += [] if _ENCRYPTED.search(field) else [value]
        return gap(len(value))
    if isinstance(value, list):
        if field in _ATTACHED:
            media += value
        inside = [] if field in _ATTACHED else media
        return [_strip_base64(each, field, inside, is_part=is_part) for each in value]
    if isinstance(value, _OBJECT):
        is_media = is_part and _is_media(value, field)
        if is_media:
            media.append(value)
        inside = [] if is_media or (is_part and is_reasoning(value, field)) else media
        return {
            name: _strip_base64(each, name, inside, is_part=is_part and name not in _DATA)
            for name, each in value.items()
        }
    return value


def shortened(data: Mapping[str, Any], most: int) -> Mapping[str, Any] | None:
    """Cut the texts of a message until it has at most `most` tokens; None where its form has more.

    Reasoning, pictures and files go first, and long lists lose their ends. Ids, types and names stay, so that
    it is to other messages what it was. What a tool is asked is cut only where that is not enough.
    """
    ways = (_Shortening(items, with_calls=with_calls) for with_calls in (False, True) for items in _ITEMS)
    return next((made for way in ways if (made := way.shortened(data, most)) is not None), None)


class _Shortening:
    """A way to make a message shorter: how many elements of lists stay, and whether calls are cut."""

    def __init__(self, items: int, *, with_calls: bool) -> None:
        self._items, self._with_calls = items, with_calls
        self._take: Callable[[str], str] = str

    def shortened(self, data: Mapping[str, Any], most: int) -> Mapping[str, Any] | None:
        """Return the message; None where that is not enough, or would leave little room for words."""
        texts: list[str] = []

        def take(text: str) -> str:
            texts.append(text)
            return ""

        self._take = take
        left = most - tokens(self._cut_value(data, "", is_part=True, is_cut=True))
        sizes = list(map(tokens_of_text, texts))
        if left < (min(sum(sizes), most // 2) if self._items > 1 else 0):
            return None
        # The shortest first: what they do not need is for the others.
        for count, place in enumerate(sorted(range(len(texts)), key=sizes.__getitem__)):
            texts[place] = abridged(texts[place], left // (len(texts) - count), tokens_of_text)
            left -= tokens_of_text(texts[place])
        given = iter(texts)
        self._take = lambda _: next(given)
        made: Mapping[str, Any] = self._cut_value(data, "", is_part=True, is_cut=True)
        return made if tokens(made) <= most else None

    def _cut_value(self, value: Any, field: str, *, is_part: bool, is_cut: bool) -> Any:
        if isinstance(value, str):
            is_form = is_part and (field in _FORM or _NEVER_CUT.search(field))
            return value if not is_cut or is_form or _is_base64(value, field) else self._take(value)
        if isinstance(value, list):
            kept = value if not is_cut else self._keep_elements(value, field, is_part=is_part)
            if field == "content" and value and not kept:  # few programs take an empty one
                return self._take(_write_value(value))
            return [self._cut_value(each, field, is_part=is_part, is_cut=is_cut) for each in kept]
        if not isinstance(value, _OBJECT):
            return value
        is_call = is_part and _make_part(value, field).kind == "call"
        names = list(value)[: None if is_part or not is_cut else self._items]
        return {
            name: self._cut_value(
                value[name],
                name,
                is_part=is_part and name not in _DATA,
                is_cut=is_cut and (not is_call or self._with_calls or _classify_name(name).is_answer),
            )
            for name in names
            if not (is_part and (is_reasoning(value[name], name) or (not field and name in _ATTACHED)))
        }

    def _keep_elements(self, value: list[Any], field: str, *, is_part: bool) -> list[Any]:
        """Return the halves of pairs in a list, and the first elements that are neither these nor files."""
        if not is_part:
            return value[: self._items]
        kept: list[Any] = []
        others = 0
        for each in value:
            is_half = any(part.half and part.half.waits for part in _find_parts(each, field))
            is_gone = is_reasoning(each) or _is_media(each, field) or others >= self._items
            if not is_half and not is_gone:
                others += 1
            if is_half or not is_gone:
                kept.append(each)
        return kept
