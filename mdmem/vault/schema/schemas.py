"""Which schema a memory follows, and whether it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from math import isfinite
from operator import getitem
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.diagnostic import Diagnostic, Span
from mdmem.document.document import Document
from mdmem.document.text.regex import regex
from mdmem.document.tree import PLACEHOLDER, Flaw, Key
from mdmem.errors import NamedNotFound
from mdmem.kind import DEFAULT_SCHEMA, KINDS, WORKING, Kind, kind_at
from mdmem.vault.schema import formats, violation
from mdmem.vault.schema.catalog import BODY, Catalog
from mdmem.vault.schema.violation import escape, locate_start, show

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from mdmem.vault.schema.guide import FieldGuide


# Fields for mdmem itself, allowed whatever the schema says; the last one only in JSON.
_BOOKKEEPING = ("$schema", "ttl_seconds", "expires")
_INDEX = regex(r"/[0-9]+(?=[/:])")  # of an item, which others before it move


class SchemaInfo(NamedTuple):
    """A schema there is: its name, whether it is a built-in one, its title (empty when it has none)."""

    name: str
    builtin: bool
    title: str


class Schemas:
    """The schemas of a vault.

    Args:
        own: the vault's own schemas, name (`decision` for `decision.json`) to JSON text. They stand over
            the built-in ones of the same name.
        working: the schema of working memory that names none; `working` without one.

    Nothing is parsed before it is needed, and nothing is ever fetched.
    """

    def __init__(self, own: Mapping[str, str], working: str = "", kinds: Sequence[Kind] = KINDS) -> None:
        self._catalog = Catalog(own)
        self._working = working
        self._kinds = {kind.name: kind for kind in kinds}
        self._validators: dict[str, Validator] = {}
        self._inspect_schema = cache(self._lint_schema)
        self._find_fault = cache(self._judge_schema)

    def names(self) -> list[SchemaInfo]:
        """Return every schema there is, by name."""
        catalog = self._catalog
        return [SchemaInfo(name, catalog.is_builtin(name), catalog.title(name)) for name in catalog.names]

    def has(self, name: str) -> bool:
        """Return whether there is a schema that `name` means."""
        return self._catalog.resolve(name) is not None

    def show(self, name: str) -> str:
        """Return the JSON text of a schema."""
        found = self._catalog.resolve(name)
        if found is None:
            near = dict.fromkeys([*self._catalog.near(name), *self._catalog.names])
            raise NamedNotFound(kind="schema", name=name, near=tuple(near))
        return self._catalog.text(found)

    def fields(self, document: Document, path: Sequence[Key] = ()) -> dict[str, FieldGuide]:
        """Return the fields that the schema of a memory names; with `path`, those below a field."""
        from mdmem.vault.schema.guide import list_fields  # noqa: PLC0415 - start-up

        return list_fields(self._catalog, self.choose(document), path)

    def items(self, document: Document, path: Sequence[Key]) -> FieldGuide:
        """Return what the schema of a memory says of the items of the list at `path`."""
        from mdmem.vault.schema.guide import describe_item  # noqa: PLC0415 - start-up

        return describe_item(self._catalog, self.choose(document), path)

    def follows_own(self, document: Document) -> bool:
        """Return whether the `$schema` or `type` of a memory names a schema of the vault's own."""
        name = self._find_named(document)
        return name is not None and not self._catalog.is_builtin(name)

    def choose(self, document: Document) -> str:
        """Return the name of the schema that a memory follows.

        That is what its `$schema` names, else the schema of its `type` (that of the kind of this name, or the
        schema of this name), else that of the folder it stands in (below users, projects and resources), else
        `memory`.
        """
        if named := self._find_named(document):
            return named
        kind = kind_at(document.path, self._kinds.values())
        if kind is WORKING and self._working:
            return self._working
        return kind.schema if kind else DEFAULT_SCHEMA

    def _find_named(self, document: Document) -> str | None:
        """Return the name of the schema that the `$schema` or the `type` of a memory names."""
        written, kind = document.fields.get("$schema"), document.fields.get("type")
        named = self._catalog.resolve(written) if isinstance(written, str) else None
        if named is not None or not isinstance(kind, str):
            return named
        name = self._kinds[kind].schema if kind in self._kinds else kind
        return name if name in self._catalog.names else None

    def is_data(self, document: Document) -> bool:
        """Return whether a file is JSON that follows no schema of the vault: nothing in it is judged.

        It stands in no folder of a kind, and names no schema; a name that there is not may be misspelt.
        """
        if not document.is_json or kind_at(document.path, self._kinds.values()):
            return False
        written = document.fields.get("$schema")
        return not isinstance(written, str) or ("/" in written and not self.has(written))

    def check(self, document: Document, name: str | None = None) -> list[Diagnostic]:
        """List what is wrong with a memory, by its text and its schema, or `name`, as its text goes."""
        if name is None and self.is_data(document):
            return [*document.findings]
        findings = [*document.findings, *self._check_unknown_schema(document)]
        front = document.frontmatter
        readable = document.tree is not None or not (document.is_json or front.flaws)
        readable = readable and not front.unread
        if readable:
            findings += self._find_violations(document, name or self.choose(document))
        return sorted(
            dict.fromkeys(findings), key=lambda found: (found.span, found.code, found.rule, found.message)
        )

    def misplaced(self, document: Document) -> tuple[Diagnostic, ...]:
        """Return what is wrong with the folder of a memory: its `type` is the kind of another one."""
        place, name = kind_at(document.path, self._kinds.values()), document.fields.get("type")
        if (
            not isinstance(name, str)
            or name not in self._kinds
            or place is None
            or name == place.name
            or not document.tree
        ):
            return ()
        message = f"`type` is {name}, and this is the place of a {place.name}: it is checked as a {name}"
        hint = f"put it into the folder of its kind, or make it `type: {place.name}`"
        span = document.tree.nearest(("type",)).span
        return (document.diagnose(Flaw(span, "type-misplaced", message, hint, "type", "warning")),)

    def find_new(self, after: Document, *before: Document) -> list[Diagnostic]:
        """Return the errors of a memory that none of its versions `before` had.

        The same error was there where the same keyword refused the same value of the same field, whatever
        the path and the schema were: what is broken may be moved and changed elsewhere, not broken further.
        """
        if len(before) == 1 and self._ignores_difference(*before, after):
            found = list(after.body_findings)
        else:
            found = self.check(after)
        errors = [finding for finding in found if finding.severity == "error"]
        known: Counter[tuple[str, str, str]] = Counter()
        for version in before if errors else ():
            known |= Counter(_sign_finding(finding, version) for finding in self.check(version))
        new = []
        for finding in errors:
            sign = _sign_finding(finding, after)
            if known[sign]:
                known[sign] -= 1
            else:
                new.append(finding)
        return new

    def _ignores_difference(self, before: Document, after: Document) -> bool:
        """Return whether only the body differs, at which the schema does not look.

        Then both have the same violations, and neither needs to be checked. Most edits are of this kind.
        """
        head = before.text[: before.body_span.start]
        if before.is_json or before.path != after.path or head != after.text[: after.body_span.start]:
            return False
        name = self.choose(before)
        texts = map(self._catalog.text, self._catalog.closure(name))
        return not (self._is_about_body(name) or any(BODY in text for text in texts))

    def _is_about_body(self, name: str) -> bool:
        schema = self._catalog.parsed(name)
        return isinstance(schema, dict) and schema.get("type") == "string"

    def lint(self) -> list[Diagnostic]:
        """Everything that is wrong with the schemas themselves."""
        suspects = [name for name in self._catalog.names if not self._is_known(name)]
        return [finding for name in suspects for finding in self._inspect_schema(name)]

    def _lint_schema(self, name: str) -> list[Diagnostic]:
        from mdmem.vault.schema.lint import inspect  # noqa: PLC0415 - start-up

        return inspect(self._catalog, name)

    def _is_known(self, name: str) -> bool:
        """Return whether a schema is known to be sound: a built-in one that refers to no other but these."""
        return all(map(self._catalog.is_builtin, self._catalog.closure(name)))

    def _find_violations(self, document: Document, name: str) -> list[Diagnostic]:
        fault = self._find_fault(name)
        if fault:
            message = f"the schema {name} cannot be used: {fault}"
            hint = "see what is wrong with `mdmem schema check`"
            flaw = Flaw(locate_start(document), "schema-broken", message, hint, f"{name}::broken")
            return [document.diagnose(flaw)]
        value, findings = self._select_value(document, name)
        if self._is_known(name) and _is_certain(self._catalog, name, name, value):
            return findings
        from mdmem.vault.schema.meter import Meter, Unchecked  # noqa: PLC0415 - start-up
        from mdmem.vault.schema.validator import find_errors  # noqa: PLC0415 - start-up

        meter = Meter(None if document.is_json else document)
        try:
            errors = find_errors(self._validator_of(name), value, meter)
            findings += violation.explain(document, name, errors, meter.count)
        except Unchecked as error:
            message = f"the memory cannot be checked against the schema {name}: {error}"
            hint = "make the schema simpler (`mdmem schema check`), or the memory smaller"
            flaw = Flaw(locate_start(document), "schema-unchecked", message, hint, f"{name}::unchecked")
            findings.append(document.diagnose(flaw))
        return findings

    def _select_value(self, document: Document, name: str) -> tuple[Any, list[Diagnostic]]:
        """Select the value to judge, without the bookkeeping; also return what is wrong with that."""
        if not document.is_json and self._is_about_body(name):
            # Blank lines around the body are layout of the file, not text of the memory.
            return document.body.strip("\r\n"), []
        value = document.tree.value if document.tree else {}
        if not isinstance(value, dict):
            return value, []
        keys = _BOOKKEEPING if document.is_json else _BOOKKEEPING[:-1]
        aside = [key for key in keys if key in value and not self._catalog.declares(name, key)]
        empty = [key for key, item in value.items() if isinstance(item, str) and PLACEHOLDER.search(item)]
        rest = {key: item for key, item in value.items() if key not in (*aside, *empty)}
        findings = _check_expires(document, name, value["expires"]) if "expires" in aside else []
        return rest, findings

    def _judge_schema(self, name: str) -> str:
        """Return why the schema, or one that it refers to, cannot be used; empty when it can."""
        closure = [] if self._is_known(name) else self._catalog.closure(name)
        found = (f for each in closure for f in self._inspect_schema(each) if f.severity == "error")
        return next((f"{f.message} ({f.path}:{f.position.line})" for f in found), "")

    def _validator_of(self, name: str) -> Validator:
        if name not in self._validators:
            from mdmem.vault.schema.validator import make_validator  # noqa: PLC0415 - start-up

            self._validators[name] = make_validator(self._catalog, name)
        return self._validators[name]

    def _check_unknown_schema(self, document: Document) -> list[Diagnostic]:
        written = document.fields.get("$schema")
        if not isinstance(written, str) or not document.tree or self.has(written):
            return []
        used = self.choose(document)
        message = f"`$schema` names no schema of the vault: {escape(written)}; checked as {used}"
        hint = f"nearest names: {', '.join(self._catalog.near(written))}"
        if "://" in written:
            hint = f"nothing is fetched from elsewhere; {hint}"
        span = document.tree.nearest(("$schema",)).span
        flaw = Flaw(span, "schema-unknown", message, hint, f"$schema:{written}", "warning")
        return [document.diagnose(flaw)]


