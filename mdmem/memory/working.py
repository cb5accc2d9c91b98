"""Working memory: the small state of a thread or a resource, as Markdown or JSON, that may expire."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, NamedTuple

from mdmem.document import edit as text_edit
from mdmem.document.arguments import json_value
from mdmem.document.document import SUFFIXES, Document, parse_text
from mdmem.document.field import with_field
from mdmem.document.text.lines import Lines
from mdmem.errors import DocumentRefused, EditRefused, Invalid, MemoryNotFound, PathRefused, Usage
from mdmem.kind import WORKING
from mdmem.memory import history
from mdmem.memory.content import (
    Life,
    appended,
    as_text,
    content_of,
    expiry_of,
    has_passed,
    is_object,
    life,
    merged,
    new_body,
    patched,
    refuse_no_object,
    refuse_unreadable,
    renewed,
    replaced,
    unpadded,
    with_fields_of,
    with_life,
    with_life_of,
)
from mdmem.memory.verbs import KindVerbs, R
from mdmem.vault.paths import decode_id, encode_id
from mdmem.vault.plan import Change, EditPlan, deletion, edit
from mdmem.vault.walk import Found

Owner = Literal["thread", "resource"]
_FOLDERS: dict[Owner, str] = {
    "thread": f"{WORKING.folder}/threads",
    "resource": f"{WORKING.folder}/resources",
}
# What a memory says of itself: it outlives the content.
_OWN = ("created", "thread", "resource")
_ENDS = {"{": "}", "[": "]"}


class WorkingInfo(NamedTuple):
    """A working memory in a listing. One that has expired counts as absent."""

    kind: Owner
    id: str
    path: str
    expires: str | None
    expired: bool
    size: int


class _Slot(NamedTuple):
    """The place of one working memory: its path without suffix, its file, and the same while it lives."""

    stem: str
    file: Document | None
    live: Document | None


class Working(KindVerbs[R]):
    """The working memory of a namespace, one for each thread and each resource.

    Every verb takes either `thread` or `resource`, an id of any characters but `.` and `..`. The memory is
    Markdown, or JSON where its content or its schema says so.

    A memory with `expires` (a field of the frontmatter, or a member of a JSON object) counts as absent from
    that moment on. A `ttl` that is given is kept beside it, as `ttl_seconds`, and every change sets `expires`
    this many seconds from now, whichever verb makes it. With 0 the memory never expires: both are removed.
    A memory without a `ttl_seconds` lives as long as the config says under `[working]`; where that says
    nothing, an `expires` stays as it is. What has expired leaves nothing of that behind. An `expires` that
    stands in what the caller writes is kept where no `ttl` is given.

    The verbs that change something raise `Usage`, `PathRefused`, `Invalid` with every violation, and what
    `Vault.apply` raises. Where both a Markdown and a JSON file stand for one id, all but `clear` refuse.
    `clock` says what time it is.
    """

    # -- reading ------------------------------------------------------------------------------------------

    def get(
        self,
        *,
        thread: str | None = None,
        resource: str | None = None,
        template: str | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the content: Markdown without frontmatter and blank edges, or JSON; empty without any.

        Args:
            template: what to begin with; without one, what the config names, and nothing where it names none.
                Where nothing is there, or it has expired, the template is rendered and written, once: of
                several that do so at the same time, all get what the first one wrote.

        Raises:
            NamedNotFound, TemplateFailed: the template is not there, or cannot be rendered.
        """
        stem, now = _slot_stem(thread, resource), self._clock()
        live = self._find_slot(stem, now).live
        template = self._vault.config.working.template if template is None else template
        if live is not None or not template:
            return content_of(live)
        templates = self._vault.templates
        is_json = templates.find(template)[0].endswith(".json")
        # Rendered before anything is built: a plan may be built again under the lock, a template never is.
        text = unpadded(templates.render(template, variables or {}, now=now, refuse_unread=True))

        def build() -> EditPlan:
            slot = self._find_slot(stem, now)
            if slot.live is not None:
                return EditPlan(changes=())
            return self._replacement_plan(slot, text, None, now, "begin", is_json=is_json)

        self._run(build)
        # What was rendered here is what stands there, unless another was first, or only a plan was made.
        rendered = parse_text(stem + SUFFIXES[is_json], text, self._vault.config.limits)
        return content_of(self._find_slot(stem, now).live or rendered)

    def list(self) -> builtins.list[WorkingInfo]:
        """List all working memories, also expired ones: threads first, then by path."""
        now = self._clock()
        infos = []
        for kind, identifier, found in self._find_files():
            try:
                document = self._vault.find(found.path)
                expires = expiry_of(document) if document else None
            except DocumentRefused:
                expires = None
            info = WorkingInfo(
                kind=kind,
                id=identifier,
                path=found.path,
                expires=expires,
                expired=has_passed(expires, now),
                size=found.size,
            )
            infos.append(info)
        return infos

    # -- changing -----------------------------------------------------------------------------------------

    def update(
        self,
        content: Any,
        *,
        thread: str | None = None,
        resource: str | None = None,
        ttl: int | None = None,
        schema: str | None = None,
        base: str | None = None,
    ) -> R:
        """Replace the whole content.

        Markdown keeps its frontmatter. Content with fields of its own (frontmatter, or a JSON object)
        replaces those that stand there, but for `created`, `thread`, `resource` and its life, which go on
        where it does not speak of them. The schema is recorded as `$schema`, and every later change is
        checked against it. A JSON value that is not an object has no place for it: it is checked when the
        schema is given.

        Args:
            content: Markdown, JSON text, or any JSON value. It becomes a JSON memory when it is not a text,
                when its schema has a type other than string, or where a JSON memory stands and it is JSON; a
                text that is not JSON takes the place of JSON.
            ttl: seconds that it lives from each change on; 0 for ever.
            schema: the name of a schema of the vault; without one, that which stands there, else that of the
                config.
            base: the hash that the caller saw; see `Verbs`.

        Raises:
            Usage: the content is blank or not a JSON value, or a JSON value that is not an object should
                expire.
            NamedNotFound: no such schema.
            Conflict: it is no longer what `base` says.
        """
        stem, text, now = _slot_stem(thread, resource), as_text(content), self._clock()
        is_json = not isinstance(content, str)

        def build() -> EditPlan:
            slot = self._find_slot(stem, now)
            if base is not None:
                if slot.file is None:
                    raise MemoryNotFound(path=stem + SUFFIXES[is_json])
                history.compare(self._vault, slot.file, base)
            return self._replacement_plan(slot, text, ttl, now, "update", is_json=is_json, schema=schema)

        return self._run(build)

    def find_and_replace(
        self,
        search: str | None,
        new: str,
        *,
        thread: str | None = None,
        resource: str | None = None,
        ttl: int | None = None,
    ) -> R:
        """Replace a text that occurs exactly once in the content, or append.

        Args:
            search: the text. Empty or None: `new` is appended behind a blank line, and where nothing is there
                yet it becomes the content.
            new: what stands there afterwards; it may be empty where a text is replaced.

        Raises:
            MemoryNotFound: there is nothing to look for the text in.
            TextNotFound, TextAmbiguous: the text does not occur, or more than once.
            Usage: there is nothing to append.
            EditRefused: nothing can be appended to JSON.
        """
        stem, now = _slot_stem(thread, resource), self._clock()

        def build() -> EditPlan:
            slot = self._find_slot(stem, now)
            if search and slot.live is None:
                raise MemoryNotFound(path=slot.stem + SUFFIXES[False])
            if slot.live is None or not (search or content_of(slot.live)):
                return self._replacement_plan(slot, as_text(new), ttl, now, "begin")
            after = replaced(slot.live, search, new) if search else appended(slot.live, as_text(new))
            return self._change_plan(slot.live, after, ttl, now, "replace in" if search else "append to")

        return self._run(build)

    def merge(
        self,
        patch: Mapping[str, Any],
        *,
        thread: str | None = None,
        resource: str | None = None,
        ttl: int | None = None,
    ) -> R:
        """Change members of a JSON memory by a JSON merge patch (RFC 7396); no other byte changes.

        Args:
            patch: members to set; None removes one, an object is merged with the one that is there. Where
                nothing is there yet, the patch makes it.

        Raises:
            Usage: the memory is Markdown, or not an object, or the patch is not one.
        """
        if not isinstance(patch, Mapping):
            raise Usage(problem=f"a merge patch is an object, not a {type(patch).__name__}")
        checked: dict[str, Any] = json_value(patch)
        stem, now = _slot_stem(thread, resource), self._clock()

        def build() -> EditPlan:
            slot = self._find_slot(stem, now)
            if slot.live is None or (slot.live.is_json and not content_of(slot.live)):
                text = as_text(merged({}, checked))
                return self._replacement_plan(slot, text, ttl, now, "begin", is_json=True)
            refuse_no_object(slot.live)
            return self._change_plan(slot.live, patched(slot.live, checked), ttl, now, "merge into")

        return self._run(build)

    def clear(self, *, thread: str | None = None, resource: str | None = None) -> R:
        """Delete it; `restore` brings it back. Where there is none, nothing happens."""
        stem = _slot_stem(thread, resource)

        def build() -> EditPlan:
            changes = tuple(map(deletion, self._find_documents(stem)))
            return EditPlan(changes=changes, message=f"clear {stem}" if changes else "")

        return self._run(build)

    def sweep(self) -> R:
        """Delete every working memory that has expired; `restore` brings them back."""
        now = self._clock()

        def build() -> EditPlan:
            expired, left_out = [], []
            for _, _, found in self._find_files():
                try:
                    document = self._vault.find(found.path)
                    if document and has_passed(expiry_of(document), now):
                        expired.append(deletion(document))
                except DocumentRefused as error:
                    left_out.append(error.message)
            message = f"sweep {len(expired)} expired working memories" if expired else ""
            return EditPlan(changes=tuple(expired), message=message, left_out=tuple(left_out))

        return self._run(build)

    # -- what stands there --------------------------------------------------------------------------------

    def _find_documents(self, stem: str) -> builtins.list[Document]:
        return [document for suffix in SUFFIXES if (document := self._vault.find(stem + suffix))]

    def _find_slot(self, stem: str, now: datetime) -> _Slot:
        files = self._find_documents(stem)
        if len(files) > 1:
            reason = "both a .md and a .json file stand here: it is not certain which one counts"
            raise EditRefused(path=stem, reason=reason, remedy="delete one of them with `mdmem rm`")
        file = files[0] if files else None
        return _Slot(stem, file, None if file is None or has_passed(expiry_of(file), now) else file)

    def _find_files(self) -> Iterator[tuple[Owner, str, Found]]:
        for kind, folder in _FOLDERS.items():
            for found in self._vault.walk(folder):
                name = found.path[len(folder) + 1 :].rpartition(".")[0]
                identifier = decode_id(name)
                with suppress(PathRefused):
                    if not found.problem and "/" not in name and encode_id(identifier) == name:
                        yield kind, identifier, found

    # -- what becomes of it -------------------------------------------------------------------------------

    def _change_plan(
        self, before: Document, after: Document, ttl: int | None, now: datetime, action: str
    ) -> EditPlan:
        refuse_unreadable(after)
        default = self._vault.config.working.ttl_seconds
        if ttl is not None:
            after = with_life(after, life(ttl, default, now))
        else:
            after = renewed(after, before, default, now)
        return edit(before, text_edit.between(before.text, after.text), f"{action} {before.path}")

    def _replacement_plan(
        self,
        slot: _Slot,
        text: str,
        ttl: int | None,
        now: datetime,
        action: str,
        *,
        is_json: bool = False,
        schema: str | None = None,
    ) -> EditPlan:
        known = _schema_of(slot.file)
        is_json = self._becomes_json(slot, schema, text) or is_json
        path = slot.stem + SUFFIXES[is_json]
        before = slot.file if slot.file and slot.file.path == path else None
        given = parse_text(path, text + Lines(text).newline, self._vault.config.limits)
        refuse_unreadable(given)
        document = given
        if before and not is_json and not given.frontmatter.present:
            document = text_edit.spliced(before, [new_body(before, given.text)])
            if slot.live is None:  # what has expired leaves nothing of its life behind
                document = with_life(document, Life(None))
        elif slot.live:
            document = with_life_of(given, slot.live)
            if schema in {None, known}:
                document = with_fields_of(document, slot.live, _OWN)
        default = self._vault.config.working.ttl_seconds
        if ttl is not None or not is_object(document):
            document = with_life(document, life(ttl, default, now))
        else:
            document = renewed(document, slot.live, default, now)
        document = self._follow_schema(document, schema or _schema_of(given) or known)
        changes = [Change(path=path, before=before, content=document.data, merge=False)]
        if slot.file is None:
            # It must not come to be under the other suffix in the meantime: two files would stand for one id.
            other = slot.stem + SUFFIXES[not is_json]
            changes.append(Change(path=other, before=None, delete=True, merge=False))
        elif before is None:
            changes.append(deletion(slot.file))
        return EditPlan(changes=tuple(changes), message=f"{action} {path}")

    def _follow_schema(self, document: Document, name: str | None) -> Document:
        """Return a document with the name of its schema in it; one without a place for that is checked."""
        if name and is_object(document):
            return with_field(document, ["$schema"], name)
        findings = self._vault.schemas.check(document, name) if name else ()
        if errors := tuple(f for f in findings if f.severity == "error"):
            raise Invalid(findings=errors)
        return document

    def _becomes_json(self, slot: _Slot, schema: str | None, text: str) -> bool:
        schemas, known = self._vault.schemas, _schema_of(slot.file)
        if schema is None and known:
            # One that is recorded may be gone, and one of Markdown is about its fields.
            schema = known if slot.file and slot.file.is_json and schemas.has(known) else ""
        name = self._vault.config.working.schema if schema is None else schema
        if name and json.loads(schemas.show(name)).get("type", "string") != "string":
            return True
        return slot.live is not None and slot.live.is_json and _looks_like_json(text)


def _looks_like_json(text: str) -> bool:
    """Return whether a text is JSON, or an object or list with a mistake in it."""
    if _ENDS.get(text[0]) == text[-1]:
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _slot_stem(thread: str | None, resource: str | None) -> str:
    if (thread is None) == (resource is None):
        raise Usage(
            problem="working memory belongs to a thread or to a resource",
            remedy="give exactly one of the two: a thread or a resource id",
        )
    kind: Owner = "resource" if thread is None else "thread"
    return f"{_FOLDERS[kind]}/{encode_id(thread or resource or '')}"


def _schema_of(document: Document | None) -> str | None:
    value = document.fields.get("$schema") if document else None
    return value if isinstance(value, str) else None
