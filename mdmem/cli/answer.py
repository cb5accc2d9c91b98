"""The answer to a host's hook, from standard input to standard output.

An agent waits for it, so that click is not imported, which takes a tenth of the time or more.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdmem.cli.target import Target

_MOST_SECONDS = 8  # hosts wait a little longer for what `mdmem install` puts in


def answer(target: Target, event: str) -> int:
    """Answer a hook; whatever goes wrong is a note on standard error, and the exit code is 0."""
    from mdmem.errors import MdmemError, VaultNotFound

    try:
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.alarm(_MOST_SECONDS)
        _answer(target, event)
    except VaultNotFound:
        pass
    except MdmemError as error:
        _note(str(error))
    except Exception as error:  # noqa: BLE001 - a bug of ours must not stop the agent either
        _note(f"{type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
    return 0


def _answer(target: Target, event: str) -> None:
    given = _given()
    memory = target.open()
    from mdmem.hosts.hook import answer

    told = answer(memory, event, given)
    if told is not None:
        print(told if isinstance(told, str) else json.dumps(told, ensure_ascii=False))


def _given() -> dict[str, Any]:
    from mdmem.errors import Usage

    text = sys.stdin.buffer.read()
    try:
        given = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Usage(problem=f"standard input is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise Usage(problem="standard input is not a JSON object")
    return given


def _out_of_time(_signal: int, _frame: object) -> None:
    raise TimeoutError(f"no answer within {_MOST_SECONDS} s")


def _note(text: str) -> None:
    print(f"mdmem hook: {text}", file=sys.stderr)
