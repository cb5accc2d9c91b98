"""Lint: finds what is wrong with a schema itself."""

from __future__ import annotations

from collections import deque
from difflib import get_close_matches
from typing import Any

from referencing.exceptions import Unresolvable

from mdmem.diagnostic import Diagnostic, Severity, Span, about_file
from mdmem.document.document import Document, Limits, parse
from mdmem.document.tree import Flaw, KeyPath
from mdmem.errors import DocumentRefused, PatternInvalid
from mdmem.vault.schema.catalog import DIALECT, REFERENCES, Catalog, list_children
from mdmem.vault.schema.formats import FORMATS
from mdmem.vault.schema.meter import STEP, Meter, Unchecked
from mdmem.vault.schema.validator import (
    UNEVALUATED,
    Subschema,
    find_errors,
    list_keywords,
    load_metaschema,
    make_address,
    make_registry,
    make_validator,
    normalize_reference,
)
from mdmem.vault.schema.violation import escape, explain

_LIMITS = Limits(max_depth=128)
_STEPS_OF_A_VISIT = 10
_LONGEST_KEYWORD = 40  # characters that are compared with those that there are, which takes a while
_MOST_NOTES = 50


def inspect(catalog: Catalog, name: str) -> list[Diagnostic]:
    """Find what is wrong with the schema of this name, in the order of its text."""
    try:
        data = catalog.text(name).encode("utf-8", "surrogateescape")
        document = parse(catalog.path(name), data, _LIMITS)
        inspection = _Inspection(document, catalog, name)
        if document.tree is not None:
            inspection.run(document.tree.value)
    except DocumentRefused as error:
        return [about_file(catalog.path(name), error.code, error.message, error.hint)]
    findings = dict.fromkeys((*document.findings, *inspection.findings))
    return sorted(findings, key=lambda each: (each.span.start, each.code, each.rule))


class _Inspection:
    """One pass over one schema that is JSON."""

    def __init__(self, document: Document, catalog: Catalog, name: str) -> None:
        self.document = document
        self.catalog = catalog
        self.name = name
        self.meter = Meter()
        self.findings: list[Diagnostic] = []

    def run(self, schema: Any) -> None:
        try:
            errors = find_errors(load_metaschema(), schema, self.meter)
            explained = explain(self.document, "2020-12", errors, self.meter.count)
            self.findings += (each._replace(code="schema-invalid") for each in explained)
            self.catalog.sound[self.name] = not self.findings
            if not self.findings:
                closure = map(self.catalog.parsed, self.catalog.closure(self.name))
                self.meter.count(4 * sum(map(self.meter.size, closure)) // STEP)
                self.resolver = make_registry(self.catalog, self.name).resolver(make_address(self.name))
                self._visit_schema(schema, ())
            if all(
                each.severity != "error" for each in self.findings
            ):  # even an empty memory may take too many steps
                deque(find_errors(make_validator(self.catalog, self.name), {}, self.meter), maxlen=0)
        except RecursionError:
            self._add_finding((), "schema-endless", "it is nested too deeply to be checked", "flatten it")
        except Unchecked as error:
            self._add_finding((), "schema-endless", f"it cannot be checked: {error}", "make it simpler")

    def _visit_schema(self, schema: Any, path: KeyPath) -> None:
        if isinstance(schema, bool):
            return
        self.meter.count(_STEPS_OF_A_VISIT)
        self._check_dialect(schema, path)
        self._check_keywords(schema, path)
        for keyword in schema.keys() & REFERENCES:
            self._check_reference(schema[keyword], (*path, keyword))
        for keyword in schema.keys() & UNEVALUATED:
            self._check_unevaluated((*path, keyword))
        if schema.get("format", "date") not in FORMATS:
            message = f"the format {escape(schema['format'])} is not known, so it is not checked"
            hint = f"known formats: {', '.join(FORMATS)}"
            self._add_finding((*path, "format"), "schema-format-unknown", message, hint, severity="warning")
        for each in schema.get("patternProperties", ()):
            self._check_pattern(each, (*path, "patternProperties", each))
        if "pattern" in schema:
            self._check_pattern(schema["pattern"], (*path, "pattern"))
        for step, child in list_children(schema):
            self._visit_schema(child, (*path, *step))

    def _check_keywords(self, schema: dict[str, Any], path: KeyPath) -> None:
        unknown = [each for each in schema if each not in list_keywords() and not each.startswith("x-")]
        for keyword in unknown[: max(_MOST_NOTES - len(self.findings), 0)]:
            message = f"`{escape(keyword)}` is no keyword of JSON Schema, so it checks nothing"
            near = get_close_matches(keyword[:_LONGEST_KEYWORD], list_keywords(), n=1, cutoff=0.7)
            hint = f"did you mean `{near[0]}`?" if near else "begin what is your own with `x-`"
            self._add_finding((*path, keyword), "schema-keyword", message, hint, severity="warning")

    def _check_dialect(self, schema: dict[str, Any], path: KeyPath) -> None:
        for keyword in schema.keys() & ("$schema", "$id") if path else ():
            message = f"`{keyword}` can stand at the top of a schema only"
            self._add_finding((*path, keyword), "schema-dialect", message, "remove it")
        dialect = schema.get("$schema", DIALECT)
        if not path and dialect.removesuffix("#") != DIALECT:
            message = f"the schema is written for {escape(dialect)}; mdmem reads 2020-12"
            self._add_finding(("$schema",), "schema-dialect", message, f"accepted: {DIALECT}")

    def _check_reference(self, reference: str, path: KeyPath) -> None:
        try:
            target: Any = self.resolver.lookup(normalize_reference(self.catalog, reference)).contents
        except (Unresolvable, ValueError, TypeError):  # what is no address or pointer ends with the last two
            target = None
        if not isinstance(target, bool | Subschema):
            message = f"`{path[-1]}` leads nowhere: {escape(reference)}"
            names = ", ".join(self.catalog.names)
            hint = f"nothing is fetched: name a schema of the vault ({names}), or one inside this one"
            self._add_finding(path, "schema-ref", message, hint)

    def _check_unevaluated(self, path: KeyPath) -> None:
        """Refuse `unevaluated…` where jsonschema's own, which runs patterns by `re`, may meet a pattern.

        `$dynamicRef` may lead to any schema.
        """
        reached = "".join(str(self.catalog.parsed(each)) for each in self.catalog.closure(self.name))
        for obstacle in ("patternProperties", "$dynamicRef"):
            if repr(obstacle) in reached:
                message = f"`{path[-1]}` cannot be used in a schema that leads to `{obstacle}`"
                hint = "name the fields in `properties`, and use `additionalProperties`"
                self._add_finding(path, "schema-unevaluated", message, hint)

    def _check_pattern(self, pattern: str, path: KeyPath) -> None:
        try:
            self.meter.compile_pattern(pattern)
        except PatternInvalid as error:
            message = f"the pattern {escape(error.pattern)} cannot be used: {error.reason}"
            self._add_finding(path, "schema-pattern", message, "correct the pattern")

    def _add_finding(
        self, path: KeyPath, code: str, message: str, hint: str, *, severity: Severity = "error"
    ) -> None:
        span = self.document.tree.nearest(path).span if self.document.tree else Span(0, 0)
        rule = f"{self.name}:{'/'.join(map(str, path))}"
        self.findings.append(self.document.diagnose(Flaw(span, code, message, hint, rule, severity)))
