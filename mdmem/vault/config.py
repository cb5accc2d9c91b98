"""`.mdmem/config.toml`: limits, mounts and defaults of a vault.

Each key stands once, as a field of its table: type, default, what it means, and what it may be. By that a
config is read and judged, a new one is written, and the schema of all is published for editors.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from mdmem.diagnostic import Diagnostic, about_file, find_toml_place
from mdmem.document.document import ANY_SUFFIXES, DEFAULT_LIMITS, NAMED_SUFFIXES, SUFFIXES, Limits
from mdmem.document.text.globs import escaped, matcher
from mdmem.document.text.tokens import clipped
from mdmem.errors import ConfigInvalid, PathRefused, PatternInvalid
from mdmem.kind import DEFAULT_SCHEMA, KINDS, NAMESPACES, Kind
from mdmem.vault.paths import check_folder, is_under, unportable

CONFIG_PATH = ".mdmem/config.toml"
# Limits of a config. Its reader takes time by the square of the dots in a key.
MAX_BYTES, _MOST_DOTS = 256 * 1024, 2_000
MOST_BYTES = 64 * 2**20
"""No memory is larger, whatever a config says."""
_MOST_NUMBER, _LEAST = 2**63 - 1, -(2**63)  # the integers of TOML 1.0
_SIZE = 256 * 2**20
_MOST_KINDS = MOST_MOUNTS = 100
_CONFLICT = re.compile(r"^<{7} ", re.MULTILINE)
_MOST_SHOWN = 60  # characters of a wrong value
_MOST_UNKNOWN = 20  # tables and keys that are named; a stranger's config may hold thousands
_SHARE_OF_DECLARED = 10  # of a context, for each of its kinds
# The parts of a context without a kind, and the schema of memories without one.
_TAKEN = ("pinned", "found", DEFAULT_SCHEMA)
_KIND_NAME, _HASH = "[a-z][a-z0-9_-]{0,63}", "[0-9a-f]{16,64}$"

POLICIES = ("keep-latest", "keep-stronger", "merge")
SECRET_POLICIES = ("refuse", "redact", "warn", "off")
CAPTURE_POLICIES = ("off", "inbox", "apply")
_SAID_SECRETS = ("redact", "refuse", "keep")
Texts: TypeAlias = tuple[str, ...]


class Key(NamedTuple):
    """What a key means, and which values of its type it may have.

    Attributes:
        choices: the only texts that it may be; of a list, each of its texts.
        least, most: the smallest and the largest number that it may be.
        pattern: what each text of a list matches; one that does not may be a secret, and is not quoted.
    """

    doc: str
    choices: Texts = ()
    least: int = 0
    most: int = _MOST_NUMBER
    pattern: str = ""


class FileSettings(NamedTuple):
    """Which files are memories."""

    suffixes: Annotated[Texts, Key("ends of names of memories, beside .md and .json", NAMED_SUFFIXES)] = ()


class Trash(NamedTuple):
    """How much is kept for `restore`."""

    max_bytes: Annotated[int, Key("overwritten and deleted content that can be restored")] = _SIZE
    max_days: Annotated[int, Key("days for which it is kept")] = 90


class WorkingSettings(NamedTuple):
    """Working memory."""

    ttl_seconds: Annotated[int, Key("how long it lives after its last change; 0: for ever")] = 0
    schema: Annotated[str, Key("the schema of working memory that names none")] = ""
    template: Annotated[str, Key("what `working show` begins with, where there is nothing yet")] = ""


class PreferenceSettings(NamedTuple):
    """Preferences."""

    policy: Annotated[
        str,
        Key(
            "which value stays when another one is set; merge joins lists and mappings, and keeps the "
            "stronger of other values, the new one of equally strong ones",
            POLICIES,
        ),
    ] = "keep-latest"
    max_per_user: Annotated[int, Key("how many one user may have")] = 1000


class Secrets(NamedTuple):
    """Secrets that a change adds."""

    policy: Annotated[str, Key("what happens to a secret that a change adds", SECRET_POLICIES)] = "refuse"
    allow: Annotated[Texts, Key("16 digits of the SHA-256 of those that may stand here", pattern=_HASH)] = ()


class CheckSettings(NamedTuple):
    """What `check` and editors tell."""

    silenced: Annotated[
        Texts, Key("codes of findings that are not told; `secret` cannot be silenced here")
    ] = ()
    guests: Annotated[
        Texts, Key("globs of files that other tools write: there, a file that breaks a schema is a note")
    ] = ()


class LinkSettings(NamedTuple):
    """How links are read."""

    dialects: Annotated[
        Texts,
        Key("folders and the tool that reads the links of their notes: `notes/wiki: Obsidian`"),
    ] = ()


class SessionSettings(NamedTuple):
    """Conversations."""

    ignored: Annotated[Texts, Key("keys that are not kept; * is anything but a colon, ** anything")] = (
        "heartbeat",
    )
    stateless: Annotated[Texts, Key("keys that are kept, and never compacted")] = ()
    secrets: Annotated[str, Key("what happens to a secret that is said", _SAID_SECRETS)] = "redact"
    max_line_bytes: Annotated[int, Key("of one line of a log")] = _SIZE
    max_log_bytes: Annotated[int, Key("of a log that is read unasked; of a larger one the end")] = _SIZE
    summary_every: Annotated[int, Key("messages after which the summary of a session is due again")] = 10
    capture: Annotated[str, Key("what imports transcripts of coding tools", ("", "hooks"))] = ""


class ObservationSettings(NamedTuple):
    """Observation of sessions; a number that is not above 0 means the default."""

    enabled: Annotated[bool, Key("hooks observe a session in which something is new")] = False
    compact: Annotated[bool, Key("a session that was observed is also compacted")] = False
    message_tokens: Annotated[int, Key("of messages after which they are observed", least=_LEAST)] = 1000
    observation_tokens: Annotated[int, Key("of observations that are reflected on", least=_LEAST)] = 2000
    meta_at: Annotated[int, Key("reflections that are reflected on in turn", least=_LEAST)] = 5


class ResultSettings(NamedTuple):
    """Outputs of tools."""

    min_length: Annotated[int, Key("characters of an output that is shortened and kept")] = 3000
    max_summary: Annotated[int, Key("characters of the short form, about; at least 200")] = 6000
    max_bytes: Annotated[int, Key("of all outputs that are kept")] = _SIZE
    max_days: Annotated[int, Key("for which they are kept after they were used last")] = 30
    max_references: Annotated[int, Key("what outputs name: files, URLs, functions")] = 10_000


class CaptureSettings(NamedTuple):
    """What is stated in sessions."""

    policy: Annotated[str, Key("propose what is stated, or keep it at once", CAPTURE_POLICIES)] = "off"
    max_open: Annotated[int, Key("proposals that may wait")] = 50
    expires_days: Annotated[int, Key("for how long they do")] = 30


class TierSettings(NamedTuple):
    """How long memories live from the moment on that they are given a tier, in hours; 0: for ever."""

    working: Annotated[int, Key("of a memory of current work")] = 72
    episodic: Annotated[int, Key("of a memory of an event")] = 30 * 24
    semantic: Annotated[int, Key("of a memory of a fact")] = 0
    procedural: Annotated[int, Key("of how something is done")] = 0


class ConfidenceSettings(NamedTuple):
    """How sure memories are."""

    half_life_days: Annotated[int, Key("in which confidence halves, unless confirmed; 0: never")] = 180


class QualitySettings(NamedTuple):
    """How good memories are: what each dimension weighs, in percent of all that are known."""

    accuracy: Annotated[int, Key("how sure it is", most=100)] = 30
    completeness: Annotated[int, Key("title, source, day, sound links and citations", most=100)] = 20
    consistency: Annotated[int, Key("that nothing speaks against it or repeats it", most=100)] = 20
    timeliness: Annotated[int, Key("its bounds, and that cited code is unchanged", most=100)] = 15
    relevance: Annotated[int, Key("how often it was given to agents", most=100)] = 15


class SearchSettings(NamedTuple):
    """Ranked search."""

    meaning: Annotated[bool, Key("the embedder of the user is asked; false: words alone")] = True


class SharingSettings(NamedTuple):
    """Memories that users give to each other."""

    enabled: Annotated[bool, Key("a user may share memories with others: `mdmem share`")] = False


class TeamSettings(NamedTuple):
    """A vault in a database."""

    max_bytes: Annotated[int, Key("of all its files together; each machine keeps a copy")] = 4 * 2**30


class GitSettings(NamedTuple):
    """Commits that are made without being asked for."""

    commit: Annotated[
        str,
        Key(
            "what a server leaves, or each change; only in a repository of memories and no other files",
            ("off", "batch", "auto"),
        ),
    ] = "off"


class DeclaredKind(NamedTuple):
    """A kind of memory of the vault's own."""

    folder: Annotated[str, Key("the name of its folder")] = ""
    schema: Annotated[str, Key("the name of its schema")] = DEFAULT_SCHEMA
    template: Annotated[str, Key("the name of its template")] = ""


