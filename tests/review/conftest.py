"""Repositories, as the tests of git make them."""

from __future__ import annotations

from tests.git.conftest import no_git, tree

__all__ = ["no_git", "tree"]
