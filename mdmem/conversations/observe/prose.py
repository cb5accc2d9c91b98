"""What people write in Markdown: whole sentences, and what they type beside what they paste."""

from __future__ import annotations

from collections.abc import Iterator

from mdmem.document.document import parse_text
from mdmem.document.markdown.sentences import sentences
from mdmem.document.outline import read_tree
from mdmem.document.text.regex import regex
from mdmem.document.text.tokens import in_line
from mdmem.errors import TooManyParts

LONGEST = 600
"""Characters of a sentence; what is longer was pasted."""
QUESTION = regex("[?\uff1f][\"')\\]*_]*\\Z")
TABLE = regex(r"^\s*\||[\u2500-\u257f]|\|.*\|")
"""What stands in a row of a table."""
CODE = regex(r"[({\[;,=]\Z|\A(?:[})\]]|//|/\*)|\s[{}]\s")
"""What stands in a line of code, and in no sentence."""

_NO_TEXT = regex("[\0\ud800-\udfff]")  # which no memory may hold
_READ = 50_000  # characters of a text in which sentences are looked for
_WORDS = 5  # of a line behind a log that somebody typed
_FENCED = regex(r"(?ms)^ {0,3}(?P<mark>```+|~~~+)[^\n]*\n(?P<code>.*?)^ {0,3}(?P=mark)[`~]*[ \t]*$")
_EMPHASIS = regex(r"(\*\*\*?)(?=\S)([^*\n]+?)(?<=\S)\1")
_BOX = regex(r"\A\[[ xX]\][ \t]+")
_NUMBER = regex(r"\A[0-9]{1,2}[.)]\s+")
_ENDED = regex("[.!?:\u2026\u3002\uff01\uff1f][\"'*_`\u2019\u201d]*\\Z")
_LOGGED = regex(
    r"^\s*(?:\S+:\d+(?::\d+)?:? |at \S+ \(|\u279c|=+> |\(\w+:\d+\) |\S+ git:\("
    r"|(?:\d+\.\d+ )?npm (?:error|ERR!)|(?:\w*Error|fatal)\b.{0,60}:|={2}|[~*-]{3}"
    r"|[\u2716\u2717\u2713\u2714\u274c\xd7]"
    r"|(?:ok|PASS|FAIL|DONE|INFO|DEBUG|WARN\w*|ERROR|GET|POST|PUT|PATCH|DELETE)\b[ \t]"
    r"|\[(?:INFO|ERROR|WARN|DEBUG)|\[?\d[\d/:. -]{6,}|[$%] |[\w.-]+@[\w.-]+[:~]|[{}|]"
    r"|\S(?:.*?[^\s.!?:](?: {2,}|\t)){2}\S|\d[\d.]*[KMG]?\t|(?:npm warn|diff --git|HTTP/\d\S*) |INSERT INTO "
    r"|[a-z-](?:[r-][w-][x-]){3}|(?:total \d+|On branch \S+|.*\[\d+/\d+\])$|commit [0-9a-f]{7,}|@@ |\u2139"
    r"|Exception in thread|Traceback \(|(?:error(?:\[\w+\])?|\S+\(\d+,\d+\)|Warning|Caused by): |PS [A-Z]:"
    r"|Compiling \S+ v\d|Downloading \S*[:/]|(?:CREATE|ALTER|DROP) (?:TABLE|INDEX|VIEW) |[A-Z_]{3,}=\S"
    r"|(?:def|function) \w+\(|class \w+[({:]|Run \S+/\S+@\S+$|added \d+ packages|\[Image: source)"
)
_HOME = regex(
    r"(?<![\w.~-])(?:file://)?/(?:(?:var|export|private)/)?(?:home|Users)/[^/\s:;,'\"`()<>|\\]+"
    r"|(?<![\w.~/-])/root(?=[/\s:;,'\"`)]|\Z)"
    r"|(?<!\w)[A-Za-z]:[\\/]+Users[\\/]+[^\\/\s:;,'\"`()<>|]+"
)


def prose(text: str) -> list[str]:
    """Return the sentences in the first 50,000 characters of a text, each in one line and once.

    What stands in code, tables, quotations, logs and headings is left out.
    """
    text = text[: text.rfind("\n", 0, _READ) + 1] if len(text) > _READ else text
    try:
        return list(dict.fromkeys(_find_sentences(text)))
    except TooManyParts:
        return []


def _find_sentences(text: str) -> Iterator[str]:
    for node in read_tree(parse_text("text.md", _NO_TEXT.sub("?", text))).nodes:
        if node.kind not in {"paragraph", "item"}:
            continue
        block = _BOX.sub("", node.head[len(node.marker) :])
        if node.is_code:
            block = block.partition("\n")[0].rstrip(": ")
        for said in _join_lines(_EMPHASIS.sub(r"\2", parted(block)[0])):
            if len(said) <= LONGEST and not (TABLE.search(said) or CODE.search(said) or '{"' in said):
                yield said


def parted(text: str) -> tuple[str, list[str]]:
    """Part what somebody typed, without tables, from the lines of fences and of logs."""
    fenced = "\n".join(found["code"] for found in _FENCED.finditer(text))
    pasted = [line for line in fenced.split("\n") if not TABLE.search(line)]
    own: list[str] = []
    is_log = is_behind_blank = False
    for line in _FENCED.sub("\n", text).split("\n"):
        # Whoever pastes a log asks about it.
        is_typed = is_behind_blank and len(line.split()) >= _WORDS and line[:1].isalpha()
        is_typed = bool(QUESTION.search(line)) or (is_typed and not CODE.search(line))
        if not TABLE.search(line):
            is_log = bool(_LOGGED.search(line)) or (is_log and not is_typed)
            (pasted if is_log else own).append(line)
        is_behind_blank = not line.strip()
    return "\n".join(own), pasted


def _join_lines(block: str) -> list[str]:
    """Find the sentences of a block; a line without a sign at its end goes on in small letters."""
    found: list[str] = []
    for start, stop in sentences(block, longest=len(block) + 1):
        said = in_line(_NUMBER.sub("", block[start:stop]))
        if found and "a" <= said[:1] <= "z" and not _ENDED.search(found[-1]):
            found[-1] = f"{found[-1]} {said}"
        elif said:
            found.append(said)
    return found


def without_home(text: str, workspace: str = "") -> str:
    """Write `~` for home folders, and paths below the workspace without it."""
    if len(workspace) > 1:
        text = text.replace(f"{workspace}/", "")
    return _HOME.sub("~", text)