class Config(NamedTuple):
    """The whole config.

    Attributes:
        kinds: all of them, the built-in ones first.
        mounts: path of the vault to a file, as seen from the vault's folder.
        unknown: a warning for each table and key that this version of mdmem does not know.
    """

    limits: Limits = DEFAULT_LIMITS
    files: FileSettings = FileSettings()
    trash: Trash = Trash()
    working: WorkingSettings = WorkingSettings()
    preferences: PreferenceSettings = PreferenceSettings()
    secrets: Secrets = Secrets()
    check: CheckSettings = CheckSettings()
    links: LinkSettings = LinkSettings()
    sessions: SessionSettings = SessionSettings()
    observation: ObservationSettings = ObservationSettings()
    results: ResultSettings = ResultSettings()
    capture: CaptureSettings = CaptureSettings()
    tiers: TierSettings = TierSettings()
    confidence: ConfidenceSettings = ConfidenceSettings()
    quality: QualitySettings = QualitySettings()
    search: SearchSettings = SearchSettings()
    sharing: SharingSettings = SharingSettings()
    team: TeamSettings = TeamSettings()
    git: GitSettings = GitSettings()
    kinds: tuple[Kind, ...] = KINDS
    mounts: Mapping[str, str] = MappingProxyType({})
    unknown: tuple[Diagnostic, ...] = ()

    @property
    def suffixes(self) -> Texts:
        """How the name of a memory ends."""
        return SUFFIXES + self.files.suffixes


