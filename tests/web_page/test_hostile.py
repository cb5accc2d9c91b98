# ruff: noqa: E501 - pages and memories as an attacker writes them
"""Hostile memories and names, and pages of another port: nothing runs, goes out or is decided."""

from __future__ import annotations

import http.server
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.waiting import until
from tests.web_page.browsing import CURRENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.git.conftest import VaultTree
    from tests.web_page.browsing import Visit

MARKUP = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> <svg onload=alert(3)><style>*{display:none}</style>"
    ' <iframe src="javascript:alert(4)"></iframe> <base href="//evil.invalid/"> <a href="javascript:alert(5)">x</a>'
    " ![p](http://evil.invalid/p.png) [x](javascript:alert(6)) [[javascript:alert(7)]] {{7*7}} </textarea> </pre>"
    " \u202e\u2066 \U0001f98a [[b]] &lt;b&gt;"
)
NAMES = (
    *("notes/<img src=x onerror=alert(8)>.md", 'notes/" onfocus="alert(9).md', "notes/100% #1 &=+ x.md"),
    *("notes/\u202egnp.exe.md", "notes/constructor/a.md", "notes/__proto__/b.md", "notes/\U0001f98a.md"),
)
VIEWS = ("overview", "proposals", "search?query=alert", "list?what=memories", "list?what=broken")


@pytest.fixture
def hostile(tree: VaultTree) -> VaultTree:
    tree.note("notes/a.md", "# Begin\n")
    tree.commit()
    agent = tree.open("<b onclick=alert(10)>constructor")
    for path in NAMES:
        tree.note(path, f'---\ntitle: "{MARKUP[:25]}"\n---\n# {MARKUP}\n\n- {MARKUP}\n')
    agent.append("notes/a.md", f"\n## {MARKUP}\n\n{MARKUP}\n")
    agent.inbox.propose("append", {"path": "notes/a.md", "text": MARKUP}, reason=MARKUP)
    return tree


@pytest.mark.usefixtures("hostile")
def test_what_stands_in_memories_and_names_is_text_and_nothing_else(visits: Callable[..., Visit]) -> None:
    page = visits()
    page.see(".row", "alert(2)")
    assert page.page.locator("main :is(script, img, iframe, style, base, svg)").count() == 0
    paths = page.page.eval_on_selector_all(".card h2 a", "links => links.map(link => link.hash)")
    assert len(paths) == len(NAMES) + 1
    for path in paths:
        page.go(path.removeprefix("#/"))
        page.see(".lines")
        assert page.page.locator("main :is(script, img, iframe, style, base)").count() == 0
        page.go(path.removeprefix("#/") + "&edit=1")
        assert "</textarea>" in page.see("textarea").input_value() or path.endswith("a.md")
    for view in VIEWS:
        page.go(view)
        page.see("main > :not(.empty)")
        assert page.page.locator("main :is(script, img, iframe, style, base)").count() == 0
    assert page.page.evaluate(
        "[...document.links].every(link => link.href.startsWith(location.origin + '/#/'))"
    )
    assert {urlsplit(url).netloc for url in page.asked} == {urlsplit(page.url).netloc}
    assert page.said == []
    assert page.page.evaluate("getComputedStyle(document.body).display") == "block"


def test_memories_with_hostile_names_are_decided(hostile: VaultTree, visits: Callable[..., Visit]) -> None:
    page = visits()
    page.see(".row")
    for _ in range(len(NAMES)):
        page.press("J")
    while page.page.locator(CURRENT).count():
        page.press("X" if page.page.locator(".tools button", has_text="reject all").count() else "x")
        page.wait_for("() => !document.querySelector('.rejected')")
    page.see("h1", "Nothing to review")
    left = [path for path in NAMES if (hostile.root / "memories" / path).exists()]
    assert left == []
    assert (hostile.root / "memories/notes/a.md").read_text() == "# Begin\n"
    assert page.said == []


def test_the_page_may_run_no_script_but_its_own(visits: Callable[..., Visit]) -> None:
    """Also where a memory were put into it as HTML, nothing of it would be run."""
    page = visits()
    page.see("main")
    tried = page.page.evaluate(
        """() => {
            const found = [];
            document.addEventListener("securitypolicyviolation", event => found.push(event.effectiveDirective));
            const attempt = what => { try { what(); return "done"; } catch (error) { return error.name; } };
            const script = document.createElement("script");
            const html = attempt(() => { document.body.innerHTML = "<img src=x onerror='window.ran = 1'>"; });
            const text = attempt(() => { script.text = "window.ran = 2"; });
            const frame = document.createElement("iframe");
            frame.src = "data:text/html,x";
            document.body.append(frame);
            return new Promise(tell => setTimeout(() => tell([html, text, window.ran ?? 0, found.includes("frame-src")]), 300));
        }"""
    )
    assert tried == ["TypeError", "TypeError", 0, True]


