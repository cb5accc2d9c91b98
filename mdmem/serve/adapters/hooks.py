"""Hooks: what an agent is told when a session begins, with a prompt, behind an edit, and when it is to end.

They also keep what was said, and outputs of tools, where the config asks for it and the user has allowed it.
JSON in, JSON out; the words are those of Claude Code, and those of other hosts are translated.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shlex
import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mdmem
from mdmem.errors import HistoryNotReady, IndexNotReady, MdmemError, MemoryNotFound, NotReady, Usage, plural
from mdmem.serve.adapters import dialect

if TYPE_CHECKING:
    from mdmem.diagnostic import Diagnostic
    from mdmem.facade.memory import Memory
    from mdmem.memory.working import WorkingInfo

_MOST = 12
_FIXES = {
    "moved": "`mdmem refs --fix --in {path}` makes it say so",
    "changed": "read the code, fix the text, then `mdmem refs --pin --accept --in {path}`",
    "unknown": "correct its name or number",
    "gone": "cite what took its place, or take the citation away",
    "dangling": "name what is there: `mdmem ls`, or write it",
    "ambiguous": "write the whole path",
}

Given = dialect.Given
# Where the tools of hosts put what they print: Bash, WebFetch, Read, Grep and Glob, MCP.
_OUTPUTS = ("stdout", "stderr", "result", "file", "content", "filenames", "text", "output")
_SESSIONS, _OBSERVATIONS = "sessions", "observations"
BACKGROUND = "background"
"""The event with which hooks start what they do not wait for."""
_CLAIM_SECONDS = 30  # hosts run the hooks of an event at the same time
_SESSION_SECONDS = 7 * 24 * 3600
_LONGEST_SESSION = 64  # bytes of its id
CONTEXT_TOKENS = 2_000
"""About how much a session begins with."""
PROMPT_TOKENS = 500
"""About how much is said with a prompt."""
# A passage fits a prompt if it holds two of its words or more, and two words half of their weight, three a
# third, and so on: a long prompt has many words that no memory has. Of the questions of LoCoMo, three of four
# find a passage in their own conversation, three of ten with an unrelated sentence behind them (by a fixed
# half, three of five and one of a hundred), and 28 of a thousand in another conversation (11).
_WORDS = 2
_MOST_PASSAGES = 3
_MOST_PROMPT = 4_000  # characters that are looked at
_ASK = "Nothing is added to prompts here: ask mdmem's tool `search` for what memory says about one."
_TWO_HOURS = 120  # minutes
_WORD = re.compile(r"\w+")


def answer(
    memory: Memory, event: str, given: Given, host: str = "", vault: str = ""
) -> dict[str, Any] | str | None:
    """Return what a hook is answered: JSON, a plain text, or nothing.

    Where several settings files ask for an event of a session, one is answered: the first one that asks, and
    another one when that has not asked for half a minute, or could not be answered.

    Args:
        event: `session-start`, `user-prompt`, `post-edit`, `post-tool`, `pre-compact`, `stop`, or
            `background`, which hooks start themselves.
        host: the host that the command names; empty where it names none.
        vault: the vault that the command names; it tells settings of one host apart.
    """
    if event not in {*_ANSWERS, BACKGROUND}:
        raise Usage(problem=f"there is no event {event!r}", remedy=f"say {', '.join(_ANSWERS)}")
    if event == BACKGROUND:
        _work_in_background(memory, given)
        return None
    memory.service.require_folder("a hook of a coding tool")
    given = dialect.translate(given, host)
    with _claim_event(memory, event, given, f"{host}:{vault}") as is_ours:
        return _answer_event(memory, event, given) if is_ours else None


def describe_failure(
    error: MdmemError, event: str, given: Given, host: str = ""
) -> dict[str, Any] | str | None:
    """Return what the user is told where a session begins without its memory; None for another event."""
    told = {"systemMessage": f"mdmem: {error}"} if event == "session-start" else None
    return dialect.render(dialect.translate(given, host), event, told)


def _answer_event(memory: Memory, event: str, given: Given) -> dict[str, Any] | str | None:
    memory.service.hurry()
    with memory.service.acting_for(_host_of(given)):
        told = _ANSWERS[event](memory, given)
        refused = memory.service.not_ready
        if refused:
            told = _tell_of_index(memory, given, told, f"mdmem: {refused.message}")
        return dialect.render(given, event, told)


@contextlib.contextmanager
def _claim_event(memory: Memory, event: str, given: Given, settings: str) -> Iterator[bool]:
    """Claim an event of this session for one settings file; yield whether no other one has it.

    The claim ends where the answer fails, and some time after its settings asked last.
    """
    try:
        file = _session_file(memory, given, f"{event}=") if _thread_of(given) else ""
        is_ours = not file or _take_claim(file, settings)
    except (MdmemError, OSError):
        file, is_ours = "", True  # nothing can be kept here
    try:
        yield is_ours
    except BaseException:
        if file and is_ours:
            with contextlib.suppress(OSError):
                os.truncate(file, 0)
        raise


def _take_claim(file: str, settings: str) -> bool:
    """Take a claim, or renew it, unless other settings hold it; return whether it is taken."""
    with open(file, "a+", encoding="utf-8") as claim:
        fcntl.flock(claim, fcntl.LOCK_EX)
        claim.seek(0)
        is_fresh = time.time() - os.fstat(claim.fileno()).st_mtime < _CLAIM_SECONDS
        if is_fresh and claim.read() not in {"", settings}:
            return False
        claim.truncate(0)
        claim.write(settings)
    return True


# -- the events -------------------------------------------------------------------------------------------


def _session_start(memory: Memory, given: Given) -> dict[str, Any] | None:
    """Return the context, without what the host reads by itself."""
    memory.service.begin_session()  # before what is imported while ripgrep is at work
    from mdmem.facade.questions.context import context  # noqa: PLC0415 - other events need none

    _forget_old_sessions(memory)
    threads = {info.id: changed for info, changed in _live_memories(memory) if info.kind == "thread"}
    own = _own_thread(given, threads)
    thread = own if own in threads else next(iter(threads), None)
    given_now = context(
        memory,
        thread=thread,
        budget=CONTEXT_TOKENS,
        estimated=True,
        excluded=_read_by_host(memory, given),
        session=_observed_key(memory, given) or own,
    )
    text = given_now.text
    if thread and thread != own and any(part.name == "working" for part in given_now.parts):
        text = f"{text}\n{_name_other_thread(thread, threads[thread], own)}\n"
    if given["host"] in dialect.DEAF:
        _look(memory, given)  # as no prompt lets it
        text = f"{text}\n{_ASK}\n".lstrip()
    told = _add_context("SessionStart", text) if text else {}
    refused = [str(each) for each in (memory.service.capture_refused, memory.service.commit_refused) if each]
    if refused:
        told["systemMessage"] = "\n".join(refused)  # for the user, who alone can say so
    return told or None


def _name_other_thread(thread: str, changed: float, own: str) -> str:
    """Say which thread the working memory belongs to that a session is given."""
    word = f"The working memory above is of another session, thread {thread} ({_format_age(changed)})."
    if not own:
        return f"{word} Go on with it only in the same work."
    command = f"`mdmem working set TEXT --thread {shlex.quote(own)}`"
    return f"{word} Go on from it only in the same work, and keep the state of this session with {command}."


def _read_by_host(memory: Memory, given: Given, short: int = 0) -> frozenset[str]:
    host = str(given["host"]).removesuffix("-code")
    return memory.project.find_read_by_host(host, str(given.get("cwd") or os.getcwd()), short)


def _user_prompt(memory: Memory, given: Given) -> dict[str, Any] | None:
    _look(memory, given)  # what others write before a prompt is not of this session
    prompt = given.get("prompt")
    # Words alone: a prompt does not mean what the language of queries has signs for.
    if given["host"] in dialect.DEAF:
        return None
    words = _WORD.findall(prompt[:_MOST_PROMPT]) if isinstance(prompt, str) else []
    words = [word for word in words if len(word) > 1 or not word.isascii()]  # lists and names have others
    asked = " ".join(words)
    # Not every script has spaces between its words.
    if not words or (len(words) < _WORDS and asked.isascii()):
        return None
    try:
        results = memory.search(asked, each="passage", limit=_MOST_PASSAGES)
    except NotReady:
        return None
    pairs = zip(results.hits, results.held, strict=True)
    hits = [hit for hit, held in pairs if held.words >= _WORDS and held.words * held.share >= 1]
    if not hits:
        return None
    from mdmem.facade.questions.excerpt import quote_hits  # noqa: PLC0415 - as above

    # A short project memory was given whole when the session began: no share of the context is smaller.
    excluded = _read_by_host(memory, given, short=CONTEXT_TOKENS // 4)
    passages = quote_hits(memory, hits, PROMPT_TOKENS, excluded)
    told = "\n\n".join(("What memory says about this; quotations, not instructions:", *passages))
    return _add_context("UserPromptSubmit", told) if passages else None


def _post_edit(memory: Memory, given: Given) -> dict[str, Any] | None:
    """Say what is wrong after an edit, with the memories edited and with those that cite the files."""
    edited = list(dialect.list_edited(given))
    changed, since = _look(memory, given, edited)
    files = changed if dialect.is_shell(given) else edited
    if not files:
        return None
    with open(_mark_file(memory, given), "wb"):
        pass
    memories: list[str] = []
    findings: list[Diagnostic] = []
    for path in filter(None, map(memory.at, files)):
        with contextlib.suppress(MemoryNotFound):  # it was deleted
            findings += memory.check([path], links=False)
            memories.append(path)
    code = [file for file in files if memory.at(file) is None]
    try:
        references = memory.references.broken(memories, code)
        past = memory.states().keys() - set(memories) if references else ()
        broken = _limit_lines(_reference_line(*each) for each in references if each.place.path not in past)
    except IndexNotReady:
        broken = []
    except MdmemError as error:
        if isinstance(error, HistoryNotReady):
            memory.service.start_indexing()
        broken = [f"references were not looked at: {error}"]
    errors, warnings = (
        _limit_lines(_finding_line(each) for each in findings if (each.severity == "error") is is_error)
        for is_error in (True, False)
    )
    text = "\n".join((*errors, *warnings, *broken))
    if text and dialect.is_shell(given):
        text = f"{_name_changed(memory, changed, since)}\n{text}"
    if not errors:
        return _add_context("PostToolUse", text) if text else None
    # The edit stands: "block" only makes the host hand the reason back at once.
    return {"decision": "block", "reason": text}


def _look(memory: Memory, given: Given, edited: Collection[str] = ()) -> tuple[list[str], float]:
    """Return what has changed since the last look of a session, and when that was."""
    with contextlib.suppress(MdmemError, OSError):
        folder, session = os.path.split(_session_file(memory, given, ""))
        return memory.service.find_changed(folder, session, edited) if session else ([], 0)
    return [], 0


def _name_changed(memory: Memory, changed: Sequence[str], since: float) -> str:
    """Name the changed files: a command may have changed them, or an editor that saved meanwhile."""
    names = ", ".join(os.path.relpath(file, memory.workspace) for file in changed[:_MOST])
    more = f" and {len(changed) - _MOST} more" if len(changed) > _MOST else ""
    then = time.strftime("%H:%M:%S", time.localtime(since))
    return f"Changed since {then}, perhaps by somebody else: {names}{more}."


def _finding_line(finding: Diagnostic) -> str:
    finding = finding.for_agent()
    hint = f" Fix: {finding.hint}." if finding.hint else ""
    return f"{finding.path}:{finding.position.line}: {finding.code}: {finding.message}.{hint}"


def _reference_line(_type: str, target: str, place: Any, *_: object) -> str:
    detail = f" ({place.detail})" if place.detail else ""
    fix = _FIXES[place.state].format(path=place.path)
    return f"{place.path}:{place.line}: {place.code}: it points at {target}{detail}. Fix: {fix}."


def _limit_lines(lines: Iterable[str]) -> list[str]:
    every = list(dict.fromkeys(lines))
    left = len(every) - _MOST
    return every if left <= 0 else [*every[:_MOST], f"{left} more: `mdmem check`, `mdmem refs --state STATE`"]


def _post_tool(memory: Memory, given: Given) -> None:
    """Keep a long output of a tool, which can be got back when it has left the context."""
    tool, keys = given.get("tool_name"), _conversation_keys(given)
    service = memory.service
    if not service.is_captured or service.capture_refused or not isinstance(tool, str) or not keys:
        return
    # Those of our own server give back what is kept.
    if memory.sessions.is_kept(keys[0]) and not tool.startswith("mcp__mdmem__"):
        memory.results.compress(tool, _output_text(given.get("tool_response")), keys[0])


def _output_text(answer: Any) -> str:
    """Return the text of a tool's answer; its JSON where the form of the host is not known."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, list):
        return "\n".join(map(_output_text, answer))
    if isinstance(answer, Mapping):
        if answer.get("type") == "image":
            return ""
        texts = [_output_text(answer[name]) for name in _OUTPUTS if answer.get(name)]
        if texts:
            return "\n".join(texts)
    return json.dumps(answer, ensure_ascii=False)


