"""Aster's memory: its JSON files, told apart by what they hold, and its Markdown, by where it stands.

A file of preferences is a list, `<user>.json`: each becomes a memory of its own, of that user. A file of
working memory is an object with `meta` and `content`, in a folder `threads` or `resources`: it becomes
Markdown, or the JSON object that the content is. Moments stay as they are written.

Markdown below `memories` are notes: of a user, a project and a resource where its folders say so. The
`AGENTS.md` of `workspaces/<project>` is the memory of that project, `.aster/rules.md` a rule, `agent.md` a
note that is pinned. What they say stays as it is written.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import DocumentRefused, PathRefused, Usage
from mdmem.imports.batch import Batch, contents, made, read, with_field
from mdmem.kind import NAMESPACES, NOTE, PREFERENCE, RULE, WORKING
from mdmem.text.document import PROJECT_FILE, SUFFIXES, Document, Limits, parse, parse_text
from mdmem.vault.paths import encode_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mdmem.index.sync import Progress

_MARKDOWN = SUFFIXES[0]
_HIDDEN = ".aster"
_KINDS = {"threads": "thread", "resources": "resource"}
_AGENT = f"{NOTE.folder}/agent.md"
_NEVER = datetime.min.replace(tzinfo=UTC)
# How often a preference was read is not a memory: it would change the file with every reading.
_READINGS = "accesscount"
_OF_PREFERENCE = frozenset(
    f"id userid category key value strength confidence createdat updatedat {_READINGS}".split()
)
_OF_META = frozenset(("thread_id", "resource_id", "created_at", "updated_at", "expires_at"))


class _Taken(NamedTuple):
    """A memory that was found: in which part of the source, and when that was updated."""

    where: str
    updated: datetime
    document: Document


@dataclass(slots=True)
class _Found:
    """What there is in the source: working memory, and preferences by user, each by path without suffix.

    `texts` is the Markdown, by user; that of nobody is under "".
    """

    limits: Limits
    texts: dict[str, list[Document]] = field(default_factory=dict)
    working: dict[str, _Taken] = field(default_factory=dict)
    preferences: dict[str, dict[str, _Taken]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    files: int = 0


class _LeftOut(Exception):
    """Why something is not taken."""


def convert(source: str, limits: Limits, progress: Progress | None = None) -> Batch:
    """The memories of a folder, at any depth, or of one file.

    Raises:
        Usage: there is no such file or folder, or nothing of aster's in it.
    """
    found = _Found(limits)
    for path, data in _files(source, found.left_out, progress):
        place = os.path.abspath(os.path.join(source, path)).replace(os.sep, "/")
        try:
            if path.endswith(_MARKDOWN):
                _take_text(found, _inside(source, place), data)
            else:
                _take(found, path, place, _parsed(data))
        except (PathRefused, DocumentRefused) as error:
            found.left_out.append(f"{path}: {error.message}")
        except _LeftOut as reason:
            found.left_out.append(f"{path}: {reason}")
    if not found.files:
        problem = f"{source}: no memory of aster in it"
        raise Usage(problem=problem, remedy="\n".join(found.left_out))
    shared = (*_documents(found.working), *found.texts.pop("", ()))
    of_users = {user: _documents(taken) for user, taken in found.preferences.items()}
    for user, texts in found.texts.items():
        of_users[user] = (*of_users.get(user, ()), *texts)
    return Batch(documents=shared, of_users=of_users, left_out=tuple(found.left_out))


def _documents(taken: Mapping[str, _Taken]) -> tuple[Document, ...]:
    return tuple(each.document for each in taken.values())


def _files(source: str, left_out: list[str], progress: Progress | None) -> Iterator[tuple[str, bytes]]:
    if os.path.isdir(source):
        yield from contents(source, [".json", _MARKDOWN], left_out, progress, entered=_HIDDEN)
        return
    yield source, read(source)
    if progress:
        progress(1, 1)


def _parsed(data: bytes) -> Any:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a value")

    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise _LeftOut(f"this is not JSON: {error}") from None


def _take(found: _Found, path: str, place: str, value: Any) -> None:
    if value in (None, []) or (isinstance(value, list) and any(map(_is_preference, value))):
        found.files += 1  # aster writes null for a user without any
        _take_preferences(found, path, value or [])
    elif isinstance(value, dict) and isinstance(value.get("meta"), dict) and "content" in value:
        found.files += 1
        _take_working(found, path, place, value)
    else:
        raise _LeftOut("neither working memory nor preferences of aster")


def _keep(found: _Found, known: dict[str, _Taken], stem: str, taken: _Taken) -> None:
    """Keep a memory; of two with one name, the newer."""
    other = known.setdefault(stem, taken)
    if (other.document.path, other.document.data) == (taken.document.path, taken.document.data):
        return
    older, known[stem] = sorted((other, taken), key=lambda each: each.updated)
    found.left_out.append(f"{older.where}: {known[stem].where} has the same name, and is newer")


# -- preferences --------------------------------------------------------------------------------------------


def _take_preferences(found: _Found, path: str, entries: list[Any]) -> None:
    read_often = 0
    for number, entry in enumerate(entries, 1):
        where = f"{path}: entry {number}"
        try:
            fields = _fields(entry)
            user = str(fields.get("userid") or _name(path))
            _take_preference(found, where, user, fields, entry)
        except (PathRefused, DocumentRefused) as error:
            found.left_out.append(f"{where}: {error.message}")
        except RecursionError:
            found.left_out.append(f"{where}: nested too deeply")
        except _LeftOut as reason:
            found.left_out.append(f"{where}: {reason}")
        else:
            read_often += bool(fields.get(_READINGS))
    if read_often:
        told = f"how often {read_often} of its entries were read, which is not a memory"
        found.left_out.append(f"{path}: {told}")


def _is_preference(entry: Any) -> bool:
    return isinstance(entry, dict) and {"category", "key"} <= set(map(_plain, entry))


def _plain(name: str) -> str:
    """The name of a field, which is written as Go does (`UpdatedAt`) or in snake case."""
    return name.replace("_", "").lower()


def _fields(entry: Any) -> dict[str, Any]:
    if not _is_preference(entry):
        raise _LeftOut("this has no category and key")
    return {_plain(name): value for name, value in entry.items()}


def _take_preference(
    found: _Found, where: str, user: str, fields: Mapping[str, Any], entry: Mapping[str, Any]
) -> None:
    category, key = fields.get("category"), fields.get("key")
    if not isinstance(category, str) or not isinstance(key, str):
        raise _LeftOut("its category or its key is not text")
    if "value" not in fields:
        raise _LeftOut(f"{category}/{key} has no value")
    written = {
        "type": PREFERENCE.name,
        "category": category,
        "key": key,
        "value": fields["value"],
        **{name: fields[name] for name in ("strength", "confidence") if fields.get(name) is not None},
        **_set({"created": fields.get("createdat"), "updated": fields.get("updatedat")}),
        **({"source": {"type": "aster", "ids": [fields["id"]]}} if fields.get("id") else {}),
        **_metadata({name: value for name, value in entry.items() if _plain(name) not in _OF_PREFERENCE}),
    }
    stem = f"{PREFERENCE.folder}/{encode_id(category)}/{encode_id(key)}"
    document = made(f"{stem}.md", written, "", found.limits)
    taken = _Taken(f"{where} ({category}/{key})", _updated(written), document)
    _keep(found, found.preferences.setdefault(user, {}), stem, taken)


# -- working memory -----------------------------------------------------------------------------------------


def _take_working(found: _Found, path: str, place: str, value: Mapping[str, Any]) -> None:
    meta, content = value["meta"], value["content"]
    if not isinstance(content, str):
        raise _LeftOut("its content is not text")
    if not content.strip():
        raise _LeftOut("its content is empty: it was deleted")
    named = {kind: meta.get(f"{kind}_id") for kind in _KINDS.values()}
    ids = {kind: name for kind, name in named.items() if isinstance(name, str) and name}
    kind = _kind(place, ids)
    moments = _set({"created": meta.get("created_at"), "expires": meta.get("expires_at")})
    updated = _set({"updated": meta.get("updated_at")})
    # Where the id of its own kind is empty, aster takes the other one.
    name = ids.get(kind) or next(iter(ids.values()), _name(path))
    try:
        stem = f"{WORKING.folder}/{kind}s/{encode_id(name)}"
        document = _as_object(f"{stem}.json", content, moments.get("expires"), found.limits)
        others = _without(value, "meta", "content")
        if document:
            kept = (name, document.fields.get("expires"))
            unkept = [key for key, each in _set({**others, **meta}).items() if each not in kept]
            if unkept:
                found.left_out.append(f"{path}: a JSON object has no place for {', '.join(unkept)}")
        else:
            others |= _without(meta, *_OF_META)
            written = {**ids, **moments, "source": {"type": "aster", **updated}, **_metadata(others)}
            document = made(f"{stem}.md", written, content, found.limits)
    except (PathRefused, DocumentRefused) as error:
        raise _LeftOut(error.message) from None
    except RecursionError:
        raise _LeftOut("nested too deeply") from None
    _keep(found, found.working, stem, _Taken(path, _updated({**moments, **updated}), document))


def _kind(place: str, ids: Mapping[str, str]) -> str:
    """What a file belongs to: its nearest folder says so, else the one id that it has."""
    for above in reversed(place.split("/")[:-1]):
        if above in _KINDS:
            return _KINDS[above]
    if len(ids) != 1:
        raise _LeftOut("in no folder `threads` or `resources`, so that it is not certain whose it is")
    return next(iter(ids))


def _as_object(path: str, content: str, expires: str | None, limits: Limits) -> Document | None:
    """The content as a JSON object; None where it is none, or has an `expires` of its own."""
    if not content.lstrip().startswith("{"):
        return None
    try:
        document = parse_text(path, content.strip() + "\n", limits)
        if document.findings or "expires" in document.fields:
            return None
        document = with_field(document, "expires", expires) if expires else document
    except DocumentRefused:
        return None
    return document if expires is None or "expires" in document.fields else None


# -- Markdown -----------------------------------------------------------------------------------------------


def _inside(source: str, place: str) -> tuple[str, ...]:
    """The parts of a file's path, from the name of the source on; where that is one file, all of them."""
    parts = tuple(place.split("/"))
    if not os.path.isdir(source):
        return parts
    return parts[len(os.path.abspath(source).replace(os.sep, "/").rstrip("/").split("/")) - 1 :]


