"""Project memory: the `AGENTS.md` of a namespace, which people write and which is added to in place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from mdmem.diagnostic import Span
from mdmem.document import section as text_section
from mdmem.document.arguments import check_natural, json_value, require_text
from mdmem.document.bullets import Bullet, bullets, normal, written
from mdmem.document.document import Document, parse_text
from mdmem.document.edit import TextEdit, splice, spliced
from mdmem.document.field import merged
from mdmem.document.markdown.blocks import Section
from mdmem.document.moment import DAY
from mdmem.document.text.lines import with_newline
from mdmem.document.text.regex import regex
from mdmem.errors import EditRefused, SectionNotFound, Usage
from mdmem.memory import history
from mdmem.memory.verbs import KindVerbs, R
from mdmem.vault.plan import EditPlan, edit
from mdmem.vault.template.filters import heading as safe_title, line as one_line

_TEMPLATE = "project"
_TITLE = "Project memory"
_MARKS = regex(r"(#{1,6})[ \t]+(.*)", re.DOTALL)
_MARKER = regex(r"\A\s*[-+*][ \t]+(?=.*[^-+*_\s])(\S[^\r\n]*)\s*\Z")
_DATE = regex(rf"{DAY}: ")
# Headings of sections that say what was chosen, in English and Chinese.
_CHOICES = regex(
    r"\b(?:preferences?|decisions?|choices?)\b|偏好|决策|決策|决定|決定|选择|選擇", re.IGNORECASE
)
_COMMENT = "<!--"


class Project(KindVerbs[R]):
    """The project memory of one namespace, `AGENTS.md`.

    Whatever stands in it stays, byte for byte: only the entry that is asked for is written. A section is
    named by its title or heading path (`Design > Index`); upper and lower case count only where titles
    differ in nothing else. A missing section is made at the end, a missing file from the template `project`.
    """

    # -- reading ------------------------------------------------------------------------------------------

    def load(self) -> Document:
        """Return the file.

        Raises:
            MemoryNotFound: there is none yet.
        """
        return self._vault.read(self._vault.project_file)

    def summary(self, max_chars: int | None = None) -> str:
        """Return the sections of preferences, decisions and choices; without any, the first paragraph.

        Args:
            max_chars: the most characters to return, including a note on things left out, which is never cut.

        Raises:
            MemoryNotFound: there is no file yet.
        """
        document = self.load()
        reached = 0
        parts = []
        for section in document.sections:
            if section.span.start < reached or not _CHOICES.search(section.heading.title):
                continue
            reached = section.span.end
            if _has_text(document, section):
                own = text_section.end_before_block(document, section.span)
                parts.append(document.text[slice(*own)].strip())
        text = "\n\n".join(parts) if parts else _find_first_paragraph(document)
        return _cut_text(text, max_chars, document.path)

    # -- changing -----------------------------------------------------------------------------------------

    def append(self, section: str, entry: str, *, date: bool = False) -> R:
        """Add a bullet to a section, in the style of the list that ends it.

        One that stands there, with a date before it or without, is kept as it is.

        Args:
            section: its title or heading path, with or without `#` marks.
            entry: Markdown; further lines are indented, so that all of it stays in the bullet. The marker
                of an entry that is one bullet already is not doubled.
            date: write today's date (UTC) before it: `2024-01-31: entry`.

        Raises:
            Usage: the section or the entry is blank.
            SectionAmbiguous: several sections have this title.
            SectionNotFound: the heading path leads nowhere.
            EditRefused: the bullet would stand in code or HTML that is never closed.
        """
        text = normal(_MARKER.sub(r"\1", entry))
        if not text:
            raise Usage(problem="the entry is blank", remedy="say what to add")

        def change(document: Document, found: Section | None) -> _Wanted:
            present = [b.text for b in _list_bullets(document, found)]
            if text in present or text in [_DATE.sub("", each, count=1) for each in present]:
                return _Wanted((), ())
            return _Wanted((), (f"{self._clock():%Y-%m-%d}: {text}" if date else text,))

        return self._change_section(section, f"append to {section}", change)

    def step(self, id: str, status: str, note: str = "", *, section: str = "Workflow") -> R:  # noqa: A002 - its name
        """Say how a step of the workflow stands: the bullet `[id] status: note`, replaced where it stands.

        Runs of blanks and line ends become one space. What is nested below the bullet stays.

        Raises:
            Usage: `id` or `status` is blank, or `id` has brackets.
            EditRefused: several bullets have this id.
        """
        require_text(id=id, status=status, note=note)
        name, state, text = one_line(id), one_line(status), one_line(note)
        if not name or not state:
            raise Usage(problem="a step has an id and a status", remedy="give both")
        if "[" in name or "]" in name:
            raise Usage(problem=f"the id of a step has no brackets: {name!r}", remedy="leave them out")
        new = f"[{name}] {state}: {text}" if text else f"[{name}] {state}"

        def change(document: Document, found: Section | None) -> _Wanted:
            same = [b for b in _list_bullets(document, found) if b.text.startswith(f"[{name}]")]
            bullet = _require_one(document, same, f"[{name}]")
            return _Wanted((), (new,)) if bullet is None else _Wanted((TextEdit(*bullet.head, new),), ())

        return self._change_section(section, f"step {name}: {state}", change)

    def params(self, values: Mapping[str, Any], *, section: str = "Parameters") -> R:
        """Record parameters: bullets `name: value`, each replaced where it stands.

        Texts are written in one line, other values as JSON. A name may stand there in bold or as code.

        Raises:
            Usage: a name is blank or has a colon, or a value is not a JSON value.
            EditRefused: several bullets have the same name.
        """
        new = {_check_parameter(name): _format_value(value) for name, value in values.items()}

        def change(document: Document, found: Section | None) -> _Wanted:
            present = _list_bullets(document, found)
            replaced, added = [], []
            for name, value in new.items():
                matches = {b: m for b in present if (m := _match_parameter(document, b, name))}
                bullet = _require_one(document, list(matches), f"{name}:")
                if bullet is None:
                    added.append(f"{name}: {value}".rstrip())
                else:
                    at = matches[bullet].end()
                    lead = "" if document.text[at - 1] in " \t：" else " "  # noqa: RUF001 - as in `_match_parameter`
                    replaced.append(TextEdit(at, bullet.head.end, lead + value if value else ""))
            return _Wanted(tuple(replaced), tuple(added))

        return self._change_section(section, f"record {', '.join(new)}", change)

    # -- what the verbs share -----------------------------------------------------------------------------

    def _change_section(
        self, section: str, action: str, change: Callable[[Document, Section | None], _Wanted]
    ) -> R:
        if not section.strip(" #\t\r\n"):
            raise Usage(problem="the section is blank", remedy="give its title")
        # Rendered before anything is built: a plan may be built again under the lock, a template never is.
        path, templates = self._vault.project_file, self._vault.templates
        is_there = self._vault.exists(path)
        start = "" if is_there else templates.render(_TEMPLATE, {"title": _TITLE}, now=self._clock())

        def build() -> EditPlan:
            before = self._vault.find(path)
            document = before or parse_text(path, start or f"# {_TITLE}\n", self._vault.config.limits)
            found = _find_section(document, section)
            edits = _make_edits(document, section, found, change(document, found))
            if before and edits:
                return edit(before, edits, f"{path}: {action}")
            if not edits:
                return EditPlan(changes=(), message=f"{path}: nothing to do: {action}")
            text = splice(document.text, edits)
            return history.creation(path, text, f"{path}: {action}")

        return self._run(build)


class _Wanted(NamedTuple):
    """What becomes of a section's bullets: edits inside those that stand there, and the texts of new ones."""

    replaced: tuple[TextEdit, ...]
    added: tuple[str, ...]