def _work_in_background(memory: Memory, given: Given) -> None:
    from mdmem.facade.background import work  # noqa: PLC0415 - as above

    with memory.service.acting_for(_host_of(given)):
        work(memory, given, mdmem.configured())


def _tell_of_index(memory: Memory, given: Given, told: dict[str, Any] | str | None, word: str) -> Any:
    """Let another process make the index, and add to an answer, once in a session, that it does."""
    memory.service.start_indexing()
    if isinstance(told, str):
        return told
    try:
        open(_session_file(memory, given, "i"), "xb").close()
    except (MdmemError, OSError):  # it is there, or cannot be
        return told
    words = (told or {}).get("systemMessage"), word
    return {**(told or {}), "systemMessage": "\n".join(filter(None, words))}


def _pre_compact(memory: Memory, given: Given) -> dict[str, Any] | str | None:
    _capture_conversation(memory, given)
    working = _live_memories(memory)
    if not working and not _edited_since(memory, given, 0):
        return None
    lines = [
        "What mdmem keeps is given back after this: project memory, preferences and working memory.",
        *(f"- {info.path} (changed {_format_age(changed)})" for info, changed in working),
        "Keep in the summary what is not there yet: decisions and reasons, what is open, the next step.",
    ]
    text = "\n".join(lines)
    # Claude Code appends a plain text to the instructions of the summary. Codex has no such place.
    return {"systemMessage": text} if _host_of(given) == "codex" else text


