"""A proposal: one verb with its arguments, in a memory that waits for somebody to accept it.

Such a file may come from a stranger, or be edited after it was shown. So it is checked whenever it is read:
only the verbs in `VERBS` can be proposed, with arguments that they take, and none of them names a path
outside of the namespace, or another proposal.
"""

from __future__ import annotations

import contextlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from mdmem.diagnostic import Diagnostic, Span, about_file
from mdmem.document.document import Document, digest, parse_text
from mdmem.document.edit import spliced
from mdmem.document.field import set_field, with_field
from mdmem.document.moment import moment_of, stamp
from mdmem.document.source import MOST_SOURCES, normal, said_in, sources_of, with_sources
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import clipped, in_line
from mdmem.document.tree import Flaw, Node, TooDeep, parse_json
from mdmem.errors import (
    DocumentRefused,
    EditRefused,
    MdmemError,
    PathRefused,
    TooManyParts,
    Usage,
)
from mdmem.kind import NOTE, PROPOSAL, RULE, kind_at
from mdmem.memory.preferences import path_of as path_of_preference
from mdmem.memory.verbs import Build, FindVerb
from mdmem.vault.paths import check_folder, check_memory, is_under, join
from mdmem.vault.plan import EditPlan
from mdmem.vault.vault import Vault

OPEN, REJECTED, EXPIRED = "open", "rejected", "expired"
_LAYERS = ("user:", "project:", "shared:")  # prefixes of paths in wider scopes, read-only here
_DIGITS = 16  # of the hash that names a proposal
_INFO = "json"
_FENCE = regex(r" {0,3}(?:`{3,}|~{3,})[ \t]*([^\s`]*)[^\r\n]*(?:\r\n|\n|\r)?")
_CODE = "proposal"
_MOST_SHOWN = 60  # characters of a value in a message


Arguments: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The arguments of a verb by name, each with its JSON Schema; `default` marks one that may be left out."""


class Proposable(NamedTuple):
    """A verb that may be proposed.

    Attributes:
        target: the arguments that say what it changes.
        value: those that say what becomes of it; with the target they are what makes two proposals the same.
        options: the other ones, which may be left out.
        path: the one that names a memory; empty where none does.
        is_prose: whether the value is something said, which case and blanks do not change; so is a rule.
        is_attributed: whether the memory says in its field `source` where its value was said.
    """

    target: Arguments
    value: Arguments = MappingProxyType({})
    options: Arguments = MappingProxyType({})
    path: str = ""
    is_prose: bool = False
    is_attributed: bool = False

    @property
    def arguments(self) -> Arguments:
        """Every argument that a proposal may give."""
        return {**self.target, **self.value, **self.options}

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of all arguments."""
        needed = [name for name, each in {**self.target, **self.value}.items() if "default" not in each]
        return {
            "type": "object",
            "properties": self.arguments,
            "required": needed,
            "additionalProperties": False,
        }


_TEXT, _NUMBER, _FLAG, _OBJECT = ({"type": name} for name in ("string", "number", "boolean", "object"))
_TEXT_OR_NULL = {"type": ["string", "null"]}
_BASE = {"base": _TEXT_OR_NULL}
# Two proposals are the same only with equal bases: if a source has changed, another one is made.
_BASES = {"bases": {"type": ["object", "null"], "additionalProperties": _TEXT, "default": None}}
_TEXTS, _NO_TEXT = {"type": "array", "items": _TEXT}, {**_TEXT_OR_NULL, "default": None}
_PATH = {"path": _TEXT}
_PREFERENCE = {"category": _TEXT, "key": _TEXT}
_COUNT = {"anyOf": [{"type": "integer"}, {"const": "all"}]}
_KEY = {"type": ["string", "array"], "items": {"type": ["string", "integer"]}}