def _find_section(document: Document, wanted: str) -> Section | None:
    level, title = _parse_heading(wanted)
    for name, folded in ((wanted, False), (f"{'#' * (level or 0)} {title}", True)):
        with suppress(SectionNotFound):
            return text_section.find_section(document, name, folded=folded)
    return text_section.find_section(document, wanted) if text_section.SEPARATOR in title else None


def _parse_heading(wanted: str) -> tuple[int | None, str]:
    marks = _MARKS.fullmatch(wanted.strip())
    return (len(marks[1]) if marks else None), safe_title(wanted)


def _list_bullets(document: Document, found: Section | None) -> list[Bullet]:
    return bullets(document, found.own) if found else []


def _require_one(document: Document, found: Sequence[Bullet], what: str) -> Bullet | None:
    if len(found) > 1:
        lines = ", ".join(str(bullet.line) for bullet in found)
        reason = f"{len(found)} bullets begin with {what!r}, in lines {lines}"
        raise EditRefused(path=document.path, reason=reason, remedy="keep one of them")
    return found[0] if found else None


def _check_parameter(name: str) -> str:
    clean = one_line(name).strip("*_`")
    if not clean or ":" in clean or "：" in clean:  # noqa: RUF001 - the colon of Chinese text
        raise Usage(problem=f"a parameter's name has no colon and is not blank: {name!r}")
    return clean