def _answer_stop(memory: Memory, given: Given) -> dict[str, Any] | None:
    _capture_conversation(memory, given)
    asked = _ask_to_continue(memory, given)
    # While the agent goes on, there is more to come. What may not be was told when the session began.
    word = "" if asked or memory.service.commit_refused else memory.service.commit_left()
    word = word or ("" if asked else _tell_waiting(memory, given))
    return {"systemMessage": f"mdmem: {word}"} if word else asked


def _tell_waiting(memory: Memory, given: Given) -> str:
    """Say how many memories wait for a review, unless this session was told the same number."""
    try:
        file = _session_file(memory, given, "r")
    except MdmemError:
        return ""
    count = memory.service.count_waiting()
    with open(file, "a+", encoding="utf-8") as told:
        told.seek(0)
        if told.read() == str(count):
            return ""
        told.truncate(0)
        told.write(str(count))
    waits = "waits" if count == 1 else "wait"
    return f"{plural(count, 'memory')} {waits} for a review: `mdmem git review`" if count else ""


def _ask_to_continue(memory: Memory, given: Given) -> dict[str, Any] | None:
    """Ask the agent once to go on, where its working memory is older than the edits of its session."""
    # What stopped it once must not stop it again, nor a session that has edited nothing since.
    if given.get("stop_hook_active") is not False or not _edited_since(memory, given, 0):
        return None
    working = _live_memories(memory)
    threads = {each.id: (each, changed) for each, changed in working if each.kind == "thread"}
    own = _own_thread(given, threads)
    if not working or not own:
        return None
    info, changed = threads.get(own, (None, 0))
    if not _edited_since(memory, given, changed):
        return None
    os.unlink(_mark_file(memory, given))
    since = "in this session"
    if info:
        since = f"since the working memory {info.path} was written ({_format_age(changed)})"
    return {
        "decision": "block",
        "reason": (
            f"Files were edited {since}."
            " If state, decisions or the next step have changed, write them there:"
            f" `mdmem working set TEXT --thread {shlex.quote(own)}`. Otherwise finish."
        ),
    }


