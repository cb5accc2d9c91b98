"""Commands and groups whose arguments may begin with a dash, as a list item and frontmatter do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from mdmem.text.regex import regex

if TYPE_CHECKING:
    from collections.abc import Callable

# `- one more`, or a frontmatter with its lines; not `--title=Use SQLite`.
_NO_OPTION = regex(r"-[^\s=]*\s|-{3,}\Z")
_MARK = "\0"  # no argument of a program holds one


class Command(click.Command):
    """A command that takes for an option only what can be one: its name has no blanks."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        texts = {_MARK + text: text for text in args if _NO_OPTION.match(text)}
        rest = super().parse_args(ctx, [_MARK + text if _MARK + text in texts else text for text in args])

        def text_of(value: Any) -> Any:
            return tuple(map(text_of, value)) if isinstance(value, tuple) else texts.get(value, value)

        if texts:
            ctx.params = {name: text_of(value) for name, value in ctx.params.items()}
        return rest


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)
group: Callable[..., Callable[[Callable[..., Any]], Group]] = partial(click.group, cls=Group)