def _sign_finding(found: Diagnostic, document: Document) -> tuple[str, str, str]:
    """Return what makes a finding the same one in two versions: code, keyword, field and its value."""
    if not found.code.startswith("schema-"):
        return found.code, found.rule, ""
    rule = _INDEX.sub("/*", found.rule.partition(":")[2])
    is_of_field = rule.startswith("/") and not rule.startswith(f"/{BODY}/")
    return found.code, rule, document.text[found.span.start : found.span.end] if is_of_field else ""


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_SAYING_NOTHING = {"$schema", "$id", "$defs", "title", "description", "examples"}
_CERTAIN: dict[str, Callable[[Callable[[Any, Any], bool], Any, Any], bool]] = {
    "$ref": lambda accepts, wanted, value: accepts(wanted, value),
    "anyOf": lambda accepts, wanted, value: any(accepts(each, value) for each in wanted),
    "enum": lambda _, wanted, value: isinstance(value, str) and value in wanted,
    "format": lambda _, wanted, value: not isinstance(value, str) or formats.FORMATS[wanted].accepts(value),
    "items": lambda accepts, wanted, value: (
        not isinstance(value, list) or all(accepts(wanted, each) for each in value)
    ),
    "maximum": lambda _, wanted, value: not isinstance(value, int | float) or value <= wanted,
    "minimum": lambda _, wanted, value: not isinstance(value, int | float) or value >= wanted,
    "properties": lambda accepts, wanted, value: (
        not isinstance(value, dict) or all(accepts(wanted[key], value[key]) for key in wanted if key in value)
    ),
    "required": lambda _, wanted, value: not isinstance(value, dict) or value.keys() >= {*wanted},
    "type": lambda _, wanted, value: any(
        type(value) in _TYPES[each] and (type(value) is not float or isfinite(value))
        for each in ([wanted] if isinstance(wanted, str) else wanted)
    ),
}
"""Keywords by which most memories can be seen to be sound: whether one certainly accepts a value."""


