"""The commands of preferences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from mdmem.cli.command import group
from mdmem.cli.options import base_option, change_command, read_command, read_value
from mdmem.cli.render import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mdmem.memory.memory import Memory
    from mdmem.memory.preference import Preference

Verb = Callable[[Any], Any]
_POLICIES = click.Choice(["keep-latest", "keep-stronger", "merge"])
_SHARE = click.FloatRange(0, 1)


@group("preferences")
def preferences_command() -> None:
    """Preferences: what a user likes, with a strength that fades until it is confirmed."""


@preferences_command.command("set", epilog="Example: mdmem preferences set ui theme dark --why 'Said so.'")
@click.argument("category")
@click.argument("key")
@click.argument("value")
@click.option("--strength", type=_SHARE, help="How much it matters, 0 to 1 (0.7).")
@click.option("--confidence", type=_SHARE, help="How sure it is, 0 to 1 (0.8).")
@click.option("--why", help="The reason.")
@click.option("--policy", type=_POLICIES, help="What happens to another value that stands there.")
@base_option
@change_command
def preferences_set(
    category: str,
    key: str,
    value: str,
    strength: float | None,
    confidence: float | None,
    why: str | None,
    policy: str | None,
    base: str | None,
) -> Verb:
    """Say what is preferred; saying it again makes it stronger. VALUE is read as YAML."""
    shares = {"strength": strength, "confidence": confidence}
    given = {name: share for name, share in shares.items() if share is not None}
    content = read_value(value)
    return lambda m: m.preferences.set(category, key, content, **given, why=why, policy=policy, base=base)


@preferences_command.command("get", epilog="Example: mdmem preferences get ui theme")
@click.argument("category")
@click.argument("key")
@click.option("--hidden", is_flag=True, help="Also one that has faded.")
@read_command
def preferences_get(memory: Memory, category: str, key: str, hidden: bool, as_json: bool) -> None:
    """Print a preference with its strength as of now."""
    _print([memory.preferences.get(category, key, hidden=hidden)], as_json=as_json)


@preferences_command.command("list", epilog="Example: mdmem preferences list ui")
@click.argument("category", required=False)
@click.option("--hidden", is_flag=True, help="Also those that have faded.")
@read_command
def preferences_list(memory: Memory, category: str | None, hidden: bool, as_json: bool) -> None:
    """List the preferences, or those of a category."""
    _print(memory.preferences.list(category, hidden=hidden), as_json=as_json)


@preferences_command.command("top", epilog="Example: mdmem preferences top 5")
@click.argument("count", type=click.IntRange(0), default=10)
@read_command
def preferences_top(memory: Memory, count: int, as_json: bool) -> None:
    """List the strongest preferences."""
    _print(memory.preferences.top(count), as_json=as_json)


@preferences_command.command("stats", epilog="Example: mdmem preferences stats")
@read_command
def preferences_stats(memory: Memory, as_json: bool) -> None:
    """Print how many there are, where, and how strong."""
    stats = memory.preferences.stats().as_dict()
    if as_json:
        print_json(stats)
        return
    for name, value in stats.items():
        shown = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        print(f"{name}: {shown}")


@preferences_command.command("delete", epilog="Example: mdmem preferences delete ui theme")
@click.argument("category")
@click.argument("key")
@change_command
def preferences_delete(category: str, key: str) -> Verb:
    """Delete a preference; undo brings it back."""
    return lambda m: m.preferences.delete(category, key)


@preferences_command.command("sweep", epilog="Example: mdmem preferences sweep --dry-run")
@change_command
def preferences_sweep() -> Verb:
    """Delete the preferences that have faded; --dry-run proposes it."""
    return lambda m: m.preferences.sweep()


def _print(found: Iterable[Preference], *, as_json: bool) -> None:
    if as_json:
        print_json([preference.as_dict() for preference in found])
        return
    for preference in found:
        hidden = "  (faded)" if preference.hidden else ""
        print(f"{preference.name}\t{preference.value}\t{preference.strength:.2f}{hidden}")