VERBS: Mapping[str, Proposable] = {
    "notes.append": Proposable(
        {"name": _TEXT}, {"content": _TEXT}, {"title": _TEXT_OR_NULL}, "name", is_prose=True
    ),
    "notes.overwrite": Proposable(
        {"name": _TEXT}, {"content": _TEXT}, {"title": _TEXT_OR_NULL, **_BASE}, "name"
    ),
    "preferences.set": Proposable(
        _PREFERENCE,
        {"value": {}},
        {"strength": _NUMBER, "confidence": _NUMBER, "why": _TEXT_OR_NULL, "policy": _TEXT_OR_NULL, **_BASE},
        is_prose=True,
        is_attributed=True,
    ),
    "preferences.delete": Proposable(_PREFERENCE),
    "project.append": Proposable({"section": _TEXT}, {"entry": _TEXT}, {"date": _FLAG}, is_prose=True),
    "write": Proposable(_PATH, {"content": _TEXT}, {**_BASE, "overwrite": _FLAG}, "path", is_attributed=True),
    "new": Proposable(
        {"template": _TEXT, **_PATH},
        {"variables": {"type": ["object", "null"], "default": None}},
        path="path",
    ),
    "append": Proposable(_PATH, {"text": _TEXT}, _BASE, "path", is_prose=True),
    "prepend": Proposable(_PATH, {"text": _TEXT}, _BASE, "path"),
    "replace": Proposable({**_PATH, "old": _TEXT}, {"new": _TEXT}, {"count": _COUNT, **_BASE}, "path"),
    "section": Proposable(
        {**_PATH, "heading": _TEXT},
        {"text": _TEXT, "where": {"type": "string", "default": "replace"}},
        {"keep_subsections": _FLAG, **_BASE},
        "path",
    ),
    "set": Proposable(_PATH, {"fields": _OBJECT}, _BASE, "path"),
    "unset": Proposable(_PATH, {"key": _KEY}, _BASE, "path"),
    "rm": Proposable(_PATH, {}, {"recursive": _FLAG, **_BASE}, "path"),
    "supersede": Proposable({"old": _TEXT, "by": _TEXT}, _BASES, {"at": _TEXT_OR_NULL}, "old"),
    "merge": Proposable({"paths": _TEXTS, "into": _TEXT}, {"content": _NO_TEXT, **_BASES}, path="into"),
}
"""The verbs of the façade that may be proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change that somebody proposes.

    Attributes:
        id: its name: that of its file, without folder and suffix.
        status: open, rejected or expired.
        verb, arguments: what is done where it is accepted.
        reason, author: why, and by whom it is proposed; may be empty.
        sources: where it was said.
        created, expires: when it was made, and from when on it does not count; None where it does not say.
        hash: of the file: `accept` with it as the base makes the change that was shown, or none.
        problem: why it cannot be accepted; empty where it can.
        diff: what accepting it would change now, where that was asked for.
    """

    id: str
    path: str
    status: str = OPEN
    verb: str = ""
    arguments: Mapping[str, Any]
    reason: str = ""
    author: str = ""
    sources: tuple[str, ...] = ()
    created: datetime | None = None
    expires: datetime | None = None
    hash: str = ""
    problem: str = ""
    diff: str = ""

    def json_shape(self) -> dict[str, Any]:
        """Return the proposal as a JSON object."""
        shape = {name: getattr(self, name) for name in self.__dataclass_fields__}
        moments = {name: shape[name] for name in ("created", "expires") if shape[name]}
        return {**shape, **{name: stamp(moment) for name, moment in moments.items()}}

    @property
    def target(self) -> str:
        """The arguments that name what it would change, as one short line."""
        named = VERBS[self.verb].target if self.verb in VERBS else ()
        texts = [str(self.arguments[name]) for name in named if name in self.arguments]
        return clipped(in_line(" ".join(texts)), _MOST_SHOWN)


def check_call(verb: Any, arguments: Any) -> None:
    """Refuse a verb with arguments that cannot be proposed."""
    from mdmem.vault.schema.validator import fault  # noqa: PLC0415 - start-up

    known = VERBS.get(verb) if isinstance(verb, str) else None
    if known is None:
        remedy = f"a verb is one of {', '.join(VERBS)}"
        raise Usage(problem=f"{f'{verb!r}'[:_MOST_SHOWN]} cannot be proposed", remedy=remedy)
    if problem := fault(known.schema, arguments):
        remedy = f"it takes {', '.join(known.arguments)}"
        raise Usage(problem=f"the arguments of {verb} do not fit: {in_line(problem)}", remedy=remedy)
    if known.path:
        path = arguments[known.path]
        if path.startswith(_LAYERS):
            reason = "memories of a wider scope are read-only here"
            raise PathRefused(path=path, reason=reason, remedy="name a memory of this namespace")
        is_note = verb.startswith("notes.")
        checked = check_folder(path) if is_note or verb == "new" else check_memory(path)
        is_note = is_note and not is_under(checked, NOTE.folder)
        refuse_inbox([join(NOTE.folder, checked) if is_note else checked])
    elif verb.startswith("preferences."):
        path_of_preference(arguments["category"], arguments["key"])


def refuse_inbox(paths: Sequence[str]) -> None:
    """Refuse the paths if one of them is that of a proposal, in any case."""
    for path in paths:
        place = f"{path}/x.md" if not path.endswith(".md") else path
        if kind_at(place.casefold()) is PROPOSAL:
            reason = "a proposal cannot change another proposal"
            raise PathRefused(path=path, reason=reason, remedy="accept or reject that one itself")