_INTRODUCTION = """\
# The config of this memory vault. Everything is optional: what is left out has its default.
# These are the keys that people change most. `mdmem help config.md` prints all of them."""
_MOST_CHANGED = ("files.suffixes", "secrets.allow", "check.guests", "sessions.capture", "git.commit")
_OF_OTHER_FORM = ("kinds", "mounts", "unknown")
_TABLES: dict[str, Any] = {n: d for n, d in Config._field_defaults.items() if n not in _OF_OTHER_FORM}
# A config may come with a stranger's files: it must not decide how much memory a program takes.
_LIMITS = {
    "max_bytes": Key("of one memory", most=MOST_BYTES),
    "max_frontmatter_bytes": Key("of its frontmatter", most=4 * 2**20),
    "max_depth": Key("how deeply values may be nested", most=100),
    "max_values": Key("values in a frontmatter; values that an alias repeats count again", most=1_000_000),
    "max_parts": Key(
        "headings, links, block ids or JSON values in a memory, of each", most=DEFAULT_LIMITS.max_parts
    ),
}


def _iterate_keys(table: Any) -> Iterator[tuple[str, Any, Key]]:
    for name, default in table._asdict().items():
        annotation = type(table).__annotations__[name]
        yield name, default, _LIMITS[name] if isinstance(table, Limits) else annotation.__metadata__[0]