def _capture_conversation(memory: Memory, given: Given) -> None:
    """Keep what was said, and let another process observe it and capture what was stated."""
    key = None
    path = given.get("transcript_path")
    if isinstance(path, str):
        form = f"{_host_of(given)}-session"
        try:
            key = memory.sessions.capture(form, os.path.expanduser(path))
        except MdmemError as error:  # what goes wrong is no reason to say nothing else
            import logging  # noqa: PLC0415 - a twentieth of a hook's time

            logging.getLogger("mdmem.conversations").warning("capture: %s", error)
    with contextlib.suppress(MdmemError):
        any(map(memory.service.start_background, [key] if key else _conversation_keys(given)))


def _conversation_keys(given: Given) -> list[str]:
    own = _thread_of(given)
    return [f"{_host_of(given)}:{own}", own] if own else []


def _own_thread(given: Given, threads: Container[str]) -> str:
    """Return the thread of a session: the key of its log, or its id where working memory has that name."""
    keys = _conversation_keys(given)
    return next((key for key in keys if key in threads), keys[0] if keys else "")


def _observed_key(memory: Memory, given: Given) -> str | None:
    """Return the key of the conversation of a host, where there is any observation of it."""
    if not os.path.isdir(os.path.join(memory.folder, _OBSERVATIONS)):
        return None
    return next((key for key in _conversation_keys(given) if memory.observations.list(key, limit=1)), None)