# -- what makes two proposals the same -----------------------------------------------------------------------


def new_proposal(verb: str, arguments: Mapping[str, Any], **fields: Any) -> Proposal:
    """Make a proposal that stands in no file yet, from its verb, its arguments and the other fields."""
    identifier = id_of(verb, arguments)
    return Proposal(id=identifier, path=path_of(identifier), verb=verb, arguments=arguments, **fields)


def id_of(verb: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of a proposal: a short hash of its verb, target and normalised value."""
    known = VERBS[verb]
    targets = [_normalize_target(known, name, arguments.get(name)) for name in known.target]
    values = [arguments.get(name) for name in known.value]
    is_prose = known.is_prose or (verb == "write" and is_under(str(arguments["path"]), RULE.folder))
    said = [normal(each) for each in values] if is_prose else values
    written = json.dumps([verb, targets, said], ensure_ascii=False, sort_keys=True)
    return digest(written.encode("utf-8", "surrogatepass"))[:_DIGITS]


def _normalize_target(known: Proposable, name: str, value: Any) -> Any:
    if name != known.path or not isinstance(value, str):
        return unicodedata.normalize("NFC", value) if isinstance(value, str) else value
    path = unicodedata.normalize("NFC", value)
    return path.removeprefix("notes/").removesuffix(".md") if name == "name" else path


def path_of(identifier: str) -> str:
    """Return the file of a proposal, by its id or its path."""
    name = identifier if identifier.endswith(".md") else f"{identifier}.md"
    return check_memory(name if is_under(name, PROPOSAL.folder) else join(PROPOSAL.folder, name))


# -- the file ------------------------------------------------------------------------------------------------


def to_document(vault: Vault, proposal: Proposal) -> Document:
    """Return the document of a proposal; unprintable characters are escaped as in JSON."""
    verb, arguments = proposal.verb, proposal.arguments
    text = json.dumps({"verb": verb, "arguments": arguments}, ensure_ascii=False, indent=2)
    shown = "".join(each if each == "\n" or each.isprintable() else _escape_character(each) for each in text)
    document = parse_text(proposal.path, f"```{_INFO}\n{shown}\n```\n", vault.config.limits)
    said = {"reason": proposal.reason, "author": proposal.author, "sources": [*proposal.sources]}
    moments = {"created": proposal.created, "expires": proposal.expires}
    said |= {name: stamp(moment) if moment else "" for name, moment in moments.items()}
    for name, value in {"type": PROPOSAL.name, "status": OPEN, **said}.items():
        document = with_field(document, (name,), value) if value else document
    return document


def _escape_character(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def is_proposal(document: Document) -> bool:
    """Return whether a memory in `inbox` is a proposal: people may have such a folder of their own."""
    return document.fields.get("type") == PROPOSAL.name


def read(document: Document, now: datetime) -> Proposal:
    """Return the proposal in a file, in any state; an open one past its `expires` is returned as expired."""
    identifier = document.path.removeprefix(f"{PROPOSAL.folder}/").removesuffix(".md")
    try:
        fields = document.fields
        value, flaws = _judge_document(document)
    except DocumentRefused as error:
        return Proposal(
            id=identifier, path=document.path, arguments={}, hash=document.hash, problem=error.message
        )
    arguments, status, sources = value.get("arguments"), fields.get("status"), fields.get("sources")
    errors = (each for each in flaws if each.severity == "error")
    problem = next((f"line {each.position.line}: {each.message}" for each in errors), "")
    if status not in {None, OPEN, REJECTED}:
        problem = problem or f"its status is neither {OPEN} nor {REJECTED}"
    expires = moment_of(fields.get("expires"))
    has_expired = expires is not None and expires <= now
    return Proposal(
        id=identifier,
        path=document.path,
        status=REJECTED if status == REJECTED else EXPIRED if has_expired else OPEN,
        verb=str(value.get("verb", ""))[:_MOST_SHOWN],
        arguments=arguments if isinstance(arguments, dict) else {},
        reason=_as_text(fields.get("reason")),
        author=_as_text(fields.get("author")),
        sources=tuple(filter(_as_text, sources)) if isinstance(sources, list) else (),
        created=moment_of(fields.get("created")),
        expires=expires,
        hash=document.hash,
        problem=problem,
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def judge(document: Document) -> list[Diagnostic]:
    """Return what is wrong with the file of a proposal, beyond what its schema says."""
    return _judge_document(document)[1] if is_proposal(document) else []


def _judge_document(document: Document) -> tuple[dict[str, Any], list[Diagnostic]]:
    if document.is_json:
        return {}, [about_file(document.path, _CODE, "a proposal is Markdown", "move it out of inbox/")]
    node, flaws = _read_object(document)
    value = node.value if node else {}
    if node and not any(flaw.severity == "error" for flaw in flaws):
        try:
            if unknown := sorted(value.keys() - {"verb", "arguments"}):
                raise Usage(problem=f"{unknown[0][:_MOST_SHOWN]!r} means nothing", remedy="take it out")
            check_call(value.get("verb"), value.get("arguments", {}))
        except MdmemError as error:
            flaws.append(Flaw(node.span, _CODE, error.message, error.hint, "call"))
    return value, [document.diagnose(flaw) for flaw in flaws]


def _read_object(document: Document) -> tuple[Node | None, list[Flaw]]:
    fences = [(span, found) for span in document.fences if (found := _FENCE.match(document.text, *span))]
    own = [(span, found) for span, found in fences if found[1].casefold() == _INFO]
    if len(own) != 1:
        many = f"it has {len(own)} fences of JSON" if own else "it has no fence of JSON"
        start = (own[1][0] if own else document.body_span).start
        return _make_flaw(Span(start, start), many, "write one: a verb and its arguments", "fence")
    span, opening = own[0]
    inner = document.text[: span.end].rstrip("\r\n")
    last = max(inner.rfind("\n"), inner.rfind("\r")) + 1
    if last <= opening.start() or set(inner[last:].strip()) - set("`~"):
        return _make_flaw(Span(span.start, span.start), "its fence is never closed", "close it", "fence")
    depth, values = document.limits.max_depth, document.limits.max_values
    try:
        parsed = parse_json(document.text[:last], opening.end(), max_depth=depth, max_values=values)
    except TooDeep as error:
        return _make_flaw(Span(error.offset, error.offset), error.what, f"{error.limit} levels at most")
    except TooManyParts as error:
        return _make_flaw(span, f"there are more than {error.limit:,} values", "propose less")
    if parsed.node and parsed.node.kind != "mapping":
        return _make_flaw(parsed.node.span, "it is not an object", "write a verb and its arguments")
    return parsed.node, list(parsed.flaws)


def _make_flaw(span: Span, message: str, hint: str, rule: str = "json") -> tuple[None, list[Flaw]]:
    return None, [Flaw(span, _CODE, message, hint, rule)]


def find(path: str, vault: Vault, now: datetime) -> Proposal | None:
    """Read the proposal in a file; None where there is none, or no valid memory (`check` reports these)."""
    with contextlib.suppress(DocumentRefused):
        document = vault.find(path)
        if document and is_proposal(document):
            return read(document, now)
    return None


def bind_verb(proposal: Proposal, find_verb: FindVerb) -> Build:
    """Bind a proposal's verb to its arguments; the result builds the plan. Nothing is read or written yet."""
    arguments = dict(proposal.arguments)
    text = arguments.get("text")
    if proposal.verb == "append" and isinstance(text, str) and said_in(text)[1]:
        arguments["text"] = with_sources(text, proposal.sources)
    return find_verb(proposal.verb)(**arguments)


def plan_acceptance(proposal: Proposal, verb: Build, vault: Vault) -> EditPlan:
    """Plan the change that accepting a proposal makes now, its sources included."""
    plan = verb()
    if not plan.changes:
        reason = f"nothing would change: {plan.message}"
        raise EditRefused(path=proposal.path, reason=reason, remedy="reject it, or propose something else")
    refuse_inbox(plan.paths)
    is_attributed = VERBS[proposal.verb].is_attributed and proposal.sources
    return attributed(vault, plan, proposal.sources) if is_attributed else plan


def attributed(vault: Vault, plan: EditPlan, sources: Sequence[str]) -> EditPlan:
    """Add sources to the field `source` of every memory that a plan changes: type `conversation`, and ids.

    A memory with a source of another kind stays as it is, and so does one that is not Markdown.
    """
    changes = []
    for change in plan.changes:
        after = change.after(vault.config.limits)
        takes_source = after and not after.is_json and after.frontmatter.takes_fields
        known = sources_of(after) if after and takes_source else None
        new = [each for each in dict.fromkeys(sources) if known is not None and each not in known]
        if after and known is not None and new and len(known) < MOST_SOURCES:
            source = {"type": "conversation", "ids": [*known, *new][:MOST_SOURCES]}
            content = spliced(after, set_field(after, ("source",), source)).data
            changes.append(change._replace(content=content, edits=(), merge=False))
        else:
            changes.append(change)
    return plan._replace(changes=tuple(changes))