def _describe_values(default: object, key: Key) -> str:
    if key.choices and isinstance(default, tuple):
        return f"a list of none, some or all of {', '.join(map(json.dumps, key.choices))}"
    if key.choices:
        return f"one of {', '.join(choice or 'empty' for choice in key.choices)}"
    if key.pattern:
        return "a list of hashes, each 16 to 64 small hexadecimal digits; a refused change names its own"
    least = "" if key.least else ", 0 or more,"
    number = f"a whole number{least} {f'at most {key.most:,}' if key.most < _MOST_NUMBER else 'of 64 bits'}"
    return {int: number, bool: "true or false", str: "a string", tuple: "a list of strings"}[type(default)]


def _is_accepted(value: Any, default: object, key: Key) -> bool:
    if isinstance(default, tuple):
        pattern = key.pattern or r"[\s\S]*"
        return isinstance(value, list) and all(
            isinstance(v, str) and re.fullmatch(pattern, v) and v in (key.choices or (v,)) for v in value
        )
    if type(value) is not type(default):
        return False
    return key.least <= value <= key.most if type(value) is int else value in (key.choices or (value,))


def _default_text() -> str:
    lines = [_INTRODUCTION]
    for changed in _MOST_CHANGED:
        table, _, wanted = changed.partition(".")
        (found,) = [each for each in _iterate_keys(_TABLES[table]) if each[0] == wanted]
        name, default, key = found
        doc = f"{key.doc}: {' | '.join(map(json.dumps, key.choices))}" if key.choices else key.doc
        lines += ["", f"[{table}]", f"{f'# {name} = {json.dumps(default)}':<34}# {doc}"]
    return "\n".join((*lines, _MOUNTS))


_MOUNTS = """
# A mount shows one file of the workspace as a memory of this vault: vault path = file, seen from the vault.
[mounts]
"""
DEFAULT_TEXT = _default_text()


