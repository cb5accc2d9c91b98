"""Globs over paths, with the meaning that they have for ripgrep and git: `*.py` fits at any depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def matcher(globs: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path fits one of `globs`, and none of those that begin with `!`; without globs all fit.

    `**` spans folders, `{a,b}` is either, and a glob without a slash is compared with the name alone.
    """
    if not globs:
        return lambda _: True
    from wcmatch import glob  # noqa: PLC0415 - most commands have no glob

    flags = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.FORCEUNIX | glob.MATCHBASE
    wanted = [g.removeprefix("/") for g in globs if not g.startswith("!")] or ["**"]
    unwanted = [g[1:].removeprefix("/") for g in globs if g.startswith("!")]

    def fits(path: str) -> bool:
        return bool(glob.globmatch(path, wanted, flags=flags)) and not (
            unwanted and glob.globmatch(path, unwanted, flags=flags)
        )

    return fits
