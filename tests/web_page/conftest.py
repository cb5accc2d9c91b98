"""The page in a browser: `make web` installs one and runs these tests; a plain `pytest` skips them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.git.conftest import VaultTree, set_up
from tests.web_page.browsing import Visit, launch, visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "MDMEM_WEB" in os.environ:
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip("a real browser: make web runs it"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with launch() as launched:
        yield launched


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VaultTree:
    set_up(monkeypatch)
    return VaultTree(tmp_path / "work")


@pytest.fixture
def visits(browser: Any, tree: VaultTree) -> Iterator[Callable[..., Visit]]:
    """Serves the page of the tree and opens it, each time it is called; a clean console is asked of each."""
    with visit(browser, tree.root / "memories") as open_page:
        yield open_page