def schema() -> dict[str, Any]:
    """Build the JSON Schema of a config, which `docs/config.schema.json` publishes."""

    def table(defaults: Any) -> dict[str, Any]:
        forms: dict[str, Any] = {}
        for name, default, key in _iterate_keys(defaults):
            form: dict[type, dict[str, Any]] = {
                bool: {"type": "boolean"},
                int: {"type": "integer", "minimum": key.least, "maximum": key.most},
                str: {"enum": [*key.choices]} if key.choices else {"type": "string"},
                tuple: {
                    "type": "array",
                    "items": {"enum": [*key.choices]}
                    if key.choices
                    else {"type": "string", "pattern": f"^{key.pattern}"},
                },
            }
            forms[name] = {
                "description": key.doc,
                "default": [*default] if type(default) is tuple else default,
                **form[type(default)],
            }
        return {"type": "object", "properties": forms, "additionalProperties": False}

    kinds = {"type": "object", "patternProperties": {f"^{_KIND_NAME}$": table(DeclaredKind())}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The config of a memory vault of mdmem",
        "type": "object",
        "properties": {
            **{name: table(defaults) for name, defaults in _TABLES.items()},
            "kinds": {**kinds, "maxProperties": _MOST_KINDS, "additionalProperties": False},
            "mounts": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "additionalProperties": False,
    }


@dataclass
class _Source:
    """The text of a config, the path by which errors name it, and what it holds that is unknown."""

    path: str
    text: str
    unknown: list[Diagnostic] = field(default_factory=list)

    def refusal(self, reason: str, remedy: str, table: str, key: str = "") -> ConfigInvalid:
        line = self._find_line(table, key)
        where = f"line {line}: " if line else ""
        return ConfigInvalid(path=self.path, reason=where + reason, remedy=remedy, line=line)

    def pass_over(self, what: str, name: str, known: Sequence[str], table: str, key: str = "") -> None:
        """Note a table or a key that is unknown: a later version of mdmem may have written it."""
        if len(self.unknown) > _MOST_UNKNOWN:
            return
        if len(self.unknown) == _MOST_UNKNOWN:
            what, name = "more of it", ""
        from difflib import get_close_matches  # noqa: PLC0415 - seldom needed

        near = get_close_matches(name[:_MOST_SHOWN], known)
        hint = f"nearest names: {', '.join(near)}" if near else f"known: {', '.join(known)}"
        line = self._find_line(table, key) or 1
        message = f"{what} is unknown: it is passed over"
        found = about_file(self.path, "config-unknown", message, hint, line=line, severity="warning")
        self.unknown.append(found)

    def _find_line(self, table: str, key: str) -> int | None:
        """Return the line of a table, or of a key of it; None where that is not certain."""
        numbers = (key and self._lines.get(f"{table}.{key}")) or self._lines.get(table) or []
        return numbers[0] if len(numbers) == 1 else None

    @cached_property
    def _lines(self) -> dict[str, list[int]]:
        """The lines in which each table begins, and each key stands."""
        section, lines = "", dict[str, list[int]]()
        for number, line in enumerate(self.text.split("\n"), 1):
            name = re.sub(r"[][\s\"']", "", line.partition("=")[0].partition("#")[0])
            if line.lstrip().startswith("["):
                section = name
            lines.setdefault(name if name == section else f"{section}.{name}".lstrip("."), []).append(number)
        return lines

    def settings(self, table: str, given: Any, defaults: Any) -> Any:
        if not isinstance(given, dict):
            raise self.refusal(f"{table} is a table, not {_show_value(given)}", f"write [{table}]", table)
        keys = {name: (default, key) for name, default, key in _iterate_keys(defaults)}
        read = {}
        for name, value in given.items():
            if name not in keys:
                self.pass_over(f"[{table}] {_show_value(name)}", name, [*keys], table, name)
                continue
            default, key = keys[name]
            if not _is_accepted(value, default, key):
                may_be_secret = bool(key.pattern)
                shown = "" if may_be_secret else f", not {_show_value(value)}"
                reason = f"[{table}] {name} is {_describe_values(default, key)}{shown}"
                raise self.refusal(reason, "", table, name)
            read[name] = tuple(value) if isinstance(value, list) else value
        return defaults._replace(**read)


def _show_value(value: object) -> str:
    try:
        return clipped(repr(value), _MOST_SHOWN)
    except ValueError:
        return "a number of thousands of digits"


def parse(text: str, path: str = CONFIG_PATH) -> Config:
    """Read a config.

    Raises:
        ConfigInvalid: not TOML, or a value that the key cannot have.
    """
    if text in ("", DEFAULT_TEXT):
        return Config()  # without the time to import tomllib
    import tomllib  # noqa: PLC0415 - start-up

    source = _Source(path, text)
    if text.count(".") > _MOST_DOTS:
        raise ConfigInvalid(path=path, reason=f"it has more than {_MOST_DOTS:,} dots", remedy="shorten it")
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = f"not TOML: {error}"
        line, column = find_toml_place(text, error) or (None, None)
        remedy = "correct it there: a line is [table] or key = value, with a text in quotes"
        if conflict := _CONFLICT.search(text):
            line, column = text.count("\n", 0, conflict.start()) + 1, 1
            reason = f"a merge left a conflict from line {line} on"
            remedy = "keep what is right of both sides, and remove git's markers"
        raise ConfigInvalid(path=path, reason=reason, remedy=remedy, line=line, column=column) from None
    mounts, kinds = tables.pop("mounts", {}), tables.pop("kinds", {})
    if not isinstance(mounts, dict) or not all(isinstance(target, str) for target in mounts.values()):
        reason = f"[mounts] maps paths of the vault to files, both as strings, not {_show_value(mounts)}"
        raise source.refusal(reason, "", "mounts")
    settings = {}
    for name, table in tables.items():
        if name in _TABLES:
            settings[name] = source.settings(name, table, _TABLES[name])
        else:
            source.pass_over(_show_value(name), name, [*_TABLES, "kinds", "mounts"], name)
    try:
        matcher(settings["check"].guests if "check" in settings else ())
    except PatternInvalid as error:
        raise source.refusal(f"[check] guests: {error.message}", error.hint, "check", "guests") from None
    declared = _declared_kinds(source, kinds)
    return Config(**settings, kinds=declared, mounts=mounts, unknown=tuple(source.unknown))


def with_texts(text: str, key: str, texts: Iterable[str]) -> str:
    """Return the text of a config in which the list at `key`, such as `check.guests`, holds other texts.

    Nothing else of it changes.

    Raises:
        ConfigInvalid: it cannot be read, would be too large, or has the list in several lines.
    """
    table, _, name = key.partition(".")
    old, texts = _texts_of(text, key), tuple(texts)
    if old == texts:
        return text
    line = f"{name} = {json.dumps(texts, ensure_ascii=False)}"
    with_key = rf"^(\[{table}\].*(?:\n(?!\[).*)*?\n)(?:# )?{name} = \[.*?\](?= *(?:#|$))"
    changed, count = re.subn(with_key, lambda found: found[1] + line, text, count=1, flags=re.MULTILINE)
    if not count:
        with_table = rf"^\[{table}\].*"
        changed, count = re.subn(with_table, lambda found: f"{found[0]}\n{line}", text, flags=re.MULTILINE)
    changed = changed if count else f"{text}\n[{table}]\n{line}\n"
    with suppress(ConfigInvalid):
        before, after = (parse(each)._replace(unknown=()) for each in (text, changed))
        wanted = before._replace(**{table: getattr(before, table)._replace(**{name: texts})})
        if after == wanted and len(changed.encode()) <= MAX_BYTES:
            return changed
    reason, remedy = f"[{table}] {name} cannot be changed", f"write `{line}` there"
    raise ConfigInvalid(path=CONFIG_PATH, reason=reason, remedy=remedy)


def _texts_of(text: str, key: str) -> Texts:
    table, _, name = key.partition(".")
    texts: Texts = getattr(getattr(parse(text), table), name)
    return texts


class ConfigChange(NamedTuple):
    """What the lists of a config gain and lose beside a change of memories: keys, and texts.

    Attributes:
        back: the hashes of the config before and after the change that this one takes back, if it does: as
            long as nothing else has changed, every byte is put back; None stands for no file.
    """

    gains: tuple[tuple[str, str], ...] = ()
    loses: tuple[tuple[str, str], ...] = ()
    back: tuple[str | None, str | None] | None = None

    def change(self, text: str) -> str:
        """Return the text of a config with the change made; see `with_texts`."""
        for key in dict.fromkeys(key for key, _ in (*self.gains, *self.loses)):
            kept = (each for each in _texts_of(text, key) if (key, each) not in self.loses)
            gained = (each for changed, each in self.gains if changed == key)
            text = with_texts(text, key, dict.fromkeys((*kept, *gained)))
        return text


_NAMES_FOLDERS = ("check.guests", "links.dialects")


def find_change(before: str, after: str) -> ConfigChange:
    """Return what an import or a move changed in a config, from its text before and after."""
    old, new = (
        [(key, each) for key in _NAMES_FOLDERS for each in _texts_of(text, key)] for text in (before, after)
    )
    gains = tuple(each for each in new if each not in old)
    return ConfigChange(gains, tuple(each for each in old if each not in new))


def follow_moves(config: Config, folders: Mapping[str, str]) -> ConfigChange | None:
    """Return the change by which `check.guests` and `links.dialects` follow folders that move.

    Args:
        folders: their paths in the vault, old to new.
    """
    gains, loses = list[tuple[str, str]](), list[tuple[str, str]]()
    for key, spell in (("check.guests", escaped), ("links.dialects", str)):
        table, _, name = key.partition(".")
        old: Texts = getattr(getattr(config, table), name)
        new = [_follow(each, folders, spell) for each in old]
        # The last glob that fits decides, so those behind the first that changes keep their places.
        first = next(
            (at for at, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]), len(old)
        )
        gains += ((key, each) for each in new[first:])
        loses += ((key, each) for each in old[first:])
    return ConfigChange(tuple(gains), tuple(loses)) if gains else None


