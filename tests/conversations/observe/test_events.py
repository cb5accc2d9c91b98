"""Events of a conversation: every case that people meet, and nothing cut, doubled or private in any."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings, strategies as st

from mdmem.conversations.log.message import Message
from mdmem.conversations.observe.events import events, listed
from mdmem.document.text.tokens import estimate
from tests import speed
from tests.speed import examples
from tests.tables import cases

HOME = "/Users/" + "ann"


def user(text: str, name: str = "") -> dict[str, Any]:
    return {"role": "user", "content": text} | ({"name": name} if name else {})


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def ran(tool: str, answer: str, **arguments: Any) -> list[dict[str, Any]]:
    """A call of a tool and its answer."""
    call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": answer},
    ]


def told(*data: dict[str, Any], target: int = 2_000, **given: Any) -> list[str]:
    """The lines about messages."""
    messages = [Message(number, each) for number, each in enumerate(data, 1)]
    return [
        line for line in listed(events(messages, target, **given)).removeprefix("- ").split("\n- ") if line
    ]


BEHIND, NEXT = Message(99, said("And so on.")), Message(99, user("Thanks."))


@cases(
    "text, line",
    [
        ("Fix the parser.", "user asked: Fix the parser. (#1)"),
        ("It is red.", "user said: It is red. (#1)"),
        ("Why is it red?", "user asked: Why is it red? (#1)"),
        ("We decided to use SQLite.", "user decided: We decided to use SQLite. (#1)"),
        ("请把测试修好。", "user asked: 请把测试修好。 (#1)"),
        ("我们决定使用SQLite。", "user decided: 我们决定使用SQLite。 (#1)"),
        (
            "<command-name>/review</command-name>\n<command-args>15</command-args>",
            "user ran /review 15 (#1)",
        ),
        ("```\nx = 1\n```", ""),
        ("| a | b |\n|---|---|", ""),
        ("continue", ""),
        ("[Image: source: /tmp/x.png]", ""),
        ("OK, go ahead please!", ""),
        ("好的\uff0c继续", ""),
        ("rebase", "user said: rebase (#1)"),
        ("no dots here\n\n1. not even\n2. in lists", "user said: no dots here 1. not even 2. in lists (#1)"),
        ("Look:\n```\nx()\n\nand fix it", "user asked: Look: ``` x() and fix it (#1)"),
        ("GET /x 200 in 568ms\n\nwhy so slow?", "user asked: why so slow? (#1)"),
    ],
)
def test_what_somebody_asks_is_told_in_their_words(text: str, line: str) -> None:
    assert told(user(text), following=BEHIND) == ([line] if line else [])


def test_of_a_long_request_the_first_sentence_that_asks_is_kept_first() -> None:
    text = (
        "This is how it stands now. " * 20
        + "Please add a cache to the index. "
        + "It was slow all along. " * 30
    )
    assert told(user(text), target=36, following=BEHIND) == [
        "user said: This is how it stands now. (#1)",
        "user asked: Please add a cache to the index. (#1)",
    ]


def test_an_answer_is_told_with_its_question_also_one_that_stands_before() -> None:
    question = said("I can do that. Shall I delete both?")
    lines = told(question, user("yes, both"), following=BEHIND)
    assert "user answered yes, both to the question: Shall I delete both? (#2)" in lines
    before = [Message(0, question)]
    assert told(user("yes"), before=before, following=BEHIND) == [
        "user answered yes to the question: Shall I delete both? (#1)"
    ]


def test_an_answer_by_number_is_told_with_the_option_that_it_names() -> None:
    question = said("1. **Delete it** - nobody needs it. It is old.\n2. Keep it\n3. Move it\n\nWhich one?")
    lines = told(question, user("3 and 1 first"), following=BEHIND)
    options = "3 and 1 first (Move it; Delete it - nobody needs it.)"
    assert f"user answered {options} to the question: Which one? (#2)" in lines


LISTED = "1. Delete it\n2. Keep it\n3. Move it"


@cases(
    "reply, options",
    [
        ("1", "Delete it"),
        ("2.", "Keep it"),
        ("(2)", "Keep it"),
        ("#3", "Move it"),
        ("option 2", "Keep it"),
        ("Option 2 please", "Keep it"),
        ("number 3!", "Move it"),
        ("1 and 3", "Delete it; Move it"),
        ("1, 3", "Delete it; Move it"),
        ("3 & 1", "Move it; Delete it"),
        ("the second one", "Keep it"),
        ("the first, please", "Delete it"),
        ("2nd", "Keep it"),
        ("第二个", "Keep it"),
        ("选项2", "Keep it"),
        ("1和3", "Delete it; Move it"),
        ("yup, make that 1 line change", ""),
        ("yes, 2 files", ""),
        ("1 line", ""),
        ("in 2 days", ""),
        ("1 or 2", ""),
        ("not 1", ""),
        ("maybe 2", ""),
        ("1.5", ""),
        ("10%", ""),
        ("+1", ""),
        ("1-3", ""),
        ("just one", ""),
        ("4", ""),
        ("改1行", ""),
    ],
)
def test_a_number_is_an_option_only_where_a_reply_is_numbers(reply: str, options: str) -> None:
    lines = told(said(f"{LISTED}\n\nWhich one?"), user(reply), following=BEHIND)
    option = f" ({options})" if options else ""
    assert f"user answered {reply}{option} to the question: Which one? (#2)" in lines


def test_a_number_is_an_option_of_letters_and_of_a_list_without_a_question() -> None:
    assert "user answered b (Keep it) (#2)" in told(
        said("A. Delete it\nB. Keep it"), user("b"), following=BEHIND
    )


def test_a_number_that_is_counted_is_no_option() -> None:
    lines = told(said(f"{LISTED}\n\nHow many workers do you want?"), user("2"), following=BEHIND)
    assert "user answered 2 to the question: How many workers do you want? (#2)" in lines


@cases(
    "question, reply",
    [
        ("Shall I delete it?", "yes"),
        ("Shall I delete it?", "nope, keep it"),
        ("Shall I delete it?", "OK"),
        ("Shall I delete it?", "go ahead"),
        ("Shall I delete it?", "do it"),
        ("Shall I delete it?", "don\u2019t"),
        ("Shall I delete it? It is old. Nobody reads it.", "yes please"),
        ("What shall I call it?", "mdmem"),
        ("Redis or SQLite?", "SQLite"),
        ("要删除吗\uff1f", "不要"),
        ("用哪个\uff1f", "SQLite"),
    ],
)
def test_a_reply_to_a_question_answers_it(question: str, reply: str) -> None:
    assert any(
        line.startswith(f"user answered {reply}")
        for line in told(said(question), user(reply), following=BEHIND)
    )


@cases(
    "question, reply",
    [
        ("Shall I delete it?", "Which of the two do you mean?"),
        ("Shall I delete it?", "what about the tests"),
        ("Shall I delete it?", "ok but why"),
        ("Shall I delete it?", "does it work on Windows"),
        ("Which one?", "why not both"),
        ("Which one?", "is it safe"),
        ("要删除吗\uff1f", "为什么"),
        ("要删除吗\uff1f", "可以恢复吗"),
        ("要删除吗\uff1f", "什么意思\uff1f"),
        ("Shall I delete it?", "now fix the tests"),
        ("Shall I delete it?", "check my change"),
        ("Why is it so? It was never read. It costs time. I removed it. All tests pass.", "yes"),
        ("I deleted it.", "yes"),
    ],
)
def test_a_question_or_another_request_answers_nothing(question: str, reply: str) -> None:
    lines = told(said(question), user(reply), following=BEHIND)
    assert not any("answered" in line for line in lines)


def test_a_question_to_a_tool_that_is_answered_by_a_question_is_not_answered() -> None:
    answered = 'User has answered your questions: "Which one?"="Why not both?". You can now continue.'
    assert told(*ran("AskUserQuestion", answered, questions=[]), following=BEHIND) == [
        "user asked Why not both? about the question: Which one? (#1)"
    ]


@cases(
    "text",
    [
        "We decided to use SQLite.",
        "No, we decided on Postgres after all.",
        "I\u2019ve decided to drop Windows.",
        "We decided not to use Redis.",
        "We have settled on pnpm.",
        "Ann and Bob agreed to split the module.",
        "We agreed that tokens expire after a day.",
        "Decision: no Redis.",
        "It's settled: Go.",
        "We're going with option 2.",
        "Let's use SQLite.",
        "let\u2019s stick with npm",
        "我们决定使用SQLite\u3002",
        "不过我们决定先上线\u3002",
        "最后决定不用Redis\u3002",
        "决定\uff1a用 pnpm\u3002",
        "我们采用 MySQL\u3002",
    ],
)
def test_what_somebody_decided_is_told_as_decided(text: str) -> None:
    assert told(user(text), following=BEHIND) == [f"user decided: {text} (#1)"]


@cases(
    "text",
    [
        "We decided nothing yet",
        "We haven't decided on a database.",
        "We have not decided to use Redis.",
        "We\u2019ve not settled on a name.",
        "Nobody agreed to that.",
        "We agreed on nothing.",
        "If we decided to use Redis, it would need a server.",
        "Unless we agreed to it, it stays.",
        "Before we decided on anything, we measured.",
        "We could have decided to wait.",
        "We had almost decided to stop.",
        "Have we decided on a name?",
        "Did we agree on that",
        "You decide.",
        "We are still deciding.",
        "The handler decides via `dirType`.",
        "It is decided by the config.",
        "Decision: none yet.",
        "Decision pending.",
        "Let's keep going.",
        "I recommend going with option 2.",
        "Let's use Postgres?",
        "我们还没有决定用哪个\u3002",
        "我们什么都没决定\u3002",
        "如果我们决定用Redis\uff0c就要服务器\u3002",
        "我们决定用Redis吗\uff1f",
        "由你决定\u3002",
        "配置决定了端口\u3002",
        "是否采用 Redis 还没定",
    ],
)
def test_a_doubt_a_condition_and_a_question_are_no_decision(text: str) -> None:
    for message in (user(text), said(text)):
        assert not any("decided:" in line for line in told(message, following=BEHIND))


@cases(
    "text",
    [
        "All tests pass.",
        "It works now.",
        "Exit code is 1.",
        "Renamed `a` to `b`.",
        "The build fails on Windows.",
        "Moved the lookup outside of the loop",
        "This only bypasses the proxy for that one repository.",
        "You're right: `go mod tidy` does not respect go.work.",
        "I see the bug: `parser.py` resets the index twice.",
        "Files Changed: 1 (main.go)",
        "所有测试通过\u3002",
        "已将端口从 80 改为 8080\u3002",
        "登录接口返回 401\uff0c因为 token 过期了\u3002",
        "Die Tests laufen durch, weil der Cache geleert wird.",
        "Los tests fallan porque falta la variable `DB_URL`.",
    ],
)
def test_a_fact_in_a_report_is_told(text: str) -> None:
    assert told(user("Fix the parser."), said(text), following=NEXT)[1:] == [f"assistant said: {text} (#2)"]


@cases(
    "text",
    [
        *("I can see the problem clearly.", "I now have the full picture.", "Now I understand the issue."),
        *("Let me check the config.", "I\u2019m now reading the rest of the files, one by one.", "Perfect!"),
        *("Now update the three call sites.", "You're absolutely right.", "Great question!", "Good catch."),
        *("You're right, I apologize for the confusion.", "That makes sense.", "Looks good to me.", "Done."),
        *(
            "The code is functional and well-structured.",
            "Overall: solid, consistent work.",
            "Hope this helps!",
        ),
        *("Here is what I found in the code:", "To make this work, you need two things:", "Thanks!"),
        *("If you want, I can also split the other table.", "Let me know if you have any questions."),
        *(
            "The diagnostics look stale \u2014 let me verify that.",
            "`Core Representation Unit`",
            "`a/b.go` + `a/c.go`",
            "Great job!",
        ),
        *("I have enough information now.", "As you can see, it is quite nice.", "Ready for your review."),
        *("让我检查一下配置\u3002", "好的\uff0c我明白了\u3002"),
        *("现在我需要查看代码\u3002", "以下是关键步骤\uff1a"),
        *("您说得对\u3002", "接下来检查前端的配置\u3002", "评论系统"),
        *("Ich werde jetzt die Tests ausführen.", "Lass mich das prüfen.", "Hier ist der Stand der Dinge:"),
        *("Vou acessar a documentação oficial agora.", "Voy a revisar los archivos ahora mismo."),
        *("Je vais vérifier la configuration maintenant.", "Aqui estão as 3 formas:"),
        'API Error: 500 {"type":"error","error":{"type":"api_error","message":"Internal error"}}',
        "drwxr-xr-x  4 root root 4096 Nov 28 21:05 .",
        "On branch main\nnothing to commit, working tree clean",
        "HTTP/1.1 502 Bad Gateway\nServer: nginx\nDate: Mon, 02 Nov 2026 10:00:00 GMT",
    ],
)
def test_what_says_nothing_is_not_told(text: str) -> None:
    for end in (NEXT, BEHIND):
        assert told(user("Fix the parser."), said(text), following=end)[1:] == []


OUTPUTS_PASTED = [
    "npm warn deprecated inflight@1.0.6: unsupported\nadded 312 packages, and audited 313 packages in 8s",
    "total 24\ndrwxr-xr-x  4 root root 4096 Nov 28 21:05 .\n-rw-r--r--  1 root root  512 Nov 28 21:05 a.py",
    "commit 8eba4b64f0\nAuthor: Ann <a@x.org>\nDate:   Mon Nov 2 10:00:00 2026",
    "diff --git a/a.py b/a.py\nindex 12..34 100644\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 2",
    "CONTAINER ID   IMAGE     COMMAND   STATUS\n3f2a1b         nginx     run       Up 2 hours",
    "4.0K\t./a\n12K\t./b",
    "CREATE TABLE users (\n  id INT PRIMARY KEY\n);",
    "HTTP/1.1 204 No Content\nServer: nginx",
    "PATH=/usr/bin\nLANG=C",
    "[02/24/26 9:38] mdmem check\n\nWarning: Cloud sync was skipped this time.\n\nParsing sessions [2/2]",
    "\u2139 Log in to use it, or pass --offline.",
    "Run actions/checkout@v4\nDownloading https://example.com/x.tar.gz",
    "def f(x):\n    return x + 1",
]


@cases("output", OUTPUTS_PASTED)
def test_rows_of_programs_are_not_told_as_words_of_a_user(output: str) -> None:
    question = "Why does it do that on my machine?"
    for text in (f"{output}\n\n{question}", f"{question}\n\n{output}"):
        assert told(user(text), following=BEHIND) == [f"user asked: {question} (#1)"]


@cases(
    "text",
    [
        "MUST HAVE tests for it",
        "class names should be unique:",
        "function names are bad",
        "On branch main it works, here it does not",
        "commit the change",
        "It grew by 45%",
        "drop table users",
        "are both in sync   for example what I add here",
        "门户端和管理端的数据互通吗   例如新增一个景点",
    ],
)
def test_what_looks_like_rows_of_programs_and_is_typed_is_told(text: str) -> None:
    assert " ".join(text.split()) in told(user(text), following=BEHIND)[0]


def test_politeness_is_not_told_and_findings_on_the_way_are() -> None:
    lines = told(
        said("The loop never ends because the index is not reset."),
        *ran("Edit", "ok", file_path="a.py"),
        said("Agreed, and fixed."),
        user("Thanks, that is all."),
        said("No response requested."),
    )
    assert lines == [
        "assistant said: The loop never ends because the index is not reset. (#1)",
        "files changed: `a.py` (#2)",
    ]


def test_names_say_who_speaks() -> None:
    talk = [user("I went to Rome last week.", "Alice"), user("We fly to Oslo in May.", "Bob")]
    assert told(*talk) == [
        "Alice said: I went to Rome last week. (#1)",
        "Bob said: We fly to Oslo in May. (#2)",
    ]
    assert told(user("Fix the parser.", "Alice"), said("I fixed it in all cases."), following=NEXT) == [
        "Alice asked: Fix the parser. (#1)",
        "assistant said: I fixed it in all cases. (#2)",
    ]


def test_what_an_assistant_reports_counts_and_what_it_says_on_the_way_does_not() -> None:
    lines = told(
        user("Fix the parser."),
        said("Let me look at it."),
        *ran("Read", "x", file_path="a.py"),
        said("I removed the loop that never ended.\n\n| a | b |\n|---|---|\n| c | d |\n\n## Heading"),
        following=NEXT,
    )
    assert lines == [
        "user asked: Fix the parser. (#1)",
        "assistant said: I removed the loop that never ended. (#5)",
    ]


def test_files_are_those_that_tools_name_below_the_workspace_or_the_home_folder() -> None:
    patch = "*** Begin Patch\n*** Update File: src/patched.py\n*** End Patch"
    lines = told(
        *ran("Edit", "ok", file_path="/work/space/src/a.py"),
        *ran("Edit", "ok", file_path="/work/space/src/a.py"),
        *ran(
            "Edit", "<tool_use_error>File has not been read yet.</tool_use_error>", file_path="src/failed.py"
        ),
        *ran("Bash", "", command="cd src && git mv old.py new.py; echo hi > log.txt; ls > /dev/null"),
        *ran("apply_patch", "ok", input=patch),
        *ran("Read", "x", file_path=f"{HOME}/x/b.py"),
        *ran("Grep", "x", path="src"),
        *ran("str_replace_editor", "x", command="view", path="src/viewed.py"),
        workspace="/work/space",
        following=BEHIND,
    )
    assert lines == [
        "files changed: `src/a.py` (#1 to #3), `src/log.txt` (#7), `src/patched.py` (#9)",
        "files created: `src/new.py` (#7)",
        "files deleted: `src/old.py` (#7)",
    ]


def test_of_many_files_as_many_as_are_not_named_are_counted() -> None:
    runs = [each for number in range(20) for each in ran("Write", "ok", file_path=f"{HOME}/p/q/f{number}.py")]
    (line,) = told(*runs, following=BEHIND)
    assert line.startswith("files created in `~/p/q`: `f0.py` (#1), ")
    assert line.endswith(", and 8 more")


@cases(
    "answer, line",
    [
        ("Exit code 1\nok  a\nx.go:3:1: undefined: foo\nFAIL", "x.go:3:1: undefined: foo"),
        ("Traceback (most recent call last):\n  File\nValueError: no", "ValueError: no"),
        ("error: pathspec 'x' did not match", "error: pathspec 'x' did not match"),
        (
            "Chunk ID: 1\nProcess exited with code 2\nOutput:\nmake: *** [all] Error 2",
            "make: *** [all] Error 2",
        ),
        (f"Exit code 1\ncat: {HOME}/x: No such file or directory", "cat: ~/x: No such file or directory"),
        ("Exit code 1\n| error | here |\nIt broke", "It broke"),
    ],
)
def test_an_error_is_the_line_that_says_why(answer: str, line: str) -> None:
    if answer.startswith("Traceback"):
        answer = f"Exit code 1\n{answer}"
    assert told(*ran("Bash", answer, command="cd x && go test ./..."), following=BEHIND) == [
        f"`go test` failed: {line} (#1)"
    ]


@cases("answer", ["0 errors", "Exit code 0", "src/errors.py\nerror handling", "no Error: here"])
def test_what_did_not_fail_is_no_error(answer: str) -> None:
    assert not any("failed" in line for line in told(*ran("Bash", answer, command="rg errors")))


def test_an_error_says_where_the_same_did_not_fail_later() -> None:
    failed = ran("Bash", "Exit code 1\nError: no", command="go test ./a")
    passed = ran("Bash", "ok", command="go test ./b")
    assert told(*failed, *passed, following=BEHIND) == [
        "`go test` failed: Error: no (#1); a later run did not fail (#3)"
    ]


def test_an_error_that_somebody_shows_is_one() -> None:
    text = "I get this error:\n```\nTypeError: x is not a function\n    at a (b.js:1:2)\n```\nWhat is wrong?"
    assert told(user(text), following=BEHIND) == [
        "user pasted an error: TypeError: x is not a function (#1)",
        "user asked: I get this error: What is wrong? (#1)",
    ]


def test_lines_of_a_patch_and_questions_are_no_errors_that_somebody_shows() -> None:
    patch = (
        "diff --git a/fix-error.md b/fix-error.md\n+an unknown field error\n- Error handling is missing. Why?"
    )
    assert told(user(f"Review this.\n```\n{patch}\n```"), following=BEHIND) == [
        "user said: Review this. (#1)"
    ]
    text = "The tests fail.\n```\n--- FAIL: TestParse (0.00s)\nFAIL\n```"
    assert told(user(text), following=BEHIND)[0] == "user pasted an error: --- FAIL: TestParse (0.00s) (#1)"


def test_what_people_tell_tools_is_decided() -> None:
    answered = 'User has answered your questions: "Which one?"="The first". You can now continue.'
    approved = "User has approved your plan. You can now start coding.\n# Plan: Add a cache\n"
    refused = (
        "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nNo!"
    )
    lines = told(
        *ran("AskUserQuestion", answered, questions=[]),
        *ran("ExitPlanMode", approved),
        *ran("Bash", f"{refused} Use a queue.", command="rm -r x"),
        *ran("Read", answered, file_path="log.md"),
        following=BEHIND,
    )
    assert lines == [
        "user answered The first to the question: Which one? (#1)",
        "user approved the plan (#3)",
        "user stopped `rm -r` and said: No! Use a queue. (#5)",
    ]


def test_what_nobody_answered_or_did_is_open_only_at_the_end() -> None:
    todos = [{"content": "Write tests", "status": "pending"}, {"content": "Plan", "status": "completed"}]
    talk = [*ran("TodoWrite", "ok", todos=todos), said("It works. Shall I commit it?")]
    lines = told(user("Fix it."), *talk)
    assert lines[-2:] == [
        "open: to do: Write tests (#2)",
        "open: nobody answered what assistant asked: Shall I commit it? (#4)",
    ]
    assert not any(line.startswith("open") for line in told(user("Fix it."), *talk, following=BEHIND))
    assert told(user("Fix it."))[-1] == "open: nobody answered user (#1)"


def test_of_messages_in_which_nothing_happened_nothing_is_told() -> None:
    assert told(*ran("Task", "x"), following=BEHIND) == []
    assert told(user("continue")) == []


@cases(
    "text, is_open",
    [
        ("I moved it. TODO: the index.", True),
        ("I moved it. The remaining work is the index.", True),
        ("I moved it. You need to restart the server.", True),
        ("O arquivo foi removido de todo o histórico.", False),
        ("I checked the remaining uses in the help, which are prose.", False),
        ("Why is it slow? The index is read twice. I fixed that. The tests pass. It is fast.", False),
        ("Next steps:", False),
    ],
)
def test_what_is_left_to_do_is_open(text: str, is_open: bool) -> None:
    assert any(line.startswith("open") for line in told(user("Fix it."), said(text))) is is_open


def test_a_run_that_was_cancelled_because_another_one_failed_is_no_error() -> None:
    cancelled = ran("Read", "<tool_use_error>Sibling tool call errored</tool_use_error>", file_path="a.py")
    assert told(*cancelled, following=BEHIND) == []
    nothing = ran("exec_command", "Chunk ID: 1\nProcess exited with code 1\nOutput:", command="rg -n x")
    assert told(*nothing, following=BEHIND) == []


def test_output_that_somebody_pastes_is_no_sentence_of_theirs() -> None:
    text = "\n".join(f"[01/28/26 8:37] Server listens on port {number}." for number in range(40))
    lines = told(user(f"{text}\nWhy does it not stop?"), following=BEHIND)
    assert lines == ["user asked: Why does it not stop? (#1)"]


# -- any conversation -------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        *(
            "cache",
            "the",
            "index",
            "parser",
            "e.g.",
            "v1.2.3",
            "was",
            "add",
            "we",
            f"{HOME}/src/a.py",
            "`x.y()`",
        ),
        *(
            "/home/" + "bob/b.go",
            "/root/c.rs",
            "C:\\Users\\" + "Eve\\d.txt",
            "Dr.",
            "3.5",
            "and",
            "decided",
        ),
    ]
)
ENDS = st.sampled_from([".", "!", "?", "…"])
SENTENCES = st.builds(
    lambda first, words, end: f"{first} {' '.join(words)} done{end}",
    st.sampled_from(["Please", "We", "Now", "It", "Never"]),
    st.lists(WORDS, min_size=2, max_size=30),
    ENDS,
)
NOISE = st.sampled_from(
    [
        *("| a | b |\n|---|---|\n| Row one. | Row two. |", "```\nCode stands here. No.\n```", "# A Heading."),
        *("> Quoted it is. All of it.", "    indented code. yes.", "<div>Html. Here.</div>", "- ", ""),
    ]
)
BLOCKS = st.one_of(
    st.lists(SENTENCES, min_size=1, max_size=4).map(" ".join),
    st.lists(SENTENCES, min_size=1, max_size=3).map(lambda items: "\n".join(f"- {each}" for each in items)),
    NOISE,
)
TEXTS = st.lists(BLOCKS, min_size=1, max_size=5).map("\n\n".join)
OUTPUTS = st.one_of(TEXTS, SENTENCES.map(lambda each: f"Exit code 1\nError: {each}\n| a | b |"))
TURNS = st.one_of(
    st.builds(lambda text, name: [user(text, name)], TEXTS, st.sampled_from(["", "Alice", "Bob"])),
    TEXTS.map(lambda text: [said(text)]),
    st.builds(lambda text, path: ran("Edit", text, file_path=path), OUTPUTS, WORDS),
    st.builds(lambda text, path: ran("Bash", text, command=f"rm {path}"), OUTPUTS, WORDS),
)
PRIVATE = re.compile(r"/home/\w|/Users/\w|/root\b|Users\\\w")
TYPED = re.compile(r"(?s)```.*?```|^\|[^\n]*$", re.MULTILINE)
QUOTED = re.compile(r" (?:asked|said|decided): (.*) \(#([0-9]+)\)$")


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(TURNS, min_size=1, max_size=8 if speed.is_all else 4), st.integers(1, 500), st.booleans())
def test_property_nothing_private_cut_tabular_or_double_is_told(
    turns: list[list[dict[str, Any]]], target: int, is_end: bool
) -> None:
    """What a quotation may be is known from how the messages were made, not from how they are read."""
    data = [each for turn in turns for each in turn]
    lines = told(*data, target=target, following=None if is_end else BEHIND)
    assert sum(estimate(line) + 1 for line in lines) <= target or len(lines) == 1
    assert len({re.sub(r" \(#.*\)", "", line) for line in lines}) == len(lines)
    for line in lines:
        assert not PRIVATE.search(line), line
        assert "|" not in line
        assert re.search(r"#[0-9]+\)", line), line
        assert "Row one" not in line
        if quoted := QUOTED.search(line):
            source = data[int(quoted[2]) - 1]
            is_whole = source["role"] == "user" and quoted[1] == shown(TYPED.sub("", source["content"]))
            assert is_whole or is_sentence(quoted[1], shown(str(source["content"]))), (quoted, source)


def shown(text: str) -> str:
    """A text in one line, as it is told."""
    for private, instead in (
        (f"{HOME}/", "~/"),
        ("/home/" + "bob/", "~/"),
        ("/root/", "~/"),
        ("C:\\Users\\" + "Eve", "~"),
    ):
        text = text.replace(private, instead)
    return " ".join(text.split())


def is_sentence(quoted: str, source: str) -> bool:
    """Whether a quotation begins where a generated sentence begins, and ends where one ends."""
    is_begun = re.match(r"(?:Please|We|Now|It|Never) ", quoted)
    return quoted in source and bool(is_begun) and bool(re.search(r" done[.!?…]$", quoted))
