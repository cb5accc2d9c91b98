"""The command that prints the shell's completion script."""

from __future__ import annotations

import click


@click.command("completion", epilog='Example: eval "$(mdmem completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell, to be evaluated in its start-up file."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is not None:
        print(kind(ctx.find_root().command, {}, "mdmem", "_MDMEM_COMPLETE").source())