def _follow(text: str, folders: Mapping[str, str], spell: Callable[[str], str]) -> str:
    """Return a glob, or a folder with its tool, at the new place of what it names."""
    sign = "!" if text.startswith("!") and spell is escaped else ""
    path, colon, tool = (text[len(sign) :], "", "") if spell is escaped else text.rpartition(":")
    for old, new in folders.items():
        if is_under(path, spell(old)):
            return f"{sign}{spell(new)}{path[len(spell(old)) :]}{colon}{tool}"
    return text


def _declared_kinds(source: _Source, tables: Any) -> tuple[Kind, ...]:
    if not isinstance(tables, dict) or len(tables) > _MOST_KINDS:
        reason = f"[kinds] has a table for each kind, {_MOST_KINDS} at most"
        raise source.refusal(reason, 'write [kinds.recipe] and folder = "recipes"', "kinds")
    kinds = list(KINDS)
    for name, given in tables.items():
        table = f"kinds.{name}"
        if not re.fullmatch(_KIND_NAME, name):
            remedy = "begin with a small letter, and go on with up to 63 of a-z, 0-9, - and _"
            raise source.refusal(f"[kinds] {_show_value(name)} cannot name a kind", remedy, table)
        declared: DeclaredKind = source.settings(table, given, DeclaredKind())
        if reason := _fault_of_kind(name, declared.folder, kinds):
            remedy = "give it another name" if reason.startswith("there") else 'name one folder, as "recipes"'
            raise source.refusal(f"[{table}] {reason}", remedy, table, "folder")
        title, share = declared.folder.capitalize(), _SHARE_OF_DECLARED
        kinds.append(Kind(name, *declared, title=title, share=share, is_remembered=True))
    return tuple(kinds)


