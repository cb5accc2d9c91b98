"""Language models that the caller or the user's own settings bring: asked once, and not for long."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

Generator = Callable[[str, int, float, float], str]
"""A function of a prompt, the most tokens of its answer, a temperature, and how many seconds it may take."""

_TEMPERATURE = 0.3
_SECONDS = 120.0


def answered(generator: Generator, prompt: str, most: int) -> str:
    """What a generator answers, in a thread that is left alone when its time is over.

    Raises:
        TimeoutError: it took too long.
        Exception: what the generator raises.
    """
    answers: list[str] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(generator(prompt, most, _TEMPERATURE, _SECONDS).strip())
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits for it
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(ask,), daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"no answer within {_SECONDS:g} seconds")
    return answers[0]