def _is_certain(catalog: Catalog, name: str, schema: Any, value: Any) -> bool:
    """Return whether a built-in schema certainly accepts a value, without jsonschema; see `_CERTAIN`.

    Args:
        name: the one that references without a name are to.
        schema: it or one inside it, or a reference to one.
    """
    if isinstance(schema, str):
        file, _, pointer = schema.partition("#")
        name = catalog.resolve(file) or name
        top: Any = catalog.parsed(name)
        schema = reduce(getitem, pointer.split("/")[1:], top)
    accepts = partial(_is_certain, catalog, name)
    return all(
        keyword in _SAYING_NOTHING or (keyword in _CERTAIN and _CERTAIN[keyword](accepts, wanted, value))
        for keyword, wanted in schema.items()
    )


def _check_expires(document: Document, name: str, written: Any) -> list[Diagnostic]:
    is_moment = isinstance(written, str) and (formats.is_date(written) or formats.is_date_time(written))
    if is_moment or written is None:
        return []
    span = document.tree.nearest(("expires",)).span if document.tree else Span(0, 0)
    accepted = f"{formats.FORMATS['date'].means} or {formats.FORMATS['date-time'].means}"
    message = f"`expires` must be {accepted}, not {show(written)}"
    rule = f"{name}:/expires:format"
    return [document.diagnose(Flaw(span, "schema-format", message, f"accepted: {accepted}", rule))]