def _fault_of_kind(name: str, folder: str, kinds: Sequence[Kind]) -> str:
    """Return why a vault cannot declare a kind beside `kinds`; empty when it can."""
    if name in _TAKEN or any(name in {kind.name, kind.part} for kind in kinds):
        return "there is something else of this name"
    try:
        if folder != check_folder(folder) or not folder or "/" in folder or folder.endswith(ANY_SUFFIXES):
            return f"folder is the name of one folder, not {folder!r}"
    except PathRefused as error:
        return f"folder: {error.message}"
    if fault := unportable(folder)[0]:
        return f"folder: {fault}"
    names = {each.casefold() for kind in kinds for each in (kind.name, kind.part)}
    if folder.casefold() in {*_TAKEN, *NAMESPACES, *names}:
        return f"folder {folder!r} belongs to something else, or differs only in case from what does"
    return ""


def check_names(
    config: Config, what: Literal["schema", "template"], names: Callable[[], Sequence[str]]
) -> None:
    """Check the schemas, or the templates, that a config names; `names` gives those that there are."""
    declared = config.kinds[len(KINDS) :]
    named = [(f"[kinds.{kind.name}]", kind.name, str(getattr(kind, what))) for kind in declared]
    if what == "schema" and config.working.schema:
        named.append(("[working]", "", config.working.schema))
    known = names() if named else ()
    for table, kind, name in named:
        if name and name not in known:
            reason, remedy = f"there is no {what} {name!r}", f"known: {', '.join(known)}"
        elif kind in known and name != kind:
            reason = f"there is a {what} {kind!r} as well, which is not the one of this kind"
            remedy = "give the kind another name"
        else:
            continue
        raise ConfigInvalid(path=CONFIG_PATH, reason=f"{table} {what}: {reason}", remedy=remedy)
