"""Write llms.txt, the overview of the pages for language models: each title with its first sentence.

    bench/menu.py            writes llms.txt, with the pages of docs/
    bench/menu.py FOLDER     writes llms.txt of the site in FOLDER, with its addresses

Order and titles are those of the menu in zensical.toml.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
DOCS = CHECKOUT / "docs"
_OPENS = (
    "Run `mdmem help` for the commands of a day, `mdmem COMMAND --help` for one, and `mdmem help TOPIC` for"
    " the forms of queries, conditions, paths and JSON. Each works without a network."
)


def read_menu() -> dict[str, dict[str, str]]:
    """Read the menu: by group, the file of each title."""
    project = tomllib.loads((CHECKOUT / "zensical.toml").read_text())["project"]
    return {
        group: {title: file for page in pages for title, file in page.items()}
        for groups in project["nav"]
        for group, pages in groups.items()
    }


def read_first_sentence(page: Path) -> str:
    """Read the first sentence of the prose of a page, without its links."""
    left_out = re.compile(r"^(```+).*?^\1$|<!--.*?-->|^(!\[|#|\|)[^\n]*", re.MULTILINE | re.DOTALL)
    text = left_out.sub("", page.read_text())
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    plain = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", paragraph)
    return re.split(r"(?<=[.?!:])\s", plain)[0]


def write_overview(address: str) -> str:
    """Return the text of llms.txt; `address` has a pair of braces for the name of a page."""
    project = tomllib.loads((CHECKOUT / "zensical.toml").read_text())["project"]
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}", "", _OPENS]
    for group, pages in read_menu().items():
        lines += ["", f"## {group}", ""]
        for title, file in pages.items():
            page = DOCS / file
            lines.append(f"- [{title}]({address.format(page.stem)}): {read_first_sentence(page)}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    if arguments:
        (Path(arguments[0]) / "llms.txt").write_text(write_overview("{}.html"))
    else:
        (CHECKOUT / "llms.txt").write_text(write_overview("docs/{}.md"))


if __name__ == "__main__":
    main(sys.argv[1:])
