from __future__ import annotations

import pytest

from mdmem.index.code.cited_path import candidates


@pytest.mark.parametrize(
    ("path", "in_link", "files"),
    [
        ("src/app.py", False, ["src/app.py"]),
        ("src/app.py", True, ["docs/src/app.py", "src/app.py"]),
        ("/src/app.py", True, ["src/app.py"]),
        ("../app.py", True, ["app.py"]),
        ("../../app.py", True, []),
        ("/etc/passwd", False, []),
    ],
)
def test_a_link_is_seen_from_its_folder_and_all_from_the_workspace(
    path: str, in_link: bool, files: list[str]
) -> None:
    assert candidates("docs/a.md", path, in_link=in_link) == files