class Evil(http.server.BaseHTTPRequestHandler):
    """A page of another loopback port, and what it is told."""

    html = ""
    told: list[str]

    def do_GET(self) -> None:
        self.told.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.html.encode())

    do_POST = do_GET  # noqa: N815 - what the server calls

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serve_evil(html: str) -> Iterator[tuple[str, list[str]]]:
    told = list[str]()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), type("Served", (Evil,), {"html": html, "told": told})
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/", told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


ATTACK = """<!doctype html><title>evil</title>
<iframe id="frame" src="{page}"></iframe>
<form id="form" target="other" method="post" enctype="text/plain" action="{page}api/reject">
<input name='{{"path":"notes/a.md","rows":["{row}"],"x":"' value='"}}'></form><iframe name="other"></iframe>
<script src="{page}app.js"></script><script src="{page}api/review"></script><link rel="stylesheet" href="{page}app.css">
<script>
const results = [];
const run = async (name, what) => {{ try {{ results.push([name, await what()]); }} catch (error) {{ results.push([name, error.name]); }} }};
(async () => {{
    const body = JSON.stringify({{path: "notes/a.md", rows: ["{row}"]}});
    for (const mode of ["cors", "no-cors"]) {{
        await run("get " + mode, async () => (await (await fetch("{page}api/review", {{mode, credentials: "include"}})).text()));
        await run("post " + mode, async () => (await (await fetch("{page}api/reject", {{mode, method: "POST", body}})).text()));
        await run("shell " + mode, async () => (await (await fetch("{page}", {{mode}})).text()));
    }}
    await run("bearer", async () => (await fetch("{page}api/review", {{headers: {{Authorization: "Bearer x"}}}})).text());
    await run("frame", () => document.getElementById("frame").contentDocument.body.innerText);
    const opened = window.open("{page}");
    await new Promise(wake => setTimeout(wake, 500));
    await run("opened", () => opened.document.body.innerText);
    await run("storage", () => opened.sessionStorage.token);
    document.getElementById("form").submit();
    await new Promise(wake => setTimeout(wake, 300));
    window.results = results;
}})();
</script>"""


def test_pages_of_another_port_read_nothing_and_decide_nothing(
    tree: VaultTree, visits: Callable[..., Visit]
) -> None:
    tree.note("notes/a.md", "# A\n\nIt was so.\n")
    tree.commit()
    tree.note("notes/a.md", "# A\n\nThe secret is mauve.\n")
    page = visits()
    page.see(".row", "mauve")
    row = page.page.locator(".row").first.get_attribute("data-row")
    shell = page.url.partition("#")[0]
    with serve_evil(ATTACK.format(page=shell, row=row)) as (url, told):
        for address in (url, url.replace("localhost", "127.0.0.1")):
            evil = page.page.context.new_page()
            evil.goto(address)
            evil.wait_for_function("() => window.results")
            results = dict(evil.evaluate("window.results"))
            assert all(
                "mauve" not in str(found) and 'id="main"' not in str(found) for found in results.values()
            ), results
            assert results["bearer"] == results["get cors"] == results["post cors"] == "TypeError"
            assert results["frame"] in {"TypeError", ""}
            assert "Error" in results["opened"]
            assert "Error" in results["storage"]
            evil.close()
        assert (tree.root / "memories/notes/a.md").read_text() == "# A\n\nThe secret is mauve.\n"
        page.page.bring_to_front()
        page.see(CURRENT).focus()
        page.press("X")
        until(lambda: (tree.root / "memories/notes/a.md").read_text() == "# A\n\nIt was so.\n")
        assert {*told} <= {"/", "/favicon.ico"}
    assert page.said == []


def test_the_address_is_not_sent_and_stays_in_no_history(
    visits: Callable[..., Visit],
) -> None:
    page = visits()
    page.see("main > *")
    token = page.url.partition("#")[2]
    assert token not in page.page.url
    assert not [url for url in page.asked if token in url.partition("#")[0]]
    assert page.page.evaluate("document.cookie + Object.keys(localStorage)") == ""