def _format_value(value: Any) -> str:
    plain = json_value(value)
    return one_line(plain) if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _match_parameter(document: Document, bullet: Bullet, name: str) -> re.Match[str] | None:
    pattern = rf"[*_`]*{re.escape(name)}[*_`]*[ \t]*[:：][*_`]*[ \t]*"  # noqa: RUF001 - as in `_check_parameter`
    return re.compile(pattern).match(document.text, *bullet.head)


# ------------------------------------------------------------------------------------------------- the edits


def _make_edits(document: Document, section: str, found: Section | None, wanted: _Wanted) -> list[TextEdit]:
    edits = [e for e in wanted.replaced if document.text[e.start : e.end] != e.new]
    if wanted.added and found:
        present = bullets(document, found.own)
        like = present[-1] if present else None
        between = "\n\n" if like and like.apart and len(present) > 1 else "\n"
        block = between.join(written(each, like) for each in wanted.added)
        edits += text_section.append_to_section(document, text_section.SEPARATOR.join(found.path), block)
    elif wanted.added:
        level, title = _parse_heading(section)
        block = "\n".join(map(written, wanted.added))
        edits += text_section.append_block(document, f"{'#' * (level or 2)} {title}\n\n{block}")
    return _verify_edits(document, section, found, wanted, merged(edits)) if edits else []


def _verify_edits(
    document: Document, section: str, found: Section | None, wanted: _Wanted, edits: list[TextEdit]
) -> list[TextEdit]:
    """Return the edits, when they change no heading, and their texts stand where they should."""
    after = spliced(document, edits)
    titles = [(h.level, h.title) for h in document.headings]
    if found is None:
        level, title = _parse_heading(section)
        titles.append((level or 2, title))
    if [(h.level, h.title) for h in after.headings] == titles:
        number = document.sections.index(found) if found else len(titles) - 1
        texts = [b.text for b in bullets(after, after.sections[number].own)]
        if all(each in texts for each in wanted.added):
            return edits
    reason = f"a bullet in {section!r} would end in code or HTML that is not closed, or take in a heading"
    raise EditRefused(path=document.path, reason=reason, remedy="close what is open, or edit the text itself")


# ----------------------------------------------------------------------------------------------- the summary


def _has_text(document: Document, section: Section) -> bool:
    inside = [s for s in document.sections if section.span.start <= s.span.start < section.span.end]
    return any(document.text[slice(*s.own)].strip() for s in inside)


def _find_first_paragraph(document: Document) -> str:
    start = document.body_span.start
    first = document.headings[0].span.start if document.headings else len(document.text)
    for region in (Span(start, first), *(s.own for s in document.sections)):
        text = with_newline(document.text[slice(*region)], "\n")
        paragraphs = (part.strip() for part in re.split(r"\n[ \t]*\n", text))
        found = next((part for part in paragraphs if part and not part.startswith(_COMMENT)), None)
        if found:
            return found
    return ""


def _cut_text(text: str, max_chars: int | None, path: str) -> str:
    if max_chars is None:
        return text
    check_natural(max_chars=max_chars)
    if len(text) <= max_chars:
        return text
    note = "[{left} of {total} characters left out: see {path}]"
    room = max_chars - len(note.format(left=len(text), total=len(text), path=path)) - 2
    lines = text.splitlines(keepends=True)
    while lines and sum(map(len, lines)) > room:
        lines.pop()
    kept = "".join(lines).rstrip()
    rest = note.format(left=len(text) - len(kept), total=len(text), path=path)
    return f"{kept}\n\n{rest}" if kept else rest