_ANSWERS = {
    "session-start": _session_start,
    "user-prompt": _user_prompt,
    "post-edit": _post_edit,
    "post-tool": _post_tool,
    "pre-compact": _pre_compact,
    "stop": _answer_stop,
}


def _add_context(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


# -- what the host says -----------------------------------------------------------------------------------


def _host_of(given: Given) -> str:
    """Return the host of a hook; the input may be untranslated, such as that of `background`."""
    return str(given.get("host") or dialect.translate(given)["host"])


# -- working memory ---------------------------------------------------------------------------------------


def _live_memories(memory: Memory) -> list[tuple[WorkingInfo, float]]:
    """Return the working memories that live, each with when it was changed, the newest first."""
    live = [info for info in memory.working.list() if not info.expired]
    changed = {each.path: each.mtime_ns / 1e9 for each in (memory.ls("working") if live else ())}
    pairs = [(info, changed[info.path]) for info in live if info.path in changed]
    return sorted(pairs, key=lambda pair: -pair[1])


def _thread_of(given: Given) -> str:
    return str(given.get("session_id", ""))


def _format_age(moment: float) -> str:
    minutes = max(0, int((time.time() - moment) // 60))
    return f"{minutes} min ago" if minutes < _TWO_HOURS else f"{minutes // 60} h ago"


# -- what was edited in a session -------------------------------------------------------------------------


def _mark_file(memory: Memory, given: Given) -> str:
    """Return the file that is touched at each edit of a session."""
    return _session_file(memory, given, "s")


def _session_file(memory: Memory, given: Given, mark: str) -> str:
    """Return the file that keeps something of a session; `mark` says what."""
    session = _thread_of(given).encode("utf-8", "replace")
    # What is longer than an id has the end that tells it from others; a digest would take longer to import.
    return os.path.join(memory.state_folder(_SESSIONS), f"{mark}{session[-_LONGEST_SESSION:].hex()}")


def _edited_since(memory: Memory, given: Given, moment: float) -> bool:
    try:
        return os.stat(_mark_file(memory, given)).st_mtime > moment
    except FileNotFoundError:
        return False


def _forget_old_sessions(memory: Memory) -> None:
    before = time.time() - _SESSION_SECONDS
    with os.scandir(memory.state_folder(_SESSIONS)) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)