def _take_text(found: _Found, parts: tuple[str, ...], data: bytes) -> None:
    user, path = _placed(parts)
    document = parse(path, data, found.limits)
    if path == _AGENT:
        document = with_field(document, "tier", "pinned")
    found.texts.setdefault(user, []).append(document)
    found.files += 1


def _placed(parts: tuple[str, ...]) -> tuple[str, str]:
    """The user whose Markdown it is, and its path below the namespace of that user."""
    *folders, name = parts
    if folders[-1:] == [_HIDDEN] and name == "rules.md":
        return "", f"{RULE.folder}/aster.md"
    if name == PROJECT_FILE and folders[-2:-1] == ["workspaces"]:
        return "", f"projects/{encode_id(folders[-1])}/{PROJECT_FILE}"
    if "memories" in folders:
        return _of_note(list(parts[folders.index("memories") + 1 :]))
    if len(folders) == 1 and name in {PROJECT_FILE, "agent.md"}:
        return "", PROJECT_FILE if name == PROJECT_FILE else _AGENT
    raise _LeftOut("neither a note, nor project memory, nor a rule of aster: it is not where those stand")


def _of_note(parts: list[str]) -> tuple[str, str]:
    """As `_placed`, of the parts below `memories`, which begin with a namespace in aster's order."""
    user = ""
    namespace: list[str] = []
    for folder, count in NAMESPACES.items():
        if parts[0] == folder and len(parts) > count:
            ids = [encode_id(part) for part in parts[1:count]]
            if folder == "users":
                user = parts[1]
            else:
                namespace += [folder, *ids]
            del parts[:count]
    return user, "/".join([*namespace, NOTE.folder, *parts])


# -- what both have -----------------------------------------------------------------------------------------


def _name(path: str) -> str:
    return os.path.basename(path).removesuffix(".json")


def _set(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something: Go writes a moment of the year 1 for what is not set."""
    return {name: each for name, each in fields.items() if each and not str(each).startswith("0001-")}


def _updated(written: Mapping[str, Any]) -> datetime:
    """When something was updated, as far as it says so."""
    for name in ("updated", "created"):
        try:
            moment = datetime.fromisoformat(str(written.get(name)))
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _NEVER


def _without(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _metadata(others: Mapping[str, Any]) -> dict[str, Any]:
    """What there is no field for, as the field `metadata`, with what aster's own field of that name holds."""
    kept: dict[str, Any] = {}
    for name, value in others.items():
        is_own = _plain(name) == "metadata"
        if not is_own or not isinstance(value, dict | None):
            kept[name] = value
        elif value:
            kept |= value
    return {"metadata": kept} if kept else {}
