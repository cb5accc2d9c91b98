"""What is told about a template: its name, its source, its variables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateInfo:
    """One template of a list.

    Attributes:
        name: what it is asked for by: its path without `.md`; with the suffix when it is another.
        builtin: whether it is a built-in one; False for a vault's own, also where that replaces one.
        description: the text of the comment in its first line; empty when there is none.
    """

    name: str
    builtin: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable that a template reads.

    Attributes:
        name: its name.
        required: whether some use of it is not guarded by `default(…)` or `is defined`.
        default: the value, or the name of the value, that stands in for it; None when there is none.
    """

    name: str
    required: bool
    default: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A template as it is written, and its variables: the required ones first.

    `name` is the full one, with its suffix. The variables of the templates that it extends, includes and
    imports with context are among them.
    """

    name: str
    source: str
    variables: tuple[Variable, ...]
