"""Putting mdmem into a host, and taking it out again: every settings file of the host together."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from mdmem.errors import ExtraMissing, StorageFailed, Usage
from mdmem.hosts import settings
from mdmem.hosts.addition import Step
from mdmem.hosts.host import HOSTS, Bound, Files, Host, additions_of, files_of
from mdmem.hosts.settings import Change, Receipt
from mdmem.vault import outside
from mdmem.vault.mark import state_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

_RECEIPTS = "hosts.json"


class Setup(NamedTuple):
    """The changes of settings files that a command makes, and the receipts as they are behind it."""

    changes: tuple[Change, ...]
    receipts: dict[str, Receipt]

    def diff(self) -> str:
        """The changes as one unified diff."""
        from mdmem.text.diff import unified  # noqa: PLC0415 - start-up

        return "".join(unified(each.before, each.after, _seen_from_here(each.path)) for each in self.changes)

    def notes(self) -> list[str]:
        """What a reader of the diff has to know besides."""
        linked = [each for each in self.changes if os.path.realpath(each.path) != os.path.abspath(each.path)]
        return [f"{each.path} is reached by a link: {each.target} is what is written" for each in linked]

    def apply(self) -> None:
        """Write the files.

        Raises:
            EditRefused: one of them has changed since it was read.
            StorageFailed: the system refused.
        """
        kept = _load()
        # In this order, what a crash leaves behind is in a receipt.
        _save({**kept, **self.receipts})
        try:
            settings.write(self.changes)
        except BaseException:
            _save(kept)
            raise
        _save(self.receipts)


def _seen_from_here(path: str) -> str:
    near = os.path.relpath(path)
    return path.lstrip(os.sep) if near.startswith(os.pardir) else near


def install(name: str, bound: Bound) -> Setup:
    """What puts mdmem into a host.

    Raises:
        Usage: the host has no such settings.
        ExtraMissing: the server that would be put in cannot run.
        EditRefused: a settings file cannot be added to.
    """
    if find_spec("mcp") is None:
        raise ExtraMissing(extra="mcp", package="mcp")
    host = HOSTS[name]
    files = _files(name, host, bound.project)
    if files.hooks and files.servers.endswith(".toml") and not os.path.lexists(files.hooks):
        # Codex warns where a folder has hooks in both forms: they go beside the servers.
        files = files._replace(hooks=files.servers)
    receipts = _load()
    found = additions_of(host, bound, files)
    changes = [
        settings.install(path, additions, receipts.get(os.path.realpath(path)), bound.project)
        for path, additions in found.items()
    ]
    made = tuple(change for change in changes if change)
    return Setup(made, receipts | {each.target: each.receipt for each in made if each.receipt})


def uninstall(name: str, project: str | None) -> Setup:
    """What takes mdmem out of a host; as `install`."""
    files = _files(name, HOSTS[name], project)
    receipts = _load()
    paths = [path for path in (files.servers, files.hooks) if path]
    found = [settings.uninstall(path, receipts.get(os.path.realpath(path)), project) for path in paths]
    gone = {os.path.realpath(path) for path in paths}
    kept = {target: receipt for target, receipt in receipts.items() if target not in gone}
    return Setup(tuple(change for change in found if change), kept)


def _files(name: str, host: Host, project: str | None) -> Files:
    files = files_of(host, project)
    if files is None:
        raise Usage(problem=f"{name} reads no settings in a project", remedy="say --user")
    return files


# -- receipts ---------------------------------------------------------------------------------------------


def _place() -> str:
    return state_folder(_RECEIPTS)


def _load() -> dict[str, Receipt]:
    try:
        with open(_place(), encoding="utf-8") as file:
            kept = json.load(file)["files"]
        return {path: _receipt(each) for path, each in kept.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StorageFailed(path=_place(), action="read it", reason=error.strerror or str(error)) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}  # what stands in the settings files is enough


def _receipt(kept: Mapping[str, Any]) -> Receipt:
    steps = tuple(Step(start, text) for start, text in kept["steps"])
    return Receipt(steps, bool(kept["made"]), tuple(kept["folders"]))


def _save(receipts: Mapping[str, Receipt]) -> None:
    place = outside.of_user(_place())
    now = outside.read(place, _place())
    before = now.data if now else None
    kept = {path: each._asdict() for path, each in sorted(receipts.items())}
    after = json.dumps({"files": kept}, ensure_ascii=False, indent=2).encode() + b"\n" if kept else None
    if after != before:
        outside.replace(place, _place(), before, after)
